"""Results as HTML: well formed, escaped, without scripts or colours that one theme alone shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from comparing import by_scores

from ndcg_ml import Flavor, evaluate, evaluate_run, explain_difference, identify

HOSTILE = "<script>alert(\"1\")</script> & 'two' \ud800"
LABELS, SCORES = [[3, 0, 1], [0, 1, 0], [1, 0, 2], [0, 0, 0]], [[3, 2, 1], [3, 1, 2], [3, 2, 2], [1, 3, 2]]


class Page(HTMLParser):
    """The tables, row by row, and all text; tags must balance."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.styles: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.marked: list[bool] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style", "scope"}
        style = dict(attrs).get("style") or ""
        self.styles.append(style)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            if tag == "td" and len(self.tables[-1][-1]) == 1:
                self.marked.append("background" in style)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data


def evaluated(**arguments):
    return evaluate(LABELS, SCORES, **arguments)


def compared():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (40, 6))
    systems = [labels + rng.normal(0, noise, labels.shape) for noise in (3.0, 0.1, 0.11)]
    return by_scores(*systems, y_true=labels, names=[HOSTILE, "b", "c"], seed=0)


CASES: dict[str, Callable[[], Any]] = {
    "flavor": lambda: Flavor.preset("lightgbm", k=10),
    "flavor with a hostile callable": lambda: Flavor(gain=hostile_gain()),
    "evaluation": lambda: evaluated(k=(1, None)),
    "evaluation at one cut-off": lambda: evaluated(k=2, flavor="ndcg[empty=skip]"),
    "run": lambda: evaluate_run({"q1": {"d1": 1}, "q2": {"d2": 1}}, {"q1": ["d1", "x"]}, k=(1, 5)),
    "interval": lambda: evaluated().interval(method="t"),
    "slices": lambda: evaluated(k=(1, 2), by={HOSTILE: [HOSTILE, "x", "x", "x"]}).slices,
    "explanation": lambda: explain_difference("sklearn", "lightgbm", LABELS, SCORES),
    "explanation of nothing": lambda: explain_difference("sklearn", "sklearn", LABELS, SCORES),
    "explanation with hostile ids": lambda: explain_difference(
        "sklearn", "lightgbm", [0, 0, 3], [2, 1, 1], qid=[HOSTILE, HOSTILE, "y"]
    ),
    "comparison": compared,
    "comparison of two": lambda: by_scores(SCORES, SCORES, y_true=LABELS),
    "identification": lambda: identify(round(evaluated(k=2).value, 4), LABELS, SCORES, k=2),
    "identification without a match": lambda: identify(0.1111, LABELS, SCORES, k=2),
}


def hostile_gain():
    def gain(grade: float) -> float:
        return grade

    gain.__qualname__ = HOSTILE.rpartition(" ")[0]  # a flavor's text has no lone half of a character
    return gain


@pytest.mark.parametrize("make", CASES.values(), ids=CASES.keys())
def test_every_result_is_well_formed_and_plain(make):
    text = make()._repr_html_()
    page = Page(text)
    assert page.tags <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    for rows in page.tables:
        assert len({len(row) for row in rows}) == 1
    text.encode("utf-8")
    # Neither black nor white: what is coloured is seen through, on a dark page as on a light one.
    for colour in re.findall(r"#[0-9a-f]{3,6}|rgb\(|(?<!-)color:(?!inherit)", " ".join(page.styles)):
        pytest.fail(colour)


@pytest.mark.parametrize(
    "name", ["flavor with a hostile callable", "slices", "explanation with hostile ids", "comparison"]
)
def test_names_are_shown_as_they_are(name):
    text = CASES[name]()._repr_html_()
    assert "<script" not in text
    assert "<script>alert(" in Page(text).text.replace("_", " ")


def test_a_flavor_marks_what_differs_from_scikit_learn():
    flavor = Flavor.preset("lightgbm", k=10, max_grade=4)
    page = Page(flavor._repr_html_())
    [[head, *rows]] = page.tables
    assert head == ["switch", "value", "scikit-learn", "in words"]
    marked = [row[0] for row, mark in zip(rows, page.marked, strict=True) if mark]
    assert marked == ["gain", "max_grade", "ties", "empty"]
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["gain"] == ["exponential", "linear", "gain(y) = 2^y - 1; a label above 4 is an error"]
    assert by_name["k"][:2] == ["10", "any"]  # scikit-learn takes it as an argument
    assert by_name["max_grade"] == ["4", "None", ""]
    assert str(flavor) in page.text
    assert "duplicates" not in by_name
    same = Page(Flavor.preset("sklearn", k=3)._repr_html_())
    assert not any(same.marked)
    assert "no switch differs" in same.text


def test_an_evaluation_shows_its_values():
    result = evaluated(k=(1, None))
    page = Page(result._repr_html_())
    assert page.tables[0][1:] == [
        ["NDCG@1", f"{result.value[1]:.6f}", "4", "1"],
        ["NDCG", f"{result.value[None]:.6f}", "4", "1"],
    ]
    assert str(result.flavor) in page.text
    assert "4 queries, 1 empty (scored 0); 12 documents" in page.text


def test_a_run_shows_what_is_judged():
    page = Page(CASES["run"]()._repr_html_())
    assert page.tables[0][0] == ["", "value", "judged", "queries", "empty"]
    assert [row[2] for row in page.tables[0][1:]] == ["1.000000", "0.500000"]
    assert "1 of the qrels are not in the run" in page.text


def test_an_explanation_shows_the_parts_and_the_queries():
    result = explain_difference("sklearn", "lightgbm", LABELS, SCORES)
    page = Page(result._repr_html_())
    _, parts, queries = page.tables
    effective = [part for part in result.parts if abs(part.contribution) > 1e-15]
    assert [row[0] for row in parts[1:]] == [*(part.name for part in effective), "b - a"]
    assert parts[-1][3] == f"{result.difference:+.6f}"
    assert [row[0] for row in queries[1:]] == [str(query.qid) for query in result.queries]


def test_a_comparison_marks_clear_differences():
    result = compared()
    page = Page(result._repr_html_())
    systems, pairs = page.tables
    assert [row[0] for row in systems[1:]][1:] == ["b", "c"]
    assert page.marked == [False, False, False, *(pair.significant for pair in result.pairs)]
    assert {pair.significant for pair in result.pairs} == {True, False}
    assert [row[2] for row in pairs[1:]] == [f"{pair.difference:+.4f}" for pair in result.pairs]
    assert result.caption() in page.text


def test_an_identification_shows_its_matches():
    result = CASES["identification"]()
    page = Page(result._repr_html_())
    shown = [match.name for match in result.matches if match.presets][:5]
    assert [row[0] for row in page.tables[0][1:]] == shown
    assert result.count_text() in page.text
    assert f"{result.n_tried} flavors tried" in page.text
