"""The README is true: its code runs, its table is the demo's, it has two set-up lines.

``python tests/pages/test_readme.py --write`` writes the table again from docs/demo.json, which is what
``ndcg-ml demo --json --picture docs/demo.png`` printed.
"""

from __future__ import annotations

import pytest

pytest.importorskip("click")

import json
import re
import sys
from pathlib import Path

from ndcg_ml import PRESETS
from ndcg_ml.demo.comparison import WELL_KNOWN

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
BEGIN, END = "<!-- table: written by tests/pages/test_readme.py --write -->\n", "<!-- end of table -->\n"


def table() -> str:
    """How far one metric name moves, from the demo's own output."""
    values = json.loads((ROOT / "docs" / "demo.json").read_text())["presets"]
    models = ["scikit-learn", "PyTorch", "LightGBM", "no model"]
    heads = [*(f"{model} model" for model in models[:3]), models[3]]
    lines = [
        f"| definition of | gain | tied scores | empty query | {' | '.join(heads)} |",
        "|---|---|---|---|--:|--:|--:|--:|",
    ]
    for name in WELL_KNOWN:
        flavor = PRESETS[name]
        gain = {"linear": "y", "exponential": "2^y - 1"}[str(flavor.gain)]
        empty = flavor.empty if isinstance(flavor.empty, str) else f"{flavor.empty:g}"
        row = " | ".join(f"{values[name][model]:.4f}" for model in models)
        lines.append(f"| {name} | {gain} | {flavor.ties} | {empty} | {row} |")
    spread = [[values[name][model] for name in WELL_KNOWN] for model in models]
    lines.append(f"| **largest - smallest** | | | | {' | '.join(f'**{max(v) - min(v):.4f}**' for v in spread)} |")
    note = '"No model" gives every document the same score, so that the tie rule alone decides.\n'
    return "\n".join(lines) + "\n\n" + note


def parts() -> tuple[str, str, str]:
    text = README.read_text()
    before, rest = text.split(BEGIN)
    middle, after = rest.split(END)
    return before, middle, after


def test_the_table_is_what_the_demo_printed():
    assert parts()[1] == table()


def test_the_code_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 8
    pytest.importorskip("torch")
    pytest.importorskip("lightgbm")
    scope: dict[str, object] = {}
    printed = []
    for block in blocks:
        exec(compile(block, "README.md", "exec"), scope)
        printed.append(capsys.readouterr().out)
    assert 0 < scope["search"].best_score_ <= 1  # type: ignore[attr-defined]
    assert scope["booster"].best_iteration >= 1  # type: ignore[attr-defined]
    assert printed[3].count("\n") == 5
    whole = scope["evaluate"](  # type: ignore[operator]
        scope["y"], scope["scores"], qid=scope["qid"], flavor=scope["flavor"]
    ).value
    assert [float(value) for value in printed[5].split()] == pytest.approx([whole, whole], rel=1e-12)
    assert "0.7780: 1 match with a preset\n  lightgbm@10 " in printed[6]
    assert printed[6].endswith("\ntrec_eval\n")
    facts = printed[7].split()
    assert facts == ["linear", "0.6697", "exponential", "0.659", "jarvelin", "1.0", "log2", "0.6309", "1.0"]
    for fact in ("0.6697", "0.6590", "0.6309"):
        assert fact in README.read_text()


def test_there_are_two_setup_lines_that_make_their_own_environment():
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", README.read_text(), flags=re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("python3 -m venv .venv && .venv/bin/pip install")
        assert "-c constraints.txt" in line
    assert lines[0].endswith(".venv/bin/ndcg-ml demo")


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        assert (ROOT / target).exists(), target


if __name__ == "__main__" and "--write" in sys.argv:
    head, _, tail = parts()
    README.write_text(head + BEGIN + table() + END + tail)
