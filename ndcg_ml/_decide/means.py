"""Weighted means over queries, their standard errors and confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.checks import whole_number
from ndcg_ml._core.layout import FloatArray
from ndcg_ml._core.one_line import percent
from ndcg_ml._decide.distributions import normal_cdf, normal_quantile, t_quantile, t_tail

Seed: TypeAlias = "int | np.random.Generator | None"
Method: TypeAlias = Literal["bca", "percentile", "t", "bounded"]

_IN_WORDS = {
    "bca": "BCa bootstrap",
    "percentile": "percentile bootstrap",
    "t": "t interval",
    "bounded": "interval between bounds",
    "test": "interval of the randomisation test",
    "max-t": "simultaneous intervals (max-T)",
    "crossed": "t interval over queries and runs",
    "corrected": "t interval of a model's labels, corrected",
}

SAME = 1e-12
"""NDCG values this close differ by rounding alone."""

# Number of queries drawn at once, so that they fit in the processor's cache.
_BLOCK = 1 << 17


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A confidence interval over queries.

    Attributes
    ----------
    value : float
        The value on these queries.
    low, high : float
        The limits.
    confidence : float
        The share of such intervals that cover the value of the population of queries.
    method : {"bca", "percentile", "t", "bounded", "test", "max-t", "crossed", "corrected"}
        "test", "max-t" and "crossed" are for differences, see ``compare``; "corrected" is for ``correct_labels``.
    n_queries : int
        Number of queries that count in the mean.
    n_resamples : int or None
        None for "t" and "bounded", which draw nothing.
    effective_queries : float or None
        Effective sample size: independent queries of equal weight with the same standard error; None if queries are
        independent and have equal weights.
    """

    value: float
    low: float
    high: float
    confidence: float
    method: Method | Literal["test", "max-t", "crossed", "corrected"]
    n_queries: int
    n_resamples: int | None
    effective_queries: float | None = None

    def __str__(self) -> str:
        worth = "" if self.effective_queries is None else f", worth {self.effective_queries:.0f} equal ones"
        limits = f"{self.low:.6f} to {self.high:.6f}"
        return f"{self.value:.6f} ({limits}; {self.how_text()}; {self.n_queries} queries{worth})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, for JSON.

        Returns
        -------
        dict
        """
        return asdict(self)

    def how_text(self) -> str:
        """Describe the confidence and the method."""
        drawn = self.method in ("bca", "percentile")
        resamples = f", {self.n_resamples} resamples" if drawn else ""
        return f"{percent(self.confidence)}, {_IN_WORDS[self.method]}{resamples}"


# -- arguments ------------------------------------------------------------------------------------------------------


def generator(seed: Seed) -> np.random.Generator:
    """Return a random generator: the one passed, or a new one with this seed."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(None if seed is None else whole_number(seed, "seed", 0, " or a Generator, or None"))


