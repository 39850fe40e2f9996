"""Compute the weight of each document in a ranking at a cut-off, which does not depend on labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import BoolArray, FloatArray, IntArray
from ndcg_ml._core.gains_and_discounts import discounts, gain, grade
from ndcg_ml._core.numpy_kernel import order_ties
from ndcg_ml._core.one_line import brief
from ndcg_ml._core.queries import Queries
from ndcg_ml.flavor import Flavor

# Relevance scales are shorter. Labels with more values are measurements.
_LONGEST_SCALE = 1001


class RangeError(ValueError):
    """The exact range over all completions of the labels is unknown for these data. The message says why."""


class UnsearchedRangeError(RangeError):
    """The flavor or the data are not supported, so the sign of the difference is not certain."""


# -- supported flavors -------------------------------------------------------------------------------------------------

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
            raise UnsearchedRangeError(
                f"{switch} must be {words} for a range over missing labels; got {value!r}. Evaluate again with "
                f"{switch}={supported[0]!r}."
            )
    if queries.repeats is not None:
        raise UnsearchedRangeError(
            "every document must be listed once per query for a range over missing labels; got repeated ids in "
            "doc_id. Remove the duplicates."
        )


# -- the scale ---------------------------------------------------------------------------------------------------------


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
        if seen.size and seen[-1] > top and flavor.top_label is None:
            raise RangeError(
                f"max_grade must be at least the highest label; got {brief(top)} and the label {seen[-1]:g}. Raise it "
                "to the highest grade of the scale."
            )
        # A scale that is too long raises below. Do not allocate it here, because the maximum may be 1e300.
        if top >= _LONGEST_SCALE:
            grades = np.zeros(_LONGEST_SCALE + 1)
        elif top == int(top):
            grades = np.arange(top + 1.0)
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
    with np.errstate(over="ignore"):
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


# -- documents ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a ranking at one cut-off, grouped by query.

    Attributes
    ----------
    n_queries : int
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
    layout = order_ties(graded.ranked, flavor, graded.gains, queries.doc_id)

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
    if flavor.short_lists == "zero":
        depth = np.where(n_ranked < (k or 0), 0, depth)
    longest = max(int(graded.documents.sizes.max(initial=0)), k or 0)
    table, to_rank, cut = discounts(flavor, longest), prefix_sums(flavor, longest), depth[query]
    discount = np.where(rank < cut, table[rank], 0.0)
    if flavor.ties == "average":
        mean = (to_rank[np.minimum(start + size, cut)] - to_rank[np.minimum(start, cut)]) / size
        # Groups of one document, and those below the cut-off, have exact discounts and need no mean.
        discount = np.where((size == 1) | (start >= cut), discount, mean)
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
        n_queries=n_ranked.size,
        query=graded.judged.codes(),
        row=listed,
        gain=np.where(missing, np.nan, graded.gains)[listed],
        weight=weight[listed],
        pooled=ranked[listed] | (flavor.ideal == "global"),
        cut=ideal_cut,
    )


def prefix_sums(flavor: Flavor, depth: int) -> FloatArray:
    """Return the sums of the discounts of the first 0, 1, ..., `depth` ranks."""
    return np.append(0.0, np.cumsum(discounts(flavor, max(depth, 1))))
