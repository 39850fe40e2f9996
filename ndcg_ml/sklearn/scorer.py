"""A scorer that knows which rows belong to one query, and is loud when nobody told it."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.metadata_routing import MetadataRequest

from ndcg_ml._aggregate import EmptyQueryError
from ndcg_ml._cache import Cache
from ndcg_ml._checks import KSpec, cutoffs
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.prepared import Prepared, prepare
from ndcg_ml.queries import by_ids
from ndcg_ml.sklearn.cut_queries import (
    CutQueryWarning,
    TrainedQueries,
    caller,
    current_split,
    refuse_cut_queries,
)
from ndcg_ml.sklearn.query_ids import check_column, ids_of_rows, split_column

__all__ = ["NDCGScorer", "ndcg_scorer"]

# What scikit-learn does with an exception of a scorer: these two functions turn it into the score nan, after which a
# search "finds" its first candidate. A result that is not a number they do refuse, whatever error_score says.
_WHERE_ERRORS_BECOME_NAN = (("sklearn.model_selection._validation", "_score"), ("sklearn.metrics._scorer", "__call__"))

_SLOTS = 16


def ndcg_scorer(flavor: Flavor | str, k: KSpec = ..., *, qid_column: str | int | None = None) -> NDCGScorer:
    """A scikit-learn scorer that reports NDCG by query.

    Use it wherever scikit-learn takes ``scoring=``. With metadata routing enabled, the per-row query ids reach it as
    ``groups``, the same array that a group splitter takes, and no ``set_score_request`` call is needed. Without
    routing, it reads them from the column `qid_column` of X.

    Parameters
    ----------
    flavor : Flavor or str
        Which NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"lightgbm@10"``.
    k : int, None or sequence of them, optional
        Cut-off in ranks, None for no cut-off. Default: the flavor's own. With a sequence the scorer returns a dict,
        ``{"ndcg@1": ..., "ndcg@10": ...}``, from one prediction, for searches with several metrics: pass
        ``refit="ndcg@10"``. Tools that take one number, such as ``RFECV``, need one cut-off.
    qid_column : str or int, optional
        The column of X that holds the query ids: a name for a DataFrame, a position for an array. The estimator gets X
        with that column; ``QueryRanker(..., qid_column=...)`` takes it out again.

    Returns
    -------
    NDCGScorer
        Call it as ``scorer(estimator, X, y, qid=qid)``. It pickles and may be sent to worker processes.

    Raises
    ------
    TypeError, ValueError
        The flavor or the cut-off is not valid, or is one that a scorer cannot honour: ``ties="docid"`` (no document ids
        arrive), ``empty=nan`` (a search cannot rank nan).

    Notes
    -----
    Where the ids are missing or of the wrong number, a fold has nothing to average, or a split cuts queries, a search
    stops with an error rather than with a ``best_params_`` chosen from nan or from pieces of queries (scikit-learn
    1.9.1 would turn an exception into nan).

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(120, 4)), np.repeat(np.arange(12), 10)
    >>> y = np.clip(np.round(X[:, 0] + 1), 0, 3)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scorer, grid = ndcg_scorer("lightgbm", k=10), {"alpha": [0.1, 1e4]}
    ...     search = GridSearchCV(Ridge(), grid, scoring=scorer, cv=GroupKFold(3)).fit(X, y, groups=qid)
    >>> bool(search.best_score_ > 0.99)
    True

    Several cut-offs from one prediction:

    >>> sorted(ndcg_scorer("lightgbm", k=(1, 5))(search, X, y, qid=qid))
    ['ndcg@1', 'ndcg@5']
    """
    return NDCGScorer(flavor, k, qid_column=qid_column)


class NDCGScorer:
    """The scorer that ``ndcg_scorer`` returns.

    Parameters
    ----------
    flavor, k, qid_column
        As for ``ndcg_scorer``.

    Attributes
    ----------
    flavor : Flavor
        The flavor, with its cut-off where there is one.
    ks : tuple of int or None
        The cut-offs.
    names : tuple of str or None
        The keys of the dict that is returned for several cut-offs; None where one number is.
    """

    def __init__(self, flavor: Flavor | str, k: KSpec = ..., *, qid_column: str | int | None = None) -> None:
        flavor = as_flavor(flavor)
        self.ks, several = cutoffs(k, flavor)
        if not several:
            flavor = flavor.replace(k=self.ks[0])
        if flavor.ties == "docid":
            raise ValueError(
                "a scorer cannot honour ties='docid', for scikit-learn passes it no document ids. "
                "Choose another rule: flavor.replace(ties='average')."
            )
        if flavor.empty != flavor.empty:
            raise ValueError(
                "a scorer cannot honour empty=nan, for one nan makes a search return its first candidate. "
                "Choose empty='skip' to leave empty queries out, or 0 or 1."
            )
        self.flavor = flavor
        self.names = tuple("ndcg" if k is None else f"ndcg@{k}" for k in self.ks) if several else None
        self.qid_column = check_column(qid_column)
        self._cache: Cache[Prepared] = Cache(_SLOTS)  # every candidate of a search is scored on the same folds

    def __repr__(self) -> str:
        several = "" if self.names is None else f", k={self.ks}"
        column = "" if self.qid_column is None else f", qid_column={self.qid_column!r}"
        return f"ndcg_scorer({str(self.flavor)!r}{several}{column})"

    def get_metadata_routing(self) -> MetadataRequest:
        """The metadata this scorer asks for: per-row query ids, under the name ``groups``."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias="groups")
        return request

    def __call__(self, estimator: Any, X: Any, y_true: Any, *, qid: Any = None) -> Any:  # noqa: N803
        """NDCG of the estimator's scores for X.

        Parameters
        ----------
        estimator : estimator
            A ranker or regressor is asked for ``predict``. A classifier of grades is asked for the expected grade,
            ``predict_proba(X) @ classes_``, for its hard labels would tie most documents.
        X : array-like, shape (n_rows, n_features)
        y_true : array-like, shape (n_rows,) or (n_queries, n_documents)
            Graded labels; in two dimensions each row is one query, as for ``sklearn.metrics.ndcg_score``.
        qid : array-like, shape (n_rows,)
            The query of each row; not used where `y_true` has two dimensions. Default: the column `qid_column`.

        Returns
        -------
        float, or dict of float by name where several cut-offs were asked for

        Raises
        ------
        TypeError, ValueError
            No ids, ids of the wrong number, a split that cuts queries, nothing to average; predictions that are no
            scores; or as for ``ndcg_ml.ndcg_score``.

        Warns
        -----
        CutQueryWarning
            A fitted ``QueryRanker`` is scored, outside a split of scikit-learn's, on queries that it was trained on
            with other rows.
        """
        labels = np.asarray(y_true)
        if labels.ndim == 1:
            prepared = self._by_query(estimator, X, labels, qid)
            if isinstance(prepared, NotAScore):
                return prepared
        else:
            try:
                prepared = prepare(y_true, flavor=self.flavor, k=self._k())
            except (TypeError, ValueError) as error:
                return _refuse(str(error), error)
        try:
            scores = _expected_grades(estimator, X, labels.shape)
        except Exception as error:
            if self.names is None:
                raise
            # scikit-learn would put one nan in place of the dict, and then look for its keys in vain.
            return _refuse(f"{type(error).__name__}: {error}", error)
        try:
            values = prepared(scores)
        except EmptyQueryError as error:
            return _refuse(f"a fold cannot be scored: {error}", error)
        except ValueError as error:
            if self.names is None:
                raise
            return _refuse(str(error), error)
        if self.names is None:
            return values
        assert isinstance(values, dict)
        return dict(zip(self.names, values.values(), strict=True))

    def _k(self) -> KSpec:
        return ... if self.names is None else self.ks

    def _by_query(
        self,
        estimator: Any,
        X: Any,  # noqa: N803
        labels: NDArray[Any],
        qid: Any,
    ) -> Prepared | NotAScore:
        try:
            column = None if self.qid_column is None else split_column(X, self.qid_column).ids
            ids = ids_of_rows(qid, column, labels.size)
            split = current_split(ids, self.qid_column)

            def make() -> Prepared:
                if split is not None:
                    refuse_cut_queries(split)
                return prepare(labels, flavor=self.flavor, k=self._k(), qid=ids)

            prepared = self._cache.prepared((labels, ids, *((None, None) if split is None else split)), make)
        except (TypeError, ValueError) as error:
            return _refuse(str(error), error)
        if split is None:
            _warn_of_cut_queries(estimator, ids, labels)
        return prepared


