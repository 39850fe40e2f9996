"""``PlackettLuceNDCGLoss``: the expected NDCG of rankings drawn from the scores."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.torch._discounts import discount_table
from ndcg_ml.torch._lists import check_reduction, read, reduced
from ndcg_ml.torch._ragged import as_padded
from ndcg_ml.torch.neural import at_whole_ranks, finite_scores

__all__ = ["PlackettLuceNDCGLoss", "check_generator", "check_samples", "gumbel"]


class PlackettLuceNDCGLoss(nn.Module):
    r"""1 - expected NDCG of a ranking drawn from the Plackett-Luce model of the scores, with an unbiased gradient.

    .. math::  L = 1 - E_\pi \sum_{x \le k} D(x)\, \frac{gain(y_{\pi(x)})}{IDCG}, \qquad
               P(\pi) = \prod_x \frac{e^{s_{\pi(x)}}}{\sum_{z \ge x} e^{s_{\pi(z)}}}

    The model draws the first document in proportion to :math:`e^s`, the second likewise from those that are left,
    and so on. Value and gradient are means over `samples` such rankings (PL-Rank-3); the mean of either over many
    calls is the exact one.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Which NDCG, its cut-off included; the discount may be a callable, since whole ranks are all that is asked of
        it. Any tie rule is taken: tied documents are drawn alike, so that as the scores are scaled up L tends to 1 -
        NDCG of ``ties="average"`` (the ideals that depend on the ranking follow the rule; "docid" falls back to the
        input order there). Lists without a relevant document are left out of the mean, whatever ``empty`` says.
        ``score_dtype`` is of no consequence.
    samples : int, default 16
        Rankings drawn a list. The variance of value and gradient falls as one over it.
    generator : torch.Generator, optional
        Where the rankings are drawn from, on the device of the scores; it moves on with every call. Default torch's
        own generator of that device.
    reduction : {"mean", "sum", "none"}, default "mean"
        ``mean`` over the lists that are not empty (0 if all are); ``none`` gives one loss a list, 0 for an empty one.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        There is no sample; the reduction is not known; or the flavor has what a loss cannot honour:
        ``negative="allow"`` or a gain table with negative entries (the ideal may be 0 or less), ``aggregate="micro"``.
        When called: a callable discount is negative at a rank of the lists.

    Notes
    -----
    For n documents and S samples: O(S n log n) time, O(S n) memory in the forward pass, of which one number a
    document is kept. There is no temperature: scale the scores to draw rankings closer to their order. The value
    alone is a sampled metric, flat in the scores almost everywhere; the gradient is that of its expectation, so that
    finite differences do not show it, and it has no second derivative.

    Half-precision scores are computed on in float32, and so is the loss. Labels that the flavor refuses raise on the
    CPU; elsewhere, and compiled, such a list's loss is nan, as is that of a list with a score of nan or infinity.

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
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.flavor = at_whole_ranks(as_flavor(flavor))
        self.samples = check_samples(samples)
        self.generator = check_generator(generator)
        self.reduction = check_reduction(reduction)

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        indexes: Tensor | None = None,
        offsets: Tensor | None = None,
    ) -> Tensor:
        """The loss of each list, reduced.

        Parameters
        ----------
        scores : Tensor of float, shape (n_lists, n_documents)
            Higher is better.
        labels : Tensor, shape of `scores`
            Grades, of any real dtype.
        mask : Tensor of bool, shape of `scores`, optional
            True where the slot holds a document; the others change neither loss nor gradient, whatever they hold.
        indexes, offsets : Tensor of int, optional
            For flat or nested input, as for ``ApproxNDCGLoss``.

        Returns
        -------
        Tensor
            float64 for scores of float64, otherwise float32. No dimension, or (n_lists,) with ``reduction="none"``.

        Raises
        ------
        TypeError
            An argument is not a tensor, scores are not floats, or mask is not bool.
        ValueError
            Shapes that do not go together; on the CPU, labels that the flavor refuses.
        """
        scores, labels, mask = as_padded(scores, labels, mask, indexes=indexes, offsets=offsets)
        lists = read(self.flavor, scores, labels, mask)
        clean, finite = finite_scores(lists)
        discount = discount_table(self.flavor, clean.shape[-1], clean.dtype, clean.device)[1:]
        if self.flavor.k is not None:
            discount = torch.where(torch.arange(discount.numel(), device=clean.device) < self.flavor.k, discount, 0.0)
        if callable(self.flavor.discount) and bool((discount < 0).any()):
            raise ValueError(
                f"flavor.discount must not be negative in PlackettLuceNDCGLoss; {self.flavor.discount!r} is at some "
                f"rank up to {discount.numel()}. Cut the list off at a smaller k."
            )
        noise = gumbel(clean, self.samples, self.generator)
        surrogate = _expected_ndcg(clean, lists.weight, lists.ranked, discount, noise)
        return reduced(torch.where(finite, surrogate, math.nan), lists, self.reduction)

    def extra_repr(self) -> str:
        """The parameters, for ``repr``."""
        return f"{str(self.flavor)!r}, samples={self.samples}, reduction={self.reduction!r}"