# -- means ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """Weighted means over the same queries, one per column, where a column is a system or a cut-off.

    A micro average is the mean of NDCG with the ideal DCGs as weights.

    Attributes
    ----------
    values : ndarray of float64, shape (n_queries, n_columns)
        Finite.
    weight : ndarray of float64, shape (n_queries, n_columns)
        Weight of each query in the mean of the column: above 0, at most 1, and all 1 if weights are equal.
    """

    values: FloatArray
    weight: FloatArray

    @classmethod
    def from_weights(cls, values: FloatArray, weight: FloatArray | None) -> Means:
        """Scale weights, one per query or one per query and column. None gives equal weights."""
        if weight is None:
            weight = np.ones(len(values))
        weight = np.broadcast_to(weight if weight.ndim == 2 else weight[:, None], values.shape)
        return cls(values, weight / weight.max(axis=0))

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.values)

    def mean(self) -> FloatArray:
        """Return the means."""
        return (self.weight * self.values).sum(axis=0) / self.weight.sum(axis=0)

    def share(self) -> FloatArray:
        """Return the weights, scaled to a sum of 1 in each column."""
        return self.weight / self.weight.sum(axis=0)

    def n_effective(self) -> list[float]:
        """Return the effective sample size of each mean: queries of equal weight with the same variance."""
        columns = zip(self.weight.T, self.share().T, strict=True)
        return [float(self.n_queries) if (w == w[0]).all() else n_equal(share) for w, share in columns]

    def std(self) -> FloatArray:
        """Return the standard deviations over queries, with n - 1 degrees of freedom."""
        n = self.n_queries
        return np.sqrt((self.share() * (self.values - self.mean()) ** 2).sum(axis=0) * n / (n - 1))

    def influence(self) -> FloatArray:
        """Return the influence of each query on each mean: its share times its deviation from the mean."""
        return self.share() * (self.values - self.mean())

    def linear(self) -> Means:
        """Return means with equal weights in all columns, and with the same means and influences.

        Weights differ between columns only for a micro average whose ideals depend on the ranking. Its ratio of sums is
        then replaced by its linear part (the delta method).
        """
        if (self.weight == self.weight[:, :1]).all():
            return self
        return Means.from_weights(self.mean() + self.n_queries * self.influence(), None)

    def without_each(self) -> FloatArray:
        """Return the means without each query (jackknife)."""
        return _sum_of_others(self.weight * self.values) / _sum_of_others(self.weight)

    def resampled(self, n_resamples: int, rng: np.random.Generator) -> FloatArray:
        """Draw queries with replacement and return the means, shape (n_resamples, n_columns)."""
        parts = np.ascontiguousarray((self.weight * self.values).T)
        weights = np.ascontiguousarray(self.weight.T)
        if not np.ptp(weights, axis=0).any():
            weights = weights[:1]
        if (weights == 1).all():
            parts, weights = parts / self.n_queries, weights[:0]
        means = np.empty((n_resamples, len(parts)))
        at = 0
        for queries in drawn_queries(self.n_queries, n_resamples, rng):
            block = means[at : at + len(queries)]
            for column, part in enumerate(parts):
                block[:, column] = part.take(queries).sum(axis=1)
            if len(weights):
                block /= np.stack([weight.take(queries).sum(axis=1) for weight in weights], axis=1)
            at += len(queries)
        return means


def n_equal(share: FloatArray) -> float:
    """Return the effective sample size of weighted queries: 1 / sum of squared shares."""
    return 1 / float(share @ share)


def skewness(values: FloatArray) -> float:
    """Return the skewness; 0 if all values are equal."""
    centred = values - values.mean()
    deviation = float(np.sqrt((centred**2).mean()))
    return float((centred**3).mean()) / deviation**3 if deviation > SAME else 0.0


def drawn_queries(n_queries: int, n_resamples: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Yield the queries that each resample draws, in blocks of resamples."""
    # Draws of 64 bits per entry are those of scipy.stats.bootstrap, for any size of the blocks.
    block = max(1, _BLOCK // n_queries)
    for at in range(0, n_resamples, block):
        drawn = rng.integers(0, n_queries, (min(block, n_resamples - at), n_queries))
        yield drawn.astype(np.intp, copy=False)  # an index has 32 bits in WebAssembly


def _sum_of_others(terms: FloatArray) -> FloatArray:
    """Return the sum of all other rows for each row, without subtraction, which would cancel small terms."""
    sums = np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=sums[1:])
    sums[:-1] += np.cumsum(terms[:0:-1], axis=0)[::-1]
    return sums


