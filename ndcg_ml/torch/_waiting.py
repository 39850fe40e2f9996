"""Whole queries in small batches on the CPU, copied, which wait to be ranked together.

A call of the kernel has a fixed cost, which is most of what a hundred queries take; ranked with those of other batches
they take a third of the time. A batch waits only if nothing in it can be refused, so that no error comes late. The
metric ranks any other batch at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._host import as_array, is_plain, ranked, takes_tensors
from ndcg_ml.torch._state import Cutoffs, MetricSums, sums_of_batch, sums_of_totals

# Rows that wait at most. More of them would not be ranked any faster, and this many take 4 MB.
_ROOM = 1 << 18
# Grades stay bytes while they wait; up to here every named gain has its ordinary size, in whatever company.
_TOP = 255
_SCORES = (torch.float16, torch.float32, torch.float64)


class _Batch(NamedTuple):
    """Rows of one update: flat with one id per row, or padded with one per list, or none."""

    scores: NDArray[Any]
    labels: NDArray[np.uint8]
    ids: NDArray[np.int64] | None
    listed: NDArray[np.bool_] | None

    def goes_with(self, other: _Batch) -> bool:
        """Whether these can be laid one after the other."""
        return (
            self.scores.dtype == other.scores.dtype
            and self.scores.shape[1:] == other.scores.shape[1:]
            and (self.ids is None) == (other.ids is None)
            and (self.listed is None) == (other.listed is None)
        )


class WaitingBatches:
    """Batches in the order in which they came.

    Parameters
    ----------
    flavor : Flavor
    ks : sequence of int or None
    ids_of_lists : bool
        Whether padded input may have ids.
    """

    def __init__(self, flavor: Flavor, ks: Cutoffs, ids_of_lists: bool) -> None:
        self._flavor, self._ks, self._ids_of_lists = flavor, ks, ids_of_lists
        self._top = _highest_grade(flavor)
        self._batches: list[_Batch] = []
        self._n_rows = 0

    @property
    def full(self) -> bool:
        """Whether it is time to rank them."""
        return self._n_rows >= _ROOM

    def __len__(self) -> int:
        return len(self._batches)

    def take(self, preds: Any, target: Any, indexes: Any, mask: Any) -> bool:
        """Copy a batch, if nothing in it can be refused; whether that is so."""
        if self._top is None or not takes_tensors():
            return False
        batch = self._read(self._top, preds, target, indexes, mask)
        if batch is None:
            return False
        self._batches.append(batch)
        self._n_rows += batch.scores.size
        return True

    def emptied(self) -> WaitingBatches:
        """The same without its batches."""
        return WaitingBatches(self._flavor, self._ks, self._ids_of_lists)

    def ranked(self) -> tuple[list[MetricSums], list[Tensor]]:
        """The sums of each batch, to the last bit those that it would have alone, and the ids of the queries."""
        sums, ids = list[MetricSums](), list[Tensor]()
        for alike in self._alike():
            of_batches, of_queries = self._ranked(alike)
            sums += of_batches
            ids += of_queries
        return sums, ids

    def _alike(self) -> Iterator[list[_Batch]]:
        """The batches, cut where one does not go with the one before."""
        first = 0
        for at in range(1, len(self._batches) + 1):
            if at == len(self._batches) or not self._batches[at].goes_with(self._batches[first]):
                yield self._batches[first:at]
                first = at

    def _ranked(self, batches: list[_Batch]) -> tuple[list[MetricSums], list[Tensor]]:
        scores = np.concatenate([batch.scores for batch in batches])
        settings: dict[str, Any] = {"y_true": np.concatenate([batch.labels for batch in batches])}
        ids, listed = (_joined([batch[part] for batch in batches]) for part in (2, 3))
        ends = np.cumsum([len(batch.scores) for batch in batches])
        if scores.ndim > 1:
            settings.update({} if listed is None else {"mask": listed})
        elif ids is not None:
            runs = _runs(ids, ends)
            if runs is None:  # somewhere the rows of one query do not follow each other
                return self._ranked_alone(batches)
            ids, settings["group"], ends = runs
        totals = ranked(self._flavor, self._ks, scores, settings, whole=False)
        if totals is None:  # the environment asks for a kernel that is not there
            return self._ranked_alone(batches)
        return sums_of_totals(self._flavor, totals, ends.tolist()), [] if ids is None else [torch.from_numpy(ids)]

    def _ranked_alone(self, batches: list[_Batch]) -> tuple[list[MetricSums], list[Tensor]]:
        sums, ids = list[MetricSums](), list[Tensor]()
        for batch in batches:
            scores, labels, given, listed = (None if part is None else torch.from_numpy(part) for part in batch)
            flat = batch.scores.ndim == 1
            found = sums_of_batch(self._flavor, self._ks, scores, labels, given if flat else None, listed)
            assert found is not None  # it has rows
            sums.append(found[0])
            of_queries = found[1] if flat else given
            ids += [] if of_queries is None else [of_queries]
        return sums, ids

    def _read(self, top: float, preds: Any, target: Any, indexes: Any, mask: Any) -> _Batch | None:
        """A copy of the arrays behind plain tensors; None where anything is unusual."""
        optional = [tensor for tensor in (indexes, mask) if tensor is not None]
        if not all(map(is_plain, (preds, target, *optional))) or not self._fit(preds, target, indexes, mask):
            return None
        scores, labels = as_array(preds), as_array(target)
        ids = None if indexes is None else as_array(indexes).astype(np.int64)
        listed = None if mask is None else as_array(mask).copy()
        # Somewhere two documents are ranked: a batch of lists of one is warned of, which has to be at once.
        if listed is not None:
            if np.count_nonzero(listed) <= len(listed):
                return None
            labels = np.where(listed, labels, 0)
        elif ids is not None and scores.ndim == 1 and ids[0] != ids[1] and not (ids[1:] == ids[:-1]).any():
            return None
        # NaN fails these comparisons, and stays what it is as a minimum.
        lowest = scores.min() if listed is None else np.min(scores, where=listed, initial=np.inf)
        if not (labels.min() >= 0 and labels.max() <= top and lowest == lowest):
            return None
        grades = labels.astype(np.uint8)
        if labels.dtype.kind == "f" and not (grades == labels).all():
            return None
        return _Batch(scores.copy(), grades, ids, listed)

    def _fit(self, preds: Tensor, target: Tensor, indexes: Tensor | None, mask: Tensor | None) -> bool:
        """Whether dtypes and shapes are those of rows of queries, or of lists of more than one document."""
        if preds.dtype not in _SCORES or preds.shape != target.shape or not 1 < preds.numel() < _ROOM:
            return False
        if indexes is not None and (indexes.is_floating_point() or indexes.dtype == torch.bool):
            return False
        if preds.ndim == 1:
            return mask is None and indexes is not None and indexes.shape == preds.shape
        return (
            preds.ndim == 2
            and preds.shape[1] > 1
            and (indexes is None or (self._ids_of_lists and indexes.shape == preds.shape[:1]))
            and (mask is None or (mask.dtype == torch.bool and mask.shape == preds.shape))
        )


def _highest_grade(flavor: Flavor) -> float | None:
    """Up to which no whole label can be refused under this flavor; None where a batch may be for other reasons."""
    if flavor.empty == "raise" or not (isinstance(flavor.gain, str) and isinstance(flavor.discount, str)):
        return None
    return _TOP if flavor.max_grade is None else min(_TOP, flavor.max_grade)


def _joined(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Arrays one after the other, where all batches have one."""
    given = [part for part in parts if part is not None]
    return np.concatenate(given) if given else None


def _runs(
    ids: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None:
    """Id and size of each query of flat batches, and where the queries of each batch end.

    None where a batch has rows of one query that do not follow each other.
    """
    new = np.empty(ids.size, dtype=bool)
    np.not_equal(ids[1:], ids[:-1], out=new[1:])
    new[0] = True
    new[ends[:-1]] = True
    first = np.flatnonzero(new)
    heads, sizes = ids[first], np.diff(np.append(first, ids.size))
    ends = np.searchsorted(first, ends)
    rises = heads[1:] > heads[:-1]
    rises[ends[:-1] - 1] = True
    if not rises.all():
        for own in np.split(heads, ends[:-1]):
            if np.unique(own).size != own.size:
                return None
    return heads, sizes, ends
