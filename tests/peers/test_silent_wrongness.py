"""How NDCG goes wrong without a word in popular libraries, each story run live, and the same data done right here.

Every test shows the peer's wrong number with the installed library first, so that it goes red on the day the peer is
fixed ("fixed upstream?"), and then the right number, by a loop over the queries or by a refusal that names the fix.

The stories, and where users met them (an issue of the library, or nobody has reported it):

=== ================================================================ ================================================
S1  a constant model scores 1.0 where rows arrive best-first         LightGBM 2091, xgboost 3050, ML.NET 6157
S2  a whole fold is scored as one query                              xgboost 8822, 12334
S3  plain KFold cuts queries, without a warning                      scikit-learn 16136
S4  a query with nothing relevant counts 1, or 0                     scikit-learn 29521, catboost/benchmarks 19
S5  XGBRanker weights a callable metric by the sizes of queries and  not reported
    gives queries of one document 1
S6  torchmetrics takes labels that sum to zero for an empty query    not reported
S7  a NaN score is ranked somewhere                                  not reported
S8  torchmetrics flattens two-dimensional input into one query       torchmetrics 3216
S9  LightGBM interleaves two metrics that have one name              not reported
S10 LightGBM stops on its own metric while the custom one improves   LightGBM 6423
S11 LightGBM reads the signature of a metric, and calls one with     LightGBM 7018, 1896
    star arguments without the groups
S12 an ideal of the retrieved documents alone is perfect for one hit mlflow 24541, NGCF 34, LightGCN 1
S13 negative labels give 396, or 112                                 scikit-learn 17639, xgboost 6707
S14 padding is part of a loss (tests/support/loss_invariants.py)       sentence-transformers 3827, TF-Ranking 305, 359
S15 half precision ties scores, and the order of rows decides        sentence-transformers 3893, mteb 5376
S16 means of batches or of ranks depend on how the data is cut       ms-swift 10088, Lightning 171
S17 ranks passed as scores turn the list upside down                 scikit-learn 27726
S18 a document retrieved twice gives more than 1                     haystack 11959
S19 LightGBM weights a query by the mean of its rows, not their sum  LightGBM 2019
S20 a query id behind a scaler is lost, or scaled                    not reported
=== ================================================================ ================================================
"""

from __future__ import annotations

import pytest

pytest.importorskip("catboost")
pytest.importorskip("lightgbm")
pytest.importorskip("pandas")
pytest.importorskip("sklearn")
pytest.importorskip("torchmetrics")
pytest.importorskip("xgboost")

import functools
import inspect
import itertools
import re
import warnings

import catboost.utils
import lightgbm as lgb
import numpy as np
import pandas as pd
import sklearn
import torch
import xgboost
from catboost import CatBoostRanker
from lightgbm import LGBMRanker
from packaging.version import Version
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyRegressor
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import Ridge
from sklearn.metrics import dcg_score as sklearn_dcg
from sklearn.metrics import make_scorer, r2_score
from sklearn.metrics import ndcg_score as sklearn_ndcg
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from torchmetrics.functional.retrieval import retrieval_normalized_dcg
from torchmetrics.retrieval import RetrievalNormalizedDCG
from xgboost import XGBRanker

from ndcg_ml import Flavor, evaluate, evaluate_ranked, ndcg_score
from ndcg_ml.lightgbm import NDCGEval, StopEarly
from ndcg_ml.sklearn import CutQueryWarning, QueryKFold, QueryRanker, ndcg_scorer
from ndcg_ml.torch import NDCG
from ndcg_ml.torch import ndcg as torch_ndcg
from ndcg_ml.xgboost import NDCGEval as XGBoostEval

FIXED = "the library no longer gives the wrong number: fixed upstream? Then tell this story in the past tense."
LAMBDARANK = {"objective": "lambdarank", "verbosity": -1, "num_leaves": 4, "min_data_in_leaf": 3, "num_threads": 1}


# -- the truth, written out ------------------------------------------------------------------------------------------


def one_query(y, s, *, k=None, gain="exponential", ties="first", empty=1.0):
    """NDCG of one query, of the documents in the order of their scores."""
    gains = np.exp2(y) - 1 if gain == "exponential" else np.asarray(y, dtype=float)
    discount = 1 / np.log2(np.arange(len(gains)) + 2)
    discount[len(gains) if k is None else k :] = 0
    order = np.argsort(-np.asarray(s, dtype=float), kind="stable")
    expected = discount.copy()
    if ties == "average":
        for score in set(s):
            run = np.asarray(s)[order] == score
            expected[run] = discount[run].mean()
    ideal = np.sort(gains)[::-1] @ discount
    return gains[order] @ expected / ideal if ideal > 0 else empty


def by_query(y, s, qid, **how):
    """The mean over the queries, one after the other."""
    y, s, qid = np.asarray(y), np.asarray(s), np.asarray(qid)
    return np.mean([one_query(y[qid == query], s[qid == query], **how) for query in pd.unique(qid)])


# -- data and models -------------------------------------------------------------------------------------------------


