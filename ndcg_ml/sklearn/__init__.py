"""scikit-learn: model selection by query.

``paired_search`` belongs to the comparisons of systems, and is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ndcg_ml._core.suggestions import install as _install

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as _error:
    raise ImportError(f"ndcg_ml.sklearn needs scikit-learn. Install it with: {_install('sklearn')}") from _error

from ndcg_ml.sklearn.queries_and_folds import CutQueryWarning, QueryKFold
from ndcg_ml.sklearn.ranker import QueryRanker
from ndcg_ml.sklearn.scorer import NDCGScorer, ndcg_scorer

if TYPE_CHECKING:
    from ndcg_ml.sklearn.search import PairedSearch, paired_search

__all__ = ["CutQueryWarning", "NDCGScorer", "PairedSearch", "QueryKFold", "QueryRanker", "ndcg_scorer", "paired_search"]


def __getattr__(name: str) -> Any:
    if name in ("PairedSearch", "paired_search"):
        value = globals()[name] = getattr(import_module("ndcg_ml.sklearn.search"), name)
        return value
    raise AttributeError(f"module 'ndcg_ml.sklearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
