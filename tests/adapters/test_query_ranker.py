"""QueryRanker with three boosting libraries and in scikit-learn's tools; what it, QueryKFold and the scorer refuse."""

import pytest

for needed in ("sklearn", "lightgbm", "xgboost", "catboost", "pandas", "polars", "pyarrow"):
    pytest.importorskip(needed)

import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
import sklearn
from catboost import CatBoostClassifier, CatBoostRanker, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRanker, LGBMRegressor
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from xgboost import XGBClassifier, XGBRanker, XGBRegressor

from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.sklearn import QueryKFold, QueryRanker, ndcg_scorer

LIGHTGBM = Flavor.preset("lightgbm", k=10)


def made():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 25, 40)
    qid = np.repeat([f"q{i}" for i in rng.permutation(40)], sizes)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.round(X[:, 0] + 0.7 * X[:, 1] + 0.5 * rng.normal(size=len(X))), 0, 4).astype(int)
    shuffled = rng.permutation(len(X))
    return X[shuffled], y[shuffled], qid[shuffled]


X, y, qid = made()
GRADES = y


def lgbm(**changes):
    settings = {"n_estimators": 8, "num_leaves": 4, "min_child_samples": 3, "n_jobs": 1, "verbosity": -1}
    return LGBMRanker(**{**settings, **changes})


def xgb(**changes):
    return XGBRanker(**{"n_estimators": 8, "max_depth": 2, "n_jobs": 1, **changes})


def cat(**changes):
    settings = {"iterations": 8, "depth": 2, "thread_count": 1, "verbose": 0, "use_best_model": False}
    return CatBoostRanker(**{**settings, "allow_writing_files": False, **changes})


RANKERS = {"lightgbm": lgbm, "xgboost": xgb, "catboost": cat}


def fitted_manually(ranker, X, y, qid, weight=None):
    """Fit a ranker by its own interface."""
    order = np.argsort(qid, kind="stable")
    X, y, qid = X[order], y[order], qid[order]
    _, first, sizes = np.unique(qid, return_index=True, return_counts=True)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    if isinstance(ranker, LGBMRanker):
        return ranker.fit(X, y, group=sizes, sample_weight=None if weight is None else weight[order])
    if isinstance(ranker, XGBRanker):
        return ranker.fit(X, y, qid=codes, sample_weight=None if weight is None else weight[order][first])
    return ranker.fit(X, y, group_id=codes, group_weight=None if weight is None else weight[order])


def weights(qid):
    """Return the weight of each query and of each row."""
    of_query = dict(zip(np.unique(qid), np.random.default_rng(0).uniform(0.1, 5, 40), strict=True))
    return of_query, np.array([of_query[each] for each in qid])


@pytest.mark.parametrize("library", RANKERS)
def test_rows_in_any_order_give_the_model_of_the_library(library):
    ranker, predictions = RANKERS[library](), []
    for weight in (None, weights(qid)[1]):
        model = QueryRanker(ranker).fit(X, y, qid, sample_weight=weight)
        predictions.append(model.predict(X))
        manual = fitted_manually(RANKERS[library](), X, y, qid, weight)
        assert np.array_equal(predictions[-1], manual.predict(X))
    assert not np.array_equal(*predictions)
    with pytest.raises(Exception, match=r"(?i)fit"):  # the libraries raise three types
        ranker.predict(X)
    assert set(model.trained_queries_.sizes) == set(qid)
    assert model.best_iteration_ is None
    assert model.validation_queries_.size == 0


def frames(X, qid):
    names = list("abcd")
    return {
        "pandas": pd.DataFrame(X, columns=names).assign(qid=qid),
        "polars": pl.DataFrame(X, schema=names).with_columns(qid=pl.Series(qid.tolist())),
        "pyarrow": pa.table({**dict(zip(names, X.T, strict=True)), "qid": qid}),
    }


@pytest.mark.parametrize("library", RANKERS)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_ids_in_a_column_need_no_routing(library, kind):
    frame = frames(X, qid)[kind]
    model = QueryRanker(RANKERS[library](), qid_column="qid")
    options = {"scoring": ndcg_scorer(LIGHTGBM, qid_column="qid"), "cv": QueryKFold(3, qid_column="qid")}
    search = GridSearchCV(model, {"ranker": [RANKERS[library]()]}, **options).fit(frame, y)
    assert search.best_score_ == pytest.approx(np.mean(manual(RANKERS[library], X, y, qid)), abs=1e-12)
    plain = QueryRanker(RANKERS[library]()).fit(X, y, qid)
    assert np.array_equal(search.predict(frame), plain.predict(X))
    assert list(search.best_estimator_.feature_names_in_) == [*"abcd"]


