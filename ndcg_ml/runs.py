"""TREC data: judgements (qrels) and rankings (a run) from dicts, files or frames, matched and evaluated."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._checks import TIES_BY_ID, ByK, KSpec, OneK, cutoffs, one_of
from ndcg_ml._data.arrays import FloatArray, IntArray
from ndcg_ml._data.frames import ColumnNames, column_names, is_frame, library_of
from ndcg_ml._data.groups import ranges, starts_of
from ndcg_ml._data.queries import DocumentNames, Queries, find_repeats, group_by_sizes
from ndcg_ml._files.byte_ids import Names, earlier
from ndcg_ml._files.byte_ids import digests as judgement_digests
from ndcg_ml._files.run_rows import Ids, RunLike, RunRows, Topics, read_rows
from ndcg_ml._one_line import brief
from ndcg_ml._text.plain import plain_ids
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.prepared import Prepared
from ndcg_ml.result import Evaluation, PerQuery, V, at_cutoff

__all__ = [
    "AlignedRun",
    "RunEvaluation",
    "RunPerQuery",
    "Which",
    "align",
    "check_missing",
    "evaluate_run",
    "warn_of_empty_answers",
]


# Up to this number of rows, ids are kept for questions about documents. Each takes 16 bytes or more.
_NAMED_ROWS = 1 << 22

Which: TypeAlias = Literal["qrels", "run", "both"]
"""Which topics count: those of the qrels, of the run, or in both."""

Exclude: TypeAlias = "Literal['identical'] | Mapping[Any, Iterable[Any]]"
"""Documents that a run must not be credited for: those with the id of their topic, or those listed by topic."""

# This number of scores, each one more than the one before, is no accident.
_ENOUGH_STEPS = 4


# -- the result -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class RunPerQuery(PerQuery):
    """The table of topics: ``PerQuery`` with two more columns.

    Attributes
    ----------
    n_retrieved : ndarray of int
        Documents that the run retrieves, less those that `exclude` leaves out; 0 if no documents were returned. (The
        column ``n_docs`` counts those that are ranked, which under ``unjudged="condense"`` are fewer.)
    judged : ndarray of float64
        The fraction of the first k retrieved documents (all of them, if there are fewer) that are judged; nan if
        none is retrieved; with several cut-offs, one column each.
    """

    n_retrieved: IntArray
    judged: FloatArray


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RunEvaluation(Evaluation[V]):
    """NDCG of a run: an ``Evaluation`` that also knows which topics the run lacks and how much of it is judged.

    Attributes
    ----------
    value, flavor, k, n_queries, n_empty
        As in ``Evaluation``.
    per_query : RunPerQuery
        The table of topics, in order of first appearance in the qrels, then in the run. ``qid`` holds strings or
        integers, as you passed topic ids; strings if they come from files.
    judged : float, or dict of float by cut-off
        Mean of judged@k over the topics with a retrieved document, whatever the flavor.
    queries : str
        Which topics were evaluated: those of the "qrels", of the "run" or of "both".
    qrels_only, run_only : ndarray
        The ids of the topics that only the qrels, and only the run, have.
    n_unanswered : int
        Number of evaluated topics for which nothing is retrieved: the run answers with an empty list, lacks the topic,
        or retrieves only what `exclude` leaves out. ``per_query.n_retrieved`` is 0 in them.
    n_excluded : int or None
        Number of documents of the run that `exclude` left out; None without `exclude`, and in a slice.
    """

    per_query: RunPerQuery
    judged: float | dict[int | None, float]
    queries: Which
    qrels_only: NDArray[Any]
    run_only: NDArray[Any]
    n_unanswered: int
    n_excluded: int | None = None
    _judgements: NDArray[np.uint64] | None = field(default=None, repr=False)
    """A digest of each topic's judgements, the same in whatever order they are; None in a slice."""
    _excluded: NDArray[np.uint64] | None = field(default=None, repr=False)
    """A digest of the documents that `exclude` names in each topic; None without `exclude`, and in a slice."""

    def _unanswered(self) -> NDArray[np.bool_]:
        nothing: NDArray[np.bool_] = self.per_query.n_retrieved == 0
        return nothing

    def _extra_columns(self) -> dict[str, dict[int | None, float]]:
        return {"judged": self._judged_at()}

    def _notes(self) -> list[str]:
        counts, flavor = Evaluation._notes(self)
        topics = "; ".join(
            f"{len(ids)} of the {one} are not in the {other}{f', {fate}' * bool(len(ids))}"
            for one, other, ids, fate in self.one_sided()
        )
        lines = [counts, f"topics: {topics}"]
        if n_empty_answers := self.n_unanswered - (self.qrels_only.size if self.queries == "qrels" else 0):
            lines.append(f"answers: {n_empty_answers} of the evaluated topics are answered with an empty list")
        if self.n_excluded is not None:
            lines.append(f"excluded: {self.n_excluded} retrieved documents")
        return [*lines, flavor]

    def _judged_at(self) -> dict[int | None, float]:
        return self.judged if isinstance(self.judged, dict) else {self.flavor.k: self.judged}

    def __str__(self) -> str:
        judged = self._judged_at()
        lines = Evaluation.__str__(self).split("\n")
        lines[len(judged) : len(judged)] = [f"judged{at_cutoff(k)} = {fraction:.6f}" for k, fraction in judged.items()]
        return "\n".join(lines)

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """Plain numbers and text, for JSON, as in ``Evaluation``; with the topics on one side alone.

        Parameters
        ----------
        per_query : bool, default False
            Whether to have the table of topics too.

        Returns
        -------
        dict
        """
        return {
            **Evaluation.to_dict(self, per_query),
            "queries": self.queries,
            "qrels_only": plain_ids(self.qrels_only).tolist(),
            "run_only": plain_ids(self.run_only).tolist(),
            "n_unanswered": self.n_unanswered,
            "n_excluded": self.n_excluded,
        }

    def one_sided(self) -> list[tuple[str, str, NDArray[Any], str]]:
        """The topics that only the qrels, and only the run, have: the side that has them, the other side, ids,
        treatment.

        Returns
        -------
        list of (str, str, ndarray, str)
        """
        missing = "counted as retrieving nothing" if self.queries == "qrels" else "left out"
        extra = "counted as unjudged" if self.queries == "run" else "left out"
        return [("qrels", "run", self.qrels_only, missing), ("run", "qrels", self.run_only, extra)]


