"""What every document of a ranking weighs, whatever its label: one entry per document, at one cut-off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import BoolArray, FloatArray, IntArray
from ndcg_ml._data.groups import Groups
from ndcg_ml._data.queries import Queries
from ndcg_ml._kernel.gains import Graded, discounts, gain, grade, top_gain
from ndcg_ml._kernel.numpy_kernel import in_tie_order
from ndcg_ml._kernel.repeats import credited
from ndcg_ml._one_line import shown
from ndcg_ml.flavor import Flavor

# More grades than any scale has: such labels are measurements.
_LONGEST_SCALE = 1001


class RangeError(ValueError):
    """The range over all completions of the labels is not known exactly for these data; the message says why."""


class UnsearchedRangeError(RangeError):
    """The systems' ideals or tied runs depend on the labels, so that labels may turn the sign of the difference."""


# -- the scale ---------------------------------------------------------------------------------------------------------


def scale_of(flavor: Flavor, labels: FloatArray, max_grade: float | None) -> FloatArray:
    """The grades that an unjudged document may turn out to have, ascending.

    They are 0, 1, ..., `max_grade`, or those of the flavor's own ``max_grade``; else 0 and the grades seen.

    Parameters
    ----------
    flavor : Flavor
    labels : ndarray of float
        All that are known; NaN where none is.
    max_grade : float or None

    Raises
    ------
    TypeError
        `max_grade` is no number.
    RangeError
        The grades do not come from a finite scale of whole grades and grades seen; a grade seen is above the scale.
    """
    # Negative labels are grades only where the flavor gives them a gain of their own.
    seen = np.unique(labels[~np.isnan(labels)])
    if flavor.negative != "allow":
        seen = seen[seen >= 0]
    # Without a top, the grades seen are the scale, and 0 belongs to every scale. A scale of 0 alone would say that
    # no unjudged document can be relevant.
    top = flavor.max_grade if max_grade is None else max_grade
    if top is None:
        grades = np.union1d(seen, 0.0)
        if grades[-1] <= 0 and flavor.gain != "judged" and np.isnan(labels).any():
            raise RangeError(
                "max_grade must be given where no relevant grade was seen, because nothing says how the unjudged "
                "documents could be graded; got None. Pass the top of the grade scale, such as max_grade=3."
            )
    # With a top, the scale is 0, 1, ..., top; the top of a flavor may be a fraction, and then the grades seen fill it.
    else:
        if isinstance(top, (bool, np.bool_)) or not isinstance(top, (int, float, np.integer, np.floating)):
            raise TypeError(f"max_grade must be a number, the top of the grade scale, or None; got {shown(top)}.")
        if not 0 <= top < np.inf or (max_grade is not None and top != int(top)):
            raise RangeError(
                f"max_grade must be a whole number of 0 or more, so that the scale is 0, 1, ..., max_grade; got "
                f"{shown(top)}. Leave it out for a scale of the grades seen."
            )
        if seen.size and seen[-1] > top and flavor.top_label is None:
            raise RangeError(
                f"max_grade must not be below a grade that was given; got {shown(top)} and the grade {seen[-1]:g}. "
                "Raise it to the top of the grade scale."
            )
        # A scale that is too long is refused below, and must not be made before: the top may be 1e300.
        if top >= _LONGEST_SCALE:
            grades = np.zeros(_LONGEST_SCALE + 1)
        elif top == int(top):
            grades = np.arange(top + 1.0)
        else:
            grades = np.union1d(seen, [0.0, top])
    # Both kinds of scale must be short enough to be searched, and have a gain at every grade.
    if grades.size > _LONGEST_SCALE:
        raise RangeError(
            f"the labels must be grades of a scale of at most {_LONGEST_SCALE} grades; there are more, as of "
            "measurements, and then unjudged documents have no finite set of labels. Pass max_grade=, for a scale "
            "0, 1, ..., max_grade."
        )
    if isinstance(flavor.gain, tuple) and flavor.off_table == "raise" and grades[-1] >= len(flavor.gain):
        raise RangeError(
            f"max_grade must be a grade of the gain table, at most {len(flavor.gain) - 1}; got {grades[-1]:g}. "
            "Extend the table, or lower max_grade."
        )
    return grades


