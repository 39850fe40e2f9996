"""Files of every format, read line by line or all at once: what is read, and what is refused with which line."""

import csv
import gzip
import itertools
import json
import math
import os
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lanes import quick

from ndcg_ml import align, evaluate, evaluate_run
from ndcg_ml._files import opening as lines_module
from ndcg_ml._files import trec
from ndcg_ml._files.byte_ids import PADDING, Names, earlier
from ndcg_ml._files.cells import NUMBERS as NUMERIC
from ndcg_ml._files.cells import usual_numbers
from ndcg_ml._files.trec import QRELS, RUN, Form, trec_lines
from ndcg_ml.readers import DataFileError, read_columns, read_letor

LINE = b"301 Q0 doc1 1 2.5 tag\n"


def columns_of(block):
    topics = np.repeat(np.array(block.topics, dtype=object), block.lengths)
    return topics, block.documents, block.values, block.numbers


def lines(path, content, form=RUN):
    """Topic, document, value and number of every line."""
    path.write_bytes(content)
    blocks = list(trec_lines(path, form))
    return [row for block in blocks for row in zip(*columns_of(block), strict=True)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"301 Q0 doc1 1 2.5 tag\n", [(b"301", b"doc1", 2.5, 1)]),
        (b"301 Q0 doc1 1 2.5 tag", [(b"301", b"doc1", 2.5, 1)]),
        (b"301\tQ0\tdoc1\t1\t  2.5\ttag\r\n3 Q0 d 1 -1e-3 t\r\n", [(b"301", b"doc1", 2.5, 1), (b"3", b"d", -0.001, 2)]),
        (b"301 Q0 doc1 1 2.5 #tag\r302 Q0 d 1 3 t\r", [(b"301", b"doc1", 2.5, 1), (b"302", b"d", 3.0, 2)]),
        (b"\n \t\n  301 Q0 doc1 1 2.5 tag  \n\n", [(b"301", b"doc1", 2.5, 3)]),
        (b"# a comment of six words\n301 Q0 a#b 1 2.5 tag\n  # 1 2 3 4 5\n", [(b"301", b"a#b", 2.5, 2)]),
        (b"3#1 Q0 #b 1 2.5 tag\n", [(b"3#1", b"#b", 2.5, 1)]),
        (b"301 Q0 doc1 1 2.5 tag and more\n302 Q0 d 0 1 t\n", [(b"301", b"doc1", 2.5, 1), (b"302", b"d", 1.0, 2)]),
        (b"301 Q0 doc1 1 2.5 2.5\n301 Q0 d 1 2 v2 7\n", [(b"301", b"doc1", 2.5, 1), (b"301", b"d", 2.0, 2)]),
        (b"301 Q0 doc1 first 2.5 tag\n", [(b"301", b"doc1", 2.5, 1)]),
        (b"301 Q0 d 1 -inf tag\n301 Q0 e 1 inf tag\n", [(b"301", b"d", -math.inf, 1), (b"301", b"e", math.inf, 2)]),
        (b"\xef\xbb\xbf301 Q0 d\xc3\xa9 1 1 \xff\n", [(b"301", b"d\xc3\xa9", 1.0, 1)]),
        (b"0301 Q0 1e3 1 1 tag\n#\n\n \n\t\n\x0b\n\x0c\n", [(b"0301", b"1e3", 1.0, 1)]),
        # 7 and 5 columns: as many as two lines of 6
        (b"1 Q0 d 1 2 t u\n2 Q0 e 1 3 t\n", [(b"1", b"d", 2.0, 1), (b"2", b"e", 3.0, 2)]),
    ],
)  # fmt: skip
def test_lines_of_a_run(tmp_path, content, expected):
    assert lines(tmp_path / "run", content) == expected
    assert lines(tmp_path / "run.gz", gzip.compress(content)) == expected


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


