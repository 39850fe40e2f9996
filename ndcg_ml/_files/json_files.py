"""Read JSON: an object of topics; or records, one per document or per topic, on lines (JSONL) or in an array."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from types import NoneType
from typing import IO, Any

import numpy as np

from ndcg_ml._core.column_names import Wanted, usual_columns
from ndcg_ml._core.json_values import json_repr, unique_keys
from ndcg_ml._core.layout import IntArray
from ndcg_ml._files.cells import read_column
from ndcg_ml._files.opening import AnyPath, ColumnError, DataFileError, blocks, decode_utf8, whole_text
from ndcg_ml._files.trec import Documents, Lines, as_lines, as_ranges, place_in
from ndcg_ml._plain.messages import brief, brief_text

Batch = tuple[IntArray, Sequence[dict[str, Any]]]
"""Numbers of objects, and the objects."""

# -- text -> values ---------------------------------------------------------------------------------------------------

_JSON = re.compile(rb"\s*(\{\s*[\"}]|\[\s*[\[\]{\"])")


def is_json(head: bytes) -> bool:
    """Return whether a file begins like JSON. TREC ids may begin with a brace, but no quote follows it."""
    return _JSON.match(head) is not None


def object_batches(path: AnyPath, file: IO[bytes] | None = None) -> Iterator[Batch]:
    """Yield the numbers and the objects of lines that are not blank.

    Raises
    ------
    DataFileError
        A line is not one JSON object in UTF-8, or repeats a key.
    """
    number = 1
    for block in blocks(path, file):
        if records := _objects_at_once(block):
            numbers = np.arange(number, number + len(records))
            number += len(records)
        else:
            lines = list(enumerate(block.splitlines(), number))
            numbers = np.array([at for at, line in lines if line.strip()])
            records = [parse(path, decode_utf8(path, line, at), at) for at, line in lines if line.strip()]
            number += len(lines)
        if records:
            yield numbers, records


def _objects_at_once(block: bytes) -> list[dict[str, Any]] | None:
    """Parse lines if each is an object without lists and repeated keys; otherwise return None.

    A line end cannot be inside a string, and without lists, a comma between two braces separates two lines.
    """
    text = (block.replace(b"\r\n", b"\n") if b"\r" in block else block).removesuffix(b"\n")
    joined = text.replace(b"}\n{", b"},\n{")
    is_whole = text.startswith(b"{") and text.endswith(b"}") and len(joined) - len(text) == text.count(b"\n")
    if not is_whole or b"[" in text:
        return None
    try:
        records: list[dict[str, Any]] = json.loads(f"[{joined.decode()}]")
        if text.count(b":") != sum(map(len, records)):  # each key has a colon
            records = json.loads(f"[{joined.decode()}]", object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return None
    return records


def parse(path: AnyPath, text: str, number: int | None = None) -> Any:
    """Parse the object on the line with this number, or a whole file."""
    try:
        value = json.loads(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as error:
        end = ", where the value should end" if error.msg == "Extra data" else ""
        number = (number or 1) + error.lineno - 1
        why = f"{error.msg} in column {error.colno}{end}"
    except (ValueError, RecursionError) as error:  # also numbers with thousands of digits, and deep nesting
        why = str(error)
    else:
        if number is not None and not isinstance(value, dict):
            raise DataFileError(f"{path}, line {number}: a line must be a JSON object; got {json_repr(value)}.")
        return value
    raise DataFileError(f"{path}{'' if number is None else f', line {number}'}: not JSON: {brief_text(why)}.")


# -- values -> objects ------------------------------------------------------------------------------------------------


def read_objects(
    path: AnyPath, wanted: Wanted, head: bytes, file: IO[bytes]
) -> tuple[str, dict[str, Any], Iterator[Batch]]:
    """Return what the numbers of objects count, the first object, and all. The unit is empty for an object of topics.

    Raises
    ------
    DataFileError
        The file is not JSON, or is an array of other values.
    """
    try:
        start = json.loads(head.lstrip().splitlines()[0])
    except (ValueError, RecursionError):
        start = None
    if isinstance(start, dict):
        batches = object_batches(path, file)
        some = list(islice(batches, 2))
        data: Any = some[0][1][0]
        if len(some) > 1 or len(some[0][1]) > 1 or _has_topic(data, wanted):
            return "line", data, chain(some, batches)
    else:
        data = parse(path, whole_text(path, file))
    data = _unwrap(data, wanted)
    records = data if isinstance(data, list) else [data]
    for value in records or ["none"]:
        if not isinstance(value, dict):
            raise DataFileError(f"{path}: an array must hold objects; got {json_repr(value) if records else value}.")
    return "record" if isinstance(data, list) else "", records[0], iter([(np.arange(1, len(records) + 1), records)])


def _has_topic(record: Any, wanted: Wanted) -> bool:
    """Return whether a value is an object that holds the id or the text of a topic."""
    if not isinstance(record, dict):
        return False
    named = wanted.names.get("qid")
    keys = [named] if named is not None else usual_columns("qid", [*record])
    return any(isinstance(record.get(key), (str, int)) for key in keys)


def _unwrap(data: Any, wanted: Wanted) -> Any:
    """Return the value of the only key that holds topics; the data if there is none or several."""
    inner = [value for value in data.values() if _are_topics(value, wanted)] if isinstance(data, dict) else []
    return inner[0] if len(inner) == 1 else data


def _are_topics(value: Any, wanted: Wanted) -> bool:
    """Return whether a value is a list of objects that have topics, or are no documents; or an object of topics."""
    if isinstance(value, list):
        first = next(iter(value), None)
        return _has_topic(first, wanted) or (isinstance(first, dict) and not usual_columns("docno", [*first]))
    return isinstance(value, dict) and value != {} and all(isinstance(each, (list, dict)) for each in value.values())


# -- objects -> columns -----------------------------------------------------------------------------------------------


def object_columns(path: AnyPath, unit: str, keys: Mapping[Any, str], batch: Batch) -> dict[Any, Any]:
    """Return the values of each of these keys, by meaning: ids, and numbers as arrays."""
    place = place_in(path, batch[0], unit)
    return {meaning: read_column(place, key, _cells(place, key, batch[1]), meaning) for meaning, key in keys.items()}


def _cells(place: Callable[[int], str], key: str, records: Sequence[dict[str, Any]]) -> list[Any]:
    try:
        return [record[key] for record in records]
    except KeyError:
        row = next(row for row, record in enumerate(records) if key not in record)
    raise DataFileError(f"{place(row)}: must have the key {key}, like the first object; it is missing.")


def json_documents(path: AnyPath, wanted: Wanted, head: bytes, file: IO[bytes]) -> Documents:
    """Read the documents of qrels or of a run from JSON.

    Raises
    ------
    DataFileError
        The file is not JSON, an object lacks a key, or an id or a number is invalid.
    """
    [of], value = wanted.within, wanted.meanings[-1]
    unit, first, batches = read_objects(path, wanted, head, file)
    if not unit and all(isinstance(entries, (dict, list, NoneType)) for entries in first.values()):
        keys = {"qid": "qid", "docno": "docno"}
        topics = [{"qid": key, "docno": first[key]} for key in first]
        batches = iter([(np.arange(1, len(topics) + 1), topics)])
        return Documents(_topic_lines(path, "topic", keys, batches, of), unit="topic")
    wanted, source = wanted._replace(within=(of, f"lists of {of}")), f"{path}: its first object"
    keys = wanted._replace(optional=(value,)).choose(source, [*first], ColumnError)
    entries = first[keys["docno"]]
    is_one = isinstance(entries, (str, int))
    if is_one:
        keys = wanted.choose(source, [*first], ColumnError)
    elif entries is not None and value not in wanted.names and not isinstance(first.get(keys.get(value, "")), list):
        keys.pop(value, None)  # a number of the topic
    if value not in keys or not is_one:
        return Documents(_topic_lines(path, unit, keys, batches, of), keys, unit, is_one)
    columns = ((batch[0], object_columns(path, unit, keys, batch).values()) for batch in batches)
    return Documents((as_lines(numbers, *each) for numbers, each in columns), keys, unit)


def _topic_lines(
    path: AnyPath, unit: str, keys: Mapping[Any, str], batches: Iterator[Batch], of: str
) -> Iterator[Lines]:
    """Yield the documents of objects of one topic each."""
    seen: set[str] = set()
    value = "label" if of == "qrels" else "score"
    for batch in batches:
        topics = object_columns(path, unit, {"qid": keys["qid"]}, batch)["qid"]
        where = [f"{path}, {unit} {at} ({brief(topic)})" for at, topic in zip(batch[0], topics, strict=True)]
        for place, topic in zip(where, topics, strict=True) if of == "run" else ():
            if topic in seen:
                raise DataFileError(f"{place}: each topic must appear once; it is repeated.")
            seen.add(topic)
        lists = [_cells(where.__getitem__, keys[each], batch[1]) for each in ("docno", value) if each in keys]
        pairs = [_read_pairs(place, of, *each) for place, *each in zip(where, *lists, strict=True)]
        sizes = np.array([*map(len, pairs)], dtype=np.int64)
        place_of = np.repeat(np.array(where, dtype=object), sizes).__getitem__
        joined = [*chain.from_iterable(pairs)]
        documents = read_column(place_of, keys["docno"], [document for document, _ in joined], "docno")
        values = read_column(place_of, value, [number for _, number in joined], value)
        yield as_ranges(np.repeat(batch[0], sizes), topics, sizes, documents, values)


def _read_pairs(place: str, of: str, entries: Any, values: Any = None) -> list[tuple[Any, Any]]:
    """Return documents with grades or scores from {document: number}, a list of ids or objects, an id, or null.

    The numbers may also be a list of their own.
    """
    if values is not None:
        if not isinstance(entries, list) or not isinstance(values, list) or len(entries) != len(values):
            raise DataFileError(f"{place}: documents and their numbers must be lists of one length.")
        return list(zip(entries, values, strict=True))
    if isinstance(entries, dict):
        return [*entries.items()]
    listed = [] if entries is None else entries if isinstance(entries, list) else [entries]
    numbers: list[Any] | None = None
    if listed and all(isinstance(each, dict) for each in listed):
        value = "label" if of == "qrels" else "score"
        wanted = Wanted(("docno", value), {}, (of, "documents"), (value,))
        source = f"{place}: a document"
        keys = wanted.choose(source, [*listed[0]], ColumnError)
        if value in keys and not wanted.are_ranks(keys):
            numbers = _cells(lambda _: source, keys[value], listed)
        listed = _cells(lambda _: source, keys["docno"], listed)
    if numbers is None and of == "qrels":  # a repeated relevant document is one
        return [(document, 1.0) for document in {repr(each): each for each in listed}.values()]
    return list(zip(listed, numbers or range(0, -len(listed), -1), strict=True))
