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

from benchmarks.letor import networks, page, peers, trees
from benchmarks.letor.__main__ import done
from benchmarks.letor.cells import Answers, Cell
from benchmarks.letor.folders import Folder, RankingFolderError, open_folder
from benchmarks.letor.stopping import kept_round, ordered
from benchmarks.letor.verdicts import COUNTERPARTS, TRAINED_ON, write_report

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


LEADS = {"rax softmax": 0.2, "ListMLELoss": -0.1, "LightGBM lambdarank": 0.1, "NDCGObjective(linear)": -0.2}
"""By how much the made-up answers of a contender differ from those of the others."""


def made_up_answers(folder: Path) -> tuple[list[Cell], Answers]:
    """Two folds of every kind, whose values are known."""
    rng = np.random.default_rng(2)
    names = {"trees": ["LightGBM lambdarank", *TRAINED_ON], "network": ["SoftmaxLoss(gain)", "rax softmax"]}
    names["attention"] = ["SoftmaxLoss(gain)", "ListMLELoss"]
    names["stopping"] = ["LightGBM"]
    rules = [f"{rule}, rows {order}" for rule in ("own", "StopEarly, what is reported") for order in page.ORDERS]
    base = [rng.uniform(0.3, 0.6, 40), rng.uniform(0.3, 0.6, 30)]
    answers = Answers(folder / "cells.jsonl")
    cells = [
        Cell("mq2008", kind, name, fold, 3, 5) for fold in (0, 1) for kind, several in names.items() for name in several
    ]
    for cell in cells:

        def one(lead: float, fold: int = cell.fold) -> dict:
            # A contender leads by a constant, and its seeds differ by noise.
            values = (base[fold] + lead + rng.normal(0, 0.01, base[fold].size)).tolist()
            return {"reported": values, "linear": values, "letor4": dict.fromkeys("135", 0.25), "letor4_queries": 50}

        seeds = [one(LEADS.get(cell.name, 0.0)) for _ in range(cell.seeds)]
        by_rule = {rule: [{"round": 7, **one(-0.1 * rule.startswith("own"))} for _ in seeds] for rule in rules}
        by_rule["no stopping"] = [{"round": 9, **one(0.0)} for _ in seeds]
        rest = {"tuned": 0.7, "rate": 0.1, "temperature": None, "at_an_end": True, "seconds": 36.0}
        answers.add(
            cell.key, {"rules": by_rule, "seconds": 1.0} if cell.kind == "stopping" else {"seeds": seeds, **rest}
        )
    return cells, answers


def test_a_page_is_made_from_the_report(tmp_path):
    pytest.importorskip("matplotlib")
    cells, answers = made_up_answers(tmp_path)
    write_report(cells, answers, [Folder("mq2008", ())], tmp_path / "letor.json")
    report = json.loads((tmp_path / "letor.json").read_text())
    tables = page.tables(report, report)
    assert {name.removeprefix("mq2008 ") for name in tables} == {
        *("how", "network", "attention", "trees", "stopping", "counterparts", "wrong metric", "best", "letor"),
        "again",
    }
    assert "network: 2 folds, 70 test queries, 3 seeds" in tables["how"]
    network = tables["mq2008 network"].splitlines()
    assert network[2].startswith("| rax softmax | 0.6")
    assert "| **better** |" in network[2]
    assert "| the reference |" in network[3]
    (ours,) = tables["mq2008 counterparts"].splitlines()[2:]
    assert ours.startswith("| SoftmaxLoss(gain) | 0.4")
    assert ours.endswith("| **worse** |")
    assert "| linear | 0.2" in tables["mq2008 wrong metric"]
    assert tables["mq2008 wrong metric"].count("the matching one |") == 2
    assert tables["mq2008 best"].startswith("`SoftmaxLoss(gain)")
    assert " less LightGBM lambdarank: -0." in tables["mq2008 best"]
    stopping = tables["mq2008 stopping"].splitlines()
    assert stopping[2].count("**-0.09") + stopping[2].count("**-0.10") == len(page.ORDERS)
    assert stopping[3].startswith("| LightGBM: StopEarly, what is reported | reference, round 7 |")
    assert set(page.pictures(report)) == {
        f"evidence_mq2008_{name}.png"
        for name in ("network", "attention", "trees", "across", "stopping", "wrong_metric")
    }

    begin, end = page.markers("mq2008 network")
    written = tmp_path / "page.md"
    written.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    page.write(tmp_path / "letor.json", tmp_path / "none.json", written)
    assert written.read_text() == f"before\n{begin}\n{tables['mq2008 network']}\n{end}\nafter\n"
    assert all((tmp_path / name).stat().st_size > 1000 for name in page.pictures(report))


def test_a_fold_counts_once_every_contender_has_an_answer(tmp_path):
    cells, answers = made_up_answers(tmp_path)
    del answers.of[Cell("mq2008", "network", "rax softmax", 1, 3, 5).key]
    left = done(cells, answers)
    assert {cell.fold for cell in left if cell.kind == "network"} == {0}
    assert {cell.fold for cell in left if cell.kind == "trees"} == {0, 1}


def test_counterparts_are_contenders():
    names = {one.name for one in networks.OURS + peers.CONTENDERS}
    assert {name for pair in COUNTERPARTS for name in pair} <= names
    assert set(TRAINED_ON) <= {one.name for one in trees.TREES}


def test_the_page_shows_what_was_measured():
    """The committed results hold means and intervals, and nothing of the data set."""
    report = json.loads(page.RESULT.read_text(encoding="utf-8"))
    text = page.PAGE.read_text(encoding="utf-8")
    for name, table in page.tables(report, page.second_run()).items():
        begin, end = page.markers(name)
        assert text.count(begin) == text.count(end) == 1, name
        assert text.split(begin)[1].split(end)[0].strip() == table, "run: python -m benchmarks.letor --page"
    for name in page.pictures(report):
        assert (page.PAGE.parent / name).exists()
        assert f"({name})" in text
    assert page.RESULT.stat().st_size < 150_000
    for part in report["data"].values():
        assert not {"seeds", "values", "labels"} & {key for row in part["network"]["rows"].values() for key in row}
