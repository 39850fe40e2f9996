"""The edges at which a comparison says something else: margins, ties, clusters, names, draws, shares of a level."""

from __future__ import annotations

import math
import pickle
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from comparing import by_values

from ndcg_ml import RangeError, compare, evaluate, evaluate_run
from ndcg_ml._stats import bounded, clusters, matching, randomisation
from ndcg_ml._stats.comparison_slices import _order
from ndcg_ml._stats.differences import Settings
from ndcg_ml._stats.honest import honest_value
from ndcg_ml._stats.means import SAME, Means, drawn_queries
from ndcg_ml._stats.missing_labels import MissingLabels
from ndcg_ml._stats.quantiles import t_quantile
from ndcg_ml._stats.seeds import CrossedError, crossed_error
from ndcg_ml._stats.verdict import verdict

RNG = np.random.default_rng(4)
Y = RNG.integers(0, 3, (40, 6))


def numbers(*systems, **options):
    return by_values(*systems, qid=np.arange(len(systems[0])), measure="m", **{"n_resamples": 99, "seed": 0} | options)


# -- verdicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "margin", "word"),
    [
        (0.0, 0.1, None, "undecided"),
        (SAME, 0.1, None, "undecided"),
        (2 * SAME, 0.1, None, "better"),
        (-0.1, 0.0, None, "undecided"),
        (-0.1, -SAME, None, "undecided"),
        (-0.1, -2 * SAME, None, "worse"),
        (-0.25, 0.1, 0.25, "undecided"),
        (-0.2499, 0.3, 0.25, "not worse"),
        (-0.2499, 0.2499, 0.25, "equivalent"),
        (-0.2499, 0.25, 0.25, "not worse"),
        (-0.25, 0.2499, 0.25, "undecided"),
        (0.1, 0.2499, 0.25, "equivalent"),
        (0.1, 0.25, 0.25, "better"),
        (-0.25, -0.1, 0.25, "worse"),
    ],
)
def test_where_a_verdict_turns(low, high, margin, word):
    assert verdict(low, high, 50, margin) == word


@pytest.mark.parametrize(
    ("apart", "wins", "losses"), [(SAME, 0, 0), (1.01 * SAME, 1, 0), (-SAME, 0, 0), (-1.01 * SAME, 0, 1)]
)
def test_queries_that_differ_by_rounding_are_ties(apart, wins, losses):
    one = np.array([0.0, 0.0, 0.5, 0.5, 1.0, 1.0])
    other = one.copy()
    other[0] += apart
    pair = numbers(one, other).pairs[0]
    assert (pair.wins, pair.ties, pair.losses) == (wins, 6 - wins - losses, losses)


@pytest.mark.parametrize(("difference", "size"), [(0.0, 0.0), (0.5, math.inf), (-0.5, -math.inf)])
def test_the_effect_size_where_all_queries_differ_by_the_same(difference, size):
    pair = numbers(np.full(8, 0.5), np.full(8, 0.5 + difference)).pairs[0]
    assert pair.effect_size == size
    assert pair.standard_error == 0
    assert (pair.interval.low, pair.interval.high) == (difference, difference)
    assert pair.skewness == 0


@pytest.mark.parametrize(("p", "significant"), [(0.05, True), (0.05 * (1 + 1e-9), False), (0.0499, True)])
def test_what_is_significant(p, significant):
    pair = replace(numbers(np.arange(8.0), np.arange(8.0) ** 2).pairs[0], p_adjusted=p)
    assert pair.significant == significant


# -- draws and levels -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_families", "n_draws"), [(1, 40), (2, 80)])
def test_a_test_draws_enough_to_reach_its_level(n_families, n_draws):
    settings = Settings(confidence=0.95, margin=None, n_resamples=1)
    assert settings.n_families == 1
    settings = replace(settings, n_families=n_families)
    assert settings.n_draws == n_draws
    assert replace(settings, n_resamples=n_draws - 1).n_draws == n_draws
    assert replace(settings, n_resamples=n_draws + 1).n_draws == n_draws + 1


