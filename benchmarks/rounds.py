"""Time evaluation in boosting rounds on 1.2 M rows and 136 features, by each library's metric and by ours."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Result, Timing
from benchmarks.peers import use_kernel
from benchmarks.workloads import Workload, ragged

THREADS = 2
ROUNDS = 8
# The first round also prepares the data set, and the first models are smaller.
SKIPPED = 2

Features = NDArray[np.float32]
Train = Callable[[Any, "Clock"], float]
"""Train with an evaluation function, the library's own metric (None) or without one (...); return its last value."""


class Clock:
    """The time at which each round ended, and the duration of our evaluation in it."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.inside: list[float] = []

    def tick(self) -> None:
        self.ends.append(time.perf_counter())

    def around(self, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            began = time.perf_counter()
            value = evaluate(*arguments)
            self.inside.append(time.perf_counter() - began)
            return value

        return timed

    @property
    def rounds_ms(self) -> list[float]:
        return [1e3 * float(step) for step in np.diff(self.ends)[SKIPPED - 1 :]]

    @property
    def inside_ms(self) -> float:
        return 1e3 * statistics.median(self.inside[SKIPPED:])


def rounds(scale: float) -> Iterator[Result]:
    """Compare rounds without a metric, with the library's own and with ours, evaluated on the training set."""
    work = ragged(scale)
    rng = np.random.default_rng(8)
    features = rng.standard_normal((work.rows, 136), dtype=np.float32)
    features[:, :20] += work.labels[:, None].astype(np.float32) * np.linspace(0.5, 0.05, 20, dtype=np.float32)
    for library, make in (("LightGBM", _lightgbm), ("XGBoost", _xgboost), ("CatBoost", _catboost)):
        try:
            train, evaluation, within = make(work, features)
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        yield _result(library, work, train, evaluation, within)


def _result(library: str, work: Workload, train: Train, evaluation: Callable[[], Any], within: float) -> Result:
    def with_kernel(kernel: str) -> tuple[Any, str]:
        with use_kernel(kernel, THREADS):  # CatBoost's prepares the data when it is created
            return evaluation(), kernel

    contenders: dict[str, tuple[Any, str | None]] = {
        "ndcg_ml, compiled kernel": with_kernel("compiled"),
        f"{library}'s own ndcg@10": (None, None),
        "ndcg_ml, NumPy kernel": with_kernel("numpy"),
        "no metric": (..., None),
    }
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    inside: dict[str, list[float]] = {name: [] for name in contenders}
    values: dict[str, float] = {}
    for _ in range(2):
        for name, (metric, kernel) in contenders.items():
            clock = Clock()
            with use_kernel(kernel or "numpy", THREADS):
                values[name] = train(metric, clock)
            taken[name] += clock.rounds_ms
            if clock.inside:
                inside[name].append(clock.inside_ms)
    ours, own = list(contenders)[:2]
    if not abs(values[ours] - values[own]) <= within:
        raise AssertionError(f"{library}: its own metric is {values[own]!r}, ours {values[ours]!r}")
    medians = {name: statistics.median(times) for name, times in taken.items()}
    bare = medians["no metric"]

    def note(name: str) -> str:
        if inside[name]:
            own_ms = statistics.median(inside[name])
            return f"{own_ms:.1f} ms in our evaluation, {own_ms / medians[name]:.1%} of the round"
        return "" if name == "no metric" else f"{medians[name] - bare:+.1f} ms, {(medians[name] - bare) / bare:+.1%}"

    return Result(
        f"a round of {library}, {THREADS} threads, {work.rows} x 136, ndcg@10 of the training set",
        work.rows,
        timings=[
            Timing(name, values[name], m, min(taken[name]), len(taken[name]), m / medians[ours], note(name))
            for name, m in medians.items()
        ],
    )


def _lightgbm(work: Workload, features: Features) -> tuple[Train, Callable[[], Any], float]:
    import lightgbm as lgb

    from ndcg_ml.lightgbm import NDCGEval

    options = {"objective": "lambdarank", "eval_at": [10], "verbosity": -1, "num_threads": THREADS}
    data = lgb.Dataset(features, work.labels, group=work.sizes, params=options).construct()

    def train(metric: Any, clock: Clock) -> float:
        history: dict[str, Any] = {}
        lgb.train(
            {**options, "metric": "ndcg" if metric is None else "None"},
            data,
            ROUNDS,
            valid_sets=None if metric is ... else [data],
            feval=clock.around(metric) if metric not in (None, ...) else None,
            callbacks=[lgb.record_evaluation(history), lambda _: clock.tick()],
        )
        return float(next(iter(history["training"].values()))[-1]) if history else float("nan")

    return train, lambda: NDCGEval("lightgbm@10"), 1e-9


def _xgboost(work: Workload, features: Features) -> tuple[Train, Callable[[], Any], float]:
    import xgboost as xgb

    from ndcg_ml.xgboost import NDCGEval

    data = xgb.QuantileDMatrix(features, work.labels, group=work.sizes, nthread=THREADS)
    options = {"objective": "rank:ndcg", "tree_method": "hist", "nthread": THREADS}

    class Ticks(xgb.callback.TrainingCallback):
        def __init__(self, clock: Clock) -> None:
            self.clock = clock

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            self.clock.tick()
            return False

    def train(metric: Any, clock: Clock) -> float:
        history: dict[str, Any] = {}
        own = {"eval_metric": "ndcg@10"} if metric is None else {"disable_default_eval_metric": True}
        xgb.train(
            {**options, **own},
            data,
            ROUNDS,
            evals=[] if metric is ... else [(data, "train")],
            custom_metric=clock.around(metric) if metric not in (None, ...) else None,
            evals_result=history,
            verbose_eval=False,
            callbacks=[Ticks(clock)],
        )
        return float(next(iter(history["train"].values()))[-1]) if history.get("train") else float("nan")

    return train, lambda: NDCGEval("xgboost@10"), 1e-4


def _catboost(work: Workload, features: Features) -> tuple[Train, Callable[[], Any], float]:
    from catboost import CatBoost, Pool

    from ndcg_ml.catboost import NDCGEval

    data = Pool(features, work.labels, group_id=work.qid)

    class Ticks:
        def __init__(self, clock: Clock) -> None:
            self.clock = clock

        def after_iteration(self, info: Any) -> bool:
            self.clock.tick()
            return True

    def train(metric: Any, clock: Clock) -> float:
        # CatBoost always evaluates its loss, but its own NDCG on the training set only with this hint.
        own = {} if metric is ... else {"eval_metric": metric or "NDCG:top=10;hints=skip_train~false"}
        if own and metric:
            metric.evaluate = clock.around(type(metric).evaluate.__get__(metric))
        model = CatBoost(
            {
                "loss_function": "QueryRMSE",
                "iterations": ROUNDS,
                "thread_count": THREADS,
                "verbose": False,
                "allow_writing_files": False,
                **own,
            }
        )
        model.fit(data, callbacks=[Ticks(clock)])
        history = model.get_evals_result()["learn"]
        found = [values[-1] for name, values in history.items() if "ndcg" in name.lower()]
        return float(found[0]) if found else float("nan")

    return train, lambda: NDCGEval("catboost@10", pools=[data]), 1e-4
