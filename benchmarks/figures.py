"""Draw the figures of the guides from the package itself: ``python -m benchmarks.figures``.

Black on white, as all drawings: docs/site.css inverts them in the dark theme.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from benchmarks.plots import BLUE, GREY, RED, ROOT

LIGHT, GREEN = "#dce6f0", "#3c8a4e"
SYSTEMS = {"SPLADE++": BLUE, "TAS-B": GREEN, "BM25": RED}


def main() -> None:
    """Draw all figures."""
    for name, draw in FIGURES.items():
        draw_figure(draw).savefig(ROOT / "docs" / f"figure_{name}.svg", metadata={"Date": None})


def draw_figure(draw: Callable[[Any], None]) -> Any:
    """Return a figure after ``draw`` has drawn on it."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "ndcg_ml"  # ids that do not change from one run to the next
    figure = Figure(figsize=(6.6, 3.3), layout="constrained")
    draw(figure)
    return figure


def _clear(axes: Any, *sides: str) -> None:
    axes.spines[list(sides or ("top", "right"))].set_visible(False)


def draw_winner(figure: Any) -> None:
    """Draw the order of three systems under four gains, from the record of the README's table."""
    values = json.loads((ROOT / "docs" / "winner.json").read_text(encoding="utf-8"))["values"]
    gains = {
        "trec_eval": "the grade\n(trec_eval, BEIR)",
        "gdeval": "2^grade - 1\n(gdeval, OpenSearch)",
        "recbole": "1 if relevant\n(RecBole, Spark)",
        "recommenders_binary": "1 if judged\n(Recommenders)",
    }
    axes = figure.subplots()
    for system, colour in SYSTEMS.items():
        found = [values[preset] for preset in gains]
        places = [sorted(each.values(), reverse=True).index(each[system]) + 1 for each in found]
        axes.plot(range(len(gains)), places, color=colour, lw=3, alpha=0.45, zorder=1)
        for x, (place, each) in enumerate(zip(places, found, strict=True)):
            box = {"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "none"}
            weight = "bold" if place == 1 else "normal"
            text = f"{each[system]:.4f}"
            axes.text(x, place, text, color="white", weight=weight, ha="center", va="center", bbox=box)
        axes.text(-0.3, places[0], system, color=colour, weight="bold", ha="right", va="center", fontsize=11)
    axes.set_xticks(range(len(gains)), gains.values())
    axes.set_yticks([1, 2, 3], ["1st", "2nd", "3rd"])
    axes.yaxis.tick_right()
    axes.set_ylim(3.4, 0.6)
    axes.set_xlim(-0.85, 3.35)
    axes.tick_params(length=0)
    axes.set_title("NDCG@10 of the same three runs, by the gain of a document", loc="left")
    _clear(axes, "top", "right", "bottom", "left")


def draw_gains_and_discounts(figure: Any) -> None:
    """Draw the gain by grade, and the discount by rank."""
    from ndcg_ml import Flavor, dcg_score

    left, right = figure.subplots(1, 2)
    grades, ranks = range(5), range(1, 16)
    for gain, colour, marker in (("linear", BLUE, "o"), ("exponential", RED, "s"), ("binary", GREEN, "^")):
        flavor = Flavor(gain=gain)
        gains = [dcg_score([[grade, 0]], [[2, 1]], flavor=flavor) for grade in grades]
        left.plot(grades, gains, marker=marker, color=colour, label=gain)
    left.set_title("gain", loc="left")
    left.set_xlabel("grade")
    left.set_xticks(grades)
    for discount, colour, marker in (
        ("log2", BLUE, "o"), ("jarvelin", GREEN, "^"), ("reciprocal", RED, "s"), ("none", GREY, "")
    ):  # fmt: skip
        flavor = Flavor(gain="linear", discount=discount)
        at = [dcg_score([[int(r == rank) for r in ranks]], [[-r for r in ranks]], flavor=flavor) for rank in ranks]
        right.plot(ranks, at, marker=marker, ms=4, color=colour, label=discount)
    right.set_title("discount", loc="left")
    right.set_xlabel("rank")
    right.set_xticks([1, 5, 10, 15])
    right.set_ylim(0, 1.08)
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
        _clear(axes)


def draw_ideals(figure: Any) -> None:
    """Draw what each ideal has at ranks 1 to 3, for one ranking."""
    from ndcg_ml import Flavor, dcg_score, ndcg_score

    # d1, d2 and d3 are retrieved, and d2 and d3 tied; d4 is judged, but not retrieved.
    grades, scores, retrieved = [0, 1, 3, 2], [2.0, 1.0, 1.0, 0.0], [True, True, True, False]
    ideals = {
        "global": ("all judged, best first", [3, 2, 1]),
        "recall": ("retrieved, best first", [3, 1, 0]),
        "local": ("expected gains, sorted", [2, 2, 0]),
        "max": ("top grade at each rank", [3, 3, 3]),
        "given": ("order of the rows", [0, 1, 3]),
    }
    panels = {"ranking": ("0, then 1 and 3 tied", [0, 2, 2]), **ideals}
    figure.set_size_inches(6.6, 4.2)
    for axes, (ideal, (words, gains)) in zip(figure.subplots(2, 3, sharey=True).flat, panels.items(), strict=True):
        flavor = Flavor(k=3, ideal="global" if ideal == "ranking" else ideal, max_grade=3 if ideal == "max" else None)
        rows = {"flavor": flavor, "qid": [1] * 4, "retrieved": retrieved}
        value, dcg = ndcg_score(grades, scores, **rows), dcg_score(grades, scores, **rows)
        reach = dcg_score([gains], [[3, 2, 1]], flavor=Flavor())
        if ideal == "ranking":
            title, right = f"the ranking\nDCG {dcg:.2f}", abs(reach - dcg)
        else:
            title, right = f"{ideal}\n{dcg:.2f} / {reach:.2f} = {value:.2f}", abs(dcg / reach - value)
        if right > 1e-9:
            raise AssertionError(f"the package has another ideal than the figure: {ideal}")
        bars = axes.bar([1, 2, 3], gains, color=GREY if ideal == "ranking" else BLUE, width=0.7)
        axes.bar_label(bars, fontsize=9)
        axes.set_title(title, loc="left", fontsize=10, weight="bold")
        axes.text(0.5, 3.85, words, fontsize=9)
        axes.set_xticks([1, 2, 3])
        axes.set_xlabel("rank", fontsize=9)
        axes.set_ylim(0, 4.2)
        axes.set_yticks([])
        axes.tick_params(length=0)
        _clear(axes, "top", "right", "left")


def draw_ties(figure: Any) -> None:
    """Draw the NDCG of all orders of tied documents, and the value of each rule."""
    import numpy as np

    from ndcg_ml import Flavor, ndcg_score

    grades, n_tied = [3, 2, 1, 0, 0, 0], 6
    values = [ndcg_score([order], [range(n_tied, 0, -1)]) for order in itertools.permutations(grades)]
    axes = figure.subplots()
    axes.hist(values, bins=np.arange(0.46, 1.0001, 0.02), color=LIGHT, edgecolor=GREY, linewidth=0.5)
    top = axes.get_ylim()[1]
    for ties, words, colour, align in (
        ("last", '"last", "worst"', GREY, "left"),
        ("average", '"average", the mean', BLUE, "left"),
        ("first", '"first", "best"', RED, "right"),
    ):
        value = ndcg_score([grades], [[0] * n_tied], flavor=Flavor(ties=ties))
        if ties == "average" and abs(value - np.mean(values)) > 1e-9:
            raise AssertionError("averaged ties are not the mean over all orders")
        axes.axvline(value, color=colour, lw=2)
        shift = 0.005 if align == "left" else -0.005
        text = f"{words}\n{value:.2f}"
        axes.text(value + shift, 1.12 * top, text, color=colour, ha=align, va="center", weight="bold")
    axes.set_ylim(0, 1.25 * top)
    axes.set_yticks([])
    axes.set_xlabel("NDCG")
    axes.set_title(f"{len(values)} orders of six documents with one score; rows sorted best first", loc="left")
    _clear(axes, "top", "right", "left")


def draw_batches(figure: Any) -> None:
    """Draw three lists padded with a mask, and the same lists flat with ids."""
    import torch
    from matplotlib.patches import Rectangle

    from ndcg_ml.torch import ndcg

    lists, colours = [[3, 0, 1], [2, 0], [0, 1, 0, 2]], ["#9ec3e6", "#f4c29b", "#b5dcb0"]
    width = max(map(len, lists))
    grades = torch.tensor([[*each, *[0] * (width - len(each))] for each in lists])
    mask = torch.tensor([[at < len(each) for at in range(width)] for each in lists])
    scores = torch.arange(grades.numel(), dtype=torch.float32).reshape(grades.shape)
    rows = torch.arange(len(lists)).repeat_interleave(mask.sum(1))
    padded, flat = ndcg(scores, grades, mask=mask), ndcg(scores[mask], grades[mask], indexes=rows)
    if not torch.equal(padded, flat):
        raise AssertionError("padded and flat lists have other values")
    axes = figure.subplots()

    def cell(x: float, y: float, text: object, colour: str) -> None:
        hatch = "////" if text == "" else None
        edge = GREY if colour == "white" else "black"
        axes.add_patch(Rectangle((x, y), 0.92, 0.82, facecolor=colour, edgecolor=edge, linewidth=0.7, hatch=hatch))
        axes.text(x + 0.46, y + 0.41, text, ha="center", va="center", fontsize=10)

    for row, (each, colour) in enumerate(zip(lists, colours, strict=True)):
        axes.text(-0.15, 5.0 - row, f"query {row}", ha="right", va="center")
        for at in range(width):
            inside = at < len(each)
            cell(at, 4.6 - row, each[at] if inside else "", colour if inside else "white")
            cell(at + width + 1, 4.6 - row, inside, colour if inside else "white")
    for x, words in ((0, "target, (3, 4)"), (width + 1, "mask, (3, 4)")):
        axes.text(x, 5.75, words, weight="bold")
    for at, (row, grade) in enumerate(zip(rows.tolist(), grades[mask].tolist(), strict=True)):
        cell(at, 1.0, grade, colours[row])
        cell(at, 0.0, row, colours[row])
    axes.text(-0.15, 1.41, "target, (9,)", weight="bold", ha="right", va="center")
    axes.text(-0.15, 0.41, "indexes, (9,)", weight="bold", ha="right", va="center")
    axes.text(9.4, 4.0, "padded: update(preds,\ntarget, mask=mask)", va="center", fontsize=10)
    axes.text(9.4, 0.91, "flat: update(preds,\ntarget, indexes=indexes)", va="center", fontsize=10)
    axes.set_xlim(-2.0, 13.2)
    axes.set_ylim(-0.2, 6.2)
    axes.set_axis_off()


def draw_losses(figure: Any) -> None:
    """Draw losses of a list of two documents over the difference of their scores."""
    import torch

    from ndcg_ml import Flavor
    from ndcg_ml.torch import ApproxNDCGLoss, LambdaNDCGLoss, SoftmaxLoss, ndcg

    difference = torch.linspace(-3, 3, 241)
    scores = torch.stack([difference, torch.zeros_like(difference)], dim=1)
    labels = torch.tensor([[1, 0]]).expand(len(scores), 2)
    flavor = Flavor(ties="average")
    exact = 1 - ndcg(scores, labels, flavor=flavor)
    both = figure.subplots(1, 2, sharey=True)
    curves = (
        {
            "LambdaNDCGLoss": (LambdaNDCGLoss(flavor, reduction="none"), BLUE),
            "SoftmaxLoss": (SoftmaxLoss(flavor, reduction="none"), GREEN),
            "ApproxNDCGLoss, T = 0.3": (ApproxNDCGLoss(flavor, temperature=0.3, reduction="none"), RED),
        },
        {
            f"T = {temperature}": (ApproxNDCGLoss(flavor, temperature=temperature, reduction="none"), colour)
            for temperature, colour in ((1.0, "#efb3a7"), (0.3, RED), (0.1, "#7a2114"))
        },
    )
    for axes, title, drawn in zip(both, ("losses", "ApproxNDCGLoss, by temperature"), curves, strict=True):
        axes.plot(difference, exact, color="black", lw=1.5, ls="--", label="1 - NDCG")
        for name, (loss, colour) in drawn.items():
            axes.plot(difference, loss(scores, labels), color=colour, lw=2, label=name)
        axes.set_title(title, loc="left")
        axes.set_xlabel("score of the relevant minus the other's")
        axes.set_ylim(-0.03, 1.3)
        axes.legend(facecolor="white", edgecolor="none", framealpha=0.9)
        axes.grid(alpha=0.3)
        _clear(axes)


def draw_stopping(figure: Any) -> None:
    """Draw LightGBM's own metric and that of a flavor by round, on validation rows sorted best first."""
    import lightgbm as lgb
    import numpy as np

    from ndcg_ml.lightgbm import NDCGEval

    rng = np.random.default_rng(0)
    n_queries, n_documents = 40, 20

    def data() -> tuple[Any, Any]:
        X = rng.normal(size=(n_queries * n_documents, 8))
        y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] / 2 + rng.normal(size=len(X)) - 0.5), 0, 4)
        order = np.lexsort([-y, np.arange(len(y)) // n_documents])  # best first in each query
        return X[order], y[order]

    sizes = np.full(n_queries, n_documents)
    train = lgb.Dataset(*data(), group=sizes)
    valid = lgb.Dataset(*data(), group=sizes, reference=train)
    params = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "num_leaves": 4, "num_threads": 1}
    ours = NDCGEval("lightgbm[ties=average]", k=10)
    found: dict[str, dict[str, list[float]]] = {}
    lgb.train(
        {**params, "verbosity": -1, "learning_rate": 0.2, "deterministic": True}, train, 100,
        valid_sets=[valid], feval=ours, callbacks=[lgb.record_evaluation(found)],
    )  # fmt: skip
    axes = figure.subplots()
    for name, values in found["valid_0"].items():
        theirs = name == "ndcg@10"
        colour, words = (RED, "LightGBM's ndcg@10") if theirs else (BLUE, "StopEarly, ties averaged")
        best = int(np.argmax(values))
        axes.plot(range(1, len(values) + 1), values, color=colour, lw=2)
        axes.plot(best + 1, values[best], "o", color=colour, ms=9)
        text = f"{words}: best in round {best + 1}"
        axes.text(best + 5, values[best] + 0.006, text, color=colour, weight="bold", va="bottom")
    axes.margins(y=0.12)
    axes.set_xlabel("boosting round")
    axes.set_ylabel("NDCG@10 of the validation set")
    axes.grid(alpha=0.3)
    _clear(axes)


def draw_range(figure: Any) -> None:
    """Draw the range of a difference by the number of labels that were added, and where its sign is settled."""
    import numpy as np

    from ndcg_ml import compare, evaluate_run, with_labels

    rng = np.random.default_rng(3)
    queries, documents = [f"q{i}" for i in range(12)], [f"d{i}" for i in range(30)]
    drawn = {q: rng.choice(4, 30, p=[0.55, 0.2, 0.15, 0.1]).tolist() for q in queries}
    truth = {q: dict(zip(documents, grades, strict=True)) for q, grades in drawn.items()}
    old, new = (
        {q: {d: grade + rng.normal(0, noise) for d, grade in truth[q].items()} for q in queries} for noise in (2.0, 1.3)
    )
    first = {q: sorted(old[q], key=old[q].__getitem__, reverse=True)[:10] for q in queries}
    qrels = {q: {d: truth[q][d] for d in first[q]} for q in queries}  # the pool is that of the old system
    lows, highs, values = [], [], []
    tasks: Any = (None,)
    while tasks:
        both = compare(*(evaluate_run(qrels, run, k=5) for run in (old, new)), unjudged="accept", seed=0)
        found = both.range(max_grade=3)
        lows.append(found.low)
        highs.append(found.high)
        values.append(both.difference)
        tasks = both.judge_next(1, max_grade=3).tasks  # none once the sign is settled
        for task in tasks:
            qrels = with_labels(qrels, [{task.qid: {task.document: truth[task.qid][task.document]}}])
    settled = len(lows) - 1
    axes = figure.subplots()
    x = range(len(lows))
    axes.fill_between(x, lows, highs, color=LIGHT, step="mid")
    axes.step(x, values, color=BLUE, where="mid", lw=2)
    axes.axhline(0, color="black", lw=1)
    axes.axvline(settled, color=RED, lw=2, ls="--")
    axes.text(settled - 0.1, min(lows), f"settled after {settled} labels", color=RED, weight="bold", ha="right")
    axes.text(0.1, 0.02, "difference, unjudged as 0", color=BLUE, weight="bold")
    axes.set_xlabel("labels added, in the order of judge_next")
    axes.set_ylabel("new - old, NDCG@5")
    axes.margins(x=0)
    _clear(axes)


def draw_decision(figure: Any) -> None:
    """Draw which call answers which question, and what to add to it."""
    figure.set_size_inches(6.6, 4.4)
    axes = figure.subplots()
    calls = (
        ("one system", "evaluate(...).interval()"),
        ("two systems", "compare(old, new)"),
        ("more: every pair", "compare({name: result, ...})"),
        ("more: each against one", 'compare({...}, baseline="old")'),
        ("candidates of a search", "paired_search(search)"),
        ("another measure", "compare_values({...}, qid=ids)"),
    )
    additions = (
        ("several queries per user", "cluster=users"),
        ("several seeds per system", "{name: [run, run]}"),
        ("it need only be no worse", "margin=.01"),
        ("missing labels must not decide", 'unjudged="refuse"'),
    )
    for x, title, rows in ((0.0, "What do you have?", calls), (7.6, "What holds too?", additions)):
        axes.text(x, 1.0, title, weight="bold", fontsize=11, va="center")
        for at, (words, code) in enumerate(rows):
            axes.plot([x + 0.15, x + 0.15], [0.75 if at == 0 else 1 - at, -at], color=GREY, lw=1, zorder=0)
            axes.plot([x + 0.15, x + 0.4], [-at, -at], color=GREY, lw=1, zorder=0)
            axes.text(x + 0.45, -at + 0.13, words, va="center", fontsize=10)
            style = {"boxstyle": "round,pad=0.25", "facecolor": LIGHT, "edgecolor": "none"}
            axes.text(x + 0.55, -at - 0.27, code, va="center", fontsize=9.5, family="monospace", bbox=style)
    axes.annotate("add", (7.4, 1.0), (5.6, 1.0), va="center", arrowprops={"arrowstyle": "->", "color": GREY})
    axes.set_xlim(-0.1, 12.4)
    axes.set_ylim(-len(calls) + 0.4, 1.4)
    axes.set_axis_off()


FIGURES: dict[str, Callable[[Any], None]] = {
    "winner": draw_winner,
    "gains_and_discounts": draw_gains_and_discounts,
    "ideals": draw_ideals,
    "ties": draw_ties,
    "batches": draw_batches,
    "losses": draw_losses,
    "stopping": draw_stopping,
    "range": draw_range,
    "decision": draw_decision,
}

if __name__ == "__main__":
    main()
