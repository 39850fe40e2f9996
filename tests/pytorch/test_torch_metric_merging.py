"""States of the torchmetrics metric that are merged, over batches and processes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math

import torch
from torch_batches import tensors_of

from ndcg_ml import Flavor
from ndcg_ml.torch import NDCG

pytestmark = pytest.mark.usefixtures("kernel")
running = pytest.mark.filterwarnings("ignore::ndcg_ml.torch.EpochWarning")  # computes while the epoch goes on


def test_merging_forgets_the_value_computed_before():
    """torchmetrics 1.9 returns it again."""
    first, second = NDCG(), NDCG()
    first.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]), torch.tensor([1]))
    second.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 1]]), torch.tensor([2]))
    assert first.compute() == 1.0
    first.merge_state(second)
    assert first.compute().item() == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert first.update_count == 2
    first.merge_state(second.metric_state)
    with pytest.raises(ValueError, match=r"1 of the queries appeared more than once \(such as id 2"):
        first.compute()
    assert second.n_queries == 1


def test_merged_rows_come_after_those_already_there():
    ours, theirs = NDCG("lightgbm", split_queries=True), NDCG("lightgbm", split_queries=True)
    ours.update(torch.tensor([0.5]), torch.tensor([1]), torch.tensor([0]))
    theirs.update(torch.tensor([0.5]), torch.tensor([0]), torch.tensor([0]))
    ours.merge_state(theirs)
    assert ours.compute() == 1.0  # "first"
    assert theirs.compute() == 1.0  # LightGBM's value of an empty query
    theirs.reset()
    theirs.merge_state(ours)
    assert theirs.compute() == 1.0


@pytest.mark.parametrize(
    "other", [NDCG("lightgbm"), NDCG(k=3), NDCG(split_queries=True), NDCG(query_ids="batch"), {}, 3]
)
def test_metrics_of_unlike_meaning_are_not_merged(other):
    with pytest.raises(ValueError, match=r"incoming_state must be an NDCG.*of another meaning"):
        NDCG().merge_state(other)


def test_a_sum_of_metrics_is_torchmetrics_own():
    total = NDCG(k=1) + NDCG(k=2)
    total.update(torch.tensor([[0.1, 0.9]]), torch.tensor([[1, 0]]))
    assert total.compute().item() == pytest.approx(1 / math.log2(3))


@pytest.mark.parametrize("settings_", [{}, {"query_ids": "batch"}, {"split_queries": True}], ids=str)
def test_update_never_waits_for_an_accelerator(settings_):
    # A meta tensor has no data, so that any look at them raises.
    for flavor in (
        "sklearn",
        "lightgbm",
        Flavor(ideal="local", unjudged="zero"),
        Flavor(ideal="max", max_grade=4, ties="best"),
    ):
        metric = NDCG(flavor, k=[2, None], **settings_).to("meta")
        scores, labels = torch.rand(3, 5, device="meta"), torch.ones(3, 5, device="meta")
        ids = None if settings_.get("query_ids") == "batch" else labels[:, 0].long()
        metric.update(scores, labels, ids, mask=scores > 0)
        metric.update(scores.flatten(), labels.flatten(), indexes=labels.flatten().long())
        assert {part.device.type for part in tensors_of(metric)} == {"meta"}


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    metric = NDCG(k=[1, None])
    value = metric(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    for shown in (None, [value, value]):
        figure, _ = metric.plot(shown)
        pyplot.close(figure)
