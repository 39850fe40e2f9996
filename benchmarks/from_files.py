"""Time NDCG@10 of files in processor time: of TREC for each library with its own reader, and of other formats.

``python -m benchmarks.from_files NAME QRELS RUN QRELS RUN`` calls a library in its own process and prints the value,
the processor seconds of one call on one thread and the peak memory. An untimed call on the last two files, which are
short, comes first, because some libraries compile code.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.measure import Result, Timing


def _ours() -> Callable[[str, str], float]:
    from ndcg_ml import evaluate_run

    return lambda qrels, run: float(evaluate_run(qrels, run, k=10).value)


def _pytrec_eval() -> Callable[[str, str], float]:
    import pytrec_eval as library

    def call(qrels: str, run: str) -> float:
        with open(qrels) as judgments, open(run) as ranking:
            evaluator = library.RelevanceEvaluator(library.parse_qrel(judgments), {"ndcg_cut.10"})
            found = evaluator.evaluate(library.parse_run(ranking))
        return float(np.mean([topic["ndcg_cut_10"] for topic in found.values()]))

    return call


def _ir_measures() -> Callable[[str, str], float]:
    import ir_measures as library

    measure = library.nDCG @ 10

    def call(qrels: str, run: str) -> float:
        judgments, ranking = library.read_trec_qrels(qrels), library.read_trec_run(run)
        return float(library.calc_aggregate([measure], judgments, ranking)[measure])

    return call


def _ranx() -> Callable[[str, str], float]:
    from ranx import Qrels, Run, evaluate

    def call(qrels: str, run: str) -> float:
        judgments, ranking = Qrels.from_file(qrels, kind="trec"), Run.from_file(run, kind="trec")
        return float(evaluate(judgments, ranking, "ndcg@10", make_comparable=True, save_results_in_run=False))

    return call


def _write(form: str, source: Path, names: list[str]) -> Path:
    """Write the topic, document and number of each line of a TREC file in another format."""
    at = (0, 2, 3) if names[-1] == "relevance" else (0, 2, 4)
    rows = [[line[column] for column in at] for line in map(str.split, source.open())]
    target = source.with_suffix(f".{form}")
    if form == "json":
        topics: dict[str, dict[str, float]] = {}
        for topic, document, number in rows:
            topics.setdefault(topic, {})[document] = float(number)
        target.write_text(json.dumps(topics))
    elif form == "jsonl":
        objects = (dict(zip(names, (*ids, float(number)), strict=True)) for *ids, number in rows)
        target.write_text("".join(f"{json.dumps(each)}\n" for each in objects))
    elif form == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        *ids, numbers = zip(*rows, strict=True)
        parquet.write_table(pa.table([*ids, list(map(float, numbers))], names), target)
    else:
        delimiter, quote = {"csv": (",", ""), "tsv": ("\t", ""), "quoted.csv": (",", '"')}[form]
        lines = (delimiter.join(f"{quote}{cell}{quote}" for cell in row) for row in (names, *rows))
        target.write_text("".join(f"{line}\n" for line in lines))
    return target


def compare_formats(title: str, qrels: Path, run: Path, repeats: int) -> Result:
    """Time our evaluation of the same lines in each format, in turn."""
    files = {"TREC": (qrels, run)}
    for form in ("csv", "tsv", "jsonl", "json", "parquet", "quoted.csv"):
        each = ((qrels, "relevance"), (run, "score"))
        files[form] = tuple(_write(form, path, ["query_id", "doc_id", value]) for path, value in each)
    return _compare(title, {form: ("ndcg_ml.evaluate_run", *pair) for form, pair in files.items()}, repeats, None)


# A function, the module that it needs, the tolerance of its value, and a note.
CONTENDERS = {
    "ndcg_ml.evaluate_run": (_ours, "ndcg_ml", 0.0, "all lines are checked"),
    "pytrec_eval with its parsers": (_pytrec_eval, "pytrec_eval", 1e-9, "lines are not checked"),
    "ir_measures": (_ir_measures, "ir_measures", 1e-9, ""),
    "ranx": (_ranx, "ranx", 1e-3, "compiled beforehand; ties in another order"),
}


def compare_files(title: str, qrels: Path, run: Path, repeats: int) -> Result:
    """Time the installed libraries in turn."""
    names = [name for name, (_, module, _, _) in CONTENDERS.items() if find_spec(module)]
    return _compare(title, {name: (name, qrels, run) for name in names}, repeats, 1.5)


def _compare(title: str, files: dict[str, tuple[str, Path, Path]], repeats: int, target: float | None) -> Result:
    """Time a library on two files for each row of the table, the first of which are TREC, each call in a process."""
    short = []
    for path in next(iter(files.values()))[1:]:
        short.append(path.with_suffix(".head"))
        with path.open() as lines:
            short[-1].write_text("".join(islice(lines, 500)))
    taken: dict[str, list[dict[str, float]]] = {row: [] for row in files}
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    for _ in range(repeats):
        for row, arguments in files.items():
            command = [sys.executable, "-m", "benchmarks.from_files", *map(str, (*arguments, *short))]
            taken[row].append(json.loads(subprocess.run(command, check=True, capture_output=True, env=alone).stdout))
    timings: list[Timing] = []
    for row, (name, *paths) in files.items():
        milliseconds = [1e3 * each["seconds"] for each in taken[row]]
        value, median = taken[row][0]["value"], statistics.median(milliseconds)
        *_, within, note = CONTENDERS[name]
        ours = timings[0] if timings else Timing(row, value, median, median, 1)
        if abs(value - ours.value) > within:
            raise AssertionError(f"{title}: {row} gives {value!r}, ours is {ours.value!r}")
        peak, size = max(each["peak_mb"] for each in taken[row]), sum(path.stat().st_size for path in paths) / 1e6
        words = f"at most {peak:.0f} MB, {peak / size:.1f} times the files{f'; {note}' if note else ''}"
        timings.append(Timing(row, value, median, min(milliseconds), repeats, median / ours.median_ms, words))
    return Result(title, 0, target, timings)


if __name__ == "__main__":
    name, *files = sys.argv[1:]
    call = CONTENDERS[name][0]()
    call(*files[2:])
    began = time.process_time()
    value = call(*files[:2])
    seconds = time.process_time() - began
    # The peak of getrusage would be that of the parent, if it is higher.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) / 1e3
    print(json.dumps({"value": value, "seconds": seconds, "peak_mb": peak}))
