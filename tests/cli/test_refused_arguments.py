"""Arguments and files that the command line refuses, and what it says."""

import os
import re
from pathlib import Path

import pytest
from command_line import LETOR, TABLE, TREC, invoke, program

USAGE = {
    "eval": ("the data must be given as --qrels with --run", f"eval {TREC}"),
    "eval --qrels qrels": ("--qrels requires --run", f"eval {TREC}"),
    f"eval {LETOR} --table table.csv": ("got --labels --scores --table", f"eval {LETOR}"),
    "eval --qrels - --run -": ("only one file can be read from standard input", None),
    "compare - - --qrels qrels": ("only one file can be read from standard input", None),
    f"eval {LETOR} --label rating": ("--label requires --qrels and --run, or --table",
        "eval --table named --score s_new"),
    "compare s_old s_new --table named --score s_new": ("--score must be left out with --table",
        "compare run better --qrels qrels"),
    "eval --table named --document user --document user": ("must be given once, or twice for --qrels F --run F",
        "eval --qrels pieces.csv --document piece --document doc_id --run usual.jsonl"),
    "eval --table folder": ("'folder' is a directory", None),
    "eval --table nowhere.csv": ("'nowhere.csv' does not exist", None),
    f"eval {TREC} --flavor lightgmb": ("Did you mean 'lightgbm'?", "flavors lightgbm"),
    f"eval {TREC} -k 0": ("must be a positive integer, or 'none'", f"eval {TREC} -k none"),
    f"eval {TREC} -k 5,10": ("must be a positive integer, or 'none' for no cut-off; got '5,10'. Pass -k 5 -k 10.",
        f"eval {TREC} -k 5 -k 10"),
    f"eval {TREC} -k 5,x": ("got '5,x'.\n", f"eval {TREC} -k none"),
    **{f"eval {TREC} -k {k}": ("must be a positive integer, or 'none'",
        f"eval {TREC} -k {'1'.zfill(19)}") for k in ("9" * 5000, "1".zfill(20))},
    "compare run better --qrels qrels --seed -1": ("-1 is not in the range x>=0",
        "compare run better --qrels qrels --seed 0"),
    "compare run better --qrels qrels -k 5,10": ("got '5,10'.\n", "compare run better --qrels qrels -k none"),
    "compare run better --qrels qrels -k 1 -k 5": ("must be one cut-off; got 2.",
        "compare run better --qrels qrels -k 1"),
    "evl": ("no such command 'evl'. Did you mean 'eval'?", f"eval {TREC}"),
    "compare run better": ("one of --qrels, --labels and --table", "compare run better --qrels qrels"),
    "compare run better --qrels qrels --baseline x": ("--baseline must be one of the runs, run, better; got x",
        "compare run better --qrels qrels --baseline better"),
    "flavors lightgmb": ("got 'lightgmb' in 'lightgmb'. Did you mean 'lightgbm'? List the presets with", "flavors"),
    f"eval {TREC} --save -": ("must be the name of a file; got -.", None),
    f"eval {TREC} --save folder": ("'folder' is a directory", None),
    f"eval {TREC} --save none/base.json": ("the folder none does not exist", None),
    f"eval {TREC} --save dangling": ("none, into which dangling links, does not exist", None),
    "gate qrels --run run --margin .1 --markdown -": ("must be the name of a file; got -.", None),
    "judge-next run better --qrels qrels --write-qrels -": ("must be the name of a file; got -.", None),
    "judge-next run better --qrels qrels -n 0": ("-n", None),
    f"eval {TREC} --by land": ("--by must be a file with the id of a query and its label on each line; got 'land'.",
        None),
    "eval --table wide.csv --by land": ("--by must be a file with the id of a query and its label on each line, or",
        None),
    "eval --table wide.csv --by few --by folder/few": ("--by must name each column or file once", None),
    "eval --table wide.csv --by kind": ("'kind' is both. Use ./kind for the file.",
        "eval --table wide.csv --by ./kind"),
    **{
        f"eval {TREC} --human human -k 5 {more}": ("--human requires a single -k",
            "eval --human many -k 5 --qrels model --run ranked")
        for more in ("-k 10", "--per-query", "--by human", "--save saved")
    },
    f"eval {TREC} --human human --queries both": ("--human requires --qrels",
        "eval --human many --qrels model --run ranked"),
    "compare run better --qrels qrels --human human --by human": ("combined with --by",
        "compare ranked turned --qrels model --human many"),
}  # fmt: skip


