"""Intervals of the value of an evaluation, at each of its cut-offs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ndcg_ml._core.arrays import BoolArray, FloatArray, IntArray
from ndcg_ml._core.totals import Totals
from ndcg_ml._decide.bounded import bounded_limits, is_unsafe_to_resample
from ndcg_ml._decide.clusters import aggregate_clusters, effective_queries, robust_error
from ndcg_ml._decide.means import (
    Interval,
    Means,
    Method,
    Seed,
    as_confidence,
    generator,
    how_many,
    means_of,
    n_equal,
    skewness,
    spread_of,
)
from ndcg_ml._decide.quantiles import t_quantile

if TYPE_CHECKING:
    from ndcg_ml.flavor import Flavor

# With more queries, BCa and t limits differ by less than a hundredth of the width unless values are skewed.
_MANY = 1000


def intervals(
    totals: Totals,
    flavor: Flavor,
    values: Mapping[int | None, float],
    confidence: float,
    method: Method | None,
    n_resamples: int,
    seed: Seed,
    clusters: IntArray | None,
) -> dict[int | None, Interval]:
    """Return the interval at each cut-off; see ``Evaluation.interval``.

    Parameters
    ----------
    totals : Totals
    flavor : Flavor
    values : mapping of float by cut-off
        The reported values.
    confidence, method, n_resamples, seed
        As for ``Evaluation.interval``.
    clusters : ndarray of int, shape (n_queries,), or None
        The cluster of each query.
    """
    number, rng = as_confidence(confidence), generator(seed)
    found: dict[int | None, Interval] = {}
    for ks, queries in means_of(totals, flavor):
        means = queries if clusters is None else aggregate_clusters(queries, clusters[counted(totals, flavor, ks[0])])
        share = means.share()
        methods = [method or _method(means.values[:, at], share[:, at]) for at in range(len(ks))]
        # All cut-offs share the draws, also if only some of them need draws.
        resamples = max((how_many(of_k, n_resamples) or 0 for of_k in methods), default=0)
        spreads = spread_of(means, resamples or None, rng)
        for at, (k, spread, of_k) in enumerate(zip(ks, spreads, methods, strict=True)):
            if of_k == "bounded":
                low, high = bounded_limits(means.values[:, at], share[:, at], number)
                low, high = min(low, values[k]), max(high, values[k])
                interval = spread.interval(number, "t", value=values[k])
                interval = replace(interval, low=low, high=high, method="bounded", n_resamples=None)
            else:
                interval = spread.interval(number, of_k, value=values[k])
            if clusters is not None:
                interval = over_clusters(interval, queries, means, at, spread.value)
            found[k] = interval
    return found


def _method(values: FloatArray, share: FloatArray) -> Method:
    """Choose the default method: the bootstrap unless it is unsafe or the t interval agrees with it."""
    if is_unsafe_to_resample(values, share):
        return "bounded"
    # BCa and t limits differ by .37 skewness / sqrt(n) of the width.
    n = n_equal(share)
    return "t" if n >= _MANY and 37 * abs(skewness(share * (values - share @ values))) < math.sqrt(n) else "bca"


def standard_errors(totals: Totals, flavor: Flavor, clusters: IntArray | None) -> dict[int | None, float]:
    """Return the standard error at each cut-off, over queries or over clusters."""
    found: dict[int | None, float] = {}
    for ks, means in means_of(totals, flavor):
        if clusters is None:
            errors = [spread.standard_error for spread in spread_of(means)]
        else:
            errors = robust_error(aggregate_clusters(means, clusters[counted(totals, flavor, ks[0])]))[0].tolist()
        found |= dict(zip(ks, errors, strict=True))
    return found


def counted(totals: Totals, flavor: Flavor, k: int | None) -> BoolArray:
    """Return which queries count in the mean at a cut-off."""
    counts: BoolArray = totals.shares(flavor, k)[1] > 0
    return counts


def over_clusters(interval: Interval, queries: Means, clusters: Means, at: int, value: float) -> Interval:
    """Return the interval over clusters, with the number of queries and the effective sample size."""
    if interval.method == "t":
        error, dof = robust_error(clusters)
        reach = t_quantile(interval.confidence, float(dof[at])) * float(error[at])
        interval = replace(interval, low=value - reach, high=value + reach)
    effective = float(effective_queries(queries, clusters)[at])
    return replace(interval, n_queries=queries.n_queries, effective_queries=effective)
