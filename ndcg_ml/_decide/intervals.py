"""Intervals of the value of an evaluation, at each of its cut-offs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from ndcg_ml._core.checks import as_confidence, one_of, whole_number
from ndcg_ml._core.layout import FloatArray, IntArray
from ndcg_ml._core.mean import Totals
from ndcg_ml._core.one_line import brief
from ndcg_ml._decide.distributions import t_quantile
from ndcg_ml._decide.means import SAME, Interval, Means, Method, Seed, generator, n_equal, skewness, spread_of
from ndcg_ml.flavor import Flavor

# -- how few queries are too few --------------------------------------------------------------------------------------

FEWEST_FOR_INTERVAL = 2
"""One query has no standard error."""
FEWEST_FOR_TEST = 6
"""With fewer queries or clusters, the exact test cannot reject at 5 %: its smallest p-value is 2^(1-n)."""
FEWEST_TO_SPLIT = 20
"""Halves of fewer queries, or the third that a resample leaves out, are too few for an estimate."""
FEWEST_OFF_BOUND = 20
"""If fewer values are away from a bound and most are near it, a bootstrap interval is too narrow."""
FEWEST_FOR_BOOTSTRAP = 30
"""With fewer queries, a bootstrap interval is too narrow; benchmarks/results/decisions.md has the coverage."""

# -- clusters of related queries (of one user, topic or session), which are then the sampling units -------------------


def numbered(names: Sequence[Any]) -> IntArray:
    """Return the names of clusters or slices as numbers 0, 1, ... in order of first appearance."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def aggregate_clusters(means: Means, codes: IntArray) -> Means:
    """Return one row per cluster: the mean of its queries, with the sum of their weights.

    Raises
    ------
    ValueError
        Fewer than six clusters, or one with more than half of the weight.
    """
    present, codes = np.unique(codes, return_inverse=True)
    if present.size < FEWEST_FOR_TEST:
        raise ValueError(
            f"cluster must form at least {FEWEST_FOR_TEST} clusters, because with fewer no test can reject at 5 %; got "
            f"{present.size} for {codes.size} queries. Evaluate more of them, or leave cluster out if queries are "
            "independent."
        )
    weight = np.zeros((present.size, means.values.shape[1]))
    total = np.zeros_like(weight)
    np.add.at(weight, codes, means.weight)
    np.add.at(total, codes, means.weight * means.values)
    share = weight / weight.sum(axis=0)
    if share.max() > 0.5 + SAME:
        largest = int(np.argmax(share.max(axis=1)))
        raise ValueError(
            f"no cluster may have most of the weight, because the others do not show how it varies; cluster number "
            f"{brief(int(present[largest]))} has {100 * share.max():.0f} % of it. Compare it separately, or pass "
            "other weights as query_weight."
        )
    return Means.from_weights(total / weight, weight)


def robust_error(means: Means) -> tuple[FloatArray, FloatArray]:
    """Return the standard error of each mean over clusters, and the degrees of freedom of its t interval.

    Parameters
    ----------
    means : Means
        One row per cluster, from ``aggregate_clusters``.

    Notes
    -----
    With h the share of a cluster in the mean, the variance is the sum of h^2 (value - mean)^2 / (1 - h), which is
    unbiased if the variances of clusters are as their weights imply (CR2). The degrees of freedom are Satterthwaite's
    for that sum: G - 1 for G equal clusters, fewer for unequal ones. R. Bell and D. McCaffrey, Bias reduction in
    standard errors for linear regression with multi-stage samples, Survey Methodology 28(2), 2002.
    """
    h = means.share()
    error = np.sqrt((h**2 * (means.values - means.mean()) ** 2 / (1 - h)).sum(axis=0))
    ratio = h**2 / (1 - h)
    off_diagonal = ratio.sum(axis=0) ** 2 - (ratio**2).sum(axis=0)
    return error, 1 / ((h**2).sum(axis=0) + off_diagonal)


def effective_queries(means: Means, clusters: Means) -> FloatArray:
    """Return the effective sample size: independent queries with the same standard errors, at most their number."""
    # The quotient of two rounding errors is any number.
    alone, together = (
        np.array([s.standard_error * (not s.is_constant) for s in spread_of(m)]) for m in (means, clusters)
    )
    ratio = np.divide(alone, together, out=np.ones_like(alone), where=together > 0)
    return means.n_queries * np.minimum(ratio * ratio, 1.0)


