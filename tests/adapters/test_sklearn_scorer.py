"""The scikit-learn scorer against loops over folds. It refuses splits that cut queries, in every tool."""

import pytest

for needed in ("sklearn", "lightgbm", "pandas", "polars"):
    pytest.importorskip(needed)

import itertools
import pickle
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import sklearn
from lanes import quick
from lightgbm import LGBMRanker
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, StackingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    HalvingGridSearchCV,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from ndcg_ml import Flavor, evaluate, ndcg_score
from ndcg_ml.sklearn import CutQueryWarning, QueryKFold, QueryRanker, ndcg_scorer

LIGHTGBM = Flavor.preset("lightgbm", k=10)
SCORER, SEVERAL = ndcg_scorer("lightgbm", k=10), ndcg_scorer("lightgbm", k=(1, 10))


def made():
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(30), rng.integers(2, 15, 30))
    X = rng.normal(size=(len(qid), 3))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X))), 0, 3).astype(int)
    shuffled = rng.permutation(len(X))
    return X[shuffled], y[shuffled], qid[shuffled]


X, y, qid = made()


def by_hand(folds, model=None, table=X):
    """Return the mean of the scores of these folds."""
    scores = []
    for train, test in folds:
        fitted = sklearn.clone(model or Ridge()).fit(table[train], y[train])
        scores.append(ndcg_score(y[test], fitted.predict(table[test]), qid=qid[test], flavor=LIGHTGBM))
    return pytest.approx(np.mean(scores), abs=1e-12)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search_equals_the_by_hand(routing, n_jobs):
    model = make_pipeline(StandardScaler(), Ridge())
    grid = {"ridge__alpha": [0.1, 100.0, 1e6]}
    search = GridSearchCV(model, grid, scoring=ndcg_scorer(LIGHTGBM), cv=GroupKFold(4), n_jobs=n_jobs)
    search.fit(X, y, groups=qid)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        assert score == by_hand(GroupKFold(4).split(X, y, qid), model.set_params(**params))
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.score(X, y, groups=qid) == ndcg_score(y, search.predict(X), qid=qid, flavor=LIGHTGBM)


def test_a_classifier_is_scored_by_its_expected_grade():
    forest = RandomForestClassifier(10, random_state=0).fit(X[::2], y[::2])
    expected = forest.predict_proba(X) @ forest.classes_
    got = ndcg_scorer(LIGHTGBM)(forest, X, y, qid=qid)
    assert got == ndcg_score(y, expected, qid=qid, flavor=LIGHTGBM)
    assert got != ndcg_score(y, forest.predict(X), qid=qid, flavor=LIGHTGBM)
    ranker = QueryRanker(forest, flavor=LIGHTGBM).fit(X, y, qid)
    assert np.array_equal(ranker.predict(X), ranker.ranker_.predict_proba(X) @ forest.classes_)
    assert ranker.score(X, y, qid) == ndcg_scorer(LIGHTGBM)(ranker.ranker_, X, y, qid=qid)
    binary = RidgeClassifier().fit(X, y > 1)
    got = ndcg_scorer("sklearn")(binary, X, (y > 1).astype(int), qid=qid)
    assert got == ndcg_score((y > 1).astype(int), binary.decision_function(X), qid=qid)


def test_copies_repr_cutoff_and_request():
    scorer = ndcg_scorer("lightgbm", k=3)
    again = pickle.loads(pickle.dumps(scorer))
    fitted = Ridge().fit(X, y)
    assert again(fitted, X, y, qid=qid) == ndcg_score(y, fitted.predict(X), qid=qid, flavor="lightgbm@3")
    assert repr(again) == repr(scorer) == "ndcg_scorer('lightgbm', k=3)"
    assert ndcg_scorer(LIGHTGBM, k=None).flavor.k is None
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = ndcg_scorer("sklearn").set_score_request(qid="session", sample_weight=True)
    for again in (pickle.loads(pickle.dumps(scorer)), sklearn.clone(scorer, safe=False)):
        assert again.get_metadata_routing().score.requests == {"qid": "session", "groups": False, "sample_weight": True}
    with sklearn.config_context(enable_metadata_routing=True):
        unset = scorer.set_score_request().get_metadata_routing().score.requests
    assert unset == {"qid": True, "groups": True, "sample_weight": None}


