"""Each loss against its definition in plain floats and against recorded values and gradients; losses of one's own.

The records are of rax, TensorFlow Ranking, allRank and independent derivations. Where a library is left out for some
lists, its value or gradient is wrong there. The metric is the limit of the losses.
"""

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import gzip
import itertools
import json
import math
from collections import Counter

import loss_invariants
import torch
from hypothesis import given
from hypothesis import strategies as st
from loss_invariants import doubles, numbers, relaxable_flavors, seeded, tends_to_the_metric, value_and_gradient
from strategies import examples

import ndcg_ml.torch.losses.stochastic as stochastic
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
from ndcg_ml.torch.losses import DirectLoss, ListLoss

pytestmark = pytest.mark.usefixtures("one_thread")
METHODS = ("dense", "fast")
both_methods = pytest.mark.parametrize("method", METHODS)
SCHEMES = ["lambdarank", "ndcg2", "ndcg2pp"]
EXPONENTIAL = Flavor(gain="exponential")

# -- ApproxNDCGLoss --------------------------------------------------------------------------------------------------


def oracle_ranks(scores, temperature):
    """The definition, pair by pair, in Python's floats."""

    def ahead(x):
        return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))

    ranks = []
    for i, own in enumerate(scores):
        ranks.append(1 + math.fsum(ahead((s - own) / temperature) for j, s in enumerate(scores) if j != i))
    return ranks


def drawn(seed, n, kind, dtype=torch.float64):
    """Three lists with masks: spread, in ties, in clusters far apart, or all tied."""
    generator = seeded(seed)
    scores = torch.randn(3, n, generator=generator, dtype=torch.float64)
    if kind == "ties":
        scores = scores.mul(2).round()
    elif kind == "far":
        scores = scores + 1e4 * torch.randint(-3, 4, (3, n), generator=generator)
    elif kind == "equal":
        scores = torch.full_like(scores, 0.3)
    labels = torch.randint(0, 5, (3, n), generator=generator)
    return scores.to(dtype), labels, torch.rand(3, n, generator=generator) < 0.8


# Around one block, several, and many; the cut-off below, at and above the number of documents.
SHAPES = st.tuples(st.integers(0, 10**6), st.sampled_from([1, 2, 31, 32, 33, 64, 65, 200, 700]))
CUTS = st.sampled_from([None, 1, 3, 40, 1000])


def of_both_methods(scores, labels, mask, k, temperature):
    """Return value and gradient of "dense" in float64, and those of "fast" in the dtype of the scores."""
    options = {"temperature": temperature, "cut_temperature": 1.0, "reduction": "none"}
    dense, fast = (ApproxNDCGLoss(Flavor(k=k), method=method, **options) for method in METHODS)
    return *value_and_gradient(dense, scores.double(), labels, mask), *value_and_gradient(fast, scores, labels, mask)


@examples(120)
@given(SHAPES, st.sampled_from(["spread", "ties", "far", "equal"]), CUTS, st.sampled_from([1e-6, 0.01, 0.1, 1.0, 10.0]))
def test_fast_is_dense_in_float64(shape, kind, k, temperature):
    want, gradient, got, fast = of_both_methods(*drawn(*shape, kind), k, temperature)
    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)
    # At a low temperature a gradient of 0 still has the rounding of terms of the size 1 / T.
    scale = gradient.abs().max().item()
    torch.testing.assert_close(fast, gradient, rtol=0, atol=1e-10 * scale + 1e-15 / temperature)


@examples(80)
@given(SHAPES, st.sampled_from(["spread", "ties", "equal"]), CUTS, st.sampled_from([0.01, 0.1, 1.0, 10.0]))
def test_fast_is_dense_in_float32(shape, kind, k, temperature):
    want, gradient, got, fast = of_both_methods(*drawn(*shape, kind, torch.float32), k, temperature)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), want, rtol=0, atol=2e-6)
    scale = gradient.abs().max().item()
    torch.testing.assert_close(fast.double(), gradient, rtol=0, atol=2e-5 * scale + 1e-7 / temperature)


@both_methods
def test_ranks_are_those_of_the_definition(method):
    scores, _, _ = drawn(5, 90, "ties")
    scores[1] *= 37.0
    labels = torch.eye(90, dtype=torch.int64)
    flavor = Flavor(gain="linear", discount="reciprocal")
    for row, temperature in ((0, 0.7), (1, 0.05), (2, 30.0)):
        want = oracle_ranks(scores[row].tolist(), temperature)
        # One relevant document a list, with an ideal of 1: the loss is 1 - 1 / rank.
        loss = ApproxNDCGLoss(flavor, temperature=temperature, method=method, reduction="none")
        got = 1 / (1 - loss(scores[row].expand(90, 90), labels))
        assert got.tolist() == pytest.approx(want, rel=1e-13)


