"""The code of the documentation and of notebooks runs and prints what is shown, and the targets of links exist."""

import ast
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import tomllib
import warnings
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from lanes import quick
from printed import assert_shown, blocks, code_and_output, documented, run_blocks, run_script

from ndcg_ml import evaluate_run, ndcg_score
from notebooks.__main__ import DIGEST, differences, digest, executed, paths, shown

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# The figures, and the libraries that each needs besides Matplotlib.
FIGURES = {
    **dict.fromkeys(("winner", "gains_and_discounts", "ideals", "ties", "range", "decision"), ""),
    "batches": "torch",
    "losses": "torch",
    "stopping": "lightgbm",
}
RECORDS = sorted([*ROOT.glob("benchmarks/results/*.md"), *ROOT.glob("reliability/results/*.md")])


@pytest.mark.parametrize(
    ("name", "n_blocks", "needs", "printed"),
    [
        ("sklearn", 13, "sklearn pandas lightgbm", "queries that it scores"),
        ("boosting", 8, "sklearn lightgbm xgboost catboost", "ties='average'"),
        ("runs", 6, "pandas", "look like 'd1', those of run like 'D1'"),
        ("losses", 7, "torch torchmetrics", "no ranks to cut off: flavor.k must be None in SoftmaxLoss"),
    ],
)
def test_the_code_of_a_page_runs(capsys, monkeypatch, tmp_path, name, n_blocks, needs, printed):
    for library in needs.split():
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
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
    "coming_from": ["sklearn", "torch torchmetrics", "ranx", "pytrec_eval", "lightgbm"],  # ranx compiles for seconds
}
PAGES = [(name, at) for name, needs in ALONE.items() for at in range(len(needs))]
# Another version of a library trains another model.
SLACK = {("start", 0): [0.3, 0, 0.02], **{("start", at): [10, 0.02] for at in (1, 2, 3)}}


@pytest.mark.filterwarnings("ignore:.*unsafe cast:Warning")  # Numba warns about ranx
@pytest.mark.parametrize(("name", "at"), quick([each for each in PAGES if each != ("coming_from", 2)], PAGES))
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
    for name, title in (
        ("evaluation", r"NDCG@10 of 149 queries: 0\.\d{4}"),
        ("comparison", "Three models of the demo"),
    ):
        assert re.search(f"<h1>{title}</h1>", (tmp_path / f"{name}.html").read_text(encoding="utf-8"))


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
    assert len(found) == 11
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
    assert printed.count("'val_ndcg_at_") == 3
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
    for target, anchor in re.findall(r"\]\((?!\w+:)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        found = page.parent / target if target else page
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            text = re.sub(r"^```.*?^```", "", found.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
            titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
            anchors = {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}
            assert anchor in anchors | {*re.findall(r'\bid="([^"]+)"', text)}, f"{target}#{anchor}"


@pytest.mark.parametrize("name", quick(["ideals", "ties"], FIGURES))
def test_a_figure_is_shown_with_a_description_and_agrees_with_the_package(name):
    for library in ("matplotlib", *FIGURES[name].split()):
        pytest.importorskip(library)
    figures = pytest.importorskip("benchmarks.figures", reason="benchmarks are not part of the installed package")
    assert figures.FIGURES.keys() == FIGURES.keys() == {path.stem[7:] for path in DOCS.glob("figure_*.svg")}
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *DOCS.glob("*.md")))
    assert re.search(rf"!\[[^\]]{{20,}}\]\((docs/)?figure_{name}\.svg\)", pages)
    figures.draw_figure(figures.FIGURES[name])  # raises if the package computes something else


def test_code_of_pages_fits_a_window_of_1280_pixels():
    lines = [(page.stem, line) for page in DOCS.glob("*.md") for code in blocks(page) for line in code.splitlines()]
    assert [(page, line) for page, line in lines if len(line) > 113] == []


EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


def brings(extra):
    needs = [re.match(r"([\w.-]+)(?:\[(.+)\])?", need).groups() for need in EXTRAS[extra]]
    found = [brings(other) for _, others in needs if others for other in others.split(",")]
    return {library for library, others in needs if not others}.union(*found)


