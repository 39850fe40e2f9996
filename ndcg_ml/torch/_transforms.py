"""What is different in compiled code and under ``torch.func``, where tensors cannot be looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

__all__ = ["any_of", "nobody_watches", "not_mapped", "recomputed"]


def nobody_watches() -> bool:
    """Whether operations are only computed: no compiler, tracer, dispatch mode or transform has to see each of them."""
    return not (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
    )


def any_of(counts: Tensor) -> bool:
    """Whether a count is not 0; False under vmap, where each sample has its own answer."""
    try:
        return bool(counts.any())
    except RuntimeError as error:
        if _is_of_vmap(error):
            return False
        raise


@contextmanager
def not_mapped(message: str) -> Iterator[None]:
    """Raise `message` where torch would only say that vmap cannot do this."""
    try:
        yield
    except RuntimeError as error:
        if _is_of_vmap(error):
            raise ValueError(message) from error
        raise


def recomputed(function: Callable[..., Tensor], *arguments: Any) -> Tensor:
    """The value of the function, recomputed in the backward pass so that nothing in it is kept until then."""
    # torch.func.grad cannot recompute: there everything is kept.
    if torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active():
        given: Tensor = checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)
        return given
    return function(*arguments)


def _is_of_vmap(error: RuntimeError) -> bool:
    # torch has no type for it, and no public way to ask whether a tensor is mapped over.
    return "vmap" in str(error)
