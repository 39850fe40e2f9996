"""The documentation is true: its code runs, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))


def test_the_code_of_model_selection_runs(capsys):
    for library in ("sklearn", "pandas", "lightgbm", "xgboost", "catboost"):
        pytest.importorskip(library)
    [page] = [path for path in DOCS if path.name == "model_selection.md"]
    scope: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 13
    for block in blocks:
        exec(compile(block, page.name, "exec"), scope)
    assert "ties='average'" in capsys.readouterr().out  # the switch that LightGBM's own metric cannot express


def test_the_code_of_runs_runs(capsys):
    pytest.importorskip("pandas")
    [page] = [path for path in DOCS if path.name == "runs.md"]
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 3
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), scope)
    assert "look like 'd1', those of run like 'D1'" in capsys.readouterr().out


@pytest.mark.parametrize("page", DOCS, ids=lambda path: path.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
