"""Match and evaluate TREC data: judgements (qrels) and a ranking (run) from dicts, files or data frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._core.arrays import are_fractions, are_grades
from ndcg_ml._core.column_names import ColumnNames
from ndcg_ml._core.frames import library_of, refuse_unknown_ids
from ndcg_ml._core.layout import BoolArray, FloatArray, IntArray, as_float32, as_objects, keys_of, ranges, starts_of
from ndcg_ml._core.queries import DocumentNames, Queries, Weights, find_repeats, read_weights
from ndcg_ml._core.query_groups import group_by_sizes
from ndcg_ml._core.scores import Ranking
from ndcg_ml._core.slice_names import column_by_id, slice_names_by_id
from ndcg_ml._files import read_run
from ndcg_ml._files.byte_ids import digests as judgement_digests
from ndcg_ml._files.byte_ids import earlier
from ndcg_ml._files.read_run import Ids, RunLike, RunRows, Topics, Which, read_rows
from ndcg_ml._plain.checks import TIES_BY_ID, K, KSpec, OneK, cutoffs, one_of, warn_caller, warn_of_swap
from ndcg_ml._plain.messages import brief
from ndcg_ml.arrays import Prepared
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.results.evaluation import Evaluation, of_run

__all__ = ["AlignedRun", "Which", "align", "evaluate_run"]

# Document ids are kept for at most this number of rows. Each takes 16 bytes or more.
_NAMED_ROWS = 1 << 22

Exclude: TypeAlias = "Literal['identical'] | Mapping[Any, Iterable[Any]]"
"""Documents to remove from a run: those with the id of their topic, or those listed by topic."""

# -- evaluate a run -------------------------------------------------------------------------------------------------


# fmt: off
@overload
def evaluate_run(
    qrels: RunLike, run: RunLike, *, flavor: Flavor | str = ..., k: OneK = ..., queries: Which = ...,
    by: ArrayLike | Mapping[str, Any] | None = ..., cluster: ArrayLike | Mapping[Any, Any] | None = ...,
    query_weight: Weights | None = ..., exclude: Exclude | None = ..., columns: ColumnNames | None = ...,
) -> Evaluation[float]: ...
@overload
def evaluate_run(
    qrels: RunLike, run: RunLike, *, flavor: Flavor | str = ..., k: Sequence[K], queries: Which = ...,
    by: ArrayLike | Mapping[str, Any] | None = ..., cluster: ArrayLike | Mapping[Any, Any] | None = ...,
    query_weight: Weights | None = ..., exclude: Exclude | None = ..., columns: ColumnNames | None = ...,
) -> Evaluation[dict[K, float]]: ...
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
    query_weight: Weights | None = None,
    exclude: Exclude | None = None,
    columns: ColumnNames | None = None,
) -> Evaluation[Any]:
    """Compute the NDCG of a run against relevance judgements (qrels), by default as trec_eval does.

    Parameters
    ----------
    qrels : mapping, path or data frame
        ``{topic: {document: grade}}``; ``{topic: [document, ...]}``, a list or set of relevant documents of grade 1, in
        which repeats count once; the path of a file (docs/runs.md): TREC (topic, iteration, document, grade), CSV,
        JSON, JSONL, Parquet and others; or a pandas, polars or pyarrow frame with columns such as ``qid``, ``docno``,
        ``label``. A grade that is NaN, null or empty leaves the document unjudged. Pairs of a topic and a document
        without grades have grade 1.
    run : mapping, path or data frame
        ``{topic: {document: score}}``, higher is better; ``{topic: [document, ...]}``, best first; the path of a
        file: a TREC run (topic, Q0, document, rank, score, tag), whose ranks and tag are ignored, or another format;
        or a frame with columns such as ``qid``, ``docno``, ``score``. Text files may be compressed by gzip.
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
    query_weight : array-like of float, pandas.Series, or mapping, optional
        Weights of the topics in the mean and everything computed from it, 0 or more: by topic id, or in the order of
        ``per_query.qid``. Every evaluated topic needs a weight. Default: equal weights.
    exclude : "identical" or mapping of documents by topic id, optional
        Documents to remove from the run before it is ranked: those whose id equals that of their topic, as with BEIR's
        ``ignore_identical_ids``; or those listed for each topic, such as items that a user has already seen. The
        judgements are not changed. Default: none.
    columns : mapping, optional
        Names of your columns, in frames and files, or of keys in JSON, such as ``{"qid": "user", "docno": "gold"}``; a
        list has one name for the qrels and one for the run. The keys are ``qid``, ``docno``, ``label`` and ``score``.
        Default: the columns with these or other usual names (docs/runs.md), as ``.columns_read`` says.

    Returns
    -------
    Evaluation
        ``.value``, ``.per_query``, ``.to_frame()`` and ``str()`` as in an ``Evaluation``; also ``.judged``,
        ``.qrels_only``, ``.run_only``, ``.n_unanswered``, ``.columns_read``; with `by`, ``.slices``. ``.to_frame()``
        uses the library of the run's frame, otherwise that of the qrels. All judged documents enter a ``global`` ideal,
        retrieved or not; a ``given`` ideal has them in the order of the qrels. A topic of the qrels without documents
        (``{"q1": {}}``) is empty, and the flavor's ``empty`` applies.

    Raises
    ------
    DataFileError
        A file has a malformed line. It is a ValueError that names the file and the line.
    TypeError
        An argument has the wrong type, such as a LazyFrame, which must be collected first; or ids are not all
        strings or all integers.
    ValueError
        A missing id or column; a document with two grades in a topic, or twice in one of the run under
        ``duplicates="raise"``; NaN scores; no topic in both; a retrieved document without a judgement under
        ``unjudged="raise"``; a topic with relevant documents in which nothing is retrieved, if the flavor would score
        it 1 or skip it; a topic without a label in `by` or `cluster`, or without a weight in `query_weight`; a weight
        of a topic that neither the qrels nor the run has; or as for ``ndcg_score``.

    Warns
    -----
    UserWarning
        No retrieved document is judged, which may mean that the ids of the run and the qrels differ. The run answers a
        topic that has relevant documents with an empty list. An excluded document is judged relevant; it remains in
        the ideal, as in BEIR. The scores count up 1, 2, 3, ... in every topic, like ranks. Most grades are fractions
        and all scores are integers up to 100, as if `qrels` and `run` were swapped. The qrels have no grades. A grade
        is a fraction, which trec_eval would truncate.

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
    aligned = _aligned(qrels, run, queries, columns, exclude, flavor=flavor, keep=flavor.duplicates != "raise")
    names = None if by is None else slice_names_by_id(by, aligned.qid)
    clusters = None if cluster is None else as_objects(column_by_id(cluster, "cluster", aligned.qid))
    data, n_retrieved = aligned.queries(), aligned.n_retrieved()
    if query_weight is not None:
        data = replace(data, weight=read_weights(query_weight, data.groups))
        topics = [*keys_of(aligned.qid), *keys_of(aligned.qrels_only), *keys_of(aligned.run_only)]
        refuse_unknown_ids(query_weight, "query_weight", topics)
    evaluation: Evaluation[Any] = Prepared(flavor, k, data).evaluate(aligned.y_score)
    judged = _judged(data, aligned.y_score, n_retrieved, flavor, ks)
    result = replace(
        of_run(evaluation, n_retrieved, judged, queries, aligned.qrels_only, aligned.run_only),
        frame_library=library_of(run) or library_of(qrels) or "pandas",
        n_excluded=aligned.n_excluded,
        cluster=clusters,
        columns_read=aligned.columns_read,
        _slice_names=names,
        _digests=aligned.digests,
        _excluded=aligned.excluded,
    )
    read_run.refuse_lost_topics(result.per_query, flavor, of_users=False)
    read_run.warn_of_empty_answers(result.per_query, aligned.qrels_only.tolist(), of_users=False)
    return result


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
    columns_read : dict
        The columns that were read, by meaning, for "qrels" and "run" if theirs have names.
    """

    qid: NDArray[Any]
    group: IntArray
    y_true: FloatArray
    y_score: FloatArray
    retrieved: BoolArray
    doc_id: IntArray
    qrels_only: NDArray[Any]
    run_only: NDArray[Any]
    in_run_order: NDArray[Any]
    n_excluded: int | None
    columns_read: Mapping[str, Mapping[str, Any]]
    digests: NDArray[np.uint64]
    """A digest of each topic's judgements. It depends on their order only if `judgement` keeps this order."""
    excluded: NDArray[np.uint64] | None
    """A digest of each topic's excluded documents; None without `exclude`."""
    judgement: IntArray | None
    """The position of each judged row in the qrels; None if the rows are in that order."""
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
            partial(np.asarray, self.doc_id),
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
    aligned = _aligned(qrels, run, queries, columns, exclude, flavor=None, keep=duplicates == "keep")
    return _sort_by_qrels(aligned)


