"""Which format a file of qrels or of a run has, seen from how it begins; the name of the file does not matter."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._files.byte_ids import Names
from ndcg_ml._files.cells import names_in, scores_of
from ndcg_ml._files.csv_rows import delimiter_of, read_csv
from ndcg_ml._files.json_dicts import json_lines
from ndcg_ml._files.jsonl import coded, is_json, jsonl_lines, read_jsonl
from ndcg_ml._files.lines import AnyPath, DataFileError, as_text, begun, whole_text
from ndcg_ml._files.parquet import is_parquet, parquet_columns
from ndcg_ml._files.trec import QRELS, RUN, Lines, trec_lines
from ndcg_ml._one_line import shown


@contextmanager
def lines_of(path: AnyPath, of: str) -> Iterator[Iterator[Lines]]:
    """The documents of ``qrels`` or of a ``run`` (`of` says which), in blocks, while the file is open.

    A file that begins with a brace and a quote is JSON: JSONL if its first line is an object with a query id, and else
    one object of dicts. One whose first line names the columns ``docno`` or ``corpus-id`` is CSV or TSV. Parquet is
    known by its first bytes, and anything else is TREC.

    Raises
    ------
    DataFileError
        The file is not as its format must be.
    OSError
        The file cannot be read.
    """
    if is_parquet(path):
        columns = parquet_columns(path, lambda names: names_in(path, of, names))
        ids = {meaning: _as_text(path, columns[meaning], meaning) for meaning in ("qid", "docno")}
        yield iter([_of_columns(path, {**columns, **ids}, np.arange(1, 1 + len(columns["qid"])))])
        return
    with begun(path) as (head, file):
        if is_json(head):
            if _is_row(head):
                yield jsonl_lines(path, of, file)
            else:
                yield iter([json_lines(path, of, whole_text(path, file))])
        elif _has_header(head):
            cells, numbers = read_csv(path, lambda names: names_in(path, of, names), file=file)
            yield iter([_of_columns(path, cells, np.array(numbers, dtype=np.int64))])
        else:
            yield trec_lines(path, QRELS if of == "qrels" else RUN, file)


def table_columns(
    path: AnyPath, names: Mapping[str, str], optional: Sequence[str] = ()
) -> tuple[dict[str, Any], list[int] | None]:
    """Columns of a parquet, JSONL or CSV file by their meaning, and the line of each row, which parquet does not have.

    Raises
    ------
    DataFileError
        The file is not as its format must be, or lacks a column that is not optional.
    ImportError
        The file is parquet, and neither pyarrow nor polars is installed.
    OSError
        The file cannot be read.
    """
    if is_parquet(path):
        return {**parquet_columns(path, names, optional)}, None
    with begun(path) as (head, file):
        read = read_jsonl if is_json(head) else read_csv
        cells, numbers = read(path, names, optional, file)
    return {**cells}, numbers


def _is_row(head: bytes) -> bool:
    """Whether the first line is a JSON object with a query id; in an object of dicts a topic of that name is one."""
    try:
        first = json.loads(head.lstrip().splitlines()[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and any(
        name in first and not isinstance(first[name], (dict, list)) for name in ("qid", "query-id", "docs")
    )


def _has_header(head: bytes) -> bool:
    header = as_text(head.lstrip().splitlines()[0]) if head.strip() else ""
    if header.startswith("#"):  # a comment of TREC
        return False
    names = next(csv.reader([header], delimiter=delimiter_of(header)), [])
    return "docno" in names or "corpus-id" in names


def _of_columns(path: AnyPath, columns: dict[str, Any], numbers: NDArray[np.int64]) -> Lines:
    documents = Names()
    documents.extend(coded(columns["docno"]))
    topics = coded(columns["qid"])
    values = next(columns[name] for name in ("grade", "score") if name in columns)
    values = values if isinstance(values, np.ndarray) else scores_of(path, values)
    return Lines(topics, np.ones(len(topics), np.int64), documents, values, numbers)


def _as_text(path: AnyPath, ids: NDArray[Any], meaning: str) -> list[str]:
    """Ids of files are text: an integer is the text of its digits."""
    listed = ids.tolist()
    odd = next((value for value in listed if type(value) not in (str, int)), None)
    if odd is not None:
        what = "documents" if meaning == "docno" else "topics"
        raise DataFileError(f"{path}: the ids of {what} must be text or integers; got {shown(odd)}.")
    return list(map(str, listed))
