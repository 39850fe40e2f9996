"""What ``evaluate_run``, ``align`` and ``evaluate_topk`` refuse: the type of the error, and what its message names."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from ndcg_ml import Flavor, align, evaluate_run, evaluate_topk
from ndcg_ml._core.one_line import brief

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d4": 1}, "q3": {"d5": 3, "d1": 1}}
RUN = {"q3": {"d9": 7.0, "d5": 3.5}, "q1": {"d3": 0.5, "d1": 0.9, "d7": 0.5}, "q9": {"d1": 1.0}}
ONE, TWICE = {"q1": {"d1": 1}}, {"q1": ["d1", "d1", "x"]}
OF_TOPICS = {"q1": 1.0, "q2": 2.0, "q3": 0.5}
LONG = "x" * 100_000
MISSED = {"ideal": "recall", "unjudged": "zero", "ties": "docid"}

RUNS = [
    (QRELS, {1: {"d1": 1.0}}, {}, TypeError, r"topic ids must have one type.*str in qrels and int in run"),
    ({1: {"d1": 1}}, {1: {7: 1.0}}, {}, TypeError, r"document ids must .*str in qrels\[1\] and int in run\[1\]"),
    ({"q1": {"d1": 1, 2: 1}}, RUN, {}, TypeError, r"of qrels\['q1'\] must all be str, or all be int; got int, str"),
    ({"": {"d1": 1}}, RUN, {}, ValueError, "topic ids of qrels must not be empty; got ''"),
    (QRELS, {"q1": ["d1", ""]}, {}, ValueError, r"document ids of run\['q1'\] must not be empty; got ''"),
    ({1.0: {"d1": 1}}, RUN, {}, TypeError, "topic ids of qrels must all be str, or all be int; got float, such as 1.0"),
    ({True: {"d1": 1}}, RUN, {}, TypeError, "got bool"),
    (QRELS, {"q1": [b"d1"]}, {}, TypeError, "got bytes"),
    (QRELS, {"Q1": {"d1": 1.0}}, {}, ValueError, r"must share a topic; qrels has 'q1', 'q2', 'q3' and run has 'Q1'"),
    (QRELS, {}, {}, ValueError, "run must hold at least one topic; got an empty dict"),
    ({}, RUN, {}, ValueError, "qrels must hold at least one topic; got an empty dict"),
    (QRELS, {"q1": ["d1", "d2", "d1"]}, {}, ValueError, r"twice in a topic; 'd1' does in run\['q1'\], document 'd1'"),
    (QRELS, {"q1": {"d1": math.nan}}, {}, ValueError, r"must not be NaN.*got nan in run\['q1'\], document 'd1'"),
    ({"q1": {"d1": math.nan}}, RUN, {}, ValueError, r"grades must be finite.*in qrels\['q1'\], document 'd1'"),
    ({"q1": {"d1": math.inf}}, RUN, {}, ValueError, "grades must be finite numbers; got inf"),
    ({"q1": {"d1": "1"}}, RUN, {}, TypeError, r"qrels\['q1'\] must hold real numbers; got text, .* convert it with float\(\)"),
    (QRELS, {"q1": [("d1", 0.5)]}, {}, TypeError, r"got tuple, such as \('d1', 0.5\). For pairs, pass dict\(run\['q1'\]\)"),
    (QRELS, SimpleNamespace(to_dict=dict), {}, TypeError, r"got SimpleNamespace. Pass run.to_dict\(\)\."),
    ({"q1": {"d1": None}}, RUN, {}, ValueError, r"grades must be finite.*got nan in qrels\['q1'\], document 'd1'"),
    ({"q1": {"d1": [1]}}, RUN, {}, TypeError, r"qrels\['q1'\] must hold one number per document; got \[1\]"),
    (QRELS, {"q1": "d1"}, {}, TypeError, r"run\['q1'\] must be {document: score} or \[document, ...\].*got str"),
    (QRELS, {"q1": {"d1", "d2"}}, {}, TypeError, r"run\['q1'\] must be .* got set"),
    (QRELS, [("q1", "d1", 1.0)], {}, TypeError, "run must be {topic: {document: score}}, .* got list"),
    ({"q1": ["d1", "d1"]}, RUN, {}, ValueError, "d1"),
    ({"q1": "d1"}, RUN, {}, TypeError, r"qrels\['q1'\] must be \{document: grade\} or the relevant documents; got str"),
    (QRELS, "no such run", {}, FileNotFoundError, "no such run"),
    # arguments are read before files
    ("no such qrels", "no such run", {"queries": "all"}, ValueError, "queries must be one of 'qrels', 'run', 'both'; got 'all'"),
    ("no such qrels", "no such run", {"queries": None}, TypeError, "queries must be one of"),
    ("no such qrels", "no such run", {"k": 0}, ValueError, "k must be"),
    ("no such qrels", "no such run", {"flavor": "trec"}, ValueError, "Did you mean 'trec_eval'"),
    # labels that the flavor refuses
    (QRELS, {"q3": RUN["q3"]}, {"flavor": "trec_eval[unjudged=raise]", "queries": "run"}, ValueError, r"unjudged='raise'; got 1, the first in run\['q3'\], document 'd9'"),
    ({"q": {"a": 1, "b": -1}}, {"q": ["a", "b"]}, {"flavor": "sklearn"}, ValueError, r"the first in run\['q'\], document 'b'"),
    *(
        (QRELS, run, {"flavor": Flavor(**MISSED, empty=empty), "k": (1, 10)}, ValueError, r"rank some document under ideal='recall'.*the first 'q2'")
        for empty in (1.0, "skip") for run in (RUN, {**RUN, "q2": []})
    ),
    *((ONE, TWICE, {"flavor": flavor}, ValueError, r"twice in a topic; 'd1' does.*duplicates='first'") for flavor in ("trec_eval", "mlflow", "sklearn")),
    # weights of topics
    (QRELS, RUN, {"query_weight": {"q1": 1.0}}, ValueError, r"query_weight must have an entry for the id of each query; got none for 'q2' \(2 of 3"),
    (QRELS, RUN, {"query_weight": {**OF_TOPICS, "Q1": 1.0}}, ValueError, r"entries for known queries only; got 'Q1' \(1 of 4 entries\)"),
    (QRELS, RUN, {"query_weight": [1.0, 2.0]}, ValueError, r"one weight per query, shape \(3,\); got \(2,\)"),
    (QRELS, RUN, {"query_weight": {**OF_TOPICS, "q3": -1.0}}, ValueError, "query_weight must be finite and >= 0"),
    (QRELS, RUN, {"query_weight": {**OF_TOPICS, "q3": math.nan}}, ValueError, "query_weight must be finite and >= 0"),
    (QRELS, RUN, {"query_weight": dict.fromkeys(OF_TOPICS, 0)}, ValueError, "at least one weight above 0"),
    # slices; rows are made inside, and labels are per topic
    (QRELS, RUN, {"by": ["de"] * int(align(QRELS, RUN).group.sum())}, ValueError, r"by\['by'\] must have one label per query, 3, .*; got 8"),
    (QRELS, RUN, {"by": {"language": {"q1": "de", "q2": "fr"}}}, ValueError, "'q3'"),
    (QRELS, RUN, {"by": {"language": dict.fromkeys(QRELS, "de")}, "queries": "run"}, ValueError, "'q9'"),
    # documents to leave out
    (QRELS, RUN, {"exclude": "same"}, ValueError, r"exclude must be 'identical' or \{topic: \[document, ...\]\}; got 'same'"),
    (QRELS, RUN, {"exclude": ["a"]}, TypeError, "exclude must be 'identical' or .*got list"),
    (QRELS, RUN, {"exclude": {"q1": "b"}}, TypeError, r"exclude\['q1'\] must be a list of documents; got 'b'"),
    (QRELS, RUN, {"exclude": {"q1": 3}}, TypeError, r"exclude\['q1'\] must be a list of documents; got 3"),
    (QRELS, RUN, {"exclude": {"q1": [3]}}, TypeError, r"document ids must have one type .*int in exclude\['q1'\]"),
    (QRELS, RUN, {"exclude": {3: ["a"]}}, TypeError, "topic ids must have one type .*int in exclude"),
    ({7: {"8": 1}}, {7: ["7", "8"]}, {"exclude": "identical"}, TypeError, "one type to be identical; got str and int"),
    # a message shows at most part of a long id
    ({LONG: {"d": 1}}, {"q": {"d": 1.0}}, {}, ValueError, "must share a topic"),
    ({LONG: {"d": math.nan}}, {"q": {"d": 1.0}}, {}, ValueError, "grades must be finite"),
    ({LONG: {"d": [1, 2]}}, {"q": {"d": 1.0}}, {}, TypeError, "one number per document"),
    ({"q": {LONG: math.inf}}, {"q": {"d": 1.0}}, {}, ValueError, "grades must be finite"),
    ({"q": {"d": 1}}, {"q": [LONG, "d", LONG]}, {}, ValueError, "twice"),
    ({"q": {"d": 1}}, {"q": [LONG.encode(), "d"]}, {}, TypeError, "bytes"),
    ({"q": {"d": 1}}, {"q": [LONG + "\ud800", "d"]}, {}, ValueError, "UTF-8"),
    ({"q": {"d": 1}}, {LONG: 5, "q": ["d"]}, {}, TypeError, "run"),
    ({LONG: {"d": -1, "e": 1}}, {LONG: ["e"]}, {"flavor": "sklearn"}, ValueError, "negative"),
    ({"q": {"d": 1}, LONG: {"d": 1}}, {"q": ["d"]}, {"flavor": "trec_eval[ideal=recall,empty=1]"}, ValueError, "rank some document"),
    ({"q": {"d": 1}}, {"q": ["d"]}, {"queries": LONG}, ValueError, "queries must be"),
    ({10**5000: {"d": 1}}, {1: {"d": 1.0}}, {}, ValueError, "digits"),
    ({1: {10**5000: 1}}, {1: [2]}, {}, ValueError, "digits"),
]  # fmt: skip


@pytest.mark.parametrize(("qrels", "run", "options", "error", "words"), RUNS)
def test_a_run_is_refused(qrels, run, options, error, words):
    with pytest.raises(error, match=words) as caught:
        evaluate_run(qrels, run, **options)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", [None, math.nan, np.datetime64("NaT", "s")], ids=str)
def test_a_missing_id_is_refused_as_such(missing):
    for qrels, run, source in (
        ({"q1": {"d1": 1}, missing: {"d1": 1}}, RUN, "topic ids of qrels"),
        ({"q1": {"d1": 1, missing: 1}}, RUN, r"document ids of qrels\['q1'\]"),
        (QRELS, {"q1": ["d1", missing]}, r"document ids of run\['q1'\]"),
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
        ("q 0 a 1\nq 0 b -1\n", {"q": ["a"]}, {"flavor": "sklearn"}, ValueError, r"negative='raise'; got 1, the first in .*qrels, line 2"),
        ("1 0 5 1\n", {1: {5: 1.0}}, {}, TypeError, r"str in qrels \(.*qrels\) and int in run.*convert one side"),
        ({"q1": {1: 1}}, "q1 Q0 1 1 2.0 tag\n", {}, TypeError, r"document ids must have one type .* got int in qrels\['q1'\] and str in run"),
        ({1: {"a": 1}}, "1 Q0 a 1 2.0 tag\n", {}, TypeError, "topic ids must have one type .* got int in qrels and str in run.*7 and '7' are different ids"),
        ("\nq 0 a 1\nq 0 b 1\nq 0 a 1\n", {"q": ["a"]}, {"flavor": "llama_index"}, ValueError, r"'a' does in .*qrels, line 2 and .*qrels, line 4\. Remove the duplicates\.$"),
        ({"q": {"a": 1}}, "\nq Q0 b 1 3 t\n# one\n# two\n\nq Q0 a 1 2 t\n\nq Q0 a 1 1 t\n", {}, ValueError, r"'a' does in .*run, line 6 and .*run, line 8\. Remove"),
        ({"q1": {"d1": 1}}, '{"qid": "q1", "docno": "d1", "score": 1}\n' * 2, {}, ValueError, "'d1' does in .*run, line 1 and .*run, line 2"),
        ({"q1": {"d1": 1}}, "qid,docno,score\nq1,d1,1\nq1,d2,2\nq1,d1,3\n", {}, ValueError, "'d1' does in .*run, line 2 and .*run, line 4"),
    ],
)  # fmt: skip
def test_a_file_is_refused_with_its_lines(tmp_path, qrels, run, options, error, words):
    sides = {"qrels": qrels, "run": run}
    for name, content in sides.items():
        if isinstance(content, str):
            (tmp_path / name).write_text(content)
            sides[name] = tmp_path / name
    with pytest.raises(error, match=words):
        evaluate_run(**sides, **options)


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
    ([1, 2], HELD, {}, ValueError, r"one row of item numbers per user.*got shape \(2,\).*\[ids\]"),
    ([[0.5, 1.0]], HELD, {}, TypeError, r"retrieved_ids must hold integers.*got dtype float64"),
    ([["a", "b"]], HELD, {}, TypeError, r"retrieved_ids must hold integers.*evaluate_run"),
    ([[1, -2]], HELD, {}, ValueError, "item numbers, or -1 for none; got -2"),
    ([[-1], [-1]], HELD, {}, ValueError, "retrieved_ids must hold an item for at least one user; got none for 2"),
    ([[], []], HELD, {}, ValueError, "retrieved_ids must hold an item for at least one user; got none for 2"),
    ([[1], [2, "a"]], HELD, {}, TypeError, "retrieved_ids must hold integers"),
    (np.zeros((0, 3), int), HELD, {}, ValueError, r"at least one user; got shape \(0, 3\)"),
    ([[1, 2**41]], HELD, {}, ValueError, rf"below 2\^40; got {2**41}\."),
    ([[1]], ([0], [2**41], [1]), {}, ValueError, rf"below 2\^40; got {2**41}\."),
    ([[1, 1]], HELD, {}, ValueError, "user 0 has item 1 twice.*duplicates='first' or 'count'"),
    ([[1, 2]], ([1], [1], [1]), {}, ValueError, "held_out users must be row numbers.*from 0 to 0; got 1"),
    ([[1, 2]], ([-1], [1], [1]), {}, ValueError, "held_out users must be row numbers.*got -1"),
    ([[1, 2]], ([0], [-1], [1]), {}, ValueError, "held_out items must be numbers >= 0; got -1"),
    ([[1, 2]], ([0.0], [1], [1]), {}, TypeError, "held_out users must hold integers"),
    ([[1, 2]], ([0], [1, 2], [1]), {}, ValueError, r"three arrays of equal length.*\(1,\), \(2,\), \(1,\)"),
    ([[1, 2]], ([0, 0], [1, 1], [1, 2]), {}, ValueError, "user 0 has item 1 twice"),
    ([[1, 2]], ([0], [1], [np.nan]), {}, ValueError, "grades of held_out must be finite; got nan"),
    ([[1, 2]], {0: {1: 1}}, {}, TypeError, r"a list of relevant items for each user; got \{1: 1\}"),
    ([[1, 2]], np.eye(3), {}, TypeError, "got ndarray.*csr_array"),
    ([[2, 0], [1, 3]], {2: [1]}, {}, ValueError, "keys of held_out must be rows of retrieved_ids; got 2"),
    ([[2, 0], [1, 3]], {0: [1]}, {"qid": ["t", "u"]}, ValueError, "keys of held_out must be ids in qid; got 0"),
    ([[2, 0], [1, 3]], [[1, 1], [0]], {}, ValueError, "user 0 has item 1 twice"),
    ([[2, 0], [1, 3]], [[0], "a"], {}, TypeError, "a list of relevant items for each user; got 'a'"),
    ([[0], [1]], [[0, 1], [4, 1], [1, 1]], {}, ValueError, "one list per row of retrieved_ids, 2; got 3.*as a tuple"),
    ([[0], [1], [2]], [[0], [1], [2]], {}, ValueError, "must not be a list of three for three users"),
    ([[1], [2]], HELD, {"flavor": Flavor()}, ValueError, "must be held out under unjudged='raise'; got item 2 of user 1"),
    ([[1]], ([0], [1], [-1]), {"flavor": Flavor(unjudged="zero")}, ValueError, "grades of held_out must be >= 0 under negative='raise'; got -1"),
    ([[1]], HELD, {"qid": ["a", "b"]}, ValueError, "qid must have one id per query, 1; got 2"),
    ([[1], [2]], {"a": [1]}, {"qid": ["a", "a"]}, ValueError, "qid must have each query once; got 'a'"),
    ([[1], [-1]], [[1], [1]], {"flavor": RECALL}, ValueError, r"would score 1, the first 1\..* or leave out the rows of users"),
    ([[2], [1]], HELD, {"query_weight": {0: 1, 1: 1, "x": 1}}, ValueError, "entries for known queries only; got 'x'"),
    ([[2], [1]], HELD, {"query_weight": np.ones(4)}, ValueError, r"one weight per query, shape \(2,\); got \(4,\)"),
]  # fmt: skip


@pytest.mark.parametrize(("retrieved", "held", "options", "error", "words"), TOPK)
def test_items_are_refused(retrieved, held, options, error, words):
    with pytest.raises(error, match=words):
        evaluate_topk(retrieved, held, **{"flavor": "recbole", **options})


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
