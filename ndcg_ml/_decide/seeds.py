"""Several runs (seeds) of each system: queries and runs are crossed random effects."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ndcg_ml._core.arrays import FloatArray
from ndcg_ml._decide.means import SAME
from ndcg_ml._decide.quantiles import t_tail


@dataclass(frozen=True, slots=True)
class CrossedError:
    """The standard error of the difference of two systems over queries and runs.

    Attributes
    ----------
    standard_error : float
    dof : float
        Degrees of freedom of its t interval.
    """

    standard_error: float
    dof: float

    def p_value(self, difference: float) -> float:
        """Return the two-sided p-value of the hypothesis of no difference."""
        if abs(difference) <= SAME:
            return 1.0
        return t_tail(abs(difference) / self.standard_error, self.dof) if self.standard_error > 0 else 0.0


def crossed_error(over_queries: float, n_units: int, *runs: FloatArray) -> CrossedError:
    """Return the standard error of a difference over queries and runs.

    Parameters
    ----------
    over_queries : float
        The standard error over queries (or clusters) of the difference of the systems' means over runs.
    n_units : int
        Number of queries or clusters.
    *runs : ndarray of float64, shape (n_runs,)
        The value of each run, for each of the two systems.

    Notes
    -----
    Queries and runs are crossed random effects. The variance is the sum of two parts: the variance over queries of the
    means over runs, and for each system the variance over runs of the means over queries, each divided by its number.
    The interaction of queries and runs is in both parts, so the error is conservative, as in the pigeonhole bootstrap
    (A. Owen, The pigeonhole bootstrap, Annals of Applied Statistics 1(2), 2007). Degrees of freedom are
    Satterthwaite's. Runs of different systems are independent. X. Bouthillier et al., Accounting for variance in
    machine learning benchmarks, MLSys 2021.
    """
    parts = [(over_queries**2, n_units - 1)]
    parts += [(float(values.var(ddof=1)) / values.size, values.size - 1) for values in runs]
    variance = math.fsum(part for part, _ in parts)
    squares = math.fsum(part * part / dof for part, dof in parts)
    return CrossedError(math.sqrt(variance), variance * variance / squares if squares > 0 else float(n_units - 1))
