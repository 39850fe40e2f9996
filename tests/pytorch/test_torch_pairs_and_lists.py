"""LambdaNDCGLoss, SoftmaxLoss and ListMLELoss against their definitions in plain floats."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math

import torch
from loss_invariants import doubles, seeded, value_and_gradient

from ndcg_ml import Flavor
from ndcg_ml.torch import LambdaNDCGLoss, ListMLELoss, SoftmaxLoss

pytestmark = pytest.mark.usefixtures("one_thread")
SCHEMES = ["lambdarank", "ndcg2", "ndcg2pp"]


# -- LambdaNDCGLoss --------------------------------------------------------------------------------------------------


def by_pairs(scores, gains, scheme, k, sigma=1.0, mu=10.0, discount=lambda rank: 1 / math.log2(1 + rank)):
    """Value and gradient of one list, pair by pair in plain floats."""
    n = len(scores)
    order = sorted(range(n), key=lambda i: -scores[i])
    rank = {document: place + 1 for place, document in enumerate(order)}
    depth = n if k is None else min(k, n)
    cut = [0.0] + [discount(r) if r <= depth else 0.0 for r in range(1, n + 1)]
    ideal = sum(gain * cut[place + 1] for place, gain in enumerate(sorted(gains, reverse=True)))
    value, gradient = 0.0, [0.0] * n
    for i in range(n):
        for j in range(n):
            if gains[i] <= gains[j]:
                continue
            apart = abs(rank[i] - rank[j])
            swap = abs(cut[rank[i]] - cut[rank[j]])
            step = discount(apart) - discount(apart + 1)
            if min(rank[i], rank[j]) > depth:
                step = 0.0
            factor = {"lambdarank": swap, "ndcg2": step, "ndcg2pp": mu * step + swap}[scheme]
            weight = (gains[i] - gains[j]) * factor / ideal
            x = sigma * (scores[i] - scores[j])
            value += weight * (max(-x, 0.0) + math.log1p(math.exp(-abs(x))))
            push = weight * sigma * (1 / (1 + math.exp(x)) if x < 700 else 0.0)
            gradient[i] -= push
            gradient[j] += push
    return value, gradient


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("k", [None, 1, 3, 20])
@pytest.mark.parametrize("discount", ["log2", "ln"])
def test_values_and_gradients_of_pairs(scheme, k, discount):
    scores = [0.3, 1.2, -0.4, 2.0, 0.9, 0.9, 0.1, -30.0]
    grades = [3, 2, 0, 1, 2, 0, 4, 4]
    formula = {"log2": lambda rank: 1 / math.log2(1 + rank), "ln": lambda rank: 1 / math.log(1 + rank)}[discount]
    for given in (discount, formula):
        loss = LambdaNDCGLoss(Flavor(discount=given, k=k), scheme=scheme, sigma=1.5, mu=3.0)
        value, gradient = value_and_gradient(loss, doubles(scores), torch.tensor([grades]))
        want, pushes = by_pairs(scores, grades, scheme, k, 1.5, 3.0, formula)
        assert value.item() == pytest.approx(want, rel=1e-12)
        assert gradient[0].tolist() == pytest.approx(pushes, abs=1e-12)


def test_ties_are_ranked_as_they_stand_and_keep_their_gradient():
    labels = torch.tensor([[0, 1, 2, 0]])
    want, pushes = by_pairs([0.0] * 4, [0, 1, 2, 0], "lambdarank", None)
    for ties in ("average", "worst"):
        value, gradient = value_and_gradient(LambdaNDCGLoss(Flavor(ties=ties)), doubles([0.0] * 4), labels)
        assert value.item() == pytest.approx(want, rel=1e-13)
        assert gradient[0].tolist() == pytest.approx(pushes, abs=1e-14)
    assert gradient[0, 2] < gradient[0, 1] < 0 < gradient[0, 0]


# -- SoftmaxLoss and ListMLELoss -------------------------------------------------------------------------------------


def listmle(scores, order, k=None):
    return torch.stack([scores[order[i:]].logsumexp(0) - scores[order[i]] for i in range(len(order))][:k]).sum()


def test_targets_follow_the_gain_of_the_flavor():
    scores, grades = doubles([0.3, 1.2, -0.4, 2.0, 0.9]), torch.tensor([[3, 2, 0, 1, 2]])
    logs = scores[0].log_softmax(0)
    for flavor, gains in (
        (Flavor(), [3, 2, 0, 1, 2]),
        (Flavor(gain="exponential"), [7, 3, 0, 1, 3]),
        (Flavor(gain="binary", ideal="recall", recall_depth=1), [1, 1, 0, 1, 1]),
        (Flavor(gain=(0, 1, 10, 100), ideal="max", max_grade=3), [100, 10, 0, 1, 10]),
    ):
        gains = torch.tensor(gains, dtype=torch.float64)
        want = -(gains / gains.sum() * logs).sum().item()
        assert SoftmaxLoss(flavor)(scores, grades).item() == pytest.approx(want, abs=1e-12)
        want = -(gains.softmax(0) * logs).sum().item()
        assert SoftmaxLoss(flavor, target="listnet")(scores, grades).item() == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("flavor", [Flavor(gain="exponential"), Flavor()], ids=str)
def test_the_drawn_target_of_xendcg(flavor):
    scores, grades = doubles([0.3, 1.2, -0.4, 2.0]), torch.tensor([[3, 2, 0, 1]])
    gains = torch.tensor([[7, 3, 0, 1]] if flavor.gain == "exponential" else [[3, 2, 0, 1]], dtype=torch.float64)
    drawn = torch.rand(4, 1, generator=seeded(4), dtype=torch.float64).mT
    shares = gains + 1 - drawn
    want = -(shares / shares.sum() * scores.log_softmax(-1)).sum().item()
    loss = SoftmaxLoss(flavor, target="xendcg", generator=seeded(4))
    assert loss(scores, grades).item() == pytest.approx(want, abs=1e-14)
    assert loss(scores, grades).item() != pytest.approx(want, abs=1e-6)


def test_documents_that_do_not_count_are_not_in_the_list():
    scores, grades = doubles([0.3, 1.2, -0.4, 2.0]), torch.tensor([[3, math.nan, 0, -1]])
    some, kept = doubles([0.3, -0.4]), torch.tensor([[3, 0]])
    flavor = Flavor(unjudged="condense", negative="drop")
    for make in (SoftmaxLoss, ListMLELoss, lambda flavor: SoftmaxLoss(flavor, target="listnet")):
        assert make(flavor)(scores, grades).item() == pytest.approx(make(flavor)(some, kept).item(), abs=1e-14)


@pytest.mark.parametrize("k", [None, 1, 3, 9])
def test_listmle_of_the_first_k(k):
    scores, grades = doubles([0.3, 1.2, -0.4, 2.0]), torch.tensor([[3, 2, 0, 1]])
    want = listmle(scores[0], [0, 1, 3, 2], k).item()
    for flavor in (Flavor(k=k), Flavor(k=k, short_lists="zero")):
        assert ListMLELoss(flavor)(scores, grades).item() == pytest.approx(want, abs=1e-13)
    # Padding is not among the first k.
    mask = torch.tensor([[True, False, True, True]])
    value = ListMLELoss(Flavor(k=k), tie_order="input")(scores, torch.tensor([[3, 9, 0, 0]]), mask).item()
    assert value == pytest.approx(listmle(scores[0], [0, 2, 3], k).item(), abs=1e-13)


def test_equal_gains_come_in_every_order():
    scores, grades = doubles([0.3, 1.2, -0.4, 2.0]), torch.tensor([[1, 1, 3, 1]])
    orders = [[2, 0, 1, 3], [2, 0, 3, 1], [2, 1, 0, 3], [2, 1, 3, 0], [2, 3, 0, 1], [2, 3, 1, 0]]
    loss = ListMLELoss(Flavor(), generator=seeded(), reduction="none")
    values = loss(scores.expand(600, -1), grades.expand(600, -1))  # every list draws for itself
    for order in orders:
        share = ((values - listmle(scores[0], order)).abs() < 1e-12).double().mean().item()
        assert share == pytest.approx(1 / 6, abs=5 * math.sqrt(5 / 36 / 600))
    in_order = ListMLELoss(Flavor(), tie_order="input")(scores, grades).item()
    assert in_order == pytest.approx(listmle(scores[0], orders[0]).item(), abs=1e-13)


def test_the_tail_of_a_list_keeps_its_digits():
    # log(cumsum(exp) + eps) of the last two is log(eps).
    scores = torch.tensor([[100.0, 0.0, -60.0, -61.0]], requires_grad=True)
    loss = ListMLELoss(Flavor())(scores, torch.tensor([[3, 2, 0, 1]]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log1p(math.e), rel=1e-6)
    assert scores.grad[0, 3].item() == pytest.approx(-1 / (1 + math.exp(-1)), rel=1e-5)


@pytest.mark.parametrize("loss", [SoftmaxLoss, ListMLELoss])
def test_a_list_whose_ranks_are_all_worth_nothing_is_empty(loss):
    scores, labels = torch.tensor([[0.1, 0.5, 0.3]], requires_grad=True), torch.tensor([[1.0, 0.0, 2.0]])
    value = loss(Flavor(discount=lambda rank: float(rank >= 5)))(scores, labels)
    value.backward()
    assert value == 0.0
    assert not scores.grad.any()