@pytest.mark.parametrize(("n", "n_resamples", "exact"), [(3, 8, True), (3, 7, False), (4, 16, False), (4, 15, False)])
def test_up_to_so_many_queries_every_exchange_is_made(monkeypatch, n, n_resamples, exact):
    monkeypatch.setattr(randomisation, "_MOST_EXACT", 3)
    values = np.zeros((9, 2))
    values[:n, 1] = 0.5
    [test] = randomisation.exchange_tests(Means.of(values, None), [(0, 1)], n_resamples, np.random.default_rng(0))
    assert test.exact == exact


@pytest.mark.parametrize(("n", "way"), [(24, "_all_signs"), (25, "drawn_signs")])
def test_at_most_24_queries_are_enumerated(monkeypatch, n, way):
    class Asked(Exception):  # noqa: N818
        pass

    for name in ("_all_signs", "drawn_signs"):

        def asked(*_, name=name):
            raise Asked(name)

        monkeypatch.setattr(randomisation, name, asked)
    values = np.stack([np.zeros(n), np.ones(n)], axis=1)
    with pytest.raises(Asked, match=way):
        randomisation.exchange_tests(Means.of(values, None), [(0, 1)], 1 << 26, np.random.default_rng(0))


def test_pairs_of_systems_with_runs_are_corrected():
    runs = {
        name: [np.clip(RNG.normal(0.5 + 0.1 * at, 0.2, 30), 0, 1) for _ in range(3)] for at, name in enumerate("abc")
    }
    alone = {
        (one, other): by_values({name: runs[name] for name in (one, other)}, qid=np.arange(30), measure="m").pairs[0]
        for one, other in ("ab", "ac", "bc")
    }
    found = by_values(runs, qid=np.arange(30), measure="m")
    p_values = [alone[pair.a, pair.b].p_value for pair in found.pairs]
    assert [pair.p_value for pair in found.pairs] == pytest.approx(p_values)
    assert [pair.p_adjusted for pair in found.pairs] == pytest.approx([min(1.0, 3 * p) for p in p_values])
    assert [pair.level for pair in found.pairs] == pytest.approx([0.05 / 3] * 3)
    for pair in found.pairs:
        reach = t_quantile(1 - pair.level, pair.dof) * pair.standard_error
        assert (pair.interval.low, pair.interval.high) == pytest.approx(
            (pair.difference - reach, pair.difference + reach)
        )
        assert pair.dof == alone[pair.a, pair.b].dof
        assert pair.interval.n_resamples is None


@pytest.mark.parametrize(
    ("error", "difference", "p"), [(0.0, 0.0, 1.0), (0.0, SAME, 1.0), (0.0, 1.01 * SAME, 0.0), (0.5, -SAME, 1.0)]
)
def test_runs_that_do_not_vary(error, difference, p):
    assert CrossedError(error, 5.0).p_value(difference) == p
    alike = crossed_error(0.0, 7, np.full(3, 0.5), np.full(2, 0.25))
    assert (alike.standard_error, alike.dof) == (0.0, 6.0)


# -- planning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.0, 1.0, -0.1, 1.1])
def test_a_power_is_a_probability(power):
    with pytest.raises(ValueError, match="power must be above 0 and below 1"):
        randomisation.queries_needed(0.1, 0.01, power, 0.95)
    with pytest.raises(ValueError, match="power must be above 0 and below 1"):
        randomisation.smallest_detectable(0.1, 9.0, power, 0.95)


@pytest.mark.parametrize(("confidence", "fewest"), [(0.95, 6), (0.9375, 5), (0.93, 5), (0.5, 2), (0.99, 8)])
def test_no_fewer_queries_than_the_test_needs(confidence, fewest):
    assert randomisation.queries_needed(1e-9, 1.0, 0.8, confidence) == fewest
    with pytest.raises(ValueError, match="difference must not be 0"):
        randomisation.queries_needed(0.1, 0, 0.8, confidence)


