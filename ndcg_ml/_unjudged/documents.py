"""The weight of every document of a ranking, which does not depend on labels: one entry per document and cut-off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import BoolArray, FloatArray, IntArray
from ndcg_ml._data.queries import Queries
from ndcg_ml._kernel.gains_and_discounts import discounts, gain, grade
from ndcg_ml._kernel.numpy_kernel import order_ties
from ndcg_ml._one_line import brief
from ndcg_ml.flavor import Flavor

# More grades than any scale has: such labels are measurements.
_LONGEST_SCALE = 1001


class RangeError(ValueError):
    """The range over all completions of the labels is not known exactly for these data; the message says why."""


class UnsearchedRangeError(RangeError):
    """The range is not searched, so that labels may turn the sign of the difference."""


# -- what is not searched ----------------------------------------------------------------------------------------------

# The values of switches whose range is known, the first of which the message names; every other value is refused.
_SEARCHED: dict[str, tuple[str | None, ...]] = {
    "ties": ("average", "first", "last", "docid", "docid_ascending"),
    "ideal": ("global", "recall"),
    "recall_depth": (None,),
    "aggregate": ("macro",),
}


def _refuse_unsearched(flavor: Flavor, queries: Queries) -> None:
    for switch, searched in _SEARCHED.items():
        value = getattr(flavor, switch)
        if value not in searched:
            words = " or ".join(map(repr, searched))
            raise UnsearchedRangeError(
                f"{switch} must be {words} for a range over missing labels; got {value!r}. Evaluate again with "
                f"{switch}={searched[0]!r}."
            )
    if queries.repeats is not None:
        raise UnsearchedRangeError(
            "every document must be listed once per query for a range over missing labels; got repeated ids in "
            "doc_id. Leave out the copies."
        )


# -- the scale ---------------------------------------------------------------------------------------------------------


def scale_of(flavor: Flavor, labels: FloatArray, max_grade: float | None) -> FloatArray:
    """The grades that an unjudged document may turn out to have, ascending.

    They are 0, 1, ..., `max_grade`, or those up to the flavor's own ``max_grade``; otherwise 0 and the grades seen.

    Parameters
    ----------
    flavor : Flavor
    labels : ndarray of float
        All that are known; NaN if none is.
    max_grade : float or None

    Raises
    ------
    TypeError
        `max_grade` is not a number.
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
            raise TypeError(f"max_grade must be a number, the top of the grade scale, or None; got {brief(top)}.")
        if not 0 <= top < np.inf or (max_grade is not None and top != int(top)):
            raise RangeError(
                f"max_grade must be an integer >= 0, so that the scale is 0, 1, ..., max_grade; got "
                f"{brief(top)}. Leave it out for a scale of the grades seen."
            )
        if seen.size and seen[-1] > top and flavor.top_label is None:
            raise RangeError(
                f"max_grade must not be below a grade that was given; got {brief(top)} and the grade {seen[-1]:g}. "
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
    """Return the distinct gains of the grades of a scale, ascending.

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
            "the range needs gains >= 0, because an ideal DCG that may be below 0 leaves the ratio without "
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
    """The documents of a ranking at one cut-off, query after query.

    Attributes
    ----------
    n_queries : int
    query : ndarray of int, shape (n_documents,)
        The query of each, ascending.
    row : ndarray of int
        The caller's row.
    gain : ndarray of float
        NaN where the document is unjudged.
    weight : ndarray of float
        Its expected discount; 0 if it was not retrieved or is beyond the cut.
    pooled : ndarray of bool
        Whether its gain enters the ideal. The others have weight 0.
    cut : ndarray of int, shape (n_queries,)
        Where the ideal ends, in ranks.
    """

    n_queries: int
    query: IntArray
    row: IntArray
    gain: FloatArray
    weight: FloatArray
    pooled: BoolArray
    cut: IntArray

    @property
    def unjudged(self) -> BoolArray:
        """Which documents have no label."""
        return np.isnan(self.gain)


def documents_of(queries: Queries, scores: NDArray[Any], flavor: Flavor, k: int | None) -> Documents:
    """Return the weight of every document under these scores, which no missing label changes.

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
        The range is not searched under this flavor or for these data.
    """
    _refuse_unsearched(flavor, queries)
    with np.errstate(invalid="ignore"):
        labels = queries.labels.reshape(-1).astype(np.float64, copy=False)
    missing = np.isnan(labels)
    # Every completion judges every document, so the flavor's rule for unjudged ones does not apply. Grade 0 stands for
    # a missing label, and its gain is not read.
    graded = grade(flavor, np.where(missing, 0.0, labels), queries.groups, queries.retrieved)
    _check_gains(graded.judged.arrange(graded.gains))
    layout = order_ties(graded.ranked, flavor, graded.gains, queries.doc_id)

    # The ranked rows in rank order: the rank of each from 0, and the first rank and the size of its tie group.
    rows, query = layout.rows(), layout.codes()
    keys = -scores[rows]
    by_rank = np.lexsort((keys, query))
    rows, keys = rows[by_rank], keys[by_rank]
    rank = np.arange(rows.size) - layout.starts[query]
    begins = np.append(True, (keys[1:] != keys[:-1]) | (query[1:] != query[:-1]))[: rows.size]
    run, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    start, size = rank[first][run], np.diff(np.append(first, rows.size))[run]

    # The expected discount of each, up to the cut-off.
    n_ranked = graded.ranked.sizes
    depth = n_ranked if k is None else np.minimum(n_ranked, k)
    if flavor.short_lists == "zero":
        depth = np.where(n_ranked < (k or 0), 0, depth)
    longest = max(int(graded.documents.sizes.max(initial=0)), k or 0)
    table, to_rank, cut = discounts(flavor, longest), prefix_sums(flavor, longest), depth[query]
    discount = np.where(rank < cut, table[rank], 0.0)
    if flavor.ties == "average":
        mean = (to_rank[np.minimum(start + size, cut)] - to_rank[np.minimum(start, cut)]) / size
        # A tie group of one document has exactly its discount, and so has one beyond the cut-off.
        discount = np.where((size == 1) | (start >= cut), discount, mean)
    weight, ranked = np.zeros(labels.size), np.zeros(labels.size, dtype=bool)
    weight[rows], ranked[rows] = discount, True

    # From ranked rows to documents, some of which were not retrieved.
    listed = graded.judged.rows()
    ideal_cut = np.full(n_ranked.size, np.iinfo(np.int64).max // 4)
    if k is not None and flavor.ideal_depth != "all":
        ideal_cut[:] = k
    if flavor.ideal_depth == "retrieved":
        ideal_cut = np.minimum(ideal_cut, n_ranked)
    return Documents(
        n_queries=n_ranked.size,
        query=graded.judged.codes(),
        row=listed,
        gain=np.where(missing, np.nan, graded.gains)[listed],
        weight=weight[listed],
        pooled=ranked[listed] | (flavor.ideal == "global"),
        cut=ideal_cut,
    )


def prefix_sums(flavor: Flavor, depth: int) -> FloatArray:
    """The sums of the discounts of the first 0, 1, ..., `depth` ranks."""
    return np.append(0.0, np.cumsum(discounts(flavor, max(depth, 1))))
