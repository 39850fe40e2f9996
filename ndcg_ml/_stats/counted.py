"""Which queries count in a mean, and what each weighs: read from the table of queries of an evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._kernel.totals import Totals
from ndcg_ml._stats.means import Means

if TYPE_CHECKING:
    from ndcg_ml.result import Evaluation

__all__ = ["by_cutoff", "counted", "cutoffs_of", "means_of"]

FloatArray = NDArray[np.float64]


def cutoffs_of(evaluation: Evaluation[Any]) -> tuple[int | None, ...]:
    """The cut-offs of an evaluation, in the order of the columns of its table."""
    return evaluation.k if isinstance(evaluation.k, tuple) else (evaluation.k,)


def by_cutoff(evaluation: Evaluation[Any], what: Any) -> dict[int | None, Any]:
    """A value, a count or an interval of an evaluation as a dict by cut-off, of one cut-off as of several."""
    return what if isinstance(what, dict) else {cutoffs_of(evaluation)[0]: what}


def counted(evaluation: Evaluation[Any], k: int | None) -> tuple[FloatArray, FloatArray]:
    """NDCG of every query at this cut-off, and its share of the mean; 0 is the share of one that does not count.

    The value is the sum of share times NDCG. A query does not count if its weight is 0, if it is empty and the flavor
    skips it, or if it is empty in a micro average.
    """
    table, flavor = evaluation.per_query, evaluation.flavor
    several = table.ndcg.ndim == 2
    column = cutoffs_of(evaluation).index(k)
    ndcg, ideal = (each[:, column] if several else each for each in (table.ndcg, table.idcg))
    if flavor.aggregate == "micro":
        if np.isinf(ideal).any():
            raise ValueError(
                "the ideal DCG of a query is too large for float64, and with aggregate='micro' it is the query's "
                "weight. Use a smaller grade scale."
            )
        ideal = ideal / max(ideal.max(), np.finfo(np.float64).tiny)  # which no weight then lifts out of float64
    totals = Totals((k,), table.qid, np.zeros((ideal.size, 1)), ideal[:, None], None, table.weight)
    return ndcg, totals.shares(flavor, k)[1]


def means_of(evaluation: Evaluation[Any], ks: tuple[int | None, ...]) -> list[tuple[tuple[int | None, ...], Means]]:
    """The means at these cut-offs, those together at which the same queries count.

    Raises
    ------
    ValueError
        Fewer than two queries count, or one has no value.
    """
    groups: dict[bytes, list[tuple[int | None, FloatArray, FloatArray]]] = {}
    for k in ks:
        ndcg, share = counted(evaluation, k)
        counts = share > 0
        n_missing = int(np.isnan(ndcg[counts]).sum())
        if n_missing:
            raise ValueError(
                f"the value is nan, because {n_missing} of {ndcg.size} queries are empty under empty=nan, so it has no "
                "interval and no standard error. Choose a flavor that says what they score: "
                "flavor.replace(empty='skip')."
            )
        if counts.sum() < 2:
            raise ValueError(
                "at least two queries must count in the mean, because the spread of one is not known; got "
                f"{int(counts.sum())} of {ndcg.size}. Evaluate more queries."
            )
        groups.setdefault(counts.tobytes(), []).append((k, ndcg[counts], share[counts]))
    return [
        (
            tuple(k for k, *_ in group),
            Means.of(np.stack([each for _, each, _ in group], axis=1), np.stack([each for *_, each in group], axis=1)),
        )
        for group in groups.values()
    ]
