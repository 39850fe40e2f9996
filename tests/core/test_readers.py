"""Files of qrels, runs, labels, scores and columns: what is read, and what is refused with which line."""

from __future__ import annotations

import gzip
import itertools
import math
import os
import threading
import time
import tracemalloc

import numpy as np
import pytest
from lanes import quick

from ndcg_ml import evaluate
from ndcg_ml._files import opening as lines_module
from ndcg_ml._files.trec import QRELS, RUN, trec_lines
from ndcg_ml.readers import DataFileError, read_columns, read_letor
from ndcg_ml.runs import evaluate_run

LINE = b"301 Q0 doc1 1 2.5 tag\n"


def columns_of(block):
    topics = np.repeat(np.array(block.topics, dtype=object), block.lengths)
    return topics, block.documents, block.values, block.numbers


def lines(path, content, form=RUN):
    """Topic, document, value and number of every line."""
    path.write_bytes(content)
    blocks = list(trec_lines(path, form))
    return [row for block in blocks for row in zip(*columns_of(block), strict=True)]


# -- TREC -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"301 Q0 doc1 1 2.5 tag\n", [(b"301", b"doc1", 2.5, 1)]),
        (b"301 Q0 doc1 1 2.5 tag", [(b"301", b"doc1", 2.5, 1)]),
        (b"301\tQ0\tdoc1\t1\t  2.5\ttag\r\n3 Q0 d 1 -1e-3 t\r\n", [(b"301", b"doc1", 2.5, 1), (b"3", b"d", -0.001, 2)]),
        (b"301 Q0 doc1 1 2.5 tag\r302 Q0 d 1 3 t\r", [(b"301", b"doc1", 2.5, 1), (b"302", b"d", 3.0, 2)]),
        (b"\n \t\n  301 Q0 doc1 1 2.5 tag  \n\n", [(b"301", b"doc1", 2.5, 3)]),
        (b"# a comment of six words\n301 Q0 a#b 1 2.5 tag\n  # 1 2 3 4 5\n", [(b"301", b"a#b", 2.5, 2)]),
        (b"3#1 Q0 #b 1 2.5 tag\n", [(b"3#1", b"#b", 2.5, 1)]),
        (b"301 Q0 doc1 1 2.5 tag and more\n302 Q0 d 0 1 t\n", [(b"301", b"doc1", 2.5, 1), (b"302", b"d", 1.0, 2)]),
        (b"301 Q0 doc1 1 2.5 2.5\n301 Q0 d 1 2 v2 7\n", [(b"301", b"doc1", 2.5, 1), (b"301", b"d", 2.0, 2)]),
        (b"301 Q0 doc1 first 2.5 tag\n", [(b"301", b"doc1", 2.5, 1)]),
        (b"301 Q0 d 1 -inf tag\n301 Q0 e 1 inf tag\n", [(b"301", b"d", -math.inf, 1), (b"301", b"e", math.inf, 2)]),
        (b"\xef\xbb\xbf301 Q0 d\xc3\xa9 1 1 \xff\n", [(b"301", b"d\xc3\xa9", 1.0, 1)]),
        (b"0301 Q0 1e3 1 1 tag\n", [(b"0301", b"1e3", 1.0, 1)]),
        # 7 and 5 columns: as many as two lines of 6
        (b"1 Q0 d 1 2 t u\n2 Q0 e 1 3 t\n", [(b"1", b"d", 2.0, 1), (b"2", b"e", 3.0, 2)]),
    ],
)  # fmt: skip
def test_lines_of_a_run(tmp_path, content, expected):
    assert lines(tmp_path / "run", content) == expected
    assert lines(tmp_path / "run.gz", gzip.compress(content)) == expected


def test_lines_of_qrels(tmp_path):
    content = b"301 0 d1 1\n# one two three\n301\tQ0\td2\t-2\n\n301 0 d3 0.5\n"
    assert lines(tmp_path / "qrels", content, QRELS) == [
        (b"301", b"d1", 1.0, 1),
        (b"301", b"d2", -2.0, 3),
        (b"301", b"d3", 0.5, 5),
    ]


