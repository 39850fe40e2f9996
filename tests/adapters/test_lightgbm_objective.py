"""The LightGBM objective: against a lambdarank in plain Python, and against LightGBM's own trees."""

from __future__ import annotations

import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("sklearn")

import copy
import inspect
import math
import pickle
import subprocess
import sys
import threading

import lightgbm as lgb
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file

from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.lightgbm import NDCGObjective, query_folds
from ndcg_ml.lightgbm import objective as module

PARAMS = {"verbosity": -1, "num_leaves": 7, "min_data_in_leaf": 5, "num_threads": 1, "metric": "None"}


def make(seed, n_queries=60, grades=5, docs=(1, 25)):
    rng = np.random.default_rng(seed)
    group = rng.integers(*docs, n_queries)
    n = int(group.sum())
    X = rng.normal(size=(n, 4)).round(2)
    y = np.clip(np.round(X[:, 0] + rng.normal(size=n)), 0, grades - 1)
    return X, y, group


def dataset(X, y, group, weight=None, **also):
    return lgb.Dataset(X, y, group=group, weight=weight, params={"verbosity": -1}, **also)


def call(objective, y, s, group, weight=None):
    weight = None if weight is None else np.asarray(weight, np.float32)
    return objective(np.asarray(y, float), np.asarray(s, float), weight, np.asarray(group))


# -- the gradients, from the formula -------------------------------------------------------------------------------


def slow_lambdas(scores, gains, discount, ideal, sigmoid, truncation, norm):
    """Gradient and hessian of one query whose rows stand in the order in which they would rank if tied."""
    n = len(scores)
    gradient, hessian, total = [0.0] * n, [0.0] * n, 0.0
    if ideal <= 0:
        return gradient, hessian
    ranking = sorted(range(n), key=lambda row: -scores[row])
    for a in range(n):
        for b in range(a + 1, n):
            if truncation is not None and a >= truncation:
                continue
            better, worse = sorted((ranking[a], ranking[b]), key=lambda row: -gains[row])
            weight = (gains[better] - gains[worse]) * abs(discount(a + 1) - discount(b + 1)) / ideal
            apart = scores[better] - scores[worse]
            if norm and max(scores) != min(scores):
                weight /= 0.01 + abs(apart)
            p = 1 / (1 + math.exp(sigmoid * apart))
            gradient[better] -= sigmoid * weight * p
            gradient[worse] += sigmoid * weight * p
            for row in (better, worse):
                hessian[row] += sigmoid**2 * weight * p * (1 - p)
            total += 2 * sigmoid * weight * p
    factor = math.log2(1 + total) / total if norm and total > 0 else 1.0
    return [g * factor for g in gradient], [h * factor for h in hessian]


def best_first(gains, discount, depth):
    return sum(gain * discount(rank) for rank, gain in enumerate(sorted(gains, reverse=True)[:depth], start=1))


def expected(y, s, group, gain, discount=lambda r: 1 / math.log2(r + 1), ideal=best_first, tied=None, **options):
    """All queries; `tied` sorts the rows of a query into the order in which they rank if tied."""
    gradient, hessian, start = np.zeros(len(y)), np.zeros(len(y)), 0
    for size in group:
        rows = list(range(start, start + size))
        rows = rows if tied is None else tied(rows, y)
        gains = [gain(y[row]) for row in rows]
        divisor = ideal([gain(v) for v in y[start : start + size]], discount, options["truncation"])
        gradient[rows], hessian[rows] = slow_lambdas([s[row] for row in rows], gains, discount, divisor, **options)
        start += size
    return gradient, hessian


def exponential(y):
    return 2**y - 1


def linear(y):
    return y


def given(gains, discount, depth):
    return sum(gain * discount(rank) for rank, gain in enumerate(gains[:depth], start=1))


def top_grade(gains, discount, depth):
    return sum(4.0 * discount(rank) for rank in range(1, (depth or len(gains)) + 1))


