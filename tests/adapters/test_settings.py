"""A flavor as parameters of LightGBM, XGBoost and CatBoost: their own metric is the flavor, or it is refused."""

import pytest

for needed in ("lightgbm", "xgboost", "catboost"):
    pytest.importorskip(needed)

import ast
import importlib.metadata
import math
import re

import catboost as cb
import lightgbm as lgb
import numpy as np
import xgboost as xgb
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import examples, flavors

import ndcg_ml
from ndcg_ml import Flavor, ndcg_score


def stable(value):
    """Return the id of a case without the addresses of functions, so that it is the same in every process."""
    return re.sub(r" at 0x\w+", "", str(value))


LIBRARIES = {"lightgbm": 1e-9, "xgboost": 1e-5, "catboost": 1e-6}
# Before 3.0.3, XGBoost's metric ignores ndcg_exp_gain=False, so the parameters are refused.
LINEAR_XGBOOST = tuple(int(part) for part in xgb.__version__.split(".")[:3]) >= (3, 0, 3)


def make(seed, top=4, sizes=(1, 1, 2, 5, 9, 14, 3, 50)):
    """Return queries of 1 to 50 documents, one of them without relevant ones; rounded features give tied scores."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.array(sizes))
    query = np.repeat(np.arange(len(group)), group)
    X = rng.normal(size=(len(query), 3)).round(0)
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(query)) + 0.5), 0, top)
    y[query == np.flatnonzero(group == 5)[0]] = 0
    return X, y, group, query


def measured(library, params, data, rounds=3):
    """Return the library's metrics of the last round, and its predictions."""
    X, y, group, query = data
    log = {}
    if library == "lightgbm":
        params = {"verbosity": -1, "num_threads": 1, "num_leaves": 4, "min_data_in_leaf": 5, **params}
        rows = lgb.Dataset(X, y, group=group, params={"verbosity": -1})
        model = lgb.train(params, rows, rounds, valid_sets=[rows], callbacks=[lgb.record_evaluation(log)])
        return {name: history[-1] for name, history in log.get("training", {}).items()}, model.predict(X)
    if library == "xgboost":
        rows = xgb.DMatrix(X, y, qid=query)
        params = {"nthread": 1, "max_depth": 2, **params}
        model = xgb.train(params, rows, rounds, evals=[(rows, "rows")], evals_result=log, verbose_eval=False)
        return {name: history[-1] for name, history in log.get("rows", {}).items()}, model.predict(rows)
    rows = cb.Pool(X, y, group_id=query)
    alike = {"iterations": rounds, "depth": 2, "thread_count": 1, "random_seed": 0, "bootstrap_type": "No"}
    quiet = {"verbose": False, "allow_writing_files": False, "use_best_model": False}
    model = cb.CatBoost({**alike, **quiet, **params}).fit(rows, eval_set=rows)
    last = {name: history[-1] for name, history in model.get_evals_result()["validation"].items()}
    # CatBoost's log leaves the default denominator out of the name.
    wanted = params.get("eval_metric", "").replace(";denominator=LogPosition", "")
    return {name: value for name, value in last.items() if name == wanted}, model.predict(rows)


def params(library, flavor, **options):
    return getattr(getattr(ndcg_ml, library), f"{library}_params")(flavor, **options)


def check(library, flavor, data):
    printed, scores = measured(library, params(library, flavor), data)
    (value,) = printed.values()
    expected = ndcg_score(data[1], scores, group=data[2], flavor=flavor)
    assert value == pytest.approx(expected, abs=LIBRARIES[library])
    return value


