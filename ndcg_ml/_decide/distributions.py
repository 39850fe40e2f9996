"""The normal, Student's t and the beta distribution: probabilities and quantiles, with the standard library alone."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist


def normal_cdf(z: float) -> float:
    """Return the probability that a standard normal variable is below z."""
    return math.erfc(-z / math.sqrt(2)) / 2  # NormalDist().cdf loses digits of small probabilities


def normal_quantile(probability: float) -> float:
    """Return the quantile of the standard normal distribution, for a probability between 0 and 1."""
    return NormalDist().inv_cdf(probability)


def t_tail(t: float, dof: float) -> float:
    """Return the probability that |T| is above t >= 0, for a variable T with Student's t distribution.

    Notes
    -----
    The incomplete beta function at dof/(dof + t^2), with dof/2 and 1/2. Above a million degrees of freedom, the normal
    distribution.
    """
    if dof > 1e6:
        return math.erfc(t / math.sqrt(2))
    return beta_cdf(dof / (dof + t * t), dof / 2, 0.5)


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the distribution function of the beta distribution: the incomplete beta function.

    Notes
    -----
    Computed by its continued fraction (M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 26.5.8,
    evaluated as W. Lentz does).
    """
    if not 0 < x < 1:
        return float(x > 0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


@lru_cache(maxsize=1024)
def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the quantile of the beta distribution, by bisection."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if beta_cdf(middle, a, b) < probability else (low, middle)
    return middle


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function."""
    tiny = 1e-300
    c = 1.0
    fraction = d = 1 / (1 - (a + b) * x / (a + 1))
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 + term * d, 1 + term / c
            d, c = 1 / (d if abs(d) > tiny else tiny), c if abs(c) > tiny else tiny
            fraction *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return fraction


@lru_cache(maxsize=1024)
def t_quantile(confidence: float, dof: float) -> float:
    """Return the t that |T| is below with this probability, for a variable T with Student's t distribution.

    Parameters
    ----------
    confidence : float
        Above 0 and below 1.
    dof : float
        Degrees of freedom, 1 or more.

    Notes
    -----
    Bisection of ``t_tail`` in the angle arctan(t/sqrt(dof)).
    """
    low, high = 0.0, math.pi / 2
    while low < (angle := (low + high) / 2) < high:
        below = t_tail(math.sqrt(dof) * math.tan(angle), dof) > 1 - confidence
        low, high = (angle, high) if below else (low, angle)
    return math.sqrt(dof) * math.tan(angle)
