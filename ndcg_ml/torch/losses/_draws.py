"""Random numbers for losses, from the caller's generator or the default one of torch."""

from __future__ import annotations

import torch
from torch import Tensor

from ndcg_ml.torch._transforms import never_compile


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
    drawn: Tensor = _draw_with_generator(shape, generator, like.dtype, like.device)
    return drawn


@never_compile("a torch.Generator cannot be part of a graph; use generator=None")
def _draw_with_generator(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype, device: torch.device
) -> Tensor:
    return torch.rand(shape, generator=generator, dtype=dtype, device=device)
