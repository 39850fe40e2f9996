"""Sums without rounding, which do not depend on order or grouping."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

Exact: TypeAlias = tuple[float, ...]
"""An exact sum: the float nearest to it, then the float nearest to the remainder, and so on."""


def exact_sum(values: Iterable[float]) -> Exact:
    """Return the exact sum of the values. Equal sums are equal tuples, whatever the values.

    Raises
    ------
    ValueError
        A value or the sum is infinite, or a value is nan.
    """
    rest, parts = list(values), list[float]()
    try:
        while part := math.fsum(rest):
            if not math.isfinite(part):
                raise OverflowError
            parts.append(part)
            rest.append(-part)
    except (OverflowError, ValueError):  # infinities of both signs
        raise ValueError("an NDCG, or a sum of them, is too large for float64. Use a smaller grade scale.") from None
    return tuple(parts)


def nearest(total: Exact) -> float:
    """Return the float64 nearest to an exact sum."""
    return total[0] if total else 0.0


class ExactSums(NamedTuple):
    """Exact numerator and denominator of a mean at each cut-off."""

    numerator: tuple[Exact, ...]
    denominator: tuple[Exact, ...]

    @classmethod
    def total(cls, parts: Sequence[ExactSums]) -> ExactSums:
        """Add the sums of several sets of queries."""
        numerators, denominators = (zip(*side, strict=True) for side in zip(*parts, strict=True))
        return cls(
            tuple(exact_sum(chain(*column)) for column in numerators),
            tuple(exact_sum(chain(*column)) for column in denominators),
        )
