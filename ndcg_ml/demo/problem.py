"""A ranking problem: documents with features and grades, query after query, in three parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Problem", "Split"]


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a ranking problem. The rows of each query are contiguous.

    Attributes
    ----------
    features : ndarray of float64, shape (n_rows, n_features)
    labels : ndarray of int64, shape (n_rows,)
        Grades, 0 or above.
    sizes : ndarray of int64, shape (n_queries,)
        Number of rows of each query, none of them 0.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @cached_property
    def qid(self) -> NDArray[np.int64]:
        """The query of each row: 0, 1, ..."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    @cached_property
    def doc_id(self) -> NDArray[np.str_]:
        """The number of each row, zero-padded so that ids sort like rows."""
        digits = len(str(self.labels.size))
        return np.array([f"{row:0{digits}d}" for row in range(self.labels.size)])

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """Shape (n_queries, longest): True where a query has a document."""
        return np.arange(int(self.sizes.max())) < self.sizes[:, None]

    def padded(self, values: NDArray[Any]) -> NDArray[Any]:
        """Per-row values as one row per query, with 0 after a query's last document."""
        out = np.zeros((*self.mask.shape, *values.shape[1:]), dtype=values.dtype)
        out[self.mask] = values
        return out

    def of_queries(self, queries: NDArray[np.int64]) -> Split:
        """These queries only, in this order."""
        starts = np.cumsum(self.sizes) - self.sizes
        rows = np.concatenate([np.arange(starts[q], starts[q] + self.sizes[q]) for q in queries])
        return Split(self.features[rows], self.labels[rows], self.sizes[queries])


@dataclass(frozen=True, eq=False)
class Problem:
    """Train, validation and test part of a ranking problem.

    Attributes
    ----------
    name : str
        What the data is, in a few words.
    train, valid, test : Split
    notes : tuple of str
        What the user should know about how the parts were made.
    """

    name: str
    train: Split
    valid: Split
    test: Split
    notes: tuple[str, ...] = ()
