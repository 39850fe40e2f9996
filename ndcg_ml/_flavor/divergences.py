"""Differences between libraries and their presets, and the reasons: one table, as data.

A preset reproduces the NDCG that a library computes, except for bugs, undefined orders, and inputs that the library
refuses and the formula does not. The tests compare this table with the recorded values in both directions: an
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
    variants : tuple of str
        The recorded ways of calling these libraries that differ; empty for all.
    cases : str
        The inputs that are affected, in words.
    when : str
        Name of the test for such an input.
    theirs, ours : str
        Behaviour of the library and of the preset.
    reason : str
        Reason for not reproducing it.
    example : str
    kind : {"value", "defined"}
        ``value``: the library has a value that is not reproduced. ``defined``: the library raises and the preset has a
        value.
    always : bool
        Whether every such input gives a difference. Otherwise the two may happen to agree.
    shown_by : {"golden", "live", "source"}
        Evidence of the difference: the recorded values, a strict expected failure with the installed library, or the
        library's source alone.
    """

    presets: tuple[str, ...]
    variants: tuple[str, ...] = ()
    cases: str
    when: str
    theirs: str
    ours: str
    reason: str
    example: str
    kind: str = "value"
    always: bool = True
    shown_by: str = "golden"

    def applies(self, preset: str, variant: str) -> bool:
        return preset in self.presets and (not self.variants or variant in self.variants)

    def __str__(self) -> str:
        return f"{self.cases}: there {self.theirs}; here {self.ours}"


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
        when="nan_score",
        theirs="silently rank it first, last or anywhere",
        ours="an error that says where it is",
        reason="a NaN score has no place in a ranking; it is a bug in the model, which a number would hide",
        example="scores [5, nan, 3], labels [0, 1, 2]: LightGBM reads the NaN as 0, allRank ranks it first",
    ),
    # -- scikit-learn
    Divergence(
        presets=("sklearn", "sklearn_ignore_ties", "flaml"),
        cases="a query has one document",
        when="one_document",
        theirs="raises ValueError",
        ours="the formula: 1 if the document is relevant, else the value of an empty query",
        reason="a list of one document has a well-defined NDCG, and queries of one document are ordinary",
        example="ndcg_score([[2]], [[0.5]])",
        kind="defined",
    ),
    Divergence(
        variants=("ndcg_ignore_ties",),
        presets=("sklearn_ignore_ties",),
        cases="scores are tied",
        when="tied",
        theirs="the order of NumPy's unstable argsort, reversed: it depends on the processor",
        ours="the reverse of the input order",
        reason="an order that differs between machines is not a definition",
        example="scores [5, 4, 3, 3, 3, 1]: already six documents come out in neither order",
        always=False,
    ),
    # -- boosting
    Divergence(
        presets=("lightgbm", "lightgbm_linear"),
        cases="a label is a fraction or above 30",
        when="fraction_or_above_30",
        theirs="a fatal error: the default label_gain is a table of the grades 0 to 30",
        ours="2^y - 1 of any label",
        reason="the formula has a value; give the gain as a table to refuse what LightGBM refuses",
        example="labels [1, 31, 0, 30]",
        kind="defined",
    ),
    Divergence(
        variants=("ndcg_label_gain_not_monotone",),
        presets=("lightgbm",),
        cases="label_gain falls somewhere",
        when="every_case",
        theirs="takes the documents by falling label, not by falling gain, for the ideal",
        ours="the ideal is the best order, by gain",
        reason="a bug: what is called ideal can be beaten, so that NDCG exceeds 1",
        example="label_gain=5,1,2,7,3: 1.318",
    ),
    Divergence(
        presets=("lightgbm", "xgboost", "lightgbm_linear", "xgboost_minus", "xgboost_linear"),
        cases="queries are weighted and one has no relevant document",
        when="weighted_with_an_empty_query",
        theirs="adds 1 for such a query whatever its weight, and divides by the sum of the weights",
        ours="the weight of the query counts",
        reason="a bug: the result is not a weighted mean and can exceed 1",
        example="weights 1, 3, 2, values 0.5, 0.6309 and an empty query: 0.7321 is the mean, 0.5655 is printed",
        always=False,
        shown_by="live",
    ),
    Divergence(
        variants=("ndcg", "ndcg_minus"),
        presets=("xgboost", "xgboost_minus"),
        cases="a label is a fraction or above 31, under the exponential gain",
        when="fraction_or_above_31",
        theirs="an error",
        ours="2^y - 1 of any label",
        reason="the formula has a value",
        example="labels [0.25, 0.9, 0]",
        kind="defined",
    ),
    # -- torchmetrics
    Divergence(
        variants=("class_neg", "class_pos", "class_skip", "class_error"),
        presets=("torchmetrics", "torchmetrics_pos", "torchmetrics_skip"),
        cases="the labels of a query sum to 0, but some are above 0",
        when="labels_cancel",
        theirs="takes the query for an empty one",
        ours="a query is empty when its ideal DCG is 0",
        reason="the sum stands in for 'no relevant document', which it is not where labels are negative: a bug",
        example="labels [-1, 0, 1] score 0 however they are ranked, labels [-1, 0, 2] do not",
        always=False,
    ),
    Divergence(
        variants=("class_skip",),
        presets=("torchmetrics_skip",),
        cases="every query is empty",
        when="only_empty_queries",
        theirs="0",
        ours="an error",
        reason="the mean of no query is not 0",
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
        when="negative_and_nothing_relevant",
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
            variants=variants,
            presets=presets,
            cases="a label is 128 or more",
            when="above_127",
            theirs=f"2^y - 1 overflows float32: {value}",
            ours="gains are taken relative to the largest of the query",
            reason="an overflow",
            example="labels [128, 0]",
            always=False,
            shown_by=shown_by,
        )
        for presets, variants, value, shown_by in (
            (("rax",), (), "NaN", "live"),
            (("tensorflow_ranking", "allrank"), (), "NaN", "source"),
            (("pytorchltr", "ptranking"), ("exponential", "ndcg_at_ks"), "NaN", "golden"),
            (("rankeval", "ydf"), ("exp", "evaluate_predictions"), "the ideal is infinite and the value 0", "golden"),
        )
    ),
    Divergence(
        presets=("tensorflow_ranking",),
        cases="queries are weighted and one has no relevant document",
        when="weighted_with_an_empty_query",
        theirs="weighs such a query with the mean weight of the others",
        ours="the weight of the query counts",
        reason="the weight that was given is not used",
        example="weights 1, 3, 2 where the last query is empty: it counts with weight 2 by accident only",
        always=False,
        shown_by="source",
    ),
    Divergence(
        presets=("keras_rs",),
        cases="queries are weighted and one has no relevant document",
        when="weighted_with_an_empty_query",
        theirs="weighs such a query with the mean weight of the others, unless its weight is 0",
        ours="the weight of the query counts",
        reason="the weight that was given is not used",
        example="weights 1, 0.5, 2, 1, the third query empty: 0.7426; the weighted mean is 0.5501",
        always=False,
        shown_by="source",
    ),
    Divergence(
        presets=("allrank",),
        cases="a label below 0 is not -1",
        when="negative_but_not_padding",
        theirs="-1 is padding and dropped, and other negative labels go through the gain formula",
        ours="every negative label is dropped",
        reason="-1 is how it marks padding, not a grade; that -2 is one is an accident",
        example="labels [-1, 2, 0, -2, 1, 3]",
        always=False,
    ),
    Divergence(
        presets=("allrank", "ptranking"),
        cases="scores are tied in a query of more than 16 documents",
        when="tied_beyond_16",
        theirs="the order of torch.sort, which is not stable",
        ours="the input order, as for shorter queries",
        reason="an order that is not defined",
        example="300 documents with scores rounded to one decimal",
        always=False,
        shown_by="source",
    ),
    # -- benchmarks
    Divergence(
        presets=("ranklib",),
        cases="a label is a fraction",
        when="fraction",
        theirs="cuts it off to an integer",
        ours="2^y - 1 of the fraction",
        reason="1.7 is not 1; round the labels first to have its number",
        example="labels [0.25, 0.9, 1.0] become 0, 0, 1",
        always=False,
    ),
    Divergence(
        presets=("ranklib",),
        cases="a label is 32 or more",
        when="above_31",
        theirs="(1 << y) - 1 wraps around: grade 32 has gain 0, grade 33 has gain 1",
        ours="2^y - 1",
        reason="an overflow",
        example="labels [32, 1]: the document of grade 32 counts as irrelevant",
        always=False,
        shown_by="source",
    ),
    # -- runs and judgements
    Divergence(
        variants=("ndcg_cut", "ndcg", "ndcg_cut_judged_only", "ndcg_rel", "log2", "log2_judged_only", "exp_log2"),
        presets=("pytrec_eval", "ir_measures", "ir_measures_exp", "mteb", "beir", "flagembedding"),
        cases="a grade is a fraction",
        when="fraction",
        theirs="raises: judgements are integers",
        ours="the formula",
        reason="the formula has a value",
        example="grades 0.25 and 0.9",
        kind="defined",
    ),
    Divergence(
        presets=("trec_eval10",),
        cases="the run lacks a judged topic and -c is not given",
        when="missing_topic",
        theirs="exits with an error",
        ours="averages the topics that it is given",
        reason="which topics count is said by the caller, not by the flavor",
        example="judgements for topics 1 and 2, a run for topic 1",
        kind="defined",
        always=False,
    ),
    Divergence(
        presets=("ranx", "ranx_burges"),
        cases="a grade is a fraction",
        when="fraction",
        theirs="cuts it off to an integer, so that 0 < y < 1 is irrelevant",
        ours="the formula",
        reason="0.9 is not 0; round the grades first to have its number",
        example="grades 0.25, 0.9 and 1.0 become 0, 0, 1",
        always=False,
    ),
    Divergence(
        presets=("ranx", "ranx_burges"),
        cases="scores are tied in a query of more than 15 documents",
        when="tied_beyond_15",
        theirs="the order of an unstable sort, another one again with make_comparable=True, which sorts twice",
        ours="the order of the run, as for shorter queries",
        reason="an order that is not defined",
        example="300 documents with scores rounded to one decimal",
        always=False,
        shown_by="live",
    ),
    # -- recommender systems
    Divergence(
        variants=("ndcg_raw", "ndcg_exp"),
        presets=("recommenders_raw", "recommenders_exp"),
        cases="every user is empty",
        when="only_empty_queries",
        theirs="NaN",
        ours="an error",
        reason="there is nothing to average, and NaN travels far before it is noticed",
        example="one user whose ratings are all 0",
    ),
    Divergence(
        variants=("ndcg_exp",),
        presets=("recommenders_exp",),
        cases="a rating is below 0",
        when="negative",
        theirs="raises where ratings are integers: NumPy refuses the negative power",
        ours="2^y - 1, as there for ratings that are floats",
        reason="the formula has a value",
        example="ratings [-1, 0, 1]",
        kind="defined",
        always=False,
    ),
    Divergence(
        variants=("scala_graded_qrels_order", "scala_graded_sorted"),
        presets=("spark_graded",),
        cases="the judgements begin with negative grades, so that the DCG which divides is below 0",
        when="negative_listed_first",
        theirs="divides one negative DCG by another",
        ours="the query is empty",
        reason="below 0 a ratio of DCGs says nothing about the ranking",
        example="grades [-1, 0, 1] at k=1",
        always=False,
    ),
    Divergence(
        variants=("ndcg", "ndcg_cut"),
        presets=("quepid", "quepid_cut"),
        cases="the ratings of a query are negative, and none is above 0",
        when="negative_and_nothing_relevant",
        theirs="divides one negative DCG by another",
        ours="the query is empty",
        reason="below 0 a ratio of DCGs says nothing about the ranking: the worst order has the largest",
        example="ndcg says 0.72 and ndcg_cut 1.27",
        always=False,
        shown_by="source",
    ),
    Divergence(
        variants=("dcg",),
        presets=("quepid",),
        cases="one of the first k hits has no rating",
        when="unrated_at_k",
        theirs="NaN",
        ours="the hit has gain 0",
        reason="a bug: an undefined rating goes into the arithmetic; its NDCG scorers count such a hit 0",
        example="ten hits, nine rated",
    ),
    # -- retrieval-augmented generation
    Divergence(
        presets=("mlflow",),
        cases="a document was retrieved twice",
        when="repeats",
        theirs="takes each repeat of a relevant document for one more relevant document, in the ideal too",
        ours="an error that names the document, or what duplicates= says",
        reason="retrieving a document again does not make more documents relevant",
        example="relevant a; retrieved a, a, x: 1.0",
        always=False,
    ),
    Divergence(
        presets=("llama_index",),
        cases="nothing was retrieved for a query",
        when="missing_topic",
        theirs="raises ValueError",
        ours="the query scores 0",
        reason="a retriever that finds nothing has failed, and 0 says so",
        example="expected a; retrieved nothing",
        kind="defined",
    ),
    Divergence(
        variants=("graded",),
        presets=("vespa",),
        cases="a grade is below 0",
        when="negative",
        theirs="raises ValueError: grades must lie between 0 and 1",
        ours="the formula",
        reason="the formula has a value; grades above 1 were divided by the largest, which changes no NDCG",
        example="grades [-1, 0, 1]",
        kind="defined",
    ),
    Divergence(
        presets=("azure_ai_evaluation",),
        cases="a grade is a fraction",
        when="fraction",
        theirs="raises: labels must be integers",
        ours="2^y - 1 of the fraction",
        reason="the formula has a value",
        example="grades 0.25 and 0.9",
        kind="defined",
    ),
    Divergence(
        presets=("mteb",),
        cases="a query was ranked, but not judged",
        when="extra_topic",
        theirs="raises KeyError in another measure",
        ours="the query is left out, as by the evaluator that it calls",
        reason="the formula has a value",
        example="judgements for query 1, a run for queries 1 and 9",
        kind="defined",
    ),
    # -- further recommender systems
    Divergence(
        presets=("tfma", "rectools", "rectools_achievable", "elliot"),
        cases="every query is empty",
        when="only_empty_queries",
        theirs="NaN",
        ours="an error",
        reason="there is nothing to average, and NaN travels far before it is noticed",
        example="one user whose ratings are all 0",
        always=False,
    ),
    Divergence(
        presets=("pyg",),
        cases="every query is empty",
        when="only_empty_queries",
        theirs="0",
        ours="an error",
        reason="the mean of no query is not 0",
        example="one user without an edge",
    ),
    Divergence(
        variants=("threshold_1", "NDCG", "zero_hits", "linear"),
        presets=("ignite", "elliot"),
        cases="a grade lies between 0 and 1",
        when="fraction_below_1",
        theirs="gain 0, because it is below the relevance threshold of 1",
        ours="2^y - 1",
        reason="a threshold at 1 means grades that are integers",
        example="grades 0.25 and 0.9",
        always=False,
    ),
    Divergence(
        variants=("threshold_0", "threshold_2"),
        presets=("elliot",),
        cases="a grade is a fraction",
        when="fraction",
        theirs="2^(y - t + 1) - 1 of the fraction",
        ours="an error: the gain is a table of grades",
        reason="its grades are ratings, which are integers; gain= takes a function for others",
        example="grades 0.25 and 0.9",
    ),
    Divergence(
        variants=("threshold_2",),
        presets=("elliot",),
        cases="no grade reaches the threshold of relevance",
        when="all_below_2",
        theirs="NaN",
        ours="an error",
        reason="there is nothing to average",
        example="a threshold of 2 and grades 0 and 1",
    ),
    Divergence(
        variants=("threshold_0",),
        presets=("elliot",),
        cases="a grade is above 5",
        when="above_5",
        theirs="2^(y + 1) - 1",
        ours="an error: the gain is a table of the grades 0 to 5",
        reason="its grades are ratings; give a longer table for others",
        example="grades 12 and 30",
    ),
    Divergence(
        presets=("evidently",),
        cases="scores are tied",
        when="tied",
        theirs="gives all tied items the mean of their ranks, cut off to an integer",
        ours="the order of the rows",
        reason="a bug: two items on one rank make NDCG exceed 1, and no item on rank 1 makes NDCG@1 zero",
        example="two relevant items with one score: NDCG@1 = 2",
        always=False,
    ),
    Divergence(
        presets=("evidently",),
        cases="the cut-off lies beyond the last rank",
        when="beyond_or_tied",
        theirs="raises KeyError",
        ours="the formula",
        reason="the formula has a value",
        example="k = 3 and two items",
        kind="defined",
        always=False,
    ),
    # -- further learning to rank
    Divergence(
        variants=("one_minus",),
        presets=("torchrec",),
        cases="always, unless report_ndcg_as_decreasing_curve=False",
        when="every_case",
        theirs="reports 1 - NDCG",
        ours="NDCG",
        reason="what is called NDCG is read as NDCG; subtract it from 1 to have its number",
        example="a perfect ranking: 0",
        always=False,
    ),
    Divergence(
        presets=("torchrec",),
        cases="queries are weighted",
        when="weighted",
        theirs="multiplies NDCG by the weight and divides by the number of queries",
        ours="divides by the sum of the weights",
        reason="a bug: the result is not a mean and can exceed 1",
        example="weights 1, 3, 2: twice the mean",
        always=False,
    ),
    Divergence(
        presets=("tfma", "rankeval"),
        cases="scores are tied",
        when="tied",
        theirs="the order of NumPy's unstable argsort, reversed: it depends on the processor",
        ours="the reverse of the input order",
        reason="an order that differs between machines is not a definition",
        example="scores [5, 4, 3, 3, 3, 1]",
        always=False,
    ),
    Divergence(
        presets=("transformers4rec",),
        cases="a grade is below 0",
        when="negative",
        theirs="ranks every item there is, so that the ideal puts items of grade 0 before a negative grade",
        ours="the documents that are given",
        reason="only the caller knows the others",
        example="grades [-1, 0, 1] among items of grade 0",
        always=False,
    ),
    Divergence(
        presets=("torchrec", "transformers4rec"),
        cases="scores are tied",
        when="tied_in_float32",
        theirs="the order of torch.sort or torch.topk, which is not stable",
        ours="the input order",
        reason="an order that is not defined",
        example="scores [1, 1, 1]",
        always=False,
    ),
    Divergence(
        presets=("keras_rs", "pytorchltr"),
        cases="scores are tied",
        when="tied_in_float32",
        theirs="shuffles them in every call",
        ours="averages over all orders, which is the expectation",
        reason="a draw is not a definition",
        example="scores [1, 1, 1], labels [0, 1, 2]: 0, 0.33 or 1 at k=1",
        always=False,
    ),
    Divergence(
        variants=("NDCG on torch",),
        presets=("keras_rs",),
        cases="lists are padded",
        when="padded",
        theirs="ranks padding above documents where scores are so large that 1e-7 is lost in float32",
        ours="padding is not ranked",
        reason="a bug",
        example="scores near 30",
        always=False,
    ),
    Divergence(
        variants=("ndcg",),
        presets=("flaml",),
        cases="there are several queries",
        when="several_queries",
        theirs="takes the whole data set for one query",
        ours="the mean of the queries",
        reason="a bug: it is the default metric of the task 'rank'; 'ndcg@k' is by query",
        example="50 queries: 0.930 for 0.899",
    ),
    Divergence(
        presets=("pytorchltr", "rankeval", "ptranking", "ydf"),
        cases="the labels of a query are negative, and none is above 0",
        when="negative_and_nothing_relevant",
        theirs="divides one negative DCG by another, or by 1 (pytorchltr) or 0 (PT-Ranking) where the ideal is 0",
        ours="the query is empty",
        reason="below 0 a ratio of DCGs says nothing about the ranking: the worst order has the largest",
        example="labels [0, -1], the -1 ranked first: -0.5 at k = 1 by pytorchltr",
        always=False,
    ),
    Divergence(
        presets=("ptranking",),
        cases="a query without a relevant document has fewer than k documents",
        when="empty_and_short",
        theirs="0, the value of every list that is shorter than k",
        ours="NaN, the value of every query without a relevant document",
        reason="one rule for empty queries, whatever k is; its data loaders leave such queries out",
        example="two documents, grades 0 and 0, k = 10",
        always=False,
    ),
    Divergence(
        presets=("whylogs",),
        cases="scores are tied",
        when="tied",
        theirs="the order of NumPy's unstable argsort: it depends on the processor",
        ours="the input order",
        reason="an order that differs between machines is not a definition",
        example="twelve documents with scores 0, 1 and 2",
        always=False,
    ),
    Divergence(
        presets=("whylogs",),
        cases="queries have different numbers of documents",
        when="padded",
        theirs="raises ValueError where one has fewer than k, or is shorter than another and has no relevant document",
        ours="the formula",
        reason="the formula has a value",
        example="12 and 9 documents, k = 10",
        kind="defined",
        always=False,
    ),
    Divergence(
        presets=("rankereval",),
        cases="a grade is below 0",
        when="negative",
        theirs="leaves out documents of grade 0 where it makes the ideal, so that it puts negative grades before them",
        ours="the best order",
        reason="a bug: what is called ideal can be beaten",
        example="grades 2, 0 and -1: the ideal is 2, -1",
        always=False,
    ),
    Divergence(
        variants=("power_2",),
        presets=("rankereval",),
        cases="relevance_scaling='power'",
        when="every_case",
        theirs="y^2 - 1: the gain of grade 0 is -1, and that of grade 1 is 0",
        ours="2^y - 1, as its documentation says",
        reason="a bug: values below -50 and above 9 come out",
        example="one document of grade 1: 0 / 0",
        always=False,
    ),
)
