"""Cases in which popular libraries silently report a wrong NDCG, run with the installed versions.

The table WRONG has the wrong number of the library, computed by a loop over the queries, so that its test fails once
the library is fixed ("fixed upstream?"). What ndcg_ml returns or refuses is tested where the rule is.

The cases, and where users reported them:

=== ================================================================ ================================================
S1  a constant model scores 1.0 if rows are sorted best-first        LightGBM 2091, xgboost 3050, ML.NET 6157
S2  a whole fold is scored as one query                              xgboost 8822, 12334
S3  plain KFold cuts queries, without a warning                      scikit-learn 16136
S4  a query without relevant documents scores 1, or 0                scikit-learn 29521, catboost/benchmarks 19
S5  XGBRanker weights a callable metric by the sizes of queries and  not reported
    scores queries of one document 1
S6  torchmetrics takes labels that sum to zero for an empty query    not reported
S7  a NaN score gets a rank                                          not reported
S8  torchmetrics flattens two-dimensional input into one query       torchmetrics 3216
S9  LightGBM interleaves two metrics that have one name              not reported
S10 LightGBM stops on its own metric while the custom one improves   LightGBM 6423
S11 LightGBM reads the signature of a metric, and calls one with     LightGBM 7018, 1896
    star arguments without the groups
S12 under an ideal of retrieved documents one hit scores 1           mlflow 24541, NGCF 34, LightGCN 1
S13 negative labels give 396, or 112                                 scikit-learn 17639, xgboost 6707
S14 padding is part of a loss (tests/support/loss_invariants.py)       sentence-transformers 3827, TF-Ranking 305, 359
S15 half precision ties scores, and the order of rows decides        sentence-transformers 3893, mteb 5376
S16 means of batches or of ranks depend on how the data are split    ms-swift 10088, Lightning 171
S17 ranks passed as scores reverse the list                          scikit-learn 27726
S18 a document retrieved twice scores more than 1                    haystack 11959
S19 LightGBM weights a query by the mean of its rows, not their sum  LightGBM 2019
S20 a query id is lost or scaled by an earlier step                  not reported
=== ================================================================ ================================================
"""

import pytest

pytest.importorskip("catboost")
pytest.importorskip("lightgbm")
pytest.importorskip("pandas")
pytest.importorskip("sklearn")
pytest.importorskip("torchmetrics")
pytest.importorskip("xgboost")

import inspect
import itertools
import re
import warnings
from contextlib import nullcontext

import lightgbm as lgb
import numpy as np
import pandas as pd
import sklearn
import torch
import xgboost
from libraries import catboost_ndcg, lightgbm_ndcg, torchmetrics_ndcg, xgboost_ndcg
from lightgbm import LGBMRanker
from packaging.version import Version
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import Ridge
from sklearn.metrics import dcg_score as sklearn_dcg
from sklearn.metrics import ndcg_score as sklearn_ndcg
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from torchmetrics.functional.retrieval import retrieval_normalized_dcg
from torchmetrics.retrieval import RetrievalNormalizedDCG
from xgboost import XGBRanker

from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.lightgbm import NDCGEval
from ndcg_ml.sklearn import QueryKFold, QueryRanker, ndcg_scorer
from ndcg_ml.torch import NDCG

FIXED = "the library no longer gives the wrong number: fixed upstream? Then drop this case or limit it to old versions."
LAMBDARANK = {"objective": "lambdarank", "verbosity": -1, "num_leaves": 4, "min_data_in_leaf": 3, "num_threads": 1}


# -- the right number, by loops -------------------------------------------------------------------------------------


def one_query(y, s, *, k=None, gain="exponential", ties="first", empty=1.0):
    """Return the NDCG of one query."""
    gains = np.exp2(y) - 1 if gain == "exponential" else np.asarray(y, dtype=float)
    discount = 1 / np.log2(np.arange(len(gains)) + 2)
    discount[len(gains) if k is None else k :] = 0
    order = np.argsort(-np.asarray(s, dtype=float), kind="stable")
    expected = discount.copy()
    if ties == "average":
        for score in set(s):
            tied = np.asarray(s)[order] == score
            expected[tied] = discount[tied].mean()
    ideal = np.sort(gains)[::-1] @ discount
    return gains[order] @ expected / ideal if ideal > 0 else empty


def by_query(y, s, qid, **how):
    """Return the mean NDCG of the queries."""
    y, s, qid = np.asarray(y), np.asarray(s), np.asarray(qid)
    return np.mean([one_query(y[qid == query], s[qid == query], **how) for query in pd.unique(qid)])


# -- data and models -------------------------------------------------------------------------------------------------


