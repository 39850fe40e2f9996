"""Every function and adapter returns the same number, for any flavor and data.

Only inputs that a route supports are drawn. Boosting libraries store labels and weights in float32, and XGBoost's
scores are float32, so every label, weight and score here is a float32. They refuse NaN labels. Streams and torch's
metric take no query weights.
"""

from __future__ import annotations

import pytest

for needed in ("pandas", "sklearn", "lightgbm", "xgboost", "catboost", "torch", "torchmetrics"):
    pytest.importorskip(needed)

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import EllipsisType
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import pandas as pd
import sklearn
import torch
import xgboost as xgb
from hypothesis import assume, example, given
from hypothesis import strategies as st
from oracle import Document, NothingToAverageError, oracle, oracle_overall
from sklearn.base import BaseEstimator
from sklearn.model_selection import cross_validate
from strategies import Problem, examples, flavors, problems
from torch_batches import torch_kernel

import ndcg_ml
import ndcg_ml.catboost
import ndcg_ml.lightgbm
import ndcg_ml.torch
import ndcg_ml.xgboost
from ndcg_ml import Flavor, evaluate_batches, evaluate_part, ndcg_score
from ndcg_ml.sklearn import QueryRanker, ndcg_scorer

K = int | None | EllipsisType


class Case(NamedTuple):
    """A problem as arrays of contiguous queries."""

    flavor: Flavor
    k: K
    problem: Problem

    @property
    def cut(self) -> int | None:
        return self.flavor.k if isinstance(self.k, EllipsisType) else self.k

    @property
    def labels(self) -> np.ndarray:
        return np.array([d.grade for d in self.problem.documents])

    @property
    def scores(self) -> np.ndarray:
        return np.array([d.score for d in self.problem.documents])

    @property
    def group(self) -> np.ndarray:
        return np.array(self.problem.group)

    @property
    def qid(self) -> np.ndarray:
        return 7 * np.repeat(np.arange(self.group.size), self.group)

    @property
    def row_weight(self) -> np.ndarray | None:
        weights = self.problem.weights
        return None if weights is None else np.repeat(weights, self.group)

    @property
    def beside_padding(self) -> dict[str, Any]:
        """Padded lists beside two that hold no document, with ids that these two share; weights may be nan."""
        (first, *others), weights = self.problem.queries, self.problem.weights
        more = None if weights is None else (math.nan, weights[0], math.nan, *weights[1:])
        padded = Problem(((), first, (), *others), more).padded(self.flavor)
        return {**padded, "query_id": np.array([-1, 0, -1, *range(1, len(others) + 1)])}

    @property
    def interleaved(self) -> np.ndarray:
        """An order of the rows that interleaves queries. It keeps the order within each, which can break ties."""
        return np.argsort(np.concatenate([np.arange(n) for n in self.group]), kind="stable")


class Scored(BaseEstimator):
    """An estimator whose scores are the last column of X."""

    def fit(self, X: Any, y: Any) -> Scored:
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(X)[:, -1]


# -- NumPy -------------------------------------------------------------------------------------------------------------


def dense(case: Case) -> float:
    n = case.group.size
    arguments: dict[str, Any] = {} if case.problem.weights is None else {"query_weight": case.problem.weights}
    if case.labels.size == n > 1:  # without a mask, a single column is refused as ambiguous
        arguments["mask"] = np.ones((n, 1), dtype=bool)
    return ndcg_score(case.labels.reshape(n, -1), case.scores.reshape(n, -1), flavor=case.flavor, k=case.k, **arguments)


def group(case: Case) -> float:
    return ndcg_score(**case.problem.flat(case.flavor), flavor=case.flavor, k=case.k)


def mask(case: Case) -> float:
    lists = case.beside_padding
    del lists["query_id"]
    return ndcg_score(**lists, flavor=case.flavor, k=case.k)


def part_of_lists(case: Case) -> float:
    return evaluate_part(**case.beside_padding, flavor=case.flavor, k=case.k).value


