"""An error of a scorer that no search can turn into a score: scikit-learn and others put nan in its place."""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from types import FrameType
from typing import NoReturn

__all__ = ["NotAScore", "refuse"]


class NotAScore:
    """What a scorer returns where an exception would be turned into nan: its repr is the error.

    After nan in every place a search "finds" its first candidate. A result that is not a number is refused by all of
    them, whatever `error_score` says.
    """

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return self.message

    def __float__(self) -> NoReturn:
        raise ValueError(self.message)


def refuse(error: Exception, *, of_the_estimator: bool = False) -> NotAScore:
    """Raise the error, or return it as what is not a score, where raising it would make the score nan.

    With `of_the_estimator` an `error_score` that is a number is what the user wants for such a failure.
    """
    kind = "" if isinstance(error, (TypeError, ValueError)) else f"{type(error).__name__}: "
    message = f"an error of the NDCG scorer: {kind}{error}"
    if _text_gets_lost():
        with suppress(UserWarning):  # where warnings are errors, this one would become nan
            warnings.warn(message, UserWarning, stacklevel=2)
    number = _error_score()
    if number is None or (of_the_estimator and number == number):
        raise error
    return NotAScore(message)


# The functions that turn an exception into a score; in which frame counted from theirs `error_score` is, which says
# into what: scikit-learn's, and that of dask-ml.
_TURN_ERRORS = {
    ("sklearn.model_selection._validation", "_score"): 0,
    ("sklearn.metrics._scorer", "__call__"): 1,
    ("dask_ml.model_selection.methods", "_score"): 1,
}


def _error_score() -> float | None:
    """What the caller of this package puts in place of an exception; None where it lets exceptions through."""
    frame = _caller()
    if frame is None:
        return None
    above = _TURN_ERRORS.get((str(frame.f_globals.get("__name__")), frame.f_code.co_name))
    if above is None:
        return None
    holder = frame if above == 0 else frame.f_back
    number = None if holder is None else holder.f_locals.get("error_score")
    if isinstance(number, str):  # "raise"
        return None
    return float("nan") if number is None else number


def _caller() -> FrameType | None:
    """The function that called into this package, and deals with what it returns or raises."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        # What stands for scoring=None hands everything on to its caller.
        hands_on = type(frame.f_locals.get("self")).__name__ == "_PassthroughScorer"
        if module.partition(".")[0] != __name__.partition(".")[0] and not hands_on:
            return frame
        frame = frame.f_back
    return None


def _text_gets_lost() -> bool:
    """Whether ``cross_validate`` is called by OptunaSearchCV, which drops every ValueError that comes out of it."""
    frame = _caller()
    inner = ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.startswith(("optuna_integration.", "optuna.integration.")):
            return inner.startswith("sklearn.")
        inner, frame = module, frame.f_back
    return False
