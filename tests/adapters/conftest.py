"""Fixtures for the tests of scikit-learn's tools."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def routing() -> Iterator[None]:
    """Enable metadata routing, so that scikit-learn passes query ids to splitters, rankers and scorers."""
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        yield
