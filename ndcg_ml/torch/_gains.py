"""What labels mean under a flavor, and gains and discounts as tensors: the only home of these rules in torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml._kernel.gains import discounts, top_gain
from ndcg_ml._kernel.gains import gain as host_gain
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._layout import Layout, Padded
from ndcg_ml.torch._transforms import host_may_look, not_mapped

# Exponent of 2 to which the largest gain of a query is scaled: above is room for sums, below for small gains.
# float32 has no such room.
_TOP = {torch.float64: 400}
# Gains of float64 within these bounds can be summed and divided as they are.
_SMALL, _LARGE = 2.0**-500, 2.0**500


def working_dtype(device: torch.device) -> torch.dtype:
    """float64, or float32 on devices that have no other."""
    return torch.float32 if device.type == "mps" else torch.float64


# -- from labels to gains -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgements:
    """Labels as the flavor reads them, one entry per slot."""

    grade: Tensor
    """The label, in the working dtype; 0 where there is none, or one that does not count."""
    listed: Tensor
    """Which slots hold a document that takes part."""
    judged: Tensor
    """Which documents have a label."""
    gainless: Tensor | None
    """Which documents gain 0 whatever the formula says of their grade; None is none of them."""
    refused: Tensor
    """Which queries hold a label that the flavor refuses."""
    dtype: torch.dtype
    """The dtype of the labels, which says how large they can be, and whether they are whole."""
    highest: float = math.inf
    """No grade of the batch is above this, as far as the host has looked."""


@dataclass(frozen=True)
class Gains:
    """Gains times 2^shift, and so is the top of the scale."""

    gain: Tensor
    shift: Tensor | None
    """Per query; None where nothing had to be shifted."""
    top: Tensor | None
    """Per query, the gain of ``max_grade`` under ``ideal="max"``."""


def judge(flavor: Flavor, labels: Tensor, listed: Tensor, layout: Layout, *, full: bool = False) -> Judgements:
    """Read the labels of the listed slots; what stands in the others is never looked at.

    `full` says that all slots are listed, which saves a look at who is.
    """
    grade = labels.to(working_dtype(labels.device))
    # Each operation is a launch on a device, and these are all that most flavors need.
    if _takes_no_other_label_than_a_finite_one_above_zero(flavor):
        # If a look costs no wait, the least and the largest label of the batch say whether anything can be refused.
        if isinstance(layout, Padded) and labels.numel() and host_may_look(labels):
            seen = grade if full else grade.masked_fill(~listed, 0.0)
            least, highest = (float(bound) for bound in torch.aminmax(seen))
            if least >= 0 and highest < math.inf:
                none = torch.zeros(seen.shape[0], dtype=torch.bool)
                return Judgements(seen, listed, listed, None, none, labels.dtype, highest)
        if not labels.is_floating_point():
            # The least label of a query says it all, and no slot has to be looked at by itself.
            grade = grade if full else grade.masked_fill(~listed, 0.0)
            refused = layout.least(grade) < 0
            return Judgements(grade.clamp(min=0.0), listed, listed, None, refused, labels.dtype)
        sound = (grade >= 0) & (grade < math.inf)
        if not full:
            sound = sound & listed
        unsound = ~sound
        refused = layout.any_of(unsound if full else listed & unsound)
        return Judgements(grade.masked_fill(unsound, 0.0), listed, listed, None, refused, labels.dtype)
    faults = label_faults(flavor, grade, listed)
    # A label that is none, or none that counts, has the grade 0, so that no formula meets it.
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
    # A gain table is indexed by the grade, so that one without an entry must not reach it.
    if "off_table" in faults:
        sound = sound & ~faults["off_table"]
    refused = layout.any_of(torch.stack(list(faults.values())).any(0))
    return Judgements(grade.masked_fill(~sound, 0.0), listed, judged & ~unjudged, gainless, refused, labels.dtype)


def label_faults(flavor: Flavor, labels: Tensor, listed: Tensor) -> dict[str, Tensor]:
    """Which listed slots hold a label that the flavor refuses, by kind of fault; ``judge`` only asks whether any is."""
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
        # The top of the scale in float32 may be a little above the top itself: 0.8 is 0.80000001.
        largest = torch.finfo(torch.float32).max
        in_float32 = labels.new_full((), max(-largest, min(flavor.max_grade, largest)), dtype=torch.float32)
        faults["above_scale"] = plain & (labels > flavor.max_grade) & (labels != in_float32)
    if isinstance(flavor.gain, tuple):
        wrong = (labels != labels.floor()) | (labels < 0)
        if flavor.off_table == "raise":
            wrong = wrong | (labels >= len(flavor.gain))
        faults["off_table"] = plain & wrong
    return faults


def _takes_no_other_label_than_a_finite_one_above_zero(flavor: Flavor) -> bool:
    return (
        flavor.negative == flavor.unjudged == "raise"
        and not isinstance(flavor.gain, tuple)
        and (flavor.max_grade is None or not _has_top(flavor))
    )


def _has_top(flavor: Flavor) -> bool:
    """Whether labels are held against the top of the scale."""
    return flavor.ideal != "max" or flavor.gain not in ("binary", "judged")


def may_be_negative(flavor: Flavor) -> bool:
    """Whether a document can gain less than one that has no gain."""
    if isinstance(flavor.gain, tuple):
        return bool(min(flavor.gain) < 0)
    return callable(flavor.gain) or (flavor.negative == "allow" and flavor.gain in ("linear", "exponential"))


def gains_of(flavor: Flavor, judgements: Judgements, counted: Tensor, layout: Layout) -> Gains:
    """The gains of the counted documents; every other slot gains 0.

    NDCG is a ratio, so a common factor of a query's gains cancels. With the largest of them brought to one size,
    grades of 1000 do not overflow an exponential gain, nor labels of 1e308 a linear one; dividing by a power of two
    rounds nothing. The factor is the query's, not the batch's: one huge grade must not cost another query its digits.
    """
    # Documents that do not count get the grade 0 here; documents that were not listed have it already.
    if judgements.gainless is not None:
        counted = counted & ~judgements.gainless
    grade = judgements.grade
    if counted is not judgements.listed:
        grade = grade.masked_fill(~counted, 0.0)
    if flavor.ideal == "max" and _has_top(flavor):
        grade = grade.clamp(max=flavor.max_grade)
    # The one formula that needs its factor before it can be computed.
    if flavor.gain == "exponential":
        if _needs_no_factor(flavor, judgements):
            whole = not judgements.dtype.is_floating_point
            return Gains(torch.exp2(grade) - 1.0 if whole else _exponential(grade, None), None, None)
        return _exponential_gains(flavor, grade, judgements.dtype, layout)
    # Grade 0 gains nothing under "linear" and "binary"; under the others it may, and then those who do not count would.
    if isinstance(flavor.gain, tuple):
        beyond = len(flavor.gain)
        table = torch.tensor((*flavor.gain, 0.0), dtype=grade.dtype, device=grade.device)
        gain = table[grade.clamp(max=beyond).long()].masked_fill(~counted, 0.0)
    elif callable(flavor.gain):
        gain = _called(flavor, grade, counted)
    elif flavor.gain == "binary":
        gain = (grade > 0).to(grade.dtype)
    elif flavor.gain == "judged":
        gain = counted.to(grade.dtype)
    else:
        gain = grade
    highest = float(top_gain(flavor, None)) if flavor.ideal == "max" else None
    if not _may_overflow(flavor, grade.dtype, judgements.dtype, highest):
        top = None if highest is None else torch.full_like(layout.per_query(gain), highest)
        return Gains(gain, None, top)
    return _scaled(gain, highest, layout)


def _may_overflow(flavor: Flavor, working: torch.dtype, labels: torch.dtype, highest: float | None) -> bool:
    """Whether sums or ratios of the gains may leave the working dtype, as far as flavor and dtypes tell."""
    if working != torch.float64 or callable(flavor.gain):
        return True
    if isinstance(flavor.gain, tuple):
        known = (*flavor.gain, highest or 0.0)
        return any(value != 0 and not _SMALL < abs(value) < _LARGE for value in known)
    if highest not in (None, 0.0) and not _SMALL < abs(highest) < _LARGE:
        return True
    return flavor.gain == "linear" and labels == torch.float64


def _needs_no_factor(flavor: Flavor, judgements: Judgements) -> bool:
    """Whether the host has seen that no exponential gain is large, nor so small that float64 would lose its digits."""
    narrow = judgements.dtype != torch.float64
    return narrow and judgements.highest <= _TOP[torch.float64] and flavor.ideal != "max"


def _scaled(gain: Tensor, highest: float | None, layout: Layout) -> Gains:
    """The gains, divided by the power of two that brings the largest of each query to one size."""
    largest = layout.largest(gain.abs())
    if highest is not None:
        largest = largest.clamp(min=abs(highest))
    # Not frexp, whose exponent the C++ that torch 2.13 compiles to cannot convert; which power it is hardly matters.
    shift = _TOP.get(gain.dtype, 0) - torch.log2(largest.masked_fill(largest <= 0, 1.0)).ceil()
    top = None if highest is None else times_power_of_two(torch.full_like(shift, highest), shift)
    return Gains(_not_lost(times_power_of_two(gain, layout.per_slot(shift)), gain), shift, top)


def times_power_of_two(values: Tensor, exponent: Tensor) -> Tensor:
    """The values times 2^exponent, in two steps: 2^1074, which lifts the smallest float64 to 1, is itself infinite."""
    half = (exponent / 2).floor()
    scaled = values * torch.exp2(half) * torch.exp2(exponent - half)
    return scaled.masked_fill(values == 0, 0.0)  # 0 * infinity


def _exponential_gains(flavor: Flavor, grade: Tensor, labels: torch.dtype, layout: Layout) -> Gains:
    """2^grade - 1 for each slot; 0 for a grade of 0."""
    largest = layout.largest(grade if flavor.negative != "allow" else grade.clamp(min=0.0))
    top = None
    if flavor.ideal == "max":
        assert flavor.max_grade is not None  # the flavor's own check
        top = torch.full_like(largest, flavor.max_grade)
        largest = torch.maximum(largest, top)
    whole = not labels.is_floating_point
    if not whole or top is not None:
        largest = largest.floor()
    shift = _TOP.get(grade.dtype, 0) - largest
    per_slot = layout.per_slot(shift)
    if whole:  # this has all digits of the gain
        gain = torch.exp2(grade + per_slot) - torch.exp2(per_slot)
    else:
        gain = _exponential(grade, per_slot)
    # Beside a large gain a small one may be lost, which must not make its document an irrelevant one.
    if whole and flavor.negative != "allow":
        gain = torch.maximum(gain, grade.clamp(max=_least(gain.dtype)))  # 0 for grade 0, and the least for any other
    else:
        gain = _not_lost(gain, grade)
    return Gains(gain, shift, None if top is None else _exponential(top, shift))


def _exponential(grade: Tensor, shift: Tensor | None) -> Tensor:
    """(2^grade - 1) 2^shift; None is a shift of 0."""
    scale: Tensor | float = 1.0 if shift is None else torch.exp2(shift)
    # expm1 keeps the digits of a small fraction; exp2 is exact for whole numbers.
    small = grade.abs() < 1
    whole = grade.floor()
    power = torch.exp2(grade - whole) * torch.exp2(whole if shift is None else whole + shift)
    fraction = torch.expm1(grade.masked_fill(~small, 0.0) * math.log(2.0)) * scale
    return torch.where(small, fraction, power - scale)


def _not_lost(scaled: Tensor, gain: Tensor) -> Tensor:
    """The scaled gains, where one that is nothing beside the largest of its query stays above (or below) 0.

    Where a cut-off leaves only such documents in, the query is not an empty one.
    """
    least = torch.full_like(scaled, _least(scaled.dtype))
    return torch.where((scaled.abs() < least) & (gain != 0), torch.copysign(least, gain), scaled)


def _least(dtype: torch.dtype) -> float:
    """The smallest gain beside the largest of a query; its product with a discount has all its digits."""
    return float(torch.finfo(dtype).tiny) * 2.0**22


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
        return torch.log2(ranks + 1.0).reciprocal()
    if flavor.discount == "ln":
        return torch.log(ranks + 1.0).reciprocal()
    if flavor.discount == "reciprocal":
        return ranks.reciprocal()
    if flavor.discount == "jarvelin":
        base = flavor.discount_base
        logs = torch.log2(ranks) if base == 2.0 else torch.log(ranks) / math.log(base)
        return logs.clamp(min=1.0).reciprocal()
    return 0.0 * ranks + 1.0  # a constant that stays in the graph, so that a loss has a gradient, of 0


def discounts_from(flavor: Flavor, depth: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """D(1), ..., D(depth)."""
    if callable(flavor.discount):
        return torch.from_numpy(discounts(flavor, depth)).to(dtype).to(device)
    return discount_at(flavor, torch.arange(1, depth + 1, dtype=dtype, device=device))


def discount_table(flavor: Flavor, depth: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0, D(1), ..., D(depth): the entry at 0 serves the slots that have no rank."""
    return pad(discounts_from(flavor, depth, dtype, device), (1, 0))
