"""Detect the format of a file, and read CSV, TSV, JSONL, JSON and Parquet.

The first bytes of a file decide its format, not its name. Lines of columns are read by ``trec``, JSON by
``json_files``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from ndcg_ml._core.column_names import Wanted, kind, usual_columns
from ndcg_ml._files import json_files, opening, trec
from ndcg_ml._files.cells import NUMBERS, read_column
from ndcg_ml._files.opening import AnyPath, ColumnError, DataFileError, as_number, as_text
from ndcg_ml._files.trec import Documents, Form, Lines
from ndcg_ml._plain.messages import brief, brief_text

Batch: TypeAlias = tuple[Sequence[int], dict[Any, Any]]
"""Numbers of rows, and their columns by meaning."""

# -- text -------------------------------------------------------------------------------------------------------------

_CSV = (",", ";")


def _first_line(path: AnyPath, head: bytes, name: str = "a table") -> tuple[Form, bytes]:
    """Return the first line that is neither blank nor a comment, and a form of which its cells are the columns.

    The delimiter is a tab if the line has one, otherwise a comma or a semicolon. If the line has none of them, blanks
    separate the cells.
    """
    before = line = b""
    for line in head.splitlines(keepends=True):
        if line.strip() and not line.lstrip().startswith(b"#"):
            break
        before, line = before + line, b""
    text = as_text(line)
    delimiter = next((each for each in ("\t", *_CSV) if each in text), "")
    form = Form(name, tuple(text.split()), {}, False, delimiter, before)
    if delimiter:
        [(_, [cells])] = trec.csv_rows(path, delimiter, form.first, [line])
        form = replace(form, columns=tuple(cell.strip() for cell in cells))
    return form, line


def _below_header(path: AnyPath, wanted: Wanted, form: Form, header: bytes) -> tuple[Form, dict[Any, str]]:
    """Return the form of the lines below a header, and its columns."""
    columns = wanted.choose(str(path), form.columns, ColumnError)
    used = {meaning: form.columns.index(column) for meaning, column in columns.items()}
    return replace(form, used=used, head=form.head + header), columns


def _detect_form(path: AnyPath, wanted: Wanted, head: bytes) -> tuple[Form, dict[Any, str]]:
    """Return the form of a text file of qrels or of a run, and its columns if a header names them."""
    [of], value = wanted.within, wanted.meanings[-1]
    form = trec.QRELS if of == "qrels" else trec.RUN
    first, line = _first_line(path, head, form.name)
    cells, delimiter, words = first.columns, first.delimiter, line.split()
    is_number = [as_number(cell.encode("utf-8", "surrogateescape")) is not None for cell in cells]
    if len(words) > 1 and words[1].startswith(b"qid:"):
        read = "Pass it as --labels, with --scores, or to ndcg_ml.readers.read_letor."
        raise DataFileError(f"{path}: must be {form.name}; got LETOR. {read}")
    short = replace(first, columns=("topic", "document", "grade"), used={"qid": 0, "docno": 1, "label": 2})
    below = head[len(first.head + line) :].strip().partition(b"\n")[0]
    size = len(below.split(delimiter.encode() or None)) if below else len(cells)
    n_short = len(cells) if of == "qrels" and size == len(cells) else 0
    is_named = any(usual_columns(meaning, cells) for meaning in ("qid", "docno"))
    if n_short == 3 and is_number[2] and not is_named:
        return short, {}
    has_columns = len(words) == len(form.columns) or (form.longer and len(words) > len(form.columns))
    if has_columns and as_number(words[form.used[value]]) is not None:
        return form, {}
    is_above_number = len(cells) > 2 and below != b"" and as_number(below.split()[-1]) is not None
    is_header = delimiter in _CSV or is_above_number or not {*cells}.isdisjoint(wanted.names.values())
    if is_named or (is_header and not any(is_number)):
        return _below_header(path, wanted, first, line)
    if delimiter in _CSV or (of == "run" and len(cells) == 3):
        header = f"{delimiter or ' '}".join(("qid", "docno", value)) + " (or rank, 1 is the best)" * (of == "run")
        got = brief(as_text(line).strip())
        raise DataFileError(f"{path}: must begin with a line of the names of its columns, such as {header}; got {got}.")
    if n_short == 2:
        return replace(short, columns=short.columns[:2], used={"qid": 0, "docno": 1}), {}
    return (short if n_short == 3 and cells[2].isalpha() else form), {}


# -- Parquet ------------------------------------------------------------------------------------------------------

_BATCH = 1 << 14  # rows
_ROW = 64  # bytes of memory assumed per row
_FLOATS = ("halffloat", "float", "double")  # types whose values are no ids, because 7.0 may be the id 7


def _is_parquet(path: AnyPath, head: bytes) -> bool:
    """Return whether a file is Parquet. A pipe cannot be, because it can be read only once."""
    return head.startswith(b"PAR1") and os.path.isfile(path)


def open_parquet(path: AnyPath, wanted: Wanted) -> tuple[dict[Any, str], Iterator[Batch]]:
    """Return the column of each meaning, as ``Wanted.choose`` does, and batches of rows.

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
        columns = wanted.choose(str(path), schema.names, ColumnError)
        # A few bytes may unpack to millions of list items. The leaves of nested columns have longer paths.
        leaves = [leaf.path for leaf in metadata.schema if not leaf.max_repetition_level]
        if nested := [schema.field(name) for name in columns.values() if name not in leaves]:
            got = brief_text(str(nested[0].type))
            raise DataFileError(f"{path}: column {nested[0].name} must hold one value per row; got {got}.")
        _check_size(path, metadata, [*columns.values()])
    return columns, _parquet_batches(path, parquet, columns)


