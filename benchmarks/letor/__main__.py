"""``python -m benchmarks.letor``: what trains better, on the ranking data of one or more folders.

Every answer is kept as soon as it is known, so that the same command goes on where it was cut off. When all cells are
done, the comparisons are written to benchmarks/results/letor.json. ``--page`` runs nothing: it puts the tables and
pictures of the committed results into docs/training_evidence.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import product
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # one thread per model; the libraries are loaded below

from benchmarks.letor.cells import Answers, Cell, run
from benchmarks.letor.folders import Folder, RankingFolderError, open_folder
from benchmarks.workloads import DATA

RESULTS = Path(__file__).parents[1] / "results"
KINDS = ("trees", "network", "stopping", "attention")
ATTENDED = (
    *("squared error", "SoftmaxLoss(gain)", "ListMLELoss", "ApproxNDCGLoss", "NeuralNDCGLoss"),
    *("LambdaNDCGLoss(lambdarank)", "LambdaNDCGLoss(ndcg2pp)"),
)
"""The losses that train the network with attention, too, which takes five times as long."""
FULL = {"network": (10, 30), "attention": (5, 30), "trees": (5, 200), "stopping": (10, 200)}
QUICK = {"network": (3, 10), "attention": (1, 5), "trees": (1, 40), "stopping": (2, 60)}
"""Seeds, and the most epochs or rounds, of each kind."""


def main() -> None:
    """Parse the command line, run what is left, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.letor", description=__doc__)
    parser.add_argument("--data", type=Path, action="append", help="a folder in LETOR's form (default: MQ2008)")
    parser.add_argument("--yahoo", type=int, choices=(1, 2), help="the set of a folder of the Yahoo challenge")
    parser.add_argument("--folds", type=int, nargs="+", help="folds to run, from 1 (default: all)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="what to run")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contenders whose names begin with one of these")
    parser.add_argument(
        "--without", nargs="+", metavar="NAME", default=[], help="contenders to leave out, in the same way"
    )
    parser.add_argument("--quick", action="store_true", help="minutes instead of an hour or two")
    parser.add_argument("--seeds", type=int, help="seeds of each kind, in place of the usual numbers")
    parser.add_argument("--first-seed", type=int, default=0, help="the first seed, for a second opinion")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--cells", type=Path, default=Path(".cache/letor/cells.jsonl"), help="answers so far")
    parser.add_argument("--out", type=Path, default=RESULTS / "letor.json", help="the comparisons")
    parser.add_argument("--so-far", action="store_true", help="compare on the folds that are done, and run nothing")
    parser.add_argument("--page", action="store_true", help="write the page from the committed results, run nothing")
    arguments = parser.parse_args()
    if arguments.page:
        from benchmarks.letor.page import write

        write()
        return
    try:
        folders = [open_folder(path, arguments.yahoo) for path in arguments.data or [DATA / "mq2008"]]
        cells = [cell for folder in folders for cell in wanted(folder, arguments)]
    except RankingFolderError as error:
        sys.exit(str(error))
    answers = Answers(arguments.cells)
    if arguments.so_far:
        cells = done(cells, answers)
    else:
        run(cells, {folder.name: folder for folder in folders}, answers, arguments.jobs)
    from benchmarks.letor.verdicts import write_report

    write_report(cells, answers, folders, arguments.out)


def wanted(folder: Folder, arguments: argparse.Namespace) -> list[Cell]:
    """The cells of a folder, fold by fold, so that a run that is cut off knows something of every contender."""
    sizes = QUICK if arguments.quick else FULL
    numbers = [number - 1 for number in arguments.folds or range(1, folder.n_folds + 1)]
    if unknown := [number + 1 for number in numbers if not 0 <= number < folder.n_folds]:
        raise RankingFolderError(f"{folder.name} has the folds 1 to {folder.n_folds}; got {unknown[0]}.")
    return [
        Cell(folder.name, kind, name, number, arguments.seeds or sizes[kind][0], sizes[kind][1], arguments.first_seed)
        for number, kind in product(numbers, KINDS)
        if kind in arguments.kinds
        for name in names(kind)
        if not arguments.only or name.startswith(tuple(arguments.only))
        if not name.startswith(tuple(arguments.without))
    ]


def done(cells: list[Cell], answers: Answers) -> list[Cell]:
    """The cells of those folds of each kind that every contender has an answer for."""
    missing = {(cell.data, cell.kind, cell.fold) for cell in cells if cell.key not in answers.of}
    return [cell for cell in cells if (cell.data, cell.kind, cell.fold) not in missing]


def names(kind: str) -> list[str]:
    """The contenders of a kind whose library is installed."""
    if kind == "stopping":
        return ["LightGBM", "XGBoost"]
    if kind == "attention":
        return list(ATTENDED)
    from benchmarks.letor import networks, peers, trees

    if kind == "trees":
        return [one.name for one in trees.TREES if trees.installed(one)]
    return [one.name for one in networks.OURS + peers.CONTENDERS if peers.installed(one)]


if __name__ == "__main__":
    main()
