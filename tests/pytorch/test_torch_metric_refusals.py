"""What the torchmetrics metric refuses, when, and what is nan instead."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math
from contextlib import contextmanager

import numpy as np
import torch
from torch_batches import LISTS

from ndcg_ml import Flavor
from ndcg_ml.torch import NDCG

pytestmark = pytest.mark.usefixtures("kernel")
PERFECT, WORST = (
    (torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]])),
    (torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 1]])),
)


@contextmanager
def elsewhere():
    """Compiled code cannot look at data, as on an accelerator, which is not here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        yield


# -- data ------------------------------------------------------------------------------------------------------------

BAD = {
    "NaN score": (Flavor(), [[math.nan, 0.1]], [[1.0, 0.0]], "preds must not hold NaN.*got 1"),
    "large scores": (Flavor(), [[2**60, 2**60 + 1]], [[1, 0]], "preds must hold scores that stay different in float64; got 1 that"),
    "negative label": (Flavor(), [[0.2, 0.1]], [[-1.0, 0.0]], "target must be >= 0.*got 1"),
    "NaN label": (Flavor(), [[0.2, 0.1]], [[math.nan, 0.0]], "target must not hold NaN.*got 1.*pass mask="),
    "beyond the table": (Flavor(gain=(0, 1)), [[0.2, 0.1]], [[2.0, 0.0]], "target must hold integer grades from 0 to 1"),
    "empty query": (Flavor(empty="raise"), [[0.2, 0.1]], [[0.0, 0.0]], "got 1 with an ideal DCG of 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_data_is_refused_at_once_or_by_compute_and_leaves_no_trace(case):
    flavor, scores, labels, words = BAD[case]
    metric = NDCG(flavor)
    with pytest.raises(ValueError, match=words):
        metric.update(torch.tensor(scores), torch.tensor(labels))
    metric.update(*PERFECT)
    assert metric.compute() == 1.0
    metric.reset()
    with elsewhere():
        metric.update(torch.tensor(scores), torch.tensor(labels))
        metric.update(*PERFECT)
    with pytest.raises(ValueError, match=words + r".*Found in the batches"):
        metric.compute()
    metric.reset()
    metric.update(*PERFECT)
    assert metric.compute() == 1.0


def test_split_queries_refuse_bad_rows_at_once_and_empty_queries_in_the_end():
    metric, ids = NDCG(Flavor(empty="raise"), split_queries=True), torch.tensor([3])
    metric.update(torch.tensor([0.9]), torch.tensor([0.0]), ids)
    for score, label in ((math.nan, 1.0), (0.5, math.nan), (0.5, -1.0)):
        with pytest.raises(ValueError, match=r"(preds|target) must .*got 1"):
            metric.update(torch.tensor([score]), torch.tensor([label]), ids)
    with pytest.raises(ValueError, match=r"got 1 with an ideal DCG of 0.*Found in the batches"):
        metric.compute()
    metric.update(torch.tensor([0.5]), torch.tensor([1.0]), ids)
    assert metric.compute().item() == pytest.approx(1 / math.log2(3))


@pytest.mark.filterwarnings("ignore::ndcg_ml.torch.EpochWarning")  # computes while the epoch goes on
def test_split_queries_elsewhere_refuse_bad_rows_in_compute():
    metric, ids = NDCG(split_queries=True), torch.tensor([3])
    with elsewhere():
        mask = torch.tensor([[True, False]])
        metric.update(torch.tensor([[0.5, math.nan]]), torch.tensor([[1.0, -9.0]]), ids, mask)
        metric.update(torch.zeros(1, 0), torch.zeros(1, 0), ids + 1)
    assert metric.compute() == 0.5
    with elsewhere():
        metric.update(torch.tensor([math.nan]), torch.tensor([1.0]), ids)
    with pytest.raises(ValueError, match=r"preds must not hold NaN.*got 1.*Found in the batches"):
        metric.compute()


@pytest.mark.parametrize("split", [False, True])
def test_a_refused_batch_costs_forward_nothing(split):
    metric = NDCG(split_queries=split)
    metric(*WORST, torch.tensor([0]))
    for bad in ([[math.nan, 1.0]], [[1.0]]):
        with pytest.raises(ValueError, match="preds"):
            metric(torch.tensor(bad), torch.tensor([[1, 0]]), torch.tensor([1]))
        assert (metric.update_count, metric._to_sync, metric._should_unsync) == (1, True, True)
    assert metric.compute().item() == pytest.approx(1 / math.log2(3))


# -- nothing to average ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric NDCG was called before")
def test_nothing_to_average():
    for metric in (NDCG(), NDCG(split_queries=True)):
        with pytest.raises(ValueError, match=r"has seen no query.*Call update before"):
            metric.compute()
    metric = NDCG("ndcg[empty=skip]", k=[1, None])
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 0]]))
    with pytest.raises(ValueError, match=r"under empty='skip'; all 1 queries have an ideal DCG of 0"):
        metric.compute()


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
@pytest.mark.parametrize("split", [False, True])
def test_a_batch_that_has_nothing_to_average_is_nan_and_changes_nothing(split, aggregate):
    metric = NDCG(Flavor(empty="skip", aggregate=aggregate), split_queries=split)
    assert metric(*PERFECT, torch.tensor([0])) == 1.0
    assert metric(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 0]]), torch.tensor([1])).isnan()
    assert metric(torch.zeros(0), torch.zeros(0), torch.zeros(0, dtype=torch.int64)).isnan()
    assert metric.compute() == 1.0
    metric = NDCG(Flavor(empty=0.0, aggregate=aggregate))
    assert metric(torch.zeros(0, 2), torch.zeros(0, 2)).isnan()  # whatever an empty query is
    assert metric(torch.rand(1, 2), torch.zeros(1, 2)) == 0.0


