"""Every command reads every form of file."""

from __future__ import annotations

import pytest

pytest.importorskip("click")
pytest.importorskip("pyarrow")

import json

from command_line import TABLE, TREC, document, invoke, text

pytestmark = pytest.mark.usefixtures("files")


def test_every_command_reads_json_lines_and_dicts(files):
    qrels = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d4": 1}, "q3": {"d5": 3, "d1": 1}}
    run = {"q3": {"d9": 7.0, "d5": 3.5}, "q1": {"d1": 0.9, "d3": 0.5, "d7": 0.5}, "q9": {"d1": 1.0}}
    (files / "qrels.json").write_text(json.dumps(qrels))
    (files / "run.jsonl").write_text("".join(json.dumps({"qid": q, "docs": d}) + "\n" for q, d in run.items()))
    forms = "--qrels qrels.json --run run.jsonl"
    assert text(f"eval {forms} -k 2 --per-query") == text(f"eval {TREC} -k 2 --per-query")
    assert text(f"explain --a jarvelin2002 --b trec_eval {forms}") == text(
        f"explain --a jarvelin2002 --b trec_eval {TREC}"
    )
    value = document(f"eval {forms} -k 2")["values"][0]["ndcg"]
    found, expected = (document(f"identify {value:.4f} -k 2 {data}") for data in (forms, TREC))
    assert found["matches"] == expected["matches"]
    compared = text("compare run.jsonl better --qrels qrels.json")
    assert compared.split("\n")[4].split()[1:] == text("compare run better --qrels qrels").split("\n")[4].split()[1:]
    rows = [dict(zip(("qid", "label", "score", "docno"), row.split(","), strict=True)) for row in TABLE.split()[1:]]
    (files / "table.jsonl").write_text(
        "".join(json.dumps({**row, "label": int(row["label"]), "score": float(row["score"])}) + "\n" for row in rows)
    )
    assert text("eval --table table.jsonl --per-query") == text("eval --table table.csv --per-query")
    (files / "run.jsonl").write_text('{"qid": "q1", "docno": "d1"}\n')
    result = invoke(f"eval {forms}")
    assert result.exit_code == 2
    assert "run.jsonl, line 1: must have the keys qid, docno, score" in result.stderr
