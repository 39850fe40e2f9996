"""Which slots of a tensor belong to one query: rows of a padded tensor, or stretches of a flat one.

Both layouts keep the documents along the last dimension, so the kernel is written once. A flat tensor is never
padded: a query of 10 000 documents beside ten thousand queries of one costs 20 000 slots.
"""

from __future__ import annotations

import torch
from torch import Tensor


def best_first(key: Tensor) -> Tensor:
    """Where the largest key of the last dimension stands, then the next; equal keys in their present order."""
    # Not argsort, for whose stable form torch 2.4 has no rule under vmap.
    return torch.sort(key, dim=-1, descending=True, stable=True).indices


class Padded:
    """One query per row, all of one width; which slots hold a document is the kernel's business."""

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
        # Made when it is needed: what most calls never look at is not worth a launch on a device.
        return torch.arange(1, self.width + 1, device=self._device)

    def n_queries(self) -> Tensor:
        """The number of queries, without dimensions."""
        return torch.full((), self._n_queries, device=self._device)

    def existing(self, flags: Tensor) -> Tensor:
        """Flags of queries (or per query and cut-off), unset in entries of a per-query tensor that are no query."""
        return flags

    def order_by(self, key: Tensor) -> Tensor:
        """The slots sorted by a key within each query, largest first, equal keys in their present order."""
        return best_first(key)

    def take(self, values: Tensor, order: Tensor) -> Tensor:
        """The values in that order."""
        return values.gather(-1, order)

    def per_query(self, values: Tensor) -> Tensor:
        """The sum within each query."""
        return values.sum(-1)

    def any_of(self, flags: Tensor) -> Tensor:
        """Whether a flag is set within each query."""
        return flags.any(-1)

    def per_slot(self, values: Tensor) -> Tensor:
        """Each slot's own query's entry (or what broadcasts to that)."""
        return values.unsqueeze(-1)

    def at_first(self, values: Tensor) -> Tensor:
        """For each slot, the value at the first slot of its query (or what broadcasts to that)."""
        return values[..., :1]


class Flat:
    """The slots of one query after those of another, from ids that stand in that order; methods are as in ``Padded``.

    The number of queries is only known on the device, and asking for it would make the host wait. Per-query tensors
    therefore have one entry per slot, of which the first ``n_queries()`` are queries.
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
