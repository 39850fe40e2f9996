"""The scikit-learn scorer: equal to a loop by hand, loud without ids."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")

import math
import pickle
import warnings

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import ndcg_score as sklearn_ndcg_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    permutation_test_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.sklearn import ndcg_scorer

LIGHTGBM = Flavor.preset("lightgbm", k=10)


@pytest.fixture
def problem():
    rng = np.random.default_rng(7)
    sizes = rng.integers(1, 20, 40)
    qid = np.repeat([f"q{i}" for i in rng.permutation(40)], sizes)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X))), 0, 3).astype(int)
    shuffled = rng.permutation(len(X))
    return X[shuffled], y[shuffled], qid[shuffled]


def by_hand(estimator, X, y, qid, flavor, cv):
    scores = []
    for train, test in cv.split(X, y, qid):
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
        by_fold = by_hand(model.set_params(**params), X, y, qid, LIGHTGBM, GroupKFold(4))
        assert score == pytest.approx(np.mean(by_fold), abs=1e-12)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.score(X, y, groups=qid) == ndcg_score(y, search.predict(X), qid=qid, flavor=LIGHTGBM)


def test_a_scorer_built_with_routing_off_works_with_it_on(problem):
    X, y, qid = problem
    scorer = ndcg_scorer("sklearn", k=5)
    with sklearn.config_context(enable_metadata_routing=True):
        got = cross_val_score(LinearRegression(), X, y, scoring=scorer, cv=GroupKFold(3), params={"groups": qid})
    assert got == pytest.approx(by_hand(LinearRegression(), X, y, qid, Flavor(k=5), GroupKFold(3)), abs=1e-12)


def test_randomized_search_with_several_metrics(problem, routing):
    X, y, qid = problem
    scoring = {"lgb": ndcg_scorer(LIGHTGBM), "sk": ndcg_scorer("sklearn", k=3)}
    search = RandomizedSearchCV(
        Ridge(), {"alpha": [1.0, 10.0]}, n_iter=2, scoring=scoring, refit="lgb", cv=GroupKFold(3), random_state=0
    ).fit(X, y, groups=qid)
    expected = np.mean(by_hand(Ridge(1.0), X, y, qid, Flavor(k=3), GroupKFold(3)))
    at = [params["alpha"] for params in search.cv_results_["params"]].index(1.0)
    assert search.cv_results_["mean_test_sk"][at] == pytest.approx(expected)
    assert np.isfinite(search.cv_results_["mean_test_lgb"]).all()


def test_permutation_test(problem, routing):
    X, y, qid = problem
    score, _, _ = permutation_test_score(
        Ridge(), X, y, scoring=ndcg_scorer("sklearn", k=3), cv=GroupKFold(3), n_permutations=2, params={"groups": qid}
    )
    assert score == pytest.approx(np.mean(by_hand(Ridge(1.0), X, y, qid, Flavor(k=3), GroupKFold(3))))


def test_two_dimensional_y_needs_no_ids():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), rng.integers(0, 4, (40, 6)).astype(float)
    fitted = Ridge().fit(X, Y)
    expected = sklearn_ndcg_score(Y, fitted.predict(X), k=4)
    assert ndcg_scorer("sklearn", k=4)(fitted, X, Y) == pytest.approx(expected, abs=1e-12)
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, scoring=ndcg_scorer("sklearn"), cv=3).fit(X, Y)
    assert 0 < search.best_score_ <= 1
    multilabel = KNeighborsClassifier(3).fit(X, (Y > 1).astype(int))
    proba = np.stack([p[:, 1] for p in multilabel.predict_proba(X)], axis=1)
    expected = ndcg_score((Y > 1).astype(int), proba, flavor="sklearn")
    assert ndcg_scorer("sklearn")(multilabel, X, (Y > 1).astype(int)) == pytest.approx(expected)


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


def test_classifiers_without_grades_are_refused(problem):
    X, y, qid = problem
    with pytest.raises(TypeError, match=r"RidgeClassifier has none.*CalibratedClassifierCV"):
        ndcg_scorer("sklearn")(RidgeClassifier().fit(X, y), X, y, qid=qid)
    words = LogisticRegression().fit(X, np.array(list("abcd"))[y])
    with pytest.raises(TypeError, match="classes must be grades"):
        ndcg_scorer("sklearn")(words, X, y, qid=qid)


def test_predictions_of_another_shape_are_refused(problem):
    X, y, qid = problem
    two = LinearRegression().fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match=r"one score a document, shape \(\d+,\); LinearRegression returned shape"):
        ndcg_scorer("sklearn")(two, X, y, qid=qid)
    column = LinearRegression().fit(X, y[:, None])
    flat = LinearRegression().fit(X, y)
    scorer = ndcg_scorer("sklearn")
    assert scorer(column, X, y, qid=qid) == scorer(flat, X, y, qid=qid)


def searches():
    scorer = ndcg_scorer(LIGHTGBM)
    grid = {"alpha": [1.0, 2.0]}
    return {
        "single": lambda X, y, q: GridSearchCV(Ridge(), grid, scoring=scorer, cv=3).fit(X, y),
        "multi": lambda X, y, q: GridSearchCV(Ridge(), grid, scoring={"a": scorer}, refit="a", cv=3).fit(X, y),
        "cross_validate": lambda X, y, q: cross_validate(Ridge(), X, y, scoring=scorer, cv=3, params={}),
        "parallel": lambda X, y, q: GridSearchCV(Ridge(), grid, scoring=scorer, cv=3, n_jobs=2).fit(X, y),
    }


@pytest.mark.parametrize("how", searches())
@pytest.mark.parametrize("enabled", [False, True])
def test_forgotten_ids_never_give_a_result(problem, how, enabled):
    with (
        sklearn.config_context(enable_metadata_routing=enabled),
        pytest.raises(ValueError, match=r"no query ids arrived.*enable_metadata_routing=True.*groups=qid"),
    ):
        searches()[how](*problem)


def test_ids_that_routing_does_not_pass_on_never_give_a_result(problem):
    X, y, qid = problem
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, scoring=ndcg_scorer(LIGHTGBM), cv=GroupKFold(3))
    with pytest.raises(ValueError, match="no query ids arrived"):
        search.fit(X, y, groups=qid)


def test_sizes_in_place_of_ids_never_give_a_result(problem, routing):
    X, y, qid = problem
    _, sizes = np.unique(qid, return_counts=True)
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, scoring=ndcg_scorer(LIGHTGBM), cv=3)
    with pytest.raises(ValueError, match=r"query ids must be one a row.*sizes of queries are not ids"):
        search.fit(X, y, groups=sizes)


def test_a_fold_with_nothing_to_average_is_loud(problem, routing):
    X, y, qid = problem
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, scoring=ndcg_scorer("burges2005"), cv=GroupKFold(3))
    with pytest.raises(ValueError, match=r"a fold cannot be scored: every query is empty"):
        search.fit(X, np.zeros_like(y), groups=qid)
    refuses = ndcg_scorer(LIGHTGBM.replace(empty="raise"))
    with pytest.raises(ValueError, match=r"a fold cannot be scored: every query must have a relevant document"):
        cross_validate(Ridge(), X, np.zeros_like(y), scoring=refuses, cv=GroupKFold(3), params={"groups": qid})


def test_called_directly_errors_are_exceptions(problem):
    X, y, qid = problem
    fitted = Ridge().fit(X, y)
    with pytest.raises(ValueError, match="no query ids arrived"):
        ndcg_scorer(LIGHTGBM)(fitted, X, y)
    with pytest.raises(ValueError, match="query ids must be one a row"):
        ndcg_scorer(LIGHTGBM)(fitted, X, y, qid=qid[:-1])


def test_an_estimators_own_failure_follows_error_score(problem, routing):
    X, y, qid = problem

    class Broken(Ridge):
        def predict(self, X):
            return np.full(len(X), math.nan)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = cross_validate(
            Broken(), X, y, scoring=ndcg_scorer(LIGHTGBM), cv=GroupKFold(3), params={"groups": qid}, error_score=-1.0
        )
    assert got["test_score"].tolist() == [-1.0] * 3


@pytest.mark.parametrize(
    ("flavor", "k", "error", "message"),
    [
        ("trec_eval", ..., ValueError, "cannot honour ties='docid'.*replace"),
        (Flavor(empty=math.nan), ..., ValueError, "cannot honour empty=nan.*'skip'"),
        ("sklearn", (), ValueError, "k must hold at least one"),
        ("sklearn", 0, ValueError, "k must be an integer >= 1"),
        ("scikit", ..., ValueError, "Did you mean 'sklearn'"),
    ],
)
def test_what_a_scorer_cannot_honour_is_refused_when_it_is_made(flavor, k, error, message):
    with pytest.raises(error, match=message):
        ndcg_scorer(flavor, k)


def test_pickle_repr_and_cutoff(problem):
    X, y, qid = problem
    scorer = ndcg_scorer("lightgbm", k=3)
    again = pickle.loads(pickle.dumps(scorer))
    fitted = Ridge().fit(X, y)
    assert again(fitted, X, y, qid=qid) == ndcg_score(y, fitted.predict(X), qid=qid, flavor="lightgbm@3")
    assert repr(again) == repr(scorer) == f"ndcg_scorer('{Flavor.preset('lightgbm', k=3)}')"
    assert ndcg_scorer(LIGHTGBM, k=None).flavor.k is None