# -- labels in one column --------------------------------------------------------------------------------------------


def test_labels_in_one_column_are_not_queries_of_one_document():
    model = LinearRegression().fit(X, y[:, None])
    scores = model.predict(X)  # in two dimensions, as those of skorch's NeuralNetRegressor
    assert scores.shape == (len(y), 1)
    for labels in (pd.DataFrame({"grade": y}), pl.DataFrame({"grade": y}), y[:, None].tolist()):
        got = ndcg_scorer(LIGHTGBM)(model, X, labels, qid=qid)
        assert got == ndcg_score(y, scores[:, 0], qid=qid, flavor=LIGHTGBM)


def test_two_dimensional_labels_take_no_ids(routing):
    rng = np.random.default_rng(0)
    X, Y, user = rng.normal(size=(40, 3)), rng.integers(0, 4, (40, 6)), np.repeat(np.arange(8), 5)
    scorer = ndcg_scorer(LIGHTGBM).set_score_request(qid=False)
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 9.0]}, scoring=scorer, cv=GroupKFold(4)).fit(X, Y, groups=user)
    folds = [(Y[test], Ridge().fit(X[at], Y[at]).predict(X[test])) for at, test in GroupKFold(4).split(X, Y, user)]
    expected = [ndcg_score(*fold, flavor=LIGHTGBM) for fold in folds]
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(expected), abs=1e-12)


MULTI_LABEL = {
    "one versus rest": (OneVsRestClassifier(LogisticRegression()), lambda model: model.predict_proba(X)),
    "without probabilities": (OneVsRestClassifier(LinearSVC()), lambda model: model.decision_function(X)),
    "a list": (
        make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression())),
        lambda model: np.transpose([each[:, 1] for each in model.predict_proba(X)]),
    ),
}


@pytest.mark.parametrize("how", MULTI_LABEL)
def test_a_classifier_of_several_labels_is_scored_by_their_probabilities(how):
    Y = (np.random.default_rng(0).normal(size=(len(X), 5)) + X[:, :1] > 0.5).astype(int)
    model, scores = MULTI_LABEL[how]
    found = ndcg_scorer("sklearn", k=3)(model.fit(X, Y), X, Y)
    assert found == ndcg_score(Y, scores(model), k=3) > ndcg_score(Y, model.predict(X), k=3)


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


def searched(what, how="one cut-off", alphas=(1.0, 2.0), grades=None, **options):
    scoring, refit = {
        "several cut-offs": (ndcg_scorer("sklearn", k=(1, 5)), "ndcg_at_5"),
        "a dict of scorers": ({"a": ndcg_scorer("sklearn")}, "a"),
    }.get(how, (ndcg_scorer("sklearn"), True))
    options = {"n_jobs": 2 if how == "two processes" else None, "cv": GroupKFold(3), "refit": refit, **options}
    search = GridSearchCV(Predicts(what=what), {"alpha": alphas}, scoring=scoring, **options)
    return search.fit(X, y if grades is None else grades, groups=qid)


HOW = ("one cut-off", "several cut-offs", "a dict of scorers")


# joblib restarts its processes after an error, which is slow, so only one error of a search comes from them.
@pytest.mark.parametrize(("how", "what"), [*itertools.product(HOW, OF_THE_ESTIMATOR), ("two processes", "nan")])
def test_every_error_of_the_scorer_stops_a_search(routing, how, what):
    with pytest.raises(ValueError, match=f"an error of the NDCG scorer: {OF_THE_ESTIMATOR[what]}"):
        searched(what, how)


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
def test_a_numeric_error_score_replaces_errors_of_the_estimator(routing, how, key):
    for what in OF_THE_ESTIMATOR:
        found = searched(what, how, (2.0, 1.0), error_score=-1.0)
        assert found.cv_results_[f"mean_test_{key}"][0] == -1.0
        assert found.best_params_ == {"alpha": 1.0}
    with pytest.raises(ValueError, match="y_true must be >= 0"):
        searched("nan", how, grades=y - 5, error_score=-1.0)


