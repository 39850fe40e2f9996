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

from ndcg_ml._core.labels_gains_discounts import Coded, Gains, Graded, full, take_gains, top_gain
from ndcg_ml._core.layout import Block, FloatArray, Groups, IntArray, starts_of
from ndcg_ml._plain.checks import EXACT_INTEGERS, TIES_BY_ID, without_doc_ids
from ndcg_ml.flavor import Flavor

Scores = NDArray[np.floating[Any]]
Cutoffs: TypeAlias = "Sequence[int | None]"
Filled: TypeAlias = "tuple[Block, Gains]"
"""A block with the gains in its slots."""

# Selecting the best slots is faster than sorting in lists with more than this many slots, and this many for each rank.
_SELECT_FROM, _SELECT_BELOW = 50, 5

# The maxima of interleaved lanes give a lower bound of the score at the cut-off. With fewer lanes per rank the bound is
# lower, and more slots pass it. Lists with fewer slots per lane have a lane for each slot.
_LANES_PER_RANK, _SLOTS_PER_LANE = 12, 2
# The slots that pass are selected if they are at most one in this many.
_PASSES_ONE_IN = 4

# The key of padding, the greatest of all.
_PADDING = int(np.float64(np.inf).view(np.int64))

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


def order_ties(groups: Groups, flavor: Flavor, gains: Gains, doc_order: Callable[[], IntArray] | None) -> Groups:
    """Arrange the rows of a layout so that tied rows rank in their order, unless ties are averaged."""
    if flavor.ties == "last":
        return groups.sort_rows(-np.arange(groups.n_rows))
    if flavor.ties == "best":
        return groups.sort_rows(-full(gains))
    if flavor.ties == "worst":
        return groups.sort_rows(full(gains))
    if flavor.ties in TIES_BY_ID:
        if doc_order is None:
            raise ValueError(without_doc_ids(flavor))
        doc_id = doc_order()
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
    if depth * _SELECT_BELOW + _SELECT_FROM < scores.shape[1]:
        scores, gains = _select_top(scores, gains, depth)
    order, ordered = _stable_order(scores)
    # Ranks beyond the depth count only for tie groups that cross it.
    if depth < ordered.shape[1]:
        stop, last = depth, ordered[:, depth - 1]
        rows = np.flatnonzero((ordered[:, depth] == last) & (last < _PADDING)) if average else ()
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
    if width < lanes * _SLOTS_PER_LANE:
        lanes = width
    turns = width // lanes
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
    near = np.full((n_rows, longest), -np.inf, dtype=scores.dtype)
    near_gains = np.zeros((n_rows, longest))
    near.ravel()[at] = scores.ravel().take(slots)
    near_gains.ravel()[at] = take_gains(gains, slots)
    return near, near_gains


def _keys(scores: Scores) -> IntArray:
    """Return integers that ascend as the scores descend. Equal scores have equal keys."""
    bits: IntArray = np.subtract(0.0, scores, dtype=np.float64).view(np.int64)  # this makes -0.0 equal 0.0
    bits ^= (bits >> 63) & 0x7FFFFFFFFFFFFFFF  # now the order of the integers is that of the floats
    return bits


def _stable_order(scores: Scores) -> tuple[NDArray[np.intp], IntArray]:
    """Return flat slots in descending order of the scores, equal scores by slot; and a key of each, as in ``_keys``.

    Each slot is sorted as one integer: its key, with the number of the slot in place of the lowest bits. This is stable
    and takes a fraction of the time of argsort. Rows in which the lowest bits matter are sorted again.
    """
    width = scores.shape[1]
    keys = _keys(scores)
    lowest = (1 << (width - 1).bit_length()) - 1
    packed = keys & ~lowest
    packed |= np.arange(width)
    packed.sort(axis=1)
    # Keep the slots alone, numbered over all rows.
    packed &= lowest
    packed += np.arange(0, scores.size, width)[:, None]
    order = packed.astype(np.intp, copy=False)  # an index has 32 bits in WebAssembly
    ordered = keys.ravel().take(order)
    wrong = _compare(np.less, ordered)
    if wrong.any():
        rows = np.flatnonzero(wrong.any(axis=1))
        nearly = np.argsort(ordered[rows], axis=1, kind="stable")  # fast, because they are nearly sorted
        order[rows] = np.take_along_axis(order[rows], nearly, axis=1)
        ordered[rows] = keys.ravel().take(order[rows])
    return order, ordered


def _compare(comparison: np.ufunc, ordered: IntArray) -> NDArray[np.bool_]:
    """Return whether each rank compares so with the one before."""
    out = np.zeros(ordered.shape, dtype=bool)
    flat = ordered.ravel()  # one comparison of all rows is faster than one of each
    comparison(flat[1:], flat[:-1], out=out.ravel()[1:])
    out[:, 0] = False
    return out


def _tied(ordered: IntArray) -> NDArray[np.bool_]:
    """Return whether each rank is tied with the one before. Padding is not tied."""
    tied = _compare(np.equal, ordered)
    tied &= ordered < _PADDING
    return tied


def _or_next(tied: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether each rank is tied with the one before or the next one."""
    out = tied.copy()
    out[:, :-1] |= tied[:, 1:]
    return out


def _average_ties(ordered: IntArray, at_rank: FloatArray) -> None:
    """Replace gains of tie groups by their mean, added in order. The mean of equal values is that value, unrounded."""
    tied = _tied(ordered)
    if not tied.any():
        return
    slots = np.flatnonzero(_or_next(tied))
    first = np.flatnonzero(~tied.ravel()[slots])
    lengths = np.diff(np.append(first, slots.size))
    group = np.repeat(np.arange(first.size), lengths)
    values = at_rank.ravel()[slots]
    means = np.bincount(group, weights=values) / lengths
    # Sums of integers are exact if none can exceed this limit. Other sums are rounded, and so may be their means.
    largest = lengths.max() * max(values.max(), -values.min())
    if largest > EXACT_INTEGERS or (values != np.rint(values)).any():
        means = np.clip(means, np.minimum.reduceat(values, first), np.maximum.reduceat(values, first))
    at_rank.ravel()[slots] = means[group]


def tied_documents(blocks: Sequence[Filled], scores: Scores, n_queries: int) -> IntArray:
    """Return the number of documents of each query that share their score with another one."""
    counts = np.zeros(n_queries, dtype=np.int64)
    for block, _, ranked in add_scores(blocks, scores):
        counts[block.queries] = np.count_nonzero(_or_next(_tied(np.sort(_keys(ranked), axis=1))), axis=1)
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
    top, width = gains, gains.shape[1]
    if depth < width:
        top = np.partition(top, width - depth, axis=1)[:, width - depth :]
    top = np.sort(top, axis=1)[:, ::-1]
    return np.where(top == -np.inf, 0.0, top)


def _gains_within(scores: Scores, gains: Gains, depth: int, average: bool) -> FloatArray:
    """Return the gains of the documents in the first `depth` ranks, in any order.

    A tie group that ends within the depth keeps the gains of its documents, because all of them are included. One that
    crosses the depth has its mean gain, as in ``expected_gains``.
    """
    expected = expected_gains(scores, gains, depth, average)
    if not average:
        return expected
    order, ordered = _stable_order(scores)
    last = ordered[:, depth - 1, None]
    averaged = (ordered[:, :depth] == last) & (ordered[:, depth : depth + 1] == last).any(axis=1, keepdims=True)
    return np.where(averaged, expected, take_gains(gains, order[:, :depth]))