def ranking(seed, n_queries=30, low=3, high=12):
    """Queries of different difficulty: what a query's documents share is in the last feature."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(low, high, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    X = rng.normal(size=(sizes.sum(), 4))
    X[:, 3] = rng.normal(size=n_queries)[qid]
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=qid.size) + X[:, 3]), 0, 4).astype(int)
    return X, y, qid, sizes


def lgbm(**changes):
    settings = {"n_estimators": 6, "num_leaves": 4, "min_child_samples": 3, "n_jobs": 1, "verbosity": -1}
    return LGBMRanker(**{**settings, **changes})


def xgb(**changes):
    return XGBRanker(**{"n_estimators": 6, "max_depth": 2, "n_jobs": 1, **changes})


def cat(**changes):
    settings = {"iterations": 6, "depth": 2, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    return CatBoostRanker(**{**settings, **changes})


def data_of(X, y, sizes, **more):
    return lgb.Dataset(X, y, group=sizes, params={"verbosity": -1}, **more)


def evaluated_on(X, y, sizes):
    """The arguments that give LGBMRanker.fit its validation data: eval_set is deprecated since LightGBM 4.7."""
    newer = "eval_X" in inspect.signature(LGBMRanker.fit).parameters
    return {"eval_group": [sizes], **({"eval_X": (X,), "eval_y": (y,)} if newer else {"eval_set": [(X, y)]})}


# -- what the libraries say of given scores --------------------------------------------------------------------------


def lightgbm_says(y, s, sizes, k=10, weight=None):
    data = data_of(np.zeros((len(y), 1)), y, sizes, init_score=s, weight=weight)
    return lgb.Booster({**LAMBDARANK, "metric": "ndcg", "eval_at": [k]}, data).eval_train()[0][2]


def xgboost_says(y, s, sizes, metric="ndcg@10", **params):
    data = xgboost.DMatrix(np.zeros((len(y), 1)), y, base_margin=s)
    data.set_group(sizes)
    params = {"objective": "rank:ndcg", "eval_metric": metric, "base_score": 0.0, **params}
    return float(xgboost.Booster(params, [data]).eval(data).rsplit(":", 1)[1])


def catboost_says(y, s, sizes, metric="NDCG:top=10"):
    return catboost.utils.eval_metric(y, s, metric, group_id=np.repeat(np.arange(len(sizes)), sizes))[0]


def torchmetrics_says(y, s, qid, **params):
    metric = RetrievalNormalizedDCG(**params)
    metric.update(torch.as_tensor(s), torch.as_tensor(y).long(), indexes=torch.as_tensor(qid))
    return metric.compute().item()


# -- S1: a constant model scores 1.0 ---------------------------------------------------------------------------------

BEST_FIRST = np.array([3.0, 2, 1, 0, 0, 0])


def test_s1_a_constant_model_scores_what_the_order_of_the_file_says():
    """LightGBM and XGBoost give a constant model 1.0 on rows sorted best-first; CatBoost the worst order."""
    constant, up, down = np.zeros(24), np.tile(BEST_FIRST[::-1], 4), np.tile(BEST_FIRST, 4)
    sizes = [6] * 4
    worst = one_query(BEST_FIRST[::-1], np.zeros(6))
    for says in (lightgbm_says, xgboost_says):
        assert says(down, constant, sizes) == pytest.approx(1.0, abs=1e-12), FIXED
        assert says(up, constant, sizes) == pytest.approx(worst, abs=1e-6), FIXED
    worst = one_query(BEST_FIRST[::-1], np.zeros(6), gain="linear")
    for rows in (up, down):
        assert catboost_says(rows, constant, sizes) == pytest.approx(worst, abs=1e-6), FIXED
        average = one_query(BEST_FIRST, np.zeros(6), gain="linear", ties="average")
        assert sklearn_ndcg(rows.reshape(4, 6), constant.reshape(4, 6)) == pytest.approx(average, abs=1e-12)
    ignoring = [sklearn_ndcg(rows.reshape(4, 6), constant.reshape(4, 6), ignore_ties=True) for rows in (down, up)]
    assert ignoring == pytest.approx([worst, 1.0], abs=1e-12), FIXED

    fair = Flavor.preset("lightgbm", ties="average", k=10)
    expected = one_query(BEST_FIRST, np.zeros(6), k=10, ties="average")
    assert expected < 0.75
    X, qid = np.zeros((24, 1)), np.repeat(np.arange(4), 6)
    for rows in (up, down):
        assert ndcg_score(rows, constant, group=sizes, flavor=fair) == pytest.approx(expected, abs=1e-12)
        assert NDCGEval(fair)(rows, constant, None, np.array(sizes))[0][1] == pytest.approx(expected, abs=1e-12)
        model = DummyRegressor().fit(X, rows)
        assert ndcg_scorer(fair)(model, X, rows, qid=qid) == pytest.approx(expected, abs=1e-12)
        in_torch = torch_ndcg(torch.zeros(4, 6), torch.as_tensor(rows.reshape(4, 6)), flavor=fair)
        assert in_torch.numpy() == pytest.approx(expected, abs=1e-12)
        assert evaluate(rows, constant, group=sizes, flavor=fair).per_query.tied.tolist() == sizes


def test_s1_early_stopping_takes_the_first_round_of_a_file_sorted_best_first():
    """The first tree ties most documents; sorted best-first they score near 1, and no later round does better."""
    X, y, qid, sizes = ranking(1, 40, 5, 20)
    X = X.round(0)
    order = np.lexsort((-y, qid))
    best = {}
    for name, rows in (("as they came", np.arange(qid.size)), ("best-first", order)):
        for flavor in (Flavor.preset("lightgbm"), Flavor.preset("lightgbm", ties="average")):
            train = data_of(X, y, sizes)
            booster = lgb.train(
                {**LAMBDARANK, "learning_rate": 0.05, "metric": "None"},
                train,
                40,
                valid_sets=[data_of(X[rows], y[rows], sizes, reference=train)],
                feval=NDCGEval(flavor, k=10),
                callbacks=[lgb.early_stopping(40, verbose=False)],
            )
            best[name, flavor.ties] = booster.best_iteration
    assert best["best-first", "first"] == 1 < best["as they came", "first"], FIXED
    assert best["best-first", "average"] == best["as they came", "average"] > 5


# -- S2: a whole fold scored as one query ----------------------------------------------------------------------------


def test_s2_xgbranker_scores_the_whole_fold_as_one_query():
    """XGBRanker.score without a qid column takes all rows for one query (xgboost#12334), and a search selects on it."""
    X, y, qid, _ = ranking(0)
    grid = {"n_estimators": [2, 8]}
    silent = Version(xgboost.__version__) < Version("3.4.1")  # XGBoost 3.4.1 raises
    with sklearn.config_context(enable_metadata_routing=True):
        theirs = GridSearchCV(
            xgb().set_fit_request(qid=True),
            grid,
            cv=GroupKFold(3).set_split_request(groups="qid"),
            error_score="raise",
        )
        if silent:
            theirs.fit(X, y, qid=qid)
        else:
            with pytest.raises(ValueError, match=r"qid. is required"):
                theirs.fit(X, y, qid=qid)
        ours = [
            GridSearchCV(
                QueryRanker(xgb(), flavor="xgboost"),
                {f"ranker__{name}": values for name, values in grid.items()},
                scoring=scoring,
                cv=GroupKFold(3),
            ).fit(X, y, groups=qid)
            for scoring in (ndcg_scorer("xgboost"), None)
        ]
    for at, n in enumerate(grid["n_estimators"]):
        for fold, (train, test) in enumerate(GroupKFold(3).split(X, y, qid)):
            s = xgb(n_estimators=n).fit(X[train], y[train], qid=qid[train]).predict(X[test])
            one, right = one_query(y[test], s, k=32), by_query(y[test], s, qid[test], k=32)
            if silent:
                wrong = theirs.cv_results_[f"split{fold}_test_score"][at]
                assert wrong == pytest.approx(one, abs=1e-6), FIXED
                assert abs(wrong - right) > 0.1, FIXED
            for search in ours:
                assert search.cv_results_[f"split{fold}_test_score"][at] == pytest.approx(right, abs=1e-12)


def test_s2_rows_without_query_ids_are_not_one_query():
    """One long list of rows is refused by every entry of ours."""
    _, y, _, _ = ranking(0)
    s = np.zeros(y.size)
    with pytest.raises(ValueError, match="qid"):
        ndcg_score(y, s)
    with pytest.raises(ValueError, match="no query ids arrived"):
        ndcg_scorer("sklearn")(DummyRegressor().fit(s[:, None], y), s[:, None], y)
    with pytest.raises(ValueError, match="needs the sizes of the queries"):
        NDCGEval("sklearn")(y, s)


# -- S3: plain KFold cuts queries ------------------------------------------------------------------------------------


def test_s3_plain_kfold_cuts_queries_and_flatters():
    """XGBRanker under KFold is scored on pieces of queries, which are shorter and so easier, without any warning."""
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(30), 9)
    X, y = rng.normal(size=(270, 3)), (rng.random(270) < 0.25).astype(int)  # nothing to learn
    frame = pd.DataFrame(X, columns=list("abc")).assign(qid=qid)
    cut = KFold(3, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theirs = cross_val_score(xgb(), frame, y, cv=cut)
        whole = cross_val_score(xgb(), frame, y, cv=GroupKFold(3), groups=qid)
    assert theirs.mean() > whole.mean() + 0.15, FIXED

    with sklearn.config_context(enable_metadata_routing=True):
        for scoring in (ndcg_scorer("xgboost"), None):
            for splits in (cut, 4):
                with pytest.raises(ValueError, match=r"the split cuts \d+ of the \d+ queries.*GroupKFold"):
                    cross_validate(QueryRanker(xgb()), X, y, scoring=scoring, cv=splits, params={"groups": qid})
        ours = cross_val_score(
            QueryRanker(xgb()), X, y, scoring=ndcg_scorer("xgboost"), cv=GroupKFold(3), params={"groups": qid}
        )
    assert ours == pytest.approx(whole, abs=1e-6)

    column = {"estimator": QueryRanker(xgb(), qid_column="qid"), "scoring": ndcg_scorer("xgboost", qid_column="qid")}
    with pytest.raises(ValueError, match="the split cuts"):
        cross_validate(**column, X=frame, y=y, cv=cut)
    train, test = next(cut.split(X))
    model = QueryRanker(xgb()).fit(X[train], y[train], qid[train])
    with pytest.warns(CutQueryWarning, match="also in training with other rows"):
        model.score(X[test], y[test], qid[test])


# -- S4: queries without a relevant document -------------------------------------------------------------------------


def test_s4_queries_without_a_relevant_document_count_one_or_zero():
    """The same perfect ranking is 1.0 in LightGBM, XGBoost, CatBoost and .25 in scikit-learn, torchmetrics."""
    y, s, sizes = np.array([0.0, 0, 0, 0, 0, 0, 1, 0]), np.tile([2.0, 1], 4), [2] * 4
    assert [f(y, s, sizes) for f in (lightgbm_says, xgboost_says, catboost_says)] == [1.0] * 3, FIXED
    assert xgboost_says(y, s, sizes, "ndcg@10-") == 0.25, FIXED
    assert sklearn_ndcg(y.reshape(4, 2), s.reshape(4, 2)) == 0.25, FIXED
    assert torchmetrics_says(y, s, np.repeat(np.arange(4), 2)) == 0.25, FIXED

    values = {empty: evaluate(y, s, group=sizes, flavor=Flavor(empty=empty)) for empty in (0.0, 1.0, "skip")}
    for empty, expected in ((0.0, 0.25), (1.0, 1.0), ("skip", 1.0)):
        assert values[empty].value == expected
        assert values[empty].n_empty == 3
        assert "3 empty" in str(values[empty])
    assert np.isnan(ndcg_score(y, s, group=sizes, flavor=Flavor(empty=np.nan)))
    with pytest.raises(ValueError, match="empty"):
        ndcg_score(y, s, group=sizes, flavor=Flavor(empty="raise"))


# -- S5: XGBRanker(eval_metric=callable) -----------------------------------------------------------------------------


def xgbranker_reports(metric, sizes):
    """What XGBRanker logs for a callable metric on queries of these sizes."""
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X, y = np.zeros((qid.size, 1)), (np.arange(qid.size) % 2).astype(int)
    model = xgb(n_estimators=1, eval_metric=metric)
    model.fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid], verbose=False)
    return model.evals_result()["validation_0"][metric.__name__][-1]


