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
    """Return a splitter with these rows as its only test fold."""
    folds = -np.ones(n_rows, dtype=int)
    folds[test] = 0
    return PredefinedSplit(folds)


TOOLS = {
    "GridSearchCV": lambda X, y, q, cv, s: GridSearchCV(Ridge(), GRID, scoring=s, cv=cv).fit(X, y, groups=q),
    "GridSearchCV n_jobs": lambda X, y, q, cv, s: GridSearchCV(Ridge(), GRID, scoring=s, cv=cv, n_jobs=2).fit(
        X, y, groups=q
    ),
    "cross_validate": lambda X, y, q, cv, s: cross_validate(Ridge(), X, y, scoring=s, cv=cv, params={"groups": q}),
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
}


IN_TWO = "GridSearchCV n_jobs"
ONE_NUMBER_ONLY = {"RFECV", "SequentialFeatureSelector", "permutation_test_score"}


REFUSED = [(tool, SCORER) for tool in TOOLS] + [(tool, SEVERAL) for tool in TOOLS if tool not in ONE_NUMBER_ONLY]


# joblib restarts its processes after an error, which is slow, so by default only one scorer and one split use them.
@pytest.mark.parametrize(("tool", "scorer"), quick([each for each in REFUSED if each != (IN_TWO, SEVERAL)], REFUSED))
def test_a_split_by_rows_is_refused_by_every_tool(problem, routing, tool, scorer):
    X, y, qid = problem
    if (tool, scorer) != (IN_TWO, SCORER):
        with pytest.raises(ValueError, match=r"the split cuts \d+ of the \d+ queries that it scores.*GroupKFold"):
            TOOLS[tool](X, y, qid, KFold(3), scorer)
    one_cut = one_fold(np.flatnonzero(np.isin(qid, [0, 1, 2]))[:-1], len(qid))
    with pytest.raises(ValueError, match=r"the split cuts 1 of the 3 queries that it scores: \d+ of the"):
        TOOLS[tool](X, y, qid, one_cut, scorer)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_split_by_query_is_not_refused(problem, routing, tool):
    X, y, qid = problem
    TOOLS[tool](X, y, qid, GroupKFold(3), SCORER)
    TOOLS[tool](X, y, qid, GroupShuffleSplit(2, random_state=0), SCORER)
    TOOLS[tool](X, y, qid, one_fold(np.flatnonzero(qid < 3), len(qid)), SCORER)


def test_rows_that_were_whole_queries_in_one_data_set_may_be_cut_in_another(problem, routing):
    X, y, qid = problem
    scorer = ndcg_scorer("lightgbm", k=10)
    first = np.flatnonzero(qid == 0)
    half = np.setdiff1d(np.arange(len(qid)), first[1:])  # without the other rows of query 0, nothing is cut
    tested = np.isin(qid, [0, 1])
    cv = one_fold(np.flatnonzero(tested[half]), len(half))
    cross_validate(Ridge(), X[half], y[half], scoring=scorer, cv=cv, params={"groups": qid[half]})
    tested[first[1:]] = False  # the scored rows stay the same
    cv = one_fold(np.flatnonzero(tested), len(qid))
    with pytest.raises(ValueError, match=r"the split cuts 1 of the 2 queries.*1 of the \d+ rows"):
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
def test_ids_in_a_column_are_checked_too(problem, cv):
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


# -- outside of scikit-learn's splits --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranker():
    return QueryRanker(LGBMRanker(n_estimators=3, verbosity=-1, min_child_samples=2, n_jobs=1))


def test_a_loop_that_cuts_queries_warns(problem, ranker):
    X, y, qid = problem
    for train, test in KFold(3).split(X):
        model = ranker.fit(X[train], y[train], qid[train])
        with pytest.warns(CutQueryWarning, match=r"\d+ of \d+ queries that are scored were also in training") as seen:
            SCORER(model, X[test], y[test], qid=qid[test])
        # The warning has the file of the caller. Old versions of libraries emit other warnings.
        assert [one.filename for one in seen if one.category is CutQueryWarning] == [__file__]
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
    assert [test.tolist() for _, test in QueryKFold(4, qid=qid).split(X, y, qid.tolist())] == expected
    shuffled = QueryKFold(4, qid=qid, shuffle=True, random_state=1)
    assert [t.tolist() for _, t in shuffled.split(X)] != expected
    assert "QueryKFold(" in repr(shuffled)
    assert [t.tolist() for _, t in pickle.loads(pickle.dumps(shuffled)).split(X)] == [
        t.tolist() for _, t in shuffled.split(X)
    ]


# -- rows that are repeated or left out ------------------------------------------------------------------------------


def rows_of(qid, some=None):
    """Return the rows of each query."""
    return [np.flatnonzero(qid == query) for query in (np.unique(qid) if some is None else some)]


