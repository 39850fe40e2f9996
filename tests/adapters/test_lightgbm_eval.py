"""LightGBM's evaluation function in both interfaces, against LightGBM's own values."""

from __future__ import annotations

import pytest

pytest.importorskip("lightgbm")

import copy
import inspect
import pickle

import lightgbm as lgb
import numpy as np

from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.lightgbm import NDCGEval

PARAMS = {"objective": "lambdarank", "verbosity": -1, "num_leaves": 7, "min_data_in_leaf": 5, "num_threads": 1}


def make(seed, n_queries=60, ties=False):
    rng = np.random.default_rng(seed)
    group = rng.integers(1, 25, n_queries)
    n = int(group.sum())
    X = rng.normal(size=(n, 4)).round(0 if ties else 6)
    y = np.clip(np.round(X[:, 0] + rng.normal(size=n)), 0, 4)
    return X, y, group


def dataset(X, y, group, reference=None, weight=None):
    return lgb.Dataset(X, y, group=group, weight=weight, reference=reference, params={"verbosity": -1})


@pytest.mark.parametrize("k", [1, 10])
def test_the_lightgbm_flavor_is_lightgbms_own_number_every_round(k):
    train = dataset(*make(0, ties=True))
    valid = dataset(*make(1, ties=True), reference=train)
    log = {}
    lgb.train(
        {**PARAMS, "metric": "ndcg", "eval_at": [k]},
        train,
        15,
        valid_sets=[valid],
        feval=NDCGEval("lightgbm", k=k),
        callbacks=[lgb.record_evaluation(log)],
    )
    ours, theirs = log["valid_0"][f"ndcg_lightgbm@{k}"], log["valid_0"][f"ndcg@{k}"]
    assert len(ours) == len(theirs) == 15
    assert np.abs(np.array(ours) - theirs).max() < 1e-12
    assert len(set(ours)) > 1


def test_one_object_in_both_interfaces_gives_the_same_values():
    (X, y, group), (Xv, yv, gv) = make(2), make(3)
    ndcg = NDCGEval(Flavor.preset("sklearn", k=10), k=(10, 3))
    log = {}
    train = dataset(X, y, group)
    lgb.train(
        {**PARAMS, "metric": "None"},
        train,
        10,
        valid_sets=[dataset(Xv, yv, gv, reference=train)],
        feval=ndcg,
        callbacks=[lgb.record_evaluation(log)],
    )
    model = lgb.LGBMRanker(n_estimators=10, verbosity=-1, num_leaves=7, min_child_samples=5, n_jobs=1, metric="None")
    newer = "eval_X" in inspect.signature(model.fit).parameters  # LightGBM 4.7 deprecates eval_set
    valid = {"eval_X": (Xv,), "eval_y": (yv,)} if newer else {"eval_set": [(Xv, yv)]}
    model.fit(X, y, group=group, eval_group=[gv], eval_metric=ndcg, **valid)
    assert list(log["valid_0"]) == list(model.evals_result_["valid_0"]) == ["ndcg_sklearn@10", "ndcg_sklearn@3"]
    for name in ndcg.names:
        assert log["valid_0"][name] == model.evals_result_["valid_0"][name]
    expected = ndcg_score(yv, model.predict(Xv), group=gv, flavor="sklearn", k=(10, 3))
    assert [v[-1] for v in model.evals_result_["valid_0"].values()] == pytest.approx(list(expected.values()), abs=1e-12)


def test_cross_validation_evaluates_whole_queries():
    X, y, group = make(6, 40)
    ndcg = NDCGEval("lightgbm", k=10)
    params = {**PARAMS, "metric": "ndcg", "eval_at": [10]}
    result = lgb.cv(params, dataset(X, y, group), 5, nfold=4, feval=ndcg, eval_train_metric=True)
    for part in ("train", "valid"):
        ours, theirs = result[f"{part} ndcg_lightgbm@10-mean"], result[f"{part} ndcg@10-mean"]
        assert ours == pytest.approx(theirs, abs=1e-12)
    assert len(ndcg._cache) == 8


def test_row_weights_become_query_weights_as_in_lightgbm():
    X, y, group = make(8)
    y[np.cumsum(group) - 1] = 2  # no empty query, because LightGBM ignores the weights of those
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    train = dataset(X, y, group, weight=weight)
    log = {}
    lgb.train(
        {**PARAMS, "metric": "ndcg", "eval_at": [5]},
        train,
        5,
        valid_sets=[train],
        feval=NDCGEval("lightgbm", k=5),
        callbacks=[lgb.record_evaluation(log)],
    )
    assert log["training"]["ndcg_lightgbm@5"] == pytest.approx(log["training"]["ndcg@5"], abs=1e-7)  # float32 weights


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


def test_the_cache_is_not_pickled_or_copied():
    ndcg = NDCGEval("sklearn@5")
    call(ndcg, [1, 0], [0, 1], [2])
    for again in (pickle.loads(pickle.dumps(ndcg)), copy.deepcopy(ndcg)):
        assert len(again._cache) == 0
        assert again.names == ndcg.names
        assert call(again, [1, 0], [0, 1], [2]) == call(ndcg, [1, 0], [0, 1], [2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [0.1, 0.2], None, None), "needs the sizes of the queries.*group="),
        (([1, 0], [[0.1, 0.2], [0.3, 0.4]], None, [2]), "one score per row.*ranking"),
        (([1, 0], [0.1, 0.2], [1.0], [2]), "weight must have one entry per row, 2; got 1"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(arguments, message):
    y, s, weight, group = (None if a is None else np.asarray(a) for a in arguments)
    with pytest.raises(ValueError, match=message):
        NDCGEval("sklearn")(y, s, weight, group)