def test_s5_xgbranker_weights_a_callable_metric_by_size_and_forces_single_documents_to_one():
    """A metric of 0 for two documents and 1 for six reports .75; one that is always 0 reports more than 0."""

    def one_for_six(y_true, y_score):
        return float(len(y_true) == 6)

    def never(y_true, y_score):
        return 0.0

    assert xgbranker_reports(one_for_six, [2, 6]) == 0.75, FIXED
    assert xgbranker_reports(never, [2, 1, 3, 1]) == pytest.approx(2 / 7, abs=1e-6), FIXED

    y, s, sizes = np.array([0, 1, 3, 1, 0, 0, 0, 0, 0]), np.array([2.0, 1, 9, 8, 7, 6, 5, 4, 3]), [2, 6, 1]
    data = xgboost.DMatrix(np.zeros((9, 1)), y, base_margin=s)
    data.set_group(sizes)
    log = {}
    xgboost.train(
        {"objective": "rank:ndcg", "disable_default_eval_metric": 1, "nthread": 1},
        data,
        1,
        evals=[(data, "valid")],
        custom_metric=XGBoostEval("xgboost", k=5),
        evals_result=log,
        verbose_eval=False,
    )
    (values,) = log["valid"].values()
    expected = by_query(y, s, np.repeat([0, 1, 2], sizes), k=5)
    assert expected == pytest.approx((1 / np.log2(3) + 1 + 1) / 3)
    assert values == pytest.approx([expected], abs=2e-6)  # XGBoost prints and reads six digits
    X, qid = np.zeros((9, 1)), np.repeat([0, 1, 2], sizes)
    model = xgb(n_estimators=1, eval_metric=XGBoostEval("xgboost", k=5))
    with pytest.raises(ValueError, match="XGBRanker"):
        model.fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid], verbose=False)


# -- S6: torchmetrics, labels that sum to zero -----------------------------------------------------------------------


def test_s6_torchmetrics_calls_labels_that_sum_to_zero_an_empty_query():
    """A perfect ranking of the grades 1, 0, -1 scores 0."""
    y, s = np.array([1, 0, -1]), np.array([3.0, 2, 1])
    assert torchmetrics_says(y, s, np.zeros(3, dtype=int)) == 0.0, FIXED

    assert ndcg_score(y, s, group=[3], flavor="torchmetrics") == pytest.approx(1.0, abs=1e-12)
    metric = NDCG("torchmetrics")
    metric.update(torch.as_tensor(s), torch.as_tensor(y), indexes=torch.zeros(3, dtype=torch.long))
    assert metric.compute().item() == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(ValueError, match="y_true must be >= 0"):
        ndcg_score(y, s, group=[3])


