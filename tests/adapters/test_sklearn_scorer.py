"""The scikit-learn scorer against loops over folds, and what it refuses."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("lightgbm")
pytest.importorskip("pandas")
pytest.importorskip("polars")

import itertools
import pickle
import re
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import sklearn
from core.test_threads import data
from lanes import quick
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.metrics import ndcg_score as sklearn_ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ndcg_ml import Flavor, evaluate, ndcg_score
from ndcg_ml.sklearn import CutQueryWarning, QueryRanker, ndcg_scorer

__all__ = ["data"]  # data is a fixture
LIGHTGBM = Flavor.preset("lightgbm", k=10)


def manual(estimator, X, y, qid, flavor, cv, groups=None):
    scores = []
    for train, test in cv.split(X, y, qid if groups is None else groups):
        fitted = sklearn.clone(estimator).fit(X[train], y[train])
        scores.append(ndcg_score(y[test], fitted.predict(X[test]), qid=qid[test], flavor=flavor))
    return scores


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search_equals_the_folds_by_hand(problem, routing, n_jobs):
    X, y, qid = problem
    model = make_pipeline(StandardScaler(), Ridge())
    grid = {"ridge__alpha": [0.1, 100.0, 1e6]}
    search = GridSearchCV(model, grid, scoring=ndcg_scorer(LIGHTGBM), cv=GroupKFold(4), n_jobs=n_jobs)
    search.fit(X, y, groups=qid)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        by_fold = manual(model.set_params(**params), X, y, qid, LIGHTGBM, GroupKFold(4))
        assert score == pytest.approx(np.mean(by_fold), abs=1e-12)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.score(X, y, groups=qid) == ndcg_score(y, search.predict(X), qid=qid, flavor=LIGHTGBM)


def test_two_dimensional_y_needs_no_ids():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), rng.integers(0, 4, (40, 6)).astype(float)
    fitted = Ridge().fit(X, Y)
    expected = sklearn_ndcg_score(Y, fitted.predict(X), k=4)
    assert ndcg_scorer("sklearn", k=4)(fitted, X, Y) == pytest.approx(expected, abs=1e-12)
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, scoring=ndcg_scorer("sklearn"), cv=3).fit(X, Y)
    assert 0 < search.best_score_ <= 1


def test_a_classifier_is_scored_by_its_expected_grade(problem):
    X, y, qid = problem
    forest = RandomForestClassifier(10, random_state=0).fit(X[::2], y[::2])
    expected = forest.predict_proba(X) @ forest.classes_
    got = ndcg_scorer(LIGHTGBM)(forest, X, y, qid=qid)
    assert got == ndcg_score(y, expected, qid=qid, flavor=LIGHTGBM)
    assert got != ndcg_score(y, forest.predict(X), qid=qid, flavor=LIGHTGBM)
    binary = RidgeClassifier().fit(X, y > 1)
    got = ndcg_scorer("sklearn")(binary, X, (y > 1).astype(int), qid=qid)
    assert got == ndcg_score((y > 1).astype(int), binary.decision_function(X), qid=qid)


def test_predictions_in_one_column_are_scores(problem):
    X, y, qid = problem
    column, flat = LinearRegression().fit(X, y[:, None]), LinearRegression().fit(X, y)
    scorer = ndcg_scorer("sklearn")
    assert scorer(column, X, y, qid=qid) == scorer(flat, X, y, qid=qid)


def test_pickle_repr_and_cutoff(problem):
    X, y, qid = problem
    scorer = ndcg_scorer("lightgbm", k=3)
    again = pickle.loads(pickle.dumps(scorer))
    fitted = Ridge().fit(X, y)
    assert again(fitted, X, y, qid=qid) == ndcg_score(y, fitted.predict(X), qid=qid, flavor="lightgbm@3")
    assert repr(again) == repr(scorer) == "ndcg_scorer('lightgbm', k=3)"
    assert ndcg_scorer(LIGHTGBM, k=None).flavor.k is None


# -- labels in one column --------------------------------------------------------------------------------------------


class OneColumn(BaseEstimator, RegressorMixin):
    """A regressor whose labels and predictions have two dimensions, as skorch's NeuralNetRegressor."""

    def __init__(self, sign=1):
        self.sign = sign

    def fit(self, X, y):
        assert np.ndim(y) == 2
        self.coef_ = np.zeros((X.shape[1], 1))
        self.coef_[0] = self.sign
        return self

    def predict(self, X):
        return X @ self.coef_


