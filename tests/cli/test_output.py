"""What the command line prints on terminals and in pipes, how it ends, what it writes, and what it never replaces."""

import json
import os
import re
import signal
import subprocess
import sys
from decimal import Decimal
from html import unescape
from pathlib import Path

import pytest
from command_line import BETTER, LABELS, QRELS, RUN, SCORES, TABLE, TREC, document, invoke, program, text

from ndcg_ml import Flavor
from ndcg_ml.cli import command_group
from ndcg_ml.runs import evaluate_run


def test_a_long_argument_is_shown_in_part():
    for command in (f"eval {TREC} -k {'x' * 10**5}", f"identify {'9' * 10**5}x {TREC}"):
        result = invoke(command)
        assert result.exit_code == 2
        assert len(result.output) < 700


def test_processes_and_exit_codes():
    fine = program(["eval", *TREC.split(), "-k", 2])
    assert (fine.returncode, fine.stderr) == (0, "")
    assert fine.stdout == text(f"eval {TREC} -k 2")
    piped = program(["eval", "--qrels", "qrels", "--run", "-", "-k", 2], input=RUN)
    assert piped.stdout == fine.stdout
    nothing = program(["identify", "0.12345", "-k", 3, *TREC.split()])
    assert (nothing.returncode, nothing.stderr) == (1, "")
    wrong = program(["eval", "--table", "labels"])
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    as_module = [sys.executable, "-m", "ndcg_ml", "eval", *TREC.split(), "-k", "2"]
    done = subprocess.run(as_module, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, fine.stdout, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_ends_with_one_line():
    with open("/dev/full", "w") as full:
        run = [sys.executable, "-c", "from ndcg_ml.cli import main; main()", "flavors"]
        done = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "Error: the output cannot be written: No space left on device.\n")


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
def test_an_interrupt_ends_without_a_traceback():
    os.mkfifo("pipe")
    # CatBoost may have left the signal ignored in this process, which a new one inherits.
    heard = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from ndcg_ml.cli import main; main()"
    )
    run = [sys.executable, "-c", heard, "eval", "--qrels", "pipe", "--run", "run"]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process, open("pipe", "w"):  # opened here when the command opens it there, and waits for its lines
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "Error: interrupted.")


