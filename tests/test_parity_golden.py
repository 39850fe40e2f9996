"""Every golden value of the libraries that have a preset, reproduced; or declared, with the reason, as a divergence.

The values were printed by the libraries themselves and lie outside the project. A divergence that starts to agree, and
one that no case needs, fail as loudly as a value that is not reproduced.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ndcg_ml import Flavor, dcg_score, evaluate

Case = dict[str, Any]

# grades 1..5 gain 2^y - 1 as in `-m ndcg.1=1,2=3,3=7,4=15,5=31`, and trec_eval leaves the others as they are
EXPONENTIAL_TO_5 = (0, 1, 3, 7, 15, 31, *range(6, 32))
NOT_MONOTONE = (5, 1, 2, 7, 3)

sklearn, lightgbm = Flavor.preset("sklearn"), Flavor.preset("lightgbm")
xgboost, catboost = Flavor.preset("xgboost"), Flavor.preset("catboost")
torchmetrics, trec_eval = Flavor.preset("torchmetrics"), Flavor.preset("trec_eval")

# (library, variant): the flavor, and whether DCG is meant rather than NDCG
FLAVORS: dict[tuple[str, str], tuple[Flavor, bool]] = {
    ("scikit-learn", "ndcg"): (sklearn, False),
    ("scikit-learn", "dcg"): (sklearn.replace(negative="allow"), True),
    ("scikit-learn", "dcg_loge"): (sklearn.replace(negative="allow", discount="ln"), True),
    ("lightgbm", "ndcg"): (lightgbm, False),
    ("lightgbm", "ndcg_linear_gain"): (lightgbm.replace(gain=tuple(range(31))), False),
    ("lightgbm", "ndcg_label_gain_not_monotone"): (lightgbm.replace(gain=NOT_MONOTONE), False),
    ("xgboost", "ndcg"): (xgboost, False),
    ("xgboost", "ndcg_minus"): (xgboost.replace(empty=0), False),
    ("xgboost", "ndcg_linear"): (xgboost.replace(gain="linear", negative="allow"), False),
    ("xgboost", "ndcg_linear_minus"): (xgboost.replace(gain="linear", negative="allow", empty=0), False),
    **{
        ("catboost", f"{metric}_{kind}_{denominator}"): (
            catboost.replace(gain=gain, discount=discount),
            metric == "dcg",
        )
        for metric in ("ndcg", "dcg")
        for kind, gain in (("Base", "linear"), ("Exp", "exponential"))
        for denominator, discount in (("LogPosition", "log2"), ("Position", "reciprocal"))
    },
    ("torchmetrics", "functional"): (torchmetrics, False),
    ("torchmetrics", "functional_f64"): (torchmetrics, False),
    ("torchmetrics", "class_neg"): (torchmetrics, False),
    ("torchmetrics", "class_pos"): (torchmetrics.replace(empty=1), False),
    ("torchmetrics", "class_skip"): (torchmetrics.replace(empty="skip"), False),
    ("pytrec_eval", "ndcg_cut"): (trec_eval, False),
    ("pytrec_eval", "ndcg"): (trec_eval, False),
    # a negative grade is its way to say unjudged
    ("pytrec_eval", "ndcg_cut_judged_only"): (trec_eval.replace(unjudged="condense", negative="drop"), False),
    ("trec_eval 9.0.8", "ndcg_cut"): (trec_eval, False),
    ("trec_eval 9.0.8", "ndcg_cut_c"): (trec_eval, False),
    ("trec_eval 9.0.8", "ndcg"): (trec_eval, False),
    ("trec_eval 9.0.8", "ndcg_expgains"): (trec_eval.replace(gain=EXPONENTIAL_TO_5), False),
}

# What no flavor says: the variants that are left out whole.
LEFT_OUT = {
    ("scikit-learn", "ndcg_ignore_ties"): "the order of ties is that of NumPy's unstable argsort, undefined",
    ("pytrec_eval", "ndcg_rel"): "another measure: the mean of NDCG at the rank of each relevant document",
}

NAN_SCORE = "the library ranks NaN scores in some order; here they are an error"
# (library, variant or *, input): the reason why the value, or the error, is not reproduced
DECLARED: dict[tuple[str, str, str], str] = {
    ("scikit-learn", "ndcg", "one_irrel"): "raises for a query with one document; the formula scores it",
    ("scikit-learn", "dcg", "one_irrel"): "raises for a query with one document; the formula scores it",
    ("lightgbm", "ndcg", "frac6"): "the default label_gain refuses fractions; 2^y - 1 takes them",
    ("lightgbm", "ndcg", "big31"): "the default label_gain ends at grade 30; 2^y - 1 does not",
    ("lightgbm", "ndcg_label_gain_not_monotone", "*"): "its ideal is sorted by grade, not by gain, and can exceed 1",
    ("xgboost", "ndcg", "frac6"): "an exponential gain refuses fractions there; 2^y - 1 takes them",
    ("torchmetrics", "class_neg", "neg_sum0"): "a query is empty when its labels sum to 0; here when its ideal DCG is",
    ("torchmetrics", "class_pos", "neg_sum0"): "a query is empty when its labels sum to 0; here when its ideal DCG is",
    ("torchmetrics", "class_skip", "neg_sum0"): "a query is empty when its labels sum to 0; here when its ideal DCG is",
    ("torchmetrics", "class_skip", "all_zero4"): "the mean of no query is 0; here it is an error",
    ("torchmetrics", "class_skip", "one_irrel"): "the mean of no query is 0; here it is an error",
    ("pytrec_eval", "*", "frac6"): "its qrels hold integers only; here a grade is any number",
    **{
        (library, "*", name): NAN_SCORE
        for library in ("lightgbm", "xgboost", "catboost", "torchmetrics", "pytrec_eval", "trec_eval 9.0.8")
        for name in ("nan5", "nan_neg4")
    },
}


@pytest.fixture(scope="module")
def golden(parity_dir: Path) -> dict[str, Any]:
    with gzip.open(parity_dir / "golden.json.gz", "rt", encoding="utf-8") as file:
        loaded: dict[str, Any] = json.load(file)
    return loaded


def number(value: float | str) -> float:
    return float(value)  # "nan" and "inf" are strings


def arguments(problem: dict[str, Any], variant: str) -> dict[str, Any]:
    """The input of a case as arguments of ``evaluate``."""
    if "queries" in problem:
        queries = problem["queries"]
        return {
            "y_true": [number(label) for query in queries for label in query["labels"]],
            "y_score": [number(score) for query in queries for score in query["scores"]],
            "group": [len(query["labels"]) for query in queries],
        }
    run, qrels = problem["run"], problem["qrels"]
    rows = []
    for qid in qrels:
        if qid not in run and not variant.endswith("_c"):
            continue  # trec_eval averages the topics that are in both, unless -c is given
        scores, grades = run.get(qid, {}), qrels[qid]
        for document in dict.fromkeys([*scores, *grades]):
            found = document in scores
            rows.append((qid, document, grades.get(document, math.nan), number(scores.get(document, 0)), found))
    qids, documents, y_true, y_score, retrieved = zip(*rows, strict=True)
    return {
        "y_true": np.array(y_true, dtype=np.float64),
        "y_score": np.array(y_score),
        "qid": qids,
        "doc_id": documents,
        "retrieved": np.array(retrieved),
    }


def problem_of(case: Case, golden: dict[str, Any]) -> dict[str, Any]:
    problem: dict[str, Any] = case.get("input") or golden["inputs"][case["input_name"]]
    return problem


def tolerance(case: Case) -> Callable[[float], float]:
    if case["dtype"] == "text4":
        return lambda _: 0.5e-4 + 1e-9
    if case["dtype"] == "float32":
        return lambda value: 1e-5 * max(1.0, abs(value))
    # XGBoost and CatBoost hold labels, weights or results in float32 in places
    relative = {"xgboost": 1e-6, "catboost": 1e-6}.get(case["library"], 1e-12)
    return lambda value: relative * max(1.0, abs(value))


def reproduce(case: Case, golden: dict[str, Any]) -> str | None:
    """None where the case is reproduced, else what is wrong."""
    flavor, is_dcg = FLAVORS[case["library"], case["variant"]]
    problem = problem_of(case, golden)
    k = case["k"]
    if case["library"] == "xgboost" and k is None:
        k = 32
    inputs = arguments(problem, case["variant"])
    if case["weights_used"]:
        inputs["query_weight"] = problem["weights"]
    try:
        if is_dcg:
            value = dcg_score(flavor=flavor, k=k, **inputs)
            table = evaluate(flavor=flavor.replace(empty=0), k=k, **inputs).per_query.dcg
        else:
            result = evaluate(flavor=flavor, k=k, **inputs)
            assert isinstance(result.value, float)
            value, table = result.value, result.per_query.ndcg
    except ValueError as error:
        return None if case["expected"] is None else f"error: {error}"
    if case["expected"] is None:
        return f"{value} where the library raised {case['error'][:80]}"
    within = tolerance(case)
    expected = number(case["expected"])
    if not abs(value - expected) <= within(expected):
        return f"{value} for {expected}"
    per_query = case["per_query"] or []
    if isinstance(per_query, dict):
        ids = list(dict.fromkeys(inputs["qid"]))
        table, per_query = [table[ids.index(qid)] for qid in per_query], list(per_query.values())
    if len(per_query) not in (0, len(table)):
        return f"{len(table)} queries for {len(per_query)}"
    for got, want in zip(table, map(number, per_query), strict=False):
        if not abs(got - want) <= within(want):
            return f"{got} for {want} in a query"
    return None


def declared(case: Case) -> tuple[str, str, str] | None:
    library, variant, name = case["library"], case["variant"], case["input_name"]
    for key in ((library, variant, name), (library, "*", name), (library, variant, "*")):
        if key in DECLARED:
            return key
    return None


@pytest.mark.parametrize(("library", "variant"), FLAVORS, ids=[" ".join(key) for key in FLAVORS])
def test_golden_values(
    library: str, variant: str, golden: dict[str, Any], record_property: Callable[[str, object], None]
) -> None:
    cases = [c for c in golden["cases"] if (c["library"], c["variant"]) == (library, variant)]
    assert cases, "the golden file has no such variant"
    wrong, agreeing = [], []
    counts = {"values": 0, "refusals": 0, "divergent": 0}
    for case in cases:
        failure = reproduce(case, golden)
        name = f"{case['input_name']} k={case['k']} weights={case['weights_used']}"
        if declared(case) is None:
            counts["values" if case["expected"] is not None else "refusals"] += failure is None
            if failure is not None:
                wrong.append(f"{name}: {failure}")
        else:
            counts["divergent"] += 1
            if failure is None:
                agreeing.append(name)
    assert not wrong, f"{len(wrong)} of {len(cases)} not reproduced:\n" + "\n".join(wrong)
    assert not agreeing, "declared as divergent, but reproduced:\n" + "\n".join(agreeing)
    record_property("golden", (library, counts))


def test_every_variant_and_every_declaration_is_accounted_for(golden: dict[str, Any]) -> None:
    libraries = {library for library, _ in FLAVORS}
    cases = [c for c in golden["cases"] if c["library"] in libraries]
    assert {(c["library"], c["variant"]) for c in cases} == {*FLAVORS, *LEFT_OUT}
    used = {declared(case) for case in cases if (case["library"], case["variant"]) in FLAVORS}
    assert used - {None} == set(DECLARED)


@pytest.fixture
def some_cases(golden: dict[str, Any]) -> list[Case]:
    return [c for c in golden["cases"] if (c["library"], c["variant"]) in FLAVORS and declared(c) is None]


def test_the_comparison_can_fail(some_cases: list[Case], golden: dict[str, Any]) -> None:
    """A golden value moved by more than its tolerance is noticed in every library."""
    seen = set()
    for case in some_cases:
        if case["expected"] is None or case["library"] in seen:
            continue
        seen.add(case["library"])
        assert reproduce(case, golden) is None
        assert reproduce({**case, "expected": number(case["expected"]) + 2e-4}, golden) is not None
    assert seen == {library for library, _ in FLAVORS}