def test_queries_that_are_needed_by_hand():
    z, z_power = 1.9599639845400545, 0.8416212335729143
    assert randomisation.queries_needed(0.3, 0.05, 0.8, 0.95) == math.ceil(((z + z_power) * 6) ** 2 + z * z / 2)
    assert randomisation.queries_needed(0.3, -0.05, 0.8, 0.95) == randomisation.queries_needed(0.3, 0.05, 0.8, 0.95)
    t = t_quantile(0.95, 9)
    by_hand = (t * (1 - 1 / 36) + z_power * math.sqrt(1 + t * t / 18)) * 0.1
    assert randomisation.smallest_detectable(0.1, 9, 0.8, 0.95) == pytest.approx(by_hand)
    assert randomisation.smallest_detectable(0.1, 9, 1e-9, 0.5) == 0.0
    pair = numbers(np.arange(8.0), np.arange(8.0) ** 2).pairs[0]
    assert pair.queries_needed(0.5) == pair.queries_needed(0.5, 0.8)
    assert pair.smallest_detectable() == pair.smallest_detectable(0.8)


# -- intervals between bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "near"), [([1.0] * 4, 1.0), ([0.0] * 4, 0.0), ([0.5] * 4, 1.0), ([0.4375] * 4, 0.0), ([0.0, 1.0], 1.0)]
)
def test_an_interval_between_bounds_by_hand(values, near):
    n, pseudo = len(values), [(0.5, near), (0.75, 1 - near)]
    total = n + 1.25
    centre = (sum(values) + sum(weight * bound for weight, bound in pseudo)) / total
    square = (sum(value**2 for value in values) + sum(weight * bound for weight, bound in pseudo)) / total
    reach = t_quantile(0.9, n + 0.25) * math.sqrt((square - centre**2) / (n + 0.25))
    mean = sum(values) / n
    expected = max(0.0, min(centre - reach, mean)), min(1.0, max(centre + reach, mean))
    found = bounded.bounded_limits(np.array(values), np.full(n, 1 / n), 0.9)
    assert found == pytest.approx(expected)
    assert 0 <= found[0] <= mean <= found[1] <= 1


@pytest.mark.parametrize(
    ("outside", "refused"), [(-SAME, False), (-2 * SAME, True), (1 + SAME / 2, False), (1 + 2 * SAME, True)]
)
def test_values_beyond_the_bounds_have_no_such_interval(outside, refused):
    values = np.array([0.5, outside])
    assert not bounded.piles_up(values)
    if refused:
        with pytest.raises(ValueError, match=f"needs values between 0 and 1; a query has {outside:g}"):
            bounded.bounded_limits(values, np.full(2, 0.5), 0.9)
    else:
        assert bounded.bounded_limits(values, np.full(2, 0.5), 0.9)[0] < 0.5
    assert bounded.piles_up(np.full(9, outside)) != refused
    assert bounded.piles_up(np.repeat([0.5, 0.5 + SAME / 2], 2))
    assert not bounded.piles_up(np.repeat([0.5, 0.5 + 4 * SAME], 2))


# -- clusters and slices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [5, 6])
def test_six_clusters_are_enough(n):
    means = Means.of(np.arange(2.0 * n)[:, None], None)
    codes = np.arange(2 * n) // 2
    if n == 5:
        with pytest.raises(ValueError, match=r"at least 6 clusters, .* got 5 among 10 queries"):
            clusters.by_cluster(means, codes)
    else:
        assert clusters.by_cluster(means, codes).values[:, 0].tolist() == [0.5, 2.5, 4.5, 6.5, 8.5, 10.5]


