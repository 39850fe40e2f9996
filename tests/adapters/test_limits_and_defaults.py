"""The adapters at their limits: defaults, caps, exact numbers of rounds, and inputs of the smallest size."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("lightgbm")

import gc
import pickle
import warnings
from contextlib import nullcontext

import lightgbm as lgb
import numpy as np
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.lightgbm import NDCGEval, StopEarly, query_folds
from ndcg_ml.lightgbm.stopping import _set_and_metric
from ndcg_ml.sklearn import QueryKFold, QueryRanker, ndcg_scorer
from ndcg_ml.sklearn.call_stack import _split_in
from ndcg_ml.sklearn.columns import column_of
from ndcg_ml.sklearn.query_store import Carrier, KeptQueries, Scored, _of_this_process

CV = {"objective": "regression", "metric": "None", "verbosity": -1, "min_data_in_leaf": 1, "num_threads": 1}


def problem(n_queries=30, length=10):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(n_queries * length, 3)), np.repeat(np.arange(n_queries), length)
    return X, np.clip(np.round(X[:, 0] + rng.normal(size=len(X))), 0, 3).astype(int), qid


def test_five_folds_and_no_fewer_than_two():
    assert QueryKFold(qid=np.arange(10)).get_n_splits() == len(query_folds([1] * 10)) == 5
    for few in (1, 0):
        with pytest.raises(ValueError, match="n_splits must be an integer >= 2"):
            query_folds([1] * 10, few)
        with pytest.raises(ValueError, match="at least one train/test split"):
            QueryKFold(few)
    assert len(query_folds([2, 2], 2)) == len(list(QueryKFold(2).split(np.zeros((4, 1)), None, [0, 0, 1, 1]))) == 2
    with pytest.raises(ValueError, match="at most the number of queries with rows, 2; got 3"):
        query_folds([2, 0, 2], 3)


# -- caps ------------------------------------------------------------------------------------------------------------

FARTHEST = 2**31 - 1
"""The largest cut-off that XGBoost and CatBoost read."""


@pytest.mark.parametrize(("k", "cut"), [(FARTHEST - 1, FARTHEST - 1), (FARTHEST, FARTHEST), (FARTHEST + 1, FARTHEST)])
def test_the_largest_cutoff_that_xgboost_and_catboost_read(k, cut):
    of_xgboost = Flavor.preset("xgboost", k=k).xgboost_params()
    assert (of_xgboost["lambdarank_num_pair_per_sample"], of_xgboost["eval_metric"]) == (cut, f"ndcg@{cut}")
    of_catboost = Flavor.preset("catboost", k=k).catboost_params()
    assert f";top={cut};" in of_catboost["loss_function"]
    assert f":top={cut};" in of_catboost["eval_metric"]


def test_the_deepest_truncation_of_lightgbm():
    for k, level, at in [(9996, 9999, 9996), (9997, 10000, 9997), (9998, 10000, 9998), (10001, 10000, 10000)]:
        taken = Flavor.preset("lightgbm", k=k).lightgbm_params()
        assert (taken["lambdarank_truncation_level"], taken["eval_at"]) == (level, [at])


def test_the_longest_table_of_gains_of_lightgbm():
    linear = Flavor.preset("lightgbm", k=5, gain="linear")
    assert linear.replace(max_grade=9999).lightgbm_params()["label_gain"] == [float(grade) for grade in range(10_000)]
    with pytest.raises(ValueError, match=r"max_grade must be from 0 to 9999 for LightGBM.*; got 10000\.0"):
        linear.replace(max_grade=10_000).lightgbm_params()
    assert linear.replace(gain=(0, 1, 3), max_grade=5).lightgbm_params()["label_gain"] == [0, 1, 3]


def test_the_largest_gain_of_lightgbm():
    table = Flavor.preset("lightgbm", k=5)
    largest, beyond = 1e300, float(np.nextafter(1e300, np.inf))
    for gain in ((0, largest), (-largest, 0), (0, largest, largest)):
        assert table.replace(gain=gain).lightgbm_params()["label_gain"] == list(gain)
    for gain, top in (((0, beyond), 1), ((-beyond, 0), 1), ((0, 1, beyond), 2)):
        with pytest.raises(ValueError, match=rf"up to grade {top}, whose gain is beyond 1e\+300"):
            table.replace(gain=gain).lightgbm_params()


def test_the_first_grade_whose_gain_falls_is_named():
    with pytest.raises(ValueError, match=r"here grade 1 gains 0\.5, less than 1\.0 of grade 0"):
        Flavor.preset("lightgbm", k=5, gain=(1, 0.5, 0)).lightgbm_params()


@pytest.mark.parametrize("as_frame", [False, True])
def test_a_message_names_the_first_eight_columns(as_frame):
    pd = pytest.importorskip("pandas")
    names = list("abcdefghi")
    for n, listed in ((8, r"\['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'\]\. "), (9, r"'g', 'h'\] and more\. ")):
        X = pd.DataFrame(np.zeros((4, n)), columns=names[:n])
        X = X if as_frame else pytest.importorskip("pyarrow").table({name: X[name] for name in X})
        with pytest.raises(ValueError, match=rf"its column qid_column='qid'; got columns .*{listed}"):
            ndcg_scorer("lightgbm", qid_column="qid")(Ridge(), X, np.zeros(4))


def test_what_no_split_of_scikit_learn_holds_is_no_split():
    ids = np.array([7, 7, 8, 8])
    taken = {"groups": ids}
    for test, scored, found in (
        ([2, 3], ids[2:], [2, 3]),
        ([-1, 0], ids[[-1, 0]], [3, 0]),  # some numbers count from the end
        (np.array([False, True, True, False]), ids[1:3], [1, 2]),
        ([0, 3], ids[[0, 3]], [0, 3]),
        (None, ids[2:], None),
        ((2, 3), ids[2:], None),
        ([2, 3], ids[:2], None),  # the training rows are scored
        ([2, 4], ids[2:], None),
        ([2, -5], ids[2:], None),
        (np.array([], dtype=np.int64), ids[:0], []),
    ):
        split = _split_in({"test": test, "score_params": taken}, scored, None)
        assert (None if split is None else split.test.tolist()) == found
        assert split is None or split.all_ids.tolist() == ids.tolist()
    split = _split_in({"test": [2, 3], "X": np.column_stack([np.zeros(4), ids])}, ids[2:], 1)
    assert split is not None
    assert split.test.tolist() == [2, 3]
    table = {"test": [2, 3], "X": np.column_stack([np.zeros(4), ids])}
    assert _split_in(table, ids[2:], None) is None
    assert _split_in(table, ids[2:], "qid") is None
    assert _split_in({"test": [2, 3], "score_params": {"groups": ids[:, None]}}, ids[2:], None) is None
    assert _split_in({"test": [2, 3], "score_params": {"groups": None, "qid": ids}}, ids[2:], None) is not None


@pytest.mark.parametrize(("dtype", "exact"), [(np.float64, 2**53), (np.float32, 2**24), (np.float16, 2**11)])
def test_ids_in_floats_are_below_what_the_dtype_tells_apart(dtype, exact):
    for sign in (1, -1):
        last = np.array([[0], [sign * (exact - 1)]], dtype=dtype)
        assert column_of(last, 0).tolist() == [0, sign * (exact - 1)]
        with pytest.raises(ValueError, match=rf"got {exact} in {dtype.__name__}, which is exact only below {exact}\. "):
            column_of(np.array([[0], [sign * exact]], dtype=dtype), 0)


@pytest.mark.parametrize(("rounds", "refused"), [(None, False), (-1, False), (0, False), (1, True), (2, True)])
def test_a_rule_of_lightgbms_own_is_one_of_at_least_one_round(rounds, refused):
    if rounds in (-1, 0) and tuple(map(int, lgb.__version__.split(".")[:2])) < (4, 4):
        pytest.skip(f"LightGBM {lgb.__version__} refuses a rule of no rounds itself")
    X, y, _ = problem(2)
    rows = lgb.Dataset(X, y, group=[10, 10], params={"verbosity": -1})
    params = {**CV, **StopEarly("lightgbm").params, **({} if rounds is None else {"early_stopping_round": rounds})}
    held_out = lgb.Dataset(X, y, group=[10, 10], reference=rows)
    with (
        pytest.raises(ValueError, match=f"early_stopping_round must not be among the parameters.*got {rounds}")
        if refused
        else nullcontext()
    ):
        lgb.train(params, rows, 3, valid_sets=[held_out], **StopEarly("lightgbm").train())


def test_metrics_of_lightgbm_before_4_7_have_set_and_metric_in_one_name():
    assert _set_and_metric(("cv_agg", "valid ndcg_lightgbm@10", 0.5, True)) == ("valid", "ndcg_lightgbm@10")
    assert _set_and_metric(("valid_0", "ndcg of mine", 0.5, True)) == ("valid_0", "ndcg of mine")


def test_a_subset_of_rows_without_queries_has_none():
    X, y, _ = problem(1)
    data = lgb.Dataset(X, y, params={"verbosity": -1, "min_data_in_leaf": 1}, free_raw_data=False).construct()
    subset = data.subset([0, 1, 2]).construct()
    with pytest.raises(ValueError, match="NDCGEval needs the sizes of the queries, and this data set has none"):
        NDCGEval("lightgbm")(np.zeros(3), subset)


def test_a_score_carries_its_queries_to_those_that_are_there():
    kept = KeptQueries("a token of this test")
    scored = Scored(np.array([1, 2]), np.array([[0.5], [1.0]]), (0.75,))
    packed = pickle.dumps(Carrier(0.75, kept.token, 2, 1, scored))
    value = pickle.loads(packed)
    assert (type(value), value) == (float, 0.75)
    assert len(kept) == 1
    assert kept.knows(2, 1)
    assert not kept.knows(1, 2)
    found = kept.get(2, 1, 0, 0.75)
    assert found is not None
    assert (found.ids.tolist(), found.ndcg.tolist(), found.values) == ([1, 2], [[0.5], [1.0]], (0.75,))
    assert kept.get(2, 1, 0, 0.5) is None
    assert pickle.loads(pickle.dumps(kept)) is kept
    del kept
    gc.collect()
    assert pickle.loads(packed) == 0.75
    anew = _of_this_process("a token of this test")
    assert len(anew) == 0


# -- how many queries are held out -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_queries", "fraction", "held_out"),
    [(2, 0.01, 1), (2, 0.99, 1), (4, 0.9, 3), (4, 0.999, 3), (10, 0.1, 1), (10, 0.25, 2), (10, 0.26, 3), (10, 0.94, 9)],
)
def test_at_least_one_query_is_held_out_and_at_least_one_is_not(n_queries, fraction, held_out):
    X, y, qid = problem(n_queries)
    ranker = LGBMRanker(n_estimators=3, min_child_samples=2, verbosity=-1)
    model = QueryRanker(ranker, early_stopping_rounds=2, validation_fraction=fraction, random_state=0).fit(X, y, qid)
    assert model.validation_queries_.size == len(set(model.validation_queries_.tolist())) == held_out
    assert set(model.validation_queries_.tolist()) <= set(range(n_queries))


@pytest.mark.parametrize("fraction", [0, 1, 0.0, 1.0, -0.1, 1.1, True, "0.5", None, float("nan")])
def test_what_is_no_fraction(fraction):
    X, y, qid = problem(4)
    model = QueryRanker(LGBMRanker(), early_stopping_rounds=2, validation_fraction=fraction)
    with pytest.raises(ValueError, match="validation_fraction must be a number between 0 and 1"):
        model.fit(X, y, qid)


def test_one_query_cannot_be_split():
    X, y, qid = problem(1)
    with pytest.raises(ValueError, match="needs at least two queries, one to hold out; got 1"):
        QueryRanker(LGBMRanker(), early_stopping_rounds=2).fit(X, y, qid)


@pytest.mark.parametrize(
    "steps", [(), (StandardScaler(),), (StandardScaler(), MinMaxScaler()), (StandardScaler(),) * 3]
)
def test_pipelines_of_any_length_are_refused(steps):
    X, y, qid = problem(6)
    with pytest.raises(ValueError, match="ranker must be the ranker itself"):
        QueryRanker(make_pipeline(*steps, LGBMRanker(n_estimators=2, verbosity=-1))).fit(X, y, qid)
    QueryRanker(make_pipeline(*steps, Ridge())).fit(X, y, qid)  # Ridge takes no queries


# -- early stopping: exactly so many rounds after the best one --------------------------------------------------------


def history_lightgbm(X, y, qid, rounds, weight=None):
    model = QueryRanker(
        LGBMRanker(n_estimators=300, max_depth=2, verbosity=-1, n_jobs=1),
        flavor="sklearn@5", early_stopping_rounds=rounds, random_state=0,
    ).fit(X, y, qid, weight)  # fmt: skip
    return model, model.ranker_.evals_result_["valid_0"]["ndcg_sklearn@5"]


def history_xgboost(X, y, qid, rounds, weight=None):
    xgb = pytest.importorskip("xgboost")
    model = QueryRanker(
        xgb.XGBRanker(n_estimators=300, max_depth=2, n_jobs=1),
        flavor="sklearn@5", early_stopping_rounds=rounds, random_state=0,
    ).fit(X, y, qid, weight)  # fmt: skip
    return model, model.ranker_.evals_result()["validation"]["ndcg_sklearn@5"]


def history_catboost(X, y, qid, rounds, weight=None):
    catboost = pytest.importorskip("catboost")
    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = QueryRanker(
        catboost.CatBoostRanker(iterations=300, depth=2, **quiet),
        flavor="sklearn@5", early_stopping_rounds=rounds, random_state=0,
    ).fit(X, y, qid, weight)  # fmt: skip
    return model, model.ranker_.get_evals_result()["validation"]["ndcg_sklearn@5"]


@pytest.mark.parametrize("train", [history_lightgbm, history_xgboost, history_catboost])
@pytest.mark.parametrize("rounds", [1, 3, 7])
def test_training_ends_exactly_so_many_rounds_after_the_best(train, rounds):
    X, y, qid = problem()
    model, values = train(X, y, qid, rounds)
    assert len(values) == model.best_iteration_ + rounds < 300
    assert int(np.argmax(values)) == model.best_iteration_ - 1  # argmax finds the first of equal maxima
    assert model.best_score_ == pytest.approx(max(values), abs=1e-6)
    held_out = np.isin(qid, model.validation_queries_)
    again = ndcg_score(y[held_out], model.predict(X[held_out]), qid=qid[held_out], flavor="sklearn@5")
    assert model.best_score_ == pytest.approx(again, abs=1e-12)


@pytest.mark.parametrize("train", [history_lightgbm, history_xgboost, history_catboost])
def test_weights_of_held_out_queries_count_in_every_round(train):
    X, y, qid = problem()
    weight = np.random.default_rng(1).choice([0.0, 1.0, 20.0], qid.max() + 1)[qid]
    model, values = train(X, y, qid, 4, weight)
    held_out = np.isin(qid, model.validation_queries_)
    of_query = weight[held_out][:: len(qid) // (qid.max() + 1)]
    assert len(set(of_query.tolist())) > 1
    given = {"qid": qid[held_out], "flavor": "sklearn@5"}
    scores = model.predict(X[held_out])
    weighted = ndcg_score(y[held_out], scores, query_weight=of_query, **given)
    assert abs(weighted - ndcg_score(y[held_out], scores, **given)) > 1e-3
    assert model.best_score_ == pytest.approx(weighted, abs=1e-12)
    assert max(values) == pytest.approx(weighted, abs=1e-6)
    assert len(values) == model.best_iteration_ + 4


# -- queries cut by lgb.cv -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[2] * 5, [1, 8, 1], [9, 1], [3, 3, 4]])
@pytest.mark.parametrize("cut_at", range(1, 10))
def test_a_query_cut_anywhere_is_refused_by_lgb_cv(sizes, cut_at):
    """Also so that each side has one row of it, and where whole queries surround it."""
    X, y, _ = problem(1)
    data = lgb.Dataset(X, y, group=sizes, free_raw_data=False)
    folds = [(np.arange(cut_at), np.arange(cut_at, 10))]
    evaluated = lambda: lgb.cv(CV, data, 1, folds=folds, feval=NDCGEval("lightgbm@5"), eval_train_metric=True)  # noqa: E731
    if cut_at in np.cumsum(sizes):
        evaluated()
        return
    with pytest.raises(ValueError, match=f"needs whole queries, and the folds cut 1 of the {len(sizes)} queries"):
        evaluated()
    with pytest.raises(ValueError, match="needs whole queries"):
        lgb.cv(CV, lgb.Dataset(X, y, group=sizes), 1, folds=folds, **StopEarly("lightgbm@5").train())


# -- others ----------------------------------------------------------------------------------------------------------


def test_known_queries_give_no_warning():
    X, y, qid = problem(6)
    model = QueryRanker(LGBMRanker(n_estimators=2, min_child_samples=2, verbosity=-1)).fit(X, y, qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # the class of ours; old LightGBMs and scikit-learns have others
        ndcg_scorer("lightgbm@5", qid=qid)(model, X[::-1] + 1, np.roll(y, 3), qid=qid)


@pytest.mark.parametrize("as_frame", [False, True])
def test_a_column_counted_from_the_end(as_frame):
    pd = pytest.importorskip("pandas")
    X, y, qid = problem(6)
    for at in range(4):
        table = np.insert(X, at, qid, axis=1)
        table = pd.DataFrame(table, columns=list("abcd")) if as_frame else table
        values = {
            ndcg_scorer("lightgbm@5", qid_column=column)(Ridge().fit(table, y), table, y) for column in (at, at - 4)
        }
        assert len(values) == 1
        for beyond in (4, -5):
            with pytest.raises(ValueError, match="must be a column of X"):
                ndcg_scorer("lightgbm@5", qid_column=beyond)(Ridge().fit(table, y), table, y)


def test_one_grade_in_lightgbms_parameters():
    assert Flavor.preset("lightgbm", k=5).replace(max_grade=0).lightgbm_params()["label_gain"] == [0.0]
    assert Flavor.preset("lightgbm", k=5).replace(max_grade=1).lightgbm_params()["label_gain"] == [0.0, 1.0]


@pytest.mark.parametrize("weights", [[0.0, 0.0], [0.0, 1.0]])
def test_a_worker_whose_queries_weigh_nothing_or_are_empty_adds_finite_sums(weights):
    pytest.importorskip("xgboost")
    from ndcg_ml.xgboost import NDCGEval as OfXGBoost

    class Held:
        def num_row(self):
            return 4

        def get_label(self):
            return np.array([1, 0, 0, 0], np.float32)

        def get_weight(self):
            return np.array(weights, np.float32)

        def get_uint_info(self, name):
            return np.array([0, 2, 4], np.uint32)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sums, weight = OfXGBoost("sklearn@5[empty=skip]")._share(np.array([0.1, 0.2, 0.3, 0.4]), Held())
    assert weight == sum(weights)
    assert np.isfinite(sums.numerator).all()
    assert np.isfinite(sums.denominator).all()
    assert (sums.numerator == 0).all()  # the query that counts is empty, or none counts


def test_lists_of_three_dimensions_with_ids_and_pieces():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchmetrics")
    from ndcg_ml.torch import NDCG

    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 3, (2, 3, 4)), rng.normal(size=(2, 3, 4))
    expected = ndcg_score(y.reshape(6, 4), s.reshape(6, 4), flavor="sklearn@5")
    for split in (False, True):
        metric = NDCG("sklearn@5", split_queries=split)
        metric.update(torch.tensor(s), torch.tensor(y), indexes=torch.arange(6).reshape(2, 3))
        assert metric.compute().item() == pytest.approx(expected, abs=1e-12)


def test_a_discount_of_zero_at_the_top_leaves_a_loss_of_zero():
    torch = pytest.importorskip("torch")
    from ndcg_ml.torch import SoftmaxLoss

    late = Flavor(discount=lambda rank: np.where(np.asarray(rank) < 5, 0.0, 1.0))
    assert float(SoftmaxLoss(late)(torch.tensor([[0.1, 0.5, 0.3]]), torch.tensor([[1.0, 0, 2]]))) == 0.0
