"""Checks of single arguments, with one wording each: whole numbers, numbers, words, cut-offs. No NumPy here."""

from __future__ import annotations

import math
import operator
import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from numbers import Complex, Real
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from ndcg_ml._one_line import shown

if TYPE_CHECKING:
    from ndcg_ml.flavor import Flavor

KSpec: TypeAlias = "int | None | Sequence[int | None] | EllipsisType"
"""A cut-off as callers write it: ``...`` is the flavor's own, ``None`` no cut-off, a sequence several."""

OneK: TypeAlias = "int | None | EllipsisType"
"""A cut-off alone, which gives one number."""
ByK: TypeAlias = "dict[int | None, float]"
"""The numbers at several cut-offs."""

# No list is longer, and 64 bits hold it.
_LARGEST = 2**63 - 1

# Words that other libraries use for the same thing: only ever offered as a suggestion.
_ELSEWHERE = {
    "exp": "exponential",
    "exp2": "exponential",
    "identity": "linear",
    "log": "ln",
    "mean": "average",
    "stable": "first",
    "reverse": "last",
    "error": "raise",
    "clip": "zero",
    "double": "float64",
    "single": "float32",
    "scikit": "sklearn",
    "trec": "trec_eval",
}


# -- words ----------------------------------------------------------------------------------------------------------


def quote(names: Iterable[object]) -> str:
    """The names, quoted, for a message."""
    return ", ".join(repr(name) for name in names)


def did_you_mean(got: object, names: Iterable[str]) -> str:
    """A sentence that suggests the nearest of the names, or nothing."""
    if not isinstance(got, str):
        return ""
    from difflib import get_close_matches  # few calls need it, and every import of ndcg_ml would wait

    near = _ELSEWHERE.get(got.lower()) or next(iter(get_close_matches(got.lower(), list(names), n=1, cutoff=0.5)), None)
    return f" Did you mean {near!r}?" if near else ""


def unknown_preset(must: str, got: str, name: str, names: Iterable[str]) -> ValueError:
    """The error for a name that no preset has: first what may have been meant, then how to list them all."""
    return ValueError(
        f"{must}; got {got}.{did_you_mean(name, names)} List the presets with list(ndcg_ml.PRESETS), or with the "
        "command ndcg-ml flavors; Flavor.preset(name).describe() explains one."
    )


def one_of(value: object, name: str, allowed: Sequence[str], alternative: str = "") -> None:
    """Refuse anything but one of these words; `alternative` names what else is accepted."""
    if isinstance(value, str) and value in allowed:
        return
    kind = ValueError if isinstance(value, str) else TypeError
    also = f", {alternative}" if alternative else ""
    raise kind(f"{name} must be one of {quote(allowed)}{also}; got {shown(value)}.{did_you_mean(value, allowed)}")


def true_or_false(value: object, name: str) -> bool:
    """The value, if it is one of these two."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False; got {shown(value)} of type {type(value).__name__}.")
    return value


# -- numbers --------------------------------------------------------------------------------------------------------


def whole_number(value: object, name: str, least: int = 1, or_none: str = "") -> int:
    """The value as an int that is at least `least`; `or_none` ends the sentence where None is allowed as well."""
    number = value if type(value) is int else None  # the compiler of torch 2.4 cannot look into suppress()
    if number is None and not isinstance(value, (bool, float, str)) and hasattr(value, "__index__"):
        with suppress(TypeError):  # an array that is not a single integer, or a class
            number = operator.index(value)
    if number is None:
        raise TypeError(
            f"{name} must be an integer >= {least}{or_none}; got {shown(value)} of type {type(value).__name__}."
        )
    if number < least:
        raise ValueError(f"{name} must be an integer >= {least}{or_none}; got {shown(number)}.")
    if number > _LARGEST:
        raise ValueError(f"{name} must be at most 2^63 - 1{or_none}; got {shown(number)}.")
    return number


def optional_whole_number(value: object, name: str, none: str, least: int = 1) -> int | None:
    """The value as an int that is at least `least`, or None, of which `none` says what it means."""
    return None if value is None else whole_number(value, name, least, f", or None {none}")


def as_float(value: object) -> float | None:
    """A real number as a float, infinite if it is beyond float64; None for anything else."""
    imaginary = isinstance(value, Complex) and not isinstance(value, Real)  # NumPy's would lose that part
    masked = hasattr(value, "mask")  # an element of a NumPy masked array would be nan, with a warning
    if isinstance(value, (bool, str, bytes)) or imaginary or masked or not hasattr(value, "__float__"):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):  # an array of several, or of text
        return None


def finite_number(value: object, name: str) -> float:
    """The value as a finite float."""
    number = as_float(value)
    if number is None:
        raise TypeError(f"{name} must be a finite number; got {shown(value)} of type {type(value).__name__}.")
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number; got {shown(value)}.")
    return number + 0.0  # -0.0 and 0.0 are one value, and print as one


def positive_number(value: object, name: str) -> float:
    """The value as a finite float above 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be one number > 0; got {shown(value)} of type {type(value).__name__}.")
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be a finite number > 0; got {shown(value)}.")
    return number


