"""Arguments and files that the command line refuses, and what it says."""

from __future__ import annotations

import pytest

pytest.importorskip("click")

from pathlib import Path

from command_line import LETOR, TREC, invoke, program

pytestmark = pytest.mark.usefixtures("files")


USAGE = {
    "eval": "the data must be given as --qrels with --run",
    "eval --qrels qrels": "--qrels requires --run",
    f"eval {LETOR} --table table.csv": "got --labels --scores --table",
    "eval --qrels - --run -": "only one file can be read from standard input",
    "compare - - --qrels qrels": "only one file can be read from standard input",
    f"eval {TREC} --label rating": "--label requires --table",
    "eval --table nowhere.csv": "'nowhere.csv' does not exist",
    f"eval {TREC} --flavor lightgmb": "Did you mean 'lightgbm'?",
    f"eval {TREC} -k 0": "must be a positive integer, or 'none'",
    f"eval {TREC} -k 5,10": "must be a positive integer, or 'none' for no cut-off; got '5,10'. Pass -k 5 -k 10.",
    f"eval {TREC} -k 5,x": "got '5,x'.\n",
    f"eval {TREC} -k {'9' * 5000}": "must be a positive integer, or 'none'",
    "compare run better --qrels qrels -k 5,10": "got '5,10'.\n",
    "evl": "no such command 'evl'. Did you mean 'eval'?",
    "compare run better": "one of --qrels, --labels and --table",
    "flavors lightgmb": "got 'lightgmb' in 'lightgmb'. Did you mean 'lightgbm'? List the presets with",
}


@pytest.mark.parametrize("command", USAGE)
def test_wrong_arguments(command):
    result = invoke(command)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert USAGE[command] in result.stderr
    assert result.stderr.startswith("Usage: ")


@pytest.mark.parametrize("option", ["k", "n"])
def test_short_options_have_one_hyphen(option):
    done = program(["judge-next", "run", "better", "--qrels", "qrels", f"--{option}", "5"])
    assert (done.returncode, done.stdout) == (2, "")
    assert f"o such option: --{option}" in done.stderr.replace(" '--", ": --")
    assert f" Did you mean -{option}?" in done.stderr


def test_no_command_shows_the_help_line_by_line():
    done = program([])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == program(["--help"]).stdout.splitlines()


BAD = {
    "eval --qrels qrels --run short": "short, line 1: a line of a run must have 6",
    "eval --table short": "short: must have the columns",
    f"eval {LETOR} --flavor trec_eval": "doc_id must be given",
    "eval --table unjudged.csv": "y_true must not hold NaN",
    f"eval {TREC} --flavor lightgbm": "run, line 5",
    f"explain --a trec_eval --b lightgbm {TREC}": "y_true must not hold NaN",
    "identify 0.5 --table short": "short: must have the columns",
    f"identify half {LETOR}": "value must be a decimal number",
    "compare run short --qrels qrels": "short, line 1: a line of a run must have 6",
    "eval --qrels qrels --run nothing": "must hold a document in at least one evaluated topic; got none",
    f"eval {TREC} --exclude latin": "latin, line 2: an id must be text in UTF-8",
    "eval --qrels qrels --run foreign": "qrels and run must share a topic",
}


@pytest.mark.parametrize("command", BAD)
def test_data_that_cannot_be_used_are_one_line(command):
    Path("short").write_text("a b c\n")
    Path("nothing").write_text('{"q1": []}')
    Path("latin").write_bytes(b"q1 d1\nq1 \xe9\n")
    Path("foreign").write_text("x Q0 d 1 1 t\n")
    Path("unjudged.csv").write_text("qid,label,score\n1,,1\n1,2,3\n")
    result = invoke(command)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert BAD[command] in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_standard_input_is_named_as_such():
    result = invoke("eval --labels - --scores scores", input="1 qid:1\nx qid:1\n")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: standard input, line 2: a line must begin with a grade")


def test_a_file_that_cannot_be_read_is_named(monkeypatch):
    def refuse(path, *more, **names):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("ndcg_ml.cli.inputs.score_columns", refuse)
    result = invoke("eval --table table.csv")
    assert (result.exit_code, result.stderr) == (2, "Error: table.csv: Permission denied\n")
