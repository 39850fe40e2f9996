"""Limits and sizes of the statistics that no ordinary result shows: where a rule changes, what is summed in steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ndcg_ml import compare, evaluate
from ndcg_ml._stats import bounded, judged_shares, randomisation, simultaneous
from ndcg_ml._stats import verdict as verdicts
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


@pytest.mark.parametrize(("n_clusters", "n_pairs"), [(5, 0), (6, 1)])
def test_a_segment_of_six_clusters_is_tested(n_clusters, n_pairs):
    one = np.arange(40) < 2 * n_clusters
    user = np.where(one, np.arange(40) // 2, 100 + np.arange(40))
    segments = compare(OLD, NEW, by={"half": np.where(one, "one", "other")}, cluster=user, n_resamples=99).slices
    assert [len(each.pairs) for each in segments] == [n_pairs, 1]


def test_a_segment_of_two_queries_is_tested():
    segments = compare(OLD, NEW, by={"part": ["a", "b", "b", *["c"] * 37]}, n_resamples=99).slices
    assert [(each.label, len(each.pairs)) for each in segments] == [("a", 0), ("b", 1), ("c", 1)]


@pytest.mark.parametrize(("n_others", "piles"), [(19, True), (20, False)])
def test_values_pile_up_where_fewer_than_twenty_are_no_bound(n_others, piles):
    assert bounded.piles_up(np.repeat([1.0, 0.5], [30, n_others])) == piles


@pytest.mark.parametrize(("n_ones", "piles"), [(7, True), (6, False)])
def test_values_pile_up_where_most_are_the_bound(n_ones, piles):
    assert bounded.piles_up(np.repeat([1.0, 0.5], [n_ones, 6])) == piles


@pytest.mark.parametrize(("n", "words"), [(99, 1), (100, 0)])
def test_skewness_is_noted_below_a_hundred_queries(n, words):
    apart = np.zeros(n)
    apart[:3] = 1.0
    comparison = compare(np.zeros(n), apart, qid=np.arange(n), measure="m", n_resamples=99)
    assert comparison.pairs[0].skewness > 4
    assert sum("skew" in note for note in comparison.notes) == words


@pytest.mark.parametrize(("skewness", "is_skewed"), [(2.0, True), (-2.0, True), (1.999, False)])
def test_differences_are_skewed_from_two_on(skewness, is_skewed):
    pair = compare(OLD, NEW, n_resamples=99).pairs[0]
    assert replace(pair, skewness=skewness)._is_skewed == is_skewed


@pytest.mark.parametrize(("n_queries", "verdict"), [(5, "undecided"), (6, "equivalent")])
def test_six_queries_may_say_that_a_difference_is_small(n_queries, verdict):
    assert verdicts.verdict(-0.001, 0.001, n_queries, 0.01) == verdict


@pytest.mark.parametrize(
    ("judged", "limit", "uneven"),
    [((0.549, 0.5), 0.05, False), ((0.551, 0.5), 0.05, True), ((0.5625, 0.5), 0.0625, False)],
)
def test_judgements_are_uneven_beyond_a_twentieth(monkeypatch, judged, limit, uneven):
    if limit == 0.0625:  # a limit that two floats can be apart by exactly
        monkeypatch.setattr(judged_shares, "UNEVEN", limit)
    assert (judged_shares.favoured(["a", "b"], judged, [0.5, 0.5]) is not None) == uneven


def test_weights_of_queries_may_be_0_or_below_1():
    of = {"qid": range(40), "measure": "m", "n_resamples": 99}
    numbers = [side.per_query.ndcg for side in (OLD, NEW)]
    weight = np.tile([0.0, 0.25, 0.5, 0.25], 10)
    weighted = compare(*numbers, query_weight=weight, **of)
    assert weighted.values == pytest.approx([np.average(each, weights=weight) for each in numbers])
    for wrong in (weight - 1e-9, weight * 0, weight * np.nan, weight[:, None], weight + np.inf):
        with pytest.raises(ValueError, match="query_weight must have one number, 0 or more"):
            compare(*numbers, query_weight=wrong, **of)