CASES = {
    "lightgbm": ("lightgbm", {"gain": exponential}),
    "sklearn": ("sklearn", {"gain": linear}),
    "binary": (Flavor(gain="binary"), {"gain": lambda y: float(y > 0)}),
    "table": (Flavor(gain=(0, 0, 5, 1, 9)), {"gain": lambda y: (0, 0, 5, 1, 9)[int(y)]}),  # a table that falls
    "callable": (Flavor(gain=lambda y: y * y), {"gain": lambda y: y * y}),
    "reciprocal": (Flavor(discount="reciprocal"), {"gain": linear, "discount": lambda r: 1 / r}),
    "ln": (Flavor(discount="ln"), {"gain": linear, "discount": lambda r: 1 / math.log(r + 1)}),
    "jarvelin": (
        Flavor(discount="jarvelin", discount_base=3.0),
        {"gain": linear, "discount": lambda r: 1 / max(1.0, math.log(r, 3))},
    ),
    "discount": (Flavor(discount=lambda r: 0.8**r), {"gain": linear, "discount": lambda r: 0.8**r}),
    "recall": (Flavor(ideal="recall"), {"gain": linear}),
    "uncut ideal": (Flavor(ideal_depth="all"), {"gain": linear, "ideal": lambda g, d, depth: best_first(g, d, None)}),
    "max": (Flavor(ideal="max", max_grade=4), {"gain": linear, "ideal": top_grade}),
    "given": (Flavor(ideal="given"), {"gain": linear, "ideal": given}),
    "last": (Flavor(ties="last"), {"gain": linear, "tied": lambda rows, y: rows[::-1]}),
    "best": (Flavor(ties="best"), {"gain": linear, "tied": lambda rows, y: sorted(rows, key=lambda r: -y[r])}),
    "worst": (Flavor(ties="worst"), {"gain": linear, "tied": lambda rows, y: sorted(rows, key=lambda r: y[r])}),
}


@pytest.mark.parametrize("options", [(1.0, None, True), (1.0, 4, True), (2.5, 4, False), (0.3, 1, True)])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_formula(name, options):
    flavor, formula = CASES[name]
    options = dict(zip(("sigmoid", "truncation", "norm"), options, strict=True))
    _, y, group = make(1, 25)
    rng = np.random.default_rng(2)
    objective = NDCGObjective(flavor, **options)
    # All tied as in the first round, some tied, and none.
    for s in (np.zeros(len(y)), rng.integers(0, 4, len(y)).astype(float), rng.normal(size=len(y))):
        gradients = expected(y, s, group, **formula, **options)
        for ours, theirs in zip(call(objective, y, s, group), gradients, strict=True):
            # LightGBM's table of the sigmoid is good to 25 / 2^20 of the exponent.
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=3e-5 * np.abs(theirs).max())
            assert np.abs(theirs).max() > 0.01


@pytest.mark.parametrize("norm", [False, True])
def test_scores_that_are_far_apart(norm):
    _, y, group = make(1, 25)
    s = np.random.default_rng(2).normal(size=len(y))
    for size in (1e3, 1e300):
        gradient, hessian = call(NDCGObjective("lightgbm", norm=norm), y, size * s, group)
        assert np.isfinite(gradient).all()
        assert np.isfinite(hessian).all()
        assert (hessian >= 0).all()
    gradient, _ = call(NDCGObjective("lightgbm", norm=False), [0, 1], [1e3, 0], [2])
    assert gradient == pytest.approx([1 - 1 / math.log2(3), 1 / math.log2(3) - 1])
    gradient, _ = call(NDCGObjective("lightgbm", norm=False), [1, 0], [1e3, 0], [2])
    assert gradient == pytest.approx([0, 0], abs=1e-9)


