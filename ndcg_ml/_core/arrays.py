"""Types of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


def as_objects(labels: Sequence[Any]) -> NDArray[Any]:
    """Return the labels as a one-dimensional array of objects; np.array() would split tuples."""
    objects = np.empty(len(labels), dtype=object)
    objects[:] = labels
    return objects