@pytest.mark.parametrize("what", OF_THE_ESTIMATOR)
def test_error_score_raise_raises_what_the_estimator_raised(routing, what):
    kind = {"raises": RuntimeError, "words": TypeError}.get(what, ValueError)
    with pytest.raises(kind, match=OF_THE_ESTIMATOR[what].removeprefix("RuntimeError: ")):
        searched(what, alphas=(2.0,), error_score="raise")


def test_the_names_of_several_cutoffs_are_names_for_experiment_trackers(routing):
    """mlflow accepts letters, digits, '_', '-', '.', ' ', ':' and '/' in the name of a metric."""
    scorer = ndcg_scorer("sklearn", k=(1, 10, None))
    assert scorer.names == ("ndcg_at_1", "ndcg_at_10", "ndcg")
    got = cross_validate(Ridge(), X, y, scoring=scorer, cv=GroupKFold(3), params={"groups": qid})
    assert {"test_ndcg_at_1", "test_ndcg_at_10", "test_ndcg"} <= set(got)
    assert all(re.fullmatch(r"[/\w.\- :]*", name, flags=re.ASCII) for name in got)
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, scoring=scorer, refit="ndcg_at_10", cv=GroupKFold(3))
    assert search.fit(X, y, groups=qid).best_score_ == max(search.cv_results_["mean_test_ndcg_at_10"])


# -- split by user, score by query -----------------------------------------------------------------------------------


# Every user has two queries.
users = np.char.add("u", (np.unique(qid, return_inverse=True)[1] // 2).astype(str))
SCORER_NAMES = {
    "by default": (lambda: ndcg_scorer(LIGHTGBM), "qid"),
    "qid=True": (lambda: ndcg_scorer(LIGHTGBM).set_score_request(qid=True), "qid"),
    "by another name": (lambda: ndcg_scorer(LIGHTGBM).set_score_request(qid="session"), "session"),
}


@pytest.mark.parametrize("how", SCORER_NAMES)
def test_split_by_user_and_score_by_query(routing, how):
    make, name = SCORER_NAMES[how]
    scorer = make()
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 100.0]}, scoring=scorer, cv=GroupKFold(4))
    search.fit(X, y, groups=users, **{name: qid})
    for row, alpha in enumerate([1.0, 100.0]):
        expected = by_hand(GroupKFold(4).split(X, y, users), Ridge(alpha=alpha))
        assert search.cv_results_["mean_test_score"][row] == expected
    wrong = GridSearchCV(Ridge(), {"alpha": [1.0]}, scoring=scorer, cv=GroupKFold(4))
    if how == "by default":  # without qid, the groups are the ids, here users
        by_users = wrong.fit(X, y, groups=users).best_score_
        assert by_users != pytest.approx(search.cv_results_["mean_test_score"][0], abs=1e-3)
    else:
        with pytest.raises(ValueError, match="no query ids arrived"):
            wrong.fit(X, y, groups=users)