@pytest.mark.parametrize(("weight", "fine"), [(5.0, True), (5.5, False)])
def test_a_cluster_may_have_half_of_the_weight(weight, fine):
    means = Means.of(np.arange(6.0)[:, None], np.array([weight, 1, 1, 1, 1, 1]))
    if fine:
        assert clusters.by_cluster(means, np.arange(6)).share()[0, 0] == pytest.approx(0.5)
    else:
        with pytest.raises(ValueError, match="cluster number 0 has 52 % of it"):
            clusters.by_cluster(means, np.arange(6))


def test_slices_are_in_the_order_of_their_labels():
    labels = ["b", 10, 9.5, "a", True, 9, -1, (1, 2), False]
    assert sorted(labels, key=_order) == [-1, 9, 9.5, 10, (1, 2), False, True, "a", "b"]
    slices = numbers(np.arange(9.0), np.arange(9.0) ** 2, by={"what": labels}).slices
    assert [each.label for each in slices] == [-1, 9, 9.5, 10, (1, 2), False, True, "a", "b"]
    assert slices["what", "a"] is slices[7]
    assert slices[-1].label == "b"
    with pytest.raises(
        KeyError, match=r"\('what', 'c'\) is no slice; name a column and a label, such as \('what', -1\)"
    ):
        slices["what", "c"]
    rows = slices._records()
    assert rows[0] == {"column": "what", "label": -1, "n_queries": 1, "verdict": "undecided"}
    assert "too few" in str(slices)


def test_a_table_of_slices_has_four_decimals():
    slices = numbers(np.sin(np.arange(16.0)), np.cos(np.arange(16.0)), by={"half": ["a", "b"] * 8}).slices
    pair = slices[0].pairs[0]
    assert f" {pair.difference:+.4f} " in str(slices)
    assert f" {pair.interval.low:+.4f} to {pair.interval.high:+.4f} " in str(slices)
    assert f"{pair.difference:+.2f} " in slices._table(2).text()
    assert "corrected for 2 slices (Bonferroni)" in str(slices)
    assert slices._records()[1]["low"] == slices[1].pairs[0].interval.low


def test_a_slice_that_is_not_there_is_named():
    slices = evaluate(Y, -Y, by=["a", "b"] * 20).slices
    assert slices["by", "a"].label == "a"
    with pytest.raises(
        KeyError, match=r"\('by', 'c'\) is no slice; name a column and a label, such as \('by', '[ab]'\)"
    ):
        slices["by", "c"]


# -- names and queries ----------------------------------------------------------------------------------------------


def test_systems_are_called_by_letters_and_then_by_numbers():
    names = matching._names([0] * 28, None)
    assert names[:2] == ("a", "b")
    assert names[25:] == ("z", "s27", "s28")


@pytest.mark.parametrize(
    ("n", "n_others", "fine"), [(1, 1, True), (2, 2, True), (2, 3, True), (1, 2, False), (2, 1, False)]
)
def test_systems_have_several_runs_or_one(n, n_others, fine):
    runs = {"old": [np.arange(9.0)] * n, "new": [np.arange(9.0) ** 2] * n_others}
    if fine:
        assert by_values(runs, qid=np.arange(9), measure="m").n_runs == (n, n_others)
    else:
        lone = "old" if n == 1 else "new"
        with pytest.raises(
            ValueError, match=f"each system must have two or more runs .*'{lone}' has 1. Train it again"
        ):
            by_values(runs, qid=np.arange(9), measure="m")


@pytest.mark.parametrize("n", [1, 2])
def test_two_queries_are_compared_and_one_is_not(n):
    values = np.full(3, np.nan)
    values[:n] = 0.5
    if n == 2:
        assert numbers(values, np.zeros(3), missing="drop").n_queries == 2
    else:
        with pytest.raises(ValueError, match=r"at least two queries must have a value .* got 1 of 3\."):
            numbers(values, np.zeros(3), missing="drop")


