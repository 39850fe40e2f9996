"""Which parameters run by default, and which with ``-m long``."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def quick(chosen: Container[Any], every: Iterable[Any]) -> list[Any]:
    """Parameters, or tuples of them, of which the chosen run by default and the others with ``-m long``."""
    return [
        each
        if each in chosen
        else pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.long)
        for each in every
    ]