@both_methods
@pytest.mark.parametrize("k", [None, 99])
def test_gradient_is_that_of_the_value(method, k):
    scores, labels, mask = drawn(3, 40, "spread")
    loss = ApproxNDCGLoss(Flavor(gain="exponential", k=k), temperature=0.6, method=method)
    scores[0, 20:] = scores[0, 20]
    assert torch.autograd.gradcheck(lambda s: loss(s, labels, mask), (scores.requires_grad_(),))


@both_methods
@pytest.mark.parametrize("k", [1, 2, 3])
def test_scores_and_temperature_of_another_unit_change_nothing(k, method):
    scores, labels = doubles([0.3, 1.2, -0.4, 2.0, 0.9, 0.1]), torch.tensor([[3, 2, 0, 1, 2, 4]])
    flavor = Flavor(gain="exponential", k=k)
    want = ApproxNDCGLoss(flavor, temperature=0.1, method=method)(scores, labels).item()
    for unit in (1e-3, 1e3):
        loss = ApproxNDCGLoss(flavor, temperature=0.1 * unit, method=method)
        assert loss(unit * scores, labels).item() == pytest.approx(want, rel=1e-9)
    one = ApproxNDCGLoss(flavor, temperature=0.1, cut_temperature=1.0, method=method)
    assert one(scores, labels).item() == want
    assert ApproxNDCGLoss(flavor, temperature=0.1, cut_temperature=0.1)(scores, labels).item() != want


@pytest.mark.parametrize("grade", [200, 500])
def test_large_grades(grade):
    scores = torch.tensor([[0.3, 1.2, -0.4]], requires_grad=True)
    loss = ApproxNDCGLoss(Flavor(gain="exponential"))(scores, torch.tensor([[grade, 0, 0]]))
    loss.backward()
    want = ApproxNDCGLoss(Flavor(gain="binary"))(scores, torch.tensor([[1, 0, 0]]))
    assert loss.item() == pytest.approx(want.item())
    assert scores.grad.isfinite().all()


@both_methods
@pytest.mark.parametrize("discount", ["none", "log2", "jarvelin"])
@pytest.mark.parametrize("k", [None, 2, 10])
def test_a_loss_stays_in_the_graph_whatever_its_discount(discount, k, method):
    scores = torch.randn(2, 5, requires_grad=True)
    loss = ApproxNDCGLoss(Flavor(discount=discount, k=k), method=method)(scores, torch.tensor([[0, 1, 2, 0, 1]] * 2))
    loss.backward()
    assert scores.grad.any() == (discount != "none" or k == 2)


# -- NeuralNDCGLoss --------------------------------------------------------------------------------------------------


def sorted_softly(scores, weight, discount, temperature, rounds=0):
    """The definition, for one list without padding: n^3 numbers."""
    n = len(scores)
    spread = (scores[:, None] - scores[None, :]).abs().sum(1)
    row = torch.arange(1, n + 1, dtype=scores.dtype)[:, None]
    matrix = (((n + 1 - 2 * row) * scores - spread) / temperature).softmax(1)
    for _ in range(rounds):
        matrix = matrix / matrix.sum(0, keepdim=True)
        matrix = matrix / matrix.sum(1, keepdim=True)
    return (discount[:, None] * matrix * weight).sum()


