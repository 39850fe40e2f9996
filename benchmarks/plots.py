"""Pictures of the docs (performance, deciding, unjudged) from the benchmarks' JSON: ``python -m benchmarks.plots``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BLUE, GREY, RED = "#2f6ca3", "#8a8a8a", "#c8452f"


def main() -> None:
    """Draw them all."""
    import matplotlib as mpl

    mpl.use("Agg")
    report = json.loads((ROOT / "benchmarks" / "results" / "speed.json").read_text())
    catalogue = json.loads((ROOT / "benchmarks" / "results" / "catalogue.json").read_text())
    for result, name, question in (
        (report["results"]["lightgbm"][0], "boosting", "Evaluating a boosting round (1.2 M rows, 1 thread)"),
        (report["results"]["ragged"][1], "arrays", "Scoring arrays with query ids once (1.2 M rows)"),
        (catalogue["results"]["catalogue"][1], "catalogue", "200 users x 20 000 items, labels new"),
    ):
        _bars(result, question, ROOT / "docs" / f"performance_{name}.png")
    _growth(report, ROOT / "docs" / "performance_shapes.png")
    draw_queries_needed(ROOT / "docs" / "deciding.png")
    draw_labels_needed(ROOT / "docs" / "unjudged.png")
    draw_results(ROOT / "docs")


def _bars(result: dict[str, Any], question: str, path: Path) -> None:
    """The shortest time of each contender, ours in colour, on an axis from 0."""
    from matplotlib import pyplot as plt

    timings = sorted(result["timings"], key=lambda timing: -float(timing["min_ms"]))
    names = [timing["name"].split(", 1 thread")[0].replace(", ", "\n", 1) for timing in timings]
    times = [timing["min_ms"] for timing in timings]
    figure, axes = plt.subplots(figsize=(8, 0.55 * len(times) + 1), layout="constrained")
    axes.barh(names, times, color=[BLUE if name.startswith("ndcg_ml") else GREY for name in names])
    for y, milliseconds in enumerate(times):
        axes.text(milliseconds, y, f" {milliseconds:.3g} ms", va="center")
    axes.set_title(question, loc="left")
    axes.set_xlim(0, 1.15 * max(times))
    axes.set_xlabel("milliseconds")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _growth(report: dict[str, Any], path: Path) -> None:
    """Nanoseconds per row over the cut-off, for each shape."""
    from matplotlib import pyplot as plt

    lines: dict[str, dict[str, float]] = {}
    for result in report["results"]["shapes"]:
        match = re.fullmatch(r"shape: (?P<name>[^,]*), k=(?P<k>\w+)", result["title"])
        if match is not None:
            lines.setdefault(match["name"], {})[match["k"]] = result["timings"][0]["median_ms"] / result["rows"] * 1e6
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for name, by_k in lines.items():
        axes.plot(list(by_k), list(by_k.values()), marker="o", label=name)
    axes.set_xlabel("cut-off k")
    axes.set_ylabel("ns per row, prepared, 1 thread")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def draw_queries_needed(path: Path) -> None:
    """Queries needed against the difference, for how much the queries of real pairs of systems differ."""
    import numpy as np
    from matplotlib import pyplot as plt

    from ndcg_ml._stats.randomisation import queries_needed

    rows = json.loads((ROOT / "benchmarks" / "results" / "deciding.json").read_text())["rows"]
    differences = np.geomspace(0.003, 0.3, 100)
    figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
    for data, colour in (("TREC DL 2019", BLUE), ("digits", RED)):
        deviations = sorted(row["deviation"] for row in rows if row["data"] == data)
        low, high = (
            [queries_needed(deviation, difference, 0.8, 0.95) for difference in differences]
            for deviation in (deviations[0], deviations[-1])
        )
        [n_queries] = {row["queries"] for row in rows if row["data"] == data}
        axes.fill_between(differences, low, high, color=colour, alpha=0.25, linewidth=0)
        label = f"{data}: {len(deviations)} pairs of systems, deviation {deviations[0]:.2f} to {deviations[-1]:.2f}"
        axes.plot(differences, high, color=colour, label=label)
        axes.plot(differences, low, color=colour)
        axes.axhline(n_queries, color=colour, linestyle=":")
        axes.text(0.0031, n_queries * 1.1, f"{n_queries} queries", color=colour, fontsize=8)
        for row in rows:
            if row["data"] == data:
                seen = row["p_adjusted"] <= 0.05
                face = colour if seen else "none"
                axes.plot(abs(row["difference"]), row["queries"], "o", color=colour, markerfacecolor=face)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(0.003, 0.3)
    axes.set_ylim(5, 50_000)
    axes.set_xticks([0.005, 0.01, 0.02, 0.05, 0.1, 0.2], ["0.005", "0.01", "0.02", "0.05", "0.1", "0.2"])
    axes.minorticks_off()
    axes.set_yticks([10, 100, 1000, 10_000], ["10", "100", "1 000", "10 000"])
    axes.set_xlabel("difference in NDCG@10")
    axes.set_ylabel("queries needed, power 0.8, level 0.05")
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def draw_labels_needed(path: Path) -> None:
    """The share of comparisons whose winner is right for good, by the number of labels, for each order of labelling."""
    import numpy as np
    from matplotlib import pyplot as plt

    rows = json.loads((ROOT / "benchmarks" / "results" / "unjudged.json").read_text())["labels"]
    sets = list(dict.fromkeys(row["data"] for row in rows))
    figure, every = plt.subplots(1, len(sets), figsize=(9, 3.8), sharey=True, layout="constrained")
    for axes, data in zip(every, sets, strict=True):
        for order, colour, dashes in (("judge_next", BLUE, "-"), ("pooling", RED, "--"), ("random", GREY, ":")):
            labels = np.sort([row["right"] for row in rows if (row["data"], row["order"]) == (data, order)])
            share = np.arange(1, labels.size + 1) / labels.size
            axes.step(labels, share, where="post", color=colour, linestyle=dashes, label=order)
        pool = np.median([row["pool"] for row in rows if row["data"] == data])
        axes.set_title(f"{data}: {labels.size} comparisons, pools of about {pool:.0f}", fontsize=10)
        axes.set_xscale("log")
        axes.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
        axes.minorticks_off()
        axes.set_xlabel("labels")
        axes.grid(alpha=0.3)
    every[0].set_ylabel("share whose winner is right for good")
    every[0].legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)


def draw_results(folder: Path) -> None:
    """What ``plot`` draws of the demo's models."""
    import pandas as pd
    from matplotlib import pyplot as plt

    from ndcg_ml import compare, evaluate

    demo = pd.read_csv(ROOT / "docs" / "demo_scores.csv")
    models = {
        name: evaluate(demo["label"], demo[name], qid=demo["qid"], flavor="lightgbm@10")
        for name in ("scikit-learn", "PyTorch", "LightGBM")
    }
    two = {name: models[name] for name in ("PyTorch", "LightGBM")}
    trees = evaluate(demo["label"], demo["LightGBM"], qid=demo["qid"], flavor="lightgbm", k=(1, 3, 5, 10, 20, None))
    drawings = {
        "plot_pairs": compare(models, seed=0).plot(),
        "plot_two": compare(two, seed=0).plot(),
        "plot_values": trees.plot(),
    }
    for name, (figure, _) in drawings.items():
        figure.savefig(folder / f"{name}.png", dpi=100)
        plt.close(figure)


if __name__ == "__main__":
    main()