def manual(make, X, y, qid, flavor=LIGHTGBM, cv=None):
    scores = []
    for train, test in (cv or GroupKFold(3)).split(X, y, qid):
        fitted = fitted_manually(make(), X[train], y[train], qid[train])
        scores.append(ndcg_score(y[test], fitted.predict(X[test]), qid=qid[test], flavor=flavor))
    return scores


FORMS = {
    "numbers as labels": lambda X, ids: pd.DataFrame(X).assign(qid=ids),
    "floats": lambda X, ids: pd.DataFrame(np.column_stack([ids, X]), columns=["qid", *"abcd"]),
    "pyarrow": lambda X, ids: frames(X, ids)["pyarrow"],
}


@pytest.mark.parametrize("form", FORMS)
def test_ids_in_a_column_of_any_table(form):
    codes = np.unique(qid, return_inverse=True)[1]
    table = FORMS[form](X, codes)
    model = QueryRanker(lgbm(), qid_column="qid").fit(table, y)
    assert np.array_equal(model.predict(table), QueryRanker(lgbm()).fit(X, y, codes).predict(X))
    assert model.score(table, y) == ndcg_score(y, model.predict(table), qid=codes, flavor=model.flavor)
    assert len(model.feature_importances_) == model.n_features_in_ == 4  # of the columns that the ranker sees
    assert ndcg_scorer(LIGHTGBM, qid_column="qid")(model, table, y) == model.set_params(flavor=LIGHTGBM).score(table, y)


class First(BaseEstimator):
    def fit(self, X, y):
        self.fitted_ = X
        return self

    def predict(self, X):
        return X["a"].to_numpy() if isinstance(X, pa.Table) else np.asarray(X)[:, 0]


def test_a_polars_frame_of_numbers_reaches_the_ranker_as_an_array():
    rows = frames(X, qid)["polars"]
    for frame, kind in ((rows, pl.DataFrame), (rows.drop("qid"), np.ndarray)):
        assert isinstance(QueryRanker(First()).fit(frame, y, qid).ranker_.fitted_, kind)


@pytest.mark.parametrize("library", RANKERS)
def test_categories_with_early_stopping(library):
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["e"] = pd.Categorical(np.where(y > 1, "good", "bad"), categories=["bad", "good"])
    # CatBoost copies a list, which scikit-learn's clone refuses.
    needs = {"lightgbm": {}, "xgboost": {"enable_categorical": True}, "catboost": {"cat_features": ("e",)}}
    ranker = RANKERS[library](**needs[library])
    model = QueryRanker(ranker, flavor=LIGHTGBM, early_stopping_rounds=5, random_state=0).fit(frame, y, qid)
    assert model.best_score_ > 0.9
    assert np.array_equal(clone(model).fit(frame, y, qid).predict(frame), model.predict(frame))


@pytest.mark.parametrize("library", RANKERS)
@pytest.mark.parametrize("form", ["csr_matrix", "csc_array"])
def test_sparse_features(library, form):
    sparse = getattr(scipy.sparse, form)(np.where(np.abs(X) < 0.5, 0, X))
    if form == "csr_matrix":  # load_svmlight_file returns such indices, which CatBoost refuses
        sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    assert QueryRanker(RANKERS[library]()).fit(sparse, y, qid).score(sparse, y, qid) > 0.8


# -- scikit-learn's tools --------------------------------------------------------------------------------------------


