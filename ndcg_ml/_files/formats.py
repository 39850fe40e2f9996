"""Detect the format of a file of qrels or of a run from its first bytes. Its name does not matter."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ndcg_ml._core.one_line import brief
from ndcg_ml._files.byte_ids import Names
from ndcg_ml._files.cells import find_columns
from ndcg_ml._files.json_text import is_json, json_predictions, json_topics
from ndcg_ml._files.opening import (
    AnyPath,
    DataFileError,
    as_text,
    open_with_head,
    too_large,
    unpacked_limit,
    whole_text,
)
from ndcg_ml._files.parquet import is_parquet, parquet_batches
from ndcg_ml._files.tables import TextTable, csv_table, detect_delimiter, json_table, text_columns
from ndcg_ml._files.trec import QRELS, RUN, Lines, trec_lines


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
    return Lines(_encode(topics), lengths, names, np.array(values, dtype=np.float64), np.array(numbers, dtype=np.int64))


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
    listed = list(ids) if ids.dtype.kind in "mM" else ids.tolist()  # tolist() makes times integers
    invalid = next((value for value in listed if type(value) not in (str, int)), None)
    if invalid is not None:
        raise DataFileError(f"{path}: the ids of {what} must be strings or integers; got {brief(invalid)}.")
    return list(map(str, listed))
