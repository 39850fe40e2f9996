"""Sums over parts, their scales, and what counts as perfect or empty."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ndcg_ml import Flavor, ndcg_score, prepare
from ndcg_ml._kernel.totals import Sums, Totals


def as_lists(sums: Sums) -> tuple[list[float], list[float], int, int, list[int]]:
    return sums.numerator.tolist(), sums.denominator.tolist(), sums.exponent, sums.n_queries, sums.n_empty.tolist()


def one_query(dcg: float, ideal: float) -> Totals:
    return Totals((None,), np.array([0]), np.array([[dcg]]), np.array([[ideal]]), None, None)


def test_sums_add_up_on_the_larger_scale() -> None:
    one = Sums(np.array([1.0, 4.0]), np.array([2.0, 8.0]), 3, 2, np.array([1, 0]))
    other = Sums(np.array([16.0, 32.0]), np.array([64.0, 128.0]), 1, 5, np.array([0, 2]))
    both = ([5.0, 12.0], [18.0, 40.0], 3, 7, [1, 2])
    assert as_lists(one + other) == as_lists(other + one) == both
    assert as_lists(one.rescaled(5)) == ([0.25, 1.0], [0.5, 2.0], 5, 2, [1, 0])
    assert as_lists(one.rescaled(3)) == as_lists(one)


def test_a_perfect_ranking_is_one_whatever_its_rounding_errors() -> None:
    micro = Flavor(aggregate="micro")
    for ratio, value in ((1 + 1e-13, 1.0), (1 - 1e-13, 1 - 1e-13), (1 + 1e-12, 1 + 1e-12), (1.0, 1.0)):
        sums = Sums(np.array([ratio]), np.array([1.0]), 0, 1, np.array([0]))
        assert sums.values(micro) == [value]
        ndcg, _ = one_query(ratio, 1.0).ndcg(Flavor())
        assert ndcg.tolist() == [[value]]


def test_parts_of_ordinary_and_of_huge_gains_add_up() -> None:
    flavor = Flavor(aggregate="micro")
    labels, scores = [2.0**499, 0.0, 2.0**501, 2.0**500], [1, 2, 1, 2]
    parts = [
        prepare(labels[at : at + 2], group=[2], flavor=flavor).totals(scores[at : at + 2]).sums(flavor) for at in (0, 2)
    ]
    whole = ndcg_score(labels, scores, group=[2, 2], flavor=flavor)
    assert (parts[0] + parts[1]).values(flavor) == [pytest.approx(whole, rel=1e-14)]
    third = 1 / math.log2(3)
    assert whole == pytest.approx((third + 4 * third + 2) / (1 + 4 + 2 * third), rel=1e-14)


def test_an_ideal_may_be_as_small_as_it_likes() -> None:
    ndcg, empty = one_query(1e300, 1e-300).ndcg(Flavor())
    assert (ndcg.tolist(), empty.tolist()) == ([[math.inf]], [[False]])


@pytest.mark.parametrize("size", [1.0, 1e308])
def test_a_micro_mean_leaves_an_ideal_below_zero_out(size: float) -> None:
    """Nor does the size of such gains decide which others are too small to see."""
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
def test_many_columns_sum_as_each_by_itself_to_the_last_bit(empty: Any, aggregate: Any, weighted: bool) -> None:
    """Columns are summed together where the same queries count in them, which must not change a digit."""
    rng = np.random.default_rng(0)
    ideal = rng.random((301, 7)) + 0.1
    ideal[rng.random(301) < 0.2, :3] = 0.0
    ideal[:5, 3] = 0.0
    ideal[:, 6] = 0.0
    dcg, exponent = ideal * rng.random((301, 7)), rng.integers(-3, 4, 301)
    weight = rng.integers(0, 4, 301) / 3 if weighted else None
    flavor = Flavor(empty=empty, aggregate=aggregate)
    whole = Totals(tuple(range(1, 8)), np.arange(301), dcg, ideal, exponent, weight)
    sums, addends = whole.sums(flavor), whole.addends(flavor)
    for column in range(7):
        one = Totals((1,), whole.ids, dcg[:, column, None], ideal[:, column, None], exponent, weight)
        alone = one.addends(flavor)
        assert addends.numerator[column].tolist() == alone.numerator[0].tolist()
        assert addends.denominator[column].tolist() == alone.denominator[0].tolist()
        # Only queries that count in this column set the exponent of `alone`.
        scale = 2.0 ** (alone.exponent - addends.exponent)
        assert sums.numerator[column] == addends.numerator[column].sum() == alone.numerator[0].sum() * scale
        assert sums.denominator[column] == addends.denominator[column].sum()
        assert sums.n_empty[column] == alone.n_empty[0]
        nothing = empty == "skip" and alone.n_empty[0] == 301
        assert whole.ratios(flavor)[column] == pytest.approx(
            math.nan if nothing else one.values(flavor)[0], nan_ok=True
        )


def test_a_cutoff_does_not_set_the_scale_of_another() -> None:
    """One of two queries counts at the second cut-off alone, with gains beside which the other's vanish."""
    flavor, weight = Flavor(aggregate="micro"), None
    dcg, ideal = np.array([[1.0, 1.0], [0.0, 3.0]]), np.array([[2.0, 2.0], [0.0, 4.0]])
    totals = Totals((1, 2), np.arange(2), dcg, ideal, np.array([0, 5000]), weight)
    assert totals.ratios(flavor).tolist() == [0.5, 0.75]
