"""Simultaneous intervals of several differences: one critical value for all of them (max-T)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ndcg_ml._core.arrays import FloatArray, IntArray
from ndcg_ml._decide.means import SAME, Means, n_equal
from ndcg_ml._decide.randomisation import rejected

# Number of values permuted at once, so that they fit in the processor's cache.
_BLOCK = 1 << 17
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
    draw gives every query a random sign, which all its centred differences share. Permutations would give each two
    differences the correlation 1/2, but it is higher if the baseline varies most, and lower if it varies little. A draw
    keeps the largest |t| of a pair, where t is a difference over its own standard error. With 500 queries or more (200
    for at least 30 systems), the means are close to normal, with equal covariances under permutations and the
    covariances of the queries under signs. They are then drawn from that distribution, and each t is given the tails of
    Student's t.

    B. Carterette, Multiple testing in statistical analysis of systems-based information retrieval experiments, ACM TOIS
    30(1), 2012. P. Westfall and S. Young, Resampling-based multiple testing, 1993. C. Dunnett, A multiple comparison
    procedure for comparing several treatments with a control, JASA 50, 1955.
    """
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    share = means.share()[:, 0]
    n_effective = n_equal(share)
    enough = MANY_QUERIES if means.values.shape[1] < _MANY_SYSTEMS else _ENOUGH_QUERIES
    if n_effective >= enough:
        draws = _limit(means, first, second, n_effective - 1, n_draws, rng)
    elif (first == first[0]).all():
        draws = _signed(means, first, second, n_draws, rng)
    else:
        draws = _permuted(means, first, second, n_draws, rng)
    return MaxT(np.sort(np.concatenate([t.max(axis=1) for t in draws])))


def _limit(
    means: Means, first: IntArray, second: IntArray, dof: float, n_draws: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield |t| of pairs whose mean differences are normal."""
    if (first == first[0]).all():
        influence = means.influence()
        yield normal_t(influence[:, second] - influence[:, first], dof, n_draws, rng)[:, None]
        return
    n_systems = means.values.shape[1]
    block = max(1, _BLOCK // n_systems**2)
    for at in range(0, n_draws, block):
        mean = rng.standard_normal((min(block, n_draws - at), n_systems))
        yield _student_tails(np.abs(mean[:, second] - mean[:, first]) / math.sqrt(2), dof)


def normal_t(parts: FloatArray, dof: float, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw the largest |t| of normal sums whose terms are the rows."""
    size = np.sqrt((parts**2).sum(axis=0))
    scaled = parts / np.where(size > SAME, size, 1.0)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    root = (vectors * np.sqrt(values.clip(0.0))).T
    block = max(1, _BLOCK // len(root))
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
    block = max(1, _BLOCK // n)
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
    block = max(1, _BLOCK // (n_systems * max(n, n_systems)))
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
