"""The losses, each in a file of its own, and what a loss of your own derives from."""

from ndcg_ml.torch.losses._loss import DirectLoss, ListLoss, Lists
from ndcg_ml.torch.losses.approx import ApproxNDCGLoss, approx_ndcg_loss
from ndcg_ml.torch.losses.lambdas import LambdaNDCGLoss, lambda_ndcg_loss
from ndcg_ml.torch.losses.listwise import ListMLELoss, SoftmaxLoss, list_mle_loss, softmax_loss
from ndcg_ml.torch.losses.neural import NeuralNDCGLoss, neural_ndcg_loss
from ndcg_ml.torch.losses.plackett_luce import PlackettLuceNDCGLoss, plackett_luce_ndcg_loss
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
    "approx_ndcg_loss",
    "lambda_ndcg_loss",
    "list_mle_loss",
    "neural_ndcg_loss",
    "plackett_luce_ndcg_loss",
    "softmax_loss",
]
