"""All arguments of a score, read and checked once: documents, their labels and ids, queries and weights.

Nothing here depends on the flavor. Other modules compute gains from labels, and ranks from scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._core import arrays
from ndcg_ml._core.frames import Axes, align_by_id, match_index, refuse_index, refuse_lazy
from ndcg_ml._core.layout import ODD, FloatArray, Groups, IntArray, starts_of
from ndcg_ml._core.query_groups import group_rows
from ndcg_ml._plain.checks import axis_too_many, refuse_column, warn_of_lists_of_one, warn_of_ranks, warn_of_swap
from ndcg_ml._plain.messages import brief

# -- all arguments of a score -----------------------------------------------------------------------------------------

Weights: TypeAlias = "ArrayLike | Mapping[Any, float]"
"""One weight per query, in the order of the queries or by id."""


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """Documents that a query lists more than once.

    Attributes
    ----------
    copies : Groups
        The rows of each such document.
    name : str
        The id of one of them, for an error message.
    """

    copies: Groups
    name: str


DocumentNames: TypeAlias = "Callable[[IntArray], list[Any]]"
"""A function that returns the ids of documents, as they were passed, from rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Labels, query groups, and further properties of documents and queries. Made by ``read``.

    Attributes
    ----------
    labels : ndarray of float or integers, shape of y_true
    groups : Groups
        Which rows belong to which query.
    retrieved : ndarray of bool, shape (n_rows,), or None
    doc_order : callable or None
        Returns integers in the order of the document ids, one for each row. Ids are compared as text.
    weight : ndarray of float, shape (n_queries,), or None
    axes : Axes or None
        The pandas index of the rows, if any. Scores must have the same.
    repeats : Repeats or None
        Documents that a query lists more than once; None if there are none or no ids.
    given_order : ndarray of int, shape (n_rows,), or None
        Sort key of the judged rows of a query for the ``given`` ideal; None if they are in its order.
    names : callable or None
        Returns the ids of the documents at an array of rows, as they were passed.
    fractional : bool or None
        Whether most labels are fractions. Then scores that are all small integers cause a warning. None if scores are
        not to be checked for likely mistakes.
    """

    labels: NDArray[Any]
    groups: Groups
    retrieved: NDArray[np.bool_] | None = None
    doc_order: Callable[[], IntArray] | None = None
    weight: FloatArray | None = None
    axes: Axes | None = None
    repeats: Repeats | None = None
    given_order: IntArray | None = None
    names: DocumentNames | None = None
    fractional: bool | None = None

    @classmethod
    def read(
        cls,
        y_true: ArrayLike,
        *,
        qid: Any = None,
        group: Any = None,
        mask: Any = None,
        retrieved: Any = None,
        doc_id: Any = None,
        query_weight: Weights | None = None,
        whole: bool = True,
        suspect: bool = True,
    ) -> Queries:
        """Read the arguments of ``ndcg_score``, and refuse invalid ones.

        Parameters
        ----------
        whole : bool, default True
            Whether these are all rows of the data set. If not, lists of one document cause no warning, because parts
            of a stream may consist of them.
        suspect : bool, default True
            Whether scores are to be checked for likely mistakes.

        Raises
        ------
        TypeError, ValueError
            As for ``ndcg_score``, apart from errors of the flavor and the scores.

        Warns
        -----
        UserWarning
            Every query has one document.
        """
        axes = match_index({"y_true": y_true, "qid": qid, "mask": mask, "retrieved": retrieved, "doc_id": doc_id})
        labels = arrays.label_array(y_true)
        drop = "{}.squeeze(-1)" if type(y_true) is np.ndarray else "np.asarray({}).squeeze(-1)"
        mask_of_all = f"np.ones({labels.shape}, dtype=bool)"
        refuse_column(
            ("y_true", "y_score"), labels.shape, mask is not None, drop, "qid= (one id per row) or group=", mask_of_all
        )
        groups = group_rows(labels, qid, group, mask)
        if whole and groups.n_queries > 1 and groups.sizes.max() == 1:
            warn_of_lists_of_one(groups.n_queries)
        flags = None if retrieved is None else arrays.flag_array(retrieved, "retrieved", labels.shape).ravel()
        doc_order = repeats = names = None
        if doc_id is not None:
            ids = arrays.id_array(doc_id, "doc_id", labels.ndim)
            sortable = arrays.sortable_ids(ids, labels.shape)
            doc_order, names = partial(arrays.doc_places, sortable), partial(arrays.names_at, ids)
            if _may_repeat(arrays.doc_hashes(sortable), groups):
                repeats = find_repeats(doc_order(), groups, ids.ravel())
        weight = None if query_weight is None else read_weights(query_weight, groups, group, axes)
        fractional = arrays.are_fractions(labels, groups.order) if suspect else None
        return cls(labels, groups, flags, doc_order, weight, axes, repeats, names=names, fractional=fractional)

    @property
    def n_queries(self) -> int:
        """Number of queries: groups of 0 rows are included, padded lists without a document are not."""
        return self.groups.n_queries

    @property
    def ids(self) -> NDArray[Any]:
        """The id of each query; its position if there are no ids."""
        groups = self.groups
        return groups.without_padding(np.arange(groups.n_given)) if groups.ids is None else groups.ids

    def scores(self, y_score: ArrayLike, ranked: Groups) -> NDArray[Any]:
        """Return the scores of these rows as a flat array. `ranked` holds the rows that are ranked.

        Raises
        ------
        TypeError, ValueError
            The scores do not fit the rows, or float64 would make different scores of a query equal.

        Warns
        -----
        UserWarning
            Most labels are fractions and all scores are small integers, as if the two were swapped; or the scores look
            like ranks.
        """
        match_index({"y_score": y_score}, self.axes)
        scores, given = arrays.read_reals(y_score, arrays.plain_array(y_score, "y_score"), "y_score")
        if scores.shape != self.labels.shape:
            hint = axis_too_many("y_score", scores.shape, "y_true", self.labels.shape, "{}.squeeze(-1)")
            raise ValueError(f"y_score must have the shape of y_true, {self.labels.shape}; got {scores.shape}.{hint}")
        scores = scores.ravel()
        if given is not None:
            rows = ranked.rows()
            arrays.refuse_equal("y_score", given.ravel()[rows], scores[rows], ranked.codes())
        # Few arrays have such labels, and of those most scores are recognised by a sample.
        if self.fractional and all(
            arrays.are_grades(scores[slice(None, None, step) if ranked.order is None else ranked.order[::step]])
            for step in (arrays.stride(scores.size), 1)
        ):
            warn_of_swap("y_true", "y_score")
        if self.fractional is not None and arrays.are_ranks(scores, self.labels.ravel(), ranked):
            warn_of_ranks("the scores in y_score", 1, "query")
        return scores


def _may_repeat(doc_hash: IntArray, groups: Groups) -> bool:
    """Whether a query lists a document more than once, or two pairs of a document and a query look the same."""
    pairs = groups.arrange(doc_hash).view(np.uint64) * np.uint64(ODD)
    pairs += groups.codes().view(np.uint64)
    pairs.sort()
    return bool((pairs[1:] == pairs[:-1]).any())


def find_repeats(doc_id: IntArray, groups: Groups, names: NDArray[Any]) -> Repeats | None:
    """Return the documents that a query lists more than once. `names` holds the ids as the caller passed them."""
    in_order = groups.sort_rows(doc_id)
    assert in_order.order is not None
    ordered, query = doc_id[in_order.order], in_order.codes()
    same = (ordered[1:] == ordered[:-1]) & (query[1:] == query[:-1])
    if not same.any():
        return None
    first = np.append(True, ~same)
    document = np.cumsum(first)
    sizes = np.bincount(document)
    rows = in_order.order[sizes[document] > 1]
    sizes = sizes[sizes > 1]
    copies = Groups(sizes=sizes, starts=starts_of(sizes), order=rows, n_rows=groups.n_rows)
    name = names[rows[0]]
    return Repeats(copies, brief(name.item() if isinstance(name, np.generic) else name))


# -- weights ----------------------------------------------------------------------------------------------------------


def read_weights(
    query_weight: Any, groups: Groups, group: Any = None, axes: Axes | None = None, *, all_may_be_zero: bool = False
) -> FloatArray:
    """Return the weight of each query, in the order of the groups."""
    refuse_lazy(query_weight, "query_weight")
    if hasattr(query_weight, "columns") and len(query_weight.shape) == 2:
        raise TypeError(
            "query_weight must be one weight per query; got a frame. Pass a mapping from id to weight, such as "
            "dict(zip(frame['qid'], frame['weight']))."
        )
    if groups.ids is not None:
        query_weight = align_by_id(query_weight, "query_weight", groups.ids)
    elif isinstance(query_weight, Mapping):
        raise TypeError(
            "query_weight must be an array in the order of the queries, because these have no ids; got a mapping. "
            "Pass qid= instead of group."
        )
    elif (known := match_index({"group": group}) if group is not None else axes) is not None:
        match_index({"query_weight": query_weight}, known)
    else:
        fix = "Pass y_true with this index" if group is None else "Pass qid= instead of group, to align weights by id"
        refuse_index(query_weight, "query_weight", fix)
    with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs, which are refused below
        weight = arrays.real_array(query_weight, "query_weight").astype(np.float64)
    if weight.shape != (groups.n_given,):
        raise ValueError(
            f"query_weight must have one weight per query, shape ({groups.n_given},); got {weight.shape}. "
            "Queries are in the order of group or of all rows of 2-D input, or of first appearance in qid or the qrels."
        )
    weight = groups.without_padding(weight)
    # Beyond these bounds, sums and products with gains could overflow or underflow.
    largest_fits = 1e-150 < weight.max() < 1e150 or (all_may_be_zero and not weight.any())
    if not (weight.min() >= 0 and largest_fits):
        raise ValueError(
            "query_weight must be finite and >= 0, with at least one weight above 0, the largest of them between "
            "1e-150 and 1e150; only their ratios matter."
        )
    return weight


def mean_row_weight(weight: NDArray[Any] | None, sizes: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the mean weight of each query's rows, 0 for a query without rows; None without weights."""
    if weight is None:
        return None
    if weight.size != sizes.sum():
        raise ValueError(f"weight must have one entry per row, {sizes.sum()}; got {weight.size}.")
    query = np.repeat(np.arange(sizes.size), sizes)
    total = np.bincount(query, weights=weight, minlength=sizes.size)
    return total / np.maximum(sizes, 1)


# -- what an evaluation keeps of its documents ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Documents and their scores. A pickle has None in their place, because they may be far larger than the result.

    Attributes
    ----------
    queries : Queries
    scores : ndarray, shape (n_rows,)
        In the precision in which the flavor compares scores.
    rows_are_documents : bool
        Whether the same row is the same document in another evaluation of the same labels.
    """

    queries: Queries
    scores: NDArray[Any]
    rows_are_documents: bool = True

    @property
    def labels(self) -> NDArray[np.float64]:
        """The label of every row of the queries, in their order; NaN if it is unjudged."""
        listed = self.queries.groups.arrange(self.queries.labels.ravel())
        with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs
            labels: NDArray[np.float64] = listed.astype(np.float64, copy=False)
        return labels

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def __deepcopy__(self, _: dict[int, Any]) -> Scored:
        return self
