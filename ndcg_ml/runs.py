"""TREC data: judgements (qrels) and rankings (a run) from dicts, files or frames, matched and evaluated."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import readers
from ndcg_ml._checks import KSpec, cutoffs
from ndcg_ml._shown import shown, shown_text
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.groups import IntArray
from ndcg_ml.prepared import Prepared
from ndcg_ml.queries import Queries, by_sizes, is_missing, plain_array, real_array
from ndcg_ml.result import Evaluation, PerQuery, at_cutoff

__all__ = ["AlignedRun", "RunEvaluation", "RunPerQuery", "align", "evaluate_run"]

FloatArray = NDArray[np.float64]

_QUERIES = ("qrels", "run", "both")
_SHAPES = {
    "qrels": "{topic: {document: grade}}, a path to a TREC qrels file, or a data frame with columns qid, docno, label",
    "run": "{topic: {document: score}}, {topic: [document, ...]} with the best first, a path to a TREC run file, or a "
    "data frame with columns qid, docno, score",
}


# -- the result -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class RunPerQuery(PerQuery):
    """The table of topics: ``PerQuery`` with a column more.

    Attributes
    ----------
    judged : ndarray of float64
        The fraction of the first k retrieved documents that are judged, of all where fewer than k are; nan where none
        is retrieved; with several cut-offs one column each.
    """

    judged: FloatArray


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RunEvaluation(Evaluation[Any]):
    """NDCG of a run: an ``Evaluation`` that also knows which topics the run lacks and how much of it is judged.

    Attributes
    ----------
    value, flavor, k, n_queries, n_empty
        As of ``Evaluation``.
    per_query : RunPerQuery
        The table of topics, in order of first appearance in the qrels, then in the run. ``qid`` is text or integers,
        as the caller's topic ids are; from files, text.
    judged : float, or dict of float by cut-off
        Mean of judged@k over the topics with a retrieved document, whatever the flavor.
    queries : str
        Which topics were evaluated: those of the "qrels", of the "run" or of "both".
    qrels_only, run_only : ndarray
        The ids of the topics that only the qrels, and only the run, have.
    """

    per_query: RunPerQuery
    judged: float | dict[int | None, float]
    queries: str
    qrels_only: NDArray[Any]
    run_only: NDArray[Any]

    def __str__(self) -> str:
        *lines, flavor = Evaluation.__str__(self).split("\n")
        judged = self.judged if isinstance(self.judged, dict) else {self.flavor.k: self.judged}
        lines[len(judged) : len(judged)] = [f"judged{at_cutoff(k)} = {fraction:.6f}" for k, fraction in judged.items()]
        n_missing, n_extra = len(self.qrels_only), len(self.run_only)
        missing = f"{n_missing} of the qrels are not in the run"
        extra = f"{n_extra} of the run are not in the qrels"
        left_out = ", left out"
        if self.queries == "qrels":
            topics = (
                f"{missing}{', counted as retrieving nothing' * bool(n_missing)}; {extra}{left_out * bool(n_extra)}"
            )
        elif self.queries == "run":
            topics = f"{missing}{left_out * bool(n_missing)}; {extra}{', counted as unjudged' * bool(n_extra)}"
        else:
            topics = f"{missing}{left_out * bool(n_missing)}; {extra}{left_out * bool(n_extra)}"
        return "\n".join([*lines, f"topics: {topics}", flavor])


# -- the public function --------------------------------------------------------------------------------------------


def evaluate_run(
    qrels: Any,
    run: Any,
    *,
    flavor: Flavor | str = "trec_eval",
    k: KSpec = ...,
    queries: str = "qrels",
) -> RunEvaluation:
    """NDCG of a run against relevance judgements (qrels): what trec_eval computes, or any other flavor.

    Parameters
    ----------
    qrels : mapping, path or data frame
        ``{topic: {document: grade}}``; the path of a TREC qrels file (topic, iteration, document, grade); or a frame
        with columns ``qid``, ``docno``, ``label`` (pandas, polars, pyarrow).
    run : mapping, path or data frame
        ``{topic: {document: score}}``, higher is better; ``{topic: [document, ...]}``, the best first; the path of a
        TREC run file (topic, Q0, document, rank, score, tag), of which rank and tag play no part; or a frame with
        columns ``qid``, ``docno``, ``score``. Files may be compressed by gzip.
    flavor : Flavor or str, default "trec_eval"
        As for ``ndcg_score``. Its ``unjudged`` says what a retrieved document without a judgement is: gain 0
        ("zero"), removed before ranking ("condense") or an error ("raise"); its ``ties`` what order equal scores have.
    k : int, None or sequence of them, optional
        As for ``ndcg_score``. Default: the flavor's own, which for "trec_eval" is no cut-off.
    queries : {"qrels", "run", "both"}, default "qrels"
        Which topics are averaged: all of the qrels, where one that the run lacks counts as retrieving nothing, all
        of the run, or those in both.

    Returns
    -------
    RunEvaluation
        ``.value``, ``.per_query``, ``.to_frame()`` and ``str()`` as of an ``Evaluation``; and ``.judged``,
        ``.qrels_only``, ``.run_only``. All judged documents enter a ``global`` ideal, retrieved or not.

    Raises
    ------
    DataFileError
        A file has a line that is not of its form; a ValueError that names the file and the line.
    TypeError
        An argument has the wrong type; ids are text on one side and integers on the other, or neither.
    ValueError
        A missing id; a document twice in a topic; NaN scores or grades; no topic in both, or no judged document
        retrieved; a retrieved document without a judgement under ``unjudged="raise"``; a topic in which nothing is
        retrieved that the flavor would count 1 or leave out although it has relevant documents; or as for
        ``ndcg_score``.

    See Also
    --------
    align : the same data as arrays, for ``evaluate``, ``explain_difference`` and ``identify``.

    Notes
    -----
    The default counts every judged topic, as ``trec_eval -c``, ir_measures and the published figures of the TREC Deep
    Learning tracks do: a run cannot gain by leaving out a topic. ``queries="both"`` is trec_eval without ``-c``, and
    pytrec_eval. Equal to trec_eval 9.0.8 to the 4 digits that it prints, and to pytrec_eval-terrier 0.5.11 to 1e-12.
    Its option ``-l`` (the lowest relevant grade) concerns binary measures and leaves NDCG as it is.

    Ids are matched exactly: 7, "7" and "07" are three ids. Under ``ties="docid"`` equal scores are put in descending
    byte order of the ids in UTF-8, integers by their decimal digits, so that a dict and the file written from it give
    one value. Under ``ties="first"`` they keep the order of the run.

    judged@k counts documents with any grade, negative ones too, in the order of the flavor's scores and ties; where
    the order of equal scores is averaged or depends on gains (``ties`` "average", "best", "worst") it is the mean over
    their orders.

    Examples
    --------
    >>> qrels = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d4": 1}}
    >>> run = {"q1": {"d1": 0.9, "d7": 0.5, "d3": 0.5}}
    >>> print(evaluate_run(qrels, run, k=2))
    ndcg@2 = 0.380094
    judged@2 = 0.500000
    2 queries, 0 empty (scored 0); 3 documents
    topics: 1 of the qrels are not in the run, counted as retrieving nothing; 0 of the run are not in the qrels
    ndcg@2[gain=linear,discount=log2,ideal=global,ties=docid,empty=0,negative=zero,unjudged=zero,score_dtype=float32]
    >>> round(evaluate_run(qrels, {"q1": ["d1", "d3"]}, k=2, queries="both").value, 6)
    1.0
    """
    flavor = as_flavor(flavor)
    ks, several = cutoffs(k, flavor)
    aligned = align(qrels, run, queries=queries)
    _check_labels(aligned, flavor)
    evaluation = Prepared(flavor, k, aligned.queries()).evaluate(aligned.y_score)
    _check_missing(evaluation, flavor)
    judged = _judged(aligned, flavor, ks)
    table = evaluation.per_query
    return RunEvaluation(
        value=evaluation.value,
        flavor=evaluation.flavor,
        k=evaluation.k,
        n_queries=evaluation.n_queries,
        n_empty=evaluation.n_empty,
        per_query=RunPerQuery(
            **{field.name: getattr(table, field.name) for field in fields(table)},
            judged=judged if several else judged[:, 0],
        ),
        judged=dict(zip(ks, _mean(judged), strict=True)) if several else _mean(judged)[0],
        queries=queries,
        qrels_only=aligned.qrels_only,
        run_only=aligned.run_only,
    )


# -- qrels and run as arrays ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class AlignedRun:
    """Qrels and a run as arrays: one row a document that is retrieved, judged or both. Made by ``align``.

    Attributes
    ----------
    qid : ndarray
        The topics, in order of first appearance in the qrels, then in the run.
    group : ndarray of int
        How many consecutive rows each topic has.
    y_true : ndarray of float64
        Grades; NaN is an unjudged document.
    y_score : ndarray of float64
        Scores, of the retrieved documents alone; the others hold 0. A ranked list scores 0, -1, -2, ...
    retrieved : ndarray of bool
    doc_id : ndarray of int
        Of a retrieved document, where its id stands among those of its topic in byte order; of others a number below 0.
    qrels_only, run_only : ndarray
        The topics that only the qrels, and only the run, have.
    """

    qid: NDArray[Any]
    group: IntArray
    y_true: FloatArray
    y_score: FloatArray
    retrieved: NDArray[np.bool_]
    doc_id: IntArray
    qrels_only: NDArray[Any]
    run_only: NDArray[Any]
    where: Callable[[int], str]
    """Names a row for a message."""

    def queries(self) -> Queries:
        """The same, without the scores, as ``Prepared`` takes it."""
        groups = replace(by_sizes(self.group, self.y_true.size), ids=self.qid)
        return Queries(self.y_true, groups, self.retrieved, self.doc_id)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for ``evaluate``, ``explain_difference``, ``identify`` and all that take such data.

        Topics are given as `qid`, one a row; as `group` where a topic has no row, neither judged nor retrieved.
        """
        queries = {"qid": np.repeat(self.qid, self.group)} if self.group.all() else {"group": self.group}
        rows = {"y_true": self.y_true, "y_score": self.y_score, "retrieved": self.retrieved, "doc_id": self.doc_id}
        return {**rows, **queries}


