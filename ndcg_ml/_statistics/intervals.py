"""Intervals of values, also of the best of several candidates; clusters; how few queries are too few."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ndcg_ml._core.layout import FloatArray, IntArray
from ndcg_ml._core.mean_and_empty_queries import Totals
from ndcg_ml._plain.checks import as_confidence
from ndcg_ml._plain.messages import brief
from ndcg_ml._statistics.distributions import t_quantile
from ndcg_ml._statistics.means import SAME, Interval, Means, skewness
from ndcg_ml.flavor import Flavor

# -- how few queries are too few --------------------------------------------------------------------------------------

FEWEST_FOR_INTERVAL = 2
"""One query has no standard error."""
FEWEST_FOR_TEST = 6
"""With fewer queries or clusters, the exact test cannot reject at 5 %: its smallest p-value is 2^(1-n)."""
FEWEST_TO_SPLIT = 20
"""Halves of fewer queries, or the third that a resample leaves out, are too few for an estimate."""

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
    """Return the standard error of each mean over queries or clusters, and the degrees of freedom of its t interval.

    Parameters
    ----------
    means : Means
        One row per query, or per cluster from ``aggregate_clusters``.

    Notes
    -----
    With h the share of a row in the mean, the variance is the sum of h^2 (value - mean)^2 / (1 - h), which is unbiased
    if the variances of rows are as their weights imply (CR2). The degrees of freedom are Satterthwaite's for that sum:
    n - 1 for n equal rows, fewer for unequal ones. R. Bell and D. McCaffrey, Bias reduction in standard errors for
    linear regression with multi-stage samples, Survey Methodology 28(2), 2002.
    """
    h = means.share()
    ratio = h**2 / np.maximum(1 - h, SAME)
    error = np.sqrt((ratio * (means.values - means.mean()) ** 2).sum(axis=0))
    # Rounding matters only if one row has nearly all of the weight, and the degrees of freedom are then 1.
    off_diagonal = np.maximum(ratio.sum(axis=0) ** 2 - (ratio**2).sum(axis=0), 0)
    return error, np.maximum(1 / ((h**2).sum(axis=0) + off_diagonal), 1.0)


def effective_queries(means: Means, clusters: Means) -> float:
    """Return the effective sample size: independent queries with the same standard error, at most their number."""
    [alone], [together] = (each.standard_error().tolist() for each in (means, clusters))
    ratio = alone / together if together > 0 else 1.0
    return means.n_queries * min(ratio * ratio, 1.0)


# -- the interval of a mean of bounded values -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of values between bounds, with what its interval depends on.

    Attributes
    ----------
    value : float
    error : float
        Standard error.
    dof : float
        Degrees of freedom, 1 or more; n - 1 for n equal queries.
    skewness : float
        Skewness of the values.
    bounds : tuple of float
        The smallest and the largest value that a query may have.
    changed_labels : float
        Share of corrected labels that differ from the others. If few do, the sample may lack an error of the model.
    """

    value: float
    error: float
    dof: float
    skewness: float
    bounds: tuple[float, float] = (0.0, 1.0)
    changed_labels: float = 1.0

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return the limits of the confidence interval of the mean, which are within the bounds.

        Notes
        -----
        Let m be the mean, and the bounds 0 and 1. Two pseudo-queries, one at each bound and each with the weight

            w = 1 / (1 + 2 n min(m (1 - m), changed_labels))

        stand for values that the sample may lack. The variance and the third moment of the n queries and of these two
        about m give the standard error s of a mean of n + 2 w queries and its skewness g, so that the width is never 0.
        With t the quantile for n + 2 w - 1 degrees of freedom, the limits are

            m + s f(g / 6 - t)  and  m + s f(g / 6 + t),    f(x) = x (1 + g x / 3), or x / (1 - g x / 3) if g x < 0

        To the order of g, these are the limits of N. Johnson, Modified t tests and confidence intervals for
        asymmetrical populations, JASA 73, 1978, and f increases everywhere. If all values are at a bound, the interval
        is nearly that of C. Clopper and E. Pearson, Biometrika 26, 1934. benchmarks/results/decisions.md has the
        coverage.
        """
        least, most = self.bounds
        span, n = most - least, self.dof + 1
        m = min(1.0, max(0.0, (self.value - least) / span))
        product = m * (1 - m)
        pseudo = 1 / (1 + 2 * n * min(product, self.changed_labels))
        total = n + 2 * pseudo
        deviation = self.error / span * math.sqrt(self.dof)
        variance = (n * deviation**2 + pseudo * (1 - 2 * product)) / total
        third = (n * self.skewness * deviation**3 + pseudo * (1 - 2 * m) * (1 - product)) / total
        g = third / variance**1.5 / math.sqrt(total)
        t = t_quantile(confidence, total - 1)
        low, high = (self.value + span * math.sqrt(variance / (total - 1)) * _bent(g / 6 + x, g / 3) for x in (-t, t))
        return max(least, min(low, self.value)), min(most, max(high, self.value))


def _bent(x: float, a: float) -> float:
    """Return x + a x^2 to the order of a, increasing in x."""
    y = a * x
    return x * (1 + y) if y > 0 else x / (1 - y)


def estimate_of(units: Means, value: float) -> Estimate:
    """Return the estimate of the mean of one column, over queries or clusters; its reported value may be rounded."""
    [error], [dof] = (each.tolist() for each in robust_error(units))
    values = units.values[:, 0]
    return Estimate(value, error, dof, skewness(values, units.share()[:, 0]), bounds_of(values))


def bounds_of(values: FloatArray) -> tuple[float, float]:
    """Return 0 and 1, or the smallest and the largest of the values if these are beyond."""
    return min(0.0, float(values.min())), max(1.0, float(values.max()))


# -- intervals of the value of an evaluation, at each of its cut-offs -------------------------------------------------

# The square of a larger NDCG exceeds float64. Only an ideal that leaves out relevant documents allows such values.
_LARGEST = 1e150


def means_of(totals: Totals, flavor: Flavor, clusters: IntArray | None) -> dict[int | None, tuple[Means, Means]]:
    """Return the mean over queries at each cut-off, and that over sampling units: queries or clusters.

    Raises
    ------
    ValueError
        Fewer than two queries count, the value is nan, or the square of an NDCG exceeds float64; or from
        ``aggregate_clusters``.
    """
    found = {}
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
        queries = units = Means.from_weights(ndcg[counts, None], share[counts])
        if clusters is not None:
            units = aggregate_clusters(queries, clusters[counts])
        found[k] = queries, units
    return found


def standard_errors(totals: Totals, flavor: Flavor, clusters: IntArray | None) -> dict[int | None, float]:
    """Return the standard error at each cut-off, over queries or over clusters."""
    return {
        k: float(units.standard_error()[0] if clusters is None else robust_error(units)[0][0])
        for k, (_, units) in means_of(totals, flavor, clusters).items()
    }


def intervals(
    totals: Totals,
    flavor: Flavor,
    values: Mapping[int | None, float],
    confidence: float,
    clusters: IntArray | None,
) -> dict[int | None, Interval]:
    """Return the interval of each reported value, by cut-off; see ``Evaluation.interval``."""
    number = as_confidence(confidence)
    found: dict[int | None, Interval] = {}
    for k, (queries, units) in means_of(totals, flavor, clusters).items():
        worth = queries.n_effective()[0] if clusters is None else effective_queries(queries, units)
        low, high = estimate_of(units, values[k]).limits(number)
        found[k] = Interval(
            value=values[k],
            low=low,
            high=high,
            confidence=number,
            method="value",
            n_queries=queries.n_queries,
            effective_queries=None if clusters is None and worth == queries.n_queries else worth,
        )
    return found


# -- the value of a search, corrected for the choice of its best candidate ------------------------------------------


# Number of queries drawn at once, so that they fit in the processor's cache.
_BLOCK = 1 << 17


@dataclass(frozen=True, kw_only=True, slots=True)
class HonestValue:
    """The value of a search, corrected for having chosen the winner on the queries that score it.

    Attributes
    ----------
    value : float
        Value of the chosen candidate on queries that were not used to choose it.
    interval : Interval
        Interval of that value over queries.
    best_value : float
        The mean of the chosen candidate on the queries that chose it.
    chosen : tuple of float
        Share of resamples that chose each candidate, in the order of the rows of ``cv_results_``; they sum to 1. Failed
        candidates have 0.
    n_resamples : int
    """

    value: float
    interval: Interval
    best_value: float
    chosen: tuple[float, ...]
    n_resamples: int

    @property
    def optimism(self) -> float:
        """The bias of the winner's value on the queries that chose it."""
        return self.best_value - self.value

    def __str__(self) -> str:
        most = max(range(len(self.chosen)), key=self.chosen.__getitem__)
        return (
            f"{self.interval}; {self.best_value:.6f} on the queries that chose it, {self.optimism:+.6f} of optimism; "
            f"candidate {most} is chosen in {100 * self.chosen[most]:.0f} % of {self.n_resamples} resamples"
        )


