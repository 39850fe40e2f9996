"""The command ``ndcg-ml demo``: select three models of three frameworks by one flavor, on data that scikit-learn has.

The frameworks are imported when the command trains.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from ndcg_ml import PRESETS, Flavor, ndcg_score
from ndcg_ml._files.opening import write_atomically
from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.messages import install, visible
from ndcg_ml._plain.table import Column, Record
from ndcg_ml.cli.inputs import OUTPUT, flavor_option, refuse_overwriting

if TYPE_CHECKING:
    import torch

__all__ = ["Problem", "TrainTest", "digits_problem"]

# -- the data ---------------------------------------------------------------------------------------------------------

_MOST_QUERIES = 300  # more training queries would leave too few images to retrieve

# Consecutive images are mostly by one writer, so models are tested on the handwriting of other writers (except those at
# the two borders). Each part has its images and its number of queries, relative to that of the training part.
_PARTS = ((slice(0, 900), 1.0), (slice(900, 1250), 0.25), (slice(1250, None), 0.5))

# The family of each digit, by its strokes: round (0, 6), straight (1, 4, 7), curved to the right (3, 5, 8, 9), and 2.
_FAMILY = np.array([0, 1, 2, 3, 1, 3, 0, 1, 3, 3])

_RADIUS = 0.03
_LONGEST = 40


@dataclass(frozen=True, eq=False)
class TrainTest:
    """One part of a ranking problem. The rows of each query are contiguous.

    Attributes
    ----------
    features : ndarray of float64, shape (n_rows, n_features)
    labels : ndarray of int64, shape (n_rows,)
        Grades, 0 or above.
    sizes : ndarray of int64, shape (n_queries,)
        Number of rows of each query, none of them 0.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @cached_property
    def qid(self) -> NDArray[np.int64]:
        """The query of each row: 0, 1, ..."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    @cached_property
    def doc_id(self) -> NDArray[np.str_]:
        """The number of each row, zero-padded so that the order of ids is that of the rows."""
        digits = len(str(self.labels.size))
        return np.array([f"{row:0{digits}d}" for row in range(self.labels.size)])

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """Shape (n_queries, longest): True for documents, False for padding."""
        return np.arange(int(self.sizes.max())) < self.sizes[:, None]

    def padded(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of rows as one row per query, padded with 0."""
        out = np.zeros((*self.mask.shape, *values.shape[1:]), dtype=values.dtype)
        out[self.mask] = values
        return out


class Problem(NamedTuple):
    """Train, validation and test part of a ranking problem."""

    train: TrainTest
    valid: TrainTest
    test: TrainTest


def digits_problem(seed: int = 0, queries: int = _MOST_QUERIES) -> Problem:
    """Return a graded retrieval problem: find images of digits that are similar to a given image.

    The images are the 1,797 digits of ``sklearn.datasets.load_digits``, 8 by 8 pixels. They are divided into three
    parts (900, 350 and 547 images, by different writers). In each part some images are queries, and the others are
    documents.

    A first stage retrieves the candidates of a query: at most 40 images whose left and right halves are nearly as dark
    as those of the query, the most similar first. So queries differ in length; some have one candidate, and some have
    no relevant one, which ``Flavor.empty`` scores. Because similar images come first, ``ties="first"`` and
    ``ties="average"`` differ for a model that ties documents. Queries without candidates are excluded.

    The relevance label is 2 for the same digit, 1 for another digit of its family by shape (0 and 6 round; 1, 4 and 7
    straight; 3, 5, 8 and 9 curved to the right; 2 alone), and 0 otherwise. The 70 features compare the two images: the
    absolute difference of each pixel, the Manhattan and Euclidean distance, the correlation, the Euclidean distance of
    row sums and of column sums, and the smallest Euclidean distance over shifts by one pixel.

    Parameters
    ----------
    seed : int, default 0
        Random seed for drawing the queries.
    queries : int, default 300
        Number of training queries, from 8 to 300. There are a quarter as many for validation, and half as many for the
        test.

    Returns
    -------
    Problem

    Examples
    --------
    >>> problem = digits_problem(queries=20)
    >>> problem.train.features.shape[1], int(problem.test.labels.max())
    (70, 2)
    """
    from sklearn.datasets import load_digits

    if not 8 <= queries <= _MOST_QUERIES:
        raise ValueError(f"queries must be from 8 to {_MOST_QUERIES}; got {queries}.")
    digits = load_digits()
    images, shown = digits.images / 16.0, digits.target
    rng = np.random.default_rng(seed)
    return Problem(*(_split(images[rows], shown[rows], round(queries * share), rng) for rows, share in _PARTS))


