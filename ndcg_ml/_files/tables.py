"""Detect the format of a file, and read CSV, TSV, JSONL, JSON and Parquet: ids, grades, scores and labels.

This module decides which ids and numbers are valid in these formats, and which columns hold them. The first bytes of a
file decide its format, not its name. TREC files are read by ``trec``.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import chain
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import real_array
from ndcg_ml._core.checks import EXACT_INTEGERS
from ndcg_ml._core.json_values import json_repr, unique_keys
from ndcg_ml._core.layout import keys_of
from ndcg_ml._core.one_line import brief, brief_text
from ndcg_ml._core.suggestions import suggest_columns
from ndcg_ml._files.byte_ids import Names
from ndcg_ml._files.opening import (
    ROUNDED,
    AnyPath,
    DataFileError,
    MissingColumnError,
    as_number,
    as_text,
    decode_id,
    decode_utf8,
    is_rounded,
    numbered,
    open_with_head,
    too_large,
    unpacked_limit,
    whole_text,
)
from ndcg_ml._files.trec import QRELS, RUN, Lines, trec_lines

# -- cells --------------------------------------------------------------------------------------------------------


class _Rule(NamedTuple):
    """Which numbers are invalid, for one and for an array; and the allowed ones, for an error message."""

    is_wrong: Callable[[float], bool]
    are_wrong: Callable[[NDArray[np.float64]], NDArray[np.bool_]]
    allowed: str


NUMBERS = {
    "label": _Rule(math.isinf, np.isinf, "finite, or empty for an unjudged document"),
    "grade": _Rule(lambda grade: not math.isfinite(grade), lambda grades: ~np.isfinite(grades), "a finite number"),
    "score": _Rule(math.isnan, np.isnan, "a number, and not NaN"),
}
"""Meanings of numeric columns. A label may be missing, if a document is unjudged; a grade may not."""

_MISSING = ("na", "n/a", "none", "null", "<na>", "-")


def kind(meaning: Any) -> Any:
    """Return the kind of a column. Several columns of one kind have meanings such as ("score", "bm25")."""
    return meaning[0] if isinstance(meaning, tuple) else meaning


def describe_place(path: AnyPath, number: int | None) -> str:
    """Describe a line, or the whole file, for an error message."""
    return str(path) if number is None else f"{path}, line {number}"


def parse_csv_cell(path: AnyPath, number: int, name: str, cell: str, meaning: str) -> str | float:
    """Parse a cell of the CSV column `name` on line `number`."""
    if meaning not in NUMBERS:
        if not cell or "\0" in cell:
            raise DataFileError(f"{path}, line {number}: {name} must be an id; got {brief(cell)}.")
        return decode_id(path, number, cell.encode("utf-8", "surrogateescape"))
    if meaning == "label" and not cell.strip():
        return math.nan
    token = cell.encode("utf-8", "surrogateescape")
    value = as_number(token)
    if value is None:
        raise DataFileError(f"{path}, line {number}: {name} must be a number; got {brief(cell)}.{_hint(cell, meaning)}")
    if abs(value) >= EXACT_INTEGERS and is_rounded(token):
        raise DataFileError(f"{path}, line {number}: {name}: {ROUNDED}; got {brief(cell)}.")
    return _allowed_number(path, number, name, value, meaning)


def _hint(cell: str, meaning: str) -> str:
    if meaning == "label" and cell.strip().casefold() in _MISSING:
        return " Leave the cell empty if the document is unjudged."
    if as_number(cell.replace(",", ".").encode("utf-8", "surrogateescape")) is not None:
        return " Write a decimal point, not a comma."
    return ""


def parse_json_cell(path: AnyPath, number: int | None, name: str, value: Any, meaning: str) -> Any:
    """Parse a value of a JSON object, an id or a number; `number` is its line, if known."""
    if meaning not in NUMBERS:
        return parse_json_id(path, number, name, value)
    if meaning == "label" and value is None:
        return math.nan
    if type(value) not in (float, int, bool):
        raise DataFileError(f"{describe_place(path, number)}: {name} must be a number; got {json_repr(value)}.")
    if type(value) is int and abs(value) > EXACT_INTEGERS:
        raise DataFileError(f"{describe_place(path, number)}: {name}: {ROUNDED}; got {brief(value)}.")
    return _allowed_number(path, number, name, value, meaning)


def _allowed_number(path: AnyPath, number: int | None, name: str, value: float, meaning: str) -> float:
    rule = NUMBERS[meaning]
    if rule.is_wrong(value):
        raise DataFileError(f"{describe_place(path, number)}: {name} must be {rule.allowed}; got {value}.")
    return float(value)


def parse_json_id(path: AnyPath, number: int | None, name: str, value: Any) -> str:
    """Parse an id that is a string or an integer in JSON."""
    if type(value) is int:
        return str(value)
    if not isinstance(value, str) or not value:
        raise DataFileError(
            f"{describe_place(path, number)}: {name} must be an id, a string or an integer; got {json_repr(value)}."
        )
    if "\n" in value or "\r" in value:
        raise DataFileError(
            f"{describe_place(path, number)}: {name} must be an id without a line end; got {brief(value)}."
        )
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataFileError(
                f"{describe_place(path, number)}: {name} must be a string that UTF-8 can encode; got "
                f"{brief(value)}, which has an unpaired surrogate."
            ) from error
    return value


def choose_columns(path: AnyPath, names: Sequence[str], needed: Sequence[str], optional: Sequence[str]) -> list[str]:
    """Return the columns to read: all needed ones, and the optional ones that the table has."""
    missing = [name for name in needed if name not in names]
    if missing:
        has = brief_text(", ".join(map(repr, names))) or "none"
        may = f" (and may have {', '.join(optional)})" if optional else ""
        raise MissingColumnError(
            f"{path}: must have the columns {', '.join(needed)}{may}; {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. The file has {has}.{suggest_columns(missing, names)}",
            missing,
        )
    chosen = list(dict.fromkeys((*needed, *(name for name in optional if name in names))))
    repeated = [name for name in chosen if list(names).count(name) > 1]
    if repeated:
        raise DataFileError(
            f"{path}: must have each column once; got {brief(repeated[0])} {list(names).count(repeated[0])} times."
        )
    return chosen


def find_columns(path: AnyPath, of: str, columns: Sequence[str]) -> dict[str, str]:
    """Return the names of the columns of a table that hold topics, documents and values of qrels or of a run.

    They are ``qid``, ``docno`` and ``score`` (in qrels, ``label`` or ``grade``); or BEIR's ``query-id``,
    ``corpus-id`` and ``score``, which is the grade in qrels.
    """
    meaning = "grade" if of == "qrels" else "score"
    if "query-id" in columns or "corpus-id" in columns:
        return {"qid": "query-id", "docno": "corpus-id", meaning: "score"}
    if of == "run":
        return {"qid": "qid", "docno": "docno", "score": "score"}
    if "label" in columns and "grade" in columns:
        raise DataFileError(f"{path}: must have the column label or the column grade; got both. Remove one.")
    return {"qid": "qid", "docno": "docno", "grade": "grade" if "grade" in columns else "label"}


# -- tables of text -----------------------------------------------------------------------------------------------

ColumnNames: TypeAlias = "Mapping[Any, str] | Callable[[Sequence[str]], Mapping[Any, str]]"
"""The column name of each meaning, or a callable that returns these for the names in a file."""


class TextTable(NamedTuple):
    """The column names of a file, its numbered records, and the function that parses a cell."""

    names: list[str]
    records: Iterable[tuple[int, Mapping[str, Any]]]
    cell: Callable[[AnyPath, int, str, Any, str], Any]


def detect_delimiter(header: str) -> str:
    """Return a tab if the header has one, a semicolon if it has one and no comma, otherwise a comma."""
    if "\t" in header:
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def csv_table(path: AnyPath, file: IO[bytes] | None) -> TextTable:
    """Return the table of a CSV file. Each row must be on one line."""
    rows = _csv_rows(path, file)
    _, header = next(rows, (1, []))

    def records() -> Iterator[tuple[int, Mapping[str, str]]]:
        for number, row in rows:
            if len(row) != len(header):
                raise DataFileError(
                    f"{path}, line {number}: must have {len(header)} fields, like the header; got {len(row)}."
                )
            yield number, dict(zip(header, row, strict=True))

    return TextTable(header, records(), parse_csv_cell)


def _csv_rows(path: AnyPath, file: IO[bytes] | None) -> Iterator[tuple[int, list[str]]]:
    delimiter = None
    for number, line in numbered(path, file=file):
        if not line:
            continue
        text = as_text(line)
        delimiter = delimiter or detect_delimiter(text)
        try:
            [row] = csv.reader([text], delimiter=delimiter, strict=True)
        except csv.Error as error:
            why = str(error)
            if why == "unexpected end of data":
                why = "a field in quotes must end on its line"
            raise DataFileError(f"{path}, line {number}: not CSV: {brief_text(why)}.") from error
        yield number, row


def json_table(path: AnyPath, file: IO[bytes] | None) -> TextTable:
    """Return the table of a JSONL file. Its columns are the keys of the first line."""
    lines = objects(path, file)
    first = next(lines)
    return TextTable([*first[1]], chain([first], lines), parse_json_cell)


def text_columns(
    path: AnyPath, table: TextTable, names: ColumnNames, optional: Sequence[str] = ()
) -> tuple[dict[Any, list[Any]], list[int]]:
    """Return columns by meaning, as lists of ids or numbers, and the line of each row.

    Raises
    ------
    DataFileError
        A column is missing or repeated, a line lacks a key or has more or fewer fields than the header, or a cell is
        invalid for its column.
    """
    called = names(table.names) if callable(names) else names
    chosen = choose_columns(path, table.names, [name for name in called.values() if name not in optional], optional)
    columns: dict[Any, list[Any]] = {meaning: [] for meaning, name in called.items() if name in chosen}
    at_lines: list[int] = []
    for number, record in table.records:
        for meaning, column in columns.items():
            name = called[meaning]
            if name not in record:
                raise DataFileError(
                    f"{path}, line {number}: must have the key {name}, like the first line; it is missing."
                )
            column.append(table.cell(path, number, name, record[name], kind(meaning)))
        at_lines.append(number)
    return columns, at_lines


# -- JSON ---------------------------------------------------------------------------------------------------------

_JSON = re.compile(rb"\s*(\{\s*[\"}]|\[\s*[\[{\"])")


def is_json(head: bytes) -> bool:
    """Return whether a file begins like JSON. TREC ids may begin with a brace, but no quote follows it."""
    return _JSON.match(head) is not None


def objects(path: AnyPath, file: IO[bytes] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the object of each line that is not blank.

    Raises
    ------
    DataFileError
        A line is not one JSON object in UTF-8, or repeats a key.
    """
    for number, line in numbered(path, file=file):
        if line.strip():
            value = parse(path, decode_utf8(path, line, number), number)
            if not isinstance(value, dict):
                raise DataFileError(f"{path}, line {number}: a line must be a JSON object; got {json_repr(value)}.")
            yield number, value


