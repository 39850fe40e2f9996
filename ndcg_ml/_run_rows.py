"""Qrels and runs as rows, from dicts, TREC files and data frames."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import readers
from ndcg_ml._shown import shown, shown_text
from ndcg_ml.groups import IntArray
from ndcg_ml.queries import is_missing, plain_array, real_array

__all__ = ["Frame", "Ids", "Rows", "RunLike", "Topics", "read_rows"]

FloatArray = NDArray[np.float64]


class Frame(Protocol):
    """A data frame of pandas, polars or pyarrow."""

    @property
    def columns(self) -> Any:
        """Names of the columns; of pyarrow, the columns."""

    def __getitem__(self, column: Any, /) -> Any:
        """A column."""


RunLike: TypeAlias = "Mapping[Any, Any] | str | os.PathLike[str] | Frame"
"""Qrels or a run, in any form that ``evaluate_run`` takes."""

_SHAPES = {
    "qrels": "{topic: {document: grade}}, a path to a TREC qrels file, or a data frame with columns qid, docno, label",
    "run": "{topic: {document: score}}, {topic: [document, ...]} with the best first, a path to a TREC run file, or a "
    "data frame with columns qid, docno, score",
}


# -- ids ------------------------------------------------------------------------------------------------------------


class _Kind:
    """Whether ids are text or integers: inside, an id is its text in UTF-8, so the two must never be mixed."""

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
                return [each.encode("utf-8", "surrogateescape") for each in ids]
            except UnicodeEncodeError as error:
                raise ValueError(
                    f"{self._what} ids of {source} must be text that UTF-8 can hold; got {shown(error.object)}, "
                    "which has half of a surrogate pair."
                ) from error
        if all(issubclass(kind, (int, np.integer)) and not issubclass(kind, bool) for kind in kinds):
            self.agree(int, source)
            return [b"%d" % each for each in ids]
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        missing = [each for each in ids if is_missing(each)]
        if missing:
            raise ValueError(
                f"{self._what} ids of {source} must not be missing; got {shown(missing[0])}. Leave out the rows "
                "without an id."
            )
        odd = next(each for each in ids if not isinstance(each, str))
        raise TypeError(
            f"{self._what} ids of {source} must all be str, or all be int; got {listed}, such as {shown(odd)}. "
            "Convert them, for example with str()."
        )

    def agree(self, kind: type, source: str) -> None:
        """Refuse ids of another type than those before."""
        if self._kind is None:
            self._kind, self._source = kind, source
        elif self._kind is not kind:
            raise TypeError(
                f"{self._what} ids must have one type in qrels and run; got {self._kind.__name__} in {self._source} "
                f"and {kind.__name__} in {source}. 7 and '7' are never taken for each other: convert one side (ids "
                "from files are text, str)."
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

    def numbers(self, coded: Sequence[bytes]) -> IntArray:
        """The numbers of these ids; new ones get the next."""
        return np.fromiter(map(self._number.__getitem__, coded), np.int64, len(coded))

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
        self.documents = _Kind("document")


# -- rows -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Rows:
    """The documents of qrels or a run, one row for each in each topic."""

    source: str
    ids: Ids
    topics: IntArray  # those there are, also without a row
    topic: IntArray
    documents: list[bytes]
    value: FloatArray
    path: str | os.PathLike[str] = ""
    lines: IntArray | None = None  # of a file

    def name(self, row: int) -> str:
        """The id of a row's document."""
        return shown(self.ids.documents.decoded(self.documents[row]))

    def where(self, row: int) -> str:
        """What to call a row in an error message."""
        if self.lines is not None:
            return f"{self.path}, line {self.lines[row]}"
        [topic] = self.ids.topics.names(self.topic[[row]]).tolist()
        return f"{self.source}[{shown(topic)}], document {self.name(row)}"


def read_rows(name: str, data: RunLike, ids: Ids) -> Rows:
    """The rows of ``qrels`` or of a ``run`` (the name says which), their ids kept as `ids` keeps them."""
    if isinstance(data, (str, os.PathLike)):
        rows = _of_file(name, data, ids)
    elif isinstance(data, Mapping):
        rows = _of_mapping(name, data, ids)
    elif hasattr(data, "columns") and hasattr(data, "__getitem__"):
        rows = _of_frame(name, data, ids)
    else:
        raise TypeError(f"{name} must be {_SHAPES[name]}; got {type(data).__name__}.")
    if not rows.topic.size:
        raise ValueError(f"{name} must hold at least one document; got none.")
    bad = ~np.isfinite(rows.value) if name == "qrels" else np.isnan(rows.value)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        if name == "qrels":
            must = "grades must be finite numbers", "Leave an unjudged document out of the qrels."
        else:
            must = "scores must not be NaN, which has no place in a ranking", "Find out why the model produced it."
        raise ValueError(f"{must[0]}; got {rows.value[at]} in {rows.where(at)}. {must[1]}")
    return rows


