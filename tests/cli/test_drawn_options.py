"""Commands with any options, on the same data in every form: they print what the functions return for its arrays."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pytest
from command_line import RUN, document, invoke, text
from hypothesis import given
from hypothesis import strategies as st

from ndcg_ml import Evaluation, Flavor, align, compare, evaluate, evaluate_run, explain_difference
from ndcg_ml.gating import gate

pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(2)
# The first document of each topic has the name of the topic.
ROWS = [(f"t{i}", f"d{j}" if j else f"t{i}") for i in range(20) for j in range(RNG.integers(2, 7))]
QID, DOCNO = zip(*ROWS, strict=True)
GRADES = RNG.integers(0, 3, len(ROWS)).tolist()
SCORES = {name: RNG.normal(GRADES, noise).round(1).tolist() for name, noise in (("score", 1), ("two", 2), ("three", 9))}
EXCLUDED = {"t1": ["d1"], "t5": ["t5", "d2"]}
KIND = {query: "even" if i % 3 else "third" for i, query in enumerate(dict.fromkeys(QID))}
USER = {query: f"u{i // 2}" for i, query in enumerate(dict.fromkeys(QID))}


def nested(values, at):
    """Dicts without some of the documents, and without two or three of the topics."""
    kept = [i for i, (query, _) in enumerate(ROWS) if i % 7 != at and int(query[1:]) % 9 != at]
    return {query: {ROWS[i][1]: values[i] for i in kept if ROWS[i][0] == query} for query in (ROWS[i][0] for i in kept)}


QRELS = nested(GRADES, 3)
RUNS = {name: nested(scores, at) for at, (name, scores) in enumerate(SCORES.items())}


@pytest.fixture(autouse=True)
def _written(files):
    columns = {"qid": QID, "docno": DOCNO, "label": GRADES, **SCORES}
    columns |= {name: [of[query] for query in QID] for name, of in (("kind", KIND), ("user", USER))}
    tables = {
        "labels": [(grade, f"qid:{query}") for grade, query in zip(GRADES, QID, strict=True)],
        "excluded": [(), *((query, name) for query, names in EXCLUDED.items() for name in names * 2)],
        "kind.txt": KIND.items(),
        "user.txt": USER.items(),
        **{f"{name}.scores": zip(scores, strict=True) for name, scores in SCORES.items()},
    }
    for name, rows in tables.items():
        Path(files, name).write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    for name, dicts in {"judged": QRELS, **{f"{name}.run": run for name, run in RUNS.items()}}.items():
        Path(files, name).write_text(json.dumps(dicts))
    rows = [columns, *zip(*columns.values(), strict=True)]
    Path(files, "table.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


FORMS = {
    "run": ("--qrels judged", "--run {}", "{}.run"),
    "letor": ("--labels labels", "--scores {}", "{}.scores"),
    "table": ("--table table.csv", "--score {}", "{}"),
}
FLAVORS = ["lightgbm@3[unjudged=zero,ties=average,ideal=global]", "ndcg[unjudged=zero,empty=skip]"]


class Drawn:
    """A form of the data, a flavor, cut-offs and other options: as words of a command and as arguments."""

    def __init__(self, data, *forms, several=False, flavored=True, excluding=True):
        self.draw, self.words, self.selection = data.draw, [], {}
        self.form = self.draw(st.sampled_from(forms or tuple(FORMS)))
        self.judgements, self._system, self.name = FORMS[self.form]
        if self.form == "run":
            self.selection["queries"] = self.option("queries", ["qrels", "run", "both"], "qrels")
            exclude = self.option("exclude", ["identical", "excluded"] * excluding, None)
            self.selection["exclude"] = EXCLUDED if exclude == "excluded" else exclude
        self.words_of_data = self.words[:]
        usual, last = "trec_eval" if self.form == "run" else "sklearn", ["trec_eval[empty=1]"] * (self.form != "letor")
        self.flavor = Flavor.parse(self.option("flavor", [*FLAVORS, *last] * flavored, usual))
        ks = self.draw(st.lists(st.sampled_from([1, 2, 5, None]), max_size=3 if several else 1))
        self.words += [word for k in ks for word in ("-k", "none" if k is None else str(k))]
        self.k = tuple(dict.fromkeys(ks)) or ...
        self.ks = (self.flavor.k,) if self.k is ... else self.k

    def option(self, name, values, default):
        value = self.draw(st.sampled_from([None, *values]))
        self.words += [] if value is None else [f"--{name}", str(value)]
        return default if value is None else value

    def labels(self, option, **of):
        """Draw labels of the queries, in a file or a column of the table. Return this name with the labels, or None."""
        given = {f"{name}.txt": labels for name, labels in of.items()} | (of if self.form == "table" else {})
        name = self.option(option, given, None)
        return name and {name: given[name]}

    def source(self, name):
        usual = self.form == "table" and name == "score"
        return self.judgements if usual else f"{self.judgements} {self._system.format(self.name.format(name))}"

    def read(self, *names):
        """The line that says which columns were read."""
        return f"table.csv: qid, docno, label, {', '.join(names)}\n" * (self.form == "table")

    def arrays(self, name):
        if self.form == "run":
            return align(QRELS, RUNS[name], **self.selection).arguments()
        return {
            "y_true": GRADES,
            "y_score": SCORES[name],
            "qid": QID,
            "doc_id": DOCNO if self.form == "table" else None,
        }

    def evaluation(self, name, k, **more):
        if self.form == "run":
            return evaluate_run(QRELS, RUNS[name], flavor=self.flavor, k=k, **self.selection, **more)
        return evaluate(**self.arrays(name), flavor=self.flavor, k=k, **more)


def check(result, *words, code=0, read=""):
    """Check that a command prints this result, as text and as JSON, and the columns that it read."""
    for asked, expected in (
        (words, f"{result}\n{read}"),
        ([*words, "--json"], f"{json.dumps(result.to_dict(), indent=2)}\n"),
    ):
        found = invoke(" ".join(asked))
        assert (found.exit_code, found.stdout) == (code, expected)


@given(st.data())
def test_eval(data):
    drawn = Drawn(data, several=True)
    by = drawn.labels("by", kind=KIND, user=USER)
    expected = drawn.evaluation("score", drawn.ks, by=by)
    command = " ".join(["eval", drawn.source("score"), *drawn.words])
    per_query = data.draw(st.booleans())
    found = document(f"{command} --save saved" + " --per-query" * per_query)
    assert found == json.loads(json.dumps(expected.to_dict(per_query)))
    assert Evaluation.load("saved").to_dict(True) == drawn.evaluation("score", drawn.ks).to_dict(True)
    shown = "\n\n".join(map(str, filter(None, [expected, expected.slices]))) + f"\n{drawn.read('score')}"
    assert text(command) == shown
    head, *rows = text(f"{command} --per-query").removesuffix(f"\n\n{shown}").replace(" - ", " nan ").splitlines()
    counts = {"documents": "n_docs", "judged": "n_judged", "relevant": "n_relevant", "tied": "tied"}
    assert head.split() == ["qid", *(f"ndcg{'' if k is None else f'@{k}'}" for k in drawn.ks), *counts]
    table = expected.per_query
    columns = [table.qid, *table.ndcg.reshape(len(rows), -1).T, *(table[name] for name in counts.values())]
    for row, cells in zip(rows, zip(*columns, strict=True), strict=True):
        assert row.split() == [f"{cell:.6f}" if isinstance(cell, float) else str(cell) for cell in cells]


@given(st.data())
def test_compare(data):
    drawn = Drawn(data)
    names = data.draw(st.permutations(sorted(SCORES)))[: data.draw(st.integers(2, 3))]
    systems = [drawn.name.format(name) for name in names]
    how = {
        "baseline": drawn.option("baseline", systems, None),
        "margin": drawn.option("margin", [0.01, 0.5], None),
        "unjudged": drawn.option("unjudged", ["warn", "accept"], "warn").replace("warn", "note"),
        "confidence": drawn.option("confidence", [0.5, 0.999], 0.95),
        "n_resamples": drawn.option("resamples", [100, 2000], 9999),
        "seed": drawn.option("seed", [1, 7], 0),
    }
    by, cluster = drawn.labels("by", kind=KIND, user=USER), drawn.labels("cluster", user=USER)
    how |= {"by": by and {"by": next(iter(by.values()))}, "cluster": cluster and USER}
    expected = compare(*(drawn.evaluation(name, drawn.ks[0]) for name in names), names=systems, missing="drop", **how)
    check(expected, "compare", *systems, drawn.judgements, *drawn.words, read=drawn.read(*systems))


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        (["folder/run", "better"], ["run", "better"]),
        (["folder/run", "run"], ["folder/run", "run"]),
        (["run", "better", "run"], ["a", "b", "c"]),
        (["run"] * 28, [*ascii_lowercase, "s27", "s28"]),
    ],
)
def test_systems_have_short_names(files, runs, names):
    (files / "folder").mkdir()
    (files / "folder" / "run").write_text(RUN)
    found = document(f"compare {' '.join(runs)} --qrels qrels --baseline {runs[1]}")
    assert [each["name"] for each in found["systems"]] == names
    assert found["baseline"] == names[runs.index(runs[1])]


@given(st.data())
def test_gate(data):
    drawn = Drawn(data, several=True)
    base, new = (drawn.evaluation(name, drawn.ks) for name in ("score", "two"))
    assert invoke(" ".join(["eval", drawn.source("score"), *drawn.words, "--save saved"])).exit_code == 0
    drawn.words = [*drawn.words_of_data, "--margin", "0.1"]
    how = {
        "by": drawn.labels("by", kind=KIND, user=USER),
        "on_change": drawn.option("on-change", ["refuse", "drop"], "refuse"),
        "drop_at_most": drawn.option("drop-at-most", [0.01, 0.5], 0.1),
        "confidence": drawn.option("confidence", [0.5, 0.999], 0.95),
        "seed": drawn.option("seed", [1, 7], 0),
    }
    command, refused = ["gate saved", drawn.source("two"), *drawn.words], ""
    try:
        expected = replace(gate(base, new, margin=0.1, **how), saved=date.today())
    except ValueError as error:
        refused = f"Error: {error}\n"
    if refused:
        found = invoke(" ".join(command))
        assert (found.exit_code, found.stdout, found.stderr) == (1, "", refused)
    else:
        code = {"worse": 3, "undecided": 4}.get(expected.outcome, 0)
        check(expected, *command, code=code, read=drawn.read("two"))


@given(st.data())
def test_judge_next(data):
    drawn = Drawn(data, "run", excluding=False)
    n, top = drawn.option("-n", [1, 3], 20), drawn.option("max-grade", [2, 4], None)
    one, two = (drawn.evaluation(name, drawn.ks[0]) for name in ("score", "two"))
    expected = compare(one, two, missing="drop", unjudged="accept").judge_next(n, top)
    command = " ".join(["judge-next score.run two.run", drawn.judgements, *drawn.words]).replace("---n", "-n")
    assert text(command) == f"{expected}\n"
    assert text(f"{command} --output -") == expected.to_jsonl()


@given(st.data())
def test_explain(data):
    drawn = Drawn(data, flavored=False)
    a, b = data.draw(st.permutations([*FLAVORS, "sklearn[unjudged=zero]"]))[:2]
    expected = explain_difference(a, b, **drawn.arrays("score"), k=... if drawn.k is ... else drawn.k[0])
    check(expected, "explain", drawn.source("score"), *drawn.words, "--a", a, "--b", b, read=drawn.read("score"))