def parse(path: AnyPath, text: str, number: int | None = None) -> Any:
    """Parse the line with this number, or a whole file, in which NaN and infinity are errors."""
    try:
        return json.loads(
            text, object_pairs_hook=unique_keys, parse_constant=_refuse_constant if number is None else None
        )
    except json.JSONDecodeError as error:
        end = ", where the value should end" if error.msg == "Extra data" else ""
        number = (number or 1) + error.lineno - 1
        why = f"{error.msg} in column {error.colno}{end}"
    except (ValueError, RecursionError) as error:  # also numbers with thousands of digits, and deep nesting
        why = str(error)
    raise DataFileError(f"{describe_place(path, number)}: not JSON: {brief_text(why)}.")


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"numbers must be finite; got {constant}")


# -- qrels and runs in JSON ---------------------------------------------------------------------------------------


def json_topics(path: AnyPath, of: str, text: str) -> dict[str, dict[str, Any] | list[str]]:
    """Parse the text of a file (`of` is "qrels" or "run") into dicts, as ``evaluate_run`` accepts them.

    Raises
    ------
    DataFileError
        The text is not such an object, or holds an invalid id or number.
    """
    topics = parse(path, text)
    if not isinstance(topics, dict):
        raise DataFileError(f"{path}: must be an object of topics; got {json_repr(topics)}.")
    meaning = "grade" if of == "qrels" else "score"
    for topic, entries in topics.items():
        parse_json_id(path, None, "a topic", topic)
        document, value = f"a document of {brief(topic)}", f"a {meaning} of {brief(topic)}"
        if isinstance(entries, dict):
            topics[topic] = {
                parse_json_id(path, None, document, key): parse_json_cell(path, None, value, number, meaning)
                for key, number in entries.items()
            }
        elif isinstance(entries, list) and of == "run":
            topics[topic] = [parse_json_id(path, None, document, key) for key in entries]
        elif entries != []:
            lists = "" if of == "qrels" else " or [document, ...], best first"
            raise DataFileError(
                f"{path}: {brief(topic)} must be {{document: {meaning}}}{lists}; got {json_repr(entries)}. Each "
                "line of JSONL needs the key qid."
            )
    return topics


