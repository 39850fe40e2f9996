"""Limits of the readers of files that no ordinary file meets: sizes, the largest numbers, one row, an odd line."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest

from ndcg_ml import align, evaluate_run
from ndcg_ml._files.lines import (
    DataFileError,
    MissingColumnError,
    blocks,
    chosen_columns,
    unpacked_limit,
)
from ndcg_ml.readers import read_columns, read_letor

# -- how long a line and a file may be ------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [b"", b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize(("over", "refused"), [(0, False), (1, True)])
def test_a_line_may_have_16_mib(tmp_path, before, over, refused):
    path = tmp_path / "lines"
    path.write_bytes(before + b"x" * ((16 << 20) + over))
    if refused:
        words = f"a line must have at most 16 MiB; got a longer one, which begins after {len(before)} bytes"
        with pytest.raises(DataFileError, match=words):
            list(blocks(path))
    else:
        assert sum(map(len, blocks(path))) == (16 << 20) + len(before)


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
    with pytest.raises(DataFileError, match=rf"run: must be text, plain or compressed by gzip; got {name}\. Unpack"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


def test_the_limit_of_bytes_is_an_integer(monkeypatch):
    assert unpacked_limit(7) == 7
    monkeypatch.setenv("NDCG_ML_MAX_BYTES", "1e9")
    with pytest.raises(ValueError, match="NDCG_ML_MAX_BYTES must be an integer"):
        unpacked_limit()


# -- the largest numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("digits", "words"),
    [(18, "sizes must sum to the 1 rows of labels; got 9{18}"), (19, "line 1: a line must be the size")],
)
def test_the_size_of_a_query_has_18_digits(tmp_path, digits, words):
    for name, content in (("labels", "1 1:2\n"), ("scores", "1\n"), ("labels.query", "9" * digits + "\n")):
        (tmp_path / name).write_text(content)
    with pytest.raises(DataFileError, match=words):
        read_letor(tmp_path / "labels", tmp_path / "scores")


FORMS = {
    "TREC": "q1 Q0 d1 1 {} t\nq1 Q0 d2 2 {} t\n",
    "TREC, a long tag": "q1 Q0 d1 1 {} t t\nq1 Q0 d2 2 {} t\n",
    "JSON": '{{"q1": {{"d1": {}, "d2": {}}}}}',
    "JSONL": '{{"qid": "q1", "docno": "d1", "score": {}}}\n{{"qid": "q1", "docno": "d2", "score": {}}}\n',
    "JSONL of dicts": '{{"qid": "q1", "docs": {{"d1": {}, "d2": {}}}}}\n',
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


# -- lines ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", ["", "# one\n", "\n# one\n# two\n\n"])
def test_repeats_are_named_by_their_lines_whatever_is_between(tmp_path, between):
    (tmp_path / "run").write_text(f"q1 Q0 d1 1 3 t\n{between}q1 Q0 d2 2 2 t\nq1 Q0 d1 3 1 t\n")
    last = 3 + between.count("\n")
    with pytest.raises(ValueError, match=f"'d1' does in .*run, line 1 and .*run, line {last}"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


@pytest.mark.parametrize(
    ("tag", "holds_a_second"),
    [
        ("t Q0 d2 2 1.5", False),
        ("t u 3 1.5 v", False),
        ("t u v 3 1.5 w", True),
        ("tq1 Q0 d2 2 1.5 t", True),
        ("tq1 X d2 2 1.5 t", True),
        ("t q1 X d2 2 1.5 t", True),
        ("t u q1 X d2 2 1.5 t", False),
        ("t u q1 Q0 d2 2 1.5 t", True),
        ("t u q1 Q0 d2 -2 1.5 t", True),
        ("t u q1 d1 d2 2 1.5 t", False),
        ("t u q1 q1 d2 2 1.5 t", False),
        ("t u q1 Q0 d2 2.0 1.5 t", False),
        ("t u q1 Q0 d2 2 x t", False),
        ("t u v w q1 Q0 d2 2 1.5 t", True),
        ("t u v w q1 Q0 d2 2 1.5", False),
    ],
)
@pytest.mark.parametrize("column", ["Q0", "0"])
def test_where_a_tag_holds_a_second_line(tmp_path, tag, holds_a_second, column):
    (tmp_path / "run").write_text(f"q1 {column} d1 1 2.5 {tag}\n")
    if holds_a_second:
        with pytest.raises(DataFileError, match=rf"line 1: .*; got {5 + len(tag.split())}\. Two lines may have become"):
            evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")
    else:
        assert evaluate_run({"q1": {"d1": 1}}, tmp_path / "run").value == 1.0


@pytest.mark.parametrize(("blank", "is_json"), [(8190, True), (8191, False)])
def test_json_is_known_by_the_first_8_kib(tmp_path, blank, is_json):
    (tmp_path / "run").write_text("\n" * blank + '{"q1": {"d1": 1}}')
    if is_json:
        assert evaluate_run({"q1": {"d1": 1}}, tmp_path / "run").value == 1.0
    else:
        with pytest.raises(DataFileError, match=f"run, line {blank + 1}: a line of a run must have"):
            evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["scores", "Score_", "qid"], "'scores' or 'Score_'"),
        (["scores", "Score_", "score2", "qid"], "'scores' or '(Score_|score2)'"),
        (["SCORE", "qid"], "'SCORE'"),
        (["sc", "qid"], None),
        (["s", "qid"], None),
        (["abcde", "qid"], None),
    ],
)
def test_columns_of_like_names_are_suggested(names, hint):
    with pytest.raises(MissingColumnError, match=r"score is missing, the file has .*") as caught:
        chosen_columns("rows", names, ["qid", "score"])
    if hint is None:
        assert "Did you mean" not in str(caught.value)
    else:
        assert re.search(rf"\. Did you mean {hint}\?$", str(caught.value))


# -- JSON -----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("null", "null"), ("true", "true"), ("false", "false"), ("{}", "an object"), ('{"a": 1}', "an object"),
        ("[]", "an array"), ("[1]", "an array"), ("1.5", "1.5"), ('""', "''"),
    ],
)  # fmt: skip
def test_what_is_no_id_is_shown_in_words_of_json(tmp_path, value, words):
    (tmp_path / "run").write_text(f'{{"qid": "q1", "docno": {value}, "score": 1}}\n')
    with pytest.raises(DataFileError, match=f"line 1: docno must be an id, text or an integer; got {re.escape(words)}"):
        evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


# -- grades and scores in every format ------------------------------------------------------------------------------

VALUES = {
    "TREC": ("q1 0 d1 {}\n", "q1 Q0 d1 1 {} t\n"),
    "BEIR": ("query-id\tcorpus-id\tscore\nq1\td1\t{}\n",) * 2,
    "CSV": ("qid,docno,label\nq1,d1,{}\n", "qid,docno,score\nq1,d1,{}\n"),
    "CSV with grades": ("qid,docno,grade\nq1,d1,{}\n", "qid,docno,score\nq1,d1,{}\n"),
    "JSONL": ('{{"qid": "q1", "docno": "d1", "label": {}}}\n', '{{"qid": "q1", "docno": "d1", "score": {}}}\n'),
    "JSONL of BEIR": ('{{"query-id": "q1", "corpus-id": "d1", "score": {}}}\n',) * 2,
    "JSONL of dicts": ('{{"qid": "q1", "docs": {{"d1": {}}}}}\n',) * 2,
    "JSONL of objects": (
        '{{"qid": "q1", "docs": [{{"docno": "d1", "grade": {}}}]}}\n',
        '{{"qid": "q1", "docs": [{{"docno": "d1", "score": {}}}]}}\n',
    ),
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


@pytest.mark.parametrize("topic", ["qid", "docs", "query-id"])
@pytest.mark.parametrize("documents", ['{"d1": 1}', '["d1"]'])
def test_topics_may_be_called_as_keys_are(tmp_path, topic, documents):
    (tmp_path / "run").write_text(f'{{"{topic}": {documents}}}')
    assert evaluate_run({topic: {"d1": 1}}, tmp_path / "run").value == 1.0


def test_beirs_names_inside_docs(tmp_path):
    (tmp_path / "run").write_text(
        '{"query-id": "q1", "docs": [{"corpus-id": "d1", "score": 2}, {"corpus-id": "d2", "score": 3}]}\n'
        '{"query-id": "q2", "docs": {"d1": 1}}\n{"query-id": "q3", "corpus-id": "d1", "score": 1}\n'
    )
    run = {"q1": {"d1": 2, "d2": 3}, "q2": {"d1": 1}, "q3": {"d1": 1}}
    qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}, "q3": {"d1": 1}}
    assert (
        evaluate_run(qrels, tmp_path / "run").per_query.ndcg.tolist()
        == evaluate_run(qrels, run).per_query.ndcg.tolist()
    )


def test_qrels_may_have_an_empty_list_and_no_other(tmp_path):
    (tmp_path / "qrels").write_text('{"qid": "q1", "docs": {"d1": 1}}\n{"qid": "q2", "docs": []}\n')
    assert evaluate_run(tmp_path / "qrels", {"q1": ["d1"]}).n_queries == 2
    (tmp_path / "qrels").write_text('{"qid": "q1", "docs": {"d1": 1}}\n{"qid": "q2", "docs": ["d1"]}\n')
    with pytest.raises(DataFileError, match=r"line 2: docs must be .* got an array"):
        evaluate_run(tmp_path / "qrels", {"q1": ["d1"]})


@pytest.mark.parametrize(
    ("header", "is_table"),
    [("qid,docno,score", True), ("qid;docno;score", True), ("qid\tdocno\tscore", True), ("#qid,docno,score", False)],
)
def test_a_header_names_the_documents(tmp_path, header, is_table):
    separator = next((mark for mark in ",;\t" if mark in header), ",")
    (tmp_path / "run").write_text(f"{header}\n" + separator.join(["q1", "d1", "2"]) + "\n")
    if is_table:
        assert evaluate_run({"q1": {"d1": 1}}, tmp_path / "run").value == 1.0
    else:
        with pytest.raises(DataFileError, match="line 2: a line of a run must have"):
            evaluate_run({"q1": {"d1": 1}}, tmp_path / "run")


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
        '{{"qid": "q{}1", "docno": "d1", "score": 1}}', '{{"qid": "q1", "docs": ["d{}1"]}}',
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


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("na", " Leave the cell empty where the document is unjudged."),
        (" N/A ", " Leave the cell empty where the document is unjudged."),
        ("-", " Leave the cell empty where the document is unjudged."),
        ("1,5", " Write a decimal point, not a comma."),
        ("1,5,0", ""),
        ("high", ""),
    ],
)
def test_what_to_write_instead_of_a_cell(tmp_path, cell, hint):
    (tmp_path / "rows").write_text(f'qid,label,score\nq1,"{cell}",1\n')
    with pytest.raises(DataFileError) as caught:
        read_columns(tmp_path / "rows")
    assert str(caught.value).endswith(f"rows, line 2: label must be a number; got {cell!r}.{hint}")
    (tmp_path / "rows").write_text(f'qid,label,score\nq1,1,"{cell}"\n')
    with pytest.raises(DataFileError) as caught:
        read_columns(tmp_path / "rows")
    assert str(caught.value).endswith(f"score must be a number; got {cell!r}.{hint if ',' in cell else ''}")


@pytest.mark.parametrize(
    ("topics", "dtype"),
    [([1, 126], np.int64), ([0, 2**63 - 1], np.int64), ([0, 2**63], object), ([-(2**63), 0], object),
     (["1", "a"], "<U1"), (["1\0", "a"], object)],
)  # fmt: skip
def test_topics_have_a_type_of_numpy_where_it_keeps_them(topics, dtype):
    found = evaluate_run({topic: {"d": 1} for topic in topics}, {topic: ["d"] for topic in topics}).per_query.qid
    assert found.dtype == dtype
    assert found.tolist() == topics


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_line_with_a_word_too_many_before_one_with_a_word_too_few_is_refused(tmp_path, at):
    # Read without regard to line ends, the words would be as many as those of four good lines.
    lines = ["q 0 a 1", "q 0 b 0", "q 0 c 2", "q 0 d 1"]
    lines[at : at + 2] = ["q 0 b 0 5", "0 c 2"]
    qrels = tmp_path / "qrels"
    qrels.write_text("\n".join([*lines, ""]))
    with pytest.raises(DataFileError, match=f"line {at + 1}: a line of qrels must have 4 columns .* got 5"):
        evaluate_run(qrels, {"q": {"a": 1.0}})
