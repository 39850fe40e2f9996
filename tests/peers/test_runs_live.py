"""Runs and qrels against pytrec_eval on random problems."""

from __future__ import annotations

import numpy as np
import pytest

from ndcg_ml.runs import evaluate_run

pytrec_eval = pytest.importorskip("pytrec_eval")


def random_problem(rng):
    """Grades from -2 to 4, tied and nearly tied scores, unjudged documents, topics on one side only."""
    alphabet = ["doc1", "doc2", "doc10", "Doc1", "é", "\U0001f600", "\uf8ff", "~", "A", "a", "07", "7", "x" * 40]
    qrels, run = {}, {}
    for number in range(int(rng.integers(2, 9))):
        topic = f"t{number}"
        pool = [*alphabet, *(f"{rng.integers(10**6)}-{i}" for i in range(int(rng.integers(0, 40))))]
        if number == 0 or rng.random() < 0.8:
            some = rng.permutation(pool)[: rng.integers(1, len(pool) + 1)].tolist()
            qrels[topic] = {doc: int(rng.integers(-2, 5)) for doc in some}
            # pytrec_eval-terrier 0.5.11 kills the process where every grade of a topic is negative.
            qrels[topic][some[0]] = abs(qrels[topic][some[0]])
        if number == 0 or rng.random() < 0.8:
            some = rng.permutation(pool)[: rng.integers(1, len(pool) + 1)].tolist()
            near = rng.choice([0.0, 1e-9, 1e-3], len(some))
            run[topic] = dict(zip(some, (rng.integers(0, 4, len(some)) + near).tolist(), strict=True))
    return qrels, run


@pytest.mark.parametrize("seed", range(150))
def test_pytrec_eval_live_on_random_problems(seed):
    rng = np.random.default_rng(seed)
    qrels, run = random_problem(rng)
    if not any(doc in qrels.get(topic, {}) for topic, docs in run.items() for doc in docs):
        pytest.skip("no judged document drawn")
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg", "ndcg_cut.1,3,10"}).evaluate(run)
    result = evaluate_run(qrels, run, flavor="pytrec_eval", k=(None, 1, 3, 10), queries="both")
    names = ("ndcg", "ndcg_cut_1", "ndcg_cut_3", "ndcg_cut_10")
    assert sorted(result.per_query.qid.tolist()) == sorted(theirs)
    expected = np.array([[theirs[topic][name] for name in names] for topic in result.per_query.qid.tolist()])
    assert result.per_query.ndcg == pytest.approx(expected, abs=1e-12)
    assert list(result.value.values()) == pytest.approx(expected.mean(axis=0), abs=1e-12)
    # With every topic of the qrels, the missing ones count 0.
    whole = evaluate_run(qrels, run, k=10).value
    assert whole == pytest.approx(expected[:, 3].sum() / len(qrels), abs=1e-12)


def test_the_containers_of_ranx_are_read():
    ranx = pytest.importorskip("ranx")
    qrels, run = {"q": {"d1": 1, "d3": 1}, "r": {"d4": 1}}, {"q": {"d1": 3.0, "d2": 2.0}, "r": {"d1": 1.0, "d4": 2.0}}
    assert evaluate_run(ranx.Qrels(qrels), ranx.Run(run), k=10).value == evaluate_run(qrels, run, k=10).value
