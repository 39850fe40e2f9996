"""``Stochastic``: the mean of a loss over noisy scores."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ndcg_ml._plain.checks import positive_number, whole_number
from ndcg_ml.torch.limits import never_compile
from ndcg_ml.torch.losses._base import check_lists, widen

# -- random numbers for losses, from the caller's generator or the default one of torch --------------------------------


def check_generator(generator: torch.Generator | None) -> torch.Generator | None:
    """Check that `generator` is a generator or None."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator or None; got {generator!r} of type {type(generator).__name__}. "
            "For a seed, pass torch.Generator(device).manual_seed(seed)."
        )
    return generator


def uniform(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw from [0, 1) for each document, in the shape of `like`."""
    return _draw(like.shape[::-1], like, generator).mT


def gumbel(like: Tensor, samples: int, generator: torch.Generator | None) -> Tensor:
    """Draw standard Gumbel noise of shape (samples, *like.shape)."""
    drawn = _draw((like.shape[-1], samples, *like.shape[:-1]), like, generator)
    # A draw may be 0.
    return -torch.log(-torch.log(drawn.clamp(min=torch.finfo(like.dtype).tiny))).movedim(0, -1)


def _draw(shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw from [0, 1). With documents first, padding at the end does not change the draws of the others on the CPU."""
    if generator is None:
        return torch.rand(shape, dtype=like.dtype, device=like.device)
    return _draw_with_generator(shape, generator, like.dtype, like.device)


@never_compile("a torch.Generator cannot be part of a graph; use generator=None")
def _draw_with_generator(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype, device: torch.device
) -> Tensor:
    return torch.rand(shape, generator=generator, dtype=dtype, device=device)


# -- ``Stochastic``: the mean of a loss over noisy scores --------------------------------------------------------------


class Stochastic(nn.Module):
    """The mean of a loss over draws of Gumbel noise that is added to the scores.

    With `scale` 1, the rankings by noisy scores follow the Plackett-Luce model of the scores. Around ``ApproxNDCGLoss``
    this is the Gumbel-ApproxNDCG of Bruch et al. 2020.

    Parameters
    ----------
    loss : nn.Module
        Called as ``loss(scores, labels, mask)``, or for flat lists with ``indexes=``: any loss of this package, with
        any reduction.
    samples : int, default 8
        Draws per call.
    scale : float, default 1.0
        Factor of the standard Gumbel noise.
    generator : torch.Generator, optional
        Generator of the noise, on the device of the scores. Default: torch's generator of that device.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        `samples` is below 1; or the scale is not above 0.

    Notes
    -----
    Time and memory are `samples` times those of the loss. As the temperature of the loss tends to 0, the value tends to
    the expected loss over drawn rankings, whose gradient ``PlackettLuceNDCGLoss`` estimates without bias. The noise
    breaks ties. Half-precision scores are promoted to float32 before noise is added. Noise is drawn per row of flat
    lists and per slot of padded ones, so that the same seed gives the two forms different noise. For draws in compiled
    code, see ``PlackettLuceNDCGLoss``.

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
        self.loss = loss
        self.samples: int = whole_number(samples, "samples")
        self.scale: float = positive_number(scale, "scale")
        self.generator: torch.Generator | None = check_generator(generator)

    __call__: Callable[..., Tensor]

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        indexes: Tensor | None = None,
    ) -> Tensor:
        """Compute the mean of the loss; arguments are as for ``ListLoss.forward``.

        Returns
        -------
        Tensor
            In the shape of the loss.

        Raises
        ------
        TypeError, ValueError
            As for ``ListLoss.forward`` and the loss.
        """
        scores, labels, mask, indexes = check_lists(scores, labels, mask, indexes)
        wide = widen(scores)
        drawn = wide + self.scale * gumbel(wide.detach(), self.samples, self.generator)
        rows, named = ((mask,), {}) if indexes is None else ((), {"indexes": indexes})
        return torch.stack([self.loss(one, labels, *rows, **named) for one in drawn]).mean(0)

    def extra_repr(self) -> str:
        """The parameters, for ``repr``."""
        return f"samples={self.samples}, scale={self.scale}"
