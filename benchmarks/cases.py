"""The benchmarks: contenders, inputs and targets."""

from __future__ import annotations

import dataclasses
import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import peers, workloads
from benchmarks.catalogue import catalogue
from benchmarks.from_files import compare_files, compare_formats
from benchmarks.measure import Contender, Result, compare
from benchmarks.rounds import rounds
from ndcg_ml import ndcg_score, prepare


def _optional(make: Callable[..., Contender], *arguments: object) -> list[Contender]:
    """Return the contender in a list, which is empty if its library is not installed."""
    try:
        return [make(*arguments)]
    except ImportError as error:
        print(f"left out: {error}", file=sys.stderr)
        return []


def lightgbm(scale: float) -> Iterator[Result]:
    """Compare the evaluation in a boosting round with LightGBM's own metric."""
    model = workloads.of_a_model(workloads.ragged(scale), 20)
    for threads, target in ((1, 3.5), (2, 3.0)):
        ragged = workloads.ragged(scale)
        for work in (model, ragged, workloads.tied(ragged), workloads.short(scale)):
            yield compare(
                f"LightGBM evaluation of one round, k=10, {threads} thread{'s' * (threads > 1)}; {work.name}",
                [
                    peers.ours_in_lightgbm(work, 10, threads, "compiled"),
                    peers.lightgbm_metric(work, 10, threads),
                    *([peers.ours_in_lightgbm(work, 10, 1, "numpy")] if threads == 1 else []),
                    *_optional(peers.xgboost_metric, work, 10, threads),
                ],
                target=target if work is model else None,
            )


def kernels(scale: float) -> Iterator[Result]:
    """Compare the compiled kernel with the NumPy kernel: threads, ties under every tie-breaking rule, small calls."""
    work = workloads.ragged(scale)
    for data in (work, workloads.tied(work)):
        yield compare(
            f"two threads, k=10; {data.name}",
            [
                peers.ours_prepared(data, "lightgbm", 10, 2, "compiled"),
                peers.ours_prepared(data, "lightgbm", 10, 1, "compiled"),
                peers.ours_prepared(data, "lightgbm", 10, 1, "numpy"),
            ],
            target=1.8,
        )
    untied = dataclasses.replace(
        peers.ours_prepared(work, "lightgbm", 10, 1, "compiled", None), note="untied, ties='first'"
    )
    for data in (workloads.tied(work), workloads.constant(work)):
        for rule in ("average", "first", "last", "best", "worst"):
            flavor = f"lightgbm[ties={rule}]"
            yield compare(
                f"tied scores cost no more: ties={rule}, k=10; {data.name}",
                [
                    peers.ours_prepared(data, flavor, 10, 1, "compiled"),
                    untied,
                    peers.ours_prepared(data, flavor, 10, 1, "numpy"),
                ],
                target=-1.2,
            )
    yield compare(
        f"without prepared labels, sklearn flavor, k=10; {work.name}",
        [peers.ours(work, "sklearn", 10, 1, kernel) for kernel in ("compiled", "numpy")],
    )
    small = workloads.ragged(0.002)
    yield compare(
        f"a small call: 20 queries, {small.rows} rows, k=10",
        [
            peers.ours_prepared(small, "sklearn", 10, 1, "compiled"),
            peers.ours_prepared(small, "sklearn", 10, 1, "numpy"),
            peers.ours(small, "sklearn", 10, 1, "compiled"),
            peers.ours(small, "sklearn", 10, 1, "numpy"),
        ],
    )


def dense(scale: float) -> Iterator[Result]:
    """Compare the sklearn flavor with scikit-learn on dense arrays."""
    work = workloads.dense(scale)
    for data, target in ((work, 20.0), (workloads.tied(work), 10.0), (workloads.constant(work), None)):
        for k in (10, None):
            untied = data is work
            yield compare(
                f"ndcg_score, sklearn flavor, k={k}; {data.name}",
                [
                    peers.ours_dense(data, "sklearn", k),
                    peers.sklearn_dense(data, k),
                    peers.sklearn_dense(data, k, True),
                    *(_optional(peers.rax, data, k) if untied else []),
                ],
                target=target,
            )


