"""What runs, files and ``evaluate_topk`` refuse: the type of the error, what its message names, and which line."""

import gzip
import math
import re
from ast import literal_eval
from types import SimpleNamespace

import numpy as np
import pytest

from ndcg_ml import Evaluation, Flavor, align, evaluate_run, evaluate_topk, with_labels
from ndcg_ml._files import opening as lines_module
from ndcg_ml._plain.messages import brief
from ndcg_ml.flavor import as_flavor
from ndcg_ml.readers import DataFileError, read_columns, read_letor

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d4": 1}, "q3": {"d5": 3, "d1": 1}}
RUN = {"q3": {"d9": 7.0, "d5": 3.5}, "q1": {"d3": 0.5, "d1": 0.9, "d7": 0.5}, "q9": {"d1": 1.0}}
ONE, TWICE = {"q1": {"d1": 1, "x": 0}}, {"q1": ["d1", "d1", "x"]}
OF_TOPICS = {"q1": 1.0, "q2": 2.0, "q3": 0.5}
LONG = "x" * 100_000
SIGNALLING = np.array([0x7D01], dtype="u2").view("f2")[0]
MISSED = {"ideal": "recall", "unjudged": "zero", "ties": "docid"}

RUNS = [
    (QRELS, {1: {"d1": 1.0}}, {}, TypeError, r"topic ids must have one type.*str in qrels and int in run"),
    ({1: {"d1": 1}}, {1: {7: 1.0}}, {}, TypeError, r"document ids must .*str in qrels\[1\] and int in run\[1\]"),
    ({"q1": {"d1": 1, 2: 1}}, RUN, {}, TypeError, r"of qrels\['q1'\] must all be str, or all be int; got int, str",
        lambda: evaluate_run({"q1": {"d1": 1, str(2): 1}}, RUN)),
    ({"": {"d1": 1}}, RUN, {}, ValueError, "topic ids of qrels must not be empty; got ''"),
    (QRELS, {"q1": ["d1", ""]}, {}, ValueError, r"document ids of run\['q1'\] must not be empty; got ''"),
    ({1.0: {"d1": 1}}, RUN, {}, TypeError, "topic ids of qrels must all be str, or all be int; got float, such as 1.0",
        lambda: evaluate_run({str(1.0): {"d1": 1}}, {str(1.0): ["d1"]})),
    ({True: {"d1": 1}}, RUN, {}, TypeError, "got bool"),
    (QRELS, {"q1": [b"d1"]}, {}, TypeError, r"got bytes, .* with \.decode\(\)\.$",
        lambda: evaluate_run(QRELS, {"q1": [b"d1".decode()]})),
    (QRELS, {f"Q{i}": ["d1"] for i in range(4)}, {}, ValueError,
        r"share a topic; qrels has 'q1', 'q2', 'q3' and run has 'Q0', 'Q1', 'Q2', \.\.\. \(4 topics\)\."),
    (QRELS, {}, {}, ValueError, "run must hold at least one topic; got an empty dict"),
    ({}, RUN, {}, ValueError, "qrels must hold at least one topic; got an empty dict"),
    (QRELS, {"q1": ["d1", "d2", "d1"]}, {}, ValueError, r"twice in a topic; 'd1' does in run\['q1'\], document 'd1'"),
    *((QRELS, {"q1": {"d1": nan}}, {}, ValueError,
        r"must not be NaN.*got nan in run\['q1'\], document 'd1'") for nan in (math.nan, SIGNALLING)),
    ({"q1": {"d1": math.inf}}, RUN, {}, ValueError, "grades must be finite numbers; got inf"),
    ({"q1": {"d1": "1"}}, RUN, {}, TypeError,
        r"qrels\['q1'\] must hold real numbers; got text, .* convert numbers with float\(\)",
        lambda: evaluate_run({"q1": {"d1": float("1")}}, RUN)),
    (QRELS, {"q1": [("d1", 0.5)]}, {}, TypeError,
        r"got tuple, such as \('d1', 0.5\). For pairs, pass dict\(run\['q1'\]\)",
        lambda: evaluate_run(QRELS, {"q1": dict({"q1": [("d1", 0.5)]}["q1"])})),
    (QRELS, SimpleNamespace(to_dict=RUN.copy), {}, TypeError, r"got SimpleNamespace. Pass run.to_dict\(\)\.",
        lambda: evaluate_run(QRELS, SimpleNamespace(to_dict=RUN.copy).to_dict())),
    ({"q1": {"d1": [1]}}, RUN, {}, TypeError, r"qrels\['q1'\] must hold one number per document; got \[1\]"),
    (QRELS, {"q1": "d1"}, {}, TypeError, r"run\['q1'\] must be {document: score} or \[document, ...\].*got str"),
    *((QRELS, {"q1": odd}, {}, TypeError, rf"run\['q1'\] must be .* got {type(odd).__name__}") for odd in ({"d1", "d2"},
        np.array([["d1"]]))),
    ({"q1": {"d1", 2}}, RUN, {}, TypeError, r"of qrels\['q1'\] must all be str, or all be int; got int, str"),
    (QRELS, [("q1", "d1", 1.0)], {}, TypeError, "run must be {topic: {document: score}}, .* got list"),
    ({"q1": "d1"}, RUN, {}, TypeError, r"qrels\['q1'\] must be \{document: grade\} or the relevant documents; got str"),
    (QRELS, "no such run", {}, FileNotFoundError, "no such run"),
    # arguments are read before files
    ("no such qrels", "no such run", {"queries": "all"}, ValueError,
        "queries must be one of 'qrels', 'run', 'both'; got 'all'"),
    ("no such qrels", "no such run", {"queries": None}, TypeError, "queries must be one of"),
    ("no such qrels", "no such run", {"k": 0}, ValueError, "k must be"),
    ("no such qrels", "no such run", {"flavor": "trec"}, ValueError, "Did you mean 'trec_eval'",
        lambda: evaluate_run(QRELS, RUN, flavor="trec_eval")),
    # labels that the flavor refuses
    (QRELS, {"q3": RUN["q3"]}, {"flavor": "trec_eval[unjudged=raise]", "queries": "run"}, ValueError,
        r"unjudged='raise'; got 1, the first in run\['q3'\], document 'd9'\. Use flavor='trec_eval', or choose"),
    ({"q": {"a": 1, "b": -1}}, {"q": ["a", "b"]}, {"flavor": "sklearn"}, ValueError,
        r"the first in run\['q'\], document 'b'"),
    *(
        (QRELS, run, {"flavor": Flavor(**MISSED, empty=empty), "k": (1, 10)}, ValueError,
            r"rank some document under ideal='recall'.*the first 'q2'")
        for empty in (1.0, "skip") for run in (RUN, {**RUN, "q2": []})
    ),
    ({**ONE, "q2": {"a": 0, "b": 1}}, ONE, {"flavor": Flavor(**MISSED | {"ideal": "given"}, empty=1), "k": (1, 2)},
        ValueError, "the first 'q2'"),
    *((ONE, TWICE, {"flavor": flavor}, ValueError,
        r"twice in a topic; 'd1' does.*duplicates='first'") for flavor in ("trec_eval", "mlflow", "sklearn")),
    # weights of topics
    (QRELS, RUN, {"query_weight": {"q1": 1.0}}, ValueError,
        r"query_weight must have an entry for the id of each query; got none for 'q2' \(2 of 3"),
    (QRELS, RUN, {"query_weight": {**OF_TOPICS, "Q1": 1.0}}, ValueError,
        r"entries for known queries only; got 'Q1' \(1 of 4 entries\)"),
    (QRELS, RUN, {"query_weight": [1.0, 2.0]}, ValueError, r"one weight per query, shape \(3,\); got \(2,\)"),
    (QRELS, RUN, {"query_weight": {**OF_TOPICS, "q3": -1.0}}, ValueError, "query_weight must be finite and >= 0"),
    (QRELS, RUN, {"query_weight": {**OF_TOPICS, "q3": math.nan}}, ValueError, "query_weight must be finite and >= 0"),
    (QRELS, RUN, {"query_weight": dict.fromkeys(OF_TOPICS, 0)}, ValueError, "at least one weight above 0"),
    # slices; rows are made inside, and labels are per topic
    (QRELS, RUN, {"by": ["de"] * int(align(QRELS, RUN).group.sum())}, ValueError,
        r"by\['by'\] must have one label per query, 3, .*; got 8"),
    (QRELS, RUN, {"by": {"language": {"q1": "de", "q2": "fr"}}}, ValueError, "'q3'"),
    (QRELS, RUN, {"by": {"language": dict.fromkeys(QRELS, "de")}, "queries": "run"}, ValueError, "'q9'"),
    # documents to leave out
    (QRELS, RUN, {"exclude": "same"}, ValueError,
        r"exclude must be 'identical' or \{topic: \[document, ...\]\}; got 'same'"),
    (QRELS, RUN, {"exclude": ["a"]}, TypeError, "exclude must be 'identical' or .*got list"),
    *((QRELS, RUN, {"exclude": {"q1": odd}}, TypeError,
        rf"exclude\['q1'\] must be a list of documents; got {odd!r}") for odd in ("b", b"b", 3)),
    (QRELS, RUN, {"exclude": {"q1": [3]}}, TypeError, r"document ids must have one type .*int in exclude\['q1'\]"),
    (QRELS, RUN, {"exclude": {3: ["a"]}}, TypeError, "topic ids must have one type .*int in exclude"),
    ({7: {"8": 1}}, {7: ["7", "8"]}, {"exclude": "identical"}, TypeError, "one type to be identical; got str and int"),
    # a message shows at most part of a long id
    ({LONG: {"d": 1}}, {"q": {"d": 1.0}}, {}, ValueError, "must share a topic"),
    ({LONG: {"d": math.inf}}, {"q": {"d": 1.0}}, {}, ValueError, "grades must be finite"),
    ({LONG: {"d": [1, 2]}}, {"q": {"d": 1.0}}, {}, TypeError, "one number per document"),
    ({"q": {LONG: math.inf}}, {"q": {"d": 1.0}}, {}, ValueError, "grades must be finite"),
    ({"q": {"d": 1}}, {"q": [LONG, "d", LONG]}, {}, ValueError, "twice"),
    ({"q": {"d": 1}}, {"q": [LONG.encode(), "d"]}, {}, TypeError, "bytes"),
    ({"q": {"d": 1}}, {"q": [LONG + "\ud800", "d"]}, {}, ValueError, "UTF-8"),
    ({"q": {"d": 1}}, {LONG: 5, "q": ["d"]}, {}, TypeError, "run"),
    ({LONG: {"d": -1, "e": 1}}, {LONG: ["e"]}, {"flavor": "sklearn"}, ValueError, "negative"),
    ({"q": {"d": 1}, LONG: {"d": 1}}, {"q": ["d"]}, {"flavor": "trec_eval[ideal=recall,empty=1]"}, ValueError,
        "rank some document"),
    ({"q": {"d": 1}}, {"q": ["d"]}, {"queries": LONG}, ValueError, "queries must be"),
    ({10**5000: {"d": 1}}, {1: {"d": 1.0}}, {}, ValueError, "digits"),
    ({1: {10**5000: 1}}, {1: [2]}, {}, ValueError, "digits"),
]  # fmt: skip


