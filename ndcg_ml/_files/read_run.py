"""Read qrels and runs from dicts, files and data frames as rows, and warn of likely mistakes in them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import are_ranks, ids_as_array, is_missing, plain_array, real_array, score_array
from ndcg_ml._core.column_names import ColumnNames, Wanted, column_names, documents_of
from ndcg_ml._core.frames import Frame, is_frame, refuse_lazy, select_columns
from ndcg_ml._core.layout import BoolArray, FloatArray, IntArray, ranges
from ndcg_ml._core.per_query import PerQuery
from ndcg_ml._core.query_groups import group_by_ids
from ndcg_ml._files.byte_ids import Growing, Names
from ndcg_ml._files.opening import DataFileError, numbered
from ndcg_ml._files.tables import open_documents
from ndcg_ml._plain import checks
from ndcg_ml._plain.checks import warn_caller
from ndcg_ml._plain.messages import brief, brief_text
from ndcg_ml.flavor import Flavor

Which: TypeAlias = Literal["qrels", "run", "both"]
"""Topics to evaluate: those of the qrels, of the run, or in both."""
RunLike: TypeAlias = "Mapping[Any, Any] | str | os.PathLike[str] | Frame"
"""Qrels or a run, in any form that ``evaluate_run`` accepts."""

_SHAPES = {
    "qrels": "{topic: {document: grade}}, {topic: [relevant document, ...]}, a path to a file of qrels (TREC, JSONL, "
    "JSON, CSV or Parquet), or a data frame with columns such as qid, docno, label",
    "run": "{topic: {document: score}}, {topic: [document, ...]}, best first, a path to a file of a run (TREC, "
    "JSONL, JSON, CSV or Parquet), or a data frame with columns such as qid, docno, score",
}


# -- ids ------------------------------------------------------------------------------------------------------------


class _IdType:
    """The type of ids, strings or integers. Both are stored as text in UTF-8, so they must never be mixed."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._kind: type | None = None
        self._source = ""

    def encode(self, ids: Sequence[Any], source: str) -> list[bytes]:
        """Encode ids, all str or all int, as UTF-8."""
        encoded = self.encode_lines(ids, source).split(b"\n")
        encoded = encoded if len(encoded) == len(ids) else [text.encode() for text in ids]
        if b"" in encoded:
            raise ValueError(f"{self._what} ids of {source} must not be empty; got ''. Give each an id.")
        return encoded

    def encode_lines(self, ids: Sequence[Any], source: str) -> bytes:
        """Encode ids, all str or all int, as one text in UTF-8, in less time than one by one. Newlines are between."""
        kinds: set[type] = set()
        try:
            text = "\n".join(ids)
        except TypeError:
            kinds = set(map(type, ids))
        if not kinds:  # all are strings
            if ids:
                self.require(str, source)
            try:
                return text.encode()
            except UnicodeEncodeError as error:
                invalid = next(text for text in ids if error.object[error.start] in text)
                raise ValueError(
                    f"{self._what} ids of {source} must be strings that UTF-8 can encode; got {brief(invalid)}, "
                    "which has an unpaired surrogate."
                ) from error
        if all(issubclass(kind, (int, np.integer)) and not issubclass(kind, bool) for kind in kinds):
            self.require(int, source)
            return "\n".join(map(str if kinds == {int} else "{:d}".format, ids)).encode()
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        missing = [value for value in ids if is_missing(value)]
        if missing:
            raise ValueError(
                f"{self._what} ids of {source} must not be missing; got {brief(missing[0])}. Leave out the rows "
                "without an id."
            )
        invalid = next(value for value in ids if not isinstance(value, str))
        how = ".decode()" if isinstance(invalid, bytes) else "str()"
        fix = f"For pairs, pass dict({source})." if kinds == {tuple} else f"Convert them, for example with {how}."
        raise TypeError(
            f"{self._what} ids of {source} must all be str, or all be int; got {listed}, such as {brief(invalid)}. "
            f"{fix}"
        )

    def require(self, kind: type, source: str) -> None:
        """Raise if these ids differ in type from earlier ones."""
        if self._kind is None:
            self._kind, self._source = kind, source
        elif self._kind is not kind:
            raise TypeError(
                f"{self._what} ids must have one type in qrels and run; got {self._kind.__name__} in "
                f"{self._source.rstrip(',')} and {kind.__name__} in {source.rstrip(',')}. 7 and '7' are different "
                "ids: convert one side (ids from files are str)."
            )

    def require_same(self, other: _IdType) -> None:
        """Raise if these ids are strings and the other ones integers, or vice versa."""
        if self._kind is not None and other._kind is not None and self._kind is not other._kind:
            raise TypeError(
                f"{self._what} and {other._what} ids must have one type to be identical; got {self._kind.__name__} and "
                f"{other._kind.__name__}. 7 and '7' are different ids: convert one side."
            )

    def decode(self, coded: bytes) -> str | int:
        """Return an id as the caller passed it."""
        text = coded.decode()
        return int(text) if self._kind is int else text