@pytest.mark.parametrize("k", [None, 1, 4])
@pytest.mark.parametrize("rounds", [0, 7])
@pytest.mark.parametrize("temperature", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("tied", [False, True])
def test_values_and_gradients_of_neural_sorts_definition(k, rounds, temperature, tied):
    scores = torch.randn(1, 12, dtype=torch.float64, generator=seeded()) * 3
    scores = scores.round() if tied else scores
    labels = torch.randint(0, 5, (1, 12), generator=seeded(1))
    loss = NeuralNDCGLoss(Flavor(discount="reciprocal", k=k), temperature=temperature, sinkhorn=rounds)
    value, gradient = value_and_gradient(loss, scores, labels)
    discount = 1 / torch.arange(1, 13, dtype=torch.float64)
    discount[k or 12 :] = 0
    ideal = (labels[0].sort(descending=True).values * discount).sum()
    leaf = scores[0].clone().requires_grad_()
    want = 1 - sorted_softly(leaf, labels[0] / ideal, discount, temperature, rounds)
    want.backward()
    torch.testing.assert_close(value, want.detach(), rtol=0, atol=1e-13)
    torch.testing.assert_close(gradient[0], leaf.grad, rtol=0, atol=1e-11)


@pytest.mark.parametrize("temperature", [1e3, 10.0])
def test_float32_keeps_its_digits_on_long_lists_and_large_scores(temperature):
    draw = seeded(2)
    scores, labels = torch.randn(1, 2000, generator=draw) * 100, torch.randint(0, 5, (1, 2000), generator=draw)
    loss = NeuralNDCGLoss(Flavor(k=10), temperature=temperature)
    value, gradient = value_and_gradient(loss, scores, labels)
    want, wide = value_and_gradient(loss, scores.double(), labels)
    assert value.item() == pytest.approx(want.item(), abs=2e-6)
    assert (gradient - wide).norm() < 2e-5 * wide.norm()


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
    for shape in (discount, formula):
        loss = LambdaNDCGLoss(Flavor(discount=shape, k=k), scheme=scheme, sigma=1.5, mu=3.0)
        value, gradient = value_and_gradient(loss, doubles(scores), torch.tensor([grades]))
        want, pushes = by_pairs(scores, grades, scheme, k, 1.5, 3.0, formula)
        assert value.item() == pytest.approx(want, rel=1e-12)
        assert gradient[0].tolist() == pytest.approx(pushes, abs=1e-12)


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


@pytest.mark.parametrize(
    "flavor", [Flavor(discount=lambda rank: float(rank >= 5)), Flavor(ideal="recall", recall_depth=1)]
)
@pytest.mark.parametrize("loss", [SoftmaxLoss, ListMLELoss])
def test_a_list_whose_ideal_is_0_is_empty(loss, flavor):
    scores, labels = torch.tensor([[0.1, 0.5, 0.3]], requires_grad=True), torch.tensor([[1.0, 0.0, 2.0]])
    value = loss(flavor)(scores, labels)
    value.backward()
    assert value == 0.0
    assert not scores.grad.any()


# -- PlackettLuceNDCGLoss --------------------------------------------------------------------------------------------


def plackett_luce(generator=...):
    return PlackettLuceNDCGLoss(Flavor(), generator=seeded() if generator is ... else generator)


def enumerated(scores, gains, k, discount):
    """Expected NDCG, every ranking weighted by its probability."""
    n = len(scores)
    cut = [discount(rank) if k is None or rank <= k else 0.0 for rank in range(1, n + 1)]
    ideal = sum(gain * at for gain, at in zip(sorted(gains, reverse=True), cut, strict=True))
    total = scores.new_zeros(())
    for order in itertools.permutations(range(n)):
        log_probability = scores.new_zeros(())
        for place in range(n):
            log_probability = log_probability + scores[order[place]] - scores[list(order[place:])].logsumexp(0)
        value = sum(gains[document] * cut[place] for place, document in enumerate(order)) / ideal
        total = total + log_probability.exp() * value
    return total


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("discount", ["log2", lambda rank: 1.0 if rank < 3 else 0.4], ids=["log2", "steps"])
@pytest.mark.parametrize(
    ("scores", "grades"), [([0.3, 1.2, -0.4, 2.0, 0.9], [3, 2, 0, 1, 2]), ([0.5, 0.5, -2.5, 0.5], [0, 1, 1, 4])]
)
def test_value_and_gradient_are_unbiased(scores, grades, k, discount):
    formula = discount if callable(discount) else lambda rank: 1 / math.log2(1 + rank)
    leaf = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    want = enumerated(leaf, grades, k, formula)
    want.backward()
    # 100 estimates of 500 rankings each: their mean is within 5 of its standard errors, once in two million not.
    loss = PlackettLuceNDCGLoss(Flavor(discount=discount, k=k), samples=500, generator=seeded(11), reduction="none")
    value, gradient = value_and_gradient(loss, doubles(scores).expand(100, -1), torch.tensor([grades]).expand(100, -1))
    for estimates, exact in ((1 - value[:, None], want.detach()[None]), (-gradient, leaf.grad)):
        error = estimates.std(0) / 10
        assert (error < 0.005).all()
        assert ((estimates.mean(0) - exact).abs() < 5 * error + 1e-12).all()


def test_scaled_up_scores_give_the_metric_and_ties_share_it():
    torch.manual_seed(0)
    labels = torch.randint(0, 5, (4, 6))
    scores = torch.stack([torch.randperm(6) for _ in range(4)]).double()
    flavor = Flavor(gain="exponential", k=4)
    value = PlackettLuceNDCGLoss(flavor, generator=seeded(), reduction="none")(100 * scores, labels)
    torch.testing.assert_close(value, 1 - ndcg(scores, labels, flavor=flavor), rtol=0, atol=1e-12)
    tied = doubles([1.0, 1.0, 0.5, 0.5, 0.5, -1.0])
    value = PlackettLuceNDCGLoss(flavor, samples=20_000, generator=seeded())(100 * tied, labels[:1])
    assert value.item() == pytest.approx(1 - ndcg(tied.detach(), labels[:1], flavor=flavor).item(), abs=0.01)


def test_large_scores_leave_float32_its_room_for_the_noise():
    scores, labels = torch.tensor([[0.5, 0.0, 1.0, 0.0, 0.5, 1.0]]), torch.tensor([[0, 1, 2, 1, 0, 3]])
    want, gradient = value_and_gradient(plackett_luce(), scores, labels)
    value, shifted = value_and_gradient(plackett_luce(), scores + 2.0**22, labels)
    assert value == want
    assert torch.equal(shifted, gradient)


def test_the_generator_decides_and_moves_on():
    scores, labels = doubles([0.4, 0.1, -0.3, 0.9]), torch.tensor([[0, 1, 2, 1]])
    for make in (plackett_luce, lambda generator: Stochastic(ApproxNDCGLoss(Flavor(k=2)), generator=generator)):
        one, other = make(seeded()), make(seeded())
        first = one(scores, labels)
        torch.manual_seed(0)  # torch's own generator draws the same, in the precision of the scores
        assert other(scores, labels) == make(None)(scores, labels) == first
        assert one(scores, labels) != first


def test_scores_far_apart_keep_the_gradient_finite_in_long_lists():
    scores = torch.linspace(-500, 500, 1001)[None].requires_grad_()
    PlackettLuceNDCGLoss(Flavor(), samples=2, generator=seeded())(scores, torch.arange(1001)[None] % 5).backward()
    assert scores.grad.isfinite().all()
    far = torch.tensor([[3e38, -3e38, -3e38]])
    assert not value_and_gradient(plackett_luce(), far, torch.tensor([[0, 1, 2]]))[1].any()


# -- Stochastic ------------------------------------------------------------------------------------------------------


def test_the_law_of_the_noise(monkeypatch):
    drawn = stochastic.gumbel(torch.zeros(1, 10), 20_000, seeded())
    assert drawn.shape == (20_000, 1, 10)
    deviation = math.pi / math.sqrt(6)
    assert drawn.mean().item() == pytest.approx(0.5772156649, abs=5 * deviation / math.sqrt(200_000))
    assert drawn.std().item() == pytest.approx(deviation, abs=0.02)
    monkeypatch.setattr(torch, "rand", lambda shape, **given: torch.zeros(shape, **given))
    assert stochastic.gumbel(torch.zeros(1, 2), 3, None).isfinite().all()


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("ideal", ["global", "local"])
@pytest.mark.parametrize("n_rows", [12, 0])
def test_the_loss_of_each_draw_is_that_of_a_call(ideal, reduction, n_rows):
    scores, labels = torch.randn(n_rows, generator=seeded(), requires_grad=True), torch.arange(n_rows) % 4
    ids = torch.tensor([0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 0])[:n_rows]
    loss = ApproxNDCGLoss(Flavor(k=3, ideal=ideal), reduction=reduction)
    calls = []
    for lists, form in (((scores[None], labels[None]), {}), ((scores, labels), {"indexes": ids})):
        drawn = stochastic.gumbel(lists[0], 3, seeded(4))
        want = torch.stack([loss(lists[0] + noise, lists[1], **form) for noise in drawn]).mean(0)
        assert torch.equal(Stochastic(loss, samples=3, generator=seeded(4))(*lists, **form), want)
        for kind in ("forward", "forward_pre", "full_backward", "full_backward_pre"):
            hook = getattr(loss, f"register_{kind}_hook")(lambda *call: calls.append(call))
            got = Stochastic(loss, samples=3, generator=seeded(4))(*lists, **form)
            got.sum().backward()
            assert torch.equal(got, want)
            hook.remove()
    assert len(calls) == 24


class Sum(torch.nn.Module):
    """A loss from elsewhere."""

    def forward(self, scores, labels, mask=None, *, indexes=None):
        self.given = mask if indexes is None else indexes
        return (scores * labels).sum()


def test_noise_around_any_module():
    scores, labels = torch.randn(3, 4, dtype=torch.float64, generator=seeded()), torch.arange(12).reshape(3, 4)
    mask, ids = torch.ones(3, 4, dtype=torch.bool), torch.arange(3).repeat_interleave(4)
    drawn = stochastic.gumbel(scores, 3, seeded(4))
    for module in (Sum(), type("Own", (ListLoss,), {"forward": Sum.forward})()):
        noisy = Stochastic(module, samples=3, scale=0.5, generator=seeded(4))
        torch.testing.assert_close(noisy(scores, labels, mask), ((scores + 0.5 * drawn) * labels).sum() / 3)
        assert noisy.loss.given is mask
        noisy(scores.flatten(), labels.flatten(), indexes=ids)
        assert noisy.loss.given is ids


def test_a_negative_discount_is_refused_when_it_is_met():
    loss = PlackettLuceNDCGLoss(Flavor(discount=lambda rank: 1 - rank / 4))
    assert loss(doubles([0.4, 0.1, -0.3, 0.9]), torch.tensor([[0, 1, 2, 1]])).isfinite()
    with pytest.raises(ValueError, match=r"discount must be >= 0.*up to 5\. Use a flavor with a smaller k"):
        loss(doubles([0.4, 0.1, -0.3, 0.9, 0.0]), torch.tensor([[0, 1, 2, 1, 0]]))
    smaller = PlackettLuceNDCGLoss(loss.flavor.replace(k=4))
    assert smaller(doubles([0.4, 0.1, -0.3, 0.9, 0.0]), torch.tensor([[0, 1, 2, 1, 0]])).isfinite()


# -- losses of one's own ---------------------------------------------------------------------------------------------


class SigmoidRankLoss(DirectLoss):
    """The discount of a soft rank."""

    def __init__(self, flavor="sklearn", *, temperature=1.0, reduction="mean"):
        super().__init__(flavor, reduction=reduction)
        self.temperature = temperature

    def discounts(self, scores, ranked):
        ahead = torch.sigmoid((scores[:, None, :] - scores[:, :, None]) / self.temperature) * ranked[:, None, :]
        return self.discount_at(0.5 + ahead.sum(-1))


class SoftPermutationLoss(DirectLoss):
    """The discounts of the whole ranks, mixed by the matrix of NeuralSort."""

    def __init__(self, flavor="sklearn", *, temperature=1.0, reduction="mean"):
        super().__init__(flavor, reduction=reduction)
        self.temperature = temperature

    def discounts(self, scores, ranked):
        n = ranked.sum(-1, keepdim=True)
        rank = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)
        apart = ((scores[:, :, None] - scores[:, None, :]).abs() * ranked[:, None, :]).sum(-1)
        logits = ((n + 1 - 2 * rank)[:, :, None] * scores[:, None, :] - apart[:, None, :]) / self.temperature
        matrix = torch.where(ranked[:, None, :], logits, torch.finfo(scores.dtype).min).softmax(-1)
        return ((rank <= n) * self.discount_at(rank))[:, None, :].mul(matrix.mT).sum(-1)


