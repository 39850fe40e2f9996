"""What is different in compiled code and under ``torch.func``, where tensors cannot be looked at."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Function = TypeVar("Function", bound=Callable[..., Any])


def nobody_watches() -> bool:
    """Whether operations are only computed: no compiler, tracer, dispatch mode or transform has to see each of them."""
    return not (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
    )


def host_may_look(tensor: Tensor) -> bool:
    """Whether looking at this data costs next to nothing, so that what is not needed can be left out."""
    return tensor.device.type == "cpu" and nobody_watches()


def never_compiled(reason: str) -> Callable[[Function], Function]:
    """A decorator for what compiled code calls as it is; torch names the reason, from the version on that takes one."""
    takes_it = "reason" in inspect.signature(torch.compiler.disable).parameters
    disable: Callable[..., Callable[[Function], Function]] = torch.compiler.disable
    return disable(**({"reason": reason} if takes_it else {}))


def whole_numbers(tensor: Tensor) -> list[int]:
    """The few numbers of a tensor of one dimension; torch 2.4 has no ``tolist`` under ``torch.func.grad``."""
    return [int(number) for number in tensor]


def any_of(flags: Tensor) -> bool | None:
    """Whether a flag is set; None under vmap, where each sample has its own answer."""
    try:
        return bool(flags.any())
    except RuntimeError as error:
        if _is_of_vmap(error):
            return None
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
