"""The discounts as torch functions of a rank: real ranks for the losses, a table of whole ones for the kernel."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ndcg_ml._gains import discounts
from ndcg_ml.flavor import Flavor

__all__ = ["discount_at", "discount_table"]


def discount_at(flavor: Flavor, ranks: Tensor) -> Tensor:
    """D(r) at real ranks r >= 1, differentiable in r. The discount has a name: a callable knows whole ranks only."""
    if flavor.discount == "log2":
        return 1.0 / torch.log2(ranks + 1.0)
    if flavor.discount == "ln":
        return 1.0 / torch.log(ranks + 1.0)
    if flavor.discount == "reciprocal":
        return 1.0 / ranks
    if flavor.discount == "jarvelin":
        base = flavor.discount_base
        logs = torch.log2(ranks) if base == 2.0 else torch.log(ranks) / math.log(base)
        return 1.0 / logs.clamp(min=1.0)
    return torch.ones_like(ranks)


def discount_table(flavor: Flavor, depth: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0, D(1), ..., D(depth): the entry at 0 serves the slots that have no rank."""
    if callable(flavor.discount):
        table = torch.from_numpy(discounts(flavor, depth)).to(dtype).to(device)
    else:
        table = discount_at(flavor, torch.arange(1, depth + 1, dtype=dtype, device=device))
    return torch.cat([table.new_zeros(1), table])
