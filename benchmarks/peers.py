"""Contenders of this package and of other libraries, each with its input in the library's own form.

Some libraries also compute values per query or other measures, as their notes say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from benchmarks.measure import Contender
from benchmarks.workloads import Workload
from ndcg_ml import ndcg_score, prepare
from ndcg_ml.lightgbm import NDCGEval


def ours(work: Workload, flavor: str, k: int | None, threads: int | None = 1, kernel: str = "auto") -> Contender:
    """Return ``ndcg_score`` with group sizes."""
    prepared = prepare  # the same as ndcg_score, but takes threads and kernel as arguments

    def call() -> float:
        return prepared(work.labels, group=work.sizes, flavor=flavor, k=k, threads=threads, kernel=kernel)(work.scores)

    return Contender("ndcg_ml.ndcg_score", call, 0.0)


def ours_dense(work: Workload, flavor: str, k: int | None) -> Contender:
    labels, scores = work.dense
    return Contender("ndcg_ml.ndcg_score", lambda: ndcg_score(labels, scores, flavor=flavor, k=k), 0.0)


def ours_prepared(
    work: Workload, flavor: str, k: int | None, threads: int = 1, kernel: str = "numpy", within: float | None = 0.0
) -> Contender:
    prepared = prepare(work.labels, group=work.sizes, flavor=flavor, k=k, threads=threads, kernel=kernel)
    name = f"ndcg_ml.prepare, {_kernel_name(kernel, threads)}"
    return Contender(name, lambda: prepared(work.scores), within)


def _kernel_name(kernel: str, threads: int | None = None) -> str:
    name = f"{'NumPy' if kernel == 'numpy' else kernel} kernel"
    return name if threads is None else f"{name}, {threads} thread{'s' * (threads > 1)}"


def sklearn_dense(work: Workload, k: int | None, ignore_ties: bool = False) -> Contender:
    from sklearn.metrics import ndcg_score as sklearn_ndcg

    labels, scores = work.dense
    untied = all(np.unique(row).size == row.size for row in scores[:50])
    return Contender(
        f"sklearn.metrics.ndcg_score{', ignore_ties' * ignore_ties}",
        lambda: sklearn_ndcg(labels, scores, k=k, ignore_ties=ignore_ties),
        1e-9 if untied or not ignore_ties else None,
        "" if untied or not ignore_ties else "undefined order of ties",
    )


def sklearn_loop(work: Workload, k: int | None) -> Contender:
    """Return a loop over queries. The workload has no queries of one document, which scikit-learn refuses."""
    from sklearn.metrics import ndcg_score as sklearn_ndcg

    cuts = np.cumsum(work.sizes)[:-1]
    labels = [part[None] for part in np.split(work.labels, cuts)]
    scores = [part[None] for part in np.split(work.scores, cuts)]

    def call() -> float:
        return float(np.mean([sklearn_ndcg(y, s, k=k) for y, s in zip(labels, scores, strict=True)]))

    return Contender("sklearn.metrics.ndcg_score, loop over queries", call, 1e-9)


def ours_in_torch(work: Workload, flavor: str, k: int | None, what: str, kernel: str = "numpy") -> Contender:
    """Return the metric, the function or the torch kernel on CPU tensors with one id per row."""
    import torch

    from ndcg_ml.torch import NDCG, ndcg

    scores, labels, indexes = torch.tensor(work.scores), torch.tensor(work.labels), torch.tensor(work.qid)

    def metric() -> float:
        metric = NDCG(flavor, k=k)
        with use_kernel(kernel):
            metric.update(scores, labels, indexes=indexes)
        return float(metric.compute())

    def function() -> float:
        with use_kernel(kernel):
            return float(ndcg(scores, labels, flavor=flavor, k=k, indexes=indexes).mean())

    def for_devices() -> float:
        with patch("ndcg_ml.torch.inputs.rank_on_host", return_value=None):
            return function()

    if what == "metric":
        return Contender(f"ndcg_ml.torch.NDCG, update and compute, {_kernel_name(kernel)}", metric, 1e-9)
    if what == "function":
        return Contender(f"ndcg_ml.torch.ndcg, {_kernel_name(kernel)}", function, 1e-9)
    return Contender("ndcg_ml.torch.ndcg, the kernel for devices, on the CPU", for_devices, 1e-9)


class Epoch:
    """A validation epoch of a small network on rows with 136 features, in batches of whole queries."""

    FEATURES, QUERIES_A_BATCH = 136, 100

    def __init__(self, work: Workload) -> None:
        import torch
        from torch import nn

        draw = torch.Generator().manual_seed(0)
        self.features = torch.randn(work.rows, self.FEATURES, generator=draw)
        self.labels, self.indexes = torch.tensor(work.labels).long(), torch.tensor(work.qid)
        self.features[:, 0] += self.labels
        torch.manual_seed(0)
        layers = (nn.Linear(self.FEATURES, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
        self.model = nn.Sequential(*layers, nn.Flatten(0)).eval()
        ends = np.append(0, np.cumsum(work.sizes))
        self.batches = [
            slice(int(ends[first]), int(ends[min(first + self.QUERIES_A_BATCH, work.sizes.size)]))
            for first in range(0, work.sizes.size, self.QUERIES_A_BATCH)
        ]
        with torch.no_grad():
            self.scores = torch.cat([self.model(self.features[rows]) for rows in self.batches])

    def contender(
        self,
        name: str,
        metric: str | None,
        k: int,
        *,
        scored: bool = False,
        kernel: str = "numpy",
    ) -> Contender:
        """Return the epoch with a metric of either library or without one; with `scored`, the metric alone."""
        import torch
        from torchmetrics.retrieval import RetrievalNormalizedDCG

        from ndcg_ml.torch import NDCG

        @torch.no_grad()
        def call() -> float:
            found = {"ours": lambda: NDCG(k=k), "theirs": lambda: RetrievalNormalizedDCG(top_k=k)}.get(metric or "")
            held = found and found()
            seen = 0.0
            for rows in self.batches:
                scores = self.scores[rows] if scored else self.model(self.features[rows])
                if held is None:
                    seen += float(scores[0])
                else:
                    held.update(scores, self.labels[rows], indexes=self.indexes[rows])
            return seen if held is None else float(held.compute())

        def with_kernel() -> float:
            with use_kernel(kernel):
                return call()

        return Contender(name, with_kernel, None if metric is None else 1e-5)


def ours_by_ids(work: Workload, flavor: str, k: int | None) -> Contender:
    """Return ``ndcg_score`` with contiguous ids, and the default number of threads."""
    qid = work.qid
    return Contender(
        "ndcg_ml.ndcg_score, qid=", lambda: ndcg_score(work.labels, work.scores, qid=qid, flavor=flavor, k=k), 1e-9
    )


def torchmetrics(work: Workload, k: int | None) -> Contender:
    import torch
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    labels, scores = torch.tensor(work.labels).long(), torch.tensor(work.scores).float()
    indexes = torch.tensor(work.qid)

    def call() -> float:
        metric = RetrievalNormalizedDCG(top_k=k)
        metric.update(scores, labels, indexes=indexes)
        return float(metric.compute())

    return Contender("torchmetrics RetrievalNormalizedDCG", call, 1e-4, "float32")


def lightgbm_metric(work: Workload, k: int, threads: int) -> Contender:
    """Return LightGBM's own metric, computed from initial scores by a model without trees."""
    import lightgbm as lgb

    data = lgb.Dataset(
        np.zeros((work.rows, 1)),
        work.labels,
        group=work.sizes,
        init_score=work.scores,
        params={"verbosity": -1, "num_threads": threads},
    )
    booster = lgb.Booster(
        {"objective": "lambdarank", "metric": "ndcg", "eval_at": [k], "verbosity": -1, "num_threads": threads}, data
    )
    return Contender(
        f"LightGBM ndcg@{k}, {threads} thread{'s' * (threads > 1)}", lambda: booster.eval_train()[0][2], 1e-9
    )


