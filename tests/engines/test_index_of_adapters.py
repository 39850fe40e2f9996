"""Every adapter refuses pandas objects with different indexes, as ``ndcg_score`` does."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

import sklearn
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from ndcg_ml import ndcg_score
from ndcg_ml.sklearn import QueryKFold, QueryRanker, ndcg_scorer

RNG = np.random.default_rng(0)
INDEX = [f"row{at}" for at in range(60)]
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"), index=INDEX)
Y = pd.Series(np.clip(np.round(X["a"] + RNG.normal(size=60)), 0, 3), index=INDEX)
QID = pd.Series(RNG.permutation(np.repeat(np.arange(12), 5)), index=INDEX)
SORTED = QID.sort_values()  # the same index labels in another order
DIFFER = "must have the same index, because rows are matched by position"
SCORER = ndcg_scorer("lightgbm@5")
MODEL = Ridge().fit(X, Y)


def routed(**params):
    with sklearn.config_context(enable_metadata_routing=True):
        return cross_val_score(Ridge(), X, Y, cv=GroupKFold(4), scoring=SCORER, params=params)


class Sorting(RegressorMixin, BaseEstimator):
    """Predict a Series in another order."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return X["a"].sort_values()


def callback(**changed):
    pytest.importorskip("xgboost")
    from ndcg_ml.xgboost import NDCGCallback

    return NDCGCallback("lightgbm@5", **{"X": X, "y": Y, "qid": QID, **changed})


def validation(**changed):
    pytest.importorskip("lightgbm")
    from ndcg_ml.lightgbm import StopEarly

    parts = {"X": X, "y": Y, "group": [60], "weight": None, **changed}
    return StopEarly("lightgbm@5").fit(tuple(parts.values()))


def catboost(y, qid):
    pytest.importorskip("catboost")
    from ndcg_ml.catboost import NDCGEval

    return NDCGEval("lightgbm@5", pools=[(y, qid)])


BY_QUERY = QID.sort_values(kind="stable")
REFUSED = {
    "ndcg_score": lambda: ndcg_score(Y, X["a"], qid=SORTED),
    "scorer, ids": lambda: SCORER(MODEL, X, Y, qid=SORTED),
    "scorer, groups": lambda: SCORER(MODEL, X, Y, groups=SORTED),
    "scorer, labels": lambda: SCORER(MODEL, X, Y[::-1], qid=QID),
    "scorer, labels of a column": lambda: ndcg_scorer("lightgbm@5", qid_column="c")(MODEL, X, Y[::-1]),
    "scorer, predictions": lambda: SCORER(Sorting().fit(X, Y), X, Y, qid=QID),
    "routed as groups": lambda: routed(groups=SORTED),
    "routed as qid": lambda: routed(qid=SORTED, groups=QID),
    "search": lambda: GridSearchCV(Ridge(), {"alpha": [1, 2]}, scoring=ndcg_scorer("lightgbm", qid_column="a"),
        cv=QueryKFold(3, qid=SORTED)).fit(X, Y),
    "QueryRanker, ids": lambda: QueryRanker(Ridge()).fit(X, Y, SORTED),
    "QueryRanker, groups": lambda: QueryRanker(Ridge()).fit(X, Y, groups=SORTED),
    "QueryRanker, labels": lambda: QueryRanker(Ridge()).fit(X, Y[::-1], QID),
    "QueryRanker, features": lambda: QueryRanker(Ridge()).fit(X[::-1], Y, QID.to_numpy()),
    "QueryRanker, weights": lambda: QueryRanker(Ridge()).fit(X, Y, QID, pd.Series(1.0, index=INDEX[::-1])),
    "QueryRanker.score": lambda: QueryRanker(Ridge()).fit(X, Y, QID).score(X, Y, SORTED),
    "QueryKFold, own": lambda: next(QueryKFold(4, qid=SORTED).split(X)),
    "QueryKFold, labels": lambda: next(QueryKFold(4, qid=QID).split(X, Y[::-1])),
    "NDCGCallback, ids": lambda: callback(qid=SORTED),
    "NDCGCallback, labels": lambda: callback(y=Y[::-1], qid=QID.to_numpy()),
    "StopEarly, labels": lambda: validation(y=Y[::-1]),
    "StopEarly, weights": lambda: validation(weight=Y[::-1]),
    "CatBoost": lambda: catboost(Y, SORTED),
}  # fmt: skip


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_indexes_that_differ_are_refused(call):
    with pytest.raises(ValueError, match=DIFFER):
        call()


def test_sizes_that_are_indexed_by_query_are_refused():
    with pytest.raises(ValueError, match=r"group of validation set 0 has an index"):
        validation(group=pd.Series([30, 30], index=["b", "a"]))


def test_equal_indexes_and_no_index_give_the_same_result():
    at_position = SCORER(MODEL, X, Y, qid=QID.to_numpy())
    assert SCORER(MODEL, X, Y, qid=QID) == SCORER(MODEL, X, Y.to_numpy(), qid=QID) == at_position
    assert np.array_equal(routed(groups=QID), routed(groups=QID.to_numpy()))
    left, right = (list(QueryKFold(4, qid=ids).split(X, Y)) for ids in (QID, QID.to_numpy()))
    assert all(
        np.array_equal(a, b) for one, other in zip(left, right, strict=True) for a, b in zip(one, other, strict=True)
    )
    by_index, by_position = (QueryRanker(Ridge()).fit(X, Y, ids).predict(X) for ids in (QID, QID.to_numpy()))
    assert np.array_equal(by_index, by_position)
    callback()
    validation()
    order = np.argsort(QID.to_numpy(), kind="stable")
    catboost(Y.iloc[order], QID.iloc[order])
