"""Columns of tensors: the metric, the function and the losses name the ``squeeze(-1)`` that was forgotten."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from ndcg_ml.torch import NDCG, ApproxNDCGLoss, LambdaNDCGLoss, NeuralNDCGLoss, Stochastic, ndcg
from ndcg_ml.torch.inputs import torch_kernel

SCORES, LABELS = torch.tensor([0.9, 0.8, 0.1, 0.5, 0.4, 0.3]), torch.tensor([3, 0, 1, 0, 2, 1])
IDS = torch.tensor([0, 0, 0, 1, 1, 1])
LOSSES = [ApproxNDCGLoss("sklearn"), NeuralNDCGLoss("sklearn"), LambdaNDCGLoss("sklearn")]


def on_torch(scores, labels, **given):
    with torch_kernel():
        return ndcg(scores, labels, **given)


def in_pieces(scores, labels, **given):
    return NDCG(split_queries=True).update(scores, labels, **given)


FUNCTIONS = {
    "ndcg": ndcg,
    "torch kernel": on_torch,
    "update": lambda *tensors, **given: NDCG().update(*tensors, **given),
    "forward": lambda *tensors, **given: NDCG()(*tensors, **given),
    "split_queries": in_pieces,
    "query_ids='batch'": lambda *tensors, **given: NDCG(query_ids="batch").update(*tensors, **given),
    "Stochastic": Stochastic(ApproxNDCGLoss(), samples=1),
    **{type(loss).__name__: loss for loss in LOSSES},
}
each_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


@each_function
def test_a_column_is_refused_with_ids_and_without(function):
    for given in ({}, {"indexes": IDS}, {"indexes": torch.arange(6)}, {"indexes": IDS[:, None]}):
        with pytest.raises(
            ValueError, match=r"shape \(6, 1\) may be 6 rows.*\.squeeze\(-1\).*\.squeeze\(-1\) with indexes="
        ):
            function(SCORES[:, None], LABELS[:, None], **given)


@each_function
def test_three_dimensions_are_refused_with_a_mask_too(function):
    scores, labels = SCORES.reshape(2, 3, 1), LABELS.reshape(2, 3, 1)
    for given in ({}, {"mask": torch.ones_like(labels, dtype=torch.bool)}):
        with pytest.raises(ValueError, match=r"\(2, 3, 1\).*\.squeeze\(-1\)"):
            function(scores, labels, **given)


@each_function
def test_scores_alone_are_blamed_and_not_the_ids(function):
    with pytest.raises(
        ValueError, match=r"The last axis of (scores|preds) is one too many: pass (scores|preds)\.squeeze\(-1\)"
    ):
        function(SCORES[:, None], LABELS, indexes=IDS)
    with pytest.raises(ValueError, match=r"The last axis of (scores|preds) is one too many"):
        function(SCORES.reshape(2, 3, 1), LABELS.reshape(2, 3))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("split_queries",)])
def test_with_a_mask_lists_of_one_document_are_legal_and_warned_of(name):
    mask = torch.ones((6, 1), dtype=torch.bool)
    with pytest.warns(UserWarning, match="each of the 6 queries has one document"):
        FUNCTIONS[name](SCORES[:, None], LABELS[:, None], mask=mask)


@pytest.mark.parametrize("name", ["ndcg", "update", "ApproxNDCGLoss"])
def test_row_numbers_as_ids_are_warned_of(name):
    with pytest.warns(UserWarning, match="each of the 6 queries has one document.*ids may number rows"):
        FUNCTIONS[name](SCORES, LABELS, indexes=torch.arange(6))


def test_single_lists_pieces_of_queries_and_batches_of_unequal_lists_are_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric = NDCG(split_queries=True)
        for rows in ([0, 3], [1, 4], [2, 5]):
            metric.update(SCORES[rows], LABELS[rows], indexes=IDS[rows])
        whole = NDCG()
        whole.update(SCORES, LABELS, indexes=IDS)
        assert metric.compute() == whole.compute()
        # Lists of very different lengths are padded in groups, one of them of single documents.
        long = torch.cat([torch.zeros(30, dtype=torch.long), torch.arange(1, 9)])
        ApproxNDCGLoss("sklearn")(torch.randn(38), torch.ones(38), indexes=long)
        for function in (ndcg, on_torch, ApproxNDCGLoss(), Stochastic(ApproxNDCGLoss(), samples=1), NDCG().update):
            function(torch.ones(1, 1), torch.ones(1, 1))
            function(torch.ones(1), torch.ones(1), indexes=torch.zeros(1).long())
        assert NDCG().update(SCORES[:0, None], LABELS[:0, None]) is None


@pytest.mark.parametrize("name", ["ndcg", "torch kernel", "update", "split_queries"])
@pytest.mark.parametrize(
    ("scores", "labels", "warns"),
    [
        (torch.int64, torch.float32, True),
        (torch.uint8, torch.float64, True),
        (torch.float32, torch.float32, False),  # of any values: reading them would wait for a device
        (torch.int64, torch.int64, False),
        (torch.float16, torch.int64, False),
    ],
)
def test_integer_scores_of_floating_labels_are_warned_of(name, scores, labels, warns):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        FUNCTIONS[name](torch.tensor([2, 0, 1]).to(scores), torch.tensor([0.5, 1.5, 0.5]).to(labels), indexes=IDS[::2])
    assert ["as if the two were swapped" in str(each.message) for each in seen] == [True] * warns


def test_compiled_code_refuses_a_column_too():
    compiled = torch.compile(ndcg, backend="eager", fullgraph=False)
    with pytest.raises(Exception, match=r"may be 6 rows"):
        compiled(SCORES[:, None], LABELS[:, None])
    mask = torch.ones((6, 1), dtype=torch.bool)
    whole = torch.compile(ndcg, backend="eager", fullgraph=True)
    assert whole(SCORES[:, None], LABELS[:, None], mask=mask).tolist() == [1.0, 0, 1, 0, 1, 1]
