"""``PlackettLuceNDCGLoss``: the expected NDCG of rankings that are drawn by the scores."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ndcg_ml._plain.checks import whole_number
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch.inputs import best_first
from ndcg_ml.torch.kernel import discount_table
from ndcg_ml.torch.losses._base import DirectLoss, Reduction
from ndcg_ml.torch.losses.stochastic import check_generator, gumbel


class PlackettLuceNDCGLoss(DirectLoss):
    r"""1 - expected NDCG of a ranking drawn from the Plackett-Luce model of the scores, with an unbiased gradient.

        L = 1 - E[sum over ranks x <= k of D(x) gain(y_pi(x)) / IDCG]
        P(pi) = product over ranks x of exp(s_pi(x)) / (sum over z >= x of exp(s_pi(z)))

    The model draws the first document in proportion to exp(s), the second in the same way from the remaining ones, and
    so on. Value and gradient are means over `samples` rankings (PL-Rank-3), and unbiased.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        The NDCG, including its cut-off. The discount may be a callable, because it is only evaluated at integer ranks.
        Every tie-breaking rule is accepted and ignored: tied documents are equally likely to be drawn, so that as the
        scores are scaled up, L tends to 1 - NDCG with ``ties="average"``.
    samples : int, default 16
        Number of rankings drawn per list. The variance of value and gradient is proportional to 1 / `samples`.
    generator : torch.Generator, optional
        Generator of the rankings, on the device of the scores. Default: torch's generator of that device.
    reduction : {"mean", "sum", "none"}, default "mean"
        As for ``ListLoss``.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        `samples` is below 1; or as for ``ListLoss``. When called: a callable discount is negative at a rank of the
        lists.

    Notes
    -----
    For n documents and S samples, time is O(S n log n). Memory is O(S n) in the forward pass, which keeps one number
    per document for the backward pass. There is no temperature: scale the scores to draw rankings closer to their
    order. The value is a sampled metric and piecewise constant in the scores, while the gradient is that of its
    expectation, so that finite differences do not reproduce it. A backward pass through the gradient raises a
    RuntimeError, because there is no second derivative. Under ``torch.use_deterministic_algorithms(True)``, CUDA
    refuses its cumulative sum.

    In compiled code, draws are part of the graph without a `generator`. With one the graph breaks, which
    ``fullgraph=True`` does not allow. From the same seed, inductor draws other numbers than eager code, unless you set
    its ``fallback_random``. Flat lists of very different lengths are drawn in groups of similar length, so that the
    same seed gives them different rankings than padded lists.

    Oosterhuis 2021 and 2022.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[0.3, 1.2, -0.4, 2.0, 0.9]], dtype=torch.float64, requires_grad=True)
    >>> labels = torch.tensor([[3, 2, 0, 1, 2]])
    >>> generator = torch.Generator().manual_seed(0)
    >>> loss = PlackettLuceNDCGLoss("ndcg[gain=exponential]", samples=100_000, generator=generator)(scores, labels)
    >>> round(loss.item(), 2)
    0.26
    >>> loss.backward()
    >>> scores.grad[0].argmin().item()
    0
    """

    def __init__(
        self,
        flavor: Flavor | str = "sklearn",
        *,
        samples: int = 16,
        generator: torch.Generator | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(flavor, reduction=reduction)
        self.samples: int = whole_number(samples, "samples")
        self.generator: torch.Generator | None = check_generator(generator)

    def ndcg(self, scores: Tensor, weight: Tensor, ranked: Tensor) -> Tensor:
        """Compute the mean NDCG of drawn rankings, with the gradient of its expectation."""
        discount = discount_table(self.flavor, scores.shape[-1], scores.dtype, scores.device).at[1:]
        if self.flavor.k is not None:
            discount = torch.where(torch.arange(discount.numel(), device=scores.device) < self.flavor.k, discount, 0.0)
        if callable(self.flavor.discount) and bool((discount < 0).any()):
            raise ValueError(
                f"flavor.discount must be >= 0 in PlackettLuceNDCGLoss; {self.flavor.discount!r} is negative at a rank "
                f"up to {discount.numel()}. Use a flavor with a smaller k."
            )
        noise = gumbel(scores, self.samples, self.generator)
        value, _ = _PLRank.apply(scores, weight, ranked, discount, noise)  # type: ignore[no-untyped-call]
        return value


class _PLRank(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        scores: Tensor, weight: Tensor, ranked: Tensor, discount: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        # Masked documents are drawn last and have no probability.
        top = torch.where(ranked, scores, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
        # Added to a large score, noise would be rounded away in float32.
        logits = torch.where(ranked, scores - top, -math.inf)
        order = best_first(logits + noise)
        logits = logits.expand_as(noise).gather(-1, order)
        gain = weight.expand_as(noise).gather(-1, order)
        reward = discount * gain
        value = reward.sum(-1).mean(0)

        # At each rank, the reward of this rank and those below, and the log of the weight of documents not yet drawn.
        ahead = reward.flip(-1).cumsum(-1).flip(-1)
        present = logits.isfinite()
        left = torch.where(present, logits, torch.finfo(logits.dtype).min).flip(-1).logcumsumexp(-1).flip(-1)
        # Cumulative sums of discount / total and ahead / total, as logs, because the totals span any scale.
        of_discount = _log_cumulative_ratios(discount, left)
        of_ahead = _log_cumulative_ratios(ahead, left)
        slope = (ahead - reward) + gain * torch.exp(logits + of_discount) - torch.exp(logits + of_ahead)
        slope = torch.where(present, slope, 0.0)  # the others are drawn last, and are in no sum of these
        gradient = torch.zeros_like(slope).scatter(-1, order, slope).mean(0)
        return value, gradient

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(inputs[0], output[1])

    @staticmethod
    def backward(ctx, grad, _):  # type: ignore[no-untyped-def]
        scores, gradient = ctx.saved_tensors
        return _DrawnSlopes.apply(grad, gradient, scores), None, None, None, None  # type: ignore[no-untyped-call]


class _DrawnSlopes(torch.autograd.Function):
    """The estimate of the gradient. `scores` connect it to the graph, or it would be a constant."""

    generate_vmap_rule = True

    @staticmethod
    def forward(grad: Tensor, gradient: Tensor, scores: Tensor) -> Tensor:
        return grad.unsqueeze(-1) * gradient

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        raise RuntimeError(
            "PlackettLuceNDCGLoss has no second derivative; got a backward pass through its gradient "
            "(create_graph=True). Use ApproxNDCGLoss(method='dense'), or Stochastic with it."
        )


def _log_cumulative_ratios(values: Tensor, log_total: Tensor) -> Tensor:
    """Compute the log of the cumulative sum of values / total; values are not negative."""
    logs = torch.where(values > 0, torch.log(torch.where(values > 0, values, 1.0)) - log_total, -math.inf)
    return logs.logcumsumexp(-1)
