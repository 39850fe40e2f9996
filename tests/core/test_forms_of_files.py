"""Judgements and runs in the forms of public files give one number; others are refused with what to type next."""

import math
import re
import tempfile
import warnings
from ast import literal_eval
from pathlib import Path

import pytest
from forms import FORMS, QRELS, RUN, RUNS, SUJET
from hypothesis import given
from hypothesis import strategies as st

from ndcg_ml import evaluate_run
from ndcg_ml.readers import DataFileError

pytestmark = pytest.mark.filterwarnings("ignore:.* has no grades, so that each pair")
EXPECTED = evaluate_run(QRELS, RUN, k=(2, None)).value


@pytest.mark.parametrize("form", FORMS)
def test_judgements_of_every_form(tmp_path, form):
    write, columns = FORMS[form]
    (tmp_path / "qrels").write_text(write(QRELS), encoding="utf-8", newline="")
    result = evaluate_run(tmp_path / "qrels", RUN, k=(2, None), columns=columns)
    assert result.value == EXPECTED
    read = result.columns_read.get("qrels", {})
    assert read | (columns or {}) == read
    assert all(name in write(QRELS) for name in read.values())


@pytest.mark.parametrize("form", RUNS)
def test_runs_of_every_form(tmp_path, form):
    write, columns = RUNS[form]
    (tmp_path / "run").write_text(write(RUN), encoding="utf-8")
    assert evaluate_run(QRELS, tmp_path / "run", k=(2, None), columns=columns).value == EXPECTED


IDS = st.from_regex(r"[a-z]{0,2}[0-9]{1,3}", fullmatch=True)
GRADES = st.dictionaries(IDS, st.sampled_from([0, 1]), min_size=1, max_size=4).map(lambda of: {**of, "relevant": 1})


@given(st.dictionaries(IDS, GRADES, min_size=1, max_size=3), st.data())
def test_one_content_in_any_form_gives_one_number(qrels, data):
    run = {topic: dict(enumerate(data.draw(st.permutations([*of, "other"])))) for topic, of in qrels.items()}
    run = {topic: {document: float(9 - rank) for rank, document in of.items()} for topic, of in run.items()}
    expected = evaluate_run(qrels, run).value
    with tempfile.TemporaryDirectory() as folder:
        for name, forms, content in (("qrels", FORMS, qrels), ("run", RUNS, run)):
            write, columns = data.draw(st.sampled_from([*forms.values()]))
            Path(folder, name).write_text(write(content), encoding="utf-8", newline="")
            sides = {"qrels": qrels, "run": run, name: Path(folder, name)}
            assert evaluate_run(**sides, columns=columns).value == expected