# -- S7: NaN predictions ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:invalid value")
def test_s7_a_nan_score_is_ranked_somewhere():
    """XGBoost and CatBoost rank NaN first, torchmetrics wherever its sort puts it, LightGBM makes it 0."""
    s, sizes = np.array([np.nan, 2.0, 1.0]), [3]
    first, second = np.array([1.0, 0, 0]), np.array([0.0, 1, 0])
    for says in (xgboost_says, catboost_says):
        assert says(first, s, sizes) == pytest.approx(1.0, abs=1e-6), FIXED
        assert says(second, s, sizes) == pytest.approx(1 / np.log2(3), abs=1e-6), FIXED
    assert np.isfinite(torchmetrics_says(first, s, np.zeros(3, dtype=int))), FIXED
    assert lightgbm_says(second, s, sizes) == 1.0, FIXED
    seen = []
    data = data_of(np.arange(3.0)[:, None], second, sizes, init_score=s)
    lgb.train(
        {**LAMBDARANK, "metric": "None"},
        data,
        1,
        valid_sets=[data],
        feval=lambda scores, _: seen.append(scores.copy()) or ("m", 0.0, True),
    )
    assert seen[0].tolist() == [0.0, 2.0, 1.0], FIXED  # it is too late for an evaluation function to notice
    with pytest.raises(ValueError, match="NaN"):
        sklearn_ndcg([second], [s])

    with pytest.raises(ValueError, match="y_score must not hold NaN"):
        ndcg_score(second, s, group=sizes)
    with pytest.raises(ValueError, match="y_score must not hold NaN"):
        NDCGEval("lightgbm")(second, s, None, np.array(sizes))
    with pytest.raises(ValueError, match="NaN"):
        torch_ndcg(torch.as_tensor(s), torch.as_tensor(second), indexes=torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match="NaN"):
        NDCG().update(torch.as_tensor(s)[None], torch.as_tensor(second)[None])


# -- S8: torchmetrics, two dimensions --------------------------------------------------------------------------------


def test_s8_torchmetrics_flattens_two_queries_into_one():
    """A batch of two rows is scored as one query of six documents (torchmetrics#3216)."""
    s, y = torch.tensor([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]]), torch.tensor([[0, 0, 1], [1, 0, 0]])
    flat = one_query(y.flatten().numpy(), s.flatten().numpy(), gain="linear", ties="average")
    wrong = retrieval_normalized_dcg(s, y).item()
    assert wrong == pytest.approx(flat, abs=1e-6), FIXED
    assert abs(wrong - 0.75) > 0.2, FIXED

    assert torch_ndcg(s, y).tolist() == [0.5, 1.0]
    metric = NDCG()
    metric.update(s, y)
    assert metric.compute().item() == ndcg_score(y.numpy(), s.numpy()) == 0.75


# -- S9: LightGBM, one name for two metrics --------------------------------------------------------------------------


def test_s9_lightgbm_interleaves_two_metrics_of_one_name():
    """A custom metric called ndcg@3 shares the log of the built-in one: six values for three rounds."""
    X, y, _, sizes = ranking(2)

    def log_of(feval):
        log, train = {}, data_of(X, y, sizes)
        params = {**LAMBDARANK, "metric": "ndcg", "eval_at": [3]}
        lgb.train(params, train, 3, valid_sets=[train], feval=feval, callbacks=[lgb.record_evaluation(log)])
        return log["training"]

    theirs = log_of(lambda *_: ("ndcg@3", 0.25, True))
    assert {name: len(values) for name, values in theirs.items()} == {"ndcg@3": 6}, FIXED
    assert theirs["ndcg@3"][1::2] == [0.25] * 3, FIXED

    ours = log_of(NDCGEval("sklearn", k=3))
    assert {name: len(values) for name, values in ours.items()} == {"ndcg@3": 3, "ndcg_sklearn@3": 3}
    assert ours["ndcg@3"] == theirs["ndcg@3"][::2]


# -- S10: LightGBM, which metric stops -------------------------------------------------------------------------------


def test_s10_lightgbm_stops_on_its_own_metric_while_the_custom_one_improves():
    """first_metric_only follows the built-in ndcg@1, though the custom metric rises at every round (LightGBM#6423)."""
    (X, y, _, sizes), (Xv, yv, qv, gv) = ranking(3), ranking(4)
    rising = iter(range(1000))
    train = data_of(X, y, sizes)
    theirs = lgb.train(
        {**LAMBDARANK, "eval_at": [1]},
        train,
        60,
        valid_sets=[data_of(Xv, yv, gv, reference=train)],
        feval=lambda *_: ("mine", float(next(rising)), True),
        callbacks=[lgb.early_stopping(5, first_metric_only=True, verbose=False)],
    )
    assert theirs.best_iteration < 30, FIXED

    stop = StopEarly(Flavor.preset("sklearn"), k=10, rounds=5)
    train, log = data_of(X, y, sizes), {}
    arguments = stop.train()
    booster = lgb.train(
        {**LAMBDARANK, **stop.params},
        train,
        60,
        valid_sets=[data_of(Xv, yv, gv, reference=train)],
        **{**arguments, "callbacks": [*arguments["callbacks"], lgb.record_evaluation(log)]},
    )
    (values,) = log["valid_0"].values()
    assert booster.best_iteration == np.argmax(values) + 1 == len(values) - 5
    for number in range(1, booster.best_iteration + 1):  # the trees that LightGBM keeps
        s = booster.predict(Xv, num_iteration=number)
        expected = by_query(yv, s, qv, k=10, gain="linear", ties="average", empty=0.0)
        assert values[number - 1] == pytest.approx(expected, abs=1e-12)
    model = lgbm(n_estimators=60, **stop.params).fit(X, y, group=sizes, **stop.fit((Xv, yv, gv)))
    assert list(model.evals_result_["valid_0"]) == list(log["valid_0"])
    assert model.best_iteration_ == np.argmax(next(iter(model.evals_result_["valid_0"].values()))) + 1


# -- S11: LightGBM reads the signature of the metric -----------------------------------------------------------------


def fitted_with(metric):
    X, y, _, sizes = ranking(5)
    return lgbm(n_estimators=2, metric="None").fit(X, y, group=sizes, eval_metric=metric, **evaluated_on(X, y, sizes))


