"""docs/losses.md is true: its code runs, and it names every loss."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "losses.md"


def test_the_code_runs(capsys):
    pytest.importorskip("torch")
    pytest.importorskip("torchmetrics")
    scope: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 9
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), scope)
    printed = capsys.readouterr().out
    assert "no ranks to cut off: flavor.k must be None in SoftmaxLoss" in printed


def test_every_public_loss_is_in_the_table_of_costs():
    torch_losses = pytest.importorskip("ndcg_ml.torch")
    page = PAGE.read_text(encoding="utf-8")
    costs = page[page.index("## Which, and when") : page.index("## What was measured")]
    losses = [name for name in torch_losses.__all__ if name.endswith("Loss") or name == "Stochastic"]
    assert len(losses) >= 7
    for name in losses:
        assert re.search(rf"^\| `{name}\b", costs, flags=re.MULTILINE), name
