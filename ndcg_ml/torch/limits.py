"""Faults in the data: counted on the device, reported on the host.

Reading data makes the host wait for the device. The kernel therefore counts each kind of fault and continues, and the
caller decides when to read the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._transforms import any_of, to_ints

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
"""The kinds of fault, in the order in which they are counted and reported."""


def refuse(
    flavor: Flavor, wrong: Tensor, counts: Callable[[], Tensor], labels: str = "labels", scores: str = "scores"
) -> bool:
    """Raise if there is a fault. Compiled code and vmap cannot raise.

    Parameters
    ----------
    flavor : Flavor
    wrong : Tensor of bool
        Slots or queries with a fault.
    counts : callable
        Computes the number of each of ``FAULTS``; called if there is a fault.
    labels, scores : str
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
    any_wrong = None if torch.compiler.is_compiling() else any_of(wrong)
    if not any_wrong:
        return any_wrong is False
    message = fault_message(flavor, to_ints(counts()), labels, scores)
    assert message is not None
    raise ValueError(message)


def count_faults_by_kind(faults: Mapping[str, Tensor]) -> Tensor:
    """Count each of ``FAULTS``, from the flagged slots by kind; kinds that are missing have none."""
    none = torch.zeros_like(next(iter(faults.values())))
    return torch.stack([faults.get(name, none) for name in FAULTS]).flatten(1).sum(-1)


def fault_message(flavor: Flavor, counts: Sequence[int], labels: str, scores: str) -> str | None:
    """Return the message about the first kind of fault with a count above 0, or None.

    Parameters
    ----------
    flavor : Flavor
    counts : sequence of int
        The number of each of ``FAULTS``.
    labels, scores : str
        Names of the caller's parameters.
    """
    fault = next((name for name, count in zip(FAULTS, counts, strict=True) if count), None)
    if fault is None:
        return None

    def such_as(**switch: Any) -> str:
        named = not (callable(flavor.gain) or callable(flavor.discount))
        return f", such as {flavor.replace(**switch).short_text!r}" if named else ""

    n = counts[FAULTS.index(fault)]
    table = len(flavor.gain) if isinstance(flavor.gain, tuple) else 0
    grades = f"from 0 to {table - 1}" if flavor.off_table == "raise" else ">= 0"
    return {
        "unjudged": f"{labels} must not hold NaN (an unjudged document) under unjudged='raise'; got {n}. "
        "If they mark padding, pass mask=; otherwise remove them, or use a flavor with unjudged='zero' or 'condense'"
        f"{such_as(unjudged='zero')}.",
        "infinite": f"{labels} must be finite; got {n} infinite ones. Remove them, or replace them by a grade.",
        "negative": f"{labels} must be >= 0 under negative='raise'; got {n} negative ones. If they mark padding, pass "
        "mask=; otherwise shift the grades, or use a flavor with negative='zero', 'drop' or 'allow'"
        f"{such_as(negative='zero')}.",
        "above_scale": f"{labels} must not exceed Flavor.max_grade={flavor.max_grade}; got {n} that do. "
        "Raise max_grade to the top of the grade scale.",
        "off_table": f"{labels} must hold integer grades {grades} for a gain table of {table} entries; "
        f"got {n} others. Extend the table, or use gain='linear' or 'exponential', which take any label.",
        "large_gains": "gains must be at most 2**500 (2**100 on a device without float64); "
        f"got {n} {labels} whose gain is larger. Use a gain table or smaller grades.",
        "small_gains": "gains must be 0 or at least 2**-500 (2**-100 on a device without float64); "
        f"got {n} {labels} whose gain is smaller. Use a gain table or larger grades.",
        "repeated_ids": f"doc_id must not repeat within a query; got {n} documents with a repeated id. "
        "Remove the repeats, or pass plain CPU tensors and a flavor with duplicates='first' or 'count'. Repeats of a "
        "document must have its label and, under 'first' with ties='average', must not tie with it.",
        "nan_scores": f"{scores} must not hold NaN, which cannot be ranked; got {n}. "
        "Find out why the model produced them; -inf ranks last.",
        "equal_scores": f"{scores} must hold scores that stay different in float64; got {n} that become equal to a "
        "different one of their query, such as integers beyond 2^53. Subtract the smallest score, or pass ranks.",
        "empty": f"every query must have a relevant document under empty='raise'; got {n} with an ideal DCG of 0. "
        f"Remove them, or use a flavor with empty=0, 1, nan or 'skip'{such_as(empty=0)}.",
    }[fault]
