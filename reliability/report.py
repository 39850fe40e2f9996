"""Write reliability/results/runs.md from the records of the runs: ``python -m reliability.report``."""

from __future__ import annotations

import json
from typing import Any

from reliability.records import RESULTS

PAGE = RESULTS / "runs.md"
ORDER = ("fuzz", "mutants", "suites", "stress", "parquet", "engines", "versions", "types")

INTRODUCTION = """\
# Reliability: how we tried to break the library

These are the long runs; the test suite contains shorter ones. `python -m reliability.report` writes this page from the
records in `reliability/results/`, which list each defect.
"""


def records() -> dict[str, dict[str, Any]]:
    """Return the records by name, in the order of the page."""
    names = sorted((path.stem for path in RESULTS.glob("*.json")), key=lambda name: (_place(name), name))
    return {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in names}


def page(found: dict[str, dict[str, Any]]) -> str:
    """Return the page: a table of the runs, with the command that repeats each."""
    head = ("run", "how many", "fails now", "found and fixed", "date", "command")
    rows = [
        (
            record["title"],
            f"{record['count']:,} {record['unit']}",
            f"{record['failed']:,}",
            f"{len(record['found'])}",
            record["date"],
            f"`{record['command']}`",
        )
        for record in found.values()
    ]
    tried = [f"- **{record['title']}**: {record['tried']}" for record in found.values()]
    suites = [
        (
            each["suite"],
            f"{each['run']}",
            f"{each['passed']}",
            f"{each['skipped']}",
            "; ".join(each["rest"]),
            each["date"],
        )
        for record in found.values()
        for each in record.get("suites", [])
    ]
    of_suites = _table(("tests", "run", "pass", "skipped", "the others, and why", "date"), suites)
    parts = [*_table(head, rows), "\n## What was tried\n", *tried, "\n## Other projects' tests\n", *of_suites]
    return "\n".join([INTRODUCTION, *parts]) + "\n"


def _place(name: str) -> int:
    return next((at for at, known in enumerate(ORDER) if name.startswith(known)), len(ORDER))


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (head, *rows)]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


if __name__ == "__main__":
    PAGE.write_text(page(records()))
