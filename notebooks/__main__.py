"""Run the notebooks and record their outputs: ``python -m notebooks``, or only some: ``python -m notebooks 02 04``.

A recorded notebook has a digest of its code, so a test can check without a run that its outputs belong to this code.
``python -m notebooks --check`` runs the notebooks and compares, and writes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import tempfile
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
DIGEST = "outputs_of_code"

# Runs before the first cell. The titles of the axes become the alternative text of a picture, so a plot without a title
# is an error. 256 colours make a picture less than half as large.
_BEFORE = """
%matplotlib inline
def _picture(figure):
    import base64, io
    from IPython.core.pylabtools import print_figure
    from PIL import Image
    titles = [ax.get_title() or ax.get_title("left") for ax in figure.axes]
    if not titles or not all(titles):
        raise ValueError(f"every plot needs a title; got {titles}")
    large, small = io.BytesIO(print_figure(figure, fmt="png", dpi=90)), io.BytesIO()
    Image.open(large).convert("RGB").quantize(256).save(small, "png", optimize=True)
    png = base64.b64encode(small.getvalue()).decode()
    return png, {"alt": "; ".join(" ".join(title.split()) for title in titles)}
import matplotlib.pyplot  # the backend sets its own way to show a figure, once
get_ipython().display_formatter.formatters["image/png"].for_type(matplotlib.pyplot.Figure, _picture)
"""


def paths() -> list[Path]:
    """List all notebooks, in order."""
    return sorted(FOLDER.glob("*.ipynb"))


def digest(notebook: dict[str, Any]) -> str:
    """Compute a digest of the code cells only, so that text may change without a run."""
    code = [
        "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def executed(path: Path) -> dict[str, Any]:
    """Run the notebook from the first cell to the last in an empty folder, and return it with its outputs.

    Raises
    ------
    RuntimeError
        A cell warns, or a plot has no title.
    nbclient.exceptions.CellExecutionError
        A cell raised.
    """
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(_BEFORE))
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
            extra_arguments=["--log-level=ERROR"],
        ).execute()
    del notebook.cells[0]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, start=1):
        cell.execution_count = count
        for output in cell.outputs:
            if output.get("name") == "stderr":
                raise RuntimeError(
                    f"{path.name}, cell {cell.id} warns:\n{output.text}"
                )
            if (
                output.output_type == "error"
            ):  # from drawing a picture; an error of the cell itself ends the run
                raise RuntimeError(
                    f"{path.name}, cell {cell.id} shows no picture: {output.evalue}"
                )
            if "execution_count" in output:
                output.execution_count = count
            if (
                len(output.get("data", {})) > 1
            ):  # a table or a picture needs no repr
                output.data.pop("text/plain", None)
    notebook.metadata = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
        DIGEST: digest(notebook),
    }
    nbformat.validate(notebook)
    return dict(json.loads(nbformat.writes(notebook)))


def shown(notebook: dict[str, Any]) -> list[tuple[str, str, str]]:
    """List all outputs as (id of the cell, kind, text). The text of a picture is its titles."""
    found = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if output["output_type"] == "stream":
                found.append(
                    (cell["id"], output["name"], "".join(output["text"]))
                )
            for kind, text in output.get("data", {}).items():
                picture = kind.startswith("image/")
                said = (
                    output["metadata"].get(kind, {}).get("alt", "")
                    if picture
                    else "".join(text)
                )
                found.append((cell["id"], kind, said))
    return found


_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# A model trained on another processor differs in the third digit. The notebooks assert exact values.
_CLOSE = 0.02


def differences(recorded: dict[str, Any], run: dict[str, Any]) -> list[str]:
    """Describe outputs of two runs that differ in words, or in numbers that are not close."""
    one, two = shown(recorded), shown(run)
    if [each[:2] for each in one] != [each[:2] for each in two]:
        return [
            f"the cells show {[each[:2] for each in one]}, then {[each[:2] for each in two]}"
        ]
    return [
        f"{cell}, {kind}: {before!r}, then {after!r}"
        for (cell, kind, before), (*_, after) in zip(one, two, strict=True)
        if not _alike(before, after)
    ]


def _alike(one: str, two: str) -> bool:
    words = [re.sub(r"\s+", " ", _NUMBER.sub("#", text)) for text in (one, two)]
    numbers = [
        [float(number) for number in _NUMBER.findall(text)]
        for text in (one, two)
    ]
    return words[0] == words[1] and all(
        math.isclose(a, b, rel_tol=_CLOSE, abs_tol=_CLOSE)
        for a, b in zip(*numbers, strict=True)
    )


def main() -> None:
    """Run and record, or compare."""
    parser = argparse.ArgumentParser(
        prog="python -m notebooks",
        description="Run notebooks and record their outputs.",
    )
    parser.add_argument(
        "numbers",
        nargs="*",
        metavar="NUMBER",
        help="which ones, such as 02; all if none is given",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare with what is recorded, and write nothing",
    )
    asked = parser.parse_args()
    unknown = [
        number
        for number in asked.numbers
        if not any(path.name.startswith(number) for path in paths())
    ]
    if unknown:
        parser.error(
            f"there is no notebook {unknown[0]}; there are {', '.join(path.name[:2] for path in paths())}"
        )
    changed = False
    for path in paths():
        if asked.numbers and not path.name.startswith(tuple(asked.numbers)):
            continue
        began = time.perf_counter()
        run = executed(path)
        found = differences(json.loads(path.read_text(encoding="utf-8")), run)
        changed |= bool(found)
        if not asked.check:
            path.write_text(
                json.dumps(run, indent=1, ensure_ascii=False) + "\n",
                encoding="utf-8",
            )
        size = f"{path.stat().st_size / 1000:.0f} kB"
        print(
            f"{path.name}: {time.perf_counter() - began:.0f} s, {size}, {len(found)} differences",
            *found,
            sep="\n  ",
        )
    if asked.check and changed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
