"""A split that cuts queries is refused by the scorer wherever scikit-learn makes it; QueryKFold prevents it."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("lightgbm")
pytest.importorskip("pandas")

import pickle
import warnings

import numpy as np
import pandas as pd
import sklearn
from lightgbm import LGBMRanker
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    HalvingGridSearchCV,
    KFold,
    PredefinedSplit,
    RandomizedSearchCV,
    ShuffleSplit,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ndcg_ml import ndcg_score
from ndcg_ml.sklearn import CutQueryWarning, QueryKFold, QueryRanker, ndcg_scorer

GRID = {"alpha": [1.0, 2.0]}
SCORER, SEVERAL = ndcg_scorer("lightgbm", k=10), ndcg_scorer("lightgbm", k=(1, 10))


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(30), rng.integers(2, 15, 30))
    X = rng.normal(size=(len(qid), 3))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X))), 0, 3).astype(int)
    shuffled = rng.permutation(len(X))
    return X[shuffled], y[shuffled], qid[shuffled]


def one_fold(test, n_rows):
    """A splitter with these rows as its only test fold."""
    folds = -np.ones(n_rows, dtype=int)
    folds[test] = 0
    return PredefinedSplit(folds)


TOOLS = {
    "GridSearchCV": lambda X, y, q, cv, s: GridSearchCV(Ridge(), GRID, scoring=s, cv=cv).fit(X, y, groups=q),
    "GridSearchCV n_jobs": lambda X, y, q, cv, s: GridSearchCV(Ridge(), GRID, scoring=s, cv=cv, n_jobs=2).fit(
        X, y, groups=q
    ),
    "multi-metric": lambda X, y, q, cv, s: GridSearchCV(Ridge(), GRID, scoring={"a": s, "b": s}, refit="a", cv=cv).fit(
        X, y, groups=q
    ),
    "RandomizedSearchCV": lambda X, y, q, cv, s: RandomizedSearchCV(Ridge(), GRID, n_iter=1, scoring=s, cv=cv).fit(
        X, y, groups=q
    ),
    "cross_validate": lambda X, y, q, cv, s: cross_validate(Ridge(), X, y, scoring=s, cv=cv, params={"groups": q}),
    "cross_val_score": lambda X, y, q, cv, s: cross_val_score(Ridge(), X, y, scoring=s, cv=cv, params={"groups": q}),
    "learning_curve": lambda X, y, q, cv, s: learning_curve(Ridge(), X, y, scoring=s, cv=cv, params={"groups": q}),
    "validation_curve": lambda X, y, q, cv, s: validation_curve(
        Ridge(), X, y, scoring=s, cv=cv, param_name="alpha", param_range=[1.0], params={"groups": q}
    ),
    "permutation_test_score": lambda X, y, q, cv, s: permutation_test_score(
        Ridge(), X, y, scoring=s, cv=cv, n_permutations=1, params={"groups": q}
    ),
    "RFECV": lambda X, y, q, cv, s: RFECV(Ridge(), scoring=s, cv=cv).fit(X, y, groups=q),
    "SequentialFeatureSelector": lambda X, y, q, cv, s: SequentialFeatureSelector(
        Ridge(), n_features_to_select=1, scoring=s, cv=cv
    ).fit(X, y, groups=q),
    "pipeline": lambda X, y, q, cv, s: cross_validate(
        make_pipeline(StandardScaler(), Ridge()), X, y, scoring=s, cv=cv, params={"groups": q}
    ),
}


ONE_NUMBER_ONLY = {"multi-metric", "RFECV", "SequentialFeatureSelector", "permutation_test_score"}


@pytest.mark.parametrize(
    ("tool", "scorer"),
    [(tool, SCORER) for tool in TOOLS] + [(tool, SEVERAL) for tool in TOOLS if tool not in ONE_NUMBER_ONLY],
)
def test_a_split_by_rows_is_refused_by_every_tool(problem, routing, tool, scorer):
    X, y, qid = problem
    with pytest.raises(ValueError, match=r"the split cuts \d+ of the \d+ queries that it scores.*GroupKFold"):
        TOOLS[tool](X, y, qid, KFold(3), scorer)
    one_cut = one_fold(np.flatnonzero(np.isin(qid, [0, 1, 2]))[:-1], len(qid))
    with pytest.raises(ValueError, match=r"the split cuts 1 of the 3 queries that it scores: of query"):
        TOOLS[tool](X, y, qid, one_cut, scorer)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_split_by_query_is_not_refused(problem, routing, tool):
    X, y, qid = problem
    TOOLS[tool](X, y, qid, GroupKFold(3), SCORER)
    TOOLS[tool](X, y, qid, GroupShuffleSplit(2, random_state=0), SCORER)
    TOOLS[tool](X, y, qid, one_fold(np.flatnonzero(qid < 3), len(qid)), SCORER)


def test_the_same_rows_may_be_scored_whole_and_cut_by_one_scorer(problem, routing):
    X, y, qid = problem
    scorer = ndcg_scorer("lightgbm", k=10)
    first = np.flatnonzero(qid == 0)
    half = np.setdiff1d(np.arange(len(qid)), first[1:])  # without the other rows of query 0, nothing is cut
    tested = np.isin(qid, [0, 1])
    cv = one_fold(np.flatnonzero(tested[half]), len(half))
    cross_validate(Ridge(), X[half], y[half], scoring=scorer, cv=cv, params={"groups": qid[half]})
    tested[first[1:]] = False  # the same rows are scored
    cv = one_fold(np.flatnonzero(tested), len(qid))
    with pytest.raises(ValueError, match=r"the split cuts 1 of the 2 queries.*1 of \d+ rows"):
        cross_validate(Ridge(), X, y, scoring=scorer, cv=cv, params={"groups": qid})


def test_halving_by_rows_is_refused(problem, routing):
    X, y, qid = problem
    halving = HalvingGridSearchCV(
        Ridge(), {"alpha": [1.0, 2.0, 3.0]}, scoring=SCORER, cv=GroupKFold(3), min_resources=40
    )
    with pytest.raises(ValueError, match="the split cuts"):
        halving.fit(X, y, groups=qid)
    by_trees = HalvingGridSearchCV(
        QueryRanker(LGBMRanker(verbosity=-1, n_jobs=1, min_child_samples=3)),
        {"ranker__num_leaves": [2, 4, 8]},
        resource="ranker__n_estimators",
        max_resources=8,
        min_resources=2,
        scoring=SCORER,
        cv=GroupKFold(3),
        error_score="raise",
    ).fit(X, y, groups=qid)
    assert 0 < by_trees.best_score_ <= 1


@pytest.mark.parametrize("cv", [3, ShuffleSplit(2, random_state=0), GroupKFold(3)])
def test_ids_in_a_column_are_looked_at_too(problem, cv):
    X, y, qid = problem
    frame = pd.DataFrame(X, columns=list("abc")).assign(qid=qid)
    model = QueryRanker(LGBMRanker(n_estimators=2, verbosity=-1, n_jobs=1), qid_column="qid")
    scorer = ndcg_scorer("lightgbm", k=10, qid_column="qid")
    search = GridSearchCV(model, {"ranker__num_leaves": [2, 4]}, scoring=scorer, cv=cv)
    if isinstance(cv, GroupKFold):
        assert search.fit(frame, y, groups=qid).best_score_ > 0
    else:
        with pytest.raises(ValueError, match="the split cuts"):
            search.fit(frame, y)


def test_ids_by_argument_and_by_column_must_agree(problem, routing):
    X, y, qid = problem
    frame = pd.DataFrame(X, columns=list("abc")).assign(qid=qid)
    scorer = ndcg_scorer("lightgbm", k=10, qid_column="qid")
    assert scorer(Ridge().fit(frame, y), frame, y, qid=qid) == scorer(Ridge().fit(frame, y), frame, y)
    with pytest.raises(ValueError, match="must agree"):
        scorer(Ridge().fit(frame, y), frame, y, qid=qid[::-1])


# -- outside of scikit-learn's splits --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranker():
    return QueryRanker(LGBMRanker(n_estimators=3, verbosity=-1, min_child_samples=2, n_jobs=1))


def test_a_loop_that_cuts_queries_warns(problem, ranker):
    X, y, qid = problem
    for train, test in KFold(3).split(X):
        model = ranker.fit(X[train], y[train], qid[train])
        with pytest.warns(CutQueryWarning, match=r"\d+ of \d+ queries that are scored were also in training"):
            SCORER(model, X[test], y[test], qid=qid[test])
        with pytest.warns(CutQueryWarning):
            model.score(X[test], y[test], qid[test])
        in_pipe = make_pipeline(StandardScaler(), ranker)
        with sklearn.config_context(enable_metadata_routing=True):
            in_pipe.fit(X[train], y[train], groups=qid[train])
        with pytest.warns(CutQueryWarning):
            SCORER(in_pipe, X[test], y[test], qid=qid[test])


def test_whole_queries_new_or_seen_do_not_warn(problem, ranker):
    X, y, qid = problem
    with warnings.catch_warnings():
        warnings.simplefilter("error", CutQueryWarning)
        for train, test in GroupKFold(3).split(X, y, qid):
            model = ranker.fit(X[train], y[train], qid[train])
            SCORER(model, X[test], y[test], qid=qid[test])
            back = train[::-1]
            SCORER(model, X[back], y[back], qid=qid[back])
            some = train[np.isin(qid[train], qid[train][:3])]
            again = pickle.loads(pickle.dumps(model))
            SCORER(again, X[some], y[some], qid=qid[some])


def test_permutation_importance_with_ids_in_a_column(problem):
    X, y, qid = problem
    frame = pd.DataFrame(X, columns=list("abc")).assign(qid=qid)
    model = QueryRanker(LGBMRanker(n_estimators=5, verbosity=-1, n_jobs=1), qid_column="qid").fit(frame, y)
    scorer = ndcg_scorer("lightgbm", k=10, qid_column="qid")
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", CutQueryWarning
        )  # the column of ids is permuted as well: that one has no meaning
        got = permutation_importance(model, frame, y, scoring=scorer, n_repeats=2, random_state=0)
    assert got.importances_mean[0] == max(got.importances_mean[:3]) > 0.01
    with pytest.raises(ValueError, match="no query ids arrived"):
        permutation_importance(model, frame, y, scoring=SCORER, n_repeats=1)
    with pytest.warns(CutQueryWarning):
        permutation_importance(model, frame, y, scoring=scorer, n_repeats=1, max_samples=0.5, random_state=0)


# -- QueryKFold ------------------------------------------------------------------------------------------------------


def test_query_k_fold_is_group_k_fold_without_groups(problem):
    X, y, qid = problem
    frame = pd.DataFrame(X).assign(qid=qid)
    expected = [test.tolist() for _, test in GroupKFold(4).split(X, y, qid)]
    for splitter, table in (
        (QueryKFold(4, qid=qid), X),
        (QueryKFold(4, qid=qid.tolist()), X.tolist()),
        (QueryKFold(4, qid_column="qid"), frame),
        (QueryKFold(4, qid_column=3), np.column_stack([X, qid])),
    ):
        assert [test.tolist() for _, test in splitter.split(table)] == expected
        assert splitter.get_n_splits() == 4
    groups = qid[::-1]
    by_groups = [test.tolist() for _, test in GroupKFold(4).split(X, y, groups)]
    assert [test.tolist() for _, test in QueryKFold(4, qid=qid).split(X, y, groups)] == by_groups
    shuffled = QueryKFold(4, qid=qid, shuffle=True, random_state=1)
    assert [t.tolist() for _, t in shuffled.split(X)] != expected
    assert "QueryKFold(" in repr(shuffled)
    assert [t.tolist() for _, t in pickle.loads(pickle.dumps(shuffled)).split(X)] == [
        t.tolist() for _, t in shuffled.split(X)
    ]


@pytest.mark.parametrize("enabled", [False, True])
def test_query_k_fold_in_a_search(problem, enabled):
    X, y, qid = problem
    with sklearn.config_context(enable_metadata_routing=enabled):
        frame = pd.DataFrame(X, columns=list("abc")).assign(qid=qid)
        search = GridSearchCV(
            QueryRanker(LGBMRanker(n_estimators=2, verbosity=-1, n_jobs=1), qid_column="qid"),
            {"ranker__num_leaves": [2, 4]},
            scoring=ndcg_scorer("lightgbm", k=10, qid_column="qid"),
            cv=QueryKFold(3, qid_column="qid"),
        )
        scores = [search.fit(frame, y).best_score_]
        if enabled:
            search = GridSearchCV(
                QueryRanker(LGBMRanker(n_estimators=2, verbosity=-1, n_jobs=1)),
                {"ranker__num_leaves": [2, 4]},
                scoring=SCORER,
                cv=QueryKFold(3),
            )
            scores.append(search.fit(X, y, groups=qid).best_score_)
    assert len(set(scores)) == 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda q: QueryKFold(3, qid=q, qid_column="qid"), ValueError, "pass one of them; got both"),
        (lambda q: QueryKFold(3), ValueError, "QueryKFold has no query ids"),
        (lambda q: QueryKFold(3, qid=q[:-1]), ValueError, "one a row of X.*splits the data set of those ids only"),
        (lambda q: QueryKFold(3, qid_column="qid"), ValueError, "in its column qid_column='qid'"),
        (lambda q: QueryKFold(1, qid=q), ValueError, "n_splits=1"),
        (lambda q: QueryKFold(3, qid_column=True), TypeError, "qid_column must be the name"),
        (lambda q: QueryKFold(31, qid=q), ValueError, "n_splits=31 greater than"),
    ],
)
def test_query_k_fold_refuses(problem, make, error, message):
    X, _, qid = problem
    with pytest.raises(error, match=message):
        list(make(qid).split(X))


# -- several cut-offs ------------------------------------------------------------------------------------------------


def test_several_cutoffs(problem, routing):
    X, y, qid = problem
    scorer = ndcg_scorer("sklearn", k=(1, None, 5))
    fitted = Ridge().fit(X, y)
    expected = ndcg_score(y, fitted.predict(X), qid=qid, k=(1, None, 5))
    assert scorer(fitted, X, y, qid=qid) == {"ndcg@1": expected[1], "ndcg": expected[None], "ndcg@5": expected[5]}
    assert repr(scorer).endswith(", k=(1, None, 5))")
    got = cross_validate(Ridge(), X, y, scoring=scorer, cv=GroupKFold(3), params={"groups": qid})
    assert {"test_ndcg@1", "test_ndcg", "test_ndcg@5"} <= set(got)
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        GridSearchCV(Ridge(), GRID, scoring=scorer, cv=GroupKFold(3)).fit(X, y, groups=qid)


@pytest.mark.parametrize("what", ["raises", "nan"])
def test_several_cutoffs_and_an_estimator_that_fails_stop_the_search(problem, routing, what):
    X, y, qid = problem

    class Broken(Ridge):
        def predict(self, X):
            if self.alpha == 2:
                if what == "raises":
                    raise RuntimeError("out of order")
                return np.full(len(X), np.nan)
            return super().predict(X)

    scorer = ndcg_scorer("sklearn", k=(1, 5))
    with pytest.raises(ValueError, match=r"out of order|must not hold NaN"):
        GridSearchCV(Broken(), GRID, scoring=scorer, refit="ndcg@5", cv=GroupKFold(3)).fit(X, y, groups=qid)


def test_labels_that_the_flavor_refuses_stop_the_search(problem, routing):
    X, y, qid = problem
    y = np.where(qid == 3, -1, y)
    with pytest.raises(ValueError, match="y_true must be >= 0"):
        GridSearchCV(Ridge(), GRID, scoring=SCORER, cv=GroupKFold(3)).fit(X, y, groups=qid)


def test_two_dimensional_labels_that_the_flavor_refuses_stop_the_search(problem):
    X, _, _ = problem
    Y = np.tile([2.0, 1.0, -1.0], (len(X), 1))
    with pytest.raises(ValueError, match="y_true must be >= 0"):
        GridSearchCV(Ridge(), GRID, scoring=SCORER, cv=3).fit(X, Y)
