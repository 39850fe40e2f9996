"""The result of evaluating a run: its NDCG, the topics that it lacks, judged@k, and warnings of likely mistakes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core import checks
from ndcg_ml._core.arrays import are_ranks
from ndcg_ml._core.flavor_text import at_cutoff
from ndcg_ml._core.json_values import plain_ids
from ndcg_ml._core.layout import BoolArray, FloatArray, IntArray, ranges
from ndcg_ml._core.one_line import brief
from ndcg_ml._core.query_groups import group_by_ids
from ndcg_ml._files.read_run import RunRows
from ndcg_ml.results.evaluation import Evaluation, PerQuery, V

Which: TypeAlias = Literal["qrels", "run", "both"]
"""Topics to evaluate: those of the qrels, of the run, or in both."""


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
        Mean of judged@k over the topics with a retrieved document, whatever the flavor and the weights.
    queries : str
        Which topics were evaluated: those of the "qrels", of the "run" or in "both"; "users" in ``evaluate_topk``.
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
    queries: Which | Literal["users"]
    qrels_only: NDArray[Any]
    run_only: NDArray[Any]
    n_unanswered: int
    n_excluded: int | None = None
    _judgements: NDArray[np.uint64] | None = field(default=None, repr=False)
    """A digest of each topic's judgements; None in a slice."""
    _excluded: NDArray[np.uint64] | None = field(default=None, repr=False)
    """A digest of each topic's excluded documents; None without `exclude`, and in a slice."""

    def _words(self) -> tuple[str, str, str, str]:
        return ("user", "users", "items", "held out") if self.queries == "users" else Evaluation._words(self)

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
        if self.queries == "users":
            users = f"{self.n_unanswered} user{'s' * (self.n_unanswered != 1)}"
            return [counts, *[f"{users} without a retrieved item"] * bool(self.n_unanswered), flavor]
        topics = "; ".join(
            f"{len(ids)} of the {one} are not in the {other}{f', {treatment}' * bool(len(ids))}"
            for one, other, ids, treatment in self.one_sided()
        )
        lines = [counts, f"topics: {topics}"]
        if n_empty_answers := self.n_unanswered - self.qrels_only.size * (self.queries == "qrels"):
            lines.append(f"answers: {n_empty_answers} of the evaluated topics are answered with an empty list")
        if self.n_excluded is not None:
            lines.append(f"excluded: {self.n_excluded} retrieved documents")
        return [*lines, flavor]

    def _judged_at(self) -> dict[int | None, float]:
        return self.judged if isinstance(self.judged, dict) else {self.flavor.k: self.judged}

    def __str__(self) -> str:
        judged = self._judged_at()
        lines = Evaluation.__str__(self).split("\n")
        lines[len(judged) : len(judged)] = [
            f"{self._words()[3]}{at_cutoff(k)} = {part:.6f}" for k, part in judged.items()
        ]
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


def as_run_evaluation(
    evaluation: Evaluation[Any],
    n_retrieved: IntArray,
    judged: FloatArray,
    queries: Which | Literal["users"],
    qrels_only: NDArray[Any],
    run_only: NDArray[Any],
) -> RunEvaluation[Any]:
    """Add the attributes of a run to an evaluation of all topics, or of a slice."""
    judged = judged.reshape(len(n_retrieved), -1)
    some = n_retrieved > 0  # topics without documents are not in the mean
    means = judged[some].mean(axis=0).tolist() if some.any() else [math.nan] * judged.shape[1]
    table = RunPerQuery(
        **{name: evaluation.per_query[name] for name in PerQuery.__dataclass_fields__},
        n_retrieved=n_retrieved,
        judged=judged.reshape(evaluation.per_query.ndcg.shape),
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
    checks.warn_caller(
        f"the run retrieves no judged document in any of the {n_topics} topics, so no topic has a gain. {why}."
    )


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
        checks.warn_caller(
            f"exclude leaves out {rows.size} documents that are judged relevant, the first in "
            f"{judged.place_of(int(rows[0]))}. They remain in the ideal, so no run can score 1 there. If they "
            "should not count, remove them from the qrels.",
        )


def refuse_lost_topics(result: RunEvaluation[Any]) -> None:
    """Raise if a topic with relevant documents would score 1 or be skipped because nothing is ranked in it.

    An ideal of retrieved documents is 0 there, so the flavor's rule for empty queries would apply.
    """
    flavor, table = result.flavor, result.per_query
    if flavor.empty not in (1.0, "skip"):
        return
    empty = table.empty if table.empty.ndim == 1 else table.empty.any(axis=1)
    lost = np.flatnonzero((table.n_docs == 0) & (table.n_relevant > 0) & empty)
    if lost.size:
        rule = "score 1" if flavor.empty == 1.0 else "be skipped"
        fix = "remove such topics from the run and pass queries='both' if they should not count"
        if result.queries == "users":
            fix = "leave out the rows of users that should not count"
        raise ValueError(
            f"every topic with relevant documents must rank some document under ideal={flavor.ideal!r} with "
            f"empty={flavor.empty if isinstance(flavor.empty, str) else int(flavor.empty)!r}; got {lost.size} that "
            f"would {rule}, the first {brief(table.qid[lost].tolist()[0])}. Choose ideal='global' or empty=0, or {fix}."
        )


def warn_of_empty_answers(result: RunEvaluation[Any]) -> None:
    """Warn of topics with relevant documents that the run answers with an empty list."""
    lacking = set(result.qrels_only.tolist())
    table = result.per_query
    topics = table.qid[(table.n_retrieved == 0) & (table.n_relevant > 0)].tolist()
    empty = [topic for topic in topics if topic not in lacking]
    if not empty:
        return
    n, first = f"{len(empty)} of {result.n_queries}", brief(empty[0])
    words = f"the run answers {n} topics with an empty list, the first {first}; each counts as retrieving nothing"
    fix = "If they should not count, remove them from the run and choose queries='both'"
    if result.queries == "users":
        words = f"no items are retrieved for {n} users, the first {first}; each counts with an NDCG of 0"
        fix = "If they should not count, leave out their rows"
    if result.n_unanswered == result.n_queries:
        fix = "Find out why the system returned nothing"
    checks.warn_caller(f"{words}. {fix}.")