def test_gradients_do_not_depend_on_how_queries_are_laid_out(monkeypatch):
    _, y, group = make(3, 50)
    s = np.random.default_rng(4).normal(size=len(y)).round(1)
    objective = NDCGObjective("lightgbm", truncation=6)
    together = np.array(call(objective, y, s, group))
    starts = np.cumsum(group) - group
    parts = [slice(a, a + n) for a, n in zip(starts, group, strict=True)]
    alone = np.concatenate([call(objective, y[p], s[p], [p.stop - p.start]) for p in parts], axis=1)
    assert np.array_equal(alone, together)
    monkeypatch.setattr(module, "_DOCUMENTS", 60)
    assert np.array_equal(call(objective, y, s, group), together)
    same_size = np.full(len(y) // 5, 5)
    rows = slice(0, same_size.sum())
    wide = np.array(call(objective, y[rows], s[rows], same_size))
    monkeypatch.setattr(module, "_DOCUMENTS", 1)
    assert np.array_equal(call(objective, y[rows], s[rows], same_size), wide)


def test_threads_give_the_same_gradients():
    rng = np.random.default_rng(5)
    group = rng.integers(1, 60, 6000)
    y, s = rng.integers(0, 5, group.sum()), rng.normal(size=group.sum())
    one, two = (np.array(call(NDCGObjective("lightgbm@5", threads=n), y, s, group)) for n in (1, 2))
    assert np.array_equal(one, two)


def test_queries_with_nothing_to_order_have_no_gradient():
    y = [3, 0, 0, 2, 2, 1, 0, 1]
    group = [1, 2, 0, 2, 3]  # a single document, no relevant one, no document, all alike
    for flavor in ("lightgbm", "sklearn", Flavor(empty=math.nan), Flavor(empty="skip")):
        for s in (np.zeros(8), np.arange(8.0)):
            gradient, hessian = call(NDCGObjective(flavor), y, s, group)
            assert not gradient[:5].any()
            assert not hessian[:5].any()
            assert gradient[5] < 0 < gradient[6]
            assert (hessian[5:] > 0).all()
    gradient, hessian = call(NDCGObjective("lightgbm"), [0, 0], [1, 2], [2])
    assert not gradient.any()
    assert not hessian.any()


def test_weights_multiply_and_scores_are_left_alone():
    _, y, group = make(6)
    rng = np.random.default_rng(7)
    s, weight = rng.normal(size=len(y)), rng.uniform(0.1, 3, len(y)).astype(np.float32)
    kept = s.copy()
    objective = NDCGObjective("lightgbm")
    plain, weighted = call(objective, y, s, group), call(objective, y, s, group, weight)
    assert np.array_equal(s, kept)
    for one, other in zip(plain, weighted, strict=True):
        assert one.dtype == other.dtype == np.float32
        assert np.array_equal(one * weight, other)


def test_gradients_of_a_query_sum_to_nothing_and_point_at_better_documents():
    s = np.zeros(4)
    gradient, _ = call(NDCGObjective("sklearn"), [0, 3, 1, 0], s, [4])
    assert gradient.sum() == pytest.approx(0, abs=1e-6)
    assert gradient[1] < gradient[2] < 0
    assert (gradient[[0, 3]] > 0).all()


@pytest.mark.parametrize("padded", [[4], [4, 9]])
def test_a_document_at_minus_infinity_takes_part_in_no_pair(padded):
    objective = NDCGObjective(Flavor(ideal="max", max_grade=3, k=3))
    rest = [0.0] * (sum(padded) - 4)
    y, s = [0, 3, 1, 2, *rest], [0.3, 0.1, 0.2, -np.inf, *rest]
    gradient, hessian = call(objective, y, s, padded)
    assert gradient[3] == hessian[3] == 0
    without = call(objective, [0, 3, 1], [0.3, 0.1, 0.2], [3])
    assert np.array_equal(gradient[:3], without[0])
    assert np.array_equal(hessian[:3], without[1])
    gradient, hessian = call(objective, [1, 0], [-np.inf, -np.inf], [2])
    assert not gradient.any()
    assert not hessian.any()


def test_dropped_negative_and_unjudged_documents():
    s = np.array([0.4, 0.3, 0.2, 0.1])
    whole = np.array(call(NDCGObjective("sklearn"), [0, 2, 1], s[[0, 1, 3]], [3]))
    cases = {"negative": ("drop", -1.0), "unjudged": ("condense", math.nan)}
    for switch, (rule, label) in cases.items():
        found = np.array(call(NDCGObjective(Flavor(**{switch: rule})), [0, 2, label, 1], s, [4]))
        assert np.array_equal(found[:, [0, 1, 3]], whole)
        assert not found[:, 2].any()
        zero = np.array(call(NDCGObjective(Flavor(**{switch: "zero"})), [0, 2, label, 1], s, [4]))
        assert np.array_equal(zero, call(NDCGObjective("sklearn"), [0, 2, 0, 1], s, [4]))
        assert zero[0, 2] > 0
    gradient, _ = call(NDCGObjective(Flavor(negative="allow")), [0, 2, -1, 1], s, [4])
    assert gradient[2] > zero[0, 2]
    gradient, _ = call(NDCGObjective(Flavor(negative="allow")), [0, -2, -1], s[:3], [3])  # an ideal below 0 is empty
    assert not gradient.any()


def test_short_lists_that_score_nothing_have_no_gradient():
    y, s, group = [1, 0, 1, 0, 0], [0.1, 0.2, 0.1, 0.2, 0.3], [2, 3]
    plain, _ = call(NDCGObjective(Flavor(k=3)), y, s, group)
    short, _ = call(NDCGObjective(Flavor(k=3, short_lists="zero")), y, s, group)
    assert plain[:2].all()
    assert not short[:2].any()
    assert np.array_equal(short[2:], plain[2:])


def test_micro_divides_every_query_by_one_ideal():
    y, s, group = [4, 0, 1, 0, 0], [0.1, 0.2, 0.1, 0.2, 0.3], [2, 2, 1]
    macro, _ = call(NDCGObjective("sklearn", norm=False), y, s, group)
    micro, _ = call(NDCGObjective(Flavor(aggregate="micro"), norm=False), y, s, group)
    assert macro[0] == macro[2]
    assert micro[:4] == pytest.approx(macro[:4] * np.array([4, 4, 1, 1]) / 2.5, rel=1e-6)


def test_scores_may_be_equal_in_float32_alone():
    y, s = [0, 1, 2], 1 + np.array([0, 1e-12, 2e-12])
    tied, _ = call(NDCGObjective(Flavor(score_dtype="float32")), y, s, [3])
    assert np.array_equal(tied, call(NDCGObjective("sklearn"), y, np.ones(3), [3])[0])
    assert not np.array_equal(tied, call(NDCGObjective("sklearn"), y, s, [3])[0])


def test_grades_as_large_as_float64_holds():
    gradient, hessian = call(NDCGObjective("lightgbm"), [1000, 999, 0], [0, 0, 0], [3])
    assert np.isfinite([gradient, hessian]).all()
    assert gradient[0] < 0 < gradient[2]
    with pytest.raises(ValueError, match="gains and ideals that float64 can hold; got labels up to 2000"):
        call(NDCGObjective("lightgbm"), [2000, 999, 0], [0, 0, 0], [3])


# -- LightGBM's own trees ------------------------------------------------------------------------------------------


def trees(booster):
    """Split features and thresholds of every tree, depth first."""
    found = []

    def walk(node):
        if "split_feature" in node:
            found.append((node["split_feature"], node["threshold"]))
            walk(node["left_child"])
            walk(node["right_child"])
        else:
            found.append("leaf")

    for tree in booster.dump_model()["tree_info"]:
        walk(tree["tree_structure"])
    return found


def same_trees(data, objective, builtin=(), rounds=30, params=()):
    """Train with LightGBM's lambdarank and with this objective; assert that the models are the same."""
    theirs, ours = (
        lgb.train({**PARAMS, **dict(params), **own}, dataset(*data), rounds)
        for own in ({"objective": "lambdarank", **dict(builtin)}, {"objective": objective})
    )
    assert len(trees(ours)) > 5 * rounds
    assert trees(ours) == trees(theirs)
    X = data[0]
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X, raw_score=True), rtol=0, atol=1e-4)


