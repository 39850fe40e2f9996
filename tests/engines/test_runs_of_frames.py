"""``evaluate_run`` with frames: excluded documents, and the table of topics."""

from __future__ import annotations

import math

import pytest
from core.test_exclude import QRELS, SCORED

from ndcg_ml import evaluate_run

pd = pytest.importorskip("pandas")


def frame(data, value):
    rows = [(topic, document, number) for topic in data for document, number in data[topic].items()]
    return pd.DataFrame(rows, columns=["qid", "docno", value])


@pytest.mark.parametrize("exclude", ["identical", {"a": ["x"], "b": ["c"]}])
def test_documents_of_a_frame_are_excluded(exclude):
    expected = evaluate_run(QRELS, SCORED, exclude=exclude).value
    assert evaluate_run(QRELS, SCORED).value != expected
    for judged in (QRELS, frame(QRELS, "label")):
        assert evaluate_run(judged, frame(SCORED, "score"), exclude=exclude).value == expected


def test_the_order_of_a_frame_of_judgements_is_that_of_the_given_ideal():
    for run in ({"t": {"a": 1.0, "b": 2.0}}, {"t": {"b": 2.0, "a": 1.0}}):
        for order in ({"t": {"a": 1, "b": 3}}, {"t": {"b": 3, "a": 1}}):
            expected = evaluate_run(order, run, flavor="spark_graded").per_query.idcg.tolist()
            found = evaluate_run(frame(order, "label"), frame(run, "score"), flavor="spark_graded")
            assert found.per_query.idcg.tolist() == expected
    assert expected == pytest.approx([7 + 1 / math.log2(3)])


def test_the_table_of_topics_has_what_was_retrieved():
    with pytest.warns(UserWarning, match="answers 1 of 2 topics"):
        table = evaluate_run(QRELS, {"a": ["b"], "b": []}, k=(1, 10)).to_frame()
    assert table.n_retrieved.tolist() == [1, 0]


def test_labels_of_topics_are_matched_by_their_index():
    table = pd.DataFrame({"land": ["x", "y"], "size": [1, 2]}, index=["b", "a"])
    slices = evaluate_run(QRELS, SCORED, by=table).slices
    assert slices["land", "x"].per_query.qid.tolist() == ["b"]
    assert slices["size", 2].per_query.qid.tolist() == ["a"]
    assert len(evaluate_run(QRELS, SCORED, by=table["land"]).slices) == 2
    with pytest.raises(ValueError, match="'a'"):
        evaluate_run(QRELS, SCORED, by=table["land"].rename({"a": "c"}))


def test_integer_topics_are_matched_by_their_index_too():
    """There are no rows that the labels could be of, so that integers in an index are ids."""
    qrels, run = {3: {1: 1}, 1: {1: 1}, 2: {1: 0, 2: 1}}, {1: [1], 2: [1], 3: [2]}
    slices = evaluate_run(qrels, run, by=pd.Series(list("xxy"), index=[1, 2, 3], name="land")).slices
    assert slices["land", "x"].per_query.qid.tolist() == [1, 2]
    assert slices["land", "y"].per_query.qid.tolist() == [3]


@pytest.mark.parametrize("column", ["qid", "docno"])
def test_empty_ids_of_a_frame_are_refused(column):
    table = frame(SCORED, "score")
    table.loc[0, column] = ""
    with pytest.raises(ValueError, match=f"ids of run, column {column}, must not be empty; got ''"):
        evaluate_run(QRELS, table)


def test_weights_are_matched_by_the_index():
    weights = pd.Series({"b": 3.0, "a": 1.0})
    expected = evaluate_run(QRELS, SCORED, query_weight={"a": 1.0, "b": 3.0})
    found = evaluate_run(QRELS, SCORED, query_weight=weights, by=pd.Series({"a": "x", "b": "y"}))
    assert found.value == expected.value
    assert {"difference_low", "difference_high"} <= set(found.slices.to_frame().columns)
    with pytest.raises(ValueError, match=r"must have entries for known queries only; got 'B' \(1 of 3 entries\)"):
        evaluate_run(QRELS, SCORED, query_weight=pd.concat([weights, pd.Series({"B": 1.0})]))
