"""Checks of single arguments: strings, numbers and cut-offs. This module does not import NumPy."""

from __future__ import annotations

import inspect
import math
import operator
import sys
import warnings
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from numbers import Complex, Real
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar

from ndcg_ml._plain.messages import brief, did_you_mean

if TYPE_CHECKING:
    from ndcg_ml.flavor import Flavor

KSpec: TypeAlias = "int | None | Sequence[int | None] | EllipsisType"
"""The argument `k`: ``...`` is the flavor's own cut-off, ``None`` no cut-off, and a sequence several cut-offs."""

OneK: TypeAlias = "int | None | EllipsisType"
"""One cut-off, which gives one number."""
K = TypeVar("K", bound="int | None")
"""The type of several cut-offs: ``int`` if each of them is a number."""

EXACT_INTEGERS = 2**53
"""float64 represents every integer up to this one."""

# The largest integer of 64 bits.
_LARGEST = 2**63 - 1
# The largest cut-off under ideal="max".
_DEEPEST = 10**8


# -- words ----------------------------------------------------------------------------------------------------------


def quote(names: Iterable[object]) -> str:
    """Return the names, quoted, for a message."""
    return ", ".join(repr(name) for name in names)


def one_of(value: object, name: str, allowed: Collection[str], alternative: str = "") -> None:
    """Raise unless the value is one of these strings. The message adds `alternative`, which describes other values."""
    if isinstance(value, str) and value in allowed:
        return
    kind = ValueError if isinstance(value, str) else TypeError
    also = f", {alternative}" if alternative else ""
    raise kind(f"{name} must be one of {quote(allowed)}{also}; got {brief(value)}.{did_you_mean(value, allowed)}")


def true_or_false(value: object, name: str) -> bool:
    """Return the value if it is a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False; got {brief(value)} of type {type(value).__name__}.")
    return value


# -- numbers --------------------------------------------------------------------------------------------------------


def whole_number(value: object, name: str, least: int = 1, or_none: str = "") -> int:
    """Return the value as an int >= `least`. The message adds `or_none`, for arguments that may be None."""
    number = value if type(value) is int else None  # torch 2.4 cannot compile suppress()
    if number is None and not isinstance(value, (bool, float, str)) and hasattr(value, "__index__"):
        with suppress(TypeError):  # an array that is not a single integer, or a class
            number = operator.index(value)
    if number is None:
        raise TypeError(
            f"{name} must be an integer >= {least}{or_none}; got {brief(value)} of type {type(value).__name__}."
        )
    if number < least:
        raise ValueError(f"{name} must be an integer >= {least}{or_none}; got {brief(number)}.")
    if number > _LARGEST:
        raise ValueError(f"{name} must be at most 2^63 - 1{or_none}; got {brief(number)}.")
    return number


def optional_whole_number(value: object, name: str, none: str, least: int = 1) -> int | None:
    """Return the value as an int >= `least`, or None, whose meaning `none` gives."""
    return None if value is None else whole_number(value, name, least, f", or None {none}")


def as_float(value: object) -> float | None:
    """Return a real number as a float, infinite if it is beyond float64; None for other values."""
    imaginary = isinstance(value, Complex) and not isinstance(value, Real)  # NumPy would drop the imaginary part
    masked = hasattr(value, "mask")  # an element of a NumPy masked array would be nan, with a warning
    if isinstance(value, (bool, str, bytes)) or imaginary or masked or not hasattr(value, "__float__"):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):  # an array of several numbers, or of strings
        return None


def finite_number(value: object, name: str) -> float:
    """Return the value as a finite float."""
    number = as_float(value)
    if number is None:
        raise TypeError(f"{name} must be a finite number; got {brief(value)} of type {type(value).__name__}.")
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number; got {brief(value)}.")
    return number + 0.0  # -0.0 becomes 0.0


def positive_number(value: object, name: str, below: float = math.inf, hint: str = "") -> float:
    """Return the value, such as a tensor with one number, as a float above 0 and below a limit."""
    limits = "above 0 and finite" if below == math.inf else f"above 0 and below {below:g}"
    number = as_float(value)
    if number is None:
        raise TypeError(f"{name} must be a number {limits}; got {brief(value)} of type {type(value).__name__}.")
    if not 0 < number < below:
        raise ValueError(f"{name} must be {limits}; got {brief(value)}.{hint}")
    return number


def as_confidence(confidence: object) -> float:
    """Return the confidence as a float strictly between 0 and 1."""
    number = as_float(confidence) or 0.0
    hint = f" Write {number / 100:g} for {number:g} %." if 1 < number < 100 else ""
    return positive_number(confidence, "confidence", 1.0, hint)


# -- cut-offs -------------------------------------------------------------------------------------------------------


def cutoffs(k: KSpec, flavor: Flavor) -> tuple[tuple[int | None, ...], bool]:
    """Return the cut-offs, and whether several were passed (a sequence).

    Raises
    ------
    TypeError, ValueError
        A cut-off is not an integer >= 1 or None, is repeated, or is above 10^8 under ``ideal="max"``; or there is none.
    """
    given = k if is_vector(k) else [flavor.k if isinstance(k, EllipsisType | _Own) else k]
    ks = tuple(optional_whole_number(each, "k", "for no cut-off") for each in given)
    if not ks:
        raise ValueError("k must hold at least one cut-off; got an empty sequence.")
    if len(set(ks)) != len(ks):
        raise ValueError(f"k must not repeat a cut-off; got {ks}.")
    if flavor.ideal == "max" and max(each or 0 for each in ks) > _DEEPEST:
        raise ValueError(
            f"k must be at most {_DEEPEST} under ideal='max', which sums over all ranks up to k; got {ks}."
        )
    return ks, given is k


class _Own:
    """The default of `k` in signatures."""

    def __repr__(self) -> str:
        return "the flavor's own"


F = TypeVar("F")


def plain_signature(function: F) -> F:
    """Let ``help`` show the default of `k` in words, and leave out private parameters."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    shown = [
        each.replace(default=_Own()) if each.name == "k" and each.default is ... else each
        for each in signature.parameters.values()
        if not each.name.startswith("_")
    ]
    setattr(function, "__signature__", signature.replace(parameters=shown))  # noqa: B010
    return function


