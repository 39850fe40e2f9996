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
        How the switches were established. Recorded values were computed by the library, and the preset reproduces
        them without changes. Live values are those that the installed library computes in the tests.
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
# The relevant documents are a set; what was retrieved is a list.
_SET = {**_RANX, "gain": "binary"}
_SET_OF_SOME = {**_SET, "empty": "skip"}
# The relevant documents have grades, which go through the formula.
_GRADED_LIST = {
    "ties": "first",
    "negative": "allow",
    "unjudged": "zero",
}
_RECOMMENDERS = {**_GRADED_LIST, "gain": "judged", "empty": "skip", "k": 10}
_QUEPID = {**_GRADED_LIST, "gain": "exponential", "ideal_depth": "all", "k": 10}
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
        verified="reproduces 62 recorded values, and live values of random problems with and without ties to 1e-12",
        unusual=(
            "The gain is linear, not 2^y - 1, and tied scores are averaged. A query with a single document raises an "
            "error in scikit-learn, and ndcg_ml applies the formula."
        ),
        switches={"ideal": "recall"},
    ),
    Mirror(
        name="lightgbm",
        library="LightGBM 4.7.0, metric 'ndcg'",
        verified="reproduces 55 recorded values, and live values to 1e-9 over boosting rounds with tied scores",
        unusual=(
            "Tied scores keep the order of the rows in the file, so a constant model scores 1.0 on rows sorted "
            "best-first. A query without a relevant document scores 1, also if queries are weighted."
        ),
        switches=_LIGHTGBM,
    ),
    Mirror(
        name="xgboost",
        library="XGBoost 3.2.0 and 3.4.1, eval_metric 'ndcg'",
        verified="reproduces 60 recorded values, and live values to the 1e-6 that it prints",
        unusual=(
            "Plain 'ndcg' silently means 'ndcg@32'. Scores are compared in float32, so scores that differ by 1e-9 are "
            "tied."
        ),
        switches=_XGBOOST,
    ),
    Mirror(
        name="catboost",
        library="CatBoost 1.2.10, metric 'NDCG' (type=Base, denominator=LogPosition)",
        verified="reproduces 75 recorded values, and live values to 1e-6",
        unusual="Tied scores are ranked in the worst order, whatever the cut-off. Negative labels are accepted.",
        switches=_CATBOOST,
    ),
    Mirror(
        name="torchmetrics",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG (empty_target_action='neg')",
        verified="reproduces 148 recorded values, and live values to 1e-5 (the library computes in float32)",
        unusual=(
            "Scores are converted to float32, which creates ties. A query is empty if its labels sum to zero, for "
            "example [-1, 0, 1]."
        ),
        switches=_FLOAT32_LIST,
    ),
    Mirror(
        name="trec_eval",
        library="trec_eval 9.0.8 (also pytrec_eval-terrier 0.5.11), ndcg and ndcg_cut",
        verified="reproduces 176 recorded values, to the 4 digits that it prints",
        unusual=(
            "The gain is linear, and scores are compared in float32. Tied documents are ranked by document id, "
            "descending in byte order, so doc_id is required. Unjudged and negative grades have gain 0."
        ),
        switches=_TREC_EVAL,
    ),
    Mirror(
        name="burges2005",
        library="Burges et al. 2005, Learning to Rank using Gradient Descent (ICML)",
        verified="derived from the formula: gain 2^y - 1, discount 1/log(1 + rank), whose base cancels",
        unusual=(
            "The paper defines neither tied scores nor queries without a relevant document. ndcg_ml averages ties and "
            "excludes such queries from the mean."
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
        verified="derived from the formula: gain y, no discount before rank b = 2, then 1/log2(rank)",
        unusual=(
            "Ranks 1 and 2 have no discount, so the definition differs from log2(rank + 1) even for binary grades: one "
            "relevant document at rank 2 scores 1.0, not 0.6309."
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
        verified="reproduces 58 recorded values without tied scores",
        unusual=(
            "scikit-learn leaves tied scores in the order of NumPy's unstable argsort, which differs between machines. "
            "ndcg_ml uses the reverse of the input order, as a stable sort does."
        ),
        switches={
            "ideal": "recall",
            "ties": "last",
        },
    ),
    Mirror(
        name="lightgbm_linear",
        library="LightGBM 4.7.0, metric 'ndcg' with label_gain=0,1,2,...",
        verified="reproduces 55 recorded values",
        unusual=(
            "label_gain changes both the metric and the objective. Tied scores keep the order of the rows, and a query "
            "without a relevant document scores 1."
        ),
        switches=_LIGHTGBM_LINEAR,
    ),
    Mirror(
        name="xgboost_minus",
        library="XGBoost 3.2.0 and 3.4.1, eval_metric 'ndcg-' or 'ndcg@k-'",
        verified="reproduces 23 recorded values, and live values to the 1e-6 that it prints",
        unusual="The minus only changes the score of a query without a relevant document, from 1 to 0.",
        switches={**_XGBOOST, "empty": 0.0},
    ),
    Mirror(
        name="xgboost_linear",
        library="XGBoost 3.2.0 and 3.4.1, eval_metric 'ndcg' with ndcg_exp_gain=False",
        verified="reproduces 75 recorded values, and live values to the 1e-6 that it prints",
        unusual=(
            "The linear gain accepts negative labels, and the exponential gain rejects them. Plain 'ndcg' means "
            "'ndcg@32'."
        ),
        switches={**_XGBOOST, "gain": "linear", "negative": "allow"},
    ),
    Mirror(
        name="catboost_exp",
        library="CatBoost 1.2.10, metric 'NDCG' (type=Exp, denominator=LogPosition)",
        verified="reproduces 75 recorded values, and live values to 1e-6",
        unusual="The exponential gain is not the default, which is type=Base.",
        switches={**_CATBOOST, "gain": "exponential", "discount": "log2"},
    ),
    Mirror(
        name="catboost_position",
        library="CatBoost 1.2.10, metric 'NDCG' (type=Base, denominator=Position)",
        verified="reproduces 75 recorded values, and live values to 1e-6",
        unusual="The gain at rank r is divided by r, so rank 2 has the discount 0.5 and not 0.6309.",
        switches={**_CATBOOST, "discount": "reciprocal"},
    ),
    Mirror(
        name="catboost_exp_position",
        library="CatBoost 1.2.10, metric 'NDCG' (type=Exp, denominator=Position)",
        verified="reproduces 75 recorded values, and live values to 1e-6",
        unusual=(
            "The gain is 2^y - 1 and is divided by the rank: the steepest of the four definitions, and far from the "
            "default."
        ),
        switches={**_CATBOOST, "gain": "exponential", "discount": "reciprocal"},
    ),
    Mirror(
        name="torchmetrics_pos",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG(empty_target_action='pos')",
        verified="reproduces 70 recorded values, and live values to 1e-5",
        unusual="Queries whose labels sum to zero score 1, so queries without a relevant document increase the mean.",
        switches={**_FLOAT32_LIST, "empty": 1.0},
    ),
    Mirror(
        name="torchmetrics_skip",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG(empty_target_action='skip')",
        verified="reproduces 62 recorded values, and live values to 1e-5",
        unusual=(
            "Queries whose labels sum to zero are excluded from the mean. If no query is left, torchmetrics returns 0 "
            "and ndcg_ml raises an error."
        ),
        switches={**_FLOAT32_LIST, "empty": "skip"},
    ),
    Mirror(
        name="torchmetrics_error",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG(empty_target_action='error')",
        verified="raises an error if the labels of a query sum to zero, and otherwise reproduces live values to 1e-5",
        unusual="A single query whose labels sum to zero raises an error.",
        switches={**_FLOAT32_LIST, "empty": "raise"},
    ),
    # -- neural ranking
    Mirror(
        name="rax",
        library="rax 0.4.0, ndcg_metric",
        verified="reproduces 75 recorded values, and live values to 1e-5 (the library computes in float32)",
        unusual=(
            "Tied scores keep the input order unless a random key is given. A score of -inf marks a document that was "
            "not retrieved: in ndcg_ml, pass retrieved=scores > -inf."
        ),
        switches={**_FLOAT32_LIST, "gain": "exponential", "ideal": "global", "ties": "first"},
    ),
    Mirror(
        name="tensorflow_ranking",
        library="TensorFlow Ranking 0.5.5 (TensorFlow 2.15.1), NDCGMetric",
        verified="reproduces 60 recorded values without tied scores",
        unusual=(
            "Tied scores are shuffled in every call, and the preset averages over all orders. Negative labels are "
            "padding and are dropped."
        ),
        switches={**_FLOAT32_LIST, "gain": "exponential", "negative": "drop"},
    ),
    Mirror(
        name="allrank",
        library="allRank (git c884756), allrank.models.metrics.ndcg",
        verified="reproduces 71 recorded values",
        unusual=(
            "A list without a relevant document scores 1. The label -1 marks padding, which is dropped. Other negative "
            "labels go through the gain formula in allRank, and the preset drops them."
        ),
        switches={**_LIGHTGBM, "score_dtype": "float32", "negative": "drop"},
    ),
    # -- benchmarks of learning to rank
    Mirror(
        name="ranklib",
        library="RankLib (codelibs 2.10.2, git e43f605), NDCGScorer",
        verified="reproduces 60 recorded values",
        unusual=(
            "The gain is 2^y - 1, not y as is often claimed. Labels are truncated to integers (1.7 becomes 1), and "
            "from grade 32 the gain overflows to 0."
        ),
        switches={**_LIGHTGBM, "empty": 0.0},
    ),
    Mirror(
        name="letor3",
        library="LETOR 3.0, Eval-Score-3.0.pl (a third party's copy)",
        verified="reproduces 27 recorded values",
        unusual=(
            "Ranks 1 and 2 have no discount, and grades from 3 have gain 0. A query with fewer than k documents scores "
            "0, even if it is ranked perfectly."
        ),
        switches=_LETOR,
    ),
    Mirror(
        name="letor4",
        library="LETOR 4.0, Eval-Score-4.0.pl (a third party's copy)",
        verified="reproduces 47 recorded values",
        unusual=(
            "The definition is that of LETOR 3.0: ranks 1 and 2 have no discount, grades from 3 have gain 0, and a "
            "query with fewer than k documents scores 0. It prints four decimals."
        ),
        switches=_LETOR,
    ),
    Mirror(
        name="mslr",
        library="MSLR-WEB10K and -WEB30K, eval-score-mslr.pl (third parties' copies)",
        verified="reproduces 47 recorded values",
        unusual=(
            "As in LETOR, ranks 1 and 2 have no discount, and a query with fewer than k documents scores 0. Another "
            "copy of the script uses log2(rank + 1), so published values depend on the copy."
        ),
        switches={**_LETOR, "gain": (0, 1, 3, 7, 15)},
    ),
    # -- runs and judgements
    Mirror(
        name="trec_eval10",
        library="trec_eval 10.0 (git f425365), ndcg and ndcg_cut",
        verified="reproduces 171 recorded values, to the 4 digits that it prints",
        unusual=(
            "Scores are compared in float64; trec_eval 9 compares them in float32. A topic without results is an error "
            "unless -c is given."
        ),
        switches={**_TREC_EVAL, "score_dtype": "float64"},
    ),
    Mirror(
        name="pytrec_eval",
        library="pytrec_eval-terrier 0.5.11, ndcg and ndcg_cut",
        verified="reproduces 98 recorded values, and live values to 1e-12",
        unusual=(
            "It is trec_eval 9: scores are compared in float32, and tied documents are ranked by descending id. Only "
            "topics in both the run and the judgements are averaged."
        ),
        switches=_TREC_EVAL,
    ),
    Mirror(
        name="ir_measures",
        library="ir_measures 0.4.3, nDCG@k",
        verified="reproduces 98 recorded values, and live values to 1e-12",
        unusual=(
            "The value of a topic is that of trec_eval. The mean is over all judged topics, and a topic without "
            "results scores 0."
        ),
        switches=_TREC_EVAL,
    ),
    Mirror(
        name="gdeval",
        library="gdeval.pl 1.2a (TREC Web track), NDCG@k",
        verified="reproduces live values to the 5 digits that it prints",
        unusual=(
            "The gain is 2^y - 1; in trec_eval it is y. A topic without a relevant document is excluded from the mean, "
            "with -c and without. A grade above 4 is an error."
        ),
        switches={**_GDEVAL, "empty": "skip"},
    ),
    Mirror(
        name="ir_measures_exp",
        library="ir_measures 0.4.3, nDCG(dcg='exp-log2')@k",
        verified="reproduces 66 recorded values, and live values to the 5 digits that it prints",
        unusual=(
            "It runs gdeval.pl and adds the judged topics that the script excludes, with the score 0. These include "
            "topics without a relevant document. A grade above 4 is an error."
        ),
        switches=_GDEVAL,
    ),
    Mirror(
        name="ranx",
        library="ranx 0.3.21, 'ndcg'",
        verified="reproduces 108 recorded values, and live values to 1e-12",
        unusual=(
            "Grades are truncated to integers, so 0 < y < 1 is not relevant. Tied scores keep the order of the run for "
            "up to 15 documents. For longer queries the sort is unstable."
        ),
        switches=_RANX,
    ),
    Mirror(
        name="ranx_burges",
        library="ranx 0.3.21, 'ndcg_burges'",
        verified="reproduces 98 recorded values, and live values to 1e-12",
        unusual="The same library's other NDCG, with gain 2^y - 1. Only its name shows the difference.",
        switches={**_RANX, "gain": "exponential"},
    ),
    # -- recommender systems
    Mirror(
        name="recommenders_binary",
        library="Recommenders 1.2.1, ndcg_at_k(score_type='binary')",
        verified="reproduces 82 recorded values, and live values to 1e-12",
        unusual="In this default, every rated item has gain 1, even an item rated 0.",
        switches=_RECOMMENDERS,
    ),
    Mirror(
        name="recommenders_raw",
        library="Recommenders 1.2.1, ndcg_at_k(score_type='raw')",
        verified="reproduces 76 recorded values, and live values to 1e-12",
        unusual="A user without an item rated above 0 has no value and is excluded from the mean.",
        switches={**_RECOMMENDERS, "gain": "linear"},
    ),
    Mirror(
        name="recommenders_exp",
        library="Recommenders 1.2.1, ndcg_at_k(score_type='exp')",
        verified="reproduces 68 recorded values, and live values to 1e-12",
        unusual=(
            "A user without an item rated above 0 is excluded from the mean. Negative integer ratings raise an error."
        ),
        switches={**_RECOMMENDERS, "gain": "exponential"},
    ),
    Mirror(
        name="recbole",
        library="RecBole 1.2.1, NDCG",
        verified="reproduces 74 recorded values",
        unusual="Every relevant item has gain 1, whatever its rating, and values are rounded to four decimals.",
        switches={**_SET, "k": 10},
    ),
    Mirror(
        name="spark",
        library="Spark MLlib 4.3.0, RankingMetrics.ndcgAt without grades",
        verified="reproduces 74 recorded values",
        unusual="The gain is binary, and an item that occurs twice in the prediction counts twice.",
        switches=_SET,
    ),
    Mirror(
        name="spark_graded",
        library="Spark MLlib 4.3.0 (Scala), RankingMetrics.ndcgAt with grades",
        verified="reproduces 146 recorded values",
        unusual=(
            "The ideal is the judgements in the given order, not sorted. Unless they are listed best first, NDCG can "
            "exceed 1."
        ),
        switches={**_GRADED_LIST, "gain": "exponential", "ideal": "given"},
    ),
    Mirror(
        name="pyspark_graded",
        library="PySpark 4.3.0, RankingMetrics.ndcgAt with grades",
        verified="reproduces 70 recorded values",
        unusual=(
            "Python silently drops the grades when it calls Spark, so every judged item has gain 1, even one of grade "
            "0."
        ),
        switches={**_GRADED_LIST, "gain": "judged"},
    ),
    # -- search quality tools
    Mirror(
        name="quepid",
        library="Quepid (git f80322f), scorer ndcg@10",
        verified="reproduces 74 recorded values",
        unusual=(
            "The ideal has no cut-off, so a perfect ranking scores less than 1 if more than k documents are rated (12 "
            "rated documents: 0.976 at 10, 0.642 at 3). If all ratings of a query are negative, Quepid divides one "
            "negative DCG by another, and the preset treats the query as empty."
        ),
        switches=_QUEPID,
    ),
    Mirror(
        name="quepid_cut",
        library="Quepid (git f80322f), scorer ndcg_cut@10",
        verified="reproduces 74 recorded values",
        unusual=(
            "This scorer has an ideal with the cut-off k; ndcg@10 of the same tool does not. If all ratings of a query "
            "are negative, Quepid divides one negative DCG by another, and the preset treats the query as empty."
        ),
        switches={**_QUEPID, "ideal_depth": "k"},
    ),
    Mirror(
        name="elasticsearch",
        library="Elasticsearch (git 02f2048), ranking evaluation 'dcg' with normalize=true",
        verified="derived from the source alone, DiscountedCumulativeGain.java; the library was not run",
        unusual=(
            "The ideal has the cut-off at the number of returned hits, so a search that returns only the best document "
            "scores 1, however many other documents are relevant."
        ),
        switches={**_QUEPID, "ideal_depth": "retrieved"},
    ),
    # -- retrieval-augmented generation and embeddings
    Mirror(
        name="mlflow",
        library="mlflow 3.17.2, mlflow.metrics.ndcg_at_k",
        verified="reproduces 102 recorded values, and live values of random problems to 1e-12",
        unusual=(
            "The ideal has the cut-off at the number of retrieved documents, so one relevant document scores 1, "
            "however many others there are. A document that was retrieved twice counts as two relevant ones, also in "
            "the ideal. A query without a relevant document scores 0, or 1 if nothing was retrieved."
        ),
        switches={**_SET, "ideal_depth": "retrieved"},
    ),
    Mirror(
        name="sentence_transformers",
        library="sentence-transformers 6.2.0, InformationRetrievalEvaluator and NanoBEIREvaluator",
        verified="reproduces 117 recorded values, and live values of random problems to 1e-12",
        unusual=(
            "The gain is binary even for graded judgements. Tied documents are ranked by ascending document id; "
            "trec_eval uses descending ids. A document that occurs twice counts twice. Queries without a relevant "
            "document are excluded. The cut-off is 10 unless ndcg_at_k is given."
        ),
        switches={**_SET_OF_SOME, "ties": "docid_ascending", "duplicates": "count", "k": 10},
    ),
    Mirror(
        name="llama_index",
        library="LlamaIndex core 0.14.25, llama_index.core.evaluation.retrieval.metrics.NDCG",
        verified="reproduces 144 recorded values, and live values of random problems to 1e-12",
        unusual=(
            "There is no cut-off, and the ideal has every expected id, so two retrieved documents cannot score 1 if "
            "three are expected. A document that was retrieved twice counts twice, so NDCG can exceed 1. A query "
            "without an expected or a retrieved id is an error."
        ),
        switches={**_SET, "ideal_depth": "all", "empty": "raise", "duplicates": "count"},
    ),
    Mirror(
        name="haystack",
        library="Haystack 3.4, DocumentNDCGEvaluator",
        verified="reproduces 168 recorded values, and live values of random problems to 1e-12",
        unusual=(
            "There is no cut-off, and the ideal has every relevant document. A document that was retrieved twice "
            "counts once, and until July 2026 counted twice. The score of a ground truth document is its grade, or 1 "
            "if there are no scores."
        ),
        switches={**_GRADED_LIST, "ideal_depth": "all", "duplicates": "first"},
    ),
    Mirror(
        name="phoenix",
        library="Arize Phoenix 20.26, phoenix.metrics.retrieval_metrics.RetrievalMetrics.ndcg",
        verified="reproduces 128 recorded values of its function alone, and 300 random problems to 1e-15",
        unusual=(
            "The ideal has only the retrieved documents, so a single relevant document on top scores 1, however many "
            "were missed. If one label is NaN, Phoenix returns NaN and ndcg_ml raises an error."
        ),
        switches={"ideal": "recall", "ties": "first"},
    ),
    Mirror(
        name="vespa",
        library="pyvespa 1.2.9, VespaEvaluator with graded relevance",
        verified="reproduces 120 recorded values, and live values of random problems to 1e-12",
        unusual=(
            "A dict of relevant documents is graded with gain y. A set is binary: use gain='binary'. Documents are "
            "ranked in the order in which Vespa returns the hits, and one that is returned twice counts twice."
        ),
        switches={**_GRADED_LIST, "duplicates": "count"},
    ),
    Mirror(
        name="trulens",
        library="TruLens 2.16, GroundTruthAgreement.ndcg_at_k",
        verified="reproduces 126 recorded values, and 300 random problems to 1e-15",
        unusual=(
            "A query without a relevant chunk is NaN. A chunk that was retrieved twice counts once. Without k, the "
            "ideal has the cut-off at the number of retrieved chunks: use ideal_depth='retrieved'."
        ),
        switches={**_GRADED_LIST, "empty": "nan", "duplicates": "first"},
    ),
    Mirror(
        name="azure_ai_evaluation",
        library="azure-ai-evaluation 1.18.10 (Azure AI Foundry), DocumentRetrievalEvaluator",
        verified="reproduces 93 recorded values with other ranges of labels, and 300 random problems to 1e-15",
        unusual=(
            "The cut-off is always 3, and the gain is 2^y - 1. A label below 0 or above 4 is an error unless its range "
            "is set."
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
        verified="reproduces 168 recorded values of its function alone, and 300 random problems to 1e-15",
        unusual=(
            "There is no cut-off, and the ideal has as many documents as were retrieved, so a single relevant one "
            "scores 1. A document that was retrieved twice counts twice, so NDCG can exceed 1."
        ),
        switches={**_SET, "ideal_depth": "retrieved", "duplicates": "count"},
    ),
    Mirror(
        name="opensearch",
        library="OpenSearch search-relevance (git d8be5d1), NDCG@k",
        verified="reproduces 126 recorded values of Evaluation.java alone, to the two decimals of each query",
        unusual=(
            "The value of each query is rounded to two decimals before the mean. A document that was retrieved twice "
            "counts twice."
        ),
        switches={**_QUEPID, "ideal_depth": "k", "duplicates": "count"},
    ),
    Mirror(
        name="mteb",
        library="MTEB 2.26.24, ndcg_at_k",
        verified="reproduces 96 recorded values, rounded to five decimals. It calls pytrec_eval",
        unusual=(
            "Only queries in both the run and the judgements are averaged: use queries='both' of evaluate_run. Values "
            "are rounded to five decimals."
        ),
        alias_of="pytrec_eval",
    ),
    Mirror(
        name="beir",
        library="BEIR 2.2.0, EvaluateRetrieval",
        verified="reproduces 99 recorded values, and 140 random problems",
        unusual=(
            "A document with the id of the query is dropped from the run (ignore_identical_ids=True) but not from the "
            "ideal. Only queries in both the run and the judgements are averaged, and values are rounded to five "
            "decimals."
        ),
        alias_of="pytrec_eval",
    ),
    Mirror(
        name="flagembedding",
        library="FlagEmbedding 1.4.2, evaluate_metrics",
        verified="reproduces 99 recorded values, rounded to five decimals. It calls pytrec_eval",
        unusual="Only queries in both the run and the judgements are averaged. Values are rounded to five decimals.",
        alias_of="pytrec_eval",
    ),
    Mirror(
        name="rcp_ndcg",
        library="RCP-nDCG (Cohere, arXiv 2609.35739), also ndcg_float_at_k of MTEB's open pull request 5516",
        verified="reproduces 252 recorded values of both functions, run alone",
        unusual=(
            "The labels are gains from 0 to 1, from a language model's judgements. The paper ranks the judged pool "
            "alone: use unjudged='condense', and exclude= for documents that the benchmark removes. Its tables of "
            "NanoBEIR and BRIGHT rank tied documents by id: use ties='docid'."
        ),
        switches={"unjudged": "zero", "k": 10},
    ),
    # -- further recommender systems
    Mirror(
        name="pyg",
        library="PyTorch Geometric 2.8.1, LinkPredNDCG",
        verified="reproduces 93 recorded values, and live values to 1e-6 (the library computes in float32)",
        unusual=(
            "Nodes without a link to predict are excluded from the mean. With weighted=True, the weight of an edge is "
            "its gain: use gain='linear'."
        ),
        switches=_SET_OF_SOME,
    ),
    Mirror(
        name="torchrec",
        library="TorchRec 1.9.2, NDCGMetric",
        verified="reproduces 89 recorded values of its function alone, and 300 random problems without ties",
        unusual=(
            "It reports 1 - NDCG unless report_ndcg_as_decreasing_curve=False. With exponential_gain=True, the gain is "
            "2^y - 1. The value of a session is multiplied by its largest weight and divided by the number of "
            "sessions. Sessions end with their batch. Tied scores are in the order of an unstable sort."
        ),
        switches={**_FLOAT32_LIST, "ties": "first"},
    ),
    Mirror(
        name="ignite",
        library="PyTorch-Ignite 0.5.5, ignite.metrics.rec_sys.NDCG",
        verified="reproduces 57 recorded values, and live values to 1e-6 (the library computes in float32)",
        unusual=(
            "A label below relevance_threshold=1 has gain 0, also if it is a fraction. Users without a relevant item "
            "are excluded (ignore_zero_hits=True)."
        ),
        switches={**_LIGHTGBM, "empty": "skip", "score_dtype": "float32", "negative": "zero"},
    ),
    Mirror(
        name="tfma",
        library="TensorFlow Model Analysis 0.52, NDCG",
        verified="reproduces 62 recorded values of its functions alone, and 300 random problems without ties",
        unusual=(
            "Queries without a gain above 0 have weight 0. If there are no other queries, the value is NaN, and "
            "ndcg_ml raises an error. Tied scores are in the reverse order of an unstable sort."
        ),
        switches={**_PASSED_LIST, "ties": "last", "empty": "skip"},
    ),
    Mirror(
        name="evidently",
        library="Evidently 0.7.23, NDCG and NDCGKMetric",
        verified="reproduces 80 recorded values, and 53 random problems without ties to 1e-12",
        unusual=(
            "The rank of tied scores is the mean of their ranks, truncated to an integer, so two relevant items that "
            "tie for the first rank have NDCG@1 = 2. Users without a relevant item are excluded "
            "(no_feedback_users=False)."
        ),
        switches={**_PASSED_LIST, "empty": "skip"},
    ),
    Mirror(
        name="implicit",
        library="implicit 0.7.3, implicit.evaluation.ndcg_at_k",
        verified="reproduces 93 recorded values, and live values of random problems to 1e-12",
        unusual="Users without a test item are excluded from the mean. The cut-off is 10 unless K is given.",
        switches={**_SET_OF_SOME, "k": 10},
    ),
    Mirror(
        name="rectools",
        library="RecTools 0.19.0, NDCG",
        verified="reproduces 93 recorded values, and live values of random problems to 1e-12",
        unusual=(
            "The ideal has k relevant items, even if the user has fewer: the only relevant item on top scores 0.220 at "
            "k = 10 (divide_by_achievable=False, the default). A user without a relevant item is missing from its "
            "table of interactions, and so from its mean."
        ),
        switches={**_SET, "ideal": "max", "max_grade": 1},
    ),
    Mirror(
        name="rectools_achievable",
        library="RecTools 0.19.0, NDCG(divide_by_achievable=True)",
        verified="reproduces 93 recorded values, and 240 random problems to 1e-12",
        unusual="The ideal has the user's relevant items, unlike the default. Users without one are excluded.",
        switches=_SET_OF_SOME,
    ),
    Mirror(
        name="lenskit",
        library="LensKit 2025.8.1, NDCG",
        verified=(
            "reproduces 136 recorded values, and live values of random problems to 1e-12. With empty='skip', it "
            "reproduces 124 values of LensKit 2026.4.0"
        ),
        unusual=(
            "Ranks 1 and 2 have the same discount (LogRankWeight(offset=1) is log2(rank + 1)), so a single relevant "
            "item at rank 2 scores 1. A user without a test item is NaN, which counts as 0 in the summary of a run. "
            "LensKit 2026.4.0 excludes such users: use empty='skip'. gain= names a field with the gains: use "
            "gain='linear'."
        ),
        switches={**_SET, "discount": "jarvelin"},
    ),
    Mirror(
        name="replay",
        library="RePlay 0.22, NDCG",
        verified="reproduces 117 recorded values, and 120 random problems to 1e-12",
        unusual=(
            "The gain is binary whatever the ratings, and an item that is recommended twice counts twice. Tied ratings "
            "are ranked by descending item, and users without a relevant item are excluded."
        ),
        switches={**_SET_OF_SOME, "ties": "docid", "duplicates": "count"},
    ),
    Mirror(
        name="transformers4rec",
        library="Transformers4Rec 23.12, NDCGAt(top_ks=[10, 20])",
        verified="reproduces 54 recorded values of its functions alone, and 600 random problems without ties to 1e-7",
        unusual=(
            "The ideal has the first max(top_ks) items of the ranking. It excludes relevant items at later ranks, and "
            "the value at 10 depends on whether 20 is in top_ks. Tied scores are in the undefined order of torch.topk."
        ),
        switches={**_FLOAT32_LIST, "recall_depth": 20, "ties": "first", "k": 20},
    ),
    Mirror(
        name="librecommender",
        library="LibRecommender 1.5.2, ndcg_at_k",
        verified=(
            "reproduces 102 recorded values of its function alone, and 300 random problems to 1e-7 (the library uses "
            "float32)"
        ),
        unusual=(
            "The ideal is the same list in sorted order, so NDCG measures how early the relevant items are and not how "
            "many were missed: one relevant item on top scores 1."
        ),
        switches={**_SET, "ideal": "local", "k": 10},
    ),
    Mirror(
        name="elliot",
        library="Elliot (git fc27efe), nDCG",
        verified="reproduces 93 recorded values. The formula was also compared on 251 random problems",
        unusual=(
            "The gain is 2^(y - t + 1) - 1 from the relevance_threshold t, which is 0 by default, so a rating of 0 has "
            "gain 1. For t = 1 and integer ratings, use gain='exponential'; for t = 2, gain=(0, 0, 1, 3, 7, 15)."
        ),
        switches={**_SET_OF_SOME, "gain": (1, 3, 7, 15, 31, 63)},
    ),
    Mirror(
        name="cornac",
        library="Cornac 3.0.1, cornac.metrics.NDCG",
        verified="reproduces 124 recorded values, and 281 random problems to 1e-12",
        unusual=(
            "It is the NDCG of PyTorch Geometric: the gain is binary, and users without a positive item are excluded."
        ),
        alias_of="pyg",
    ),
    # -- further learning to rank
    Mirror(
        name="fastrank",
        library="FastRank 0.8.0, 'ndcg' and 'ndcg@k'",
        verified="reproduces 88 recorded values, and 80 random problems with ties to 1e-15",
        unusual="Tied scores are ranked in the worst order. With a separate file of judgements, the ideal is global.",
        switches={**_FLOAT32_LIST, "gain": "exponential", "ties": "worst"},
    ),
    Mirror(
        name="pyltr",
        library="pyltr 0.2.6, pyltr.metrics.NDCG",
        verified="reproduces 88 recorded values with and without tied scores, and live values to 1e-12",
        unusual=(
            "Tied scores are ranked in the worst order. The metric object caches the ideal of each query id, so a data "
            "set that reuses an id for another query gets wrong values."
        ),
        switches={**_PASSED_LIST, "gain": "exponential", "ties": "worst", "k": 10},
    ),
    Mirror(
        name="rank_metrics",
        library="rank_metrics.py (gist bwhite/3726239, copied into many projects), ndcg_at_k(method=0)",
        verified="reproduces 136 recorded values. The formula was also compared on 1200 random problems",
        unusual=(
            "Ranks 1 and 2 have the same discount by default. The ideal is the given list in sorted order. If you pass "
            "only the first k grades, use ideal='local'; documents that were missed are then not in the ideal."
        ),
        switches={**_PASSED_LIST, "discount": "jarvelin"},
    ),
    Mirror(
        name="rank_metrics_log2",
        library="rank_metrics.py (gist bwhite/3726239, copied into many projects), ndcg_at_k(method=1)",
        verified="reproduces 136 recorded values. The formula was also compared on 1200 random problems",
        unusual="The discount 1 / log2(r + 1) is an option. The ideal is the given list in sorted order.",
        switches=_PASSED_LIST,
    ),
    Mirror(
        name="mlnet",
        library="ML.NET (git 04b6b6e), RankingEvaluator",
        verified="derived from the source alone, RankingEvaluator.cs; the library was not run",
        unusual=(
            "Grade 1 has gain 3, not 1 (the table is 0, 3, 7, 15, 31). The discount uses the natural logarithm, which "
            "changes DCG but not NDCG. NDCG@1 to @3 are printed as percentages. Tied scores are ranked in the worst "
            "order."
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
        verified="reproduces 157 recorded values, and random problems without ties",
        unusual=(
            "With PyTorch, padded lists have other values, which is a bug. Tied scores are shuffled, even with "
            "shuffle_ties=False, and the preset averages over all orders. Negative labels are dropped. A query without "
            "a relevant document has the mean weight of the others, which the preset does not reproduce."
        ),
        switches={**_FLOAT32_LIST, "gain": "exponential", "negative": "drop"},
    ),
    Mirror(
        name="flaml",
        library="FLAML 2.7.0, metric 'ndcg@k'",
        verified="reproduces 63 recorded values. It calls ndcg_score of scikit-learn for each query",
        unusual="Plain 'ndcg', the default metric of the task 'rank', treats the whole data set as one query.",
        alias_of="sklearn",
    ),
    Mirror(
        name="pytorchltr",
        library="pytorchltr 0.2.1 (git 625416e), pytorchltr.evaluation.ndcg",
        verified="reproduces 77 recorded values, and 60 random problems without ties to 1e-6",
        unusual=(
            "Tied scores are shuffled in every call, and the preset averages over all orders. For exp=False, use "
            "gain='linear'. It returns the value of each query, and the caller computes the mean."
        ),
        switches={**_FLOAT32_LIST, "gain": "exponential"},
    ),
    Mirror(
        name="rankeval",
        library="RankEval (git c6e39e9), rankeval.metrics.NDCG",
        verified="reproduces 87 recorded values of its metrics alone, and 60 random problems without ties to 1e-6",
        unusual=(
            "A query without a relevant document scores 1 (no_relevant_results). For implementation='flat', use "
            "gain='linear'. Tied scores are in the reverse order of an unstable sort."
        ),
        switches={**_PASSED_LIST, "gain": "exponential", "ties": "last", "empty": 1.0},
    ),
    Mirror(
        name="ptranking",
        library="PT-Ranking (git f1d366c), Evaluator.ndcg_at_ks",
        verified="reproduces 83 recorded values of its evaluator alone, and 60 random problems to 1e-6",
        unusual=(
            "A list with fewer than k documents scores 0, even if it is ranked perfectly. One query without a relevant "
            "document makes the mean NaN, so its data loaders exclude such queries."
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
        verified="reproduces 84 recorded values, and 60 random problems without ties to 1e-12",
        unusual=(
            "A list without a relevant item scores 1. Lists with fewer than k items raise an error. Tied scores are in "
            "the order of an unstable sort. Lists of names instead of scores are binary: use gain='binary' and "
            "ideal='global'."
        ),
        switches={**_PASSED_LIST, "empty": 1.0},
    ),
    Mirror(
        name="rankereval",
        library="rankerEval 0.2.0, NDCG with NumericLabels",
        verified=(
            "reproduces 139 recorded values, and 60 random problems to 1e-6 (the library stores labels in float32)"
        ),
        unusual=(
            "One query without a relevant document makes the mean NaN (nan_handling='propagate', the default). For "
            "'drop', use empty='skip'; for 'zerofill', empty=0. The natural logarithm changes DCG but not NDCG. "
            "relevance_scaling='power' is y^2 - 1 and not 2^y - 1."
        ),
        switches={**_GRADED_LIST, "discount": "ln", "empty": float("nan")},
    ),
    Mirror(
        name="recpack",
        library="RecPack 0.3.6, NDCGK",
        verified="reproduces 102 recorded values, and 60 random problems to 1e-12",
        unusual=(
            "It is the NDCG of PyTorch Geometric: the gain is binary, and users without a relevant item are excluded. "
            "With grades, the gain is y, and the ideal has as many relevant items as the sum of the grades."
        ),
        alias_of="pyg",
    ),
    Mirror(
        name="ydf",
        library="YDF 0.16.1 (Yggdrasil Decision Forests), evaluate_predictions and model.evaluate",
        verified="reproduces 100 recorded values, and 300 random problems with weights to 1e-12",
        unusual=(
            "The cut-off is 5 unless ndcg_truncation is given. Scores are compared in float32, and ties are averaged. "
            "A data set of one query is rejected. The weight of a query is that of its last row."
        ),
        switches={**_FLOAT32_LIST, "gain": "exponential", "k": 5},
    ),
    Mirror(
        name="river",
        library="river (git 4e94aa9), metrics.NDCG",
        verified="reproduces 168 recorded values of its class alone",
        unusual=(
            "Documents without a grade have gain 0, as in ranx, but negative grades are not changed, and a document "
            "that is listed twice counts twice."
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
