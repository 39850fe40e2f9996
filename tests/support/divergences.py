"""Find out whether a declared divergence covers a recorded case.

The declarations are in ``ndcg_ml.divergences``. What only the tests need to know of each is in ``CHECKS``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from ndcg_ml.divergences import DIVERGENCES, Divergence

__all__ = ["CHECKS", "Check", "Facts", "check_of", "declared", "facts"]


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


@dataclass(frozen=True)
class Check:
    """How the tests see a declared divergence."""

    when: Callable[[Facts], bool]
    """Whether a recorded case is such an input."""
    variants: tuple[str, ...] = ()
    """The recorded ways of calling the libraries that differ; empty for all."""
    kind: str = "value"
    """``value``: the library has a value that is not reproduced. ``defined``: the library raises and the preset has a
    value."""
    always: bool = False
    """Whether every such input gives a difference; if not, the two may happen to agree."""
    shown_by: str = "golden"
    """Evidence of the difference: the recorded values (``golden``), a strict expected failure with the installed
    library (``live``), or the library's source alone (``source``)."""

    def applies(self, variant: str) -> bool:
        return not self.variants or variant in self.variants


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


def fraction(case: Facts) -> bool:
    return any(label != int(label) for label in case.all_labels)


def tied(case: Facts) -> bool:
    return tied_beyond(0)(case)


def tied_beyond(n: int) -> Callable[[Facts], bool]:
    return lambda case: any(len(set(query)) < len(query) > n for query in case.scores)


def tied_in_float32(case: Facts) -> bool:
    return any(len({*np.float32(query)}) < len(query) for query in case.scores)


def above(grade: float) -> Callable[[Facts], bool]:
    return lambda case: max(case.all_labels, default=0) > grade


def fraction_or_above(grade: float) -> Callable[[Facts], bool]:
    return lambda case: fraction(case) or above(grade)(case)


def negative(case: Facts) -> bool:
    return min(case.all_labels, default=0) < 0


def nothing_relevant(labels: tuple[float, ...]) -> bool:
    return not any(label > 0 for label in labels)


def weighted_with_an_empty_query(case: Facts) -> bool:
    return case.weighted and any(map(nothing_relevant, case.labels))


def only_empty_queries(case: Facts) -> bool:
    return all(map(nothing_relevant, case.labels))


def negative_and_nothing_relevant(case: Facts) -> bool:
    return any(nothing_relevant(query) and min(query, default=0) < 0 for query in case.labels)


def negative_listed_first(case: Facts) -> bool:
    def dcg(labels: tuple[float, ...]) -> float:
        return sum((2**label - 1) / math.log2(rank + 1) for rank, label in enumerate(labels, start=1))

    return any(dcg(query[: case.k]) < 0 for query in case.labels)


def padded(case: Facts) -> bool:
    return len({len(query) for query in case.scores}) > 1


def every_case(_: Facts) -> bool:
    return True


