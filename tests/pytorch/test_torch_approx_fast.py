"""ApproxNDCGLoss by scans and over all pairs: one loss, one gradient; the metric as its limit; records; refusals."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math

import loss_invariants
import torch
from hypothesis import given
from hypothesis import strategies as st
from loss_invariants import doubles, relaxable_flavors, tends_to_the_metric, value_and_gradient
from strategies import examples

from ndcg_ml import Flavor
from ndcg_ml.torch import ApproxNDCGLoss

METHODS = ("dense", "fast")
both_methods = pytest.mark.parametrize("method", METHODS)


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
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(3, n, generator=generator, dtype=torch.float64)
    if kind == "ties":
        scores = scores.mul(2).round()
    elif kind == "far":
        scores = scores + 1e4 * torch.randint(-3, 4, (3, n), generator=generator)
    elif kind == "equal":
        scores = torch.full_like(scores, 0.3)
    labels = torch.randint(0, 5, (3, n), generator=generator)
    return scores.to(dtype), labels, torch.rand(3, n, generator=generator) < 0.8


# -- one loss --------------------------------------------------------------------------------------------------------

# Around one block, several, and many; the cut-off below, at and above the number of documents.
SHAPES = st.tuples(st.integers(0, 10**6), st.sampled_from([1, 2, 31, 32, 33, 64, 65, 200, 700]))
KINDS = st.sampled_from(["spread", "ties", "far", "equal"])
CUTS = st.sampled_from([None, 1, 3, 40, 1000])
TEMPERATURES = st.sampled_from([1e-6, 0.01, 0.1, 1.0, 10.0])


@examples(120)
@given(SHAPES, KINDS, CUTS, TEMPERATURES)
def test_fast_is_dense_in_float64(shape, kind, k, temperature):
    scores, labels, mask = drawn(*shape, kind)
    make = [
        ApproxNDCGLoss(Flavor(k=k), temperature=temperature, cut_temperature=1.0, method=m, reduction="none")
        for m in METHODS
    ]
    (want, gradient), (got, fast) = (value_and_gradient(loss, scores, labels, mask) for loss in make)
    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)
    # At a low temperature a gradient of 0 still has the rounding of terms of the size 1 / T.
    scale = gradient.abs().max().item()
    torch.testing.assert_close(fast, gradient, rtol=0, atol=1e-10 * scale + 1e-15 / temperature)


@examples(80)
@given(
    SHAPES,
    st.sampled_from(["spread", "ties", "equal"]),
    CUTS,
    st.sampled_from([0.01, 0.1, 1.0, 10.0]),
)
def test_fast_is_dense_in_float32(shape, kind, k, temperature):
    scores, labels, mask = drawn(*shape, kind, torch.float32)
    options = {"temperature": temperature, "cut_temperature": 1.0, "reduction": "none"}
    want, gradient = value_and_gradient(
        ApproxNDCGLoss(Flavor(k=k), method="dense", **options), scores.double(), labels, mask
    )
    got, fast = value_and_gradient(ApproxNDCGLoss(Flavor(k=k), method="fast", **options), scores, labels, mask)
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


def test_dense_has_a_second_derivative_and_fast_says_so():
    scores, labels, _ = drawn(1, 9, "spread")
    scores.requires_grad_()
    assert torch.autograd.gradgradcheck(lambda s: ApproxNDCGLoss(method="dense")(s, labels), (scores,))
    (gradient,) = torch.autograd.grad(ApproxNDCGLoss(method="fast")(scores, labels), scores, create_graph=True)
    with pytest.raises(RuntimeError, match=r"no second derivative.*method='dense'"):
        gradient.square().sum().backward()


# -- the limit -------------------------------------------------------------------------------------------------------


@examples(150)
@given(relaxable_flavors(), st.booleans(), st.data())
def test_cold_limit_is_the_metric(flavor, depth, data):
    if flavor.ideal == "recall" and depth:
        flavor = flavor.replace(recall_depth=2)
    loss = ApproxNDCGLoss(flavor, temperature=1e-3, cut_temperature=1e-3, reduction="none")
    tends_to_the_metric(loss, flavor, data)


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


# -- invariants ------------------------------------------------------------------------------------------------------


# The threshold of the cut-off is constant in the gradient, which is tested above.
KEPT = [kept for kept in loss_invariants.WITHOUT_NOISE if kept is not loss_invariants.the_gradient_is_that_of_the_value]


@both_methods
@pytest.mark.parametrize("flavor", [Flavor(gain="exponential"), Flavor(k=2)], ids=str)
@pytest.mark.parametrize("invariant", KEPT, ids=lambda invariant: invariant.__name__)
def test_what_every_loss_keeps_to(invariant, flavor, method):
    invariant(lambda r: ApproxNDCGLoss(flavor, method=method, reduction=r))


# -- ragged ----------------------------------------------------------------------------------------------------------


def test_no_rows_are_no_lists():
    none = torch.zeros(0, requires_grad=True)
    loss = ApproxNDCGLoss()(none, torch.zeros(0), indexes=torch.zeros(0, dtype=torch.int64))
    loss.backward()
    assert loss == 0


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"indexes": torch.zeros(3, dtype=torch.int64)}, ValueError, r"indexes must have the shape of scores, \(4,\)"),
        ({"indexes": torch.zeros(4)}, TypeError, "indexes must hold integers"),
        ({"mask": torch.ones(4, dtype=torch.bool)}, ValueError, "mask must not be given with indexes"),
        ({"scores": torch.rand(2, 2), "labels": torch.ones(2, 2)}, ValueError, "indexes is for 1-D scores"),
        ({"labels": torch.ones(3)}, ValueError, "labels must have the shape of scores"),
    ],
)
def test_refusals_of_ragged_input(changed, error, words):
    arguments = {"scores": torch.rand(4), "labels": torch.ones(4), "indexes": torch.zeros(4).long()}
    with pytest.raises(error, match=words):
        ApproxNDCGLoss()(**arguments | changed)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"flavor": Flavor(discount=lambda r: 1 / r)}, ValueError, "between integer ranks.*Use one of 'log2'"),
        ({"flavor": Flavor(negative="allow")}, ValueError, "negative must be 'raise'.*got 'allow'.*negative='zero'"),
        ({"flavor": Flavor(gain=(0, -1))}, ValueError, "must be >= 0 in a loss"),
        ({"flavor": Flavor(aggregate="micro")}, ValueError, "aggregate must be 'macro' in a loss.*got 'micro'"),
        ({"temperature": 0}, ValueError, "temperature must be a finite number > 0; got 0"),
        ({"temperature": math.nan}, ValueError, "temperature must be a finite number > 0"),
        ({"temperature": "1"}, TypeError, "temperature must be one number > 0; got '1' of type str"),
        ({"temperature": torch.tensor(0.0)}, ValueError, "temperature must be a finite number > 0; got 0.0"),
        ({"cut_temperature": None}, TypeError, "cut_temperature must be one number > 0; got None"),
        ({"cut_temperature": -1.0}, ValueError, "cut_temperature must be a finite number > 0; got -1.0"),
        ({"reduction": "avg"}, ValueError, "reduction must be one of 'mean', 'sum', 'none'; got 'avg'"),
        ({"method": "slow"}, ValueError, "method must be one of 'auto', 'dense', 'fast'; got 'slow'"),
    ],
)
def test_what_a_loss_does_not_support_is_refused_at_construction(arguments, error, words):
    with pytest.raises(error, match=words):
        ApproxNDCGLoss(**arguments)


# -- golden records --------------------------------------------------------------------------------------------------

DISCOUNTS = {"1/log2(1+r)": "log2", "1/r": "reciprocal", "JK b=2": "jarvelin"}


def case_of(loss_golden, record):
    case = loss_golden["cases"][record["case"]]
    mask = torch.tensor(case["mask"])
    return torch.tensor(case["scores"], dtype=torch.float64), torch.tensor(case["labels"]), mask


def sums_of(loss_golden, record, flavor, temperature, method):
    """The sum over lists of the surrogate, its gradient, and its value by list (an empty list has 0)."""
    scores, labels, mask = case_of(loss_golden, record)
    options = {"method": method, "reduction": "none"}
    # The recorded functions have one temperature for ranks and cut-off.
    loss = ApproxNDCGLoss(flavor, temperature=temperature, cut_temperature=temperature, **options)
    value, gradient = value_and_gradient(loss, scores, labels, mask)
    judged = torch.where(mask, labels, 0).sum(-1) > 0
    return torch.where(judged, 1 - value, 0.0), -gradient


def agree(got, want, tolerance):
    want = torch.as_tensor(want, dtype=torch.float64)
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


def records_of(loss_golden, impl, *functions):
    return [r for r in loss_golden["records"] if r.get("impl", "").startswith(impl) and r["fn"] in functions]


@both_methods
def test_records_of_rax(loss_golden, method):
    seen = wrong = 0
    for record in records_of(loss_golden, "rax", "approx_t12n(ndcg_metric)"):
        p = record["params"]
        gain = {"2^y-1": "exponential", "y": "linear"}[p["gain"]]
        k = p.get("topn")
        flavor = Flavor(gain=gain, discount=DISCOUNTS[p["discount"]], k=k)
        values, gradient = sums_of(loss_golden, record, flavor, p["temperature"], method)
        mask = case_of(loss_golden, record)[2]
        if k is not None and not mask.all():
            # Its cut-off counts padded documents among the first k. A list without padding in the same batch is right.
            for row, full in enumerate(mask.all(-1).tolist()):
                theirs = -record["per_list"][row]
                if full:
                    assert values[row].item() == pytest.approx(theirs, abs=1e-10)
                elif values[row] > 0 and mask[row].sum() > k:
                    assert abs(values[row].item() - theirs) > 1e-3
                    wrong += 1
            continue
        agree(values, [-v for v in record["per_list"]], 1e-10)
        agree(-gradient, record["grad"], 1e-10)
        seen += 1
    assert seen >= 110
    assert wrong >= 3


@both_methods
def test_records_of_tensorflow_ranking(loss_golden, method):
    records = records_of(loss_golden, "tensorflow_ranking", "ApproxNDCGLoss")
    for record in records:
        temperature = record["params"]["temperature"]
        values, gradient = sums_of(loss_golden, record, Flavor(gain="exponential"), temperature, method)
        weights = torch.tensor(record["list_weights"], dtype=torch.float64).reshape(-1)
        assert (values * weights).sum().item() == pytest.approx(-record["value"], abs=4e-6), record["case"]
        agree(-gradient * weights.unsqueeze(-1), record["grad"], 4e-6)
    assert len(records) == 42


@both_methods
def test_records_of_allrank(loss_golden, method):
    records = records_of(loss_golden, "allRank", "approxNDCGLoss")
    for record in records:
        temperature = 1 / record["params"]["alpha"]
        values, gradient = sums_of(loss_golden, record, Flavor(gain="exponential"), temperature, method)
        # Its mean counts the lists without a relevant document, with 0.
        assert values.mean().item() == pytest.approx(-record["value"], abs=2e-6), record["case"]
        agree(-gradient / len(values), record["grad"], 2e-6)
    assert len(records) == 42


@both_methods
def test_records_of_an_independent_derivation(loss_golden, method):
    records = records_of(loss_golden, "surrogates_ref", "approx_ndcg logistic")
    for record in records:
        p = record["params"]
        values, gradient = sums_of(loss_golden, record, Flavor(gain="exponential", k=p["k"]), p["T"], method)
        agree(values, record["per_list"], 1e-10)
        agree(gradient, record["grad"], 1e-10)
    assert len(records) >= 56
