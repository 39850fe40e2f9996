"""TREC runs against qrels: trec_eval's own numbers, topics, forms of input, judged@k, and the options."""

import gzip
import json
import math
import pickle
import warnings
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

from ndcg_ml import (
    Evaluation,
    Flavor,
    align,
    compare,
    evaluate,
    evaluate_ranked,
    evaluate_run,
    evaluate_topk,
    ndcg_score,
)
from ndcg_ml.gating import GateError, gate

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d4": 1}, "q3": {"d5": 3, "d1": 1}}
RUN = {"q3": {"d9": 7.0, "d5": 3.5}, "q1": {"d3": 0.5, "d1": 0.9, "d7": 0.5}, "q9": {"d1": 1.0}}

# q1 ranks d1, then d7 before d3 (docid descending); q3 ranks an unjudged document first.
Q1 = (2 + 1 / math.log2(4)) / (2 + 1 / math.log2(3))
Q3 = (3 / math.log2(3)) / (3 + 1 / math.log2(3))


def write(path, rows):
    path.write_text("".join(" ".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def qrels_file(path, qrels=QRELS):
    return write(path, [(topic, 0, doc, grade) for topic in qrels for doc, grade in qrels[topic].items()])


def run_file(path, run=RUN):
    return write(path, [(topic, "Q0", doc, 1, score, "tag") for topic in run for doc, score in run[topic].items()])


@pytest.mark.parametrize(
    ("run", "published"), [("BM25", ".5058"), ("BM25_RM3", ".5216"), ("SPLADE_P_P_ENSEMBLE_DISTIL", ".7308")]
)
def test_published_values_of_the_deep_learning_track(data_dir, run, published):
    folder = data_dir / "trec_dl19"
    result = evaluate_run(folder / "qrels.dl19-passage.txt", str(folder / f"run.{run}.txt"), k=10)
    assert f"{result.value:.4f}".lstrip("0") == published
    assert result.n_queries == 43


@pytest.mark.parametrize(
    ("printed", "qrels", "run", "queries"),
    [
        ("out.test.aq", "qrels.test", "results.test", "both"),
        ("out.test.aqc", "qrels.test", "results.trunc", "qrels"),
        ("out.test.aql", "qrels.rel_level", "results.test", "both"),
    ],
)
def test_every_ndcg_that_trec_eval_printed(data_dir, printed, qrels, run, queries):
    folder = data_dir / "trec_eval"
    theirs = {}
    for line in (folder / printed).read_text().splitlines():
        name, topic, value = line.split()
        if name == "ndcg" or name.startswith("ndcg_cut_"):
            theirs[topic, int(name.removeprefix("ndcg_cut_")) if "cut" in name else None] = value
    ks = sorted({k for _, k in theirs}, key=lambda k: k or 0)
    result = evaluate_run(folder / qrels, folder / run, k=ks, queries=queries)
    ours = {("all", k): value for k, value in result.value.items()}
    for topic, row in zip(result.per_query.qid.tolist(), result.per_query.ndcg, strict=True):
        ours.update({(topic, k): value for k, value in zip(ks, row, strict=True)})
    assert {key: f"{value:.4f}" for key, value in ours.items()} == theirs
    assert len(theirs) == 40


@pytest.mark.parametrize(
    ("queries", "values", "told"),
    [
        ("qrels", {"q1": Q1, "q2": 0.0, "q3": Q3}, (", counted as retrieving nothing", ", left out")),
        ("run", {"q1": Q1, "q3": Q3, "q9": 0.0}, (", left out", ", counted as unjudged")),
        ("both", {"q1": Q1, "q3": Q3}, (", left out", ", left out")),
    ],
)
def test_topics_of_the_qrels_of_the_run_or_of_both(queries, values, told):
    result = evaluate_run(QRELS, RUN, queries=queries)
    got = dict(zip(result.per_query.qid.tolist(), result.per_query.ndcg.tolist(), strict=True))
    assert list(got) == list(values)
    assert got == pytest.approx(values, abs=1e-15)
    assert result.value == pytest.approx(np.mean(list(values.values())))
    assert result.qrels_only.tolist() == ["q2"]
    assert result.run_only.tolist() == ["q9"]
    assert result.queries == queries
    assert result.n_empty == (queries == "run")
    text = f"topics: 1 of the qrels are not in the run{told[0]}; 1 of the run are not in the qrels{told[1]}"
    assert text in str(result).splitlines()
    none = evaluate_run(QRELS, {topic: ["d1", "d4"] for topic in QRELS}, queries=queries)
    assert "topics: 0 of the qrels are not in the run; 0 of the run are not in the qrels" in str(none).splitlines()


def test_an_empty_list_is_a_topic_of_the_run():
    with pytest.warns(UserWarning, match="answers 1 of 3 topics with an empty list"):
        result = evaluate_run(QRELS, {"q1": ["d1"], "q2": [], "q8": {}}, queries="run")
    assert result.per_query.qid.tolist() == ["q1", "q2", "q8"]
    assert result.per_query.n_docs.tolist() == [1, 0, 0]
    assert result.per_query.ndcg[1:].tolist() == [0.0, 0.0]
    assert result.qrels_only.tolist() == ["q3"]


@pytest.mark.parametrize("empty", [1.0, "skip"])
@pytest.mark.parametrize("run", [RUN, {**RUN, "q2": []}])
@pytest.mark.filterwarnings("ignore:the run answers 1 of 3 topics")
def test_a_missing_topic_that_would_not_be_rewarded_is_accepted(empty, run):
    flavor = Flavor.preset("trec_eval", ideal="recall", empty=empty)
    assert evaluate_run(QRELS, RUN, flavor=flavor, queries="both").value > 0
    assert evaluate_run(QRELS, run, flavor=flavor.replace(ideal="global")).value > 0


def test_every_form_of_input_gives_the_same_result(tmp_path):
    packed = tmp_path / "qrels.packed"
    packed.write_bytes(gzip.compress(qrels_file(tmp_path / "qrels").read_bytes()))
    ranked = {"q3": ["d9", "d5"], "q1": ("d1", "d7", "d3"), "q9": np.array(["d1"])}
    expected = evaluate_run(QRELS, RUN, k=(1, 10))
    for qrels, run in (
        (tmp_path / "qrels", RUN), (str(packed), RUN), (QRELS, run_file(tmp_path / "run")), (QRELS, ranked),
        (QRELS, {**RUN, "q1": ["d1", "d7", "d3"]}),
    ):  # fmt: skip
        result = evaluate_run(qrels, run, k=(1, 10))
        assert result.value == expected.value
        for name in expected.per_query:
            if name != "tied":  # a ranked list has no ties
                np.testing.assert_array_equal(result.per_query[name], expected.per_query[name])
        assert result.run_only.tolist() == ["q9"]


def test_integer_ids_are_ordered_as_their_text(tmp_path):
    # "9" > "10" as text, so the tied documents rank 9, 10. As numbers they would rank 10, 9.
    qrels, run = {1: {9: 1, 10: 0}}, {np.int64(1): {10: 0.5, np.int32(9): 0.5}}
    assert evaluate_run(qrels, run, k=1).value == 1.0
    assert evaluate_run(qrels_file(tmp_path / "q", qrels), run_file(tmp_path / "r", run), k=1).value == 1.0
    result = evaluate_run(qrels, run, k=1)
    assert result.per_query.qid.dtype == int
    assert result.per_query.qid.tolist() == [1]


def test_ids_are_neither_cut_nor_read_as_numbers(tmp_path):
    docs = ["7", "07", "7.0", "7\u00a0", "x" * 300, "x" * 299 + "y", "\U0001f600", "\uf8ff"]
    qrels = {topic: {doc: int(doc == topic) for doc in docs} for topic in docs}
    run = {topic: [topic] for topic in docs}
    for result in (
        evaluate_run(qrels, run),
        evaluate_run(qrels_file(tmp_path / "q", qrels), run),
        evaluate_run({**qrels, "a\0": {"b\0": 1, "b": 0}}, {**run, "a\0": ["b\0"]}),
        evaluate_run({**qrels, "a\0": {"b\n": 1, "b": 0}}, {**run, "a\0": ["b\n"]}),
    ):
        assert set(result.per_query.ndcg.tolist()) == {1.0}
        assert set(docs) <= set(result.per_query.qid.tolist())
    assert "a\0" in result.per_query.qid.tolist()


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("doc9", "doc2"),
        ("doc2", "doc10"),
        ("doc10", "Doc1"),
        ("\U0001f600", "\uf8ff"),
        ("é", "z"),
        ("x" * 300 + "b", "x" * 300 + "a"),
    ],
)
def test_ties_are_in_descending_byte_order(better, worse):
    for low, high in ((1.0, 1.0), (1.0, 1.0 + 1e-9), (-0.0, 0.0), (1e-300, 2e-300), (1e300, 2e300)):
        for run in ({worse: low, better: high}, {worse: high, better: low}):
            with np.errstate(all="raise"):  # the caller's setting
                assert evaluate_run({"q": {better: 1, worse: 0}}, {"q": run}, k=1).value == 1.0
                two = align({"p": [better], "q": [better]}, {"p": {better: 3.0, worse: 5.0}, "q": run})
            assert two.in_run_order.tolist() == ["q"]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 1, 3), (0, 2, 1, 3), (2, 0, 1, 3), (1, 3, 0, 2)])
