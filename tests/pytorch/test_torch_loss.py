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
from ndcg_ml.torch._inputs import read_lists

# From rax 0.4.0 in float64, approx_t12n(ndcg_metric): list, temperature, cut-off, gain, discount, surrogate, and the
# gradient of its negative. Rounded to 11 decimals. Cut and padded at once rax is wrong, so no list here is padded.
RECORDS = """
basic5 0.1 - exp log2 .68311848429 -.00051599174 -.01130190456 .00031593066 -.00005986896 .0115618346
basic5 1.0 - exp log2 .65105635597 -.0182851249 -.0066069756 .02037507455 .00459542022 -.00007839426
basic5 10.0 - exp log2 .64605841327 -.00410084261 -.00031171151 .00289493818 .00175578547 -.00023816953
basic5 0.1 2 exp log2 .32186394546 .00054937545 -.02946906396 .00000051287 -.00000369363 .02892286927
basic5 1.0 2 exp log2 .34454487589 -.04201901418 -.01353840335 .04247217214 .01661524532 -.00352999993
basic5 10.0 2 exp log2 .39242178385 -.00320150015 -.00023465432 .00224805801 .00137073714 -.00018264069
basic5 1.0 - lin reciprocal .58453704046 -.00645982881 -.01400836554 .03240215927 -.00965181258 -.00228215233
basic5 1.0 - lin jarvelin .80144081277 -.01024370167 -.04516149768 .03514791113 .03798876872 -.0177314805
nopad_row1 0.1 - exp log2 .47780835754 -.00061737766 .00182957513 -.00121373526 .00000153778
nopad_row1 1.0 - exp log2 .50883514231 .00134792653 .01986240396 -.02970966732 .00849933683
nopad_row1 10.0 - exp log2 .56863980645 .0014217717 .00309743974 -.00757968275 .00306047131
nopad_row1 0.1 2 exp log2 .08205896934 -.00075401332 .00075030682 .00000183755 .00000186896
nopad_row1 1.0 2 exp log2 .18379100628 .00405448473 .03352470888 -.05168757944 .01410838582
nopad_row1 10.0 2 exp log2 .28326195404 .00087671236 .0018980949 -.0046502335 .00187542624
nopad_row1 1.0 - lin reciprocal .37867856948 -.01638976713 .02946655366 -.02813721854 .01506043201
nopad_row1 1.0 - lin jarvelin .63441375819 -.03950882867 .04762802223 -.03419725671 .02607806315
ties6 0.1 - exp log2 .57703887599 .26460282588 -.28431704026 -.02551491241 .03224054037 .01298872277 -.00000013635
ties6 1.0 - exp log2 .52580275839 .01424297096 -.03115025506 .00134997317 .01495896743 .01042263601 -.00982429251
ties6 10.0 - exp log2 .55382997675 .0019699433 -.00152924746 .00053149156 .00197443523 .00149345401 -.00444007663
ties6 0.1 2 exp log2 .27036022274 .2902049156 -.31335595461 .00770440514 .00772709786 .00771953362 .0000000024
ties6 1.0 2 exp log2 .18154486104 .02716979173 -.06212074296 -.00223526353 .02794375418 .01788408161 -.00864162103
ties6 10.0 2 exp log2 .30225735128 .00145386412 -.00110331998 .00039827798 .00145720539 .00110422958 -.00331025709
ties6 0.1 5 exp log2 .32675039007 .26460507865 -.28431478749 -.02562425985 .03232521389 .01300872264 .00000003215
ties6 1.0 5 exp log2 .28163747363 .02622172804 -.04347081609 .00043234501 .02856149858 .01918511405 -.03092986958
ties6 10.0 5 exp log2 .27699244231 .00132976096 -.00100918898 .00036426952 .00133281697 .00100996782 -.00302762629
ties6 1.0 - lin reciprocal .42586247471 .02719579361 -.05368455893 -.00845022779 .02787909789 .00971443505 -.00265453984
ties6 1.0 - lin jarvelin .61874121523 .03410313426 -.07615601779 -.00714870468 .03450785656 .01367957594 .0010141557
big5 0.1 - exp log2 .52514265293 0 0 0 0 0
big5 1.0 - exp log2 .52514265293 0 0 0 0 0
big5 10.0 - exp log2 .52516464895 .00000663817 .00000025966 .00000603681 -.00001222873 -.00000070591
big5 0.1 2 exp log2 .09700345837 0 0 0 0 0
big5 1.0 2 exp log2 .12139714637 0 0 0 0 0
big5 10.0 2 exp log2 .26518428277 .00000434119 .00000028389 .00000395112 -.00000796129 -.00000061491
big5 1.0 - lin reciprocal .44935064935 0 0 0 0 0
big5 1.0 - lin jarvelin .66808147073 0 0 0 0 0
grade30 0.1 - exp log2 .62282453377 -.09983757996 .08307735098 .00453493534 .01222529364
grade30 1.0 - exp log2 .56608404138 -.09623260796 .03321655752 .0310843006 .03193174984
grade30 10.0 - exp log2 .55456704518 -.00952890243 .00317756258 .00317504811 .00317629175
grade30 0.1 2 exp log2 .61763751278 -.12686408646 .10556578152 .00576357306 .01553473187
grade30 1.0 2 exp log2 .30335657635 -.1512819314 .0522180228 .04886568277 .05019822583
grade30 10.0 2 exp log2 .27749136936 -.00580718778 .00193649845 .00193496536 .00193572397
grade30 1.0 - lin reciprocal .47719277248 -.08537357823 .04607885582 .00306774343 .03622697897
grade30 1.0 - lin jarvelin .75115594557 -.16008785437 .0761883776 .01374065204 .07015882473
"""
LISTS = {
    "basic5": ([0.3, 1.2, -0.4, 2.0, 0.9], [3, 2, 0, 1, 2]),
    "nopad_row1": ([1.0, 0.4, -0.2, 2.2], [1, 0, 3, 0]),
    "ties6": ([1.0, 1.0, 0.5, 0.5, 0.5, -1.0], [0, 3, 2, 0, 1, 4]),
    "grade30": ([0.4, 0.1, -0.2, 0.9], [30, 0, 15, 1]),
    "big5": ([120.0, -80.0, 0.0, 60.0, -150.0], [0, 3, 1, 2, 4]),
}


