"""How often confidence intervals cover the truth: ``python -m benchmarks.coverage``.

Populations of 20 000 queries are ranked and evaluated; samples are drawn from them, and it is counted how many of their
95 % intervals hold the value of the population. The result is the table of docs/deciding.md.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import Evaluation, Flavor, evaluate
from ndcg_ml._means import Means, minus, spread_of

SIZES = (50, 200, 1000)
METHODS = ("bca", "percentile", "t")
SAMPLES, RESAMPLES = 4000, 999
RESULT = Path(__file__).parent / "results" / "coverage.json"


class Population(NamedTuple):
    """Queries to draw from: NDCG and weight of one system, or of two whose difference is wanted."""

    name: str
    values: NDArray[np.float64]
    weight: NDArray[np.float64]


def populations(n_queries: int = 20_000) -> list[Population]:
    """Four of them: a hard task, an easy one, a micro average of the hard one, and a difference."""
    rng = np.random.default_rng(1)
    hard = rng.choice(5, (n_queries, 30), p=(0.93, 0.03, 0.02, 0.01, 0.01))
    hard[np.arange(n_queries), rng.integers(0, 30, n_queries)] = 1  # every query has something to find
    easy = rng.choice(5, (n_queries, 30), p=(0.3, 0.2, 0.2, 0.2, 0.1))
    flavor = Flavor.preset("lightgbm", k=10)
    first, second = (hard + rng.normal(0, noise, hard.shape) for noise in (1.1, 1.0))
    bad, better = evaluate(hard, first, flavor=flavor), evaluate(hard, second, flavor=flavor)
    good = evaluate(easy, easy + rng.normal(0, 0.9, easy.shape), flavor=flavor)
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
    """The share of samples of this size whose 95 % interval covers the value of the population, by method."""
    rng = np.random.default_rng(seed)
    means = np.average(population.values, axis=0, weights=population.weight)
    truth = float(means[-1] - means[0] if means.size == 2 else means[0])
    hits = dict.fromkeys(METHODS, 0)
    for _ in range(samples):
        queries = rng.integers(0, len(population.values), size)
        spreads = spread_of(Means.of(population.values[queries], population.weight[queries]), resamples, rng)
        spread = minus(spreads[1], spreads[0]) if len(spreads) == 2 else spreads[0]
        for method in METHODS:
            interval = (replace(spread, draws=None) if method == "t" else spread).interval(0.95, method)
            hits[method] += interval.low <= truth <= interval.high
    return {method: count / samples for method, count in hits.items()}


def main() -> None:
    """Simulate and write."""
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