@pytest.mark.parametrize(("n", "words"), [(1, "2 has no value in b"), (2, "2, such as 1, have none in b")])
def test_queries_without_a_value_are_counted(n, words):
    values = np.zeros(3)
    values[3 - n :] = np.nan
    with pytest.raises(ValueError, match=f"every query must have a value in every system; of 3 queries {words}. It is"):
        numbers(np.zeros(3), values)


@pytest.mark.parametrize(("n_pairs", "asked"), [(45, True), (46, False)])
def test_up_to_45_pairs_are_asked_what_labels_leave_open(monkeypatch, n_pairs, asked):
    qrels = {"q": {"a": 1, "b": 0}, "r": {"a": 1}}
    sides = [evaluate_run(qrels, {"q": run, "r": ["a"]}, k=1) for run in (["a", "x"], ["x", "a"])]
    missing = compare(*sides, unjudged="accept", n_resamples=99)._missing
    calls, ranges = [], MissingLabels.range
    monkeypatch.setattr(MissingLabels, "range", lambda self, *pair: calls.append(pair) or ranges(self, *pair))
    words = missing.notes([(0, 1, -0.5)] * n_pairs)
    assert len(calls) == n_pairs * asked
    assert bool(words) == asked


@pytest.mark.parametrize(("lists", "n"), [([], 1), (["a"], 0), (["a", "b"], 0)])
def test_a_list_of_one_document_is_an_answer(lists, n):
    with pytest.warns(UserWarning, match="empty") if not lists else nullcontext():
        side = evaluate_run({"q": {"a": 1, "b": 0}, "r": {"a": 1}}, {"q": ["a", "b"], "r": lists})
    assert int(side._unanswered().sum()) == n


def test_defaults_of_intervals():
    side = evaluate(Y, Y + RNG.normal(0, 2, Y.shape), k=5)
    assert side.interval(seed=0) == side.interval(0.95, "bca", 9999, 0)
    assert side.interval(seed=0) != side.interval(0.95, "bca", 9998, 0)
    assert side.to_dict()["per_query"] is None


# -- labels that are missing ----------------------------------------------------------------------------------------


def two_runs(flavor="trec_eval", grade=0, unjudged="accept"):
    qrels = {"q": {"a": 2, "b": grade}, "r": {"a": 1}}
    sides = [evaluate_run(qrels, {"q": run, "r": ["a"]}, flavor=flavor, k=2) for run in (["a", "x"], ["x", "a"])]
    return compare(*sides, unjudged=unjudged, n_resamples=99, seed=0)


@pytest.mark.parametrize("flavor", ["trec_eval[negative=allow]"])
def test_a_range_that_is_not_known_leaves_a_comparison_as_it_is(flavor):
    with pytest.raises(RangeError, match="gain"):
        two_runs(flavor, -1).range()
    assert two_runs(flavor, -1).notes == ()
    assert not two_runs(flavor, -1)._missing.may_turn(0, 1, -0.5)
    assert two_runs()._missing.may_turn(0, 1, -0.5)
    assert two_runs().notes[0].startswith("labels could turn it: over all grades of 1 unjudged documents")


def test_a_pickled_comparison_has_no_documents():
    comparison = two_runs()
    again = pickle.loads(pickle.dumps(comparison))
    assert again.difference == comparison.difference
    assert again.notes == ()
    with pytest.raises(RangeError, match="the range needs one evaluation per system, with its documents"):
        again.range()


def test_unjudged_documents_of_queries_that_do_not_count_are_not_noted():
    labels, flavor = [[1, 0], [1, 0], [1, np.nan]], "trec_eval[ties=average]"
    scores = ([[2, 1], [2, 1], [2, 1]], [[1, 2], [2, 1], [1, 2]])
    sides = [evaluate(labels, each, flavor=flavor, query_weight=[1, 1, 0]) for each in scores]
    assert compare(*sides, n_resamples=99).notes == ()
    assert compare(*sides, n_resamples=99).range().n_unjudged == 0


# -- what is shown --------------------------------------------------------------------------------------------------