@pytest.mark.parametrize("tag", [b"BM25 k1 = 0.9 b = 0.4", b"v2 seed 7 8 9", b"a b c d e 5 1 0", b"run Q0 of 3 k each"])
def test_a_tag_of_several_words_is_no_second_line(tmp_path, tag):
    content = b"301 Q0 a 1 0.9 " + tag + b"\n301 Q0 b 2 0.8 t\n"
    assert [row[1] for row in lines(tmp_path / "run", content)] == [b"a", b"b"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
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


def letor(folder, labels, scores, sizes=None):
    (folder / "labels").write_bytes(labels)
    (folder / "scores").write_bytes(scores)
    if sizes is not None:
        (folder / "labels.query").write_bytes(sizes)
    return read_letor(folder / "labels", str(folder / "scores"))


def test_labels_with_query_ids_or_a_side_file_of_sizes(tmp_path):
    rows = letor(
        tmp_path, b"2 qid:07 1:0.5 # docid = a\n\n# all\r\n0.5\tqid:7 # x\n-1 qid:07 3:1\n", b"1.5\n-inf\r\n0\n\n"
    )
    assert rows.y_true.tolist() == [2.0, 0.5, -1.0]
    assert rows.y_score.tolist() == [1.5, -math.inf, 0.0]
    assert rows.qid.tolist() == ["07", "7", "07"]
    assert evaluate(**rows.arguments(), flavor="trec_eval[ties=first]").per_query.qid.tolist() == ["07", "7"]
    rows = letor(tmp_path, b"2 1:0.5\n0\n1 2:1\n", b"3\n2\n1\n", b"1\n" + b"2".zfill(18))
    assert rows.qid.tolist() == ["1", "2", "2"]


CSV = 'docno,score,more; or less,label,qid\nd1,0.5,x,2,07\n"d,2",-inf,y,,07\nd\xe9,1e-3,z,nan,8\n'


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
        words = rf"{name}: a line must have at most {longest} MiB; .* at byte {len(start)}"
        with pytest.raises(DataFileError, match="table must name its topics" if reader == "header" else words):
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
    assert len(lines(tmp_path / "run", b"301 Q0 doc 1 2.5 " + b"x" * 83)) == 1
    with pytest.raises(DataFileError, match=f"at byte {len(content + end)}"):
        lines(tmp_path / "run", content + end + b"x" * 200 + end)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("content", [b"q1 Q0 d1 1 1.0 t\n" * 999, b'{"q1": {' + b" " * 9999 + b'"d1": 1}}'])
def test_a_file_that_unpacks_to_more_bytes_than_the_limit_is_refused(tmp_path, monkeypatch, pack, content):
    (tmp_path / "run").write_bytes(pack(content))
    monkeypatch.setenv("NDCG_ML_MAX_BYTES", "9999")
    with pytest.raises(DataFileError, match=r"run: must have at most 9999 bytes when unpacked; got more\."):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run", flavor="ranx")
    for bad in ("1e9", "0", "-1", "\u0663"):
        monkeypatch.setenv("NDCG_ML_MAX_BYTES", bad)
        with pytest.raises(ValueError, match=f"NDCG_ML_MAX_BYTES must be a positive integer; got '{bad}'"):
            evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")
    monkeypatch.setenv("NDCG_ML_MAX_BYTES", str(len(content)))
    assert evaluate_run({"q1": {"d1": 1}}, tmp_path / "run", flavor="ranx[duplicates=first]").value == 1


@pytest.mark.parametrize("packer", ["bz2", "lzma", "compression.zstd"])
def test_files_of_other_packers_are_named(tmp_path, packer):
    packed = pytest.importorskip(packer).compress(b"q1 Q0 d1 1 1.0 t\n")
    (tmp_path / "run").write_bytes(packed)
    name = {"lzma": "xz", "compression.zstd": "zstd"}.get(packer, packer)
    with pytest.raises(DataFileError, match=rf"run: must be plain text or compressed by gzip; got {name}\. Unpack"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


# -- qrels and runs as TREC, JSONL, JSON, CSV, BEIR's TSV and Parquet: one value, and errors that name the line


JUDGEMENTS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "07": {"é\t": 4, "d1": -1}, "7": {"d1": 3}}
SYSTEM = {"7": {"d9": 2.5, "d1": -1e-3}, "q1": {"d3": 0.5, "d7": 0.5, "d1": 0.1}, "07": {"é\t": 1.0}, "q9": {"d1": 1.0}}
RANKED = {"q1": ["d7", "d1", "d3"], "7": ["d1"], "07": []}


def json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def rows(data, value):
    return [{"qid": q, "docno": d, value: v} for q, listed in data.items() for d, v in listed.items()]


def delimited(data, names, separator=","):
    body = [separator.join([q, f'"{d}"', repr(v)]) for q, listed in data.items() for d, v in listed.items()]
    return "\n".join([separator.join(names), *body, ""])


def written(data, value):
    """The same data in every format of text."""
    beir = ["query-id", "corpus-id", "score"]
    return {
        "jsonl of documents": json_lines(rows(data, value)),
        "jsonl of BEIR": json_lines(
            dict(zip(beir, each.values(), strict=True)) | {"more": [1, {"a": None}]} for each in rows(data, value)
        ),
        "json": json.dumps(data),
        "json, indented": json.dumps(data, indent=2),
        "json, strangely": json.dumps(data).replace(": {", ":\n\n { ").replace(", ", "\n,"),
        "csv": delimited(data, ["qid", "docno", value]),
        "csv with semicolons": delimited(data, ["qid", "docno", value], ";"),
        "tsv": delimited(data, ["qid", "docno", value], "\t"),
        "BEIR": delimited(data, beir, "\t"),
    }


@pytest.mark.parametrize("form", written(JUDGEMENTS, "label"))
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_format_gives_the_value_of_the_dicts(tmp_path, form, packed, end):
    expected = evaluate_run(JUDGEMENTS, SYSTEM, k=(1, 3, None), queries="both")
    for name, data, value in (("qrels", JUDGEMENTS, "label"), ("run", SYSTEM, "score")):
        content = ("\ufeff" + written(data, value)[form].replace("\n", end)).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    read, write = os.pipe()
    os.write(write, (tmp_path / "run").read_bytes())
    os.close(write)
    for pair in (
        (tmp_path / "qrels", SYSTEM),
        (JUDGEMENTS, f"/dev/fd/{read}" if os.name == "posix" else tmp_path / "run"),
        (tmp_path / "qrels", str(tmp_path / "run")),
    ):
        found = evaluate_run(*pair, k=(1, 3, None), queries="both")
        assert found.value == expected.value
        assert found.per_query.qid.tolist() == expected.per_query.qid.tolist()
    os.close(read)
    data, files = align(JUDGEMENTS, SYSTEM), align(tmp_path / "qrels", tmp_path / "run")
    for name in ("qid", "group", "y_true", "y_score", "retrieved", "doc_id"):
        assert np.array_equal(getattr(data, name), getattr(files, name), equal_nan=name == "y_true"), name


TRUTHS, GRADES, LONG_ID = {"q1": {"d1": True, "d2": False, "d3": 1}}, {"q1": {"d1": 2, "d3": 1}}, "d" + "x" * 140_000
READ = [
    *(("run", json.dumps(RANKED).replace(*new), RANKED) for new in (("", ""), (",", ",\n"), ("{", "{" + "\n" * 5000))),
    ("run", json.dumps(RANKED, indent=1), RANKED),
    ("run", '{"7": [12, "13", 9007199254740993]}\n', {"7": ["12", "13", "9007199254740993"]}),
    ("run", json_lines({**row, "query": 7} for row in rows(SYSTEM, "score")) + "\n", SYSTEM),
    ("run", "\ufeff\n" + json_lines({"text": "x" * 9999, **row} for row in rows(SYSTEM, "score")), SYSTEM),
    ("run", f"q1 Q0 {LONG_ID} 1 1.5 t\n", {"q1": {LONG_ID: 1.5}}),
    ("qrels", json.dumps(TRUTHS), TRUTHS),
    ("qrels", json_lines(rows(TRUTHS, "label")), TRUTHS),
    ("qrels", json_lines(rows(JUDGEMENTS, "grade")), JUDGEMENTS),
    # Comments of TREC do not define the format.
    ("qrels", "# topic\titeration\tdocno\tgrade\nq1\t0\td1\t2\nq1\t0\td3\t1\n", GRADES),
    ("qrels", "# docno,corpus-id\nq1 0 d1 2\nq1 0 d3 1\n", GRADES),
    ("qrels", "\n  # {\nq1 0 d1 2\nq1 0 d3 1\n", GRADES),
    *(("qrels", f"{topic} 0 d1 2\n", {topic: {"d1": 2}}) for topic in ("{3F2504E0}", "[1]", "{", "[", "{'a'}")),
    # Topics may be called as keys are.
    *(("run", f'{{"{topic}": {{"d1": 1}}}}', {topic: {"d1": 1}}) for topic in ("qid", "query-id", "query_id")),
    *(("run", f'{{"{topic}": ["d1"]}}', {topic: ["d1"]}) for topic in ("qid", "query-id", "query_id")),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "content", "data"), READ)
