"""Time the call of a metric in a round of boosting, alike for each library's own metric and ours.

1.2 million rows and 136 features. Every contender trains its own model on one data set, round by round in turn, as the
library's own training loop does: one update, then one evaluation of the training set. Only the evaluation is timed, and
a note says what part of the update it is. CatBoost has no such loop: there the metric is called on arrays.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Contender, Result, Timing, compare
from benchmarks.peers import use_kernel
from benchmarks.workloads import Workload, ragged

THREADS = 2
ROUNDS = 25
# The first round also prepares the data set, and the first models are smaller.
SKIPPED = 5

Features = NDArray[np.float32]
Step = Callable[[int], object]


def rounds(scale: float) -> Iterator[Result]:
    """Compare the call of each library's own metric with that of ours, evaluated on the training set."""
    work = ragged(scale)
    rng = np.random.default_rng(8)
    features = rng.standard_normal((work.rows, 136), dtype=np.float32)
    features[:, :20] += work.labels[:, None].astype(np.float32) * np.linspace(0.5, 0.05, 20, dtype=np.float32)
    for library in (_lightgbm, _xgboost, _catboost):
        try:
            yield library(work, features)
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)


def _names(library: str) -> tuple[str, str, str]:
    return "ndcg_ml, compiled kernel", f"{library}'s own ndcg@10", "ndcg_ml, NumPy kernel"


def _in_turn(
    library: str, work: Workload, start: Callable[[str | None], tuple[Step, Callable[[int], float]]]
) -> Result:
    """Train a model for each metric, round by round in turn, and time the calls of the metrics."""
    names = _names(library)
    kernels = ("compiled", None, "numpy")
    models = [start(kernel) for kernel in kernels]
    calls: list[list[float]] = [[] for _ in models]
    updates, values = [], [0.0] * len(models)
    for turn in range(ROUNDS):
        for i, (update, evaluate) in enumerate(models):
            with use_kernel(kernels[i] or "numpy", THREADS):
                began = time.perf_counter()
                update(turn)
                ended = time.perf_counter()
                values[i] = evaluate(turn)
                calls[i].append(1e3 * (time.perf_counter() - ended))
            updates.append(1e3 * (ended - began))
    if not max(values) - min(values) <= 1e-4:
        raise AssertionError(f"{library}: its own metric is {values[1]!r}, ours {values[0]!r}")
    bare = statistics.median(updates[SKIPPED * len(models) :])
    kept = [taken[SKIPPED:] for taken in calls]
    medians = [statistics.median(taken) for taken in kept]
    return Result(
        f"a call of the metric in {library}, {THREADS} threads, {work.rows} x 136, ndcg@10 of the training set",
        work.rows,
        timings=[
            Timing(
                name, value, m, min(taken), len(taken), m / medians[0], f"{m / bare:.1%} of an update of {bare:.0f} ms"
            )
            for name, value, m, taken in zip(names, values, medians, kept, strict=True)
        ],
    )


def _lightgbm(work: Workload, features: Features) -> Result:
    import lightgbm as lgb

    from ndcg_ml.lightgbm import NDCGEval

    options = {"objective": "lambdarank", "eval_at": [10], "verbosity": -1, "num_threads": THREADS}
    data = lgb.Dataset(features, work.labels, group=work.sizes, params=options).construct()

    def start(kernel: str | None) -> tuple[Step, Callable[[int], float]]:
        booster = lgb.Booster({**options, "metric": "None" if kernel else "ndcg"}, data)
        metric = NDCGEval("lightgbm@10") if kernel else None
        return lambda _: booster.update(), lambda _: float(booster.eval_train(metric)[-1][2])

    return _in_turn("LightGBM", work, start)


def _xgboost(work: Workload, features: Features) -> Result:
    import xgboost as xgb

    from ndcg_ml.xgboost import NDCGEval

    data = xgb.QuantileDMatrix(features, work.labels, group=work.sizes, nthread=THREADS)
    options = {"objective": "rank:ndcg", "tree_method": "hist", "nthread": THREADS}

    def start(kernel: str | None) -> tuple[Step, Callable[[int], float]]:
        own = {"disable_default_eval_metric": True} if kernel else {"eval_metric": "ndcg@10"}
        booster = xgb.Booster({**options, **own}, [data])
        metric = NDCGEval("xgboost@10") if kernel else None

        def evaluate(turn: int) -> float:
            return float(str(booster.eval_set([(data, "train")], turn, metric)).rsplit(":", 1)[1])

        return lambda turn: booster.update(data, turn), evaluate

    return _in_turn("XGBoost", work, start)


def _catboost(work: Workload, features: Features) -> Result:
    from catboost import Pool
    from catboost.utils import eval_metric

    from ndcg_ml.catboost import NDCGEval

    data = Pool(features[:, :1], work.labels, group_id=work.qid)

    def ours(kernel: str) -> Callable[[], float]:
        with use_kernel(kernel, THREADS):  # the data are prepared when it is created
            metric = NDCGEval("catboost@10", pools=[data])
        return lambda: float(np.divide(*metric.evaluate([work.scores], work.labels, None)))

    def own() -> float:
        top = eval_metric(work.labels, work.scores, "NDCG:top=10", group_id=work.qid, thread_count=THREADS)
        return float(top[0])

    compiled, theirs, numpy = _names("CatBoost")
    return compare(
        f"a call of the metric of CatBoost, {THREADS} threads, {work.rows} rows as arrays, ndcg@10",
        [
            Contender(compiled, ours("compiled"), 0.0),
            Contender(theirs, own, 1e-4, "with its grouping of the ids"),
            Contender(numpy, ours("numpy"), 1e-9),
        ],
        rows=work.rows,
    )
