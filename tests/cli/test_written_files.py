"""The files that commands write, reports with ``--html`` among them: what they hold, and what they never replace."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest
from command_line import TREC, document, invoke, program, text

from ndcg_ml.runs import evaluate_run


@pytest.fixture
def report():
    pytest.importorskip("jinja2", reason="a report needs the extra [report]")
    pytest.importorskip("matplotlib", reason="a report needs the extra [report]")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        f"eval {TREC} --save /dev/full",
        "gate base.json --run run --margin .1 --markdown /dev/full",
        "judge-next run better --qrels qrels --write-qrels /dev/full",
    ],
)
def test_a_full_disk_ends_with_1_and_the_name_of_the_output(command):
    assert invoke(f"eval {TREC} --save base.json").exit_code == 0
    done = program(command.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.rstrip(".\n") == "Error: /dev/full: No space left on device"


def test_pipes_can_be_written():
    done = program(["eval", *TREC.split(), "--save", "/dev/stdout"])
    assert done.returncode == 0
    assert '"ndcg_ml_evaluation": ' in done.stdout


WITH_QUERIES = "--labels plain --scores scores"
ROUTES = {
    f"eval {TREC} --exclude excluded --by segments": "qrels run excluded segments link hard",
    "eval --table table.csv --by segments": "table.csv segments",
    f"eval {WITH_QUERIES}": "plain scores plain.query",
    "compare run better --qrels qrels --exclude excluded --by segments --cluster segments": "run better qrels excluded "
    "segments",
    "gate base.json --run run --margin .1 --exclude excluded --by segments": "base.json run qrels excluded segments",
    "judge-next run better --qrels qrels --filled filled": "run better qrels filled",
}
OUTPUTS = {
    "eval": ["--save", "--html"],
    "compare": ["--html"],
    "gate": ["--markdown", "--html"],
    "judge-next": ["--output", "--write-qrels"],
}


@pytest.mark.parametrize("command", ROUTES)
@pytest.mark.usefixtures("report")
def test_no_input_is_overwritten(command, files):
    assert invoke(f"eval {TREC} --save base.json").exit_code == 0
    Path("excluded").write_text("q1 d7\n")
    Path("segments").write_text("q1 a\nq2 b\nq3 a\n7 a\n8 a\n9 b\n")
    Path("plain").write_text("2\n0\n1\n0\n0\n3\n1\n")
    Path("plain.query").write_text("3\n2\n2\n")
    Path("filled").write_text('{"qid": "q3", "docno": "d9", "label": 1}\n')
    Path("link").symlink_to("run")
    Path("hard").hardlink_to("qrels")
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    outputs = OUTPUTS[command.split()[0]]
    for option in outputs:
        for name in ROUTES[command].split():
            result = invoke(f"{command} {option} ./{name}")
            assert (result.exit_code, result.stdout) == (2, ""), (option, name)
            assert f"{option} would replace" in result.stderr
    if len(outputs) > 1:
        result = invoke(f"{command} {outputs[0]} new {outputs[1]} ../{files.name}/new")
        assert result.exit_code == 2
        assert f"would replace the output of {outputs[0]}" in result.stderr
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


@pytest.mark.parametrize("label", ["2", '"half a line'])
def test_labels_that_were_filled_in_are_not_replaced(label):
    command = "judge-next run better --qrels qrels --output todo.jsonl"
    Path("todo.jsonl").write_text('{"qid": "q3", "docno": "d9", "label": null}\n')
    assert invoke(command).exit_code == 0
    Path("todo.jsonl").write_text(f'{{"qid": "q3", "docno": "d9", "label": {label}}}\n')
    result = invoke(command)
    assert result.exit_code == 2
    assert "which has labels or was not written by this command" in result.stderr
    assert label in Path("todo.jsonl").read_text()


@pytest.mark.usefixtures("report")
def test_a_report_of_an_evaluation():
    command = f"eval {TREC} -k 1 -k 10"
    shown = text(f"{command} --html", "a report.html")
    assert shown == text(command)
    page = Path("a report.html").read_text(encoding="utf-8")
    typed = f"ndcg-ml {command} --html 'a report.html'"
    assert page == evaluate_run("qrels", "run", k=(1, 10)).to_html(command=typed)
    assert typed in unescape(page)
    assert document(f"{command} --html other.html") == document(command)
    assert Path("other.html").exists()


def test_without_the_extra_a_report_is_refused_before_any_work():
    Path("run").write_text("not a run\n")  # reading this file would be an error of its own
    done = program(["eval", *TREC.split(), "--html", "report.html"], ("jinja2",))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: a report needs jinja2 and matplotlib")
    assert "pip install 'ndcg_ml[report]'" in done.stderr
    assert not Path("report.html").exists()
