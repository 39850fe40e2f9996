"""Coverage of the interval of a value: ``python -m benchmarks.coverage [POPULATION ...]``.

Samples are drawn from 23 populations of queries with known means. The table of benchmarks/results/decisions.md shows
how many of their 95 % intervals cover the mean, and how wide they are. ``--page`` writes it from the record.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import Evaluation, Flavor, evaluate, evaluate_run
from ndcg_ml._statistics.distributions import t_quantile
from ndcg_ml._statistics.intervals import estimate_of
from ndcg_ml._statistics.means import Means

SIZES = (10, 15, 20, 30, 50, 70, 100, 200, 500, 1000)
SAMPLES = 4000
ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "coverage.json"
PAGE = ROOT / "benchmarks" / "results" / "decisions.md"
BEGIN, END = "<!-- table: written by python -m benchmarks.coverage --page -->", "<!-- end of table -->"
TREC = ("BM25", "BM25_RM3", "D_BERT_KD_TASB", "OPEN_AI_ADA2", "SPLADE_P_P_ENSEMBLE_DISTIL")

FloatArray = NDArray[np.float64]
Rng = np.random.Generator
Draw = Callable[[Rng, int], FloatArray]


class Population(NamedTuple):
    """The values of queries, and their weights in the mean; None if they are equal.

    Independent weights are drawn apart from the values, so that the mean is that of equal weights.
    """

    values: FloatArray
    weight: FloatArray | None = None
    independent: bool = False


def task(rare: float, noise: float, micro: bool = False) -> Callable[[Rng], Population]:
    """Return simulated rankings of 30 documents, few of which are relevant."""

    def pool(rng: Rng) -> Population:
        n = 20_000
        grades = rng.choice(5, (n, 30), p=(1 - rare, rare / 2, rare / 4, rare / 8, rare / 8))
        grades[np.arange(n), rng.integers(0, 30, n)] = 1  # no query is empty
        scores = grades + rng.normal(0, noise, grades.shape)
        found: Evaluation[float] = evaluate(grades, scores, flavor=Flavor.preset("lightgbm", k=10))
        return Population(found.per_query.ndcg, found.per_query.idcg if micro else None)

    return pool


def trec(k: int) -> Callable[[Rng], Population]:
    """Return the queries of five runs of TREC Deep Learning 2019."""

    def pool(_: Rng) -> Population:
        folder = Path(os.environ.get("NDCG_ML_DATA") or ROOT.parent / "shared" / "data") / "trec_dl19"
        runs = [evaluate_run(folder / "qrels.dl19-passage.txt", folder / f"run.{name}.txt", k=k) for name in TREC]
        return Population(np.concatenate([run.per_query.ndcg for run in runs]))

    return pool


def drawn(draw: Draw, weight: Draw | None = None) -> Callable[[Rng], Population]:
    """Return values, and weights, that are drawn independently."""
    n = 400_000
    return lambda rng: Population(draw(rng, n), None if weight is None else weight(rng, n), True)


def mixed(*parts: tuple[float, Draw | float]) -> Draw:
    """Return draws of which each part has its share."""
    shares = np.array([share for share, _ in parts])

    def draw(rng: Rng, n: int) -> FloatArray:
        which = rng.choice(len(parts), n, p=shares / shares.sum())
        columns = [part(rng, n) if callable(part) else np.full(n, part) for _, part in parts]
        return np.stack(columns)[which, np.arange(n)]

    return draw


def beta(a: float, b: float) -> Draw:
    """Return draws of a beta distribution."""
    return lambda rng, n: rng.beta(a, b, n)


def uniform(low: float, high: float) -> Draw:
    """Return draws between two limits."""
    return lambda rng, n: rng.uniform(low, high, n)


def discounts(rng: Rng, n: int) -> FloatArray:
    """Return the NDCG of a single relevant document at a random rank."""
    return 1 / np.log2(2 + rng.integers(0, 10, n))


def pareto(rng: Rng, n: int) -> FloatArray:
    """Return heavy weights."""
    return rng.pareto(1.5, n) + 1


def users(rng: Rng) -> Population:
    """Return the means of users with 1 to many queries, which weigh as many; half of the variation is between users."""
    n = 400_000
    sizes = rng.geometric(0.1, n).astype(np.float64)
    mean = rng.beta(2, 2, n)
    return Population(rng.beta(3 * mean * sizes + 1e-3, 3 * (1 - mean) * sizes + 1e-3), sizes)


PEAKED = mixed((0.95, uniform(0.95, 1)), (0.05, 0.0))
HALF_ONES = mixed((0.5, 1.0), (0.5, uniform(0, 1)))
POPULATIONS: dict[str, Callable[[Rng], Population]] = {
    "a hard task": task(0.02, 6.0),
    "an easy task": task(0.1, 0.5),
    "the hard task, micro average": task(0.02, 6.0, micro=True),
    "TREC DL 2019 @1": trec(1),
    "TREC DL 2019 @10": trec(10),
    "whole lists, beta(14, 4)": drawn(beta(14, 4)),
    "beta(8, .8)": drawn(beta(8, 0.8)),
    "beta(60, 40)": drawn(beta(60, 40)),
    "beta(.5, .5)": drawn(beta(0.5, 0.5)),
    "beta(1.2, 2.5) and 10 % zeros": drawn(mixed((0.9, beta(1.2, 2.5)), (0.1, 0.0))),
    "half ones, rest uniform": drawn(HALF_ONES),
    "70 % zeros, rest uniform": drawn(mixed((0.7, 0.0), (0.3, uniform(0, 1)))),
    "thirds of 0, 1 and between": drawn(mixed((1, 0.0), (1, 1.0), (1, uniform(0.3, 0.7)))),
    "half 0, half 1": drawn(mixed((0.5, 0.0), (0.5, 1.0))),
    "one relevant document, found in 10 %": drawn(mixed((0.9, 0.0), (0.1, discounts))),
    "95 % from .95 to 1, 5 % zeros": drawn(PEAKED),
    "93 % ones, rest uniform": drawn(mixed((0.93, 1.0), (0.07, uniform(0, 1)))),
    "98 % ones, 2 % zeros": drawn(mixed((0.98, 1.0), (0.02, 0.0))),
    "half ones, rest uniform; Pareto(1.5) weights": drawn(HALF_ONES, pareto),
    "95 % from .95 to 1, 5 % zeros; Pareto(1.5) weights": drawn(PEAKED, pareto),
    "users with several queries": users,
}
# The rare value is missing from many samples, and others do not suggest it.
RARE: dict[str, Callable[[Rng], Population]] = {
    "95 % from .8 to .94, 5 % zeros": drawn(mixed((0.95, uniform(0.8, 0.94)), (0.05, 0.0))),
    "95 % from .4 to .5, 5 % ones": drawn(mixed((0.95, uniform(0.4, 0.5)), (0.05, 1.0))),
}


def coverage(name: str, size: int, samples: int) -> tuple[float, float]:
    """Return the share of 95 % intervals that cover the mean, and their mean width over that of exact t intervals."""
    values, weight, independent = (POPULATIONS | RARE)[name](np.random.default_rng(1))
    truth = float(np.average(values, weights=None if independent else weight))
    rng = np.random.default_rng(size)
    rows = rng.integers(0, values.size, (size, samples))
    means = Means.from_weights(
        values[rows], None if weight is None else weight[rng.permuted(rows, axis=0) if independent else rows]
    )
    columns = (Means(means.values[:, [at]], means.weight[:, [at]]) for at in range(samples))
    pairs = zip(columns, means.mean().tolist(), strict=True)
    limits = np.array([estimate_of(*each).limits(0.95) for each in pairs])
    covers = (limits[:, 0] - 1e-12 <= truth) & (truth <= limits[:, 1] + 1e-12)
    exact = 2 * t_quantile(0.95, size - 1) * float(means.mean().std())
    return float(covers.mean()), float((limits[:, 1] - limits[:, 0]).mean()) / exact


def table(report: dict[str, Any]) -> str:
    """Return the table of coverage in per cent and of widths."""
    lines = [
        f"| population | {' | '.join(f'n = {size}' for size in SIZES)} | width at 10, 30, 100 |",
        "|---|" + "--:|" * (len(SIZES) + 1),
    ]
    for name, of_sizes in report["cells"].items():
        shares = " | ".join(f"{100 * of_sizes[str(size)][0]:.1f}" for size in SIZES)
        widths = ", ".join(f"{of_sizes[str(size)][1]:.2f}" for size in (10, 30, 100))
        lines.append(f"| {name}{' (rare)' * (name in RARE)} | {shares} | {widths} |")
    return "\n".join(lines)


def main() -> None:
    """Simulate and record. With --page, write the table of benchmarks/results/decisions.md from the record."""
    if "--page" in sys.argv:
        head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        text = f"{head}{BEGIN}\n{table(json.loads(RESULT.read_text()))}\n{END}{rest.split(END)[1]}"
        PAGE.write_text(text, encoding="utf-8")
        return
    cells: dict[str, dict[str, list[float]]] = json.loads(RESULT.read_text())["cells"] if sys.argv[1:] else {}
    for name in sys.argv[1:] or POPULATIONS | RARE:
        cells[name] = {str(size): [round(x, 4) for x in coverage(name, size, SAMPLES)] for size in SIZES}
        print(name, cells[name], flush=True)
    document = {"date": date.today().isoformat(), "samples": SAMPLES, "cells": cells}
    RESULT.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
