"""XGBoost's evaluation function and callback against XGBoost's own values, with one worker and with two."""

import pytest

pytest.importorskip("xgboost")

import copy
import json
import math
import pickle
import subprocess
import sys
import threading

import numpy as np
import xgboost as xgb

import ndcg_ml
from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.xgboost import NDCGCallback, NDCGEval

PARAMS = {"objective": "rank:ndcg", "nthread": 1, "max_depth": 3, "verbosity": 0, "base_score": 0.5}
ALONE = {**PARAMS, "disable_default_eval_metric": True}
RANKER = {"n_jobs": 1, "max_depth": 3, "verbosity": 0}


def make(seed, n_queries=60, ties=False):
    rng = np.random.default_rng(seed)
    group = rng.integers(1, 25, n_queries)
    n = int(group.sum())
    X = rng.normal(size=(n, 4)).round(0 if ties else 6)
    y = np.clip(np.round(X[:, 0] + rng.normal(size=n)), 0, 4)
    return X, y, group


def matrix(X, y, group, weight=None):
    return xgb.DMatrix(X, y, group=group, weight=weight)


def train(params, data, rounds, sets, **options):
    log = {}
    booster = xgb.train(params, data, rounds, evals=sets, evals_result=log, verbose_eval=False, **options)
    return booster, log


# -- the evaluation function ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 10])
def test_the_xgboost_flavor_is_xgboosts_own_number_every_round(k):
    data, valid = matrix(*make(0, ties=True)), matrix(*make(1, ties=True))
    params = {**PARAMS, "eval_metric": f"ndcg@{k}"}
    _, log = train(params, data, 15, [(valid, "valid")], custom_metric=NDCGEval("xgboost", k=k))
    ours, theirs = log["valid"][f"ndcg_xgboost@{k}"], log["valid"][f"ndcg@{k}"]
    assert len(ours) == len(theirs) == 15
    assert np.abs(np.array(ours) - theirs).max() <= 1e-6
    assert len(set(ours)) > 1


def test_early_stopping_maximises_the_first_cutoff():
    data, valid = matrix(*make(5, 30)), matrix(*make(6, 30))
    best = {}
    for ks in [(10, 1), (1, 10)]:
        metric = NDCGEval("sklearn", k=ks)
        booster, log = train(ALONE, data, 60, [(valid, "valid")], custom_metric=metric, early_stopping_rounds=8)
        history = log["valid"][metric.names[0]]
        assert list(log["valid"]) == list(metric.names[::-1])
        assert booster.best_iteration == int(np.argmax(history))
        assert len(history) == booster.best_iteration + 9
        best[ks] = booster.best_iteration
    assert best[10, 1] != best[1, 10]
    assert 0 not in best.values()


def test_cross_validation_evaluates_whole_queries_and_drops_weights():
    X, y, group = make(6, 40)
    qid, weight = np.repeat(np.arange(40), group), np.random.default_rng(0).uniform(0.1, 9, 40)
    options = {"nfold": 4, "custom_metric": NDCGEval("xgboost", k=10), "as_pandas": False}
    plain, dropped = (
        xgb.cv({**PARAMS, "eval_metric": "ndcg@10"}, xgb.DMatrix(X, y, qid=qid, weight=each), 5, **options)
        for each in (None, weight)
    )
    for part in ("train", "test"):
        assert plain[f"{part}-ndcg_xgboost@10-mean"] == pytest.approx(plain[f"{part}-ndcg@10-mean"], abs=1e-6)
    assert dropped["test-ndcg_xgboost@10-mean"] == plain["test-ndcg_xgboost@10-mean"]


# -- the callback -----------------------------------------------------------------------------------------------------


(X, Y, GROUP), (XV, YV, GV) = make(4, 30), make(5, 30)


def data():
    return matrix(X, Y, GROUP)


def held_out(k=5, **changed):
    return NDCGCallback("sklearn", k, **{"X": XV, "y": YV, "group": GV, **changed})