def honest_value(ndcg: FloatArray, confidence: float, n_resamples: int, rng: np.random.Generator) -> HonestValue:
    """Return the bootstrap-bias-corrected value, from the table of queries and candidates.

    Parameters
    ----------
    ndcg : ndarray of float64, shape (n_queries, n_candidates)
    confidence : float
    n_resamples : int
    rng : Generator

    Notes
    -----
    Each resample draws n queries with replacement, chooses a candidate on them, and scores it on the queries that were
    not drawn. The value of a query is the mean over the resamples that left it out, and the value of the search is the
    mean over queries. I. Tsamardinos, E. Greasidou and G. Borboudakis, Bootstrapping the out-of-sample
    predictions for efficient and accurate cross-validation, Machine Learning 107, 2018.

    A resample has 63 % of the queries to choose on. If one candidate is better than many others by about the noise of
    this choice, the resamples miss it more often than the search does, and the value is too low.
    """
    n, n_candidates = ndcg.shape
    left_out, total, squares = np.zeros(n), np.zeros(n), np.zeros(n)
    chosen = np.zeros(n_candidates)
    block = max(1, _BLOCK // n)
    for at in range(0, n_resamples, block):
        # Count how often each resample of the block drew each query.
        queries = rng.integers(0, n, (min(block, n_resamples - at), n))
        places = np.arange(len(queries))[:, None] * n + queries
        counts = np.bincount(places.ravel(), minlength=queries.size).reshape(queries.shape)
        # Choose on the queries that were drawn, and score the winner on the others.
        winners = (counts @ ndcg).argmax(axis=1)
        outside = counts == 0
        scored = np.where(outside, ndcg[:, winners].T, 0.0)
        left_out += outside.sum(axis=0)
        total += scored.sum(axis=0)
        squares += (scored**2).sum(axis=0)
        chosen += np.bincount(winners, minlength=n_candidates)
    # A query that every resample drew has no value. With hundreds of resamples, there is none.
    known = left_out > 0
    value = float((total[known] / left_out[known]).mean())
    # The variance over queries and resamples, which is that of a single candidate, not of the mean of several.
    variance = float((squares[known] / left_out[known]).mean()) - value * value
    m = int(known.sum())
    reach = t_quantile(confidence, m - 1) * math.sqrt(max(0.0, variance) / (m - 1))
    # The search reports the value of the winner on all queries.
    winner = int(ndcg.mean(axis=0).argmax())
    return HonestValue(
        value=value,
        interval=Interval(
            value=value,
            low=value - reach,
            high=value + reach,
            confidence=confidence,
            method="t",
            n_queries=m,
        ),
        best_value=float(ndcg[:, winner].mean()),
        chosen=tuple((chosen / n_resamples).tolist()),
        n_resamples=n_resamples,
    )
