"""Gains of wide lists with integer grades: one byte per row, and a table with the gain of each byte.

A recommender ranks every item of its catalogue, nearly all of grade 0. Converting all grades to float64 gains and
selecting the largest would take longer than ranking the scores. Grades are therefore kept as bytes: gains are looked up
for the first ranks only, and an ideal is computed from the number of documents with each grade.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import FloatArray

Codes = NDArray[np.uint8]

HIGHEST = 254
"""The highest grade with a code. The remaining code is that of padding."""

# Number of grades in a part. A part is read twice, so it must fit the processor's cache.
_PART = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Values with few distinct ones, stored as codes.

    Attributes
    ----------
    codes : ndarray of uint8
        The code of each value, in any shape.
    table : ndarray, shape (n_codes,)
        The value of each code. The last one is 0, the value of padding.
    """

    codes: Codes
    table: NDArray[Any]

    @property
    def padding(self) -> int:
        """The code of padding."""
        return self.table.size - 1

    def full(self) -> NDArray[Any]:
        """Return all values, in the shape of the codes."""
        values: NDArray[Any] = self.table.take(self.codes)
        return values

    def largest(self, depth: int) -> FloatArray:
        """Return the `depth` largest values of each row of codes, largest first. Padding becomes 0."""
        n_rows = len(self.codes)
        codes = np.argsort(-self.table[: self.padding], kind="stable")
        if self.table.min() >= 0:  # zeros fill the remaining ranks, so they are not counted
            codes = codes[self.table[codes] > 0]
        remaining, lengths = np.full(n_rows, depth), []
        for code in codes.tolist():
            filled = np.minimum(np.count_nonzero(self.codes == code, axis=1), remaining)
            remaining -= filled
            lengths.append(filled)
            if not remaining.any():
                break
        lengths.append(remaining)
        values = np.append(self.table[codes[: len(lengths) - 1]], 0.0)
        return np.repeat(np.tile(values, n_rows), np.stack(lengths, axis=1).reshape(-1)).reshape(n_rows, depth)


Gains: TypeAlias = "FloatArray | Coded"
"""One gain per row or slot."""


def full(gains: Gains) -> FloatArray:
    """Return the gains as floats."""
    return gains.full() if isinstance(gains, Coded) else gains


def take_gains(gains: Gains, at: NDArray[np.integer[Any]]) -> FloatArray:
    """Return the gains at these flat positions."""
    if isinstance(gains, Coded):
        return gains.table.take(gains.codes.reshape(-1).take(at))
    return gains.reshape(-1).take(at)


def encode_grades(grades: NDArray[Any], order: NDArray[np.int64] | None) -> Codes | None:
    """Return grades as bytes; None unless the rows in `order` (None: all) hold integers from 0 to ``HIGHEST``.

    Other rows get arbitrary codes.
    """
    codes = _read(grades)
    if codes is None and order is not None:  # excluded rows may hold anything
        included = _read(grades[order])
        if included is not None:
            codes = np.zeros(grades.size, dtype=np.uint8)
            codes[order] = included
    return codes


def _read(grades: NDArray[Any]) -> Codes | None:
    out = np.empty(grades.size, dtype=np.uint8)
    is_integer = grades.dtype.kind in "iu"
    for at in range(0, grades.size, _PART):
        part, codes = grades[at : at + _PART], out[at : at + _PART]
        if is_integer:
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
