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

from ndcg_ml.torch.approx import ApproxNDCGLoss
from ndcg_ml.torch.functional import ndcg
from ndcg_ml.torch.lambdas import LambdaNDCGLoss
from ndcg_ml.torch.listwise import ListMLELoss, SoftmaxLoss
from ndcg_ml.torch.metric import NDCG
from ndcg_ml.torch.neural import NeuralNDCGLoss
from ndcg_ml.torch.plackett_luce import PlackettLuceNDCGLoss
from ndcg_ml.torch.stochastic import Stochastic

__all__ = [
    "NDCG",
    "ApproxNDCGLoss",
    "LambdaNDCGLoss",
    "ListMLELoss",
    "NeuralNDCGLoss",
    "PlackettLuceNDCGLoss",
    "SoftmaxLoss",
    "Stochastic",
    "ndcg",
]
