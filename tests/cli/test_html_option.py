"""``--html``: reports of ``ndcg-ml eval`` and ``compare``, and where they may be written."""

from __future__ import annotations

import pytest

pytest.importorskip("click")
pytest.importorskip("pyarrow")
pytest.importorskip("jinja2", reason="a report needs the extra [report]")
pytest.importorskip("matplotlib", reason="a report needs the extra [report]")

import subprocess
import sys
from html import unescape
from pathlib import Path

from command_line import (
    TREC,
    document,
    invoke,
    text,
)

from ndcg_ml.runs import evaluate_run

pytestmark = pytest.mark.usefixtures("files")


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


REPORTS = {
    "eval --table table.csv --html table.csv": "--html would replace 'table.csv', which is read",
    f"eval {TREC} --html run": "--html would replace 'run', which is read",
    "compare run better --qrels qrels --html better": "--html would replace 'better', which is read",
    f"eval {TREC} --html none/report.html": "the folder none does not exist",
    f"eval {TREC} --html .": "File '.' is a directory",
    f"eval {TREC} --html -": "must be the name of a file; got -",
}


@pytest.mark.parametrize("command", REPORTS)
def test_a_report_that_cannot_be_written_is_refused(command, files):
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    result = invoke(command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert REPORTS[command] in result.stderr
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


@pytest.mark.parametrize("command", [f"eval {TREC}", "compare run better --qrels qrels"])
def test_without_the_extra_a_report_is_refused_before_any_work(command):
    Path("run").write_text("not a run\n")  # reading this file would be an error of its own
    without = "import sys; sys.modules['jinja2'] = None; from ndcg_ml.cli import main; main()"
    arguments = [sys.executable, "-c", without, *command.split(), "--html", "report.html"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: a report needs jinja2 and matplotlib")
    assert "pip install 'ndcg_ml[report]'" in done.stderr
    assert not Path("report.html").exists()
