"""The interval of a slice minus the other queries: two independent samples, clusters, bounds, several labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ndcg_ml import Flavor, evaluate
from ndcg_ml._decide.means import t_quantile

RNG = np.random.default_rng(8)
UNIT = Flavor(gain="linear", ideal="max", max_grade=1, k=1)


def rows(values: NDArray[np.float64], labels: Any, **more: Any) -> dict[Any, dict[str, Any]]:
    """The rows of slices of queries with these values, by label."""
    scores = np.tile([0.9, 0.1], (values.size, 1))
    result = evaluate(np.column_stack([values, np.zeros(values.size)]), scores, flavor=UNIT, by=labels, **more)
    return {row["label"]: row for row in result.slices.to_dict()["slices"]}


def limits(row: dict[str, Any]) -> tuple[float, float]:
    return row["difference_low"], row["difference_high"]


def test_two_labels_have_the_welch_interval():
    stats = pytest.importorskip("scipy.stats")
    values, labels = RNG.beta(2, 2, 50), np.repeat(["a", "b"], [12, 38])
    found = rows(values, labels)
    welch = stats.ttest_ind(values[:12], values[12:], equal_var=False).confidence_interval(0.95)
    assert limits(found["a"]) == pytest.approx((welch.low, welch.high), abs=1e-9)
    assert limits(found["b"]) == pytest.approx((-welch.high, -welch.low), abs=1e-9)


def test_intervals_are_simultaneous_over_the_labels_of_a_column():
    stats = pytest.importorskip("scipy.stats")
    values, labels = RNG.beta(2, 2, 91), np.arange(91) % 3
    for row_labels, n_tested in ((labels, 3), (np.where(np.arange(91) == 90, 9, labels), 3)):
        found = rows(values, row_labels)
        for label in range(3):
            inside = row_labels == label
            welch = stats.ttest_ind(values[inside], values[~inside], equal_var=False)
            expected = welch.confidence_interval(1 - 0.05 / n_tested)
            assert limits(found[label]) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert limits(found[9]) == (None, None)  # a single query
    assert found[9]["difference"] is not None


def test_weights_that_are_equal_change_nothing_and_a_heavy_one_leaves_no_interval():
    values, labels = RNG.beta(2, 2, 40), np.arange(40) % 2
    weight = np.full(40, 0.3)
    plain, weighted = rows(values, labels), rows(values, labels, query_weight=weight)
    assert limits(weighted[1]) == pytest.approx(limits(plain[1]), abs=1e-12)
    weight[0] = 20.0
    assert limits(rows(values, labels, query_weight=weight)[1]) == (None, None)
    weight[0] = 1.0
    low, high = limits(rows(values, labels, query_weight=weight)[1])
    assert high - low > np.subtract(*limits(plain[1])[::-1])


def test_clusters_are_the_samples_and_may_be_in_both_slices():
    values = RNG.beta(2, 2, 20)
    # Each cluster has four equal queries, so the interval is that of one query per cluster.
    fourfold, labels = np.repeat(values, 4), np.repeat(np.arange(20) % 2, 4)
    alone = rows(values, np.arange(20) % 2)
    assert limits(rows(fourfold, labels, cluster=np.repeat(np.arange(20), 4))[0]) == pytest.approx(limits(alone[0]))
    # Each cluster has the same constant difference between its two queries.
    paired = np.concatenate([values * 0.8, values * 0.8 + 0.1])
    both = rows(paired, np.repeat(["a", "b"], 20), cluster=np.tile(np.arange(20), 2))
    assert limits(both["b"]) == pytest.approx((0.1, 0.1), abs=1e-7)
    shifted = paired + RNG.normal(0, 0.01, 40)
    both = rows(shifted.clip(0, 1), np.repeat(["a", "b"], 20), cluster=np.tile(np.arange(20), 2))
    change = (shifted[20:] - shifted[:20]).std(ddof=1) / math.sqrt(20)
    reach = np.subtract(*limits(both["b"])[::-1]) / 2
    assert reach == pytest.approx(t_quantile(0.95, 38) * change, rel=0.02)


def test_values_that_pile_up_have_a_bounded_interval():
    found = rows(np.ones(60), np.arange(60) % 2)[0]
    assert found["difference"] == 0
    low, high = limits(found)
    assert -0.2 < low < -0.03
    assert high == pytest.approx(-low, abs=1e-12)
    opposite = rows(np.repeat([1.0, 0.0], 30), np.repeat(["a", "b"], 30))["a"]
    assert opposite["difference_high"] == 1.0
    assert 0.8 < opposite["difference_low"] < 0.99
    few = rows(np.array([0.9, 0.4, *RNG.beta(2, 2, 30)]), np.repeat(["a", "b"], [2, 30]))["a"]
    assert limits(few)[1] - limits(few)[0] > t_quantile(0.95, 1) * 0.5  # two queries have one degree of freedom


def test_the_limits_are_printed():
    slices = evaluate(*RNG.integers(0, 3, (2, 30, 5)), by=np.arange(30) % 2, k=(1, None)).slices
    heading, *lines = str(slices).splitlines()
    assert heading.split("  ")[-1] == "its interval"
    row = slices.to_dict()["slices"][0]
    assert lines[0].endswith(f"  {row['difference_low']:+.4f} to {row['difference_high']:+.4f}")
