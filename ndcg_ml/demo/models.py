"""The three models guided by one flavor: a grid search, and a network and boosting that stop early."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import lightgbm
import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from ndcg_ml import ndcg_score
from ndcg_ml.demo.problem import Problem, Split
from ndcg_ml.flavor import Flavor
from ndcg_ml.lightgbm import NDCGEval
from ndcg_ml.sklearn import ndcg_scorer
from ndcg_ml.torch import NDCG, ApproxNDCGLoss

FOLDS = 4

GRID: list[dict[str, list[Any]]] = [
    {"regressor": [Ridge()], "regressor__alpha": [1.0, 100.0, 10_000.0]},
    {
        "regressor": [HistGradientBoostingRegressor(max_iter=40, min_samples_leaf=10, random_state=0)],
        "regressor__max_leaf_nodes": [7, 31],
        "regressor__learning_rate": [0.05, 0.15],
    },
]

_NETWORK_PATIENCE = 12
_BOOSTING_PATIENCE = 25
_QUERIES_PER_BATCH = 16


@dataclass(frozen=True, eq=False)
class Trained:
    """A chosen model's predictions for the test part, and how it was chosen."""

    framework: str
    scores: NDArray[np.float64]
    history: tuple[float, ...]
    """Validation NDCG of each candidate, epoch or round, in order."""
    best: int
    """Position in `history` of the one that was kept."""
    chosen: str
    """What was kept, in words."""
    seconds: float
    stopped: bool = False
    """Whether training stopped early."""
    spread: tuple[float, ...] = ()
    """Standard deviation over the folds of each candidate of a grid search."""
    labels: tuple[str, ...] = ()
    """The candidates of a grid search, in words."""

    @property
    def validation(self) -> float:
        """NDCG of what was kept, on the data that chose it."""
        return self.history[self.best]


class Adapters:
    """One flavor handed to every framework; a ValueError names the first one that does not support it."""

    def __init__(self, flavor: Flavor) -> None:
        self.flavor = flavor
        self.scorer: Any = ndcg_scorer(flavor)
        self.feval: NDCGEval = NDCGEval(flavor, k=flavor.k)
        self.metric: NDCG = NDCG(flavor)
        # The loss sees the whole list: with a cut-off, documents far below it would have no gradient. It is a mean over
        # the lists of a batch, whatever the flavor's own mean. And it has no rule for negative labels, which the data
        # of this command cannot have.
        negative = "raise" if flavor.negative == "allow" else flavor.negative
        self.loss: ApproxNDCGLoss = ApproxNDCGLoss(
            flavor.replace(k=None, aggregate="macro", negative=negative), temperature=0.5
        )

    def check(self, problem: Problem) -> None:
        """Raise a ValueError, before anything is trained, if a part or a fold cannot be scored under the flavor.

        It cannot where the flavor rejects a label or an empty query, or leaves nothing to average.
        """
        train, valid, test = problem.train, problem.valid, problem.test
        parts = {
            f"fold {n} of the training part": (train.labels[rows], train.qid[rows])
            for n, (_, rows) in enumerate(GroupKFold(FOLDS).split(train.features, groups=train.qid), start=1)
        }
        parts |= {"the validation part": (valid.labels, valid.qid), "the test part": (test.labels, test.qid)}
        name = ""
        try:
            for name, (labels, qid) in parts.items():  # noqa: B007  # the error names the part
                ndcg_score(labels, np.zeros(labels.size), flavor=self.flavor, qid=qid)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error


def search_grid(problem: Problem, adapters: Adapters) -> Trained:
    """(a) scikit-learn: ``GridSearchCV`` over a pipeline, cross-validated by query."""
    began = perf_counter()
    pipeline = Pipeline([("scale", StandardScaler()), ("regressor", Ridge())])
    train = problem.train
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipeline, GRID, scoring=adapters.scorer, cv=GroupKFold(FOLDS), n_jobs=2)
        search.fit(train.features, train.labels, groups=train.qid)
    results = search.cv_results_
    labels = tuple(_in_words(params) for params in results["params"])
    return Trained(
        framework="scikit-learn",
        scores=search.predict(problem.test.features).astype(np.float64),
        history=tuple(results["mean_test_score"].tolist()),
        best=int(search.best_index_),
        chosen=labels[search.best_index_],
        seconds=perf_counter() - began,
        spread=tuple(results["std_test_score"].tolist()),
        labels=labels,
    )


