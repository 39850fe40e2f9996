"""Score an estimator by query, stop the search around it at an error, and keep the NDCG of every query."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple, NoReturn
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.utils.metadata_routing import MetadataRequest

from ndcg_ml._core.arrays import ids_as_array, plain_array
from ndcg_ml._core.frames import Axes, match_index
from ndcg_ml._core.kernel_and_threads import Cache
from ndcg_ml._core.mean_and_empty_queries import EmptyQueryError
from ndcg_ml._core.queries import Queries
from ndcg_ml._core.query_groups import group_by_ids
from ndcg_ml._core.scores import Ranking
from ndcg_ml._plain.checks import KSpec, cutoffs, plain_signature, refuse_docid, refuse_nan, true_or_false
from ndcg_ml._plain.flavor_text import log_name, metric_key
from ndcg_ml._plain.messages import brief
from ndcg_ml.flavor import Flavor, as_arguments, as_flavor
from ndcg_ml.sklearn import queries_and_folds as folds


@plain_signature
def ndcg_scorer(
    flavor: Flavor | str,
    k: KSpec = ...,
    *_of_a_call: object,
    qid_column: str | None = None,
    qid: ArrayLike | None = None,
    keep_queries: bool = False,
    name: str | None = None,
) -> NDCGScorer:
    """Return a scikit-learn scorer that reports NDCG by query.

    Use it wherever scikit-learn takes ``scoring=``. With metadata routing enabled, it receives the query id of each row
    as ``groups``, the same array that a group splitter takes, or as ``qid`` if the split is not by query; no
    ``set_score_request`` call is needed. Without routing, it reads them from the column `qid_column` of X.

    Parameters
    ----------
    flavor : Flavor or str
        Definition of NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"lightgbm@10"``.
    k : int, None or sequence of them, optional
        Cut-off in ranks, None for no cut-off. Default: the flavor's own. With a sequence the scorer returns a dict,
        ``{"ndcg_at_1": ..., "ndcg_at_10": ...}``, from one prediction, for searches with several metrics: pass
        ``refit="ndcg_at_10"``. Without a cut-off the name is ``"ndcg"``. Tools that take one number, such as ``RFECV``,
        need one cut-off.
    qid_column : str, optional
        The name of the column of X that holds the query ids, in a DataFrame. The estimator gets X with that column;
        ``QueryRanker(..., qid_column=...)`` removes it. Routed ``groups`` are then only for the splitter.
    qid : array-like of shape (n_rows_in_all,), optional
        The ids of all rows that will be split, in any order: the scorer then refuses cut queries in every tool, by
        counting rows. Pass it if the tool is not scikit-learn's, or if folds leave out rows that cannot be used (then
        pass the ids of the others). With ``folds = QueryKFold(5, qid=ids)``, pass ``qid=folds.qid``. The scorer still
        needs the ids of the rows that it scores, in one of the ways above.
    keep_queries : bool, default False
        Keep the NDCG of every query of a search, for ``paired_search``, with any ``n_jobs``. Memory: 8 bytes per
        candidate, query and cut-off, and the ids once per split.
    name : str, optional
        With several cut-offs: "mine" makes the names ``ndcg_mine_at_1`` and so on. One number has no name; scikit-learn
        names it in ``scoring={"mine": scorer}``.

    Returns
    -------
    NDCGScorer
        Call it as ``scorer(estimator, X, y, qid=qid)``. It can be pickled.

    Raises
    ------
    TypeError, ValueError
        The flavor or the cut-off is not valid, or the flavor has a switch that a scorer does not support:
        ``ties="docid"`` (scikit-learn passes no document ids), ``empty=nan`` (a search cannot rank nan),
        ``aggregate="micro"`` with `keep_queries` (it is not a mean over queries).

    Notes
    -----
    The scores are unweighted unless ``set_score_request(sample_weight=True)`` is called: ``fit(X, y, groups=qid,
    sample_weight=weight)`` of a search then weights each query as ``query_weight`` does; all rows of a query must have
    the same weight. A search averages its folds unweighted.

    If ids are missing or their number is wrong, if a fold has nothing to average, or if a split cuts queries, a search
    stops with an error. scikit-learn 1.9.1 turns an exception of a scorer into nan and still chooses ``best_params_``,
    so within a search the scorer returns an object that is not a number. If you call it directly, it raises the error.

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
    ['ndcg_at_1', 'ndcg_at_5']
    """
    if _of_a_call or hasattr(flavor, "fit"):
        error = TypeError(
            "scoring must be what ndcg_scorer returns, not ndcg_scorer itself: write scoring=ndcg_scorer(flavor, k=...)"
            ", such as ndcg_scorer('lightgbm', k=10), and name further arguments."
        )
        return _raise_or_return(error)  # type: ignore[return-value]
    return NDCGScorer(flavor, k, qid_column=qid_column, qid=qid, keep_queries=keep_queries, name=name)


class NDCGScorer:
    """The scorer that ``ndcg_scorer`` returns.

    Parameters
    ----------
    flavor, k, qid_column, qid, keep_queries, name
        As for ``ndcg_scorer``.

    Attributes
    ----------
    flavor : Flavor
        The flavor, with its cut-off if there is one.
    ks : tuple of int or None
        The cut-offs.
    names : tuple of str or None
        The keys of the dict that is returned for several cut-offs; None if one number is returned.
    kept : KeptQueries or None
        The queries of the last search, or None with ``keep_queries=False``. They are not pickled or copied.
    """

    @plain_signature
    def __init__(
        self,
        flavor: Flavor | str,
        k: KSpec = ...,
        *,
        qid_column: str | None = None,
        qid: ArrayLike | None = None,
        keep_queries: bool = False,
        name: str | None = None,
    ) -> None:
        flavor = as_flavor(flavor)
        self.ks, several = cutoffs(k, flavor)
        if not several:
            flavor = flavor.replace(k=self.ks[0])
        refuse_docid(flavor, "a scorer", "scikit-learn passes it no document ids")
        refuse_nan(flavor, "a scorer", "one nan makes a search return its first candidate")
        self.flavor = flavor
        if name is not None and not several:
            raise ValueError(
                f"name must be left out with one cut-off, whose value has no name; got {brief(name)}. Pass several as "
                "k=, or name the scorer: scoring={'mine': ndcg_scorer(...)}."
            )
        logged = log_name(name, "ndcg")
        self.names: tuple[str, ...] | None = tuple(metric_key(k, logged) for k in self.ks) if several else None
        self._named = "" if name is None else f", name={name!r}"
        self.qid_column: str | None = folds.check_column(qid_column)
        self._known = None if qid is None else folds.WholeQueries(qid)
        self._request: bool | str | None = None
        self._weight_request: bool | str | None = None
        true_or_false(keep_queries, "keep_queries")
        if keep_queries and flavor.aggregate == "micro":
            raise ValueError(
                "keep_queries needs a flavor with aggregate='macro' because it compares means over queries; got "
                "aggregate='micro'. Use flavor.replace(aggregate='macro'), or leave keep_queries=False."
            )
        self.kept: KeptQueries | None = KeptQueries(uuid.uuid4().hex) if keep_queries else None
        # By the ids of all rows of a search, which its folds share; then by fold, which its candidates share.
        self._cache: Cache[tuple[folds.WholeQueries | None, Cache[Ranking]]] = Cache(2)

    def __repr__(self) -> str:
        column = "" if self.qid_column is None else f", qid_column={self.qid_column!r}"
        known = "" if self._known is None else f", qid={self._known}"
        keep = "" if self.kept is None else ", keep_queries=True"
        which = as_arguments(self.flavor, self.ks, self.names is not None)
        return f"ndcg_scorer({which}{column}{known}{keep}{self._named})"

    def set_score_request(
        self, *, qid: bool | str | None = None, sample_weight: bool | str | None = None
    ) -> NDCGScorer:
        """Name the arguments of a search that are the query ids and the weights; with metadata routing only.

        Parameters
        ----------
        qid : bool, str or None, default None
            None: as ``qid``, and if that is not passed, as ``groups``. True: as ``qid`` only. A name: as that only,
            for example ``"session"`` for ``search.fit(X, y, groups=user, session=ids)``. False: not at all; the ids
            are in the column `qid_column`, or `y` is two-dimensional.
        sample_weight : bool, str or None, default None
            True: scores are weighted by ``sample_weight``, for example in ``search.fit(X, y, groups=qid,
            sample_weight=weight)``; a name: by the argument of that name. False: they are not. None: as for
            scikit-learn's scorers, an error if ``sample_weight`` is passed.

        Returns
        -------
        NDCGScorer
            Itself.

        Raises
        ------
        RuntimeError
            Metadata routing is not enabled.
        """
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "set_score_request is only available when metadata routing is enabled: otherwise scikit-learn ignores "
                "the request. Enable it with sklearn.set_config(enable_metadata_routing=True)."
            )
        self._request, self._weight_request = qid, sample_weight
        self.get_metadata_routing()  # refuses other values
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """The metadata that this scorer requests, as set by ``set_score_request``."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True if self._request is None else self._request)
        request.score.add_request(param="groups", alias=self._request is None)
        request.score.add_request(param="sample_weight", alias=self._weight_request)
        return request

    def __call__(
        self,
        estimator: Any,
        X: Any,  # noqa: N803
        y_true: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """NDCG of the estimator's scores for X.

        Parameters
        ----------
        estimator : estimator
            The scores are ``predict(X)``. For a classifier of grades they are the expected grade,
            ``predict_proba(X) @ classes_``, because its predicted classes would tie most documents. If `y_true` is
            two-dimensional, they are the probabilities of each label, as of ``OneVsRestClassifier``, or the expected
            grade of each output, as of ``MultiOutputClassifier``.
        X : array-like of shape (n_rows, n_features)
        y_true : array-like of shape (n_rows,) or (n_queries, n_documents)
            Graded labels. If two-dimensional, each row is one query, as for ``sklearn.metrics.ndcg_score``, and there
            are no ids. A single column holds one label per row.
        qid : array-like of shape (n_rows,)
            The query of each row. Default: the column `qid_column`.
        groups : array-like of shape (n_rows,), optional
            The groups of a group splitter. They are the ids if there is neither `qid` nor `qid_column`.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of the row's query, equal in all of its rows: the ``query_weight`` of ``ndcg_ml.evaluate``.

        Returns
        -------
        float, or dict of float by name for several cut-offs

        Raises
        ------
        TypeError, ValueError
            No ids, the wrong number of ids, ids with two-dimensional labels, a split that cuts queries, nothing to
            average, predictions that are not scores; weights that differ within a query, or weights with
            ``keep_queries=True``; pandas objects (X, labels, ids, weights, predictions) whose indexes differ; or as for
            ``ndcg_ml.ndcg_score``. A search stops, unless the error is in the predictions (the estimator raises, or
            predicts NaN or another shape), there is one cut-off, and `error_score` is a number.

        Warns
        -----
        CutQueryWarning
            Outside scikit-learn's splits, a fitted ``QueryRanker`` is scored on queries that had more or fewer rows in
            training.
        """
        try:
            axes = match_index({"X": X, "y_true": y_true, "qid": qid, "groups": groups, "sample_weight": sample_weight})
            prepared, grades = self._prepared(estimator, X, y_true, qid, groups, sample_weight)
        except Exception as error:  # also warnings as errors
            return _raise_or_return(error)
        try:
            scores = scores_of(estimator, X, axes, of_lists=grades.ndim == 2)
            if grades.ndim == 1 and scores.shape == (grades.size, 1):
                scores = scores.ravel()
            if scores.shape != grades.shape:
                raise ValueError(
                    f"predictions must be one score per document, shape {grades.shape}; "
                    f"{type(estimator).__name__} returned shape {scores.shape}."
                )
            totals = prepared.totals(scores)
            values = totals.values(self.flavor)
        except EmptyQueryError as error:
            return _raise_or_return(ValueError(f"a fold cannot be scored: {error}"))
        except Exception as error:
            # With several cut-offs, scikit-learn 1.9 would replace the dict by one number, and then read its keys.
            return _raise_or_return(error, of_the_estimator=self.names is None)
        if self.kept is not None and (fit := _current_fit(X)) is not None:
            candidate, split, test = fit
            # Two-dimensional labels have no ids: a query is a row.
            ids = totals.ids if grades.ndim == 1 else test
            scored = candidate, split, KeptScores(ids, totals.ndcg(self.flavor)[0], tuple(values))
            values[0] = Carrier(self.kept.put(values[0], *scored), self.kept, *scored)
        return values[0] if self.names is None else dict(zip(self.names, values, strict=True))

    def _prepared(
        self,
        estimator: Any,
        X: Any,  # noqa: N803
        y_true: ArrayLike,
        qid: ArrayLike | None,
        groups: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> tuple[Ranking, NDArray[Any]]:
        k: KSpec = ... if self.names is None else self.ks
        if sample_weight is not None and self.kept is not None:
            raise ValueError(
                "sample_weight must be None with keep_queries=True, because paired_search compares unweighted means; "
                "got weights. Use set_score_request(sample_weight=False), or ndcg_scorer without keep_queries."
            )
        grades = plain_array(y_true, "y_true")
        if grades.ndim == 2 and grades.shape[1] == 1:
            grades = grades.ravel()
        if grades.ndim != 1:
            if not (qid is None and groups is None and self.qid_column is None and self._known is None):
                raise ValueError(
                    f"two-dimensional y_true, shape {grades.shape}, has one query per row and takes no query ids; "
                    "got both. Pass labels of shape (n_rows,) with the ids; or, if groups are for the splitter only, "
                    "ndcg_scorer(...).set_score_request(qid=False)."
                )
            return Ranking(self.flavor, k, Queries.read(y_true, query_weight=sample_weight)), grades
        column = None if self.qid_column is None else folds.column_of(X, self.qid_column)
        ids = folds.ids_of_rows(qid, column, groups, grades.size)
        every, test = _current_split(ids, self.qid_column) or (None, None)
        weight = None if sample_weight is None else folds.weight_of_queries(sample_weight, group_by_ids(ids, ids.size))

        def all_queries() -> tuple[folds.WholeQueries | None, Cache[Ranking]]:
            return self._known or (None if every is None else folds.WholeQueries(every)), Cache(16)

        whole, prepared_folds = self._cache.get_or_make((every,), all_queries)

        def make() -> Ranking:
            if every is not None and test is not None:
                folds.refuse_repeated_rows(every, test)
            if whole is not None:
                whole.refuse_cut(ids, "" if whole is self._known else _LEFT_OUT)
            return Ranking(self.flavor, k, Queries.read(grades, qid=ids, query_weight=weight))

        prepared = prepared_folds.get_or_make((grades, ids if every is None else test, weight), make)
        if whole is None:
            _warn_of_cut_queries(estimator, ids)
        return prepared, grades


_LEFT_OUT = " If rows were left out on purpose, pass the ids of the others: ndcg_scorer(..., qid=qid[in_use])"


def _warn_of_cut_queries(estimator: Any, ids: NDArray[Any]) -> None:
    """Warn if the estimator, or that inside searches and pipelines, was trained on other rows of the queries."""
    inner = estimator
    while inner is not None:
        estimator, inner = inner, getattr(inner, "best_estimator_", None)
        if inner is None and isinstance(getattr(estimator, "steps", None), list):
            inner = estimator.steps[-1][1]
    trained = getattr(estimator, "trained_queries_", None)
    if isinstance(trained, folds.WholeQueries):
        trained.warn_of_cut(ids, stacklevel=5)


def scores_of(estimator: Any, X: Any, axes: Axes | None = None, *, of_lists: bool = False) -> NDArray[Any]:  # noqa: N803
    """Return the scores of the rows: predictions; if the estimator is a classifier, the expected grade of each row.

    With `of_lists`, each row of X is a query, and a classifier has an output for each of its documents.

    Raises
    ------
    TypeError, ValueError
        A classifier without probabilities, or whose classes are not numbers; predictions whose index is not `axes`.
    """
    if not is_classifier(estimator):
        predicted = estimator.predict(X)
        match_index({"predictions": predicted}, axes)
        return plain_array(predicted, "predictions")
    name = type(estimator).__name__
    if not hasattr(estimator, "predict_proba"):
        decide = getattr(estimator, "decision_function", None)
        scores = None if decide is None else np.asarray(decide(X))
        if scores is not None and scores.ndim == 1 + of_lists:  # two classes: one score, higher for the second
            return scores
        raise TypeError(
            f"a classifier must have predict_proba, for the expected grade; {name} does not. "
            "Use a regressor, or wrap it in CalibratedClassifierCV."
        )
    probabilities = estimator.predict_proba(X)
    if isinstance(probabilities, list):  # of the classes of each document
        outputs = zip(probabilities, estimator.classes_, strict=True)
        return np.stack([expected_grade(each, classes) for each, classes in outputs], axis=1)
    # Otherwise one probability per document, that of being relevant.
    return np.asarray(probabilities) if of_lists else expected_grade(probabilities, estimator.classes_)


def expected_grade(probabilities: Any, classes: Any) -> NDArray[Any]:
    """Return the expected grade of each row, from the probabilities of its classes."""
    try:
        grades = np.asarray(classes, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"a classifier's classes must be grades (numbers) to have an expected grade; got {list(classes)!r}."
        ) from error
    return np.asarray(probabilities) @ grades


# -- the error of a scorer as a value, because scikit-learn and others turn exceptions of a scorer into nan -----------


class NotAScore:
    """Result of a scorer whose caller would turn an exception into nan. Its repr is the error.

    If every score is nan, a search selects its first candidate. All tools raise an error for a result that is not a
    number, whatever `error_score` is.
    """

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return self.message

    def __float__(self) -> NoReturn:
        raise ValueError(self.message)


def _raise_or_return(error: Exception, *, of_the_estimator: bool = False) -> NotAScore:
    """Raise the error, or return it as a ``NotAScore`` if raising it would make the score nan.

    With `of_the_estimator`, the error is also raised if `error_score` is a number, which then replaces the score.
    """
    kind = "" if isinstance(error, (TypeError, ValueError)) else f"{type(error).__name__}: "
    number = _error_score_of_caller()
    if number is None or (of_the_estimator and number == number):
        raise error
    return NotAScore(f"an error of the NDCG scorer: {kind}{error}")


# -- the NDCG of every query that a search has scored -----------------------------------------------------------------


class KeptScores(NamedTuple):
    """The score of one fit of a search.

    Attributes
    ----------
    ids : ndarray, shape (n_queries,)
        The queries of the test part.
    ndcg : ndarray of float, shape (n_queries, n_cutoffs)
        NaN for an empty query that the mean skips.
    values : tuple of float, length n_cutoffs
        The scores that the search received.
    """

    ids: NDArray[Any]
    ndcg: NDArray[np.float64]
    values: tuple[float, ...]


class KeptQueries:
    """The scored queries by candidate and split, shared by all copies of a scorer in one process.

    They are not pickled or copied with the scorer, and another search with the same scorer overwrites them.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self._scored: dict[tuple[int, int], KeptScores] = {}
        _HERE[token] = self

    def __len__(self) -> int:
        return len(self._scored)

    def __reduce__(self) -> tuple[Any, ...]:
        return _shared, (self._token,)

    def put(self, value: float, candidate: int, split: int, scored: KeptScores) -> float:
        """Keep the queries of one fit, and return its score."""
        self._scored[candidate, split] = scored
        return value

    def get(self, candidate: int, split: int, column: int, value: float) -> KeptScores | None:
        """Return the queries of the fit if its score at this cut-off was `value`, otherwise None."""
        scored = self._scored.get((candidate, split))
        return None if scored is None or scored.values[column] != value else scored


_HERE: WeakValueDictionary[str, KeptQueries] = WeakValueDictionary()


def _shared(token: str) -> KeptQueries:
    kept = _HERE.get(token)
    return KeptQueries(token) if kept is None else kept


class Carrier(float):
    """A score with its queries. Unpickling keeps the queries and returns a plain float."""

    def __new__(cls, value: float, *_: Any) -> Carrier:  # noqa: D102
        return super().__new__(cls, value)

    def __init__(self, _: float, kept: KeptQueries, *fit: Any) -> None:
        self._kept, self._fit = kept, fit

    def __reduce__(self) -> tuple[Any, ...]:
        return self._kept.put, (float(self), *self._fit)


# -- the search that calls the scorer, read from the variables of the calling functions -------------------------------

# scikit-learn 1.9 passes a scorer neither the split nor the number of the candidate.


def _current_split(scored: NDArray[Any], qid_column: str | None) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
    """Return the ids of all rows and the positions of the test rows of scikit-learn's split.

    None if there is no split, or if the scored ids are not those of its test rows.
    """
    found = _variables_of_sklearn("test", "train")
    if not isinstance(found.get("test"), (np.ndarray, list)):
        return None
    test = np.asarray(found["test"])
    test = np.flatnonzero(test) if test.dtype == bool else test
    routed = getattr(getattr(found.get("routed_params"), "scorer", None), "score", None)
    passed = [params for params in (found.get("score_params"), routed) if isinstance(params, Mapping)]
    candidates = []
    for value in (value for params in passed for value in params.values() if value is not None):
        try:
            candidates.append(ids_as_array(value))
        except (TypeError, ValueError):  # other metadata, or missing ids, which are refused later
            candidates.append(np.asarray(value))
    if qid_column is not None and found.get("X") is not None:
        with suppress(ValueError):
            candidates.append(folds.column_of(found["X"], qid_column))
    for every in candidates:
        with suppress(IndexError):  # metadata of other rows
            if np.array_equal(every[test], scored):
                return every, np.arange(every.size)[test]  # positions may count from the end
    return None


def _current_fit(X: Any) -> tuple[int, int, NDArray[np.int64]] | None:  # noqa: N803
    """Return the candidate, the split and the test rows that a search is scoring, if X has their features.

    A halving search counts the candidates of each iteration from 0. In ``cross_validate`` there are no candidates, and
    training rows are not kept: the result is None.
    """
    found = _variables_of_sklearn("candidate_progress", "split_progress")
    if found.get("candidate_progress") is None or found.get("X_test") is not X:
        return None
    (candidate, _), (split, _) = found["candidate_progress"], found["split_progress"]
    return candidate, split, np.asarray(found["test"])


# The functions of scikit-learn 1.9 and dask-ml that turn an exception into a score. The variable `error_score` is in
# the function itself (0) or in its caller (1).
_TURN_ERRORS = {
    ("sklearn.model_selection._validation", "_score"): 0,
    ("sklearn.metrics._scorer", "__call__"): 1,
    ("dask_ml.model_selection.methods", "_score"): 1,
}


def _error_score_of_caller() -> float | None:
    """Return the number by which the caller replaces an exception, or None if it lets exceptions through."""
    callers = [*islice((frame for frame in _frames() if not _passes_on(frame)), 2)]
    above = _TURN_ERRORS.get((_module(callers[0]), callers[0].f_code.co_name)) if callers else None
    if above is None:
        return None
    number = callers[above].f_locals.get("error_score")
    if isinstance(number, str):  # "raise"
        return None
    return float("nan") if number is None else number


def _passes_on(frame: FrameType) -> bool:
    """Whether the function passes on what this package returns, as do methods ``score`` of pipelines and searches."""
    # With scoring=None, scikit-learn 1.9 calls this package through _PassthroughScorer.
    through = type(frame.f_locals.get("self")).__name__ == "_PassthroughScorer" or frame.f_code.co_name == "score"
    return _module(frame).startswith("ndcg_ml.") or (through and _module(frame).startswith("sklearn."))


def _variables_of_sklearn(*names: str) -> Mapping[str, Any]:
    """Return the variables of the innermost function of scikit-learn that has all of these; none if there is none."""
    for frame in _frames():
        if _module(frame).startswith("sklearn.") and {*names} <= {*frame.f_code.co_varnames, *frame.f_code.co_cellvars}:
            return frame.f_locals
    return {}


def _frames() -> Iterator[FrameType]:
    """Yield the frames of the calling functions, innermost first."""
    frame = sys._getframe().f_back
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
