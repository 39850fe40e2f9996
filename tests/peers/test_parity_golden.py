"""Presets reproduce all recorded values of the libraries, except for declared divergences.

The libraries themselves computed the values. A test fails for a difference that is not declared in
``ndcg_ml.divergences``, for a declared difference that has disappeared, and for one that no case shows.
"""

import gzip
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from divergences import CHECKS, Check, check_of, facts
from divergences import declared as declared_for
from preset_pages import COUNTS, KINDS

from ndcg_ml import PRESETS, Flavor, dcg_score, evaluate
from ndcg_ml.divergences import DIVERGENCES, Divergence
from ndcg_ml.presets import MIRRORS

Case = dict[str, Any]

# `-m ndcg.1=1,2=3,3=7,4=15,5=31` sets the gain of the grades 1 to 5 to 2^y - 1; other grades keep their gain.
EXPONENTIAL_TO_5 = (0, 1, 3, 7, 15, 31, *range(6, 32))
NOT_MONOTONE = (5, 1, 2, 7, 3)
# In pytrec_eval, a negative grade means unjudged.
JUDGED_ONLY = {"unjudged": "condense", "negative": "drop"}


@dataclass(frozen=True)
class Variant:
    """The preset and the settings that reproduce a variant of a library."""

    preset: str
    changes: Callable[[Flavor], Flavor] = lambda flavor: flavor
    measure: str = "ndcg"
    """"ndcg", "dcg" or "ndcg_rel"."""
    topics: str = "both"
    """The topics that are averaged: those in "both" run and judgements, in the "run", in the judgements ("qrels"), or
    with a "relevant" document."""
    rows: str = "run"
    """The order of the documents: that of the "run", of the "qrels", of the "qrels, best first", or of the "run alone",
    if the library gets no other documents."""

    @cached_property
    def flavor(self) -> Flavor:
        return self.changes(Flavor.preset(self.preset))


def with_(**changes: Any) -> Callable[[Flavor], Flavor]:
    return lambda flavor: flavor.replace(**changes)


LINEAR, EXPONENTIAL = with_(gain="linear"), with_(gain="exponential")
TO_5 = with_(gain=EXPONENTIAL_TO_5)