def _split(images: NDArray[Any], shown: NDArray[Any], n_queries: int, rng: np.random.Generator) -> TrainTest:
    drawn = rng.permutation(len(images))
    queries, pool = drawn[:n_queries], np.sort(drawn[round(_MOST_QUERIES / 900 * len(images)) :])
    ink = images.reshape(-1, 8, 2, 4).mean(axis=(1, 3))
    features, labels, sizes = [], [], []
    for query in queries:
        distance = np.linalg.norm(ink[pool] - ink[query], axis=1)
        nearest = np.argsort(distance, kind="stable")[:_LONGEST]
        similar = pool[nearest[distance[nearest] <= _RADIUS]]
        if similar.size == 0:
            continue
        features.append(_compare(images[query], images[similar]))
        same_family = _FAMILY[shown[similar]] == _FAMILY[shown[query]]
        labels.append(same_family.astype(np.int64) + (shown[similar] == shown[query]))
        sizes.append(similar.size)
    return TrainTest(np.concatenate(features), np.concatenate(labels), np.array(sizes))


def _compare(query: NDArray[Any], found: NDArray[Any]) -> NDArray[np.float64]:
    """Return the features of each retrieved image, compared with the query."""
    difference = np.abs(found - query).reshape(len(found), -1)
    profiles = [np.linalg.norm(found.sum(axis=axis + 1) - query.sum(axis=axis), axis=1) for axis in (0, 1)]
    flat, centred = found.reshape(len(found), -1), query.ravel() - query.mean()
    flat = flat - flat.mean(axis=1, keepdims=True)
    correlation = flat @ centred / (np.linalg.norm(flat, axis=1) * np.linalg.norm(centred))
    edge = np.pad(found, ((0, 0), (1, 1), (1, 1)))
    shifted = [
        np.linalg.norm((edge[:, down : down + 8, right : right + 8] - query).reshape(len(found), -1), axis=1)
        for down in range(3)
        for right in range(3)
    ]
    distances = difference.sum(axis=1), np.linalg.norm(difference, axis=1)
    return np.column_stack([difference, *distances, correlation, *profiles, np.min(shifted, axis=0)])


# -- the models -------------------------------------------------------------------------------------------------------

_FOLDS = 4
_EPOCHS, _NETWORK_PATIENCE, _QUERIES_PER_BATCH = 60, 12, 16
_ROUNDS, _BOOSTING_PATIENCE = 300, 25


@dataclass(frozen=True, eq=False)
class Trained:
    """A selected model's scores of the test documents, and how it was selected.

    Attributes
    ----------
    framework, model : str
    unit : str
        What `history` has a value of: "candidate", "epoch" or "round".
    history : sequence of float
        Validation NDCG of each, in order.
    best : int
        Position of the selected one in `history`.
    scores : ndarray
    """

    framework: str
    model: str
    unit: str
    history: Sequence[float]
    best: int
    scores: NDArray[np.float64]

    def __str__(self) -> str:
        return f"{self.framework}: {self.model}, {self.unit} {self.best + 1} of {len(self.history)}"


Step = Callable[[int], object]
"""Called with 1 after each candidate in a fold, epoch or round, for the progress bar."""


def search_grid(problem: Problem, flavor: Flavor, step: Step = lambda _: None) -> Trained:
    """Select a scikit-learn pipeline by ``GridSearchCV``, cross-validated by query."""
    import joblib
    import sklearn
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from ndcg_ml.sklearn import NDCGScorer

    class Scorer(NDCGScorer):
        def __call__(self, *args: Any, **ids: Any) -> Any:
            step(1)
            return super().__call__(*args, **ids)

    trees = HistGradientBoostingRegressor(max_iter=40, min_samples_leaf=10)
    grid: list[dict[str, list[Any]]] = [
        {"regressor": [Ridge()], "regressor__alpha": [1.0, 100.0, 10_000.0]},
        {"regressor": [trees], "regressor__max_leaf_nodes": [7, 31], "regressor__learning_rate": [0.05, 0.15]},
    ]
    pipeline = Pipeline([("scale", StandardScaler()), ("regressor", Ridge())])
    train, folds = problem.train, GroupKFold(_FOLDS)
    # Threads, because processes take longer to start than these models to train.
    with sklearn.config_context(enable_metadata_routing=True), joblib.parallel_config("threading"):
        search = GridSearchCV(pipeline, grid, scoring=Scorer(flavor), cv=folds, n_jobs=2, error_score="raise")
        search.fit(train.features, train.labels, groups=train.qid)
    model, history = type(search.best_estimator_["regressor"]).__name__, search.cv_results_["mean_test_score"].tolist()
    scores = search.predict(problem.test.features).astype(np.float64)
    return Trained("scikit-learn", model, "candidate", history, int(search.best_index_), scores)


