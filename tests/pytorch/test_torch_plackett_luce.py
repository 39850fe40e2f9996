"""PlackettLuceNDCGLoss against all permutations, and Stochastic against single calls."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import itertools
import math

import torch
from loss_invariants import doubles, seeded, value_and_gradient

from ndcg_ml import Flavor
from ndcg_ml.torch import ApproxNDCGLoss, PlackettLuceNDCGLoss, Stochastic, ndcg
from ndcg_ml.torch.losses.stochastic import gumbel

pytestmark = pytest.mark.usefixtures("one_thread")


def plackett_luce():
    return PlackettLuceNDCGLoss(Flavor(), generator=seeded())


# -- all permutations ------------------------------------------------------------------------------------------------


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
    for make in (plackett_luce, lambda: Stochastic(ApproxNDCGLoss(Flavor(k=2)), generator=seeded())):
        one, other = make(), make()
        first = one(scores, labels)
        torch.manual_seed(1)
        assert other(scores, labels) == first
        assert one(scores, labels) != first


def test_scores_far_apart_keep_the_gradient_finite_in_long_lists():
    scores = torch.linspace(-500, 500, 1001)[None].requires_grad_()
    PlackettLuceNDCGLoss(Flavor(), samples=2, generator=seeded())(scores, torch.arange(1001)[None] % 5).backward()
    assert scores.grad.isfinite().all()


# -- Stochastic ------------------------------------------------------------------------------------------------------


def test_a_single_draw_without_scale_to_speak_of_is_the_loss():
    scores, labels = doubles([0.4, 0.1, -0.3, 0.9], [0.1, 0.2, 0.3, 0.4]), torch.tensor([[0, 1, 2, 1], [3, 0, 0, 1]])
    mask = torch.tensor([[True, True, True, True], [True, True, False, True]])  # sample- and list-major must not mix
    loss = ApproxNDCGLoss(Flavor(k=2), reduction="none")
    want, gradient = value_and_gradient(loss, scores, labels, mask)
    noisy = value_and_gradient(Stochastic(loss, scale=1e-14), scores, labels, mask)
    torch.testing.assert_close(noisy, (want, gradient), rtol=0, atol=1e-12)


def test_the_law_of_the_noise(monkeypatch):
    drawn = gumbel(torch.zeros(1, 10), 20_000, seeded())
    assert drawn.shape == (20_000, 1, 10)
    deviation = math.pi / math.sqrt(6)
    assert drawn.mean().item() == pytest.approx(0.5772156649, abs=5 * deviation / math.sqrt(200_000))
    assert drawn.std().item() == pytest.approx(deviation, abs=0.02)
    monkeypatch.setattr(torch, "rand", lambda shape, **given: torch.zeros(shape, **given))
    assert gumbel(torch.zeros(1, 2), 3, None).isfinite().all()


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("ideal", ["global", "local"])
@pytest.mark.parametrize("n_rows", [12, 0])
def test_the_loss_of_each_draw_is_that_of_a_call(ideal, reduction, n_rows):
    scores, labels = torch.randn(n_rows, generator=seeded()), torch.arange(n_rows) % 4
    ids = torch.tensor([0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 0])[:n_rows]
    loss = ApproxNDCGLoss(Flavor(k=3, ideal=ideal), reduction=reduction)
    calls = []
    for given, form in (((scores[None], labels[None]), {}), ((scores, labels), {"indexes": ids})):
        drawn = gumbel(given[0], 3, seeded(4))
        want = torch.stack([loss(given[0] + noise, given[1], **form) for noise in drawn]).mean(0)
        assert torch.equal(Stochastic(loss, samples=3, generator=seeded(4))(*given, **form), want)
        hook = loss.register_forward_hook(lambda *call: calls.append(call))
        assert torch.equal(Stochastic(loss, samples=3, generator=seeded(4))(*given, **form), want)
        hook.remove()
    assert len(calls) == 6


class Sum(torch.nn.Module):
    """A loss from elsewhere."""

    def forward(self, scores, labels, mask=None, *, indexes=None):
        self.given = mask if indexes is None else indexes
        return (scores * labels).sum()


def test_noise_around_any_module():
    scores, labels = torch.randn(3, 4, dtype=torch.float64, generator=seeded()), torch.arange(12).reshape(3, 4)
    mask, ids = torch.ones(3, 4, dtype=torch.bool), torch.arange(3).repeat_interleave(4)
    noisy = Stochastic(Sum(), samples=3, scale=0.5, generator=seeded(4))
    drawn = gumbel(scores, 3, seeded(4))
    torch.testing.assert_close(noisy(scores, labels, mask), ((scores + 0.5 * drawn) * labels).sum() / 3)
    assert noisy.loss.given is mask
    noisy(scores.flatten(), labels.flatten(), indexes=ids)
    assert noisy.loss.given is ids


def test_a_negative_discount_is_refused_when_it_is_met():
    loss = PlackettLuceNDCGLoss(Flavor(discount=lambda rank: 1 - rank / 4))
    assert loss(doubles([0.4, 0.1, -0.3, 0.9]), torch.tensor([[0, 1, 2, 1]])).isfinite()
    with pytest.raises(ValueError, match=r"discount must be >= 0.*up to 5\. Use a flavor with a smaller k"):
        loss(doubles([0.4, 0.1, -0.3, 0.9, 0.0]), torch.tensor([[0, 1, 2, 1, 0]]))


def test_repr_says_what_it_is():
    assert "samples=16, reduction='mean'" in repr(PlackettLuceNDCGLoss(Flavor(k=10)))
    text = repr(Stochastic(ApproxNDCGLoss(Flavor(k=10)), scale=2))
    assert "samples=8, scale=2.0" in text
    assert "ndcg@10" in text
