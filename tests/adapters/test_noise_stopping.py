"""Early stopping on improvements beyond the noise of the validation queries, against the rule in plain NumPy."""

from __future__ import annotations

import pytest

lgb = pytest.importorskip("lightgbm")

import numpy as np

from ndcg_ml import Flavor, evaluate
from ndcg_ml._boosting import Progress, RoundScores
from ndcg_ml.lightgbm import StopEarly

PARAMS = {"objective": "lambdarank", "verbosity": -1, "num_leaves": 4, "min_data_in_leaf": 10, "num_threads": 1}
ALONE = {"objective": "rank:ndcg", "nthread": 1, "max_depth": 3, "verbosity": 0, "disable_default_eval_metric": True}
FLAVOR = "lightgbm[ties=average]"


def make(seed, n_queries=60, noise=1.5):
    rng = np.random.default_rng(seed)
    group = rng.integers(5, 25, n_queries)
    X = rng.normal(size=(int(group.sum()), 5))
    y = np.clip(np.round(0.5 * X.sum(axis=1) + noise * rng.normal(size=len(X))), 0, 4)
    y[: group[0]] = 0  # an empty query
    return X, y, group


def mean_and_error(differences, weight):
    """Weighted mean of the differences with its standard error; the usual formula where all weights are equal."""
    share = weight / weight.sum()
    mean = float(share @ differences)
    n = differences.size
    return mean, np.sqrt(n / (n - 1) * (share**2 @ (differences - mean) ** 2))


def simulated(tables, weight, rounds, last):
    """Best round, and the number of rounds that are run, counted from 1."""
    best = 0
    for i in range(1, last):
        mean, error = mean_and_error(tables[i] - tables[best], weight)
        if mean > error:
            best = i
        elif i - best >= rounds:
            return best + 1, i + 1
    return best + 1, last


def lightgbm_tables(data, valid, last, flavor, weight=None, **params):
    """NDCG of every query in every round, of a training that does not stop."""
    X, y, group = data
    train = lgb.Dataset(X, y, group=group, params={"verbosity": -1})
    booster = lgb.train({**PARAMS, "metric": "None", **params}, train, last)
    found = []
    for i in range(1, last + 1):
        scores = booster.predict(valid[0], num_iteration=i)
        found.append(evaluate(valid[1], scores, group=valid[2], flavor=flavor).per_query.ndcg)
    return found


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_lightgbm_stops_where_the_rule_says(k, weighted):
    data, valid = make(0), make(1)
    stop = StopEarly(FLAVOR, k=(k, 7), rounds=8, min_delta="noise")
    weight = np.random.default_rng(0).uniform(0.2, 3, 60) if weighted else np.ones(60)
    expected = simulated(lightgbm_tables(data, valid, 60, Flavor.parse(FLAVOR).replace(k=k)), weight, 8, 60)
    rows = np.repeat(weight, valid[2]) if weighted else None
    X, y, group = data
    log = {}
    arguments = stop.train()
    train = lgb.Dataset(X, y, group=group, params={"verbosity": -1})
    held_out = lgb.Dataset(valid[0], valid[1], group=valid[2], weight=rows, reference=train)
    booster = lgb.train(
        {**PARAMS, **stop.params},
        train,
        60,
        valid_sets=[train, held_out],
        valid_names=["train", "valid"],
        feval=arguments["feval"],
        callbacks=[*arguments["callbacks"], lgb.record_evaluation(log)],
    )
    history = log["valid"][stop.eval.names[0]]
    assert (booster.best_iteration, len(history)) == expected
    assert 1 < booster.best_iteration < len(history) < 60
    assert booster.best_score["valid"][stop.eval.names[0]] == history[booster.best_iteration - 1]
    assert booster.best_iteration < int(np.argmax(history)) + 1  # a fixed min_delta would have gone on
    model = lgb.LGBMRanker(n_estimators=60, num_leaves=4, min_child_samples=10, verbosity=-1, n_jobs=1, **stop.params)
    model.fit(X, y, group=group, **stop.fit((valid[0], valid[1], valid[2], rows)))
    assert model.best_iteration_ == booster.best_iteration
    again = lgb.train({**PARAMS, **stop.params}, train, 60, valid_sets=[held_out], **stop.train())
    assert again.best_iteration == booster.best_iteration


