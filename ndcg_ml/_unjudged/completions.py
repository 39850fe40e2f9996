"""Maximise NDCG, or a difference of two, over all possible grades of unjudged documents, exactly and in batches.

Gains come from a scale u_0 < u_1 < ... < u_S, and a gain is a sum of steps of this scale. If m_j is the number of a
query's unjudged documents with gain u_j or more, and K(v) that of its judged documents with gain v or more,

    DCG   = constant + sum over j of (u_j - u_(j-1)) C(m_j)
    ideal = constant + sum over j of A_j(m_j),   A_j(m) = sum over the gains v in (u_(j-1), u_j] of dv P(K(v) + m)

where dv is the step from one gain to the next, P the prefix sums of the discounts, and C those of the documents'
coefficients in descending order. The counts determine the ideal, and by the rearrangement inequality the DCG is largest
if the largest gains have the largest coefficients. Dinkelbach's iteration maximises the ratio over
m_1 >= m_2 >= ... >= m_S: it maximises DCG - t ideal, then sets t to the ratio there. For a given t, this is a sum over
j, so a running maximum from the top grade down finds the best counts. The minimum is found by negation.

W. Dinkelbach, On nonlinear fractional programming, Management Science 13(7), 1967.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.labels_gains_discounts import discounts, gain, grade
from ndcg_ml._core.layout import BoolArray, FloatArray, IntArray, ranges, starts_of
from ndcg_ml._core.numpy_kernel import order_ties
from ndcg_ml._core.printable import brief
from ndcg_ml._core.queries import Queries
from ndcg_ml.flavor import Flavor


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


def prefix_sums(flavor: Flavor, depth: int) -> FloatArray:
    """Return the sums of the discounts of the first 0, 1, ..., `depth` ranks."""
    return np.append(0.0, np.cumsum(discounts(flavor, depth)))


# -- the extremes of a ratio over all completions, in batches of queries ----------------------------------------------

# Numbers in the tables of a batch of queries: few enough to fit in the processor's cache.
_BATCH_SIZE = 1 << 17
# Dinkelbach's iteration converges superlinearly and needs far fewer rounds.
_MOST_ROUNDS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Queries with unjudged documents, the input of ``maximise_ratio``.

    Attributes
    ----------
    constant : ndarray of float, shape (n_queries,)
        Contribution of the judged documents to the numerator.
    query : ndarray of int, shape (n_unjudged,)
        The query of each unjudged document, ascending.
    weight : ndarray of float
        The coefficient of its gain in the numerator.
    judged_query : ndarray of int, shape (n_judged,)
    judged_gain : ndarray of float
        Gains of the judged documents in the ideal.
    to_rank : ndarray of float
        Prefix sums of the discounts, starting with 0, at least to the size of the largest pool.
    cut : ndarray of int, shape (n_queries,)
        Number of ranks in the ideal.
    fixed : ndarray of float, shape (n_queries,)
        The ideal of a query without unjudged documents; NaN for the others.
    """

    constant: FloatArray
    query: IntArray
    weight: FloatArray
    judged_query: IntArray
    judged_gain: FloatArray
    to_rank: FloatArray
    cut: IntArray
    fixed: FloatArray

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.constant.size

    def negate(self) -> Problem:
        """Return the problem with a negated numerator."""
        return replace(self, constant=-self.constant, weight=-self.weight)


