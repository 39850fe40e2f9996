"""The tables of benchmarks/results/unjudged.md are those of the records."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

measured = pytest.importorskip("benchmarks.unjudged", reason="benchmarks are not part of the installed package")
PAGE = measured.PAGE.read_text(encoding="utf-8")
REPORT = json.loads(measured.RESULT.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "table"), [("uniques", measured.table_of_uniques), ("labels", measured.table_of_labels)]
)
def test_the_tables_are_what_was_measured(name: str, table: object) -> None:
    assert PAGE.split(f"<!-- {name} -->\n")[1].split(f"<!-- end of {name} -->")[0] == table(REPORT)  # type: ignore[operator]


def test_the_ranges_hold_the_value_under_all_labels_and_nothing_is_settled() -> None:
    rows = REPORT["uniques"]
    assert len(rows) == 6
    assert all(row["low"] <= row["full"] <= row["high"] and not row["settled"] for row in rows)
    # "With all labels no difference is significant. With b's own documents unjudged, all six are"
    assert all(row["full_p"] > 0.05 >= row["zero_p"] for row in rows)
    nearer = sum(abs(row["condensed"] - row["full"]) < abs(row["zero"] - row["full"]) for row in rows)
    assert nearer == 6


def test_the_left_out_row_is_what_the_code_computes() -> None:
    folder = Path(measured.ROOT.parent / "shared" / "data" / "trec_dl19")
    if not folder.exists():
        pytest.skip(f"no data at {folder}")
    qrels, runs = measured.read_trec(folder)
    row = measured.left_out(qrels, runs, "TAS-B", "ADA-002")
    recorded = REPORT["uniques"][0]
    for name in ("full", "zero", "condensed", "low", "high"):
        assert row[name] == pytest.approx(recorded[name], abs=1e-12)


def test_judge_next_needs_fewer_labels_than_pooling_and_random_order() -> None:
    for data in ("TREC DL 2019", "MQ2008"):
        right = {
            order: np.median([row["right"] for row in REPORT["labels"] if (row["data"], row["order"]) == (data, order)])
            for order in measured.ORDERS
        }
        assert right["judge_next"] < right["pooling"] < right["random"], data