def follow(text, options, call, default="trec_eval"):
    """Call with each switch that the text says to choose."""
    choices = re.findall(r"(\w+)=((?:'\w+'|\d)(?:(?:, | or )'\w+')*)", text.partition("hoose ")[2])
    for switch in ({name: literal_eval(each)} for name, values in choices for each in re.split(", | or ", values)):
        flavor = as_flavor(options.get("flavor", default))
        call(**(switch if "queries" in switch else {"flavor": flavor.replace(**switch)}))


@pytest.mark.parametrize("case", RUNS)
@pytest.mark.filterwarnings("ignore::UserWarning")  # the advised calls may warn
def test_a_run_is_refused(case):
    qrels, run, options, error, words, *advised = case
    with pytest.raises(error, match=words) as caught:
        evaluate_run(qrels, run, **options)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)
    ranked = {topic: run[topic] for topic in run if run[topic]} if "remove such topics" in str(caught.value) else run
    follow(str(caught.value), options, lambda **new: evaluate_run(qrels, ranked, **options | new))
    assert all(call() is not None for call in advised)


@pytest.mark.parametrize("missing", [None, math.nan, np.datetime64("NaT", "s")], ids=str)
def test_a_missing_id_is_refused_as_such(missing):
    for qrels, run, source in (
        ({"q1": {"d1": 1}, missing: {"d1": 1}}, RUN, "topic ids of qrels"),
        ({"q1": {"d1": 1, missing: 1}}, RUN, r"document ids of qrels\['q1'\]"),
        (QRELS, {"q1": ["d1", missing, None]}, r"document ids of run\['q1'\]"),
        (QRELS, {1: {"d1": 1.0}, missing: {"d1": 1.0}}, "topic ids of run"),
    ):
        with pytest.raises(ValueError, match=rf"{source} must not be missing; got {re.escape(brief(missing))}\. Leave"):
            evaluate_run(qrels, run)


