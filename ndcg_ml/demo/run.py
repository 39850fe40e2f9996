"""``ndcg-ml demo``: one flavor chooses three models in three frameworks, and the numbers are compared."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
from numpy.typing import NDArray

from ndcg_ml import Flavor, _atomic, evaluate
from ndcg_ml._one_line import visible
from ndcg_ml.demo.digits import MOST_QUERIES, digits_problem
from ndcg_ml.demo.problem import Problem, Split, letor_problem
from ndcg_ml.readers import DataFileError

if TYPE_CHECKING:
    from ndcg_ml.demo.models import Adapters, Trained

_FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
_PICTURE = click.Path(dir_okay=False, writable=True, path_type=Path)
_UNTRAINED = "no model"


@click.command(short_help="Choose three models by one NDCG flavor.")
@click.option(
    "--flavor",
    "flavor_text",
    default="lightgbm@10",
    show_default=True,
    help="Any flavor's text, such as 'sklearn@5' or 'ndcg@10[gain=exponential,empty=skip]'.",
)
@click.option(
    "--train",
    type=_FILE,
    help="LETOR/SVMlight file with qid:, or with query sizes in FILE.query beside it. "
    "Default: embedded data made from scikit-learn's handwritten digits.",
)
@click.option("--valid", type=_FILE, help="File of the same form; without it, some training queries are held out.")
@click.option("--test", type=_FILE, help="File of the same form; required with --train.")
@click.option(
    "--picture",
    type=_PICTURE,
    default=Path("ndcg-ml-demo.png"),
    show_default=True,
    help="Where to save the training curves.",
)
@click.option(
    "--scores",
    "scores_file",
    type=_PICTURE,
    help="Save the models' scores of the test documents here, as CSV: 'ndcg-ml compare --table' says which of their "
    "differences are chance.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=0,
    show_default=True,
    help="Seed of the data and of the training.",
)
@click.option(
    "--queries",
    type=click.IntRange(20, MOST_QUERIES),
    help=f"Training queries of the embedded data.  [default: {MOST_QUERIES}]",
)
@click.option("--epochs", type=click.IntRange(1), default=60, show_default=True, help="Most epochs of the network.")
@click.option("--rounds", type=click.IntRange(1), default=300, show_default=True, help="Most rounds of boosting.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def demo(
    flavor_text: str,
    train: Path | None,
    valid: Path | None,
    test: Path | None,
    picture: Path,
    scores_file: Path | None,
    seed: int,
    queries: int | None,
    epochs: int,
    rounds: int,
    as_json: bool,
) -> None:
    """Choose three models by one NDCG flavor, then score them by everyone's.

    A scikit-learn grid search, a PyTorch network that stops early and LightGBM that stops early are all guided by
    --flavor. The output: their test NDCG; the same predictions under well-known presets; how far this library is from
    scikit-learn's, LightGBM's and torchmetrics' own numbers; and a picture of the training curves.
    """
    # Training takes minutes, so everything that can be wrong is found before it: the flavor, the packages, the files
    # to write, and whether each framework can score these data under the flavor.
    try:
        flavor = Flavor.parse(flavor_text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--flavor") from error
    try:
        from ndcg_ml.demo import comparison, models, report
        from ndcg_ml.demo import picture as pictures
    except ImportError as error:
        raise click.ClickException(f"{error}. The demo needs: pip install 'ndcg_ml[demo]'") from error
    _check_files({"--picture": picture, "--scores": scores_file}, [train, valid, test])
    _check_picture(picture, pictures.endings())
    try:
        adapters = models.Adapters(flavor)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--flavor") from error
    problem = _problem(train, valid, test, queries, seed)
    try:
        adapters.check(problem)
    except ValueError as error:
        raise click.BadParameter(f"the data cannot be scored under it: {error}", param_hint="--flavor") from error

    # Progress goes to standard error, so that the results, JSON above all, can be piped.
    if not as_json:
        _introduce(problem, flavor)
    with models.one_thread():
        trained = _train(problem, adapters, epochs, rounds, seed)
        predictions = {model.framework: model.scores for model in trained}
        if scores_file is not None:
            _write_scores(scores_file, problem.test, predictions)
        # A model that knows nothing shows what each tie rule makes of equal scores.
        predictions[_UNTRAINED] = trained[0].scores * 0
        results = {
            model: evaluate(problem.test.labels, scores, flavor=flavor, group=problem.test.sizes)
            for model, scores in predictions.items()
        }
        presets = comparison.under_well_known_presets(flavor, problem.test, predictions)
        agreements = comparison.agreements(flavor, problem.test, predictions)
    # The picture first: the results name its file.
    pictures.draw(trained, f"{problem.name}, guided by {flavor}", report.at(flavor), picture)
    if as_json:
        document = report.as_json(flavor, trained, results, presets, agreements)
        click.echo(json.dumps({**document, "data": problem.name, "picture": str(picture)}, indent=2))
        return
    for table in (
        report.models_table(trained, results, flavor),
        report.presets_table(presets, flavor),
        report.agreement_table(agreements, len(predictions)),
    ):
        click.echo(f"\n{table}")
    click.echo(f"Training curves: {visible(str(picture))}")


def _check_picture(picture: Path, endings: list[str]) -> None:
    if picture.suffix[1:].lower() not in endings:
        wrong = f"must end in one of {', '.join(endings)}; got {picture.name!r}."
        raise click.BadParameter(wrong, param_hint="--picture")


def _check_files(written: Mapping[str, Path | None], read: Sequence[Path | None]) -> None:
    """Refuse a file to write that is read or written twice, or whose folder does not exist."""
    taken = [Path(f"{file}{side}") for file in read if file is not None for side in ("", ".query")]
    for option, file in written.items():
        if file is None:
            continue
        _check_folder(file, option)
        if any(
            file.samefile(one) if file.exists() and one.exists() else file.resolve() == one.resolve() for one in taken
        ):
            raise click.BadParameter(f"{file} is read, or written as well. Name another file.", param_hint=option)
        taken.append(file)


def _check_folder(file: Path, option: str) -> None:
    """Refuse a file to write whose folder does not exist."""
    if not file.parent.is_dir():
        raise click.BadParameter(f"the folder {file.parent} does not exist.", param_hint=option)
    if not os.access(file.parent, os.W_OK):
        raise click.BadParameter(f"the folder {file.parent} cannot be written to.", param_hint=option)


def _write_scores(path: Path, test: Split, predictions: Mapping[str, NDArray[np.float64]]) -> None:
    """The test documents as rows of CSV: query, label, and the score of each model."""
    rows = zip(
        test.qid.tolist(), test.labels.tolist(), *(scores.tolist() for scores in predictions.values()), strict=True
    )
    lines = [",".join(("qid", "label", *predictions)), *(",".join(map(repr, row)) for row in rows)]
    _atomic.write(path, "\n".join(lines) + "\n")


def _problem(train: Path | None, valid: Path | None, test: Path | None, queries: int | None, seed: int) -> Problem:
    if train is None:
        for name, path in (("--valid", valid), ("--test", test)):
            if path is not None:
                raise click.UsageError(f"{name} needs --train as well.")
        return digits_problem(seed, MOST_QUERIES if queries is None else queries)
    if test is None:
        raise click.UsageError("--train needs --test as well: results are reported on queries that chose nothing.")
    if queries is not None:
        raise click.UsageError("--queries is for the embedded data; leave it out with --train.")
    try:
        return letor_problem(train, test, valid, seed=seed)
    except DataFileError as error:
        raise click.UsageError(str(error)) from error


def _introduce(problem: Problem, flavor: Flavor) -> None:
    parts = {name: getattr(problem, name) for name in ("train", "valid", "test")}
    sizes = (f"{name} {p.sizes.size} queries / {p.labels.size:,} documents" for name, p in parts.items())
    facts = [
        ("data", f"{problem.name}, {problem.train.features.shape[1]} features"),
        ("", "; ".join(sizes)),
        *(("note", note) for note in problem.notes),
        ("flavor", str(flavor)),
    ]
    for name, words in facts:
        click.echo(f"{name:<8}{visible(words)}")


def _train(problem: Problem, adapters: Adapters, epochs: int, rounds: int, seed: int) -> list[Trained]:
    """The three models; a line on standard error says which has been trained."""
    from ndcg_ml.demo import models

    trained: list[Trained] = []
    steps: tuple[tuple[str, Callable[[], Trained]], ...] = (
        ("scikit-learn: grid search by query", lambda: models.search_grid(problem, adapters)),
        ("PyTorch: MLP, ApproxNDCG loss", lambda: models.train_network(problem, adapters, epochs=epochs, seed=seed)),
        ("LightGBM: lambdarank", lambda: models.boost_trees(problem, adapters, rounds=rounds, seed=seed)),
    )
    for what, train in steps:
        click.echo(f"{what} ... ", nl=False, err=True)
        trained.append(train())
        click.echo(f"{trained[-1].validation:.4f} in {trained[-1].seconds:.0f} s", err=True)
    return trained
