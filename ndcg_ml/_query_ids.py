"""Ids of queries as numbers that can be compared between parts of a data set: a query is to be in one part only."""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Digests", "digests"]

Digests: TypeAlias = NDArray[np.uint64]


def digests(ids: NDArray[Any]) -> tuple[str, Digests]:
    """The kind of the ids, and a number for each: ids of one kind are the same where their numbers are.

    Integers, floats and times stand for themselves. Of strings and bytes it is a hash of 64 bits: among a million
    different ones, two have the same with a probability of 3e-8.

    Raises
    ------
    TypeError
        The ids are of another type, or of several.
    """
    values: list[Any] = ids.tolist() if ids.dtype.kind in "OSU" else []
    if ids.dtype == object and values:
        types = {type(value) for value in values}
        array = np.array(values) if len(types) == 1 and not isinstance(values[0], (str, bytes)) else ids
        if array.dtype.kind in "biufM" and array.ndim == 1:
            return digests(array)
    kind = ids.dtype.kind
    if kind in "OSU" and all(isinstance(value, str) for value in values):
        return "str", _hashes([value.encode("utf-8", "surrogatepass") for value in values])
    if kind in "OSU" and all(isinstance(value, bytes) for value in values):
        return "bytes", _hashes(values)
    if kind == "f":
        return "float", (ids.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
    if kind == "M":
        return "time", ids.astype("datetime64[ns]").view(np.uint64)
    if kind == "u":
        return "int", ids.astype(np.uint64)
    if kind in "bi":
        return "int", ids.astype(np.int64).view(np.uint64)
    found = sorted({type(value).__name__ for value in values}) or [str(ids.dtype)]
    raise TypeError(
        "query ids must be integers, strings, bytes, floats or times, all of one type, for parts to be told apart; got "
        f"{', '.join(found)}. Convert them, to strings for example."
    )


def _hashes(values: list[bytes]) -> Digests:
    joined = b"".join(hashlib.blake2b(value, digest_size=8).digest() for value in values)
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64)
