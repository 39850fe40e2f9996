"""Cut queries: some of their rows are scored, the others are in training or nowhere. NDCG needs whole queries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._data.groups import Groups
from ndcg_ml._data.queries import by_ids, ids_as_array
from ndcg_ml._one_line import shown
from ndcg_ml.sklearn.call_stack import Split

__all__ = ["CutQueryWarning", "TrainedQueries", "WholeQueries", "refuse_cut_queries"]

_FIX = (
    "NDCG is defined on whole queries. Split by query: cv=GroupKFold(5) with groups=qid, or "
    "cv=ndcg_ml.sklearn.QueryKFold(5, qid=qid). An integer cv, KFold, ShuffleSplit and HalvingGridSearchCV with "
    "resource='n_samples' split by rows"
)


class CutQueryWarning(UserWarning):
    """A query that is scored has rows in training, but not these."""


class WholeQueries:
    """The queries of a data set with their numbers of rows, to tell whether a part of it holds whole queries.

    Parameters
    ----------
    qid : array-like of shape (n_rows,)
        The query of each row of the data set, in any order.
    """

    def __init__(self, qid: ArrayLike) -> None:
        ids = ids_as_array(qid)
        layout = by_ids(ids, ids.size)
        assert layout.ids is not None
        self.sizes: dict[Any, int] = dict(zip(layout.ids.tolist(), layout.sizes.tolist(), strict=True))

    def __repr__(self) -> str:
        return f"<{sum(self.sizes.values())} rows of {len(self.sizes)} queries>"

    def refuse_cut(self, scored_ids: NDArray[Any], fix: str = "") -> None:
        """Raise ValueError if these rows are not all rows of their queries."""
        layout = by_ids(scored_ids, scored_ids.size)
        assert layout.ids is not None
        here = dict(zip(layout.ids.tolist(), layout.sizes.tolist(), strict=True))
        other = [query for query in here if query not in self.sizes]
        if other:
            raise ValueError(
                f"the queries that are scored must be among those of ndcg_scorer(..., qid=); {len(other)} of "
                f"{len(here)} are not, the first is {shown(other[0])}. Give it the ids of all rows that are split; for "
                "another data set, make another scorer."
            )
        cut = [query for query, rows in here.items() if rows != self.sizes[query]]
        if cut:
            raise ValueError(
                f"the split cuts {len(cut)} of the {len(here)} queries that it scores: of query {shown(cut[0])}, "
                f"{here[cut[0]]} of {self.sizes[cut[0]]} rows are here. {_FIX}.{fix}"
            )


def refuse_cut_queries(split: Split, known: WholeQueries | None) -> None:
    """Raise ValueError if a query that is scored is cut; `known`, if given, says how many rows a whole one has."""
    times = np.bincount(split.test, minlength=split.all_ids.size)
    if times.max() > 1:
        row = int(np.argmax(times))
        query = shown(split.all_ids[row : row + 1].tolist()[0])
        raise ValueError(
            f"the split must score each row once; row {row}, of query {query}, appears "
            f"{times[row]} times, as in a sample with replacement. Sample whole queries, and give each copy of a query "
            "a new id."
        )
    if known is None:
        WholeQueries(split.all_ids).refuse_cut(
            split.all_ids[split.test],
            " If rows were left out on purpose, say which are in use: ndcg_scorer(..., qid=qid[in_use])",
        )


# -- what a fitted ranker remembers ------------------------------------------------------------------------------


class TrainedQueries(NamedTuple):
    """The queries that a ranker was fitted on, with a digest of each one's labels, to recognize a cut query later."""

    ids: NDArray[Any]
    digests: NDArray[np.uint64]

    @classmethod
    def of(cls, layout: Groups, labels: NDArray[Any]) -> TrainedQueries:
        """The queries of these rows."""
        assert layout.ids is not None
        mixed = _mixed(labels)
        mixed = layout.listed(mixed)
        return cls(layout.ids, np.add.reduceat(mixed, layout.starts))

    def other_rows(self, layout: Groups, labels: NDArray[Any]) -> str | None:
        """A sentence about queries that have other rows here than in training, or None."""
        here = TrainedQueries.of(layout, labels)
        known = {query: at for at, query in enumerate(self.ids.tolist())}
        shared = [(at, known[query]) for at, query in enumerate(here.ids.tolist()) if query in known]
        if not shared:
            return None
        mine, theirs = np.array(shared).T
        other = here.digests[mine] != self.digests[theirs]
        if not other.any():
            return None
        first = here.ids.tolist()[mine[np.argmax(other)]]
        return (
            f"{other.sum()} of {here.ids.size} queries that are scored were also in training with other rows, "
            f"the first is {shown(first)}. If these are the same queries, they were cut: {_FIX}. If the ids of this "
            "data set start again from the same numbers, make them different from those of the training data"
        )


def _mixed(values: NDArray[Any]) -> NDArray[np.uint64]:
    """A well-spread 64-bit number for each value (the finaliser of splitmix64, Steele et al. 2014), so that sums tell
    multisets apart. A value is what it is in float32, because labels come in float64 here and in float32 there.
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    bits = (rounded + np.float32(0)).astype(np.float64).view(np.uint64)  # + 0: -0.0 is 0
    bits += np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return bits
