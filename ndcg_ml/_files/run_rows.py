"""Qrels and runs as rows, from dicts, files and data frames."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import FloatArray, IntArray
from ndcg_ml._data.frames import Frame, is_frame, select_columns
from ndcg_ml._data.lazy_frames import refuse_lazy
from ndcg_ml._data.queries import is_missing, plain_array, real_array, score_array
from ndcg_ml._files.byte_ids import Growing, Names
from ndcg_ml._files.formats import lines_of
from ndcg_ml._files.parquet import is_parquet
from ndcg_ml._one_line import brief, brief_text

RunLike: TypeAlias = "Mapping[Any, Any] | str | os.PathLike[str] | Frame"
"""Qrels or a run, in any form that ``evaluate_run`` takes."""

_SHAPES = {
    "qrels": "{topic: {document: grade}}, {topic: [relevant document, ...]}, a path to a file of qrels (TREC, JSONL, "
    "JSON, CSV or Parquet), or a data frame with columns qid, docno, label",
    "run": "{topic: {document: score}}, {topic: [document, ...]} with the best first, a path to a file of a run (TREC, "
    "JSONL, JSON, CSV or Parquet), or a data frame with columns qid, docno, score",
}


# -- ids ------------------------------------------------------------------------------------------------------------


class _Kind:
    """The type of ids, strings or integers. Both are stored as text in UTF-8, so they must never be mixed."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._kind: type | None = None
        self._source = ""

    def coded(self, ids: Sequence[Any], source: str) -> list[bytes]:
        """Python ids, all str or all int, in the form kept inside."""
        kinds = set(map(type, ids))
        if all(issubclass(kind, str) for kind in kinds):
            if kinds:
                self.agree(str, source)
            try:
                return [text.encode("utf-8", "surrogateescape") for text in ids]
            except UnicodeEncodeError as error:
                raise ValueError(
                    f"{self._what} ids of {source} must be strings that UTF-8 can encode; got {brief(error.object)}, "
                    "which has half of a surrogate pair."
                ) from error
        if all(issubclass(kind, (int, np.integer)) and not issubclass(kind, bool) for kind in kinds):
            self.agree(int, source)
            if kinds == {int}:  # one text for all is made in a third of the time
                return " ".join(map(str, ids)).encode().split(b" ")
            return [b"%d" % number for number in ids]
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        missing = [value for value in ids if is_missing(value)]
        if missing:
            raise ValueError(
                f"{self._what} ids of {source} must not be missing; got {brief(missing[0])}. Leave out the rows "
                "without an id."
            )
        odd = next(value for value in ids if not isinstance(value, str))
        raise TypeError(
            f"{self._what} ids of {source} must all be str, or all be int; got {listed}, such as {brief(odd)}. "
            "Convert them, for example with str()."
        )

    def agree(self, kind: type, source: str) -> None:
        """Refuse ids of another type than those before."""
        if self._kind is None:
            self._kind, self._source = kind, source
        elif self._kind is not kind:
            raise TypeError(
                f"{self._what} ids must have one type in qrels and run; got {self._kind.__name__} in "
                f"{self._source.rstrip(',')} and {kind.__name__} in {source.rstrip(',')}. 7 and '7' are never taken "
                "for each other: convert one side (ids from files are text, str)."
            )

    def like(self, other: _Kind) -> None:
        """Refuse to compare text with integers."""
        if self._kind is not None and other._kind is not None and self._kind is not other._kind:
            raise TypeError(
                f"{self._what} and {other._what} ids must have one type to be identical; got {self._kind.__name__} and "
                f"{other._kind.__name__}. 7 and '7' are never taken for each other: convert one side."
            )

    def decoded(self, coded: bytes) -> str | int:
        """An id as the caller had it."""
        text = coded.decode("utf-8", "surrogateescape")
        return int(text) if self._kind is int else text


