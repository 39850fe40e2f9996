"""scikit-learn: model selection by query."""

from ndcg_ml._plain.messages import install as _install

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as _error:
    raise ImportError(f"ndcg_ml.sklearn needs scikit-learn. Install it with: {_install('sklearn')}") from _error

from ndcg_ml.sklearn.queries_and_folds import CutQueryWarning, QueryKFold
from ndcg_ml.sklearn.ranker import QueryRanker
from ndcg_ml.sklearn.scorer import NDCGScorer, ndcg_scorer
from ndcg_ml.sklearn.search import PairedSearch, paired_search

__all__ = ["CutQueryWarning", "NDCGScorer", "PairedSearch", "QueryKFold", "QueryRanker", "ndcg_scorer", "paired_search"]