ACCEPTED = {
    "lightgbm": [
        {}, {"k": 5}, {"k": 10**12}, {"gain": "linear", "k": 5}, {"gain": "judged", "k": 5}, {"max_grade": 900, "k": 5},
        {"gain": (0, 1, 1, 5, 5.5), "k": 5}, {"gain": (-1, -0.5, 0, 2, 3), "k": 5},
        {"gain": (2, 3, 4, 5, 6, 7, 8), "max_grade": 4, "k": 5}, {"gain": "linear", "max_grade": 4.5, "k": 5},
        {"discount": "ln", "ideal": "global", "k": 5}, {"ideal_depth": "all", "short_lists": "zero"},
    ],
    "xgboost": [
        {"k": None}, {"k": 5}, {"k": 10**12}, {"gain": "linear", "k": 5}, {"gain": "linear", "k": None, "empty": 0},
        {"empty": 0, "k": 5}, {"score_dtype": "float64", "k": 5}, {"discount": "ln", "ideal": "global", "k": 5},
    ],
    "catboost": [
        {}, {"k": 5}, {"k": 1}, {"k": 10**12}, {"gain": "exponential", "k": 5}, {"discount": "reciprocal", "k": 5},
        {"discount": "ln", "ideal": "global", "negative": "raise", "k": 5},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("library", "changes"), [(library, changes) for library, rows in ACCEPTED.items() for changes in rows], ids=stable
)
def test_the_librarys_metric_is_the_flavor(library, changes):
    flavor = Flavor.preset(library, **changes)
    if library == "xgboost" and flavor.gain == "linear" and not LINEAR_XGBOOST:
        pytest.skip(f"XGBoost {xgb.__version__} has no linear metric")
    values = {check(library, flavor, make(seed)) for seed in range(2)}
    assert values - {0.0, 1.0} or flavor.gain == "judged"


# The fix that a message suggests; the test applies it.
FIX = re.compile(r"flavor\.replace\(([^()]*)\)")


@examples(60)
@given(flavors(), st.integers(0, 3))
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_suggested_fixes_lead_to_a_flavor_that_the_library_computes(library, flavor, seed):
    for _ in range(12):
        try:
            params(library, flavor)
        except ValueError as error:
            message = str(error)
        else:
            break
        if "max_grade must be" in message or "whose gain is beyond" in message:
            flavor = flavor.replace(max_grade=4)
            continue
        fix = ast.parse(f"f({FIX.search(message)[1]})", mode="eval").body.keywords
        switch, shown = fix[0].arg, getattr(flavor, fix[0].arg)
        assert f"{switch}=" in message.split(":")[0]
        assert callable(shown) or repr(shown) in message.split(": it ")[0]
        flavor = flavor.replace(**{change.arg: ast.literal_eval(change.value) for change in fix})
    else:
        pytest.fail(f"the suggested fixes do not end: {flavor}")
    top = min(4, 4 if flavor.max_grade is None else flavor.max_grade)
    if isinstance(flavor.gain, tuple):
        top = min(top, len(flavor.gain) - 1)
    assume(top >= 1)  # CatBoost refuses labels that are all equal
    check(library, flavor, make(seed, math.floor(top)))


REFUSED = [
    ("lightgbm", {"ties": "average"}, "ties='average': it ranks tied rows in the order of the data.*ties='first'"),
    ("lightgbm", {"empty": 0}, "empty=0.0: it gives a query without a relevant document the score 1.*empty=1.0"),
    ("lightgbm", {"aggregate": "micro"}, "aggregate='micro': it takes the mean.*aggregate='macro'"),
    ("lightgbm", {"ideal": "local"}, "ideal='local': it divides by the DCG of the best order.*ideal='recall'"),
    ("lightgbm", {"recall_depth": 5}, "recall_depth=5: it.*recall_depth=None"),
    ("lightgbm", {"ideal_depth": "all", "k": 5}, "ideal_depth='all': it cuts off the ideal at the same rank"),
    ("lightgbm", {"short_lists": "zero", "k": 5}, "short_lists='zero': it scores a query with fewer than k .*='score'"),
    ("lightgbm", {"gain": (0, 1, 3), "off_table": "zero"}, "off_table='zero': it refuses a label beyond its table"),
    ("lightgbm", {"score_dtype": "float32"}, "score_dtype='float32': it compares scores in float64"),
    ("lightgbm", {"discount": "jarvelin"}, r"discount='jarvelin': it discounts by 1/log2\(rank \+ 1\).*'log2'"),
    ("lightgbm", {"negative": "allow"}, "negative='allow': it refuses negative labels.*negative='raise'"),
    ("lightgbm", {"unjudged": "zero"}, "unjudged='zero': it reads a NaN label as grade 0"),
    ("lightgbm", {"gain": (0, 3, 1)},
        r"gain=\(0.0, 3.0, 1.0\): .* the gain 1.0 of grade 2 is below the gain 3.0 of grade 1"),
    ("lightgbm", {"gain": math.log}, r"gain\(0.0\) failed: .*max_grade=\.\.\."),
    ("lightgbm", {"gain": {1: 1, 2: 3}.__getitem__}, r"LightGBM's table, 0 to 30; .*KeyError: 0\.0\. Use"),
    *(("lightgbm", {"gain": lambda grade, bad=bad: np.exp(bad * grade)},
        rf"must return a finite number; gain\({at}.0\) is {got}\. Use") for bad, at,
        got in ((math.nan, 0, "nan"), (999, 1, "inf"))),
    *(("lightgbm", {"max_grade": top}, f"max_grade must be from 0 to 9999 for .*got {top}.0") for top in (-1, 10000)),
    ("lightgbm", {"max_grade": 2000}, "gain='exponential' up to grade 2000, whose gain is beyond 1e"),
    ("xgboost", {"empty": "skip"}, "empty='skip': it gives .* the score 1, or 0 under 'ndcg@k-'"),
    ("xgboost", {"gain": "binary"}, "gain='binary': it has the gains.*gain='exponential'"),
    ("xgboost", {"gain": (0, 1), "off_table": "zero"}, r"replace\(gain='exponential', off_table='raise'\)"),
    ("xgboost", {"negative": "zero"}, "negative='zero': it passes negative labels through the linear gain"),
    ("xgboost", {"negative": "allow"}, "negative='allow' with gain='exponential': under that gain it refuses"),
    ("xgboost", {"unjudged": "condense"}, "unjudged='condense': it refuses a NaN label"),
    ("xgboost", {"ideal_depth": "all"}, "ideal_depth='all': it"),  # the preset has a cut-off
    ("catboost", {"ties": "first"}, "ties='first': it ranks tied rows by ascending gain.*ties='worst'"),
    ("catboost", {"gain": "binary"}, "gain='binary': it has the gains y and 2.y - 1.*gain='linear'"),
    ("catboost", {"discount": "none"}, r"discount='none': it discounts by 1/log2\(rank \+ 1\) or by 1/rank"),
    ("catboost", {"negative": "drop"}, "negative='drop': it passes"),
]  # fmt: skip
EVALUATION_ALONE = ("ties", "empty", "aggregate", "ideal", "recall_depth", "ideal_depth", "score_dtype", "short_lists")


@pytest.mark.parametrize(("library", "changes", "message"), REFUSED, ids=stable)
def test_what_a_library_cannot_express_is_refused(library, changes, message):
    flavor = Flavor.preset(library, **changes)
    with pytest.raises(ValueError, match=message) as raised:
        params(library, flavor)
    gain = ", gain=float" if "Use a gain that is defined at 0" in str(raised.value) else ""
    params(library, eval(f"flavor.replace({FIX.search(str(raised.value))[1].replace('...', '4')}{gain})"))
    if "NDCGEval" in str(raised.value):
        getattr(ndcg_ml, library).NDCGEval(flavor, **({"pools": [([1, 0], [0, 0])]} if library == "catboost" else {}))
    if set(changes) & set(EVALUATION_ALONE):  # the library can train, and NDCGEval can evaluate
        with pytest.raises(ValueError, match=rf"evaluate=False\) with ndcg_ml\.{library}\.NDCGEval"):
            params(library, flavor)
        assert params(library, flavor, evaluate=False)
    else:
        with pytest.raises(ValueError, match=message):
            params(library, flavor, evaluate=False)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("k", [None, 5])
def test_without_evaluation_the_same_trees_and_no_metric(library, k):
    flavor = Flavor.preset(library, k=k)
    data = make(0)
    _, scores = measured(library, params(library, flavor), data)
    quiet = params(library, flavor.replace(ties="average", empty="skip"), evaluate=False)
    printed, again = measured(library, quiet, data)
    assert printed == {}
    assert np.array_equal(scores, again)
    assert len(np.unique(scores)) > 2


@pytest.mark.parametrize(
    ("library", "gain"), [("xgboost", "linear"), ("catboost", "linear"), ("catboost", "exponential")]
)
def test_negative_labels_are_allowed_if_the_flavor_allows_them(library, gain):
    if library == "xgboost" and not LINEAR_XGBOOST:
        pytest.skip(f"XGBoost {xgb.__version__} has no linear metric")
    X, y, group, query = make(4)
    y[::7] = -1
    flavor = Flavor.preset(library, gain=gain, negative="allow", k=5)
    value = check(library, flavor, (X, y, group, query))
    assert value != pytest.approx(ndcg_score(y, X[:, 0], group=group, flavor=flavor.replace(negative="zero")), abs=1e-3)


def test_lightgbm_refuses_labels_above_max_grade():
    X, y, group, query = make(5)
    flavor = Flavor.preset("lightgbm", max_grade=3, k=5)
    assert params("lightgbm", flavor)["label_gain"] == [0, 1, 3, 7]
    assert params("lightgbm", flavor.replace(max_grade=None))["label_gain"] == [2.0**grade - 1 for grade in range(31)]
    for top in (0, 9999):
        assert len(params("lightgbm", flavor.replace(max_grade=top, gain="linear"))["label_gain"]) == top + 1
    assert params("lightgbm", flavor.replace(gain=(0, 2, 3, 4, 5, 6)))["label_gain"] == [0, 2, 3, 4]
    with pytest.raises(lgb.basic.LightGBMError, match="Label 4 is not less than the number of label mappings"):
        measured("lightgbm", params("lightgbm", flavor), (X, y, group, query))
    with pytest.raises(ValueError, match="max_grade"):
        ndcg_score(y, y, group=group, flavor=flavor)
    check("lightgbm", flavor, (X, np.minimum(y, 3), group, query))


def test_the_cutoff_where_lightgbm_truncates():
    for k, level, at in [(1, 4, 1), (10, 13, 10), (9996, 9999, 9996), (9998, 10000, 9998), (None, 10000, 10000)]:
        taken = params("lightgbm", Flavor.preset("lightgbm", k=k))
        assert (taken["lambdarank_truncation_level"], taken["eval_at"]) == (level, [at])
    assert params("xgboost", Flavor.preset("xgboost", k=2**31 - 1))["eval_metric"] == f"ndcg@{2**31 - 1}"
    one = make(6, sizes=(5, 10001))
    with pytest.raises(lgb.basic.LightGBMError, match="10001 exceeds upper limit of 10000 for a query"):
        measured("lightgbm", params("lightgbm", Flavor.preset("lightgbm")), one)


@pytest.mark.parametrize(
    ("installed", "linear"), [("3.0.2", False), ("3.0.0rc1+cu12.4", False), ("3.0.3", True), (None, True)]
)
def test_xgboosts_linear_metric_is_refused_before_3_0_3_but_not_without_xgboost(monkeypatch, installed, linear):
    def version(name):
        if installed is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(importlib.metadata, "version", version)
    flavor = Flavor.preset("xgboost", gain="linear")
    if linear:
        taken = params("xgboost", flavor)
        assert (taken["ndcg_exp_gain"], taken["eval_metric"]) == (False, "ndcg@32")
    else:
        with pytest.raises(ValueError, match=f"{re.escape(installed)} cannot express gain='linear'.*before 3.0.3"):
            params("xgboost", flavor)
        assert params("xgboost", flavor, evaluate=False)["ndcg_exp_gain"] is False
        assert params("xgboost", Flavor.preset("xgboost"))


@pytest.mark.parametrize("library", LIBRARIES)
def test_evaluate_is_a_keyword_and_results_are_new_each_time(library):
    flavor = Flavor.preset(library)
    with pytest.raises(TypeError, match="evaluate must be True or False; got 1"):
        params(library, flavor, evaluate=1)
    with pytest.raises(TypeError):
        getattr(getattr(ndcg_ml, library), f"{library}_params")(flavor, True)
    first = params(library, flavor)
    first.clear()
    assert params(library, flavor)
