"""What every loss shares: which lists and documents take part, their gain over the exact ideal, the reduction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.torch._gains import Gains, gains_of, judge
from ndcg_ml.torch._inputs import read_lists
from ndcg_ml.torch._kernel import ideal_dcg, needs_ranking, pool_of, rank, ranked_documents, table_for, too_short
from ndcg_ml.torch._layout import Padded
from ndcg_ml.torch._problems import PROBLEMS, refuse
from ndcg_ml.torch._ragged import in_batches

__all__ = [
    "Lists",
    "above_zero",
    "at_real_ranks",
    "at_whole_ranks",
    "check_reduction",
    "finite_scores",
    "flavor_of",
    "loss_of",
]

_REDUCTIONS = ("mean", "sum", "none")


class Lists(NamedTuple):
    """A batch of lists, ready for a surrogate.

    Attributes
    ----------
    scores : Tensor of float32 or float64, shape (n_lists, n_documents)
        In the graph; 0 where `ranked` is not set, whatever the caller's tensor holds there.
    gains : Gains
        In the dtype that the kernel works in; 0 where `ranked` is not set.
    weight : Tensor, like `scores`
        Gain over the exact ideal, outside the graph; 0 where `ranked` is not set and in empty lists. 0 for a loss that
        has no use for it.
    ranked : Tensor of bool, like `scores`
        Which documents are ranked.
    empty : Tensor of bool, shape (n_lists,)
        Lists without a relevant document.
    faults : dict of Tensor of bool, like `scores`
        Which slots hold a label that the flavor refuses, by kind of fault.
    """

    scores: Tensor
    gains: Gains
    weight: Tensor
    ranked: Tensor
    empty: Tensor
    faults: dict[str, Tensor]


def loss_of(
    flavor: Flavor,
    each: Callable[[Lists], Tensor],
    reduction: str,
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None,
    indexes: Tensor | None,
    offsets: Tensor | None,
    *,
    weighed: bool = True,
) -> Tensor:
    """The losses of the caller's lists, reduced.

    Parameters
    ----------
    flavor : Flavor
    each : callable
        From a batch of lists to the loss of each, nan where a score is not finite. What it gives for an empty list is
        not used. Called once, or for lists of very different lengths once for each group of similar ones.
    reduction : {"mean", "sum", "none"}
    scores, labels, mask, indexes, offsets
        As for the losses' ``forward``.
    weighed : bool
        Whether the loss looks at ``Lists.weight``, for which the ideal has to be sorted.

    Raises
    ------
    TypeError, ValueError
        As for the losses' ``forward``.
    """
    batches, places = in_batches(scores, labels, mask, indexes=indexes, offsets=offsets)
    read = [_read(flavor, *batch, weighed=weighed) for batch in batches]
    _refuse(flavor, read)
    loss = torch.cat([_counted(each(lists), lists) for lists in read])
    empty = torch.cat([lists.empty for lists in read])
    if reduction == "none":
        return loss if places is None else loss[places]
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / (~empty).sum().clamp(min=1)


def finite_scores(lists: Lists) -> tuple[Tensor, Tensor]:
    """The scores, 0 in the lists that have one that is not finite, and which lists have none."""
    finite = lists.scores.detach().isfinite().all(-1)
    return torch.where(finite.unsqueeze(-1), lists.scores, 0.0), finite


def check_reduction(reduction: str) -> str:
    """One of the three ways in which the losses of lists become one."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none'; got {reduction!r}.")
    return reduction


def flavor_of(flavor: object) -> Flavor:
    """The flavor that a caller named, in compiled code too, where a text is read once."""
    return _named(flavor) if isinstance(flavor, str) else as_flavor(flavor)


def at_real_ranks(flavor: Flavor) -> Flavor:
    """The flavor, if a loss that asks for discounts between whole ranks can honour it."""
    if callable(flavor.discount):
        raise ValueError(
            f"flavor.discount must be named in a loss, which needs it between whole ranks; got the callable "
            f"{flavor.discount!r}. Choose 'log2', 'ln', 'reciprocal', 'jarvelin' or 'none'."
        )
    return at_whole_ranks(flavor)


def at_whole_ranks(flavor: Flavor) -> Flavor:
    """The flavor, if a loss that asks for discounts at whole ranks only can honour it: a callable is one more table."""
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


def _read(flavor: Flavor, scores: Tensor, labels: Tensor, mask: Tensor | None, *, weighed: bool) -> Lists:
    """Check the arguments of a loss, and work out what does not depend on the surrogate."""
    scores, labels, listed = read_lists(scores, labels, mask)
    dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
    with torch.no_grad():
        gains, weight, ranked, empty, faults = _weights(flavor, scores.detach(), labels, listed, weighed=weighed)
    # Before any arithmetic: a padded NaN times 0 is NaN.
    clean = torch.where(ranked, scores.to(dtype), 0.0)
    return Lists(clean, gains, weight.to(dtype), ranked, empty, faults)


def _refuse(flavor: Flavor, read: list[Lists]) -> None:
    """Raise for labels that the flavor refuses, where looking at them stalls no device."""
    if read[0].scores.device.type != "cpu":
        return
    none = torch.zeros((), dtype=torch.int64)
    of_lists = [
        torch.stack([lists.faults[name].sum() if name in lists.faults else none for name in PROBLEMS]) for lists in read
    ]
    refuse(flavor, torch.stack(of_lists).sum(0))


def _counted(loss: Tensor, lists: Lists) -> Tensor:
    """0 for an empty list, nan for one with labels that the flavor refuses."""
    # nan says that a score was not finite, in an empty list too.
    loss = torch.where(lists.empty & ~loss.isnan(), 0.0, loss)
    refused = torch.stack(list(lists.faults.values())).any(0).any(-1)
    return torch.where(refused, math.nan, loss)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _named(text: str) -> Flavor:
    return as_flavor(text)


def _weights(
    flavor: Flavor, scores: Tensor, labels: Tensor, listed: Tensor, *, weighed: bool
) -> tuple[Gains, Tensor, Tensor, Tensor, dict[str, Tensor]]:
    """Gains, gain over ideal, which documents take part, which lists are empty, and labels at fault."""
    layout = Padded(scores.shape[0], scores.shape[1], scores.device)
    judgements = judge(flavor, labels, listed)
    ranked = ranked_documents(flavor, judgements, None)
    gains = gains_of(flavor, judgements, pool_of(flavor, judgements, ranked), layout)
    of_ranked = replace(gains, gain=torch.where(ranked, gains.gain, 0.0))
    best_first = flavor.ideal in ("global", "recall") and flavor.ideal_depth == "all" and not callable(flavor.discount)
    if not weighed and best_first and not needs_ranking(flavor):  # the best gain, at rank 1, decides alone
        pool = ranked if flavor.ideal == "recall" else judgements.judged
        empty = ~((gains.gain > 0) & pool).any(-1)
        return of_ranked, torch.zeros_like(gains.gain), ranked, empty, judgements.faults
    ranking = rank(flavor, layout, scores, ranked, gains.gain, None) if needs_ranking(flavor) else None
    ks = (flavor.k,)
    table = table_for(flavor, ks, layout, labels)
    idcg = ideal_dcg(flavor, ks, layout, judgements, gains, ranked, ranking, table)
    empty = ~(idcg > 0)
    counted = ranked & ~empty & ~too_short(flavor, ks, layout, ranked)
    weight = torch.where(counted, gains.gain / torch.where(empty, 1.0, idcg), 0.0)
    return of_ranked, weight, ranked, empty.squeeze(-1), judgements.faults
