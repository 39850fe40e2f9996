"""Match and evaluate TREC data: judgements (qrels) and a ranking (run) from dicts, files or data frames."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._core.checks import TIES_BY_ID, ByK, KSpec, OneK, cutoffs, one_of, warn_of_swap
from ndcg_ml._core.frames import ColumnNames, column_names, is_frame, library_of
from ndcg_ml._core.groups import FloatArray, IntArray, as_objects, ranges, starts_of
from ndcg_ml._core.json_values import plain_ids
from ndcg_ml._core.one_line import brief
from ndcg_ml._core.queries import DocumentNames, Queries, are_fractions, are_grades, find_repeats, group_by_sizes
from ndcg_ml._core.result import Evaluation, PerQuery, V, at_cutoff
from ndcg_ml._core.scores import Prepared
from ndcg_ml._core.slice_names import column_by_id, slice_names_by_id
from ndcg_ml._files.byte_ids import Names, earlier
from ndcg_ml._files.byte_ids import digests as judgement_digests
from ndcg_ml._files.run_rows import Ids, RunLike, RunRows, Topics, read_rows
from ndcg_ml.flavor import Flavor, as_flavor

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


# Document ids are kept for at most this number of rows. Each takes 16 bytes or more.
_NAMED_ROWS = 1 << 22

Which: TypeAlias = Literal["qrels", "run", "both"]
"""Topics to evaluate: those of the qrels, of the run, or in both."""

Exclude: TypeAlias = "Literal['identical'] | Mapping[Any, Iterable[Any]]"
"""Documents to remove from a run: those with the id of their topic, or those listed by topic."""

# Smallest number of steps of 1 between scores that is taken as a sign of ranks.
_MIN_STEPS = 4


# -- the result -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class RunPerQuery(PerQuery):
    """The table of topics: ``PerQuery`` with two more columns.

    Attributes
    ----------
    n_retrieved : ndarray of int
        Number of documents that the run retrieves, without those in `exclude`. (The column ``n_docs`` counts ranked
        documents, which are fewer under ``unjudged="condense"``.)
    judged : ndarray of float64
        Fraction of the first k retrieved documents (or of all, if there are fewer) that are judged; nan if none is
        retrieved; one column per cut-off if there are several.
    """

    n_retrieved: IntArray
    judged: FloatArray


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RunEvaluation(Evaluation[V]):
    """NDCG of a run: an ``Evaluation`` with the topics that the run lacks and the fraction of judged documents.

    Attributes
    ----------
    value, flavor, k, n_queries, n_empty
        As in ``Evaluation``.
    per_query : RunPerQuery
        The table of topics, in order of first appearance in the qrels, then in the run. ``qid`` holds the
        topic ids as you passed them, strings or integers; strings if they come from files.
    judged : float, or dict of float by cut-off
        Mean of judged@k over the topics with a retrieved document, whatever the flavor.
    queries : str
        Which topics were evaluated: those of the "qrels", of the "run" or in "both".
    qrels_only, run_only : ndarray
        The ids of the topics that only the qrels, and only the run, have.
    n_unanswered : int
        Number of evaluated topics for which nothing is retrieved: the run answers with an empty list, lacks the topic,
        or retrieves only excluded documents. Their ``per_query.n_retrieved`` is 0.
    n_excluded : int or None
        Number of documents of the run that `exclude` removed; None without `exclude`, and in a slice.
    """

    per_query: RunPerQuery
    judged: float | dict[int | None, float]
    queries: Which
    qrels_only: NDArray[Any]
    run_only: NDArray[Any]
    n_unanswered: int
    n_excluded: int | None = None
    _judgements: NDArray[np.uint64] | None = field(default=None, repr=False)
    """A digest of each topic's judgements; None in a slice."""
    _excluded: NDArray[np.uint64] | None = field(default=None, repr=False)
    """A digest of each topic's excluded documents; None without `exclude`, and in a slice."""

    def _unanswered(self) -> NDArray[np.bool_]:
        return self.per_query.n_retrieved == 0

    def _at(self, rows: NDArray[np.intp]) -> RunEvaluation[V]:
        part = Evaluation._at(self, rows)
        ids = set(part.per_query.qid.tolist())
        one_sided = (topics[[topic in ids for topic in topics.tolist()]] for topics in (self.qrels_only, self.run_only))
        return as_run_evaluation(part, part.per_query.n_retrieved, part.per_query.judged, self.queries, *one_sided)

    def _extra_columns(self) -> dict[str, dict[int | None, float]]:
        return {"judged": self._judged_at()}

    def _notes(self) -> list[str]:
        counts, flavor = Evaluation._notes(self)
        topics = "; ".join(
            f"{len(ids)} of the {one} are not in the {other}{f', {treatment}' * bool(len(ids))}"
            for one, other, ids, treatment in self.one_sided()
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
        """Return numbers and strings for JSON, as in ``Evaluation``, with the topics on one side only.

        Parameters
        ----------
        per_query : bool, default False
            Whether to include the table of topics.

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
        """Return the topics that only the qrels or only the run have: this side, the other side, ids and treatment.

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
    """Compute the NDCG of a run against relevance judgements (qrels), by default as trec_eval does.

    Parameters
    ----------
    qrels : mapping, path or data frame
        ``{topic: {document: grade}}``; ``{topic: [document, ...]}``, a list or set of relevant documents of grade 1;
        the path of a file: TREC qrels (topic, iteration, document, grade), JSONL, JSON of such a dict, BEIR's TSV, CSV
        or Parquet (docs/runs.md); or a pandas, polars or pyarrow frame with columns ``qid``, ``docno``, ``label``.
    run : mapping, path or data frame
        ``{topic: {document: score}}``, higher is better; ``{topic: [document, ...]}``, best first; the path of a
        file: a TREC run (topic, Q0, document, rank, score, tag), whose ranks and tag are ignored, or another format;
        or a frame with columns ``qid``, ``docno``, ``score``. Text files may be compressed by gzip.
    flavor : Flavor or str, default "trec_eval"
        As for ``ndcg_score``. Its ``unjudged`` decides what happens to a retrieved document without a judgement: it
        has gain 0 ("zero"), is removed before ranking ("condense") or is an error ("raise"). Its ``ties`` orders equal
        scores. Its ``duplicates`` decides how to count a document that the run lists twice in a topic.
    k : int, None or sequence of them, optional
        As for ``ndcg_score``. Default: the flavor's cut-off; "trec_eval" has none.
    queries : {"qrels", "run", "both"}, default "qrels"
        Topics to average: all of the qrels (one that the run lacks counts as retrieving nothing), all of the run, or
        those in both.
    by : mapping, pandas object or array-like, optional
        Labels of the topics, such as ``{"language": {"q1": "de", "q2": "fr"}}``; or, by column, a Series indexed by
        topic id, or labels in the order of ``per_query.qid``. Every evaluated topic needs a label. A mapping from
        topics to labels is one column, "slice".
    cluster : mapping, pandas object or array-like, optional
        Groups of related topics (user, session, template): one label per topic, in any form of a column in `by`.
        ``.interval()``, ``.standard_error``, the intervals of slices and ``compare`` then use clusters, not topics, as
        the sampling units.
    exclude : "identical" or mapping of documents by topic id, optional
        Documents to remove from the run before it is ranked: those whose id equals that of their topic, as with BEIR's
        ``ignore_identical_ids``; or those listed for each topic, such as items that a user has already seen. The
        judgements are not changed. Default: none.
    columns : mapping, optional
        Names of the columns of data frames, such as ``{"qid": "user_id", "docno": "item_id"}``; the keys are
        ``qid``, ``docno``, ``label`` and ``score``. Default: these names.

    Returns
    -------
    RunEvaluation
        ``.value``, ``.per_query``, ``.to_frame()`` and ``str()`` as in an ``Evaluation``; also ``.judged``,
        ``.qrels_only``, ``.run_only``, ``.n_unanswered``; with `by`, ``.slices``. ``.to_frame()`` uses the library of
        the run's frame, otherwise that of the qrels. All judged documents enter a ``global`` ideal, retrieved or not; a
        ``given`` ideal has them in the order of the qrels. A topic of the qrels without documents (``{"q1": {}}``) is
        empty, and the flavor's ``empty`` applies.

    Raises
    ------
    DataFileError
        A file has a malformed line. It is a ValueError that names the file and the line.
    TypeError
        An argument has the wrong type, such as a LazyFrame, which must be collected first; or ids are not all
        strings or all integers.
    ValueError
        A missing id or column; a repeated document in a topic of the qrels, or of the run under ``duplicates="raise"``;
        NaN scores or grades; no topic in both; a run without a document in any evaluated topic; a
        retrieved document without a judgement under ``unjudged="raise"``; a topic with relevant documents in which
        nothing is retrieved, if the flavor would score it 1 or skip it; a topic without a label in `by` or `cluster`;
        or as for ``ndcg_score``.

    Warns
    -----
    UserWarning
        No retrieved document is judged, which may mean that the ids of the run and the qrels differ. The run answers a
        topic that has relevant documents with an empty list. An excluded document is judged relevant; it remains in
        the ideal, as in BEIR. The scores count up 1, 2, 3, ... in every topic, like ranks. Most grades are fractions
        and all scores are integers up to 100, as if `qrels` and `run` were swapped.

    See Also
    --------
    align : the same data as arrays, for ``evaluate``, ``explain_difference`` and ``identify``.

    Notes
    -----
    The default counts every judged topic, as ``trec_eval -c``, ir_measures and the published results of the TREC Deep
    Learning tracks do, so a run cannot gain by omitting a topic. ``queries="both"`` corresponds to trec_eval without
    ``-c`` and to pytrec_eval. Values equal those of trec_eval 9.0.8 to the 4 digits that it prints, and those of
    pytrec_eval-terrier 0.5.11 to 1e-12. trec_eval's option ``-l`` (the lowest relevant grade) does not affect NDCG.

    Ids are matched exactly: 7, "7" and "07" are three ids. Under ``ties="docid"`` equal scores are ordered by
    descending id, as bytes in UTF-8; integers by their decimal digits, so that a dict and the file written from it give
    the same value. Under ``ties="first"`` they keep the order of the run.

    judged@k counts documents with any grade, even a negative one, in the order of the flavor's scores and ties. If the
    order of equal scores is averaged or depends on gains (``ties`` "average", "best", "worst"), it is the mean over
    all orders.

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
        judgements="separate" if flavor.ideal == "given" else "ignored",
        stacklevel=3,
    )
    _check_labels(aligned, flavor)
    names = None if by is None else slice_names_by_id(by, aligned.qid)
    clusters = None if cluster is None else as_objects(column_by_id(cluster, "cluster", aligned.qid))
    evaluation: Evaluation[Any] = Prepared(flavor, k, aligned.queries()).evaluate(aligned.y_score)
    check_missing(evaluation, flavor)
    judged = _judged(aligned, flavor, ks)
    result = replace(
        as_run_evaluation(evaluation, aligned.n_retrieved(), judged, queries, aligned.qrels_only, aligned.run_only),
        frame_library=library_of(run) or library_of(qrels) or "pandas",
        n_excluded=aligned.n_excluded,
        cluster=clusters,
        _slice_names=names,
        _judgements=aligned.digests,
        _excluded=aligned.excluded,
    )
    warn_of_empty_answers(result, stacklevel=3)
    return result


def as_run_evaluation(
    evaluation: Evaluation[Any],
    n_retrieved: IntArray,
    judged: FloatArray,
    queries: Which,
    qrels_only: NDArray[Any],
    run_only: NDArray[Any],
) -> RunEvaluation[Any]:
    """Add the attributes of a run to an evaluation of all topics, or of a slice."""
    several = isinstance(evaluation.k, tuple)
    judged = judged.reshape(len(n_retrieved), -1)
    some = n_retrieved > 0  # topics without documents are not in the mean
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


def warn_of_empty_answers(result: RunEvaluation[Any], stacklevel: int) -> None:
    """Warn of topics with relevant documents that the run answers with an empty list."""
    lacking = set(result.qrels_only.tolist())
    table = result.per_query
    topics = table.qid[(table.n_retrieved == 0) & (table.n_relevant > 0)].tolist()
    empty = [topic for topic in topics if topic not in lacking]
    if empty:
        warnings.warn(
            f"the run answers {len(empty)} of {result.n_queries} topics with an empty list, the first "
            f"{brief(empty[0])}; each counts as retrieving nothing, with a per_query.n_retrieved of 0. If they should "
            "not count, remove them from the run and choose queries='both'.",
            UserWarning,
            stacklevel,
        )


# -- qrels and run as arrays ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class AlignedRun:
    """Qrels and a run as arrays, with one row per document that is retrieved or judged. Created by ``align``.

    The judged documents of a topic are in the order of the qrels, which ``ideal="given"`` follows. A topic with
    tied documents is in the order of the run, which ``ties="first"`` and ``"last"`` follow, and is listed in
    `in_run_order`.

    Attributes
    ----------
    qid : ndarray
        The topics, in order of first appearance in the qrels, then in the run.
    group : ndarray of int
        Number of consecutive rows of each topic.
    y_true : ndarray of float64
        Grades; NaN for unjudged documents.
    y_score : ndarray of float64
        Scores of the retrieved documents; 0 for the others. A ranked list has the scores 0, -1, -2, ...
    retrieved : ndarray of bool
    doc_id : ndarray of int
        For a retrieved document, the position of its id in its topic in byte order, counted from 10^9 so that all
        have the same number of digits (integer ids are compared as text). Negative for the others.
    qrels_only, run_only : ndarray
        The topics that only the qrels, and only the run, have.
    in_run_order : ndarray
        The topics with tied documents (in float32). With these arrays, their ``given`` ideal may differ from that of
        ``evaluate_run``.
    n_excluded : int or None
        Number of documents of the run that `exclude` removed; None without `exclude`.
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
    """A digest of each topic's judgements. It depends on their order only if `judgement` keeps this order."""
    excluded: NDArray[np.uint64] | None
    """A digest of each topic's excluded documents; None without `exclude`."""
    judgement: IntArray | None
    """The position of each judged row in the qrels; None if the rows are in that order."""
    place_of: Callable[[int], str]
    """Describe a row for an error message."""
    repeated: bool
    """Whether the run lists a document twice."""
    names: DocumentNames | None = None
    """The ids of the documents; None if there are too many to keep."""

    def queries(self) -> Queries:
        """Return the data without the scores, as input of ``Prepared``."""
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
        """Return the number of documents retrieved in each topic. Repeated documents count each time."""
        topic = np.repeat(np.arange(self.group.size), self.group)
        return np.bincount(topic[self.retrieved], minlength=self.group.size)

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments for ``evaluate``, ``explain_difference``, ``identify`` and similar functions.

        Topics are passed as `qid`, one per row, or as `group` if a topic has no rows.
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

    ``align(qrels, run).arguments()`` returns labels, scores and ids as arguments of ``identify``,
    ``explain_difference`` and ``evaluate``, from files, dicts or data frames.

    Parameters
    ----------
    qrels, run, queries, exclude, columns
        As for ``evaluate_run``.
    duplicates : {"raise", "keep"}, default "raise"
        If the run lists a document twice in a topic: raise an error, or keep both rows with the same id, for flavors
        whose ``duplicates`` is "first" or "count".

    Returns
    -------
    AlignedRun

    Raises
    ------
    TypeError, ValueError
        As for ``evaluate_run``, except for errors that depend on the flavor.

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
    judgements: Literal["rows", "separate", "ignored"],
    stacklevel: int,
) -> AlignedRun:
    """Return the arrays of ``align``.

    `judgements` says how the order of the qrels is kept: by the rows, in a separate array, or not at all. Unless the
    rows keep it or repeated documents are kept (`keep`), ``doc_id`` orders only documents that share a float32 score.
    """
    # Check the arguments before reading data.
    one_of(queries, "queries", get_args(Which))
    names = column_names({} if columns is None else columns)
    if columns is not None and not (is_frame(qrels) or is_frame(run)):
        raise ValueError("columns must be None unless qrels or run is a data frame; got column names. Leave it out.")
    _check_exclude(exclude)

    # Both sides share the same ids, so that topics and documents can be compared as numbers.
    ids = Ids()
    judged, ranked = read_rows("qrels", qrels, ids, names), read_rows("run", run, ids, names)
    topics = ids.topics
    in_qrels, in_run = _find_topics(judged, ranked)
    chosen = {"qrels": in_qrels, "run": in_run, "both": in_qrels & in_run}[queries]

    # Find the judgement of each row of the run, drop excluded rows, and warn of likely mistakes.
    match, place, repeated = _match(ids, judged, ranked, keep, judgements == "rows")
    included = chosen[ranked.topic]
    n_excluded = excluded = None
    if exclude is not None:
        left_out, is_excluded, excluded = _find_excluded(exclude, ids, judged, ranked)
        n_excluded = int((left_out & included).sum())
        included &= ~left_out
        _warn_of_excluded(judged, is_excluded & chosen[judged.topic] & (judged.value > 0), stacklevel + 1)
    if not included.any():
        raise ValueError(
            f"{ranked.source} must hold a document in at least one evaluated topic; got none. Check why the system "
            "returned nothing."
        )
    _warn_of_no_match(judged, ranked, match, included, int(chosen.sum()), stacklevel + 1)
    _warn_of_ranks(ranked, stacklevel + 1)
    # The formats of files differ, so that they cannot be swapped.
    if judged.lines is None and are_fractions(judged.value) and are_grades(ranked.value):
        warn_of_swap("qrels", "run")

    # Document ids take most of the memory, so they are kept only for small runs.
    digests = _digest_judgements(judged, len(topics), with_order=judgements == "separate")
    documents = ids.documents if len(ids.documents) <= _NAMED_ROWS else None
    if judged.lines is not None and ranked.lines is not None:  # errors name lines of files, not ids
        ids.documents = Names()

    rows = _Rows.from_match(judged, ranked, match, included, chosen, judgements)
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
        row_names = _DocumentIds(
            ids, documents, rows.arranged(_compact(rows.of_run + judged.topic.size), rows.of_qrels)
        )
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


