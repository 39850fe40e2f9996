"""A scorer's error as a return value, because scikit-learn and others turn exceptions of a scorer into nan.

An exception derived from ``BaseException`` would pass their ``except Exception``. ``GridSearchCV``, joblib's backends,
``concurrent.futures``, dask-ml 2025.1, OptunaSearchCV and Ray 2.60 report it. But with ``cross_val_score`` in a user's
function

- ``multiprocessing.Pool.map`` loses its worker and never returns;
- ``Client.submit(...).result()`` of Dask never returns (distributed 2026.8);
- a worker of Ray's joblib backend dies, although the error arrives;
- Optuna 5.0 leaves the trial in state RUNNING rather than FAIL.

So the scorer returns the error as a value.
"""

from __future__ import annotations

from typing import NoReturn

from ndcg_ml.sklearn.call_stack import error_score_of_caller

__all__ = ["NotAScore", "refuse"]


class NotAScore:
    """Result of a scorer whose caller would turn an exception into nan. Its repr is the error.

    If every score is nan, a search selects its first candidate. All tools raise for a result that is not a number,
    whatever `error_score` is.
    """

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return self.message

    def __float__(self) -> NoReturn:
        raise ValueError(self.message)


def refuse(error: Exception, *, of_the_estimator: bool = False) -> NotAScore:
    """Raise the error, or return it as a ``NotAScore`` if raising it would make the score nan.

    With `of_the_estimator`, the error is also raised if `error_score` is a number, which then replaces the score.
    """
    kind = "" if isinstance(error, (TypeError, ValueError)) else f"{type(error).__name__}: "
    message = f"an error of the NDCG scorer: {kind}{error}"
    number = error_score_of_caller()
    if number is None or (of_the_estimator and number == number):
        raise error
    return NotAScore(message)
