"""The benchmark on LETOR's data: folders as folds, a run that goes on where it stopped, a page made from its result."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightgbm")
pytest.importorskip("benchmarks.letor", reason="benchmarks are not part of the installed package")

from benchmarks.letor.cells import Answers, Cell
from benchmarks.letor.folders import RankingFolderError, open_folder
from benchmarks.letor.stopping import kept_round, ordered

ROOT = Path(__file__).parents[2]
N_FEATURES = 5


def lines(rng: np.random.Generator, queries: range) -> str:
    """Queries in LETOR's form, whose first feature knows the grade."""
    written = []
    for query in queries:
        for _ in range(int(rng.integers(3, 9))):
            grade = int(rng.integers(0, 3))
            features = [grade + rng.normal(), *rng.normal(size=N_FEATURES - 1)]
            pairs = " ".join(f"{i}:{value:.4f}" for i, value in enumerate(features, start=1))
            written.append(f"{grade} qid:{query} {pairs} # made up")
    return "\n".join(written) + "\n"


@pytest.fixture
def parts(tmp_path):
    """Five parts of eight queries."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "made_up"
    folder.mkdir()
    for part in range(5):
        with gzip.open(folder / f"S{part + 1}.txt.gz", "wt") as file:
            file.write(lines(rng, range(8 * part, 8 * part + 8)))
    return folder


def test_five_parts_turn_into_the_official_folds(parts):
    folder = open_folder(parts)
    assert folder.n_folds == 5
    named = [[[file.name[:2] for file in files] for files in fold] for fold in folder.parts]
    assert named[0] == [["S1", "S2", "S3"], ["S4"], ["S5"]]
    assert named[4] == [["S5", "S1", "S2"], ["S3"], ["S4"]]
    fold = folder.fold(1)
    assert [part.sizes.size for part in (fold.train, fold.valid, fold.test)] == [24, 8, 8]
    assert fold.test_queries.tolist() == [8, 9, 10, 11, 12, 13, 14, 15]
    assert fold.train.features.shape[1] == fold.test.features.shape[1] == N_FEATURES + 1


def test_other_forms_of_folders(tmp_path):
    rng = np.random.default_rng(1)
    for fold in ("Fold1", "Fold2"):
        (tmp_path / "mslr" / fold).mkdir(parents=True)
        for part in ("train", "vali", "test"):
            (tmp_path / "mslr" / fold / f"{part}.txt").write_text(lines(rng, range(4)))
    assert open_folder(tmp_path / "mslr").n_folds == 2
    (tmp_path / "yahoo").mkdir()
    for part in ("train", "valid", "test"):
        (tmp_path / "yahoo" / f"set1.{part}.txt").write_text(lines(rng, range(4)))
    assert open_folder(tmp_path / "yahoo", yahoo=1).name == "yahoo-set1"
    with pytest.raises(RankingFolderError, match=r"it holds set1\.test\.txt"):
        open_folder(tmp_path / "yahoo")
    (tmp_path / "example").mkdir()
    for part in ("rank.train", "rank.test"):
        (tmp_path / "example" / part).write_text(lines(rng, range(12)))
    example = open_folder(tmp_path / "example")
    tested = np.concatenate([example.fold(number).test_queries for number in range(example.n_folds)])
    assert sorted(tested.tolist()) == list(range(24))


@pytest.mark.parametrize(("made", "words"), [(True, "it holds nothing"), (False, "is not a folder")])
def test_a_folder_without_ranking_data_is_refused(tmp_path, made, words):
    folder = tmp_path / "empty"
    if made:
        folder.mkdir()
    done = run(tmp_path, "--data", str(folder))
    assert done.returncode == 1
    assert words in done.stderr
    assert "S1.txt ... S5.txt" in done.stderr


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.letor", "--jobs", "1", "--cells", str(folder / "cells.jsonl")]
    command += ["--out", str(folder / "letor.json"), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)


@pytest.mark.long
def test_a_run_goes_on_where_it_was_cut_off(parts, tmp_path):
    chosen = ("--data", str(parts), "--quick", "--seeds", "2", "--folds", "1", "2", "--kinds", "trees", "network")
    only = ("--only", "LightGBM lambdarank", "LightGBM regression", "SoftmaxLoss(gain)", "squared error")
    first = run(tmp_path, *chosen, *only)
    assert first.returncode == 0, first.stderr
    report = json.loads((tmp_path / "letor.json").read_text())
    part = report["data"]["made_up"]["network"]
    assert (part["folds"], part["seeds"]) == (2, 2)
    assert list(part["rows"]) == ["squared error", "SoftmaxLoss(gain)"]
    # The first feature knows the grade, and a network finds it.
    assert part["rows"]["SoftmaxLoss(gain)"]["mean"] > 0.75
    assert part["against"]["reference"] == "SoftmaxLoss(gain)"
    assert set(part["against"]["pairs"]) == {"squared error"}

    # The last line is cut off, as by a machine that stops: that cell alone runs again, and says the same.
    cells = tmp_path / "cells.jsonl"
    written = cells.read_text()
    cells.write_text(written[:-40])
    again = run(tmp_path, *chosen, *only)
    assert again.returncode == 0, again.stderr
    assert "7 of 8 cells are done already" in again.stderr
    second = json.loads((tmp_path / "letor.json").read_text())
    assert second["data"]["made_up"]["network"]["rows"].keys() == part["rows"].keys()
    assert (
        second["data"]["made_up"]["network"]["rows"]["squared error"]["mean"] == part["rows"]["squared error"]["mean"]
    )


def test_which_round_a_rule_keeps():
    curve = np.array([0.1, 0.3, 0.2, 0.3, 0.25, 0.9])
    assert kept_round(curve, patience=3) == 2  # an equal value is no improvement
    assert kept_round(curve, patience=4) == 6


def test_rows_are_ordered_within_their_queries(parts):
    split = open_folder(parts).fold(0).valid
    for order in ("file", "shuffled", "best first", "worst first"):
        other = ordered(split, order)
        assert other.sizes.tolist() == split.sizes.tolist()
        cuts = np.cumsum(split.sizes)[:-1]
        for before, after in zip(np.split(split.labels, cuts), np.split(other.labels, cuts), strict=True):
            assert sorted(before) == sorted(after)
            if order in ("best first", "worst first"):
                assert after.tolist() == sorted(before, reverse=order == "best first")


def test_answers_survive_a_line_that_was_cut(tmp_path):
    answers = Answers(tmp_path / "cells.jsonl")
    cell = Cell("data", "trees", "name", 0, 1, 2)
    answers.add(cell.key, {"seconds": 1.0})
    with (tmp_path / "cells.jsonl").open("a") as file:
        file.write('{"key": "half')
    again = Answers(tmp_path / "cells.jsonl")
    assert again.of == {cell.key: {"key": cell.key, "seconds": 1.0}}
    again.add("next", {"seconds": 2.0})
    assert set(Answers(tmp_path / "cells.jsonl").of) == {cell.key, "next"}
