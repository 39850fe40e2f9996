"""The tables of docs/flavors.md and docs/which.md are those that the presets and the recorded values give.

``python tests/pages/test_flavors_page.py --write`` writes them and docs/parity.json again. The page of each preset is
written when the site is built, by .site/preset_pages.py. docs/demo_scores.csv is what ``ndcg-ml demo --picture
docs/demo.png --scores docs/demo_scores.csv`` wrote.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/support", ".site")]

import pytest
from peers.test_parity_golden import outcomes, recorded
from preset_pages import COUNTS, HEAD, KINDS, count_row, escaped, preset_page
from printed import blocks, run_blocks, with_table

from ndcg_ml import PRESETS, Flavor, ndcg_score
from ndcg_ml._plain.flavor_text import WORDS
from ndcg_ml.presets import MIRRORS
from ndcg_ml.readers import read_columns

PAGE, WHICH, GOLDEN = ROOT / "docs" / "flavors.md", ROOT / "docs" / "which.md", ROOT / "tests" / "peers" / "golden"
IN_COLUMNS = ("gain", "discount", "ideal", "ties", "empty", "k")


def cell(flavor: Flavor, switch: str) -> str:
    value = getattr(flavor, switch)
    if isinstance(value, tuple):
        return "table " + ", ".join(f"{entry:g}" for entry in value[:6]) + (", ..." if len(value) > 6 else "")
    if isinstance(value, float):
        return f"{value:g}"
    named = WORDS.get(switch, {}) if switch in ("gain", "discount") else {}
    return "-" if value is None else named.get(value, str(value))


def others(flavor: Flavor) -> str:
    """Return the switches without a column that differ from ``Flavor()``."""
    names = [name for name in Flavor.__dataclass_fields__ if name not in IN_COLUMNS]
    changed = [f"{name}={getattr(flavor, name)}" for name in names if getattr(flavor, name) != getattr(Flavor(), name)]
    return ", ".join(changed) or "-"


def page(counts: dict[str, Any]) -> str:
    """Return the page with current tables."""
    return with_table(with_table(PAGE.read_text(encoding="utf-8"), "presets", presets()), "counts", compared(counts))


def presets() -> Iterator[str]:
    yield f"| preset | library | {' | '.join(IN_COLUMNS)} | other switches |"
    yield "|---" * (len(IN_COLUMNS) + 3) + "|"
    for name, flavor in PRESETS.items():
        library = escaped(re.split(r",| [(]", MIRRORS[name].library)[0])
        switches = " | ".join(cell(flavor, switch) for switch in IN_COLUMNS)
        yield f"| `{name}` | {library} | {switches} | {others(flavor)} |"


def compared(counts: dict[str, Any]) -> Iterator[str]:
    yield from HEAD
    yield from (count_row(library, count) for library, count in counts.items())
    total = {kind: sum(count[kind] for count in counts.values()) for kind in KINDS}
    yield count_row(f"**all {len(counts)}**", total)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(json.loads(COUNTS.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_a_page(name: str) -> None:
    text = preset_page(name)
    assert text.startswith(f"# {name}\n\n```python\nndcg_score(")
    assert MIRRORS[name].unusual in text


# -- docs/which.md ----------------------------------------------------------------------------------------------------

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


def of_one_query() -> list[str]:
    """Return the table of the values that the libraries computed for one query."""
    lines = ['| library | "NDCG@10" | preset |', "|---|--:|---|"]
    values: dict[str, list[tuple[str, str]]] = {}
    for library, variant, preset in ROWS:
        values.setdefault(f"{was_recorded(library, variant):.3f}", []).append((library, preset))
    for value, found in values.items():
        names, presets = ", ".join(library for library, _ in found), ", ".join(f"`{preset}`" for _, preset in found)
        lines.append(f"| {names} | {value} | {presets} |")
    return lines


def ndcg() -> dict[str, dict[str, float]]:
    """NDCG@10 by preset and model; the ids of the documents, for trec_eval's ties, sort like the rows."""
    rows = {
        model: read_columns(ROOT / "docs" / "demo_scores.csv", {"score": model}).arguments()
        for model in ("scikit-learn", "PyTorch", "LightGBM")
    }
    doc_id = [f"{row:04}" for row in range(len(rows["PyTorch"]["y_true"]))]
    return {
        name: {
            model: ndcg_score(**{**arguments, "doc_id": doc_id}, flavor=name, k=10) for model, arguments in rows.items()
        }
        for name in WELL_KNOWN
    }


def test_the_table_of_one_query_is_up_to_date():
    text = WHICH.read_text(encoding="utf-8")
    assert text == with_table(text, "hook", of_one_query())


def test_the_spread_is_the_rule_for_empty_queries():
    demo = ndcg()
    model = "LightGBM"
    whole = [demo[name][model] for name in WELL_KNOWN]
    with_zero = [demo[name][model] for name in WELL_KNOWN if PRESETS[name].empty == 0]
    without = [demo[name][model] for name in WELL_KNOWN if PRESETS[name].empty != 0]
    within = max(max(group) - min(group) for group in (with_zero, without))
    assert within < 0.15 * (max(whole) - min(whole))
    assert f"{max(whole) - min(whole):.3f} between the eight" in " ".join(WHICH.read_text(encoding="utf-8").split())
    order = [sorted(demo[name], key=demo[name].__getitem__) for name in WELL_KNOWN]
    assert all(each == order[0] for each in order)


def test_the_code_prints_what_the_page_says(capsys):
    text = WHICH.read_text()
    *found, _ = blocks(WHICH)  # tests/peers/test_conformance.py runs the last
    identified, first, claims = (run_blocks(capsys, block)[0] for block in found)
    recorded_of = {preset: was_recorded(library, variant) for library, variant, preset in ROWS}
    for preset, value in map(str.split, first.splitlines()):
        assert float(value) == pytest.approx(recorded_of[preset], abs=1e-6)
    facts = claims.split()
    assert facts == ["linear", "0.6697", "exponential", "0.659", "jarvelin", "1.0", "log2", "0.6309", "1.0"]
    for fact in ("0.6697", "0.6590", "0.6309"):
        assert fact in text
    assert "0.7780: 1 match with a preset" in identified
    assert "\n    lightgbm@10; " in identified
    assert identified.endswith("\ntrec_eval\n")


def test_pages_say_how_many_presets_were_compared_with_a_run():
    run = [mirror for mirror in MIRRORS.values() if "reproduces " in mirror.verified]
    alone = [mirror.name for mirror in MIRRORS.values() if "source alone" in mirror.verified]
    assert alone == ["elasticsearch", "mlnet"]
    for page in ("README.md", "CHANGELOG.md", "docs/evidence.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert re.findall(r"\b(\d+) (?:of \d+ presets )?(?:were|are)\s(?:compared|checked)", text) == [f"{len(run)}"], (
            page
        )
        assert re.findall(r"(\d+) presets", text) == [f"{len(MIRRORS)}"], page


if __name__ == "__main__" and "--write" in sys.argv:
    found = outcomes(recorded(GOLDEN))
    COUNTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    WHICH.write_text(with_table(WHICH.read_text(encoding="utf-8"), "hook", of_one_query()), encoding="utf-8")
