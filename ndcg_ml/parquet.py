"""``evaluate_parquet``: NDCG of a Parquet file that need not fit in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._shown import shown, shown_text
from ndcg_ml.flavor import Flavor, KSpec
from ndcg_ml.partial import PartialEvaluation, evaluate_batches

__all__ = ["evaluate_parquet"]

Source: TypeAlias = "str | os.PathLike[str]"


def evaluate_parquet(
    source: Source | Iterable[Source],
    *,
    label: str,
    score: str,
    qid: str,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
    batch_rows: int = 1 << 18,
    progress: bool = False,
) -> PartialEvaluation:
    """NDCG of the rows of Parquet files, read in batches.

    Parameters
    ----------
    source : path, or iterable of paths
        One file, or files that are read one after the other as one stream.
    label, score, qid : str
        Names of the columns that hold the grade, the score and the query id of a row. No other column is read. A
        missing label (null) is an unjudged document; missing scores and ids are refused.
    flavor, k
        As for ``ndcg_score``; ``ties="docid"`` is refused.
    batch_rows : int, default 262 144
        Rows that are read at once. Memory grows with them, not with the files.
    progress : bool, default False
        Whether to show a progress bar in rows, with tqdm.

    Returns
    -------
    PartialEvaluation
        Its ``value`` is the NDCG. Files written by several workers, each with whole queries, may as well be evaluated
        one by one and merged.

    Raises
    ------
    ImportError
        pyarrow, or for the progress bar tqdm, is not installed.
    TypeError, ValueError
        A column is not in a file or holds no numbers; the rows of a query do not stand together (sort by `qid`); or
        as for ``ndcg_score``.
    OSError
        A file cannot be read.

    Examples
    --------
    >>> evaluate_parquet("scores.parquet", label="grade", score="score", qid="query", k=10).value  # doctest: +SKIP
    0.4731
    """
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, (int, np.integer)):
        raise TypeError(
            f"batch_rows must be a number of rows; got {shown(batch_rows)} of type {type(batch_rows).__name__}."
        )
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be 1 or more; got {shown(batch_rows)}.")
    columns = {"label": label, "score": score, "qid": qid}
    for name, column in columns.items():
        if not isinstance(column, str):
            raise TypeError(
                f"{name} must be the name of a column; got {shown(column)} of type {type(column).__name__}."
            )
    sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    if not sources:
        raise ValueError("source must be at least one file; got none.")
    with ExitStack() as opened:
        files = [_open(path, list(columns.values()), opened) for path in sources]
        n_rows = sum(file.metadata.num_rows for file in files)
        bar = opened.enter_context(_bar(n_rows)) if progress else None
        return evaluate_batches(_batches(files, list(columns.values()), int(batch_rows), bar), flavor=flavor, k=k)


def _open(path: Source, columns: list[str], opened: ExitStack) -> Any:
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError(
            "ndcg_ml.evaluate_parquet needs pyarrow. Install it with: pip install 'ndcg_ml[parquet]'"
        ) from error
    try:
        # Pages are read as they are needed; buffered ahead, a file of one row group would be in memory whole.
        file = opened.enter_context(ParquetFile(path, pre_buffer=False, buffer_size=1 << 20))
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # from the system, not about what is in the file
            raise
        raise ValueError(
            f"source must be Parquet files; {os.fspath(path)} is not: {shown_text(str(error))}."
        ) from error
    known = file.schema_arrow.names
    for column in columns:
        if column not in known:
            raise ValueError(
                f"{shown(column)} is not a column of {os.fspath(path)}; the columns are {shown_text(', '.join(known))}."
            )
    return file


def _batches(
    files: list[Any], columns: list[str], batch_rows: int, bar: Any
) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    for file in files:
        for batch in file.iter_batches(batch_size=batch_rows, columns=columns, use_threads=False):
            labels, scores, ids = (batch.column(name).to_numpy(zero_copy_only=False) for name in columns)
            yield labels, scores, ids
            if bar is not None:
                bar.update(batch.num_rows)


def _bar(n_rows: int) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm. Install it with: pip install 'ndcg_ml[parquet]'") from error
    return tqdm(total=n_rows, unit=" rows", unit_scale=True)