def _find_topics(judged: RunRows, ranked: RunRows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which topics are in the qrels, and which are in the run. Raise if no topic is in both."""
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


def _digest_judgements(judged: RunRows, n_topics: int, *, with_order: bool) -> NDArray[np.uint64]:
    """Digest each topic's judgements: documents with grades and, with `with_order`, their positions."""
    rows = slice(judged.first, judged.first + judged.topic.size)
    digests = judgement_digests(judged.ids.documents, rows, judged.topic, judged.value, n_topics)
    if with_order:
        sizes = np.bincount(judged.topic, minlength=n_topics)
        places = np.empty(judged.topic.size)
        places[np.argsort(judged.topic, kind="stable")] = ranges(np.zeros_like(sizes), sizes)
        digests += judgement_digests(judged.ids.documents, rows, judged.topic, places, n_topics)
    return digests


class _Rows(NamedTuple):
    """The rows of a run, the judged documents that it lacks, and the order that sorts both by topic."""

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
        included: NDArray[np.bool_],
        chosen: NDArray[np.bool_],
        judgements: Literal["rows", "separate", "ignored"],
    ) -> _Rows:
        unretrieved = np.ones(judged.topic.size, dtype=bool)
        unretrieved[match[included & (match >= 0)]] = False
        of_run = _compact(np.flatnonzero(included))
        of_qrels = _compact(np.flatnonzero(unretrieved & chosen[judged.topic]))
        topic = np.concatenate([ranked.topic[of_run], judged.topic[of_qrels]])
        in_run_order = np.zeros(chosen.size, dtype=bool)
        judgement = None if judgements == "ignored" else np.concatenate([match[of_run], of_qrels])
        if judgement is not None and judgements == "rows":
            in_run_order = _find_topics_with_ties(topic[: of_run.size], ranked.value[of_run], chosen.size)
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
        return np.concatenate([of_run, of_qrels])[self.order]


