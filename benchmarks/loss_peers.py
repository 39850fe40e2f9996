"""The losses that are measured against each other, ours and the peers', as training steps of their own library.

None of the peers is needed to run the rest. To install all three beside torch:

- ``pip install rax`` (with jax);
- ``pip install --no-deps allrank==1.4.3``: its pins shut out every torch that still installs, its losses run on any;
- pytorchltr 0.2.1 has no wheel, and the parser of datasets in its source does not compile from Python 3.11 on. Its
  losses are plain Python: ``pip download --no-deps --no-build-isolation --no-binary :all: pytorchltr==0.2.1``, unpack,
  delete the line ``ext_modules=...`` of setup.py, and ``pip install --no-deps ./pytorchltr-0.2.1``.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

OURS = "ndcg_ml"

Scores = NDArray[np.float32]
Labels = NDArray[np.int64]
Step = Callable[[], float]
"""Forward and backward once; the loss as the library returns it."""
Build = Callable[[Scores, Labels], Step]
"""From scores and labels of shape (lists, documents) to the step. What needs to be done but once is done here."""
Convert = Callable[[float, int, int], float]
"""From a peer's loss, the documents per list and the lists to what ours would be."""


@dataclass(frozen=True)
class Form:
    """One loss of one library."""

    name: str
    library: str
    build: Build
    pairs: str = "none"
    """All pairs of documents: ``held`` as matrices, or ``visited`` in blocks, so that only time is quadratic."""
    in_our_terms: Convert | None = None
    """None where it is another loss than ours; `note` says which."""
    within: float = 1e-5
    """How far from ours it may be, relatively."""
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """Forms of one loss. The first is ours, as it comes: ratios and values are against it."""

    family: str
    title: str
    forms: tuple[Form, ...]


_device = "cpu"


@contextmanager
def on(device: str) -> Iterator[None]:
    """Within, the torch losses are built for that device."""
    global _device
    before, _device = _device, device
    try:
        yield
    finally:
        _device = before


def _as_it_is(value: float, n: int, lists: int) -> float:
    return value


def _negated(value: float, n: int, lists: int) -> float:
    return 1 + value


def _summed_log2(value: float, n: int, lists: int) -> float:
    return value * math.log(2) / lists


def _summed_times_length(value: float, n: int, lists: int) -> float:
    return value / (n * lists)


def _ours(name: str, loss: str, pairs: str = "none", flavor: str = "ndcg[gain=exponential]", **settings: Any) -> Form:
    def build(scores: Scores, labels: Labels) -> Step:
        import ndcg_ml.torch

        return _torch_step(getattr(ndcg_ml.torch, loss)(flavor, **settings), scores, labels)

    return Form(name, OURS, build, pairs, _as_it_is)


def _allrank(loss: str, **settings: Any) -> Build:
    def build(scores: Scores, labels: Labels) -> Step:
        # The losses take one constant from a module that loads data sets, and needs torchvision and gcsfs for it.
        data, files = ModuleType("allrank.data.dataset_loading"), ModuleType("allrank.utils.file_utils")
        data.__dict__["PADDED_Y_VALUE"] = -1
        files.__dict__.update(is_gs_path=None, copy_file_to_local=None)
        sys.modules.update({data.__name__: data, files.__name__: files})
        import allrank.models.losses

        function = functools.partial(getattr(allrank.models.losses, loss), **settings)
        return _torch_step(function, scores, labels.astype(np.float32))

    return build


def _pytorchltr(loss: str) -> Build:
    def build(scores: Scores, labels: Labels) -> Step:
        import pytorchltr.loss
        import torch

        module, lengths = getattr(pytorchltr.loss, loss)(), torch.full(scores.shape[:1], scores.shape[1])
        lengths = lengths.to(_device)
        return _torch_step(lambda s, y: module(s, y, lengths).mean(), scores, labels)

    return build


def _torch_step(loss: Callable[[Tensor, Tensor], Tensor], scores: Scores, labels: Labels | Scores) -> Step:
    import torch

    x, y = torch.from_numpy(scores).to(_device).requires_grad_(), torch.from_numpy(labels).to(_device)

    def step() -> float:
        x.grad = None
        value = loss(x, y)
        value.backward()
        return value.item()

    return step


def _rax(loss: Callable[[ModuleType], Callable[..., Any]]) -> Build:
    def build(scores: Scores, labels: Labels) -> Step:
        import jax
        import jax.numpy as jnp
        import rax

        arguments = jnp.asarray(scores), jnp.asarray(labels, dtype=jnp.float32)
        compiled = jax.jit(jax.value_and_grad(loss(rax))).lower(*arguments).compile()

        def step() -> float:
            value, gradient = compiled(*arguments)
            gradient.block_until_ready()
            return float(value)

        return step

    return build


def _rax_approx(rax: ModuleType) -> Callable[..., Any]:
    # rax's approx_t12n would wrap the metric like this, but in 0.4.0 it calls jax.util.wraps, which jax has dropped.
    metric = functools.partial(rax.ndcg_metric, rank_fn=rax.utils.approx_ranks)
    return lambda scores, labels: -metric(scores, labels)


def _rax_pairs(weight: str, topn: int | None = None) -> Callable[[ModuleType], Callable[..., Any]]:
    def loss(rax: ModuleType) -> Callable[..., Any]:
        import jax.numpy as jnp

        weights = functools.partial(getattr(rax, weight), topn=topn, normalize=True)
        return functools.partial(rax.pairwise_logistic_loss, lambdaweight_fn=weights, reduce_fn=jnp.sum)

    return loss


