"""Fixtures for the tests of scikit-learn's tools."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture
def routing() -> Iterator[None]:
    """Enable metadata routing, so that scikit-learn passes query ids to splitters, rankers and scorers."""
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="session")
def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, grades and ids of 40 queries of 1 to 24 documents, in any order."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 25, 40)
    qid = np.repeat([f"q{i}" for i in rng.permutation(40)], sizes)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.round(X[:, 0] + 0.7 * X[:, 1] + 0.5 * rng.normal(size=len(X))), 0, 4).astype(int)
    shuffled = rng.permutation(len(X))
    return X[shuffled], y[shuffled], qid[shuffled]
