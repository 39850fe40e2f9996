"""Compare the indexes of pandas objects, and find values of queries by index.

NumPy would ignore an index and read by position. pandas is not imported: an index is recognised by its methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.one_line import brief


class Axes(NamedTuple):
    """The index and columns of an argument.

    Attributes
    ----------
    name : str
        Name of the argument.
    index, columns : pandas.Index or None
    """

    name: str
    index: Any
    columns: Any


def match_index(arguments: Mapping[str, Any], known: Axes | None = None) -> Axes | None:
    """Return the index that these arguments share; None if none of them has one.

    Parameters
    ----------
    arguments : mapping of array-like by name
        The values as the caller passed them. Those without an index are taken by position.
    known : Axes, optional
        An index that they must have too.

    Raises
    ------
    ValueError
        Two of them have different indexes, or the same columns in another order.
    """
    for name, value in arguments.items():
        index = _index(value)
        if index is None:
            continue
        mine = Axes(name, index, value.columns if value.ndim == 2 else None)
        if known is None:
            known = mine
        elif len(index) == len(known.index):  # other lengths are refused with the shapes
            _refuse_other_axes(mine, known)
    return known


def _refuse_other_axes(mine: Axes, known: Axes) -> None:
    if not (mine.index is known.index or mine.index.equals(known.index)):
        at = next(
            (row for row, (one, other) in enumerate(zip(mine.index, known.index, strict=True)) if one != other), 0
        )
        raise ValueError(
            f"{mine.name} and {known.name} must have the same index, because rows are matched by position; got "
            f"{_label(mine.index, at)} and {_label(known.index, at)} at row {at}. Align them by label, "
            f"{mine.name}.loc[{known.name}.index], or pass {mine.name}.to_numpy() if the rows are in the same order."
        )
    if mine.columns is None or known.columns is None or mine.columns is known.columns:
        return
    if not mine.columns.equals(known.columns) and set(mine.columns) == set(known.columns):
        raise ValueError(
            f"{mine.name} and {known.name} must have their columns in the same order, because documents are matched by "
            f"position. Pass {mine.name}[{known.name}.columns]."
        )


def refuse_index(value: Any, name: str, fix: str) -> None:
    """Raise if a value has an index that may name queries, for arguments that cannot be aligned by it.

    Raises
    ------
    ValueError
        The index differs from 0, 1, ...
    """
    index = _index(value)
    if index is None or _is_default(index):
        return
    raise ValueError(
        f"{name} has an index (its first label is {_label(index)}), which may order the queries differently "
        f"from the rows, and cannot be aligned. {fix}, or pass {name}.to_numpy() if its order is that of the "
        "rows."
    )


def align_by_id(value: Any, name: str, ids: NDArray[Any]) -> Any:
    """Return the entry of each query, by its id in the index or the keys. Other values are returned unchanged.

    Parameters
    ----------
    value : array-like, pandas.Series or mapping
        One number per query. Entries of other queries are ignored.
    name : str
    ids : ndarray, shape (n_queries,)

    Raises
    ------
    ValueError
        A query has no entry, or an id has two.
    """
    if isinstance(value, Mapping):
        keys = list(ids) if ids.dtype.kind in "mM" else ids.tolist()
        absent = [key for key in keys if key not in value]
        if absent:
            raise ValueError(
                f"{name} must have an entry for the id of each query; got none for {brief(absent[0])} "
                f"({len(absent)} of {len(keys)} queries), and keys such as {brief(next(iter(value), None))}."
            )
        return [value[key] for key in keys]
    index = _index(value)
    if index is None:
        return value
    if not index.is_unique:
        raise ValueError(
            f"the index of {name} must name each query once; got {_label(index[index.duplicated()])} more than once."
        )
    at = _find_positions(index, ids)
    absent_at = np.flatnonzero(at < 0)
    if absent_at.size:
        raise ValueError(
            f"the index of {name} must hold the id of each query; got none for {_label(ids, absent_at[0])} "
            f"({absent_at.size} of {ids.size} queries), and labels such as {_label(index)}. "
            f"Index it by query id, or pass {name}.to_numpy() if it is in order of first appearance in qid."
        )
    return np.asarray(value)[at]


def _index(value: Any) -> Any:
    """Return the index of a pandas object or one with the same methods; None for other values."""
    index = getattr(value, "index", None)
    return index if hasattr(index, "get_indexer") else None


def _label(labels: Any, at: int = 0) -> str:
    return brief(next(iter(labels[at : at + 1].tolist()), None))


def _is_default(index: Any) -> bool:
    """Whether the labels are 0, 1, ..., the default of pandas."""
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def _find_positions(index: Any, ids: NDArray[Any]) -> NDArray[np.intp]:
    try:
        at: NDArray[np.intp] = np.asarray(index.get_indexer(ids))
    except (TypeError, ValueError):  # ids and labels differ in type
        at = np.full(ids.size, -1)
    return at
