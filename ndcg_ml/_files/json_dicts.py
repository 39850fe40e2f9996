"""JSON of dicts: one object ``{topic: {document: grade or score}}``, or in a run ``{topic: [document, ...]}``."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from ndcg_ml._files.byte_ids import Names
from ndcg_ml._files.cells import id_of_json, in_json, is_wrong, number_of_json, scores_of
from ndcg_ml._files.jsonl import coded
from ndcg_ml._files.lines import EXACT, AnyPath, DataFileError
from ndcg_ml._files.trec import Lines
from ndcg_ml._one_line import shown, shown_text

_BLANKS = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(object_pairs_hook=tuple)


def json_lines(path: AnyPath, of: str, text: str) -> Lines:
    """Qrels or a run (`of` says which) from the text of a file, all topics at once.

    Topics are read one by one, so that the line of each is known without counting characters in Python.

    Raises
    ------
    DataFileError
        The text is not such an object, or holds an id or a number that cannot be one.
    """
    reader = _Reader(path, text)
    meaning = "grade" if of == "qrels" else "score"
    topics: list[str] = []
    lengths: list[int] = []
    documents: list[str] = []
    values: list[float] = []
    numbers: list[int] = []
    for topic, entries, number, segment in reader.topics():
        topics.append(id_of_json(path, number, "a topic", topic))
        lines = _lines_of(reader, entries, number, segment)
        if isinstance(entries, tuple) and _is_plain(entries, meaning):
            documents += [document for document, _ in entries]
            values += [value for _, value in entries]
        elif isinstance(entries, tuple):
            for (document, value), at in zip(entries, lines, strict=True):
                documents.append(id_of_json(path, at, f"a document of {shown(topic)}", document))
                what = f"the {meaning} of {shown(document)} in {shown(topic)}"
                values.append(number_of_json(path, at, what, value, meaning))
        elif isinstance(entries, list) and (of == "run" or not entries):
            for place, (document, at) in enumerate(zip(entries, lines, strict=True)):
                documents.append(id_of_json(path, at, f"a document of {shown(topic)}", document))
                values.append(-float(place))
        else:
            shape = "{document: grade}" if of == "qrels" else "{document: score} or [document, ...], the best first"
            raise DataFileError(
                f"{path}, line {number}: {shown(topic)} must be {shape}; got {in_json(entries)}. A line of JSONL needs "
                "the key qid."
            )
        lengths.append(len(entries))
        numbers += lines
    names = Names()
    names.extend(coded(documents))
    return Lines(
        coded(topics),
        np.array(lengths, dtype=np.int64),
        names,
        scores_of(path, values),
        np.array(numbers, dtype=np.int64),
    )


def _is_plain(entries: tuple[tuple[str, Any], ...], meaning: str) -> bool:
    """Whether all documents have ids of ASCII and numbers that can have this meaning, which is seen at once."""
    return all(
        (type(value) is float or (type(value) is int and abs(value) <= EXACT))
        and not is_wrong(meaning, value)
        and document
        and document.isascii()
        for document, value in entries
    )


class _Reader:
    """The pairs of the outermost object, one after another, with the lines that they begin on."""

    def __init__(self, path: AnyPath, text: str) -> None:
        self._path, self._text, self._counted, self._line = path, text, 0, 1

    def topics(self) -> Any:
        """Key, value, the line of the key, and where the value begins and ends."""
        at = self._expect(self._skip(0), "{")
        seen: set[str] = set()
        if self._text[at : at + 1] == "}":
            self._end(at + 1)
            return
        while True:
            number = self.line(at)
            topic, at = self._value(at)
            if not isinstance(topic, str):
                raise self.error("expecting a topic in double quotes", number)
            if topic in seen:
                raise self.error(f"a topic must appear once; got {shown(topic)} again", number)
            seen.add(topic)
            begin = self._expect(self._skip(at), ":")
            entries, at = self._value(begin)
            yield topic, entries, number, (begin, at)
            at = self._skip(at)
            if self._text[at : at + 1] == "}":
                self._end(at + 1)
                return
            at = self._expect(at, ",")

    def line(self, at: int) -> int:
        """The line of a place, which must not be before the one that was asked for last."""
        self._line += self._text.count("\n", self._counted, at)
        self._counted = at
        return self._line

    def each(self, segment: tuple[int, int], opening: str) -> list[int]:
        """The line of each entry of an object or list, found by reading it again piece by piece."""
        lines, (at, stop) = [], segment
        at = self._expect(at, opening)
        while at < stop - 1:
            lines.append(self.line(at))
            _, at = self._value(at)
            if opening == "{":
                _, at = self._value(self._expect(self._skip(at), ":"))
            at = self._skip(at)
            at = self._expect(at, ",") if self._text[at] == "," else stop
        return lines

    def text(self, segment: tuple[int, int]) -> str:
        """What stands there."""
        return self._text[slice(*segment)]

    def error(self, why: str, number: int) -> DataFileError:
        """The error for this line."""
        return DataFileError(f"{self._path}, line {number}: not JSON of topics: {shown_text(why)}.")

    def _value(self, at: int) -> tuple[Any, int]:
        try:
            return _DECODER.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            where = f"{error.msg} in column {error.colno}"
            raise DataFileError(f"{self._path}, line {error.lineno}: not JSON: {shown_text(where)}.") from error
        except (ValueError, RecursionError) as error:  # a number of thousands of digits; thousands of brackets
            raise self.error(str(error), self.line(at)) from error

    def _skip(self, at: int) -> int:
        blanks = _BLANKS.match(self._text, at)
        assert blanks is not None
        return blanks.end()

    def _expect(self, at: int, what: str) -> int:
        """The place after this character and the blanks that follow it."""
        if self._text[at : at + 1] != what:
            raise self.error(f"expecting {what!r}", self._text.count("\n", 0, at) + 1)
        return self._skip(at + 1)

    def _end(self, at: int) -> None:
        at = self._skip(at)
        if at < len(self._text):
            raise self.error(
                "expecting the end, because one object holds all topics", self._text.count("\n", 0, at) + 1
            )


def _lines_of(reader: _Reader, entries: Any, number: int, segment: tuple[int, int]) -> list[int]:
    """The line of each entry of a topic.

    Files are written on one line, or with one entry on each line; any other is read a second time.
    """
    if not isinstance(entries, (tuple, list)):
        return []
    inside = reader.text(segment)
    first = reader.line(segment[0])
    if "\n" not in inside:
        return [first] * len(entries)
    _, *middle, _ = inside.split("\n")
    # Text of JSON holds no line end, so that a line with a quote at its start begins an entry.
    if len(middle) == len(entries) and all(line.lstrip(" \t")[:1] == '"' for line in middle):
        return list(range(first + 1, first + 1 + len(entries)))
    return reader.each(segment, "{" if isinstance(entries, tuple) else "[")