@pytest.fixture(scope="module")
def lightgbm_lambdarank(data_dir):
    folder = data_dir / "lightgbm_lambdarank"
    X, y = load_svmlight_file(str(folder / "rank.train"))
    return X.toarray(), y, np.loadtxt(folder / "rank.train.query", dtype=int)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("params", [{}, {"boost_from_average": False, "bagging_fraction": 0.7, "bagging_freq": 1}])
def test_the_trees_are_lightgbms_own_on_real_data(lightgbm_lambdarank, weighted, params):
    X, y, group = lightgbm_lambdarank
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y)) if weighted else None
    data = (X, y, group, weight)
    same_trees(data, NDCGObjective("lightgbm", truncation=30), params={**params, "num_leaves": 31})


@pytest.mark.parametrize(
    ("flavor", "options", "builtin"),
    [
        ("lightgbm", {"truncation": 30}, {}),
        ("lightgbm", {"truncation": 5}, {"lambdarank_truncation_level": 5}),
        ("lightgbm", {"truncation": 30, "norm": False}, {"lambdarank_norm": False}),
        ("lightgbm", {"truncation": 30, "sigmoid": 2.0}, {"sigmoid": 2.0}),
        ("lightgbm[gain=0|1|1|5|6]", {"truncation": 30}, {"label_gain": [0, 1, 1, 5, 6]}),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_trees_are_lightgbms_own_under_its_settings(flavor, options, builtin, weighted):
    X, y, group = make(8, 80, docs=(1, 50))
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y)) if weighted else None
    same_trees((X, y, group, weight), NDCGObjective(flavor, **options), builtin)


