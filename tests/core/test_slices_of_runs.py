"""``evaluate_run(by=)``: slices of a run's topics, each of them the evaluation of a run."""

from __future__ import annotations

import pytest

from ndcg_ml import evaluate_run
from ndcg_ml.runs import RunEvaluation, align

QRELS = {"q1": {"a": 2, "b": 1}, "q2": {"a": 1}, "q3": {"b": 2}, "q4": {"c": 1, "d": 2}, "q5": {"a": 0}}
RUN = {"q9": ["a"], "q4": ["d", "x"], "q2": ["x", "a"], "q1": ["b", "a", "y"], "q5": ["a"]}
LANGUAGE = {"q1": "de", "q2": "fr", "q3": "de", "q4": "fr", "q5": "de"}


def part(data, label):
    return {topic: documents for topic, documents in data.items() if LANGUAGE.get(topic) == label}


@pytest.mark.parametrize("k", [2, (1, 3)])
@pytest.mark.parametrize("queries", ["qrels", "both"])
@pytest.mark.parametrize("flavor", ["trec_eval", "trec_eval[aggregate=micro]", "trec_eval[empty=skip]"])
def test_a_slice_is_the_run_on_these_topics(k, queries, flavor):
    result = evaluate_run(QRELS, RUN, k=k, queries=queries, flavor=flavor, by={"language": LANGUAGE})
    plain = evaluate_run(QRELS, RUN, k=k, queries=queries, flavor=flavor)
    assert (result.value, result.judged, str(result)) == (plain.value, plain.judged, str(plain))
    for label in ("de", "fr"):
        found = result.slices["language", label]
        alone = evaluate_run(part(QRELS, label), part(RUN, label), k=k, queries=queries, flavor=flavor)
        assert isinstance(found, RunEvaluation)
        assert (found.value, found.judged, found.n_empty) == (alone.value, alone.judged, alone.n_empty)
        assert found.per_query.qid.tolist() == alone.per_query.qid.tolist()
        assert found.per_query.n_retrieved.tolist() == alone.per_query.n_retrieved.tolist()
        assert found.n_unanswered == alone.n_unanswered
        if queries == "qrels":
            assert str(found) == str(alone)
            assert found.qrels_only.tolist() == alone.qrels_only.tolist()


def test_as_many_labels_as_there_are_rows_are_refused():
    """Rows are made inside, and are no concern of the caller's: labels are per topic."""
    n_rows = int(align(QRELS, RUN).group.sum())
    assert n_rows != 5
    with pytest.raises(ValueError, match=r"by\['by'\] must have one label per query, 5, .*; got 10"):
        evaluate_run(QRELS, RUN, by=["de"] * n_rows)


def test_a_topic_without_a_label_is_refused():
    with pytest.raises(ValueError, match="'q5'"):
        evaluate_run(QRELS, RUN, by={"language": {q: LANGUAGE[q] for q in ("q1", "q2", "q3", "q4")}})
    with pytest.raises(ValueError, match="'q9'"):
        evaluate_run(QRELS, RUN, queries="run", by={"language": LANGUAGE})


def test_one_topic_and_one_row():
    """The smallest input, in which rows and topics are as many."""
    result = evaluate_run({"q": {"a": 1}}, {"q": ["a"]}, by={"language": {"q": "de"}})
    assert result.slices["language", "de"].value == 1.0
    assert evaluate_run({"q": {"a": 1}}, {"q": ["a"]}, by=["de"]).slices["by", "de"].value == 1.0