def test_without_scoring_a_search_uses_the_flavor_of_the_ranker(routing):
    model = QueryRanker(lgbm(), flavor="burges2005@3")
    flavor, folds = Flavor.preset("burges2005", k=3), [*GroupKFold(3).split(X, y, qid)]
    for cv, ids in ((GroupKFold(3), {"groups": qid}), (folds, {"groups": np.zeros(len(y)), "qid": qid})):
        search = GridSearchCV(model, {"ranker__num_leaves": [4]}, cv=cv).fit(X, y, **ids)
        assert search.best_score_ == pytest.approx(np.mean(manual(lgbm, X, y, qid, flavor)), abs=1e-12)
    column, (of_query, weight) = pd.DataFrame({"grade": y}), weights(qid)
    with pytest.warns(DataConversionWarning):
        model.fit(X, column, qid)
    assert model.score(X, column, qid) == ndcg_score(y, model.predict(X), qid=qid, flavor=flavor)
    weighted = ndcg_score(y, model.predict(X), qid=qid, flavor=flavor, query_weight=of_query)
    assert model.score(X, y, qid, sample_weight=weight) == weighted


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8), reason="passes no ids to the score of a pipeline"
)
def test_without_scoring_a_search_uses_the_score_of_a_pipeline(routing):
    """Pipeline.score passes sample_weight, and the error of a score would become nan."""
    model, grid = QueryRanker(lgbm(), flavor=LIGHTGBM), {"queryranker__ranker__num_leaves": [4]}
    search = GridSearchCV(make_pipeline("passthrough", model), grid, cv=GroupKFold(3))
    assert search.fit(X, y, groups=qid).best_score_ == pytest.approx(np.mean(manual(lgbm, X, y, qid)), abs=1e-12)
    for outer in (search, GridSearchCV(search, {"error_score": [np.nan]})):
        with pytest.raises(ValueError, match="an error of the NDCG scorer: the split cuts"):
            outer.set_params(cv=KFold(3)).fit(X, y, groups=qid)


def test_a_column_of_ids_passes_through_a_pipeline():
    frame = frames(X, np.unique(qid, return_inverse=True)[1])["pandas"]
    scale = ColumnTransformer([("scale", StandardScaler(), list("abcd"))], remainder="passthrough")
    pipe = make_pipeline(scale.set_output(transform="pandas"), QueryRanker(lgbm(), qid_column="remainder__qid"))
    scaled = StandardScaler().fit(X).transform(X)
    expected = QueryRanker(lgbm()).fit(scaled, y, qid)
    assert np.array_equal(pipe.fit(frame, y).predict(frame), expected.predict(scaled))
    scorer = ndcg_scorer(LIGHTGBM, qid_column="qid")
    assert scorer(pipe, frame, y) == ndcg_score(y, expected.predict(scaled), qid=qid, flavor=LIGHTGBM)


def test_many_cutoffs_from_one_prediction_a_fold(routing):
    calls = []

    class Counted(LGBMRanker):
        def predict(self, X, **kwargs):
            calls.append(len(X))
            return super().predict(X, **kwargs)

    model, ks = QueryRanker(Counted(**lgbm().get_params())), tuple(range(1, 11))
    options = {"scoring": ndcg_scorer("lightgbm", k=ks), "refit": "ndcg_at_10", "cv": GroupKFold(3)}
    search = GridSearchCV(model, {"ranker__num_leaves": [2, 4]}, **options).fit(X, y, groups=qid)
    assert len(calls) == 2 * 3
    for k in ks:
        expected = manual(lgbm, X, y, qid, LIGHTGBM.replace(k=k))
        assert search.cv_results_[f"mean_test_ndcg_at_{k}"][1] == pytest.approx(np.mean(expected), abs=1e-12)
    assert search.best_score_ == max(search.cv_results_["mean_test_ndcg_at_10"])
    assert search.score(X, y, groups=qid) == ndcg_score(y, search.predict(X), qid=qid, flavor=LIGHTGBM)


# -- early stopping --------------------------------------------------------------------------------------------------


# The verbosity is not set, but nothing may be printed.
SMALL = {"max_depth": 2, "n_estimators": 60, "learning_rate": 0.1, "n_jobs": 1}
OF_CATBOOST = {"depth": 2, "iterations": 60, "learning_rate": 0.1, "thread_count": 1, "allow_writing_files": False}
STOPPED = {
    "lightgbm": partial(lgbm, n_estimators=60),
    "xgboost": partial(xgb, n_estimators=60),
    "catboost": partial(cat, iterations=60),
    "lightgbm regressor": partial(LGBMRegressor, min_child_samples=3, **SMALL),
    "lightgbm classifier": partial(LGBMClassifier, min_child_samples=3, **SMALL),
    "xgboost regressor": partial(XGBRegressor, **SMALL),
    "xgboost classifier": partial(XGBClassifier, **SMALL),
    "catboost regressor": partial(CatBoostRegressor, **OF_CATBOOST),
    "catboost classifier of two grades": partial(CatBoostClassifier, **OF_CATBOOST),
}


