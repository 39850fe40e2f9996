"""scikit-learn: model selection by query."""

from __future__ import annotations

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as _error:
    raise ImportError("ndcg_ml.sklearn needs scikit-learn. Install it with: pip install 'ndcg_ml[sklearn]'") from _error

from ndcg_ml.sklearn.folds import CutQueryWarning, QueryKFold
from ndcg_ml.sklearn.paired_search import Candidate, PairedSearch, paired_search
from ndcg_ml.sklearn.ranker import QueryRanker
from ndcg_ml.sklearn.scorer import NDCGScorer, ndcg_scorer

__all__ = [
    "Candidate",
    "CutQueryWarning",
    "NDCGScorer",
    "PairedSearch",
    "QueryKFold",
    "QueryRanker",
    "ndcg_scorer",
    "paired_search",
]