def ranking(seed, n_queries=30, low=3, high=12):
    """Return queries of different difficulty, which the last feature holds."""
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


def data_of(X, y, sizes, **more):
    return lgb.Dataset(X, y, group=sizes, params={"verbosity": -1}, **more)


def evaluated_on(X, y, sizes):
    """Return the validation data as arguments of LGBMRanker.fit; eval_set is deprecated since LightGBM 4.7."""
    newer = "eval_X" in inspect.signature(LGBMRanker.fit).parameters
    return {"eval_group": [sizes], **({"eval_X": (X,), "eval_y": (y,)} if newer else {"eval_set": [(X, y)]})}


# -- wrong numbers, right numbers, and what is refused ----------------------------------------------------------------

BEST_FIRST, EQUAL = np.array([3.0, 2, 1, 0, 0, 0]), np.zeros(6)
DOWN, UP, CONSTANT, SIX = np.tile(BEST_FIRST, 4), np.tile(BEST_FIRST[::-1], 4), np.zeros(24), [6] * 4
PAIRS = np.array([0.0, 0, 0, 0, 0, 0, 1, 0]), np.tile([2.0, 1], 4), [2] * 4
CANCEL = np.array([1, 0, -1]), np.array([3.0, 2, 1])
NAN, FIRST, SECOND = np.array([np.nan, 2.0, 1.0]), np.array([1.0, 0, 0]), np.array([0.0, 1, 0])
TWO_ROWS = torch.tensor([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]]), torch.tensor([[0, 0, 1], [1, 0, 0]])
NEGATIVE = np.array([2.0, -1, -1, -1]), np.arange(4.0)
SKLEARN_17639 = np.array([[-0.89, -0.53, -0.47, 0.39, 0.56]]), np.array([[0.07, 0.31, 0.75, 0.33, 0.27]])
GRADES, RANK = np.array([3, 2, 1, 0, 0]), np.arange(1, 6)

WRONG = {
    "s1 LightGBM and XGBoost": (
        lambda: [theirs(rows, CONSTANT, SIX) for theirs in (lightgbm_ndcg, xgboost_ndcg) for rows in (DOWN, UP)],
        [1.0, one_query(BEST_FIRST[::-1], EQUAL)] * 2),
    "s1 CatBoost assumes the worst": (lambda: [catboost_ndcg(rows, CONSTANT, SIX) for rows in (DOWN, UP)],
        [one_query(BEST_FIRST[::-1], EQUAL, gain="linear")] * 2),
    "s1 scikit-learn": (lambda: [sklearn_ndcg([y], [EQUAL], ignore_ties=True) for y in (BEST_FIRST, BEST_FIRST[::-1])],
        [one_query(BEST_FIRST[::-1], EQUAL, gain="linear"), 1.0]),
    "s4 score 1": (lambda: [theirs(*PAIRS) for theirs in (lightgbm_ndcg, xgboost_ndcg, catboost_ndcg)], [1.0] * 3),
    "s4 score 0": (
        lambda: [xgboost_ndcg(*PAIRS, suffix="-"), sklearn_ndcg(*(each.reshape(4, 2) for each in PAIRS[:2])),
            torchmetrics_ndcg(*PAIRS)], [0.25] * 3),
    "s6 a perfect ranking": (lambda: torchmetrics_ndcg(*CANCEL, [3]), 0.0),
    "s7 XGBoost and CatBoost rank NaN first": (
        lambda: [theirs(y, NAN, [3]) for theirs in (xgboost_ndcg, catboost_ndcg) for y in (FIRST, SECOND)],
        [1.0, 1 / np.log2(3)] * 2),
    "s7 LightGBM replaces NaN by 0": (lambda: lightgbm_ndcg(SECOND, NAN, [3]), 1.0),
    "s7 torchmetrics": (lambda: float(np.isfinite(torchmetrics_ndcg(FIRST, NAN, [3]))), 1.0),
    "s8 one query of six": (lambda: retrieval_normalized_dcg(*TWO_ROWS).item(),
        one_query(*(each.flatten().numpy() for each in TWO_ROWS[::-1]), gain="linear", ties="average")),
    "s12 others are not known": (lambda: sklearn_ndcg([[1, 0, 0]], [[3, 2, 1]]), 1.0),
    "s13 below -2.8": (
        lambda: [catboost_ndcg(*NEGATIVE, [4], None), xgboost_ndcg(*NEGATIVE, [4], ..., exponential=False),
            torchmetrics_ndcg(*NEGATIVE, [4])], [one_query(*NEGATIVE, gain="linear")] * 3),
    # What scikit-learn reported before 1.4.
    "s13 396": (lambda: sklearn_dcg(*SKLEARN_17639) / sklearn_dcg(SKLEARN_17639[0], SKLEARN_17639[0]), 396.03296),
    "s17 rank 1 is the lowest score": (lambda: sklearn_ndcg([GRADES], [RANK]), one_query(GRADES, RANK, gain="linear")),
    # Its ideal has the repeated documents too.
    "s18 one document three times": (lambda: sklearn_ndcg([[1, 1, 1, 0]], [[4, 3, 2, 1]]), 1.0),
}  # fmt: skip