@pytest.mark.parametrize(
    ("odd", "words"), [("", "must not be empty"), ("\udce9", "must be strings that UTF-8 can encode; got .*surrogate")]
)
def test_ids_that_no_file_can_hold_are_refused(odd, words):
    for kind, source, other in (
        ("topic", {odd: ["d1"]}, {odd: {"d1": 1}}),
        ("document", {"q1": ["d1", odd]}, {"q1": {odd: 1, "d1": 2}}),
    ):
        with pytest.raises(ValueError, match=f"{kind} ids of run.* {words}"):
            evaluate_run(ONE, source)
        with pytest.raises(ValueError, match=f"{kind} ids of qrels.* {words}"):
            evaluate_run(other, {"q1": ["d1"]})


@pytest.mark.parametrize(
    ("qrels", "run", "options", "error", "words"),
    [
        ("q 0 a 1\nq 0 b -1\n", {"q": ["a"]}, {"flavor": "sklearn"}, ValueError,
            r"negative='raise'; got 1, the first in .*qrels, line 2"),
        ("1 0 5 1\n", {1: {5: 1.0}}, {}, TypeError, r"str in qrels \(.*qrels\) and int in run.*convert one side"),
        ({"q1": {1: 1}}, "q1 Q0 1 1 2.0 tag\n", {}, TypeError,
            r"document ids must have one type .* got int in qrels\['q1'\] and str in run"),
        ({1: {"a": 1}}, "1 Q0 a 1 2.0 tag\n", {}, TypeError,
            "topic ids must have one type .* got int in qrels and str in run.*7 and '7' are different ids"),
        ("\nq 0 a 1\nq 0 b 1\nq 0 a 1\n", {"q": ["a"]}, {"flavor": "llama_index"}, ValueError,
            r"'a' does in .*qrels, line 2 and .*qrels, line 4, with the grades 1 and 1\. Remove the duplicates\.$"),
        ("q 0 a 1\nq 1 a 0\n", {"q": ["a"]}, {}, ValueError, "line 2, with the grades 1 and 0 of different subtopics"),
        ({"q": {"a": 1}}, "\nq Q0 b 1 3 t\n# one\n# two\n\nq Q0 a 1 2 t\n\nq Q0 a 1 1 t\n", {}, ValueError,
            r"'a' does in .*run, line 6 and .*run, line 8\. Remove"),
        ({"q1": {"d1": 1}}, '{"qid": "q1", "docno": "d1", "score": 1}\n' * 2, {}, ValueError,
            "'d1' does in .*run, line 1 and .*run, line 2"),
        ({"q1": {"d1": 1}}, '{"q1": ["d1", "d1"]}', {}, ValueError, "'d1' does in .*run, topic 1. Remove"),
        ({"q1": {"d1": 1}}, "qid,docno,score\nq1,d1,1\nq1,d2,2\nq1,d1,3\n", {}, ValueError,
            "'d1' does in .*run, line 2 and .*run, line 4"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("block", [1 << 20, 5])
def test_a_file_is_refused_with_its_lines(tmp_path, monkeypatch, qrels, run, options, error, words, block):
    monkeypatch.setattr(lines_module, "_BLOCK", block)
    sides = {"qrels": qrels, "run": run}
    for name, content in sides.items():
        if isinstance(content, str):
            (tmp_path / name).write_text(content)
            sides[name] = tmp_path / name
    with pytest.raises(error, match=words) as caught:
        evaluate_run(**sides, **options)
    follow(str(caught.value), options, lambda **new: evaluate_run(**sides, **options | new))


def test_align_advises_to_keep_repeats():
    with pytest.raises(ValueError, match=r"a document must not appear twice.*or pass duplicates=.keep.\."):
        align(ONE, TWICE)
    assert align(ONE, TWICE, duplicates="keep").group.tolist() == [3]
    with pytest.raises(ValueError, match="duplicates must be one of 'raise', 'keep'"):
        align(ONE, TWICE, duplicates="first")


# -- items ------------------------------------------------------------------------------------------------------------

HELD = ([0], [1], [1])
RECALL = Flavor(ideal="recall", empty=1, unjudged="zero")
TOPK = [
    ([1, 2], HELD, {}, ValueError, r"one row of item numbers per user.*got shape \(2,\).*\[ids\]",
        lambda: evaluate_topk([[1, 2]], HELD)),
    ([[0.5, 1.0]], HELD, {}, TypeError, r"retrieved_ids must hold integers.*got dtype float64",
        lambda: evaluate_topk(np.argsort(-np.array([[0.5, 1.0]]), axis=1)[:, :2], HELD)),
    ([[1.0, math.nan]], HELD, {}, TypeError, r"pass numpy\.nan_to_num\(ids, nan=-1\)\.astype\(int\)",
        lambda: evaluate_topk(np.nan_to_num([[1.0, math.nan]], nan=-1).astype(int), HELD)),
    ([[1, 2]], ([0], [1]), {}, TypeError, r"got tuple\. Add grades: \(users, items, numpy\.ones\(len\(items\)\)\)",
        lambda: evaluate_topk([[1, 2]], ([0], [1], np.ones(1)))),
    ([["a", "b"]], HELD, {}, TypeError, r"retrieved_ids must hold integers.*evaluate_run",
        lambda: evaluate_run({"0": {"a": 1}}, {"0": ["a", "b"]})),
    ([[1, -2]], HELD, {}, ValueError, "item numbers, or -1 for none; got -2"),
    ([[1], 3], HELD, {}, ValueError, "one list of items per user; row 1 is 3"),
    ([[1], [[2, 3], [4]]], HELD, {}, ValueError, "^retrieved_ids must be a one- or two-dimensional array"),
    ([[1], [2, "a"]], HELD, {}, TypeError, "retrieved_ids must hold integers"),
    (np.zeros((0, 3), int), HELD, {}, ValueError, r"at least one user; got shape \(0, 3\)"),
    ([[1, 2**40]], HELD, {}, ValueError, rf"below 2\^40; got {2**40}\.", lambda: evaluate_topk([[1, 2**40 - 1]], HELD)),
    ([[1]], ([0], [2**40], [1]), {}, ValueError, rf"below 2\^40; got {2**40}\."),
    ([[1]], ([0, 0], np.array([1, 2**64 - 1], dtype=np.uint64), [1, 1]), {}, ValueError,
        rf"below 2\^40; got {2**64 - 1}\."),
    (np.split(np.array([1, 2**64 - 1, 2], dtype=np.uint64), [2]), HELD, {}, ValueError,
        rf"below 2\^40; got {2**64 - 1}\."),
    ([[1, 2], [1, 1]], HELD, {}, ValueError, "user 1 has item 1 twice.*duplicates='first' or 'count'"),
    ([[1, 2]], ([0, 1], [1, 1], [1, 1]), {}, ValueError, "held_out users must be row numbers.*from 0 to 0; got 1"),
    ([[1, 2]], ([-1, 0], [1, 1], [1, 1]), {}, ValueError, "held_out users must be row numbers.*got -1"),
    ([[1, 2]], ([0], [-1], [1]), {}, ValueError, "held_out items must be numbers >= 0; got -1"),
    ([[1, 2]], ([0.0], [1], [1]), {}, TypeError, "held_out users must hold integers.*float64. Use evaluate_run"),
    ([[1, 2]], ([0], [1, 2], [1]), {}, ValueError, r"three arrays of equal length.*\(1,\), \(2,\), \(1,\)"),
    ([[1], [2]], ([0, 1, 1], [1, 2, 2], [1, 1, 2]), {}, ValueError, "user 1 has item 2 twice"),
    ([[1, 2]], ([0, 0], [1, 2], [1, np.nan]), {}, ValueError, "grades of held_out must be finite; got nan"),
    ([[1, 2]], {0: {1: 1}}, {}, TypeError, r"a list of relevant items for each user; got \{1: 1\}",
        lambda: evaluate_topk([[1, 2]], HELD)),
    ([[1, 2]], np.eye(3), {}, TypeError, "got ndarray.*csr_array",
        lambda: evaluate_topk([[1], [2], [0]], pytest.importorskip("scipy.sparse").csr_array(np.eye(3)))),
    ([[2, 0], [1, 3]], {2: [1]}, {}, ValueError, "keys of held_out must be rows of retrieved_ids; got 2"),
    ([[2, 0], [1, 3]], {0: [1]}, {"qid": ["t", "u"]}, ValueError, "keys of held_out must be ids in qid; got 0"),
    ([[2, 0], [1, 3]], [[0], "a"], {}, TypeError, "a list of relevant items for each user; got 'a'"),
    ([[0], [1]], [[0, 1], [4, 1], [1, 1]], {}, ValueError, "one list per row of retrieved_ids, 2; got 3.*as a tuple",
        lambda: evaluate_topk([[0], [1]], ([0, 1], [4, 1], [1, 1]))),
    ([[0], [1], [2]], [[0], [1], [2]], {}, ValueError, "must not be a list of three for three users",
        lambda: evaluate_topk([[0], [1], [2]], dict(enumerate([[0], [1], [2]])))),
    ([[1, -1], [2, 3]], HELD, {"flavor": Flavor()}, ValueError,
        r"must be held out under unjudged='raise'; got item 2 of user 1\. Use flavor='ndcg\[unjudged=zero\]', or",
        lambda: evaluate_topk([[1, -1], [2, 3]], HELD, flavor="ndcg[unjudged=zero]")),
    ([[1]], ([0, 0], [1, 2], [1, -1]), {"flavor": Flavor(unjudged="zero")}, ValueError,
        "grades of held_out must be >= 0 under negative='raise'; got -1"),
    ([[1]], HELD, {"qid": ["a", "b"]}, ValueError, "qid must have one id per query, 1; got 2"),
    ([[1], [2]], {"a": [1]}, {"qid": ["a", "a"]}, ValueError, "qid must have each query once; got 'a'"),
    ([[1], [-1]], [[1], [1]], {"flavor": RECALL}, ValueError,
        r"would score 1, the first 1\..* or leave out the rows of users"),
    ([[2], [1]], HELD, {"query_weight": {0: 1, 1: 1, "x": 1}}, ValueError, "entries for known queries only; got 'x'"),
    ([[2], [1]], HELD, {"query_weight": np.ones(4)}, ValueError, r"one weight per query, shape \(2,\); got \(4,\)"),
]  # fmt: skip


@pytest.mark.parametrize("case", TOPK)
@pytest.mark.filterwarnings("ignore::UserWarning")  # the advised calls may warn
def test_items_are_refused(case):
    retrieved, held, options, error, words, *advised = case
    with pytest.raises(error, match=words) as caught:
        evaluate_topk(retrieved, held, **{"flavor": "recbole", **options})
    follow(str(caught.value), options, lambda **new: evaluate_topk(retrieved, held, **options | new), "recbole")
    assert all(call() is not None for call in advised)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"shape": (3, 4)}, r"one row per row of retrieved_ids, 2; got shape \(3, 4\)"),
        ({"shape": (2, 3)}, "columns of held_out, from 0 to 2; got 3"),
        ({"indices": np.array([-1, 3, 0])}, "held_out items must be numbers >= 0; got -1"),
        ({"indices": np.array([1, 4, 0])}, "held_out items must be columns, from 0 to 3; got 4"),
        ({"indices": np.array([1, 1, 0])}, r"user 0 has item 1 twice.*sum_duplicates\(\) of a matrix"),
        ({"format": "csc"}, r"CSR format; got csc. Call its .tocsr\(\)"),
        ({}, None),
        ({"indices": np.array([1, 3, 3])}, None),  # items 1 and 3 belong to two users
    ],
)
def test_a_matrix_is_refused_for_what_is_wrong_with_it(other, words):
    matrix = {"format": "csr", "shape": (2, 4), "indptr": np.array([0, 2, 3]), "data": np.ones(3)}
    matrix = SimpleNamespace(**{**matrix, "indices": np.array([1, 3, 0]), **other})
    if words is None:
        evaluate_topk([[1, 2], [0, 3]], matrix, flavor="recbole")
        return
    with pytest.raises((ValueError, TypeError), match=words):
        evaluate_topk([[1, 2], [0, 3]], matrix, flavor="recbole")


