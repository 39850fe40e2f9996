"""Two systems from their values per query, with the statistics of their difference."""

from __future__ import annotations

import numpy as np

from ndcg_ml._stats.means import Interval, Means, Method, Seed, Spread, generator, how_many, minus, spread_of
from ndcg_ml._stats.randomisation import SignFlip, exchange_tests


class Paired:
    """The mean difference b - a over queries that weigh this."""

    def __init__(self, a: np.ndarray, b: np.ndarray, weight: np.ndarray | None = None) -> None:
        self.means = Means.of(np.stack([a, b], axis=1), weight)
        self.difference, self.standard_error = self.spread().value, self.spread().standard_error

    def spread(self, n_resamples: int | None = None, seed: Seed = None) -> Spread:
        a, b = spread_of(self.means, n_resamples, generator(seed))
        return minus(b, a)

    def interval(
        self, confidence: float = 0.95, method: Method = "t", n_resamples: int = 9999, seed: Seed = None
    ) -> Interval:
        return self.spread(how_many(method, n_resamples), seed).interval(confidence, method)

    def test(self, n_resamples: int = 9999, seed: Seed = None) -> SignFlip:
        [found] = exchange_tests(self.means, [(0, 1)], n_resamples, generator(seed))
        return found
