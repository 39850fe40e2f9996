"""NDCG on PyTorch tensors: the metric on any device, a torchmetrics metric, and losses that tend to the metric.

The argument order is that of torch, ``(scores, labels)``. The torch kernel is written separately from the NumPy kernel,
and tests compare the two. Plain tensors on the CPU use the NumPy kernel, which is faster there.

The metric and the losses are imported when they are first used: ``NDCG`` and ``ndcg_collection`` need torchmetrics, and
torch's decorators of uncompiled methods load its compiler, which takes about as long as torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ndcg_ml._plain.messages import install as _install

try:
    import torch  # noqa: F401
except ImportError as _error:
    raise ImportError(f"ndcg_ml.torch needs PyTorch. Install it with: {_install('torch')}") from _error

from ndcg_ml.torch.ndcg import ndcg

if TYPE_CHECKING:
    from ndcg_ml.torch.losses import (
        ApproxNDCGLoss,
        LambdaNDCGLoss,
        ListMLELoss,
        NeuralNDCGLoss,
        PlackettLuceNDCGLoss,
        SoftmaxLoss,
        Stochastic,
    )
    from ndcg_ml.torch.metric import NDCG, EpochWarning, ndcg_collection

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
    "ndcg",
    "ndcg_collection",
]

_METRIC = ("NDCG", "EpochWarning", "ndcg_collection")


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = import_module("ndcg_ml.torch." + ("metric" if name in _METRIC else "losses"))
        attribute = globals()[name] = getattr(module, name)
        return attribute
    if name == "NDCGLoss":  # Python would drop the message of an AttributeError
        raise ImportError("there is no NDCGLoss; the losses are ApproxNDCGLoss, LambdaNDCGLoss and others in __all__.")
    raise AttributeError(f"module 'ndcg_ml.torch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