def maximise_ratio(problem: Problem, scale: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Maximise each query's ratio of numerator and ideal over all gains of its unjudged documents.

    Parameters
    ----------
    problem : Problem
    scale : ndarray of float
        The gains, ascending; the first is 0 or more.

    Returns
    -------
    ratio : ndarray of float, shape (n_queries,)
        -inf if the ideal is 0 for all gains.
    may_be_empty : ndarray of bool, shape (n_queries,)
        Whether the ideal is 0 for some gains.
    """
    ratio, empty = np.empty(problem.n_queries), np.empty(problem.n_queries, dtype=bool)
    for part in _batches(problem, scale):
        lowest, highest = part.at_ends()
        empty[part.queries] = lowest.ideal <= 0
        # Dinkelbach's iteration may start at any completion: here the better of all lowest and all highest grades.
        t = np.maximum(_ratio(lowest), _ratio(highest))
        rows = np.flatnonzero(np.isfinite(t))
        for _ in range(_MOST_ROUNDS):
            better = _ratio(part.maximise(t[rows], rows))
            rising = better > t[rows]
            rows = rows[rising]
            if not rows.size:
                break
            t[rows] = better[rising]
        ratio[part.queries] = t
    return ratio, empty


def lowest_totals(problem: Problem, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return numerators and ideals if all unjudged documents have the lowest gain, but for one in the ideals.

    This one has each gain in turn, so that the ideals have the shape (n_gains, n_queries).
    """
    numerator, ideals = np.empty(problem.n_queries), np.empty((scale.size, problem.n_queries))
    for part in _batches(problem, scale):
        lowest, _ = part.at_ends()
        lifts = part.ideal[:, np.arange(part.count.size), np.minimum(part.count, 1)] - part.ideal[:, :, 0]
        numerator[part.queries], ideals[0, part.queries] = lowest
        ideals[1:, part.queries] = lowest.ideal + np.cumsum(lifts, axis=0)
    return numerator, ideals


def sum_by_query(query: IntArray, values: NDArray[Any], n_queries: int) -> FloatArray:
    """Return the sum of the values of each query."""
    return np.bincount(query, weights=values, minlength=n_queries).astype(np.float64)


class Completed(NamedTuple):
    """Numerator and ideal of each query under one completion of its labels."""

    numerator: FloatArray
    ideal: FloatArray


def _ratio(totals: Completed) -> FloatArray:
    out = np.full(totals.ideal.shape, -np.inf)
    return np.divide(totals.numerator, totals.ideal, out=out, where=totals.ideal > 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Tables:
    """Numerator and ideal of a batch of queries, as sums over the steps of the scale.

    Attributes
    ----------
    queries : ndarray of int, shape (n,)
    numerator, ideal : ndarray of float, shape (n_steps, n, width + 1)
        The contribution of step j if m documents reach it; constant beyond the number of documents.
    base : Completed
        The constant part.
    count : ndarray of int, shape (n,)
        Number of unjudged documents of each query.
    """

    queries: IntArray
    numerator: FloatArray
    ideal: FloatArray
    base: Completed
    count: IntArray

    def at_ends(self) -> tuple[Completed, Completed]:
        """Return the totals if all unjudged documents have the lowest gain, and if all have the highest."""
        none = np.zeros((len(self.numerator), self.count.size), dtype=np.int64)
        return self._totals(none, slice(None)), self._totals(none + self.count, slice(None))

    def maximise(self, t: FloatArray, rows: IntArray | slice) -> Completed:
        """Return the totals that maximise numerator - t ideal, for some of the queries."""
        n_steps, _, width = self.numerator.shape
        count = self.count[rows]
        above: FloatArray = np.zeros((count.size, 1))
        choices: list[IntArray] = []
        position = np.arange(width)
        for numerator, ideal in zip(self.numerator[::-1], self.ideal[::-1], strict=True):
            value = numerator[rows] - t[:, None] * ideal[rows] + above
            # The best value if at most m documents reach this step, and the number that attains it.
            above = np.maximum.accumulate(value, axis=1)
            choices.append(np.maximum.accumulate(np.where(value == above, position, 0), axis=1))
        counts = np.empty((n_steps, count.size), dtype=np.int64)
        at, row = count, np.arange(count.size)
        for step, choice in enumerate(reversed(choices)):
            at = counts[step] = choice[row, at]
        return self._totals(counts, rows)

    def _totals(self, counts: IntArray, rows: IntArray | slice) -> Completed:
        numerator, ideal = self.base.numerator[rows].copy(), self.base.ideal[rows].copy()
        which = np.arange(self.count.size)[rows]
        for step, at in enumerate(counts):
            numerator += self.numerator[step, which, at]
            ideal += self.ideal[step, which, at]
        return Completed(numerator, ideal)


def _batches(problem: Problem, scale: FloatArray) -> Iterator[_Tables]:
    """Yield tables of batches of queries with similar numbers of unjudged documents."""
    unjudged = np.bincount(problem.query, minlength=problem.n_queries)
    problem = _sort_by_weight(problem)
    sizes = np.bincount(problem.query, minlength=problem.n_queries)
    starts = starts_of(sizes)
    by_size = np.argsort(sizes, kind="stable")
    judged_order = np.argsort(problem.judged_query, kind="stable")
    judged_sizes = np.bincount(problem.judged_query, minlength=problem.n_queries)
    judged_starts = starts_of(judged_sizes)
    at = 0
    while at < by_size.size:
        table_sizes = (sizes[by_size[at:]] + 1) * max(scale.size, 1) * np.arange(1, by_size.size - at + 1)
        stop = at + max(1, int(np.searchsorted(table_sizes, _BATCH_SIZE, side="right")))
        queries = by_size[at:stop]
        judged = judged_order[ranges(judged_starts[queries], judged_sizes[queries])]
        yield _make_tables(problem, scale, queries, starts[queries], sizes[queries], judged, unjudged[queries])
        at = stop


def _sort_by_weight(problem: Problem) -> Problem:
    """Sort the unjudged documents of each query by descending weight, and drop those without effect."""
    order = np.lexsort((-problem.weight, problem.query))
    query, free = problem.query[order], problem.weight[order] == 0
    # Documents of weight 0 affect only the ideal, and no more of them than it has ranks.
    before = np.cumsum(free)
    starts = starts_of(np.bincount(query))
    before -= np.append(0, before)[starts[query]]
    order = order[~free | (before <= problem.cut[query])]
    return replace(problem, query=problem.query[order], weight=problem.weight[order])


def _make_tables(
    problem: Problem,
    scale: FloatArray,
    queries: IntArray,
    starts: IntArray,
    count: IntArray,
    judged: IntArray,
    unjudged: IntArray,
) -> _Tables:
    """Make the tables of these queries. `judged` lists their judged documents, `unjudged` counts the unjudged ones."""
    # One row per query, padded to the largest number of unjudged documents. Column m sums the first m weights.
    n, width, n_steps = queries.size, int(count.max()), scale.size - 1
    weights = np.zeros((n, width + 1))
    weights[:, 1:][np.arange(width) < count[:, None]] = problem.weight[ranges(starts, count)]
    coefficients = np.cumsum(weights, axis=1)
    # A document adds its gain times its weight. A step of the scale adds the difference of two gains. All documents
    # have at least the lowest gain, which is part of the base.
    numerator, ideal = np.diff(scale)[:, None, None] * coefficients, np.zeros((n_steps, n, width + 1))
    base_numerator = problem.constant[queries] + scale[0] * coefficients[:, -1]
    base_ideal = np.zeros(n)
    # The levels are all gains that a document has or may have. Count the judged documents that reach each level.
    gains = problem.judged_gain[judged]
    levels = np.union1d(gains, scale)
    code = np.repeat(np.arange(n), np.bincount(problem.judged_query, minlength=problem.n_queries)[queries])
    place = np.searchsorted(levels, gains, side="right")  # number of levels that the gain reaches
    exactly = np.bincount(place * n + code, minlength=(levels.size + 1) * n).reshape(levels.size + 1, n)
    reached = exactly[::-1].cumsum(axis=0)[::-1][1:]
    # A gain is the sum of the steps between levels up to it, so the ideal is a sum over levels.
    cut = problem.cut[queries]
    counts = np.minimum(np.arange(width + 1), count[:, None])
    below = 0.0
    for at_level, level in enumerate(levels.tolist()):
        size, below = level - below, level
        step = int(np.searchsorted(scale, level))
        judged_here = reached[at_level]
        # Either all unjudged documents reach this level, or none can, or some may.
        if step == 0:
            base_ideal += size * problem.to_rank[np.minimum(judged_here + unjudged, cut)]
        elif step == scale.size:
            base_ideal += size * problem.to_rank[np.minimum(judged_here, cut)]
        else:
            ideal[step - 1] += size * problem.to_rank[np.minimum(judged_here[:, None] + counts, cut[:, None])]
    fixed = problem.fixed[queries]
    known = ~np.isnan(fixed)
    ideal[:, known], base_ideal[known] = 0.0, fixed[known]
    return _Tables(queries, numerator, ideal, Completed(base_numerator, base_ideal), count)
