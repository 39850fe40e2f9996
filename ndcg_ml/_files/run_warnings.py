"""Warn of likely mistakes in qrels and runs, and refuse topics that would not count because nothing is ranked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndcg_ml._core.checks import warn_caller
from ndcg_ml._core.layout import BoolArray, IntArray
from ndcg_ml._core.one_line import brief
from ndcg_ml._files.read_run import RunRows
from ndcg_ml._files.run_result import RunEvaluation

# Smallest number of steps of 1 between scores that is taken as a sign of ranks.
_MIN_STEPS = 4


def warn_of_no_match(judged: RunRows, ranked: RunRows, match: IntArray, included: BoolArray, n_topics: int) -> None:
    """Warn if no retrieved document is judged, and show an id of each side, if there is one."""
    if ((match >= 0) & included).any():
        return
    why = "No document is judged"
    if match.size and judged.topic.size:
        why = (
            f"Ids are compared exactly: those of {judged.source} look like {judged.name(0)}, those of {ranked.source} "
            f"like {ranked.name(0)}"
        )
    warn_caller(f"the run retrieves no judged document in any of the {n_topics} topics, so no topic has a gain. {why}.")


def warn_of_ranks(ranked: RunRows) -> None:
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
        warn_caller(
            f"the scores of {ranked.source} count up {starts[0]:g}, {starts[0] + 1:g}, ... in every topic, like "
            "ranks, but the document with the highest score is ranked first. If these are ranks, pass the scores, or "
            "negate the ranks.",
        )


def warn_of_excluded(judged: RunRows, relevant: BoolArray) -> None:
    rows = np.flatnonzero(relevant)
    if rows.size:
        warn_caller(
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
        fix = "queries='both' if topics that the run lacks should not count"
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
    if result.queries == "users":
        warn_caller(
            f"no items are retrieved for {len(empty)} of {result.n_queries} users, the first {brief(empty[0])}; each "
            "counts with an NDCG of 0. If they should not count, leave out their rows.",
        )
    else:
        warn_caller(
            f"the run answers {len(empty)} of {result.n_queries} topics with an empty list, the first "
            f"{brief(empty[0])}; each counts as retrieving nothing, with a per_query.n_retrieved of 0. If they should "
            "not count, remove them from the run and choose queries='both'.",
        )
