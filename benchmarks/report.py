"""Format a benchmark report as Markdown."""

from __future__ import annotations

from typing import Any


def markdown(report: dict[str, Any]) -> str:
    """Return the report as a page: the machine, the versions, and a table per comparison."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    where = (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, accelerator: {machine['accelerator']}"
    )
    lines = [
        "# Speed, measured",
        "",
        f"{report['date']}; {where}; Python {report['python']}; {versions}.",
        f"Inputs at {report['scale']:g} of full size. Load at the start: {report.get('load', 'not noted')}.",
        "",
        "Written by `python -m benchmarks`. The rows of one table ran in turn, in one process, on the same arrays,",
        "after a check that their values agree. Ratio: time divided by that of the first row.",
    ]
    for name, results in report["results"].items():
        lines += ["", f"## {name}"]
        for result in results:
            title = result["title"] + _verdict(result)
            lines += ["", f"| {title} | median ms | min ms | ratio | value | |", "|---|--:|--:|--:|--:|---|"]
            lines += [_row(timing) for timing in result["timings"]]
    return "\n".join(lines) + "\n"


def _row(timing: dict[str, Any]) -> str:
    numbers = (f"{timing[name]:.2f}" for name in ("median_ms", "min_ms", "ratio"))
    return f"| {timing['name']} | {' | '.join(numbers)} | {timing['value']:.6f} | {timing['note']} |"


def _verdict(result: dict[str, Any]) -> str:
    target = result["target"]
    if target is None:
        return ""
    ratio = result["timings"][1]["ratio"]
    met = "met" if ratio >= (target if target > 0 else -1 / target) else "missed"
    if target < 0:
        return f" (target: the first within {-target:g} times the second; {met}, {1 / ratio:.1f})"
    return f" (target: {target:g} times faster than the second; {met}, {ratio:.1f})"
