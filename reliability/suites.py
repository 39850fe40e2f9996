"""Run other projects' tests on the objects of this package: ``python -m reliability.suites NAME [CHECKOUT]``.

NAME is one of the suites below. scikit-learn's tests are in its wheel. Those of torchmetrics need a CHECKOUT of its
repository at the tag of the installed version, and ``pip install cachier``. A run replaces the row of its suite in
reliability/results/suites.json, and exits with 1 if a test fails for a reason that is not listed here.

The tests run in another process, in which pytest loads this module as a plugin. It puts thin shims, which translate
arguments, in the place of the functions and classes that the tests import.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ndcg_ml.sklearn import QueryKFold, QueryRanker
from reliability.records import RESULTS, save

ROOT = Path(__file__).parents[1]
# In the process of the tests, the name of the suite.
RUNNING = os.environ.get("NDCG_ML_SUITE", "")


@dataclass(frozen=True)
class Suite:
    """A suite, and the reasons of its failures by a pattern of the name and message; the first that matches counts."""

    title: str
    package: str
    tests: str = ""
    names: str = ""
    reasons: dict[str, str] = field(default_factory=dict)


WORDS = {r"Regex pattern did not match|^AssertionError: Error message": "a ValueError in other words"}
OF_TORCHMETRICS = {
    r"-skip-.*(must have a relevant document|tm_result: nan)": "no query has a relevant document, under `skip`: there "
    "is nothing to average, which raises (nan from `forward`); torchmetrics returns 0, as for the worst model",
    **WORDS,
    r"TypeError: ": "a value of the wrong type is a TypeError, as everywhere in this package, and not a ValueError",
    r"tensor of floats.*DID NOT RAISE": "scores that are bool are two tie groups",
    r"non-empty.*DID NOT RAISE": "an empty batch adds nothing, and a list without documents is an empty query",
    r"ignore_index.*DID NOT RAISE": "the shim takes any `ignore_index`; `NDCG` has none",
    r"Double did not match Float": "the values agree, but ours are float64",
}
OF_ESTIMATORS = {
    r"sample_weight must be equal": "the check draws weights by row, and a query has one weight: raised, not averaged",
    r"'sample_weight'|the sample_weight parameter": "the model takes no weights, which are not dropped silently",
    r"Unknown label type|label should be int|label_is_integer": "the check draws continuous labels, which a classifier "
    "or a ranking loss refuses",
    r"a minimum of|Cannot convert obj|at least one feature|constant or ignored|CatBoostError": "the model's own "
    "validation of features, in its own words",
}
SUITES = {
    "ranking": Suite(
        "`test_ranking`, NDCG and DCG",
        "scikit-learn",
        "sklearn.metrics.tests.test_ranking",
        "dcg",
        {**WORDS, r"single_document.*DID NOT RAISE": "a query of one document scores 1, and several of them warn"},
    ),
    "common": Suite(
        "`test_common`, NDCG and DCG",
        "scikit-learn",
        "sklearn.metrics.tests.test_common",
        "dcg",
        {
            r"test_continuous_inf_nan": "labels in one dimension need the queries of their rows: a ValueError in other "
            "words",
            r"string_vs_numbers": "text as labels is a TypeError",
            r"sample_weight_invariance": "weights of another number than queries are a ValueError in other words",
        },
    ),
    "split": Suite(
        "`test_split`, GroupKFold is QueryKFold", "scikit-learn", "sklearn.model_selection.tests.test_split"
    ),
    "estimator": Suite(
        "`check_estimator(QueryRanker(model))`, 16 models, all rows one query and queries of five rows",
        "scikit-learn",
        reasons=OF_ESTIMATORS,
    ),
    "torchmetrics": Suite(
        "`test_ndcg`, one process, mean as aggregation",
        "torchmetrics",
        "tests/unittests/retrieval/test_ndcg.py",
        reasons=OF_TORCHMETRICS,
    ),
    "processes": Suite(
        "`test_ndcg`, two processes, mean as aggregation",
        "torchmetrics",
        "tests/unittests/retrieval/test_ndcg.py",
        reasons=OF_TORCHMETRICS,
    ),
}

# -- the shims; those that replace something, in the process of the tests ----------------------------------------------


class OneQuery(QueryRanker):
    """Take all rows as one query, because the checks of estimators pass no ids."""

    rows = 1_000_000  # of a query

    def _qid(self, y: Any) -> Any:
        return np.arange(0 if y is None else len(np.asarray(y))) // self.rows

    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Any:  # noqa: D102, N803
        return super().fit(X, y, self._qid(y), sample_weight)

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Any:  # noqa: D102, N803
        return super().score(X, y, self._qid(y))


class QueriesOfFive(OneQuery):
    """Take five rows as a query."""

    rows = 5


if RUNNING in ("ranking", "common"):
    import sklearn.metrics
    import sklearn.metrics._ranking

    import ndcg_ml

    def _arguments(k: int | None, sample_weight: Any, ignore_ties: bool) -> dict[str, Any]:
        return {"k": k, "query_weight": sample_weight, "flavor": "sklearn_ignore_ties" if ignore_ties else "sklearn"}

    def ndcg_score(
        y_true: Any, y_score: Any, *, k: int | None = None, sample_weight: Any = None, ignore_ties: bool = False
    ) -> Any:
        """Take scikit-learn's arguments."""
        return ndcg_ml.ndcg_score(y_true, y_score, **_arguments(k, sample_weight, ignore_ties))

    def dcg_score(
        y_true: Any,
        y_score: Any,
        *,
        k: int | None = None,
        log_base: float = 2,
        sample_weight: Any = None,
        ignore_ties: bool = False,
    ) -> Any:
        """Take scikit-learn's arguments. The base of the logarithm is a factor."""
        return ndcg_ml.dcg_score(y_true, y_score, **_arguments(k, sample_weight, ignore_ties)) * math.log2(log_base)

    for module in (sklearn.metrics, sklearn.metrics._ranking):
        module.ndcg_score, module.dcg_score = ndcg_score, dcg_score

