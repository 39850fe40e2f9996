"""An error of a scorer that no search can turn into a score: scikit-learn and others put nan in its place.

An exception derived from ``BaseException`` would pass their ``except Exception`` without a look at the call stack. It
was tried. It is reported by ``GridSearchCV`` (in one process, and in two under joblib's loky, threading,
multiprocessing and Dask backends), ``concurrent.futures``, dask-ml 2025.1, OptunaSearchCV and Ray 2.60 (tasks and
Tune). But with ``cross_val_score`` in a user's function

- ``multiprocessing.Pool.map`` loses its worker and never returns;
- ``Client.submit(...).result()`` of Dask never returns: the worker reports, and the client's event loop drops what is
  not an ``Exception`` (distributed 2026.8; an ordinary exception arrives in seconds);
- a worker of Ray's joblib backend dies, although the error arrives;
- Optuna 5.0 leaves the trial in state RUNNING, where an ordinary exception makes it FAIL;

and without the call stack an estimator that predicts NaN could no longer both stop a search and obey an `error_score`
that is a number. A search that never ends is worse than an error that travels as a value, so it stays a value.
"""

from __future__ import annotations

from typing import NoReturn

from ndcg_ml.sklearn.call_stack import error_score_of_caller

__all__ = ["NotAScore", "refuse"]


class NotAScore:
    """What a scorer returns if its caller would turn an exception into nan. Its repr is the error.

    With nan everywhere, a search "finds" its first candidate. All of these tools raise on a result that is not a
    number, whatever `error_score` is.
    """

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return self.message

    def __float__(self) -> NoReturn:
        raise ValueError(self.message)


def refuse(error: Exception, *, of_the_estimator: bool = False) -> NotAScore:
    """Raise the error, or return it as a ``NotAScore`` if raising it would make the score nan.

    With `of_the_estimator`, an `error_score` that is a number is what the user asked for in such a case.
    """
    kind = "" if isinstance(error, (TypeError, ValueError)) else f"{type(error).__name__}: "
    message = f"an error of the NDCG scorer: {kind}{error}"
    number = error_score_of_caller()
    if number is None or (of_the_estimator and number == number):
        raise error
    return NotAScore(message)
