"""``compare`` of pandas objects: labels by index, frames of differences and of slices."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import by_values

pd = pytest.importorskip("pandas")


def test_slices_and_clusters_are_matched_by_the_index():
    rng = np.random.default_rng(1)
    ids = [f"q{i}" for i in range(40)]
    a, b = rng.random((2, 40))
    label = pd.Series(np.arange(40) % 2, index=ids).sample(frac=1, random_state=0)
    user = pd.Series(np.arange(40) // 4, index=ids).sample(frac=1, random_state=1)
    found = by_values(a, b, qid=ids, measure="m", by={"odd": label}, cluster=user, seed=0)
    plain = by_values(a, b, qid=ids, measure="m", by={"odd": np.arange(40) % 2}, cluster=np.arange(40) // 4, seed=0)
    assert found.pairs == plain.pairs
    assert [each.pairs for each in found.slices.values()] == [each.pairs for each in plain.slices.values()]
    frame = found.slices.to_frame()
    assert list(frame.verdict) == ["undecided", "undecided"]
    assert list(frame.n_queries) == [20, 20]
    named = by_values(pd.Series(a, index=ids), pd.Series(b, index=ids)[::-1], qid=ids, measure="m", seed=0)
    assert named.difference == pytest.approx(b.mean() - a.mean())
    assert named.to_frame().verdict[0] == named.verdict
    by_frame = by_values(a, b, qid=ids, measure="m", by=label.to_frame("odd"), cluster=user, seed=0)
    assert [each.pairs for each in by_frame.slices.values()] == [each.pairs for each in found.slices.values()]
