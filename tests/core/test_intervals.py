"""``Evaluation.interval``, ``.std``, ``.standard_error``: what counts, several cut-offs, ratios, and refusals."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from paired import Paired

from ndcg_ml import Flavor, evaluate
from ndcg_ml._decide.means import Means, spread_of
from ndcg_ml._decide.randomisation import exchange_tests, queries_needed

RNG = np.random.default_rng(8)
Y = RNG.integers(0, 4, (40, 12)) * (RNG.random((40, 1)) > 0.15)  # some queries have no relevant document
SCORES = Y + RNG.normal(0, 3, Y.shape)
N_EMPTY = int((Y.max(axis=1) == 0).sum())
METHODS = ("bca", "percentile", "t")


def limits(interval) -> tuple[float, float, int]:
    return interval.low, interval.high, interval.n_queries


def test_a_plain_mean_is_the_textbook_s():
    result = evaluate(Y, SCORES, k=5)
    values = result.per_query.ndcg.tolist()
    assert result.std == pytest.approx(statistics.stdev(values), rel=1e-12)
    assert result.standard_error == pytest.approx(statistics.stdev(values) / math.sqrt(40), rel=1e-12)
    interval = result.interval(method="t")
    assert (interval.value, interval.confidence, interval.method) == (result.value, 0.95, "t")
    assert (interval.n_queries, interval.n_resamples) == (40, None)
    assert interval.high - interval.value == pytest.approx(2.022690920 * result.standard_error, rel=1e-9)
    assert interval.value - interval.low == pytest.approx(interval.high - interval.value, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_more_confidence_is_wider(method):
    result = evaluate(Y, SCORES, k=5)
    narrow, wide = (result.interval(confidence, method, seed=0) for confidence in (0.8, 0.99))
    assert wide.low < narrow.low < result.value < narrow.high < wide.high


def test_skipped_queries_count_neither_in_the_value_nor_in_its_interval():
    flavor = Flavor(empty="skip", k=5)
    result, without = evaluate(Y, SCORES, flavor=flavor), evaluate(Y[Y.any(1)], SCORES[Y.any(1)], flavor=flavor)
    assert result.standard_error == pytest.approx(without.standard_error, rel=1e-12)
    for method in METHODS:
        expected = limits(without.interval(method=method, seed=1))
        assert limits(result.interval(method=method, seed=1)) == pytest.approx(expected, abs=1e-12)
    assert result.interval().n_queries == 40 - N_EMPTY
    scored = evaluate(Y, SCORES, flavor=flavor.replace(empty=1.0))
    assert scored.interval().n_queries == 40
    assert scored.standard_error != result.standard_error


def test_weights_count_as_in_the_value():
    weight = RNG.random(40) + 0.5
    result = evaluate(Y, SCORES, k=5, query_weight=weight)
    share = weight / weight.sum()
    apart = result.per_query.ndcg - result.value
    assert result.std == pytest.approx(math.sqrt((share * apart**2).sum() * 40 / 39), rel=1e-12)
    assert result.standard_error == pytest.approx(math.sqrt((share**2 * apart**2).sum() * 40 / 39), rel=1e-12)
    for method in METHODS:
        interval = result.interval(method=method, seed=0)
        assert interval.low < result.value < interval.high
        assert interval != evaluate(Y, SCORES, k=5).interval(method=method, seed=0)
    scaled = evaluate(Y, SCORES, k=5, query_weight=weight * 1e140).interval(seed=0)
    assert (scaled.low, scaled.high) == pytest.approx(
        tuple(getattr(result.interval(seed=0), end) for end in ("low", "high")), rel=1e-12
    )


def test_a_micro_average_is_a_ratio():
    result = evaluate(Y, SCORES, flavor=Flavor(aggregate="micro", k=5))
    counted = ~result.per_query.empty
    dcg, ideal = result.per_query.dcg[counted], result.per_query.idcg[counted]
    n = dcg.size
    # The delta method, term by term.
    residual = (dcg - result.value * ideal) / ideal.mean()
    assert result.standard_error == pytest.approx(residual.std(ddof=1) / math.sqrt(n), rel=1e-9)
    # The bootstrap, drawn again.
    rng = np.random.default_rng(5)
    drawn = rng.integers(0, n, (499, n))
    ratios = dcg[drawn].sum(axis=1) / ideal[drawn].sum(axis=1)
    interval = result.interval(method="percentile", n_resamples=499, seed=5)
    assert (interval.low, interval.high) == pytest.approx(tuple(np.quantile(ratios, (0.025, 0.975))), abs=1e-12)
    assert interval.n_queries == n == 40 - N_EMPTY


def test_several_cutoffs_share_the_resamples():
    result = evaluate(Y, SCORES, k=(1, 5, None))
    intervals = result.interval(seed=3)
    assert list(intervals) == [1, 5, None]
    for k, interval in intervals.items():
        alone = evaluate(Y, SCORES, k=k)
        assert (interval.low, interval.high) == pytest.approx(
            (alone.interval(seed=3).low, alone.interval(seed=3).high), abs=1e-12
        )
        assert (result.std[k], result.standard_error[k]) == pytest.approx((alone.std, alone.standard_error), rel=1e-12)


def test_cutoffs_at_which_other_queries_count():
    # The ideal of what is retrieved at rank 1 is 0 where the first document is irrelevant.
    flavor = Flavor(ideal="local", empty="skip")
    result = evaluate(Y, SCORES, flavor=flavor, k=(1, 5))
    assert result.n_empty[1] > result.n_empty[5]
    intervals = result.interval(seed=0)
    for k in (1, 5):
        assert intervals[k].n_queries == 40 - result.n_empty[k]
        assert intervals[k].low <= result.value[k] <= intervals[k].high


def test_a_confidence_just_below_one_is_not_a_hundred_per_cent():
    rng = np.random.default_rng(0)
    found = evaluate(rng.integers(0, 3, (20, 5)), rng.normal(size=(20, 5)))
    for confidence, text in ((0.9999999, "99.99999 %"), (0.95, "95 %"), (0.999, "99.9 %")):
        assert text in str(found.interval(confidence, method="t"))


def from_zero(*differences: float):
    """Systems a, all 0, and b."""
    b = np.array(differences, dtype=np.float64)
    return Paired(np.zeros(b.size), b)


@pytest.mark.parametrize(
    ("differences", "p_value"),
    [
        ((1, 2, 3), 2 / 8),
        ((1, -2, 3), 6 / 8),  # |sum| >= 2: all but +1 +2 -3 and its mirror
        ((0, 1, 0, -2, 3, 0), 6 / 8),
        ((0.1, 0.2, 0.3), 2 / 8),
        ((1, -1), 1.0),
        ((0.5, 0), 1.0),
        ((0.0, 0.0), 1.0),
        ((1e-15, 0.0, 1e-15, 1e-15), 1.0),  # rounding
    ],
)
def test_exact_randomisation_by_hand(differences, p_value):
    result = from_zero(*differences).test()
    assert result.exact
    assert result.p_value == pytest.approx(p_value, abs=1e-12)


def test_queries_that_are_equal_need_no_exchange():
    result = from_zero(*[0.0, 1e-15] * 20, 0.1, 0.2, 0.3, 0.4, 0.5).test(n_resamples=32)
    assert (result.exact, result.p_value) == (True, 2 / 32)


def test_an_exchange_weighs_what_its_query_weighs():
    heavy = Paired(np.zeros(3), np.array([0.1, 0.1, -0.1]), np.array([1.0, 5.0, 1.0]))
    assert heavy.difference == pytest.approx(0.5 / 7)
    assert heavy.test().p_value == pytest.approx(6 / 8)  # 0.7, 0.5, 0.5, 0.3 and their mirrors


def test_an_exchange_of_ratios_exchanges_both_parts():
    # A micro average: the ideals of the two systems differ, so that the denominators change places too.
    values, ideals = np.array([[0.2, 0.9], [0.4, 0.5], [1.0, 0.7]]), np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])
    means = Means.from_weights(values, ideals)
    observed = abs(np.subtract(*np.average(values, axis=0, weights=ideals)))
    hits = 0
    scaled = ideals / ideals.sum(axis=0)
    for flips in itertools.product((False, True), repeat=3):
        v, w = values.copy(), scaled.copy()
        v[list(flips)], w[list(flips)] = v[list(flips), ::-1], w[list(flips), ::-1]
        hits += abs(np.subtract(*np.average(v, axis=0, weights=w))) >= observed - 1e-12
    [found] = exchange_tests(means.linear(), [(0, 1)], 100, np.random.default_rng(0))
    assert found.exact
    assert found.p_value == pytest.approx(hits / 8)


def test_weights_are_repeated_queries_to_the_mean_and_the_jackknife():
    a, b = np.random.default_rng(3).random((2, 4))
    weight = np.array([1.0, 2.0, 5.0, 0.5])
    both = Paired(a, b, weight)
    assert both.difference == pytest.approx(np.average(b - a, weights=weight), abs=1e-15)
    rest = [np.average(np.delete(a, i), weights=np.delete(weight, i)) for i in range(4)]
    assert spread_of(both.means)[0].without_each == pytest.approx(np.array(rest), abs=1e-15)
    scaled = Paired(a, b, weight * 1e100)
    assert scaled.standard_error == pytest.approx(both.standard_error, rel=1e-12)


def test_bootstrap_by_hand():
    # Two differences a and b have the resampled means a, (a + b) / 2 and b, with chances 1/4, 1/2 and 1/4.
    interval = from_zero(0.2, 0.6).interval(method="percentile", seed=0)
    assert (interval.low, interval.high) == pytest.approx((0.2, 0.6), abs=1e-12)
    for method in ("bca", "percentile", "t"):
        constant = from_zero(0.25, 0.25, 0.25).interval(method=method)
        assert (constant.low, constant.value, constant.high) == (0.25, 0.25, 0.25)
        # The mean of 400 coin tosses is normal with standard deviation 1/20.
        interval = from_zero(*[1.0, -1.0] * 200).interval(method=method, seed=0)
        assert (interval.low, interval.high) == pytest.approx((-1.96 / 20, 1.96 / 20), abs=0.006)


def test_bca_of_one_query_among_equal_ones_ends_with_the_draws():
    b = np.zeros(1000)
    b[7] = 1.0
    both = Paired(np.zeros(1000), b)
    interval = both.interval(method="bca", seed=0)
    assert 0 <= interval.low < 0.001 < interval.high < 0.02
    draws = both.spread(9999, 0).draws
    assert both.interval(1 - 1e-12, "bca", seed=0).high == draws.max()
    mirrored = Paired(b, np.zeros(1000)).interval(1 - 1e-12, "bca", seed=0)
    assert mirrored.low == -draws.max()


def test_the_seed_decides_what_is_drawn():
    both = from_zero(*np.random.default_rng(1).normal(0.05, 0.2, 40))
    first = both.interval(method="bca", seed=3)
    assert both.interval(method="bca", seed=3) == first
    assert both.interval(method="bca", seed=np.random.default_rng(3)) == first
    assert both.interval(method="bca", seed=4) != first
    assert both.interval(method="bca") != both.interval(method="bca")
    # A result without an interval holds NaN, and Python 3.13 counts two such results as different.
    assert both.test(seed=3).p_value == both.test(seed=3).p_value != both.test(seed=4).p_value


def test_a_p_value_is_never_zero():
    result = from_zero(*[0.5] * 60).test(n_resamples=999, seed=0)
    assert (result.exact, result.p_value) == (False, 1 / 1000)


def test_queries_needed_by_hand():
    # (1.959964 + 0.841621)^2 (0.2/0.1)^2 + 1.959964^2 / 2
    assert queries_needed(0.2, 0.1, 0.8, 0.95) == math.ceil(31.395539 + 1.920729)
    assert queries_needed(0.2, -0.1, 0.8, 0.95) == queries_needed(0.2, 0.1, 0.8, 0.95)
    assert queries_needed(0.0, 0.1, 0.8, 0.95) == 6  # the exact test of five has no p-value below 1/16
    assert queries_needed(0.0, 0.1, 0.8, 0.99) == 8
