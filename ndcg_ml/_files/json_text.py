"""Parse JSONL, with one object per line, and JSON files with one object ``{topic: {document: grade or score}}``.

Ids are strings. Integer ids are converted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO, Any

from ndcg_ml._core.one_line import brief, brief_text
from ndcg_ml._files.cells import json_repr, parse_json_cell, parse_json_id
from ndcg_ml._files.opening import AnyPath, DataFileError, decode_utf8, describe_place, numbered

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
            text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant if number is None else None
        )
    except json.JSONDecodeError as error:
        end = ", where the value should end" if error.msg == "Extra data" else ""
        number = (number or 1) + error.lineno - 1
        why = f"{error.msg} in column {error.colno}{end}"
    except (ValueError, RecursionError) as error:  # also numbers with thousands of digits, and deep nesting
        why = str(error)
    raise DataFileError(f"{describe_place(path, number)}: not JSON: {brief_text(why)}.")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object must have each key once; got {brief(max(names, key=names.count))} twice")
    return keys


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"numbers must be finite; got {constant}")


# -- qrels and runs ---------------------------------------------------------------------------------------------------


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
        elif entries == []:
            topics[topic] = {}
        else:
            lists = "" if of == "qrels" else " or [document, ...], best first"
            raise DataFileError(
                f"{path}: {brief(topic)} must be {{document: {meaning}}}{lists}; got {json_repr(entries)}. Each "
                "line of JSONL needs the key qid."
            )
    return topics


def json_predictions(path: AnyPath, file: IO[bytes] | None = None) -> dict[str, dict[str, float]]:
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