def test_an_unjudged_run_is_warned_of_on_standard_error():
    Path("foreign").write_text("q1 Q0 D1 1 1 t\nq1 Q0 D2 1 .5 t\n")
    result = invoke("eval --qrels qrels --run foreign --json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["values"][0]["ndcg"] == 0.0
    told = "Warning: the run retrieves no judged document in any of the 3 topics.* like 'd1', .* like 'D1'"
    assert re.match(told, result.stderr)
    assert result.stderr.count("\n") == 1
    piped = invoke("eval --qrels qrels --run - --json", input=Path("foreign").read_text())
    assert piped.stderr == result.stderr.replace("foreign", "standard input")


GROUP = command_group()
COMMANDS = {name: GROUP.get_command(None, name) for name in GROUP.list_commands(None)}


def test_every_option_has_a_help_and_shows_its_default():
    options = [param for each in COMMANDS.values() for param in each.params if param.param_type_name == "option"]
    assert [option.name for option in options if not option.help] == []
    given = [option for option in options if isinstance(option.default, (int, float, str)) and not option.is_flag]
    assert {option.name for option in given} >= {"confidence", "seed", "flavor"}
    assert [option.name for option in given if not option.show_default] == []


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_names_only_what_exists(command):
    shown = " ".join(text(f"{command} --help").split())
    assert "TEXT" not in shown  # options say what they take
    options = {name for each in COMMANDS.values() for param in each.params for name in param.opts}
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", shown):
        assert option in options | {"--help", "--version"}
    for named in re.findall(r"ndcg-ml ([a-z]+(?:-[a-z]+)*)", shown):
        assert named in COMMANDS
    for flavor in re.findall(r"'((?:\w+@|ndcg\b)[^' ]*)'", shown):
        Flavor.parse(flavor)


def test_the_examples_of_the_help_run():
    for name, content in (("qrels.txt", QRELS), ("run.txt", RUN), ("test.txt", LABELS), ("scores.txt", SCORES)):
        Path(name).write_text(content)
    three = [f"{line},{i % 2},{i}" for i, line in enumerate(TABLE.splitlines()[1:])]
    Path("scores.csv").write_text("\n".join(["qid,label,linear,docno,trees,network", *three]))
    user = TABLE.replace("qid,label,score,docno", "user,rating,s,old").replace("a\n", "1\n").replace("b\n", "2\n")
    user = re.sub("c\n", "3\n", user)
    # One country per user.
    head, *ratings = user.splitlines()
    Path("ratings.csv").write_text("\n".join([f"{head},country", *(f"{row},nl" for row in ratings)]))
    Path("clicks.csv").write_text(user.replace(",s,", ",new,"))
    files = {
        "bm25.run": RUN,
        "dense.run": BETTER,
        "qrels.jsonl": QRELS,
        "main.jsonl": RUN,
        "new.jsonl": RUN,
        "a.run": RUN,
        "b.run": BETTER,
    }
    for name, content in files.items():  # the format is seen from the content
        Path(name).write_text(content)
    examples = [
        line.strip()
        for name in COMMANDS
        for line in invoke(f"{name} --help").stdout.splitlines()
        if re.match(r"\s+(zcat .* \| )?ndcg-ml ", line)
    ]
    assert len(examples) == 15
    for example in examples:
        before, _, arguments = example.partition("ndcg-ml ")
        result = invoke(arguments, input=RUN if before else None)
        expected = {"identify": 1}.get(arguments.split()[0], 0)
        assert result.exit_code == expected, (example, result.output)


def test_a_reader_that_leaves_early_is_no_error():
    rows = "".join(f"query-{i // 2},1,0.5\n" for i in range(10_000))
    Path("many.csv").write_text(f"qid,label,score\n{rows}")
    run = "from ndcg_ml.cli import main; main()"
    arguments = [sys.executable, "-c", run, "eval", "--table", "many.csv", "--per-query"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=60)


def test_an_encoding_that_lacks_a_letter():
    Path("table.csv").write_text("qid,label,score\nWürzburg,1,0.5\n", encoding="utf-8")
    shown = program(["eval", "--table", "table.csv", "--per-query"], env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[1].startswith(r"W\xfcrzburg ")


def test_help_needs_no_numpy_and_a_command_no_other():
    heavy = ("pandas", "torch", "matplotlib", "scipy", "sklearn", "jinja2", "pyarrow", "numba", "lightgbm")
    assert invoke(f"eval {TREC} --save base.json").exit_code == 0
    for arguments, absent, code in (
        ("--help", ("numpy",), 0),
        ("compare run better --qrels qrels", (*heavy, "ndcg_ml.demo"), 0),
        ("gate base.json --run better --margin .01", heavy, 4),
    ):
        done = program(arguments.split(), absent)
        assert (done.returncode, done.stderr) == (code, "")


def test_ids_of_parquet_are_in_json():
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {
        "numbers": (pa.array([3, 3, 2**60]), ["3", str(2**60)]),
        "bytes": (pa.array([b"a\0", b"a\0", b"b"]), ["a\0", "b"]),
        "days": (pa.array([0, 0, 1], pa.date32()), ["1970-01-01", "1970-01-02"]),
        "decimals": (pa.array([Decimal("1.50")] * 2 + [Decimal("2.00")]), ["1.50", "2.00"]),
    }
    for column, expected in columns.values():
        pq.write_table(pa.table({"qid": column, "label": [1, 0, 0], "score": [0.1, 0.2, 0.3]}), "rows")
        assert [row["qid"] for row in document("eval --table rows --per-query")["per_query"]] == expected


# -- files that commands write, reports with --html among them --------------------------------------------------------


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


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout")
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


def test_the_file_of_standard_input_is_not_overwritten():
    with open("run") as file:
        done = program(["eval", "--qrels", "qrels", "--run", "-", "--save", "run"], stdin=file)
    assert (done.returncode, Path("run").read_text()) == (2, RUN)


@pytest.mark.parametrize("label", ["2", '"half a line'])
def test_labels_that_were_filled_in_are_not_replaced(label):
    command = "judge-next run better --qrels qrels --output todo.jsonl"
    Path("todo.jsonl").write_text('{"qid": "q3", "docno": "d9", "label": null}\n')
    assert invoke(command).exit_code == 0
    Path("todo.jsonl").write_text(f'{{"qid": "q3", "docno": "d9", "label": {label}}}\n')
    result = invoke(command)
    assert result.exit_code == 2
    assert "which has labels or was not written by this command" in result.stderr
    done = invoke(f"{command[:-10]} more.jsonl" + " --filled todo.jsonl" * (label == "2"))  # the advised call
    assert done.exit_code == 0, done.output
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
    assert 'pip install ".[report]" in a clone of ndcg_ml' in done.stderr
    assert not Path("report.html").exists()
