"""Run benchmarks and write their results as JSON and Markdown."""

from __future__ import annotations

import argparse
import json
import os
import platform
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# Libraries read this when they are imported.
os.environ.setdefault("OMP_NUM_THREADS", "2")
# The kernel of cases that name none.
os.environ.setdefault("NDCG_ML_KERNEL", "numpy")

from benchmarks.cases import CASES
from benchmarks.report import markdown

LIBRARIES = (
    *("numpy", "numba", "scikit-learn", "lightgbm", "xgboost", "catboost", "torch", "torchmetrics"),
    *("ranx", "implicit", "scipy", "pytrec_eval-terrier", "ir_measures", "rax", "jax"),
)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = {line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")}
    flags = next((line for line in lines if line.startswith("flags")), "")
    simd = next((name for name in ("avx512f", "avx2") if name in flags), "no AVX2")
    return f"{' / '.join(sorted(names)) or platform.processor()} ({simd})"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="benchmarks to run")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the inputs, relative to full size")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="folder to write to")
    parser.add_argument("--name", default="speed", help="name of the two files, without suffix")
    parser.add_argument("--keep", action="store_true", help="keep the other results of existing files")
    arguments = parser.parse_args()
    report: dict[str, Any] = {
        "date": date.today().isoformat(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
            "accelerator": "no",
        },
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in LIBRARIES},
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "scale": arguments.scale,
        "results": {},
    }
    path = arguments.out / f"{arguments.name}.json"
    if arguments.keep:
        before = json.loads(path.read_text())
        # The file may lack libraries that were added to LIBRARIES later.
        before["versions"] = {**report["versions"], **before["versions"]}
        if {**before, "results": {}, "date": "", "load": ""} != {**report, "date": "", "load": ""}:
            parser.error(f"--keep needs results of this machine, scale and library versions; got others in {path}.")
        report["results"] = before["results"]
    for name in arguments.only:
        print(f"== {name}", flush=True)
        rows = report["results"][name] = []
        for result in CASES[name](arguments.scale):
            rows.append(result.as_dict())
            print(
                result.title,
                *(f"   {t.name}: {t.median_ms:.2f} ms, x{t.ratio:.2f}" for t in result.timings),
                sep="\n",
                flush=True,
            )
    arguments.out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")
    (arguments.out / f"{arguments.name}.md").write_text(markdown(report))


if __name__ == "__main__":
    main()
