"""The compiled kernel: bitwise identical to the NumPy kernel, one query after another, without Python's global lock.

This module needs Numba. Importing it compiles it, or loads an earlier compilation; see ``kernel_and_threads``.

The scores of a query are read twice. The first pass finds the largest score of each of a few interleaved lanes. The
d-th largest of these is a lower bound of the d-th score of the query. The second pass keeps the documents above the
bound, which are few more than d, and only these are sorted. Documents at the bound are one tie group.
Short lists of similar length are ranked in parallel, one list in each lane of the vector registers. The rank of a
document there is the number of documents before it, which needs no branch.
Sums are added in the order of the ranks or rows, whatever the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit, types, uint8

from ndcg_ml._core.labels_gains_discounts import Codes
from ndcg_ml._core.layout import FloatArray, IntArray

# Lists are sorted by counting up to this length, and by buckets beyond.
_COUNT = 32
# The number of lanes is a power of two, with a minimum and a minimum per rank. With fewer lanes the bound is lower, and
# more documents pass it.
_FEWEST_LANES, _LANES_PER_RANK = 16, 1.6
# Lists are sorted whole if they have fewer documents per lane, or per pair of lanes.
_PER_LANE, _PER_PAIR_OF_LANES = 2, 1 / 64
# In lists of at least this length, stretches without a document above the bound are skipped.
_LONG, _STRETCH = 1024, 64
# Lists up to the first number are ranked in parallel, at most the second number at once. Their lengths are divided into
# the third number of ranges.
_SHORT, _ABREAST, _RANGES = 32, 64, 8
# Scores are too uneven for buckets if one in this many shares its bucket with a different one in the row before, or if
# sorting within the buckets takes this many moves per document.
_CROWDED, _MOVES = 32, 8


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_PART = njit(**_OPTIONS)
"""Compiled as a part of ``rank``."""

_READ_ONLY, _READ_ONLY_INTS, _READ_ONLY_CODES = (
    types.Array(dtype, 1, "C", readonly=True) for dtype in (float64, int64, uint8)
)
_SIGNATURE = boolean(
    *(_READ_ONLY, _READ_ONLY_INTS, _READ_ONLY_CODES, _READ_ONLY, _READ_ONLY_INTS, _READ_ONLY_INTS, _READ_ONLY),
    *(_READ_ONLY_INTS, boolean, int64, int64, float64[::1]),
)


def _compile(function: Callable[..., bool]) -> Any:
    """Compile the function now, and save the result if there is a folder to write to."""
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
def _move(documents: FloatArray, n: int, bucket: IntArray, n_buckets: int, ends: IntArray, to: FloatArray) -> None:
    """Move documents to their buckets. Documents of one bucket keep their order."""
    for i in range(n_buckets + 1):
        ends[i] = 0
    for i in range(n):
        ends[bucket[i] + 1] += 1
    # The cumulative sizes of the buckets are their starts.
    for i in range(n_buckets):
        ends[i + 1] += ends[i]
    for i in range(n):
        end = ends[bucket[i]]
        ends[bucket[i]] = end + 1
        to[0, end], to[1, end] = documents[0, i], documents[1, i]


@_PART
def _insert(best: FloatArray, n: int) -> bool:
    """Sort by insertion, equal scores in their order. Return False, and stop, if this takes too many moves."""
    moves = _MOVES * n
    for i in range(1, n):
        score, gain, to = best[0, i], best[1, i], i
        while to > 0 and best[0, to - 1] < score:
            best[0, to], best[1, to] = best[0, to - 1], best[1, to - 1]
            to -= 1
        if to < i:
            best[0, to], best[1, to] = score, gain
            moves -= i - to
            if moves < 0:
                return False
    return True


@_PART
def _sort_by_digits(
    kept: FloatArray, n: int, bucket: IntArray, ends: IntArray, room: FloatArray, best: FloatArray
) -> None:
    """Sort `kept` into `best` as ``_sort``, for uneven scores.

    Buckets are two digits of the scores' highest bits, the lower digit first; if too many different scores share these
    bits, digits of all bits.
    """
    for i in range(n):
        best[0, i], best[1, i] = kept[0, i] + 0.0, kept[1, i]  # this makes -0.0 equal 0.0
    width = 6 + int(np.log2(n)) // 2  # bits of a digit; its 64 sqrt(n) values are at most 2 n + 512
    mask = np.uint64((1 << width) - 1)
    for first in (64 - 2 * width, 0):
        for shift in range(first, 64, 2 * width):
            for digit, source, to in ((shift, best, room), (min(shift + width, 63), room, best)):
                bits = source[0].view(np.int64)
                for i in range(n):
                    # Unsigned integers that ascend as the scores descend.
                    key = np.uint64(bits[i] ^ (~(bits[i] >> 63) & 0x7FFFFFFFFFFFFFFF))
                    bucket[i] = (key >> np.uint64(digit)) & mask
                _move(source, n, bucket, 1 << width, ends, to)
        if _insert(best, n):
            return


@_PART
def _sort(kept: FloatArray, n: int, bucket: IntArray, ends: IntArray, room: FloatArray, best: FloatArray) -> None:
    """Sort `kept` into `best`, largest first, equal scores in their order. Their rows are scores and gains."""
    scores = kept[0]
    # Few scores: the rank of each is the number of documents before it, which needs no branch.
    if n <= _COUNT:
        for i in range(n):
            x = scores[i]
            before = 0
            for j in range(n):
                before += (scores[j] > x) | ((scores[j] == x) & (j < i))
            best[0, before], best[1, before] = x, kept[1, i]
        return
    # Even scores: with two buckets per document, few different scores share a bucket.
    low, high = scores[0], scores[0]
    for i in range(n):
        x = scores[i]
        low = min(low, x)
        high = max(high, x)
    if high - low < math.inf:  # it is inf or nan if a score is infinite
        scale = 2 * n / max(high - low, 1e-300)
        crowded = 0
        for i in range(n):
            # Subtraction, product and rounding are monotonic, so a larger score is never in a later bucket.
            bucket[i] = min(int((high - scores[i]) * scale), 2 * n)
        for i in range(1, n):
            crowded += (bucket[i] == bucket[i - 1]) & (scores[i] != scores[i - 1])
        if crowded * _CROWDED < n:
            _move(kept, n, bucket, 2 * n + 1, ends, best)
            if _insert(best, n):
                return
    _sort_by_digits(kept, n, bucket, ends, room, best)


@_PART
def _gain(codes: Codes, gains: FloatArray, row: int) -> float:
    """Return the gain of a row, looked up by its code if there are codes."""
    return gains[codes[row]] if codes.size > 0 else gains[row]


@_PART
def _bound(scores: FloatArray, n: int, depth: int, lanes: int, top: FloatArray) -> float:
    """Return a score that at least `depth` documents reach: the depth-th largest of the maxima of the lanes."""
    for lane in range(lanes):
        top[lane] = scores[lane]
    for first in range(lanes, n - lanes + 1, lanes):
        for lane in range(lanes):
            x = scores[first + lane]
            top[lane] = x if x > top[lane] else top[lane]
    rest = n % lanes
    for lane in range(rest):
        x = scores[n - rest + lane]
        top[lane] = x if x > top[lane] else top[lane]
    return _nth_largest(top, lanes, depth)


@_PART
def _fill_by_ties(
    bound: float,
    scores: FloatArray,
    n: int,
    codes: Codes,
    gains: FloatArray,
    start: int,
    depth: int,
    average: bool,
    above: int,
    kept: FloatArray,
) -> float:
    """Write the gains of the tie group at the bound to the ranks that remain, and return their mean.

    The group needs no sorting.
    """
    tied, total, least, most = 0, 0.0, np.inf, -np.inf
    for i in range(n):
        if scores[i] == bound:
            gain = _gain(codes, gains, start + i)
            if above + tied < depth:
                kept[1, above + tied] = gain
            elif not average:
                break
            total += gain
            least, most = min(least, gain), max(most, gain)
            tied += 1
    return min(max(total / tied, least), most)


@_PART
def _candidates(
    scores: FloatArray,
    n: int,
    codes: Codes,
    gains: FloatArray,
    start: int,
    depth: int,
    average: bool,
    lanes: int,
    top: FloatArray,
    rows: IntArray,
    kept: FloatArray,
) -> tuple[int, float]:
    """Keep the scores and gains of the documents above a bound, in the order of the rows. NaN counts as above.

    If fewer than `depth` are above, the tie group at the bound has the other ranks: the gains of its first documents
    follow in `kept`. Return the number of documents above and the mean gain of the tie group, which is only right if
    `average` is set.
    """
    # For a short list, finding a bound does not pay, and all documents are kept.
    if depth > lanes or n < lanes * _PER_LANE or n < lanes * lanes * _PER_PAIR_OF_LANES:
        for i in range(n):
            kept[0, i], kept[1, i] = scores[i], _gain(codes, gains, start + i)
        return n, 0.0
    bound = _bound(scores, n, depth, lanes, top)
    above = 0
    # In long lists few stretches have a document above the bound, and counting such documents is vectorised.
    done = n - n % _STRETCH if n >= _LONG else 0
    for first in range(0, done, _STRETCH):
        some = 0
        for i in range(first, first + _STRETCH):
            some += not (scores[i] <= bound)
        if some:
            for i in range(first, first + _STRETCH):
                rows[above] = i
                above += not (scores[i] <= bound)
    for i in range(done, n):
        rows[above] = i
        above += not (scores[i] <= bound)
    # Gains are read for kept documents only.
    for i in range(above):
        kept[0, i], kept[1, i] = scores[rows[i]], _gain(codes, gains, start + rows[i])
    mean = 0.0
    if above < depth:
        mean = _fill_by_ties(bound, scores, n, codes, gains, start, depth, average, above, kept)
    return above, mean


@_PART
def _expected_gains(scores: FloatArray, gains: FloatArray, n: int, depth: int, average: bool, out: FloatArray) -> None:
    """Write the expected gains at ranks 1..depth to `out`, for documents in the order of their ranks.

    With `average`, tied documents share their mean gain.
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
        if stop == first + 1:
            out[first] = gain
        else:
            mean = min(max(total / (stop - first), least), most)
            for i in range(first, min(stop, depth)):
                out[i] = mean
        first = stop


