"""SoftmaxLoss and ListMLELoss: recorded values of rax, TF-Ranking and allRank, plain oracles, and padding."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math

import loss_invariants
import torch
from loss_invariants import doubles, numbers, seeded, value_and_gradient

from ndcg_ml import Flavor
from ndcg_ml.torch.losses.listwise import ListMLELoss, SoftmaxLoss

pytestmark = pytest.mark.usefixtures("one_thread")


CALM = {
    "gain": lambda reduction: SoftmaxLoss(Flavor(gain="exponential"), reduction=reduction),
    "listnet": lambda reduction: SoftmaxLoss(Flavor(ideal="local"), target="listnet", reduction=reduction),
    "in order": lambda reduction: ListMLELoss(Flavor(), tie_order="input", reduction=reduction),
    "top 2": lambda reduction: ListMLELoss(Flavor(k=2), tie_order="input", reduction=reduction),
}
RANDOM = {
    "xendcg": lambda reduction: SoftmaxLoss(
        Flavor(gain="exponential"), target="xendcg", generator=seeded(), reduction=reduction
    ),
    "shuffled": lambda reduction: ListMLELoss(Flavor(), generator=seeded(), reduction=reduction),
}


@pytest.mark.parametrize("holds", loss_invariants.WITHOUT_NOISE, ids=lambda holds: holds.__name__)
@pytest.mark.parametrize("maker", CALM)
def test_invariants(maker, holds):
    if holds is loss_invariants.documents_may_stand_in_any_order and maker in ("in order", "top 2"):
        # Equal gains are taken as they stand, so the labels must differ.
        order = torch.tensor([2, 0, 3, 1])
        scores, labels = doubles([0.4, 0.1, 0.1, 0.9]), torch.tensor([[3, 0, 1, 2]])
        want, gradient = value_and_gradient(CALM[maker]("mean"), scores, labels)
        got, permuted = value_and_gradient(CALM[maker]("mean"), scores[:, order], labels[:, order])
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(permuted, gradient[:, order])
    else:
        holds(CALM[maker])


# A generator has a device, and meta is not one: that one is below.
SEEDED = [holds for holds in loss_invariants.ANY if holds is not loss_invariants.it_never_waits_for_an_accelerator]


@pytest.mark.parametrize("holds", SEEDED, ids=lambda holds: holds.__name__)
@pytest.mark.parametrize("maker", RANDOM)
def test_invariants_of_losses_that_draw(maker, holds):
    holds(RANDOM[maker])


@pytest.mark.parametrize(
    "make", [lambda _: SoftmaxLoss(target="xendcg"), lambda _: ListMLELoss()], ids=["xendcg", "mle"]
)
def test_drawing_never_waits_for_an_accelerator(make):
    loss_invariants.it_never_waits_for_an_accelerator(make)


# -- other implementations -------------------------------------------------------------------------------------------


def read_golden(loss_golden):
    for record in loss_golden["records"]:
        case = loss_golden["cases"][record["case"]]
        scores, mask = torch.tensor(case["scores"], dtype=torch.float64), torch.tensor(case["mask"])
        yield record["impl"].split()[0], record["fn"].split(" (")[0], scores, torch.tensor(case["labels"]), mask, record


def test_recorded_softmax_losses(loss_golden):
    seen = {"rax": 0, "tensorflow_ranking": 0, "surrogates_ref": 0}
    for impl, name, scores, labels, mask, record in read_golden(loss_golden):
        if name not in ("softmax_loss", "SoftmaxLoss"):
            continue
        total = torch.where(mask, labels, 0).sum(-1).double()  # their targets do not sum to 1
        leaf = scores.clone().requires_grad_()
        each = SoftmaxLoss(Flavor(), reduction="none")(leaf, labels, mask) * total
        each.sum().backward()
        tolerance = {"rtol": 2e-6, "atol": 2e-6} if impl == "tensorflow_ranking" else {"rtol": 1e-12, "atol": 1e-10}
        slope = torch.tensor(numbers(record["grad"]), dtype=torch.float64)
        assert each.sum().item() == pytest.approx(float(record["value"]), rel=tolerance["rtol"], abs=tolerance["atol"])
        torch.testing.assert_close(leaf.grad, slope, **tolerance)
        seen[impl] += 1
    assert seen == {"rax": 14, "tensorflow_ranking": 14, "surrogates_ref": 14}


def test_recorded_listnet_losses(loss_golden):
    seen = 0
    for impl, name, scores, labels, mask, record in read_golden(loss_golden):
        relevant = (torch.where(mask, labels, 0).sum(-1) > 0).all()
        if name != "listnet" or impl != "surrogates_ref" or not relevant:  # empty lists have a loss there
            continue
        loss = SoftmaxLoss(Flavor(), target="listnet", reduction="none")
        value, gradient = value_and_gradient(loss, scores, labels, mask)
        torch.testing.assert_close(
            value, torch.tensor(numbers(record["per_list"]), dtype=torch.float64), atol=1e-10, rtol=0
        )
        torch.testing.assert_close(
            gradient, torch.tensor(numbers(record["grad"]), dtype=torch.float64), atol=1e-10, rtol=0
        )
        seen += 1
    assert seen == 11


def one(loss_golden, impl, name, case):
    for found, fn, scores, labels, mask, record in read_golden(loss_golden):
        if (found, fn, record["case"]) == (impl, name, case):
            return scores, labels, mask, record
    raise AssertionError(f"no record of {impl} {name} on {case}")


def test_recorded_listmle_losses(loss_golden):
    seen = {"rax": 0, "tensorflow_ranking": 0, "surrogates_ref": 0}
    for impl, name, scores, labels, mask, record in read_golden(loss_golden):
        relevant = (torch.where(mask, labels, 0).sum(-1) > 0).all()
        if name not in ("listmle_loss", "ListMLELoss", "listmle") or not relevant:
            continue
        if impl == "tensorflow_ranking" and record["case"] not in ("nopad_row2", "single", "big5", "grade30"):
            continue  # it shuffles equal labels, and lets padding in
        value, gradient = value_and_gradient(
            ListMLELoss(Flavor(), tie_order="input", reduction="sum"), scores, labels, mask
        )
        tolerance = {"rtol": 2e-6, "atol": 2e-6} if impl == "tensorflow_ranking" else {"rtol": 1e-12, "atol": 1e-10}
        assert value.item() == pytest.approx(float(record["value"]), rel=tolerance["rtol"], abs=tolerance["atol"])
        if impl != "rax" or record["case"] not in ("ties6", "alltied4"):  # see below
            torch.testing.assert_close(
                gradient, torch.tensor(numbers(record["grad"]), dtype=torch.float64), **tolerance
            )
        seen[impl] += 1
    assert seen == {"rax": 11, "tensorflow_ranking": 4, "surrogates_ref": 11}


def listmle(scores, order, k=None):
    return torch.stack([scores[order[i:]].logsumexp(0) - scores[order[i]] for i in range(len(order))][:k]).sum()


def test_tied_scores_share_the_gradient_of_listmle(loss_golden):
    # rax 0.4.0: the right value with another gradient where the largest scores are tied.
    scores, labels, mask, record = one(loss_golden, "rax", "listmle_loss", "ties6")
    leaf = scores[0].clone().requires_grad_()
    listmle(leaf, [5, 1, 2, 4, 0, 3]).backward()
    _, gradient = value_and_gradient(ListMLELoss(tie_order="input"), scores, labels, mask)
    torch.testing.assert_close(gradient[0], leaf.grad, rtol=0, atol=1e-13)
    assert (gradient - torch.tensor(record["grad"])).abs().max() > 0.3


def test_padding_is_not_in_the_likelihood(loss_golden):
    # TensorFlow Ranking 0.5.5: a list of two documents, padded to six, has a loss of 3.49 instead of 0.31.
    scores, labels, mask, record = one(loss_golden, "tensorflow_ranking", "ListMLELoss", "pad3x6")
    value = ListMLELoss(reduction="none")(scores, labels, mask)[2].item()
    assert value == pytest.approx(listmle(scores[2], [0, 1]).item(), abs=1e-13)
    assert record["per_list"][2] > value + 3


@pytest.mark.parametrize(("padding", "theirs"), [(0, 0.2633), (1, 0.9759), (2, 1.4671), (4, 2.1627)])
def test_padding_is_no_document_of_score_zero(padding, theirs):
    # sentence-transformers before its pull request 3827: a padded logit is 1e-16, and exp of that is 1.
    real = torch.tensor([1.5, 0.3], dtype=torch.float64)
    padded = torch.cat([real, torch.full((padding,), 1e-16, dtype=torch.float64)])
    left = padded.exp().flip(0).cumsum(0).flip(0)
    assert (left.log() - padded)[:2].sum().item() == pytest.approx(theirs, abs=5e-5)
    labels = torch.cat([torch.tensor([[2, 1]]), torch.zeros(1, padding, dtype=torch.int64)], 1)
    mask = torch.arange(2 + padding)[None] < 2
    for loss in (ListMLELoss(Flavor()), ListMLELoss(Flavor(), tie_order="input")):
        value, gradient = value_and_gradient(loss, padded[None], labels, mask)
        assert value.item() == pytest.approx(math.log1p(math.exp(-1.2)), abs=1e-14)
        assert gradient[0, :2].tolist() == pytest.approx([-0.231475, 0.231475], abs=1e-6)
        assert not gradient[0, 2:].any()


# -- the definitions -------------------------------------------------------------------------------------------------


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


def test_documents_that_do_not_count_are_not_in_the_list():
    nan = math.nan
    scores, grades = doubles([0.3, 1.2, -0.4, 2.0]), torch.tensor([[3, nan, 0, -1]])
    some, kept = doubles([0.3, -0.4]), torch.tensor([[3, 0]])
    flavor = Flavor(unjudged="condense", negative="drop")
    for make in (SoftmaxLoss, ListMLELoss, lambda flavor: SoftmaxLoss(flavor, target="listnet")):
        assert make(flavor)(scores, grades).item() == pytest.approx(make(flavor)(some, kept).item(), abs=1e-14)


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


def test_listmle_of_the_first_k():
    scores, grades = doubles([0.3, 1.2, -0.4, 2.0]), torch.tensor([[3, 2, 0, 1]])
    for k in (None, 1, 3, 9):
        want = listmle(scores[0], [0, 1, 3, 2], k).item()
        assert ListMLELoss(Flavor(k=k))(scores, grades).item() == pytest.approx(want, abs=1e-13)
        assert ListMLELoss(Flavor(k=k, short_lists="zero"))(scores, grades).item() == pytest.approx(want, abs=1e-13)


def test_padding_is_not_among_the_first_k():
    mask = torch.tensor([[True, False, True, True]])
    scores, grades = doubles([0.3, 9.0, -0.4, 2.0]), torch.tensor([[3, 9, 0, 0]])
    value = ListMLELoss(Flavor(k=2), tie_order="input")(scores, grades, mask).item()
    assert value == pytest.approx(listmle(scores[0], [0, 2, 3], 2).item(), abs=1e-13)


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


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: SoftmaxLoss(Flavor(k=10)),
            ValueError,
            r"no ranks to cut off; got 10. Pass flavor.replace\(k=None\)",
        ),
        (
            lambda: SoftmaxLoss(target="label"),
            ValueError,
            "target must be one of 'gain', 'listnet', 'xendcg'; got 'label'",
        ),
        (lambda: ListMLELoss(tie_order="best"), ValueError, "tie_order must be one of 'random', 'input'; got 'best'"),
        (lambda: SoftmaxLoss(generator=3), TypeError, "generator must be a torch.Generator or None; got 3 of type int"),
        (lambda: ListMLELoss(generator=3), TypeError, "generator must be a torch.Generator or None; got 3 of type int"),
    ],
)
def test_what_a_loss_does_not_support_is_refused_at_construction(make, error, words):
    with pytest.raises(error, match=words):
        make()


def only_from_rank_5(rank):
    return float(rank >= 5)


@pytest.mark.parametrize("loss", [SoftmaxLoss, ListMLELoss])
def test_a_list_whose_ranks_are_all_worth_nothing_is_empty(loss):
    scores, labels = torch.tensor([[0.1, 0.5, 0.3]], requires_grad=True), torch.tensor([[1.0, 0.0, 2.0]])
    value = loss(Flavor(discount=only_from_rank_5))(scores, labels)
    value.backward()
    assert value == 0.0
    assert not scores.grad.any()
