"""docs/conformance.json is what the oracle computes, every kernel passes its cases, and its page runs.

A case is a list of queries with the value of each and their mean. It says what it distinguishes: the rules whose usual
alternatives give another value. ``python tests/peers/test_conformance.py --write`` writes the file.
"""

import functools
import json
import math
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from oracle import Document, NothingToAverageError, RefusedLabelError, TiedRepeatError, oracle, oracle_overall
from printed import assert_shown, run_blocks

from ndcg_ml import PRESETS, Flavor, evaluate

FILE = Path(__file__).parents[2] / "docs" / "conformance.json"
PAGE = FILE.with_name("which.md")
TOLERANCE = 1e-9
CASES, QUERIES = 34, 3
CUTS = (1, 2, 3, 5, 10, None)

_OF_PRESETS = ("sklearn", "trec_eval", "lightgbm", "catboost", "burges2005", "recbole", "implicit", "jarvelin2002")
_OF_PRESETS += ("librecommender", "elasticsearch", "opensearch")
DEFINITIONS = {"textbook": Flavor(unjudged="zero"), **{name: PRESETS[name].replace(k=None) for name in _OF_PRESETS}}
_WORDS: dict[str, dict[Any, str]] = {
    "gain": {
        "linear": "Gain: the grade.",
        "exponential": "Gain: 2^grade - 1.",
        "binary": "Gain: 1 for a positive grade.",
    },
    "discount": {"log2": "", "jarvelin": "Discount: 1 at rank 1, then 1 / log2(rank)."},
    "ideal": {
        "global": "Ideal: all judged documents, each once.",
        "recall": "Ideal: the documents of the list.",
        "local": "Ideal: the first k retrieved documents, best first.",
    },
    "ideal_depth": {"k": "", "retrieved": "It has as many ranks as there are retrieved documents, at most k."},
    "ties": {
        "average": "Tied documents share the mean of their discounts.",
        "first": "Tied documents keep their order.",
        "worst": "Tied documents are ranked by grade, lowest first.",
        "docid": "Tied documents are ranked by id, in descending order.",
    },
    "duplicates": {"raise": "", "count": "A document that is listed twice counts twice."},
    "empty": {
        0.0: "A query without a positive grade scores 0.",
        1.0: "A query without a positive grade scores 1.",
        "skip": "A query without a positive grade is left out of the mean.",
    },
}
# What a case distinguishes: other switches, of which one must change a value.
RULES: dict[str, list[dict[str, Any]]] = {
    "gain": [{"gain": gain} for gain in ("linear", "exponential", "binary")],
    "discount": [{"discount": discount} for discount in ("log2", "jarvelin", "reciprocal")],
    "ideal over judged or retrieved documents": [{"ideal": ideal} for ideal in ("global", "recall")],
    "ties": [{"ties": ties} for ties in ("average", "first", "last", "worst")],
    "empty query": [{"empty": empty} for empty in (0.0, 1.0, "skip")],
    "unjudged document": [{"unjudged": "condense"}, {"unjudged": "zero"}],
    "list shorter than k": [{"ideal_depth": "retrieved"}, {"ideal_depth": "k"}],
    "cut-off of the ideal": [{"ideal_depth": "all"}, {"ideal_depth": "k"}],
    "repeated document": [{"duplicates": "first"}, {"duplicates": "count"}],
}
SWITCHES = tuple(field.name for field in fields(Flavor) if field.name not in ("k", "aggregate"))
Query = list[Document]


def value(flavor: Flavor, queries: list[Query], k: int | None) -> tuple[list[float | None], float] | None:
    """Return the value of each query, None if it is left out, and the mean; None if the flavor defines none."""
    try:
        answers = [oracle(flavor, query, k) for query in queries]
        mean = oracle_overall(flavor, answers)
    except (AssertionError, NothingToAverageError, RefusedLabelError, TiedRepeatError):
        return None
    return [None if isinstance(answer.ndcg, str) else answer.ndcg for answer in answers], mean


