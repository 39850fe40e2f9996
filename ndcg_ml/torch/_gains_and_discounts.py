"""Read labels under a flavor, and compute gains and discounts: the only torch implementation of these rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml._core.gains_and_discounts import discounts
from ndcg_ml._core.gains_and_discounts import gain as host_gain
from ndcg_ml._core.gains_and_discounts import top_gain as host_top_gain
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._layout import Layout, Padded, working_dtype
from ndcg_ml.torch._transforms import can_inspect, not_mapped

LARGEST = {torch.float64: 2.0**500, torch.float32: 2.0**100}
"""The largest gain for which sums and ratios stay within the working dtype."""


# -- from labels to gains -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgements:
    """Labels under the rules of a flavor, one entry per slot."""

    grade: Tensor
    """The label in the working dtype, or 0 if it is missing or excluded."""
    listed: Tensor
    """Slots with a document that is not excluded."""
    judged: Tensor
    """Documents with a label."""
    gainless: Tensor | None
    """Documents whose gain is 0 whatever the formula gives for their grade; None if there are none."""
    refused: Tensor
    """Queries with a label that the flavor refuses."""
    dtype: torch.dtype
    """The dtype of the labels."""


def judge(flavor: Flavor, labels: Tensor, listed: Tensor, layout: Layout, *, full: bool = False) -> Judgements:
    """Read the labels of the listed slots. Labels in other slots are ignored.

    `full` means that all slots are listed, which saves operations on `listed`.
    """
    grade = labels.to(working_dtype(labels.device))
    # Each operation is a launch on a device. Most flavors need only these.
    if _requires_nonnegative_labels(flavor):
        smallest, largest = _label_range(flavor, grade.dtype)
        may_be_small = _may_be_below(labels.dtype, smallest)
        # If reading costs no wait, the smallest and the largest label show whether any label can be refused.
        if isinstance(layout, Padded) and labels.numel() and can_inspect(labels):
            seen = grade if full else grade.masked_fill(~listed, 0.0)
            least, highest = (float(bound) for bound in torch.aminmax(seen))
            small = may_be_small and bool(((seen > 0) & (seen < smallest)).any())
            if least >= 0 and highest <= largest and not small:
                none = torch.zeros(seen.shape[0], dtype=torch.bool)
                return Judgements(seen, listed, listed, None, none, labels.dtype)
        sound = (grade >= 0) & (grade <= largest)
        if may_be_small:
            sound = sound & ((grade == 0) | (grade >= smallest))
        if not full:
            sound = sound & listed
        unsound = ~sound
        refused = layout.any_of(unsound if full else listed & unsound)
        return Judgements(grade.masked_fill(unsound, 0.0), listed, listed, None, refused, labels.dtype)
    faults = label_faults(flavor, grade, listed)
    # A missing or excluded label has grade 0, so that no formula is evaluated at it.
    unjudged = grade.isnan() & listed
    sound = listed & ~unjudged & ~faults["infinite"]
    gainless = unjudged
    judged = listed
    if flavor.negative != "allow":
        negative = (grade < 0) & listed
        sound = sound & ~negative
        if flavor.negative == "drop":
            judged = listed = listed & ~negative
        elif flavor.negative == "zero":
            gainless = gainless | negative
    # A gain table is indexed by the grade, so grades without an entry must not reach it.
    for name in ("off_table", "large_gains", "small_gains"):
        if name in faults:
            sound = sound & ~faults[name]
    refused = layout.any_of(torch.stack(list(faults.values())).any(0))
    return Judgements(grade.masked_fill(~sound, 0.0), listed, judged & ~unjudged, gainless, refused, labels.dtype)


def label_faults(flavor: Flavor, labels: Tensor, listed: Tensor) -> dict[str, Tensor]:
    """Flag the listed slots whose label the flavor refuses, by kind of fault."""
    unjudged = labels.isnan() & listed
    infinite = labels.isinf() & listed
    negative = (labels < 0) & listed
    faults = {"infinite": infinite}
    plain = listed & ~unjudged & ~infinite
    if flavor.unjudged == "raise":
        faults["unjudged"] = unjudged
    if flavor.negative == "raise":
        faults["negative"] = negative
    if flavor.negative != "allow":
        plain = plain & ~negative
    if flavor.max_grade is not None and _has_top(flavor):
        # The top of the scale may be slightly larger in float32: 0.8 is 0.80000001.
        largest = torch.finfo(torch.float32).max
        in_float32 = labels.new_full((), max(-largest, min(flavor.max_grade, largest)), dtype=torch.float32)
        faults["above_scale"] = plain & (labels > flavor.max_grade) & (labels != in_float32)
    if isinstance(flavor.gain, tuple):
        wrong = (labels != labels.floor()) | (labels < 0)
        if flavor.off_table == "raise":
            wrong = wrong | (labels >= len(flavor.gain))
        faults["off_table"] = plain & wrong
    if flavor.gain in ("linear", "exponential"):
        smallest, largest = _label_range(flavor, labels.dtype)
        size = labels.abs()
        faults["large_gains"] = plain & ((size if flavor.gain == "linear" else labels) > largest)
        faults["small_gains"] = plain & (size > 0) & (size < smallest)
    return faults


def _label_range(flavor: Flavor, dtype: torch.dtype) -> tuple[float, float]:
    """The smallest label above 0 and the largest label whose gains can be summed, for a gain with a formula."""
    largest = LARGEST[dtype]
    if flavor.gain == "linear":
        return 1 / largest, largest
    if flavor.gain == "exponential":  # 2^y - 1 is y log(2) for small y
        return 1 / largest / math.log(2), math.log2(largest)
    return 0.0, torch.finfo(dtype).max


def _may_be_below(dtype: torch.dtype, number: float) -> bool:
    """Whether this dtype has labels between 0 and `number`; float32 and narrower dtypes have none on a CPU."""
    return dtype.is_floating_point and torch.finfo(dtype).tiny * torch.finfo(dtype).eps < number


def _requires_nonnegative_labels(flavor: Flavor) -> bool:
    """Whether every finite label >= 0 within the range of the gain is accepted, and no other label."""
    return (
        flavor.negative == flavor.unjudged == "raise"
        and not isinstance(flavor.gain, tuple)
        and (flavor.max_grade is None or not _has_top(flavor))
    )


def _has_top(flavor: Flavor) -> bool:
    """Whether labels are compared with the top of the scale."""
    return flavor.ideal != "max" or flavor.gain not in ("binary", "judged")


def may_be_negative(flavor: Flavor) -> bool:
    """Whether a gain can be below 0."""
    if isinstance(flavor.gain, tuple):
        return bool(min(flavor.gain) < 0)
    return callable(flavor.gain) or (flavor.negative == "allow" and flavor.gain in ("linear", "exponential"))


def gains_of(flavor: Flavor, judgements: Judgements, counted: Tensor) -> Tensor:
    """Compute the gains of the counted documents; other slots have gain 0.

    Raises
    ------
    ValueError
        A gain of the table, or of a callable, is too large or too small. (``judge`` refuses labels with such a gain
        under a formula.)
    """
    # Slots that are not listed have grade 0 already; documents that do not count get it here.
    if judgements.gainless is not None:
        counted = counted & ~judgements.gainless
    grade = judgements.grade
    if counted is not judgements.listed:
        grade = grade.masked_fill(~counted, 0.0)
    if flavor.ideal == "max" and _has_top(flavor):
        grade = grade.clamp(max=flavor.max_grade)
    if flavor.gain == "exponential":
        return _exponential(grade) if judgements.dtype.is_floating_point else torch.exp2(grade) - 1.0
    # Under the gains below, grade 0 may have a gain other than 0, which excluded slots must not have.
    if isinstance(flavor.gain, tuple):
        _check_size(flavor.gain, grade.dtype)
        beyond = len(flavor.gain)
        table = torch.tensor((*flavor.gain, 0.0), dtype=grade.dtype, device=grade.device)
        return table[grade.clamp(max=beyond).long()].masked_fill(~counted, 0.0)
    if callable(flavor.gain):
        return _call_gain(flavor, grade, counted)
    if flavor.gain == "binary":
        return (grade > 0).to(grade.dtype)
    if flavor.gain == "judged":
        return counted.to(grade.dtype)
    return grade


# Compiled code cannot trace NumPy, but the flavor is constant.
@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def top_gain(flavor: Flavor, dtype: torch.dtype) -> float:
    """Compute the gain of ``max_grade``, which all documents of the ideal "max" have."""
    top = host_top_gain(flavor)
    _check_size([top], dtype)
    return top


def _check_size(gains: Sequence[float], dtype: torch.dtype) -> None:
    """Refuse gains that are too large or too small, except 0, to be summed in the working dtype."""
    power = f"{math.log2(LARGEST[dtype]):g}"
    largest = max(gains, key=abs, default=0.0)
    if abs(largest) > LARGEST[dtype]:
        raise ValueError(f"gains must be at most 2**{power}; got {largest:g}. Use a gain table or smaller grades.")
    least = min([gain for gain in gains if gain], key=abs, default=1.0)
    if abs(least) < 1 / LARGEST[dtype]:
        raise ValueError(f"gains must be 0 or at least 2**-{power}; got {least:g}. Use a gain table or larger grades.")


def _exponential(grade: Tensor) -> Tensor:
    """Compute 2^grade - 1."""
    # expm1 is accurate for small fractions, and exp2 is exact for integers.
    small = grade.abs() < 1
    whole = grade.floor()
    power = torch.exp2(grade - whole) * torch.exp2(whole)
    return torch.where(small, torch.expm1(grade.masked_fill(~small, 0.0) * math.log(2.0)), power - 1.0)


def _call_gain(flavor: Flavor, grade: Tensor, counted: Tensor) -> Tensor:
    with not_mapped(
        f"flavor.gain must be a name or a table if torch.func.vmap maps over labels; got the callable "
        f"{flavor.gain!r}, which is evaluated on the host. Use 'linear', 'exponential' or a table."
    ):
        distinct, at = torch.unique(grade[counted], return_inverse=True)
    values = host_gain(flavor, np.array(distinct.tolist(), dtype=np.float64)).tolist()
    _check_size(values, grade.dtype)
    gain = torch.zeros_like(grade)
    gain[counted] = torch.tensor(values, dtype=grade.dtype, device=grade.device)[at]
    return gain


# -- discounts ------------------------------------------------------------------------------------------------------


def discount_at(flavor: Flavor, ranks: Tensor) -> Tensor:
    """Compute D(r) at real ranks r >= 1, differentiable in r, for a named discount; a callable needs integer ranks."""
    return DISCOUNTS[str(flavor.discount)](ranks)


DISCOUNTS: dict[str, Callable[[Tensor], Tensor]] = {
    "log2": lambda ranks: torch.log2(ranks + 1.0).reciprocal(),
    "jarvelin": lambda ranks: torch.log2(ranks).clamp(min=1.0).reciprocal(),
    "reciprocal": torch.reciprocal,
    "ln": lambda ranks: torch.log(ranks + 1.0).reciprocal(),
    "none": lambda ranks: 0.0 * ranks + 1.0,  # in the graph, so that a loss has a gradient of 0
}


def discount_table(flavor: Flavor, depth: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Compute 0, D(1), ..., D(depth). Entry 0 is for slots without a rank."""
    if callable(flavor.discount):
        return pad(torch.from_numpy(discounts(flavor, depth)).to(dtype).to(device), (1, 0))
    return pad(discount_at(flavor, torch.arange(1, depth + 1, dtype=dtype, device=device)), (1, 0))
