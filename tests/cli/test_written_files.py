"""The files that commands write: which names are refused, and what is said where one cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("click")

from command_line import TREC, invoke, program

pytestmark = pytest.mark.usefixtures("files")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"eval {TREC} --save -", "must be the name of a file; got -."),
        (f"eval {TREC} --save none/base.json", "the folder none does not exist"),
        ("gate qrels --run run --margin .1 --markdown -", "must be the name of a file; got -."),
        ("judge-next run better --qrels qrels --write-qrels -", "must be the name of a file; got -."),
    ],
)
def test_what_is_no_file_is_refused(command, message):
    result = invoke(command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not Path("-").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        f"eval {TREC} --save /dev/full",
        "gate base.json --run run --margin .1 --markdown /dev/full",
        "judge-next run other --qrels qrels --output /dev/full",
        "judge-next run better --qrels qrels --write-qrels /dev/full",
    ],
)
def test_a_full_disk_ends_with_1_and_the_name_of_the_output(command):
    assert invoke(f"eval {TREC} --save base.json").exit_code == 0
    Path("other").write_text("q1 Q0 unjudged 1 3 t\nq3 Q0 d5 1 3 t\nq2 Q0 d4 1 3 t\n")
    done = program(command.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.rstrip(".\n") == "Error: /dev/full: No space left on device"


def test_pipes_can_be_written():
    done = program(["eval", *TREC.split(), "--save", "/dev/stdout"])
    assert done.returncode == 0
    assert '"ndcg_ml_evaluation": ' in done.stdout
