"""From per-query DCG and IDCG to one number: empty queries, weights, means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml.flavor import Flavor

__all__ = ["EmptyQueryError", "mean_dcg", "overall", "per_query_ndcg"]

FloatArray = NDArray[np.float64]

# A perfect ranking may come out as 1 + a few rounding errors; that is 1.
_ROUNDING = 1e-12


class EmptyQueryError(ValueError):
    """Queries without a relevant document leave nothing to report, or are refused by the flavor."""


def per_query_ndcg(
    dcg: FloatArray, idcg: FloatArray, flavor: Flavor, ids: NDArray[Any]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """NDCG of each query, and which queries are empty; an empty query that the mean will skip is nan."""
    empty = ~(idcg > 0)
    if flavor.empty == "raise" and empty.any():
        which = np.flatnonzero(empty.any(axis=1))
        raise EmptyQueryError(
            f"every query must have a relevant document under empty='raise'; {which.size} of {len(dcg)} have an ideal "
            f"DCG of 0, the first is query {ids[which[0]]!r}. Remove them, or choose empty=0, 1, nan or 'skip'."
        )
    ndcg = np.divide(dcg, idcg, out=np.empty_like(dcg), where=~empty)
    ndcg[empty] = math.nan if isinstance(flavor.empty, str) else flavor.empty
    ndcg[(ndcg > 1) & (ndcg < 1 + _ROUNDING)] = 1.0
    return ndcg, empty


def overall(
    ndcg: FloatArray,
    empty: NDArray[np.bool_],
    dcg: FloatArray,
    idcg: FloatArray,
    exponent: NDArray[np.int64] | None,
    weight: FloatArray | None,
    flavor: Flavor,
) -> list[float]:
    """The value at each cut-off, from per-query values of shape (n_queries, n_cutoffs)."""
    weight = np.ones(len(ndcg)) if weight is None else weight
    values = []
    for column in range(ndcg.shape[1]):
        counted = ~empty[:, column]
        if flavor.empty == "skip" and not weight[counted].sum() > 0:
            raise EmptyQueryError(
                "every query is empty (ideal DCG 0) or has weight 0, and empty='skip' leaves nothing to average. "
                "Check the labels, or choose empty=0, 1 or nan."
            )
        if flavor.aggregate == "micro":
            values.append(_micro(dcg[counted, column], idcg[counted, column], exponent, weight, counted, flavor))
        elif flavor.empty == "skip":
            values.append(float(np.average(ndcg[counted, column], weights=weight[counted])))
        else:
            values.append(float(np.average(ndcg[:, column], weights=weight)))
    return values


def _micro(
    dcg: FloatArray,
    idcg: FloatArray,
    exponent: NDArray[np.int64] | None,
    weight: FloatArray,
    counted: NDArray[np.bool_],
    flavor: Flavor,
) -> float:
    weight = weight[counted]
    if not weight.sum() > 0:
        return math.nan if isinstance(flavor.empty, str) else flavor.empty
    if exponent is not None:
        shift = exponent[counted] - exponent[counted].max()
        dcg, idcg = np.ldexp(dcg, shift), np.ldexp(idcg, shift)
    ratio = float((weight * dcg).sum() / (weight * idcg).sum())
    return 1.0 if 1 < ratio < 1 + _ROUNDING else ratio


def mean_dcg(dcg: FloatArray, weight: FloatArray | None) -> list[float]:
    """Weighted mean of the queries' DCG at each cut-off. No ideal, so no query is empty."""
    if not np.isfinite(dcg).all():
        raise ValueError(
            "a DCG is too large for float64, because the gains of its grades are; NDCG, a ratio, has no such limit. "
            "Use ndcg_score, or a smaller grade scale."
        )
    return [float(value) for value in np.average(dcg, axis=0, weights=weight)]
