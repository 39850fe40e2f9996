"""Cache of prepared data sets, for adapters that are called repeatedly with the same labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = "tuple[NDArray[Any] | None, ...]"


T = TypeVar("T")
"""Result of the preparation."""


class _Slot(NamedTuple):
    arrays: Arrays
    prepared: Any


class Cache(Generic[T]):
    """A least-recently-used cache of the results of preparing a data set.

    Data sets are compared by content with copies in the cache, because callers may change their arrays in place.
    Threads may share a cache. A copied or unpickled cache is empty.

    A slot holds the copies and the result. A ``Prepared`` takes about 8 bytes per row for its gains and, unless all
    queries have the same length, 8 more for its layout. With float64 labels and integer ids, a slot takes about 32 MB
    for a million rows.

    Parameters
    ----------
    slots : int
        Number of data sets to keep.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._kept: tuple[_Slot, ...] = ()

    def __len__(self) -> int:
        return len(self._kept)

    def __getstate__(self) -> dict[str, Any]:
        return {"slots": self.slots}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["slots"])  # type: ignore[misc]

    def get_or_make(self, arrays: Arrays, make: Callable[[], T]) -> T:
        """Return the cached result for equal arrays; otherwise call `make` and cache its result."""
        for slot in self._kept:
            if all(_equal(kept, given) for kept, given in zip(slot.arrays, arrays, strict=True)):
                self._put_first(slot)
                result: T = slot.prepared
                return result
        prepared = make()
        self._put_first(_Slot(tuple(None if array is None else array.copy() for array in arrays), prepared))
        return prepared

    def _put_first(self, slot: _Slot) -> None:
        # The assignment is atomic. If two threads store a result at once, one of them is lost and made again later.
        self._kept = (slot, *(other for other in self._kept if other is not slot))[: self.slots]


def _equal(kept: NDArray[Any] | None, given: NDArray[Any] | None) -> bool:
    if kept is None or given is None:
        return kept is given
    if kept.shape != given.shape or kept.dtype != given.dtype:
        return False
    # Labels may hold NaN. NumPy compares with equal_nan more slowly, and not at all for ids that are text.
    return np.array_equal(kept, given) or (kept.dtype.kind == "f" and np.array_equal(kept, given, equal_nan=True))