def test_the_extras_are_those_of_the_page_and_the_lines_that_install_name_no_other():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", (DOCS / "install.md").read_text("utf-8"), re.MULTILINE))
    assert rows.pop("all") == "all of these, and pandas"
    assert {extra: brings(extra) for extra in rows} == {extra: {*words.split(", ")} for extra, words in rows.items()}
    assert brings("all") == {"pandas"}.union(*map(brings, rows))
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md"), *paths()):
        for names in re.findall(r"\bpip (?:install|wheel) .*\[([a-z,]+)\]", page.read_text("utf-8")):
            assert EXTRAS.keys() >= {*names.split(",")}, page


# -- docs/gate.md: its files run unchanged in a clone, and its tables are those of the records ------------------------

GATE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
SIMULATED = json.loads((ROOT / "benchmarks" / "results" / "gating.json").read_text(encoding="utf-8"))
GATE_TABLES = (ROOT / "benchmarks" / "results" / "gating.md").read_text(encoding="utf-8")
GATE_FILES = ROOT / "docs" / "gate"
WHEEL = "wheels/ndcg_ml-0.1.0-py3-none-any.whl"

SEARCH = """\
import json, os, random
quality = float(os.environ.get("QUALITY", "1"))
for line in open("qrels.jsonl"):
    judged = json.loads(line)
    drawn = random.Random(judged["qid"] + judged["docno"])
    score = quality * judged.pop("label") + drawn.gauss(0, 0.5)
    print(json.dumps({**judged, "score": score}))
"""


