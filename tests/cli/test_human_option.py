"""``--human``: a model's labels, corrected by people's, on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import invoke

from ndcg_ml import compare, correct_labels, evaluate_run


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    topics, documents = [f"t{i}" for i in range(80)], [f"d{i}" for i in range(8)]
    people = {t: {d: int(rng.integers(0, 4)) for d in documents} for t in topics}
    model = {t: {d: min(3, g + int(rng.random() < 0.2)) for d, g in of.items()} for t, of in people.items()}
    some = rng.choice(topics, 30, replace=False).tolist()
    for name, labels in (("model", model), ("people", {t: people[t] for t in some})):
        lines = [f"{t} 0 {d} {g}\n" for t, of in labels.items() for d, g in of.items()]
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    for name, noise in (("old", 2.0), ("new", 1.0)):
        scores = {t: {d: g + rng.normal(0, noise) for d, g in of.items()} for t, of in people.items()}
        lines = [f"{t} Q0 {d} 0 {s} x\n" for t, of in scores.items() for d, s in of.items()]
        (tmp_path / f"{name}.run").write_text("".join(lines))


def corrected(run):
    return correct_labels(evaluate_run("model.txt", run, k=5), evaluate_run("people.txt", run, k=5))


@pytest.mark.usefixtures("files")
def test_the_commands_print_what_python_does():
    result = invoke("eval --qrels model.txt --human people.txt --run new.run -k 5")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(corrected("new.run"))
    as_json = invoke("eval --qrels model.txt --human people.txt --run new.run -k 5 --json")
    assert json.loads(as_json.stdout) == json.loads(json.dumps(corrected("new.run").to_dict()))
    result = invoke("compare old.run new.run --qrels model.txt --human people.txt -k 5 --margin 0.02")
    assert result.exit_code == 0, result.output
    both = compare(
        corrected("old.run"),
        corrected("new.run"),
        names=["old.run", "new.run"],
        margin=0.02,
    )
    assert result.stdout.strip() == str(both)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("eval --qrels model.txt --human people.txt --run new.run -k 5 -k 10", "--human requires a single -k"),
        ("eval --qrels model.txt --human people.txt --run new.run -k 5 --per-query", "--human requires a single -k"),
        ("compare old.run new.run --qrels model.txt --human people.txt --by people.txt", "combined with --by"),
        ("eval --qrels model.txt --human people.txt --run new.run --queries both", "--human requires --qrels"),
        ("eval --qrels people.txt --human model.txt --run new.run", "every query of human must be among"),
    ],
)
def test_what_does_not_go_together_is_refused(words, message):
    result = invoke(words)
    assert result.exit_code == 2
    assert message in result.stderr
