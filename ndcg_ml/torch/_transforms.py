"""Helpers for compiled code and ``torch.func``, where the values of tensors cannot be read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Function = TypeVar("Function", bound=Callable[..., Any])


def is_plain_eager() -> bool:
    """Whether operations run eagerly: no compiler, tracer, dispatch mode or transform observes them."""
    return not (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
    )


def can_inspect(tensor: Tensor) -> bool:
    """Whether values can be read at next to no cost, to skip operations that are not needed."""
    return tensor.device.type == "cpu" and is_plain_eager()


def never_compile(reason: str) -> Callable[[Function], Function]:
    """Make a decorator for functions that compiled code calls uncompiled; newer versions of torch report the reason."""
    takes_it = "reason" in inspect.signature(torch.compiler.disable).parameters
    disable: Callable[..., Callable[[Function], Function]] = torch.compiler.disable
    return disable(**({"reason": reason} if takes_it else {}))


def to_ints(tensor: Tensor) -> list[int]:
    """The entries of a short 1-D tensor; torch 2.4 has no ``tolist`` under ``torch.func.grad``."""
    return [int(number) for number in tensor]


def any_of(flags: Tensor) -> bool | None:
    """Whether a flag is set, or None under vmap, if that differs between samples."""
    try:
        return bool(flags.any())
    except RuntimeError as error:
        if _is_of_vmap(error):
            return None
        raise


@contextmanager
def not_mapped(message: str) -> Iterator[None]:
    """Replace torch's error that vmap does not support an operation by `message`."""
    try:
        yield
    except RuntimeError as error:
        if _is_of_vmap(error):
            raise ValueError(message) from error
        raise


def recompute_in_backward(function: Callable[..., Tensor], *arguments: Any) -> Tensor:
    """Call the function, and call it again in the backward pass instead of keeping its intermediate results."""
    # torch.func.grad cannot recompute, so it keeps everything.
    if torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active():
        given: Tensor = checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)
        return given
    return function(*arguments)


def _is_of_vmap(error: RuntimeError) -> bool:
    # torch has no error type for this, and no public test whether a tensor is mapped over.
    return "vmap" in str(error)