# -- the public function --------------------------------------------------------------------------------------------


# fmt: off
@overload
def evaluate_run(
    qrels: RunLike, run: RunLike, *, flavor: Flavor | str = ..., k: OneK = ..., queries: Which = ...,
    by: ArrayLike | Mapping[str, Any] | None = ..., cluster: ArrayLike | Mapping[Any, Any] | None = ...,
    exclude: Exclude | None = ..., columns: ColumnNames | None = ...,
) -> RunEvaluation[float]: ...
@overload
def evaluate_run(
    qrels: RunLike, run: RunLike, *, flavor: Flavor | str = ..., k: Sequence[int | None], queries: Which = ...,
    by: ArrayLike | Mapping[str, Any] | None = ..., cluster: ArrayLike | Mapping[Any, Any] | None = ...,
    exclude: Exclude | None = ..., columns: ColumnNames | None = ...,
) -> RunEvaluation[ByK]: ...
# fmt: on
def evaluate_run(
    qrels: RunLike,
    run: RunLike,
    *,
    flavor: Flavor | str = "trec_eval",
    k: KSpec = ...,
    queries: Which = "qrels",
    by: ArrayLike | Mapping[str, Any] | None = None,
    cluster: ArrayLike | Mapping[Any, Any] | None = None,
    exclude: Exclude | None = None,
    columns: ColumnNames | None = None,
) -> RunEvaluation[Any]:
    """NDCG of a run against relevance judgements (qrels): what trec_eval computes, or any other flavor.

    Parameters
    ----------
    qrels : mapping, path or data frame
        ``{topic: {document: grade}}``, or ``{topic: [document, ...]}`` of relevant documents (a list or set, of grade
        1); the path of a file: TREC qrels (topic, iteration, document, grade), JSONL,
        JSON of such a dict, BEIR's TSV, CSV or Parquet (docs/runs.md); or a frame of pandas, polars or pyarrow with
        columns ``qid``, ``docno``, ``label``.
    run : mapping, path or data frame
        ``{topic: {document: score}}``, higher is better; ``{topic: [document, ...]}``, the best first; the path of a
        file: a TREC run (topic, Q0, document, rank, score, tag), whose ranks and tag are ignored, or one of the other
        forms; or a frame with columns ``qid``, ``docno``, ``score``. Files of text may be compressed by gzip.
    flavor : Flavor or str, default "trec_eval"
        As for ``ndcg_score``. Its ``unjudged`` decides what happens to a retrieved document without a judgement: it
        has gain 0 ("zero"), is removed before ranking ("condense") or is an error ("raise"). Its ``ties`` orders equal
        scores. Its ``duplicates`` decides what it means that the run lists a document twice in a topic.
    k : int, None or sequence of them, optional
        As for ``ndcg_score``. Default: the flavor's own; "trec_eval" has none.
    queries : {"qrels", "run", "both"}, default "qrels"
        Which topics are averaged: all of the qrels (one that the run lacks counts as retrieving nothing), all of the
        run, or those in both.
    by : mapping of labels by topic id, by column; pandas object or array-like, optional
        Labels of the topics, such as ``{"language": {"q1": "de", "q2": "fr"}}``; or, by column, a Series with the topic
        ids as its index, or labels in the order of ``per_query.qid``. Every evaluated topic needs one.
    cluster : mapping of labels by topic id, pandas object or array-like, optional
        Groups of related topics (user, session, template): a label per topic, in the forms of a column of `by`.
        ``.interval()``, ``.standard_error``, the intervals of slices and ``compare`` then take clusters, not topics, as
        the sampling units.
    exclude : "identical" or mapping of documents by topic id, optional
        Documents that are taken out of the run before it is ranked: those whose id is that of their topic, which is
        BEIR's ``ignore_identical_ids``; or for each topic those listed, such as what a user had seen before. The
        judgements stay as they are. Default: none.
    columns : mapping, optional
        Names of the columns of data frames, such as ``{"qid": "user_id", "docno": "item_id"}``; the keys are
        ``qid``, ``docno``, ``label`` and ``score``. Default: just that.

    Returns
    -------
    RunEvaluation
        ``.value``, ``.per_query``, ``.to_frame()`` and ``str()`` as in an ``Evaluation``; and ``.judged``,
        ``.qrels_only``, ``.run_only``, ``.n_unanswered``; with `by`, ``.slices``. The frame is of the library of the
        run's frame, otherwise of that of the qrels. All judged documents enter a ``global`` ideal, retrieved or not; a
        ``given`` ideal has them in the order of the qrels. A topic of the qrels without a document (``{"q1": {}}``) is
        empty, and scores what the flavor's ``empty`` says.

    Raises
    ------
    DataFileError
        A file has a malformed line. It is a ValueError that names the file and the line.
    TypeError
        An argument has the wrong type, such as a LazyFrame, which must be collected first; ids are text on one side and
        integers on the other, or neither.
    ValueError
        A missing id or column; a document twice in a topic of the qrels, or of the run under ``duplicates="raise"``;
        NaN scores or grades; no topic in both; a retrieved document without a judgement under ``unjudged="raise"``; a
        topic in which nothing is retrieved, and which the flavor would score 1 or leave out although it has relevant
        documents; `by` or `cluster` lacks the label of a topic; or as for ``ndcg_score``.

    Warns
    -----
    UserWarning
        No document that the run retrieves is judged, so that every topic scores what the flavor says (0, usually): the
        ids may be of two kinds. The run answers a topic that has relevant documents with an empty list. A
        document that `exclude` names is judged relevant: it stays in the ideal, as in BEIR. The scores count up 1, 2,
        3, ... in every topic, as ranks do. Most grades are fractions and all scores whole numbers, as if `qrels` and
        `run` were exchanged.

    See Also
    --------
    align : the same data as arrays, for ``evaluate``, ``explain_difference`` and ``identify``.

    Notes
    -----
    The default counts every judged topic, as ``trec_eval -c``, ir_measures and the published figures of the TREC Deep
    Learning tracks do: a run cannot gain by leaving out a topic. ``queries="both"`` is trec_eval without ``-c``, and
    pytrec_eval. Equal to trec_eval 9.0.8 to the 4 digits that it prints, and to pytrec_eval-terrier 0.5.11 to 1e-12.
    Its option ``-l`` (the lowest relevant grade) concerns binary measures and leaves NDCG as it is.

    Ids are matched exactly: 7, "7" and "07" are three ids. Under ``ties="docid"`` equal scores are ordered by
    descending id, as bytes in UTF-8; integers by their decimal digits, so that a dict and the file written from it give
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
    ks, _ = cutoffs(k, flavor)
    keep = flavor.duplicates != "raise"
    aligned = _aligned(
        qrels,
        run,
        queries,
        columns,
        exclude,
        keep=keep,
        judgements="beside" if flavor.ideal == "given" else "ignored",
        stacklevel=3,
    )
    _check_labels(aligned, flavor)
    labels, clusters = _topic_labels(by, cluster, aligned.qid)
    evaluation: Evaluation[Any] = Prepared(flavor, k, aligned.queries()).evaluate(aligned.y_score)
    check_missing(evaluation, flavor)
    judged = _judged(aligned, flavor, ks)
    result = replace(
        as_run_evaluation(evaluation, aligned.n_retrieved(), judged, queries, aligned.qrels_only, aligned.run_only),
        frame_library=library_of(run) or library_of(qrels) or "pandas",
        n_excluded=aligned.n_excluded,
        cluster=clusters,
        _judgements=aligned.digests,
        _excluded=aligned.excluded,
    )
    warn_of_empty_answers(result, stacklevel=3)
    return result if labels is None else run_with_slices(result, labels)


def as_run_evaluation(
    evaluation: Evaluation[Any],
    n_retrieved: IntArray,
    judged: FloatArray,
    queries: Which,
    qrels_only: NDArray[Any],
    run_only: NDArray[Any],
) -> RunEvaluation[Any]:
    """Add to an evaluation of all topics, or of a slice of them, what is known of a run."""
    several = isinstance(evaluation.k, tuple)
    judged = judged.reshape(len(n_retrieved), -1)
    some = n_retrieved > 0  # a topic without a document has no fraction, and is not in its mean
    means = judged[some].mean(axis=0).tolist() if some.any() else [math.nan] * judged.shape[1]
    table = RunPerQuery(
        **{name: evaluation.per_query[name] for name in PerQuery.__dataclass_fields__},
        n_retrieved=n_retrieved,
        judged=judged if several else judged[:, 0],
    )
    return RunEvaluation(
        **{name: getattr(evaluation, name) for name in Evaluation.__dataclass_fields__ if name != "per_query"},
        per_query=table,
        judged=dict(zip(evaluation.k, means, strict=True)) if isinstance(evaluation.k, tuple) else means[0],
        queries=queries,
        qrels_only=qrels_only,
        run_only=run_only,
        n_unanswered=int((~some).sum()),
    )


def _topic_labels(
    by: Any, cluster: Any, topics: NDArray[Any]
) -> tuple[dict[str, list[Any]] | None, NDArray[Any] | None]:
    """The label of every topic, by column, and its cluster; None for what was not asked."""
    if by is None and cluster is None:
        return None, None
    from ndcg_ml._compare.slice_labels import as_objects, column_by_id, labels_by_id  # few need it

    return (
        None if by is None else labels_by_id(by, topics),
        None if cluster is None else as_objects(column_by_id(cluster, "cluster", topics)),
    )


def run_with_slices(result: RunEvaluation[Any], labels: Mapping[str, list[Any]]) -> RunEvaluation[Any]:
    """The result with the slices of these labels of its topics, each slice the evaluation of a run too."""
    from ndcg_ml._compare.slices import Slices, sliced

    def inside(evaluation: Evaluation[Any]) -> RunEvaluation[Any]:
        table = evaluation.per_query
        assert isinstance(table, RunPerQuery)
        ids = set(table.qid.tolist())

        def among(topics: NDArray[Any]) -> NDArray[Any]:
            return topics[[topic in ids for topic in topics.tolist()]]

        one_sided = among(result.qrels_only), among(result.run_only)
        return as_run_evaluation(evaluation, table.n_retrieved, table.judged, result.queries, *one_sided)

    slices = sliced(result, labels)
    return replace(result, slices=Slices(tuple(replace(one, evaluation=inside(one.evaluation)) for one in slices)))


def warn_of_empty_answers(result: RunEvaluation[Any], stacklevel: int) -> None:
    """Say which topics with relevant documents count as retrieving nothing although the run has them."""
    lacking = set(result.qrels_only.tolist())
    table = result.per_query
    topics = table.qid[(table.n_retrieved == 0) & (table.n_relevant > 0)].tolist()
    empty = [topic for topic in topics if topic not in lacking]
    if empty:
        warnings.warn(
            f"the run answers {len(empty)} of {result.n_queries} topics with an empty list, the first "
            f"{brief(empty[0])}; each counts as retrieving nothing. per_query.n_retrieved is 0 in them. If they should "
            "not count, leave them out of the run and choose queries='both'.",
            UserWarning,
            stacklevel,
        )


# -- qrels and run as arrays ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class AlignedRun:
    """Qrels and a run as arrays: one row per document that is retrieved, judged or both. Made by ``align``.

    The judged documents of a topic are in the order of the qrels, which ``ideal="given"`` follows. A topic with
    documents of one score is in the order of the run, which ``ties="first"`` and ``"last"`` follow, and is listed in
    `in_run_order`.

    Attributes
    ----------
    qid : ndarray
        The topics, in order of first appearance in the qrels, then in the run.
    group : ndarray of int
        Number of consecutive rows of each topic.
    y_true : ndarray of float64
        Grades; NaN is an unjudged document.
    y_score : ndarray of float64
        Scores, of the retrieved documents alone; the others hold 0. A ranked list scores 0, -1, -2, ...
    retrieved : ndarray of bool
    doc_id : ndarray of int
        For a retrieved document, the place of its id among those of its topic in byte order, counted from 10^9 so that
        all have the same number of digits (integer ids are compared as text). For the others, a number below 0.
    qrels_only, run_only : ndarray
        The topics that only the qrels, and only the run, have.
    in_run_order : ndarray
        The topics with documents of one score (in float32), so that a ``given`` ideal of these arrays may not be that
        of ``evaluate_run``.
    n_excluded : int or None
        Number of documents of the run that `exclude` left out; None without it.
    """

    qid: NDArray[Any]
    group: IntArray
    y_true: FloatArray
    y_score: FloatArray
    retrieved: NDArray[np.bool_]
    doc_id: IntArray
    qrels_only: NDArray[Any]
    run_only: NDArray[Any]
    in_run_order: NDArray[Any]
    n_excluded: int | None
    digests: NDArray[np.uint64]
    """A digest of each topic's judgements, documents with grades: the same in whatever order they are.

    If the order of the judgements is kept, another order has another digest.
    """
    excluded: NDArray[np.uint64] | None
    """A digest of the documents that `exclude` names in each topic; None without it."""
    judgement: IntArray | None
    """The position of each judged row in the qrels; None if the rows are in that order."""
    place_of: Callable[[int], str]
    """Describe a row for an error message."""
    repeated: bool
    """Whether the run lists a document twice."""
    names: DocumentNames | None = None
    """The ids of the documents; None if there are too many to keep."""

    def queries(self) -> Queries:
        """The same, without the scores, as ``Prepared`` takes it."""
        groups = replace(group_by_sizes(self.group, self.y_true.size), ids=self.qid)
        repeats = find_repeats(self.doc_id, groups, self.doc_id) if self.repeated else None
        return Queries(
            self.y_true,
            groups,
            self.retrieved,
            self.doc_id,
            repeats=repeats,
            given_order=self.judgement,
            names=self.names,
        )

    def n_retrieved(self) -> IntArray:
        """Number of documents retrieved in each topic; a repeated one counts as often as it is listed."""
        topic = np.repeat(np.arange(self.group.size), self.group)
        return np.bincount(topic[self.retrieved], minlength=self.group.size)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for ``evaluate``, ``explain_difference``, ``identify`` and all that take such data.

        Topics are given as `qid`, one per row; as `group` where a topic has no row, neither judged nor retrieved.
        """
        queries = {"qid": np.repeat(self.qid, self.group)} if self.group.all() else {"group": self.group}
        rows = {"y_true": self.y_true, "y_score": self.y_score, "retrieved": self.retrieved, "doc_id": self.doc_id}
        return {**rows, **queries}


