"""Recognise labels and scores that were passed in each other's place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import IntArray

# Half-precision scores above 256 are all integers, and so are numbers of views. Grades are seldom above this one.
_LARGEST_GRADE = 100
_SAMPLE = 4096


def stride(n: int) -> int:
    """Return the step that takes at most 4,096 of `n` values, so that large arrays cost no time."""
    return max(1, -(-n // _SAMPLE))


def are_fractions(labels: NDArray[Any], rows: IntArray | None = None) -> bool:
    """Whether at least half of the labels in these rows, or of a sample of them, are fractions. NaN is not counted."""
    if labels.dtype.kind != "f":
        return False
    flat = labels.reshape(-1)
    sample = flat[:: stride(flat.size)] if rows is None else flat[rows[:: stride(rows.size)]]
    known = sample[np.isfinite(sample)]
    return bool(known.size and (known == np.floor(known)).mean() <= 0.5)


def are_grades(scores: NDArray[Any]) -> bool:
    """Whether all scores are integers from 0 to 100, and not all are 0."""
    if not scores.size or not (scores.min() >= 0 and 0 < scores.max() <= _LARGEST_GRADE):
        return False
    return bool((scores == np.floor(scores)).all())
