"""Wrap a ranker, regressor or classifier so that it takes one query id per row, as in scikit-learn."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone, is_classifier
from sklearn.utils import check_random_state, column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ndcg_ml._core.arrays import real_array
from ndcg_ml._core.frames import match_index
from ndcg_ml._core.layout import FloatArray, Groups, IntArray, ranges
from ndcg_ml._core.query_groups import group_by_ids
from ndcg_ml._plain.checks import optional_whole_number, plain_signature, positive_number
from ndcg_ml.arrays import ndcg_score
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.sklearn.queries_and_folds import WholeQueries, ids_of_rows, split_column, table, weight_of_queries
from ndcg_ml.sklearn.scorer import NDCGScorer, expected_grade, scores_of


class QueryRanker(MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A ranker that is fitted with one query id per row, of any dtype and in any order.

    It gives ``LGBMRanker``, ``XGBRanker`` and ``CatBoostRanker`` one interface, for every tool of scikit-learn that
    passes metadata or a DataFrame. Rows are sorted by query id, the rows of a query keep their order, and each library
    gets the queries in its own form: LightGBM sizes, XGBoost and CatBoost sorted codes. A regressor or classifier that
    takes no queries is fitted on the rows as they are. For scikit-learn it is a regressor: ``predict`` returns scores,
    those of a classifier being the expected grade, ``predict_proba(X) @ classes_``.

    Parameters
    ----------
    ranker : estimator
        An ``LGBMRanker``, ``XGBRanker``, ``CatBoostRanker``, or another estimator whose ``fit`` takes ``group``
        (sizes), ``qid`` or ``group_id`` (one code per row), or none of them. It is cloned and not changed.
    flavor : Flavor or str, default "sklearn"
        The NDCG of ``score`` and of early stopping. The cut-off is the flavor's: ``"lightgbm@10"``.
    qid_column : str, optional
        The name of the column of X that holds the query ids, in a DataFrame, for use without metadata routing. The
        ranker never sees it, neither in ``fit`` nor in ``predict``.
    early_stopping_rounds : int, optional
        Hold out whole queries in ``fit`` and stop if their NDCG does not increase for this many rounds; the ranker then
        predicts with its best round. For rankers, regressors and classifiers of LightGBM, XGBoost and CatBoost
        (``CatBoostClassifier``: of the grades 0 and 1). Default: no early stopping.
    validation_fraction : float, default 0.1
        Share of the queries that early stopping holds out: at least one query, never all.
    random_state : int, RandomState or None, default None
        Seed for choosing the held-out queries.

    Attributes
    ----------
    ranker_ : estimator
        The fitted clone.
    trained_queries_ : WholeQueries
        The queries given to ``fit``, with their numbers of rows, by which a scorer detects cut queries.
    validation_queries_ : ndarray
        The ids that early stopping held out; empty without it.
    best_iteration_ : int or None
        Number of rounds that ``predict`` uses after early stopping.
    best_score_ : float or None
        NDCG of the held-out queries after that round.
    n_features_in_, feature_names_in_
        Number and names of the columns of X that the ranker sees, without the column of ids.
    feature_importances_, coef_
        Those of the ranker, for these columns; absent if it has none. For the ranking losses of CatBoost, which has
        none without data, importances are its ``PredictionValuesChange``.

    Raises
    ------
    TypeError, ValueError
        In ``fit``: no ids, missing ids or the wrong number of them, labels that are not finite numbers, weights that
        differ within a query, an invalid parameter, too few queries to hold any out; pandas objects (X, labels, ids,
        weights) whose indexes differ, because rows are matched by position.

    See Also
    --------
    ndcg_scorer : the scorer to select with.
    QueryKFold : whole queries per fold, without metadata routing.

    Notes
    -----
    ``sample_weight`` is the weight of the row's *query* and must be equal in all rows of a query: no other meaning is
    common to the three libraries. LightGBM 4.7 gets it as row weights, XGBoost 3.2 as one weight per query, CatBoost
    1.2 as ``group_weight``.

    The ids are always required. All three libraries depend on the order of the rows within a query, which is kept.
    Queries are sorted by id, so a shuffled copy of the data gives the same model if the rows of each query keep their
    order.

    With metadata routing enabled, ``fit`` and ``score`` take the ids under the name ``groups``, like a group splitter;
    if the split is not by query, pass both: ``fit(X, y, groups=user, qid=qid)``.
    Pass ``scoring=ndcg_scorer(...)`` to ``RFECV``: without it, scikit-learn 1.9 selects by R squared rather than by
    ``score``. ``RFE`` and ``RFECV`` drop the names of columns, so pass the ids by metadata routing. Pass it for a
    pipeline too, if scikit-learn is older than 1.8, which gives the ``score`` of a pipeline no ids.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from lightgbm import LGBMRanker
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from ndcg_ml.sklearn import QueryRanker, ndcg_scorer
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(300, 4)), rng.integers(0, 30, 300)
    >>> y = np.clip(np.round(X[:, 0] + 1), 0, 3)
    >>> model = QueryRanker(LGBMRanker(n_estimators=5, verbosity=-1))
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(
    ...         model, {"ranker__num_leaves": [3, 7]}, scoring=ndcg_scorer("lightgbm", k=10), cv=GroupKFold(3)
    ...     ).fit(X, y, groups=qid)
    >>> bool(search.best_score_ > 0.9)
    True
    """

    # Both names are requested, because the ids may differ from the splitter's groups. An alias of qid would fail in
    # RFECV (scikit-learn 1.9.1), which passes the array under its original name.
    __metadata_request__fit = {"groups": True, "qid": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True, "qid": True}  # noqa: RUF012

    def __init__(
        self,
        ranker: Any,
        *,
        flavor: Flavor | str = "sklearn",
        qid_column: str | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.ranker = ranker
        self.flavor = flavor
        self.qid_column = qid_column
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @plain_signature
    def fit(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> QueryRanker:
        """Fit a clone of the ranker; the rows may be in any order.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix, shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Graded labels.
        qid : array-like of shape (n_rows,)
            The query of each row. Default: the column `qid_column` of X.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of the row's query, equal in all of its rows.
        groups : array-like of shape (n_rows,), optional
            The groups of a group splitter. They are the ids if there is neither `qid` nor `qid_column`.

        Returns
        -------
        QueryRanker
            Itself.
        """
        # scikit-learn requires that parameters are checked in fit and not in __init__.
        if not hasattr(self.ranker, "fit") or isinstance(self.ranker, type):
            raise TypeError(
                f"ranker must be an estimator, such as LGBMRanker(); got {self.ranker!r} of type "
                f"{type(self.ranker).__name__}."
            )
        stopping = optional_whole_number(self.early_stopping_rounds, "early_stopping_rounds", "for no early stopping")
        flavor = as_flavor(self.flavor)
        # The rows: features without the column of ids, grades, and one weight per query.
        X = table(X)  # noqa: N806
        match_index({"X": X, "y": y, "qid": qid, "sample_weight": sample_weight, "groups": groups})
        features, ids = split_column(X, self.qid_column)
        validate_data(self, features, skip_check_array=True)
        grades = _grades(y, X.shape[0])
        ids = ids_of_rows(qid, ids, groups, grades.size)
        layout = group_by_ids(ids, grades.size)
        assert layout.ids is not None
        weight = None if sample_weight is None else weight_of_queries(sample_weight, layout)
        # Sort queries by id, so that the order of the rows has no effect. Early stopping holds out whole queries.
        by_id = _order_of_ids(layout.ids)
        held_out = np.zeros(layout.n_queries, dtype=bool)
        if stopping is not None:
            held_out[self._held_out(layout.n_queries)] = True
        training = RowsByQuery(features, grades, layout, weight, by_id[~held_out])
        ranker = clone(self.ranker)
        self.best_iteration_: int | None = None
        self.best_score_: float | None = None
        if stopping is None:
            training.fit(ranker)
        else:
            validation = RowsByQuery(features, grades, layout, weight, by_id[held_out])
            self.best_iteration_, self.best_score_ = fit_and_stop(ranker, training, validation, flavor, stopping)
        self.ranker_: Any = ranker
        self.trained_queries_: WholeQueries = WholeQueries(ids)
        self.validation_queries_: NDArray[Any] = layout.ids[by_id[held_out]]
        return self

    def set_params(self, **params: Any) -> QueryRanker:
        """Set parameters, those of the ranker as ``ranker__num_leaves``.

        Returns
        -------
        QueryRanker
            Itself.

        Raises
        ------
        ValueError
            A parameter is unknown, or is one of the ranker.
        """
        own = self.get_params()
        for name in params:
            if name not in own and f"ranker__{name}" in own:
                raise ValueError(f"{name} is a parameter of the ranker; got it for QueryRanker. Write ranker__{name}.")
        return super().set_params(**params)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the scores of the rows, in their order: predictions, or the expected grades of a classifier.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix, shape (n_rows, n_features)
            With the column `qid_column`, if ``fit`` had one.

        Returns
        -------
        ndarray, shape (n_rows,)
        """
        check_is_fitted(self)
        X = table(X)  # noqa: N806
        features, _ = split_column(X, self.qid_column)
        validate_data(self, features, skip_check_array=True, reset=False)
        return scores_of(self.ranker_, readable(features))

    def score(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> float:
        """Return the NDCG of the predictions under `flavor`, by query.

        Parameters
        ----------
        X, y, qid, sample_weight, groups
            As for ``fit``. With `sample_weight`, the mean over queries is weighted.

        Returns
        -------
        float
        """
        scorer = NDCGScorer(self.flavor, qid_column=self.qid_column)
        return scorer(self, X, y, qid=qid, groups=groups, sample_weight=sample_weight)

    @property
    def feature_importances_(self) -> NDArray[Any]:
        """The ranker's importances of the columns that it sees."""
        found = self.ranker_.feature_importances_
        return found if np.ndim(found) else self.ranker_.get_feature_importance(type="PredictionValuesChange")

    @property
    def coef_(self) -> NDArray[Any]:
        """The ranker's coefficients of the columns that it sees."""
        return self.ranker_.coef_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # of a regressor, because predict returns a number per row
        if self.ranker is not None:  # None until a grid over rankers sets it
            inner = get_tags(self.ranker)
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
            tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    def _held_out(self, n_queries: int) -> NDArray[np.int64]:
        fraction = positive_number(self.validation_fraction, "validation_fraction", 1.0)
        if n_queries < 2:
            raise ValueError(
                f"early stopping needs at least two queries, one to hold out; got {n_queries}. "
                "Leave early_stopping_rounds=None, or give more queries."
            )
        number = min(max(1, round(fraction * n_queries)), n_queries - 1)
        return check_random_state(self.random_state).permutation(n_queries)[:number]


def _grades(y: Any, n_rows: int) -> NDArray[Any]:
    if y is None:
        raise ValueError("QueryRanker requires y to be passed, but the target y is None.")
    grades = real_array(y, "y")
    if grades.shape == (n_rows, 1):
        grades = column_or_1d(grades, warn=True)  # as scikit-learn's regressors
    if grades.shape != (n_rows,):
        raise ValueError(f"y must have one label per row, shape ({n_rows},); got {grades.shape}.")
    if not np.isfinite(grades).all():
        raise ValueError(
            f"y must hold finite labels; got {np.count_nonzero(~np.isfinite(grades))} that are NaN or infinity. "
            "Remove those rows, or assign them a grade."
        )
    return grades


def _order_of_ids(ids: NDArray[Any]) -> NDArray[np.int64]:
    try:
        return np.argsort(ids)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in ids.tolist()})
        raise TypeError(
            f"query ids must be of one sortable type; got {', '.join(kinds)}. "
            "Convert them, for example with [str(q) for q in qid]."
        ) from error


