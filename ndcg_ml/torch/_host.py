"""Sums over the queries of CPU tensors by the NumPy kernel, which ranks several times faster than torch can sort."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ndcg_ml.flavor import Flavor
from ndcg_ml.prepared import prepare

__all__ = ["HostSums", "host_sums"]


class HostSums(NamedTuple):
    """What a batch adds to the state of the metric; the sums and `n_empty` have one entry a cut-off."""

    n_queries: int
    n_empty: NDArray[np.int64]
    ndcg: NDArray[np.float64]
    dcg: NDArray[np.float64]
    idcg: NDArray[np.float64]
    ids: NDArray[np.int64] | None
    """Of the flat form: the id of each query."""


def host_sums(
    flavor: Flavor, ks: tuple[int | None, ...], preds: Any, target: Any, indexes: Any, mask: Any
) -> HostSums | None:
    """The sums of a batch that is on the CPU and in order.

    None where it is not: on a device, nested, being compiled, or anything that would have to be refused. The torch
    kernel takes over there, and does the refusing in its own words.
    """
    if torch.compiler.is_compiling() or not (_plain(preds) and _plain(target)):
        return None
    if preds.shape != target.shape or preds.ndim == 0 or preds.numel() == 0:
        return None
    flat = preds.ndim == 1
    companion, other = (indexes, mask) if flat else (mask, indexes)
    if other is not None or (flat and companion is None):
        return None
    if companion is not None:
        if not _plain(companion) or companion.shape != preds.shape:
            return None
        if (companion.dtype == torch.bool) == flat or companion.is_floating_point():
            return None
    shape = (-1,) if flat else (-1, preds.shape[-1])
    scores, labels = _array(preds).reshape(shape), _array(target).reshape(shape)
    try:
        if flat:
            prepared = prepare(labels, qid=companion.numpy(), flavor=flavor, k=ks)
        else:
            given = None if companion is None else companion.numpy().reshape(shape)
            prepared = prepare(labels, mask=given, flavor=flavor, k=ks)
        totals = prepared.totals(scores)
        ndcg, empty = totals.ndcg(flavor)
        dcg, idcg = totals.in_units_of_gain()
    except (TypeError, ValueError):
        return None
    counted = ~empty
    averaged = np.where(counted, ndcg, 0.0) if flavor.empty == "skip" else ndcg
    ids = prepared.queries.groups.ids
    return HostSums(
        n_queries=len(ndcg),
        n_empty=empty.sum(axis=0),
        ndcg=averaged.sum(axis=0),
        dcg=np.where(counted, dcg, 0.0).sum(axis=0),
        idcg=np.where(counted, idcg, 0.0).sum(axis=0),
        ids=None if ids is None else ids.astype(np.int64),
    )


def _plain(value: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and value.device.type == "cpu"
        and not value.is_nested
        and value.layout == torch.strided
        and not value.is_complex()
    )


def _array(tensor: Tensor) -> NDArray[Any]:
    tensor = tensor.detach()
    # NumPy has neither bfloat16 nor the 8-bit floats; float32 holds their values exactly.
    exotic = tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.float32, torch.float64)
    array: NDArray[Any] = (tensor.float() if exotic else tensor).resolve_neg().numpy()
    return array
