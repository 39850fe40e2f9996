"""Define NDCG once, as a ``Flavor``, and get the same number from every library.

The functions here work on NumPy arrays. The adapters are modules that are imported at first use: ``ndcg_ml.sklearn``,
``ndcg_ml.torch``, ``ndcg_ml.lightgbm``, ``ndcg_ml.xgboost``, ``ndcg_ml.catboost`` and, for distributed tables,
``ndcg_ml.dask``, ``ndcg_ml.spark`` and ``ndcg_ml.ray``.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ndcg_ml._plain.checks import plain_signature
from ndcg_ml.flavor import PRESETS, Flavor

if TYPE_CHECKING:
    from ndcg_ml import catboost as catboost
    from ndcg_ml import dask as dask
    from ndcg_ml import lightgbm as lightgbm
    from ndcg_ml import ray as ray
    from ndcg_ml import sklearn as sklearn
    from ndcg_ml import spark as spark
    from ndcg_ml import torch as torch
    from ndcg_ml import xgboost as xgboost
    from ndcg_ml._unjudged.ranges import RangeError
    from ndcg_ml.arrays import dcg_score, evaluate, evaluate_ranked, ndcg_score, prepare
    from ndcg_ml.comparisons import compare, compare_values
    from ndcg_ml.explain import explain_difference
    from ndcg_ml.identification import identify
    from ndcg_ml.model_labels import correct_labels
    from ndcg_ml.parts import PartialEvaluation, evaluate_batches, evaluate_part
    from ndcg_ml.readers import with_labels
    from ndcg_ml.results.comparison import Comparison
    from ndcg_ml.results.evaluation import Evaluation
    from ndcg_ml.runs import align, evaluate_run
    from ndcg_ml.topk import evaluate_topk
    from ndcg_ml.versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "PRESETS",
    "Comparison",
    "Evaluation",
    "Flavor",
    "PartialEvaluation",
    "RangeError",
    "align",
    "compare",
    "compare_values",
    "correct_labels",
    "dcg_score",
    "evaluate",
    "evaluate_batches",
    "evaluate_part",
    "evaluate_ranked",
    "evaluate_run",
    "evaluate_topk",
    "explain_difference",
    "identify",
    "ndcg_score",
    "prepare",
    "show_versions",
    "with_labels",
]

_MODULES = (
    *("catboost", "dask", "explain", "lightgbm", "parts", "ray", "readers", "runs", "sklearn", "spark", "torch"),
    "xgboost",
)
# Imported at first use, so that the command line starts, and can be interrupted, before NumPy is imported.
_LATER = {
    "_unjudged.ranges": ("RangeError",),
    "arrays": ("dcg_score", "evaluate", "evaluate_ranked", "ndcg_score", "prepare"),
    "comparisons": ("compare", "compare_values"),
    "explain": ("explain_difference",),
    "identification": ("identify",),
    "model_labels": ("correct_labels",),
    "parts": ("PartialEvaluation", "evaluate_batches", "evaluate_part"),
    "readers": ("with_labels",),
    "results.comparison": ("Comparison",),
    "results.evaluation": ("Evaluation",),
    "runs": ("align", "evaluate_run"),
    "topk": ("evaluate_topk",),
    "versions": ("show_versions",),
}
_MODULE_OF = {name: module for module, names in _LATER.items() for name in names}
# Names that are often looked for.
_IN_ADAPTERS = {
    **dict.fromkeys(("NDCGScorer", "QueryKFold", "QueryRanker", "ndcg_scorer", "paired_search"), ("sklearn",)),
    **dict.fromkeys(("NDCG", "ApproxNDCGLoss", "LambdaNDCGLoss", "ndcg", "ndcg_collection"), ("torch",)),
    **dict.fromkeys(("NeuralNDCGLoss", "SoftmaxLoss", "Stochastic"), ("torch",)),
    **dict.fromkeys(("NDCGEval", "supports"), ("lightgbm", "xgboost", "catboost")),
    **{f"{library}_params": (library,) for library in ("lightgbm", "xgboost", "catboost")},
}
_ELSEWHERE = {
    "ndcg_at_k": "write ndcg_score(y_true, y_score, k=10, qid=qid)",
    "NDCGLoss": "ndcg_ml.torch has ApproxNDCGLoss, LambdaNDCGLoss, NeuralNDCGLoss and SoftmaxLoss",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"ndcg_ml.{name}")
    if name in _IN_ADAPTERS:  # Python would drop the message of an AttributeError
        homes = " or ".join(f"ndcg_ml.{module}" for module in _IN_ADAPTERS[name])
        raise ImportError(f"{name} is not in ndcg_ml itself; import it from {homes}.")
    if name in _ELSEWHERE:
        raise ImportError(f"there is no {name}; {_ELSEWHERE[name]}.")
    if name in _MODULE_OF:
        value = getattr(import_module(f"ndcg_ml.{_MODULE_OF[name]}"), name)
        globals()[name] = plain_signature(value) if isinstance(value, FunctionType) else value
        return value
    raise AttributeError(f"module 'ndcg_ml' has no attribute {name!r}")


def __dir__() -> list[str]:
    from importlib.util import find_spec

    # Tools such as help() read every name listed here, and two modules import their framework at once.
    modules = [name for name in _MODULES if name not in ("sklearn", "torch") or find_spec(name)]
    return sorted({*__all__, *modules, *(name for name in globals() if name.startswith("__"))})
