"""Read the labels of ``by=`` and ``cluster=``: one per query in each column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import as_objects
from ndcg_ml._core.lazy_frames import refuse_lazy
from ndcg_ml._core.one_line import brief
from ndcg_ml._core.pandas_index import align_by_id, match_index, refuse_index
from ndcg_ml._core.queries import Queries, ids_as_array, is_missing


def query_labels(by: Any, queries: Queries) -> dict[str, list[Any]]:
    """Return the label of every query, by column.

    Parameters
    ----------
    by : array-like, mapping of array-like by column, or data frame
        Each column has one label per row of `y_true`, or is a mapping from query ids. The index of a pandas object is
        that of the rows. A mapping from query ids to labels is one column, "slice".
    queries : Queries

    Raises
    ------
    TypeError, ValueError
        A column does not fit the rows, lacks a label, or has two in one query.
    """
    return {
        name: _labels_of_rows(values, f"by[{name!r}]", queries)
        for name, values in _columns(by, queries.groups.ids).items()
    }


def labels_by_id(by: Any, ids: NDArray[Any]) -> dict[str, list[Any]]:
    """Return the label of every query, by column, if only the ids of queries are known; see ``column_by_id``."""
    return {name: column_by_id(values, f"by[{name!r}]", ids) for name, values in _columns(by, ids).items()}


def column_by_id(values: Any, name: str, ids: NDArray[Any]) -> list[Any]:
    """Return the label of every query, from a mapping or Series by id, or from labels in the order of the ids.

    Raises
    ------
    TypeError, ValueError
        A query has no label, or the number of labels is wrong.
    """
    if not hasattr(values, "__len__") or isinstance(values, str):
        raise TypeError(f"{name} must have one label per query, or be a mapping from query ids; got {brief(values)}.")
    entries = align_by_id(values, name, ids)
    labels = as_objects(entries) if isinstance(entries, list) else ids_as_array(entries, name, "query")
    if labels.size != ids.size:
        raise ValueError(
            f"{name} must have one label per query, {ids.size}, or be a mapping from query ids; got {labels.size}."
        )
    return _without_missing(labels, name, ids)


def _columns(by: Any, ids: NDArray[Any] | None) -> dict[str, Any]:
    refuse_lazy(by, "by")
    if isinstance(by, Mapping):
        keys = () if ids is None else list(ids) if ids.dtype.kind in "mM" else ids.tolist()
        columns = {"slice": by} if any(key in by and _is_label(by[key]) for key in keys) else dict(by)
    elif hasattr(by, "columns") and len(by.shape) == 2:
        names = by.column_names if hasattr(by, "column_names") else by.columns  # pyarrow; pandas and polars
        columns = {name: by[name] for name in names}
    else:
        name = getattr(by, "name", None)
        columns = {name if isinstance(name, str) else "by": by}
    if not columns:
        raise ValueError("by must have at least one column; got none. Leave it out to evaluate all queries together.")
    return {str(name): values for name, values in columns.items()}


def _is_label(value: Any) -> bool:
    return isinstance(value, (str, tuple)) or not hasattr(value, "__len__")


def query_clusters(cluster: Any, queries: Queries) -> NDArray[Any]:
    """Return the cluster of every query, as objects, from one column in the forms of ``by``.

    Raises
    ------
    TypeError, ValueError
        As for a column of ``query_labels``.
    """
    return as_objects(_labels_of_rows(cluster, "cluster", queries))


def _labels_of_rows(values: Any, name: str, queries: Queries) -> list[Any]:
    refuse_lazy(values, name)
    ids, n_rows = queries.groups.ids, queries.labels.shape[0]
    if isinstance(values, Mapping):
        if ids is None:
            raise TypeError(
                f"{name} must not be a mapping from query ids if queries have no ids. Pass qid= instead of group."
            )
        return column_by_id(values, name, ids)
    if not hasattr(values, "__len__") or isinstance(values, str):
        raise TypeError(f"{name} must have one label per row, or be a mapping from query ids; got {brief(values)}.")
    if len(values) != n_rows:
        raise ValueError(
            f"{name} must have one label per row of y_true, {n_rows}; got {len(values)}. Pass labels of queries as a "
            "mapping from query ids: a dict, or to_dict() of a Series."
        )
    # Labels in another order would silently give wrong slices, so an index that cannot be aligned is refused.
    if queries.axes is None:
        refuse_index(values, name, "Pass y_true with this index, or a mapping from query ids")
    else:
        match_index({name: values}, queries.axes)
    labels = ids_as_array(values, name, "row")
    return _without_missing(labels, name, queries.ids) if queries.labels.ndim == 2 else _constant(labels, name, queries)


def _constant(labels: NDArray[Any], name: str, queries: Queries) -> list[Any]:
    """Return the label of each query, which must be the same in all its rows."""
    groups = queries.groups
    if not groups.sizes.all():
        raise ValueError(f"{name} must have a label for each query, but some queries have no rows. Leave them out.")
    listed = groups.arrange(labels)
    first = listed[groups.starts]
    known = _without_missing(first, name, queries.ids)
    differs = np.flatnonzero(listed != np.repeat(first, groups.sizes))
    if differs.size:
        query = int(groups.codes()[differs[0]])
        raise ValueError(
            f"{name} must be the same in all rows of a query, because each query is in one slice; query "
            f"{brief(queries.ids[query : query + 1].tolist()[0])} has {brief(known[query])} and "
            f"{brief(listed[differs[:1]].tolist()[0])}. Choose a label of the query."
        )
    return known


def _without_missing(labels: NDArray[Any], name: str, ids: NDArray[Any]) -> list[Any]:
    known = list(labels) if labels.dtype.kind in "mM" else labels.tolist()
    for query, label in enumerate(known):
        try:
            hash(label)
        except TypeError as error:
            raise TypeError(f"{name} must hold hashable labels; got {brief(label)}.") from error
        if is_missing(label):
            raise ValueError(
                f"{name} must have a label for each query; got {brief(label)} for query "
                f"{brief(ids[query : query + 1].tolist()[0])}. Give it a label of its own, such as 'none'."
            )
    return known