@pytest.mark.parametrize("record", RECORDS.strip().splitlines())
def test_values_and_gradients_of_rax(record):
    name, temperature, k, gain, discount, value, *gradient = record.split()
    flavor = Flavor(
        gain={"exp": "exponential", "lin": "linear"}[gain], discount=discount, k=None if k == "-" else int(k)
    )
    scores, labels = doubles(LISTS[name][0]), torch.tensor([LISTS[name][1]])
    cut = float(temperature)  # rax has one temperature for both
    loss = ApproxNDCGLoss(flavor, temperature=float(temperature), cut_temperature=cut)(scores, labels)
    loss.backward()
    assert 1 - loss.item() == pytest.approx(float(value), abs=1e-10)
    assert scores.grad[0].tolist() == pytest.approx([float(entry) for entry in gradient], abs=1e-10)


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


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf, 1e30, -1e30])
@pytest.mark.parametrize(
    "flavor",
    [Flavor(gain="exponential"), Flavor(k=2), Flavor(ideal="local", k=1), Flavor(ideal="recall", recall_depth=2)],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_padding_changes_nothing(poison, flavor):
    mask = torch.tensor([[False, True, True, False, True]])
    bare, labels = doubles([0.4, 0.1, -0.3]), torch.tensor([[0.0, 1.0, 2.0]])
    padded = torch.full((1, 5), poison, dtype=torch.float64).masked_scatter(mask, bare.detach()).requires_grad_()
    grades = torch.full((1, 5), poison).masked_scatter(mask, labels)
    loss = ApproxNDCGLoss(flavor)
    with torch.autograd.detect_anomaly():
        want, got = loss(bare, labels), loss(padded, grades, mask)
        (want + got).backward()
    assert got.item() == pytest.approx(want.item(), abs=1e-15)
    assert padded.grad[mask].tolist() == pytest.approx(bare.grad[0].tolist(), abs=1e-15)
    assert padded.grad[~mask].tolist() == [0.0, 0.0]


LOSSES = [Flavor(), Flavor(k=1), Flavor(gain="exponential", ideal="local"), Flavor(empty="raise"), Flavor(empty=1.0)]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("flavor", LOSSES, ids=str)
@pytest.mark.parametrize("kind", ["nothing relevant", "all masked", "no documents", "no lists"])
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_empty_lists_have_no_loss_and_stay_in_the_graph(kind, flavor, reduction):
    shape = {"no documents": (2, 0), "no lists": (0, 3)}.get(kind, (2, 3))
    scores = torch.full(shape, 0.3, requires_grad=True)
    labels = torch.ones(shape) if kind == "all masked" else torch.zeros(shape)
    mask = torch.full(shape, kind != "all masked")
    with torch.autograd.detect_anomaly():
        loss = ApproxNDCGLoss(flavor, reduction=reduction)(scores, labels, mask)
        loss.sum().backward()
    assert loss.sum().item() == 0.0
    assert torch.equal(scores.grad, torch.zeros(shape))


@pytest.mark.parametrize("flavor", LOSSES, ids=str)
def test_a_single_document_is_perfect(flavor):
    scores = doubles([0.7])
    loss = ApproxNDCGLoss(flavor)(scores, torch.tensor([[2]]))
    loss.backward()
    assert loss.item() == pytest.approx(0.0, abs=1e-12)
    assert scores.grad.tolist() == [[0.0]]


def test_tied_scores_have_a_gradient():
    scores = doubles([0.0, 0.0, 0.0])
    ApproxNDCGLoss(Flavor())(scores, torch.tensor([[0, 2, 1]])).backward()
    assert scores.grad[0, 1] < scores.grad[0, 2] < scores.grad[0, 0]


def test_mean_is_over_the_lists_that_are_not_empty():
    scores = doubles([0.1, 0.9], [0.3, 0.2], [0.5, 0.4])
    labels = torch.tensor([[1, 0], [0, 0], [0, 1]])
    each = ApproxNDCGLoss(Flavor(), reduction="none")(scores, labels)
    assert each[1] == 0.0
    assert ApproxNDCGLoss(Flavor(), reduction="sum")(scores, labels).item() == pytest.approx(each.sum().item())
    assert ApproxNDCGLoss(Flavor())(scores, labels).item() == pytest.approx(each.sum().item() / 2)


def test_documents_may_stand_in_any_order():
    generator = torch.Generator().manual_seed(0)
    scores, labels = torch.rand(1, 6, generator=generator).double(), torch.tensor([[0, 1, 2, 0, 3, 1]])
    order = torch.randperm(6, generator=generator)
    loss = ApproxNDCGLoss(Flavor(k=3))
    assert loss(scores[:, order], labels[:, order]).item() == pytest.approx(loss(scores, labels).item(), abs=1e-14)


# -- precision and devices -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    scores = torch.tensor([[0.3, 1.2, -0.4, 2.0]]).to(dtype).requires_grad_()
    wide = scores.detach().float().requires_grad_()
    labels = torch.tensor([[30, 2, 0, 1]])
    loss = ApproxNDCGLoss(Flavor(gain="exponential"))
    got, want = loss(scores, labels), loss(wide, labels)
    got.backward()
    want.backward()
    assert got.dtype == torch.float32
    assert got == want
    assert torch.equal(scores.grad, wide.grad.to(dtype))


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


def test_scores_far_apart_have_a_finite_gradient():
    scores = torch.tensor([[3e38, -3e38, 0.0]], requires_grad=True)
    ApproxNDCGLoss(Flavor(), temperature=0.01)(scores, torch.tensor([[0, 1, 2]])).backward()
    assert scores.grad.isfinite().all()


def test_a_list_with_a_score_that_is_not_finite_has_a_loss_that_says_so():
    scores = torch.tensor([[0.1, math.nan], [0.3, -math.inf], [0.2, 0.1]], requires_grad=True)
    loss = ApproxNDCGLoss(Flavor(), reduction="none")(scores, torch.ones(3, 2))
    assert loss.isnan().tolist() == [True, True, False]


@pytest.mark.parametrize("method", ["dense", "fast"])
@pytest.mark.parametrize("discount", ["none", "log2", "jarvelin"])
@pytest.mark.parametrize("k", [None, 2, 10])
def test_a_loss_stays_in_the_graph_whatever_its_discount(discount, k, method):
    scores = torch.randn(2, 5, requires_grad=True)
    loss = ApproxNDCGLoss(Flavor(discount=discount, k=k), method=method)(scores, torch.tensor([[0, 1, 2, 0, 1]] * 2))
    loss.backward()
    assert scores.grad.any() == (discount != "none" or k == 2)


def test_it_never_waits_for_an_accelerator():
    # A meta tensor has no data, so that any look at them raises.
    scores = torch.rand(3, 5, device="meta", requires_grad=True)
    for flavor in (Flavor(k=2), Flavor(ideal="local"), Flavor(ideal="max", max_grade=3, gain=(0, 1, 2, 5))):
        ApproxNDCGLoss(flavor)(scores, torch.ones(3, 5, device="meta")).backward()
        assert scores.grad.shape == (3, 5)


def test_it_compiles_without_a_graph_break():
    torch._dynamo.reset()
    loss = ApproxNDCGLoss(Flavor(gain="exponential", k=2))
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    scores, labels = doubles([0.1, 0.9, 0.4], [0.3, 0.2, 0.7]), torch.tensor([[1, 0, 2], [0, 0, -1]])
    labels[1, 2] = 0
    compiled(scores, labels).backward()
    gradient, scores.grad = scores.grad, None
    loss(scores, labels).backward()
    torch.testing.assert_close(gradient, scores.grad)
    labels[1, 2] = -1
    assert compiled(scores, labels).isnan()


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


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (
            (torch.rand(3), torch.ones(3)),
            ValueError,
            r"shape \(n_lists, n_documents\).*got shape \(3,\).*scores\[None\]",
        ),
        (
            (torch.ones(1, 3, dtype=torch.int64), torch.ones(1, 3)),
            TypeError,
            r"scores must be floats.*\(scores, labels\)",
        ),
        (([[1.0]], torch.ones(1, 1)), TypeError, "scores must be a torch.Tensor"),
        ((torch.rand(1, 3), torch.ones(1, 2)), ValueError, "labels must have the shape of scores"),
        ((torch.rand(1, 3), torch.ones(1, 3), torch.ones(1, 3)), TypeError, "mask must be a tensor of bool"),
        ((torch.rand(1, 3), -torch.ones(1, 3)), ValueError, "labels must be >= 0 under negative='raise'; got 3"),
        ((torch.rand(1, 3), torch.ones(1, 3) * math.nan), ValueError, "labels must not hold NaN"),
    ],
)
def test_refusals_say_what_to_do(arguments, error, words):
    with pytest.raises(error, match=words):
        ApproxNDCGLoss(Flavor())(*arguments)


def test_repr_says_what_it_is():
    assert repr(ApproxNDCGLoss("lightgbm@5", temperature=0.5)) == (
        "ApproxNDCGLoss('lightgbm@5', temperature=0.5, step='logistic', method='auto', cut_temperature=1.0, "
        "reduction='mean')"
    )


def test_lists_without_a_slot_get_one_that_no_document_has():
    scores, labels, listed = read_lists(torch.zeros(2, 0), torch.zeros(2, 0), None)
    assert scores.shape == labels.shape == listed.shape == (2, 1)
    assert not listed.any()
