"""Every combination of switches at once: the numbers of one flavor at a time, whatever the data hold."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Problem, examples, flavors, problems

from ndcg_ml import PRESETS, Flavor
from ndcg_ml._data.queries import Queries
from ndcg_ml._identify import grid as module
from ndcg_ml._identify import sweep as sweeping
from ndcg_ml._identify.identify import identify
from ndcg_ml.prepared import Prepared


def table(monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> module.Grid:
    """The grid of values that ``identify`` compares with a number."""
    held = []
    fill = module.Grid.fill

    def keep(self: module.Grid, *others: Any) -> None:
        held.append(self)
        fill(self, *others)

    few = {name: PRESETS[name] for name in ("lightgbm", "letor3")}  # one of them has a table of gains
    with monkeypatch.context() as patch:
        patch.setattr(module.Grid, "fill", keep)
        patch.setattr(module, "PRESETS", MappingProxyType(few))
        identify(0.5, **arguments)
    return held[0]


def one_at_a_time(flavor: Flavor, queries: Queries, scores: Any) -> float:
    """The value of a flavor by itself; nan where it has none."""
    try:
        value = Prepared(flavor, ..., queries).totals(scores).finite_values(flavor)[0]
    except ValueError:
        return math.nan
    return math.nan if value is None else value


def some_cells(grid: module.Grid, draw: Any, n: int) -> list[tuple[int, ...]]:
    """Cells of the grid, drawn, and with them the two ends."""
    cell = st.tuples(*(st.integers(0, len(axis) - 1) for axis in grid.choices))
    last = tuple(len(axis) - 1 for axis in grid.choices)
    return [(0,) * len(last), last, *draw(st.lists(cell, min_size=n, max_size=n))]


@examples(15)
@given(st.data())
def test_the_table_is_that_of_one_flavor_at_a_time(data: st.DataObject) -> None:
    """Ties, near-ties, unjudged and negative labels, unretrieved and repeated documents, weights, empties."""
    switches = {"gain": "linear", "negative": "zero", "unjudged": "zero", "ideal": "global", "max_grade": None}
    flavor = data.draw(flavors(callables=False, **switches, duplicates="count"))
    problem: Problem = data.draw(problems(flavor, max_docs=6, max_queries=4, repeats=True))
    arguments = problem.flat()
    if not problem.documents:
        return
    ks = data.draw(st.sampled_from([(None,), (1, 3), (2, None, 5)]))
    with pytest.MonkeyPatch.context() as monkeypatch:
        if data.draw(st.booleans()):
            monkeypatch.setattr(sweeping, "_MOST_ROWS", 1)  # no room, so the sweep keeps nothing
        grid = table(monkeypatch, **arguments, k=ks)
    scores = arguments.pop("y_score")
    queries = Queries.read(**arguments)
    for at in some_cells(grid, data.draw, 60):
        try:
            flavor = grid.flavor(at)
        except ValueError:  # a top grade that the table of gains lacks
            assert math.isnan(grid.values[at])
            continue
        expected = one_at_a_time(flavor, queries, scores)
        assert grid.values[at] == pytest.approx(expected, rel=1e-13, abs=1e-13, nan_ok=True), flavor


def test_huge_gains_are_scaled_by_what_the_ideal_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grade 1000 was not retrieved: beside it the others vanish, in ideals that it enters, and in no other."""
    arguments: dict[str, Any] = {"y_true": [3.0, 1000.0, 1.0, 0.0], "retrieved": np.array([True, False, True, True])}
    arguments |= {"group": [4]}
    scores = [1.0, 4.0, 3.0, 2.0]
    grid = table(monkeypatch, **arguments, y_score=scores, k=(None,))
    queries = Queries.read(**arguments)
    gain = [choice for choice, _ in grid.choices[0]].index("exponential")
    for ideal in range(len(grid.choices[2])):
        at = (gain, 0, ideal, *[0] * 9)
        expected = one_at_a_time(grid.flavor(at), queries, scores)
        assert grid.values[at] == pytest.approx(expected, rel=1e-13, abs=1e-300)
