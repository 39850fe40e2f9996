"""``ndcg-ml judge-next``: the file that is filled in, and the judgements that come of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import invoke
from hypothesis import given
from hypothesis import strategies as st

from ndcg_ml import with_labels

QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d5 1\n"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text(QRELS)
    Path("a.run").write_text("q1 Q0 d1 1 2 x\nq1 Q0 d9 2 1 x\nq2 Q0 d6 1 2 x\nq2 Q0 d5 2 1 x\n")
    Path("b.run").write_text("q1 Q0 d3 1 2 x\nq1 Q0 d1 2 1 x\nq2 Q0 d5 1 2 x\nq2 Q0 d7 2 1 x\n")


def called(*arguments):
    result = invoke("judge-next a.run b.run --qrels q.txt -k 2", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_file_goes_round_until_the_sign_is_settled():
    rounds = 0
    filled = []
    while "settled" not in called("-n", "1", "--output", f"todo{rounds}", *filled, "--write-qrels", "more.txt"):
        todo = Path(f"todo{rounds}")
        line = json.loads(todo.read_text())
        line["label"] = 2 if line["docno"] == "d3" else 0
        todo.write_text(json.dumps(line))
        filled += ["--filled", todo]
        rounds += 1
    assert 1 <= rounds <= 4
    assert not Path(f"todo{rounds}").read_text()
    judged = Path("more.txt").read_text().splitlines()
    assert len(judged) == len(QRELS.splitlines()) + rounds
    assert set(QRELS.splitlines()) <= set(judged)


def test_written_judgements_have_every_digit_and_every_topic():
    labels = [0.1234567, 1234567, 2.0000004, 1e-7, 2**53]
    rows = [
        {"qid": qid, "docno": f"d\u00a0{at}", "label": y} for qid in ("q1", "\u00a0q") for at, y in enumerate(labels)
    ]
    Path("filled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    called("--filled", "filled.jsonl", "--write-qrels", "more.txt")
    assert with_labels("more.txt", []) == with_labels("q.txt", ["filled.jsonl"])
    assert set(QRELS.splitlines()) <= set(Path("more.txt").read_text().splitlines())


NAMES = st.text(st.characters(), max_size=4) | st.sampled_from(["#", "\ufeff", "\x85", "\u2028", "#q"])
GRADES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, GRADES, min_size=1, max_size=3), max_size=3))
def test_judgements_are_written_so_that_they_are_read_back_or_refused(more):
    Path("drawn.json").write_text(json.dumps({**more, "q1": {"d1": 1}}))
    result = invoke("judge-next a.run b.run --qrels drawn.json --write-qrels more.txt")
    if result.exit_code == 0:
        assert with_labels("more.txt", []) == with_labels("drawn.json", [])
    else:
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1


def test_jsonl_on_standard_output_is_nothing_else():
    lines = [json.loads(line) for line in called("--output", "-").splitlines()]
    assert [sorted(line) for line in lines] == [["change", "docno", "label", "qid"]] * 4
