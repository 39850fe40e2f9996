"""Results as HTML: well formed, escaped, without scripts or colours that one theme alone shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import by_scores
from html_pages import Page

from ndcg_ml import Flavor, evaluate, evaluate_run

HOSTILE = "<script>alert(\"1\")</script> & 'two' \ud800"
LABELS, SCORES = [[3, 0, 1], [0, 1, 0], [1, 0, 2], [0, 0, 0]], [[3, 2, 1], [3, 1, 2], [3, 2, 2], [1, 3, 2]]


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
    "slices": lambda: evaluated(k=(1, 2), by={HOSTILE: [HOSTILE, "x", "x", "x"]}).slices,
    "comparison": compared,
    "comparison of two": lambda: by_scores(SCORES, SCORES, y_true=LABELS),
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
    assert {tag for tag, _ in page.tags} <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert {name for _, attributes in page.tags for name in attributes} <= {"style", "scope"}
    for rows in page.tables:
        assert len({len(row) for row in rows}) == 1
    text.encode("utf-8")
    # Neither black nor white: what is coloured is seen through, on a dark page as on a light one.
    styles = " ".join(attributes.get("style", "") for _, attributes in page.tags)
    assert not re.findall(r"#[0-9a-f]{3,6}|rgb\(|(?<!-)color:(?!inherit)", styles)


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


def test_a_comparison_marks_clear_differences():
    result = compared()
    page = Page(result._repr_html_())
    systems, pairs = page.tables
    assert [row[0] for row in systems[1:]][1:] == ["b", "c"]
    assert page.marked == [False, False, False, *(pair.significant for pair in result.pairs)]
    assert {pair.significant for pair in result.pairs} == {True, False}
    assert [row[3] for row in pairs[1:]] == [f"{pair.difference:+.4f}" for pair in result.pairs]
    assert result.caption() in page.text