@pytest.mark.parametrize("scorer", [SCORER, ndcg_scorer("lightgbm", k=10, qid=np.arange(30).repeat(2))])
def test_half_of_each_query_with_each_row_twice_is_not_a_whole_query(problem, routing, scorer):
    X, y, qid = problem
    even = [rows for rows in rows_of(qid) if rows.size % 2 == 0]
    halves = np.concatenate([rows[: rows.size // 2] for rows in even]).repeat(2)
    train = np.setdiff1d(np.arange(len(y)), np.concatenate(even))
    for test in (halves, halves - len(y)):
        with pytest.raises(ValueError, match=r"must score each row once; row \d+, of query \d+, appears 2 times"):
            cross_validate(Ridge(), X, y, scoring=scorer, cv=[(train, test)], params={"groups": qid})


def test_folds_may_leave_out_rows_if_the_scorer_has_the_ids_of_the_others(problem, routing):
    X, y, qid = problem
    in_use = np.random.default_rng(0).random(len(y)) < 0.8
    rows = np.flatnonzero(in_use)
    folds = [(rows[train], rows[test]) for train, test in GroupKFold(3).split(rows, groups=qid[rows])]
    with pytest.raises(ValueError, match=r"the split cuts.*the ids of the others: ndcg_scorer\(.*qid=qid\[in_use\]"):
        GridSearchCV(Ridge(), GRID, scoring=SCORER, cv=folds).fit(X, y, groups=qid)
    with_ids = ndcg_scorer("lightgbm", k=10, qid=qid[in_use])
    search = GridSearchCV(Ridge(), GRID, scoring=with_ids, cv=folds).fit(X, y, groups=qid)
    expected = [
        ndcg_score(y[test], Ridge().fit(X[train], y[train]).predict(X[test]), qid=qid[test], flavor=with_ids.flavor)
        for train, test in folds
    ]
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(expected), abs=1e-12)
    by_rows = [(rows[train], rows[test]) for train, test in KFold(3).split(rows)]
    with pytest.raises(ValueError, match="the split cuts"):
        GridSearchCV(Ridge(), GRID, scoring=with_ids, cv=by_rows).fit(X, y, groups=qid)


# -- a scorer with all ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, list, pd.Series, lambda q: pd.Series(q).astype("category")])
def test_a_scorer_with_all_ids_refuses_cut_queries_anywhere(problem, convert):
    X, y, qid = problem
    with_ids = ndcg_scorer("lightgbm", k=10, qid=convert(qid[::-1]))  # the order of the ids must not matter
    model = Ridge().fit(X, y)
    for cv, cut in ((KFold(3), True), (GroupKFold(3), False)):
        for _, test in cv.split(X, y, None if cut else qid):
            if cut:
                with pytest.raises(ValueError, match=r"the split cuts \d+ of the \d+ queries.*of the \d+ rows of"):
                    with_ids(model, X[test], y[test], qid=qid[test])
            else:
                assert with_ids(model, X[test], y[test], qid=qid[test]) == SCORER(
                    model, X[test], y[test], qid=qid[test]
                )
    doubled = np.tile(np.arange(len(y)), 2)
    with pytest.raises(ValueError, match="the split cuts 30 of the 30 queries"):
        with_ids(model, X[doubled], y[doubled], qid=qid[doubled])
    with pytest.raises(ValueError, match=r"among those of ndcg_scorer\(.*; 30 of 30 are not, the first is 1"):
        with_ids(model, X, y, qid=qid + 100)
    with pytest.raises(ValueError, match="no query ids arrived"):
        with_ids(model, X, y)
    again = pickle.loads(pickle.dumps(with_ids))
    assert again(model, X, y, qid=qid) == SCORER(model, X, y, qid=qid)
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

def search(estimator, X, y, folds, scorer, error_score):
    scores = [score(estimator.fit(X[a], y[a]), X[b], y[b], scorer, error_score) for a, b in folds]
    return np.array(scores, dtype=np.float64)
"""


@pytest.mark.parametrize("error_score", ["raise", np.nan, -1.0])
def test_an_error_in_a_search_of_dask_does_not_become_a_score(problem, error_score):
    X, y, qid = problem
    wide = np.column_stack([X, qid])
    with_ids = ndcg_scorer("lightgbm", k=10, qid_column=-1, qid=qid)
    dask = {"__name__": "dask_ml.model_selection.methods"}
    exec(FOREIGN_SEARCH, dask)
    with pytest.raises(ValueError, match="the split cuts"):
        dask["search"](Ridge(), wide, y, KFold(3).split(X), with_ids, error_score)
    whole = dask["search"](Ridge(), wide, y, GroupKFold(3).split(X, y, qid), with_ids, error_score)
    assert np.isfinite(whole).all()


# -- groups and queries ----------------------------------------------------------------------------------------------


def test_query_k_fold_refuses_other_groups(problem, routing):
    X, y, qid = problem
    user = qid // 3
    frame = pd.DataFrame(X, columns=list("abc")).assign(user=user)
    for splitter in (QueryKFold(3, qid=user), QueryKFold(3, qid_column="user")):
        with pytest.raises(ValueError, match=r"groups must be equal to the ids of QueryKFold.*qid=qid"):
            list(splitter.split(frame, y, qid))
        with pytest.raises(ValueError, match="they differ"):
            GridSearchCV(Ridge(), GRID, scoring=SCORER, cv=splitter).fit(frame, y, groups=qid)
        search = GridSearchCV(Ridge(), GRID, scoring=SCORER, cv=splitter).fit(frame, y, qid=qid)
        expected = [
            ndcg_score(y[b], Ridge().fit(frame.iloc[a], y[a]).predict(frame.iloc[b]), qid=qid[b], flavor=SCORER.flavor)
            for a, b in GroupKFold(3).split(X, y, user)
        ]
        assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(expected), abs=1e-12)


def test_ids_of_mixed_types_stay_apart_in_a_list(routing):
    """NumPy would make [1, "1"] one id."""
    X, y = np.arange(8.0)[:, None], np.array([0, 1, 1, 0, 1, 0, 0, 1])
    qid = [1, 1, "1", "1", 2, 2, "2", "2"]
    model = Ridge().fit(X, y)
    expected = ndcg_score(y, model.predict(X), qid=np.repeat(range(4), 2))
    assert ndcg_scorer("sklearn")(model, X, y, qid=qid) == expected
    cut = [([4, 5, 6, 7], [0, 1, 2])]
    with pytest.raises(
        ValueError, match="the split cuts 1 of the 2 queries that it scores: 1 of the 2 rows of query '1'"
    ):
        cross_validate(Ridge(), X, y, scoring=ndcg_scorer("sklearn"), cv=cut, params={"groups": qid})
