"""The scorer refuses splits that cut queries in every tool of scikit-learn; QueryKFold does not cut them."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("lightgbm")
pytest.importorskip("pandas")
pytest.importorskip("polars")

import pickle
import warnings

import numpy as np
import pandas as pd
import sklearn
from lanes import quick
from lightgbm import LGBMRanker
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    HalvingGridSearchCV,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ndcg_ml import ndcg_score
from ndcg_ml.sklearn import CutQueryWarning, QueryKFold, QueryRanker, ndcg_scorer

SCORER, SEVERAL = ndcg_scorer("lightgbm", k=10), ndcg_scorer("lightgbm", k=(1, 10))


def made():
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(30), rng.integers(2, 15, 30))
    X = rng.normal(size=(len(qid), 3))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X))), 0, 3).astype(int)
    shuffled = rng.permutation(len(X))
    return X[shuffled], y[shuffled], qid[shuffled]


X, Y, QID = made()


def cuts(words=""):
    return pytest.raises(ValueError, match=f"the split cuts {words}")


def grid(scorer=SCORER, cv=None, **options):
    return GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, scoring=scorer, cv=cv, **options)


def validated(scorer, cv, rows=slice(None)):
    return cross_validate(Ridge(), X[rows], Y[rows], scoring=scorer, cv=cv, params={"groups": QID[rows]})


def folds_by_hand(folds, scorer=SCORER, table=X):
    """Return the mean of the scores of these folds."""
    models = [(Ridge().fit(table[train], Y[train]), test) for train, test in folds]
    scores = [
        ndcg_score(Y[test], model.predict(table[test]), qid=QID[test], flavor=scorer.flavor) for model, test in models
    ]
    return pytest.approx(np.mean(scores), abs=1e-12)


def one_fold(test, n_rows=None):
    """Return a splitter with these rows as its only test fold."""
    folds = -np.ones(n_rows or len(QID), dtype=int)
    folds[test] = 0
    return PredefinedSplit(folds)


# -- scikit-learn's tools --------------------------------------------------------------------------------------------

OPTIONS = {"params": {"groups": QID}}
TOOLS = {
    "GridSearchCV": lambda cv, s: grid(s, cv).fit(X, Y, groups=QID),
    "GridSearchCV n_jobs": lambda cv, s: grid(s, cv, n_jobs=2).fit(X, Y, groups=QID),
    "cross_validate": lambda cv, s: cross_validate(Ridge(), X, Y, scoring=s, cv=cv, **OPTIONS),
    "learning_curve": lambda cv, s: learning_curve(Ridge(), X, Y, scoring=s, cv=cv, **OPTIONS),
    "validation_curve": lambda cv, s: validation_curve(
        Ridge(), X, Y, scoring=s, cv=cv, param_name="alpha", param_range=[1.0], **OPTIONS
    ),
    "permutation_test_score": lambda cv, s: permutation_test_score(
        Ridge(), X, Y, scoring=s, cv=cv, n_permutations=1, **OPTIONS
    ),
    "RFECV": lambda cv, s: RFECV(Ridge(), scoring=s, cv=cv).fit(X, Y, groups=QID),
    "SequentialFeatureSelector": lambda cv, s: SequentialFeatureSelector(
        Ridge(), n_features_to_select=1, scoring=s, cv=cv
    ).fit(X, Y, groups=QID),
}
IN_TWO = "GridSearchCV n_jobs"
ONE_NUMBER_ONLY = {"RFECV", "SequentialFeatureSelector", "permutation_test_score"}
REFUSED = [(tool, SCORER) for tool in TOOLS] + [(tool, SEVERAL) for tool in TOOLS if tool not in ONE_NUMBER_ONLY]


# joblib restarts its processes after an error, which is slow, so by default only one scorer and one split use them.
@pytest.mark.parametrize(("tool", "scorer"), quick([each for each in REFUSED if each != (IN_TWO, SEVERAL)], REFUSED))
def test_a_split_by_rows_is_refused_by_every_tool(routing, tool, scorer):
    if (tool, scorer) != (IN_TWO, SCORER):
        with cuts(r"\d+ of the \d+ queries that it scores.*GroupKFold"):
            TOOLS[tool](KFold(3), scorer)
    with cuts(r"1 of the 3 queries that it scores: \d+ of the"):
        TOOLS[tool](one_fold(np.flatnonzero(np.isin(QID, [0, 1, 2]))[:-1]), scorer)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_split_by_query_is_not_refused(routing, tool):
    for cv in (GroupKFold(3), GroupShuffleSplit(2, random_state=0), one_fold(np.flatnonzero(QID < 3))):
        TOOLS[tool](cv, SCORER)


def test_rows_that_were_whole_queries_in_one_data_set_may_be_cut_in_another(routing):
    scorer, first, tested = ndcg_scorer("lightgbm", k=10), np.flatnonzero(QID == 0), np.isin(QID, [0, 1])
    half = np.setdiff1d(np.arange(len(QID)), first[1:])  # without the other rows of query 0, nothing is cut
    validated(scorer, one_fold(np.flatnonzero(tested[half]), len(half)), half)
    tested[first[1:]] = False  # the scored rows stay the same
    with cuts(r"1 of the 2 queries.*1 of the \d+ rows"):
        validated(scorer, one_fold(np.flatnonzero(tested)))


def test_halving_by_rows_is_refused(routing):
    options = {"scoring": SCORER, "cv": GroupKFold(3), "error_score": "raise"}
    with cuts():
        HalvingGridSearchCV(Ridge(), {"alpha": [1.0, 2.0, 3.0]}, min_resources=40, **options).fit(X, Y, groups=QID)
    model = QueryRanker(LGBMRanker(verbosity=-1, n_jobs=1, min_child_samples=3))
    trees = {"resource": "ranker__n_estimators", "max_resources": 8, "min_resources": 2}
    by_trees = HalvingGridSearchCV(model, {"ranker__num_leaves": [2, 4, 8]}, **trees, **options)
    assert 0 < by_trees.fit(X, Y, groups=QID).best_score_ <= 1


@pytest.mark.parametrize("cv", [3, ShuffleSplit(2, random_state=0), GroupKFold(3)])
def test_ids_in_a_column_are_checked_too(cv):
    frame = pd.DataFrame(X, columns=list("abc")).assign(qid=QID)
    model = QueryRanker(LGBMRanker(n_estimators=2, verbosity=-1, n_jobs=1), qid_column="qid")
    scorer = ndcg_scorer("lightgbm", k=10, qid_column="qid")
    search = GridSearchCV(model, {"ranker__num_leaves": [2, 4]}, scoring=scorer, cv=cv)
    if isinstance(cv, GroupKFold):
        assert search.fit(frame, Y, groups=QID).best_score_ > 0
    else:
        with cuts():
            search.fit(frame, Y)


# -- outside of scikit-learn's splits --------------------------------------------------------------------------------


def fitted(train, ranker=None):
    ranker = ranker or QueryRanker(LGBMRanker(n_estimators=3, verbosity=-1, min_child_samples=2, n_jobs=1))
    return ranker.fit(X[train], Y[train], groups=QID[train])


def scored(model, rows, scorer=SCORER):
    return scorer(model, X[rows], Y[rows], qid=QID[rows])


def test_a_loop_that_cuts_queries_warns(routing):
    for train, test in KFold(3).split(X):
        model = fitted(train)
        with pytest.warns(CutQueryWarning, match=r"\d+ of \d+ queries that are scored were also in training") as seen:
            scored(model, test)
        # The warning has the file of the caller. Old versions of libraries emit other warnings.
        assert [one.filename for one in seen if one.category is CutQueryWarning] == [__file__]
        with pytest.warns(CutQueryWarning):
            model.score(X[test], Y[test], QID[test])
        in_pipe = fitted(train, make_pipeline(StandardScaler(), sklearn.clone(model)))
        with pytest.warns(CutQueryWarning):
            scored(in_pipe, test)


def test_whole_queries_new_or_seen_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error", CutQueryWarning)
        for train, test in GroupKFold(3).split(X, Y, QID):
            model = fitted(train)
            scored(model, test)
            scored(model, train[::-1])
            scored(pickle.loads(pickle.dumps(model)), train[np.isin(QID[train], QID[train][:3])])


# -- QueryKFold ------------------------------------------------------------------------------------------------------


def folds_of(splitter, *table):
    return [test.tolist() for _, test in splitter.split(*table)]


def test_query_k_fold_is_group_k_fold_without_groups():
    expected = folds_of(GroupKFold(4), X, Y, QID)
    for splitter, table in (
        (QueryKFold(4, qid=QID), X),
        (QueryKFold(4, qid=QID.tolist()), X.tolist()),
        (QueryKFold(4, qid_column="qid"), pd.DataFrame(X).assign(qid=QID)),
        (QueryKFold(4, qid_column=3), np.column_stack([X, QID])),
    ):
        assert folds_of(splitter, table) == expected
        assert splitter.get_n_splits() == 4
    assert folds_of(QueryKFold(4, qid=QID), X, Y, QID.tolist()) == expected
    shuffled = QueryKFold(4, qid=QID, shuffle=True, random_state=1)
    assert folds_of(shuffled, X) != expected
    assert folds_of(pickle.loads(pickle.dumps(shuffled)), X) == folds_of(shuffled, X)
    assert "QueryKFold(" in repr(shuffled)


@pytest.mark.parametrize("how", ["qid", "qid_column"])
def test_query_k_fold_by_user_refuses_other_groups(routing, how):
    user = QID // 3
    table = np.column_stack([X, user])
    splitter = QueryKFold(3, qid=user) if how == "qid" else QueryKFold(3, qid_column=3)
    with pytest.raises(ValueError, match=r"groups must be equal to the ids of QueryKFold.*they differ.*qid=qid"):
        grid(cv=splitter).fit(table, Y, groups=QID)
    search = grid(cv=splitter).fit(table, Y, qid=QID)
    assert search.cv_results_["mean_test_score"][0] == folds_by_hand(GroupKFold(3).split(X, Y, user), table=table)


# -- rows that are repeated or left out ------------------------------------------------------------------------------


@pytest.mark.parametrize("scorer", [SCORER, ndcg_scorer("lightgbm", k=10, qid=np.arange(30).repeat(2))])
def test_half_of_each_query_with_each_row_twice_is_not_a_whole_query(routing, scorer):
    every = [np.flatnonzero(query == QID) for query in range(30)]
    even = [rows for rows in every if rows.size % 2 == 0]
    halves = np.concatenate([rows[: rows.size // 2] for rows in even]).repeat(2)
    train = np.setdiff1d(np.arange(len(Y)), np.concatenate(even))
    for test in (halves, halves - len(Y)):
        with pytest.raises(ValueError, match=r"must score each row once; row \d+, of query \d+, appears 2 times"):
            validated(scorer, [(train, test)])


def test_folds_may_leave_out_rows_if_the_scorer_has_the_ids_of_the_others(routing):
    in_use = np.random.default_rng(0).random(len(Y)) < 0.8
    rows = np.flatnonzero(in_use)
    by_query, by_rows = GroupKFold(3).split(rows, groups=QID[rows]), KFold(3).split(rows)
    folds, by_rows = ([(rows[train], rows[test]) for train, test in splits] for splits in (by_query, by_rows))
    with cuts(r".*the ids of the others: ndcg_scorer\(.*qid=qid\[in_use\]"):
        grid(cv=folds).fit(X, Y, groups=QID)
    with_ids = ndcg_scorer("lightgbm", k=10, qid=QID[in_use])
    search = grid(with_ids, folds).fit(X, Y, groups=QID)
    assert search.cv_results_["mean_test_score"][0] == folds_by_hand(folds)
    with cuts():
        grid(with_ids, by_rows).fit(X, Y, groups=QID)


# -- a scorer with all ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, list, pd.Series, lambda q: pd.Series(q).astype("category")])
def test_a_scorer_with_all_ids_refuses_cut_queries_anywhere(convert):
    with_ids = ndcg_scorer("lightgbm", k=10, qid=convert(QID[::-1]))  # the order of the ids must not matter
    model = Ridge().fit(X, Y)
    for _, test in KFold(3).split(X):
        with cuts(r"\d+ of the \d+ queries.*of the \d+ rows of"):
            scored(model, test, with_ids)
    for _, test in GroupKFold(3).split(X, Y, QID):
        assert scored(model, test, with_ids) == scored(model, test)
    with cuts("30 of the 30 queries"):
        scored(model, np.tile(np.arange(len(Y)), 2), with_ids)
    with pytest.raises(ValueError, match=r"among those of ndcg_scorer\(.*; 30 of 30 are not, the first is 1"):
        with_ids(model, X, Y, qid=QID + 100)
    with pytest.raises(ValueError, match="no query ids arrived"):
        with_ids(model, X, Y)
    again = pickle.loads(pickle.dumps(with_ids))
    assert scored(model, slice(None), again) == scored(model, slice(None))
    assert repr(again).endswith(f", qid=<{len(Y)} rows of 30 queries>)")


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

def search(estimator, X, y, folds, scorer, error_score):
    scores = [score(estimator.fit(X[a], y[a]), X[b], y[b], scorer, error_score) for a, b in folds]
    return np.array(scores, dtype=np.float64)
"""


