"""Differences of queries between two systems on real data: ``python -m benchmarks.deciding``.

It compares the demo's three models (docs/demo_scores.csv) and five first-stage runs of TREC Deep Learning 2019. The
figure of docs/deciding.md shows the result.
"""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

from ndcg_ml import Comparison, compare, evaluate, evaluate_run
from ndcg_ml._statistics.p_values_and_sample_sizes import queries_needed
from ndcg_ml.readers import read_columns

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "deciding.json"
RUNS = {
    "BM25": "BM25",
    "BM25+RM3": "BM25_RM3",
    "TAS-B": "D_BERT_KD_TASB",
    "ADA-002": "OPEN_AI_ADA2",
    "SPLADE++": "SPLADE_P_P_ENSEMBLE_DISTIL",
}
MODELS = ("scikit-learn", "PyTorch", "LightGBM")


def compare_demo_models() -> Comparison:
    """Compare the demo's models on its test queries."""
    rows = [read_columns(ROOT / "docs" / "demo_scores.csv", {"score": model}).arguments() for model in MODELS]
    return compare(*(evaluate(**each, flavor="lightgbm", k=10) for each in rows), names=MODELS, seed=0)


def compare_trec_runs(folder: Path) -> Comparison:
    """Compare the runs of TREC Deep Learning 2019, passages."""
    runs = [evaluate_run(folder / "qrels.dl19-passage.txt", folder / f"run.{name}.txt", k=10) for name in RUNS.values()]
    return compare(*runs, names=list(RUNS), seed=0)


def _rows(data: str, comparison: Comparison) -> list[dict[str, Any]]:
    rows = []
    for pair in comparison.pairs:
        deviation = abs(pair.difference / pair.effect_size)
        rows.append(
            {
                "data": data,
                "a": pair.a,
                "b": pair.b,
                "queries": comparison.n_queries,
                "difference": pair.difference,
                "deviation": deviation,
                "p_adjusted": pair.p_adjusted,
                # By these two systems alone, without correction for other pairs.
                "needed_for_0.01": queries_needed(deviation, 0.01, 0.8, 0.95),
            }
        )
    return rows


def main() -> None:
    """Compare and record."""
    data = Path(os.environ.get("NDCG_ML_DATA") or ROOT.parent / "shared" / "data")
    rows = _rows("digits", compare_demo_models()) + _rows("TREC DL 2019", compare_trec_runs(data / "trec_dl19"))
    RESULT.write_text(json.dumps({"date": date.today().isoformat(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
