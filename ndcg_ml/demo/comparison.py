"""The same predictions under well-known presets, through every adapter, and by the libraries themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import sklearn
import sklearn.metrics
import torch
import torchmetrics
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torchmetrics.retrieval import RetrievalNormalizedDCG

from ndcg_ml import PRESETS, Flavor, evaluate, ndcg_score
from ndcg_ml._checks import TIES_BY_ID
from ndcg_ml.demo.problem import Split
from ndcg_ml.lightgbm import NDCGEval
from ndcg_ml.result import at_cutoff
from ndcg_ml.sklearn import ndcg_scorer
from ndcg_ml.torch import NDCG

WELL_KNOWN = (
    *("sklearn", "lightgbm", "xgboost", "catboost", "torchmetrics", "trec_eval", "burges2005", "jarvelin2002"),
)
"""The presets that the demo compares: what most people mean by NDCG. ``ndcg-ml flavors`` lists all."""

Predictions = Mapping[str, NDArray[np.float64]]
"""The scores of the test documents, by model."""


@dataclass(frozen=True)
class Agreement:
    """The largest absolute difference between two ways to the same number, over all models."""

    compared: str
    flavor: str
    queries: int
    difference: float
    note: str


def under_well_known_presets(flavor: Flavor, test: Split, predictions: Predictions) -> dict[str, dict[str, float]]:
    """NDCG of each model by preset, all at the flavor's own cut-off; the flavor itself comes first."""
    flavors = {"this flavor": flavor} | {name: PRESETS[name].replace(k=flavor.k) for name in WELL_KNOWN}
    return {
        name: {
            model: ndcg_score(test.labels, scores, flavor=one, group=test.sizes, doc_id=test.doc_id)
            for model, scores in predictions.items()
        }
        for name, one in flavors.items()
    }


def agreements(flavor: Flavor, test: Split, predictions: Predictions) -> list[Agreement]:
    """How far the adapters are from each other, and from the three libraries that compute an NDCG of their own."""
    k, n_queries = flavor.k, test.sizes.size
    at = at_cutoff(k)
    # No adapter is given document ids, which some tie rules need.
    presets = [PRESETS[name].replace(k=k) for name in WELL_KNOWN if PRESETS[name].ties not in TIES_BY_ID]

    def ours(*flavors: Flavor) -> float:
        return max(_between_adapters(one, test, scores) for one in flavors for scores in predictions.values())

    def theirs(difference: Callable[[int | None, Split, NDArray[np.float64]], float]) -> float:
        return max(difference(k, test, scores) for scores in predictions.values())

    sk, lgb, tm = (library.__version__ for library in (sklearn, lightgbm, torchmetrics))
    n_several = int((test.sizes > 1).sum())
    no_ids, one_document = "all but trec_eval: it needs ids", "it refuses one-document queries"
    return [
        Agreement("our 4 ways in", "this flavor", n_queries, ours(flavor), "ndcg_score, scorer, NDCG, NDCGEval"),
        Agreement("our 4 ways in", f"{len(presets)} presets{at}", n_queries, ours(*presets), no_ids),
        Agreement(f"scikit-learn {sk}", f"sklearn{at}", n_several, theirs(_from_sklearn), one_document),
        Agreement(f"LightGBM {lgb}", f"lightgbm{at}", n_queries, theirs(_from_lightgbm), "its metric 'ndcg'"),
        Agreement(
            f"torchmetrics {tm}", f"torchmetrics{at}", n_queries, theirs(_from_torchmetrics), "computes in float32"
        ),
    ]


class GivenScores(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Predicts the first feature: what a scorer is handed to score given scores."""

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The first feature."""
        scores: NDArray[np.float64] = X[:, 0]
        return scores


def _between_adapters(flavor: Flavor, test: Split, scores: NDArray[np.float64]) -> float:
    """The largest difference between any two of the ways in."""
    dataset = lightgbm.Dataset(test.features, test.labels, group=test.sizes, params={"verbosity": -1}).construct()
    padded, flat = NDCG(flavor), NDCG(flavor)
    padded.update(
        torch.from_numpy(test.padded(scores)),
        torch.from_numpy(test.padded(test.labels)),
        mask=torch.from_numpy(test.mask),
    )
    flat.update(torch.from_numpy(scores), torch.from_numpy(test.labels), indexes=torch.from_numpy(test.qid))
    values = [
        ndcg_score(test.labels, scores, flavor=flavor, group=test.sizes),
        ndcg_scorer(flavor)(GivenScores(), scores[:, None], test.labels, qid=test.qid),
        *(torch.as_tensor(metric.compute()).item() for metric in (padded, flat)),
        NDCGEval(flavor, k=flavor.k)(scores, dataset)[0][1],
    ]
    return float(max(values) - min(values))


def _from_sklearn(k: int | None, test: Split, scores: NDArray[np.float64]) -> float:
    """Query by query, because scikit-learn has no query ids; it refuses queries of one document."""
    ours = evaluate(test.labels, scores, flavor="sklearn", k=k, group=test.sizes).per_query.ndcg
    ends = np.cumsum(test.sizes)[:-1]
    pairs = zip(ours, np.split(test.labels, ends), np.split(scores, ends), strict=True)
    return max(
        (abs(own - sklearn.metrics.ndcg_score([y], [predicted], k=k)) for own, y, predicted in pairs if y.size > 1),
        default=0.0,
    )


def _from_lightgbm(k: int | None, test: Split, scores: NDArray[np.float64]) -> float:
    ours = ndcg_score(test.labels, scores, flavor="lightgbm", k=k, group=test.sizes)
    # LightGBM has no function for this; but a booster without trees predicts its initial scores.
    cut_off = int(test.sizes.max()) if k is None else k
    parameters = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [cut_off], "verbosity": -1, "num_threads": 1}
    dataset = lightgbm.Dataset(
        test.features, test.labels, group=test.sizes, init_score=scores, params={"verbosity": -1, "num_threads": 1}
    )
    [(_, _, theirs, _)] = lightgbm.Booster(parameters, dataset).eval_train()
    return abs(ours - float(theirs))


def _from_torchmetrics(k: int | None, test: Split, scores: NDArray[np.float64]) -> float:
    ours = ndcg_score(test.labels, scores, flavor="torchmetrics", k=k, group=test.sizes)
    metric = RetrievalNormalizedDCG(top_k=k, empty_target_action="neg")
    metric.update(*(torch.from_numpy(values) for values in (scores, test.labels, test.qid)))
    return abs(ours - float(metric.compute()))
