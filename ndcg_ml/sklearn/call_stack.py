"""Read the split, the candidate and `error_score` from the frames of the functions that called a scorer.

A scorer gets only the rows of one part of a split, so it cannot detect cut queries, or that its exceptions become nan.
Local variables of scikit-learn's functions have this information, under the names below in every supported version; the
tests detect a change. If nothing is found, nothing is checked. ``ndcg_scorer(..., qid=all_ids)`` detects cut queries
without reading frames.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.queries import ids_as_array
from ndcg_ml.sklearn.columns import column_of

__all__ = ["Fit", "Split", "current_fit", "current_split", "error_score_of_caller"]

# -- the split --------------------------------------------------------------------------------------------------------


class Split(NamedTuple):
    """A split of a data set: the ids of all rows, and the positions of the rows that are scored."""

    all_ids: NDArray[Any]
    test: NDArray[np.int64]


def current_split(scored_ids: NDArray[Any], qid_column: str | int | None) -> Split | None:
    """Return the split that scikit-learn is scoring, if these are the ids of its test rows."""
    for frame in _frames():
        names = frame.f_code.co_varnames + frame.f_code.co_cellvars
        if _module(frame).startswith("sklearn.") and "test" in names and "train" in names:
            return _split_in(frame.f_locals, scored_ids, qid_column)
    return None


def _split_in(found: Mapping[str, Any], scored: NDArray[Any], qid_column: str | int | None) -> Split | None:
    test = found.get("test")
    if test is None or not isinstance(test, (np.ndarray, list)):
        return None
    test = np.asarray(test)
    test = np.flatnonzero(test) if test.dtype == bool else test
    for every in _ids_of_all_rows(found, qid_column):
        # Positions may count from the end.
        valid = every.ndim == 1 and -every.size <= test.min(initial=0) and test.max(initial=-1) < every.size
        if valid and np.array_equal(every[test], scored):
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
    except (TypeError, ValueError):  # other metadata, or missing ids, which are refused later
        return np.asarray(routed)


# -- the candidate of a search ----------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """The fit of a search that is being scored on its test rows.

    Attributes
    ----------
    candidate, split : int
        Their positions. A halving search counts the candidates of each iteration from 0.
    test : ndarray of int
        The test rows.
    """

    candidate: int
    split: int
    test: NDArray[np.int64]


def current_fit(X: Any) -> Fit | None:  # noqa: N803
    """Return the fit that a search is scoring, if these are the features of its test rows."""
    for frame in _frames():
        if _module(frame).startswith("sklearn.") and frame.f_code.co_name == "_fit_and_score":
            caller = frame.f_locals
            candidate, split = caller.get("candidate_progress"), caller.get("split_progress")
            if candidate is None or split is None or caller.get("X_test") is not X:
                return None  # cross_validate has no candidates; training rows are not kept
            return Fit(candidate[0], split[0], np.asarray(caller["test"]))
    return None


# -- exceptions that become scores -------------------------------------------------------------------------------------

# The functions of scikit-learn and dask-ml that turn an exception into a score. The variable `error_score` is in the
# function itself (0) or in its caller (1).
_TURN_ERRORS = {
    ("sklearn.model_selection._validation", "_score"): 0,
    ("sklearn.metrics._scorer", "__call__"): 1,
    ("dask_ml.model_selection.methods", "_score"): 1,
}


def error_score_of_caller() -> float | None:
    """Return the number by which the caller replaces an exception, or None if it lets exceptions through."""
    frame = _caller()
    above = None if frame is None else _TURN_ERRORS.get((_module(frame), frame.f_code.co_name))
    if frame is None or above is None:
        return None
    holder = frame if above == 0 else frame.f_back
    number = None if holder is None else holder.f_locals.get("error_score")
    if isinstance(number, str):  # "raise"
        return None
    return float("nan") if number is None else number


def _caller() -> FrameType | None:
    """Return the frame of the function that called this package, if any."""
    for frame in _frames():
        # With scoring=None, scikit-learn calls through this class.
        passes_on = type(frame.f_locals.get("self")).__name__ == "_PassthroughScorer"
        if _module(frame).partition(".")[0] != __name__.partition(".")[0] and not passes_on:
            return frame
    return None


def _frames() -> Iterator[FrameType]:
    """Yield the frames of the calling functions, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
