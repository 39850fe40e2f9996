"""What is tested here needs NumPy alone, and is quick to start."""

import sys
from collections.abc import Iterator

import pytest

FRAMEWORKS = ("torch", "sklearn", "lightgbm", "xgboost", "catboost", "pandas", "polars", "pyarrow", "jax")


@pytest.fixture(autouse=True, scope="module")
def no_framework() -> Iterator[None]:
    """No module of tests here loads a framework, unless a test elsewhere had loaded it before."""
    before = {name for name in FRAMEWORKS if sys.modules.get(name)}
    yield
    assert {name for name in FRAMEWORKS if sys.modules.get(name)} == before
