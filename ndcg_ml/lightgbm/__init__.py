"""LightGBM: evaluation, early stopping and folds by query, in both of its interfaces."""

from __future__ import annotations

from ndcg_ml.lightgbm.folds import query_folds
from ndcg_ml.lightgbm.metric import NDCGEval
from ndcg_ml.lightgbm.stopping import StopEarly

__all__ = ["NDCGEval", "StopEarly", "query_folds"]