def _parquet_batches(path: AnyPath, parquet: Any, columns: Mapping[Any, str]) -> Iterator[Batch]:
    # Unpack repeated ids once, and read pages only when they are needed.
    shared = [name for meaning, name in columns.items() if kind(meaning) not in NUMBERS]
    first = 1
    with (
        _as_data_file_error(path),
        parquet.ParquetFile(path, read_dictionary=shared, pre_buffer=False, buffer_size=1 << 20) as file,
    ):
        for batch in file.iter_batches(batch_size=_BATCH, columns=[*columns.values()], use_threads=False):
            numbers = range(first, first + len(batch))
            read = partial(_read_column, path, trec.place_in(path, numbers, "row"))
            yield numbers, {each: read(name, batch.column(name), each) for each, name in columns.items()}
            first = numbers.stop


def _parquet_lines(path: AnyPath, batches: Iterator[Batch]) -> Iterator[Lines]:
    n_bytes, limit = 0, opening.unpacked_limit()
    for numbers, columns in batches:
        n_bytes += sum(map(len, chain(columns["qid"], columns["docno"])))
        if n_bytes > limit:
            raise opening.too_large(path, limit)
        yield trec.as_lines(numbers, *columns.values())


def _check_size(path: AnyPath, metadata: Any, chosen: Sequence[str]) -> None:
    """Raise if the rows or the uncompressed pages of a file exceed the size limit."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    chunks = (group.column(at) for group in groups for at in range(metadata.num_columns))
    n_bytes = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in chosen)
    limit = opening.unpacked_limit()
    if max(n_bytes, metadata.num_rows * _ROW) > limit:
        raise opening.too_large(path, limit)


def _read_column(path: AnyPath, place: Callable[[int], str], name: str, column: Any, meaning: Any) -> Any:
    """Return the numbers of a column, or its ids as text, of which equal ones share an object."""
    type_name = str(column.type)
    if kind(meaning) in NUMBERS:
        if "decimal" in type_name:  # a cast to float64 would round large integers
            numbers = [x if x is None else int(x) if x == int(x) else float(x) for x in column.to_pylist()]
            return read_column(place, name, numbers, meaning)
        try:
            values = column if "string" in type_name or "binary" in type_name else column.cast("float64")
        except (ValueError, NotImplementedError) as error:
            why = f"numbers, integers up to 2^53; got {type_name}: {brief_text(str(error))}"
            raise DataFileError(f"{path}: column {name} must hold {why}.") from error
    elif hasattr(column, "dictionary"):
        names = np.array([*column.dictionary.cast("string").to_pylist(), None], dtype=object)
        codes = column.indices.fill_null(len(names) - 1).to_numpy()
        used, first = np.unique(codes, return_index=True)
        names[used] = read_column(lambda at: place(int(first[at])), name, names[used].tolist(), meaning)
        return names[codes].tolist()
    else:
        values = column if type_name in _FLOATS else column.cast("string")
    return read_column(place, name, values.to_numpy(zero_copy_only=False).tolist(), meaning)


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


# -- formats ----------------------------------------------------------------------------------------------------------


@contextmanager
def open_documents(path: AnyPath, wanted: Wanted) -> Iterator[Documents]:
    """Open a file of qrels or of a run and yield its documents.

    Parquet is recognised by its first bytes. A file that begins with a brace or a bracket and a quote is JSON. The
    first line of another text is a header if it names columns; otherwise its cells say which columns there are.

    Raises
    ------
    DataFileError
        The file does not follow its format.
    OSError
        The file cannot be read.
    """
    with opening.open_with_head(path) as (head, file):
        if _is_parquet(path, head):
            columns, batches = open_parquet(path, wanted)
            yield Documents(_parquet_lines(path, batches), columns, "row", len(columns) == 2)
        elif json_files.is_json(head):
            yield json_files.json_documents(path, wanted, head, file)
        else:
            form, columns = _detect_form(path, wanted, head)
            yield Documents(trec.trec_lines(path, form, file), columns, are_pairs=len(form.used) == 2)


def table_columns(path: AnyPath, wanted: Wanted) -> tuple[dict[Any, str], dict[Any, Any]]:
    """Read columns of a Parquet, JSON or CSV file: their names and values by meaning. Ids are lists of strings.

    Raises
    ------
    DataFileError
        The file does not follow its format, or lacks a column that is not optional.
    ImportError
        The file is Parquet, and pyarrow is not installed.
    OSError
        The file cannot be read.
    """
    parts: list[dict[Any, Any]]
    with opening.open_with_head(path) as (head, file):
        if _is_parquet(path, head):
            columns, batches = open_parquet(path, wanted)
            parts = [part for _, part in batches]
        elif json_files.is_json(head):
            unit, first, objects = json_files.read_objects(path, wanted, head, file)
            try:
                columns = wanted.choose(f"{path}: its first object", [*first], ColumnError)
            except ColumnError as error:
                fix = " If documents are in lists, pass it as qrels and run: columns={'docno': [RELEVANT, RETRIEVED]}."
                raise ColumnError(f"{error}{fix * any(isinstance(each, list) for each in first.values())}") from None
            read = partial(json_files.object_columns, path, unit or "record", columns)
            parts = [*map(read, objects)]
        else:
            form, columns = _below_header(path, wanted, *_first_line(path, head))
            parts = [part for _, part in trec.csv_columns(path, form, form.first, trec.after_head(path, form, file))]
    if not parts:
        raise DataFileError(f"{path}: has no rows.")
    lists = {meaning: [part[meaning] for part in parts] for meaning in columns}
    return columns, {
        meaning: list(chain.from_iterable(each)) if isinstance(each[0], list) else np.concatenate(each)
        for meaning, each in lists.items()
    }