# -- cut-offs -------------------------------------------------------------------------------------------------------


def cutoffs(k: KSpec, flavor: Flavor) -> tuple[tuple[int | None, ...], bool]:
    """Return the cut-offs, and whether several were passed (a sequence).

    This is the one rule for cut-offs, everywhere: ``...`` is the flavor's own, None is no cut-off.

    Raises
    ------
    TypeError, ValueError
        A cut-off is not an integer >= 1 or None, one is repeated, or the sequence is empty.
    """
    if isinstance(k, EllipsisType):
        return (flavor.k,), False
    if not is_vector(k):
        return (_cutoff(k),), False
    several = tuple(_cutoff(entry) for entry in k)
    if not several:
        raise ValueError("k must hold at least one cut-off; got an empty sequence.")
    if len(set(several)) != len(several):
        raise ValueError(f"k must not repeat a cut-off; got {several}.")
    return several, True


def _cutoff(k: object) -> int | None:
    return optional_whole_number(k, "k", "for no cut-off")


def is_vector(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether this is a sequence or a one-dimensional array, neither text nor bytes."""
    several = isinstance(value, Sequence) or getattr(value, "ndim", 0) == 1
    return several and not isinstance(value, (str, bytes, bytearray, memoryview))


# -- ties by document id --------------------------------------------------------------------------------------------


TIES_BY_ID = ("docid", "docid_ascending")
"""The tie rules that need document ids."""


def refuse_docid(flavor: Flavor, caller: str, because: str) -> None:
    """Refuse a tie-breaking rule by document id for a caller without ids; `because` explains why it has none."""
    if flavor.ties in TIES_BY_ID:
        raise ValueError(
            f"{caller} does not support ties={flavor.ties!r} because {because}. "
            f"Use flavor={flavor.replace(ties='average').short_text!r}."
        )


def without_doc_ids(flavor: Flavor) -> str:
    """Return the message for a tie-breaking rule by document id without ids."""
    order = "descending" if flavor.ties == "docid" else "ascending"
    return (
        f"doc_id must be given under ties={flavor.ties!r}, which orders tied documents by {order} id; got None. Pass "
        f"doc_id= (one id per document), or use flavor={flavor.replace(ties='average').short_text!r}."
    )


# -- lists of one document ------------------------------------------------------------------------------------------


def refuse_column(names: tuple[str, str], shape: Sequence[int], marked: bool, drop: str, ids: str, mask: str) -> None:
    """Refuse labels and scores whose last axis has length 1 and may be one too many.

    A column, shape (n, 1), reads as n lists of one document, each of which scores 1 (or is empty) whatever the model
    does; it nearly always is n rows from which a ``squeeze(-1)`` is missing. Two dimensions *with a mask* say that
    these are lists. More dimensions, (B, n, 1), are refused with a mask too, because that may have the axis as well.

    Parameters
    ----------
    names : (str, str)
        Names of the two arguments.
    shape : sequence of int
    marked : bool
        Whether a mask was given.
    drop, ids, mask : str
        The caller's words for dropping the axis (``{}`` is a name), for one query id per row, and for a mask in which
        every slot counts.

    Raises
    ------
    ValueError
    """
    shape = tuple(shape)
    if len(shape) < 2 or shape[-1] != 1 or math.prod(shape) < 2 or (marked and len(shape) == 2):
        return
    without = " and ".join(drop.format(name) for name in names)
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
    """Warn that every query has one document.

    Warns
    -----
    UserWarning
        In the name of the first caller outside this package.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "ndcg_ml":
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"each of the {n_queries} queries has one document, so that no ranking can change the value. If that is not "
        "so, the ids may number rows instead of queries, or an axis of length 1 may be one too many.",
        UserWarning,
        stacklevel=level,
    )
