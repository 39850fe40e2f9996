"""Sums without rounding, so that their order and grouping do not matter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_DIGITS = 53
# Addends that are smaller than the largest by this many powers of two are dropped. No result in float64 could show
# them, and summing gains of 2^(10^15) and 1 exactly would need an integer larger than memory.
_REACH = 1 << 15
# Entries whose halves of 27 bits add up exactly in float64.
_CHUNK = 1 << 25
# Up to this power of two sums are kept as they are; beyond it, and below its inverse, over the largest of them.
_PLAIN = 1 << 12


class ExactSums(NamedTuple):
    """What some queries add to a mean at each cut-off.

    Attributes
    ----------
    numerator, denominator : tuple of Fraction
        Over 2^exponent. Their own denominators are powers of two.
    exponent : int
        A function of the sums, so that equal sums are equal tuples.
    """

    numerator: tuple[Fraction, ...]
    denominator: tuple[Fraction, ...]
    exponent: int

    @classmethod
    def of(cls, numerator: Iterable[tuple[Fraction, int]], denominator: Iterable[tuple[Fraction, int]]) -> ExactSums:
        """From pairs (number, power), each of which is the number times 2^power."""
        pairs = [list(numerator), list(denominator)]
        largest = max((magnitude(number) + power for number, power in chain(*pairs) if number), default=0)
        exponent = largest if abs(largest) > _PLAIN else 0
        numerators, denominators = (tuple(_times(number, power - exponent) for number, power in side) for side in pairs)
        return cls(numerators, denominators, exponent)

    @classmethod
    def total(cls, parts: Sequence[ExactSums]) -> ExactSums:
        """The sums of several sets of queries together."""
        parts = [part for part in parts if any(chain(part.numerator, part.denominator))] or parts[:1]
        exponent = max(part.exponent for part in parts)

        def summed(columns: Iterable[tuple[Fraction, ...]]) -> Iterator[tuple[Fraction, int]]:
            for column in zip(*columns, strict=True):
                scaled = [_times(number, part.exponent - exponent) for number, part in zip(column, parts, strict=True)]
                # The denominators are powers of two, so the largest is a multiple of all others.
                finest = max(number.denominator for number in scaled)
                numerators = (number.numerator * (finest // number.denominator) for number in scaled)
                yield Fraction(sum(numerators), finest), exponent

        return cls.of(summed(part.numerator for part in parts), summed(part.denominator for part in parts))

    @property
    def largest(self) -> int:
        """The power of two just above the largest of the sums."""
        return self.exponent + max((magnitude(number) for number in chain(*self[:2]) if number), default=0)

    def rounded(self, exponent: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The nearest float64 to each sum over 2^exponent."""
        numerator, denominator = (
            np.array([_nearest(_times(number, self.exponent - exponent)) for number in sums]) for sums in self[:2]
        )
        return numerator, denominator


def exact_sum(values: NDArray[np.float64]) -> Fraction:
    """The sum of the values.

    Raises
    ------
    ValueError
        A value is infinite or nan.
    """
    if not np.isfinite(values).all():
        raise ValueError("an NDCG is too large for float64, and has no sum with others. Use a smaller grade scale.")
    return sum((_of_chunk(values[at : at + _CHUNK]) for at in range(0, values.size, _CHUNK)), Fraction(0))


def _of_chunk(values: NDArray[np.float64]) -> Fraction:
    fractions, exponents = np.frexp(values)
    mantissas = np.ldexp(fractions, _DIGITS).astype(np.int64)
    least = int(exponents.min())
    place = exponents - least
    high = np.bincount(place, weights=mantissas >> 27)
    low = np.bincount(place, weights=mantissas & (1 << 27) - 1)
    total = 0
    for at in np.flatnonzero((high != 0) | (low != 0)).tolist():
        total += ((int(high[at]) << 27) + int(low[at])) << at
    return _times(Fraction(total), least - _DIGITS)


def magnitude(number: Fraction) -> int:
    """The power of two just above a number whose denominator is a power of two; 0 for 0."""
    return number.numerator.bit_length() - number.denominator.bit_length() + 1


def _times(number: Fraction, power: int) -> Fraction:
    """The number times 2^power; 0 where nothing could show it."""
    if not power:
        return number
    if not number or magnitude(number) + power < -_REACH:
        return Fraction(0)
    return number * (1 << power) if power >= 0 else number / (1 << -power)


def _nearest(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
