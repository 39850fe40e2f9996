"""An interval for values between 0 and 1 of which most are near a bound. Its width is never 0."""

from __future__ import annotations

import math

import numpy as np

from ndcg_ml._core.arrays import FloatArray
from ndcg_ml._decide.means import SAME, n_equal
from ndcg_ml._decide.quantiles import t_quantile

# Weights of the pseudo-queries at the further and the nearer bound. docs/deciding.md has the coverage.
_FAR, _NEAR = 0.75, 0.5
_FEW_OTHERS = 20
# Values this close to a bound count as being at the bound.
_CLOSE = 0.05
FEW_QUERIES = 30
"""With fewer queries, a bootstrap interval is too narrow; docs/deciding.md has the coverage."""


def is_unsafe_to_resample(values: FloatArray, share: FloatArray) -> bool:
    """Whether the values are between 0 and 1, and a bootstrap interval of them would be too narrow.

    It would if the effective sample size is below 30 or below half of the number of queries; if all values are equal;
    or if more than half of them are within 0.05 of the same bound and fewer than 20 are elsewhere.
    """
    if values.min() < -SAME or values.max() > 1 + SAME:
        return False
    n = n_equal(share)
    if n < FEW_QUERIES - SAME or 2 * n < values.size or np.ptp(values) <= SAME:
        return True
    return piles_up(values, 0.0) or piles_up(values, 1.0)


def piles_up(values: FloatArray, point: float) -> bool:
    """Whether more than half of the values are within 0.05 of the point and fewer than 20 are elsewhere."""
    near = int((np.abs(values - point) <= _CLOSE).sum())
    return 2 * near > values.size and values.size - near < _FEW_OTHERS


def bounded_limits(
    values: FloatArray,
    share: FloatArray,
    confidence: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    variance: float = 0.0,
) -> tuple[float, float]:
    """Return the limits of the mean of values between bounds.

    Parameters
    ----------
    values, share : ndarray of float64, shape (n_queries,)
        Shares sum to 1.
    confidence : float
    bounds : tuple of float
    variance : float
        Variance of a term that was added to the mean.

    Raises
    ------
    ValueError
        A value is outside the bounds.

    Notes
    -----
    Student's t interval of the queries and two pseudo-queries: one at the bound that is further from the mean, with
    weight 3/4, and one at the nearer bound, with weight 1/2. Even if all queries score 1, the next one may score 0. A.
    Agresti and B. Coull, Approximate is better than exact for interval estimation of binomial proportions, The American
    Statistician 52(2), 1998, add two successes and two failures to proportions.
    """
    least, most = bounds
    if values.min() < least - SAME or values.max() > most + SAME:
        outside = float(values.min() if values.min() < least - SAME else values.max())
        raise ValueError(
            f"method='bounded' needs values between 0 and 1; a query has {outside:g}. Choose method='bca' or 't'."
        )
    n = n_equal(share)
    mean = float(share @ values)
    near, far = (most, least) if mean >= (least + most) / 2 else (least, most)
    total = n + _FAR + _NEAR
    centre = (n * mean + _FAR * far + _NEAR * near) / total
    square = (n * float(share @ values**2) + _FAR * far**2 + _NEAR * near**2) / total
    square = max(0.0, square - centre * centre) / (total - 1) + variance
    reach = t_quantile(confidence, total - 1) * math.sqrt(square)
    return max(least, min(centre - reach, mean)), min(most, max(centre + reach, mean))


FEWEST_QUERIES = 6
"""With fewer queries or clusters, the exact test cannot reject at 5 %: its smallest p-value is 2^(1-n)."""
