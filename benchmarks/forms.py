"""Time what people pass: ids of every form, documents with ids, dicts, small batches: ``python -m benchmarks.forms``.

With ``--before CHECKOUT``, an older version runs beside this one, in turn in one process, after a check that both give
the same value. The time is the smallest processor time, in ms; every library has one thread. The peak of memory is that
of Python and NumPy in another call, divided by the labels, scores and ids, of which lists count without their items.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

os.environ.update(OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1")
os.environ["NDCG_ML_KERNEL"] = "compiled"

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from benchmarks import workloads
from benchmarks.__main__ import _processor, _version

Call = Callable[[], Any]
Row = tuple[str, Callable[[ModuleType], Call], tuple[str, Call] | None, int]
"""What is passed, a call for a version of the package, the call of a peer, and bytes of the input (0: unknown)."""

PACKAGES = ("numpy", "numba", "pandas", "polars", "pyarrow", "torch", "torchmetrics", "pytrec_eval-terrier")


def forms_of_ids(names: Any, at: Any) -> dict[str, Any]:
    """Return text ids in every form."""
    text = names[at]
    polars, arrow = pl.Series(text), pa.array(text)
    return {
        "text array": text,
        "array of objects": text.astype(object),
        "list of text": text.tolist(),
        "pandas text": pd.Series(text),
        "pandas categories": pd.Series(pd.Categorical.from_codes(at, names)),
        "polars text": polars,
        "polars categories": polars.cast(pl.Categorical),
        "pyarrow text": arrow,
        "pyarrow dictionary": arrow.dictionary_encode(),
    }


def of_ids(scale: float) -> Iterator[Row]:
    """Yield one call of ndcg_score by sizes, by ids of every form and order, and with document ids."""
    work = workloads.ragged(scale)
    names = np.array([f"query{number:07d}" for number in range(work.sizes.size)])
    shuffled = np.random.default_rng(0).permutation(work.rows)
    objects = names.astype(object)[work.qid[shuffled]]
    frame = pl.DataFrame({"q": work.qid[shuffled], "y": work.labels[shuffled], "s": work.scores[shuffled]})
    rest = work.labels.nbytes + work.scores.nbytes
    yield "sizes", lambda ml: lambda: ml.ndcg_score(work.labels, work.scores, group=work.sizes, k=10), None, rest
    for order, rows in (("in order", np.arange(work.rows)), ("shuffled", shuffled)):
        labels, scores, at = work.labels[rows], work.scores[rows], work.qid[rows]
        sparse = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, work.sizes.size)[at]
        numbers = {"integers": at, "hashes of 64 bits": sparse, "list of integers": at.tolist()}
        peers = {
            "integers": ("polars expression", lambda: polars_ndcg(frame)),
            "array of objects": ("pandas.factorize", lambda: pd.factorize(objects)),
            "list of integers": ("pandas.factorize, array", lambda ids=at: pd.factorize(ids)),
        }
        for name, ids in {**numbers, **forms_of_ids(names, at)}.items():
            yield (
                f"{name}, {order}",
                lambda ml, y=labels, s=scores, ids=ids: lambda: ml.ndcg_score(y, s, qid=ids, k=10),
                peers.get(name) if order == "shuffled" else None,
                rest + n_bytes(ids),
            )
    documents = np.random.default_rng(2).permutation(2 * work.rows)[: work.rows]
    for name, ids in {"integer doc_id": documents, "text doc_id": documents.astype(str)}.items():
        yield (
            name,
            lambda ml, ids=ids: lambda: ml.ndcg_score(work.labels, work.scores, group=work.sizes, k=10, doc_id=ids),
            None,
            rest + ids.nbytes,
        )


def n_bytes(column: Any) -> int:
    """Return the memory of a column, without the items of a list or an array of objects."""
    if isinstance(column, pl.Series):
        return int(column.estimated_size())
    return int(getattr(column, "nbytes", sys.getsizeof(column)))


def polars_ndcg(frame: pl.DataFrame) -> float:
    """Compute NDCG@10 with ties in order, as an expression of polars."""
    gain = pl.col("y").sort_by("s", descending=True).head(10)
    best = pl.col("y").sort(descending=True).head(10)
    discount = (pl.int_range(pl.len()).head(10) + 2).log(2)
    by_query = frame.group_by("q").agg(dcg=(gain / discount).sum(), ideal=(best / discount).sum())
    return float(by_query.select((pl.col("dcg") / pl.col("ideal")).fill_nan(0).mean()).item())


def of_dicts(scale: float) -> Iterator[Row]:
    """Yield evaluate_run on dicts, best first and in any order."""
    import pytrec_eval

    n, rng = int(1000 * scale), np.random.default_rng(3)

    def some(size: int, values: list[Any]) -> dict[str, Any]:
        documents = rng.choice(100_000, size, replace=False).tolist()
        return dict(zip([f"doc{document}" for document in documents], values, strict=True))

    qrels = {f"q{topic}": some(100, rng.integers(0, 4, 100).tolist()) for topic in range(n)}
    peer = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    for name, best_first in (("best first", True), ("in any order", False)):
        drawn = rng.normal(size=(n, 1000))
        drawn = -np.sort(-drawn) if best_first else drawn
        run = {topic: some(1000, scores.tolist()) for topic, scores in zip(qrels, drawn, strict=True)}
        yield (
            f"dicts of {n} x 1000, {name}",
            lambda ml, run=run: lambda: ml.evaluate_run(qrels, run, flavor="trec_eval", k=10).value,
            ("pytrec_eval", lambda run=run: peer.evaluate(run)),
            0,
        )


def in_new_interpreters(before: str | None) -> str:
    """Return a line with the processor time of importing ``ndcg`` from ``ndcg_ml.torch``."""

    def least(code: str, folder: str | None) -> float:
        def once() -> float:
            code_of_time = f"{code}; import time; print(time.process_time())"
            done = subprocess.run([sys.executable, "-c", code_of_time], cwd=folder, capture_output=True, check=True)
            return 1e3 * float(done.stdout)

        return min(once() for _ in range(2))

    mine, torch = "from ndcg_ml.torch import ndcg", least("import torch", None)
    old = f"{least(mine, before):.0f}" if before else ""
    now = least(mine, str(Path(__file__).parents[1]))
    return f"| {mine} | {old} | {now:.0f} | {now / torch:.2f} of the peer | | import torch {torch:.0f} |"


def of_small_batches(modules: list[ModuleType]) -> Iterator[str]:
    """Yield lines with the time of ``NDCG.update`` on 32 lists of 50, and with its operations on a device."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Launches(TorchDispatchMode):
        """Count operations that are not views, and the bytes that they read and write."""

        n = n_bytes = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            if not func.is_view and func is not torch.ops.aten.detach.default:
                parts = torch.utils._pytree.tree_leaves((args, made))
                self.n += 1
                self.n_bytes += sum(part.nbytes for part in parts if isinstance(part, torch.Tensor))
            return made

    def plain() -> torch.Tensor:
        best = labels.gather(1, scores.topk(10).indices), labels.topk(10).values
        dcg, ideal = ((gains * discounts).sum(1) for gains in best)
        return torch.where(ideal > 0, dcg / ideal, 0.0).sum()

    torch.set_num_threads(1)
    scores, labels = torch.rand(32, 50), torch.randint(5, (32, 50))
    discounts = 1 / torch.log2(torch.arange(2.0, 12.0))
    packages = [importlib.import_module(f"{module.__name__}.torch") for module in modules]
    metrics = [package.NDCG(k=10) for package in packages]
    updates = [partial(metric.update, scores, labels) for metric in metrics]
    *old, now, peer = (1e3 * ms for ms in least([*updates, plain], 2000))
    name = "NDCG.update, 32 x 50, us"
    yield f"| {name} | {''.join(f'{us:.0f}' for us in old)} | {now:.0f} | | | torch.topk {peer:.0f} |"
    for form in ("all slots", "with a mask"):
        counts = []
        for package, metric in zip(packages, metrics, strict=True):
            kernel, on_device = importlib.import_module(f"{package.__name__}.kernel"), metric.to("meta")
            batch = scores.to("meta"), labels.to("meta"), None, (scores > 0).to("meta") if form != "all slots" else None
            on_device.update(*batch)  # constants are made once
            with patch.object(kernel, "is_plain_eager", return_value=True, create=True), Launches() as seen:
                on_device.update(*batch)
            counts.append(f"{seen.n}, {seen.n_bytes / scores.numel():.0f}")
        *earlier, ours = counts
        yield f"| NDCG.update on a device, {form}: launches, bytes per slot | {''.join(earlier)} | {ours} | | | |"


