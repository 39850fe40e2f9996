"""What a caller passed, as NumPy arrays that the kernel can trust; everything else is refused here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._shown import shown, shown_text
from ndcg_ml._underflow import underflow_is_zero

__all__ = ["flag_array", "id_array", "plain_array", "real_array", "score_array"]


@underflow_is_zero
def real_array(value: Any, name: str) -> NDArray[Any]:
    """A real-valued array, float32 or float64 in native byte order, C-contiguous."""
    array = plain_array(value, name)
    if array.dtype == object:
        odd = next((each for each in array.flat if isinstance(each, _NOT_REAL)), None)
        if odd is not None:  # NumPy would read a number in a string, and drop what is imaginary
            raise TypeError(
                f"{name} must hold real numbers; got an array of Python objects, such as {shown(odd)} of type "
                f"{type(odd).__name__}."
            )
        try:
            with np.errstate(over="ignore"):  # of long doubles beyond float64
                array = array.astype(np.float64)
        except OverflowError as error:
            raise ValueError(f"{name} must hold numbers that float64 can hold; got one that is too large.") from error
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name} must hold real numbers; got an array of Python objects ({shown_text(str(error))}). "
                "Lists of unequal lengths must be flattened, with qid= or group= saying which rows belong together."
            ) from error
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    dtype = np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64
    with np.errstate(over="ignore", invalid="ignore"):  # of long doubles beyond float64; of signalling NaNs
        return np.asarray(array, dtype=dtype, order="C")


@underflow_is_zero
def score_array(value: Any, name: str) -> NDArray[Any]:
    """As ``real_array``, of numbers whose order counts: where float64 would make some of them one, their ranks."""
    given = plain_array(value, name)
    scores = real_array(given, name)
    if not scores.size:
        return scores
    if given.dtype.kind == "f" and given.dtype.itemsize <= 8:
        # A list of integers and floats is an array of floats by now.
        if given is value or not isinstance(value, (list, tuple)) or np.fmax.reduce(abs(scores), axis=None) <= _WHOLE:
            return scores
        given = np.array(value, dtype=object)
    known = ~np.isnan(scores)
    if given.dtype.kind in "iub":
        lossless = int(given.min()) >= -_WHOLE and int(given.max()) <= _WHOLE
    else:
        lossless = bool((given[known] == scores[known]).all())  # exact between objects, and in long double
    if lossless:
        return scores
    scores[known] = np.unique(given[known], return_inverse=True)[1].reshape(-1)
    return scores


# Up to here float64 has every integer.
_WHOLE = 2**53


def flag_array(value: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """A boolean array of the given shape."""
    array = plain_array(value, name)
    if array.dtype != bool:
        raise TypeError(
            f"{name} must be an array of bool, True where the document takes part; got dtype {array.dtype}. "
            f"Write {name}.astype(bool) if it holds 0 and 1."
        )
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape of y_true, {shape}; got {array.shape}.")
    return np.ascontiguousarray(array)


_NOT_REAL = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


def plain_array(value: Any, name: str) -> NDArray[Any]:
    """What NumPy makes of the value, of any dtype and shape."""
    if type(value).__module__.split(".")[0] == "torch":
        raise TypeError(
            f"{name} is a {type(value).__name__} of torch, and this function takes NumPy arrays. Use "
            f"ndcg_ml.torch.ndcg(scores, labels, ...) on tensors, or pass {name}.detach().cpu().numpy()."
        )
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a NumPy masked array, whose mask would be lost. Pass {name}.data, with mask= for 2-D input."
        )
    try:
        return np.asarray(value)
    except MemoryError:
        raise
    except ValueError as error:  # ragged nested lists
        raise ValueError(
            f"{name} must be a one- or two-dimensional array; got {type(value).__name__} that is not one "
            f"({shown_text(str(error))}). "
            "Lists of unequal lengths must be flattened, with qid= or group= saying which rows belong together."
        ) from error
    except Exception as error:  # of the value's own conversion, which may raise what it likes
        raise TypeError(
            f"{name} must be an array; got {type(value).__name__}, which NumPy cannot read ({shown_text(str(error))})."
        ) from error


def id_array(value: Any, name: str, ndim: int = 1) -> NDArray[Any]:
    """As ``plain_array``, of ids: those of a list stay apart if they differ.

    Of one dimension, a tuple is an id of several parts.
    """
    if not isinstance(value, (list, tuple)):
        return plain_array(value, name)
    if ndim == 1 and any(isinstance(each, tuple) for each in value):
        return _objects(value)
    ids = plain_array(value, name)
    if ids.dtype.kind not in "USfmM" or not ids.size:
        return ids
    each = list(value) if ids.ndim == 1 else [each for row in value for each in row]
    return _objects(each).reshape(ids.shape) if _changed(each, ids.dtype.kind) else ids


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def _changed(ids: Sequence[Any], kind: str) -> bool:
    """Whether NumPy, which gives a list one dtype, made some ids one.

    1 and "1" become text; 2**63 and -1 become floats, which have too few digits; text loses NULs at its end.
    """
    if kind == "f":
        return any(isinstance(each, (int, np.integer)) and abs(int(each)) > _WHOLE for each in ids)
    if kind in "mM":
        return any(isinstance(each, (int, str)) for each in ids)
    if kind == "S":
        return any(not isinstance(each, bytes) or each.endswith(b"\0") for each in ids)
    return any(not isinstance(each, str) or each.endswith("\0") for each in ids)
