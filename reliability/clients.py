"""Run the clients of reliability/results/clients.md that no test runs.

``python -m reliability.clients [NAME ...]`` prints their rows.

Each function passes 37 queries to a tool, and returns the tool's value and that of ``ndcg_score``. The number of lines
is that of the function, without blank lines.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from ndcg_ml import evaluate_part, ndcg_score
from ndcg_ml.lightgbm import NDCGEval
from ndcg_ml.torch import NDCG

FLAVOR = "lightgbm@10[ties=average]"
DRAWN = np.random.default_rng(0)
SIZES = DRAWN.integers(2, 20, 37)
QID = np.repeat(np.arange(37), SIZES)
X = DRAWN.normal(size=(len(QID), 4)).astype(np.float32)
Y = np.clip(np.round(X[:, 0] + DRAWN.normal(size=len(QID))), 0, 4).astype(np.int64)
SCORES = np.round(X[:, 0], 1)  # with ties
EXPECTED = ndcg_score(Y, SCORES, qid=QID, flavor=FLAVOR)


def padded(rows: Any) -> torch.Tensor:
    """Return values of rows as one row per query."""
    return torch.nn.utils.rnn.pad_sequence(torch.as_tensor(rows).split(SIZES.tolist()), batch_first=True)


QUERIES = TensorDataset(padded(SCORES), padded(Y), torch.arange(37), padded(np.ones(len(Y), dtype=bool)))


def lightning(processes: int = 2) -> tuple[float, float]:
    """Validate in two processes, on 19 and 18 queries."""
    import lightning

    class Model(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.metric = NDCG(FLAVOR)

        def val_dataloader(self) -> Any:
            return DataLoader(QUERIES, 4, sampler=range(self.trainer.global_rank, 37, self.trainer.world_size))

        def validation_step(self, batch: Any) -> None:
            self.metric.update(*batch)
            self.log("ndcg", self.metric)

    trainer = lightning.Trainer(
        accelerator="cpu", devices=processes, strategy="ddp_fork", logger=False, use_distributed_sampler=False
    )
    return trainer.validate(Model(), verbose=False)[0]["ndcg"], EXPECTED


def _accelerated(path: str) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    metric = NDCG(FLAVOR, sync_on_compute=False)  # each process gathers all queries
    for batch in accelerator.prepare(DataLoader(QUERIES, 4)):
        metric.update(*accelerator.gather_for_metrics(batch))
    Path(path, str(accelerator.process_index)).write_text(str(metric.compute().item()))


def accelerate() -> tuple[float, float]:
    """Gather batches of two processes; accelerate fills up the last batch with queries of the first."""
    from accelerate import debug_launcher

    with tempfile.TemporaryDirectory() as folder:
        debug_launcher(_accelerated, (folder,), num_processes=2)
        [first, second] = [float(path.read_text()) for path in Path(folder).iterdir()]
    assert first == second
    return first, EXPECTED


def ignite() -> tuple[float, float]:
    """Evaluate with an engine, and add the value to its metrics."""
    from ignite.engine import Engine, Events

    metric = NDCG(FLAVOR)
    engine = Engine(lambda _, batch: metric.update(*batch))
    engine.add_event_handler(Events.EPOCH_STARTED, lambda _: metric.reset())
    engine.add_event_handler(
        Events.EPOCH_COMPLETED, lambda engine: engine.state.metrics.update(ndcg=metric.compute().item())
    )
    return engine.run(DataLoader(QUERIES, 4), max_epochs=2).metrics["ndcg"], EXPECTED


def fastai() -> tuple[float, float]:
    """Validate a Learner with a metric."""
    from fastai.data.core import DataLoaders
    from fastai.learner import Learner, Metric

    class Value(Metric):  # type: ignore[misc]
        name = "ndcg"

        def reset(self) -> None:
            self.metric = NDCG(FLAVOR)

        def accumulate(self, learn: Any) -> None:
            self.metric.update(learn.pred, *learn.yb)

        @property
        def value(self) -> float:
            return self.metric.compute().item()

    loaders = DataLoaders(DataLoader(QUERIES, 4), DataLoader(QUERIES, 4))
    loaders.n_inp = 1
    learner = Learner(loaders, torch.nn.PReLU(), loss_func=lambda scores, *_: scores.sum(), metrics=Value())
    return learner.validate()[1], EXPECTED


def optuna() -> tuple[float, float]:
    """Tune with LightGBMTuner, which minimises custom metrics."""
    import lightgbm
    import optuna
    from optuna_integration.lightgbm import LightGBMTuner

    ndcg = NDCGEval(FLAVOR)

    def negative(scores: Any, data: Any) -> Any:
        return [("negative_ndcg", -value, False) for _, value, _ in ndcg(scores, data)]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    params = {"objective": "lambdarank", "metric": "negative_ndcg", "verbosity": -1, "num_threads": 1}
    data = lightgbm.Dataset(X, Y, group=SIZES)
    tuner = LightGBMTuner(params, data, 5, valid_sets=[data], feval=negative, optuna_seed=0, show_progress_bar=False)
    tuner.run()
    return -tuner.best_score, ndcg_score(Y, tuner.get_best_booster().predict(X), qid=QID, flavor=FLAVOR)


def river() -> tuple[float, float]:
    """Validate progressively: score each query, then train on it."""
    from river.linear_model import LinearRegression

    model, scores, parts = LinearRegression(), [], []
    for q in range(37):
        rows, grades = [dict(enumerate(row)) for row in X[q == QID].tolist()], Y[q == QID]
        scores.append([model.predict_one(row) for row in rows])
        parts.append(evaluate_part(grades, scores[-1], qid=np.full(len(grades), q), flavor=FLAVOR))
        for row, grade in zip(rows, grades.tolist(), strict=True):
            model.learn_one(row, grade)
    return sum(parts[1:], parts[0]).value, ndcg_score(Y, np.concatenate(scores), qid=QID, flavor=FLAVOR)


CLIENTS: dict[str, tuple[Callable[[], tuple[Any, float]], str]] = {
    "Lightning, 2 processes": (lightning, "lightning"),
    "accelerate, 2 processes": (accelerate, "accelerate"),
    "PyTorch Ignite": (ignite, "pytorch-ignite"),
    "fastai": (fastai, "fastai"),
    "Optuna's LightGBMTuner": (optuna, "optuna-integration"),
    "river": (river, "river"),
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or CLIENTS:
        client, distribution = CLIENTS[name]
        found, expected = client()
        verdict = "equal" if abs(float(found) - expected) < 1e-6 else f"{float(found)} for {expected}"
        lines = sum(1 for line in inspect.getsource(client).splitlines() if line.strip())
        print(f"| {name} | {version(distribution)} | {lines} | {verdict} |", flush=True)
