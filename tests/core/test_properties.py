"""Properties of every problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import SORTED_IDEALS, Problem, examples, flavors, problems

from ndcg_ml import Evaluation, Flavor, evaluate, ndcg_score

pytestmark = pytest.mark.usefixtures("kernel")

COLUMNS = ("ndcg", "dcg", "idcg", "empty", "n_docs", "n_judged", "n_relevant", "tied", "weight")


def table(result: Evaluation, order: Any = slice(None), columns: tuple[str, ...] = COLUMNS) -> dict[str, Any]:
    return {name: result.per_query[name][order] for name in columns}


def assert_same(got: dict[str, Any], expected: dict[str, Any], rtol: float = 0.0) -> None:
    for name, column in expected.items():
        np.testing.assert_allclose(got[name], column, rtol=rtol, atol=rtol, err_msg=name)


def shuffled(arguments: dict[str, Any], order: np.ndarray) -> dict[str, Any]:
    """Return the rows of a problem with qid in another order."""
    return {
        name: np.asarray(value)[order] if name not in ("query_weight",) else value for name, value in arguments.items()
    }


def with_ids(problem: Problem, flavor: Flavor) -> dict[str, Any]:
    """Return the arguments with qid instead of group. No query may be without documents."""
    arguments = problem.flat(flavor)
    arguments["qid"] = np.repeat(np.arange(len(problem.queries)), arguments.pop("group"))
    return arguments


def filled(problem: Problem) -> Problem:
    """Return the problem without queries that have no documents."""
    kept = [at for at, query in enumerate(problem.queries) if query]
    assume(kept)
    weights = None if problem.weights is None else tuple(problem.weights[at] for at in kept)
    assume(weights is None or sum(weights) > 0)
    return Problem(tuple(problem.queries[at] for at in kept), weights)


@examples(60)
@pytest.mark.parametrize("ties", ["average", "best", "worst", "docid"])
@given(st.data())
def test_the_order_of_rows_does_not_matter(ties: str, data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0, ties=ties, ideals=SORTED_IDEALS))
    problem = data.draw(problems(flavor))
    order = [data.draw(st.permutations(range(n))) for n in problem.group]
    moved = Problem(
        tuple(tuple(query[i] for i in at) for query, at in zip(problem.queries, order, strict=True)), problem.weights
    )
    assert_same(
        table(evaluate(flavor=flavor, **moved.flat(flavor))),
        table(evaluate(flavor=flavor, **problem.flat(flavor))),
        rtol=1e-12,
    )


@examples(80)
@given(st.data())
def test_last_is_first_on_reversed_rows(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0, ties="first", ideals=SORTED_IDEALS))
    problem = data.draw(problems(flavor))
    reversed_rows = Problem(tuple(query[::-1] for query in problem.queries), problem.weights)
    last = evaluate(flavor=flavor.replace(ties="last"), **reversed_rows.flat(flavor))
    assert_same(table(last), table(evaluate(flavor=flavor, **problem.flat(flavor))))


def test_first_and_last_differ_where_rows_are_tied() -> None:
    rows: dict[str, Any] = {"y_true": [0, 1], "y_score": [1, 1], "group": [2], "k": 1}
    assert ndcg_score(flavor=Flavor(ties="first"), **rows) == 0.0
    assert ndcg_score(flavor=Flavor(ties="last"), **rows) == 1.0


@examples(80)
@given(st.data())
def test_best_and_worst_bound_every_other_rule(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0, ties="best", ideals=("global", "max"), negative="zero"))
    problem = data.draw(problems(flavor))
    arguments = problem.flat()
    dcg = {
        ties: evaluate(flavor=flavor.replace(ties=ties), **arguments).per_query.dcg
        for ties in ("best", "average", "first", "last", "docid", "worst")
    }
    for ties in ("average", "first", "last", "docid"):
        slack = 1e-12 * np.abs(dcg["best"])
        assert (dcg["worst"] <= dcg[ties] + slack).all()
        assert (dcg[ties] <= dcg["best"] + slack).all()


@examples(80)
@given(st.data())
def test_permuting_queries_permutes_the_table(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0, aggregate="macro"))
    problem = data.draw(problems(flavor, min_queries=2))
    order = data.draw(st.permutations(range(len(problem.queries))))
    weights = None if problem.weights is None else tuple(problem.weights[i] for i in order)
    moved = Problem(tuple(problem.queries[i] for i in order), weights)
    here = evaluate(flavor=flavor, **problem.flat(flavor))
    there = evaluate(flavor=flavor, **moved.flat(flavor))
    assert_same(table(there), table(here, list(order)), rtol=1e-12)
    assert there.value == pytest.approx(here.value, rel=1e-12, abs=1e-15)


def as_objects(ids: np.ndarray) -> np.ndarray:
    out = np.empty(ids.size, dtype=object)
    out[:] = [("query", int(i)) for i in ids]
    return out


ID_TYPES: dict[str, Callable[[np.ndarray], Any]] = {
    "int64": lambda ids: ids * 7 - 3,
    "uint8": lambda ids: ids.astype(np.uint8),
    "big-endian": lambda ids: ids.astype(">i8"),
    "float": lambda ids: ids / 3,
    "text": lambda ids: np.array([f"q{i}" for i in ids]),
    "text of any length": lambda ids: np.array(
        [f"q{i}" for i in ids], getattr(np.dtypes, "StringDType", lambda: "U9")()
    ),
    "bytes": lambda ids: np.array([f"q{i}".encode() for i in ids]),
    "objects": as_objects,
    "list of str": lambda ids: [f"q{i}" for i in ids],
    "dates": lambda ids: np.datetime64("2024-01-01") + ids,
}


@examples(15)
@pytest.mark.parametrize("name", ID_TYPES)
@given(st.data())
def test_ids_of_any_type_in_any_order_equal_sizes_and_padding(name: str, data: st.DataObject) -> None:
    check_ids(ID_TYPES[name], data)


def check_ids(as_type: Callable[[np.ndarray], Any], data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0, aggregate="macro", ties="worst", ideals=SORTED_IDEALS))
    problem = filled(data.draw(problems(flavor)))
    by_size = evaluate(flavor=flavor, **problem.flat(flavor))
    by_row = evaluate(flavor=flavor, **problem.padded(flavor))
    assert_same(table(by_row), table(by_size))
    assert by_row.value == by_size.value
    arguments = with_ids(problem, flavor)
    order = np.array(data.draw(st.permutations(range(len(arguments["qid"])))))
    moved = shuffled(arguments, order)
    seen = list(dict.fromkeys(moved["qid"].tolist()))  # queries are in order of first appearance
    if "query_weight" in moved:
        moved["query_weight"] = moved["query_weight"][seen]
    moved["qid"] = as_type(moved["qid"])
    by_id = evaluate(flavor=flavor, **moved)
    assert_same(table(by_id), table(by_size, seen), rtol=1e-12)
    assert by_id.value == pytest.approx(by_size.value, rel=1e-12, abs=1e-15)
    first_rows = [list(moved["qid"]).index(i) for i in dict.fromkeys(moved["qid"])]
    assert [str(i) for i in by_id.per_query.qid] == [str(np.asarray(moved["qid"])[row]) for row in first_rows]


@examples(150)
@given(st.data())
def test_ndcg_lies_between_0_and_1(data: st.DataObject) -> None:
    flavor = data.draw(
        flavors(
            empty=0.0,
            negative="zero",
            gains=("linear", "exponential", "binary"),
            ideals=SORTED_IDEALS,
            ideal_depth="k",
        )
    )
    assume(flavor.recall_depth is None)
    problem = data.draw(problems(flavor))
    result = evaluate(flavor=flavor, **problem.flat(flavor))
    assert isinstance(result.value, float)
    for value in (result.value, *result.per_query.ndcg):
        assert 0.0 <= value <= 1.0


@examples(150)
@given(st.data())
def test_a_perfect_ranking_is_exactly_1(data: st.DataObject) -> None:
    flavor = data.draw(
        flavors(
            empty=1.0,
            negative="zero",
            unjudged="zero",
            gains=("linear", "exponential", "binary", "callable"),
            ideals=("global", "recall", "local"),
            ideal_depth="k",
            recall_depth=None,
            max_grade=None,
            short_lists="score",
        )
    )
    problem = data.draw(problems(flavor, retrieved=False))
    arguments = problem.flat(flavor)
    grades = np.nan_to_num(arguments["y_true"], nan=-1.0)
    arguments["y_score"] = np.unique(grades, return_inverse=True)[1]  # 0, 1, 2, ... are not tied in float32 either
    result = evaluate(flavor=flavor, **arguments)
    assert result.per_query.ndcg.tolist() == [1.0] * len(problem.queries)
    assert result.value == 1.0


@examples(100)
@given(st.data())
def test_several_cut_offs_equal_each_alone(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0))
    problem = data.draw(problems(flavor))
    ks = data.draw(st.lists(st.none() | st.integers(1, 12), min_size=1, max_size=5, unique=True))
    arguments = problem.flat(flavor)
    together = evaluate(flavor=flavor, k=ks, **arguments)
    assert together.k == tuple(ks)
    assert isinstance(together.value, dict)
    assert isinstance(together.n_empty, dict)
    assert list(together.value) == ks
    for column, k in enumerate(ks):
        alone = evaluate(flavor=flavor, k=k, **arguments)
        assert together.value[k] == pytest.approx(alone.value, rel=1e-13, abs=1e-15)
        assert together.n_empty[k] == alone.n_empty
        assert alone.flavor == flavor.replace(k=k)
        for name in ("ndcg", "dcg", "idcg", "empty"):
            np.testing.assert_allclose(
                together.per_query[name][:, column], alone.per_query[name], rtol=1e-12, atol=1e-300
            )


@examples(80)
@given(st.data())
def test_padding_may_hold_anything(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0))
    problem = data.draw(problems(flavor))
    plain = evaluate(flavor=flavor, **problem.flat(flavor))
    for garbage, extra in [(math.nan, 1), (math.inf, 3), (-math.inf, 2), (1e308, 0), (-7.5, 4)]:
        padded = evaluate(flavor=flavor, **problem.padded(flavor, garbage, extra))
        assert_same(table(padded), table(plain))
        assert padded.value == plain.value


@examples(60)
@given(st.data(), st.sampled_from([1.0, -3.0, 1024.0]))
def test_adding_a_constant_to_the_scores_changes_nothing(data: st.DataObject, constant: float) -> None:
    flavor = data.draw(flavors(empty=0.0))
    whole = st.integers(-4, 4).map(float) | st.just(-math.inf)
    arguments = data.draw(problems(flavor, scores=whole)).flat(flavor)
    before = ndcg_score(flavor=flavor, **arguments)
    for moved in (arguments["y_score"] + constant, arguments["y_score"] * 2, np.arctan(arguments["y_score"])):
        assert ndcg_score(flavor=flavor, **{**arguments, "y_score": moved}) == before


def check_form(change: Callable[[np.ndarray], Any], flavor: str, ids: bool, sizes: bool = True) -> None:
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 4, 60).astype(float), rng.integers(-6, 6, 60).astype(float)
    group, doc_id = np.array([20, 1, 0, 39]), rng.permutation(60)
    expected = ndcg_score(y, s, group=group, doc_id=doc_id, flavor=flavor)
    assert ndcg_score(change(y), change(s), group=group, doc_id=doc_id, flavor=flavor) == expected
    if ids:
        group_of_form = change(group) if sizes else group
        assert ndcg_score(y, s, group=group_of_form, doc_id=change(doc_id), flavor=flavor) == expected
        qid = np.repeat(np.arange(group.size), group)
        by_id = ndcg_score(y, s, qid=change(qid), doc_id=doc_id, flavor=flavor)
        assert by_id == ndcg_score(y, s, group=group[group > 0], doc_id=doc_id, flavor=flavor)


@examples(60)
@given(st.data())
def test_an_integer_weight_repeats_a_query(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0))
    problem = data.draw(problems(flavor, weighted=False))
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(problem.queries), max_size=len(problem.queries)))
    assume(sum(times) > 0)
    repeated = Problem(tuple(q for q, n in zip(problem.queries, times, strict=True) for _ in range(n)))
    weighted = Problem(problem.queries, tuple(float(n) for n in times))
    assert ndcg_score(flavor=flavor, **weighted.flat(flavor)) == pytest.approx(
        ndcg_score(flavor=flavor, **repeated.flat(flavor)), rel=1e-9, abs=1e-12
    )
