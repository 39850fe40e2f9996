"""What labels mean under a flavor: which documents are judged, which are dropped, whose gain a formula gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ndcg_ml.flavor import Flavor
from ndcg_ml.groups import Groups

__all__ = ["Judgements", "judge"]


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """Three layouts of the same queries, each within the one before; where nothing is left out, they are one object.

    Attributes
    ----------
    documents : Groups
        Every document that was not dropped.
    judged : Groups
        Those that have a label.
    graded : Groups
        Those whose gain follows from their label; the others gain 0.
    """

    documents: Groups
    judged: Groups
    graded: Groups


def judge(flavor: Flavor, labels: NDArray[np.float64], groups: Groups) -> Judgements:
    """Apply the flavor's rules for unjudged and negative documents, and refuse what they refuse.

    Raises
    ------
    ValueError
        A label that is infinite, or NaN or negative where the flavor says "raise"; above ``max_grade``; or not a grade
        of the gain table.
    """
    judged = groups
    lowest, highest = _range(labels, groups)
    if np.isnan(lowest):
        missing = np.isnan(labels)
        if flavor.unjudged == "raise":
            n = int(missing.sum() if groups.order is None else missing[groups.order].sum())
            raise ValueError(
                f"y_true must not hold NaN (an unjudged document) under unjudged='raise'; got {n} of "
                f"{groups.sizes.sum()}. Remove them, or choose unjudged='zero' or 'condense'."
            )
        judged = groups.keep(~missing)
        lowest, highest = _range(labels, judged)
    if not (np.isfinite(lowest) and np.isfinite(highest)):
        raise ValueError(f"y_true must be finite; got labels from {lowest} to {highest}.")
    graded = judged
    if lowest < 0 and flavor.negative != "allow":
        negative = labels < 0
        if flavor.negative == "raise":
            n = int(negative.sum() if judged.order is None else negative[judged.order].sum())
            raise ValueError(
                f"y_true must be >= 0 under negative='raise'; got {n} negative labels, the lowest {lowest}. "
                "Shift the grades, or choose negative='zero', 'drop' or 'allow'."
            )
        graded = judged.keep(~negative)
        if flavor.negative == "drop":
            same = judged is groups
            judged = graded
            groups = graded if same else groups.keep(~negative)
    _check_grades(flavor, labels, graded)
    return Judgements(groups, judged, graded)


def _range(labels: NDArray[np.float64], groups: Groups) -> tuple[float, float]:
    listed = labels if groups.order is None else labels[groups.order]
    return (float(listed.min()), float(listed.max())) if listed.size else (0.0, 0.0)


def _check_grades(flavor: Flavor, labels: NDArray[np.float64], graded: Groups) -> None:
    if (
        flavor.max_grade is not None
        and graded.sizes.any()
        and (highest := _range(labels, graded)[1]) > flavor.max_grade
    ):
        listed = labels if graded.order is None else labels[graded.order]
        with np.errstate(over="ignore", under="ignore"):
            in_float32 = float(np.float32(flavor.max_grade))  # which may be a little above it: 0.8 is 0.80000001
        if highest != in_float32 or ((listed > flavor.max_grade) & (listed != in_float32)).any():
            raise ValueError(
                f"y_true must not exceed Flavor.max_grade={flavor.max_grade}; got {highest}. "
                "Raise max_grade to the top of the grade scale."
            )
    if isinstance(flavor.gain, tuple):
        listed = labels if graded.order is None else labels[graded.order]
        wrong = (listed != np.floor(listed)) | (listed < 0)
        if flavor.off_table == "raise":
            wrong |= listed >= len(flavor.gain)
        if wrong.any():
            top = f"from 0 to {len(flavor.gain) - 1}" if flavor.off_table == "raise" else ">= 0"
            raise ValueError(
                f"y_true must hold integer grades {top} for a gain table of {len(flavor.gain)} entries; got "
                f"{listed[wrong][0]:g}. Extend the table, or use gain='linear' or 'exponential', which take any label."
            )
