"""What a caller passed, as NumPy arrays that the kernel can trust; everything else is refused here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["flag_array", "plain_array", "real_array"]


def real_array(value: Any, name: str) -> NDArray[Any]:
    """A real-valued array, float32 or float64 in native byte order, C-contiguous."""
    array = plain_array(value, name)
    if array.dtype == object:
        odd = next((each for each in array.flat if isinstance(each, _NOT_REAL)), None)
        if odd is not None:  # NumPy would read a number in a string, and drop what is imaginary
            raise TypeError(
                f"{name} must hold real numbers; got an array of Python objects, such as {odd!r} of type "
                f"{type(odd).__name__}."
            )
        try:
            with np.errstate(over="ignore"):  # of long doubles beyond float64
                array = array.astype(np.float64)
        except OverflowError as error:
            raise ValueError(f"{name} must hold numbers that float64 can hold; got one that is too large.") from error
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name} must hold real numbers; got an array of Python objects ({error}). "
                "Lists of unequal lengths must be flattened, with qid= or group= saying which rows belong together."
            ) from error
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    dtype = np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64
    with np.errstate(over="ignore", invalid="ignore"):  # of long doubles beyond float64; of signalling NaNs
        return np.asarray(array, dtype=dtype, order="C")


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
            f"{name} must be a one- or two-dimensional array; got {type(value).__name__} that is not one ({error}). "
            "Lists of unequal lengths must be flattened, with qid= or group= saying which rows belong together."
        ) from error
    except Exception as error:  # of the value's own conversion, which may raise what it likes
        raise TypeError(
            f"{name} must be an array; got {type(value).__name__}, which NumPy cannot read ({error})."
        ) from error