# -- the `fit` of LightGBM, XGBoost and CatBoost, and their early stopping on held-out queries -------------------------


class RowsByQuery:
    """The rows of selected queries, which are in the given order. The rows of a query keep their order.

    Attributes
    ----------
    X, y
        Features and grades of the rows.
    sizes : ndarray of int, shape (n_queries,)
    codes : ndarray of int, shape (n_rows,)
        The position of each row's query: 0, 1, ...
    weight : ndarray of float, shape (n_queries,), or None
    """

    def __init__(self, X: Any, y: NDArray[Any], layout: Groups, weight: FloatArray | None, queries: IntArray) -> None:  # noqa: N803
        self.sizes: NDArray[np.int64] = layout.sizes[queries]
        rows = layout.rows()[ranges(layout.starts[queries], self.sizes)]
        self.X = readable(X.iloc[rows] if hasattr(X, "iloc") else X[rows])
        self.y: NDArray[Any] = y[rows]
        self.codes: NDArray[np.intp] = np.repeat(np.arange(self.sizes.size), self.sizes)
        self.weight: FloatArray | None = None if weight is None else weight[queries]

    @property
    def row_weight(self) -> FloatArray | None:
        """Weight of each row's query."""
        return None if self.weight is None else np.repeat(self.weight, self.sizes)

    def fit(self, ranker: Any, **more: Any) -> None:
        """Fit a ranker in place, with the arguments by which it takes queries."""
        ranker.fit(self.X, self.y, **query_arguments(ranker, self), **more)


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
    # Dropouts change earlier trees, so LightGBM does not stop; a linear model has one set of weights.
    settings = ranker.get_params()
    for name in ("boosting_type", "boosting", "boost", "booster"):
        if settings.get(name) in ("dart", "gblinear"):
            raise ValueError(
                f"early_stopping_rounds must be None with {name}={settings[name]!r}, which cannot predict with its "
                f"best round, because later rounds change earlier ones. Leave it None, or choose another {name}."
            )
    modules = {cls.__module__.partition(".")[0] for cls in type(ranker).__mro__}
    stop = next((stop for library, stop in _STOP.items() if library in modules), None)
    if stop is None:
        raise ValueError(
            f"early_stopping_rounds needs a model of LightGBM, XGBoost or CatBoost; got {type(ranker).__name__}. "
            "Leave early_stopping_rounds=None."
        )
    best = stop(ranker, training, validation, flavor, rounds)
    scores = scores_of(ranker, validation.X)
    return best, ndcg_score(validation.y, scores, flavor=flavor, group=validation.sizes, query_weight=validation.weight)


