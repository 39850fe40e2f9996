"""The presets of retrieval tools, recommender systems and rankers against those that are installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from peers import calls
from peers.test_parity_golden import VARIANTS, arguments

from ndcg_ml import evaluate

KS = (1, 3, 10)

# The name in the recorded values, the module to import, and the call.
RUNS = (
    (("mlflow", "ndcg_at_k"), "mlflow.metrics", calls.mlflow),
    (("LlamaIndex", "NDCG"), "llama_index.core", calls.llama_index),
    (("Haystack", "graded"), "haystack", calls.haystack),
    (("pyvespa", "graded"), "vespa.evaluation", calls.pyvespa),
    (("sentence-transformers", "InformationRetrievalEvaluator"), "sentence_transformers", calls.sentence_transformers),
    (("RecTools", "NDCG"), "rectools.metrics", calls.rectools),
    (("LensKit", "NDCG"), "lenskit.metrics", calls.lenskit),
    (("implicit", "ndcg_at_k"), "implicit.evaluation", calls.implicit),
    (("PyG", "LinkPredNDCG"), "torch_geometric.metrics", calls.pyg),
    (("RecPack", "NDCGK"), "recpack.metrics", calls.recpack),
    (("rankerEval", "NDCG"), "rankereval", calls.rankereval),
)
LISTS = (
    (("pyltr", "exp2"), "pyltr.metrics", calls.pyltr, True),
    (("ignite", "NDCG"), "ignite.metrics.rec_sys.ndcg", calls.ignite, False),
)
# Tools whose number for a document that comes twice the preset reproduces.
REPEATED = ("LlamaIndex", "Haystack", "pyvespa")


def a_run(seed: int, *, empties: bool, repeats: bool) -> dict[str, Any]:
    """Grades from 0 to 4, unjudged and unretrieved documents, tied scores, topics without a relevant document."""
    rng = np.random.default_rng(seed)
    hits, qrels = {}, {}
    for query in range(1, 9):
        pool = [f"d{i:02d}" for i in rng.permutation(40)]
        found = pool[: rng.integers(1, 25)]
        if repeats:
            found += [found[0], *found[:3]]
        scores = np.sort(rng.normal(size=len(found)).round(1 if not repeats else 9))[::-1]
        hits[str(query)] = [(doc, float(score)) for doc, score in zip(found, scores, strict=True)]
        judged = [*pool[:30:2], *pool[30:34]]
        grades = {doc: int(grade) for doc, grade in zip(judged, rng.integers(0, 5, len(judged)), strict=True)}
        qrels[str(query)] = dict.fromkeys(grades, 0) if empties and query == 3 else grades
    return {"hits": hits, "qrels": qrels}


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize(
    ("key", "module", "call"),
    [pytest.param(*row, marks=pytest.mark.needs(row[1].partition(".")[0]), id=row[0][0]) for row in RUNS],
)
def test_runs(key: tuple[str, str], module: str, call: Any, k: int) -> None:
    pytest.importorskip(module)
    variant = VARIANTS[key]
    for seed in range(4):
        # LlamaIndex stops at a query without a relevant document
        empties, repeats = key[0] != "LlamaIndex" and seed % 2 == 1, key[0] in REPEATED and seed > 1
        problem = a_run(seed, empties=empties, repeats=repeats)
        theirs = call(problem["hits"], problem["qrels"], k)[0]
        ours = evaluate(flavor=variant.flavor, k=k, **arguments(problem, variant)).value
        assert ours == pytest.approx(theirs, abs=1e-6 if key[0] == "PyG" else 1e-12, nan_ok=True)


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize(
    ("key", "module", "call", "ties"),
    [pytest.param(*row, marks=pytest.mark.needs(row[1].partition(".")[0]), id=row[0][0]) for row in LISTS],
)
def test_lists(key: tuple[str, str], module: str, call: Any, ties: bool, k: int) -> None:
    pytest.importorskip(module)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        labels = [[float(y) for y in rng.integers(0, 5, size)] for size in rng.integers(1, 20, 15)]
        labels[4] = [0.0] * len(labels[4])
        # ignite compares in float32, with a stable sort
        scores = [[float(s) for s in rng.normal(size=len(y)).round(1)] for y in labels]
        theirs = call(scores, labels, k)[0]
        group, y, s = [len(y) for y in labels], np.concatenate(labels), np.concatenate(scores)
        ours = evaluate(y, s, group=group, flavor=VARIANTS[key].flavor, k=k).value
        assert ours == pytest.approx(theirs, abs=1e-12 if ties else 1e-6)
