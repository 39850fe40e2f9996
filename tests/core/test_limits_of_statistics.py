"""Limits and sizes of the statistics that no ordinary result shows: where a rule changes, what is summed in steps."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from comparing import by_values

from ndcg_ml import compare, evaluate
from ndcg_ml._stats import bounded, clusters, judged_shares, randomisation, simultaneous
from ndcg_ml._stats import verdict as verdicts
from ndcg_ml._stats.means import SAME, Means, Spread, as_confidence, drawn_queries
from ndcg_ml._stats.quantiles import normal_cdf, t_quantile, t_tail

RNG = np.random.default_rng(3)
Y = RNG.integers(0, 3, (40, 6))
OLD, NEW = (evaluate(Y, Y + RNG.normal(0, 2, Y.shape), k=5) for _ in range(2))


def test_slices_have_a_length():
    slices = compare(OLD, NEW, by={"half": ["a", "b"] * 20}).slices
    assert len(slices) == 2
    assert repr(slices) == "<ComparedSlices: 2 by half>"


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
def test_a_slice_of_six_clusters_is_tested(n_clusters, n_pairs):
    one = np.arange(40) < 2 * n_clusters
    user = np.where(one, np.arange(40) // 2, 100 + np.arange(40))
    slices = compare(OLD, NEW, by={"half": np.where(one, "one", "other")}, cluster=user, n_resamples=99).slices
    assert [len(each.pairs) for each in slices] == [n_pairs, 1]


def test_a_slice_of_two_queries_is_tested():
    slices = compare(OLD, NEW, by={"part": ["a", "b", "b", *["c"] * 37]}, n_resamples=99).slices
    assert [(each.label, len(each.pairs)) for each in slices] == [("a", 0), ("b", 1), ("c", 1)]


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
    comparison = by_values(np.zeros(n), apart, qid=np.arange(n), measure="m", n_resamples=99)
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
    weighted = by_values(*numbers, query_weight=weight, **of)
    assert weighted.values == pytest.approx([np.average(each, weights=weight) for each in numbers])
    for wrong in (weight - 1e-9, weight * 0, weight * np.nan, weight[:, None], weight + np.inf):
        with pytest.raises(ValueError, match="query_weight must have one number, 0 or more"):
            by_values(*numbers, query_weight=wrong, **of)


# -- three systems, of which two pairs are compared -----------------------------------------------------------------

THREE = [OLD, NEW, evaluate(Y, Y + RNG.normal(0, 2, Y.shape), k=5)]


def of_two_pairs(**options):
    return compare(
        *THREE, **{"names": ["old", "new", "newest"], "baseline": "old", "n_resamples": 99, "seed": 0} | options
    )


def test_two_pairs_have_no_only_difference():
    comparison = of_two_pairs()
    assert [(pair.a, pair.b) for pair in comparison.pairs] == [("old", "new"), ("old", "newest")]
    for name in ("difference", "interval", "p_value", "p_adjusted", "verdict", "wins"):
        with pytest.raises(AttributeError, match=r"a comparison of 3 systems has 2 differences\. Ask one of \.pairs"):
            getattr(comparison, name)


def test_two_pairs_are_corrected_and_the_caption_says_how():
    comparison = of_two_pairs()
    assert comparison.caption().endswith("p and intervals corrected for 2 pairs by max-T")
    assert "p adjusted" in str(comparison)
    for pair in comparison.pairs:
        assert pair.p_adjusted > pair.p_value
        assert pair.level < 0.05


def test_several_runs_are_compared_within_slices_too():
    rng = np.random.default_rng(5)
    runs = {name: [evaluate(Y, Y + rng.normal(0, 2, Y.shape), k=5) for _ in range(3)] for name in ("old", "new")}
    half = ["a", "b"] * 20
    slices = compare(runs, by={"half": half}).slices
    for label, at in (("a", slice(0, None, 2)), ("b", slice(1, None, 2))):
        inside = {name: [run.per_query.ndcg[at] for run in of_one] for name, of_one in runs.items()}
        alone = by_values(inside, qid=np.arange(20), measure="NDCG", confidence=0.975)
        inside_one = slices["half", label]
        assert inside_one.values == pytest.approx(alone.values)
        assert inside_one.pairs[0].difference == pytest.approx(alone.difference)
        assert inside_one.pairs[0].interval.low == pytest.approx(alone.interval.low)
        assert inside_one.pairs[0].p_value == pytest.approx(alone.p_value)


# -- numbers of draws -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 40, 1 << 17])
@pytest.mark.parametrize("n", [7, 600])
def test_as_many_draws_as_asked_for(monkeypatch, n, block):
    monkeypatch.setattr(simultaneous, "_BLOCK", block)
    values = np.random.default_rng(0).random((n, 3))
    for n_draws in (1, 2, 13):
        drawn = simultaneous.max_t(Means.of(values, None), [(0, 1)], n_draws, np.random.default_rng(0))
        assert drawn.largest.size == n_draws
        assert (np.diff(drawn.largest) >= 0).all()


@pytest.mark.parametrize(
    ("block", "sizes"), [(1, [1] * 8), (12, [1] * 8), (13, [1] * 8), (26, [2] * 4), (39, [3, 3, 2])]
)
def test_steps_have_a_row_or_more(monkeypatch, block, sizes):
    monkeypatch.setattr(randomisation, "_BLOCK", block)
    monkeypatch.setattr(simultaneous, "_BLOCK", block)
    rng = np.random.default_rng(0)
    assert list(map(len, randomisation._all_signs_of(np.arange(13) < 3, 8, rng))) == sizes
    assert list(map(len, randomisation.drawn_signs(13 * 8, 8, rng))) == sizes
    of_thirteen = Means.of(np.zeros((13, 1)), None)
    assert [len(mean) for mean, _ in simultaneous._permuted(of_thirteen, 8, rng)] == sizes
    monkeypatch.setattr(simultaneous, "_BLOCK", block * 4 // 13)
    of_two = Means.of(np.zeros((13, 2)), None)
    assert [len(mean) for mean, _ in simultaneous._limit(of_two, 8, rng)] == sizes
    monkeypatch.setattr(randomisation, "_BLOCK", 3)
    assert list(map(len, randomisation._all_signs(3))) == [3, 3, 2]


def test_as_many_resamples_as_asked_for(monkeypatch):
    for block, sizes in ((1, [1, 1, 1, 1, 1]), (6, [2, 2, 1]), (8, [2, 2, 1]), (9, [3, 2]), (1 << 17, [5])):
        monkeypatch.setattr("ndcg_ml._stats.means._BLOCK", block)
        drawn = list(drawn_queries(3, 5, np.random.default_rng(0)))
        assert [each.shape for each in drawn] == [(size, 3) for size in sizes]
        assert {*np.concatenate(drawn).ravel().tolist()} == {0, 1, 2}


def test_systems_that_never_differ_have_a_t_of_0():
    drawn = simultaneous.max_t(Means.of(np.full((7, 3), 0.5), None), [(0, 1), (1, 2)], 5, np.random.default_rng(0))
    assert drawn.largest.tolist() == [0.0] * 5
    assert drawn.p_value(0.0) == 1.0
    assert drawn.p_value(0.1) == 1 / 6


# -- tolerances -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["idcg", "weight"])
@pytest.mark.parametrize(
    ("times", "alike"), [(1 + 0.9e-9, True), (1 - 0.9e-9, True), (1 + 1.1e-9, False), (1 - 1.1e-9, False)]
)
@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_ideals_and_weights_may_differ_by_rounding(column, times, alike, scale):
    def scaled(evaluation, by):
        table = evaluation.per_query
        return replace(evaluation, per_query=replace(table, **{column: getattr(table, column) * by}))

    one, other = scaled(OLD, scale), scaled(NEW, scale * times)
    if alike:
        assert compare(one, other, n_resamples=99).difference == compare(OLD, NEW, n_resamples=99).difference
    else:
        with pytest.raises(ValueError, match="another ideal DCG in 40" if column == "idcg" else "weigh the same"):
            compare(one, other, n_resamples=99)


@pytest.mark.parametrize(
    ("judged", "values", "by"),
    [
        ((1.0, 0.5), (0.0, 0.0), ""),
        ((1.0, 0.5), (0.5, 0.5), " by about 0.500"),
        ((0.8, 0.5), (1.0, 0.25), ""),
        ((0.8, 0.5), (1.0, 0.375), " by about 0.125"),
        ((0.8, 0.5), (1.0, 0.125), ""),
    ],
)
def test_a_gain_that_is_none_is_not_put_in_numbers(judged, values, by):
    assert f"which favours a{by}, if" in judged_shares.favoured(["a", "b"], judged, values)


@pytest.mark.parametrize("judged", [(0.0, 1.0), (0.0, 0.0), (float("nan"), 0.5)])
def test_a_system_without_a_judged_document_is_not_set_against_others(judged):
    assert judged_shares.favoured(["a", "b"], judged, [0.5, 0.5]) is None


def test_clusters_of_equal_values_are_as_good_as_their_queries():
    queries = Means.of(np.tile([[0.5, 0.25]], (12, 1)), None)
    grouped = clusters.by_cluster(queries, np.arange(12) // 2)
    assert clusters.effective_queries(queries, grouped).tolist() == [12, 12]


@pytest.mark.parametrize(("weight", "high"), [(1.0, 0.0), (0.5, -0.0738), (0.0, -0.1845)])
def test_an_empty_query_of_any_weight_is_open_too(weight, high):
    labels, flavor = [[1, 0], [1, 0], [0, np.nan]], "trec_eval[ties=average,empty=skip]"
    scores = ([[2, 1], [2, 1], [2, 1]], [[1, 2], [2, 1], [1, 2]])
    sides = [evaluate(labels, each, flavor=flavor, query_weight=[1, 1, weight]) for each in scores]
    limits = compare(*sides, n_resamples=99).range()
    assert limits.n_unjudged == (weight > 0)
    assert (round(limits.low, 4), round(limits.high, 4)) == (-0.1845, high)


@pytest.mark.parametrize("labels", [7, "ab", iter("ab"), None])
def test_labels_that_are_no_list_are_refused(labels):
    words = "must hold a label per query, or be a mapping from query ids; got"
    if labels is not None:
        with pytest.raises(TypeError, match=rf"^by\['half'\] {words}"):
            compare(OLD, NEW, by={"half": labels}, n_resamples=99)
        with pytest.raises(TypeError, match=f"^cluster {words}"):
            compare(OLD, NEW, cluster=labels, n_resamples=99)
    with pytest.raises(TypeError, match=r"^by\['half'\] must hold a label per row or per query; got"):
        evaluate(Y, Y, by={"half": labels}) if labels != "ab" else evaluate(Y, Y, by={"half": 7})


# -- what is shown --------------------------------------------------------------------------------------------------


def test_a_comparison_is_shown_without_its_tables():
    comparison = compare(OLD, NEW, by={"half": ["a", "b"] * 20}, n_resamples=99)
    shown = re.findall(r"\b(\w+)=", re.sub(r"(flavor|pairs)=\(?[A-Z].*?\)\)?,", "", repr(comparison)))
    assert "names" in shown
    assert not {"qid", "ndcg", "not_compared", "slices", "accepts_unjudged", "_missing"} & {*shown}
    assert len(repr(comparison)) < 1200


@pytest.mark.parametrize("name", ["Comparison", "ComparedSlices", "Slices"])
def test_a_frame_needs_pandas(monkeypatch, name):
    half = {"half": ["a", "b"] * 20}
    comparison = compare(OLD, NEW, by=half, n_resamples=99)
    result = {"Comparison": comparison, "ComparedSlices": comparison.slices, "Slices": evaluate(Y, Y, by=half).slices}[
        name
    ]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=rf"^{name}\.to_frame needs pandas\. Install it with: pip install pandas$"):
        result.to_frame()


@pytest.mark.parametrize("digits", [-1, 0, 1])
def test_a_table_has_0_decimals_or_more(digits):
    comparison = compare(OLD, NEW, n_resamples=99)
    for write in (comparison.to_markdown,):
        if digits < 0:
            with pytest.raises(ValueError, match="digits must be"):
                write(digits)
        else:
            assert f"{comparison.difference:+.{digits}f}" in write(digits)


@pytest.mark.parametrize("n_resamples", [8, 9, 16, 17, 1 << 12])
def test_every_exchange_of_the_queries_that_differ_comes_as_often(n_resamples):
    apart = np.array([True, False, True, False, False, True, *[False] * 7])
    blocks = randomisation._all_signs_of(apart, n_resamples, np.random.default_rng(0))
    signs = np.unpackbits(np.concatenate(list(blocks)), axis=1, bitorder="little")[:, : apart.size]
    assert len(signs) == 8 * -(-n_resamples // 8)
    patterns, counts = np.unique(signs[:, apart], axis=0, return_counts=True)
    assert len(patterns) == 8
    assert (counts == len(signs) // 8).all()
    assert {*np.unique(signs).tolist()} == {0, 1}


@pytest.mark.parametrize(("n_resamples", "n_signs"), [(8192, 8192), (8191, 8192), (8193, 8200)])
def test_every_sign_is_enumerated_where_there_is_room(n_resamples, n_signs):
    apart = np.array([True] * 3 + [False] * 10)
    drawn = np.concatenate(list(randomisation._all_signs_of(apart, n_resamples, np.random.default_rng(0))))
    if n_resamples >= 8192:
        assert len(drawn) == 8192
        assert len(np.unique(drawn, axis=0)) == 8192
    else:
        assert len(drawn) == n_signs


def test_slices_of_which_nothing_is_known_come_after_equal_ones():
    slices = evaluate([[1, 0]] * 5, [[2, 1]] * 5, by=["one", "a", "a", "b", "b"]).slices
    assert [(entry.label, entry.interval is None) for entry in slices] == [("a", False), ("b", False), ("one", True)]


@pytest.mark.parametrize(
    ("level", "critical"), [(0.2, np.inf), (0.25, 3.0), (0.49, 3.0), (0.5, 2.0), (0.75, 1.0), (1.0, 1.0)]
)
def test_beyond_a_critical_value_p_is_at_most_the_level(level, critical):
    drawn = simultaneous.MaxT(np.array([1.0, 2.0, 3.0]))
    assert drawn.critical(level) == critical
    if critical < np.inf:
        assert drawn.p_value(critical + 1e-9) <= level
        assert drawn.p_value(critical) > level or level == 1
        assert drawn.p_value(-critical) == drawn.p_value(critical) == drawn.p_value(critical - 1e-9)


@pytest.mark.parametrize("dof", [0.5, 1, 3, 1e6, 1e6 + 1, 1e9])
def test_the_tails_of_t_end_at_0_and_1(dof):
    assert t_tail(0.0, dof) == 1.0
    assert t_tail(np.inf, dof) == 0.0
    assert 0 < t_tail(1.0, dof) < 1


def test_the_tails_of_t_meet_those_of_the_normal_distribution():
    assert t_tail(2.0, 1e6) == pytest.approx(t_tail(2.0, 1e6 + 1), rel=1e-5)
    assert t_tail(2.0, 1e6) != t_tail(2.0, 1e6 + 1) == t_tail(2.0, 1e12)


@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.95, 0.999])
def test_quantiles_of_t_go_on_where_the_series_begins(confidence):
    closed, series = t_quantile(confidence, 1000), t_quantile(confidence, 1001)
    assert closed == pytest.approx(series, rel=1e-5)
    assert series < closed
    assert t_tail(closed, 1000) == pytest.approx(1 - confidence, rel=1e-11)
    assert t_tail(series, 1001) == pytest.approx(1 - confidence, rel=1e-11)
    assert t_quantile(confidence, 1000.5) == pytest.approx((closed + series) / 2, rel=1e-9)


@pytest.mark.parametrize(
    ("draws", "words"), [([0.0, 1.0], None), ([1.0, 1.0], "lie on one"), ([-1.0, -1.0], "lie on one")]
)
def test_draws_must_be_on_both_sides_of_the_value(draws, words):
    influence = np.array([-0.5, 0.5])
    spread = Spread(0.0, influence, influence, np.array(draws))
    if words is None:
        assert spread.interval(0.5, "bca").n_resamples == 2
    else:
        with pytest.raises(ValueError, match=words):
            spread.interval(0.5, "bca")


@pytest.mark.parametrize(("value", "slack"), [(0.0, 1e-12), (1.0, 1e-12), (2.0**20, 2.0**20 * 1e-12)])
def test_draws_as_near_as_rounding_are_on_neither_side(value, slack):
    influence = np.array([-0.5, 0.25, 0.25])
    edge = value - SAME * max(1.0, value)
    assert value - edge == pytest.approx(slack, rel=1e-3)
    low, high = ([value - 0.5] * 3, [value + 0.5] * 3)
    limits = {}
    for name, draw in (("at the value", value), ("at the edge", edge), ("beyond", np.nextafter(edge, -np.inf))):
        spread = Spread(value, influence, value - influence, np.array([*low, draw, *high]))
        limits[name] = spread._corrected(spread.draws, (0.025, 0.975))
    assert limits["at the value"] == limits["at the edge"]
    assert limits["beyond"] != limits["at the edge"]


@pytest.mark.parametrize(
    ("bias", "acceleration", "tail"),
    [(2.0, 0.5, 1.0), (-2.0, -0.5, 0.0), (2.0, 1.0, 1.0), (-2.0, -1.0, 0.0), (2.0, 0.25, None), (0.0, 0.5, 0.5)],
)
def test_a_limit_is_the_end_of_the_draws_where_there_is_no_room(bias, acceleration, tail):
    found = Spread._at(0.5, bias, acceleration)
    assert found == pytest.approx(normal_cdf(bias + bias / (1 - acceleration * bias)) if tail is None else tail)


@pytest.mark.parametrize("dof", [1, 2, 1000, 1001, 10**6])
@pytest.mark.parametrize("confidence", [1e-9, 1e-6])
def test_quantiles_of_a_small_confidence_keep_their_digits(dof, confidence):
    density = math.exp(math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2)) / math.sqrt(dof * math.pi)
    assert t_quantile(confidence, dof) == pytest.approx(confidence / (2 * density), rel=5e-8, abs=0)


@pytest.mark.parametrize(
    ("confidence", "hint"),
    [(95, " Write 0.95 for 95 %."), (1.5, " Write 0.015 for 1.5 %."), (100, ""), (1, ""), (0, ""), (-1, "")],
)
def test_a_confidence_in_percent_is_put_right(confidence, hint):
    with pytest.raises(ValueError, match=r"^confidence must be above 0 and below 1; got ") as caught:
        as_confidence(confidence)
    assert str(caught.value).endswith(f"got {confidence}.{hint}")


@pytest.mark.parametrize("confidence", ["0.9", None, [0.9], 1j])
def test_a_confidence_is_a_number(confidence):
    with pytest.raises(TypeError, match=f"of type {type(confidence).__name__}"):
        as_confidence(confidence)


@pytest.mark.parametrize(
    ("level", "n", "at_most"), [(0.05, 19, 0), (0.05, 20, 1), (0.05, 39, 1), (0.05, 40, 2), (1 / 3, 3, 1), (0.1, 30, 3)]
)
def test_how_many_cases_may_be_as_extreme(level, n, at_most):
    assert randomisation.rejected(level, n) == at_most


def test_the_words_of_an_interval():
    side = evaluate(Y, Y + RNG.normal(0, 2, Y.shape), k=5)
    drawn = {"bca": "BCa bootstrap, 99 resamples", "percentile": "percentile bootstrap, 99 resamples"}
    for method, name in (drawn | {"t": "t interval", "bounded": "interval between bounds"}).items():
        words = f"95 %, {name}"
        interval = side.interval(method=method, n_resamples=99, seed=0)
        assert interval.how_text() == words
        assert str(interval) == f"{interval.value:.6f} ({interval.low:.6f} to {interval.high:.6f}; {words}; 40 queries)"
        assert interval.to_dict()["effective_queries"] is None
        assert f"{interval.low:.6f}" in interval._repr_html_()
    clustered = evaluate(Y, Y, k=5, cluster=np.arange(40) // 4).interval(method="t")
    assert str(clustered).endswith(f"40 queries, worth {clustered.effective_queries:.0f} independent ones)")