def ragged(scale: float) -> Iterator[Result]:
    """Compare with other libraries on queries of different lengths."""
    work = workloads.ragged(scale)
    yield compare(
        f"ndcg_score, sklearn flavor, k=10; {work.name}",
        [peers.ours(work, "sklearn", 10, None), peers.sklearn_loop(work, 10)],
        target=250.0,
    )
    yield compare(
        f"ndcg_score, sklearn flavor, k=10; {work.name}",
        [peers.ours(work, "sklearn", 10, None), peers.torchmetrics(work, 10)],
        target=80.0,
    )
    yield compare(
        f"prepared, sklearn flavor, k=10; {work.name}; native input of each prebuilt",
        [
            peers.ours_prepared(work, "sklearn", 10),
            *_optional(peers.ranx, work, 10),
            *_optional(peers.pytrec_eval, work, 10),
            *_optional(peers.ir_measures, work, 10),
        ],
        target=20.0,
    )


def torch_cpu(scale: float) -> Iterator[Result]:
    """Compare with torchmetrics on CPU tensors, with one id per row."""
    for work in (workloads.ragged(scale), workloads.tiny(scale)):
        yield compare(
            f"torch on the CPU, sklearn flavor, k=10; {work.name}",
            [
                peers.ours_in_torch(work, "sklearn", 10, "metric"),
                peers.ours_by_ids(work, "sklearn", 10),
                peers.ours_in_torch(work, "sklearn", 10, "function"),
                peers.ours_in_torch(work, "sklearn", 10, "metric", "compiled"),
                peers.ours_in_torch(work, "sklearn", 10, "function", "compiled"),
                peers.ours_in_torch(work, "sklearn", 10, "kernel for devices"),
                *([peers.torchmetrics(work, 10)] if work.sizes.size < 100_000 else []),
            ],
            target=-1.5,
        )
    work = workloads.ragged(scale)
    yield compare(
        f"torch on the CPU beside torchmetrics, k=10; {work.name}",
        [
            peers.ours_in_torch(work, "sklearn", 10, "function", "compiled"),
            peers.torchmetrics(work, 10),
            peers.ours_in_torch(work, "sklearn", 10, "function"),
        ],
        target=80.0,
    )


def validation_epoch(scale: float) -> Iterator[Result]:
    """Time a PyTorch validation epoch with a metric and without one, and the metric alone."""
    work = workloads.ragged(scale)
    epoch = peers.Epoch(work)
    yield compare(
        f"validation epoch, network of 136, 128, 64, 1, batches of 100 queries, k=10; {work.name}",
        [
            epoch.contender("epoch with ndcg_ml.torch.NDCG, compiled kernel", "ours", 10, kernel="compiled"),
            epoch.contender("epoch without a metric", None, 10),
            epoch.contender("epoch with ndcg_ml.torch.NDCG, NumPy kernel", "ours", 10),
            epoch.contender("NDCG by itself, compiled kernel", "ours", 10, scored=True, kernel="compiled"),
            epoch.contender("NDCG by itself, NumPy kernel", "ours", 10, scored=True),
            epoch.contender("epoch with torchmetrics RetrievalNormalizedDCG", "theirs", 10),
            epoch.contender("RetrievalNormalizedDCG by itself", "theirs", 10, scored=True),
        ],
        target=-1.05,
        budget_s=10.0,
    )