CHECKS: dict[tuple[str, str], Check] = {
    ("lightgbm", "a score is NaN"): Check(lambda case: any(map(math.isnan, sum(case.scores, ()))), always=True),
    ("sklearn", "a query has one document"): Check(
        lambda case: any(len(query) == 1 for query in case.labels), kind="defined", always=True),
    ("sklearn_ignore_ties", "scores are tied"): Check(tied),
    ("lightgbm", "a label is a fraction or above 30"): Check(fraction_or_above(30), kind="defined", always=True),
    ("lightgbm", "a higher grade has a smaller label_gain"): Check(
        every_case, variants=("ndcg_label_gain_not_monotone",), always=True),
    ("lightgbm", "queries are weighted and one has no relevant document"): Check(
        weighted_with_an_empty_query, shown_by="live"),
    ("xgboost", "the gain is exponential and a label is a fraction or above 31"): Check(
        fraction_or_above(31), variants=("ndcg", "ndcg_minus"), kind="defined", always=True),
    ("torchmetrics", "the labels of a query sum to 0, but some are above 0"): Check(
        lambda case: any(sum(query) == 0 and not nothing_relevant(query) for query in case.labels),
        variants=("class_neg", "class_pos", "class_skip", "class_error")),
    ("torchmetrics_skip", "every query is empty"): Check(only_empty_queries, variants=("class_skip",), always=True),
    ("torchmetrics", "the ideal DCG is 0 or below, because labels are negative"): Check(
        negative_and_nothing_relevant, shown_by="live"),
    ("rax", "a label is 128 or more"): Check(above(127), shown_by="live"),
    ("tensorflow_ranking", "a label is 128 or more"): Check(above(127), shown_by="source"),
    ("pytorchltr", "a label is 128 or more"): Check(above(127), variants=("exponential", "ndcg_at_ks")),
    ("rankeval", "a label is 128 or more"): Check(above(127), variants=("exp", "evaluate_predictions")),
    ("tensorflow_ranking", "queries are weighted and one has no relevant document"): Check(
        weighted_with_an_empty_query, shown_by="source"),
    ("allrank", "a label below 0 is not -1"): Check(
        lambda case: any(label < 0 and label != -1 for label in case.all_labels)),
    ("allrank", "scores are tied in a query of more than 16 documents"): Check(tied_beyond(16), shown_by="source"),
    ("ranklib", "a label is a fraction"): Check(fraction),
    ("ranklib", "a label is 32 or more"): Check(above(31), shown_by="source"),
    ("pytrec_eval", "a grade is a fraction"): Check(
        fraction,
        variants=("ndcg_cut", "ndcg", "ndcg_cut_judged_only", "ndcg_rel", "log2", "log2_judged_only", "exp_log2"),
        kind="defined", always=True),
    ("trec_eval", "a grade is a fraction"): Check(
        fraction, variants=("ndcg", "ndcg_cut"), shown_by="source"),
    ("trec_eval10", "the run lacks a judged topic and -c is not given"): Check(
        attrgetter("missing_topic"), kind="defined"),
    ("ranx", "a grade is a fraction"): Check(fraction),
    ("ranx", "scores are tied in a query of more than 15 documents"): Check(tied_beyond(15), shown_by="live"),
    ("recommenders_raw", "every user is empty"): Check(
        only_empty_queries, variants=("ndcg_raw", "ndcg_exp"), always=True),
    ("recommenders_exp", "a rating is below 0"): Check(negative, variants=("ndcg_exp",), kind="defined"),
    (
        "spark_graded",
        "the judgements begin with negative grades, so that the DCG in the denominator is negative",
    ): Check(negative_listed_first, variants=("scala_graded_qrels_order", "scala_graded_sorted")),
    ("quepid", "the ratings of a query are negative, and none is above 0"): Check(
        negative_and_nothing_relevant, variants=("ndcg", "ndcg_cut"), shown_by="source"),
    ("quepid", "one of the first k hits has no rating"): Check(
        attrgetter("unrated_at_k"), variants=("dcg",), always=True),
    ("mlflow", "a document was retrieved twice"): Check(attrgetter("repeats")),
    ("llama_index", "nothing was retrieved for a query"): Check(
        attrgetter("missing_topic"), kind="defined", always=True),
    ("vespa", "a grade is below 0"): Check(negative, variants=("graded",), kind="defined", always=True),
    ("azure_ai_evaluation", "a grade is a fraction"): Check(fraction, kind="defined", always=True),
    ("mteb", "a query was ranked but not judged"): Check(attrgetter("extra_topic"), kind="defined", always=True),
    ("tfma", "every query is empty"): Check(only_empty_queries),
    ("pyg", "every query is empty"): Check(only_empty_queries, always=True),
    ("ignite", "a grade is between 0 and 1"): Check(
        lambda case: any(0 < label < 1 for label in case.all_labels),
        variants=("threshold_1", "NDCG", "zero_hits", "linear")),
    ("elliot", "a grade is a fraction"): Check(fraction, variants=("threshold_0", "threshold_2"), always=True),
    ("elliot", "no grade reaches the threshold of relevance"): Check(
        lambda case: max(case.all_labels, default=0) < 2, variants=("threshold_2",), always=True),
    ("elliot", "a grade is above 5"): Check(above(5), variants=("threshold_0",), always=True),
    ("evidently", "scores are tied"): Check(tied),
    ("evidently", "the cut-off exceeds the number of ranks"): Check(
        lambda case: tied(case) or (case.k is not None and case.k > max(map(len, case.scores))), kind="defined"),
    ("torchrec", "the option report_ndcg_as_decreasing_curve is True, the default"): Check(
        every_case, variants=("one_minus",)),
    ("torchrec", "queries are weighted"): Check(attrgetter("weighted")),
    ("transformers4rec", "a grade is below 0"): Check(negative),
    ("torchrec", "scores are tied"): Check(tied_in_float32),
    ("keras_rs", "scores are tied"): Check(tied_in_float32),
    ("keras_rs", "lists are padded"): Check(padded, variants=("NDCG on torch",)),
    ("flaml", "the data have several queries"): Check(
        lambda case: len(case.labels) > 1, variants=("ndcg",), always=True),
    ("pytorchltr", "the labels of a query are negative, and none is above 0"): Check(negative_and_nothing_relevant),
    ("ptranking", "a query without a relevant document has fewer than k documents"): Check(
        lambda case: (
            case.k is not None and any(nothing_relevant(query) and len(query) < case.k for query in case.labels)
        )
    ),
    ("whylogs", "scores are tied"): Check(tied),
    ("whylogs", "queries have different numbers of documents"): Check(padded, kind="defined"),
    ("rankereval", "a grade is below 0"): Check(negative),
    ("rankereval", "the option relevance_scaling is 'power'"): Check(every_case, variants=("power_2",)),
}  # fmt: skip
"""The check of each declared divergence, by its first preset and its cases."""


def check_of(entry: Divergence) -> Check:
    """Return the check of a declared divergence."""
    return CHECKS[entry.presets[0], entry.cases]


def declared(preset: str, variant: str, case: Facts) -> list[tuple[Divergence, Check]]:
    """Return the declared divergences that cover a recorded case of a preset, with their checks."""
    mine = [(entry, check_of(entry)) for entry in DIVERGENCES if preset in entry.presets]
    return [(entry, check) for entry, check in mine if check.applies(variant) and check.when(case)]