@dataclass(frozen=True, slots=True, eq=False)
class _DocumentIds:
    """The ids of the documents of a run and its qrels, as the caller passed them."""

    ids: Ids
    documents: Names
    row_of: NDArray[np.signedinteger[Any]]

    def __call__(self, rows: IntArray) -> list[Any]:
        """Return the ids of these rows."""
        return [self.ids.kind.decode(self.documents[row]) for row in self.row_of[rows].tolist()]


def _find_topics_with_ties(topic: IntArray, score: FloatArray, n_topics: int) -> NDArray[np.bool_]:
    """Return which topics have documents that share a score in float32."""
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


def _find_excluded(
    exclude: Exclude, ids: Ids, judged: RunRows, ranked: RunRows
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.uint64]]:
    """Return which rows of the run and of the qrels hold excluded documents, and a digest of these by topic."""
    n_judged, n_ranked = judged.topic.size, ranked.topic.size
    topic, documents = ids.read_exclude(exclude)
    ids.documents.extend(documents)
    before = earlier(np.concatenate([judged.topic, ranked.topic, topic]), ids.documents)
    # Flag all earlier rows with the same document, one step at a time: a run may list it twice.
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
            f"{judged.place_of(int(rows[0]))}. They remain in the ideal, so no run can score 1 there. If they "
            "should not count, remove them from the qrels.",
            UserWarning,
            stacklevel,
        )


