"""Error rates of the gate: ``python -m benchmarks.gating``.

Queries are drawn from those of the demo (docs/demo_scores.csv): one model's values, and the differences between two
models, centred and scaled to a standard deviation, plus a true difference.
benchmarks/results/gating.md shows the result.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import compare_values, evaluate
from ndcg_ml._decide.verdict import PASSES
from ndcg_ml.readers import read_columns

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "gating.json"
MARGIN = 0.02
NIGHTS, STEP = 50, 0.002

FloatArray = NDArray[np.float64]


def pool() -> tuple[FloatArray, FloatArray]:
    """Return one model's values and the differences between two models, centred and scaled to sd 1."""
    one, other = (
        evaluate(
            **read_columns(ROOT / "docs" / "demo_scores.csv", {"score": name}).arguments(), flavor="lightgbm", k=10
        ).per_query.ndcg
        for name in ("scikit-learn", "LightGBM")
    )
    difference = other - one
    return one, (difference - difference.mean()) / difference.std()


def outcome(base: FloatArray, new: FloatArray, margin: float, rng: np.random.Generator) -> str:
    """Return the outcome of the gate for two lists of values."""
    names = [f"q{i}" for i in range(base.size)]
    seed = int(rng.integers(2**31))
    values = {"base": base, "new": new}
    verdict = compare_values(values, qid=names, measure="ndcg@10", margin=margin, n_resamples=999, seed=seed).verdict
    return "pass" if verdict in PASSES else verdict


def shares(n: int, deviation: float, true: float, draws: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the shares of outcomes of the gate under this true difference."""
    values, differences = pool()
    counts = dict.fromkeys(("pass", "worse", "undecided"), 0)
    for _ in range(draws):
        rows = rng.integers(values.size, size=n)
        base = values[rows]
        new = base + deviation * differences[rng.integers(differences.size, size=n)] + true
        counts[outcome(base, new, MARGIN, rng)] += 1
    return {name: count / draws for name, count in counts.items()}


def nights(follows: bool, n: int, deviation: float, rng: np.random.Generator) -> int | None:
    """Return the first night on which the gate fails if every night loses a little, or None."""
    values, differences = pool()
    base = values[rng.integers(values.size, size=n)]

    def system(loss: float) -> FloatArray:
        return base + deviation / np.sqrt(2) * differences[rng.integers(differences.size, size=n)] - loss

    saved = system(0.0)
    for night in range(1, NIGHTS + 1):
        new = system(STEP * night)
        if outcome(saved, new, MARGIN, rng) == "worse":
            return night
        if follows:
            saved = new
    return None


def main(draws: int = 1000, series: int = 100) -> None:
    """Simulate and record."""
    rng = np.random.default_rng(0)
    cases = [
        {"n": n, "deviation": deviation, "true": true, **shares(n, deviation, true, draws, rng)}
        for n in (50, 200)
        for deviation in (0.05, 0.1)
        for true in (0.0, -MARGIN / 2, -MARGIN, -2 * MARGIN)
    ]
    drift = {}
    for name, follows in (("frozen", False), ("follows", True)):
        caught = [nights(follows, 50, 0.05, rng) for _ in range(series)]
        known = sorted(night for night in caught if night is not None)
        by = {str(limit): sum(night <= limit for night in known) / series for limit in (10, 20, 30, 40, 50)}
        drift[name] = {"caught_by": by, "median_night": None if len(known) <= series // 2 else known[series // 2]}
    document = {
        "date": str(date.today()),
        "draws": draws,
        "series": series,
        "margin": MARGIN,
        "step": STEP,
        "nights": NIGHTS,
        "cases": cases,
        "drift": drift,
    }
    RESULT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
