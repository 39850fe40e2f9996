"""Find out whether a declared divergence covers a recorded case.

The declarations are in ``ndcg_ml._flavor.divergences``. Each names its cases by ``when``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ndcg_ml._flavor.divergences import Divergence

__all__ = ["COVERS", "Facts", "covers", "facts"]


@dataclass(frozen=True)
class Facts:
    """The properties of a recorded case that predicates use."""

    scores: tuple[tuple[float, ...], ...]
    """The scores of the ranked documents, one tuple per query."""
    labels: tuple[tuple[float, ...], ...]
    """The labels of the judged documents, one tuple per query."""
    k: int | None
    weighted: bool
    missing_topic: bool
    """A judged query was not ranked."""
    unrated_at_k: bool
    """The first k hits of a query hold a document without a label."""
    extra_topic: bool = False
    """A query was ranked, but not judged."""
    repeats: bool = False
    """A document was retrieved twice for a query."""

    @property
    def all_labels(self) -> list[float]:
        return [label for query in self.labels for label in query]


def facts(problem: dict[str, Any], k: int | None, weighted: bool) -> Facts:
    """Return the properties of a recorded case."""
    if "queries" in problem:
        queries = problem["queries"]
        return Facts(
            scores=tuple(tuple(map(float, query["scores"])) for query in queries),
            labels=tuple(tuple(map(float, query["labels"])) for query in queries),
            k=k,
            weighted=weighted,
            missing_topic=False,
            unrated_at_k=False,
        )
    repeats = "hits" in problem
    run, qrels = {qid: dict(hits) for qid, hits in problem["hits" if repeats else "run"].items()}, problem["qrels"]
    top = {qid: sorted(docs, key=lambda doc: -float(docs[doc]))[:k] for qid, docs in run.items()}
    return Facts(
        scores=tuple(tuple(map(float, docs.values())) for docs in run.values()),
        labels=tuple(tuple(map(float, docs.values())) for docs in qrels.values()),
        k=k,
        weighted=weighted,
        missing_topic=any(qid not in run for qid in qrels),
        unrated_at_k=any(doc not in qrels.get(qid, {}) for qid, docs in top.items() for doc in docs),
        extra_topic=any(qid not in qrels for qid in run),
        repeats=repeats,
    )


# -- which cases ----------------------------------------------------------------------------------------------------


def nan_score(case: Facts) -> bool:
    return any(math.isnan(score) for query in case.scores for score in query)


def fraction(case: Facts) -> bool:
    return any(label != int(label) for label in case.all_labels)


def one_document(case: Facts) -> bool:
    return any(len(query) == 1 for query in case.labels)


def tied(case: Facts) -> bool:
    return any(len(set(query)) < len(query) for query in case.scores)


def tied_beyond(n: int) -> Callable[[Facts], bool]:
    return lambda case: any(len(set(query)) < len(query) > n for query in case.scores)


def above(grade: float) -> Callable[[Facts], bool]:
    return lambda case: max(case.all_labels, default=0) > grade


def all_below(grade: float) -> Callable[[Facts], bool]:
    return lambda case: max(case.all_labels, default=0) < grade


def negative(case: Facts) -> bool:
    return min(case.all_labels, default=0) < 0


def negative_but_not_padding(case: Facts) -> bool:
    return any(label < 0 and label != -1 for label in case.all_labels)


def nothing_relevant(labels: tuple[float, ...]) -> bool:
    return not any(label > 0 for label in labels)


def weighted_with_an_empty_query(case: Facts) -> bool:
    return case.weighted and any(map(nothing_relevant, case.labels))


def only_empty_queries(case: Facts) -> bool:
    return all(map(nothing_relevant, case.labels))


def negative_and_nothing_relevant(case: Facts) -> bool:
    return any(nothing_relevant(query) and min(query, default=0) < 0 for query in case.labels)


def labels_cancel(case: Facts) -> bool:
    return any(sum(query) == 0 and not nothing_relevant(query) for query in case.labels)


def negative_listed_first(case: Facts) -> bool:
    def dcg(labels: tuple[float, ...]) -> float:
        return sum((2**label - 1) / math.log2(rank + 1) for rank, label in enumerate(labels, start=1))

    return any(dcg(query[: case.k]) < 0 for query in case.labels)


def fraction_or_above(grade: float) -> Callable[[Facts], bool]:
    return lambda case: fraction(case) or above(grade)(case)


def missing_topic(case: Facts) -> bool:
    return case.missing_topic


def unrated_at_k(case: Facts) -> bool:
    return case.unrated_at_k


def extra_topic(case: Facts) -> bool:
    return case.extra_topic


def repeats(case: Facts) -> bool:
    return case.repeats


def weighted(case: Facts) -> bool:
    return case.weighted


def tied_in_float32(case: Facts) -> bool:
    return any(len({_float32(score) for score in query}) < len(query) for query in case.scores)


def padded(case: Facts) -> bool:
    return len({len(query) for query in case.scores}) > 1


def fraction_below_1(case: Facts) -> bool:
    return any(0 < label < 1 for label in case.all_labels)


def beyond_or_tied(case: Facts) -> bool:
    return tied(case) or (case.k is not None and case.k > max(map(len, case.scores)))


def several_queries(case: Facts) -> bool:
    return len(case.labels) > 1


def empty_and_short(case: Facts) -> bool:
    return case.k is not None and any(nothing_relevant(query) and len(query) < case.k for query in case.labels)


def every_case(_: Facts) -> bool:
    return True


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


COVERS: dict[str, Callable[[Facts], bool]] = {
    "nan_score": nan_score,
    "one_document": one_document,
    "tied": tied,
    "fraction_or_above_30": fraction_or_above(30),
    "every_case": every_case,
    "weighted_with_an_empty_query": weighted_with_an_empty_query,
    "fraction_or_above_31": fraction_or_above(31),
    "labels_cancel": labels_cancel,
    "only_empty_queries": only_empty_queries,
    "negative_and_nothing_relevant": negative_and_nothing_relevant,
    "above_127": above(127),
    "negative_but_not_padding": negative_but_not_padding,
    "tied_beyond_16": tied_beyond(16),
    "fraction": fraction,
    "above_31": above(31),
    "missing_topic": missing_topic,
    "tied_beyond_15": tied_beyond(15),
    "negative": negative,
    "negative_listed_first": negative_listed_first,
    "unrated_at_k": unrated_at_k,
    "repeats": repeats,
    "extra_topic": extra_topic,
    "fraction_below_1": fraction_below_1,
    "all_below_2": all_below(2),
    "above_5": above(5),
    "beyond_or_tied": beyond_or_tied,
    "weighted": weighted,
    "tied_in_float32": tied_in_float32,
    "padded": padded,
    "several_queries": several_queries,
    "empty_and_short": empty_and_short,
}


def covers(entry: Divergence, case: Facts) -> bool:
    """Whether an entry declares the case."""
    return COVERS[entry.when](case)
