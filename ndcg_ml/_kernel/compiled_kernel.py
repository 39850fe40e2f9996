"""The kernel in machine code: bitwise identical to the NumPy kernel, query after query, without Python's lock.

This file needs Numba, and importing it compiles it (or reads what was compiled before): see ``choice``.

A query's scores are read twice. The first pass keeps the largest score of each of a few interleaved lanes; the d-th
largest of these is at most the d-th score of the query. The second pass keeps the documents above that bound, which
are few more than d, and only these are sorted. Scores at the bound itself, one tied run, are never sorted.
Short lists of about one length are ranked side by side, a list in each lane of the vector registers: the place of a
document is the number of documents before it, which takes no branch.
Every sum is added in the order of the ranks or rows, whatever the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit, types, uint8
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Codes = NDArray[np.uint8]

# Sorted by insertion up to the first of these lengths, by counting up to the second, by buckets beyond.
_INSERT, _COUNT = 6, 32
# Number of lanes: a power of two, with a minimum in all and per rank needed. With fewer the bound is too low, and too
# many documents pass it.
_FEWEST_LANES, _LANES_PER_RANK = 16, 1.6
# Lists are sorted whole unless they have this many documents per lane, and for the square of the lanes.
_PER_LANE, _PER_PAIR_OF_LANES = 2, 1 / 64
# In lists from this length on, stretches without a document above the bound are stepped over.
_LONG, _STRETCH = 1024, 64
# Lists up to the first of these lengths are ranked in parallel lanes: at most the second number at once, from one of
# the third number of ranges of lengths.
_SHORT, _ABREAST, _RANGES = 32, 64, 8
# Moves per document after which sorting by buckets gives up, because the scores are too uneven for it.
_MOVES = 8


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_PART = njit(**_OPTIONS)
"""Compiled as a part of ``rank``."""

_READ_ONLY, _READ_ONLY_INTS, _READ_ONLY_CODES = (
    types.Array(dtype, 1, "C", readonly=True) for dtype in (float64, int64, uint8)
)
_SIGNATURE = boolean(
    *(_READ_ONLY, _READ_ONLY_INTS, _READ_ONLY_CODES, _READ_ONLY, _READ_ONLY_INTS, _READ_ONLY_INTS, _READ_ONLY),
    *(_READ_ONLY_INTS, boolean, boolean, _READ_ONLY_INTS, int64, float64[::1], float64[::1]),
)


def _compiled(function: Callable[..., bool]) -> Any:
    """Compiled now, and kept in a file if there is a folder to write to."""
    try:
        return njit(_SIGNATURE, cache=True, **_OPTIONS)(function)
    except Exception:  # no such folder, or an unreadable file; other errors are raised again
        return njit(_SIGNATURE, **_OPTIONS)(function)


@_PART
def _nth_largest(values: FloatArray, n: int, nth: int) -> float:
    least = np.inf
    for i in range(n):
        x = values[i]
        above = 0
        for j in range(n):
            above += values[j] > x
        if above < nth and x < least:
            least = x
    return least


@_PART
def _merge_sort(scores: FloatArray, gains: FloatArray, n: int, room: FloatArray, gains_room: FloatArray) -> None:
    """Largest first, equal scores in their order, in place."""
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            left, right = low, middle
            for to in range(low, high):
                if left < middle and (right >= high or scores[left] >= scores[right]):
                    room[to], gains_room[to] = scores[left], gains[left]
                    left += 1
                else:
                    room[to], gains_room[to] = scores[right], gains[right]
                    right += 1
        for to in range(n):
            scores[to], gains[to] = room[to], gains_room[to]
        width *= 2


@_PART
def _insert(score: float, gain: float, n: int, best: FloatArray, best_gains: FloatArray) -> int:
    """Into the first `n` of `best`, behind those of the same score; how many these are then."""
    to = n
    while to > 0 and best[to - 1] < score:
        best[to], best_gains[to] = best[to - 1], best_gains[to - 1]
        to -= 1
    best[to], best_gains[to] = score, gain
    return n + 1


@_PART
def _sort(
    scores: FloatArray,
    gains: FloatArray,
    n: int,
    bucket: IntArray,
    ends: IntArray,
    best: FloatArray,
    best_gains: FloatArray,
) -> None:
    """Into `best`, largest first, equal scores in their order."""
    # A few scores: insertion needs no preparation.
    if n <= _INSERT:
        for i in range(n):
            _insert(scores[i], gains[i], i, best, best_gains)
        return
    # Some more: the place of each is the number of documents before it, which needs no branch.
    if n <= _COUNT:
        for i in range(n):
            x = scores[i]
            before = 0
            for j in range(n):
                before += (scores[j] > x) | ((scores[j] == x) & (j < i))
            best[before], best_gains[before] = x, gains[i]
        return
    # Many: with two buckets per document, evenly spaced scores have a bucket nearly to themselves.
    low, high = scores[0], scores[0]
    for i in range(n):
        x = scores[i]
        low = min(low, x)
        high = max(high, x)
    n_buckets = 2 * n
    scale = n_buckets / (high - low)  # 0 or nan where a score is infinite, inf where all are equal
    if 0 < scale < math.inf:
        for i in range(n_buckets + 2):
            ends[i] = 0
        for i in range(n):
            # Subtraction, product and rounding keep the order, so a larger score is never in a later bucket.
            bucket[i] = min(int((high - scores[i]) * scale), n_buckets)
            ends[bucket[i] + 1] += 1
        # The sizes of the buckets, added up, are where each of them begins; documents go there in their order.
        for i in range(n_buckets):
            ends[i + 1] += ends[i]
        for i in range(n):
            to = ends[bucket[i]]
            ends[bucket[i]] = to + 1
            best[to], best_gains[to] = scores[i], gains[i]
        # Only neighbours of one bucket are still out of order. Uneven scores crowd in a few buckets, where insertion
        # takes time with the square of their number, so the moves are limited.
        moves = _MOVES * n
        for i in range(1, n):
            x = best[i]
            if best[i - 1] < x:
                gain = best_gains[i]
                to = i
                while to > 0 and best[to - 1] < x:
                    best[to], best_gains[to] = best[to - 1], best_gains[to - 1]
                    to -= 1
                best[to], best_gains[to] = x, gain
                moves -= i - to
                if moves < 0:
                    break
    else:
        moves = -1
        for i in range(n):
            best[i], best_gains[i] = scores[i], gains[i]
    # Merging is stable too, and its time does not depend on the scores.
    if moves < 0:
        _merge_sort(best, best_gains, n, scores, gains)


@_PART
def _gain(codes: Codes, gains: FloatArray, row: int) -> float:
    """The gain of a row: looked up by its code if there are codes."""
    gain: float = gains[codes[row]] if codes.size > 0 else gains[row]
    return gain


@_PART
def _candidates(
    scores: FloatArray,
    at: int,
    n: int,
    codes: Codes,
    gains: FloatArray,
    gains_at: int,
    depth: int,
    average: bool,
    backwards: bool,
    lanes: int,
    top: FloatArray,
    kept: FloatArray,
    kept_rows: IntArray,
    kept_gains: FloatArray,
) -> tuple[int, int, float]:
    """The documents above some score, in their order; and, if these are too few, the run of documents of that score.

    Their order is that of the rows, or with `backwards` the opposite one. NaN is above any score. Returns how many are
    above, the size of the tie group, and its mean gain if `average` is set. The gains of its first documents follow
    in `kept_gains`, up to `depth` ranks.
    """
    # A bound that at least `depth` documents reach: the depth-th largest of the maxima of the lanes. Short lists are
    # not worth a pass for it, and all their documents are kept.
    bound = -np.inf
    if depth <= lanes and n >= lanes * _PER_LANE and n >= lanes * lanes * _PER_PAIR_OF_LANES:
        for lane in range(lanes):
            top[lane] = scores[at + lane]
        for first in range(at + lanes, at + n - lanes + 1, lanes):
            for lane in range(lanes):
                x = scores[first + lane]
                top[lane] = x if x > top[lane] else top[lane]
        rest = n % lanes
        for lane in range(rest):
            x = scores[at + n - rest + lane]
            top[lane] = x if x > top[lane] else top[lane]
        bound = _nth_largest(top, lanes, depth)
    above = 0
    if n < _LONG and codes.size == 0:
        # Short lists keep one document in nine or so, so that hardly a cache line of gains is without one: reading all
        # gains in order is faster than fetching the few. Every document is written, and the next one over it unless
        # it stays: no branch, which the processor could not foresee.
        for i in range(n):
            x = scores[at + i]
            kept[above], kept_gains[above] = x, gains[gains_at + i]
            above += not (x <= bound)
        # Tied documents rank in this order.
        if backwards:
            for i in range(above // 2):
                other = above - 1 - i
                kept[i], kept[other] = kept[other], kept[i]
                kept_gains[i], kept_gains[other] = kept_gains[other], kept_gains[i]
    else:
        # In long lists hardly any stretch has a document above the bound, and counting those runs in vector registers.
        done = n - n % _STRETCH if n >= _LONG else 0
        for first in range(0, done, _STRETCH):
            some = 0
            for i in range(first, first + _STRETCH):
                some += not (scores[at + i] <= bound)
            if some:
                for i in range(first, first + _STRETCH):
                    kept_rows[above] = i
                    above += not (scores[at + i] <= bound)
        for i in range(done, n):
            kept_rows[above] = i
            above += not (scores[at + i] <= bound)
        # Gains are read for the documents that were kept, and for no others.
        for i in range(above):
            row = kept_rows[above - 1 - i if backwards else i]
            kept[i] = scores[at + row]
            kept_gains[i] = _gain(codes, gains, gains_at + row)
    # The ranks that are left belong to the run at the bound, which needs no sorting: its first documents, or its mean.
    tied, mean = 0, 0.0
    if above < depth:
        total, least, most = 0.0, np.inf, -np.inf
        for turn in range(n):
            i = n - 1 - turn if backwards else turn
            if scores[at + i] == bound:
                gain = _gain(codes, gains, gains_at + i)
                if above + tied < depth:
                    kept_gains[above + tied] = gain
                elif not average:
                    break
                total += gain
                least, most = min(least, gain), max(most, gain)
                tied += 1
        mean = min(max(total / tied, least), most)
    return above, tied, mean


@_PART
def _expected_gains(
    scores: FloatArray, gains: FloatArray, n: int, depth: int, average: bool, certain: int, out: FloatArray
) -> None:
    """The expected gain at ranks 1..depth, of documents in the order of their ranks.

    With `average`, tied documents share their mean gain, but not those of a run that ends within the first `certain`
    ranks.
    """
    first = 0
    while first < depth:
        gain = gains[first]
        total, least, most = gain, gain, gain
        stop = first + 1
        while average and stop < n and scores[stop] == scores[first]:
            gain = gains[stop]
            total += gain
            least, most = min(least, gain), max(most, gain)
            stop += 1
        if stop == first + 1 or stop <= certain:
            for i in range(first, min(stop, depth)):
                out[i] = gains[i]
        else:
            mean = min(max(total / (stop - first), least), most)
            for i in range(first, min(stop, depth)):
                out[i] = mean
        first = stop


@_PART
def _places(scores: FloatArray, rows: int, lanes: int, before: IntArray, places: IntArray) -> None:
    """Count the scores of a lane before each: larger ones, and equal ones of an earlier row."""
    # One function for all rows, because the compiler makes vector code of these loops in this form, and not of others.
    for row in range(rows):
        x = row * lanes
        for lane in range(lanes):
            before[lane] = 0
        for other in range(rows):
            y = other * lanes
            if other < row:
                for lane in range(lanes):
                    before[lane] += scores[y + lane] >= scores[x + lane]
            elif other > row:
                for lane in range(lanes):
                    before[lane] += scores[y + lane] > scores[x + lane]
        for lane in range(lanes):
            places[x + lane] = before[lane]


@_PART
def _side_by_side(
    queries: IntArray,
    lanes: int,
    scores: FloatArray,
    order: IntArray,
    codes: Codes,
    gains: FloatArray,
    starts: IntArray,
    sizes: IntArray,
    discounts: FloatArray,
    cuts: IntArray,
    average: bool,
    backwards: bool,
    abreast: FloatArray,
    gains_abreast: FloatArray,
    sorted_abreast: FloatArray,
    sums: FloatArray,
    before: IntArray,
    places: IntArray,
    best: FloatArray,
    best_gains: FloatArray,
    out: FloatArray,
    dcg: FloatArray,
) -> bool:
    """DCG at each cut-off of the first `lanes` of these queries, which are short; False where a score is NaN."""
    # A list in each lane. A shorter lane ends with NaN, which is before nothing.
    rows, depth = 0, 0
    for lane in range(lanes):
        rows = max(rows, sizes[queries[lane]])
    for cut in cuts:
        depth = max(depth, min(cut, rows))
    for slot in range(rows * lanes):
        abreast[slot], sorted_abreast[slot], sums[slot] = np.nan, np.nan, 0.0
    for lane in range(lanes):
        query = queries[lane]
        n, start = sizes[query], starts[query]
        for turn in range(n):
            at = start + (n - 1 - turn if backwards else turn)
            x = scores[order[at] if order.size > 0 else at]
            if x != x:
                return False
            abreast[turn * lanes + lane] = x
            gains_abreast[turn * lanes + lane] = _gain(codes, gains, at)
    # Each document goes to its place.
    _places(abreast, rows, lanes, before, places)
    for lane in range(lanes):
        for slot in range(lane, sizes[queries[lane]] * lanes, lanes):
            to = places[slot] * lanes + lane
            sorted_abreast[to], sums[to] = abreast[slot], gains_abreast[slot]
    # Lists in which documents that count are tied get their expected gains one by one.
    if average:
        for lane in range(lanes):
            before[lane] = 0
        for slot in range(lanes, min(depth + 1, rows) * lanes, lanes):
            for lane in range(lanes):
                before[lane] += sorted_abreast[slot + lane] == sorted_abreast[slot - lanes + lane]
        for lane in range(lanes):
            n = sizes[queries[lane]]
            if before[lane] > 0:
                for i in range(n):
                    best[i], best_gains[i] = sorted_abreast[i * lanes + lane], sums[i * lanes + lane]
                _expected_gains(best, best_gains, n, min(depth, n), True, 0, out)
                for i in range(min(depth, n)):
                    sums[i * lanes + lane] = out[i]
    # DCG down to each rank replaces its gain. A sum begins at 0, so that a gain of -0 does not leave its sign.
    for lane in range(lanes):
        sums[lane] = 0.0 + sums[lane] * discounts[0]
    for i in range(1, depth):
        slot, discount = i * lanes, discounts[i]
        for lane in range(lanes):
            sums[slot + lane] = sums[slot - lanes + lane] + sums[slot + lane] * discount
    for lane in range(lanes):
        query = queries[lane]
        for c in range(cuts.size):
            dcg[query * cuts.size + c] = sums[(min(cuts[c], sizes[query]) - 1) * lanes + lane]
    return True


@_PART
def _short_lists(
    short: int,
    scores: FloatArray,
    order: IntArray,
    codes: Codes,
    gains: FloatArray,
    starts: IntArray,
    sizes: IntArray,
    discounts: FloatArray,
    cuts: IntArray,
    average: bool,
    backwards: bool,
    best: FloatArray,
    best_gains: FloatArray,
    out: FloatArray,
    dcg: FloatArray,
) -> bool:
    """DCG of the lists up to this length, each together with others of about its own; False where a score is NaN."""
    # Memory for the largest group that there may be.
    rows, lanes = 0, 0
    for size in sizes:
        if 0 < size <= short:
            rows = max(rows, size)
            lanes = min(lanes + 1, _ABREAST)
    slots = rows * lanes
    abreast, gains_abreast, sorted_abreast, sums = np.empty(slots), np.empty(slots), np.empty(slots), np.empty(slots)
    before, places = np.empty(lanes, np.int64), np.empty(slots, np.int64)
    # Lists wait until there are enough of a range of lengths. Behind the last one come those that still wait.
    waiting, n_waiting = np.empty((_RANGES, lanes), np.int64), np.zeros(_RANGES, np.int64)
    for query in range(sizes.size + _RANGES if lanes > 0 else 0):
        if query < sizes.size:
            if not 0 < sizes[query] <= short:
                continue
            own = (sizes[query] - 1) * _RANGES // _SHORT
            waiting[own, n_waiting[own]] = query
            n_waiting[own] += 1
            full = n_waiting[own] == lanes
        else:
            own = query - sizes.size
            full = n_waiting[own] > 0
        if full:
            if not _side_by_side(
                *(waiting[own], n_waiting[own], scores, order, codes, gains, starts, sizes, discounts, cuts),
                *(average, backwards, abreast, gains_abreast, sorted_abreast, sums, before, places),
                *(best, best_gains, out, dcg),
            ):
                return False
            n_waiting[own] = 0
    return True


@_compiled
def rank(
    scores: FloatArray,
    order: IntArray,
    codes: Codes,
    gains: FloatArray,
    starts: IntArray,
    sizes: IntArray,
    discounts: FloatArray,
    cuts: IntArray,
    average: bool,
    backwards: bool,
    ideal_cuts: IntArray,
    recall_depth: int,
    dcg: FloatArray,
    ideal: FloatArray,
) -> bool:
    """DCG at each cut-off of these queries; False where a score is NaN.

    The arguments are three things, which stay apart because Numba unpacks a tuple of arrays at every call: the lists
    (`scores` to `sizes`), the rule (`discounts` to `recall_depth`), and where the result goes. They are made by
    ``compiled_call.CompiledQueries``.

    Parameters
    ----------
    scores : ndarray of float, shape (n_rows,)
    order : ndarray of int
        The rows, query after query; empty if they are in that order.
    codes : ndarray of uint8
        In that order, the number of each row's gain in `gains`; or empty.
    gains : ndarray of float
        In that order; or if there are codes, the gain of each code.
    starts, sizes : ndarray of int, shape (n_queries,)
        First row, in that order, and number of rows of each query.
    discounts : ndarray of float
        As many as the longest query has ranks.
    cuts : ndarray of int, shape (n_cutoffs,)
        No cut-off is any number beyond the longest query.
    average : bool
        Whether tied documents share their mean gain; otherwise they rank in their order.
    backwards : bool
        Whether tied rows rank in reverse.
    ideal_cuts : ndarray of int, shape (n_cutoffs,) or (0,)
        Cut-offs of the ideal that depends on the ranking; empty if there is none.
    recall_depth : int
        Number of top-ranked documents that this ideal is made of; 0 if it is the best order of the expected gains
        down to each cut-off.
    dcg, ideal : ndarray of float, shape (n_queries * n_cutoffs,)
        Zeros, which are written to.
    """
    # The number of ranks that any query needs, and memory for the longest query, which all queries share.
    longest = 0
    for size in sizes:
        longest = max(longest, size)
    deepest = 0
    for cut in cuts:
        deepest = max(deepest, cut)
    if recall_depth == 0:
        for cut in ideal_cuts:
            deepest = max(deepest, cut)
    needed = min(max(deepest, recall_depth), longest)
    lanes = _FEWEST_LANES
    while lanes < needed * _LANES_PER_RANK:
        lanes *= 2
    line = np.empty(longest if order.size > 0 else 0)
    kept, kept_rows, kept_gains = np.empty(longest + 1), np.empty(longest + 1, np.int64), np.empty(longest + 1)
    best, best_gains, out = np.empty(longest), np.empty(longest), np.empty(longest)
    top, bucket, ends = np.empty(lanes), np.empty(longest, np.int64), np.empty(2 * longest + 2, np.int64)
    # An ideal that depends on the ranking is computed list by list only.
    short = _SHORT if ideal_cuts.size == 0 else 0
    if not _short_lists(
        *(short, scores, order, codes, gains, starts, sizes, discounts, cuts, average, backwards),
        *(best, best_gains, out, dcg),
    ):
        return False
    for query in range(sizes.size):
        n, start = sizes[query], starts[query]
        if n <= short:
            continue
        # The best documents in the order of their ranks, into `best`. A comparison with NaN is false, so that NaN is
        # among them, if there is one.
        above, tied, mean = 0, 0, 0.0
        if n <= _INSERT:
            for turn in range(n):
                at = start + (n - 1 - turn if backwards else turn)
                x = scores[order[at] if order.size > 0 else at]
                if x != x:
                    return False
                above = _insert(x, _gain(codes, gains, at), above, best, best_gains)
        else:
            reach = min(max(deepest, recall_depth), n)
            if order.size > 0:  # gathered once, because they are read twice
                for i in range(n):
                    line[i] = scores[order[start + i]]
                above, tied, mean = _candidates(
                    *(line, 0, n, codes, gains, start, reach, average, backwards),
                    *(lanes, top, kept, kept_rows, kept_gains),
                )
            else:
                above, tied, mean = _candidates(
                    *(scores, start, n, codes, gains, start, reach, average, backwards),
                    *(lanes, top, kept, kept_rows, kept_gains),
                )
            for i in range(above):
                if kept[i] != kept[i]:
                    return False
            _sort(kept, kept_gains, above, bucket, ends, best, best_gains)
        # The expected gain at each rank; behind the sorted documents comes the run at the bound.
        depth = min(deepest, n)
        _expected_gains(best, best_gains, above, min(above, depth), average, 0, out)
        for i in range(above, depth):
            out[i] = mean if average else kept_gains[i]
        # DCG down to each rank serves every cut-off.
        total = 0.0
        for i in range(depth):
            total += out[i] * discounts[i]
            kept[i] = total
        for c in range(cuts.size):
            dcg[query * cuts.size + c] = kept[min(cuts[c], n) - 1]
        # The ideal of the top-ranked documents: their gains, or below the expected gains above, re-sorted.
        if recall_depth > 0:
            depth = min(recall_depth, n)
            _expected_gains(best, best_gains, above, min(above, depth), average, depth, out)
            for i in range(above, depth):
                out[i] = mean if average and above + tied > depth else kept_gains[i]
        for c in range(ideal_cuts.size):
            if recall_depth == 0:
                depth = min(ideal_cuts[c], n)
            for i in range(depth):
                best[i] = out[i]
            _sort(best, best_gains, depth, bucket, ends, kept, kept_gains)
            total = 0.0
            for i in range(min(ideal_cuts[c], depth)):
                total += kept[i] * discounts[i]
            ideal[query * cuts.size + c] = total
    return True
