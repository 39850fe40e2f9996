"""Compute the smallest and largest value, or difference of two, over all grades of unjudged documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.layout import BoolArray, FloatArray, IntArray
from ndcg_ml._core.mean_and_empty_queries import Totals
from ndcg_ml._core.queries import Scored
from ndcg_ml._core.scores import MODIFIED, is_modified
from ndcg_ml._unjudged import completions
from ndcg_ml.flavor import Flavor

# Values that exceed 1 by less than this are perfect up to rounding, and limits this close are one value.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """The smallest and largest value over all possible grades of the unjudged documents.

    Attributes
    ----------
    low, high : float
        The smallest and the largest value. Both are attained.
    value : float
        The current value, under the flavor's rule for unjudged documents.
    n_unjudged : int
        Number of unjudged documents.
    grades : tuple of float
        The possible grades of an unjudged document.
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
        """Whether all grades give the same sign: the range excludes 0, or is a single value up to rounding."""
        return self.low > 0 or self.high < 0 or self.width < _ROUNDING

    def __str__(self) -> str:
        grades = ", ".join(f"{grade:g}" for grade in self.grades[:6]) + (", ..." if len(self.grades) > 6 else "")
        return (
            f"{self.value:.6f} ({self.low:.6f} to {self.high:.6f} over all grades {grades} of {self.n_unjudged} "
            "unjudged documents)"
        )


def compute_range(
    scored: Scored,
    flavor: Flavor,
    k: int | None,
    value: float,
    max_grade: float | None,
    dcg: FloatArray,
    ideal: FloatArray,
) -> Range:
    """Return the range of one system's value at one cut-off; `dcg` and `ideal` come from its evaluation.

    Raises
    ------
    RangeError
        The exact range is unknown for this flavor or these data.
    """
    grades = completions.find_scale(flavor, scored.labels, max_grade)
    documents = completions.weigh_documents(scored.queries, scored.scores, flavor, k)
    gains = completions.compute_gains(flavor, grades)
    n_unjudged = int(documents.unjudged.sum())
    # An unjudged document outside the ideal has no effect, because it was not retrieved.
    unjudged = documents.unjudged & documents.pooled
    closed = np.bincount(documents.query[unjudged], minlength=documents.n_queries) == 0
    problem = documents.ratios(flavor, np.where(closed, dcg, 0.0), np.where(closed, ideal, np.nan))
    high = _maximise(problem, gains, flavor, scored.queries.weight, 1.0)
    low = -_maximise(problem.negate(), gains, flavor, scored.queries.weight, -1.0)
    low, high = (1.0 if 1 < limit < 1 + _ROUNDING else limit + 0.0 for limit in (low, high))
    return Range(low=low, high=high, value=value, n_unjudged=n_unjudged, grades=tuple(grades.tolist()))


def require_documents(scored: Scored | None, totals: Totals, flavor: Flavor) -> Scored:
    """Return the documents of an evaluation with these totals.

    Raises
    ------
    RangeError
        The evaluation does not hold them.
    ModifiedError
        The caller modified the arrays after the evaluation, so that the range would not be that of the evaluation.
    """
    if scored is None:
        raise completions.RangeError(
            "the range needs the documents of the evaluation, which pickled and saved evaluations, parts, slices and "
            "results of evaluate_topk do not hold. Evaluate the labels and scores again, or use evaluate_run."
        )
    if is_modified(scored, totals, flavor):
        raise completions.ModifiedError(MODIFIED)
    return scored


def _maximise(
    problem: completions.Problem, gains: FloatArray, flavor: Flavor, weight: FloatArray | None, sign: float
) -> float:
    """Maximise the mean ratio. Empty queries count `sign` times the flavor's ``empty``; differences have `sign` 0."""
    weight = np.ones(problem.n_queries) if weight is None else weight
    counts = weight > 0
    ratio, may_be_empty = completions.maximise_ratio(problem, gains)
    ratio, may_be_empty, weight = ratio[counts], may_be_empty[counts], weight[counts]
    if may_be_empty.any() and not isinstance(flavor.empty, str) and math.isnan(flavor.empty):
        raise completions.RangeError(
            "empty must not be nan for a range over missing labels if a query may have no relevant "
            f"document; got {int(may_be_empty.sum())} such queries. Evaluate again with empty=0, 1 or 'skip'."
        )
    if flavor.empty == "skip":
        # Queries that may be empty are optional. The largest mean includes those with the highest ratios.
        required = ~may_be_empty
        optional = np.flatnonzero(may_be_empty & (ratio > -np.inf))
        optional = optional[np.argsort(-ratio[optional], kind="stable")]
        total = float((ratio * weight)[required].sum()) + np.append(0.0, np.cumsum((ratio * weight)[optional]))
        size = float(weight[required].sum()) + np.append(0.0, np.cumsum(weight[optional]))
        # Some queries are required, because an evaluation of empty ones alone was refused.
        return float((total / size).max())
    if not isinstance(flavor.empty, str):
        ratio = np.where(may_be_empty, np.maximum(ratio, sign * flavor.empty), ratio)
    return float(np.average(ratio, weights=weight))


