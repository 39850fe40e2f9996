"""Qrels and runs as TREC, JSONL, JSON, CSV, BEIR's TSV and Parquet: one value, and errors that name the line."""

from __future__ import annotations

import gzip
import json
import math
import os
import warnings

import numpy as np
import pytest

from ndcg_ml import align, evaluate, evaluate_run
from ndcg_ml.readers import DataFileError, read_columns

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "07": {"é\t": 1.5, "d1": -1}, "7": {"d1": 3}}
RUN = {"7": {"d9": 2.5, "d1": -1e-3}, "q1": {"d3": 0.5, "d7": 0.5, "d1": 0.1}, "07": {"é\t": 1.0}, "q9": {"d1": 1.0}}
RANKED = {"q1": ["d7", "d1", "d3"], "7": ["d1"], "07": []}


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def rows(data, value):
    return [{"qid": q, "docno": d, value: v} for q, listed in data.items() for d, v in listed.items()]


def csv(data, names, separator=","):
    body = [separator.join([q, f'"{d}"', repr(v)]) for q, listed in data.items() for d, v in listed.items()]
    return "\n".join([separator.join(names), *body, ""])


def written(data, value):
    """The same data in every format of text."""
    beir = ["query-id", "corpus-id", "score"]
    return {
        "jsonl of documents": lines(rows(data, value)),
        "jsonl of BEIR": lines(
            dict(zip(beir, each.values(), strict=True)) | {"more": [1, {"a": None}]} for each in rows(data, value)
        ),
        "json": json.dumps(data),
        "json, indented": json.dumps(data, indent=2),
        "json, strangely": json.dumps(data).replace(": {", ":\n\n { ").replace(", ", "\n,"),
        "csv": csv(data, ["qid", "docno", value]),
        "csv with semicolons": csv(data, ["qid", "docno", value], ";"),
        "tsv": csv(data, ["qid", "docno", value], "\t"),
        "BEIR": csv(data, beir, "\t"),
    }


