"""Faults in the data: counted on the device, reported on the host.

Looking at data makes the host wait for the device. The kernel therefore counts each kind of fault and computes on
without it; the caller decides when to look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._transforms import any_of, whole_numbers

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
    "empty",
)
"""The kinds of fault, in the order in which the kernel counts them and they are reported."""


def refuse(
    flavor: Flavor, wrong: Tensor, counts: Callable[[], Tensor], labels: str = "labels", scores: str = "scores"
) -> bool:
    """Raise if there is a fault and the host can look: not in compiled code, nor under vmap.

    Parameters
    ----------
    flavor : Flavor
    wrong : Tensor of bool
        Whether there is a fault in each slot, or in each query.
    counts : callable
        How often each of ``FAULTS`` occurred, counted if there is one.
    labels, scores : str
        What the caller's parameters are called.

    Returns
    -------
    bool
        Whether the host has looked, so that there is none.

    Raises
    ------
    ValueError
        There is a fault.
    """
    any_wrong = None if torch.compiler.is_compiling() else any_of(wrong)
    if not any_wrong:
        return any_wrong is False
    message = refusal(flavor, whole_numbers(counts()), labels, scores)
    assert message is not None
    raise ValueError(message)


def counted_faults(faults: Mapping[str, Tensor]) -> Tensor:
    """How often each of ``FAULTS`` occurred, by the slots of those that have any."""
    none = torch.zeros_like(next(iter(faults.values())))
    return torch.stack([faults.get(name, none) for name in FAULTS]).flatten(1).sum(-1)


def refusal(flavor: Flavor, counts: Sequence[int], labels: str, scores: str) -> str | None:
    """The message about the first kind of fault that was counted; None if there is none.

    Parameters
    ----------
    flavor : Flavor
    counts : sequence of int
        How often each of ``FAULTS`` occurred.
    labels, scores : str
        What the caller's parameters are called.
    """
    fault = next((name for name, count in zip(FAULTS, counts, strict=True) if count), None)
    if fault is None:
        return None
    n = counts[FAULTS.index(fault)]
    table = len(flavor.gain) if isinstance(flavor.gain, tuple) else 0
    grades = f"from 0 to {table - 1}" if flavor.off_table == "raise" else ">= 0"
    return {
        "unjudged": f"{labels} must not hold NaN (an unjudged document) under unjudged='raise'; got {n}. "
        "Remove them, or choose unjudged='zero' or 'condense'.",
        "infinite": f"{labels} must be finite; got {n} infinite ones. Remove them, or give them a grade.",
        "negative": f"{labels} must be >= 0 under negative='raise'; got {n} negative ones. If they mark padding, pass "
        "mask=; otherwise shift the grades, or choose negative='zero', 'drop' or 'allow'.",
        "above_scale": f"{labels} must not exceed Flavor.max_grade={flavor.max_grade}; got {n} that do. "
        "Raise max_grade to the top of the grade scale.",
        "off_table": f"{labels} must hold integer grades {grades} for a gain table of {table} entries; "
        f"got {n} others. Extend the table, or use gain='linear' or 'exponential', which take any label.",
        "large_gains": "gains must be at most 2**500 (2**100 on a device without float64); "
        f"got {n} {labels} whose gain is larger. Use a gain table or smaller grades.",
        "small_gains": "gains must be 0 or at least 2**-500 (2**-100 on a device without float64); "
        f"got {n} {labels} whose gain is smaller. Use a gain table or larger grades.",
        "repeated_ids": f"doc_id must not repeat within a query; got {n} documents whose id another one has too. "
        "Remove the duplicate documents, or pass plain CPU tensors under duplicates='first' or 'count', where the "
        "repeats of a document must have its label and, under 'first' with ties='average', must not tie with it.",
        "nan_scores": f"{scores} must not hold NaN, which has no place in a ranking; got {n}. "
        "Find out why the model produced them; -inf ranks last.",
        "empty": f"every query must have a relevant document under empty='raise'; got {n} with an ideal DCG of 0. "
        "Remove them, or choose empty=0, 1, nan or 'skip'.",
    }[fault]