def is_vector(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether the value is a sequence or a one-dimensional array, but not a string or bytes."""
    several = isinstance(value, Sequence) or getattr(value, "ndim", None) == 1
    return several and not isinstance(value, (str, bytes, bytearray, memoryview))


# -- switches that some callers do not support ----------------------------------------------------------------------


TIES_BY_ID = ("docid", "docid_ascending")
"""The tie-breaking rules that need document ids."""


def refuse_docid(flavor: Flavor, caller: str, because: str) -> None:
    """Refuse a tie-breaking rule by document id for a caller without ids; `because` explains why it has none."""
    if flavor.ties in TIES_BY_ID:
        raise ValueError(
            f"{caller} does not support ties={flavor.ties!r} because {because}. Use {flavor._advice(ties='average')}."
        )


def refuse_nan(flavor: Flavor, caller: str, because: str) -> None:
    """Refuse nan as the value of an empty query; `because` explains what it would do."""
    if flavor.empty != flavor.empty:
        raise ValueError(
            f"{caller} does not support empty=nan because {because}. Choose empty='skip' to leave empty queries out, "
            "or 0 or 1."
        )


def without_doc_ids(flavor: Flavor) -> str:
    """Return the message for a tie-breaking rule by document id without ids."""
    order = "descending" if flavor.ties == "docid" else "ascending"
    return (
        f"doc_id must be given under ties={flavor.ties!r}, which orders tied documents by {order} id; got None. Pass "
        f"doc_id= (one id per document), or use {flavor._advice(ties='average')}."
    )


# -- likely mistakes ------------------------------------------------------------------------------------------------


def refuse_column(names: tuple[str, str], shape: Sequence[int], marked: bool, drop: str, ids: str, mask: str) -> None:
    """Raise if the last axis of labels and scores has length 1 and may be superfluous.

    A column, shape (n, 1), would be n lists of one document, each of which scores 1 (or is empty) for any model. It is
    nearly always n rows that lack a ``squeeze(-1)``. With a mask, two dimensions are accepted as lists. Three
    dimensions, (B, n, 1), are refused even with a mask, which may have the same superfluous axis.

    Parameters
    ----------
    names : (str, str)
        Names of the two arguments.
    shape : sequence of int
    marked : bool
        Whether a mask was given.
    drop, ids, mask : str
        Code for the message: dropping the axis (``{}`` is a name), one query id per row, and a mask that is all True.

    Raises
    ------
    ValueError
    """
    shape = tuple(shape)
    if len(shape) < 2 or shape[-1] != 1 or math.prod(shape) < 2 or (marked and len(shape) == 2):
        return
    without = " and ".join(drop.format(name) for name in (*names, *["mask"] * marked))
    if len(shape) > 2:
        raise ValueError(
            f"{names[0]} and {names[1]} must not have the shape {shape}, whose last axis makes every document a list "
            f"of its own. Pass {without}. If these are lists of one document, reshape them to (n_queries, 1) and pass "
            "mask=."
        )
    raise ValueError(
        f"{names[0]} and {names[1]} must not be columns: shape {shape} may be {shape[0]} rows with an axis too many or "
        f"{shape[0]} queries of one document, and this is never guessed. For rows, pass {without} with {ids}; for "
        f"queries of one document, pass mask={mask}."
    )


def axis_too_many(name: str, shape: Sequence[int], other: str, other_shape: Sequence[int], drop: str) -> str:
    """Return a hint if one shape is the other with a further axis of length 1, or an empty string."""
    for long, longer, shorter in ((name, shape, other_shape), (other, other_shape, shape)):
        if tuple(longer) == (*shorter, 1):
            return f" The last axis of {long} is one too many: pass {drop.format(long)}."
    return ""


def warn_of_lists_of_one(n_queries: int) -> None:
    """Warn that every query has one document."""
    warn_caller(
        f"each of the {n_queries} queries has one document, so that no ranking can change the value. If this is wrong, "
        "the ids may number rows instead of queries, or an axis of length 1 may be one too many."
    )


def warn_of_swap(labels: str, scores: str) -> None:
    """Warn that the arguments of these names may have been passed in each other's place."""
    warn_caller(
        f"{scores} holds integers and {labels} does not, as if the two were swapped. Pass grades as {labels} and "
        f"the scores of a model as {scores}."
    )


def warn_of_ranks(scores: str, first: float, query: str) -> None:
    """Warn that the scores of every query may be ranks, counted from `first`."""
    warn_caller(
        f"{scores} count up {first:g}, {first + 1:g}, ... in every {query}, like ranks, but the document with the "
        "highest score is ranked first. If these are ranks, pass the scores, or negate the ranks."
    )


def warn_caller(message: str) -> None:
    """Warn, attributed to the first caller outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "ndcg_ml":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
