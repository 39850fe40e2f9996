"""Limits of a difference if few queries changed, which allow for changes of other queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import FloatArray
from ndcg_ml._stats.means import n_equal
from ndcg_ml._stats.quantiles import beta_cdf, beta_quantile

ENOUGH = 200
"""With at least as many changed queries, the limits are not adjusted."""
# With fewer changed queries, unseen queries are charged with the largest change, otherwise with the mean change.
_FEW = 20


@dataclass(frozen=True, slots=True)
class FewChanged:
    """The number of queries that changed, and their largest or mean change.

    Notes
    -----
    Let m of n queries have changed. The share of all queries that change may be as large as the upper limit p_U of a
    binomial share (C. Clopper and E. Pearson, Biometrika 26, 1934). Unseen changes are charged with the largest loss
    and gain among the changed queries, or with their mean if 20 or more changed:

        low <= difference - (p_U - m / n) loss,    high >= difference + (p_U - m / n) gain

    Attributes
    ----------
    share : float
        Share of the weight that belongs to changed queries.
    n : float
        Effective sample size.
    loss, gain : float
        0 or above.
    tails : int
        Divisor of the level: 4 with the largest change, because it is also an estimate, and 2 with the mean.
    """

    share: float
    n: float
    loss: float
    gain: float
    tails: int

    @classmethod
    def from_differences(cls, d: FloatArray, changed: NDArray[np.bool_], share: FloatArray) -> FewChanged:
        """Summarise the difference of each query (or cluster), whether it changed, and its share of the mean."""
        of_changed, n = float(share[changed].sum()), n_equal(share)
        if np.count_nonzero(changed) < _FEW:
            return cls(of_changed, n, max(0.0, float(-d.min())), max(0.0, float(d.max())), 4)
        mean = float(share @ d) / of_changed
        return cls(of_changed, n, max(0.0, -mean), max(0.0, mean), 2)

    def share_at_most(self, level: float) -> float:
        """Return the upper limit of the share of queries that change."""
        if not self.share:
            return float(1 - (level / 2) ** (1 / self.n))
        m = self.share * self.n
        return beta_quantile(1 - level / self.tails, m + 1, self.n - m)

    def limits(self, difference: float, level: float) -> tuple[float, float]:
        """Return an upper bound of the low limit, and a lower bound of the high limit."""
        unseen = self.share_at_most(level) - self.share
        return difference - unseen * self.loss, difference + unseen * self.gain

    def p_value(self, difference: float) -> float:
        """Return the level at which these limits begin to exclude 0."""
        against = self.loss if difference > 0 else self.gain
        if not against:
            return 0.0
        m = self.share * self.n
        share = min(1.0, self.share + abs(difference) / against)
        return min(1.0, self.tails * beta_cdf(1 - share, self.n - m, m + 1))
