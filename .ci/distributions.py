"""What a release would carry: ``python .ci/distributions.py FOLDER`` reads the sdist and the wheel in FOLDER.

The wheel is the package, its type marker, its metadata and the licence, and nothing else; the sdist has all that its
own tests read. Both have every file of the package that the tree has, and their names agree on the version.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Read by the tests, or named by the README that the index shows.
BESIDE = ("tests", "docs", "notebooks", "benchmarks", "reliability")
FILES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CITATION.cff",
    "LICENSE",
    "pyproject.toml",
    "constraints.txt",
    "constraints-oldest.txt",
)


def only(found: list[Path], what: str) -> Path:
    """The one there is."""
    if len(found) != 1:
        raise SystemExit(f"expected one {what}, found {[path.name for path in found]}: build into an empty folder")
    return found[0]


def tree(*folders: str) -> set[str]:
    """The files that git knows or would take, without those deleted from the tree."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for name in listed if (ROOT / name).exists()}


def same(found: set[str], wanted: set[str], where: str) -> None:
    """No file too few, and none too many."""
    if found != wanted:
        raise SystemExit(f"{where} lacks {sorted(wanted - found)} and should not have {sorted(found - wanted)}")


def main(folder: Path) -> None:
    """Read both and stop at the first thing that is wrong."""
    wheel = only(list(folder.glob("*.whl")), "wheel")
    sdist = only(list(folder.glob("*.tar.gz")), "sdist")
    package = tree("ndcg_ml")
    version = re.search(r'^__version__ = "(.+)"$', (ROOT / "ndcg_ml" / "__init__.py").read_text(), re.MULTILINE)[1]

    info = f"ndcg_ml-{version}.dist-info"
    about = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    with zipfile.ZipFile(wheel) as archive:
        same(set(archive.namelist()), package | about, wheel.name)
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        for name in package:
            if archive.read(name) != (ROOT / name).read_bytes():
                raise SystemExit(f"{wheel.name}: {name} is not the tree's")
    if "ndcg_ml/py.typed" not in package:
        raise SystemExit("ndcg_ml/py.typed is missing: without it nobody's type checker reads the package's types")
    needs = [need for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need]
    if [re.split(r"[^\w.-]", need)[0] for need in needs] != ["numpy"]:
        raise SystemExit(f"{wheel.name}: the core needs NumPy only, not {needs}")

    top = f"ndcg_ml-{version}/"
    with tarfile.open(sdist) as archive:
        names = {name.removeprefix(top) for name in archive.getnames() if name.startswith(top)}
    wanted = tree(*BESIDE) | package | set(FILES)
    lacks = sorted(wanted - names)
    if lacks:
        raise SystemExit(f"{sdist.name} lacks {lacks}")
    print(f"{wheel.name}: {len(package)} files of the package and the licence; {sdist.name}: {len(names)} files")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
