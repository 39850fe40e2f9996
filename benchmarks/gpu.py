"""What the torch room costs on a CUDA device: ``python -m benchmarks.gpu``.

Which calls wait for the device; ``ndcg`` and ``NDCG`` beside torchmetrics and beside one stable sort of the same
scores, which is the floor; working in float32 instead of float64;
and where ``method="auto"`` of ``ApproxNDCGLoss`` should change from pairs to steps. Values are compared before
anything is timed. Without a CUDA device it says so and writes nothing.

``--device cpu --scale 0.001 --out FOLDER`` tries the script itself, on a machine without a device.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import date
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks import workloads
from benchmarks.__main__ import _version
from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.torch import (
    NDCG,
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    ndcg,
)
from ndcg_ml.torch._host import torch_kernel

LIBRARIES = ("numpy", "torch", "torchmetrics")
K = 10
# Flavors whose kernels differ: sorted ideal, ideal from the ranking, gain table, a second key of the sort.
FLAVORS = ("sklearn", "lightgbm", "ndcg[ideal=local]", "ndcg[gain=0|1|3|7|15]", "ndcg[ties=worst]")
LOSSES = (
    ApproxNDCGLoss("lightgbm", method="dense"),
    ApproxNDCGLoss("lightgbm", method="fast"),
    NeuralNDCGLoss("lightgbm"),
    LambdaNDCGLoss("lightgbm"),
    PlackettLuceNDCGLoss("lightgbm"),
    SoftmaxLoss("lightgbm"),
    SoftmaxLoss("lightgbm", target="xendcg"),
    ListMLELoss("lightgbm"),
)
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)

Call = Callable[[], Tensor | float]
Row = dict[str, object]


class Device:
    """Where it runs: how to wait for it, how much memory was in use, whether it says that the host waits."""

    def __init__(self, name: str) -> None:
        self.torch = torch.device(name)
        self.cuda = self.torch.type == "cuda"

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def peak_bytes(self, call: Call) -> int | None:
        """What the call needs beyond what is there before it."""
        if not self.cuda:
            return None
        self.wait()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        self.wait()
        return torch.cuda.max_memory_allocated() - before

    @contextmanager
    def debugging(self, mode: str) -> Iterator[None]:
        """What torch does where the host waits for the device: "warn" or "error"."""
        if not self.cuda:
            yield
            return
        torch.cuda.set_sync_debug_mode(mode)
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")


# -- waiting -----------------------------------------------------------------------------------------------------------


def waiting(device: Device, scale: float, budget_s: float) -> Iterator[Row]:
    """How often each call waits; those that promise never to wait are also run where waiting is an error."""
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(64, 100, generator=draw).to(device.torch)
    labels = torch.randint(0, 5, (64, 100), generator=draw).to(device.torch)
    mask = (torch.rand(64, 100, generator=draw) < 0.9).to(device.torch)
    ids = torch.arange(64, device=device.torch)
    rows = ids.repeat_interleave(100)
    flat = scores.flatten(), labels.flatten()
    for flavor in FLAVORS:
        metric = NDCG(flavor, k=K).to(device.torch)
        split = NDCG(flavor, k=K, split_queries=True).to(device.torch)
        calls: dict[str, tuple[int, Call]] = {
            "ndcg, padded": (1, lambda f=flavor: ndcg(scores, labels, flavor=f, k=K, mask=mask)),
            "ndcg, one id per row": (2, lambda f=flavor: ndcg(*flat, flavor=f, k=K, indexes=rows)),
            "NDCG.update, padded": (0, lambda m=metric: m.update(scores, labels, ids, mask)),
            "NDCG.update, one id per row": (0, lambda m=metric: m.update(*flat, indexes=rows)),
            "NDCG.update, split_queries": (0, lambda m=split: m.update(scores, labels, ids, mask)),
        }
        yield from (_waits(device, f"{name}, {flavor}", call, most) for name, (most, call) in calls.items())
    for loss in LOSSES:
        yield _waits(device, f"{loss}, forward and backward", _step(loss, scores, labels), 0)


def _waits(device: Device, name: str, call: Call, most: int) -> Row:
    call()  # the first call may wait: it loads libraries of the device
    device.wait()
    with warnings.catch_warnings(record=True) as caught, device.debugging("warn"):
        warnings.simplefilter("always")
        call()
    waits = sum("synchroniz" in str(one.message) for one in caught)
    row: Row = {"call": name, "waits": waits if device.cuda else "not counted", "promised": most}
    if most == 0:
        try:
            with device.debugging("error"):
                call()
            row["error"] = ""
        except RuntimeError as error:
            row["error"] = str(error).splitlines()[0]
    return row


# -- the metric --------------------------------------------------------------------------------------------------------


def metric(device: Device, scale: float, budget_s: float) -> Iterator[Row]:
    """``ndcg`` and ``NDCG`` beside one stable sort of the scores, torchmetrics, and working in float32."""
    works = {
        "dense 10 000 x 100": (workloads.dense(scale), True),
        "dense 1 000 x 10 000": (workloads.long(scale), True),
        "ragged, 1.2 M rows": (workloads.ragged(scale), False),
        "ragged, 20 M rows": (workloads.ragged(17 * scale), False),
    }
    for name, (work, padded) in works.items():
        shape = (work.sizes.size, -1) if padded else (-1,)
        scores = torch.tensor(work.scores, dtype=torch.float32).reshape(shape).to(device.torch)
        labels = torch.tensor(work.labels, dtype=torch.float32).reshape(shape).to(device.torch)
        rows = torch.tensor(work.qid).to(device.torch)
        ids: dict[str, Tensor] = {} if padded else {"indexes": rows}
        want = ndcg_score(work.labels, scores.flatten().cpu().numpy(), group=work.sizes, k=K)

        def function(scores: Tensor = scores, labels: Tensor = labels, ids: dict[str, Tensor] = ids) -> Tensor:
            return ndcg(scores, labels, k=K, **ids).mean()

        def epoch(scores: Tensor = scores, labels: Tensor = labels, ids: dict[str, Tensor] = ids) -> Tensor:
            found = NDCG(k=K).to(device.torch)
            found.update(scores, labels, **ids)
            value: Tensor = found.compute()
            return value

        def in_float32(function: Call = function) -> Tensor | float:
            with working_in_float32():
                return function()

        contenders: dict[str, tuple[Call, float | None]] = {
            "torch.sort(stable=True) of the scores": (lambda s=scores: s.sort(stable=True).values.flatten()[0], None),
            "ndcg": (function, 1e-9),
            "ndcg, working in float32": (in_float32, 1e-5),
            "NDCG, update and compute": (epoch, 1e-9),
        }
        if work.sizes.size <= 20_000:  # a loop over queries: some tenths of a millisecond each
            contenders["torchmetrics RetrievalNormalizedDCG"] = (_torchmetrics(scores, labels, rows), 1e-4)
        floor = 0.0
        for contender, (call, within) in contenders.items():
            row = _timed(device, call, budget_s)
            floor = floor or float(row["median_ms"])  # type: ignore[arg-type]
            apart = None if within is None else abs(float(row["value"]) - want)  # type: ignore[arg-type]
            if apart is not None and not apart <= within:
                raise AssertionError(f"{name}: {contender} gives {row['value']!r}, ndcg_score gives {want!r}")
            yield {"input": name, "rows": work.rows, "call": contender, **row, "times the sort": _ratio(row, floor)}


@contextmanager
def working_in_float32() -> Iterator[None]:
    """The precision that devices without float64 work in."""

    def float32(_: torch.device) -> torch.dtype:
        return torch.float32

    with ExitStack() as patches:
        for room in ("_gains", "_kernel", "_inputs"):
            patches.enter_context(patch(f"ndcg_ml.torch.{room}.working_dtype", float32))
        yield


def _torchmetrics(scores: Tensor, labels: Tensor, rows: Tensor) -> Call:
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    def call() -> Tensor:
        found = RetrievalNormalizedDCG(top_k=K).to(scores.device)
        found.update(scores.flatten(), labels.flatten().long(), indexes=rows)
        value: Tensor = found.compute()
        return value

    return call


# -- the losses --------------------------------------------------------------------------------------------------------


def threshold(device: Device, scale: float, budget_s: float) -> Iterator[Row]:
    """``ApproxNDCGLoss`` by pairs and by steps: the last length at which pairs are the faster."""
    for n in LENGTHS:
        for lists in (16, 64):
            row: Row = {"n": n, "lists": lists}
            for method in ("dense", "fast"):
                form = ApproxNDCGLoss(Flavor(gain="exponential"), method=method)
                step = _step(form, *(part.to(device.torch) for part in _batch(n, lists)))
                row[f"{method}, ms"] = _timed(device, step, budget_s)["median_ms"]
            yield row


def _batch(n: int, lists: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 5, (lists, n), generator=draw)
    return labels + 2 * torch.randn(lists, n, generator=draw), labels


def _step(loss: Callable[[Tensor, Tensor], Tensor], scores: Tensor, labels: Tensor) -> Call:
    leaf = scores.clone().requires_grad_()

    def step() -> Tensor:
        leaf.grad = None
        value = loss(leaf, labels)
        value.backward()
        return value.detach()

    return step


# -- timing and report -------------------------------------------------------------------------------------------------


def _timed(device: Device, call: Call, budget_s: float) -> Row:
    """Milliseconds from the call until the device is done; the first calls allocate and load, and do not count."""
    call()
    device.wait()
    began = time.perf_counter()
    value = float(call())
    device.wait()
    once = time.perf_counter() - began
    taken = []
    for _ in range(max(3, min(50, int(budget_s / max(once, 1e-6))))):
        began = time.perf_counter()
        call()
        device.wait()
        taken.append(1e3 * (time.perf_counter() - began))
    row: Row = {"median_ms": statistics.median(taken), "min_ms": min(taken), "repeats": len(taken), "value": value}
    peak = device.peak_bytes(call)
    return row if peak is None else {**row, "peak_bytes": peak}


def _ratio(row: Row, floor: float) -> float:
    return float(row["median_ms"]) / floor  # type: ignore[arg-type]


PARTS = {part.__name__: part for part in (waiting, metric, threshold)}


def markdown(report: dict) -> str:
    """The report as a page."""
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    lines = [
        "# On a CUDA device, measured",
        "",
        f"{report['date']}; {report['device']}; Python {report['python']}; {versions}.",
        f"Inputs at {report['scale']:g} of full size. k = {K}, float32 scores. Written by `python -m benchmarks.gpu`.",
    ]
    for name, rows in report["results"].items():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        lines += ["", f"## {name}", "", f"{(PARTS[name].__doc__ or '').splitlines()[0]}", ""]
        lines += [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
        lines += [f"| {' | '.join(_cell(row.get(column, '')) for column in columns)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if type(value) is int else str(value).replace("|", "\\|")


def main() -> None:
    """Parse the command line, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1; cpu tries the script")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the inputs, as a fraction of the full ones")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds per measurement, about")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="folder to write to")
    arguments = parser.parse_args()
    device = Device(arguments.device)
    if device.cuda and not torch.cuda.is_available():
        sys.exit(f"No CUDA device: torch {torch.__version__} finds none, so there is nothing to measure.")
    report = {
        "date": date.today().isoformat(),
        "device": torch.cuda.get_device_name(device.torch) if device.cuda else f"{device.torch}, no CUDA device",
        "cuda": torch.version.cuda,
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in LIBRARIES},
        "scale": arguments.scale,
        "results": {},
    }
    for name in arguments.only:
        print(f"== {name}", flush=True)
        rows = report["results"][name] = []
        with nullcontext() if device.cuda else torch_kernel():
            for row in PARTS[name](device, arguments.scale, arguments.budget):
                rows.append(row)
                print(*(f"{key}: {_cell(value)}" for key, value in row.items()), sep=", ", flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "gpu.json").write_text(json.dumps(report, indent=1) + "\n")
    (arguments.out / "gpu.md").write_text(markdown(report))


if __name__ == "__main__":
    main()
