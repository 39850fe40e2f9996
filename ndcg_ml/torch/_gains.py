"""What labels mean under a flavor, and gains and discounts as tensors: the only home of these rules in torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ndcg_ml._kernel.gains import discounts, top_gain
from ndcg_ml._kernel.gains import gain as host_gain
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._layout import Layout
from ndcg_ml.torch._transforms import not_mapped

__all__ = ["Gains", "Judgements", "discount_at", "discount_table", "gains_of", "judge", "times_power_of_two"]

# Where the largest gain of a query is brought to: above is room for sums, below for small gains. float32 has none.
_TOP = {torch.float64: 400}


# -- from labels to gains -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgements:
    """Labels as the flavor reads them, one entry per slot."""

    grade: Tensor
    """The label; 0 where there is none, or one that does not count."""
    listed: Tensor
    """Which slots hold a document that takes part."""
    judged: Tensor
    """Which documents have a label."""
    gainless: Tensor
    """Which documents gain 0 whatever the formula says of their grade."""
    faults: dict[str, Tensor]
    """Which slots hold a label that the flavor refuses, by kind of fault."""


@dataclass(frozen=True)
class Gains:
    """Gains divided by 2^exponent, and so is the top of the scale."""

    gain: Tensor
    exponent: Tensor
    """Per query."""
    top: Tensor | None
    """Per query, the gain of ``max_grade`` under ``ideal="max"``."""


def judge(flavor: Flavor, labels: Tensor, listed: Tensor) -> Judgements:
    """Read the labels of the listed slots; what stands in the others is never looked at."""
    unjudged = labels.isnan() & listed
    infinite = labels.isinf() & listed
    negative = (labels < 0) & listed
    faults = {"infinite": infinite}
    grade = torch.where(listed & ~unjudged & ~infinite, labels, 0.0)
    gainless = unjudged
    if flavor.unjudged == "raise":
        faults["unjudged"] = unjudged
    if flavor.negative != "allow":
        grade = torch.where(negative, 0.0, grade)
        if flavor.negative == "raise":
            faults["negative"] = negative
        elif flavor.negative == "drop":
            listed = listed & ~negative
        else:
            gainless = gainless | negative
    plain = listed & ~gainless
    if flavor.max_grade is not None and _has_top(flavor):
        # The top of the scale in float32 may be a little above the top itself: 0.8 is 0.80000001.
        largest = torch.finfo(torch.float32).max
        in_float32 = grade.new_full((), max(-largest, min(flavor.max_grade, largest)), dtype=torch.float32)
        faults["above_scale"] = plain & (grade > flavor.max_grade) & (grade != in_float32)
    if isinstance(flavor.gain, tuple):
        wrong = plain & ((grade != grade.floor()) | (grade < 0))
        if flavor.off_table == "raise":
            wrong = wrong | (plain & (grade >= len(flavor.gain)))
        faults["off_table"] = wrong
        grade = torch.where(wrong, 0.0, grade)
    return Judgements(grade, listed, listed & ~unjudged, gainless, faults)


def _has_top(flavor: Flavor) -> bool:
    """Whether labels are held against the top of the scale."""
    return flavor.ideal != "max" or flavor.gain not in ("binary", "judged")


def gains_of(flavor: Flavor, judgements: Judgements, counted: Tensor, layout: Layout) -> Gains:
    """The gains of the counted documents; every other slot gains 0.

    NDCG is a ratio, so a common factor of a query's gains cancels. With the largest of them brought to one size,
    grades of 1000 do not overflow an exponential gain, nor labels of 1e308 a linear one; dividing by a power of two
    rounds nothing. The factor is the query's, not the batch's: one huge grade must not cost another query its digits.
    """
    counted = counted & ~judgements.gainless
    grade = torch.where(counted, judgements.grade, 0.0)
    if flavor.ideal == "max" and _has_top(flavor):
        grade = grade.clamp(max=flavor.max_grade)
    if flavor.gain == "exponential":
        exponent = layout.largest(grade)
        top = None
        if flavor.ideal == "max":
            assert flavor.max_grade is not None  # the flavor's own check
            top = torch.full_like(exponent, flavor.max_grade)
            exponent = torch.maximum(exponent, top)
        exponent = exponent.floor() - _TOP.get(grade.dtype, 0)
        gain = _not_lost(_exponential(grade, layout.per_slot(exponent)), grade)
        return Gains(torch.where(counted, gain, 0.0), exponent, None if top is None else _exponential(top, exponent))
    if isinstance(flavor.gain, tuple):
        beyond = len(flavor.gain)
        table = torch.tensor((*flavor.gain, 0.0), dtype=grade.dtype, device=grade.device)
        gain = table[grade.clamp(max=beyond).long()]
    elif callable(flavor.gain):
        gain = _called(flavor, grade, counted)
    elif flavor.gain == "binary":
        gain = (grade > 0).to(grade.dtype)
    elif flavor.gain == "judged":
        gain = torch.ones_like(grade)
    else:
        gain = grade
    gain = torch.where(counted, gain, 0.0)
    largest = layout.largest(gain.abs())
    highest = None
    if flavor.ideal == "max":
        highest = float(top_gain(flavor, None))
        largest = largest.clamp(min=abs(highest))
    # Not frexp, whose exponent the C++ that torch 2.13 compiles to cannot convert; which power it is hardly matters.
    exponent = torch.log2(torch.where(largest > 0, largest, 1.0)).ceil() - _TOP.get(grade.dtype, 0)
    top = None if highest is None else times_power_of_two(torch.full_like(exponent, highest), -exponent)
    return Gains(_not_lost(times_power_of_two(gain, -layout.per_slot(exponent)), gain), exponent, top)


def times_power_of_two(values: Tensor, exponent: Tensor) -> Tensor:
    """The values times 2^exponent, in two steps: 2^1074, which lifts the smallest float64 to 1, is itself infinite."""
    half = (exponent / 2).floor()
    scaled = values * torch.exp2(half) * torch.exp2(exponent - half)
    return torch.where(values == 0, 0.0, scaled)  # 0 * infinity


def _exponential(grade: Tensor, exponent: Tensor) -> Tensor:
    """(2^grade - 1) / 2^exponent."""
    scale = torch.exp2(-exponent)
    # expm1 keeps the digits of a small fraction; exp2 is exact for whole numbers.
    fraction = torch.where(grade.abs() < 1, grade, 0.0)
    whole = grade.floor()
    power = torch.exp2(grade - whole) * torch.exp2(whole - exponent)
    return torch.where(grade.abs() < 1, torch.expm1(fraction * math.log(2.0)) * scale, power - scale)


def _not_lost(scaled: Tensor, gain: Tensor) -> Tensor:
    """The scaled gains, where one that is nothing beside the largest of its query stays above (or below) 0.

    Where a cut-off leaves only such documents in, the query is not an empty one.
    """
    # Its product with a discount has all its digits.
    least = torch.full_like(scaled, torch.finfo(scaled.dtype).tiny * 2.0**22)
    return torch.where((scaled.abs() < least) & (gain != 0), torch.copysign(least, gain), scaled)


def _called(flavor: Flavor, grade: Tensor, counted: Tensor) -> Tensor:
    with not_mapped(
        f"flavor.gain must have a name or be a table where torch.func.vmap maps over labels; got the callable "
        f"{flavor.gain!r}, which is evaluated on the host. Choose 'linear', 'exponential' or a table."
    ):
        distinct, at = torch.unique(grade[counted], return_inverse=True)
    values = host_gain(flavor, np.array(distinct.tolist(), dtype=np.float64)).tolist()
    gain = torch.zeros_like(grade)
    gain[counted] = torch.tensor(values, dtype=grade.dtype, device=grade.device)[at]
    return gain


# -- discounts ------------------------------------------------------------------------------------------------------


def discount_at(flavor: Flavor, ranks: Tensor) -> Tensor:
    """D(r) at real ranks r >= 1, differentiable in r. The discount has a name: a callable knows whole ranks only."""
    if flavor.discount == "log2":
        return 1.0 / torch.log2(ranks + 1.0)
    if flavor.discount == "ln":
        return 1.0 / torch.log(ranks + 1.0)
    if flavor.discount == "reciprocal":
        return 1.0 / ranks
    if flavor.discount == "jarvelin":
        base = flavor.discount_base
        logs = torch.log2(ranks) if base == 2.0 else torch.log(ranks) / math.log(base)
        return 1.0 / logs.clamp(min=1.0)
    return torch.ones_like(ranks)


def discount_table(flavor: Flavor, depth: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0, D(1), ..., D(depth): the entry at 0 serves the slots that have no rank."""
    if callable(flavor.discount):
        table = torch.from_numpy(discounts(flavor, depth)).to(dtype).to(device)
    else:
        table = discount_at(flavor, torch.arange(1, depth + 1, dtype=dtype, device=device))
    return torch.cat([table.new_zeros(1), table])
