"""``Evaluation.interval``, ``.std``, ``.standard_error``: what counts, several cut-offs, ratios, and refusals."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from ndcg_ml import Flavor, evaluate

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