def copied(checkout: Path, name: str, folder: str) -> ModuleType:
    """Import the package of a checkout under another name."""
    there = Path(folder) / name
    shutil.copytree(checkout / "ndcg_ml", there, ignore=shutil.ignore_patterns("__pycache__"))
    for file in there.rglob("*.py"):
        file.write_text(re.sub(r"\bndcg_ml\b", name, file.read_text()))
    return importlib.import_module(name)


def least(calls: list[Call], turns: int = 3) -> list[float]:
    """Return the smallest processor time of each call."""
    best = [np.inf] * len(calls)
    for _ in range(turns):
        for at, call in enumerate(calls):
            began = time.process_time()
            call()
            best[at] = min(best[at], 1e3 * (time.process_time() - began))
    return best


def peak_of(call: Call) -> int:
    """Return the largest memory of a call, in bytes."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forms", description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of an older version")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the inputs, relative to full size")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "forms.md")
    arguments = parser.parse_args()
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    lines = [
        "# Forms of input, measured",
        "",
        f"{date.today()}; {_processor()}, {os.cpu_count()} cores; Python {platform.python_version()}; {versions}.",
        f"Inputs at {arguments.scale:g} of full size, 1.2 million rows. Load at the start: {os.getloadavg()[0]:.1f}.",
        "",
        *(" ".join(paragraph.split()) for paragraph in (__doc__ or "").split("\n\n")),
        "",
        "| passed | before | now | times sizes | peak of memory, times the input | peer |",
        "|---|--:|--:|--:|--:|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        checkouts = {"before_ml": arguments.before, "now_ml": Path(__file__).parents[1]}
        modules = [copied(path, name, folder) for name, path in checkouts.items() if path]
        by_sizes = 0.0
        for rows in (of_ids, of_dicts):
            for name, call_of, peer, size in rows(arguments.scale):
                calls = [call_of(module) for module in modules]
                if len({call() for call in calls}) > 1:
                    raise AssertionError(f"{name}: the versions give different values")
                *old, now, peers = least([*calls, peer[1] if peer else float])
                by_sizes = by_sizes or now
                relative = f"{now / by_sizes:.1f}" if rows is of_ids else ""
                peak = f"{peak_of(calls[-1]) / size:.1f}" if size else ""
                shown = f"{peer[0]} {peers:.0f}" if peer else ""
                before = "".join(f"{ms:.0f}" for ms in old)
                lines.append(f"| {name} | {before} | {now:.0f} | {relative} | {peak} | {shown} |")
                print(lines[-1], flush=True)
        lines += of_small_batches(modules)
    lines.append(in_new_interpreters(str(arguments.before) if arguments.before else None))
    print(*lines[-4:], sep="\n")
    arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