def align(
    qrels: RunLike,
    run: RunLike,
    *,
    queries: Which = "qrels",
    exclude: Exclude | None = None,
    columns: ColumnNames | None = None,
    duplicates: Literal["raise", "keep"] = "raise",
) -> AlignedRun:
    """Match a run with its judgements, document by document.

    ``align(qrels, run).arguments()`` are the labels, scores and ids that ``identify``, ``explain_difference`` and
    ``evaluate`` take, from files, dicts or data frames.

    Parameters
    ----------
    qrels, run, queries, exclude, columns
        As for ``evaluate_run``.
    duplicates : {"raise", "keep"}, default "raise"
        A document that the run lists twice in a topic is an error; or it is kept, as rows of one id, for flavors whose
        ``duplicates`` is "first" or "count".

    Returns
    -------
    AlignedRun

    Raises
    ------
    TypeError, ValueError
        As for ``evaluate_run``, except for what concerns the flavor.

    Examples
    --------
    >>> from ndcg_ml import ndcg_score
    >>> data = align({"q1": {"d1": 2, "d3": 1}}, {"q1": ["d1", "d2"]})
    >>> data.y_true, data.retrieved
    (array([ 2.,  1., nan]), array([ True, False,  True]))
    >>> round(ndcg_score(**data.arguments(), flavor="trec_eval"), 6)
    0.760188
    """
    one_of(duplicates, "duplicates", ("raise", "keep"))
    return _aligned(
        qrels,
        run,
        queries,
        columns,
        exclude,
        keep=duplicates == "keep",
        judgements="rows",
        stacklevel=3,
    )


