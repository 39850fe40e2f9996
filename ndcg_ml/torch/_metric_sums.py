"""The state of the metric: sums over whole queries, or the rows of queries that arrive in parts.

The NumPy kernel computes the sums if it can take the tensors (see ``_host``), and the torch kernel otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._host import rank_on_host
from ndcg_ml.torch._layout import Layout, working_dtype
from ndcg_ml.torch.inputs import check_integers, check_tensor, read_batch, refuse_other_device
from ndcg_ml.torch.kernel import Result, evaluate, snap_to_one, value_if_empty
from ndcg_ml.torch.limits import FAULTS, refuse

if TYPE_CHECKING:
    from ndcg_ml._core.totals import Totals

Cutoffs = tuple[int | None, ...]


# -- sums ------------------------------------------------------------------------------------------------------------


class MetricSums(NamedTuple):
    """Sums over queries. All except `n_queries` and `problems` have one entry per cut-off. Counts are int64."""

    n_queries: Tensor
    n_empty: Tensor
    problems: Tensor
    """The number of each of ``FAULTS``."""
    numerator: Tensor
    """The sum of NDCG, or of DCG if the flavor's aggregate is "micro"."""
    denominator: Tensor
    """The number of queries in the mean, or the sum of ideal DCG."""

    def ratios(self, flavor: Flavor) -> Tensor:
        """Return the value at each cut-off; nan without a query, or under ``empty="skip"`` with only empty ones."""
        some = self.denominator > 0
        ratio = self.numerator / torch.where(some, self.denominator, 1.0)
        if flavor.aggregate == "micro":
            ratio = snap_to_one(ratio)
        return torch.where(some, ratio, value_if_empty(flavor)).masked_fill(self.n_queries == 0, math.nan)


def zero_sums(ks: Cutoffs, device: torch.device | None = None) -> MetricSums:
    """Make the sums over no queries."""

    def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=device)

    real = torch.float64 if device is None else working_dtype(device)
    return MetricSums(
        zeros(), zeros(len(ks)), zeros(len(FAULTS)), zeros(len(ks), dtype=real), zeros(len(ks), dtype=real)
    )


def can_check_now(preds: Tensor) -> bool:
    """Whether the host can read the data without waiting for a device."""
    return preds.device.type == "cpu" and not torch.compiler.is_compiling()


def sum_batch(
    flavor: Flavor, ks: Cutoffs, preds: Any, target: Any, indexes: Any, mask: Any, *, whole: bool = True
) -> tuple[MetricSums, Tensor | None] | None:
    """Compute the sums over the queries of one update, and the ids of flat input; None without a query.

    There is one id per query if the host reads the data. Otherwise there is one per row, sorted, because only the
    device knows which are equal. `whole` is False for parts of queries.

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_ml.torch.ndcg``. Faults in data that the host does not read are counted in `problems`.
    """
    totals = rank_on_host(flavor, ks, preds, target, mask=mask, indexes=indexes, whole=whole)
    if totals is not None:
        ids = None if indexes is None else torch.from_numpy(totals.ids.astype(np.int64))
        return sum_totals(flavor, totals), ids
    batch = read_batch(flavor, preds, target, mask=mask, indexes=indexes, names=("preds", "target"))
    if batch is None:
        return None
    ids = None if batch.rows is None else indexes.detach().long()[batch.rows]
    given = batch.layout, batch.scores, batch.labels, batch.listed
    if not can_check_now(preds):
        return _sum_with_faults(flavor, ks, *given), ids
    result = evaluate(flavor, ks, *given)
    refuse(flavor, result.wrong, lambda: _sum_with_faults(flavor, ks, *given).problems, labels="target", scores="preds")
    return _sum_result(flavor, batch.layout, result), None if ids is None else ids.unique_consecutive()


def sum_rows(flavor: Flavor, ks: Cutoffs, rows: MetricRows) -> MetricSums:
    """Compute the sums over the queries of these rows; faults are counted in `problems`."""
    if rows.ids.numel() == 0:
        return zero_sums(ks, rows.ids.device)
    if can_check_now(rows.preds) and bool(rows.listed.all()):
        totals = rank_on_host(flavor, ks, rows.preds, rows.target, indexes=rows.ids)
        if totals is not None:
            return sum_totals(flavor, totals)
    batch = read_batch(flavor, rows.preds, rows.target, indexes=rows.ids)
    assert batch is not None
    return _sum_with_faults(flavor, ks, batch.layout, batch.scores, batch.labels, rows.listed[batch.rows])


