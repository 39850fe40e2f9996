"""Clusters of related queries (of one user, topic or session), which are then the sampling units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ndcg_ml._core.arrays import FloatArray, IntArray
from ndcg_ml._core.one_line import brief
from ndcg_ml._decide.bounded import FEWEST_QUERIES
from ndcg_ml._decide.means import SAME, Means, spread_of


def numbered(labels: Sequence[Any]) -> IntArray:
    """Return the labels as numbers 0, 1, ... in order of first appearance."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)


def aggregate_clusters(means: Means, codes: IntArray) -> Means:
    """Return one row per cluster: the mean of its queries, with the sum of their weights.

    Raises
    ------
    ValueError
        Fewer than six clusters, or one with more than half of the weight.
    """
    present, codes = np.unique(codes, return_inverse=True)
    if present.size < FEWEST_QUERIES:
        raise ValueError(
            f"cluster must form at least {FEWEST_QUERIES} clusters, because with fewer no test can reject at 5 %; got "
            f"{present.size} for {codes.size} queries. Evaluate more of them, or leave cluster out if queries are "
            "independent."
        )
    weight = np.zeros((present.size, means.values.shape[1]))
    total = np.zeros_like(weight)
    np.add.at(weight, codes, means.weight)
    np.add.at(total, codes, means.weight * means.values)
    share = weight / weight.sum(axis=0)
    if share.max() > 0.5 + SAME:
        largest = int(np.argmax(share.max(axis=1)))
        raise ValueError(
            f"no cluster may have most of the weight, because the others do not show how it varies; cluster number "
            f"{brief(int(present[largest]))} has {100 * share.max():.0f} % of it. Compare it separately, or pass "
            "other weights as query_weight."
        )
    return Means.from_weights(total / weight, weight)


def robust_error(means: Means) -> tuple[FloatArray, FloatArray]:
    """Return the standard error of each mean over clusters, and the degrees of freedom of its t interval.

    Parameters
    ----------
    means : Means
        One row per cluster, from ``aggregate_clusters``.

    Notes
    -----
    With h the share of a cluster in the mean, the variance is the sum of h^2 (value - mean)^2 / (1 - h), which is
    unbiased if the variances of clusters are as their weights imply (CR2). The degrees of freedom are Satterthwaite's
    for that sum: G - 1 for G equal clusters, fewer for unequal ones. R. Bell and D. McCaffrey, Bias reduction in
    standard errors for linear regression with multi-stage samples, Survey Methodology 28(2), 2002.
    """
    h = means.share()
    error = np.sqrt((h**2 * (means.values - means.mean()) ** 2 / (1 - h)).sum(axis=0))
    ratio = h**2 / (1 - h)
    off_diagonal = ratio.sum(axis=0) ** 2 - (ratio**2).sum(axis=0)
    dof: FloatArray = 1 / ((h**2).sum(axis=0) + off_diagonal)
    return error, dof


def effective_queries(means: Means, clusters: Means) -> FloatArray:
    """Return the effective sample size: independent queries with the same standard errors, at most their number."""
    alone = np.array([spread.standard_error for spread in spread_of(means)])
    together = np.array([spread.standard_error for spread in spread_of(clusters)])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(together > 0, alone / together, 1.0)
    n: FloatArray = means.n_queries * np.minimum(ratio * ratio, 1.0)
    return n