def _warn_of_ranks(ranked: RunRows, stacklevel: int) -> None:
    """Warn if the scores look like ranks, counting up from the first document of every topic."""
    if not ranked.value.size or ranked.value[0] not in (0.0, 1.0):  # not ranks
        return
    order = np.argsort(ranked.topic, kind="stable")
    topic, score = ranked.topic[order], ranked.value[order]
    follows = topic[1:] == topic[:-1]
    starts = score[np.append(True, ~follows)]
    with np.errstate(invalid="ignore", over="ignore"):
        counts_up = (np.diff(score)[follows] == 1).all() and (starts == starts[0]).all()
    if counts_up and follows.sum() >= _MIN_STEPS:
        warnings.warn(
            f"the scores of {ranked.source} count up {starts[0]:g}, {starts[0] + 1:g}, ... in every topic, like "
            "ranks, but the document with the highest score is ranked first. If these are ranks, pass the scores, or "
            "negate the ranks.",
            UserWarning,
            stacklevel,
        )


def _warn_of_no_match(
    judged: RunRows, ranked: RunRows, match: IntArray, included: NDArray[np.bool_], n_topics: int, stacklevel: int
) -> None:
    """Warn if no retrieved document is judged, and show an id of each side, if there is one."""
    if ((match >= 0) & included).any():
        return
    why = "no document is judged"
    if match.size and judged.topic.size:
        why = (
            f"ids are compared exactly: those of {judged.source} look like {judged.name(0)}, those of {ranked.source} "
            f"like {ranked.name(0)}"
        )
    warnings.warn(
        f"the run retrieves no judged document in any of the {n_topics} topics, so no topic has a gain. "
        f"{why[0].upper()}{why[1:]}.",
        UserWarning,
        stacklevel,
    )