def check_samples(samples: int) -> int:
    """A number of samples."""
    if isinstance(samples, bool) or not isinstance(samples, int):
        raise TypeError(f"samples must be a whole number; got {samples!r} of type {type(samples).__name__}.")
    if samples < 1:
        raise ValueError(f"samples must be 1 or more; got {samples}.")
    return samples


def check_generator(generator: torch.Generator | None) -> torch.Generator | None:
    """Where random numbers come from."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator or None; got {generator!r} of type {type(generator).__name__}. "
            "For a seed: torch.Generator(device).manual_seed(seed)."
        )
    return generator


def gumbel(like: Tensor, samples: int, generator: torch.Generator | None) -> Tensor:
    """Noise of shape (samples, n_lists, n_documents)."""
    # Documents first, so that on the CPU padding at the end leaves the others their noise.
    shape = (like.shape[-1], samples, *like.shape[:-1])
    uniform = torch.rand(shape, generator=generator, dtype=like.dtype, device=like.device)
    # 0 is drawn now and then.
    return -torch.log(-torch.log(uniform.clamp(min=torch.finfo(like.dtype).tiny))).movedim(0, -1)


def _expected_ndcg(scores: Tensor, weight: Tensor, valid: Tensor, discount: Tensor, noise: Tensor) -> Tensor:
    """Mean NDCG of the rankings that the noise draws, with the gradient of its expectation."""
    value, _ = _PLRank.apply(scores, weight, valid, discount, noise)  # type: ignore[no-untyped-call]
    return value  # type: ignore[no-any-return]


class _PLRank(torch.autograd.Function):
    @staticmethod
    def forward(
        scores: Tensor, weight: Tensor, valid: Tensor, discount: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        # Masked documents are drawn last and have no probability.
        top = torch.where(valid, scores, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
        logits = torch.where(valid, scores - top, -math.inf)  # beside a large score float32 has no room for the noise
        order = (logits + noise).argsort(dim=-1, descending=True, stable=True)
        logits = logits.expand_as(noise).gather(-1, order)
        gain = weight.expand_as(noise).gather(-1, order)
        reward = discount * gain
        value = reward.sum(-1).mean(0)

        # Of the documents not yet drawn, what they would gain from here on, and the log of their total weight.
        ahead = reward.flip(-1).cumsum(-1).flip(-1)
        present = logits.isfinite()
        left = torch.where(present, logits, torch.finfo(logits.dtype).min).flip(-1).logcumsumexp(-1).flip(-1)
        # Sums over the ranks up to here of discount / total and ahead / total, as logs: the totals span any scale.
        own = torch.where(present, logits, 0.0)
        left = torch.where(present, left, 0.0)
        of_discount = _up_to_here(torch.where(present, discount, 0.0), left)
        of_ahead = _up_to_here(torch.where(present, ahead, 0.0), left)
        slope = (ahead - reward) + gain * torch.exp(own + of_discount) - torch.exp(own + of_ahead)
        slope = torch.where(present, slope, 0.0)
        gradient = torch.zeros_like(slope).scatter(-1, order, slope).mean(0)
        return value, gradient

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, grad, _):  # type: ignore[no-untyped-def]
        (gradient,) = ctx.saved_tensors
        return grad.unsqueeze(-1) * gradient, None, None, None, None


def _up_to_here(values: Tensor, log_total: Tensor) -> Tensor:
    """Log of the sum of values / total over the ranks up to each; values are not negative."""
    logs = torch.where(values > 0, torch.log(torch.where(values > 0, values, 1.0)) - log_total, -math.inf)
    return logs.logcumsumexp(-1)