def ranked(callback, features=X, n_estimators=30, options=(), **fit):
    """Return a ranker that was trained under a callback, and the values that this recorded."""
    ranker = xgb.XGBRanker(n_estimators=n_estimators, callbacks=[callback], **RANKER, **dict(options))
    ranker.fit(features, Y, group=GROUP, **fit)
    return ranker, ranker.evals_result()["validation"]["ndcg_sklearn@5"]


def worth(scores, **more):
    return pytest.approx(ndcg_score(YV, scores, group=GV, k=5, **more), abs=1e-12)


def test_the_ranker_stops_at_the_best_round_and_predicts_with_it():
    ranker, history = ranked(held_out(rounds=6), n_estimators=80)
    assert ranker.best_iteration == int(np.argmax(history)) > 0
    assert len(history) == ranker.best_iteration + 7 < 80
    assert history == [worth(ranker.predict(XV, iteration_range=(0, i + 1))) for i in range(len(history))]
    assert ranker.best_score == max(history) == worth(ranker.predict(XV))


def test_it_stops_where_xgboosts_own_early_stopping_does():
    own = {"custom_metric": NDCGEval("sklearn", k=(5, 1)), "early_stopping_rounds": 6}
    theirs, log = train(ALONE, data(), 80, [(matrix(XV, YV, GV), "valid")], **own)
    followed, others = held_out(k=(5, 1), rounds=6), [held_out(k=3), held_out(k=3, data_name="other")]
    ours, history = train(ALONE, data(), 80, [], callbacks=[followed, *others])
    assert ours.best_iteration == theirs.best_iteration
    assert ours.num_boosted_rounds() == theirs.num_boosted_rounds()
    assert history["validation"].pop("ndcg_sklearn@3")  # in XGBoost 2.1, the order of callbacks is that of a set
    assert list(history["validation"]) == ["ndcg_sklearn@1", "ndcg_sklearn@5"]
    for name, values in log["valid"].items():
        assert history["validation"][name] == pytest.approx(values, abs=5.1e-7)


def test_continued_training_counts_from_the_first_round():
    first, _ = train(ALONE, data(), 3, [])
    booster, log = train(ALONE, data(), 40, [], xgb_model=first, callbacks=[held_out(rounds=4)])
    history = log["validation"]["ndcg_sklearn@5"]
    assert booster.best_iteration == 3 + int(np.argmax(history))
    assert booster.num_boosted_rounds() == 3 + len(history)


def test_it_can_be_reused_cloned_copied_and_pickled():
    from sklearn.base import clone

    ranker, history = ranked(held_out(rounds=4))
    for estimator in (ranker, clone(ranker), copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker))):
        estimator.fit(X, Y, group=GROUP)
        assert estimator.best_iteration == ranker.best_iteration
        assert estimator.evals_result()["validation"]["ndcg_sklearn@5"] == history
    copied = clone(ranker).callbacks[0]
    assert copied is not ranker.callbacks[0]
    assert copied.X is ranker.callbacks[0].X
    assert ranker.callbacks[0]._run is None  # a copy keeps nothing of the training


