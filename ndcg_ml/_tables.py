"""Gains and discounts as numbers: the only home of their formulas in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml.flavor import Flavor
from ndcg_ml.groups import Groups, IntArray

__all__ = ["LOST", "discounts", "gain_of_grade", "relative_gains"]

FloatArray = NDArray[np.float64]

# Gains within these bounds can be summed and multiplied in float64 as they are.
_LARGE, _SMALL = 2.0**500, 2.0**-500
# Where the largest gain of a query is brought to: with room above for sums and weights, and below for small gains.
_TOP = 400
# A gain that is smaller beside the largest counts as this, whose product with a discount has all its digits.
_TINIEST = 2.0**-1000
LOST = 2.0**-960
"""A sum below holds such gains alone."""


def discounts(flavor: Flavor, depth: int) -> FloatArray:
    """D(1), ..., D(depth), before any cut-off."""
    ranks = np.arange(1, depth + 1, dtype=np.float64)
    if callable(flavor.discount):
        values = [_number(flavor.discount, rank, "discount") for rank in range(1, depth + 1)]
        return np.array(values, dtype=np.float64)
    if flavor.discount == "log2":
        return 1.0 / np.log2(ranks + 1.0)
    if flavor.discount == "ln":
        return 1.0 / np.log(ranks + 1.0)
    if flavor.discount == "reciprocal":
        return 1.0 / ranks
    if flavor.discount == "jarvelin":
        base = flavor.discount_base
        logs = np.log2(ranks) if base == 2.0 else np.log(ranks) / math.log(base)
        return np.where(ranks < base, 1.0, 1.0 / np.maximum(logs, np.finfo(np.float64).tiny))
    return np.ones(depth)


def relative_gains(flavor: Flavor, labels: FloatArray, groups: Groups) -> tuple[FloatArray, IntArray | None]:
    """The gain of every row divided by 2^e, and the exponent e of each query; 0 for rows that no query lists.

    NDCG is a ratio, so a common factor of a query's gains cancels; dividing by a power of two keeps an exponential
    gain of grade 1000 (and a linear one of 1e308) finite without a rounding error. The exponents are None where
    every gain is of ordinary size and nothing was divided. The labels of listed rows are finite.
    """
    if groups.order is None:
        return _relative_gains(flavor, labels, groups)
    listed = labels[groups.order]
    gains = np.zeros(labels.size)
    gains[groups.order], exponent = _relative_gains(flavor, listed, replace(groups, order=None, n_rows=listed.size))
    return gains, exponent


def _relative_gains(flavor: Flavor, labels: FloatArray, groups: Groups) -> tuple[FloatArray, IntArray | None]:
    if flavor.ideal == "max":  # the top of the scale in float32 may be a little above the top itself
        labels = np.minimum(labels, np.float64(flavor.max_grade or 0.0))
    if flavor.gain == "exponential":
        ceiling = flavor.max_grade or 0.0 if flavor.ideal == "max" else 0.0
        top = max(float(labels.max(initial=0.0)), ceiling)
        if top < 500:
            grades = labels.astype(np.uint16) if labels.min(initial=0.0) >= 0 else None
            if grades is not None and (grades == labels).all():  # whole grades: look the few values up
                return _power_of_two_minus_one(np.arange(int(top) + 1.0)).take(grades), None
            return _power_of_two_minus_one(labels), None
        whole = np.floor(np.maximum(groups.per_query(np.maximum, labels, 0.0), ceiling))
        exponent = np.minimum(whole, 2.0**62).astype(np.int64) - _TOP  # of a grade that large any one is as good
        small = labels < 500
        gains = _shrunk(_power_of_two_minus_one(np.where(small, labels, 0.0)), exponent[groups.codes()])
        below = np.where(small, 0.0, labels - whole[groups.codes()])
        steps = np.floor(below)
        large = np.ldexp(np.exp2(below - steps), np.maximum(steps, -4000).astype(np.int64) + _TOP)
        return np.where(small, gains, np.maximum(large, _TINIEST)), exponent
    if flavor.gain == "binary":
        return (labels > 0).astype(np.float64), None
    if flavor.gain == "judged":
        return np.ones(labels.shape), None
    if isinstance(flavor.gain, tuple):
        table = np.append(flavor.gain, 0.0)  # what a grade beyond the table gains, where that is no error
        gains = table[np.minimum(labels, len(flavor.gain)).astype(np.intp)]
    elif callable(flavor.gain):
        grades, at = np.unique(labels, return_inverse=True)
        gains = np.array([_number(flavor.gain, grade, "gain") for grade in grades.tolist()])[at.reshape(-1)]
    else:
        gains = labels
    ceiling = abs(gain_of_grade(flavor, flavor.max_grade)) if flavor.ideal == "max" else 0.0
    if max(-float(gains.min(initial=0.0)), float(gains.max(initial=0.0)), ceiling) < _LARGE and _none_tiny(gains):
        return gains, None
    largest = np.maximum(groups.per_query(np.maximum, np.abs(gains), 0.0), ceiling)
    exponent = np.frexp(largest)[1].astype(np.int64) - _TOP
    return _shrunk(gains, exponent[groups.codes()]), exponent


def _none_tiny(gains: FloatArray) -> bool:
    if (gains == np.rint(gains)).all():
        return True
    size = np.abs(gains)
    return bool(size.min(initial=1.0, where=size > 0) >= _SMALL)


def gain_of_grade(flavor: Flavor, grade: float | None, exponent: IntArray | None = None) -> Any:
    """The gain of one grade, divided by 2^e for each exponent e where exponents are given."""
    assert grade is not None
    if flavor.gain == "exponential" and exponent is not None:
        # That of max_grade, the largest: see relative_gains.
        return np.full(exponent.shape, np.ldexp(np.exp2(grade - math.floor(grade)), _TOP))
    if isinstance(flavor.gain, tuple):
        gain = flavor.gain[int(grade)]
    elif callable(flavor.gain):
        gain = _number(flavor.gain, grade, "gain")
    elif flavor.gain == "binary":
        gain = float(grade > 0)
    elif flavor.gain == "judged":
        gain = 1.0
    elif flavor.gain == "exponential":
        gain = float(_power_of_two_minus_one(np.array([grade]))[0])
    else:
        gain = grade
    return gain if exponent is None else np.ldexp(gain, -exponent)


def _power_of_two_minus_one(grades: FloatArray) -> FloatArray:
    # exp2 is exact for integers; expm1 keeps the digits of a small fraction.
    return np.where(np.abs(grades) < 1, np.expm1(grades * math.log(2)), np.exp2(grades) - 1)


def _shrunk(gains: FloatArray, exponent: IntArray) -> FloatArray:
    """Gains over 2^e; one that is lost beside the largest of its query stays above (or below) 0 all the same."""
    shrunk: FloatArray = np.ldexp(gains, -exponent)
    return np.where((np.abs(shrunk) < _TINIEST) & (gains != 0), np.copysign(_TINIEST, gains), shrunk)


def _number(function: Callable[[Any], Any], argument: Any, what: str) -> float:
    try:
        value = float(function(argument))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Flavor.{what} as a callable must take one number and return one number; "
            f"{what}({argument!r}) failed: {error}"
        ) from error
    if not math.isfinite(value):
        raise ValueError(f"Flavor.{what} as a callable must return a finite number; {what}({argument!r}) is {value}.")
    return value
