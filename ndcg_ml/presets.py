"""The NDCG that other libraries and papers compute: one entry each, as plain data.

Every entry names the switches of a ``Flavor`` that reproduce the library, the version that was run to establish them,
and what surprises its users. ``Flavor.preset(name)`` returns the flavor of an entry; ``ndcg_ml.PRESETS`` lists all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MIRRORS", "Mirror"]


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """The NDCG of one library or paper.

    A library that calls or copies the NDCG of another is an alias: its entry names that library's preset and has no
    switches of its own. Equal flavors have the text, the name in logs and the ``preset_name`` of the first such preset.

    Attributes
    ----------
    name : str
        Name of the preset.
    library : str
        The library with the version that was run, or the paper.
    verified : str
        How the switches were established. Recorded values were computed by the library and are reproduced by this
        preset without changes. "live" is a comparison with the installed library on random problems, in the tests.
    unusual : str
        Warning for users of that library.
    switches : Mapping[str, object]
        Fields of ``Flavor`` that differ from its defaults. For an alias, the switches of the preset that it names.
    alias_of : str or None
        Name of the preset with the same NDCG.
    """

    name: str
    library: str
    verified: str
    unusual: str
    switches: Mapping[str, Any] = field(default_factory=dict)
    alias_of: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "switches", MappingProxyType(dict(self.switches)))


# The switches that the variants of one library share.
_LIGHTGBM_LINEAR = {
    "ideal": "recall",
    "ties": "first",
    "empty": 1.0,
}
_LIGHTGBM = {**_LIGHTGBM_LINEAR, "gain": "exponential"}
_XGBOOST = {**_LIGHTGBM, "score_dtype": "float32", "k": 32}
_CATBOOST = {
    "ideal": "recall",
    "ties": "worst",
    "empty": 1.0,
    "negative": "allow",
}
# Lists of float32 scores; the ideal is made of the list that was passed.
_FLOAT32_LIST = {
    "ideal": "recall",
    "score_dtype": "float32",
    "negative": "allow",
}
_LETOR = {
    "gain": (0, 1, 3),
    "off_table": "zero",
    "discount": "jarvelin",
    "ideal": "recall",
    "ties": "first",
    "short_lists": "zero",
}
_TREC_EVAL = {
    "ties": "docid",
    "score_dtype": "float32",
    "negative": "zero",
    "unjudged": "zero",
}
_GDEVAL = {**_TREC_EVAL, "gain": "exponential", "max_grade": 4, "score_dtype": "float64"}
_RANX = {
    "ties": "first",
    "negative": "zero",
    "unjudged": "zero",
}
_RECOMMENDERS = {
    "gain": "judged",
    "ties": "first",
    "empty": "skip",
    "negative": "allow",
    "unjudged": "zero",
    "k": 10,
}
_QUEPID = {
    "gain": "exponential",
    "ideal_depth": "all",
    "ties": "first",
    "negative": "allow",
    "unjudged": "zero",
    "k": 10,
}
# The relevant documents are a set; what was retrieved is a list.
_SET = {
    "gain": "binary",
    "ties": "first",
    "negative": "zero",
    "unjudged": "zero",
}
_SET_OF_SOME = {**_SET, "empty": "skip"}
# The relevant documents have grades, which go through the formula.
_GRADED_LIST = {
    "ties": "first",
    "negative": "allow",
    "unjudged": "zero",
}
# The ideal is made of the list that was passed.
_PASSED_LIST = {
    "ideal": "recall",
    "ties": "first",
    "negative": "allow",
}

_ENTRIES = (
    Mirror(
        name="sklearn",
        library="scikit-learn 1.9.1, sklearn.metrics.ndcg_score",
        verified="run; 62 recorded values, and live on random problems with and without ties to 1e-12",
        unusual=(
            "The gain is linear, not 2^y - 1, and tied scores are averaged; a query with a single document "
            "raises there and is scored by the formula here."
        ),
        switches={"ideal": "recall"},
    ),
    Mirror(
        name="lightgbm",
        library="LightGBM 4.7.0, metric 'ndcg'",
        verified="run; 55 recorded values, and live to 1e-9 over boosting rounds with tied scores",
        unusual=(
            "Tied scores keep the order of the rows in the file, so a constant model scores 1.0 on rows sorted "
            "best-first; a query without a relevant document scores 1, even where queries are weighted."
        ),
        switches=_LIGHTGBM,
    ),
    Mirror(
        name="xgboost",
        library="XGBoost 3.2.0, eval_metric 'ndcg'",
        verified="run; 60 recorded values, and live to the 1e-6 that it prints",
        unusual=(
            "Plain 'ndcg' silently means 'ndcg@32', and scores are compared in float32, so scores that differ "
            "by 1e-9 are tied."
        ),
        switches=_XGBOOST,
    ),
    Mirror(
        name="catboost",
        library="CatBoost 1.2.10, metric 'NDCG' (type=Base, denominator=LogPosition)",
        verified="run; 75 recorded values, and live to 1e-6",
        unusual="Tied scores are put in the worst order, whatever the cut-off; negative labels are accepted.",
        switches=_CATBOOST,
    ),
    Mirror(
        name="torchmetrics",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG (empty_target_action='neg')",
        verified="run; 148 recorded values, and live to 1e-5, the library computes in float32",
        unusual=(
            "Everything is cast to float32, which invents ties; a query counts as empty when its labels sum to "
            "zero, even [-1, 0, 1]."
        ),
        switches=_FLOAT32_LIST,
    ),
    Mirror(
        name="trec_eval",
        library="trec_eval 9.0.8 (also pytrec_eval-terrier 0.5.11), ndcg and ndcg_cut",
        verified="run; 176 recorded values, to the 4 digits that it prints",
        unusual=(
            "The gain is linear, scores are compared in float32, and tied documents are ordered by document id, "
            "descending in byte order, so doc_id is needed; unjudged and negative grades gain 0."
        ),
        switches=_TREC_EVAL,
    ),
    Mirror(
        name="burges2005",
        library="Burges et al. 2005, Learning to Rank using Gradient Descent (ICML)",
        verified="from the formula: gain 2^y - 1, discount 1/log(1 + rank), whose base cancels",
        unusual=(
            "The paper defines neither tied scores nor queries without a relevant document; here ties are "
            "averaged and such queries are left out of the mean."
        ),
        switches={
            "gain": "exponential",
            "ideal": "recall",
            "empty": "skip",
        },
    ),
    Mirror(
        name="jarvelin2002",
        library="Jarvelin and Kekalainen 2002, Cumulated gain-based evaluation of IR techniques (TOIS 20:4)",
        verified="from the formula: gain y, no discount before rank b = 2, then 1/log2(rank)",
        unusual=(
            "Ranks 1 and 2 are both undiscounted, so it is not equivalent to log2(rank + 1), not even for "
            "binary grades: one hit at rank 2 scores 1.0 here and 0.6309 there."
        ),
        switches={
            "discount": "jarvelin",
            "empty": "skip",
            "unjudged": "zero",
        },
    ),
    # -- further variants of the libraries above
    Mirror(
        name="sklearn_ignore_ties",
        library="scikit-learn 1.9.1, sklearn.metrics.ndcg_score(ignore_ties=True)",
        verified="run; 58 recorded values, where no scores are tied",
        unusual=(
            "It leaves tied scores in the order of NumPy's unstable argsort, which differs from machine to "
            "machine; here they take the reverse of the input order, as a stable sort would leave them."
        ),
        switches={
            "ideal": "recall",
            "ties": "last",
        },
    ),
    Mirror(
        name="lightgbm_linear",
        library="LightGBM 4.7.0, metric 'ndcg' with label_gain=0,1,2,...",
        verified="run; 55 recorded values",
        unusual=(
            "label_gain changes the metric and the objective together; tied scores keep the order of the rows, "
            "and a query without a relevant document scores 1."
        ),
        switches=_LIGHTGBM_LINEAR,
    ),
    Mirror(
        name="xgboost_minus",
        library="XGBoost 3.2.0, eval_metric 'ndcg-' or 'ndcg@k-'",
        verified="run; 23 recorded values, and live to the 1e-6 that it prints",
        unusual="The minus only changes the score of a query without a relevant document, from 1 to 0.",
        switches={**_XGBOOST, "empty": 0.0},
    ),
    Mirror(
        name="xgboost_linear",
        library="XGBoost 3.2.0, eval_metric 'ndcg' with ndcg_exp_gain=False",
        verified="run; 75 recorded values, and live to the 1e-6 that it prints",
        unusual=(
            "Under the linear gain negative labels are accepted, which the exponential one refuses; plain "
            "'ndcg' is 'ndcg@32' here too."
        ),
        switches={**_XGBOOST, "gain": "linear", "negative": "allow"},
    ),
    Mirror(
        name="catboost_exp",
        library="CatBoost 1.2.10, metric 'NDCG' (type=Exp, denominator=LogPosition)",
        verified="run; 75 recorded values, and live to 1e-6",
        unusual="The exponential gain is not the default, which is type=Base.",
        switches={**_CATBOOST, "gain": "exponential", "discount": "log2"},
    ),
    Mirror(
        name="catboost_position",
        library="CatBoost 1.2.10, metric 'NDCG' (type=Base, denominator=Position)",
        verified="run; 75 recorded values, and live to 1e-6",
        unusual="Rank r is divided by r, so that rank 2 is worth 0.5 and not 0.6309.",
        switches={**_CATBOOST, "discount": "reciprocal"},
    ),
    Mirror(
        name="catboost_exp_position",
        library="CatBoost 1.2.10, metric 'NDCG' (type=Exp, denominator=Position)",
        verified="run; 75 recorded values, and live to 1e-6",
        unusual="Gain 2^y - 1 over the rank itself: the steepest of the four, far from the default.",
        switches={**_CATBOOST, "gain": "exponential", "discount": "reciprocal"},
    ),
    Mirror(
        name="torchmetrics_pos",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG(empty_target_action='pos')",
        verified="run; 70 recorded values, and live to 1e-5",
        unusual="Queries whose labels sum to zero score 1, so that queries without a relevant document raise the mean.",
        switches={**_FLOAT32_LIST, "empty": 1.0},
    ),
    Mirror(
        name="torchmetrics_skip",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG(empty_target_action='skip')",
        verified="run; 62 recorded values, and live to 1e-5",
        unusual=(
            "Queries whose labels sum to zero are left out of the mean, and the mean of none is 0 there; it is "
            "an error here."
        ),
        switches={**_FLOAT32_LIST, "empty": "skip"},
    ),
    Mirror(
        name="torchmetrics_error",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG(empty_target_action='error')",
        verified="run live: raises where the labels of a query sum to zero, else equal to 1e-5",
        unusual="One query whose labels sum to zero stops the evaluation.",
        switches={**_FLOAT32_LIST, "empty": "raise"},
    ),
    # -- neural ranking
    Mirror(
        name="rax",
        library="rax 0.4.0, ndcg_metric",
        verified="run; 75 recorded values, and live to 1e-5, the library computes in float32",
        unusual=(
            "Tied scores keep the input order unless a random key is given, and a score of -inf means that the "
            "document was not retrieved: pass retrieved=scores > -inf here."
        ),
        switches={**_FLOAT32_LIST, "gain": "exponential", "ideal": "global", "ties": "first"},
    ),
    Mirror(
        name="tensorflow_ranking",
        library="TensorFlow Ranking 0.5.5 (TensorFlow 2.15.1), NDCGMetric",
        verified="run; 60 recorded values, none with tied scores",
        unusual=(
            "Tied scores are shuffled in every call; the preset averages over all orders. Negative labels are padding "
            "and dropped."
        ),
        switches={**_FLOAT32_LIST, "gain": "exponential", "negative": "drop"},
    ),
    Mirror(
        name="allrank",
        library="allRank (git c884756), allrank.models.metrics.ndcg",
        verified="run; 71 recorded values",
        unusual=(
            "A list without a relevant document scores 1, and the label -1 marks padding, which is dropped; "
            "other negative labels, dropped here, go through the gain formula there."
        ),
        switches={**_LIGHTGBM, "score_dtype": "float32", "negative": "drop"},
    ),
    # -- benchmarks of learning to rank
    Mirror(
        name="ranklib",
        library="RankLib (codelibs 2.10.2, git e43f605), NDCGScorer",
        verified="run; 60 recorded values",
        unusual=(
            "The gain is 2^y - 1 and not y, as is often said; labels are cut off to integers (1.7 becomes 1), "
            "and from grade 32 on the gain wraps around to 0."
        ),
        switches={**_LIGHTGBM, "empty": 0.0},
    ),
    Mirror(
        name="letor3",
        library="LETOR 3.0, Eval-Score-3.0.pl (a third party's copy)",
        verified="run; 27 recorded values",
        unusual=(
            "Ranks 1 and 2 are both undiscounted, grades from 3 on gain 0, and a query with fewer than k "
            "documents scores 0, even when it is ranked perfectly."
        ),
        switches=_LETOR,
    ),
    Mirror(
        name="letor4",
        library="LETOR 4.0, Eval-Score-4.0.pl (a third party's copy)",
        verified="run; 47 recorded values",
        unusual=(
            "It is the definition of LETOR 3.0: ranks 1 and 2 undiscounted, grades from 3 on gain 0, a query "
            "with fewer than k documents scores 0; it prints four decimals."
        ),
        switches=_LETOR,
    ),
    Mirror(
        name="mslr",
        library="MSLR-WEB10K and -WEB30K, eval-score-mslr.pl (third parties' copies)",
        verified="run; 47 recorded values",
        unusual=(
            "As the scripts of LETOR, ranks 1 and 2 are both undiscounted and a query with fewer than k "
            "documents scores 0; a copy in circulation was changed to log2(rank + 1), so published values "
            "depend on the copy."
        ),
        switches={**_LETOR, "gain": (0, 1, 3, 7, 15)},
    ),
    # -- runs and judgements
    Mirror(
        name="trec_eval10",
        library="trec_eval 10.0 (git f425365), ndcg and ndcg_cut",
        verified="run; 171 recorded values, to the 4 digits that it prints",
        unusual=(
            "Scores are compared in float64, where trec_eval 9 compares them in float32; a topic that the run "
            "lacks is an error unless -c is given."
        ),
        switches={**_TREC_EVAL, "score_dtype": "float64"},
    ),
    Mirror(
        name="pytrec_eval",
        library="pytrec_eval-terrier 0.5.11, ndcg and ndcg_cut",
        verified="run; 98 recorded values, and live to 1e-12",
        unusual=(
            "It is trec_eval 9, scores in float32 and tied documents by descending id included; only topics in "
            "both the run and the judgements are averaged."
        ),
        switches=_TREC_EVAL,
    ),
    Mirror(
        name="ir_measures",
        library="ir_measures 0.4.3, nDCG@k",
        verified="run; 98 recorded values, and live to 1e-12",
        unusual=(
            "The value of a topic is trec_eval's, but the mean is over every judged topic, and a topic that the run "
            "lacks scores 0."
        ),
        switches=_TREC_EVAL,
    ),
    Mirror(
        name="gdeval",
        library="gdeval.pl 1.2a (TREC Web track), NDCG@k",
        verified="run live, to the 5 digits that it prints",
        unusual=(
            "The gain is 2^y - 1 where trec_eval's is y; a topic without a relevant document is left out of the mean, "
            "with -c and without; a grade above 4 is an error."
        ),
        switches={**_GDEVAL, "empty": "skip"},
    ),
    Mirror(
        name="ir_measures_exp",
        library="ir_measures 0.4.3, nDCG(dcg='exp-log2')@k",
        verified="run; 66 recorded values, and live, to the 5 digits that it prints",
        unusual=(
            "It runs gdeval.pl and adds the judged topics that the script leaves out, with the score 0, among them "
            "those without a relevant document; a grade above 4 is an error."
        ),
        switches=_GDEVAL,
    ),
    Mirror(
        name="ranx",
        library="ranx 0.3.21, 'ndcg'",
        verified="run; 108 recorded values, and live to 1e-12",
        unusual=(
            "Grades are cut off to integers, so that 0 < y < 1 becomes irrelevant, and tied scores keep the "
            "order of the run up to 15 documents only: beyond, the sort is unstable."
        ),
        switches=_RANX,
    ),
    Mirror(
        name="ranx_burges",
        library="ranx 0.3.21, 'ndcg_burges'",
        verified="run; 98 recorded values, and live to 1e-12",
        unusual="The same library's other NDCG, with gain 2^y - 1: its name is the only warning.",
        switches={**_RANX, "gain": "exponential"},
    ),
    # -- recommender systems
    Mirror(
        name="recommenders_binary",
        library="Recommenders 1.2.1, ndcg_at_k(score_type='binary')",
        verified="run; 82 recorded values, and live to 1e-12",
        unusual="The default: every rated item has gain 1, even an item rated 0.",
        switches=_RECOMMENDERS,
    ),
    Mirror(
        name="recommenders_raw",
        library="Recommenders 1.2.1, ndcg_at_k(score_type='raw')",
        verified="run; 76 recorded values, and live to 1e-12",
        unusual="A user without an item rated above 0 has no value and drops out of the mean.",
        switches={**_RECOMMENDERS, "gain": "linear"},
    ),
    Mirror(
        name="recommenders_exp",
        library="Recommenders 1.2.1, ndcg_at_k(score_type='exp')",
        verified="run; 68 recorded values, and live to 1e-12",
        unusual="A user without an item rated above 0 drops out of the mean; negative integer ratings raise there.",
        switches={**_RECOMMENDERS, "gain": "exponential"},
    ),
    Mirror(
        name="recbole",
        library="RecBole 1.2.1, NDCG",
        verified="run; 74 recorded values",
        unusual="Every relevant item has gain 1, whatever its rating, and the values are rounded to four decimals.",
        switches={**_SET, "k": 10},
    ),
    Mirror(
        name="spark",
        library="Spark MLlib 4.3.0, RankingMetrics.ndcgAt without grades",
        verified="run; 74 recorded values",
        unusual="It is binary, and an item that the prediction holds twice counts twice.",
        switches=_SET,
    ),
    Mirror(
        name="spark_graded",
        library="Spark MLlib 4.3.0 (Scala), RankingMetrics.ndcgAt with grades",
        verified="run; 146 recorded values",
        unusual=(
            "The ideal is the judgements in the order given, not sorted: unless they are listed best first, "
            "NDCG may exceed 1."
        ),
        switches={**_GRADED_LIST, "gain": "exponential", "ideal": "given"},
    ),
    Mirror(
        name="pyspark_graded",
        library="PySpark 4.3.0, RankingMetrics.ndcgAt with grades",
        verified="run; 70 recorded values",
        unusual=(
            "Python silently drops the grades on the way to Spark: every judged item has gain 1, even one of grade 0."
        ),
        switches={**_GRADED_LIST, "gain": "judged"},
    ),
    # -- search quality tools
    Mirror(
        name="quepid",
        library="Quepid (git f80322f), scorer ndcg@10",
        verified="run; 74 recorded values",
        unusual=(
            "The ideal is not cut at k: a perfect ranking scores less than 1 as soon as more than k documents are "
            "rated (12 rated documents: 0.976 at 10, 0.642 at 3); a query whose ratings are all negative has a value, "
            "one negative DCG over another, and is empty here."
        ),
        switches=_QUEPID,
    ),
    Mirror(
        name="quepid_cut",
        library="Quepid (git f80322f), scorer ndcg_cut@10",
        verified="run; 74 recorded values",
        unusual=(
            "The scorer that cuts the ideal at k; plain ndcg@10 of the same tool does not; a query whose ratings are "
            "all negative has a value, one negative DCG over another, and is empty here."
        ),
        switches={**_QUEPID, "ideal_depth": "k"},
    ),
    Mirror(
        name="elasticsearch",
        library="Elasticsearch (git 02f2048), ranking evaluation 'dcg' with normalize=true",
        verified="from the source alone, DiscountedCumulativeGain.java; not run",
        unusual=(
            "The ideal is cut at the number of hits that came back, so that a search which returns one hit, the "
            "best document, scores 1 however many more are relevant."
        ),
        switches={**_QUEPID, "ideal_depth": "retrieved"},
    ),
    # -- retrieval-augmented generation and embeddings
    Mirror(
        name="mlflow",
        library="mlflow 3.17.2, mlflow.metrics.ndcg_at_k",
        verified="run; 102 recorded values, and live on random problems to 1e-12",
        unusual=(
            "The ideal is cut at the number of documents that came back, so that one hit, if it is relevant, scores 1 "
            "however many more there are; a document that came back twice counts as two relevant ones, in the ideal "
            "too; a query with nothing relevant scores 0, but 1 if nothing was retrieved either."
        ),
        switches={**_SET, "ideal_depth": "retrieved"},
    ),
    Mirror(
        name="sentence_transformers",
        library="sentence-transformers 6.2.0, InformationRetrievalEvaluator and NanoBEIREvaluator",
        verified="run; 117 recorded values, and live on random problems to 1e-12",
        unusual=(
            "It is binary even for graded judgements; tied documents are ordered by document id, ascending, where "
            "trec_eval's order is descending; one that comes twice counts twice; queries without a relevant document "
            "are left out; the cut-off is 10 unless ndcg_at_k is given."
        ),
        switches={**_SET_OF_SOME, "ties": "docid_ascending", "duplicates": "count", "k": 10},
    ),
    Mirror(
        name="llama_index",
        library="LlamaIndex core 0.14.25, llama_index.core.evaluation.retrieval.metrics.NDCG",
        verified="run; 144 recorded values, and live on random problems to 1e-12",
        unusual=(
            "There is no cut-off, and the ideal has every expected id, so that a retriever of two documents cannot "
            "reach 1 where three are expected; a document that came back twice counts twice, which may exceed 1; a "
            "query without an expected or a retrieved id is an error."
        ),
        switches={**_SET, "ideal_depth": "all", "empty": "raise", "duplicates": "count"},
    ),
    Mirror(
        name="haystack",
        library="Haystack 3.4, DocumentNDCGEvaluator",
        verified="run; 168 recorded values, and live on random problems to 1e-12",
        unusual=(
            "There is no cut-off, and the ideal has every relevant document; a document that came back twice is "
            "credited once, and until July 2026 was credited twice; the score of a ground truth document is its "
            "grade, and 1 where there are no scores."
        ),
        switches={**_GRADED_LIST, "ideal_depth": "all", "duplicates": "first"},
    ),
    Mirror(
        name="phoenix",
        library="Arize Phoenix 20.26, phoenix.metrics.retrieval_metrics.RetrievalMetrics.ndcg",
        verified="its function was run alone; 128 recorded values, and 300 random problems, to 1e-15",
        unusual=(
            "It sees what was retrieved and nothing else, so that a single relevant document on top scores 1 however "
            "many were missed; one label that is NaN makes the value NaN there and is an error here."
        ),
        switches={"ideal": "recall", "ties": "first"},
    ),
    Mirror(
        name="vespa",
        library="pyvespa 1.2.9, VespaEvaluator with graded relevance",
        verified="run; 120 recorded values, and live on random problems to 1e-12",
        unusual=(
            "A dict of relevant documents is graded, gain y; a set of them is binary, which is gain='binary' here; "
            "the order is that in which Vespa returns the hits, and one that comes back twice counts twice."
        ),
        switches={**_GRADED_LIST, "duplicates": "count"},
    ),
    Mirror(
        name="trulens",
        library="TruLens 2.16, GroundTruthAgreement.ndcg_at_k",
        verified="run; 126 recorded values, and 300 random problems, to 1e-15",
        unusual=(
            "A query without a relevant chunk is NaN; a chunk that came back twice is credited once; without k the "
            "ideal is cut at the number of chunks that came back, which is ideal_depth='retrieved' here."
        ),
        switches={**_GRADED_LIST, "empty": "nan", "duplicates": "first"},
    ),
    Mirror(
        name="azure_ai_evaluation",
        library="azure-ai-evaluation 1.18.10 (Azure AI Foundry), DocumentRetrievalEvaluator",
        verified="run; 93 recorded values with other ranges of labels, and 300 random problems, to 1e-15",
        unusual=(
            "The cut-off is 3 and cannot be changed, and the gain is 2^y - 1; a label below 0 or above 4 is an error "
            "unless its range is set."
        ),
        switches={
            "gain": "exponential",
            "max_grade": 4,
            "ties": "first",
            "unjudged": "zero",
            "k": 3,
        },
    ),
    Mirror(
        name="autorag",
        library="AutoRAG 0.3.27, retrieval_ndcg",
        verified="its function was run alone; 168 recorded values, and 300 random problems, to 1e-15",
        unusual=(
            "There is no cut-off, and the ideal is cut at the number of documents that came back, so that a single "
            "relevant one scores 1; one that came back twice counts twice, which may exceed 1."
        ),
        switches={**_SET, "ideal_depth": "retrieved", "duplicates": "count"},
    ),
    Mirror(
        name="opensearch",
        library="OpenSearch search-relevance (git d8be5d1), NDCG@k",
        verified="Evaluation.java was run alone; 126 recorded values, to the two decimals of each query",
        unusual=(
            "The value of each query is rounded to two decimals before the mean, and a document that came back twice "
            "counts twice."
        ),
        switches={**_QUEPID, "ideal_depth": "k", "duplicates": "count"},
    ),
    Mirror(
        name="mteb",
        library="MTEB 2.26.24, ndcg_at_k",
        verified="run; 96 recorded values, rounded to five decimals: it calls pytrec_eval",
        unusual=(
            "Only queries in both the run and the judgements are averaged, which is queries='both' of evaluate_run; "
            "values are rounded to five decimals."
        ),
        alias_of="pytrec_eval",
    ),
    Mirror(
        name="beir",
        library="BEIR 2.2.0, EvaluateRetrieval",
        verified="run; 99 recorded values, and 140 random problems, without a difference",
        unusual=(
            "A document whose id is that of the query is dropped from the run (ignore_identical_ids=True) and stays in "
            "the ideal; only queries in both are averaged, and values are rounded to five decimals."
        ),
        alias_of="pytrec_eval",
    ),
    Mirror(
        name="flagembedding",
        library="FlagEmbedding 1.4.2, evaluate_metrics",
        verified="run; 99 recorded values, rounded to five decimals: it calls pytrec_eval",
        unusual="Only queries in both the run and the judgements are averaged; values are rounded to five decimals.",
        alias_of="pytrec_eval",
    ),
    # -- further recommender systems
    Mirror(
        name="pyg",
        library="PyTorch Geometric 2.8.1, LinkPredNDCG",
        verified="run; 93 recorded values, and live to 1e-6, the library computes in float32",
        unusual=(
            "Nodes without a link to predict are left out of the mean; weighted=True makes the weight of an edge its "
            "gain, which is gain='linear' here."
        ),
        switches=_SET_OF_SOME,
    ),
    Mirror(
        name="torchrec",
        library="TorchRec 1.9.2, NDCGMetric",
        verified="its function was run alone; 89 recorded values, and 300 random problems without ties",
        unusual=(
            "It reports 1 - NDCG unless report_ndcg_as_decreasing_curve=False; the gain is 2^y - 1 with "
            "exponential_gain=True; a session's value is multiplied by its largest weight and divided by the number of "
            "sessions; sessions do not reach beyond a batch; tied scores are in the order of an unstable sort."
        ),
        switches={**_FLOAT32_LIST, "ties": "first"},
    ),
    Mirror(
        name="ignite",
        library="PyTorch-Ignite 0.5.5, ignite.metrics.rec_sys.NDCG",
        verified="run; 57 recorded values, and live to 1e-6, the library computes in float32",
        unusual=(
            "A label below relevance_threshold=1 has gain 0, even a fraction; users without a relevant item are left "
            "out (ignore_zero_hits=True)."
        ),
        switches={**_LIGHTGBM, "empty": "skip", "score_dtype": "float32", "negative": "zero"},
    ),
    Mirror(
        name="tfma",
        library="TensorFlow Model Analysis 0.52, NDCG",
        verified="its functions were run alone; 62 recorded values, and 300 random problems without ties",
        unusual=(
            "Queries without a gain above 0 have weight 0, and if there is no other the value is NaN, an error here; "
            "tied scores are in the reverse order of an unstable sort."
        ),
        switches={**_PASSED_LIST, "ties": "last", "empty": "skip"},
    ),
    Mirror(
        name="evidently",
        library="Evidently 0.7.23, NDCG and NDCGKMetric",
        verified="run; 80 recorded values, and 53 random problems without ties, to 1e-12",
        unusual=(
            "The rank of tied scores is the mean of their ranks, cut off to an integer: two relevant items that tie "
            "for the first place have NDCG@1 = 2 there; users without a relevant item are left out "
            "(no_feedback_users=False)."
        ),
        switches={**_PASSED_LIST, "empty": "skip"},
    ),
    Mirror(
        name="implicit",
        library="implicit 0.7.3, implicit.evaluation.ndcg_at_k",
        verified="run; 93 recorded values, and live on random problems to 1e-12",
        unusual="Users without a test item are left out of the mean; the cut-off is 10 unless K is given.",
        switches={**_SET_OF_SOME, "k": 10},
    ),
    Mirror(
        name="rectools",
        library="RecTools 0.19.0, NDCG",
        verified="run; 93 recorded values, and live on random problems to 1e-12",
        unusual=(
            "The ideal is k relevant items, however few the user has: the only relevant item on top scores 0.220 at "
            "k = 10 (divide_by_achievable=False, the default); a user without a relevant item is not in its table of "
            "interactions and so not in its mean."
        ),
        switches={**_SET, "ideal": "max", "max_grade": 1},
    ),
    Mirror(
        name="rectools_achievable",
        library="RecTools 0.19.0, NDCG(divide_by_achievable=True)",
        verified="run; 93 recorded values, and 240 random problems, to 1e-12",
        unusual=(
            "The ideal holds the user's relevant items, unlike that of the default; users without one are left out."
        ),
        switches=_SET_OF_SOME,
    ),
    Mirror(
        name="lenskit",
        library="LensKit 2025.8.1, NDCG",
        verified="run; 136 recorded values, and live on random problems to 1e-12",
        unusual=(
            "Ranks 1 and 2 weigh the same (LogRankWeight(offset=1) is log2(rank + 1)), so that a single relevant item "
            "at rank 2 scores 1; a user without a test item is NaN, which the summary of a run counts as 0; gain= "
            "names a field whose values are the gains, which is gain='linear' here."
        ),
        switches={**_SET, "discount": "jarvelin"},
    ),
    Mirror(
        name="replay",
        library="RePlay 0.22, NDCG",
        verified="run; 117 recorded values, and 120 random problems, to 1e-12",
        unusual=(
            "It is binary whatever the ratings, and an item that is recommended twice counts twice; tied ratings are "
            "in descending order of the item, and users without a relevant item are left out."
        ),
        switches={**_SET_OF_SOME, "ties": "docid", "duplicates": "count"},
    ),
    Mirror(
        name="transformers4rec",
        library="Transformers4Rec 23.12, NDCGAt(top_ks=[10, 20])",
        verified="its functions were run alone; 54 recorded values, and 600 random problems without ties, to 1e-7",
        unusual=(
            "The ideal is made of the first max(top_ks) items of the ranking. A relevant item beyond them is not "
            "missed, and the value at 10 depends on whether 20 is in top_ks. Tied scores are in the order of "
            "torch.topk, which is not defined."
        ),
        switches={**_FLOAT32_LIST, "recall_depth": 20, "ties": "first", "k": 20},
    ),
    Mirror(
        name="librecommender",
        library="LibRecommender 1.5.2, ndcg_at_k",
        verified="its function was run alone; 102 recorded values, and 300 random problems to 1e-7, as it uses float32",
        unusual=(
            "The ideal is the same list re-sorted, so that it says how early the hits are and not how many were "
            "missed: one hit on top scores 1."
        ),
        switches={**_SET, "ideal": "local", "k": 10},
    ),
    Mirror(
        name="elliot",
        library="Elliot (git fc27efe), nDCG",
        verified="run; 93 recorded values; the formula was also compared on 251 random problems",
        unusual=(
            "The gain is 2^(y - t + 1) - 1 from the relevance_threshold t on, which is 0 by default, so that a rating "
            "of 0 gains 1; t = 1 is gain='exponential' for whole ratings, t = 2 gain=(0, 0, 1, 3, 7, 15)."
        ),
        switches={**_SET_OF_SOME, "gain": (1, 3, 7, 15, 31, 63)},
    ),
    Mirror(
        name="cornac",
        library="Cornac 3.0.1, cornac.metrics.NDCG",
        verified="run; 124 recorded values, and 281 random problems, to 1e-12",
        unusual="It is the NDCG of PyTorch Geometric: binary, and users without a positive item are left out.",
        alias_of="pyg",
    ),
    # -- further learning to rank
    Mirror(
        name="fastrank",
        library="FastRank 0.8.0, 'ndcg' and 'ndcg@k'",
        verified="run; 88 recorded values, and 80 random problems with ties, to 1e-15",
        unusual="Tied scores are put in the worst order; with a separate file of judgements the ideal is global.",
        switches={**_FLOAT32_LIST, "gain": "exponential", "ties": "worst"},
    ),
    Mirror(
        name="pyltr",
        library="pyltr 0.2.6, pyltr.metrics.NDCG",
        verified="run; 88 recorded values, with tied scores too, and live to 1e-12",
        unusual=(
            "Tied scores are put in the worst order; the ideal of a query id is kept for as long as the metric lives, "
            "so that an id which means another query in the next data set has a wrong value."
        ),
        switches={**_PASSED_LIST, "gain": "exponential", "ties": "worst", "k": 10},
    ),
    Mirror(
        name="rank_metrics",
        library="rank_metrics.py (gist bwhite/3726239, copied into many projects), ndcg_at_k(method=0)",
        verified="run; 136 recorded values; the formula was also compared on 1200 random problems",
        unusual=(
            "Ranks 1 and 2 weigh the same by default, and the ideal is the list that was passed, sorted: with the "
            "first k grades alone it is ideal='local', and what was missed does not count."
        ),
        switches={**_PASSED_LIST, "discount": "jarvelin"},
    ),
    Mirror(
        name="rank_metrics_log2",
        library="rank_metrics.py (gist bwhite/3726239, copied into many projects), ndcg_at_k(method=1)",
        verified="run; 136 recorded values; the formula was also compared on 1200 random problems",
        unusual="The discount 1 / log2(r + 1) is an option; the ideal is the list that was passed, sorted.",
        switches=_PASSED_LIST,
    ),
    Mirror(
        name="mlnet",
        library="ML.NET (git 04b6b6e), RankingEvaluator",
        verified="from the source alone, RankingEvaluator.cs; not run",
        unusual=(
            "Grade 1 gains 3, not 1 (the table is 0, 3, 7, 15, 31); the discount is a natural logarithm, which changes "
            "DCG but not NDCG; NDCG@1 to @3 are printed as percentages; tied scores are put in the worst order."
        ),
        switches={
            "gain": (0, 3, 7, 15, 31),
            "discount": "ln",
            "ideal": "recall",
            "ties": "worst",
            "score_dtype": "float32",
            "k": 3,
        },
    ),
    Mirror(
        name="keras_rs",
        library="KerasRS 0.4.0, keras_rs.metrics.NDCG, with JAX",
        verified="run; 157 recorded values, and random problems without ties",
        unusual=(
            "With PyTorch, padded lists have other values, a bug. Tied scores are shuffled, even with "
            "shuffle_ties=False; the preset averages over all orders. Negative labels are dropped. A query without a "
            "relevant document has the mean weight of the others, which is not reproduced."
        ),
        switches={**_FLOAT32_LIST, "gain": "exponential", "negative": "drop"},
    ),
    Mirror(
        name="flaml",
        library="FLAML 2.7.0, metric 'ndcg@k'",
        verified="run; 63 recorded values: it calls ndcg_score of scikit-learn for each query",
        unusual="Plain 'ndcg', the default metric of the task 'rank', takes the whole data set for one query.",
        alias_of="sklearn",
    ),
    Mirror(
        name="pytorchltr",
        library="pytorchltr 0.2.1 (git 625416e), pytorchltr.evaluation.ndcg",
        verified="run; 77 recorded values, and 60 random problems without ties to 1e-6",
        unusual=(
            "Tied scores are shuffled in every call; the preset averages over all orders. exp=False is gain='linear' "
            "here. It returns the value of each query, and the caller takes the mean."
        ),
        switches={**_FLOAT32_LIST, "gain": "exponential"},
    ),
    Mirror(
        name="rankeval",
        library="RankEval (git c6e39e9), rankeval.metrics.NDCG",
        verified="its metrics were run alone; 87 recorded values, and 60 random problems without ties to 1e-6",
        unusual=(
            "A query without a relevant document scores 1 (no_relevant_results); implementation='flat' is "
            "gain='linear' here; tied scores are in the reverse order of an unstable sort."
        ),
        switches={**_PASSED_LIST, "gain": "exponential", "ties": "last", "empty": 1.0},
    ),
    Mirror(
        name="ptranking",
        library="PT-Ranking (git f1d366c), Evaluator.ndcg_at_ks",
        verified="its evaluator was run alone; 83 recorded values, and 60 random problems to 1e-6",
        unusual=(
            "A list with fewer than k documents scores 0, even when it is ranked perfectly; one query without a "
            "relevant document makes the mean NaN, so its data loaders leave such queries out."
        ),
        switches={
            **_FLOAT32_LIST,
            "gain": "exponential",
            "ties": "first",
            "empty": float("nan"),
            "short_lists": "zero",
        },
    ),
    # -- monitoring, and further recommender systems
    Mirror(
        name="whylogs",
        library="whylogs 1.6.4, log_batch_ranking_metrics with scores",
        verified="run; 84 recorded values, and 60 random problems without ties to 1e-12",
        unusual=(
            "A list without a relevant item scores 1; lists must have at least k items each, or it raises; tied scores "
            "are in the order of an unstable sort; lists of names instead of scores are binary, which is "
            "gain='binary', ideal='global' here."
        ),
        switches={**_PASSED_LIST, "empty": 1.0},
    ),
    Mirror(
        name="rankereval",
        library="rankerEval 0.2.0, NDCG with NumericLabels",
        verified="run; 139 recorded values, and 60 random problems to 1e-6, the library holds labels in float32",
        unusual=(
            "One query without a relevant document makes the mean NaN (nan_handling='propagate', the default; 'drop' "
            "is empty='skip' here, 'zerofill' empty=0); the logarithm is natural, which changes DCG but not NDCG; "
            "relevance_scaling='power' is y^2 - 1 and not 2^y - 1."
        ),
        switches={**_GRADED_LIST, "discount": "ln", "empty": float("nan")},
    ),
    Mirror(
        name="recpack",
        library="RecPack 0.3.6, NDCGK",
        verified="run; 102 recorded values, and 60 random problems to 1e-12",
        unusual=(
            "It is the NDCG of PyTorch Geometric: binary, and users without a relevant item are left out; with grades "
            "the gain is y, over the ideal of as many relevant items as the grades sum to."
        ),
        alias_of="pyg",
    ),
    Mirror(
        name="ydf",
        library="YDF 0.16.1 (Yggdrasil Decision Forests), evaluate_predictions and model.evaluate",
        verified="run; 100 recorded values, and 300 random problems with weights, to 1e-12",
        unusual=(
            "The cut-off is 5 unless ndcg_truncation is given; scores are compared in float32, and tied ones are "
            "averaged; a data set of one query is refused; the weight of a query is that of its last row."
        ),
        switches={**_FLOAT32_LIST, "gain": "exponential", "k": 5},
    ),
    Mirror(
        name="river",
        library="river (git 4e94aa9), metrics.NDCG",
        verified="its class was run alone; 168 recorded values",
        unusual=(
            "Documents without a grade gain 0, as in ranx, but negative grades count as they are, and a document that "
            "is listed twice counts twice."
        ),
        alias_of="vespa",
    ),
)


def _resolve_alias(entry: Mirror) -> Mirror:
    """Give an alias the switches of the preset that it names."""
    if entry.alias_of is None:
        return entry
    [target] = [mirror for mirror in _ENTRIES if mirror.name == entry.alias_of]
    return replace(entry, switches=target.switches)


MIRRORS: Mapping[str, Mirror] = MappingProxyType({entry.name: _resolve_alias(entry) for entry in _ENTRIES})
"""Every mirror by the name of its preset."""
