"""Measure error rates: few changed queries, a baseline of many systems, values near a bound, slices, model labels.

``python -m benchmarks.verdicts`` records each table when it is done. With ``--page`` it writes the tables of
decisions.md and model_labels.md in benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import Comparison, Evaluation, Flavor, compare, compare_values, correct_labels, evaluate
from ndcg_ml._statistics.distributions import t_quantile
from ndcg_ml._statistics.verdict import PASSES

RESULT = Path(__file__).parent / "results" / "verdicts.json"
PAGES = {name: Path(__file__).parent / "results" / f"{name}.md" for name in ("decisions", "model_labels")}
RESAMPLES = 999

FloatArray = NDArray[np.float64]
Rng = np.random.Generator
Draw = Callable[[Rng, int], "float | None"]
Values = Callable[[Rng, int], FloatArray]


class Grid(NamedTuple):
    """One table with a row per population and a column per number of queries. Cells are shares or means."""

    page: str
    title: str
    target: str
    ns: Sequence[int]
    rows: dict[str, Draw]
    samples: int = 2000
    per_cent: bool = True


def compared(values: dict[str, FloatArray], rng: Rng, **more: Any) -> Comparison:
    """Return evaluations of systems on the same queries."""
    n = len(next(iter(values.values())))
    return compare_values(values, qid=np.arange(n), measure="ndcg", n_resamples=RESAMPLES, seed=rng, **more)


def few_change(share: float, loss: float, jitter: float = 0.0) -> Draw:
    """Return whether a loss of the margin passes, or None if no query changed."""

    def draw(rng: Rng, n: int) -> float | None:
        d = np.where(rng.random(n) < share, -loss, 0.0) + jitter * rng.standard_normal(n)
        if not d.any():
            return None
        base = np.full(n, 0.9)
        verdict = compared({"a": base, "b": base + d}, rng, margin=share * loss).verdict
        return verdict in PASSES

    return draw


def exponential(rng: Rng, n: int) -> FloatArray:
    """Return losses of many sizes with mean .2."""
    return -rng.exponential(0.2, n)


def lost(loss: float) -> Callable[[Rng, int], FloatArray]:
    """Return a constant loss."""
    return lambda _, n: np.full(n, -loss)


def several_sizes(
    share: float, loss: Callable[[Rng, int], FloatArray], true: float, other: float, up_to: float
) -> Draw:
    """Return whether a loss of the margin passes, or None if no query changed. A share of other queries changes little.

    `true` is the mean of `loss`. The other changes are from -`up_to` to `up_to`.
    """

    def draw(rng: Rng, n: int) -> float | None:
        which = rng.random(n)
        little = np.where(which < share + other, rng.uniform(-up_to, up_to, n), 0.0)
        d = np.where(which < share, loss(rng, n), little)
        if not d.any():
            return None
        base = np.full(n, 0.9)
        verdict = compared({"a": base, "b": base + d}, rng, margin=share * true).verdict
        return verdict in PASSES

    return draw


def better_than(share: float, t_test: bool) -> Draw:
    """Return whether b is better, by `compare` or by the t test, if three of four changes are gains of up to .2."""

    def draw(rng: Rng, n: int) -> float:
        sign = np.where(rng.random(n) < 0.75, 1.0, -1.0)
        d = np.where(rng.random(n) < share, sign * rng.uniform(0, 0.2, n), 0.0)
        if t_test:
            return d.mean() > t_quantile(0.95, n - 1) * d.std(ddof=1) / math.sqrt(n)
        return compared({"a": np.full(n, 0.5), "b": 0.5 + d}, rng).verdict == "better"

    return draw


def detected(share: float) -> Draw:
    """Return whether b is better by the median of what equal systems show as the smallest detectable difference.

    None if it is not attainable.
    """
    sizes: dict[int, float] = {}

    def changed(rng: Rng, n: int, mean: float) -> Comparison:
        d = np.where(rng.random(n) < share, rng.normal(mean / share, 0.1, n), 0.0)
        return compared({"a": np.full(n, 0.5), "b": 0.5 + d}, rng)

    def draw(rng: Rng, n: int) -> float | None:
        if n not in sizes:
            pilot = np.random.default_rng(9)
            sizes[n] = float(np.median([changed(pilot, n, 0.0).smallest_detectable() for _ in range(200)]))
        return changed(rng, n, sizes[n]).verdict == "better" if math.isfinite(sizes[n]) else None

    return draw


def passes_when_needed(share: float) -> Draw:
    """Return whether equal systems pass with the number of queries that an undecided gate names; None if decided."""

    def compared_once(rng: Rng, n: int) -> Comparison:
        d = np.where(rng.random(n) < share, rng.normal(0, 0.1, n), 0.0)
        return compared({"a": np.full(n, 0.5), "b": 0.5 + d}, rng, margin=0.02)

    def draw(rng: Rng, n: int) -> float | None:
        found = compared_once(rng, n)
        if found.verdict != "undecided":
            return None
        return compared_once(rng, found.pairs[0]._queries_to_pass(0.02)).verdict in PASSES

    return draw


def low_limit_above(limit: float, some: int, low: float, high: float, normal: bool = False) -> Draw:
    """Return whether the interval is above a limit if some queries gain and none loses, or if all change."""

    def draw(rng: Rng, n: int) -> float:
        d = np.zeros(n)
        d[:some] = rng.normal(low, high, some) if normal else rng.uniform(low, high, some)
        return compared({"a": np.full(n, 0.5), "b": 0.5 + d}, rng).interval.low > limit

    return draw


def equal_to_baseline(noise: float, k: int) -> Draw:
    """Return whether any of k systems differs significantly from a baseline of equal mean."""

    def draw(rng: Rng, n: int) -> float:
        base = rng.beta(2, 2, n)
        values = {"baseline": base + rng.normal(0, noise, n)}
        values |= {f"s{i}": base + rng.normal(0, 0.1, n) for i in range(k)}
        return any(pair.verdict != "undecided" for pair in compared(values, rng, baseline="baseline").pairs)

    return draw


def of_values(
    values: FloatArray, weight: FloatArray | None = None, qid: NDArray[Any] | None = None, **more: Any
) -> Evaluation[Any]:
    """Return an evaluation with these values per query, which are labels of the first of two documents."""
    qid = np.arange(values.size) if qid is None else qid
    labels, scores = np.column_stack([values, np.zeros(values.size)]), np.tile([0.9, 0.1], values.size)
    weights = None if weight is None else dict(zip(qid.tolist(), weight.tolist(), strict=True))
    return evaluate(labels.reshape(-1), scores, flavor=UNIT, qid=np.repeat(qid, 2), query_weight=weights, **more)


UNIT = Flavor(gain="linear", ideal="max", max_grade=1, k=1)


def slice_covered(
    inside: Values, outside: Values, true: float, ratio: float, labels: int = 2, heavy: bool = False, each: str = ""
) -> Draw:
    """Return whether the intervals of all differences between slices and other queries cover; None without intervals.

    The first slice has n values of `inside`, and the others have n times `ratio` values of `outside`. With `each`,
    there are n clusters of four values: "slice", if each is in one slice, or "both", if half of it is in each slice.
    """

    def draw(rng: Rng, n: int) -> float | None:
        sizes = [round(n * ratio) if at else n for at in range(labels)]
        names = np.repeat(np.arange(labels), sizes)
        values, more = np.concatenate([(outside if at else inside)(rng, size) for at, size in enumerate(sizes)]), {}
        if each:
            # Half of the variation is between clusters.
            groups = np.repeat(np.arange(names.size), 4) if each == "slice" else np.repeat(np.arange(n), 4)
            names = names[groups] if each == "slice" else np.arange(4 * n) % 2
            values = values[groups] / 2 + inside(rng, groups.size) / 2
            more = {"cluster": np.repeat(groups, 2)}
        weight = rng.pareto(1.5, values.size) + 1 if heavy else None
        slices = of_values(values, weight, by={"slice": np.repeat(names, 2)}, **more).slices
        assert slices is not None
        limits = [(row["label"], row["difference_low"], row["difference_high"]) for row in slices.to_dict()["slices"]]
        if any(low is None for _, low, _ in limits):
            return None
        return all(low - 1e-12 <= (true if name == 0 else -true) <= high + 1e-12 for name, low, high in limits)

    return draw


def in_tenths(draw: Draw) -> Draw:
    """Return draws with a tenth of n."""
    return lambda rng, n: draw(rng, n // 10)


def beta(a: float) -> Values:
    """Return draws with mean .5."""
    return lambda rng, n: rng.beta(a, a, n)


def ones(share: float) -> Values:
    """Return draws of which this share are ones and the others uniform."""
    return lambda rng, n: np.where(rng.random(n) < share, 1.0, rng.random(n))


def corrected(human: FloatArray, model: FloatArray, some: NDArray[np.int64]) -> Any:
    """Return the value under a model's labels, corrected by people's labels of some queries."""
    return correct_labels(of_values(model), of_values(human[some], qid=some))


def near_a_bound(ones: float, model: Callable[[Rng, FloatArray], FloatArray]) -> Draw:
    """Return whether the corrected interval covers if this share of the queries scores 1 and others beta(2.6, 1)."""
    truth = ones + (1 - ones) * 2.6 / 3.6

    def draw(rng: Rng, n: int) -> float:
        human = np.where(rng.random(N_MODEL) < ones, 1.0, rng.beta(2.6, 1, N_MODEL))
        interval = corrected(human, model(rng, human), rng.choice(N_MODEL, n, replace=False)).interval()
        return interval.low - 1e-12 <= truth <= interval.high + 1e-12

    return draw


def few_change_under_a_model(share: float, loss: float, seen: float) -> Draw:
    """Return whether a loss of the margin passes, if the model sees this share of the losses, or None if none is drawn.

    With a loss of 0, half of the changed queries gain .4 and half lose .4, and any verdict but "undecided" counts.
    """

    def draw(rng: Rng, n: int) -> float | None:
        some = rng.choice(N_MODEL, n, replace=False)
        change = np.where(rng.random(N_MODEL) < share, -loss if loss else rng.choice([-0.4, 0.4], N_MODEL), 0.0)
        if not change[some].any():
            return None
        base = np.full(N_MODEL, 0.5)
        systems = [
            corrected(base + d, base + f, some) for d, f in ((0, 0), (change, change * (rng.random(N_MODEL) < seen)))
        ]
        verdict = compare(*systems, margin=share * loss or None, seed=rng, n_resamples=RESAMPLES).verdict
        return verdict in ("not worse", "equivalent", "better", "unchanged", *["worse"] * (not loss))

    return draw


def labelled(what: str, bias: float, noise: float) -> Draw:
    """Return a system on 1 000 queries with model labels that are too high. n queries have people's labels."""

    def sample(rng: Rng) -> tuple[FloatArray, FloatArray]:
        human = rng.beta(2, 2, N_MODEL)
        kind = human + bias * (rng.random(N_MODEL) < 0.5) * (1 - human) * 2 + rng.normal(0, noise, N_MODEL)
        return human, kind.clip(1e-3, 1)  # a label of 0 is not relevant

    def draw(rng: Rng, n: int) -> float:
        some = rng.choice(N_MODEL, n, replace=False)
        human, model = sample(rng)
        one = corrected(human, model, some)
        if what == "equal":
            # A second system with the same mean, which the model does not favour.
            alike = rng.beta(2, 2, N_MODEL)
            other = corrected(alike, alike, some)
            return compare(one, other, seed=rng, n_resamples=RESAMPLES).verdict != "undecided"
        interval = one.interval()
        if what == "covers":
            return interval.low <= 0.5 <= interval.high
        alone = of_values(human[some]).interval()
        return (interval.high - interval.low) / (alone.high - alone.low)

    return draw


