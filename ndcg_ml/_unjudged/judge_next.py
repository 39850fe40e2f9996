"""Select the unjudged documents to label next, until it is certain which of two systems is better."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core import atomic as _atomic
from ndcg_ml._core.arrays import FloatArray, IntArray
from ndcg_ml._core.checks import whole_number
from ndcg_ml._core.frames import make_frame
from ndcg_ml._core.json_values import plain_id
from ndcg_ml._unjudged.completions import sum_by_query
from ndcg_ml._unjudged.documents import compute_gains
from ndcg_ml._unjudged.range import Pair, Range


class Task(NamedTuple):
    """A document to label.

    Attributes
    ----------
    qid, document
        The ids as you passed them; if documents have no ids, `document` is the row.
    change : float
        Largest change in the difference from this label alone, if the other unjudged documents have the lowest grade.
    """

    qid: Any
    document: Any
    change: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ToJudge:
    """The documents to label next, those with the most effect first; none if the sign of the difference is certain.

    Attributes
    ----------
    tasks : tuple of Task
    range : Range
        The current range of the difference.
    n_open : int
        Number of documents that could still change the difference, including these.
    frame_library : str
    """

    tasks: tuple[Task, ...]
    range: Range
    n_open: int
    frame_library: str = "pandas"

    @property
    def settled(self) -> bool:
        """Whether no label can change which system is better."""
        return self.range.settled

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def to_frame(self) -> Any:
        """Return a data frame with the columns ``qid``, ``docno``, ``label`` (NaN, to fill in) and ``change``.

        Raises
        ------
        ImportError
            The data frame library is not installed.
        """
        columns = {
            "qid": _ids([task.qid for task in self.tasks]),
            "docno": _ids([task.document for task in self.tasks]),
            "label": np.full(len(self.tasks), np.nan),
            "change": np.array([task.change for task in self.tasks], dtype=np.float64),
        }
        return make_frame(self.frame_library, columns)

    def to_jsonl(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the documents as JSONL, one per line, with ``"label": null`` to fill in.

        ``ndcg-ml judge-next --filled FILE`` and ``ndcg_ml.with_labels(qrels, [path])`` read the labels back.

        Parameters
        ----------
        path : path, optional
            The file to write.

        Returns
        -------
        str
        """
        lines = [
            json.dumps(
                {"qid": plain_id(task.qid), "docno": plain_id(task.document), "label": None, "change": task.change},
                ensure_ascii=False,
            )
            for task in self.tasks
        ]
        text = "".join(f"{line}\n" for line in lines)
        if path is not None:
            _atomic.write(path, text)
        return text

    def closing_line(self) -> str:
        """Summarise the list in one line."""
        limits = f"the difference is between {self.range.low:+.6f} and {self.range.high:+.6f} over all grades"
        if self.settled:
            return f"settled: {limits}, so that no label can change which system is better"
        return f"{len(self)} of {self.n_open} documents that can change the difference; {limits}"

    def __str__(self) -> str:
        from ndcg_ml._core.table import Column, Record

        if not self.tasks:
            return self.closing_line()
        columns = [
            Column("qid", "{qid}", "l"),
            Column("docno", "{document}", "l"),
            Column("can change", "{change:.6f}"),
        ]
        return Record(columns, [task._asdict() for task in self.tasks], caption=self.closing_line()).text()

    __repr__ = __str__


def _ids(ids: list[Any]) -> NDArray[Any]:
    array = np.array(ids) if ids and len({type(one_id) for one_id in ids}) == 1 else np.empty(len(ids), dtype=object)
    if array.dtype == object or array.ndim != 1 or array.tolist() != ids:
        array = np.empty(len(ids), dtype=object)
        array[:] = ids
    return array