@_PART
def _load_lanes(
    queries: IntArray,
    scores: FloatArray,
    order: IntArray,
    codes: Codes,
    gains: FloatArray,
    starts: IntArray,
    sizes: IntArray,
    work: FloatArray,
) -> int:
    """Write one list into each lane of `work[0]` (scores) and `work[1]` (gains).

    Return the number of rows, which is the length of the longest list; 0 if a score is NaN.
    """
    lanes, rows = queries.size, 0
    for query in queries:
        rows = max(rows, sizes[query])
    # A shorter list is padded with the least score, in its last rows, so that padding ranks behind all documents.
    for slot in range(rows * lanes):
        work[0, slot], work[1, slot] = -np.inf, 0.0
    for lane in range(lanes):
        query = queries[lane]
        n, start = sizes[query], starts[query]
        for row in range(n):
            at = start + row
            x = scores[order[at] if order.size > 0 else at]
            if x != x:
                return 0
            work[0, row * lanes + lane] = x
            work[1, row * lanes + lane] = _gain(codes, gains, at)
    return rows


@_PART
def _sort_lanes(rows: int, lanes: int, work: FloatArray, before: IntArray) -> None:
    """Move the scores and gains of each lane to their ranks, into `work[2]` and `work[3]`."""
    scores = work[0]
    # The compiler vectorises these loops in this form, and not in others.
    for row in range(rows):
        x = row * lanes
        for lane in range(lanes):
            before[lane] = 0
        # Scores that rank before: larger ones, and equal ones of an earlier row.
        for other in range(rows):
            y = other * lanes
            if other < row:
                for lane in range(lanes):
                    before[lane] += scores[y + lane] >= scores[x + lane]
            elif other > row:
                for lane in range(lanes):
                    before[lane] += scores[y + lane] > scores[x + lane]
        for lane in range(lanes):
            to = before[lane] * lanes + lane
            work[2, to], work[3, to] = scores[x + lane], work[1, x + lane]