def train_network(problem: Problem, adapters: Adapters, *, epochs: int, seed: int) -> Trained:
    """(b) PyTorch: an MLP trained by ``ApproxNDCGLoss``, stopped early by the ``NDCG`` metric."""
    began = perf_counter()
    # Only the training part may set the scale: the others stand for data that are not known yet.
    scale = StandardScaler().fit(problem.train.features)

    def tensors(split: Split) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        features = scale.transform(split.features).astype(np.float32)
        arrays = split.padded(features), split.padded(split.labels), split.mask
        features_, labels_, mask_ = (torch.from_numpy(array) for array in arrays)
        return features_, labels_, mask_

    features, labels, mask = tensors(problem.train)
    valid_features, valid_labels, valid_mask = tensors(problem.valid)
    metric, history = adapters.metric, []
    # The seed must not change the random numbers of the caller.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = torch.nn.Sequential(
            torch.nn.Linear(features.shape[-1], 64),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(64, 32),
            torch.nn.ReLU(),
            torch.nn.Linear(32, 1),
        )
        optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)
        best, best_weights = -1, copy.deepcopy(network.state_dict())
        for epoch in range(epochs):
            network.train()
            for batch in torch.split(torch.randperm(len(features)), _QUERIES_PER_BATCH):
                optimizer.zero_grad()
                loss = adapters.loss(network(features[batch]).squeeze(-1), labels[batch], mask=mask[batch])
                loss.backward()
                optimizer.step()
            # Dropout is off for the metric, which sees the validation part as one set of queries.
            network.eval()
            with torch.no_grad():
                metric.reset()
                metric.update(network(valid_features).squeeze(-1), valid_labels, mask=valid_mask)
                history.append(torch.as_tensor(metric.compute()).item())
            # The weights of the best epoch are copied, because later epochs overwrite them.
            if best < 0 or history[-1] > history[best]:
                best, best_weights = epoch, copy.deepcopy(network.state_dict())
            elif epoch - best >= _NETWORK_PATIENCE:
                break
        # The network has stayed in its evaluation mode since the last epoch.
        network.load_state_dict(best_weights)
        with torch.no_grad():
            test = torch.from_numpy(scale.transform(problem.test.features).astype(np.float32))
            scores = network(test).squeeze(-1).double().numpy()
    metric.reset()
    return Trained(
        framework="PyTorch",
        scores=scores,
        history=tuple(history),
        best=best,
        chosen=f"MLP, epoch {best + 1} of {len(history)}",
        stopped=len(history) < epochs,
        seconds=perf_counter() - began,
    )


def boost_trees(problem: Problem, adapters: Adapters, *, rounds: int, seed: int) -> Trained:
    """(c) LightGBM: lambdarank, stopped early by ``NDCGEval``."""
    began = perf_counter()
    # One thread and one histogram order: the same trees in every run. LightGBM's own metrics are off, so that
    # only the flavor can stop the training.
    parameters = {
        "objective": "lambdarank",
        "metric": "None",
        "learning_rate": 0.1,
        "num_leaves": 15,
        "min_data_in_leaf": 50,
        "num_threads": 1,
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    train = lightgbm.Dataset(problem.train.features, problem.train.labels, group=problem.train.sizes)
    valid = train.create_valid(problem.valid.features, problem.valid.labels, group=problem.valid.sizes)
    name = adapters.feval.names[0]
    recorded: dict[str, dict[str, list[float]]] = {}
    # The flavor's NDCG on the validation part decides alone when to stop.
    booster = lightgbm.train(
        parameters,
        train,
        num_boost_round=rounds,
        valid_sets=[valid],
        valid_names=["valid"],
        feval=adapters.feval,
        callbacks=[
            lightgbm.record_evaluation(recorded),
            lightgbm.early_stopping(_BOOSTING_PATIENCE, first_metric_only=True, verbose=False),
        ],
    )
    # LightGBM counts rounds from 1, a history from 0.
    history = recorded["valid"][name]
    best = booster.best_iteration
    return Trained(
        framework="LightGBM",
        scores=booster.predict(problem.test.features, num_iteration=best),
        history=tuple(history),
        best=best - 1,
        chosen=f"lambdarank, round {best} of {len(history)}",
        stopped=len(history) < rounds,
        seconds=perf_counter() - began,
    )


def _in_words(params: dict[str, Any]) -> str:
    short = {"Ridge": "Ridge", "HistGradientBoostingRegressor": "HistGB"}[type(params["regressor"]).__name__]
    rest = (f"{name.removeprefix('regressor__')}={value:g}" for name, value in params.items() if name != "regressor")
    return f"{short}, {', '.join(sorted(rest, reverse=True))}"


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit OpenMP and torch to one thread for a while.

    On problems of this size threads cost more than they save, ten times more where they have to share cores. And sums
    come out the same on any number of cores.
    """
    before = torch.get_num_threads()
    with threadpool_limits(limits=1):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