def _sum_with_faults(
    flavor: Flavor, ks: Cutoffs, layout: Layout, scores: Tensor, labels: Tensor, listed: Tensor
) -> MetricSums:
    """Compute the sums and count faults, without reading data on the host."""
    return _sum_result(flavor, layout, evaluate(flavor, ks, layout, scores, labels, listed, None, None, True))


def _sum_result(flavor: Flavor, layout: Layout, result: Result) -> MetricSums:
    empty = layout.existing(result.empty)  # result.empty is also set for entries without a query
    n_queries, n_empty = layout.n_queries(), empty.sum(0)
    if flavor.aggregate == "micro":
        numerator, denominator = (part.masked_fill(result.empty, 0.0).sum(0) for part in (result.dcg, result.idcg))
    else:
        left_out = result.empty if flavor.empty == "skip" else result.empty & ~empty
        numerator = result.ndcg.masked_fill(left_out, 0.0).sum(0)
        counted = n_queries - n_empty if flavor.empty == "skip" else n_queries.expand_as(n_empty)
        denominator = counted.to(numerator.dtype)
    faults = n_empty.new_zeros(len(FAULTS)) if result.faults is None else result.faults
    return MetricSums(n_queries, n_empty, faults, numerator, denominator)


def sum_totals(flavor: Flavor, totals: Totals) -> MetricSums:
    """Compute the sums over queries that the NumPy kernel has ranked."""
    sums = totals.sums(flavor)
    return MetricSums(
        torch.as_tensor(sums.n_queries),
        torch.from_numpy(sums.n_empty),
        torch.zeros(len(FAULTS), dtype=torch.int64),
        torch.from_numpy(sums.numerator),
        torch.from_numpy(sums.denominator),
    )


# -- rows ------------------------------------------------------------------------------------------------------------


class MetricRows(NamedTuple):
    """Rows of queries that arrive in parts, kept until all have arrived."""

    preds: Tensor
    target: Tensor
    ids: Tensor
    listed: Tensor
    """False for padding, and for the row that represents a query without documents."""


def read_list_ids(preds: Tensor, indexes: object) -> Tensor:
    """Check the ids of padded lists, one per list, and flatten them to one dimension.

    Raises
    ------
    TypeError
        They are not a tensor of integers.
    ValueError
        There is not one id per list.
    """
    ids = check_integers(check_tensor(indexes, "indexes"), "indexes", "one query id per list")
    leading = tuple(preds.shape[:-1])
    if tuple(ids.shape) != leading:
        raise ValueError(
            f"indexes of padded input must have one query id per list, shape {leading} (that of preds without its last "
            f"dimension); got {tuple(ids.shape)}. If there is one id per row, pass indexes[..., 0], or flatten preds, "
            "target and indexes to one dimension."
        )
    refuse_other_device(ids, "indexes", preds, "preds")
    return ids.detach().reshape(-1).to(torch.int64, copy=True)


def flatten_rows(preds: Tensor, target: Tensor, ids: Tensor, mask: Tensor | None, *, drop: bool) -> MetricRows:
    """Copy the rows of an update, flat (one id per row) or padded (one id per list).

    Parameters
    ----------
    drop : bool
        Whether to leave padding out, which makes the host read the mask. Otherwise padding is kept as rows that are not
        listed.
    """
    preds, target = preds.detach(), target.detach()
    if preds.ndim == 1:
        listed = torch.ones(preds.shape, dtype=torch.bool, device=preds.device)
        return MetricRows(preds.clone(), target.clone(), ids.detach().to(torch.int64, copy=True), listed)
    mask = torch.ones_like(preds, dtype=torch.bool) if mask is None else mask.detach()
    n_lists, width = ids.numel(), preds.shape[-1]
    parts = [part.reshape(n_lists, width) for part in (preds, target, mask)]
    if width == 0:  # each list must have a row, or a query without documents would be lost
        parts = [pad(part, (0, 1)) for part in parts]
    preds, target, listed = parts
    ids = ids[:, None].expand_as(preds)
    if drop:
        kept = listed.clone()
        kept[:, 0] |= ~listed.any(-1)
        return MetricRows(preds[kept], target[kept], ids[kept], listed[kept])
    return MetricRows(*(part.flatten().clone() for part in (preds, target, ids, listed)))


def concatenate(parts: Sequence[Tensor], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Concatenate 1-D tensors, of which there may be none."""
    if not parts:
        return torch.zeros(0, dtype=dtype, device=device)
    return torch.cat([part.to(dtype=dtype, device=device) for part in parts])


def to_floats(preds: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert scores to another dtype. An integer that it cannot represent becomes NaN, which ``compute`` refuses."""
    values = preds.to(dtype)
    if preds.is_floating_point() or not dtype.is_floating_point:
        return values
    return values.masked_fill(values.to(preds.dtype) != preds, math.nan)
