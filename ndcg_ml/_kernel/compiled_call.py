"""The compiled kernel over all queries: what it needs of them, and sharing them out among threads."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.groups import Groups, IntArray
from ndcg_ml._kernel.choice import Rank
from ndcg_ml._kernel.numpy_kernel import Cutoffs, FloatArray, Scores
from ndcg_ml._kernel.threads import in_threads

__all__ = ["Ranking"]

# No list has as many ranks.
_NO_CUT = 1 << 62
# Of the work of a call, for each thread.
_PARTS = 8


class Ranking:
    """Queries as the compiled kernel takes them.

    Parameters
    ----------
    layout : Groups
        Its rows stand in the order in which tied ones rank, or in the opposite one, unless ties are averaged.
    gains : ndarray of float, shape (n_rows,)
    discounts : ndarray of float
        As many as the longest query has ranks.
    ks : sequence of int or None
    average : bool
        Whether tied documents share their mean gain.
    backwards : bool
        Whether tied rows rank in the opposite order.
    ideal_ks : sequence of int or None
        Where the ideal is cut that depends on the ranking; none where there is no such ideal.
    recall_depth : int or None
        That ideal is made of so many documents that rank first.
    """

    def __init__(
        self,
        layout: Groups,
        gains: FloatArray,
        discounts: FloatArray,
        ks: Cutoffs,
        average: bool,
        backwards: bool = False,
        ideal_ks: Cutoffs = (),
        recall_depth: int | None = None,
    ) -> None:
        ordered = gains if layout.order is None else gains[layout.order]
        order = np.empty(0, dtype=np.int64) if layout.order is None else layout.order
        self._sizes, self._n_ks, self._has_ideal = layout.sizes, len(ks), bool(ideal_ks)
        self._arguments = (
            *(order, np.ascontiguousarray(ordered), layout.starts, layout.sizes, discounts, _cuts(ks)),
            *(average, backwards, _cuts(ideal_ks), recall_depth or 0),
        )

    def totals(self, rank: Rank, scores: Scores, threads: int) -> tuple[FloatArray, FloatArray | None] | None:
        """DCG and that ideal, shape (n_queries, n_cutoffs); None where a score is NaN."""
        if scores.dtype != np.float64 or not scores.flags.aligned:
            with np.errstate(invalid="ignore"):  # of a NaN that signals
                scores = scores.astype(np.float64)
        size = self._sizes.size * self._n_ks
        dcg, ideal = np.zeros(size), np.zeros(size if self._has_ideal else 0)
        nan = False

        def work(parts: Iterable[tuple[int, int]]) -> None:
            nonlocal nan
            for begin, end in parts:
                if not rank(scores, *self._arguments, begin, end, dcg, ideal):
                    nan = True

        in_threads(work, self._parts(threads), threads)
        if nan:
            return None
        shape = (self._sizes.size, self._n_ks)
        return dcg.reshape(shape), ideal.reshape(shape) if self._has_ideal else None

    def _parts(self, threads: int) -> list[tuple[int, int]]:
        """The queries in parts of about as many rows each: several for every thread, in case one of them is held up."""
        if threads == 1:
            return [(0, self._sizes.size)]
        n_parts = _PARTS * threads
        ends = np.cumsum(self._sizes)
        marks = np.arange(1, n_parts) * (int(ends[-1]) / n_parts)
        cuts = [0, *np.searchsorted(ends, marks).tolist(), self._sizes.size]
        return [(begin, end) for begin, end in pairwise(cuts) if begin < end]


def _cuts(ks: Cutoffs) -> IntArray:
    cuts: NDArray[np.int64] = np.array([_NO_CUT if k is None else k for k in ks], dtype=np.int64)
    return cuts