@pytest.mark.parametrize("form", written(QRELS, "label"))
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_format_gives_the_value_of_the_dicts(tmp_path, form, packed, end):
    expected = evaluate_run(QRELS, RUN, k=(1, 3, None), queries="both")
    for name, data, value in (("qrels", QRELS, "label"), ("run", RUN, "score")):
        content = ("\ufeff" + written(data, value)[form].replace("\n", end)).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    for pair in ((tmp_path / "qrels", RUN), (QRELS, tmp_path / "run"), (tmp_path / "qrels", str(tmp_path / "run"))):
        found = evaluate_run(*pair, k=(1, 3, None), queries="both")
        assert found.value == expected.value
        assert found.per_query.qid.tolist() == expected.per_query.qid.tolist()
    data, files = align(QRELS, RUN), align(tmp_path / "qrels", tmp_path / "run")
    for name in ("qid", "group", "y_true", "y_score", "retrieved", "doc_id"):
        assert np.array_equal(getattr(data, name), getattr(files, name), equal_nan=name == "y_true"), name


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(RANKED),
        json.dumps(RANKED, indent=1),
        json.dumps(RANKED).replace(", ", ",\n"),
    ],
)
def test_ranked_lists(tmp_path, content):
    (tmp_path / "run").write_text(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty list warns
        found, expected = (evaluate_run(QRELS, run) for run in (tmp_path / "run", RANKED))
    assert found.value == expected.value
    assert found.qrels_only.size == 0  # an empty list is an answer


def test_integers_are_the_text_of_their_digits(tmp_path):
    (tmp_path / "run").write_text('{"7": [12, "13", 9007199254740993]}\n')
    found = align({"7": {"12": 1, "9007199254740993": 2}}, tmp_path / "run")
    assert {*zip(found.y_score, found.y_true, strict=True)} > {(0, 1), (-2, 2)}
    with pytest.raises(TypeError, match=r"topic ids must have one type .* got int in qrels and str in run"):
        align({7: {"12": 1}}, tmp_path / "run")


def test_predictions_of_sentence_transformers(tmp_path):
    lists = {q: [{"corpus_id": d, "score": s} for d, s in docs.items()] for q, docs in RUN.items()}
    (tmp_path / "run").write_text(lines({"query_id": q, "query": "?", "results": docs} for q, docs in lists.items()))
    assert evaluate_run(QRELS, tmp_path / "run").value == evaluate_run(QRELS, RUN).value
    read, write = os.pipe()
    os.write(write, (tmp_path / "run").read_bytes())
    os.close(write)
    assert evaluate_run(QRELS, f"/dev/fd/{read}").value == evaluate_run(QRELS, RUN).value
    os.close(read)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"query_id": "q2", "docs": {}}', 'must be {"query_id": .*it has the keys query_id, docs'),
        ('{"query_id": "q2", "results": {"d1": 1}}', "must be"),
        ('{"query_id": "q2", "results": ["d1"]}', "must hold objects with corpus_id and score; got 'd1'"),
        ('{"query_id": "q2", "results": [{"corpus_id": "d1"}]}', "must hold objects with corpus_id and score; got an"),
        ('{"query_id": "q2", "results": [{"corpus_id": "d1", "score": NaN}]}', "score must be a number, and not NaN"),
        ('{"query_id": null, "results": []}', "query_id must be an id"),
        ('{"query_id": "q1", "results": []}', "'q1' or one of its documents is repeated"),
        (
            '{"query_id": "q2", "results": [{"corpus_id": 1, "score": 2}, {"corpus_id": "1", "score": 3}]}',
            "is repeated",
        ),
    ],
)
def test_wrong_predictions_are_refused(tmp_path, line, words):
    (tmp_path / "run").write_text(f'{{"query_id": "q1", "results": []}}\n{line}\n')
    with pytest.raises(DataFileError, match=f"run, line 2: .*{words}"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


GOOD = '{"qid": "q1", "docno": "d0", "score": 1}\n'


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (GOOD + '{"qid": "q1", "docno": "d1"}\n', 2, "must have the key score, like the first line"),
        (GOOD + '{"docno": "d1", "score": 1}\n', 2, "must have the key qid, like the first line"),
        (GOOD + "\n[1]\n", 3, "a line must be a JSON object; got an array"),
        (GOOD + "7\n", 2, "a line must be a JSON object; got 7"),
        (GOOD + GOOD[:-1] + GOOD, 2, "not JSON: Extra data in column 41, where the value should end"),
        (GOOD + GOOD[:20] + "\n", 2, "not JSON: "),
        (GOOD + '{"qid": "q1", "qid": "q2", "docno": "d1", "score": 1}\n', 2, "each key once; got 'qid' twice"),
        (GOOD + '{"qid": "q1", "docno": "d1", "score": "1"}\n', 2, "score must be a number; got '1'"),
        (GOOD + '{"qid": "q1", "docno": "d1", "score": null}\n', 2, "score must be a number; got null"),
        (GOOD + '{"qid": "q1", "docno": "d1", "score": NaN}\n', 2, "score must be a number, and not NaN; got nan"),
        (GOOD + '{"qid": 1.0, "docno": "d1", "score": 1}\n', 2, "qid must be an id, a string or an integer; got 1.0"),
        (GOOD + '{"qid": "", "docno": "d1", "score": 1}\n', 2, "qid must be an id, a string or an integer; got ''"),
        (GOOD + '{"qid": "\\ud800", "docno": "d1", "score": 1}\n', 2, "an unpaired surrogate"),
        (GOOD + "1" * 5000 + "\n", 2, "not JSON"),
        (GOOD + "[" * 100_000 + "\n", 2, "not JSON"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\n", 3, "must have 3 fields, like the header; got 2"),
        ("query-id\tcorpus-id\tscore\nq1\td1\tx\n", 2, "score must be a number; got 'x'"),
        ("qid,docno,score\nq1,d1,\n", 2, "score must be a number; got ''"),
        ("qid,docno,score\nq1,,1\n", 2, "docno must be an id; got ''"),
    ],
)  # fmt: skip
def test_a_wrong_line_of_a_run_is_named(tmp_path, content, line, words):
    (tmp_path / "run").write_text(content)
    with pytest.raises(DataFileError, match=rf"run, line {line}: .*{words}") as caught:
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"qid": "q1", "docno": "d1", "label": null}\n', "line 1: label must be a number; got null"),
        ('{"qid": "q1", "docno": "d1", "label": Infinity}\n', "line 1: label must be a finite number; got inf"),
        ('{"qid": "q1", "docno": "d1", "label": 1, "grade": 2}\n', "column label or the column grade; got both"),
        ('{"qid": "q1", "docno": "d1", "score": 1}\n', "must have the columns qid, docno, label; label is missing"),
        ('{"q1": ["d1"]}', ": 'q1' must be {document: grade}; got an array"),
        ('{"q1": {"d1": 1e400}}', ": a grade of 'q1' must be a finite number; got inf"),
        ('{"q1": {"d1": 1' + "0" * 400 + "}}", ": a grade of 'q1': an integer must be at most 2"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t\n", "line 2: score must be a number; got ''"),
        ("query-id\tcorpus-id\n", "must have the columns query-id, corpus-id, score; score is missing"),
        ("query-id\tdocument\tscore\nq1\td1\t1\n", "a line of qrels must have 4 columns"),
        ("topic\tdocno\tlabel\n", "must have the columns qid, docno, label; qid is missing"),
        ("qid,docno,label\nq1,d1,\n", "line 2: label must be a number; got ''"),
        ("qid,docno,label\nq1,d1,nan\n", "line 2: label must be a finite number; got nan"),
    ],
)
def test_wrong_qrels_are_refused(tmp_path, content, words):
    (tmp_path / "qrels").write_text(content)
    with pytest.raises(DataFileError, match=f"qrels.*{words}"):
        evaluate_run(tmp_path / "qrels", {"q1": {"d1": 1}})


