"""LightGBM's evaluation function in both interfaces, against its own values, and early stopping on one metric."""

import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("sklearn")

import copy
import inspect
import pickle
from itertools import groupby

import lightgbm as lgb
import numpy as np
from core.test_threads import data, together
from sklearn.model_selection import GroupKFold

from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.lightgbm import NDCGEval, StopEarly
from ndcg_ml.xgboost import NDCGEval as XGBoosts

__all__ = ["data"]  # data is a fixture
PARAMS = {"objective": "lambdarank", "verbosity": -1, "num_leaves": 4, "min_data_in_leaf": 10, "num_threads": 1}


def make(seed, n_queries=40, ties=False):
    rng = np.random.default_rng(seed)
    group = rng.integers(5, 25, n_queries)
    X = rng.normal(size=(int(group.sum()), 5)).round(0 if ties else 6)
    y = np.clip(np.round(0.5 * X.sum(axis=1) + 1.5 * rng.normal(size=len(X))), 0, 4)
    return X, y, group


def dataset(X, y, group, reference=None, weight=None):
    return lgb.Dataset(X, y, group=group, weight=weight, reference=reference, params={"verbosity": -1})


# -- the evaluation function -----------------------------------------------------------------------------------------


def logged(feval, data, valid, rounds, **params):
    """Return the recorded metrics of the validation set, which may be the training set."""
    log = {}
    options = {"valid_sets": [valid], "valid_names": ["valid"], "callbacks": [lgb.record_evaluation(log)]}
    lgb.train({**PARAMS, **params}, data, rounds, feval=feval, **options)
    return log["valid"]


@pytest.mark.parametrize("k", [1, 10])
def test_the_lightgbm_flavor_is_lightgbms_own_number_every_round(k):
    train = dataset(*make(0, ties=True))
    valid = dataset(*make(1, ties=True), reference=train)
    log = logged(NDCGEval("lightgbm", k=k), train, valid, 15, metric="ndcg", eval_at=[k])
    ours, theirs = log[f"ndcg_lightgbm@{k}"], log[f"ndcg@{k}"]
    assert len(ours) == len(theirs) == 15
    assert np.abs(np.array(ours) - theirs).max() < 1e-12
    assert len(set(ours)) > 1


def test_one_object_in_both_interfaces_gives_the_same_values():
    (X, y, group), (Xv, yv, gv) = make(2), make(3)
    ndcg = NDCGEval(Flavor.preset("sklearn", k=10), k=(10, 3))
    train = dataset(X, y, group)
    log = logged(ndcg, train, dataset(Xv, yv, gv, reference=train), 10, metric="None")
    model = lgb.LGBMRanker(n_estimators=10, verbosity=-1, num_leaves=4, min_child_samples=10, n_jobs=1, metric="None")
    newer = "eval_X" in inspect.signature(model.fit).parameters  # LightGBM 4.7 deprecates eval_set
    valid = {"eval_X": (Xv,), "eval_y": (yv,)} if newer else {"eval_set": [(Xv, yv)]}
    model.fit(X, y, group=group, eval_group=[gv], eval_metric=ndcg, **valid)
    assert list(log) == ["ndcg_sklearn@10", "ndcg_sklearn@3"]
    assert log == model.evals_result_["valid_0"]
    expected = ndcg_score(yv, model.predict(Xv), group=gv, flavor="sklearn", k=(10, 3))
    assert [values[-1] for values in log.values()] == pytest.approx(list(expected.values()), abs=1e-12)


def call(ndcg, y, s, group, weight=None):
    return ndcg(np.asarray(y, float), np.asarray(s, float), weight, np.asarray(group))[0][1]


def test_changed_labels_groups_and_weights_are_not_read_from_the_cache():
    ndcg = NDCGEval("sklearn", k=None)
    y, s, group = np.array([2.0, 0, 1, 0]), np.array([0.1, 0.2, 0.3, 0.4]), np.array([2, 2])
    first = call(ndcg, y, s, group)
    y[:] = y[::-1].copy()  # the same array object with other labels
    assert call(ndcg, y, s, group) == ndcg_score(y, s, group=group) != first
    assert call(ndcg, y, s, [4]) == ndcg_score(y, s, group=[4])
    weighted = call(ndcg, y, s, group, np.array([1.0, 1, 3, 3]))
    assert weighted == ndcg_score(y, s, group=group, query_weight=[1, 3])
    assert len(ndcg._cache) == 4
    for again in (pickle.loads(pickle.dumps(ndcg)), copy.deepcopy(ndcg)):
        assert len(again._cache) == 0
        assert (again.names, call(again, y, s, group)) == (ndcg.names, call(ndcg, y, s, group))


