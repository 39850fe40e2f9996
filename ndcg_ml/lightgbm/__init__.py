"""LightGBM: evaluation and early stopping, in both of its interfaces."""

from __future__ import annotations

from ndcg_ml.lightgbm.metric import NDCGEval
from ndcg_ml.lightgbm.stopping import StopEarly

__all__ = ["NDCGEval", "StopEarly"]
