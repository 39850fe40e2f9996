"""Frames and columns that are still to be computed: whose they are, and why they are refused."""

from __future__ import annotations


def refuse_lazy(data: object, name: str) -> None:
    """Refuse a frame or a column that is not in memory, but a query or a plan that is still to be run.

    Their columns are computed one at a time, and after a shuffle, a join or a sort each comes back in an order of its
    own: the labels of one row would meet the scores of another. And a plan may take hours.

    Raises
    ------
    TypeError
    """
    library = _lazy_library(data)
    if library is None:
        return
    kind, (fix, sister) = type(data).__name__, _LAZY[library]
    engine = f" To evaluate it where it is, use ndcg_ml.{sister}.evaluate." if sister else ""
    raise TypeError(
        f"{name} must be in memory; got a {kind} of {library}, which is still to be computed, column by column and so "
        f"perhaps each in another order. Compute the whole frame once, rows = frame.{fix}, and take {name} from rows."
        f"{engine}"
    )


# How a frame of each library is brought into memory, and the module of this package that evaluates it if it is.
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
# Libraries that have frames in memory too, and which of their types are lazy.
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
    graph = getattr(type(data), "__dask_graph__", None)  # other collections of Dask, xarray's among them
    return "dask" if graph is not None and graph(data) is not None else None