@pytest.fixture
def wrong():
    Path("dangling").symlink_to("none/base.json")
    Path("folder").mkdir()
    contents = {
        "short": "a b c\n",
        "own.csv": "sujet,piece,note\nq1,d1,2\nq3,d5,0\n",
        "usual.jsonl": '{"query_id": "q1", "doc_id": "d1", "score": 1}',
        "lists.jsonl": '{"question": "q1", "gold": ["d1"], "found": ["d2", "d1"]}\n',
        "pieces.csv": "qid,piece,grade\nq1,d1,2\n",
        "graded.csv": "qid,docno,grade\nq1,d1,2\n",
        "nothing": '{"q1": []}',
        "foreign": "x Q0 d 1 1 t\n",
        "unjudged.csv": "qid,label,score\n1,,1\n1,2,3\n",
        "wide.csv": TABLE.replace("\n", ",x\n").replace("docno,x", "docno,kind"),
        "kind": "7 a\n8 a\n9 a\n",
        "few": "8 small\n",
        "folder/few": "8 small\n",
        "bare": "q1 a\nq2\n",
        "twice": "q1 a\nq1 a\nq1 b\n",
        "three": "q1 d1\nq1 d2 d3\n",
        "pairs": "q1 d1\n",
        "zeros": "0 qid:1\n",
        "one": "1\n",
        "named": "user,Rating,s_old,s_new\n1,1,1,2\n1,0,2,1\n",
        "human": "q1 0 d1 2\n",
        "model": "".join(f"t{i} 0 d 1\nt{i} 0 e 0\n" for i in range(40)),
        "many": "".join(f"t{i} 0 d {i % 2}\nt{i} 0 e 1\n" for i in range(25)),
        "ranked": "".join(f"t{i} Q0 e 1 2 t\nt{i} Q0 d 2 1 t\n" for i in range(40)),
        "turned": "".join(f"t{i} Q0 d 1 {i % 3} t\nt{i} Q0 e 2 1 t\n" for i in range(40)),
        "word.jsonl": '{"qid": "q1", "docno": "d7", "label": "good"}\n',
        "other.jsonl": '{"qid": "q1", "docno": "d1", "label": 0}\n',
        "large.jsonl": '{"qid": "q1", "docno": "d7", "label": 9007199254740993}\n',
        "hash.jsonl": '{"qid": "#q1", "docno": "d7", "label": 1}\n',
        "mark.jsonl": '{"qid": "\\ufeffq1", "docno": "d7", "label": 1}\n',
        "nul.jsonl": '{"qid": "q\\u0000", "docno": "d7", "label": 1}\n',
    }
    for name, content in contents.items():
        Path(name).write_text(content)
    Path("latin").write_bytes(b"q1 d1\nq1 \xe9\n")
    Path("latin_ids").write_bytes(b"8 small\n\xe9 large\n")