VARIANTS: dict[tuple[str, str], Variant] = {
    ("scikit-learn", "ndcg"): Variant("sklearn"),
    ("scikit-learn", "ndcg_ignore_ties"): Variant("sklearn_ignore_ties"),
    ("scikit-learn", "dcg"): Variant("sklearn", with_(negative="allow"), "dcg"),
    ("scikit-learn", "dcg_loge"): Variant("sklearn", with_(negative="allow", discount="ln"), "dcg"),
    ("lightgbm", "ndcg"): Variant("lightgbm"),
    ("lightgbm", "ndcg_linear_gain"): Variant("lightgbm_linear"),
    ("lightgbm", "ndcg_label_gain_not_monotone"): Variant("lightgbm", with_(gain=NOT_MONOTONE)),
    ("xgboost", "ndcg"): Variant("xgboost"),
    ("xgboost", "ndcg_minus"): Variant("xgboost_minus"),
    ("xgboost", "ndcg_linear"): Variant("xgboost_linear"),
    ("xgboost", "ndcg_linear_minus"): Variant("xgboost_linear", with_(empty=0)),
    **{
        ("catboost", f"{measure}_{kind}_{position}"): Variant(preset, measure=measure)
        for measure in ("ndcg", "dcg")
        for kind, position, preset in (
            ("Base", "LogPosition", "catboost"),
            ("Exp", "LogPosition", "catboost_exp"),
            ("Base", "Position", "catboost_position"),
            ("Exp", "Position", "catboost_exp_position"),
        )
    },
    ("torchmetrics", "functional"): Variant("torchmetrics"),
    ("torchmetrics", "functional_f64"): Variant("torchmetrics"),
    ("torchmetrics", "class_neg"): Variant("torchmetrics"),
    ("torchmetrics", "class_pos"): Variant("torchmetrics_pos"),
    ("torchmetrics", "class_skip"): Variant("torchmetrics_skip"),
    **{
        (library, f"{measure}{suffix}"): Variant(preset, change, measure)
        for library, preset in (("rax", "rax"), ("tensorflow-ranking", "tensorflow_ranking"), ("allRank", "allrank"))
        for measure, suffix, change in (("ndcg", "", with_()), ("ndcg", "_linear_gain", LINEAR), ("dcg", "", with_()))
    },
    ("RankLib", "ndcg"): Variant("ranklib"),
    ("RankLib", "dcg"): Variant("ranklib", measure="dcg"),
    **{("LETOR/MSLR perl", name): Variant(name) for name in ("letor3", "letor4", "mslr")},
    ("pytrec_eval", "ndcg_cut"): Variant("pytrec_eval"),
    ("pytrec_eval", "ndcg"): Variant("pytrec_eval"),
    ("pytrec_eval", "ndcg_cut_judged_only"): Variant("pytrec_eval", with_(**JUDGED_ONLY)),
    ("pytrec_eval", "ndcg_rel"): Variant("pytrec_eval", measure="ndcg_rel"),
    **{
        (library, variant): Variant(preset, change, topics=topics)
        for library, preset in (("trec_eval 9.0.8", "trec_eval"), ("trec_eval 10.0", "trec_eval10"))
        for variant, change, topics in (
            ("ndcg_cut", with_(), "both"),
            ("ndcg_cut_c", with_(), "qrels"),
            ("ndcg", with_(), "both"),
            ("ndcg_expgains", TO_5, "both"),
        )
    },
    ("ir_measures", "log2"): Variant("ir_measures", topics="qrels"),
    ("ir_measures", "log2_judged_only"): Variant("ir_measures", with_(**JUDGED_ONLY), topics="qrels"),
    ("ir_measures", "log2_expgains"): Variant("ir_measures", TO_5, topics="qrels"),
    ("ir_measures", "exp_log2"): Variant("ir_measures_exp", topics="qrels"),
    ("ranx", "ndcg"): Variant("ranx", topics="qrels"),
    ("ranx", "ndcg_plain"): Variant("ranx"),
    ("ranx", "ndcg_burges"): Variant("ranx_burges", topics="qrels"),
    ("ranx", "dcg"): Variant("ranx", measure="dcg", topics="qrels"),
    **{
        ("recommenders", f"ndcg_{kind}"): Variant(f"recommenders_{kind}", topics="qrels")
        for kind in ("binary", "raw", "exp")
    },
    ("RecBole", "ndcg"): Variant("recbole", topics="run"),
    ("Spark MLlib", "scala_binary"): Variant("spark", topics="run"),
    ("Spark MLlib", "scala_graded_sorted"): Variant("spark_graded", topics="run", rows="qrels, best first"),
    ("Spark MLlib", "scala_graded_qrels_order"): Variant("spark_graded", topics="run", rows="qrels"),
    ("Spark MLlib", "pyspark_graded"): Variant("pyspark_graded", topics="run"),
    ("Quepid", "ndcg"): Variant("quepid", topics="run"),
    ("Quepid", "ndcg_cut"): Variant("quepid_cut", topics="run"),
    ("Quepid", "dcg"): Variant("quepid", measure="dcg", topics="run"),
    # -- tools.json.gz
    ("mlflow", "ndcg_at_k"): Variant("mlflow", topics="qrels"),
    ("LlamaIndex", "NDCG"): Variant("llama_index", topics="qrels"),
    ("Haystack", "graded"): Variant("haystack", topics="qrels"),
    ("Haystack", "binary"): Variant("haystack", with_(gain="binary", negative="zero"), topics="qrels"),
    ("Phoenix", "ndcg"): Variant("phoenix", topics="qrels", rows="run alone"),
    ("pyvespa", "graded"): Variant("vespa", topics="qrels"),
    ("pyvespa", "binary"): Variant("vespa", with_(gain="binary", negative="zero", empty="skip"), topics="qrels"),
    ("TruLens", "ndcg_at_k"): Variant("trulens", topics="qrels"),
    ("TruLens", "without_k"): Variant("trulens", with_(ideal_depth="retrieved"), topics="qrels"),
    ("azure-ai-evaluation", "ndcg"): Variant("azure_ai_evaluation", with_(max_grade=None), topics="qrels"),
    ("AutoRAG", "retrieval_ndcg"): Variant("autorag", topics="qrels"),
    ("sentence-transformers", "InformationRetrievalEvaluator"): Variant("sentence_transformers", topics="qrels"),
    ("MTEB", "ndcg"): Variant("mteb"),
    ("BEIR", "ndcg"): Variant("beir"),
    ("FlagEmbedding", "ndcg"): Variant("flagembedding"),
    ("RCP-nDCG", "ndcg"): Variant("rcp_ndcg", topics="qrels"),
    ("RCP-nDCG", "judged_pool"): Variant("rcp_ndcg", with_(unjudged="condense"), topics="qrels"),
    ("RCP-nDCG", "doc_id_desc"): Variant("rcp_ndcg", with_(ties="docid"), topics="qrels"),
    ("RCP-nDCG", "ndcg_float"): Variant("rcp_ndcg", topics="run"),
    ("RecTools", "NDCG"): Variant("rectools", topics="relevant"),
    ("RecTools", "divide_by_achievable"): Variant("rectools_achievable", topics="relevant"),
    ("LensKit", "NDCG"): Variant("lenskit"),
    ("LensKit", "gain"): Variant("lenskit", with_(gain="linear", negative="allow")),
    ("LensKit 2026", "NDCG"): Variant("lenskit", with_(empty="skip")),
    ("LensKit 2026", "gain"): Variant("lenskit", with_(gain="linear")),
    ("RePlay", "NDCG"): Variant("replay", topics="qrels"),
    ("implicit", "ndcg_at_k"): Variant("implicit", topics="qrels"),
    ("Cornac", "NDCG"): Variant("cornac", topics="qrels"),
    ("LibRecommender", "ndcg_at_k"): Variant("librecommender", topics="qrels"),
    ("Elliot", "threshold_0"): Variant("elliot"),
    ("Elliot", "threshold_1"): Variant("elliot", with_(gain="exponential")),
    ("Elliot", "threshold_2"): Variant(
        "elliot", with_(gain=tuple(2 ** (y - 1) - 1 if y > 1 else 0 for y in range(32)))
    ),
    ("evidently", "NDCGKMetric"): Variant("evidently", topics="qrels", rows="run alone"),
    ("rank_metrics.py", "method_0"): Variant("rank_metrics", topics="qrels", rows="run alone"),
    ("rank_metrics.py", "method_1"): Variant("rank_metrics_log2", topics="qrels", rows="run alone"),
    ("OpenSearch", "NDCG"): Variant("opensearch", topics="qrels"),
    ("pyltr", "exp2"): Variant("pyltr"),
    ("pyltr", "identity"): Variant("pyltr", LINEAR),
    ("fastrank", "ndcg"): Variant("fastrank"),
    ("ignite", "NDCG"): Variant("ignite"),
    ("ignite", "zero_hits"): Variant("ignite", with_(empty=0)),
    ("ignite", "linear"): Variant("ignite", LINEAR),
    ("PyG", "LinkPredNDCG"): Variant("pyg", topics="qrels"),
    ("PyG", "weighted"): Variant("pyg", LINEAR, topics="qrels"),
    ("torchrec", "exponential"): Variant("torchrec", EXPONENTIAL),
    ("torchrec", "linear"): Variant("torchrec"),
    ("torchrec", "one_minus"): Variant("torchrec", EXPONENTIAL),
    ("TFMA", "NDCG"): Variant("tfma"),
    ("Transformers4Rec", "top_ks_k_20"): Variant("transformers4rec"),
    ("keras-rs on jax", "NDCG"): Variant("keras_rs"),
    ("keras-rs on torch", "NDCG on torch"): Variant("keras_rs"),
    ("FLAML", "ndcg@k"): Variant("flaml"),
    ("FLAML", "ndcg"): Variant("flaml"),
    ("RecPack", "NDCGK"): Variant("recpack", topics="qrels"),
    ("rankerEval", "NDCG"): Variant("rankereval", topics="qrels"),
    ("rankerEval", "power_2"): Variant("rankereval", with_(gain="exponential", discount="log2"), topics="qrels"),
    ("whylogs", "scores"): Variant("whylogs"),
    ("pytorchltr", "exponential"): Variant("pytorchltr"),
    ("pytorchltr", "linear"): Variant("pytorchltr", LINEAR),
    ("RankEval", "exp"): Variant("rankeval"),
    ("RankEval", "flat"): Variant("rankeval", LINEAR),
    ("PT-Ranking", "ndcg_at_ks"): Variant("ptranking"),
    ("YDF", "evaluate_predictions"): Variant("ydf"),
    ("river", "NDCG"): Variant("river", topics="qrels"),
}