def queries_of_s20():
    X, y, qid, _ = ranking(8, 12)
    return pd.DataFrame(X, columns=list("abcd")).assign(qid=qid), y, qid


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("case", WRONG)
def test_the_library_gives_the_wrong_number(case):
    call, wrong = WRONG[case]
    assert call() == pytest.approx(wrong, abs=1e-5), FIXED


# -- cases that need a model or a search ------------------------------------------------------------------------------


def test_s1_early_stopping_keeps_the_first_round_on_a_file_sorted_best_first():
    """The first tree ties most documents, which score almost 1 if sorted best-first. No later round is better."""
    X, y, qid, sizes = ranking(1, 40, 5, 20)
    X = X.round(0)
    order = np.lexsort((-y, qid))
    best = {}
    for name, rows in (("unsorted", np.arange(qid.size)), ("best-first", order)):
        for flavor in (Flavor.preset("lightgbm"), Flavor.preset("lightgbm", ties="average")):
            train = data_of(X, y, sizes)
            params, stop = (
                {**LAMBDARANK, "learning_rate": 0.05, "metric": "None"},
                lgb.early_stopping(40, verbose=False),
            )
            valid = [data_of(X[rows], y[rows], sizes, reference=train)]
            booster = lgb.train(params, train, 40, valid_sets=valid, feval=NDCGEval(flavor, k=10), callbacks=[stop])
            best[name, flavor.ties] = booster.best_iteration
    assert best["best-first", "first"] == 1 < best["unsorted", "first"], FIXED
    assert best["best-first", "average"] == best["unsorted", "average"] > 5


def test_s2_xgbranker_scores_the_whole_fold_as_one_query():
    """XGBRanker.score without a qid column scores all rows as one query (xgboost#12334), and searches select by it."""
    X, y, qid, _ = ranking(0)
    cv, grid = GroupKFold(3), [2, 8]
    silent = Version(xgboost.__version__) < Version("3.4.1")  # XGBoost 3.4.1 raises
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = xgb().set_fit_request(qid=True)
        theirs = GridSearchCV(
            ranker, {"n_estimators": grid}, cv=GroupKFold(3).set_split_request(groups="qid"), error_score="raise"
        )
        with nullcontext() if silent else pytest.raises(ValueError, match=r"qid. is required"):
            theirs.fit(X, y, qid=qid)
    for at, n in enumerate(grid):
        for fold, (train, test) in enumerate(cv.split(X, y, qid)):
            s = xgb(n_estimators=n).fit(X[train], y[train], qid=qid[train]).predict(X[test])
            one, right = one_query(y[test], s, k=32), by_query(y[test], s, qid[test], k=32)
            if silent:
                wrong = theirs.cv_results_[f"split{fold}_test_score"][at]
                assert wrong == pytest.approx(one, abs=1e-6), FIXED
                assert abs(wrong - right) > 0.1, FIXED


def test_s3_plain_kfold_cuts_queries_and_flatters():
    """Under KFold, XGBRanker is scored on parts of queries, which are shorter and easier, without a warning."""
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


def xgbranker_reports(metric, sizes):
    """Return the value that XGBRanker logs for a callable metric on queries of these sizes."""
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X, y = np.zeros((qid.size, 1)), (np.arange(qid.size) % 2).astype(int)
    model = xgb(n_estimators=1, eval_metric=metric)
    model.fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid], verbose=False)
    return model.evals_result()["validation_0"][metric.__name__][-1]


def test_s5_xgbranker_weights_a_callable_metric_by_size_and_scores_single_documents_one():
    """A metric that is 0 for two documents and 1 for six is logged as .75; one that is always 0 as more than 0."""

    def one_for_six(y_true, y_score):
        return float(len(y_true) == 6)

    def never(y_true, y_score):
        return 0.0

    assert xgbranker_reports(one_for_six, [2, 6]) == 0.75, FIXED
    assert xgbranker_reports(never, [2, 1, 3, 1]) == pytest.approx(2 / 7, abs=1e-6), FIXED


