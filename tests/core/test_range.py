"""The range over all ways to grade unjudged documents equals brute force; what it does not know it refuses."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import by_scores
from oracle import Document, oracle

from ndcg_ml import Comparison, Flavor, RangeError, compare, evaluate, evaluate_ranked, evaluate_run, with_labels

TEN_THOUSAND = pytest.param(10_000, marks=pytest.mark.exhaustive)

CLOSE = 1e-9


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
        order = [*range(len(self.labels))][:: 1 - 2 * side]  # the second system has its queries in another order
        return evaluate(
            np.concatenate([self.labels[at] for at in order]),
            np.concatenate([self.scores[at][side] for at in order]),
            retrieved=np.concatenate([self.retrieved[at][side] for at in order]),
            doc_id=np.concatenate([self.doc_id[at] for at in order]),
            qid=np.repeat(order, [self.labels[at].size for at in order]),
            query_weight=self.weight[order],
            flavor=self.flavor,
        )


def drawn(rng: np.random.Generator) -> Drawn:
    """A problem of 2 to 4 queries with at most 5 unjudged documents in all."""
    top = int(rng.integers(1, 4))
    tables = (0.0, 1.0, 3.0, 7.0), (0.0, 2.0, 1.0, 4.0), (1.0, 2.0, 3.0, 9.0)
    gain = ["linear", "exponential", "binary", "judged", *tables, *tables[2:] * 2]
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
        for task in asked.judge_next(3) if len(sides) == 2 else ():
            rest = [np.where(np.isnan(each), problem.grades[0], each) for each in problem.labels]
            rest[task.qid][problem.doc_id[task.qid] == task.document] = math.nan
            low, high = by_brute_force(replace(problem, labels=tuple(rest)), *sides)
            assert abs(task.change - (high - low)) < CLOSE, problem
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


def test_a_pickled_evaluation_leaves_its_documents_out_and_says_so() -> None:
    result = evaluate([[2, math.nan, 1]] * 2, [[3, 2, 1]] * 2, flavor="trec_eval[ties=first]")
    again = pickle.loads(pickle.dumps(result))
    assert again.value == result.value
    with pytest.raises(RangeError, match="pickled and saved evaluations"):
        again.range()
    assert len(pickle.dumps(result)) < len(pickle.dumps(replace(result, _scored=None))) + 100
    for held in (result, compare(result, result, n_resamples=99)):
        assert copy.deepcopy(held).range().low == held.range().low


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


def test_empty_nan_has_a_range_where_no_query_can_be_empty() -> None:
    ranges, labels = [], [[2.0, math.nan, 1.0, 0.0]] * 2
    for empty in (0.0, math.nan):
        flavor = Flavor(unjudged="zero", empty=empty)
        sides = [
            evaluate(labels, [scores] * 2, flavor=flavor) for scores in ([2.0, 2.0, 1.0, 0.0], [0.0, 3.0, 1.0, 2.0])
        ]
        ranges.append((sides[0].range(), compare(*sides, unjudged="accept", n_resamples=99, seed=0).range()))
    assert ranges[0] == ranges[1]


def test_ranked_lists_and_rows_without_document_ids_have_a_range() -> None:
    found = evaluate_ranked([[1, math.nan, 0]], judged=[[1, 0, 1]], flavor=Flavor(unjudged="zero")).range()
    assert found.low == found.value < found.high
    lists, flavor = [[1.0, math.nan], [0.0, 1.0]], Flavor(unjudged="zero")
    rows = [evaluate(lists, scores, flavor=flavor) for scores in ([[1, 2], [1, 2]], [[2, 1], [1, 2]])]
    assert compare(*rows).range().high > 0


QRELS = {"q1": {"d1": 2, "d2": 0}, "q2": {"d5": 1}, "q3": {"d1": 1}}
OLD = {"q1": ["d1", "d2", "d9"], "q2": ["d6", "d5"], "q3": ["d1", "d3"]}
NEW = {"q1": ["d2", "d3", "d1"], "q2": ["d5", "d7"], "q3": ["d4", "d1"]}
OPEN = [("q1", "d9"), ("q1", "d3"), ("q2", "d6"), ("q2", "d7"), ("q3", "d3"), ("q3", "d4")]


def compared(qrels: Any = QRELS, flavor: str = "trec_eval", k: int = 2, **options: Any) -> Comparison:
    old, new = (evaluate_run(qrels, run, flavor=flavor, k=k) for run in (OLD, NEW))
    return compare(old, new, unjudged="accept", seed=0, **options)


def labelled(*labels: tuple[str, str, float]) -> dict[str, dict[str, float]]:
    qrels: dict[str, dict[str, float]] = {qid: dict(documents) for qid, documents in QRELS.items()}
    for qid, document, grade in labels:
        qrels[qid][document] = grade
    return qrels


def all_differences(k: int = 2) -> list[float]:
    """The difference under every completion, each evaluated from its qrels."""
    out = []
    for grades in itertools.product((0.0, 1.0, 2.0), repeat=len(OPEN)):
        qrels = labelled(*((*names, grade) for names, grade in zip(OPEN, grades, strict=True)))
        old, new = (evaluate_run(qrels, run, k=k).value for run in (OLD, NEW))
        out.append(new - old)
    return out


def test_the_range_of_two_runs_is_that_of_all_qrels_that_complete_theirs() -> None:
    found, every = compared().range(), all_differences()
    assert found.low == pytest.approx(min(every), abs=1e-12)
    assert found.high == pytest.approx(max(every), abs=1e-12)
    assert found.value == compared().difference
    assert not compared().settled


def test_documents_that_can_change_most_come_first() -> None:
    tasks = compared().judge_next(10)
    changes = [task.change for task in tasks]
    assert changes == sorted(changes, reverse=True)
    # d9 stands beyond the cut-off, and its label alone changes the ideal of q1 or nothing.
    assert {(task.qid, task.document) for task in tasks} == set(OPEN)
    assert len(compared().judge_next(2)) == 2


@pytest.mark.parametrize("switch", ["empty=0", "empty=skip", "gain=exponential"])
def test_what_a_document_can_change_is_what_relabelling_it_changes(switch: str) -> None:
    extra = {"d1": 0.0}

    def differences(qrels: dict[str, dict[str, float]]) -> Comparison:
        runs = [{**run, "q4": names} for run, names in ((OLD, ["d1", "d8"]), (NEW, ["d8", "d1"]))]
        results = [evaluate_run(qrels, run, flavor=f"trec_eval[{switch}]", k=2) for run in runs]
        return compare(*results, unjudged="accept", seed=0)

    names = [*OPEN, ("q4", "d8")]
    tasks = differences({**labelled(), "q4": dict(extra)}).judge_next(10)
    assert ("q4", "d8") in {(task.qid, task.document) for task in tasks}
    for task in tasks:
        values = []
        for grade in (0.0, 1.0, 2.0):
            qrels = {**labelled(*((*name, 0.0) for name in names if name[0] != "q4")), "q4": {**extra, "d8": 0.0}}
            qrels[task.qid][task.document] = grade
            values.append(differences(qrels).difference)
        assert task.change == pytest.approx(max(values) - min(values), abs=1e-12), task


def test_labels_in_the_order_of_judge_next_settle_the_sign_and_then_no_more_are_asked_for() -> None:
    topics = [f"q{i}" for i in range(8)]
    qrels: dict[str, dict[str, float]] = {topic: {"elsewhere": 1.0} for topic in topics}
    runs = [{topic: [name] for topic in topics} for name in ("worse", "better")]

    def now() -> Comparison:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # at first nothing that is retrieved is judged
            return compare(*(evaluate_run(qrels, run, k=1) for run in runs), unjudged="accept", seed=0)

    asked = 0
    while tasks := now().judge_next(1):
        [task] = tasks
        qrels[task.qid][task.document] = float(task.document == "better")
        asked += 1
    assert now().settled
    assert tasks.settled
    assert 8 <= asked < 16
    assert "settled" in str(tasks)
    assert tasks.to_jsonl() == ""
    assert any(note.startswith("settled: ") for note in now().notes)


def test_a_comparison_says_that_labels_could_turn_it() -> None:
    both = compared()
    [note] = [note for note in both.notes if "judge_next" in note]
    assert note.startswith("labels could change its sign: over all grades of 6 unjudged documents")
    assert note in " ".join(str(both).split())
    assert note in both.to_markdown().replace("\\", "")
    assert note in both.to_dict()["notes"]
    assert not any("labels" in note for note in by_scores(*[[3.0, 1.0, 2.0]] * 2, y_true=[1, 0, 1], group=[2, 1]).notes)


def test_three_systems_say_how_many_signs_could_turn_and_have_ranges_by_name() -> None:
    runs = {"old": OLD, "new": NEW, "same": OLD}
    systems = {name: [evaluate_run(QRELS, run, k=2)] for name, run in runs.items()}
    several = compare(systems, unjudged="accept", seed=0)
    assert any("could change the sign of 2 of 3 differences" in note for note in several.notes)
    alone = compared()
    assert several.range(a="old", b="new") == alone.range()
    assert several.range(a="old", b="same").settled
    with pytest.raises(TypeError, match="a must be one of 'old', 'new', 'same'; got None"):
        several.range()
    with pytest.raises(ValueError, match="b must be"):
        several.range(a="old", b="old")


# The range is refused under all switches but the first.
@pytest.mark.parametrize("switch", ["", "ideal=recall", "ideal=max,max_grade=1", "ties=best", "aggregate=micro"])
def test_a_sign_that_labels_could_turn_is_undecided_under_refuse(switch: str) -> None:
    qrels = {f"q{i}": {"good": 1, "bad": 0} for i in range(30)}
    runs = [dict.fromkeys(qrels, documents) for documents in (["u1", "bad", "good"], ["u2", "good"])]
    wanted = {"warn": "better", "refuse": "undecided", "accept": "better"}

    def verdicts() -> dict[str, str]:
        flavor = f"trec_eval[{switch}]" if switch else "trec_eval"
        results = [evaluate_run(qrels, run, flavor=flavor, k=2) for run in runs]
        return {rule: compare(*results, unjudged=rule, seed=0).pairs[0].verdict for rule in wanted}

    assert verdicts() == wanted
    qrels = {topic: {**labels, "u1": 0, "u2": 0} for topic, labels in qrels.items()}
    assert verdicts() == dict.fromkeys(wanted, "better")


def test_the_file_is_filled_in_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "todo.jsonl"
    tasks = compared().judge_next(3)
    assert tasks.to_jsonl(path) == path.read_text("utf-8")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [(line["qid"], line["docno"], line["label"]) for line in lines] == [(t.qid, t.document, None) for t in tasks]
    assert with_labels(QRELS, [path]) == QRELS
    for line, label in zip(lines, (1, 0.0, None), strict=True):
        line["label"] = label
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    judged = with_labels(QRELS, [path])
    assert judged == labelled(
        (tasks.tasks[0].qid, tasks.tasks[0].document, 1.0), (tasks.tasks[1].qid, tasks.tasks[1].document, 0.0)
    )
    answered = {(task.qid, task.document) for task in tasks.tasks[:2]}
    assert not answered & {(task.qid, task.document) for task in compared(judged).judge_next(10)}


def test_a_document_without_a_gain_may_be_in_one_list_alone() -> None:
    flavor, labels = Flavor(unjudged="zero", k=2), ([1, math.nan, math.nan], [1, 0, math.nan])
    ids, scores = (["x", "y", "u"], ["x", "z", "y"]), ([3, 2, 1], [1, 3, 2])
    a, b = (
        evaluate([y] * 2, [s] * 2, doc_id=[i] * 2, flavor=flavor) for y, s, i in zip(labels, scores, ids, strict=True)
    )
    found = compare(a, b, unjudged="accept").range(2)
    # x is first in a and third in b: a loss of 1, over an ideal of x alone, or of y and u with grade 2.
    assert (found.low, found.high) == pytest.approx((-1, -1 / (2 + 2 / math.log2(3))))


def test_a_query_without_weight_may_be_empty_without_a_value() -> None:
    flavor = Flavor(unjudged="zero", empty=math.nan)
    found = evaluate([[1, 0, math.nan], [0, math.nan, 0]], [[3, 2, 1]] * 2, flavor=flavor, query_weight=[1, 0]).range(1)
    assert (found.low, found.high) == pytest.approx((1.5 / (1 + 1 / math.log2(3)), 1.0))


def test_integer_ids_come_back_as_integers(tmp_path: Path) -> None:
    qrels, run = {1: {10: 1, 11: 0}, 2: {10: 1}}, {1: [12, 10], 2: [10]}
    other = {1: [10, 13], 2: [13]}
    both = compare(evaluate_run(qrels, run, k=2), evaluate_run(qrels, other, k=2), unjudged="accept")
    path = tmp_path / "todo.jsonl"
    tasks = both.judge_next(9)
    path.write_text(tasks.to_jsonl().replace("null", "1"))
    assert {(t.qid, t.document) for t in tasks} == {(1, 12), (1, 13), (2, 13)}
    assert with_labels(qrels, [path]) == {1: {10: 1, 11: 0, 12: 1, 13: 1}, 2: {10: 1, 13: 1}}