def test_a_file_reads_as_these_dicts(tmp_path, name, content, data):
    (tmp_path / name).write_text(content, encoding="utf-8")
    other = {topic: dict.fromkeys(documents, 1) for topic, documents in data.items()} | {"q1": {"d3": 2, "d1": 1}}
    sides = ("qrels", "run") if name == "run" else ("run", "qrels")
    found, expected = (align(**dict(zip(sides, (other, each), strict=True))) for each in (tmp_path / name, data))
    for column in ("qid", "group", "y_true", "y_score", "retrieved", "doc_id"):
        assert np.array_equal(getattr(found, column), getattr(expected, column), equal_nan=column == "y_true"), column
    assert found.qrels_only.tolist() == expected.qrels_only.tolist()  # an empty list is an answer


def test_predictions_of_sentence_transformers(tmp_path):
    lists = {q: [{"corpus_id": d, "score": s} for d, s in docs.items()] for q, docs in SYSTEM.items()}
    (tmp_path / "run").write_text(
        json_lines({"query_id": q, "query": "?", "results": docs} for q, docs in lists.items())
    )
    assert evaluate_run(JUDGEMENTS, tmp_path / "run").value == evaluate_run(JUDGEMENTS, SYSTEM).value


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
        if name == "qrels" and value == "NaN":  # the document is unjudged
            with pytest.warns(UserWarning, match="no judged document"):
                assert np.isnan(align(**sides).y_true).all()
        elif value == "1" or (name == "run" and value != "NaN"):
            assert evaluate_run(**sides, flavor="sklearn").value == 1.0
        else:
            words = "finite, or empty" if name == "qrels" else "a number, and not NaN"
            with pytest.raises(DataFileError, match=f"{name}, line .*must be {words}"):
                evaluate_run(**sides)


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


