"""Ids as columns of 8-byte words, which NumPy compares, hashes and sorts in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)

_WIDEST = 64  # bytes of an id that are stored in columns; longer ids are also stored in a dict
PADDING = bytes(_WIDEST)
"""Bytes that must follow the text passed to ``Names.cut``."""

_WORD = 8
# Masks that keep the first n bytes of a word, by n. The first byte is the most significant.
_MASKS = np.array([(1 << 64) - (1 << (64 - 8 * n)) for n in range(_WORD + 1)], dtype=np.uint64)
# Odd multipliers with random-looking bits, which spread small differences to the high bits.
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
_HALF = np.uint64(32)
_CHUNK = 1 << 18  # rows per step, so that intermediate arrays stay in the processor's cache


class Growing(Generic[T]):
    """An array to which rows can be appended. Unused capacity at its end is allocated but not written."""

    def __init__(self, dtype: type[T]) -> None:
        self._buffer: NDArray[T] = np.empty(0, dtype=dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def array(self) -> NDArray[T]:
        """The rows appended so far, as a view."""
        return self._buffer[: self._size]

    def extend(self, rows: NDArray[Any]) -> None:
        """Append rows. Columns missing from these or from earlier rows are filled with 0."""
        stop = self._size + rows.shape[0]
        if stop > self._buffer.shape[0] or rows.shape[1:] > self._buffer.shape[1:]:
            shape = max(2 * self._size, stop), *max(rows.shape[1:], self._buffer.shape[1:])
            buffer = np.empty(shape, dtype=self._buffer.dtype)
            _copy_rows(buffer, 0, self.array)
            self._buffer = buffer
        _copy_rows(self._buffer, self._size, rows)
        self._size = stop


def _copy_rows(buffer: NDArray[Any], at: int, rows: NDArray[Any]) -> None:
    if rows.ndim < buffer.ndim:  # no rows are stored yet
        return
    place = buffer[at : at + rows.shape[0]]
    if rows.ndim == 1:
        place[:] = rows
    else:
        place[:, : rows.shape[1]] = rows
        place[:, rows.shape[1] :] = 0


class Names:
    """Ids as bytes, one per row.

    Attributes
    ----------
    words : ndarray of uint64, shape (n, width)
        The first bytes of each id, as integers that sort like the bytes, padded with zeros.
    sizes : ndarray of int32, shape (n,)
        Number of bytes of each id.
    """

    def __init__(self) -> None:
        self._words = Growing(np.uint64)
        self._sizes = Growing(np.int32)
        self._long: dict[int, bytes] = {}  # row -> id, for ids longer than the columns

    def cut(self, text: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        """Append the ids at these positions of a text, which must end with ``PADDING``."""
        longest = int(sizes.max(initial=1))
        for row in np.flatnonzero(sizes > _WIDEST).tolist():
            self._long[len(self) + row] = text[starts[row] : starts[row] + sizes[row]].tobytes()
        self._words.extend(_words(text, starts, sizes, -(-min(longest, _WIDEST) // _WORD)))
        self._sizes.extend(sizes)

    def add(self, other: Names) -> None:
        """Append the ids of another object."""
        self._long.update({len(self) + row: name for row, name in other._long.items()})
        self._words.extend(other.words)
        self._sizes.extend(other.sizes)

    def extend(self, ids: Sequence[bytes]) -> None:
        """Append a sequence of ids."""
        text = np.frombuffer(b"".join([*ids, PADDING]), dtype=np.uint8)
        sizes = np.fromiter(map(len, ids), np.int64, len(ids))
        self.cut(text, np.cumsum(sizes) - sizes, sizes)

    def extend_lines(self, ids: bytes, n: int) -> bool:
        """Append `n` ids with newlines between; or none, and return False, if one is empty or holds a newline."""
        text = np.frombuffer(b"".join([ids, b"\n", PADDING]), dtype=np.uint8)
        ends = np.flatnonzero(text == ord("\n"))
        starts = np.append(0, ends[:-1] + 1)
        if ends.size != n or (starts == ends).any():
            return False
        self.cut(text, starts, ends - starts)
        return True

    @property
    def words(self) -> NDArray[np.uint64]:
        return self._words.array

    @property
    def sizes(self) -> NDArray[np.int32]:
        return self._sizes.array

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, row: int) -> bytes:
        if row in self._long:
            return self._long[row]
        whole: bytes = self.words[row].astype(">u8").tobytes()
        return whole[: self.sizes[row]]

    def __iter__(self) -> Iterator[bytes]:
        return map(self.__getitem__, range(len(self)))

    def take(self, rows: NDArray[Any]) -> list[bytes]:
        """Return the ids of these rows."""
        text, width = self.words[rows].astype(">u8").tobytes(), _WORD * self.words.shape[1]
        starts = range(0, width * rows.size, width)
        sizes = self.sizes[rows].tolist()
        found = [text[start : start + size] for start, size in zip(starts, sizes, strict=True)]
        for at in np.flatnonzero(np.isin(rows, list(self._long))).tolist() if self._long else ():
            found[at] = self._long[int(rows[at])]
        return found

    def changes(self) -> NDArray[np.int64]:
        """Return the rows whose id differs from that of the previous row."""
        other = (self.words[1:] != self.words[:-1]).any(axis=1) | (self.sizes[1:] != self.sizes[:-1])
        for row, name in self._long.items():
            if row and self._long.get(row - 1) != name:
                other[row - 1] = True
        return np.flatnonzero(np.append(len(self) > 0, other))

    def hashes(self, rows: slice) -> NDArray[np.uint64]:
        """Return a 64-bit hash of each id. The high bits are the most random."""
        mixed: NDArray[np.uint64] = self.sizes[rows].astype(np.uint64) * _FACTORS[2]
        for column in range(self.words.shape[1]):
            word = self.words[rows, column] * (_FACTORS[0] + np.uint64(2 * column))
            word ^= word >> _HALF
            mixed += word
        mixed *= _FACTORS[1]
        mixed ^= mixed >> _HALF
        mixed *= _FACTORS[0]
        return mixed

    def long_rows(self, rows: slice) -> list[int]:
        """Return the rows whose ids are longer than the columns."""
        return [row for row in self._long if rows.start <= row < rows.stop]

    def are_equal(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the ids of each pair of rows are equal."""
        same: NDArray[np.bool_] = self.sizes[one] == self.sizes[other]
        for column in self.words.T:
            same &= column[one] == column[other]
        if self._long:
            for at in np.flatnonzero(same & (self.sizes[one] > _WIDEST)).tolist():
                same[at] = self._long[int(one[at])] == self._long[int(other[at])]
        return same

    def order_by_bytes(self, topic: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sort the rows by topic, and within a topic by the bytes of their ids."""
        words = self.words[rows]
        order = np.lexsort((self.sizes[rows], *words.T[::-1], topic))
        ordered: NDArray[np.int64] = rows[order]
        if self._long:  # ids may differ after the bytes in the columns
            words, topic = words[order], topic[order]
            begins = np.flatnonzero(np.append(True, (words[1:] != words[:-1]).any(axis=1) | (topic[1:] != topic[:-1])))
            for start, stop in pairwise([*begins.tolist(), ordered.size]):
                if stop - start > 1:
                    ordered[start:stop] = sorted(ordered[start:stop].tolist(), key=self.__getitem__)
        return ordered


def digests(names: Names, rows: slice, topic: NDArray[Any], values: NDArray[np.float64], n: int) -> NDArray[np.uint64]:
    """Return a 64-bit digest of each topic's pairs of id and value, which does not depend on their order.

    Saved files hold these digests, so they must not change. They detect accidental changes, not forgery.
    """
    from hashlib import blake2b  # rarely needed, and slow to import

    mixed = names.hashes(rows)
    for row in names.long_rows(rows):  # the columns hold only their first bytes
        mixed[row - rows.start] = int.from_bytes(blake2b(names[row], digest_size=8).digest(), "little")
    mixed ^= (values + 0.0).view(np.uint64) * _FACTORS[1]  # -0.0 is 0.0
    mixed ^= mixed >> _HALF
    mixed *= _FACTORS[2]
    mixed ^= mixed >> np.uint64(29)
    mixed *= _FACTORS[0]
    mixed[np.isnan(values)] = 0  # unjudged
    sums = np.zeros(n, dtype=np.uint64)
    np.add.at(sums, topic, mixed)
    return sums


def earlier(topic: NDArray[Any], names: Names) -> NDArray[np.signedinteger[Any]]:
    """For each row, return the last earlier row with the same id in the same topic, or -1.

    Rows are sorted by topic and hash. If equal hashes belong to different ids, their rows are compared in Python.
    """
    n = len(names)
    row_bits, topic_bits = n.bit_length(), int(topic.max(initial=0)).bit_length()
    hash_bits = 63 - row_bits - topic_bits
    key = np.empty(n, dtype=np.int64)
    for chunk in _chunks(n):
        part = (names.hashes(chunk) >> np.uint64(64 - hash_bits)).view(np.int64)
        part |= topic[chunk].astype(np.int64) << hash_bits
        part <<= row_bits
        part |= np.arange(chunk.start, chunk.stop)
        key[chunk] = part
    key.sort()
    lowest = (1 << row_bits) - 1
    found: NDArray[np.signedinteger[Any]] = np.full(n, -1, dtype=np.int32 if n < 2**31 else np.int64)
    for chunk in _chunks(n - 1):
        one, other = key[chunk], key[chunk.start + 1 : chunk.stop + 1]
        pairs = np.flatnonzero((one ^ other) <= lowest)
        before, after = one[pairs] & lowest, other[pairs] & lowest
        same = names.are_equal(before, after)
        found[after[same]] = before[same]
        for mixed in set((one[pairs[~same]] & ~lowest).tolist()):
            start = np.searchsorted(key, mixed)
            stop = np.searchsorted(key, mixed + lowest, side="right")
            last: dict[bytes, int] = {}
            for row in (key[start:stop] & lowest).tolist():
                found[row] = last.get(names[row], -1)
                last[names[row]] = row
    return found


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK))


def _words(
    text: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64], width: int
) -> NDArray[np.uint64]:
    words = cells(text, starts, width * _WORD).view(">u8").astype(np.uint64)
    for column in range(width):
        words[:, column] &= _MASKS[np.clip(sizes - column * _WORD, 0, _WORD)]
    return words


def cells(text: NDArray[np.uint8], starts: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """Return `width` bytes from each position. NumPy copies items of this width in one step."""
    windows = np.ndarray((text.size - width + 1,), dtype=f"S{width}", buffer=text.data, strides=(1,))
    return windows[starts].view(np.uint8).reshape(starts.size, width)
