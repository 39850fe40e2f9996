"""``compare`` of pandas objects: names, labels by index, frames of differences and of segments."""

from __future__ import annotations

import numpy as np
import pytest

from ndcg_ml import compare

pd = pytest.importorskip("pandas")


def test_two_series_of_one_name_are_two_systems():
    y, q = np.array([1, 0, 0, 1, 1, 0]), [0, 0, 1, 1, 2, 2]
    a, b = (pd.Series(x, name="score") for x in ([2.0, 1, 2, 1, 2, 1], [2.0, 1, 1, 2, 2, 1]))
    both = compare(a, b, y_true=y, qid=q)
    assert both.names == ("a", "b")
    assert both.to_frame().value_a[0] != both.to_frame().value_b[0]
    assert compare(a.to_numpy(), b, y_true=y, qid=q).names == ("a", "b")
    assert compare(a, b.rename("other"), y_true=y, qid=q).names == ("score", "other")


def test_segments_and_clusters_are_matched_by_the_index():
    rng = np.random.default_rng(1)
    ids = [f"q{i}" for i in range(40)]
    a, b = rng.random((2, 40))
    label = pd.Series(np.arange(40) % 2, index=ids).sample(frac=1, random_state=0)
    user = pd.Series(np.arange(40) // 4, index=ids).sample(frac=1, random_state=1)
    found = compare(a, b, qid=ids, measure="m", by={"odd": label}, cluster=user, seed=0)
    plain = compare(a, b, qid=ids, measure="m", by={"odd": np.arange(40) % 2}, cluster=np.arange(40) // 4, seed=0)
    assert found.pairs == plain.pairs
    assert [each.pairs for each in found.slices] == [each.pairs for each in plain.slices]
    frame = found.slices.to_frame()
    assert list(frame.verdict) == ["undecided", "undecided"]
    assert list(frame.n_queries) == [20, 20]
    named = compare(pd.Series(a, index=ids), pd.Series(b, index=ids)[::-1], qid=ids, measure="m", seed=0)
    assert named.difference == pytest.approx(b.mean() - a.mean())
    assert named.to_frame().verdict[0] == named.verdict
    by_frame = compare(a, b, qid=ids, measure="m", by=label.to_frame("odd"), cluster=user, seed=0)
    assert [each.pairs for each in by_frame.slices] == [each.pairs for each in found.slices]