def test_labels_in_one_column_are_not_queries_of_one_document(problem):
    X, y, qid = problem
    column = pd.DataFrame({"grade": y})
    for labels in (column, pl.DataFrame({"grade": y}), y[:, None].tolist()):
        got = ndcg_scorer(LIGHTGBM)(OneColumn().fit(X, y[:, None]), X, labels, qid=qid)
        assert got == ndcg_score(y, X[:, 0], qid=qid, flavor=LIGHTGBM)


def test_two_dimensional_labels_take_no_ids(routing):
    rng = np.random.default_rng(0)
    X, Y, user = rng.normal(size=(40, 3)), rng.integers(0, 4, (40, 6)), np.repeat(np.arange(8), 5)
    scorer = ndcg_scorer("sklearn").set_score_request(qid=False)
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 9.0]}, scoring=scorer, cv=GroupKFold(4)).fit(X, Y, groups=user)
    folds = GroupKFold(4).split(X, Y, user)
    expected = [ndcg_score(Y[test], Ridge().fit(X[train], Y[train]).predict(X[test])) for train, test in folds]
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(expected), abs=1e-12)


# -- errors stop a search --------------------------------------------------------------------------------------------


class Predicts(Ridge):
    """A regressor with invalid predictions for one candidate."""

    def __init__(self, alpha=1.0, what="nan"):
        super().__init__(alpha)
        self.what = what

    def predict(self, X):
        if self.alpha < 2:
            return super().predict(X)
        if self.what == "raises":
            raise RuntimeError("out of order")
        return {"nan": np.full(len(X), np.nan), "words": np.full(len(X), "a"), "two": np.zeros((len(X), 2))}[self.what]


OF_THE_ESTIMATOR = {
    "nan": "y_score must not hold NaN",
    "words": "y_score must hold real numbers",
    "raises": "RuntimeError: out of order",
    "two": r"predictions must be one score per document, shape \(\d+,\); Predicts returned shape",
}


def searched(problem, what, how="one cut-off", alphas=(1.0, 2.0), y=None, **options):
    X, grades, qid = problem
    scoring, refit = {
        "several cut-offs": (ndcg_scorer("sklearn", k=(1, 5)), "ndcg_at_5"),
        "a dict of scorers": ({"a": ndcg_scorer("sklearn")}, "a"),
    }.get(how, (ndcg_scorer("sklearn"), True))
    options = {"n_jobs": 2 if how == "two processes" else None, "cv": GroupKFold(3), "refit": refit, **options}
    search = GridSearchCV(Predicts(what=what), {"alpha": alphas}, scoring=scoring, **options)
    return search.fit(X, grades if y is None else y, groups=qid)


HOW = ("one cut-off", "several cut-offs", "a dict of scorers", "two processes")
EVERY_ERROR = list(itertools.product(HOW, OF_THE_ESTIMATOR))
ONE_PROCESS = [(how, what) for how, what in EVERY_ERROR if how != "two processes" or what == "nan"]


@pytest.mark.parametrize(("how", "what"), quick(ONE_PROCESS, EVERY_ERROR))
def test_every_error_of_the_scorer_stops_a_search(problem, routing, how, what):
    with pytest.raises(ValueError, match=f"an error of the NDCG scorer: {OF_THE_ESTIMATOR[what]}"):
        searched(problem, what, how)


IN_A_POOL = """
import multiprocessing
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from ndcg_ml.sklearn import ndcg_scorer

def work(seed):
    X = np.random.default_rng(seed).normal(size=(20, 2))
    return cross_val_score(Ridge(), X, np.arange(20.0), scoring=ndcg_scorer("sklearn"))

if __name__ == "__main__":
    with multiprocessing.Pool(1) as pool:
        print(pool.map(work, [0]))
"""