GRADED, TABS = "q1,d1,2\nq1,d2,0\n", "sujet\tpiece\tx\tnote\nq1\td1\t0\t2\nq1\td2\t0\t0\n"
OWN = ['{"prompt": "q1", "sources": ["d1"]}', '{"prompt": "q2", "sources": []}']
NOTE, KEYS = ["sujet", "piece", "note"], ["prompt", "sources"]
# side, content, words of the message, and what to put for each NAME of its advice, if it has one
REFUSED = {
    "unknown names": ("qrels", f"sujet,piece,note\n{GRADED}",
        "must name its topics and its documents and its grades; got 'sujet', 'piece', 'note'.", NOTE),
    "names above tabs": ("qrels", TABS, "and its grades; got 'sujet', 'piece', 'x', 'note'.", NOTE),
    "one known name": ("qrels", f"sujet,doc_id,note\n{GRADED}",
        "must name its topics and its grades; got 'sujet', 'doc_id' (documents), 'note'.", ["sujet", "note"]),
    "a similar name": ("qrels", f"qid,doc_id,relevant\n{GRADED}", "Name yours: columns={'label': 'relevant'}.", []),
    "two columns": ("qrels", "qid,path\nq1,d1\n",
        "must name its documents; got 'qid' (topics), 'path'. Name yours: columns={'docno': NAME}.", ["path"]),
    "no grades": ("qrels", f"userId,movieId,timestamp\n{GRADED}",
        "If each row has grade 1, name its documents: columns={'docno': 'movieId'}.", ["timestamp"]),
    "two ids of topics": ("qrels", "qid,user_id,doc,rel\nq1,u,d1,2\n",
        "must name its topics once; got 'qid', 'user_id'. Name one: columns={'qid': 'qid'}", []),
    "own keys": ("qrels", "\n".join(OWN),
        "its first object must name its topics and its documents; got 'prompt', 'sources'.", KEYS),
    "own keys, on long lines": ("qrels", "\n".join(OWN).replace("{", '{"text": "' + "?" * 9000 + '", '),
        "its first object must name its topics and its documents; got 'text', 'prompt', 'sources'.", KEYS),
    "own keys in an array": ("qrels", f"[{','.join(OWN)}]", "got 'prompt', 'sources'. Name yours", KEYS),
    "own keys under one key": ("qrels", '{"queries": [{"id": "q1", "text": "?", "relevant_docs": ["d1"]}]}',
        "its first object must name its topics; got 'id', 'text', 'relevant_docs' (documents). Name yours", ["id"]),
    "documents with two ids": ("qrels", '{"q1": [{"doc_id": "d1", "chunk_id": "c1"}]}',
        "a document must name its documents once; got 'doc_id', 'chunk_id'. Rename the others.", None),
    "scores of a model": ("run", "query_id,doc_id,bm25\nq1,d1,2\n",
        "must name its scores; got 'query_id' (topics), 'doc_id' (documents), 'bm25'.", ["bm25"]),
    "a number as a name": ("qrels", f"query_id,doc_id,0\n{GRADED}",
        "must name its grades; got 'query_id' (topics), 'doc_id' (documents), '0'.", ["0"]),
    "no header": ("qrels", "q1,d1,2,9\n",
        "must begin with a line of the names of its columns, such as qid,docno,label; got 'q1,d1,2,9'.", None),
    "three columns of a run": ("run", "q1 d1 1\nq1 d2 2\n", "qid docno score (or rank, 1 is the best); got", None),
    "words": ("qrels", "q1\td1\tGood\nq1\td2\tBad\n", "line 1: grade must be a number; got 'Good'. Map words", None),
    "words in CSV": ("qrels", "qid,docno,label\nq1,d1,Good\n", "line 2: label must be a number; got 'Good'. Map", None),
    "words in JSON": ("qrels", '[{"qid": "q1", "docno": "d1", "label": "Good"}]',
        "record 1: label must be a number; got 'Good'. Map words", None),
    "thousands": ("qrels", 'qid,docno,label\nq1,d1,"1,000"\n',
        "got '1,000'. The comma may be a decimal one or one of thousands", None),
    "LETOR": ("qrels", "4 qid:1 # 7555\n", "must be qrels; got LETOR. Pass it as --labels, with --scores", None),
    "zip": ("qrels", b"PK\3\4...", "must be plain text or compressed by gzip; got zip. Unpack it", None),
    "lz4": ("qrels", b"\4\x22\x4d\x18...", "must be plain text or compressed by gzip; got lz4. Unpack it", None),
    "arrays": ("qrels", "[[45, 48], [1]]", "an array must hold objects; got an array", None),
    "lists of two lengths": ("run", '{"qid": "q1", "ids": ["a"], "score": []}\n',
        "line 1 ('q1'): documents and their numbers must be lists of one length.", None),
    "a line end in an id": ("qrels", 'qid,docno,label\n"q\n1",d1,1\n', "line 2: qid must be an id", None),
    "after a line end in quotes": ("qrels", 'qid,text,docno,label\nq1,"a\nb",d1,1\nq1,c,d2,x\n',
        "line 4: label must be a number; got 'x'", None),
    "a quote that may be missing": ("qrels", 'qid\tx\tdocno\tlabel\nq1\t"a\td1\t1\nq1\tb"\td2\t1\n',
        "line 2: not CSV: a field must not hold a tab and a line end", None),
    "two topics of a run": ("run", '{"qid": "q1", "ids": ["a"]}\n{"qid": "q1", "ids": ["b"]}\n',
        "line 2 ('q1'): each topic must appear once", None),
}  # fmt: skip


def advised(message, names):
    """The columns that a message says to pass, with these names for its placeholders."""
    [columns, *_] = re.findall(r"columns=(\{.*?\})", message)
    for name in names:
        columns = columns.replace("NAME", repr(name), 1)
    return literal_eval(columns)