def shapes(scale: float) -> Iterator[Result]:
    """Time inputs of several shapes, with and without ties, at several cut-offs and precisions."""
    made = (workloads.ragged, workloads.tiny, workloads.short, workloads.huge, workloads.trec)
    for work in filter(None, (make(scale) for make in made)):
        for k in (1, 10, 100, None):
            yield compare(
                f"shape: {work.name}, k={k}",
                rows=work.rows,
                contenders=[
                    peers.ours_prepared(work, "sklearn", k),
                    peers.ours_prepared(work, "sklearn", k, kernel="compiled"),
                    peers.ours(work, "sklearn", k),
                    peers.one_pass(work),
                ],
            )
    work = workloads.ragged(scale)
    for data in (workloads.tied(work), workloads.constant(work), work.with_scores("float32", np.float32(work.scores))):
        yield compare(
            f"shape: {data.name}, k=10",
            [
                peers.ours_prepared(data, "sklearn", 10),
                peers.ours_prepared(data, "sklearn", 10, kernel="compiled"),
                peers.one_pass(data),
            ],
        )


def limits(scale: float) -> Iterator[Result]:
    """Compare with one pass over the data, and five cut-offs with one."""
    work = workloads.ragged(scale)
    for kernel, passes in (("numpy", 12.0), ("compiled", 8.0)):
        yield compare(
            f"one pass is the floor: prepared, untied, k=10, 1 thread; {work.name}",
            [peers.ours_prepared(work, "sklearn", 10, kernel=kernel), peers.one_pass(work)],
            target=-passes,
        )
    several = prepare(work.labels, group=work.sizes, flavor="sklearn", k=(1, 3, 5, 10, 20), kernel="numpy")
    yield compare(
        f"five cut-offs together against the largest alone; {work.name}",
        [
            Contender("ndcg_ml.prepare, k=(1, 3, 5, 10, 20), NumPy kernel", lambda: several(work.scores)[20], 0.0),
            dataclasses.replace(peers.ours_prepared(work, "sklearn", 20), name="k=20 alone", within=1e-12),
        ],
        target=-1.3,
    )


def ids(scale: float) -> Iterator[Result]:
    """Compare integer and string ids, in several orders of the rows, with group sizes."""
    for work in (workloads.ragged(scale), workloads.tiny(scale)):
        every = workloads.by_id(work)
        yield compare(
            f"ids against sizes, sklearn flavor, k=10; {work.name}",
            [
                peers.ours(work, "sklearn", 10),
                *(
                    Contender(
                        f"qid: {data.name}",
                        functools.partial(ndcg_score, data.labels, data.scores, qid=data.qid, k=10),
                        1e-12,
                    )
                    for data in every
                ),
            ],
        )


def runs(scale: float) -> Iterator[Result]:
    """Compare the evaluation of TREC files with other libraries and their readers, and with other formats."""
    for times, repeats in ((1, 5), (20, 3)):
        with tempfile.TemporaryDirectory() as folder:
            qrels, run = workloads.trec_files(times * scale, Path(folder))
            lines = [sum(1 for _ in path.open()) for path in (run, qrels)]
            size = f"{lines[0]} lines of the run, {lines[1]} of the qrels"
            yield compare_files(f"nDCG@10 from TREC files, processor time; {size}", qrels, run, repeats)
            if times == 1:
                yield compare_formats(
                    f"nDCG@10 from files in other formats, processor time; {size}", qrels, run, repeats
                )


def imports(scale: float) -> Iterator[Result]:
    """Compare importing the package with importing NumPy; Python has compiled both before."""
    with tempfile.TemporaryDirectory() as folder:
        # Without compiled files, every import would compile the sources again.
        there = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        there["PYTHONPYCACHEPREFIX"] = folder

        def fresh(module: str) -> Contender:
            command = [sys.executable, "-c", f"import {module}"]
            run = functools.partial(subprocess.run, command, check=True, env=there)
            return Contender(f"import {module}", lambda: float(run().returncode), 0.0)

        result = compare("import in a new interpreter", [fresh("ndcg_ml"), fresh("numpy")], budget_s=12.0)
    ours, alone = (timing.min_ms for timing in result.timings)
    yield dataclasses.replace(result, title=f"{result.title}, compiled before: {ours - alone:.0f} ms over NumPy")


CASES = {
    case.__name__: case
    for case in (
        lightgbm, kernels, dense, ragged, catalogue, limits, ids, torch_cpu, validation_epoch, shapes, runs, rounds,
        imports,
    )
}  # fmt: skip
