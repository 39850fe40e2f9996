"""Every loss takes flat input, and gives what it gives on the same lists padded."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import loss_invariants
import torch
from loss_invariants import seeded
from torch_batches import Largest

from ndcg_ml import Flavor
from ndcg_ml.torch import (
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    Stochastic,
)

SIZES = (3, 1, 5, 4)


LOSSES = {
    "approx": lambda: ApproxNDCGLoss("lightgbm@3", reduction="none"),
    "neural": lambda: NeuralNDCGLoss("lightgbm@3", reduction="none"),
    "lambda": lambda: LambdaNDCGLoss("lightgbm@3", scheme="lambdarank", reduction="none"),
    "plackett_luce": lambda: PlackettLuceNDCGLoss("lightgbm@3", samples=2, generator=seeded(), reduction="none"),
    "softmax": lambda: SoftmaxLoss("lightgbm", reduction="none"),
    "list_mle": lambda: ListMLELoss("lightgbm", tie_order="input", reduction="none"),
    # A flat list is drawn for row by row, a padded one slot by slot: here by too little to tell.
    "stochastic": lambda: Stochastic(
        ApproxNDCGLoss("lightgbm@3", reduction="none"), samples=2, scale=1e-14, generator=seeded()
    ),
}
CALM = [name for name in LOSSES if name not in ("plackett_luce", "stochastic")]


@pytest.mark.parametrize("name", LOSSES)
def test_flat_lists_are_the_padded_ones(name):
    random = torch.Generator().manual_seed(1)
    rows = sum(SIZES)
    flat = torch.randn(rows, dtype=torch.float64, generator=random)
    labels = torch.randint(0, 4, (rows,), generator=random)
    qid = torch.repeat_interleave(torch.tensor([7, -2, 30, 4]), torch.tensor(SIZES))
    padded = torch.full((len(SIZES), 5), torch.nan, dtype=torch.float64)
    grades, mask = torch.full((len(SIZES), 5), 9), torch.zeros(len(SIZES), 5, dtype=torch.bool)
    for row, (start, size) in enumerate(zip((0, 3, 4, 9), SIZES, strict=True)):
        padded[row, :size], grades[row, :size] = flat[start : start + size], labels[start : start + size]
        mask[row, :size] = True
    expected = LOSSES[name]()(padded, grades, mask)

    scores = flat.clone().requires_grad_()
    by_ids = LOSSES[name]()(scores, labels, indexes=qid)
    assert torch.allclose(by_ids, expected, atol=1e-12)
    by_ids.sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert scores.grad.abs().max() > 0


@pytest.mark.parametrize("name", LOSSES)
def test_flat_lists_without_ids_are_refused(name):
    with pytest.raises(ValueError, match="indexes"):
        LOSSES[name]()(torch.zeros(3), torch.ones(3))


# -- lists of very different lengths ---------------------------------------------------------------------------------

UNEVEN = (1, 40, 3, 1, 2, 5, 4, 1, 33, 200, 1)


def uneven(shuffled):
    """Rows, labels and ids of lists of these lengths, and the rows of each list in the order of their first one."""
    random = torch.Generator().manual_seed(2)
    lengths = torch.tensor(UNEVEN)
    ids = torch.randperm(len(UNEVEN), generator=random).repeat_interleave(lengths)
    order = torch.randperm(len(ids), generator=random) if shuffled else torch.arange(len(ids))
    ids = ids[order]
    scores = torch.randn(len(ids), dtype=torch.float64, generator=random)
    labels = torch.randint(0, 4, (len(ids),), generator=random)
    return scores, labels, ids, [(ids == number).nonzero()[:, 0] for number in dict.fromkeys(ids.tolist())]


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", CALM)
def test_lists_of_any_length_are_as_each_by_itself(name, shuffled):
    scores, labels, ids, lists = uneven(shuffled)
    alone, together = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    expected = torch.cat([LOSSES[name]()(alone[None, rows], labels[None, rows]) for rows in lists])
    weights = torch.arange(1.0, len(lists) + 1, dtype=torch.float64)  # a list in the place of another one shows
    (weights * expected).sum().backward()
    got = LOSSES[name]()(together, labels, indexes=ids)
    (weights * got).sum().backward()
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(together.grad, alone.grad, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_mean_is_over_the_lists_of_all_lengths(reduction):
    scores, labels, ids, lists = uneven(True)
    labels[ids == ids[0]] = 0
    each = SoftmaxLoss(reduction="none")(scores, labels, indexes=ids)
    full = sum(bool(labels[rows].any()) for rows in lists)
    assert 0 < full < len(lists)
    got = SoftmaxLoss(reduction=reduction)(scores, labels, indexes=ids)
    torch.testing.assert_close(got, each.sum() / (full if reduction == "mean" else 1))


def test_refused_labels_are_counted_over_lists_of_all_lengths():
    scores, labels, ids, lists = uneven(True)
    for rows in (min(lists, key=len), max(lists, key=len)):
        labels[rows[0]] = -1
    with pytest.raises(ValueError, match="labels must be >= 0 under negative='raise'; got 2"):
        SoftmaxLoss()(scores, labels, indexes=ids)


@pytest.mark.parametrize("name", LOSSES)
def test_one_long_list_does_not_pad_the_short_ones(name):
    ids = torch.arange(10_500).clamp(max=500)
    scores, labels = torch.randn(10_500, requires_grad=True), torch.arange(10_500) % 4
    with Largest() as largest:
        LOSSES[name]()(scores, labels, indexes=ids).sum().backward()
    assert scores.grad.isfinite().all()
    assert 10_000 <= largest.numel <= 20 * 10_500  # padded, 501 x 10 000


# -- draws -----------------------------------------------------------------------------------------------------------

DRAWN = {
    "plackett_luce": lambda generator: PlackettLuceNDCGLoss(samples=3, generator=generator, reduction="none"),
    "xendcg": lambda generator: SoftmaxLoss(target="xendcg", generator=generator, reduction="none"),
    "list_mle": lambda generator: ListMLELoss(generator=generator, reduction="none"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_groups_of_lists_are_drawn_for_shortest_first(name):
    scores, labels = torch.randn(15, dtype=torch.float64), torch.arange(15) % 3
    ids = torch.arange(4).repeat_interleave(torch.tensor([1, 12, 1, 1]))
    got = DRAWN[name](seeded())(scores, labels, indexes=ids)
    assert torch.equal(got, DRAWN[name](seeded())(scores, labels, indexes=ids))
    loss = DRAWN[name](seeded())
    short = loss(scores[[0, 13, 14], None], labels[[0, 13, 14], None], torch.ones((3, 1), dtype=torch.bool))
    torch.testing.assert_close(got, torch.cat([short[:1], loss(scores[None, 1:13], labels[None, 1:13]), short[1:]]))


def test_stochastic_refuses_what_is_no_score_in_flat_lists():
    with pytest.raises(TypeError, match="scores must be floats"):
        Stochastic(ApproxNDCGLoss())(torch.arange(4), torch.ones(4), indexes=torch.zeros(4).long())


def test_a_flavor_that_needs_the_order_of_rows_has_it_in_groups():
    # Tied documents have a local ideal in the order in which they stand.
    scores, labels, ids, lists = uneven(True)
    scores = torch.zeros_like(scores)
    loss = ApproxNDCGLoss(Flavor(ideal="local", ties="first", k=2), reduction="none")
    got, gradient = loss_invariants.value_and_gradient(lambda s, y, _: loss(s, y, indexes=ids), scores, labels)
    want = torch.cat([loss(scores[None, rows], labels[None, rows]) for rows in lists])
    torch.testing.assert_close(got, want)
    assert gradient.isfinite().all()
