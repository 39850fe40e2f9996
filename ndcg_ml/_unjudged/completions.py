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

from ndcg_ml._core.labels_gains_discounts import discounts
from ndcg_ml._core.layout import BoolArray, FloatArray, IntArray, ranges, starts_of
from ndcg_ml.flavor import Flavor

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


def prefix_sums(flavor: Flavor, depth: int) -> FloatArray:
    """Return the sums of the discounts of the first 0, 1, ..., `depth` ranks."""
    return np.append(0.0, np.cumsum(discounts(flavor, depth)))


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