TABLE = [
    {"qid": "7", "label": 2, "score": 0.3},
    {"qid": 7, "label": None, "score": -1},
    {"qid": "8\0", "label": 1.5, "score": 2},
]


def test_a_table_of_json_lines(tmp_path):
    (tmp_path / "rows").write_text(json_lines(TABLE))
    found = read_columns(tmp_path / "rows")
    assert found.qid.tolist() == ["7", "7", "8\0"]
    assert np.array_equal(found.y_true, [2, math.nan, 1.5], equal_nan=True)
    assert found.y_score.tolist() == [0.3, -1, 2]
    assert found.doc_id is None
    (tmp_path / "rows").write_text(
        json_lines({"query": r["qid"], "s": r["score"], "l": 1, "docno": i} for i, r in enumerate(TABLE))
    )
    found = read_columns(tmp_path / "rows", {"score": "s", "qid": "query", "label": "l"})
    assert found.doc_id.tolist() == ["0", "1", "2"]
    assert evaluate(**found.arguments(), flavor="trec_eval").n_queries == 2


# -- blocks of lines read all at once: the same columns and the same errors as line by line


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-(10**9), 10**9, places=6, allow_nan=False).map(str),
    st.integers(-(10**19), 10**19).map(str),
    st.from_regex(r"[+-]?[0-9]{0,12}\.?[0-9]{1,12}", fullmatch=True),
)
ODD_NUMBERS = st.sampled_from(
    ["inf", "-inf", "nan", "1_0", "0x1", ".", "-", "-.", "5.", ".5", "--1", "1-", "1.2.3", "+3", "1e3", "", "-0", "one"]
)
WORDS = st.one_of(
    st.sampled_from(["1", "07", "a", "doc0000017", "é", "\U0001f600", "#b", "x#", "q\x0bq", "\x1cp", "\x85", "x" * 70]),
    st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True),
)
GAPS = st.sampled_from([" ", " ", " ", "\t", "  ", " \t", "\x0c"])
ENDS = st.sampled_from(
    ["\n", "\n", "\n", "\n", "\r\n", "\r", " \n", "\t\r\n", "\n\n", "\n \n", "\n# a b c\n", "\r\ufeff"]
)


CSV_FORM = Form("qrels", ("qid", "x", "docno", "label"), {"qid": 0, "docno": 2, "label": 3}, delimiter=",")
TSV_FORM = Form("a run", ("qid", "docno", "score"), {"qid": 0, "docno": 1, "score": 2}, delimiter="\t")


