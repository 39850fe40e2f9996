"""The slots of each query: rows of a padded tensor, or consecutive parts of a flat one.

Both layouts have the documents along the last dimension, so that one kernel serves both. A flat tensor is never padded:
a query of 10 000 documents and ten thousand queries of one document take 20 000 slots.
"""

from __future__ import annotations

import torch
from torch import Tensor


def best_first(key: Tensor) -> Tensor:
    """Sort the last dimension in descending order, stably, and return the indices."""
    # In torch 2.4, vmap has no rule for a stable argsort.
    return torch.sort(key, dim=-1, descending=True, stable=True).indices


class Padded:
    """One query per row, padded to one width."""

    def __init__(self, n_queries: int, width: int, device: torch.device) -> None:
        self.width = width
        self._n_queries = n_queries
        self._device = device

    @property
    def starts(self) -> Tensor:
        """True at the first slot of each query."""
        return self.position == 1

    @property
    def position(self) -> Tensor:
        """1, 2, ... within each query."""
        # Computed on demand, because most calls do not use it.
        return torch.arange(1, self.width + 1, device=self._device)

    def n_queries(self) -> Tensor:
        """The number of queries, a tensor without dimensions."""
        return torch.full((), self._n_queries, device=self._device)

    def existing(self, flags: Tensor) -> Tensor:
        """Unset flags, per query or per query and cut-off, in entries of a per-query tensor without a query."""
        return flags

    def order_by(self, key: Tensor) -> Tensor:
        """Sort the slots of each query by a key, in descending order, stably, and return the indices."""
        return best_first(key)

    def take(self, values: Tensor, order: Tensor) -> Tensor:
        """The values in this order."""
        return values.gather(-1, order)

    def per_query(self, values: Tensor) -> Tensor:
        """The sum within each query."""
        return values.sum(-1)

    def any_of(self, flags: Tensor) -> Tensor:
        """Whether a flag is set within each query."""
        return flags.any(-1)

    def per_slot(self, values: Tensor) -> Tensor:
        """For each slot, the entry of its query, or a tensor that broadcasts to this."""
        return values.unsqueeze(-1)

    def at_first(self, values: Tensor) -> Tensor:
        """For each slot, the value at the first slot of its query, or a tensor that broadcasts to this."""
        return values[..., :1]


class Flat:
    """Slots in the order of their query ids, given as `ids`. Methods are as in ``Padded``.

    Only the device knows the number of queries, and reading it would make the host wait. Per-query tensors therefore
    have one entry per slot, and the first ``n_queries()`` entries are those of the queries.
    """

    def __init__(self, ids: Tensor) -> None:
        n_slots = ids.numel()
        slot = torch.arange(n_slots, device=ids.device)
        self.width = n_slots
        starts = torch.ones_like(ids, dtype=torch.bool)
        starts[1:] = ids[1:] != ids[:-1]
        self.starts = starts
        self.query = self.starts.cumsum(0) - 1
        self._first = torch.where(self.starts, slot, 0).cummax(0).values
        self.position = slot - self._first + 1
        self.exists = slot <= self.query[-1]

    def n_queries(self) -> Tensor:
        return self.exists.sum()

    def existing(self, flags: Tensor) -> Tensor:
        return flags & self.exists.view(-1, *[1] * (flags.ndim - 1))

    def order_by(self, key: Tensor) -> Tensor:
        by_key = torch.sort(key, descending=True, stable=True).indices
        return by_key[torch.sort(self.query[by_key], stable=True).indices]

    def take(self, values: Tensor, order: Tensor) -> Tensor:
        return values[order]

    def per_query(self, values: Tensor) -> Tensor:
        return torch.zeros_like(values).index_add(0, self.query, values)

    def any_of(self, flags: Tensor) -> Tensor:
        return torch.zeros_like(self.query).index_add(0, self.query, flags.to(self.query.dtype)) > 0

    def per_slot(self, values: Tensor) -> Tensor:
        return values[self.query]

    def at_first(self, values: Tensor) -> Tensor:
        return values[self._first]


Layout = Padded | Flat


def working_dtype(device: torch.device) -> torch.dtype:
    """float64, or float32 on devices without float64."""
    return torch.float32 if device.type == "mps" else torch.float64
