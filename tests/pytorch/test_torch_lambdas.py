"""LambdaNDCGLoss: recorded values and gradients of rax and TF-Ranking, a pair-by-pair oracle, and known defects."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math

import loss_invariants
import torch
from loss_invariants import doubles, numbers, value_and_gradient

import ndcg_ml.torch.losses.lambdas as lambdas
from ndcg_ml import Flavor
from ndcg_ml.torch.losses.lambdas import LambdaNDCGLoss

pytestmark = pytest.mark.usefixtures("one_thread")


SCHEMES = ["lambdarank", "ndcg2", "ndcg2pp"]
FLAVORS = {
    "whole": Flavor(gain="exponential"),
    "cut": Flavor(k=2),
    "k above n": Flavor(discount="ln", k=50),
    "local": Flavor(ideal="local", discount="reciprocal", k=3),
}


@pytest.mark.parametrize("holds", loss_invariants.WITHOUT_NOISE, ids=lambda holds: holds.__name__)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_invariants_of_lambdarank(flavor, holds):
    if holds is loss_invariants.documents_may_stand_in_any_order:
        holds(lambda reduction: LambdaNDCGLoss(FLAVORS[flavor], reduction=reduction), tied=False)
    else:
        holds(lambda reduction: LambdaNDCGLoss(FLAVORS[flavor], reduction=reduction))


@pytest.mark.parametrize("holds", loss_invariants.WITHOUT_NOISE, ids=lambda holds: holds.__name__)
@pytest.mark.parametrize("scheme", SCHEMES[1:])
def test_invariants_of_the_other_schemes(scheme, holds):
    if holds is loss_invariants.documents_may_stand_in_any_order:
        holds(lambda reduction: LambdaNDCGLoss(Flavor(k=2), scheme=scheme, reduction=reduction), tied=False)
    else:
        holds(lambda reduction: LambdaNDCGLoss(Flavor(k=2), scheme=scheme, reduction=reduction))


# -- the definition --------------------------------------------------------------------------------------------------


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
def test_values_and_gradients_of_the_definition(scheme, k, discount):
    scores = [0.3, 1.2, -0.4, 2.0, 0.9, 0.9, 0.1, -30.0]
    grades = [3, 2, 0, 1, 2, 0, 4, 4]
    formula = {"log2": lambda rank: 1 / math.log2(1 + rank), "ln": lambda rank: 1 / math.log(1 + rank)}[discount]
    for given in (discount, formula):
        loss = LambdaNDCGLoss(Flavor(discount=given, k=k), scheme=scheme, sigma=1.5, mu=3.0)
        value, gradient = value_and_gradient(loss, doubles(scores), torch.tensor([grades]))
        want, pushes = by_pairs(scores, grades, scheme, k, 1.5, 3.0, formula)
        assert value.item() == pytest.approx(want, rel=1e-12)
        assert gradient[0].tolist() == pytest.approx(pushes, abs=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_blocks_of_ranks_change_nothing(monkeypatch, scheme):
    torch.manual_seed(1)
    scores, labels = torch.randn(2, 30, dtype=torch.float64), torch.randint(0, 5, (2, 30))
    loss = LambdaNDCGLoss(Flavor(k=11), scheme=scheme)
    want, gradient = value_and_gradient(loss, scores, labels)
    monkeypatch.setattr(lambdas, "_BLOCK", 240)  # four rows
    value, again = value_and_gradient(loss, scores, labels)
    torch.testing.assert_close(value, want, rtol=1e-13, atol=0)
    torch.testing.assert_close(again, gradient, rtol=0, atol=1e-14)


def test_a_cut_list_never_holds_all_pairs():
    # 200 000 squared would be 160 GB.
    scores = torch.linspace(-1, 1, 200_000)[None].requires_grad_()
    LambdaNDCGLoss(Flavor(k=5))(scores, torch.arange(200_000)[None] % 5).backward()
    assert scores.grad.isfinite().all()
    assert scores.grad.abs().sum() > 0


def test_ties_are_ranked_as_they_stand_and_keep_their_gradient():
    labels = torch.tensor([[0, 1, 2, 0]])
    value, gradient = value_and_gradient(LambdaNDCGLoss(Flavor()), doubles([0.0] * 4), labels)
    want, pushes = by_pairs([0.0] * 4, [0, 1, 2, 0], "lambdarank", None)
    assert value.item() == pytest.approx(want, rel=1e-13)
    assert gradient[0].tolist() == pytest.approx(pushes, abs=1e-14)
    assert gradient[0, 2] < gradient[0, 1] < 0 < gradient[0, 0]
    first = value_and_gradient(LambdaNDCGLoss(Flavor(ties="worst")), doubles([0.0] * 4), labels)
    assert torch.equal(first[1], gradient)


@pytest.mark.parametrize("block", [2**20, 8])
@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_second_derivative(monkeypatch, scheme, k, block):
    monkeypatch.setattr(lambdas, "_BLOCK", block)
    scores, labels = doubles([0.3, -0.2, 0.9, 0.1], [0.5, 0.1, 7.0, 0.2]), torch.tensor([[3, 0, 1, 2], [0, 2, 4, 1]])
    mask = torch.tensor([[True] * 4, [True, True, False, True]])
    loss = LambdaNDCGLoss(Flavor(k=k), scheme=scheme, sigma=1.5)
    assert torch.autograd.gradgradcheck(lambda s: loss(s, labels, mask), (scores,))


# -- other implementations -------------------------------------------------------------------------------------------


def read_golden(loss_golden):
    for record in loss_golden["records"]:
        case = loss_golden["cases"][record["case"]]
        case = (
            torch.tensor(case["scores"], dtype=torch.float64),
            torch.tensor(case["labels"]),
            torch.tensor(case["mask"]),
        )
        yield record["impl"].split()[0], record["fn"], record.get("params", {}), record["case"], case, record


PEERS = {
    ("rax", "pairwise_logistic_loss+dcg_lambdaweight"): ("lambdarank", 1e-10),
    ("tensorflow_ranking", "PairwiseLogisticLoss+DCGLambdaWeight smooth=1 (LambdaRank)"): ("lambdarank", 2e-6),
    ("tensorflow_ranking", "PairwiseLogisticLoss+DCGLambdaWeight smooth=0 (NDCG-Loss2)"): ("ndcg2", 2e-6),
}


def test_recorded_values_and_gradients(loss_golden):
    seen = dict.fromkeys(PEERS, 0)
    for impl, name, params, case, (scores, labels, mask), record in read_golden(loss_golden):
        if (impl, name) not in PEERS:
            continue
        if impl == "tensorflow_ranking" and case in ("ties6", "alltied4"):  # see below
            continue
        scheme, rtol = PEERS[impl, name]
        loss = LambdaNDCGLoss(Flavor(gain="exponential", k=params["topn"]), scheme=scheme, reduction="none")
        value, gradient = value_and_gradient(loss, scores, labels, mask)
        padded = scores.shape[1]  # both multiply the weights by it
        want = torch.tensor(numbers(record["per_list"]), dtype=torch.float64).reshape(-1) / padded
        slope = torch.tensor(numbers(record["grad"]), dtype=torch.float64) / padded
        torch.testing.assert_close(value, want, rtol=rtol, atol=rtol)
        torch.testing.assert_close(gradient, slope, rtol=rtol, atol=rtol)
        seen[impl, name] += 1
    assert list(seen.values()) == [28, 24, 24]


ALLRANK = {"lambdaRank_scheme": "lambdarank", "ndcgLoss2_scheme": "ndcg2", "ndcgLoss2PP_scheme": "ndcg2pp"}


def test_recorded_sums_of_allrank(loss_golden):
    seen = 0
    for impl, name, params, case, (scores, labels, mask), record in read_golden(loss_golden):
        if impl != "allRank" or name != "lambdaLoss" or params["scheme"] not in ALLRANK or case in ("big5", "ties6"):
            continue
        if params["reduction"] != "sum" or params["k"] is not None:
            continue
        loss = LambdaNDCGLoss(Flavor(gain="exponential"), scheme=ALLRANK[params["scheme"]], reduction="sum")
        value, gradient = value_and_gradient(loss, scores, labels, mask)
        base = math.log(2.0) if params["reduction_log"] == "binary" else 1.0
        assert value.item() / base == pytest.approx(float(record["value"]), rel=2e-5, abs=2e-6)
        slope = torch.tensor(numbers(record["grad"]), dtype=torch.float64)
        torch.testing.assert_close(gradient / base, slope, rtol=2e-5, atol=2e-6)
        seen += 1
    assert seen > 20


def one(loss_golden, **wanted):
    """The first record with these fields, and its case."""
    for impl, name, params, case, tensors, record in read_golden(loss_golden):
        fields = {"impl": impl, "fn": name, "case": case, **params}
        if all(fields.get(key) == value for key, value in wanted.items()):
            return tensors, record
    raise AssertionError(f"no record with {wanted}")


def test_tied_pairs_push_half(loss_golden):
    # TF-Ranking 0.5.5: relu(-x) + log1p(exp(-|x|)) has the derivative 0 at x = 0 in TensorFlow.
    name = "PairwiseLogisticLoss+DCGLambdaWeight smooth=1 (LambdaRank)"
    (scores, labels, _), record = one(loss_golden, impl="tensorflow_ranking", fn=name, case="alltied4", topn=None)
    assert not any(numbers(record["grad"])[0])
    _, gradient = value_and_gradient(LambdaNDCGLoss(Flavor(gain="exponential")), scores, labels)
    _, pushes = by_pairs(scores[0].tolist(), [2**y - 1 for y in labels[0].tolist()], "lambdarank", None)
    assert gradient[0].tolist() == pytest.approx(pushes, abs=1e-12)
    assert gradient.abs().max() > 0.1


def test_the_padded_width_is_no_factor(loss_golden):
    # rax 0.4.0 and TF-Ranking 0.5.5: the same list, padded from 4 to 6, has 1.5 times the loss.
    name = "pairwise_logistic_loss+dcg_lambdaweight"
    (bare, grades, _), short = one(loss_golden, impl="rax", fn=name, case="nopad_row1", topn=None)
    (scores, labels, mask), long = one(loss_golden, impl="rax", fn=name, case="pad3x6", topn=None)
    assert float(long["per_list"][1]) == pytest.approx(1.5 * float(short["per_list"][0]))
    loss = LambdaNDCGLoss(Flavor(gain="exponential"), reduction="none")
    assert loss(scores, labels, mask)[1].item() == pytest.approx(loss(bare, grades).item(), rel=1e-13)


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"scheme": "ndcg3"}, ValueError, "scheme must be one of 'lambdarank', .*got 'ndcg3'"),
        ({"sigma": 0}, ValueError, "sigma must be a finite number > 0; got 0"),
        ({"mu": -1}, ValueError, "mu must be a finite number > 0; got -1"),
    ],
)
def test_what_a_loss_does_not_support_is_refused_at_construction(arguments, error, words):
    with pytest.raises(error, match=words):
        LambdaNDCGLoss(**arguments)
