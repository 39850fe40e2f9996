"""Run the command line as a user would, and small files for its tests."""

import json
import re
import subprocess
import sys

import pytest

pytest.importorskip("click")

from click.testing import CliRunner, Result

from ndcg_ml.cli import command_group

QRELS = "q1 0 d1 2\nq1 0 d2 0\nq1 0 d3 1\nq2 0 d4 1\nq3 0 d5 3\nq3 0 d1 1\n"
RUN = "q3 Q0 d9 1 7.0 t\nq3 Q0 d5 2 3.5 t\nq1 Q0 d1 1 .9 t\nq1 Q0 d3 3 .5 t\nq1 Q0 d7 2 .5 t\nq9 Q0 d1 1 1 t\n"
BETTER = "q1 Q0 d1 1 3 t\nq1 Q0 d3 2 2 t\nq2 Q0 d4 1 1 t\nq3 Q0 d9 1 7.0 t\nq3 Q0 d5 2 3.5 t\n"

LABELS = "2 qid:7 1:0.5 # first\n0 qid:7 1:0.1\n1 qid:7\n0 qid:8 1:1\n0 qid:8 1:2\n3 qid:9\n1 qid:9\n"
SCORES = "0.3\n0.9\n0.3\n1\n2\n5\n6\n"
TABLE = "qid,label,score,docno\n7,2,0.3,a\n7,0,0.9,b\n7,1,0.3,c\n8,0,1,a\n8,0,2,b\n9,3,5,a\n9,1,6,b\n"
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def invoke(command: str, *more: object, **settings: object) -> Result:
    """Run a command line. Further arguments may contain blanks."""
    return CliRunner().invoke(command_group(), [*command.split(), *map(str, more)], **settings)


def text(command: str, *more: object, **settings: object) -> str:
    result = invoke(command, *more, **settings)
    assert result.exit_code == 0, result.output
    return result.stdout


def document(command: str, *more: object, ok: tuple[int, ...] = (0,), **settings: object) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    result = invoke(command, "--json", *more, **settings)
    assert result.exit_code in ok, result.output
    return json.loads(result.stdout, parse_constant=refuse)


def program(
    arguments: list[object], without: tuple[str, ...] = (), **settings: object
) -> subprocess.CompletedProcess[str]:
    """Run the command in a new process, in which some packages cannot be imported."""
    run = f"import sys; sys.modules.update(dict.fromkeys({without})); from ndcg_ml.cli import main; main()"
    return subprocess.run([sys.executable, "-c", run, *map(str, arguments)], capture_output=True, text=True, **settings)


TREC = "--qrels qrels --run run"
LETOR = "--labels labels --scores scores"
