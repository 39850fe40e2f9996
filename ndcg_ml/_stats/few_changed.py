"""The limits of a difference when few queries changed: other queries may change too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import FloatArray
from ndcg_ml._stats.means import n_equal
from ndcg_ml._stats.quantiles import beta_cdf, beta_quantile

ENOUGH = 200
"""With this many changed queries the limits are not adjusted."""
# Below this many, unseen queries are charged with the largest change; from here on, with the mean change.
_FEW = 20


@dataclass(frozen=True, slots=True)
class FewChanged:
    """The number of queries that changed, and their largest or mean change.

    Notes
    -----
    Of n queries m changed. The share of all queries that change may be larger than m / n by as much as the upper limit
    p_U of a binomial share says (C. Clopper and E. Pearson, Biometrika 26, 1934). Those that were not seen are charged
    with the largest loss and the largest gain of those that were, or from 20 changed queries on with their mean:

        low <= difference - (p_U - m / n) loss,    high >= difference + (p_U - m / n) gain

    Attributes
    ----------
    share : float
        Share of the weight of the queries that changed.
    n : float
        Number of queries; under unequal weights, of equal ones that would vary as much.
    loss, gain : float
        0 or above.
    tails : int
        The level is divided by it: 4 with the largest change, because that is an estimate too, and 2 with the mean.
    """

    share: float
    n: float
    loss: float
    gain: float
    tails: int

    @classmethod
    def of(cls, d: FloatArray, changed: NDArray[np.bool_], share: FloatArray) -> FewChanged:
        """From the difference of each query (or cluster), whether it changed, and its share of the mean."""
        of_changed, n = float(share[changed].sum()), n_equal(share)
        if np.count_nonzero(changed) < _FEW:
            return cls(of_changed, n, max(0.0, float(-d.min())), max(0.0, float(d.max())), 4)
        mean = float(share @ d) / of_changed
        return cls(of_changed, n, max(0.0, -mean), max(0.0, mean), 2)

    def share_at_most(self, level: float) -> float:
        """The upper limit of the share of queries that change."""
        if not self.share:
            return float(1 - (level / 2) ** (1 / self.n))
        m = self.share * self.n
        return beta_quantile(1 - level / self.tails, m + 1, self.n - m)

    def limits(self, difference: float, level: float) -> tuple[float, float]:
        """An upper bound of the low limit, and a lower bound of the high one."""
        unseen = self.share_at_most(level) - self.share
        return difference - unseen * self.loss, difference + unseen * self.gain

    def p_value(self, difference: float) -> float:
        """The level at which these limits begin to leave out 0."""
        against = self.loss if difference > 0 else self.gain
        if not against:
            return 0.0
        m = self.share * self.n
        share = min(1.0, self.share + abs(difference) / against)
        return min(1.0, self.tails * beta_cdf(1 - share, self.n - m, m + 1))
