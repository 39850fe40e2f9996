"""Differences between libraries and their presets, and the reasons: one table, as data.

A preset reproduces the NDCG that a library computes, except for bugs, undefined orders, and inputs that the library
rejects although the formula has a value. The tests compare this table with the recorded values in both directions: an
undeclared difference fails, and so does a declared one that no longer occurs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """One difference between a library and its preset.

    Attributes
    ----------
    presets : tuple of str
        The presets of the libraries that differ.
    cases : str
        The inputs that are affected, in words.
    theirs, ours : str
        Behaviour of the library and of the preset, in sentences.
    reason : str
        Reason for not reproducing it, in sentences.
    example : str
        Such an input, and what the library computes.
    """

    presets: tuple[str, ...]
    cases: str
    theirs: str
    ours: str
    reason: str
    example: str

    def __str__(self) -> str:
        return f"{self.cases[0].upper()}{self.cases[1:]}. {self.theirs} {self.ours}"


def declared(preset: str) -> tuple[Divergence, ...]:
    """Return the differences of a preset."""
    return tuple(entry for entry in DIVERGENCES if preset in entry.presets)


_NAN_PRESETS = (
    "lightgbm",
    "xgboost",
    "catboost",
    "torchmetrics",
    "trec_eval",
    "lightgbm_linear",
    "xgboost_minus",
    "xgboost_linear",
    "catboost_exp",
    "catboost_position",
    "catboost_exp_position",
    "torchmetrics_pos",
    "torchmetrics_skip",
    "rax",
    "allrank",
    "ranklib",
    "letor3",
    "letor4",
    "mslr",
    "trec_eval10",
    "pytrec_eval",
    "ir_measures",
    "ir_measures_exp",
    "ranx",
    "ranx_burges",
    "recommenders_binary",
    "recommenders_raw",
    "recommenders_exp",
    "torchrec",
    "ignite",
    "tfma",
    "transformers4rec",
    "pyltr",
    "keras_rs",
    "whylogs",
    "pytorchltr",
    "rankeval",
    "ptranking",
    "ydf",
)

DIVERGENCES = (
    Divergence(
        presets=_NAN_PRESETS,
        cases="a score is NaN",
        theirs="The library silently ranks it first, last or anywhere.",
        ours="ndcg_ml raises an error that says where it is.",
        reason="A NaN score has no place in a ranking. It is a bug in the model, which a number would hide.",
        example="with scores [5, nan, 3] and labels [0, 1, 2], LightGBM reads the NaN as 0 and allRank ranks it first",
    ),
    # -- scikit-learn
    Divergence(
        presets=("sklearn", "sklearn_ignore_ties", "flaml"),
        cases="a query has one document",
        theirs="The library raises ValueError.",
        ours="ndcg_ml returns 1 if the document is relevant, and otherwise the value of an empty query.",
        reason="The formula is defined for one document, and such queries are common.",
        example="ndcg_score([[2]], [[0.5]])",
    ),
    Divergence(
        presets=("sklearn_ignore_ties", "tfma", "rankeval"),
        cases="scores are tied",
        theirs="The library reverses the order of NumPy's unstable argsort, which depends on the processor.",
        ours="ndcg_ml ranks them in the reverse of the input order.",
        reason="An order that differs between machines is not a definition.",
        example="with scores [5, 4, 3, 3, 3, 1], the six documents already come out in neither order",
    ),
    # -- boosting
    Divergence(
        presets=("lightgbm", "lightgbm_linear"),
        cases="a label is a fraction or above 30",
        theirs="The library raises a fatal error, because its default label_gain is a table of the grades 0 to 30.",
        ours="ndcg_ml uses 2^y - 1 for any label.",
        reason="The formula is defined for this input. To raise an error as LightGBM does, pass the gain as a table.",
        example="labels [1, 31, 0, 30]",
    ),
    Divergence(
        presets=("lightgbm",),
        cases="a higher grade has a smaller label_gain",
        theirs="The library sorts documents by label, not by gain, to compute the ideal.",
        ours="ndcg_ml sorts them by gain.",
        reason="This is a bug: a ranking can exceed this ideal, so NDCG can exceed 1.",
        example="label_gain=5,1,2,7,3 gives 1.318",
    ),
    Divergence(
        presets=("lightgbm", "xgboost", "lightgbm_linear", "xgboost_minus", "xgboost_linear"),
        cases="queries are weighted and one has no relevant document",
        theirs="The library adds 1 for such a query, whatever its weight, and divides by the sum of the weights.",
        ours="ndcg_ml uses the query's weight.",
        reason="This is a bug: the result is not a weighted mean and can exceed 1.",
        example="weights 1, 3, 2, values 0.5, 0.6309 and an empty query: the mean is 0.7321, the library prints 0.5655",
    ),
    Divergence(
        presets=("xgboost", "xgboost_minus"),
        cases="the gain is exponential and a label is a fraction or above 31",
        theirs="The library raises an error.",
        ours="ndcg_ml uses 2^y - 1 for any label.",
        reason="The formula is defined for this input.",
        example="labels [0.25, 0.9, 0]",
    ),
    # -- torchmetrics
    Divergence(
        presets=("torchmetrics", "torchmetrics_pos", "torchmetrics_skip"),
        cases="the labels of a query sum to 0, but some are above 0",
        theirs="The library treats the query as empty.",
        ours="ndcg_ml treats a query as empty if its ideal DCG is 0.",
        reason="This is a bug: with negative labels, a sum of 0 does not mean that no document is relevant.",
        example="labels [-1, 0, 1] score 0 in any order, and labels [-1, 0, 2] do not",
    ),
    Divergence(
        presets=("torchmetrics_skip",),
        cases="every query is empty",
        theirs="The library returns 0.",
        ours="ndcg_ml raises an error.",
        reason="The mean of no queries is not 0.",
        example="one query with labels [0, 0, 0, 0]",
    ),
    Divergence(
        presets=(
            "torchmetrics",
            "torchmetrics_pos",
            "torchmetrics_skip",
            "rax",
            "recommenders_binary",
            "recommenders_raw",
            "recommenders_exp",
        ),
        cases="the ideal DCG is 0 or below, because labels are negative",
        theirs="The library divides one negative DCG by another. With ideal 0, rax returns the DCG, Recommenders -inf.",
        ours="ndcg_ml treats the query as empty.",
        reason="A ratio of two negative DCGs does not measure the ranking: the worst order has the largest ratio.",
        example="with labels [0, -1] at k = 1 and the -1 ranked first, rax returns -0.5",
    ),
    # -- neural ranking
    *(
        Divergence(
            presets=presets,
            cases="a label is 128 or more",
            theirs=f"2^y - 1 overflows float32, and {value}.",
            ours="ndcg_ml computes gains relative to the largest gain of the query.",
            reason="This is an overflow.",
            example="labels [128, 0]",
        )
        for presets, value in (
            (("rax",), "the result is NaN"),
            (("tensorflow_ranking", "allrank"), "the result is NaN"),
            (("pytorchltr", "ptranking"), "the result is NaN"),
            (("rankeval", "ydf"), "the result is 0"),
        )
    ),
    Divergence(
        presets=("tensorflow_ranking", "keras_rs"),
        cases="queries are weighted and one has no relevant document",
        theirs="The library gives such a query the mean weight of the others. KerasRS keeps a weight of 0.",
        ours="ndcg_ml uses the query's weight.",
        reason="The library ignores the weight that was given.",
        example="weights 1, 0.5, 2, 1 and an empty third query: KerasRS returns 0.7426, the weighted mean is 0.5501",
    ),
    Divergence(
        presets=("allrank",),
        cases="a label below 0 is not -1",
        theirs="The library drops label -1 as padding and applies the gain formula to other negative labels.",
        ours="ndcg_ml drops every document with a negative label.",
        reason="The library uses -1 to mark padding, not as a grade. That -2 is not padding is an accident.",
        example="labels [-1, 2, 0, -2, 1, 3]",
    ),
    Divergence(
        presets=("allrank", "ptranking"),
        cases="scores are tied in a query of more than 16 documents",
        theirs="The library ranks them in the order of torch.sort, which is not stable.",
        ours="ndcg_ml ranks them in input order, as in shorter queries.",
        reason="The library does not define this order.",
        example="300 documents with scores rounded to one decimal",
    ),
    # -- benchmarks
    Divergence(
        presets=("ranklib",),
        cases="a label is a fraction",
        theirs="The library truncates it to an integer.",
        ours="ndcg_ml uses 2^y - 1 of the fraction.",
        reason="A label of 1.7 is not 1. To get the library's value, truncate the labels first.",
        example="labels [0.25, 0.9, 1.0] become 0, 0, 1",
    ),
    Divergence(
        presets=("ranklib",),
        cases="a label is 32 or more",
        theirs="The library computes (1 << y) - 1, which wraps around: grade 32 has gain 0 and grade 33 has gain 1.",
        ours="ndcg_ml uses 2^y - 1.",
        reason="This is an overflow.",
        example="with labels [32, 1], the document of grade 32 is not relevant",
    ),
    # -- runs and judgements
    Divergence(
        presets=("pytrec_eval", "ir_measures", "ir_measures_exp", "mteb", "beir", "flagembedding"),
        cases="a grade is a fraction",
        theirs="The library raises an error, because judgements must be integers.",
        ours="ndcg_ml applies the formula.",
        reason="The formula is defined for this input.",
        example="grades 0.25 and 0.9",
    ),
    Divergence(
        presets=("trec_eval", "trec_eval10"),
        cases="a grade is a fraction",
        theirs="The program truncates it to an integer.",
        ours="ndcg_ml applies the formula, and evaluate_run warns.",
        reason="A grade of 1.667 is not 1. To get the program's value, truncate the grades first.",
        example="grades 1.667 and 1 are equal for trec_eval",
    ),
    Divergence(
        presets=("trec_eval10",),
        cases="the run lacks a judged topic and -c is not given",
        theirs="The library exits with an error.",
        ours="ndcg_ml averages the topics that it receives.",
        reason="You choose the topics, not the flavor.",
        example="judgements for topics 1 and 2 and a run for topic 1",
    ),
    Divergence(
        presets=("ranx", "ranx_burges"),
        cases="a grade is a fraction",
        theirs="The library truncates it to an integer, so that 0 < y < 1 is not relevant.",
        ours="ndcg_ml applies the formula.",
        reason="A grade of 0.9 is not 0. To get the library's value, truncate the grades first.",
        example="grades 0.25, 0.9 and 1.0 become 0, 0, 1",
    ),
    Divergence(
        presets=("ranx", "ranx_burges"),
        cases="scores are tied in a query of more than 15 documents",
        theirs="The library uses an unstable sort. make_comparable=True sorts twice and gives another order.",
        ours="ndcg_ml ranks them in the order of the run, as in shorter queries.",
        reason="The library does not define this order.",
        example="300 documents with scores rounded to one decimal",
    ),
    # -- recommender systems
    Divergence(
        presets=("recommenders_raw", "recommenders_exp"),
        cases="every user is empty",
        theirs="The library returns NaN.",
        ours="ndcg_ml raises an error.",
        reason="There is nothing to average, and a NaN may go unnoticed for long.",
        example="one user whose ratings are all 0",
    ),
    Divergence(
        presets=("recommenders_exp",),
        cases="a rating is below 0",
        theirs="The library raises an error if ratings are integers, because NumPy rejects the negative power.",
        ours="ndcg_ml uses 2^y - 1, as the library does for float ratings.",
        reason="The formula is defined for this input.",
        example="ratings [-1, 0, 1]",
    ),
    Divergence(
        presets=("spark_graded",),
        cases="the judgements begin with negative grades, so that the DCG in the denominator is negative",
        theirs="The library divides one negative DCG by another.",
        ours="ndcg_ml treats the query as empty.",
        reason="A ratio of two negative DCGs does not measure the ranking.",
        example="grades [-1, 0, 1] at k = 1",
    ),
    Divergence(
        presets=("quepid", "quepid_cut"),
        cases="the ratings of a query are negative, and none is above 0",
        theirs="The library divides one negative DCG by another.",
        ours="ndcg_ml treats the query as empty.",
        reason="A ratio of two negative DCGs does not measure the ranking: the worst order has the largest ratio.",
        example="ndcg returns 0.72 and ndcg_cut 1.27",
    ),
    Divergence(
        presets=("quepid",),
        cases="one of the first k hits has no rating",
        theirs="The library returns NaN.",
        ours="ndcg_ml gives the hit gain 0.",
        reason="This is a bug: arithmetic with an undefined rating. The library's NDCG scorers use gain 0.",
        example="ten hits, nine of them rated",
    ),
    # -- retrieval-augmented generation
    Divergence(
        presets=("mlflow",),
        cases="a document was retrieved twice",
        theirs="The library counts each repeat of a relevant document as another relevant document, also in the ideal.",
        ours="ndcg_ml raises an error that names the document, or does what duplicates= says.",
        reason="Retrieving a document again does not add a relevant document.",
        example="with relevant a and retrieved a, a, x, the library returns 1.0",
    ),
    Divergence(
        presets=("llama_index",),
        cases="nothing was retrieved for a query",
        theirs="The library raises ValueError.",
        ours="ndcg_ml scores the query 0.",
        reason="A retriever that returns nothing has failed, and 0 says so.",
        example="expected a, retrieved nothing",
    ),
    Divergence(
        presets=("vespa",),
        cases="a grade is below 0",
        theirs="The library raises ValueError, because grades must be between 0 and 1.",
        ours="ndcg_ml applies the formula.",
        reason="The formula is defined for this input. To compare, grades were divided by the largest.",
        example="grades [-1, 0, 1]",
    ),
    Divergence(
        presets=("azure_ai_evaluation",),
        cases="a grade is a fraction",
        theirs="The library raises an error, because labels must be integers.",
        ours="ndcg_ml uses 2^y - 1 of the fraction.",
        reason="The formula is defined for this input.",
        example="grades 0.25 and 0.9",
    ),
    Divergence(
        presets=("mteb",),
        cases="a query was ranked but not judged",
        theirs="The library raises KeyError in another measure.",
        ours="ndcg_ml excludes the query, as does the evaluator that the library calls.",
        reason="The formula is defined for this input.",
        example="judgements for query 1 and a run for queries 1 and 9",
    ),
    # -- further recommender systems
    Divergence(
        presets=("tfma", "rectools", "rectools_achievable", "elliot"),
        cases="every query is empty",
        theirs="The library returns NaN.",
        ours="ndcg_ml raises an error.",
        reason="There is nothing to average, and a NaN may go unnoticed for long.",
        example="one user whose ratings are all 0",
    ),
    Divergence(
        presets=("pyg",),
        cases="every query is empty",
        theirs="The library returns 0.",
        ours="ndcg_ml raises an error.",
        reason="The mean of no queries is not 0.",
        example="one user without an edge",
    ),
    Divergence(
        presets=("ignite", "elliot"),
        cases="a grade is between 0 and 1",
        theirs="The library uses gain 0, because the grade is below the relevance threshold of 1.",
        ours="ndcg_ml uses 2^y - 1.",
        reason="A threshold of 1 is meant for integer grades.",
        example="grades 0.25 and 0.9",
    ),
    Divergence(
        presets=("elliot",),
        cases="a grade is a fraction",
        theirs="The library uses 2^(y - t + 1) - 1 of the fraction.",
        ours="ndcg_ml raises an error, because the gain is a table of grades.",
        reason="The library's grades are ratings, which are integers. For other grades, pass a function as gain=.",
        example="grades 0.25 and 0.9",
    ),
    Divergence(
        presets=("elliot",),
        cases="no grade reaches the threshold of relevance",
        theirs="The library returns NaN.",
        ours="ndcg_ml raises an error.",
        reason="There is nothing to average.",
        example="a threshold of 2 and grades 0 and 1",
    ),
    Divergence(
        presets=("elliot",),
        cases="a grade is above 5",
        theirs="The library uses 2^(y + 1) - 1.",
        ours="ndcg_ml raises an error, because the gain is a table of the grades 0 to 5.",
        reason="The library's grades are ratings. For higher grades, pass a longer table.",
        example="grades 12 and 30",
    ),
    Divergence(
        presets=("evidently",),
        cases="scores are tied",
        theirs="The library gives all tied items the mean of their ranks, truncated to an integer.",
        ours="ndcg_ml ranks them in the order of the rows.",
        reason="This is a bug: with two items on one rank NDCG can exceed 1, and with no item on rank 1 NDCG@1 is 0.",
        example="two relevant items with the same score have NDCG@1 = 2",
    ),
    Divergence(
        presets=("evidently",),
        cases="the cut-off exceeds the number of ranks",
        theirs="The library raises KeyError.",
        ours="ndcg_ml applies the formula.",
        reason="The formula is defined for this input.",
        example="k = 3 and two items",
    ),
    # -- further learning to rank
    Divergence(
        presets=("torchrec",),
        cases="the option report_ndcg_as_decreasing_curve is True, the default",
        theirs="The library reports 1 - NDCG.",
        ours="ndcg_ml returns NDCG.",
        reason="Readers expect NDCG under this name. To get the library's value, subtract it from 1.",
        example="a perfect ranking has the value 0",
    ),
    Divergence(
        presets=("torchrec",),
        cases="queries are weighted",
        theirs="The library multiplies NDCG by the weight and divides by the number of queries.",
        ours="ndcg_ml divides by the sum of the weights.",
        reason="This is a bug: the result is not a mean and can exceed 1.",
        example="with weights 1, 3, 2, the library returns twice the mean",
    ),
    Divergence(
        presets=("transformers4rec",),
        cases="a grade is below 0",
        theirs="The library ranks all items, so the ideal has items of grade 0 before those of negative grade.",
        ours="ndcg_ml ranks the documents that it receives.",
        reason="Only the caller has the other items.",
        example="grades [-1, 0, 1] among items of grade 0",
    ),
    Divergence(
        presets=("torchrec", "transformers4rec"),
        cases="scores are tied",
        theirs="The library ranks them in the order of torch.sort or torch.topk, which is not stable.",
        ours="ndcg_ml ranks them in input order.",
        reason="The library does not define this order.",
        example="scores [1, 1, 1]",
    ),
    Divergence(
        presets=("keras_rs", "pytorchltr"),
        cases="scores are tied",
        theirs="The library shuffles them in every call.",
        ours="ndcg_ml averages over all orders, which gives the expected value.",
        reason="A random draw is not a definition.",
        example="with scores [1, 1, 1] and labels [0, 1, 2], NDCG@1 is 0, 0.33 or 1",
    ),
    Divergence(
        presets=("keras_rs",),
        cases="lists are padded",
        theirs="The library ranks padding above documents if scores are so large that float32 loses 1e-7.",
        ours="ndcg_ml does not rank padding.",
        reason="This is a bug.",
        example="scores near 30",
    ),
    Divergence(
        presets=("flaml",),
        cases="the data have several queries",
        theirs="The library treats the whole data set as one query.",
        ours="ndcg_ml returns the mean of the queries.",
        reason="This is a bug in the default metric of the task 'rank'. The metric 'ndcg@k' is computed per query.",
        example="with 50 queries, the library returns 0.930 and the mean is 0.899",
    ),
    Divergence(
        presets=("pytorchltr", "rankeval", "ptranking", "ydf"),
        cases="the labels of a query are negative, and none is above 0",
        theirs="The library divides a negative DCG by another. For ideal 0, pytorchltr divides by 1, PT-Ranking by 0.",
        ours="ndcg_ml treats the query as empty.",
        reason="A ratio of two negative DCGs does not measure the ranking: the worst order has the largest ratio.",
        example="with labels [0, -1] at k = 1 and the -1 ranked first, pytorchltr returns -0.5",
    ),
    Divergence(
        presets=("ptranking",),
        cases="a query without a relevant document has fewer than k documents",
        theirs="The library returns 0, as for every list that is shorter than k.",
        ours="ndcg_ml returns NaN, as for every query without a relevant document.",
        reason="ndcg_ml uses one rule for every k. The library's data loaders exclude such queries.",
        example="two documents of grade 0 and k = 10",
    ),
    Divergence(
        presets=("whylogs",),
        cases="scores are tied",
        theirs="The library ranks them in the order of NumPy's unstable argsort, which depends on the processor.",
        ours="ndcg_ml ranks them in input order.",
        reason="An order that differs between machines is not a definition.",
        example="twelve documents with scores 0, 1 and 2",
    ),
    Divergence(
        presets=("whylogs",),
        cases="queries have different numbers of documents",
        theirs="The library raises ValueError if k exceeds the length of a query, or if a shorter query is empty.",
        ours="ndcg_ml applies the formula.",
        reason="The formula is defined for this input.",
        example="12 and 9 documents and k = 10",
    ),
    Divergence(
        presets=("rankereval",),
        cases="a grade is below 0",
        theirs="The library excludes documents of grade 0 from the ideal, so that negative grades take their place.",
        ours="ndcg_ml uses the best order.",
        reason="This is a bug: a ranking can exceed this ideal.",
        example="with grades 2, 0 and -1, the ideal is 2, -1",
    ),
    Divergence(
        presets=("rankereval",),
        cases="the option relevance_scaling is 'power'",
        theirs="The library uses y^2 - 1, so grade 0 has gain -1 and grade 1 has gain 0.",
        ours="ndcg_ml uses 2^y - 1, as the library's documentation says.",
        reason="This is a bug: values range from below -50 to above 9.",
        example="one document of grade 1 gives 0 / 0",
    ),
)