class Topics:
    """Topic ids as consecutive numbers from 0, in the order in which they were seen first."""

    def __init__(self) -> None:
        self.kind = _Kind("topic")
        self._number: defaultdict[bytes, int] = defaultdict()
        self._number.default_factory = self._number.__len__

    def __len__(self) -> int:
        return len(self._number)

    def coded(self) -> list[bytes]:
        """The ids as they are kept inside, in the order of their numbers."""
        return list(self._number)

    def numbers_if_known(self, coded: Sequence[bytes]) -> list[int | None]:
        """The numbers of these ids, None of those that were never seen."""
        return [self._number.get(topic) for topic in coded]

    def numbers(self, coded: Sequence[bytes]) -> IntArray:
        """The numbers of these ids; new ones get the next."""
        return np.fromiter(map(self._number.__getitem__, coded), np.intp, len(coded))

    def names(self, numbers: NDArray[np.signedinteger[Any]]) -> NDArray[Any]:
        """The ids of these numbers as the caller had them."""
        listed = list(self._number)
        names = [self.kind.decoded(listed[number]) for number in numbers.tolist()]
        # NumPy's own strings would lose a NUL at the end, and integers beyond 64 bits may become floats.
        lossy = any(name.endswith("\0") if isinstance(name, str) else abs(name) >= 2**63 for name in names)
        return np.array(names, dtype=object if lossy else None if names else str)


class Ids:
    """The ids of qrels and run: how they are kept inside, and what they were."""

    def __init__(self) -> None:
        self.topics = Topics()
        self.kind = _Kind("document")
        self.documents = Names()
        """The document ids of the rows of the qrels, then of the rows of the run."""

    def rows_of(self, documents: Literal["identical"] | Mapping[Any, Any]) -> tuple[IntArray, list[bytes]]:
        """The topics and ids of documents listed by topic, of topics that there are; or of "identical" ids.

        Raises
        ------
        TypeError, ValueError
            Ids are not as those of the qrels and the run.
        """
        if documents == "identical":
            self.kind.like(self.topics.kind)
            return np.arange(len(self.topics)), self.topics.coded()
        coded = self.topics.kind.coded(list(documents), "exclude")
        topics: list[int] = []
        names: list[bytes] = []
        for topic, number, listed in zip(
            documents, self.topics.numbers_if_known(coded), documents.values(), strict=True
        ):
            source = f"exclude[{brief(topic)}]"
            if isinstance(listed, (str, bytes)) or not isinstance(listed, Iterable):
                raise TypeError(f"{source} must be a list of documents; got {brief(listed)}.")
            of_topic = self.kind.coded(list(listed), source)
            if number is not None:
                names += of_topic
                topics += [number] * len(of_topic)
        return np.array(topics, dtype=np.intp), names

    def document(self, row: int) -> str:
        """The id of a row's document, as a message shows it."""
        return brief(self.kind.decoded(self.documents[row]))


# -- rows -----------------------------------------------------------------------------------------------------------


class _LineNumbers:
    """The line of each row, stored as ranges of consecutive lines."""

    def __init__(self) -> None:
        self._n_rows = 0
        self._rows: list[IntArray] = []
        self._lines: list[IntArray] = []

    def extend(self, numbers: IntArray) -> None:
        if not numbers.size:
            return
        first = np.flatnonzero(np.append(True, numbers[1:] - numbers[:-1] != 1))
        self._rows.append(first + self._n_rows)
        self._lines.append(numbers[first])
        self._n_rows += numbers.size

    def __getitem__(self, row: int) -> int:
        rows, lines = np.concatenate(self._rows), np.concatenate(self._lines)
        at = int(np.searchsorted(rows, row, side="right")) - 1
        return int(lines[at]) + row - int(rows[at])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RunRows:
    """The documents of qrels or a run, one row for each in each topic."""

    source: str
    ids: Ids
    first: int  # row of the names of the documents
    topics: NDArray[Any]  # every topic, also one without a row
    topic: NDArray[Any]
    value: FloatArray
    path: str | os.PathLike[str] = ""
    lines: _LineNumbers | None = None  # line numbers, where the rows come from a file

    def name(self, row: int) -> str:
        """The id of a row's document."""
        return self.ids.document(self.first + row)

    def place_of(self, row: int) -> str:
        """Describe a row for an error message."""
        return self.places()(row)

    def places(self) -> Callable[[int], str]:
        """The same as a function, which keeps only the line numbers of a file in memory."""
        if self.lines is not None:
            path, lines = self.path, self.lines
            unit = "row" if is_parquet(path) else "line"
            return lambda row: f"{path}, {unit} {lines[row]}"

        def place(row: int) -> str:
            [topic] = self.ids.topics.names(self.topic[[row]]).tolist()
            return f"{self.source}[{brief(topic)}], document {self.name(row)}"

        return place


