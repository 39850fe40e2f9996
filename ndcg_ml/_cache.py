"""Prepared objects of data seen lately: adapters are called with the same labels again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Recent"]

Arrays: TypeAlias = "tuple[NDArray[Any] | None, ...]"


T = TypeVar("T")
"""What is prepared from the arrays."""


class _Slot(NamedTuple):
    arrays: Arrays
    prepared: Any


class Recent(Generic[T]):
    """The last few data sets with what was prepared from them.

    Data are compared by content, with copies that are kept here: addresses are used again, and arrays are changed in
    place. It may be shared by threads; what is kept does not travel when it is pickled or copied.

    Parameters
    ----------
    slots : int
        How many data sets are kept.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._held: tuple[_Slot, ...] = ()

    def __len__(self) -> int:
        return len(self._held)

    def __getstate__(self) -> dict[str, Any]:
        return {"slots": self.slots, "_held": ()}

    def prepared(self, arrays: Arrays, make: Callable[[], T]) -> T:
        """What was prepared from arrays equal to these, or what `make` prepares now."""
        for slot in self._held:
            if all(_equal(mine, theirs) for mine, theirs in zip(slot.arrays, arrays, strict=True)):
                kept_here: T = slot.prepared
                return kept_here
        prepared = make()
        kept = tuple(None if array is None else array.copy() for array in arrays)
        # One assignment, so that another thread sees either tuple whole.
        self._held = (_Slot(kept, prepared), *self._held[: self.slots - 1])
        return prepared


def _equal(mine: NDArray[Any] | None, theirs: NDArray[Any] | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return mine.shape == theirs.shape and mine.dtype == theirs.dtype and bool(np.array_equal(mine, theirs))
