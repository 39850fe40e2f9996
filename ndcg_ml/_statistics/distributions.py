"""The normal, Student's t and the beta distribution: probabilities and quantiles, with the standard library alone."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

# With more degrees of freedom, Student's t distribution is the normal one to six digits.
_MANY = 1e6


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
    if dof > _MANY:
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
    """Return the quantile of the beta distribution, by Newton's iteration between limits."""
    low, high, x = 0.0, 1.0, a / (a + b)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    while low < x < high:
        excess = beta_cdf(x, a, b) - probability
        low, high = (low, x) if excess > 0 else (x, high)
        step = excess / math.exp(scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))
        if abs(step) < 1e-15:
            return x
        x = x - step if low < x - step < high else (low + high) / 2
    return x


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    fraction = d
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
    Newton's iteration for log t, on the logarithm of ``t_tail``.
    """
    outside = 1 - confidence
    t = -normal_quantile(outside / 2)  # 1 + confidence would lose another digit
    if dof > _MANY:
        return t
    scale = math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2) - math.log(dof * math.pi) / 2
    for _ in range(50):
        tail = t_tail(t, dof)
        density = 2 * math.exp(scale - (dof + 1) / 2 * math.log1p(t * t / dof))
        step = tail * math.log(tail / outside) / (density * t)
        t *= math.exp(step)
        if abs(step) < 1e-9:  # the next step would be of the order of its square
            break
    return t