@pytest.mark.parametrize("form", ["jsonl of documents", "csv", "BEIR"])
def test_a_document_that_is_there_twice_is_named_by_its_lines(tmp_path, form):
    content = written({"q1": {"d1": 1, "d2": 2, "d3": 3}}, "score")[form]
    (tmp_path / "run").write_text(content.replace("d3", "d1"))
    at = [n for n, line in enumerate(content.split("\n"), 1) if "d1" in line or "d3" in line]
    places = " and ".join(f".*run, line {n}" for n in dict.fromkeys(at))
    with pytest.raises(ValueError, match=f"must not appear twice in a topic; 'd1' does in {places}"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"q1": {"d1": 1},\n "q2": {"d1": "x"}}', ": a score of 'q2' must be a number; got 'x'"),
        ('{"q1": {"d1": null}}', ": a score of 'q1' must be a number; got null"),
        ('{"q1": {"d1": NaN}}', ": not JSON: numbers must be finite; got NaN"),
        ('{"q1": {"d1": -Infinity}}', ": not JSON: numbers must be finite; got -Infinity"),
        ('{"q1": {"d1": 1},\n "q1": {"d2": 2}}', ": not JSON: an object must have each key once; got 'q1' twice"),
        ('{"q1": {"d1": 1, "d2": 0, "d1": 1}}', ": not JSON: an object must have each key once; got 'd1' twice"),
        ('{"q1": {"d1": 1}\n "q2": {"d2": 2}}', ", line 2: not JSON: Expecting ','"),
        ('{"q1": {"d1": 1},\n}', ", line [12]: not JSON"),
        ('{"q1": {"d1": 1}}\n{"q2": {"d1": 1}}', ", line 2: not JSON: Extra data in column 1, where the value should"),
        ('{"q1": {"d1": 1},\n "q2": 7}', ": 'q2' must be {document: score} or .* got 7. Each line of JSONL needs"),
        ('{"q1": [1.5]}', ": a document of 'q1' must be an id, a string or an integer; got 1.5"),
        ('{"": ["d"]}', ": a topic must be an id"),
        ('[{"qid": "q1"}]', ": must be an object of topics; got an array"),
        ('{"id": "q1", "list": ["d1"]}\n', ": 'id' must be .* Each line of JSONL needs the key qid"),
        (f'{{"q1": {"1" * 5000}}}', ": not JSON: Exceeds the limit"),
        (f'{{"q1": {"[" * 100_000}}}', ": not JSON"),
    ],
)  # fmt: skip
def test_a_wrong_object_of_topics_is_refused(tmp_path, content, words):
    (tmp_path / "run").write_text(content)
    with pytest.raises(DataFileError, match=f"run{words}") as caught:
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_booleans_are_numbers_in_json_as_in_dicts(tmp_path):
    qrels = {"q1": {"d1": True, "d2": False, "d3": 1}}
    expected = evaluate_run(qrels, {"q1": ["d2", "d1", "d3"]}).value
    for content in (json.dumps(qrels), lines(rows(qrels, "label"))):
        (tmp_path / "qrels").write_text(content)
        assert evaluate_run(tmp_path / "qrels", {"q1": ["d2", "d1", "d3"]}).value == expected