def _rax_softmax(rax: ModuleType) -> Callable[..., Any]:
    return functools.partial(rax.softmax_loss, label_fn=rax.utils.normalize_probabilities)


_NEGATED = "returns -NDCG"
_LOG2 = "takes log2, and sums over lists"
_LENGTH = "multiplies by the list length, and sums over lists"

COMPARISONS = (
    Comparison(
        "approx",
        "ApproxNDCG, logistic step",
        (
            _ours("method=auto", "ApproxNDCGLoss"),
            _ours("method=dense", "ApproxNDCGLoss", "held", method="dense"),
            _ours("method=fast", "ApproxNDCGLoss", method="fast"),
            Form("ndcg_metric, approx_ranks", "rax", _rax(_rax_approx), "held", _negated, note=_NEGATED),
            Form("approxNDCGLoss", "allrank", _allrank("approxNDCGLoss"), "held", _negated, note=_NEGATED),
        ),
    ),
    Comparison(
        "approx",
        "ApproxNDCG, Laplace step",
        (
            _ours("method=auto", "ApproxNDCGLoss", step="laplace"),
            _ours("method=dense", "ApproxNDCGLoss", "held", step="laplace", method="dense"),
            _ours("method=fast", "ApproxNDCGLoss", step="laplace", method="fast"),
        ),
    ),
    Comparison(
        "neural",
        "NeuralNDCG, 50 rounds of Sinkhorn",
        (
            _ours("sinkhorn=50", "NeuralNDCGLoss", "held", sinkhorn=50),
            Form(
                "neuralNDCG",
                "allrank",
                _allrank("neuralNDCG"),
                "held",
                _negated,
                note=f"{_NEGATED}, and stops before round 50 once the whole batch is within 1e-6",
            ),
        ),
    ),
    Comparison("neural", "NeuralSort (PiRank)", (_ours("sinkhorn=0", "NeuralNDCGLoss", "visited"),)),
    Comparison(
        "neural",
        "NeuralSort (PiRank), top 10",
        (_ours("sinkhorn=0", "NeuralNDCGLoss", flavor="ndcg@10[gain=exponential]"),),
    ),
    Comparison(
        "lambda",
        "LambdaRank, top 10",
        (
            _ours("scheme=lambdarank", "LambdaNDCGLoss", flavor="ndcg@10[gain=exponential]"),
            Form(
                "pairwise_logistic_loss, dcg_lambdaweight",
                "rax",
                _rax(_rax_pairs("dcg_lambdaweight", 10)),
                "held",
                _summed_times_length,
                note=_LENGTH,
            ),
            Form(
                "lambdaLoss, lambdaRank_scheme",
                "allrank",
                _allrank("lambdaLoss", weighing_scheme="lambdaRank_scheme", k=10),
                "held",
                note=f"another loss: only pairs with both documents in the top 10; {_LOG2}",
            ),
        ),
    ),
    Comparison(
        "lambda",
        "NDCG-Loss2++",
        (
            _ours("scheme=ndcg2pp", "LambdaNDCGLoss", "visited", scheme="ndcg2pp"),
            Form(
                "lambdaLoss, ndcgLoss2PP_scheme",
                "allrank",
                _allrank("lambdaLoss", weighing_scheme="ndcgLoss2PP_scheme"),
                "held",
                _summed_log2,
                note=_LOG2,
            ),
        ),
    ),
    Comparison(
        "lambda",
        "NDCG-Loss2",
        (
            _ours("scheme=ndcg2", "LambdaNDCGLoss", "visited", scheme="ndcg2"),
            Form(
                "pairwise_logistic_loss, dcg2_lambdaweight",
                "rax",
                _rax(_rax_pairs("dcg2_lambdaweight")),
                "held",
                _summed_times_length,
                note=_LENGTH,
            ),
            Form(
                "LambdaNDCGLoss2",
                "pytorchltr",
                _pytorchltr("LambdaNDCGLoss2"),
                "held",
                note="another loss: D(m + 1) - D(m + 2) for ranks m apart, instead of D(m) - D(m + 1); takes log2",
            ),
        ),
    ),
    Comparison(
        "listwise",
        "Softmax, targets in proportion to labels",
        (
            _ours("target=gain", "SoftmaxLoss", flavor="ndcg[gain=linear]"),
            Form("softmax_loss, normalize_probabilities", "rax", _rax(_rax_softmax), in_our_terms=_as_it_is),
        ),
    ),
    Comparison(
        "listwise",
        "ListNet",
        (
            _ours("target=listnet", "SoftmaxLoss", flavor="ndcg[gain=linear]", target="listnet"),
            Form(
                "listNet",
                "allrank",
                _allrank("listNet"),
                in_our_terms=_as_it_is,
                within=1e-4,
                note="adds 1e-10 to every probability, which shows in long lists",
            ),
        ),
    ),
    Comparison(
        "listwise",
        "ListMLE, ties at random",
        (
            _ours("tie_order=random", "ListMLELoss"),
            Form("listMLE", "allrank", _allrank("listMLE"), note="draws its own order, one for the whole batch"),
        ),
    ),
    Comparison(
        "listwise",
        "ListMLE, ties as they stand",
        (
            _ours("tie_order=input", "ListMLELoss", tie_order="input"),
            Form("listmle_loss", "rax", _rax(lambda rax: rax.listmle_loss), in_our_terms=_as_it_is),
        ),
    ),
    Comparison(
        "plackett_luce", "Plackett-Luce, 16 samples", (_ours("samples=16", "PlackettLuceNDCGLoss", samples=16),)
    ),
)
FAMILIES = tuple(dict.fromkeys(comparison.family for comparison in COMPARISONS))