def _aligned(
    qrels: RunLike,
    run: RunLike,
    queries: Which,
    columns: ColumnNames | None,
    exclude: Exclude | None,
    *,
    keep: bool,
    judgements: Literal["rows", "beside", "ignored"],
    stacklevel: int,
) -> AlignedRun:
    """Return the arrays of ``align``.

    `judgements` says what becomes of the order of the qrels: the rows follow it, it is kept separately, or it is lost.
    Unless the rows follow it or repeated documents are kept (`keep`), ``doc_id`` orders only documents that share a
    float32 score.
    """
    # Refuse whatever needs no data first.
    one_of(queries, "queries", get_args(Which))
    names = column_names({} if columns is None else columns)
    if columns is not None and not (is_frame(qrels) or is_frame(run)):
        raise ValueError("columns is for data frames, and neither qrels nor run is one. Leave it out.")
    _check_exclude(exclude)

    # The two sides share their ids, so that topics and documents can be compared as numbers.
    ids = Ids()
    judged, ranked = read_rows("qrels", qrels, ids, names), read_rows("run", run, ids, names)
    topics = ids.topics
    in_qrels, in_run = _topics_of(judged, ranked)
    chosen = {"qrels": in_qrels, "run": in_run, "both": in_qrels & in_run}[queries]

    # Find the judgement of each row of the run. Some rows are left out; warn if that looks like a mistake.
    match, place, repeated = _matched(ids, judged, ranked, keep, judgements == "rows")
    takes_part = chosen[ranked.topic]
    n_excluded = excluded = None
    if exclude is not None:
        left_out, is_excluded, excluded = _excluded(exclude, ids, judged, ranked)
        n_excluded = int((left_out & takes_part).sum())
        takes_part &= ~left_out
        _warn_of_excluded(judged, is_excluded & chosen[judged.topic] & (judged.value > 0), stacklevel + 1)
    _warn_of_no_match(judged, ranked, match, takes_part, int(chosen.sum()), stacklevel + 1)
    _warn_of_ranks(ranked, stacklevel + 1)
    _warn_of_exchange(judged, ranked, stacklevel + 1)

    # The names of documents take most of the memory, so only those of small runs are kept for later questions.
    digests = _digests_of(judged, len(topics), with_order=judgements == "beside")
    documents = ids.documents if len(ids.documents) <= _NAMED_ROWS else None
    if judged.lines is not None and ranked.lines is not None:  # errors name the lines of files
        ids.documents = Names()

    rows = _Rows.from_match(judged, ranked, match, takes_part, chosen, judgements)
    grades = np.full(ranked.topic.size, np.nan)
    grades[match >= 0] = judged.value[match[match >= 0]]
    n_run, n_more = rows.of_run.size, rows.of_qrels.size
    in_run_at, in_qrels_at = ranked.places(), judged.places()

    def place_of(row: int) -> str:
        at = int(rows.order[row])
        return in_run_at(int(rows.of_run[at])) if at < n_run else in_qrels_at(int(rows.of_qrels[at - n_run]))

    def ids_of(flags: NDArray[np.bool_]) -> NDArray[Any]:
        return topics.names(np.flatnonzero(flags))

    row_names = None
    if documents is not None:
        row_names = _RunNames(ids, documents, rows.arranged(_compact(rows.of_run + judged.topic.size), rows.of_qrels))
    return AlignedRun(
        qid=ids_of(chosen),
        group=rows.group,
        y_true=rows.arranged(grades[rows.of_run], judged.value[rows.of_qrels]),
        y_score=rows.arranged(ranked.value[rows.of_run], np.zeros(n_more, dtype=ranked.value.dtype)),
        retrieved=rows.order < n_run,
        doc_id=rows.arranged(place[rows.of_run], np.arange(-n_more, 0)),
        qrels_only=ids_of(in_qrels & ~in_run),
        run_only=ids_of(in_run & ~in_qrels),
        in_run_order=ids_of(rows.in_run_order),
        n_excluded=n_excluded,
        digests=digests[chosen],
        excluded=None if excluded is None else excluded[chosen],
        judgement=rows.judgement,
        place_of=place_of,
        repeated=repeated,
        names=row_names,
    )


