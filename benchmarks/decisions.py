"""Measure coverage and error rates of verdicts, intervals and corrected scores: ``python -m benchmarks.decisions``.

Queries are drawn from populations with known means. Each cell is recorded when it is done, so a stopped run can be
continued. ``--samples N`` and names of cells measure less. ``--page`` writes the table of
benchmarks/results/decisions.md.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import Comparison, compare_values
from ndcg_ml._statistics.distributions import t_quantile
from ndcg_ml._statistics.intervals import aggregate_clusters, honest_value, robust_error
from ndcg_ml._statistics.means import Means, generator

SAMPLES, RESAMPLES = 2000, 999
RESULT = Path(__file__).parent / "results" / "decisions.json"
PAGE = Path(__file__).parent / "results" / "decisions.md"
BEGIN, END = "<!-- table: written by python -m benchmarks.decisions --page -->", "<!-- end of decisions -->"

FloatArray = NDArray[np.float64]
Rng = np.random.Generator
P = ParamSpec("P")


class Cell(NamedTuple):
    """One row of the table: its name, its target, and a function that draws one sample."""

    name: str
    target: tuple[float, float]
    sample: Callable[[Rng], float]
    per_cent: bool = True
    most: int = 10**9
    """Return the number of samples of a slow cell."""


# -- populations ----------------------------------------------------------------------------------------------------


def population(n_systems: int, differences: FloatArray | float = 0.0, n: int = 20_000) -> FloatArray:
    """Return NDCG of queries by system: hard and easy queries, many values of 0 and 1, systems of unequal variance.

    The means differ by exactly `differences`.
    """
    rng = np.random.default_rng(1)
    base = rng.beta(0.7, 0.7, (n, 1))
    size = np.linspace(0.1, 0.3, n_systems) * rng.choice([0.0, 1.0, 2.0], (n, n_systems), p=[0.4, 0.4, 0.2])
    values: FloatArray = np.clip(base + rng.normal(0, 1, (n, n_systems)) * size, 0, 1)
    values += 0.5 - values.mean(axis=0) + differences
    return values


def drawn(values: FloatArray, n: int, rng: Rng) -> FloatArray:
    """Draw queries of a population."""
    sample: FloatArray = values[rng.integers(0, len(values), n)]
    return sample


def compared(values: FloatArray, rng: Rng, **settings: Any) -> Comparison:
    """Compare the systems in the columns."""
    n = len(values)
    settings = {"n_resamples": RESAMPLES, "seed": rng, **settings}
    letters = [chr(ord("a") + at) if at < 26 else f"s{at + 1}" for at in range(values.shape[1])]
    columns = dict(zip(settings.pop("names", letters), values.T, strict=True))
    return compare_values(columns, qid=np.arange(n), measure="ndcg", **settings)


# -- cells ----------------------------------------------------------------------------------------------------------


def when_drawn(promise: Callable[P, Callable[[Rng], float]]) -> Callable[P, Callable[[Rng], float]]:
    """Make a population only when its first sample is drawn, because tests use few of the 80 cells."""

    @functools.wraps(promise)
    def later(*arguments: P.args, **options: P.kwargs) -> Callable[[Rng], float]:
        made: list[Callable[[Rng], float]] = []

        def sample(rng: Rng) -> float:
            if not made:
                made.append(promise(*arguments, **options))
            return made[0](rng)

        return sample

    return later


@when_drawn
def all_cover(n_systems: int, n: int) -> Callable[[Rng], float]:
    """Return whether the intervals of all pairs cover the true differences, which are not 0."""
    truth = np.linspace(0, 0.05, n_systems)
    values = population(n_systems, truth)
    true = {f"s{i}": float(each) for i, each in enumerate(truth)}

    def sample(rng: Rng) -> float:
        found = compared(drawn(values, n, rng), rng, names=list(true))
        return all(p.interval.low <= true[p.b] - true[p.a] <= p.interval.high for p in found.pairs)

    return sample


@when_drawn
def false_alarm(n_systems: int, n_equal: int, n: int, baseline: bool = False) -> Callable[[Rng], float]:
    """Return whether any two systems of equal means differ significantly; the others do differ."""
    values = population(n_systems, np.where(np.arange(n_systems) < n_equal, 0.0, 0.06))

    def sample(rng: Rng) -> float:
        names = [f"s{i}" for i in range(n_systems)]
        found = compared(drawn(values, n, rng), rng, names=names, baseline="s0" if baseline else None)
        equal = set(names[:n_equal])
        return any(p.verdict != "undecided" for p in found.pairs if p.a in equal and p.b in equal)

    return sample


@when_drawn
def power(n_systems: int, n: int) -> Callable[[Rng], float]:
    """Return the share of true differences that are significant."""
    truth = np.where(np.arange(n_systems) < n_systems // 2, 0.0, 0.06)
    values = population(n_systems, truth)

    def sample(rng: Rng) -> float:
        found = compared(drawn(values, n, rng), rng)
        apart = [p.verdict != "undecided" for p in found.pairs if (p.a < "c") != (p.b < "c")]
        return float(np.mean(apart))

    return sample


def found_among_many(rng: Rng) -> float:
    """Return whether a system with a t of 25 differs significantly from all 99 others."""
    n = 200
    base = rng.beta(0.7, 0.7, (n, 1))
    values = base + rng.normal(0, 0.1, (n, 100))
    values[:, 0] += 25 * 0.1 * math.sqrt(2 / n)
    found = compared(values, rng)
    return all(p.verdict != "undecided" for p in found.pairs if p.a == "a")


@when_drawn
def contradiction(n_systems: int, n: int) -> Callable[[Rng], float]:
    """Return whether a verdict contradicts its interval or its adjusted p-value."""
    values = population(n_systems, np.linspace(0, 0.06, n_systems))

    def sample(rng: Rng) -> float:
        for p in compared(drawn(values, n, rng), rng, n_resamples=199).pairs:
            apart = p.interval.low > 0 or p.interval.high < 0
            if apart != p.significant or apart != (p.verdict in ("better", "worse")):
                return True
        return False

    return sample


@when_drawn
def not_worse_at_the_margin(n: int) -> Callable[[Rng], float]:
    """Return whether the verdict on a system that is worse by the margin is 'not worse'."""
    values = population(2, np.array([0.0, -0.02]))

    def sample(rng: Rng) -> float:
        return compared(drawn(values, n, rng), rng, margin=0.02).verdict in ("not worse", "equivalent", "better")

    return sample


@when_drawn
def covers(n: int) -> Callable[[Rng], float]:
    """Return whether the interval of a difference covers it."""
    values = population(2, np.array([0.0, 0.03]))

    def sample(rng: Rng) -> float:
        interval = compared(drawn(values, n, rng), rng).interval
        return interval.low <= 0.03 <= interval.high

    return sample


@when_drawn
def planned(n_pilot: int) -> Callable[[Rng], float]:
    """Return whether the number of queries that a pilot suggests detects the stated difference."""
    values = population(2, np.array([0.0, 0.05]))

    def sample(rng: Rng) -> float:
        n = compared(drawn(values, n_pilot, rng), rng).queries_needed(0.05)
        return compared(drawn(values, n, rng), rng).verdict == "better"

    return sample


@when_drawn
def detectable(n: int) -> Callable[[Rng], float]:
    """Return whether a true difference of the minimum detectable size is significant."""
    equal = population(2)
    size = compared(equal[:5000], generator(0)).smallest_detectable() * math.sqrt(5000 / n)
    values = equal + np.array([0.0, size])

    def sample(rng: Rng) -> float:
        return compared(drawn(values, n, rng), rng).verdict == "better"

    return sample


def users(n_users: int, rng: Rng, each: int = 0) -> tuple[FloatArray, NDArray[np.int64]]:
    """Draw two systems of equal means on queries of users with intraclass correlation .3, and each query's user.

    A user has `each` queries, or 2 to many.
    """
    sizes = np.full(n_users, each) if each else 1 + rng.geometric(0.2, n_users)
    of_query = np.repeat(np.arange(n_users), sizes)
    difference = rng.normal(0, math.sqrt(0.3), n_users)[of_query] + rng.normal(0, math.sqrt(0.7), of_query.size)
    a = rng.beta(0.7, 0.7, of_query.size)
    return np.stack([a, a + 0.1 * difference], axis=1), of_query


def clustered(n_users: int, use: bool, each: int = 0) -> Callable[[Rng], float]:
    """Return whether two systems of equal means differ significantly on queries of users."""

    def sample(rng: Rng) -> float:
        values, of_query = users(n_users, rng, each)
        return compared(values, rng, cluster=of_query if use else None).verdict != "undecided"

    return sample


def clustered_interval(n_users: int) -> Callable[[Rng], float]:
    """Return whether the robust t interval of a value over users misses it."""

    def sample(rng: Rng) -> float:
        values, of_query = users(n_users, rng)
        means = aggregate_clusters(Means.from_weights(values[:, 1:] - values[:, :1], None), of_query)
        error, dof = robust_error(means)
        return abs(means.mean()[0]) > t_quantile(0.95, float(dof[0])) * error[0]

    return sample


def seeds(n_runs: int, n: int, over_runs: float, n_systems: int = 2, noisy: float = 0.0) -> Callable[[Rng], float]:
    """Return whether any two systems of equal means, whose runs differ, differ significantly.

    With `noisy`, the runs of the first system differ by that.
    """

    def sample(rng: Rng) -> float:
        base = rng.beta(0.7, 0.7, n)
        systems = {}
        for i in range(n_systems):
            query, spread = base + rng.normal(0, 0.1, n), noisy if noisy and i == 0 else over_runs
            systems[f"s{i}"] = [query + rng.normal(0, spread) + rng.normal(0, 0.1, n) for _ in range(n_runs)]
        found = compare_values(systems, qid=np.arange(n), measure="ndcg", n_resamples=RESAMPLES, seed=rng)
        return any(pair.verdict != "undecided" for pair in found.pairs)

    return sample


@when_drawn
def searched(what: str, n_candidates: int, n: int, apart: float) -> Callable[[Rng], float]:
    """Return the bias of a search's corrected or best score, or whether the interval of the corrected score covers.

    `apart` scales the differences between candidates within a query. With 0.45 the best score is as biased as on real
    data: .02 for 20 candidates and 50 queries.
    """
    rng = np.random.default_rng(2)
    values = population(n_candidates, 0.02 * rng.normal(size=n_candidates))
    middle = values.mean(axis=1, keepdims=True)
    values = middle + apart * (values - middle)
    truth = values.mean(axis=0)

    def sample(rng: Rng) -> float:
        ndcg = drawn(values, n, rng)
        worth = float(truth[ndcg.mean(axis=0).argmax()])
        if what == "best score":
            return float(ndcg.mean(axis=0).max()) - worth
        honest = honest_value(ndcg, 0.95, 299, rng)
        return honest.value - worth if what == "bias" else honest.interval.low <= worth <= honest.interval.high

    return sample


def leading(what: str, n_candidates: int, n: int) -> Callable[[Rng], float]:
    """Return the bias of the corrected score, or whether its interval covers, if one candidate is better by .05."""
    ahead = np.where(np.arange(n_candidates) == 0, 0.05, 0.0)

    def sample(rng: Rng) -> float:
        ndcg = rng.beta(0.7, 0.7, (n, 1)) + rng.normal(0, 0.1, (n, n_candidates)) + ahead
        worth = 0.5 + float(ahead[ndcg.mean(axis=0).argmax()])
        honest = honest_value(ndcg, 0.95, 299, rng)
        return honest.value - worth if what == "bias" else honest.interval.low <= worth <= honest.interval.high

    return sample


ANY = (-math.inf, math.inf)


def cells() -> list[Cell]:
    """Return all cells."""
    found = [
        Cell(f"simultaneous coverage, {k} systems, {n} queries", (94, 96.5), all_cover(k, n))
        for k in (3, 5, 10)
        for n in (50, 200)
    ]
    found += [
        Cell("type I error, 3 equal of 3 systems, 50 queries", (0, 6), false_alarm(3, 3, 50)),
        Cell("type I error, 3 equal of 5 systems, 50 queries", (0, 6), false_alarm(5, 3, 50)),
        Cell("type I error, 5 equal of 10 systems, 50 queries", (0, 6), false_alarm(10, 5, 50)),
        Cell("type I error, 5 equal of 5 systems with a baseline, 50 queries", (0, 6), false_alarm(5, 5, 50, True)),
        Cell("power with max-T, 4 systems, 100 queries", ANY, power(4, 100)),
        Cell("t = 25 found among 100 systems", (100, 100), found_among_many, most=40),
        Cell("verdict, interval and p contradict each other, 4 systems, 12 queries", (0, 0), contradiction(4, 12)),
        Cell("verdict, interval and p contradict each other, 2 systems, 9 queries", (0, 0), contradiction(2, 9)),
        Cell("false 'not worse' at the margin, 50 queries", (0, 5.5), not_worse_at_the_margin(50)),
        Cell("false 'not worse' at the margin, 200 queries", (0, 5.5), not_worse_at_the_margin(200)),
    ]
    found += [Cell(f"coverage, interval of a difference, {n} queries", (94, 96.5), covers(n)) for n in (20, 50)]
    found += [
        Cell("power with the number of queries that a pilot of 50 suggests", (76, 84), planned(50)),
        Cell("power at the minimum detectable difference, 50 queries", (76, 84), detectable(50)),
        Cell("type I error with cluster=, 20 users", (4, 7), clustered(20, True)),
        Cell("type I error with cluster=, 50 users", (4, 7), clustered(50, True)),
        Cell("type I error without cluster=, 50 users", ANY, clustered(50, False)),
        Cell("type I error without cluster=, 20 users of 50 queries", ANY, clustered(20, False, 50)),
        Cell("miss rate, robust t interval of a value, 20 users", (4, 7), clustered_interval(20)),
        Cell("miss rate, robust t interval of a value, 50 users", (4, 7), clustered_interval(50)),
        Cell("type I error, 5 seeds that differ by .05, 50 queries", (0, 7), seeds(5, 50, 0.05)),
        Cell("type I error, 5 seeds that do not differ, 50 queries", (0, 7), seeds(5, 50, 0.0)),
    ]
    found += [
        Cell(f"type I error, {k} systems of {r} seeds, {n} queries", (0, 7), seeds(r, n, 0.05, k))
        for k, r, n in ((2, 2, 100), (4, 2, 100), (4, 2, 400), (6, 2, 400), (4, 3, 100), (6, 5, 100))
    ]
    found += [
        Cell(
            f"the same, {k} systems of {r} seeds, one system's vary by .1, others' by .02",
            ANY,
            seeds(r, 100, 0.02, k, 0.1),
        )
        for k, r in ((4, 2), (4, 3), (4, 5))
    ]
    for k, n in ((20, 20), (20, 50), (100, 20), (100, 50), (20, 200)):
        near = 0.008 if n == 20 else 0.005
        for apart, words in ((0.45, ""), (1.0, ", candidates far apart")):
            size = f"{k} candidates, {n} queries{words}"
            found += [
                Cell(f"bias of the best score, {size}", ANY, searched("best score", k, n, apart), False),
                Cell(f"bias of the corrected score, {size}", (-near, near), searched("bias", k, n, apart), False),
                Cell(f"coverage, interval of the corrected score, {size}", (94, 100), searched("covers", k, n, apart)),
            ]
    for n in (50, 200):
        size = f"50 candidates, {n} queries, one candidate better by .05"
        found += [
            Cell(f"bias of the corrected score, {size}", (-0.005, 0.005), leading("bias", 50, n), False),
            Cell(f"coverage, interval of the corrected score, {size}", (94, 100), leading("covers", 50, n)),
        ]
    return found


def measured(cell: Cell, samples: int) -> dict[str, Any]:
    """Return the mean over samples and its standard error."""
    rng, samples = np.random.default_rng(3), min(samples, cell.most)
    values = np.array([cell.sample(rng) for _ in range(samples)], dtype=np.float64)
    values *= 100 if cell.per_cent else 1
    error = float(values.std() / math.sqrt(values.size))
    mean = float(values.mean())
    return {
        "cell": cell.name,
        "target": [None if math.isinf(limit) else limit for limit in cell.target],
        "result": mean,
        "standard_error": error,
        "samples": samples,
        "met": cell.target[0] <= mean <= cell.target[1],
        "per_cent": cell.per_cent,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of targets and results."""
    lines = ["| what | target | result | samples |", "|---|--:|--:|--:|"]
    for row in rows:
        digits, unit = (1, " %") if row["per_cent"] else (3, "")
        low, high = row["target"]
        if low is None:
            target = "-"
        elif low == high:
            target = f"{low:g}{unit}"
        elif low == 0:
            target = f"at most {high:g}{unit}"
        elif high == 100:
            target = f"at least {low:g}{unit}"
        else:
            target = f"{low:g} to {high:g}{unit}"
        missed = "" if row["met"] else " (missed)"
        error = f" ± {row['standard_error']:.{digits}f}"
        lines.append(f"| {row['cell']} | {target} | {row['result']:.{digits}f}{error}{missed} | {row['samples']} |")
    return "\n".join(lines)


def main() -> None:
    """Measure cells without a record, and record each when it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="measure the cells whose names contain one of these again")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    known = {row["cell"]: row for row in json.loads(RESULT.read_text())} if RESULT.exists() else {}
    if options.page:
        head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        rows = [known[cell.name] for cell in cells() if cell.name in known]
        PAGE.write_text(f"{head}{BEGIN}\n{table(rows)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
        return
    order = [cell.name for cell in cells()]
    for cell in cells():
        chosen = any(name in cell.name for name in options.names) if options.names else cell.name not in known
        if not chosen:
            continue
        known[cell.name] = measured(cell, options.samples)
        print(known[cell.name], flush=True)
        rows = [known[name] for name in order if name in known]
        RESULT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
