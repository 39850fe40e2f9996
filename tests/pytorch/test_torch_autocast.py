"""Autocast changes no number: losses and metrics compute in the dtype of the scores, and in float32 at least."""

from __future__ import annotations

import pytest
import torch
from lanes import quick

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

HALVES = [torch.bfloat16, torch.float16]
CUT = Flavor(gain="exponential", k=10)


def cases():
    """Module and options of every loss, in every form that computes differently."""
    for method in ("dense", "fast"):
        yield f"approx-{method}", ApproxNDCGLoss, {"flavor": CUT, "temperature": 0.1, "method": method}
    for rounds in (0, 20):
        yield f"neural-{rounds}", NeuralNDCGLoss, {"temperature": 0.1, "sinkhorn": rounds}
    yield "neural-cut", NeuralNDCGLoss, {"flavor": CUT}
    for scheme in ("lambdarank", "ndcg2pp"):
        yield f"lambda-{scheme}", LambdaNDCGLoss, {"flavor": CUT, "scheme": scheme}
    for target in ("gain", "listnet", "xendcg"):
        yield f"softmax-{target}", SoftmaxLoss, {"target": target}
    for order in ("random", "input"):
        yield f"list_mle-{order}", ListMLELoss, {"tie_order": order}
    yield "plackett_luce", PlackettLuceNDCGLoss, {"flavor": CUT}


CASES = {name: rest for name, *rest in cases()}


def data():
    draw = torch.Generator().manual_seed(0)
    return 3 * torch.randn(4, 60, generator=draw), torch.randint(0, 5, (4, 60), generator=draw)


def value_and_gradient(loss, half=None, *, backward_too=False):
    torch.manual_seed(1)
    scores, labels = data()
    scores.requires_grad_()
    with torch.autocast("cpu", dtype=half, enabled=half is not None):
        value = loss(scores, labels)
        if backward_too:
            value.backward()
    if not backward_too:
        value.backward()
    return value.detach(), scores.grad


@pytest.mark.parametrize("backward_too", [False, True])
@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient_are_those_without_autocast(name, half, backward_too):
    module, options = CASES[name]
    loss = module(**options)
    want, got = value_and_gradient(loss), value_and_gradient(loss, half, backward_too=backward_too)
    assert want[1].any()
    assert got[0].dtype == torch.float32
    assert torch.equal(got[0], want[0])
    assert torch.equal(got[1], want[1])


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch's own tracer
@pytest.mark.parametrize("half", quick([torch.bfloat16], HALVES), ids=str)
def test_compiled_whole_under_autocast(half):
    """Compiled code computes the products of a graph, its backward pass included, under the autocast around it."""
    for loss in (NeuralNDCGLoss(temperature=0.1), NeuralNDCGLoss(temperature=0.1, sinkhorn=3)):
        torch._dynamo.reset()
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        want, got = value_and_gradient(loss), value_and_gradient(compiled, half)
        torch.testing.assert_close(got[0], want[0], rtol=1e-6, atol=0)
        torch.testing.assert_close(got[1], want[1], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("flavor", ["sklearn", "lightgbm", "ndcg[ideal=local]", "ndcg[aggregate=micro]"])
def test_the_metric(flavor, half):
    scores, labels = data()
    ids = torch.arange(4).repeat_interleave(60)
    want = ndcg(scores, labels, flavor=flavor, k=[5, None])
    with torch.autocast("cpu", dtype=half):
        got = ndcg(scores, labels, flavor=flavor, k=[5, None])
        flat = ndcg(scores.flatten(), labels.flatten(), indexes=ids, flavor=flavor, k=5)
    assert {key: value.tolist() for key, value in got.items()} == {key: value.tolist() for key, value in want.items()}
    torch.testing.assert_close(flat, want[5], rtol=1e-14, atol=0)

    values = []
    for enabled in (False, True):
        for split in (False, True):
            metric = NDCG(flavor, split_queries=split)
            with torch.autocast("cpu", dtype=half, enabled=enabled):
                metric.update(scores, labels, indexes=torch.arange(4))
                values.append(metric.compute().item())
    assert values == pytest.approx([values[0]] * 4, abs=1e-15)