@pytest.mark.parametrize("error_score", ["raise", np.nan, -1.0])
def test_an_error_in_a_search_of_dask_does_not_become_a_score(error_score):
    wide, with_ids = np.column_stack([X, QID]), ndcg_scorer("lightgbm", k=10, qid_column=-1, qid=QID)
    dask = {"__name__": "dask_ml.model_selection.methods"}
    exec(FOREIGN_SEARCH, dask)
    with cuts():
        dask["search"](Ridge(), wide, Y, KFold(3).split(X), with_ids, error_score)
    whole = dask["search"](Ridge(), wide, Y, GroupKFold(3).split(X, Y, QID), with_ids, error_score)
    assert np.isfinite(whole).all()


def test_ids_of_mixed_types_stay_apart_in_a_list(routing):
    """NumPy would make [1, "1"] one id."""
    table, y = np.arange(8.0)[:, None], np.array([0, 1, 1, 0, 1, 0, 0, 1])
    qid, scorer = [1, 1, "1", "1", 2, 2, "2", "2"], ndcg_scorer("sklearn")
    model = Ridge().fit(table, y)
    assert scorer(model, table, y, qid=qid) == ndcg_score(y, model.predict(table), qid=np.repeat(range(4), 2))
    with cuts("1 of the 2 queries that it scores: 1 of the 2 rows of query '1'"):
        cross_validate(Ridge(), table, y, scoring=scorer, cv=[([4, 5, 6, 7], [0, 1, 2])], params={"groups": qid})
