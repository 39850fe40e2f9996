"""The range over all ways to grade unjudged documents equals brute force; what it does not know it refuses."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from oracle import Document, oracle

from ndcg_ml import Flavor, RangeError, compare, evaluate, evaluate_ranked, evaluate_run

TEN_THOUSAND = pytest.param(10_000, marks=pytest.mark.exhaustive)

CLOSE = 1e-9


# -- problems --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """Some queries of few documents with two rankings, and a flavor whose range is searched."""

    flavor: Flavor
    labels: tuple[np.ndarray, ...]
    scores: tuple[tuple[np.ndarray, np.ndarray], ...]
    retrieved: tuple[tuple[np.ndarray, np.ndarray], ...]
    doc_id: tuple[np.ndarray, ...]
    weight: np.ndarray
    grades: np.ndarray

    def evaluate(self, side: int) -> Any:
        return evaluate(
            np.concatenate(self.labels),
            np.concatenate([both[side] for both in self.scores]),
            retrieved=np.concatenate([both[side] for both in self.retrieved]),
            doc_id=np.concatenate(self.doc_id),
            group=[each.size for each in self.labels],
            query_weight=self.weight,
            flavor=self.flavor,
        )


def drawn(rng: np.random.Generator) -> Drawn:
    """A problem of 2 to 4 queries with at most 5 unjudged documents in all."""
    top = int(rng.integers(1, 4))
    gain = [
        "linear",
        "exponential",
        "binary",
        "judged",
        (0.0, 1.0, 3.0, 7.0),
        (0.0, 2.0, 1.0, 4.0),
        (1.0, 2.0, 3.0, 9.0),
    ]
    ties = str(rng.choice(["average", "first", "last", "docid", "docid_ascending"]))
    flavor = Flavor(
        gain=gain[rng.integers(len(gain))],
        discount=str(rng.choice(["log2", "jarvelin", "reciprocal", "ln", "none"])),
        ideal=str(rng.choice(["global", "recall"], p=[0.7, 0.3])),
        ideal_depth=str(rng.choice(["k", "all", "retrieved"])),
        max_grade=float(top) if rng.random() < 0.5 else None,
        k=None if rng.random() < 0.2 else int(rng.integers(1, 6)),
        short_lists=str(rng.choice(["score", "score", "score", "zero"])),
        ties=ties,
        empty=[0.0, 1.0, "skip"][rng.integers(3)],
        negative=str(rng.choice(["zero", "drop"])),
        unjudged=str(rng.choice(["zero", "condense"])),
    )
    spread = int(rng.integers(1, 8))
    labels, scores, flags, ids, left = [], [], [], [], 5
    for _ in range(int(rng.integers(2, 5))):
        n = int(rng.integers(0, 7))
        grade = rng.integers(0, top + 1, n).astype(float)
        if rng.random() < 0.3:
            grade *= 0
        if flavor.negative != "raise" and rng.random() < 0.2:
            grade[rng.random(n) < 0.2] = -1.0
        unjudged = (rng.random(n) < 0.4) & (np.cumsum(rng.random(n) < 2) <= left)
        left -= int(unjudged.sum())
        grade[unjudged] = np.nan
        labels.append(grade)
        scores.append(tuple(rng.integers(0, spread + 1, n).astype(float) for _ in range(2)))
        flag = rng.random(n) < (1.0 if rng.random() < 0.6 else 0.7)
        same = rng.random() < 0.5
        flags.append((flag, flag if same else rng.random(n) < 0.7))
        ids.append(rng.permutation(n))
    weight = rng.choice([1.0, 1.0, 2.0, 0.5], len(labels))
    every = np.concatenate(labels)
    seen = every[every >= 0]
    scale = np.arange(top + 1.0) if flavor.max_grade is not None else np.union1d(seen, 0.0)
    return Drawn(flavor, tuple(labels), tuple(scores), tuple(flags), tuple(ids), weight, scale)


# -- brute force -----------------------------------------------------------------------------------------------------


def completions(problem: Drawn, at: int) -> list[np.ndarray]:
    """Every way to give the unjudged documents of a query grades."""
    labels = problem.labels[at]
    out = []
    for grades in itertools.product(problem.grades.tolist(), repeat=int(np.isnan(labels).sum())):
        filled = labels.copy()
        filled[np.isnan(labels)] = grades
        out.append(filled)
    return out


def totals(problem: Drawn, at: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """DCG and ideal of a query under each of its completions: each is a query of its own, judged throughout."""
    labels = completions(problem, at)
    n = len(labels)
    size = labels[0].size
    result = evaluate(
        np.concatenate(labels),
        np.tile(problem.scores[at][side], n),
        group=[size] * n,
        retrieved=np.tile(problem.retrieved[at][side], n),
        doc_id=np.tile(problem.doc_id[at], n),
        flavor=problem.flavor.replace(empty=0.0),
    )
    return result.per_query.dcg, result.per_query.idcg


def by_brute_force(problem: Drawn, *sides: int) -> tuple[float, float]:
    """The least and the largest value of a system, or difference of two, over all completions of all queries."""
    flavor = problem.flavor
    rows = [[totals(problem, at, side) for at in range(len(problem.labels))] for side in sides]
    shape = [len(each[0]) for each in rows[0]]
    values = []
    for side in rows:
        upper = lower = 0.0
        for at, (dcg, ideal) in enumerate(side):
            weight = problem.weight[at]
            empty = ~(ideal > 0)
            ndcg = np.divide(dcg, ideal, out=np.zeros(dcg.shape), where=~empty)
            counts = ~empty if flavor.empty == "skip" else np.ones(dcg.shape, dtype=bool)
            ndcg = np.where(empty, 0.0 if flavor.empty == "skip" else flavor.empty, ndcg)
            parts = weight * ndcg, weight * counts
            axes = [1] * len(shape)
            axes[at] = dcg.size
            upper, lower = upper + parts[0].reshape(axes), lower + parts[1].reshape(axes)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = upper / lower
        nothing = math.nan if flavor.empty == "skip" else flavor.empty
        values.append(np.where(lower > 0, value, nothing))
    result = values[0] if len(values) == 1 else values[1] - values[0]
    return float(np.nanmin(result)), float(np.nanmax(result))


@pytest.mark.filterwarnings("ignore:each of the:UserWarning")  # drawn queries may have one document each
@pytest.mark.parametrize("number", [100, pytest.param(1_000, marks=pytest.mark.long), TEN_THOUSAND])
@pytest.mark.parametrize("sides", [(0,), (0, 1)], ids=["value", "difference"])
def test_a_range_equals_brute_force_over_all_completions(sides: tuple[int, ...], number: int) -> None:
    rng = np.random.default_rng(number)
    compared = refused = 0
    while compared + refused < number:
        problem = drawn(rng)
        try:
            results = [problem.evaluate(side) for side in sides]
            asked = results[0] if len(sides) == 1 else compare(*results, unjudged="accept", n_resamples=99, seed=0)
        except ValueError:  # the flavor or compare refuses the problem, such as nothing but empty queries under "skip"
            continue
        try:
            found = asked.range()
        except RangeError:
            refused += 1
            continue
        compared += 1
        low, high = by_brute_force(problem, *sides)
        assert abs(found.low - low) < CLOSE, problem
        assert abs(found.high - high) < CLOSE, problem
    assert compared > 0.6 * number  # so that refusals do not hide what is wrong


def test_a_range_of_one_query_equals_the_oracle_over_all_completions() -> None:
    """The oracle shares no code with the package, where the test above asks the kernel."""
    flavor = Flavor(gain="exponential", k=3, ties="average", unjudged="zero")
    grades, scores = [2.0, math.nan, 0.0, math.nan, 1.0], [3.0, 3.0, 2.0, 1.0, 1.0]
    values = []
    for one, other in itertools.product([0.0, 1.0, 2.0], repeat=2):
        labels = [2.0, one, 0.0, other, 1.0]
        values.append(oracle(flavor, [Document(y, s) for y, s in zip(labels, scores, strict=True)]).ndcg)
    found = evaluate(grades, scores, group=[5], flavor=flavor).range()
    assert (found.low, found.high) == pytest.approx((min(values), max(values)), abs=1e-12)
    assert found.low <= found.value <= found.high
    assert found.n_unjudged == 2
    assert found.grades == (0.0, 1.0, 2.0)


def test_several_cutoffs_have_a_range_each_and_max_grade_widens_it() -> None:
    qrels = {"a": {"x": 2, "y": 0}, "b": {"z": 1}}
    run = {"a": ["u", "x", "v"], "b": ["z", "w"]}
    both = evaluate_run(qrels, run, k=(1, 3)).range()
    alone = evaluate_run(qrels, run, k=3).range()
    assert list(both) == [1, 3]
    assert (both[3].low, both[3].high) == (alone.low, alone.high)
    wider = evaluate_run(qrels, run, k=3).range(max_grade=3)
    assert wider.low < alone.low
    assert wider.grades == (0.0, 1.0, 2.0, 3.0)


def test_nothing_unjudged_leaves_nothing_open() -> None:
    result = evaluate([[2, 0, 1], [1, 1, 0]], [[3, 2, 1], [1, 2, 3]], flavor="lightgbm", k=2)
    found = result.range()
    assert found.low == found.high == pytest.approx(result.value, abs=1e-15)
    assert found.settled


def test_a_pickled_evaluation_leaves_its_documents_out_and_says_so() -> None:
    result = evaluate([[2, math.nan, 1]] * 2, [[3, 2, 1]] * 2, flavor="trec_eval[ties=first]")
    again = pickle.loads(pickle.dumps(result))
    assert again.value == result.value
    with pytest.raises(RangeError, match="pickled and saved evaluations"):
        again.range()
    assert len(pickle.dumps(result)) < len(pickle.dumps(replace(result, _scored=None))) + 100
    assert copy.deepcopy(result).range().low == result.range().low


@pytest.mark.parametrize("changed", ["labels", "scores"])
def test_arrays_that_were_changed_since_are_refused(changed: str) -> None:
    y_true, y_score = np.array([[2.0, math.nan, 1.0]]), np.array([[3.0, 2.0, 1.0]])
    result = evaluate(y_true, y_score, flavor=Flavor(unjudged="zero"))
    result.range()
    if changed == "labels":
        y_true[0, 0] = 1.0
    else:
        y_score[0, 0] = 0.0
    with pytest.raises(RangeError, match="modified since"):
        result.range()


_LABELS, _SCORES = [[2.0, math.nan, 1.0, 0.0]], [[2.0, 2.0, 1.0, 0.0]]


def test_empty_nan_has_a_range_where_no_query_can_be_empty() -> None:
    ranges = []
    for empty in (0.0, math.nan):
        flavor = Flavor(unjudged="zero", empty=empty)
        sides = [evaluate(_LABELS * 2, [scores] * 2, flavor=flavor) for scores in (*_SCORES, [0.0, 3.0, 1.0, 2.0])]
        ranges.append((sides[0].range(), compare(*sides, unjudged="accept", n_resamples=99, seed=0).range()))
    assert ranges[0] == ranges[1]


def test_ranked_lists_have_a_range() -> None:
    found = evaluate_ranked([[1, math.nan, 0]], judged=[[1, 0, 1]], flavor=Flavor(unjudged="zero")).range()
    assert found.low == found.value < found.high


def test_queries_that_may_be_empty_are_in_the_mean_only_where_that_serves_it() -> None:
    flavor = Flavor(unjudged="zero", empty="skip", max_grade=1)
    labels = [[0.0, 1.0], [0.0, math.nan], [math.nan, 0.0]]
    found = evaluate(labels, [[2.0, 1.0]] * 3, flavor=flavor).range()
    second = 1 / math.log2(3)
    assert found.high == pytest.approx((second + 1) / 2, abs=1e-12)  # the first query and the third
    assert found.low == pytest.approx(second, abs=1e-12)  # the first alone, or with the second
