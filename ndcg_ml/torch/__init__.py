"""NDCG on PyTorch tensors: the metric on any device, a torchmetrics metric, and losses whose limit is the metric.

Argument order is torch's: ``(scores, labels)``. Every number here is computed by a kernel of its own, written
separately from the NumPy one and held to it by tests.
"""

from __future__ import annotations

try:
    import torch  # noqa: F401
    import torchmetrics  # noqa: F401
except ImportError as error:
    raise ImportError(
        "ndcg_ml.torch needs PyTorch and torchmetrics. Install them with: pip install 'ndcg_ml[torch]'"
    ) from error

from ndcg_ml.torch.functional import ndcg
from ndcg_ml.torch.losses import (
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    Stochastic,
    approx_ndcg_loss,
    lambda_ndcg_loss,
    list_mle_loss,
    neural_ndcg_loss,
    plackett_luce_ndcg_loss,
    softmax_loss,
)
from ndcg_ml.torch.metric import NDCG, EpochWarning

__all__ = [
    "NDCG",
    "ApproxNDCGLoss",
    "EpochWarning",
    "LambdaNDCGLoss",
    "ListMLELoss",
    "NeuralNDCGLoss",
    "PlackettLuceNDCGLoss",
    "SoftmaxLoss",
    "Stochastic",
    "approx_ndcg_loss",
    "lambda_ndcg_loss",
    "list_mle_loss",
    "ndcg",
    "neural_ndcg_loss",
    "plackett_luce_ndcg_loss",
    "softmax_loss",
]