def _topics_of(judged: RunRows, ranked: RunRows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say which topics are in the qrels, and which in the run, and refuse sides that share none."""
    topics = judged.ids.topics
    in_qrels, in_run = (np.zeros(len(topics), dtype=bool) for _ in range(2))
    in_qrels[judged.topics], in_run[ranked.topics] = True, True
    if not (in_qrels & in_run).any():
        raise ValueError(
            f"qrels and run must share a topic; {judged.source} has {_first_topics(topics, in_qrels)} and "
            f"{ranked.source} has {_first_topics(topics, in_run)}. Ids are compared exactly: check "
            "prefixes and leading zeros."
        )
    return in_qrels, in_run


def _digests_of(judged: RunRows, n_topics: int, *, with_order: bool) -> NDArray[np.uint64]:
    """Digest the judgements of each topic: documents with grades, and with their places if the order matters."""
    rows = slice(judged.first, judged.first + judged.topic.size)
    digests = judgement_digests(judged.ids.documents, rows, judged.topic, judged.value, n_topics)
    if with_order:
        sizes = np.bincount(judged.topic, minlength=n_topics)
        places = np.empty(judged.topic.size)
        places[np.argsort(judged.topic, kind="stable")] = ranges(np.zeros_like(sizes), sizes)
        digests += judgement_digests(judged.ids.documents, rows, judged.topic, places, n_topics)
    return digests


class _Rows(NamedTuple):
    """The rows of a run, then the judged documents that it lacks, and the order that sorts both by topic."""

    of_run: NDArray[np.signedinteger[Any]]
    of_qrels: NDArray[np.signedinteger[Any]]
    order: NDArray[np.signedinteger[Any]]
    group: IntArray
    in_run_order: NDArray[np.bool_]
    judgement: IntArray | None

    @classmethod
    def from_match(
        cls,
        judged: RunRows,
        ranked: RunRows,
        match: IntArray,
        takes_part: NDArray[np.bool_],
        chosen: NDArray[np.bool_],
        judgements: Literal["rows", "beside", "ignored"],
    ) -> _Rows:
        unretrieved = np.ones(judged.topic.size, dtype=bool)
        unretrieved[match[takes_part & (match >= 0)]] = False
        of_run = _compact(np.flatnonzero(takes_part))
        of_qrels = _compact(np.flatnonzero(unretrieved & chosen[judged.topic]))
        topic = np.concatenate([ranked.topic[of_run], judged.topic[of_qrels]])
        in_run_order = np.zeros(chosen.size, dtype=bool)
        judgement = None if judgements == "ignored" else np.concatenate([match[of_run], of_qrels])
        if judgement is not None and judgements == "rows":
            in_run_order = _topics_with_ties(topic[: of_run.size], ranked.value[of_run], chosen.size)
            place_in_qrels = np.where(judgement < 0, judged.topic.size, judgement)
            place_in_qrels[in_run_order[topic]] = 0
            order, judgement = np.lexsort((place_in_qrels, topic)), None
        else:
            order = np.argsort(topic, kind="stable")
        group = np.bincount(topic, minlength=chosen.size)[chosen]
        judgement = None if judgement is None else judgement[order]
        return cls(of_run, of_qrels, _compact(order), group, in_run_order, judgement)

    def arranged(self, of_run: NDArray[Any], of_qrels: NDArray[Any]) -> NDArray[Any]:
        """Arrange values of the run's rows and of the other judged documents by topic."""
        rows: NDArray[Any] = np.concatenate([of_run, of_qrels])[self.order]
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class _RunNames:
    """The ids of the documents of a run and its qrels, as the caller had them."""

    ids: Ids
    documents: Names
    row_of: NDArray[np.signedinteger[Any]]

    def __call__(self, rows: IntArray) -> list[Any]:
        """Return the ids of these rows."""
        return [self.ids.kind.decode(self.documents[row]) for row in self.row_of[rows].tolist()]


def _topics_with_ties(topic: IntArray, score: FloatArray, n_topics: int) -> NDArray[np.bool_]:
    """Which topics have documents that share a score in float32."""
    with np.errstate(over="ignore", under="ignore"):
        coarse = score.astype(np.float32)  # scores tied in float64 are tied in float32 too
    order = np.lexsort((coarse, topic))
    tied = (topic[order[1:]] == topic[order[:-1]]) & (coarse[order[1:]] == coarse[order[:-1]])
    flags = np.zeros(n_topics, dtype=bool)
    flags[topic[order[1:]][tied]] = True
    return flags


def _check_exclude(exclude: Any) -> None:
    if exclude is None or isinstance(exclude, Mapping) or (isinstance(exclude, str) and exclude == "identical"):
        return
    got = brief(exclude) if isinstance(exclude, str) else type(exclude).__name__
    raise (ValueError if isinstance(exclude, str) else TypeError)(
        f"exclude must be 'identical' or {{topic: [document, ...]}}; got {got}."
    )


def _excluded(
    exclude: Exclude, ids: Ids, judged: RunRows, ranked: RunRows
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.uint64]]:
    """Which rows of the run, and which of the qrels, hold a document that is excluded; and a digest of each topic's."""
    n_judged, n_ranked = judged.topic.size, ranked.topic.size
    topic, documents = ids.read_exclude(exclude)
    ids.documents.extend(documents)
    before = earlier(np.concatenate([judged.topic, ranked.topic, topic]), ids.documents)
    # Every earlier row with the document, one step at a time: a run may list it twice.
    flags = np.zeros(n_judged + n_ranked, dtype=bool)
    at = before[n_judged + n_ranked :]
    listed = slice(flags.size, len(ids.documents))
    digests = judgement_digests(ids.documents, listed, topic, np.ones(topic.size), len(ids.topics))
    while (at := at[at >= 0]).size:
        flags[at[at < flags.size]] = True
        at = before[at]
    return flags[n_judged:], flags[:n_judged], digests


