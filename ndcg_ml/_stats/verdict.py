"""Map a difference's interval to a verdict."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ndcg_ml._checks import as_float
from ndcg_ml._one_line import shown
from ndcg_ml._stats.means import SAME

Verdict: TypeAlias = Literal["better", "worse", "not worse", "equivalent", "unchanged", "undecided"]

FEWEST_QUERIES = 6
"""With fewer queries, or clusters of them, the exact test cannot reach 5 %: its least p-value is 2^(1-n)."""


def verdict(low: float, high: float, n_queries: int, margin: float | None) -> Verdict:
    """Return the verdict on a difference b - a whose interval is low to high.

    Parameters
    ----------
    low, high : float
        Limits of the interval of the difference.
    n_queries : int
        Independent queries, or clusters of them. With fewer than six the margin is ignored.
    margin : float or None
        Equivalence margin.

    Returns
    -------
    {"better", "worse", "not worse", "equivalent", "undecided"}
        Whether any query changed is for the caller to say: "unchanged" is none of these.
        ``equivalent``: all of the interval is within the margin on both sides, be it above 0, below 0 or about it (the
        two one-sided tests of D. Schuirmann, 1987). Otherwise ``better``: all of it is above 0; ``worse``: all of it is
        below 0; ``not worse``: all of it is above -margin (non-inferiority). Without a margin only ``better``,
        ``worse`` and ``undecided``.

    Examples
    --------
    >>> verdict(0.002, 0.03, 50, 0.01), verdict(-0.004, 0.03, 50, 0.01), verdict(-0.004, 0.003, 50, 0.01)
    ('better', 'not worse', 'equivalent')
    >>> verdict(-0.02, -0.004, 50, 0.01), verdict(-0.02, 0.004, 50, 0.01), verdict(-0.004, 0.003, 50, None)
    ('worse', 'undecided', 'undecided')
    """
    if n_queries < FEWEST_QUERIES:  # too few to say that a difference is small
        margin = None
    if margin is not None and -margin < low and high < margin:
        return "equivalent"
    if low > SAME:
        return "better"
    if high < -SAME:
        return "worse"
    return "not worse" if margin is not None and low > -margin else "undecided"


def as_margin(margin: object) -> float | None:
    """The margin as a float above 0, or None."""
    if margin is None:
        return None
    number = as_float(margin)
    if number is None:
        raise TypeError(f"margin must be a number above 0, or None; got {shown(margin)}.")
    if not 0 < number < float("inf"):
        raise ValueError(
            f"margin must be above 0, the largest difference that does not matter, such as 0.01; got {shown(margin)}. "
            "Leave it out to ask for better or worse alone."
        )
    return number
