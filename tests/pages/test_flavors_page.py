"""The tables of docs/flavors.md are those that the presets and the recorded values give.

``python tests/pages/test_flavors_page.py --write`` writes docs/flavors.md and docs/parity.json again. The page of each
preset is written when the site is built, by .site/preset_pages.py.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/support", ".site")]

import pytest
from peers.test_parity_golden import VARIANTS, declared, judged, recorded, reproduce
from preset_pages import COUNTS, HEAD, KINDS, count_row, escaped, preset_page

from ndcg_ml import PRESETS, Flavor
from ndcg_ml._core.flavor_text import WORDS
from ndcg_ml.presets import MIRRORS

PAGE = ROOT / "docs" / "flavors.md"
# The outcome of a case, and its kind in the counts.
KIND = {"values": "reproduced", "refused": "refused", "defined": "defined", "value": "declared"}
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


# The marks around each table of the page.
PRESETS_MARKS = (
    "<!-- presets: written by tests/pages/test_flavors_page.py --write -->\n\n",
    "\n<!-- end of presets -->\n",
)
COUNTS_MARKS = (
    "<!-- counts: written by tests/pages/test_flavors_page.py --write -->\n\n",
    "\n<!-- end of counts -->\n",
)


def page(counts: dict[str, Any]) -> str:
    """Return the page with current tables."""
    text = PAGE.read_text(encoding="utf-8")
    for (begin, end), lines in ((PRESETS_MARKS, presets()), (COUNTS_MARKS, compared(counts))):
        before, rest = text.split(begin)
        text = before + begin + "".join(f"{line}\n" for line in lines) + end + rest.split(end)[1]
    return text


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


def outcomes(golden: dict[str, Any]) -> dict[str, Any]:
    """Return, by library, its presets and the number of recorded cases with each outcome."""
    counts: dict[str, Counter[str]] = {library: Counter() for library, _ in VARIANTS}
    for case in golden["cases"]:
        outcome = reproduce(case, golden)
        known = not judged(outcome, declared(case, golden))
        counts[case["library"]][KIND[outcome.kind] if known else "undeclared"] += 1
    mirrored = {
        name: dict.fromkeys(v.preset for (library, _), v in VARIANTS.items() if library == name) for name in counts
    }
    return {
        name: {"presets": [*mirrored[name]], **{kind: count[kind] for kind in KINDS}} for name, count in counts.items()
    }


def counted() -> dict[str, Any]:
    counts: dict[str, Any] = json.loads(COUNTS.read_text(encoding="utf-8"))
    return counts


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(counted())


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_a_page(name: str) -> None:
    text = preset_page(name)
    assert text.startswith(f"# {name}\n\n```python\nndcg_score(")
    assert MIRRORS[name].unusual in text


@pytest.mark.long  # the quick line reproduces them in test_parity_golden.py
def test_the_counts_are_those_of_the_recorded_values(parity_dir: Path) -> None:
    golden = recorded(parity_dir)
    found = outcomes(golden)
    assert counted() == found
    assert not any(count["undeclared"] for count in found.values())


if __name__ == "__main__" and "--write" in sys.argv:
    found = outcomes(recorded(ROOT / "tests" / "peers" / "golden"))
    COUNTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
