"""Average the DCG and ideal DCG of queries to one number, under a flavor's rules and weights of queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.layout import BoolArray, FloatArray
from ndcg_ml._plain.messages import brief
from ndcg_ml.flavor import Flavor

# NDCG above 1 by less than this is the 1 of a perfect ranking with rounding errors.
_ROUNDING = 1e-12


class EmptyQueryError(ValueError):
    """No query has a relevant document, or one has none and the flavor refuses that."""


def empty_queries(ideal: FloatArray, flavor: Flavor, ids: NDArray[Any]) -> BoolArray:
    """Return which queries are empty, from their ideal DCG at each cut-off; raise under ``empty="raise"``."""
    empty = ~(ideal > 0)
    if flavor.empty == "raise" and empty.any():
        which = ids[empty.any(axis=1)]
        raise EmptyQueryError(
            f"every query must have a relevant document under empty='raise'; {which.size} of {len(ideal)} have an "
            f"ideal DCG of 0, the first is query {brief(which[:1].tolist()[0])}. "
            f"Remove them, or use {flavor._advice(empty='skip')}, which skips them."
        )
    return empty


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """DCG and ideal DCG of every query at every cut-off, to be averaged under any rule for empty queries.

    Attributes
    ----------
    ks : tuple of int or None, length n_cutoffs
    ids : ndarray, shape (n_queries,)
        The query's id; its position if there are no ids.
    dcg, ideal : ndarray of float, shape (n_queries, n_cutoffs)
        DCG and ideal DCG.
    weight : ndarray of float, shape (n_queries,), or None
    """

    ks: tuple[int | None, ...]
    ids: NDArray[Any]
    dcg: FloatArray
    ideal: FloatArray
    weight: FloatArray | None

    def at(self, rows: NDArray[np.intp]) -> Totals:
        """Return the totals of the queries at these positions."""
        return replace(
            self,
            ids=self.ids[rows],
            dcg=self.dcg[rows],
            ideal=self.ideal[rows],
            weight=None if self.weight is None else self.weight[rows],
        )

    def ndcg(self, flavor: Flavor) -> tuple[FloatArray, BoolArray]:
        """Return NDCG of each query, nan for an empty query that the mean skips; and which queries are empty."""
        empty = empty_queries(self.ideal, flavor, self.ids)
        ndcg = np.full(self.dcg.shape, math.nan if isinstance(flavor.empty, str) else flavor.empty)
        with np.errstate(over="ignore"):  # an ideal that leaves relevant documents out may be arbitrarily small
            np.divide(self.dcg, self.ideal, out=ndcg, where=~empty)
        np.copyto(ndcg, 1.0, where=(ndcg > 1) & (ndcg < 1 + _ROUNDING))
        return ndcg, empty

    def _counted(self, flavor: Flavor, empty: BoolArray) -> tuple[BoolArray, FloatArray]:
        """Return which queries have a term in the sums, given which are empty; and the weight of every query.

        An empty query has none if it is skipped or under ``micro``, which also leaves out queries of weight 0, because
        0 times an infinite DCG would be nan.
        """
        weight = np.ones(len(empty)) if self.weight is None else self.weight
        if flavor.aggregate == "micro":
            return ~empty & (weight > 0), weight
        return ~empty if flavor.empty == "skip" else np.ones(len(empty), dtype=bool), weight

    def terms(self, flavor: Flavor) -> Terms:
        """Return the terms of each query in the sums whose ratio is the mean."""
        ndcg, empty = self.ndcg(flavor)
        numerator, denominator = [], []
        for column in range(len(self.ks)):
            counted, weight = self._counted(flavor, empty[:, column])
            weight = weight[counted]
            if flavor.aggregate == "micro":
                numerator.append(weight * self.dcg[:, column][counted])
                denominator.append(weight * self.ideal[:, column][counted])
                continue
            values = ndcg[:, column][counted]
            # NDCG is infinite if the ideal holds only a tiny gain, and weight 0 times infinity would be nan.
            if self.weight is not None:
                values = np.where((weight > 0) | np.isnan(values), values, 0.0)
            numerator.append(weight * values)
            denominator.append(weight)
        return Terms(numerator, denominator, len(self.dcg), empty.sum(axis=0))

    def sums(self, flavor: Flavor) -> Sums:
        """Return the sums of these queries, whose fields can be added to those of other queries."""
        terms = self.terms(flavor)
        numerator, denominator = (np.array([column.sum() for column in side]) for side in terms[:2])
        return Sums(numerator, denominator, terms.n_queries, terms.n_empty)

    def mean(self, flavor: Flavor) -> FloatArray:
        """Return the value at each cut-off; nan if all weights are 0, or all queries with a weight are skipped."""
        if not len(self.dcg) or (self.weight is not None and not self.weight.any()):
            return np.full(len(self.ks), math.nan)
        return self.sums(flavor).mean(flavor)

    def values(self, flavor: Flavor) -> list[float]:
        """Return the value at each cut-off; raise ``EmptyQueryError`` if there is nothing to average."""
        return self.sums(flavor).values(flavor)

    def finite_values(self, flavor: Flavor) -> list[float | None]:
        """Return the value at each cut-off, or None if it is undefined.

        It is undefined if one query is empty under ``empty="raise"`` or nan, or all are under ``empty="skip"``.
        """
        refused = flavor.empty == "raise"
        sums = self.sums(flavor.replace(empty=math.nan) if refused else flavor)
        values = np.where(refused & (sums.n_empty > 0), math.nan, sums.mean(flavor)).tolist()
        return [value if math.isfinite(value) else None for value in values]

    def at_cutoff(self, k: int | None) -> Totals:
        """Return the totals at one cut-off."""
        column = [self.ks.index(k)]
        return replace(self, ks=(k,), dcg=self.dcg[:, column], ideal=self.ideal[:, column])

    def shares(self, flavor: Flavor, k: int | None) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return NDCG of each query, its share in the mean at this cut-off, and which queries are empty.

        Shares sum to 1, and the value is the sum of share times NDCG. A share is proportional to the weight of the
        query (macro) or to its weight times its ideal DCG (micro). It is 0 if the weight is 0, if the query is empty
        and skipped, or if it is empty and others are not (micro). All shares are 0 if there is nothing to average.
        """
        one = self.at_cutoff(k)
        table, empties = one.ndcg(flavor)
        ndcg, empty = table.ravel(), empties.ravel()
        counted, weight = one._counted(flavor, empty)
        share = weight * counted
        if flavor.aggregate == "micro" and counted.any():
            share *= one.ideal.ravel()
        elif flavor.empty != "skip":  # without a term in the sums, the mean is that of empty queries
            share = weight.copy()
        total = share.sum()
        return ndcg, share / total if total > 0 else share, empty

    def mean_dcg(self) -> list[float]:
        """Return the weighted mean of DCG at each cut-off. It needs no ideal, so no query is empty."""
        with np.errstate(over="ignore", invalid="ignore"):
            means = np.average(self.dcg, axis=0, weights=self.weight)
        if not np.isfinite(means).all():
            raise ValueError("a DCG, or the sum of all, is too large for float64. Use smaller gains or discounts.")
        return [float(value) for value in means]