def id_array(ids: Sequence[str | int]) -> NDArray[Any]:
    """Return ids of one type as an array; an array of strings if there are none."""
    return ids_as_array(ids) if ids else np.empty(0, dtype=str)


class Topics:
    """Topic ids, numbered from 0 in order of first appearance."""

    def __init__(self) -> None:
        self.kind = _IdType("topic")
        self._number: defaultdict[bytes, int] = defaultdict()
        self._number.default_factory = self._number.__len__

    def __len__(self) -> int:
        return len(self._number)

    def encoded(self) -> dict[bytes, int]:
        """Return the numbers of all ids, by encoded id."""
        return dict(self._number)

    def numbers(self, coded: Sequence[bytes]) -> IntArray:
        """Return the numbers of encoded ids, adding new ids."""
        return np.fromiter(map(self._number.__getitem__, coded), np.intp, len(coded))

    def names(self, numbers: NDArray[np.signedinteger[Any]]) -> NDArray[Any]:
        """Return the ids with these numbers, as the caller passed them."""
        listed = list(self._number)
        return id_array([self.kind.decode(listed[number]) for number in numbers.tolist()])


class Ids:
    """The ids of qrels and a run, which share one encoding."""

    def __init__(self) -> None:
        self.topics = Topics()
        self.kind = _IdType("document")
        self.documents = Names()
        """The document ids of the qrels' rows, followed by those of the run's rows."""

    def read_exclude(self, documents: Literal["identical"] | Mapping[Any, Any]) -> tuple[IntArray, list[bytes]]:
        """Return the topic numbers and encoded ids of excluded documents, without unknown topics.

        Raises
        ------
        TypeError, ValueError
            The ids differ in type from those of the qrels and the run.
        """
        if documents == "identical":
            self.kind.require_same(self.topics.kind)
            return np.arange(len(self.topics)), list(self.topics.encoded())
        number_of = self.topics.encoded()
        topics: list[int] = []
        names: list[bytes] = []
        coded = self.topics.kind.encode(list(documents), "exclude")
        for (topic, listed), code in zip(documents.items(), coded, strict=True):
            source = f"exclude[{brief(topic)}]"
            if isinstance(listed, (str, bytes)) or not isinstance(listed, Iterable):
                raise TypeError(f"{source} must be a list of documents; got {brief(listed)}.")
            of_topic = self.kind.encode(list(listed), source)
            if code in number_of:
                names += of_topic
                topics += [number_of[code]] * len(of_topic)
        return np.array(topics, dtype=np.intp), names