def test_s11_lightgbm_leaves_the_groups_out_for_a_metric_with_star_arguments():
    """A metric of (*args, **kwargs) is called with two arguments: no weights, no groups, no word."""
    calls = []

    def metric(*args, **kwargs):
        calls.append((len(args), kwargs))
        return "m", 0.0, True

    fitted_with(metric)
    assert calls == [(2, {})] * 2, FIXED

    with pytest.raises(ValueError, match=r"needs the sizes of the queries"):
        fitted_with(lambda *args, **kwargs: NDCGEval("sklearn")(*args, **kwargs))
    X, y, qid, _ = ranking(5)
    model = fitted_with(NDCGEval("lightgbm", k=5))
    assert model.evals_result_["training"]["ndcg_lightgbm@5"][-1] == pytest.approx(
        by_query(y, model.predict(X), qid, k=5), abs=1e-12
    )


def test_s11_lightgbm_swaps_the_arguments_of_a_native_metric():
    """f(preds, dataset) given to LGBMRanker is called with (labels, predictions); our object takes both."""
    seen = []

    def native(preds, dataset):
        seen.append(preds)
        return "m", 0.0, True

    fitted_with(native)
    X, y, qid, sizes = ranking(5)
    assert np.array_equal(seen[0], y), FIXED

    ndcg, log, train = NDCGEval("lightgbm", k=5), {}, data_of(X, y, sizes)
    booster = lgb.train(
        {**LAMBDARANK, "metric": "None"},
        train,
        2,
        valid_sets=[train],
        feval=ndcg,
        callbacks=[lgb.record_evaluation(log)],
    )
    expected = by_query(y, booster.predict(X), qid, k=5)
    assert log["training"]["ndcg_lightgbm@5"][-1] == pytest.approx(expected, abs=1e-12)


def with_cutoff(y_true, y_score, weight, group, k=10):
    return "m", 0.0, True


@pytest.mark.parametrize(
    ("metric", "counted"),
    [(with_cutoff, 5), (functools.partial(with_cutoff, k=5), 5), (lambda *args: ("m", 0.0, True), 1)],
    ids=["a default", "partial", "star"],
)
def test_s11_lightgbm_refuses_other_signatures(metric, counted):
    """A default, functools.partial and *args are all counted as they stand: what keeps our signature at four."""
    with pytest.raises(TypeError, match=f"2, 3 or 4 arguments, got {counted}"):
        fitted_with(metric)

    assert len(inspect.signature(NDCGEval("sklearn", k=5)).parameters) == 4
    assert fitted_with(NDCGEval("sklearn", k=(5, 1))).evals_result_["training"].keys() == {
        "ndcg_sklearn@5",
        "ndcg_sklearn@1",
    }


# -- S12: the ideal of what was retrieved ----------------------------------------------------------------------------


def test_s12_an_ideal_of_the_retrieved_documents_alone_is_perfect_for_one_hit_in_ten():
    """Ten relevant documents, one of them retrieved, first: scikit-learn sees the list only, and says 1.0."""
    retrieved, judged = [1, 0, 0], [1] * 10
    assert sklearn_ndcg([retrieved], [[3, 2, 1]]) == 1.0, FIXED

    expected = 1 / (1 / np.log2(np.arange(2, 12))).sum()
    assert expected == pytest.approx(0.220092, abs=1e-6)
    assert evaluate_ranked([retrieved], judged=[judged]).value == 1.0  # the sklearn flavor, asked for by name
    by_judgments = Flavor(ideal="global")
    assert evaluate_ranked([retrieved], judged=[judged], flavor=by_judgments).value == pytest.approx(expected)
    y, s = np.array([1.0, 0, 0] + [1.0] * 9), np.array([3.0, 2, 1] + [0.0] * 9)
    known = ndcg_score(y, s, group=[12], flavor=by_judgments, retrieved=np.arange(12) < 3)
    assert known == pytest.approx(expected)


# -- S13: negative labels --------------------------------------------------------------------------------------------


def test_s13_negative_labels_leave_the_unit_interval():
    """CatBoost, torchmetrics and XGBoost's linear gain report -2.9; scikit-learn's 396 is an error since its 1.4."""
    y, s = np.array([2.0, -1, -1, -1]), np.arange(4.0)
    wrong = [
        catboost_says(y, s, [4], "NDCG"),
        xgboost_says(y, s, [4], "ndcg", ndcg_exp_gain=False),
        torchmetrics_says(y, s, np.zeros(4, dtype=int)),
    ]
    assert wrong == pytest.approx([one_query(y, s, gain="linear")] * 3, abs=1e-5), FIXED
    assert max(wrong) < -2.8, FIXED
    with pytest.raises(lgb.basic.LightGBMError, match="should be non-negative"):
        lightgbm_says(y, s, [4])
    with pytest.raises(xgboost.core.XGBoostError, match="either 0 or positive integer"):
        xgboost_says(y, s, [4])

    grades, scores = [[-0.89, -0.53, -0.47, 0.39, 0.56]], [[0.07, 0.31, 0.75, 0.33, 0.27]]  # data of scikit-learn#17639
    with pytest.raises(ValueError, match="negative y_true"):
        sklearn_ndcg(grades, scores)
    assert sklearn_dcg(grades, scores) / sklearn_dcg(grades, grades) == pytest.approx(396.03, abs=0.01), FIXED

    with pytest.raises(ValueError, match="y_true must be >= 0"):
        ndcg_score(y, s, group=[4])
    with pytest.raises(ValueError, match="must be >= 0"):
        torch_ndcg(torch.as_tensor(s)[None], torch.as_tensor(y)[None])
    for policy, right in (("zero", one_query([2, 0, 0, 0], s)), ("drop", 1.0)):
        assert ndcg_score(y, s, group=[4], flavor=Flavor(negative=policy)) == pytest.approx(right, abs=1e-12)
    assert 0 <= ndcg_score(grades, scores, flavor=Flavor(negative="zero")) <= 1


# -- S15: half precision ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_s15_half_precision_ties_scores_and_the_order_of_evaluation_decides(dtype):
    """Distinct float32 scores near 1 are tied in half precision, and libraries that break ties by position differ."""
    rng = np.random.default_rng(0)
    y = (np.arange(200) < 20).astype(float)
    exact = torch.as_tensor(1 - 0.004 * rng.random(200), dtype=torch.float32)
    half = exact.to(dtype)
    assert len(set(exact.tolist())) == 200 > 50 > len(set(half.tolist()))
    backwards = np.arange(200)[::-1].copy()
    s = half.double().numpy()
    for says in (
        lambda y, s: lightgbm_says(y, s, [200]),
        lambda y, s: xgboost_says(y, s, [200]),
        lambda y, s: sklearn_ndcg([y], [s], k=10, ignore_ties=True),
    ):
        assert abs(says(y, s) - says(y[backwards], s[backwards])) > 0.1, FIXED
    stable = [torch.sort(half[rows], descending=True, stable=True).indices for rows in (slice(None), backwards)]
    assert not torch.equal(stable[0], torch.as_tensor(backwards)[stable[1]]), FIXED

    fair = Flavor(gain="exponential", ties="average", k=10)
    expected = one_query(y, s, k=10, ties="average")
    for rows in (np.arange(200), backwards):
        in_torch = torch_ndcg(half[None, rows], torch.as_tensor(y[rows])[None], flavor=fair)
        assert in_torch.item() == pytest.approx(expected, abs=1e-12)
        assert ndcg_score(y[rows], s[rows], group=[200], flavor=fair) == pytest.approx(expected, abs=1e-12)
    assert evaluate(y, s, group=[200], flavor=fair).per_query.tied[0] > 150
    assert evaluate(y, exact.numpy(), group=[200], flavor=fair).per_query.tied[0] == 0
    low, high = (ndcg_score(y, s, group=[200], flavor=fair.replace(ties=ties)) for ties in ("worst", "best"))
    assert low < expected < high


