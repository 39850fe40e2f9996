"""Coverage of confidence intervals: ``python -m benchmarks.coverage``.

Samples are drawn from populations of 20 000 queries. The table of benchmarks/results/decisions.md shows how many of
their 95 % intervals cover the value of the population.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import Evaluation, Flavor, evaluate
from ndcg_ml._decide.means import Means, minus, spread_of

SIZES = (50, 200, 1000)
METHODS = ("bca", "percentile", "t")
SAMPLES, RESAMPLES = 4000, 999
RESULT = Path(__file__).parent / "results" / "coverage.json"
PAGE = Path(__file__).parent / "results" / "decisions.md"
BEGIN, END = "<!-- table: written by python -m benchmarks.coverage --page -->", "<!-- end of table -->"


class Population(NamedTuple):
    """Queries to draw from: NDCG and weight of one system, or of two systems to compare."""

    name: str
    values: NDArray[np.float64]
    weight: NDArray[np.float64]


def populations(n_queries: int = 20_000) -> list[Population]:
    """Return a hard task, an easy one, a micro average of the hard one, and a difference."""
    rng = np.random.default_rng(1)
    hard, easy = (
        rng.choice(5, (n_queries, 30), p=(1 - rare, rare / 2, rare / 4, rare / 8, rare / 8)) for rare in (0.02, 0.1)
    )
    for grades in (hard, easy):  # no query is empty
        grades[np.arange(n_queries), rng.integers(0, 30, n_queries)] = 1
    flavor = Flavor.preset("lightgbm", k=10)
    first, second = (hard + rng.normal(0, noise, hard.shape) for noise in (6.0, 5.0))
    bad, better = evaluate(hard, first, flavor=flavor), evaluate(hard, second, flavor=flavor)
    good = evaluate(easy, easy + rng.normal(0, 0.5, easy.shape), flavor=flavor)
    equal = np.ones((n_queries, 1))

    def ndcg(*evaluations: Evaluation[float]) -> NDArray[np.float64]:
        return np.stack([each.per_query.ndcg for each in evaluations], axis=1)

    return [
        Population("a hard task", ndcg(bad), equal),
        Population("an easy task", ndcg(good), equal),
        Population("the hard task, micro", ndcg(bad), bad.per_query.idcg[:, None]),
        Population("a difference", ndcg(bad, better), np.ones((n_queries, 2))),
    ]


def coverage(population: Population, size: int, samples: int, resamples: int, seed: int) -> dict[str, float]:
    """Return, by method, the share of samples whose 95 % interval covers the value of the population."""
    rng = np.random.default_rng(seed)
    means = np.average(population.values, axis=0, weights=population.weight)
    truth = float(means[-1] - means[0] if means.size == 2 else means[0])
    hits = dict.fromkeys(METHODS, 0)
    for _ in range(samples):
        queries = rng.integers(0, len(population.values), size)
        spreads = spread_of(Means.from_weights(population.values[queries], population.weight[queries]), resamples, rng)
        spread = minus(spreads[1], spreads[0]) if len(spreads) == 2 else spreads[0]
        for method in METHODS:
            interval = (replace(spread, draws=None) if method == "t" else spread).interval(0.95, method)
            hits[method] += interval.low <= truth <= interval.high
    return {method: count / samples for method, count in hits.items()}


def table(report: dict[str, Any]) -> str:
    """Return the table of coverage in per cent."""
    lines = ["| value | skewness | queries | BCa | percentile | t |", "|---|--:|--:|--:|--:|--:|"]
    for row in report["rows"]:
        shares = " | ".join(f"{100 * row[method]:.1f}" for method in METHODS)
        lines.append(f"| {row['population']} | {row['skewness']:.1f} | {row['queries']} | {shares} |")
    return "\n".join(lines)


def main() -> None:
    """Simulate and record. With --page, write the table of benchmarks/results/decisions.md from the record."""
    if "--page" in sys.argv:
        head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        text = f"{head}{BEGIN}\n{table(json.loads(RESULT.read_text()))}\n{END}{rest.split(END)[1]}"
        PAGE.write_text(text, encoding="utf-8")
        return
    rows = []
    for population in populations():
        for size in SIZES:
            found = coverage(population, size, SAMPLES, RESAMPLES, seed=size)
            plain = population.values[:, -1] - (population.values[:, 0] if population.values.shape[1] == 2 else 0)
            skewness = float(((plain - plain.mean()) ** 3).mean() / plain.std() ** 3)
            rows.append({"population": population.name, "skewness": skewness, "queries": size, **found})
            print(rows[-1], flush=True)
    document = {"date": date.today().isoformat(), "samples": SAMPLES, "resamples": RESAMPLES, "rows": rows}
    RESULT.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
