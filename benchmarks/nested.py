"""The honest value of a search against nested cross-validation, on real data: ``python -m benchmarks.nested FOLDER``.

FOLDER holds LightGBM's ranking example (``rank.train``, ``rank.test`` and their ``.query`` files). A grid of ridge
regressions is searched with whole queries in five folds; nested cross-validation searches within each training part
and scores its winner on the fold that is left. Both are repeated over splits of the queries.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import Ridge

from ndcg_ml import evaluate
from ndcg_ml._data.arrays import FloatArray
from ndcg_ml._stats.honest import honest_value

RESULT = Path(__file__).parent / "results" / "nested.json"
N_SPLITS, N_FOLDS, K = 8, 5, 10
N_FEATURES = 80  # the first of 300, so that a split takes seconds
# The share of the features that ridge sees, and its penalty: 20 candidates, from far too free to far too stiff.
GRID = [(share, alpha) for share in (0.1, 0.3, 0.6, 1.0) for alpha in (0.1, 10.0, 100.0, 1000.0, 10_000.0)]


def data(folder: Path) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features, labels and query ids of both files together."""
    parts = []
    for name in ("rank.train", "rank.test"):
        features, labels = load_svmlight_file(str(folder / name), n_features=300)
        sizes = np.loadtxt(folder / f"{name}.query", dtype=int)
        parts.append((features.toarray()[:, :N_FEATURES], labels, sizes))
    features, labels = (np.concatenate([part[i] for part in parts]) for i in range(2))
    sizes = np.concatenate([part[2] for part in parts])
    return features, labels, np.repeat(np.arange(sizes.size), sizes)


def table(features: FloatArray, labels: FloatArray, qid: FloatArray, folds: list[FloatArray]) -> FloatArray:
    """NDCG@10 of every query under every candidate, fitted without the query's fold; rows in the order of the folds."""
    rows = []
    for left_out in folds:
        test = np.isin(qid, left_out)
        train = ~test & np.isin(qid, np.concatenate(folds))
        rows.append(scored(features, labels, qid, train, test))
    return np.concatenate(rows)


def scored(
    features: FloatArray, labels: FloatArray, qid: FloatArray, train: FloatArray, test: FloatArray
) -> FloatArray:
    """NDCG@10 of each query of `test`, in the order of ids, under every candidate fitted on `train`."""
    columns = []
    for share, alpha in GRID:
        width = int(share * features.shape[1])
        model = Ridge(alpha=alpha).fit(features[train, :width], labels[train])
        found = evaluate(labels[test], model.predict(features[test, :width]), qid=qid[test], flavor="lightgbm", k=K)
        columns.append(found.per_query.ndcg)
    return np.stack(columns, axis=1)


def once(features: FloatArray, labels: FloatArray, qid: FloatArray, seed: int) -> dict[str, float]:
    """The best score, the honest value and the nested value under one split of the queries."""
    rng = np.random.default_rng(seed)
    folds = np.array_split(rng.permutation(np.unique(qid)), N_FOLDS)
    ndcg = table(features, labels, qid, folds)
    honest = honest_value(ndcg, None, 0.95, 999, rng)
    values = []
    for at, left_out in enumerate(folds):
        # The inner search sees only the other folds, and splits their queries into as many folds as the outer one.
        inside = np.concatenate([fold for i, fold in enumerate(folds) if i != at])
        winner = table(features, labels, qid, np.array_split(inside, N_FOLDS)).mean(axis=0).argmax()
        test = np.isin(qid, left_out)
        values.append(scored(features, labels, qid, ~test, test)[:, winner])
    return {
        "best score": float(ndcg.mean(axis=0).max()),
        "honest": honest.value,
        "nested": float(np.concatenate(values).mean()),
    }


def main() -> None:
    """Repeat the search on other splits, and write the means and differences."""
    features, labels, qid = data(Path(sys.argv[1]))
    found = [once(features, labels, qid, seed) for seed in range(N_SPLITS)]
    values = {name: np.array([each[name] for each in found]) for name in found[0]}
    less = {name: values[name] - values["nested"] for name in ("best score", "honest")}
    result = {
        "data": "LightGBM's ranking example, train and test",
        "n_queries": int(np.unique(qid).size),
        "n_candidates": len(GRID),
        "n_splits": N_SPLITS,
        **{name: float(each.mean()) for name, each in values.items()},
        **{
            f"{name} less nested": {
                "difference": float(each.mean()),
                "standard_error": float(each.std(ddof=1) / np.sqrt(N_SPLITS)),
            }
            for name, each in less.items()
        },
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
