"""What readers of files refuse: the file, its line, and what is wrong with it, on one line of text."""

from __future__ import annotations

import gzip

import pytest

from ndcg_ml import Evaluation, evaluate_run, with_labels
from ndcg_ml.readers import DataFileError, read_columns, read_letor

LINE = b"301 Q0 doc1 1 2.5 tag\n"
WHOLE = b"q1 Q0 a 1 0.9 bm25\nq2 Q0 b 1 0.9 bm25\nq2 Q0 c 2 0.1 bm25\n"
BOM = b"\xef\xbb\xbf"
GOOD = '{"qid": "q1", "docno": "d0", "score": 1}\n'
NONE = '{"query_id": "q1", "results": []}\n'
LONG = "docno" + "x" * 140_000
READ = {
    "run": lambda path: evaluate_run({"q1": {"d1": 1}}, path),
    "qrels": lambda path: evaluate_run(path, {"q1": {"d1": 1}}),
    "rows": read_columns,
    "saved": Evaluation.load,
    "filled": lambda path: with_labels({"q1": {"d1": 1}}, [path]),
}


def refused(folder, name, content, words):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataFileError, match=rf"{name}.*{words}") as caught:
        READ[name](folder / name)
    message = str(caught.value).replace(str(folder), "")
    assert len(message) < 600
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        ("run", b"301 Q0 d 1 2.5", r"a run must have 6 or more columns \(topic Q0 document rank score tag\); got 5"),
        ("run", b"301 Q0 d", "got 3; got '301 Q0 d'"),
        ("run", b"301", "got 1"),
        ("run", b"301 Q0 d 1 high tag", "column 5, the score, must be a number, and not NaN.*got 'high'"),
        ("run", b"301 Q0 d 1 nan tag", "must be a number, and not NaN.*got 'nan'"),
        ("run", b"301 Q0 d 1 1_000 tag", "got '1_000'"),
        ("run", b"301 Q0 d 1 0x10 tag", "got '0x10'"),
        ("run", b"301 Q0 my doc 1 2.5 tag", "got 7, and 'doc' where the rank should be. An id cannot contain a blank"),
        ("run", b"301 Q0 56 11210 1 2.5 tag", "got 7, and '2.5', a number, where the tag should begin. An id cannot"),
        ("run", b"301 Q0 56 11210 8 1 2.5 tag", "got 8, and '1', a number, where the tag should begin"),
        ("run", b"301,Q0,d,1,2.5,tag", "6 or more columns.* got 1"),
        ("run", b"301 Q0 d 1 " + b"x" * 500 + b" tag", r"got 'x{76}\.\.\.x{19}'\.$"),
        ("run", b"301 Q0 d 1 \xff tag", r"got '\\\\xff'"),
        ("qrels", b"301 0 d", r"a line of qrels must have 4 columns \(topic iteration document grade\); got 3"),
        ("qrels", b"301 0 d 1 2", "must have 4 columns .* got 5"),
        ("qrels", b"301 Q0 d 1 2.5 tag", "must have 4 columns .* got 6"),
        ("qrels", b"301 0 d yes", "column 4, the grade, must be a finite number; got 'yes'"),
        ("qrels", b"301 0 d nan", "must be a finite number; got 'nan'"),
        ("qrels", b"301 0 d -inf", "must be a finite number; got '-inf'"),
        ("qrels", b"301 0 d 1_0", "must be a finite number; got '1_0'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [0, 3])
def test_a_line_of_trec_is_refused_with_its_number(tmp_path, name, bad, words, before):
    good = LINE if name == "run" else b"301 0 d 1\n"
    content = good * before + bad + b"\n" + good
    refused(tmp_path, name, content, f"line {before + 1}: .*{words}")
    refused(tmp_path, name, b"\n# comment\n" + content, f"line {before + 3}: .*{words}")


FILES = [
    # TREC
    ("run", WHOLE.replace(b"\n", b"", 1), "line 1: .*Two lines may have been joined by concatenating"),
    ("run", WHOLE.replace(b"\n", b" ", 1), "line 1: .*Two lines may have been joined by concatenating"),
    ("run", WHOLE.replace(b"\n", b"", 1).replace(b"Q0 b", b"0 b"), "line 1: .*Two lines may have been joined by concatenating"),
    ("run", WHOLE.replace(b"\n", b" my tag", 1), "line 1: .*Two lines may have been joined by concatenating"),
    ("run", BOM + WHOLE.replace(b"\n", BOM, 1), "line 1: .*Two lines may have been joined by concatenating"),
    ("run", WHOLE + WHOLE[:-1] + WHOLE, "line 6: .*Two lines may have been joined by concatenating"),
    ("run", b"301 Q0 a 1 0.9 bm25302 Q0 b 1 0.9 bm25 303 Q0 c 1 1 t\n", "line 1: .*Two lines may have been joined by concatenating"),
    ("qrels", b"q1 0 a 1\nq1 0 b 1q2 0 c 1\n", "line 2: .*Two lines may have been joined by concatenating"),
    ("qrels", b"301 0 b 1302 0 c 1\n", "line 1: .*Two lines may have been joined by concatenating"),
    ("run", b"", "has no lines; a line of a run must have 6"),
    ("run", b"\n\n# nothing\n", "has no lines"),
    ("run", LINE.decode().encode("utf-16"), "got a NUL byte. Save it as UTF-8"),
    ("run", gzip.compress(LINE * 100, mtime=0)[:-12], "is damaged and cannot be unpacked"),
    ("run", gzip.compress(LINE * 100, mtime=0)[:40] + b"\x00\x01" + gzip.compress(LINE * 100, mtime=0)[42:], "is damaged|NUL|line"),
    ("run", b"301 Q0 d 1 2.5\ntag 302 Q0 d 1 2.5 tag\n", "line 1: .* got 5"),  # the words of two lines
    ("qrels", b"q 0 a 1\nq 0 b 0 5\n0 c 2\nq 0 d 1\n", "line 2: .* got 5"),
    ("run", b"q1 Q0 d1 1 2.0 my tag\nq1 Q0 d 2 2 1.5 tag\nq1 Q0 d3 3 1.0 tag\n", "line 2: .* An id cannot contain a blank"),
    ("run", b"301 Q0 d 1\x1c2.5 tag\n", "line 1: a line of a run must have 6 or more columns"),
    *(("run", content, "has no lines") for content in (BOM, b"# a comment\n", b"# one\n#two\n   \n")),
    # predictions of sentence-transformers
    ("run", NONE + '{"query_id": "q2", "docs": {}}', 'must be {"query_id": .*it has the keys query_id, docs'),
    ("run", NONE + '{"query_id": "q2", "results": {"d1": 1}}', "must be"),
    ("run", NONE + '{"query_id": "q2", "results": ["d1"]}', "must hold objects with corpus_id and score; got 'd1'"),
    ("run", NONE + '{"query_id": "q2", "results": [{"corpus_id": "d1"}]}', "must hold objects with corpus_id and score; got an"),
    ("run", NONE + '{"query_id": "q2", "results": [{"corpus_id": "d1", "score": NaN}]}', "score must be a number, and not NaN"),
    ("run", NONE + '{"query_id": null, "results": []}', "query_id must be an id"),
    ("run", NONE + '{"query_id": "q1", "results": []}', "'q1' or one of its documents is repeated"),
    ("run", NONE + '{"query_id": "q2", "results": [{"corpus_id": 1, "score": 2}, {"corpus_id": "1", "score": 3}]}', "is repeated"),
    # lines of JSON, CSV and BEIR's TSV
    ("run", GOOD + '{"qid": "q1", "docno": "d1"}\n', ", line 2: .*must have the key score, like the first line"),
    ("run", GOOD + '{"docno": "d1", "score": 1}\n', ", line 2: .*must have the key qid, like the first line"),
    ("run", GOOD + "\n[1]\n", ", line 3: .*a line must be a JSON object; got an array"),
    ("run", GOOD + "7\n", ", line 2: .*a line must be a JSON object; got 7"),
    ("run", GOOD + GOOD[:-1] + GOOD, ", line 2: .*not JSON: Extra data in column 41, where the value should end"),
    ("run", GOOD + GOOD[:20] + "\n", ", line 2: .*not JSON: "),
    ("run", GOOD + '{"qid": "q1", "qid": "q2", "docno": "d1", "score": 1}\n', ", line 2: .*each key once; got 'qid' twice"),
    ("run", GOOD + '{"qid": "q1", "docno": "d1", "score": "1"}\n', ", line 2: .*score must be a number; got '1'"),
    ("run", GOOD + '{"qid": "q1", "docno": "d1", "score": null}\n', ", line 2: .*score must be a number; got null"),
    ("run", GOOD + '{"qid": "q1", "docno": "d1", "score": NaN}\n', ", line 2: .*score must be a number, and not NaN; got nan"),
    ("run", GOOD + '{"qid": 1.0, "docno": "d1", "score": 1}\n', ", line 2: .*qid must be an id, a string or an integer; got 1.0"),
    ("run", GOOD + '{"qid": "", "docno": "d1", "score": 1}\n', ", line 2: .*qid must be an id, a string or an integer; got ''"),
    ("run", GOOD + '{"qid": "\\ud800", "docno": "d1", "score": 1}\n', ", line 2: .*an unpaired surrogate"),
    ("run", GOOD + "1" * 5000 + "\n", ", line 2: .*not JSON"),
    ("run", GOOD + "[" * 100_000 + "\n", ", line 2: .*not JSON"),
    ("run", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\n", ", line 3: .*must have 3 fields, like the header; got 2"),
    ("run", "qid,docno,score\nq1,d1,\n", ", line 2: .*score must be a number; got ''"),
    ("run", "qid,docno,score\nq1,,1\n", ", line 2: .*docno must be an id; got ''"),
    ("qrels", '{"qid": "q1", "docno": "d1", "label": null}\n', "line 1: label must be a number; got null"),
    ("qrels", '{"qid": "q1", "docno": "d1", "label": Infinity}\n', "line 1: label must be a finite number; got inf"),
    ("qrels", '{"qid": "q1", "docno": "d1", "label": 1, "grade": 2}\n', "column label or the column grade; got both"),
    ("qrels", '{"qid": "q1", "docno": "d1", "score": 1}\n', "must have the columns qid, docno, label; label is missing"),
    ("qrels", '{"q1": ["d1"]}', ": 'q1' must be {document: grade}; got an array"),
    ("qrels", '{"q1": {"d1": 1e400}}', ": a grade of 'q1' must be a finite number; got inf"),
    ("qrels", '{"q1": {"d1": 1' + "0" * 400 + "}}", ": a grade of 'q1': an integer must be at most 2"),
    ("qrels", "query-id\tcorpus-id\tscore\nq1\td1\t\n", "line 2: score must be a number; got ''"),
    ("qrels", "query-id\tcorpus-id\n", "must have the columns query-id, corpus-id, score; score is missing"),
    ("qrels", "query-id\tdocument\tscore\nq1\td1\t1\n", "a line of qrels must have 4 columns"),
    ("qrels", "topic\tdocno\tlabel\n", "must have the columns qid, docno, label; qid is missing"),
    ("qrels", "qid,docno,label\nq1,d1,\n", "line 2: label must be a number; got ''"),
    ("qrels", "qid,docno,label\nq1,d1,nan\n", "line 2: label must be a finite number; got nan"),
    # an object of topics
    ("run", '{"q1": {"d1": 1},\n "q2": {"d1": "x"}}', ": a score of 'q2' must be a number; got 'x'"),
    ("run", '{"q1": {"d1": null}}', ": a score of 'q1' must be a number; got null"),
    ("run", '{"q1": {"d1": NaN}}', ": not JSON: numbers must be finite; got NaN"),
    ("run", '{"q1": {"d1": -Infinity}}', ": not JSON: numbers must be finite; got -Infinity"),
    ("run", '{"q1": {"d1": 1},\n "q1": {"d2": 2}}', ": not JSON: an object must have each key once; got 'q1' twice"),
    ("run", '{"q1": {"d1": 1, "d2": 0, "d1": 1}}', ": not JSON: an object must have each key once; got 'd1' twice"),
    ("run", '{"q1": {"d1": 1}\n "q2": {"d2": 2}}', ", line 2: not JSON: Expecting ','"),
    ("run", '{"q1": {"d1": 1},\n}', ", line [12]: not JSON"),
    ("run", '{"q1": {"d1": 1}}\n{"q2": {"d1": 1}}', ", line 2: not JSON: Extra data in column 1, where the value should"),
    ("run", '{"q1": {"d1": 1},\n "q2": 7}', ": 'q2' must be {document: score} or .* got 7. Each line of JSONL needs"),
    ("run", '{"q1": [1.5]}', ": a document of 'q1' must be an id, a string or an integer; got 1.5"),
    ("run", '{"": ["d"]}', ": a topic must be an id"),
    ("run", '[{"qid": "q1"}]', ": must be an object of topics; got an array"),
    ("run", '{"id": "q1", "list": ["d1"]}\n', ": 'id' must be .* Each line of JSONL needs the key qid"),
    ("run", f'{{"q1": {"1" * 5000}}}', ": not JSON: Exceeds the limit"),
    ("run", f'{{"q1": {"[" * 100_000}}}', ": not JSON"),
    ("run", b'{"q1": {"d1": 1},\n "q2": {"d\xff1": 1}}', r"line 2: JSON must be text in UTF-8; got '.{2,5}1\": 1}}'\.$"),
    ("run", b'{"qid": "q1", "docno": "d1", "score": 1}\n\n{"qid": "q1", "docno": "d\xff", "score": 1}\n', "line 3: JSON must be text in UTF-8"),
    *(
        ("run", content.replace("{}", end), r".* must be an id without a line end; got '.\\[nr]1'")
        for end in ("\\n", "\\r")
        for content in ('{"q1": {"d{}1": 1}}', '{"q{}1": {"d1": 1}}', '{"q1": ["d{}1"]}', '{"qid": "q{}1", "docno": "d1", "score": 1}')
    ),
    # a quote swallows no line
    ("run", 'qid,docno,score\nq1,d1,1\nq1,"d\n2",1\n', "line 3: not CSV: a field in quotes must end on its line"),
    ("run", 'query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\t"d2\t1\nq2\td3\t1\n', "line 3: not CSV: a field in quotes"),
    ("run", 'query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\t"d2\t1\nq2\td"3\t1\n', "line 3: not CSV: a field in quotes"),
    ("run", f"qid,docno,score\nq1,{LONG},1\n", "line 2: not CSV: field larger"),
    ("run", f"qid,docno,score,{LONG}\n", "line 1: (not CSV: field larger|a line of a run must)"),
    # labels that were filled in
    ("filled", '{"qid": "q", "label": 1}', "docno is missing"),
    ("filled", '{"qid": "q", "docno": "d", "label": "good"}', "label must be a number"),
    ("filled", '{"qid": "q", "docno": "d", "label": true}', "label must be a number"),
    ("filled", '{"qid": "q", "docno": "d", "label": NaN}', "label must be a finite number; got nan"),
    ("filled", '{"qid": "q", "docno": "d", "label": -9007199254740993}', r"an integer must be at most 2\^53"),
    ("filled", '{"qid": "q", "docno": "d", "label": 1' + "0" * 400 + "}", r"an integer must be at most 2\^53"),
    ("filled", '{"qid": "q", "docno": 1.5, "label": 1}', "docno must be an id, a string or an integer; got 1.5"),
    ("filled", '{"qid": "", "docno": "d", "label": 1}', "qid must be an id, a string or an integer; got ''"),
    ("filled", '{"qid": "q", "docno": "d", "label": 1}\n{"qid": "q", "docno": "d", "label": 1}', "'d' is labelled twice"),
    ("filled", "qid 0 d 1", "not JSON"),
    # saved evaluations
    ("saved", "", r"must be a file that Evaluation\.save wrote; .*it is not JSON"),
    ("saved", "7", r"must be a file that Evaluation\.save wrote; .*it has no key"),
    ("saved", "{}", r"must be a file that Evaluation\.save wrote; .*it has no key"),
    ("saved", '{"ndcg_ml_evaluation": true}', r"must be a file that Evaluation\.save wrote; .*its format is True"),
    ("saved", '{"ndcg_ml_evaluation": 2, "ndcg_ml_evaluation": 2}', r"must be a file that Evaluation\.save wrote; .*each key once; got 'ndcg_ml_evaluation' twice"),
    ("saved", "[" * 100_000, r"must be a file that Evaluation\.save wrote; .*recursion"),
    ("saved", "1" * 9999, r"must be a file that Evaluation\.save wrote; .*digits"),
    ("saved", gzip.compress(b" " * (65 << 20), mtime=0), "must have at most 67108864 bytes when unpacked"),
    # tables
    ("rows", '{"qid": 1, "label": 1}\n', "must have the columns qid, label, score .* score is missing"),
    ("rows", '{"qid": 1, "label": 1, "score": 1}\n{"qid": 1, "score": 1}\n', "line 2: must have the key label, like the"),
    ("rows", '{"qid": 1, "label": 1, "score": NaN}\n', "line 1: score must be a number, and not NaN"),
    ("rows", '{"qid": 1, "label": Infinity, "score": 1}\n', "line 1: label must be finite, or empty"),
    ("rows", '{"qid": 7, "label": 1, "score": 9007199254740993}\n', r"line 1: score: an integer must be at most 2\^53"),
    ("rows", "qid,label,score\n7,1,9007199254740993\n", r"line 2: score: an integer must be at most 2\^53"),
    ("rows", '{"qid": null, "label": 1, "score": 1}\n', "line 1: qid must be an id"),
    ("rows", '{"qid": 1, "label": 1, "score": 1, "docno": 2}\n{"qid": 1, "label": 1, "score": 1}', "line 2: .*key docno"),
    ("rows", '{"qid": {"a": 1}}', "must have the columns"),
    ("rows", "qid,label\n1,2\n", "must have the columns qid, label, score .* score is missing. The file has 'qid', 'label'"),
    ("rows", "qid,label,Score_\n", r"Did you mean 'Score_'\?$"),
    ("rows", "qid;label;score\n", "has no rows"),
    ("rows", "", "The file has none"),
    ("rows", "qid,label,score,score\n1,2,3,4\n", "must have each column once; got 'score' 2 times"),
    ("rows", "qid,label,score\n", "has no rows"),
    ("rows", "qid,label,score\na,1,2\nb,1\n", "line 3: must have 3 fields, like the header; got 2"),
    ("rows", "qid,label,score\na,1,2,3\n", "line 2: must have 3 fields, like the header; got 4"),
    ("rows", "qid,label,score\na,one,2\n", "line 2: label must be a number; got 'one'"),
    ("rows", "qid,label,score\na,1,1_0\n", "line 2: score must be a number; got '1_0'"),
    ("rows", "qid;label;score\na;1;0,5\n", "line 2: score must be a number; got '0,5'. Write a decimal point, not a comma"),
    ("rows", "qid,label,score\na,NA,1\n", "line 2: label must be a number; got 'NA'. Leave the cell empty if the doc"),
    ("rows", "qid,label,score\na,1,NA\n", r"line 2: score must be a number; got 'NA'\.$"),
    ("rows", "qid,label,score\na,1,\n", "line 2: score must be a number; got ''"),
    ("rows", "qid,label,score\na,1,1\na,1,nan\n", "line 3: score must be a number, and not NaN; got nan"),
    ("rows", "qid,label,score\na,inf,1\n", "line 2: label must be finite, or empty for an unjudged document; got inf"),
    ("rows", "qid,label,score\n,1,1\n", "line 2: qid must be an id; got ''"),
    ("rows", 'qid,label,score\n"a"b,1,1\n', "line 2: not CSV"),
    ("rows", "qid,label,score\n\na,1,1\na,inf,1\n", "line 4: label must be finite"),
    ("rows", f"{LONG[:100_000]},label,score\n", "must have the columns"),
    ("rows", f"qid,label,score\n1,1,{LONG}\n", "line 2"),
    ("rows", f"qid,label,score\n{LONG}\0,1,1\n", "NUL"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "words"), FILES)
def test_a_file_is_refused(tmp_path, name, content, words):
    refused(tmp_path, name, content, words)


@pytest.mark.parametrize(
    ("labels", "scores", "sizes", "words"),
    [
        (b"1 qid:1 1:2\n1 qid:1 1:20 qid:2 1:3\n", b"1\n2\n", None, "labels, line 2: qid: must appear once.*joined"),
        (b"1 qid:1 1:2\n1 qid:10 qid:2 1:3\n", b"1\n2\n", None, "labels, line 2: qid: must appear once"),
        (b"1 qid:1\nhigh qid:1\n", b"1\n2\n", None, "labels, line 2: a line must begin with a grade.*got 'high qid:1'"),
        (b"nan qid:1\n", b"1\n", None, "labels, line 1: .*a finite number"),
        (b"9007199254740993 qid:1\n", b"1\n", None, r"labels, line 1: an integer must be at most 2\^53.*got '9007"),
        (b"1 qid:1\n", b"9007199254740993\n", None, r"scores, line 1: an integer must be at most 2\^53"),
        (b"1 qid:1 # \xe9\n1 qid:\xe9\n", b"1\n1\n", None, "labels, line 2: an id must be text in UTF-8"),
        (b"1 qid:1\n1 1:2\n", b"1\n2\n", None, "labels, line 2: either all lines or none must have qid:ID"),
        (b"1 1:2\n\n1 qid:1\n", b"1\n2\n", None, "labels, line 3: either all lines or none must have qid:ID"),
        (b"1 qid: 7\n", b"1\n", None, "labels, line 1: qid: must be followed by the id"),
        (b"1 qid:1\n1 qid:1\n", b"1\n", None, "scores: must have one score for each of the 2 rows of .*labels; got 1"),
        (b"1 qid:1\n", b"1\n2\n", None, "for each of the 1 rows of .* got 2"),
        (b"1 qid:1\n", b"nan\n", None, "scores, line 1: a line must be one score"),
        (b"1 qid:1\n", b"7 0.5\n", None, "scores, line 1: a line must be one score.*got '7 0.5'"),
        (b"# none\n", b"", None, "labels: has no rows"),
        (b"1 1:2\n", b"1\n", None, "labels: must have qid:ID in every line, or a file labels.query"),
        (b"1 1:2\n", b"1\n", b"2\n", "labels.query: sizes must sum to the 1 rows of labels; got 2"),
        (b"1 1:2\n", b"1\n", b"1\n0\n", "labels.query, line 2: a line must be a query size"),
        (b"1 1:2\n", b"1\n", b"9" * 5000, "labels.query, line 1: a line must be a query size"),
        (f"1 {LONG}\n2 qid:{LONG}".encode(), b"1\n", None, "labels, line 2"),
        (b"1 qid:1\n", LONG.encode(), None, "scores, line 1"),
        (b"1\n", b"1\n", LONG.encode(), "labels.query, line 1"),
    ],
)  # fmt: skip
def test_labels_and_scores_are_refused(tmp_path, labels, scores, sizes, words):
    for name, content in (("labels", labels), ("scores", scores), ("labels.query", sizes)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
    with pytest.raises(DataFileError, match=words) as caught:
        read_letor(tmp_path / "labels", tmp_path / "scores")
    assert len(str(caught.value).replace(str(tmp_path), "")) < 600
