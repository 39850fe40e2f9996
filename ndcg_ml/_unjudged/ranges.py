"""The smallest and largest value, or difference of two, over all grades of unjudged documents; when it is unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.labels_gains_discounts import discounts, gain, grade
from ndcg_ml._core.layout import BoolArray, FloatArray, IntArray
from ndcg_ml._core.mean_and_empty_queries import Totals
from ndcg_ml._core.numpy_kernel import order_ties
from ndcg_ml._core.queries import Queries, Scored
from ndcg_ml._core.scores import MODIFIED, is_modified
from ndcg_ml._plain.messages import brief
from ndcg_ml._unjudged.completions import Problem, maximise_ratio, prefix_sums, sum_by_query
from ndcg_ml.flavor import Flavor

# Values that exceed 1 by less than this are perfect up to rounding, and limits this close are one value.
_ROUNDING = 1e-12


class RangeError(ValueError):
    """The exact range over all completions of the labels is unknown for these data. The message says why."""


class ModifiedError(RangeError):
    """The caller modified the labels or the scores after the evaluation."""


# -- the grades that an unjudged document may have, and their gains ---------------------------------------------------

# Relevance scales are shorter. Labels with more values are measurements.
_LONGEST_SCALE = 1001


def find_scale(flavor: Flavor, labels: FloatArray, max_grade: float | None) -> FloatArray:
    """Return the grades that an unjudged document may have, ascending.

    They are 0, 1, ..., `max_grade` (default: the flavor's ``max_grade``); without either, 0 and the grades seen.

    Parameters
    ----------
    flavor : Flavor
    labels : ndarray of float
        All labels; NaN if missing.
    max_grade : float or None

    Raises
    ------
    TypeError
        `max_grade` is not a number.
    RangeError
        `max_grade` is not an integer >= 0, a grade seen exceeds it, or the scale is unknown or too long.
    """
    # Negative labels are grades only if the flavor computes gains from them.
    seen = np.unique(labels[~np.isnan(labels)])
    if flavor.negative != "allow":
        seen = seen[seen >= 0]
    # Without a maximum, the scale is 0 and the grades seen. A scale of 0 alone would mean that no unjudged document
    # can be relevant.
    top = flavor.max_grade if max_grade is None else max_grade
    if top is None:
        grades = np.union1d(seen, 0.0)
        if grades[-1] <= 0 and flavor.gain != "judged" and np.isnan(labels).any():
            raise RangeError(
                "max_grade must be given if no label is relevant, because the possible grades of unjudged documents "
                "are unknown; got None. Pass the highest grade of the scale, such as max_grade=3."
            )
    # With a maximum, the scale is 0, 1, ..., top. If top is a fraction, it is 0, the grades seen and top.
    else:
        if isinstance(top, (bool, np.bool_)) or not isinstance(top, (int, float, np.integer, np.floating)):
            raise TypeError(f"max_grade must be a number, the highest grade, or None; got {brief(top)}.")
        if not 0 <= top < np.inf or (max_grade is not None and top != int(top)):
            raise RangeError(
                f"max_grade must be an integer >= 0, so that the scale is 0, 1, ..., max_grade; got "
                f"{brief(top)}. Leave it out for a scale of the grades seen."
            )
        if seen.size and seen[-1] > top and max_grade is not None:
            raise RangeError(
                f"max_grade must be at least the highest label; got {brief(top)} and the label {seen[-1]:g}. Raise it "
                "to the highest grade of the scale."
            )
        # A scale that is too long raises below. It is not allocated as a whole, because the maximum may be 1e300.
        if top == int(top) or top >= _LONGEST_SCALE:
            grades = np.arange(min(top, _LONGEST_SCALE) + 1.0)
        else:
            grades = np.union1d(seen, [0.0, top])
    # Either scale must be short enough to search, and every grade must have a gain.
    if grades.size > _LONGEST_SCALE:
        raise RangeError(
            f"the scale must have at most {_LONGEST_SCALE} grades for a range over missing labels; got more. Pass "
            f"max_grade= of at most {_LONGEST_SCALE - 1}, for a scale 0, 1, ..., max_grade."
        )
    if isinstance(flavor.gain, tuple) and flavor.off_table == "raise" and grades[-1] >= len(flavor.gain):
        raise RangeError(
            f"max_grade must be a grade of the gain table, at most {len(flavor.gain) - 1}; got {grades[-1]:g}. "
            "Extend the table, or lower max_grade."
        )
    return grades


def compute_gains(flavor: Flavor, grades: FloatArray) -> FloatArray:
    """Return the distinct gains of the grades of a scale, ascending.

    Raises
    ------
    RangeError
        A gain is negative, or too large to be summed in float64.
    """
    gains = np.unique(gain(flavor, grades))
    _check_gains(gains)
    return gains


def _check_gains(gains: FloatArray) -> None:
    if gains.size and gains.min() < 0:
        raise RangeError(
            "gains must be >= 0 for a range over missing labels, because an ideal DCG that may be negative makes "
            f"the ratio unbounded; got {gains.min():g}. Choose negative='zero' or 'drop', or a table of gains >= 0."
        )
    if gains.size and not gains.max() < 2.0**400:
        raise RangeError(
            "gains must be at most 1e120 for a range over missing labels, so that float64 can sum them; got larger "
            "ones. Use a smaller grade scale."
        )


# -- the documents of a ranking, with weights that do not depend on labels --------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a ranking at one cut-off, grouped by query.

    Attributes
    ----------
    query : ndarray of int, shape (n_documents,)
        The query of each document, ascending.
    row : ndarray of int
        Its row in the caller's arrays.
    gain : ndarray of float
        NaN if the document is unjudged.
    weight : ndarray of float
        Its expected discount; 0 if it was not retrieved or is below the cut-off.
    pooled : ndarray of bool
        Whether its gain enters the ideal. The others have weight 0.
    cut : ndarray of int, shape (n_queries,)
        Number of ranks in the ideal.
    """

    query: IntArray
    row: IntArray
    gain: FloatArray
    weight: FloatArray
    pooled: BoolArray
    cut: IntArray

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.cut.size

    @property
    def unjudged(self) -> BoolArray:
        """Which documents have no label."""
        return np.isnan(self.gain)

    def ratios(self, flavor: Flavor, constant: FloatArray, fixed: FloatArray) -> Problem:
        """Return the ratio of each query. A query whose `fixed` ideal is not NaN has the numerator `constant`."""
        kept = self.pooled & np.isnan(fixed)[self.query]
        query, gain, weight = self.query[kept], self.gain[kept], self.weight[kept]
        unjudged, judged = np.isnan(gain), ~np.isnan(gain)
        return Problem(
            constant=constant + sum_by_query(query[judged], (gain * weight)[judged], constant.size),
            query=query[unjudged],
            weight=weight[unjudged],
            judged_query=query[judged],
            judged_gain=gain[judged],
            to_rank=prefix_sums(flavor, int(np.bincount(query).max(initial=0))),
            cut=self.cut,
            fixed=fixed,
        )


# The supported values of switches. Errors recommend the first one.
_SUPPORTED: dict[str, tuple[str | None, ...]] = {
    "ties": ("average", "first", "last", "docid", "docid_ascending"),
    "ideal": ("global", "recall"),
    "recall_depth": (None,),
    "aggregate": ("macro",),
}


def _require_support(flavor: Flavor, queries: Queries) -> None:
    for switch, supported in _SUPPORTED.items():
        value = getattr(flavor, switch)
        if value not in supported:
            words = " or ".join(map(repr, supported))
            raise RangeError(
                f"{switch} must be {words} for a range over missing labels; got {value!r}. Evaluate again with "
                f"{switch}={supported[0]!r}."
            )
    if queries.repeats is not None:
        raise RangeError(
            "every document must be listed once per query for a range over missing labels; got repeated ids in "
            "doc_id. Remove the duplicates."
        )


def weigh_documents(queries: Queries, scores: NDArray[Any], flavor: Flavor, k: int | None) -> Documents:
    """Return the weight of each document under these scores, which missing labels do not change.

    Parameters
    ----------
    queries : Queries
    scores : ndarray, shape (n_rows,)
        In the precision in which the flavor compares them.
    flavor : Flavor
    k : int or None

    Raises
    ------
    RangeError
        The range is not supported for this flavor or these data.
    """
    _require_support(flavor, queries)
    with np.errstate(invalid="ignore"):
        labels = queries.labels.reshape(-1).astype(np.float64, copy=False)
    missing = np.isnan(labels)
    # A completion labels every document, so the flavor's rule for unjudged ones does not apply. Grade 0 replaces
    # missing labels, and its gain is not used.
    graded = grade(flavor, np.where(missing, 0.0, labels), queries.groups, queries.retrieved)
    _check_gains(graded.judged.arrange(graded.gains))
    layout = order_ties(graded.ranked, flavor, graded.gains, queries.doc_order)

    # The ranked rows in rank order: the rank of each from 0, and the first rank and the size of its tie group.
    rows, query = layout.rows(), layout.codes()
    keys = -scores[rows]
    by_rank = np.lexsort((keys, query))
    rows, keys = rows[by_rank], keys[by_rank]
    rank = np.arange(rows.size) - layout.starts[query]
    begins = np.append(True, (keys[1:] != keys[:-1]) | (query[1:] != query[:-1]))[: rows.size]
    tie_group, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    start, size = rank[first][tie_group], np.diff(np.append(first, rows.size))[tie_group]

    # The expected discount of each, up to the cut-off.
    n_ranked = graded.ranked.sizes
    depth = n_ranked if k is None else np.minimum(n_ranked, k)
    if flavor.short_lists == "zero" and k is not None:
        depth = np.where(n_ranked < k, 0, depth)
    longest = int(graded.documents.sizes.max())
    table, to_rank, cut = discounts(flavor, longest), prefix_sums(flavor, longest), depth[query]
    discount = np.where(rank < cut, table[rank], 0.0)
    if flavor.ties == "average":
        mean = (to_rank[np.minimum(start + size, cut)] - to_rank[np.minimum(start, cut)]) / size
        # A mean of one discount would be rounded.
        discount = np.where(size == 1, discount, mean)
    weight, ranked = np.zeros(labels.size), np.zeros(labels.size, dtype=bool)
    weight[rows], ranked[rows] = discount, True

    # Collect all documents, including those that were not retrieved.
    listed = graded.judged.rows()
    ideal_cut = np.full(n_ranked.size, np.iinfo(np.int64).max // 4)
    if k is not None and flavor.ideal_depth != "all":
        ideal_cut[:] = k
    if flavor.ideal_depth == "retrieved":
        ideal_cut = np.minimum(ideal_cut, n_ranked)
    return Documents(
        query=graded.judged.codes(),
        row=listed,
        gain=np.where(missing, np.nan, graded.gains)[listed],
        weight=weight[listed],
        pooled=ranked[listed] | (flavor.ideal == "global"),
        cut=ideal_cut,
    )


# -- the value of one system -------------------------------------------------------------------------------------------


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
    grades = find_scale(flavor, scored.labels, max_grade)
    documents = weigh_documents(scored.queries, scored.scores, flavor, k)
    gains = compute_gains(flavor, grades)
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
        raise RangeError(
            "the range needs the documents of the evaluation, which pickled and saved evaluations, parts, slices and "
            "results of evaluate_topk do not hold. Evaluate the labels and scores again, or use evaluate_run."
        )
    if is_modified(scored, totals, flavor):
        raise ModifiedError(MODIFIED)
    return scored


def _maximise(problem: Problem, gains: FloatArray, flavor: Flavor, weight: FloatArray | None, sign: float) -> float:
    """Maximise the mean ratio. Empty queries count `sign` times the flavor's ``empty``; differences have `sign` 0."""
    weight = np.ones(problem.n_queries) if weight is None else weight
    counts = weight > 0
    ratio, may_be_empty = maximise_ratio(problem, gains)
    ratio, may_be_empty, weight = ratio[counts], may_be_empty[counts], weight[counts]
    if may_be_empty.any() and not isinstance(flavor.empty, str) and math.isnan(flavor.empty):
        raise RangeError(
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
class Pair(Documents):
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

    def problem(self) -> Problem:
        """Return the difference as a problem with one ratio per query."""
        return self.ratios(self.flavor, self.constant, self.fixed)

    def range(self, difference: float, max_grade: float | None = None) -> Range:
        """Return the smallest and largest difference over all grades of the unjudged documents.

        Raises
        ------
        RangeError
        """
        grades = find_scale(self.flavor, np.concatenate([self.a.labels, self.b.labels]), max_grade)
        gains, problem = compute_gains(self.flavor, grades), self.problem()
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
    two = [weigh_documents(scored.queries, scored.scores, flavor, k) for scored in (a, b)]

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
        raise RangeError(
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
        raise RangeError(
            f"both systems must have the same ideal in queries with unjudged documents; got two in {queries.size} "
            f"queries under ideal={flavor.ideal!r}, ideal_depth={flavor.ideal_depth!r}, because the systems retrieved "
            "different documents. Evaluate both with ideal='global' and ideal_depth='k', or give both the same ones."
        )


def _match(
    a: Scored, b: Scored, two: Sequence[Documents], queries: IntArray, selected: BoolArray
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
            raise RangeError(
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
    raise RangeError(
        "the documents of both systems must have ids, so that one in both systems has one grade; got none. Pass "
        "doc_id= to evaluate, or evaluate both on the same rows."
    )