if RUNNING == "split":
    import sklearn.model_selection
    import sklearn.model_selection._split

    class GroupKFold(sklearn.model_selection.GroupKFold):  # type: ignore[misc]
        """Create a QueryKFold when the groups are known."""

        def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Any]:  # noqa: D102, N803
            if groups is None:
                raise ValueError("The 'groups' parameter should not be None.")
            options = {"shuffle": self.shuffle, "random_state": self.random_state}
            yield from QueryKFold(self.n_splits, qid=groups, **options).split(X, y, groups)

    for module in (sklearn.model_selection, sklearn.model_selection._split):
        module.GroupKFold = GroupKFold

if RUNNING in ("torchmetrics", "processes"):
    import torch
    import torchmetrics.functional.retrieval.ndcg
    import torchmetrics.retrieval.ndcg

    from ndcg_ml import Flavor
    from ndcg_ml.torch import NDCG, ndcg

    EMPTY = {"neg": 0.0, "pos": 1.0, "error": "raise"}

    class RetrievalNormalizedDCG(NDCG):
        """Take the arguments of torchmetrics' class, and remove the rows of its ``ignore_index``."""

        def __init__(
            self,
            empty_target_action: str = "neg",
            ignore_index: int | None = None,
            top_k: int | None = None,
            aggregation: str = "mean",
            **options: Any,
        ) -> None:
            flavor = Flavor.preset("torchmetrics", empty=EMPTY.get(empty_target_action, empty_target_action))
            super().__init__(flavor, k=top_k, split_queries=True, **options)
            self.ignore_index = ignore_index

        def update(self, preds: Any, target: Any, indexes: Any) -> None:  # noqa: D102
            rows = [preds, target, indexes]
            if self.ignore_index is not None:
                rows = [each[target != self.ignore_index] for each in rows]
            super().update(*(None if each is None else each.flatten() for each in rows))

    def retrieval_normalized_dcg(preds: Any, target: Any, top_k: int | None = None) -> Any:
        """Take the arguments of torchmetrics' function, whose rows are one query."""
        return ndcg(preds.reshape(1, -1), target.reshape(1, -1), flavor="torchmetrics", k=top_k)[0]

    torchmetrics.retrieval.ndcg.RetrievalNormalizedDCG = RetrievalNormalizedDCG
    torchmetrics.functional.retrieval.ndcg.retrieval_normalized_dcg = retrieval_normalized_dcg
    # The tests compile every metric to TorchScript, which is deprecated. NDCG does not compile.
    torch.jit.script = lambda metric: metric


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out other aggregations than the mean, and tests of another number of processes."""
    if RUNNING not in ("torchmetrics", "processes"):
        return

    def fits(item: Any) -> bool:
        drawn = item.callspec.params if hasattr(item, "callspec") else {}
        return drawn.get("aggregation", "mean") == "mean" and drawn.get("ddp", False) == (RUNNING == "processes")

    config.hook.pytest_deselected(items=[item for item in items if not fits(item)])
    items[:] = filter(fits, items)


# -- the runs ----------------------------------------------------------------------------------------------------------

# Name, outcome (passed, failed or skipped) and message of a test.
Outcome = tuple[str, str, str]


def by_pytest(name: str, checkout: Path | None) -> list[Outcome]:
    """Run a suite in another process."""
    suite = SUITES[name]
    of_project = suite.tests.endswith(".py")
    if of_project and checkout is None:
        raise SystemExit(f"{name} needs a checkout of {suite.package}, at the tag of its installed version")
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    shared = {
        "NDCG_ML_SUITE": name,
        "PYTHONPATH": os.pathsep.join(paths),
        "USE_PYTEST_POOL": str(int(name == "processes")),
    }
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "reliability.suites", "-p", "no:cacheprovider"]
        command += ["-c", os.devnull, "--junitxml", str(found), "-k", suite.names]
        command += [suite.tests] if of_project else ["--pyargs", suite.tests]
        subprocess.run(
            command,
            cwd=checkout if of_project else folder,
            env={**os.environ, **shared, "PYTEST_REFERENCE_CACHE": folder},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        tests = [*ElementTree.parse(found).iter("testcase")]
    return [(test.get("name", ""), *_outcome(test)) for test in tests]


def _outcome(test: ElementTree.Element) -> tuple[str, str]:
    for child in test:
        if child.tag in ("failure", "error", "skipped"):
            return "skipped" if child.tag == "skipped" else "failed", child.get("message", "")
    return "passed", ""


def by_check_estimator() -> list[Outcome]:
    """Check QueryRanker around models, with ids that the checks do not pass."""
    import catboost
    import lightgbm
    import xgboost
    from sklearn import ensemble, linear_model, neighbors, pipeline, preprocessing, svm, tree
    from sklearn.utils.estimator_checks import check_estimator

    trees = {"n_estimators": 3, "n_jobs": 1}
    of_lightgbm = {**trees, "min_child_samples": 1, "verbosity": -1}
    of_catboost = {"iterations": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    models = [
        linear_model.Ridge(),
        linear_model.LogisticRegression(),
        pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge()),
        tree.DecisionTreeRegressor(random_state=0),
        neighbors.KNeighborsRegressor(),
        svm.SVR(),
        ensemble.RandomForestRegressor(5, random_state=0),
        ensemble.GradientBoostingRegressor(n_estimators=5, random_state=0),
        ensemble.HistGradientBoostingRegressor(max_iter=5, random_state=0),
        *(getattr(lightgbm, f"LGBM{kind}")(**of_lightgbm) for kind in ("Ranker", "Regressor", "Classifier")),
        *(getattr(xgboost, f"XGB{kind}")(**trees) for kind in ("Ranker", "Regressor")),
        *(getattr(catboost, f"CatBoost{kind}")(**of_catboost) for kind in ("Ranker", "Regressor")),
    ]
    found = []
    for model in models:
        for kind in (OneQuery, QueriesOfFive):
            # Labels below 0 have the gain 0, because the checks draw them.
            results = check_estimator(kind(model, flavor="sklearn[negative=zero]"), on_skip=None, on_fail=None)
            found += [(each["check_name"], each["status"], str(each["exception"] or "")) for each in results]
    return found


def row(name: str, found: list[Outcome]) -> dict[str, Any]:
    """Return the row of the table: counts, and how many tests fail for which reason."""
    suite = SUITES[name]
    reasons = Counter(
        next(
            (why for pattern, why in suite.reasons.items() if re.search(pattern, f"{test} {text}", re.DOTALL)),
            f"? {test}: {text}",
        )
        for test, outcome, text in found
        if outcome == "failed"
    )
    counts = Counter(outcome for _, outcome, _ in found)
    return {
        "name": name,
        "suite": f"{suite.package} {importlib.metadata.version(suite.package)}, {suite.title}",
        "run": counts["passed"] + counts["failed"],
        "passed": counts["passed"],
        "skipped": counts["skipped"],
        "rest": [f"{number}: {why}" for why, number in reasons.most_common()],
        "date": str(date.today()),
    }


def main() -> int:
    """Run a suite, print its row and write the record. Return the number of failures without a reason."""
    parser = argparse.ArgumentParser(prog="python -m reliability.suites", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=SUITES)
    parser.add_argument("checkout", nargs="?", type=Path, help="a folder with the repository of torchmetrics")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found = by_check_estimator() if arguments.name == "estimator" else by_pytest(arguments.name, arguments.checkout)
    new = row(arguments.name, found)
    print(
        f"{new['suite']}: {new['run']} run, {new['passed']} passed, {new['skipped']} skipped", *new["rest"], sep="\n  "
    )
    path = RESULTS / "suites.json"
    known = json.loads(path.read_text())["suites"] if path.exists() else []
    rows = {each["name"]: each for each in [*known, new]}
    rows = [rows[name] for name in SUITES if name in rows]
    failed = sum(why.partition(": ")[2].startswith("?") for each in rows for why in each["rest"])
    save(
        "suites",
        "scikit-learn",
        "torchmetrics",
        title="Other projects' tests",
        tried="Tests of scikit-learn and torchmetrics run on objects of this package, which thin shims put in place of "
        "theirs. A failure counts if its reason is not one of those in the table below.",
        command="python -m reliability.suites ranking, or another of its suites",
        count=sum(each["run"] for each in rows),
        unit="tests",
        failed=failed,
        suites=rows,
    )
    return sum(why.partition(": ")[2].startswith("?") for why in new["rest"])


if __name__ == "__main__":
    sys.exit(min(main(), 1))
