"""The pages that say which NDCG each library computes are those that the presets and the recorded values give.

``python tests/pages/test_flavors_page.py --write`` writes docs/flavors.md, a page per preset in docs/flavors, and
docs/parity.json again.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "support")]

import numpy as np
import pytest
from peers.test_parity_golden import KNOWN, VARIANTS, declared, judged, recorded, reproduce

from ndcg_ml import PRESETS, Flavor, explain_difference
from ndcg_ml._flavor.divergences import declared as declared_of
from ndcg_ml.presets import MIRRORS, Mirror

ROOT = Path(__file__).parents[2]
PAGE, COUNTS = ROOT / "docs" / "flavors.md", ROOT / "docs" / "parity.json"
FOLDER = ROOT / "docs" / "flavors"
GAINS = {"linear": "y", "exponential": "2^y - 1", "binary": "1 if y > 0", "judged": "1 if judged"}
DISCOUNTS = {"log2": "1 / log2(r + 1)", "ln": "1 / ln(r + 1)", "reciprocal": "1 / r", "jarvelin": "1, 1, 1 / log2(r)"}
# The outcome of a case, and its column in the parity table.
COLUMN = {"values": "reproduced", "refused": "refused", "defined": "defined", "value": "declared"}
KINDS = (*COLUMN.values(), "undeclared")
IN_COLUMNS = ("gain", "discount", "ideal", "ties", "empty", "k")


def cell(flavor: Flavor, switch: str) -> str:
    value = getattr(flavor, switch)
    if isinstance(value, tuple):
        return "table " + ", ".join(f"{entry:g}" for entry in value[:6]) + (", ..." if len(value) > 6 else "")
    if isinstance(value, float):
        return f"{value:g}"
    named = {"gain": GAINS, "discount": DISCOUNTS}.get(switch, {})
    return "-" if value is None else named.get(value, str(value))


def others(flavor: Flavor) -> str:
    """Switches that have no column and are not as in ``Flavor()``."""
    names = [name for name in Flavor.__dataclass_fields__ if name not in IN_COLUMNS]
    changed = [f"{name}={getattr(flavor, name)}" for name in names if getattr(flavor, name) != getattr(Flavor(), name)]
    return ", ".join(changed) or "-"


def escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# The marks around each table of the page.
PRESETS_MARKS = (
    "<!-- presets: written by tests/pages/test_flavors_page.py --write -->\n\n",
    "\n<!-- end of presets -->\n",
)
COUNTS_MARKS = (
    "<!-- counts: written by tests/pages/test_flavors_page.py --write -->\n\n",
    "\n<!-- end of counts -->\n",
)


def page(counts: dict[str, dict[str, int]]) -> str:
    """The index of the presets with its tables as they must be."""
    text = PAGE.read_text(encoding="utf-8")
    for (begin, end), lines in ((PRESETS_MARKS, _presets()), (COUNTS_MARKS, _compared(counts))):
        before, rest = text.split(begin)
        text = before + begin + "".join(f"{line}\n" for line in lines) + end + rest.split(end)[1]
    return text


def _presets() -> Iterator[str]:
    yield f"| preset | library | {' | '.join(IN_COLUMNS)} | and |"
    yield "|---" * (len(IN_COLUMNS) + 3) + "|"
    for name, flavor in PRESETS.items():
        library = escaped(short_name(MIRRORS[name]))
        switches = " | ".join(cell(flavor, switch) for switch in IN_COLUMNS)
        yield f"| [{name}](flavors/{name}.md) | {library} | {switches} | {others(flavor)} |"


def _compared(counts: dict[str, dict[str, int]]) -> Iterator[str]:
    yield "| library | reproduced | refused by both | defined here only | declared divergences | undeclared | cases |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    total: Counter[str] = Counter()
    for library, count in counts.items():
        total.update(count)
        yield f"| {library} | {_counts(count)} |"
    yield f"| **all {len(counts)}** | {_counts(total)} |"


# -- a page per preset ------------------------------------------------------------------------------------------------

# Three queries: tied scores and a relevant document that was not retrieved; few documents; nothing relevant.
EXAMPLE = """\
y_true    = [2, 0, 1, 0, 1, 2,   0, 1, 0,   0, 0]
y_score   = [3, 2, 2, 2, 1, 0,   2, 1, 1,   2, 1]
qid       = [*"aaaaaa",          *"bbb",    *"cc"]
doc_id    = [3, 1, 2, 5, 4, 6,   1, 2, 3,   1, 2]
retrieved = [1, 1, 1, 1, 1, 0,   1, 1, 0,   1, 1]
"""
NO_EMPTY = 9  # rows before the query in which nothing is relevant


def short_name(mirror: Mirror) -> str:
    return re.split(r",| [(]", mirror.library)[0]


def example(rows: int | None) -> dict[str, Any]:
    read: dict[str, Any] = {}
    exec(EXAMPLE, read)
    columns = {name: np.array(read[name][:rows]) for name in ("y_true", "y_score", "qid", "doc_id", "retrieved")}
    return {**columns, "retrieved": columns["retrieved"].astype(bool)}


def preset_page(name: str, counts: dict[str, dict[str, int]]) -> str:
    return "\n".join(_preset_page(name, counts)) + "\n"


def _preset_page(name: str, counts: dict[str, dict[str, int]]) -> Iterator[str]:
    mirror, flavor = MIRRORS[name], PRESETS[name]
    yield f"# {name}"
    yield ""
    yield "```python"
    ids = ", doc_id=doc_id" if flavor.ties.startswith("docid") else ""
    yield f'ndcg_score(y_true, y_score, qid=qid{ids}, flavor=Flavor.preset("{name}", k=10))'
    yield "```"
    yield ""
    yield f"NDCG as in {mirror.library}. [All presets](../flavors.md)."
    if mirror.alias_of is not None:
        yield f"An alias: it is the NDCG of [{mirror.alias_of}]({mirror.alias_of}.md)."
    yield ""
    yield "## The formula, in words"
    yield ""
    yield "```text"
    words = flavor.describe().splitlines()
    yield from (line for line in words if line.split()[0] not in ("preset", "note", "verified", "differs", "also"))
    yield "```"
    yield ""
    yield "## What is surprising"
    yield ""
    yield mirror.unusual
    entries = declared_of(name)
    if entries:
        yield ""
        yield "Not reproduced, because it is a bug, an undefined order, or an input that the formula refuses:"
        yield ""
    for entry in entries:
        yield f"- {escaped(str(entry))}, because {escaped(entry.reason)}. For example: {escaped(entry.example)}."
    yield ""
    yield "## The difference to scikit-learn"
    yield ""
    yield from _difference(name, flavor)
    yield ""
    yield "## How it was verified"
    yield ""
    yield f"{mirror.verified[0].upper()}{mirror.verified[1:]}."
    libraries = list(dict.fromkeys(library for (library, _), v in VARIANTS.items() if v.preset == name))
    if libraries:
        yield ""
        yield "Values that the library computed, in all its variants:"
        yield ""
        yield "| library | reproduced | refused by both | defined here only | declared divergences | undeclared | cases |"
        yield "|---|--:|--:|--:|--:|--:|--:|"
        yield from (f"| {library} | {_counts(counts[library])} |" for library in libraries)


def _difference(name: str, flavor: Flavor) -> Iterator[str]:
    sklearn = PRESETS["sklearn"]
    if flavor.replace(k=None) == sklearn:
        yield "None: it is the same definition."
        return
    at_3 = flavor.replace(k=3)
    rows = NO_EMPTY if flavor.empty == "raise" or flavor.empty != flavor.empty else None
    what = "Three queries" if rows is None else "The first two of three queries (it has no number for the third)"
    yield f"{what}, cut off at 3; documents with `retrieved` 0 are judged and were not found:"
    yield ""
    yield "```text"
    yield from EXAMPLE.splitlines()
    yield ""
    yield f'>>> explain_difference("sklearn@3", "{name}@3", y_true, y_score, qid=qid, doc_id=doc_id, retrieved=retrieved)'
    explained = str(explain_difference(sklearn.replace(k=3), at_3, **example(rows)))
    yield from (line.rstrip() for line in explained.splitlines())
    yield "```"


def _counts(count: dict[str, int] | Counter[str]) -> str:
    columns = [count[kind] for kind in KINDS]
    return " | ".join(map(str, [*columns, sum(columns)]))


def outcomes(golden: dict[str, Any]) -> dict[str, dict[str, int]]:
    """What became of every recorded case, by library."""
    counts: dict[str, Counter[str]] = {library: Counter() for library, _ in VARIANTS}
    for case in golden["cases"]:
        outcome = reproduce(case, golden)
        counts[case["library"]][
            COLUMN[outcome.kind] if not judged(outcome, declared(case, golden)) else "undeclared"
        ] += 1
    return {library: {kind: count[kind] for kind in KINDS} for library, count in counts.items()}


def counted() -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = json.loads(COUNTS.read_text(encoding="utf-8"))
    return counts


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(counted())


@pytest.mark.parametrize("name", PRESETS)
def test_the_page_of_a_preset_is_up_to_date(name: str) -> None:
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == preset_page(name, counted())


def test_every_page_is_of_a_preset() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(PRESETS)


@pytest.mark.long  # the quick line reproduces them in test_parity_golden.py
def test_the_counts_are_those_of_the_recorded_values(parity_dir: Path) -> None:
    golden = recorded(parity_dir)
    if len(golden["cases"]) != KNOWN:
        pytest.skip("the counts are those of another file")
    found = outcomes(golden)
    assert counted() == found
    assert not any(count["undeclared"] for count in found.values())


if __name__ == "__main__" and "--write" in sys.argv:
    found = outcomes(recorded(ROOT / "tests" / "peers" / "golden"))
    COUNTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.md"):
        path.unlink()
    for preset in PRESETS:
        (FOLDER / f"{preset}.md").write_text(preset_page(preset, found), encoding="utf-8")