@contextmanager
def use_kernel(kernel: str, threads: int | None = None) -> Iterator[None]:
    """Set the kernel of adapters, which prepare a data set with their first call."""
    there = {"NDCG_ML_KERNEL": kernel} | ({} if threads is None else {"NDCG_ML_THREADS": str(threads)})
    with patch.dict(os.environ, there):
        yield


def ours_in_lightgbm(work: Workload, k: int, threads: int, kernel: str) -> Contender:
    """Return the evaluation function with a data set, as LightGBM calls it in each round."""
    import lightgbm as lgb

    # LightGBM's last constructed object sets its number of threads for the process.
    params = {"verbosity": -1, "num_threads": threads}
    data = lgb.Dataset(np.zeros((work.rows, 1)), work.labels, group=work.sizes, params=params).construct()
    evaluation = NDCGEval("lightgbm", k=(k,))

    def call() -> float:
        with use_kernel(kernel, threads):
            return evaluation(work.scores, data)[0][1]

    call()
    return Contender(f"ndcg_ml.lightgbm.NDCGEval, {_kernel_name(kernel, threads)}", call, 0.0)


def xgboost_metric(work: Workload, k: int, threads: int) -> Contender:
    import xgboost as xgb

    data = xgb.DMatrix(np.zeros((work.rows, 1)), work.labels, base_margin=work.scores, nthread=threads)
    data.set_group(work.sizes)
    booster = xgb.Booster(
        {"objective": "rank:ndcg", "eval_metric": f"ndcg@{k}", "nthread": threads, "base_score": 0.0}, [data]
    )

    def call() -> float:
        return float(booster.eval(data).rsplit(":", 1)[1])

    return Contender(
        f"XGBoost ndcg@{k}, {threads} thread{'s' * (threads > 1)}", call, 1e-4, "float32; includes an empty prediction"
    )


