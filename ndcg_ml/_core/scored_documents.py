"""The documents and scores that an evaluation keeps, by reference, for ranges and comparisons of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.queries import Queries


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Documents and their scores. A pickle leaves them out, because they may be many times larger than the result.

    Attributes
    ----------
    queries : Queries
    scores : ndarray, shape (n_rows,)
        In the precision in which the flavor compares scores.
    rows_are_documents : bool
        Whether the same row is the same document in another evaluation of the same labels.
    """

    queries: Queries
    scores: NDArray[Any]
    rows_are_documents: bool = True

    @property
    def labels(self) -> NDArray[np.float64]:
        """The label of every row of the queries, in their order; NaN if it is unjudged."""
        listed = self.queries.groups.arrange(self.queries.labels.reshape(-1))
        with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs
            labels: NDArray[np.float64] = listed.astype(np.float64, copy=False)
        return labels

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """The weight of each query."""
        return self.queries.weight

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_none, ()

    def __deepcopy__(self, _: dict[int, Any]) -> Scored:
        return self


def _restore_none() -> None:
    """Return None, which an unpickled evaluation has in place of its documents."""
