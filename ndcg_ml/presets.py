"""Mirrors of the NDCG that other libraries and papers compute: one entry each, as plain data.

Every entry says which switches of a ``Flavor`` reproduce the library, which version was
run to establish that, and what surprises its users. ``Flavor.preset(name)`` turns an entry into a
flavor; ``ndcg_ml.PRESETS`` lists them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MIRRORS", "Mirror"]


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """What one library or paper calls NDCG.

    Attributes
    ----------
    name : str
        Name of the preset.
    library : str
        The library with the version that was run, or the paper.
    verified : str
        How the switches were established. Recorded values were computed by the library, and are reproduced by this
        preset as it is; "live" is a comparison with the installed library on random problems, in the tests.
    unusual : str
        The one sentence a user of that library should know.
    switches : Mapping[str, object]
        Fields of ``Flavor`` that differ from, or deliberately repeat, its defaults.
    """

    name: str
    library: str
    verified: str
    unusual: str
    switches: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "switches", MappingProxyType(dict(self.switches)))


# What the variants of one library have in common.
_XGBOOST = {
    "gain": "exponential",
    "ideal": "recall",
    "ties": "first",
    "empty": 1.0,
    "score_dtype": "float32",
    "k": 32,
}
_CATBOOST = {
    "gain": "linear",
    "ideal": "recall",
    "ties": "worst",
    "empty": 1.0,
    "negative": "allow",
}
_TORCHMETRICS = {
    "gain": "linear",
    "ideal": "recall",
    "ties": "average",
    "empty": 0.0,
    "score_dtype": "float32",
    "negative": "allow",
}
_LETOR = {
    "gain": (0, 1, 3),
    "off_table": "zero",
    "discount": "jarvelin",
    "ideal": "recall",
    "ties": "first",
    "empty": 0.0,
    "short_lists": "zero",
}
_TREC_EVAL = {
    "gain": "linear",
    "ideal": "global",
    "ties": "docid",
    "empty": 0.0,
    "score_dtype": "float32",
    "negative": "zero",
    "unjudged": "zero",
}
_RANX = {
    "gain": "linear",
    "ideal": "global",
    "ties": "first",
    "empty": 0.0,
    "negative": "zero",
    "unjudged": "zero",
}
_RECOMMENDERS = {
    "gain": "judged",
    "ideal": "global",
    "ties": "first",
    "empty": "skip",
    "negative": "allow",
    "unjudged": "zero",
    "k": 10,
}
_QUEPID = {
    "gain": "exponential",
    "ideal": "global",
    "ideal_depth": "all",
    "ties": "first",
    "empty": 0.0,
    "negative": "allow",
    "unjudged": "zero",
    "k": 10,
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
        switches={
            "gain": "linear",
            "ideal": "recall",
            "ties": "average",
            "empty": 0.0,
        },
    ),
    Mirror(
        name="lightgbm",
        library="LightGBM 4.7.0, metric 'ndcg'",
        verified="run; 55 recorded values, and live to 1e-9 over boosting rounds with tied scores",
        unusual=(
            "Tied scores keep the order of the rows in the file, so a constant model scores 1.0 on rows sorted "
            "best-first; a query without a relevant document counts 1, even where queries are weighted."
        ),
        switches={
            "gain": "exponential",
            "ideal": "recall",
            "ties": "first",
            "empty": 1.0,
        },
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
        switches=_TORCHMETRICS,
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
            "ties": "average",
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
            "gain": "linear",
            "discount": "jarvelin",
            "ideal": "global",
            "ties": "average",
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
            "gain": "linear",
            "ideal": "recall",
            "ties": "last",
            "empty": 0.0,
        },
    ),
    Mirror(
        name="lightgbm_linear",
        library="LightGBM 4.7.0, metric 'ndcg' with label_gain=0,1,2,...",
        verified="run; 55 recorded values",
        unusual=(
            "label_gain changes the metric and the objective together; tied scores keep the order of the rows, "
            "and a query without a relevant document counts 1."
        ),
        switches={
            "gain": "linear",
            "ideal": "recall",
            "ties": "first",
            "empty": 1.0,
        },
    ),
    Mirror(
        name="xgboost_minus",
        library="XGBoost 3.2.0, eval_metric 'ndcg-' or 'ndcg@k-'",
        verified="run; 23 recorded values, and live to the 1e-6 that it prints",
        unusual="The minus makes a query without a relevant document count 0 rather than 1, and nothing else.",
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
        unusual="The exponential gain has to be asked for: type=Base is the default.",
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
        unusual="Queries whose labels sum to zero count 1, so that queries without an answer raise the mean.",
        switches={**_TORCHMETRICS, "empty": 1.0},
    ),
    Mirror(
        name="torchmetrics_skip",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG(empty_target_action='skip')",
        verified="run; 62 recorded values, and live to 1e-5",
        unusual=(
            "Queries whose labels sum to zero are left out of the mean, and the mean of none is 0 there; it is "
            "an error here."
        ),
        switches={**_TORCHMETRICS, "empty": "skip"},
    ),
    Mirror(
        name="torchmetrics_error",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG(empty_target_action='error')",
        verified="run live: raises where the labels of a query sum to zero, else equal to 1e-5",
        unusual="One query whose labels sum to zero stops the evaluation.",
        switches={**_TORCHMETRICS, "empty": "raise"},
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
        switches={
            "gain": "exponential",
            "ideal": "global",
            "ties": "first",
            "empty": 0.0,
            "score_dtype": "float32",
            "negative": "allow",
        },
    ),
    Mirror(
        name="tensorflow_ranking",
        library="TensorFlow Ranking 0.5.5 (TensorFlow 2.15.1), NDCGMetric",
        verified="run; 60 recorded values, none with tied scores",
        unusual=(
            "Tied scores are shuffled anew in every call, of which averaging over all orders is the "
            "expectation; negative labels are padding and dropped."
        ),
        switches={
            "gain": "exponential",
            "ideal": "recall",
            "ties": "average",
            "empty": 0.0,
            "score_dtype": "float32",
            "negative": "drop",
        },
    ),
    Mirror(
        name="allrank",
        library="allRank (git c884756), allrank.models.metrics.ndcg",
        verified="run; 71 recorded values",
        unusual=(
            "A list without a relevant document counts 1, and the label -1 marks padding, which is dropped; "
            "other negative labels, dropped here, go through the gain formula there."
        ),
        switches={
            "gain": "exponential",
            "ideal": "recall",
            "ties": "first",
            "empty": 1.0,
            "score_dtype": "float32",
            "negative": "drop",
        },
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
        switches={
            "gain": "exponential",
            "ideal": "recall",
            "ties": "first",
            "empty": 0.0,
        },
    ),
    Mirror(
        name="letor3",
        library="LETOR 3.0, Eval-Score-3.0.pl (a third party's copy)",
        verified="run; 27 recorded values",
        unusual=(
            "Ranks 1 and 2 are both undiscounted, grades from 3 on gain 0, and a query with fewer than k "
            "documents counts 0, even when it is ranked perfectly."
        ),
        switches=_LETOR,
    ),
    Mirror(
        name="letor4",
        library="LETOR 4.0, Eval-Score-4.0.pl (a third party's copy)",
        verified="run; 47 recorded values",
        unusual=(
            "It is the definition of LETOR 3.0: ranks 1 and 2 undiscounted, grades from 3 on gain 0, a query "
            "with fewer than k documents counts 0; it prints four decimals."
        ),
        switches=_LETOR,
    ),
    Mirror(
        name="mslr",
        library="MSLR-WEB10K and -WEB30K, eval-score-mslr.pl (third parties' copies)",
        verified="run; 47 recorded values",
        unusual=(
            "As the scripts of LETOR, ranks 1 and 2 are both undiscounted and a query with fewer than k "
            "documents counts 0; a copy in circulation was changed to log2(rank + 1), so published values "
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
            "The value of a topic is trec_eval's, but every judged topic is averaged, so that one which the run "
            "lacks counts 0."
        ),
        switches=_TREC_EVAL,
    ),
    Mirror(
        name="gdeval",
        library="gdeval.pl, through ir_measures 0.4.3 as nDCG(dcg='exp-log2')@k",
        verified="run; 66 recorded values, and live, to the 5 digits that it prints",
        unusual="The gain is 2^y - 1 where trec_eval's is y, and a grade above 4 is an error.",
        switches={**_TREC_EVAL, "gain": "exponential", "max_grade": 4, "score_dtype": "float64"},
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
        unusual="The default: every rated item counts 1, an item rated 0 as well.",
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
        unusual="Every relevant item counts 1, whatever its rating, and the values are rounded to four decimals.",
        switches={
            "gain": "binary",
            "ideal": "global",
            "ties": "first",
            "empty": 0.0,
            "negative": "zero",
            "unjudged": "zero",
            "k": 10,
        },
    ),
    Mirror(
        name="spark",
        library="Spark MLlib 4.3.0, RankingMetrics.ndcgAt without grades",
        verified="run; 74 recorded values",
        unusual="It is binary, and an item that the prediction holds twice counts twice.",
        switches={
            "gain": "binary",
            "ideal": "global",
            "ties": "first",
            "empty": 0.0,
            "negative": "zero",
            "unjudged": "zero",
        },
    ),
    Mirror(
        name="spark_graded",
        library="Spark MLlib 4.3.0 (Scala), RankingMetrics.ndcgAt with grades",
        verified="run; 146 recorded values",
        unusual=(
            "The ideal is the judgements in the order given, not sorted: unless they are listed best first, "
            "NDCG may exceed 1."
        ),
        switches={
            "gain": "exponential",
            "ideal": "given",
            "ties": "first",
            "empty": 0.0,
            "negative": "allow",
            "unjudged": "zero",
        },
    ),
    Mirror(
        name="pyspark_graded",
        library="PySpark 4.3.0, RankingMetrics.ndcgAt with grades",
        verified="run; 70 recorded values",
        unusual=(
            "Python drops the grades on the way to Spark without a word: every judged item counts 1, one of "
            "grade 0 as well."
        ),
        switches={
            "gain": "judged",
            "ideal": "global",
            "ties": "first",
            "empty": 0.0,
            "negative": "allow",
            "unjudged": "zero",
        },
    ),
    # -- search quality tools
    Mirror(
        name="quepid",
        library="Quepid (git f80322f), scorer ndcg@10",
        verified="run; 74 recorded values",
        unusual=(
            "The ideal is not cut at k: a perfect ranking scores less than 1 as soon as more than k documents "
            "are rated (12 rated documents: 0.976 at 10, 0.642 at 3)."
        ),
        switches=_QUEPID,
    ),
    Mirror(
        name="quepid_cut",
        library="Quepid (git f80322f), scorer ndcg_cut@10",
        verified="run; 74 recorded values",
        unusual="The scorer that cuts the ideal at k; plain ndcg@10 of the same tool does not.",
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
)

MIRRORS: Mapping[str, Mirror] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Every mirror by the name of its preset."""