class Breaks(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if epoch == 3:
            raise RuntimeError("for another reason")
        return False


def test_it_can_be_used_after_a_training_that_failed():
    stop = held_out(rounds=4)
    expected, _ = train(ALONE, data(), 30, [], callbacks=[held_out(rounds=4)])
    with pytest.raises(RuntimeError, match="for another reason"):
        train(ALONE, data(), 30, [], callbacks=[Breaks(), stop])
    booster, log = train(ALONE, data(), 30, [], callbacks=[stop])
    assert booster.best_iteration == expected.best_iteration
    assert len(log["validation"]["ndcg_sklearn@5"]) == expected.num_boosted_rounds()


def test_unpickling_imports_xgboost():
    script = (
        "import pickle, sys; callback = pickle.load(sys.stdin.buffer); from xgboost.callback import TrainingCallback; "
        "print(isinstance(callback, TrainingCallback))"
    )
    command, saved = [sys.executable, "-c", script], pickle.dumps(held_out())
    done = subprocess.run(command, input=saved, capture_output=True, timeout=90)
    assert done.stdout.split() == [b"True"], done.stderr.decode()


@pytest.mark.parametrize("as_matrix", [False, True])
def test_categories_in_another_order_and_feature_names(as_matrix):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)

    def frame(n, categories):
        drawn = rng.choice(categories, n)
        X = pd.DataFrame({"x": rng.normal(size=n), "c": pd.Categorical(drawn, categories=categories)})
        grade = np.array([{"p": 0, "q": 3, "r": 1, "s": 2}[c] for c in drawn])
        return X, np.clip(grade + np.round(rng.normal(size=n)), 0, 4), np.repeat(np.arange(n // 10), 10)

    recodes = tuple(map(int, xgb.__version__.split(".")[:2])) >= (3, 1)  # older versions use the codes of categories
    (X, y, qid), (Xv, yv, qv) = frame(400, list("pqrs")), frame(200, list("srp" if recodes else "pqrs"))
    data = xgb.DMatrix(Xv, enable_categorical=True) if as_matrix else Xv
    stop = NDCGCallback("sklearn@5", X=data, y=yv, qid=qv, rounds=5)
    ranker = xgb.XGBRanker(n_estimators=30, enable_categorical=True, learning_rate=0.05, callbacks=[stop], **RANKER)
    ranker.fit(X, y, qid=qid)
    assert ranker.best_score == pytest.approx(ndcg_score(yv, ranker.predict(Xv), qid=qv, k=5), abs=1e-12)
    assert ranker.best_score > ndcg_score(yv, np.zeros(200), qid=qv, k=5) + 0.05


@pytest.mark.parametrize("tree_method", ["hist", "exact"])
@pytest.mark.parametrize("as_matrix", [False, True])
def test_missing_values_are_those_of_the_training(as_matrix, tree_method):
    features, held = (np.where(x < -0.5, -9.0, x) for x in (X, XV))
    stop = held_out(X=xgb.DMatrix(held, missing=-9.0) if as_matrix else held)
    ranker, history = ranked(stop, features, 10, {"missing": -9.0, "tree_method": tree_method})
    assert history[-1] == worth(ranker.predict(held))
    read_as_numbers = ranker.get_booster().predict(xgb.DMatrix(held))
    assert abs(history[-1] - ndcg_score(YV, read_as_numbers, group=GV, k=5)) > 1e-3


def test_the_base_margin_of_held_out_rows():
    held = 3 * XV[:, 1]
    stop = held_out(X=xgb.DMatrix(XV, base_margin=held), rounds=4)
    ranker, _ = ranked(stop, base_margin=3 * X[:, 1])
    assert ranker.best_score == worth(ranker.predict(XV, base_margin=held))
    assert abs(ranker.best_score - ndcg_score(YV, ranker.predict(XV), group=GV, k=5)) > 0.02


def test_without_xgb_train_the_held_out_rows_are_a_dmatrix():
    weights = {"query_weight": np.arange(30)}
    rows, callback, log = data(), held_out(X=xgb.DMatrix(XV), **weights), {}
    booster = xgb.Booster(ALONE, [rows])
    callback.before_training(booster)
    booster.update(rows, 0)
    callback.after_iteration(booster, 0, log)
    assert log["validation"]["ndcg_sklearn@5"] == [worth(booster.predict(xgb.DMatrix(XV)), **weights)]


def test_names_of_functions_and_of_two_callbacks_and_repr():
    booster, log = train(ALONE, data(), 12, [], callbacks=[held_out(), held_out(data_name="other")])
    assert log["validation"] == log["other"]
    assert len(log["other"]["ndcg_sklearn@5"]) == booster.num_boosted_rounds() == 12
    assert "best_iteration" not in booster.attributes()  # without rounds it only records
    assert repr(NDCGEval("sklearn@5", k=(10, None))) == "NDCGEval('sklearn', k=(10, None))"
    assert NDCGEval("xgboost@5", k=(10, 3)).__name__ == "ndcg_xgboost@10"
    named = held_out(k=None, rounds=3, data_name="other")
    assert repr(named) == "NDCGCallback('sklearn', data_name='other', rounds=3)"


# -- refusals --------------------------------------------------------------------------------------------------------

PAIR = [1, 0], [0.1, 0.2]
NEW = {"NDCGEval": NDCGEval, "NDCGCallback": lambda flavor: NDCGCallback(flavor, X=X, y=Y, group=GROUP)}
SEVERAL = {"objective": "multi:softprob", "num_class": 5, "nthread": 1, "verbosity": 0}


def evaluated(y, s, group, weight=None):
    return NDCGEval("sklearn")(np.asarray(s), matrix(np.zeros((len(y), 1)), y, group, weight))


def estimated(estimator, **queries):
    model = estimator(n_estimators=2, eval_metric=NDCGEval("sklearn", k=5), **RANKER)
    return model.fit(X, Y, eval_set=[(X, Y)], **queries)


REFUSED = {
    "no queries": (lambda: evaluated(*PAIR, None), r"needs the queries.*qid= or group= to every xgb\.DMatrix",
        lambda: (evaluated(*PAIR, [2]),
            NDCGEval("sklearn")(np.array(PAIR[1]), xgb.DMatrix(np.zeros((2, 1)), PAIR[0], qid=[7, 7])))),
    "scores of classes": (lambda: evaluated([1, 0], [PAIR[1]] * 2, [2]), "one score per row.*ranking", None),
    "weights of rows": (lambda: evaluated(*PAIR, [2], [1, 2]), "weight must have one entry per query, 1.*got 2", None),
    **{f"ties of {name}": (lambda new=new: new("trec_eval"), f"{name} does not support ties='docid'",
        lambda new=new: new("trec_eval[ties=average]")) for name, new in NEW.items()},
    **{f"empty of {name}": (lambda new=new: new(Flavor(empty=math.nan)), f"{name} does not support empty=nan",
        lambda new=new: [new(Flavor(empty=each)) for each in ("skip", 0, 1)]) for name, new in NEW.items()},
    **{estimator.__name__: (lambda estimator=estimator, queries=queries: estimated(estimator, **queries),
        r"one query at a time.*custom_metric=.*NDCGCallback.*QueryRanker",
        lambda: (train(ALONE, data(), 2, [(data(), "train")], custom_metric=NDCGEval("sklearn", k=5)),
            ranked(held_out(), n_estimators=2),
            ndcg_ml.sklearn.QueryRanker(xgb.XGBRanker(**RANKER), early_stopping_rounds=2).fit(X, Y,
                np.repeat(range(30), GROUP)))) for estimator,
        queries in ((xgb.XGBRanker, {"group": GROUP, "eval_group": [GROUP]}), (xgb.XGBRegressor, {}))},
    "no ids": (lambda: NDCGCallback("sklearn", X=X, y=Y), "qid or group must be given",
        lambda: (held_out(group=None, qid=np.arange(len(YV))), held_out(group=GV), held_out(group=[len(YV)]))),
    "fewer rows": (lambda: ranked(held_out(X=XV[1:])), f"X must have one row per label, {len(YV)}; got {len(YV) - 1}",
        None),
    "fewer columns": (lambda: ranked(held_out(X=XV[:, :1])), "X must have the 4 columns of the training data; got 1",
        None),
    "xgb.cv": (lambda: xgb.cv(ALONE, data(), 2, nfold=2, callbacks=[held_out()]), r"xgb\.cv trains several.*NDCGEval",
        lambda: xgb.cv(ALONE, data(), 2, nfold=2, custom_metric=NDCGEval("sklearn"))),
    "several scores": (lambda: train(SEVERAL, data(), 2, [], callbacks=[held_out()]),
        "NDCGCallback needs one score per row", None),
    "a margin": (lambda: ranked(held_out(), base_margin=Y),
        r"must be an xgb\.DMatrix if the training rows have a base margin",
        lambda: ranked(held_out(X=xgb.DMatrix(XV, base_margin=YV)), base_margin=Y)),
    "no xgb.train": (lambda: held_out().before_training(xgb.Booster(ALONE, [data()])),
        r"X must be an xgb\.DMatrix unless xgb\.train does the training",
        lambda: held_out(X=xgb.DMatrix(XV, missing=-9.0, base_margin=YV)).before_training(xgb.Booster(ALONE,
            [data()]))),
    "a name in use": (lambda: train(ALONE, data(), 2, [(data(), "validation")], custom_metric=NDCGEval("sklearn@5"),
        callbacks=[held_out()]), r"already has 'ndcg_sklearn@5'.*'validation'.*another data_name=",
        lambda: train(ALONE, data(), 2, [(data(), "validation")], custom_metric=NDCGEval("sklearn@5"),
            callbacks=[held_out(data_name="another")])),
    "a name twice": (lambda: train(ALONE, data(), 2, [], callbacks=[held_out(), held_out()]), "another data_name=",
        lambda: train(ALONE, data(), 2, [], callbacks=[held_out(), held_out(data_name="another")])),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    call, message, advised = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call()
    if advised is not None:
        advised()


# -- several workers --------------------------------------------------------------------------------------------------

WORKER = """
import json, sys
import numpy as np, xgboost as xgb
from ndcg_ml import Flavor
from ndcg_ml.xgboost import NDCGEval

class Part:  # a DMatrix, possibly without rows
    def __init__(self, y, group, weight):
        self.y, self.weight = np.array(y, np.float32), np.array(weight, np.float32)
        self.ends = np.append(0, np.cumsum(group)).astype(np.uint32) if group is not None else np.array([], np.uint32)
    def num_row(self): return self.y.size
    def get_label(self): return self.y
    def get_weight(self): return self.weight
    def get_uint_info(self, field): return self.ends

todo = json.load(sys.stdin)
with xgb.collective.CommunicatorContext(**todo["tracker"]):
    for case in todo["cases"]:
        try:
            y, s, group, weight = case["parts"][todo["number"]]
            ks = tuple(case["ks"])
            result = NDCGEval(Flavor.parse(case["flavor"]), k=ks)(np.array(s, float), Part(y, group, weight))
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        print(json.dumps(result), flush=True)
"""


def run_two_workers(cases):
    """Return the results or errors of two processes for cases of [flavor, cut-offs, parts of the data]."""
    from xgboost.tracker import RabitTracker

    tracker = RabitTracker(host_ip="127.0.0.1", n_workers=2, sortby="task", timeout=60)
    tracker.start()
    todo = [{"flavor": str(Flavor.parse(f)), "ks": ks, "parts": parts} for f, ks, parts in cases]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    workers = [subprocess.Popen([sys.executable, "-c", WORKER], text=True, **pipes) for _ in range(2)]
    outputs = [[], []]

    def talk(number):
        about = {"tracker": {**tracker.worker_args(), "dmlc_task_id": str(number)}, "number": number, "cases": todo}
        out, error = workers[number].communicate(json.dumps(about), timeout=90)
        outputs[number] = [json.loads(line) for line in out.splitlines() if line.startswith(("[[", '"'))]
        assert len(outputs[number]) == len(cases), error

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worker in workers:
        worker.kill()
    tracker.free()
    return list(zip(*outputs, strict=True))


def part(seed, n_queries, weighted=False, noise=1.0):
    rng = np.random.default_rng(seed)
    group = rng.integers(1, 12, n_queries)
    y = rng.integers(0, 4, group.sum()) * (np.repeat(rng.random(n_queries), group) > 0.2)  # some queries are empty
    s = (y + noise * rng.normal(size=y.size)).round(1)
    return [y.tolist(), s.tolist(), group.tolist(), rng.uniform(0.1, 3, n_queries).tolist() if weighted else []]


def overall_value(flavor, ks, parts):
    y, s, group, weight = ([value for p in parts for value in p[i] or ()] for i in range(4))
    weight = np.array(weight, np.float32) if weight else None
    return ndcg_score(np.array(y, np.float32), s, group=group, query_weight=weight, flavor=flavor, k=ks)


NOTHING = [[], [], None, []]


def test_workers_return_the_value_of_all_queries_and_raise_the_errors_of_each_other():
    values, refusals = cases_of_values(), cases_of_refusals()
    # The last call succeeds, unless an error has left the workers out of step.
    results = run_two_workers([*values, *[case[:3] for case in refusals], *values[:1]])
    check_values(values, results[: len(values)])
    check_refusals(refusals, results[len(values) : -1])
    assert results[-1] == results[0]


def cases_of_values():
    uneven = [part(0, 20, noise=0.1), part(1, 60, noise=3.0)]
    weighted = [part(2, 20, weighted=True), part(3, 60, weighted=True)]
    unimportant = [part(4, 5, weighted=True), part(5, 9, weighted=True)]
    unimportant[0][3], unimportant[1][3] = [0.0] * 5, [0.0, *unimportant[1][3][1:]]
    no_relevant = [[[0, 0, 0], [3, 2, 1], [2, 1], []], part(6, 9)]
    huge = [[[490, 0, 400], [0.1, 0.2, 0.3], [3], []], [[1, 2, 0], [0.3, 0.2, 0.1], [2, 1], []]]
    return [
        (flavor, ks, parts)
        for ks in ([10], [5, 1, None])
        for flavor, parts in [
            ("sklearn", uneven),
            ("xgboost", weighted),
            ("ndcg[empty=skip]", uneven),
            ("ndcg[empty=skip]", no_relevant),
            ("ndcg[gain=exponential,aggregate=micro]", uneven),
            ("ndcg[aggregate=micro]", weighted),
            ("ndcg[gain=exponential,aggregate=micro]", huge),
            ("ndcg[gain=exponential,aggregate=micro]", huge[::-1]),
            ("sklearn", [NOTHING, unimportant[1]]),
            ("ndcg[empty=skip]", [uneven[0], NOTHING]),
            ("sklearn", unimportant),
        ]
    ]


def check_values(cases, found):
    for (flavor, ks, parts), results in zip(cases, found, strict=True):
        expected = overall_value(flavor, tuple(ks), parts)
        for result in results:
            assert isinstance(result, list), result
            assert [name.partition("@")[2] for name, _ in result] == ["" if k is None else str(k) for k in ks[::-1]]
            assert [value for _, value in result] == pytest.approx(list(expected.values())[::-1], abs=1e-12, rel=0)
    (flavor, _, uneven), *_ = cases
    one, other = (ndcg_score(y, s, group=group, k=10) for y, s, group, _ in uneven)
    # XGBoost averages the workers' values of other functions, which would differ here.
    assert abs(overall_value(flavor, 10, uneven) - (one + other) / 2) > 0.05


def cases_of_refusals():
    good, no_scores = part(0, 3), [[1, 0], [0.1, math.nan], [2], []]
    zero = [[1, 0], [1, 0], [2], [0.0]]
    return [
        ("sklearn", [5], [good, no_scores], ("rows of worker 1", "must not hold NaN")),
        ("sklearn", [5], [[[1, 0], [1, 2], None, []], good], ("needs the queries", "rows of worker 0")),
        ("ndcg[empty=raise]", [5], [[[0, 0], [1, 2], [2], []], [[1], [1], [1], []]], ("empty='raise'", "of worker 0")),
        ("sklearn", [5], [good, [[1, 0], [1, 2], [2], [1.0, 2.0]]], ("rows of worker 1", "one entry per query")),
        ("sklearn", [5], [no_scores, no_scores], ("must not hold NaN", "must not hold NaN")),
        ("ndcg[empty=skip]", [5], [[[0, 0], [1, 2], [2], []], NOTHING], ("nothing to average",) * 2),
        ("sklearn", [5], [NOTHING, NOTHING], ("at least one worker must have a query",) * 2),
        ("sklearn", [5], [zero, zero], ("they are 0 on every worker",) * 2),
        ("ndcg[aggregate=micro]", [5], [zero, NOTHING], ("they are 0 on every worker",) * 2),
    ]


def check_refusals(cases, found):
    for (*_, messages), errors in zip(cases, found, strict=True):
        for message, error in zip(messages, errors, strict=True):
            assert isinstance(error, str), error
            assert message in error
            assert "ValueError" in error or "EmptyQueryError" in error
