"""The pages that say which NDCG each library computes are those that the presets and the recorded values give.

``python tests/pages/test_flavors_page.py --write`` writes docs/flavors.md, docs/parity.json and the README's table again.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import pytest
from divergences import DIVERGENCES
from peers.test_parity_golden import KNOWN, VARIANTS, reproduce

from ndcg_ml import PRESETS, Flavor
from ndcg_ml.presets import MIRRORS

ROOT = Path(__file__).parents[2]
PAGE, COUNTS, README = ROOT / "docs" / "flavors.md", ROOT / "docs" / "parity.json", ROOT / "README.md"
BEGIN, END = "<!-- libraries: written by tests/pages/test_flavors_page.py --write -->\n", "<!-- end of libraries -->\n"

IN_THE_README = (
    *("sklearn", "lightgbm", "xgboost", "catboost", "torchmetrics", "trec_eval", "ir_measures", "gdeval", "ranx"),
    *("rax", "tensorflow_ranking", "allrank", "ranklib", "mslr", "recbole", "recommenders_binary", "spark", "quepid"),
)
GAINS = {"linear": "y", "exponential": "2^y - 1", "binary": "1 if y > 0", "judged": "1 if judged"}
DISCOUNTS = {"log2": "1 / log2(r + 1)", "ln": "1 / ln(r + 1)", "reciprocal": "1 / r", "jarvelin": "1, 1, 1 / log2(r)"}
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


def page(counts: dict[str, dict[str, int]]) -> str:
    return "\n".join(_page(counts)) + "\n"


def _page(counts: dict[str, dict[str, int]]) -> Iterator[str]:
    yield "# Which NDCG does each library compute?"
    yield ""
    yield "Written by `python tests/pages/test_flavors_page.py --write` from the presets, the declared divergences and recorded"
    yield "values; the tests fail when it is not up to date. `Flavor.preset(name)` gives each of these, `ndcg-ml flavors"
    yield "NAME` describes it, `explain_difference(a, b, ...)` says in what two of them differ."
    yield ""
    yield f"## The {len(PRESETS)} presets"
    yield ""
    yield f"| preset | {' | '.join(IN_COLUMNS)} | and |"
    yield "|---" * (len(IN_COLUMNS) + 2) + "|"
    for name, flavor in PRESETS.items():
        yield f"| [{name}](#{name}) | {' | '.join(cell(flavor, s) for s in IN_COLUMNS)} | {others(flavor)} |"
    yield ""
    yield "`r` is the rank from 1; `k` is given where the library has a silent cut-off of its own."
    for name, mirror in MIRRORS.items():
        yield ""
        yield f"### {name}"
        yield ""
        alias = "" if mirror.alias_of is None else f" An alias of [{mirror.alias_of}](#{mirror.alias_of})."
        yield f"{mirror.library}. {mirror.unusual}{alias}"
        yield ""
        yield f"Verified: {mirror.verified}. As text: `{PRESETS[name]}`"
    yield ""
    yield "## What was compared"
    yield ""
    yield "Values that the libraries themselves computed, on problems with ties, empty and one-document queries, weights,"
    yield "huge grades and cut-offs beyond the lists: how many are reproduced, refused by both, declared as divergent"
    yield "(below), and defined here where the library raises an error. No difference is undeclared."
    yield ""
    yield "| library | values | refused by both | declared divergences | defined here only | cases |"
    yield "|---|--:|--:|--:|--:|--:|"
    total: Counter[str] = Counter()
    for library, count in counts.items():
        total.update(count)
        yield f"| {library} | {_counts(count)} |"
    yield f"| **all** | {_counts(total)} |"
    yield ""
    yield "## What is deliberately not reproduced"
    yield ""
    yield "A bug, an order that nothing defines, or an input that the formula refuses. Each is held to the recorded or the"
    yield "live value from both sides: a difference that is not declared fails the tests, and so does one that has gone."
    yield ""
    yield "| library | which cases | there | here | why | for example |"
    yield "|---|---|---|---|---|---|"
    for entry in DIVERGENCES:
        who = ", ".join(entry.libraries) + (f" ({', '.join(entry.variants)})" if entry.variants else "")
        yield (
            "| "
            + " | ".join(
                escaped(text) for text in (who, entry.cases, entry.theirs, entry.ours, entry.reason, entry.example)
            )
            + " |"
        )


def _counts(count: dict[str, int] | Counter[str]) -> str:
    columns = [count[kind] for kind in ("values", "refused", "value", "defined")]
    return " | ".join(map(str, [*columns, sum(columns)]))


def table() -> str:
    """The short table of the README."""
    lines = ["| library | preset | gain | discount | tied scores | nothing relevant |", "|---|---|---|---|---|---|"]
    for name in IN_THE_README:
        switches = (cell(PRESETS[name], switch) for switch in ("gain", "discount", "ties", "empty"))
        lines.append(f"| {re.split(r',| [(]', MIRRORS[name].library)[0]} | `{name}` | {' | '.join(switches)} |")
    return "\n".join(lines) + "\n"


def recorded(golden: dict[str, Any]) -> dict[str, dict[str, int]]:
    """What became of every recorded case, by library."""
    counts: dict[str, Counter[str]] = {library: Counter() for library, _ in VARIANTS}
    for case in golden["cases"]:
        counts[case["library"]][reproduce(case, golden).kind] += 1
    kinds = ("values", "refused", "value", "defined")
    return {library: {kind: count[kind] for kind in kinds} for library, count in counts.items()}


def parts() -> tuple[str, str, str]:
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    middle, after = rest.split(END)
    return before, middle, after


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(json.loads(COUNTS.read_text(encoding="utf-8")))


def test_the_table_of_the_readme_is_up_to_date() -> None:
    assert parts()[1] == table()


def test_the_counts_are_those_of_the_recorded_values(parity_dir: Path) -> None:
    with gzip.open(parity_dir / "golden.json.gz", "rt", encoding="utf-8") as file:
        golden = json.load(file)
    if len(golden["cases"]) != KNOWN:
        pytest.skip("the counts are those of another file")
    assert json.loads(COUNTS.read_text(encoding="utf-8")) == recorded(golden)


if __name__ == "__main__" and "--write" in sys.argv:
    path = ROOT / "tests" / "peers" / "golden" / "golden.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = recorded(json.load(file))
    COUNTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    head, _, tail = parts()
    README.write_text(head + BEGIN + table() + END + tail, encoding="utf-8")