class NotAScore:
    """What a scorer returns where an exception would be turned into nan: its repr is the error."""

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return self.message

    def __float__(self) -> NoReturn:
        raise ValueError(self.message)


def _refuse(message: str, cause: Exception | None = None) -> NotAScore:
    if caller() in _WHERE_ERRORS_BECOME_NAN:
        return NotAScore(f"an error of the NDCG scorer: {message}")
    raise cause if cause is not None and str(cause) == message else ValueError(message) from cause


def _warn_of_cut_queries(estimator: Any, ids: NDArray[Any], labels: NDArray[Any]) -> None:
    trained = getattr(_final(estimator), "trained_queries_", None)
    if isinstance(trained, TrainedQueries):
        sentence = trained.other_rows(by_ids(ids, labels.size), labels)
        if sentence is not None:
            warnings.warn(f"{sentence}.", CutQueryWarning, stacklevel=4)


def _final(estimator: Any) -> Any:
    """The estimator inside searches and pipelines that predicts."""
    while True:
        inner = getattr(estimator, "best_estimator_", None)
        if inner is None and isinstance(getattr(estimator, "steps", None), list):
            inner = estimator.steps[-1][1]
        if inner is None:
            return estimator
        estimator = inner


def _expected_grades(estimator: Any, X: Any, shape: tuple[int, ...]) -> NDArray[Any]:  # noqa: N803
    scores = _expected_class(estimator, X) if is_classifier(estimator) else np.asarray(estimator.predict(X))
    if len(shape) == 1 and scores.shape == (*shape, 1):
        scores = scores[:, 0]
    if scores.shape != shape:
        raise ValueError(
            f"predictions must be one score a document, shape {shape}; "
            f"{type(estimator).__name__} returned shape {scores.shape}."
        )
    return scores


