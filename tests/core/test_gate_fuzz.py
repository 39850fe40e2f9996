"""The gate sees every change of one thing that can move a number, or compares right."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest

from ndcg_ml import Evaluation, Flavor, evaluate, evaluate_run
from ndcg_ml._decide.gate import GateError, gate

FLAVORS = [
    "trec_eval",
    "sklearn",
    "lightgbm",
    "trec_eval[ideal=given]",
    "sklearn[ties=first]",
    "trec_eval[ideal=local]",
]
SAID = {
    "labels": "judgements",
    "documents": "judgements",
    "columns": "judgements",
    "exclusions": "exclu",
    "queries": "quer",
    "flavor": "flavor",
    "k": "cut-offs",
    "weights": "weights",
}


@dataclass(frozen=True)
class Setting:
    """All that an evaluation depends on, but for the scores."""

    kind: str
    labels: dict[str, dict[str, int]]
    column: str
    excluded: dict[str, list[str]] | None
    queries: str
    flavor: Flavor
    k: int
    weights: dict[str, float] | None

    def evaluate(self, scores):
        column = {
            q: {d: grade * (1 + (self.column == "other")) for d, grade in v.items()} for q, v in self.labels.items()
        }
        if self.kind == "run":
            return evaluate_run(
                column, scores, flavor=self.flavor, k=self.k, queries=self.queries, exclude=self.excluded
            )
        rows = [(q, d, grade, scores[q].get(d, 0.0)) for q, v in column.items() for d, grade in v.items()]
        qid, docs, y_true, y_score = zip(*rows, strict=True)
        weights = None if self.weights is None else {q: self.weights[q] for q in column}
        return evaluate(
            list(y_true), list(y_score), qid=list(qid), flavor=self.flavor, k=self.k, query_weight=weights,
            doc_id=list(docs) if self.kind == "documents" else None,
        )  # fmt: skip


def drawn(rng):
    """A setting, and the scores of a system."""
    kind = rng.choice(["run", "documents", "positions"])
    labels = {f"q{i}": {f"d{j}": rng.randrange(3) for j in range(rng.randrange(3, 7))} for i in range(8)}
    scores = {q: {d: float(rng.randrange(4)) for d in [*v, "new"]} for q, v in labels.items()}
    excluded = (
        {q: rng.sample(sorted(v), 1) for q, v in labels.items()} if kind == "run" and rng.random() < 0.5 else None
    )
    weights = (
        {q: float(rng.randrange(1, 4)) for q in [*labels, "more"]} if kind != "run" and rng.random() < 0.7 else None
    )
    flavor = Flavor.parse(rng.choice(FLAVORS)).replace(empty=0.0, unjudged="zero")
    if kind == "positions" and flavor.ties == "docid":
        flavor = flavor.replace(ties="average")
    return Setting(kind, labels, "one", excluded, "qrels", flavor, 3, weights), {
        **scores,
        "more": {"d0": 1.0, "d1": 0.0},
    }


def changed(rng, setting, what):
    """The setting with a change of this one thing; None where its kind of data does not have it."""
    labels = {q: dict(v) for q, v in setting.labels.items()}
    query = rng.choice(sorted(labels))
    documents = labels[query]
    one, other = rng.sample(sorted(documents), 2)
    if what == "labels":
        # The order of the rows of a table is that of its system.
        change = rng.choice(["grade", "swap", "add", "remove", *["order"] * (setting.kind == "run")])
        if change == "grade":
            documents[one] += 1
        elif change == "swap":
            documents[one], documents[other] = documents[other], documents[one]
        elif change == "add":
            documents["new"] = rng.randrange(3)
        elif change == "remove":
            del documents[one]
        else:
            labels[query] = dict(rng.sample(sorted(documents.items()), len(documents)))
    elif what == "documents" and setting.kind != "positions":
        labels[query] = {"renamed" if d == one else d: grade for d, grade in documents.items()}
    elif what == "queries":
        if setting.kind == "run" and rng.random() < 0.3:
            return replace(setting, queries="both")
        if rng.random() < 0.5:
            del labels[query]
        else:
            labels["more"] = {"d0": 0, "d1": 1}
    elif what == "exclusions" and setting.kind == "run":
        if setting.excluded is None or rng.random() < 0.3:
            return replace(setting, excluded={query: [one]} if setting.excluded is None else None)
        return replace(setting, excluded={**setting.excluded, query: [other]})
    elif what == "flavor":
        return replace(setting, flavor=setting.flavor.replace(discount="reciprocal"))
    elif what == "k":
        return replace(setting, k=setting.k + rng.choice([-1, 1]))
    elif what == "weights" and setting.weights is not None:
        weights = None if rng.random() < 0.3 else {**setting.weights, query: setting.weights[query] + 1}
        return replace(setting, weights=weights)
    elif what == "columns":
        return replace(setting, column="other")
    else:
        return None
    return replace(setting, labels=labels)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n", [60, pytest.param(500, marks=pytest.mark.long)])
def test_no_change_passes_unseen(tmp_path, n):
    for seed in range(n):
        rng = random.Random(seed)
        setting, scores = drawn(rng)
        old = setting.evaluate(scores)
        old.save(tmp_path / "base.json")
        base = Evaluation.load(tmp_path / "base.json")
        assert gate(base, setting.evaluate(scores), margin=0.01).comparisons[setting.k].difference == 0.0
        other = None
        while other is None:
            what = rng.choice(sorted(SAID))
            other = changed(rng, setting, what)
        new = other.evaluate(scores)  # the system is the same, so that every difference is one of the setting
        said = None
        try:
            found = gate(base, new, margin=0.01)
        except GateError as error:
            said = str(error)
        if said is not None:
            assert SAID[what] in said, (seed, what)
        else:
            assert new.value == old.value, (seed, what)
            assert found.comparisons[setting.k].difference == 0.0, (seed, what)


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
def test_what_is_left_out_has_the_value_of_its_queries(aggregate):
    rng = np.random.default_rng(0)
    labels, scores, group = rng.integers(0, 4, 60), rng.normal(size=60), np.full(20, 3)
    changed = labels.copy()
    changed[:3], changed[30:33] = 3 - labels[:3], 3 - labels[30:33]
    arguments = {"group": group, "query_weight": np.arange(1.0, 21.0), "flavor": Flavor(aggregate=aggregate)}
    base, new = (evaluate(each, scores, **arguments) for each in (labels, changed))
    left_out = np.isin(np.arange(60) // 3, [0, 10])
    part = evaluate(labels[left_out], scores[left_out], **{**arguments, "group": [3, 3], "query_weight": [1.0, 11.0]})
    note = gate(base, new, margin=0.1, on_change="drop").changes[-1]
    assert note.endswith(f"(together {part.value:.4f}; all 20 queries {base.value:.4f})")


def test_segments_are_named_in_the_forms_of_compare():
    labels, scores, qid = np.tile([2, 0, 1], 24), np.random.default_rng(0).normal(size=72), np.repeat(np.arange(24), 3)
    base, new = (evaluate(labels, each, qid=qid) for each in (scores, -scores))
    names = {query: "even" if query % 2 == 0 else "odd" for query in range(24)}
    columns = {"slice": names}, {"slice": [names[query] for query in range(24)]}
    alone, *others = (gate(base, new, margin=0.1, by=by).checks for by in (names, *columns))
    assert [check.segment for check in alone] == ["", "slice=even", "slice=odd"]
    assert all(checks == alone for checks in others)
    with pytest.raises(ValueError, match="must have a label for each query; got None for query 3"):
        gate(base, new, margin=0.1, by={**names, 3: None})
