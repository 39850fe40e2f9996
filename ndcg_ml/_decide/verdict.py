"""Map a difference's interval to a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.checks import as_float
from ndcg_ml._core.groups import FloatArray
from ndcg_ml._core.one_line import brief
from ndcg_ml._decide.intervals import FEWEST_FOR_TEST
from ndcg_ml._decide.means import SAME, beta_cdf, beta_quantile, n_equal, t_quantile

# -- map a difference's interval to a verdict -------------------------------------------------------------------------

Verdict: TypeAlias = Literal["better", "worse", "not worse", "equivalent", "unchanged", "undecided"]


def verdict(low: float, high: float, n_queries: int, margin: float | None) -> Verdict:
    """Return the verdict on a difference b - a whose interval is low to high.

    Parameters
    ----------
    low, high : float
        Limits of the interval of the difference.
    n_queries : int
        Number of independent queries or clusters. With fewer than six, the margin is ignored.
    margin : float or None
        Equivalence margin.

    Returns
    -------
    {"better", "worse", "not worse", "equivalent", "undecided"}
        ``equivalent`` if the interval is within the margin on both sides (the two one-sided tests of D. Schuirmann,
        1987). Otherwise ``better`` if it is above 0, ``worse`` if it is below 0, and ``not worse`` if it is above
        -margin (non-inferiority). Without a margin, only ``better``, ``worse`` and ``undecided``. The caller decides
        "unchanged".

    Examples
    --------
    >>> verdict(0.002, 0.03, 50, 0.01), verdict(-0.004, 0.03, 50, 0.01), verdict(-0.004, 0.003, 50, 0.01)
    ('better', 'not worse', 'equivalent')
    >>> verdict(-0.02, -0.004, 50, 0.01), verdict(-0.02, 0.004, 50, 0.01), verdict(-0.004, 0.003, 50, None)
    ('worse', 'undecided', 'undecided')
    """
    if n_queries < FEWEST_FOR_TEST:  # too few to show that a difference is small
        margin = None
    if margin is not None and -margin < low and high < margin:
        return "equivalent"
    if low > SAME:
        return "better"
    if high < -SAME:
        return "worse"
    return "not worse" if margin is not None and low > -margin else "undecided"


def as_margin(margin: object, most: float) -> float | None:
    """Return the margin as a float above 0 and below `most`, or None."""
    if margin is None:
        return None
    number = as_float(margin)
    if number is None:
        raise TypeError(f"margin must be a number above 0, or None; got {brief(margin)}.")
    if not 0 < number < most:
        limits = "above 0" if most == float("inf") else f"above 0 and below {most:g}"
        raise ValueError(
            f"margin must be {limits}, the largest difference that does not matter, such as 0.01; got {brief(margin)}. "
            "Leave it out if any difference matters."
        )
    return number


# -- limits of a difference if not all queries changed, which allow for changes of other queries ----------------------

SMALLEST = 1e-3
"""A change below this share of the largest one does not count, so that changes of no size decide nothing."""
# Divisor of the level: the largest change and the limit of the mean change are estimates, too.
_TAILS = 4
# Confidence of the interval of the mean change.
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class FewChanged:
    """The number of queries that changed, and what other queries may lose or gain.

    Notes
    -----
    Let m of n queries have changed. The share of all queries that change may be as large as the upper limit p_U of a
    binomial share (C. Clopper and E. Pearson, Biometrika 26, 1934). Unseen changes are charged with the largest loss
    and gain among the changed queries, or with the limits of the t interval of their mean change if these are smaller:

        low <= difference - (p_U - m / n) loss,    high >= difference + (p_U - m / n) gain

    The interval of the mean narrows with m, so the charge falls from the largest change to the mean one.

    Attributes
    ----------
    share : float
        Share of the weight that belongs to changed queries.
    n : float
        Effective sample size.
    loss, gain : float
        0 or above.
    """

    share: float
    n: float
    loss: float
    gain: float

    @classmethod
    def from_differences(cls, d: FloatArray, changed: NDArray[np.bool_], share: FloatArray) -> FewChanged:
        """Summarise the difference of each query (or cluster), whether it changed, and its share of the mean."""
        of_changed, n = float(share[changed].sum()), n_equal(share)
        loss, gain = max(0.0, float(-d.min())), max(0.0, float(d.max()))
        if np.count_nonzero(changed) > 1:
            change, part = d[changed], share[changed] / of_changed
            mean, m = float(part @ change), n_equal(part)
            error = math.sqrt(float(np.square(part * (change - mean)).sum()) * m / max(m - 1, 1e-9))
            reach = t_quantile(_CONFIDENCE, max(1.0, m - 1)) * error
            loss, gain = min(loss, max(0.0, reach - mean)), min(gain, max(0.0, reach + mean))
        return cls(of_changed, n, loss, gain)

    def share_at_most(self, level: float) -> float:
        """Return the upper limit of the share of queries that change."""
        if not self.share:
            return float(1 - (level / 2) ** (1 / self.n))
        m = self.share * self.n
        return beta_quantile(1 - level / _TAILS, m + 1, self.n - m)

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
        return min(1.0, _TAILS * beta_cdf(1 - share, self.n - m, m + 1))