def test_ties_are_found_in_any_order_of_the_rows(tmp_path, order):
    rows = [("q", "Q0", "a", 1, 2.0, "t"), ("q", "Q0", "b", 2, 2.0, "t"), ("p", "Q0", "c", 1, 1.0, "t")]
    rows = [*rows, ("p", "Q0", "d", 2, 1.0, "t")]
    run = write(tmp_path / "run", [rows[i] for i in order])
    qrels = {"q": {"b": 1, "a": 0}, "p": {"d": 1, "c": 0}}
    assert evaluate_run(qrels, run, k=1).value == 1.0


def test_ties_first_keeps_the_order_of_the_run(tmp_path):
    qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"b": 1.0, "a": 1.0}}
    first = Flavor.preset("trec_eval", ties="first", k=1)
    assert evaluate_run(qrels, run, flavor=first).value == 0.0
    assert evaluate_run(qrels, run_file(tmp_path / "r", run), flavor=first).value == 0.0
    assert evaluate_run(qrels, run, flavor=first.replace(ties="last")).value == 1.0


FOUND = {"q": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "r": {"d1": 1.0, "d4": 2.0}}
RELEVANT = {"q": {"d1": 1, "d3": 1}, "r": {"d4": 1}}


@pytest.mark.parametrize("form", [list, tuple, set, frozenset, lambda docs: np.array(list(docs))])
def test_lists_and_sets_are_judgements_of_grade_1(form):
    found = evaluate_run({topic: form([*docs, *docs]) for topic, docs in RELEVANT.items()}, FOUND, k=10)
    assert found.per_query.ndcg.tolist() == evaluate_run(RELEVANT, FOUND, k=10).per_query.ndcg.tolist()


