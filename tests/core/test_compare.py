"""``compare``: which queries are paired, several systems, what is printed, refusals, and how often chance wins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import by_scores

from ndcg_ml import Comparison, Flavor, compare, compare_values, evaluate, evaluate_run

RNG = np.random.default_rng(2)
Y = RNG.integers(0, 4, (60, 10))
A, B, C = (Y + RNG.normal(0, noise, Y.shape) for noise in (2.5, 2.0, 1.0))
QID = [f"q{i}" for i in range(60)]


def evaluated(scores, rows=slice(None), **more):
    ids = np.repeat(np.array(QID)[rows], 10)
    return evaluate(Y[rows].reshape(-1), scores[rows].reshape(-1), qid=ids, k=5, **more)


def test_two_systems():
    a, c = evaluated(A), evaluated(C)
    both = compare(a, c, seed=0)
    assert isinstance(both, Comparison)
    assert both.difference == pytest.approx(c.value - a.value, abs=1e-15)
    assert both.values == pytest.approx((a.value, c.value), abs=1e-15)
    apart = c.per_query.ndcg - a.per_query.ndcg
    assert (both.wins, both.losses) == ((apart > 1e-12).sum(), (apart < -1e-12).sum())
    assert both.wins + both.ties + both.losses == both.n_queries == 60
    assert both.effect_size == pytest.approx(apart.mean() / apart.std(ddof=1), rel=1e-12)
    assert both.standard_error == pytest.approx(apart.std(ddof=1) / math.sqrt(60), rel=1e-12)
    assert both.interval.low < both.difference < both.interval.high
    assert both.p_value == both.pairs[0].p_adjusted < 0.001
    assert both.pairs[0].significant
    assert both.queries_needed(0.1) < 60 < both.queries_needed(0.02) < both.queries_needed(0.02, power=0.9)
    mirrored = compare(c, a, seed=0)
    assert (mirrored.difference, mirrored.p_value) == (-both.difference, both.p_value)
    assert (mirrored.wins, mirrored.losses) == (both.losses, both.wins)


def test_queries_are_matched_by_id():
    shuffled = RNG.permutation(60)
    straight, turned = (
        compare(evaluated(A), evaluated(B), seed=0),
        compare(evaluated(A), evaluated(B, shuffled), seed=0),
    )
    assert turned.pairs == straight.pairs
    assert turned.qid.tolist() == QID
    swapped = compare(evaluated(A, shuffled), evaluated(B), seed=0)
    assert swapped.difference == pytest.approx(straight.difference, abs=1e-14)
    assert swapped.qid.tolist() == [QID[i] for i in shuffled]


def test_dates_are_ids_too():
    days = np.datetime64("2026-01-01") + np.arange(60)
    a, b = (
        evaluate(Y[order].reshape(-1), each[order].reshape(-1), qid=np.repeat(days[order], 10), k=5)
        for each, order in ((A, np.arange(60)), (B, np.arange(60)[::-1]))
    )
    assert compare(a, b, seed=0).difference == pytest.approx(b.value - a.value, abs=1e-14)


def test_queries_that_do_not_match_are_counted():
    options = {"by": {qid: at % 3 > 0 for at, qid in enumerate(QID)}, "seed": 0}
    dropped = compare(evaluated(A, slice(50)), evaluated(B, slice(5, None)), missing="drop", **options)
    common = compare(evaluated(A, slice(5, 50)), evaluated(B, slice(5, 50)), **options)
    assert dropped.difference == common.difference
    assert dict(dropped.slices) == dict(common.slices)
    assert dropped.qid.tolist() == QID[5:50]
    assert dropped.not_compared.tolist() == [*QID[:5], *QID[50:]]


def test_queries_that_are_empty_for_all_count_as_the_flavor_says():
    labels = Y.copy()
    labels[:9] = 0
    skipped = by_scores(A, B, y_true=labels, flavor="sklearn@5[empty=skip]", seed=0)
    assert (skipped.n_queries, skipped.not_compared.tolist()) == (51, list(range(9)))
    scored = by_scores(A, B, y_true=labels, flavor="sklearn@5[empty=0]", seed=0)
    assert (scored.n_queries, scored.ties - skipped.ties) == (60, 9)
    dropped = by_scores(A, B, y_true=labels, flavor="sklearn@5[empty=nan]", missing="drop", seed=0)
    assert dropped.pairs == skipped.pairs


def test_a_query_that_is_empty_for_one_alone():
    dropped = by_scores(A, B, y_true=Y, flavor="ndcg@1[ideal=local,empty=skip]", missing="drop")
    assert set(dropped.values) == {1.0}
    assert (dropped.difference, dropped.p_value, dropped.effect_size) == (0.0, 1.0, 0.0)


def test_several_systems_are_corrected():
    all_three = by_scores(A, B, C, y_true=Y, k=5, names=["linear", "trees", "net"], seed=0)
    assert [(pair.a, pair.b) for pair in all_three.pairs] == [("linear", "trees"), ("linear", "net"), ("trees", "net")]
    alone = by_scores(A, C, y_true=Y, k=5, seed=0)
    together = all_three.pairs[1].interval
    assert together.low < alone.interval.low < alone.interval.high < together.high
    for name in ("difference", "interval", "p_value", "wins", "ties", "losses", "effect_size", "standard_error"):
        with pytest.raises(AttributeError, match=r"a comparison of 3 systems has 3 differences. Choose one of .pairs"):
            getattr(all_three, name)
    assert all_three.queries_needed(0.01) == max(pair.queries_needed(0.01) for pair in all_three.pairs)
    assert all_three.smallest_detectable() == max(pair.smallest_detectable() for pair in all_three.pairs)


def test_equal_systems_and_constant_differences():
    same = by_scores(A, A, y_true=Y, k=5)
    assert (same.difference, same.p_value, same.ties, same.effect_size) == (0.0, 1.0, 60, 0.0)
    assert (same.interval.low, same.interval.high, same.standard_error) == (0.0, 0.0, 0.0)
    assert same.verdict == by_scores(A, A, y_true=Y, k=5, margin=0.01).verdict == "unchanged"
    best, worst = np.tile([2.0, 1.0], (12, 1)), np.tile([1.0, 2.0], (12, 1))
    constant = by_scores(worst, best, y_true=np.tile([1, 0], (12, 1)))
    assert (constant.interval.low, constant.difference, constant.interval.high) == (constant.difference,) * 3
    assert (constant.effect_size, constant.queries_needed(0.1), constant.p_value) == (math.inf, 6, 2 / 2**12)


def test_the_caption_states_the_flavor():
    runs = [{"q1": ["a", "b"], "q2": ["c"], "q3": ["d"]}, {"q1": ["b", "a"], "q2": ["c"], "q3": ["e", "d"]}]
    qrels = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}, "q3": {"d": 1, "e": 0}}
    both = compare(*(evaluate_run(qrels, run, k=5) for run in runs), names=["b_25", "s|x"], seed=0)
    flavor = str(Flavor.preset("trec_eval", k=5))
    assert both.caption() == (
        f"{flavor}; 3 queries; intervals at 95 %, interval of the randomisation test; two-sided randomisation test, "
        "exact for exchangeable systems, every exchange"
    )
    assert "".join(str(both).split()).endswith("".join(both.caption().split()))  # the text of the flavor is wrapped
    markdown = both.to_markdown(2)
    assert markdown.startswith(
        "| a | b | verdict on b | b - a | 95 % interval | p | better/worse |\n"
        "| --- | --- | --- | --: | --: | --: | --: |\n"
        r"| b_25 | s\|x | undecided | -0.17 | -inf to +inf | 0.50 | 0/2 |"
    )
    assert "| p | better/worse | changed | d_z | detectable |\n" in both.to_markdown(details=True)
    assert markdown.endswith(f"{both.caption()}\n")
    three = by_scores(A, B, C, y_true=Y, k=5)
    assert "| adj. p | better/worse |\n" in three.to_markdown()
    assert "| p | adj. p |" in three.to_markdown(details=True)
    assert three.caption().endswith("exchanges drawn; seed 0; p and intervals corrected for 3 pairs by max-T")
    seeded = by_scores(A, B, C, y_true=Y, k=5, seed=7, baseline="b")
    assert seeded.caption().endswith("exchanges drawn; seed 7; p and intervals corrected for 2 pairs by max-T")


def test_print_fits_100_columns():
    """Names of twelve characters; the verdict directly follows the names, and captions and notes are wrapped."""
    draw = np.random.default_rng(0)
    numbers = {f"system_{name}": draw.random(12000) for name in ("alpha", "betas", "gamma")}
    for names in (list(numbers), list(numbers)[:2]):
        kinds = {"kind": ["navigational", "informational"] * 6000} if len(names) == 2 else None
        systems = {name: numbers[name] for name in names}
        text = str(compare_values(systems, qid=range(12000), measure="recall", margin=0.02, by=kinds))
        lines = text.splitlines()
        assert max(map(len, lines)) <= 100
        assert any(line.startswith("a             b             verdict on b ") for line in lines)


def test_a_p_value_is_never_printed_as_zero():
    tables = by_scores(A, np.where(Y > 0, Y, -1), y_true=Y, k=5, n_resamples=100_000, seed=0)
    assert " <0.0001 " in tables.to_markdown()


GRADES = np.array([2.0, 0.0, 1.0])
RANKING = np.array([3.0, 2.0, 1.0])


def systems(n_queries, n_worse):
    """One system, and the same with its first queries turned around."""
    labels, scores = np.tile(GRADES, n_queries), np.tile(RANKING, n_queries)
    changed = scores.copy()
    changed[: 3 * n_worse] *= -1
    group = np.full(n_queries, 3)
    return [evaluate(labels, s, group=group, k=10) for s in (scores, changed)]


@pytest.mark.parametrize("n_worse", [0, 1, 13, 14])
@pytest.mark.parametrize("n_queries", [1023, 1024, 20_000])
def test_any_number_of_equal_queries_is_compared(n_queries, n_worse):
    old, new = systems(n_queries, n_worse)
    found = compare(old, new, margin=0.02, seed=0).pairs[0]
    assert found.losses == n_worse
    assert found.interval.low <= found.difference <= found.interval.high
    few = compare(*systems(100, n_worse), seed=0).pairs[0]
    # Equal queries do not change the p-value, which is exact up to 13 that differ.
    assert found.p_value == (pytest.approx(few.p_value, abs=1e-3) if n_worse > 13 else few.p_value)


@pytest.mark.parametrize("n_worse", [0, 13])
def test_many_equal_clusters_and_slices_are_compared(n_worse):
    old, new = systems(4096, n_worse)
    cluster = {i: i // 2 for i in range(4096)}
    by = {"half": {i: "first" if i < 2048 else "second" for i in range(4096)}}
    found = compare(old, new, cluster=cluster, by=by, seed=0)
    assert found.n_clusters == 2048
    assert len(found.slices) == 2


def test_a_bundle_of_equal_queries_barely_moves_the_interval():
    (few, many) = (compare(*systems(n, 10), seed=0).pairs[0].interval for n in (1000, 1025))
    np.testing.assert_allclose([many.low, many.high], np.array([few.low, few.high]) * 1000 / 1025, rtol=0.03)


def test_a_level_that_takes_many_draws_is_kept():
    assert compare(*systems(50, 20), confidence=0.9999, seed=0).pairs[0].interval.confidence == 0.9999