@pytest.mark.parametrize("flavor", ["lightgbm@5", "lightgbm", "sklearn@3", "lightgbm@2[gain=binary]"])
def test_by_default_the_trees_are_those_of_lightgbm_params(flavor):
    same_trees(make(9, 80), NDCGObjective(flavor), Flavor.parse(flavor).lightgbm_params(evaluate=False))


def test_both_interfaces_grow_the_same_model():
    X, y, group = make(10)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    objective = NDCGObjective(Flavor(discount="reciprocal"))
    booster = lgb.train({**PARAMS, "objective": objective}, dataset(X, y, group, weight), 10)
    model = lgb.LGBMRanker(
        objective=objective, n_estimators=10, num_leaves=7, min_child_samples=5, verbosity=-1, n_jobs=1
    )
    fitted = clone(model).fit(X, y, group=group, sample_weight=weight)
    assert np.array_equal(fitted.predict(X), booster.predict(X))
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X), booster.predict(X))
    by_hand = lgb.Booster(PARAMS, dataset(X, y, group, weight))
    for _ in range(10):
        by_hand.update(fobj=objective)
    assert np.array_equal(by_hand.predict(X), booster.predict(X))


def test_lightgbm_accepts_the_signature():
    assert list(inspect.signature(NDCGObjective("sklearn")).parameters) == ["a", "b", "weight", "group"]


