"""From per-query DCG and IDCG to one number: empty queries, weights, means."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._shown import shown
from ndcg_ml._underflow import underflow_is_zero
from ndcg_ml.flavor import Flavor

__all__ = ["Addends", "EmptyQueryError", "Sums", "addends", "mean_dcg", "per_query_ndcg", "sums"]

FloatArray = NDArray[np.float64]

# A perfect ranking may come out as 1 + a few rounding errors; that is 1.
_ROUNDING = 1e-12


class EmptyQueryError(ValueError):
    """Queries without a relevant document leave nothing to report, or are refused by the flavor."""


def per_query_ndcg(
    dcg: FloatArray, idcg: FloatArray, flavor: Flavor, ids: NDArray[Any]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """NDCG of each query, and which queries are empty; an empty query that the mean will skip is nan."""
    empty = ~(idcg > 0)
    if flavor.empty == "raise" and empty.any():
        which = ids[empty.any(axis=1)]
        raise EmptyQueryError(
            f"every query must have a relevant document under empty='raise'; {which.size} of {len(dcg)} have an ideal "
            f"DCG of 0, the first is query {shown(which[:1].tolist()[0])}. "
            "Remove them, or choose empty=0, 1, nan or 'skip'."
        )
    with np.errstate(over="ignore"):  # an ideal that leaves relevant documents out may be as small as it likes
        ndcg = np.divide(dcg, idcg, out=np.empty_like(dcg), where=~empty)
    ndcg[empty] = math.nan if isinstance(flavor.empty, str) else flavor.empty
    ndcg[(ndcg > 1) & (ndcg < 1 + _ROUNDING)] = 1.0
    return ndcg, empty


class Addends(NamedTuple):
    """What each query adds to the sums whose ratio is the value.

    Attributes
    ----------
    numerator, denominator : list of ndarray of float
        For each cut-off, one entry a query that counts: weighted NDCG and weight (macro), or weighted DCG and weighted
        IDCG (micro).
    exponent : int
        All of them are divided by two to this power (micro alone; gains may be beyond float64).
    n_queries : int
    n_empty : ndarray of int, shape (n_cutoffs,)
    """

    numerator: list[FloatArray]
    denominator: list[FloatArray]
    exponent: int
    n_queries: int
    n_empty: NDArray[np.int64]


def addends(
    ndcg: FloatArray,
    empty: NDArray[np.bool_],
    dcg: FloatArray,
    idcg: FloatArray,
    exponent: NDArray[np.int64] | None,
    weight: FloatArray | None,
    flavor: Flavor,
) -> Addends:
    """What each of these queries adds to the mean, from per-query values of shape (n_queries, n_cutoffs)."""
    weight = np.ones(len(ndcg)) if weight is None else weight
    numerator: list[FloatArray] = []
    denominator: list[FloatArray] = []
    scale = 0
    weighted = weight > 0
    counting = weighted & ~empty.all(axis=1)
    if flavor.aggregate == "micro" and exponent is not None and counting.any():
        scale = int(exponent[counting].max())
        shift = np.where(counting, exponent - scale, 0)[:, None]
        dcg, idcg = np.ldexp(dcg, shift), np.ldexp(idcg, shift)
    for column in range(ndcg.shape[1]):
        counted = ~empty[:, column]
        if flavor.aggregate == "micro":
            counted &= weighted  # a weight of 0 must not meet an infinite gain
            numerator.append(weight[counted] * dcg[counted, column])
            denominator.append(weight[counted] * idcg[counted, column])
        else:
            averaged = counted if flavor.empty == "skip" else slice(None)
            each = ndcg[averaged, column]
            # As above; an NDCG is infinite where the ideal leaves out all but a tiny gain.
            numerator.append(weight[averaged] * np.where(weighted[averaged] | np.isnan(each), each, 0.0))
            denominator.append(weight[averaged])
    return Addends(numerator, denominator, scale, len(ndcg), empty.sum(axis=0))


def sums(
    ndcg: FloatArray,
    empty: NDArray[np.bool_],
    dcg: FloatArray,
    idcg: FloatArray,
    exponent: NDArray[np.int64] | None,
    weight: FloatArray | None,
    flavor: Flavor,
) -> Sums:
    """What these queries add to the mean, from per-query values of shape (n_queries, n_cutoffs)."""
    each = addends(ndcg, empty, dcg, idcg, exponent, weight, flavor)
    numerator, denominator = (np.array([column.sum() for column in part]) for part in each[:2])
    return Sums(numerator, denominator, *each[2:])


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """What a set of queries adds to the mean: sums of disjoint sets of queries add up to those of all.

    Attributes
    ----------
    numerator, denominator : ndarray of float, shape (n_cutoffs,)
        Their ratio is the value: weighted NDCG over weight (macro), weighted DCG over weighted IDCG (micro).
    exponent : int
        Both are divided by two to this power (micro alone; gains may be beyond float64).
    n_queries : int
    n_empty : ndarray of int, shape (n_cutoffs,)
    """

    numerator: FloatArray
    denominator: FloatArray
    exponent: int
    n_queries: int
    n_empty: NDArray[np.int64]

    @underflow_is_zero
    def rescaled(self, exponent: int) -> Sums:
        """The same sums, divided by two to another power, not smaller than theirs."""
        shift = self.exponent - exponent
        return replace(
            self,
            numerator=np.ldexp(self.numerator, shift),
            denominator=np.ldexp(self.denominator, shift),
            exponent=exponent,
        )

    def __add__(self, other: Sums) -> Sums:
        exponent = max(self.exponent, other.exponent)
        mine, theirs = self.rescaled(exponent), other.rescaled(exponent)
        return Sums(
            mine.numerator + theirs.numerator,
            mine.denominator + theirs.denominator,
            exponent,
            self.n_queries + other.n_queries,
            self.n_empty + other.n_empty,
        )

    @underflow_is_zero
    def values(self, flavor: Flavor) -> list[float]:
        """The value at each cut-off.

        Raises
        ------
        EmptyQueryError
            There is nothing to average.
        """
        if flavor.empty == "skip" and not (self.denominator > 0).all():
            raise EmptyQueryError(
                "every query is empty (ideal DCG 0) or has weight 0, and empty='skip' leaves nothing to average. "
                "Check the labels, or choose empty=0, 1 or nan."
            )
        if flavor.aggregate == "micro":
            nothing = math.nan if isinstance(flavor.empty, str) else flavor.empty
            ratio = np.full(len(self.numerator), nothing)
            with np.errstate(over="ignore"):
                np.divide(self.numerator, self.denominator, out=ratio, where=self.denominator > 0)
            return [1.0 if 1 < value < 1 + _ROUNDING else float(value) for value in ratio]
        return [float(value) for value in self.numerator / self.denominator]


def mean_dcg(dcg: FloatArray, weight: FloatArray | None) -> list[float]:
    """Weighted mean of the queries' DCG at each cut-off. No ideal, so no query is empty."""
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.average(dcg, axis=0, weights=weight)
    if not np.isfinite(means).all():
        raise ValueError(
            "a DCG is too large for float64, or their sum, because the gains of its grades are; NDCG, a ratio, has no "
            "such limit. Use ndcg_score, or a smaller grade scale."
        )
    return [float(value) for value in means]
