"""Which flavor a number is that an installed library reports: its own preset, named first."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ndcg_ml.identification import identify

catboost = pytest.importorskip("catboost.utils")
lgb = pytest.importorskip("lightgbm")
sklearn_metrics = pytest.importorskip("sklearn.metrics")
torch = pytest.importorskip("torch")
retrieval = pytest.importorskip("torchmetrics.retrieval")
xgb = pytest.importorskip("xgboost")


def data(seed, smallest):
    """Tied scores, scores that only float32 ties, empty queries, queries of one document."""
    rng = np.random.default_rng(seed)
    group = rng.integers(smallest, 30, 30)
    n = int(group.sum())
    y = np.clip(rng.integers(-2, 5, n), 0, 4).astype(float)
    s = rng.normal(size=n).round(1) + 1e-9 * rng.integers(0, 2, n)
    y[: group[0]] = 0
    return y, s, group


def lightgbm_says(y, s, group, k):
    train = lgb.Dataset(np.zeros((y.size, 1)), y, group=group, init_score=s, params={"verbosity": -1})
    parameters = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [k], "verbosity": -1, "num_threads": 1}
    return lgb.Booster(parameters, train).eval_train()[0][2]


def xgboost_says(y, s, group, k):
    matrix = xgb.DMatrix(np.zeros((y.size, 1)), y, base_margin=s)
    matrix.set_group(group)
    parameters = {"objective": "rank:ndcg", "eval_metric": f"ndcg@{k}", "base_score": 0.0, "nthread": 1}
    return float(xgb.Booster(parameters, [matrix]).eval(matrix).rsplit(":", 1)[1])


def catboost_says(y, s, group, k):
    query = np.repeat(np.arange(group.size), group)
    return catboost.eval_metric(y, s, f"NDCG:top={k}", group_id=query, thread_count=1)[0]


def torchmetrics_says(y, s, group, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metric = retrieval.RetrievalNormalizedDCG(top_k=k)
    query = torch.arange(group.size).repeat_interleave(torch.tensor(group))
    metric.update(torch.tensor(s), torch.tensor(y).long(), indexes=query)
    return metric.compute().item()


def sklearn_says(y, s, group, k):
    # It refuses queries of one document, which the data must not have.
    parts = np.split(np.arange(y.size), np.cumsum(group)[:-1])
    return float(np.mean([sklearn_metrics.ndcg_score([y[part]], [s[part]], k=k) for part in parts]))


LIVE = {
    "lightgbm": lightgbm_says,
    "xgboost": xgboost_says,
    "catboost": catboost_says,
    "torchmetrics": torchmetrics_says,
    "sklearn": sklearn_says,
}


@pytest.mark.parametrize("name", LIVE)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_live_library_is_named_first(name, seed):
    y, s, group = data(seed, smallest=2 if name == "sklearn" else 1)
    value = LIVE[name](y, s, group, 10)
    # As it comes, the cut-off unknown; and as it is printed, the cut-off known.
    assert identify(value, y, s, group=group).matches[0].name == f"{name}@10"
    printed = identify(round(value, 4), y, s, group=group, k=10)
    assert printed.matches[0].name == f"{name}@10"
    assert abs(printed.matches[0].value - value) < 1e-5


def test_xgboosts_silent_32_is_its_own_cutoff():
    rng = np.random.default_rng(5)
    group = rng.integers(20, 60, 30)
    y, s = rng.integers(0, 5, group.sum()).astype(float), rng.normal(size=group.sum()).round(1)
    s += 1e-9 * rng.integers(0, 2, s.size)
    matrix = xgb.DMatrix(np.zeros((y.size, 1)), y, base_margin=s)
    matrix.set_group(group)
    booster = xgb.Booster({"objective": "rank:ndcg", "eval_metric": "ndcg", "base_score": 0.0, "nthread": 1}, [matrix])
    value = float(booster.eval(matrix).rsplit(":", 1)[1])
    assert identify(value, y, s, group=group, decimals=5).matches[0].name == "xgboost@32"