@_PART
def _average_lanes(
    queries: IntArray, sizes: IntArray, rows: int, depth: int, work: FloatArray, before: IntArray
) -> None:
    """Replace gains of tied documents within the depth by their mean, one list at a time."""
    lanes = queries.size
    ranked, ranked_gains = work[2], work[3]
    for lane in range(lanes):
        before[lane] = 0
    for slot in range(lanes, min(depth + 1, rows) * lanes, lanes):
        for lane in range(lanes):
            before[lane] += ranked[slot + lane] == ranked[slot - lanes + lane]
    for lane in range(lanes):
        n = sizes[queries[lane]]
        if before[lane] > max(min(depth + 1, rows) - n - 1, 0):  # padding is tied with padding
            for i in range(n):
                work[0, i], work[1, i] = ranked[i * lanes + lane], ranked_gains[i * lanes + lane]
            _expected_gains(work[0], work[1], n, min(depth, n), True, work[4])
            for i in range(min(depth, n)):
                ranked_gains[i * lanes + lane] = work[4, i]


@_PART
def _add_lanes(
    queries: IntArray,
    sizes: IntArray,
    depth: int,
    discounts: FloatArray,
    cuts: IntArray,
    sums: FloatArray,
    dcg: FloatArray,
) -> None:
    """Replace the gain at each rank by the DCG down to it, and write DCG at each cut-off."""
    lanes = queries.size
    for lane in range(lanes):  # sums begin at 0.0, so that a gain of -0.0 gives 0.0
        sums[lane] = 0.0 + sums[lane] * discounts[0]
    for i in range(1, depth):
        slot, discount = i * lanes, discounts[i]
        for lane in range(lanes):
            sums[slot + lane] = sums[slot - lanes + lane] + sums[slot + lane] * discount
    for lane in range(lanes):
        query = queries[lane]
        for c in range(cuts.size):
            dcg[query * cuts.size + c] = sums[(min(cuts[c], sizes[query]) - 1) * lanes + lane]