def test_many_data_sets_share_one_evaluation_function_in_threads(data):
    labels, sizes, scores = data
    function = NDCGEval("lightgbm@5")
    # There are more data sets than the cache holds, so that threads replace each other's entries.
    sets = [((labels + shift) % 5, each) for shift in range(5) for each in scores[:9]]
    calls = [(y, each, None, sizes) for y, each in sets]
    expected = [[(function.names[0], ndcg_score(y, s, group=sizes, flavor="lightgbm@5"), True)] for y, s in sets]
    assert together(function, calls) == expected * 3


def test_repr():
    assert repr(NDCGEval("sklearn@5", k=(10, None))) == "NDCGEval('sklearn', k=(10, None))"
    assert repr(StopEarly("lightgbm", k=5, watch="v")) == "StopEarly('lightgbm', k=5, rounds=50, watch='v')"


# -- early stopping --------------------------------------------------------------------------------------------------


def train(stop, data, *valid, rounds=150, params=(), names=None, **also):
    """Train on `data` with these validation sets; return the booster and the recorded metrics."""
    log = {}
    first = dataset(*data)
    sets = [first if v is data else dataset(*v, reference=first) for v in valid]
    arguments = {"valid_sets": sets, "valid_names": names, **stop.train(), **also}
    arguments["callbacks"].append(lgb.record_evaluation(log))
    return lgb.train({**PARAMS, **stop.params, **dict(params)}, first, rounds, **arguments), log


def fitted(stop, data, *valid):
    X, y, group = data
    model = lgb.LGBMRanker(n_estimators=150, num_leaves=4, min_child_samples=10, verbosity=-1, n_jobs=1, **stop.params)
    return model.fit(X, y, group=group, **stop.fit(*valid))


def best(history):
    return int(np.argmax(history)) + 1


def test_both_interfaces_stop_at_the_best_round_of_the_first_cutoff(capsys):
    data, valid = make(0), make(1)
    stop = StopEarly("lightgbm", k=(10, 3), rounds=12)
    booster, log = train(stop, data, valid)
    model = fitted(stop, data, valid)
    monitored = log["valid_0"]["ndcg_lightgbm@10"]
    assert 1 < booster.best_iteration == model.best_iteration_ == best(monitored)
    assert len(monitored) == booster.best_iteration + 12 < 150
    assert monitored == model.evals_result_["valid_0"]["ndcg_lightgbm@10"]
    assert list(log["valid_0"]) == ["ndcg_lightgbm@10", "ndcg_lightgbm@3"]
    expected = ndcg_score(valid[1], model.predict(valid[0]), group=valid[2], flavor="lightgbm", k=10)
    assert model.best_score_["valid_0"]["ndcg_lightgbm@10"] == pytest.approx(expected, abs=1e-12)
    assert capsys.readouterr().out == ""


def test_training_stops_on_the_watched_validation_set():
    data, sets = make(4), (make(5), make(6))
    rounds = {}
    for watch in ("valid_0", "valid_1"):
        stop = StopEarly("sklearn", k=(5, 10), rounds=10, watch=watch)
        booster, log = train(stop, data, *sets)
        assert booster.best_iteration == best(log[watch]["ndcg_sklearn@5"]) == len(log[watch]["ndcg_sklearn@5"]) - 10
        assert fitted(stop, data, *sets).best_iteration_ == booster.best_iteration
        rounds[watch] = booster.best_iteration
        for name, metrics in log.items():  # best_score has all sets and cut-offs
            for metric, history in metrics.items():
                assert booster.best_score[name][metric] == history[booster.best_iteration - 1]
    assert rounds["valid_0"] != rounds["valid_1"]
    everything, log = train(StopEarly("sklearn", k=5, watch="mine", rounds=10), data, *sets, names=["mine", "other"])
    assert everything.best_iteration == rounds["valid_0"]


