"""A ranking scored once, to be averaged under many rules: what empty queries count, macro or micro."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import _aggregate
from ndcg_ml._underflow import underflow_is_zero
from ndcg_ml.flavor import Flavor
from ndcg_ml.groups import IntArray

__all__ = ["Ranked"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """DCG and ideal DCG, shape (n_queries, n_cutoffs), both divided by two to the query's exponent."""

    ks: tuple[int | None, ...]
    ids: NDArray[Any]
    dcg: FloatArray
    idcg: FloatArray
    exponent: IntArray | None
    weight: FloatArray | None

    @underflow_is_zero
    def values(self, flavor: Flavor) -> list[float | None]:
        """The value at each cut-off under the flavor's rules for empty queries and means.

        None where these leave the value undefined: ``empty="raise"`` or nan meets an empty query, ``empty="skip"``
        nothing else.
        """
        try:
            return self._values(flavor, slice(None))
        except _aggregate.EmptyQueryError:  # at one of the cut-offs; the others may be well
            return [value for column in range(len(self.ks)) for value in self._value(flavor, column)]

    def _value(self, flavor: Flavor, column: int) -> list[float | None]:
        try:
            return self._values(flavor, slice(column, column + 1))
        except _aggregate.EmptyQueryError:
            return [None]

    def _values(self, flavor: Flavor, columns: slice) -> list[float | None]:
        dcg, idcg = self.dcg[:, columns], self.idcg[:, columns]
        ndcg, empty = _aggregate.per_query_ndcg(dcg, idcg, flavor, self.ids)
        sums = _aggregate.sums(ndcg, empty, dcg, idcg, self.exponent, self.weight, flavor)
        return [value if math.isfinite(value) else None for value in sums.values(flavor)]

    @underflow_is_zero
    def shares(self, flavor: Flavor, k: int | None) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """NDCG of each query, the share of each in the mean at this cut-off, and which are empty.

        Shares sum to 1, and the value is the sum of share times NDCG: for macro a share is a weight, for micro a
        weight times an ideal DCG.
        """
        column = self.ks.index(k)
        dcg, idcg = self.dcg[:, column, None], self.idcg[:, column, None]
        table, empties = _aggregate.per_query_ndcg(dcg, idcg, flavor, self.ids)
        ndcg, empty = table[:, 0], empties[:, 0]
        share = np.ones(len(ndcg)) if self.weight is None else self.weight.copy()
        counted = ~empty & (share > 0)
        if flavor.aggregate == "micro" and counted.any():
            size = np.where(counted, idcg[:, 0], 0.0)
            if self.exponent is not None:
                size = np.ldexp(size, self.exponent - int(self.exponent[counted].max()))
            share *= size
        elif flavor.empty == "skip":
            share[empty] = 0.0
        return ndcg, share / share.sum(), empty
