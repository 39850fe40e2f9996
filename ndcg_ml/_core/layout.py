"""Which rows belong to which query: a ragged layout, and its padded blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# -- arrays -----------------------------------------------------------------------------------------------------------

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

ODD = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: modulo 2^64, multiples of it by small integers are far from each other."""


def as_objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return the values as a one-dimensional array of objects; np.array() would split tuples."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def as_float32(values: NDArray[Any]) -> NDArray[np.float32]:
    """Round to float32 under any error settings of NumPy: large numbers become infinite, and tiny ones 0."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # invalid: signalling NaNs
        return values.astype(np.float32)


def keys_of(ids: NDArray[Any]) -> list[Any]:
    """Return the ids as keys of a dict; tolist() would make times integers."""
    return list(ids) if ids.dtype.kind in "mM" else ids.tolist()


# -- layouts and blocks -----------------------------------------------------------------------------------------------

# Queries whose lengths are within this factor share a block: the padding costs a few per cent of the rows.
_SPREAD = 1.15
# This many padded slots take less time than one more block.
_CHEAP_PADDING = 1 << 12
# Number of slots in a block, few enough that its working arrays stay in the processor's cache.
_BLOCK_SLOTS = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some queries of similar length, one per row, padded to one width.

    Attributes
    ----------
    queries : ndarray of int, shape (n_block,)
        Positions of the queries.
    rows : ndarray of int, shape (n_block, width), or slice
        The caller's row of every slot; any number in a padded slot. A slice if the slots are consecutive rows.
    padding : ndarray of int or None
        Flat positions of the padded slots. They are the last slots of a query.
    shape : tuple of int
        (n_block, width).
    """

    queries: IntArray
    rows: IntArray | slice
    padding: IntArray | None
    shape: tuple[int, int]

    def gather(self, values: NDArray[Any], fill: float) -> NDArray[Any]:
        """Return the values of the block's rows, a view or a copy, to be read only. Padded slots hold `fill`."""
        if isinstance(self.rows, slice):
            return values[self.rows].reshape(self.shape)
        out = np.empty(self.shape, dtype=values.dtype)
        values.take(self.rows, out=out, mode="clip")  # any other mode would go through a buffer
        if self.padding is not None:
            out.ravel()[self.padding] = fill
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Ragged layout: the rows of every query, in the order of the queries.

    Attributes
    ----------
    sizes : ndarray of int, shape (n_queries,)
        Number of rows of each query; 0 is a query without documents.
    starts : ndarray of int, shape (n_queries,)
        Position in `order` of the first row of each query.
    order : ndarray of int or None
        The rows, query after query; None if they are in that order.
    n_rows : int
        Number of the caller's rows, including those of no query.
    ids : ndarray or None
        The id of each query, if the caller gave ids.
    filled : ndarray of bool or None
        Which of the caller's padded lists hold a document and are queries; None if all do, or if there are no lists.
    """

    sizes: IntArray
    starts: IntArray
    order: IntArray | None
    n_rows: int
    ids: NDArray[Any] | None = None
    filled: BoolArray | None = None

    @property
    def n_queries(self) -> int:
        """Number of queries, those without rows included."""
        return int(self.sizes.size)

    @property
    def n_given(self) -> int:
        """Number of queries, those padded lists included that hold no document."""
        return self.n_queries if self.filled is None else self.filled.size

    def without_padding(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the queries, from `n_given` ones."""
        return values if self.filled is None else values[self.filled]

    def codes(self) -> IntArray:
        """Return the query of each row in `order`."""
        return np.repeat(np.arange(self.n_queries, dtype=np.int64), self.sizes)

    def rows(self) -> NDArray[np.intp]:
        """Return the caller's rows, query by query."""
        return np.arange(self.n_rows, dtype=np.intp) if self.order is None else self.order

    def arrange(self, values: NDArray[Any]) -> NDArray[Any]:
        """Arrange one value per row query by query."""
        return values if self.order is None else values[self.order]

    def keep(self, flags: NDArray[np.bool_]) -> Groups:
        """Return the queries with only the flagged rows. `flags` has one entry for each of the caller's rows."""
        listed = self.arrange(flags)
        order = np.flatnonzero(listed) if self.order is None else self.order[listed]
        before = np.append(0, np.cumsum(listed))
        sizes = before[self.starts + self.sizes] - before[self.starts]
        return replace(self, sizes=sizes, starts=starts_of(sizes), order=order)

    def sort_rows(self, key: NDArray[Any]) -> Groups:
        """Return the queries with their rows sorted by a key, one for each of the caller's rows. The sort is stable."""
        order = self.rows()
        return replace(self, order=order[np.lexsort((key[order], self.codes()))])

    def per_query(self, ufunc: np.ufunc, values: NDArray[Any], start: float) -> NDArray[Any]:
        """Reduce the values of each query's rows with a ufunc; `start` is the result for a query without rows."""
        listed = self.arrange(values)
        out = np.full(self.n_queries, start, dtype=np.float64)
        filled = np.flatnonzero(self.sizes)
        if filled.size:
            out[filled] = ufunc.reduceat(listed, self.starts[filled])
        return out

    def blocks(self) -> Iterator[Block]:
        """Yield padded blocks of queries of similar length. Queries without rows are in none."""
        width = int(self.sizes.max(initial=0))
        if self.order is None and 0 < self.n_rows == width * self.n_queries <= _BLOCK_SLOTS:  # one padded batch
            yield Block(np.arange(self.n_queries), slice(0, self.n_rows), None, (self.n_queries, width))
            return
        by_size = np.argsort(self.sizes, kind="stable")
        sizes = self.sizes[by_size]
        at = int(np.searchsorted(sizes, 1))
        while at < sizes.size:
            window = sizes[at : at + max(1, _BLOCK_SLOTS // int(sizes[at]))]
            slots = np.arange(1, window.size + 1, dtype=np.int64) * window
            similar = (window <= int(sizes[at] * _SPREAD)) | (slots - np.cumsum(window) <= _CHEAP_PADDING)
            beyond = np.flatnonzero(~similar | (slots > _BLOCK_SLOTS))
            stop = at + max(1, int(beyond[0]) if beyond.size else window.size)
            yield self._block(by_size[at:stop], sizes[at:stop])
            at = stop

    def _block(self, queries: IntArray, sizes: IntArray) -> Block:
        width = int(sizes[-1])
        shape = (queries.size, width)
        starts = self.starts[queries]
        padded = sizes[0] != width
        if self.order is None and not padded and (np.diff(starts) == width).all():
            return Block(queries, slice(int(starts[0]), int(starts[-1]) + width), None, shape)
        slot = np.arange(width)
        rows = starts[:, None] + slot
        if self.order is not None:
            rows = self.order.take(rows, mode="clip")
        return Block(queries, rows, np.flatnonzero(slot >= sizes[:, None]) if padded else None, shape)


def starts_of(sizes: IntArray) -> IntArray:
    """Return the position of the first row of each query, for consecutive queries of these sizes."""
    starts = np.zeros(sizes.size, dtype=np.intp)  # an index, which has 32 bits in WebAssembly
    np.cumsum(sizes[:-1], out=starts[1:])
    return starts


def ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """Return start, start + 1, ... of each range, one range after another."""
    ranges: IntArray = np.repeat(starts - starts_of(lengths), lengths)
    ranges += np.arange(ranges.size)
    return ranges