N_MODEL = 1000
MODELS: dict[str, Callable[[Rng, FloatArray], FloatArray]] = {
    "good model": lambda rng, human: np.clip(human + rng.normal(0, 0.05, human.size), 0, 1),
    "useless model": lambda rng, human: rng.permutation(human),
    "3 % zeros under the model's labels": lambda rng, human: np.where(rng.random(human.size) < 0.03, 0.0, human),
}
BASELINES = {"quiet": 0.0, "similar": 0.1, "noisy": 0.3}


def grids() -> dict[str, Grid]:
    """Return all tables."""
    few = (20, 50, 100, 200, 500)
    models = {
        (b, s): f"bias {b:g}, {w} model"
        for b in (0, 0.1, 0.2)
        for s, w in ((0.05, "good"), (0.15, "fair"), (1, "useless"))
    }
    return {
        "few": Grid(
            "decisions", "false passes at a true loss of the margin, if any query changed", "at most 3 %", few,
            {f"{100 * s:g} % of queries lose 0.4": few_change(s, 0.4) for s in (0.02, 0.05, 0.1)},
        ),
        "jitter": Grid(
            "decisions", "the same, if all other queries change by .01", "none; a note warns of skewness", few,
            {"5 % of queries lose .4": few_change(0.05, 0.4, 0.01)},
        ),
        "unseen": Grid(
            "decisions", "the same, if losses have several sizes", "none; each pass states what may be unseen", few,
            {
                "2 % lose .5, 20 % change by up to .05": several_sizes(0.02, lost(0.5), 0.5, 0.2, 0.05),
                "3 % lose .6, 30 % change by up to .02": several_sizes(0.03, lost(0.6), 0.6, 0.3, 0.02),
                "3 % lose, exponential of mean .2": several_sizes(0.03, exponential, 0.2, 0, 0),
                "10 % lose, exponential of mean .2": several_sizes(0.1, exponential, 0.2, 0, 0),
            },
        ),
        "changed": Grid(
            "decisions", "power, if three of four changes are gains", "within 10 of the t test", (50, 90, 150),
            {
                f"{100 * s:g} % of queries change, {what}": better_than(s, what == "t test")
                for s in (0.1, 0.2, 0.4) for what in ("compare", "t test")
            },
        ),
        "detectable": Grid(
            "decisions", "power at the smallest detectable difference", "76 to 84 %", (50, 70, 90),
            {f"{100 * s:g} % of queries change": detected(s) for s in (0.1, 0.2, 0.3, 0.4)},
        ),
        "needed": Grid(
            "decisions", "equal systems that pass with the number of queries that an undecided gate names",
            "76 to 84 %", (20, 50),
            {f"{100 * s:g} % of queries change": passes_when_needed(s) for s in (0.1, 0.2, 0.5, 1)},
        ),
        "power": Grid(
            "decisions", "power: lower limit above -.02, if all queries change by N(.05, .05)", "at least 95 %", (10,),
            {"10 of 10": low_limit_above(-0.02, 10, 0.05, 0.05, True)},
        ),
        "gains": Grid(
            "decisions", "power: lower limit above 0, if 12 of 50 queries gain .05 to .4", "at least 99 %", (50,),
            {"12 of 50": low_limit_above(0.0, 12, 0.05, 0.4)},
        ),
        "baseline": Grid(
            "decisions", "type I error of K comparisons of equal systems with a baseline", "4 to 6 %", (50, 100, 600),
            {f"{w} baseline, K = {k}": equal_to_baseline(x, k) for w, x in BASELINES.items() for k in (3, 15, 50)},
        ),
        "slices": Grid(
            "decisions", "coverage of a slice of n queries minus the others", "94 to 96 %", (20, 200),
            {
                f"{what}, {size} others": slice_covered(beta(a), beta(b), 0.0, ratio)
                for what, a, b in (("equal spread", 2, 2), ("the slice varies more", 2, 20), ("less", 20, 2))
                for size, ratio in (("n", 1), ("9n", 9))
            }, 2000,
        ),
        "slices_hard": Grid(
            "decisions", "the same in other cases", "at least 93 %", (20, 200),
            {
                "91 % ones, n others with 91 %": slice_covered(ones(0.91), ones(0.91), 0.0, 1),
                "91 % ones, 9n others with 70 %": slice_covered(ones(0.91), ones(0.7), 0.105, 9),
                "n others, weights from Pareto(1.5)": slice_covered(beta(2), beta(2), 0.0, 1, heavy=True),
                "n others, clusters of 4 queries": slice_covered(beta(2), beta(2), 0.0, 1, each="slice"),
                "n clusters of 4 queries, half of each in the slice":
                slice_covered(beta(2), beta(2), 0.0, 1, each="both"),
                "n / 10 queries in the slice, n others": in_tenths(slice_covered(beta(2), beta(2), 0.0, 10)),
                "all differences of 5 slices": slice_covered(beta(2), beta(2), 0.0, 1, labels=5),
            }, 2000,
        ),
        "corrected": Grid(
            "model_labels", "coverage of the corrected interval", "at least 94 %", (50, 100, 200),
            {name: labelled("covers", *at) for at, name in models.items()},
        ),
        "width": Grid(
            "model_labels", "its width relative to people's labels alone", "-", (50, 100, 200),
            {name: labelled("width", *at) for at, name in models.items()}, 400, False,
        ),
        "equal": Grid(
            "model_labels", "type I error of `compare`, if the model favours one of two equal systems", "at most 6 %",
            (50, 100, 200), {name: labelled("equal", *at) for at, name in models.items()},
        ),
        "near": Grid(
            "model_labels", "coverage of the corrected interval near a bound", "at least 93 %", (20, 50, 100, 200),
            {
                f"{values}, {model}": near_a_bound(ones, MODELS[model])
                for values, ones in (("91 % ones", 0.91), ("85 % ones", 0.85), ("beta(2.6, 1)", 0.0))
                for model in MODELS
                if not ones or "zeros" not in model
            }, 1000,
        ),
        "missed": Grid(
            "model_labels", "false passes at a true loss of the margin, if people labelled a loss", "at most 3 %",
            (20, 50, 100, 200),
            {
                f"{100 * s:g} % of queries lose {x:g}, the model sees {100 * seen:g} % of them":
                few_change_under_a_model(s, x, seen)
                for s, x in ((0.02, 0.4), (0.05, 0.4), (0.1, 0.1)) for seen in (1, 0.5, 0)
            }, 400,
        ),
        "tied": Grid(
            "model_labels", "type I error of `compare`, if 3 % of queries change by .4", "at most 6 %", (50, 100, 200),
            {
                f"the model sees {100 * seen:g} % of the changes": few_change_under_a_model(0.03, 0.0, seen)
                for seen in (1, 0.5, 0)
            }, 1000,
        ),
    }  # fmt: skip


