"""The losses against recorded values and gradients of rax, TensorFlow Ranking, allRank and independent derivations.

Where a library is left out for some lists, its value or gradient is wrong there.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math
from collections import Counter

import torch
from loss_invariants import numbers, value_and_gradient

import ndcg_ml.torch.losses.stochastic as stochastic
from ndcg_ml import Flavor
from ndcg_ml.torch import ApproxNDCGLoss, LambdaNDCGLoss, ListMLELoss, NeuralNDCGLoss, SoftmaxLoss, Stochastic

pytestmark = pytest.mark.usefixtures("one_thread")
EXPONENTIAL = Flavor(gain="exponential")
RAX, TENSORFLOW, ALLRANK, REFERENCE = "rax", "tensorflow_ranking", "allRank", "surrogates_ref"
TOLERANCE = {RAX: 1e-10, TENSORFLOW: 2e-6, ALLRANK: 2e-6, REFERENCE: 1e-10}


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


# -- ApproxNDCGLoss --------------------------------------------------------------------------------------------------

DISCOUNTS = {"1/log2(1+r)": "log2", "1/r": "reciprocal", "JK b=2": "jarvelin"}
both_methods = pytest.mark.parametrize("method", ["dense", "fast"])


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
            agree(
                values[whole], [each for each, right in zip(record["per_list"], whole, strict=True) if right], 1e-10, -1
            )
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


# -- NeuralNDCGLoss --------------------------------------------------------------------------------------------------


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


# -- LambdaNDCGLoss --------------------------------------------------------------------------------------------------

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


# -- SoftmaxLoss and ListMLELoss -------------------------------------------------------------------------------------


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


# -- Stochastic ------------------------------------------------------------------------------------------------------


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
