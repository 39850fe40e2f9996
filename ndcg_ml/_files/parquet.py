"""Parquet files: whole columns by pyarrow or polars, batches by pyarrow, and one error for whatever they raise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.queries import kept_apart
from ndcg_ml._files.cells import NUMBERS, are_wrong, must
from ndcg_ml._files.lines import AnyPath, DataFileError, chosen_columns
from ndcg_ml._one_line import shown_text


def is_parquet(path: AnyPath) -> bool:
    """Whether this is a file that begins as Parquet files do."""
    if not os.path.isfile(path):  # a pipe can be read only once
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def read_parquet(
    path: AnyPath, needed: Sequence[str] | Callable[[Sequence[str]], Sequence[str]], optional: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """Whole columns: all that are needed, as names or made from the file's names, and the optional ones that it has.

    Raises
    ------
    DataFileError
        A column is missing or appears twice, or the file is damaged.
    ImportError
        Neither pyarrow nor polars is installed.
    OSError
        The file cannot be read.
    """
    with _as_data_file_error(path):
        try:
            file: Any = import_module("pyarrow.parquet").ParquetFile(path)
            names, read = file.schema_arrow.names, file.read
        except ImportError:
            try:
                polars = import_module("polars")
            except ImportError as error:
                raise ImportError(
                    f"{path} is a Parquet file, and reading it needs pyarrow or polars. Install one with: "
                    "pip install pyarrow"
                ) from error
            names, read = list(polars.read_parquet_schema(path)), partial(polars.read_parquet, path)
        wanted = chosen_columns(path, names, needed(names) if callable(needed) else needed, optional)
        table = read(columns=wanted)
        return {name: _as_array(table[name]) for name in wanted}


def parquet_columns(
    path: AnyPath,
    names: Mapping[str, str] | Callable[[Sequence[str]], Mapping[str, str]],
    optional: Sequence[str] = (),
) -> dict[str, NDArray[Any]]:
    """Columns by their meaning, of numbers and of ids as the file has them; `names` as for ``read_csv``.

    Raises
    ------
    DataFileError
        As from ``read_parquet``; a number or an id is missing, or is not what its column must hold.
    """
    called: dict[str, str] = {}

    def needed(columns: Sequence[str]) -> list[str]:
        called.update(names(columns) if callable(names) else names)
        return [name for name in called.values() if name not in optional]

    read = read_parquet(path, needed, optional)
    columns = {meaning: read[name] for meaning, name in called.items() if name in read}
    for meaning, values in columns.items():
        name = called[meaning]
        if meaning in NUMBERS:
            if values.dtype.kind not in "fiub":
                raise DataFileError(f"{path}: column {name} must hold numbers; got {values.dtype}.")
            columns[meaning] = numbers = values.astype(np.float64)
            bad = np.flatnonzero(are_wrong(meaning, numbers))
            if bad.size:
                raise DataFileError(f"{path}, row {bad[0] + 1}: {name} must be {must(meaning)}; got {numbers[bad[0]]}.")
            if meaning == "score" and values.dtype.kind in "iu":  # float64 would make some large integers equal
                columns[meaning] = kept_apart(values, numbers, name)
        elif any(isinstance(value, (list, dict, np.ndarray)) for value in values.tolist()):
            raise DataFileError(f"{path}: column {name} must hold one id per row; got lists or records.")
        elif any(value is None or value != value for value in values.tolist()):
            raise DataFileError(f"{path}: column {name} must have an id in every row; got a null.")
    return columns


class ParquetStream:
    """Some columns of a file, read in batches. A context manager, which closes the file.

    Raises
    ------
    DataFileError, ImportError, OSError
        As from ``read_parquet``; but only pyarrow can read in batches.
    """

    def __init__(self, path: AnyPath, columns: Sequence[str]) -> None:
        try:
            parquet = import_module("pyarrow.parquet")
        except ImportError as error:
            raise ImportError(
                "ndcg_ml.evaluate_parquet needs pyarrow. Install it with: pip install 'ndcg_ml[parquet]'"
            ) from error
        self._path, self._columns = path, columns
        with _as_data_file_error(path):
            # Pages are read as they are needed; buffered ahead, a file of one row group would be in memory whole.
            self._file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
            chosen_columns(path, self._file.schema_arrow.names, columns)
        self.n_rows: int = self._file.metadata.num_rows

    def __enter__(self) -> ParquetStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def batches(self, rows: int) -> Iterator[list[NDArray[Any]]]:
        """The columns, in the order in which they were named, of that many rows at once."""
        with _as_data_file_error(self._path):
            for batch in self._file.iter_batches(batch_size=rows, columns=list(self._columns), use_threads=False):
                yield [batch.column(name).to_numpy(zero_copy_only=False) for name in self._columns]


def _as_array(column: Any) -> NDArray[Any]:
    array = np.asarray(column)
    if array.dtype.kind != "U":
        return array
    objects = np.empty(array.shape, dtype=object)  # polars makes strings of NumPy, which lose a NUL at the end
    objects[:] = column.to_list()
    return objects


@contextmanager
def _as_data_file_error(path: AnyPath) -> Iterator[None]:
    """Report whatever pyarrow or polars raise, each with types of its own, as an error about this file."""
    try:
        yield
    except (DataFileError, ImportError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the system, not of the content
            raise
        raise DataFileError(f"{path}: cannot be read as Parquet: {shown_text(str(error))}") from error