NO_RECORDED_VALUES = {
    "burges2005": "a paper",
    "jarvelin2002": "a paper",
    "elasticsearch": "from the source alone",
    "gdeval": "live: the script itself",
    "torchmetrics_error": "live: raises, or equals torchmetrics",
    "mlnet": "from the source alone",
}


def recorded(folder: Path) -> dict[str, Any]:
    """Return the inputs and the cases of both files."""
    inputs: dict[str, Any] = {}
    cases: list[Case] = []
    for name in ("golden.json.gz", "tools.json.gz"):
        with gzip.open(folder / name, "rt", encoding="utf-8") as file:
            part = json.load(file)
        inputs |= part["inputs"]
        cases += part["cases"]
    return {"inputs": inputs, "cases": cases, "outcomes": {}}


@pytest.fixture(scope="module")
def golden(parity_dir: Path) -> dict[str, Any]:
    return recorded(parity_dir)


# -- reproducing a case ---------------------------------------------------------------------------------------------


def arguments(problem: dict[str, Any], variant: Variant) -> dict[str, Any]:
    """Return the input of a case as arguments of ``evaluate``."""
    if "queries" in problem:
        queries = problem["queries"]
        return {
            # "nan" and "inf" are strings.
            "y_true": np.array([float(label) for query in queries for label in query["labels"]]),
            "y_score": np.array([float(score) for query in queries for score in query["scores"]]),
            "group": [len(query["labels"]) for query in queries],
        }
    rows = list(_rows(problem.get("run") or problem["hits"], problem["qrels"], variant))
    if not rows:
        return {"y_true": [], "y_score": [], "qid": []}
    qids, documents, y_true, y_score, retrieved = zip(*rows, strict=True)
    return {
        "y_true": np.array(y_true, dtype=np.float64),
        "y_score": np.array(y_score),
        "qid": qids,
        "doc_id": documents,
        "retrieved": np.array(retrieved),
    }