# -- rows -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RunRows:
    """The documents of qrels or a run, one row per topic and document."""

    source: str
    ids: Ids
    first: int  # row of the first document id in `ids.documents`
    topics: NDArray[Any]  # all topics, including those without rows
    topic: NDArray[Any]
    value: FloatArray
    path: str | os.PathLike[str] = ""
    lines: Growing[np.uint32] | None = None  # line numbers, if the rows come from a file
    unit: str = "line"  # the unit of the line numbers
    columns: Mapping[str, Any] = field(default_factory=dict)  # those that were read, by meaning, if they have names

    def name(self, row: int) -> str:
        """Format the id of a row's document."""
        return brief(self.ids.kind.decode(self.ids.documents[self.first + row]))

    def place_of(self, row: int) -> str:
        """Describe a row for an error message."""
        if self.lines is not None:
            return f"{self.path}, {self.unit} {self.lines.array[row]}"
        [topic] = self.ids.topics.names(self.topic[[row]]).tolist()
        return f"{self.source}[{brief(topic)}], document {self.name(row)}"

    def are_subtopics(self, first: int, again: int) -> bool:
        """Return whether the second columns of two lines of TREC qrels differ."""
        if self.lines is None or self.columns or not os.path.isfile(self.path):  # a pipe can be read only once
            return False
        numbers = self.lines.array[[first, again]].tolist()
        words = [line.split() for number, line in numbered(self.path) if number in numbers]
        return {len(each) for each in words} == {4} and words[0][1] != words[1][1]


def read_rows(name: str, data: RunLike, ids: Ids, columns: ColumnNames) -> RunRows:
    """Read ``qrels`` or a ``run`` (`name` says which) as rows, and add its ids to `ids`.

    `columns` are the caller's names of columns. A grade is NaN if the document is unjudged.
    """
    refuse_lazy(data, name)
    wanted = documents_of(name, column_names(columns, two_tables=True))
    if type(data).__module__.startswith("ranx."):  # ranx.Qrels and ranx.Run
        data = data.to_dict()  # type: ignore[union-attr]
    if isinstance(data, (str, os.PathLike)):
        rows = _read_file(name, data, ids, wanted)
    elif isinstance(data, Mapping):
        rows = _read_mapping(name, data, ids)
    elif is_frame(data):
        rows = _read_frame(name, data, ids, wanted)
    else:
        hint = f" Pass {name}.to_dict()." if hasattr(data, "to_dict") else ""  # containers of ranx
        raise TypeError(f"{name} must be {_SHAPES[name]}; got {type(data).__name__}.{hint}")
    if not rows.topics.size:
        what = DataFileError if rows.path else ValueError
        raise what(f"{rows.source} must hold at least one document; got none.")
    bad = np.isinf(rows.value) if name == "qrels" else np.isnan(rows.value)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        if name == "qrels":
            must = "grades must be finite numbers", "Leave an unjudged document out of the qrels."
        else:
            must = "scores must not be NaN, which cannot be ranked", "Check why the model returned it."
        raise ValueError(f"{must[0]}; got {rows.value[at]} in {rows.place_of(at)}. {must[1]}")
    return rows


def _read_file(name: str, path: str | os.PathLike[str], ids: Ids, wanted: Wanted) -> RunRows:
    source = f"{name} ({os.fspath(path)})"
    ids.topics.kind.require(str, source)
    ids.kind.require(str, source)
    first = len(ids.documents)
    topic, lines, value = Growing(np.int32), Growing(np.uint32), Growing(np.float64)
    topics = [np.empty(0, dtype=np.intp)]
    with open_documents(path, wanted) as found:
        if found.are_pairs:
            _warn_of_pairs(source, found.columns)
        sign = -1.0 if wanted.are_ranks(found.columns) else 1.0
        for block in found.lines:
            numbers = ids.topics.numbers(block.topics)
            topics.append(numbers)
            topic.extend(np.repeat(numbers, block.lengths))
            ids.documents.add(block.documents)
            value.extend(sign * block.values)
            lines.extend(block.numbers)
    return RunRows(
        source=source,
        ids=ids,
        first=first,
        topics=np.flatnonzero(np.bincount(np.concatenate(topics))),
        topic=topic.array,
        value=value.array,
        path=path,
        lines=lines,
        unit=found.unit,
        columns=found.columns,
    )


def _warn_of_pairs(source: str, columns: Mapping[str, Any]) -> None:
    advice = " If a column holds grades, name it: columns={'label': NAME}." * bool(columns)
    warn_caller(f"{source} has no grades, so that each pair of a topic and a document has grade 1.{advice}")


