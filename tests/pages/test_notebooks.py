"""Every notebook: its outputs are of its code and fit to be read, and a run shows the same."""

from __future__ import annotations

import ast
import copy
import json
import re
import socket
from pathlib import Path

import pytest

from notebooks.__main__ import DIGEST, differences, digest, executed, paths, shown

ROOT = Path(__file__).parents[2]
LARGEST = 300_000  # bytes
# A path from the root of a disk. In HTML a slash follows "<", and in dates, links and ratios another character.
ABSOLUTE = re.compile(r"(?<![\w<./:])/\w[\w.-]*/|\b[A-Z]:\\")

of_each = pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def source(cell):
    """Its Python, as a tree."""
    return ast.parse("".join(cell["source"]))


def statements(tree):
    """What runs when the cell runs: not what is inside functions."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            yield node
            yield from statements(node)


def calls(cell):
    """The names of the functions and methods that a cell calls."""
    functions = [node.func for node in statements(source(cell)) if isinstance(node, ast.Call)]
    return {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in functions}


def draws(cell):
    return bool(calls(cell) & {"plot", "subplots"})


def shows(cell):
    """Whether it draws, prints or ends with a value; a semicolon hides a value."""
    value = isinstance(source(cell).body[-1], ast.Expr) and not "".join(cell["source"]).endswith(";")
    return draws(cell) or value or "print" in calls(cell)


def test_there_are_notebooks():
    assert paths()


@of_each
def test_is_well_formed(path):
    notebook = load(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    first = "".join(notebook["cells"][0]["source"])
    assert re.findall(r"^# .*", first, re.MULTILINE) == [first.splitlines()[0]]  # one title


@of_each
def test_outputs_are_of_this_code(path):
    notebook = load(path)
    assert notebook["metadata"].get(DIGEST) == digest(notebook), "the code has changed: run python -m notebooks"
    assert [cell["execution_count"] for cell in code_cells(notebook)] == [*range(1, len(code_cells(notebook)) + 1)]


def test_a_digest_is_of_code_alone():
    notebook = load(paths()[0])
    other = copy.deepcopy(notebook)
    other["cells"][0]["source"] = ["other words"]
    assert digest(other) == digest(notebook)
    code_cells(other)[0]["source"][0] += " "
    assert digest(other) != digest(notebook)


@of_each
def test_every_cell_that_shows_something_has_its_output(path):
    for cell in code_cells(load(path)):
        kinds = {kind for output in cell["outputs"] for kind in output.get("data", ())}
        assert bool(cell["outputs"]) == shows(cell), cell["id"]
        assert ("image/png" in kinds) == draws(cell), cell["id"]


@of_each
def test_outputs_are_fit_to_be_read(path):
    notebook = load(path)
    outputs = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert not [output["text"] for output in outputs if output.get("name") == "stderr"]
    assert path.stat().st_size <= LARGEST
    for cell, kind, text in shown(notebook):
        assert text, (cell, kind)  # a picture's text is its titles
        assert not ABSOLUTE.search(text), (cell, ABSOLUTE.search(text))
        assert socket.gethostname() not in re.split(r"[^\w.-]+", text), cell
        assert " at 0x" not in text, cell


@pytest.mark.parametrize("path", ["in /home/ann/x.py", '"/tmp/"', "/usr/lib", "C:\\Users"])
def test_a_path_is_found(path):
    assert ABSOLUTE.search(path)


@pytest.mark.parametrize("text", ["<b>a</b>", "26/53/70", "https://host/a/b", "a / b", "../docs/losses.md"])
def test_other_slashes_are_no_paths(text):
    assert not ABSOLUTE.search(text)


def documented():
    return {
        name
        for page in (ROOT / "docs" / "api").glob("*.md")
        for name in re.findall(r"^::: (ndcg_ml\.\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }


@of_each
def test_uses_public_names_only(path):
    names = {name.replace(".torch.losses.", ".torch.") for name in documented()}
    for cell in code_cells(load(path)):
        for node in ast.walk(source(cell)):
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


def test_a_picture_is_compared_by_its_titles():
    def notebook(title):
        output = {
            "output_type": "display_data",
            "data": {"image/png": "AAAA"},
            "metadata": {"image/png": {"alt": title}},
        }
        return {"cells": [{"id": "a", "outputs": [output]}]}

    assert not differences(notebook("losses, T = 0.3"), notebook("losses, T = 0.3"))
    assert differences(notebook("losses"), notebook("gains"))


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # the notebook machinery warns; the kernel is a process of its own
@of_each
def test_a_run_shows_the_same(path):
    pytest.importorskip("nbclient", reason="notebooks run with the extra [dev]")
    assert differences(load(path), executed(path)) == []


@pytest.mark.long
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import matplotlib.pyplot as plt\nplt.plot([1, 2]);", "every plot needs a title"),
        ("import warnings\nwarnings.warn('careful')", "careful"),
    ],
)
def test_a_run_refuses_plots_without_a_title_and_warnings(tmp_path, code, why):
    pytest.importorskip("nbclient", reason="notebooks run with the extra [dev]")
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": None, "outputs": [], "source": code}
    path = tmp_path / "bad.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    with pytest.raises(RuntimeError, match=why):
        executed(path)
