"""``--html``: reports of ``ndcg-ml eval`` and ``compare``, and where they may be written."""

from __future__ import annotations

import pytest

pytest.importorskip("click")
pytest.importorskip("pyarrow")

import dataclasses
import subprocess
import sys
from html import unescape
from pathlib import Path

from command_line import (
    RUN,
    TREC,
    document,
    program,
    text,
)

from ndcg_ml import compare
from ndcg_ml.runs import evaluate_run

pytestmark = pytest.mark.usefixtures("files")


def test_a_report_of_an_evaluation():
    pytest.importorskip("jinja2", reason="a report needs the extra [report]")
    pytest.importorskip("matplotlib", reason="a report needs the extra [report]")
    command = f"eval {TREC} -k 1 -k 10"
    shown = text(f"{command} --html", "a report.html")
    assert shown == text(command)
    page = Path("a report.html").read_text(encoding="utf-8")
    typed = f"ndcg-ml {command} --html 'a report.html'"
    assert page == evaluate_run("qrels", "run", k=(1, 10)).to_html(command=typed)
    assert typed in unescape(page)
    assert document(f"{command} --html other.html") == document(command)
    assert Path("other.html").exists()


def test_a_report_of_a_comparison():
    pytest.importorskip("jinja2", reason="a report needs the extra [report]")
    pytest.importorskip("matplotlib", reason="a report needs the extra [report]")
    Path("folder").mkdir()
    Path("folder/run").write_text(RUN)
    command = "compare folder/run better --qrels qrels --queries both --html report.html"
    text(command)
    page = Path("report.html").read_text(encoding="utf-8")
    systems = [evaluate_run("qrels", name, queries="both") for name in ("run", "better")]
    found = compare(*systems, names=["run", "better"], n_resamples=10_000, seed=0, missing="drop", unjudged="accept")
    found = dataclasses.replace(found, accepts_unjudged=False)
    assert page == found.to_html(command=f"ndcg-ml {command}")
    text("compare run better run --qrels qrels --html report.html")


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_without_the_extra_a_report_is_refused_before_any_work(missing):
    Path("run").write_text("not a run\n")  # reading this file would be an error of its own
    without = f"import sys; sys.modules[{missing!r}] = None; from ndcg_ml.cli import main; main()"
    arguments = [sys.executable, "-c", without, "eval", *TREC.split(), "--html", "report.html"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: a report needs jinja2 and matplotlib")
    assert "pip install 'ndcg_ml[report]'" in done.stderr
    assert not Path("report.html").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_leaves_no_report():
    pytest.importorskip("jinja2", reason="a report needs the extra [report]")
    pytest.importorskip("matplotlib", reason="a report needs the extra [report]")
    done = program(["eval", *TREC.split(), "--html", "/dev/full"])
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Error: /dev/full: No space left on device.\n")
