"""Numbers and ids as JSON has them: what ``to_dict`` of every result holds."""

from __future__ import annotations

import math
from datetime import date, time
from typing import Any

import numpy as np
from numpy.typing import NDArray


def finite(value: float | None) -> float | None:
    """The value, or None if JSON has no number for it."""
    return None if value is None or not math.isfinite(value) else float(value)


def plain_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """The ids, as text where JSON has no value for them; different ids stay different."""
    if ids.dtype.kind in "biu":
        return ids
    if ids.dtype.kind == "M":  # tolist() makes integers of nanoseconds
        return np.datetime_as_string(ids).astype(object)
    plain = np.empty(ids.shape, dtype=object)
    plain[:] = [plain_id(one_id) for one_id in ids.tolist()]
    return plain


def plain_id(value: object) -> bool | int | float | str:
    """An id as a number or text: bytes in hexadecimal, dates and times in ISO 8601, all others as ``str`` has them."""
    if isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, (date, time)) else str(value)