# -- two systems -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Pair(completions.Documents):
    """The documents of either of two systems on the same queries, with their weights in the difference b - a.

    Those of a query without unjudged documents are left out.

    Attributes
    ----------
    query, gain, pooled, cut
        As in ``Documents``, which are the same in both systems.
    row : ndarray of int, shape (n_documents, 2)
        The document's row in a and in b; -1 if it is missing.
    weight : ndarray of float
        Its expected discount in b minus that in a.
    a, b : Scored
    flavor : Flavor
    constant, fixed : ndarray of float, shape (n_queries,)
        The difference and the ideal 1 if the query has no unjudged documents; otherwise 0 and NaN.
    weight_of_query : ndarray of float, shape (n_queries,)
    """

    a: Scored
    b: Scored
    flavor: Flavor
    constant: FloatArray
    fixed: FloatArray
    weight_of_query: FloatArray

    def within(self, chosen: Sequence[bool]) -> Pair:
        """Return the difference of the mean over some queries."""
        return replace(self, weight_of_query=np.where(chosen, self.weight_of_query, 0.0))

    def problem(self) -> completions.Problem:
        """Return the difference as a problem with one ratio per query."""
        return self.ratios(self.flavor, self.constant, self.fixed)

    def range(self, difference: float, max_grade: float | None = None) -> Range:
        """Return the smallest and largest difference over all grades of the unjudged documents.

        Raises
        ------
        RangeError
        """
        grades = completions.find_scale(self.flavor, np.concatenate([self.a.labels, self.b.labels]), max_grade)
        gains, problem = completions.compute_gains(self.flavor, grades), self.problem()
        # A query is empty for both systems or for neither, so the difference of an empty query is 0.
        high = _maximise(problem, gains, self.flavor, self.weight_of_query, 0.0)
        low = -_maximise(problem.negate(), gains, self.flavor, self.weight_of_query, 0.0)
        n_unjudged = int(self.unjudged[self.weight_of_query[self.query] > 0].sum())
        return Range(
            low=low + 0.0, high=high + 0.0, value=difference, n_unjudged=n_unjudged, grades=tuple(grades.tolist())
        )


