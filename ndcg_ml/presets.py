"""Mirrors of the NDCG that other libraries and papers compute: one entry each, as plain data.

Every entry says which switches of a :class:`~ndcg_ml.Flavor` reproduce the library, which version was
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
        How the switches were established.
    unusual : str
        The one sentence a user of that library should know.
    switches : Mapping[str, object]
        Fields of :class:`~ndcg_ml.Flavor` that differ from, or deliberately repeat, its defaults.
    """

    name: str
    library: str
    verified: str
    unusual: str
    switches: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "switches", MappingProxyType(dict(self.switches)))


_ENTRIES = (
    Mirror(
        name="sklearn",
        library="scikit-learn 1.9.1, sklearn.metrics.ndcg_score",
        verified="run; equal to 1e-12 on random problems with and without ties",
        unusual="The gain is linear, not 2^y - 1, and tied scores are averaged; "
        "a query with a single document raises there and is scored by the formula here.",
        switches={"gain": "linear", "ideal": "recall", "ties": "average", "empty": 0.0},
    ),
    Mirror(
        name="lightgbm",
        library="LightGBM 4.7.0, metric 'ndcg'",
        verified="run; equal to 1e-9 to the values it prints, over boosting rounds with tied scores",
        unusual="Tied scores keep the order of the rows in the file, so a constant model scores 1.0 on rows sorted "
        "best-first; a query without a relevant document counts 1, even where queries are weighted.",
        switches={"gain": "exponential", "ideal": "recall", "ties": "first", "empty": 1.0},
    ),
    Mirror(
        name="xgboost",
        library="XGBoost 3.2.0, eval_metric 'ndcg'",
        verified="run; equal to 1e-6, the precision that it prints",
        unusual="Plain 'ndcg' silently means 'ndcg@32', and scores are compared in float32, "
        "so scores that differ by 1e-9 are tied.",
        switches={
            "gain": "exponential",
            "ideal": "recall",
            "ties": "first",
            "empty": 1.0,
            "score_dtype": "float32",
            "k": 32,
        },
    ),
    Mirror(
        name="catboost",
        library="CatBoost 1.2.10, metric 'NDCG' (type=Base, denominator=LogPosition)",
        verified="run; equal to 1e-6",
        unusual="Tied scores are put in the worst order, whatever the cut-off; negative labels are accepted.",
        switches={
            "gain": "linear",
            "ideal": "recall",
            "ties": "worst",
            "empty": 1.0,
            "negative": "allow",
        },
    ),
    Mirror(
        name="torchmetrics",
        library="torchmetrics 1.9.0, RetrievalNormalizedDCG (empty_target_action='neg')",
        verified="run; equal to 1e-5, the library computes in float32",
        unusual="Everything is cast to float32, which invents ties; "
        "a query counts as empty when its labels sum to zero, even [-1, 0, 1].",
        switches={
            "gain": "linear",
            "ideal": "recall",
            "ties": "average",
            "empty": 0.0,
            "score_dtype": "float32",
            "negative": "allow",
        },
    ),
    Mirror(
        name="trec_eval",
        library="trec_eval 9.0.8 (also pytrec_eval-terrier 0.5.11), ndcg and ndcg_cut",
        verified="run; equal to the 4 digits that it prints, and to 1e-12 to pytrec_eval",
        unusual="The gain is linear, scores are compared in float32, and tied documents are ordered by "
        "document id, descending in byte order, so doc_id is needed; unjudged and negative grades gain 0.",
        switches={
            "gain": "linear",
            "ideal": "global",
            "ties": "docid",
            "empty": 0.0,
            "score_dtype": "float32",
            "negative": "zero",
            "unjudged": "zero",
        },
    ),
    Mirror(
        name="burges2005",
        library="Burges et al. 2005, Learning to Rank using Gradient Descent (ICML)",
        verified="from the formula: gain 2^y - 1, discount 1/log(1 + rank), whose base cancels",
        unusual="The paper defines neither tied scores nor queries without a relevant document; "
        "here ties are averaged and such queries are left out of the mean.",
        switches={"gain": "exponential", "ideal": "recall", "ties": "average", "empty": "skip"},
    ),
    Mirror(
        name="jarvelin2002",
        library="Jarvelin and Kekalainen 2002, Cumulated gain-based evaluation of IR techniques (TOIS 20:4)",
        verified="from the formula: gain y, no discount before rank b = 2, then 1/log2(rank)",
        unusual="Ranks 1 and 2 are both undiscounted, so it is not equivalent to log2(rank + 1), "
        "not even for binary grades: one hit at rank 2 scores 1.0 here and 0.6309 there.",
        switches={
            "gain": "linear",
            "discount": "jarvelin",
            "ideal": "global",
            "ties": "average",
            "empty": "skip",
            "unjudged": "zero",
        },
    ),
)

MIRRORS: Mapping[str, Mirror] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Every mirror by the name of its preset."""
