"""The code of the documentation runs and prints what is shown, and the targets of its links exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from printed import assert_shown, blocks, code_and_output, run_blocks, run_script

from ndcg_ml import evaluate_run, ndcg_score

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
    found = blocks(DOCS / f"{name}.md")
    assert len(found) == n_blocks
    assert printed in "".join(run_blocks(capsys, *found))


def test_the_weighted_mean_on_the_page_is_the_mean_of_the_data_sets(capsys):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="MTEB computes the NDCG of a data set by pytrec_eval")
    [block] = [code for code in blocks(DOCS / "runs.md") if "query_weight" in code]
    scope: dict[str, Any] = {"evaluate_run": evaluate_run}
    weighted, mean_of_means = run_blocks(capsys, block, scope=scope)[0].split()
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
    assert_shown(*run_blocks(capsys, code), shown, SLACK.get((name, at), 1e-12))


def test_the_code_of_deciding_runs(capsys, monkeypatch, tmp_path):
    pytest.importorskip("pandas")
    pytest.importorskip("jinja2", reason="the page makes reports, with the extra [report]")
    plt = pytest.importorskip("matplotlib.pyplot", reason="the page makes reports, with the extra [report]")
    plt.switch_backend("agg")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    found = blocks(DOCS / "deciding.md")
    assert len(found) == 10
    first, second, *_ = run_blocks(capsys, *found)
    [(_, shown)] = code_and_output(DOCS / "deciding.md")
    assert [line.rstrip() for line in first.splitlines()] == shown.rstrip().split("\n")
    plt.close("all")
    assert second == "904 queries to see a difference of 0.01\n"
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
    [(_, shown)] = code_and_output(DOCS / "full_catalogue.md")
    assert shown in "".join(run_blocks(capsys, *code, scope=scope))
    rng = np.random.default_rng(0)  # pyxclib 0.97 (git 5d13086) computed this value of what is drawn after these
    rng.normal(size=6 * rng.integers(5, 25, 180).sum())
    [printed] = run_blocks(capsys, extreme.replace("rng = np.random.default_rng(0)\n", ""), scope={**scope, "rng": rng})
    assert float(printed) == pytest.approx(0.4791165888309479, abs=1e-6)
    from implicit.evaluation import ndcg_at_k

    seen, later = (scope["sp"].csr_matrix(scope[name]) for name in ("seen", "later"))
    unseen = later - later.multiply(seen > 0)
    theirs = ndcg_at_k(scope["model"], seen, unseen, K=10, show_progress=False, num_threads=1)
    ids, _ = scope["model"].recommend(range(200), seen, N=10)
    assert scope["evaluate_topk"](ids, unseen, flavor="implicit", k=10).value == pytest.approx(theirs, abs=1e-12)


def code_of_training():
    found = blocks(DOCS / "training.md")
    assert len(found) == 10
    [script] = [block for block in found if block.startswith("# validate.py\n")]
    # tests/pytorch/test_torch_distributed.py runs the other that begins with a comment
    return [block for block in found if not block.startswith("# ")], script


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:.*is deprecated:FutureWarning")  # Lightning's own warnings
def test_the_code_of_training_runs(capsys, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("lightning")
    monkeypatch.chdir(tmp_path)
    warnings.filterwarnings("error", "queries are added after|this state_dict leaves out")  # our own warnings
    scope: dict[str, Any] = {"__name__": "training_page"}
    printed = "".join(run_blocks(capsys, *code_of_training()[0], scope=scope))
    assert "4 of the queries appeared more than once (such as id 6)" in printed
    assert printed.count("val_ndcg_at_") == 3
    [kept] = (tmp_path / "checkpoints").iterdir()
    frugal = scope["frugal"]
    assert frugal.current_epoch < 30
    assert 0 < frugal.lightning_module.improvements <= frugal.current_epoch - 4
    value = scope["trainer"].checkpoint_callback.best_model_score.item()
    assert kept.name.endswith(f"-val_ndcg_at_10={value:.4f}.ckpt")


@pytest.mark.long  # test_torch_distributed.py has two processes in the quick line
def test_the_script_of_training_runs_in_two_processes(tmp_path):
    torch = pytest.importorskip("torch")
    script = tmp_path / "validate.py"
    script.write_text(code_of_training()[1], encoding="utf-8")
    logs = ["--log-dir", str(tmp_path / "logs"), "--redirects", "3"]  # on one stream their lines would mix
    run = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *logs, str(script)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    generator = torch.Generator().manual_seed(0)
    scores = torch.stack([torch.rand(9, generator=generator) for _ in range(35)]).numpy()
    value = ndcg_score([[number % 4 for number in range(9)]] * 35, scores, flavor="lightgbm", k=10)
    for rank in "01":
        [log] = (tmp_path / "logs").glob(f"*/attempt_0/{rank}/stdout.log")
        lines = [line.removeprefix(f"{rank} ") for line in log.read_text().splitlines()]
        assert float(lines[0]) == pytest.approx(value, abs=1e-12)
        assert "1 of the queries appeared more than once" in lines[1]


def test_the_page_has_the_json_that_the_commands_print(tmp_path, monkeypatch):
    pytest.importorskip("click")
    from command_line import document, invoke

    page = (DOCS / "api" / "json.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    files, *examples = re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL)
    for name, text in re.findall(r"(\w+\.json): +(.*)", files):
        Path(name).write_text(text)
    assert invoke("eval --qrels qrels.json --run old.json -k 2 --save base.json").exit_code == 0
    commands = re.findall(r"^\$ ndcg-ml (.*)", page, flags=re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["eval", "compare", "gate", "explain", "identify"]
    for command, example in zip(commands, examples, strict=True):
        printed = document(command.removesuffix(" --json"), ok=(0, 4))
        if command.startswith("gate"):
            printed["notes"] = []  # they name the date
        assert printed == json.loads(example)


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *RECORDS], ids=lambda path: path.stem)
def test_targets_of_links_exist(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


# -- docs/recipes.md, whose sections run if their tools are installed -------------------------------------------------

RECIPES = DOCS / "recipes.md"
DATA, ENGINES = "The data of this page", "The data of the engines"  # tests/engines run those below the second
# By the title of a section: checks that run after it, and below the tools that it needs besides NumPy.
CHECKS = {
    "Optuna": """
        assert {trial.state.name for trial in study.trials} == {"COMPLETE", "PRUNED"}
        again = ndcg_score(y[valid], best.predict(X[valid]), qid=qid[valid], flavor=flavor)
        assert abs(again - study.best_value) < 1e-9
    """,
    "mlflow": """
        from ndcg_ml import Flavor

        logged = mlflow.get_run(run.info.run_id)
        assert logged.data.metrics == {f"ndcg_at_{k}": value for k, value in result.value.items()}
        assert Flavor.parse(logged.data.params["ndcg_flavor"]) == result.flavor
    """,
    "sentence-transformers": """
        similar = model.similarity(*(model.encode(list(found.values())) for found in (queries, texts))).numpy()
        grades, ids = [[qrels[q].get(d, 0) for d in texts] for q in queries], [[*texts]] * len(queries)
        expected = ndcg_score(grades, similar, doc_id=ids, k=10, flavor="trec_eval[gain=exponential]")
        assert abs(graded["ndcg_at_10"] - expected) < 1e-9
    """,
    "Hugging Face Trainer": """
        with torch.no_grad():
            scores = trainer.model.layers(torch.from_numpy(X[valid])).squeeze(-1).numpy()
        expected = ndcg_score(y[valid], scores, qid=qid[valid], flavor=flavor)
        assert abs(trainer.evaluate()["eval_ndcg_at_10"] - expected) < 1e-6
        assert abs(trainer.state.best_metric - expected) < 1e-6
    """,
    "torchmetrics": """
        whole = evaluate(y[valid], X[valid, 0] + X[valid, 1] * X[valid, 2], qid=qid[valid], flavor=flavor)
        found, interval = strapped.compute(), whole.interval(method="percentile")
        assert abs(found["quantile"] - torch.tensor([interval.low, interval.high])).max() < 0.01
    """,
    "skorch": """
        found = ndcg_score(y[valid], net.predict(X[valid])[:, 0], qid=qid[valid], flavor=flavor)
        assert abs(found - max(net.history[:, "ndcg_at_10"])) < 1e-6
    """,
    "Keras": """
        found = ndcg_score(y[valid], network.predict(X[valid], verbose=0)[:, 0], qid=qid[valid], flavor=flavor)
        assert abs(found - max(history.history["val_ndcg_at_10"])) < 1e-6
    """,
    "FLAML": """
        scores = automl.predict(X[valid])
        assert abs(1 - automl.best_loss - ndcg_score(y[valid], scores, qid=qid[valid], flavor=flavor)) < 1e-9
    """,
    "Ray Tune": """
        scores = [X[valid, 0] + 5 * w * X[valid, 1] * X[valid, 2] for w in (0.0, 0.1, 0.2, 0.4)]
        values = [ndcg_score(y[valid], each, qid=qid[valid], flavor=flavor) for each in scores]
        assert abs(grid.get_best_result().metrics["ndcg_at_10"] - max(values)) < 1e-9
    """,
    "skore": """
        expected = ndcg_score(y[test], ranker.predict(table[test]), qid=qid[test], flavor=flavor)
        assert abs(report.metrics.get("ndcg_at_10") - expected) < 1e-12
    """,
    "skops": """
        assert set(skops.io.get_untrusted_types(file="ranker.skops")) == {*ours, *theirs}
        expected = ndcg_score(y[test], ranker.predict(X[test]), qid=qid[test], flavor=flavor)
        assert loaded.score(X[test], y[test], qid=qid[test]) == expected
    """,
}
NEEDS = {
    "Optuna": ("optuna", "optuna_integration", "lightgbm", "sklearn"),
    "mlflow": ("mlflow", "pandas", "lightgbm"),
    "sentence-transformers": ("sentence_transformers",),
    "Hugging Face Trainer": ("transformers", "accelerate", "torch"),
    "torchmetrics": ("torchmetrics", "torch"),
    "skorch": ("skorch", "torch"),
    "Keras": ("keras",),
    "FLAML": ("flaml", "lightgbm", "sklearn", "pandas"),
    "Ray Tune": ("ray", "pandas", "pyarrow"),
    "skore": ("skore", "lightgbm", "sklearn"),
    "skops": ("skops", "lightgbm", "sklearn"),
}


def test_every_section_with_code_is_run_by_a_test():
    titles = re.findall(r"^## (.*)$", RECIPES.read_text("utf-8"), flags=re.MULTILINE)
    of_engines = [ENGINES, "Dask", "Spark", "Ray", "Files larger than memory", "Processes", "Folds"]
    assert [title for title in titles if blocks(RECIPES, title)] == [DATA, *NEEDS, *of_engines]


@pytest.mark.parametrize(
    "section", [pytest.param(title, marks=pytest.mark.needs(*needs)) for title, needs in NEEDS.items()]
)
def test_a_section_runs(tmp_path, section):
    offline = {"HF_HUB_OFFLINE": "1", "MLFLOW_DISABLE_TELEMETRY": "true", "KERAS_BACKEND": "torch"}
    run_script(tmp_path, *blocks(RECIPES, DATA), *blocks(RECIPES, section), CHECKS[section], **offline)
