"""How many operations a call takes: on a device each is a launch, and at usual sizes nothing else counts."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math
from collections import Counter

import torch
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples, flavors
from torch.utils._python_dispatch import TorchDispatchMode

from ndcg_ml import Flavor, evaluate
from ndcg_ml.torch import (
    NDCG,
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    Stochastic,
    ndcg,
)
from ndcg_ml.torch.inputs import torch_kernel

FLAVOR = Flavor(gain="exponential")
AT_10 = FLAVOR.replace(k=10)
# Older versions make some operations of several: what they take is not pinned so closely.
ALLOWED = 1.0 if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 10) else 1.3


class Steps(TorchDispatchMode):
    """Counts the operations, and among them those for which the host waits."""

    def __init__(self):
        super().__init__()
        self.by_name = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.by_name[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))

    @property
    def waits(self):
        return self.by_name["_local_scalar_dense"]


def batch():
    draw = torch.Generator().manual_seed(0)
    return torch.randn(64, 100, generator=draw), torch.randint(0, 5, (64, 100), generator=draw)


@pytest.mark.parametrize(
    ("loss", "most"),
    [
        (SoftmaxLoss(FLAVOR), 65),
        (ListMLELoss(FLAVOR), 97),
        (ApproxNDCGLoss(FLAVOR), 100),
        (LambdaNDCGLoss(AT_10), 128),
        (NeuralNDCGLoss(AT_10), 156),
        (PlackettLuceNDCGLoss(AT_10), 152),
        (Stochastic(ApproxNDCGLoss(FLAVOR)), 560),
    ],
    ids=lambda part: type(part).__name__ if isinstance(part, torch.nn.Module) else None,
)
def test_a_loss_takes_few_steps_and_waits_once(loss, most):
    scores, labels = batch()
    scores.requires_grad_()
    for mask in (None, torch.ones(64, 100, dtype=torch.bool)):
        with Steps() as steps:
            loss(scores, labels, mask).backward()
        assert steps.by_name.total() <= most * ALLOWED, steps.by_name
        assert steps.waits == 1


def test_the_metric_takes_few_steps():
    scores, labels = batch()
    rows = scores.flatten(), labels.flatten()
    ids, metric = torch.arange(64).repeat_interleave(100), NDCG(AT_10)
    for call, most, most_waits in (
        (lambda: ndcg(scores, labels, flavor=AT_10), 85, 1),
        (lambda: ndcg(*rows, flavor=AT_10, indexes=ids), 155, 3),
        (lambda: (metric.update(scores, labels), metric.compute()), 102, 2),
    ):
        with torch_kernel(), Steps() as steps:
            call()
        assert steps.by_name.total() <= most * ALLOWED
        assert steps.waits <= most_waits


LABELS = st.sampled_from([0.0, 1.0, 2.5, 4.0, 9.0, -1.0, math.nan, math.inf, -math.inf])


@examples(200)
@given(flavors(), st.lists(LABELS, min_size=6, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
def test_labels_are_refused_if_and_only_if_numpy_refuses_them(flavor, labels, listed):
    flavor = flavor.replace(aggregate="macro", empty=0.0, ties="average", duplicates="raise")
    labels, listed = torch.tensor([labels], dtype=torch.float64), torch.tensor([listed])
    scores = torch.arange(6.0)[None]
    for given_labels in (labels, labels.float(), labels.nan_to_num(3.0, 3.0, -3.0).long()):
        try:
            evaluate(given_labels.numpy(), scores.numpy(), flavor=flavor, mask=listed.numpy())
        except ValueError:
            with torch_kernel(), pytest.raises(ValueError, match="labels must"):
                ndcg(scores, given_labels, flavor=flavor, mask=listed)
        else:
            with torch_kernel():
                assert ndcg(scores, given_labels, flavor=flavor, mask=listed).isfinite().all()


@examples(50)
@given(
    st.sampled_from(
        [
            SoftmaxLoss(FLAVOR, reduction="none"),
            SoftmaxLoss("sklearn", target="listnet"),
            ListMLELoss(FLAVOR, tie_order="input"),
            ApproxNDCGLoss(FLAVOR.replace(ideal="recall", k=3)),
            ApproxNDCGLoss(FLAVOR.replace(ideal="max", max_grade=70)),
            LambdaNDCGLoss(AT_10, reduction="sum"),
        ]
    ),
    st.sampled_from([torch.int64, torch.uint8, torch.float16, torch.float32, torch.float64]),
    st.sampled_from([[0], [0, 1, 4], [0, 0.25, 1, 30], [0, 1, 52, 60], [0, 1e-149, 3e-149], [3, 5]]),
    st.sampled_from([1.0, 3e38, math.inf, math.nan]),
    st.booleans(),
    st.integers(0, 99),
)
@example(ApproxNDCGLoss(FLAVOR), torch.float64, [0, 1e-149, 3e-149], 1.0, False, 0)  # the smallest gains
@example(SoftmaxLoss(FLAVOR), torch.int64, [0], 1.0, False, 0)
@example(SoftmaxLoss(FLAVOR), torch.int64, [0, 1, 4], math.inf, True, 0)
def test_what_the_host_sees_changes_no_bit(loss, dtype, grades, largest, masked, seed):
    draw = torch.Generator().manual_seed(seed)
    labels = torch.tensor(grades, dtype=torch.float64).to(dtype)[torch.randint(len(grades), (5, 12), generator=draw)]
    scores = torch.randn(5, 12, generator=draw)
    scores[0, :3] = largest
    mask = torch.rand(5, 12, generator=draw) < 0.7 if masked else None

    def value_and_gradient():
        given_scores = scores.clone().requires_grad_()
        value = loss(given_scores, labels, mask)
        value.sum().backward()
        return value.detach(), given_scores.grad

    seen = value_and_gradient()
    with Steps():  # nothing is looked at while somebody watches
        unseen = value_and_gradient()
    for one, other in zip(seen, unseen, strict=True):
        torch.testing.assert_close(one, other, rtol=0.0, atol=0.0, equal_nan=True)