def _warn_of_excluded(judged: RunRows, relevant: NDArray[np.bool_], stacklevel: int) -> None:
    rows = np.flatnonzero(relevant)
    if rows.size:
        warnings.warn(
            f"exclude leaves out {rows.size} documents that are judged relevant, the first in "
            f"{judged.place_of(int(rows[0]))}. They stay in the ideal, so that no run can reach 1 there. If they "
            "should not count, take them out of the qrels.",
            UserWarning,
            stacklevel,
        )


def _warn_of_ranks(ranked: RunRows, stacklevel: int) -> None:
    """Say so where scores count up from the first document of every topic: ranks do, and the best would be the last."""
    if not ranked.value.size or ranked.value[0] not in (0.0, 1.0):  # any other run ends here
        return
    order = np.argsort(ranked.topic, kind="stable")
    topic, score = ranked.topic[order], ranked.value[order]
    follows = topic[1:] == topic[:-1]
    starts = score[np.append(True, ~follows)]
    with np.errstate(invalid="ignore", over="ignore"):
        counts_up = (np.diff(score)[follows] == 1).all() and (starts == starts[0]).all()
    if counts_up and follows.sum() >= _ENOUGH_STEPS:
        warnings.warn(
            f"the scores of {ranked.source} count up {starts[0]:g}, {starts[0] + 1:g}, ... in every topic, as ranks "
            "do, and the highest score is taken as the best. If rank and score are exchanged, exchange them, or negate "
            "the ranks.",
            UserWarning,
            stacklevel,
        )


