"""Faults in the data: found on the device, reported on the host.

Reading data makes the host wait for the device. The kernel therefore keeps the first fault of each query and continues,
and the caller decides when to read it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ndcg_ml.flavor import Flavor

# -- helpers for compiled code and ``torch.func``, where the values of tensors cannot be read --------------------------

Function = TypeVar("Function", bound=Callable[..., Any])
Names = tuple[str, str]
"""The names that a caller has for scores and labels."""


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


def once_per_graph(function: Function) -> Function:
    """Mark a function that compiled code calls once. ``torch.compiler.assume_constant_result`` loads the compiler."""
    setattr(function, "_dynamo_marked_constant", True)  # noqa: B010
    return function


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
        return checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)
    return function(*arguments)


def _is_of_vmap(error: RuntimeError) -> bool:
    # torch has no error type for this, and no public test whether a tensor is mapped over.
    return "vmap" in str(error)


# -- faults in the data: found on the device, reported on the host -----------------------------------------------------

FAULTS = (
    "unjudged",
    "infinite",
    "negative",
    "above_scale",
    "off_table",
    "large_gains",
    "small_gains",
    "repeated_ids",
    "nan_scores",
    "equal_scores",
    "empty",
)
"""The kinds of fault, in the order in which they are reported."""


def refuse(flavor: Flavor, faults: Tensor, names: Names = ("scores", "labels")) -> bool:
    """Raise if there is a fault. Compiled code and vmap cannot raise.

    Parameters
    ----------
    flavor : Flavor
    faults : Tensor of int
        The first fault of each query: see ``add_fault``.
    names : tuple of str
        Names of the caller's parameters.

    Returns
    -------
    bool
        Whether the host has checked that there is no fault.

    Raises
    ------
    ValueError
        There is a fault.
    """
    if torch.compiler.is_compiling():
        return False
    try:
        if not (faults < len(FAULTS)).any():
            return True
    except RuntimeError as error:
        if _is_of_vmap(error):  # it differs between samples
            return False
        raise
    counts = [int(count) for count in count_faults(faults)]  # torch 2.4 has no tolist under torch.func.grad
    raise ValueError(fault_message(flavor, counts, names))


def add_fault(faults: Tensor, name: str, flags: Tensor) -> Tensor:
    """Give flagged entries this fault, unless they have an earlier one.

    The fault of a slot or query is the position of its first one in ``FAULTS``, or ``len(FAULTS)`` or more for none.
    """
    return torch.where(flags, faults.clamp(max=FAULTS.index(name)), faults)


def count_faults(faults: Tensor) -> Tensor:
    """Count the entries with each of ``FAULTS``."""
    every = torch.arange(len(FAULTS), dtype=faults.dtype, device=faults.device)
    return (faults.unsqueeze(-1) == every).sum(0)


def fault_message(flavor: Flavor, counts: Sequence[int], names: Names) -> str | None:
    """Return the message about the first fault with a count above 0, or None.

    Parameters
    ----------
    flavor : Flavor
    counts : sequence of int
        The number of queries with each of ``FAULTS``.
    names : tuple of str
        Names of the caller's parameters.
    """
    fault = next((name for name, count in zip(FAULTS, counts, strict=True) if count), None)
    if fault is None:
        return None

    (scores, labels), n = names, counts[FAULTS.index(fault)]
    where = f"in {n} queries" if n > 1 else "in 1 query"
    table = len(flavor.gain) if isinstance(flavor.gain, tuple) else 0
    grades = f"from 0 to {table - 1}" if flavor.off_table == "raise" else ">= 0"
    raising = "" if flavor.off_table == "raise" else " with off_table='raise'"
    return {
        "unjudged": f"{labels} must not hold NaN (an unjudged document) under unjudged='raise'; got NaN {where}. "
        "If they mark padding, pass mask=; otherwise remove them, or use a flavor with unjudged='zero' or 'condense'"
        f", such as {flavor._advice(unjudged='zero')}.",
        "infinite": f"{labels} must be finite; got infinite ones {where}. Remove them, or replace them by a grade.",
        "negative": f"{labels} must be >= 0 under negative='raise'; got negative ones {where}. If they mark padding, "
        "pass mask=; otherwise shift the grades, or use a flavor with negative='zero', 'drop' or 'allow'"
        f", such as {flavor._advice(negative='zero')}.",
        "above_scale": f"{labels} must not exceed Flavor.max_grade={flavor.max_grade}; got larger ones {where}. "
        "Raise max_grade to the top of the grade scale.",
        "off_table": f"{labels} must hold integer grades {grades} for a gain table of {table} entries; "
        f"got others {where}. Extend the table, or use gain='linear' or 'exponential'{raising}, which take any label.",
        "large_gains": "gains must be at most 2**500 (2**100 on a device without float64); "
        f"got {labels} with a larger gain {where}. Use a gain table or smaller grades.",
        "small_gains": "gains must be 0 or at least 2**-500 (2**-100 on a device without float64); "
        f"got {labels} with a smaller gain {where}. Use a gain table or larger grades.",
        "repeated_ids": f"doc_id must not repeat within a query; got repeated ids {where}. "
        "Remove the repeats, or pass plain CPU tensors and a flavor with duplicates='first' or 'count'. Repeats of a "
        "document must have its label and, under 'first' with ties='average', must not tie with it.",
        "nan_scores": f"{scores} must not hold NaN, which cannot be ranked; got NaN {where}. "
        "Find out why the model produced them; -inf ranks last.",
        "equal_scores": f"{scores} must hold scores that stay different in float64; got some that become equal "
        f"{where}, such as integers beyond 2^53. Subtract the smallest score, or pass ranks.",
        "empty": f"every query must have a relevant document under empty='raise'; got an ideal DCG of 0 {where}. "
        f"Remove them, or use a flavor with empty=0, 1, nan or 'skip', such as {flavor._advice(empty=0)}.",
    }[fault]