@pytest.mark.parametrize(
    "content",
    [
        "# topic\titeration\tdocno\tgrade\nq1\t0\td1\t2\nq1\t0\td3\t1\n",
        "# docno,corpus-id\nq1 0 d1 2\nq1 0 d3 1\n",
        "\n  # {\nq1 0 d1 2\nq1 0 d3 1\n",
    ],
)
def test_comments_of_trec_say_nothing_of_the_format(tmp_path, content):
    (tmp_path / "qrels").write_text(content)
    expected = evaluate_run({"q1": {"d1": 2, "d3": 1}}, RUN).value
    assert evaluate_run(tmp_path / "qrels", RUN).value == expected


@pytest.mark.parametrize("topic", ["{3F2504E0}", "[1]", "{", "[", "{'a'}"])
def test_topics_of_trec_may_begin_with_a_bracket(tmp_path, topic):
    (tmp_path / "qrels").write_text(f"{topic} 0 d1 2\n{topic} 0 d3 1\n")
    assert evaluate_run(tmp_path / "qrels", {topic: ["d1", "d3"]}).value == 1.0


def test_grades_may_be_called_grade(tmp_path):
    (tmp_path / "qrels").write_text(lines(rows(QRELS, "grade")))
    assert evaluate_run(tmp_path / "qrels", RUN).value == evaluate_run(QRELS, RUN).value


FORMS = {
    "TREC": "q1 Q0 d1 1 {} t\nq1 Q0 d2 2 {} t\n",
    "TREC, a long tag": "q1 Q0 d1 1 {} t t\nq1 Q0 d2 2 {} t\n",
    "JSON": '{{"q1": {{"d1": {}, "d2": {}}}}}',
    "JSONL": '{{"qid": "q1", "docno": "d1", "score": {}}}\n{{"qid": "q1", "docno": "d2", "score": {}}}\n',
    "CSV": "qid,docno,score\nq1,d1,{}\nq1,d2,{}\n",
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("form", FORMS)
def test_integers_beyond_2_53_are_refused_and_not_rounded(tmp_path, form, sign):
    (tmp_path / "run").write_text(FORMS[form].format(sign * 2**53, sign * (2**53 - 1)))
    assert align({"q1": {"d1": 1}}, tmp_path / "run").y_score.tolist() == [sign * 2**53, sign * (2**53 - 1)]
    (tmp_path / "run").write_text(FORMS[form].format(sign * 2**53, sign * (2**53 + 1)))
    with pytest.raises(DataFileError, match=r"run.*an integer must be at most 2\^53.* got '?-?9007199254740993"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")
    (tmp_path / "run").write_text(FORMS[form].format("1e300", "1.5e17"))
    assert align({"q1": {"d1": 1}}, tmp_path / "run").y_score.tolist() == [1e300, 1.5e17]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"q1": {"d1": 1},\n "q2": {"d\xff1": 1}}', 2),
        (b'{"q1": {"\xffd1": 1}}', 1),
        (b'{"qid": "q1", "docno": "d1", "score": 1}\n\n{"qid": "q1", "docno": "d\xff", "score": 1}\n', 3),
    ],
)
def test_json_is_utf_8(tmp_path, content, line):
    (tmp_path / "run").write_bytes(content)
    with pytest.raises(DataFileError, match=rf"run, line {line}: JSON must be text in UTF-8; got '.*") as caught:
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")
    eight = content[content.index(b"\xff") :][:8]
    assert str(caught.value).endswith(f"got {eight.decode('utf-8', 'backslashreplace')!r}.")


