"""reliability/results/runs.md agrees with the records of the runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("reliability.report", reason="the runs are not part of the installed package")
from reliability import report

ROOT = Path(__file__).parents[2]
KEYS = {"title", "tried", "command", "count", "unit", "failed", "found", "versions", "date"}


def test_the_page_is_what_the_records_say() -> None:
    assert report.PAGE.read_text() == report.page(report.records()), "run: python -m reliability.report"


def test_every_record_is_complete() -> None:
    for name, record in report.records().items():
        assert record.keys() >= KEYS, name
        assert record["count"] > 0, name
        assert all(set(one) == {"what", "fixed"} and all(one.values()) for one in record["found"]), name
        assert str(ROOT) not in str(record), name
        assert [test for test in re.findall(r"tests/[\w/]+\.py", str(record)) if not (ROOT / test).exists()] == [], name


def test_nothing_fails_now() -> None:
    # Mutants that survive are those of a sample that states a share, so they are counted and not fixed.
    failed = {name: record["failed"] for name, record in report.records().items() if name != "mutants"}
    assert not any(failed.values()), failed


def test_every_survivor_that_is_judged_has_a_reason() -> None:
    judged = json.loads((ROOT / "reliability" / "equivalents.json").read_text())
    assert len({each["mutant"] for each in judged}) == len(judged)
    for each in judged:
        assert set(each) == {"mutant", "kind", "why"}, each
        assert each["why"], each
        assert each["kind"] in ("equivalent", "speed", "message"), each
