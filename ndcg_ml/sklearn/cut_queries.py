"""Queries cut by a split: some of their rows scored, the others in training or nowhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml.groups import Groups
from ndcg_ml.queries import by_ids
from ndcg_ml.sklearn.query_ids import split_column

__all__ = ["CutQueryWarning", "Split", "TrainedQueries", "caller", "current_split", "refuse_cut_queries"]

_FIX = (
    "NDCG is defined on whole queries. Split by query: cv=GroupKFold(5) with groups=qid, or "
    "cv=ndcg_ml.sklearn.QueryKFold(5, qid=qid). An integer cv, KFold, ShuffleSplit and HalvingGridSearchCV with "
    "resource='n_samples' split by rows"
)


class CutQueryWarning(UserWarning):
    """A query that is scored has rows in training, but not these."""


class Split(NamedTuple):
    """The split of one data set that is being scored: the ids of all its rows, and which rows are scored."""

    all_ids: NDArray[Any]
    test: NDArray[np.int64]


def refuse_cut_queries(split: Split) -> None:
    """Raise ValueError where a query that is scored is not whole."""
    layout = by_ids(split.all_ids, split.all_ids.size)
    assert layout.ids is not None
    codes = np.empty(layout.n_rows, dtype=np.int64)
    codes[slice(None) if layout.order is None else layout.order] = layout.codes()
    scored = np.bincount(codes[split.test], minlength=layout.n_queries)
    cut = np.flatnonzero((scored > 0) & (scored < layout.sizes))
    if not cut.size:
        return
    first = cut[0]
    raise ValueError(
        f"the split cuts {cut.size} of the {np.count_nonzero(scored)} queries that it scores: of query "
        f"{layout.ids.tolist()[first]!r}, {scored[first]} of {layout.sizes[first]} rows are here. {_FIX}."
    )


# -- what scikit-learn is doing ----------------------------------------------------------------------------------
#
# scikit-learn hands a scorer the rows of one part and nothing else, so a scorer cannot see from its arguments that
# they are pieces of queries. The functions of scikit-learn that split and score do know: they hold the whole data and
# the row numbers under these names, in every version admitted (the tests notice a change). Where nothing is found,
# nothing is concluded.

_DEPTH = 12  # frames between the function that splits and the scorer: five in RFECV


def caller() -> tuple[str, str]:
    """Module and name of the function that called into this package, and deals with what it returns or raises."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        # What stands for scoring=None hands everything on to its caller.
        hands_on = type(frame.f_locals.get("self")).__name__ == "_PassthroughScorer"
        if module.partition(".")[0] != __name__.partition(".")[0] and not hands_on:
            return module, frame.f_code.co_name
        frame = frame.f_back
    return "", ""


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
        fits = every.ndim == 1 and test.size == scored.size and test.max(initial=-1) < every.size
        if fits and np.array_equal(every[test], scored):
            return Split(every, test)
    return None


def _ids_of_all_rows(found: Mapping[str, Any], qid_column: str | int | None) -> list[NDArray[Any]]:
    routed = getattr(getattr(found.get("routed_params"), "scorer", None), "score", None)
    passed = [params for params in (found.get("score_params"), routed) if isinstance(params, Mapping)]
    every = [np.asarray(value) for params in passed for value in params.values() if value is not None]
    if qid_column is not None and found.get("X") is not None:
        with suppress(ValueError):
            every.append(split_column(found["X"], qid_column).ids)
    return every


# -- what a fitted ranker remembers ------------------------------------------------------------------------------


class TrainedQueries(NamedTuple):
    """The queries that a ranker was fitted on, with a digest of each one's labels, to recognise a cut query later."""

    ids: NDArray[Any]
    digests: NDArray[np.uint64]

    @classmethod
    def of(cls, layout: Groups, labels: NDArray[Any]) -> TrainedQueries:
        """The queries of these rows."""
        assert layout.ids is not None
        mixed = _mixed(labels.astype(np.float64))
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
            f"{other.sum()} of {here.ids.size} queries that are scored were also in training with other rows, the "
            f"first is {first!r}. If these are the same queries, they were cut: {_FIX}. If the ids of this data set "
            "start again from the same numbers, make them different from those of the training data"
        )


def _mixed(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """A well-spread 64-bit number for each value (the finaliser of splitmix64, Steele et al. 2014), so that sums tell
    multisets apart.
    """
    bits = (values + 0.0).view(np.uint64).copy()  # + 0.0: -0.0 is 0
    bits += np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return bits
