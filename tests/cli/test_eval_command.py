"""``ndcg-ml eval``: numbers of runs, labels and tables, queries one by one, JSON."""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path

import pytest
from command_line import BETTER, LETOR, Q1, Q3, QRELS, RUN, SCORES, TABLE, TREC, document, invoke, text

from ndcg_ml import PRESETS, Flavor, evaluate
from ndcg_ml.readers import read_columns, read_letor
from ndcg_ml.runs import evaluate_run


@pytest.mark.parametrize(
    ("queries", "value"), [("qrels", (Q1 + Q3) / 3), ("both", (Q1 + Q3) / 2), ("run", (Q1 + Q3) / 3)]
)
def test_eval_of_a_run(queries, value):
    result = document(f"eval {TREC} --queries {queries}")
    assert result["values"][0]["ndcg"] == pytest.approx(value, abs=1e-12)
    assert result["queries"] == queries
    assert result["n_queries"] == {"qrels": 3, "both": 2, "run": 3}[queries]
    assert (result["qrels_only"], result["run_only"]) == (["q2"], ["q9"])
    assert result["values"][0]["judged"] == evaluate_run("qrels", "run", queries=queries).judged
    assert text(f"eval {TREC} --queries {queries}") == f"{evaluate_run('qrels', 'run', k=(None,), queries=queries)}\n"


def test_documents_are_taken_out_of_a_run(files):
    (files / "own").write_text("q1 0 d1 1\nd1 0 d2 1\n", encoding="utf-8")
    (files / "asked").write_text("d1 Q0 d1 1 9 t\nd1 Q0 d2 2 8 t\nq1 Q0 d1 1 1 t\n", encoding="utf-8")
    trec = "eval --qrels own --run asked -k 1"
    assert document(trec)["values"][0]["ndcg"] == 0.5
    result = document(f"{trec} --exclude identical")
    assert (result["values"][0]["ndcg"], result["n_excluded"], result["n_unanswered"]) == (1.0, 1, 0)
    (files / "seen").write_text("d1 d1\n\nq1\td7\nq9 d1\n", encoding="utf-8")
    assert document(f"{trec} --exclude seen")["values"] == result["values"]
    assert re.search("excluded: 1 retrieved documents", text(f"{trec} --exclude identical"))
    for command in ("explain --a trec_eval --b sklearn[unjudged=zero]", "identify 1.0000"):
        rows = document(f"{command} --qrels own --run asked -k 1 --exclude identical", ok=(0, 1))
        assert rows.get("value_a", rows.get("value")) == 1.0
    both = document("compare asked asked --qrels own -k 1 --exclude identical")
    assert (both["systems"][0]["value"], both["systems"][0]["n_unanswered"]) == (1.0, 0)


def test_eval_at_several_cut_offs_and_per_query():
    result = document(f"eval {TREC} -k 1 -k none --per-query")
    expected = evaluate_run("qrels", "run", k=(1, None))
    assert [(each["k"], each["ndcg"]) for each in result["values"]] == list(expected.value.items())
    assert [Flavor.parse(each["flavor"]).k for each in result["values"]] == [1, None]
    assert [each["qid"] for each in result["per_query"]] == ["q1", "q2", "q3"]
    table = expected.per_query
    for i, each in enumerate(result["per_query"]):
        assert [each[key] for key in ("n_docs", "n_judged", "n_relevant", "tied")] == [
            table[key][i] for key in ("n_docs", "n_judged", "n_relevant", "tied")
        ]
        for at, value in enumerate(each["values"]):
            for key in ("ndcg", "dcg", "idcg", "empty"):
                assert value[key] == table[key][i, at]
            assert value["judged"] == (None if math.isnan(table.judged[i, at]) else table.judged[i, at])


def test_queries_that_the_mean_leaves_out_are_null():
    result = document(f"eval {LETOR} --flavor sklearn[empty=skip] --per-query")
    assert [each["values"][0]["ndcg"] is None for each in result["per_query"]] == [False, True, False]
    assert result["values"][0]["n_empty"] == 1
    undefined = document(f"eval {LETOR} --flavor sklearn[empty=nan]")
    assert undefined["values"][0]["ndcg"] is None


def test_the_forms_are_those_of_the_library():
    rows = read_columns("table.csv")
    expected = evaluate(**read_letor("labels", "scores").arguments(), k=(2,)).value[2]
    for inputs in (LETOR, "--table table.csv"):
        result = document(f"eval {inputs} -k 2")
        assert result["values"][0]["ndcg"] == expected
        assert result["values"][0]["flavor"] == str(PRESETS["sklearn"].replace(k=2))
        assert result["per_query"] is None
    with_ids = document("eval --table table.csv --flavor trec_eval")["values"][0]["ndcg"]
    assert with_ids == evaluate(**rows.arguments(), flavor="trec_eval").value != expected


