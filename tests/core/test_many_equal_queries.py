"""Comparisons in which few of many queries differ, as in an unchanged run, and levels that no test can reach."""

from __future__ import annotations

import numpy as np
import pytest

from ndcg_ml import compare, evaluate

LABELS = np.array([2.0, 0.0, 1.0])
SCORES = np.array([3.0, 2.0, 1.0])


def systems(n_queries, n_worse):
    """One system, and the same with its first queries turned around."""
    labels, scores = np.tile(LABELS, n_queries), np.tile(SCORES, n_queries)
    changed = scores.copy()
    changed[: 3 * n_worse] *= -1
    group = np.full(n_queries, 3)
    return [evaluate(labels, s, group=group, k=10) for s in (scores, changed)]


@pytest.mark.parametrize("n_worse", [0, 1, 13, 14])
@pytest.mark.parametrize("n_queries", [1023, 1024, 20_000])
def test_any_number_of_equal_queries_is_compared(n_queries, n_worse):
    old, new = systems(n_queries, n_worse)
    found = compare(old, new, margin=0.02, seed=0).pairs[0]
    assert found.losses == n_worse
    assert found.interval.low <= found.difference <= found.interval.high
    few = compare(*systems(100, n_worse), seed=0).pairs[0]
    # Equal queries do not change the p-value, which is exact up to 13 that differ.
    assert found.p_value == (pytest.approx(few.p_value, abs=1e-3) if n_worse > 13 else few.p_value)


@pytest.mark.parametrize("n_worse", [0, 13])
def test_many_equal_clusters_and_slices_are_compared(n_worse):
    old, new = systems(4096, n_worse)
    cluster = {i: i // 2 for i in range(4096)}
    by = {"half": {i: "first" if i < 2048 else "second" for i in range(4096)}}
    found = compare(old, new, cluster=cluster, by=by, seed=0)
    assert found.n_clusters == 2048
    assert len(found.slices) == 2


def test_a_bundle_of_equal_queries_barely_moves_the_interval():
    (few, many) = (compare(*systems(n, 10), seed=0).pairs[0].interval for n in (1000, 1025))
    np.testing.assert_allclose([many.low, many.high], np.array([few.low, few.high]) * 1000 / 1025, rtol=0.03)


def test_a_level_that_takes_many_draws_is_kept():
    assert compare(*systems(50, 20), confidence=0.9999, seed=0).pairs[0].interval.confidence == 0.9999
