"""The documentation is true: its code runs, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))


def test_the_code_of_model_selection_runs(capsys):
    for library in ("sklearn", "pandas", "lightgbm", "xgboost", "catboost"):
        pytest.importorskip(library)
    [page] = [path for path in DOCS if path.name == "model_selection.md"]
    scope: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 12
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


@pytest.mark.needs("implicit", "scipy", "torch")
@pytest.mark.filterwarnings("ignore")
def test_the_code_of_full_catalogue_runs():
    [page] = [path for path in DOCS if path.name == "full_catalogue.md"]
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 3
    scope: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), scope)
    from implicit.evaluation import ndcg_at_k

    seen, later = (scope["sp"].csr_matrix(scope[name]) for name in ("seen", "later"))
    unseen = later - later.multiply(seen > 0)
    theirs = ndcg_at_k(scope["model"], seen, unseen, K=10, show_progress=False, num_threads=1)
    ids, _ = scope["model"].recommend(range(200), seen, N=10)
    assert scope["evaluate_topk"](ids, unseen, flavor="implicit", k=10).value == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("page", DOCS, ids=lambda path: path.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