def _aligned(
    qrels: RunLike,
    run: RunLike,
    queries: Which,
    columns: ColumnNames | None,
    exclude: Exclude | None,
    *,
    flavor: Flavor | None,
    keep: bool,
) -> AlignedRun:
    """Match a run with its judgements. The rows of a topic are those of the run, then the documents that it lacks.

    Under a flavor, the order of the qrels is kept only if its ideal is ``given``, and ``doc_id`` orders only documents
    that share a float32 score. ``align`` passes None. `keep` allows repeated documents in the run.
    """
    pair = _read_pair(qrels, run, queries, columns, exclude)
    judged, ranked, chosen = pair.judged, pair.ranked, pair.chosen
    # Match documents before any row is left out, so that a repeated document is an error in every topic.
    match, place, repeated = _match(pair, keep, for_align=flavor is None)
    included = chosen[ranked.topic]
    n_excluded = excluded = None
    if exclude is not None:
        left_out, excluded = _find_excluded(exclude, pair)
        n_excluded = int((left_out & included).sum())
        included &= ~left_out
    grades = np.full(ranked.topic.size, np.nan)
    grades[match >= 0] = judged.value[match[match >= 0]]
    if included.any():  # otherwise, ``evaluate_run`` warns of empty answers
        read_run.warn_of_no_match(judged, ranked, match, included, int(chosen.sum()))
        read_run.warn_of_ranks(ranked, grades)
        # The formats of files differ, so that they cannot be swapped.
        if judged.lines is None and are_fractions(judged.value) and are_grades(ranked.value):
            warn_of_swap("qrels", "run")

    rows = _choose_rows(pair, match, included)
    n_run, n_more = rows.of_run.size, rows.of_qrels.size
    y_true = rows.arranged(grades[rows.of_run], judged.value[rows.of_qrels])
    if flavor is not None:
        _check_labels(y_true, flavor, partial(_place_of, pair, rows))
    is_given = flavor is not None and flavor.ideal == "given"
    return AlignedRun(
        qid=pair.topics_of(chosen),
        group=rows.group,
        y_true=y_true,
        y_score=rows.arranged(ranked.value[rows.of_run], np.zeros(n_more, dtype=ranked.value.dtype)),
        retrieved=rows.order < n_run,
        doc_id=rows.arranged(place[rows.of_run], np.arange(-n_more, 0)),
        qrels_only=pair.topics_of(pair.in_qrels & ~pair.in_run),
        run_only=pair.topics_of(pair.in_run & ~pair.in_qrels),
        in_run_order=pair.topics_of(np.zeros_like(chosen)),
        n_excluded=n_excluded,
        columns_read={name: rows.columns for name, rows in (("qrels", judged), ("run", ranked)) if rows.columns},
        digests=_digest_judgements(judged, chosen.size, with_order=is_given)[chosen],
        excluded=None if excluded is None else excluded[chosen],
        judgement=rows.arranged(match[rows.of_run], rows.of_qrels) if is_given or flavor is None else None,
        repeated=repeated,
        names=_document_names(pair, rows),
    )