@pytest.mark.parametrize("watch", ["valid_0", "valid_1"])
def test_the_watched_set_decides(watch):
    data, sets = make(0), {"valid_0": make(2), "valid_1": make(3)}
    stop = StopEarly(FLAVOR, k=5, rounds=8, min_delta="noise", watch=watch)
    flavor = stop.eval.flavor.replace(k=5)
    expected = simulated(lightgbm_tables(data, sets[watch], 60, flavor), np.ones(60), 8, 60)
    X, y, group = data
    model = lgb.LGBMRanker(n_estimators=60, num_leaves=4, min_child_samples=10, verbosity=-1, n_jobs=1, **stop.params)
    model.fit(X, y, group=group, **stop.fit(*sets.values()))
    assert (model.best_iteration_, len(model.evals_result_[watch]["ndcg_lightgbm_ties_average@5"])) == expected


@pytest.mark.parametrize("eval_train_metric", [False, True])
def test_in_cross_validation_the_queries_of_all_folds_decide(eval_train_metric):
    X, y, group = make(4)
    ends = np.concatenate([[0], np.cumsum(group)])
    rows = [np.arange(ends[20 * i], ends[20 * i + 20]) for i in range(3)]
    folds = [(np.setdiff1d(np.arange(len(y)), test), test) for test in rows]
    tables = []
    for i, (train, test) in enumerate(folds):
        sizes = np.delete(group, np.arange(20 * i, 20 * i + 20))
        valid = (X[test], y[test], group[20 * i : 20 * i + 20])
        tables.append(lightgbm_tables((X[train], y[train], sizes), valid, 60, f"{FLAVOR[:8]}@5[ties=average]"))
    expected = simulated([np.concatenate(parts) for parts in zip(*tables, strict=True)], np.ones(60), 8, 60)
    stop = StopEarly(FLAVOR, k=5, rounds=8, min_delta="noise")
    data = lgb.Dataset(X, y, group=group, params={"verbosity": -1})
    # Bins are made from all rows there, so that the trees differ a little: compare with the models themselves.
    out = lgb.cv(
        {**PARAMS, **stop.params}, data, 60, folds=folds, eval_train_metric=eval_train_metric, return_cvbooster=True,
        **stop.train(),
    )  # fmt: skip
    boosters = out["cvbooster"].boosters
    run = boosters[0].current_iteration()
    tables = [
        np.concatenate(
            [
                evaluate(
                    y[test],
                    booster.predict(X[test], num_iteration=i),
                    group=group[20 * f : 20 * f + 20],
                    flavor=f"{FLAVOR[:8]}@5[ties=average]",
                ).per_query.ndcg
                for f, (booster, (_, test)) in enumerate(zip(boosters, folds, strict=True))
            ]
        )
        for i in range(1, run + 1)
    ]
    assert (out["cvbooster"].best_iteration, run) == simulated(tables, np.ones(60), 8, 60)
    assert run < 60
    assert abs(run - expected[1]) < 30


@pytest.mark.parametrize("flavor", [FLAVOR, f"{FLAVOR[:-1]},empty=skip]", f"{FLAVOR[:-1]},aggregate=micro]"])
def test_xgboost_stops_where_the_rule_says(flavor):
    xgb = pytest.importorskip("xgboost")
    from ndcg_ml.xgboost import NDCGCallback

    (X, y, group), (Xv, yv, gv) = make(6), make(7)
    data = xgb.DMatrix(X, y, group=group)
    whole = xgb.train(ALONE, data, 60)
    tables = []
    for i in range(1, 61):
        scores = whole.predict(xgb.DMatrix(Xv), iteration_range=(0, i))
        tables.append(evaluate(yv, scores, group=gv, flavor=flavor, k=5).per_query)
    weight = tables[0].idcg if "micro" in flavor else np.ones(60)
    kept = ~tables[0].empty if "skip" in flavor or "micro" in flavor else np.ones(60, bool)
    expected = simulated([table.ndcg[kept] for table in tables], weight[kept], 6, 60)
    log = {}
    stop = NDCGCallback(flavor, k=(5, 3), X=Xv, y=yv, group=gv, rounds=6, min_delta="noise")
    booster = xgb.train(ALONE, data, 60, callbacks=[stop], evals_result=log, verbose_eval=False)
    history = log["validation"][stop.names[0]]
    assert (booster.best_iteration + 1, len(history)) == expected
    assert 1 < len(history) < 60
    assert booster.best_score == history[booster.best_iteration]
    assert repr(stop).endswith("rounds=6, min_delta='noise')")