def test_a_search_weighs_each_query_by_the_weight_of_its_rows(routing):
    ids, query = np.unique(qid, return_inverse=True)
    weight = np.random.default_rng(0).exponential(size=ids.size)
    model, scorer = Ridge().set_fit_request(sample_weight=False), ndcg_scorer(LIGHTGBM, k=(1, 10))
    options = {"scoring": scorer.set_score_request(sample_weight=True), "refit": "ndcg_at_10", "cv": GroupKFold(4)}
    search = GridSearchCV(model, {"alpha": [1.0, 100.0]}, **options)
    search.fit(X, y, groups=qid, sample_weight=weight[query])
    for fold, (train, test) in enumerate(GroupKFold(4).split(X, y, qid)):
        scores = Ridge(100.0).fit(X[train], y[train]).predict(X[test])
        by_id = dict(zip(ids, weight, strict=True))
        value = evaluate(y[test], scores, flavor=LIGHTGBM, k=(1, 10), qid=qid[test], query_weight=by_id).value
        assert search.cv_results_[f"split{fold}_test_ndcg_at_1"][1] == value[1]
        assert search.cv_results_[f"split{fold}_test_ndcg_at_10"][1] == value[10]
    unweighted = scorer(search, X, y, qid=qid)
    assert scorer(search, X, y, qid=qid, sample_weight=np.full(len(y), 2.0)) == pytest.approx(unweighted, abs=1e-12)
    rows = ndcg_scorer("sklearn", k=(1, 2))  # each row is a query
    fitted, Y = Ridge().fit(X, np.stack([y, 4 - y], axis=1)), np.stack([y, 4 - y], axis=1)
    expected = ndcg_score(Y, fitted.predict(X), k=(1, 2), query_weight=weight[query])
    assert list(rows(fitted, X, Y, sample_weight=weight[query]).values()) == list(expected.values())


# == splits that cut queries =========================================================================================


def cuts(words=""):
    return pytest.raises(ValueError, match=f"the split cuts {words}")


def grid(scorer=SCORER, cv=None, **options):
    return GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, scoring=scorer, cv=cv, **options)


def validated(scorer, cv, rows=slice(None)):
    return cross_validate(Ridge(), X[rows], y[rows], scoring=scorer, cv=cv, params={"groups": qid[rows]})


def one_fold(test, n_rows=None):
    """Return a splitter with these rows as its only test fold."""
    folds = -np.ones(n_rows or len(qid), dtype=int)
    folds[test] = 0
    return PredefinedSplit(folds)


# -- scikit-learn's tools --------------------------------------------------------------------------------------------

OPTIONS = {"params": {"groups": qid}}
TOOLS = {
    "GridSearchCV": lambda cv, s: grid(s, cv).fit(X, y, groups=qid),
    "GridSearchCV n_jobs": lambda cv, s: grid(s, cv, n_jobs=2).fit(X, y, groups=qid),
    "cross_validate": lambda cv, s: cross_validate(Ridge(), X, y, scoring=s, cv=cv, **OPTIONS),
    "learning_curve": lambda cv, s: learning_curve(Ridge(), X, y, scoring=s, cv=cv, **OPTIONS),
    "validation_curve": lambda cv, s: validation_curve(
        Ridge(), X, y, scoring=s, cv=cv, param_name="alpha", param_range=[1.0], **OPTIONS
    ),
    "permutation_test_score": lambda cv, s: permutation_test_score(
        Ridge(), X, y, scoring=s, cv=cv, n_permutations=1, **OPTIONS
    ),
    "RFECV": lambda cv, s: RFECV(Ridge(), scoring=s, cv=cv).fit(X, y, groups=qid),
    "SequentialFeatureSelector": lambda cv, s: SequentialFeatureSelector(
        Ridge(), n_features_to_select=1, scoring=s, cv=cv
    ).fit(X, y, groups=qid),
}
ONE_SCORER = {"RFECV", "SequentialFeatureSelector", "permutation_test_score", "GridSearchCV n_jobs"}
REFUSED = [(tool, SCORER) for tool in TOOLS] + [(tool, SEVERAL) for tool in TOOLS if tool not in ONE_SCORER]


@pytest.mark.parametrize(("tool", "scorer"), quick([each for each in REFUSED if "n_jobs" not in each[0]], REFUSED))
def test_a_split_by_rows_is_refused_by_every_tool(routing, tool, scorer):
    with cuts(r"\d+ of the \d+ queries that it scores.*GroupKFold"):
        TOOLS[tool](KFold(3), scorer)
    with cuts(r"1 of the 3 queries that it scores: \d+ of the"):
        TOOLS[tool](one_fold(np.flatnonzero(np.isin(qid, [0, 1, 2]))[:-1]), scorer)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_split_by_query_is_not_refused(routing, tool):
    for cv in (GroupKFold(3), GroupShuffleSplit(2, random_state=0), one_fold(np.flatnonzero(qid < 3))):
        TOOLS[tool](cv, SCORER)


