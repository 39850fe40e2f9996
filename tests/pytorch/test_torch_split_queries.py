"""``NDCG(split_queries=True)`` with lists in three dimensions: ids per list, padding that counts for nothing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import numpy as np

from ndcg_ml import ndcg_score
from ndcg_ml.torch import NDCG


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (1, 3, 2), (3, 1, 5)])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("updates", [1, 2])
def test_lists_in_three_dimensions_are_put_together(shape, padded, updates):
    rng = np.random.default_rng(0)
    n_lists = shape[0] * shape[1]
    metric = NDCG("sklearn@5", split_queries=True)
    rows = []
    for _ in range(updates):  # every update has a piece of each list
        labels, scores = rng.integers(0, 3, shape), rng.normal(size=shape)
        mask = np.ones(shape, dtype=bool)
        if padded:
            mask[..., shape[2] // 2 + 1 :] = False
            labels[~mask] = 99
        said = {"mask": torch.tensor(mask)} if padded else {}
        ids = torch.arange(n_lists).reshape(shape[:2])
        metric.update(torch.tensor(scores), torch.tensor(labels), indexes=ids, **said)
        rows.append([each.reshape(n_lists, shape[2]) for each in (labels, scores, mask)])
    labels, scores, mask = (np.concatenate(each, axis=1) for each in zip(*rows, strict=True))
    expected = ndcg_score(labels, scores, mask=mask, flavor="sklearn@5")
    assert float(metric.compute()) == pytest.approx(expected, abs=1e-9)