def run_step(step, folder, **variables):
    """Run a step as a CI runner does."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """Put the commands of this checkout on the path."""
    for tool in ("git", "bash"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    pytest.importorskip("click")
    folder = tmp_path_factory.mktemp("bin")
    for name, call in (
        ("ndcg-ml", "-c 'from ndcg_ml.cli import main; main()'"),
        ("python", ""),
        ("pytest", "-m pytest -p no:cacheprovider"),
        ("pip", f'-c \'import sys; assert sys.argv[1:] == ["install", "{WHEEL}[cli]"], sys.argv\''),
    ):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {call} "$@"\n')
        (folder / name).chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder), prepend=os.pathsep)
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def repository(commands, tmp_path_factory):
    """Return a repository with a search, judgements and a baseline. Tests clone it."""
    repository = tmp_path_factory.mktemp("origin") / "repository"
    repository.mkdir()
    (repository / "search.py").write_text(SEARCH)
    (repository / "qrels.jsonl").write_text(
        "".join(
            json.dumps({"qid": f"q{i}", "docno": f"d{j}", "label": (i * j) % 3}) + "\n"
            for i in range(1, 41)
            for j in range(1, 9)
        )
    )
    shutil.copy(GATE_FILES / "test_ranking.py", repository)
    (repository / "wheels").mkdir()
    (repository / WHEEL).touch()
    [save] = re.findall(r"```sh\n(python search.py.*?)```", GATE, flags=re.DOTALL)
    git = "git -c user.name=x -c user.email=x@example.com -c init.defaultBranch=main"
    for step in (save, f"rm main.jsonl && {git} init -q && {git} add -A && {git} commit -qm Start"):
        done = run_step(step, repository)
        assert done.returncode == 0, done.stderr
    return repository


@pytest.fixture
def clone(repository, tmp_path):
    assert run_step(f"git clone -q {repository} clone", tmp_path).returncode == 0
    return tmp_path / "clone"


def steps(name):
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load((GATE_FILES / name).read_text(encoding="utf-8"))
    if name == "gitlab.yml":
        assert document["ranking"]["allow_failure"] == {"exit_codes": 4}
        assert document["ranking"]["rules"][0]["variables"] == {"POLICY": "pull-push", "SAVE": "--save-last"}
        return document["ranking"]["script"]
    return [step["run"] for step in document["jobs"]["gate"]["steps"] if "run" in step]


@pytest.mark.parametrize(
    ("name", "quality", "code"), [("github.yml", "1", 0), ("github.yml", "0.2", 1), ("gitlab.yml", "0.2", 3)]
)
def test_the_workflow_runs_in_a_clone(clone, tmp_path, name, quality, code):
    summary = tmp_path / "summary.md"
    *before, gate = steps(name)
    for step in before:
        done = run_step(step, clone, QUALITY=quality)
        assert done.returncode == 0, done.stderr
    before = (clone / "last.json").read_text()
    done = run_step(gate, clone, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == code, done.stderr + done.stdout
    assert (clone / "last.json").read_text() == before  # a push to main saves it
    if name == "github.yml":
        assert summary.read_text().startswith("**unchanged" if code == 0 else "**worse: ndcg@10 against the baseline")


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_a_push_to_main_saves_the_last_run_and_an_undecided_run_passes(clone, name):
    *before, gate = steps(name)
    for step in before:
        assert run_step(step, clone, QUALITY="0.97").returncode == 0
    saved = {"SAVE": "--save-last", "GITHUB_STEP_SUMMARY": "summary"}
    done = run_step(gate.replace("$SAVE", "$SAVE --margin 0.0001"), clone, **saved)
    assert done.returncode == (4 if name == "gitlab.yml" else 0), done.stderr + done.stdout  # GitLab allows 4
    assert "cannot tell" in done.stdout
    assert json.loads((clone / "last.json").read_text())["margin"] is None


def test_the_test_runs_in_a_clone(clone):
    assert run_step("python search.py > new.jsonl", clone, QUALITY="0.2").returncode == 0
    done = run_step("pytest -q test_ranking.py", clone)
    assert (done.returncode, "AssertionError" in done.stdout) == (1, True), done.stdout


def test_the_page_of_the_gate_has_the_files():
    for name in ("github.yml", "test_ranking.py"):
        assert f"```{'yaml' if name.endswith('yml') else 'python'}\n{(GATE_FILES / name).read_text()}```" in GATE
    assert "(gate/gitlab.yml)" in GATE


def rows_below(heading, page=GATE):
    table = page.split(heading)[1].split("\n\n")[1].split("\n")[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table]


def test_the_tables_of_the_gate_are_what_was_simulated():
    gating = pytest.importorskip("benchmarks.gating", reason="benchmarks are not part of the installed package")
    found = rows_below("<!-- rates -->", GATE_TABLES)
    expected = [
        [
            str(case["n"]),
            f"{case['deviation']:g}",
            f"{case['true']:g}",
            *(f"{100 * case[name]:.1f} %" for name in ("pass", "worse", "undecided")),
        ]
        for case in SIMULATED["cases"]
    ]
    assert found == expected
    for page in (GATE, GATE_TABLES):
        assert gating.table(SIMULATED) in page


def test_the_promises_of_the_gate_hold():
    equal = [case for case in SIMULATED["cases"] if case["true"] == 0]
    worst = max(case["worse"] for case in equal)
    passes = max(case["pass"] for case in SIMULATED["cases"] if case["true"] <= -SIMULATED["margin"])
    assert worst <= 0.05
    assert passes <= 0.055


def test_the_margins_of_the_gate_are_those_of_the_formula():
    """A margin that an equal system passes in four of five cases: (z(.975) + z(.8)) sd / sqrt(n)."""
    reach = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    for deviation, *margins in rows_below("<!-- margins -->"):
        for n, margin in zip((20, 50, 200, 1000), margins, strict=True):
            assert float(margin) == pytest.approx(reach * float(deviation) / n**0.5, abs=0.0006)


# -- notebooks: outputs belong to the code, are readable, and equal those of a new run --------------------------------

LARGEST = 300_000  # bytes
# An absolute path. In HTML a slash follows "<"; in dates, links and ratios it follows another character.
ABSOLUTE = re.compile(r"(?<![\w<./:])/\w[\w.-]*/|\b[A-Z]:\\")

of_each = pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@of_each
def test_outputs_of_a_notebook_are_of_this_code(path):
    notebook = load(path)
    assert notebook["metadata"].get(DIGEST) == digest(notebook), "the code has changed: run python -m notebooks"
    assert [cell["execution_count"] for cell in code_cells(notebook)] == [*range(1, len(code_cells(notebook)) + 1)]


@of_each
def test_outputs_of_a_notebook_are_fit_to_be_read(path):
    notebook = load(path)
    outputs = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert not [output["text"] for output in outputs if output.get("name") == "stderr"]
    assert path.stat().st_size <= LARGEST
    for cell, kind, text in shown(notebook):
        assert text, (cell, kind)  # the text of a picture is its titles
        assert not ABSOLUTE.search(text), (cell, ABSOLUTE.search(text))
        assert socket.gethostname() not in re.split(r"[^\w.-]+", text), cell
        assert " at 0x" not in text, cell


@of_each
def test_a_notebook_uses_public_names_only(path):
    names = {name.replace(".torch.losses.", ".torch.") for name in documented()}
    for cell in code_cells(load(path)):
        for node in ast.walk(ast.parse("".join(cell["source"]))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ndcg_ml":
                assert {f"{node.module}.{each.name}" for each in node.names} <= names, cell["id"]
            elif isinstance(node, ast.Import):
                assert not [each.name for each in node.names if each.name.startswith("ndcg_ml")], cell["id"]
            elif isinstance(node, ast.Attribute):
                assert not re.match("_(?!_)", node.attr), (cell["id"], node.attr)


@of_each
def test_a_notebook_needs_no_files(path):
    text = "".join("".join(cell["source"]) for cell in code_cells(load(path)))
    assert not re.search(r"NDCG_ML_DATA|shared|\bopen\(|Path\(|read_csv|https?://", text)


def test_links_of_notebooks_lead_somewhere():
    for path in paths():
        for cell in load(path)["cells"]:
            if cell["cell_type"] == "markdown":
                for link in re.findall(r"\]\(([^)#:]+)\)", "".join(cell["source"])):
                    assert (path.parent / link).exists(), (path.name, link)


def test_runs_of_notebooks_differ_in_words_and_in_numbers_that_are_not_close():
    def notebook(text, kind="stdout"):
        output = {"output_type": "stream", "name": kind, "text": [text]}
        return {"cells": [{"id": "a", "outputs": [output]}]}

    before = notebook("PyTorch  0.9203 of 1, 7 rounds")
    assert not differences(before, notebook("PyTorch 0.9204 of 1, 7 rounds"))
    for other in ("PyTorch 0.9503 of 1, 7 rounds", "LightGBM 0.9203 of 1, 7 rounds", "PyTorch 0.9203 of 1"):
        assert differences(before, notebook(other))
    assert differences(before, notebook("PyTorch  0.9203 of 1, 7 rounds", "stderr"))
    assert differences(before, {"cells": [{"id": "a", "outputs": []}]})


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # nbclient warns; the kernel is another process
@of_each
def test_a_run_of_a_notebook_shows_the_same(path):
    pytest.importorskip("nbclient", reason="notebooks run with the extra [dev]")
    assert differences(load(path), executed(path)) == []


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
        found, rng = strapped.compute()["quantile"], np.random.default_rng(0)
        means = whole.per_query.ndcg[rng.integers(whole.n_queries, size=(9999, whole.n_queries))].mean(axis=1)
        assert abs(found.numpy() - np.quantile(means, [0.025, 0.975])).max() < 0.01
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
        expected = ndcg_score(y[test], ranker.predict(table.iloc[test]), qid=qid[test], flavor=flavor)
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
def test_a_section_runs(tmp_path, capsys, section):
    if section == "torchmetrics":  # other tests load its libraries anyway
        run_blocks(capsys, *blocks(RECIPES, DATA), *blocks(RECIPES, section), textwrap.dedent(CHECKS[section]))
        return
    offline = {"HF_HUB_OFFLINE": "1", "MLFLOW_DISABLE_TELEMETRY": "true", "KERAS_BACKEND": "torch"}
    run_script(tmp_path, *blocks(RECIPES, DATA), *blocks(RECIPES, section), CHECKS[section], **offline)
