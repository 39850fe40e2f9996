"""The NDCG of every query that a search has scored, kept beside the means that scikit-learn keeps.

A scorer returns a number, and all that a search keeps are numbers. With several processes the scorer that works is a
copy, whose memory nobody sees again. So the number that it returns carries the queries: it is a float that, on its way
back to the process of the search, puts them where the scorer of that process finds them.
"""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

__all__ = ["Carrier", "KeptQueries", "Scored"]


class Scored(NamedTuple):
    """One fit of a search, scored.

    Attributes
    ----------
    ids : ndarray, shape (n_queries,)
        The queries of the test part.
    ndcg : ndarray of float, shape (n_queries, n_cutoffs)
        Nan for an empty query that the mean skips.
    values : tuple of float, length n_cutoffs
        The scores, as the search got them.
    """

    ids: NDArray[Any]
    ndcg: NDArray[np.float64]
    values: tuple[float, ...]


class KeptQueries:
    """What a scorer has kept, by candidate and split. All copies of a scorer in one process share it.

    Neither pickled nor copied along. Another search with the same scorer overwrites it.
    """

    def __init__(self, token: str | None = None) -> None:
        self.token: str = uuid.uuid4().hex if token is None else token
        self._scored: dict[tuple[int, int], Scored] = {}
        """By candidate and split."""
        self._ids: dict[int, NDArray[Any]] = {}
        _HERE[self.token] = self

    def __len__(self) -> int:
        return len(self._scored)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_this_process, (self.token,)

    def put(self, candidate: int, split: int, scored: Scored) -> None:
        """Keep the queries of one fit. The ids of a split are kept once."""
        ids = self._ids.get(split)
        if ids is None or ids.dtype != scored.ids.dtype or not np.array_equal(ids, scored.ids):
            ids = self._ids[split] = scored.ids
        self._scored[candidate, split] = scored._replace(ids=ids)

    def get(self, candidate: int, split: int, column: int, value: float) -> Scored | None:
        """The queries of the fit that scored this value at this cut-off; None if there is none."""
        scored = self._scored.get((candidate, split))
        return None if scored is None or scored.values[column] != value else scored


class Carrier(float):
    """A score with the queries behind it. Where it is unpickled it is a plain float, and they are kept there."""

    def __new__(cls, value: float, *_: Any) -> Carrier:  # noqa: D102
        return super().__new__(cls, value)

    def __init__(self, _: float, token: str, candidate: int, split: int, scored: Scored) -> None:
        self._load = (token, candidate, split, scored)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unloaded, (float(self), *self._load)


_HERE: WeakValueDictionary[str, KeptQueries] = WeakValueDictionary()


def _of_this_process(token: str) -> KeptQueries:
    stored = _HERE.get(token)
    return KeptQueries(token) if stored is None else stored


def _unloaded(value: float, token: str, candidate: int, split: int, scored: Scored) -> float:
    stored = _HERE.get(token)
    if stored is not None:
        stored.put(candidate, split, scored)
    return value
