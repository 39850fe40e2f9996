"""What queries add to a mean over more of them: by the NumPy kernel where they are on the CPU, else by torch's."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._host import host_sums
from ndcg_ml.torch._inputs import read_batch
from ndcg_ml.torch._kernel import Result, evaluate, working_dtype
from ndcg_ml.torch._layout import Layout
from ndcg_ml.torch._problems import PROBLEMS, refuse
from ndcg_ml.torch._rows import Rows

__all__ = ["Cutoffs", "Sums", "host_looks", "no_sums", "sums_of_batch", "sums_of_rows"]

Cutoffs = tuple[int | None, ...]


class Sums(NamedTuple):
    """Counts are int64. All but `n_queries` and `problems` have one entry a cut-off."""

    n_queries: Tensor
    n_empty: Tensor
    problems: Tensor
    ndcg_sum: Tensor
    dcg_sum: Tensor
    idcg_sum: Tensor


def no_sums(ks: Cutoffs, device: torch.device | None = None) -> Sums:
    """Of no query at all."""

    def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=device)

    real = torch.float64 if device is None else working_dtype(device)
    sums = (zeros(len(ks), dtype=real) for _ in range(3))
    return Sums(zeros(), zeros(len(ks)), zeros(len(PROBLEMS)), *sums)


def host_looks(preds: Tensor) -> bool:
    """Whether looking at the data is free of any wait, and allowed."""
    return preds.device.type == "cpu" and not torch.compiler.is_compiling()


def sums_of_batch(
    flavor: Flavor, ks: Cutoffs, preds: Any, target: Any, indexes: Any, mask: Any
) -> tuple[Sums, Tensor | None] | None:
    """The sums of the queries of one update, and the ids of its flat form; None if there is no query.

    The ids are one a query where the host looks at data; elsewhere one a row, sorted, for only the device knows which
    are equal.

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_ml.torch.ndcg``; what is wrong with data at which the host does not look is counted in `problems`.
    """
    on_host = host_sums(flavor, ks, preds, target, indexes, mask)
    if on_host is not None:
        return _as_tensors(on_host[:5]), None if on_host.ids is None else torch.from_numpy(on_host.ids)
    batch = read_batch(flavor, preds, target, mask=mask, indexes=indexes, names=("preds", "target"))
    if batch is None:
        return None
    ids = None if batch.rows is None else indexes.detach().long()[batch.rows]
    result = evaluate(flavor, ks, batch.layout, batch.scores, batch.labels, batch.listed)
    if host_looks(preds):
        refuse(flavor, result.problems, labels="target", scores="preds")
        ids = None if ids is None else ids.unique_consecutive()
    return _summed(flavor, result, batch.layout), ids


def sums_of_rows(flavor: Flavor, ks: Cutoffs, rows: Rows) -> Sums:
    """The sums of the queries whose rows these are; what is wrong with them is counted in `problems`."""
    if rows.ids.numel() == 0:
        return no_sums(ks, rows.ids.device)
    if host_looks(rows.preds) and bool(rows.listed.all()):
        on_host = host_sums(flavor, ks, rows.preds, rows.target, rows.ids, None)
        if on_host is not None:
            return _as_tensors(on_host[:5])
    batch = read_batch(flavor, rows.preds, rows.target, indexes=rows.ids)
    assert batch is not None
    result = evaluate(flavor, ks, batch.layout, batch.scores, batch.labels, rows.listed[batch.rows])
    return _summed(flavor, result, batch.layout)


def _as_tensors(sums: tuple[Any, ...]) -> Sums:
    n_queries, n_empty, *totals = map(torch.as_tensor, sums)
    return Sums(n_queries, n_empty, torch.zeros(len(PROBLEMS), dtype=torch.int64), *totals)


def _summed(flavor: Flavor, result: Result, layout: Layout) -> Sums:
    exists = layout.exists.unsqueeze(-1)
    counted = exists & ~result.empty
    averaged = counted if flavor.empty == "skip" else exists
    return Sums(
        exists.sum(),
        (exists & result.empty).sum(0),
        result.problems,
        torch.where(averaged, result.ndcg, 0.0).sum(0),
        torch.where(counted, result.dcg, 0.0).sum(0),
        torch.where(counted, result.idcg, 0.0).sum(0),
    )
