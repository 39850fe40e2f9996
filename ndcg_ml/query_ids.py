"""Query ids as 64-bit numbers, which reveal a query that is in two parts of a data set."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.one_line import brief

Digests: TypeAlias = NDArray[np.uint64]

_64_BITS = 2**64 - 1


def digests(ids: NDArray[Any]) -> tuple[str, Digests]:
    """Return the kind of the ids (int, str, bytes, float or time) and a number for each.

    Integers, floats and times keep their value. Strings and bytes are hashed to 64 bits: the probability that any two
    of a million have the same hash is 3e-8.

    Raises
    ------
    TypeError
        The ids are of another type, or of several; integers beyond 64 bits; times finer than nanoseconds.
    """
    ids = convert_ids(ids)
    values: list[Any] = ids.tolist() if ids.dtype.kind in "OSU" else []
    kind = ids.dtype.kind
    if kind in "OSU" and all(isinstance(value, str) for value in values):
        return "str", _hashes([value.encode("utf-8", "surrogatepass") for value in values])
    if kind in "OSU" and all(isinstance(value, bytes) for value in values):
        return "bytes", _hashes(values)
    if kind == "f":
        return "float", (ids.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
    if kind == "M":
        times = ids.astype("datetime64[ns]")  # outside the years 1677 to 2262 modulo 2^64, so still distinct
        if (times != ids).any():
            raise TypeError(f"query ids that are times must be whole nanoseconds; got dtype {ids.dtype}.")
        return "time", times.view(np.uint64)
    if kind == "u":
        return "int", ids.astype(np.uint64)
    if kind in "bi":
        return "int", ids.astype(np.int64).view(np.uint64)
    if values and all(map(_is_integer, values)):
        wide = next((value for value in values if not -(2**63) <= value <= _64_BITS), None)
        if wide is not None:
            raise TypeError(
                f"query ids that are integers must fit in 64 bits; got {brief(wide)}. Convert them, for example to "
                "strings."
            )
        return "int", np.array([value & _64_BITS for value in values], dtype=np.uint64)
    kinds = sorted({type(value).__name__ for value in values}) or [str(ids.dtype)]
    raise TypeError(
        "query ids must be integers, strings, bytes, floats or times, all of one type, so that parts can compare them; "
        f"got {', '.join(kinds)}. Convert them, for example to strings."
    )


def join_digests(parts: Sequence[tuple[str, Digests]]) -> tuple[str, Digests]:
    """Return the kind and the sorted numbers of all parts, which must not share a query.

    Raises
    ------
    TypeError
        The query ids of two parts differ in type.
    ValueError
        A query is in two of the parts.
    """
    kinds = sorted({kind for kind, _ in parts})
    if len(kinds) > 1:
        raise TypeError(
            f"query ids must have one type in all parts, so that the same query is recognised; got "
            f"{' and '.join(kinds)}. Convert them before evaluating."
        )
    if not parts:
        return "", np.empty(0, dtype=np.uint64)
    # A stable sort is fast here, because the numbers of each part are already sorted.
    ids = np.sort(np.concatenate([numbers for _, numbers in parts]), kind="stable")
    repeated = ids[1:][ids[1:] == ids[:-1]]
    if repeated.size:
        named = f" (such as query {repeated.view(np.int64)[0]})" if kinds == ["int"] else ""
        raise ValueError(
            f"every query must be entirely in one part; {repeated.size} of the queries "
            f"{'is' if repeated.size == 1 else 'are'} in two of the parts{named}. Either a query was split "
            "(partition the rows by query id, or use evaluate_batches), a part was evaluated twice, or a query was "
            "sampled repeatedly."
        )
    return kinds[0], ids


def convert_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Convert an array of Python numbers or times to their NumPy type. Return other arrays unchanged."""
    values: list[Any] = ids.tolist() if ids.dtype == object else []
    if not values or isinstance(values[0], (str, bytes)):  # NumPy's strings would drop trailing NULs
        return ids
    if all(map(_is_integer, values)):
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= min(values) and max(values) <= np.iinfo(dtype).max:
                return np.array(values, dtype=dtype)
        return ids  # NumPy would round them to floats
    if len(set(map(type, values))) == 1:
        array = np.array(values)
        if array.dtype.kind in "fM" and array.ndim == 1:
            return array
    return ids


def join_ids(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join arrays of ids of one kind, whose dtypes may differ."""
    if len({ids.dtype.kind for ids in pieces}) == 1:
        return np.concatenate(pieces)  # the widest dtype holds them all
    return np.concatenate([ids.astype(object) for ids in pieces])  # int64 and uint64 would become float64


def equals_id(ids: NDArray[Any], one: Any) -> NDArray[np.bool_]:
    """Return which ids equal `one`, which is one of them."""
    if ids.dtype == object:  # NumPy would convert `one` to a string without trailing NULs
        return np.fromiter((query == one for query in ids.tolist()), bool, ids.size)
    same: NDArray[np.bool_] = ids == one
    return same


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer, np.bool_)) and not isinstance(value, np.timedelta64)


def _hashes(values: list[bytes]) -> Digests:
    joined = b"".join(hashlib.blake2b(value, digest_size=8).digest() for value in values)
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64)