def train_network(problem: Problem, flavor: Flavor, step: Step = lambda _: None) -> Trained:
    """Train a PyTorch network by ``ApproxNDCGLoss``, stopped early by the ``NDCG`` metric."""
    import torch
    from sklearn.preprocessing import StandardScaler

    from ndcg_ml.torch import NDCG, ApproxNDCGLoss

    # The loss has no cut-off, because documents far below it would have no gradient. It averages the queries of a batch
    # and supports no negative labels, which these data do not have.
    criterion = ApproxNDCGLoss(flavor.replace(k=None, aggregate="macro", negative="raise"), temperature=0.5)
    metric, history = NDCG(flavor), []
    # Features are scaled by their statistics in the training part only.
    scale = StandardScaler().fit(problem.train.features)

    def tensors(split: TrainTest) -> tuple[torch.Tensor, ...]:
        features = scale.transform(split.features).astype(np.float32)
        arrays = split.padded(features), split.padded(split.labels), split.mask
        return tuple(map(torch.from_numpy, arrays))

    features, labels, mask = tensors(problem.train)
    valid_features, valid_labels, valid_mask = tensors(problem.valid)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(features.shape[-1], 64),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(64, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 1),
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3)
    best, best_weights = -1, copy.deepcopy(network.state_dict())
    for epoch in range(_EPOCHS):
        step(1)
        network.train()
        for batch in torch.split(torch.randperm(len(features)), _QUERIES_PER_BATCH):
            optimizer.zero_grad()
            loss = criterion(network(features[batch]).squeeze(-1), labels[batch], mask=mask[batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        # The metric is computed without dropout, over all validation queries.
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
    network.load_state_dict(best_weights)
    with torch.no_grad():
        test = torch.from_numpy(scale.transform(problem.test.features).astype(np.float32))
        scores = network(test).squeeze(-1).double().numpy()
    return Trained("PyTorch", "MLP", "epoch", history, best, scores)


def boost_trees(problem: Problem, flavor: Flavor, step: Step = lambda _: None) -> Trained:
    """Train LightGBM's lambdarank, stopped early by ``NDCGEval``."""
    import lightgbm

    from ndcg_ml.lightgbm import NDCGEval

    # One thread and a fixed order of histograms give the same trees in every run; no sampling is random. Without
    # LightGBM's own metrics, only the flavor stops the training.
    parameters = {
        "objective": "lambdarank",
        "metric": "None",
        "num_leaves": 15,
        "min_data_in_leaf": 50,
        "num_threads": 1,
        "force_row_wise": True,
        "verbosity": -1,
    }
    feval = NDCGEval(flavor)
    train = lightgbm.Dataset(problem.train.features, problem.train.labels, group=problem.train.sizes)
    valid = train.create_valid(problem.valid.features, problem.valid.labels, group=problem.valid.sizes)
    recorded: dict[str, dict[str, list[float]]] = {}
    booster = lightgbm.train(
        parameters,
        train,
        num_boost_round=_ROUNDS,
        valid_sets=[valid],
        feval=feval,
        callbacks=[
            lightgbm.record_evaluation(recorded),
            lightgbm.early_stopping(_BOOSTING_PATIENCE, verbose=False),
            lambda _: step(1),
        ],
    )
    history, best = recorded["valid_0"][feval.names[0]], booster.best_iteration  # counted from 1
    scores = booster.predict(problem.test.features, num_iteration=best)
    return Trained("LightGBM", "lambdarank", "round", history, best - 1, scores)


# The framework of each model, its training, and the number of its steps: 7 candidates in each fold, epochs, rounds.
_MODELS = (
    ("scikit-learn", search_grid, 7 * _FOLDS),
    ("PyTorch", train_network, _EPOCHS),
    ("LightGBM", boost_trees, _ROUNDS),
)


# -- the picture and the table ----------------------------------------------------------------------------------------

_CURVE, _BEST = "#2b6ca3", "#c8452d"


def _picture(trained: Sequence[Trained], flavor: Flavor) -> bytes:
    """Return a figure with one panel per model, as PNG."""
    from matplotlib.figure import Figure

    figure, file = Figure(figsize=(13, 4.3), layout="constrained"), BytesIO()
    panels = figure.subplots(1, len(trained), sharey=True)
    for panel, model in zip(panels, trained, strict=True):
        best, last, value = model.best + 1, len(model.history), model.history[model.best]
        style = "o" if model.unit == "candidate" else "-"
        panel.plot(range(1, last + 1), model.history, style, color=_CURVE)
        panel.axvline(best, color=_BEST, linewidth=1, linestyle="--")
        panel.plot(best, value, "o", color=_BEST, label=f"kept: {model.unit} {best} of {last}, {value:.4f}")
        panel.set(title=f"{model.framework}: {model.model}", xlabel=model.unit)
        panel.legend()
        panel.grid(alpha=0.25)
    panels[0].set_ylabel(f"validation NDCG{at_cutoff(flavor.k)}")
    figure.suptitle(f"Find images of the same digit: three models, each chosen by NDCG as {flavor.short_text}")
    figure.savefig(file, dpi=120)
    return file.getvalue()


_PRESETS = ("sklearn", "lightgbm", "xgboost", "catboost", "torchmetrics", "trec_eval", "burges2005", "jarvelin2002")


def _table(flavor: Flavor, test: TrainTest, scores: dict[str, NDArray[np.float64]]) -> Record:
    """Return the NDCG of each model under the flavor that selected it and under well-known presets, at one cut-off."""
    definitions = {f"{flavor.short_text} (chosen by)": flavor} | {
        name: PRESETS[name].replace(k=flavor.k) for name in _PRESETS
    }
    data: dict[str, Any] = {"y_true": test.labels, "group": test.sizes, "doc_id": test.doc_id}
    rows = [
        {
            "definition": name,
            "gain": used.gain if isinstance(used.gain, str) else "table",
            "ties": used.ties,
            "empty": used.empty,
            **{model: ndcg_score(y_score=each, flavor=used, **data) for model, each in scores.items()},
        }
        for name, used in definitions.items()
    ]
    columns = [Column(name, f"{{{name}}}", "l") for name in ("definition", "gain", "ties", "empty")]
    columns += [Column(model, f"{{{model}:.4f}}") for model in scores]
    *_, model, no_model = scores
    values = [row[model] for row in rows]
    caption = (
        f"The same {model} model has an NDCG{at_cutoff(flavor.k)} from {min(values):.3f} to {max(values):.3f} on the "
        f'same {test.sizes.size} test queries: only the definition differs. "{no_model}" scores all documents equally, '
        "so its NDCG depends on the tie-breaking rule."
    )
    return Record(columns, rows, caption=caption)


# -- the command ------------------------------------------------------------------------------------------------------


@click.command
@flavor_option("lightgbm@10")
@click.option(
    "--picture", type=OUTPUT, default="ndcg-ml-demo.png", show_default=True, help="PNG file for the training curves."
)
@click.option("--scores", type=OUTPUT, help="CSV file for the models' scores of the test documents.")
def demo(flavor: Flavor, picture: str, scores: str | None) -> None:
    """Select three models by one NDCG flavor, then score them under others.

    The flavor selects a candidate of a scikit-learn grid search, and stops the training of a PyTorch network and of
    LightGBM. The output is a picture of the training curves, and a table of the models' NDCG on the test queries under
    --flavor and under well-known presets.
    """
    refuse_overwriting()
    click.echo(
        "Images of handwritten digits are queries and documents: find those of the same digit. Three models, each "
        f"selected by NDCG as {flavor.short_text}, take about a minute.",
        err=True,
    )
    trained = []
    try:
        import matplotlib  # noqa: F401, the picture needs it after the training
        import torch
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        # With one thread, such a small problem is faster, and the sums do not depend on the number of cores.
        torch.set_num_threads(1)
        problem = digits_problem()
        with threadpool_limits(limits=1):
            for name, train, n_steps in _MODELS:
                with click.progressbar(length=n_steps, label=name, file=sys.stderr) as bar:
                    trained.append(train(problem, flavor, bar.update))
                    bar.update(n_steps - bar.pos)  # early stopping leaves some steps out
                click.echo(str(trained[-1]), err=True)
    except ImportError as error:
        raise click.ClickException(f"{error}. The demo needs: {install('demo')}") from error
    except ValueError as error:  # a framework cannot compute the flavor, or the flavor rejects these data
        raise click.BadParameter(str(error), param_hint="--flavor") from error
    predictions = {model.framework: model.scores for model in trained}
    if scores is not None:
        columns = {"qid": problem.test.qid, "label": problem.test.labels, **predictions}
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        write_atomically(scores, "".join(f"{','.join(map(str, row))}\n" for row in [columns, *rows]))
    predictions["no model"] = np.zeros(problem.test.labels.size)
    click.echo(_table(flavor, problem.test, predictions).text())
    write_atomically(picture, _picture(trained, flavor))
    click.echo(f"Training curves: {visible(picture)}")
