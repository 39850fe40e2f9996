"""The mean in torch: the rule for empty queries, NDCG of each query, and the sums whose ratio is the mean.

Names and rules are those of ``ndcg_ml._core.mean_and_empty_queries``, written separately for tensors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch.inputs import working_dtype
from ndcg_ml.torch.limits import FAULTS, add_fault, count_faults

if TYPE_CHECKING:
    from ndcg_ml._core.mean_and_empty_queries import Sums as NumPySums


def empty_queries(ideal: Tensor) -> Tensor:
    """Flag the queries whose ideal DCG is not above 0."""
    return ideal <= 0


@dataclass(frozen=True)
class Totals:
    """DCG and ideal DCG of every query at every cut-off, shape (n_entries, n_cutoffs)."""

    filled: Tensor
    """Entries that are queries, shape (n_entries,). The others are lists without documents, or of no list."""
    dcg: Tensor
    ideal: Tensor
    empty: Tensor
    data_faults: Tensor
    """The first fault in the data of each entry: see ``add_fault``."""

    def faults(self, flavor: Flavor) -> Tensor:
        """Return the first fault of each entry. Under ``empty="raise"``, it is one to be empty at some cut-off."""
        if flavor.empty == "raise":
            return add_fault(self.data_faults, "empty", self.empty.any(-1) & self.filled)
        return self.data_faults

    def ndcg(self, flavor: Flavor) -> Tensor:
        """Return NDCG of each entry; nan if it is not a query, invalid, or empty without a value."""
        invalid = (self.data_faults < len(FAULTS)) | ~self.filled
        return self._unchecked_ndcg(flavor).masked_fill(invalid.unsqueeze(-1), math.nan)

    def _unchecked_ndcg(self, flavor: Flavor) -> Tensor:
        """Return NDCG of each entry, a number of no meaning if it is not a query or invalid."""
        return _snap_to_one(self.dcg / self.ideal).masked_fill(self.empty, _value_if_empty(flavor))

    def sums(self, flavor: Flavor) -> Sums:
        """Return the sums of these queries, to be added to those of others. They are void if there is a fault."""
        filled = self.filled.unsqueeze(-1)
        empty = self.empty & filled  # self.empty is also set for entries without a query
        n_queries, n_empty = self.filled.sum(), empty.sum(0)
        if flavor.aggregate == "micro":
            numerator, denominator = (part.masked_fill(self.empty, 0.0).sum(0) for part in (self.dcg, self.ideal))
        else:
            left_out = self.empty if flavor.empty == "skip" else ~filled
            numerator = self._unchecked_ndcg(flavor).masked_fill(left_out, 0.0).sum(0)
            counted = n_queries - n_empty if flavor.empty == "skip" else n_queries.expand_as(n_empty)
            denominator = counted.to(numerator.dtype)
        return Sums(n_queries, n_empty, count_faults(self.faults(flavor)), numerator, denominator)


class Sums(NamedTuple):
    """Sums over queries. All except `n_queries` and `faults` have one entry per cut-off. Counts are int64."""

    n_queries: Tensor
    n_empty: Tensor
    faults: Tensor
    """The number of queries with each of ``FAULTS`` as their first one."""
    numerator: Tensor
    """The sum of NDCG, or of DCG if the flavor's aggregate is "micro"."""
    denominator: Tensor
    """The number of queries in the mean, or the sum of ideal DCG."""

    @classmethod
    def zeros(cls, n_cutoffs: int, device: torch.device | None = None) -> Sums:
        """Make the sums over no queries."""
        counts = (torch.zeros(shape, dtype=torch.int64, device=device) for shape in ((), (n_cutoffs,), (len(FAULTS),)))
        real = torch.float64 if device is None else working_dtype(device)
        return cls(*counts, *(torch.zeros(n_cutoffs, dtype=real, device=device) for _ in range(2)))

    @classmethod
    def from_numpy(cls, sums: NumPySums) -> Sums:
        """Convert the sums over queries that the NumPy kernel has ranked, which have no faults."""
        n_queries = np.array(sums.n_queries, np.int64)
        faults = np.zeros(len(FAULTS), np.int64)
        return cls(*map(torch.from_numpy, (n_queries, sums.n_empty, faults, sums.numerator, sums.denominator)))

    def mean(self, flavor: Flavor) -> Tensor:
        """Return the value at each cut-off; nan without a query, or under ``empty="skip"`` with only empty ones."""
        some = self.denominator > 0
        ratio = self.numerator / torch.where(some, self.denominator, 1.0)
        if flavor.aggregate == "micro":
            ratio = _snap_to_one(ratio)
        return torch.where(some, ratio, _value_if_empty(flavor)).masked_fill(self.n_queries == 0, math.nan)


def _value_if_empty(flavor: Flavor) -> float:
    return flavor.empty if isinstance(flavor.empty, float) else math.nan


def _snap_to_one(ndcg: Tensor) -> Tensor:
    """Round values slightly above 1, which are rounding errors of a perfect ranking, to 1."""
    rounding = 1e-12 if ndcg.dtype == torch.float64 else 1e-6
    return torch.where(ndcg < 1 + rounding, ndcg.clamp(max=1.0), ndcg)
