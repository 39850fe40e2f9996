"""What every loss shares: which lists and documents take part, their gain over the exact ideal, the reduction."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._gains import gains_of, judge
from ndcg_ml.torch._inputs import read_lists
from ndcg_ml.torch._kernel import ideal_dcg, needs_ranking, pool_of, rank, ranked_documents, table_for, too_short
from ndcg_ml.torch._layout import Padded
from ndcg_ml.torch._problems import PROBLEMS, refusal

__all__ = ["Lists", "above_zero", "check_reduction", "differentiable", "read", "reduced"]

_REDUCTIONS = ("mean", "sum", "none")


class Lists(NamedTuple):
    """A batch of lists, ready for a surrogate.

    Attributes
    ----------
    scores : Tensor of float32 or float64, shape (n_lists, n_documents)
        In the graph; 0 where `ranked` is not set, whatever the caller's tensor holds there.
    weight : Tensor, like `scores`
        Gain over the exact ideal, outside the graph; 0 where `ranked` is not set and in empty lists.
    ranked : Tensor of bool, like `scores`
        Which documents are ranked.
    empty : Tensor of bool, shape (n_lists,)
        Lists without a relevant document.
    refused : Tensor of bool, shape (n_lists,)
        Lists with labels that the flavor refuses, where looking at the data would have stalled the device.
    """

    scores: Tensor
    weight: Tensor
    ranked: Tensor
    empty: Tensor
    refused: Tensor


def read(flavor: Flavor, scores: Tensor, labels: Tensor, mask: Tensor | None) -> Lists:
    """Check the arguments of a loss, and work out what does not depend on the surrogate.

    Raises
    ------
    TypeError, ValueError
        As for the losses' ``forward``.
    """
    scores, labels, listed = read_lists(scores, labels, mask)
    dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
    with torch.no_grad():
        weight, ranked, empty, refused = _weights(flavor, scores.detach(), labels, listed)
    # Before any arithmetic: a padded NaN times 0 is NaN.
    return Lists(torch.where(ranked, scores.to(dtype), 0.0), weight.to(dtype), ranked, empty, refused)


def reduced(surrogate: Tensor, lists: Lists, reduction: str) -> Tensor:
    """The loss, 1 - surrogate of each list that is not empty, reduced."""
    loss = torch.where(lists.empty, 0.0, 1.0) - surrogate
    loss = torch.where(lists.refused, math.nan, loss)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / (~lists.empty).sum().clamp(min=1)


def check_reduction(reduction: str) -> str:
    """One of the three ways in which the losses of lists become one."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none'; got {reduction!r}.")
    return reduction


def differentiable(flavor: Flavor) -> Flavor:
    """The flavor, if a loss can honour it."""
    if callable(flavor.discount):
        raise ValueError(
            f"flavor.discount must be named in a loss, which needs it between whole ranks; got the callable "
            f"{flavor.discount!r}. Choose 'log2', 'ln', 'reciprocal', 'jarvelin' or 'none'."
        )
    if flavor.negative == "allow":
        raise ValueError(
            "flavor.negative='allow' has no loss, because its ideal may be 0 or less. Choose 'raise', 'zero' or 'drop'."
        )
    if isinstance(flavor.gain, tuple) and min(flavor.gain) < 0:
        raise ValueError(
            f"flavor.gain must not be negative in a loss, where the ideal must be above 0; got a table with "
            f"{min(flavor.gain):g}. Shift the table."
        )
    if flavor.aggregate == "micro":
        raise ValueError(
            "flavor.aggregate='micro' is not a loss of single lists. Choose flavor.replace(aggregate='macro')."
        )
    return flavor


def above_zero(name: str, value: float) -> float:
    """A finite number above 0."""
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number above 0; got {value!r} of type {type(value).__name__}.")
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}.")
    return number


def _weights(flavor: Flavor, scores: Tensor, labels: Tensor, listed: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gain over ideal of each document, which documents take part, and which lists are empty or invalid."""
    layout = Padded(scores.shape[0], scores.shape[1], scores.device)
    judgements = judge(flavor, labels, listed)
    if scores.device.type == "cpu" and not torch.compiler.is_compiling():
        counts = {name: int(fault.sum()) for name, fault in judgements.faults.items()}
        message = refusal(flavor, [counts.get(name, 0) for name in PROBLEMS])
        if message is not None:
            raise ValueError(message)
    ranked = ranked_documents(flavor, judgements, None)
    gains = gains_of(flavor, judgements, pool_of(flavor, judgements, ranked), layout)
    ranking = rank(flavor, layout, scores, ranked, gains.gain, None) if needs_ranking(flavor) else None
    ks = (flavor.k,)
    table = table_for(flavor, ks, layout, labels)
    idcg = ideal_dcg(flavor, ks, layout, judgements, gains, ranked, ranking, table)
    refused = torch.zeros_like(listed)
    for fault in judgements.faults.values():
        refused = refused | fault
    empty = ~(idcg > 0)
    counted = ranked & ~empty & ~too_short(flavor, ks, layout, ranked)
    weight = torch.where(counted, gains.gain / torch.where(empty, 1.0, idcg), 0.0)
    return weight, ranked, empty.squeeze(-1), refused.any(-1)