def test_an_error_arrives_from_a_pool_of_processes(tmp_path):
    # With an error derived from BaseException, which Pool does not catch, the pool would never return.
    (tmp_path / "script.py").write_text(IN_A_POOL)
    script = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert script.returncode == 1
    assert "an error of the NDCG scorer: no query ids arrived" in script.stderr


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("how", "key"), [("one cut-off", "score"), ("a dict of scorers", "a")])
def test_a_numeric_error_score_replaces_errors_of_the_estimator(problem, routing, how, key):
    for what in OF_THE_ESTIMATOR:
        found = searched(problem, what, how, (2.0, 1.0), error_score=-1.0)
        assert found.cv_results_[f"mean_test_{key}"][0] == -1.0
        assert found.best_params_ == {"alpha": 1.0}
    with pytest.raises(ValueError, match="y_true must be >= 0"):
        searched(problem, "nan", how, y=problem[1] - 5, error_score=-1.0)


@pytest.mark.parametrize("what", OF_THE_ESTIMATOR)
def test_error_score_raise_raises_what_the_estimator_raised(problem, routing, what):
    kind = {"raises": RuntimeError, "words": TypeError}.get(what, ValueError)
    with pytest.raises(kind, match=OF_THE_ESTIMATOR[what].removeprefix("RuntimeError: ")):
        searched(problem, what, alphas=(2.0,), error_score="raise")


def test_a_cut_query_warning_that_is_an_error_does_not_become_nan(problem, routing):
    X, y, qid = problem
    model = QueryRanker(Ridge()).fit(X[::2], y[::2], qid[::2])
    with warnings.catch_warnings():
        warnings.simplefilter("error", CutQueryWarning)
        with pytest.raises(CutQueryWarning, match="in training with other rows"):
            ndcg_scorer("sklearn")(model, X[1::2], y[1::2], qid=qid[1::2])


# -- names -----------------------------------------------------------------------------------------------------------


def test_the_names_of_several_cutoffs_are_names_for_experiment_trackers(problem, routing):
    """mlflow accepts letters, digits, '_', '-', '.', ' ', ':' and '/' in the name of a metric."""
    X, y, qid = problem
    scorer = ndcg_scorer("sklearn", k=(1, 10, None))
    assert scorer.names == ("ndcg_at_1", "ndcg_at_10", "ndcg")
    got = cross_validate(Ridge(), X, y, scoring=scorer, cv=GroupKFold(3), params={"groups": qid})
    assert {"test_ndcg_at_1", "test_ndcg_at_10", "test_ndcg"} <= set(got)
    assert all(re.fullmatch(r"[/\w.\- :]*", name, flags=re.ASCII) for name in got)
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, scoring=scorer, refit="ndcg_at_10", cv=GroupKFold(3))
    assert search.fit(X, y, groups=qid).best_score_ == max(search.cv_results_["mean_test_ndcg_at_10"])


# -- split by user, score by query -----------------------------------------------------------------------------------


@pytest.fixture
def users(problem):
    """Return the user of each row. Every user has two queries."""
    _, _, qid = problem
    return np.char.add("u", (np.unique(qid, return_inverse=True)[1] // 2).astype(str))


SCORER_NAMES = {
    "by default": (ndcg_scorer(LIGHTGBM), "qid"),
    "qid=True": (ndcg_scorer(LIGHTGBM).set_score_request(qid=True), "qid"),
    "by another name": (ndcg_scorer(LIGHTGBM).set_score_request(qid="session"), "session"),
}


@pytest.mark.parametrize("how", SCORER_NAMES)
def test_split_by_user_and_score_by_query(problem, routing, users, how):
    X, y, qid = problem
    scorer, name = SCORER_NAMES[how]
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 100.0]}, scoring=scorer, cv=GroupKFold(4))
    search.fit(X, y, groups=users, **{name: qid})
    for row, alpha in enumerate([1.0, 100.0]):
        expected = np.mean(manual(Ridge(alpha), X, y, qid, LIGHTGBM, GroupKFold(4), users))
        assert search.cv_results_["mean_test_score"][row] == pytest.approx(expected, abs=1e-12)
    wrong = GridSearchCV(Ridge(), {"alpha": [1.0]}, scoring=scorer, cv=GroupKFold(4))
    if how == "by default":  # without qid, the groups are the ids, here users
        by_users = wrong.fit(X, y, groups=users).best_score_
        assert by_users != pytest.approx(search.cv_results_["mean_test_score"][0], abs=1e-3)
    else:
        with pytest.raises(ValueError, match="no query ids arrived"):
            wrong.fit(X, y, groups=users)