def _sort_by_qrels(aligned: AlignedRun) -> AlignedRun:
    """Sort the rows of each topic by their positions in the qrels, except in topics with tied scores."""
    judgement, names = aligned.judgement, aligned.names
    assert judgement is not None
    topic = np.repeat(np.arange(aligned.group.size), aligned.group)
    retrieved = topic[aligned.retrieved]
    tied = np.zeros(aligned.group.size, dtype=bool)
    tied[retrieved[_find_ties(retrieved, aligned.y_score[aligned.retrieved])]] = True
    untied = ~tied[topic]  # the others keep their order
    order = np.lexsort((judgement * untied, (judgement < 0) & untied, topic))
    arrays = {name: getattr(aligned, name)[order] for name in ("y_true", "y_score", "retrieved", "doc_id")}
    return replace(
        aligned,
        **arrays,
        in_run_order=aligned.qid[tied],
        judgement=None,
        names=None if names is None else lambda rows: names(order[rows]),
    )


# -- read and match -------------------------------------------------------------------------------------------------


class _Pair(NamedTuple):
    """Qrels and a run whose topics and documents share numbers, and which topics each has and are evaluated."""

    ids: Ids
    judged: RunRows
    ranked: RunRows
    in_qrels: BoolArray
    in_run: BoolArray
    chosen: BoolArray

    def topics_of(self, flags: BoolArray) -> NDArray[Any]:
        """Return the ids of the flagged topics."""
        return self.ids.topics.names(np.flatnonzero(flags))


