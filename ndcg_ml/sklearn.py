"""scikit-learn: a scorer that knows which rows belong to one query, and is loud when nobody told it."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._aggregate import EmptyQueryError
from ndcg_ml._recent import Recent
from ndcg_ml.flavor import Flavor, KSpec, as_flavor, cutoffs
from ndcg_ml.prepared import prepare

try:
    from sklearn.base import is_classifier
    from sklearn.utils.metadata_routing import MetadataRequest
except ImportError as error:
    raise ImportError("ndcg_ml.sklearn needs scikit-learn. Install it with: pip install 'ndcg_ml[sklearn]'") from error

__all__ = ["NDCGScorer", "ndcg_scorer"]

_HOW_TO_PASS_IDS = (
    "With y of one dimension NDCG needs the query of each row. Write sklearn.set_config(enable_metadata_routing=True), "
    "then GridSearchCV(..., cv=GroupKFold(5)).fit(X, y, groups=qid), or cross_validate(..., params={'groups': qid}); "
    "called directly, scorer(estimator, X, y, qid=qid). With y of two dimensions, one query a row, no ids are needed."
)

# What scikit-learn does with an exception of a scorer: these two modules turn it into the score nan, after which a
# search "finds" its first candidate. A result that is not a number they do refuse, whatever error_score says.
_WHERE_ERRORS_BECOME_NAN = ("sklearn.model_selection._validation", "sklearn.metrics._scorer")


_SLOTS = 16


def ndcg_scorer(flavor: Flavor | str, k: KSpec = ...) -> NDCGScorer:
    """A scikit-learn scorer that reports NDCG by query.

    Use it wherever scikit-learn takes ``scoring=``. With metadata routing enabled, the per-row query ids reach it as
    ``groups``, the same array that a group splitter takes, and no ``set_score_request`` call is needed.

    Parameters
    ----------
    flavor : Flavor or str
        Which NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"lightgbm@10"``.
    k : int or None, optional
        Cut-off in ranks, None for no cut-off. Default: the flavor's own.

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
    Where the ids are missing, of the wrong number, or a fold has nothing to average, a search stops with an error
    rather than with a ``best_params_`` chosen from nan (scikit-learn 1.9.1 would turn an exception into nan).

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
    """
    return NDCGScorer(flavor, k)


class NDCGScorer:
    """The scorer that ``ndcg_scorer`` returns.

    Parameters
    ----------
    flavor, k
        As for ``ndcg_scorer``.

    Attributes
    ----------
    flavor : Flavor
        The flavor, with its cut-off.
    """

    def __init__(self, flavor: Flavor | str, k: KSpec = ...) -> None:
        flavor = as_flavor(flavor)
        ks, several = cutoffs(k, flavor)
        if several:
            raise TypeError(
                f"k must be one cut-off, for a scorer returns one number; got {k!r}. Pass for example k=10."
            )
        flavor = flavor.replace(k=ks[0])
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
        self._recent = Recent(_SLOTS)  # every candidate of a search is scored on the same folds

    def __repr__(self) -> str:
        return f"ndcg_scorer({str(self.flavor)!r})"

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
            The query of each row; not used where `y_true` has two dimensions.

        Returns
        -------
        float

        Raises
        ------
        TypeError, ValueError
            No ids, ids of the wrong number, nothing to average; predictions that are no scores; or as for
            ``ndcg_ml.ndcg_score``.
        """
        labels = np.asarray(y_true)
        if labels.ndim == 1:
            if qid is None:
                return _refuse(f"no query ids arrived. {_HOW_TO_PASS_IDS}")
            if np.shape(qid) != labels.shape:
                return _refuse(
                    f"query ids must be one a row, shape {labels.shape}; got {np.shape(qid)} "
                    f"(sizes of queries are not ids). {_HOW_TO_PASS_IDS}"
                )
            qid = np.asarray(qid)
            prepared = self._recent.prepared((labels, qid), lambda: prepare(y_true, flavor=self.flavor, qid=qid))
        else:
            prepared = prepare(y_true, flavor=self.flavor)
        scores = _expected_grades(estimator, X, labels.shape)
        try:
            value = prepared(scores)
        except EmptyQueryError as error:
            return _refuse(f"a fold cannot be scored: {error}")
        assert isinstance(value, float)
        return value


class NotAScore:
    """What a scorer returns where an exception would be turned into nan: its repr is the error."""

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return self.message

    def __float__(self) -> NoReturn:
        raise ValueError(self.message)


def _refuse(message: str) -> NotAScore:
    if sys._getframe(2).f_globals.get("__name__") in _WHERE_ERRORS_BECOME_NAN:
        return NotAScore(f"an error of the NDCG scorer: {message}")
    raise ValueError(message)


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
