"""An argument that counts something."""

from __future__ import annotations

import operator

__all__ = ["whole_number"]


def whole_number(value: object, name: str, least: int) -> int:
    """The value as an int that is not less than `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer >= {least}; got {value!r} of type {type(value).__name__}.")
    number = operator.index(value)
    if number < least:
        raise ValueError(f"{name} must be an integer >= {least}; got {number}.")
    return number