@pytest.mark.parametrize(
    ("form", "bad", "words"),
    [
        (RUN, b"301 Q0 d 1 2.5", r"a run must have 6 or more columns \(topic Q0 document rank score tag\); got 5"),
        (RUN, b"301 Q0 d", "got 3; got '301 Q0 d'"),
        (RUN, b"301", "got 1"),
        (RUN, b"301 Q0 d 1 high tag", "column 5, the score, must be a number, and not NaN.*got 'high'"),
        (RUN, b"301 Q0 d 1 nan tag", "must be a number, and not NaN.*got 'nan'"),
        (RUN, b"301 Q0 d 1 1_000 tag", "got '1_000'"),
        (RUN, b"301 Q0 d 1 0x10 tag", "got '0x10'"),
        (RUN, b"301 Q0 my doc 1 2.5 tag", "got 7, and 'doc' where the rank should be. An id cannot contain a blank"),
        (RUN, b"301 Q0 56 11210 1 2.5 tag", "got 7, and '2.5', a number, where the tag should begin. An id cannot"),
        (RUN, b"301 Q0 56 11210 8 1 2.5 tag", "got 8, and '1', a number, where the tag should begin"),
        (RUN, b"301,Q0,d,1,2.5,tag", "6 or more columns.* got 1"),
        (RUN, b"301 Q0 d 1 " + b"x" * 500 + b" tag", r"got 'x{76}\.\.\.x{19}'\.$"),
        (RUN, b"301 Q0 d 1 \xff tag", r"got '\\\\xff'"),
        (QRELS, b"301 0 d", r"a line of qrels must have 4 columns \(topic iteration document grade\); got 3"),
        (QRELS, b"301 0 d 1 2", "must have 4 columns .* got 5"),
        (QRELS, b"301 Q0 d 1 2.5 tag", "must have 4 columns .* got 6"),
        (QRELS, b"301 0 d yes", "column 4, the grade, must be a finite number; got 'yes'"),
        (QRELS, b"301 0 d nan", "must be a finite number; got 'nan'"),
        (QRELS, b"301 0 d -inf", "must be a finite number; got '-inf'"),
        (QRELS, b"301 0 d 1_0", "must be a finite number; got '1_0'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [0, 3])
def test_a_malformed_line_is_refused_with_file_and_number(tmp_path, form, bad, words, before):
    good = LINE if form is RUN else b"301 0 d 1\n"
    content = good * before + bad + b"\n" + good
    with pytest.raises(DataFileError, match=rf"the file, line {before + 1}: .*{words}"):
        lines(tmp_path / "the file", content, form)
    with pytest.raises(DataFileError, match=rf"the file, line {before + 3}: .*{words}"):
        lines(tmp_path / "the file", b"\n# comment\n" + content, form)


def test_lines_that_make_up_for_each_other_are_refused(tmp_path):
    # 12 words on two lines, as two lines of a run have.
    with pytest.raises(DataFileError, match=r"line 1: .* got 5"):
        lines(tmp_path / "run", b"301 Q0 d 1 2.5\ntag 302 Q0 d 1 2.5 tag\n")
    with pytest.raises(DataFileError, match=r"line 2: .* got 5"):
        lines(tmp_path / "qrels", b"q 0 a 1\nq 0 b 0 5\n0 c 2\nq 0 d 1\n", QRELS)


BOM = b"\xef\xbb\xbf"
WHOLE = b"q1 Q0 a 1 0.9 bm25\nq2 Q0 b 1 0.9 bm25\nq2 Q0 c 2 0.1 bm25\n"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("block", [1 << 20, 5])
def test_files_with_byte_order_marks_one_after_another(tmp_path, monkeypatch, end, block):
    monkeypatch.setattr(lines_module, "_BLOCK", block)
    first, *others = WHOLE.replace(b"\n", end).splitlines(keepends=True)
    expected = lines(tmp_path / "run", WHOLE)
    assert lines(tmp_path / "run", BOM + first + BOM + b"".join(others)) == expected
    # A mark that does not begin a line is part of the id.
    assert lines(tmp_path / "run", WHOLE.replace(b" a ", b" " + BOM + b"a "))[0][1] == BOM + b"a"


@pytest.mark.parametrize(
    ("form", "content", "at"),
    [
        (RUN, WHOLE.replace(b"\n", b"", 1), 1),
        (RUN, WHOLE.replace(b"\n", b" ", 1), 1),
        (RUN, WHOLE.replace(b"\n", b"", 1).replace(b"Q0 b", b"0 b"), 1),
        (RUN, WHOLE.replace(b"\n", b" my tag", 1), 1),
        (RUN, BOM + WHOLE.replace(b"\n", BOM, 1), 1),
        (RUN, WHOLE + WHOLE[:-1] + WHOLE, 6),
        (RUN, b"301 Q0 a 1 0.9 bm25302 Q0 b 1 0.9 bm25 303 Q0 c 1 1 t\n", 1),
        (QRELS, b"q1 0 a 1\nq1 0 b 1q2 0 c 1\n", 2),
        (QRELS, b"301 0 b 1302 0 c 1\n", 1),
    ],
)
def test_two_lines_that_have_become_one_are_refused(tmp_path, form, content, at):
    with pytest.raises(DataFileError, match=f"line {at}: .*Two lines may have been joined by concatenating"):
        lines(tmp_path / "file", content, form)


@pytest.mark.parametrize("tag", [b"BM25 k1 = 0.9 b = 0.4", b"v2 seed 7 0.5", b"a b c d e", b"t 1 2 3", b"run of Q0 3"])
def test_a_tag_of_several_words_is_no_second_line(tmp_path, tag):
    content = b"301 Q0 a 1 0.9 " + tag + b"\n301 Q0 b 2 0.8 t\n"
    assert [row[1] for row in lines(tmp_path / "run", content)] == [b"a", b"b"]


def test_lines_after_a_long_one_are_checked_too(tmp_path):
    with pytest.raises(DataFileError, match=r"line 2: .* An id cannot contain a blank"):
        lines(tmp_path / "run", b"q1 Q0 d1 1 2.0 my tag\nq1 Q0 d 2 2 1.5 tag\nq1 Q0 d3 3 1.0 tag\n")


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("packed", [True, False])
def test_a_pipe_may_deliver_its_bytes_one_by_one(tmp_path, size, packed):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = gzip.compress(WHOLE) if packed else WHOLE

    def write():
        with open(pipe, "wb", buffering=0) as file:
            for start in range(0, len(content), size):
                file.write(content[start : start + size])
                time.sleep(0.02 if start == 0 else 0)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        blocks = list(trec_lines(pipe, RUN))
    finally:
        writer.join()
    assert [row for block in blocks for row in zip(*columns_of(block), strict=True)] == lines(tmp_path / "run", WHOLE)


@pytest.mark.parametrize("block", [1, 7, 22, 50, 400])
def test_blocks_are_seamless(tmp_path, monkeypatch, block):
    rng = np.random.default_rng(0)
    rows = [f"{i // 7} Q0 doc{rng.integers(10**9)} {i} {rng.normal()} t{' more' * (i % 5 == 0)}" for i in range(100)]
    for end in ("\n", "\r\n"):
        content = ("\ufeff" + end.join(rows) + end * 2).encode()
        expected = lines(tmp_path / "run", content)
        assert [row[3] for row in expected] == list(range(1, 101))
        monkeypatch.setattr(lines_module, "_BLOCK", block)
        assert lines(tmp_path / "run", content) == expected
        assert lines(tmp_path / "run", gzip.compress(content)) == expected
        with pytest.raises(DataFileError, match=r"line 102: .* got 2"):
            lines(tmp_path / "run", content + b"not good")
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has no lines; a line of a run must have 6"),
        (b"\n\n# nothing\n", "has no lines"),
        (LINE.decode().encode("utf-16"), "got a NUL byte. Save it as UTF-8"),
        (gzip.compress(LINE * 100, mtime=0)[:-12], "is damaged and cannot be unpacked"),
        (
            gzip.compress(LINE * 100, mtime=0)[:40] + b"\x00\x01" + gzip.compress(LINE * 100, mtime=0)[42:],
            "is damaged|NUL|line",
        ),
    ],
)
def test_files_that_are_no_run(tmp_path, content, words):
    with pytest.raises(DataFileError, match=rf"the file.*{words}"):
        lines(tmp_path / "the file", content)


# -- LETOR ----------------------------------------------------------------------------------------------------------


def letor(folder, labels, scores, sizes=None):
    (folder / "labels").write_bytes(labels)
    (folder / "scores").write_bytes(scores)
    if sizes is not None:
        (folder / "labels.query").write_bytes(sizes)
    return read_letor(folder / "labels", str(folder / "scores"))


def test_labels_with_query_ids_and_a_file_of_scores(tmp_path):
    rows = letor(
        tmp_path, b"2 qid:07 1:0.5 # docid = a\n\n# all\r\n0.5\tqid:7 # x\n-1 qid:07 3:1\n", b"1.5\n-inf\r\n0\n\n"
    )
    assert rows.y_true.tolist() == [2.0, 0.5, -1.0]
    assert rows.y_score.tolist() == [1.5, -math.inf, 0.0]
    assert rows.qid.tolist() == ["07", "7", "07"]
    assert evaluate(**rows.arguments(), flavor="trec_eval[ties=first]").per_query.qid.tolist() == ["07", "7"]


def test_labels_with_a_side_file_of_sizes(tmp_path):
    rows = letor(tmp_path, b"2 1:0.5\n0\n1 2:1\n", b"3\n2\n1\n", b"1\n2\n")
    assert rows.qid.tolist() == ["1", "2", "2"]


def test_lightgbms_example_is_read_whole(data_dir, tmp_path):
    labels = data_dir / "lightgbm_lambdarank" / "rank.test"
    (tmp_path / "scores").write_text("0.5\n" * 768)
    rows = read_letor(labels, tmp_path / "scores")
    sizes = np.loadtxt(f"{labels}.query", dtype=int)
    assert [rows.qid.tolist().count(str(i + 1)) for i in range(50)] == sizes.tolist()
    expected = [float(line.split()[0]) for line in labels.read_text().splitlines()]
    assert rows.y_true.tolist() == expected


@pytest.mark.parametrize(
    ("labels", "scores", "sizes", "words"),
    [
        (b"1 qid:1 1:2\n1 qid:1 1:20 qid:2 1:3\n", b"1\n2\n", None, "labels, line 2: qid: must appear once.*joined"),
        (b"1 qid:1 1:2\n1 qid:10 qid:2 1:3\n", b"1\n2\n", None, "labels, line 2: qid: must appear once"),
        (b"1 qid:1\nhigh qid:1\n", b"1\n2\n", None, "labels, line 2: a line must begin with a grade.*got 'high qid:1'"),
        (b"nan qid:1\n", b"1\n", None, "labels, line 1: .*a finite number"),
        (b"9007199254740993 qid:1\n", b"1\n", None, r"labels, line 1: an integer must be at most 2\^53.*got '9007"),
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
    ],
)  # fmt: skip
def test_labels_and_scores_that_are_refused(tmp_path, labels, scores, sizes, words):
    with pytest.raises(DataFileError, match=words):
        letor(tmp_path, labels, scores, sizes)


# -- columns --------------------------------------------------------------------------------------------------------

CSV = 'docno,score,extra,label,qid\nd1,0.5,x,2,07\n"d,2",-inf,y,,07\nd\xe9,1e-3,z,nan,8\n'


@pytest.mark.parametrize(
    "content",
    [
        CSV.encode(),
        gzip.compress(CSV.encode(), mtime=0),
        b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode(),
        (CSV + "\n").encode(),
    ],
)
def test_csv(tmp_path, content):
    (tmp_path / "rows").write_bytes(content)
    rows = read_columns(tmp_path / "rows")
    np.testing.assert_array_equal(rows.y_true, [2.0, np.nan, np.nan])
    assert rows.y_score.tolist() == [0.5, -math.inf, 0.001]
    assert rows.qid.tolist() == ["07", "07", "8"]
    assert rows.doc_id.tolist() == ["d1", "d,2", "d\xe9"]


def test_tabs_and_no_document_ids(tmp_path):
    (tmp_path / "rows.tsv").write_text("qid\tlabel\tscore\na,b\t1\t2\n")
    rows = read_columns(str(tmp_path / "rows.tsv"))
    assert rows.qid.tolist() == ["a,b"]
    assert rows.doc_id is None
    assert evaluate(**rows.arguments()).value == 1.0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "qid,label\n1,2\n",
            "must have the columns qid, label, score .* score is missing. The file has 'qid', 'label'",
        ),
        ("qid,label,Score_\n", r"Did you mean 'Score_'\?$"),
        ("qid;label;score\n", "has no rows"),
        ("", "The file has none"),
        ("qid,label,score,score\n1,2,3,4\n", "must have each column once; got 'score' 2 times"),
        ("qid,label,score\n", "has no rows"),
        ("qid,label,score\na,1,2\nb,1\n", "line 3: must have 3 fields, like the header; got 2"),
        ("qid,label,score\na,1,2,3\n", "line 2: must have 3 fields, like the header; got 4"),
        ("qid,label,score\na,one,2\n", "line 2: label must be a number; got 'one'"),
        ("qid,label,score\na,1,1_0\n", "line 2: score must be a number; got '1_0'"),
        ("qid;label;score\na;1;0,5\n", "line 2: score must be a number; got '0,5'. Write a decimal point, not a comma"),
        ("qid,label,score\na,NA,1\n", "line 2: label must be a number; got 'NA'. Leave the cell empty if the doc"),
        ("qid,label,score\na,1,NA\n", r"line 2: score must be a number; got 'NA'\.$"),
        ("qid,label,score\na,1,\n", "line 2: score must be a number; got ''"),
        ("qid,label,score\na,1,1\na,1,nan\n", "line 3: score must be a number, and not NaN; got nan"),
        ("qid,label,score\na,inf,1\n", "line 2: label must be finite, or empty for an unjudged document; got inf"),
        ("qid,label,score\n,1,1\n", "line 2: qid must be an id; got ''"),
        ('qid,label,score\n"a"b,1,1\n', "line 2: not CSV"),
        ("qid,label,score\n\na,1,1\na,inf,1\n", "line 4: label must be finite"),
    ],
)
def test_columns_that_are_refused(tmp_path, content, words):
    (tmp_path / "rows").write_text(content)
    with pytest.raises(DataFileError, match=rf"rows.*{words}"):
        read_columns(tmp_path / "rows")