def test_the_gain_that_is_trained_is_the_one_that_is_evaluated():
    """One grade gains far more under the exponential gain, and other features tell it than tell the rest."""
    flavor = Flavor(discount="reciprocal", k=10, empty="skip")

    def data(seed, n_queries):
        rng = np.random.default_rng(seed)
        group = np.full(n_queries, 30)
        X = rng.normal(size=(30 * n_queries, 6))
        noise = rng.normal(size=(2, len(X)))
        y = np.digitize(X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 0.6 * noise[0], [0, 0.6, 1.2, 1.8, 2.4]).astype(float)
        y[X[:, 3] + noise[1] > 2.6] = 8
        return X, y, group

    for seed in range(3):
        Xv, yv, gv = data(100 + seed, 100)
        values = [
            ndcg_score(
                yv, lgb.train({**PARAMS, **own}, dataset(*data(seed, 100)), 40).predict(Xv), group=gv, flavor=flavor
            )
            for own in ({"objective": NDCGObjective(flavor)}, {"objective": "lambdarank"})
        ]
        assert values[0] > values[1] + 0.02


# -- what is kept, copied and shared -------------------------------------------------------------------------------


def test_the_cache_sees_changed_labels_and_groups():
    objective = NDCGObjective("sklearn")
    y, s = np.array([2.0, 0, 1, 0]), np.array([0.1, 0.2, 0.3, 0.4])
    first = call(objective, y, s, [2, 2])[0]
    y[:] = y[::-1].copy()  # the same array object with other labels
    for labels, group in [(y, [2, 2]), (y, [4])]:
        found = call(objective, labels, s, group)[0]
        assert np.array_equal(found, call(NDCGObjective("sklearn"), labels, s, group)[0])
        assert not np.array_equal(found, first)
    call(objective, y, -s, [4])
    assert len(objective._cache) == 3


def test_pickle_and_copy_leave_the_cache_behind():
    objective = NDCGObjective("sklearn@5", sigmoid=2, truncation=4, norm=False, threads=1)
    X, y, group = make(11)
    lgb.train({**PARAMS, "objective": objective}, dataset(X, y, group), 2)
    data = dataset(X, y, group).construct()
    first = objective(X[:, 1], data)
    for again in (pickle.loads(pickle.dumps(objective)), copy.deepcopy(objective)):
        assert len(again._cache) == 0
        assert repr(again) == repr(objective)
        assert np.array_equal(again(X[:, 1], data), first)
        assert np.array_equal(call(again, y, X[:, 1], group), first)
    assert repr(objective) == "NDCGObjective('sklearn@5', sigmoid=2.0, truncation=4, norm=False)"


def test_threads_may_share_one_object():
    objective = NDCGObjective("lightgbm@5")
    problems = [make(seed, 20) for seed in range(6)]
    wrong = []

    def work(X, y, group):
        expected = call(NDCGObjective("lightgbm@5"), y, X[:, 1], group)
        wrong.extend(group for _ in range(20) if not np.array_equal(call(objective, y, X[:, 1], group), expected))

    threads = [threading.Thread(target=work, args=p) for p in problems]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# -- what is refused -----------------------------------------------------------------------------------------------


