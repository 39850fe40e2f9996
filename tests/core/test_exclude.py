"""``exclude=``: documents that a run must not be credited for, such as the one that the query came from."""

from __future__ import annotations

import numpy as np
import pytest

from ndcg_ml import Flavor, align, evaluate, evaluate_run

QRELS = {"a": {"b": 2, "c": 1}, "b": {"a": 1}}
RUN = {"a": ["a", "b", "x"], "b": {"b": 9.0, "c": 3.0, "a": 2.0}}
SCORED = {"a": {"a": 3.0, "b": 2.0, "x": 1.0}, "b": RUN["b"]}


def without(run, excluded):
    """The run with these documents taken out by hand."""
    left = {}
    for topic, documents in run.items():
        drop = set(excluded.get(topic, ()))
        if isinstance(documents, dict):
            left[topic] = {d: s for d, s in documents.items() if d not in drop}
        else:
            left[topic] = [d for d in documents if d not in drop]
    return left


@pytest.mark.parametrize(
    ("exclude", "by_hand", "n"),
    [
        ("identical", {"a": ["a"], "b": ["b"]}, 2),
        ({"a": ["x"], "b": {"c"}, "of no topic": ["b"]}, {"a": ["x"], "b": ["c"]}, 2),
        ({"a": ["x", "x", "a"], "b": np.array(["zz"])}, {"a": ["x", "a"]}, 2),
        ({}, {}, 0),
        ({"a": ()}, {}, 0),
    ],
)
@pytest.mark.parametrize("k", [None, 1, 2])
def test_an_excluded_document_is_as_if_the_run_had_it_not(exclude, by_hand, n, k):
    found = evaluate_run(QRELS, RUN, exclude=exclude, k=k)
    expected = evaluate_run(QRELS, without(RUN, by_hand), k=k)
    assert found.per_query.ndcg.tolist() == expected.per_query.ndcg.tolist()
    assert found.per_query.n_retrieved.tolist() == expected.per_query.n_retrieved.tolist()
    assert found.judged == expected.judged
    assert (found.n_excluded, expected.n_excluded) == (n, None)
    assert f"excluded: {n} retrieved documents" in str(found).splitlines()
    data = align(QRELS, RUN, exclude=exclude)
    assert data.n_excluded == n
    assert evaluate(**data.arguments(), flavor="trec_eval", k=k).value == expected.value


def test_drawn_runs_with_ties_and_repeats():
    rng = np.random.default_rng(3)
    names = [str(i) for i in range(8)]
    qrels = {q: {d: int(rng.integers(0, 3)) for d in rng.permutation(names)[:4] if d != q} for q in names}
    run = {q: rng.choice(names, 9).tolist() for q in names}
    flavor = Flavor(duplicates="count", unjudged="zero", ties="first", k=3)
    found = evaluate_run(qrels, run, flavor=flavor, exclude="identical")
    expected = evaluate_run(qrels, without(run, {q: [q] for q in names}), flavor=flavor)
    np.testing.assert_array_equal(found.per_query.ndcg, expected.per_query.ndcg)
    assert found.n_excluded == sum(run[q].count(q) for q in names) > 3


def test_files_are_excluded_from_as_dicts_are(tmp_path):
    qrels, path = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q in QRELS for d, g in QRELS[q].items()), encoding="utf-8")
    path.write_text("".join(f"{q} Q0 {d} 1 {s} t\n" for q in SCORED for d, s in SCORED[q].items()), encoding="utf-8")
    for exclude in ("identical", {"a": ["x"], "b": ["c"]}):
        expected = evaluate_run(QRELS, SCORED, exclude=exclude).value
        for one, other in ((qrels, path), (QRELS, path), (qrels, SCORED)):
            assert evaluate_run(one, other, exclude=exclude).value == expected
    with pytest.warns(UserWarning, match=r"judged relevant, the first in .*qrels, line 1\."):
        evaluate_run(qrels, path, exclude={"a": ["b"]})


def test_a_relevant_document_stays_in_the_ideal_and_is_told():
    with pytest.warns(UserWarning, match=r"leaves out 1 documents .*first in qrels\['q'\], document 'q'") as caught:
        result = evaluate_run({"q": {"q": 1, "a": 1}}, {"q": ["q", "a"]}, exclude="identical", k=2)
    assert caught[0].filename == __file__
    assert result.per_query.idcg[0] > result.per_query.dcg[0] == 1.0


def test_a_topic_of_which_nothing_is_left_is_unanswered():
    with pytest.warns(UserWarning, match="answers 1 of 2 topics with an empty list"):
        result = evaluate_run(QRELS, {"a": ["a"], "b": ["a"]}, exclude="identical")
    assert (result.n_unanswered, result.value) == (1, 0.5)


def test_integer_ids():
    result = evaluate_run({7: {8: 1}}, {7: [7, 8]}, exclude="identical")
    assert (result.value, result.n_excluded) == (1.0, 1)
    assert evaluate_run({7: {8: 1}}, {7: [9, 8]}, exclude={7: [9]}).value == 1.0


@pytest.mark.parametrize(
    ("exclude", "error", "message"),
    [
        ("same", ValueError, r"exclude must be 'identical' or \{topic: \[document, ...\]\}; got 'same'"),
        (["a"], TypeError, "exclude must be 'identical' or .*got list"),
        ({"a": "b"}, TypeError, r"exclude\['a'\] must be a list of documents; got 'b'"),
        ({"a": 3}, TypeError, r"exclude\['a'\] must be a list of documents; got 3"),
        ({"a": [3]}, TypeError, r"document ids must have one type .*int in exclude\['a'\]"),
        ({3: ["a"]}, TypeError, "topic ids must have one type .*int in exclude"),
    ],
)
def test_what_is_refused(exclude, error, message):
    with pytest.raises(error, match=message):
        evaluate_run(QRELS, RUN, exclude=exclude)


def test_text_and_integers_are_never_identical():
    with pytest.raises(TypeError, match="document and topic ids must have one type to be identical; got str and int"):
        evaluate_run({7: {"8": 1}}, {7: ["7", "8"]}, exclude="identical")
