"""NeuralNDCGLoss: recorded values and gradients of TF-Ranking and allRank, a dense oracle, the metric as its limit."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import loss_invariants
import torch
from hypothesis import given
from hypothesis import strategies as st
from loss_invariants import doubles, numbers, relaxable_flavors, tends_to_the_metric, value_and_gradient
from strategies import examples

import ndcg_ml.torch.losses.neural as neural
from ndcg_ml import Flavor
from ndcg_ml.torch.losses.neural import NeuralNDCGLoss

pytestmark = pytest.mark.usefixtures("one_thread")


MAKERS = {
    "plain": lambda reduction: NeuralNDCGLoss(Flavor(), temperature=0.5, reduction=reduction),
    "cut": lambda reduction: NeuralNDCGLoss(Flavor(gain="exponential", k=2), reduction=reduction),
    "k above n": lambda reduction: NeuralNDCGLoss(Flavor(k=50), reduction=reduction),
    "sinkhorn": lambda reduction: NeuralNDCGLoss(Flavor(ideal="local", k=3), sinkhorn=20, reduction=reduction),
}


@pytest.mark.parametrize("holds", loss_invariants.WITHOUT_NOISE, ids=lambda holds: holds.__name__)
@pytest.mark.parametrize("maker", MAKERS)
def test_invariants(maker, holds):
    holds(MAKERS[maker])


# -- other implementations -------------------------------------------------------------------------------------------


def dense(scores, weight, discount, temperature, rounds=0):
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
def test_values_and_gradients_of_the_definition(k, rounds, temperature, tied):
    torch.manual_seed(0)
    scores = torch.randn(1, 12, dtype=torch.float64) * 3
    scores = scores.round() if tied else scores
    labels = torch.randint(0, 5, (1, 12))
    flavor = Flavor(discount="reciprocal", k=k)
    value, gradient = value_and_gradient(
        NeuralNDCGLoss(flavor, temperature=temperature, sinkhorn=rounds), scores, labels
    )
    discount = 1 / torch.arange(1, 13, dtype=torch.float64)
    discount[k or 12 :] = 0
    ideal = (labels[0].sort(descending=True).values * discount).sum()
    leaf = scores[0].clone().requires_grad_()
    want = 1 - dense(leaf, labels[0] / ideal, discount, temperature, rounds)
    want.backward()
    torch.testing.assert_close(value, want.detach(), rtol=0, atol=1e-13)
    torch.testing.assert_close(gradient[0], leaf.grad, rtol=0, atol=1e-11)


def test_recorded_values_and_gradients(loss_golden):
    seen = {"tensorflow_ranking": 0, "allRank": 0, "surrogates_ref": 0}
    for record in loss_golden["records"]:
        impl, name, params = record["impl"].split()[0], record["fn"], record.get("params", {})
        neural_sort = name.startswith(("NeuralSortNDCGLoss", "neuralsort_ndcg"))
        if not (neural_sort or name.startswith(("neuralNDCG", "neural_ndcg"))) or "error" in record:
            continue
        if record["grad"] is None or name == "neuralNDCG_transposed":  # the same function, with a wrong linear ideal
            continue
        if params.get("powered_relevancies") is False:
            continue
        case = loss_golden["cases"][record["case"]]
        labels, mask = torch.tensor(case["labels"], dtype=torch.float64), torch.tensor(case["mask"])
        flavor = Flavor(gain="exponential", k=params.get("k"))
        temperature = params.get("tau", params.get("temperature"))
        reduction = "mean" if impl == "allRank" else "none"
        loss = NeuralNDCGLoss(flavor, temperature=temperature, sinkhorn=0 if neural_sort else 50, reduction=reduction)
        value, gradient = value_and_gradient(loss, torch.tensor(case["scores"], dtype=torch.float64), labels, mask)
        sign = 1.0 if impl == "surrogates_ref" else -1.0
        want = sign * torch.tensor(numbers(record["per_list"] or record["value"]), dtype=torch.float64)
        empty = torch.where(mask, labels, 0.0).sum(-1) == 0
        one = torch.where(empty, 0.0, 1.0) if reduction == "none" else 1.0 - empty.all().double()
        # float32, with an early stop of the rounds in allRank; a cold list of 40 costs TF-Ranking another digit.
        atol = 1e-10 if impl == "surrogates_ref" else 2e-5 if record["case"] == "rand40" else 4e-6
        torch.testing.assert_close(one - value, want, rtol=0, atol=atol)
        torch.testing.assert_close(
            -gradient, sign * torch.tensor(numbers(record["grad"]), dtype=torch.float64), rtol=0, atol=atol
        )
        seen[impl] += 1
    assert seen == {"tensorflow_ranking": 28, "allRank": 48, "surrogates_ref": 112}


# -- the limit -------------------------------------------------------------------------------------------------------


@examples(100)
@given(relaxable_flavors(lambda rank: 2.0 - rank / 50), st.booleans(), st.sampled_from([0, 5]), st.data())
def test_cold_limit_is_the_metric(flavor, tied, rounds, data):
    if tied:
        flavor = flavor.replace(ties="average", ideal="global")
    loss = NeuralNDCGLoss(flavor, temperature=1e-3, sinkhorn=rounds, reduction="none")
    tends_to_the_metric(loss, flavor, data, tied=tied)


# -- long lists ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 7])
def test_blocks_of_rows_change_nothing(monkeypatch, k):
    torch.manual_seed(1)
    scores, labels = torch.randn(2, 30, dtype=torch.float64), torch.randint(0, 5, (2, 30))
    want, gradient = value_and_gradient(NeuralNDCGLoss(Flavor(k=k)), scores, labels)
    monkeypatch.setattr(neural, "_BLOCK", 300)  # five rows
    got = value_and_gradient(NeuralNDCGLoss(Flavor(k=k)), scores, labels)
    torch.testing.assert_close(got, (want, gradient), rtol=0, atol=1e-14)


def test_a_cut_list_never_holds_the_whole_matrix():
    # 200 000 squared would be 160 GB.
    scores = torch.linspace(-1, 1, 200_000)[None].requires_grad_()
    loss = NeuralNDCGLoss(Flavor(k=5))(scores, torch.arange(200_000)[None] % 5)
    loss.backward()
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("temperature", [1.0, 0.01])
def test_float32_keeps_its_digits_on_long_lists_and_large_scores(temperature):
    torch.manual_seed(2)
    scores, labels = torch.randn(1, 2000) * 100, torch.randint(0, 5, (1, 2000))
    value, gradient = value_and_gradient(NeuralNDCGLoss(Flavor(k=10), temperature=temperature * 1e3), scores, labels)
    want, wide = value_and_gradient(
        NeuralNDCGLoss(Flavor(k=10), temperature=temperature * 1e3), scores.double(), labels
    )
    assert value.item() == pytest.approx(want.item(), abs=2e-6)
    assert (gradient - wide).norm() < 2e-5 * wide.norm()


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("options", [{}, {"sinkhorn": 4}, {"temperature": 0.3}], ids=str)
def test_a_second_derivative(options, k):
    scores, labels = doubles([0.3, -0.2, 0.9, 0.1], [0.5, 0.1, 7.0, 0.2]), torch.tensor([[3, 0, 1, 2], [0, 2, 4, 1]])
    mask = torch.tensor([[True] * 4, [True, True, False, True]])
    loss = NeuralNDCGLoss(Flavor(k=k), **options)
    assert torch.autograd.gradgradcheck(lambda s: loss(s, labels, mask), (scores,))


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"sinkhorn": -1}, ValueError, "sinkhorn must be an integer >= 0; got -1"),
        ({"sinkhorn": 1.5}, TypeError, "sinkhorn must be an integer >= 0; got 1.5 of type float"),
        ({"sinkhorn": True}, TypeError, "sinkhorn must be an integer >= 0; got True"),
    ],
)
def test_what_a_loss_does_not_support_is_refused_at_construction(arguments, error, words):
    with pytest.raises(error, match=words):
        NeuralNDCGLoss(**arguments)