def test_s9_lightgbm_interleaves_two_metrics_of_one_name():
    """A custom metric named ndcg@3 is logged with the built-in one: six values in three rounds."""
    X, y, _, sizes = ranking(2)
    log, train, custom = {}, data_of(X, y, sizes), lambda *_: ("ndcg@3", 0.25, True)
    params = {**LAMBDARANK, "metric": "ndcg", "eval_at": [3]}
    lgb.train(params, train, 3, valid_sets=[train], feval=custom, callbacks=[lgb.record_evaluation(log)])
    assert {name: len(values) for name, values in log["training"].items()} == {"ndcg@3": 6}, FIXED
    assert log["training"]["ndcg@3"][1::2] == [0.25] * 3, FIXED


def test_s10_lightgbm_stops_on_its_own_metric_while_the_custom_one_improves():
    """first_metric_only stops on the built-in ndcg@1, although the custom one rises in every round (LightGBM#6423)."""
    (X, y, _, sizes), (Xv, yv, _, gv) = ranking(3), ranking(4)
    rising = iter(range(1000))
    train = data_of(X, y, sizes)
    valid, mine = [data_of(Xv, yv, gv, reference=train)], lambda *_: ("mine", float(next(rising)), True)
    stop = lgb.early_stopping(5, first_metric_only=True, verbose=False)
    theirs = lgb.train({**LAMBDARANK, "eval_at": [1]}, train, 60, valid_sets=valid, feval=mine, callbacks=[stop])
    assert theirs.best_iteration < 30, FIXED


def fitted_with(metric):
    X, y, _, sizes = ranking(5)
    return lgbm(n_estimators=2, metric="None").fit(X, y, group=sizes, eval_metric=metric, **evaluated_on(X, y, sizes))


def test_s11_lightgbm_passes_no_groups_to_a_metric_with_star_arguments():
    """A metric of (*args, **kwargs) silently gets two arguments, without weights and groups."""
    calls = []

    def metric(*args, **kwargs):
        calls.append((len(args), kwargs))
        return "m", 0.0, True

    fitted_with(metric)
    assert calls == [(2, {})] * 2, FIXED

    with pytest.raises(ValueError, match=r"needs the sizes of the queries"):
        fitted_with(lambda *args, **kwargs: NDCGEval("sklearn")(*args, **kwargs))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_s15_half_precision_ties_scores_so_that_the_order_of_rows_decides(dtype):
    """Different float32 scores near 1 are tied in half precision. Then libraries that rank ties by position differ."""
    rng = np.random.default_rng(0)
    y = (np.arange(200) < 20).astype(float)
    exact = torch.as_tensor(1 - 0.004 * rng.random(200), dtype=torch.float32)
    half = exact.to(dtype)
    assert len(set(exact.tolist())) == 200 > 50 > len(set(half.tolist()))
    backwards = np.arange(200)[::-1].copy()
    s = half.double().numpy()
    for theirs in (
        lambda y, s: lightgbm_ndcg(y, s, [200]),
        lambda y, s: xgboost_ndcg(y, s, [200]),
        lambda y, s: sklearn_ndcg([y], [s], k=10, ignore_ties=True),
    ):
        assert abs(theirs(y, s) - theirs(y[backwards], s[backwards])) > 0.1, FIXED
    stable = [torch.sort(half[rows], descending=True, stable=True).indices for rows in (slice(None), backwards)]
    assert not torch.equal(stable[0], torch.as_tensor(backwards)[stable[1]]), FIXED


def test_s16_the_mean_of_batch_values_depends_on_the_batches():
    """The mean of torchmetrics' values of batches is not its value over all queries, but selects checkpoints."""
    X, y, qid, sizes = ranking(6)
    s = torch.as_tensor(X[:, 0], dtype=torch.float32)
    whole = torchmetrics_ndcg(y, s, sizes)
    theirs = []
    for cuts in ([1, 30], [15, 30]):
        edges = np.searchsorted(qid, [0, *cuts])
        parts = [slice(*edge) for edge in itertools.pairwise(edges)]
        sizes = [np.unique(qid[part], return_counts=True)[1] for part in parts]
        theirs.append(np.mean([torchmetrics_ndcg(y[p], s[p], n) for p, n in zip(parts, sizes, strict=True)]))
        metric = NDCG()
        for part in parts:
            metric.update(s[part], torch.as_tensor(y[part]), indexes=torch.as_tensor(qid[part]))
        expected = by_query(y, s.numpy(), qid, gain="linear", ties="average", empty=0.0)
        assert metric.compute().item() == pytest.approx(expected, abs=1e-12)
        assert whole == pytest.approx(expected, abs=1e-5)
    assert min(abs(theirs[0] - theirs[1]), abs(theirs[0] - whole)) > 0.01, FIXED


