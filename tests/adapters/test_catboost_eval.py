"""CatBoost's evaluation metric against CatBoost's own values, and the binding of data sets."""

import pytest

pytest.importorskip("catboost")
pytest.importorskip("pandas")

import copy
import math
import pickle
import sys
import weakref

import numpy as np
import pandas as pd
from catboost import CatBoostError, CatBoostRanker, Pool, cv

from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.catboost import NDCGEval
from ndcg_ml.lightgbm import NDCGEval as LightGBMs

QUIET = {"thread_count": 1, "verbose": False, "allow_writing_files": False, "random_seed": 0, "depth": 3}


def make(seed, n_queries=40, ties=False):
    rng = np.random.default_rng(seed)
    qid = np.repeat(7 * np.arange(n_queries) + 3, rng.integers(1, 12, n_queries))
    X = rng.normal(size=(qid.size, 4)).round(0 if ties else 6)
    return X, np.clip(np.round(X[:, 0] + rng.normal(size=qid.size)), 0, 4), qid


def pool(X, y, qid, **options):
    return Pool(X, y, group_id=qid, **options)


def fit(metric, train, valid, iterations=10, fit_options=(), **options):
    ranker = CatBoostRanker(loss_function="YetiRank", iterations=iterations, eval_metric=metric, **{**QUIET, **options})
    return ranker.fit(train, eval_set=valid, **{"use_best_model": False, **dict(fit_options)})


def contained(training):
    """Call in a generator, which has its own handled exception.

    CatBoost 1.2.10 leaves a metric's exception as the handled one, so all later errors would be chained to it.
    """
    return next(training() for _ in range(1))


def history(ranker, name, part="validation"):
    return np.array(ranker.get_evals_result()[part][name])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("flavor", ["sklearn@5", "lightgbm@3", "ndcg[empty=skip]"])
def test_every_round_is_the_score_of_the_predictions(flavor, threads):
    Xv, yv, qv = make(1, ties=True)
    X, y, q = make(0, ties=True)
    train, valid = pool(X, y, q), pool(Xv, yv, qv)
    metric = NDCGEval(flavor, learn=train, pools=[valid])
    ranker = fit(metric, train, valid, thread_count=threads)
    for part, data, labels, qid in [("validation", valid, yv, qv), ("learn", train, y, q)]:
        expected = [ndcg_score(labels, s, qid=qid, flavor=flavor) for s in ranker.staged_predict(data)]
        assert history(ranker, metric.name, part) == pytest.approx(expected, abs=1e-9)
        assert len(set(expected)) > 2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("top", [3, None])
def test_the_catboost_flavor_is_catboosts_own_number_every_round(top, weighted):
    built_in = "NDCG" if top is None else f"NDCG:top={top}"
    pools = []
    for seed in (0, 1):
        X, y, q = make(seed, ties=True)
        weight = np.random.default_rng(seed).uniform(0.1, 3, q.max() + 1)[q] if weighted else None
        pools.append(pool(X, y, q, group_weight=weight))
    train, valid = pools
    metric = NDCGEval("catboost", top, learn=train, pools=[valid])
    ranker = fit(metric, train, valid, custom_metric=[f"{built_in}{';' if top else ':'}hints=skip_train~false"])
    for part in ("learn", "validation"):
        result = ranker.get_evals_result()[part]
        (theirs,) = (result[name] for name in result if name.startswith("NDCG") and ("top" in name) == bool(top))
        assert history(ranker, metric.name, part) == pytest.approx(theirs, abs=1e-9)
        assert len(set(theirs)) > 2
    unweighted = [ndcg_score(y, s, flavor="catboost", k=top, qid=q) for s in ranker.staged_predict(valid)]
    assert (np.abs(history(ranker, metric.name) - unweighted).max() > 1e-3) == weighted


def test_early_stopping_keeps_the_best_round():
    train, valid = pool(*make(2)), pool(*make(3))
    stop = {"early_stopping_rounds": 8, "use_best_model": True}
    metric = NDCGEval("sklearn@5", learn=train, pools=[valid])
    ranker = fit(metric, train, valid, 200, stop, learning_rate=0.3)
    values = history(ranker, metric.name)
    assert ranker.get_best_iteration() == int(np.argmax(values)) > 0
    assert ranker.tree_count_ == ranker.get_best_iteration() + 1 < len(values) < 200
    assert ranker.get_best_score()["validation"][metric.name] == max(values)
    assert ndcg_score(make(3)[1], ranker.predict(valid), qid=make(3)[2], k=5) == pytest.approx(max(values), abs=1e-9)


