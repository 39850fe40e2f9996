"""Statistics of the difference of two systems, from their values per query."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndcg_ml._decide.means import Means, minus, spread_of
from ndcg_ml._decide.randomisation import exchange_tests


class Paired:
    """The weighted mean difference b - a over queries."""

    def __init__(self, a: np.ndarray, b: np.ndarray, weight: np.ndarray | None = None) -> None:
        self.means = Means.from_weights(np.stack([a, b], axis=1), weight)
        self.difference, self.standard_error = self.spread().value, self.spread().standard_error

    def spread(self, n_resamples: int | None = None, seed: Any = None) -> Any:
        a, b = spread_of(self.means, n_resamples, np.random.default_rng(seed))
        return minus(b, a)

    def interval(self, confidence: float = 0.95, method: str = "t", n_resamples: int = 9999, seed: Any = None) -> Any:
        return self.spread(None if method == "t" else n_resamples, seed).interval(confidence, method)

    def test(self, n_resamples: int = 9999, seed: Any = None) -> Any:
        [found] = exchange_tests(self.means, [(0, 1)], n_resamples, np.random.default_rng(seed))
        return found
