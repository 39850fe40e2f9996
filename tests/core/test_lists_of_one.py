"""Likely mistakes on every route for arrays.

Columns, shape (n, 1), which are nearly always rows, are refused. Queries of one document, and labels and scores that
seem to be swapped, cause a warning.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ndcg_ml import (
    dcg_score,
    evaluate,
    evaluate_batches,
    evaluate_part,
    explain_difference,
    identify,
    ndcg_score,
    prepare,
)

Y, S = np.array([3.0, 0, 1, 0, 2, 1]), np.array([0.9, 0.8, 0.1, 0.5, 0.4, 0.3])

ROUTES = {
    "ndcg_score": lambda y, s, **given: ndcg_score(y, s, **given),
    "dcg_score": lambda y, s, **given: dcg_score(y, s, **given),
    "evaluate": lambda y, s, **given: evaluate(y, s, **given).value,
    "prepare": lambda y, s, **given: prepare(y, **given)(s),
    "explain_difference": lambda y, s, **given: explain_difference("sklearn", "lightgbm", y, s, **given).value_a,
    "identify": lambda y, s, **given: identify(1.0, y, s, k=3, **given),
    "evaluate_part": lambda y, s, **given: evaluate_part(y, s, query_id=np.arange(len(y)), **given).value,
}


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_a_column_is_refused(route):
    with pytest.raises(ValueError, match=r"\(6, 1\) may be 6 rows.*y_true\.squeeze\(-1\).*qid=.*mask=np\.ones"):
        route(Y[:, None], S[:, None])
    with pytest.raises(ValueError, match=r"shape \(2, 3, 1\).*squeeze\(-1\)"):
        route(Y.reshape(2, 3, 1), S.reshape(2, 3, 1))


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_with_a_mask_lists_of_one_document_cause_a_warning(route):
    with pytest.warns(UserWarning, match="each of the 6 queries has one document") as seen:
        value = route(Y[:, None], S[:, None], mask=np.ones((6, 1), dtype=bool))
    assert seen[0].filename == __file__  # the warning points at the caller's line
    if isinstance(value, float) and route not in (ROUTES["dcg_score"],):
        assert value == pytest.approx(4 / 6)  # the share of relevant rows


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_swapped_labels_and_scores_cause_a_warning(route):
    grades, scores = Y.reshape(2, 3), S.reshape(2, 3)
    with pytest.warns(UserWarning, match="y_score holds integers and y_true does not, as if the two were swap") as seen:
        route(scores, grades)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        route(grades, scores)


PAIR = [[0.5, 0.25, 0.75]]


@pytest.mark.parametrize(
    ("labels", "scores", "given", "warns"),
    [
        (PAIR, [[2, 0, 1]], {}, True),
        (PAIR, [[2.0, 0.0, 100.0]], {}, True),
        (PAIR, [[2, 0, 101]], {}, False),  # views or ranks
        (PAIR, [[2, 0, -1]], {}, False),
        (PAIR, [[0, 0, 0]], {}, False),  # a constant model
        (PAIR, [[2, 0, 0.5]], {}, False),
        (PAIR, [[2, 0, -np.inf]], {}, False),
        ([[0.5, 1, 2]], [[2, 0, 1]], {}, False),
        ([[0.5, 1, np.nan]], [[2, 0, 1]], {"flavor": "sklearn[unjudged=zero]"}, True),
        # Padding and documents that were not retrieved may have any score.
        (PAIR, [[2, 1, 0.5]], {"mask": np.array([[True, True, False]])}, True),
        (PAIR, [[2, 1, 0.5]], {"retrieved": np.array([[True, True, False]])}, True),
        ([[0.5, 3, 3]], [[2, 1, 1]], {"mask": np.array([[True, False, False]])}, True),
        (np.tile([0.5, 1.5], (1, 5000)), np.tile([1.0, 2.0], (1, 5000)), {}, True),
        (np.tile([0.5, 1.5], (1, 5000)), np.append(np.tile([1.0, 2.0], 4999), [0.5, 0.5])[None], {}, False),
    ],
)
def test_which_labels_and_scores_seem_to_be_swapped(labels, scores, given, warns):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ndcg_score(labels, scores, **given)
    assert ["as if the two were swapped" in str(each.message) for each in seen] == [True] * warns


@pytest.mark.parametrize("layout", [{"qid": np.arange(6)}, {"group": [1] * 6}, {"group": [1, 0, 1, 1, 1, 1, 1]}])
def test_row_numbers_as_ids_cause_a_warning(layout):
    n_queries = len(layout.get("group", Y))
    with pytest.warns(UserWarning, match=f"each of the {n_queries} queries has one document.*ids may number rows"):
        ndcg_score(Y, S, **layout)


def test_a_stream_is_checked_as_a_whole():
    """In one batch, each query may have one document without a warning."""
    one_each, pair = ([3.0, 0], [1.0, 2], ["a", "b"]), ([3.0, 0], [1.0, 2], ["c", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_batches([one_each, pair])
        evaluate_batches([pair, one_each])
        evaluate_batches([([3.0], [1.0], ["a"])])
    with pytest.warns(UserWarning, match="each of the 4 queries has one document"):
        evaluate_batches([one_each, (*one_each[:2], ["c", "d"])])