@pytest.mark.parametrize(
    ("command", "hint", "advised"),
    [
        ("judge-next run better --qrels qrels --k 5", r"--k\W+Did you mean -k\?",
            "judge-next run better --qrels qrels -k 5"),
        ("judge-next run better --qrels qrels --n 5", r"--n\W+Did you mean -n\?",
            "judge-next run better --qrels qrels -n 5"),
        (f"eval {TREC} --cutoff 5", r"--cutoff\W+Did you mean -k\?", f"eval {TREC} -k 5"),
        (f"eval {TREC} --metric ndcg", r"--metric\W+Did you mean --flavor\?",
            f"eval {TREC} --flavor ndcg[unjudged=zero]"),
        (f"eval {TREC} --flavour ndcg", r"--flavour\W+Did you mean '?--flavor'?\?",
            f"eval {TREC} --flavor ndcg[unjudged=zero]"),
        (f"eval {TREC} -m ndcg", r" '?-m'?\.?\n", None),
        (f"eval {TREC} -k 0", r"got '0'\.\n", None),
        ("eval qrels run", r"\(qrels run\)\. Pass each value after its option, such as --run FILE\.", f"eval {TREC}"),
        ("gate qrels run --margin .01", r"\(run\)\. Pass each value after its option, such as --run FILE\.",
            f"gate base.json {TREC} --margin .01"),
    ],
)  # fmt: skip
def test_options_that_were_meant_are_named(command, hint, advised):
    done = program(command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("Did you mean") < 2
    assert re.search(hint, done.stderr)  # click 8.2 prints options without quotes
    assert invoke(f"eval {TREC} --save base.json").exit_code == 0
    assert advised is None or invoke(advised).exit_code != 2


def test_no_command_shows_the_help_line_by_line():
    done = program([])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == program(["--help"]).stdout.splitlines()


OWN = "--query sujet --document piece --label note"
BAD = {
    f"eval {TREC} --label rating": ("--label rating must be left out if neither qrels nor run has names",
        f"eval {TREC}"),
    f"eval --qrels own.csv {OWN} --run usual.jsonl": (("Name yours: --query sujet --query query_id --document piece "
        "--document doc_id.\n"), f"eval --qrels own.csv {OWN} --query query_id --document doc_id --run usual.jsonl"),
    "eval --qrels lists.jsonl --run lists.jsonl --document gold,found": (
        "Name yours: --document gold --document found.\n",
        "eval --qrels lists.jsonl --run lists.jsonl --document gold --document found"),
    "eval --qrels lists.jsonl --run ranked --document found,gone": ("documents, not 'found,gone'", None),
    "eval --table lists.jsonl": ("pass it as qrels and run: --document RELEVANT --document RETRIEVED.\n",
        "eval --qrels lists.jsonl --run lists.jsonl --document gold --document found"),
    "eval --qrels pieces.csv --run lists.jsonl --document piece": ("Name yours: --document piece --document NAME.\n",
        "eval --qrels pieces.csv --run lists.jsonl --document piece --document found"),
    "eval --qrels usual.jsonl --run graded.csv": ("Or are qrels and run swapped?\n",
        "eval --qrels graded.csv --run usual.jsonl"),
    "judge-next run better --qrels own.csv": ("Name yours: --query NAME --document NAME --label NAME.\n",
        f"judge-next run better --qrels own.csv {OWN} --write-qrels more"),
    "eval --qrels qrels --run short": (("short: must begin with a line of the names of its columns, such as qid docno "
        "score (or rank"), None),
    "eval --table short": ("short must name its topics and its grades and its scores; got 'a', 'b', 'c'",
        "eval --table named --query user --label Rating --score s_new"),
    f"eval {LETOR} --flavor trec_eval": ("doc_id must be given", f"eval {LETOR} --flavor trec_eval[ties=average]"),
    "eval --table unjudged.csv": ("y_true must not hold NaN",
        "eval --table unjudged.csv --flavor sklearn[unjudged=zero]"),
    f"eval {TREC} --flavor lightgbm": ("Use --flavor 'lightgbm[unjudged=zero]', or",
        f"eval {TREC} --flavor lightgbm[unjudged=zero] --queries both"),
    f"explain --a trec_eval --b lightgbm {TREC}": ("y_true must not hold NaN",
        f"explain --a trec_eval --b lightgbm[unjudged=zero] {TREC}"),
    "identify 0.5 --table short": ("short must name its topics and its grades and its scores; got 'a', 'b', 'c'",
        "identify 0.5 --table named --query user --label Rating --score s_new"),
    f"identify half {LETOR}": ("value must be a decimal number", f"identify 0.7840 {LETOR}"),
    "compare run short --qrels qrels": (("short: must begin with a line of the names of its columns, such as qid docno "
        "score (or rank"), None),
    "compare one one --labels zeros --flavor sklearn[empty=nan]": ("at least two queries must have a value in every",
        None),
    "compare run better --qrels qrels --unjudged refuse": ("unjudged='refuse' requires judged@k",
        "compare run better --qrels qrels --unjudged accept --flavor trec_eval[unjudged=condense]"),
    "compare run better --qrels qrels --cluster bare": ("bare, line 2: must be the id of a query and its label; got",
        None),
    "compare run better --qrels qrels --by twice": ("twice, line 3: a query must have one label; 'q1' has 'a' and 'b'.",
        None),
    "compare run nothing --qrels qrels": ("must return documents for at least one query; nothing returns none", None),
    f"eval {TREC} --exclude latin": ("latin, line 2: an id must be text in UTF-8", None),
    f"eval {TREC} --exclude three": ("--exclude takes lines of a topic and a document", f"eval {TREC} --exclude pairs"),
    "eval --qrels qrels --run foreign": ("qrels and run must share a topic", None),
    "eval --qrels human --human qrels --run run": ("every query of human must be among", None),
    "eval --table wide.csv --by docno": ("must be the same in all rows of a query", None),
    "eval --table wide.csv --by latin_ids": ("latin_ids, line 2: an id must be text in UTF-8", None),
    "eval --table wide.csv --by few": ("few: must have a label for each query; got none for 7 (2 queries)", None),
    "eval --table named": ("'user' (topics), 'Rating' (grades), 's_old', 's_new'. Name yours: --score NAME.\n",
        "eval --table named --query user --label Rating --score s_new"),
    "eval --table named --query user --label RATING --score s_new": (("not 'RATING'; got 'user' (topics), 'Rating', "
        "'s_old', 's_new' (scores). Did you mean 'Rating'?\n"),
        "eval --table named --query user --label Rating --score s_new"),
    "eval --table named --query user --label s_new --score s_new": ("must name its scores, not 's_new'", None),
    "judge-next run better --qrels qrels --filled word.jsonl": ("word.jsonl, line 1: label must be a number", None),
    "judge-next run better --qrels qrels --filled other.jsonl": ("a document must have one label", None),
    "judge-next run better --qrels qrels --max-grade 1": ("max_grade must be at least",
        "judge-next run better --qrels qrels --max-grade 3"),
    "judge-next run better --qrels qrels --flavor trec_eval[unjudged=raise]": ("is an error under unjudged='raise'",
        "judge-next run better --qrels qrels --flavor trec_eval[unjudged=condense]"),
    "judge-next run better --qrels qrels --filled large.jsonl": ("line 1: label: an integer must be at most 2^53",
        None),
    **{
        f"judge-next run better --qrels qrels --filled {name}.jsonl --write-qrels more.txt": (words,
            f"judge-next run better --qrels qrels --filled {name}.jsonl")
        for name, words in (
            ("hash", "topics not begin with # or U+FEFF; got '#q1'"),
            ("mark", "topics not begin with # or U+FEFF; got"),
            ("nul", "must not be empty or contain blanks or NUL"),
        )
    },
}  # fmt: skip


@pytest.mark.usefixtures("wrong")
@pytest.mark.parametrize("command", [*USAGE, *BAD])
def test_wrong_arguments_and_data_that_cannot_be_used(command):
    result = invoke(command)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    words, advised = {**USAGE, **BAD}[command]
    assert words in result.stderr
    assert result.stderr.startswith("Usage: " if command in USAGE else "Error: ")
    assert command in USAGE or result.stderr.count("\n") == 1
    assert not Path("-").exists()
    assert advised is None or invoke(advised).exit_code in (0, 1)


def test_standard_input_is_named_as_such():
    result = invoke("eval --labels - --scores scores", input="1 qid:1\nx qid:1\n")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: standard input, line 2: the grade at its start must be a number")


def test_outputs_that_cannot_be_written_are_refused(monkeypatch):
    for unwritable, words in ((os.path.isfile, "'run' is not writable"), (os.path.isdir, "the folder . cannot be wr")):
        monkeypatch.setattr(os, "access", lambda path, mode, of=unwritable: mode != os.W_OK or not of(path))
        result = invoke(f"eval {TREC} --save run")
        assert result.exit_code == 2
        assert words in result.stderr


def test_a_file_that_cannot_be_read_is_named(monkeypatch):
    def refuse(path, *more, **names):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("ndcg_ml.cli.inputs.score_columns", refuse)
    result = invoke("eval --table table.csv")
    assert (result.exit_code, result.stderr) == (2, "Error: table.csv: Permission denied\n")
