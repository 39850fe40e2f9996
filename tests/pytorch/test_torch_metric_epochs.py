"""The torchmetrics metric over epochs, and saved and restored in the middle of one."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import copy
import io
import math
import pickle
import warnings

import torch
from torch import nn
from torchmetrics import MetricCollection

from ndcg_ml.torch import NDCG, EpochWarning

pytestmark = pytest.mark.usefixtures("kernel")


# -- epochs -------------------------------------------------------------------------------------------------------


def one_query(relevant_first=True):
    return torch.tensor([[0.9, 0.1]]), torch.tensor([[1, 0]] if relevant_first else [[0, 1]])


MIXED = (1 + 1 / math.log2(3)) / 2


def epoch_warnings(caught):
    return [str(one.message) for one in caught if one.category is EpochWarning]


@pytest.mark.parametrize("by", ["update", "forward"])
@pytest.mark.parametrize("split", [False, True])
def test_queries_after_a_value_without_a_reset_warn_once(split, by):
    def add(metric, number, relevant_first):
        ids = torch.tensor([number])
        (metric.update if by == "update" else metric)(*one_query(relevant_first), ids)

    metric = NDCG(split_queries=split)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        add(metric, 0, True)
        add(metric, 1, True)
        assert metric.compute() == metric.compute() == 1.0
        metric.reset()
        add(metric, 0, True)
        metric.compute()
        assert epoch_warnings(caught) == []
        add(metric, 1, False)
        assert metric.compute().item() == pytest.approx(MIXED)
        assert len(epoch_warnings(caught)) == 1
        add(metric, 2, False)
        metric.compute()
        add(metric, 3, False)
    [message] = epoch_warnings(caught)
    assert message.startswith("queries are added after compute without a reset")
    if by == "update":
        assert [one.filename for one in caught if one.category is EpochWarning] == [__file__]


def test_a_value_that_was_refused_does_not_close_the_epoch():
    metric = NDCG()
    metric.update(*one_query(relevant_first=False), torch.tensor([3]))
    metric.update(*one_query(), torch.tensor([3]))
    with pytest.raises(ValueError, match="appeared more than once"):
        metric.compute()
    with pytest.raises(ValueError, match="appeared more than once"):
        metric.compute()
    metric.update(*one_query(), torch.tensor([4]))  # no warning beside the error
    metric.reset()
    metric.update(*one_query())
    assert metric.compute() == 1.0


@pytest.mark.parametrize("copied", [copy.deepcopy, NDCG.clone, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_knows_that_a_value_was_computed(copied):
    metric = NDCG()
    metric.update(*one_query())
    metric.compute()
    with pytest.warns(EpochWarning, match="after compute"):
        copied(metric).update(*one_query())
    fresh = copied(NDCG())
    fresh.update(*one_query())


def test_a_collection_warns_once_and_not_in_epochs_of_its_own():
    collection = MetricCollection({"a": NDCG(k=1), "b": NDCG(k=1), "c": NDCG("lightgbm")})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            for _ in range(3):
                collection(*one_query())
                collection.update(*one_query())
            collection.compute()
            collection.reset()
        assert epoch_warnings(caught) == []
        for _ in range(3):
            collection.update(*one_query())
            collection.compute()
    assert len(epoch_warnings(caught)) == 2  # one in each compute group


# -- checkpoints --------------------------------------------------------------------------------------------------


def ranker(persistent=False, **options):
    module = nn.Module()
    module.layer, module.metric = nn.Linear(2, 1), NDCG(**options)
    module.metric.persistent(persistent)
    return module


def test_a_checkpoint_holds_no_state_by_default_and_says_so_in_mid_epoch():
    module = ranker()
    assert set(module.state_dict()) == {"layer.weight", "layer.bias"}
    module.metric.update(*one_query())
    with pytest.warns(EpochWarning, match=r"leaves out the queries.*Call metric\.persistent\(True\)"):
        state = module.state_dict()
    assert set(state) == {"layer.weight", "layer.bias"}
    module.state_dict()  # the warning comes once
    other = ranker()
    other.metric.update(*one_query())
    other.metric.compute()
    other.state_dict()  # the epoch is over


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("old_is_persistent", [False, True])
@pytest.mark.parametrize("new_is_persistent", [False, True])
def test_checkpoints_with_and_without_state_load_strictly(new_is_persistent, old_is_persistent, split):
    old, new = (
        ranker(persistent=persistent, k=[1, None], split_queries=split)
        for persistent in (old_is_persistent, new_is_persistent)
    )
    ids = torch.tensor([0])
    if old_is_persistent:
        old.metric.update(*one_query(relevant_first=False), ids)
    kept = io.BytesIO()
    torch.save(old.state_dict(), kept)
    kept.seek(0)
    new.load_state_dict(torch.load(kept, weights_only=True), strict=True)
    new.metric.update(*one_query(), ids + 1)
    want = MIXED if old_is_persistent else 1.0
    assert new.metric.compute()[None].item() == pytest.approx(want)
    if old_is_persistent:
        assert old.metric.compute()[None].item() == pytest.approx(1 / math.log2(3))  # not the list that grew


def test_a_loaded_state_replaces_a_value_that_was_kept():
    old, new = ranker(persistent=True), ranker(persistent=True)
    old.metric.update(*one_query(relevant_first=False))
    new.metric.update(*one_query())
    assert new.metric.compute() == 1.0
    new.load_state_dict(old.state_dict())
    assert new.metric.compute().item() == pytest.approx(1 / math.log2(3))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("other", [{"k": [1, 5]}, {"flavor": "lightgbm"}, {"k": 3}], ids=str)
def test_a_state_of_another_meaning_is_refused(other, strict):
    old, new = ranker(persistent=True), ranker(**other)
    old.metric.update(*one_query())
    with pytest.raises(RuntimeError, match=r"metric: the checkpoint holds queries of an NDCG of another flavor"):
        new.load_state_dict(old.state_dict(), strict=strict)
    assert int(new.metric.n_queries) == 0


def test_weights_loaded_in_mid_epoch_warn_when_it_goes_on():
    module = ranker()
    weights = module.state_dict()
    module.metric.update(*one_query())
    module.load_state_dict(weights)
    with pytest.warns(EpochWarning, match="after load_state_dict without a reset"):
        module.metric.update(*one_query(relevant_first=False))
    assert module.metric.compute().item() == pytest.approx(MIXED)
    module.metric.reset()
    module.load_state_dict(weights)
    module.metric.update(*one_query())
    module.load_state_dict(weights)
    module.metric.reset()
    module.metric.update(*one_query())
