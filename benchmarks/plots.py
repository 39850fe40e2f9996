"""Draw the pictures of the documentation from the records of benchmarks: ``python -m benchmarks.plots``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BLUE, GREY, RED = "#2f6ca3", "#8a8a8a", "#c8452f"


def main() -> None:
    """Draw all pictures."""
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
    draw_verdicts(ROOT / "docs" / "verdicts.png")
    draw_queries_needed(ROOT / "docs" / "deciding.png")
    draw_labels_needed(ROOT / "docs" / "unjudged.png")
    draw_evidence(ROOT / "docs")
    draw_results(ROOT / "docs")


def _bars(result: dict[str, Any], question: str, path: Path) -> None:
    """Draw the shortest time of each contender, ours in colour."""
    from matplotlib import pyplot as plt

    timings = sorted(result["timings"], key=lambda timing: -float(timing["min_ms"]))
    names = [timing["name"].split(", 1 thread")[0].replace(", ", "\n", 1) for timing in timings]
    times = [timing["min_ms"] for timing in timings]
    figure, axes = plt.subplots(figsize=(8, 0.55 * len(times) + 1), layout="constrained")
    axes.barh(names, times, color=[BLUE if name.startswith("ndcg_ml") else GREY for name in names])
    for y, milliseconds in enumerate(times):
        digits = f"{milliseconds:.1f}" if milliseconds < 100 else f"{milliseconds:,.0f}".replace(",", " ")
        axes.text(milliseconds, y, f" {digits} ms", va="center")
    axes.set_title(question, loc="left")
    axes.set_xlim(0, 1.15 * max(times))
    axes.set_xlabel("milliseconds")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _growth(report: dict[str, Any], path: Path) -> None:
    """Draw the time per row by cut-off, for each shape."""
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


def draw_verdicts(path: Path) -> None:
    """Draw an interval for each verdict, with 0 and the margin, those that take precedence at the top."""
    from matplotlib import pyplot as plt

    from ndcg_ml._statistics.verdict import verdict

    margin, colours = 0.01, {"better": BLUE, "worse": RED, "undecided": GREY}
    limits = [(0.002, 0.008), (-0.006, 0.004), (-0.008, -0.002), (0.003, 0.019), (-0.021, -0.003), (-0.006, 0.017)]
    limits.append((-0.021, 0.005))
    figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
    axes.axvspan(-margin, margin, color=GREY, alpha=0.15, lw=0)
    axes.axvline(0, color=GREY, lw=1)
    names = [verdict(low, high, 50, margin) for low, high in limits]
    for y, (name, (low, high)) in enumerate(zip(names, limits, strict=True)):
        colour = colours.get(name, "#3a8f5d")
        axes.plot([low, high], [y, y], color=colour, lw=3)
        axes.plot((low + high) / 2, y, "o", color=colour)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xticks([-margin, 0, margin], ["-margin", "0", "margin"])
    axes.set_xlabel("difference b - a, with its interval")
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def draw_queries_needed(path: Path) -> None:
    """Draw the queries needed by difference, for the standard deviations of real pairs of systems."""
    import numpy as np
    from matplotlib import pyplot as plt

    from ndcg_ml._statistics.p_values_and_sample_sizes import queries_needed

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
        spread = f"standard deviation {deviations[0]:.2f} to {deviations[-1]:.2f}"
        label = f"{data}: {len(deviations)} pairs of systems, {spread}"
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
    """Draw the share of comparisons whose winner no longer changes, by number of labels and order of labelling."""
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


def draw_evidence(folder: Path) -> None:
    """Draw differences between losses, objectives and stopping rules on MQ2008, one picture per question."""
    report = json.loads((ROOT / "benchmarks" / "results" / "letor.json").read_text())
    parts = report["data"]["mq2008"]
    pictures = {
        "network": {"NDCG@10": parts["network"]["against"]},
        "attention": {"NDCG@10": parts["attention"]["against"]},
        "trees": {"NDCG@10": parts["trees"]["against"]},
        "across": {"NDCG@10": parts["across"]},
        "stopping": {f"{library}: NDCG@10": part["against"] for library, part in parts["stopping"].items()},
        "wrong_metric": {f"NDCG@10, {gain} gain": against for gain, against in parts["trained_on"].items()},
    }
    for name, panels in pictures.items():
        _differences(panels, report["margin"], folder / f"evidence_mq2008_{name}.png")


def _differences(panels: dict[str, dict[str, Any]], margin: float, path: Path) -> None:
    """Draw differences from a reference, the largest at the top. Print those beyond 0.05 instead."""
    from matplotlib import pyplot as plt

    sizes = [len(against["pairs"]) + 3 for against in panels.values()]
    figure, every = plt.subplots(
        len(panels), figsize=(8, 0.26 * sum(sizes)), height_ratios=sizes, layout="constrained", squeeze=False
    )
    for axes, (title, against) in zip(every.flat, panels.items(), strict=True):
        pairs = sorted(against["pairs"].items(), key=lambda item: item[1]["difference"])
        axes.axvspan(-margin, margin, color=GREY, alpha=0.15, lw=0)
        axes.axvline(0, color=GREY, lw=1)
        for y, (_, pair) in enumerate(pairs):
            colour = {"better": BLUE, "worse": RED}.get(pair["verdict"], GREY)
            if abs(pair["difference"]) > 0.05:
                text = f"outside: {pair['difference']:+.3f} ({pair['low']:+.3f} to {pair['high']:+.3f})"
                axes.text(0.01, y, text, color=colour, fontsize=8, va="center", transform=axes.get_yaxis_transform())
                continue
            axes.plot([pair["low"], pair["high"]], [y, y], color=colour, lw=2)
            axes.plot(pair["difference"], y, "o", color=colour, ms=5)
        axes.set_yticks(
            range(len(pairs)), [name.replace("rows file", "rows of the file") for name, _ in pairs], fontsize=8
        )
        axes.set_ylim(-0.7, len(pairs) - 0.3)
        axes.set_xlabel(f"{title}, minus {against['reference']}; grey band: within {margin:g}", fontsize=8, loc="right")
        axes.tick_params(axis="x", labelsize=8)
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def draw_results(folder: Path) -> None:
    """Draw the demo's models with ``plot``."""
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
