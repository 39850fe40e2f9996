"""The number of threads of the compiled kernel, and the division of work among them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from ndcg_ml._core.one_line import brief

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

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
        elif useful <= 1 or threading.current_thread() is not threading.main_thread():
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
