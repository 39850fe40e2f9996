"""An interval for values between 0 and 1 of which most are near a bound. Its width is never 0."""

from __future__ import annotations

import math

import numpy as np

from ndcg_ml._data.arrays import FloatArray
from ndcg_ml._stats.means import SAME, n_equal
from ndcg_ml._stats.quantiles import t_quantile

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
    most = max(int((np.abs(values - bound) <= _CLOSE).sum()) for bound in (0.0, 1.0))
    return 2 * most > values.size and values.size - most < _FEW_OTHERS


def bounded_limits(values: FloatArray, share: FloatArray, confidence: float) -> tuple[float, float]:
    """Return the limits of the mean of values between 0 and 1.

    Parameters
    ----------
    values, share : ndarray of float64, shape (n_queries,)
        Shares sum to 1.
    confidence : float

    Raises
    ------
    ValueError
        A value is below 0 or above 1.

    Notes
    -----
    Student's t interval of the queries and two pseudo-queries: one at the bound that is further from the mean, with
    weight 3/4, and one at the nearer bound, with weight 1/2. Even if all queries score 1, the next one may score 0. A.
    Agresti and B. Coull, Approximate is better than exact for interval estimation of binomial proportions, The American
    Statistician 52(2), 1998, add two successes and two failures to proportions.
    """
    if values.min() < -SAME or values.max() > 1 + SAME:
        outside = float(values.min() if values.min() < -SAME else values.max())
        raise ValueError(
            f"method='bounded' needs values between 0 and 1; a query has {outside:g}. Choose method='bca' or 't'."
        )
    n = n_equal(share)
    mean = float(share @ values)
    near, far = (1.0, 0.0) if mean >= 0.5 else (0.0, 1.0)
    total = n + _FAR + _NEAR
    centre = (n * mean + _FAR * far + _NEAR * near) / total
    square = (n * float(share @ values**2) + _FAR * far + _NEAR * near) / total
    reach = t_quantile(confidence, total - 1) * math.sqrt(max(0.0, square - centre * centre) / (total - 1))
    return max(0.0, min(centre - reach, mean)), min(1.0, max(centre + reach, mean))
