"""``Stochastic``: the mean of a loss over noisy scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ndcg_ml.torch._inputs import read_lists
from ndcg_ml.torch._lists import above_zero
from ndcg_ml.torch._ragged import as_padded
from ndcg_ml.torch.plackett_luce import check_generator, check_samples, gumbel

__all__ = ["Stochastic"]

_NOISES = ("gumbel", "normal")


class Stochastic(nn.Module):
    """The mean of a loss over several draws of noise that is added to the scores.

    With Gumbel noise of scale 1, each draw ranks the documents as the Plackett-Luce model of the scores would; around
    ``ApproxNDCGLoss`` this is the Gumbel-ApproxNDCG of Bruch et al. 2020.

    Parameters
    ----------
    loss : nn.Module
        Called as ``loss(scores, labels, mask)``; any loss of this package, its reduction included.
    noise : {"gumbel", "normal"}, default "gumbel"
        The law of the noise: standard Gumbel, or normal of deviation 1.
    samples : int, default 8
        Draws a call.
    scale : float, default 1.0
        What the noise is multiplied by.
    generator : torch.Generator, optional
        Where the noise is drawn from, on the device of the scores; it moves on with every call. Default torch's own
        generator of that device.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        The noise is not known; there is no sample; or the scale is not above 0.

    Notes
    -----
    Time and memory are `samples` times those of the loss. As the temperature of the loss tends to 0 it tends to the
    expected loss over drawn rankings, whose gradient ``PlackettLuceNDCGLoss`` estimates without bias. Tied scores are
    told apart by the noise. Half-precision scores are widened to float32 before noise is added.

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
        noise: str = "gumbel",
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
        if noise not in _NOISES:
            raise ValueError(f"noise must be 'gumbel' or 'normal'; got {noise!r}.")
        self.loss = loss
        self.noise = noise
        self.samples = check_samples(samples)
        self.scale = above_zero("scale", scale)
        self.generator = check_generator(generator)

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        indexes: Tensor | None = None,
        offsets: Tensor | None = None,
    ) -> Tensor:
        """The mean of the loss.

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
            What the loss returns.

        Raises
        ------
        TypeError, ValueError
            As the loss does.
        """
        scores, labels, mask = as_padded(scores, labels, mask, indexes=indexes, offsets=offsets)
        read_lists(scores, labels, mask)
        wide = scores if scores.dtype == torch.float64 else scores.float()
        noise = self.scale * self._draw(wide.detach())
        losses = [self.loss(wide + noise[sample], labels, mask) for sample in range(self.samples)]
        return torch.stack(losses).mean(0)

    def extra_repr(self) -> str:
        """The parameters, for ``repr``."""
        return f"noise={self.noise!r}, samples={self.samples}, scale={self.scale}"

    def _draw(self, like: Tensor) -> Tensor:
        """Noise of shape (samples, n_lists, n_documents)."""
        if self.noise == "gumbel":
            return gumbel(like, self.samples, self.generator)
        # The quantile of a uniform draw, since normal draws of different counts differ from the first one on.
        shape = (like.shape[-1], self.samples, *like.shape[:-1])
        uniform = torch.rand(shape, generator=self.generator, dtype=like.dtype, device=like.device)
        finfo = torch.finfo(like.dtype)
        normal: Tensor = torch.special.ndtri(uniform.clamp(min=finfo.tiny, max=1 - finfo.eps / 2))
        return normal.movedim(0, -1)
