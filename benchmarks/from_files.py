"""Time NDCG@10 of TREC files, for each library with its own reader in a separate process.

``python -m benchmarks.from_files NAME QRELS RUN`` prints the value, the seconds of one call and the peak memory. An
untimed call on the first lines of the files comes first, because some libraries compile code.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
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


# A function, the module that it needs, the tolerance of its value, and a note.
CONTENDERS = {
    "ndcg_ml.evaluate_run": (_ours, "ndcg_ml", 0.0, "all lines are checked"),
    "pytrec_eval with its parsers": (_pytrec_eval, "pytrec_eval", 1e-9, "lines are not checked"),
    "ir_measures": (_ir_measures, "ir_measures", 1e-9, ""),
    "ranx": (_ranx, "ranx", 1e-3, "compiled beforehand; ties in another order"),
}


def compare_files(title: str, qrels: Path, run: Path, repeats: int) -> Result:
    """Time the installed libraries in turn, each call in a separate process."""
    size = (qrels.stat().st_size + run.stat().st_size) / 1e6
    names = [name for name, (_, module, _, _) in CONTENDERS.items() if find_spec(module)]
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            command = [sys.executable, "-m", "benchmarks.from_files", name, str(qrels), str(run)]
            taken[name].append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    timings: list[Timing] = []
    for name in names:
        milliseconds = [1e3 * each["seconds"] for each in taken[name]]
        value, median = taken[name][0]["value"], statistics.median(milliseconds)
        *_, within, note = CONTENDERS[name]
        ours = timings[0] if timings else Timing(name, value, median, median, 1)
        if abs(value - ours.value) > within:
            raise AssertionError(f"{title}: {name} gives {value!r}, ours is {ours.value!r}")
        peak = max(each["peak_mb"] for each in taken[name])
        words = f"at most {peak:.0f} MB, {peak / size:.1f} times the files{f'; {note}' if note else ''}"
        timings.append(Timing(name, value, median, min(milliseconds), repeats, median / ours.median_ms, words))
    return Result(title, 0, 1.0, timings)


if __name__ == "__main__":
    name, qrels, run = sys.argv[1:]
    call = CONTENDERS[name][0]()
    with tempfile.TemporaryDirectory() as folder:
        heads = [Path(folder, each) for each in ("qrels", "run")]
        for whole, head in zip((qrels, run), heads, strict=True):
            with open(whole) as lines:
                head.write_text("".join(islice(lines, 500)))
        call(*map(str, heads))
    began = time.perf_counter()
    value = call(qrels, run)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3  # Linux counts kilobytes, macOS bytes
    print(json.dumps({"value": value, "seconds": seconds, "peak_mb": peak}))
