"""Record what other libraries compute on the problems of the golden file, and on those below.

Each library is run in a throw-away environment that holds it, by hand; no test and no CI step needs that. Then

    python tests/peers/golden/record.py PART.json NAME...     one part for each environment
    python tests/peers/golden/record.py --join PART.json...   writes tools.json.gz

NAME is a library of ``LIBRARIES``; ``calls.py`` says how each is called. Those that use ``lifted.py`` there are not
installed: their package lies in the folder ``WHEELS`` (``pip download --no-deps``), or a clone in ``SOURCES``. The
environments were: haystack-ai, llama-index-core, mlflow-skinny and pyvespa; azure-ai-evaluation and trulens-feedback;
rectools and lenskit; evidently; replay-rec; whylogs, recpack and rankereval; and the others beside ``.[test]``.
keras-rs ran on JAX (KERAS_BACKEND=jax).
"""

from __future__ import annotations

import gzip
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from peers import calls
from peers.golden import lifted

Problem = dict[str, Any]


def _many() -> Problem:
    """Three queries of up to 20 documents, graded, some judged and not retrieved, some the other way, tied scores."""
    run, qrels = {}, {}
    for query, size in (("1", 20), ("2", 13), ("3", 6)):
        docs = [f"d{(7 * i + int(query)) % 40:02d}" for i in range(size)]
        run[query] = {doc: round(10 - 0.7 * (i // 2), 1) for i, doc in enumerate(docs)}
        judged = [doc for i, doc in enumerate(docs) if i % 3 != 1] + [f"x{i}" for i in range(int(query) * 2)]
        qrels[query] = {doc: (5 * i + int(query)) % 5 * (i % 4 != 0) for i, doc in enumerate(judged)}
    return {"run": run, "qrels": qrels}


def _binary() -> Problem:
    """Four queries with grades 0 and 1, the last without a relevant document."""
    whole = _many()
    run = {**whole["run"], "4": {"a": 3.0, "b": 2.0}}
    qrels = {query: {doc: int(grade > 1) for doc, grade in docs.items()} for query, docs in whole["qrels"].items()}
    return {"run": run, "qrels": {**qrels, "4": {"a": 0, "c": 0}}}


RUNS: dict[str, Problem] = {
    "three of three wanted": {"run": {"1": {"x": 2.0, "a": 1.0}}, "qrels": {"1": {"a": 1, "b": 1, "c": 1}}},
    "one wanted, found": {"run": {"1": {"a": 1.0}}, "qrels": {"1": {"a": 1}}},
    "one wanted, not found": {"run": {"1": {"x": 1.0}}, "qrels": {"1": {"a": 1}}},
    "nothing wanted": {"run": {"1": {"a": 2.0, "b": 1.0}}, "qrels": {"1": {"a": 0, "b": 0}}},
    "fewer found than k": {
        "run": {"1": {"a": 2.0, "b": 1.0}},
        "qrels": {"1": {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}},
    },
    "tied ids": {
        "run": {"1": {"d2": 1.0, "d1": 1.0, "d3": 1.0, "d0": 0.5}, "2": {"b": 1.0, "c": 2.0, "a": 1.0}},
        "qrels": {"1": {"d1": 1, "d3": 2, "d0": 1}, "2": {"a": 1, "b": 0}},
    },
    "graded, three queries": _many(),
    "binary, four queries": _binary(),
}
# A document comes more than once: hits, not a mapping.
REPEATS: dict[str, Problem] = {
    name: {"hits": {"1": [[doc, float(9 - i)] for i, doc in enumerate(docs)]}, "qrels": {"1": qrels}}
    for name, docs, qrels in (
        ("a hit twice, first", "aax", {"a": 1}),
        ("a hit twice, later", "xaa", {"a": 1}),
        ("a hit three times", "axaya", {"a": 1, "b": 1}),
        ("two hits twice", "abacb", {"a": 1, "b": 1, "d": 1}),
        ("a graded hit twice", "bab", {"a": 3, "b": 1}),
        ("a miss twice", "xxa", {"a": 1, "c": 1}),
        ("all wanted, one twice", "aba", {"a": 1, "b": 1}),
        ("only the same hit", "aaaa", {"a": 1, "b": 1, "c": 1}),
    )
}
LISTS: dict[str, Problem] = {
    "one_rel": {"queries": [{"qid": "1", "scores": [0.7], "labels": [1]}]},
    "weighted3_empty": {
        "queries": [
            {"qid": "1", "scores": [3.0, 2.0, 1.0], "labels": [0, 0, 1]},
            {"qid": "2", "scores": [3.0, 2.0, 1.0], "labels": [0, 1, 0]},
            {"qid": "3", "scores": [3.0, 2.0, 1.0], "labels": [0, 0, 0]},
        ],
        "weights": [1.0, 3.0, 2.0],
    },
    "graded12": {
        "queries": [
            {"qid": "1", "scores": [0.1 * ((5 * i) % 12) for i in range(12)], "labels": [i % 5 for i in range(12)]},
            {"qid": "2", "scores": [0.1 * ((7 * i) % 9) for i in range(9)], "labels": [i % 3 for i in range(9)]},
        ]
    },
    "padded, scores near 30": {
        "queries": [
            {"qid": "1", "scores": [30.0, 29.5, 29.0, 28.5], "labels": [0, 2, 0, 1]},
            {"qid": "2", "scores": [31.0, 30.0], "labels": [0, 1]},
            {"qid": "3", "scores": [29.0], "labels": [1]},
        ]
    },
    "graded30": {
        "queries": [
            {
                "qid": "1",
                "scores": [float((11 * i) % 30) for i in range(30)],
                "labels": [(i * i) % 5 for i in range(30)],
            },
            {"qid": "2", "scores": [30.0 - i for i in range(25)], "labels": [int(i > 17) for i in range(25)]},
        ]
    },
    "tied12": {
        "queries": [
            {"qid": "1", "scores": [float(i % 3) for i in range(12)], "labels": [(5 * i) % 4 for i in range(12)]}
        ]
    },
}


LISTS |= {
    "negative, nothing relevant": {
        "queries": [
            {"qid": "1", "scores": [0.0, 1.0], "labels": [0, -1]},
            {"qid": "2", "scores": [3.0, 1.0, 2.0], "labels": [-1, -2, -1]},
            {"qid": "3", "scores": [1.0, 2.0], "labels": [1, 0]},
        ]
    },
    "grade 130": {"queries": [{"qid": "1", "scores": [0.0, 1.0, 2.0], "labels": [130, 2, 129]}]},
    "short, one without a relevant document": {
        "queries": [
            {"qid": "1", "scores": [0.3, 0.2, 0.4, 0.1, 0.6], "labels": [1, 0, 2, 0, 1]},
            {"qid": "2", "scores": [0.3, 0.2], "labels": [0, 0]},
            {"qid": "3", "scores": [0.1, 0.7, 0.5], "labels": [3, 0, 1]},
        ]
    },
}


@dataclass(frozen=True)
class Library:
    name: str
    variant: str
    distribution: str
    """The package whose version is recorded; for lifted code, its wheel or clone."""
    function: Callable[..., calls.Answer]
    call: str
    ks: tuple[int | None, ...] = (1, 3, 10)
    options: tuple[tuple[str, Any], ...] = ()
    lists: bool = False
    repeats: bool = False
    weights: bool = False
    dtype: str = "float64"
    note: str = ""

    @property
    def version(self) -> str:
        try:
            return metadata.version(self.distribution) + self.note
        except metadata.PackageNotFoundError:
            return lifted.version(self.distribution) + self.note


ANY = (1, 3, 10, None)
LIBRARIES = (
    Library(
        "mlflow",
        "ndcg_at_k",
        "mlflow-skinny",
        calls.mlflow,
        "mlflow.metrics.ndcg_at_k(k).eval_fn(found, relevant)",
        repeats=True,
    ),
    Library(
        "LlamaIndex",
        "NDCG",
        "llama-index-core",
        calls.llama_index,
        "NDCG().compute(expected_ids=relevant, retrieved_ids=found[:k]).score, and the mean",
        ks=ANY,
        repeats=True,
    ),
    Library(
        "Haystack",
        "graded",
        "haystack-ai",
        calls.haystack,
        "DocumentNDCGEvaluator('id').run(documents with scores, found[:k])",
        ks=ANY,
        repeats=True,
    ),
    Library(
        "Haystack",
        "binary",
        "haystack-ai",
        calls.haystack,
        "DocumentNDCGEvaluator('id').run(relevant documents without scores, found[:k])",
        ks=ANY,
        options=(("graded", False),),
        repeats=True,
    ),
    Library(
        "Phoenix",
        "ndcg",
        "arize-phoenix",
        calls.phoenix,
        "RetrievalMetrics(grades of what was found).ndcg(k), and the mean",
        ks=ANY,
    ),
    Library(
        "pyvespa",
        "graded",
        "pyvespa",
        calls.pyvespa,
        "VespaEvaluator(relevant_docs=grades, ndcg_at_k=[k])._compute_metrics(hits)",
        repeats=True,
    ),
    Library(
        "pyvespa",
        "binary",
        "pyvespa",
        calls.pyvespa,
        "VespaEvaluator(relevant_docs=sets of the relevant, ndcg_at_k=[k])._compute_metrics(hits)",
        options=(("graded", False),),
        repeats=True,
    ),
    Library(
        "TruLens",
        "ndcg_at_k",
        "trulens-feedback",
        calls.trulens,
        "GroundTruthAgreement(golden).ndcg_at_k(query, chunks, scores, k), and the mean",
        repeats=True,
    ),
    Library(
        "TruLens",
        "without_k",
        "trulens-feedback",
        calls.trulens,
        "GroundTruthAgreement(golden).ndcg_at_k(query, chunks, scores), and the mean",
        ks=(None,),
        repeats=True,
    ),
    Library(
        "azure-ai-evaluation",
        "ndcg",
        "azure-ai-evaluation",
        calls.azure_ai_evaluation,
        "DocumentRetrievalEvaluator with its k = 3 set to k, and the mean",
    ),
    Library(
        "AutoRAG",
        "retrieval_ndcg",
        "AutoRAG",
        calls.autorag,
        "retrieval_ndcg(MetricInput(retrieval_gt=[relevant], retrieved_ids=found[:k])), and the mean",
        ks=ANY,
        repeats=True,
    ),
    Library(
        "sentence-transformers",
        "InformationRetrievalEvaluator",
        "sentence-transformers",
        calls.sentence_transformers,
        "InformationRetrievalEvaluator(ndcg_at_k=[k]).compute_metrics(hits)",
        repeats=True,
    ),
    Library("MTEB", "ndcg", "mteb", calls.mteb, "calculate_retrieval_scores(run, qrels, [k]).ndcg", dtype="text5"),
    Library("BEIR", "ndcg", "beir", calls.beir, "EvaluateRetrieval.evaluate(qrels, run, [k])", dtype="text5"),
    Library(
        "FlagEmbedding",
        "ndcg",
        "FlagEmbedding",
        calls.flagembedding,
        "FlagEmbedding.abc.evaluation.utils.evaluate_metrics(qrels, run, [k])",
        dtype="text5",
    ),
    Library(
        "RecTools", "NDCG", "rectools", calls.rectools, "rectools.metrics.NDCG(k).calc_per_user(found, relevant).mean()"
    ),
    Library(
        "RecTools",
        "divide_by_achievable",
        "rectools",
        calls.rectools,
        "rectools.metrics.NDCG(k, divide_by_achievable=True).calc_per_user(found, relevant).mean()",
        options=(("achievable", True),),
    ),
    Library(
        "LensKit",
        "NDCG",
        "lenskit",
        calls.lenskit,
        "RunAnalysis(lenskit.metrics.NDCG(k)).measure(found, relevant).list_summary()",
        ks=ANY,
    ),
    Library(
        "LensKit",
        "gain",
        "lenskit",
        calls.lenskit,
        "RunAnalysis(lenskit.metrics.NDCG(k, gain='rating')).measure(found, judged).list_summary()",
        ks=ANY,
        options=(("gain", "rating"),),
    ),
    Library("RePlay", "NDCG", "replay-rec", calls.replay, "replay.metrics.NDCG(k)(found, relevant)", repeats=True),
    Library(
        "implicit",
        "ndcg_at_k",
        "implicit",
        calls.implicit,
        "implicit.evaluation.ndcg_at_k(a model that recommends what was found, train, relevant, K=k)",
    ),
    Library(
        "Cornac",
        "NDCG",
        "cornac",
        calls.cornac,
        "cornac.metrics.NDCG(k).compute(relevant, found), as ranking_eval() averages",
        ks=ANY,
    ),
    Library(
        "LibRecommender",
        "ndcg_at_k",
        "LibRecommender",
        calls.librecommender,
        "libreco.evaluation.metrics.listwise_scores(ndcg_at_k, relevant, found[:k], users, k)",
        ks=(1, 2, 3),
    ),
    *(
        Library(
            "Elliot",
            f"threshold_{threshold}",
            "elliot",
            calls.elliot,
            f"elliot's nDCG with cutoff=k and relevance threshold {threshold}",
            options=(("threshold", threshold),),
        )
        for threshold in (0, 1, 2)
    ),
    Library(
        "evidently",
        "NDCGKMetric",
        "evidently",
        calls.evidently,
        "Report([NDCGKMetric(k=k)]) on predictions that are scores",
        ks=(1, 2, 3, 5),
    ),
    *(
        Library(
            "rank_metrics.py",
            f"method_{method}",
            "cute-ranking",
            calls.rank_metrics,
            f"ndcg_at_k(grades of what was found, k, method={method}), and the mean",
            ks=ANY,
            options=(("method", method),),
            note=" (cute-ranking's copy of the gist)",
        )
        for method in (0, 1)
    ),
    Library(
        "OpenSearch",
        "NDCG",
        "search-relevance",
        calls.opensearch,
        "Evaluation.calculateNDCGAtK(hits, judgments, k), and the mean",
        repeats=True,
        dtype="text2",
    ),
    Library(
        "pyltr",
        "exp2",
        "pyltr",
        calls.pyltr,
        "pyltr.metrics.NDCG(k=k).calc_mean(qids, labels, scores)",
        ks=(1, 3, 5, 10),
        lists=True,
    ),
    Library(
        "pyltr",
        "identity",
        "pyltr",
        calls.pyltr,
        "pyltr.metrics.NDCG(k=k, gain_type='identity').calc_mean(qids, labels, scores)",
        ks=(1, 3, 5, 10),
        options=(("gain", "identity"),),
        lists=True,
    ),
    Library(
        "fastrank",
        "ndcg",
        "fastrank",
        calls.fastrank,
        "CDataset.from_numpy(scores, labels, qids).evaluate(a linear model of one weight, 'ndcg@k')",
        ks=ANY,
        lists=True,
        dtype="float32",
    ),
    *(
        Library(
            "ignite",
            variant,
            "pytorch-ignite",
            calls.ignite,
            f"ignite.metrics.rec_sys.NDCG([k]{text}), a list at a time",
            options=options,
            lists=True,
            dtype="float32",
        )
        for variant, text, options in (
            ("NDCG", "", ()),
            ("zero_hits", ", ignore_zero_hits=False", (("skip", False),)),
            ("linear", ", gain_function='linear_rank'", (("gain", "linear_rank"),)),
        )
    ),
    Library(
        "PyG",
        "LinkPredNDCG",
        "torch-geometric",
        calls.pyg,
        "LinkPredNDCG(k), a query at a time",
        dtype="float32",
    ),
    Library(
        "PyG",
        "weighted",
        "torch-geometric",
        calls.pyg,
        "LinkPredNDCG(k, weighted=True), a query at a time",
        options=(("weighted", True),),
        dtype="float32",
    ),
    *(
        Library(
            "torchrec",
            variant,
            "torchrec",
            calls.torchrec,
            f"_get_ndcg_states(..., k, {text}) of one batch, then _compute_ndcg",
            ks=ANY,
            options=options,
            lists=True,
            weights=True,
            dtype="float32",
        )
        for variant, text, options in (
            ("exponential", "exponential_gain=True, report_ndcg_as_decreasing_curve=False", ()),
            ("linear", "exponential_gain=False, report_ndcg_as_decreasing_curve=False", (("exponential", False),)),
            ("one_minus", "exponential_gain=True", (("decreasing", True),)),
        )
    ),
    Library(
        "TFMA",
        "NDCG",
        "tensorflow-model-analysis",
        calls.tfma,
        "_NDCGCombiner with top_k=k: create_accumulator, add_input of each query, extract_output",
        lists=True,
        weights=True,
    ),
    Library(
        "Transformers4Rec",
        "top_ks_k_20",
        "Transformers4Rec",
        calls.transformers4rec,
        "NDCGAt(top_ks=[k, 20]), a list at a time among items that are not relevant, compute()[0]",
        options=(("largest", 20),),
        lists=True,
        dtype="float32",
    ),
    *(
        Library(
            f"keras-rs on {backend}",
            "NDCG",
            "keras-rs",
            calls.keras_rs,
            f"keras_rs.metrics.NDCG(k=k), lists padded with label -1, KERAS_BACKEND={backend}",
            ks=ANY,
            lists=True,
            weights=True,
            dtype="float32",
        )
        for backend in ("jax", "torch")
    ),
    Library(
        "FLAML",
        "ndcg@k",
        "flaml",
        calls.flaml,
        "1 - sklearn_metric_loss_score('ndcg@k', scores, labels, groups=qids)",
        lists=True,
    ),
    Library(
        "FLAML",
        "ndcg",
        "flaml",
        calls.flaml,
        "1 - sklearn_metric_loss_score('ndcg', scores, labels, groups=qids), its default for ranking",
        ks=(None,),
        lists=True,
    ),
    Library("RecPack", "NDCGK", "recpack", calls.recpack, "NDCGK(k).calculate(relevant, found), .value and .results"),
    *(
        Library(
            "rankerEval",
            variant,
            "rankerEval",
            calls.rankereval,
            f"NDCG(k{text}).mean(NumericLabels.from_matrix(grades), Rankings.from_ranked_indices(found))",
            ks=ANY,
            options=options,
            dtype="float32",
        )
        for variant, text, options in (
            ("NDCG", "", ()),
            ("power_2", ", relevance_scaling='power', log_base='2'", (("scaling", "power"), ("log_base", "2"))),
        )
    ),
    Library(
        "whylogs",
        "scores",
        "whylogs",
        calls.whylogs,
        "log_batch_ranking_metrics(data, target_column='labels', score_column='scores', k=k), the mean",
        ks=ANY,
        lists=True,
    ),
    *(
        Library(
            "pytorchltr",
            variant,
            "pytorchltr",
            calls.pytorchltr,
            f"pytorchltr.evaluation.ndcg(scores, labels, sizes, k, exp={exponential}), lists padded with 0",
            ks=ANY,
            options=(("exponential", exponential),),
            lists=True,
            dtype="float32",
        )
        for variant, exponential in (("exponential", True), ("linear", False))
    ),
    *(
        Library(
            "RankEval",
            gain,
            "rankeval",
            calls.rankeval,
            f"rankeval.metrics.NDCG(cutoff=k, implementation='{gain}').eval(data, scores)",
            ks=ANY,
            options=(("gain", gain),),
            lists=True,
            dtype="float32",
        )
        for gain in ("exp", "flat")
    ),
    Library(
        "PT-Ranking",
        "ndcg_at_ks",
        "ptranking",
        calls.ptranking,
        "Evaluator.ndcg_at_ks(batches of one query, ks=[1, k])[1]",
        ks=(1, 3, 5, 10),
        lists=True,
        dtype="float32",
    ),
)


# -- problems ---------------------------------------------------------------------------------------------------------


def as_a_run(problem: Problem) -> Problem:
    """Lists as a run with judgments, every document retrieved."""

    def column(values: list[Any]) -> dict[str, Any]:
        return {f"d{i:03d}": value for i, value in enumerate(values)}

    return {
        "run": {query["qid"]: column(query["scores"]) for query in problem["queries"]},
        "qrels": {query["qid"]: column(query["labels"]) for query in problem["queries"]},
    }


def problems() -> tuple[dict[str, Problem], dict[str, Problem], dict[str, Problem]]:
    """The lists, the runs and the runs with repeats."""
    with gzip.open(HERE / "golden.json.gz", "rt", encoding="utf-8") as file:
        known = json.load(file)["inputs"]
    lists = {name: problem for name, problem in known.items() if "queries" in problem} | LISTS
    runs = {name: problem for name, problem in known.items() if "run" in problem} | RUNS
    # a library that is given a ranking never sees a score that is NaN
    whole = {name: problem for name, problem in lists.items() if "nan" not in json.dumps(problem)}
    runs |= {f"{name} as a run": as_a_run(problem) for name, problem in whole.items() if "weights" not in problem}
    return lists, runs, REPEATS


def arguments(problem: Problem) -> tuple[Any, Any]:
    if "queries" in problem:
        return tuple([list(map(float, query[part])) for query in problem["queries"]] for part in ("scores", "labels"))
    if "hits" in problem:
        return {qid: [(doc, s) for doc, s in hits] for qid, hits in problem["hits"].items()}, problem["qrels"]
    return {qid: [(d, float(s)) for d, s in hits.items()] for qid, hits in problem["run"].items()}, problem["qrels"]


# -- cases ------------------------------------------------------------------------------------------------------------


def text(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def record(library: Library) -> Iterator[dict[str, Any]]:
    lists, runs, repeats = problems()
    mine = lists if library.lists else runs | (repeats if library.repeats else {})
    for name, problem in mine.items():
        for k in library.ks:
            for weights in (None, problem.get("weights")) if library.weights and "weights" in problem else (None,):
                options = dict(library.options) | ({} if weights is None else {"weights": weights})
                case = {
                    "library": library.name,
                    "version": library.version,
                    "variant": library.variant,
                    "call": library.call,
                    "dtype": library.dtype,
                    "input_name": name,
                    "k": k,
                    "weights_used": weights is not None,
                    "expected": None,
                    "per_query": None,
                }
                try:
                    value, each = library.function(*json.loads(json.dumps(arguments(problem))), k, **options)
                except Exception as error:
                    yield case | {
                        "error": f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
                    }
                    continue
                if isinstance(each, dict):
                    each = {str(qid): text(float(v)) for qid, v in each.items()}
                elif each is not None:
                    each = [text(float(v)) for v in each]
                yield case | {"expected": text(float(value)), "per_query": each}


def join(parts: list[str]) -> None:
    lists, runs, repeats = problems()
    inputs = lists | runs | repeats
    cases = [case for part in parts for case in json.loads(Path(part).read_text())]
    order = {(library.name, library.variant): place for place, library in enumerate(LIBRARIES)}
    cases.sort(key=lambda case: order[case["library"], case["variant"]])
    used = {case["input_name"] for case in cases}
    with gzip.open(HERE / "golden.json.gz", "rt", encoding="utf-8") as file:
        known = json.load(file)["inputs"]
    whole = {"inputs": {name: p for name, p in inputs.items() if name in used and name not in known}, "cases": cases}
    with open(HERE / "tools.json.gz", "wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        packed.write(json.dumps(whole).encode())
    print(len(cases), "cases of", len({case["library"] for case in cases}), "libraries")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--join":
        join(sys.argv[2:])
    else:
        wanted = [library for library in LIBRARIES if library.name in sys.argv[2:]]
        found = []
        for library in wanted:
            cases = list(record(library))
            found += cases
            failed = [case for case in cases if case["expected"] is None]
            print(f"{library.name} {library.variant} {library.version}: {len(cases)} cases, {len(failed)} errors")
            for error in sorted({case["error"] for case in failed})[:4]:
                print("   ", error)
        Path(sys.argv[1]).write_text(json.dumps(found))
