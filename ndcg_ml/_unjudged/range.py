"""The smallest and largest value, or difference of two, over all ways to grade the unjudged documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import BoolArray, FloatArray, IntArray
from ndcg_ml._data.scored_documents import Scored
from ndcg_ml._unjudged.completions import Open, added, largest
from ndcg_ml._unjudged.documents import (
    Documents,
    RangeError,
    UnsearchedRangeError,
    documents_of,
    gains_of_scale,
    prefix_sums,
    scale_of,
)
from ndcg_ml.flavor import Flavor

# A perfect ranking may come out as 1 + a few rounding errors; that is 1.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """The smallest and largest value over all ways to grade the unjudged documents.

    Attributes
    ----------
    low, high : float
        The smallest and the largest value. Some grades reach each of them.
    value : float
        The value now, under the flavor's rule for unjudged documents.
    n_unjudged : int
        Number of unjudged documents.
    grades : tuple of float
        The grades that each of them may have.
    """

    low: float
    high: float
    value: float
    n_unjudged: int
    grades: tuple[float, ...] = field(repr=False)

    @property
    def width(self) -> float:
        """``high - low``."""
        return self.high - self.low

    @property
    def settled(self) -> bool:
        """Whether all grades give the same sign: the range does not hold 0, or nothing else."""
        return self.low > 0 or self.high < 0 or self.low == self.high

    def __str__(self) -> str:
        shown = ", ".join(f"{grade:g}" for grade in self.grades[:6]) + (", ..." if len(self.grades) > 6 else "")
        return (
            f"{self.value:.6f} ({self.low:.6f} to {self.high:.6f} over all grades {shown} of {self.n_unjudged} "
            "unjudged documents)"
        )


def range_of_value(
    scored: Scored,
    flavor: Flavor,
    k: int | None,
    value: float,
    max_grade: float | None,
    dcg: FloatArray,
    ideal: FloatArray,
) -> Range:
    """The range of the value of one system at one cut-off, whose queries had this DCG and ideal when it was evaluated.

    Raises
    ------
    RangeError
        The range is not known exactly for this flavor or these data.
    """
    grades = scale_of(flavor, scored.labels, max_grade)
    documents = documents_of(scored.queries, scored.scores, flavor, k)
    _refuse_changed(scored, documents, flavor, k, dcg)
    gains = gains_of_scale(flavor, grades)
    n_unjudged = int(documents.unjudged.sum())
    # An unjudged document outside the ideal changes nothing, because it was not retrieved.
    unjudged = documents.unjudged & documents.pooled
    closed = np.bincount(documents.query[unjudged], minlength=documents.n_queries) == 0
    kept = documents.pooled & ~closed[documents.query]
    of = _open(
        flavor,
        documents.query[kept],
        documents.gain[kept],
        documents.weight[kept],
        documents.cut,
        constant=np.where(closed, dcg, 0.0),
        fixed=np.where(closed, ideal, np.nan),
    )
    high = _extreme(of, gains, flavor, scored.weight, 1.0)
    low = -_extreme(of.negated(), gains, flavor, scored.weight, -1.0)
    low, high = (1.0 if 1 < limit < 1 + _ROUNDING else limit + 0.0 for limit in (low, high))
    return Range(low=low, high=high, value=value, n_unjudged=n_unjudged, grades=tuple(grades.tolist()))


def documents_at_hand(scored: Scored | None) -> Scored:
    """The documents of an evaluation.

    Raises
    ------
    RangeError
        It does not have them.
    """
    if scored is None:
        raise RangeError(
            "the range needs the documents of the evaluation, which are left out when it is pickled or saved, and "
            "which parts and slices do not have. Evaluate the labels and scores again."
        )
    return scored


def _refuse_changed(scored: Scored, documents: Documents, flavor: Flavor, k: int | None, dcg: FloatArray) -> None:
    """Refuse arrays that the caller changed after the evaluation, which refers to them.

    Raises
    ------
    RangeError
    """
    if flavor.unjudged == "condense" and documents.unjudged.any():
        queries = scored.queries
        judged = queries.groups.keep(~np.isnan(queries.labels.reshape(-1)))
        documents = documents_of(replace(queries, groups=judged), scored.scores, flavor, k)
    gains = np.where(documents.unjudged, 0.0, documents.gain)
    now = added(documents.query, gains * documents.weight, documents.n_queries)
    if not np.allclose(now, dcg, rtol=1e-9, atol=1e-9 * float(gains.max(initial=0.0))):
        raise RangeError(
            "the labels or scores must be those that were evaluated; the arrays have been changed since. Evaluate them "
            "again, or pass copies."
        )


def _open(
    flavor: Flavor,
    query: IntArray,
    gain: FloatArray,
    weight: FloatArray,
    cut: IntArray,
    *,
    constant: FloatArray,
    fixed: FloatArray,
) -> Open:
    """Documents of the ideal as a problem: those that are judged add to `constant`, the others have gain NaN."""
    unjudged, judged = np.isnan(gain), ~np.isnan(gain)
    return Open(
        constant=constant + added(query[judged], (gain * weight)[judged], constant.size),
        query=query[unjudged],
        weight=weight[unjudged],
        judged_query=query[judged],
        judged_gain=gain[judged],
        to_rank=prefix_sums(flavor, int(np.bincount(query).max(initial=0))),
        cut=cut,
        fixed=fixed,
    )


# -- from queries to the mean ------------------------------------------------------------------------------------------


def _extreme(problem: Open, gains: FloatArray, flavor: Flavor, weight: FloatArray | None, sign: float) -> float:
    """The largest of sign times the value; an empty query counts `sign` times what the flavor says, 0 for sign 0."""
    weight = np.ones(problem.n_queries) if weight is None else weight
    best = largest(problem, gains)
    counts = weight > 0
    ratio, weight, may_be_empty = best.ratio[counts], weight[counts], best.may_be_empty[counts]
    always = ratio == -np.inf
    if may_be_empty.any() and not isinstance(flavor.empty, str) and math.isnan(flavor.empty):
        raise UnsearchedRangeError(
            "empty must not be nan for a range over missing labels if a query may turn out without a relevant "
            f"document; got {int(may_be_empty.sum())} such queries. Evaluate again with empty=0, 1 or 'skip'."
        )
    if flavor.empty == "skip":
        # A query that may be empty is left out or not as the mean wants it: the highest ones are in.
        surely = ~may_be_empty
        maybe = np.flatnonzero(may_be_empty & ~always)
        maybe = maybe[np.argsort(-ratio[maybe], kind="stable")]
        total = float((ratio * weight)[surely].sum()) + np.append(0.0, np.cumsum((ratio * weight)[maybe]))
        size = float(weight[surely].sum()) + np.append(0.0, np.cumsum(weight[maybe]))
        means = np.divide(total, size, out=np.full(size.shape, -np.inf), where=size > 0)
        return _some_value(float(means.max()))
    if not isinstance(flavor.empty, str):
        ratio = np.where(may_be_empty, np.maximum(ratio, sign * flavor.empty), ratio)
    return _some_value(float(np.average(ratio, weights=weight)) if ratio.size else -math.inf)


def _some_value(value: float) -> float:
    if not math.isfinite(value):
        raise RangeError(
            "the range needs a query with a relevant document under some grades; got none. Check the labels, or pass "
            "max_grade= above 0."
        )
    return value


# -- two systems -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two systems on the same queries: every document of either, once, with its part in the difference b - a.

    Attributes
    ----------
    a, b : Scored
    flavor : Flavor
    k : int or None
    queries : ndarray of int, shape (n_queries, 2)
        Position of each query in a and in b.
    query : ndarray of int, shape (n_documents,)
        The query of each document, ascending.
    row : ndarray of int, shape (n_documents, 2)
        Its row in a and in b; -1 if it is not listed.
    gain : ndarray of float
        NaN if it is unjudged.
    weight : ndarray of float
        Its expected discount in b less that in a.
    pooled : ndarray of bool
        Whether its gain enters the ideal. The others have weight 0.
    cut : ndarray of int, shape (n_queries,)
    constant, fixed : ndarray of float, shape (n_queries,)
        Of a query without unjudged documents the difference and the ideal 1; otherwise 0 and NaN.
    weight_of_query : ndarray of float, shape (n_queries,)
    labels : ndarray of float
        All labels of either, for the scale.
    """

    a: Scored
    b: Scored
    flavor: Flavor
    k: int | None
    queries: IntArray
    query: IntArray
    row: IntArray
    gain: FloatArray
    weight: FloatArray
    pooled: BoolArray
    cut: IntArray
    constant: FloatArray
    fixed: FloatArray
    weight_of_query: FloatArray
    labels: FloatArray

    @property
    def unjudged(self) -> BoolArray:
        """Which documents have no label."""
        return np.isnan(self.gain)

    def open(self) -> Open:
        """The difference as a problem of one ratio per query."""
        kept = self.pooled
        return _open(
            self.flavor,
            self.query[kept],
            self.gain[kept],
            self.weight[kept],
            self.cut,
            constant=self.constant,
            fixed=self.fixed,
        )

    def range(self, difference: float, max_grade: float | None = None) -> Range:
        """Return the smallest and largest difference over all ways to grade the unjudged documents.

        Raises
        ------
        RangeError
        """
        grades = scale_of(self.flavor, self.labels, max_grade)
        gains, problem = gains_of_scale(self.flavor, grades), self.open()
        # A query is empty for both, or for neither, so that its difference is 0 whatever it scores.
        high = _extreme(problem, gains, self.flavor, self.weight_of_query, 0.0)
        low = -_extreme(problem.negated(), gains, self.flavor, self.weight_of_query, 0.0)
        n_unjudged = int(self.unjudged.sum())
        return Range(
            low=low + 0.0, high=high + 0.0, value=difference, n_unjudged=n_unjudged, grades=tuple(grades.tolist())
        )