def test_a_number_is_xgboosts_own_min_delta():
    xgb = pytest.importorskip("xgboost")
    from ndcg_ml.xgboost import NDCGCallback

    (X, y, group), (Xv, yv, gv) = make(6), make(7)
    data = xgb.DMatrix(X, y, group=group)
    stop = NDCGCallback(FLAVOR, X=Xv, y=yv, group=gv, rounds=4, min_delta=1.0)
    assert xgb.train(ALONE, data, 60, callbacks=[stop], verbose_eval=False).best_iteration == 0
    with pytest.raises(ValueError, match="min_delta only has a meaning with rounds="):
        NDCGCallback(FLAVOR, X=Xv, y=yv, group=gv, min_delta="noise")
    with pytest.raises(TypeError, match="min_delta must be one number >= 0, or 'noise'; got 'nois'"):
        NDCGCallback(FLAVOR, X=Xv, y=yv, group=gv, rounds=4, min_delta="nois")


# -- the rule itself ------------------------------------------------------------------------------------------------


def queries(*values, share=None):
    ndcg = np.array(values, dtype=float)
    return RoundScores(ndcg, np.full(ndcg.size, 1 / ndcg.size) if share is None else np.array(share))


def test_small_steps_add_up_against_the_last_round_that_counted():
    start = np.linspace(0.1, 0.5, 10)
    step = np.tile([0.0, 0.01, -0.009, 0.004, 0.002], 2)  # mean 0.0014, standard error above it
    progress = Progress()
    assert [progress(queries(*(start + i * step))) for i in range(4)] == [1, 1, 1, 1]
    assert progress(queries(*(start + 0.01))) == 2  # the same for all queries: no noise
    assert progress(queries(*(start + 0.01))) == 2  # no change is no improvement
    assert progress(queries(*start)) == 2


def test_queries_that_the_mean_skips_do_not_count():
    progress = Progress()
    share = [0.5, 0.5, 0.0]
    assert progress(queries(0.2, 0.3, np.nan, share=share)) == 1
    assert progress(queries(0.3, 0.5, np.nan, share=share)) == 2
    with pytest.raises(ValueError, match=r"at least two validation queries that count; got 1\. Hold out more"):
        Progress()(queries(0.1, np.nan, share=[1.0, 0.0]))


def test_what_cannot_be_followed_is_refused():
    X, y, group = make(0, 12)
    one = (X[: group[0] + group[1]], np.ones(group[:2].sum()), [group[:2].sum()])
    stop = StopEarly(FLAVOR, k=5, rounds=5, min_delta="noise")
    with pytest.raises(ValueError, match="at least two validation queries that count; got 1"):
        lgb.LGBMRanker(verbosity=-1, **stop.params).fit(X, y, group=group, **stop.fit(one))
    train = lgb.Dataset(X, y, group=group, params={"verbosity": -1})
    valid = lgb.Dataset(*make(1, 12)[:2], group=make(1, 12)[2], reference=train)
    with pytest.raises(ValueError, match=r"needs feval= .* from the same StopEarly.train.*got 0 calls for 1"):
        lgb.train(
            {**PARAMS, **stop.params},
            train,
            5,
            valid_sets=[valid],
            feval=stop.eval,
            callbacks=stop.train()["callbacks"],
        )
    with pytest.raises(TypeError, match="min_delta must be one number >= 0, or 'noise'; got 'nois' of type str"):
        StopEarly(FLAVOR, min_delta="nois")
    assert "min_delta='noise'" in repr(stop)
