"""The same predictions under well-known presets, by every adapter of this library, and by the libraries themselves."""

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
from sklearn.base import BaseEstimator, RegressorMixin
from torchmetrics.retrieval import RetrievalNormalizedDCG

from ndcg_ml import PRESETS, Flavor, evaluate, ndcg_score
from ndcg_ml.cli.problem import Split
from ndcg_ml.lightgbm import NDCGEval
from ndcg_ml.sklearn import ndcg_scorer
from ndcg_ml.torch import NDCG

__all__ = ["WELL_KNOWN", "Agreement", "Predictions", "agreements", "under_well_known_presets"]

WELL_KNOWN = (
    *("sklearn", "lightgbm", "xgboost", "catboost", "torchmetrics", "trec_eval", "burges2005", "jarvelin2002"),
)
"""The presets that the demo compares: what most people mean by NDCG. ``ndcg-ml flavors`` lists all."""

Predictions = Mapping[str, NDArray[np.float64]]
"""One score a document of the test part, by model."""


@dataclass(frozen=True)
class Agreement:
    """The largest difference between two ways to the same number.

    Attributes
    ----------
    who : str
        What was compared.
    flavor : str
        Under which flavor.
    n_queries : int
        Queries that were compared, for each model.
    difference : float
        The largest absolute difference over all models.
    note : str
        What is particular about it.
    """

    who: str
    flavor: str
    n_queries: int
    difference: float
    note: str


def under_well_known_presets(flavor: Flavor, test: Split, predictions: Predictions) -> dict[str, dict[str, float]]:
    """NDCG of each model by preset, all at the flavor's own cut-off; the flavor itself comes first."""
    flavors = {"this flavor": flavor} | {name: preset.replace(k=flavor.k) for name, preset in _well_known()}
    return {
        name: {
            model: ndcg_score(test.labels, scores, flavor=one, group=test.sizes, doc_id=test.doc_id)
            for model, scores in predictions.items()
        }
        for name, one in flavors.items()
    }


def _well_known() -> list[tuple[str, Flavor]]:
    return [(name, PRESETS[name]) for name in WELL_KNOWN]


def agreements(flavor: Flavor, test: Split, predictions: Predictions) -> list[Agreement]:
    """How far the adapters are from each other, and from the three libraries that compute an NDCG of their own."""
    k = flavor.k
    at = "" if k is None else f"@{k}"
    # No adapter is given document ids, which ties="docid" needs.
    presets = [preset.replace(k=k) for _, preset in _well_known() if preset.ties != "docid"]
    n_queries = test.sizes.size
    several = test.of_queries(np.flatnonzero(test.sizes > 1))
    cut = np.repeat(test.sizes > 1, test.sizes)
    return [
        Agreement(
            "our 4 ways in",
            "this flavor",
            n_queries,
            _largest(predictions, lambda scores: _between_adapters(flavor, test, scores)),
            "ndcg_score, scorer, NDCG, NDCGEval",
        ),
        Agreement(
            "our 4 ways in",
            f"{len(presets)} presets{at}",
            n_queries,
            _largest(predictions, lambda scores: max(_between_adapters(one, test, scores) for one in presets)),
            "all but trec_eval: it needs ids",
        ),
        Agreement(
            f"scikit-learn {sklearn.__version__}",
            f"sklearn{at}",
            several.sizes.size,
            _largest(predictions, lambda scores: _from_sklearn(k, several, scores[cut])),
            "it refuses one-document queries",
        ),
        Agreement(
            f"LightGBM {lightgbm.__version__}",
            f"lightgbm{at}",
            n_queries,
            _largest(predictions, lambda scores: _from_lightgbm(k, test, scores)),
            "its metric 'ndcg'",
        ),
        Agreement(
            f"torchmetrics {torchmetrics.__version__}",
            f"torchmetrics{at}",
            n_queries,
            _largest(predictions, lambda scores: _from_torchmetrics(k, test, scores)),
            "computes in float32",
        ),
    ]


def _largest(predictions: Predictions, difference: Callable[[NDArray[np.float64]], float]) -> float:
    return max(difference(scores) for scores in predictions.values())


class GivenScores(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A regressor that predicts the first feature: what a scorer is handed to score given scores."""

    def fit(self, X: Any, y: Any) -> GivenScores:  # noqa: N803
        """Nothing to learn."""
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The first feature."""
        scores: NDArray[np.float64] = np.asarray(X)[:, 0]
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
    ours = evaluate(test.labels, scores, flavor="sklearn", k=k, group=test.sizes).per_query.ndcg
    ends = np.cumsum(test.sizes)[:-1]
    pairs = zip(np.split(test.labels, ends), np.split(scores, ends), strict=True)
    theirs = [sklearn.metrics.ndcg_score([labels], [predicted], k=k) for labels, predicted in pairs]
    return float(np.abs(ours - theirs).max())


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
