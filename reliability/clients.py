"""Compare the numbers of clients, and write the table of reliability/results/clients.md.

``python -m reliability.clients [NAME ...]`` runs the named rows, or all, and writes versions, verdict and date of those
that ran. A client that cannot be imported is named with what it lacks, and its row stays as it was.

A row is a test of the package, or a function below that no test calls. Such a function passes 37 queries to a tool, and
returns the tool's value and that of ``ndcg_score``; the number of lines is that of the function, without blank lines.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from datetime import date
from importlib.metadata import PackageNotFoundError, version
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


TABLE = Path(__file__).parent / "results" / "clients.md"
RECIPES, ENGINES = "tests/pages/test_docs.py", "tests/engines/test_engines.py"
DISTRIBUTED = "tests/pytorch/test_torch_distributed.py"
# By the name of the row: a test of the package or a function, the distributions whose versions are printed, and others
# that the tool needs and does not bring.
CLIENTS: dict[str, tuple[str | Callable[[], tuple[Any, float]], str, str]] = {
    "scikit-learn, `GridSearchCV` and others": ("tests/adapters/test_sklearn_scorer.py", "scikit-learn", ""),
    "LightGBM": ("tests/adapters/test_lightgbm.py", "lightgbm", ""),
    "XGBoost": ("tests/adapters/test_xgboost.py", "xgboost", ""),
    "CatBoost": ("tests/adapters/test_catboost_eval.py", "catboost", ""),
    "Optuna, pruning": (f"{RECIPES}::test_a_section_runs[Optuna]", "optuna", ""),
    "Optuna, `LightGBMTuner`": (optuna, "optuna", "optuna-integration"),
    "FLAML": (f"{RECIPES}::test_a_section_runs[FLAML]", "flaml", ""),
    "Ray Tune": (f"{RECIPES}::test_a_section_runs[Ray Tune]", "ray", ""),
    "skore": (f"{RECIPES}::test_a_section_runs[skore]", "skore", ""),
    "skops": (f"{RECIPES}::test_a_section_runs[skops]", "skops", ""),
    "river": (river, "river", ""),
    "Lightning, one process": ("tests/pytorch/test_lightning.py", "lightning", ""),
    "Lightning, two processes": (lightning, "lightning", ""),
    "accelerate, two processes": (accelerate, "accelerate", ""),
    "accelerate, batches of unequal width": (f"{DISTRIBUTED}::test_accelerate_gathers_all_queries", "accelerate", ""),
    "Hugging Face Trainer": (f"{RECIPES}::test_a_section_runs[Hugging Face Trainer]", "transformers", "accelerate"),
    "sentence-transformers": (f"{RECIPES}::test_a_section_runs[sentence-transformers]", "sentence-transformers", ""),
    "skorch": (f"{RECIPES}::test_a_section_runs[skorch]", "skorch", ""),
    "Keras": (f"{RECIPES}::test_a_section_runs[Keras]", "keras", ""),
    "PyTorch Ignite": (ignite, "pytorch-ignite", ""),
    "fastai": (fastai, "fastai", "python-fasthtml beartype"),
    "torchmetrics, `BootStrapper`": (f"{RECIPES}::test_a_section_runs[torchmetrics]", "torchmetrics", ""),
    "mlflow": (f"{RECIPES}::test_a_section_runs[mlflow]", "mlflow", ""),
    "ranx": (f"{RECIPES}::test_a_block_of_a_page_runs_alone_and_prints_what_is_shown[coming_from-2]", "ranx", ""),
    "pandas, polars, DuckDB": (f"{ENGINES}::test_files_larger_than_memory", "pandas polars duckdb", ""),
    "Dask": (f"{ENGINES}::test_dask_gives_the_number_of_one_machine", "dask", "distributed"),
    "Spark": (f"{ENGINES}::test_spark", "pyspark", ""),
    "Ray Data": (f"{ENGINES}::test_ray", "ray", ""),
}


def by_test(test: str) -> str:
    """Return the verdict of a test of the package, in another process."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TABLE.parents[2])
    last = done.stdout.splitlines()[-1] if done.stdout else done.stderr
    if done.returncode == 0 and " passed" not in last:
        raise ImportError(last)
    return "equal" if done.returncode == 0 else "**fails**"


def by_function(client: Callable[[], tuple[Any, float]]) -> str:
    """Return the verdict of a function."""
    found, expected = client()
    return "equal" if abs(float(found) - expected) < 1e-6 else f"**{float(found)} for {expected}**"


def code_lines(client: str | Callable[[], tuple[Any, float]], row: str) -> int | None:
    """Return the number of lines of a function, or of the section that a row links to, without blank ones."""
    if not isinstance(client, str):
        code = inspect.getsource(client)
    elif client.startswith(RECIPES):
        [(page, anchor)] = re.findall(r"\((\.\./\.\./docs/\w+\.md)#([\w-]+)\)", row)
        sections = re.split(r"^## (.*)$", (TABLE.parent / page).read_text("utf-8"), flags=re.MULTILINE)[1:]
        of_heading = {title.lower().replace(" ", "-"): text for title, text in zip(*[iter(sections)] * 2, strict=True)}
        code = "".join(re.findall(r"```python\n(.*?)```", of_heading[anchor], flags=re.DOTALL))
    else:
        return None
    return sum(1 for line in code.splitlines() if line.strip())


def again(name: str, row: str) -> str:
    """Run a row of the table, and return it with the versions, lines, verdict and date of this run."""
    client, shown, more = CLIENTS[name]
    versions = [version(distribution) for distribution in f"{shown} {more}".split()][: len(shown.split())]
    verdict = by_test(client) if isinstance(client, str) else by_function(client)
    _, _, _, lines, before, _, tested, _ = row.split("|")
    note = re.sub(r"^(equal|\*\*.*?\*\*)", "", before.strip())
    lines = f" {code_lines(client, row) or lines.strip()} "
    return f"| {name} | {', '.join(versions)} |{lines}| {verdict}{note} | {date.today()} |{tested}|"


def main(names: list[str]) -> int:
    """Run the rows and write the table. Return the number of rows that are not equal."""
    wrong = 0
    for name in names or CLIENTS:
        text = TABLE.read_text("utf-8")
        [row] = re.findall(rf"^\| {re.escape(name)} \|.*$", text, flags=re.MULTILINE)
        try:
            found = again(name, row)
        except (ImportError, PackageNotFoundError) as error:
            _, shown, more = CLIENTS[name]
            print(f"{name}: not run: {error}. Try: pip install {shown} {more}", flush=True)
            continue
        wrong += "**" in found
        TABLE.write_text(text.replace(row, found), "utf-8")
        print(found, flush=True)
    return wrong


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main(sys.argv[1:]) > 0)