def _rows(run: dict[str, Any], qrels: dict[str, Any], variant: Variant) -> Iterator[tuple[Any, ...]]:
    wanted = [qid for qid, grades in qrels.items() if any(grade > 0 for grade in grades.values())]
    both = [qid for qid in qrels if qid in run]
    alone = variant.rows == "run alone"
    for qid in {"both": both, "qrels": qrels, "run": run, "relevant": wanted}[variant.topics]:
        scores, grades = run.get(qid, {}), qrels.get(qid, {})
        if isinstance(scores, list):  # hits, which may repeat a document
            found = {document for document, _ in scores}
            for document, score in scores:
                yield qid, document, grades.get(document, math.nan), float(score), True
            scores, grades = {}, {document: grade for document, grade in grades.items() if document not in found}
        documents = [*grades, *scores] if variant.rows.startswith("qrels") else [*scores, *grades]
        if alone and scores:
            documents = list(scores)
        if variant.rows == "qrels, best first":
            documents.sort(key=lambda document: -grades.get(document, -math.inf))
        for document in dict.fromkeys(documents):
            grade = grades.get(document, 0 if alone else math.nan)
            yield qid, document, grade, float(scores.get(document, 0)), document in scores


@dataclass(frozen=True)
class Outcome:
    """The result of a case."""

    kind: str
    """Equal ("values"), "refused" by both, "defined" if only the library raises, or otherwise "value"."""
    detail: str = ""


def outcome_of(case: Case, golden: dict[str, Any]) -> Outcome:
    known: dict[int, Outcome] = golden["outcomes"]
    if id(case) not in known:
        known[id(case)] = reproduce(case, golden)
    return known[id(case)]