# -- lines without an end -------------------------------------------------------------------------------------------

MIB = 1 << 20


READERS = ("qrels", "run", "labels", "scores", "sizes", "csv", "header")
FILES = list(itertools.product(READERS, [False, True]))


@pytest.mark.parametrize(("reader", "packed"), quick([("run", True), *[(reader, False) for reader in READERS]], FILES))
def test_a_line_without_an_end_is_refused_before_it_is_in_memory(tmp_path, monkeypatch, reader, packed):
    # A packed file meets the limit that readers have; plain ones a quarter of it, which takes a quarter of the time.
    longest = 16 if packed else 4
    if not packed:
        monkeypatch.setattr(lines_module, "_LONGEST", longest * MIB)
    letor, csv = b"1 1:2\n", b"qid,label,score\n1,1,1\n"
    before = {"qrels": b"1 0 d 1\n", "run": LINE, "csv": csv, "header": b"", "scores": b"1\n", "sizes": b"1\n"}
    start = before.get(reader, letor)
    good = {"labels": letor, "scores": b"1\n", "labels.query": b"1\n", "table": csv}
    name = {"sizes": "labels.query", "csv": "table", "header": "table"}.get(reader, reader)
    content = start + b"x" * (7 * longest * MIB)
    for file, text in {**good, name: gzip.compress(content, 1) if packed else content}.items():
        (tmp_path / file).write_bytes(text)
    read = {
        "qrels": lambda: list(trec_lines(tmp_path / "qrels", QRELS)),
        "run": lambda: evaluate_run({"301": {"doc1": 1}}, tmp_path / "run"),
        "csv": lambda: read_columns(tmp_path / "table"),
        "header": lambda: read_columns(tmp_path / "table"),
    }.get(reader, lambda: read_letor(tmp_path / "labels", tmp_path / "scores"))
    del content
    tracemalloc.start()
    try:
        with pytest.raises(
            DataFileError, match=rf"{name}: a line must have at most {longest} MiB; .* at byte {len(start)}"
        ):
            read()
        assert tracemalloc.get_traced_memory()[1] < 5 * longest * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_file_may_be_longer_than_its_lines_may_be(tmp_path, monkeypatch, end):
    monkeypatch.setattr(lines_module, "_BLOCK", 64)
    monkeypatch.setattr(lines_module, "_LONGEST", 100)
    content = end.join(b"301 Q0 doc%d 1 2.5 tag" % i for i in range(100))
    assert [row[1] for row in lines(tmp_path / "run", content)] == [b"doc%d" % i for i in range(100)]
    with pytest.raises(DataFileError, match=f"at byte {len(content + end)}"):
        lines(tmp_path / "run", content + end + b"x" * 200 + end)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("content", [b"q1 Q0 d1 1 1.0 t\n" * 999, b'{"q1": {' + b" " * 9999 + b'"d1": 1}}'])