# -- an interval for values between 0 and 1 of which most are near a bound. Its width is never 0 ----------------------

# Weights of the pseudo-queries at the further and the nearer bound. benchmarks/results/decisions.md has the coverage.
_FAR, _NEAR = 0.75, 0.5
# Values this close to a bound count as being at the bound.
_CLOSE = 0.05


def is_unsafe_to_resample(values: FloatArray, share: FloatArray) -> bool:
    """Whether the values are between 0 and 1, and a bootstrap interval of them would be too narrow.

    It would if the effective sample size is below 30 or below half of the number of queries; if all values are equal;
    or if more than half of them are within 0.05 of the same bound and fewer than 20 are elsewhere.
    """
    n = n_equal(share)
    return is_bounded(values, few=n < FEWEST_FOR_BOOTSTRAP - SAME or 2 * n < values.size)


def is_bounded(values: FloatArray, *, few: bool = False) -> bool:
    """Whether all values are between 0 and 1, and are few or equal, or pile up at 0 or 1."""
    if values.min() < -SAME or values.max() > 1 + SAME:
        return False
    return few or bool(np.ptp(values) <= SAME) or piles_up(values, 0.0) or piles_up(values, 1.0)


def piles_up(values: FloatArray, point: float) -> bool:
    """Whether more than half of the values are within 0.05 of the point and fewer than 20 are elsewhere."""
    near = int((np.abs(values - point) <= _CLOSE).sum())
    return 2 * near > values.size and values.size - near < FEWEST_OFF_BOUND


def bounded_limits(
    values: FloatArray,
    share: FloatArray,
    confidence: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    variance: float = 0.0,
) -> tuple[float, float]:
    """Return the limits of the mean of values between bounds.

    Parameters
    ----------
    values, share : ndarray of float64, shape (n_queries,)
        Shares sum to 1.
    confidence : float
    bounds : tuple of float
    variance : float
        Variance of a term that was added to the mean.

    Raises
    ------
    ValueError
        A value is outside the bounds.

    Notes
    -----
    Student's t interval of the queries and two pseudo-queries: one at the bound that is further from the mean, with
    weight 3/4, and one at the nearer bound, with weight 1/2. Even if all queries score 1, the next one may score 0. A.
    Agresti and B. Coull, Approximate is better than exact for interval estimation of binomial proportions, The American
    Statistician 52(2), 1998, add two successes and two failures to proportions.
    """
    least, most = bounds
    if values.min() < least - SAME or values.max() > most + SAME:
        outside = float(values.min() if values.min() < least - SAME else values.max())
        raise ValueError(
            f"method='bounded' needs values between 0 and 1; a query has {outside:g}. Choose method='bca' or 't'."
        )
    n = n_equal(share)
    mean = float(share @ values)
    near, far = (most, least) if mean >= (least + most) / 2 else (least, most)
    total = n + _FAR + _NEAR
    centre = (n * mean + _FAR * far + _NEAR * near) / total
    square = (n * float(share @ values**2) + _FAR * far**2 + _NEAR * near**2) / total
    square = max(0.0, square - centre * centre) / (total - 1) + variance
    reach = t_quantile(confidence, total - 1) * math.sqrt(square)
    return max(least, min(centre - reach, mean)), min(most, max(centre + reach, mean))


# -- intervals of the value of an evaluation, at each of its cut-offs -------------------------------------------------

# With more queries, BCa and t limits differ by less than a hundredth of the width unless values are skewed.
_MANY = 1000
# The square of a larger NDCG exceeds float64. Only an ideal that leaves out relevant documents allows such values.
_LARGEST = 1e150


