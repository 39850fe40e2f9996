"""What a caller passed, as NumPy arrays that the kernel can trust; everything else is refused here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["flag_array", "real_array"]


def real_array(value: Any, name: str) -> NDArray[Any]:
    """A real-valued array, float32 or float64 in native byte order, C-contiguous."""
    array = _plain(value, name)
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name} must hold real numbers; got an array of Python objects ({error}). "
                "Lists of unequal lengths must be flattened, with qid= or group= saying which rows belong together."
            ) from error
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    dtype = np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64
    return np.asarray(array, dtype=dtype, order="C")


def flag_array(value: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """A boolean array of the given shape."""
    array = _plain(value, name)
    if array.dtype != bool:
        raise TypeError(
            f"{name} must be an array of bool, True where the document takes part; got dtype {array.dtype}. "
            f"Write {name}.astype(bool) if it holds 0 and 1."
        )
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape of y_true, {shape}; got {array.shape}.")
    return np.ascontiguousarray(array)


def _plain(value: Any, name: str) -> NDArray[Any]:
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
    except ValueError as error:  # ragged nested lists
        raise ValueError(
            f"{name} must be a one- or two-dimensional array; got {type(value).__name__} that is not one ({error}). "
            "Lists of unequal lengths must be flattened, with qid= or group= saying which rows belong together."
        ) from error