def align(qrels: Any, run: Any, *, queries: str = "qrels") -> AlignedRun:
    """Match a run with its judgements, document by document.

    Parameters
    ----------
    qrels, run, queries
        As for ``evaluate_run``.

    Returns
    -------
    AlignedRun

    Raises
    ------
    TypeError, ValueError
        As for ``evaluate_run``, without what concerns the flavor.

    Examples
    --------
    >>> from ndcg_ml import ndcg_score
    >>> data = align({"q1": {"d1": 2, "d3": 1}}, {"q1": ["d1", "d2"]})
    >>> data.y_true, data.retrieved
    (array([ 2., nan,  1.]), array([ True,  True, False]))
    >>> round(ndcg_score(**data.arguments(), flavor="trec_eval"), 6)
    0.760188
    """
    if not isinstance(queries, str) or queries not in _QUERIES:
        kind = ValueError if isinstance(queries, str) else TypeError
        raise kind(f"queries must be one of {', '.join(map(repr, _QUERIES))}; got {shown(queries)}.")
    topics, documents = _Topics(), _Kind("document")
    judged = _rows("qrels", qrels, topics, documents)
    ranked = _rows("run", run, topics, documents)
    in_qrels, in_run = (np.zeros(len(topics), dtype=bool) for _ in range(2))
    in_qrels[judged.topics], in_run[ranked.topics] = True, True
    if not (in_qrels & in_run).any():
        raise ValueError(
            f"qrels and run must share a topic; {judged.source} has {_some(topics, in_qrels)} and {ranked.source} has "
            f"{_some(topics, in_run)}. Ids are compared exactly: check prefixes and leading zeros."
        )
    chosen = {"qrels": in_qrels, "run": in_run, "both": in_qrels & in_run}[queries]
    match, place = _matched(judged, ranked, len(topics))
    if not ((match >= 0) & chosen[ranked.topic]).any():
        raise ValueError(
            f"run must retrieve a judged document; none of its {ranked.topic.size} documents is judged in its topic. "
            f"Ids are compared exactly: those of {judged.source} look like {judged.name(0)}, those of {ranked.source} "
            f"like {ranked.name(0)}."
        )
    unretrieved = np.ones(judged.topic.size, dtype=bool)
    unretrieved[match[match >= 0]] = False

    rows_of_run = np.flatnonzero(chosen[ranked.topic])
    rows_of_qrels = np.flatnonzero(unretrieved & chosen[judged.topic])
    n_run, n_more = rows_of_run.size, rows_of_qrels.size
    topic = np.concatenate([ranked.topic[rows_of_run], judged.topic[rows_of_qrels]])
    order = np.argsort(topic, kind="stable")
    of_run = match[rows_of_run]
    grades = np.where(of_run >= 0, judged.value[of_run], np.nan)
    source = np.concatenate([rows_of_run, rows_of_qrels])[order]
    retrieved = order < n_run

    def where(row: int) -> str:
        return (ranked if retrieved[row] else judged).where(int(source[row]))

    def names(flags: NDArray[np.bool_]) -> NDArray[Any]:
        return topics.names(np.flatnonzero(flags))

    return AlignedRun(
        qid=names(chosen),
        group=np.bincount(topic, minlength=len(topics))[chosen],
        y_true=np.concatenate([grades, judged.value[rows_of_qrels]])[order],
        y_score=np.concatenate([ranked.value[rows_of_run], np.zeros(n_more)])[order],
        retrieved=retrieved,
        doc_id=np.concatenate([place[rows_of_run], np.arange(-n_more, 0)])[order],
        qrels_only=names(in_qrels & ~in_run),
        run_only=names(in_run & ~in_qrels),
        where=where,
    )


