"""The smallest inputs of files, runs, parts and means, and values at both sides of limits."""

from __future__ import annotations

import contextlib
import math
import pickle

import pytest

from ndcg_ml import (
    Flavor,
    align,
    evaluate,
    evaluate_batches,
    evaluate_part,
    evaluate_run,
    ndcg_score,
)

# -- one topic, one document, one row


def test_one_topic_with_one_document(tmp_path):
    (tmp_path / "q").write_text("t 0 d 1", encoding="utf-8")
    (tmp_path / "r").write_text("t Q0 d 1 1 x", encoding="utf-8")
    for qrels, run in (({"t": {"d": 1}}, {"t": ["d"]}), (tmp_path / "q", tmp_path / "r")):
        result = evaluate_run(qrels, run)
        assert (result.value, result.n_queries, result.n_unanswered, result.judged) == (1.0, 1, 0, 1.0)
        assert align(qrels, run).y_true.tolist() == [1.0]


def test_one_row_is_a_part_and_a_stream():
    part = evaluate_part([1], [0.5], qid=["q"])
    assert (part.value, part.n_queries) == (1.0, 1)
    assert pickle.loads(pickle.dumps(part)).value == 1.0
    assert evaluate_batches([([1], [0.5], ["q"])]).value == 1.0
    assert evaluate_batches([([1], [0.5], ["q"]), ([0], [0.7], ["q"])]).value == pytest.approx(1 / math.log2(3))


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
@pytest.mark.parametrize("empty", [0.0, 1.0, "skip", math.nan])
@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 0.0], [1.0, 2.0, 0.5]])
@pytest.mark.parametrize("n_empty", [1, 2])
def test_a_slice_in_which_every_query_is_empty(aggregate, empty, weights, n_empty):
    """It has the value of its rows alone, or none, under every mean and rule for empty queries."""
    y = [[1, 0], [0, 0], [0, 0]] if n_empty == 2 else [[1, 0], [0, 0], [0, 1]]
    labels = ["a", "b", "b"] if n_empty == 2 else ["a", "b", "a"]
    s = [[2.0, 1.0]] * 3
    flavor = Flavor(aggregate=aggregate, empty=empty)
    found = evaluate(y, s, flavor=flavor, by=labels, query_weight=weights).slices["by", "b"]
    rows = [at for at, label in enumerate(labels) if label == "b"]
    assert (found.n_queries, found.n_empty) == (n_empty, n_empty)
    own = None if weights is None else [weights[at] for at in rows]
    counts = own is None or any(own)
    try:
        expected = evaluate([y[at] for at in rows], [s[at] for at in rows], flavor=flavor, query_weight=own).value
    except ValueError:  # nothing to average; the value of a slice is nan
        expected = math.nan
    assert counts or math.isnan(expected)
    assert found.value == pytest.approx(expected, nan_ok=True)
    with contextlib.suppress(ValueError):  # there may be no interval, but none is around nan
        assert not math.isnan(found.interval(method="t").low)


# -- both sides of limits


@pytest.mark.parametrize("size", [7, 8, 9, 63, 64, 65, 128])
def test_ids_that_differ_in_their_last_byte_alone(size):
    """Ids of up to 64 bytes are stored in columns of 8 bytes, longer ones separately."""
    stem = "x" * (size - 1)
    qrels = {"t": {stem + "a": 1, stem + "b": 0, stem: 2}}
    result = evaluate_run(qrels, {"t": {stem + "b": 1.0, stem + "a": 1.0, stem + "c": 1.0, stem: 0.5}})
    assert result.per_query.n_judged[0] == 3
    assert result.judged == pytest.approx(0.75)
    ranked = evaluate_run(qrels, {"t": {stem + "b": 1.0, stem + "a": 1.0}}, k=1)
    assert ranked.value == 0.0  # equal scores: the later id is first


@pytest.mark.parametrize("which", ["topic", "document", "both"])
@pytest.mark.parametrize("side", ["qrels", "run"])
def test_integer_ids_do_not_match_the_text_of_a_file(tmp_path, which, side):
    """Topics, documents or both are integers, and the qrels or the run is a file."""
    path = tmp_path / "file"
    line = "1 Q0 2 1 2.0 tag\n" if side == "qrels" else "1 0 2 1\n"
    path.write_text(line, encoding="utf-8")
    topic, document = (1 if which != "document" else "1"), (2 if which != "topic" else "2")
    data = {topic: {document: 1}}
    arguments = (data, path) if side == "qrels" else (path, data)
    with pytest.raises(TypeError, match="7 and '7' are different ids"):
        evaluate_run(*arguments)
    text_ids = ({"1": {"2": 1}}, path) if side == "qrels" else (path, {"1": {"2": 1}})
    assert evaluate_run(*text_ids).value == 1.0


def test_an_array_of_one_query_of_one_document():
    assert ndcg_score([1], [0.5], group=[1]) == 1.0
    assert ndcg_score([0], [0.5], qid=[7]) == 0.0
