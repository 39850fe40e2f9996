"""Choose the kernel of a call and its number of threads, call the compiled kernel, and cache prepared data sets.

The results of the NumPy and the compiled kernel are bitwise identical for any number of threads; only the time differs.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.labels_gains_discounts import Coded, Gains
from ndcg_ml._core.layout import FloatArray, Groups, IntArray
from ndcg_ml._core.numpy_kernel import Cutoffs, Scores
from ndcg_ml._plain.checks import one_of
from ndcg_ml._plain.messages import brief, brief_text, install

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# -- threads ----------------------------------------------------------------------------------------------------------

T = TypeVar("T")

# A call over fewer slots ends before a second thread has started.
_SLOTS_PER_THREAD = 1 << 17

# The largest number of threads in the pool.
_MOST_THREADS = 1 << 10


def thread_count(requested: int | None, n_slots: int) -> int:
    """Return the number of threads for a call over `n_slots` slots.

    This is the requested count; otherwise the environment variable NDCG_ML_THREADS; otherwise OMP_NUM_THREADS, which
    joblib sets in its worker processes, or the number of processors this process may use. Unless a count is requested,
    a call from a thread other than the main one uses that thread alone, because its caller has divided the work.
    """
    limit, useful = requested, n_slots // _SLOTS_PER_THREAD
    if limit is None:
        variable = os.environ.get("NDCG_ML_THREADS")
        if variable:  # an empty variable counts as none
            limit = int(variable) if variable.isdecimal() else 0
            if limit < 1:
                raise ValueError(f"the variable NDCG_ML_THREADS must be an integer >= 1; got {brief(variable)}.")
        elif useful < 2 or threading.current_thread() is not threading.main_thread():
            return 1
        else:
            outer = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
            limit = int(outer) if outer.isdecimal() else 0
            if limit < 1:
                limit = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(limit, useful))


def run_in_threads(work: Callable[[Iterable[T]], None], items: Sequence[T], n_threads: int) -> None:
    """Call `work` in `n_threads` threads, including this one, on one iterator over the items that they share.

    An exception in any thread is raised here.
    """
    if n_threads == 1:
        work(items)
        return
    from concurrent.futures import Future, wait  # it loads logging

    shared, others = iter(items), list[Future[None]]()
    # During interpreter shutdown no thread can start, and this one does all the work.
    with suppress(RuntimeError):
        pool = _pool()
        for _ in range(n_threads - 1):
            others.append(pool.submit(work, shared))  # one by one, so that those that did start are waited for
    try:
        work(shared)
    finally:
        started = [other for other in others if not other.cancel()]
        wait(started)
    for other in started:
        other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """Return a pool that starts threads on demand and keeps them, because starting one takes time."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_MOST_THREADS, "ndcg_ml")


if hasattr(os, "register_at_fork"):  # a child process has none of its parent's other threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


# -- cache of prepared data sets --------------------------------------------------------------------------------------

Arrays: TypeAlias = "tuple[NDArray[Any] | None, ...]"


Value = TypeVar("Value")
"""Result of the preparation."""


