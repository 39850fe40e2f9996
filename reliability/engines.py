"""Run parts and engines on much data: ``python -m reliability.engines parquet``, ``... engines`` and ``... large``.

``parquet`` evaluates large temporary files, each in a separate process, and compares with NDCG computed here by its
definition. ``engines`` evaluates random data sets, in files that end at random rows, with every installed engine, and
compares with ``ndcg_score``. ``large`` evaluates one large table, whose queries are scattered over all files, in one
process and with every engine, and kills one of two workers of Dask during its shuffle.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ndcg_ml import PartialEvaluation, evaluate_batches, evaluate_part, ndcg_score
from reliability.records import save

COLUMNS = ["grade", "score", "query"]
CHUNK = 1_000_000  # rows
K = 10
SLOW, SLOW_EVERY = ("pyspark", "ray"), 15  # engines that take seconds per data set evaluate every fifteenth


# -- one large file ---------------------------------------------------------------------------------------------------


def chunks(n_rows: int, docs: int) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Yield labels, scores and ids of whole queries of 1 to 2 `docs` - 1 rows, the same in every call."""
    left, first = n_rows, 0
    for number in range(-(-n_rows // CHUNK)):
        rng = np.random.default_rng([number, docs])
        rows = min(CHUNK, left)
        ends = np.cumsum(rng.integers(1, 2 * docs, 3 * rows // docs + 10))
        ends = np.append(ends[ends < rows], rows)
        sizes = np.diff(ends, prepend=0)
        grade = np.maximum(rng.integers(-2, 5, rows), 0).astype(np.int8)
        score = grade + 3 * rng.standard_normal(rows)
        score = np.where(rng.random(rows) < 0.5, score, score.round(1))  # half of the scores are tied
        yield grade, score, np.repeat(np.arange(first, first + sizes.size, dtype=np.int32), sizes)
        left, first = left - rows, first + sizes.size


def table(grade: NDArray[Any], score: NDArray[Any], qid: NDArray[Any]) -> pa.Table:
    """Return the columns of the file."""
    return pa.table({"query": qid, "grade": grade, "score": score})


def write(path: Path, n_rows: int, docs: int, groups: str) -> None:
    """Write the file in one row group (pyarrow writes at most 67 million rows per group) or in one per chunk."""
    tables = (table(*chunk) for chunk in chunks(n_rows, docs))
    if groups == "one":
        pq.write_table(pa.concat_tables(tables), path, row_group_size=n_rows)
        return
    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for rest in tables:
            writer.write_table(rest)


def independent(n_rows: int, docs: int) -> tuple[float, int]:
    """Return NDCG@10 with averaged ties, by its definition, and the number of queries."""
    total, n_queries = [], 0
    for grade, score, qid in chunks(n_rows, docs):
        query = qid - qid[0]
        starts = np.flatnonzero(np.diff(query, prepend=-1))

        def dcg(
            key: NDArray[Any],
            gain: NDArray[Any] = grade,
            query: NDArray[Any] = query,
            starts: NDArray[Any] = starts,
        ) -> NDArray[Any]:
            order = np.lexsort((-key, query))
            key, gain = key[order], gain[order].astype(float)
            place = np.arange(key.size) - starts[query]
            tie = np.cumsum((np.diff(key, prepend=np.inf) != 0) | (place == 0)) - 1
            mean = np.bincount(tie, gain) / np.bincount(tie)
            discounted = np.where(place < K, mean[tie] / np.log2(place + 2.0), 0.0)
            return np.bincount(query, discounted)

        ideal = dcg(grade)
        total.append(math.fsum(np.divide(dcg(score), ideal, out=np.zeros(ideal.size), where=ideal > 0)))
        n_queries += ideal.size
    return math.fsum(total) / n_queries, n_queries


def resident(field: str) -> int:
    """Return VmRSS (memory now) or VmHWM (peak since the reset), in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def read_parquet(paths: Iterable[str | Path], rows: int = 1 << 18) -> Iterator[list[Any]]:
    """Yield batches of Parquet files, as docs/recipes.md reads them."""
    for path in paths:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            yield from as_batches(file.iter_batches(rows, columns=COLUMNS))


def evaluate_file(path: str, small: str) -> dict[str, Any]:
    """Return the value, duration and memory of one evaluation, in this process."""
    evaluate_batches(read_parquet([small]), k=K)  # the first call imports modules
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    began = time.perf_counter()
    part = evaluate_batches(read_parquet([path]), k=K)
    seconds = time.perf_counter() - began
    peak = resident("VmHWM")
    return {
        "value": part.value,
        "n_queries": part.n_queries,
        "n_docs": part.n_docs,
        "seconds": seconds,
        "peak": peak,
        "growth": peak - before,
    }


def run_parquet(n_rows: int) -> None:
    """Evaluate files of all shapes, and write the record."""
    figures, failed = [], 0
    for docs, groups in ((100, "many"), (100, "one"), (10, "many")):
        expected, n_queries = independent(n_rows, docs)
        with tempfile.TemporaryDirectory() as name:
            path, small = Path(name) / "rows.parquet", Path(name) / "small.parquet"
            needed = 16 * n_rows
            if shutil.disk_usage(name).free < 2 * needed:
                raise SystemExit(f"{name} has too little space for a file of about {needed / 1e9:.1f} GB.")
            write(small, 10_000, docs, "many")
            arguments = [str(path), str(n_rows), str(docs), groups]
            subprocess.run([sys.executable, "-m", "reliability.engines", "write", *arguments], check=True)
            command = [sys.executable, "-m", "reliability.engines", "measure", str(path), str(small)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            size, metadata = path.stat().st_size, pq.read_metadata(path)
        error = abs(found["value"] - expected)
        right = error <= 1e-12 and (found["n_queries"], found["n_docs"]) == (n_queries, n_rows)
        failed += not right
        figures.append(
            {
                "rows": f"{n_rows:,}",
                "queries": f"{n_queries:,}",
                "row groups": metadata.num_row_groups,
                "largest, rows": f"{max(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)):,}",
                "file, MB": round(size / 1e6),
                "seconds": round(found["seconds"], 1),
                "peak memory, MB": round(found["peak"] / 1e6),
                "growth, MB": round(found["growth"] / 1e6),
                "error": f"{error:.1e}",
            }
        )
        print(figures[-1], flush=True)
    save(
        "parquet",
        *("numpy", "pyarrow"),
        title="A Parquet file larger than memory",
        tried=f"evaluate_batches on {len(figures)} files of {n_rows:,} rows each, against NDCG computed from its "
        "definition without the library and the file, to 1e-12. Peak memory is that of the process. The evaluation "
        "adds one batch and the id of each query.",
        command=f"python -m reliability.engines parquet --rows {n_rows}",
        count=n_rows * len(figures),
        unit="rows",
        failed=failed,
        figures=figures,
    )


# -- engines ----------------------------------------------------------------------------------------------------------

Engine = Callable[[Path, dict[str, Any], np.random.Generator], PartialEvaluation]


def as_batches(batches: Any) -> Iterator[list[Any]]:
    """Yield Arrow batches as evaluate_batches takes them."""
    for batch in batches:
        yield [batch[name].to_numpy(zero_copy_only=False) for name in COLUMNS]


def on_parquet(folder: Path, ndcg: dict[str, Any], rng: np.random.Generator) -> PartialEvaluation:
    """Evaluate all files as one stream."""
    return evaluate_batches(read_parquet(sorted(folder.iterdir()), int(rng.integers(1, 60))), **ndcg)


def on_arrow(folder: Path, ndcg: dict[str, Any], rng: np.random.Generator) -> PartialEvaluation:
    """Evaluate a pyarrow dataset."""
    from pyarrow import dataset

    files = dataset.dataset([str(path) for path in sorted(folder.iterdir())])
    return evaluate_batches(as_batches(files.to_batches(columns=COLUMNS, batch_size=int(rng.integers(1, 60)))), **ndcg)


def on_polars(folder: Path, ndcg: dict[str, Any], rng: np.random.Generator) -> PartialEvaluation:
    """Evaluate a lazy polars query."""
    import polars as pl

    rows = pl.scan_parquet(f"{folder}/*.parquet").select(COLUMNS)
    frames = rows.collect_batches(chunk_size=int(rng.integers(1, 60)), maintain_order=True)
    return evaluate_batches(([frame[name] for name in COLUMNS] for frame in frames), **ndcg)


def on_duckdb(folder: Path, ndcg: dict[str, Any], rng: np.random.Generator) -> PartialEvaluation:
    """Evaluate a sorted DuckDB query."""
    import duckdb

    rows = duckdb.sql(f"select grade, score, query from '{folder}/*.parquet' order by query")
    return evaluate_batches(as_batches(rows.to_arrow_reader(int(rng.integers(1, 60)))), **ndcg)


def dask_engine(stack: ExitStack) -> Engine:
    """Start Dask with two processes."""
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1"}
    cluster = LocalCluster(dashboard_address=None, worker_dashboard_address=None, silence_logs=50, **options)
    stack.enter_context(cluster)
    stack.enter_context(Client(cluster))

    def on_dask(folder: Path, ndcg: dict[str, Any], rng: np.random.Generator) -> PartialEvaluation:
        def part(frame: Any) -> PartialEvaluation:
            return evaluate_part(frame["grade"], frame["score"], qid=frame["query"], **ndcg)

        rows = dd.read_parquet(folder).shuffle("query", npartitions=int(rng.integers(1, 12)))
        parts = [dask.delayed(part)(frame) for frame in rows.to_delayed()]
        at_once = int(rng.integers(2, 6))
        while len(parts) > 1:
            some = [parts[i : i + at_once] for i in range(0, len(parts), at_once)]
            parts = [dask.delayed(PartialEvaluation.merge)(group) for group in some]
        return parts[0].compute()

    return on_dask


def spark_engine(stack: ExitStack) -> Engine:
    """Start Spark with two threads."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", False)
        .config("spark.sql.shuffle.partitions", 4)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    stack.callback(spark.stop)

    def on_spark(folder: Path, ndcg: dict[str, Any], rng: np.random.Generator) -> PartialEvaluation:
        def part(batches: Any) -> Iterator[Any]:
            pickled = pickle.dumps(evaluate_batches(as_batches(batches), **ndcg))
            yield pa.RecordBatch.from_pydict({"part": [pickled]})

        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", int(rng.integers(1, 60)))
        rows = spark.read.parquet(str(folder)).repartition(int(rng.integers(1, 6)), "query")
        parts = rows.sortWithinPartitions("query").mapInArrow(part, "part binary").collect()
        return PartialEvaluation.merge(pickle.loads(row.part) for row in parts)

    return on_spark


def ray_engine(stack: ExitStack) -> Engine:
    """Start Ray with two processes."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    stack.callback(ray.shutdown)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def on_ray(folder: Path, ndcg: dict[str, Any], rng: np.random.Generator) -> PartialEvaluation:
        n_buckets = int(rng.integers(1, 6))

        def bucket(rows: Any) -> dict[str, Any]:
            hashes = [zlib.crc32(str(value).encode()) % n_buckets for value in rows["query"]]
            return {**rows, "bucket": np.array(hashes)}

        def part(rows: Any) -> dict[str, Any]:
            return {"part": [pickle.dumps(evaluate_part(rows["grade"], rows["score"], qid=rows["query"], **ndcg))]}

        buckets = ray.data.read_parquet(str(folder)).map_batches(bucket).groupby("bucket", num_partitions=2)
        rows = buckets.map_groups(part, batch_format="numpy").take_all()
        return PartialEvaluation.merge(pickle.loads(row["part"]) for row in rows)

    return on_ray


def random_rows(rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Draw labels, scores and ids, with ties, empty queries, unjudged rows and ids of several types."""
    sizes = rng.integers(1, rng.choice([2, 5, 40]), rng.integers(1, 60))
    qid = np.repeat(rng.permutation(10 * sizes.size)[: sizes.size], sizes)
    grade = rng.integers(0, rng.choice([1, 2, 5]), qid.size).astype(float)
    if rng.random() < 0.3:
        grade[rng.random(qid.size) < 0.2] = math.nan
    score = rng.normal(size=qid.size).round(int(rng.integers(0, 3)))
    kind = rng.choice(["int64", "int32", "str", "float64"])
    return grade, score, np.array([f"q{i}" for i in qid], dtype=object) if kind == "str" else qid.astype(kind)


def random_flavor(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a flavor that does not depend on the order of rows, which engines change."""
    parts = {
        "gain": ("linear", "exponential"),
        "ties": ("average", "best", "worst"),
        "empty": ("0", "1", "skip"),
        "aggregate": ("macro", "micro"),
        "unjudged": ("raise", "zero", "condense"),
    }
    text = ",".join(f"{name}={rng.choice(values)}" for name, values in parts.items())
    ks: tuple[Any, ...] = (1, 5, None, (1, 3, None))
    return {"flavor": f"ndcg[{text}]", "k": ks[rng.integers(len(ks))]}


def outcome(function: Callable[[], Any]) -> Any:
    """Return a value, or the text of an error."""
    try:
        value = function()
    except Exception as error:  # each engine wraps the library's errors in its own
        return f"{type(error).__name__}: {error}"
    return value if isinstance(value, dict) else {None: value}


def same(got: Any, expected: Any) -> bool:
    """Whether both are one value to 1e-12, or both an error that these data and flavors can have."""
    if isinstance(got, str) or isinstance(expected, str):
        both = isinstance(got, str) and isinstance(expected, str)
        return both and any(reason in got and reason in expected for reason in ("must not hold NaN", "empty='skip'"))
    return got.keys() == expected.keys() and all(
        math.isclose(got[k], expected[k], rel_tol=1e-12, abs_tol=1e-13) for k in expected
    )


def write_cut(folder: Path, rows: tuple[NDArray[Any], ...], rng: np.random.Generator) -> int:
    """Write the rows into files that end at random rows; return the number of ends within a query."""
    grade, score, qid = rows
    whole = table(pa.array(grade, mask=np.isnan(grade)), score, qid)
    ends = np.unique(rng.integers(0, qid.size + 1, rng.integers(0, 5)))
    ends = ends[(ends > 0) & (ends < qid.size)]
    for number, (start, stop) in enumerate(zip([0, *ends], [*ends, qid.size], strict=True)):
        pq.write_table(whole.slice(start, stop - start), folder / f"{number}.parquet")
    return int((qid[ends - 1] == qid[ends]).sum()) if ends.size else 0


def one_input(number: int, engines: dict[str, Engine], counts: dict[str, int]) -> list[str]:
    """Return what is wrong for a data set: values of engines, or split queries that were not refused."""
    rng = np.random.default_rng(number)
    rows, ndcg = random_rows(rng), random_flavor(rng)
    expected = outcome(lambda: ndcg_score(rows[0], rows[1], qid=rows[2], **ndcg))
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_cut = write_cut(folder, rows, rng)

        def careless() -> Any:
            return sum(evaluate_batches(read_parquet([path]), **ndcg) for path in folder.iterdir()).value

        for engine_name, engine in engines.items():
            got = outcome(lambda engine=engine: engine(folder, ndcg, rng).value)
            if not same(got, expected):
                wrong.append(f"input {number}, {engine_name}, {ndcg}: {got} where {expected}")
        naive = outcome(careless)
    refused = isinstance(naive, str) and "must be entirely in one part" in naive
    impossible = isinstance(expected, str) and isinstance(naive, str)
    if not impossible and (refused != bool(n_cut) or not (n_cut or same(naive, expected))):
        wrong.append(f"input {number}, parts of files, {n_cut} cuts, {ndcg}: {naive} where {expected}")
    counts["evaluations"] += len(engines)
    counts["cut" if n_cut else "whole"] += 1
    return wrong


def run_engines(n_inputs: int, seed: int) -> None:
    """Run all installed engines, and write the record."""
    found: list[str] = []
    counts = {"evaluations": 0, "cut": 0, "whole": 0}
    with ExitStack() as stack:
        engines: dict[str, Engine] = {
            "files": on_parquet,
            "pyarrow": on_arrow,
            "polars": on_polars,
            "duckdb": on_duckdb,
        }
        for name, start in {"dask": dask_engine, "pyspark": spark_engine, "ray": ray_engine}.items():
            if find_spec(name):
                engines[name] = start(stack)
        engines = {name: engine for name, engine in engines.items() if name == "files" or find_spec(name)}
        for number in range(seed, seed + n_inputs):
            quick = {name: engine for name, engine in engines.items() if name not in SLOW}
            wrong = one_input(number, quick if number % SLOW_EVERY else engines, counts)
            found += wrong
            if wrong:
                print("\n".join(wrong), flush=True)
    save(
        "engines",
        *("pyarrow", "polars", "duckdb", "dask", "pyspark", "ray", "numpy"),
        title="Engines",
        tried=f"{n_inputs} random data sets in Parquet files cut at any row are evaluated by every engine (Spark and "
        f"Ray: every {SLOW_EVERY}th) with random batches, partitions and flavors. The values must equal ndcg_score to "
        "1e-12, and a split query must raise.",
        command=f"python -m reliability.engines engines --inputs {n_inputs}",
        count=counts["evaluations"],
        unit="evaluations",
        failed=len(found),
    )
    print(counts, len(found), "failed", flush=True)


# -- one large table, with every engine -------------------------------------------------------------------------------

NAMES = {"label": "grade", "score": "score", "qid": "query"}
LARGE = {"flavor": "lightgbm[ties=average]", "k": K}


def scatter(folder: Path, n_rows: int, docs: int, n_files: int = 8) -> None:
    """Write the rows in random order, so that every file has rows of every query."""
    paths = [folder / f"{number}.parquet" for number in range(n_files)]
    with ExitStack() as stack:
        writers: list[pq.ParquetWriter] = []
        for number, columns in enumerate(chunks(n_rows, docs)):
            order = np.random.default_rng([number, docs, 1]).permutation(columns[0].size)
            for at, path in enumerate(paths):
                part = table(*(column[order[at::n_files]] for column in columns))
                if not number:
                    writers.append(stack.enter_context(pq.ParquetWriter(path, part.schema)))
                writers[at].write_table(part)


def in_one_process(folder: str) -> PartialEvaluation:
    """Read all rows, and evaluate them."""
    began = time.perf_counter()
    rows = pq.read_table(folder)
    columns = [rows[name].to_numpy() for name in COLUMNS]
    print(json.dumps({"reading": time.perf_counter() - began}), flush=True)
    return evaluate_part(columns[0], columns[1], qid=columns[2], **LARGE)


def kill_a_worker(cluster: Any) -> None:
    """Kill a worker as soon as parts of the shuffle are in memory."""
    while not any("shuffle" in str(key) and task.state == "memory" for key, task in [*cluster.scheduler.tasks.items()]):
        time.sleep(0.05)
    os.kill(cluster.workers[0].pid, signal.SIGKILL)
    print(json.dumps({"killed": True}), flush=True)


def on_large_dask(folder: str, kill: bool) -> PartialEvaluation:
    """Evaluate with two processes, of which one may be killed."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import ndcg_ml.dask

    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "silence_logs": 50}
    with LocalCluster(dashboard_address=None, worker_dashboard_address=None, **options) as cluster, Client(cluster):
        if kill:
            threading.Thread(target=kill_a_worker, args=(cluster,), daemon=True).start()
        return ndcg_ml.dask.evaluate(dd.read_parquet(folder), **NAMES, **LARGE)


def on_large_spark(folder: str) -> PartialEvaluation:
    """Evaluate with two threads of Spark."""
    from pyspark.sql import SparkSession

    import ndcg_ml.spark

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    spark = builder.config("spark.driver.memory", "4g").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return ndcg_ml.spark.evaluate(spark.read.parquet(folder), **NAMES, **LARGE)


def on_large_ray(folder: str) -> PartialEvaluation:
    """Evaluate with two processes of Ray."""
    import ray

    import ndcg_ml.ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=4 << 30)
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ndcg_ml.ray.evaluate(ray.data.read_parquet(folder), **NAMES, **LARGE)


LARGE_ENGINES: dict[str, tuple[str, Callable[[str], PartialEvaluation]]] = {
    "one process": ("pyarrow", in_one_process),
    "Dask, 2 workers": ("dask", lambda folder: on_large_dask(folder, False)),
    "Dask, 2 workers, one killed during the shuffle": ("dask", lambda folder: on_large_dask(folder, True)),
    "Ray, 2 processes": ("ray", on_large_ray),
    "Spark, 2 threads": ("pyspark", on_large_spark),
}


def memory_of_tree(process: Any) -> int:
    """Return the memory of a process and its descendants in bytes; shared memory counts once."""
    import psutil

    total = 0
    for each in [process, *process.children(recursive=True)]:
        try:
            total += each.memory_full_info().pss
        except psutil.Error:  # it has ended
            continue
    return total


def run_large(n_rows: int, docs: int) -> None:
    """Evaluate the table in one process and with every installed engine, and write the record."""
    import psutil

    figures: list[dict[str, Any]] = []
    expected, n_queries = "", 0
    with tempfile.TemporaryDirectory() as folder:
        scatter(Path(folder), n_rows, docs)
        for name, (package, _) in LARGE_ENGINES.items():
            if not find_spec(package):
                print(f"{name}: not run: {package} is not installed", flush=True)
                continue
            command = [sys.executable, "-W", "ignore", "-m", "reliability.engines", "one", name, folder]
            peak, began = 0, time.perf_counter()
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                tree = psutil.Process(process.pid)
                while process.poll() is None:
                    with suppress(psutil.Error):
                        peak = max(peak, memory_of_tree(tree))
                    time.sleep(0.5)
                assert process.stdout is not None
                lines = [line for line in process.stdout.read().splitlines() if line.startswith("{")]
            seconds = time.perf_counter() - began
            found: dict[str, Any] = {}
            for line in lines:
                found |= json.loads(line)
            expected, n_queries = expected or found["value"], found["n_queries"]
            right = (
                found["value"] == expected
                and found["n_docs"] == n_rows
                and found.get("killed") == (True if "killed" in name else None)
            )
            figures.append(
                {
                    "engine": name,
                    "seconds": round(seconds, 1),
                    "evaluating": round(found["seconds"] - found.get("reading", 0), 1),
                    "peak memory, MB": round(peak / 1e6),
                    "load of the machine": round(os.getloadavg()[0]),
                    "bits equal": right,
                }
            )
            print(figures[-1], flush=True)
    save(
        "engines_large",
        *("numpy", "pyarrow", "dask", "ray", "pyspark"),
        title="A large table with every engine",
        tried=f"{n_rows:,} rows of {n_queries:,} queries, in random order over 8 files, are evaluated in one process "
        "and with every engine on 2 cores. All values must have the same bits. Seconds include the start of the "
        "processes, memory is that of all of them. The load is the mean number of processes that wanted to run.",
        command=f"python -m reliability.engines large --rows {n_rows}",
        count=n_rows * len(figures),
        unit="rows",
        failed=sum(not each["bits equal"] for each in figures),
        figures=figures,
    )


def large_table(figures: list[dict[str, Any]]) -> str:
    """Return the table of docs/recipes.md."""
    rows = [
        f"| {each['engine']} | {each['seconds']:.0f} | {each['peak memory, MB'] / 1000:.1f} | "
        f"{'equal' if each['bits equal'] else 'differ'} |"
        for each in figures
    ]
    return "\n".join(["| | seconds | peak memory, GB | bits |", "|---|--:|--:|---|", *rows])


def run_one(name: str, folder: str) -> None:
    """Evaluate with one engine in this process, and print what was found."""
    began = time.perf_counter()
    part = LARGE_ENGINES[name][1](folder)
    found = {"value": part.value.hex(), "n_queries": part.n_queries, "n_docs": part.n_docs}
    print(json.dumps({**found, "seconds": time.perf_counter() - began}), flush=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m reliability.engines", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    parquet = commands.add_parser("parquet", help="evaluate large files")
    parquet.add_argument("--rows", type=int, default=100_000_000)
    engines = commands.add_parser("engines", help="random data through all engines")
    engines.add_argument("--inputs", type=int, default=100)
    engines.add_argument("--seed", type=int, default=0, help="seed of the first input")
    large = commands.add_parser("large", help="one large table with every engine")
    large.add_argument("--rows", type=int, default=20_000_000)
    large.add_argument("--docs", type=int, default=20, help="mean documents of a query")
    one = commands.add_parser("one", help="evaluate the table with one engine, in this process")
    one.add_argument("engine")
    one.add_argument("folder")
    one_write = commands.add_parser("write", help="write one file")
    for argument, kind in (("path", Path), ("rows", int), ("docs", int), ("groups", str)):
        one_write.add_argument(argument, type=kind)
    measure = commands.add_parser("measure", help="evaluate one file, in this process")
    measure.add_argument("path")
    measure.add_argument("small")
    arguments = parser.parse_args()
    if arguments.command == "parquet":
        run_parquet(arguments.rows)
    elif arguments.command == "engines":
        run_engines(arguments.inputs, arguments.seed)
    elif arguments.command == "large":
        run_large(arguments.rows, arguments.docs)
    elif arguments.command == "one":
        run_one(arguments.engine, arguments.folder)
    elif arguments.command == "write":
        write(arguments.path, arguments.rows, arguments.docs, arguments.groups)
    else:
        print(json.dumps(evaluate_file(arguments.path, arguments.small)))


if __name__ == "__main__":
    main()
