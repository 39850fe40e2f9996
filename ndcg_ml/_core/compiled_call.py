"""Call the compiled kernel on all queries: prepare its arguments, and divide the queries among threads."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import IntArray
from ndcg_ml._core.grade_codes import Coded, Gains
from ndcg_ml._core.groups import Groups
from ndcg_ml._core.kernel_choice import Rank
from ndcg_ml._core.numpy_kernel import Cutoffs, FloatArray, Scores
from ndcg_ml._core.threads import run_in_threads

# Longer than any list.
_NO_CUT = 1 << 62
# Number of parts per thread.
_PARTS = 8
# Number of rows in a part if scores must be converted.
_PART_ROWS = 1 << 16
_NO_ORDER = np.empty(0, dtype=np.int64)


class CompiledQueries:
    """The arguments of the compiled kernel for a set of queries.

    Parameters
    ----------
    layout : Groups
        Rows in the order in which tied ones rank, unless ties are averaged.
    gains : ndarray of float, shape (n_rows,), or Coded
    discounts : ndarray of float
        One for each rank that counts.
    ks : sequence of int or None
    average : bool
        Whether tied documents share their mean gain.
    """

    def __init__(self, layout: Groups, gains: Gains, discounts: FloatArray, ks: Cutoffs, average: bool) -> None:
        self._starts, self._sizes, self._order = layout.starts, layout.sizes, layout.order
        self._codes, self._table, by_row = np.empty(0, dtype=np.uint8), np.empty(0), np.empty(0)
        if isinstance(gains, Coded):
            self._codes, self._table = _query_by_query(gains.codes, layout), gains.table
        else:
            by_row = _query_by_query(gains, layout)
        self._gains, self._n_ks = by_row, len(ks)
        cuts: IntArray = np.array([_NO_CUT if k is None else k for k in ks], dtype=np.int64)
        self._rule = (discounts, cuts, average)

    def dcg(self, rank: Rank, scores: Scores, threads: int) -> FloatArray | None:
        """Return DCG by query and cut-off; None if a score is NaN."""
        converted = scores.dtype == np.float64 and scores.flags.aligned
        if not converted and self._order is not None:  # any part may need any row
            scores, converted = _as_float64(scores), True
        dcg = np.zeros(self._sizes.size * self._n_ks)
        nan = False

        def work(parts: Iterable[tuple[int, int]]) -> None:
            nonlocal nan
            for begin, end in parts:
                lists = self._lists(scores, begin, end)
                if not rank(*lists, *self._rule, dcg[begin * self._n_ks : end * self._n_ks]):
                    nan = True

        run_in_threads(work, self._parts(threads, converted), threads)
        return None if nan else dcg.reshape(self._sizes.size, self._n_ks)

    def _lists(self, scores: Scores, begin: int, end: int) -> tuple[NDArray[Any], ...]:
        """Return the kernel's arguments for the queries from `begin` up to `end`."""
        starts, sizes = self._starts[begin:end], self._sizes[begin:end]
        first = int(starts[0])
        rows = slice(first, int(starts[-1] + sizes[-1]))
        if self._order is None:
            order, scores = _NO_ORDER, _as_float64(scores[rows])
        else:
            order = self._order[rows]
        gains = self._table if self._codes.size else self._gains[rows]
        return (scores, order, self._codes[rows], gains, starts - first if first else starts, sizes)

    def _parts(self, threads: int, converted: bool) -> list[tuple[int, int]]:
        """Divide the queries into parts with about the same number of rows.

        Each thread gets several parts, in case one takes longer. Scores that must be converted are converted part by
        part, so that they stay in the processor's cache.
        """
        n_rows = int(self._sizes.sum())
        n_parts = 1 if threads == 1 else _PARTS * threads
        if not converted:
            n_parts = max(n_parts, n_rows // _PART_ROWS)
        if n_parts == 1:
            return [(0, self._sizes.size)]
        ends = np.cumsum(self._sizes)
        marks = np.arange(1, n_parts) * (n_rows / n_parts)
        cuts = [0, *np.searchsorted(ends, marks).tolist(), self._sizes.size]
        return [(begin, end) for begin, end in pairwise(cuts) if begin < end]


def _query_by_query(values: NDArray[Any], layout: Groups) -> NDArray[Any]:
    return np.ascontiguousarray(layout.arrange(values))


def _as_float64(scores: Scores) -> FloatArray:
    with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs
        doubles: FloatArray = scores.astype(np.float64, copy=not scores.flags.aligned)
    return doubles
