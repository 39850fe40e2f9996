"""The torch room at its limits: caps one below, at and above, defaults, and inputs of the smallest size."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import itertools

import torch

from ndcg_ml import Flavor
from ndcg_ml.torch import (
    NDCG,
    ApproxNDCGLoss,
    SoftmaxLoss,
    Stochastic,
    ndcg,
)
from ndcg_ml.torch._host import torch_kernel
from ndcg_ml.torch.losses._draws import gumbel, normal


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


# -- the smallest inputs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes",
    [(2,), (2, 2), (1, 9), (9, 1, 1), (1, 3, 9, 1), (1, 2, 40)],
)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_noise_around_lists_in_one_two_and_more_groups(sizes, reduction):
    n = sum(sizes)
    scores, labels = torch.randn(n, dtype=torch.float64, generator=seeded()), torch.arange(n) % 3 + 1
    loss = ApproxNDCGLoss(reduction=reduction)
    ids = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    noisy = Stochastic(loss, samples=2, scale=1e-14, generator=seeded())
    torch.testing.assert_close(
        noisy(scores, labels, indexes=ids), loss(scores, labels, indexes=ids), rtol=1e-9, atol=1e-11
    )


# -- ranks and runs, with a gain at every one of them ------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["average", "first", "last", "best", "worst"])
@pytest.mark.parametrize("levels", [1, 2, 7, 29, 10_000])
@pytest.mark.parametrize("ks", [[None, 1, 5], [1], [2], [3, 2, 1], [7, 100]])
def test_long_lists_of_documents_that_all_gain_are_the_numpy_kernel(ties, levels, ks):
    """Also where the run that crosses the cut-off has one document, or where there are fewer than the cut-off."""
    flavor = Flavor(ties=ties, gain="exponential", empty=0)
    for width, seed in itertools.product((47, 64, 130), range(2)):
        scores = torch.randint(0, levels, (4, width), generator=seeded(seed)).double()
        labels = torch.randint(1, 5, (4, width), generator=seeded(seed + 9))
        mask = torch.rand(4, width, generator=seeded(seed)) < torch.tensor([[1.0], [0.5], [0.06], [0.02]])
        for given in ({}, {"mask": mask}, {"retrieved": mask}):
            want = ndcg(scores, labels, flavor=flavor, k=ks, **given)
            for kind in (scores, scores.long()):
                with torch_kernel():
                    got = ndcg(kind, labels, flavor=flavor, k=ks, **given)
                for k in ks:
                    torch.testing.assert_close(got[k], want[k], rtol=1e-13, atol=0)


# -- what few callers reach --------------------------------------------------------------------------------------------


class Sum(torch.nn.Module):
    """A loss that is none of this package's."""

    def forward(self, scores, labels, mask=None, *, indexes=None):
        self.given = (mask, indexes)
        return (scores * labels).sum()


def test_noise_around_any_module():
    loss = Sum()
    scores, labels = torch.randn(3, 4, dtype=torch.float64, generator=seeded()), torch.arange(12).reshape(3, 4)
    mask = torch.ones(3, 4, dtype=torch.bool)
    noisy = Stochastic(loss, samples=3, scale=0.5, generator=seeded(4))
    drawn = gumbel(scores, 3, seeded(4))
    torch.testing.assert_close(noisy(scores, labels, mask), ((scores + 0.5 * drawn) * labels).sum() / 3)
    assert loss.given[0] is mask
    assert loss.given[1] is None
    rows, grades, ids = scores.flatten(), labels.flatten(), torch.arange(3).repeat_interleave(4)
    flat = Stochastic(loss, samples=3, scale=1e-14, generator=seeded())(rows, grades, indexes=ids)
    torch.testing.assert_close(flat, loss(rows, grades))
    Stochastic(loss, samples=1, generator=seeded())(rows, grades, indexes=ids)
    assert loss.given[0] is None
    assert loss.given[1] is ids


def test_scores_of_unsigned_64_bits_and_complex_numbers():
    labels = torch.tensor([[1, 3, 2]])
    scores = torch.tensor([[5, 2**63 + 4096, 7]], dtype=torch.uint64)
    with torch_kernel():
        assert ndcg(scores, labels).item() == ndcg(torch.tensor([[1.0, 3.0, 2.0]]), labels).item()
        for name, arguments in (
            ("scores", (labels.to(torch.complex64), labels)),
            ("labels", (labels, labels.to(torch.complex64))),
        ):
            with pytest.raises(TypeError, match=f"{name} must hold real numbers; got dtype torch.complex64"):
                ndcg(*arguments)


# -- the metric ------------------------------------------------------------------------------------------------------


def test_what_is_on_another_device_is_named_as_the_caller_named_it():
    here, there = torch.zeros(1, 3), torch.zeros(1, 3, device="meta")
    ids, far = torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.int64, device="meta")
    flags = torch.ones(1, 3, dtype=torch.bool, device="meta")
    loss = SoftmaxLoss()
    for call, name, of in (
        (lambda: ndcg(here, there), "labels", "scores"),
        (lambda: ndcg(here, here, mask=flags), "mask", "scores"),
        (lambda: ndcg(here, here, retrieved=flags), "retrieved", "scores"),
        (lambda: ndcg(here, here, doc_id=there.long()), "doc_id", "scores"),
        (lambda: ndcg(here[0], here[0], indexes=far), "indexes", "scores"),
        (lambda: NDCG().update(here, there), "target", "preds"),
        (lambda: NDCG().update(here, here, mask=flags), "mask", "preds"),
        (lambda: NDCG().update(here[0], here[0], far), "indexes", "preds"),
        (lambda: NDCG().update(here, here, far[:1]), "indexes", "preds"),
        (lambda: loss(here, there), "labels", "scores"),
        (lambda: loss(here, here, flags), "mask", "scores"),
        (lambda: loss(here[0], there[0], indexes=ids), "labels", "scores"),
        (lambda: loss(here[0], here[0], indexes=far), "indexes", "scores"),
    ):
        message = rf"{name} must be on the device of {of}, cpu; got meta\. Move it: {name}\.to\({of}\.device\)\."
        with pytest.raises(ValueError, match=message):
            call()


def test_nested_tensors_are_refused():
    jagged = torch.nested.nested_tensor([torch.rand(2), torch.rand(3)], layout=torch.jagged)
    for call in (ndcg, ApproxNDCGLoss(), Stochastic(ApproxNDCGLoss()), NDCG().update, NDCG(split_queries=True).update):
        with pytest.raises(TypeError, match=r"must not be a nested tensor\. Write torch\.nested\.to_padded_tensor"):
            call(jagged, jagged)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_is_finite_at_both_ends_of_the_draws(monkeypatch, dtype):
    like, finfo = torch.zeros(1, 2, dtype=dtype), torch.finfo(dtype)
    for draw, least, most in ((0.0, finfo.tiny, finfo.tiny), (1.0, 1.0, 1 - finfo.eps / 2), (0.25, 0.25, 0.25)):
        monkeypatch.setattr(torch, "rand", lambda shape, draw=draw, **given: torch.full(shape, draw, **given))
        quantile = torch.special.ndtri(torch.tensor(most, dtype=dtype))
        assert normal(like, 3, None).unique().tolist() == [quantile.item()]
        if draw < 1:
            drawn = -torch.log(-torch.log(torch.tensor(least, dtype=dtype)))
            assert gumbel(like, 3, None).unique().tolist() == [drawn.item()]
