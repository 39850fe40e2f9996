"""``ndcg-ml judge-next``: the table, the file that is filled in, the judgements that come of it, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("click")
from click.testing import Result
from command_line import invoke

from ndcg_ml import with_labels

QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d5 1\n"
RUNS = {
    "a.run": "q1 Q0 d1 1 2 x\nq1 Q0 d9 2 1 x\nq2 Q0 d6 1 2 x\nq2 Q0 d5 2 1 x\n",
    "b.run": "q1 Q0 d3 1 2 x\nq1 Q0 d1 2 1 x\nq2 Q0 d5 1 2 x\nq2 Q0 d7 2 1 x\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text(QRELS)
    for name, text in RUNS.items():
        Path(name).write_text(text)
    return tmp_path


def called(*arguments: str) -> Result:
    return invoke("judge-next a.run b.run --qrels q.txt -k 2", *arguments)


@pytest.mark.usefixtures("folder")
def test_the_file_goes_round_until_the_sign_is_settled() -> None:
    rounds = 0
    filled: list[str] = []
    while True:
        todo = f"todo{rounds}.jsonl"
        result = called("-n", "1", "--output", todo, *filled, "--write-qrels", "more.txt")
        assert result.exit_code == 0, result.output
        if "settled" in result.output:
            break
        line = json.loads(Path(todo).read_text())
        line["label"] = 2 if line["docno"] == "d3" else 0
        Path(todo).write_text(json.dumps(line))
        filled += ["--filled", todo]
        rounds += 1
    assert 1 <= rounds <= 4
    assert not Path(todo).read_text()
    judged = Path("more.txt").read_text().splitlines()
    assert len(judged) == len(QRELS.splitlines()) + rounds
    assert set(QRELS.splitlines()) <= set(judged)


@pytest.mark.usefixtures("folder")
def test_written_judgements_have_every_digit_and_every_topic() -> None:
    labels = [0.1234567, 1234567, 2.0000004, 1e-7, 2**53]
    rows = [
        {"qid": qid, "docno": f"d\u00a0{at}", "label": y} for qid in ("q1", "\u00a0q") for at, y in enumerate(labels)
    ]
    Path("filled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = called("--filled", "filled.jsonl", "--write-qrels", "more.txt")
    assert result.exit_code == 0, result.output
    assert with_labels("more.txt", []) == with_labels("q.txt", ["filled.jsonl"])
    assert set(QRELS.splitlines()) <= set(Path("more.txt").read_text().splitlines())


@pytest.mark.usefixtures("folder")
def test_jsonl_on_standard_output_is_nothing_else() -> None:
    lines = [json.loads(line) for line in called("--output", "-").output.splitlines()]
    assert [sorted(line) for line in lines] == [["change", "docno", "label", "qid"]] * 4


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--filled", "bad.jsonl"], "bad.jsonl, line 1: label must be a number"),
        (["--filled", "other.jsonl"], "a document must have one label"),
        (["--output", "a.run"], "--output would replace 'a.run', an input"),
        (["--max-grade", "1"], "max_grade must be at least"),
        (["--flavor", "trec_eval[unjudged=raise]"], "is an error under unjudged='raise'"),
        (["-n", "0"], "-n"),
        (["--filled", "large.jsonl"], "large.jsonl, line 1: label: an integer must be at most 2^53"),
        (
            ["--filled", "hash.jsonl", "--write-qrels", "more.txt"],
            "a topic must not begin with # or U+FEFF in TREC qrels",
        ),
        (
            ["--filled", "mark.jsonl", "--write-qrels", "more.txt"],
            "a topic must not begin with # or U+FEFF in TREC qrels",
        ),
        (["--filled", "nul.jsonl", "--write-qrels", "more.txt"], "ids must not be empty or contain blanks or NUL"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_line(arguments: list[str], message: str) -> None:
    Path("bad.jsonl").write_text('{"qid": "q1", "docno": "d3", "label": "good"}\n')
    Path("other.jsonl").write_text('{"qid": "q1", "docno": "d1", "label": 0}\n')
    Path("large.jsonl").write_text('{"qid": "q1", "docno": "d3", "label": 9007199254740993}\n')
    for name, qid in (("hash", "#q1"), ("mark", "\ufeffq1"), ("nul", "q\0")):
        Path(f"{name}.jsonl").write_text(json.dumps({"qid": qid, "docno": "d3", "label": 1}))
    result = called(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