def gains_of_scale(flavor: Flavor, grades: FloatArray) -> FloatArray:
    """What the grades of a scale gain, ascending, each gain once.

    Raises
    ------
    RangeError
        Some gain is negative, or too large to be added in float64.
    """
    with np.errstate(over="ignore"):
        gains = np.unique(gain(flavor, grades))
    _check_gains(gains)
    return gains


def _check_gains(gains: FloatArray) -> None:
    if gains.size and gains.min() < 0:
        raise RangeError(
            "the range needs gains of 0 or more, because an ideal DCG that may be below 0 leaves the ratio without "
            f"bounds; got a gain of {gains.min():g}. Choose negative='zero' or 'drop', or a table without such gains."
        )
    if gains.size and not gains.max() < 2.0**400:
        raise RangeError(
            "the range needs gains that float64 can add, up to 1e120; grades this large under this gain are larger. "
            "Use a smaller grade scale."
        )


# -- documents ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a ranking at one cut-off, each once, query after query.

    Attributes
    ----------
    n_queries : int
    query : ndarray of int, shape (n_documents,)
        The query of each, ascending.
    row : ndarray of int
        The caller's row; of a repeated document, that of its first rank.
    gain : ndarray of float
        NaN where the document is unjudged.
    weight : ndarray of float
        Its expected discount, over all its ranks that are credited; 0 where it was not retrieved or is beyond the cut.
    pooled : ndarray of bool
        Whether its gain enters the ideal.
    times : ndarray of int
        How often it enters the ideal.
    run : ndarray of int
        Numbers of the tied runs, ascending with the ranks; -1 where the document was not retrieved.
    run_start, run_size : ndarray of int
        The first rank (from 0) of its tied run, and how many documents share it.
    cut : ndarray of int, shape (n_queries,)
        Where the ideal ends, in ranks.
    fixed : ndarray of float, shape (n_queries,), or None
        The ideal DCG, where it does not depend on any label.
    table : ndarray of float
        The discounts at ranks 1, 2, ... before any cut-off.
    depth : ndarray of int, shape (n_queries,)
        Where the ranking is cut; 0 where a short list counts nothing.
    """

    n_queries: int
    query: IntArray
    row: IntArray
    gain: FloatArray
    weight: FloatArray
    pooled: BoolArray
    times: IntArray
    run: IntArray
    run_start: IntArray
    run_size: IntArray
    cut: IntArray
    fixed: FloatArray | None
    table: FloatArray
    depth: IntArray

    @property
    def unjudged(self) -> BoolArray:
        """Which documents have no label."""
        return np.isnan(self.gain)


def documents_of(queries: Queries, scores: NDArray[Any], flavor: Flavor, k: int | None) -> Documents:
    """What every document weighs under these scores, whatever the labels of the unjudged ones.

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
        Weights or the ideal depend on the labels in a way that has no exact range.
    """
    with np.errstate(invalid="ignore"):
        labels = queries.labels.reshape(-1).astype(np.float64, copy=False)
    missing = np.isnan(labels)
    # Every completion judges every document, so the flavor's rule for unjudged ones has nothing to do: grade 0 holds
    # the place of a label, and what it gains is not read.
    graded = grade(flavor, np.where(missing, 0.0, labels), queries.groups, queries.retrieved)
    # A document that is listed twice enters as one, which is credited as the flavor says.
    layout = in_tie_order(graded.ranked, flavor, graded.gains, queries.doc_id)
    times = np.ones(labels.size, dtype=np.int64)
    first = np.arange(labels.size)
    if queries.repeats is not None:
        graded, scores, first, times = _once_each(flavor, graded, layout, queries, scores, missing)
    _check_gains(graded.judged.listed(graded.gains))

    # The rank, tied run and expected discount of every ranked row.
    longest = max(int(graded.documents.sizes.max(initial=0)), k or 0, 1)
    table = discounts(flavor, longest)
    n_ranked = graded.ranked.sizes
    depth = n_ranked if k is None else np.minimum(n_ranked, k)
    if flavor.short_lists == "zero":
        depth = np.where(n_ranked < (k or 0), 0, depth)
    rows, query, rank, run, start, size = _ranked(layout, scores)
    to_rank = np.append(0.0, np.cumsum(table))
    cut = depth[query]
    if flavor.ties == "average":
        weight = (to_rank[np.minimum(start + size, cut)] - to_rank[np.minimum(start, cut)]) / size
        # A run of one rank has its discount to the last bit, and so has a run whose ranks all count the same.
        weight = np.where((size == 1) | (start >= cut), np.where(rank < cut, table[rank], 0.0), weight)
    else:
        weight = np.where(rank < cut, table[rank], 0.0)

    def by_row(values: NDArray[Any], absent: Any) -> NDArray[Any]:
        out = np.full(labels.size, absent, dtype=values.dtype)
        out[rows] = values
        return out

    # From ranked rows to documents: some were not retrieved, and under duplicates='count' copies add their discounts.
    judged_rows = np.arange(labels.size) if graded.judged.order is None else graded.judged.order
    summed = by_row(weight, 0.0)
    if queries.repeats is not None and flavor.duplicates == "count":
        summed = np.bincount(first, weights=summed, minlength=labels.size)
    every = graded.gains
    if flavor.ideal in ("recall", "local") and queries.retrieved is not None:
        # The gains of what was not retrieved are 0 there; they tell whether two systems have the same judgements.
        every = grade(flavor, np.where(missing, 0.0, labels), queries.groups).gains
    gains = np.where(missing, np.nan, every)[judged_rows]
    # The fields of the ideal (pooled, cut, fixed) are placeholders until _with_ideal fills them at the end.
    out = Documents(
        n_queries=graded.judged.n_queries,
        query=graded.judged.codes(),
        row=judged_rows,
        gain=gains,
        weight=summed[judged_rows],
        pooled=np.ones(judged_rows.size, dtype=bool),
        times=times[judged_rows],
        run=by_row(run, -1)[judged_rows],
        run_start=by_row(start, -1)[judged_rows],
        run_size=by_row(size, 0)[judged_rows],
        cut=np.zeros(graded.judged.n_queries, dtype=np.int64),
        fixed=None,
        table=table,
        depth=depth,
    )
    if flavor.ideal == "given" and missing[judged_rows].any():
        raise UnsearchedRangeError(
            "ideal must not be 'given' if documents are unjudged, because its order is that of the labels; got "
            "ideal='given'. Choose ideal='global'."
        )
    return _with_ideal(flavor, k, graded, out, by_row(rank, longest)[judged_rows])


def _once_each(
    flavor: Flavor,
    graded: Graded,
    layout: Groups,
    queries: Queries,
    scores: NDArray[Any],
    missing: BoolArray,
) -> tuple[Graded, NDArray[Any], IntArray, IntArray]:
    """Repeated documents under their rule: gains, scores, the row of each row's document, and how often it gains."""
    repeats = queries.repeats
    assert repeats is not None
    if flavor.ties in ("best", "worst"):
        raise RangeError(
            f"the range is not known for ties={flavor.ties!r} where a query lists a document twice, because the rank "
            "that is credited depends on the labels. Choose another tie rule, such as ties='first'."
        )
    n_rows = missing.size
    ranked = np.zeros(n_rows, dtype=bool)
    ranked[layout.rows()] = True
    copies = repeats.copies.arranged(~ranked)
    assert copies.order is not None
    first, times = np.arange(n_rows), np.ones(n_rows, dtype=np.int64)
    first[copies.order] = np.repeat(copies.order[copies.starts], copies.sizes)
    if flavor.duplicates == "count" and flavor.ideal in ("recall", "local"):
        if missing[copies.order].any() or flavor.recall_depth is not None or flavor.ideal == "local":
            raise RangeError(
                f"the range is not known under ideal={flavor.ideal!r} with duplicates='count' where a document that is "
                "listed twice enters the ideal at each of its ranks. Choose duplicates='first', or ideal='global'."
            )
        times = np.bincount(first, weights=ranked, minlength=n_rows).astype(np.int64)
    graded, once = credited(flavor, graded, layout, repeats)
    try:
        return graded, scores if once is None else once.exchanged(scores), first, times
    except ValueError as error:  # unjudged copies are ranked here, although the flavor leaves them out
        raise RangeError(f"the range ranks the unjudged documents too, and then {error}") from error