def test_a_file_that_unpacks_to_more_bytes_than_the_limit_is_refused(tmp_path, monkeypatch, pack, content):
    (tmp_path / "run").write_bytes(pack(content))
    monkeypatch.setenv("NDCG_ML_MAX_BYTES", "9999")
    with pytest.raises(DataFileError, match=r"run: must have at most 9999 bytes when unpacked; got more\."):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run", flavor="ranx")


@pytest.mark.parametrize("packer", ["bz2", "lzma", "compression.zstd"])
def test_files_of_other_packers_are_named(tmp_path, packer):
    packed = pytest.importorskip(packer).compress(b"q1 Q0 d1 1 1.0 t\n")
    (tmp_path / "run").write_bytes(packed)
    name = {"lzma": "xz", "compression.zstd": "zstd"}.get(packer, packer)
    with pytest.raises(DataFileError, match=rf"run: must be plain text or compressed by gzip; got {name}\. Unpack"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


def test_the_limit_of_bytes_is_an_integer(tmp_path, monkeypatch):
    monkeypatch.setenv("NDCG_ML_MAX_BYTES", "1e9")
    (tmp_path / "run").write_bytes(LINE)
    with pytest.raises(ValueError, match="NDCG_ML_MAX_BYTES must be a positive integer"):
        evaluate_run({"301": {"doc1": 1}}, tmp_path / "run")


# -- what a message shows of the data -------------------------------------------------------------------------------

LONG = "x" * 100_000


@pytest.mark.parametrize(
    "read",
    [
        lambda path: lines(path / "run", f"301 Q0 {LONG} 1 high tag\n".encode()),
        lambda path: lines(path / "run", f"301 Q0 d {LONG} 1 1 tag\n".encode()),
        lambda path: lines(path / "run", f"{LONG}\n".encode()),
        lambda path: letor(path, f"1 {LONG}\n2 qid:{LONG}".encode(), b"1\n"),
        lambda path: letor(path, b"1 qid:1\n", f"{LONG}\n".encode()),
        lambda path: letor(path, b"1\n", b"1\n", LONG.encode()),
        lambda path: table(path, f"{LONG},label,score\n"),
        lambda path: table(path, f"qid,label,score,{LONG}\n1,1,1\n"),
        lambda path: table(path, f"qid,label,score\n1,{LONG},1\n"),
        lambda path: table(path, f"qid,label,score\n1,1,{LONG}\n"),
        lambda path: table(path, f"qid,label,score\n{LONG}\0,1,1\n"),
        lambda path: evaluate_run({LONG: {"d": 1}}, {"q": {"d": 1.0}}),
        lambda path: evaluate_run({LONG: {"d": math.nan}}, {"q": {"d": 1.0}}),
        lambda path: evaluate_run({LONG: {"d": [1, 2]}}, {"q": {"d": 1.0}}),
        lambda path: evaluate_run({LONG: {}}, {"q": {"d": 1.0}}),
        lambda path: evaluate_run({"q": {LONG: math.inf}}, {"q": {"d": 1.0}}),
        lambda path: evaluate_run({"q": {"d": 1}}, {"q": [LONG, "d", LONG]}),
        lambda path: evaluate_run({"q": {"d": 1}}, {"q": [LONG.encode(), "d"]}),
        lambda path: evaluate_run({"q": {"d": 1}}, {"q": [LONG + "\ud800", "d"]}),
        lambda path: evaluate_run({"q": {"d": 1}}, {LONG: 5, "q": ["d"]}),
        lambda path: evaluate_run({LONG: {"d": -1, "e": 1}}, {LONG: ["e"]}, flavor="sklearn"),
        lambda path: evaluate_run(
            {"q": {"d": 1}, LONG: {"d": 1}}, {"q": ["d"]}, flavor="trec_eval[ideal=recall,empty=1]"
        ),
        lambda path: evaluate_run({"q": {"d": 1}}, {"q": ["d"]}, queries=LONG),
        lambda path: evaluate_run({10**5000: {"d": 1}}, {1: {"d": 1.0}}),
        lambda path: evaluate_run({1: {10**5000: 1}}, {1: [2]}),
    ],
    ids=map(str, range(25)),
)
def test_a_message_shows_part_of_one_line(tmp_path, read):
    with pytest.raises((ValueError, TypeError)) as caught:
        read(tmp_path)
    message = str(caught.value).replace(str(tmp_path), "")
    assert len(message) < 600
    assert "\n" not in message


def test_a_warning_shows_part_of_one_line():
    with pytest.warns(UserWarning, match="look like 'xxx") as caught:
        evaluate_run({"q": {LONG: 1}}, {"q": {"d": 1.0}})
    assert len(str(caught[0].message)) < 600


def table(folder, content):
    (folder / "table").write_text(content)
    return read_columns(folder / "table")