def test_the_truncation_follows_the_flavor():
    assert NDCGObjective("lightgbm@10").truncation == 13
    assert NDCGObjective("lightgbm").truncation is None
    assert NDCGObjective("lightgbm@10", truncation=None).truncation is None
    assert NDCGObjective("lightgbm@10", truncation=5).truncation == 5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"flavor": "trec_eval"}, ValueError, r"ties='docid'.*replace\(ties='average'\)"),
        ({"flavor": Flavor(ideal="local")}, ValueError, "ideal='local': its ideal changes with the ranking"),
        ({"flavor": Flavor(ideal="recall", recall_depth=5)}, ValueError, "recall_depth=5: its ideal changes"),
        ({"flavor": Flavor(discount="none")}, ValueError, "discount='none'.*every gradient would be 0"),
        ({"flavor": 10}, TypeError, "flavor must be a Flavor"),
        ({"sigmoid": 0}, ValueError, "sigmoid must be a finite number > 0; got 0"),
        ({"sigmoid": math.inf}, ValueError, "sigmoid must be a finite number > 0; got inf"),
        ({"sigmoid": "1"}, TypeError, "sigmoid must be one number > 0; got '1' of type str"),
        ({"truncation": 0}, ValueError, "truncation must be an integer >= 1, or None for every pair; got 0"),
        ({"truncation": 2.0}, TypeError, "truncation must be an integer >= 1"),
        ({"norm": 1}, TypeError, "norm must be True or False; got 1 of type int"),
        ({"threads": 0}, ValueError, "threads must be an integer >= 1"),
    ],
)
def test_options_are_checked_when_it_is_made(options, error, message):
    with pytest.raises(error, match=message):
        NDCGObjective(**{"flavor": "sklearn", **options})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [0.1, 0.2], None, None), r"needs the sizes of the queries.*lgb\.Dataset"),
        (([1, 0], [0.1, math.nan], None, [2]), "y_score must not hold NaN.*got 1 of 2, the first at row 1"),
        (([1, 0], [math.inf, 0.2], None, [2]), r"y_score must not hold NaN or \+inf.*the first at row 0"),
        (([1, 0], [[0.1, 0.2], [0.3, 0.4]], None, [2]), "one score per row.*num_class"),
        (([1, 0], [0.1, 0.2, 0.3], None, [2]), r"y_score must have the shape of y_true, \(2,\); got \(3,\)"),
        (([1, -1], [0.1, 0.2], None, [2]), "y_true must be >= 0"),
        (([1, math.nan], [0.1, 0.2], None, [2]), "y_true must not hold NaN"),
        (([1, 0], [0.1, 0.2], None, [3]), "group must sum to the number of rows, 2"),
        (([1, 0], [0.1, 0.2], [1.0], [2]), "weight must have one entry per row, 2"),
    ],
)
def test_what_has_no_gradient_is_refused(arguments, message):
    y, s, weight, group = (None if a is None else np.asarray(a) for a in arguments)
    with pytest.raises(ValueError, match=message):
        NDCGObjective("sklearn")(y, s, weight, group)


def test_empty_queries_are_refused_where_the_flavor_says_so():
    with pytest.raises(ValueError, match="empty='raise'"):
        call(NDCGObjective(Flavor(empty="raise")), [0, 0], [1, 0], [2])


def test_a_data_set_without_groups_is_refused():
    X, y, _ = make(12)
    with pytest.raises(ValueError, match=r"NDCGObjective needs the sizes.*lgb\.Dataset"):
        lgb.train({**PARAMS, "objective": NDCGObjective("sklearn")}, dataset(X, y, None), 2)


def test_positions_are_refused():
    X, y, group = make(13)
    data = dataset(X, y, group, position=np.concatenate([np.arange(n) for n in group]))
    with pytest.raises(ValueError, match="cannot correct for the positions"):
        lgb.train({**PARAMS, "objective": NDCGObjective("sklearn")}, data, 2)


def test_folds_that_cut_queries_are_refused_and_whole_ones_are_not():
    X, y, group = make(14)
    objective = NDCGObjective("lightgbm", truncation=30)
    params = {**PARAMS, "objective": objective, "metric": "ndcg", "eval_at": [5]}
    with pytest.raises(ValueError, match=r"the folds cut \d+ of the 60 queries: .*folds=query_folds\(group\)"):
        lgb.cv(params, dataset(X, y, group), 3)
    folds = query_folds(group, 3)
    ours, theirs = (
        lgb.cv({**params, "objective": chosen}, dataset(X, y, group), 5, folds=folds)
        for chosen in (objective, "lambdarank")
    )
    assert ours == theirs


def test_what_lightgbm_is_not_needed_for_does_not_load_it():
    code = (
        "import sys; from ndcg_ml.lightgbm import NDCGObjective; import numpy as np; "
        "NDCGObjective('sklearn')(np.array([1.0, 0]), np.zeros(2), None, np.array([2])); "
        "assert not {'lightgbm', 'sklearn', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