def test_runs_and_their_correction_are_shown():
    runs = {name: [np.arange(9.0) * at % 3 + at for at in (1, 2)] for name in "abc"}
    comparison = by_values(runs, qid=np.arange(9), measure="m", by={"half": ["x", "y", "z"] * 3})
    assert "; runs of each system: 2, 2, 2; " in comparison.caption()
    assert comparison.caption().endswith("; p and intervals corrected by Bonferroni for 3 pairs")
    assert "two-sided t test over queries and runs" in comparison.caption()
    head, row = str(comparison).split("\n")[:2]
    assert head.split() == ["system", "m", "runs"]
    assert row.split() == ["a", f"{comparison.values[0]:.6f}", "2"]
    assert "runs" not in str(numbers(np.arange(9.0), np.arange(9.0) ** 2)).split("\n")[0]


def test_a_notebook_shows_slices():
    slices = numbers(np.sin(np.arange(16.0)), np.cos(np.arange(16.0)), by={"half": ["a", "b"] * 8}).slices
    shown = slices._repr_html_()
    assert f"{slices[0].pairs[0].difference:+.4f}" in shown
    assert "half=b" in shown
    assert list(slices) == [slices[0], slices[1]]


def test_slices_need_a_column():
    with pytest.raises(ValueError, match=r"^by must have at least one column; got none\. Leave it out to take"):
        numbers(np.arange(9.0), np.arange(9.0), by={})
    with pytest.raises(ValueError, match=r"^by must have at least one column; got none\. Leave it out to take"):
        evaluate(Y, Y, by={})


@pytest.mark.parametrize("n_systems", [2, 3])
def test_numbers_of_a_measure_have_no_range(n_systems):
    comparison = numbers(*[np.arange(9.0) + at for at in range(n_systems)])
    with pytest.raises(RangeError, match="got numbers of a measure, or several runs"):
        comparison.range(a="a", b="b")


def test_defaults_of_comparisons():
    rng = np.random.default_rng(2)
    one, other, third = (rng.random(30) for _ in range(3))
    comparison = by_values(one, other, third, qid=np.arange(30), measure="m", seed=0)
    assert comparison.n_resamples == 9999
    assert comparison.pairs[0].interval.confidence == 0.95
    assert {pair.interval.method for pair in comparison.pairs} == {"max-t"}
    assert (
        comparison.queries_needed(0.01)
        == comparison.queries_needed(0.01, 0.8)
        == max(pair.queries_needed(0.01, 0.8) for pair in comparison.pairs)
    )
    assert comparison.smallest_detectable() == comparison.smallest_detectable(0.8)
    assert comparison.smallest_detectable() == max(pair.smallest_detectable(0.8) for pair in comparison.pairs)
    for write in (comparison.to_markdown,):
        assert write() == write(4) != write(5)
    slices = evaluate(Y, -Y, by=["a", "b"] * 20).slices
    assert str(slices) == slices._table(4).text() != slices._table(5).text()


def test_twenty_documents_are_to_be_judged_next():
    qrels = {f"q{at}": {"a": 2, "b": 1} for at in range(25)}
    sides = [
        evaluate_run(qrels, {f"q{at}": order for at in range(25)}, flavor="trec_eval", k=2)
        for order in (["a", "x"], ["x", "a"])
    ]
    comparison = compare(*sides, unjudged="accept", n_resamples=99)
    assert not comparison.settled
    assert len(comparison.judge_next()) == 20
    assert len(comparison.judge_next(21)) == 21
    assert len(comparison.judge_next(30)) == 25


@pytest.mark.parametrize("ks", [(1, 3, None), (None, 3, 1), (3, 1, None)])
def test_slices_are_in_the_order_of_the_first_cut_off(ks):
    rng = np.random.default_rng(1)
    labels, by = rng.integers(0, 3, (60, 6)), np.repeat(list("abcd"), 15)
    scores = labels + rng.normal(0, 2, labels.shape)
    orders = {k: [entry.label for entry in evaluate(labels, scores, k=k, by=by).slices] for k in ks}
    assert len({tuple(order) for order in orders.values()}) == 3
    assert [entry.label for entry in evaluate(labels, scores, k=ks, by=by).slices] == orders[ks[0]]


