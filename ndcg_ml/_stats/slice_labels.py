"""What ``by=`` and ``cluster=`` say: the label of every query, in one column or several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.lazy_frames import refuse_lazy
from ndcg_ml._data.pandas_index import by_id, has_all, no_labels, same_rows
from ndcg_ml._data.queries import Queries, ids_as_array, is_missing
from ndcg_ml._one_line import shown


def query_labels(by: Any, queries: Queries) -> dict[str, list[Any]]:
    """The label of every query, by column.

    Parameters
    ----------
    by : array-like, mapping of array-like by column, or data frame
        Each column has a label per row or per query. A pandas object is matched as everywhere: its index is that of
        the rows, or holds the ids of the queries. A column may be a mapping too, from the id of the query.
    queries : Queries

    Raises
    ------
    TypeError, ValueError
        A column fits neither the rows nor the queries, lacks a label, or has two in one query.
    """
    return {name: _of_column(values, f"by[{name!r}]", queries) for name, values in _columns(by).items()}


def labels_by_id(by: Any, ids: NDArray[Any]) -> dict[str, list[Any]]:
    """The label of every query, by column, for queries that are known by their ids alone; see ``column_by_id``."""
    return {name: column_by_id(values, f"by[{name!r}]", ids) for name, values in _columns(by).items()}


def column_by_id(values: Any, name: str, ids: NDArray[Any]) -> list[Any]:
    """The label of every query, from a mapping or Series by id, or in the order of the ids.

    Raises
    ------
    TypeError, ValueError
        A query has no label, or there are as many labels as something else.
    """
    if not hasattr(values, "__len__") or isinstance(values, str):
        raise TypeError(f"{name} must hold a label per query, or be a mapping from query ids; got {shown(values)}.")
    entries = by_id(values, name, ids)
    if isinstance(entries, list):
        labels = np.empty(len(entries), dtype=object)  # not np.array(), which would take tuples apart
        labels[:] = entries
    else:
        labels = ids_as_array(entries, name, "query")
    if labels.size != ids.size:
        raise ValueError(
            f"{name} must have one label per query of the first system, {ids.size}, or be a mapping from query ids; "
            f"got {labels.size}."
        )
    return _known(labels, name, ids)


def _columns(by: Any) -> dict[str, Any]:
    refuse_lazy(by, "by")
    if isinstance(by, Mapping):
        columns = dict(by)
    elif hasattr(by, "columns") and len(by.shape) == 2:
        names = by.column_names if hasattr(by, "column_names") else by.columns  # pyarrow; pandas and polars
        columns = {name: by[name] for name in names}
    else:
        name = getattr(by, "name", None)
        columns = {name if isinstance(name, str) else "by": by}
    if not columns:
        raise ValueError("by must have at least one column; got none. Leave it out to take all queries together.")
    return {str(name): values for name, values in columns.items()}


def query_clusters(cluster: Any, queries: Queries) -> NDArray[Any]:
    """The cluster of every query, as objects, from what ``cluster=`` says: one column, in the forms of ``by``.

    Raises
    ------
    TypeError, ValueError
        As for a column of ``query_labels``.
    """
    labels = _of_column(cluster, "cluster", queries)
    clusters = np.empty(len(labels), dtype=object)
    clusters[:] = labels
    return clusters


def _of_column(values: Any, name: str, queries: Queries) -> list[Any]:
    # A mapping names the queries itself, so nothing has to be aligned.
    groups = queries.groups
    refuse_lazy(values, name)
    if isinstance(values, Mapping):
        if groups.ids is None:
            raise TypeError(
                f"{name} is a mapping from query ids, and the queries have none. Pass qid= instead of group."
            )
        return column_by_id(values, name, groups.ids)
    if not hasattr(values, "__len__"):
        raise TypeError(f"{name} must hold a label per row or per query; got {shown(values)}.")
    # The number of entries says whether rows or queries are labelled. With as many of both it cannot be told, unless
    # every query is one row or an index says it.
    n_entries, n_rows, n_queries = len(values), queries.labels.shape[0], groups.n_queries
    is_indexed = hasattr(getattr(values, "index", None), "get_indexer")
    per_row = n_entries == n_rows
    if per_row and n_rows == n_queries and queries.labels.ndim == 1:
        if (groups.sizes != 1).any():
            raise ValueError(
                f"{name} has {n_entries} entries, and there are as many rows as queries, so that it cannot be told "
                "which of the two it labels. Leave out the queries without rows."
            )
        if is_indexed and groups.ids is not None:
            index, axes = values.index, queries.axes
            per_row = index.equals(axes.index) if axes is not None else not _is_named(index)
    elif per_row and is_indexed and groups.ids is not None and queries.labels.ndim == 1:
        per_row = not _is_by_id(values, name, queries)
    # An index is used to align the labels or refused: labels in another order would make wrong slices in silence.
    if is_indexed:
        if per_row and queries.labels.ndim == 2 and queries.axes is None:
            no_labels(values, name, "Pass y_true as a frame with this index")
        elif per_row:
            same_rows({name: values}, queries.axes)
        elif groups.ids is not None:
            values = by_id(values, name, groups.ids)
        else:
            no_labels(values, name, "Pass qid= instead of group, by which labels are aligned")
    # Labels per row must agree within their query, which is a row of a two-dimensional y_true.
    if queries.labels.ndim == 2 and len(getattr(values, "shape", ())) == 2:
        labels = np.asarray(values)
        if labels.shape != queries.labels.shape:
            raise ValueError(f"{name} must have the shape of y_true, {queries.labels.shape}; got {labels.shape}.")
        return _constant(ids_as_array(labels.reshape(-1), name), name, queries)
    labels = ids_as_array(values, name, "row" if per_row else "query")
    if per_row and queries.labels.ndim == 1:
        return _constant(labels, name, queries)
    if labels.size != n_queries:
        per = f"per row, {n_rows}, or one per query" if n_rows else "per query"
        raise ValueError(f"{name} must have one label {per}, {n_queries}; got {labels.size}.")
    return _known(labels, name, queries.ids)


def _is_by_id(values: Any, name: str, queries: Queries) -> bool:
    """Whether a Series with as many entries as rows is a table of queries: its index has their ids, not the rows'.

    Raises
    ------
    ValueError
        The index may be either, and what it labels depends on it.
    """
    index, axes, ids = values.index, queries.axes, queries.groups.ids
    assert ids is not None
    is_of_rows = axes is not None and index.equals(axes.index)
    if is_of_rows or not _is_named(index) or not index.is_unique or not has_all(index, ids):
        return False
    if axes is not None or ids.dtype.kind not in "iu":
        return True
    # Integers may be row numbers too, of a table in another order.
    raise ValueError(
        f"{name} has as many entries as there are rows, {len(values)}, and an index that holds the ids of all queries, "
        "which may be row numbers as well, so that it cannot be told which of the two it labels. Pass its to_dict() if "
        "the index is query ids, its to_numpy() if the entries are in the order of the rows."
    )


def _is_named(index: Any) -> bool:
    return not (type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1))


def _constant(labels: NDArray[Any], name: str, queries: Queries) -> list[Any]:
    """The label that all rows of a query have."""
    groups = queries.groups
    if not groups.sizes.all():
        raise ValueError(
            f"{name} must have one label per query, {groups.n_queries}, because some queries have no row; got one per "
            "row."
        )
    listed = groups.listed(labels)
    first = listed[groups.starts]
    known = _known(first, name, queries.ids)
    unlike = np.flatnonzero(listed != np.repeat(first, groups.sizes))
    if unlike.size:
        query = int(groups.codes()[unlike[0]])
        raise ValueError(
            f"{name} must be the same in all rows of a query, because a query is in one slice; query "
            f"{shown(queries.ids[query : query + 1].tolist()[0])} has {shown(known[query])} and "
            f"{shown(listed[unlike[:1]].tolist()[0])}. Choose a label of the query."
        )
    return known


def _known(labels: NDArray[Any], name: str, ids: NDArray[Any]) -> list[Any]:
    known = list(labels) if labels.dtype.kind in "mM" else labels.tolist()
    for query, label in enumerate(known):
        try:
            hash(label)
        except TypeError as error:
            raise TypeError(f"{name} must hold hashable labels; got {shown(label)}.") from error
        if is_missing(label):
            raise ValueError(
                f"{name} must have a label for each query; got {shown(label)} for query "
                f"{shown(ids[query : query + 1].tolist()[0])}. Give it a label of its own, such as 'none'."
            )
    return known
