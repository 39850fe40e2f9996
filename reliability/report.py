"""``docs/reliability.md`` from the records of the runs: ``python -m reliability.report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reliability.records import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
ORDER = ("fuzz", "mutation", "mutants", "stress", "parquet", "engines", "versions", "types")

INTRODUCTION = """\
# Reliability: everything we tried in order to break the library

Written by `python -m reliability.report` from the records in `reliability/results/`; each names the command that
repeats it. These are the long runs. Shorter ones are part of the test suite: fuzzed inputs
(`tests/engines/test_fuzz.py`), sequences of updates, merges, resets and copies
(`tests/pytorch/test_state_machine.py`), hostile arrays (`tests/core/test_hostile_arrays.py`), threads and forks
(`tests/core/test_threads.py`), processes (`tests/pytorch/test_torch_distributed.py`) and engines
(`tests/engines/test_engines.py`, `tests/engines/test_spark.py`).
"""


def records() -> dict[str, dict[str, Any]]:
    """The records by name, in the order of the page."""
    names = sorted((path.stem for path in RESULTS.glob("*.json")), key=lambda name: (_place(name), name))
    return {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in names}


def page(found: dict[str, dict[str, Any]]) -> str:
    """The page."""
    lines = [
        INTRODUCTION,
        *_table(("run", "what was tried", "how many", "fails now", "found and fixed"), _summary(found)),
    ]
    for record in found.values():
        lines += [f"\n## {record['title']}\n", f"{record['tried']}\n"]
        versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
        lines += [f"`{record['command']}`, {record['date']}; {versions}.\n"]
        if record["found"]:
            lines += ["Found:\n"]
            lines += [f"- {one['what'].rstrip('.')}. *{one['fixed'].rstrip('.')}.*" for one in record["found"]]
        else:
            lines += ["Nothing was found."]
        lines += _mutants(record) + _details(record, "lanes") + _details(record, "figures")
    return "\n".join(lines) + "\n"


def _place(name: str) -> int:
    return next((at for at, known in enumerate(ORDER) if name.startswith(known)), len(ORDER))


def _summary(found: dict[str, dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (
            record["title"],
            record["tried"],
            f"{record['count']:,} {record['unit']}",
            f"{record['failed']:,}",
            f"{len(record['found'])}",
        )
        for record in found.values()
    ]


def _mutants(record: dict[str, Any]) -> list[str]:
    if "score" not in record:
        return []
    columns = list(next(iter(record["score"].values())))
    rows = [(f"`{module}`", *(f"{score[column]:,}" for column in columns)) for module, score in record["score"].items()]
    return ["", *_table(("module", *columns), rows)]


def _details(record: dict[str, Any], key: str) -> list[str]:
    """One row for each of the record's lanes or figures."""
    if key not in record:
        return []
    columns = list(dict.fromkeys(name for row in record[key] for name in row))
    return ["", *_table(tuple(columns), [tuple(str(row.get(name, "")) for name in columns) for row in record[key]])]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (head, *rows)]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


if __name__ == "__main__":
    PAGE.write_text(page(records()))
