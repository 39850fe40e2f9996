"""Early stopping of LightGBM on one metric, and folds that cut queries."""

from __future__ import annotations

import pytest

pytest.importorskip("lightgbm")


import lightgbm as lgb
import numpy as np
from sklearn.model_selection import GroupKFold

from ndcg_ml import ndcg_score
from ndcg_ml.lightgbm import NDCGEval, StopEarly

PARAMS = {"objective": "lambdarank", "verbosity": -1, "num_leaves": 4, "min_data_in_leaf": 10, "num_threads": 1}


def make(seed, n_queries=40, docs=(5, 25), noise=1.5):
    rng = np.random.default_rng(seed)
    group = rng.integers(*docs, n_queries)
    X = rng.normal(size=(int(group.sum()), 5))
    y = np.clip(np.round(0.5 * X.sum(axis=1) + noise * rng.normal(size=len(X))), 0, 4)
    return X, y, group


def dataset(X, y, group, reference=None, weight=None):
    return lgb.Dataset(X, y, group=group, weight=weight, reference=reference, params={"verbosity": -1})


def train(stop, data, *valid, rounds=150, params=(), names=None, **also):
    """Train on `data` with these validation sets; return the booster and the recorded metrics."""
    log = {}
    first = dataset(*data)
    arguments = stop.train()
    arguments["callbacks"].append(lgb.record_evaluation(log))
    booster = lgb.train(
        {**PARAMS, **stop.params, **dict(params)},
        first,
        rounds,
        valid_sets=[first if v is data else dataset(*v, reference=first) for v in valid],
        valid_names=names,
        **arguments,
        **also,
    )
    return booster, log


def ranker(stop, rounds=150):
    return lgb.LGBMRanker(
        n_estimators=rounds, num_leaves=4, min_child_samples=10, verbosity=-1, n_jobs=1, **stop.params
    )


def best(history):
    return int(np.argmax(history)) + 1


def test_both_interfaces_stop_at_the_best_round_of_the_first_cutoff():
    data, valid = make(0), make(1)
    stop = StopEarly("lightgbm", k=(10, 3), rounds=12)
    booster, log = train(stop, data, valid)
    X, y, group = data
    model = ranker(stop).fit(X, y, group=group, **stop.fit(valid))
    monitored = log["valid_0"]["ndcg_lightgbm@10"]
    assert 1 < booster.best_iteration == model.best_iteration_ == best(monitored)
    assert len(monitored) == booster.best_iteration + 12 < 150
    assert monitored == model.evals_result_["valid_0"]["ndcg_lightgbm@10"]
    assert list(log["valid_0"]) == ["ndcg_lightgbm@10", "ndcg_lightgbm@3"]
    expected = ndcg_score(valid[1], model.predict(valid[0]), group=valid[2], flavor="lightgbm", k=10)
    assert model.best_score_["valid_0"]["ndcg_lightgbm@10"] == pytest.approx(expected, abs=1e-12)


def test_training_stops_on_the_watched_validation_set():
    data, sets = make(4), (make(5), make(6))
    rounds = {}
    for watch in ("valid_0", "valid_1"):
        stop = StopEarly("sklearn", k=(5, 10), rounds=10, watch=watch)
        booster, log = train(stop, data, *sets)
        assert booster.best_iteration == best(log[watch]["ndcg_sklearn@5"]) == len(log[watch]["ndcg_sklearn@5"]) - 10
        X, y, group = data
        model = ranker(stop).fit(X, y, group=group, **stop.fit(*sets))
        assert model.best_iteration_ == booster.best_iteration
        rounds[watch] = booster.best_iteration
        for name, metrics in log.items():  # best_score has all sets and cut-offs
            for metric, history in metrics.items():
                assert booster.best_score[name][metric] == history[booster.best_iteration - 1]
    assert rounds["valid_0"] != rounds["valid_1"]
    everything, log = train(StopEarly("sklearn", k=5, watch="mine", rounds=10), data, *sets, names=["mine", "other"])
    assert everything.best_iteration == rounds["valid_0"]
    for watch in (None, "valid_2"):
        with pytest.raises(ValueError, match=rf"one of \['valid_0', 'valid_1'\].*got {watch!r}"):
            train(StopEarly("sklearn", watch=watch), data, *sets)


def test_training_does_not_stop_on_the_training_set():
    data, valid = make(7), make(8)
    stop = StopEarly("sklearn", k=5, rounds=10)
    alone, _ = train(stop, data, valid)
    with_others, log = train(stop, data, data, valid, names=["train", "valid"])
    assert list(log) == ["train", "valid"]
    assert with_others.best_iteration == alone.best_iteration < 140
    for sets in ([data], []):
        with pytest.raises(ValueError, match=r"watch must name a validation set.*one of \[\].*got None\. Pass"):
            train(stop, data, *sets)
    with pytest.raises(ValueError, match=r"one of \['valid'\].*got 'train'"):
        train(StopEarly("sklearn", watch="train"), data, data, valid, names=["train", "valid"])


