"""The least and the largest value, or difference of two, that any way to grade the unjudged documents gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import FloatArray
from ndcg_ml._data.scored_documents import Scored
from ndcg_ml._kernel.gains import discounts
from ndcg_ml._unjudged.completions import Best, Open, added, largest, largest_of_sums
from ndcg_ml._unjudged.documents import (
    Documents,
    RangeError,
    UnsearchedRangeError,
    documents_of,
    gains_of_scale,
    scale_of,
)
from ndcg_ml.flavor import Flavor

# A perfect ranking may come out as 1 + a few rounding errors; that is 1.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """What missing labels leave open: the least and the largest value over all ways to grade what is unjudged.

    Attributes
    ----------
    low, high : float
        The least and the largest value. Both are reached by some grades.
    value : float
        The value now, under the flavor's rule for unjudged documents.
    n_unjudged : int
        How many documents are unjudged.
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
    refuse_changed(scored, documents, flavor, k, dcg)
    _refuse_moving(
        flavor, documents.query[_moving(documents, np.arange(documents.row.size), documents.unjudged, flavor)]
    )
    of, gains = _open(documents, flavor, dcg, ideal), gains_of_scale(flavor, grades)
    n_unjudged = int(documents.unjudged.sum())
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


def refuse_changed(scored: Scored, documents: Documents, flavor: Flavor, k: int | None, dcg: FloatArray) -> None:
    """Refuse arrays that the caller changed after the evaluation, which refers to them.

    Raises
    ------
    RangeError
    """
    if flavor.ties in ("best", "worst"):  # the weights there are those of the grades that the search is about
        return
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


# -- one system --------------------------------------------------------------------------------------------------------


def _open(documents: Documents, flavor: Flavor, dcg: FloatArray, ideal: FloatArray) -> Open:
    """The documents of one system as a problem: what is judged adds constants.

    `dcg` and `ideal` are those of the queries now, which no label changes where none is missing.
    """
    # A document that is neither ranked nor in the ideal changes nothing.
    unjudged = documents.unjudged & ((documents.run >= 0) | documents.pooled)
    closed = np.bincount(documents.query[unjudged], minlength=documents.n_queries) == 0
    judged = ~documents.unjudged & ~closed[documents.query]
    known = np.where(judged, documents.gain, 0.0)
    constant = added(documents.query[judged], (known * documents.weight)[judged], documents.n_queries)
    constant = np.where(closed, dcg, constant)
    fixed = np.where(closed, ideal, np.nan if documents.fixed is None else documents.fixed)
    pooled = judged & documents.pooled
    return Open(
        constant=constant,
        query=documents.query[unjudged],
        weight=documents.weight[unjudged],
        pooled=documents.pooled[unjudged],
        judged_query=np.repeat(documents.query[pooled], documents.times[pooled]),
        judged_gain=np.repeat(known[pooled], documents.times[pooled]),
        to_rank=_to_rank(flavor, added(documents.query, documents.times, documents.n_queries)),
        cut=documents.cut,
        fixed=fixed,
    )


def _to_rank(flavor: Flavor, pool: FloatArray) -> FloatArray:
    """Prefix sums of the discounts, as many as the largest ideal has ranks."""
    return np.append(0.0, np.cumsum(discounts(flavor, max(int(pool.max(initial=0)), 1))))


# -- from queries to the mean ------------------------------------------------------------------------------------------


def _extreme(problem: Open, gains: FloatArray, flavor: Flavor, weight: FloatArray | None, sign: float) -> float:
    """The largest of sign times the value; an empty query counts `sign` times what the flavor says, 0 for sign 0."""
    weight = np.ones(problem.n_queries) if weight is None else weight
    if flavor.aggregate == "micro":
        ratio, may_be_empty = largest_of_sums(problem, gains, weight)
        if may_be_empty or ratio == -math.inf:
            _refuse_nan(flavor, 1)
            if not isinstance(flavor.empty, str):
                ratio = max(ratio, sign * flavor.empty)
        return _some_value(ratio)
    best = largest(problem, gains)
    return largest_mean(best, flavor, weight, sign)


def largest_mean(best: Best, flavor: Flavor, weight: FloatArray, sign: float) -> float:
    """The largest weighted mean of the queries' ratios, where some may be empty."""
    counts = weight > 0
    ratio, weight, may_be_empty = best.ratio[counts], weight[counts], best.may_be_empty[counts]
    always = ratio == -np.inf
    if flavor.empty != "raise" and may_be_empty.any():
        _refuse_nan(flavor, int(may_be_empty.sum()))
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


