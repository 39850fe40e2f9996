"""torch.func: losses mapped over samples or models, per-sample gradients, and what has to be refused there."""

from __future__ import annotations

import math

import pytest
import torch
from torch.func import grad, jacrev, vmap

from ndcg_ml import Flavor
from ndcg_ml.torch import (
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    Stochastic,
    ndcg,
)

CUT = Flavor(gain="exponential", k=5)
LOSSES = {
    "approx": ApproxNDCGLoss(CUT),
    "fast": ApproxNDCGLoss(CUT, method="fast"),
    "local": ApproxNDCGLoss("ndcg[ideal=local,k=3]"),
    "table": ApproxNDCGLoss(Flavor(gain=(0.0, 1.0, 2.0, 5.0, 9.0))),
    "neural": NeuralNDCGLoss(CUT),
    "sinkhorn": NeuralNDCGLoss(CUT, sinkhorn=5),
    "callable": NeuralNDCGLoss(Flavor(discount=lambda rank: 1 / rank)),
    "lambdarank": LambdaNDCGLoss(CUT),
    "ndcg2pp": LambdaNDCGLoss(scheme="ndcg2pp"),
    "softmax": SoftmaxLoss(),
    "listnet": SoftmaxLoss(target="listnet"),
    "list_mle": ListMLELoss(CUT, tie_order="input"),
}
RANDOM = {
    "plackett_luce": PlackettLuceNDCGLoss(CUT),
    "xendcg": SoftmaxLoss(target="xendcg"),
    "list_mle": ListMLELoss(CUT),
    "stochastic": Stochastic(ApproxNDCGLoss(CUT)),
}


def data():
    """Three samples of four lists."""
    draw = torch.Generator().manual_seed(0)
    scores = 2 * torch.randn(3, 4, 17, generator=draw, dtype=torch.float64)
    labels = torch.randint(0, 5, (3, 4, 17), generator=draw)
    labels[1, 2] = 0  # an empty list
    return scores, labels, torch.rand(3, 4, 17, generator=draw) < 0.8


def one_by_one(function, *samples):
    return torch.stack([function(*sample) for sample in zip(*samples, strict=True)])


def same(got, want):
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_per_sample_gradients(name):
    loss, samples = LOSSES[name], data()
    same(vmap(loss)(*samples), one_by_one(loss, *samples))
    slopes = vmap(grad(loss))(*samples)
    want = []
    for scores, labels, mask in zip(*samples, strict=True):
        leaf = scores.clone().requires_grad_()
        loss(leaf, labels, mask).backward()
        want.append(leaf.grad)
    same(slopes, torch.stack(want))
    assert slopes.abs().amax((-1, -2)).min() > 1e-6


@pytest.mark.parametrize("name", LOSSES)
def test_shared_labels_and_rows_of_a_jacobian(name):
    scores, (labels, *_), (mask, *_) = data()
    loss = LOSSES[name]
    same(vmap(loss, in_dims=(0, None, None))(scores, labels, mask), one_by_one(lambda s: loss(s, labels, mask), scores))

    def two(s):  # so that the backward pass is mapped over
        return torch.stack([loss(s, labels, mask), 2 * loss(s, labels, mask)])

    rows = jacrev(two)(scores[0])
    same(rows[1], 2 * rows[0])
    same(rows[0], grad(loss)(scores[0], labels, mask))


@pytest.mark.parametrize("name", ["neural", "lambdarank", "ndcg2pp"])
def test_rows_in_blocks(name, monkeypatch):
    """torch.func cannot compute blocks once more in the backward pass; the plain gradient crashed too."""
    samples = data()
    want = vmap(grad(LOSSES[name]))(*samples)
    monkeypatch.setattr("ndcg_ml.torch.losses.neural._BLOCK", 20)
    monkeypatch.setattr("ndcg_ml.torch.losses.lambdas._BLOCK", 20)
    same(vmap(grad(LOSSES[name]))(*samples), want)
    same(one_by_one(grad(LOSSES[name]), *samples), want)


@pytest.mark.parametrize("name", RANDOM)
def test_draws_are_vmaps_to_allow(name):
    scores, labels, mask = (part[:1].expand(3, -1, -1) for part in data())
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(RANDOM[name])(scores, labels, mask)
    alike = vmap(RANDOM[name], randomness="same")(scores, labels, mask)
    assert alike[0] == alike[1] == alike[2]
    assert vmap(RANDOM[name], randomness="different")(scores, labels, mask).unique().numel() == 3
    slopes = vmap(grad(RANDOM[name]), randomness="different")(scores, labels, mask)
    assert slopes.isfinite().all()
    assert slopes.abs().amax((-1, -2)).min() > 0


def test_flat_lists_of_the_same_lengths():
    (scores, *_), (labels, *_), _ = data()

    def flat(s, y):
        return ListMLELoss(CUT, tie_order="input")(s, y, indexes=torch.arange(17) % 3)

    same(vmap(flat)(scores, labels), one_by_one(flat, scores, labels))
    same(vmap(grad(flat))(scores, labels), one_by_one(grad(flat), scores, labels))


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch 2.4 loops over the samples
def test_flat_lists_of_lengths_that_are_mapped_over():
    (scores, *_), (labels, *_), _ = data()
    ids = (torch.arange(17) % 3).expand(4, -1)
    for call in (SoftmaxLoss(), ndcg):
        with pytest.raises(ValueError, match=r"indexes must be the same for all samples of torch\.func\.vmap.*mask="):
            vmap(lambda s, y, i: call(s, y, indexes=i))(scores, labels, ids)  # noqa: B023


def test_refused_labels_are_nan_where_they_are_mapped_over():
    scores, labels, _ = data()
    labels[1, 2, 3] = -1
    loss = ApproxNDCGLoss(reduction="none")
    for got in (vmap(loss)(scores, labels), vmap(ndcg)(scores, labels)):
        assert [number.tolist() for number in got.isnan().nonzero()] == [[1, 2]]
    with pytest.raises(ValueError, match="labels must be >= 0"):
        vmap(loss, in_dims=(0, None))(scores, labels[1])
    with pytest.raises(ValueError, match="labels must be >= 0"):
        grad(ApproxNDCGLoss())(scores[1], labels[1])


def test_a_callable_gain_needs_labels_that_are_not_mapped_over():
    scores, labels, mask = data()
    loss = SoftmaxLoss(Flavor(gain=lambda grade: grade + 1.0))
    same(
        vmap(loss, in_dims=(0, None, None))(scores, labels[0], mask[0]),
        one_by_one(lambda s: loss(s, labels[0], mask[0]), scores),
    )
    with pytest.raises(ValueError, match=r"flavor\.gain must be a name or a table if torch\.func\.vmap maps"):
        vmap(loss)(scores, labels, mask)


@pytest.mark.parametrize("flavor", ["sklearn", "lightgbm", "ndcg[ties=best,empty=0]", "ndcg[ideal=local]"])
@pytest.mark.parametrize("k", [None, 3])
def test_the_metric(flavor, k):
    def value(scores, labels, mask):
        return ndcg(scores, labels, mask=mask, flavor=flavor, k=k)

    samples = data()
    torch.testing.assert_close(vmap(value)(*samples), one_by_one(value, *samples), equal_nan=True)
    assert not math.isnan(vmap(value)(*samples)[0, 0])
