"""What the scorer, QueryKFold and QueryRanker refuse; and that what a message advises is accepted."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")
pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("pyarrow")

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import sklearn
from lightgbm import LGBMRanker
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBRanker

from ndcg_ml import Flavor
from ndcg_ml.sklearn import QueryKFold, QueryRanker, ndcg_scorer

ROWS, Y, QID = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 4, np.repeat(np.arange(8), 10)
LISTS = np.random.default_rng(0).integers(0, 4, (80, 6))
FRAME = pd.DataFrame(ROWS, columns=list("abc")).assign(qid=QID)
MISSING = {
    "None": FRAME.assign(qid=["a", "b", None, "c"] * 20),
    "time": FRAME.assign(qid=pd.to_datetime(["2020-01-01", "2020-01-02", None, "2020-01-03"] * 20)),
}
MISSING_ID = "the column qid_column='qid' of X must have an id for every row; got a missing value"


def score(model, y=Y, flavor="sklearn", X=ROWS, fit_y=None, **ids):
    scorer = flavor if callable(flavor) else ndcg_scorer(flavor)
    return scorer(model.fit(X, y if fit_y is None else fit_y), X, y, **(ids or {"qid": QID}))


def search(y=Y, scoring="sklearn", **given):
    scorer = scoring if callable(scoring) else ndcg_scorer(scoring)
    with sklearn.config_context(enable_metadata_routing=True):
        grid = GridSearchCV(
            Ridge().set_fit_request(sample_weight=False), {"alpha": [1.0, 9.0]}, scoring=scorer, cv=GroupKFold(4)
        )
        return grid.fit(ROWS, y, groups=QID, **given)


def of_lists(scorer=None, **ids):
    return (scorer or ndcg_scorer("sklearn"))(Ridge().fit(ROWS, LISTS), ROWS, LISTS, **ids)


PER_ROW = r"two-dimensional y_true, shape \(80, 6\), has one query per row"
SCORER = {
    "several outputs": (lambda: score(KNeighborsClassifier(3), (LISTS > 1).astype(int), qid=None), TypeError, "must have one output; KNeighborsClassifier has several", None),
    "no probabilities": (lambda: score(RidgeClassifier()), TypeError, r"RidgeClassifier does not.*CalibratedClassifierCV", lambda: score(CalibratedClassifierCV(RidgeClassifier()))),
    "classes of words": (lambda: score(LogisticRegression(), Y, fit_y=np.array(list("abcd"))[Y]), TypeError, "classes must be grades", None),
    "two scores": (lambda: score(LinearRegression(), fit_y=np.stack([Y, Y], axis=1)), ValueError, r"one score per document, shape \(\d+,\); LinearRegression returned shape", lambda: score(LinearRegression(), fit_y=Y[:, None])),
    "nothing to average": (lambda: search(np.zeros(80), "burges2005"), ValueError, "a fold cannot be scored: every query is empty", None),
    "an empty query": (lambda: search(np.zeros(80), Flavor(empty="raise")), ValueError, "a fold cannot be scored: every query must have a relevant document", None),
    "ties": (lambda: ndcg_scorer("trec_eval"), ValueError, r"does not support ties='docid'.*Use flavor='trec_eval\[ties=average\]'", lambda: ndcg_scorer("trec_eval[ties=average]")),
    "empty": (lambda: ndcg_scorer(Flavor(empty=math.nan)), ValueError, "does not support empty=nan.*'skip'", lambda: ndcg_scorer("ndcg[empty=skip]")),
    "ids of lists": (lambda: of_lists(qid=QID), ValueError, PER_ROW, of_lists),
    "groups of lists": (lambda: of_lists(groups=QID), ValueError, PER_ROW, None),
    "a column of ids of lists": (lambda: of_lists(ndcg_scorer("sklearn", qid_column=0)), ValueError, PER_ROW, None),
    "all ids of lists": (lambda: of_lists(ndcg_scorer("sklearn", qid=QID)), ValueError, PER_ROW, None),
    "routed ids of lists": (lambda: search(LISTS), ValueError, r"set_score_request\(qid=False\)", lambda: search(LISTS, ndcg_scorer("sklearn").set_score_request(qid=False))),
    "a column of labels without routing": (lambda: cross_validate(LinearRegression(), ROWS, Y[:, None], scoring=ndcg_scorer("sklearn"), cv=GroupKFold(3), groups=QID), ValueError, "no query ids arrived", None),
    "weights within a query": (lambda: score(Ridge(), qid=QID, sample_weight=Y + 1.0), ValueError, "sample_weight must be equal in all rows of a query", lambda: score(Ridge(), qid=QID, sample_weight=QID + 1.0)),
    "weights not requested": (lambda: search(sample_weight=QID + 1.0), ValueError, r"not explicitly set as requested or not requested for (NDCGScorer|ndcg_scorer)", lambda: search(scoring=ndcg_scorer("sklearn").set_score_request(sample_weight=True), sample_weight=QID + 1.0)),
    "weights that are not kept": (lambda: score(Ridge(), flavor=ndcg_scorer("sklearn", keep_queries=True), qid=QID, sample_weight=QID + 1.0), ValueError, "sample_weight must be None with keep_queries=True", None),
    **{f"a request: {name!r}": (lambda name=name: ndcg_scorer("sklearn").set_score_request(qid=name), ValueError, "either a valid identifier or one of", None) for name in ("two words", "", b"qid")},
    **{f"missing ids: {name}": (lambda X=X: ndcg_scorer("sklearn", qid_column="qid")(Ridge(), X, Y), ValueError, MISSING_ID, None) for name, X in MISSING.items()},
}  # fmt: skip


def split(X=ROWS, y=None, groups=None, **settings):
    return list(QueryKFold(3, **settings).split(X, y, groups))


SPLITTER = {
    "ids and a column": (lambda: split(qid=QID, qid_column="qid"), ValueError, "either qid or qid_column; got both", None),
    "neither": (lambda: split(), ValueError, "got neither.*use GroupKFold", lambda: next(GroupKFold(3).split(ROWS, Y, QID))),
    "fewer ids": (lambda: split(qid=QID[:-1]), ValueError, "inconsistent numbers of samples", None),
    "no such column": (lambda: split(qid_column="qid"), ValueError, "in its column qid_column='qid'", lambda: split(FRAME, qid_column="qid")),
    "other groups": (lambda: split(y=Y, groups=QID, qid=QID // 3), ValueError, r"groups must be equal to the ids of QueryKFold.*qid=qid", None),
    **{f"missing ids: {ids[:2]}": (lambda ids=ids: split(qid=np.array(ids * 20)), ValueError, "^qid must have an id for every row", None) for ids in (["a", "b", None, "c"], [1.0, 2.0, np.nan, 3.0])},
    **{f"missing ids: {name}": (lambda X=X: split(X, qid_column="qid"), ValueError, MISSING_ID, None) for name, X in MISSING.items()},
    **{
        f"{dtype.__name__} of {number}": (lambda dtype=dtype, number=number: split(np.array([[0], [1], [number]], dtype), qid_column=0), ValueError, rf"got {exact} in {dtype.__name__}, which is exact only below {exact}\. ", lambda dtype=dtype, less=number - number // exact: split(np.array([[0], [1], [less]], dtype), qid_column=0))
        for dtype, exact in ((np.float64, 2**53), (np.float32, 2**24), (np.float16, 2**11)) for number in (exact, -exact)
    },
}  # fmt: skip


def fit(*, ranker=None, X=((1.0,), (2.0,), (3.0,)), y=(1, 0, 1), qid=(1, 1, 2), weight=None, **settings):
    return QueryRanker(ranker or Ridge(), **settings).fit(X, y, qid, sample_weight=weight)


def stopped(ranker, **settings):
    return QueryRanker(ranker, **settings).fit(ROWS, Y, QID)


DART = {"boosting_type='dart'": LGBMRanker(boosting_type="dart"), "boosting='dart'": LGBMRanker(boosting="dart"), "boost='dart'": LGBMRanker(boost="dart"), "booster='dart'": XGBRanker(booster="dart"), "booster='gblinear'": XGBRanker(booster="gblinear")}  # fmt: skip
RANKER = {
    "no ids": (lambda: fit(qid=None), ValueError, r"no query ids arrived.*groups=qid.*qid_column='qid'", None),
    "sizes": (lambda: fit(qid=(2, 1)), ValueError, r"one per row, shape \(3,\); got \(2,\).*sizes of queries are not ids", None),
    "a column of ids": (lambda: fit(qid=np.array([[1], [1], [2]])), ValueError, r"one-dimensional.*got shape \(3, 1\)", None),
    "a missing id": (lambda: fit(qid=(1, np.nan, 2)), ValueError, "an id for every row", None),
    "ids of two types": (lambda: fit(qid=np.array([1, "a", 2], dtype=object)), TypeError, "of one sortable type; got int, str", None),
    "NaN label": (lambda: fit(y=(1, np.nan, 0)), ValueError, "y must hold finite labels; got 1", None),
    "fewer labels": (lambda: fit(y=(1, 0)), ValueError, r"y must have one label per row, shape \(3,\); got \(2,\)", None),
    "no labels": (lambda: fit(y=None), ValueError, "requires y to be passed", None),
    "a row": (lambda: fit(X=(1.0, 2.0, 3.0)), ValueError, "X must be two-dimensional", None),
    "weights within a query": (lambda: fit(weight=(1, 2, 1)), ValueError, "equal in all rows of a query.*query 1 has weights from 1.0 to 2.0", lambda: fit(weight=(1, 1, 2))),
    "weights of queries": (lambda: fit(weight=(1, 1)), ValueError, "sample_weight must be one per row", None),
    "negative weight": (lambda: fit(weight=(-1, -1, 1)), ValueError, "finite and >= 0", None),
    "weights of zero": (lambda: fit(weight=(0, 0, 0)), ValueError, "not zero in every row", None),
    "a name without columns": (lambda: fit(qid_column="q", qid=None), ValueError, "in its column qid_column='q'; got a ndarray without named", None),
    "a position beyond": (lambda: fit(qid_column=1, qid=None), ValueError, r"qid_column=1 must be a column of X; got X of shape \(3, 1\)", None),
    "half a position": (lambda: fit(qid_column=0.5, qid=None), TypeError, "qid_column must be the name of a column", None),
    "other ids": (lambda: fit(qid_column=0), ValueError, "must agree if both are given", None),
    "fractions": (lambda: fit(qid_column=0, qid=None, X=((0.5,), (0.5,), (1.5,))), ValueError, "got fractions.*0.5", None),
    "no rounds": (lambda: fit(early_stopping_rounds=0), ValueError, "early_stopping_rounds must be an integer >= 1", None),
    "no boosting": (lambda: fit(early_stopping_rounds=5), ValueError, "needs a ranker of LightGBM, XGBoost or CatBoost; got Ridge", None),
    "everything held out": (lambda: fit(early_stopping_rounds=5, validation_fraction=1.0), ValueError, "validation_fraction.*between 0 and 1", None),
    "one query": (lambda: fit(early_stopping_rounds=5, qid=(1, 1, 1)), ValueError, "at least two queries.*got 1", None),
    "a class": (lambda: fit(ranker=LGBMRanker), TypeError, r"ranker must be an estimator, such as LGBMRanker\(\); got <class", None),
    "a name": (lambda: fit(ranker="LGBMRanker"), TypeError, r"ranker must be an estimator.*got 'LGBMRanker' of type str\.$", None),
    "a pipeline": (lambda: fit(ranker=make_pipeline(StandardScaler(), LGBMRanker())), ValueError, "Put QueryRanker inside the pipeline", lambda: make_pipeline(ColumnTransformer([("scale", StandardScaler(), [1, 2, 3])], remainder="passthrough"), QueryRanker(LGBMRanker(verbosity=-1), qid_column=-1)).fit(np.column_stack([QID, ROWS]), Y)),
    **{f"early stopping with {setting}": (lambda ranker=ranker: stopped(ranker, early_stopping_rounds=3), ValueError, f"early_stopping_rounds must be None with {setting}", lambda ranker=ranker: stopped(ranker.set_params(verbosity=0))) for setting, ranker in DART.items()},
    **{f"fit({name}=)": (lambda name=name: QueryRanker(Ridge()).fit([[1.0], [2.0]], [1, 0], **{name: [2]}), TypeError, rf"QueryRanker\.fit got an unexpected keyword argument '{name}'\.{hint}$", None) for name, hint in {"group": r" Did you mean 'qid'\?", "weights": r" Did you mean 'sample_weight'\?", "xyzzy": ""}.items()},
    **{f"no such column of {type(X).__module__}": (lambda X=X: QueryRanker(Ridge(), qid_column="query").fit(X, Y), ValueError, r"column qid_column='query'; got columns \['a', 'b', 'c', 'qid'\]", None) for X in (FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME))},
    **{f"missing ids: {name}": (lambda X=X: QueryRanker(Ridge(), qid_column="qid").fit(X, Y), ValueError, MISSING_ID, None) for name, X in MISSING.items()},
}  # fmt: skip

CASES = [(table, case) for table in (SCORER, SPLITTER, RANKER) for case in table]


@pytest.mark.parametrize(("table", "case"), CASES, ids=lambda part: part if isinstance(part, str) else "")
def test_what_is_refused_and_what_is_advised(table, case):
    call, error, message, advised = table[case]
    with pytest.raises(error, match=message):
        call()
    if advised is not None:
        advised()


class First(BaseEstimator):
    def predict(self, X):
        return np.asarray(X)[:, 0]


@pytest.mark.parametrize(
    ("labels", "column"),
    [
        ([0, 4, 2, 3, 1], 1),  # the label of the ids, but the position of a feature
        ([0, 4, 2, 3, 1], 4),  # the position of the ids, but the label of a feature
        ([10, 11, 12, 13, 14], 4),
        ([0, 1, 2, 3, 4], -1),
    ],
)
def test_a_number_is_refused_if_columns_have_numbers_as_labels(labels, column):
    frame = pd.DataFrame(np.column_stack([Y, ROWS, QID]).astype(float), columns=labels)
    for use in (
        lambda X: ndcg_scorer("sklearn", qid_column=column)(First(), X, Y),
        lambda X: split(X, qid_column=column),
        lambda X: QueryRanker(Ridge(), qid_column=column).fit(X, Y),
    ):
        with pytest.raises(ValueError, match=r"X has numbers as column labels.*X\.columns\.astype\(str\)"):
            use(frame)
        if column != 1:
            use(frame.set_axis(frame.columns.astype(str), axis=1))
