"""The kernel: padded blocks of scores and gains -> the expected gain at each rank -> DCG.

A document's expected discount is the mean of D over the ranks its tied run covers; summed over the documents of the
run that is the run's mean gain at each of those ranks. The kernel works in this second form: one array of expected
gains serves every cut-off, and the local ideal.

Keys are negated scores, so that ascending order is best first and +inf is last. Padded slots hold key +inf and gain 0;
``ranking_keys`` makes sure that no document does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_first", "dcg", "expected_gains", "ranking_keys", "tied_documents", "whole_runs"]

FloatArray = NDArray[np.float64]
Keys = NDArray[np.floating[Any]]

# Selecting the top of a row beats sorting the row when at most one slot in this many is needed.
_SELECT_BELOW = 3


def ranking_keys(scores: Keys, padding: NDArray[np.int64] | None) -> Keys:
    """Keys that sort best first, with the padded slots, and only those, at +inf. Overwrites `scores`."""
    keys = np.negative(scores, out=scores)
    flat = keys.reshape(-1)
    n_padded = 0
    if padding is not None:
        flat[padding] = np.inf
        n_padded = padding.size
    if np.count_nonzero(flat == np.inf) != n_padded:  # some document scores -inf: make room above it
        ranks = np.unique(flat, return_inverse=True)[1].reshape(keys.shape).astype(np.float64)
        if padding is not None:
            ranks.reshape(-1)[padding] = np.inf
        return ranks
    return keys


def expected_gains(keys: Keys, gains: FloatArray, depth: int, average: bool) -> FloatArray:
    """The expected gain at ranks 1..depth of each row.

    Parameters
    ----------
    keys, gains : ndarray, shape (n_rows, width)
        From ``ranking_keys``, and the gains of the same slots.
    depth : int
        At most the width.
    average : bool
        Whether tied slots share their mean gain; otherwise they keep their order.

    Returns
    -------
    ndarray of float64, shape (n_rows, depth)
    """
    if depth * _SELECT_BELOW < keys.shape[1]:
        keys, gains = _select(keys, gains, depth, average)
    return _sort(keys, gains, average)[:, :depth]


def _sort(keys: Keys, gains: FloatArray, average: bool) -> FloatArray:
    order = np.argsort(keys, axis=1)
    ordered = np.take_along_axis(keys, order, axis=1)
    at_rank = np.take_along_axis(gains, order, axis=1)
    tied = np.flatnonzero(_tied(ordered).any(axis=1))
    if not tied.size:
        return at_rank
    if average:
        at_rank[tied] = _run_means(ordered[tied], at_rank[tied])
    else:
        order = np.argsort(keys[tied], axis=1, kind="stable")
        at_rank[tied] = np.take_along_axis(gains[tied], order, axis=1)
    return at_rank


def _select(keys: Keys, gains: FloatArray, depth: int, average: bool) -> tuple[Keys, FloatArray]:
    """The first `depth` slots of each row in the order of their keys, in the order of their slots.

    Where a tied run crosses the cut, its places are taken by its first slots; if ties are averaged they hold the
    mean gain of the whole run.
    """
    cut = np.partition(keys, depth - 1, axis=1)[:, depth - 1 : depth]
    taken = keys <= cut
    crossing = np.flatnonzero((np.count_nonzero(taken, axis=1) > depth) & (cut[:, 0] < np.inf))
    padded = np.flatnonzero(cut[:, 0] == np.inf)
    means = None
    for rows in (crossing, padded):
        if rows.size:
            run = keys[rows] == cut[rows]
            better = taken[rows] ^ run
            room = depth - np.count_nonzero(better, axis=1)
            taken[rows] = better | (run & (np.cumsum(run, axis=1) <= room[:, None]))
            if average and rows is crossing:
                means = np.einsum("ij,ij->i", gains[rows], run) / np.count_nonzero(run, axis=1)
    slots = np.flatnonzero(taken)
    top = keys.reshape(-1)[slots].reshape(-1, depth)
    top_gains = gains.reshape(-1)[slots].reshape(-1, depth)
    if means is not None:
        top_gains[crossing] = np.where(top[crossing] == cut[crossing], means[:, None], top_gains[crossing])
    return top, top_gains


def _tied(ordered: Keys) -> NDArray[np.bool_]:
    """Whether each rank's slot is tied with the next one; padded slots are not."""
    tied: NDArray[np.bool_] = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] < np.inf)
    return tied


def _runs(ordered: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and length of each tied run, as flat positions over all rows."""
    new = np.ones(ordered.shape, dtype=bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    starts = np.flatnonzero(new)
    return starts, np.diff(np.append(starts, ordered.size))


def _run_means(ordered: Keys, at_rank: FloatArray) -> FloatArray:
    starts, lengths = _runs(ordered)
    means = np.add.reduceat(at_rank.reshape(-1), starts) / lengths
    return np.repeat(means, lengths).reshape(ordered.shape)


def whole_runs(keys: Keys, gains: FloatArray, depth: int, average: bool) -> FloatArray:
    """The gains of the documents in the first `depth` ranks, in no particular order.

    As ``expected_gains``, but a tied run that lies wholly within the depth keeps its documents' own gains: which
    documents are in is certain there, only their order is not.
    """
    expected = expected_gains(keys, gains, depth, average)
    if not average:
        return expected
    order = np.argsort(keys, axis=1)
    ordered = np.take_along_axis(keys, order, axis=1)
    starts, lengths = _runs(ordered)
    width = keys.shape[1]
    stops = np.repeat(starts % width + lengths, lengths).reshape(keys.shape)[:, :depth]
    own = np.take_along_axis(gains, order, axis=1)[:, :depth]
    return np.where(stops <= depth, own, expected)


def best_first(gains: FloatArray, depth: int) -> FloatArray:
    """The `depth` largest gains of each row, largest first; slots at -inf count as absent and become 0."""
    worst_first = -gains
    if depth < gains.shape[1]:
        worst_first = np.partition(worst_first, depth - 1, axis=1)[:, :depth]
    top = -np.sort(worst_first, axis=1)
    top[top == -np.inf] = 0.0
    return top


def dcg(at_rank: FloatArray, discounts: FloatArray, ks: Sequence[int | None]) -> FloatArray:
    """DCG at each cut-off, shape (n_rows, n_cutoffs), from the gains at ranks 1, 2, ..."""
    out = np.empty((at_rank.shape[0], len(ks)))
    for column, k in enumerate(ks):
        depth = min(at_rank.shape[1], discounts.size if k is None else k)
        out[:, column] = np.einsum("ij,j->i", at_rank[:, :depth], discounts[:depth])
    return out


def tied_documents(keys: Keys) -> NDArray[np.int64]:
    """How many documents of each row share their score with another document of the row."""
    tied = _tied(np.sort(keys, axis=1))
    shares = np.zeros(keys.shape, dtype=bool)
    shares[:, 1:] = tied
    shares[:, :-1] |= tied
    counts: NDArray[np.int64] = np.count_nonzero(shares, axis=1)
    return counts
