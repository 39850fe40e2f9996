"""The pictures of docs/performance.md, from the benchmark's JSON: ``python -m benchmarks.plots``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BLUE, GREY, RED = "#2f6ca3", "#8a8a8a", "#c8452f"


def main() -> None:
    """Draw both pictures."""
    import matplotlib as mpl

    mpl.use("Agg")
    report = json.loads((ROOT / "benchmarks" / "results" / "speed.json").read_text())
    _against_peers(report, ROOT / "docs" / "performance_peers.png")
    _growth(report, ROOT / "docs" / "performance_shapes.png")


def _against_peers(report: dict[str, Any], path: Path) -> None:
    """How many times longer each peer takes, on a logarithmic axis."""
    from matplotlib import pyplot as plt

    bars = []
    for group in ("lightgbm", "dense", "ragged"):
        for result in report["results"][group]:
            title = result["title"].split(";")
            what = title[0] + (f" ({title[1].strip()})" if len(title) > 1 else "")
            bars += [(f"{t['name']}\n{what}", t["ratio"]) for t in result["timings"][1:2]]
    figure, axes = plt.subplots(figsize=(10, 0.52 * len(bars) + 1), layout="constrained")
    names, ratios = zip(*reversed(bars), strict=True)
    axes.barh(range(len(bars)), ratios, color=[BLUE if ratio >= 1 else RED for ratio in ratios])
    axes.set_yticks(range(len(bars)), names, fontsize=7)
    axes.set_xscale("log")
    axes.axvline(1, color=GREY)
    for y, ratio in enumerate(ratios):
        axes.text(ratio, y, f" {ratio:.1f}", va="center", fontsize=8)
    axes.set_xlabel("time of the peer over ours, same arrays, same run")
    figure.savefig(path, dpi=110)


def _growth(report: dict[str, Any], path: Path) -> None:
    """Nanoseconds per row over the cut-off, for each shape."""
    from matplotlib import pyplot as plt

    lines: dict[str, dict[str, float]] = {}
    for result in report["results"]["shapes"]:
        match = re.fullmatch(r"shape: (?P<name>[^,]*), k=(?P<k>\w+)", result["title"])
        if match is not None:
            lines.setdefault(match["name"], {})[match["k"]] = result["timings"][0]["median_ms"] / result["rows"] * 1e6
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for name, by_k in lines.items():
        axes.plot(list(by_k), list(by_k.values()), marker="o", label=name)
    axes.set_xlabel("cut-off k")
    axes.set_ylabel("ns per row, prepared, 1 thread")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
