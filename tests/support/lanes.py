"""Choose the parameters that run by default; the others run with ``-m long``."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def quick(chosen: Container[Any], every: Iterable[Any]) -> list[Any]:
    """Return all parameters, or tuples of them. Those that are not chosen run only with ``-m long``."""
    return [
        each
        if each in chosen
        else pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.long)
        for each in every
    ]