@_PART
def _rank_short_lists(
    scores: FloatArray,
    order: IntArray,
    codes: Codes,
    gains: FloatArray,
    starts: IntArray,
    sizes: IntArray,
    discounts: FloatArray,
    cuts: IntArray,
    average: bool,
    begin: int,
    end: int,
    dcg: FloatArray,
) -> bool:
    """Compute DCG of the lists up to length `_SHORT`, in groups of similar length. Return False if a score is NaN."""
    # Memory for the largest possible group.
    longest, lanes = 0, 0
    for size in sizes[begin:end]:
        if 0 < size <= _SHORT:
            longest = max(longest, size)
            lanes = min(lanes + 1, _ABREAST)
    work, before = np.empty((5, longest * lanes)), np.empty(lanes, np.int64)
    # Lists wait until a range of lengths has enough of them. After the last list, those that still wait are ranked.
    waiting, n_waiting = np.empty((_RANGES, lanes), np.int64), np.zeros(_RANGES, np.int64)
    for query in range(begin, end + _RANGES if lanes > 0 else begin):
        if query < end:
            if not 0 < sizes[query] <= _SHORT:
                continue
            own = (sizes[query] - 1) * _RANGES // _SHORT
            waiting[own, n_waiting[own]] = query
            n_waiting[own] += 1
            full = n_waiting[own] == lanes
        else:
            own = query - end
            full = n_waiting[own] > 0
        if full:
            queries = waiting[own, : n_waiting[own]]
            n_waiting[own] = 0
            rows = _load_lanes(queries, scores, order, codes, gains, starts, sizes, work)
            if rows == 0:
                return False
            _sort_lanes(rows, queries.size, work, before)
            depth = min(cuts.max(), rows)
            if average:
                _average_lanes(queries, sizes, rows, depth, work, before)
            _add_lanes(queries, sizes, depth, discounts, cuts, work[3], dcg)
    return True