def read_rows(name: str, data: RunLike, ids: Ids, names: Mapping[str, Any]) -> RunRows:
    """The rows of ``qrels`` or of a ``run`` (the name says which), their ids kept as `ids` keeps them.

    `names` are those of the columns of a frame.
    """
    refuse_lazy(data, name)
    if type(data).__module__.startswith("ranx."):  # its Qrels and Run
        data = data.to_dict()  # type: ignore[union-attr]
    if isinstance(data, (str, os.PathLike)):
        rows = _rows_of_file(name, data, ids)
    elif isinstance(data, Mapping):
        rows = _rows_of_mapping(name, data, ids)
    elif is_frame(data):
        rows = _rows_of_frame(name, data, ids, names)
    else:
        raise TypeError(f"{name} must be {_SHAPES[name]}; got {type(data).__name__}.")
    if not rows.topics.size:
        raise ValueError(f"{name} must hold at least one document; got none.")
    bad = ~np.isfinite(rows.value) if name == "qrels" else np.isnan(rows.value)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        if name == "qrels":
            must = "grades must be finite numbers", "Leave an unjudged document out of the qrels."
        else:
            must = "scores must not be NaN, which has no place in a ranking", "Find out why the model produced it."
        raise ValueError(f"{must[0]}; got {rows.value[at]} in {rows.place_of(at)}. {must[1]}")
    return rows


def _rows_of_file(name: str, path: str | os.PathLike[str], ids: Ids) -> RunRows:
    source = f"{name} ({os.fspath(path)})"
    ids.topics.kind.agree(str, source)
    ids.kind.agree(str, source)
    first = len(ids.documents)
    topic, lines, value = Growing(np.int32), _LineNumbers(), Growing(np.float64)
    with lines_of(path, name) as blocks:
        if isinstance(blocks, dict):
            return _rows_of_mapping(name, blocks, ids, source)
        for block in blocks:
            topic.extend(np.repeat(ids.topics.numbers(block.topics), block.lengths))
            ids.documents.add(block.documents)
            value.extend(block.values)
            lines.extend(block.numbers)
    return RunRows(
        source=source,
        ids=ids,
        first=first,
        topics=np.flatnonzero(np.bincount(topic.array)),
        topic=topic.array,
        value=value.array,
        path=path,
        lines=lines,
    )


def _rows_of_mapping(name: str, data: Mapping[Any, Any], ids: Ids, called: str = "") -> RunRows:
    called = called or name
    if not data:
        raise ValueError(f"{called} must hold at least one topic; got an empty {type(data).__name__}.")
    first, topics = len(ids.documents), ids.topics.numbers(ids.topics.kind.coded(list(data), called))
    if (usual := _usual_entries(name, data, ids)) is not None:
        ids.documents.extend(usual[0])
        topic = np.repeat(topics, usual[1])
        return RunRows(source=called, ids=ids, first=first, topics=topics, topic=topic, value=usual[2])
    sizes: list[int] = []
    documents: list[bytes] = []
    values: list[NDArray[Any]] = []
    for topic, entries in data.items():
        source = f"{called}[{brief(topic)}]"
        listed = _entries(source, name, entries)
        sizes.append(len(listed))
        documents += ids.kind.coded(list(listed), source)
        if isinstance(listed, Mapping):
            read_values = score_array if name == "run" else real_array
            numbers = read_values(list(listed.values()), source)
            if numbers.ndim != 1:
                raise TypeError(
                    f"{source} must hold one number per document; got {brief(next(iter(listed.values())))}."
                )
            with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs, which are refused later
                values.append(numbers.astype(np.float64))
        else:
            values.append(np.ones(len(listed)) if name == "qrels" else -np.arange(len(listed), dtype=np.float64))
    ids.documents.extend(documents)
    topic, value = np.repeat(topics, sizes), np.concatenate(values)
    return RunRows(source=called, ids=ids, first=first, topics=topics, topic=topic, value=value)


