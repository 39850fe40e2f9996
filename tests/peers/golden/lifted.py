"""One function out of a package whose import would bring a whole framework.

The packages lie unopened in the folder that the environment variable ``WHEELS`` names, from ``pip download --no-deps``;
sources that are in no package lie in the folder ``SOURCES``, as clones. Nothing of them is kept here.
"""

from __future__ import annotations

import ast
import collections
import enum
import itertools
import logging
import math
import os
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


def wheel(distribution: str) -> Path:
    name = distribution.replace("-", "_").lower()
    return next(p for p in Path(os.environ["WHEELS"]).glob("*.whl") if p.name.lower().startswith(f"{name}-"))


def clone(repository: str) -> Path:
    return Path(os.environ["SOURCES"]) / repository


def version(distribution: str) -> str:
    """The version of the wheel, or the commit of the clone."""
    if not clone(distribution).is_dir():
        return wheel(distribution).name.split("-")[1]
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    said = subprocess.run(command, cwd=clone(distribution), capture_output=True, text=True, check=True)
    return f"git {said.stdout.strip()}"


def _text(distribution: str, path: str) -> str:
    with zipfile.ZipFile(wheel(distribution)) as archive:
        return archive.read(path).decode()


@cache
def module(distribution: str, path: str) -> ModuleType:
    """A whole file that imports nothing of its package."""
    made = ModuleType(path)
    sys.modules[path] = made  # dataclasses look it up
    exec(compile(_text(distribution, path), path, "exec"), made.__dict__)
    return made


def taken(text: str, names: tuple[str, ...], given: dict[str, Any]) -> SimpleNamespace:
    """These functions and classes of a source, without their decorators, among ``given`` names."""
    nodes = [node for node in ast.parse(text).body if getattr(node, "name", None) in names]
    assert {node.name for node in nodes} == set(names)  # type: ignore[attr-defined]
    for node in nodes:
        node.decorator_list = []  # type: ignore[attr-defined]
    future = ast.parse("from __future__ import annotations").body
    code = compile(ast.fix_missing_locations(ast.Module([*future, *nodes], [])), "lifted", "exec")
    exec(code, given)
    return SimpleNamespace(**{name: given[name] for name in names})


@cache
def functions(distribution: str, path: str, *names: str) -> SimpleNamespace:
    given: dict[str, Any] = {"math": math, "np": np, "logger": logging.getLogger(path), "logging": logging}
    given |= {"itertools": itertools, "defaultdict": collections.defaultdict, "SUM_NDCG": "sum_ndcg"}
    given |= {"NUM_SESSIONS": "num_sessions"}
    for optional in ("torch", "pytrec_eval"):
        if find_spec(optional):
            given[optional] = import_module(optional)
    return taken(_text(distribution, path), names, given)


@cache
def _tfma() -> SimpleNamespace:
    given: dict[str, Any] = {
        "np": np,
        "beam": SimpleNamespace(CombineFn=object),
        # the gains, the predictions and the weight of an element, which it reads from its feature dictionaries
        "util": SimpleNamespace(get_by_keys=lambda features, keys: np.asarray(features, dtype=float)),
        "metric_util": SimpleNamespace(
            to_label_prediction_example_weight=lambda element, **_: iter(
                [(None, np.asarray(element.predictions, dtype=float), np.asarray(element.weight))]
            )
        ),
    }
    path = "tensorflow_model_analysis/metrics/ndcg.py"
    return taken(_text("tensorflow-model-analysis", path), ("_NDCGCombiner", "_NDCGAccumulator"), given)


def tfma_combiner(k: int) -> tuple[Any, Any]:
    class Key(tuple[int]):
        @property
        def sub_key(self) -> SimpleNamespace:
            return SimpleNamespace(top_k=self[0])

    key = Key((k,))
    return key, _tfma()._NDCGCombiner([key], None, "", "", True, "query", "gain")


@cache
def _transformers4rec() -> Any:
    import torch
    import torchmetrics
    from torchmetrics.utilities.data import dim_zero_cat

    folder = clone("Transformers4Rec") / "transformers4rec" / "torch"
    named = ("check_inputs", "extract_topk", "create_output_placeholder", "tranform_label_to_onehot")
    utils = taken((folder / "utils" / "torch_utils.py").read_text(), named, {"torch": torch})
    given = {"torch": torch, "tm": torchmetrics, "torch_utils": utils, "dim_zero_cat": dim_zero_cat}
    given["abstractmethod"] = lambda function: function
    return taken((folder / "ranking_metric.py").read_text(), ("RankingMetric", "DCGAt", "NDCGAt"), given).NDCGAt


