"""Pages of the presets, written from their data when the site is built."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ndcg_ml import PRESETS, Flavor, explain_difference
from ndcg_ml.divergences import declared
from ndcg_ml.presets import MIRRORS

# Presets of each library, and the outcomes of its recorded values; tests/pages/test_flavors_page.py writes them.
COUNTS = Path(__file__).parents[1] / "docs" / "parity.json"
KINDS = ("reproduced", "refused", "defined", "declared", "undeclared")
HEAD = (
    "| library | reproduced | rejected by both | defined only by ndcg_ml | declared differences | undeclared | cases |",
    "|---|--:|--:|--:|--:|--:|--:|",
)

# Three queries: tied scores and a relevant document that was not retrieved; few documents; no relevant document.
EXAMPLE = """\
y_true    = [2, 0, 1, 0, 1, 2,   0, 1, 0,   0, 0]
y_score   = [3, 2, 2, 2, 1, 0,   2, 1, 1,   2, 1]
qid       = [*"aaaaaa",          *"bbb",    *"cc"]
doc_id    = [3, 1, 2, 5, 4, 6,   1, 2, 3,   1, 2]
retrieved = [1, 1, 1, 1, 1, 0,   1, 1, 0,   1, 1]
"""
ROWS_BEFORE_EMPTY = 9


def preset_page(name: str) -> str:
    """Return the Markdown of a preset's page."""
    return "\n".join(_lines(name)) + "\n"


def escaped(text: str) -> str:
    """Return `text` as one line without table columns."""
    return " ".join(text.split()).replace("|", "\\|")


def count_row(library: str, count: Mapping[str, Any]) -> str:
    """Return a row of the table of recorded values."""
    columns = [count[kind] for kind in KINDS]
    return f"| {library} | {' | '.join(map(str, [*columns, sum(columns)]))} |"


def _lines(name: str) -> Iterator[str]:
    mirror, flavor = MIRRORS[name], PRESETS[name]
    ids = ", doc_id=doc_id" if flavor.ties.startswith("docid") else ""
    yield f"# {name}\n\n```python"
    yield f'ndcg_score(y_true, y_score, qid=qid{ids}, flavor=Flavor.preset("{name}", k=10))'
    yield f"```\n\nNDCG as in {mirror.library}. [All presets](../flavors.md)."
    if mirror.alias_of is not None:
        yield f"This is an alias of [{mirror.alias_of}]({mirror.alias_of}.md)."
    yield "\n## The formula, in words\n\n```text"
    words = flavor.describe().splitlines()
    yield from (line for line in words if line.split()[0] not in ("preset", "note", "verified", "differs", "also"))
    yield f"```\n\n## What is surprising\n\n{mirror.unusual}"
    entries = declared(name)
    if entries:
        yield "\n## What ndcg_ml does not reproduce\n"
    for entry in entries:
        title = f"{entry.cases[0].upper()}{entry.cases[1:]}"
        yield escaped(f"- **{title}.** {entry.theirs} {entry.ours} {entry.reason} Example: {entry.example}.")
    yield "\n## The difference from scikit-learn\n"
    yield from _difference(name, flavor)
    yield f"\n## How it was verified\n\n{mirror.verified[0].upper()}{mirror.verified[1:]}."
    counts = json.loads(COUNTS.read_text(encoding="utf-8"))
    rows = [count_row(library, count) for library, count in counts.items() if name in count["presets"]]
    if rows:
        yield "\nValues that the library computed, in all its variants:\n"
        yield from (*HEAD, *rows)


def _difference(name: str, flavor: Flavor) -> Iterator[str]:
    sklearn = PRESETS["sklearn"]
    if flavor.replace(k=None) == sklearn:
        yield "There is none: the definition is the same."
        return
    undefined = flavor.empty == "raise" or flavor.empty != flavor.empty
    queries = "The first two of three queries (it has no value for the third)" if undefined else "Three queries"
    yield f"{queries} at k = 3. Documents with `retrieved` 0 have a label and were not retrieved."
    yield f"\n```text\n{EXAMPLE}"
    names = ("y_true", "y_score", "qid", "doc_id", "retrieved")
    arguments = "y_true, y_score, qid=qid, doc_id=doc_id, retrieved=retrieved"
    yield f'>>> explain_difference("sklearn@3", "{name}@3", {arguments})'
    read: dict[str, Any] = {}
    exec(EXAMPLE, read)
    columns = {column: np.array(read[column][: ROWS_BEFORE_EMPTY if undefined else None]) for column in names}
    columns["retrieved"] = columns["retrieved"].astype(bool)
    explained = explain_difference(sklearn.replace(k=3), flavor.replace(k=3), **columns)
    yield re.sub(r" +$", "", str(explained), flags=re.MULTILINE) + "\n```"
