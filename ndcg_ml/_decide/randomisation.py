"""The randomisation test of the difference of two systems, and sample sizes for detecting a difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.checks import finite_number
from ndcg_ml._core.layout import BoolArray, FloatArray, IntArray
from ndcg_ml._decide.distributions import normal_quantile, t_quantile
from ndcg_ml._decide.means import SAME, Means, n_equal

Signs: TypeAlias = NDArray[np.uint8]
"""Vectors of signs, one per row and one bit per query. A set bit flips the sign of its query."""

# Number of bytes drawn at once, so that intermediate arrays fit in the processor's cache.
_BLOCK = 1 << 16
# Number of bundles of queries that are exchanged if there are more than twice as many queries.
_BUNDLES = 2048
# With more queries, there are more exchanges than any caller draws.
_MOST_EXACT = 24
# An enumeration of more queries exchanges those without a difference in bundles.
_MOST_EQUAL = 1023


@dataclass(frozen=True, slots=True)
class SignFlip:
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
    low: float = field(default=math.nan, repr=False)
    high: float = field(default=math.nan, repr=False)


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
    observed one. Queries with equal values are not enumerated.

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
    share = means.share()[:, 0]
    parts = share[:, None] * means.values
    differ = [np.abs(means.values[:, b] - means.values[:, a]) > SAME for a, b in pairs]
    enumerable = [_can_enumerate(int(queries.sum()), n_resamples) for queries in differ]
    drawn = None  # all other pairs share the same signs
    if not all(enumerable):
        columns, shares = _bundled(parts), None if level is None else _bundled(share[:, None])[:, 0]
        drawn = _SignedSums(columns, shares, drawn_signs(len(columns), n_resamples, rng))
    total = parts.sum(axis=0)
    tests = []
    for (a, b), queries, is_enumerable in zip(pairs, differ, enumerable, strict=True):
        if drawn is None or is_enumerable:
            differences = np.where(queries, parts[:, b] - parts[:, a], 0.0)
            tests.append(_enumerated(differences, queries, share, n_resamples, rng, level))
        else:
            difference = float(total[b] - total[a])
            tests.append(drawn.test(drawn.sums[:, b] - drawn.sums[:, a], difference, level, exact=False))
    return tests


def _can_enumerate(n: int, n_resamples: int) -> bool:
    return n <= _MOST_EXACT and 2**n <= n_resamples


def _enumerated(
    differences: FloatArray,
    differ: BoolArray,
    share: FloatArray,
    n_resamples: int,
    rng: np.random.Generator,
    level: float | None,
) -> SignFlip:
    """Test a pair by all exchanges of the queries that differ.

    The other queries do not change the p-value, but they do change which other differences are accepted.
    """
    total = float(differences.sum())
    if level is None:
        signs = _SignedSums(differences[differ, None], None, _all_signs(int(differ.sum())))
        return signs.test(signs.sums[:, 0], total, None, exact=True)
    columns = np.column_stack([differences, share])
    if differ.size > _MOST_EQUAL:
        columns = np.concatenate([columns[differ], _bundled(columns[~differ], _MOST_EQUAL // 2)])
        differ = np.arange(len(columns)) < differ.sum()
    signs = _SignedSums(columns[:, :1], columns[:, 1], _all_signs_of(differ, n_resamples, rng))
    return signs.test(signs.sums[:, 0], total, level, exact=True)


class _SignedSums:
    """Sums of columns of numbers under many vectors of signs, and the share of weight with a plus sign.

    Attributes
    ----------
    sums : ndarray of float64, shape (n_vectors, n_columns)
    plus : ndarray of float64, shape (n_vectors,), or None
    """

    def __init__(self, columns: FloatArray, share: FloatArray | None, signs: Iterator[Signs]) -> None:
        tables = [_SignedSum(column) for column in columns.T]
        of_share = None if share is None else _SignedSum(share)
        sums, plus = [], []
        for block in signs:
            sums.append(np.stack([table(block) for table in tables], axis=1))
            if of_share is not None:
                plus.append((1 + of_share(block)) / 2)
        self.sums: FloatArray = np.concatenate(sums)
        self.plus: FloatArray | None = np.concatenate(plus) if plus else None

    def test(self, signed: FloatArray, difference: float, level: float | None, *, exact: bool) -> SignFlip:
        """Test one difference, from its signed sums."""
        extreme = np.abs(signed) >= abs(difference) - SAME
        n_extreme, n_all = int(np.count_nonzero(extreme)), signed.size
        if not exact:  # count the observed assignment, too
            n_extreme, n_all = n_extreme + 1, n_all + 1
        p_value = n_extreme / n_all
        if level is None:
            return SignFlip(p_value, exact)
        assert self.plus is not None
        # The mean of each of the two parts. If one part is empty, every difference is accepted.
        minus = 1 - self.plus
        whole = np.minimum(self.plus, minus) <= SAME
        with np.errstate(divide="ignore", invalid="ignore"):
            of_plus, of_minus = (difference + signed) / 2 / self.plus, (difference - signed) / 2 / minus
        lows = np.where(whole, -np.inf, np.minimum(of_plus, of_minus))
        highs = np.where(whole, np.inf, np.maximum(of_plus, of_minus))
        # Near 0, rounding could make the limits disagree with the p-value.
        lows[extreme], highs[extreme] = np.minimum(lows[extreme], 0.0), np.maximum(highs[extreme], 0.0)
        at = rejected(level, n_all) - (not exact)
        if at >= signed.size:
            return SignFlip(p_value, exact, difference, difference)
        low, high = np.partition(lows, at)[at], np.partition(highs, signed.size - 1 - at)[signed.size - 1 - at]
        return SignFlip(p_value, exact, min(float(low), difference), max(float(high), difference))


def _bundled(rows: FloatArray, n_bundles: int = _BUNDLES) -> FloatArray:
    """Sum strided bundles if there are more than twice `n_bundles` rows.

    If systems are exchangeable, so are their values in whole bundles. So the test stays exact, and with thousands of
    bundles the loss of power is negligible.
    """
    if len(rows) <= 2 * n_bundles:
        return rows
    n_layers = -(-len(rows) // n_bundles)
    padded = np.zeros((n_layers * n_bundles, rows.shape[1]))
    padded[: len(rows)] = rows
    return padded.reshape(n_layers, n_bundles, -1).sum(axis=0)


def rejected(level: float, n: int) -> int:
    """Return the largest number of cases as extreme as the observed one, of n, at which the test rejects."""
    return math.floor(level * n + 1e-9)


class _SignedSum:
    """Sum of numbers under signs. A table has the sum of each eight numbers for each byte of signs."""

    def __init__(self, numbers: FloatArray) -> None:
        n_bytes = -(-numbers.size // 8)
        padded = np.zeros((n_bytes, 8))
        padded.reshape(-1)[: numbers.size] = numbers
        flags = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
        self._table = (padded[:, None, :] * (1.0 - 2.0 * flags)).sum(axis=2).reshape(-1)
        self._starts = np.arange(n_bytes) * 256

    def __call__(self, signs: Signs) -> FloatArray:
        return self._table.take(signs + self._starts).sum(axis=1)


def _all_signs(n: int) -> Iterator[Signs]:
    """Yield every vector of n signs."""
    for at in range(0, 2**n, _BLOCK):
        numbers = np.arange(at, min(at + _BLOCK, 2**n), dtype="<u4")
        yield numbers.view(np.uint8).reshape(-1, 4)[:, : -(-n // 8)]


def _all_signs_of(differ: BoolArray, n_resamples: int, rng: np.random.Generator) -> Iterator[Signs]:
    """Yield every vector of signs of the queries that differ, each equally often.

    The signs of the other queries are enumerated, too, if there are at most `n_resamples` in all; otherwise drawn.
    """
    if _can_enumerate(differ.size, n_resamples):
        yield from _all_signs(differ.size)
        return
    n_patterns = 2 ** int(differ.sum())
    n_vectors = n_patterns * -(-n_resamples // n_patterns)
    block = _BLOCK // differ.size
    for at in range(0, n_vectors, block):
        numbers = np.arange(at, min(at + block, n_vectors)) % n_patterns
        bits = rng.integers(0, 2, (numbers.size, differ.size), dtype=np.uint8)
        bits[:, differ] = numbers[:, None] >> np.arange(int(differ.sum())) & 1
        yield np.packbits(bits, axis=1, bitorder="little")


def drawn_signs(n: int, n_resamples: int, rng: np.random.Generator) -> Iterator[Signs]:
    """Yield random vectors of n signs, in blocks."""
    n_bytes = -(-n // 8)
    block = _BLOCK // n_bytes
    for at in range(0, n_resamples, block):
        yield rng.integers(0, 256, (min(block, n_resamples - at), n_bytes), dtype=np.uint8)


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
    chance = _as_power(power)
    z = normal_quantile((1 + confidence) / 2)
    reach = max(0.0, z + normal_quantile(chance))
    deviations = reach * deviation / size
    needed = deviations * deviations + z * z / 2
    if math.isinf(needed):
        raise ValueError(f"difference must be larger; {size:g} would need more queries than float64 can count.")
    # The exact test has no p-value below 2^(1 - n).
    return max(math.ceil(1 - math.log2(1 - confidence) - SAME), math.ceil(needed))


def smallest_detectable(
    error: float, dof: float, power: object, confidence: float, least_p: float, unchanged: float
) -> float:
    """Return the true difference that a test detects with this power; see ``Difference``.

    Infinite if the smallest p-value of the test, `least_p`, is above the level. `unchanged` is the share of queries.
    """
    chance = _as_power(power)
    if least_p > (1 - confidence) * (1 + SAME):
        return math.inf
    t = t_quantile(confidence, dof)
    z = normal_quantile(chance)
    # The number of changed queries varies, too.
    variance = 1 + t * t / (2 * dof) + unchanged * (t + z) ** 2 / (4 * (dof + 1))
    reach = t * (1 - 1 / (4 * dof)) + z * math.sqrt(variance)
    return max(0.0, reach) * error


def _as_power(power: object) -> float:
    chance = finite_number(power, "power")
    if not 0 < chance < 1:
        raise ValueError(f"power must be above 0 and below 1; got {power}.")
    return chance


# -- max-T: one critical value for several differences ----------------------------------------------------------------

# Number of values permuted at once, so that they fit in the processor's cache.
_BLOCK_OF_SIGNS = 1 << 17
MANY_QUERIES = 500
"""With at least as many queries, permutations are replaced by their limit, in which means are normal."""
# With many systems, permutations are slow, so fewer queries suffice for the limit.
_MANY_SYSTEMS, _ENOUGH_QUERIES = 30, 200


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
    """Draw the largest |t| over pairs of columns, by exchanging systems within each query.

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
    The columns are centred, so that a large difference of two systems does not widen the interval of two others. If all
    pairs are compared, each draw permutes the centred values of every query among the systems. Against a baseline, each
    draw gives every query a random sign, which all its centred differences share. Permutations would give any two
    differences a correlation of 1/2; the true correlation is higher if the baseline varies most, and lower if it varies
    little. A draw keeps the largest |t| of a pair, where t is a difference over its own standard error. With 500
    queries or more (200 for at least 30 systems), the means are close to normal, with equal covariances under
    permutations and the covariances of the queries under signs. They are then drawn from that distribution, and each t
    is given the tails of Student's t.

    B. Carterette, Multiple testing in statistical analysis of systems-based information retrieval experiments, ACM TOIS
    30(1), 2012. P. Westfall and S. Young, Resampling-based multiple testing, 1993. C. Dunnett, A multiple comparison
    procedure for comparing several treatments with a control, JASA 50, 1955.
    """
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    share = means.share()[:, 0]
    n_effective = n_equal(share)
    enough = MANY_QUERIES if means.values.shape[1] < _MANY_SYSTEMS else _ENOUGH_QUERIES
    if n_effective > enough * (1 - SAME):  # processors round it differently
        draws = _limit(means, first, second, n_effective - 1, n_draws, rng)
    elif not np.ptp(first):
        draws = _signed(means, first, second, n_draws, rng)
    else:
        draws = _permuted(means, first, second, n_draws, rng)
    return MaxT(np.sort(np.concatenate([t.max(axis=1) for t in draws])))


def _limit(
    means: Means, first: IntArray, second: IntArray, dof: float, n_draws: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield |t| of pairs whose mean differences are normal."""
    if not np.ptp(first):
        influence = means.influence()
        yield normal_t(influence[:, second] - influence[:, first], dof, n_draws, rng)[:, None]
        return
    n_systems = means.values.shape[1]
    block = max(1, _BLOCK_OF_SIGNS // n_systems**2)
    for at in range(0, n_draws, block):
        mean = rng.standard_normal((min(block, n_draws - at), n_systems))
        yield _student_tails(np.abs(mean[:, second] - mean[:, first]) / math.sqrt(2), dof)


def normal_t(parts: FloatArray, dof: float, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw the largest |t| of normal sums whose terms are the rows."""
    size = np.sqrt((parts**2).sum(axis=0))
    scaled = parts / np.where(size > SAME, size, 1.0)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    root = (vectors * np.sqrt(values.clip(0.0))).T
    block = max(1, _BLOCK_OF_SIGNS // len(root))
    drawn = [
        np.abs(rng.standard_normal((min(block, n_draws - at), len(root))) @ root).max(axis=1)
        for at in range(0, n_draws, block)
    ]
    return _student_tails(np.concatenate(drawn), dof)


def _student_tails(t: FloatArray, dof: float) -> FloatArray:
    """Map normal quantiles to quantiles of Student's t, to first order in 1/dof."""
    return t + (t**3 + t) / (4 * dof)


def _signed(
    means: Means, first: IntArray, second: IntArray, n_draws: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield |t| of pairs under random signs of the queries."""
    n, share = means.n_queries, means.share()[:, :1]
    gaps = means.influence()[:, second] - means.influence()[:, first]
    squares, spread = (gaps**2).sum(axis=0), float((share * share).sum())
    block = max(1, _BLOCK_OF_SIGNS // n)
    for at in range(0, n_draws, block):
        signs = 1.0 - 2.0 * rng.integers(0, 2, (min(block, n_draws - at), n))
        difference = signs @ gaps
        variance = squares + difference * (difference * spread - 2 * (signs @ (share * gaps)))
        yield _t(difference, variance * (n / (n - 1)))


def _permuted(
    means: Means, first: IntArray, second: IntArray, n_draws: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield |t| of pairs after permutations of the systems within each query."""
    n, n_systems = means.values.shape
    share = means.share()[:, :1]
    centred = means.values - means.mean()
    spread = float((share * share).sum())
    block = max(1, _BLOCK_OF_SIGNS // (n_systems * max(n, n_systems)))
    for at in range(0, n_draws, block):
        shape = (min(block, n_draws - at), n, n_systems)
        parts = rng.permuted(np.broadcast_to(centred, shape), axis=2) * share
        mean = parts.sum(axis=1)
        # The influence of a query on a difference D is h d - h D, with h its share and d its own difference. The sum of
        # squares comes from products of columns, which needs no column per pair.
        products = np.matmul(parts.transpose(0, 2, 1), parts)
        squares = np.diagonal(products, axis1=1, axis2=2)
        crossed = (share * parts).sum(axis=1)
        difference = mean[:, None, :] - mean[:, :, None]
        variance = squares[:, None, :] + squares[:, :, None] - 2 * products
        variance += difference * (difference * spread - 2 * (crossed[:, None, :] - crossed[:, :, None]))
        yield _t(difference[:, first, second], variance[:, first, second] * (n / (n - 1)))


def _t(difference: FloatArray, variance: FloatArray) -> FloatArray:
    """Return |t|, which is 0 or infinite if nothing varies."""
    constant = variance <= SAME * SAME
    t = np.abs(difference) / np.sqrt(np.where(constant, 1.0, variance))
    t[constant] = np.where(np.abs(difference[constant]) > SAME, np.inf, 0.0)
    return t
