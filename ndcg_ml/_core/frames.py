"""Data frames of pandas, polars and pyarrow: refuse lazy ones, compare indexes, read columns, and make frames.

A library is imported only to make a frame.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.column_names import Wanted
from ndcg_ml._core.layout import keys_of
from ndcg_ml._plain.messages import brief

# -- lazy frames, which are not in memory -----------------------------------------------------------------------------


def refuse_lazy(data: object, name: str) -> None:
    """Raise if a frame or column is not in memory, but a query or a plan that would be run now.

    Its columns are computed one at a time and, after a shuffle, join or sort, may each have another order, so that the
    label of one row would be paired with the score of another. A plan may also take hours.

    Raises
    ------
    TypeError
    """
    library = _lazy_library(data)
    if library is None:
        return
    kind, (fix, sister) = type(data).__name__, _LAZY[library]
    fix = "read_all()" if kind == "RecordBatchReader" else fix
    engine = f" To evaluate it where it is, use ndcg_ml.{sister}.evaluate." if sister else ""
    raise TypeError(
        f"{name} must be in memory; got a {kind} of {library}, whose columns are computed one by one and may differ in "
        f"their order. Compute the whole frame once, rows = frame.{fix}, and take {name} from rows.{engine}"
    )


# The call that computes a frame of each library, and the module of ndcg_ml that evaluates such frames.
_LAZY: dict[str, tuple[str, str | None]] = {
    "dask": ("compute()", "dask"),
    "dask_expr": ("compute()", "dask"),
    "dask_cudf": ("compute()", "dask"),
    "pyspark": ("toPandas()", "spark"),
    "ray": ("to_pandas()", "ray"),
    "ibis": ("execute()", None),
    "duckdb": ("df()", None),
    "polars": ("collect()", None),
    "narwhals": ("collect().to_native()", None),
    "daft": ("to_pandas()", None),
    "vaex": ("to_pandas_df()", None),
    "snowflake": ("to_pandas()", None),
    "bigframes": ("to_pandas()", None),
    "pyarrow": ("to_table()", None),
}
# The lazy types of libraries that also have frames in memory.
_LAZY_TYPES = {
    "polars": ("LazyFrame", "Expr", "LazyGroupBy"),
    "narwhals": ("LazyFrame", "Expr"),
    "pyarrow": ("Dataset", "FileSystemDataset", "InMemoryDataset", "UnionDataset", "Scanner", "RecordBatchReader"),
}


def _lazy_library(data: object) -> str | None:
    for base in type(data).__mro__:
        library = base.__module__.partition(".")[0]
        if library in _LAZY and base.__name__ in _LAZY_TYPES.get(library, (base.__name__,)):
            return library
    graph = getattr(type(data), "__dask_graph__", None)  # other Dask collections, such as xarray's
    return "dask" if graph is not None and graph(data) is not None else None


# -- indexes of pandas objects ----------------------------------------------------------------------------------------


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


def _variable(name: str) -> str:
    """Return the variable to write in code, such as ``y`` for ``y of validation set 0``."""
    return re.sub(r"^(?:the )?(\w+) of .*", r"\1", name)


def _refuse_other_axes(mine: Axes, known: Axes) -> None:
    if not (mine.index is known.index or mine.index.equals(known.index)):
        at = next(
            (row for row, (one, other) in enumerate(zip(mine.index, known.index, strict=True)) if one != other), 0
        )
        code, other = _variable(mine.name), _variable(known.name)
        raise ValueError(
            f"{mine.name} and {known.name} must have the same index, because rows are matched by position; got "
            f"{_label(mine.index, at)} and {_label(known.index, at)} at row {at}. Align them by label, "
            f"{code}.loc[{other}.index], or pass {code}.to_numpy() if the rows are in the same order."
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
    # The labels 0, 1, ... are the default of pandas.
    if index is None or (type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)):
        return
    raise ValueError(
        f"{name} has an index (its first label is {_label(index)}), which may order the queries differently "
        f"from the rows, and cannot be aligned. {fix}, or pass {_variable(name)}.to_numpy() if its order is "
        "that of the rows."
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
        keys = keys_of(ids)
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
    at = np.asarray(index.get_indexer(ids))  # -1 for ids of another type, too
    absent_at = np.flatnonzero(at < 0)
    if absent_at.size:
        raise ValueError(
            f"the index of {name} must hold the id of each query; got none for {_label(ids, absent_at[0])} "
            f"({absent_at.size} of {ids.size} queries), and labels such as {_label(index)}. "
            f"Index it by query id, or pass {name}.to_numpy() if it is in order of first appearance in qid."
        )
    return np.asarray(value)[at]


def refuse_unknown_ids(value: Any, name: str, ids: Collection[Any]) -> None:
    """Raise if a mapping or Series has an entry for an id that is not one of these."""
    index = _index(value)
    keys = list(value) if isinstance(value, Mapping) else [] if index is None else index.tolist()
    known = set(ids)
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise ValueError(
            f"{name} must have entries for known queries only; got {brief(unknown[0])} ({len(unknown)} of {len(keys)} "
            f"entries), and queries such as {brief(next(iter(ids), None))}. Leave out entries of other queries."
        )


def _index(value: Any) -> Any:
    """Return the index of a pandas object or one with the same methods; None for other values."""
    index = getattr(value, "index", None)
    return index if hasattr(index, "get_indexer") else None


def _label(labels: Any, at: int = 0) -> str:
    return brief(next(iter(labels[at : at + 1].tolist()), None))


# -- columns ----------------------------------------------------------------------------------------------------------

_LIBRARIES = ("pandas", "polars", "pyarrow")


class Frame(Protocol):
    """A data frame of pandas, polars or pyarrow."""

    @property
    def columns(self) -> Any:
        """Names of the columns; of pyarrow, the columns."""

    def __getitem__(self, column: Any, /) -> Any:
        """A column."""


def library_of(data: object) -> str | None:
    """Return the library of a frame or column, or None if it is not one of the three."""
    library = type(data).__module__.partition(".")[0]
    return library if library in _LIBRARIES else None


def is_frame(data: object) -> bool:
    """Whether the data have named columns."""
    return hasattr(data, "columns") and hasattr(data, "__getitem__")


def select_columns(name: str, frame: Any, wanted: Wanted) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the column of each wanted meaning in a frame, and its values.

    Raises
    ------
    ValueError
        A column is missing or repeated, or two have one meaning.
    """
    has = list(getattr(frame, "column_names", frame.columns))  # pyarrow keeps arrays in .columns
    columns = wanted.choose(f"{name} as a data frame", has)
    return columns, {meaning: frame[column] for meaning, column in columns.items()}


def make_frame(library: str, columns: Mapping[str, NDArray[Any]]) -> Any:
    """Return a data frame of this library.

    Raises
    ------
    ImportError
        The library is not installed.
    """
    try:
        module = import_module(library)
    except ImportError as error:
        raise ImportError(f"Evaluation.to_frame needs {library}. Install it with: pip install {library}") from error
    if library == "pandas":
        return module.DataFrame(dict(columns))
    # polars and pyarrow infer the type of a list, but not of an array of Python objects.
    plain = {name: array.tolist() if array.dtype == np.dtype(object) else array for name, array in columns.items()}
    return module.DataFrame(plain) if library == "polars" else module.table(plain)
