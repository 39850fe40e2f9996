"""Time and memory of a training step's loss, ours and the peers': ``python -m benchmarks.losses``.

Forward and backward, float32, on the same scores and labels. Every measurement has a process of its own, which is held
to as many processors as it may have threads. Memory is the resident set: after a small step has loaded the code (and
jax has compiled), the high-water mark of the process is reset (Linux, through ``/proc/self/clear_refs``); the peak is
the mark after the first step of full size, less what was resident before it.

Before a form that is quadratic in the length runs, its memory and time are estimated from those of the last shape it
ran at. What would not fit into the free memory, or would take too long, is reported with the estimate and not run.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np

from benchmarks.__main__ import _processor, _version
from benchmarks.loss_peers import COMPARISONS, FAMILIES, OURS, Comparison, Form, Labels, Scores

# Documents per list, and lists per batch.
SHAPES = {100: 64, 1_000: 16, 10_000: 1, 100_000: 1}
LIBRARIES = ("numpy", "torch", "rax", "jax", "allrank", "pytorchltr")
NOISE = 1_000_000  # bytes: below, the resident set says little


def _resident(field: str) -> int:
    """VmRSS (now) or VmHWM (largest since the reset), in bytes."""
    return _kilobytes(Path("/proc/self/status"), field)


def _kilobytes(table: Path, field: str) -> int:
    return 1024 * next(int(line.split()[1]) for line in table.read_text().splitlines() if line.startswith(field))


def batch(n: int, lists: int) -> tuple[Scores, Labels]:
    """Grades of 0 to 4, and scores that know something of them. No two scores of a list are likely to be tied."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 5, (lists, n))
    return (labels + 2 * draw.standard_normal((lists, n))).astype(np.float32), labels


def measure(form: Form, n: int, lists: int, threads: int, budget_s: float) -> dict[str, object]:
    """Median milliseconds and peak bytes of one step, in this process."""
    # XLA has as many threads as it has processors, whatever OMP_NUM_THREADS says.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    Path("/proc/self/oom_score_adj").write_text("1000")  # if memory runs out, this process is the one to end
    try:
        form.build(*batch(70, 1))()
    except ImportError as error:
        return {"missing": str(error)}
    except Exception as error:  # a peer may not work with the installed versions
        if form.library == OURS:
            raise
        return {"not_run": f"fails ({type(error).__name__}: {error})"}
    step = form.build(*batch(n, lists))
    ctypes.CDLL(None).malloc_trim(0)  # memory that compiling has freed would hide as much of the step's own
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")

    value = math.nan

    def once() -> float:
        nonlocal value
        began = time.perf_counter()
        value = step()
        return time.perf_counter() - began

    first = once()
    peak = _resident("VmHWM") - before
    # A step of many seconds is measured once: its start is a small part of it.
    several = 3 * first <= 5 * budget_s
    times = [once() for _ in range(max(3, min(50, int(budget_s / first))))] if several else [first]
    return {
        "median_ms": 1e3 * statistics.median(times),
        "min_ms": 1e3 * min(times),
        "repeats": len(times),
        "peak_bytes": peak,
        "loss": value,
    }


def estimate(form: Form, n: int, lists: int, ran: dict | None, longest_s: float) -> dict[str, object] | None:
    """Why not to run it: what it would need, by the number of pairs, from where it `ran` last; None to run it."""
    if form.pairs == "none":
        return None
    pairs = n * n * lists
    more = pairs / (ran["n"] ** 2 * ran["lists"]) if ran else None
    since = f"by the square of the length from n = {ran['n']:,}" if ran else "for one matrix of n x n alone"
    if form.pairs == "held":
        need = int(ran["peak_bytes"] * more) if ran else 4 * pairs
        if need > _kilobytes(Path("/proc/meminfo"), "MemAvailable"):
            return {"not_run": f"does not fit: {need / 1e9:,.1f} GB, {since}", "need_bytes": need}
    if ran and ran["median_ms"] * more > 1e3 * longest_s:
        need_ms = ran["median_ms"] * more
        return {"not_run": f"takes too long: {need_ms / 1e3:,.0f} s a step, {since}", "need_ms": need_ms}
    return None


