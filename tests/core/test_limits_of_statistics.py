"""Limits and sizes of the statistics that no ordinary result shows: where a rule changes, what is summed in steps."""

from __future__ import annotations

import numpy as np
import pytest

from ndcg_ml import compare, evaluate
from ndcg_ml._stats import randomisation, simultaneous
from ndcg_ml._stats.means import Means

RNG = np.random.default_rng(3)
Y = RNG.integers(0, 3, (40, 6))
OLD, NEW = (evaluate(Y, Y + RNG.normal(0, 2, Y.shape), k=5) for _ in range(2))


def test_segments_have_a_length():
    segments = compare(OLD, NEW, by={"half": ["a", "b"] * 20}).slices
    assert len(segments) == 2
    assert repr(segments) == "<Segments: 2 by half>"


def test_a_notebook_shows_four_decimals_of_a_difference():
    comparison = compare(OLD, NEW, names=["old", "new"])
    shown = comparison._repr_html_()
    assert f"{comparison.difference:+.4f}<" in shown
    assert f"{comparison.difference:+.5f}" not in shown


@pytest.mark.parametrize("n", [2 * randomisation._BUNDLES, 2 * randomisation._BUNDLES + 1, 3 * randomisation._BUNDLES])
def test_very_many_rows_are_summed_in_bundles(n):
    rows = np.arange(1.0, n + 1)[:, None]
    bundled = randomisation._bundled(rows)
    if n == 2 * randomisation._BUNDLES:
        assert bundled is rows
    else:
        assert bundled.shape == (randomisation._BUNDLES, 1)
        assert bundled.sum() == rows.sum()
        assert bundled[0, 0] == rows[:: randomisation._BUNDLES].sum()


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_signs_are_drawn_in_blocks_of_any_size(monkeypatch, size):
    monkeypatch.setattr(randomisation, "_BLOCK", size)
    drawn = list(randomisation.drawn_signs(20, 11, np.random.default_rng(0)))
    assert sum(map(len, drawn)) == 11
    assert {block.shape[1] for block in drawn} == {3}
    assert len(drawn) == {1: 11, 7: 6, 1 << 16: 1}[size]


@pytest.mark.parametrize(
    ("n_systems", "n", "way"), [(2, 499, "_permuted"), (2, 500, "_limit"), (29, 499, "_permuted"), (29, 500, "_limit"),
                                (30, 199, "_permuted"), (30, 200, "_limit")],
)  # fmt: skip
def test_from_where_on_permutations_are_replaced_by_their_limit(monkeypatch, n_systems, n, way):
    class Asked(Exception):  # noqa: N818
        pass

    def asked(name):
        def raised(*_):
            raise Asked(name)

        return raised

    for name in ("_permuted", "_limit"):
        monkeypatch.setattr(simultaneous, name, asked(name))
    means = Means.of(np.zeros((n, n_systems)), None)
    with pytest.raises(Asked, match=way):
        simultaneous.max_t(means, [(0, 1)], 10, np.random.default_rng(0))