def _usual_entries(
    name: str, data: Mapping[Any, Any], ids: Ids
) -> tuple[list[bytes], NDArray[np.int64], NDArray[np.float64]] | None:
    """Read documents, sizes and values of all topics at once, if all are dicts of floats or small integers.

    Or, in a run, if all are lists. None otherwise, and if something must be refused: the loop over topics names it.
    """
    entries = list(data.values())
    kinds = set(map(type, entries))
    if kinds != {dict} and not (name == "run" and kinds == {list}):
        return None
    documents = list(chain.from_iterable(entries))
    sizes = np.fromiter(map(len, entries), np.int64, len(entries))
    if kinds == {list}:
        value = -(np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)).astype(np.float64)
    else:
        values = list(chain.from_iterable(map(dict.values, entries)))
        of_values = set(map(type, values))
        if not of_values <= {float, int}:
            return None
        if int in of_values and max(map(abs, values)) > 2**53:  # float64 may make some of them equal
            return None
        value = np.array(values, dtype=np.float64)
    source = next((f"{name}[{brief(topic)}]" for topic, listed in data.items() if listed), name)
    try:
        return ids.kind.coded(documents, source), sizes, value
    except (TypeError, ValueError):
        return None


def _entries(source: str, name: str, entries: Any) -> Mapping[Any, Any] | list[Any]:
    if isinstance(entries, Mapping):
        return entries
    if isinstance(entries, (list, tuple)) or (isinstance(entries, np.ndarray) and entries.ndim == 1):
        return list(entries)
    if name == "qrels" and isinstance(entries, (set, frozenset)):
        return sorted(entries, key=str)
    shape = (
        "{document: grade} or the relevant documents"
        if name == "qrels"
        else "{document: score} or [document, ...], the best first"
    )
    raise TypeError(f"{source} must be {shape}; got {type(entries).__name__}.")


def _rows_of_frame(name: str, frame: Any, ids: Ids, names: Mapping[str, Any]) -> RunRows:
    value = "label" if name == "qrels" else "score"
    columns = select_columns(name, frame, ("qid", "docno", value), names)
    called = {meaning: f"column {brief_text(str(names[meaning]))}" for meaning in columns}
    ids_of = {meaning: _as_list(columns[meaning], f"{called[meaning]} of {name}") for meaning in ("qid", "docno")}
    topic = ids.topics.numbers(ids.topics.kind.coded(ids_of["qid"], f"{name}, {called['qid']},"))
    first = len(ids.documents)
    ids.documents.extend(ids.kind.coded(ids_of["docno"], f"{name}, {called['docno']},"))
    with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs, which are refused later
        read_values = score_array if name == "run" else real_array
        values: NDArray[Any] = read_values(columns[value], f"{called[value]} of {name}").astype(np.float64)
    topics = np.flatnonzero(np.bincount(topic))
    return RunRows(source=name, ids=ids, first=first, topics=topics, topic=topic, value=values)


def _as_list(ids: Any, source: str) -> list[Any]:
    if hasattr(ids, "to_list"):  # NumPy's strings would lose a NUL at the end, which those of polars become
        listed: list[Any] = ids.to_list()
        return listed
    return list(plain_array(ids, source).tolist())
