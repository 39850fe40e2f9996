"""Qrels and runs as TREC, JSONL, JSON, CSV, BEIR's TSV and Parquet: one value, and errors that name the line."""

from __future__ import annotations

import gzip
import json
import math
import os

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


TRUTHS, GRADES, LONG = {"q1": {"d1": True, "d2": False, "d3": 1}}, {"q1": {"d1": 2, "d3": 1}}, "d" + "x" * 140_000
READ = [
    *(("run", content, RANKED) for content in (json.dumps(RANKED), json.dumps(RANKED).replace(", ", ",\n"))),
    ("run", json.dumps(RANKED, indent=1), RANKED),
    ("run", '{"7": [12, "13", 9007199254740993]}\n', {"7": ["12", "13", "9007199254740993"]}),
    ("run", lines({**row, "query_id": 7} for row in rows(RUN, "score")), RUN),
    ("run", f"q1 Q0 {LONG} 1 1.5 t\n", {"q1": {LONG: 1.5}}),
    ("qrels", json.dumps(TRUTHS), TRUTHS),
    ("qrels", lines(rows(TRUTHS, "label")), TRUTHS),
    ("qrels", lines(rows(QRELS, "grade")), QRELS),
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
    (tmp_path / name).write_text(content)
    other = {topic: dict.fromkeys(documents, 1) for topic, documents in data.items()} | {"q1": {"d3": 2, "d1": 1}}
    sides = ("qrels", "run") if name == "run" else ("run", "qrels")
    found, expected = (align(**dict(zip(sides, (other, each), strict=True))) for each in (tmp_path / name, data))
    for column in ("qid", "group", "y_true", "y_score", "retrieved", "doc_id"):
        assert np.array_equal(getattr(found, column), getattr(expected, column), equal_nan=column == "y_true"), column
    assert found.qrels_only.tolist() == expected.qrels_only.tolist()  # an empty list is an answer


def test_predictions_of_sentence_transformers(tmp_path):
    lists = {q: [{"corpus_id": d, "score": s} for d, s in docs.items()] for q, docs in RUN.items()}
    (tmp_path / "run").write_text(lines({"query_id": q, "query": "?", "results": docs} for q, docs in lists.items()))
    assert evaluate_run(QRELS, tmp_path / "run").value == evaluate_run(QRELS, RUN).value
    read, write = os.pipe()
    os.write(write, (tmp_path / "run").read_bytes())
    os.close(write)
    assert evaluate_run(QRELS, f"/dev/fd/{read}").value == evaluate_run(QRELS, RUN).value
    os.close(read)


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
        if value == "1" or (name == "run" and value != "NaN"):
            assert evaluate_run(**sides, flavor="sklearn").value == 1.0
        else:
            words = "a finite number" if name == "qrels" else "a number, and not NaN"
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
