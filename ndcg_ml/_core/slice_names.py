"""Read ``by=`` and ``cluster=``: the slice name of each query in each column, and its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import ids_as_array, is_missing
from ndcg_ml._core.frames import align_by_id, match_index, refuse_index, refuse_lazy
from ndcg_ml._core.layout import as_objects, keys_of
from ndcg_ml._core.queries import Queries
from ndcg_ml._plain.messages import brief


def slice_names(by: Any, queries: Queries) -> dict[str, list[Any]]:
    """Return the slice name of each query, by column.

    Parameters
    ----------
    by : array-like, mapping of array-like by column, or data frame
        Each column has one name per row of `y_true`, or is a mapping from query ids. The index of a pandas object is
        that of the rows. A mapping from query ids to names is one column, "slice".
    queries : Queries

    Raises
    ------
    TypeError, ValueError
        A column does not fit the rows, lacks a name, or has two in one query.
    """
    columns = _columns(by, queries.groups.ids)
    return {column: _names_by_row(values, f"by[{column!r}]", queries) for column, values in columns.items()}


def slice_names_by_id(by: Any, ids: NDArray[Any]) -> dict[str, list[Any]]:
    """Return the slice name of each query, by column, if there are no rows; see ``column_by_id``."""
    return {column: column_by_id(values, f"by[{column!r}]", ids) for column, values in _columns(by, ids).items()}


def query_clusters(cluster: Any, queries: Queries) -> NDArray[Any]:
    """Return the cluster of each query, as objects, from one column in the forms of ``by``.

    Raises
    ------
    TypeError, ValueError
        As for a column of ``slice_names``.
    """
    return as_objects(_names_by_row(cluster, "cluster", queries))


def column_by_id(values: Any, name: str, ids: NDArray[Any]) -> list[Any]:
    """Return the slice name of each query, from a mapping or Series by id, or from names in the order of the ids.

    Parameters
    ----------
    values : array-like or mapping
    name : str
        The argument, for error messages.
    ids : ndarray, shape (n_queries,)

    Raises
    ------
    TypeError, ValueError
        A query has no slice name, or the number of names is wrong.
    """
    if not hasattr(values, "__len__") or isinstance(values, str):
        raise TypeError(f"{name} must have one label per query, or be a mapping from query ids; got {brief(values)}.")
    entries = align_by_id(values, name, ids)
    names = as_objects(entries) if isinstance(entries, list) else ids_as_array(entries, name, "query")
    if names.size != ids.size:
        raise ValueError(
            f"{name} must have one label per query, {ids.size}, or be a mapping from query ids; got {names.size}."
        )
    return _without_missing(names, name, ids)


def _columns(by: Any, ids: NDArray[Any] | None) -> dict[str, Any]:
    """Return the columns of ``by`` by name."""
    refuse_lazy(by, "by")
    if isinstance(by, Mapping):
        keys = () if ids is None else keys_of(ids)
        no_columns = by and not any(hasattr(names, "__len__") and not isinstance(names, str) for names in by.values())
        columns = {"slice": by} if no_columns or any(key in by and _is_name(by[key]) for key in keys) else dict(by)
    elif hasattr(by, "columns") and len(by.shape) == 2:
        headings = by.column_names if hasattr(by, "column_names") else by.columns  # pyarrow; pandas and polars
        columns = {heading: by[heading] for heading in headings}
    else:
        heading = getattr(by, "name", None)
        columns = {heading if isinstance(heading, str) else "by": by}
    if not columns:
        raise ValueError("by must have at least one column; got none. Leave it out to evaluate all queries together.")
    return {str(heading): values for heading, values in columns.items()}


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, tuple)) or not hasattr(value, "__len__")


def _names_by_row(values: Any, name: str, queries: Queries) -> list[Any]:
    """Return the slice name of each query, from a name for each row or a mapping from query ids."""
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
    # Names in another order would silently give wrong slices, so an index that cannot be aligned is refused.
    if queries.axes is None:
        refuse_index(values, name, "Pass y_true with this index" + ", or a mapping from query ids" * (ids is not None))
    else:
        match_index({name: values}, queries.axes)
    names = ids_as_array(values, name, "row")
    if queries.labels.ndim == 2:
        return _without_missing(queries.groups.without_padding(names), name, queries.ids)
    groups = queries.groups
    if not groups.sizes.all():
        raise ValueError(f"{name} must have a label for each query, but some queries have no rows. Leave them out.")
    listed = groups.arrange(names)
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


def _without_missing(names: NDArray[Any], name: str, ids: NDArray[Any]) -> list[Any]:
    """Return the slice names as a list; raise if one is missing or cannot be hashed."""
    known = keys_of(names)
    for query, one in enumerate(known):
        try:
            hash(one)
        except TypeError as error:
            raise TypeError(f"{name} must hold hashable labels; got {brief(one)}.") from error
        if is_missing(one):
            raise ValueError(
                f"{name} must have a label for each query; got {brief(one)} for query "
                f"{brief(ids[query : query + 1].tolist()[0])}. Give it a label of its own, such as 'none'."
            )
    return known
