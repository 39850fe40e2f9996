"""The tables of the gate are those of the records, and the files of docs/gate.md run unchanged in a clone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import NormalDist

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
RESULT = json.loads((ROOT / "benchmarks" / "results" / "gating.json").read_text(encoding="utf-8"))
TABLES = (ROOT / "benchmarks" / "results" / "gating.md").read_text(encoding="utf-8")
FILES = ROOT / "docs" / "gate"
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


def run(step, folder, **variables):
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
    shutil.copy(FILES / "test_ranking.py", repository)
    (repository / "wheels").mkdir()
    (repository / WHEEL).touch()
    [save] = re.findall(r"```sh\n(python search.py.*?)```", PAGE, flags=re.DOTALL)
    git = "git -c user.name=x -c user.email=x@example.com -c init.defaultBranch=main"
    for step in (save, f"rm main.jsonl && {git} init -q && {git} add -A && {git} commit -qm Start"):
        done = run(step, repository)
        assert done.returncode == 0, done.stderr
    return repository


@pytest.fixture
def clone(repository, tmp_path):
    assert run(f"git clone -q {repository} clone", tmp_path).returncode == 0
    return tmp_path / "clone"


def steps(name):
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load((FILES / name).read_text(encoding="utf-8"))
    if name == "gitlab.yml":
        assert document["ranking"]["allow_failure"] == {"exit_codes": 4}
        return document["ranking"]["script"]
    return [step["run"] for step in document["jobs"]["gate"]["steps"] if "run" in step]


@pytest.mark.parametrize(
    ("name", "quality", "code"), [("github.yml", "1", 0), ("github.yml", "0.2", 3), ("gitlab.yml", "0.2", 3)]
)
def test_the_workflow_runs_in_a_clone(clone, tmp_path, name, quality, code):
    summary = tmp_path / "summary.md"
    *before, gate = steps(name)
    for step in before:
        done = run(step, clone, QUALITY=quality)
        assert done.returncode == 0, done.stderr
    done = run(gate, clone, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == code, done.stderr + done.stdout
    if name == "github.yml":
        assert summary.read_text().startswith("**unchanged" if code == 0 else "**worse: ndcg@10")


def test_the_test_runs_in_a_clone(clone):
    assert run("python search.py > new.jsonl", clone, QUALITY="0.2").returncode == 0
    done = run("pytest -q test_ranking.py", clone)
    assert (done.returncode, "AssertionError" in done.stdout) == (1, True), done.stdout


def test_the_page_has_the_files():
    for name in ("github.yml", "test_ranking.py"):
        assert f"```{'yaml' if name.endswith('yml') else 'python'}\n{(FILES / name).read_text()}```" in PAGE
    assert "(gate/gitlab.yml)" in PAGE


def rows_below(heading, page=PAGE):
    table = page.split(heading)[1].split("\n\n")[1].split("\n")[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table]


def test_the_tables_are_what_was_simulated():
    found = rows_below("<!-- rates -->", TABLES)
    expected = [
        [
            str(case["n"]),
            f"{case['deviation']:g}",
            f"{case['true']:g}",
            *(f"{100 * case[name]:.1f} %" for name in ("pass", "worse", "undecided")),
        ]
        for case in RESULT["cases"]
    ]
    assert found == expected
    frozen, follows = (
        [f"{100 * RESULT['drift'][name]['caught_by'][str(by)]:.0f} %" for by in (10, 20, 30, 40, 50)]
        for name in ("frozen", "follows")
    )
    drift = rows_below("<!-- drift -->", TABLES)
    assert [row[1:] for row in drift] == [frozen, follows]


def test_the_promises_hold():
    for case in RESULT["cases"]:
        if case["true"] == 0:
            assert case["worse"] <= 0.05  # false alarms of equal systems
        if case["true"] <= -RESULT["margin"]:
            assert case["pass"] <= 0.055  # a loss of the margin is let through


def test_the_margins_are_those_of_the_formula():
    """A margin that an equal system passes in four of five cases: (z(.975) + z(.8)) sd / sqrt(n)."""
    reach = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    for deviation, *margins in rows_below("<!-- margins -->"):
        for n, margin in zip((20, 50, 200, 1000), margins, strict=True):
            assert float(margin) == pytest.approx(reach * float(deviation) / n**0.5, abs=0.0006)
