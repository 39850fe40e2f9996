"""Detect cut queries: only some of their rows are scored, but NDCG needs all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._core.one_line import brief
from ndcg_ml._core.queries import group_by_ids, ids_as_array
from ndcg_ml.sklearn.call_stack import Split

__all__ = ["CutQueryWarning", "WholeQueries", "refuse_cut_queries"]

_FIX = (
    "NDCG is defined on whole queries. Split by query: cv=GroupKFold(5) with groups=qid, or "
    "cv=ndcg_ml.sklearn.QueryKFold(5, qid=qid). An integer cv, KFold, ShuffleSplit and HalvingGridSearchCV with "
    "resource='n_samples' split by rows"
)


class CutQueryWarning(UserWarning):
    """A query is scored with more or fewer rows than it had in training."""


class WholeQueries:
    """The queries of a data set and their numbers of rows, for detecting cut queries in parts of it.

    Parameters
    ----------
    qid : array-like of shape (n_rows,)
        The query of each row of the data set, in any order.
    """

    def __init__(self, qid: ArrayLike) -> None:
        self.sizes: dict[Any, int] = _sizes(ids_as_array(qid))

    def __repr__(self) -> str:
        return f"<{sum(self.sizes.values())} rows of {len(self.sizes)} queries>"

    def refuse_cut(self, scored_ids: NDArray[Any], fix: str = "") -> None:
        """Raise ValueError if these rows are not all rows of their queries."""
        scored = _sizes(scored_ids)
        other = [query for query in scored if query not in self.sizes]
        if other:
            raise ValueError(
                f"the queries that are scored must be among those of ndcg_scorer(..., qid=); {len(other)} of "
                f"{len(scored)} are not, the first is {brief(other[0])}. Pass the ids of all rows that are split; for "
                "another data set, create another scorer."
            )
        cut = [query for query, rows in scored.items() if rows != self.sizes[query]]
        if cut:
            raise ValueError(
                f"the split cuts {len(cut)} of the {len(scored)} queries that it scores: {scored[cut[0]]} of the "
                f"{self.sizes[cut[0]]} rows of query {brief(cut[0])} are scored. {_FIX}.{fix}"
            )

    def cut_elsewhere(self, scored_ids: NDArray[Any]) -> str | None:
        """Return a warning about queries whose numbers of rows differ from those in training, or None."""
        scored = _sizes(scored_ids)
        cut = [query for query, rows in scored.items() if self.sizes.get(query, rows) != rows]
        if not cut:
            return None
        return (
            f"{len(cut)} of {len(scored)} queries that are scored were also in training with other rows, the first is "
            f"{brief(cut[0])}. If these are the same queries, they were cut: {_FIX}. If they are others, give them ids "
            "that differ from those of the training data"
        )


def _sizes(ids: NDArray[Any]) -> dict[Any, int]:
    """Return the number of rows of each query."""
    layout = group_by_ids(ids, ids.size)
    assert layout.ids is not None
    return dict(zip(layout.ids.tolist(), layout.sizes.tolist(), strict=True))


def refuse_cut_queries(split: Split, known: WholeQueries | None) -> None:
    """Raise ValueError if a scored query is cut. `known`, if given, has the sizes of whole queries."""
    times = np.bincount(split.test, minlength=split.all_ids.size)
    if times.max() > 1:
        row = int(np.argmax(times))
        query = brief(split.all_ids[row : row + 1].tolist()[0])
        raise ValueError(
            f"the split must score each row once; row {row}, of query {query}, appears "
            f"{times[row]} times, as in a sample with replacement. Sample whole queries, and give each copy of a query "
            "a new id."
        )
    if known is None:
        WholeQueries(split.all_ids).refuse_cut(
            split.all_ids[split.test],
            " If rows were left out on purpose, pass the ids of the others: ndcg_scorer(..., qid=qid[in_use])",
        )
