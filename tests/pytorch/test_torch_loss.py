"""ApproxNDCGLoss: recorded values and gradients of rax, the metric as its limit, and inputs that break losses."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math

import torch
from hypothesis import given
from hypothesis import strategies as st
from loss_invariants import doubles
from strategies import examples

from ndcg_ml import Flavor
from ndcg_ml.torch import ApproxNDCGLoss, Stochastic, ndcg

# -- the limit -------------------------------------------------------------------------------------------------------

DIFFERENTIABLE = st.builds(
    Flavor,
    gain=st.sampled_from(["linear", "exponential", "binary", "judged", (0.0, 1.0, 5.0, 6.0, 20.0)]),
    discount=st.sampled_from(["log2", "ln", "reciprocal", "jarvelin", "none"]),
    ideal=st.sampled_from(["global", "recall", "local", "max", "given"]),
    ideal_depth=st.sampled_from(["k", "all", "retrieved"]),
    short_lists=st.sampled_from(["score", "score", "zero"]),
    max_grade=st.just(4.0),
    k=st.sampled_from([None, 1, 3, 50]),
    ties=st.sampled_from(["average", "first", "worst"]),
    negative=st.sampled_from(["zero", "drop"]),
    unjudged=st.sampled_from(["zero", "condense"]),
)


@examples(150)
@given(DIFFERENTIABLE, st.booleans(), st.data())
def test_cold_limit_is_the_metric(flavor, depth, data):
    if flavor.ideal == "recall" and depth:
        flavor = flavor.replace(recall_depth=2)
    width = data.draw(st.integers(1, 7))
    scores = torch.tensor([data.draw(st.permutations(range(width))) for _ in range(3)], dtype=torch.float64)
    grades = st.lists(st.sampled_from([0, 1, 2, 3, 4, -1, math.nan]), min_size=width, max_size=width)
    labels = torch.tensor([data.draw(grades) for _ in range(3)], dtype=torch.float64)
    mask = torch.tensor([data.draw(st.lists(st.booleans(), min_size=width, max_size=width)) for _ in range(3)])
    loss = ApproxNDCGLoss(flavor, temperature=1e-3, cut_temperature=1e-3, reduction="none")(scores, labels, mask)
    metric = ndcg(scores, labels, flavor=flavor.replace(empty=1.0), mask=mask)  # an empty list has no loss
    torch.testing.assert_close(loss, 1 - metric, rtol=1e-10, atol=1e-10)


def test_tied_limit_is_the_middle_rank():
    loss = ApproxNDCGLoss(Flavor(), temperature=1e-3)(doubles([0.0, 0.0, 0.0]), torch.tensor([[1, 0, 0]]))
    assert loss.item() == pytest.approx(1 - 1 / math.log2(2 + 1))


@pytest.mark.parametrize("method", ["dense", "fast"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_scores_and_temperature_of_another_unit_change_nothing(k, method):
    scores, labels = doubles([0.3, 1.2, -0.4, 2.0, 0.9, 0.1]), torch.tensor([[3, 2, 0, 1, 2, 4]])
    flavor = Flavor(gain="exponential", k=k)
    want = ApproxNDCGLoss(flavor, temperature=0.1, method=method)(scores, labels).item()
    for unit in (1e-3, 1e3):
        for loss in (
            ApproxNDCGLoss(flavor, temperature=0.1 * unit, method=method)(unit * scores, labels),
            Stochastic(ApproxNDCGLoss(flavor, temperature=0.1 * unit, method=method), samples=1, scale=1e-15)(
                unit * scores, labels
            ),
        ):
            assert loss.item() == pytest.approx(want, rel=1e-9)
    one = ApproxNDCGLoss(flavor, temperature=0.1, cut_temperature=1.0, method=method)
    assert one(scores, labels).item() == want
    assert ApproxNDCGLoss(flavor, temperature=0.1, cut_temperature=0.1)(scores, labels).item() != want


# -- the gradient ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", ["log2", "ln", "reciprocal", "jarvelin"])
@pytest.mark.parametrize("k", [None, 9])
def test_gradient_is_that_of_the_value(discount, k):
    mask = torch.tensor([[True] * 5, [True, False, True, True, False]])
    labels = torch.tensor([[3, 0, 1, 2, 0], [1, 4, 0, 2, 4]])
    scores = doubles([0.3, -0.2, 0.9, 0.1, 0.35], [0.5, 9.0, -0.1, 0.45, -9.0])
    loss = ApproxNDCGLoss(Flavor(gain="exponential", discount=discount, k=k), temperature=0.7)
    assert torch.autograd.gradcheck(lambda s: loss(s, labels, mask), (scores,))


# -- precision and devices -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grade", [200, 500])
def test_large_grades(grade):
    scores = torch.tensor([[0.3, 1.2, -0.4]], requires_grad=True)
    loss = ApproxNDCGLoss(Flavor(gain="exponential"))(scores, torch.tensor([[grade, 0, 0]]))
    loss.backward()
    want = ApproxNDCGLoss(Flavor(gain="binary"))(scores, torch.tensor([[1, 0, 0]]))
    assert loss.item() == pytest.approx(want.item())
    assert scores.grad.isfinite().all()
    with pytest.raises(ValueError, match=r"gains must be at most 2\*\*500 .*got 1 labels whose gain is larger"):
        ApproxNDCGLoss(Flavor(gain="exponential"))(scores, torch.tensor([[grade, 0, 501]]))
    with pytest.raises(ValueError, match=r"gains must be 0 or at least 2\*\*-500 .*got 1 labels whose gain is smaller"):
        ApproxNDCGLoss(Flavor())(scores, torch.tensor([[2.0**-501, 0, 1]], dtype=torch.float64))


@pytest.mark.parametrize("method", ["dense", "fast"])
@pytest.mark.parametrize("discount", ["none", "log2", "jarvelin"])
@pytest.mark.parametrize("k", [None, 2, 10])
def test_a_loss_stays_in_the_graph_whatever_its_discount(discount, k, method):
    scores = torch.randn(2, 5, requires_grad=True)
    loss = ApproxNDCGLoss(Flavor(discount=discount, k=k), method=method)(scores, torch.tensor([[0, 1, 2, 0, 1]] * 2))
    loss.backward()
    assert scores.grad.any() == (discount != "none" or k == 2)


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"flavor": Flavor(discount=lambda r: 1 / r)}, ValueError, "between whole ranks.*Choose 'log2'"),
        ({"flavor": Flavor(negative="allow")}, ValueError, "negative='allow'.*Choose 'raise'"),
        ({"flavor": Flavor(gain=(0, -1))}, ValueError, "must not be negative in a loss"),
        ({"flavor": Flavor(aggregate="micro")}, ValueError, "aggregate='micro'.*macro"),
        ({"temperature": 0}, ValueError, "temperature must be a finite number > 0; got 0"),
        ({"temperature": math.nan}, ValueError, "temperature must be a finite number > 0"),
        ({"temperature": "1"}, TypeError, "temperature must be one number > 0; got '1' of type str"),
        ({"temperature": torch.tensor(0.0)}, ValueError, "temperature must be a finite number > 0; got 0.0"),
        ({"cut_temperature": None}, TypeError, "cut_temperature must be one number > 0; got None"),
        ({"cut_temperature": -1.0}, ValueError, "cut_temperature must be a finite number > 0; got -1.0"),
        ({"reduction": "avg"}, ValueError, "reduction must be one of 'mean', 'sum', 'none'; got 'avg'"),
    ],
)
def test_what_a_loss_does_not_support_is_refused_at_construction(arguments, error, words):
    with pytest.raises(error, match=words):
        ApproxNDCGLoss(**arguments)


@pytest.mark.parametrize("ties", ["average", "first", "last", "best", "worst", "docid"])
@pytest.mark.parametrize("ideal", ["global", "local"])
def test_every_tie_rule_is_taken(ties, ideal):
    scores, labels = doubles([0.1, 0.9, 0.4]), torch.tensor([[1, 0, 2]])
    want = ApproxNDCGLoss(Flavor(ideal=ideal))(scores, labels)
    assert ApproxNDCGLoss(Flavor(ties=ties, ideal=ideal))(scores, labels).item() == pytest.approx(want.item())


def test_repr_says_what_it_is():
    assert repr(ApproxNDCGLoss("lightgbm@5", temperature=0.5)) == (
        "ApproxNDCGLoss('lightgbm@5', temperature=0.5, step='logistic', method='auto', cut_temperature=1.0, "
        "reduction='mean')"
    )