def test_names_and_repr():
    sets = [([1, 0, 2], [1, 1, 1]), ([1, 0], [1, 1])]
    assert repr(NDCGEval("sklearn@5", pools=sets)) == "NDCGEval('sklearn', k=5, pools=<2 data sets>)"
    train = pool(*make(0))
    assert NDCGEval("catboost@4", pools=[train]).name == "ndcg_catboost@4"
    assert NDCGEval("xgboost", pools=[train]).name == "ndcg_xgboost@32"  # the flavor's own cut-off
    assert NDCGEval("catboost@4", None, pools=[train]).name == "ndcg_catboost"
    metric = NDCGEval(Flavor(gain="binary"), 3, pools=[train])
    assert list(fit(metric, train, None, 2).get_evals_result()["learn"]) == [metric.name]


def test_data_sets_are_recognized_by_their_labels():
    X, y, q = make(0)
    other = (X, np.clip(y[::-1].copy(), 0, 2), q)  # the same number of rows, the same queries
    smaller = make(4, 20)
    train, one, two = pool(X, y, q), pool(*other), pool(*smaller)
    metric = NDCGEval("sklearn@5", learn=(y, q), pools=[smaller[1:], (other[1].tolist(), [str(i) for i in q])])
    ranker = fit(metric, train, [one, two])
    for part, data, (_, labels, qid) in [("validation_0", one, other), ("validation_1", two, smaller)]:
        expected = [ndcg_score(labels, s, qid=qid, k=5) for s in ranker.staged_predict(data)]
        assert history(ranker, metric.name, part) == pytest.approx(expected, abs=1e-9)


def test_labels_that_float32_rounds_are_recognized():
    X, y, q = make(0)
    y = y + 0.1
    metric = NDCGEval("sklearn@5", pools=[(y, q)])
    ranker = fit(metric, pool(X, y, q), None, 3)
    expected = [ndcg_score(y.astype(np.float32), s, qid=q, k=5) for s in ranker.staged_predict(X)]
    assert history(ranker, metric.name, "learn") == pytest.approx(expected, abs=1e-9)
    assert metric.evaluate((X[:, 0],), y, None) == (ndcg_score(y.astype(np.float32), X[:, 0], qid=q, k=5), 1.0)


def categorical_pool(seed):
    X, y, q = make(seed)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["e"] = np.random.default_rng(seed).choice(list("pqrs"), len(y))
    return pool(frame, y, q, cat_features=["e"]), y, q


@pytest.mark.parametrize(("features", "options"), [("categories", {}), ("numbers", {"boosting_type": "Ordered"})])
def test_a_reordered_learn_set_gets_minus_one(features, options):
    (train, y, q), (valid, yv, qv) = (
        categorical_pool(seed) if features == "categories" else (pool(*make(seed)), *make(seed)[1:]) for seed in (0, 1)
    )
    metric = NDCGEval("sklearn@5", learn=train, pools=[valid])
    ranker = fit(metric, train, valid, **options)
    assert set(history(ranker, metric.name, "learn")) == {-1.0}
    assert metric.evaluate((y,), y[::-1], None) == (-1.0, 1.0)
    expected = [ndcg_score(yv, s, qid=qv, k=5) for s in ranker.staged_predict(valid)]
    assert history(ranker, metric.name) == pytest.approx(expected, abs=1e-9)
    in_order = fit(metric, train, valid, has_time=True, **options)
    value = ndcg_score(y, in_order.predict(train), qid=q, k=5)
    assert history(in_order, metric.name, "learn")[-1] == pytest.approx(value, abs=1e-9)
    with pytest.raises(CatBoostError, match=r"not those of a bound data set.*learn=.*has_time=True"):
        contained(lambda: fit(NDCGEval("sklearn@5", pools=[train, valid]), train, valid, **options))


def test_a_data_set_that_is_not_bound_stops_the_training_and_so_does_cross_validation():
    train, valid = pool(*make(0)), pool(*make(1))
    for metric in (NDCGEval("sklearn", pools=[valid]), NDCGEval("sklearn", pools=[train])):
        with pytest.raises(CatBoostError, match=r"not those of a bound data set.*eval_set in pools=.*learn="):
            contained(lambda metric=metric: fit(metric, train, valid))
        assert sys.exception() is None
    options = {name: value for name, value in QUIET.items() if name != "verbose"}
    # With YetiRank, catboost.cv 1.2.10 crashes (floating point exception), also with CatBoost's own metrics.
    params = {**options, "loss_function": "QueryRMSE", "eval_metric": NDCGEval("sklearn", pools=[train])}
    with pytest.raises(CatBoostError, match="not those of a bound data set"):
        contained(lambda: cv(train, params, iterations=2, fold_count=3, logging_level="Silent"))