def measured(draw: Draw, n: int, samples: int) -> list[float]:
    """Return the mean of a cell, its standard error, and its number of samples; empty if no draw counts."""
    rng = np.random.default_rng(3)
    drawn = [value for _ in range(samples) if (value := draw(rng, n)) is not None]
    return [float(np.mean(drawn)), float(np.std(drawn) / math.sqrt(len(drawn))), len(drawn)] if drawn else []


def tables(page: str, known: dict[str, Any]) -> str:
    """Return the tables of a page."""
    lines = []
    for name, grid in grids().items():
        if grid.page != page or name not in known:
            continue
        factor, digits = (100, 1) if grid.per_cent else (1, 2)
        head = [f"{grid.title} (target: {grid.target})", *(f"n = {n}" for n in grid.ns)]
        lines += ["", f"| {' | '.join(head)} |", "|---|" + "--:|" * len(grid.ns)]
        for row in grid.rows:
            cells = []
            for n in grid.ns:
                cell = known[name][row][str(n)]
                cells.append(" ± ".join(f"{factor * value:.{digits}f}" for value in cell[:2]) or "not attainable")
            lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines[1:])


def main() -> None:
    """Measure, or write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--samples", type=int)
    options = parser.parse_args()
    known = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
    if options.page:
        for name, path in PAGES.items():
            begin, end = "<!-- tables: written by python -m benchmarks.verdicts --page -->", "<!-- end of tables -->"
            head, rest = path.read_text("utf-8").split(begin)
            path.write_text(f"{head}{begin}\n{tables(name, known)}\n{end}{rest.split(end)[1]}", encoding="utf-8")
        return
    for name, grid in grids().items():
        if options.only and name not in options.only:
            continue
        samples = options.samples or grid.samples
        found = {row: {str(n): measured(draw, n, samples) for n in grid.ns} for row, draw in grid.rows.items()}
        known[name] = found
        print(name, found, flush=True)
        RESULT.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
