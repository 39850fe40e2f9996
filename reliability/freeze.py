"""Compare public numbers on random problems before and after a change: bitwise identical, or intended.

``python -m reliability.freeze record FILE`` draws 500 problems over all presets and writes the numbers of every way to
compute NDCG. ``python -m reliability.freeze compare BEFORE AFTER`` prints the differences and exits 1 unless each
matches a line of ``INTENDED``. To record an older commit, run this file there: it uses only public names.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ndcg_ml
from ndcg_ml import PRESETS, Flavor, compare, evaluate, evaluate_part, evaluate_run, evaluate_topk

SWITCHES: dict[str, list[Any]] = {
    "ties": ["average", "first", "last", "best", "worst"],
    "ideal": ["global", "recall", "local"],
    "empty": [0.0, 1.0, "skip"],
    "k": [1, 3, 10, None],
    "aggregate": ["macro", "micro"],
    "score_dtype": ["float64", "float32"],
    "discount": ["log2", "jarvelin", "reciprocal", "ln"],
}
# Presets that are newer than the first record are not drawn, so that the problems stay the same.
_ADDED = {"rcp_ndcg", "river", "ydf"}
# Intended differences between the recorded commits: a pattern of "route: before -> after", and the reason.
INTENDED: list[tuple[str, str]] = [
    (
        r"^(compare|compare three|gate): ",
        "a change counts by its size; several pairs share random signs of the queries, which are drawn as bits",
    ),
    (r"^interval: ", "the interval of a value is one rule in closed form, without draws"),
    (r"^rcp_ndcg: absent -> ", "a new preset"),
    (
        r"^metric: 0x\S+ -> 0x",
        "the metric adds the NDCG of a batch in the order of ndcg_score, which changes the last bit",
    ),
]


@dataclass
class Problem:
    """Queries, the scores of two systems, and a flavor that differs from a preset in at most two switches."""

    flavor: Flavor
    labels: np.ndarray
    scores: np.ndarray
    other: np.ndarray
    sizes: np.ndarray
    weight: np.ndarray | None

    @property
    def doc_id(self) -> np.ndarray:
        return np.array([f"d{row:05d}" for row in range(len(self.labels))])

    @property
    def qid(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def dicts(self, scores: np.ndarray) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
        qrels: dict[str, dict[str, float]] = {}
        run: dict[str, dict[str, float]] = {}
        for row, (query, label, score) in enumerate(zip(self.qid, self.labels, scores, strict=True)):
            document = f"d{row:05d}"
            if row % 7 or row % 3:
                qrels.setdefault(f"q{query}", {})[document] = int(label)
            if row % 5:
                run.setdefault(f"q{query}", {})[document] = float(score)
        return qrels, {query: run.get(query, {}) for query in qrels}

    def padded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mask = np.arange(self.sizes.max()) < self.sizes[:, None]
        labels, scores = np.zeros(mask.shape), np.zeros(mask.shape)
        labels[mask], scores[mask] = self.labels, self.scores
        return labels, scores, mask


def drawn(number: int) -> Problem:
    """Draw one problem; the same at every commit."""
    rng = np.random.default_rng(number)
    names = sorted(set(PRESETS) - _ADDED)
    flavor = PRESETS[names[number % len(names)]]
    for switch in rng.permutation(sorted(SWITCHES))[: number % 3]:
        choice = SWITCHES[switch][rng.integers(len(SWITCHES[switch]))]
        try:
            flavor = flavor.replace(**{str(switch): choice})
        except (ValueError, TypeError):
            continue  # switches that exclude each other
    n_queries, longest = int(rng.integers(2, 40)), int(rng.choice([2, 5, 12, 40, 130]))
    sizes = rng.integers(1, longest + 1, n_queries)
    rows = int(sizes.sum())
    labels = rng.integers(0, int(rng.choice([2, 3, 5])), rows).astype(float)
    scores, other = labels + rng.normal(0, 2, rows), labels + rng.normal(0, 2, rows)
    if number % 4 == 0:
        scores, other = np.round(scores), np.round(other)
    weight = rng.integers(1, 4, n_queries).astype(float) if number % 5 == 0 else None
    return Problem(flavor, labels, scores, other, sizes, weight)


def on_arrays(p: Problem) -> Iterator[tuple[str, Callable[[], Any]]]:
    by_ids = {"flavor": p.flavor, "qid": p.qid, "query_weight": p.weight, "doc_id": p.doc_id}

    def per_query(evaluation: Any) -> list[Any]:
        return [evaluation.value, evaluation.n_empty, *(evaluation.per_query[c] for c in ("ndcg", "dcg", "idcg"))]

    yield "ids", lambda: per_query(evaluate(p.labels, p.scores, **by_ids))
    yield "sizes", lambda: ndcg_ml.ndcg_score(p.labels, p.scores, flavor=p.flavor, group=p.sizes, doc_id=p.doc_id)
    yield "dcg", lambda: ndcg_ml.dcg_score(p.labels, p.scores, flavor=p.flavor, group=p.sizes, doc_id=p.doc_id)
    yield "cut-offs", lambda: ndcg_ml.ndcg_score(p.labels, p.scores, **by_ids, k=[1, 2, 5, None])
    labels, scores, mask = p.padded()
    yield "padded", lambda: ndcg_ml.ndcg_score(labels, scores, flavor=p.flavor, mask=mask)
    half = int(p.sizes[: len(p.sizes) // 2].sum())

    def parts() -> Any:
        first, second = (
            evaluate_part(p.labels[s], p.scores[s], flavor=p.flavor, qid=p.qid[s], doc_id=p.doc_id[s])
            for s in (slice(half), slice(half, None))
        )
        return (second + first).value

    yield "parts", parts

    def interval() -> Any:
        found = evaluate(p.labels, p.scores, **by_ids).interval()
        return [found.low, found.high]

    yield "interval", interval

    def limits() -> Any:
        unjudged = np.where(np.arange(len(p.labels)) % 4 == 1, np.nan, p.labels)
        flavor = p.flavor.replace(unjudged="zero") if p.flavor.unjudged == "raise" else p.flavor
        found = evaluate(unjudged, p.scores, flavor=flavor, qid=p.qid, doc_id=p.doc_id).range(4)
        return [found.low, found.high]

    yield "range", limits


def of_pairs(result: Any) -> list[Any]:
    return [
        [pair.difference, pair.interval.low, pair.interval.high, pair.p_value, pair.verdict] for pair in result.pairs
    ]


def on_comparisons(p: Problem) -> Iterator[tuple[str, Callable[[], Any]]]:
    def systems() -> list[Any]:
        third = (p.scores + p.other) / 2
        return [evaluate(p.labels, s, flavor=p.flavor, qid=p.qid, doc_id=p.doc_id) for s in (p.scores, p.other, third)]

    yield "compare", lambda: of_pairs(compare(*systems()[:2], margin=0.02, seed=0))
    yield "compare three", lambda: of_pairs(compare(*systems(), seed=0))
    yield (
        "explain",
        lambda: [
            (part.name, part.contribution)
            for part in ndcg_ml.explain_difference(
                "sklearn@10", p.flavor, p.labels, p.scores, qid=p.qid, doc_id=p.doc_id
            ).parts
        ],
    )
    if len(p.labels) < 200:
        value = round(ndcg_ml.ndcg_score(p.labels, p.scores, flavor="lightgbm@5", qid=p.qid), 4)
        yield (
            "identify",
            lambda: any(
                str(match.flavor).startswith("lightgbm")
                for match in ndcg_ml.identify(value, p.labels, p.scores, k=5, qid=p.qid).matches
            ),
        )


def on_runs(p: Problem) -> Iterator[tuple[str, Callable[[], Any]]]:
    qrels, run = p.dicts(p.scores)
    flavor = p.flavor.replace(unjudged="zero") if p.flavor.unjudged == "raise" else p.flavor

    def values(evaluation: Any) -> list[Any]:
        return [evaluation.value, evaluation.per_query["ndcg"], evaluation.n_empty]

    yield "dicts", lambda: values(evaluate_run(qrels, run, flavor=flavor))

    def files() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            paths = Path(folder, "a.qrels"), Path(folder, "a.run"), Path(folder, "a.json"), Path(folder, "a.jsonl")
            paths[0].write_text("".join(f"{q} 0 {d} {g:g}\n" for q in qrels for d, g in qrels[q].items()))
            paths[1].write_text("".join(f"{q} Q0 {d} 1 {s!r} t\n" for q in run for d, s in run[q].items()))
            paths[2].write_text(json.dumps(run))
            rows = [{"qid": q, "docno": d, "score": s} for q in run for d, s in run[q].items()]
            paths[3].write_text("\n".join(map(json.dumps, rows)))
            return [values(evaluate_run(paths[0], path, flavor=flavor)) for path in paths[1:]]

    yield "files", files
    rng = np.random.default_rng(len(p.labels))
    ids = np.argsort(rng.random((len(p.sizes), 60)), axis=1)[:, :20]
    users, items = np.repeat(np.arange(len(p.sizes)), 3), np.tile([1, 7, 13], len(p.sizes))
    grades = rng.integers(1, 4, len(users))
    yield "topk", lambda: values(evaluate_topk(ids, (users, items, grades), flavor=flavor))


def on_torch(p: Problem) -> Iterator[tuple[str, Callable[[], Any]]]:
    import torch

    from ndcg_ml import torch as ours

    labels, scores, mask = map(torch.as_tensor, p.padded())
    yield "torch", lambda: ours.ndcg(scores, labels, flavor=p.flavor, mask=mask)
    graph = scores.clone().requires_grad_()
    yield "torch kernel", lambda: ours.ndcg(graph, labels, flavor=p.flavor, mask=mask).detach()

    def metric() -> Any:
        one = ours.NDCG(p.flavor)
        for rows in torch.arange(len(labels)).chunk(3):
            one.update(scores[rows], labels[rows], mask=mask[rows])
        return one.compute()

    yield "metric", metric
    for name in ("SoftmaxLoss", "ApproxNDCGLoss", "NeuralNDCGLoss", "LambdaNDCGLoss"):

        def loss(name: str = name) -> Any:
            leaf = scores.clone().requires_grad_()
            value = getattr(ours, name)()(leaf, labels, mask=mask)
            value.backward()
            return [value.detach(), leaf.grad]

        yield name, loss


def on_adapters(p: Problem) -> Iterator[tuple[str, Callable[[], Any]]]:
    import lightgbm
    import sklearn.base
    import xgboost

    from ndcg_ml import catboost
    from ndcg_ml import lightgbm as for_lightgbm
    from ndcg_ml import sklearn as scorers
    from ndcg_ml import xgboost as for_xgboost

    class Model(sklearn.base.RegressorMixin, sklearn.base.BaseEstimator):
        def predict(self, X: Any) -> Any:
            return X[:, 0]

    def scorer() -> Any:
        with sklearn.config_context(enable_metadata_routing=True):
            return scorers.ndcg_scorer(p.flavor)(Model(), p.scores[:, None], p.labels, groups=p.qid)

    yield "scorer", scorer
    data = lightgbm.Dataset(p.scores[:, None], p.labels, group=p.sizes, params={"verbosity": -1})
    yield "lightgbm", lambda: [v for _, v, _ in for_lightgbm.NDCGEval(p.flavor)(p.scores, data.construct())]
    matrix = xgboost.DMatrix(p.scores[:, None], p.labels, qid=p.qid)
    yield "xgboost", lambda: [v for _, v in for_xgboost.NDCGEval(p.flavor)(p.scores, matrix)]
    yield (
        "catboost",
        lambda: catboost.NDCGEval(p.flavor, pools=[(p.labels, p.qid)]).evaluate([p.scores], p.labels, None)[0],
    )


def plain(value: Any) -> Any:
    """Return the value with every number as a hexadecimal string."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.ndim:
        return [plain(item) for item in value]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, np.bool_, str)) or value is None:
        return value if not isinstance(value, np.bool_) else bool(value)
    return float(value).hex()