def _of_file(name: str, path: str | os.PathLike[str], ids: Ids) -> Rows:
    source = f"{name} ({os.fspath(path)})"
    ids.topics.kind.agree(str, source)
    ids.documents.agree(str, source)
    documents: list[bytes] = []
    columns: list[tuple[IntArray, FloatArray, IntArray]] = []
    for block in readers.trec_lines(path, readers.QRELS if name == "qrels" else readers.RUN):
        documents += block.documents
        columns.append((ids.topics.numbers(block.topics), block.values, block.numbers))
    topic, value, lines = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Rows(
        source=source,
        ids=ids,
        topics=np.unique(topic),
        topic=topic,
        documents=documents,
        value=value,
        path=path,
        lines=lines,
    )


def _of_mapping(name: str, data: Mapping[Any, Any], ids: Ids) -> Rows:
    if not data:
        raise ValueError(f"{name} must hold at least one topic; got an empty {type(data).__name__}.")
    topics = ids.topics.numbers(ids.topics.kind.coded(list(data), name))
    sizes: list[int] = []
    documents: list[bytes] = []
    values: list[FloatArray] = []
    for topic, entries in data.items():
        source = f"{name}[{shown(topic)}]"
        listed = _entries(source, name, entries)
        sizes.append(len(listed))
        documents += ids.documents.coded(list(listed), source)
        if isinstance(listed, Mapping):
            numbers = real_array(list(listed.values()), source)
            if numbers.ndim != 1:
                raise TypeError(
                    f"{source} must hold one number per document; got {shown(next(iter(listed.values())))}."
                )
            with np.errstate(invalid="ignore"):  # of a NaN that signals, which is refused in time
                values.append(numbers.astype(np.float64))
        else:
            values.append(-np.arange(len(listed), dtype=np.float64))
    return Rows(
        source=name,
        ids=ids,
        topics=topics,
        topic=np.repeat(topics, sizes),
        documents=documents,
        value=np.concatenate(values),
    )


def _entries(source: str, name: str, entries: Any) -> Mapping[Any, Any] | list[Any]:
    if isinstance(entries, Mapping):
        if name == "qrels" and not entries:
            raise ValueError(f"{source} must judge a document; got none. Leave the topic out.")
        return entries
    if name == "run" and (
        isinstance(entries, (list, tuple)) or (isinstance(entries, np.ndarray) and entries.ndim == 1)
    ):
        return list(entries)
    shape = "{document: grade}" if name == "qrels" else "{document: score} or [document, ...], the best first"
    raise TypeError(f"{source} must be {shape}; got {type(entries).__name__}.")


def _of_frame(name: str, frame: Frame, ids: Ids) -> Rows:
    value = "label" if name == "qrels" else "score"
    has = list(getattr(frame, "column_names", frame.columns))  # of a pyarrow table, columns are arrays
    missing = [column for column in ("qid", "docno", value) if column not in has]
    if missing:
        raise ValueError(
            f"{name} as a data frame must have columns qid, docno and {value}; got "
            f"{shown_text(', '.join(map(str, has)))}. Rename the one that is meant by {missing[0]}."
        )
    topic = ids.topics.numbers(ids.topics.kind.coded(_listed(frame, "qid", name), f"{name}, column qid,"))
    documents = ids.documents.coded(_listed(frame, "docno", name), f"{name}, column docno,")
    with np.errstate(invalid="ignore"):  # as above
        values = real_array(frame[value], f"column {value} of {name}").astype(np.float64)
    return Rows(source=name, ids=ids, topics=np.unique(topic), topic=topic, documents=documents, value=values)


def _listed(frame: Any, column: str, name: str) -> list[Any]:
    ids = frame[column]
    if hasattr(ids, "to_list"):  # NumPy's strings would lose a NUL at the end, which those of polars become
        listed: list[Any] = ids.to_list()
        return listed
    return list(plain_array(ids, f"column {column} of {name}").tolist())