def next_to_judge(
    pair: Pair, difference: float, qid: NDArray[Any], n: int, max_grade: float | None = None, library: str = "pandas"
) -> ToJudge:
    """Return the `n` documents whose labels can change the difference most; `qid` holds the ids of the pair's queries.

    Raises
    ------
    TypeError, ValueError
        `n` is not a positive integer.
    RangeError
        The range is unknown.
    """
    n = whole_number(n, "n")
    limits = pair.range(difference, max_grade)
    if limits.settled:
        return ToJudge((), limits, 0, library)
    documents = np.flatnonzero(pair.unjudged & (pair.weight_of_query[pair.query] > 0))
    change = _changes(pair, documents, compute_gains(pair.flavor, np.array(limits.grades)))
    # Some labels change the difference only together with others. Such documents come last.
    size = np.abs(pair.weight[documents])
    can = (change > 0) | (size > 0)
    if can.any():
        documents, change, size = documents[can], change[can], size[can]
    first = np.lexsort((-size, -change))[:n]
    chosen = documents[first]
    names = _find_ids(pair, chosen)
    ids = [qid[query] for query in pair.query[chosen].tolist()]
    tasks = (
        Task(one.item() if isinstance(one, np.generic) and one.dtype.kind not in "mM" else one, name, float(moves))
        for one, name, moves in zip(ids, names, change[first].tolist(), strict=True)
    )
    return ToJudge(tuple(tasks), limits, documents.size, library)


def _find_ids(pair: Pair, documents: IntArray) -> list[Any]:
    """Return the ids of documents from a system that lists them; their rows if there are no ids."""
    rows = pair.row[documents]
    in_a = rows[:, 0] >= 0
    names: list[Any] = np.where(in_a, rows[:, 0], rows[:, 1]).tolist()
    for side, system in enumerate((pair.a, pair.b)):
        of_side = np.flatnonzero(in_a if side == 0 else ~in_a)
        if system.queries.names is not None:
            for at, name in zip(of_side.tolist(), system.queries.names(rows[of_side, side]), strict=True):
                names[at] = name
    return names


def _changes(pair: Pair, documents: IntArray, gains: FloatArray) -> FloatArray:
    """Return the largest change in the difference from each label alone, with the others at the lowest grade."""
    flavor, problem = pair.flavor, pair.problem()
    n_queries, lowest = problem.n_queries, float(gains[0])
    query = pair.query[documents]
    weight = pair.weight_of_query
    numerator = problem.constant + lowest * sum_by_query(problem.query, problem.weight, n_queries)
    ideal, lifts = _ideals(pair, gains)
    # The difference with this document at each gain and all others at the lowest.
    coefficient = pair.weight[documents]
    upper = numerator[query] + (gains[:, None] - lowest) * coefficient
    lower = ideal[query] + np.where(pair.pooled[documents], lifts[:, query], 0.0)
    now = np.divide(numerator, ideal, out=np.zeros(n_queries), where=ideal > 0)
    then = np.divide(upper, lower, out=np.zeros(lower.shape), where=lower > 0)
    counts = ideal > 0 if flavor.empty == "skip" else np.ones(n_queries, dtype=bool)
    total, size = float((weight * now)[counts].sum()), float(weight[counts].sum())
    # A relevant document may add an empty query to the mean.
    joins = (lower > 0) & ~counts[query]
    sums = total + weight[query] * (then - np.where(counts, now, 0.0)[query])
    sizes = size + np.where(joins, weight[query], 0.0)
    means = np.divide(sums, sizes, out=np.zeros(sums.shape), where=sizes > 0)
    return np.asarray(means.max(axis=0) - means.min(axis=0))


def _ideals(pair: Pair, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each query's ideal with all unjudged documents at the lowest gain, and the increase if one has each gain.

    The arrays have shapes (n_queries,) and (n_gains, n_queries).
    """
    problem = pair.problem()
    lifts = np.zeros((gains.size, problem.n_queries))
    unjudged = np.bincount(problem.query, minlength=problem.n_queries)
    levels = np.union1d(problem.judged_gain, gains)
    levels = levels[levels > 0]
    ideal, below = np.zeros(problem.n_queries), 0.0
    for level in levels.tolist():
        size, below = level - below, level
        reaching = np.bincount(problem.judged_query[problem.judged_gain >= level], minlength=problem.n_queries)
        if level <= gains[0]:
            reaching = reaching + unjudged
        start = problem.to_rank[np.minimum(reaching, problem.cut)]
        ideal += size * start
        if level > gains[0]:
            one_more = problem.to_rank[np.minimum(np.minimum(reaching + 1, problem.to_rank.size - 1), problem.cut)]
            lifts[gains >= level] += size * (one_more - start)
    known = ~np.isnan(problem.fixed)
    ideal[known], lifts[:, known] = problem.fixed[known], 0.0
    return ideal, lifts