@pytest.mark.parametrize("case", REFUSED)
def test_a_form_is_refused_with_what_to_type_next(tmp_path, case):
    side, content, words, names = REFUSED[case]
    (tmp_path / side).write_bytes(content if isinstance(content, bytes) else content.encode())
    sides = {"qrels": {"q1": {"d1": 2, "d2": 0}}, "run": {"q1": ["d1", "d3"]}, side: tmp_path / side}
    with pytest.raises(DataFileError, match=re.escape(words)) as caught:
        evaluate_run(**sides)
    assert not re.search("iteration|Q0|Extra data", str(caught.value))
    if names is not None:
        assert evaluate_run(**sides, columns=advised(str(caught.value), names), queries="both").value == 1


def test_judgements_and_a_run_in_one_file(tmp_path):
    path = tmp_path / "both.json"
    path.write_text('[{"question": "q1", "gold_chunks": ["d1"], "retrieved": ["d2", "d1"]}]')
    with pytest.raises(ValueError, match="must be different columns; got the same") as caught:
        evaluate_run(path, path, columns={"docno": "gold_chunks"})
    columns = advised(str(caught.value), ["retrieved"])
    assert evaluate_run(path, path, columns=columns).value == evaluate_run({"q1": ["d1"]}, {"q1": ["d2", "d1"]}).value
    with pytest.raises(ValueError, match="must have names, or lists of a name for qrels and one for a run"):
        evaluate_run(path, path, columns={"docno": ["gold_chunks"]})


def test_names_in_one_file_come_with_those_in_the_other(tmp_path):
    (tmp_path / "qrels").write_text(FORMS["sujet,piece,note"][0](QRELS))
    (tmp_path / "run").write_text(RUNS["JSONL of documents"][0](RUN))
    with pytest.raises(ValueError, match=r"run.* must name its topics, not 'sujet' and its documents, not") as caught:
        evaluate_run(tmp_path / "qrels", tmp_path / "run", columns=SUJET)
    columns = SUJET | advised(str(caught.value), [])
    assert evaluate_run(tmp_path / "qrels", tmp_path / "run", k=(2, None), columns=columns).value == EXPECTED


@pytest.mark.parametrize(
    "content",
    ["qid,docno,label\nq1,d1,1\nq1,d2,\n", '{"q1": {"d1": 1, "d2": null}, "q2": null}', "q1 0 d1 1\nq1 0 d2 nan\n"],
)
def test_documents_without_a_grade_are_unjudged(tmp_path, content):
    (tmp_path / "qrels").write_text(content)
    for qrels in (tmp_path / "qrels", {"q1": {"d1": 1, "d2": math.nan}}):
        result = evaluate_run(qrels, {"q1": ["d2", "d1"]}, k=2, queries="run")
        assert (result.judged, result.value) == (0.5, evaluate_run({"q1": {"d1": 1}}, {"q1": ["d2", "d1"]}).value)
        with pytest.raises(ValueError, match=r"unjudged='raise'; got 1"):
            evaluate_run(qrels, {"q1": ["d2", "d1"]}, flavor="sklearn", queries="run")


@pytest.mark.parametrize(("content", "advice"), [("q1 d1\n", "$"), ("qid,docno\nq1,d1\n", " .*={'label': NAME}")])
def test_pairs_have_grade_1_with_a_warning(tmp_path, content, advice):
    (tmp_path / "qrels").write_text(content)
    with pytest.warns(UserWarning, match=f"qrels.* has no grades, so that each pair .* has grade 1.{advice}"):
        assert evaluate_run(tmp_path / "qrels", {"q1": ["d1"]}).value == 1


@pytest.mark.parametrize(("flavor", "warns"), [("trec_eval", True), ("beir@5", True), ("ranx", False)])
def test_fractions_are_kept_with_a_warning_that_trec_eval_truncates_them(flavor, warns):
    qrels, run = {"q": {"a": 1, "b": 1.667}}, {"q": ["a", "b"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = evaluate_run(qrels, run, flavor=flavor).value
    assert value == pytest.approx((1 + 1.667 / math.log2(3)) / (1.667 + 1 / math.log2(3)))
    words = "trec_eval itself truncates grades to integers, 1.667 to 1; its NDCG differs."
    assert [str(each.message) for each in caught] == [words] * warns
