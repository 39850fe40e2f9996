"""What the presets deliberately do not reproduce, and why: one table, as data.

A preset says which NDCG a library computes. Where a library does something else besides (a bug, an order that is not
defined, an input that it refuses and the formula does not), the difference stands here with its reason. The tests hold
the table to the recorded values from both sides: a difference that is not declared fails, and so does a declared one
that has gone.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["DIVERGENCES", "Divergence", "Facts", "facts"]


@dataclass(frozen=True)
class Facts:
    """What a predicate may look at: one recorded case."""

    scores: tuple[tuple[float, ...], ...]
    """Of what was ranked, a tuple a query."""
    labels: tuple[tuple[float, ...], ...]
    """Of what was judged, a tuple a query."""
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


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """One difference between a library and its preset.

    Attributes
    ----------
    libraries : tuple of str
        As the recorded values name them.
    variants : tuple of str
        Of these libraries; empty is all.
    cases : str
        Which inputs, in words.
    covers : callable
        Whether a case is one of them.
    theirs, ours : str
        What the library does, and what is done here.
    reason : str
        Why it is not reproduced.
    example : str
    kind : {"value", "defined"}
        ``value``: the library has a value that is not reproduced. ``defined``: it raises, and here is a value.
    always : bool
        Whether every case that is covered differs. Otherwise the two may happen to agree.
    shown_by : {"golden", "live", "source"}
        Where the difference is seen: in the recorded values, in a strict expected failure against the installed
        library, or in the library's source alone.
    """

    libraries: tuple[str, ...]
    variants: tuple[str, ...] = ()
    cases: str
    covers: Callable[[Facts], bool]
    theirs: str
    ours: str
    reason: str
    example: str
    kind: str = "value"
    always: bool = True
    shown_by: str = "golden"

    def applies(self, library: str, variant: str) -> bool:
        return library in self.libraries and (not self.variants or variant in self.variants)


def facts(problem: dict[str, Any], k: int | None, weighted: bool) -> Facts:
    """The facts of a recorded case."""
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


def every_case(_: Facts) -> bool:
    return True


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


# -- the table ------------------------------------------------------------------------------------------------------

_SEEN_WITH_NAN = (
    "lightgbm",
    "xgboost",
    "catboost",
    "torchmetrics",
    "rax",
    "allRank",
    "RankLib",
    "LETOR/MSLR perl",
    "pytrec_eval",
    "trec_eval 9.0.8",
    "trec_eval 10.0",
    "ir_measures",
    "ranx",
    "recommenders",
    "pyltr",
    "ignite",
    "torchrec",
    "TFMA",
    "Transformers4Rec",
    "keras-rs on jax",
    "keras-rs on torch",
)

DIVERGENCES = (
    Divergence(
        libraries=_SEEN_WITH_NAN,
        cases="a score is NaN",
        covers=nan_score,
        theirs="rank it first, last or anywhere, each its own way, without a word",
        ours="an error that says where it is",
        reason="a NaN score has no place in a ranking; it is a bug in the model, which a number would hide",
        example="scores [5, nan, 3], labels [0, 1, 2]: LightGBM reads the NaN as 0, allRank ranks it first",
    ),
    # -- scikit-learn
    Divergence(
        libraries=("scikit-learn", "FLAML"),
        cases="a query has one document",
        covers=one_document,
        theirs="raises ValueError",
        ours="the formula: 1 if the document is relevant, else the value of an empty query",
        reason="a list of one document has a well-defined NDCG, and queries of one document are ordinary",
        example="ndcg_score([[2]], [[0.5]])",
        kind="defined",
    ),
    Divergence(
        libraries=("scikit-learn",),
        variants=("ndcg_ignore_ties",),
        cases="scores are tied",
        covers=tied,
        theirs="the order of NumPy's unstable argsort, reversed: it depends on the processor",
        ours="the reverse of the input order",
        reason="an order that differs between machines is not a definition",
        example="scores [5, 4, 3, 3, 3, 1]: already six documents come out in neither order",
        always=False,
    ),
    # -- boosting
    Divergence(
        libraries=("lightgbm",),
        cases="a label is a fraction or above 30",
        covers=fraction_or_above(30),
        theirs="a fatal error: the default label_gain is a table of the grades 0 to 30",
        ours="2^y - 1 of any label",
        reason="the formula has a value; give the gain as a table to refuse what LightGBM refuses",
        example="labels [1, 31, 0, 30]",
        kind="defined",
    ),
    Divergence(
        libraries=("lightgbm",),
        variants=("ndcg_label_gain_not_monotone",),
        cases="label_gain falls somewhere",
        covers=every_case,
        theirs="takes the documents by falling label, not by falling gain, for the ideal",
        ours="the ideal is the best order, by gain",
        reason="a bug: what is called ideal can be beaten, so that NDCG exceeds 1",
        example="label_gain=5,1,2,7,3: 1.318",
    ),
    Divergence(
        libraries=("lightgbm", "xgboost"),
        cases="queries are weighted and one has no relevant document",
        covers=weighted_with_an_empty_query,
        theirs="adds 1 for such a query whatever its weight, and divides by the sum of the weights",
        ours="the weight of the query counts",
        reason="a bug: the result is not a weighted mean and can exceed 1",
        example="weights 1, 3, 2, values 0.5, 0.6309 and an empty query: 0.7321 is the mean, 0.5655 is printed",
        always=False,
        shown_by="live",
    ),
    Divergence(
        libraries=("xgboost",),
        variants=("ndcg", "ndcg_minus"),
        cases="a label is a fraction or above 31, under the exponential gain",
        covers=fraction_or_above(31),
        theirs="an error",
        ours="2^y - 1 of any label",
        reason="the formula has a value",
        example="labels [0.25, 0.9, 0]",
        kind="defined",
    ),
    # -- torchmetrics
    Divergence(
        libraries=("torchmetrics",),
        variants=("class_neg", "class_pos", "class_skip", "class_error"),
        cases="the labels of a query sum to 0, but some are above 0",
        covers=labels_cancel,
        theirs="takes the query for an empty one",
        ours="a query is empty when its ideal DCG is 0",
        reason="the sum stands in for 'no relevant document', which it is not where labels are negative: a bug",
        example="labels [-1, 0, 1] score 0 however they are ranked, labels [-1, 0, 2] do not",
        always=False,
    ),
    Divergence(
        libraries=("torchmetrics",),
        variants=("class_skip",),
        cases="every query is empty",
        covers=only_empty_queries,
        theirs="0",
        ours="an error",
        reason="the mean of no query is not 0",
        example="one query with labels [0, 0, 0, 0]",
    ),
    Divergence(
        libraries=("torchmetrics", "rax", "recommenders"),
        cases="the ideal DCG is 0 or below, because labels are negative",
        covers=negative_and_nothing_relevant,
        theirs="divides one negative DCG by another; rax gives the DCG itself where the ideal is 0, Recommenders -inf",
        ours="the query is empty",
        reason="below 0 a ratio of DCGs says nothing about the ranking: the worst order has the largest",
        example="labels [0, -1] at k=1, the -1 ranked first: rax says -0.5",
        always=False,
        shown_by="live",
    ),
    # -- neural ranking
    *(
        Divergence(
            libraries=libraries,
            cases="a label is 128 or more",
            covers=above(127),
            theirs="2^y - 1 overflows float32: NaN",
            ours="gains are taken relative to the largest of the query",
            reason="an overflow",
            example="labels [128, 0]",
            always=False,
            shown_by=shown_by,
        )
        for libraries, shown_by in ((("rax",), "live"), (("tensorflow-ranking", "allRank"), "source"))
    ),
    Divergence(
        libraries=("tensorflow-ranking",),
        cases="queries are weighted and one has no relevant document",
        covers=weighted_with_an_empty_query,
        theirs="weighs such a query with the mean weight of the others",
        ours="the weight of the query counts",
        reason="the weight that was given is not used",
        example="weights 1, 3, 2 where the last query is empty: it counts with weight 2 by accident only",
        always=False,
        shown_by="source",
    ),
    Divergence(
        libraries=("keras-rs on jax", "keras-rs on torch"),
        cases="queries are weighted and one has no relevant document",
        covers=weighted_with_an_empty_query,
        theirs="weighs such a query with the mean weight of the others, unless its weight is 0",
        ours="the weight of the query counts",
        reason="the weight that was given is not used",
        example="weights 1, 0.5, 2, 1, the third query empty: 0.7426; the weighted mean is 0.5501",
        always=False,
        shown_by="source",
    ),
    Divergence(
        libraries=("allRank",),
        cases="a label below 0 is not -1",
        covers=negative_but_not_padding,
        theirs="-1 is padding and dropped, and other negative labels go through the gain formula",
        ours="every negative label is dropped",
        reason="-1 is how it marks padding, not a grade; that -2 is one is an accident",
        example="labels [-1, 2, 0, -2, 1, 3]",
        always=False,
    ),
    Divergence(
        libraries=("allRank",),
        cases="scores are tied in a query of more than 16 documents",
        covers=tied_beyond(16),
        theirs="the order of torch.sort, which is not stable",
        ours="the input order, as for shorter queries",
        reason="an order that is not defined",
        example="300 documents with scores rounded to one decimal",
        always=False,
        shown_by="source",
    ),
    # -- benchmarks
    Divergence(
        libraries=("RankLib",),
        cases="a label is a fraction",
        covers=fraction,
        theirs="cuts it off to an integer",
        ours="2^y - 1 of the fraction",
        reason="1.7 is not 1; round the labels first to have its number",
        example="labels [0.25, 0.9, 1.0] become 0, 0, 1",
        always=False,
    ),
    Divergence(
        libraries=("RankLib",),
        cases="a label is 32 or more",
        covers=above(31),
        theirs="(1 << y) - 1 wraps around: grade 32 gains 0, grade 33 gains 1",
        ours="2^y - 1",
        reason="an overflow",
        example="labels [32, 1]: the document of grade 32 counts as irrelevant",
        always=False,
        shown_by="source",
    ),
    # -- runs and judgements
    Divergence(
        libraries=("pytrec_eval", "ir_measures", "MTEB", "BEIR", "FlagEmbedding"),
        variants=("ndcg_cut", "ndcg", "ndcg_cut_judged_only", "ndcg_rel", "log2", "log2_judged_only", "exp_log2"),
        cases="a grade is a fraction",
        covers=fraction,
        theirs="raises: judgements are integers",
        ours="the formula",
        reason="the formula has a value",
        example="grades 0.25 and 0.9",
        kind="defined",
    ),
    Divergence(
        libraries=("trec_eval 10.0",),
        cases="the run lacks a judged topic and -c is not given",
        covers=missing_topic,
        theirs="exits with an error",
        ours="averages the topics that it is given",
        reason="which topics count is said by the caller, not by the flavor",
        example="judgements for topics 1 and 2, a run for topic 1",
        kind="defined",
        always=False,
    ),
    Divergence(
        libraries=("ranx",),
        cases="a grade is a fraction",
        covers=fraction,
        theirs="cuts it off to an integer, so that 0 < y < 1 is irrelevant",
        ours="the formula",
        reason="0.9 is not 0; round the grades first to have its number",
        example="grades 0.25, 0.9 and 1.0 become 0, 0, 1",
        always=False,
    ),
    Divergence(
        libraries=("ranx",),
        cases="scores are tied in a query of more than 15 documents",
        covers=tied_beyond(15),
        theirs="the order of an unstable sort, another one again with make_comparable=True, which sorts twice",
        ours="the order of the run, as for shorter queries",
        reason="an order that is not defined",
        example="300 documents with scores rounded to one decimal",
        always=False,
        shown_by="live",
    ),
    # -- recommender systems
    Divergence(
        libraries=("recommenders",),
        variants=("ndcg_raw", "ndcg_exp"),
        cases="every user is empty",
        covers=only_empty_queries,
        theirs="NaN",
        ours="an error",
        reason="there is nothing to average, and NaN travels far before it is noticed",
        example="one user whose ratings are all 0",
    ),
    Divergence(
        libraries=("recommenders",),
        variants=("ndcg_exp",),
        cases="a rating is below 0",
        covers=negative,
        theirs="raises where ratings are integers: NumPy refuses the negative power",
        ours="2^y - 1, as there for ratings that are floats",
        reason="the formula has a value",
        example="ratings [-1, 0, 1]",
        kind="defined",
        always=False,
    ),
    Divergence(
        libraries=("Spark MLlib",),
        variants=("scala_graded_qrels_order", "scala_graded_sorted"),
        cases="the judgements begin with negative grades, so that the DCG which divides is below 0",
        covers=negative_listed_first,
        theirs="divides one negative DCG by another",
        ours="the query is empty",
        reason="below 0 a ratio of DCGs says nothing about the ranking",
        example="grades [-1, 0, 1] at k=1",
        always=False,
    ),
    Divergence(
        libraries=("Quepid",),
        variants=("ndcg", "ndcg_cut"),
        cases="the ratings of a query are negative, and none is above 0",
        covers=negative_and_nothing_relevant,
        theirs="divides one negative DCG by another",
        ours="the query is empty",
        reason="below 0 a ratio of DCGs says nothing about the ranking: the worst order has the largest",
        example="ndcg says 0.72 and ndcg_cut 1.27",
        always=False,
        shown_by="source",
    ),
    Divergence(
        libraries=("Quepid",),
        variants=("dcg",),
        cases="one of the first k hits has no rating",
        covers=unrated_at_k,
        theirs="NaN",
        ours="the hit gains 0",
        reason="a bug: an undefined rating goes into the arithmetic; its NDCG scorers count such a hit 0",
        example="ten hits, nine rated",
    ),
    # -- retrieval-augmented generation
    Divergence(
        libraries=("mlflow",),
        cases="a document was retrieved twice",
        covers=repeats,
        theirs="takes each repeat of a relevant document for one more relevant document, in the ideal too",
        ours="an error that names the document, or what duplicates= says",
        reason="retrieving a document again does not make more documents relevant",
        example="relevant a; retrieved a, a, x: 1.0",
        always=False,
    ),
    Divergence(
        libraries=("LlamaIndex",),
        cases="nothing was retrieved for a query",
        covers=missing_topic,
        theirs="raises ValueError",
        ours="the query scores 0",
        reason="a retriever that finds nothing has failed, and 0 says so",
        example="expected a; retrieved nothing",
        kind="defined",
    ),
    Divergence(
        libraries=("pyvespa",),
        variants=("graded",),
        cases="a grade is below 0",
        covers=negative,
        theirs="raises ValueError: grades must lie between 0 and 1",
        ours="the formula",
        reason="the formula has a value; grades above 1 were divided by the largest, which changes no NDCG",
        example="grades [-1, 0, 1]",
        kind="defined",
    ),
    Divergence(
        libraries=("azure-ai-evaluation",),
        cases="a grade is a fraction",
        covers=fraction,
        theirs="raises: labels must be integers",
        ours="2^y - 1 of the fraction",
        reason="the formula has a value",
        example="grades 0.25 and 0.9",
        kind="defined",
    ),
    Divergence(
        libraries=("MTEB",),
        cases="a query was ranked, but not judged",
        covers=extra_topic,
        theirs="raises KeyError in another measure",
        ours="the query is left out, as by the evaluator that it calls",
        reason="the formula has a value",
        example="judgements for query 1, a run for queries 1 and 9",
        kind="defined",
    ),
    # -- further recommender systems
    Divergence(
        libraries=("RecTools", "Elliot", "TFMA"),
        cases="every query is empty",
        covers=only_empty_queries,
        theirs="NaN",
        ours="an error",
        reason="there is nothing to average, and NaN travels far before it is noticed",
        example="one user whose ratings are all 0",
        always=False,
    ),
    Divergence(
        libraries=("PyG",),
        cases="every query is empty",
        covers=only_empty_queries,
        theirs="0",
        ours="an error",
        reason="the mean of no query is not 0",
        example="one user without an edge",
    ),
    Divergence(
        libraries=("Elliot", "ignite"),
        variants=("threshold_1", "NDCG", "zero_hits", "linear"),
        cases="a grade lies between 0 and 1",
        covers=fraction_below_1,
        theirs="below the threshold of relevance, 1: it gains 0",
        ours="2^y - 1",
        reason="a threshold at 1 means grades that are integers",
        example="grades 0.25 and 0.9",
        always=False,
    ),
    Divergence(
        libraries=("Elliot",),
        variants=("threshold_0", "threshold_2"),
        cases="a grade is a fraction",
        covers=fraction,
        theirs="2^(y - t + 1) - 1 of the fraction",
        ours="an error: the gain is a table of grades",
        reason="its grades are ratings, which are integers; gain= takes a function for others",
        example="grades 0.25 and 0.9",
    ),
    Divergence(
        libraries=("Elliot",),
        variants=("threshold_2",),
        cases="no grade reaches the threshold of relevance",
        covers=all_below(2),
        theirs="NaN",
        ours="an error",
        reason="there is nothing to average",
        example="a threshold of 2 and grades 0 and 1",
    ),
    Divergence(
        libraries=("Elliot",),
        variants=("threshold_0",),
        cases="a grade is above 5",
        covers=above(5),
        theirs="2^(y + 1) - 1",
        ours="an error: the gain is a table of the grades 0 to 5",
        reason="its grades are ratings; give a longer table for others",
        example="grades 12 and 30",
    ),
    Divergence(
        libraries=("evidently",),
        cases="scores are tied",
        covers=tied,
        theirs="gives all tied items the mean of their ranks, cut off to an integer",
        ours="the order of the rows",
        reason="a bug: two items on one rank make NDCG exceed 1, and no item on rank 1 makes NDCG@1 zero",
        example="two relevant items with one score: NDCG@1 = 2",
        always=False,
    ),
    Divergence(
        libraries=("evidently",),
        cases="the cut-off lies beyond the last rank",
        covers=beyond_or_tied,
        theirs="raises KeyError",
        ours="the formula",
        reason="the formula has a value",
        example="k = 3 and two items",
        kind="defined",
        always=False,
    ),
    # -- further learning to rank
    Divergence(
        libraries=("torchrec",),
        variants=("one_minus",),
        cases="always, unless report_ndcg_as_decreasing_curve=False",
        covers=every_case,
        theirs="reports 1 - NDCG",
        ours="NDCG",
        reason="what is called NDCG is read as NDCG; subtract it from 1 to have its number",
        example="a perfect ranking: 0",
        always=False,
    ),
    Divergence(
        libraries=("torchrec",),
        cases="queries are weighted",
        covers=weighted,
        theirs="multiplies NDCG by the weight and divides by the number of queries",
        ours="divides by the sum of the weights",
        reason="a bug: the result is not a mean and can exceed 1",
        example="weights 1, 3, 2: twice the mean",
        always=False,
    ),
    Divergence(
        libraries=("TFMA",),
        cases="scores are tied",
        covers=tied,
        theirs="the order of NumPy's unstable argsort, reversed: it depends on the processor",
        ours="the reverse of the input order",
        reason="an order that differs between machines is not a definition",
        example="scores [5, 4, 3, 3, 3, 1]",
        always=False,
    ),
    Divergence(
        libraries=("Transformers4Rec",),
        cases="a grade is below 0",
        covers=negative,
        theirs="ranks every item there is, so that the ideal puts items of grade 0 before a negative grade",
        ours="the documents that are given",
        reason="only the caller knows the others",
        example="grades [-1, 0, 1] among items of grade 0",
        always=False,
    ),
    Divergence(
        libraries=("torchrec", "Transformers4Rec"),
        cases="scores are tied",
        covers=tied_in_float32,
        theirs="the order of torch.sort or torch.topk, which is not stable",
        ours="the input order",
        reason="an order that is not defined",
        example="scores [1, 1, 1]",
        always=False,
    ),
    Divergence(
        libraries=("keras-rs on jax", "keras-rs on torch"),
        cases="scores are tied",
        covers=tied_in_float32,
        theirs="shuffles them anew in every call",
        ours="averages over all orders, which is the expectation",
        reason="a draw is not a definition",
        example="scores [1, 1, 1], labels [0, 1, 2]: 0, 0.33 or 1 at k=1",
        always=False,
    ),
    Divergence(
        libraries=("keras-rs on torch",),
        cases="lists are padded",
        covers=padded,
        theirs="ranks padding above documents where scores are so large that 1e-7 is lost in float32",
        ours="padding is not ranked",
        reason="a bug",
        example="scores near 30",
        always=False,
    ),
    Divergence(
        libraries=("FLAML",),
        variants=("ndcg",),
        cases="there are several queries",
        covers=several_queries,
        theirs="takes the whole data set for one query",
        ours="the mean of the queries",
        reason="a bug: it is the default metric of the task 'rank'; 'ndcg@k' is by query",
        example="50 queries: 0.930 for 0.899",
    ),
)
