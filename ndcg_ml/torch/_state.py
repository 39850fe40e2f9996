"""What the metric keeps: sums over whole queries, or the rows of queries that arrive in pieces.

The sums are those of the NumPy kernel where it takes the tensors (see ``_host``), and otherwise of torch's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._faults import FAULTS, refuse
from ndcg_ml.torch._gains import working_dtype
from ndcg_ml.torch._host import on_host
from ndcg_ml.torch._inputs import a_tensor, read_batch, refuse_other_device, refuse_unless_whole
from ndcg_ml.torch._kernel import Result, evaluate
from ndcg_ml.torch._layout import Layout, Padded

if TYPE_CHECKING:
    from ndcg_ml._kernel.totals import Totals

Cutoffs = tuple[int | None, ...]


# -- sums ------------------------------------------------------------------------------------------------------------


class MetricSums(NamedTuple):
    """Counts are int64. All but `n_queries` and `problems` have one entry per cut-off.

    The sums of DCG and of ideal DCG are 0 unless the flavor's aggregate is "micro", which alone needs them.
    """

    n_queries: Tensor
    n_empty: Tensor
    problems: Tensor
    """How often each of ``FAULTS`` occurred."""
    ndcg_sum: Tensor
    dcg_sum: Tensor
    idcg_sum: Tensor


def no_sums(ks: Cutoffs, device: torch.device | None = None) -> MetricSums:
    """The sums of no query at all."""

    def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=device)

    real = torch.float64 if device is None else working_dtype(device)
    sums = (zeros(len(ks), dtype=real) for _ in range(3))
    return MetricSums(zeros(), zeros(len(ks)), zeros(len(FAULTS)), *sums)


def host_looks(preds: Tensor) -> bool:
    """Whether the host may look at the data, and need not wait for it."""
    return preds.device.type == "cpu" and not torch.compiler.is_compiling()


def sums_of_batch(
    flavor: Flavor, ks: Cutoffs, preds: Any, target: Any, indexes: Any, mask: Any, *, whole: bool = True
) -> tuple[MetricSums, Tensor | None] | None:
    """The sums of the queries of one update, and the ids of its flat form; None if there is no query.

    There is one id per query where the host looks at the data. Elsewhere there is one per row, sorted, because only the
    device knows which are equal. `whole` is False for pieces of queries.

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_ml.torch.ndcg``; faults in data at which the host does not look are counted in `problems`.
    """
    totals = on_host(flavor, ks, preds, target, mask=mask, indexes=indexes, whole=whole)
    if totals is not None:
        ids = None if indexes is None else torch.from_numpy(totals.ids.astype(np.int64))
        return sums_of_totals(flavor, totals), ids
    batch = read_batch(flavor, preds, target, mask=mask, indexes=indexes, names=("preds", "target"))
    if batch is None:
        return None
    ids = None if batch.rows is None else indexes.detach().long()[batch.rows]
    given = batch.layout, batch.scores, batch.labels, batch.listed
    if not host_looks(preds):
        return _on_device(flavor, ks, *given), ids
    result = evaluate(flavor, ks, *given)
    refuse(flavor, result.wrong, lambda: _on_device(flavor, ks, *given).problems, labels="target", scores="preds")
    return _summed(flavor, batch.layout, result), None if ids is None else ids.unique_consecutive()


def sums_of_rows(flavor: Flavor, ks: Cutoffs, rows: MetricRows) -> MetricSums:
    """The sums of the queries whose rows these are; their faults are counted in `problems`."""
    if rows.ids.numel() == 0:
        return no_sums(ks, rows.ids.device)
    if host_looks(rows.preds) and bool(rows.listed.all()):
        totals = on_host(flavor, ks, rows.preds, rows.target, indexes=rows.ids)
        if totals is not None:
            return sums_of_totals(flavor, totals)
    batch = read_batch(flavor, rows.preds, rows.target, indexes=rows.ids)
    assert batch is not None
    return _on_device(flavor, ks, batch.layout, batch.scores, batch.labels, rows.listed[batch.rows])


def _on_device(
    flavor: Flavor, ks: Cutoffs, layout: Layout, scores: Tensor, labels: Tensor, listed: Tensor
) -> MetricSums:
    """The sums with their faults, counted without a look at the data."""
    return _summed(flavor, layout, evaluate(flavor, ks, layout, scores, labels, listed, None, None, True))


def _summed(flavor: Flavor, layout: Layout, result: Result) -> MetricSums:
    empty = layout.existing(result.empty)
    ndcg = result.ndcg
    # Entries that are no query are empty, too: nothing of them is left where the empty ones are left out.
    if flavor.empty == "skip":
        ndcg = ndcg.masked_fill(result.empty, 0.0)
    elif not isinstance(layout, Padded):
        ndcg = ndcg.masked_fill(result.empty & ~empty, 0.0)
    faults = torch.zeros(len(FAULTS), dtype=torch.int64, device=ndcg.device) if result.faults is None else result.faults
    ndcg_sum = ndcg.sum(0)
    dcg_sum = idcg_sum = torch.zeros_like(ndcg_sum)
    # The sums of a mean of ratios are not looked at.
    if flavor.aggregate == "micro":
        dcg_sum, idcg_sum = (part.masked_fill(result.empty, 0.0).sum(0) for part in (result.dcg, result.idcg))
    return MetricSums(layout.n_queries(), empty.sum(0), faults, ndcg_sum, dcg_sum, idcg_sum)


def sums_of_totals(flavor: Flavor, totals: Totals) -> MetricSums:
    """The sums of queries that the NumPy kernel has ranked."""
    ndcg, empty = totals.ndcg(flavor)
    if flavor.empty == "skip" and empty.any():
        ndcg = np.where(empty, 0.0, ndcg)
    ndcg_sum = ndcg.sum(axis=0)
    dcg_sum = idcg_sum = np.zeros_like(ndcg_sum)
    # The sums of a mean of ratios are not looked at.
    if flavor.aggregate == "micro":
        dcg_sum, idcg_sum = (np.where(empty, 0.0, part).sum(axis=0) for part in totals.in_units_of_gain())
    return MetricSums(
        torch.as_tensor(len(ndcg)),
        torch.from_numpy(empty.sum(axis=0)),
        torch.zeros(len(FAULTS), dtype=torch.int64),
        *map(torch.from_numpy, (ndcg_sum, dcg_sum, idcg_sum)),
    )


# -- rows ------------------------------------------------------------------------------------------------------------


class MetricRows(NamedTuple):
    """Rows of queries that arrive in pieces: kept as they came, scored when all are there."""

    preds: Tensor
    target: Tensor
    ids: Tensor
    listed: Tensor
    """False for padding, and for a row that only stands for a query without documents."""


def ids_of_lists(preds: Tensor, indexes: object) -> Tensor:
    """The ids of padded lists, one per list, in one dimension.

    Raises
    ------
    TypeError
        They are not a tensor of integers.
    ValueError
        There is not one per list.
    """
    ids = refuse_unless_whole(a_tensor(indexes, "indexes"), "indexes", "one query id per list")
    leading = tuple(preds.shape[:-1])
    if tuple(ids.shape) != leading:
        raise ValueError(
            f"indexes of padded input must have one query id per list, shape {leading}, the shape of preds without its "
            f"last dimension; got {tuple(ids.shape)}. If there is one per row, write indexes[..., 0], or flatten preds "
            "and target to one dimension."
        )
    refuse_other_device(ids, "indexes", preds, "preds")
    return ids.detach().reshape(-1).to(torch.int64, copy=True)


def rows_of(preds: Tensor, target: Tensor, ids: Tensor, mask: Tensor | None, *, drop: bool) -> MetricRows:
    """A copy of the rows of an update, flat (one id per row) or padded (one id per list).

    Parameters
    ----------
    drop : bool
        Whether to leave padding out, which makes the host look at the mask. Otherwise padding is kept as rows that are
        not listed.
    """
    preds, target = preds.detach(), target.detach()
    if preds.ndim == 1:
        listed = torch.ones(preds.shape, dtype=torch.bool, device=preds.device)
        return MetricRows(preds.clone(), target.clone(), ids.detach().to(torch.int64, copy=True), listed)
    mask = torch.ones_like(preds, dtype=torch.bool) if mask is None else mask.detach()
    n_lists, width = ids.numel(), preds.shape[-1]
    parts = [part.reshape(n_lists, width) for part in (preds, target, mask)]
    if width == 0:  # every list must leave a row, or a query without documents would be forgotten
        parts = [pad(part, (0, 1)) for part in parts]
    preds, target, listed = parts
    ids = ids[:, None].expand_as(preds)
    if drop:
        kept = listed.clone()
        kept[:, 0] |= ~listed.any(-1)
        return MetricRows(preds[kept], target[kept], ids[kept], listed[kept])
    return MetricRows(*(part.flatten().clone() for part in (preds, target, ids, listed)))


def joined(parts: Sequence[Tensor], dtype: torch.dtype, device: torch.device) -> Tensor:
    """The parts one after another, as one tensor of one dimension, even if there is none."""
    if not parts:
        return torch.zeros(0, dtype=dtype, device=device)
    return torch.cat([part.to(dtype=dtype, device=device) for part in parts])
