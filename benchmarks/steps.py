"""Compare the cost of losses with that of bare formulas, on 64 lists of 100: ``python -m benchmarks.steps``.

A bare formula supports no padding, empty lists, invalid labels, infinite scores or overflowing gains. The report has
the number of torch operations in one forward and backward pass (each is a launch on a device), the number of times the
host waits for the device, and the time on the CPU, eager and under ``torch.compile(fullgraph=True)``. The values are
compared first.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.__main__ import _processor, _version
from ndcg_ml import Flavor
from ndcg_ml.torch import (
    NDCG,
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    NeuralNDCGLoss,
    SoftmaxLoss,
    Stochastic,
    ndcg,
)
from ndcg_ml.torch.inputs import torch_kernel

K = 10
FLAVOR = Flavor(gain="exponential")
Loss = Callable[[Tensor, Tensor], Tensor]


class Steps(TorchDispatchMode):
    """Count the operations, and those for which the host waits."""

    def __init__(self) -> None:
        super().__init__()
        self.number = self.waits = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        self.number += 1
        self.waits += func.overloadpacket.__name__ == "_local_scalar_dense"
        return func(*args, **(kwargs or {}))


# -- bare formulas -----------------------------------------------------------------------------------------------------


def _weights(labels: Tensor, k: int | None) -> Tensor:
    """Return each gain divided by the ideal DCG."""
    gain = torch.exp2(labels.float()) - 1
    best = gain.sort(dim=-1, descending=True).values[..., :k]
    ranks = torch.arange(1, best.shape[-1] + 1)
    return gain / (best / torch.log2(ranks + 1.0)).sum(-1, keepdim=True)


def softmax(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy with the gains."""
    gain = torch.exp2(labels.float()) - 1
    return -(gain / gain.sum(-1, keepdim=True) * scores.log_softmax(-1)).sum(-1).mean()


def approx(scores: Tensor, labels: Tensor) -> Tensor:
    """Return 1 - NDCG of smooth ranks, computed from all pairs."""
    ranks = 0.5 + torch.sigmoid(scores.unsqueeze(-2) - scores.unsqueeze(-1)).sum(-1)
    return 1 - (_weights(labels, None) / torch.log2(ranks + 1.0)).sum(-1).mean()


