"""Gains of wide lists whose labels are whole grades: a byte per row, and a table of what each byte gains.

A recommender's list has one row per item of its catalogue, nearly all of grade 0. To turn every label into a float64
gain, and to search those for the largest, takes longer than to rank the scores. So labels stay bytes here: gains are
looked up where a document ranks, and an ideal needs to know only how often a list has each grade.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import FloatArray

Codes = NDArray[np.uint8]

HIGHEST = 254
"""The highest grade that has a code; one code is left, which padding has."""

# Labels that are read in one go: they stay in the processor's cache for the second look.
_PART = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Values of few kinds.

    Attributes
    ----------
    codes : ndarray of uint8
        The kind of each value, in any shape.
    table : ndarray, shape (n_kinds + 1,)
        The value of each kind. The last one is 0, the value of padding.
    """

    codes: Codes
    table: NDArray[Any]

    @property
    def padding(self) -> int:
        """The code of padding."""
        return self.table.size - 1

    def take(self, at: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """The values at these flat positions."""
        values: NDArray[Any] = self.table.take(self.codes.reshape(-1).take(at))
        return values

    def full(self) -> NDArray[Any]:
        """All values, in the shape of the codes."""
        values: NDArray[Any] = self.table.take(self.codes)
        return values

    def largest(self, depth: int) -> FloatArray:
        """The `depth` largest values of each row of codes, largest first; padding counts as absent and becomes 0."""
        n_rows = len(self.codes)
        kinds = np.argsort(-self.table[: self.padding], kind="stable")
        if self.table.min() >= 0:  # zeros need no counting: they are what is left over
            kinds = kinds[self.table[kinds] > 0]
        room, lengths = np.full(n_rows, depth), []
        for kind in kinds.tolist():
            # A row has its places taken by the best kinds; what is left over goes to the next one.
            taken = np.minimum(np.count_nonzero(self.codes == kind, axis=1), room)
            room -= taken
            lengths.append(taken)
            if not room.any():
                break
        lengths.append(room)
        values = np.append(self.table[kinds[: len(lengths) - 1]], 0.0)
        return np.repeat(np.tile(values, n_rows), np.stack(lengths, axis=1).reshape(-1)).reshape(n_rows, depth)


Gains: TypeAlias = "FloatArray | Coded"
"""One gain per row or slot."""


def full(gains: Gains) -> FloatArray:
    """The gains as floats."""
    return gains.full() if isinstance(gains, Coded) else gains


def take_gains(gains: Gains, at: NDArray[np.integer[Any]]) -> FloatArray:
    """The gains at these flat positions."""
    return gains.take(at) if isinstance(gains, Coded) else gains.reshape(-1).take(at)


def codes_of(labels: NDArray[Any], order: NDArray[np.int64] | None) -> Codes | None:
    """Labels as bytes; None if one of the rows in `order` (None: all rows) is not an integer from 0 to ``HIGHEST``.

    Other rows get any code.
    """
    codes = _read(labels)
    if codes is None and order is not None:  # excluded rows may hold anything
        listed = _read(labels[order])
        if listed is not None:
            codes = np.zeros(labels.size, dtype=np.uint8)
            codes[order] = listed
    return codes


def _read(labels: NDArray[Any]) -> Codes | None:
    out = np.empty(labels.size, dtype=np.uint8)
    whole = labels.dtype.kind in "iu"
    for at in range(0, labels.size, _PART):
        part, codes = labels[at : at + _PART], out[at : at + _PART]
        if whole:
            # The OR of integers is in range only if all of them are. Otherwise the smallest and largest decide.
            if not 0 <= np.bitwise_or.reduce(part) <= HIGHEST and not (part.min() >= 0 and part.max() <= HIGHEST):
                return None
            np.copyto(codes, part, casting="unsafe")
        else:
            if not (part.min() >= 0 and part.max() <= HIGHEST):  # comparisons with NaN are false
                return None
            np.copyto(codes, part, casting="unsafe")
            if not (codes == part).all():
                return None
    return out
