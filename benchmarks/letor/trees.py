"""Boosted trees, tuned as the networks are: six settings, chosen on the validation part of each fold."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.letor.folders import Fold
from benchmarks.letor.metrics import LINEAR, LINEAR_UNCUT, REPORTED, UNCUT, answers, per_query
from ndcg_ml import Flavor
from ndcg_ml.demo import Split

TUNING_FROM = 10_000
"""The seed that settings are tuned with, further on in a run with other seeds."""
RATES = (0.03, 0.1)
LEAVES = (7, 15, 31)
DEPTHS = (3, 4, 5)

Scored = tuple[np.ndarray, np.ndarray]
"""NDCG of the validation part after each round, and the scores of the test part at the best one."""


@dataclass(frozen=True)
class Trees:
    """One library's trees under one objective. ``grow`` is given a fold, a setting, a seed and the number of rounds."""

    name: str
    module: str
    grow: Callable[[Fold, float, int, int, int], Scored]
    sizes: tuple[int, ...]
    """Leaves, or depth where the library counts that."""

    @property
    def settings(self) -> list[tuple[float, int]]:
        """Learning rates and sizes of trees: six for every contender."""
        return list(product(RATES, self.sizes))


def lightgbm_params(objective: object, rate: float, leaves: int, seed: int) -> dict[str, Any]:
    """What every LightGBM model here has. Rows and features are drawn, so that seeds differ."""
    return {
        "objective": objective,
        "learning_rate": rate,
        "num_leaves": leaves,
        "min_data_in_leaf": 20,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "feature_fraction": 0.8,
        "seed": seed,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
        "metric": "None",
    }


def _lightgbm(objective: Callable[[], object]) -> Callable[[Fold, float, int, int, int], Scored]:
    def grow(fold: Fold, rate: float, leaves: int, seed: int, rounds: int) -> Scored:
        import lightgbm as lgb

        from ndcg_ml.lightgbm import NDCGEval

        train, valid = (
            lgb.Dataset(part.features, part.labels, group=part.sizes, params={"num_threads": 1, "verbosity": -1})
            for part in (fold.train, fold.valid)
        )
        seen: dict[str, dict[str, list[float]]] = {}
        booster = lgb.train(
            lightgbm_params(objective(), rate, leaves, seed),
            train,
            rounds,
            valid_sets=[valid],
            feval=NDCGEval(REPORTED),
            callbacks=[lgb.record_evaluation(seen)],
        )
        ((curve,),) = (by_metric.values() for by_metric in seen.values())
        best = int(np.argmax(curve)) + 1
        return np.array(curve), booster.predict(fold.test.features, num_iteration=best)

    return grow


def _of_flavor(flavor: Flavor) -> Callable[[], object]:
    def objective() -> object:
        from ndcg_ml.lightgbm import NDCGObjective

        return NDCGObjective(flavor)

    return objective


def _xgboost(objective: str) -> Callable[[Fold, float, int, int, int], Scored]:
    def grow(fold: Fold, rate: float, depth: int, seed: int, rounds: int) -> Scored:
        import xgboost as xgb

        from ndcg_ml.xgboost import NDCGEval

        train, valid, test = (
            xgb.DMatrix(part.features, part.labels, group=part.sizes, nthread=1)
            for part in (fold.train, fold.valid, fold.test)
        )
        seen: dict[str, dict[str, list[float]]] = {}
        params = {"objective": objective, "eta": rate, "max_depth": depth, "subsample": 0.8, "colsample_bytree": 0.8}
        params |= {"seed": seed, "nthread": 1, "tree_method": "hist", "disable_default_eval_metric": 1}
        # From XGBoost 2 on, its default for NDCG counts pairs of the top documents alone.
        if objective == "rank:ndcg":
            params["ndcg_exp_gain"] = True
        booster = xgb.train(
            params,
            train,
            rounds,
            evals=[(valid, "valid")],
            custom_metric=NDCGEval(REPORTED),
            evals_result=seen,
            verbose_eval=False,
        )
        (curve,) = seen["valid"].values()
        best = int(np.argmax(curve)) + 1
        return np.array(curve), booster.predict(test, iteration_range=(0, best))

    return grow


