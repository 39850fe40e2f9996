"""Arguments and files that the command line refuses, and what it says."""

from __future__ import annotations

import pytest

pytest.importorskip("click")
pytest.importorskip("pyarrow")

from pathlib import Path

from command_line import LETOR, TREC, invoke

pytestmark = pytest.mark.usefixtures("files")


USAGE = {
    "eval": "the data must be given as --qrels with --run",
    "eval --qrels qrels": "--qrels needs --run as well",
    "eval --scores scores": "--scores needs --labels as well",
    f"eval {LETOR} --table table.csv": "got --labels --scores --table",
    f"eval {LETOR} --queries both": "--queries is for --qrels and --run",
    "eval --qrels - --run -": "only one file can be read from standard input",
    "compare - - --qrels qrels": "only one file can be read from standard input",
    f"eval {TREC} --label rating": "--label names a column of --table; leave it out",
    "compare run better --qrels qrels --query user": "--query names a column of --table; leave it out",
    "eval --table nowhere.csv": "'nowhere.csv' does not exist",
    f"eval {TREC} --flavor lightgmb": "Did you mean 'lightgbm'?",
    f"eval {TREC} -k 0": "must be an integer of 1 or more, or 'none'",
    f"eval {TREC} -k ten": "must be an integer of 1 or more, or 'none'",
    f"eval {TREC} --queries all": "'all' is not one of",
    "compare run better": "as --qrels, --labels or --table",
    "compare run better --qrels qrels --table table.csv": "as --qrels, --labels or --table",
    "compare run nowhere --qrels qrels": "'nowhere' does not exist",
    "compare run better --qrels qrels --confidence 1": "not in the range 0<x<1",
    "compare run --qrels qrels": "Missing argument 'RUN_B'",
    f"explain --a sklearn {LETOR}": "Missing option '--b'",
    f"identify half {LETOR}": "must be a finite number; got 'half'",
    f"identify nan {LETOR}": "must be a finite number; got 'nan'",
    "flavors lightgmb": "got 'lightgmb' in 'lightgmb'. Did you mean 'lightgbm'? List the presets with",
}


@pytest.mark.parametrize("command", USAGE)
def test_wrong_arguments(command):
    result = invoke(command)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert USAGE[command] in result.stderr
    assert result.stderr.startswith("Usage: ")


BAD = {
    "eval --qrels qrels --run short": "short, line 1: a line of a run must have 6",
    "eval --qrels short --run run": "short, line 1: a line of qrels must have 4",
    "eval --labels labels --scores short": "short, line 1: a line must be one score",
    "eval --labels short --scores scores": "short, line 1: a line must begin with a grade",
    "eval --table short": "short: must have the columns",
    f"eval {LETOR} --flavor trec_eval": "labels, scores: doc_id must be given",
    "eval --table unjudged.csv": "unjudged.csv, line 2: label must not be missing under",
    f"eval {TREC} --flavor lightgbm": "run, line 5",
    f"explain --a trec_eval --b lightgbm {TREC}": "qrels, run: y_true must not hold NaN",
    f"explain --a sklearn --b lightgbm[empty=nan] {LETOR}": "labels, scores: flavor_b must have a finite value",
    "identify 0.5 --table short": "short: must have the columns",
    "explain --a sklearn --b lightgbm --table unjudged.csv": "unjudged.csv, line 2: label must not be missing under",
    "compare run short --qrels qrels": "short, line 1: a line of a run must have 6",
    "eval --qrels qrels --run foreign": "qrels and run must share a topic",
    "eval --table twice.csv --flavor trec_eval": "twice.csv: ",
}


@pytest.mark.parametrize("command", BAD)
def test_data_that_cannot_be_used_are_one_line(command):
    Path("short").write_text("a b c\n")
    Path("foreign").write_text("x Q0 d 1 1 t\n")
    Path("unjudged.csv").write_text("qid,label,score\n1,,1\n1,2,3\n")
    Path("twice.csv").write_text("qid,label,score,docno\n1,1,1,a\n1,2,3,a\n")
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


def test_a_message_of_several_lines_becomes_one(monkeypatch):
    def refuse(path, *more, **names):
        raise ValueError("table.csv:\n  two\n  lines")

    monkeypatch.setattr("ndcg_ml.cli.inputs.score_columns", refuse)
    assert invoke("eval --table table.csv").stderr == "Error: table.csv: two lines\n"


def test_the_name_of_a_file_is_not_taken_for_a_part_of_a_word():
    Path("a").write_text("qid,label,score\n1,,1\n1,2,3\n")
    assert invoke("eval --table a").stderr.startswith("Error: a, line 2: label must not be missing")
