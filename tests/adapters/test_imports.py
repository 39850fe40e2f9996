"""Importing the package imports no framework; the error for a missing framework names the extra to install."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ndcg_ml

HEAVY = (
    *("torch", "torchmetrics", "sklearn", "scipy", "lightgbm", "xgboost", "catboost"),
    *("dask", "distributed", "pyarrow", "pandas", "matplotlib", "click", "rich"),
)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)


def loaded_by(statement: str) -> set[str]:
    """Return the heavy packages that a statement imports in a new interpreter."""
    done = python(f"import sys; {statement}; print(*[name for name in {HEAVY} if name in sys.modules])")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import ndcg_ml",
        "from ndcg_ml import *",
        "import ndcg_ml; ndcg_ml.ndcg_score([[1, 0]], [[1, 0]]); dir(ndcg_ml)",
        "import ndcg_ml.lightgbm",
        "import ndcg_ml.xgboost",
        "import ndcg_ml.catboost",
        "import ndcg_ml.cli",
    ],
)
def test_no_heavy_package_is_imported(statement):
    assert loaded_by(statement) == set()


def test_eval_of_files_imports_no_slow_module_that_it_does_not_need(tmp_path):
    pytest.importorskip("click")
    (tmp_path / "qrels").write_text("q 0 d 1\n")
    (tmp_path / "run").write_text("q Q0 d 1 1 x\n")
    code = f"""
import numpy, os, sys
os.chdir({str(tmp_path)!r})
slow = {{"numpy.ma", "tempfile", "pandas", "numba", "statistics", "ndcg_ml._statistics.means", "ndcg_ml._show.report"}}
slow -= set(sys.modules)  # NumPy itself may import numpy.ma
from ndcg_ml.cli import main
sys.argv = ["ndcg-ml", "eval", "--qrels", "qrels", "--run", "run"]
try:
    main()
finally:
    print("slow:", *sorted(slow & set(sys.modules)))
"""
    assert python(code).stdout.splitlines()[-1] == "slow:"


def test_adapters_are_listed_and_imported_on_first_use():
    pytest.importorskip("sklearn")
    pytest.importorskip("torch")
    assert {"torch", "sklearn", "lightgbm", "xgboost", "catboost", "ndcg_score", "Flavor"} <= set(dir(ndcg_ml))
    assert "sklearn" in loaded_by("import ndcg_ml; ndcg_ml.sklearn.ndcg_scorer")
    for module in (ndcg_ml, ndcg_ml.sklearn):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'tensorflow'"):
            _ = module.tensorflow


HELP = """
import inspect, pydoc, sys
for name in ("torch", "sklearn"):
    sys.modules[name] = None
import ndcg_ml
names = {name for name, _ in inspect.getmembers(ndcg_ml) if not name.startswith("__")}
print(sorted(names - set(ndcg_ml.__all__)))
print("ndcg_score" in pydoc.render_doc(ndcg_ml))
"""
LATER = """
import sys, ndcg_ml
later = ("explain", "identification", "parts", "runs", "readers")
print([name for name in later if f"ndcg_ml.{name}" in sys.modules])
print(set(ndcg_ml.__all__) <= set(dir(ndcg_ml)))
same = ndcg_ml.identify is ndcg_ml.identification.identify, ndcg_ml.align is ndcg_ml.runs.align
print(ndcg_ml.identify.__name__, *same)
print([name for name in later if f"ndcg_ml.{name}" in sys.modules])
"""
MODULES = ["catboost", "dask", "explain", "lightgbm", "parts", "ray", "readers", "runs", "spark", "xgboost"]


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (HELP, [str(MODULES), "True"]),
        (LATER, ["[]", "True", "identify True True", "['identification', 'runs']"]),
        ("import sys, ndcg_ml.cli; print('numpy' in sys.modules)", ["False"]),
    ],
    ids=["help without frameworks", "modules on first use", "the command line without NumPy"],
)
def test_what_a_new_interpreter_prints(code, printed):
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == printed


@pytest.mark.parametrize(
    "name",
    [
        "NDCG",
        "ApproxNDCGLoss",
        "SoftmaxLoss",
        "ndcg",
        "ndcg_scorer",
        "QueryRanker",
        "NDCGEval",
        "catboost_params",
        "supports",
    ],
)
def test_names_of_adapters_are_found_in_their_modules(name):
    pytest.importorskip("sklearn")
    pytest.importorskip("torchmetrics")
    with pytest.raises(ImportError, match=f"{name} is not in ndcg_ml itself; import it from ndcg_ml") as error:
        exec(f"from ndcg_ml import {name}")
    for home in str(error.value).removesuffix(".").partition("import it from ")[2].split(" or "):
        exec(f"from {home} import {name}")


@pytest.mark.parametrize(
    ("home", "name"), [("ndcg_ml", "ndcg_at_k"), ("ndcg_ml", "NDCGLoss"), ("ndcg_ml.torch", "NDCGLoss")]
)
def test_names_of_other_libraries_are_answered_with_what_there_is(home, name):
    pytest.importorskip("torchmetrics")
    with pytest.raises(ImportError, match=f"there is no {name}; ") as error:
        exec(f"from {home} import {name}")
    for there in re.findall(r"ndcg_score|\w+Loss\b", str(error.value).partition(";")[2]):
        exec(f"from {'ndcg_ml' if there == 'ndcg_score' else 'ndcg_ml.torch'} import {there}")


def test_only_the_metric_needs_torchmetrics_and_imports_it_on_first_use():
    pytest.importorskip("torch")
    code = """