def _measure_apart(comparison: Comparison, form: Form, n: int, arguments: argparse.Namespace) -> dict[str, object]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.losses", "--budget", str(arguments.budget)]
    command += ["--threads", str(arguments.threads), "--one", comparison.title, form.library, form.name, str(n)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads), "JAX_PLATFORMS": "cpu"}
    limit = 60 + 5 * arguments.longest
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"not_run": f"takes too long: not done after {limit:.0f} s"}
    if done.returncode == -9:
        return {"not_run": "does not fit: ended by the system"}
    if done.returncode:
        raise RuntimeError(f"{comparison.title}, {form.library} {form.name}, n = {n}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def run(arguments: argparse.Namespace) -> tuple[list[dict], dict[str, str]]:
    """The results, and why a library has none."""
    results: list[dict] = []
    missing: dict[str, str] = {}
    for n in arguments.shapes:
        for comparison in COMPARISONS:
            for form in comparison.forms:
                if comparison.family not in arguments.only or form.library in missing:
                    continue
                who = {"comparison": comparison.title, "library": form.library, "form": form.name}
                last = [r for r in results if "median_ms" in r and all(r[key] == who[key] for key in who)]
                measured = estimate(form, n, SHAPES[n], last[-1] if last else None, arguments.longest)
                measured = measured or _measure_apart(comparison, form, n, arguments)
                if "missing" in measured:
                    missing[form.library] = str(measured["missing"])
                    print(f"{form.library} is missing: {measured['missing']}", flush=True)
                    continue
                row = {"family": comparison.family, "n": n, "lists": SHAPES[n], **who, **measured}
                if "loss" in row and form.in_our_terms:
                    row["in_our_terms"] = form.in_our_terms(row["loss"], n, SHAPES[n])
                results.append(row)
                print(n, comparison.title, form.library, form.name, measured, sep=" | ", flush=True)
    return results, missing


def _rows_of(comparison: Comparison, form: Form, results: list[dict]) -> list[dict]:
    """By growing length."""
    key = (comparison.title, form.library, form.name)
    return [row for row in results if (row["comparison"], row["library"], row["form"]) == key]


def _reference(comparison: Comparison, results: list[dict]) -> dict[int, dict]:
    """Our first form of it, by length, where it ran."""
    return {row["n"]: row for row in _rows_of(comparison, comparison.forms[0], results) if "median_ms" in row}


def _ratios(row: dict, reference: dict | None) -> tuple[str, str]:
    """How many times our time and our memory; empty where that cannot be said."""
    if row["library"] == OURS or reference is None:
        return "", ""
    in_noise = min(row["peak_bytes"], reference["peak_bytes"]) < NOISE
    memory = "" if in_noise else f"{row['peak_bytes'] / reference['peak_bytes']:.2f}"
    return f"{row['median_ms'] / reference['median_ms']:.2f}", memory


def _farthest(comparison: Comparison, form: Form, results: list[dict]) -> float | None:
    """The largest relative difference of its values, in our terms, from ours; None if there is none to be had."""
    reference = _reference(comparison, results)
    rows = [row for row in _rows_of(comparison, form, results) if "in_our_terms" in row and row["n"] in reference]
    return max((abs(row["in_our_terms"] / reference[row["n"]]["loss"] - 1) for row in rows), default=None)


def disagreements(results: list[dict]) -> list[str]:
    """Forms of the same loss whose values are further from ours than they may be."""
    return [
        f"{comparison.title}: {form.library}, {form.name}"
        for comparison in COMPARISONS
        for form in comparison.forms
        if (_farthest(comparison, form, results) or 0.0) > form.within
    ]


def _lines_of(comparison: Comparison, results: list[dict]) -> list[str]:
    """A table, and how far each form is from ours in value."""
    columns = ("n", "lists", "library", "form", "median ms", "min ms", "steps", "peak MB")
    columns += ("time / ours", "memory / ours", "loss", "in our terms")
    lines = [f"### {comparison.title}", "", f"| {' | '.join(columns)} |", f"|--:|--:|---|---|{'--:|' * 8}"]
    reference = _reference(comparison, results)
    for row in sorted((r for r in results if r["comparison"] == comparison.title), key=lambda r: r["n"]):
        head = f"| {row['n']:,} | {row['lists']} | {row['library']} | {row['form']} "
        if "not_run" in row:
            lines.append(f"{head}| {row['not_run']} {'| ' * 8}".rstrip())
            continue
        time_ratio, memory_ratio = _ratios(row, reference.get(row["n"]))
        same = f"{row['in_our_terms']:.6g}" if "in_our_terms" in row else "another"
        lines.append(
            f"{head}| {row['median_ms']:.2f} | {row['min_ms']:.2f} | {row['repeats']} "
            f"| {max(row['peak_bytes'], 0) / 1e6:.1f} | {time_ratio} | {memory_ratio} | {row['loss']:.6g} | {same} |"
        )
    lines.append("")
    for form in comparison.forms[1:]:
        if not _rows_of(comparison, form, results):
            continue
        apart = _farthest(comparison, form, results)
        said = [form.note] * bool(form.note)
        if apart is not None:
            verdict = "the same loss" if apart <= form.within else f"NOT the same loss ({form.within:g} is allowed)"
            said.insert(0, f"{verdict}, at most {apart:.0e} from ours (relatively)")
        if said:
            lines.append(f"- {form.library}, {form.name}: {'; '.join(said)}.")
    return lines if lines[-1] == "" else [*lines, ""]


def _of_scans(results: list[dict]) -> list[str]:
    """What scans save over pairs, and how they grow."""
    lines = []
    for comparison in COMPARISONS:
        forms = {form.name: form for form in comparison.forms if form.library == OURS}
        if "method=fast" not in forms:
            continue
        dense, fast = (
            {row["n"]: row for row in _rows_of(comparison, forms[name], results) if "median_ms" in row}
            for name in ("method=dense", "method=fast")
        )
        lines += [
            f"- {comparison.title}, n = {n:,}: fast is {dense[n]['median_ms'] / fast[n]['median_ms']:.1f} times faster "
            f"than dense, with {dense[n]['peak_bytes'] / max(fast[n]['peak_bytes'], 1):.1f} times less memory."
            for n in sorted(dense.keys() & fast.keys())
        ]
        if {10_000, 100_000} <= fast.keys():
            small, large = fast[10_000], fast[100_000]
            lines.append(
                f"- {comparison.title}, fast, 10 times the documents (10,000 to 100,000): "
                f"{large['median_ms'] / small['median_ms']:.1f} times the time, "
                f"{large['peak_bytes'] / max(small['peak_bytes'], 1):.1f} times the memory."
            )
    return lines


def _of_peers(results: list[dict]) -> list[str]:
    """Each peer at the longest lists it ran on, and why it did not run on longer ones."""
    lines = []
    for comparison in COMPARISONS:
        reference = _reference(comparison, results)
        for form in comparison.forms:
            rows = _rows_of(comparison, form, results)
            ran = [row for row in rows if "median_ms" in row and row["n"] in reference]
            if form.library == OURS or not ran:
                continue
            time_ratio, memory_ratio = _ratios(ran[-1], reference[ran[-1]["n"]])
            memory = f" and {memory_ratio} times our memory" if memory_ratio else ""
            beyond = [f"; at n = {row['n']:,} it {row['not_run']}" for row in rows if "not_run" in row]
            lines.append(
                f"- {comparison.title}, {form.library}, n = {ran[-1]['n']:,}: {time_ratio} times our time{memory}"
                f"{''.join(beyond)}."
            )
    return lines


def markdown(report: dict) -> str:
    """The report as a page."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    lines = [
        "# Losses: time and memory of forward and backward",
        "",
        f"{report['date']}; {machine['processor']}, {machine['cores']} cores, {machine['memory_bytes'] / 1e9:.0f} GB, "
        f"{machine['system']}, accelerator: no; {report['threads']} thread(s); Python {report['python']}; {versions}. "
        f"{report['note']}".rstrip(),
        "",
        "Written by `python -m benchmarks.losses`. float32, temperature 1, no cut-off unless named; all on the same",
        "scores and labels (grades 0 to 4). A process each; rax is compiled beforehand. Memory is the growth of the",
        "resident set at its peak, so that below about 1 MB it is noise. Ratios are against the first form of each",
        'table: above 1 the peer takes more. "In our terms" undoes what a peer\'s loss is multiplied by; "another"',
        "is another loss, or another draw. What was not run is given with an estimate. The allocator is used as it",
        "comes: a median far above its minimum is the time of pages that the C library gave back and took again.",
        "",
    ]
    lines += [f"Missing, and left out: {name} ({reason}).\n" for name, reason in report["missing"].items()]
    for family in FAMILIES:
        ran = [c for c in COMPARISONS if c.family == family and any(r["family"] == family for r in report["results"])]
        lines += [f"## {family}", ""] * bool(ran)
        for comparison in ran:
            lines += _lines_of(comparison, report["results"])
    return "\n".join([*lines, "## In short", "", *_of_scans(report["results"]), *_of_peers(report["results"])]) + "\n"


def _shapes(text: str) -> list[int]:
    chosen = [int(part) for part in text.split(",")]
    if not set(chosen) <= set(SHAPES):
        raise argparse.ArgumentTypeError(f"must be among {', '.join(map(str, SHAPES))}; got {text}")
    return sorted(set(chosen))


def main() -> None:
    """Parse the command line, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.losses", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES), help="families to run")
    parser.add_argument("--shapes", type=_shapes, default=list(SHAPES), help="documents per list, as in 100,1000")
    parser.add_argument("--budget", type=float, default=3.0, help="seconds per measurement, about")
    parser.add_argument("--longest", type=float, default=60.0, help="longest step in seconds, by its estimate")
    parser.add_argument("--threads", type=int, default=1, help="more than the idle cores measures waiting")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the report")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="folder to write to")
    parser.add_argument("--one", nargs=4, metavar=("COMPARISON", "LIBRARY", "FORM", "N"), help="one, as JSON")
    arguments = parser.parse_args()
    if arguments.one:
        title, library, name, n = arguments.one
        (form,) = (
            form
            for comparison in COMPARISONS
            for form in comparison.forms
            if (comparison.title, form.library, form.name) == (title, library, name)
        )
        print(json.dumps(measure(form, int(n), SHAPES[int(n)], arguments.threads, arguments.budget)))
        return
    results, missing = run(arguments)
    report = {
        "date": date.today().isoformat(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_bytes": _kilobytes(Path("/proc/meminfo"), "MemTotal"),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "python": platform.python_version(),
        "threads": arguments.threads,
        "versions": {name: _version(name) for name in LIBRARIES},
        "note": arguments.note,
        "missing": missing,
        "results": results,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "losses.json").write_text(json.dumps(report, indent=1) + "\n")
    (arguments.out / "losses.md").write_text(markdown(report))
    if apart := disagreements(results):
        sys.exit("These are not the loss they were taken for:\n" + "\n".join(apart))


if __name__ == "__main__":
    main()