def _read_pair(
    qrels: RunLike, run: RunLike, queries: Which, columns: ColumnNames | None, exclude: Exclude | None
) -> _Pair:
    """Check the arguments, read qrels and run, and choose the topics. Raise if no topic is in both."""
    one_of(queries, "queries", get_args(Which))
    _check_exclude(exclude)
    ids, names = Ids(), {} if columns is None else columns
    judged, ranked = read_rows("qrels", qrels, ids, names), read_rows("run", run, ids, names)
    _check_columns(judged, ranked, columns)
    in_qrels, in_run = (np.zeros(len(ids.topics), dtype=bool) for _ in range(2))
    in_qrels[judged.topics], in_run[ranked.topics] = True, True
    chosen = {"qrels": in_qrels, "run": in_run, "both": in_qrels & in_run}[queries]
    if not (in_qrels & in_run).any():
        raise ValueError(
            f"qrels and run must share a topic; {judged.source} has {_first_topics(ids.topics, in_qrels)} and "
            f"{ranked.source} has {_first_topics(ids.topics, in_run)}. Ids are compared exactly: check "
            "prefixes and leading zeros."
        )
    return _Pair(ids, judged, ranked, in_qrels, in_run, chosen)


def _check_columns(judged: RunRows, ranked: RunRows, columns: ColumnNames | None) -> None:
    """Raise if `columns` is given and no column has a name, or the same columns of a file are qrels and run."""
    # Qrels that were read before, by these names, may come with a run whose columns have no names.
    if columns is not None and not (judged.columns or ranked.columns) and bool(judged.path) == bool(ranked.path):
        raise ValueError(f"columns={dict(columns)} must be left out if neither qrels nor run has names of columns.")
    same = [*judged.columns.values()] == [*ranked.columns.values()] != []
    if same and judged.path and os.fspath(judged.path) == os.fspath(ranked.path):
        advice = f"Name both: columns={{'docno': [{judged.columns['docno']!r}, NAME]}}."
        raise ValueError(f"{judged.path}: qrels and run must be different columns; got the same. {advice}")


# From here on, all numbers have the same number of digits, so they sort as text as they do as numbers.
_FIRST_PLACE = 10**9


def _match(pair: _Pair, keep: bool, for_align: bool) -> tuple[IntArray, IntArray, bool]:
    """For each row of the run, return its row in the qrels or -1, and its position in byte order in its topic.

    Also return whether the run lists a document twice in a topic. Raise if it does, unless `keep` is set.
    """
    names, judged, ranked = pair.ids.documents, pair.judged, pair.ranked
    n_judged = judged.topic.size
    before = earlier(np.concatenate([judged.topic, ranked.topic]), names)
    keep_them = "pass duplicates='keep'" if for_align else "choose a flavor with duplicates='first' or 'count'"
    for rows, alternative in ((judged, ""), (ranked, f"or {keep_them}")):
        again = np.flatnonzero(before[rows.first : rows.first + rows.topic.size] >= rows.first)
        if again.size and not (keep and rows is ranked):
            raise _repeated_document(rows, int(before[rows.first + again[0]]) - rows.first, int(again[0]), alternative)
    match = before[n_judged:]
    place = np.full(ranked.topic.size, _FIRST_PLACE)
    some = np.arange(place.size) if keep or for_align else _find_ties(ranked.topic, ranked.value)
    in_order = names.order_by_bytes(ranked.topic[some], n_judged + some) - n_judged
    begins = starts_of(np.bincount(ranked.topic[in_order]))
    place[in_order] += np.arange(in_order.size) - begins[ranked.topic[in_order]]
    for row in again.tolist():  # in the order of the run, so the earlier row is final
        first = int(match[row]) - n_judged
        match[row], place[row] = match[first], place[first]
    match[np.append(np.isnan(judged.value), True)[match]] = -1  # unjudged, or no match
    return match, place, bool(again.size)