def test_a_query_with_a_negative_ideal_has_no_part_in_micro():
    metric = NDCG(Flavor(negative="allow", aggregate="micro"))
    metric.update(torch.tensor([[0.2, 0.1], [0.2, 0.1]]), torch.tensor([[0.0, 1.0], [-2.0, -1.0]]))
    assert metric.compute().item() == pytest.approx(1 / math.log2(3))


# -- arguments -------------------------------------------------------------------------------------------------------

UPDATES = {
    "no ids": ((torch.rand(3), torch.ones(3)), ValueError, "indexes must be given with 1-D input"),
    "an array": ((np.ones((1, 2)), torch.ones(1, 2)), TypeError, "preds must be a torch.Tensor.*ndcg_ml.ndcg_score"),
    "another shape": ((torch.rand(1, 2), torch.ones(2, 1), torch.tensor([0])), ValueError, "target must have the shape of preds"),
    "ids of rows": ((*LISTS, torch.zeros(2, 2).long()), ValueError, r"one query id per list, shape \(2,\).*got \(2, 2\)"),
    "fractions": ((*LISTS, torch.zeros(2)), TypeError, "indexes must hold integers, one query id per list; got dtype torch.float"),
    "a list": ((*LISTS, [0, 1]), TypeError, r"indexes must be a torch.Tensor; got builtins.list"),
    "another device": ((*LISTS, torch.zeros(2, device="meta").long()), ValueError, r"indexes must be on the device of preds, cpu"),
}  # fmt: skip
MADE = {
    "query_ids": ({"query_ids": "local"}, ValueError, "query_ids must be one of 'global', 'batch'; got 'local'"),
    "ties": ({"flavor": Flavor(ties="docid")}, ValueError, r"ties='docid'.*Use flavor='ndcg'"),
    "top_k": ({"top_k": 10}, TypeError, r"NDCG got an unexpected keyword argument 'top_k'\. Did you mean 'k'"),
    "torchmetrics": ({"empty_target_action": "neg"}, TypeError, r"Pass it in the flavor: flavor=Flavor\(empty=\.\.\.\)"),
    "split_queries": ({"split_queries": 1}, TypeError, "split_queries must be True or False; got 1"),
    "both": ({"split_queries": True, "query_ids": "batch"}, ValueError, "under query_ids='batch'.*got split_queries=True"),
}  # fmt: skip


@pytest.mark.parametrize("case", UPDATES)
def test_what_update_refuses(case):
    arguments, error, words = UPDATES[case]
    for metric in (NDCG(), NDCG(split_queries=True)):
        with pytest.raises(error, match=words):
            metric.update(*arguments)


def test_ids_that_have_no_use_and_ids_that_are_missing():
    with pytest.raises(ValueError, match=r"under query_ids='batch', where.*got Tensor"):
        NDCG(query_ids="batch").update(*LISTS, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="indexes must be given under split_queries=True"):
        NDCG(split_queries=True).update(*LISTS)


@pytest.mark.parametrize("case", MADE)
def test_what_is_refused_when_a_metric_is_made(case):
    arguments, error, words = MADE[case]
    with pytest.raises(error, match=words):
        NDCG(**arguments)
