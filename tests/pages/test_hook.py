"""The first table of docs/claims.md: one query, and what the libraries print for it.

The numbers are those that were recorded of the libraries.
``python tests/pages/test_hook.py --write`` writes the table again.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import pytest
from peers.test_parity_golden import recorded

ROOT = Path(__file__).parents[2]
PAGE, GOLDEN = ROOT / "docs" / "claims.md", ROOT / "tests" / "peers" / "golden"
BEGIN, END = "<!-- hook: written by tests/pages/test_hook.py --write -->\n", "<!-- end of hook -->\n"
K = 10

# library, its variant in the recorded values, preset
ROWS = (
    ("RecTools", "NDCG", "rectools"),
    ("LlamaIndex", "NDCG", "llama_index"),
    ("Haystack", "graded", "haystack"),
    ("sentence-transformers", "InformationRetrievalEvaluator", "sentence_transformers"),
    ("pyvespa", "graded", "vespa"),
    ("RePlay", "NDCG", "replay"),
    ("LensKit", "NDCG", "lenskit"),
    ("mlflow", "ndcg_at_k", "mlflow"),
    ("Phoenix", "ndcg", "phoenix"),
)


def was_recorded(library: str, variant: str) -> float:
    [case] = (
        case
        for case in recorded(GOLDEN)["cases"]
        if (case["library"], case["variant"], case["input_name"], case["k"])
        == (library, variant, "three of three wanted", K)
    )
    return float(case["expected"])


def table() -> str:
    lines = ['| library | "NDCG@10" | preset |', "|---|--:|---|"]
    values: dict[str, list[tuple[str, str]]] = {}
    for library, variant, preset in ROWS:
        values.setdefault(f"{was_recorded(library, variant):.3f}", []).append((library, preset))
    for value, who in values.items():
        names, presets = ", ".join(library for library, _ in who), ", ".join(f"`{preset}`" for _, preset in who)
        lines.append(f"| {names} | {value} | {presets} |")
    return "\n".join(lines) + "\n"


def parts() -> tuple[str, str, str]:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    middle, after = rest.split(END)
    return before, middle, after


def test_the_table_is_up_to_date() -> None:
    assert parts()[1] == table()


def test_the_code_prints_these_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.findall(r"```python\n(.*?)```", parts()[2], flags=re.DOTALL)[0]
    exec(compile(code, "claims.md", "exec"), {})
    printed = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert len(printed) == 5
    said = {preset: was_recorded(library, variant) for library, variant, preset in ROWS}
    for preset, value in printed.items():
        assert float(value) == pytest.approx(said[preset], abs=1e-6)


if __name__ == "__main__" and "--write" in sys.argv:
    head, _, tail = parts()
    PAGE.write_text(head + BEGIN + table() + END + tail, encoding="utf-8")