def match_systems(
    a: Scored,
    b: Scored,
    flavor: Flavor,
    k: int | None,
    queries: IntArray,
    ndcg: FloatArray,
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
        The NDCG of each query, which is fixed if nothing is unjudged; NaN if the query is empty and skipped.

    Raises
    ------
    RangeError
        Documents cannot be matched, their labels differ, or the two ideals differ.
    """
    two = [completions.weigh_documents(scored.queries, scored.scores, flavor, k) for scored in (a, b)]

    # The documents of a query without unjudged ones need no matching. Its ratio is the constant over the ideal 1, or
    # over 0 if it is skipped.
    counts = [np.bincount(side.query[side.unjudged], minlength=side.n_queries) for side in two]
    closed = (counts[0][queries[:, 0]] == 0) & (counts[1][queries[:, 1]] == 0)
    skipped = np.isnan(ndcg[:, 0])
    constant = np.where(closed & ~skipped, ndcg[:, 1] - ndcg[:, 0], 0.0)
    fixed = np.where(closed, np.where(skipped, 0.0, 1.0), np.nan)
    query, at = _match(a, b, two, queries, ~closed)

    def column(name: str, absent: float) -> NDArray[Any]:
        """Return an attribute of the documents in a and in b, shape (n_documents, 2)."""
        # A document that a system lacks is at -1, where the value for absent documents is.
        return np.stack([np.append(getattr(side, name), absent)[i] for side, i in zip(two, at.T, strict=True)], axis=1)

    gain, weight, pooled = (
        _join_gains(column("gain", np.nan), at >= 0, flavor),
        column("weight", 0.0),
        column("pooled", False),
    )
    if flavor.ideal == "global":
        # A document that only one system lists enters both ideals if it is judged.
        pooled[:] = True

    # Documents with gain 0 under every completion do not affect the ideal.
    cut = np.stack([documents.cut[queries[:, side]] for side, documents in enumerate(two)], axis=1)
    _require_same_ideal(flavor, query, np.isnan(gain) | (gain > 0), pooled, cut)
    return Pair(
        query=query,
        row=column("row", -1),
        gain=gain,
        weight=weight[:, 1] - weight[:, 0],
        pooled=pooled[:, 0],
        cut=cut[:, 0],
        a=a,
        b=b,
        flavor=flavor,
        constant=constant,
        fixed=fixed,
        weight_of_query=np.ones(len(queries)) if a.queries.weight is None else a.queries.weight[queries[:, 0]],
    )


def _join_gains(gains: FloatArray, listed: BoolArray, flavor: Flavor) -> FloatArray:
    """Return the gain of each document from those in a and in b. Raise if the systems' judgements differ."""
    # A document has the same unknown label in both systems, so the known labels must agree too. Under the global ideal,
    # a relevant document that one system lacks makes the ideals differ.
    in_both = listed.all(axis=1)
    gain = np.where(listed[:, 0], gains[:, 0], gains[:, 1])
    differs = in_both & ~((gains[:, 0] == gains[:, 1]) | np.isnan(gains).all(axis=1))
    alone = ~in_both & (gain > 0) & (flavor.ideal == "global")
    if (differs | alone).any():
        raise completions.RangeError(
            f"both systems must have the same judgements; got {int((differs | alone).sum())} documents with different "
            "labels, or with a label in only one system. Evaluate both with the same labels."
        )
    return gain


def _require_same_ideal(flavor: Flavor, query: IntArray, matters: BoolArray, pooled: BoolArray, cut: IntArray) -> None:
    """Raise if the ideals differ in documents or length; `matters` marks the documents that may have a gain."""
    length = np.minimum(cut, np.bincount(query[pooled[:, 0] & matters], minlength=len(cut))[:, None])
    differs = (pooled[:, 0] != pooled[:, 1]) | (length[:, 0] != length[:, 1])[query]
    queries = np.unique(query[differs & matters])
    if queries.size:
        raise completions.RangeError(
            f"both systems must have the same ideal in queries with unjudged documents; got two in {queries.size} "
            f"queries under ideal={flavor.ideal!r}, ideal_depth={flavor.ideal_depth!r}, because the systems retrieved "
            "different documents. Evaluate both with ideal='global' and ideal_depth='k', or give both the same ones."
        )


def _match(
    a: Scored, b: Scored, two: Sequence[completions.Documents], queries: IntArray, selected: BoolArray
) -> tuple[IntArray, IntArray]:
    """Match the documents of the selected queries.

    Return the query of each document, ascending, and its position in `two`, shape (n_documents, 2); -1 if it is absent.
    """
    chosen, of_query = [], []
    for side, documents in enumerate(two):
        number = np.full(documents.n_queries, -1, dtype=np.int64)
        number[queries[selected, side]] = np.flatnonzero(selected)
        chosen.append(np.flatnonzero(number[documents.query] >= 0))
        of_query.append(number[documents.query[chosen[side]]])
    keys = np.concatenate(_keys(a, b, [documents.row[mine] for documents, mine in zip(two, chosen, strict=True)]))
    # Rows with the same query and key are one document. Number the documents in query order.
    query = np.concatenate(of_query)
    _, first, number = np.unique(query * (int(keys.max(initial=0)) + 1) + keys, return_index=True, return_inverse=True)
    at = np.full((first.size, 2), -1)
    for side, numbers in enumerate(np.split(number.reshape(-1), [chosen[0].size])):
        at[numbers, side] = chosen[side]
    return query[first], at


def _keys(a: Scored, b: Scored, rows: Sequence[IntArray]) -> list[IntArray]:
    """Number the documents of a query consistently in both systems, by their ids or rows."""
    ours, theirs = a.queries, b.queries
    if ours.names is not None and theirs.names is not None:
        keys = [ours.names(rows[0]), theirs.names(rows[1])]
        kinds = [{isinstance(key, str) for key in some} for some in keys]
        if kinds[0] and kinds[1] and kinds[0] != kinds[1]:
            raise completions.RangeError(
                "the documents of both systems must have ids of one type; got strings in one system only. Convert "
                "them, for example with str()."
            )
        seen: dict[Any, int] = {}
        return [np.fromiter((seen.setdefault(key, len(seen)) for key in some), np.int64, len(some)) for some in keys]
    same_rows = ours is theirs or (
        np.array_equal(ours.labels, theirs.labels, equal_nan=True)
        and all(
            np.array_equal(getattr(ours.groups, name), getattr(theirs.groups, name))
            for name in ("sizes", "order", "ids")
        )
    )
    if a.rows_are_documents and b.rows_are_documents and same_rows:
        return [rows[0], rows[1]]
    raise completions.RangeError(
        "the documents of both systems must have ids, so that one in both systems has one grade; got none. Pass "
        "doc_id= to evaluate, or evaluate both on the same rows."
    )
