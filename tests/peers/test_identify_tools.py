"""``identify`` on the recorded numbers of five tools: the preset of the tool comes first."""

from __future__ import annotations

from pathlib import Path

import pytest
from peers.test_parity_golden import VARIANTS, arguments, recorded

from ndcg_ml import identify

GOLDEN = Path(__file__).parent / "golden"
NAME, K = "t_judged_notret", 3
TOOLS = (
    ("mlflow", "ndcg_at_k"), ("LlamaIndex", "NDCG"), ("LensKit", "NDCG"), ("Haystack", "graded"), ("RecTools", "NDCG")
)  # fmt: skip


@pytest.mark.parametrize("key", TOOLS, ids=[key[0] for key in TOOLS])
def test_the_preset_comes_first(key: tuple[str, str]) -> None:
    golden, variant = recorded(GOLDEN), VARIANTS[key]
    [case] = (
        case
        for case in golden["cases"]
        if (case["library"], case["variant"], case["input_name"], case["k"]) == (*key, NAME, K)
    )
    value = case["expected"]
    first = identify(round(value, 4), k=K, **arguments(golden["inputs"][NAME], variant)).matches[0]
    assert f"{variant.preset}@{K}" in first.presets
    # The others of the match have the same value on these data, which it says.
    assert first.value == pytest.approx(value, abs=1e-9)