def test_exchanged_arguments_cause_a_warning():
    run = {"q": {"d1": 0.5, "d2": 0.25}}
    with pytest.warns(UserWarning, match=r"as if the two were swapped. Pass grades as qrels and"):
        evaluate_run(run, {"q": {"d1": 1, "d2": 0}}, flavor="ranx")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_run({"q": {"d1": 1, "d2": 0}}, run)
        evaluate_run(run, {"q": ["d1", "d2"]}, flavor="ranx")
        evaluate_run(run, {"q": {"d1": 1.5, "d2": 1}}, flavor="ranx")


def test_unjudged_documents_gain_nothing_are_left_out_or_are_refused():
    one = {"q3": RUN["q3"]}
    zero = Flavor.preset("trec_eval")
    assert evaluate_run(QRELS, one, flavor=zero, queries="run").value == pytest.approx(Q3)
    condensed = evaluate_run(QRELS, one, flavor=zero.replace(unjudged="condense"), queries="run")
    assert condensed.value == pytest.approx(3 / (3 + 1 / math.log2(3)))
    assert condensed.per_query.n_docs.tolist() == [1]
    assert condensed.judged == 0.5  # the share judged is that of the ranking before condensing


def test_judged_at_k():
    result = evaluate_run(QRELS, RUN, k=(1, 2, None))
    assert result.per_query.qid.tolist() == ["q1", "q2", "q3"]
    np.testing.assert_array_equal(
        result.per_query.judged, [[1.0, 0.5, 2 / 3], [np.nan, np.nan, np.nan], [0.0, 0.5, 0.5]]
    )
    assert result.judged == {1: 0.5, 2: 0.5, None: pytest.approx(7 / 12)}
    assert evaluate_run(QRELS, RUN, k=2).judged == 0.5
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1 + 1e-9, "b": 1.0}}
    assert evaluate_run(qrels, run, k=1).judged == 0.0
    assert evaluate_run(qrels, run, k=1, flavor="trec_eval[score_dtype=float64]").judged == 1.0
    assert evaluate_run({"q": {"a": -2, "b": 1}}, {"q": ["a", "c", "b"]}, k=2).judged == 0.5