def record(path: Path, count: int) -> None:
    warnings.simplefilter("ignore")
    numbers: dict[str, Any] = {}
    for preset, flavor in sorted(PRESETS.items()):
        numbers[f"preset/{preset}"] = str(flavor)
    for number in range(count):
        problem = drawn(number)
        for routes in (on_arrays, on_comparisons, on_runs, on_torch, on_adapters):
            for name, call in routes(problem):
                try:
                    numbers[f"{number}/{name}"] = plain(call())
                except (ValueError, TypeError, AttributeError, RuntimeError) as error:
                    numbers[f"{number}/{name}"] = f"{type(error).__name__}: {str(error)[:90]}"
    path.write_text(json.dumps(numbers, indent=0))
    refused = Counter(name.split("/")[1] for name, value in numbers.items() if "Error:" in str(value)[:25])
    print(f"{len(numbers)} results of {count} problems; refused: {dict(refused)}")


def differences(before: dict[str, Any], after: dict[str, Any]) -> int:
    unexplained, reasons = 0, Counter[str]()
    for name in sorted({*before, *after}):
        old, new = before.get(name, "absent"), after.get(name, "absent")
        if old == new or (
            isinstance(old, str) and isinstance(new, str) and old.split(":")[0] == new.split(":")[0] != "absent"
        ):
            continue  # bitwise identical, or errors of one type
        line = f"{name.split('/')[1]}: {str(old)[:120]} -> {str(new)[:120]}"
        reason = next((why for pattern, why in INTENDED if re.search(pattern, line)), None)
        if reason is None:
            unexplained += 1
            print(name, line)
        else:
            reasons[reason] += 1
    for reason, number in reasons.items():
        print(f"{number} intended: {reason}")
    print(f"{len(after)} results, {unexplained} unexplained differences")
    return unexplained


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("path", type=Path)
    recording.add_argument("--problems", type=int, default=500)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "record":
        record(arguments.path, arguments.problems)
        return 0
    return int(differences(*(json.loads(p.read_text()) for p in (arguments.before, arguments.after))) > 0)


if __name__ == "__main__":
    sys.exit(main())