@st.composite
def files(draw, odd):
    """Files in the form of qrels or a run; if odd, with lines of which some are refused."""
    form = draw(st.sampled_from([QRELS, RUN, CSV_FORM, TSV_FORM]))
    numbers = st.one_of(NUMBERS, ODD_NUMBERS) if odd else NUMBERS
    gaps, ends = (GAPS, ENDS) if odd else (st.just(form.delimiter or " "), st.just("\n"))
    if odd and form.delimiter:
        gaps = st.sampled_from([form.delimiter] * 9 + [f"{form.delimiter} ", '"', " "])
        ends = st.sampled_from(["\n"] * 9 + ["\r\n", "\n\n", '"\n'])
    text = draw(st.sampled_from(["", "\ufeff", "\n", "# c\n", " "])) if odd else ""
    topic = "1"
    for _ in range(draw(st.integers(0, 12))):
        topic = draw(st.one_of(st.just(topic), WORDS)) if odd else topic
        columns = [draw(WORDS) for _ in form.columns]
        columns[0], columns[[*form.used.values()][2]] = topic, draw(numbers)
        extra = draw(st.sampled_from([0] * 12 + [-1, 1, 2])) if odd else 0
        columns = columns[:extra] if extra < 0 else [*columns, *(draw(st.one_of(WORDS, numbers)) for _ in range(extra))]
        text += "".join(column + draw(gaps) for column in columns[:-1]) + columns[-1] + draw(ends)
    content = (text[:-1] if draw(st.booleans()) else text).encode()
    return form, gzip.compress(content) if draw(st.booleans()) else content


def by_hand(content, form):
    """The lines of a file, read as simply as possible."""
    text = gzip.decompress(content) if content.startswith(b"\x1f") else content
    lines = [line.removeprefix(BOM) for line in text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")]
    if form.delimiter:
        rows = csv.reader([line.decode() for line in lines], delimiter=form.delimiter, skipinitialspace=True)
        rows = [([cell.encode() for cell in row], rows.line_num) for row in rows if row]
    else:
        rows = [(line.split(), number) for number, line in enumerate(lines, 1)]
        rows = [(words, number) for words, number in rows if words and not words[0].startswith(b"#")]
    topic, document, value = form.used.values()
    return [(words[topic], words[document], float(words[value]).hex(), number) for words, number in rows]


def read(path, form):
    try:
        blocks = list(trec_lines(path, form))
    except DataFileError as error:
        return str(error)
    columns = (zip(*columns_of(block), strict=True) for block in blocks)
    return [(topic, name, value.hex(), number) for rows in columns for topic, name, value, number in rows]


@pytest.mark.parametrize("odd", [False, True])
@given(data=st.data())
def test_all_at_once_in_blocks_and_one_by_one_read_the_same(odd, data):
    form, content = data.draw(files(odd))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "file")
        path.write_bytes(content)
        at_once = read(path, form)
        assert isinstance(at_once, str) or at_once == by_hand(content, form)
        for size in (1, 40):
            patch.setattr(lines_module, "_BLOCK", size)
            in_blocks = read(path, form)
            assert in_blocks == at_once or {type(in_blocks), type(at_once)} == {str}
        patch.undo()
        patch.setattr(trec, "_parse_block", lambda *_: None)
        assert read(path, form) == at_once


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "\r"])
@pytest.mark.parametrize("gap", [" ", "\t", "  \t "])
@pytest.mark.parametrize("score", ["1", "-3.25", ".5", "5.", "12.345678", "0.12345678901234567", "1e-7", "-inf"])
def test_the_usual_lines_are_read_at_once(tmp_path, monkeypatch, end, gap, score):
    monkeypatch.setattr(trec, "_parse_lines", None)
    line = gap.join(["7", "Q0", "d1", "1", score, "tag"])
    (tmp_path / "run").write_text((line + end) * 3, newline="")
    assert [row[1:] for row in read(tmp_path / "run", RUN)] == [(b"d1", float(score).hex(), n) for n in (1, 2, 3)]


def parsed(coded, what="label"):
    """The numbers of these tokens, all at once."""
    text = np.frombuffer(b" ".join(coded) + PADDING, dtype=np.uint8)
    sizes = np.array([len(token) for token in coded])
    return trec._parse_numbers(text, np.cumsum(sizes + 1) - sizes - 1, sizes, what)


