"""What missing labels leave open between systems, and which documents to label next."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.json_values import plain_id
from ndcg_ml._core.layout import FloatArray, IntArray, keys_of
from ndcg_ml._core.queries import Scored
from ndcg_ml._files.opening import write_atomically
from ndcg_ml._plain.checks import whole_number
from ndcg_ml._plain.table import Column, Record
from ndcg_ml._unjudged.completions import lowest_totals
from ndcg_ml._unjudged.ranges import (
    ModifiedError,
    Pair,
    Range,
    RangeError,
    compute_gains,
    match_systems,
    require_documents,
)
from ndcg_ml.flavor import Flavor

# -- select the unjudged documents to label next, until it is certain which of two systems is better ------------------


class Task(NamedTuple):
    """A document to label.

    Attributes
    ----------
    qid, document
        The ids as you passed them; if documents have no ids, `document` is the row.
    change : float
        Largest change in the difference from this label alone, if the other unjudged documents have the lowest gain.
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
        Number of documents whose label alone could change the difference, or that the systems rank differently.
    """

    tasks: tuple[Task, ...]
    range: Range
    n_open: int

    @property
    def settled(self) -> bool:
        """Whether no label can change which system is better."""
        return self.range.settled

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def to_frame(self) -> Any:
        """Return a DataFrame with the columns ``qid``, ``docno``, ``label`` (NaN, to fill in) and ``change``.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        rows = [{"qid": task.qid, "docno": task.document, "change": task.change} for task in self.tasks]
        return Record((), rows).frame("ToJudge").reindex(columns=["qid", "docno", "label", "change"])

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
            write_atomically(path, text)
        return text

    def closing_line(self) -> str:
        """Summarise the list in one line."""
        limits = f"the difference is between {self.range.low:+.6f} and {self.range.high:+.6f} over all grades"
        if self.settled:
            return f"Missing labels cannot change who leads: {limits}"
        return f"{len(self)} of {self.n_open} documents that can change the difference; {limits}"

    def __str__(self) -> str:
        if not self.tasks:
            return self.closing_line()
        columns = [
            Column("qid", "{qid}", "l"),
            Column("docno", "{document}", "l"),
            Column("can change", "{change:.6f}"),
        ]
        return Record(columns, [task._asdict() for task in self.tasks], caption=self.closing_line()).text()

    __repr__ = __str__


def next_to_judge(pair: Pair, difference: float, qid: Sequence[Any], n: int, max_grade: float | None) -> ToJudge:
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
        return ToJudge((), limits, 0)
    # A document outside the ideal has weight 0 in both systems.
    documents = np.flatnonzero(pair.unjudged & pair.pooled & (pair.weight_of_query[pair.query] > 0))
    change = _changes(pair, documents, compute_gains(pair.flavor, np.array(limits.grades)))
    # Some labels change the difference only together with others. Such documents come last.
    size = np.abs(pair.weight[documents])
    can = (change > 0) | (size > 0)
    if can.any():
        documents, change, size = documents[can], change[can], size[can]
    first = np.lexsort((-size, -change))[:n]
    chosen = documents[first]
    tasks = (
        Task(qid[query], document, float(moves))
        for query, document, moves in zip(pair.query[chosen], _find_ids(pair, chosen), change[first], strict=True)
    )
    return ToJudge(tuple(tasks), limits, documents.size)


def _find_ids(pair: Pair, documents: IntArray) -> list[Any]:
    """Return the ids of documents from a system that lists them; their rows if there are no ids."""
    rows = pair.row[documents]
    in_a = rows[:, 0] >= 0
    names: list[Any] = rows[:, 0].tolist()
    for side, system in enumerate((pair.a, pair.b)):
        if system.queries.names is not None:
            listed = np.flatnonzero(in_a == (side == 0))
            for at, name in zip(listed.tolist(), system.queries.names(rows[listed, side]), strict=True):
                names[at] = name
    return names


def _changes(pair: Pair, documents: IntArray, gains: FloatArray) -> FloatArray:
    """Return the largest change in the difference from each label alone, with the others at the lowest gain."""
    query, weight = pair.query[documents], pair.weight_of_query
    numerator, ideals = lowest_totals(pair.problem(), gains)
    ideal = ideals[0]
    # The difference with this document at each gain and all others at the lowest.
    upper = numerator[query] + (gains[:, None] - gains[0]) * pair.weight[documents]
    lower = ideals[:, query]
    now = np.divide(numerator, ideal, out=np.zeros(ideal.size), where=ideal > 0)
    then = np.divide(upper, lower, out=np.zeros(lower.shape), where=lower > 0)
    counts = ideal > 0 if pair.flavor.empty == "skip" else np.ones(ideal.size, dtype=bool)
    total, size = float((weight * now)[counts].sum()), float(weight[counts].sum())
    # A relevant document may add an empty query to the mean.
    joins = (lower > 0) & ~counts[query]
    # That a query counts in the total already does not matter, because it moves all means alike.
    means = (total + weight[query] * then) / (size + np.where(joins, weight[query], 0.0))
    return means.max(axis=0) - means.min(axis=0)


# -- the unjudged documents of compared systems ------------------------------------------------------------------------

