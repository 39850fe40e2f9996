"""``--html``: reports of ``ndcg-ml eval`` and ``compare``, and where they may be written."""

from __future__ import annotations

import pytest

pytest.importorskip("click")
pytest.importorskip("jinja2", reason="a report needs the extra [report]")
pytest.importorskip("matplotlib", reason="a report needs the extra [report]")

import subprocess
import sys
from html import unescape
from pathlib import Path

from command_line import (
    TREC,
    document,
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


def test_without_the_extra_a_report_is_refused_before_any_work():
    Path("run").write_text("not a run\n")  # reading this file would be an error of its own
    without = "import sys; sys.modules['jinja2'] = None; from ndcg_ml.cli import main; main()"
    arguments = [sys.executable, "-c", without, "eval", *TREC.split(), "--html", "report.html"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: a report needs jinja2 and matplotlib")
    assert "pip install 'ndcg_ml[report]'" in done.stderr
    assert not Path("report.html").exists()