def test_the_default_flavor_is_that_of_the_library():
    assert document(f"eval {TREC}")["values"][0]["flavor"] == str(PRESETS["trec_eval"])
    assert document(f"eval {LETOR}")["values"][0]["flavor"] == str(PRESETS["sklearn"])
    shown = text(f"eval {LETOR} --flavor xgboost")  # its own cut-off
    assert shown.startswith("ndcg@32 = ")


def test_standard_input():
    run = document("eval --qrels qrels --run -", input=gzip.compress(RUN.encode()))
    assert run == document(f"eval {TREC}")
    assert document("eval --qrels - --run run", input=QRELS) == run
    explained = document("explain --a trec_eval --b ranx --qrels - --run run --queries both", input=QRELS)
    assert explained["n_queries"] == 2
    assert document("eval --table -", input=TABLE) == document("eval --table table.csv")
    assert document("eval --labels labels --scores -", input=SCORES) == document(f"eval {LETOR}")
    [pair] = document("compare run - --qrels qrels", input=BETTER)["pairs"]
    assert pair == {**document("compare run better --qrels qrels")["pairs"][0], "b": "-"}
    invoke("eval --qrels - --run run --save saved", input=QRELS)
    assert json.loads(Path("saved").read_text())["qrels"] is None


def test_parquet_from_standard_input(files):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"qid": [1, 1], "label": [0, 1], "score": [0.5, 0.2]}), "t")
    result = document("eval --per-query --table -", input=Path("t").read_bytes())
    assert result["per_query"][0]["qid"] == 1
    assert result["values"][0]["ndcg"] == pytest.approx(1 / math.log2(3))


def test_ids_are_shown_as_they_are():
    Path("odd.csv").write_bytes(b"qid,label,score\n[red]a,1,1\n:smile:,1,1\n\x1b[2J,1,1\n")
    shown = text("eval --table odd.csv --per-query").splitlines()[1:4]
    assert [line.split("  ")[0] for line in shown] == ["[red]a", ":smile:", r"\x1b[2J"]
    ids = [each["qid"] for each in document("eval --table odd.csv --per-query")["per_query"]]
    assert ids == ["[red]a", ":smile:", "\x1b[2J"]


# -- slices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_slices_are_those_of_the_library(files, form):
    """A name per query, as a file and as a column of a table."""
    names = {"7": "large one", "8": "small", "9": "small"}
    header, *lines = TABLE.splitlines()
    if form == "csv":
        wide = "\n".join([f"{header},kind", *(f"{line},{names[line[0]]}" for line in lines)])
        (files / "wide").write_text(wide)
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        qid, label, score, docno = zip(*(line.split(",") for line in lines), strict=True)
        numbers = {"qid": [*map(int, qid)], "label": [*map(int, label)], "score": [*map(float, score)]}
        pq.write_table(pa.table({**numbers, "docno": docno, "kind": [names[query] for query in qid]}), "wide")
    rows = read_columns("table.csv")
    by = {"kind": [names[query] for query in rows.qid]}
    expected = evaluate(**rows.arguments(), flavor="trec_eval", k=(1, 2), by=by).slices.to_dict()["slices"]
    command = "eval --table wide --flavor trec_eval -k 1 -k 2"
    assert document(f"{command} --by kind")["slices"] == expected
    assert len(expected) == 4
    (files / "folder").mkdir()
    (files / "folder" / "kind").write_text("7 large one\n\n9\tsmall\n8 small\nother small\n", encoding="utf-8")
    assert document(f"{command} --by folder/kind")["slices"] == expected
    assert "slices" not in document(command)


def test_slices_of_a_run(files):
    (files / "area").write_text("q1 a\nq2 b\nq3 a\n", encoding="utf-8")
    result = document(f"eval {TREC} --by area --per-query")
    slices = evaluate_run("qrels", "run", by={"area": {"q1": "a", "q2": "b", "q3": "a"}}).slices
    assert result["slices"] == slices.to_dict()["slices"]
    assert str(slices) in text(f"eval {TREC} --by area")


def test_a_topic_may_have_a_blank_that_is_not_ascii(files):
    (files / "qrels").write_text("q\u00a01 0 d1 1\nq2 0 d1 1\n", encoding="utf-8")
    (files / "run").write_text("q\u00a01 Q0 d1 1 1 t\nq2 Q0 d2 1 1 t\n", encoding="utf-8")
    (files / "area").write_text("q\u00a01 a b\n q2\tb\u00a0\n", encoding="utf-8")
    assert [each["label"] for each in document(f"eval {TREC} --by area")["slices"]] == ["a b", "b\u00a0"]