@pytest.mark.parametrize("kind", STOPPED)
@pytest.mark.parametrize("weighted", [False, True])
def test_early_stopping_on_whole_held_out_queries(capfd, kind, weighted):
    library, y = kind.split()[0], (GRADES > 2).astype(int) if "two grades" in kind else GRADES
    flavor = Flavor(gain="exponential", ties="average", empty="skip", k=5)
    stop = {"flavor": flavor, "early_stopping_rounds": 6, "validation_fraction": 0.3, "random_state": 6}
    model = QueryRanker(STOPPED[kind](), **stop)
    try:
        get_tags(model.ranker)
    except AttributeError:  # XGBoost 2.1.0 with scikit-learn 1.6
        pytest.skip("the model does not fit this version of scikit-learn")
    of_query, weight = weights(qid) if weighted else (None, None)
    model.fit(X, y, qid, sample_weight=weight)
    assert capfd.readouterr() == ("", "")
    held = np.isin(qid, model.validation_queries_)
    assert model.validation_queries_.size == 12
    assert 1 <= model.best_iteration_ < 60
    assert getattr(model.ranker_, "callbacks", None) is None  # that of XGBoost holds the validation data

    def value(scores):
        return ndcg_score(y[held], scores, qid=qid[held], flavor=flavor, query_weight=of_query)

    def after(n):
        first = {"lightgbm": {"num_iteration": n}, "xgboost": {"iteration_range": (0, n)}, "catboost": {"ntree_end": n}}
        if is_classifier(model.ranker_):
            return model.ranker_.predict_proba(X[held], **first[library]) @ model.ranker_.classes_
        return model.ranker_.predict(X[held], **first[library])

    assert np.allclose(model.predict(X[held]), after(model.best_iteration_), atol=1e-12)
    assert model.best_score_ == pytest.approx(value(model.predict(X[held])), abs=1e-6)
    history = [value(after(n)) for n in range(1, model.best_iteration_ + 1)]
    assert np.argmax(history) + 1 == model.best_iteration_
    eager = clone(model).set_params(early_stopping_rounds=1).fit(X, y, qid, sample_weight=weight)
    falls = [n for n in range(1, len(history)) if history[n] <= history[n - 1]]
    assert eager.best_iteration_ == [*falls, len(history)][0]

    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    refit = clone(model).fit(X, y, qid, sample_weight=weight)
    assert np.array_equal(refit.predict(X), model.predict(X))
    other = clone(model).set_params(random_state=2).fit(X, y, qid, sample_weight=weight)
    assert set(other.validation_queries_) != set(model.validation_queries_)


# -- conventions -----------------------------------------------------------------------------------------------------


class WithIds(QueryRanker):
    """Fit all rows as one query, because scikit-learn's checks pass no ids."""

    def fit(self, X, y, qid=None, sample_weight=None, *, groups=None):
        return super().fit(X, y, np.zeros(np.shape(np.asarray(y))[0] if y is not None else 0), sample_weight)

    def score(self, X, y, qid=None, sample_weight=None, *, groups=None):
        return super().score(X, y, np.zeros(len(y)))


