"""``identify`` on the numbers that five tools give: the preset of the tool comes first, or one with the same values.

The numbers are those of the tools that are installed, and the recorded ones of the others.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from peers import calls
from peers.test_parity_golden import VARIANTS, arguments, recorded

from ndcg_ml import identify

GOLDEN = Path(__file__).parent / "golden"
NAME, K = "t_judged_notret", 3
TOOLS = (
    (("mlflow", "ndcg_at_k"), "mlflow", calls.mlflow),
    (("LlamaIndex", "NDCG"), "llama_index", calls.llama_index),
    (("LensKit", "NDCG"), "lenskit", calls.lenskit),
    (("Haystack", "graded"), "haystack", calls.haystack),
    (("RecTools", "NDCG"), "rectools", calls.rectools),
)


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return recorded(GOLDEN)


@pytest.mark.parametrize(("key", "module", "call"), TOOLS, ids=[key[0] for key, *_ in TOOLS])
def test_the_preset_comes_first(key: tuple[str, str], module: str, call: Any, golden: dict[str, Any]) -> None:
    problem, variant = golden["inputs"][NAME], VARIANTS[key]
    if find_spec(module):
        run = {qid: list(hits.items()) for qid, hits in problem["run"].items()}
        value = call(run, problem["qrels"], K)[0]
    else:
        [case] = (
            case
            for case in golden["cases"]
            if (case["library"], case["variant"], case["input_name"], case["k"]) == (*key, NAME, K)
        )
        value = case["expected"]
    first = identify(round(value, 4), k=K, **arguments(problem, variant)).matches[0]
    assert f"{variant.preset}@{K}" in first.presets
    # The others of the match have the same value on these data, which it says.
    assert first.value == pytest.approx(value, abs=1e-9)
