"""What the caller's ``numpy.seterr`` says changes nothing: numbers that are too small are 0, and no error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, flavors, problems

from ndcg_ml import (
    Flavor,
    dcg_score,
    evaluate,
    evaluate_batches,
    evaluate_part,
    evaluate_ranked,
    evaluate_run,
    explain_difference,
    identify,
    ndcg_score,
    prepare,
)

pytestmark = pytest.mark.usefixtures("kernel")

# From below float64's normal numbers to above float32's.
SCALES = st.sampled_from([1.0, 1e-40, 1e-45, 1e-160, 1e-300, 1e-310, 1e-320, 1e40, 1e150])


@examples(200)
@given(st.data())
def test_every_route_is_deaf_to_the_error_state(data):
    flavor = data.draw(flavors())
    problem = data.draw(problems(flavor))
    flat = problem.flat(flavor)
    scale = {"y_true": 1.0, "y_score": data.draw(SCALES)}
    if not isinstance(flavor.gain, tuple) and flavor.max_grade is None:
        scale["y_true"] = data.draw(SCALES)
    dtype = data.draw(st.sampled_from([np.float64, np.float32, np.longdouble, object]))
    with np.errstate(all="ignore"):
        for name in ("y_true", "y_score"):
            flat[name] = (flat[name] * scale[name]).astype(dtype)
        if "query_weight" in flat:
            flat["query_weight"] *= data.draw(st.sampled_from([1.0, 1e-140, 1e140]))
            flat["query_weight"][:1] *= data.draw(st.sampled_from([1.0, 1e-300, 1e-20]))
    ks = data.draw(st.sampled_from([..., (1, 3, None), 2]))

    def outcome(method):
        try:
            labels = {name: value for name, value in flat.items() if name != "y_score"}
            return str(getattr(prepare(**labels, flavor=flavor, k=ks), method)(flat["y_score"]))
        except ValueError as error:
            return str(error)

    for method in ("__call__", "dcg", "evaluate", "totals"):
        with np.errstate(all="ignore"):
            expected = outcome(method)
        with np.errstate(all="raise"):
            assert outcome(method) == expected


TINY = np.array([3e-310, 0, 1e-310, 2e-320, 0, 1e-320, 1e-300])
SCORES = np.array([1e-310, 5e-46, 1e-40, 0, 1e-323, 2.0, 1e-45])
QID = np.array([0, 0, 0, 1, 1, 1, 1])
GROUP = [3, 4]
MICRO = Flavor(aggregate="micro", gain="exponential", empty="skip")


def _lightgbm():
    evaluation = pytest.importorskip("ndcg_ml.lightgbm")
    return evaluation.NDCGEval("lightgbm", k=2)(TINY, SCORES, np.full(7, 1e-100), np.array(GROUP))


def _catboost():
    catboost = pytest.importorskip("ndcg_ml.catboost")
    metric = catboost.NDCGEval("sklearn", k=2, learn=(TINY, QID), pools=[(TINY, QID)])
    return metric.evaluate([SCORES], TINY, np.full(7, 1e-100))


def _xgboost():
    xgb = pytest.importorskip("xgboost")
    from ndcg_ml.xgboost import NDCGEval

    with np.errstate(all="ignore"):
        data = xgb.DMatrix(np.zeros((7, 1)), label=[0, 1, 2, 0, 0, 1, 3], group=GROUP)
    return NDCGEval("xgboost", k=2)(SCORES, data)


def _scorer():
    base = pytest.importorskip("sklearn.base")
    from ndcg_ml.sklearn import ndcg_scorer

    class Model(base.RegressorMixin, base.BaseEstimator):
        def predict(self, X):
            return X[:, 0]

    return ndcg_scorer("sklearn", k=2)(Model(), SCORES[:, None], TINY, qid=QID)


ROUTES = {
    "ndcg_score": lambda: ndcg_score(TINY, SCORES, group=GROUP, flavor="xgboost"),
    "dcg_score": lambda: dcg_score(TINY, SCORES, group=GROUP, query_weight=[1e-140, 1e140]),
    "dense": lambda: ndcg_score(TINY[None], SCORES[None], flavor="torchmetrics"),
    "evaluate": lambda: str(evaluate(TINY, SCORES, group=GROUP, flavor=MICRO).per_query.dcg),
    "evaluate_ranked": lambda: evaluate_ranked([TINY.tolist()]).value,
    "evaluate_run": lambda: evaluate_run({"q": {"a": 1, "b": 0}}, {"q": {"a": 1e-310, "b": 1e-46}}).value,
    "evaluate_part": lambda: (
        (
            evaluate_part(TINY, SCORES, qid=QID, flavor=MICRO) + evaluate_part(TINY, SCORES, qid=QID + 2, flavor=MICRO)
        ).value
    ),
    "evaluate_batches": lambda: evaluate_batches([(TINY.astype("g"), SCORES.astype("g"), QID)]).value,
    "explain_difference": lambda: str(explain_difference("sklearn", "xgboost", TINY, SCORES, group=GROUP)),
    "identify": lambda: str(identify(0.5, TINY, SCORES, group=GROUP)),
    "gains of float64's whole range": lambda: ndcg_score(
        [0, 1, 2], [1, 2, 3], group=[3], flavor=Flavor(gain=lambda grade: 10.0 ** (300 * (grade - 1)))
    ),
    "discounts below float64": lambda: ndcg_score(
        [0, 1, 2], [1, 2, 3], group=[3], flavor=Flavor(discount=lambda rank: 1e-308 / rank**5)
    ),
    "LightGBM": _lightgbm,
    "XGBoost": _xgboost,
    "CatBoost": _catboost,
    "scikit-learn": _scorer,
}


@pytest.mark.parametrize("route", ROUTES)
def test_underflow_is_no_error(route):
    with np.errstate(all="ignore"):
        expected = ROUTES[route]()
    with np.errstate(all="raise"):
        got = ROUTES[route]()
    assert str(got) == str(expected)
    if isinstance(expected, float):
        assert math.isfinite(expected)
