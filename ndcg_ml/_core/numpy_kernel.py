"""The NumPy kernel: from scores and gains to the expected gain at each rank, DCG and ideal DCG.

The expected discount of a document is the mean of D over the ranks of its tie group. A tie group's DCG is therefore
the same as if each of its ranks had the group's mean gain. The kernel computes this second form, because one array of
expected gains serves all cut-offs and the local ideal.

All work is on padded blocks. Padded slots hold score -inf and gain 0; no document keeps a score of -inf. Scores are not
NaN: see ``scores``. ``dcg`` cuts off at k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.checks import EXACT_INTEGERS, TIES_BY_ID, without_doc_ids
from ndcg_ml._core.gains_and_discounts import Coded, Gains, Graded, all_integers, full, take_gains, top_gain
from ndcg_ml._core.layout import Block, FloatArray, Groups, IntArray, as_float32, ranges, starts_of
from ndcg_ml.flavor import Flavor

Scores = NDArray[np.floating[Any]]
Cutoffs: TypeAlias = "Sequence[int | None]"
Filled: TypeAlias = "tuple[Block, Gains]"
"""A block with the gains in its slots."""

# Selecting the best slots is faster than sorting when at most one slot in this many is needed.
_SELECT_BELOW = 3

# In wide lists, the maxima of interleaved lanes give a lower bound of the score at the cut-off. With fewer lanes per
# rank the bound is lower, and more slots pass it.
_LANES_PER_RANK = 12
# Lists are searched by lanes if they have this many slots per lane, and if at most one slot in this many passes.
_SLOTS_PER_LANE, _PASSES_ONE_IN = 4, 4

# Fewer rows are summed one by one, because NumPy may add the terms of very few in another order.
_FEW = 32


# -- from blocks to DCG ------------------------------------------------------------------------------------------------


def fill_blocks(groups: Groups, gains: Gains) -> list[Filled]:
    """Return the blocks of a layout with the gains in their slots; padding has gain 0."""
    return [(block, _gather_gains(block, gains, 0.0)) for block in groups.blocks()]


def _gather_gains(block: Block, gains: Gains, padding: float) -> Gains:
    if isinstance(gains, Coded):
        return Coded(block.gather(gains.codes, gains.padding), gains.table)
    return block.gather(gains, padding)


def add_scores(blocks: Sequence[Filled], scores: Scores) -> Iterator[tuple[Block, Gains, Scores]]:
    """Yield each block with its gains and its scores. Padded slots score less than any document."""
    if scores.size and np.fmin.reduce(scores) == -np.inf:  # excluded rows may be NaN
        lowest = np.finfo(scores.dtype).min
        if (scores == lowest).any():  # it cannot replace -inf too, so ranks replace all scores
            scores = np.unique(scores, return_inverse=True)[1].astype(np.float64)
        else:
            scores = np.maximum(scores, lowest)
    for block, gains in blocks:
        yield block, gains, block.gather(scores, -np.inf)


def depth(ks: Cutoffs, width: int) -> int:
    """Return the number of ranks that the cut-offs reach in a list of this width."""
    return max(width if k is None else min(k, width) for k in ks)


def dcg(at_rank: FloatArray, discounts: FloatArray, ks: Sequence[int | None]) -> FloatArray:
    """Return DCG at each cut-off, shape (n_rows, n_cutoffs), from the gains at ranks 1, 2, ...

    The terms are added from the first rank on, as in the compiled kernel, so that the two are bitwise identical.
    """
    width = at_rank.shape[1]
    depths = [width if k is None else min(k, width) for k in ks]
    if len(at_rank) < _FEW:
        sums: FloatArray = np.cumsum(at_rank * discounts[:width], axis=1)
        return sums[:, [cut - 1 for cut in depths]]
    # Rank by rank for all queries at once: the same additions, several times as fast.
    deepest = max(depths)
    terms = np.multiply(at_rank.T[:deepest], discounts[:deepest, None], order="C")
    out = np.empty((len(at_rank), len(ks)))
    total, done = np.zeros(len(at_rank)), 0
    for cut in sorted(set(depths)):
        terms[done] += total
        total, done = np.add.reduce(terms[done:cut], axis=0), cut
        out[:, [column for column, own in enumerate(depths) if own == cut]] = total[:, None]
    return out


# -- order and ties ----------------------------------------------------------------------------------------------------


def order_ties(groups: Groups, flavor: Flavor, gains: Gains, doc_id: IntArray | None) -> Groups:
    """Arrange the rows of a layout so that tied rows rank in their order, unless ties are averaged."""
    if flavor.ties == "last":
        return groups.reverse_rows()
    if flavor.ties == "best":
        return groups.sort_rows(-full(gains))
    if flavor.ties == "worst":
        return groups.sort_rows(full(gains))
    if flavor.ties in TIES_BY_ID:
        if doc_id is None:
            raise ValueError(without_doc_ids(flavor))
        return groups.sort_rows(-doc_id if flavor.ties == "docid" else doc_id)
    return groups


def expected_gains(scores: Scores, gains: Gains, depth: int, average: bool) -> FloatArray:
    """Return the expected gain at ranks 1..depth of each row.

    Tied documents are equally likely in every order, so each of their ranks has the mean of their gains. The code below
    is fast; this is the rule for one row without padding::

        order = np.argsort(-scores, kind="stable")
        at_rank = gains[order]
        if average:
            for score in np.unique(scores):
                tied = scores[order] == score
                at_rank[tied] = at_rank[tied].mean()
        return at_rank[:depth]

    Parameters
    ----------
    scores : ndarray, shape (n_rows, width)
        Padded slots score -inf.
    gains : ndarray or Coded, of that shape
    depth : int
        At most the width.
    average : bool
        Whether tied slots share their mean gain; otherwise they keep their order.

    Returns
    -------
    ndarray of float64, shape (n_rows, depth)
    """
    if depth * _SELECT_BELOW < scores.shape[1]:
        scores, gains = _select_top(scores, gains, depth)
    # Scores are negated, because NumPy sorts in ascending order only; -0.0 equals 0.0.
    order, ordered = _stable_order(-scores)
    # Ranks beyond the depth count only for tie groups that cross it.
    if depth < ordered.shape[1]:
        stop, last = depth, ordered[:, depth - 1]
        rows = np.flatnonzero((ordered[:, depth] == last) & (last < np.inf)) if average else ()
        if len(rows):
            stop += int(np.count_nonzero(ordered[rows, depth:] == last[rows, None], axis=1).max())
        order, ordered = order[:, :stop], ordered[:, :stop]
    at_rank = take_gains(gains, order)
    if average:
        _average_ties(ordered, at_rank)
    return at_rank[:, :depth]


def _select_top(scores: Scores, gains: Gains, depth: int) -> tuple[Scores, Gains]:
    """Select the slots at or above a score that `depth` slots of each row reach; all slots if this saves little.

    Selected slots keep their order, and tie groups are selected whole, so that ranks 1..depth do not change. In a
    catalogue this takes a twentieth of the time of sorting.
    """
    n_rows, width = scores.shape
    lanes = 1 << (depth * _LANES_PER_RANK - 1).bit_length()
    turns = width // lanes
    if turns < _SLOTS_PER_LANE:
        return scores, gains
    # The best slots of `depth` lanes score at least the bound, so the score at the cut-off does too.
    best = scores[:, : turns * lanes].reshape(n_rows, turns, lanes).max(axis=1)
    rest = width - turns * lanes
    np.maximum(best[:, :rest], scores[:, width - rest :], out=best[:, :rest])
    best.partition(lanes - depth, axis=1)
    slots = np.flatnonzero(scores >= best[:, lanes - depth, None])
    row = slots // width
    lengths = np.bincount(row, minlength=n_rows)
    longest = int(lengths.max())
    # If many documents are tied at the bound, all pass it, and the short rows save nothing.
    if longest * _PASSES_ONE_IN > width:
        return scores, gains
    # Documents that passed move to the front of their row; the slots after them are padding.
    at = np.arange(slots.size) + (row * longest - starts_of(lengths)[row])
    near, near_gains = np.full((n_rows, longest), -np.inf, dtype=scores.dtype), np.zeros((n_rows, longest))
    near.ravel()[at] = scores.ravel().take(slots)
    near_gains.ravel()[at] = take_gains(gains, slots)
    return near, near_gains


def _stable_order(keys: Scores) -> tuple[NDArray[np.intp], Scores]:
    """Return flat slots in ascending order of the keys, equal keys by slot; and the keys in that order.

    Each slot is sorted as one integer: the bits of its key in float32, followed by the number of the slot. This is
    stable and takes half the time of argsort. Rows in which rounding to float32 changed the order are sorted again.
    """
    width = keys.shape[1]
    # The key is the upper half of an integer and the slot the lower, so that no two are equal.
    bits = (as_float32(keys) + np.float32(0)).view(np.int32)  # adding 0 turns -0.0 into 0.0
    bits ^= (bits >> 31) & 0x7FFFFFFF  # now the order of the integers is that of the floats
    packed = bits.astype(np.int64)
    packed <<= 32
    packed |= np.arange(width)
    packed.sort(axis=1)
    # Keep the slots alone, numbered over all rows.
    packed &= 0xFFFFFFFF
    first = np.arange(0, keys.size, width)[:, None]
    packed += first
    order = packed.astype(np.intp, copy=False)  # an index has 32 bits in WebAssembly
    ordered = keys.ravel().take(order)
    wrong = ordered[:, 1:] < ordered[:, :-1]
    if wrong.any():
        rows = np.flatnonzero(wrong.any(axis=1))
        order[rows] = np.argsort(keys[rows], axis=1, kind="stable") + first[rows]
        ordered[rows] = keys.ravel().take(order[rows])
    return order, ordered


def _tied(ordered: Scores) -> NDArray[np.bool_]:
    """Return whether each rank is tied with the next one. Keys ascend, and padding (+inf) is not tied."""
    tied: NDArray[np.bool_] = ordered[:, 1:] == ordered[:, :-1]
    tied &= ordered[:, 1:] < np.inf
    return tied


def _tie_groups(ordered: Scores) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and length of each tie group, as flat positions over all rows."""
    new = np.ones(ordered.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.flatnonzero(new)
    return starts, np.diff(np.append(starts, ordered.size))


def _average_ties(ordered: Scores, at_rank: FloatArray) -> None:
    """Replace gains of tie groups by their mean, added in order. The mean of equal values is that value, unrounded."""
    if not _tied(ordered).any():
        return
    starts, lengths = _tie_groups(ordered)
    shared = (lengths > 1) & (ordered.ravel()[starts] < np.inf)
    starts, lengths = starts[shared], lengths[shared]
    slots, first = ranges(starts, lengths), starts_of(lengths)
    values = at_rank.ravel()[slots]
    means = np.bincount(np.repeat(np.arange(starts.size), lengths), weights=values) / lengths
    # Sums of integers are exact if none can exceed this limit. Other sums are rounded, and so may be their means.
    largest = lengths.max() * max(values.max(), -values.min())
    if largest > EXACT_INTEGERS or not all_integers(values):
        means = np.clip(means, np.minimum.reduceat(values, first), np.maximum.reduceat(values, first))
    at_rank.ravel()[slots] = np.repeat(means, lengths)


def tied_documents(blocks: Sequence[Filled], scores: Scores, n_queries: int) -> IntArray:
    """Return the number of documents of each query that share their score with another one."""
    counts = np.zeros(n_queries, dtype=np.int64)
    for block, _, ranked in add_scores(blocks, scores):
        tied = _tied(np.sort(-ranked, axis=1))
        shares = np.zeros(ranked.shape, dtype=bool)
        shares[:, 1:] = tied
        shares[:, :-1] |= tied
        counts[block.queries] = np.count_nonzero(shares, axis=1)
    return counts


# -- the five ideals ---------------------------------------------------------------------------------------------------


def ideal(
    flavor: Flavor, ks: Cutoffs, graded: Graded, table: FloatArray, ranked: Callable[[], list[Filled]] | None = None
) -> FloatArray | None:
    """Return the ideal DCG of each query at each cut-off; None if it depends on the ranking: see ``ideal_of_ranking``.

    `table` holds the discounts for the ranks of the longest query and, for ``max``, of the largest cut-off. `ranked`
    returns the blocks of the ranked documents, which are not filled again if the ideal has the same documents.
    """
    # Two ideals need no sorting: the top grade at every rank, and what depends on the ranking.
    depths = ideal_cutoffs(flavor, ks)
    if flavor.ideal == "max":
        return _max_ideal(flavor, depths, graded, table)
    if has_ideal_of_ranking(flavor):
        return None
    source = graded.ranked if flavor.ideal == "recall" else graded.judged
    out = np.zeros((source.n_queries, len(ks)))
    # Padding has gain 0 in the blocks of the ranking, which is not the lowest if gains are negative.
    gains, given = graded.row_gains, flavor.ideal == "given"
    if ranked and source is graded.ranked and not given and (isinstance(gains, Coded) or gains.min(initial=0.0) >= 0):
        filled: Iterable[Filled] = ranked()
    else:
        filled = ((block, _gather_gains(block, gains, 0.0 if given else -np.inf)) for block in source.blocks())
    # Put the largest gains of each block, as many as the cut-offs reach, at the first ranks.
    for block, own in filled:
        deepest = depth(depths, block.shape[1])
        if given:
            best = full(own)[:, :deepest]
        else:
            best = own.largest(deepest) if isinstance(own, Coded) else _best_first(own, deepest)
        # A query cannot fill more ranks than it has retrieved documents.
        if flavor.ideal_depth == "retrieved":
            best = np.where(np.arange(deepest) < graded.ranked.sizes[block.queries, None], best, 0.0)
        out[block.queries] = dcg(best, table, depths)
    return out


def ideal_cutoffs(flavor: Flavor, ks: Cutoffs) -> Cutoffs:
    """Return the cut-offs of the ideal: those of the ranking, or none under ``ideal_depth="all"``."""
    return (None,) * len(ks) if flavor.ideal_depth == "all" else ks


def _max_ideal(flavor: Flavor, depths: Cutoffs, graded: Graded, table: FloatArray) -> FloatArray:
    """Return the DCG of the top grade at every rank; 0 for a query without documents."""
    to_rank = np.append(0.0, np.cumsum(table))
    n_ranked = graded.ranked.sizes
    ranks = [n_ranked if k is None else np.full(n_ranked.size, k) for k in depths]
    if flavor.ideal_depth == "retrieved":
        ranks = [np.minimum(depth, n_ranked) for depth in ranks]
    out: FloatArray = to_rank[np.stack(ranks, axis=1)] * top_gain(flavor)
    out[graded.documents.sizes == 0] = 0.0
    return out


def has_ideal_of_ranking(flavor: Flavor) -> bool:
    """Return whether the ideal depends on the ranking. ``local`` does, and ``recall`` with a depth."""
    return flavor.ideal == "local" or flavor.recall_depth is not None


def ideal_of_ranking(
    flavor: Flavor,
    ks: Cutoffs,
    table: FloatArray,
    scores: Scores,
    gains: Gains,
    at_rank: FloatArray,
    lengths: IntArray,
) -> FloatArray:
    """Return the ideals that re-sort the first ranks: ``local``, and ``recall`` with a depth."""
    width = scores.shape[1]
    average = flavor.ties == "average"
    depths = ideal_cutoffs(flavor, ks)
    if flavor.ideal == "local":
        out = np.empty((lengths.size, len(ks)))
        deepest = depth(depths, width)
        if deepest > at_rank.shape[1]:
            at_rank = expected_gains(scores, gains, deepest, average)
        for column, k in enumerate(depths):
            cut = _mark_absent(at_rank[:, : depth((k,), width)], lengths)
            out[:, column] = dcg(_best_first(cut, cut.shape[1]), table, (None,))[:, 0]
        return out
    first = _gains_within(scores, gains, min(flavor.recall_depth or width, width), average)
    best = _best_first(_mark_absent(first, lengths), first.shape[1])
    return dcg(best, table, depths)


def _mark_absent(at_rank: FloatArray, lengths: IntArray) -> FloatArray:
    """Return the gains, with -inf at the ranks beyond a query's last document."""
    return np.where(np.arange(at_rank.shape[1]) < lengths[:, None], at_rank, -np.inf)


def _best_first(gains: FloatArray, depth: int) -> FloatArray:
    """Return the `depth` largest gains of each row, largest first; absent ones (-inf) become 0."""
    top: Scores = gains
    coarse = as_float32(gains)
    if (coarse == gains).all():  # graded labels are exact in float32, which sorts twice as fast
        top = coarse
    if depth < top.shape[1]:
        top = np.partition(top, top.shape[1] - depth, axis=1)[:, top.shape[1] - depth :]
    top = np.sort(top, axis=1)[:, ::-1]
    return np.where(top == -np.inf, 0.0, top).astype(np.float64)


def _gains_within(scores: Scores, gains: Gains, depth: int, average: bool) -> FloatArray:
    """Return the gains of the documents in the first `depth` ranks, in any order.

    A tie group that ends within the depth keeps the gains of its documents, because all of them are included. One that
    crosses the depth has its mean gain, as in ``expected_gains``.
    """
    expected = expected_gains(scores, gains, depth, average)
    if not average:
        return expected
    order, ordered = _stable_order(-scores)
    starts, lengths = _tie_groups(ordered)
    stops = np.repeat(starts % scores.shape[1] + lengths, lengths).reshape(scores.shape)[:, :depth]
    own = take_gains(gains, order[:, :depth])
    return np.where(stops <= depth, own, expected)
