"""Queries cut by a split: some of their rows scored, the others in training or nowhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._shown import shown
from ndcg_ml.groups import Groups
from ndcg_ml.queries import by_ids, ids_as_array
from ndcg_ml.sklearn.query_ids import column_of

__all__ = ["CutQueryWarning", "KnownQueries", "Split", "TrainedQueries", "current_split", "refuse_cut_queries"]

_FIX = (
    "NDCG is defined on whole queries. Split by query: cv=GroupKFold(5) with groups=qid, or "
    "cv=ndcg_ml.sklearn.QueryKFold(5, qid=qid). An integer cv, KFold, ShuffleSplit and HalvingGridSearchCV with "
    "resource='n_samples' split by rows"
)


class CutQueryWarning(UserWarning):
    """A query that is scored has rows in training, but not these."""


class KnownQueries:
    """The queries of a data set and how many rows each has, by which a part of it is seen to cut them.

    Parameters
    ----------
    qid : array-like, shape (n_rows,)
        The query of each row of the data set, in any order.
    """

    def __init__(self, qid: Any) -> None:
        ids = ids_as_array(qid)
        layout = by_ids(ids, ids.size)
        assert layout.ids is not None
        self.sizes: dict[Any, int] = dict(zip(layout.ids.tolist(), layout.sizes.tolist(), strict=True))

    def __repr__(self) -> str:
        return f"<{sum(self.sizes.values())} rows of {len(self.sizes)} queries>"

    def refuse_cut(self, scored_ids: NDArray[Any], fix: str = "") -> None:
        """Raise ValueError where these rows are not all rows of the queries that they are of."""
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


class Split(NamedTuple):
    """The split of one data set that is being scored: the ids of all its rows, and which rows are scored."""

    all_ids: NDArray[Any]
    test: NDArray[np.int64]


def refuse_cut_queries(split: Split, known: KnownQueries | None) -> None:
    """Raise ValueError where a query that is scored is not whole; `known` decides what whole is, if it is given."""
    times = np.bincount(split.test, minlength=split.all_ids.size)
    if times.max() > 1:
        row = int(np.argmax(times))
        query = shown(split.all_ids[row : row + 1].tolist()[0])
        raise ValueError(
            f"the split must score each row once; row {row}, of query {query}, comes "
            f"{times[row]} times, as in a sample with replacement. Sample whole queries, and give each copy of a query "
            "an id of its own."
        )
    if known is None:
        KnownQueries(split.all_ids).refuse_cut(
            split.all_ids[split.test],
            " If rows were left out on purpose, say which are in use: ndcg_scorer(..., qid=qid[in_use])",
        )


# -- what scikit-learn is doing ----------------------------------------------------------------------------------
#
# scikit-learn hands a scorer the rows of one part and nothing else, so a scorer cannot see from its arguments that
# they are pieces of queries. The functions of scikit-learn that split and score do know: they hold the whole data and
# the row numbers under these names, in every version admitted (the tests notice a change). Where nothing is found,
# nothing is concluded.

_DEPTH = 12  # frames between the function that splits and the scorer: five in RFECV


def current_split(scored_ids: NDArray[Any], qid_column: str | int | None) -> Split | None:
    """The split that scikit-learn is scoring, if these are the ids of its test rows."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_DEPTH):
        frame = None if frame is None else frame.f_back
        if frame is None:
            return None
        if not str(frame.f_globals.get("__name__")).startswith("sklearn."):
            continue
        names = frame.f_code.co_varnames + frame.f_code.co_cellvars
        if "test" in names and "train" in names:
            return _split_in(frame.f_locals, scored_ids, qid_column)
    return None


def _split_in(found: Mapping[str, Any], scored: NDArray[Any], qid_column: str | int | None) -> Split | None:
    test = found.get("test")
    if test is None or not isinstance(test, (np.ndarray, list)):
        return None
    test = np.asarray(test)
    test = np.flatnonzero(test) if test.dtype == bool else test
    for every in _ids_of_all_rows(found, qid_column):
        fits = every.ndim == 1 and test.size == scored.size
        fits = fits and -every.size <= test.min(initial=0) and test.max(initial=-1) < every.size
        if fits and np.array_equal(every[test], scored):
            return Split(every, np.where(test < 0, test + every.size, test))
    return None


def _ids_of_all_rows(found: Mapping[str, Any], qid_column: str | int | None) -> list[NDArray[Any]]:
    routed = getattr(getattr(found.get("routed_params"), "scorer", None), "score", None)
    passed = [params for params in (found.get("score_params"), routed) if isinstance(params, Mapping)]
    every = [_read(value) for params in passed for value in params.values() if value is not None]
    if qid_column is not None and found.get("X") is not None:
        with suppress(ValueError):
            every.append(column_of(found["X"], qid_column))
    return every


def _read(routed: Any) -> NDArray[Any]:
    try:
        return ids_as_array(routed)
    except (TypeError, ValueError):  # ids of which some are missing, to be refused with the split; or no ids at all
        return np.asarray(routed)


# -- what a fitted ranker remembers ------------------------------------------------------------------------------


class TrainedQueries(NamedTuple):
    """The queries that a ranker was fitted on, with a digest of each one's labels, to recognise a cut query later."""

    ids: NDArray[Any]
    digests: NDArray[np.uint64]

    @classmethod
    def of(cls, layout: Groups, labels: NDArray[Any]) -> TrainedQueries:
        """The queries of these rows."""
        assert layout.ids is not None
        mixed = _mixed(labels)
        mixed = mixed if layout.order is None else mixed[layout.order]
        return cls(layout.ids, np.add.reduceat(mixed, layout.starts))

    def other_rows(self, layout: Groups, labels: NDArray[Any]) -> str | None:
        """A sentence on queries that stand here with other rows than in training, or None."""
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
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(np.float32)
    bits = (rounded + np.float32(0)).astype(np.float64).view(np.uint64)  # + 0: -0.0 is 0
    bits += np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return bits
