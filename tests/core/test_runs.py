"""TREC runs against qrels: trec_eval's own numbers, topics, forms of input and judged@k."""

from __future__ import annotations

import gzip
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from ndcg_ml import Evaluation, Flavor, ndcg_score
from ndcg_ml._files import read_run
from ndcg_ml.runs import align, evaluate_run

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


# -- the C program's numbers ----------------------------------------------------------------------------------------


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


# -- which topics ---------------------------------------------------------------------------------------------------


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


# -- forms of input -------------------------------------------------------------------------------------------------


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
    assert result.per_query.qid.dtype == np.int64
    assert result.per_query.qid.tolist() == [1]


def test_ids_are_neither_cut_nor_read_as_numbers(tmp_path):
    docs = ["7", "07", "7.0", "7\u00a0", "x" * 300, "x" * 299 + "y", "\U0001f600", "\uf8ff"]
    qrels = {topic: {doc: int(doc == topic) for doc in docs} for topic in docs}
    run = {topic: [topic] for topic in docs}
    for result in (
        evaluate_run(qrels, run),
        evaluate_run(qrels_file(tmp_path / "q", qrels), run),
        evaluate_run({**qrels, "a\0": {"b\0": 1, "b": 0}}, {**run, "a\0": ["b\0"]}),
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
    for run in ({better: 1.0, worse: 1.0}, {worse: 1.0, better: 1.0 + 1e-9}, {worse: 1.0 + 1e-9, better: 1.0}):
        assert evaluate_run({"q": {better: 1, worse: 0}}, {"q": run}, k=1).value == 1.0


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (3, 0, 1, 2), (1, 3, 0, 2)])
def test_ties_are_found_in_any_order_of_the_rows(tmp_path, order):
    rows = [("q", "Q0", "a", 1, 2.0, "t"), ("q", "Q0", "b", 2, 2.0, "t"), ("p", "Q0", "c", 1, 2.0, "t")]
    rows = [*rows, ("p", "Q0", "d", 2, 2.0, "t")]
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
    found = evaluate_run({topic: form(docs) for topic, docs in RELEVANT.items()}, FOUND, k=10)
    assert found.per_query.ndcg.tolist() == evaluate_run(RELEVANT, FOUND, k=10).per_query.ndcg.tolist()


def test_exchanged_arguments_cause_a_warning():
    run = {"q": {"d1": 0.5, "d2": 0.25}}
    with pytest.warns(UserWarning, match=r"as if the two were swapped. Pass grades as qrels and"):
        evaluate_run(run, {"q": {"d1": 1, "d2": 0}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_run({"q": {"d1": 1, "d2": 0}}, run)
        evaluate_run(run, {"q": ["d1", "d2"]})
        evaluate_run(run, {"q": {"d1": 1.5, "d2": 1}})


# -- unjudged documents, judged@k -----------------------------------------------------------------------------------


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


def test_judged_at_k_compares_scores_as_the_flavor_does():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1 + 1e-9, "b": 1.0}}
    assert evaluate_run(qrels, run, k=1).judged == 0.0
    assert evaluate_run(qrels, run, k=1, flavor="trec_eval[score_dtype=float64]").judged == 1.0


def test_negative_grades_are_judged():
    assert evaluate_run({"q": {"a": -2, "b": 1}}, {"q": ["a", "c", "b"]}, k=2).judged == 0.5


@pytest.mark.parametrize(
    ("ties", "judged"), [("docid", 0.0), ("first", 1.0), ("last", 0.0), ("average", 0.5), ("best", 0.5), ("worst", 0.5)]
)
def test_judged_at_k_follows_the_ties_of_the_flavor(ties, judged):
    result = evaluate_run(
        {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, flavor=Flavor.preset("trec_eval", ties=ties), k=1
    )
    assert result.judged == judged


# -- the result -----------------------------------------------------------------------------------------------------


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
    assert copy.per_query.keys() == pair.per_query.keys()


# -- runs without a judged document -----------------------------------------------------------------------------------


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


# -- dicts are read all at once where they hold what they usually hold -------------------------------------------------

USUAL: list[tuple[Any, Any]] = [
    ({"a": {"x": 1, "y": 0}, "b": {"x": 2}}, {"a": {"y": 0.5, "z": 0.25}, "b": {}}),
    ({"a": {"x": 1.5}, "b": {}}, {"a": ["y", "x"], "b": []}),
    ({1: {10: 1, 9: 2}, 2: {9: 1}}, {2: {9: 1, 10: 0.5}, 1: {9: 2**53, 10: -(2**53)}}),
    ({"é\0": {"\0": 1, "\0\0\0": 2}}, {"é\0": {"\0\0\0": 1.0, "\0\0": 0.5}}),
]
UNUSUAL: list[tuple[Any, Any]] = [
    ({"a": {"x": 1}}, {"a": {"x": True}}),
    ({"a": {"x": 1}}, {"a": {"x": 2**53 + 1, "y": 2**53}}),
    ({"a": {"x": 1}}, {"a": {"x": np.float32(0.1)}}),
    ({"a": {"x": 1}, "b": {"x": "1"}}, {"a": {"x": 1.0}}),
    ({"a": {"x": 1}, "b": {"x": [1]}}, {"a": {"x": 1.0}}),
    ({"a": {"x": 1}, "b": ["x"]}, {"a": {"x": 1.0}}),
    ({"a": {"x": 1}, "b": {1: 1}}, {"a": {"x": 1.0}}),
    ({"a": {"x": 1}, "b": {"\ud800": 1}}, {"a": {"x": 1.0}}),
    ({"a": {"x": 1}}, {"a": {}, "b": {7: 1.0}}),
    ({"a": {"x": 1}}, {"a": ["x"], "b": ("y",)}),
    ({"a": {"x": 1}}, {"a": {"x": math.nan}}),
    ({"a": {"x": 1}}, {"a": ["x", None]}),
    ({"a": {"x": 1}}, {"a": ["x", "x"]}),
    ({"a": {"x": 10**400}}, {"a": ["x"]}),
]
READ = [*USUAL, UNUSUAL[0], UNUSUAL[2], UNUSUAL[5], UNUSUAL[9]]


@pytest.mark.parametrize(("qrels", "run"), USUAL + UNUSUAL)
def test_dicts_read_at_once_are_those_read_topic_by_topic(qrels: Any, run: Any, monkeypatch: Any) -> None:
    def outcome() -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                data = align(qrels, run)
            except (TypeError, ValueError) as error:
                return f"{type(error).__name__}: {error}"
        return repr([getattr(data, name) for name in ("qid", "group", "y_true", "y_score", "retrieved", "doc_id")])

    at_once = outcome()
    assert ("Error" in at_once) == ((qrels, run) not in READ)
    monkeypatch.setattr(read_run, "_read_all_entries", lambda *given: None)
    assert outcome() == at_once


@pytest.mark.parametrize(
    ("topics", "dtype"),
    [([1, 126], np.int64), ([0, 2**63 - 1], np.int64), ([0, 2**63], object), ([-(2**63), 0], np.int64),
     (["1", "a"], "<U1"), (["1\0", "a"], object)],
)  # fmt: skip
def test_topics_have_a_type_of_numpy_where_it_keeps_them(topics, dtype):
    found = evaluate_run({topic: {"d": 1} for topic in topics}, {topic: ["d"] for topic in topics}).per_query.qid
    assert found.dtype == dtype
    assert found.tolist() == topics