def _compact(rows: NDArray[np.int64]) -> NDArray[np.signedinteger[Any]]:
    """Convert row numbers to int32 if they fit."""
    return rows.astype(np.int32) if rows.size < 2**31 else rows


# From here on, all numbers have the same number of digits, so they sort as text as they do as numbers.
_FIRST_PLACE = 10**9


def _match(ids: Ids, judged: RunRows, ranked: RunRows, keep: bool, for_align: bool) -> tuple[IntArray, IntArray, bool]:
    """For each row of the run, return its row in the qrels or -1, and its position in byte order in its topic.

    Also return whether the run lists a document twice in a topic, which raises unless `keep` is set.
    """
    names, n_judged = ids.documents, judged.topic.size
    before = earlier(np.concatenate([judged.topic, ranked.topic]), names)
    keep_them = "pass duplicates='keep'" if for_align else "choose a flavor with duplicates='first' or 'count'"
    for rows, alternative in ((judged, ""), (ranked, f"or {keep_them}")):
        again = np.flatnonzero(before[rows.first : rows.first + rows.topic.size] >= rows.first)
        if again.size and not (keep and rows is ranked):
            raise _repeated_document(rows, int(before[rows.first + again[0]]) - rows.first, int(again[0]), alternative)
    match = before[n_judged:]
    place = np.full(ranked.topic.size, _FIRST_PLACE, dtype=np.int64)
    some = np.arange(place.size) if keep or for_align else _find_possible_ties(ranked)
    in_order = names.order_by_bytes(ranked.topic[some], n_judged + some) - n_judged
    begins = starts_of(np.bincount(ranked.topic[in_order]))
    place[in_order] += np.arange(in_order.size) - begins[ranked.topic[in_order]]
    for row in again.tolist():  # in the order of the run, so the earlier row is final
        first = int(match[row]) - n_judged
        match[row], place[row] = match[first], place[first]
    return match, place, bool(again.size)


