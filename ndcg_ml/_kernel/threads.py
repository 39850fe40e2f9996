"""The number of threads of the compiled kernel, and the division of work among them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from ndcg_ml._one_line import shown

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

# Below this many slots a call is over before a second thread has started.
_WORTH_A_THREAD = 1 << 17

# No call has a use for more.
_MOST = 1 << 10


def thread_count(requested: int | None, n_slots: int) -> int:
    """Threads for a call over this many slots.

    The requested count; otherwise the variable NDCG_ML_THREADS; otherwise OMP_NUM_THREADS, which joblib sets in its
    worker processes so that they do not overload the machine, or the processors this process may use. A call from
    another thread than the main one stays in it, unless a count is requested, because work is already divided.
    """
    limit, useful = requested, n_slots // _WORTH_A_THREAD
    if limit is None:
        named = os.environ.get("NDCG_ML_THREADS")
        if named:  # an empty variable counts as none
            limit = int(named) if named.isdecimal() else 0
            if limit < 1:
                raise ValueError(f"the variable NDCG_ML_THREADS must be an integer >= 1; got {shown(named)}.")
        elif useful <= 1 or threading.current_thread() is not threading.main_thread():
            return 1
        else:
            first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
            limit = int(first) if first.isdecimal() and int(first) > 0 else _processors()
    return max(1, min(limit, useful))


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ForkableLock:
    """A lock that a forked process has open, even where another thread of the parent held it at that moment.

    The guarded value must be replaced in one step, so that a child never sees it half changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _LOCKS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Forget who holds it."""
        self._lock = threading.Lock()


_LOCKS: WeakSet[ForkableLock] = WeakSet()


def _after_fork() -> None:
    """A child has the locks of its parent, and none of the threads that would release them or do its work."""
    _pool.cache_clear()
    for lock in _LOCKS:
        lock.renew()


def run_in_threads(work: Callable[[Iterable[T]], None], items: Sequence[T], n_threads: int) -> None:
    """Call `work` in `n_threads` threads, this one among them, which take the next item in turn.

    An exception in one of them is raised here.
    """
    if n_threads == 1:
        work(items)
        return
    from concurrent.futures import Future, wait  # it loads logging

    shared, others = iter(items), list[Future[None]]()
    # At the end of the interpreter (atexit) no thread starts any more, and this one does all the work.
    with suppress(RuntimeError):
        pool = _pool()
        for _ in range(n_threads - 1):
            others.append(pool.submit(work, shared))  # one by one: those before the one that fails are waited for
    try:
        work(shared)
    finally:
        started = [other for other in others if not other.cancel()]  # the rest have nothing to do
        wait(started)
    for other in started:
        other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that are started when they are needed and kept, because it takes a while to start one."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_MOST, "ndcg_ml")


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_after_fork)
