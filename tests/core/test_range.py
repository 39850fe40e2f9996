"""The range over all ways to grade unjudged documents equals brute force; what it does not know it refuses."""

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

from ndcg_ml import Comparison, Flavor, RangeError, compare, evaluate, evaluate_ranked, evaluate_run, with_labels
from ndcg_ml._unjudged import judge_next

TEN_THOUSAND = pytest.param(10_000, marks=pytest.mark.exhaustive)

CLOSE = 1e-9


@dataclass(frozen=True)
class Drawn:
    """Some queries of few documents with two rankings, and a flavor whose range is searched; lists by query."""

    flavor: Flavor
    labels: list[np.ndarray]
    scores: list[np.ndarray]  # one row per system, as those of retrieved
    retrieved: list[np.ndarray]
    doc_id: list[np.ndarray]
    has_ids: bool
    rows: list[np.ndarray]  # those that a system lists, in its order
    weight: np.ndarray
    max_grade: int | None
    grades: np.ndarray

    def evaluate(self, side: int, k: Any) -> Any:
        parts = self.labels, self.scores, self.retrieved, self.doc_id
        labels, scores, retrieved, doc_id = (np.concatenate(each, axis=-1)[..., self.rows[side]] for each in parts)
        return evaluate(
            labels,
            scores[side],
            retrieved=retrieved[side],
            doc_id=doc_id if self.has_ids else None,
            qid=np.repeat(np.arange(len(self.labels)), [each.size for each in self.labels])[self.rows[side]],
            query_weight=dict(enumerate(self.weight)),
            flavor=self.flavor,
            k=k,
        )

    def have_one_ideal(self) -> bool:
        """Whether the systems retrieve the same documents of possible gain, or as many, where the ideal asks for it."""
        recall, retrieved = self.flavor.ideal == "recall", self.flavor.ideal_depth == "retrieved"
        for labels, flags, weight in zip(self.labels, self.retrieved, self.weight, strict=True):
            if not (recall or retrieved) or weight == 0 or not np.isnan(labels).any():
                continue
            flavor = self.flavor.replace(k=None, ideal="global", ties="first", empty=0.0, unjudged="zero")
            gains = evaluate(labels, flags[0] * 1.0, group=[1] * labels.size, flavor=flavor).per_query.n_relevant
            possible = np.isnan(labels) | (gains > 0)
            ranked = (flags & ~((labels < 0) & (flavor.negative == "drop"))).sum(axis=1)
            depths = np.minimum(ranked, min(self.flavor.k or 99, (possible & (flags[0] | (not recall))).sum()))
            if (recall and (flags[0] != flags[1])[possible].any()) or (retrieved and depths[0] != depths[1]):
                return False
        return True