def test_s15_half_precision_arrays_of_numpy_are_scored_as_the_ties_they_are():
    """A float16 array gives the same value as the float64 array of its values."""
    rng = np.random.default_rng(1)
    y, s = rng.integers(0, 3, 60), (100 + rng.random(60)).astype(np.float16)
    assert len(set(s.tolist())) < 30
    wrong = [lightgbm_says(y[rows], s[rows].astype(float), [60]) for rows in (np.arange(60), np.arange(60)[::-1])]
    assert abs(wrong[0] - wrong[1]) > 0.05, FIXED

    fair = Flavor.preset("lightgbm", ties="average", k=10)
    expected = one_query(y, s.astype(float), k=10, ties="average")
    for rows in (np.arange(60), np.arange(60)[::-1]):
        assert ndcg_score(y[rows], s[rows], group=[60], flavor=fair) == pytest.approx(expected, abs=1e-12)


# -- S16: means of batch means ---------------------------------------------------------------------------------------


def test_s16_the_mean_of_batch_values_depends_on_the_batches():
    """The mean of per-batch values of torchmetrics is not its value over all queries, and checkpoints follow it."""
    X, y, qid, _ = ranking(6)
    s = torch.as_tensor(X[:, 0], dtype=torch.float32)
    whole = torchmetrics_says(y, s, qid)
    theirs = []
    for cuts in ([1, 30], [15, 30]):
        edges = np.searchsorted(qid, [0, *cuts])
        parts = [slice(*edge) for edge in itertools.pairwise(edges)]
        theirs.append(np.mean([torchmetrics_says(y[part], s[part], qid[part]) for part in parts]))
        metric = NDCG()
        for part in parts:
            metric.update(s[part], torch.as_tensor(y[part]), indexes=torch.as_tensor(qid[part]))
        expected = by_query(y, s.numpy(), qid, gain="linear", ties="average", empty=0.0)
        assert metric.compute().item() == pytest.approx(expected, abs=1e-12)
        assert whole == pytest.approx(expected, abs=1e-5)
    assert min(abs(theirs[0] - theirs[1]), abs(theirs[0] - whole)) > 0.01, FIXED


def test_s16_torchmetrics_merges_queries_of_two_batches_that_share_an_id():
    """Ids that start again from 0 in every batch or process make one query of two, without a word."""
    first, second = (torch.tensor([2.0, 1.0]), torch.tensor([1, 0])), (torch.tensor([9.0, 8.0]), torch.tensor([0, 1]))
    theirs, ours, loud = RetrievalNormalizedDCG(), NDCG(query_ids="batch"), NDCG()
    for s, y in (first, second):
        for metric in (theirs, ours, loud):
            metric.update(s, y, indexes=torch.zeros(2, dtype=torch.long))
    right = (1 + 1 / np.log2(3)) / 2
    assert abs(theirs.compute().item() - right) > 0.1, FIXED

    assert ours.compute().item() == pytest.approx(right, abs=1e-12)
    assert ours.n_queries == 2
    with pytest.raises(ValueError, match="1 of the queries appeared more than once"):
        loud.compute()


# -- S17: ranks passed as scores -------------------------------------------------------------------------------------


def test_s17_ranks_passed_as_scores_turn_the_list_upside_down():
    """Rank 1 is the lowest score (scikit-learn#27726): for lists that are ranked already there is a function."""
    grades, rank = np.array([3, 2, 1, 0, 0]), np.arange(1, 6)
    wrong = sklearn_ndcg([grades], [rank])
    assert wrong == pytest.approx(one_query(grades, rank, gain="linear"), abs=1e-12)
    assert wrong < 0.7, FIXED

    assert evaluate_ranked([grades]).value == 1.0
    assert ndcg_score([grades], [-rank]) == 1.0
    by_rank = [2, 0, 3]
    assert evaluate_ranked([by_rank]).value == pytest.approx(one_query(by_rank, [3, 2, 1], gain="linear"))


# -- S18: duplicates -------------------------------------------------------------------------------------------------


def test_s18_a_document_retrieved_twice_gives_more_than_one():
    """One relevant document, returned three times: its gain three times over an ideal of one."""
    retrieved, grade_of = ["a", "a", "a"], {"a": 1, "b": 0}
    dcg = sum(grade_of[doc] / np.log2(rank + 1) for rank, doc in enumerate(retrieved, start=1))
    assert dcg / 1.0 > 2  # an evaluator that looks each retrieved id up gets this
    assert sklearn_ndcg([[1, 1, 1, 0]], [[4, 3, 2, 1]]) == 1.0, FIXED  # its ideal is doubled too

    for flavor in ("sklearn", "trec_eval"):
        with pytest.raises(ValueError, match=r"doc_id must not repeat within a query.*Remove the duplicate"):
            ndcg_score([1, 1, 1, 0], [4, 3, 2, 1], group=[4], doc_id=["a", "a", "a", "b"], flavor=flavor)
    with pytest.raises(ValueError, match="retrieved more often than it was judged"):
        evaluate_ranked([[1, 1, 1]], judged=[[1, 0]])


# -- S19: LightGBM, row weights --------------------------------------------------------------------------------------


def test_s19_lightgbm_weighs_a_query_by_the_mean_of_its_rows_not_by_their_sum():
    """The answer on the tracker was the sum (LightGBM#2019); the metric takes the mean."""
    _, y, qid, sizes = ranking(7)
    y = np.where(np.arange(y.size) == np.searchsorted(qid, qid), 2, y)  # LightGBM counts an empty query unweighted
    rng = np.random.default_rng(0)
    s, weight = rng.normal(size=y.size), rng.uniform(0.1, 3, y.size).astype(np.float32)
    values = np.array([one_query(y[qid == query], s[qid == query], k=10) for query in range(sizes.size)])
    total = np.array([weight[qid == query].sum() for query in range(sizes.size)])
    by_mean, by_sum = np.average(values, weights=total / sizes), np.average(values, weights=total)
    theirs = lightgbm_says(y, s, sizes, weight=weight)
    assert theirs == pytest.approx(by_mean, abs=1e-6), FIXED
    assert abs(theirs - by_sum) > 0.005, FIXED

    assert NDCGEval("lightgbm", k=10)(y, s, weight, sizes)[0][1] == pytest.approx(by_mean, abs=1e-6)
    assert "the mean weight of its rows" in inspect.getdoc(NDCGEval)
    ours = ndcg_score(y, s, group=sizes, flavor="lightgbm", k=10, query_weight=total / sizes)
    assert ours == pytest.approx(by_mean, abs=1e-6)
    with pytest.raises(ValueError, match="sample_weight must be equal in all rows of a query"):
        QueryRanker(lgbm()).fit(np.zeros((y.size, 1)), y, qid, sample_weight=weight)