def test_training_does_not_stop_on_built_in_metrics():
    stop = StopEarly("sklearn", k=5, rounds=10)
    without, _ = train(stop, make(12), make(13))
    with_others, log = train(stop, make(12), make(13), params={"metric": "ndcg", "eval_at": [1, 2]})
    assert list(log["valid_0"]) == ["ndcg@1", "ndcg@2", "ndcg_sklearn@5"]
    assert with_others.best_iteration == without.best_iteration == best(log["valid_0"]["ndcg_sklearn@5"])
    assert with_others.best_iteration not in (best(log["valid_0"]["ndcg@1"]), best(log["valid_0"]["ndcg@2"]))
    arguments = {**stop.train(), "feval": NDCGEval("sklearn", k=7)}
    first = dataset(*make(12))
    with pytest.raises(ValueError, match=r"on which 'ndcg_sklearn@5' is evaluated, one of \[\]"):
        lgb.train({**PARAMS, **stop.params}, first, 5, valid_sets=[dataset(*make(13), reference=first)], **arguments)


def test_early_stopping_parameters_of_lightgbm_are_refused():
    # With them LightGBM stops on every metric, also on ndcg@1.
    data, valid = make(2), make(3)
    for alias in ("early_stopping_round", "n_iter_no_change"):
        with pytest.raises(ValueError, match=r"early_stopping_round must not be among the parameters.*got 10"):
            train(StopEarly("sklearn", k=(10, 1), rounds=10), data, valid, params={alias: 10})


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
    (X, y, group), (Xv, yv, gv) = make(15), make(16)
    query_weight = np.random.default_rng(0).integers(1, 9, len(gv)).astype(float)
    weight = np.repeat(query_weight, gv)
    stop = StopEarly("sklearn", k=5, rounds=10)
    model = ranker(stop).fit(X, y, group=group, **stop.fit((Xv, yv, gv, weight)))
    expected = ndcg_score(yv, model.predict(Xv), group=gv, k=5, query_weight=query_weight)
    assert model.best_score_["valid_0"]["ndcg_sklearn@5"] == pytest.approx(expected, abs=1e-12)
    assert expected != ndcg_score(yv, model.predict(Xv), group=gv, k=5)


def test_cross_validation_stops_on_the_mean_of_the_folds():
    data = dataset(*make(19, 60))
    stop = StopEarly("sklearn", k=(5, 10), rounds=10)
    arguments = {"folds": GroupKFold(3), "num_boost_round": 150, "return_cvbooster": True}
    result = lgb.cv({**PARAMS, **stop.params}, data, **arguments, **stop.train())
    history = result["valid ndcg_sklearn@5-mean"]
    assert 1 < len(history) == best(history) == result["cvbooster"].best_iteration < 140
    for watch, train_too in [("valid", False), (None, True), ("valid", True)]:
        stop = StopEarly("sklearn", k=(5, 10), rounds=10, watch=watch)
        again = lgb.cv(
            {**PARAMS, **stop.params}, dataset(*make(19, 60)), eval_train_metric=train_too, **arguments, **stop.train()
        )
        assert again["valid ndcg_sklearn@5-mean"] == history


def test_folds_that_cut_queries_are_refused_and_whole_ones_are_not():
    X, y, group = make(20, 50)
    stop = StopEarly("sklearn", k=5, rounds=10)
    params = {**PARAMS, "objective": "regression", **stop.params}
    with pytest.raises(ValueError, match=r"the folds cut \d+ of the 50 queries: .*folds=GroupKFold\(5\)"):
        lgb.cv(params, dataset(X, y, group), 5, **stop.train())
    query = np.repeat(np.arange(len(group)), group)
    folds = list(GroupKFold(4).split(X, y, query))
    result = lgb.cv(params, dataset(X, y, group), 150, folds=GroupKFold(4), return_cvbooster=True, **stop.train())
    boosters = result["cvbooster"].boosters
    scores = []
    for (_, test), booster in zip(folds, boosters, strict=True):
        scores.append(ndcg_score(y[test], booster.predict(X[test]), qid=query[test], k=5))
    assert result["valid ndcg_sklearn@5-mean"][-1] == pytest.approx(np.mean(scores), abs=1e-12)


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
    some = full.subset([0, 1, 2, 3, 6, 7]).construct()
    with pytest.raises(ValueError, match="cut 1 of the 3 queries"):
        ndcg(np.zeros(2), some.subset([4, 5]).construct())
    some = full.subset([0, 1, 6, 7]).construct()
    assert ndcg(np.array([0.0, 1]), some.subset([2, 3]).construct())[0][1] == 1


@pytest.mark.parametrize(
    ("valid", "error", "message"),
    [
        ([], ValueError, "needs a validation set; got none"),
        ([[1, 2, 3]], TypeError, r"must be a tuple \(X, y, group\).*number 0 is of type list.*fit\(first, second\)"),
        ([(1, 2)], TypeError, "number 0 has 2 parts"),
    ],
)
def test_arguments_are_checked_before_training(valid, error, message):
    with pytest.raises(error, match=message):
        StopEarly("sklearn").fit(*valid)
    with pytest.raises(ValueError, match="rounds must be an integer >= 1; got 0"):
        StopEarly("sklearn", rounds=0)
