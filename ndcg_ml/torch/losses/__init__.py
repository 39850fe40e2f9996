"""The losses, and the base classes for your own loss."""

from ndcg_ml.torch.losses._base import DirectLoss, ListLoss, Lists
from ndcg_ml.torch.losses.approx import ApproxNDCGLoss
from ndcg_ml.torch.losses.lambdas import LambdaNDCGLoss
from ndcg_ml.torch.losses.listwise import ListMLELoss, SoftmaxLoss
from ndcg_ml.torch.losses.neural import NeuralNDCGLoss
from ndcg_ml.torch.losses.plackett_luce import PlackettLuceNDCGLoss
from ndcg_ml.torch.losses.stochastic import Stochastic

__all__ = [
    "ApproxNDCGLoss",
    "DirectLoss",
    "LambdaNDCGLoss",
    "ListLoss",
    "ListMLELoss",
    "Lists",
    "NeuralNDCGLoss",
    "PlackettLuceNDCGLoss",
    "SoftmaxLoss",
    "Stochastic",
]
