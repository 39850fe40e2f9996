"""Topics for which nothing is retrieved: counted, named, and never silent; and topics without a judgement."""

from __future__ import annotations

import json
import math
import warnings

import pytest

from ndcg_ml import Flavor, align, compare, evaluate, evaluate_ranked, evaluate_run

QRELS = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"b": 2}, "q4": {"c": 1}}
RUN = {"q1": ["a"], "q2": [], "q3": {}}
EMPTY = r"answers 2 of 4 topics with an empty list, the first 'q2'"


def test_empty_answers_are_counted_and_warned_of():
    with pytest.warns(UserWarning, match=EMPTY) as caught:
        result = evaluate_run(QRELS, RUN)
    assert caught[0].filename == __file__
    assert result.n_unanswered == 3  # q2, q3 and q4, which the run lacks
    assert result.per_query.n_retrieved.tolist() == [1, 0, 0, 0]
    assert "n_unanswered=3" in repr(result)
    assert "answers: 2 of the evaluated topics are answered with an empty list" in str(result).splitlines()
    assert "answered with an empty list" in result._repr_html_()
    assert result.value == 0.25


@pytest.mark.parametrize(("queries", "n_unanswered", "n_queries"), [("qrels", 3, 4), ("run", 2, 3), ("both", 2, 3)])
def test_only_evaluated_topics_count_as_unanswered(queries, n_unanswered, n_queries):
    with pytest.warns(UserWarning, match=rf"answers 2 of {n_queries} topics"):
        result = evaluate_run(QRELS, RUN, queries=queries)
    assert (result.n_unanswered, result.n_queries) == (n_unanswered, n_queries)


def test_a_topic_that_the_run_lacks_is_no_empty_answer():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = evaluate_run(QRELS, {"q1": ["a"]})
    assert result.n_unanswered == 3
    assert "answers" not in str(result)


def test_condensed_lists_are_answers():
    flavor = Flavor.preset("trec_eval").replace(unjudged="condense")
    result = evaluate_run({"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": ["a"], "q2": ["x"]}, flavor=flavor)
    assert (result.n_unanswered, result.per_query.n_docs.tolist()) == (0, [1, 0])


@pytest.mark.parametrize("flavor", ["elasticsearch", "haystack", "mlflow", "trec_eval", "spark", "beir"])
def test_a_run_in_which_nothing_was_retrieved_scores_0(flavor):
    qrels = {"q": {"d": 1}, "p": {"d": 1}}
    for run in ({"q": [], "p": ["d"]}, {"q": {}, "p": {"d": 1}}):
        with pytest.warns(UserWarning, match="answers 1 of 2 topics with an empty list") as caught:
            result = evaluate_run(qrels, run, flavor=flavor)
        assert len(caught) == 1
        assert (result.value, result.n_unanswered) == (0.5, 1)
        assert math.isnan(result.per_query.judged[0])
        assert evaluate(**align(qrels, run).arguments(), flavor=flavor).value == 0.5


@pytest.mark.parametrize(
    ("run", "options"),
    [
        ({"q1": [], "q2": []}, {}),
        ({"q1": {}, "q2": {}}, {}),
        ({"q1": [], "q9": ["a"]}, {}),
        ({"q1": [], "q9": ["a"]}, {"queries": "both"}),
        ({"q1": ["a"]}, {"exclude": {"q1": ["a"]}}),
    ],
)
@pytest.mark.filterwarnings("ignore:exclude leaves out")
@pytest.mark.parametrize("as_file", [False, True])
@pytest.mark.parametrize("function", [evaluate_run, align])
def test_a_run_in_which_no_topic_has_a_document_is_refused(tmp_path, run, options, as_file, function):
    if as_file:
        (tmp_path / "run").write_text(json.dumps(run))
        run = tmp_path / "run"
    with pytest.raises(ValueError, match=r"run.* must hold a document in at least one evaluated topic; got none"):
        function(QRELS, run, **options)


@pytest.mark.parametrize(("empty", "value"), [(0.0, 0.5), (1.0, 1.0), ("skip", 1.0), (math.nan, math.nan)])
@pytest.mark.parametrize("answer", [["x"], {"x": 1.0}])
def test_a_topic_without_a_judgement_follows_empty(empty, value, answer):
    flavor = Flavor(unjudged="zero", empty=empty)
    qrels, run = {"u1": {}, "u2": {"a": 1}}, {"u1": answer, "u2": ["a"]}
    result = evaluate_run(qrels, run, flavor=flavor)
    assert (result.n_empty, result.n_queries) == (1, 2)
    assert result.value == pytest.approx(value, nan_ok=True)
    assert evaluate(**align(qrels, run).arguments(), flavor=flavor).value == pytest.approx(value, nan_ok=True)


def test_a_topic_without_a_judgement_that_the_run_lacks_is_empty():
    result = evaluate_run({"u1": {}, "u2": {"a": 1}}, {"u2": ["a"]}, flavor=Flavor(unjudged="zero", empty=1.0))
    assert (result.value, result.n_empty, result.qrels_only.tolist()) == (1.0, 1, ["u1"])


def test_users_of_spark_without_a_relevant_item_count():
    """A test of Spark's own: the third user has no relevant item, and the mean is 0.328788."""
    truth = {"a": dict.fromkeys("12345", 1), "b": dict.fromkeys("123", 1), "c": {}}
    run = {"a": [1, 6, 2, 7, 8, 3, 9, 10, 4, 5], "b": [4, 1, 5, 6, 2, 7, 3, 8, 9, 10], "c": [1, 2, 3, 4, 5]}
    run = {user: list(map(str, items)) for user, items in run.items()}
    assert evaluate_run(truth, run, flavor="spark", k=5).value == pytest.approx(0.328788, abs=5e-7)


def test_no_judgement_at_all_is_told():
    with pytest.warns(UserWarning, match="retrieves no judged document in any of the 1 topics.* No document is judged"):
        result = evaluate_run({"q": {}}, {"q": ["a"]})
    assert (result.value, result.n_empty) == (0.0, 1)


def test_a_comparison_says_who_did_not_answer():
    qrels = {f"q{i}": {"a": 1, "b": 0} for i in range(6)}
    full = evaluate_run(qrels, {topic: ["a", "b"] for topic in qrels})
    with pytest.warns(UserWarning, match="answers 2 of 6 topics"):
        part = evaluate_run(qrels, {topic: ["a"] if i > 1 else [] for i, topic in enumerate(qrels)})
    both = compare(full, part, seed=0)
    assert both.n_unanswered == (0, 2)
    assert "6 queries (no documents returned: a 0, b 2); intervals" in both.caption()
    assert both.caption() in " ".join(str(both).split())
    assert "no documents returned" not in compare(full, full, seed=0).caption()


def test_arrays_without_documents_are_counted_in_a_comparison():
    one = evaluate([1, 0, 1], [2.0, 1.0, 3.0], group=[2, 1, 0])
    assert compare(one, one, seed=0).n_unanswered == (1, 1)


def test_an_empty_ranked_list_causes_a_warning():
    with pytest.warns(UserWarning, match=r"grades has an empty list for 1 of 2 queries.*query 1"):
        result = evaluate_ranked([[1, 0], []], judged=[[1, 0], [2]])
    assert result.value == 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_ranked([[1, 0], []])
        evaluate_ranked([[1, 0], []], judged=[[1, 0], [0]])