def lambdarank(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of all pairs, weighted by the change in NDCG@10."""
    scores, order = scores.sort(dim=-1, descending=True)
    weight = _weights(labels, K).gather(-1, order)
    n = scores.shape[-1]
    discount = torch.arange(1, n + 1).add(1.0).log2().reciprocal() * (torch.arange(n) < K)
    more = weight.unsqueeze(-1) - weight.unsqueeze(-2)
    pair = more.clamp(min=0) * (discount.unsqueeze(-1) - discount.unsqueeze(-2)).abs()
    gap = scores.unsqueeze(-1) - scores.unsqueeze(-2)
    return (pair * torch.nn.functional.softplus(-gap)).sum((-2, -1)).mean()


def neural(scores: Tensor, labels: Tensor) -> Tensor:
    """Return 1 - NDCG@10 of NeuralSort's matrix, computed from all pairs."""
    n = scores.shape[-1]
    apart = (scores.unsqueeze(-1) - scores.unsqueeze(-2)).abs().sum(-1)
    ranks = torch.arange(1, K + 1)
    matrix = ((n + 1 - 2 * ranks).unsqueeze(-1) * scores.unsqueeze(-2) - apart.unsqueeze(-2)).softmax(-1)
    at_rank = (matrix * _weights(labels, K).unsqueeze(-2)).sum(-1)
    return 1 - (at_rank / torch.log2(ranks + 1.0)).sum(-1).mean()


LOSSES: dict[str, tuple[Loss, Loss | None]] = {
    "SoftmaxLoss": (SoftmaxLoss(FLAVOR), softmax),
    "ApproxNDCGLoss": (ApproxNDCGLoss(FLAVOR), approx),
    f"LambdaNDCGLoss, k = {K}": (LambdaNDCGLoss(FLAVOR.replace(k=K)), lambdarank),
    f"NeuralNDCGLoss, k = {K}": (NeuralNDCGLoss(FLAVOR.replace(k=K)), neural),
    "Stochastic(ApproxNDCGLoss), 8 draws": (Stochastic(ApproxNDCGLoss(FLAVOR)), None),
}


# -- measuring ---------------------------------------------------------------------------------------------------------


def _data() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(64, 100, generator=draw), torch.randint(0, 5, (64, 100), generator=draw)


def _step(loss: Loss) -> Callable[[], Tensor]:
    scores, labels = _data()
    scores.requires_grad_()

    def step() -> Tensor:
        scores.grad = None
        value = loss(scores, labels)
        value.backward()
        return value.detach()

    return step


def _milliseconds(step: Callable[[], object], repeats: int) -> float:
    """Return the shortest time, because other processes only add to it."""
    for _ in range(10):
        step()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        step()
        taken.append(1e3 * (time.perf_counter() - began))
    return min(taken)


def _counted(step: Callable[[], object]) -> Steps:
    with Steps() as steps:
        step()
    return steps


def measured(repeats: int) -> list[dict[str, object]]:
    """Return one row per loss."""
    rows = []
    for name, (ours, bare) in LOSSES.items():
        steps = _counted(_step(ours))
        row: dict[str, object] = {"loss": name, "steps": steps.number, "waits": steps.waits}
        row["ms"] = _milliseconds(_step(ours), repeats)
        if bare is not None:
            torch.testing.assert_close(_step(ours)(), _step(bare)(), rtol=1e-5, atol=1e-6)
            row["bare steps"] = _counted(_step(bare)).number
            row["bare ms"] = _milliseconds(_step(bare), repeats)
            for title, loss in (("compiled ms", ours), ("bare compiled ms", bare)):
                torch._dynamo.reset()
                row[title] = _milliseconds(_step(torch.compile(loss, fullgraph=True)), repeats)
        rows.append(row)
        print(row, flush=True)
    scores, labels = _data()
    metric = NDCG(FLAVOR, k=K)

    def epoch() -> None:
        metric.reset()
        metric.update(scores, labels)
        metric.compute()

    with torch_kernel():  # CPU tensors otherwise use the NumPy kernel
        for name, call in (("ndcg", lambda: ndcg(scores, labels, flavor=FLAVOR, k=K)), ("NDCG.update, compute", epoch)):
            steps = _counted(call)
            rows.append({"loss": f"{name}, k = {K}", "steps": steps.number, "waits": steps.waits})
            rows[-1]["ms"] = _milliseconds(call, repeats)
    return rows


def markdown(report: dict[str, Any]) -> str:
    """Return the report as a Markdown page."""
    columns = ("loss", "steps", "bare steps", "waits", "ms", "bare ms", "compiled ms", "bare compiled ms")
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    lines = [
        "# Steps and times of the losses beside their bare formulas",
        "",
        f"{report['date']}; {report['processor']}, accelerator: no; one thread; Python {report['python']}; {versions}.",
        "",
        "Written by `python -m benchmarks.steps`. 64 lists of 100, float32, forward and backward. A step is one",
        "operation of torch; a wait is a look at data, for which a device must finish. Times are the least of many.",
        "The metric is that of the torch kernel, which devices use.",
        "",
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
    ]
    for row in report["rows"]:
        cells = (row.get(column, "") for column in columns)
        lines.append(f"| {' | '.join(f'{cell:.3f}' if isinstance(cell, float) else str(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="few repeats, to test the script")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    report = {
        "date": date.today().isoformat(),
        "processor": _processor(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("torch", "torchmetrics")},
        "rows": measured(5 if arguments.quick else 100),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "steps.json").write_text(json.dumps(report, indent=1) + "\n")
    (arguments.out / "steps.md").write_text(markdown(report))


if __name__ == "__main__":
    main()