def json_predictions(path: AnyPath, file: IO[bytes] | None) -> dict[str, dict[str, float]]:
    """Read a run from the predictions of an evaluator of sentence-transformers 5.1, one query per line.

    Raises
    ------
    DataFileError
        A line has no query or no results, an id or a score is invalid, or a query or one of its documents is
        repeated.
    """
    run: dict[str, dict[str, float]] = {}
    for number, line in objects(path, file):
        results = line.get("results")
        if "query_id" not in line or not isinstance(results, list):
            raise DataFileError(
                f'{path}, line {number}: must be {{"query_id": ..., "results": [{{"corpus_id": ..., "score": ...}}]}}; '
                f"it has the keys {brief_text(', '.join(line)) or 'none'}."
            )
        topic = parse_json_id(path, number, "query_id", line["query_id"])
        documents: dict[str, float] = {}
        for entry in results:
            if not isinstance(entry, dict) or not {"corpus_id", "score"} <= entry.keys():
                raise DataFileError(
                    f"{path}, line {number}: results must hold objects with corpus_id and score; got "
                    f"{json_repr(entry)}."
                )
            document = parse_json_id(path, number, "corpus_id", entry["corpus_id"])
            documents[document] = parse_json_cell(path, number, "score", entry["score"], "score")
        if topic in run or len(documents) < len(results):
            raise DataFileError(
                f"{path}, line {number}: each query must appear once, and each of its documents once; "
                f"{brief(topic)} or one of its documents is repeated."
            )
        run[topic] = documents
    return run


