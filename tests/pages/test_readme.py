"""The README is true: each block runs alone and prints what is shown, and its table is what the data give.

``python tests/pages/test_readme.py --write`` writes docs/winner.json from the rankings and judgments of TREC Deep
Learning 2019, where they are at hand, and the table from docs/winner.json.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ndcg_ml import PRESETS, __version__, compare, evaluate_run

ROOT = Path(__file__).parents[2]
README, RECORD = ROOT / "README.md", ROOT / "docs" / "winner.json"
BEGIN, END = "<!-- winner: written by tests/pages/test_readme.py --write -->\n", "<!-- end of winner -->\n"

# A gain, and the presets that share it with the names of their libraries.
ROWS: tuple[tuple[str, dict[str, str]], ...] = (
    ("the grade", {"trec_eval": "trec_eval", "ir_measures": "ir_measures", "ranx": "ranx", "beir": "BEIR"}),
    ("2^grade - 1", {"gdeval": "gdeval", "opensearch": "OpenSearch", "azure_ai_evaluation": "Azure AI Evaluation"}),
    (
        "1 if relevant",
        {
            "sentence_transformers": "sentence-transformers",
            "recbole": "RecBole",
            "spark": "Spark",
            "mlflow": "mlflow",
        },
    ),
    ("1 if judged", {"recommenders_binary": "Recommenders"}),
)
# Pairs whose differences the README tells, and the gains under which it does.
PAIRS = (("SPLADE++", "BM25"), ("SPLADE++", "TAS-B"))
MODELS = {"SPLADE++": "SPLADE_P_P_ENSEMBLE_DISTIL", "TAS-B": "D_BERT_KD_TASB", "BM25": "BM25"}
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def measured(data: Path) -> dict[str, dict[str, float]]:
    """NDCG@10 of each model by preset."""
    folder = data / "trec_dl19"

    def value(preset: str, run: str) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # RecBole's preset warns of documents that nobody judged
            found = evaluate_run(folder / "qrels.dl19-passage.txt", folder / f"run.{run}.txt", flavor=preset, k=10)
        return round(float(found.value), 6)

    return {
        preset: {model: value(preset, run) for model, run in MODELS.items()}
        for _, presets in ROWS
        for preset in presets
    }


def differences(data: Path) -> dict[str, dict[str, list[float]]]:
    """Difference of each pair with the ends of its 95 % interval, by the first preset of a row."""
    folder, found = data / "trec_dl19", {}
    for _, presets in ROWS:
        preset = next(iter(presets))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = {
                model: evaluate_run(folder / "qrels.dl19-passage.txt", folder / f"run.{run}.txt", flavor=preset, k=10)
                for model, run in MODELS.items()
            }
            pairs = {f"{a} - {b}": compare(runs[b], runs[a], unjudged="accept", seed=0).pairs[0] for a, b in PAIRS}
        found[preset] = {
            name: [round(number, 3) for number in (pair.difference, pair.interval.low, pair.interval.high)]
            for name, pair in pairs.items()
        }
    return found


def kept(part: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))[part]
    return found


def record() -> dict[str, dict[str, float]]:
    return kept("values")


def short(number: float) -> str:
    return f"{number:.3f}".replace("0.", ".", 1)


def table() -> str:
    lines = [f"|gain|libraries|{'|'.join(MODELS)}|SPLADE++ - BM25|", "|---|---|" + "--:|" * (len(MODELS) + 1)]
    for gain, presets in ROWS:
        [values] = {tuple(f"{value:.4f}" for value in record()[preset].values()) for preset in presets}
        cells = [f"**{value}**" if value == max(values) else value for value in values]
        value, low, high = kept("differences")[next(iter(presets))]["SPLADE++ - BM25"]
        cells.append(f"{'+' * (value > 0)}{short(value)} ({short(low)} to {short(high)})")
        lines.append(f"|{gain}|{', '.join(presets.values())}|{'|'.join(cells)}|")
    return "\n".join(lines) + "\n"


def parts() -> tuple[str, str, str]:
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    middle, after = rest.split(END)
    return before, middle, after


def test_the_table_is_up_to_date():
    assert parts()[1] == table()


def test_the_definition_decides_which_model_wins():
    winners = [max(record()[next(iter(presets))].items(), key=lambda each: each[1])[0] for _, presets in ROWS]
    assert winners == ["SPLADE++", "SPLADE++", "TAS-B", "BM25"]


def test_the_record_is_what_the_rankings_give(data_dir):
    assert measured(data_dir) == record()
    for preset, pairs in differences(data_dir).items():
        for name, found in pairs.items():
            assert np.allclose(found, kept("differences")[preset][name], atol=0.0011), (preset, name)


def test_what_is_said_of_chance_is_so():
    text = " ".join(README.read_text(encoding="utf-8").split())
    recorded = kept("differences")
    first, last = (recorded[preset]["SPLADE++ - BM25"] for preset in ("trec_eval", "recommenders_binary"))
    assert first[1] > 0 > last[2]  # the two presets disagree beyond chance
    near = [recorded[preset]["SPLADE++ - TAS-B"] for preset in ("trec_eval", "sentence_transformers")]
    assert all(low < 0 < high for _, low, high in near)
    (a, b, c), (d, e, f) = ([short(number) for number in row] for row in near)
    assert f"(+{a}, {b} to {c}; third row {d}, {e} to {f})" in text


def test_bm25_is_perfect_because_its_first_ten_are_judged(data_dir):
    lines = (data_dir / "trec_dl19" / "qrels.dl19-passage.txt").read_text().split("\n")
    judged = {(fields[0], fields[2]) for fields in map(str.split, lines) if fields}
    topics = {topic for topic, _ in judged}
    lines = (data_dir / "trec_dl19" / f"run.{MODELS['BM25']}.txt").read_text().split("\n")
    first = [fields for fields in map(str.split, lines) if fields and int(fields[3]) <= 10 and fields[0] in topics]
    assert len(first) == 10 * len(topics)
    assert all((topic, document) in judged for topic, _, document, *_ in first)


def test_the_grades_of_the_query_are_those_of_the_rankings(data_dir):
    """What the README's second block takes from the files: one query, both models."""
    scope: dict[str, object] = {}
    code = BLOCK.findall(README.read_text(encoding="utf-8"))[1][0]
    exec(compile(code.split("for model")[0], "README.md", "exec"), scope)
    lines = (data_dir / "trec_dl19" / "qrels.dl19-passage.txt").read_text().split("\n")
    judged = {fields[2]: int(fields[3]) for fields in map(str.split, lines) if fields[:1] == ["1121709"]}
    for model in ("SPLADE++", "TAS-B"):
        lines = (data_dir / "trec_dl19" / f"run.{MODELS[model]}.txt").read_text().split("\n")
        ranking = sorted((int(fields[3]), fields[2]) for fields in map(str.split, lines) if fields[:1] == ["1121709"])
        grades = [judged.get(document, 0) for _, document in ranking[:10]]
        shown = [*map(int, scope["ranked"][model])]  # type: ignore[index]
        assert shown[:10] == grades
        assert sorted(filter(None, shown)) == sorted(filter(None, judged.values()))


