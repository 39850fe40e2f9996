"""Bias-corrected value of a search, whose best value is too high because the same queries chose the candidate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ndcg_ml._core.groups import FloatArray
from ndcg_ml._decide.means import Interval, drawn_queries, t_quantile


@dataclass(frozen=True, kw_only=True, slots=True)
class HonestValue:
    """The value of a search, corrected for having chosen the winner on the queries that score it.

    Attributes
    ----------
    value : float
        Value of the chosen candidate on queries that were not used to choose it.
    interval : Interval
        Interval of that value over queries.
    best_value : float
        The mean of the chosen candidate on the queries that chose it.
    chosen : tuple of float
        Share of resamples that chose each candidate, in the order of the rows of ``cv_results_``; they sum to 1. Failed
        candidates have 0.
    n_resamples : int
    """

    value: float
    interval: Interval
    best_value: float
    chosen: tuple[float, ...]
    n_resamples: int

    @property
    def optimism(self) -> float:
        """The bias of the winner's value on the queries that chose it."""
        return self.best_value - self.value

    def __str__(self) -> str:
        most = max(range(len(self.chosen)), key=self.chosen.__getitem__)
        return (
            f"{self.interval}; {self.best_value:.6f} on the queries that chose it, {self.optimism:+.6f} of optimism; "
            f"candidate {most} is chosen in {100 * self.chosen[most]:.0f} % of {self.n_resamples} resamples"
        )


def honest_value(
    ndcg: FloatArray,
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> HonestValue:
    """Return the bootstrap-bias-corrected value, from the table of queries and candidates.

    Parameters
    ----------
    ndcg : ndarray of float64, shape (n_queries, n_candidates)
    confidence : float
    n_resamples : int
    rng : Generator

    Notes
    -----
    Each resample draws n queries with replacement, chooses a candidate on them, and scores it on the queries that were
    not drawn. The value of a query is the mean over the resamples that left it out, and the value of the search is the
    mean over queries. I. Tsamardinos, E. Greasidou and G. Borboudakis, Bootstrapping the out-of-sample
    predictions for efficient and accurate cross-validation, Machine Learning 107, 2018.

    A resample has 63 % of the queries to choose on. If one candidate is better than many others by about the noise of
    this choice, the resamples miss it more often than the search does, and the value is too low.
    """
    n, n_candidates = ndcg.shape
    left_out, total, squares = np.zeros(n), np.zeros(n), np.zeros(n)
    chosen = np.zeros(n_candidates)
    for queries in drawn_queries(n, n_resamples, rng):
        # Count how often each resample of the block drew each query.
        at = np.arange(len(queries))[:, None] * n + queries
        counts = np.bincount(at.ravel(), minlength=len(queries) * n).reshape(len(queries), n)
        # Choose on the queries that were drawn, and score the winner on the others.
        winners = (counts @ ndcg).argmax(axis=1)
        outside = counts == 0
        scored = np.where(outside, ndcg[:, winners].T, 0.0)
        left_out += outside.sum(axis=0)
        total += scored.sum(axis=0)
        squares += (scored**2).sum(axis=0)
        chosen += np.bincount(winners, minlength=n_candidates)
    # A query that every resample drew has no value. With hundreds of resamples, there is none.
    known = left_out > 0
    value = float((total[known] / left_out[known]).mean())
    # The variance over queries and resamples, which is that of a single candidate, not of the mean of several.
    variance = float((squares[known] / left_out[known]).mean()) - value * value
    m = int(known.sum())
    reach = t_quantile(confidence, m - 1) * math.sqrt(max(0.0, variance) / (m - 1))
    # The search reports the value of the winner on all queries.
    winner = int(ndcg.mean(axis=0).argmax())
    return HonestValue(
        value=value,
        interval=Interval(
            value=value,
            low=value - reach,
            high=value + reach,
            confidence=confidence,
            method="t",
            n_queries=m,
            n_resamples=None,
        ),
        best_value=float(ndcg[:, winner].mean()),
        chosen=tuple((chosen / n_resamples).tolist()),
        n_resamples=n_resamples,
    )