def same(one: Any, other: Any) -> bool:
    """Whether two results of ``value`` agree."""
    if one is None or other is None:
        return one is other
    return all(
        a is b is None or (a is not None and b is not None and math.isclose(a, b, rel_tol=0, abs_tol=TOLERANCE))
        for a, b in zip([*one[0], one[1]], [*other[0], other[1]], strict=True)
    )


def drawn(rng: random.Random, number: int, flavor: Flavor) -> Query:
    """Draw a query: tied or not, empty or not, with what the definition allows."""
    lists, runs = flavor.unjudged == "raise", flavor.unjudged != "raise"
    size = rng.randint(1, 6)
    top = 0 if rng.random() < 0.15 else rng.choice((1, 2, 4))
    scores = [rng.randint(1, 3 if number % 2 else 99) for _ in range(size)]
    names = rng.sample(range(10), size)
    query = []
    for score, name in zip(scores, names, strict=True):
        grade = math.nan if runs and rng.random() < 0.2 else float(rng.randint(0, top))
        retrieved = lists or math.isnan(grade) or rng.random() < 0.8
        query.append(Document(grade, float(score) if retrieved else 0.0, retrieved, f"d{name}"))
    listed = [document for document in query if document.retrieved]
    if flavor.duplicates != "raise" and listed and rng.random() < 0.5:
        again = rng.choice(listed)
        query.append(Document(again.grade, again.score - 0.5, True, again.doc_id))
    return query


def cases(name: str) -> Iterator[dict[str, Any]]:
    """Return the cases of a definition."""
    flavor = DEFINITIONS[name]
    rng = random.Random(name)
    number = 0
    while number < CASES:
        k = CUTS[number % len(CUTS)]
        queries = [drawn(rng, number, flavor) for _ in range(rng.randint(1, QUERIES))]
        found = value(flavor, queries, k)
        if found is None or not any(document.retrieved for query in queries for document in query):
            continue
        number += 1
        yield {
            "definition": name,
            "k": k,
            "queries": [
                {
                    "documents": [document.doc_id for document in query],
                    "grades": [None if math.isnan(document.grade) else document.grade for document in query],
                    "scores": [document.score if document.retrieved else None for document in query],
                    "ndcg": ndcg,
                }
                for query, ndcg in zip(queries, found[0], strict=True)
            ],
            "mean": found[1],
            "distinguishes": [rule for rule in RULES if differs(flavor, rule, queries, k, found)],
        }


def differs(flavor: Flavor, rule: str, queries: list[Query], k: int | None, found: Any) -> bool:
    """Whether an alternative of a rule gives another value."""
    for change in RULES[rule]:
        try:
            other = flavor.replace(**change)
        except ValueError:
            continue
        one = value(other, queries, k)
        if one is not None and not same(one, found):
            return True
    return False


def queries_of(case: dict[str, Any]) -> list[Query]:
    """Return the documents of a case."""
    return [
        [
            Document(math.nan if grade is None else grade, 0.0 if score is None else score, score is not None, name)
            for name, grade, score in zip(query["documents"], query["grades"], query["scores"], strict=True)
        ]
        for query in case["queries"]
    ]