def _read_mapping(name: str, data: Mapping[Any, Any], ids: Ids) -> RunRows:
    if not data:
        raise ValueError(f"{name} must hold at least one topic; got an empty {type(data).__name__}.")
    first, topics = len(ids.documents), ids.topics.numbers(ids.topics.kind.encode(list(data), name))
    every = [of if type(of) is dict else _read_entries(name, topic, of) for topic, of in data.items()]
    sizes = np.fromiter(map(len, every), np.int64, len(every))
    documents = list(chain.from_iterable(every))
    values = list(chain.from_iterable(of.values() for of in every if not isinstance(of, list)))
    is_listed = np.repeat(np.fromiter(map(isinstance, every, repeat(list)), bool, len(every)), sizes)
    ranks = ranges(np.zeros_like(sizes), sizes)
    value = -ranks.astype(np.float64) if name == "run" else np.ones(ranks.size)
    source = next((f"{name}[{brief(topic)}]" for topic, of in zip(data, every, strict=True) if of), name)
    try:
        if not ids.documents.extend_lines(ids.kind.encode_lines(documents, source), len(documents)):
            ids.documents.extend(ids.kind.encode(documents, source))
        value[~is_listed] = _read_values(name, values, name)
    except (TypeError, ValueError):
        for topic, of in zip(data, every, strict=True):  # name the topic
            source = f"{name}[{brief(topic)}]"
            ids.kind.encode(list(of), source)
            if not isinstance(of, list) and _read_values(name, list(of.values()), source).ndim != 1:
                got = brief(next(iter(of.values())))
                raise TypeError(f"{source} must hold one number per document; got {got}.") from None
        raise
    topic = np.repeat(topics, sizes)
    return RunRows(source=name, ids=ids, first=first, topics=topics, topic=topic, value=value)


def _read_entries(name: str, topic: Any, entries: Any) -> Mapping[Any, Any] | list[Any]:
    if isinstance(entries, Mapping) or (name == "run" and isinstance(entries, list)):
        return entries
    if isinstance(entries, (list, tuple)) or (isinstance(entries, np.ndarray) and entries.ndim == 1):
        listed = list(entries)
    elif name == "qrels" and isinstance(entries, (set, frozenset)):
        listed = sorted(entries, key=str)
    else:
        shape = "grade} or the relevant documents" if name == "qrels" else "score} or [document, ...], best first"
        raise TypeError(f"{name}[{brief(topic)}] must be {{document: {shape}; got {type(entries).__name__}.")
    if name == "qrels":
        with suppress(TypeError):  # ids that cannot be hashed are refused later
            listed = list(dict.fromkeys(listed))  # a repeated relevant document is one
    return listed


def _read_frame(name: str, frame: Any, ids: Ids, wanted: Wanted) -> RunRows:
    value = wanted.meanings[-1]
    read, columns = select_columns(name, frame, wanted)
    called = {meaning: f"column {brief_text(str(column))}" for meaning, column in read.items()}
    ids_of = {meaning: _as_list(columns[meaning], f"{called[meaning]} of {name}") for meaning in ("qid", "docno")}
    topic = ids.topics.numbers(ids.topics.kind.encode(ids_of["qid"], f"{name}, {called['qid']},"))
    first = len(ids.documents)
    ids.documents.extend(ids.kind.encode(ids_of["docno"], f"{name}, {called['docno']},"))
    if value in columns:
        values = _read_values(name, columns[value], f"{called[value]} of {name}")
        values = -values if wanted.are_ranks(read) else values
    else:
        values = np.ones(len(topic))
        _warn_of_pairs(name, read)
    topics = np.flatnonzero(np.bincount(topic))
    return RunRows(source=name, ids=ids, first=first, topics=topics, topic=topic, value=values, columns=read)


def _read_values(name: str, values: Any, source: str) -> FloatArray:
    read = score_array if name == "run" else real_array
    with np.errstate(invalid="ignore"):  # no warning for signalling NaNs, which are refused later
        return read(values, source).astype(np.float64)


def _as_list(ids: Any, source: str) -> list[Any]:
    if hasattr(ids, "to_list"):  # polars would convert to NumPy's strings, which drop a trailing NUL
        return ids.to_list()
    return list(plain_array(ids, source).tolist())


