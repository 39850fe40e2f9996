"""The code of the documentation runs, and the targets of its links exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from printed import assert_shown, blocks, code_and_output

from ndcg_ml import evaluate_run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RECORDS = sorted([*ROOT.glob("benchmarks/results/*.md"), *ROOT.glob("reliability/results/*.md")])


@pytest.mark.parametrize(
    ("name", "n_blocks", "needs", "printed"),
    [
        ("sklearn", 9, "sklearn pandas lightgbm", "queries that it scores"),
        ("boosting", 7, "sklearn lightgbm xgboost catboost", "ties='average'"),
        ("runs", 4, "pandas", "look like 'd1', those of run like 'D1'"),
        ("losses", 7, "torch torchmetrics", "no ranks to cut off: flavor.k must be None in SoftmaxLoss"),
    ],
)
def test_the_code_of_a_page_runs(capsys, name, n_blocks, needs, printed):
    for library in needs.split():
        pytest.importorskip(library)
    found, scope = blocks(DOCS / f"{name}.md"), {}
    assert len(found) == n_blocks
    for block in found:
        exec(compile(block, name, "exec"), scope)
    assert printed in capsys.readouterr().out


def test_the_weighted_mean_on_the_page_is_the_mean_of_the_data_sets(capsys):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="MTEB computes the NDCG of a data set by pytrec_eval")
    [block] = [code for code in blocks(DOCS / "runs.md") if "query_weight" in code]
    scope: dict[str, Any] = {"evaluate_run": evaluate_run}
    exec(compile(block, "runs", "exec"), scope)
    weighted, mean_of_means = capsys.readouterr().out.split()
    assert f"# {weighted[:8]}... twice" in block
    runs = {topic: {doc: -rank for rank, doc in enumerate(found)} for topic, found in scope["ranked"].items()}
    found = pytrec_eval.RelevanceEvaluator(scope["judged"], {"ndcg_cut.10"}).evaluate(runs)
    by_dataset: dict[str, list[float]] = {}
    for topic, values in found.items():
        by_dataset.setdefault(scope["dataset"][topic], []).append(values["ndcg_cut_10"])
    theirs = np.mean([np.mean(values) for values in by_dataset.values()])
    assert [float(weighted), float(mean_of_means)] == pytest.approx([theirs] * 2, abs=1e-12)


# By page, the libraries that each block needs.
ALONE = {
    "start": ["sklearn lightgbm", "torch torchmetrics", "lightgbm", "sklearn xgboost", "", "", ""],
    "unjudged": ["", ""],
    "faq": ["", "", ""],
    "coming_from": ["sklearn", "torch torchmetrics", "ranx", "pytrec_eval", "lightgbm"],
}
# Another version of a library trains another model.
SLACK = {("start", 0): [0.3, 0, 0.02], **{("start", at): [10, 0.02] for at in (1, 2, 3)}}


@pytest.mark.filterwarnings("ignore:unsafe cast:Warning")  # Numba warns about ranx
@pytest.mark.parametrize(("name", "at"), [(name, at) for name, needs in ALONE.items() for at in range(len(needs))])
def test_a_block_of_a_page_runs_alone_and_prints_what_is_shown(tmp_path, monkeypatch, capsys, name, at):
    for library in ALONE[name][at].split():
        pytest.importorskip(library)
    found = code_and_output(DOCS / f"{name}.md")
    assert len(found) == len(ALONE[name]) == len(blocks(DOCS / f"{name}.md"))
    monkeypatch.chdir(tmp_path)
    code, shown = found[at]
    exec(compile(code, name, "exec"), {})
    assert_shown(capsys.readouterr().out, shown, SLACK.get((name, at), 1e-12))


def test_the_code_of_deciding_runs(capsys, monkeypatch, tmp_path):
    pytest.importorskip("pandas")
    pytest.importorskip("jinja2", reason="the page makes reports, with the extra [report]")
    plt = pytest.importorskip("matplotlib.pyplot", reason="the page makes reports, with the extra [report]")
    plt.switch_backend("agg")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    found = blocks(DOCS / "deciding.md")
    assert len(found) == 10
    scope: dict[str, object] = {}
    printed = []
    for block in found:
        exec(compile(block, "deciding", "exec"), scope)
        printed.append("\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines()))
    [(_, shown)] = code_and_output(DOCS / "deciding.md")
    assert printed[0] == shown.rstrip()
    plt.close("all")
    assert printed[1] == "904 queries to see a difference of 0.01"
    for name, title in (("evaluation", "NDCG@10 of 149 queries"), ("comparison", "Three models of the demo")):
        assert f"<h1>{title}</h1>" in (tmp_path / f"{name}.html").read_text(encoding="utf-8")


def test_every_public_loss_is_in_the_table_of_costs():
    torch_losses = pytest.importorskip("ndcg_ml.torch")
    page = (DOCS / "losses.md").read_text(encoding="utf-8")
    costs = page[page.index("## Choose a loss") : page.index("## Temperature")]
    losses = [name for name in torch_losses.__all__ if name.endswith("Loss") or name == "Stochastic"]
    assert len(losses) >= 7
    for name in losses:
        assert re.search(rf"^\| `{name}\b", costs, flags=re.MULTILINE), name


@pytest.mark.needs("implicit", "scipy", "torch")
@pytest.mark.filterwarnings("ignore")
def test_the_code_of_full_catalogue_runs(capsys):
    scope: dict[str, Any] = {}
    *code, extreme = blocks(DOCS / "full_catalogue.md")
    for block in code:
        exec(compile(block, "full_catalogue", "exec"), scope)
    [(_, shown)] = code_and_output(DOCS / "full_catalogue.md")
    assert shown in capsys.readouterr().out
    rng = np.random.default_rng(0)  # pyxclib 0.97 (git 5d13086) computed this value of what is drawn after these
    rng.normal(size=6 * rng.integers(5, 25, 180).sum())
    exec(extreme.replace("rng = np.random.default_rng(0)\n", ""), {**scope, "rng": rng})
    assert float(capsys.readouterr().out) == pytest.approx(0.4791165888309479, abs=1e-6)
    from implicit.evaluation import ndcg_at_k

    seen, later = (scope["sp"].csr_matrix(scope[name]) for name in ("seen", "later"))
    unseen = later - later.multiply(seen > 0)
    theirs = ndcg_at_k(scope["model"], seen, unseen, K=10, show_progress=False, num_threads=1)
    ids, _ = scope["model"].recommend(range(200), seen, N=10)
    assert scope["evaluate_topk"](ids, unseen, flavor="implicit", k=10).value == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *RECORDS], ids=lambda path: path.stem)
def test_targets_of_links_exist(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