class SquaredErrorLoss(ListLoss):
    """No relaxation of NDCG: the squared error of the shares of the ideal."""

    def losses(self, lists):
        return torch.where(lists.ranked, (lists.scores - lists.weight) ** 2, 0.0).sum(-1)


OWN = {
    "sigmoid ranks": lambda reduction: SigmoidRankLoss(Flavor(gain="exponential"), reduction=reduction),
    "sigmoid ranks, k = 2": lambda reduction: SigmoidRankLoss(Flavor(k=2), reduction=reduction),
    "soft permutation": lambda reduction: SoftPermutationLoss(Flavor(discount="ln"), reduction=reduction),
}


@pytest.mark.parametrize("holds", loss_invariants.WITHOUT_NOISE, ids=lambda holds: holds.__name__)
@pytest.mark.parametrize("maker", OWN)
def test_invariants_hold_without_a_line_of_the_users(maker, holds):
    if (maker, holds) == ("soft permutation", loss_invariants.odd_lists_have_finite_gradients):
        # Differences of 3e38 overflow in this one, which NeuralNDCGLoss avoids.
        with pytest.raises(RuntimeError, match="returned nan values"):
            holds(OWN[maker])
    else:
        holds(OWN[maker])


def test_the_relaxations_are_those_of_the_package():
    scores = torch.randn(4, 9, dtype=torch.float64, generator=seeded())
    labels = torch.randint(0, 4, (4, 9), generator=seeded(1))
    mask = torch.rand(4, 9, generator=seeded(2)) < 0.8
    for own, theirs in ((SigmoidRankLoss, ApproxNDCGLoss), (SoftPermutationLoss, NeuralNDCGLoss)):
        got, gradient = value_and_gradient(own("lightgbm", temperature=0.7), scores, labels, mask)
        want, slope = value_and_gradient(theirs("lightgbm", temperature=0.7), scores, labels, mask)
        torch.testing.assert_close(got, want, rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(gradient, slope, rtol=1e-12, atol=1e-13)


def test_a_loss_of_lists_is_any_function_of_them():
    scores, labels = doubles([0.5, 0.1], [0.2, 0.3]), torch.tensor([[1, 0], [0, 0]])
    loss = SquaredErrorLoss(reduction="none")
    assert loss(scores, labels).tolist() == [pytest.approx(0.26), 0.0]
    rows, ids = (scores.flatten(), labels.flatten()), torch.tensor([7, 7, -2, -2])
    assert loss(*rows, indexes=ids).tolist() == [pytest.approx(0.26), 0.0]
    assert Stochastic(SquaredErrorLoss(), samples=2)(*rows, indexes=ids).isfinite()


def test_a_discount_ends_half_a_rank_below_the_cut_off():
    ranks = torch.tensor([0.5, 1.0, 2.0, 2.49, 2.5, 3.0], dtype=torch.float64)
    got = DirectLoss(Flavor(discount="reciprocal", k=2)).discount_at(ranks)
    assert got.tolist() == pytest.approx([2.0, 1.0, 0.5, 1 / 2.49, 0.0, 0.0])
    assert DirectLoss(Flavor(discount="reciprocal")).discount_at(ranks)[-1] == pytest.approx(1 / 3)


def test_repr_shows_the_parameters_also_of_a_subclass():
    assert "samples=16, reduction='mean'" in repr(PlackettLuceNDCGLoss(Flavor(k=10)))
    text = repr(Stochastic(ApproxNDCGLoss(Flavor(k=10)), scale=2))
    assert "samples=8, scale=2.0" in text
    assert "ndcg@10" in text
    shown = "SigmoidRankLoss('lightgbm@5', temperature=0.3, reduction='mean')"
    assert repr(SigmoidRankLoss("lightgbm@5", temperature=0.3)) == shown
    assert repr(SquaredErrorLoss()) == "SquaredErrorLoss('sklearn', reduction='mean')"


class Summed(DirectLoss):
    def discounts(self, scores, ranked):
        return scores.sum(-1, keepdim=True)


class Total(ListLoss):
    def losses(self, lists):
        return lists.scores.sum()


@pytest.mark.parametrize(
    ("loss", "error", "words"),
    [
        (DirectLoss, NotImplementedError, "DirectLoss must define discounts"),
        (ListLoss, NotImplementedError, "ListLoss must define losses"),
        (Summed, ValueError, r"Summed.discounts must return one discount per document, shape \(1, 2\)"),
        (Total, ValueError, r"Total.losses must return one loss per list, shape \(1,\); got \(\)"),
        (lambda: SigmoidRankLoss(Flavor(discount=lambda rank: 1 / rank)), ValueError, "discount must be a name in a"),
    ],
)
def test_mistakes_are_errors(loss, error, words):
    with pytest.raises(error, match=words):
        loss()(doubles([0.5, 0.1]), torch.tensor([[1, 0]]))


# -- the limit -------------------------------------------------------------------------------------------------------


@examples(150)
@given(relaxable_flavors(), st.booleans(), st.data())
def test_the_cold_limit_of_approx_is_the_metric(flavor, depth, data):
    if flavor.ideal == "recall" and depth:
        flavor = flavor.replace(recall_depth=2)
    loss = ApproxNDCGLoss(flavor, temperature=1e-3, cut_temperature=1e-3, reduction="none")
    tends_to_the_metric(loss, flavor, data)


@examples(100)
@given(relaxable_flavors(lambda rank: 2.0 - rank / 50), st.booleans(), st.sampled_from([0, 5]), st.data())
def test_the_cold_limit_of_neural_is_the_metric(flavor, tied, rounds, data):
    if tied:
        flavor = flavor.replace(ties="average", ideal="global")
    loss = NeuralNDCGLoss(flavor, temperature=1e-3, sinkhorn=rounds, reduction="none")
    tends_to_the_metric(loss, flavor, data, tied=tied)


@examples(100)
@given(st.sampled_from([SigmoidRankLoss, SoftPermutationLoss]), relaxable_flavors(), st.data())
def test_the_cold_limit_of_ones_own_is_the_metric(loss, flavor, data):
    tends_to_the_metric(loss(flavor, temperature=1e-3, reduction="none"), flavor, data)


# -- recorded values and gradients -----------------------------------------------------------------------------------

RAX, TENSORFLOW, ALLRANK, REFERENCE = "rax", "tensorflow_ranking", "allRank", "surrogates_ref"
TOLERANCE = {RAX: 1e-10, TENSORFLOW: 2e-6, ALLRANK: 2e-6, REFERENCE: 1e-10}


@pytest.fixture(scope="module")
def loss_golden(parity_dir):
    """Values and gradients, their inputs and what was run (see tests/peers/golden/README.md)."""
    with gzip.open(parity_dir / "loss_golden.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


def records(loss_golden, impl, functions):
    """Yield the records of functions that begin so, their parameters, and scores, labels and mask."""
    for record in loss_golden["records"]:
        if record["impl"].startswith(impl) and record["fn"].startswith(functions) and record.get("grad"):
            case = loss_golden["cases"][record["case"]]
            scores = torch.tensor(case["scores"], dtype=torch.float64)
            yield record, record.get("params", {}), (scores, torch.tensor(case["labels"]), torch.tensor(case["mask"]))


def agree(got, recorded, tolerance, factor=1.0):
    want = torch.tensor(numbers(recorded), dtype=torch.float64).reshape(got.shape) * factor
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


DISCOUNTS = {"1/log2(1+r)": "log2", "1/r": "reciprocal", "JK b=2": "jarvelin"}


def approximated(lists, flavor, temperature, method):
    """Return the surrogate of each list, which is 0 in an empty one, and its gradient."""
    scores, labels, mask = lists
    # The recorded functions have one temperature for ranks and cut-off.
    options = {"temperature": temperature, "cut_temperature": temperature, "method": method, "reduction": "none"}
    value, gradient = value_and_gradient(ApproxNDCGLoss(flavor, **options), scores, labels, mask)
    judged = torch.where(mask, labels, 0).sum(-1) > 0
    return torch.where(judged, 1 - value, 0.0), -gradient


@both_methods
def test_approx_of_rax(loss_golden, method):
    seen = 0
    for record, params, lists in records(loss_golden, RAX, "approx_t12n(ndcg_metric)"):
        gain = {"2^y-1": "exponential", "y": "linear"}[params["gain"]]
        flavor = Flavor(gain=gain, discount=DISCOUNTS[params["discount"]], k=params.get("topn"))
        values, gradient = approximated(lists, flavor, params["temperature"], method)
        whole = lists[2].all(-1)
        if flavor.k is None or whole.all():
            agree(values, record["per_list"], 1e-10, -1)
            agree(gradient, record["grad"], 1e-10, -1)
            seen += 1
        else:  # its cut-off counts padded documents among the first k
            right = [each for each, is_whole in zip(record["per_list"], whole, strict=True) if is_whole]
            agree(values[whole], right, 1e-10, -1)
    assert seen >= 110


@both_methods
@pytest.mark.parametrize(("impl", "function"), [(TENSORFLOW, "ApproxNDCGLoss"), (ALLRANK, "approxNDCGLoss")])
def test_approx_of_tensorflow_ranking_and_allrank(loss_golden, impl, function, method):
    seen = 0
    for record, params, lists in records(loss_golden, impl, function):
        temperature = params["temperature"] if impl == TENSORFLOW else 1 / params["alpha"]
        values, gradient = approximated(lists, EXPONENTIAL, temperature, method)
        # The mean of allRank counts the lists without a relevant document, with 0.
        weights = record["list_weights"] if impl == TENSORFLOW else [1 / len(values)] * len(values)
        weights = torch.tensor(weights, dtype=torch.float64).reshape(-1)
        agree((values * weights).sum(), record["value"], TOLERANCE[impl], -1)
        agree(gradient * weights.unsqueeze(-1), record["grad"], TOLERANCE[impl], -1)
        seen += 1
    assert seen == 42


@both_methods
def test_approx_of_an_independent_derivation(loss_golden, method):
    seen = 0
    for record, params, lists in records(loss_golden, REFERENCE, "approx_ndcg logistic"):
        if record["fn"].endswith("fixed cut"):
            continue
        values, gradient = approximated(lists, EXPONENTIAL.replace(k=params["k"]), params["T"], method)
        agree(values, record["per_list"], 1e-10)
        agree(gradient, record["grad"], 1e-10)
        seen += 1
    assert seen >= 56


@pytest.mark.parametrize(
    ("impl", "function", "number"),
    [
        (TENSORFLOW, "NeuralSortNDCGLoss", 28),
        (ALLRANK, "neuralNDCG", 48),  # without the transposed one, which has a wrong linear ideal
        (REFERENCE, ("neuralsort_ndcg", "neural_ndcg"), 112),
    ],
    ids=[TENSORFLOW, ALLRANK, REFERENCE],
)
def test_neural(loss_golden, impl, function, number):
    seen = 0
    for record, params, (scores, labels, mask) in records(loss_golden, impl, function):
        if record["fn"] == "neuralNDCG_transposed" or params.get("powered_relevancies") is False:
            continue
        loss = NeuralNDCGLoss(
            EXPONENTIAL.replace(k=params.get("k")),
            temperature=params.get("tau", params.get("temperature")),
            sinkhorn=0 if record["fn"].lower().startswith("neuralsort") else 50,
            reduction="mean" if impl == ALLRANK else "none",
        )
        value, gradient = value_and_gradient(loss, scores, labels, mask)
        empty = torch.where(mask, labels, 0).sum(-1) == 0
        one = 1.0 - (empty.all() if impl == ALLRANK else empty).double()
        # float32, with an early stop of the rounds in allRank; a cold list of 40 costs TF-Ranking another digit.
        tolerance = 1e-10 if impl == REFERENCE else 2e-5 if record["case"] == "rand40" else 4e-6
        sign = 1 if impl == REFERENCE else -1
        agree(one - value, record["per_list"] or record["value"], tolerance, sign)
        agree(-gradient, record["grad"], tolerance, sign)
        seen += 1
    assert seen == number


PAIRWISE = "PairwiseLogisticLoss+DCGLambdaWeight "


@pytest.mark.parametrize(
    ("impl", "function", "scheme", "number"),
    [
        (RAX, "pairwise_logistic_loss+dcg_lambdaweight", "lambdarank", 28),
        (TENSORFLOW, PAIRWISE + "smooth=1", "lambdarank", 24),
        (TENSORFLOW, PAIRWISE + "smooth=0", "ndcg2", 24),
    ],
)
def test_lambda(loss_golden, impl, function, scheme, number):
    seen = 0
    for record, params, lists in records(loss_golden, impl, function):
        if impl == TENSORFLOW and record["case"] in ("ties6", "alltied4"):  # its gradient of a tied pair is 0
            continue
        loss = LambdaNDCGLoss(EXPONENTIAL.replace(k=params["topn"]), scheme=scheme, reduction="none")
        value, gradient = value_and_gradient(loss, *lists)
        padded = lists[0].shape[1]  # both multiply the weights by it
        agree(value, record["per_list"], TOLERANCE[impl], 1 / padded)
        agree(gradient, record["grad"], TOLERANCE[impl], 1 / padded)
        seen += 1
    assert seen == number


def test_lambda_of_allrank(loss_golden):
    schemes = {"lambdaRank_scheme": "lambdarank", "ndcgLoss2_scheme": "ndcg2", "ndcgLoss2PP_scheme": "ndcg2pp"}
    seen = Counter()
    for record, params, lists in records(loss_golden, ALLRANK, "lambdaLoss"):
        scheme = schemes.get(params["scheme"])
        if scheme is None or record["case"] in ("big5", "ties6") or (params["reduction"], params["k"]) != ("sum", None):
            continue
        value, gradient = value_and_gradient(LambdaNDCGLoss(EXPONENTIAL, scheme=scheme, reduction="sum"), *lists)
        base = math.log(2.0) if params["reduction_log"] == "binary" else 1.0
        agree(value, record["value"], 2e-5, base)
        agree(gradient, record["grad"], 2e-5, base)
        seen[scheme] += 1
    assert set(seen) == {*schemes.values()}
    assert seen.total() > 20


@pytest.mark.parametrize(("impl", "name"), [(RAX, "softmax"), (TENSORFLOW, "Softmax"), (REFERENCE, "softmax")])
def test_softmax(loss_golden, impl, name):
    seen = 0
    for record, _, (scores, labels, mask) in records(loss_golden, impl, (f"{name}_loss", f"{name}Loss")):
        total = torch.where(mask, labels, 0).sum(-1).double()  # their targets do not sum to 1
        leaf = scores.clone().requires_grad_()
        loss = (SoftmaxLoss(reduction="none")(leaf, labels, mask) * total).sum()
        loss.backward()
        agree(loss.detach(), record["value"], TOLERANCE[impl])
        agree(leaf.grad, record["grad"], TOLERANCE[impl])
        seen += 1
    assert seen == 14


@pytest.mark.parametrize(
    ("impl", "function", "loss", "number"),
    [
        (REFERENCE, "listnet", SoftmaxLoss(target="listnet", reduction="sum"), 11),
        (RAX, "listmle_loss", ListMLELoss(tie_order="input", reduction="sum"), 11),
        (TENSORFLOW, "ListMLELoss", ListMLELoss(tie_order="input", reduction="sum"), 4),
        (REFERENCE, "listmle", ListMLELoss(tie_order="input", reduction="sum"), 11),
    ],
)
def test_listnet_and_listmle(loss_golden, impl, function, loss, number):
    seen = 0
    for record, _, lists in records(loss_golden, impl, function):
        if not (torch.where(lists[2], lists[1], 0).sum(-1) > 0).all():  # empty lists have a loss there
            continue
        if impl == TENSORFLOW and record["case"] not in ("nopad_row2", "single", "big5", "grade30"):
            continue  # it shuffles equal labels, and lets padding in
        value, gradient = value_and_gradient(loss, *lists)
        agree(value, record["value"], TOLERANCE[impl])
        if impl != RAX or record["case"] not in ("ties6", "alltied4"):  # wrong where the largest scores are tied
            agree(gradient, record["grad"], TOLERANCE[impl])
        seen += 1
    assert seen == number


def test_noise_of_rax(loss_golden, monkeypatch):
    seen = 0
    for record, params, lists in records(loss_golden, RAX, "gumbel_t12n"):
        noise = torch.tensor(record["noise"], dtype=torch.float64)
        monkeypatch.setattr(stochastic, "gumbel", lambda like, samples, generator, noise=noise: noise)
        inner = ApproxNDCGLoss(EXPONENTIAL, temperature=params["temperature"], reduction="none")
        value, gradient = value_and_gradient(Stochastic(inner, samples=params["samples"], scale=params["beta"]), *lists)
        agree((1 - value).mean(), record["value"], 1e-10, -1)
        agree(gradient / len(value), record["grad"], 1e-10)
        seen += 1
    assert seen == 4