def test_pickle_and_copy():
    X, y, q = make(0)
    train, valid = pool(X, y, q), pool(*make(1))
    metric = NDCGEval("sklearn@5", learn=train, pools=[valid])
    ranker = fit(metric, train, valid)
    for again in (metric, pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric), copy.copy(metric)):
        assert isinstance(again, NDCGEval)
        assert type(again).__name__ == again.name == metric.name
        first, labels = (X[:, 0].copy(),), y.astype(np.float32)
        assert again.evaluate(first, labels, None) == metric.evaluate(first, labels, None)
    for again in (pickle.loads(pickle.dumps(ranker)), ranker.copy()):
        assert (again.predict(valid) == ranker.predict(valid)).all()
        again.fit(train, eval_set=valid)
        assert again.get_evals_result() == ranker.get_evals_result()


ONE = ([1, 0], [0, 0])


@pytest.mark.parametrize("labels", [[1, 0], [0, 1]])
def test_an_error_holds_no_array_of_catboost(labels):
    # CatBoost frees the memory of these arrays, and keeps the error.
    arrays = [np.full(2, np.nan), np.array(labels, np.float32), np.ones(2, np.float32)]
    held = [weakref.ref(array) for array in arrays]
    with pytest.raises(ValueError, match=r"NaN|not those of a bound data set") as error:
        NDCGEval("sklearn", pools=[ONE]).evaluate((arrays[0],), *arrays[1:])
    arrays.clear()
    assert [array() is None for array in held] == [True] * 3, error


def made(flavor="sklearn", pools=(ONE,), **options):
    return NDCGEval(flavor, pools=pools if isinstance(pools, np.ndarray) else [*pools], **options)


LABELS, IDS, OTHERS = [1, 0, 2, 0], [0, 0, 1, 1], [0, 0, 0, 1]
REFUSED = {
    "cut-offs": (lambda: made(k=(5, 10)), TypeError, r"k must be one cut-off.*\(5, 10\). Pass k=5", lambda: made(k=5)),
    **{switch: (lambda flavor=flavor: made(flavor), ValueError, f"does not support {switch}", None) for switch,
        flavor in {"ties='docid'": "trec_eval", "empty=nan": Flavor(empty=math.nan)}.items()},
    "LightGBM's": (lambda: LightGBMs("sklearn").evaluate((np.zeros(2),), np.array([1, 0]), None), TypeError,
        r"CatBoost needs ndcg_ml\.catboost\.NDCGEval; got ndcg_ml\.lightgbm", made),
    "no pools": (lambda: made(pools=[]), ValueError, "pools must hold at least one data set", None),
    "an array": (lambda: made(pools=np.zeros((2, 2))), TypeError, r"pools must be a list of.*Write pools=\[...\]",
        None),
    "an array as a pool": (lambda: made(pools=[np.zeros(2)]), TypeError,
        r"pools\[0\] must be a catboost.Pool or a pair \(y, qid\); got ndarray", None),
    "a pair of numbers": (lambda: made(pools=ONE), ValueError,
        r"pools\[0\] must have one label per row; got labels of shape \(\)", None),
    "negative labels": (lambda: made(pools=[([-1, 0], [0, 0])]), ValueError, "y_true must be >= 0",
        lambda: made("catboost", [([-1, 0], [0, 0])])),
    "scattered queries": (lambda: made(pools=[([1, 0, 1], [0, 1, 0])]), ValueError,
        r"pools\[0\] must have contiguous queries", None),
    "a pool without queries": (lambda: made(pools=[Pool([[0.0]], [1])]), ValueError,
        "must have labels and queries. Pass label= and group_id=",
        lambda: made(pools=[Pool([[0.0]], label=[1], group_id=[1])])),
    "other queries": (lambda: made(pools=[(LABELS, IDS), (LABELS, OTHERS)]), ValueError,
        r"pools\[0\] and pools\[1\] have the same labels and different queries",
        lambda: made(learn=(LABELS, IDS), pools=[(LABELS, IDS), (LABELS, ["a", "a", "b", "b"])])),
    "other queries than learn": (lambda: made(learn=(LABELS, IDS), pools=[(LABELS, OTHERS)]), ValueError,
        r"pools\[0\] and learn have the same labels", None),
    "several scores": (lambda: made().evaluate((np.zeros(2), np.zeros(2)), np.array([1, 0]), None), ValueError,
        r"needs one score per row; got 2.*YetiRank", None),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_and_what_is_advised(case):
    call, error, message, advised = REFUSED[case]
    with pytest.raises(error, match=message):
        call()
    if advised is not None:
        advised()
