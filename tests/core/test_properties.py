"""Properties of every problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, flavors, problems

from ndcg_ml import Evaluation, evaluate

pytestmark = pytest.mark.usefixtures("kernel")

COLUMNS = ("ndcg", "dcg", "idcg", "empty", "n_docs", "n_judged", "n_relevant", "tied", "weight")


def table(result: Evaluation, order: Any = slice(None), columns: tuple[str, ...] = COLUMNS) -> dict[str, Any]:
    return {name: result.per_query[name][order] for name in columns}


def assert_same(got: dict[str, Any], expected: dict[str, Any], rtol: float = 0.0) -> None:
    for name, column in expected.items():
        np.testing.assert_allclose(got[name], column, rtol=rtol, atol=rtol, err_msg=name)


@examples(150)
@given(st.data())
def test_a_perfect_ranking_is_exactly_1(data: st.DataObject) -> None:
    flavor = data.draw(
        flavors(
            empty=1.0,
            negative="zero",
            unjudged="zero",
            gains=("linear", "exponential", "binary", "callable"),
            ideals=("global", "recall", "local"),
            ideal_depth="k",
            recall_depth=None,
            max_grade=None,
            short_lists="score",
        )
    )
    problem = data.draw(problems(flavor, retrieved=False))
    arguments = problem.flat(flavor)
    grades = np.nan_to_num(arguments["y_true"], nan=-1.0)
    arguments["y_score"] = np.unique(grades, return_inverse=True)[1]  # 0, 1, 2, ... are not tied in float32 either
    result = evaluate(flavor=flavor, **arguments)
    assert result.per_query.ndcg.tolist() == [1.0] * len(problem.queries)
    assert result.value == 1.0


@examples(100)
@given(st.data())
def test_several_cut_offs_equal_each_alone(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0))
    problem = data.draw(problems(flavor))
    ks = data.draw(st.lists(st.none() | st.integers(1, 12), min_size=1, max_size=5, unique=True))
    arguments = problem.flat(flavor)
    together = evaluate(flavor=flavor, k=ks, **arguments)
    assert together.k == tuple(ks)
    assert isinstance(together.value, dict)
    assert isinstance(together.n_empty, dict)
    assert list(together.value) == ks
    for column, k in enumerate(ks):
        alone = evaluate(flavor=flavor, k=k, **arguments)
        assert together.value[k] == pytest.approx(alone.value, rel=1e-13, abs=1e-15)
        assert together.n_empty[k] == alone.n_empty
        assert alone.flavor == flavor.replace(k=k)
        for name in ("ndcg", "dcg", "idcg", "empty"):
            np.testing.assert_allclose(
                together.per_query[name][:, column], alone.per_query[name], rtol=1e-12, atol=1e-300
            )


@examples(80)
@given(st.data())
def test_padding_may_hold_anything(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0))
    problem = data.draw(problems(flavor))
    plain = evaluate(flavor=flavor, **problem.flat(flavor))
    for garbage, extra in [(math.nan, 1), (math.inf, 3), (-math.inf, 2), (1e308, 0), (-7.5, 4)]:
        padded = evaluate(flavor=flavor, **problem.padded(flavor, garbage, extra))
        assert_same(table(padded), table(plain))
        assert padded.value == plain.value
