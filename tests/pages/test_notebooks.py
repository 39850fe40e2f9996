"""Recorded outputs of every notebook belong to its code, are readable, and equal those of a new run."""

from __future__ import annotations

import ast
import json
import re
import socket

import pytest
from printed import documented

from notebooks.__main__ import DIGEST, differences, digest, executed, paths, shown

LARGEST = 300_000  # bytes
# An absolute path. In HTML a slash follows "<"; in dates, links and ratios it follows another character.
ABSOLUTE = re.compile(r"(?<![\w<./:])/\w[\w.-]*/|\b[A-Z]:\\")

of_each = pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@of_each
def test_outputs_are_of_this_code(path):
    notebook = load(path)
    assert notebook["metadata"].get(DIGEST) == digest(notebook), "the code has changed: run python -m notebooks"
    assert [cell["execution_count"] for cell in code_cells(notebook)] == [*range(1, len(code_cells(notebook)) + 1)]


@of_each
def test_outputs_are_fit_to_be_read(path):
    notebook = load(path)
    outputs = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert not [output["text"] for output in outputs if output.get("name") == "stderr"]
    assert path.stat().st_size <= LARGEST
    for cell, kind, text in shown(notebook):
        assert text, (cell, kind)  # the text of a picture is its titles
        assert not ABSOLUTE.search(text), (cell, ABSOLUTE.search(text))
        assert socket.gethostname() not in re.split(r"[^\w.-]+", text), cell
        assert " at 0x" not in text, cell


@of_each
def test_uses_public_names_only(path):
    names = {name.replace(".torch.losses.", ".torch.") for name in documented()}
    for cell in code_cells(load(path)):
        for node in ast.walk(ast.parse("".join(cell["source"]))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ndcg_ml":
                assert {f"{node.module}.{each.name}" for each in node.names} <= names, cell["id"]
            elif isinstance(node, ast.Import):
                assert not [each.name for each in node.names if each.name.startswith("ndcg_ml")], cell["id"]
            elif isinstance(node, ast.Attribute):
                assert not re.match("_(?!_)", node.attr), (cell["id"], node.attr)


@of_each
def test_needs_no_files(path):
    text = "".join("".join(cell["source"]) for cell in code_cells(load(path)))
    assert not re.search(r"NDCG_ML_DATA|shared|\bopen\(|Path\(|read_csv|https?://", text)


def test_links_lead_somewhere():
    for path in paths():
        for cell in load(path)["cells"]:
            if cell["cell_type"] == "markdown":
                for link in re.findall(r"\]\(([^)#:]+)\)", "".join(cell["source"])):
                    assert (path.parent / link).exists(), (path.name, link)


def test_runs_differ_in_words_and_in_numbers_that_are_not_close():
    def notebook(text, kind="stdout"):
        output = {"output_type": "stream", "name": kind, "text": [text]}
        return {"cells": [{"id": "a", "outputs": [output]}]}

    before = notebook("PyTorch  0.9203 of 1, 7 rounds")
    assert not differences(before, notebook("PyTorch 0.9204 of 1, 7 rounds"))
    for other in ("PyTorch 0.9503 of 1, 7 rounds", "LightGBM 0.9203 of 1, 7 rounds", "PyTorch 0.9203 of 1"):
        assert differences(before, notebook(other))
    assert differences(before, notebook("PyTorch  0.9203 of 1, 7 rounds", "stderr"))
    assert differences(before, {"cells": [{"id": "a", "outputs": []}]})


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # nbclient warns; the kernel is another process
@of_each
def test_a_run_shows_the_same(path):
    pytest.importorskip("nbclient", reason="notebooks run with the extra [dev]")
    assert differences(load(path), executed(path)) == []