def drawn(rng: np.random.Generator, n_systems: int) -> Drawn:
    """A problem of 2 to 4 queries with at most 5 unjudged documents in all."""
    top, half = int(rng.integers(1, 4)), rng.choice([1.0, 0.5], p=[0.8, 0.2])
    tables = (0.0, 1.0, 3.0, 7.0), (0.0, 2.0, 1.0, 4.0), (1.0, 2.0, 3.0, 9.0)
    gain = ["linear", "exponential", "binary", "judged", *tables, *tables[2:] * 2, lambda y: y if y >= 0 else 5.0]
    chosen = gain[rng.integers(4 if half < 1 else len(gain))]
    flavor = Flavor(
        gain=chosen,
        off_table="zero" if isinstance(chosen, tuple) and rng.random() < 0.3 else "raise",
        discount=[lambda rank: 0.5 + rank, "log2", "jarvelin", "reciprocal", "ln", "none"][rng.integers(6)],
        ideal=str(rng.choice(["global", "recall"], p=[0.7, 0.3])),
        ideal_depth=str(rng.choice(["k", "all", "retrieved"])),
        max_grade=top * half if rng.random() < 0.5 else None,
        k=None if rng.random() < 0.2 else int(rng.integers(1, 6)),
        short_lists=str(rng.choice(["score", "score", "score", "zero"])),
        ties=str(rng.choice(["average", "first", "last", "docid", "docid_ascending"])),
        empty=[0.0, 1.0, "skip", math.nan][rng.integers(4)],
        negative=str(rng.choice(["zero", "drop", *["allow"] * (chosen in ("binary", "judged", gain[-1]))])),
        unjudged=str(rng.choice(["zero", "condense"])),
        score_dtype=str(rng.choice(["float64", "float32"])),
    )
    spread, near = int(rng.integers(1, 8)), rng.choice([0.0, 1e-9])
    labels, scores, flags, ids, left = [], [], [], [], 5
    for _ in range(int(rng.integers(2, 5))):
        n = int(rng.integers(1, 7))
        grade = rng.integers(0, top + 1, n) * half
        if rng.random() < 0.3:
            grade *= 0
        if rng.random() < 0.2:
            grade[rng.random(n) < 0.2] = -1.0
        unjudged = (rng.random(n) < 0.4) & (np.cumsum(rng.random(n) < 2) <= left)
        left -= int(unjudged.sum())
        grade[unjudged] = np.nan
        labels.append(grade)
        scores.append(rng.integers(0, spread + 1, (2, n)) + near * rng.integers(0, 2, (2, n)))
        flag = rng.random(n) < (1.0 if rng.random() < 0.6 else 0.7)
        flags.append(np.array([flag, flag if rng.random() < 0.8 else rng.random(n) < 0.7]))
        ids.append(rng.permutation(n))
    every, retrieved = np.concatenate(labels), np.concatenate(flags, axis=1)
    # The rows of several queries alternate. Some documents that need not have a gain are listed by one system alone.
    codes, rows = (
        rng.permutation(np.concatenate([[at] * each.size for at, each in enumerate(labels)])),
        np.arange(every.size),
    )
    rows[np.argsort(codes, kind="stable")] = np.arange(every.size)
    has_ids = flavor.ties.startswith("docid") or rng.random() < 0.8
    may_lack = np.isnan(every) | ((every <= 0) & (chosen in ("linear", "exponential", "binary")))
    listed = retrieved[:, rows] | ~may_lack[rows] | (not has_ids or n_systems == 1)
    listed |= np.arange(2)[:, None] != rng.integers(0, 4, rows.size)
    if not has_ids:
        ids = np.split(np.argsort(rows), np.cumsum([each.size for each in labels])[:-1])
    weight = rng.choice([1.0, 1.0, 2.0, 0.5, 0.0], len(labels)) * np.isin(np.arange(len(labels)), codes[listed[0]])
    seen = every[every >= (-1 if flavor.negative == "allow" else 0)]
    max_grade = None if half < 1 or rng.random() < 0.5 else top - (rng.random() < 0.2)
    highest = flavor.max_grade if max_grade is None else max_grade
    scale = np.union1d(seen, [0.0] if highest is None else [0.0, highest])
    if highest is not None and highest == int(highest):
        scale = np.arange(highest + 1.0)
    every_row = [rows[each] for each in listed]
    if has_ids:  # the other system lists its queries from the last to the first
        every_row[1] = every_row[1][np.argsort(-codes[listed[1]], kind="stable")]
    return Drawn(flavor, labels, scores, flags, ids, has_ids, every_row, weight, max_grade, scale)


