"""Sums without rounding, so that their order and grouping are of no consequence."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._underflow import underflow_is_zero

__all__ = ["ZERO", "Exact", "exact_sum"]

_DIGITS = 53
# Addends that are smaller by this many powers of two are dropped: no result in float64 could show them, and a gain of
# 2^(10^15) beside one of 1 has no integer that fits a memory.
_REACH = 1 << 15
# Entries whose halves of 27 bits add up exactly in float64.
_CHUNK = 1 << 25


class Exact(NamedTuple):
    """The number ``mantissa * 2 ** exponent``, in lowest terms: equal numbers are equal tuples."""

    mantissa: int
    exponent: int

    @classmethod
    def of(cls, mantissa: int, exponent: int) -> Exact:
        """The number in lowest terms."""
        if mantissa == 0:
            return ZERO
        zeros = (mantissa & -mantissa).bit_length() - 1
        return cls(mantissa >> zeros, exponent + zeros)

    def plus(self, other: Exact) -> Exact:
        """The sum."""
        if not (self.mantissa and other.mantissa):
            return self if self.mantissa else other
        if abs(self.magnitude - other.magnitude) > _REACH:
            return max(self, other, key=lambda number: number.magnitude)
        exponent = min(self.exponent, other.exponent)
        mine, theirs = (number.mantissa << (number.exponent - exponent) for number in (self, other))
        return Exact.of(mine + theirs, exponent)

    @property
    def magnitude(self) -> int:
        """The power of two that is just above the number."""
        return self.exponent + self.mantissa.bit_length()

    def rounded(self, divided_by: int = 0) -> float:
        """The nearest float64 to the number over two to a power; 0 below the smallest one."""
        exponent = self.exponent - divided_by
        if not -1100 < self.magnitude - divided_by <= 1024:
            return 0.0 if self.magnitude < divided_by else self._infinite
        try:
            return self.mantissa / (1 << -exponent) if exponent < 0 else float(self.mantissa << exponent)
        except OverflowError:  # rounds up to 2^1024
            return self._infinite

    @property
    def _infinite(self) -> float:
        return math.inf if self.mantissa > 0 else -math.inf  # copysign would make a float of the mantissa first


ZERO = Exact(0, 0)


@underflow_is_zero
def exact_sum(values: NDArray[np.float64], exponent: int = 0) -> Exact:
    """The sum of the values, times two to a power.

    Raises
    ------
    ValueError
        A value is infinite or nan.
    """
    if not np.isfinite(values).all():
        raise ValueError("an NDCG is too large for float64, and has no sum with others. Use a smaller grade scale.")
    total = ZERO
    for start in range(0, values.size, _CHUNK):
        total = total.plus(_of_chunk(values[start : start + _CHUNK]))
    return Exact.of(total.mantissa, total.exponent + exponent)


def _of_chunk(values: NDArray[np.float64]) -> Exact:
    fractions, exponents = np.frexp(values)
    mantissas = np.ldexp(fractions, _DIGITS).astype(np.int64)
    least = int(exponents.min())
    place = exponents - least
    high = np.bincount(place, weights=mantissas >> 27)
    low = np.bincount(place, weights=mantissas & (1 << 27) - 1)
    total = 0
    for at in np.flatnonzero((high != 0) | (low != 0)).tolist():
        total += ((int(high[at]) << 27) + int(low[at])) << at
    return Exact.of(total, least - _DIGITS)
