"""Decide: from the interval of a difference and a margin to the verdict."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ndcg_ml._plain.checks import positive_number
from ndcg_ml._statistics.intervals import FEWEST_FOR_TEST
from ndcg_ml._statistics.means import SAME

Verdict: TypeAlias = Literal["better", "worse", "not worse", "equivalent", "unchanged", "undecided"]

PASSES = ("better", "not worse", "equivalent", "unchanged", "too few")
"""Verdicts with which a check of a gate passes, also if a segment has too few queries to test."""
DECIDED = ("better", "worse", "not worse", "equivalent")
"""Verdicts that tell two systems apart or show that they are equivalent."""


def verdict(
    low: float, high: float, n_units: int, margin: float | None, *, changed: bool = True, settled: bool = True
) -> Verdict:
    """Return the verdict on a difference b - a whose interval is low to high.

    Parameters
    ----------
    low, high : float
        Limits of the interval of the difference.
    n_units : int
        Number of sampling units: independent queries or clusters. With fewer than six, the margin is ignored.
    margin : float or None
        Equivalence margin.
    changed : bool
        Whether any query has a different value.
    settled : bool
        Whether the difference keeps its sign however unjudged documents are graded, if that is required.

    Returns
    -------
    {"better", "worse", "not worse", "equivalent", "unchanged", "undecided"}
        ``undecided`` if the sign is not settled, and ``unchanged`` if no query changed. Otherwise ``equivalent`` if the
        interval is within the margin on both sides (the two one-sided tests of D. Schuirmann, 1987). Otherwise
        ``better`` if it is above 0, ``worse`` if it is below 0, and ``not worse`` if it is above -margin
        (non-inferiority). Without a margin, ``equivalent`` and ``not worse`` are not possible.

    Examples
    --------
    >>> verdict(0.002, 0.03, 50, 0.01), verdict(-0.004, 0.03, 50, 0.01), verdict(-0.004, 0.003, 50, 0.01)
    ('better', 'not worse', 'equivalent')
    >>> verdict(-0.02, -0.004, 50, 0.01), verdict(-0.02, 0.004, 50, 0.01), verdict(-0.004, 0.003, 50, None)
    ('worse', 'undecided', 'undecided')
    """
    if not settled:
        return "undecided"
    if not changed:
        return "unchanged"
    if n_units < FEWEST_FOR_TEST:  # too few to show that a difference is small
        margin = None
    if margin is not None and -margin < low and high < margin:
        return "equivalent"
    if low > SAME:
        return "better"
    if high < -SAME:
        return "worse"
    if margin is not None and -margin < low:
        return "not worse"
    return "undecided"


def as_margin(margin: object, most: float) -> float | None:
    """Return the margin as a float above 0 and below `most`, or None."""
    hint = " It is the largest difference that does not matter, such as 0.01. Leave it out if any difference matters."
    return None if margin is None else positive_number(margin, "margin", most, hint)