def of_presets(every: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return, for each preset, the definition whose cases it passes, or the nearest one and what differs."""
    found: dict[str, dict[str, Any]] = {}
    # Many presets differ from a definition in the same switch.
    all_pass = functools.cache(lambda one, name: all(passes(one, case) for case in every if case["definition"] == name))
    for preset, flavor in PRESETS.items():
        others = {name: differing(flavor.replace(k=None), name, all_pass) for name in DEFINITIONS}
        nearest = min(others, key=lambda name: (len(others[name]), name != preset))
        found[preset] = (
            {"nearest": nearest, "differs in": others[nearest]} if others[nearest] else {"definition": nearest}
        )
    return found


def differing(flavor: Flavor, name: str, all_pass: Callable[[Flavor, str], bool]) -> list[str]:
    """Return the switches of a flavor that change a case of a definition, one at a time."""
    definition = DEFINITIONS[name]
    if all_pass(flavor, name):
        return []
    switches = [switch for switch in SWITCHES if getattr(flavor, switch) != getattr(definition, switch)]
    one_by_one = {switch: changed(definition, switch, flavor) for switch in switches}
    return [switch for switch, other in one_by_one.items() if other is None or not all_pass(other, name)]


def changed(definition: Flavor, switch: str, flavor: Flavor) -> Flavor | None:
    """Return the definition with one switch of the flavor; None if it cannot have that switch alone."""
    try:
        return definition.replace(**{switch: getattr(flavor, switch)})
    except ValueError:
        return None


def passes(flavor: Flavor, case: dict[str, Any]) -> bool:
    result = [query["ndcg"] for query in case["queries"]], case["mean"]
    return same(value(flavor, queries_of(case), case["k"]), result)


def contents() -> dict[str, Any]:
    """Return the contents of the file."""
    every = [case for name in DEFINITIONS for case in cases(name)]
    words = {
        name: " ".join(filter(None, (words[getattr(one, switch)] for switch, words in _WORDS.items())))
        for name, one in DEFINITIONS.items()
    }
    return {
        "format": 1,
        "tolerance": TOLERANCE,
        "definitions": {name: {"words": words[name], "flavor": str(one)} for name, one in DEFINITIONS.items()},
        "presets": of_presets(every),
        "cases": every,
    }


def as_text(found: dict[str, Any]) -> str:
    """Return JSON with one line per definition, preset and case."""
    parts = []
    for key, part in found.items():
        if isinstance(part, list):
            parts.append(f'"{key}": [\n' + ",\n".join(map(json.dumps, part)) + "\n]")
        elif isinstance(part, dict):
            rows = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in part.items()]
            parts.append(f'"{key}": {{\n' + ",\n".join(rows) + "\n}")
        else:
            parts.append(f'"{key}": {json.dumps(part)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


@functools.cache
def data() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return recorded


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_cases_are_those_of_the_oracle(name):
    assert [case for case in data()["cases"] if case["definition"] == name] == list(cases(name))


@pytest.mark.long
def test_the_whole_file_is_current():
    assert FILE.read_text(encoding="utf-8") == as_text(contents())


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_kernel_passes_the_cases(kernel, name):
    flavor = DEFINITIONS[name]
    for case in [case for case in data()["cases"] if case["definition"] == name]:
        queries = [query for query in queries_of(case) if query]
        rows = [document for query in queries for document in query]
        found = evaluate(
            [document.grade for document in rows],
            [document.score for document in rows],
            flavor=flavor,
            k=case["k"],
            group=[len(query) for query in queries],
            retrieved=[document.retrieved for document in rows],
            doc_id=[document.doc_id for document in rows],
        )
        assert found.value == pytest.approx(case["mean"], abs=1e-12)
        expected = [np.nan if query["ndcg"] is None else query["ndcg"] for query in case["queries"]]
        np.testing.assert_allclose(found.per_query.ndcg, expected, atol=1e-12)


def test_every_preset_has_a_definition_or_the_switches_in_which_it_differs():
    assert data()["presets"].keys() == PRESETS.keys()
    for name, found in data()["presets"].items():
        nearest = DEFINITIONS[found.get("definition") or found["nearest"]]
        for switch in found.get("differs in", ()):
            assert switch in SWITCHES
            assert getattr(PRESETS[name], switch) != getattr(nearest, switch)


def test_every_rule_is_distinguished_and_the_file_has_its_schema():
    for rule in RULES:
        assert sum(rule in case["distinguishes"] for case in data()["cases"]) >= 8, rule
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(FILE.with_name("conformance.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(data())


def shown_as(language: str) -> tuple[str, str]:
    """Return the last block of the page in this language, and its output."""
    code, shown = PAGE.read_text(encoding="utf-8").split(f"```{language}\n")[-1].split("```\n\n```text\n")[:2]
    return code, shown.split("```")[0]


def test_the_python_of_the_page_prints_what_it_shows(capsys, monkeypatch):
    monkeypatch.chdir(PAGE.parents[1])
    code, shown = shown_as("python")
    assert_shown(*run_blocks(capsys, code), shown)


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_javascript_of_the_page_prints_what_it_shows():
    code, shown = shown_as("javascript")
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True, cwd=PAGE.parents[1])
    assert done.stdout == shown


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    FILE.write_text(as_text(contents()), encoding="utf-8")