def _find_ties(topic: NDArray[Any], score: FloatArray) -> IntArray:
    """Return the rows that share a float32 score with another row of their topic. All that share one in float64 do."""
    key = topic.astype(np.int64) << 32 | as_float32(score + 0.0).view(np.uint32)
    ordered = np.sort(key)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(key, shared))


def _repeated_document(rows: RunRows, first: int, again: int, alternative: str) -> ValueError:
    places = dict.fromkeys((rows.place_of(first), rows.place_of(again)))
    what = ""
    if not alternative:
        what = f", with the grades {rows.value[first]:g} and {rows.value[again]:g}"
        what += " of different subtopics (the second column)" * rows.are_subtopics(first, again)
    return ValueError(
        f"a document must not appear twice in a topic; {rows.name(again)} does in {' and '.join(places)}{what}. Remove "
        f"the duplicates{', ' * bool(alternative)}{alternative}."
    )


def _first_topics(topics: Topics, flags: BoolArray) -> str:
    numbers = np.flatnonzero(flags)
    some = ", ".join(map(brief, topics.names(numbers[:3]).tolist()))
    return some + (f", ... ({numbers.size} topics)" if numbers.size > 3 else "")


def _check_exclude(exclude: Any) -> None:
    if exclude is None or isinstance(exclude, Mapping) or (isinstance(exclude, str) and exclude == "identical"):
        return
    got = brief(exclude) if isinstance(exclude, str) else type(exclude).__name__
    raise (ValueError if isinstance(exclude, str) else TypeError)(
        f"exclude must be 'identical' or {{topic: [document, ...]}}; got {got}."
    )


def _find_excluded(exclude: Exclude, pair: _Pair) -> tuple[BoolArray, NDArray[np.uint64]]:
    """Return which rows of the run hold excluded documents, and a digest of these by topic."""
    ids, judged, ranked = pair.ids, pair.judged, pair.ranked
    n_judged, n_rows = judged.topic.size, len(ids.documents)
    topic, documents = ids.read_exclude(exclude)
    ids.documents.extend(documents)
    before = earlier(np.concatenate([judged.topic, ranked.topic, topic]), ids.documents)
    # Flag all earlier rows with the same document, one step at a time: a run may list it twice.
    flags = np.zeros(n_rows, dtype=bool)
    at = before[n_rows:]
    while (at := at[at >= 0]).size:
        flags[at[at < n_rows]] = True
        at = before[at]
    read_run.warn_of_excluded(judged, flags[:n_judged] & pair.chosen[judged.topic] & (judged.value > 0))
    listed = slice(n_rows, len(ids.documents))
    digests = judgement_digests(ids.documents, listed, topic, np.ones(topic.size), len(ids.topics))
    return flags[n_judged:], digests


# -- choose and arrange rows ----------------------------------------------------------------------------------------


class _Rows(NamedTuple):
    """The rows of a run, the judged documents that it lacks, and the order that sorts both by topic."""

    of_run: NDArray[np.signedinteger[Any]]
    of_qrels: NDArray[np.signedinteger[Any]]
    order: NDArray[np.signedinteger[Any]]
    group: IntArray

    def arranged(self, of_run: NDArray[Any], of_qrels: NDArray[Any]) -> NDArray[Any]:
        """Arrange values of the run's rows and of the other judged documents by topic."""
        return np.concatenate([of_run, of_qrels])[self.order]


