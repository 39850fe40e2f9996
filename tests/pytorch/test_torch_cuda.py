"""On a CUDA device: the numbers of the CPU, and no wait for the device where none is promised."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import warnings
from contextlib import contextmanager

import torch

from ndcg_ml import Flavor
from ndcg_ml.torch import (
    NDCG,
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    ndcg,
)

if not torch.cuda.is_available():
    pytest.skip("torch finds no CUDA device", allow_module_level=True)

FLAVORS = [
    "sklearn",
    "lightgbm",
    Flavor(ideal="local", ties="worst"),
    Flavor(ideal="max", max_grade=4, ties="best"),
    Flavor(gain="exponential", ties="last", score_dtype="float32"),
    Flavor(gain=(0, 1, 3, 7, 15)),
]
LOSSES = {
    "dense": ApproxNDCGLoss("lightgbm", method="dense"),
    "fast": ApproxNDCGLoss("lightgbm", method="fast"),
    "neural": NeuralNDCGLoss("lightgbm"),
    "lambda": LambdaNDCGLoss("lightgbm"),
    "softmax": SoftmaxLoss("lightgbm"),
    "list_mle": ListMLELoss("lightgbm", tie_order="input"),
}
DRAWN = {
    "plackett_luce": PlackettLuceNDCGLoss("lightgbm"),
    "xendcg": SoftmaxLoss("lightgbm", target="xendcg"),
    "list_mle": ListMLELoss("lightgbm"),
}


def data(device):
    """Scores with ties, labels with an empty query, a mask, and one id per row."""
    draw = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 30, (40, 70), generator=draw) / 8
    labels = torch.randint(0, 5, (40, 70), generator=draw)
    labels[3] = 0
    mask = torch.rand(40, 70, generator=draw) < 0.8
    ids = torch.arange(40).repeat_interleave(70)
    return [part.to(device) for part in (scores, labels, mask, ids)]


@contextmanager
def waits_are(mode):
    """What torch does where the host waits for the device."""
    torch.cuda.set_sync_debug_mode(mode)
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def number_of_waits(call):
    call()  # the first call may wait: it loads kernels
    with warnings.catch_warnings(record=True) as caught, waits_are("warn"):
        warnings.simplefilter("always")
        call()
    return sum("synchroniz" in str(one.message) for one in caught)


def values(device, flavor):
    scores, labels, mask, ids = data(device)
    padded = ndcg(scores, labels, flavor=flavor, k=[5, None], mask=mask)
    flat = ndcg(scores.flatten(), labels.flatten(), flavor=flavor, k=5, indexes=ids)
    metric = NDCG(flavor, k=5).to(device)
    metric.update(scores, labels, mask=mask)
    metric.update(scores.flatten(), labels.flatten(), indexes=ids)
    return [*padded.values(), flat, metric.compute()]


@pytest.mark.parametrize("flavor", FLAVORS, ids=str)
def test_the_metric_has_the_numbers_of_the_cpu(flavor):
    for got, want in zip(values("cuda", flavor), values("cpu", flavor), strict=True):
        assert got.device.type == "cuda"
        torch.testing.assert_close(got.cpu(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_have_the_values_and_gradients_of_the_cpu(name):
    found = []
    for device in ("cpu", "cuda"):
        scores, labels, mask, _ = data(device)
        scores.requires_grad_()
        loss = LOSSES[name](scores, labels, mask)
        loss.backward()
        found.append((loss.detach().cpu(), scores.grad.cpu()))
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("flavor", FLAVORS, ids=str)
def test_the_function_waits_for_refused_data_alone_and_for_the_number_of_flat_queries(flavor):
    scores, labels, mask, ids = data("cuda")
    assert number_of_waits(lambda: ndcg(scores, labels, flavor=flavor, mask=mask)) == 1
    flat = scores.flatten(), labels.flatten()
    assert number_of_waits(lambda: ndcg(*flat, flavor=flavor, indexes=ids)) == 2


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("flavor", FLAVORS, ids=str)
def test_update_never_waits(flavor, split):
    scores, labels, mask, ids = data("cuda")
    lists = ids[::70]
    metric = NDCG(flavor, k=5, split_queries=split).to("cuda")
    metric.update(scores, labels, lists, mask)
    metric.update(scores.flatten(), labels.flatten(), indexes=ids)
    with waits_are("error"):
        metric.update(scores, labels, lists, mask)
        metric.update(scores.flatten(), labels.flatten(), indexes=ids)


@pytest.mark.parametrize("name", [*LOSSES, *DRAWN])
def test_losses_never_wait(name):
    loss = (LOSSES | DRAWN)[name]
    scores, labels, mask, _ = data("cuda")
    scores.requires_grad_()
    loss(scores, labels, mask).backward()
    with waits_are("error"):
        loss(scores, labels, mask).backward()


def test_the_test_sees_a_wait():
    scores, *_ = data("cuda")
    assert number_of_waits(lambda: scores.sum().item()) == 1
    with pytest.raises(RuntimeError, match="synchroniz"), waits_are("error"):
        scores.sum().item()
    assert scores.sum().item() > 0  # waits are allowed again
