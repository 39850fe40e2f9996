"""The cache finds prepared data by content, and drops the least recently used first."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ndcg_ml._core.kernel_and_threads import Cache


def data(number: float) -> tuple[np.ndarray, None]:
    return np.full(3, number), None


def test_the_least_recently_used_data_are_dropped_first() -> None:
    cache: Cache[float] = Cache(2)
    made: list[float] = []

    def prepared(number: float) -> float:
        return cache.get_or_make(data(number), lambda: made.append(number) or number)

    assert [prepared(number) for number in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert made == [1, 2, 3, 2]  # 1 was used after 2, so 3 replaced 2
    assert len(cache) == 2


def test_data_are_compared_by_content_with_copies() -> None:
    cache: Cache[str] = Cache(4)
    arrays = data(1.0)
    assert cache.get_or_make(arrays, lambda: "first") == "first"
    arrays[0][0] = 7
    assert cache.get_or_make(arrays, lambda: "changed in place") == "changed in place"
    assert cache.get_or_make(data(1.0), lambda: "again") == "first"
    assert cache.get_or_make((data(1.0)[0].astype(np.float32), None), lambda: "another dtype") == "another dtype"
    assert cache.get_or_make((data(1.0)[0], np.zeros(1)), lambda: "weights") == "weights"


def test_labels_with_nan_are_found_again() -> None:
    cache: Cache[str] = Cache(4)
    labels, ids = np.array([1.0, np.nan, 0.0]), np.array(["a", "a", "b"])
    assert cache.get_or_make((labels, ids), lambda: "first") == "first"
    assert cache.get_or_make((labels.copy(), ids), lambda: "again") == "first"
    assert cache.get_or_make((np.array([1.0, 0.0, np.nan]), ids), lambda: "moved") == "moved"


def test_copies_and_pickles_of_a_cache_are_empty() -> None:
    cache: Cache[str] = Cache(3)
    cache.get_or_make(data(1.0), lambda: "here")
    for other in (pickle.loads(pickle.dumps(cache)), copy.deepcopy(cache), copy.copy(cache)):
        assert (len(other), other.slots) == (0, 3)
        assert other.get_or_make(data(1.0), lambda: "there") == "there"
    assert len(cache) == 1


def test_threads_may_share_a_cache() -> None:
    cache: Cache[float] = Cache(3)
    with ThreadPoolExecutor(8) as pool:
        numbers = [number % 5 for number in range(400)]
        assert list(pool.map(lambda n: cache.get_or_make(data(n), lambda: n), numbers)) == numbers
    assert len(cache) == 3
