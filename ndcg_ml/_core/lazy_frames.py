"""Refuse lazy frames and columns, which are not in memory."""

from __future__ import annotations


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