def test_a_search_weighs_each_query_by_the_weight_of_its_rows(problem, routing):
    X, y, qid = problem
    ids, query = np.unique(qid, return_inverse=True)
    weight = np.random.default_rng(0).exponential(size=ids.size)
    model, scorer = Ridge().set_fit_request(sample_weight=False), ndcg_scorer(LIGHTGBM, k=(1, 10))
    search = GridSearchCV(
        model,
        {"alpha": [1.0, 100.0]},
        scoring=scorer.set_score_request(sample_weight=True),
        refit="ndcg_at_10",
        cv=GroupKFold(4),
    ).fit(X, y, groups=qid, sample_weight=weight[query])
    for fold, (train, test) in enumerate(GroupKFold(4).split(X, y, qid)):
        scores = Ridge(100.0).fit(X[train], y[train]).predict(X[test])
        by_id = dict(zip(ids, weight, strict=True))
        value = evaluate(y[test], scores, flavor=LIGHTGBM, k=(1, 10), qid=qid[test], query_weight=by_id).value
        assert search.cv_results_[f"split{fold}_test_ndcg_at_1"][1] == value[1]
        assert search.cv_results_[f"split{fold}_test_ndcg_at_10"][1] == value[10]
    unweighted = scorer(search, X, y, qid=qid)
    assert scorer(search, X, y, qid=qid, sample_weight=np.full(len(y), 2.0)) == pytest.approx(unweighted, abs=1e-12)
    rows = ndcg_scorer("sklearn")  # each row is a query
    fitted, Y = Ridge().fit(X, np.stack([y, 4 - y], axis=1)), np.stack([y, 4 - y], axis=1)
    expected = ndcg_score(Y, fitted.predict(X), query_weight=weight[query])
    assert rows(fitted, X, Y, sample_weight=weight[query]) == expected


def test_copies_of_the_scorer_keep_its_request():
    scorer = ndcg_scorer("sklearn").set_score_request(qid="session", sample_weight=True)
    for again in (pickle.loads(pickle.dumps(scorer)), sklearn.clone(scorer, safe=False)):
        assert again.get_metadata_routing().score.requests == {"qid": "session", "groups": False, "sample_weight": True}
    unset = scorer.set_score_request().get_metadata_routing().score.requests
    assert unset == {"qid": True, "groups": True, "sample_weight": None}


# -- threads ---------------------------------------------------------------------------------------------------------


def test_a_grid_search_in_threads(data, routing):
    labels, sizes, scores = data
    qid = np.repeat(np.arange(sizes.size), sizes)
    X = np.stack(scores[:4], axis=1).astype("f8") * [1, 30, 1, 1] + labels[:, None] * [0.2, 1, 0, 0]
    grid = {"alpha": [1e-3, 1e4, 1e5, 1e6], "fit_intercept": [True, False]}

    def searched(n_jobs):
        scoring = {"ndcg": ndcg_scorer("lightgbm", k=5), "micro": ndcg_scorer(Flavor(aggregate="micro"))}
        search = GridSearchCV(Ridge(), grid, scoring=scoring, refit="ndcg", cv=GroupKFold(4), n_jobs=n_jobs)
        search.fit(X, labels, groups=qid)
        names = [name for name in search.cv_results_ if "test" in name]
        return {name: search.cv_results_[name].tolist() for name in names}, search.best_params_

    serial = searched(None)
    with joblib.parallel_backend("threading", n_jobs=4):
        assert searched(4) == serial
    assert len(set(serial[0]["mean_test_ndcg"])) > 1
