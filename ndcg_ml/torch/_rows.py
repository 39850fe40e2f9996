"""The rows of queries that arrive in pieces: kept as they came, scored when all are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

__all__ = ["Rows", "ids_of_lists", "joined", "rows_of"]


class Rows(NamedTuple):
    """One entry a row."""

    preds: Tensor
    target: Tensor
    ids: Tensor
    listed: Tensor
    """False for a row that only stands for a query without documents, or for padding."""


def ids_of_lists(preds: Tensor, indexes: object) -> Tensor:
    """The ids of padded lists, one a list, in one dimension.

    Raises
    ------
    TypeError
        They are not a tensor of integers.
    ValueError
        They are not one a list.
    """
    if not isinstance(indexes, Tensor):
        kind = f"{type(indexes).__module__}.{type(indexes).__qualname__}"
        raise TypeError(f"indexes must be a torch.Tensor; got {kind}. Write torch.as_tensor(indexes).")
    if indexes.is_floating_point() or indexes.is_complex() or indexes.dtype == torch.bool:
        raise TypeError(
            f"indexes must hold integers, one query id a list; got dtype {indexes.dtype}. Write indexes.long() if they "
            "are whole."
        )
    leading = tuple(preds.shape[:-1])
    if tuple(indexes.shape) != leading:
        raise ValueError(
            f"indexes of padded input must have one query id a list, shape {leading}, the shape of preds without its "
            f"last dimension; got {tuple(indexes.shape)}. If they are one a row, write indexes[..., 0], or flatten "
            "preds and target to one dimension."
        )
    if indexes.device != preds.device:
        raise ValueError(
            f"indexes must be on the device of preds, {preds.device}; got {indexes.device}. Move it with .to()."
        )
    return indexes.detach().reshape(-1).to(torch.int64, copy=True)


def rows_of(preds: Tensor, target: Tensor, ids: Tensor, mask: Tensor | None, *, drop: bool) -> Rows:
    """A copy of the rows of an update, flat (one id a row) or padded (one id a list).

    Parameters
    ----------
    drop : bool
        Leave padding out, for which the host has to look at the mask; else it is kept as rows that are not listed.
    """
    preds, target = preds.detach(), target.detach()
    if preds.ndim == 1:
        listed = torch.ones(preds.shape, dtype=torch.bool, device=preds.device)
        return Rows(preds.clone(), target.clone(), ids.detach().to(torch.int64, copy=True), listed)
    mask = torch.ones_like(preds, dtype=torch.bool) if mask is None else mask.detach()
    n_lists, width = ids.numel(), preds.shape[-1]
    parts = [part.reshape(n_lists, width) for part in (preds, target, mask)]
    if width == 0:  # every list must leave a row, or a query without documents would be forgotten
        parts = [pad(part, (0, 1)) for part in parts]
    preds, target, listed = parts
    ids = ids[:, None].expand_as(preds)
    kept = torch.ones_like(listed)
    if drop:
        kept = listed.clone()
        kept[:, 0] |= ~listed.any(-1)
        return Rows(preds[kept], target[kept], ids[kept], listed[kept])
    return Rows(*(part.flatten().clone() for part in (preds, target, ids, listed)))


def joined(parts: Sequence[Tensor], dtype: torch.dtype, device: torch.device) -> Tensor:
    """The parts one after another, as one tensor of one dimension, even if there is none."""
    if not parts:
        return torch.zeros(0, dtype=dtype, device=device)
    return torch.cat([part.to(dtype=dtype, device=device) for part in parts])