@pytest.mark.parametrize("k", [1, 2, None])
def test_one_of_several_cut_offs_is_compared(k):
    qrels = {f"q{at}": {"a": 2, "b": 1, "c": 0} for at in range(6)} | {"r": {"a": 1, "b": 2}}
    runs = [
        {f"q{at}": order for at in range(6)} | {"r": ["b", "a"]}
        for order in (["a", "x", "b", "c"], ["x", "b", "a", "y"])
    ]
    several, alone = ([evaluate_run(qrels, run, flavor="trec_eval", k=ks) for run in runs] for ks in ((1, 2, None), k))
    found = compare(*several, k=k, unjudged="accept", seed=0, n_resamples=99)
    expected = compare(*alone, unjudged="accept", seed=0, n_resamples=99)
    assert found.to_dict() == expected.to_dict()
    assert found.judged == expected.judged
    assert found.range() == expected.range()
    assert found.flavor.k == k
    with pytest.raises(ValueError, match=r"k must say which cut-off is compared, .* have several: \(1, 2, None\)"):
        compare(*several)
    with pytest.raises(ValueError, match=r"must have the cut-off 3; got one with \(1, 2, None\)"):
        compare(*several, k=3)
    with pytest.raises(ValueError, match=rf"must have the cut-off 3; got one with {k}\."):
        compare(*alone, k=3)


def test_a_test_is_shown_without_its_limits():
    [test] = randomisation.exchange_tests(
        Means.of(np.array([[0.0, 1.0]] * 4), None), [(0, 1)], 16, np.random.default_rng(0), [0.5]
    )
    assert repr(test) == "SignFlip(p_value=0.125, exact=True)"
    assert (test.low, test.high) == (1.0, 1.0)
    [alone] = randomisation.exchange_tests(
        Means.of(np.array([[0.0, 1.0]] * 4), None), [(0, 1)], 16, np.random.default_rng(0)
    )
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)


def test_the_linear_part_of_ratios_by_hand():
    values = np.array([[0.5, 1.0], [0.25, 0.0], [1.0, 0.5]])
    weight = np.array([[1.0, 1.0], [0.5, 1.0], [0.5, 0.25]])
    linear = Means.of(values, weight).linear()
    for column in range(2):
        w, v = weight[:, column], values[:, column]
        mean = (w * v).sum() / w.sum()
        assert linear.values[:, column] == pytest.approx(mean + 3 * w / w.sum() * (v - mean))
        assert linear.values[:, column].mean() == pytest.approx(mean)
    assert (linear.weight == 1).all()
    assert linear.influence() == pytest.approx(Means.of(values, weight).influence())
    alike = Means.of(values, weight[:, 0])
    assert alike.linear() is alike


def test_an_honest_value_by_hand():
    ndcg = np.random.default_rng(1).random((7, 3))
    rule = lambda own: int(own.mean(axis=0).argmax())  # noqa: E731
    left_out: list[list[float]] = [[] for _ in range(7)]
    chosen = [0, 0, 0]
    for drawn in np.concatenate(list(drawn_queries(7, 40, np.random.default_rng(0)))):
        winner = rule(ndcg[drawn])
        chosen[winner] += 1
        for query in {*range(7)} - {*drawn.tolist()}:
            left_out[query].append(ndcg[query, winner])
    assert all(left_out)
    value = np.mean([np.mean(each) for each in left_out])
    variance = np.mean([np.mean(np.square(each)) for each in left_out]) - value**2
    reach = t_quantile(0.9, 6) * math.sqrt(variance / 6)
    found = honest_value(ndcg, 0.9, 40, np.random.default_rng(0))
    assert found.value == pytest.approx(value)
    assert (found.interval.low, found.interval.high) == pytest.approx((value - reach, value + reach))
    assert (found.interval.value, found.interval.n_queries, found.interval.n_resamples) == (found.value, 7, None)
    assert found.chosen == pytest.approx([each / 40 for each in chosen])
    assert found.best_value == pytest.approx(ndcg[:, rule(ndcg)].mean())
    assert found.optimism == found.best_value - found.value
    most = max(range(3), key=found.chosen.__getitem__)
    assert f"candidate {most} is chosen in {100 * found.chosen[most]:.0f} % of 40 resamples" in str(found)