def pair_of(
    a: Scored,
    b: Scored,
    flavor: Flavor,
    k: int | None,
    queries: IntArray,
    ndcg: FloatArray,
    dcg: tuple[FloatArray, FloatArray],
) -> Pair:
    """Match the documents of two systems.

    Parameters
    ----------
    a, b : Scored
    flavor : Flavor
    k : int or None
    queries : ndarray of int, shape (n_queries, 2)
        Position of each query in a and in b.
    ndcg : ndarray of float, shape (n_queries, 2)
        The NDCG of each, which is that under all grades if nothing is unjudged; NaN if it is empty and skipped.
    dcg : tuple of ndarray of float
        The DCG of all queries of a and of b when they were evaluated.

    Raises
    ------
    RangeError
        Documents cannot be matched or are judged differently, or the two ideals differ.
    """
    # The caller's arrays may have changed since they were evaluated; then the range would be one of other data.
    two = [documents_of(scored.queries, scored.scores, flavor, k) for scored in (a, b)]
    for side, scored in enumerate((a, b)):
        _refuse_changed(scored, two[side], flavor, k, dcg[side])

    # A query without unjudged documents is one number, and its documents need no matching: constant over the ideal 1,
    # or over 0 if it is skipped.
    closed = ~_have_unjudged(two, queries)
    skipped = np.isnan(ndcg[:, 0])
    constant = np.where(closed & ~skipped, ndcg[:, 1] - ndcg[:, 0], 0.0)
    fixed = np.where(closed, np.where(skipped, 0.0, 1.0), np.nan)
    both = _matched(a, b, two, queries, ~closed)
    gain, weight, pooled = _shared_gains(both, flavor), both.column("weight", 0.0), both.column("pooled", False)
    if flavor.ideal == "global":
        # A document that one system alone lists enters both ideals once it is judged.
        pooled[:] = True

    # Documents that gain 0 under every completion cannot change an ideal.
    cut = np.stack([documents.cut[queries[:, side]] for side, documents in enumerate(two)], axis=1)
    _refuse_two_ideals(flavor, both.query, np.isnan(gain) | (gain > 0), pooled, cut)
    return Pair(
        a=a,
        b=b,
        flavor=flavor,
        k=k,
        queries=queries,
        query=both.query,
        row=both.row,
        gain=gain,
        weight=weight[:, 1] - weight[:, 0],
        pooled=pooled[:, 0],
        cut=cut[:, 0],
        constant=constant,
        fixed=fixed,
        weight_of_query=np.ones(len(queries)) if a.weight is None else a.weight[queries[:, 0]],
        labels=np.concatenate([a.labels, b.labels]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Matched:
    """Every document of either system in some queries, once.

    Attributes
    ----------
    two : sequence of Documents
        The documents of a and of b.
    query : ndarray of int, shape (n_documents,)
        The query of each document, ascending.
    row, at : ndarray of int, shape (n_documents, 2)
        Its row in a and in b, and its place in `two`; -1 if it is not listed.
    """

    two: Sequence[Documents]
    query: IntArray
    row: IntArray
    at: IntArray

    def column(self, name: str, absent: float) -> NDArray[Any]:
        """An attribute of the documents in a and in b, shape (n_documents, 2)."""
        both = []
        for side, documents in enumerate(self.two):
            values = getattr(documents, name)
            out = np.full(self.query.size, absent, dtype=values.dtype)
            listed = self.at[:, side] >= 0
            out[listed] = values[self.at[listed, side]]
            both.append(out)
        return np.stack(both, axis=1)


def _have_unjudged(two: Sequence[Documents], queries: IntArray) -> BoolArray:
    """Which queries have an unjudged document in either system."""
    in_each = []
    for side, documents in enumerate(two):
        unjudged = np.bincount(documents.query[documents.unjudged], minlength=documents.n_queries)
        in_each.append(unjudged[queries[:, side]] > 0)
    return in_each[0] | in_each[1]


def _shared_gains(both: _Matched, flavor: Flavor) -> FloatArray:
    """The gain of each document, NaN if it is unjudged; both systems must have the same judgements."""
    # One unknown label stands for a document in both systems, so that both must have the same labels. Under the
    # global ideal a relevant document that one system lacks is a different ideal.
    gains, listed = both.column("gain", np.nan), both.at >= 0
    in_both = listed.all(axis=1)
    gain = np.where(listed[:, 0], gains[:, 0], gains[:, 1])
    differs = in_both & ~((gains[:, 0] == gains[:, 1]) | np.isnan(gains).all(axis=1))
    alone = ~in_both & (gain > 0) & (flavor.ideal == "global")
    if (differs | alone).any():
        raise RangeError(
            "both systems must be evaluated under the same judgements; "
            f"{int((differs | alone).sum())} documents are judged in one and otherwise, or not at all, in the other. "
            "Evaluate both with one set of labels."
        )
    return gain


def _refuse_two_ideals(flavor: Flavor, query: IntArray, matters: BoolArray, pooled: BoolArray, cut: IntArray) -> None:
    """Refuse ideals of different documents or lengths; `matters` says which documents may have a gain."""
    length = np.minimum(cut, np.bincount(query[pooled[:, 0]], minlength=len(cut))[:, None])
    differs = (pooled[:, 0] != pooled[:, 1]) | (length[:, 0] != length[:, 1])[query]
    queries = np.unique(query[differs & matters])
    if queries.size:
        raise UnsearchedRangeError(
            f"both systems must have one ideal in every query with unjudged documents; got two in {queries.size} "
            f"queries under ideal={flavor.ideal!r}, ideal_depth={flavor.ideal_depth!r}, because the systems retrieved "
            "other documents. Evaluate both with ideal='global', or give both the same candidates."
        )


def _matched(a: Scored, b: Scored, two: Sequence[Documents], queries: IntArray, wanted: BoolArray) -> _Matched:
    """The documents of the queries that are wanted."""
    number = [np.full(documents.n_queries, -1) for documents in two]
    for side in (0, 1):
        number[side][queries[wanted, side]] = np.flatnonzero(wanted)
    chosen = [np.flatnonzero(number[side][documents.query] >= 0) for side, documents in enumerate(two)]
    of_query = [number[side][documents.query[chosen[side]]] for side, documents in enumerate(two)]
    keys = _keys(a, b, [documents.row[chosen[side]] for side, documents in enumerate(two)])
    # Documents are one where query and key agree: numbered together, in the order of the queries.
    together = np.concatenate([one * (int(max(key.max(initial=0) for key in keys)) + 1) for one in of_query])
    documents_of_both, document = np.unique(together + np.concatenate(keys), return_inverse=True)
    document = document.reshape(-1)
    query = np.zeros(documents_of_both.size, dtype=np.int64)
    query[document] = np.concatenate(of_query)
    at, rows = np.full((query.size, 2), -1), np.full((query.size, 2), -1)
    for side, (mine, rows_here) in enumerate(zip(np.split(document, [chosen[0].size]), chosen, strict=True)):
        at[mine, side], rows[mine, side] = rows_here, two[side].row[rows_here]
    return _Matched(two, query, rows, at)


def _keys(a: Scored, b: Scored, rows: Sequence[IntArray]) -> list[IntArray]:
    """Number the documents of a query alike in both systems, by their ids or by their rows."""
    ours, theirs = a.queries, b.queries
    if ours.names is not None and theirs.names is not None:
        keys = [ours.names(rows[0]), theirs.names(rows[1])]
        kinds = [{isinstance(key, str) for key in some} for some in keys]
        if kinds[0] and kinds[1] and kinds[0] != kinds[1]:
            raise RangeError(
                "the documents of both systems must have ids of one type; got text on one side alone. Convert them, "
                "for example with str()."
            )
        seen: dict[Any, int] = {}
        return [np.fromiter((seen.setdefault(key, len(seen)) for key in some), np.int64, len(some)) for some in keys]
    if a.rows_are_documents and b.rows_are_documents and (ours is theirs or _same_rows(ours, theirs)):
        return [rows[0], rows[1]]
    raise RangeError(
        "the documents of both systems must have ids, so that one that both retrieve gets one grade; got none. Pass "
        "doc_id= to evaluate, or evaluate both on the same rows."
    )


def _same_rows(a: Any, b: Any) -> bool:
    """Whether two systems score the same rows: the same labels in the same queries."""

    def equal(one: Any, other: Any) -> bool:
        return one is other or (one is not None and other is not None and np.array_equal(one, other))

    return (
        a.labels.shape == b.labels.shape
        and np.array_equal(a.labels, b.labels, equal_nan=True)
        and equal(a.groups.sizes, b.groups.sizes)
        and equal(a.groups.order, b.groups.order)
        and equal(a.groups.ids, b.groups.ids)
    )