def _expected_class(estimator: Any, X: Any) -> NDArray[Any]:  # noqa: N803
    name = type(estimator).__name__
    if not hasattr(estimator, "predict_proba"):
        scores = np.asarray(estimator.decision_function(X)) if hasattr(estimator, "decision_function") else None
        if scores is not None and scores.ndim == 1:  # two classes: one score, higher for the second
            return scores
        raise TypeError(
            f"a classifier must have predict_proba, from which the expected grade is made; {name} has none. "
            "Use a regressor, or wrap it in CalibratedClassifierCV."
        )
    probabilities = estimator.predict_proba(X)
    if isinstance(probabilities, list):  # one output a document, 2-D y
        grades = [_grades(classes, name) for classes in estimator.classes_]
        return np.stack([p @ g for p, g in zip(probabilities, grades, strict=True)], axis=1)
    if isinstance(estimator.classes_, list) or np.ndim(estimator.classes_) != 1:
        raise TypeError(f"a classifier must list its classes_ in one dimension; {name} does not.")
    expected: NDArray[Any] = np.asarray(probabilities) @ _grades(estimator.classes_, name)
    return expected


def _grades(classes: Any, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(classes, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"a classifier's classes must be grades (numbers) to have an expected grade; {name} has {list(classes)!r}."
        ) from error