def _catboost(loss: str) -> Callable[[Fold, float, int, int, int], Scored]:
    def grow(fold: Fold, rate: float, depth: int, seed: int, rounds: int) -> Scored:
        from catboost import CatBoost, Pool

        train, valid, test = (
            Pool(part.features, part.labels / 2 if loss.startswith("QuerySoftMax") else part.labels, group_id=part.qid)
            for part in (fold.train, fold.valid, fold.test)
        )
        model = CatBoost(
            {
                "loss_function": loss,
                "iterations": rounds,
                "learning_rate": rate,
                "depth": depth,
                "random_seed": seed,
                "thread_count": 1,
                "verbose": False,
                "allow_writing_files": False,
            }
        )
        model.fit(train)
        every = 5
        staged = model.staged_predict(valid, eval_period=every)
        curve = np.array([np.nanmean(per_query(fold.valid, scores)) for scores in staged])
        best = min((int(curve.argmax()) + 1) * every, rounds)
        return curve, model.predict(test, ntree_end=best)

    return grow


TREES = (
    Trees("LightGBM lambdarank", "lightgbm", _lightgbm(lambda: "lambdarank"), LEAVES),
    Trees("LightGBM rank_xendcg", "lightgbm", _lightgbm(lambda: "rank_xendcg"), LEAVES),
    Trees("LightGBM regression", "lightgbm", _lightgbm(lambda: "regression"), LEAVES),
    Trees("NDCGObjective(exponential, k = 10)", "lightgbm", _lightgbm(_of_flavor(REPORTED)), LEAVES),
    Trees("NDCGObjective(exponential)", "lightgbm", _lightgbm(_of_flavor(UNCUT)), LEAVES),
    Trees("NDCGObjective(linear, k = 10)", "lightgbm", _lightgbm(_of_flavor(LINEAR)), LEAVES),
    Trees("NDCGObjective(linear)", "lightgbm", _lightgbm(_of_flavor(LINEAR_UNCUT)), LEAVES),
    Trees("XGBoost rank:ndcg", "xgboost", _xgboost("rank:ndcg"), DEPTHS),
    Trees("XGBoost rank:pairwise", "xgboost", _xgboost("rank:pairwise"), DEPTHS),
    Trees("CatBoost YetiRank", "catboost", _catboost("YetiRank"), DEPTHS),
    Trees("CatBoost QuerySoftMax", "catboost", _catboost("QuerySoftMax"), DEPTHS),
)


def installed(trees: Trees) -> bool:
    """Whether the library is there."""
    return find_spec(trees.module) is not None


def cell(trees: Trees, fold: Fold, seeds: int, rounds: int, first_seed: int = 0) -> dict:
    """Tune on the validation part, grow again from other seeds, score the test part once."""
    fold = fold._replace(train=with_grades(fold.train))
    tried = {
        setting: float(trees.grow(fold, *setting, TUNING_FROM + first_seed, rounds)[0].max())
        for setting in trees.settings
    }
    rate, size = max(tried, key=tried.__getitem__)
    valid, best, scored = [], [], []
    for seed in range(first_seed, first_seed + seeds):
        curve, scores = trees.grow(fold, rate, size, seed, rounds)
        valid.append(round(float(curve.max()), 5))
        best.append(int(curve.argmax()) + 1)
        scored.append(answers(fold.test, np.asarray(scores, dtype=float)))
    return {
        "rate": rate,
        "size": size,
        "at_an_end": rate in (min(RATES), max(RATES)),
        "tuned": max(tried.values()),
        "valid": valid,
        "rounds": best,
        "seeds": scored,
    }


def with_grades(split: Split) -> Split:
    """The queries that some library could learn from: those with two grades."""
    starts = np.cumsum(split.sizes) - split.sizes
    highest, lowest = (f.reduceat(split.labels, starts) for f in (np.maximum, np.minimum))
    return split.of_queries(np.flatnonzero(highest > lowest))
