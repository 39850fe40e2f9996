"""NDCG of given scores as other libraries compute it, from labels, scores and the sizes of queries."""

import warnings
from typing import Any

import numpy as np
import pytest

QUIET = {"verbosity": -1, "num_threads": 1}


def lightgbm_ndcg(y: Any, s: Any, sizes: Any, k: Any = 10, weight: Any = None, **params: Any) -> float:
    """`weight` has the weights of rows."""
    import lightgbm as lgb

    data = lgb.Dataset(np.zeros((len(y), 1)), y, group=sizes, init_score=s, weight=weight, params=QUIET)
    params = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [k or 1000], **QUIET, **params}
    return float(lgb.Booster(params, data).eval_train()[0][2])


def xgboost_ndcg(
    y: Any, s: Any, sizes: Any, k: Any = 10, weight: Any = None, suffix: str = "", exponential: bool = True
) -> float:
    """With ``k=...`` the metric has no cut-off in its name."""
    import xgboost as xgb

    data = xgb.DMatrix(np.zeros((len(y), 1)), y, base_margin=s, weight=weight)
    data.set_group(sizes)
    metric = f"ndcg{suffix}" if k is ... else f"ndcg@{k}{suffix}"
    params = {"objective": "rank:ndcg", "eval_metric": metric, "ndcg_exp_gain": exponential, "base_score": 0.0}
    return float(xgb.Booster(params, [data]).eval(data).rsplit(":", 1)[1])


def catboost_ndcg(
    y: Any, s: Any, sizes: Any, k: Any = 10, weight: Any = None, kind: str = "Base", position: str = "LogPosition"
) -> float:
    from catboost.utils import eval_metric

    group = np.repeat(np.arange(len(sizes)), sizes)
    weights = {} if weight is None else {"group_weight": np.repeat(weight, sizes)}
    metric = f"NDCG:top={k or -1};type={kind};denominator={position}"
    return float(eval_metric(y, s, metric, group_id=group, **weights)[0])


def torchmetrics_ndcg(y: Any, s: Any, sizes: Any, k: Any = None, action: str = "neg") -> float:
    torch = pytest.importorskip("torch")
    retrieval = pytest.importorskip("torchmetrics.retrieval")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metric = retrieval.RetrievalNormalizedDCG(top_k=k, empty_target_action=action)
    query = torch.arange(len(sizes)).repeat_interleave(torch.as_tensor(sizes))
    metric.update(torch.as_tensor(s), torch.as_tensor(y).long(), indexes=query)
    return float(metric.compute())
