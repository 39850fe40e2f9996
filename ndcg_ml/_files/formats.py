"""Detect which format a file of qrels or of a run has from how it begins; the name of the file does not matter."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ndcg_ml._files.byte_ids import Names
from ndcg_ml._files.cells import names_in
from ndcg_ml._files.json_text import is_json, json_predictions, json_topics
from ndcg_ml._files.lines import (
    AnyPath,
    DataFileError,
    as_text,
    opened_with_head,
    too_large,
    unpacked_limit,
    whole_text,
)
from ndcg_ml._files.parquet import is_parquet, parquet_batches
from ndcg_ml._files.tables import TextTable, csv_table, delimiter_of, json_table, text_columns
from ndcg_ml._files.trec import QRELS, RUN, Lines, trec_lines
from ndcg_ml._one_line import brief


@contextmanager
def lines_of(path: AnyPath, of: str) -> Iterator[Iterator[Lines] | dict[str, Any]]:
    """Give the documents of ``qrels`` or of a ``run`` (`of` says which), in blocks, while the file is open.

    A file that begins with a brace and a quote is JSON. It is JSONL if its first line is an object with a query id:
    one document per line, or one query with its results, as sentence-transformers writes a run. Otherwise it is one
    object of dicts, which is given as it is. A file whose first line names the columns ``docno`` or ``corpus-id`` is
    CSV or TSV. Parquet is known by its first bytes, and anything else is TREC.

    Raises
    ------
    DataFileError
        The file is not as its format must be.
    OSError
        The file cannot be read.
    """
    if is_parquet(path):
        yield _lines_of_parquet(path, of)
        return
    with opened_with_head(path) as (head, file):
        first = _first_object(head)
        if "query_id" in first and of == "run":
            yield json_predictions(path, file)
        elif any(name in first and not isinstance(first[name], (dict, list)) for name in ("qid", "query-id")):
            yield _lines_of_table(path, of, json_table(path, file))
        elif is_json(head):
            yield json_topics(path, of, whole_text(path, file))
        elif _has_header(head):
            yield _lines_of_table(path, of, csv_table(path, file))
        else:
            yield trec_lines(path, QRELS if of == "qrels" else RUN, file)


def table_columns(
    path: AnyPath, names: Mapping[Any, str], optional: Sequence[str] = ()
) -> tuple[dict[Any, Any], list[int] | None]:
    """Return columns of a Parquet, JSONL or CSV file by their meaning; and the line of each row, None for Parquet.

    Raises
    ------
    DataFileError
        The file is not as its format must be, or lacks a column that is not optional.
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
    with opened_with_head(path) as (head, file):
        table = json_table(path, file) if is_json(head) else csv_table(path, file)
        return text_columns(path, table, names, optional)


def _first_object(head: bytes) -> dict[str, Any]:
    """Return the JSON object of the first line; an empty one if it is something else."""
    try:
        first = json.loads(head.lstrip().splitlines()[0]) if is_json(head) else None
    except (ValueError, RecursionError):
        first = None
    return first if isinstance(first, dict) else {}


def _has_header(head: bytes) -> bool:
    header = as_text(head.lstrip().splitlines()[0]) if head.strip() else ""
    if header.startswith("#"):  # a comment of TREC
        return False
    try:
        names = next(csv.reader([header], delimiter=delimiter_of(header)), [])
    except csv.Error:  # an id of TREC may be longer than a field of CSV
        return False
    return "docno" in names or "corpus-id" in names


def _lines_of_table(path: AnyPath, of: str, table: TextTable) -> Iterator[Lines]:
    columns, numbers = text_columns(path, table, lambda names: names_in(path, of, names))
    topics, documents, values = columns.values()
    yield _lines(topics, documents, values, numbers)


def _lines(topics: list[str], documents: list[str], values: list[float], numbers: Sequence[int]) -> Lines:
    names = Names()
    names.extend(_coded(documents))
    lengths = np.ones(len(topics), dtype=np.int64)
    return Lines(_coded(topics), lengths, names, np.array(values, dtype=np.float64), np.array(numbers, dtype=np.int64))


def _coded(ids: Iterable[str]) -> list[bytes]:
    """Return ids as bytes in UTF-8, as files have them."""
    return [text.encode("utf-8", "surrogateescape") for text in ids]


def _lines_of_parquet(path: AnyPath, of: str) -> Iterator[Lines]:
    first, n_bytes, limit = 1, 0, unpacked_limit()
    for batch in parquet_batches(path, lambda names: names_in(path, of, names)):
        topics, documents, values = batch.values()
        topic_ids, names = _as_text(path, topics, "topics"), _as_text(path, documents, "documents")
        n_bytes += sum(map(len, topic_ids)) + sum(map(len, names))
        if n_bytes > limit:
            raise too_large(path, limit)
        yield _lines(topic_ids, names, values.tolist(), range(first, first + len(names)))
        first += len(names)


def _as_text(path: AnyPath, ids: np.ndarray[Any, Any], what: str) -> list[str]:
    """Return ids as strings: an integer becomes the string of its digits."""
    listed = ids.tolist()
    odd = next((value for value in listed if type(value) not in (str, int)), None)
    if odd is not None:
        raise DataFileError(f"{path}: the ids of {what} must be strings or integers; got {brief(odd)}.")
    return list(map(str, listed))