@pytest.mark.parametrize(
    ("ties", "judged"), [("docid", 0.0), ("first", 1.0), ("last", 0.0), ("average", 0.5), ("best", 0.5), ("worst", 0.5)]
)
def test_judged_at_k_follows_the_ties_of_the_flavor(ties, judged):
    flavor = Flavor.preset("trec_eval", ties=ties, k=1)
    assert evaluate_run({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, flavor=flavor).judged == judged


def test_the_result_is_an_evaluation_with_a_column_more():
    pair, one = evaluate_run(QRELS, RUN, k=(1, 10)), evaluate_run(QRELS, RUN, k=10)
    assert isinstance(pair, Evaluation)
    assert pair.value[10] == one.value
    assert one.per_query["judged"].tolist()[::2] == [2 / 3, 0.5]
    assert str(pair).splitlines()[:4] == [
        f"ndcg@1 = {pair.value[1]:.6f}",
        f"ndcg@10 = {pair.value[10]:.6f}",
        "judged@1 = 0.500000",
        f"judged@10 = {pair.judged[10]:.6f}",
    ]
    assert str(pair).splitlines()[-1] == str(pair.flavor)
    copy = pickle.loads(pickle.dumps(pair))
    assert str(copy) == str(pair)
    assert pair.to_dict()["per_query"] is None
    assert copy.per_query.keys() == pair.per_query.keys()


@pytest.mark.parametrize(("queries", "n"), [("qrels", 3), ("run", 1), ("both", 1)])
@pytest.mark.parametrize("run", [{"q1": ["D1", "D2"]}, {"q1": ["D1", "d4"]}])
def test_a_run_without_a_judged_document_scores_0_and_warns(run, queries, n):
    told = rf"no judged document in any of the {n} topics.*those of qrels look like 'd1', those of run like 'D1'"
    with pytest.warns(UserWarning, match=told) as caught:
        result = evaluate_run(QRELS, run, queries=queries, k=10)
    assert caught[0].filename == __file__
    assert (result.value, result.judged, result.per_query.ndcg.tolist()) == (0.0, 0.0, [0.0] * n)
    rewarded = Flavor.preset("trec_eval", ideal="recall", empty=1.0)
    if n == 1:
        with pytest.warns(UserWarning, match="no judged document"):
            assert evaluate_run(QRELS, run, flavor=rewarded, queries=queries).value == 1.0
    with pytest.warns(UserWarning, match=told) as caught:
        data = align(QRELS, run, queries=queries)
    assert caught[0].filename == __file__
    assert ndcg_score(**data.arguments(), flavor="trec_eval") == 0.0


X = {"a": {"x": 1}}
# Dicts, and the same as dicts of floats; or the words of an error
DICTS: list[tuple[Any, Any, Any]] = [
    ({"a": {"x": 1.5, "y": 1}, "b": {}}, {"a": ["y", "x"], "c": [], "b": ["x"]},
        {"a": {"y": 0.0, "x": -1.0}, "b": {"x": 0.0}}),
    ({1: {10: 1, 9: 2}, 2: {9: 1}}, {2: {9: 1, 10: 3}, 1: {9: 2**53, 10: -(2**53)}},
        {2: {9: 1.0, 10: 3.0}, 1: {9: 2.0**53, 10: -(2.0**53)}}),
    ({"é\0": {"\0": 1, "\0\0\0": 2}}, {"é\0": {"\0\0\0": 1, "\0\0": 0.5}},
        {"é\0": {"\0\0\0": 1.0, "\0\0": 0.5}}),
    (X, {"a": {"x": True}}, {"a": {"x": 1.0}}),
    (X, {"a": {"x": np.float32(0.1)}}, {"a": {"x": float(np.float32(0.1))}}),
    ({"b": ["x", "x"], **X}, {"a": {"y": 1.0, "x": 0.5}, "b": ("y", "x")},
        {"a": {"y": 1.0, "x": 0.5}, "b": {"y": 0.0, "x": -1.0}}),
    (X, {"a": ["x\ny", "x"]}, {"a": {"x\ny": 0.0, "x": -1.0}}),
    (X, {"a": {"x": 2**53 + 1, "y": 2**53}}, r"run\['a'\] must hold scores that stay different in float64"),
    ({**X, "b": {"x": "1"}}, X, r"qrels\['b'\] must hold real numbers; got text, such as '1'"),
    ({**X, "b": {"x": [1]}}, X, r"qrels\['b'\] must hold one number per document; got \[1\]"),
    ({**X, "b": {1: 1}}, X, r"got str in qrels\['a'\] and int in qrels\['b'\]"),
    ({**X, "b": {"\ud800": 1}}, X, r"document ids of qrels\['b'\] must be strings that UTF-8 can encode"),
    (X, {"a": {}, "b": {7: 1.0}}, r"got str in qrels\['a'\] and int in run\['b'\]"),
    (X, {"a": {"x": math.nan}}, r"scores must not be NaN, .*; got nan in run\['a'\], document 'x'"),
    (X, {"b": [], "a": ["x", None]}, r"document ids of run\['a'\] must not be missing; got None"),
    (X, {"a": ["x", "x"]}, "'x' does in run"),
    ({"b": [{"x": 1}]}, X, r"document ids of qrels\['b'\] must all be str, or all be int; got dict"),
    ({**X, "b": {"x": 10**400}}, X, r"qrels\['b'\] must hold numbers that float64 can hold"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("qrels", "run", "expected"), DICTS)
def test_dicts_are_read_as_dicts_of_floats_or_the_topic_is_named(qrels: Any, run: Any, expected: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises((TypeError, ValueError), match=expected):
            align(qrels, run)
        return
    graded = {topic: of if isinstance(of, dict) else {"x": 1.0} for topic, of in qrels.items()}
    found, same = align(qrels, run), align(graded, expected)
    for name in ("qid", "group", "y_true", "y_score", "retrieved", "doc_id"):
        assert np.array_equal(getattr(found, name), getattr(same, name), equal_nan=name == "y_true"), name


@pytest.mark.parametrize(
    ("topics", "dtype"),
    [([1, 126], int), ([0, 2**63 - 1], np.int64), ([0, 2**63], object), ([-(2**63), 0], np.int64),
     (["1", "a"], "<U1"), (["1\0", "a"], object)],
)  # fmt: skip
def test_topics_have_a_type_of_numpy_where_it_keeps_them(topics, dtype):
    found = evaluate_run({topic: {"d": 1} for topic in topics}, {topic: ["d"] for topic in topics}).per_query.qid
    assert found.dtype == dtype
    assert found.tolist() == topics


# -- topics for which nothing is retrieved: counted, named, and never silent; and topics without a judgement


ASKED = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"b": 2}, "q4": {"c": 1}}
LACKING = {"q1": ["a"], "q2": [], "q3": {}}
EMPTY = r"answers 2 of 4 topics with an empty list, the first 'q2'"


def test_empty_answers_are_counted_and_warned_of():
    with pytest.warns(UserWarning, match=EMPTY) as caught:
        result = evaluate_run(ASKED, LACKING)
    assert caught[0].filename == __file__
    assert result.n_unanswered == 3  # q2, q3 and q4, which the run lacks
    assert result.per_query.n_retrieved.tolist() == [1, 0, 0, 0]
    assert "n_unanswered=3" in repr(result)
    assert " _" not in repr(result).replace("cluster", "_")
    assert "answers: 2 of the evaluated topics are answered with an empty list" in str(result).splitlines()
    assert "answered with an empty list" in result._repr_html_()
    assert result.value == 0.25


@pytest.mark.parametrize(("queries", "n_unanswered", "n_queries"), [("qrels", 3, 4), ("run", 2, 3), ("both", 2, 3)])
def test_only_evaluated_topics_count_as_unanswered(queries, n_unanswered, n_queries):
    with pytest.warns(UserWarning, match=rf"answers 2 of {n_queries} topics"):
        result = evaluate_run(ASKED, LACKING, queries=queries)
    assert (result.n_unanswered, result.n_queries) == (n_unanswered, n_queries)
    assert "answers: 2 of the evaluated topics are answered with an empty list" in str(result).splitlines()


def test_a_missing_topic_and_a_condensed_list_are_no_empty_answers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = evaluate_run(ASKED, {"q1": ["a"]})
    assert result.n_unanswered == 3
    assert "answers" not in str(result)
    flavor = Flavor.preset("trec_eval").replace(unjudged="condense")
    result = evaluate_run({"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": ["a"], "q2": ["x"]}, flavor=flavor)
    assert (result.n_unanswered, result.per_query.n_docs.tolist()) == (0, [1, 0])


@pytest.mark.parametrize(("empty", "value"), [(0.0, 0.5), (1.0, 1.0), ("skip", 1.0), (math.nan, math.nan)])
@pytest.mark.parametrize("answer", [["x"], {"x": 1.0}])
def test_a_topic_without_a_judgement_follows_empty(empty, value, answer):
    flavor = Flavor(unjudged="zero", empty=empty)
    qrels, run = {"u1": {}, "u2": {"a": 1}}, {"u1": answer, "u2": ["a"]}
    result = evaluate_run(qrels, run, flavor=flavor)
    assert (result.n_empty, result.n_queries) == (1, 2)
    assert result.value == pytest.approx(value, nan_ok=True)
    assert evaluate(**align(qrels, run).arguments(), flavor=flavor).value == pytest.approx(value, nan_ok=True)


def test_a_topic_without_a_judgement_is_empty_if_the_run_lacks_it_or_it_is_the_only_one():
    result = evaluate_run({"u1": {}, "u2": {"a": 1}}, {"u2": ["a"]}, flavor=Flavor(unjudged="zero", empty=1.0))
    assert (result.value, result.n_empty, result.qrels_only.tolist()) == (1.0, 1, ["u1"])
    arrays = align({"u1": {}, "u2": {"a": 1}}, {"u2": ["a"]}).arguments()
    assert evaluate(**arrays, flavor=result.flavor).n_empty == 1
    with pytest.warns(UserWarning, match="retrieves no judged document in any of the 1 topics.* No document is judged"):
        result = evaluate_run({"q": {}}, {"q": ["a"]})
    assert (result.value, result.n_empty) == (0.0, 1)


SILENT = "with an empty list, .* Find out why the system returned nothing"


@pytest.mark.parametrize(
    ("run", "options"),
    [
        ({"q1": []}, {}),
        ({"q1": [], "q2": {}}, {}),
        ({"q1": [], "q9": ["a"]}, {}),
        ({"q1": [], "q9": ["a"]}, {"queries": "both"}),
        ({"q1": ["a"]}, {"exclude": {"q1": ["a"]}}),
    ],
)
@pytest.mark.filterwarnings("ignore:exclude leaves out")
@pytest.mark.parametrize("as_file", [False, True])
def test_a_run_that_answers_nothing_scores_0_and_warns(tmp_path, run, options, as_file):
    if as_file:
        (tmp_path / "run").write_text(json.dumps(run))
        run = tmp_path / "run"
    with pytest.warns(UserWarning, match=SILENT):
        result = evaluate_run(ASKED, run, **options, k=(1, 10))
    assert result.value == {1: 0, 10: 0}
    assert result.n_unanswered == result.n_queries
    assert math.isnan(result.judged[10])
    assert not align(ASKED, run, **options).retrieved.any()


def test_a_system_that_answers_nothing_is_not_compared():
    some = evaluate_run(ASKED, {"q1": ["a"], "q3": ["b"]})
    with pytest.warns(UserWarning, match=SILENT):
        none = evaluate_run(ASKED, {"q1": []})
    no_rows = evaluate([1, 1], [1, 2], group=[1, 1], retrieved=[False] * 2)
    for pair in ((none, some), (some, none), (none, none), (no_rows, no_rows)):
        for decide in (compare, partial(gate, margin=0.1)):
            with pytest.raises(ValueError, match=r"must return documents for .*; .* returns none for"):
                decide(*pair)


def test_a_comparison_says_who_did_not_answer():
    qrels = {f"q{i}": {"a": 1, "b": 0} for i in range(6)}
    full = evaluate_run(qrels, {topic: ["a", "b"] for topic in qrels})
    with pytest.warns(UserWarning, match="answers 2 of 6 topics"):
        part = evaluate_run(qrels, {topic: ["a"] if i > 1 else [] for i, topic in enumerate(qrels)})
    both = compare(full, part, seed=0)
    assert both.n_unanswered == (0, 2)
    assert "; 6 queries (no documents returned: a 0, b 2); intervals" in " ".join(str(both).split())
    assert "no documents returned" not in compare(full, full, seed=0).caption()
    one = evaluate([1, 0, 1], [2.0, 1.0, 3.0], group=[2, 1, 0])
    assert compare(one, one, seed=0).n_unanswered == (1, 1)


def test_an_empty_ranked_list_causes_a_warning():
    with pytest.warns(UserWarning, match=r"grades has an empty list for 1 of 2 queries.*query 1"):
        result = evaluate_ranked([[1, 0], []], judged=[[1], [1]], k=(None, 1))
    assert result.value == {None: 0.5, 1: 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_ranked([[1, 0], []])
        evaluate_ranked([[1, 0], []], judged=[[1, 0], [0]])


CITED = {"a": {"b": 2, "c": 1}, "b": {"a": 1}}
CITING = {"a": ["a", "b", "x"], "b": {"b": 9.0, "c": 3.0, "a": 2.0}}
SCORED = {"a": {"a": 3.0, "b": 2.0, "x": 1.0}, "b": CITING["b"]}


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
    found = evaluate_run(CITED, CITING, exclude=exclude, k=k)
    expected = evaluate_run(CITED, without(CITING, by_hand), k=k)
    assert found.per_query.ndcg.tolist() == expected.per_query.ndcg.tolist()
    assert found.per_query.n_retrieved.tolist() == expected.per_query.n_retrieved.tolist()
    assert found.judged == expected.judged
    assert (found.n_excluded, expected.n_excluded) == (n, None)
    assert f"excluded: {n} retrieved documents" in str(found).splitlines()
    data = align(CITED, CITING, exclude=exclude)
    assert (data.n_excluded, data.judgement) == (n, None)
    assert {*data.doc_id[data.retrieved].tolist()} <= {10**9, 10**9 + 1, 10**9 + 2}
    rows = zip(np.repeat(data.qid, data.group).tolist(), data.names(np.arange(data.y_true.size)), strict=True)
    grades = [CITED[topic].get(name, math.nan) for topic, name in rows]
    assert np.array_equal(data.y_true, grades, equal_nan=True)
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
    qrels, path = qrels_file(tmp_path / "qrels", CITED), run_file(tmp_path / "run", SCORED)
    for exclude in ("identical", {"a": ["x"], "b": ["c"]}):
        expected = evaluate_run(CITED, SCORED, exclude=exclude).value
        for one, other in ((qrels, path), (CITED, path), (qrels, SCORED)):
            assert evaluate_run(one, other, exclude=exclude).value == expected
    with pytest.warns(UserWarning, match=r"judged relevant, the first in .*qrels, line 1\."):
        evaluate_run(qrels, path, exclude={"a": ["b"]})
    assert evaluate_run({"a": {"b": 1, "x": 0}}, SCORED, exclude={"a": ["x"]}).n_excluded == 1  # warns of nothing


def test_a_relevant_document_stays_in_the_ideal_and_is_told():
    with pytest.warns(UserWarning, match=r"leaves out 1 documents .*first in qrels\['q'\], document 'q'") as caught:
        result = evaluate_run({"q": {"q": 1, "a": 1}}, {"q": ["q", "a"]}, exclude="identical", k=2)
    assert caught[0].filename == __file__
    assert result.per_query.idcg[0] > result.per_query.dcg[0] == 1.0


def test_documents_with_integer_ids_are_excluded_and_an_emptied_topic_is_unanswered():
    with pytest.warns(UserWarning, match="answers 1 of 2 topics with an empty list"):
        result = evaluate_run(CITED, {"a": ["a"], "b": ["a"]}, exclude="identical")
    assert (result.n_unanswered, result.value) == (1, 0.5)
    result = evaluate_run({7: {8: 1}}, {7: [7, 8]}, exclude="identical")
    assert (result.value, result.n_excluded) == (1.0, 1)


JUDGED = {"q1": {"a": 2, "b": 1}, "q2": {"a": 1}, "q3": {"b": 2}, "q4": {"c": 1, "d": 2}, "q5": {"a": 0}}
ANSWERED = {"q9": ["a"], "q4": ["d", "x"], "q2": ["x", "a"], "q1": ["b", "a", "y"], "q5": ["a"]}
LANGUAGE = {"q1": "de", "q2": "fr", "q3": "de", "q4": "fr", "q5": "de"}


def part(data, label):
    return {topic: documents for topic, documents in data.items() if LANGUAGE.get(topic) == label}


@pytest.mark.parametrize("k", [2, (1, 3)])
@pytest.mark.parametrize("queries", ["qrels", "both"])
@pytest.mark.parametrize("flavor", ["trec_eval", "trec_eval[aggregate=micro]", "trec_eval[empty=skip]"])
def test_a_slice_is_the_run_on_these_topics(k, queries, flavor):
    result = evaluate_run(JUDGED, ANSWERED, k=k, queries=queries, flavor=flavor, by={"language": LANGUAGE})
    plain = evaluate_run(JUDGED, ANSWERED, k=k, queries=queries, flavor=flavor)
    assert (result.value, result.judged, str(result)) == (plain.value, plain.judged, str(plain))
    for label in ("de", "fr"):
        found = result.slices["language", label]
        alone = evaluate_run(part(JUDGED, label), part(ANSWERED, label), k=k, queries=queries, flavor=flavor)
        assert (found.value, found.judged, found.n_empty) == (alone.value, alone.judged, alone.n_empty)
        assert found.per_query.qid.tolist() == alone.per_query.qid.tolist()
        assert found.per_query.n_retrieved.tolist() == alone.per_query.n_retrieved.tolist()
        assert found.n_unanswered == alone.n_unanswered
        if queries == "qrels":
            assert str(found) == str(alone)
            assert found.qrels_only.tolist() == alone.qrels_only.tolist()


def test_one_topic_and_one_row():
    """The smallest input, in which rows and topics are as many."""
    result = evaluate_run({"q": {"a": 1}}, {"q": ["a"]}, by={"language": {"q": "de"}})
    assert result.slices["language", "de"].value == 1.0
    assert (result.qrels_only.size, result.qrels_only.dtype.kind) == (0, "U")
    assert evaluate_run({"q": {"a": 1}}, {"q": ["a"]}, by=["de"]).slices["by", "de"].value == 1.0
    some = evaluate_run({"q": {"a": 1}, "r": {"a": 1}}, {"q": ["a"]}, k=(1, 2), by={"q": "x", "r": "y"})
    lacking = some.slices["slice", "y"]
    assert (lacking.value, lacking.n_unanswered, str(lacking.judged)) == ({1: 0, 2: 0}, 1, "{1: nan, 2: nan}")


RNG = np.random.default_rng(4)
DRAWN = {f"q{i}": {f"d{j}": int(RNG.integers(0, 3)) for j in range(6)} for i in range(40)}
ONE, ANOTHER = ({q: {d: float(RNG.random()) for d in judged} for q, judged in DRAWN.items()} for _ in range(2))
WEIGHTS = {q: float(w) for q, w in zip(DRAWN, RNG.integers(0, 5, 40), strict=True)}


@pytest.mark.parametrize("flavor", ["trec_eval", "trec_eval[aggregate=micro]", "trec_eval[empty=skip]"])
def test_numbers_are_those_of_evaluate(flavor):
    result = evaluate_run(DRAWN, ONE, flavor=flavor, k=(3, None), query_weight=WEIGHTS)
    same = evaluate(**align(DRAWN, ONE).arguments(), flavor=flavor, k=(3, None), query_weight=WEIGHTS)
    assert result.value == same.value != evaluate_run(DRAWN, ONE, flavor=flavor, k=(3, None)).value
    assert result.interval() == same.interval()
    assert result.standard_error == same.standard_error
    assert result.per_query.weight.tolist() == list(WEIGHTS.values())
    in_order = list(WEIGHTS.values())
    assert evaluate_run(DRAWN, ONE, flavor=flavor, k=(3, None), query_weight=in_order).value == same.value


def test_mean_of_data_set_means_equals_the_mean_of_the_slices():
    dataset = {topic: "ab"[i < 7] for i, topic in enumerate(DRAWN)}
    sizes = Counter(dataset.values())
    weights = {topic: 1 / sizes[name] for topic, name in dataset.items()}
    result = evaluate_run(DRAWN, ONE, query_weight=weights, by={"dataset": dataset})
    means = [part.value for part in result.slices.values()]
    assert [part.n_queries for part in result.slices.values()] in ([7, 33], [33, 7])
    assert result.value == pytest.approx(sum(means) / 2, abs=1e-15)


def test_saved_compared_and_gated(tmp_path):
    base = evaluate_run(DRAWN, ONE, query_weight=WEIGHTS, cluster={q: int(q[1:]) // 4 for q in DRAWN})
    base.save(tmp_path / "base.json")
    loaded = Evaluation.load(tmp_path / "base.json")
    assert loaded.value == base.value
    assert loaded.interval() == base.interval()
    clusters = {q: int(q[1:]) // 4 for q in DRAWN}
    new = evaluate_run(DRAWN, ANOTHER, query_weight=WEIGHTS, cluster=clusters)
    assert compare(loaded, new).difference == pytest.approx(new.value - base.value, abs=1e-15)
    assert gate(loaded, new, margin=0.5).outcome == "pass"
    path = write(tmp_path / "by document", [(q, 0, f"d{j}", DRAWN[q][f"d{j}"]) for j in range(6) for q in DRAWN])
    given = (evaluate_run(qrels, ONE, flavor="trec_eval[ideal=given]") for qrels in (DRAWN, path))
    assert gate(*given, margin=0.5).outcome == "unchanged"
    changed = evaluate_run(DRAWN, ANOTHER, query_weight={**WEIGHTS, "q2": 9.0}, cluster=clusters)
    with pytest.raises(ValueError, match="weights differ"):
        compare(loaded, changed)
    with pytest.raises(GateError, match="queries whose weights changed"):
        gate(loaded, changed, margin=0.5)
    run = {"q1": ONE["q1"], "q2": ONE["q2"], "only": {"d1": 1.0}}
    part = evaluate_run(DRAWN, run, queries="both", query_weight={**WEIGHTS, "only": 7.0})
    assert part.per_query.weight.tolist() == [WEIGHTS["q1"], WEIGHTS["q2"]]


@pytest.mark.parametrize("qid", [None, ["u", "v", "w"]])
def test_users_of_topk(qid):
    retrieved, held = [[2, 0, 1], [1, 3, -1], [0, 2, 1]], ([0, 0, 1, 2], [2, 3, 0, 1], [1, 1, 1, 1])
    users = range(3) if qid is None else qid
    plain = evaluate_topk(retrieved, held, qid=qid)
    assert plain.per_query.qid.tolist() == list(users)
    for weights in ([3.0, 0.0, 1.0], dict(zip(users, [3, 0, 1], strict=True))):
        result = evaluate_topk(retrieved, held, qid=qid, query_weight=weights)
        assert result.value == pytest.approx(np.average(plain.per_query.ndcg, weights=[3, 0, 1]), abs=1e-15)
        assert result.per_query.weight.tolist() == [3, 0, 1]
        assert result.interval().n_queries == 2


DOCUMENTS = list("abcde")
WANTED = {"q1": dict.fromkeys("abc", 1), "q2": {"b": 2}}
RANKS = r"count up 1, 2, \.\.\. in every topic, like ranks"


def ranked(*scores):
    return {f"q{i}": dict(zip(DOCUMENTS, listed, strict=False)) for i, listed in enumerate(scores, 1)}


@pytest.mark.parametrize(
    "run",
    [
        ranked([1, 2, 3, 4, 5]),
        ranked([1, 2, 3], [1, 2, 3]),
        ranked([1, 2, 3, 4], [1, 2]),
        ranked([1, 2, 3, 4, 5], [1]),
        ranked(*[[2, 1, 3, 5, 4]] * 10),  # in any order, but higher grades have lower scores
    ],
)
def test_scores_that_count_up_are_told(run, tmp_path):
    for form in (run, run_file(tmp_path / "run", run)):
        with pytest.warns(UserWarning, match=RANKS) as caught:
            evaluate_run(WANTED, form)
        assert [each.filename for each in caught] == [__file__]
        with pytest.warns(UserWarning, match=RANKS) as caught:
            align(WANTED, form)
        assert [each.filename for each in caught] == [__file__]


def test_ranks_from_0_and_mixed_lines_of_topics_are_told(tmp_path):
    with pytest.warns(UserWarning, match=r"count up 0, 1, \.\.\."):
        evaluate_run(WANTED, ranked([0, 1, 2, 3, 4], [0, 1]))
    lines = [f"q{i} Q0 {d} 9 {s} t\n" for s, d in enumerate(DOCUMENTS, 1) for i in range(9)]
    (tmp_path / "run").write_text("".join(lines), encoding="utf-8")
    with pytest.warns(UserWarning, match=RANKS):
        evaluate_run(WANTED, tmp_path / "run")


@pytest.mark.parametrize(
    "run",
    [
        ranked([1, 2, 3, 4]),  # four scores are three steps
        ranked([1, 2], [1, 2], [1, 2]),
        ranked([5, 4, 3, 2, 1]),
        ranked([1, 2, 3, 4, 5], [2, 1]),
        ranked([1, 2, 3, 4, 6]),
        ranked([2, 3, 4, 5, 6]),
        ranked(*[[2, 1, 3, 5, 4]] * 9),
        ranked(*[[4, 5, 3, 1, 2]] * 10),
        dict([*ranked([2, 3], [1, 2, 3, 4, 5]).items()][::-1]),
        ranked([1, -1.7e308, 1.7e308, math.inf, math.inf]),
        {"q1": DOCUMENTS},
    ],
)
def test_other_scores_are_not(run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_run(WANTED, run)