import sys
import tomllib
from pathlib import Path
import ndcg_ml.torch
assert not {"torchmetrics", "torch._dynamo"} & set(sys.modules)
sys.modules["torchmetrics"] = None
import torch, ndcg_ml.torch as module
from ndcg_ml.torch import ndcg, ApproxNDCGLoss
scores, labels = torch.tensor([[0.3, 0.1]]), torch.tensor([[1, 0]])
print(ndcg(scores, labels).item(), ApproxNDCGLoss()(scores, labels).item() < 1, {"NDCG", "ndcg"} <= set(dir(module)))
for name in ("NDCG", "ndcg_collection", "NDGC"):
    try:
        getattr(module, name)
    except (AttributeError, ImportError) as error:
        print(type(error).__name__, error)
from ndcg_ml.torch.metric import NDCG
"""
    done = python(code)
    why = (
        'NDCG needs torchmetrics, and the losses do not. Install it with: pip install ".[torch]" in a clone of ndcg_ml'
    )
    unknown = "AttributeError module 'ndcg_ml.torch' has no attribute 'NDGC'"
    assert done.stdout.splitlines() == ["1.0 True True", *[f"ImportError {why}"] * 2, unknown], done.stderr
    assert f"ImportError: {why}" in done.stderr


WITHOUT = {
    "torch": ("import ndcg_ml; ndcg_ml.torch",
        'ImportError: ndcg_ml.torch needs PyTorch. Install it with: pip install ".[torch]" in a clone of ndcg_ml'),
    "sklearn": ("import ndcg_ml; ndcg_ml.sklearn",
        ('ImportError: ndcg_ml.sklearn needs scikit-learn. Install it with: pip install ".[sklearn]" in a clone of '
            'ndcg_ml')),
    "pandas": ("import ndcg_ml; ndcg_ml.evaluate([[1, 0]], [[1, 0]]).to_frame()",
        "ImportError: Evaluation.to_frame needs pandas. Install it with: pip install pandas"),
    "dask": ("import ndcg_ml.dask; ndcg_ml.dask.evaluate(0, label='y', score='s', qid='q')",
        "ImportError: ndcg_ml.dask needs Dask's data frames. Install: pip install 'dask[dataframe]'"),
    "click": ("from ndcg_ml.cli import main; main()", 'pip install ".[cli]" in a clone of ndcg_ml'),
}  # fmt: skip


@pytest.mark.parametrize("missing", WITHOUT)
def test_a_missing_package_is_named_with_what_to_install(missing):
    code, message = WITHOUT[missing]
    done = python(f"import sys; sys.modules[{missing!r}] = None; {code}")
    assert done.returncode == 1
    assert message in done.stdout + done.stderr
    assert ("The above exception was the direct cause" in done.stderr) == (missing != "click")
    assert ("Traceback" in done.stderr) == (missing != "click")


def test_the_drawing_of_the_layers_is_the_contract():
    root = Path(__file__).parents[2]
    drawn = (root / "docs" / "design.md").read_text(encoding="utf-8").partition("```\n")[2].partition("```")[0]
    layers = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][
        0
    ]
    contract = [sorted(re.findall(r"\w+", layer)) for layer in layers["layers"]]
    assert [sorted(line[15:68].replace("/", "").split()) for line in drawn.splitlines()] == contract
