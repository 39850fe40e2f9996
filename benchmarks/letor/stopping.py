"""What early stopping costs, by the metric that decides and the order of the validation rows.

The same boosting is stopped by every rule: it is run once to its end, with every metric of every order of the rows
recorded after each round, and a rule is asked afterwards when it would have stopped and which round it would have kept.
"""

from __future__ import annotations

import numpy as np

from benchmarks.letor.folders import Fold
from benchmarks.letor.metrics import REPORTED, answers
from benchmarks.letor.trees import lightgbm_params, with_grades
from ndcg_ml import Flavor
from ndcg_ml.demo import Split

PATIENCE = 20
RATE, LEAVES = 0.05, 15
ORDERS = ("file", "shuffled", "best first", "worst first")
FLAVORS = {
    "StopEarly, what is reported": REPORTED,
    "StopEarly, LightGBM's definition": Flavor.preset("lightgbm", k=10),
    "StopEarly, scikit-learn's definition": Flavor.preset("sklearn", k=10),
}
OWN = {"LightGBM's own": "ndcg@10", "XGBoost's own": "ndcg@10"}


def ordered(split: Split, order: str) -> Split:
    """The same queries with their rows in another order."""
    rows = np.arange(split.labels.size)
    draw = np.random.default_rng(0).random(rows.size)
    key = {"file": rows, "shuffled": draw, "best first": -split.labels, "worst first": split.labels}[order]
    rows = np.lexsort((rows, key, split.qid))
    return Split(split.features[rows], split.labels[rows], split.sizes)


def kept_round(curve: np.ndarray, patience: int = PATIENCE) -> int:
    """Which round a rule keeps that stops once so many rounds in a row are no improvement."""
    best = 0
    for number, value in enumerate(curve):
        if value > curve[best]:
            best = number
        if number - best >= patience:
            break
    return best + 1


def cell(library: str, fold: Fold, seeds: int, rounds: int, first_seed: int = 0) -> dict:
    """Value of the test part at the round that each rule keeps, for every seed."""
    grow = {"LightGBM": _lightgbm, "XGBoost": _xgboost}[library]
    fold = fold._replace(train=with_grades(fold.train))
    rules: dict[str, list[dict]] = {}
    for seed in range(first_seed, first_seed + seeds):
        curves, predict = grow(fold, seed, rounds)
        for rule, curve in curves.items():
            stop = kept_round(curve)
            rules.setdefault(rule, []).append({"round": stop, **answers(fold.test, predict(stop))})
        rules.setdefault("no stopping", []).append({"round": rounds, **answers(fold.test, predict(rounds))})
    return {"rules": rules}


def _lightgbm(fold: Fold, seed: int, rounds: int):
    import lightgbm as lgb

    from ndcg_ml.lightgbm import NDCGEval

    train, *valid = (
        lgb.Dataset(part.features, part.labels, group=part.sizes, params={"num_threads": 1, "verbosity": -1})
        for part in (fold.train, *(ordered(fold.valid, order) for order in ORDERS))
    )
    seen: dict[str, dict[str, list[float]]] = {}
    params = lightgbm_params("lambdarank", RATE, LEAVES, seed) | {"metric": "ndcg", "eval_at": [10]}
    evals = {name: NDCGEval(flavor) for name, flavor in FLAVORS.items()}
    booster = lgb.train(
        params,
        train,
        rounds,
        valid_sets=valid,
        valid_names=list(ORDERS),
        feval=list(evals.values()),
        callbacks=[lgb.record_evaluation(seen)],
    )
    return _curves("LightGBM's own", seen, "ndcg@10"), lambda stop: booster.predict(
        fold.test.features, num_iteration=stop
    )


def _xgboost(fold: Fold, seed: int, rounds: int):
    import xgboost as xgb

    train, test, *valid = (
        xgb.DMatrix(part.features, part.labels, group=part.sizes, nthread=1)
        for part in (fold.train, fold.test, *(ordered(fold.valid, order) for order in ORDERS))
    )
    seen: dict[str, dict[str, list[float]]] = {}
    params = {"objective": "rank:ndcg", "eta": RATE, "max_depth": 4, "subsample": 0.8, "colsample_bytree": 0.8}
    params |= {"seed": seed, "nthread": 1, "tree_method": "hist", "eval_metric": "ndcg@10"}
    params["ndcg_exp_gain"] = True
    names = list(FLAVORS)

    def several(predictions: np.ndarray, data: xgb.DMatrix) -> list[tuple[str, float]]:
        sizes = np.diff(data.get_uint_info("group_ptr"))
        labels = data.get_label()
        from ndcg_ml import ndcg_score

        # XGBoost wants names without a blank.
        return [
            (f"flavor{number}", ndcg_score(labels, predictions, group=sizes, flavor=FLAVORS[name], k=10))
            for number, name in enumerate(names)
        ]

    booster = xgb.train(
        params,
        train,
        rounds,
        evals=[(part, f"order{number}") for number, part in enumerate(valid)],
        custom_metric=several,
        evals_result=seen,
        verbose_eval=False,
    )
    seen = {order: seen[f"order{number}"] for number, order in enumerate(ORDERS)}
    return _curves("XGBoost's own", seen, "ndcg@10"), lambda stop: booster.predict(test, iteration_range=(0, stop))


def _curves(own: str, seen: dict[str, dict[str, list[float]]], own_key: str) -> dict[str, np.ndarray]:
    """What each rule watches, by its name and the order of the rows."""
    curves = {}
    for order in ORDERS:
        others = [np.array(curve) for key, curve in seen[order].items() if key != own_key]
        curves[f"{own}, rows {order}"] = np.array(seen[order][own_key])
        for name, curve in zip(FLAVORS, others, strict=True):
            curves[f"{name}, rows {order}"] = curve
    return curves