def _warn_of_exchange(judged: RunRows, ranked: RunRows, stacklevel: int) -> None:
    """Fractions as grades and whole numbers as scores are a run and judgements in each other's place.

    The columns of files say what they are.
    """
    if judged.lines is not None or not (judged.value.size and ranked.value.size):
        return
    if (judged.value == np.floor(judged.value)).mean() > 0.5:
        return
    if ranked.value.min() >= 0 and 0 < ranked.value.max() < np.inf and (ranked.value == np.floor(ranked.value)).all():
        warnings.warn(
            "the grades of qrels are fractions and the scores of run are whole numbers, as if the two were exchanged: "
            "the order is evaluate_run(qrels, run).",
            UserWarning,
            stacklevel=stacklevel,
        )


def _warn_of_no_match(
    judged: RunRows, ranked: RunRows, match: IntArray, takes_part: NDArray[np.bool_], n_topics: int, stacklevel: int
) -> None:
    """Say so if no topic can gain anything, and show ids of both sides, if there are any."""
    if ((match >= 0) & takes_part).any() or not takes_part.any():  # empty answers have a warning of their own
        return
    why = "no document is judged"
    if match.size and judged.topic.size:
        why = (
            f"ids are compared exactly: those of {judged.source} look like {judged.name(0)}, those of {ranked.source} "
            f"like {ranked.name(0)}"
        )
    warnings.warn(
        f"the run retrieves no judged document in any of the {n_topics} topics, so none gains anything. "
        f"{why[0].upper()}{why[1:]}.",
        UserWarning,
        stacklevel,
    )


def _compact(rows: NDArray[np.int64]) -> NDArray[np.signedinteger[Any]]:
    """Row numbers in half the memory, if that holds them."""
    return rows.astype(np.int32) if rows.size < 2**31 else rows


# All places from here on have the same number of digits, so they sort alike as numbers and as text.
_FIRST_PLACE = 10**9