def means_of(
    totals: Totals, flavor: Flavor, clusters: IntArray | None
) -> list[tuple[tuple[int | None, ...], Means, Means]]:
    """Return the means over queries at the cut-offs, and those over sampling units: queries or clusters.

    Cut-offs at which the same queries count are grouped.

    Raises
    ------
    ValueError
        Fewer than two queries count, the value is nan, or the square of an NDCG exceeds float64; or from
        ``aggregate_clusters``.
    """
    groups: dict[bytes, list[tuple[int | None, FloatArray, FloatArray]]] = {}
    for k, value in zip(totals.ks, totals.mean(flavor).tolist(), strict=True):
        ndcg, share, empty = totals.shares(flavor, k)
        counts = share > 0
        if counts.any() and math.isnan(value) and empty.any():
            raise ValueError(
                f"the value is nan, because {int(empty.sum())} of {ndcg.size} queries are empty under empty=nan, so it "
                "has no interval and no standard error. Choose a flavor that says what they score: "
                "flavor.replace(empty='skip')."
            )
        if counts.sum() < FEWEST_FOR_INTERVAL:
            raise ValueError(
                "at least two queries must count in the mean, because one has no standard error; got "
                f"{int(counts.sum())} of {ndcg.size}. Evaluate more queries."
            )
        largest = float(np.abs(ndcg[counts]).max())
        if not largest < _LARGEST:
            raise ValueError(
                f"the NDCG of a query is {largest:.4g}, whose square is too large for float64, so the value has no "
                "interval and no standard error. Choose an ideal that leaves no relevant document out: "
                "flavor.replace(ideal='global')."
            )
        groups.setdefault(counts.tobytes(), []).append((k, ndcg[counts], share[counts]))
    found = []
    for counted, group in groups.items():
        ks, values, weights = zip(*group, strict=True)
        means = units = Means.from_weights(np.stack(values, axis=1), np.stack(weights, axis=1))
        if clusters is not None:
            units = aggregate_clusters(means, clusters[np.frombuffer(counted, dtype=bool)])
        found.append((ks, means, units))
    return found


def standard_errors(totals: Totals, flavor: Flavor, clusters: IntArray | None) -> dict[int | None, float]:
    """Return the standard error at each cut-off, over queries or over clusters."""
    found: dict[int | None, float] = {}
    for ks, _, units in means_of(totals, flavor, clusters):
        errors = [spread.standard_error for spread in spread_of(units)]
        if clusters is not None:
            errors = robust_error(units)[0].tolist()
        found |= dict(zip(ks, errors, strict=True))
    return found


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
    if method is not None:
        one_of(method, "method", get_args(Method))
    number, most, rng = as_confidence(confidence), whole_number(n_resamples, "n_resamples"), generator(seed)
    found: dict[int | None, Interval] = {}
    for ks, queries, units in means_of(totals, flavor, clusters):
        share = units.share()
        methods = [method or _method(units.values[:, at], share[:, at]) for at in range(len(ks))]
        # All cut-offs share the draws, also if only some of them need draws.
        spreads = spread_of(units, None if {"t", "bounded"}.issuperset(methods) else most, rng)
        for at, (k, spread, of_k) in enumerate(zip(ks, spreads, methods, strict=True)):
            interval = spread.interval(number, "t" if of_k == "bounded" else of_k, value=values[k])
            if of_k == "bounded":
                low, high = bounded_limits(units.values[:, at], share[:, at], number)
                interval = replace(interval, low=min(low, values[k]), high=max(high, values[k]), method="bounded")
            if clusters is not None:
                interval = over_clusters(interval, queries, units, at, spread.value)
            found[k] = interval
    return found


def _method(values: FloatArray, share: FloatArray) -> Method:
    """Choose the default method: the bootstrap unless it is unsafe or the t interval agrees with it."""
    if is_unsafe_to_resample(values, share):
        return "bounded"
    # BCa and t limits differ by .37 skewness / sqrt(n) of the width. Processors round n differently.
    n = n_equal(share) * (1 + SAME)
    return "t" if n >= _MANY and 37 * abs(skewness(share * (values - share @ values))) < math.sqrt(n) else "bca"


def over_clusters(interval: Interval, queries: Means, clusters: Means, at: int, value: float) -> Interval:
    """Return the interval over clusters, with the number of queries and the effective sample size."""
    if interval.method == "t":
        error, dof = robust_error(clusters)
        reach = t_quantile(interval.confidence, float(dof[at])) * float(error[at])
        interval = replace(interval, low=value - reach, high=value + reach)
    effective = float(effective_queries(queries, clusters)[at])
    return replace(interval, n_queries=queries.n_queries, effective_queries=effective)