def reproduce(case: Case, golden: dict[str, Any]) -> Outcome:
    variant = VARIANTS[case["library"], case["variant"]]
    flavor, problem = variant.flavor, problem_of(case, golden)
    inputs = arguments(problem, variant)
    if case["weights_used"]:
        inputs["query_weight"] = problem["weights"]
    # Without a cut-off, some libraries have a default: 32 in XGBoost.
    k = ... if case["k"] is None else case["k"]
    try:
        if variant.measure == "dcg":
            value = dcg_score(flavor=flavor, k=k, **inputs)
            result = evaluate(flavor=flavor.replace(empty=0), k=k, **inputs)
            table = result.per_query.dcg
        elif variant.measure == "ndcg_rel":
            value, result, table = ndcg_rel(flavor, inputs)
        else:
            result = evaluate(flavor=flavor, k=k, **inputs)
            assert isinstance(result.value, float)
            value, table = result.value, result.per_query.ndcg
    except ValueError as error:
        return Outcome("refused") if case["expected"] is None else Outcome("value", f"error: {error}")
    if case["expected"] is None:
        return Outcome("defined", f"{value} where the library raised {case['error'][:80]}")
    within, expected = tolerance(case), float(case["expected"])
    if not same(value, expected, within):
        return Outcome("value", f"{value} for {expected}")
    if "printed" in case and not abs(value - float(case["printed"])) <= 0.5e-4 + 1e-9:
        return Outcome("value", f"{value} for {case['printed']}, as printed")
    per_query = case["per_query"] or []
    if isinstance(per_query, dict):
        ids = [str(qid) for qid in result.per_query.qid]
        table, per_query = [table[ids.index(qid)] for qid in per_query], list(per_query.values())
    if len(per_query) not in (0, len(table)):
        return Outcome("value", f"{len(table)} queries for {len(per_query)}")
    for got, want in zip(table, map(float, per_query), strict=False):
        if not same(got, want, within):
            return Outcome("value", f"{got} for {want} in a query")
    return Outcome("values")


def ndcg_rel(flavor: Flavor, inputs: dict[str, Any]) -> tuple[float, Any, list[float]]:
    """Return the mean over relevant documents of NDCG at their ranks.

    For a relevant document that was not retrieved, it is the NDCG of the whole ranking.
    """
    longest = max(Counter(inputs["qid"]).values())
    result = evaluate(flavor=flavor, k=[*range(1, longest + 1), None], **inputs)
    table = []
    columns = [inputs[name] for name in ("qid", "doc_id", "y_true", "y_score", "retrieved")]
    for ndcg, qid in zip(result.per_query.ndcg, result.per_query.qid, strict=True):
        rows = [row for row in zip(*columns, strict=True) if row[0] == qid]
        ranking = sorted((np.float32(score), document) for _, document, _, score, found in rows if found)[::-1]
        rank = {document: place for place, (_, document) in enumerate(ranking)}
        values = [ndcg[rank.get(document, -1)] for _, document, grade, *_ in rows if grade > 0]
        table.append(float(np.mean(values)) if values else 0.0)
    return float(np.mean(table)), result, table


def problem_of(case: Case, golden: dict[str, Any]) -> dict[str, Any]:
    problem: dict[str, Any] = case.get("input") or golden["inputs"][case["input_name"]]
    return problem


def same(got: float, want: float, within: Callable[[float], float]) -> bool:
    return abs(got - want) <= within(want) or (math.isnan(got) and math.isnan(want))


def tolerance(case: Case) -> Callable[[float], float]:
    if case["dtype"].startswith("text"):  # the dtype names the number of decimals
        return lambda _: 0.5 * 10.0 ** -int(case["dtype"][4:]) + 1e-9
    if (case["library"], case["variant"]) == ("ir_measures", "exp_log2"):  # gdeval prints five decimals
        return lambda _: 0.5e-5 + 1e-9
    if case["dtype"] == "float32":
        return lambda value: 1e-5 * max(1.0, abs(value))
    # XGBoost and CatBoost store some labels, weights and results in float32.
    relative = {"xgboost": 1e-6, "catboost": 1e-6}.get(case["library"], 1e-12)
    return lambda value: relative * max(1.0, abs(value))


# -- declared divergences -------------------------------------------------------------------------------------------


def declared(case: Case, golden: dict[str, Any]) -> list[tuple[Divergence, Check]]:
    preset = VARIANTS[case["library"], case["variant"]].preset
    seen = facts(problem_of(case, golden), case["k"], case["weights_used"])
    return declared_for(preset, case["variant"], seen)


