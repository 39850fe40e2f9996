"""Weighted means over queries, their standard errors and confidence intervals."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ndcg_ml._core.layout import FloatArray
from ndcg_ml._plain.checks import whole_number
from ndcg_ml._plain.messages import percent

Seed: TypeAlias = "int | np.random.Generator | None"

_IN_WORDS = {
    "value": "t interval with skewness",
    "t": "t interval",
    "test": "interval of the randomisation test",
    "max-t": "simultaneous intervals (max-T)",
    "crossed": "t interval over queries and runs",
    "corrected": "t interval of a model's labels, corrected",
}

SAME = 1e-12
"""NDCG values this close differ by rounding alone."""


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
    method : {"value", "corrected", "t", "test", "max-t", "crossed"}
        "value" is for the value of an evaluation, "corrected" for ``correct_labels``, "t" for a search, and the others
        for differences, see ``compare``.
    n_queries : int
        Number of queries that count in the mean.
    effective_queries : float or None
        Effective sample size: independent queries of equal weight with the same standard error; None if queries are
        independent and have equal weights.
    """

    value: float
    low: float
    high: float
    confidence: float
    method: Literal["value", "corrected", "t", "test", "max-t", "crossed"]
    n_queries: int
    effective_queries: float | None = None

    def __str__(self) -> str:
        worth = "" if self.effective_queries is None else f", worth {self.effective_queries:.0f} equal ones"
        limits = f"{self.low:.6f} to {self.high:.6f}" if math.isfinite(self.high - self.low) else "no limits"
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
        return f"{percent(self.confidence)}, {_IN_WORDS[self.method]}"


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

    def minus(self, a: int, b: int) -> Means:
        """Return the mean of the difference b - a of two columns, which have the same weights."""
        return Means(self.values[:, [b]] - self.values[:, [a]], self.weight[:, [a]])

    def standard_error(self) -> FloatArray:
        """Return the standard errors; for equal weights, the standard deviation over the square root of n.

        0 if all values are equal, except for rounding.
        """
        n, influence = self.n_queries, self.influence()
        errors = np.sqrt((influence**2).sum(axis=0) * n / (n - 1))
        errors[np.abs(influence).max(axis=0) * n <= SAME] = 0.0
        return errors


def n_equal(share: FloatArray) -> float:
    """Return the effective sample size of weighted queries: 1 / sum of squared shares."""
    return 1 / float(share @ share)


def skewness(values: FloatArray, share: FloatArray | None = None) -> float:
    """Return the skewness, with shares of the mean if they are unequal; 0 if all values are equal."""
    centred = values - np.average(values, weights=share)
    deviation = float(np.sqrt(np.average(centred**2, weights=share)))
    return float(np.average((centred / deviation) ** 3, weights=share)) if deviation > SAME else 0.0
