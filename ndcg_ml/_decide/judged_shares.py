"""Compare the shares of judged documents above the cut-off (judged@k) of systems."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from ndcg_ml._core.arrays import FloatArray
from ndcg_ml._core.one_line import visible
from ndcg_ml._decide.matching import Matched

Unjudged: TypeAlias = Literal["warn", "refuse", "accept"]

UNEVEN = 0.05
"""A larger difference of judged@k between two systems is reported."""


def judged_fractions(table: Matched) -> FloatArray | None:
    """Return the mean judged@k of each source; None if it is unknown for one of them."""
    fractions = []
    for at, source in enumerate(table.sources):
        judged = getattr(source.evaluation and source.evaluation.per_query, "judged", None)
        if judged is None or source.evaluation is None:
            return None
        if judged.ndim == 2:
            judged = judged[:, source.evaluation._totals.ks.index(source.k)]
        of_query = judged[table.rows[:, at]]
        known = ~np.isnan(of_query)  # nan if nothing was retrieved
        fractions.append(float(of_query[known].mean()) if known.any() else float("nan"))
    return np.array(fractions)


def favoured(names: Sequence[str], judged: Sequence[float], values: Sequence[float]) -> str | None:
    """Describe which system is favoured and by about how much; None if judged@k hardly differs.

    An unjudged document has gain 0. If the unjudged documents of a system were as good as its judged ones, its value
    would be about value / judged.
    """
    known = [i for i, share in enumerate(judged) if share > 0]
    if len(known) < 2:
        return None
    most, least = max(known, key=lambda i: judged[i]), min(known, key=lambda i: judged[i])
    if judged[most] - judged[least] <= UNEVEN:
        return None
    gain = values[least] * (1 / judged[least] - 1) - values[most] * (1 / judged[most] - 1)
    best = visible(names[most])
    about = f" by about {gain:.3f}" if gain > 0 else ""
    return (
        f"judged@k differs: {100 * judged[most]:.0f} % of the documents of {best} above the cut-off are judged, "
        f"and {100 * judged[least]:.0f} % of those of {visible(names[least])}. Unjudged documents have gain 0, "
        f"which favours {best}{about} if unjudged documents are as good as judged ones"
    )


def check_unjudged(
    names: Sequence[str], judged: Sequence[float], values: Sequence[float], unjudged: Unjudged, stacklevel: int
) -> None:
    """Warn about a differing judged@k, refuse it, or accept it.

    Raises
    ------
    ValueError
        The judged@k differ, under "refuse".
    """
    words = favoured(names, judged, values)
    if words is None:
        return
    if unjudged == "refuse":
        raise ValueError(
            f"unjudged='refuse' requires judged@k that differ by at most {UNEVEN:g}, but {words}. Judge more "
            "documents, evaluate under a flavor with unjudged='condense', or pass unjudged='warn'."
        )
    if unjudged == "warn":
        warnings.warn(f"{words}. Pass unjudged='accept' to accept this.", UserWarning, stacklevel)
