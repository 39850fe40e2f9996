"""Which rows belong to which query: ids, sizes or a mask become one ragged layout and its padded blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._arrays import id_array, plain_array
from ndcg_ml._index import no_labels
from ndcg_ml._shown import shown
from ndcg_ml._underflow import underflow_is_zero

__all__ = ["Block", "Groups", "IntArray", "is_missing", "mean_row_weight", "one_id_a_row"]

IntArray: TypeAlias = NDArray[np.int64]

# Queries whose lengths are within this factor share a block: the padding costs a few per cent of the rows.
_SPREAD = 1.15
# So few padded slots cost less than one more block.
_CHEAP_PADDING = 1 << 12
# Slots in a block: few enough that a block's working arrays stay in the processor's cache.
_BLOCK_SLOTS = 1 << 17
# From here on row numbers are kept in half the memory, though NumPy has to widen them at every use.
_MANY_ROWS = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some queries of similar length, one a row, padded to one width.

    Attributes
    ----------
    queries : ndarray of int, shape (n_block,)
        Which queries these are.
    rows : ndarray of int, shape (n_block, width), or slice
        The caller's row behind every slot; in a padded slot, any row or a number beyond the last. A slice, where the
        slots are consecutive rows.
    padding : ndarray of int or None
        Flat positions of the padded slots. They are the last slots of a query.
    shape : tuple of int
        (n_block, width).
    """

    queries: IntArray
    rows: NDArray[np.signedinteger[Any]] | slice
    padding: IntArray | None
    shape: tuple[int, int]

    def gather(
        self, values: NDArray[Any], fill: float, room: Callable[[tuple[int, int], Any], NDArray[Any]]
    ) -> NDArray[Any]:
        """The values of the block's rows, to be read only: a view of them, or in `room(shape, dtype)` a copy.

        Padded slots hold `fill`.
        """
        if isinstance(self.rows, slice):
            return values[self.rows].reshape(self.shape)
        out = room(self.shape, values.dtype)
        values.take(self.rows, out=out, mode="clip")  # any other mode would go through a buffer
        if self.padding is not None:
            out.reshape(-1)[self.padding] = fill
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Ragged layout: the rows of every query, in the order of the queries.

    Attributes
    ----------
    sizes : ndarray of int, shape (n_queries,)
        Number of rows of each query; 0 is a query without documents.
    starts : ndarray of int, shape (n_queries,)
        Where each query begins in `order`.
    order : ndarray of int or None
        The caller's rows, query after query; None where they stand so already.
    n_rows : int
        Number of the caller's rows. Rows that no query lists do not take part.
    ids : ndarray or None
        The id of each query, where the caller gave ids.
    """

    sizes: IntArray
    starts: IntArray
    order: IntArray | None
    n_rows: int
    ids: NDArray[Any] | None = None

    @property
    def n_queries(self) -> int:
        """Number of queries, those without rows included."""
        return int(self.sizes.size)

    # -- the three ways in ---------------------------------------------------------------------------------------

    @classmethod
    def from_sizes(cls, group: Any, n_rows: int) -> Groups:
        """From the number of rows of each query, in order (LightGBM's convention)."""
        no_labels(group, "group", "Pass qid=, one id per row")
        sizes = plain_array(group, "group")
        if sizes.ndim != 1:
            raise ValueError(f"group must be one-dimensional, a size for each query; got shape {sizes.shape}.")
        if sizes.size == 0:
            raise ValueError("group must hold at least one query size; got none. There is nothing to evaluate.")
        if sizes.dtype.kind not in "iu":
            raise TypeError(
                f"group must hold integers, the number of rows of each query; got dtype {sizes.dtype}. "
                "If these are ids, one a row, pass them as qid=."
            )
        if sizes.min() < 0:
            raise ValueError(f"group must hold sizes >= 0; got {sizes.min()}.")
        # Larger sizes than there are rows may add up to any number in 64 bits.
        total = sum(sizes.tolist()) if sizes.max() > n_rows else int(sizes.sum())
        sizes = sizes.astype(np.int64)
        if total != n_rows:
            hint = " It has one entry a row: if these are ids, pass them as qid=." if sizes.size == n_rows else ""
            raise ValueError(f"group must sum to the number of rows, {n_rows}; got a sum of {total}.{hint}")
        return cls(sizes=sizes, starts=_starts(sizes), order=None, n_rows=n_rows)

    @classmethod
    def from_ids(cls, qid: Any, n_rows: int) -> Groups:
        """From one id a row, of any dtype and in any order; queries stand in order of first appearance."""
        ids = one_id_a_row(qid)
        if ids.size != n_rows:
            hint = ""
            if ids.dtype.kind in "iu" and ids.size < n_rows and ids.size and int(ids.sum()) == n_rows:
                hint = " They sum to the number of rows: if these are sizes, pass them as group=."
            raise ValueError(f"qid must have one id a row, {n_rows}; got {ids.size}.{hint}")
        if ids.size == 0:
            raise ValueError("qid must hold at least one row; got none. There is nothing to evaluate.")
        if ids.dtype == object:
            codes, unique = _hash_codes(ids)
            return replace(cls._from_pieces(codes), ids=unique)
        return cls._from_pieces(ids)

    @classmethod
    def _from_pieces(cls, ids: NDArray[Any]) -> Groups:
        """From ids that can be sorted. Rows of one id that follow each other are a piece; only pieces are sorted."""
        new = np.empty(ids.size, dtype=bool)
        new[0] = True
        np.not_equal(ids[1:], ids[:-1], out=new[1:])
        first = np.flatnonzero(new)
        heads, lengths = ids[first], np.diff(np.append(first, ids.size))
        whole = cls(sizes=lengths, starts=first, order=None, n_rows=ids.size, ids=heads)
        if (heads[1:] > heads[:-1]).all():  # in rising order every id is in one piece
            return whole
        keys = _hash_codes(heads)[0] if heads.dtype.kind in "SU" else heads  # text takes longer to sort than to hash
        pieces = _by_key(keys)
        ordered = keys[pieces]
        begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        if begins.size == pieces.size:
            return whole
        seen = pieces[begins]
        by_appearance = np.argsort(seen)
        n_pieces = np.diff(np.append(begins, pieces.size))[by_appearance]
        pieces = pieces[_ranges(begins[by_appearance], n_pieces)]
        sizes = np.add.reduceat(lengths[pieces], _starts(n_pieces))
        return cls(
            sizes=sizes,
            starts=_starts(sizes),
            order=_ranges(first[pieces], lengths[pieces]),
            n_rows=ids.size,
            ids=heads[seen[by_appearance]],
        )

    @classmethod
    def from_shape(cls, shape: tuple[int, int]) -> Groups:
        """One query a row of a two-dimensional array."""
        n_queries, width = shape
        if n_queries == 0:
            raise ValueError(f"y_true must hold at least one query; got shape {shape}. There is nothing to evaluate.")
        sizes = np.full(n_queries, width, dtype=np.int64)
        return cls(sizes=sizes, starts=_starts(sizes), order=None, n_rows=n_queries * width)

    # -- derived layouts ---------------------------------------------------------------------------------------------

    def codes(self) -> IntArray:
        """The query of every listed row, in the order of `order`."""
        return np.repeat(np.arange(self.n_queries), self.sizes)

    def keep(self, flags: NDArray[np.bool_]) -> Groups:
        """The same queries with only the flagged rows; `flags` has one entry for each of the caller's rows."""
        kept = flags if self.order is None else flags[self.order]
        order = np.flatnonzero(kept) if self.order is None else self.order[kept]
        sizes = np.bincount(self.codes()[kept], minlength=self.n_queries)
        return Groups(sizes=sizes, starts=_starts(sizes), order=order, n_rows=self.n_rows, ids=self.ids)

    def arranged(self, key: NDArray[Any]) -> Groups:
        """The same queries with their rows sorted by a key (one a row of the caller), equal keys in input order."""
        order = np.arange(self.n_rows) if self.order is None else self.order
        order = order[np.lexsort((key[order], self.codes()))]
        return Groups(sizes=self.sizes, starts=self.starts, order=order, n_rows=self.n_rows, ids=self.ids)

    def per_query(self, ufunc: np.ufunc, values: NDArray[Any], start: float) -> NDArray[Any]:
        """Reduce the values of each query's rows with a ufunc; `start` is the result for a query without rows."""
        listed = values if self.order is None else values[self.order]
        out = np.full(self.n_queries, start, dtype=np.float64)
        filled = np.flatnonzero(self.sizes)
        if filled.size:
            out[filled] = ufunc.reduceat(listed, self.starts[filled])
        return out

    def blocks(self) -> Iterator[Block]:
        """The queries that have rows, as padded blocks of similar length."""
        by_size = np.argsort(self.sizes, kind="stable")
        sizes = self.sizes[by_size]
        at = int(np.searchsorted(sizes, 1))
        while at < sizes.size:
            window = sizes[at : at + max(1, _BLOCK_SLOTS // int(sizes[at]))]
            slots = np.arange(1, window.size + 1) * window
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
        rows: NDArray[np.signedinteger[Any]] = starts[:, None] + slot
        if _MANY_ROWS < self.n_rows < 2**31:
            rows = rows.astype(np.int32)
        if self.order is not None:
            rows = self.order.take(rows, mode="clip").astype(rows.dtype, copy=False)
        return Block(queries, rows, np.flatnonzero(slot >= sizes[:, None]) if padded else None, shape)


@underflow_is_zero
def mean_row_weight(weight: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.float64]:
    """Mean weight of each query's rows; 0 for a query without rows, which has none."""
    if weight.size != sizes.sum():
        raise ValueError(f"weight must have one entry a row, {sizes.sum()}; got {weight.size}.")
    query = np.repeat(np.arange(sizes.size), sizes)
    total = np.bincount(query, weights=weight, minlength=sizes.size)
    mean: NDArray[np.float64] = total / np.maximum(sizes, 1)
    return mean


def _starts(sizes: IntArray) -> IntArray:
    starts = np.zeros(sizes.size, dtype=np.int64)
    np.cumsum(sizes[:-1], out=starts[1:])
    return starts


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """start, start + 1, ... of each range, one after another."""
    ranges: IntArray = np.repeat(starts - _starts(lengths), lengths)
    ranges += np.arange(ranges.size)
    return ranges


def _by_key(keys: NDArray[Any]) -> IntArray:
    """A stable argsort: of integers that leave room for a position beside them in 63 bits, in a tenth of the time."""
    if keys.dtype.kind in "iu":
        lowest, room = keys.min(), 63 - keys.size.bit_length()
        if int(keys.max()) - int(lowest) < 1 << room:
            packed = keys.astype(np.int64)
            packed -= lowest.astype(np.int64)
            packed <<= 63 - room
            packed |= np.arange(keys.size)
            packed.sort()
            packed &= (1 << (63 - room)) - 1
            return packed
    return np.argsort(keys, kind="stable")


def one_id_a_row(qid: Any) -> NDArray[Any]:
    """Query ids as an array in which ids that differ stay apart."""
    if type(qid).__module__.split(".")[0] == "torch":
        raise TypeError("qid is a torch tensor; pass qid.cpu().numpy(), or use ndcg_ml.torch for tensors.")
    ids = id_array(qid, "qid")
    if ids.ndim != 1:
        raise ValueError(f"qid must be one-dimensional, one id a row; got shape {ids.shape}.")
    if ids.dtype.kind in "TV":  # variable-width strings have no unique() before NumPy 2.3, records no order
        ids = ids.astype(object)
    missing = False
    if ids.dtype.kind == "f":
        missing = bool(np.isnan(ids).any())
    elif ids.dtype.kind in "mM":
        missing = bool(np.isnat(ids).any())
    if missing:
        raise ValueError("qid must have an id for every row; got a missing value (NaN or NaT).")
    return ids


def _hash_codes(ids: NDArray[Any]) -> tuple[IntArray, NDArray[Any]]:
    """The ids numbered by first appearance, and each of them once."""
    values = ids.tolist()
    seen: dict[Any, int] = {}
    try:
        codes = np.fromiter((seen.setdefault(value, len(seen)) for value in values), np.int64, ids.size)
        missing = next((code for value, code in seen.items() if is_missing(value)), None)
    except (ArithmeticError, TypeError, ValueError) as error:  # unhashable; or what refuses ==, or bool() after it
        odd = next((value for value in values if _is_odd(value)), values[0])
        raise TypeError(f"qid must hold hashable ids; got {shown(odd)} of type {type(odd).__name__}.") from error
    if missing is not None:
        row = int(np.flatnonzero(codes == missing)[0])
        raise ValueError(f"qid must have an id for every row; got a missing value at row {row}.")
    unique = np.empty(len(seen), dtype=object)
    unique[:] = list(seen)
    return codes, unique


def is_missing(value: Any) -> bool:
    """None, nan or NaT, the NA of pandas; or one of these as a part of an id of several parts."""
    if type(value) is tuple:
        return any(map(is_missing, value))
    return value is None or type(value).__name__ == "NAType" or not value == value  # noqa: SIM201


def _is_odd(value: Any) -> bool:
    try:
        hash(value)
        is_missing(value)
    except (ArithmeticError, TypeError, ValueError):
        return True
    return False