VALUES = {
    "TREC": ("q1 0 d1 {}\n", "q1 Q0 d1 1 {} t\n"),
    "BEIR": ("query-id\tcorpus-id\tscore\nq1\td1\t{}\n",) * 2,
    "CSV": ("qid,docno,label\nq1,d1,{}\n", "qid,docno,score\nq1,d1,{}\n"),
    "JSONL": ('{{"qid": "q1", "docno": "d1", "label": {}}}\n', '{{"qid": "q1", "docno": "d1", "score": {}}}\n'),
}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1"])
@pytest.mark.parametrize("form", VALUES)
def test_scores_may_be_infinite_and_grades_may_not(tmp_path, form, value):
    for name, content, other in zip(("qrels", "run"), VALUES[form], ("run", "qrels"), strict=True):
        (tmp_path / name).write_text(content.format(value))
        sides = {name: tmp_path / name, other: {"q1": {"d1": 1}}}
        if value == "1" or (name == "run" and value != "NaN"):
            assert evaluate_run(**sides, flavor="sklearn").value == 1.0
        else:
            words = "a finite number" if name == "qrels" else "a number, and not NaN"
            with pytest.raises(DataFileError, match=f"{name}, line .*must be {words}"):
                evaluate_run(**sides)


@pytest.mark.parametrize("topic", ["qid", "query-id", "query_id"])
@pytest.mark.parametrize("documents", ['{"d1": 1}', '["d1"]'])
def test_topics_may_be_called_as_keys_are(tmp_path, topic, documents):
    (tmp_path / "run").write_text(f'{{"{topic}": {documents}}}')
    assert evaluate_run({topic: {"d1": 1}}, tmp_path / "run").value == 1.0


def test_a_line_per_document_may_have_any_other_key(tmp_path):
    (tmp_path / "run").write_text(lines({**row, "query_id": 7} for row in rows(RUN, "score")))
    assert evaluate_run(QRELS, tmp_path / "run").value == evaluate_run(QRELS, RUN).value


LATIN = {
    "qrels": b"# caf\xe9\nq1 \xe9 d1 1\nq1 0 {}d2 0\n",
    "run": b"q1 Q0 d1 1 2 caf\xe9\n{}q1 Q0 d2 2 1 t\n",
    "run of lines one by one": b"q1 Q0 d1 1 2 two caf\xe9s\n\x0c{}q1 Q0 d2 2 1 t\n",
    "CSV": b"qid,docno,score,caf\xe9\nq1,d1,1,2\nq1,{}d2,2,caf\xe9\n",
}


@pytest.mark.parametrize("form", LATIN)
def test_ids_are_utf_8_and_other_columns_need_not_be(tmp_path, form):
    def value(start):
        side = "qrels" if form == "qrels" else "run"
        (tmp_path / side).write_bytes(LATIN[form].replace(b"{}", start))
        other = {"run" if form == "qrels" else "qrels": {"q1": {"d1": 1}}}
        return evaluate_run(**{side: tmp_path / side}, **other).value

    assert value(b"") > 0
    assert value("\u00e9".encode()) > 0
    line = LATIN[form][: LATIN[form].index(b"{}")].count(b"\n") + 1
    with pytest.raises(DataFileError, match=rf"line {line}: an id must be text in UTF-8; got '\\\\xe9"):
        value(b"\xe9")