def test_rows_that_were_whole_queries_in_one_data_set_may_be_cut_in_another(routing):
    scorer, first, tested = ndcg_scorer("lightgbm", k=10), np.flatnonzero(qid == 0), np.isin(qid, [0, 1])
    half = np.setdiff1d(np.arange(len(qid)), first[1:])  # without the other rows of query 0, nothing is cut
    validated(scorer, one_fold(np.flatnonzero(tested[half]), len(half)), half)
    tested[first[1:]] = False  # the scored rows stay the same
    with cuts(r"1 of the 2 queries.*1 of the \d+ rows"):
        validated(scorer, one_fold(np.flatnonzero(tested)))


def test_halving_by_rows_is_refused(routing):
    options = {"scoring": SCORER, "cv": GroupKFold(3), "error_score": "raise"}
    with cuts():
        HalvingGridSearchCV(Ridge(), {"alpha": [1.0, 2.0, 3.0]}, min_resources=40, **options).fit(X, y, groups=qid)
    model = QueryRanker(LGBMRanker(verbosity=-1, n_jobs=1, min_child_samples=3))
    trees = {"resource": "ranker__n_estimators", "max_resources": 8, "min_resources": 2}
    by_trees = HalvingGridSearchCV(model, {"ranker__num_leaves": [2, 4, 8]}, **trees, **options)
    assert 0 < by_trees.fit(X, y, groups=qid).best_score_ <= 1


@pytest.mark.parametrize("cv", [3, ShuffleSplit(2, random_state=0), GroupKFold(3)])
def test_ids_in_a_column_are_checked_too(cv):
    frame = pd.DataFrame(X, columns=list("abc")).assign(qid=qid)
    model = QueryRanker(LGBMRanker(n_estimators=2, verbosity=-1, n_jobs=1), qid_column="qid")
    scorer = ndcg_scorer("lightgbm", k=10, qid_column="qid")
    search = GridSearchCV(model, {"ranker__num_leaves": [2, 4]}, scoring=scorer, cv=cv)
    if isinstance(cv, GroupKFold):
        assert search.fit(frame, y, groups=qid).best_score_ > 0
    else:
        with cuts():
            search.fit(frame, y)


def test_a_scorer_holds_the_ids_of_all_rows_once(routing):
    ids = np.char.add("q" * 60, np.repeat(np.arange(500).astype(str), 20))  # 2.5 MB
    tracemalloc.start()
    scorer, table = ndcg_scorer("sklearn"), np.zeros((ids.size, 1))
    before, _ = tracemalloc.get_traced_memory()
    cross_validate(Ridge(), table, np.arange(ids.size) % 3, scoring=scorer, cv=GroupKFold(10), params={"groups": ids})
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert held < 2 * ids.nbytes


# -- docs/sklearn.md, "Other tools": the line that is right, and what happens otherwise --------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "sklearn.md").read_text("utf-8").split("## Other tools")[1]
RIGHT = dict(re.findall(r"^\| `(\w+).*? \| `(.+)` \| ", PAGE, flags=re.MULTILINE))


class Watched(QueryRanker):
    """Count the fits on cut queries."""

    n_cut = 0

    def fit(self, X, y, qid=None, sample_weight=None, *, groups=None):
        super().fit(X, y, qid, sample_weight, groups=groups)
        Watched.n_cut += any(np.sum(query == IDS) != rows for query, rows in self.trained_queries_.sizes.items())
        return self


IDS, BY_QUERY, FRAME = qid, GroupKFold(5), pd.DataFrame(X, columns=list("abc")).assign(qid=qid)
WATCHED = Watched(LGBMRanker(n_estimators=3, num_leaves=3, verbosity=-1, min_child_samples=2, n_jobs=1))
BY_COLUMN = QueryRanker(Ridge(), qid_column="qid")
OF_COLUMN = ndcg_scorer(LIGHTGBM, qid_column="qid")