# -- warnings of likely mistakes: ids that do not match, ranks as scores, empty answers, exclusions -------------------

# Smallest number of steps of 1 between scores that is taken as a sign of ranks.
_MIN_STEPS = 4


def warn_of_no_match(judged: RunRows, ranked: RunRows, match: IntArray, included: BoolArray, n_topics: int) -> None:
    """Warn if no retrieved document is judged, and show an id of each side, if the qrels have one."""
    if ((match >= 0) & included).any():
        return
    why = "No document is judged"
    if judged.topic.size:
        why = (
            f"Ids are compared exactly: those of {judged.source} look like {judged.name(0)}, those of {ranked.source} "
            f"like {ranked.name(0)}"
        )
    warn_caller(f"the run retrieves no judged document in any of the {n_topics} topics, so no topic has a gain. {why}.")


def warn_of_ranks(ranked: RunRows, grades: FloatArray) -> None:
    """Warn if the scores look like ranks, because they count up in the order of the rows, or where grades fall."""
    first, n_rows = float(ranked.value.min()), ranked.value.size
    if first not in (0.0, 1.0):  # not ranks
        return
    groups = group_by_ids(ranked.topic, n_rows)
    count = ranges(np.zeros_like(groups.sizes), groups.sizes)
    counts_up = bool((groups.arrange(ranked.value) == first + count).all())
    if (counts_up and n_rows - groups.n_queries >= _MIN_STEPS) or are_ranks(ranked.value, grades, groups):
        checks.warn_of_ranks(f"the scores of {ranked.source}", first, "topic")


def warn_of_excluded(judged: RunRows, relevant: BoolArray) -> None:
    rows = np.flatnonzero(relevant)
    if rows.size:
        warn_caller(
            f"exclude leaves out {rows.size} documents that are judged relevant, the first in "
            f"{judged.place_of(int(rows[0]))}. They remain in the ideal, so no run can score 1 there. If they "
            "should not count, remove them from the qrels.",
        )


def refuse_lost_topics(table: PerQuery, flavor: Flavor, of_users: bool) -> None:
    """Raise if a topic with relevant documents would score 1 or be skipped because nothing is ranked in it.

    An ideal of retrieved documents is 0 there, so the flavor's rule for empty queries would apply.
    """
    if flavor.empty not in (1.0, "skip"):
        return
    empty = table.empty if table.empty.ndim == 1 else table.empty.any(axis=1)
    lost = np.flatnonzero((table.n_docs == 0) & (table.n_relevant > 0) & empty)
    if lost.size:
        rule = "score 1" if flavor.empty == 1.0 else "be skipped"
        fix = "remove such topics from the run and pass queries='both' if they should not count"
        if of_users:
            fix = "leave out the rows of users that should not count"
        raise ValueError(
            f"every topic with relevant documents must rank some document under ideal={flavor.ideal!r} with "
            f"empty={flavor.empty if isinstance(flavor.empty, str) else int(flavor.empty)!r}; got {lost.size} that "
            f"would {rule}, the first {brief(table.qid[lost].tolist()[0])}. Choose ideal='global' or empty=0, or {fix}."
        )


def warn_of_empty_answers(table: PerQuery, lacking: Sequence[Any], of_users: bool) -> None:
    """Warn of topics with relevant documents that the run answers with an empty list."""
    topics = table.qid[(table.n_retrieved == 0) & (table.n_relevant > 0)].tolist()
    absent = set(lacking)
    empty = [topic for topic in topics if topic not in absent]
    if not empty:
        return
    n, first = f"{len(empty)} of {len(table)}", brief(empty[0])
    words = f"the run answers {n} topics with an empty list, the first {first}; each counts as retrieving nothing"
    fix = "If they should not count, remove them from the run and choose queries='both'"
    if of_users:
        words = f"no items are retrieved for {n} users, the first {first}; each counts with an NDCG of 0"
        fix = "If they should not count, leave out their rows"
    if not table.n_retrieved.any():
        fix = "Find out why the system returned nothing"
    warn_caller(f"{words}. {fix}.")
