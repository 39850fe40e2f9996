"""JSONL: one JSON object on each line, for each document of a query or for all of them.

A line is ``{"qid": "q1", "docno": "d1", "score": 0.5}``, or ``{"qid": "q1", "docs": ...}`` with an object of scores, a
list of objects, or in a run a list of ids, the best first. Ids are text; an integer is the text of its digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from ndcg_ml._files.byte_ids import Names
from ndcg_ml._files.cells import cell_of_json, id_of_json, in_json, names_in, number_of_json, scores_of
from ndcg_ml._files.lines import AnyPath, DataFileError, chosen_columns, numbered, utf8
from ndcg_ml._files.trec import Lines
from ndcg_ml._one_line import shown, shown_text

_ROWS = 1 << 14  # rows that become columns at once

Object = dict[str, Any]

_JSON = re.compile(rb"\s*(\{\s*[\"}]|\[\s*[\[{\"])")


def is_json(head: bytes) -> bool:
    """Whether a file begins as JSON does. An id of a TREC file may begin with a brace, but no quote follows it."""
    return _JSON.match(head) is not None


def objects(path: AnyPath, file: IO[bytes] | None = None) -> Iterator[tuple[int, Object]]:
    """The object of each line that is not blank, with the number of the line.

    Raises
    ------
    DataFileError
        A line is not one JSON object in UTF-8, or has a key twice.
    """
    for number, line in numbered(path, file=file):
        if line.strip():
            yield number, _object(path, number, loaded(path, number, utf8(path, line, number)))


def loaded(path: AnyPath, number: int, text: str) -> Any:
    """The value that a text is; objects are tuples of pairs, in which a key that appears twice can be seen."""
    try:
        return json.loads(text, object_pairs_hook=tuple)
    except json.JSONDecodeError as error:
        at = number + error.lineno - 1
        why = f"{error.msg} in column {error.colno}"
        if error.msg == "Extra data":
            why += ", where the line should end"
        raise DataFileError(f"{path}, line {at}: not JSON: {shown_text(why)}.") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; thousands of brackets
        raise DataFileError(f"{path}, line {number}: not JSON: {shown_text(str(error))}.") from error


def _object(path: AnyPath, number: int, value: Any) -> Object:
    if not isinstance(value, tuple):
        raise DataFileError(f"{path}, line {number}: a line must be a JSON object; got {in_json(value)}.")
    keys = dict(value)
    if len(keys) < len(value):
        names = [name for name, _ in value]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataFileError(f"{path}, line {number}: an object must have each key once; got {shown(twice)} twice.")
    return keys


# -- qrels and runs ---------------------------------------------------------------------------------------------------


def jsonl_lines(path: AnyPath, of: str, file: IO[bytes] | None = None) -> Iterator[Lines]:
    """Qrels or a run (`of` says which), in blocks of rows; a row is a document of a topic.

    Raises
    ------
    DataFileError
        A line is no object of the two forms, or holds an id or a number that cannot be one.
    """
    topics: list[str] = []
    lengths: list[int] = []
    rows: list[tuple[str, float]] = []
    numbers: list[int] = []
    listed: dict[str, int] = {}
    before, called = None, {}
    for number, keys in objects(path, file):
        if keys.keys() != before:  # usually all lines have the same ones
            before, called = keys.keys(), names_in(path, of, [*keys])
        if "docs" in keys:
            topic, documents = _of_docs(path, number, of, keys, called, listed)
        else:
            topic, documents = _of_row(path, number, keys, called)
        topics.append(topic)
        lengths.append(len(documents))
        rows += documents
        numbers += [number] * len(documents)
        if len(rows) >= _ROWS:
            yield _lines(path, topics, lengths, rows, numbers)
            topics, lengths, rows, numbers = [], [], [], []
    if topics:
        yield _lines(path, topics, lengths, rows, numbers)


def _of_row(path: AnyPath, number: int, keys: Object, called: Mapping[str, str]) -> tuple[str, list[tuple[str, float]]]:
    """The topic of a line for one document, and that document with its number."""
    missing = [name for name in called.values() if name not in keys]
    if missing:
        has = ", ".join(map(shown, keys)) or "none"
        raise DataFileError(
            f"{path}, line {number}: must have the keys {', '.join(called.values())}, or qid and docs; "
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing, it has {shown_text(has)}."
        )
    topic, document, value = (cell_of_json(path, number, name, keys[name], what) for what, name in called.items())
    return str(topic), [(str(document), value if isinstance(value, int) else float(value))]


def _of_docs(
    path: AnyPath, number: int, of: str, keys: Object, called: Mapping[str, str], listed: dict[str, int]
) -> tuple[str, list[tuple[str, float]]]:
    """The topic of a line for several documents, and these with their numbers."""
    name = called["qid"]
    if name not in keys:
        raise DataFileError(f"{path}, line {number}: docs must stand beside the key qid, which is missing.")
    topic, docs = id_of_json(path, number, name, keys[name]), keys["docs"]
    *_, meaning = called
    if isinstance(docs, tuple):
        return topic, [(_id(path, number, key), _number(path, number, key, value, meaning)) for key, value in docs]
    if not isinstance(docs, list):
        raise DataFileError(f"{path}, line {number}: docs must be {_shape(of)}; got {in_json(docs)}.")
    if docs and all(isinstance(entry, tuple) for entry in docs):
        fields = [_object(path, number, entry) for entry in docs]
        own = names_in(path, of, [*fields[0]])
        return topic, [_of_row(path, number, {**entry, own["qid"]: topic}, own)[1][0] for entry in fields]
    if of == "qrels" and docs:
        raise DataFileError(f"{path}, line {number}: docs must be {_shape(of)}; got a list without grades.")
    # Scores of a list are its places, which would begin again in a second one.
    if listed.setdefault(topic, number) != number:
        raise DataFileError(
            f"{path}, line {number}: the list of a query must stand on one line; {shown(topic)} has one on line "
            f"{listed[topic]} as well."
        )
    return topic, [(id_of_json(path, number, "docs", document), -float(at)) for at, document in enumerate(docs)]


def _shape(of: str) -> str:
    value = "grade" if of == "qrels" else "score"
    lists = "" if of == "qrels" else "[document, ...] with the best first, "
    return f'{lists}{{document: {value}}}, or [{{"docno": ..., "{"label" if of == "qrels" else "score"}": ...}}, ...]'


def _id(path: AnyPath, number: int, key: str) -> str:
    return id_of_json(path, number, "a key of docs", key)


def _number(path: AnyPath, number: int, key: str, value: Any, meaning: str) -> float:
    return number_of_json(path, number, f"the {meaning} of {shown(key)}", value, meaning)


def coded(ids: Sequence[str]) -> list[bytes]:
    """Ids as the bytes of the file; those of JSON are text that UTF-8 can hold."""
    return [text.encode("utf-8", "surrogateescape") for text in ids]


def _lines(
    path: AnyPath, topics: list[str], lengths: list[int], rows: list[tuple[str, float]], numbers: list[int]
) -> Lines:
    documents = Names()
    documents.extend(coded([document for document, _ in rows]))
    values = scores_of(path, [value for _, value in rows])
    return Lines(coded(topics), np.array(lengths, dtype=np.int64), documents, values, np.array(numbers, dtype=np.int64))


# -- tables -----------------------------------------------------------------------------------------------------------


def read_jsonl(
    path: AnyPath, names: Mapping[str, str], optional: Sequence[str] = (), file: IO[bytes] | None = None
) -> tuple[dict[str, list[Any]], list[int]]:
    """Columns by their meaning, as lists of ids and of numbers, and the line of each row: as ``read_csv`` has them.

    Raises
    ------
    DataFileError
        A line is no object, lacks a key that the first line has, or a value is not what its key must hold.
    """
    cells: dict[str, list[Any]] = {}
    at_lines: list[int] = []
    for number, keys in objects(path, file):
        if not at_lines:
            needed = [name for name in names.values() if name not in optional]
            chosen = chosen_columns(path, [*keys], needed, optional)
            cells = {meaning: [] for meaning, name in names.items() if name in chosen}
        for meaning, column in cells.items():
            name = names[meaning]
            if name not in keys:
                raise DataFileError(
                    f"{path}, line {number}: must have the key {name}, as the first line; it is missing."
                )
            column.append(cell_of_json(path, number, name, keys[name], meaning))
        at_lines.append(number)
    return cells, at_lines
