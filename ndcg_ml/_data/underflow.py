"""Numbers that are too small become 0, whatever the caller's ``numpy.seterr`` says of underflow."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def underflow_is_zero(function: Callable[P, R]) -> Callable[P, R]:
    """The function with underflow ignored: it is meant wherever a cast, a gain or a discount rounds to 0.

    ``numpy.errstate`` as a decorator would be one object for all calls, which NumPy 1 mixes up between threads.
    """

    @wraps(function)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(under="ignore"):
            return function(*args, **kwargs)

    return quiet