def judged(outcome: Outcome, entries: list[tuple[Divergence, Check]]) -> str | None:
    """Return what is wrong with the outcome of a case, given the declared divergences that cover it, or None."""
    kinds = {check.kind for _, check in entries}
    if outcome.kind in ("value", "defined"):
        return None if outcome.kind in kinds else f"not declared: {outcome.detail}"
    if outcome.kind == "refused":
        return None
    gone = [entry.cases for entry, check in entries if check.always]
    return f"declared as divergent ({'; '.join(gone)}), but reproduced" if gone else None


# The outcome of a case, and its kind in the counts.
KIND = {"values": "reproduced", "refused": "refused", "defined": "defined", "value": "declared"}


@pytest.mark.parametrize(("library", "variant"), VARIANTS, ids=[" ".join(key) for key in VARIANTS])
def test_golden_values(library: str, variant: str, golden: dict[str, Any]) -> None:
    cases = [c for c in golden["cases"] if (c["library"], c["variant"]) == (library, variant)]
    wrong = []
    for case in cases:
        fault = judged(outcome_of(case, golden), declared(case, golden))
        if fault is not None:
            wrong.append(f"{case['input_name']} k={case['k']} weights={case['weights_used']}: {fault}")
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong)


def test_every_variant_and_every_preset_is_accounted_for(golden: dict[str, Any]) -> None:
    seen = {(c["library"], c["variant"]) for c in golden["cases"]}
    assert seen == set(VARIANTS)
    assert {variant.preset for variant in VARIANTS.values()} | set(NO_RECORDED_VALUES) == set(PRESETS)


def test_every_declared_divergence_names_its_presets_and_its_cases() -> None:
    assert [(entry.presets[0], entry.cases) for entry in DIVERGENCES] == list(CHECKS)
    for entry in DIVERGENCES:
        recorded = {variant.preset for (_, call), variant in VARIANTS.items() if check_of(entry).applies(call)}
        assert set(entry.presets) <= recorded, entry.cases


def test_every_declared_divergence_is_seen(golden: dict[str, Any]) -> None:
    """Each divergence declared for the recorded values shows in every library that it names, and no other shows."""
    diverging: set[tuple[int, str]] = set()
    for case in golden["cases"]:
        entries = declared(case, golden)
        if entries and (outcome := outcome_of(case, golden)).kind in ("value", "defined"):
            kind = outcome.kind
            diverging |= {(DIVERGENCES.index(e), case["library"]) for e, check in entries if check.kind == kind}
    assert diverging == {
        (at, library)
        for at, entry in enumerate(DIVERGENCES)
        for (library, call), variant in VARIANTS.items()
        if variant.preset in entry.presets and (check := check_of(entry)).applies(call)
        if check.shown_by == "golden"
    }


def test_the_verified_counts_are_those_of_the_recorded_values(golden: dict[str, Any]) -> None:
    """The documented number of recorded values is that of the values which the unchanged preset reproduces."""
    counts: Counter[str] = Counter()
    for case in golden["cases"]:
        variant = VARIANTS[case["library"], case["variant"]]
        if variant.measure == "ndcg" and variant.flavor == PRESETS[variant.preset]:
            counts[variant.preset] += outcome_of(case, golden).kind == "values"
    assert not [name for name, n in counts.items() if f"{n} recorded values" not in MIRRORS[name].verified], counts


def outcomes(golden: dict[str, Any]) -> dict[str, Any]:
    """Return, by library, its presets and the number of recorded cases with each outcome."""
    counts: dict[str, Counter[str]] = {library: Counter() for library, _ in VARIANTS}
    for case in golden["cases"]:
        outcome = outcome_of(case, golden)
        known = not judged(outcome, declared(case, golden))
        counts[case["library"]][KIND[outcome.kind] if known else "undeclared"] += 1
    mirrored = {
        name: dict.fromkeys(v.preset for (library, _), v in VARIANTS.items() if library == name) for name in counts
    }
    return {
        name: {"presets": [*mirrored[name]], **{kind: count[kind] for kind in KINDS}} for name, count in counts.items()
    }


def test_the_counts_of_the_page_are_those_of_the_recorded_values(golden: dict[str, Any]) -> None:
    assert json.loads(COUNTS.read_text(encoding="utf-8")) == outcomes(golden)