def _find_possible_ties(ranked: RunRows) -> IntArray:
    """Return rows of the run that may share a float32 score in their topic: all rows, if they are not sorted."""
    with np.errstate(over="ignore"):
        score = ranked.value.astype(np.float32)
    follows = ranked.topic[1:] == ranked.topic[:-1]
    if follows.size - follows.sum() + 1 > ranked.topics.size or (follows & (score[1:] > score[:-1])).any():
        return np.arange(score.size)
    ties = follows & (score[1:] == score[:-1])
    return np.flatnonzero(np.append(ties, False) | np.append(False, ties))


def _repeated_document(rows: RunRows, first: int, again: int, alternative: str) -> ValueError:
    places = dict.fromkeys((rows.place_of(first), rows.place_of(again)))
    return ValueError(
        f"a document must not appear twice in a topic; {rows.name(again)} does in {' and '.join(places)}. Remove the "
        f"duplicates{', ' * bool(alternative)}{alternative}."
    )


def _first_topics(topics: Topics, flags: NDArray[np.bool_]) -> str:
    numbers = np.flatnonzero(flags)
    some = ", ".join(map(brief, topics.names(numbers[:3]).tolist()))
    return some + (f", ... ({numbers.size} topics)" if numbers.size > 3 else "")


# -- under a flavor -------------------------------------------------------------------------------------------------


