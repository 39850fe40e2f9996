"""Prepared data sets, kept because adapters are called with the same labels repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._kernel.threads import ForkableLock

Arrays: TypeAlias = "tuple[NDArray[Any] | None, ...]"


T = TypeVar("T")
"""Result of the preparation."""


class _Slot(NamedTuple):
    arrays: Arrays
    prepared: Any


class Cache(Generic[T]):
    """The last few data sets with what was prepared from them; the least recently used one is dropped first.

    Data are compared by content, with copies that are kept here, because memory is reused and arrays are changed in
    place. Threads may share a cache. Its content is not pickled or copied along.

    Memory: for each slot, a copy of the arrays that are compared and what was prepared from them. A ``Prepared`` takes
    about 8 bytes per row for its gains and, unless every query has the same length, 8 more for its layout. With
    float64 labels and integer ids, a slot takes about 32 bytes per row, 32 MB for a million rows.

    Parameters
    ----------
    slots : int
        Number of data sets to keep.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._held: tuple[_Slot, ...] = ()
        self._lock = ForkableLock()

    def __len__(self) -> int:
        return len(self._held)

    def __getstate__(self) -> dict[str, Any]:
        return {"slots": self.slots}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["slots"])  # type: ignore[misc]

    def prepared(self, arrays: Arrays, make: Callable[[], T]) -> T:
        """Return what was prepared from equal arrays, or the result of `make`."""
        for slot in self._held:
            if all(_equal(mine, theirs) for mine, theirs in zip(slot.arrays, arrays, strict=True)):
                self._put_first(slot)
                kept_here: T = slot.prepared
                return kept_here
        prepared = make()
        self._put_first(_Slot(tuple(None if array is None else array.copy() for array in arrays), prepared))
        return prepared

    def _put_first(self, slot: _Slot) -> None:
        if self._held and self._held[0] is slot:
            return
        with self._lock:
            self._held = (slot, *(other for other in self._held if other is not slot))[: self.slots]


def _equal(mine: NDArray[Any] | None, theirs: NDArray[Any] | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return mine.shape == theirs.shape and mine.dtype == theirs.dtype and bool(np.array_equal(mine, theirs))
