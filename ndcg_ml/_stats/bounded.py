"""An interval for values between 0 and 1 that pile up at a bound: it never has the width 0."""

from __future__ import annotations

import math

import numpy as np

from ndcg_ml._data.arrays import FloatArray
from ndcg_ml._stats.means import SAME, n_equal
from ndcg_ml._stats.quantiles import t_quantile

# Queries that the bound far from the mean, and the one next to it, count as. docs/deciding.md has the coverage.
_FAR, _NEAR = 0.75, 0.5
_FEW_OTHERS = 20
# Values this close to a bound pile up there as those at it do.
_CLOSE = 0.05
FEW_QUERIES = 30
"""A bootstrap of fewer queries is too narrow: docs/deciding.md has the coverage."""


def is_unsafe_to_resample(values: FloatArray, share: FloatArray) -> bool:
    """Whether a bootstrap of these values would be too narrow, and they are between 0 and 1.

    It is, where fewer than 30 queries count (under unequal weights: as good as fewer than 30 equal ones), or weights
    are so unequal that half of the queries hardly count; if all values are the same; or where more than half of them
    are within 0.05 of 0, or of 1, and fewer than 20 are elsewhere.
    """
    if values.min() < -SAME or values.max() > 1 + SAME:
        return False
    n = n_equal(share)
    if n < FEW_QUERIES - SAME or 2 * n < values.size or np.ptp(values) <= SAME:
        return True
    most = max(int((np.abs(values - bound) <= _CLOSE).sum()) for bound in (0.0, 1.0))
    return 2 * most > values.size and values.size - most < _FEW_OTHERS


def bounded_limits(values: FloatArray, share: FloatArray, confidence: float) -> tuple[float, float]:
    """The limits of the mean of values between 0 and 1.

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
    Student's t interval of the queries and of two more pseudo-queries: one at the bound that is further from the mean,
    which counts 3/4, and one at the nearer bound, which counts 1/2. However many queries score 1, one that scores 0 may
    come next. A. Agresti and B. Coull, Approximate is better than exact for interval estimation of binomial
    proportions, The American Statistician 52(2), 1998, add two successes and two failures to proportions.
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