def _check_labels(aligned: AlignedRun, flavor: Flavor) -> None:
    """Raise if the flavor does not allow the labels, and name the first document."""
    unjudged, negative = np.isnan(aligned.y_true), aligned.y_true < 0
    for switch, rule, bad, what, others in (
        ("unjudged", flavor.unjudged, unjudged, "a document without a judgement", "'zero' or 'condense'"),
        ("negative", flavor.negative, negative, "a negative grade", "'zero', 'drop' or 'allow'"),
    ):
        if rule == "raise" and bad.any():
            raise ValueError(
                f"{what} is an error under {switch}='raise'; got {int(bad.sum())}, the first in "
                f"{aligned.place_of(int(np.flatnonzero(bad)[0]))}. Choose a flavor with {switch}={others}."
            )


def check_missing(evaluation: Evaluation[Any], flavor: Flavor) -> None:
    """Raise if a topic with relevant documents would score 1 or be skipped because nothing is ranked in it.

    An ideal of retrieved documents is 0 there, so the flavor's rule for empty queries would apply.
    """
    if flavor.empty not in (1.0, "skip"):
        return
    table = evaluation.per_query
    empty = table.empty if table.empty.ndim == 1 else table.empty.any(axis=1)
    lost = np.flatnonzero((table.n_docs == 0) & (table.n_relevant > 0) & empty)
    if lost.size:
        rule = "score 1" if flavor.empty == 1.0 else "be skipped"
        raise ValueError(
            f"every topic with relevant documents must rank some document under ideal={flavor.ideal!r} with "
            f"empty={flavor.empty if isinstance(flavor.empty, str) else int(flavor.empty)!r}; got {lost.size} that "
            f"would {rule}, the first {brief(table.qid[lost].tolist()[0])}. Choose ideal='global' or "
            "empty=0, or queries='both' if topics that the run lacks should not count."
        )


def _judged(aligned: AlignedRun, flavor: Flavor, ks: tuple[int | None, ...]) -> FloatArray:
    """Return judged@k by topic and cut-off. The expected number of judged documents is a DCG without discount."""
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
    return np.divide(n_judged, depths, out=np.full(n_judged.shape, np.nan), where=depths > 0)
