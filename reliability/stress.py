"""Evaluate very large inputs: ``python -m reliability.stress`` runs each in a separate process and writes the record.

The values are compared with NDCG computed here by its definition, in chunks of whole queries.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import ndcg_score
from reliability.records import save

NEEDED_GB = 10  # free memory needed to start a case
K = 10


class Case(NamedTuple):
    """An input."""

    what: str
    rows: int
    sizes: Callable[[np.random.Generator, int], NDArray[np.int64]]
    flavor: str


def _around(low: int, high: int) -> Callable[[np.random.Generator, int], NDArray[np.int64]]:
    """Return a function that draws sizes between two numbers, up to a number of rows."""

    def sizes(rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
        drawn = rng.integers(low, high + 1, rows // low + 1)
        ends = np.cumsum(drawn)
        kept = drawn[: int(np.searchsorted(ends, rows, side="right"))]
        return np.append(kept, rows - kept.sum()) if kept.sum() < rows else kept

    return sizes


CASES = {
    "rows": Case("queries of 100 to 200 documents", 10**8, _around(100, 200), "lightgbm"),
    "one": Case("one query", 10**7, lambda rng, rows: np.array([rows]), "sklearn"),
    "queries": Case("10^7 queries of one to three documents", 2 * 10**7, _around(1, 3), "xgboost"),
}


def data(case: Case, rows: int) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int64]]:
    """Return labels from 0 to 4, most of them 0, correlated scores, and sizes; drawn in chunks to save memory."""
    rng = np.random.default_rng(5)
    sizes = case.sizes(rng, rows)
    labels, scores = np.empty(rows, dtype=np.int8), np.empty(rows, dtype=np.float32)
    for start in range(0, rows, 1 << 22):
        part = slice(start, min(start + (1 << 22), rows))
        labels[part] = np.maximum(rng.integers(-5, 5, part.stop - start, dtype=np.int8), 0)
        scores[part] = rng.standard_normal(part.stop - start, dtype=np.float32) + np.float32(0.3) * labels[part]
    return labels, scores, sizes


def by_definition(
    labels: NDArray[np.int8], scores: NDArray[np.float32], sizes: NDArray[np.int64], flavor: str
) -> tuple[float, int]:
    """Return NDCG by its definition, and the number of chunks."""
    values: list[float] = []
    chunks = 0
    for part, mine in _chunks(sizes):
        values.extend(_of_chunk(labels[part].astype(np.float64), scores[part], mine, flavor).tolist())
        chunks += 1
    return math.fsum(values) / len(values), chunks


def _chunks(sizes: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    ends = np.cumsum(sizes)
    first = 0
    while first < sizes.size:
        start = int(ends[first] - sizes[first])
        stop = max(first + 1, int(np.searchsorted(ends, start + 500_000, side="right")))
        yield slice(start, int(ends[stop - 1])), sizes[first:stop]
        first = stop


def _of_chunk(
    labels: NDArray[np.float64], scores: NDArray[np.float32], sizes: NDArray[np.int64], flavor: str
) -> NDArray[np.float64]:
    """Return NDCG@10 of each query: exponential gain and ties in input order, or linear gain and averaged ties."""
    query = np.repeat(np.arange(sizes.size), sizes)
    rank = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    gains = labels if flavor == "sklearn" else 2.0**labels - 1
    discount = np.where(rank < K, 1 / np.log2(rank + 2.0), 0.0)
    order = np.lexsort((-scores, query))  # lexsort is stable
    weight = discount
    if flavor == "sklearn":
        ranked = scores[order]
        new = np.append(True, (np.diff(query) != 0) | (ranked[1:] != ranked[:-1]))
        tie = np.cumsum(new) - 1
        weight = (np.bincount(tie, discount) / np.bincount(tie))[tie]
    dcg = np.bincount(query, gains[order] * weight, sizes.size)
    ideal = np.bincount(query, gains[np.lexsort((-gains, query))] * discount, sizes.size)
    empty = {"lightgbm": 1.0, "sklearn": 0.0, "xgboost": 1.0}[flavor]
    return np.where(ideal > 0, dcg / np.where(ideal > 0, ideal, 1.0), empty)


def run(name: str, rows: int) -> dict[str, Any]:
    """Run one case in this process."""
    case = CASES[name]
    labels, scores, sizes = data(case, rows)
    held = _peak_mb()
    started = time.perf_counter()
    value = ndcg_score(labels, scores, group=sizes, flavor=case.flavor, k=K)
    seconds = time.perf_counter() - started
    peak = _peak_mb()
    expected, chunks = by_definition(labels, scores, sizes, case.flavor)
    return {
        "case": case.what,
        "rows": rows,
        "queries": int(sizes.size),
        "flavor": f"{case.flavor}@{K}",
        "input, MB": round((labels.nbytes + scores.nbytes + sizes.nbytes) / 2**20),
        "process before, MB": held,
        "peak, MB": peak,
        "seconds": round(seconds, 1),
        "value": repr(value),
        "chunks": chunks,
        "error": f"{abs(value - expected):.1e}",
    }


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _free_gb() -> float:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(prog="python -m reliability.stress", description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=CASES, help="run only this case, in this process")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the numbers of rows; only 1 is recorded")
    args = parser.parse_args()
    if args.case:
        print(json.dumps(run(args.case, int(CASES[args.case].rows * args.scale))))
        return
    rows = []
    for name in CASES:
        if _free_gb() < NEEDED_GB:
            raise SystemExit(f"{name} needs {NEEDED_GB} GB of free memory; got {_free_gb():.1f}.")
        command = [sys.executable, "-m", "reliability.stress", "--case", name, "--scale", str(args.scale)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout))
        print(rows[-1], flush=True)
    if args.scale != 1:
        return
    save(
        "stress",
        "numpy",
        title="Very large inputs",
        tried="ndcg_score on int8 labels and float32 scores with group sizes, each in a process of its own, against "
        "NDCG from its definition in chunks of whole queries; peak memory is the process's own high-water mark and "
        "includes the input.",
        command="python -m reliability.stress",
        count=sum(row["rows"] for row in rows),
        unit="rows",
        failed=sum(float(row["error"]) > 1e-11 for row in rows),
        figures=[{key: f"{value:,}" if type(value) is int else value for key, value in row.items()} for row in rows],
    )


if __name__ == "__main__":
    main()
