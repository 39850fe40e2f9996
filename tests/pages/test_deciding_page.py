"""The code of docs/deciding.md prints what the page shows, and its figures are those of the records."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "deciding.md"


def test_the_code_runs(capsys, monkeypatch, tmp_path):
    pytest.importorskip("pandas")
    pytest.importorskip("jinja2", reason="the page makes reports, with the extra [report]")
    plt = pytest.importorskip("matplotlib.pyplot", reason="the page makes reports, with the extra [report]")
    plt.switch_backend("agg")
    (tmp_path / "docs").symlink_to(PAGE.parent)
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 10
    scope: dict[str, object] = {}
    printed = []
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), scope)
        printed.append("\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines()))
    [shown] = re.findall(r"<!-- printed -->\n```\n(.*?)\n```", page, flags=re.DOTALL)
    assert printed[0] == shown
    plt.close("all")
    assert printed[1] == "904 queries to see a difference of 0.01"
    for name, title in (("evaluation", "NDCG@10 of 149 queries"), ("comparison", "Three models of the demo")):
        assert f"<h1>{title}</h1>" in (tmp_path / f"{name}.html").read_text(encoding="utf-8")


def test_the_verdict_is_that_of_the_table():
    measured = pytest.importorskip("benchmarks.deciding", reason="benchmarks are not part of the installed package")
    significant = {(pair.a, pair.b): pair.significant for pair in measured.compare_demo_models().pairs}
    assert significant == {
        ("scikit-learn", "PyTorch"): True,
        ("scikit-learn", "LightGBM"): False,
        ("PyTorch", "LightGBM"): True,
    }
    recorded = json.loads(measured.RESULT.read_text(encoding="utf-8"))["rows"]
    needed = [row["needed_for_0.01"] for row in recorded]
    assert (min(needed), max(needed)) == (693, 5739)  # "from 700 to 6 000"


def test_the_table_is_what_was_measured():
    simulation = pytest.importorskip("benchmarks.coverage", reason="benchmarks are not part of the installed package")
    page = simulation.PAGE.read_text(encoding="utf-8")
    report = json.loads(simulation.RESULT.read_text(encoding="utf-8"))
    shown = page.split(simulation.BEGIN)[1].split(simulation.END)[0]
    assert shown.strip() == simulation.table(report), "run: python -m benchmarks.coverage --page"
    assert f"{report['samples']} samples".replace("4000", "4 000") in page
