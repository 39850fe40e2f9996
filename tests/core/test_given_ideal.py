"""``ideal="given"``: the order of the judgements, whatever the order of the run."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ndcg_ml import Flavor, align, evaluate, evaluate_run, ndcg_score

GIVEN = Flavor(ideal="given", ties="first", unjudged="zero")


def written(tmp_path, qrels, run):
    judged, ranked = tmp_path / "qrels.txt", tmp_path / "run.txt"
    judged.write_text("".join(f"{t} 0 {d} {g}\n" for t in qrels for d, g in qrels[t].items()), encoding="utf-8")
    ranked.write_text("".join(f"{t} Q0 {d} 1 {s} tag\n" for t in run for d, s in run[t].items()), encoding="utf-8")
    return judged, ranked


def spark(predicted, labels, grades):
    """Compute Spark's ``ndcgAt`` for graded labels."""
    grade = dict(zip(labels, grades, strict=True))
    dcg = sum((2.0 ** grade.get(d, 0) - 1) / math.log(i + 2) for i, d in enumerate(predicted))
    return dcg / sum((2.0**g - 1) / math.log(i + 2) for i, g in enumerate(grades))


@pytest.mark.parametrize("order", [["a", "b", "c"], ["b", "a"], ["x", "b", "c", "a"], ["c", "x", "b"]])
def test_the_ideal_of_spark_is_in_the_order_of_its_labels(order):
    qrels = {"t": {"a": 1, "b": 3, "c": 2}}
    expected = spark(order, ["a", "b", "c"], [1, 3, 2])
    assert evaluate_run(qrels, {"t": order}, flavor="spark_graded", k=10).value == pytest.approx(expected, rel=1e-12)
    data = align(qrels, {"t": order}).arguments()
    assert ndcg_score(**data, flavor="spark_graded", k=10) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scores", [{"b": 2.0, "a": 1.0}, {"a": 1.0, "b": 2.0}, {"b": 1.0, "a": 1.0}])
def test_every_form_of_a_run_has_one_given_ideal(scores, tmp_path):
    qrels = {"t": {"a": 0, "b": 3}}
    ideal = 3 / math.log2(3)
    judged, ranked = written(tmp_path, qrels, {"t": scores})
    for one, other in ((qrels, {"t": scores}), (judged, ranked), (qrels, ranked), (judged, {"t": scores})):
        assert evaluate_run(one, other, flavor=GIVEN).per_query.idcg == pytest.approx([ideal])


def test_rows_follow_the_judgements_or_the_run_where_scores_tie():
    qrels = {"t": {"a": 1, "b": 2, "c": 3}, "u": {"a": 1, "b": 2, "c": 3}}
    data = align(qrels, {"t": {"c": 5.0, "x": 1.0, "b": 2.0}, "u": {"b": 1.0, "x": 1.0, "a": 1.0}})
    assert data.in_run_order.tolist() == ["u"]
    assert data.y_true[: data.group[0]].tolist()[:3] == [1, 2, 3]
    np.testing.assert_array_equal(data.y_true[data.group[0] :], [2, np.nan, 1, 3])


@pytest.mark.parametrize("ties", ["first", "last", "average", "docid"])
@pytest.mark.parametrize("duplicates", ["raise", "first", "count"])
def test_arrays_of_align_give_the_value_of_the_run(ties, duplicates):
    """For random runs: under other ideals in all topics, under ``given`` in topics without ties."""
    rng = np.random.default_rng(7)
    documents = [f"d{i}" for i in range(7)]
    qrels, run = {}, {}
    for topic in map(str, range(40)):
        judged = rng.permutation(documents)[: rng.integers(1, 7)].tolist()
        ranked = rng.permutation(documents)[: rng.integers(1, 7)].tolist()
        qrels[topic] = {d: int(rng.integers(0, 4)) for d in judged}
        run[topic] = {d: float(rng.integers(0, 40)) for d in ranked}
        if ties == "first" and duplicates != "raise":
            run[topic] = [*ranked, ranked[0]]
    for ideal in ("given", "global", "recall"):
        flavor = Flavor(ideal=ideal, ties=ties, unjudged="zero", duplicates=duplicates, k=4)
        whole = evaluate_run(qrels, run, flavor=flavor).per_query
        data = align(qrels, run, duplicates="raise" if duplicates == "raise" else "keep")
        rows = evaluate(**data.arguments(), flavor=flavor).per_query
        both = ~np.isin(whole.qid, data.in_run_order) if ideal == "given" else np.ones(len(whole), dtype=bool)
        assert both.sum() > 15
        np.testing.assert_allclose(rows.ndcg[both], whole.ndcg[both], rtol=1e-12)


def test_copies_of_a_document_have_one_place_in_the_given_ideal():
    flavor = GIVEN.replace(duplicates="count")
    table = evaluate_run({"t": {"a": 1, "b": 2}}, {"t": ["b", "a", "b"]}, flavor=flavor).per_query
    assert table.idcg == pytest.approx([1 + 2 / math.log2(3)])


def test_the_given_ideal_has_the_first_retrieved_copy():
    flavor = GIVEN.replace(duplicates="count")
    rows = {"group": [4], "doc_id": ["a", "b", "a", "c"]}
    labels, scores = [3, 1, 3, 2], [4, 3, 2, 1]
    first = 3 + 1 / math.log2(3) + 2 / math.log2(4)
    assert evaluate(labels, scores, **rows, flavor=flavor).per_query.idcg == pytest.approx([first])
    second = 1 + 3 / math.log2(3) + 2 / math.log2(4)
    found = evaluate(labels, scores, **rows, retrieved=[False, True, True, True], flavor=flavor)
    assert found.per_query.idcg == pytest.approx([second])
    none = evaluate(labels, scores, **rows, retrieved=[False, True, False, True], flavor=flavor)
    assert none.per_query.idcg == pytest.approx([first])