def shape_values(ks: Sequence[int | None], values: Sequence[Any], several: bool) -> Any:
    """Return the values as a dict by cut-off, or the only one."""
    return dict(zip(ks, values, strict=True)) if several else values[0]


class Terms(NamedTuple):
    """The terms of each query in the sums whose ratio is the mean.

    Attributes
    ----------
    numerator, denominator : list of ndarray of float
        For each cut-off, one entry per query that counts: weighted NDCG and weight (macro), or weighted DCG and
        weighted IDCG (micro).
    n_queries : int
    n_empty : ndarray of int, shape (n_cutoffs,)
    """

    numerator: list[FloatArray]
    denominator: list[FloatArray]
    n_queries: int
    n_empty: NDArray[np.int64]


class Sums(NamedTuple):
    """Sums over a set of queries.

    Attributes
    ----------
    numerator, denominator : ndarray of float, shape (n_cutoffs,)
        Their ratio is the mean: weighted NDCG over weight (macro), weighted DCG over weighted IDCG (micro).
    n_queries : int
    n_empty : ndarray of int, shape (n_cutoffs,)
    """

    numerator: FloatArray
    denominator: FloatArray
    n_queries: int
    n_empty: NDArray[np.int64]

    def values(self, flavor: Flavor) -> list[float]:
        """Return the value at each cut-off.

        Raises
        ------
        EmptyQueryError
            There is nothing to average.
        ValueError
            All weights are 0.
        """
        if flavor.empty == "skip" and not (self.denominator > 0).all():
            raise EmptyQueryError(
                "every query is empty (ideal DCG 0) or has weight 0, and empty='skip' leaves nothing to average. "
                f"Check the labels, or use {flavor._advice(empty=0)}, under which they score 0."
            )
        if flavor.empty != "skip" and flavor.aggregate == "macro" and not (self.denominator > 0).all():
            raise ValueError("query_weight must be above 0 for at least one query of all parts; it is 0 for every one.")
        return self.mean(flavor).tolist()

    def mean(self, flavor: Flavor) -> FloatArray:
        """Return the value at each cut-off; nan under ``empty="skip"`` if there is nothing to average."""
        value_of_nothing = math.nan if isinstance(flavor.empty, str) else flavor.empty
        ratio = np.full(len(self.numerator), value_of_nothing)
        with np.errstate(over="ignore"):
            np.divide(self.numerator, self.denominator, out=ratio, where=self.denominator > 0)
        if flavor.aggregate == "micro":
            ratio[(ratio > 1) & (ratio < 1 + _ROUNDING)] = 1.0
        elif math.isnan(value_of_nothing) and flavor.empty != "skip":
            ratio[np.asarray(self.n_empty) > 0] = math.nan  # exact sums leave out the nan of an empty query
        return ratio
