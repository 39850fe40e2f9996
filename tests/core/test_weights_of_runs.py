"""``query_weight`` of ``evaluate_run`` and ``evaluate_topk``: the numbers of ``evaluate``, and what is refused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ndcg_ml import Evaluation, align, compare, evaluate, evaluate_run, evaluate_topk
from ndcg_ml._decide.gate import GateError, gate

RNG = np.random.default_rng(4)
QRELS = {f"q{i}": {f"d{j}": int(RNG.integers(0, 3)) for j in range(6)} for i in range(40)}
RUN, OTHER = ({q: {d: float(RNG.random()) for d in judged} for q, judged in QRELS.items()} for _ in range(2))
WEIGHTS = {q: float(w) for q, w in zip(QRELS, RNG.integers(0, 5, 40), strict=True)}


@pytest.mark.parametrize("flavor", ["trec_eval", "trec_eval[aggregate=micro]", "trec_eval[empty=skip]"])
def test_numbers_are_those_of_evaluate(flavor):
    result = evaluate_run(QRELS, RUN, flavor=flavor, k=(3, None), query_weight=WEIGHTS)
    same = evaluate(**align(QRELS, RUN).arguments(), flavor=flavor, k=(3, None), query_weight=WEIGHTS)
    assert result.value == same.value != evaluate_run(QRELS, RUN, flavor=flavor, k=(3, None)).value
    assert result.interval(seed=1) == same.interval(seed=1)
    assert result.standard_error == same.standard_error
    assert result.per_query.weight.tolist() == list(WEIGHTS.values())
    in_order = list(WEIGHTS.values())
    assert evaluate_run(QRELS, RUN, flavor=flavor, k=(3, None), query_weight=in_order).value == same.value


def test_mean_of_data_set_means_equals_the_mean_of_the_slices():
    dataset = {topic: "ab"[i < 7] for i, topic in enumerate(QRELS)}
    sizes = Counter(dataset.values())
    weights = {topic: 1 / sizes[name] for topic, name in dataset.items()}
    result = evaluate_run(QRELS, RUN, query_weight=weights, by={"dataset": dataset})
    means = [part.value for part in result.slices.values()]
    assert [part.n_queries for part in result.slices.values()] in ([7, 33], [33, 7])
    assert result.value == pytest.approx(sum(means) / 2, abs=1e-15)


def test_saved_compared_and_gated(tmp_path):
    base = evaluate_run(QRELS, RUN, query_weight=WEIGHTS, cluster={q: int(q[1:]) // 4 for q in QRELS})
    base.save(tmp_path / "base.json")
    loaded = Evaluation.load(tmp_path / "base.json")
    assert loaded.value == base.value
    assert loaded.interval() == base.interval()
    clusters = {q: int(q[1:]) // 4 for q in QRELS}
    new = evaluate_run(QRELS, OTHER, query_weight=WEIGHTS, cluster=clusters)
    assert compare(loaded, new).difference == pytest.approx(new.value - base.value, abs=1e-15)
    assert gate(loaded, new, margin=0.5).outcome == "pass"
    changed = evaluate_run(QRELS, OTHER, query_weight={**WEIGHTS, "q2": 9.0}, cluster=clusters)
    with pytest.raises(ValueError, match="weights differ"):
        compare(loaded, changed)
    with pytest.raises(GateError, match="queries whose weights changed"):
        gate(loaded, changed, margin=0.5)


def test_a_weight_of_a_topic_that_is_not_evaluated_is_ignored():
    run = {"q1": RUN["q1"], "q2": RUN["q2"], "only": {"d1": 1.0}}
    weights = {**WEIGHTS, "only": 7.0}
    part = evaluate_run(QRELS, run, queries="both", query_weight=weights)
    assert part.per_query.weight.tolist() == [WEIGHTS["q1"], WEIGHTS["q2"]]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"q0": 1.0}, r"query_weight must have an entry for the id of each query; got none for 'q1' \(39 of 40"),
        (
            {**WEIGHTS, "Q1": 1.0},
            r"query_weight must have entries for known queries only; got 'Q1' \(1 of 41 entries\)",
        ),
        ([1.0, 2.0], r"query_weight must have one weight per query, shape \(40,\); got \(2,\)"),
        ({**WEIGHTS, "q3": -1.0}, r"query_weight must be finite and >= 0"),
        ({**WEIGHTS, "q3": float("nan")}, r"query_weight must be finite and >= 0"),
        (dict.fromkeys(WEIGHTS, 0), r"with at least one weight above 0"),
    ],
)
def test_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        evaluate_run(QRELS, RUN, query_weight=weights)


@pytest.mark.parametrize("qid", [None, ["u", "v", "w"]])
def test_users_of_topk(qid):
    retrieved, held = [[2, 0, 1], [1, 3, -1], [0, 2, 1]], ([0, 0, 1, 2], [2, 3, 0, 1], [1, 1, 1, 1])
    users = range(3) if qid is None else qid
    plain = evaluate_topk(retrieved, held, qid=qid)
    for weights in ([3.0, 0.0, 1.0], dict(zip(users, [3, 0, 1], strict=True))):
        result = evaluate_topk(retrieved, held, qid=qid, query_weight=weights)
        assert result.value == pytest.approx(np.average(plain.per_query.ndcg, weights=[3, 0, 1]), abs=1e-15)
        assert result.per_query.weight.tolist() == [3, 0, 1]
        assert result.interval(method="t").n_queries == 2
    with pytest.raises(ValueError, match="must have entries for known queries only; got 'x'"):
        evaluate_topk(retrieved, held, qid=qid, query_weight=dict.fromkeys([*users, "x"], 1))
    with pytest.raises(ValueError, match=r"must have one weight per query, shape \(3,\); got \(4,\)"):
        evaluate_topk(retrieved, held, qid=qid, query_weight=np.ones(4))