@_compile
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
    begin: int,
    end: int,
    dcg: FloatArray,
) -> bool:
    """Compute DCG at each cut-off of the queries from `begin` up to `end`. Return False if a score is NaN.

    ``kernel_and_threads.CompiledQueries`` makes the arguments: the lists (`scores` to `sizes`), the rule
    (`discounts` to `average`), the queries and the output. They are not grouped, because Numba unpacks a tuple of
    arrays at every call.

    Parameters
    ----------
    scores : ndarray of float, shape (n_rows,)
    order : ndarray of int
        The rows, query after query; empty if they are in that order.
    codes : ndarray of uint8
        Position of each row's gain in `gains`, in that order; or empty.
    gains : ndarray of float
        The gain of each row, in that order; if there are codes, the gain of each code.
    starts, sizes : ndarray of int, shape (n_queries,)
        First row, in that order, and number of rows of each query.
    discounts : ndarray of float
        One for each rank that counts.
    cuts : ndarray of int, shape (n_cutoffs,)
        For no cut-off, a number beyond the longest query.
    average : bool
        Whether tied documents share their mean gain; otherwise they rank in their order.
    begin, end : int
    dcg : ndarray of float, shape (n_queries * n_cutoffs,)
        Output, filled with zeros.
    """
    # The number of ranks that any query needs; and memory for the longest query, shared by all.
    longest = 0
    for size in sizes[begin:end]:
        longest = max(longest, size)
    deepest, lanes = cuts.max(), _FEWEST_LANES
    while lanes < min(deepest, longest) * _LANES_PER_RANK:
        lanes *= 2
    line = np.empty(longest if order.size > 0 else 0)
    kept, room, best = np.empty((2, longest + 1)), np.empty((2, longest)), np.empty((2, longest))
    top = np.empty(lanes)
    rows = np.empty(longest + 1, np.int64)
    ends = np.empty(2 * longest + 514, np.int64)
    if not _rank_short_lists(scores, order, codes, gains, starts, sizes, discounts, cuts, average, begin, end, dcg):
        return False
    for query in range(begin, end):
        n, start = sizes[query], starts[query]
        if n <= _SHORT:
            continue
        # Put the best documents into `best`, in the order of their ranks. Comparisons with NaN are false, so a NaN is
        # among them.
        depth = min(deepest, n)
        own = scores[start : start + n]
        if order.size > 0:  # gathered once, because they are read twice
            own = line[:n]
            for i in range(n):
                line[i] = scores[order[start + i]]
        above, mean = _candidates(own, n, codes, gains, start, depth, average, lanes, top, rows, kept)
        for i in range(above):
            if kept[0, i] != kept[0, i]:
                return False
        _sort(kept, above, rows, ends, room, best)
        # Expected gains: first those of the sorted documents, then those of the tie group at the bound.
        out = room[0]
        _expected_gains(best[0], best[1], above, min(above, depth), average, out)
        for i in range(above, depth):
            out[i] = mean if average else kept[1, i]
        # Compute DCG down to each rank, for all cut-offs.
        total = 0.0
        for i in range(depth):
            total += out[i] * discounts[i]
            out[i] = total
        for c in range(cuts.size):
            dcg[query * cuts.size + c] = out[min(cuts[c], n) - 1]
    return True
