"""The randomisation test of the difference of two systems, and sample sizes for detecting a difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ndcg_ml._core.layout import FloatArray
from ndcg_ml._plain.checks import finite_number, positive_number
from ndcg_ml._statistics.distributions import normal_cdf, normal_quantile, t_quantile
from ndcg_ml._statistics.means import SAME, Means, n_equal

# Number of values drawn at once, so that intermediate arrays fit in the processor's cache.
_BLOCK = 1 << 17
# Number of bundles of queries that are exchanged if there are more than twice as many queries.
_BUNDLES = 1024
# With more queries, there are more exchanges than any caller draws.
_MOST_EXACT = 24
# Number of cases that stand for the numbers of queries that may change in another sample.
_MOST_CASES = 64
# A larger difference, in standard errors, is detected only in cases that hardly occur.
_MOST_ERRORS = 1e3


class SignFlip(NamedTuple):
    """Result of the two-sided randomisation test.

    Attributes
    ----------
    p_value : float
    exact : bool
        Whether all exchanges were enumerated instead of drawing some.
    low, high : float
        The differences that the test does not reject at the given level; nan if no level was given.
    """

    p_value: float
    exact: bool
    low: float = math.nan
    high: float = math.nan


# -- the randomisation test -----------------------------------------------------------------------------------------


def exchange_tests(
    means: Means,
    pairs: Sequence[tuple[int, int]],
    n_resamples: int,
    rng: np.random.Generator,
    level: float | None = None,
) -> list[SignFlip]:
    """Test the difference of each pair of columns by exchanging them; with a level, also return acceptance intervals.

    If the two systems are exchangeable, the two values of a query could have come from either. The test exchanges them
    query by query. It enumerates all exchanges if there are at most `n_resamples`; otherwise it draws that many, in
    addition to the observed one. The p-value is the share of exchanges whose absolute difference is at least the
    observed one, and at least 2^(1 - m) if m queries differ.

    Parameters
    ----------
    means : Means
        Each query has the same weight in all columns; see ``Means.linear``.
    pairs : sequence of (int, int)
        Columns a and b.
    n_resamples : int
    rng : Generator
    level : float, optional
        The level of the tests. If given, ``low`` and ``high`` are the smallest and largest difference between b and a
        that the test does not reject. They exclude 0 if and only if ``p_value`` is at most the level.

    Notes
    -----
    The interval inverts the test. If the true difference is delta, the shifted values d - delta are symmetric about 0.
    Signs split the queries into two parts. The signed sum of d - delta is at least as far from 0 as the plain sum if
    and only if delta is between the means of d over the two parts. So each exchange accepts one range of differences,
    and a limit is the point at which the share of ranges that reach it falls to the level.

    R. A. Fisher, The Design of Experiments, 1935. M. Smucker, J. Allan and B. Carterette, A comparison of statistical
    significance tests for information retrieval evaluation, CIKM 2007. B. Phipson and G. Smyth, Permutation p-values
    should never be zero, 2010.
    """
    share = means.share()[:, :1]
    columns = np.column_stack([share * means.values, share])
    exact = len(share) <= _MOST_EXACT and 2 ** len(share) <= n_resamples
    rows = columns if exact else _bundled(columns)
    signs = _all_signs(len(rows)) if exact else drawn_signs(len(rows), n_resamples, rng)
    signed, total = np.concatenate([block @ rows for block in signs]), columns.sum(axis=0)
    return [
        _test(
            signed[:, b] - signed[:, a],
            (1 + signed[:, -1]) / 2,
            float(total[b] - total[a]),
            int(np.count_nonzero(np.abs(means.values[:, b] - means.values[:, a]) > SAME)),
            level,
            exact=exact,
        )
        for a, b in pairs
    ]


def _test(
    signed: FloatArray, plus: FloatArray, difference: float, differ: int, level: float | None, *, exact: bool
) -> SignFlip:
    """Test a difference, from its signed sums and the shares of weight with a plus sign. `differ` queries differ."""
    extreme = np.abs(signed) >= abs(difference) - SAME
    n_extreme, n_all = int(np.count_nonzero(extreme)), signed.size
    if not exact:  # count the observed assignment, too
        n_extreme, n_all = n_extreme + 1, n_all + 1
    p_value = max(n_extreme / n_all, 2.0 ** min(0, 1 - differ))
    if level is None:
        return SignFlip(p_value, exact)
    # The mean of each of the two parts. If one part is empty, every difference is accepted.
    minus = 1 - plus
    whole = np.minimum(plus, minus) <= SAME
    with np.errstate(divide="ignore", invalid="ignore"):
        of_plus, of_minus = (difference + signed) / 2 / plus, (difference - signed) / 2 / minus
    lows = np.where(whole, -np.inf, np.minimum(of_plus, of_minus))
    highs = np.where(whole, np.inf, np.maximum(of_plus, of_minus))
    # Near 0, rounding could make the limits disagree with the p-value.
    lows[extreme], highs[extreme] = np.minimum(lows[extreme], 0.0), np.maximum(highs[extreme], 0.0)
    at = rejected(level, n_all) - (not exact)
    if at >= signed.size:
        return SignFlip(p_value, exact, difference, difference)
    low = np.partition(lows, at)[at]
    high = np.partition(highs, signed.size - 1 - at)[signed.size - 1 - at]
    near = 0.0 if p_value > level * (1 + SAME) else difference
    return SignFlip(p_value, exact, min(float(low), difference, near), max(float(high), difference, near))


def _bundled(rows: FloatArray) -> FloatArray:
    """Sum strided bundles if there are more than twice `_BUNDLES` rows.

    If systems are exchangeable, so are their values in whole bundles. So the test stays exact, and with a thousand
    bundles the loss of power is negligible.
    """
    if len(rows) <= 2 * _BUNDLES:
        return rows
    return np.stack([rows[at::_BUNDLES].sum(axis=0) for at in range(_BUNDLES)])


def rejected(level: float, n: float) -> int:
    """Return the largest number of cases as extreme as the observed one, of n, at which the test rejects."""
    return math.floor(level * n + 1e-9)


def _all_signs(n: int) -> Iterator[FloatArray]:
    """Yield every vector of n signs, in blocks."""
    numbers = np.arange(2**n)
    for at in range(0, numbers.size, _BLOCK):
        yield 1 - 2 * (numbers[at : at + _BLOCK, None] >> np.arange(n) & 1).astype(np.float64)


def drawn_signs(n: int, n_resamples: int, rng: np.random.Generator, width: int = 0) -> Iterator[FloatArray]:
    """Yield random vectors of n signs, in blocks; `width` is that of the rows that are made of them."""
    for size in _blocks(n_resamples, max(n, width)):
        drawn = rng.integers(0, 256, (size, -(-n // 8)), dtype=np.uint8)
        yield 1 - 2 * np.unpackbits(drawn, axis=1, count=n).astype(np.float64)


def _blocks(n_draws: int, width: int) -> Iterator[int]:
    """Yield the numbers of draws of this width that fit in the processor's cache."""
    block = max(1, _BLOCK // width)
    return (min(block, n_draws - at) for at in range(0, n_draws, block))


# -- planning -------------------------------------------------------------------------------------------------------


def queries_needed(deviation: float, difference: object, power: object, confidence: float) -> int:
    """Return the number of queries needed to detect a difference of this size.

    Parameters
    ----------
    deviation : float
        Standard deviation of the differences over the queries.
    difference : float
        The true difference, not 0.
    power : float
        The probability of detecting it.
    confidence : float
        1 - level of the two-sided test.

    Notes
    -----
    See ``Difference.queries_needed``.
    """
    size = finite_number(difference, "difference")
    if size == 0:
        raise ValueError(
            "difference must not be 0, because no number of queries detects that. Pass the smallest one that matters."
        )
    chance = positive_number(power, "power", 1.0)
    z = normal_quantile((1 + confidence) / 2)
    reach = max(0.0, z + normal_quantile(chance))
    deviations = reach * deviation / size
    needed = deviations * deviations + z * z / 2
    if math.isinf(needed):
        raise ValueError(f"difference must be larger; {size:g} would need more queries than float64 can count.")
    return max(fewest_to_reject(1 - confidence), math.ceil(needed))


def fewest_to_reject(level: float) -> int:
    """Return the number of queries with which the exact test can reject; it has no p-value below 2^(1 - n)."""
    return math.ceil(1 - math.log2(level) - SAME)


class Case(NamedTuple):
    """A test in another sample, in which more or fewer queries may have changed.

    Attributes
    ----------
    probability : float
    dof : float
        Degrees of freedom.
    precision : float
        The square root of the number of changed queries, relative to its mean.
    level : float
        The largest level that the test has, at most the one wanted; 0 if it cannot reject.
    """

    probability: float
    dof: float
    precision: float
    level: float


def changed_cases(n: float, share: float, level: float) -> list[Case]:
    """Return the numbers of changed queries in samples of n queries of which a share changes, for a test by exchanges.

    If m queries changed, its smallest p-value is 2^(1 - m), and all others are multiples of it.
    """
    whole = round(n)
    mean, spread = whole * share, 8 * math.sqrt(whole * share * (1 - share))
    first, last = max(0, math.floor(mean - spread)), min(whole, math.ceil(mean + spread))
    cases = []
    for m in range(first, last + 1, 1 + (last - first) // _MOST_CASES):
        chance = 1.0
        if 0 < share < 1:
            ways = math.lgamma(whole + 1) - math.lgamma(m + 1) - math.lgamma(whole - m + 1)
            chance = math.exp(ways + m * math.log(share) + (whole - m) * math.log1p(-share))
        steps = 2.0 ** min(m - 1, _MOST_EXACT)
        cases.append(Case(chance, m - 1.0, math.sqrt(m / (n * share or 1.0)), rejected(level, steps) / steps))
    total = math.fsum(case.probability for case in cases)
    return [case._replace(probability=case.probability / total) for case in cases]


def smallest_detectable(error: float, power: object, cases: Sequence[Case]) -> float:
    """Return the true difference that a test detects with this power; see ``Difference``.

    Infinite if no difference has this power, because the test cannot reject in too many cases.
    """
    wanted = positive_number(power, "power", 1.0)
    tests = [(case, t_quantile(1 - case.level, case.dof)) for case in cases if case.level > 0]

    def is_detected(size: float) -> bool:
        """Return whether the test detects a difference of this many standard errors."""
        return wanted <= math.fsum(
            case.probability
            * normal_cdf((size * case.precision - t * (1 - 1 / (4 * case.dof))) / math.sqrt(1 + t * t / (2 * case.dof)))
            for case, t in tests
        )

    low, high = 0.0, _MOST_ERRORS
    if not is_detected(high):
        return math.inf
    while high - low > 1e-12 * _MOST_ERRORS:
        middle = (low + high) / 2
        low, high = (low, middle) if is_detected(middle) else (middle, high)
    return low * error


# -- max-T: one critical value for several differences ----------------------------------------------------------------

MANY_QUERIES = 500
"""With at least as many queries, random signs are replaced by their limit, in which means are normal."""


@dataclass(frozen=True, slots=True, eq=False)
class MaxT:
    """The distribution of the largest |t| of a family of differences if no two systems differ.

    Attributes
    ----------
    largest : ndarray of float64, shape (n_draws,)
        Ascending.
    """

    largest: FloatArray

    def p_value(self, t: float) -> float:
        """Return the adjusted p-value: the share of draws, including the observed one, with at least this |t|."""
        n_above = self.largest.size - int(np.searchsorted(self.largest, abs(t) * (1 - SAME), side="left"))
        return (1 + n_above) / (1 + self.largest.size)

    def critical(self, level: float) -> float:
        """Return the |t| above which ``p_value`` is at most `level`; infinite if there is none."""
        at = rejected(level, self.largest.size + 1) - 1
        return math.inf if at < 0 else float(self.largest[::-1][min(at, self.largest.size - 1)])


def max_t(means: Means, pairs: Sequence[tuple[int, int]], n_draws: int, rng: np.random.Generator) -> MaxT:
    """Draw the largest |t| over pairs of columns under random signs of the queries.

    Parameters
    ----------
    means : Means
        Each query has the same weight in all columns; see ``Means.linear``.
    pairs : sequence of (int, int)
        All pairs of columns (Tukey), or those with one of them (Dunnett).
    n_draws : int
    rng : Generator

    Notes
    -----
    The columns are centred, so that a large difference of two systems does not widen the interval of two others. Each
    draw gives every query a random sign, which all its centred differences share, so that they keep their correlations.
    A draw keeps the largest |t| of a pair, where t is a difference over its own standard error. With 500 queries or
    more, the means are close to normal. They are then drawn from the normal distribution with their covariances, and
    each t is given the tails of Student's t.

    B. Carterette, Multiple testing in statistical analysis of systems-based information retrieval experiments, ACM TOIS
    30(1), 2012. P. Westfall and S. Young, Resampling-based multiple testing, 1993. C. Dunnett, A multiple comparison
    procedure for comparing several treatments with a control, JASA 50, 1955.
    """
    share, influence = means.share()[:, :1], means.influence()
    n, n_effective = len(share), n_equal(share[:, 0])
    if n_effective > MANY_QUERIES * (1 - SAME):  # processors round it differently
        return normal_max_t(influence, pairs, n_effective - 1, n_draws, rng)
    first, second = (list(side) for side in zip(*pairs, strict=True))
    squares, spread, largest = _squares(influence, pairs), float((share * share).sum()), []
    for signs in drawn_signs(n, n_draws, rng, len(pairs)):
        # The influence of a query on a difference D is h d - h D, with h its share and d its own difference.
        mean, crossed = signs @ influence, signs @ (share * influence)
        difference = mean[:, second] - mean[:, first]
        variance = squares + difference * (difference * spread - 2 * (crossed[:, second] - crossed[:, first]))
        largest.append(_t(difference, variance * (n / (n - 1))).max(axis=1))
    return MaxT(np.sort(np.concatenate(largest)))


def normal_max_t(
    parts: FloatArray, pairs: Sequence[tuple[int, int]], dof: float, n_draws: int, rng: np.random.Generator
) -> MaxT:
    """Draw the largest |t| over pairs of columns, whose sums are normal, with the tails of Student's t.

    To first order in 1/dof, these are the tails of t + (t^3 + t) / (4 dof) for a normal t.
    """
    first, second = (list(side) for side in zip(*pairs, strict=True))
    root, squares, largest = np.linalg.qr(parts, mode="r"), _squares(parts, pairs), []
    for size in _blocks(n_draws, max(len(root), len(pairs))):
        sums = rng.standard_normal((size, len(root))) @ root
        largest.append(_t(sums[:, second] - sums[:, first], np.tile(squares, (size, 1))).max(axis=1))
    t = np.sort(np.concatenate(largest))
    return MaxT(t + (t**3 + t) / (4 * dof))


def _squares(parts: FloatArray, pairs: Sequence[tuple[int, int]]) -> FloatArray:
    """Return the sum of squares of each difference of two columns."""
    return np.array([np.square(parts[:, b] - parts[:, a]).sum() for a, b in pairs])


def _t(difference: FloatArray, variance: FloatArray) -> FloatArray:
    """Return |t|, which is 0 or infinite if nothing varies."""
    constant = variance <= SAME * SAME
    t = np.abs(difference) / np.sqrt(np.where(constant, 1.0, variance))
    t[constant] = np.where(np.abs(difference[constant]) > SAME, np.inf, 0.0)
    return t
