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


@pytest.mark.parametrize("tag", [b"BM25 k1 = 0.9 b = 0.4", b"v2 seed 7 0.5", b"a b c d e", b"t 1 2 3", b"run of Q0 3"])
def test_a_tag_of_several_words_is_no_second_line(tmp_path, tag):
    content = b"301 Q0 a 1 0.9 " + tag + b"\n301 Q0 b 2 0.8 t\n"
    assert [row[1] for row in lines(tmp_path / "run", content)] == [b"a", b"b"]


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
    monkeypatch.setenv("NDCG_ML_MAX_BYTES", "1e9")
    with pytest.raises(ValueError, match="NDCG_ML_MAX_BYTES must be a positive integer"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


@pytest.mark.parametrize("packer", ["bz2", "lzma", "compression.zstd"])
def test_files_of_other_packers_are_named(tmp_path, packer):
    packed = pytest.importorskip(packer).compress(b"q1 Q0 d1 1 1.0 t\n")
    (tmp_path / "run").write_bytes(packed)
    name = {"lzma": "xz", "compression.zstd": "zstd"}.get(packer, packer)
    with pytest.raises(DataFileError, match=rf"run: must be plain text or compressed by gzip; got {name}\. Unpack"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")