@given(st.lists(st.one_of(NUMBERS, ODD_NUMBERS.filter(bool)), min_size=1, max_size=9), st.sampled_from(sorted(NUMERIC)))
def test_numbers_are_pythons(tokens, what):
    found, expected = parsed([token.encode() for token in tokens], what), usual_numbers(tokens, what, text=True)
    assert (found is None) == (expected is None)
    assert found is None or [value.hex() for value in found.tolist()] == [value.hex() for value in expected.tolist()]


def test_usual_numbers_are_read_at_once(monkeypatch):
    monkeypatch.setattr(trec, "usual_numbers", None)
    coded = b"7 -9 0 -0 -3.25 .5 -.5 5. 12.345678 12345678.12345678 9007199254740992".split()
    assert [value.hex() for value in parsed(coded).tolist()] == [float(token).hex() for token in coded]


def test_numbers_with_more_digits_than_float64_holds_exactly():
    whole = np.random.default_rng(0).integers(2**53, 10**16, 500).tolist()
    coded = [f"{number // 10**at}.{number % 10**at:0{at}}".encode() for number in whole for at in (1, 3, 12)]
    # The first begins like a shorter number in its first eighteen characters.
    coded += [b"1.2345678901234567890", b"12345678901234567890.5", b"9007199254740992", b"-9007199254740992.0"]
    assert parsed(coded).tolist() == [float(token) for token in coded]


# Ids with trailing NULs, with lengths near the limits of words and columns, and that differ beyond the columns.
LONG = [b"p" * 64 + end for end in (b"c", b"a", b"b", b"aa", b"a\0", b"")]
ID = st.sampled_from([b"", b"\0", b"a", b"a\0", b"x" * 8, b"x" * 9, b"\xff" * 8, b"\xff" * 7, b"p" * 63 + b"q", *LONG])
ROWS = st.one_of(
    st.lists(st.tuples(st.integers(0, 2), ids), min_size=size, max_size=2 * size + 9)
    for ids, size in ((ID | st.binary(max_size=70), 0), (ID, 16), (st.sampled_from(LONG), 6))
)


def names_of(ids):
    names = Names()
    names.extend(ids)
    return names


def previous(rows):
    last, found = {}, []
    for i, row in enumerate(rows):
        found.append(last.get(row, -1))
        last[row] = i
    return found


@given(ROWS, st.sampled_from([1, 2, 20]))
@example([(0, b"x" * size) for size in (1, 9, 9, 17, 9)], 1)
def test_names_are_the_bytes_they_were_made_of(rows, step):
    ids, names = [each for _, each in rows], Names()
    for start in range(0, len(ids) + 1, step):
        names.add(names_of(ids[start : start + step]))
    assert list(names) == ids
    assert names.changes().tolist() == [i for i, each in enumerate(ids) if i == 0 or each != ids[i - 1]]
    assert all(names.long_rows(slice(i, i + 1)) == [i] * (len(each) > 64) for i, each in enumerate(ids))
    at = np.arange(len(ids))
    assert names.are_equal(at, at[::-1]).tolist() == [one == other for one, other in zip(ids, ids[::-1], strict=True)]


@pytest.mark.parametrize("bits", [64, 3, 0])
@pytest.mark.parametrize("chunk", [1 << 18, 2])
@given(ROWS)
def test_the_same_name_is_found_whatever_its_hash(bits, chunk, rows):
    topic = np.array([topic for topic, _ in rows], dtype=np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ndcg_ml._files.byte_ids._CHUNK", chunk)
        hashes = Names.hashes
        patch.setattr(
            Names, "hashes", lambda self, rows: hashes(self, rows) & np.uint64(((1 << bits) - 1) << 64 - bits)
        )
        assert earlier(topic, names_of([each for _, each in rows])).tolist() == previous(rows)


@given(ROWS)
def test_byte_order(rows):
    names = names_of([each for _, each in rows])
    for some in (np.arange(0, len(rows), 2), np.arange(len(rows))[::-1]):
        topic = np.array([rows[i][0] for i in some], dtype=np.int64)
        assert [rows[i] for i in names.order_by_bytes(topic, some)] == sorted(rows[i] for i in some)


def test_similar_ids_have_different_hashes():
    names = names_of([b"doc%07d" % i for i in range(200_000)])
    hashes = names.hashes(slice(0, len(names)))
    for bits in (40, 48):
        n_pairs = 200_000**2 / 2
        assert 200_000 - np.unique(hashes >> np.uint64(64 - bits)).size < 6 + 3 * n_pairs / 2**bits