def totals(problem: Drawn, at: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """DCG and ideal of a query under each of its completions: each is a query of its own, judged throughout."""
    of_query, size = problem.labels[at], problem.labels[at].size
    chosen = itertools.product(problem.grades.tolist(), repeat=int(np.isnan(of_query).sum()))
    labels = [
        np.where(np.isnan(of_query), (np.array([*each, 0.0])[np.cumsum(np.isnan(of_query)) - 1]), of_query)
        for each in chosen
    ]
    n = len(labels)
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
            parts = weight * ndcg if weight else 0 * dcg, weight * counts
            axes = [1] * len(shape)
            axes[at] = dcg.size
            upper, lower = upper + parts[0].reshape(axes), lower + parts[1].reshape(axes)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = upper / lower
        nothing = math.nan if flavor.empty == "skip" else flavor.empty
        values.append(np.where(lower > 0, value, nothing))
    result = values[0] if len(values) == 1 else values[1] - values[0]
    ends = (np.nanmin, np.nanmax) if flavor.empty == "skip" else (np.min, np.max)
    return float(ends[0](result)), float(ends[1](result))


@pytest.mark.filterwarnings("ignore:each of the:UserWarning")  # drawn queries may have one document each
@pytest.mark.parametrize("number", [100, pytest.param(500, marks=pytest.mark.long), TEN_THOUSAND])
@pytest.mark.parametrize("sides", [(0,), (0, 1)], ids=["value", "difference"])
def test_a_range_equals_brute_force_over_all_completions(sides: tuple[int, ...], number: int) -> None:
    rng = np.random.default_rng(number)
    compared = refused = 0
    while compared + refused < number:
        problem = drawn(rng, len(sides))
        k, several = problem.flavor.k, compared % 2 > 0
        try:
            results = [problem.evaluate(side, (7, k) if several else k) for side in sides]
            asked = results[0] if len(sides) == 1 else compare(*results, k=k, unjudged="accept", n_resamples=9, seed=0)
        except ValueError:  # the flavor or compare refuses the problem, such as nothing but empty queries under "skip"
            continue
        try:
            found = asked.range(max_grade=problem.max_grade)
        except RangeError as error:
            found = str(error)
        low, high = by_brute_force(problem, *sides)
        highest = np.nanmax([0.0, *itertools.chain(*problem.labels)])
        reasons = {
            "at least the highest label": problem.max_grade is not None and highest > problem.max_grade,
            "same ideal": len(sides) == 2 and not problem.have_one_ideal(),
            "empty must not be nan": math.isnan(low + high),
            "max_grade must be given": problem.grades.max() <= 0 and problem.flavor.gain != "judged",
        }
        if isinstance(found, str):
            refused += 1
            assert [holds for words, holds in reasons.items() if words in found] == [True], problem
            continue
        assert not any([*reasons.values()][:3]), problem
        compared += 1
        unjudged = [int(np.isnan(each).sum()) for each in problem.labels]
        value = asked.difference if len(sides) == 2 else asked.value
        if len(sides) == 1 and several:
            found, value = found[k], value[k]
        assert abs(found.low - low) < CLOSE, problem
        assert abs(found.high - high) < CLOSE, problem
        assert found.value == pytest.approx(value, abs=0, nan_ok=True)
        assert (found.width, found.grades) == (found.high - found.low, tuple(problem.grades))
        assert found.settled == (found.low > 0 or found.high < 0 or found.width < 1e-12)
        assert "-0.0" not in {str(found.low), str(found.high)}
        if len(sides) == 1:
            assert found.n_unjudged == sum(unjudged)
            continue
        assert found.n_unjudged == np.dot(unjudged, problem.weight > 0)
        tasks = asked.judge_next(99, max_grade=problem.max_grade)
        assert tasks.n_open == len(tasks)
        if found.settled:
            assert not len(tasks)
            continue
        changes, sizes = {(task.qid, task.document): task.change for task in tasks}, {}
        for qid, labels in enumerate(problem.labels):
            dcg, ideal = np.transpose([totals(problem, qid, side) for side in sides], (1, 0, 2))
            grades = [problem.grades.size] * int(np.isnan(labels).sum())
            for axis, at in enumerate(np.flatnonzero(np.isnan(labels)).tolist()):
                rest = [np.nan_to_num(each) for each in problem.labels]  # no grade has a lower gain than 0
                rest[qid][at] = math.nan
                low, high = by_brute_force(replace(problem, labels=rest), *sides)
                change = changes.pop((qid, problem.doc_id[qid][at]), None)
                assert abs((change or 0.0) - (high - low)) < CLOSE, problem
                # A document is left out if its label changes nothing, whatever the others are.
                varied = [np.ptp(each.reshape(grades), axis=axis).max() for each in (dcg[1] - dcg[0], ideal[0])]
                assert change is None or max(varied) > 0, problem
                sizes[qid, problem.doc_id[qid][at]] = round(varied[0], 9)
        assert not changes, problem
        order = [(task.change, sizes[task.qid, task.document]) for task in tasks]
        assert order == sorted(order, reverse=True)
        assert [*asked.judge_next(2, max_grade=problem.max_grade)] == [*tasks][:2]
    assert compared > 0.6 * number  # so that refusals do not hide what is wrong


def test_a_pickled_evaluation_leaves_its_documents_out_and_says_so() -> None:
    result = evaluate([[2, math.nan]] * 2, [[2, 1]] * 2, flavor="trec_eval[ties=first]")
    assert result.range(2).high == 1  # not above, as the sum of rounded parts is
    again = pickle.loads(pickle.dumps(result))
    assert again.value == result.value
    with pytest.raises(RangeError, match="pickled and saved evaluations"):
        again.range()
    assert len(pickle.dumps(result)) < len(pickle.dumps(replace(result, _scored=None))) + 100
    for held in (result, compare(result, result, n_resamples=99)):
        assert copy.deepcopy(held).range().low == held.range().low


@pytest.mark.parametrize("changed", ["labels", "scores", "scores, to nan"])
def test_arrays_that_were_changed_since_are_refused(changed: str, tmp_path: Path) -> None:
    y_true, y_score = np.array([[2.0, math.nan, 1.0]] * 2), np.array([[3.0, 2.0, 1.0]] * 2)
    result = evaluate(y_true, y_score, flavor=Flavor(unjudged="zero"))
    both = compare(evaluate(y_true.copy(), y_score.copy(), flavor=result.flavor), result, n_resamples=9)
    assert result.range().value == result.value
    if changed == "labels":
        y_true[0, 0] = 1.0
    else:
        y_score[0, 0] = math.nan if "nan" in changed else 0.0
    for call in (result.range, both.range, lambda: result.save(tmp_path / "base.json")):
        with pytest.raises(ValueError, match="modified since"):
            call()
    assert any("unknown whether labels of unjudged documents could change the sign" in note for note in both.notes)


def test_ranked_lists_and_rows_without_document_ids_have_a_range() -> None:
    ranked = evaluate_ranked([[1, math.nan, 0]], judged=[[1, 0, 1]], flavor=Flavor(unjudged="zero"))
    found = ranked.range()
    assert found.low == found.value < found.high
    assert " 0, 1, 2, 3, 4, 5 of 1 unjudged" in str(ranked.range(5))
    assert " 0, 1, 2, 3, 4, 5, ... of 1 unjudged" in str(ranked.range(6))
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
    assert "Missing labels cannot change who leads" in str(tasks)
    assert tasks.to_jsonl() == ""
    assert any(note.startswith("Missing labels cannot change who leads: ") for note in now().notes)


def test_a_comparison_says_that_labels_could_turn_it() -> None:
    both = compared()
    [note] = [note for note in both.notes if "judge_next" in note]
    assert note.startswith("Missing labels could change who leads: over all grades of 6 unjudged documents")
    assert note in " ".join(str(both).split())
    assert note in both.to_markdown().replace("\\", "")
    assert note in both.to_dict()["notes"]
    assert not any("labels" in note for note in by_scores(*[[3.0, 1.0, 2.0]] * 2, y_true=[1, 0, 1], group=[2, 1]).notes)


def test_a_slice_is_undecided_if_labels_could_turn_it(monkeypatch):
    ids = [f"q{i}" for i in range(20)]
    qrels = {q: {"r": 1, "n": 0, "m": 0} for q in ids}
    runs = [
        {q: [*top, "m" if at < 12 else last] for at, q in enumerate(ids)} for top, last in (("nr", "u"), ("rn", "v"))
    ]
    sides = [evaluate_run(qrels, run, k=3) for run in runs]
    by = {q: "judged" if at < 12 else "open" for at, q in enumerate(ids)}
    found = {how: compare(*sides, unjudged=how, by=by, seed=0) for how in ("accept", "refuse")}
    verdicts = {how: [part.pairs[0].verdict for part in each.slices.values()] for how, each in found.items()}
    assert verdicts == {"accept": ["better", "better"], "refuse": ["better", "undecided"]}
    assert found["refuse"].verdict == "better"  # labels cannot turn the whole
    monkeypatch.setattr(judge_next, "_MOST_UNJUDGED", 15)
    many = "Whether missing labels could change who leads was not computed, which takes long: see settled"
    assert many in compare(*sides, unjudged="accept").notes


def test_three_systems_say_how_many_signs_could_turn_and_have_ranges_by_name() -> None:
    runs = {"old": OLD, "new": NEW, "same": OLD}
    systems = {name: [evaluate_run(QRELS, run, k=2)] for name, run in runs.items()}
    several = compare(systems, unjudged="accept", seed=0)
    assert any("Missing labels could change who leads in 2 of 3 pairs" in note for note in several.notes)
    alone = compared()
    assert several.range(a="old", b="new") == alone.range()
    assert alone.range(a="b", b="a").low == -alone.range().high
    assert several.range(a="old", b="same").settled
    with pytest.raises(TypeError, match="a must be one of 'old', 'new', 'same'; got None"):
        several.range()
    with pytest.raises(ValueError, match="b must be"):
        several.range(a="old", b="old")


# The range is known for the first alone.
@pytest.mark.parametrize(
    "case",
    ["", "ideal=recall", "ideal=max,max_grade=1", "ties=best", "aggregate=micro", "negative=allow", "runs", "pickled"],
)
def test_a_sign_that_labels_could_turn_is_undecided_under_refuse(case: str) -> None:
    qrels = {f"q{i}": {"good": 1, "bad": -1} for i in range(30)}
    runs = {"a": dict.fromkeys(qrels, ("u1", "bad", "good")), "b": dict.fromkeys(qrels, ("u2", "good"))}
    flavor = f"trec_eval[{case}]" if "=" in case else "trec_eval"
    forms: dict[str, Any] = {"runs": lambda one: [one, one], "pickled": lambda one: pickle.loads(pickle.dumps(one))}
    as_given = forms.get(case, lambda one: one)
    wanted = {"warn": "better", "refuse": "undecided", "accept": "better"}

    def verdicts() -> dict[str, str]:
        systems = {name: as_given(evaluate_run(qrels, run, flavor=flavor, k=2)) for name, run in runs.items()}
        return {rule: compare(systems, unjudged=rule, seed=0).pairs[0].verdict for rule in wanted}

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


def test_integer_ids_come_back_as_integers(tmp_path: Path) -> None:
    qrels, run = {1: {10: 1, 11: 0}, 2: {10: 1}}, {1: [12, 10], 2: [10]}
    other = {1: [10, 13], 2: [13]}
    both = compare(evaluate_run(qrels, run, k=2), evaluate_run(qrels, other, k=2), unjudged="accept")
    path = tmp_path / "todo.jsonl"
    tasks = both.judge_next(9)
    path.write_text(tasks.to_jsonl().replace("null", "1"))
    assert {(t.qid, t.document) for t in tasks} == {(1, 12), (1, 13), (2, 13)}
    assert with_labels(qrels, [path]) == {1: {10: 1, 11: 0, 12: 1, 13: 1}, 2: {10: 1, 13: 1}}
