"""Whether two rankings differ, query by query: the mean difference with an interval and a test."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

__all__ = ["Paired", "paired_difference"]

# Values this close differ by rounding alone.
_SAME = 1e-12
# Numbers that are drawn at once.
_BATCH = 1 << 22


@dataclass(frozen=True, kw_only=True)
class Paired:
    """The mean of paired differences b - a.

    Attributes
    ----------
    difference : float
    interval : tuple of float or None
        Percentile bootstrap interval; None of a single pair.
    p_value : float
        Two-sided, of the randomisation test.
    exact : bool
        Whether all assignments of signs were enumerated, rather than some drawn.
    wins, ties, losses : int
        Pairs in which b is above a, equal to 1e-12, and below it.
    """

    difference: float
    interval: tuple[float, float] | None
    p_value: float
    exact: bool
    wins: int
    ties: int
    losses: int


def paired_difference(differences: NDArray[np.float64], *, resamples: int, confidence: float, seed: int) -> Paired:
    """Mean difference, bootstrap interval and randomisation test of differences b - a, one a query.

    Parameters
    ----------
    differences : ndarray of float64
        At least one, all finite.
    resamples : int
        Of the bootstrap, and the most sign assignments of the test: all are enumerated where there are no more.
    confidence : float
        Of the interval.
    seed : int

    Returns
    -------
    Paired

    Notes
    -----
    The test's null hypothesis is that it is random which of the two values of a query came from which run. Then each
    difference could as well have the other sign; a difference of 0 has none and plays no part in the enumeration.
    """
    apart = np.abs(differences) > _SAME
    signed = differences[apart]
    exact = signed.size < 2 or 2**signed.size <= resamples
    interval: tuple[float, float] | None = None
    mean = float(differences.mean())
    batch = max(1, _BATCH // differences.size)
    if differences.size > 1:
        if np.ptp(differences) <= _SAME:  # every resample has the same mean
            interval = (mean, mean)
        else:
            bounds = stats.bootstrap(
                (differences,),
                np.mean,
                n_resamples=resamples,
                batch=batch,
                confidence_level=confidence,
                method="percentile",
                **_drawn_with(stats.bootstrap, seed),
            ).confidence_interval
            interval = (float(bounds.low), float(bounds.high))
    p_value = 1.0
    if signed.size > 1:  # a single one is as far from 0 with either sign
        # The sum over the pairs that are apart is the mean over all pairs but for a factor that no sign changes.
        with np.errstate(over="ignore"):  # SciPy 1.11 counts the assignments in floats
            test = stats.permutation_test(
                (signed,),
                np.sum,
                permutation_type="samples",
                n_resamples=resamples,
                batch=batch,
                vectorized=True,
                **_drawn_with(stats.permutation_test, seed),
            )
        p_value = float(test.pvalue)
    return Paired(
        difference=mean,
        interval=interval,
        p_value=p_value,
        exact=exact,
        wins=int((signed > 0).sum()),
        ties=int(differences.size - signed.size),
        losses=int((signed < 0).sum()),
    )


def _drawn_with(function: Any, seed: int) -> dict[str, Any]:
    """The generator, by the name that this version of SciPy has for it (1.15 renamed it)."""
    name = "rng" if "rng" in inspect.signature(function).parameters else "random_state"
    return {name: np.random.default_rng(seed)}
