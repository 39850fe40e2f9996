"""What a caller passed about the documents, read once. Nothing here knows a flavor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._arrays import flag_array, plain_array, real_array
from ndcg_ml.groups import Groups, IntArray

__all__ = ["Queries"]


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Labels, which rows are one query, and what else is known of documents and queries. Made by ``read``.

    Attributes
    ----------
    labels : ndarray of float, shape of y_true
    groups : Groups
        Which rows belong to which query.
    retrieved : ndarray of bool, shape (n_rows,), or None
    doc_id : ndarray of int, shape (n_rows,), or None
        Numbers in the order of the document ids.
    weight : ndarray of float, shape (n_queries,), or None
    """

    labels: NDArray[Any]
    groups: Groups
    retrieved: NDArray[np.bool_] | None = None
    doc_id: IntArray | None = None
    weight: NDArray[np.float64] | None = None

    @property
    def n_queries(self) -> int:
        """Number of queries, those without documents included."""
        return self.groups.n_queries

    @property
    def ids(self) -> NDArray[Any]:
        """The id of each query; its position, where the caller gave no ids."""
        return np.arange(self.n_queries) if self.groups.ids is None else self.groups.ids