class Cache(Generic[Value]):
    """A least-recently-used cache of the results of preparing a data set.

    Data sets are compared by content with copies in the cache, because callers may change their arrays in place.
    Threads may share a cache. A copied or unpickled cache is empty.

    A slot holds the copies and the result. A ``Prepared`` takes about 8 bytes per row for its gains and, unless all
    queries have the same length, 8 more for its layout. With float64 labels and integer ids, a slot takes about 32 MB
    for a million rows.

    Parameters
    ----------
    slots : int
        Number of data sets to keep.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._kept: tuple[tuple[Arrays, Value], ...] = ()

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[Any, ...]:
        return Cache, (self.slots,)

    def get_or_make(self, arrays: Arrays, make: Callable[[], Value]) -> Value:
        """Return the cached result for equal arrays; otherwise call `make` and cache its result."""
        slot = next((slot for slot in self._kept if all(map(_equal, slot[0], arrays))), None)
        if slot is None:
            prepared = make()
            slot = tuple(None if array is None else array.copy() for array in arrays), prepared
        # The assignment is atomic. If two threads store a result at once, one of them is lost and made again later.
        self._kept = (slot, *(other for other in self._kept if other is not slot))[: self.slots]
        return slot[1]


def _equal(kept: NDArray[Any] | None, given: NDArray[Any] | None) -> bool:
    if kept is None or given is None:
        return kept is given
    if kept.shape != given.shape or kept.dtype != given.dtype:
        return False
    # Labels may hold NaN. NumPy compares with equal_nan more slowly, and not at all for ids that are text.
    return np.array_equal(kept, given) or (kept.dtype.kind == "f" and np.array_equal(kept, given, equal_nan=True))


# -- call of the compiled kernel --------------------------------------------------------------------------------------

# Longer than any list.
_NO_CUT = 1 << 62
# Number of parts per thread.
_PARTS = 8
_NO_ORDER = np.empty(0, dtype=np.int64)


class CompiledQueries:
    """The arguments of the compiled kernel for a set of queries.

    Parameters
    ----------
    layout : Groups
        Rows in the order in which tied ones rank, unless ties are averaged.
    gains : ndarray of float, shape (n_rows,), or Coded
    discounts : ndarray of float
        One for each rank that counts.
    ks : sequence of int or None
    """

    def __init__(self, layout: Groups, gains: Gains, discounts: FloatArray, ks: Cutoffs) -> None:
        if isinstance(gains, Coded):
            codes, of_rows = np.ascontiguousarray(layout.arrange(gains.codes)), gains.table
        else:
            codes, of_rows = np.empty(0, dtype=np.uint8), np.ascontiguousarray(layout.arrange(gains))
        order = _NO_ORDER if layout.order is None else layout.order
        cuts: IntArray = np.array([_NO_CUT if k is None else k for k in ks], dtype=np.int64)
        self._sizes, self._n_ks = layout.sizes, len(ks)
        self._arguments = (order, codes, of_rows, layout.starts, layout.sizes, discounts, cuts)

    def dcg(self, rank: Rank, scores: Scores, threads: int, average: bool) -> FloatArray | None:
        """Return DCG by query and cut-off; None if a score is NaN. `average`: tied documents share their mean gain."""
        with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs
            scores = scores.astype(np.float64, copy=not scores.flags.aligned)
        dcg = np.zeros(self._sizes.size * self._n_ks)
        nan = False

        def work(parts: Iterable[tuple[int, int]]) -> None:
            nonlocal nan
            for begin, end in parts:
                if not rank(scores, *self._arguments, average, begin, end, dcg):
                    nan = True

        run_in_threads(work, self._parts(threads), threads)
        return None if nan else dcg.reshape(self._sizes.size, self._n_ks)

    def _parts(self, threads: int) -> list[tuple[int, int]]:
        """Divide the queries into parts with about the same number of rows; several per thread, as one may be slow."""
        if threads == 1:
            return [(0, self._sizes.size)]
        n_parts = _PARTS * threads
        ends = np.cumsum(self._sizes)
        marks = np.arange(1, n_parts) * (int(ends[-1]) / n_parts)
        cuts = [0, *np.searchsorted(ends, marks).tolist(), self._sizes.size]
        return [(begin, end) for begin, end in pairwise(cuts) if begin < end]


# -- choice of the kernel ---------------------------------------------------------------------------------------------

Rank = Callable[..., bool]
"""``compiled_kernel.rank``."""

KERNELS = ("auto", "numpy", "compiled")
OLDEST_NUMBA = (0, 58, 1)
# Numba's own locks stay locked in such a process.
_FORKED = (
    "this process was forked while another thread compiled; let the parent process rank something under "
    "kernel='compiled' before it forks, or start processes by spawn"
)
_INSTALL = f"Install it with: {install('fast')}"

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
    long = np.arange(40.0)
    starts, sizes, cuts = (np.array(each, dtype=np.int64) for each in ([0, 4], [4, long.size], [2]))
    scores = np.concatenate([[2.0, 2.0, -np.inf, 3.0], long])
    gains = np.concatenate([[1.0, 2.0, 4.0, 8.0], long])
    discounts = np.zeros(long.size)
    discounts[:2] = 1.0, 0.5
    dcg, none, codes = np.zeros(2), np.empty(0, np.int64), np.empty(0, np.uint8)
    known = rank(scores, none, codes, gains, starts, sizes, discounts, cuts, True, 0, 2, dcg)
    return bool(known and dcg.tolist() == [8.75, 58.0])


def _after_fork() -> None:
    """Replace a lock whose thread does not exist in this process."""
    if _State.loading.locked():
        _State.loading = threading.Lock()
        _State.failure = _FORKED


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