def _ranked(layout: Groups, scores: NDArray[Any]) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Rows in rank order: row, query, rank from 0, number of the tied run, its first rank, its size."""
    rows = layout.rows()
    query = layout.codes()
    keys = -scores[rows]
    by_rank = np.lexsort((keys, query))
    rows, keys = rows[by_rank], keys[by_rank]
    rank = np.arange(rows.size) - layout.starts[query]
    new = np.append(True, (keys[1:] != keys[:-1]) | (query[1:] != query[:-1]))[: rows.size]
    run = np.cumsum(new) - 1
    begins = np.flatnonzero(new)
    size = np.diff(np.append(begins, rows.size))
    return rows, query, rank, run, rank[begins][run] if rows.size else run, size[run] if rows.size else run


# -- ideals ------------------------------------------------------------------------------------------------------------


def _with_ideal(flavor: Flavor, k: int | None, graded: Graded, documents: Documents, rank: IntArray) -> Documents:
    """The documents with their part in the ideal; `rank` is that of each, from 0."""
    n_ranked = graded.ranked.sizes
    unlimited = np.full(documents.n_queries, np.iinfo(np.int64).max // 4)
    cut = unlimited if k is None or flavor.ideal_depth == "all" else np.full(documents.n_queries, k)
    if flavor.ideal_depth == "retrieved":
        cut = np.minimum(cut, n_ranked)
    if flavor.ideal == "max":
        # Without a cut-off the ideal has as many ranks as there are ranked documents.
        ranks = n_ranked if k is None or flavor.ideal_depth == "all" else cut
        to_rank = np.append(0.0, np.cumsum(documents.table))
        fixed = to_rank[ranks] * top_gain(flavor)
        fixed[graded.documents.sizes == 0] = 0.0
        return replace(documents, fixed=fixed, pooled=np.zeros(documents.row.size, dtype=bool), cut=cut)
    if flavor.ideal in ("global", "given"):  # every document is judged under an ideal in the order of the input
        return replace(documents, cut=cut)
    pooled = documents.run >= 0
    last: IntArray | None = None
    if flavor.ideal == "local":
        last = cut
    elif flavor.recall_depth is not None:
        last = np.full(documents.n_queries, flavor.recall_depth)
    if last is not None:
        _check_crossing(flavor, documents, last)
        pooled = pooled & (rank < last[documents.query])
    return replace(documents, pooled=pooled, cut=cut)


def _check_crossing(flavor: Flavor, documents: Documents, last: IntArray) -> None:
    """Refuse an ideal of the first ranks where labels decide, or ties average, what stands there."""
    if flavor.ties not in ("average", "best", "worst"):
        return
    limit = last[documents.query]
    inside = (documents.run >= 0) & (documents.run_start < limit) & (documents.run_size > 1)
    if not (flavor.ideal == "local" and flavor.ties == "average"):
        inside &= documents.run_start + documents.run_size > limit
    # The ratio of a query whose documents are all judged is known. Its sums, which a micro average adds, are not kept.
    open_queries = np.full(documents.n_queries, flavor.aggregate == "micro")
    open_queries[documents.query[documents.unjudged]] = True
    unclear = inside & open_queries[documents.query]
    if unclear.any():
        rule = "ideal='local'" if flavor.ideal == "local" else f"recall_depth={flavor.recall_depth}"
        raise RangeError(
            f"the range is not known under {rule} with ties={flavor.ties!r} where equal scores share the first ranks "
            "of a query that has unjudged documents (under a micro average: of any query), because the ideal then "
            f"mixes their gains; {np.unique(documents.query[unclear]).size} queries have such ties. Choose a tie rule "
            "that orders them, "
            "such as ties='first', or ideal='global'."
        )
