"""LightGBM: evaluation and early stopping for ``lgb.train``, ``lgb.cv`` and ``LGBMRanker``."""

from __future__ import annotations

from ndcg_ml.lightgbm.metric import NDCGEval
from ndcg_ml.lightgbm.stopping import StopEarly

__all__ = ["NDCGEval", "StopEarly"]