# -- S20: the query id behind a scaler -------------------------------------------------------------------------------


def test_s20_a_qid_column_is_lost_or_scaled_by_an_earlier_step():
    """Behind a scaler the ids are gone, or fractions that XGBoost truncates: twelve queries become two."""
    X, y, qid, _ = ranking(8, 12)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(qid=qid)
    with pytest.raises(ValueError, match="`qid` is required"):
        make_pipeline(StandardScaler(), xgb()).fit(frame, y)
    with pytest.raises(xgboost.core.XGBoostError, match="must be sorted"):
        make_pipeline(StandardScaler().set_output(transform="pandas"), xgb()).fit(frame, y)
    scaled = MinMaxScaler().set_output(transform="pandas")
    theirs = make_pipeline(scaled, xgb()).fit(frame, y)
    seen = xgboost.DMatrix(scaled.transform(frame)[list("abcd")], y, qid=scaled.transform(frame)["qid"])
    assert len(seen.get_uint_info("group_ptr")) - 1 == 2, FIXED
    s = theirs.predict(frame)
    merged = np.mean([one_query(y[part], s[part], k=32) for part in (qid < 11, qid == 11)])
    assert theirs.score(frame, y) == pytest.approx(merged, abs=1e-6), FIXED
    assert abs(merged - by_query(y, s, qid, k=32)) > 0.03, FIXED

    for make in (lgbm, xgb, cat):
        with pytest.raises(ValueError, match=r"earlier step may have dropped it.*remainder='passthrough'"):
            make_pipeline(StandardScaler(), QueryRanker(make(), qid_column="qid")).fit(frame, y)
        for step, column in (
            (StandardScaler(), -1),
            (StandardScaler().set_output(transform="pandas"), "qid"),
            (MinMaxScaler(), -1),
        ):
            with pytest.raises(ValueError, match=r"got fractions.*Exclude them.*remainder='passthrough'"):
                make_pipeline(step, QueryRanker(make(), qid_column=column)).fit(frame, y)

    scale = ColumnTransformer([("scale", StandardScaler(), list("abcd"))], remainder="passthrough")
    scorer = ndcg_scorer("xgboost", qid_column="qid")
    pipe = make_pipeline(scale, QueryRanker(xgb(), qid_column=-1))
    assert pipe.fit(frame, y)[-1].ranker_.n_features_in_ == 4  # the ids are no feature
    got = cross_validate(pipe, frame, y, scoring=scorer, cv=QueryKFold(3, qid_column="qid"))["test_score"]
    for (train, test), score in zip(GroupKFold(3).split(X, y, qid), got, strict=True):
        scaler = StandardScaler().fit(X[train])
        s = xgb().fit(scaler.transform(X[train]), y[train], qid=qid[train]).predict(scaler.transform(X[test]))
        assert score == pytest.approx(by_query(y[test], s, qid[test], k=32), abs=1e-12)


def test_s20_ids_too_large_for_the_type_of_their_column_are_refused():
    """In an array of float32 the ids 16777216 and 16777217 are one number: four queries become three."""
    qid = np.repeat(np.arange(2**24, 2**24 + 4), 4)
    X = np.column_stack([np.random.default_rng(0).normal(size=(16, 2)), qid]).astype(np.float32)
    assert len(np.unique(X[:, -1])) == 3
    with pytest.raises(ValueError, match="float32"):
        QueryRanker(lgbm(min_child_samples=1), qid_column=-1).fit(X, np.arange(16) % 2)


# -- a forgotten qid can never produce a best_params_ ----------------------------------------------------------------


def tools(estimator, grid, scoring, cv, X, y, importance="auto"):
    """Everything in scikit-learn that selects or reports by a scorer, with default error_score and no ids."""
    how = {"scoring": scoring, "cv": cv}
    return {
        "GridSearchCV": lambda: GridSearchCV(estimator, grid, **how).fit(X, y),
        "RandomizedSearchCV": lambda: RandomizedSearchCV(estimator, grid, n_iter=2, random_state=0, **how).fit(X, y),
        "cross_validate": lambda: cross_validate(estimator, X, y, **how),
        "learning_curve": lambda: learning_curve(estimator, X, y, **how),
        "SequentialFeatureSelector": lambda: SequentialFeatureSelector(estimator, n_features_to_select=1, **how).fit(
            X, y
        ),
        "RFECV": lambda: RFECV(estimator, importance_getter=importance, **how).fit(X, y),
    }


def needs_ids(y_true, y_score, qid):
    raise AssertionError("never called without qid")