def _refuse_nan(flavor: Flavor, n: int) -> None:
    if not isinstance(flavor.empty, str) and math.isnan(flavor.empty):
        raise RangeError(
            f"the range needs a value under all grades, and under empty=nan a query without a relevant document has "
            f"none; {n} may turn out so. Choose empty=0, 1 or 'skip'."
        )


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
        Where each query stands in a and in b.
    query : ndarray of int, shape (n_documents,)
        The query of each document, ascending.
    row : ndarray of int, shape (n_documents, 2)
        Its row in a and in b; -1 where it is not listed.
    gain : ndarray of float
        NaN where it is unjudged.
    weight : ndarray of float
        Its expected discount in b less that in a; with an ideal that is fixed, each over its own ideal.
    pooled : ndarray of bool
    cut : ndarray of int, shape (n_queries,)
    fixed : ndarray of float, shape (n_queries,), or None
    weight_of_query : ndarray of float, shape (n_queries,)
    labels : ndarray of float
        All labels of either, for the scale.
    """

    a: Scored
    b: Scored
    flavor: Flavor
    k: int | None
    queries: NDArray[np.int64]
    query: NDArray[np.int64]
    row: NDArray[np.int64]
    gain: FloatArray
    weight: FloatArray
    pooled: NDArray[np.bool_]
    times: NDArray[np.int64]
    cut: NDArray[np.int64]
    fixed: FloatArray | None
    constant: FloatArray
    weight_of_query: FloatArray
    labels: FloatArray

    @property
    def unjudged(self) -> NDArray[np.bool_]:
        """Which documents have no label."""
        return np.isnan(self.gain)

    def open(self) -> Open:
        """The difference as a problem of one ratio per query."""
        unjudged = self.unjudged
        judged = ~unjudged
        known = np.where(unjudged, 0.0, self.gain)
        n_queries = len(self.queries)
        pooled = judged & self.pooled
        constant = self.constant + added(self.query[judged], (known * self.weight)[judged], n_queries)
        return Open(
            constant=constant,
            query=self.query[unjudged],
            weight=self.weight[unjudged],
            pooled=self.pooled[unjudged],
            judged_query=np.repeat(self.query[pooled], self.times[pooled]),
            judged_gain=np.repeat(known[pooled], self.times[pooled]),
            to_rank=_to_rank(self.flavor, added(self.query, self.times, n_queries)),
            cut=self.cut,
            fixed=self.fixed,
        )

    def range(self, difference: float, max_grade: float | None = None) -> Range:
        """The least and the largest difference over all ways to grade what is unjudged.

        Raises
        ------
        RangeError
        """
        grades = scale_of(self.flavor, self.labels, max_grade)
        gains, problem = gains_of_scale(self.flavor, grades), self.open()
        # A query is empty for both, or for neither, so that its difference is 0 whatever it scores.
        flavor = self.flavor if isinstance(self.flavor.empty, str) else self.flavor.replace(empty=0.0)
        high = _extreme(problem, gains, flavor, self.weight_of_query, 0.0)
        low = -_extreme(problem.negated(), gains, flavor, self.weight_of_query, 0.0)
        n_unjudged = int(self.unjudged.sum())
        return Range(
            low=low + 0.0, high=high + 0.0, value=difference, n_unjudged=n_unjudged, grades=tuple(grades.tolist())
        )


def pair_of(
    a: Scored,
    b: Scored,
    flavor: Flavor,
    k: int | None,
    queries: NDArray[np.int64],
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
        Where each query stands in a and in b.
    ndcg : ndarray of float, shape (n_queries, 2)
        The NDCG of each, which is that under all grades where nothing is unjudged; NaN where it is empty and skipped.
    dcg : tuple of ndarray of float
        The DCG of all queries of a and of b when they were evaluated.

    Raises
    ------
    RangeError
        Documents cannot be matched or are judged differently; or labels are missing and the two ideals of a ratio of
        sums, or in the order of the input, differ.
    """
    # The caller's arrays may have changed since they were evaluated; then the range would be one of other data.
    two = [documents_of(scored.queries, scored.scores, flavor, k) for scored in (a, b)]
    for side, scored in enumerate((a, b)):
        refuse_changed(scored, two[side], flavor, k, dcg[side])
    _refuse_nan_of_pair(flavor, two, queries)
    if flavor.ideal == "given" and flavor.aggregate == "micro":
        raise RangeError(
            "ideal must not be 'given' for the range of a difference of micro averages; got 'given'. Choose 'global'."
        )

    # In a mean of ratios, a query without unjudged documents is one number, and its documents need no matching. A
    # ratio of sums needs the numerator and the ideal of every query.
    n_queries = len(queries)
    closed = np.zeros(n_queries, dtype=bool) if flavor.aggregate == "micro" else ~_have_unjudged(two, queries)
    both = _matched(a, b, two, queries, ~closed)
    query, gain = both.query, _shared_gains(both, flavor)
    unjudged = np.isnan(gain)

    # A tied run with an unjudged document has no order yet if the grades decide it.
    for side, documents in enumerate(two):
        _refuse_moving(flavor, query[_moving(documents, both.at[:, side], unjudged, flavor)])

    # An ideal that no label changes divides each system's weights here, and the difference has no ideal any more.
    weight, constant, fixed = both.of("weight", 0.0), np.zeros(n_queries), None
    weight_of_query = np.ones(n_queries) if a.weight is None else a.weight[queries[:, 0]]
    pooled = both.of("pooled", False)
    if two[0].fixed is not None:
        fixed = _fixed_ideals(flavor, both, queries, weight, constant, weight_of_query)
    elif flavor.ideal == "global":
        # A document that one system alone lists enters both ideals once it is judged.
        pooled[:] = True

    # Documents that gain 0 under every completion cannot change an ideal.
    times = both.of("times", 0)
    cut = np.stack([documents.cut[queries[:, side]] for side, documents in enumerate(two)], axis=1)
    matters = unjudged | (gain > 0)
    apart = _have_two_ideals(both, matters, pooled, times, None if fixed is not None else cut, n_queries)
    _refuse_two_ideals(flavor, apart)

    # A query that was left out of the matching is its own difference: numerator `constant`, ideal 1 (0 if skipped).
    if closed.any():
        fixed = np.full(n_queries, np.nan) if fixed is None else fixed
        nothing = np.isnan(ndcg[closed])
        if (nothing[:, 0] != nothing[:, 1]).any():
            raise RangeError(_UNEQUAL)
        fixed[closed] = np.where(nothing[:, 0], 0.0, 1.0)
        constant[closed] = np.where(nothing[:, 0], 0.0, ndcg[closed, 1] - ndcg[closed, 0])
    return Pair(
        a=a,
        b=b,
        flavor=flavor,
        k=k,
        queries=queries,
        query=query,
        row=both.row,
        gain=gain,
        weight=weight[:, 1] - weight[:, 0],
        pooled=pooled[:, 0],
        times=np.maximum(times.max(axis=1), 1),
        cut=cut[:, 0],
        fixed=fixed,
        constant=constant,
        weight_of_query=weight_of_query,
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
        Its row in a and in b, and its place in `two`; -1 where it is not listed.
    """

    two: Sequence[Documents]
    query: NDArray[np.int64]
    row: NDArray[np.int64]
    at: NDArray[np.int64]

    def of(self, name: str, absent: float) -> NDArray[Any]:
        """An attribute of the documents in a and in b, shape (n_documents, 2)."""
        both = []
        for side, documents in enumerate(self.two):
            values = getattr(documents, name)
            out = np.full(self.query.size, absent, dtype=values.dtype)
            there = self.at[:, side] >= 0
            out[there] = values[self.at[there, side]]
            both.append(out)
        return np.stack(both, axis=1)


def _have_unjudged(two: Sequence[Documents], queries: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which queries have an unjudged document in either system."""
    in_each = []
    for side, documents in enumerate(two):
        unjudged = np.bincount(documents.query[documents.unjudged], minlength=documents.n_queries)
        in_each.append(unjudged[queries[:, side]] > 0)
    return in_each[0] | in_each[1]


def _shared_gains(both: _Matched, flavor: Flavor) -> FloatArray:
    """The gain of each document, NaN where it is unjudged; both systems must have the same judgements."""
    # One unknown label stands for a document in both systems, so that both must have the same labels. Under the
    # global ideal a relevant document that one system lacks is a different ideal.
    gains, listed = both.of("gain", np.nan), both.at >= 0
    in_both = listed.all(axis=1)
    gain = np.where(listed[:, 0], gains[:, 0], gains[:, 1])
    unlike = in_both & ~((gains[:, 0] == gains[:, 1]) | np.isnan(gains).all(axis=1))
    alone = ~in_both & (gain > 0) & (flavor.ideal == "global")
    if (unlike | alone).any():
        raise RangeError(
            "both systems must be evaluated under the same judgements; "
            f"{int((unlike | alone).sum())} documents are judged in one and otherwise, or not at all, in the other. "
            "Evaluate both with one set of labels."
        )
    return gain


def _have_two_ideals(
    both: _Matched,
    matters: NDArray[np.bool_],
    pooled: NDArray[np.bool_],
    times: NDArray[np.int64],
    cut: NDArray[np.int64] | None,
    n_queries: int,
) -> NDArray[np.bool_]:
    """Which queries have ideals in a and in b that differ under some completion.

    They do where a document that `matters` is in one ideal alone, in both but not as often, or
    where the ideals have different lengths. (`cut` is None where no label changes the ideals.)
    """
    in_both, in_a = (both.at >= 0).all(axis=1), pooled[:, 0]
    differs = (in_a != pooled[:, 1]) | ((times[:, 0] != times[:, 1]) & in_a & in_both)
    if cut is not None:
        length = np.minimum(cut, np.bincount(both.query[in_a], minlength=n_queries)[:, None])
        differs |= (length[:, 0] != length[:, 1])[both.query]
    apart = np.zeros(n_queries, dtype=bool)
    apart[both.query[differs & matters]] = True
    return apart


def _refuse_two_ideals(flavor: Flavor, apart: NDArray[np.bool_]) -> None:
    if apart.any():
        raise UnsearchedRangeError(
            f"both systems must have one ideal in every query with unjudged documents; got two in {int(apart.sum())} "
            f"queries under ideal={flavor.ideal!r}, ideal_depth={flavor.ideal_depth!r}, because the systems retrieved "
            "other documents. Evaluate both with ideal='global', or give both the same candidates."
        )


def _refuse_moving(flavor: Flavor, queries: NDArray[np.int64]) -> None:
    """Refuse tied runs that grades order; `queries` has the query of each document in one."""
    if queries.size:
        raise UnsearchedRangeError(
            "ties must be a rule that does not depend on the labels if unjudged documents share their score with "
            f"others; got ties={flavor.ties!r} and {np.unique(queries).size} such queries. Choose ties='average' or "
            "'first'."
        )


_UNEQUAL = (
    "a query must be empty in both systems, or in neither, under empty='skip', because otherwise the two means are "
    "over other queries. Choose empty=0."
)


def _fixed_ideals(
    flavor: Flavor,
    both: _Matched,
    queries: NDArray[np.int64],
    weight: FloatArray,
    constant: FloatArray,
    weight_of_query: FloatArray,
) -> FloatArray:
    """Divide the weights of each system by its own ideal, which no label changes; return the ideal that is left.

    An empty query scores the same under all grades; `constant` takes what it adds.
    """
    empties = []
    for side, documents in enumerate(both.two):
        assert documents.fixed is not None
        own, sign = documents.fixed[queries[:, side]], 1 if side else -1
        empty = own <= 0
        empties.append(empty)
        scores = 0.0 if isinstance(flavor.empty, str) else flavor.empty
        if flavor.aggregate == "micro":
            total = float((own * weight_of_query)[~empty].sum())
            own = np.full(own.size, total)
            constant += sign * scores / weight_of_query.sum() * (total == 0)
            empty = empty | (total == 0)
        else:
            constant += np.where(empty, sign * scores, 0.0)
        weight[:, side] = np.where(empty[both.query], 0.0, weight[:, side] / np.where(empty, 1.0, own)[both.query])
    if flavor.aggregate == "micro":
        return np.full(constant.size, 1.0 / weight_of_query.sum())
    if flavor.empty != "skip":
        return np.ones(constant.size)
    if (empties[0] != empties[1]).any():
        raise RangeError(_UNEQUAL)
    return np.where(empties[0], 0.0, 1.0)


def _refuse_nan_of_pair(flavor: Flavor, two: Sequence[Documents], queries: NDArray[np.int64]) -> None:
    """Under empty=nan a query without an ideal has no difference, whatever the labels of the others."""
    for side, documents in enumerate(two):
        if documents.fixed is not None and (documents.fixed[queries[:, side]] <= 0).any():
            _refuse_nan(flavor, 1)


def _moving(
    documents: Documents, at: NDArray[np.int64], unjudged: NDArray[np.bool_], flavor: Flavor
) -> NDArray[np.int64]:
    """The documents in a tied run in which the grade of an unjudged document decides the order."""
    if flavor.ties not in ("best", "worst"):
        return np.zeros(0, dtype=np.int64)
    there = np.flatnonzero(at >= 0)
    row = at[there]
    tied = (documents.run_size[row] > 1) & (documents.run_start[row] < documents.depth[documents.query[row]])
    number = documents.run[row]
    return there[tied & np.isin(number, number[tied & unjudged[there]])]


def _matched(
    a: Scored, b: Scored, two: Sequence[Documents], queries: NDArray[np.int64], wanted: NDArray[np.bool_]
) -> _Matched:
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
    for side, (mine, here) in enumerate(zip(np.split(document, [chosen[0].size]), chosen, strict=True)):
        at[mine, side], rows[mine, side] = here, two[side].row[here]
    return _Matched(two, query, rows, at)


def _keys(a: Scored, b: Scored, rows: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Numbers that tell the documents of a query apart, the same in both systems: of their ids, or else their rows."""
    ours, theirs = a.queries, b.queries
    if ours.names is not None and theirs.names is not None:
        keys = [ours.names.of(rows[0]), theirs.names.of(rows[1])]
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
