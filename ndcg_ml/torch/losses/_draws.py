"""Random numbers of the losses that draw, from a generator of the caller's or torch's own."""

from __future__ import annotations

import torch
from torch import Tensor

from ndcg_ml.torch._transforms import never_compiled


def check_generator(generator: torch.Generator | None) -> torch.Generator | None:
    """Where random numbers come from."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator or None; got {generator!r} of type {type(generator).__name__}. "
            "For a seed: torch.Generator(device).manual_seed(seed)."
        )
    return generator


def uniform(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """A draw from [0, 1) for each document, shape of `like`."""
    return _drawn(like.shape[::-1], like, generator).mT


def gumbel(like: Tensor, samples: int, generator: torch.Generator | None) -> Tensor:
    """Standard Gumbel noise of shape (samples, *like.shape)."""
    drawn = _drawn((like.shape[-1], samples, *like.shape[:-1]), like, generator)
    # 0 is drawn now and then.
    return -torch.log(-torch.log(drawn.clamp(min=torch.finfo(like.dtype).tiny))).movedim(0, -1)


def _drawn(shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draws from [0, 1). Documents come first: on the CPU padding at the end leaves the others theirs."""
    if generator is None:
        return torch.rand(shape, dtype=like.dtype, device=like.device)
    drawn: Tensor = _from_generator(shape, generator, like.dtype, like.device)
    return drawn


@never_compiled("a torch.Generator cannot be part of a graph; without one (generator=None) it is whole")
def _from_generator(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype, device: torch.device
) -> Tensor:
    return torch.rand(shape, generator=generator, dtype=dtype, device=device)
