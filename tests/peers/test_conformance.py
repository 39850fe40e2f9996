"""docs/conformance.json is what the oracle computes, every kernel passes its cases, and its page runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conformance import DEFINITIONS, FILE, RULES, SWITCHES, as_text, cases, contents, queries_of
from printed import assert_shown

from ndcg_ml import PRESETS, evaluate

PAGE = Path(__file__).parents[2] / "docs" / "which.md"
DATA = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_cases_are_those_of_the_oracle(name):
    assert [case for case in DATA["cases"] if case["definition"] == name] == list(cases(name))


@pytest.mark.long
def test_the_whole_file_is_current():
    assert FILE.read_text(encoding="utf-8") == as_text(contents())


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_kernel_passes_the_cases(kernel, name):
    flavor = DEFINITIONS[name]
    for case in cases(name):
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
    assert DATA["presets"].keys() == PRESETS.keys()
    for name, found in DATA["presets"].items():
        nearest = DEFINITIONS[found.get("definition") or found["nearest"]]
        for switch in found.get("differs in", ()):
            assert switch in SWITCHES
            assert getattr(PRESETS[name], switch) != getattr(nearest, switch)


def test_every_rule_is_distinguished_and_the_file_has_its_schema():
    for rule in RULES:
        assert sum(rule in case["distinguishes"] for case in DATA["cases"]) >= 8, rule
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(FILE.with_name("conformance.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(DATA)


def shown_as(language: str) -> tuple[str, str]:
    """Return the last block of the page in this language, and its output."""
    code, shown = PAGE.read_text(encoding="utf-8").split(f"```{language}\n")[-1].split("```\n\n```text\n")[:2]
    return code, shown.split("```")[0]


def test_the_python_of_the_page_prints_what_it_shows(capsys, monkeypatch):
    monkeypatch.chdir(PAGE.parents[1])
    code, shown = shown_as("python")
    exec(compile(code, "conformance", "exec"), {})
    assert_shown(capsys.readouterr().out, shown)


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_javascript_of_the_page_prints_what_it_shows():
    code, shown = shown_as("javascript")
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True, cwd=PAGE.parents[1])
    assert done.stdout == shown
