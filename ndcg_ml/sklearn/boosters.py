"""Pass queries to the `fit` of LightGBM, XGBoost and CatBoost, and stop them early on held-out queries."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import IntArray
from ndcg_ml._core.evaluate import ndcg_score
from ndcg_ml._core.groups import Groups
from ndcg_ml.flavor import Flavor

__all__ = ["RowsByQuery", "fit", "fit_and_stop", "readable"]


class RowsByQuery:
    """The rows of selected queries, which are in the given order. The rows of a query keep their order.

    Attributes
    ----------
    X, y
        Features and labels of the rows.
    sizes : ndarray of int, shape (n_queries,)
    codes : ndarray of int, shape (n_rows,)
        The position of each row's query: 0, 1, ...
    weight : ndarray of float, shape (n_queries,), or None
    """

    def __init__(
        self,
        X: Any,  # noqa: N803
        y: NDArray[Any],
        layout: Groups,
        weight: NDArray[np.float64] | None,
        queries: IntArray,
    ) -> None:
        self.sizes: NDArray[np.int64] = layout.sizes[queries]
        ends = np.cumsum(self.sizes)
        at = np.arange(self.sizes.sum()) - np.repeat(ends - self.sizes, self.sizes)
        rows = np.repeat(layout.starts[queries], self.sizes) + at
        if layout.order is not None:
            rows = layout.order[rows]
        self.X = readable(X.iloc[rows] if hasattr(X, "iloc") else X[rows])
        self.y: NDArray[Any] = y[rows]
        self.codes: NDArray[np.intp] = np.repeat(np.arange(self.sizes.size), self.sizes)
        self.weight: NDArray[np.float64] | None = None if weight is None else weight[queries]

    @property
    def row_weight(self) -> NDArray[np.float64] | None:
        """Weight of each row's query."""
        return None if self.weight is None else np.repeat(self.weight, self.sizes)


def fit(ranker: Any, training: RowsByQuery) -> None:
    """Fit the ranker in place."""
    ranker.fit(training.X, training.y, **_query_arguments(ranker, training))


def fit_and_stop(
    ranker: Any, training: RowsByQuery, validation: RowsByQuery, flavor: Flavor, rounds: int
) -> tuple[int, float]:
    """Fit the ranker in place, until NDCG of the validation queries has not increased for `rounds` rounds.

    Returns
    -------
    best_iteration : int
        Number of rounds with which it predicts.
    best_score : float
    """
    arguments = _query_arguments(ranker, training)
    _check_best_round(ranker)
    modules = {cls.__module__.partition(".")[0] for cls in type(ranker).__mro__}
    stop = next((stop for library, stop in _STOP.items() if library in modules), None)
    if stop is None:
        raise ValueError(
            f"early_stopping_rounds needs a ranker of LightGBM, XGBoost or CatBoost; got {type(ranker).__name__}. "
            "Leave early_stopping_rounds=None."
        )
    best = stop(ranker, training, validation, arguments, flavor, rounds)
    scores = np.asarray(ranker.predict(validation.X))
    return best, ndcg_score(validation.y, scores, flavor=flavor, group=validation.sizes, query_weight=validation.weight)


def readable(X: Any) -> Any:  # noqa: N803
    """Return X in a container that all three libraries accept.

    XGBoost 3.2 needs pyarrow to read a polars frame, and LightGBM before 4.7 cannot read one; CatBoost 1.2 refuses
    sparse arrays and LightGBM warns of them.
    """
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_matrix

        return csr_matrix(X)
    if type(X).__module__.partition(".")[0] == "polars" and all(dtype.is_numeric() for dtype in X.dtypes):
        return X.to_numpy()
    return X


def _query_arguments(ranker: Any, queries: RowsByQuery) -> dict[str, Any]:
    """Return the queries and their weights as arguments of the ranker's `fit`."""
    steps = getattr(ranker, "steps", None)
    if isinstance(steps, list) and {"group", "qid", "group_id"} & _arguments(steps[-1][1]):
        raise ValueError(
            "ranker must be the ranker itself; got a pipeline that ends in one. Put QueryRanker inside the pipeline: "
            f"make_pipeline(..., QueryRanker({type(steps[-1][1]).__name__}()))."
        )
    takes = _arguments(ranker)
    rows = {} if queries.weight is None else {"sample_weight": queries.row_weight}
    if "group_id" in takes:  # CatBoost
        return {"group_id": queries.codes} | ({} if queries.weight is None else {"group_weight": queries.row_weight})
    if "qid" in takes:  # XGBoost, whose weights are one per query
        return {"qid": queries.codes} | ({} if queries.weight is None else {"sample_weight": queries.weight})
    if "group" in takes:  # LightGBM
        return {"group": queries.sizes} | rows
    return rows


def _arguments(estimator: Any) -> set[str]:
    return set(inspect.signature(estimator.fit).parameters) if hasattr(estimator, "fit") else set()


def _check_best_round(ranker: Any) -> None:
    """Refuse models that can only predict with their last round.

    Dropouts change earlier trees, so LightGBM does not stop; a linear model has one set of weights.
    """
    settings = ranker.get_params()
    for name in ("boosting_type", "boosting", "boost", "booster"):
        if settings.get(name) in ("dart", "gblinear"):
            raise ValueError(
                f"early_stopping_rounds must be None with {name}={settings[name]!r}, which cannot predict with its "
                f"best round, because later rounds change earlier ones. Leave it None, or choose another {name}."
            )


def _stop_lightgbm(
    ranker: Any, training: RowsByQuery, validation: RowsByQuery, arguments: dict[str, Any], flavor: Flavor, rounds: int
) -> int:
    from ndcg_ml.lightgbm import StopEarly

    stop = StopEarly(flavor, rounds=rounds)
    weight = () if validation.row_weight is None else (validation.row_weight,)
    ranker.set_params(**stop.params)
    ranker.fit(training.X, training.y, **arguments, **stop.fit((validation.X, validation.y, validation.sizes, *weight)))
    best: int = ranker.best_iteration_
    return best


def _stop_xgboost(
    ranker: Any, training: RowsByQuery, validation: RowsByQuery, arguments: dict[str, Any], flavor: Flavor, rounds: int
) -> int:
    from ndcg_ml.xgboost import NDCGCallback

    callback = NDCGCallback(
        flavor,
        X=validation.X,
        y=validation.y,
        group=validation.sizes,
        query_weight=validation.weight,
        rounds=rounds,
    )
    own = ranker.callbacks
    ranker.set_params(callbacks=[*(own or []), callback])
    ranker.fit(training.X, training.y, **arguments)
    ranker.set_params(callbacks=own)  # the callback holds the validation data
    return int(ranker.best_iteration) + 1


def _stop_catboost(
    ranker: Any, training: RowsByQuery, validation: RowsByQuery, arguments: dict[str, Any], flavor: Flavor, rounds: int
) -> int:
    from catboost import Pool

    from ndcg_ml.catboost import NDCGEval

    held_out = Pool(
        validation.X,
        validation.y,
        group_id=validation.codes,
        group_weight=validation.row_weight,
        cat_features=ranker.get_params().get("cat_features"),
    )
    metric = NDCGEval(flavor, learn=(training.y, training.codes), pools=[(validation.y, validation.codes)])
    ranker.set_params(eval_metric=metric)
    ranker.fit(
        training.X, training.y, **arguments, eval_set=held_out, early_stopping_rounds=rounds, use_best_model=True
    )
    return int(ranker.get_best_iteration()) + 1


_STOP = {"lightgbm": _stop_lightgbm, "xgboost": _stop_xgboost, "catboost": _stop_catboost}
