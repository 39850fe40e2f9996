"""The same losses as other packages write them, for the same networks: allRank (PyTorch) and rax (JAX).

``benchmarks/loss_peers.py`` says how they are installed. Each is called as its package has it, on the gains
2^grade - 1 where it takes gains as they come, with its own default of everything that is not tuned.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from benchmarks.letor.networks import Contender, Loss

PADDED = -1.0  # the label of padding in allRank


def _allrank(name: str, temperature_as: str | None = None, **settings: Any) -> Callable[..., Loss]:
    def build(temperature: float, generator: torch.Generator) -> Loss:
        # The losses take one constant from a module that loads data sets, and needs torchvision and gcsfs for it.
        data, files = ModuleType("allrank.data.dataset_loading"), ModuleType("allrank.utils.file_utils")
        data.__dict__["PADDED_Y_VALUE"] = PADDED
        files.__dict__.update(is_gs_path=None, copy_file_to_local=None)
        sys.modules.update({data.__name__: data, files.__name__: files})
        import allrank.models.losses

        # ApproxNDCG's alpha is one over the temperature.
        by_temperature = {"alpha": 1 / temperature, "temperature": temperature}
        more = {temperature_as: by_temperature[temperature_as]} if temperature_as else {}
        function = functools.partial(getattr(allrank.models.losses, name), **settings, **more)
        return lambda scores, labels, mask: function(scores, labels.masked_fill(~mask, PADDED))

    return build


def _rax(loss: Callable[[Any], Callable[..., Any]], gains: bool = False) -> Callable[..., Loss]:
    def build(temperature: float, generator: torch.Generator) -> Loss:
        import jax
        import jax.numpy as jnp
        import rax

        compiled = jax.jit(jax.value_and_grad(lambda s, y, m: loss(rax)(s, y, where=m)))

        def step(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
            # JAX compiles for each shape anew, so batches are padded to a few: a multiple of 64 lists, and a power of
            # two of documents, because the cost of pairs grows with its square.
            lists, width = -(-len(scores) // 64) * 64, max(16, 1 << (scores.shape[1] - 1).bit_length())
            values = [torch.exp2(labels) - 1 if gains else labels, scores.detach(), mask]
            padded = [torch.zeros(lists, width, dtype=part.dtype) for part in values]
            for whole, part in zip(padded, values, strict=True):
                whole[: part.shape[0], : part.shape[1]] = part
            y, s, m = (jnp.asarray(part.numpy()) for part in padded)
            _, gradient = compiled(s, y, m)
            slope = torch.from_numpy(jax.device_get(gradient).copy())[: scores.shape[0], : scores.shape[1]]
            # Only the gradient is used. Padding and lists of padding alone have none.
            return (scores * slope.nan_to_num()).sum()

        return step

    return build


def _approx(rax: Any) -> Callable[..., Any]:
    # The function that approx_t12n wraps. In 0.4.0 approx_t12n itself fails, because jax has dropped jax.util.wraps.
    metric = functools.partial(rax.ndcg_metric, rank_fn=rax.utils.approx_ranks)
    return lambda scores, labels, where: -metric(scores, labels, where=where)


def _lambdarank(rax: Any) -> Callable[..., Any]:
    import jax.numpy as jnp

    weights = functools.partial(rax.dcg_lambdaweight, normalize=True)
    return functools.partial(rax.pairwise_logistic_loss, lambdaweight_fn=weights, reduce_fn=jnp.sum)


CONTENDERS = (
    Contender("allRank listNet", _allrank("listNet"), module="allrank"),
    Contender("allRank listMLE", _allrank("listMLE"), module="allrank"),
    Contender("allRank rankNet", _allrank("rankNet"), module="allrank"),
    Contender("allRank approxNDCG", _allrank("approxNDCGLoss", "alpha"), (0.1, 1.0), module="allrank"),
    Contender("allRank neuralNDCG", _allrank("neuralNDCG", "temperature"), (0.1, 1.0), module="allrank"),
    Contender(
        "allRank lambdaLoss(lambdaRank)", _allrank("lambdaLoss", weighing_scheme="lambdaRank_scheme"), module="allrank"
    ),
    Contender(
        "allRank lambdaLoss(ndcgLoss2++)",
        _allrank("lambdaLoss", weighing_scheme="ndcgLoss2PP_scheme"),
        module="allrank",
    ),
    Contender("rax softmax", _rax(lambda rax: rax.softmax_loss, gains=True), module="rax"),
    Contender("rax listmle", _rax(lambda rax: rax.listmle_loss), module="rax"),
    Contender("rax approx NDCG", _rax(_approx), module="rax"),
    Contender("rax lambdarank", _rax(_lambdarank), module="rax"),
)


def installed(contender: Contender) -> bool:
    """Whether the package is there."""
    return find_spec(contender.module) is not None