# Notes have ranges only if they take less than about a second: documents without a label, summed over pairs.
_MOST_UNJUDGED = 500_000


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """A system, or one of its runs, at one cut-off.

    Attributes
    ----------
    name : str
    qid, values, share, weight : ndarray, shape (n_queries,)
        Id and value of each query (nan if it has none), its share in the mean (0 if it does not count), and its weight,
        as passed.
    k, flavor, totals
        The cut-off, the flavor, and the totals of the evaluation; None for precomputed values.
    scored : Scored or None
        The documents; None if they are not known.
    judged : ndarray or None
        judged@k of each query of a run.
    """

    name: str
    qid: NDArray[Any]
    values: FloatArray
    share: FloatArray
    weight: FloatArray
    k: int | None = None
    flavor: Flavor | None = None
    totals: Any = None
    scored: Scored | None = None
    judged: FloatArray | None = None


def count_unlabelled(systems: Iterable[System]) -> int:
    """Return the number of missing labels; 1 if judged@k shows some in a system without its documents."""
    n = 0
    for system in systems:
        unseen = system.judged is not None and bool(np.any(system.judged < 1))
        n += int(unseen if system.scored is None else np.isnan(system.scored.labels).sum())
    return n


class UnjudgedDocuments:
    """The documents of the compared systems, from which ranges are computed when needed.

    Parameters
    ----------
    systems : sequence of System
    rows : ndarray of int, shape (n_queries, n_systems)
        The position of each compared query in each system.
    left_out : ndarray
        Ids of the queries that are not compared.
    """

    def __init__(self, systems: Sequence[System], rows: IntArray, left_out: NDArray[Any]) -> None:
        self._systems = systems
        # Empty queries that are skipped, or in a micro average, do not count now but would with other labels.
        skipped = {}
        if left_out.size:
            places = [{qid: at for at, qid in enumerate(keys_of(source.qid))} for source in systems]
            for qid in keys_of(left_out):
                at_qid = [place.get(qid, -1) for place in places]
                if all(
                    at >= 0 and source.share[at] == 0 and source.weight[at] > 0
                    for at, source in zip(at_qid, systems, strict=True)
                ):
                    skipped[qid] = at_qid
        self._qid = [*keys_of(systems[0].qid[rows[:, 0]]), *skipped]
        more = np.array([*skipped.values()], dtype=np.int64).reshape(-1, len(systems))
        self._rows = np.concatenate([rows, more])
        self._ranges: dict[tuple[int, int, float | None], Range] = {}
        self._latest: tuple[tuple[int, int] | None, Pair | None] = (None, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a pickled evaluation has no documents

    def __deepcopy__(self, _: dict[int, Any]) -> UnjudgedDocuments:
        return self

    def range(self, a: int, b: int, difference: float, max_grade: float | None = None) -> Range:
        """Return the smallest and largest difference b - a over all ways to grade the unjudged documents.

        Raises
        ------
        RangeError
        """
        key = (a, b, max_grade)
        if key not in self._ranges:
            self._ranges[key] = self._pair(a, b).range(difference, max_grade)
        return self._ranges[key]

    def judge_next(self, a: int, b: int, difference: float, n: int, max_grade: float | None = None) -> ToJudge:
        """Return the documents whose labels can change the difference most.

        Raises
        ------
        RangeError
        """
        return next_to_judge(self._pair(a, b), difference, self._qid, n, max_grade)

    def may_turn(self, a: int, b: int, difference: float, names: Sequence[Any] = (), name: Any = None) -> bool:
        """Return whether missing labels can change the sign of the difference; True if the range is unknown.

        With the slice names of all queries of the first system, the difference is that of the queries with one name.
        """
        try:
            if not names:
                return not self.range(a, b, difference).settled
            return (
                not self._pair(a, b).within([names[row] == name for row in self._rows[:, 0]]).range(difference).settled
            )
        except RangeError:
            return True

    def notes(self, pairs: Sequence[tuple[int, int, float]]) -> list[str]:
        """Return notes on the ranges; none if all documents are judged, or there is no range for the flavor."""
        n_unlabelled = count_unlabelled(self._systems)
        if not n_unlabelled:
            return []
        if n_unlabelled * len(pairs) > _MOST_UNJUDGED:
            return ["Whether missing labels could change who leads was not computed, which takes long: see settled"]
        known = []
        for a, b, difference in pairs:
            try:
                limits = self.range(a, b, difference)
            except ModifiedError:
                words = "an array of labels or scores was modified after its evaluation: pass copies"
                return [f"unknown whether labels of unjudged documents could change the sign, because {words}"]
            except RangeError:
                return []
            if limits.n_unjudged:
                known.append(limits)
        n_open = sum(not limits.settled for limits in known)
        if not known:
            return []
        if len(pairs) > 1:
            if not n_open:
                return ["Missing labels cannot change who leads in any pair"]
            return [f"Missing labels could change who leads in {n_open} of {len(pairs)} pairs: see judge_next"]
        [limits] = known
        words = (
            f"over all grades of {limits.n_unjudged} unjudged documents, the difference is between "
            f"{limits.low:+.4f} and {limits.high:+.4f}"
        )
        if n_open:
            return [f"Missing labels could change who leads: {words}; see judge_next"]
        return [f"Missing labels cannot change who leads: {words}"]

    def _pair(self, a: int, b: int) -> Pair:
        latest, pair = self._latest
        if pair is None or latest != (a, b):
            first, second = self._systems[a], self._systems[b]
            assert first.flavor is not None
            ndcg = np.stack([self._systems[at].values[self._rows[:, at]] for at in (a, b)], axis=1)
            pair = match_systems(
                require_documents(first.scored, first.totals, first.flavor),
                require_documents(second.scored, second.totals, first.flavor),
                first.flavor,
                first.k,
                self._rows[:, [a, b]],
                ndcg,
            )
            self._latest = (a, b), pair
        return pair