def _trec(work: Workload) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    ends = np.cumsum(work.sizes)
    qrels, run = {}, {}
    for query, (end, size) in enumerate(zip(ends, work.sizes, strict=True)):
        names = [f"d{i:07d}" for i in range(size)]
        qrels[f"q{query}"] = dict(zip(names, work.labels[end - size : end].astype(int).tolist(), strict=True))
        run[f"q{query}"] = dict(zip(names, work.scores[end - size : end].tolist(), strict=True))
    return qrels, run


def pytrec_eval(work: Workload, k: int) -> Contender:
    import pytrec_eval as library

    qrels, run = _trec(work)
    evaluator = library.RelevanceEvaluator(qrels, {f"ndcg_cut.{k}"})

    def call() -> float:
        return float(np.mean([query[f"ndcg_cut_{k}"] for query in evaluator.evaluate(run).values()]))

    return Contender("pytrec_eval", call, 1e-5, "qrels prebuilt, run as a dict; float32 scores")


def ranx(work: Workload, k: int) -> Contender:
    from ranx import Qrels, Run, evaluate

    qrels_dict, run_dict = _trec(work)
    qrels, run = Qrels(qrels_dict), Run(run_dict)
    evaluate(qrels, run, f"ndcg@{k}")
    return Contender(
        "ranx", lambda: float(evaluate(qrels, run, f"ndcg@{k}", save_results_in_run=False)), 1e-9, "compiled beforehand"
    )


def ir_measures(work: Workload, k: int) -> Contender:
    import ir_measures as library

    qrels, run = _trec(work)
    measure = library.nDCG @ k
    evaluator = library.evaluator([measure], qrels)
    return Contender("ir_measures", lambda: float(evaluator.calc_aggregate(run)[measure]), 1e-5, "as pytrec_eval")


def rax(work: Workload, k: int | None) -> Contender:
    """Return rax's metric, compiled by JAX for the dense shape."""
    import jax
    import jax.numpy as jnp
    import rax as library

    labels, scores = (jnp.asarray(a, dtype=jnp.float32) for a in work.dense)
    metric = jax.jit(lambda s, y: library.ndcg_metric(s, y, topn=k, gain_fn=lambda label: label))
    return Contender("rax, jit", lambda: float(metric(scores, labels)), 1e-4, "float32; ties in input order")


def one_pass(work: Workload) -> Contender:
    """Return a sum over scores and labels, a lower bound for any metric."""
    return Contender("one pass over scores and labels", lambda: float(work.scores.sum() + work.labels.sum()), None)
