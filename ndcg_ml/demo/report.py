"""The demo's output: three tables for people, one JSON document for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ndcg_ml import PRESETS, Evaluation, Flavor
from ndcg_ml._show.table import Table
from ndcg_ml.result import at_cutoff

if TYPE_CHECKING:
    from ndcg_ml.demo.comparison import Agreement
    from ndcg_ml.demo.models import Trained


def at(flavor: Flavor) -> str:
    """NDCG with its cut-off, for headings."""
    return f"NDCG{at_cutoff(flavor.k)}"


def models_table(trained: Sequence[Trained], results: Mapping[str, Evaluation[float]], flavor: Flavor) -> str:
    """Table 1: the models under the chosen flavor."""
    rows = [
        (
            model.framework,
            model.chosen,
            f"{model.validation:.4f}",
            f"{results[model.framework].value:.4f}",
            f"{model.seconds:.1f}",
        )
        for model in trained
    ]
    others = results.keys() - {model.framework for model in trained}
    rows += [(name, "all scores equal", "", f"{results[name].value:.4f}", "") for name in results if name in others]
    first = next(iter(results.values()))
    treated = f"scored {flavor.empty:g}" if isinstance(flavor.empty, float) else "left out of the mean"
    caption = (
        f"{first.n_queries} test queries, {first.n_empty} of them without a relevant document"
        + (f" ({treated})" if first.n_empty else "")
        + ". Validation: mean of the folds for the grid search, the validation queries for the others."
    )
    head = ("model", "what was kept", "validation", "test", "seconds")
    title = f"1. Three models, one flavor: {at(flavor)} on the test queries"
    return _titled(title, Table(head, rows, "llrrr", caption=caption))


def presets_table(values: Mapping[str, Mapping[str, float]], flavor: Flavor) -> str:
    """Table 2: the same predictions under the well-known presets."""
    models = list(next(iter(values.values())))
    rows = []
    for name, row in values.items():
        used = PRESETS.get(name, flavor)
        rows.append((name, _short(used.gain), used.ties, _short(used.empty), *(f"{row[m]:.4f}" for m in models)))
    columns = ([row[model] for row in values.values()] for model in models)
    rows.append(("max - min", "", "", "", *(f"{max(column) - min(column):.4f}" for column in columns)))
    caption = (
        "Nothing was trained again: only the definition changes (jarvelin2002 also has another discount). "
        '"No model" gives every document the same score, so the tie rule decides.'
    )
    title = f"2. The same predictions, {at(flavor)} under well-known presets"
    return _titled(title, Table(("preset", "gain", "ties", "empty", *models), rows, "llll", caption=caption))


def agreement_table(agreements: Sequence[Agreement], n_models: int) -> str:
    """Table 3: the same number from everywhere."""
    rows = [
        (entry.compared, entry.flavor, str(entry.queries), f"{entry.difference:.1e}", entry.note)
        for entry in agreements
    ]
    head = ("compared", "flavor", "queries", "difference", "note")
    caption = f"Over the {n_models} sets of predictions of table 2."
    title = "3. The same flavor, computed by others: largest difference seen"
    return _titled(title, Table(head, rows, "llrrl", caption=caption))


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


def _titled(title: str, table: Table) -> str:
    return f"{title}\n\n{table.text()}\n"


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return "table"
    if isinstance(value, float):
        return f"{value:g}"
    return {"linear": "y", "exponential": "2^y-1"}.get(str(value), str(value))