def _choose_rows(pair: _Pair, match: IntArray, included: BoolArray) -> _Rows:
    judged, chosen = pair.judged, pair.chosen
    unretrieved = ~np.isnan(judged.value)
    unretrieved[match[included & (match >= 0)]] = False
    of_run = _compact(np.flatnonzero(included))
    of_qrels = _compact(np.flatnonzero(unretrieved & chosen[judged.topic]))
    topic = np.concatenate([pair.ranked.topic[of_run], judged.topic[of_qrels]])
    group = np.bincount(topic, minlength=chosen.size)[chosen]
    return _Rows(of_run, of_qrels, _compact(np.argsort(topic, kind="stable")), group)


def _place_of(pair: _Pair, rows: _Rows, row: int) -> str:
    """Describe a row for an error message."""
    at, n_run = int(rows.order[row]), rows.of_run.size
    if at < n_run:
        return pair.ranked.place_of(int(rows.of_run[at]))
    return pair.judged.place_of(int(rows.of_qrels[at - n_run]))


def _document_names(pair: _Pair, rows: _Rows) -> DocumentNames | None:
    """Return a function that returns the ids of rows; None for large runs, whose ids take most of the memory."""
    kind, documents = pair.ids.kind, pair.ids.documents
    if len(documents) > _NAMED_ROWS:
        return None
    row_of = rows.arranged(_compact(rows.of_run + pair.judged.topic.size), rows.of_qrels)
    return lambda at: list(map(kind.decode, documents.take(row_of[at])))


def _digest_judgements(judged: RunRows, n_topics: int, *, with_order: bool) -> NDArray[np.uint64]:
    """Digest each topic's judgements: documents with grades and, with `with_order`, their positions."""
    rows = slice(judged.first, judged.first + judged.topic.size)
    digests = judgement_digests(judged.ids.documents, rows, judged.topic, judged.value, n_topics)
    if with_order:
        sizes = np.bincount(judged.topic)
        places = np.empty(judged.topic.size)
        places[np.argsort(judged.topic, kind="stable")] = ranges(np.zeros_like(sizes), sizes)
        digests += judgement_digests(judged.ids.documents, rows, judged.topic, places, n_topics)
    return digests


def _compact(rows: NDArray[np.int64]) -> NDArray[np.signedinteger[Any]]:
    """Convert row numbers to int32 if they fit."""
    return rows.astype(np.int32) if rows.size <= np.iinfo(np.int32).max else rows


# -- under a flavor -------------------------------------------------------------------------------------------------


def _check_labels(y_true: FloatArray, flavor: Flavor, place_of: Callable[[int], str]) -> None:
    """Raise if the flavor does not allow the labels, and name the first document; warn if its library changes them."""
    unjudged, negative = np.isnan(y_true), y_true < 0
    for switch, rule, bad, what, others in (
        ("unjudged", flavor.unjudged, unjudged, "a document without a judgement", "'condense'"),
        ("negative", flavor.negative, negative, "a negative grade", "'drop' or 'allow'"),
    ):
        if rule == "raise" and bad.any():
            raise ValueError(
                f"{what} is an error under {switch}='raise'; got {int(bad.sum())}, the first in "
                f"{place_of(int(np.flatnonzero(bad)[0]))}. Use {flavor._advice(**{switch: 'zero'})}, or choose "
                f"{switch}={others}."
            )
    fractions = y_true[~unjudged & (y_true != np.floor(y_true))]
    if fractions.size and flavor.preset_name in ("trec_eval", "trec_eval10"):
        grade = float(fractions[0])
        warn_caller(f"trec_eval itself truncates grades to integers, {grade:g} to {int(grade)}; its NDCG differs.")


def _judged(
    data: Queries, scores: FloatArray, n_retrieved: IntArray, flavor: Flavor, ks: tuple[int | None, ...]
) -> FloatArray:
    """Return judged@k by topic and cut-off. The expected number of judged documents is a DCG without discount."""
    counting = Flavor(
        duplicates="count",
        discount="none",
        ties=flavor.ties if flavor.ties in ("first", "last", *TIES_BY_ID) else "average",
        score_dtype=flavor.score_dtype,
    )
    flags = (~np.isnan(data.labels)).astype(np.float64)
    n_judged = Ranking(counting, ks, replace(data, labels=flags)).totals(scores).dcg
    depths = np.stack([n_retrieved if k is None else np.minimum(n_retrieved, k) for k in ks], axis=1)
    return np.divide(n_judged, depths, out=np.full(n_judged.shape, np.nan), where=depths > 0)