# These checks pass different weights for the rows of one query.
OF_WEIGHTS = ("weights_not_overwritten", "weight_equivalence_on_dense_data", "weight_equivalence_on_sparse_data")
EXPECTED_FAILURES = {f"check_sample_{name}": "the weights differ within the query" for name in OF_WEIGHTS}


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks():
    model = WithIds(LGBMRegressor(n_estimators=3, min_child_samples=1, verbosity=-1), flavor="sklearn[negative=zero]")
    assert is_regressor(model)
    assert not is_classifier(WithIds(LogisticRegression()))
    results = check_estimator(model, expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    xfailed = [r for r in results if r["status"] == "xfail"]
    assert {r["check_name"] for r in xfailed} == set(EXPECTED_FAILURES)
    assert all("sample_weight must be equal in all rows of a query" in str(r["exception"]) for r in xfailed)
    assert sum(r["status"] == "passed" for r in results) > 50
    assert model.__sklearn_tags__().target_tags.required


def test_a_pipeline_that_takes_no_queries_is_a_ranker():
    pipe = make_pipeline(StandardScaler(), Ridge())
    X, y, qid = [[1.0], [2.0], [4.0]], [0, 1, 2], [1, 1, 2]
    assert np.array_equal(QueryRanker(pipe).fit(X, y, qid).predict(X), clone(pipe).fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("n_queries", "fraction", "held_out"),
    [(2, 0.01, 1), (2, 0.99, 1), (4, 0.9, 3), (4, 0.999, 3), (10, 0.1, 1), (10, 0.25, 2), (10, 0.26, 3), (10, 0.94, 9)],
)
def test_at_least_one_query_is_held_out_and_at_least_one_is_not(n_queries, fraction, held_out):
    rng, qid = np.random.default_rng(0), np.repeat(range(n_queries), 10)
    X, y = rng.normal(size=(qid.size, 3)), rng.integers(0, 4, qid.size)
    ranker = LGBMRanker(n_estimators=3, min_child_samples=2, verbosity=-1)
    model = QueryRanker(ranker, early_stopping_rounds=2, validation_fraction=fraction, random_state=0).fit(X, y, qid)
    assert model.validation_queries_.size == len(set(model.validation_queries_.tolist())) == held_out
    assert set(model.validation_queries_.tolist()) <= set(range(n_queries))


# -- what is refused, and what a message advises ---------------------------------------------------------------------

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


def search(y=Y, scoring="sklearn", groups=QID, cv=None, **given):
    scorer = scoring if callable(scoring) else ndcg_scorer(scoring)
    with sklearn.config_context(enable_metadata_routing=True):
        model = Ridge().set_fit_request(sample_weight=False)
        grid = GridSearchCV(model, {"alpha": [1.0, 9.0]}, scoring=scorer, cv=cv or GroupKFold(4))
        return grid.fit(ROWS, y, groups=groups, **given)


def requested(**names):
    with sklearn.config_context(enable_metadata_routing=True):
        return ndcg_scorer("sklearn").set_score_request(**names)


def of_lists(scorer=None, **ids):
    return (scorer or ndcg_scorer("sklearn"))(Ridge().fit(ROWS, LISTS), ROWS, LISTS, **ids)


PER_ROW = r"two-dimensional y_true, shape \(80, 6\), has one query per row"
SCORER = {
    "several outputs": (lambda: score(KNeighborsClassifier(3), fit_y=LISTS), ValueError,
        r"one score per document, shape \(80,\); KNeighborsClassifier returned shape \(80, 6\)",
        lambda: score(KNeighborsClassifier(3), LISTS, qid=None)),
    "one output": (lambda: score(LogisticRegression(), LISTS, fit_y=Y, qid=None), ValueError,
        r"shape \(80, 6\); LogisticRegression returned shape \(80, 4\)", None),
    "sparse lists": (lambda: score(OneVsRestClassifier(LogisticRegression()), scipy.sparse.csr_matrix(LISTS > 2),
        qid=None), TypeError, r"y_true must be a dense array; got a csr_matrix\. Pass y_true\.toarray\(\)",
        lambda: score(OneVsRestClassifier(LogisticRegression()), scipy.sparse.csr_matrix(LISTS > 2).toarray(),
            qid=None)),
    "the function itself": (lambda: search(scoring=ndcg_scorer), ValueError,
        r"write scoring=ndcg_scorer\(flavor, k=\.\.\.\)", lambda: search(scoring=ndcg_scorer("lightgbm", k=10))),
    "a request without routing": (lambda: ndcg_scorer("sklearn").set_score_request(sample_weight=True), RuntimeError,
        r"sklearn\.set_config\(enable_metadata_routing=True\)", lambda: requested(sample_weight=True)),
    "no probabilities": (lambda: score(RidgeClassifier()), TypeError,
        r"RidgeClassifier does not.*CalibratedClassifierCV", lambda: score(CalibratedClassifierCV(RidgeClassifier()))),
    "classes of words": (lambda: score(LogisticRegression(), Y, fit_y=np.array(list("abcd"))[Y]), TypeError,
        "classes must be grades", None),
    "two scores": (lambda: score(LinearRegression(), fit_y=np.stack([Y, Y], axis=1)), ValueError,
        r"one score per document, shape \(80,\); LinearRegression returned shape \(80, 2\)\.",
        lambda: score(LinearRegression(), fit_y=Y[:, None])),
    "nothing to average": (lambda: search(np.zeros(80), "burges2005"), ValueError,
        "a fold cannot be scored: every query is empty", None),
    "an empty query": (lambda: search(np.zeros(80), Flavor(empty="raise")), ValueError,
        "a fold cannot be scored: every query must have a relevant document", None),
    "ties": (lambda: ndcg_scorer("trec_eval"), ValueError,
        r"does not support ties='docid'.*Use flavor='trec_eval\[ties=average\]'",
        lambda: ndcg_scorer("trec_eval[ties=average]")),
    "empty": (lambda: ndcg_scorer(Flavor(empty=math.nan)), ValueError, "does not support empty=nan.*'skip'",
        lambda: ndcg_scorer("ndcg[empty=skip]")),
    "ids of lists": (lambda: of_lists(qid=QID), ValueError, PER_ROW, of_lists),
    "groups of lists": (lambda: of_lists(groups=QID), ValueError, PER_ROW, None),
    "a column of ids of lists": (lambda: of_lists(ndcg_scorer("sklearn", qid_column="qid")), ValueError, PER_ROW, None),
    "all ids of lists": (lambda: of_lists(ndcg_scorer("sklearn", qid=QID)), ValueError, PER_ROW, None),
    "routed ids of lists": (lambda: search(LISTS), ValueError, r"set_score_request\(qid=False\)",
        lambda: search(LISTS, requested(qid=False))),
    "a column of labels without routing": (lambda: cross_validate(LinearRegression(), ROWS, Y[:, None],
        scoring=ndcg_scorer("sklearn"), cv=GroupKFold(3), groups=QID), ValueError, "no query ids arrived", None),
    "weights within a query": (lambda: score(Ridge(), qid=QID, sample_weight=Y + 1.0), ValueError,
        "sample_weight must be equal in all rows of a query", lambda: score(Ridge(), qid=QID, sample_weight=QID + 1.0)),
    "weights not requested": (lambda: search(sample_weight=QID + 1.0), ValueError,
        r"not explicitly set as requested or not requested for (NDCGScorer|ndcg_scorer)",
        lambda: search(scoring=requested(sample_weight=True), sample_weight=QID + 1.0)),
    "no means of queries": (lambda: ndcg_scorer(Flavor(aggregate="micro"), keep_queries=True), ValueError,
        r"needs a flavor with aggregate='macro'.*Use flavor.replace\(aggregate='macro'\)",
        lambda: ndcg_scorer(Flavor(aggregate="micro").replace(aggregate="macro"), keep_queries=True)),
    "a word for a flag": (lambda: ndcg_scorer("sklearn", keep_queries="yes"), TypeError, "keep_queries must be", None),
    "weights that are not kept": (lambda: score(Ridge(), flavor=ndcg_scorer("sklearn", keep_queries=True), qid=QID,
        sample_weight=QID + 1.0), ValueError, "sample_weight must be None with keep_queries=True", None),
    **{f"a request: {name!r}": (lambda name=name: requested(qid=name), ValueError,
        "either a valid identifier or one of", None) for name in ("two words", "", b"qid")},
    "a missing id of another fold": (lambda: search(groups=np.where(QID == 7, np.nan, QID),
        cv=[(np.arange(70, 80), np.arange(70))]), ValueError, "an id for every row", None),
    "no ids for a tool that passes errors on": (lambda: RFECV(Ridge(), scoring=ndcg_scorer("sklearn")).fit(ROWS, Y),
        ValueError, "^no query ids arrived", None),
    **{f"missing ids: {name}": (lambda X=X: ndcg_scorer("sklearn", qid_column="qid")(Ridge(), X, Y), ValueError,
        MISSING_ID, None) for name, X in MISSING.items()},
}  # fmt: skip


def split(X=ROWS, y=None, groups=None, **settings):
    return list(QueryKFold(3, **settings).split(X, y, groups))


def floats(dtype, number):
    return pd.DataFrame({"qid": np.array([0, 1, number], dtype)})


SPLITTER = {
    "ids and a column": (lambda: split(qid=QID, qid_column="qid"), ValueError, "either qid or qid_column; got both",
        None),
    "neither": (lambda: split(), ValueError, "got neither.*use GroupKFold",
        lambda: next(GroupKFold(3).split(ROWS, Y, QID))),
    "fewer ids": (lambda: split(qid=QID[:-1]), ValueError, "inconsistent numbers of samples", None),
    "no such column": (lambda: split(qid_column="qid"), ValueError, "in its column qid_column='qid'",
        lambda: split(FRAME, qid_column="qid")),
    "a position": (lambda: split(qid_column=0), TypeError,
        r"qid_column must be the name of a column.*got 0 of type int.*pd\.DataFrame\(X\)\.assign\(qid=qid\)",
        lambda: split(pd.DataFrame(ROWS).assign(qid=QID), qid_column="qid")),
    **{f"missing ids: {ids[:2]}": (lambda ids=ids: split(qid=np.array(ids * 20)), ValueError,
        "^qid must have an id for every row", None) for ids in (["a", "b", None, "c"], [1.0, 2.0, np.nan, 3.0])},
    **{f"missing ids: {name}": (lambda X=X: split(X, qid_column="qid"), ValueError, MISSING_ID, None) for name,
        X in MISSING.items()},
    **{
        f"{dtype.__name__} of {number}": (lambda dtype=dtype,
            number=number: split(floats(dtype, number), qid_column="qid"), ValueError,
            rf"got {exact} in {dtype.__name__}, which is exact only below {exact}\. ", lambda dtype=dtype,
            less=number - number // exact: split(floats(dtype, less), qid_column="qid"))
        for dtype,
            exact in ((np.float64, 2**53), (np.float32, 2**24), (np.float16, 2**11)) for number in (exact, -exact)
    },
}  # fmt: skip


def fit(*, ranker=None, X=((1.0,), (2.0,), (3.0,)), y=(1, 0, 1), qid=(1, 1, 2), weight=None, **settings):
    return QueryRanker(ranker or Ridge(), **settings).fit(X, y, qid, sample_weight=weight)


def stopped(ranker, **settings):
    return QueryRanker(ranker, **settings).fit(ROWS, Y, QID)


DART = {"boosting_type='dart'": LGBMRanker(boosting_type="dart"), "boosting='dart'": LGBMRanker(boosting="dart"),
    "boost='dart'": LGBMRanker(boost="dart"), "booster='dart'": XGBRanker(booster="dart"),
    "booster='gblinear'": XGBRanker(booster="gblinear")}  # fmt: skip
RANKER = {
    "no ids": (lambda: fit(qid=None), ValueError, r"no query ids arrived.*groups=qid.*qid_column='qid'", None),
    "sizes": (lambda: fit(qid=(2, 1)), ValueError,
        r"one per row, shape \(3,\); got \(2,\).*sizes of queries are not ids", None),
    "a column of ids": (lambda: fit(qid=np.array([[1], [1], [2]])), ValueError, r"one-dimensional.*got shape \(3, 1\)",
        None),
    "a missing id": (lambda: fit(qid=(1, np.nan, 2)), ValueError, "an id for every row", None),
    "ids of two types": (lambda: fit(qid=np.array([1, "a", 2], dtype=object)), TypeError,
        "of one sortable type; got int, str", None),
    "NaN label": (lambda: fit(y=(1, np.nan, 0)), ValueError, "y must hold finite labels; got 1", None),
    "fewer labels": (lambda: fit(y=(1, 0)), ValueError, r"y must have one label per row, shape \(3,\); got \(2,\)",
        None),
    "no labels": (lambda: fit(y=None), ValueError, "requires y to be passed", None),
    "a row": (lambda: fit(X=(1.0, 2.0, 3.0)), ValueError, "X must be two-dimensional", None),
    "weights within a query": (lambda: fit(weight=(1, 2, 1)), ValueError,
        "equal in all rows of a query.*query 1 has weights from 1.0 to 2.0", lambda: fit(weight=(1, 1, 2))),
    "weights of queries": (lambda: fit(weight=(1, 1)), ValueError, "sample_weight must be one per row", None),
    **{f"weights {weight}": (lambda weight=weight: fit(weight=weight), ValueError,
        "finite and >= 0, and not zero in every", lambda: fit(weight=(0.5, 0.5, 0))) for weight in ((-0.5, -0.5, 1),
        (0, 0, 0), (math.inf, math.inf, 1))},
    "a position": (lambda: QueryRanker(Ridge(), qid_column=-1).fit(ROWS, Y), TypeError,
        r"qid_column must be the name of a column.*got -1 of type int.*pd\.DataFrame\(X\)\.assign\(qid=qid\)",
        lambda: QueryRanker(Ridge(), qid_column="qid").fit(pd.DataFrame(ROWS).assign(qid=QID), Y)),
    "an array by name": (lambda: QueryRanker(Ridge(), qid_column="qid").fit(ROWS, Y), ValueError,
        r"got a ndarray without named columns.*pd\.DataFrame\(X\)\.assign\(qid=qid\).*RFE, need metadata routing",
        None),
    "other ids": (lambda: QueryRanker(Ridge(), qid_column="qid").fit(FRAME, Y, QID + 1), ValueError,
        "must agree if both are given", None),
    "fractions": (lambda: QueryRanker(Ridge(), qid_column="qid").fit(FRAME.assign(qid=QID + 0.5), Y), ValueError,
        "got fractions.*0.5", None),
    "no rounds": (lambda: fit(early_stopping_rounds=0), ValueError, "early_stopping_rounds must be an integer >= 1",
        None),
    "no boosting": (lambda: fit(early_stopping_rounds=5), ValueError,
        "needs a model of LightGBM, XGBoost or CatBoost; got Ridge", None),
    **{f"{share!r} held out": (lambda share=share: fit(early_stopping_rounds=5, validation_fraction=share), ValueError,
        f"validation_fraction must be above 0 and below 1; got {share!r}", None) for share in (0, 1.0)},
    "one query": (lambda: fit(early_stopping_rounds=5, qid=(1, 1, 1)), ValueError, "at least two queries.*got 1", None),
    "a class": (lambda: fit(ranker=LGBMRanker), TypeError,
        r"ranker must be an estimator, such as LGBMRanker\(\); got <class", None),
    "a name": (lambda: fit(ranker="LGBMRanker"), TypeError,
        r"ranker must be an estimator.*got 'LGBMRanker' of type str\.$", None),
    "a pipeline": (lambda: fit(ranker=make_pipeline(StandardScaler(), "passthrough", LGBMRanker())), ValueError,
        "Put QueryRanker inside the pipeline",
        lambda: make_pipeline(StandardScaler(), QueryRanker(LGBMRanker(verbosity=-1))).fit(ROWS, Y,
            queryranker__qid=QID)),
    **{f"early stopping with {setting}": (lambda ranker=ranker: stopped(ranker, early_stopping_rounds=3), ValueError,
        f"early_stopping_rounds must be None with {setting}",
        lambda ranker=ranker: stopped(ranker.set_params(verbosity=0))) for setting, ranker in DART.items()},
    "columns in another order": (lambda: QueryRanker(First()).fit(FRAME, Y, QID).predict(FRAME[FRAME.columns[::-1]]),
        ValueError, "feature names should match", None),
    "a grid of the ranker": (lambda: GridSearchCV(QueryRanker(LGBMRanker()), {"num_leaves": [3]},
        cv=[(ROWS, ROWS)]).fit(ROWS, Y), ValueError,
        r"num_leaves is a parameter of the ranker; .* Write ranker__num_leaves\.",
        lambda: QueryRanker(LGBMRanker()).set_params(ranker__num_leaves=3)),
    "several grades in CatBoostClassifier": (lambda: stopped(CatBoostClassifier(), early_stopping_rounds=3), ValueError,
        "needs grades 0 and 1, because CatBoost numbers others; got 4 grades up to 3. Use CatBoostRegressor",
        lambda: stopped(CatBoostRegressor(**OF_CATBOOST), early_stopping_rounds=3)),
    **{f"no such column of {type(X).__module__}": (lambda X=X: QueryRanker(Ridge(), qid_column="query").fit(X, Y),
        ValueError, r"column qid_column='query'; got columns \['a', 'b', 'c', 'qid'\]", None) for X in (FRAME,
        pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME))},
    **{f"missing ids: {name}": (lambda X=X: QueryRanker(Ridge(), qid_column="qid").fit(X, Y), ValueError, MISSING_ID,
        None) for name, X in MISSING.items()},
}  # fmt: skip

CASES = [(table, case) for table in (SCORER, SPLITTER, RANKER) for case in table]


@pytest.mark.parametrize(("table", "case"), CASES, ids=lambda part: part if isinstance(part, str) else "")
def test_what_is_refused_and_what_is_advised(table, case):
    call, error, message, advised = table[case]
    with pytest.raises(error, match=message):
        call()
    if advised is not None:
        advised()
