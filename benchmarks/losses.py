"""Time and memory of a training step's loss: ``python -m benchmarks.losses``.

ApproxNDCGLoss forward and backward, over all pairs and by scans. Every measurement has a process of its own. Memory is
the resident set: after a small step has loaded the code, the high-water mark of the process is reset (Linux, through
``/proc/self/clear_refs``); the peak is the mark after the first step of full size, less what was resident before it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

from benchmarks.__main__ import _processor, _version

# Documents a list and lists a batch.
SHAPES = ((100, 64), (1_000, 16), (10_000, 1), (100_000, 1))
FORMS = (("logistic", "dense"), ("logistic", "fast"), ("laplace", "dense"), ("laplace", "fast"))
LARGEST_DENSE = 10_000  # beyond, one matrix of float32 has 40 GB
LIBRARIES = ("numpy", "torch")


def _resident(field: str) -> int:
    """VmRSS (now) or VmHWM (largest since the reset), in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def measure(n: int, n_lists: int, step: str, method: str, budget_s: float) -> dict[str, float]:
    """Median milliseconds and peak bytes of one step, in this process."""
    import torch

    from ndcg_ml.torch import ApproxNDCGLoss

    def batch(n: int, n_lists: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        labels = torch.randint(0, 5, (n_lists, n), generator=generator)
        scores = labels + 2 * torch.randn(n_lists, n, generator=generator)
        return scores.requires_grad_(), labels

    loss = ApproxNDCGLoss("ndcg[gain=exponential]", step=step, method=method)

    def once(scores: torch.Tensor, labels: torch.Tensor) -> float:
        scores.grad = None
        began = time.perf_counter()
        value = loss(scores, labels)
        value.backward()
        taken = time.perf_counter() - began
        once.value = value.item()  # type: ignore[attr-defined]
        return taken

    once(*batch(70, 1))
    scores, labels = batch(n, n_lists)
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    first = once(scores, labels)
    peak = _resident("VmHWM") - before
    times = [once(scores, labels) for _ in range(max(3, min(50, int(budget_s / first))))]
    return {
        "median_ms": 1e3 * statistics.median(times),
        "min_ms": 1e3 * min(times),
        "repeats": len(times),
        "peak_bytes": peak,
        "loss": once.value,  # type: ignore[attr-defined]
    }


def markdown(report: dict) -> str:
    """The report as a page."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    lines = [
        "# Losses: time and memory of forward and backward",
        "",
        f"{report['date']}; {machine['processor']}, {machine['cores']} cores, {machine['system']}, accelerator: no; "
        f"{report['threads']} thread(s); Python {report['python']}; {versions}. {report['note']}".rstrip(),
        "",
        "Written by `python -m benchmarks.losses`. ApproxNDCGLoss, float32, no cut-off, temperature 1. A process each;",
        "memory is the growth of the resident set at its peak, so that below about 1 MB it is noise.",
        "",
        "| n | lists | step | method | median ms | min ms | peak MB | loss |",
        "|--:|--:|---|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {r['n']:,} | {r['lists']} | {r['step']} | {r['method']} | {r['median_ms']:.2f} | {r['min_ms']:.2f} "
        f"| {r['peak_bytes'] / 1e6:.1f} | {r['loss']:.6f} |"
        for r in report["results"]
    ]
    found = {(r["n"], r["step"], r["method"]): r for r in report["results"]}
    lines.append("")
    for step in ("logistic", "laplace"):
        for n in sorted({n for n, *_ in found}):
            dense, fast = found.get((n, step, "dense")), found.get((n, step, "fast"))
            if dense and fast:
                lines.append(
                    f"- {step}, n = {n:,}: fast is {dense['median_ms'] / fast['median_ms']:.1f} times faster, with "
                    f"{dense['peak_bytes'] / max(fast['peak_bytes'], 1):.1f} times less memory."
                )
        small, large = found.get((10_000, step, "fast")), found.get((100_000, step, "fast"))
        if small and large:
            lines.append(
                f"- {step}, fast, 10 times the documents (10,000 to 100,000): "
                f"{large['median_ms'] / small['median_ms']:.1f} times the time, "
                f"{large['peak_bytes'] / max(small['peak_bytes'], 1):.1f} times the memory."
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Parse the command line, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.losses", description=__doc__)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds a measurement, about")
    parser.add_argument("--threads", type=int, default=1, help="of torch; more than the idle cores measures waiting")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the report")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="folder to write to")
    parser.add_argument("--one", nargs=4, metavar=("N", "LISTS", "STEP", "METHOD"), help="one measurement, as JSON")
    arguments = parser.parse_args()
    if arguments.one:
        n, n_lists, step, method = arguments.one
        print(json.dumps(measure(int(n), int(n_lists), step, method, arguments.budget)))
        return
    results = []
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
    for n, n_lists in SHAPES:
        for step, method in FORMS:
            if method == "dense" and n > LARGEST_DENSE:
                continue
            command = [sys.executable, "-m", "benchmarks.losses", "--budget", str(arguments.budget)]
            command += ["--one", str(n), str(n_lists), step, method]
            out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
            results.append({"n": n, "lists": n_lists, "step": step, "method": method, **json.loads(out)})
            print({key: value for key, value in results[-1].items() if key != "repeats"}, flush=True)
    report = {
        "date": date.today().isoformat(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "python": platform.python_version(),
        "threads": arguments.threads,
        "versions": {name: _version(name) for name in LIBRARIES},
        "note": arguments.note,
        "results": results,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "losses.json").write_text(json.dumps(report, indent=1) + "\n")
    (arguments.out / "losses.md").write_text(markdown(report))


if __name__ == "__main__":
    main()