def in_folds(model):
    return cross_val_score(model, X, y, scoring=SCORER, cv=BY_QUERY, **OPTIONS).mean()


def refused(message, fit, *table, **ids):
    with pytest.raises((TypeError, ValueError), match=message):
        fit(*table, **ids)
    return True


def cut(fit, *table, **options):
    fit(*table, **options)
    return Watched.n_cut > 0


def optuna_search():
    return pytest.importorskip("optuna_integration").OptunaSearchCV(
        WATCHED, {}, cv=BY_QUERY, scoring=SCORER, n_trials=1
    )


# By tool: whether what its line returns is right, and whether another line goes wrong as the page says.
TOOLS_OF_PAGE = {
    "RFECV": (
        lambda found: found.support_[0] and np.isclose(found.cv_results_["mean_test_score"][-1], in_folds(WATCHED)),
        lambda: refused("without named columns", RFECV(BY_COLUMN, scoring=OF_COLUMN).fit, FRAME, y),
    ),
    "permutation_importance": (
        lambda found: found.importances_mean.argmax() == 0,
        lambda: permutation_importance(BY_COLUMN.fit(FRAME, y), FRAME, y, scoring=OF_COLUMN).importances[3].any(),
    ),
    "learning_curve": (
        lambda found: len(found) == 3 and max(found) < 1,
        lambda: cut(learning_curve, WATCHED, X, y, scoring=SCORER, cv=BY_QUERY, **OPTIONS),
    ),
    "validation_curve": (
        lambda found: found[1].mean(axis=1)[1] == in_folds(sklearn.clone(WATCHED).set_params(ranker__num_leaves=7)),
        lambda: np.isnan(validation_curve(WATCHED, X, y, param_name="flavor", param_range=[1], **OPTIONS)[1]).all(),
    ),
    "StackingRegressor": (
        lambda found: SCORER(found, X, y, qid=qid) > 0.8,
        lambda: cut(StackingRegressor([("a", WATCHED)], QueryRanker(Ridge()), cv=5).fit, X, y, groups=qid),
    ),
    "HistGradientBoostingRegressor": (
        lambda found: found.validation_queries_.size == 3,
        lambda: refused("no query ids", HistGradientBoostingRegressor(early_stopping=True, scoring=SCORER).fit, X, y),
    ),
    "OptunaSearchCV": (
        lambda found: 0 < found.best_score_ < 1,
        lambda: refused("no query ids|No trials", optuna_search().fit, X, y, groups=qid),
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tool", RIGHT)
def test_the_right_line_of_a_tool(routing, tool):
    is_right, goes_wrong = TOOLS_OF_PAGE[tool]
    scope = {**vars(sklearn.model_selection), **vars(lightgbm), **globals()}
    scope.update(model=WATCHED, ranker=WATCHED.ranker, scorer=SCORER, frame=FRAME)
    if tool == "OptunaSearchCV":
        scope[tool] = pytest.importorskip("optuna_integration").OptunaSearchCV
        scope.update(vars(pytest.importorskip("optuna.distributions")))
    Watched.n_cut = 0
    assert is_right(eval(RIGHT[tool], scope))
    assert Watched.n_cut == 0
    assert goes_wrong()


# -- outside of scikit-learn's splits --------------------------------------------------------------------------------


def fitted(train, ranker=None):
    ranker = ranker or QueryRanker(LGBMRanker(n_estimators=3, verbosity=-1, min_child_samples=2, n_jobs=1))
    return ranker.fit(X[train], y[train], groups=qid[train])


def scored(model, rows, scorer=SCORER):
    return scorer(model, X[rows], y[rows], qid=qid[rows])


def test_a_loop_that_cuts_queries_warns(routing):
    for train, test in KFold(3).split(X):
        model = fitted(train)
        with pytest.warns(CutQueryWarning, match=r"\d+ of \d+ queries that are scored were also in training") as seen:
            SCORER(model, X[test], y[test], qid=qid[test])
        # The warning has the file of the caller. Old versions of libraries emit other warnings.
        assert [one.filename for one in seen if one.category is CutQueryWarning] == [__file__]
        with pytest.warns(CutQueryWarning, match="in training with other rows"):
            model.score(X[test], y[test], qid[test])
        scored(model, test, ndcg_scorer("lightgbm", k=10, qid=qid[test]))  # qid= says that these are whole
        in_pipe = fitted(train, make_pipeline("passthrough", StandardScaler(), sklearn.clone(model)))
        with pytest.warns(CutQueryWarning):
            scored(in_pipe, test)


def test_whole_queries_new_or_seen_do_not_warn():
    for train, test in GroupKFold(3).split(X, y, qid):
        model = fitted(train)
        scored(model, test)
        scored(model, train[::-1])
        scored(pickle.loads(pickle.dumps(model)), train[np.isin(qid[train], qid[train][:3])])


# -- QueryKFold ------------------------------------------------------------------------------------------------------


def folds_of(splitter, *table):
    return [test.tolist() for _, test in splitter.split(*table)]


def test_query_k_fold_is_group_k_fold_without_groups():
    expected = folds_of(GroupKFold(4), X, y, qid)
    for splitter, table in (
        (QueryKFold(4, qid=qid), X),
        (QueryKFold(4, qid=qid.tolist()), X.tolist()),
        (QueryKFold(4, qid_column="qid"), pd.DataFrame(X).assign(qid=qid)),
    ):
        assert folds_of(splitter, table) == expected
        assert splitter.get_n_splits() == 4
    assert folds_of(QueryKFold(4, qid=qid), X, y, qid.tolist()) == expected
    assert folds_of(QueryKFold(qid=qid), X) == folds_of(GroupKFold(), X, y, qid)
    shuffled = QueryKFold(4, qid=qid, shuffle=True, random_state=1)
    assert folds_of(shuffled, X) != expected
    assert folds_of(pickle.loads(pickle.dumps(shuffled)), X) == folds_of(shuffled, X)
    assert "QueryKFold(" in repr(shuffled)


@pytest.mark.parametrize("how", ["qid", "qid_column"])
def test_query_k_fold_by_user_refuses_other_groups(routing, how):
    user = qid // 3
    table = pd.DataFrame(X, columns=list("abc")).assign(user=user)
    splitter = QueryKFold(3, qid=user) if how == "qid" else QueryKFold(3, qid_column="user")
    with pytest.raises(ValueError, match=r"groups must be equal to the ids of QueryKFold.*they differ.*qid=qid"):
        grid(cv=splitter).fit(table, y, groups=qid)
    search = grid(cv=splitter).fit(table, y, qid=qid)
    assert search.cv_results_["mean_test_score"][0] == by_hand(GroupKFold(3).split(X, y, user), table=table.to_numpy())


# -- rows that are repeated or left out ------------------------------------------------------------------------------


@pytest.mark.parametrize("scorer", [SCORER, ndcg_scorer("lightgbm", k=10, qid=np.arange(30).repeat(2))])
def test_half_of_each_query_with_each_row_twice_is_not_a_whole_query(routing, scorer):
    every = [np.flatnonzero(query == qid) for query in range(30)]
    even = [rows for rows in every if rows.size % 2 == 0]
    halves = np.concatenate([rows[: rows.size // 2] for rows in even]).repeat(2)
    train = np.setdiff1d(np.arange(len(y)), np.concatenate(even))
    for test in (halves, halves - len(y)):
        with pytest.raises(ValueError, match=r"must score each row once; row \d+, of query \d+, appears 2 times"):
            validated(scorer, [(train, test)])


def test_folds_may_leave_out_rows_if_the_scorer_has_the_ids_of_the_others(routing):
    in_use = np.random.default_rng(0).random(len(y)) < 0.8
    rows = np.flatnonzero(in_use)
    by_query, by_rows = GroupKFold(3).split(rows, groups=qid[rows]), KFold(3).split(rows)
    folds, by_rows = ([(rows[train], rows[test]) for train, test in splits] for splits in (by_query, by_rows))
    with cuts(r".*the ids of the others: ndcg_scorer\(.*qid=qid\[in_use\]"):
        grid(cv=folds).fit(X, y, groups=qid)
    with_ids = ndcg_scorer("lightgbm", k=10, qid=qid[in_use])
    search = grid(with_ids, folds).fit(X, y, groups=qid)
    assert search.cv_results_["mean_test_score"][0] == by_hand(folds)
    with cuts():
        grid(with_ids, by_rows).fit(X, y, groups=qid)


# -- a scorer with all ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, list, pd.Series, lambda q: pd.Series(q).astype("category")])
def test_a_scorer_with_all_ids_refuses_cut_queries_anywhere(convert):
    with_ids = ndcg_scorer("lightgbm", k=10, qid=convert(qid[::-1]))  # the order of the ids must not matter
    model = Ridge().fit(X, y)
    for _, test in KFold(3).split(X):
        with cuts(r"\d+ of the \d+ queries.*of the \d+ rows of"):
            scored(model, test, with_ids)
    for _, test in GroupKFold(3).split(X, y, qid):
        assert scored(model, test, with_ids) == scored(model, test)
    with cuts("30 of the 30 queries"):
        scored(model, np.tile(np.arange(len(y)), 2), with_ids)
    with pytest.raises(ValueError, match=r"among those of ndcg_scorer\(.*; 30 of 30 are not, the first is 1"):
        with_ids(model, X, y, qid=qid + 100)
    with pytest.raises(ValueError, match="no query ids arrived"):
        with_ids(model, X, y)
    again = pickle.loads(pickle.dumps(with_ids))
    assert scored(model, slice(None), again) == scored(model, slice(None))
    assert repr(again).endswith(f", qid=<{len(y)} rows of 30 queries>)")


FOREIGN_SEARCH = """
import numpy as np

def _score(estimator, X, y, scorer):
    return scorer(estimator, X, y)

def score(estimator, X, y, scorer, error_score):
    try:
        return _score(estimator, X, y, scorer)
    except Exception:
        if error_score == "raise":
            raise
        return error_score

def search(estimator, X, y, folds, scorer, value):
    scores = [score(estimator.fit(X.iloc[a], y[a]), X.iloc[b], y[b], scorer, value) for a, b in folds]
    return np.array(scores, dtype=np.float64)
"""


@pytest.mark.parametrize("error_score", ["raise", np.nan, -1.0])
def test_an_error_in_a_search_of_dask_does_not_become_a_score(error_score):
    wide = pd.DataFrame(X, columns=list("abc")).assign(qid=qid)
    with_ids = ndcg_scorer("lightgbm", k=10, qid_column="qid", qid=qid)
    dask = {"__name__": "dask_ml.model_selection.methods"}
    exec(FOREIGN_SEARCH, dask)
    begin = "" if error_score == "raise" else "an error of the NDCG scorer: "
    with pytest.raises(ValueError, match=f"^{begin}the split cuts"):
        dask["search"](Ridge(), wide, y, KFold(3).split(X), with_ids, error_score)
    whole = dask["search"](Ridge(), wide, y, GroupKFold(3).split(X, y, qid), with_ids, error_score)
    assert np.isfinite(whole).all()


def test_ids_of_mixed_types_stay_apart_in_a_list(routing):
    """NumPy would make [1, "1"] one id."""
    table, y = np.arange(8.0)[:, None], np.array([0, 1, 1, 0, 1, 0, 0, 1])
    qid, scorer = [1, 1, "1", "1", 2, 2, "2", "2"], ndcg_scorer("sklearn")
    model = Ridge().fit(table, y)
    assert scorer(model, table, y, qid=qid) == ndcg_score(y, model.predict(table), qid=np.repeat(range(4), 2))
    with cuts("1 of the 2 queries that it scores: 1 of the 2 rows of query '1'"):
        cross_validate(Ridge(), table, y, scoring=scorer, cv=[([4, 5, 6, 7], [0, 1, 2])], params={"groups": qid})
