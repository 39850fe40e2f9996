"""The kernel takes the shorter way where one must do: no value shows which way was taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ndcg_ml._data.queries import by_sizes
from ndcg_ml._kernel import numpy_kernel


def refused(*_: Any, **__: Any) -> Any:
    raise AssertionError("the longer way was taken")


def test_the_blocks_of_a_call_share_their_memory() -> None:
    space = numpy_kernel.Workspace()
    first = space.array("a", (3, 4), np.float64)
    assert first.shape == (3, 4)
    for shape in ((3, 4), (4, 3), (2, 2)):
        again = space.array("a", shape, np.float64)
        assert (again.shape, again.dtype) == (shape, np.float64)
        assert np.shares_memory(first, again)
    assert not np.shares_memory(first, space.array("b", (3, 4), np.float64))
    assert space.array("a", (3, 4), np.float32).dtype == np.float32
    assert space.array("a", (5, 5), np.float32).shape == (5, 5)


def test_scores_that_float32_tells_apart_are_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.array([[3.0, -1.0, 0.0, -1.0, -0.0, 2.0], [-5.0, 1e-30, -3.0, 1e30, -1e-30, np.inf]])
    expected = np.argsort(keys, axis=1, kind="stable") + np.array([[0], [6]])
    monkeypatch.setattr(np, "argsort", refused)
    order, ordered = numpy_kernel._stable_order(keys)
    assert (order == expected).all()
    assert (ordered == keys.reshape(-1)[expected]).all()


@pytest.mark.parametrize(("depth", "width", "selects"), [(3, 10, True), (3, 9, False), (4, 10, False), (1, 4, True)])
def test_the_top_is_selected_where_less_than_a_third_of_the_slots_is_needed(
    monkeypatch: pytest.MonkeyPatch, depth: int, width: int, selects: bool
) -> None:
    seen = []
    select = numpy_kernel._select
    monkeypatch.setattr(numpy_kernel, "_select", lambda *arguments: seen.append(arguments) or select(*arguments))
    scores = np.arange(float(width))[None]
    top = numpy_kernel.expected_gains(scores, scores, depth, True, numpy_kernel.Workspace())
    assert top.tolist() == [[float(width - rank) for rank in range(1, depth + 1)]]
    assert bool(seen) == selects


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_cut_that_no_tie_crosses_needs_no_second_look(monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    monkeypatch.setattr(numpy_kernel, "_settle", refused)
    scores = np.array([[1, 7, 2, 7, 3, 0, 4, 0], [8, 1, 7, 1, 6, 1, 5, 1]], dtype=dtype)
    gains = np.arange(16.0).reshape(2, 8)
    top = numpy_kernel.expected_gains(scores, gains, 2, True, numpy_kernel.Workspace())
    assert top.tolist() == [[2.0, 2.0], [8.0, 10.0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_minus_infinity_make_room_for_padding_without_being_sorted(
    monkeypatch: pytest.MonkeyPatch, dtype: type
) -> None:
    monkeypatch.setattr(np, "unique", refused)
    scores = np.array([2, -np.inf, -1e38, -np.inf, 5, 1], dtype=dtype)
    before = scores.copy()
    [(_, _, ranked)] = padded(scores)
    assert (np.argsort(-ranked, axis=1, kind="stable") == [[0, 1, 2, 3], [0, 2, 1, 3]]).all()
    assert (ranked == -np.inf).tolist() == [[False, False, True, True], [False] * 4]
    assert ranked[1, 1] == ranked[1, 3]
    assert (scores == before).all()


@pytest.mark.parametrize("low", [-3e38, -(2.0**127)])
def test_a_score_far_down_still_ranks_above_minus_infinity(low: float) -> None:
    [(_, _, ranked)] = padded(np.array([-np.inf, low, 0, -np.inf, low, 1]))
    assert (np.argsort(-ranked, axis=1, kind="stable") == [[1, 0, 2, 3], [2, 1, 0, 3]]).all()
    assert (ranked == -np.inf).tolist() == [[False, False, True, True], [False] * 4]


def padded(scores: np.ndarray) -> Any:
    """Two queries, of four documents and of two, in one block."""
    groups = by_sizes([4, 2], 6)
    return list(numpy_kernel.gathered(numpy_kernel.fill(groups, np.ones(6)), scores, numpy_kernel.Workspace()))


@pytest.mark.parametrize(("gain", "dtype"), [(3.0, np.float32), (0.1, np.float64)])
def test_ideal_gains_are_sorted_in_float32_where_that_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, gain: float, dtype: type
) -> None:
    seen = []
    sort = np.sort
    monkeypatch.setattr(np, "sort", lambda values, **how: seen.append(values.dtype) or sort(values, **how))
    best = numpy_kernel._best_first(np.array([[0.0, gain, -np.inf, 1.0]]), 4)
    assert best.dtype == np.float64
    assert best.tolist() == [sorted([gain, 1.0, 0.0, 0.0], reverse=True)]
    assert seen == [dtype]