@pytest.fixture(params=[False, True], ids=["routing off", "routing on"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


@pytest.mark.filterwarnings("ignore")
def test_a_forgotten_qid_makes_a_plain_scorer_choose_the_first_candidate(routing):
    """make_scorer of a function that needs ids: no exception, nan everywhere, and best_params_ of the first."""
    X, y, _, _ = ranking(9, 12)
    for alphas in ([5, 7], [7, 5]):
        search = GridSearchCV(Ridge(), {"alpha": alphas}, scoring=make_scorer(needs_ids), cv=3).fit(X, y)
        assert np.isnan(search.cv_results_["mean_test_score"]).all(), FIXED
        assert search.best_params_ == {"alpha": alphas[0]}, FIXED
        assert np.isnan(search.best_score_), FIXED


RANKER = {"grid": {"ranker__num_leaves": [3, 4]}, "importance": "ranker_.feature_importances_"}
LEARNERS = {
    "ranker, scorer": {"estimator": QueryRanker(lgbm()), "scoring": ndcg_scorer("lightgbm", k=10), **RANKER},
    "ranker, cut-offs": {"estimator": QueryRanker(lgbm()), "scoring": ndcg_scorer("lightgbm", k=(1, 5)), **RANKER},
    "ranker, its own score": {"estimator": QueryRanker(lgbm()), "scoring": None, **RANKER},
    "a regressor, scorer": {"estimator": Ridge(), "grid": {"alpha": [1, 2]}, "scoring": ndcg_scorer("sklearn")},
    "regressor, cut-offs": {"estimator": Ridge(), "grid": {"alpha": [1, 2]}, "scoring": ndcg_scorer("sklearn", (1, 5))},
}


@pytest.mark.filterwarnings("ignore")  # scikit-learn also warns of failed fits
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("splits", ["whole queries", "rows"])
def test_a_forgotten_qid_can_never_produce_a_result(routing, learner, splits):
    """Every tool raises, with routing off and on, whether the estimator or only the scorer needs the ids."""
    X, y, qid, _ = ranking(9, 12)
    cv = QueryKFold(3, qid=qid) if splits == "whole queries" else 3
    for name, run in tools(**LEARNERS[learner], cv=cv, X=X, y=y).items():
        with pytest.raises(ValueError, match=r"no query ids arrived.*enable_metadata_routing.*qid_column"):
            pytest.fail(f"{name} returned {run()}")


@pytest.mark.parametrize("scoring", [ndcg_scorer("lightgbm"), None])
def test_the_score_of_a_search_without_ids_is_refused_too(scoring):
    """After a search that had its ids, search.score(X, y) without them raises as well."""
    X, y, qid, _ = ranking(9, 12)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(QueryRanker(lgbm()), {"ranker__num_leaves": [3]}, scoring=scoring, cv=GroupKFold(3))
        search.fit(X, y, groups=qid)
        with pytest.raises(ValueError, match="no query ids arrived"):
            search.score(X, y)


@pytest.mark.filterwarnings("ignore")
def test_validation_curve_hides_every_failed_fit_and_shows_no_number(routing):
    """validation_curve alone says nothing of fits that failed; what it gives for a forgotten qid is nan throughout."""
    X, y, _, _ = ranking(9, 12)
    how = {"param_name": "ranker__num_leaves", "param_range": [3, 4], "cv": 3, "scoring": ndcg_scorer("lightgbm")}
    for values in validation_curve(QueryRanker(lgbm()), X, y, **how):
        assert np.isnan(values).all()
    with pytest.raises(ValueError, match="no query ids arrived"):
        validation_curve(QueryRanker(lgbm()), X, y, **how, error_score="raise")


def test_rfecv_without_scoring_never_asks_the_ranker():
    """RFECV's scoring=None is R2, whatever the estimator's own score is: a ranker needs the scorer there."""
    X, y, qid, _ = ranking(9, 12)
    model, cv = QueryRanker(lgbm(), flavor="lightgbm"), GroupKFold(3)
    found = {}
    with sklearn.config_context(enable_metadata_routing=True):
        for scoring in (None, ndcg_scorer("lightgbm")):
            selected = RFECV(model, cv=cv, scoring=scoring, importance_getter="ranker_.feature_importances_")
            # The last score is that of all features.
            found[scoring] = selected.fit(X, y, groups=qid).cv_results_["mean_test_score"][-1]
    theirs, ours = found.values()
    folds = [
        (test, lgbm_by_hand(X[train], y[train], qid[train]).predict(X[test])) for train, test in cv.split(X, y, qid)
    ]
    assert theirs == pytest.approx(np.mean([r2_score(y[test], s) for test, s in folds]), abs=1e-12), FIXED
    assert theirs < 0.5, FIXED

    assert ours == pytest.approx(np.mean([by_query(y[test], s, qid[test]) for test, s in folds]), abs=1e-12)
    assert ours > 0.8


def lgbm_by_hand(X, y, qid):
    return lgbm().fit(X, y, group=np.unique(qid, return_counts=True)[1])


# -- the order of the rows -------------------------------------------------------------------------------------------


def shuffled_queries(qid, seed):
    """An order of the rows that mixes the queries and keeps the inner order of each."""
    mixed = np.random.default_rng(seed).permutation(qid)
    order = np.empty(qid.size, dtype=int)
    order[np.argsort(mixed, kind="stable")] = np.argsort(qid, kind="stable")
    return order


GRIDS = {
    "lightgbm": (lgbm, {"num_leaves": [2, 6], "n_estimators": [1, 12]}),
    "xgboost": (xgb, {"max_depth": [1, 3], "n_estimators": [1, 12]}),
    "catboost": (cat, {"depth": [1, 3], "iterations": [1, 12]}),
}


def by_hand(make, params, X, y, qid, k):
    """The scores of the folds as a careful user of each library computes them, rows sorted by query."""
    scores = []
    for train, test in GroupKFold(3).split(X, y, qid):
        train = train[np.argsort(qid[train], kind="stable")]
        told = {
            "lightgbm": {"group": np.unique(qid[train], return_counts=True)[1]},
            "xgboost": {"qid": qid[train]},
            "catboost": {"group_id": qid[train]},
        }[make().__class__.__module__.partition(".")[0]]
        s = make(**params).fit(X[train], y[train], **told).predict(X[test])
        scores.append(by_query(y[test], s, qid[test], k=k, ties="average", empty=0.0))
    return scores


@pytest.mark.parametrize("library", GRIDS)
def test_a_search_selects_the_same_candidate_on_shuffled_and_sorted_rows(library):
    """The rows of a file may come in any order: folds, models and scores are those of the sorted file."""
    make, grid = GRIDS[library]
    X, y, qid, _ = ranking(10)
    fair = Flavor(gain="exponential", ties="average", k=5)
    found = []
    for rows in (np.arange(qid.size), shuffled_queries(qid, 0), shuffled_queries(qid, 1)):
        with sklearn.config_context(enable_metadata_routing=True):
            search = GridSearchCV(
                QueryRanker(make()),
                {f"ranker__{name}": values for name, values in grid.items()},
                scoring=ndcg_scorer(fair),
                cv=GroupKFold(3),
            ).fit(X[rows], y[rows], groups=qid[rows])
        results = search.cv_results_
        found.append((search.best_params_, results["mean_test_score"].tolist()))
        for at, params in enumerate(results["params"]):
            plain = {name.removeprefix("ranker__"): value for name, value in params.items()}
            expected = by_hand(make, plain, X, y, qid, k=5)
            scores = [results[f"split{fold}_test_score"][at] for fold in range(3)]
            assert scores == pytest.approx(expected, abs=1e-12)
    assert len(set(found[0][1])) > 1
    assert found[0][0] == found[1][0] == found[2][0]
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-12)


# -- the list --------------------------------------------------------------------------------------------------------


def test_every_story_of_the_list_is_told():
    listed = re.findall(r"^(S\d+) ", __doc__, re.MULTILINE)
    assert listed == [f"S{number}" for number in range(1, 21)]
    told = {match[1] for name in globals() if (match := re.match(r"test_(s\d+)_", name))}
    assert told == {story.lower() for story in listed} - {"s14"}
