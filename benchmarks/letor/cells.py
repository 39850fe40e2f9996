"""What is to be run, what is done, and the processes that do the rest."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks.letor.folders import Folder


@dataclass(frozen=True)
class Cell:
    """One contender on one fold."""

    data: str
    kind: str
    """``network``, ``attention``, ``trees`` or ``stopping``."""
    name: str
    fold: int
    seeds: int
    length: int
    """The most epochs or rounds."""
    first_seed: int = 0

    @property
    def key(self) -> str:
        """Its name in the file of answers."""
        again = f"/from seed {self.first_seed}" if self.first_seed else ""
        return f"{self.data}/{self.kind}/{self.name}/fold {self.fold}/{self.seeds} seeds/{self.length}{again}"


class Answers:
    """The answers so far: one line of JSON per cell, appended as soon as it is known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.of: dict[str, dict] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    row = json.loads(line)
                except json.JSONDecodeError:
                    continue  # the line that was being written when a run was cut off
                self.of[row["key"]] = row

    def add(self, key: str, answer: dict) -> None:
        """Keep an answer, on disk first."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        row = {"key": key, **answer}
        with self.path.open("a+b") as file:
            # A line that was cut off has no end, and would swallow this one.
            file.seek(max(file.tell() - 1, 0))
            whole = file.read() in (b"", b"\n")
            file.write((b"" if whole else b"\n") + json.dumps(row).encode() + b"\n")
        self.of[key] = row


def run(cells: list[Cell], folders: dict[str, Folder], answers: Answers, jobs: int) -> None:
    """Every cell that has no answer yet, so many at a time, with what is done and left on standard error."""
    left = [cell for cell in cells if cell.key not in answers.of]
    print(f"{len(cells) - len(left)} of {len(cells)} cells are done already", file=sys.stderr)
    began = time.monotonic()
    for number, (cell, answer) in enumerate(_answered(left, folders, jobs), start=1):
        answers.add(cell.key, answer)
        spent = time.monotonic() - began
        hours = spent / number * (len(left) - number) / 3600
        print(
            f"{number:4} of {len(left)}  {answer['seconds']:6.1f} s  {hours:5.2f} h left  {cell.key}", file=sys.stderr
        )


def _answered(cells: list[Cell], folders: dict[str, Folder], jobs: int) -> Iterator[tuple[Cell, dict]]:
    if jobs == 1:
        yield from ((cell, _one(cell, folders[cell.data])) for cell in cells)
        return
    # A fork would share the threads of libraries that are loaded already.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures = {pool.submit(_one, cell, folders[cell.data]): cell for cell in cells}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _one(cell: Cell, folder: Folder) -> dict:
    """The answer of one cell, in this process, on one thread."""
    os.environ["OMP_NUM_THREADS"] = "1"
    began = time.process_time()
    answer = _task(cell)(folder)
    return {**answer, "seconds": round(time.process_time() - began, 2)}


def _task(cell: Cell) -> Callable[[Folder], dict]:
    """What a cell does. A library is imported where its cell runs, and nowhere else."""
    if cell.kind == "stopping":
        from benchmarks.letor import stopping

        return lambda folder: stopping.cell(cell.name, folder.fold(cell.fold), cell.seeds, cell.length, cell.first_seed)
    if cell.kind == "trees":
        from benchmarks.letor import trees

        (chosen,) = (one for one in trees.TREES if one.name == cell.name)
        return lambda folder: trees.cell(chosen, folder.fold(cell.fold), cell.seeds, cell.length, cell.first_seed)
    from benchmarks.letor import networks, peers

    (contender,) = (one for one in networks.OURS + peers.CONTENDERS if one.name == cell.name)
    attention = cell.kind == "attention"
    return lambda folder: networks.cell(
        contender, folder.fold(cell.fold), cell.seeds, cell.length, attention, cell.first_seed
    )
