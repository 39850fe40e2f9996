"""Error rates of the gate: ``python -m benchmarks.gating``.

Queries are drawn from those of the demo (docs/demo_scores.csv): one model's values, and the differences between two
models, centred and scaled to a standard deviation, plus a true difference. Series of commits change some queries for
good. benchmarks/results/gating.md and docs/gate.md show the result.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import compare_values, evaluate
from ndcg_ml._statistics.verdict import PASSES
from ndcg_ml.readers import read_columns

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "gating.json"
MARGIN = 0.02
# A step loses one and a half margins; a drift loses this by every commit.
COMMITS, STEP_AT, STEP, DRIFT = 50, 25, 1.5 * MARGIN, 0.001
SHOWN = (1, 10, 25, 50)
# Whether the baseline and the last accepted run are references.
REFERENCES = {"the baseline": (1, 0), "the last run": (0, 1), "both": (1, 1)}
# Numbers of queries, and shares of them that a commit changes.
SETTINGS = ((50, 0.3), (200, 0.1), (200, 0.3))

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
    values, qid = {"base": base, "new": new}, np.arange(base.size)
    verdict = compare_values(values, qid=qid, measure="ndcg@10", margin=margin, n_resamples=999, seed=rng).verdict
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


def commits(kind: str, n: int, share: float, rng: np.random.Generator) -> dict[str, list[str]]:
    """Return the outcomes of 50 commits whose changes persist, with each choice of references.

    Each commit changes a share of the queries by N(0, .1). In a step, one of them also loses; in a drift, all do. The
    last accepted run is the last one that was not worse.
    """
    base = np.full(n, 0.5)
    now, last = base, dict.fromkeys(REFERENCES, base)
    found: dict[str, list[str]] = {name: [] for name in REFERENCES}
    for commit in range(1, COMMITS + 1):
        mean = -DRIFT / share if kind == "drift" else 0.0
        now = now + np.where(rng.random(n) < share, rng.normal(mean, 0.1, n), 0.0)
        if kind == "step" and commit == STEP_AT:
            now = now + np.where(rng.random(n) < 0.3, rng.normal(-STEP / 0.3, 0.1, n), 0.0)
        against_base = outcome(base, now, MARGIN, rng)
        for name, (with_base, with_last) in REFERENCES.items():
            of_all = [against_base] * with_base
            if with_last:
                of_all.append(outcome(last[name], now, MARGIN, rng))
            found[name].append(next(each for each in ("worse", "undecided", "pass") if each in of_all))
            if found[name][-1] != "worse":
                last[name] = now
    return found


def persistent(
    n: int, share: float, series: int, rng: np.random.Generator
) -> dict[str, dict[str, list[float] | float]]:
    """Return, by choice of references, how often harmless commits pass, and steps and drifts are caught."""
    runs = {kind: [commits(kind, n, share, rng) for _ in range(series)] for kind in ("harmless", "step", "drift")}
    window = slice(STEP_AT - 1, STEP_AT + 4)
    return {
        name: {
            "harmless": [float(np.mean([run[name][at - 1] == "pass" for run in runs["harmless"]])) for at in SHOWN],
            "worse": float(np.mean([each == "worse" for run in runs["harmless"] for each in run[name]])),
            "step": float(np.mean(["worse" in run[name][window] for run in runs["step"]])),
            "drift": float(np.mean(["worse" in run[name] for run in runs["drift"]])),
        }
        for name in REFERENCES
    }


def table(document: dict[str, Any]) -> str:
    """Return the table of commits whose changes persist."""
    lines = [
        "| queries, changed by a commit | compared with | harmless commits pass: "
        + ", ".join(f"{at}." for at in SHOWN)
        + ' | harmless "worse" | step caught within 5 | drift caught by 50 |',
        "|---|---|--:|--:|--:|--:|",
    ]
    for row in document["persistent"]:
        for name, found in row["references"].items():
            passes = ", ".join(f"{100 * each:.0f}" for each in found["harmless"])
            lines.append(
                f"| {row['n']}, {100 * row['share']:.0f} % | {name} | {passes} % | {100 * found['worse']:.1f} % | "
                f"{100 * found['step']:.0f} % | {100 * found['drift']:.0f} % |"
            )
    return "\n".join(lines)


def main(draws: int = 1000, series: int = 20) -> None:
    """Simulate and record."""
    rng = np.random.default_rng(0)
    cases = [
        {"n": n, "deviation": deviation, "true": true, "draws": m, **shares(n, deviation, true, m, rng)}
        for n in (50, 200)
        for deviation in (0.05, 0.1)
        for true in (0.0, -MARGIN / 2, -MARGIN, -2 * MARGIN)
        # The share that is nearest to a limit, of 5 % "worse", has the smallest error.
        for m in [5 * draws if (n, deviation, true) == (200, 0.1, 0.0) else draws]
    ]
    print(cases, flush=True)
    rows = []
    for n, share in SETTINGS:
        rows.append({"n": n, "share": share, "references": persistent(n, share, series, rng)})
        print(rows[-1], flush=True)
    document = {
        "date": str(date.today()),
        "series": series,
        "margin": MARGIN,
        "step": STEP,
        "drift": DRIFT,
        "cases": cases,
        "persistent": rows,
    }
    RESULT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