def _matched(
    ids: Ids, judged: RunRows, ranked: RunRows, keep: bool, for_align: bool
) -> tuple[IntArray, IntArray, bool]:
    """For each row of the run: the row of the qrels that judges it or -1, and its place in byte order in its topic.

    And whether the run lists a document twice in a topic, which is an error unless these are to be kept.
    """
    names, n_judged = ids.documents, judged.topic.size
    before = earlier(np.concatenate([judged.topic, ranked.topic]), names)
    keep_them = "pass duplicates='keep'" if for_align else "choose a flavor with duplicates='first' or 'count'"
    for rows, way_out in ((judged, ""), (ranked, f"or {keep_them}")):
        again = np.flatnonzero(before[rows.first : rows.first + rows.topic.size] >= rows.first)
        if again.size and not (keep and rows is ranked):
            raise _repeated_document(rows, int(before[rows.first + again[0]]) - rows.first, int(again[0]), way_out)
    match = before[n_judged:]
    place = np.full(ranked.topic.size, _FIRST_PLACE, dtype=np.int64)
    some = np.arange(place.size) if keep or for_align else _perhaps_tied(ranked)
    in_order = names.order_by_bytes(ranked.topic[some], n_judged + some) - n_judged
    begins = starts_of(np.bincount(ranked.topic[in_order]))
    place[in_order] += np.arange(in_order.size) - begins[ranked.topic[in_order]]
    for row in again.tolist():  # the order of the run settles the earlier row of a document first
        first = int(match[row]) - n_judged
        match[row], place[row] = match[first], place[first]
    return match, place, bool(again.size)


def _perhaps_tied(ranked: RunRows) -> IntArray:
    """Rows of the run whose score another one of the topic may have, in float32: all rows, if they are not in order."""
    with np.errstate(over="ignore"):
        score = ranked.value.astype(np.float32)
    follows = ranked.topic[1:] == ranked.topic[:-1]
    if follows.size - follows.sum() + 1 > ranked.topics.size or (follows & (score[1:] > score[:-1])).any():
        return np.arange(score.size)
    ties = follows & (score[1:] == score[:-1])
    return np.flatnonzero(np.append(ties, False) | np.append(False, ties))


def _repeated_document(rows: RunRows, first: int, again: int, way_out: str) -> ValueError:
    places = dict.fromkeys((rows.place_of(first), rows.place_of(again)))
    return ValueError(
        f"a document must not appear twice in a topic; {rows.name(again)} does in {' and '.join(places)}. Remove the "
        f"duplicates{', ' * bool(way_out)}{way_out}."
    )


def _first_topics(topics: Topics, flags: NDArray[np.bool_]) -> str:
    numbers = np.flatnonzero(flags)
    some = ", ".join(map(brief, topics.names(numbers[:3]).tolist()))
    return some + (f", ... ({numbers.size} topics)" if numbers.size > 3 else "")


# -- under a flavor -------------------------------------------------------------------------------------------------


def _check_labels(aligned: AlignedRun, flavor: Flavor) -> None:
    """Refuse what the flavor refuses, in the caller's terms."""
    unjudged, negative = np.isnan(aligned.y_true), aligned.y_true < 0
    for switch, rule, bad, what, others in (
        ("unjudged", flavor.unjudged, unjudged, "a document without a judgement", "'zero' or 'condense'"),
        ("negative", flavor.negative, negative, "a negative grade", "'zero', 'drop' or 'allow'"),
    ):
        if rule == "raise" and bad.any():
            raise ValueError(
                f"{what} is refused under {switch}='raise'; got {int(bad.sum())}, the first in "
                f"{aligned.place_of(int(np.flatnonzero(bad)[0]))}. Choose a flavor with {switch}={others}."
            )


def check_missing(evaluation: Evaluation[Any], flavor: Flavor) -> None:
    """Refuse a topic with relevant documents that would score 1, or be left out, because nothing is ranked in it.

    An ideal of the retrieved documents is 0 there, so that the flavor's rule for empty queries would apply.
    """
    if flavor.empty not in (1.0, "skip"):
        return
    table = evaluation.per_query
    empty = table.empty if table.empty.ndim == 1 else table.empty.any(axis=1)
    lost = np.flatnonzero((table.n_docs == 0) & (table.n_relevant > 0) & empty)
    if lost.size:
        rule = "score 1" if flavor.empty == 1.0 else "be left out of the mean"
        raise ValueError(
            f"every topic with relevant documents must rank some document under ideal={flavor.ideal!r} with "
            f"empty={flavor.empty if isinstance(flavor.empty, str) else int(flavor.empty)!r}; got {lost.size} that "
            f"would {rule}, the first {brief(table.qid[lost].tolist()[0])}. Choose ideal='global' or "
            "empty=0, or queries='both' if topics that the run lacks should not count."
        )


def _judged(aligned: AlignedRun, flavor: Flavor, ks: tuple[int | None, ...]) -> FloatArray:
    """judged@k of each topic at each cut-off: the expected number of judged documents is a DCG without discount."""
    counting = Flavor(
        duplicates="count",
        gain="linear",
        discount="none",
        ideal="recall",
        ties=flavor.ties if flavor.ties in ("first", "last", *TIES_BY_ID) else "average",
        score_dtype=flavor.score_dtype,
    )
    queries = aligned.queries()
    flags = (~np.isnan(aligned.y_true)).astype(np.float64)
    n_judged = Prepared(counting, ks, replace(queries, labels=flags)).totals(aligned.y_score).dcg
    n_retrieved = queries.groups.per_query(np.add, aligned.retrieved.astype(np.float64), 0.0)
    depths = np.stack([n_retrieved if k is None else np.minimum(n_retrieved, k) for k in ks], axis=1)
    fractions: FloatArray = np.divide(n_judged, depths, out=np.full(n_judged.shape, np.nan), where=depths > 0)
    return fractions