def readable(X: Any) -> Any:  # noqa: N803
    """Return X in a container that all three libraries accept.

    XGBoost 3.2 needs pyarrow to read a polars frame, and LightGBM before 4.7 cannot read one; CatBoost 1.2 refuses
    sparse arrays and indices of 64 bits, as of ``load_svmlight_file``, and LightGBM warns of sparse arrays.
    """
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_matrix

        X = csr_matrix(X)  # noqa: N806
        if X.nnz < 2**31:
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return X
    if type(X).__module__.partition(".")[0] == "polars" and all(dtype.is_numeric() for dtype in X.dtypes):
        return X.to_numpy()
    return X


def query_arguments(ranker: Any, queries: RowsByQuery) -> dict[str, Any]:
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


def _stop_lightgbm(ranker: Any, training: RowsByQuery, validation: RowsByQuery, flavor: Flavor, rounds: int) -> int:
    from ndcg_ml.lightgbm import StopEarly

    stop, weight = StopEarly(flavor, rounds=rounds), validation.row_weight
    stop.eval.of_classes = partial(expected_grade, classes=np.unique(training.y))
    held_out = stop.fit((validation.X, validation.y, validation.sizes))
    # LightGBM passes sizes to the metric of a ranker only, and may number the classes.
    held_out["eval_metric"] = lambda _, scores: stop.eval(validation.y, scores, weight, validation.sizes)
    if "eval_group" not in _arguments(ranker):
        del held_out["eval_group"]
    quiet = {} if {"verbose", "verbosity"} & {*ranker.get_params()} else {"verbosity": -1}
    ranker.set_params(**stop.params, **quiet)
    training.fit(ranker, **held_out)
    return ranker.best_iteration_