@pytest.mark.parametrize(
    ("block", "needs"),
    list(enumerate([(), (), ("sklearn",), ("torch", "torchmetrics"), ("lightgbm",)])),
    ids=["score", "explain", "sklearn", "torch", "lightgbm"],
)
def test_a_block_runs_alone_and_prints_what_is_shown(block, needs, capsys):
    for library in needs:
        pytest.importorskip(library)
    code, shown = BLOCK.findall(README.read_text(encoding="utf-8"))[block]
    assert len([line for line in code.splitlines() if line]) <= 12
    assert max(map(len, code.splitlines())) <= 88  # the column of the site
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    number = re.compile(r"(?<![\w@])[+-]?\d+(?:\.\d+)?")
    assert number.sub("#", printed) == number.sub("#", shown)
    # Another version of a library trains another model, which may stop a few rounds sooner or later.
    slack = {2: [0, 0.02], 3: [0.02], 4: [5, 0.02]}.get(block, [1e-12])
    got, want = (np.array([*map(float, number.findall(text))]) for text in (printed, shown))
    assert (abs(got - want) <= slack).all(), printed


def test_every_block_shows_what_it_prints():
    text = README.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) == text.count("```python") == text.count("```text") == 5


def test_it_is_read_in_a_minute_or_two():
    assert len(README.read_text(encoding="utf-8").split()) < 700


def test_it_counts_the_presets():
    said = re.search(r"\[(\d+) presets\]", README.read_text(encoding="utf-8"))
    assert said
    assert int(said[1]) == len(PRESETS)


def test_there_are_two_setup_lines_that_make_their_own_environment():
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("python3 -m venv .venv && .venv/bin/pip install")
        assert "-c constraints.txt" in line
    assert lines[0].endswith(".venv/bin/ndcg-ml demo")


INSTALL = re.compile(r"```console\n(.*?)\n```")


def test_the_first_line_to_paste_installs_a_clone():
    """The line is one of a clone, and what it installs is this package; nothing else is asked of a reader."""
    text = README.read_text(encoding="utf-8")
    first = INSTALL.search(text)
    assert first
    assert first[1] == "pip install ."
    assert text.index(first[0]) < text.index("```python")
    assert "`pip install ndcg_ml` once it is published" in text


@pytest.mark.long  # builds a wheel and a bare environment
def test_the_first_line_pasted_into_a_bare_environment(tmp_path):
    clone, home = tmp_path / "clone", tmp_path / "venv"
    ignore = shutil.ignore_patterns(".git", ".venv", "*cache*", "site", "shared", "tests")
    shutil.copytree(ROOT, clone, ignore=ignore, symlinks=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    line = INSTALL.search(README.read_text(encoding="utf-8"))
    assert line
    binaries = home / ("Scripts" if sys.platform == "win32" else "bin")
    environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}
    how: dict[str, Any] = {"env": environment, "capture_output": True, "text": True}
    done = subprocess.run(f"{line[1]} --no-deps", shell=True, cwd=clone, **how)
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("the build backend cannot be had here")
    assert not done.returncode, done.stderr
    code = "import importlib.metadata as m; print(m.version('ndcg_ml'))"
    said = subprocess.run([binaries / "python", "-c", code], cwd=tmp_path, **how)
    assert said.stdout.strip() == __version__, said.stderr


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


if __name__ == "__main__" and "--write" in sys.argv:
    sys.path.insert(0, str(ROOT / "tests"))
    from conftest import _DATA

    if _DATA.is_dir():
        source = "TREC Deep Learning 2019 passage judgments (NIST), runs of castorini/rank_llm; 43 queries, NDCG@10"
        found = {"source": source, "values": measured(_DATA), "differences": differences(_DATA)}
        RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    head, _, tail = parts()
    README.write_text(head + BEGIN + table() + END + tail, encoding="utf-8")
