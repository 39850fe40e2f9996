"""docs/reliability.md agrees with the records of the runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("reliability.report", reason="the runs are not part of the installed package")
from reliability import report

KEYS = {"title", "tried", "command", "count", "unit", "failed", "found", "versions", "date"}


def test_the_page_is_what_the_records_say() -> None:
    assert report.PAGE.read_text() == report.page(report.records()), "run: python -m reliability.report"


def test_every_record_is_complete() -> None:
    for name, record in report.records().items():
        assert record.keys() >= KEYS, name
        assert record["count"] > 0, name
        assert all(set(one) == {"what", "fixed"} and all(one.values()) for one in record["found"]), name
        assert str(Path(__file__).parents[2]) not in str(record), name


def test_nothing_fails_now() -> None:
    assert {name: record["failed"] for name, record in report.records().items() if record["failed"]} == {}
