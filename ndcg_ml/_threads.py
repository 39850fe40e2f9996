"""How many threads a call may use, and sharing work out among them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from ndcg_ml._shown import shown
from ndcg_ml.flavor import check_k

__all__ = ["in_threads", "thread_count"]

T = TypeVar("T")

# Below this many slots a call is over before a second thread has started.
_WORTH_A_THREAD = 1 << 17


def thread_count(asked: int | None, n_slots: int) -> int:
    """Threads for a call over this many slots.

    What the caller asked for; else the variable NDCG_ML_THREADS; else OMP_NUM_THREADS, which joblib sets in its worker
    processes so that they do not overrun the machine, or the processors this process may use. A call that is made from
    a thread other than the main one stays in it, unless the caller asked: somebody is sharing out work already.
    """
    limit = asked
    if limit is None:
        named = os.environ.get("NDCG_ML_THREADS")
        if named:  # an empty variable counts as none
            limit = _from_environment(named)
        elif threading.current_thread() is not threading.main_thread():
            return 1
        else:
            first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
            limit = int(first) if first.isdigit() and int(first) > 0 else _processors()
    return max(1, min(limit, n_slots // _WORTH_A_THREAD))


def _from_environment(named: str) -> int:
    try:
        return check_k(int(named), "NDCG_ML_THREADS") or 1
    except ValueError:
        raise ValueError(
            "the environment variable NDCG_ML_THREADS must be an integer >= 1, a number of threads; got "
            f"{shown(named)}."
        ) from None


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[Sequence[T]], None], items: Sequence[T], n_threads: int) -> None:
    """Call `work` on the items, dealt out to `n_threads` threads; an exception in one of them is raised here."""
    if n_threads == 1:
        work(items)
        return
    from concurrent.futures import ThreadPoolExecutor  # which loads logging

    with ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(work, items[i::n_threads]) for i in range(n_threads)]:
            done.result()