def test_training_does_not_stop_on_the_training_set():
    data, valid = make(7), make(8)
    stop = StopEarly("sklearn", k=5, rounds=10)
    alone, _ = train(stop, data, valid)
    with_others, log = train(stop, data, data, valid, names=["train", "valid"])
    assert list(log) == ["train", "valid"]
    assert with_others.best_iteration == alone.best_iteration < 140


def test_training_does_not_stop_on_built_in_metrics():
    stop = StopEarly("sklearn", k=5, rounds=10)
    without, _ = train(stop, make(12), make(13))
    with_others, log = train(stop, make(12), make(13), params={"metric": "ndcg", "eval_at": [1, 2]})
    assert list(log["valid_0"]) == ["ndcg@1", "ndcg@2", "ndcg_sklearn@5"]
    assert with_others.best_iteration == without.best_iteration == best(log["valid_0"]["ndcg_sklearn@5"])
    assert with_others.best_iteration not in (best(log["valid_0"]["ndcg@1"]), best(log["valid_0"]["ndcg@2"]))


def test_continued_training():
    data, valid = make(13), make(14)
    start = lgb.train({**PARAMS, "metric": "None"}, dataset(*data), 5)
    booster, log = train(StopEarly("sklearn", k=(5, 10), rounds=10), data, valid, init_model=start)
    history = log["valid_0"]["ndcg_sklearn@5"]
    assert booster.best_iteration == 5 + best(history)
    assert booster.best_score["valid_0"]["ndcg_sklearn@5"] == max(history)
    other = log["valid_0"]["ndcg_sklearn@10"][best(history) - 1]
    assert booster.best_score["valid_0"]["ndcg_sklearn@10"] == other


def test_row_weights_of_the_validation_set():
    Xv, yv, gv = make(16)
    query_weight = np.random.default_rng(0).integers(1, 9, len(gv)).astype(float)
    model = fitted(StopEarly("sklearn", k=5, rounds=10), make(15), (Xv, yv, gv, np.repeat(query_weight, gv)))
    expected = ndcg_score(yv, model.predict(Xv), group=gv, k=5, query_weight=query_weight)
    assert model.best_score_["valid_0"]["ndcg_sklearn@5"] == pytest.approx(expected, abs=1e-12)
    assert expected != ndcg_score(yv, model.predict(Xv), group=gv, k=5)


def test_cross_validation_stops_on_the_mean_of_the_folds():
    X, y, group = make(19, 60)
    histories = []
    for watch, train_too in [(None, False), ("valid", False), (None, True), ("valid", True)]:
        stop = StopEarly("sklearn", k=(5, 10), rounds=10, watch=watch)
        options = {"folds": GroupKFold(3), "eval_train_metric": train_too, "return_cvbooster": True, **stop.train()}
        result = lgb.cv({**PARAMS, **stop.params}, dataset(X, y, group), 150, **options)
        histories.append(result["valid ndcg_sklearn@5-mean"])
        assert 1 < len(histories[-1]) == best(histories[-1]) == result["cvbooster"].best_iteration < 140
        assert histories[-1] == histories[0]
    query, scores = np.repeat(np.arange(len(group)), group), []
    for (_, test), booster in zip(GroupKFold(3).split(X, y, query), result["cvbooster"].boosters, strict=True):
        scores.append(ndcg_score(y[test], booster.predict(X[test]), qid=query[test], k=5))
    assert histories[0][-1] == pytest.approx(np.mean(scores), abs=1e-12)


# -- folds that cut queries ------------------------------------------------------------------------------------------


def test_a_cut_query_is_detected_after_an_equal_whole_one():
    # The rows of query 1 that are left have the labels of query 0, so the two subsets are equal.
    y = np.array([1.0, 0, 1, 0, 2, 0, 0, 0])
    full = dataset(np.arange(16.0).reshape(8, 2), y, [2, 4, 2]).construct()
    ndcg = NDCGEval("sklearn", k=None)
    whole, cut = full.subset([0, 1]).construct(), full.subset([2, 3]).construct()
    assert whole.get_label().tolist() == cut.get_label().tolist()
    assert whole.get_group().tolist() == cut.get_group().tolist() == [2]
    scores = np.array([0.1, 0.2])
    for _ in range(2):
        assert ndcg(scores, whole)[0][1] == ndcg_score([1, 0], scores, group=[2])
        with pytest.raises(ValueError, match="cut 1 of the 3 queries"):
            ndcg(scores, cut)
    assert ndcg(np.arange(8.0), full)[0][1] == ndcg_score(y, np.arange(8.0), group=[2, 4, 2])