class _Rows(NamedTuple):
    """The documents of qrels or a run, one of a topic a row."""

    source: str
    topics: IntArray  # those there are, also without a row
    topic: IntArray
    documents: list[bytes]
    value: FloatArray
    name: Callable[[int], str]  # of a row's document
    where: Callable[[int], str]


class _Kind:
    """Whether ids are text or integers: inside, an id is its text in UTF-8, so the two must never be mixed."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._kind: type | None = None
        self._source = ""

    def coded(self, ids: Sequence[Any], source: str) -> list[bytes]:
        """Ids from Python, all of them str or all of them int, as they are kept inside."""
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


class _Topics:
    """Topic ids as consecutive numbers from 0, in the order in which they were seen first."""

    def __init__(self) -> None:
        self.kind = _Kind("topic")
        self._number: defaultdict[bytes, int] = defaultdict()
        self._number.default_factory = self._number.__len__

    def __len__(self) -> int:
        return len(self._number)

    def numbers(self, coded: Sequence[bytes]) -> IntArray:
        return np.fromiter(map(self._number.__getitem__, coded), np.int64, len(coded))

    def names(self, numbers: NDArray[np.signedinteger[Any]]) -> NDArray[Any]:
        """The ids of these numbers as the caller had them."""
        listed = list(self._number)
        names = [self.kind.decoded(listed[number]) for number in numbers.tolist()]
        # NumPy's own strings would lose a NUL at the end, and integers beyond 64 bits may become floats.
        lossy = any(name.endswith("\0") if isinstance(name, str) else abs(name) >= 2**63 for name in names)
        return np.array(names, dtype=object if lossy else None if names else str)


def _matched(judged: _Rows, ranked: _Rows, n_topics: int) -> tuple[IntArray, IntArray]:
    """For each row of the run: the row of the qrels that judges it or -1, and its place in byte order in its topic."""
    match, place = np.full(ranked.topic.size, -1), np.empty(ranked.topic.size, dtype=np.int64)
    by_topic = zip(_of_topics(judged, n_topics), _of_topics(ranked, n_topics), strict=True)
    for (judged_rows, judged_ids), (ranked_rows, ranked_ids) in by_topic:
        row_of = dict(zip(judged_ids, judged_rows.tolist(), strict=True))
        if len(row_of) < len(judged_ids):
            raise _twice(judged, judged_rows, judged_ids)
        if len(set(ranked_ids)) < len(ranked_ids):
            raise _twice(ranked, ranked_rows, ranked_ids)
        match[ranked_rows] = [row_of.get(each, -1) for each in ranked_ids]
        in_order = sorted(range(len(ranked_ids)), key=ranked_ids.__getitem__)
        place[ranked_rows[in_order]] = np.arange(len(ranked_ids))
    return match, place


def _of_topics(rows: _Rows, n_topics: int) -> Iterator[tuple[IntArray, list[bytes]]]:
    """The rows of each topic with their documents, in the order of the caller."""
    order = np.argsort(rows.topic, kind="stable")
    stops = np.cumsum(np.bincount(rows.topic, minlength=n_topics))
    for mine in np.split(order, stops[:-1]):
        yield mine, [rows.documents[row] for row in mine.tolist()]


def _twice(rows: _Rows, numbers: IntArray, ids: list[bytes]) -> ValueError:
    first: dict[bytes, int] = {}
    for row, each in zip(numbers.tolist(), ids, strict=True):
        if each in first:
            break
        first[each] = row
    places = dict.fromkeys((rows.where(first[each]), rows.where(row)))
    return ValueError(
        f"a document must not stand twice in a topic; {rows.name(row)} does in {' and '.join(places)}. Remove the "
        "duplicates."
    )


def _rows(name: str, data: Any, topics: _Topics, documents: _Kind) -> _Rows:
    if isinstance(data, (str, os.PathLike)):
        rows = _of_file(name, data, topics, documents)
    elif isinstance(data, Mapping):
        rows = _of_mapping(name, data, topics, documents)
    elif hasattr(data, "columns") and hasattr(data, "__getitem__"):
        rows = _of_frame(name, data, topics, documents)
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


def _of_file(name: str, path: str | os.PathLike[str], topics: _Topics, documents: _Kind) -> _Rows:
    source = f"{name} ({os.fspath(path)})"
    topics.kind.agree(str, source)
    documents.agree(str, source)
    ids: list[bytes] = []
    columns: list[tuple[IntArray, FloatArray, IntArray]] = []
    for block in readers.trec_lines(path, readers.QRELS if name == "qrels" else readers.RUN):
        ids += block.documents
        columns.append((topics.numbers(block.topics), block.values, block.numbers))
    topic, value, number = (np.concatenate(column) for column in zip(*columns, strict=True))
    return _Rows(
        source,
        np.unique(topic),
        topic,
        ids,
        value,
        lambda row: shown(documents.decoded(ids[row])),
        lambda row: f"{path}, line {number[row]}",
    )


def _of_mapping(name: str, data: Mapping[Any, Any], topics: _Topics, documents: _Kind) -> _Rows:
    if not data:
        raise ValueError(f"{name} must hold at least one topic; got an empty {type(data).__name__}.")
    of_topic = topics.numbers(topics.kind.coded(list(data), name))
    sizes: list[int] = []
    ids: list[bytes] = []
    values: list[FloatArray] = []
    for topic, entries in data.items():
        source = f"{name}[{shown(topic)}]"
        listed = _entries(source, name, entries)
        sizes.append(len(listed))
        ids += documents.coded(list(listed), source)
        if isinstance(listed, Mapping):
            numbers = real_array(list(listed.values()), source)
            if numbers.ndim != 1:
                raise TypeError(f"{source} must hold one number a document; got {shown(next(iter(listed.values())))}.")
            with np.errstate(invalid="ignore"):  # of a NaN that signals, which is refused in time
                values.append(numbers.astype(np.float64))
        else:
            values.append(-np.arange(len(listed), dtype=np.float64))
    return _named(name, of_topic, np.repeat(of_topic, sizes), ids, np.concatenate(values), topics, documents)


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


def _of_frame(name: str, frame: Any, topics: _Topics, documents: _Kind) -> _Rows:
    value = "label" if name == "qrels" else "score"
    has = list(getattr(frame, "column_names", frame.columns))  # of a pyarrow table, columns are arrays
    missing = [column for column in ("qid", "docno", value) if column not in has]
    if missing:
        raise ValueError(
            f"{name} as a data frame must have columns qid, docno and {value}; got "
            f"{shown_text(', '.join(map(str, has)))}. Rename the one that is meant by {missing[0]}."
        )
    topic = topics.numbers(topics.kind.coded(_listed(frame, "qid", name), f"{name}, column qid,"))
    ids = documents.coded(_listed(frame, "docno", name), f"{name}, column docno,")
    with np.errstate(invalid="ignore"):  # as above
        values = real_array(frame[value], f"column {value} of {name}").astype(np.float64)
    return _named(name, np.unique(topic), topic, ids, values, topics, documents)


def _listed(frame: Any, column: str, name: str) -> list[Any]:
    ids = frame[column]
    if hasattr(ids, "to_list"):  # NumPy's strings would lose a NUL at the end, which those of polars become
        listed: list[Any] = ids.to_list()
        return listed
    return list(plain_array(ids, f"column {column} of {name}").tolist())


def _named(
    name: str,
    of_topic: IntArray,
    topic: IntArray,
    ids: list[bytes],
    values: FloatArray,
    topics: _Topics,
    documents: _Kind,
) -> _Rows:
    def of(row: int) -> str:
        return shown(documents.decoded(ids[row]))

    def where(row: int) -> str:
        return f"{name}[{shown(topics.names(topic[[row]]).tolist()[0])}], document {of(row)}"

    return _Rows(name, of_topic, topic, ids, values, of, where)


def _some(topics: _Topics, flags: NDArray[np.bool_]) -> str:
    numbers = np.flatnonzero(flags)
    some = ", ".join(map(shown, topics.names(numbers[:3]).tolist()))
    return some + (f", ... ({numbers.size} topics)" if numbers.size > 3 else "")


# -- what the flavor makes of it ------------------------------------------------------------------------------------


def _check_labels(aligned: AlignedRun, flavor: Flavor) -> None:
    """Refuse what the flavor refuses, by the names that the caller knows."""
    unjudged, negative = np.isnan(aligned.y_true), aligned.y_true < 0
    for switch, rule, bad, what, others in (
        ("unjudged", flavor.unjudged, unjudged, "a document without a judgement", "'zero' or 'condense'"),
        ("negative", flavor.negative, negative, "a negative grade", "'zero', 'drop' or 'allow'"),
    ):
        if rule == "raise" and bad.any():
            raise ValueError(
                f"{what} is refused under {switch}='raise'; got {int(bad.sum())}, the first in "
                f"{aligned.where(int(np.flatnonzero(bad)[0]))}. Choose a flavor with {switch}={others}."
            )


def _check_missing(evaluation: Evaluation[Any], flavor: Flavor) -> None:
    """A topic that has relevant documents must not count 1, or not at all, because nothing is ranked in it.

    An ideal of what was retrieved is 0 there, and the flavor's rule for empty queries would decide.
    """
    if flavor.empty not in (1.0, "skip"):
        return
    table = evaluation.per_query
    empty = table.empty if table.empty.ndim == 1 else table.empty.any(axis=1)
    lost = np.flatnonzero((table.n_docs == 0) & (table.n_relevant > 0) & empty)
    if lost.size:
        rule = "count 1" if flavor.empty == 1.0 else "be left out of the mean"
        raise ValueError(
            f"every topic with relevant documents must rank some document under ideal={flavor.ideal!r} with "
            f"empty={flavor.empty if isinstance(flavor.empty, str) else int(flavor.empty)!r}; got {lost.size} that "
            f"rank none and would {rule}, the first {shown(table.qid[lost].tolist()[0])}. Choose ideal='global' or "
            "empty=0, or queries='both' if topics that the run lacks should not count."
        )


def _judged(aligned: AlignedRun, flavor: Flavor, ks: tuple[int | None, ...]) -> FloatArray:
    """judged@k of each topic at each cut-off: the expected number of judged documents is a DCG without discount."""
    counting = Flavor(
        gain="linear",
        discount="none",
        ideal="recall",
        ties=flavor.ties if flavor.ties in ("first", "last", "docid") else "average",
        score_dtype=flavor.score_dtype,
    )
    queries = aligned.queries()
    flags = (~np.isnan(aligned.y_true)).astype(np.float64)
    totals = Prepared(counting, ks, replace(queries, labels=flags)).totals(aligned.y_score)
    found, _ = totals.in_units_of_gain()
    n_retrieved = queries.groups.per_query(np.add, aligned.retrieved.astype(np.float64), 0.0)
    depths = np.stack([n_retrieved if k is None else np.minimum(n_retrieved, k) for k in ks], axis=1)
    fractions: FloatArray = np.divide(found, depths, out=np.full(found.shape, np.nan), where=depths > 0)
    return fractions


def _mean(judged: FloatArray) -> list[float]:
    some = ~np.isnan(judged[:, 0])
    return [float(mean) for mean in judged[some].mean(axis=0)]
