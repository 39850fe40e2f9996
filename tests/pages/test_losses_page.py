"""docs/losses.md is true: its code runs, and its table is what was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "losses.md"


@pytest.fixture(scope="module")
def training():
    for library in ("torch", "torchmetrics", "lightgbm", "sklearn", "scipy"):
        pytest.importorskip(library)
    return pytest.importorskip("benchmarks.training", reason="benchmarks are not part of the installed package")


@pytest.fixture(scope="module")
def report(training):
    return json.loads((training.RESULTS / "training.json").read_text(encoding="utf-8"))


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


def test_the_table_is_what_was_measured(training, report):
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(training.BEGIN) == page.count(training.END) == 1
    shown = page.split(training.BEGIN)[1].split(training.END)[0]
    assert shown.strip() == training.table(report), "run: python -m benchmarks.training --page"
    assert (training.RESULTS / "training.md").read_text(encoding="utf-8") == training.markdown(report)


def test_every_loss_was_measured_and_chosen_from_what_was_searched(training, report):
    names = [contender.name for contender in training.CONTENDERS]
    assert [row["name"] for row in report["results"]] == names + list(training.OBJECTIVES)
    for contender, row in zip(training.CONTENDERS, report["results"], strict=False):
        assert training.Setting(row["learning_rate"], row["temperature"]) in contender.settings, contender.name
        assert row["settings"] == len(contender.settings)
        assert 1 <= row["epochs"] <= report["settings"]["epochs"]


def test_the_figures_follow_from_the_seeds_and_queries(training, report):
    assert report["seeds"] >= 10
    (reference,) = (row["by_query"] for row in report["results"] if row["name"] == training.REFERENCE)
    assert len(reference) == report["data"]["test_queries"]
    for row in report["results"]:
        by_seed, by_query = np.array(row["by_seed"]), np.array(row["by_query"])
        assert len(by_seed) == report["seeds"]
        figures = (by_seed.mean(), by_query.mean(), by_seed.std(ddof=1), by_seed.min(), by_seed.max())
        written = (row["mean"], row["mean"], row["sd_of_seeds"], row["min"], row["max"])
        np.testing.assert_allclose(figures, written, rtol=0, atol=2e-6, err_msg=row["name"])
        interval = training.differences(by_query, np.array(reference))
        np.testing.assert_allclose(interval, (row["difference"], row["low"], row["high"]), rtol=0, atol=1e-9)


def test_lightgbm_and_our_objective_grew_the_same_trees(report):
    builtin, ours = (
        row
        for row in report["results"]
        if row["name"] in ("LightGBM, lambdarank", 'LightGBM, NDCGObjective("lightgbm")')
    )
    assert builtin["by_seed"] == ours["by_seed"]
    assert builtin["by_query"] == ours["by_query"]


def test_only_the_marked_part_of_a_page_is_written(training, report, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{training.BEGIN}\nold\n{training.END}\n\nafter\n", encoding="utf-8")
    for _ in range(2):
        training.write_page(report, page)
        written = page.read_text(encoding="utf-8")
        table = training.table(report)
        assert written == f"before\n\n{training.BEGIN}\n{table}\n{training.END}\n\nafter\n"


def test_the_choice_is_the_best_mean_of_the_folds(training):
    flat, peaked = training.Setting(0.1), training.Setting(0.2, 1.0)
    curves = {flat: np.array([0.5, 0.6, 0.6]), peaked: np.array([0.2, 0.1, 0.7])}
    assert training.best_of(curves) == (peaked, 3, 0.7)
    assert training.best_of({flat: curves[flat]}) == (flat, 2, 0.6)


def test_folds_are_whole_queries_and_scored_once(training):
    sizes = np.arange(1, 11)
    qid = np.repeat(np.arange(10), sizes)
    split = training.Split(qid[:, None].astype(float), np.zeros(len(qid), dtype=int), sizes)
    scored = []
    for fit_on, score_on in training.folds(split):
        fitted, held_out = (set(part.features[:, 0]) for part in (fit_on, score_on))
        assert not fitted & held_out
        assert fitted | held_out == set(range(10))
        np.testing.assert_array_equal(
            np.unique(score_on.features[:, 0], return_counts=True)[1], np.sort(score_on.sizes)
        )
        scored += sorted(held_out)
    assert sorted(scored) == list(range(10))