# -- what readers of files refuse: the file, its line, and what is wrong with it, on one line of text


LINE = b"301 Q0 doc1 1 2.5 tag\n"
WHOLE = b"q1 Q0 a 1 0.9 bm25\nq2 Q0 b 1 0.9 bm25\nq2 Q0 c 2 0.1 bm25\n"
BOM = b"\xef\xbb\xbf"
GOOD = '{"qid": "q1", "docno": "d0", "score": 1}\n'
NONE = '{"query_id": "q1", "results": []}\n'
LENGTHY = "docno" + "x" * 140_000
READ = {
    "run": lambda path: evaluate_run({"q1": {"d1": 1}}, path),
    "qrels": lambda path: evaluate_run(path, {"q1": {"d1": 1}}),
    "rows": read_columns,
    "saved": Evaluation.load,
    "filled": lambda path: with_labels({"q1": {"d1": 1}}, [path]),
}


def refused(folder, name, content, words):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(
        ValueError if "twice" in words else DataFileError, match=f"{name}.*{words}|{words}.*{name}"
    ) as caught:
        READ[name](folder / name)
    message = str(caught.value).replace(str(folder), "")
    assert len(message) < 600
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        ("run", b"301 Q0 d 1 2.5", r"a run must have 6 or more columns \(topic Q0 document rank score tag\); got 5"),
        ("run", b"301", "got 1"),
        ("run", b"301 Q0 d 1 high tag", "column 5, the score, must be a number; got 'high'"),
        ("run", b"301 Q0 d 1 nan tag", "must be a number, and not NaN; got nan"),
        ("run", b"301 Q0 d 1 1_000 tag", "got '1_000'"),
        ("run", b"301 Q0 d 1 1:0 tag", "got '1:0'"),
        ("run", b"301 Q0 my doc 1 2.5 tag", "got 7, and 'doc' where the rank should be. An id cannot contain a blank"),
        ("run", b"301 Q0 56 11210 1 2.5 tag", "got 7, and '2.5', a number, where the tag should begin. An id cannot"),
        ("run", b"301 Q0 56 11210 8 1 2.5 tag", "got 8, and '1', a number, where the tag should begin"),
        ("run", b"301 Q0 d 1 " + b"x" * 500 + b" tag", r"got 'x{76}\.\.\.x{19}'\.$"),
        ("run", b"301 Q0 d 1 \xff tag", r"got '\\udcff'"),
        ("qrels", b"301 0 d", r"a line of qrels must have 4 columns \(topic iteration document grade\); got 3"),
        ("qrels", b"301 0 d 1 2", "must have 4 columns .* got 5"),
        ("qrels", b"301 Q0 d 1 2.5 tag", "must have 4 columns .* got 6"),
        ("qrels", b"301 0 d yes", "column 4, the grade, must be a number; got 'yes'. Map words to numbers"),
        ("qrels", b"301 0 d -inf", "must be finite, or empty for an unjudged document; got -inf"),
        ("qrels", b"301 0 d 1-2", "must be a number; got '1-2'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [0, 3])
def test_a_line_of_trec_is_refused_with_its_number(tmp_path, name, bad, words, before):
    good = LINE if name == "run" else b"301 0 d 1\n"
    content = good * before + bad + b"\n" + good
    refused(tmp_path, name, content, f"line {before + 1}: .*{words}")
    refused(tmp_path, name, (good if before else b"\n") + b"# comment\n" + content, f"line {before + 3}: .*{words}")


FILES = [
    # TREC
    ("run", WHOLE.replace(b"\n", b"", 1), "line 1: .*Two lines may have been joined by concatenating"),
    ("run", WHOLE.replace(b"\n", b" ", 1).replace(b"Q0 b", b"0 b"),
        "line 1: .*Two lines may have been joined by concatenating"),
    ("run", WHOLE.replace(b"\n", b"", 1).replace(b"Q0 b", b"0 b"),
        "line 1: .*Two lines may have been joined by concatenating"),
    ("run", WHOLE.replace(b"\n", b" my tag", 1).replace(b"Q0 a", b"0 a"),
        "line 1: .*Two lines may have been joined by concatenating"),
    ("run", WHOLE.replace(b"\n", b" my tag", 1).replace(b"Q0", b"0"),
        "line 1: .*Two lines may have been joined by concatenating"),
    ("run", BOM + WHOLE.replace(b"\n", BOM, 1), "line 1: .*Two lines may have been joined by concatenating"),
    ("run", WHOLE + WHOLE[:-1] + WHOLE, "line 6: .*Two lines may have been joined by concatenating"),
    ("run", b"301 Q0 a 1 0.9 bm25302 Q0 b 1 0.9 bm25 303 Q0 c 1 1 t\n",
        "line 1: .*Two lines may have been joined by concatenating"),
    ("qrels", b"q1 0 a 1\nq1 0 b 1q2 0 c 1\n", "line 2: .*Two lines may have been joined by concatenating"),
    ("qrels", b"301 0 b 1302 0 c 1\n", "line 1: .*Two lines may have been joined by concatenating"),
    ("run", b"", "must hold at least one document; got none"),
    ("qrels", "{}", "must hold at least one document; got none"),
    ("qrels", "[]", "an array must hold objects; got none"),
    ("run", b"\n\n# nothing\n", "must hold at least one document"),
    ("run", LINE.decode().encode("utf-16"), "got a NUL byte. Save it as UTF-8"),
    ("run", gzip.compress(LINE * 100, mtime=0)[:-12], "is damaged and cannot be unpacked"),
    *(("run", gzip.compress(LINE, mtime=0)[:at] + b"\xff" * 20, "is damaged and cannot be unpacked") for at in (10,
        -8)),
    ("run", b"301 Q0 d 1 2.5\ntag 302 Q0 d 1 2.5 tag\n", "line 1: .* got 5"),  # the words of two lines
    ("qrels", b"q 0 a 1\nq 0 b 0 5\n0 c 2\nq 0 d 1\n", "line 2: .* got 5"),
    ("run", b"q1 Q0 d1 1 2.0 my tag\nq1 Q0 d 2 2 1.5 tag\nq1 Q0 d3 3 1.0 tag\n",
        "line 2: .* An id cannot contain a blank"),
    ("run", b"301 Q0 d 1\x1c2.5 tag\n", "line 1: a line of a run must have 6 or more columns"),
    *(("run", content, "must hold at least one document") for content in (BOM, b"# a comment\n",
        b"# one\n#two\n   \n")),
    # predictions of sentence-transformers
    ("run", NONE + '{"query_id": "q2", "docs": {}}', "line 2 .*must have the key results, like the first object"),
    ("run", NONE + '{"query_id": "q2", "results": [["d1"]]}', "line 2 .'q2'.: results must be an id: .* got an array"),
    ("run", NONE + '{"query_id": "q2", "results": [{"corpus_id": "d1"}, "d2"]}', "must be an id: .* got an object"),
    ("run", NONE + '{"query_id": "q2", "results": [{"x": "d1"}]}',
        "line 2 .'q2'.: a document must name its documents; got 'x'"),
    ("run", NONE + '{"query_id": "q2", "results": [{"corpus_id": "d1", "score": NaN}]}',
        "line 2 .'q2'.: score must be a number, and not NaN"),
    ("run", NONE + '{"query_id": null, "results": []}', "query_id must be an id"),
    ("run", NONE + '{"query_id": "q1", "results": []}', "line 2 .'q1'.: each topic must appear once"),
    ("run", NONE + '{"query_id": "q2", "results": [{"corpus_id": 1, "score": 2}, {"corpus_id": "1", "score": 3}]}',
        "twice"),
    # lines of JSON, CSV and BEIR's TSV
    ("run", GOOD + '{"qid": "q1", "docno": "d1"}\n', ", line 2: .*must have the key score, like the first object"),
    ("run", GOOD + '{"docno": "d1", "score": 1}\n', ", line 2: .*must have the key qid, like the first object"),
    ("run", GOOD + "\n[1]\n", ", line 3: .*a line must be a JSON object; got an array"),
    ("run", GOOD + "7\n", ", line 2: .*a line must be a JSON object; got 7"),
    ("run", GOOD + GOOD[:-1] + GOOD, ", line 2: .*not JSON: Extra data in column 41, where the value should end"),
    ("run", GOOD + GOOD[:20] + "\n", ", line 2: .*not JSON: "),
    ("run", GOOD + '{"qid": "q1", "qid": "q2", "docno": "d1", "score": 1}\n',
        ", line 2: .*each key once; got 'qid' twice"),
    ("run", GOOD + '{"qid": "q1", "docno": "d1", "score": "1"}\n', ", line 2: .*score must be a number; got '1'"),
    ("run", GOOD + '{"qid": "q1", "docno": "d1", "score": null}\n', ", line 2: .*score must be a number; got null"),
    ("run", GOOD + '{"qid": "q1", "docno": "d1", "score": NaN}\n',
        ", line 2: .*score must be a number, and not NaN; got nan"),
    ("run", GOOD + '{"qid": 1.0, "docno": "d1", "score": 1}\n', ", line 2: .*qid must be an id: .* got 1.0"),
    ("run", GOOD + '{"qid": "", "docno": "d1", "score": 1}\n', ", line 2: .*qid must be an id: .* got ''"),
    ("run", GOOD + '{"qid": "\\ud800", "docno": "d1", "score": 1}\n',
        r", line 2: .*qid must be an id: .* in UTF-8 and without a line end; got '\\ud800'"),
    ("run", GOOD + "1" * 5000 + "\n", ", line 2: .*not JSON"),
    ("run", GOOD + "[" * 100_000 + "\n", ", line 2: .*not JSON"),
    ("run", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\n",
        ", line 3: .*must have 3 fields, like the header; got 2"),
    ("run", "qid,docno,score\nq1,d1,\n", ", line 2: .*score must be a number; got ''"),
    ("run", "qid,docno,score\nq1,,1\n", ", line 2: .*docno must be an id: .* got ''"),
    ("qrels", '{"qid": "q1", "docno": "d1", "label": Infinity}\n', "line 1: label must be finite, or empty .* got inf"),
    ("qrels", '{"qid": "q1", "docno": "d1", "label": 1, "grade": 2}\n',
        "must name its grades once; got 'label', 'grade'"),
    ("qrels", '{"q1": {"d1": 1e400}}', "topic 1 .'q1'.: label must be finite, or empty .* got inf"),
    ("qrels", '{"q1": {"d1": 1' + "0" * 400 + "}}", "topic 1 .'q1'.: label: an integer must be at most 2"),
    ("run", "qid,corpus-id,score\n", "must hold at least one document; got none"),
    # an object of topics
    ("run", '{"q1": {"d1": 1},\n "q2": {"d1": "x"}}', "topic 2 .'q2'.: score must be a number; got 'x'"),
    ("run", '{"q1": {"d1": null}}', "topic 1 .'q1'.: score must be a number; got null"),
    ("run", '{"q1": {"d1": NaN}}', "topic 1 .'q1'.: score must be a number, and not NaN; got nan"),
    ("run", '{"q1": {"d1": 1},\n "q1": {"d2": 2}}', ": not JSON: an object must have each key once; got 'q1' twice"),
    ("run", '{"q1": {"d1": 1, "d2": 0, "d1": 1}}', ": not JSON: an object must have each key once; got 'd1' twice"),
    ("run", '{"q1": {"d1": 1}\n "q2": {"d2": 2}}', ", line 2: not JSON: Expecting ','"),
    ("run", '{"q1": {"d1": 1},\n}', ", line [12]: not JSON"),
    ("run", '{"q1": {"d1": 1}}\n{"q2": {"d1": 1}}',
        "its first object must name its topics and its documents; got 'q1'"),
    ("run", '{"q1": {"d1": 1},\n "q2": 7}', "its first object must name its topics and its documents; got 'q1', 'q2'"),
    ("run", '{"q1": [1.5]}', "topic 1 .'q1'.: docno must be an id: .* got 1.5"),
    ("run", '{"": ["d"]}', "topic 1: qid must be an id"),
    ("run", '[{"qid": "q1"}]',
        "its first object must name its documents; got 'qid' .topics.. Name yours: columns={'docno': NAME}"),
    ("run", '{"id": "q1", "list": ["d1"]}\n',
        "must name its topics and its documents; got 'id', 'list'. Name yours: columns={'qid': NAME, 'docno': NAME}"),
    ("run", f'{{"q1": {"1" * 5000}}}', ": not JSON: Exceeds the limit"),
    ("run", f'{{"q1": {"[" * 100_000}}}', ": not JSON"),
    ("run", b'\n{"q1": {"d1": 1},\n "q2": {"d\xff1": 1}}\n',
        r"line 3: JSON must be text in UTF-8; got '.{2,5}1\": 1}}'\.$"),
    ("run", b'{"qid": "q1", "docno": "d1", "score": 1}\n\n{"qid": "q1", "docno": "d\xff", "score": 1}\n',
        "line 3: JSON must be text in UTF-8"),
    *(
        ("run", content.replace("{}", end), r".* must be an id: .* without a line end; got '.\\[nr]1'")
        for end in ("\\n", "\\r")
        for content in ('{"q1": {"d{}1": 1}}', '{"q{}1": {"d1": 1}}', '{"q1": ["d{}1"]}',
            '{"qid": "q{}1", "docno": "d1", "score": 1}')
    ),
    # a quote swallows no line
    ("run", 'qid,docno,score\nq1,d1,1\nq1,"d\n2",1\n', "line 3: docno must be an id: .* without a line end"),
    ("run", 'query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\t"d2\t1\nq2\td3\t1\n',
        "line 3: not CSV: .* .in a field in quotes that begins here"),
    ("run", 'query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\t"d2\t1\nq2\td"3\t1\n',
        "line 3: not CSV: .* .in a field in quotes that begins here"),
    ("run", f'qid,docno,score\nq1,"{LENGTHY}",1\n', "line 2: not CSV: field larger"),
    ("run", f"qid,docno,score,{LENGTHY}\n", "line 1: (not CSV: field larger|a line of a run must)"),
    # labels that were filled in
    ("filled", '{"qid": "q", "label": 1}', "must name its documents; got 'qid' .topics., 'label'"),
    ("filled", '{"qid": "q", "docno": "d", "label": "good"}', "label must be a number"),
    ("filled", '{"qid": "q", "docno": "d", "label": -9007199254740993}', r"an integer must be at most 2\^53"),
    ("filled", '{"qid": "q", "docno": "d", "label": 1' + "0" * 400 + "}", r"an integer must be at most 2\^53"),
    ("filled", '{"qid": "q", "docno": 1.5, "label": 1}', "docno must be an id: .* got 1.5"),
    ("filled", '{"qid": "", "docno": "d", "label": 1}', "qid must be an id: .* got ''"),
    ("filled", '{"qid": "q", "docno": "d", "label": 1}\n{"qid": "q", "docno": "d", "label": 1}',
        "'d' is labelled twice"),
    # saved evaluations
    ("saved", "", r"must be a file that Evaluation\.save wrote; .*it is not JSON"),
    ("saved", "7", r"must be a file that Evaluation\.save wrote; .*it has no key"),
    ("saved", "{}", r"must be a file that Evaluation\.save wrote; .*it has no key"),
    ("saved", '{"ndcg_ml_evaluation": true}', r"must be a file that Evaluation\.save wrote; .*its format is True"),
    ("saved", '{"ndcg_ml_evaluation": 2, "ndcg_ml_evaluation": 2}',
        r"must be a file that Evaluation\.save wrote; .*each key once; got 'ndcg_ml_evaluation' twice"),
    ("saved", "[" * 100_000, r"must be a file that Evaluation\.save wrote; .*recursion"),
    ("saved", "1" * 9999, r"must be a file that Evaluation\.save wrote; .*digits"),
    ("saved", gzip.compress(b" " * (1 << 20), mtime=0) * 65, "must have at most 67108864 bytes when unpacked"),
    # tables
    ("rows", '{"qid": 1, "label": 1}\n',
        ("its first object must name its scores; got 'qid' .topics., 'label' .grades.. Name yours: columns={'score': "
            "NAME}")),
    ("rows", '{"qid": 1, "label": 1, "score": 1}\n{"qid": 1, "score": 1}\n',
        "line 2: must have the key label, like the"),
    ("rows", '{"qid": 1, "label": 1, "score": NaN}\n', "line 1: score must be a number, and not NaN"),
    ("rows", '{"qid": 1, "label": Infinity, "score": 1}\n', "line 1: label must be finite, or empty"),
    ("rows", '{"qid": 7, "label": 1, "score": 9007199254740993}\n', r"line 1: score: an integer must be at most 2\^53"),
    ("rows", "qid,label,score\n7,1,9007199254740993\n", r"line 2: score: an integer must be at most 2\^53"),
    ("rows", '{"qid": null, "label": 1, "score": 1}\n', "record 1: qid must be an id"),
    ("rows", '{"qid": 1, "label": 1, "score": 1, "docno": 2}\n{"qid": 1, "label": 1, "score": 1}',
        "line 2: .*key docno"),
    ("rows", '{"qid": {"a": 1}}', "must name its grades and its scores"),
    ("rows", "qid,label\n1,2\n",
        "must name its scores; got 'qid' .topics., 'label' .grades.. Name yours: columns={'score': NAME}"),
    ("rows", "qid,label,Scored\n", r"Name yours: columns={'score': 'Scored'}\.$"),
    ("rows", "qid;label;score\n", "has no rows"),
    ("rows", "", "must name its topics and its grades and its scores; got none"),
    ("rows", "qid,label,score,score\n1,2,3,4\n", "must name its scores once; got 'score', 'score'. Rename the others"),
    ("rows", "qid,label,score\n", "has no rows"),
    ("rows", "qid,label,score\na,1,2\nb,1\n", "line 3: must have 3 fields, like the header; got 2"),
    ("rows", "qid,label,score\na,1,2,3\n", "line 2: must have 3 fields, like the header; got 4"),
    ("rows", "qid,label,score\na,one,2\n", "line 2: label must be a number; got 'one'"),
    ("rows", "qid,label,score\na,1,1_0\n", "line 2: score must be a number; got '1_0'"),
    ("rows", "qid;label;score\na;1;0,5\n",
        "line 2: score must be a number; got '0,5'. Write a decimal point, not a comma"),
    ("rows", "qid,label,score\na,NA,1\n", "line 2: label must be a number; got 'NA'. Leave the cell empty if the doc"),
    ("rows", "qid,label,score\na,1,NA\n", r"line 2: score must be a number; got 'NA'\.$"),
    ("rows", "qid,label,score\na,1,\n", "line 2: score must be a number; got ''"),
    ("rows", "qid,label,score\na,1,1\na,1,nan\n", "line 3: score must be a number, and not NaN; got nan"),
    ("rows", "qid,label,score\na,inf,1\n", "line 2: label must be finite, or empty for an unjudged document; got inf"),
    ("rows", "qid,label,score\n,1,1\n", "line 2: qid must be an id: .* got ''"),
    ("rows", 'qid,label,score\n"a"b,1,1\n', "line 2: not CSV"),
    ("rows", "qid,label,score\n\na,1,1\na,inf,1\n", "line 4: label must be finite"),
    ("rows", f"{LENGTHY[:100_000]},label,score\n", "must name its topics"),
    ("rows", f"qid,label,score\n1,1,{LENGTHY}\n", "line 2"),
    ("rows", f"qid,label,score\n{LENGTHY}\0,1,1\n", "NUL"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "words"), FILES)
def test_a_file_is_refused(tmp_path, name, content, words):
    refused(tmp_path, name, content, words)


@pytest.mark.parametrize(
    ("labels", "scores", "sizes", "words"),
    [
        (b"1 qid:1 1:2\n1 qid:1 1:20 qid:2 1:3\n", b"1\n2\n", None, "labels, line 2: qid: must appear once.*joined"),
        (b"1 qid:1 1:2\n1 qid:10 qid:2 1:3\n", b"1\n2\n", None, "labels, line 2: qid: must appear once"),
        (b"1 qid:1\nhigh qid:1\n", b"1\n2\n", None,
            "labels, line 2: the grade at its start must be a number; got 'high'"),
        (b"-inf qid:1\n", b"1\n", None, "labels, line 1: the grade at its start must be finite"),
        (b"9007199254740993 qid:1\n", b"1\n", None, r"labels, line 1: .* an integer must be at most 2\^53.*got 9007"),
        (b"1 qid:1\n", b"9007199254740993\n", None, r"scores, line 1: .* an integer must be at most 2\^53"),
        (b"1 qid:1 # \xe9\n1 qid:\xe9\n", b"1\n1\n", None, "labels, line 2: an id must be text in UTF-8"),
        (b"1 qid:1\n1 1:2\n", b"1\n2\n", None, "labels, line 2: either all lines or none must have qid:ID"),
        (b"1 1:2\n\n1 qid:1\n", b"1\n2\n", None, "labels, line 3: either all lines or none must have qid:ID"),
        (b"1 qid:1\n1 qid: 7\n", b"1\n", None, "labels, line 2: qid: must be followed by the id"),
        (b"1 qid:1\n1 qid:1\n", b"1\n", None, "scores: must have one score for each of the 2 rows of .*labels; got 1"),
        (b"1 qid:1\n", b"1\n2\n", None, "for each of the 1 rows of .* got 2"),
        (b"1 qid:1\n", b"nan\n", None, "scores, line 1: a line must be a number, and not NaN"),
        (b"1 qid:1\n", b"7 0.5\n", None, "scores, line 1: a line must be a number; got '7 0.5'"),
        (b"# none\n", b"", None, "labels: has no rows"),
        (b"1 1:2\n", b"1\n", None, "labels: must have qid:ID in every line, or a file labels.query"),
        (b"1 1:2\n", b"1\n", b"2\n", "labels.query: sizes must sum to the 1 rows of labels; got 2"),
        (b"1 1:2\n", b"1\n", b"1\n0\n", "labels.query, line 2: a line must be a query size"),
        *((b"1 1:2\n", b"1\n", size, "labels.query, line 1: a line must be a query size") for size in (b"9" * 5000,
            b"1".zfill(19))),
        (f"1 {LENGTHY}\n2 qid:{LENGTHY}".encode(), b"1\n", None, "labels, line 2"),
        (b"1 qid:1\n", LENGTHY.encode(), None, "scores, line 1"),
        (b"1\n", b"1\n", LENGTHY.encode(), "labels.query, line 1"),
    ],
)  # fmt: skip
def test_labels_and_scores_are_refused(tmp_path, labels, scores, sizes, words):
    for name, content in (("labels", labels), ("scores", scores), ("labels.query", sizes)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
    with pytest.raises(DataFileError, match=words) as caught:
        read_letor(tmp_path / "labels", tmp_path / "scores")
    assert len(str(caught.value).replace(str(tmp_path), "")) < 600
