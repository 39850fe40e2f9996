"""Read Parquet files in batches with pyarrow, and report all its errors as one type."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.checks import EXACT_INTEGERS
from ndcg_ml._core.one_line import brief, brief_text
from ndcg_ml._core.queries import real_array
from ndcg_ml._files.cells import NUMBERS, allowed_values, are_wrong, kind
from ndcg_ml._files.opening import ROUNDED, AnyPath, DataFileError, choose_columns, too_large, unpacked_limit
from ndcg_ml._files.tables import ColumnNames

_BATCH = 1 << 14  # rows
_ROW = 64  # bytes of memory assumed per row


def is_parquet(path: AnyPath) -> bool:
    """Return whether a regular file begins like Parquet."""
    if not os.path.isfile(path):  # a pipe can be read only once
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def parquet_batches(
    path: AnyPath, names: ColumnNames, optional: Sequence[str] = ()
) -> Iterator[dict[Any, NDArray[Any]]]:
    """Yield columns of numbers and ids by meaning, in batches; `names` as for ``text_columns``.

    Raises
    ------
    DataFileError
        A column is missing, repeated or nested, a value is missing or invalid for its column, or the file is damaged
        or too large when unpacked.
    ImportError
        pyarrow is not installed.
    OSError
        The file cannot be read.
    """
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(
            f"{path} is a Parquet file, which needs pyarrow. Install it with: pip install pyarrow"
        ) from error
    with _as_data_file_error(path):
        metadata = parquet.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        columns = schema.names
        called = names(columns) if callable(names) else names
        chosen = choose_columns(path, columns, [name for name in called.values() if name not in optional], optional)
        # A few bytes may unpack to millions of list items. The leaves of nested columns have longer paths.
        leaves = [leaf.path for leaf in metadata.schema if not leaf.max_repetition_level]
        if nested := [schema.field(name) for name in chosen if name not in leaves]:
            got = brief_text(str(nested[0].type))
            raise DataFileError(f"{path}: column {nested[0].name} must hold one value per row; got {got}.")
        # Unpack repeated ids once, and read pages only when they are needed.
        numbers = [name for meaning, name in called.items() if kind(meaning) in NUMBERS]
        shared = [name for name in chosen if name not in numbers]
        with parquet.ParquetFile(path, read_dictionary=shared, pre_buffer=False, buffer_size=1 << 20) as file:
            _check_size(path, metadata, chosen)
            first = 1
            for batch in file.iter_batches(batch_size=_BATCH, columns=chosen, use_threads=False):
                yield {
                    meaning: _check_column(path, first, name, batch.column(name), kind(meaning))
                    for meaning, name in called.items()
                    if name in chosen
                }
                first += len(batch)


def _check_size(path: AnyPath, metadata: Any, chosen: Sequence[str]) -> None:
    """Raise if the rows or the uncompressed pages of a file exceed the size limit."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    chunks = (group.column(at) for group in groups for at in range(metadata.num_columns))
    n_bytes = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in chosen)
    limit = unpacked_limit()
    if max(n_bytes, metadata.num_rows * _ROW) > limit:
        raise too_large(path, limit)


def _check_column(path: AnyPath, first: int, name: str, column: Any, meaning: str) -> NDArray[Any]:
    """Check a column of a batch, whose rows are numbered from `first`, and return its values."""
    if meaning not in NUMBERS:
        ids = _ids(column)
        listed = ids.tolist()
        if any(value is None or value != value for value in listed):
            raise DataFileError(f"{path}: column {name} must have an id in every row; got a null.")
        invalid = {
            value
            for value in set(listed)
            if value in ("", b"") or (isinstance(value, str) and ("\n" in value or "\r" in value))
        }
        if invalid:
            row, value = next((row, value) for row, value in enumerate(listed, first) if value in invalid)
            without = " without a line end" * bool(value)
            raise DataFileError(f"{path}, row {row}: {name} must be an id{without}; got {brief(value)}.")
        return ids
    values = column.to_numpy(zero_copy_only=False)
    try:
        numbers = real_array(values, name).astype(np.float64)
    except TypeError as error:
        raise DataFileError(f"{path}: column {name} must hold numbers; got {column.type}.") from error
    known = column.drop_null().to_numpy(zero_copy_only=False)  # with nulls, integers would become floats
    rounded = np.zeros(numbers.size, dtype=bool)
    if known.dtype.kind in "iuO":  # integers and decimals
        is_known = column.is_valid().to_numpy(zero_copy_only=False)
        rounded[is_known] = (known > EXACT_INTEGERS) | (known < -EXACT_INTEGERS)
    for bad, why in (
        (are_wrong(meaning, numbers), f"{name} must be {allowed_values(meaning)}"),
        (rounded, f"{name}: {ROUNDED}"),
    ):
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise DataFileError(f"{path}, row {first + at}: {why}; got {column[at]}.")
    return numbers


def _ids(column: Any) -> NDArray[Any]:
    """Return integers, or Python objects in which equal ids share an object."""
    if not hasattr(column, "dictionary"):
        plain: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return plain
    names = np.array([*column.dictionary.to_pylist(), None], dtype=object)
    indices: NDArray[Any] = column.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
    shared: NDArray[Any] = names[indices]
    return shared


@contextmanager
def _as_data_file_error(path: AnyPath) -> Iterator[None]:
    """Convert any error that pyarrow raises to an error about this file."""
    try:
        yield
    except (DataFileError, ImportError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the system, not of the file format
            raise
        raise DataFileError(f"{path}: cannot be read as Parquet: {brief_text(str(error))}") from error