# -- intervals ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The sampling variation of one value: a mean over queries, or the difference of two.

    Attributes
    ----------
    value : float
    influence : ndarray of float64, shape (n_queries,)
        Influence of each query on the value.
    without_each : ndarray of float64, shape (n_queries,)
        The value without this query.
    n_effective : float
        Effective sample size.
    draws : ndarray of float64, shape (n_resamples,), or None
        The values of resamples.
    """

    value: float
    influence: FloatArray
    without_each: FloatArray
    n_effective: float
    draws: FloatArray | None

    @property
    def standard_error(self) -> float:
        """The standard error; for an unweighted mean, the standard deviation over the square root of n."""
        n = self.influence.size
        # Not a product of vectors, because BLAS may set floating-point flags that NumPy reports as warnings.
        return float(np.sqrt(np.square(self.influence).sum() * n / (n - 1)))

    @property
    def is_constant(self) -> bool:
        """Whether all influences are 0, except for rounding."""
        return bool(np.abs(self.influence).max() * self.influence.size <= SAME)

    def interval(self, confidence: float, method: Method, value: float | None = None) -> Interval:
        """Return the confidence interval over two or more queries; its width is 0 if all are equal.

        `value` is the reported value, which may differ by rounding.
        """
        n = self.influence.size
        low = high = value = self.value if value is None else value
        if not self.is_constant:
            if self.draws is None or method == "t":
                reach = t_quantile(confidence, max(1.0, self.n_effective - 1)) * self.standard_error
                low, high = self.value - reach, self.value + reach
            else:
                tails = ((1 - confidence) / 2, (1 + confidence) / 2)
                if method == "bca":
                    tails = self._corrected(self.draws, tails)
                low, high = np.quantile(self.draws, tails).tolist()
        return Interval(
            value=value,
            low=low,
            high=high,
            confidence=confidence,
            method=method,
            n_queries=n,
            n_resamples=None if self.draws is None or method == "t" else self.draws.size,
            effective_queries=None if self.n_effective == n else self.n_effective,
        )

    def _corrected(self, draws: FloatArray, tails: tuple[float, float]) -> tuple[float, float]:
        """Correct the tail probabilities for bias and for a standard error that depends on the value (BCa).

        B. Efron, Better bootstrap confidence intervals, JASA 82, 1987, equation 6.3 and 6.6 of Efron and Tibshirani.
        """
        slack = SAME * max(1.0, abs(self.value))
        below = (np.count_nonzero(draws < self.value - slack) + np.count_nonzero(draws <= self.value + slack)) / 2
        if not 0 < below < draws.size:
            raise ValueError(
                f"method='bca' needs resamples on both sides of the value; all {draws.size} are on one side. Draw more "
                "(n_resamples), or choose method='t'."
            )
        bias = normal_quantile(below / draws.size)
        pull = self.without_each.mean() - self.without_each
        size = float(np.sqrt(pull @ pull))
        scaled = pull / size
        acceleration = float((scaled**3).sum() / 6)
        return self._at(tails[0], bias, acceleration), self._at(tails[1], bias, acceleration)

    @staticmethod
    def _at(tail: float, bias: float, acceleration: float) -> float:
        z = bias + normal_quantile(tail)
        room = 1 - acceleration * z
        # At a confidence close to 1, a dominant query puts the limit at the end of the draws.
        if room <= 0:
            return 1.0 if z > 0 else 0.0
        return normal_cdf(bias + z / room)


def spread_of(means: Means, n_resamples: int | None = None, rng: np.random.Generator | None = None) -> list[Spread]:
    """Return the spread of each mean, from shared resamples; if `n_resamples` is None, nothing is drawn."""
    draws = None if n_resamples is None else means.resampled(n_resamples, generator(rng))
    n_effective = means.n_effective()
    parts = zip(means.mean().tolist(), means.influence().T, means.without_each().T, n_effective, strict=True)
    return [Spread(*part, None if draws is None else draws[:, i]) for i, part in enumerate(parts)]


def minus(b: Spread, a: Spread) -> Spread:
    """Return the spread of the difference b - a on the same queries and resamples."""
    draws = None if a.draws is None or b.draws is None else b.draws - a.draws
    fewer = min(a.n_effective, b.n_effective)
    return Spread(b.value - a.value, b.influence - a.influence, b.without_each - a.without_each, fewer, draws)


# -- several runs (seeds) of each system: queries and runs are crossed random effects ---------------------------------


@dataclass(frozen=True, slots=True)
class CrossedError:
    """The standard error of the difference of two systems over queries and runs.

    Attributes
    ----------
    standard_error : float
    dof : float
        Degrees of freedom of its t interval.
    """

    standard_error: float
    dof: float

    def p_value(self, difference: float) -> float:
        """Return the two-sided p-value of the hypothesis of no difference."""
        if abs(difference) <= SAME:
            return 1.0
        return t_tail(abs(difference) / self.standard_error, self.dof) if self.standard_error > 0 else 0.0


def crossed_error(over_queries: float, n_units: int, *runs: FloatArray) -> CrossedError:
    """Return the standard error of a difference over queries and runs.

    Parameters
    ----------
    over_queries : float
        The standard error over queries (or clusters) of the difference of the systems' means over runs.
    n_units : int
        Number of queries or clusters.
    *runs : ndarray of float64, shape (n_runs,)
        The value of each run, for each of the two systems.

    Notes
    -----
    Queries and runs are crossed random effects. The variance is the sum of two parts: the variance over queries of the
    means over runs, and for each system the variance over runs of the means over queries, each divided by its number.
    The interaction of queries and runs is in both parts, so the error is conservative, as in the pigeonhole bootstrap
    (A. Owen, The pigeonhole bootstrap, Annals of Applied Statistics 1(2), 2007). Degrees of freedom are
    Satterthwaite's. Runs of different systems are independent. X. Bouthillier et al., Accounting for variance in
    machine learning benchmarks, MLSys 2021.
    """
    parts = [(over_queries**2, n_units - 1)]
    parts += [(float(values.var(ddof=1)) / values.size, values.size - 1) for values in runs]
    variance = math.fsum(part for part, _ in parts)
    squares = math.fsum(part * part / dof for part, dof in parts)
    return CrossedError(math.sqrt(variance), variance * variance / squares if squares > 0 else float(n_units - 1))