def qid(case: Case) -> float:
    labels, scores, ids = (column[case.interleaved] for column in (case.labels, case.scores, case.qid))
    weight = case.problem.weights  # in the order in which queries appear
    return ndcg_score(labels, scores, qid=ids, query_weight=weight, flavor=case.flavor, k=case.k)


def prepared(case: Case) -> float:
    columns = {"y_true": case.labels, "group": case.group, "query_weight": case.problem.weights}
    return ndcg_ml.prepare(**columns, flavor=case.flavor, k=case.k)(case.scores)


def table(case: Case) -> float:
    return ndcg_ml.evaluate(**case.problem.flat(case.flavor), flavor=case.flavor, k=case.k).value


def stream(case: Case) -> float:
    n = max(1, case.labels.size // 3)  # batches split queries
    starts = range(0, case.labels.size, n)
    batches = ((case.labels[at : at + n], case.scores[at : at + n], case.qid[at : at + n]) for at in starts)
    return evaluate_batches(batches, flavor=case.flavor, k=case.k).value


def parts(case: Case) -> float:
    def part(rows: np.ndarray, weight: tuple[float, ...] | None) -> ndcg_ml.PartialEvaluation:
        columns = {"y_true": case.labels[rows], "y_score": case.scores[rows], "qid": case.qid[rows]}
        return evaluate_part(**columns, query_weight=weight, flavor=case.flavor, k=case.k)

    weight, first = case.problem.weights, case.qid == 0
    others, one = (None, None) if weight is None else (weight[1:], weight[:1])
    return (part(~first, others) + part(first, one)).value


def frame(case: Case) -> float:
    order = case.interleaved
    rows = pd.DataFrame({"qid": case.qid[order], "grade": case.labels[order], "score": case.scores[order]})
    weight = case.problem.weights
    return ndcg_ml.evaluate(rows, columns={"label": "grade"}, query_weight=weight, flavor=case.flavor, k=case.k).value


# -- torch -------------------------------------------------------------------------------------------------------------


def tensors(case: Case, padded: bool) -> dict[str, torch.Tensor]:
    found = case.beside_padding if padded else {"y_true": case.labels, "y_score": case.scores}
    names = {"y_score": "preds", "y_true": "target", "mask": "mask", "query_id": "indexes"}
    return {name: torch.from_numpy(found[of]) for of, name in names.items() if of in found}


def torch_padded(case: Case) -> float:
    metric = ndcg_ml.torch.NDCG(case.flavor, k=case.k)
    metric.update(**tensors(case, padded=True))
    return metric.compute().item()


def torch_split_padded(case: Case) -> float:
    metric = ndcg_ml.torch.NDCG(case.flavor, k=case.k, split_queries=True)
    lists = tensors(case, padded=True)
    ids = lists.pop("indexes")
    for half in (slice(0, 3), slice(3, None)):
        metric.update(**{name: part[:, half] for name, part in lists.items()}, indexes=ids)
    return metric.compute().item()


def torch_flat(case: Case) -> float:
    metric, order = ndcg_ml.torch.NDCG(case.flavor, k=case.k), torch.from_numpy(case.interleaved)
    metric.update(**{name: rows[order] for name, rows in rows_of(case).items()})
    return metric.compute().item()


def torch_split(case: Case) -> float:
    metric = ndcg_ml.torch.NDCG(case.flavor, k=case.k, split_queries=True)
    n = max(1, case.labels.size // 2)
    for at in range(0, case.labels.size, n):
        metric.update(**{name: rows[at : at + n] for name, rows in rows_of(case).items()})
    return metric.compute().item()


def rows_of(case: Case) -> dict[str, torch.Tensor]:
    return {**tensors(case, padded=False), "indexes": torch.from_numpy(case.qid)}


def torch_function_padded(case: Case) -> float:
    lists = tensors(case, padded=True)
    del lists["indexes"]
    return mean_of_queries(case, **lists)


def torch_function_flat(case: Case) -> float:
    return mean_of_queries(case, **rows_of(case))


def mean_of_queries(case: Case, preds: torch.Tensor, target: torch.Tensor, **rest: torch.Tensor) -> float:
    ndcg = ndcg_ml.torch.ndcg(preds, target, flavor=case.flavor, k=case.k, **rest)
    if "mask" in rest:  # the lists without a document have no value
        empty = ~rest["mask"].any(-1)
        assert ndcg[empty].isnan().all()
        ndcg = ndcg[~empty]
    counted = ndcg[~ndcg.isnan()] if case.flavor.empty == "skip" else ndcg
    if not counted.numel():
        raise ValueError("nothing to average")
    return float(np.average(counted.numpy()))


def torch_kernel_padded(case: Case) -> float:
    with torch_kernel():
        return torch_function_padded(case)


def torch_kernel_flat(case: Case) -> float:
    with torch_kernel():
        return torch_function_flat(case)


# -- boosting libraries ------------------------------------------------------------------------------------------------


def lightgbm_feval(case: Case) -> float:
    feval = ndcg_ml.lightgbm.NDCGEval(case.flavor, case.k)
    X, params = np.zeros((case.labels.size, 1)), {"verbosity": -1, "feature_pre_filter": False}
    data = lgb.Dataset(X, case.labels, group=case.group, weight=case.row_weight, params=params).construct()
    return single_value(feval(case.scores, data), case)


def lightgbm_eval_metric(case: Case) -> float:
    feval = ndcg_ml.lightgbm.NDCGEval(case.flavor, case.k)
    return single_value(feval(case.labels, case.scores, case.row_weight, case.group), case)


def single_value(found: Any, case: Case) -> float:
    [[name, value, *_]] = found
    assert name == case.flavor.metric_name + ("" if case.cut is None else f"@{case.cut}")
    return value


def matrix(case: Case) -> xgb.DMatrix:
    X, weight = np.zeros((case.labels.size, 1)), case.problem.weights
    return xgb.DMatrix(X, case.labels, group=case.group, weight=weight, nthread=1)


def xgboost_eval(case: Case) -> float:
    feval = ndcg_ml.xgboost.NDCGEval(case.flavor, case.k)
    return single_value(feval(case.scores.astype(np.float32), matrix(case)), case)


def xgboost_callback(case: Case) -> float:
    """Evaluate a model with learning rate 0, so that its scores are the base margin."""
    X = xgb.DMatrix(np.zeros((case.labels.size, 1)), base_margin=case.scores, nthread=1)
    rows = {"X": X, "y": case.labels, "group": case.group, "query_weight": case.problem.weights}
    callback = ndcg_ml.xgboost.NDCGCallback(case.flavor, case.k, **rows)
    data, log = xgb.DMatrix(np.zeros((1, 1)), [0.0], base_margin=[0.0], nthread=1), {}
    xgb.train({"eta": 0, "nthread": 1}, data, 1, evals_result=log, callbacks=[callback])
    return single_value([(name, *values) for name, values in log["validation"].items()], case)


def catboost_eval(case: Case) -> float:
    metric = ndcg_ml.catboost.NDCGEval(case.flavor, case.k, pools=[(case.labels, case.qid)])
    value, weight = metric.evaluate((case.scores,), case.labels.astype(np.float32), case.row_weight)
    return single_value([(metric.name, metric.get_final_error(value, weight))], case)


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def scorer(case: Case) -> float:
    rows = {"qid": case.qid, "sample_weight": case.row_weight}
    return ndcg_scorer(case.flavor, case.k)(Scored(), case.scores[:, None], case.labels, **rows)


def scorer_routed(case: Case) -> float:
    of_query = ndcg_scorer(case.flavor, case.k)
    with sklearn.config_context(enable_metadata_routing=True):
        values = {
            cross_validated(of_query, case.scores[:, None], case, params={name: case.qid}) for name in ("groups", "qid")
        }
    (value,) = values  # equal under both names
    return value


def scorer_of_column(case: Case) -> float:
    X = pd.DataFrame({"qid": case.qid, "score": case.scores})
    return cross_validated(ndcg_scorer(case.flavor, case.k, qid_column="qid"), X, case)


def cross_validated(scoring: Any, X: np.ndarray, case: Case, **arguments: Any) -> float:
    every = np.arange(case.labels.size)
    found = cross_validate(Scored(), X, case.labels, scoring=scoring, cv=[(every, every)], **arguments)
    return float(found["test_score"][0])


def query_ranker(case: Case) -> float:
    X = case.scores[:, None]
    model = QueryRanker(Scored(), flavor=case.flavor.replace(k=case.cut)).fit(X, case.labels, case.qid)
    return model.score(X, case.labels, case.qid)


# -- the property ------------------------------------------------------------------------------------------------------

WEIGHED = {
    dense, group, mask, qid, prepared, table, parts, part_of_lists, frame, lightgbm_feval, lightgbm_eval_metric,
    xgboost_eval, xgboost_callback, catboost_eval, scorer,
}  # fmt: skip
OF_JUDGED = {lightgbm_feval, xgboost_eval, catboost_eval, query_ranker}
OF_FINITE_SCORES = {xgboost_callback, scorer, scorer_routed, scorer_of_column, query_ranker}
OF_MACRO = {torch_function_padded, torch_function_flat, torch_kernel_padded, torch_kernel_flat}
OF_ORDINARY_SUMS = {torch_padded, torch_flat, torch_split, torch_split_padded}
ROUTES: list[Callable[[Case], float]] = [
    dense, group, mask, qid, prepared, table, stream, parts, part_of_lists, frame,
    torch_padded, torch_flat, torch_split, torch_split_padded,
    torch_function_padded, torch_function_flat, torch_kernel_padded, torch_kernel_flat,
    lightgbm_feval, lightgbm_eval_metric, xgboost_eval, xgboost_callback, catboost_eval,
    scorer, scorer_routed, scorer_of_column, query_ranker,
]  # fmt: skip


def as_float32(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def longer(query: tuple[Document, ...]) -> list[Document]:
    """Return more documents, for a cut-off at 10. They are not tied, because the oracle tries all orders of ties."""
    scores = np.arange(9) + 3.0625
    return [Document(grade=query[at % len(query)].grade, score=float(score)) for at, score in enumerate(scores)]


@st.composite
def cases(draw: st.DrawFn, route: Callable[[Case], float]) -> Case:
    """Draw a case that this route supports."""
    fixed = {"unjudged": "raise"} if route in OF_JUDGED else {}
    flavor = draw(
        flavors(
            ties=draw(st.sampled_from(["average", "first", "last", "best", "worst"])),
            empty=draw(st.sampled_from([0.0, 1.0, "skip", "raise"])),  # adapters refuse nan
            negative=draw(st.sampled_from(["raise", "zero", "drop"])),  # negative gains may cancel
            aggregate=draw(st.sampled_from(["macro"] if route in OF_MACRO else ["macro", "micro"])),
            **fixed,
        )
    )
    assume(not isinstance(flavor.gain, tuple) or min(flavor.gain) >= 0)
    problem = draw(problems(flavor, max_docs=5, max_queries=4, retrieved=False, finite=route in OF_FINITE_SCORES))
    kept = [at for at, query in enumerate(problem.queries) if query]
    assume(kept)
    width = min(len(problem.queries[at]) for at in kept) if route is dense else None
    largest = as_float32(1e38)  # LightGBM stores a larger label or score as 1e38
    queries = tuple(
        tuple(
            Document(
                grade=min(as_float32(d.grade), largest) if d.judged else d.grade,
                score=min(max(as_float32(d.score), -largest), largest) if math.isfinite(d.score) else d.score,
            )
            for d in problem.queries[at][:width]
        )
        for at in kept
    )
    if draw(st.booleans()):
        queries = tuple((*query, *longer(query)) for query in queries)
    weights = None
    if problem.weights is not None and route in WEIGHED:
        weights = tuple(as_float32(problem.weights[at]) for at in kept)
        assume(sum(weights) > 0)
    if flavor.aggregate == "micro" and route in OF_ORDINARY_SUMS:
        assume(max(flavor.max_grade or 0, *(d.grade for query in queries for d in query if d.judged), 0) < 500)
    k = draw(st.sampled_from([..., ..., None]) | st.integers(1, 6))
    return Case(flavor, k, Problem(queries, weights))


def check(route: Callable[[Any], float], case: Case | UnansweredRun) -> None:
    """Compare the value of this route with the oracle's, or expect an error where it has none."""
    try:
        answers = [oracle(case.flavor, query, getattr(case, "k", ...)) for query in case.problem.queries]
        expected = oracle_overall(case.flavor, answers, case.problem.weights)
    except NothingToAverageError:
        with pytest.raises(ValueError, match=r"."):
            route(case)
        return
    assert route(case) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
@examples(50)
@given(st.data())
def test_every_route_returns_the_same_number(route: Callable[[Case], float], data: st.DataObject) -> None:
    check(route, data.draw(cases(route)))


# -- queries for which nothing is retrieved ---------------------------------------------------------------------------
# Boosting libraries, scikit-learn's scorers and torch's metric have no such queries.


class UnansweredRun(NamedTuple):
    """Queries as qrels and a run, in which some queries have no documents."""

    flavor: Flavor
    problem: Problem
    how: tuple[Any, ...]
    """The entry of each query without documents in the run: an empty list, an empty dict, or None for no entry."""

    @property
    def qrels(self) -> dict[str, dict[str, float]]:
        topics = enumerate(self.problem.queries)
        return {f"q{at}": {d.doc_id: d.grade for d in query if d.judged} for at, query in topics}

    @property
    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for at, query in enumerate(self.problem.queries):
            retrieved = {d.doc_id: d.score for d in query if d.retrieved}
            if retrieved or self.how[at] is not None:
                found[f"q{at}"] = retrieved or self.how[at]
        return found

    @property
    def n_unanswered(self) -> int:
        return sum(not query[0].retrieved for query in self.problem.queries)


def counted(result: Any, case: UnansweredRun) -> float:
    assert result.n_unanswered == case.n_unanswered
    assert (result.per_query.n_retrieved == 0).sum() == case.n_unanswered
    return result.value


def run_of_dicts(case: UnansweredRun) -> float:
    return counted(ndcg_ml.evaluate_run(case.qrels, case.run, flavor=case.flavor), case)


def run_of_files(case: UnansweredRun) -> float:
    lines = [
        f"{topic} Q0 {doc} 1 {score!r} t\n" for topic, docs in case.run.items() if docs for doc, score in docs.items()
    ]
    with TemporaryDirectory() as folder:
        (run := Path(folder, "run")).write_text("".join(lines))
        return counted(ndcg_ml.evaluate_run(case.qrels, run, flavor=case.flavor), case)


def aligned(case: UnansweredRun) -> float:
    rows = ndcg_ml.align(case.qrels, case.run).arguments()
    return ndcg_score(**rows, flavor=case.flavor)


@st.composite
def unanswered_runs(draw: st.DrawFn) -> UnansweredRun:
    flavor = draw(
        flavors(
            gains=("linear", "exponential", "binary", "judged"),
            ideal="global",  # others are 0 if nothing is retrieved, which evaluate_run refuses
            ideal_depth=draw(st.sampled_from(["k", "all"])),
            ties=draw(st.sampled_from(["average", "first", "last", "best", "worst"])),
            empty=draw(st.sampled_from([0.0, 1.0, "skip", "raise"])),
            negative=draw(st.sampled_from(["raise", "zero", "drop"])),
            aggregate=draw(st.sampled_from(["macro", "micro"])),
            duplicates="raise",
        )
    )
    problem = draw(problems(flavor, max_docs=5, max_queries=5, retrieved=False, weighted=False, finite=True))
    queries = [query for query in problem.queries if query]
    answered = [draw(st.booleans()) for _ in queries]
    assume(any(answered) and not all(answered))
    queries = [
        query if has_run else tuple(replace(d, retrieved=False) for d in query)
        for query, has_run in zip(queries, answered, strict=True)
    ]
    how = tuple(draw(st.sampled_from([[], {}, None])) for _ in queries)
    return UnansweredRun(flavor, Problem(tuple(queries)), how)


@pytest.mark.parametrize("route", [run_of_dicts, run_of_files, aligned], ids=lambda route: route.__name__)
@examples(20)
@given(unanswered_runs())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_queries_without_documents_count_on_every_route(
    route: Callable[[UnansweredRun], float], case: UnansweredRun
) -> None:
    check(route, case)


CUT_MATTERS = Problem(
    tuple(
        tuple(Document(grade=float(grade), score=float(-at)) for at, grade in enumerate(grades))
        for grades in ([0, 1, 3, 0, 2, 0, 1, 0, 0, 2, 0, 3, 4], [1, 0, 0, 2, 0, 0, 0, 1, 0, 3, 2, 4, 0])
    )
)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
@pytest.mark.parametrize("preset", ["lightgbm", "lightgbm@3"])
@pytest.mark.parametrize("k", [..., None, 10])
def test_the_cutoff_is_the_flavors_own_or_the_one_given(route: Callable[[Case], float], preset: str, k: K) -> None:
    case = Case(Flavor.parse(preset), k, CUT_MATTERS)
    by_cut = {
        cut: oracle_overall(case.flavor, [oracle(case.flavor, query, cut) for query in CUT_MATTERS.queries])
        for cut in (None, 3, 10)
    }
    assert min(abs(a - b) for a in by_cut.values() for b in by_cut.values() if a != b) > 0.01
    assert route(case) == pytest.approx(by_cut[case.cut], abs=1e-12)


OF_DTYPES = {*OF_ORDINARY_SUMS, *OF_MACRO}  # a device would wait for values


SWAPPED = tuple(Document(grade=score, score=grade) for score, grade in ((0.5, 2.0), (0.25, 0.0), (0.75, 1.0)))
RANKED = tuple(Document(grade=5.0 - rank, score=float(rank)) for rank in (2, 1, 5, 4, 3))
MISTAKES = [(2 * (SWAPPED,), "as if the two were swapped"), (40 * (RANKED,), r"count up 1, 2, \.\.\. in every")]


@pytest.mark.parametrize("route", [each for each in ROUTES if each not in OF_DTYPES], ids=lambda each: each.__name__)
@pytest.mark.parametrize(("queries", "words"), MISTAKES, ids=["swapped", "ranks"])
def test_likely_mistakes_cause_a_warning(route: Callable[[Case], float], queries: Any, words: str) -> None:
    with pytest.warns(UserWarning, match=words):
        route(Case(Flavor(), ..., Problem(queries)))


# -- labels in float32 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
@pytest.mark.parametrize("ideal", ["global", "max"])
def test_max_grade_accepts_its_float32_value(route: Callable[[Case], float], ideal: str) -> None:
    top, half = as_float32(0.8), as_float32(0.4)
    assert top > 0.8
    documents = [(top, 3.0), (half, 1.0), (top, 2.0)]
    problem = Problem((tuple(Document(grade=grade, score=score) for grade, score in documents),))
    case = Case(Flavor(max_grade=0.8, ideal=ideal), ..., problem)
    expected = 1.0 if ideal == "global" else (1 + 1 / math.log2(3) + half / 0.8 / 2) / (1.5 + 1 / math.log2(3))
    assert route(case) == pytest.approx(expected, abs=1e-12)
    best = Case(case.flavor.replace(k=2), ..., problem)
    assert route(best) == 1.0  # under "max", a gain of 0.8 in float32 would give 1.00000001
    for grade in (np.nextafter(np.float32(0.8), np.float32(1)), 0.9):
        above = replace(problem.queries[0][0], grade=as_float32(grade))
        with pytest.raises(ValueError, match=r"must not exceed Flavor\.max_grade=0\.8"):
            route(Case(case.flavor, ..., Problem(((above, *problem.queries[0][1:]),))))


def test_max_grade_accepts_no_other_label_above_it() -> None:
    flavor = Flavor(max_grade=0.8)
    between = (0.8 + as_float32(0.8)) / 2
    with pytest.raises(ValueError, match=rf"max_grade=0\.8; got {between}"):
        ndcg_score([between, 0], [1, 0], group=[2], flavor=flavor)
    with pytest.raises(ValueError, match=r"max_grade=0\.8; got larger ones in 1 query"):
        ndcg_ml.torch.NDCG(flavor).update(torch.tensor([[1.0, 0]]), torch.tensor([[between, 0]], dtype=torch.float64))
    with pytest.raises(ValueError, match="must not exceed"):  # only the second label is accepted
        ndcg_score([between, as_float32(0.8)], [1, 0], group=[2], flavor=flavor)


# -- integer document ids ----------------------------------------------------------------------------------------------
# Ties are broken by the ids as text, as trec_eval does: 10 is below 9.


class Tied(NamedTuple):
    """Documents of one query with equal scores."""

    grades: list[float]
    ids: list[int]
    flavor: Flavor

    @property
    def rows(self) -> dict[str, Any]:
        return {"y_true": self.grades, "y_score": [1.0] * len(self.ids), "doc_id": self.ids}

    @property
    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({"qid": 0, "docno": self.ids, "label": self.grades, "score": 1.0})

    @property
    def judgements(self) -> dict[str, dict[int, float]]:
        return {"t": dict(zip(self.ids, self.grades, strict=True))}

    @property
    def run(self) -> dict[str, dict[int, float]]:
        return {"t": dict.fromkeys(self.ids, 1.0)}


def tied_on_torch(tied: Tied, flat: bool) -> float:
    rows = torch.ones(len(tied.ids)), torch.tensor(tied.grades), torch.tensor(tied.ids)
    scores, labels, ids = rows if flat else (column[None] for column in rows)
    indexes = torch.zeros(len(tied.ids), dtype=torch.long) if flat else None
    return ndcg_ml.torch.ndcg(scores, labels, indexes=indexes, doc_id=ids, flavor=tied.flavor).item()


def tied_on_the_torch_kernel(tied: Tied, flat: bool) -> float:
    with torch_kernel():
        return tied_on_torch(tied, flat)


def tied_in_files(tied: Tied) -> float:
    with TemporaryDirectory() as folder:
        qrels, run = Path(folder, "qrels"), Path(folder, "run")
        qrels.write_text("".join(f"t 0 {doc} {int(grade)}\n" for doc, grade in tied.judgements["t"].items()))
        run.write_text("".join(f"t Q0 {doc} 1 1.0 x\n" for doc in tied.ids))
        return ndcg_ml.evaluate_run(qrels, run, flavor=tied.flavor).value


def tied_rows(tied: Tied, **changed: Any) -> float:
    return ndcg_score(**{**tied.rows, "group": [len(tied.ids)], "flavor": tied.flavor, **changed})


TIED: dict[str, Callable[[Tied], float]] = {
    "dense": lambda t: ndcg_score(**{name: [row] for name, row in t.rows.items()}, flavor=t.flavor),
    "rows": tied_rows,
    "an array": lambda t: tied_rows(t, doc_id=np.array(t.ids)),
    "objects": lambda t: tied_rows(t, doc_id=np.array(t.ids, dtype=object)),
    "NumPy's integers": lambda t: tied_rows(t, doc_id=np.array([*np.array(t.ids)], dtype=object)),
    "text": lambda t: tied_rows(t, doc_id=[str(each) for each in t.ids]),
    "prepare": lambda t: ndcg_ml.prepare([t.grades], doc_id=[t.ids], flavor=t.flavor)([[1.0] * len(t.ids)]),
    "frame": lambda t: ndcg_ml.evaluate(t.frame, columns={}, flavor=t.flavor).value,
    "part": lambda t: evaluate_part(**t.rows, qid=[0] * len(t.ids), flavor=t.flavor).value,
    "dicts": lambda t: ndcg_ml.evaluate_run(t.judgements, t.run, flavor=t.flavor).value,
    "files": tied_in_files,
    "run frames": lambda t: ndcg_ml.evaluate_run(t.frame, t.frame, flavor=t.flavor).value,
    "align": lambda t: ndcg_score(**ndcg_ml.align(t.judgements, t.run).arguments(), flavor=t.flavor),
    "torch": lambda t: tied_on_torch(t, flat=False),
    "torch kernel, flat": lambda t: tied_on_the_torch_kernel(t, flat=True),
    "torch kernel, padded": lambda t: tied_on_the_torch_kernel(t, flat=False),
}  # fmt: skip
# Prefixes of each other, neighbours of powers of ten, and the limits of 64 bits.
LARGEST = 2**63 - 1
IDS = st.sampled_from([0, 1, 10, 100, 12, 123, 9, 99, 10**17, 10**18, 10**18 - 1, 10**18 + 1, LARGEST, LARGEST - 1])
IDS = (IDS | st.integers(0, 1200) | st.integers(0, LARGEST)).flatmap(
    lambda each: st.sampled_from([each, each, -each - 1])
)


@pytest.mark.parametrize("route", TIED.values(), ids=TIED)
@examples(20)
@given(ids=st.lists(IDS, min_size=2, max_size=12, unique=True), ties=st.sampled_from(["docid", "docid_ascending"]))
@example(ids=[9, 10], ties="docid")
@example(ids=[10**9 + 9, 10**9 + 10], ties="docid")
def test_every_route_compares_integers_as_text(route: Callable[[Tied], float], ids: list[int], ties: Any) -> None:
    in_order = sorted(ids, key=str, reverse=ties == "docid")
    grades = [float(2 ** (in_order.index(each) % 5) + 1) for each in ids]
    expected = ndcg_score([[grades[ids.index(each)] for each in in_order]], [[-float(at) for at in range(len(ids))]])
    assert route(Tied(grades, ids, Flavor(ties=ties))) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("ids", [[2**70, 2**71], np.array([2**63, 7], dtype=np.uint64), [10**30, 9]])
def test_ids_beyond_64_bits_and_unsigned(ids: Any) -> None:
    largest = max(range(2), key=lambda at: str(ids[at]))
    tied = Tied([float(at == largest) for at in range(2)], ids, Flavor(ties="docid", k=1))
    assert tied_rows(tied) == 1.0
    if isinstance(ids, np.ndarray):
        for flat in (False, True):
            assert tied_on_torch(tied, flat) == tied_on_the_torch_kernel(tied, flat) == 1.0


# -- names in logs -----------------------------------------------------------------------------------------------------

_LISTS = {"y": [1, 0, 2], "group": [3]}
NAMED: dict[str, Callable[..., Any]] = {
    "LightGBM": lambda **named: ndcg_ml.lightgbm.NDCGEval("lightgbm", **named),
    "StopEarly": lambda **named: ndcg_ml.lightgbm.StopEarly("lightgbm", **named),
    "XGBoost": lambda **named: ndcg_ml.xgboost.NDCGEval("lightgbm", **named),
    "NDCGCallback": lambda **named: ndcg_ml.xgboost.NDCGCallback("lightgbm", X=np.zeros((3, 1)), **_LISTS, **named),
    "CatBoost": lambda **named: ndcg_ml.catboost.NDCGEval("lightgbm", pools=[([1, 0, 2], [1, 1, 1])], **named),
    "ndcg_scorer": lambda **named: ndcg_scorer("lightgbm", **named),
}


@pytest.mark.parametrize("make", NAMED)
def test_a_name_of_ones_own_is_logged_and_is_never_that_of_a_librarys_metric(make: str) -> None:
    k: Any = (5,) if make == "ndcg_scorer" else 5
    for name, logged in (("mine", "ndcg_mine"), ("ndcg_mine", "ndcg_mine"), ("auc", "ndcg_auc"), ("ndcg", "ndcg_ndcg")):
        made = NAMED[make](k=k, name=name)
        assert f"name={name!r}" in repr(made)
        names = getattr(made, "eval", made).names
        assert names == (f"{logged}_at_5" if make == "ndcg_scorer" else f"{logged}@5",)
    for refused in ("", "a:b", 3):
        with pytest.raises(
            (TypeError, ValueError), match=r"name must consist of letters, digits and '_', such as 'mine'"
        ):
            NAMED[make](k=k, name=refused)


def test_one_number_of_a_scorer_has_no_name() -> None:
    with pytest.raises(ValueError, match=r"name must be left out with one cut-off.*scoring={'mine': ndcg_scorer"):
        ndcg_scorer("lightgbm", k=5, name="mine")
