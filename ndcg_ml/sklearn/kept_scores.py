"""Keep the NDCG of every query that a search has scored.

A search keeps only the numbers that its scorer returns, and with several processes the scorer is a copy whose state is
lost. So the scorer returns a float that carries the queries: when it is unpickled in the process of the search, it
stores them in that process's ``KeptQueries``.
"""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

__all__ = ["Carrier", "KeptQueries", "KeptScores"]


class KeptScores(NamedTuple):
    """The score of one fit of a search.

    Attributes
    ----------
    ids : ndarray, shape (n_queries,)
        The queries of the test part.
    ndcg : ndarray of float, shape (n_queries, n_cutoffs)
        NaN for an empty query that the mean skips.
    values : tuple of float, length n_cutoffs
        The scores that the search received.
    """

    ids: NDArray[Any]
    ndcg: NDArray[np.float64]
    values: tuple[float, ...]


class KeptQueries:
    """The scored queries by candidate and split, shared by all copies of a scorer in one process.

    They are not pickled or copied with the scorer, and another search with the same scorer overwrites them.
    """

    def __init__(self, token: str | None = None) -> None:
        self.token: str = uuid.uuid4().hex if token is None else token
        self._scored: dict[tuple[int, int], KeptScores] = {}
        _HERE[self.token] = self

    def __len__(self) -> int:
        return len(self._scored)

    def __reduce__(self) -> tuple[Any, ...]:
        return _shared, (self.token,)

    def put(self, candidate: int, split: int, scored: KeptScores) -> None:
        """Keep the queries of one fit."""
        self._scored[candidate, split] = scored

    def get(self, candidate: int, split: int, column: int, value: float) -> KeptScores | None:
        """Return the queries of the fit if its score at this cut-off was `value`, otherwise None."""
        scored = self._scored.get((candidate, split))
        return None if scored is None or scored.values[column] != value else scored


class Carrier(float):
    """A score with its queries. Unpickling keeps the queries and returns a plain float."""

    def __new__(cls, value: float, *_: Any) -> Carrier:  # noqa: D102
        return super().__new__(cls, value)

    def __init__(self, _: float, token: str, candidate: int, split: int, scored: KeptScores) -> None:
        self._load = (token, candidate, split, scored)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unloaded, (float(self), *self._load)


_HERE: WeakValueDictionary[str, KeptQueries] = WeakValueDictionary()


def _shared(token: str) -> KeptQueries:
    stored = _HERE.get(token)
    return KeptQueries(token) if stored is None else stored


def _unloaded(value: float, token: str, candidate: int, split: int, scored: KeptScores) -> float:
    stored = _HERE.get(token)
    if stored is not None:
        stored.put(candidate, split, scored)
    return value
