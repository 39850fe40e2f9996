"""Two systems on the same queries: their mean difference, its standard error, and the randomisation test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._checks import finite_number, whole_number
from ndcg_ml._data.underflow import underflow_is_zero
from ndcg_ml._stats.means import (
    SAME,
    Interval,
    Means,
    Method,
    Seed,
    as_confidence,
    generator,
    how_many,
    minus,
    spread_of,
)
from ndcg_ml._stats.quantiles import normal_quantile

__all__ = ["Paired", "SignFlip", "drawn_signs", "exchange_tests", "paired", "queries_needed"]

FloatArray: TypeAlias = NDArray[np.float64]

Signs: TypeAlias = NDArray[np.uint8]
"""Vectors of signs, one per row, a bit each: a bit that is set turns the sign of its query."""

# Bytes drawn at once: what they find stays in the processor's cache.
_BLOCK = 1 << 16
# All exchanges of so many queries are as many as any caller draws.
_MOST_EXACT = 24


@dataclass(frozen=True, slots=True)
class SignFlip:
    """What the two-sided randomisation test found.

    Attributes
    ----------
    p_value : float
    exact : bool
        Whether every exchange was enumerated, rather than some drawn.
    """

    p_value: float
    exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """Two systems on the same queries. Made by ``paired``.

    Attributes
    ----------
    means : Means
        Column 0 is a, column 1 is b.
    """

    means: Means

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.means.n_queries

    @property
    def difference(self) -> float:
        """The mean of b less the mean of a."""
        a, b = self.means.mean().tolist()
        return float(b - a)

    @property
    @underflow_is_zero
    def standard_error(self) -> float:
        """The standard error of the difference, over the queries."""
        a, b = spread_of(self.means)
        return minus(b, a).standard_error

    @underflow_is_zero
    def interval(
        self, confidence: float = 0.95, method: Method = "t", n_resamples: int = 9999, seed: Seed = None
    ) -> Interval:
        """The confidence interval of the difference, as of ``Evaluation.interval``."""
        confidence, resamples = as_confidence(confidence), how_many(method, n_resamples)
        a, b = spread_of(self.means, resamples, generator(seed))
        return minus(b, a).interval(confidence, method)

    def test(self, n_resamples: int = 9999, seed: Seed = None) -> SignFlip:
        """The randomisation test; see ``exchange_tests``."""
        [found] = exchange_tests(self.means, [(0, 1)], whole_number(n_resamples, "n_resamples"), generator(seed))
        return found


def paired(a: FloatArray, b: FloatArray, weight: FloatArray | None = None) -> Paired:
    """Two systems from their NDCG per query, in the same order.

    Parameters
    ----------
    a, b : ndarray of float64, shape (n_queries,)
        Finite.
    weight : ndarray of float64, shape (n_queries,), optional
        What each query weighs in the means, above 0.

    Returns
    -------
    Paired

    Raises
    ------
    ValueError
        Other shapes, fewer than two queries, values that are not finite, weights that are not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> both = paired(np.array([0.2, 0.5, 0.7, 0.4]), np.array([0.3, 0.8, 0.7, 0.6]))
    >>> round(both.difference, 6), round(both.standard_error, 6), both.test()
    (0.15, 0.06455, SignFlip(p_value=0.25, exact=True))
    """
    if a.shape != b.shape or a.ndim != 1 or (weight is not None and weight.shape != a.shape):
        shapes = ", ".join(str(each.shape) for each in (a, b, *([] if weight is None else [weight])))
        raise ValueError(f"a, b and weight must have one entry per query, in the same order; got shapes {shapes}.")
    if a.size < 2:
        raise ValueError(
            f"a and b must have at least two queries, because the spread of one is not known; got {a.size}."
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        bad = int((~(np.isfinite(a) & np.isfinite(b))).sum())
        raise ValueError(
            f"a and b must be finite; got {bad} of {a.size} queries that are not. Leave these queries out."
        )
    if weight is not None and not (np.isfinite(weight).all() and weight.min() > 0):
        raise ValueError("weight must be finite and above 0. Leave out the queries that weigh nothing.")
    return Paired(Means.of(np.stack([a, b], axis=1).astype(np.float64), weight))


# -- the randomisation test -----------------------------------------------------------------------------------------


@underflow_is_zero
def exchange_tests(
    means: Means, pairs: Sequence[tuple[int, int]], n_resamples: int, rng: np.random.Generator
) -> list[SignFlip]:
    """For pairs of columns: how often chance alone makes a difference as large, either way.

    If the two systems of a pair are equally good, it is chance which of the two values of a query came from which. The
    test exchanges them, query by query: in every way, where these are no more than `n_resamples`, or else in as many
    drawn ways, which it adds to the one that was observed. The p-value is the share whose absolute difference is no
    smaller. Queries in which the two are equal stay out of the enumeration.

    Notes
    -----
    R. A. Fisher, The Design of Experiments, 1935. M. Smucker, J. Allan and B. Carterette, A comparison of statistical
    significance tests for information retrieval evaluation, CIKM 2007. B. Phipson and G. Smyth, Permutation p-values
    should never be zero, 2010.
    """
    exchanges = [_Exchange.of(means, a, b) for a, b in pairs]
    found: dict[int, SignFlip] = {}
    drawn = []
    for i, each in enumerate(exchanges):
        n = int(each.apart.sum())
        if n <= _MOST_EXACT and 2**n <= n_resamples:
            found[i] = SignFlip(_extreme([each.only_apart()], _all_signs(n))[0] / 2**n if n else 1.0, True)
        elif n == 1:  # which is as far from 0 with either sign
            found[i] = SignFlip(1.0, True)
        else:
            drawn.append(i)
    if drawn:
        counts = _extreme([exchanges[i] for i in drawn], drawn_signs(means.n_queries, n_resamples, rng))
        found |= {i: SignFlip((1 + n) / (1 + n_resamples), False) for i, n in zip(drawn, counts, strict=True)}
    return [found[i] for i in range(len(pairs))]


@dataclass(frozen=True, slots=True, eq=False)
class _Exchange:
    """The difference of two ratios of sums, as a function of which queries are exchanged."""

    numerator: FloatArray
    """b - a of what each query adds to the numerator."""
    denominator: FloatArray | None
    """The same of the denominators; None where these are equal, as in all but some micro averages."""
    totals: tuple[float, float]
    """Numerators of a and b together; and denominators, which sum to 2."""
    apart: NDArray[np.bool_]

    @classmethod
    def of(cls, means: Means, a: int, b: int) -> _Exchange:
        weight = means.share()
        parts = weight * means.values
        denominator = weight[:, b] - weight[:, a]
        numerator = parts[:, b] - parts[:, a]
        apart = np.abs(means.values[:, b] - means.values[:, a]) > SAME
        if np.abs(denominator).max() * len(weight) <= SAME:
            return cls(np.where(apart, numerator, 0.0), None, (float(parts[:, [a, b]].sum()), 2.0), apart)
        return cls(numerator, denominator, (float(parts[:, [a, b]].sum()), 2.0), apart | (np.abs(denominator) > 0))

    def only_apart(self) -> _Exchange:
        denominator = None if self.denominator is None else self.denominator[self.apart]
        return _Exchange(self.numerator[self.apart], denominator, self.totals, self.apart[self.apart])

    def columns(self) -> list[FloatArray]:
        return [self.numerator] if self.denominator is None else [self.numerator, self.denominator]

    def distance(self, up: FloatArray, along: FloatArray | None = None) -> FloatArray:
        """|b - a| after exchanges, from the signed sums of the columns."""
        if along is None:
            return np.abs(up)
        parts, weights = self.totals
        return np.abs((parts + up) / (weights + along) - (parts - up) / (weights - along))


def _extreme(exchanges: Sequence[_Exchange], signs: Iterator[Signs]) -> list[int]:
    """How many of the sign vectors bring each difference as far from 0 as it was observed."""
    sums = [[_SignedSum(column) for column in each.columns()] for each in exchanges]
    as_observed = np.zeros((1, sums[0][0].n_bytes), dtype=np.uint8)

    def distances(block: Signs) -> Iterator[FloatArray]:
        for each, columns in zip(exchanges, sums, strict=True):
            yield each.distance(*(column(block) for column in columns))

    bounds = [float(distance[0]) - SAME for distance in distances(as_observed)]
    counts = [0] * len(exchanges)
    for block in signs:
        for i, distance in enumerate(distances(block)):
            counts[i] += int(np.count_nonzero(distance >= bounds[i]))
    return counts


class _SignedSum:
    """The sum of numbers under signs, eight at a time: each byte of signs finds the sum of its eight in a table."""

    def __init__(self, numbers: FloatArray) -> None:
        self.n_bytes = -(-numbers.size // 8)
        padded = np.zeros((self.n_bytes, 8))
        padded.reshape(-1)[: numbers.size] = numbers
        flags = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
        self._table = (padded[:, None, :] * (1.0 - 2.0 * flags)).sum(axis=2).reshape(-1)
        self._starts = np.arange(self.n_bytes) * 256

    def __call__(self, signs: Signs) -> FloatArray:
        total: FloatArray = self._table.take(signs + self._starts).sum(axis=1)
        return total


def _all_signs(n: int) -> Iterator[Signs]:
    """Every vector of n signs."""
    for at in range(0, 2**n, _BLOCK):
        numbers = np.arange(at, min(at + _BLOCK, 2**n), dtype="<u4")
        yield numbers.view(np.uint8).reshape(-1, 4)[:, : -(-n // 8)]


def drawn_signs(n: int, n_resamples: int, rng: np.random.Generator) -> Iterator[Signs]:
    """Random vectors of n signs, some at a time."""
    n_bytes = -(-n // 8)
    block = max(1, _BLOCK // n_bytes)
    for at in range(0, n_resamples, block):
        yield rng.integers(0, 256, (min(block, n_resamples - at), n_bytes), dtype=np.uint8)


# -- planning -------------------------------------------------------------------------------------------------------


def queries_needed(deviation: float, difference: object, power: object, confidence: float) -> int:
    """How many queries show a difference of this size, at least 2.

    Parameters
    ----------
    deviation : float
        Standard deviation of the differences over the queries.
    difference : float
        The true difference, not 0.
    power : float
        The chance of seeing it.
    confidence : float
        1 less the level of the two-sided test.

    Notes
    -----
    See ``Difference.queries_needed``.
    """
    size = finite_number(difference, "difference")
    if size == 0:
        raise ValueError(
            "difference must not be 0, because no number of queries shows it; name the smallest that matters."
        )
    chance = finite_number(power, "power")
    if not 0 < chance < 1:
        raise ValueError(f"power must be above 0 and below 1; got {power}.")
    z = normal_quantile((1 + confidence) / 2)
    reach = max(0.0, z + normal_quantile(chance))
    deviations = reach * deviation / size
    needed = deviations * deviations + z * z / 2
    if math.isinf(needed):
        raise ValueError(
            f"difference must be larger: one of {size:g} takes more queries to see than float64 can count."
        )
    return max(2, math.ceil(needed))
