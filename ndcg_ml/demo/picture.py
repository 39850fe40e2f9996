"""The picture: how each model was chosen, and where training stopped."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ndcg_ml import _atomic
from ndcg_ml.demo.models import Trained

_CURVE, _BEST = "#2b6ca3", "#c8452d"


def endings() -> list[str]:
    """The endings of file names that a picture can be saved under."""
    return sorted(FigureCanvasAgg.get_supported_filetypes())


def draw(trained: Sequence[Trained], title: str, metric: str, path: Path) -> None:
    """Save one figure with one panel per model; `metric`, such as "NDCG@10", labels the axes."""
    figure = Figure(figsize=(13, 4.3), layout=ConstrainedLayoutEngine(w_pad=0.12))
    panels = figure.subplots(1, len(trained), gridspec_kw={"width_ratios": [1.15 if m.labels else 1 for m in trained]})
    for panel, model in zip(panels, trained, strict=True):
        (_candidates if model.labels else _curve)(panel, model, metric)
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.set_axisbelow(True)
    figure.suptitle(title, fontsize=11)
    file = BytesIO()
    figure.savefig(file, dpi=120, format=path.suffix[1:].lower())
    _atomic.write(path, file.getvalue())


def _candidates(panel: Axes, model: Trained, metric: str) -> None:
    places = range(len(model.labels))
    colours = [_BEST if place == model.best else _CURVE for place in places]
    for place, colour in zip(places, colours, strict=True):
        panel.errorbar(
            model.history[place], place, xerr=model.spread[place], fmt="o", color=colour, ecolor=colour, capsize=3
        )
    panel.set_yticks(list(places), [label.replace(", ", "\n", 1) for label in model.labels], fontsize=8)
    panel.get_yticklabels()[model.best].set_color(_BEST)
    panel.invert_yaxis()
    panel.set_xlabel(f"{metric}, mean and standard deviation of the folds", fontsize=9)
    panel.set_title(f"{model.framework}: grid search by query, best {model.validation:.4f}", fontsize=10)


def _curve(panel: Axes, model: Trained, metric: str) -> None:
    unit = "epoch" if "epoch" in model.chosen else "round"
    steps = range(1, len(model.history) + 1)
    best, last = model.best + 1, len(model.history)
    panel.plot(steps, model.history, color=_CURVE, linewidth=1.6)
    panel.axvline(best, color=_BEST, linewidth=1, linestyle="--")
    panel.plot(best, model.validation, "o", color=_BEST, label=f"kept: {unit} {best}, {model.validation:.4f}", zorder=3)
    ending = "stopped early" if model.stopped else "ended"
    panel.plot(last, model.history[-1], "s", color="0.35", label=f"{ending}: {unit} {last}", zorder=3)
    panel.set_xlabel(unit, fontsize=9)
    panel.set_ylabel(f"validation {metric}", fontsize=9)
    panel.legend(loc="best", fontsize=8, framealpha=0.9)
    panel.set_title(f"{model.framework}: {'MLP, ApproxNDCG loss' if unit == 'epoch' else 'lambdarank'}", fontsize=10)