QUOTES = {
    "closed elsewhere": 'qid,docno,score\nq1,d1,1\nq1,"d\n2",1\n',
    "never closed": 'query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\t"d2\t1\nq2\td3\t1\n',
    "closed by another": 'query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\t"d2\t1\nq2\td"3\t1\n',
}


@pytest.mark.parametrize("content", QUOTES.values(), ids=QUOTES)
def test_a_quote_swallows_no_line(tmp_path, content):
    (tmp_path / "run").write_text(content)
    with pytest.raises(DataFileError, match="run, line 3: not CSV: a field in quotes must end on its line"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


@pytest.mark.parametrize("end", ["\\n", "\\r"])
@pytest.mark.parametrize(
    "content",
    [
        '{{"q1": {{"d{}1": 1}}}}', '{{"q{}1": {{"d1": 1}}}}', '{{"q1": ["d{}1"]}}',
        '{{"qid": "q{}1", "docno": "d1", "score": 1}}',
    ],
)  # fmt: skip
def test_an_id_of_json_that_holds_a_line_end_is_refused(tmp_path, content, end):
    (tmp_path / "run").write_text(content.format(end))
    with pytest.raises(DataFileError, match=r"run.* must be an id without a line end; got '.\\[nr]1'"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


@pytest.mark.parametrize("name", ["d", "docno"])
def test_an_id_of_140_kb_is_read_from_trec_and_refused_in_csv(tmp_path, name):
    long = name + "x" * 140_000
    (tmp_path / "run").write_text(f"q1 Q0 {long} 1 1.5 t\n")
    assert evaluate_run({"q1": {long: 1}}, tmp_path / "run").value == 1.0
    for content in (f"qid,docno,score\nq1,{long},1\n", f"qid,docno,score,{long}\n"):
        (tmp_path / "run").write_text(content)
        with pytest.raises(DataFileError, match=r"run, line \d: (not CSV: field larger|a line of a run must)"):
            evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


# -- tables -----------------------------------------------------------------------------------------------------------

TABLE = [
    {"qid": "7", "label": 2, "score": 0.3},
    {"qid": 7, "label": None, "score": -1},
    {"qid": "8", "label": 1.5, "score": 2},
]


def test_a_table_of_json_lines(tmp_path):
    (tmp_path / "rows").write_text(lines(TABLE))
    found = read_columns(tmp_path / "rows")
    assert found.qid.tolist() == ["7", "7", "8"]
    assert np.array_equal(found.y_true, [2, math.nan, 1.5], equal_nan=True)
    assert found.y_score.tolist() == [0.3, -1, 2]
    assert found.doc_id is None
    assert found.lines.tolist() == [1, 2, 3]
    (tmp_path / "rows").write_text(
        lines({"query": r["qid"], "s": r["score"], "l": 1, "docno": i} for i, r in enumerate(TABLE))
    )
    found = read_columns(tmp_path / "rows", "s", qid="query", label="l")
    assert found.doc_id.tolist() == ["0", "1", "2"]
    assert evaluate(**found.arguments(), flavor="trec_eval").n_queries == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"qid": 1, "label": 1}\n', "must have the columns qid, label, score .* score is missing"),
        ('{"qid": 1, "label": 1, "score": 1}\n{"qid": 1, "score": 1}\n', "line 2: must have the key label, like the"),
        ('{"qid": 1, "label": 1, "score": NaN}\n', "line 1: score must be a number, and not NaN"),
        ('{"qid": 1, "label": Infinity, "score": 1}\n', "line 1: label must be finite, or empty"),
        ('{"qid": null, "label": 1, "score": 1}\n', "line 1: qid must be an id"),
        ('{"qid": 1, "label": 1, "score": 1, "docno": 2}\n{"qid": 1, "label": 1, "score": 1}', "line 2: .*key docno"),
        ('{"qid": {"a": 1}}', "must have the columns"),
    ],
)  # fmt: skip
def test_wrong_tables_of_json_lines(tmp_path, content, words):
    (tmp_path / "rows").write_text(content)
    with pytest.raises(DataFileError, match=f"rows.*{words}"):
        read_columns(tmp_path / "rows")