# -- Parquet ------------------------------------------------------------------------------------------------------

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
    known = column.drop_null().to_numpy(zero_copy_only=False)  # with nulls, integers would become floats
    rounded = np.zeros(len(column), dtype=bool)
    try:
        if known.dtype.kind in "iuO":  # integers and decimals
            is_known = column.is_valid().to_numpy(zero_copy_only=False)
            rounded[is_known] = (known > EXACT_INTEGERS) | (known < -EXACT_INTEGERS)
        _refuse_rows(path, first, column, rounded, f"{name}: {ROUNDED}")
        numbers = real_array(column.to_numpy(zero_copy_only=False), name).astype(np.float64)
    except TypeError as error:
        raise DataFileError(f"{path}: column {name} must hold numbers; got {column.type}.") from error
    rule = NUMBERS[meaning]
    _refuse_rows(path, first, column, rule.are_wrong(numbers), f"{name} must be {rule.allowed}")
    return numbers


def _refuse_rows(path: AnyPath, first: int, column: Any, bad: NDArray[np.bool_], why: str) -> None:
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataFileError(f"{path}, row {first + at}: {why}; got {column[at]}.")


def _ids(column: Any) -> NDArray[Any]:
    """Return integers, or Python objects in which equal ids share an object."""
    if not hasattr(column, "dictionary"):
        return column.to_numpy(zero_copy_only=False)
    names = np.array([*column.dictionary.to_pylist(), None], dtype=object)
    indices: NDArray[Any] = column.indices.fill_null(len(names) - 1).to_numpy()
    return names[indices]


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


# -- formats ------------------------------------------------------------------------------------------------------


