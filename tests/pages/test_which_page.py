"""The code of docs/which.md prints what the page says, and its table has the values that libraries computed.

``python tests/pages/test_which_page.py --write`` writes the table again. docs/demo_scores.csv is what ``ndcg-ml demo
--picture docs/demo.png --scores docs/demo_scores.csv`` wrote.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "support")]

import pytest
from peers.test_parity_golden import recorded
from printed import blocks, run_blocks

from ndcg_ml import PRESETS, ndcg_score
from ndcg_ml.readers import read_columns

ROOT = Path(__file__).parents[2]
PAGE, GOLDEN = ROOT / "docs" / "which.md", ROOT / "tests" / "peers" / "golden"
# The marks around the table of the page.
BEGIN, END = "<!-- hook: written by tests/pages/test_which_page.py --write -->\n", "<!-- end of hook -->\n"
WELL_KNOWN = ["sklearn", "lightgbm", "xgboost", "catboost", "torchmetrics", "trec_eval", "burges2005", "jarvelin2002"]


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
        == (library, variant, "three of three wanted", 10)
    )
    return float(case["expected"])


def table() -> str:
    """Return the table of the values that the libraries computed for one query."""
    lines = ['| library | "NDCG@10" | preset |', "|---|--:|---|"]
    values: dict[str, list[tuple[str, str]]] = {}
    for library, variant, preset in ROWS:
        values.setdefault(f"{was_recorded(library, variant):.3f}", []).append((library, preset))
    for value, found in values.items():
        names, presets = ", ".join(library for library, _ in found), ", ".join(f"`{preset}`" for _, preset in found)
        lines.append(f"| {names} | {value} | {presets} |")
    return "\n".join(lines) + "\n"


def ndcg() -> dict[str, dict[str, float]]:
    """NDCG@10 by preset and model; the ids of the documents, for trec_eval's ties, sort like the rows."""
    rows = {
        model: read_columns(ROOT / "docs" / "demo_scores.csv", model).arguments()
        for model in ("scikit-learn", "PyTorch", "LightGBM")
    }
    doc_id = [f"{row:04}" for row in range(len(rows["PyTorch"]["y_true"]))]
    return {
        name: {
            model: ndcg_score(**{**arguments, "doc_id": doc_id}, flavor=name, k=10) for model, arguments in rows.items()
        }
        for name in WELL_KNOWN
    }


def written() -> str:
    """Return the page with the current table."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


def test_the_table_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == written()


def test_the_spread_is_the_rule_for_empty_queries():
    demo = ndcg()
    model = "LightGBM"
    whole = [demo[name][model] for name in WELL_KNOWN]
    with_zero = [demo[name][model] for name in WELL_KNOWN if PRESETS[name].empty == 0]
    without = [demo[name][model] for name in WELL_KNOWN if PRESETS[name].empty != 0]
    within = max(max(group) - min(group) for group in (with_zero, without))
    assert within < 0.15 * (max(whole) - min(whole))
    assert f"{max(whole) - min(whole):.3f} between the eight" in " ".join(PAGE.read_text(encoding="utf-8").split())
    order = [sorted(demo[name], key=demo[name].__getitem__) for name in WELL_KNOWN]
    assert all(each == order[0] for each in order)


def test_the_code_prints_what_the_page_says(capsys):
    text = PAGE.read_text()
    *found, _ = blocks(PAGE)  # tests/peers/test_conformance.py runs the last
    identified, first, claims = (run_blocks(capsys, block)[0] for block in found)
    recorded_of = {preset: was_recorded(library, variant) for library, variant, preset in ROWS}
    for preset, value in map(str.split, first.splitlines()):
        assert float(value) == pytest.approx(recorded_of[preset], abs=1e-6)
    facts = claims.split()
    assert facts == ["linear", "0.6697", "exponential", "0.659", "jarvelin", "1.0", "log2", "0.6309", "1.0"]
    for fact in ("0.6697", "0.6590", "0.6309"):
        assert fact in text
    assert "0.7780: 1 match with a preset" in identified
    assert "\n  lightgbm@10 " in identified
    assert identified.endswith("\ntrec_eval\n")


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(written(), encoding="utf-8")
