"""Run tests/pytorch with several versions of PyTorch: ``python -m reliability.torch_versions 2.4.1 2.8.0 2.15.0``.

Each version is installed in a temporary environment, which is deleted afterwards, because each needs 2.5 to 4 GB. The
tests run on the CPU. The record keeps the results of other versions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from reliability.records import RESULTS, save

ROOT = Path(__file__).parents[1]
# Other packages that the tests import, in their newest versions.
BESIDE = ("torchmetrics", "lightning", "numpy", "scipy", "hypothesis", "pytest")
SHOWN = ("torch", "torchmetrics", "numpy", "lightning")


def lane(version: str, folder: Path) -> dict[str, str | int]:
    """Run the tests in a temporary environment."""
    place = folder / f"torch-{version}"
    python = place / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q", "--no-cache-dir", "--no-compile"]
    # Without bytecode, every process that the tests start would compile torch.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([*install, f"torch=={version}", *BESIDE], check=True)
        installed = json.loads(subprocess.check_output([str(python), "-m", "pip", "list", "--format", "json"]))
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/pytorch"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(done.stdout[-4000:], flush=True)
    versions = {each["name"]: each["version"] for each in installed}
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        **{name: versions[name] for name in SHOWN},
        **counts(done.stdout),
    }


def counts(output: str) -> dict[str, int]:
    """Return the numbers of passed, failed and skipped tests in the last line of pytest; errors count as failed."""
    last = output.strip().splitlines()[-1]
    found = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}
    if not found:
        raise SystemExit(f"the tests did not run: {last}")
    failed = found.get("failed", 0) + found.get("error", 0)
    return {"passed": found.get("passed", 0), "failed": failed, "skipped": found.get("skipped", 0)}


def number(lane: dict[str, str | int]) -> tuple[int, ...]:
    """Return the version of PyTorch, without the suffix of the build."""
    return tuple(map(int, re.findall(r"\d+", str(lane["torch"]))[:3]))


def main() -> None:
    """Run the tests with each version, and write the record."""
    parser = argparse.ArgumentParser(prog="python -m reliability.torch_versions", description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="+", help="such as 2.4.1")
    parser.add_argument("--folder", type=Path, help="folder of the environments; needs 8 GB. Default: temporary")
    arguments = parser.parse_args()
    path = RESULTS / "versions_of_torch.json"
    for version in arguments.versions:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            found = lane(version, Path(folder))
        before = json.loads(path.read_text())["lanes"] if path.exists() else []
        lanes = sorted([*(one for one in before if number(one) != number(found)), found], key=number)
        ran = " ".join(".".join(map(str, number(one))) for one in lanes)
        save(
            "versions_of_torch",
            title="Versions of PyTorch",
            tried="tests/pytorch runs on the CPU with several versions of PyTorch, each in its own environment. Tests "
            "of features that a version lacks are skipped.",
            command=f"python -m reliability.torch_versions {ran}",
            count=sum(one["passed"] + one["failed"] for one in lanes),
            unit="tests",
            failed=sum(one["failed"] for one in lanes),
            lanes=lanes,
        )


if __name__ == "__main__":
    main()
