"""Evaluation functions and scorers in many threads and in fresh processes: results are bitwise identical."""

from __future__ import annotations

import numpy as np
import pytest
from core.test_threads import data, together

from ndcg_ml import Flavor, ndcg_score

__all__ = ["data"]  # data is a fixture


def test_many_data_sets_share_one_evaluation_function(data):
    pytest.importorskip("lightgbm")
    from ndcg_ml.lightgbm import NDCGEval

    labels, sizes, scores = data
    function = NDCGEval("lightgbm@5")
    # There are more data sets than the cache holds, so that threads replace each other's entries.
    sets = [((labels + shift) % 5, each) for shift in range(5) for each in scores[:9]]
    calls = [(y, each, None, sizes) for y, each in sets]
    expected = [[(function.names[0], ndcg_score(y, s, group=sizes, flavor="lightgbm@5"), True)] for y, s in sets]
    assert together(function, calls) == expected * 3


def test_a_grid_search_in_threads(data):
    sklearn = pytest.importorskip("sklearn")
    joblib = pytest.importorskip("joblib")
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, GroupKFold

    from ndcg_ml.sklearn import ndcg_scorer

    labels, sizes, scores = data
    qid = np.repeat(np.arange(sizes.size), sizes)
    X = np.stack(scores[:4], axis=1).astype("f8") * [1, 30, 1, 1] + labels[:, None] * [0.2, 1, 0, 0]
    grid = {"alpha": [1e-3, 1e4, 1e5, 1e6], "fit_intercept": [True, False]}

    def searched(n_jobs):
        scoring = {"ndcg": ndcg_scorer("lightgbm", k=5), "micro": ndcg_scorer(Flavor(aggregate="micro"))}
        search = GridSearchCV(Ridge(), grid, scoring=scoring, refit="ndcg", cv=GroupKFold(4), n_jobs=n_jobs)
        search.fit(X, labels, groups=qid)
        names = [name for name in search.cv_results_ if "test" in name]
        return {name: search.cv_results_[name].tolist() for name in names}, search.best_params_

    with sklearn.config_context(enable_metadata_routing=True):
        serial = searched(None)
        with joblib.parallel_backend("threading", n_jobs=4):
            assert searched(4) == serial
    assert len(set(serial[0]["mean_test_ndcg"])) > 1