def test_s16_torchmetrics_merges_queries_of_two_batches_that_share_an_id():
    """If ids start from 0 in every batch or process, queries are silently merged."""
    first, second = (torch.tensor([2.0, 1.0]), torch.tensor([1, 0])), (torch.tensor([9.0, 8.0]), torch.tensor([0, 1]))
    theirs, ours, raises = RetrievalNormalizedDCG(), NDCG(query_ids="batch"), NDCG()
    for s, y in (first, second):
        for metric in (theirs, ours, raises):
            metric.update(s, y, indexes=torch.zeros(2, dtype=torch.long))
    right = (1 + 1 / np.log2(3)) / 2
    assert abs(theirs.compute().item() - right) > 0.1, FIXED

    assert ours.compute().item() == pytest.approx(right, abs=1e-12)
    assert ours.n_queries == 2
    with pytest.raises(ValueError, match="1 of the queries appeared more than once"):
        raises.compute()


def test_s19_lightgbm_weighs_a_query_by_the_mean_of_its_rows_not_by_their_sum():
    """The answer to LightGBM#2019 was the sum of row weights, but the metric uses the mean."""
    _, y, qid, sizes = ranking(7)
    y = np.where(np.arange(y.size) == np.searchsorted(qid, qid), 2, y)  # LightGBM ignores the weights of empty queries
    rng = np.random.default_rng(0)
    s, weight = rng.normal(size=y.size), rng.uniform(0.1, 3, y.size).astype(np.float32)
    values = np.array([one_query(y[qid == query], s[qid == query], k=10) for query in range(sizes.size)])
    total = np.array([weight[qid == query].sum() for query in range(sizes.size)])
    by_mean, by_sum = np.average(values, weights=total / sizes), np.average(values, weights=total)
    theirs = lightgbm_ndcg(y, s, sizes, weight=weight)
    assert theirs == pytest.approx(by_mean, abs=1e-6), FIXED
    assert abs(theirs - by_sum) > 0.005, FIXED

    assert NDCGEval("lightgbm", k=10)(y, s, weight, sizes)[0][1] == pytest.approx(by_mean, abs=1e-6)
    ours = ndcg_score(y, s, group=sizes, flavor="lightgbm", k=10, query_weight=total / sizes)
    assert ours == pytest.approx(by_mean, abs=1e-6)


def test_s20_a_qid_column_is_lost_or_scaled_by_an_earlier_step():
    """A scaler drops the ids, or makes fractions of them, which XGBoost truncates: twelve queries become two."""
    frame, y, qid = queries_of_s20()
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


def tools(estimator, grid, scoring, cv, X, y, importance="auto"):
    """Return calls of scikit-learn's tools that use a scorer, with the default error_score and without ids."""
    how = {"scoring": scoring, "cv": cv}
    return {
        "GridSearchCV": lambda: GridSearchCV(estimator, grid, **how).fit(X, y),
        "RandomizedSearchCV": lambda: RandomizedSearchCV(estimator, grid, n_iter=2, random_state=0, **how).fit(X, y),
        "cross_validate": lambda: cross_validate(estimator, X, y, **how),
        "learning_curve": lambda: learning_curve(estimator, X, y, **how),
        "SequentialFeatureSelector": lambda: SequentialFeatureSelector(estimator, **how).fit(X, y),
        "RFECV": lambda: RFECV(estimator, importance_getter=importance, **how).fit(X, y),
    }


@pytest.fixture(params=[False, True], ids=["routing off", "routing on"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


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
def test_without_qid_no_tool_returns_a_result(routing, learner, splits):
    """Every tool raises, with metadata routing or without, if the estimator or only the scorer needs the ids."""
    X, y, qid, _ = ranking(9, 12)
    cv = QueryKFold(3, qid=qid) if splits == "whole queries" else 3
    for name, run in tools(**LEARNERS[learner], cv=cv, X=X, y=y).items():
        with pytest.raises(ValueError, match=r"no query ids arrived.*enable_metadata_routing.*qid_column"):
            pytest.fail(f"{name} returned {run()}")


def test_every_listed_case_has_a_test():
    listed = re.findall(r"^(S\d+) ", __doc__, re.MULTILINE)
    assert listed == [f"S{number}" for number in range(1, 21)]
    functions = {match[1] for name in globals() if (match := re.match(r"test_(s\d+)_", name))}
    tested = functions | {case.split()[0] for case in WRONG}
    assert tested == {case.lower() for case in listed} - {"s14"}