def test_what_is_compared_is_said_in_short():
    sides = [evaluate(Y, Y + RNG.normal(0, 2, Y.shape), k=5) for _ in range(2)]
    comparison = compare(*sides, n_resamples=99)
    assert comparison.definition == comparison.flavor.short_text
    assert comparison.flavor == sides[0].flavor
    assert comparison.measure == "NDCG@5"
    assert comparison.caption().startswith(f"{comparison.flavor}; 40 queries; ")
    of_numbers = numbers(np.arange(9.0), np.arange(9.0) ** 2)
    assert of_numbers.definition == of_numbers.measure == "m"
    assert of_numbers.flavor is None
    assert of_numbers.caption().startswith("m; 9 queries; ")
    assert (of_numbers.judged, of_numbers.n_clusters, of_numbers.slices, of_numbers.baseline) == (None,) * 4
    assert (of_numbers.n_unanswered, of_numbers.n_runs, comparison.n_unanswered) == ((), (1, 1), (0, 0))


def test_arrays_of_a_comparison_and_of_a_table_have_their_types():
    side = evaluate(Y, -Y, k=(1, 3), query_weight=np.ones(40, dtype=np.int64))
    table = side.per_query
    assert {name: table[name].dtype.kind for name in table} == {
        "qid": "i", "ndcg": "f", "dcg": "f", "idcg": "f", "empty": "b", "n_docs": "i", "n_judged": "i",
        "n_relevant": "i", "tied": "i", "weight": "f",
    }  # fmt: skip
    assert {name: table[name].shape for name in table if table[name].ndim == 2} == dict.fromkeys(
        ("ndcg", "dcg", "idcg", "empty"), (40, 2)
    )
    assert len(table) == 40
    assert repr(table) == f"<PerQuery of 40 queries: {', '.join(table.keys())}>"
    with pytest.raises(KeyError, match="'x' is not a column of per_query; the columns are qid, ndcg, "):
        table["x"]
    comparison = compare(side, side, k=3, n_resamples=99)
    assert (comparison.ndcg.dtype, comparison.ndcg.shape) == (np.float64, (40, 2))
    assert comparison.qid.tolist() == list(range(40))
    assert comparison.not_compared.size == 0
    pair = comparison.pairs[0]
    assert {type(value) for value in (pair.difference, pair.p_value, pair.standard_error, pair.skewness)} == {float}
    assert {type(value) for value in (pair.wins, pair.ties, pair.losses, comparison.n_queries)} == {int}
    assert (type(pair.exact), type(pair.interval.low), type(pair.interval.n_queries)) == (bool, float, int)


@pytest.mark.parametrize("turned", [False, True])
def test_a_run_is_compared_with_arrays(turned):
    qrels = {f"q{at}": {"a": 1, "b": 0} for at in range(6)}
    run = evaluate_run(qrels, {topic: ["a", "b"] for topic in qrels}, flavor="sklearn")
    rows = evaluate([1, 0] * 6, [1, 2] * 6, flavor=run.flavor, qid=np.repeat([*qrels], 2))
    sides = [rows, run] if turned else [run, rows]
    comparison = compare(*sides, n_resamples=99)
    assert comparison.n_queries == 6
    assert comparison.difference == pytest.approx((1 - 2 * turned) * (rows.value - 1))
