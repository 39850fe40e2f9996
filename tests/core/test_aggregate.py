"""Sums over parts of the data, gains of very different sizes, and perfect and empty queries."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ndcg_ml import Flavor, ndcg_score, prepare


def one_query(dcg: float, ideal: float) -> Any:
    """The totals of one query with this DCG and ideal DCG."""
    totals = prepare([[1]]).totals([[1]])
    return replace(totals, dcg=np.array([[dcg]]), ideal=np.array([[ideal]]))


def test_a_perfect_ranking_is_one_whatever_its_rounding_errors() -> None:
    for ratio, value in ((1 + 1e-13, 1.0), (1 - 1e-13, 1 - 1e-13), (1 + 1e-12, 1 + 1e-12), (1.0, 1.0)):
        for aggregate in ("macro", "micro"):
            assert one_query(ratio, 1.0).values(Flavor(aggregate=aggregate)) == [value]


def test_an_ideal_may_be_arbitrarily_small() -> None:
    ndcg, empty = one_query(1e300, 1e-300).ndcg(Flavor())
    assert (ndcg.tolist(), empty.tolist()) == ([[math.inf]], [[False]])


@pytest.mark.parametrize("size", [1.0, 1e150])
def test_a_micro_mean_skips_a_negative_ideal(size: float) -> None:
    """Large negative gains do not make small gains of other queries vanish."""
    flavor = Flavor(aggregate="micro", negative="allow")
    labels = [1e-20, 0.0, -size, -size]
    value = ndcg_score(labels, [1, 2, 1, 2], group=[2, 2], flavor=flavor)
    assert value == pytest.approx(1 / math.log2(3), rel=1e-14)


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
def test_sums_count_the_empty_queries_at_each_cut_off(aggregate: str) -> None:
    flavor = Flavor(ideal="local", aggregate=aggregate)
    prepared = prepare([0, 1, 0, 0, 1, 0], group=[2, 2, 2], k=(1, 2), flavor=flavor)
    sums = prepared.totals([2.0, 1, 2, 1, 2, 1]).sums(prepared.flavor)
    assert (sums.n_queries, sums.n_empty.tolist()) == (3, [2, 1])


@pytest.mark.parametrize("empty", [0.0, 1.0, "skip"])
@pytest.mark.parametrize("aggregate", ["macro", "micro"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_several_cut_offs_are_bitwise_those_of_each(empty: Any, aggregate: Any, weighted: bool) -> None:
    """Cut-offs at which the same queries count are summed together, which must not change a bit."""
    rng = np.random.default_rng(0)
    ideal = rng.random((301, 7)) + 0.1
    ideal[rng.random(301) < 0.2, :3] = 0.0
    ideal[:5, 3] = 0.0
    ideal[:, 6] = 0.0
    dcg = ideal * rng.random((301, 7))
    weight = rng.integers(0, 4, 301) / 3 if weighted else None
    flavor = Flavor(empty=empty, aggregate=aggregate)
    whole = replace(prepare(np.ones((301, 2)), k=range(1, 8)).totals(np.ones((301, 2))), dcg=dcg, ideal=ideal)
    whole = replace(whole, weight=weight)
    sums, terms = whole.sums(flavor), whole.terms(flavor)
    for column in range(7):
        one = whole.at_cutoff(column + 1)
        alone = one.terms(flavor)
        assert terms.numerator[column].tolist() == alone.numerator[0].tolist()
        assert terms.denominator[column].tolist() == alone.denominator[0].tolist()
        assert sums.numerator[column] == terms.numerator[column].sum() == alone.numerator[0].sum()
        assert sums.denominator[column] == terms.denominator[column].sum()
        assert sums.n_empty[column] == alone.n_empty[0]
        nothing = empty == "skip" and alone.n_empty[0] == 301
        assert whole.mean(flavor)[column] == pytest.approx(math.nan if nothing else one.values(flavor)[0], nan_ok=True)