@contextmanager
def open_documents(path: AnyPath, of: str) -> Iterator[Iterator[Lines] | dict[str, Any]]:
    """Open a file (`of` is "qrels" or "run") and yield its documents in blocks.

    A file that begins with a brace and a quote is JSON. It is JSONL if its first line is an object with a query id:
    one document per line, or one query with its results, as sentence-transformers writes a run. Otherwise it is one
    object of dicts, which is yielded as a dict. A file whose first line names the columns ``docno`` or ``corpus-id``
    is CSV or TSV. Parquet is recognised by its first bytes. Any other file is TREC.

    Raises
    ------
    DataFileError
        The file does not follow its format.
    OSError
        The file cannot be read.
    """
    if is_parquet(path):
        yield _read_parquet(path, of)
        return
    with open_with_head(path) as (head, file):
        # Topics may be called as the keys are. Their values are dicts or lists.
        keys = {key for key, value in _first_object(head).items() if not isinstance(value, (dict, list))}
        if keys & {"qid", "query-id"}:
            yield _read_table(path, of, json_table(path, file))
        elif "query_id" in keys and of == "run":
            yield json_predictions(path, file)
        elif is_json(head):
            yield json_topics(path, of, whole_text(path, file))
        elif _has_header(head):
            yield _read_table(path, of, csv_table(path, file))
        else:
            yield trec_lines(path, QRELS if of == "qrels" else RUN, file)


def table_columns(
    path: AnyPath, names: Mapping[Any, str], optional: Sequence[str] = ()
) -> tuple[dict[Any, Any], list[int] | None]:
    """Read columns of a Parquet, JSONL or CSV file by meaning, and the line of each row (None for Parquet).

    Raises
    ------
    DataFileError
        The file does not follow its format, or lacks a column that is not optional.
    ImportError
        The file is Parquet, and pyarrow is not installed.
    OSError
        The file cannot be read.
    """
    if is_parquet(path):
        batches = list(parquet_batches(path, names, optional))
        if not batches:
            raise DataFileError(f"{path}: has no rows.")
        return {meaning: np.concatenate([batch[meaning] for batch in batches]) for meaning in batches[0]}, None
    with open_with_head(path) as (head, file):
        table = json_table(path, file) if is_json(head) else csv_table(path, file)
        return text_columns(path, table, names, optional)


def _first_object(head: bytes) -> dict[str, Any]:
    """Return the JSON object on the first line, or an empty dict."""
    try:
        first = json.loads(head.lstrip().splitlines()[0]) if is_json(head) else None
    except (ValueError, RecursionError):
        first = None
    return first if isinstance(first, dict) else {}


def _has_header(head: bytes) -> bool:
    header = as_text(head.lstrip().splitlines()[0]) if head.strip() else ""
    if header.startswith("#"):  # a TREC comment
        return False
    try:
        names = next(csv.reader([header], delimiter=detect_delimiter(header)), [])
    except csv.Error:  # a TREC id may exceed the length limit of CSV fields
        return False
    return "docno" in names or "corpus-id" in names


def _read_table(path: AnyPath, of: str, table: TextTable) -> Iterator[Lines]:
    columns, numbers = text_columns(path, table, lambda names: find_columns(path, of, names))
    topics, documents, values = columns.values()
    yield _to_lines(topics, documents, values, numbers)


def _to_lines(topics: list[str], documents: list[str], values: list[float], numbers: Sequence[int]) -> Lines:
    names = Names()
    names.extend(_encode(documents))
    lengths = np.ones(len(topics), dtype=np.int64)
    return Lines(_encode(topics), lengths, names, np.array(values), np.array(numbers))


def _encode(ids: Iterable[str]) -> list[bytes]:
    return [text.encode() for text in ids]


def _read_parquet(path: AnyPath, of: str) -> Iterator[Lines]:
    first, n_bytes, limit = 1, 0, unpacked_limit()
    for batch in parquet_batches(path, lambda names: find_columns(path, of, names)):
        topics, documents, values = batch.values()
        topic_ids, names = _to_strings(path, topics, "topics"), _to_strings(path, documents, "documents")
        n_bytes += sum(map(len, topic_ids)) + sum(map(len, names))
        if n_bytes > limit:
            raise too_large(path, limit)
        yield _to_lines(topic_ids, names, values.tolist(), range(first, first + len(names)))
        first += len(names)


def _to_strings(path: AnyPath, ids: np.ndarray[Any, Any], what: str) -> list[str]:
    """Return ids as strings. Integers are converted."""
    listed = keys_of(ids)
    invalid = next((value for value in listed if type(value) not in (str, int)), None)
    if invalid is not None:
        raise DataFileError(f"{path}: the ids of {what} must be strings or integers; got {brief(invalid)}.")
    return list(map(str, listed))