def test_a_subset_of_a_subset_is_checked():
    full = dataset(np.arange(16.0).reshape(8, 2), np.array([1.0, 0, 1, 0, 2, 0, 0, 1]), [2, 4, 2]).construct()
    ndcg = NDCGEval("sklearn", k=None)
    some = full.subset([0, 1, 2, 6, 7]).construct()
    with pytest.raises(ValueError, match="cut 1 of the 3 queries"):
        ndcg(np.zeros(2), some.subset([3, 4]).construct())
    some = full.subset([0, 1, 6, 7]).construct()
    assert ndcg(np.array([0.0, 1]), some.subset([2, 3]).construct())[0][1] == 1


# -- refusals --------------------------------------------------------------------------------------------------------

ONE, TWO, STOP = make(2, 10), make(3, 10), StopEarly("sklearn", k=5, rounds=10)
Y, S = np.array([1, 0]), np.array([0.1, 0.2])
REFUSED = {
    "no group": (lambda: NDCGEval("sklearn")(Y, S, None, None), ValueError, "needs the sizes of the queries.*group=",
        lambda: (logged(NDCGEval("sklearn"), dataset(*ONE), dataset(*TWO), 2), fitted(STOP, ONE, TWO))),
    "scores of classes": (lambda: NDCGEval("sklearn")(Y, np.stack([S, S]), None, [2]), ValueError,
        "one score per row.*ranking", None),
    "fewer weights": (lambda: NDCGEval("sklearn")(Y, S, np.ones(1), [2]), ValueError,
        "weight must have one entry per row, 2; got 1", None),
    "XGBoost's": (lambda: logged(XGBoosts("sklearn"), dataset(*ONE), dataset(*TWO), 2), TypeError,
        r"lightgbm needs ndcg_ml\.lightgbm\.NDCGEval; got ndcg_ml\.xgboost",
        lambda: logged(NDCGEval("sklearn"), dataset(*ONE), dataset(*TWO), 2)),
    "data of XGBoost": (lambda: NDCGEval("sklearn")(S, type("DMatrix", (), {"__module__": "xgboost.core"})()),
        TypeError, r"xgboost needs ndcg_ml\.xgboost\.NDCGEval; got ndcg_ml\.lightgbm", None),
    "ids as sizes": (lambda: STOP.fit((*TWO[:2], np.repeat(range(len(TWO[2])), TWO[2]))), ValueError,
        r"group of validation set 0 must be the sizes.*If these are ids, pass \[len\(\[\*rows\]\) for _, rows in",
        lambda: STOP.fit((*TWO[:2], [len([*rows]) for _, rows in groupby(np.repeat(range(len(TWO[2])), TWO[2]))]))),
    "rounds": (lambda: StopEarly("sklearn", rounds=0), ValueError, "rounds must be an integer >= 1; got 0", None),
    "rounds by position": (lambda: StopEarly("sklearn", 5, 7), TypeError, "positional",
        lambda: StopEarly("sklearn", 5, rounds=7)),
    "no validation set": (lambda: STOP.fit(), ValueError, "needs a validation set; got none", lambda: STOP.fit(TWO)),
    **{f"a set that {got}": (lambda entry=entry: STOP.fit(entry), TypeError,
        rf"must be a tuple \(X, y, group\).*number 0 {got}\..*fit\(first, second\)",
        lambda: (STOP.fit(ONE), STOP.fit(ONE, TWO))) for entry,
        got in (([1, 2, 3], "is of type list"), ((1, 2), "has 2 parts"))},
    **{f"itself as {name}": (lambda name=name,
        each=each: lgb.train({**PARAMS, **STOP.params}, dataset(*ONE), 2, [dataset(*TWO)], **{name: each}), TypeError,
        r"not a feval or a callback itself.*Write lgb\.train\(\.\.\., \*\*stop\.train\(\)\)",
        lambda: train(STOP, ONE, TWO)) for name, each in (("feval", STOP), ("callbacks", [STOP]))},
    "itself as eval_metric": (lambda: lgb.LGBMRanker(verbosity=-1).fit(*ONE[:2], group=ONE[2],
        **{**STOP.fit(TWO), "eval_metric": STOP}), TypeError, r"\*\*stop\.fit\(\(X_valid, y_valid, group_valid\)\)",
        None),
    "no watch": (lambda: train(STOP, ONE, TWO, TWO), ValueError, r"one of \['valid_0', 'valid_1'\].*got None",
        lambda: [train(StopEarly("sklearn", watch=watch), ONE, TWO, TWO) for watch in ("valid_0", "valid_1")]),
    "another watch": (lambda: train(StopEarly("sklearn", watch="valid_2"), ONE, TWO, TWO), ValueError,
        r"'valid_1'\].*got 'valid_2'",
        lambda: [train(StopEarly("sklearn", watch=watch), ONE, TWO, TWO) for watch in ("valid_0", "valid_1")]),
    "the training set alone": (lambda: train(STOP, ONE, ONE), ValueError,
        r"watch must name a validation set.*one of \[\].*got None\. Pass", lambda: train(STOP, ONE, ONE, TWO)),
    "no sets": (lambda: train(STOP, ONE), ValueError, r"watch must name a validation set.*one of \[\].*got None\. Pass",
        lambda: (train(STOP, ONE, TWO), fitted(STOP, ONE, TWO))),
    "the training set": (lambda: train(StopEarly("sklearn", watch="train"), ONE, ONE, TWO, names=["train", "valid"]),
        ValueError, r"one of \['valid'\].*got 'train'",
        lambda: train(StopEarly("sklearn", watch="valid"), ONE, ONE, TWO, names=["train", "valid"])),
    "another feval": (lambda: train(STOP, ONE, TWO, feval=NDCGEval("sklearn", k=7)), ValueError,
        r"on which 'ndcg_sklearn@5' is evaluated, one of \[\]", lambda: train(STOP, ONE, TWO)),
    # With these, LightGBM would stop on every metric.
    **{name: (lambda name=name, rounds=rounds: train(STOP, ONE, TWO, params={name: rounds}), ValueError,
        rf"early_stopping_round must not be among the parameters.*got {rounds}\.",
        lambda: train(STOP, ONE, TWO)) for name, rounds in {"early_stopping_round": 1, "n_iter_no_change": 10}.items()},
    **{f"{params}": (lambda params=params: STOP.train()["callbacks"][0](lgb.callback.CallbackEnv(None, params, 0, 0, 1,
        [])), ValueError, "must not be used on several machines", None) for params in ({"num_machines": 2},
        {"machines": "a:1,b:1"}, {"nodes": ["a:1", "b:1"]})},
    "cut queries": (lambda: lgb.cv({**PARAMS, "objective": "regression", **STOP.params}, dataset(*ONE), 5,
        **STOP.train()), ValueError, r"the folds cut \d+ of the 10 queries: .*folds=GroupKFold\(5\)",
        lambda: lgb.cv({**PARAMS, "objective": "regression", **STOP.params}, dataset(*ONE), 5, folds=GroupKFold(5),
            **STOP.train())),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    call_, error, message, advised = REFUSED[case]
    with pytest.raises(error, match=message):
        call_()
    if advised is not None:
        advised()


@pytest.mark.long
@pytest.mark.needs("dask.array", "distributed")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_dask_tells_the_callback_of_its_workers():
    import dask.array as da
    from distributed import Client, LocalCluster

    one, two = (
        [da.from_array(rows, chunks=len(rows) // 4) for rows in (X[:, :4], y, np.full(40, 12))]
        for X, y, _ in (make(seed, 60) for seed in (2, 3))
        for X, y in [(X[:480], y[:480])]
    )
    stop = StopEarly("sklearn", k=5, rounds=5)
    sets = stop.fit(tuple(two))
    del sets["eval_sample_weight"]  # DaskLGBMRanker accepts no None
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        ranker = lgb.DaskLGBMRanker(client=client, n_estimators=30, **stop.params)
        with pytest.raises(ValueError, match="must not be used on several machines"):
            ranker.fit(one[0], one[1], group=one[2], **sets)
