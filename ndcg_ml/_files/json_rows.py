"""JSON: an object on each line (JSONL), or one object ``{topic: {document: grade or score}}`` in the whole file.

A line is ``{"qid": "q1", "docno": "d1", "score": 0.5}``, or ``{"qid": "q1", "docs": ...}`` with an object of scores, a
list of objects, or in a run a list of ids, the best first. Ids are strings; an integer is the string of its digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import IO, Any

from ndcg_ml._files.cells import cell_of_json, id_of_json, in_json, names_in
from ndcg_ml._files.lines import AnyPath, DataFileError, numbered, place, utf8
from ndcg_ml._one_line import shown, shown_text

_JSON = re.compile(rb"\s*(\{\s*[\"}]|\[\s*[\[{\"])")


def is_json(head: bytes) -> bool:
    """Return whether a file begins as JSON does. An id in a TREC file may begin with a brace, but no quote follows."""
    return _JSON.match(head) is not None


def objects(path: AnyPath, file: IO[bytes] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the object of each line that is not blank, with the number of the line.

    Raises
    ------
    DataFileError
        A line is not one JSON object in UTF-8, or has a key twice.
    """
    for number, line in numbered(path, file=file):
        if line.strip():
            value = parsed(path, utf8(path, line, number), number)
            if not isinstance(value, dict):
                raise DataFileError(f"{path}, line {number}: a line must be a JSON object; got {in_json(value)}.")
            yield number, value


def parsed(path: AnyPath, text: str, number: int | None = None) -> Any:
    """Return the value of a line with this number, or of a whole file, in which NaN and infinity are refused."""
    try:
        return json.loads(text, object_pairs_hook=_each_once, parse_constant=_refuse if number is None else None)
    except json.JSONDecodeError as error:
        end = ", where the value should end" if error.msg == "Extra data" else ""
        number = (number or 1) + error.lineno - 1
        why = f"{error.msg} in column {error.colno}{end}"
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits; thousands of brackets
        why = str(error)
    raise DataFileError(f"{place(path, number)}: not JSON: {shown_text(why)}.")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object must have each key once; got {shown(max(names, key=names.count))} twice")
    return keys


def _refuse(constant: str) -> None:
    raise ValueError(f"numbers must be finite; got {constant}")


# -- qrels and runs ---------------------------------------------------------------------------------------------------


def json_topics(path: AnyPath, of: str, text: str) -> dict[str, dict[str, Any] | list[str]]:
    """Return qrels or a run (`of` says which) from the text of a whole file, as ``evaluate_run`` takes dicts.

    Raises
    ------
    DataFileError
        The text is not such an object, or holds an id or a number that cannot be one.
    """
    topics = parsed(path, text)
    if not isinstance(topics, dict):
        raise DataFileError(f"{path}: must be one object of topics; got {in_json(topics)}.")
    meaning = "grade" if of == "qrels" else "score"
    for topic, entries in topics.items():
        id_of_json(path, None, "a topic", topic)
        document, value = f"a document of {shown(topic)}", f"a {meaning} of {shown(topic)}"
        if isinstance(entries, dict):
            topics[topic] = {
                id_of_json(path, None, document, key): cell_of_json(path, None, value, number, meaning)
                for key, number in entries.items()
            }
        elif isinstance(entries, list) and of == "run":
            topics[topic] = [id_of_json(path, None, document, key) for key in entries]
        elif entries == []:
            topics[topic] = {}
        else:
            lists = "" if of == "qrels" else " or [document, ...], the best first"
            raise DataFileError(
                f"{path}: {shown(topic)} must be {{document: {meaning}}}{lists}; got {in_json(entries)}. A line of "
                "JSONL needs the key qid."
            )
    return topics


def json_rows(
    path: AnyPath, of: str, file: IO[bytes] | None = None
) -> Iterator[tuple[int, str, list[tuple[str, float]]]]:
    """Yield, from each line of qrels or of a run, its number, its topic, and documents with grades or scores.

    Raises
    ------
    DataFileError
        A line is no object of the two forms, or holds an id or a number that cannot be one.
    """
    listed: dict[str, int] = {}
    for number, keys in objects(path, file):
        called = names_in(path, of, [*keys])
        if "docs" not in keys:
            yield number, *_row(path, number, keys, called)
            continue
        if called["qid"] not in keys:
            raise DataFileError(f"{path}, line {number}: docs must stand beside the key qid, which is missing.")
        topic, docs = id_of_json(path, number, called["qid"], keys[called["qid"]]), keys["docs"]
        if isinstance(docs, dict):
            value = "grade" if of == "qrels" else "score"
            yield (
                number,
                topic,
                [
                    (
                        id_of_json(path, number, "a key of docs", key),
                        cell_of_json(path, number, f"the {value} of {shown(key)}", one, value),
                    )
                    for key, one in docs.items()
                ],
            )
        elif not isinstance(docs, list) or (of == "qrels" and docs and not isinstance(docs[0], dict)):
            raise DataFileError(f"{path}, line {number}: docs must be {_shape(of)}; got {in_json(docs)}.")
        elif docs and all(isinstance(entry, dict) for entry in docs):
            own = names_in(path, of, [*docs[0]])
            query = own["qid"]
            rows = [_row(path, number, {**entry, query: entry.get(query, topic)}, own) for entry in docs]
            other = next((named for named, _ in rows if named != topic), topic)
            if other != topic:
                raise DataFileError(
                    f"{path}, line {number}: the entries of docs must be of the query {shown(topic)} of their line; "
                    f"got one of {shown(other)}."
                )
            yield number, topic, [row for _, [row] in rows]
        else:
            # Scores of a list are its places, which would begin again in a second one.
            if listed.setdefault(topic, number) != number:
                raise DataFileError(
                    f"{path}, line {number}: the list of a query must be on one line; {shown(topic)} has one on line "
                    f"{listed[topic]} as well."
                )
            yield number, topic, [(id_of_json(path, number, "docs", one), -float(at)) for at, one in enumerate(docs)]


def _row(
    path: AnyPath, number: int, keys: Mapping[str, Any], called: Mapping[str, str]
) -> tuple[str, list[tuple[str, float]]]:
    """The topic of a line for one document, and that document with its number."""
    missing = [name for name in called.values() if name not in keys]
    if missing:
        has = ", ".join(map(shown, keys)) or "none"
        raise DataFileError(
            f"{path}, line {number}: must have the keys {', '.join(called.values())}, or qid and docs; "
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing, it has {shown_text(has)}."
        )
    topic, document, value = (cell_of_json(path, number, name, keys[name], what) for what, name in called.items())
    return topic, [(document, value)]


def _shape(of: str) -> str:
    if of == "qrels":
        return '{document: grade}, or [{"docno": ..., "label": ...}, ...]'
    return '[document, ...] with the best first, {document: score}, or [{"docno": ..., "score": ...}, ...]'
