"""What parts and streams refuse, in each part or when they are merged."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pytest
from strategies import square_root

from ndcg_ml import Flavor, PartialEvaluation, evaluate_batches, evaluate_part
from ndcg_ml.parts import exact_sum

ROWS = np.ones((2, 3))
MASKED = np.ma.masked_array([1, 2], mask=[False, True])
SKIP, CALLABLE = Flavor(empty="skip"), Flavor(gain=square_root)


def part(qid: Any = 1, labels: Any = 1, **options: Any) -> PartialEvaluation:
    """Two queries of one document that have these ids, or one query."""
    ids = np.atleast_1d(np.asarray(qid))
    return evaluate_part(np.full(ids.size, labels), np.ones(ids.size), qid=ids, **options)


def objects(*ids: Any) -> Any:
    out = np.empty(len(ids), dtype=object)
    out[:] = ids
    return out


def stream(*ids: Any, scores: Any = (1, 2)) -> PartialEvaluation:
    return evaluate_batches([([1, 0][: len(each)], scores[: len(each)], each) for each in ids])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        *((lambda bad=bad: exact_sum([1.0, *bad]), ValueError, "too large for float64") for bad in ([math.nan], [math.inf], [math.inf, -math.inf], [1.7e308, 1.7e308])),
        (lambda: evaluate_part([], [1.0], qid=[]), ValueError, "y_score must be as long as y_true"),
        *((lambda name=name: evaluate_part([], [], qid=[], **{name: [True]}), ValueError, f"{name} must be as long as y_true, which has no rows") for name in ("query_weight", "retrieved", "doc_id")),
        (lambda: part(query_weight=[0.0]).value, ValueError, "above 0"),
        (lambda: part(query_weight=[0.0, 0.0]), ValueError, "one weight per query"),
        (lambda: part(["a", "b"], [1, 0], flavor=Flavor(empty="raise")), ValueError, "query 'b'"),
        (lambda: part(labels=0, flavor=SKIP).value, ValueError, "nothing to average"),
        # ids
        (lambda: evaluate_part(ROWS, ROWS), ValueError, "got neither"),
        (lambda: evaluate_part([1], [1], qid=[1], query_id=[1]), ValueError, "got both"),
        (lambda: evaluate_part(ROWS, ROWS, query_id=[1, 2, 3]), ValueError, "one id per query, 2; got 3"),
        (lambda: evaluate_part(ROWS, ROWS, query_id=np.array([1, 1])), ValueError, "query_id must have each query once; got 1"),
        (lambda: evaluate_part(ROWS, ROWS, query_id=[1, math.nan]), ValueError, "missing value"),
        (lambda: evaluate_part(ROWS, ROWS, query_id=["1", 1]), TypeError, "all of one type"),
        (lambda: evaluate_part(ROWS, ROWS, query_id=MASKED), TypeError, "query_id"),
        (lambda: part(objects((1, 2), "a")), TypeError, "query ids must be integers, strings"),
        (lambda: part(objects(1, "a")), TypeError, "query ids must be integers, strings"),
        (lambda: part(np.array([1 + 2j, 3])), TypeError, "query ids must be integers, strings"),
        (lambda: part(objects((0.5, 1.5), (0.5, 1.5))), TypeError, "query ids must be integers, strings"),
        (lambda: part(np.array([1, 2], dtype="m8[s]")), TypeError, "query ids must be integers, strings"),
        (lambda: part(objects(np.timedelta64(1, "s"), np.timedelta64(2, "s"))), TypeError, "query ids must be integers, strings"),
        *((lambda wide=wide: part(objects(0, wide)), TypeError, f"that are integers must fit in 64 bits; got {wide}") for wide in (2**64, -(2**63) - 1)),
        # merged
        (lambda: part([1]) + part(["1"]), TypeError, "query ids must have one type in all parts"),
        (lambda: part([1]) + part([1.0]), TypeError, "query ids must have one type in all parts"),
        (lambda: part(["a"]) + part([b"a"]), TypeError, "query ids must have one type in all parts"),
        (lambda: part([-7, 93]) + part(-7), ValueError, r"is in two of the parts \(such as query -7\)\. Either"),
        (lambda: part([12, 112]) + part(12), ValueError, r"is in two of the parts \(such as query 12\)\. Either"),
        (lambda: part(k=5) + part(2, k=6), ValueError, "one flavor and the same cut-offs"),
        (lambda: part(k=5) + part(2, k=[5]), ValueError, "one flavor and the same cut-offs"),
        (lambda: part(k=5) + part(2, k=5, flavor="lightgbm"), ValueError, "one flavor and the same cut-offs"),
        (lambda: PartialEvaluation.merge([]), ValueError, "at least one part"),
        (lambda: PartialEvaluation.merge([part(), 0.5]), TypeError, "PartialEvaluation objects; got float"),  # type: ignore[list-item]
        *((lambda wrong=wrong: wrong + part(), TypeError, "unsupported operand") for wrong in (1, 0.0, None)),
        # callables are blamed only if all else is the same
        *(
            (lambda more=more: part(flavor=CALLABLE, k=[1, 2]) + part(2, **{"flavor": CALLABLE, "k": [1, 2], **more}), ValueError, "^parts must have one flavor and the same cut-offs; got ")
            for more in ({"flavor": CALLABLE.replace(discount="ln")}, {"k": [1, 3]}, {"k": [2, 3]}, {"k": 1})
        ),
        # streams
        (lambda: evaluate_batches([([1, 1, 0], [1, 1, 0], ["1", 1, 2])]), TypeError, "all of one type"),
        (lambda: stream(MASKED), TypeError, "qid"),
        (lambda: stream(objects(2**64, 2**64 + 1)), TypeError, "must fit in 64 bits; got 18446744073709551616"),
        (lambda: stream(np.array([1, 2], dtype="M8[ps]")), TypeError, "whole nanoseconds"),
        (lambda: stream([datetime.date(2026, 1, 1)]), TypeError, "got date"),
        (lambda: stream([7], ["7"]), TypeError, "one type in all parts, .*; got int and str"),
        (lambda: stream([7, 7], scores=np.array([2**60 + 1, 2**60])), ValueError, "y_score must hold scores that stay different in float64"),
        (lambda: sum([stream([1, 2]), stream([2, 3])]), ValueError, "a query was split"),
        *((lambda n=n: stream(*([2 * i, 2 * i + 1] for i in range(n)), [0]), ValueError, r"a query reappeared after other queries\. Sort the rows") for n in (2, 300)),
        (lambda: evaluate_batches([], flavor=Flavor(ties="docid")), ValueError, "docid"),
        (lambda: evaluate_batches([([1], [1])]), TypeError, "batch 0 is a tuple of 2"),  # type: ignore[list-item]
        (lambda: evaluate_batches([([1], [1], [1]), 5]), TypeError, "batch 1 is a int"),  # type: ignore[list-item]
        (lambda: evaluate_batches([([1], [1, 2], [1])]), ValueError, r"batch 0 has shapes \(1,\), \(2,\) and \(1,\)"),
        (lambda: evaluate_batches([([[1]], [[1]], [[1]])]), ValueError, "one label, score and query id per row"),
        (lambda: evaluate_batches([([1], [math.nan], [1])]), ValueError, "must not hold NaN"),
        (lambda: evaluate_batches([([1, 1], [1, 2], [1.0, math.nan])]), ValueError, "missing value"),
        (lambda: evaluate_batches([(["a"], [1], [1])]), TypeError, "y_true"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:each of the")
def test_a_part_or_a_sum_is_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
