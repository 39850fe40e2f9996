"""Choose the NumPy or the compiled kernel for a call. Their results are bitwise identical; only the time differs."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import numpy as np

from ndcg_ml._core.checks import one_of
from ndcg_ml._core.one_line import brief_text

Rank = Callable[..., bool]
"""``compiled_kernel.rank``."""

KERNELS = ("auto", "numpy", "compiled")
OLDEST_NUMBA = (0, 58, 1)
# Numba's own locks stay locked in such a process.
_FORKED = (
    "this process was forked while another thread compiled; let the parent process rank something under "
    "kernel='compiled' before it forks, or start processes by spawn"
)
_INSTALL = "Install it with: pip install 'ndcg_ml[fast]'"

# Ranking this many slots with the NumPy kernel takes about as long as loading Numba and compiling.
_WORTH_COMPILING = 1 << 26


class _State:
    """The state of the compiled kernel in this process."""

    rank: Rank | None = None
    failure: str | None = None
    slots: int = 0
    """Number of slots ranked by the NumPy kernel while Numba was installed."""
    loading = threading.Lock()


def choose_kernel(kernel: object) -> str:
    """Return the requested kernel; for "auto", the environment variable NDCG_ML_KERNEL unless it is empty.

    Raises
    ------
    TypeError, ValueError
        It is not one of the three names.
    """
    one_of(kernel, "kernel", KERNELS)
    named = os.environ.get("NDCG_ML_KERNEL")
    if kernel == "auto" and named:
        one_of(named, "the environment variable NDCG_ML_KERNEL", KERNELS)
        return named
    return str(kernel)


def compiled_rank(kernel: str, n_slots: int) -> Rank | None:
    """Return the compiled kernel for a call over `n_slots` slots, or None for the NumPy kernel.

    Under "auto" it is compiled once this process has spent about as much time in the NumPy kernel as compiling takes;
    from then on all calls use it.

    Raises
    ------
    ImportError
        Under "compiled", Numba is missing or cannot be used.
    """
    if kernel == "numpy":
        return None
    if _State.rank is not None:
        return _State.rank
    if kernel == "auto":
        if _State.failure is not None or not _numba_is_installed():
            return None
        _State.slots += n_slots
        # A second thread does not wait while the first one compiles.
        if _State.slots < _WORTH_COMPILING or not _State.loading.acquire(blocking=False):
            return None
    else:
        _State.loading.acquire()
    try:
        if _State.rank is None and _State.failure is None:
            _State.rank, _State.failure = _load()
            if _State.failure is not None and kernel == "auto":
                warnings.warn(
                    f"The NumPy kernel is used because the compiled kernel cannot be: {_State.failure}. "
                    "Set NDCG_ML_KERNEL=numpy to avoid this warning.",
                    RuntimeWarning,
                    stacklevel=2,
                )
    finally:
        _State.loading.release()
    if _State.rank is None and kernel == "compiled":
        raise ImportError(f"kernel='compiled' cannot be used: {_State.failure}.")
    return _State.rank


def kernel_in_use() -> str:
    """Return the kernel that a call would use now, and why."""
    kernel = choose_kernel("auto")
    if kernel == "numpy":
        return "numpy (NDCG_ML_KERNEL=numpy)"
    if _State.rank is not None:
        return "compiled"
    failure = _State.failure or (None if _numba_is_installed() else f"Numba is not installed. {_INSTALL}")
    if kernel == "compiled":
        return f"none (NDCG_ML_KERNEL=compiled, but {failure})" if failure else "compiled (NDCG_ML_KERNEL=compiled)"
    if failure:
        return f"numpy ({failure})"
    return f"numpy; compiled once {_WORTH_COMPILING >> 20} million rows were ranked ({_State.slots >> 20} so far)"


@cache
def _numba_is_installed() -> bool:
    return find_spec("numba") is not None


def _load() -> tuple[Rank | None, str | None]:
    """Load the compiled kernel. Return it and None, or None and the reason."""
    if not _numba_is_installed():
        return None, f"Numba is not installed. {_INSTALL}"
    try:
        import numba

        version = tuple(int(part) for part in numba.__version__.split(".")[:3] if part.isdigit())
        if version < OLDEST_NUMBA:
            oldest = ".".join(map(str, OLDEST_NUMBA))
            return None, f"Numba {numba.__version__} is older than {oldest}. {_INSTALL}"
        if numba.config.DISABLE_JIT:
            return None, "NUMBA_DISABLE_JIT is set, so Numba does not compile"
        from ndcg_ml._core.compiled_kernel import rank

        if not _gives_known_dcg(rank):
            return None, f"Numba {numba.__version__} compiles it to wrong numbers"
    except Exception as error:  # an installation may be broken in any way
        return None, f"Numba is installed but does not work ({type(error).__name__}: {brief_text(str(error))})"
    return rank, None


def _gives_known_dcg(rank: Rank) -> bool:
    """Whether the kernel gives the known DCG of a short query with a tie at rank 2, and of a long query."""
    starts, sizes, cuts = np.array([0, 4]), np.array([4, 40]), np.array([2])
    scores = np.concatenate([[2.0, 2.0, -np.inf, 3.0], np.arange(40.0)])
    gains = np.concatenate([[1.0, 2.0, 4.0, 8.0], np.arange(40.0)])
    discounts = np.zeros(40)
    discounts[:2] = 1.0, 0.5
    dcg, none, codes = np.zeros(2), np.empty(0, np.int64), np.empty(0, np.uint8)
    known = rank(scores, none, codes, gains, starts, sizes, discounts, cuts, True, dcg)
    return bool(known and dcg.tolist() == [8.75, 58.0])


def _after_fork() -> None:
    """Replace a lock whose thread does not exist in this process."""
    if _State.loading.locked():
        _State.loading = threading.Lock()
        _State.failure = _FORKED


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