def _stop_xgboost(ranker: Any, training: RowsByQuery, validation: RowsByQuery, flavor: Flavor, rounds: int) -> int:
    from ndcg_ml.xgboost import NDCGCallback

    callback = NDCGCallback(
        flavor, X=validation.X, y=validation.y, group=validation.sizes, query_weight=validation.weight, rounds=rounds
    )
    callback.of_classes = partial(expected_grade, classes=np.unique(training.y))
    own = ranker.callbacks
    ranker.set_params(callbacks=[*(own or []), callback])
    training.fit(ranker, verbose=False)
    ranker.set_params(callbacks=own)  # the callback holds the validation data
    return int(ranker.best_iteration) + 1


def _stop_catboost(ranker: Any, training: RowsByQuery, validation: RowsByQuery, flavor: Flavor, rounds: int) -> int:
    from catboost import Pool

    from ndcg_ml.catboost import NDCGEval

    settings, grades = ranker.get_params(), np.unique(training.y).tolist()
    if is_classifier(ranker) and grades != [0, 1]:
        raise ValueError(
            "early_stopping_rounds with CatBoostClassifier needs grades 0 and 1, because CatBoost numbers others; got "
            f"{len(grades)} grades up to {grades[-1]:g}. Use CatBoostRegressor, or leave early_stopping_rounds=None."
        )
    rows = query_arguments(ranker, validation)
    weight, categories = rows.pop("sample_weight", None), settings.get("cat_features")
    held_out = Pool(validation.X, validation.y, weight=weight, cat_features=categories, **rows)
    learn = (training.y, training.codes)
    ranker.set_params(eval_metric=NDCGEval(flavor, learn=learn, pools=[(validation.y, validation.codes)]))
    quiet = {} if {"verbose", "silent", "logging_level"} & {*settings} else {"verbose": False}
    training.fit(ranker, eval_set=held_out, early_stopping_rounds=rounds, use_best_model=True, **quiet)
    return int(ranker.get_best_iteration()) + 1


_STOP = {"lightgbm": _stop_lightgbm, "xgboost": _stop_xgboost, "catboost": _stop_catboost}
