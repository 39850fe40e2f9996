"""What the caller's ``numpy.seterr`` says changes nothing in the adapters either."""

from __future__ import annotations

import numpy as np
import pytest
from core.test_underflow import GROUP, QID, SCORES, TINY, assert_deaf


def _lightgbm():
    evaluation = pytest.importorskip("ndcg_ml.lightgbm")
    return evaluation.NDCGEval("lightgbm", k=2)(TINY, SCORES, np.full(7, 1e-100), np.array(GROUP))


def _objective():
    lightgbm = pytest.importorskip("ndcg_ml.lightgbm")
    return lightgbm.NDCGObjective("lightgbm")(TINY * 0 + [0, 1, 2, 0, 0, 1, 3], SCORES * 1e5, None, np.array(GROUP))


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


@pytest.mark.parametrize("route", [_lightgbm, _objective, _xgboost, _catboost, _scorer])
def test_underflow_is_no_error(route):
    assert_deaf(route)