def transformers4rec_ndcg(top_ks: list[int]) -> Any:
    return _transformers4rec()(top_ks=top_ks)


def elliot_ndcg(recommended: Any, judged: Any, k: int, threshold: float) -> Any:
    sys.path.insert(0, str(clone("elliot")))
    # the package imports TensorFlow
    _without_package("elliot", "elliot", "elliot.evaluation", "elliot.evaluation.metrics")
    from elliot.evaluation.metrics.accuracy.ndcg.ndcg import nDCG
    from elliot.evaluation.relevance.relevance import Relevance

    return nDCG(recommended, None, None, SimpleNamespace(cutoff=k, relevance=Relevance(judged, threshold)))


def _without_package(repository: str, *names: str) -> None:
    """Let files of a clone be imported without the packages around them, which import more."""
    for name in names:
        package = sys.modules.setdefault(name, ModuleType(name))
        package.__path__ = [str(clone(repository).joinpath(*name.split(".")))]


def pytorchltr_ndcg(*arguments: Any) -> Any:
    if str(clone("pytorchltr")) not in sys.path:
        sys.path.insert(0, str(clone("pytorchltr")))
    from pytorchltr.evaluation.dcg import ndcg

    return ndcg(*arguments)


def rankeval_ndcg(**options: Any) -> Any:
    _without_package("rankeval", "rankeval", "rankeval.metrics")
    from rankeval.metrics.ndcg import NDCG

    return NDCG(**options)


@cache
def _ptranking() -> type[Any]:
    import torch

    folder = clone("ptranking") / "ptranking"
    kinds = {"Enum": enum.Enum, "auto": enum.auto}
    label_type = taken((folder / "data" / "data_utils.py").read_text(), ("LABEL_TYPE",), kinds).LABEL_TYPE
    named = ("torch_dcg_at_ks", "torch_ndcg_at_ks")
    given = {"torch": torch, "np": np, "LABEL_TYPE": label_type}
    metric = taken((folder / "metric" / "adhoc" / "adhoc_metric.py").read_text(), named, given)
    given = {"torch": torch, "LABEL_TYPE": label_type, "torch_ndcg_at_ks": metric.torch_ndcg_at_ks}
    evaluator = taken((folder / "base" / "ranker.py").read_text(), ("Evaluator",), given).Evaluator

    class ScoresAsTheyAre(evaluator):  # type: ignore[misc, valid-type]
        gpu = False

        def eval_mode(self) -> None: ...

        def predict(self, batch: Any) -> Any:
            return batch

    return ScoresAsTheyAre


def ptranking_evaluator() -> Any:
    return _ptranking()()


_MAIN = """
import java.util.*;
import org.opensearch.searchrelevance.metrics.calculator.Evaluation;
public class Main {
    public static void main(String[] a) {
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) {
            String[] line = in.nextLine().split("\\t", -1);
            List<String> hits = line[1].isEmpty() ? List.of() : List.of(line[1].split(" "));
            Map<String, String> judged = new LinkedHashMap<>();
            for (String pair : line[2].split(" "))
                if (!pair.isEmpty()) judged.put(pair.split("=")[0], pair.split("=")[1]);
            System.out.println(Evaluation.calculateNDCGAtK(hits, judged, Integer.parseInt(line[0])));
            System.out.flush();
        }
    }
}
"""


@cache
def _opensearch() -> subprocess.Popen[str]:
    work = Path(tempfile.mkdtemp())
    (work / "Main.java").write_text(_MAIN)
    source = (
        clone("search-relevance") / "src/main/java/org/opensearch/searchrelevance/metrics/calculator/Evaluation.java"
    )
    subprocess.run(["javac", "-d", str(work), str(source), str(work / "Main.java")], check=True)
    pipe = subprocess.PIPE
    return subprocess.Popen(["java", "-cp", str(work), "Main"], stdin=pipe, stdout=pipe, text=True)


def opensearch_ndcg(hits: list[str], judged: dict[str, float], k: int) -> float:
    process = _opensearch()
    assert process.stdin is not None
    assert process.stdout is not None
    pairs = " ".join(f"{doc}={grade}" for doc, grade in judged.items())
    process.stdin.write(f"{k}\t{' '.join(hits)}\t{pairs}\n")
    process.stdin.flush()
    return float(process.stdout.readline())
