"""The demo's output: three tables for people, one JSON document for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from ndcg_ml import PRESETS, Evaluation, Flavor
from ndcg_ml.result import at_cutoff

if TYPE_CHECKING:
    from ndcg_ml.demo.comparison import Agreement
    from ndcg_ml.demo.models import Trained


def at(flavor: Flavor) -> str:
    """NDCG with its cut-off, for headings."""
    return f"NDCG{at_cutoff(flavor.k)}"


def models_table(trained: Sequence[Trained], results: Mapping[str, Evaluation[float]], flavor: Flavor) -> Table:
    """Table 1: the models under the chosen flavor."""
    headings = ("model", "what was kept", "validation", "test", "seconds")
    table = _table(f"1. Three models, one flavor: {at(flavor)} on the test queries", headings, right=range(2, 5))
    for model in trained:
        value = results[model.framework].value
        table.add_row(
            model.framework, model.chosen, f"{model.validation:.4f}", f"[bold]{value:.4f}[/]", f"{model.seconds:.1f}"
        )
    for name, result in results.items():
        if name not in {model.framework for model in trained}:
            table.add_row(name, "all scores equal", "", f"{result.value:.4f}", "", style="dim")
    first = next(iter(results.values()))
    treated = f"scored {flavor.empty:g}" if isinstance(flavor.empty, float) else "left out of the mean"
    table.caption = (
        f"{first.n_queries} test queries, {first.n_empty} of them without a relevant document"
        + (f" ({treated})" if first.n_empty else "")
        + ". Validation: mean of the folds for the grid search, the validation queries for the others."
    )
    return table


def presets_table(values: Mapping[str, Mapping[str, float]], flavor: Flavor) -> Table:
    """Table 2: the same predictions under the well-known presets."""
    models = list(next(iter(values.values())))
    headings = ("preset", "gain", "ties", "empty", *models)
    title = f"2. The same predictions, {at(flavor)} under well-known presets"
    table = _table(title, headings, right=range(4, len(headings)), no_wrap=True)
    for name, row in values.items():
        used = PRESETS.get(name, flavor)
        switches = [_short(used.gain), used.ties, _short(used.empty)]
        style = "bold" if name not in PRESETS else ""
        table.add_row(name, *switches, *(f"{row[model]:.4f}" for model in models), style=style)
        if name not in PRESETS:
            table.add_section()
    table.add_section()
    columns = ([row[model] for row in values.values()] for model in models)
    spread = [max(column) - min(column) for column in columns]
    table.add_row("max - min", "", "", "", *(f"{value:.4f}" for value in spread), style="bold yellow")
    table.caption = (
        "Nothing was trained again: only the definition changes (jarvelin2002 also has another discount). "
        '"No model" gives every document the same score, so the tie rule decides.'
    )
    return table


def agreement_table(agreements: Sequence[Agreement], n_models: int) -> Table:
    """Table 3: the same number from everywhere."""
    headings = ("compared", "flavor", "queries", "difference", "note")
    table = _table("3. The same flavor, computed by others: largest difference seen", headings, right=range(2, 4))
    table.columns[-1].style = "dim"
    for entry in agreements:
        table.add_row(entry.compared, entry.flavor, str(entry.queries), f"[bold]{entry.difference:.1e}[/]", entry.note)
    table.caption = f"Over the {n_models} sets of predictions of table 2."
    return table


def as_json(
    flavor: Flavor,
    trained: Sequence[Trained],
    results: Mapping[str, Evaluation[float]],
    presets: Mapping[str, Mapping[str, float]],
    agreements: Sequence[Agreement],
) -> dict[str, Any]:
    """The three tables as one document."""
    first = next(iter(results.values()))
    return {
        "flavor": str(flavor),
        "test": {"queries": first.n_queries, "empty": first.n_empty},
        "models": [
            {
                "model": model.framework,
                "kept": model.chosen,
                "validation": model.validation,
                "test": results[model.framework].value,
                "history": list(model.history),
                "best": model.best,
                "stopped_early": model.stopped,
            }
            for model in trained
        ],
        "presets": {name: dict(row) for name, row in presets.items()},
        "agreement": [asdict(entry) for entry in agreements],
    }


def _table(title: str, headings: Sequence[str], *, right: range, no_wrap: bool = False) -> Table:
    """An empty table, whose columns numbered `right` hold numbers."""
    table = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold cyan",
    )
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i in right else "left", no_wrap=no_wrap)
    return table


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return "table"
    if isinstance(value, float):
        return f"{value:g}"
    return {"linear": "y", "exponential": "2^y-1"}.get(str(value), str(value))
