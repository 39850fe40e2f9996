"""``Stochastic``: the mean of a loss over noisy scores."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ndcg_ml._checks import one_of, whole_number
from ndcg_ml.torch._inputs import in_groups, in_rows, read_lists, warn_of_a_column
from ndcg_ml.torch._kernel import needs_ranking
from ndcg_ml.torch.losses._draws import check_generator, gumbel, normal
from ndcg_ml.torch.losses._loss import ListLoss, above_zero

__all__ = ["Stochastic"]

Noise = Literal["gumbel", "normal"]
_NOISES = get_args(Noise)


class Stochastic(nn.Module):
    """The mean of a loss over several draws of noise that is added to the scores.

    With Gumbel noise of scale 1, each draw ranks the documents as the Plackett-Luce model of the scores would; around
    ``ApproxNDCGLoss`` this is the Gumbel-ApproxNDCG of Bruch et al. 2020.

    Parameters
    ----------
    loss : nn.Module
        Called as ``loss(scores, labels, mask)``, or for flat lists with ``indexes=``; any loss of this package, its
        reduction included.
    noise : {"gumbel", "normal"}, default "gumbel"
        The distribution of the noise: standard Gumbel, or normal with standard deviation 1.
    samples : int, default 8
        Draws per call.
    scale : float, default 1.0
        What the noise is multiplied by.
    generator : torch.Generator, optional
        Where the noise is drawn from, on the device of the scores; every call advances it. Default: torch's own
        generator of that device.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        The noise is unknown; `samples` is below 1; or the scale is not above 0.

    Notes
    -----
    Time and memory are `samples` times those of the loss. As the temperature of the loss tends to 0 it tends to the
    expected loss over drawn rankings, whose gradient ``PlackettLuceNDCGLoss`` estimates without bias. The noise
    tells tied scores apart. Half-precision scores are promoted to float32 before noise is added. A flat list draws row
    by row, so that one seed gives a batch other noise than its padded form. In compiled code draws are as in
    ``PlackettLuceNDCGLoss``.

    Examples
    --------
    >>> import torch
    >>> from ndcg_ml.torch import ApproxNDCGLoss
    >>> scores = torch.tensor([[0.3, 1.2, -0.4, 2.0, 0.9]], requires_grad=True)
    >>> labels = torch.tensor([[3, 2, 0, 1, 2]])
    >>> loss = Stochastic(ApproxNDCGLoss("sklearn"), generator=torch.Generator().manual_seed(0))
    >>> loss(scores, labels).backward()
    >>> scores.grad.isfinite().all().item()
    True
    """

    def __init__(
        self,
        loss: nn.Module,
        noise: Noise = "gumbel",
        *,
        samples: int = 8,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(loss, nn.Module):
            raise TypeError(
                f"loss must be a module, such as ApproxNDCGLoss(flavor); got {loss!r} of type {type(loss).__name__}."
            )
        one_of(noise, "noise", _NOISES)
        self.loss = loss
        self.noise = noise
        self.samples: int = whole_number(samples, "samples")
        self.scale: float = above_zero(scale, "scale")
        self.generator: torch.Generator | None = check_generator(generator)

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        indexes: Tensor | None = None,
    ) -> Tensor:
        """The mean of the loss; arguments as for ``ListLoss.forward``.

        Returns
        -------
        Tensor
            What the loss returns.

        Raises
        ------
        TypeError, ValueError
            As for ``ListLoss.forward``; what the loss refuses.
        """
        scores, labels, indexes = in_rows(scores, labels, mask, indexes)
        read_lists(*((scores, labels, mask) if indexes is None else (scores[None], labels[None], None)))
        wide = scores if scores.dtype == torch.float64 else scores.float()
        draw = gumbel if self.noise == "gumbel" else normal
        noise = self.scale * draw(wide.detach(), self.samples, self.generator)
        drawn = wide + noise
        if not isinstance(self.loss, ListLoss) or not _reads_labels_once(self.loss):
            rows = (mask,) if indexes is None else ()
            named = {} if indexes is None else {"indexes": indexes}
            return torch.stack([self.loss(one, labels, *rows, **named) for one in drawn]).mean(0)
        if indexes is None:
            warn_of_a_column(scores)
            return self.loss._mean_over([(drawn, labels, mask)], None)
        batches, places = in_groups(drawn.movedim(0, -1), labels, indexes)
        return self.loss._mean_over([(part.movedim(-1, 0), grades, listed) for part, grades, listed in batches], places)

    def extra_repr(self) -> str:
        """The parameters, for ``repr``."""
        return f"noise={self.noise!r}, samples={self.samples}, scale={self.scale}"


def _reads_labels_once(loss: ListLoss) -> bool:
    """Whether the same weights serve all draws, and nobody has put something between the call and the loss."""
    hooks = (loss._forward_hooks, loss._forward_pre_hooks, loss._backward_hooks, loss._backward_pre_hooks)
    return type(loss).forward is ListLoss.forward and not any(hooks) and not needs_ranking(loss.flavor)
