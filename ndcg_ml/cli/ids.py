"""Ids of a table as the command prints them: text or numbers that JSON has, different ones still different."""

from __future__ import annotations

import math
from datetime import date, time
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["IDS_IN_JSON", "printable_ids"]

IDS_IN_JSON = """\
Ids of a parquet file are printed as numbers and text where JSON has them; dates and times in ISO 8601
(with a time zone: in UTC), bytes in hexadecimal, all others (decimals, durations, infinite numbers) as
text.
"""
"""For the help of a command."""


def printable_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """The ids with those as text that JSON has no value for."""
    if ids.dtype.kind in "biu":
        return ids
    if ids.dtype.kind == "M":  # of which tolist() makes integers, if they are in nanoseconds
        return np.datetime_as_string(ids).astype(object)
    printed = np.empty(ids.shape, dtype=object)
    printed[:] = [_printable(each) for each in ids.tolist()]
    return printed


def _printable(value: object) -> bool | int | float | str:
    if isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value)
