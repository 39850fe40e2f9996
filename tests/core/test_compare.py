"""``compare``: which queries are paired, several systems, what is printed, refusals, and how often chance wins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import by_scores, by_values

from ndcg_ml import Comparison, Flavor, compare, compare_values, evaluate, evaluate_run
from ndcg_ml._decide.means import Means
from ndcg_ml._decide.randomisation import exchange_tests

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


def test_scores_are_evaluated_on_the_way():
    flavor = Flavor.preset("lightgbm", k=3)
    of_scores = by_scores(A, B, y_true=Y, flavor=flavor, seed=1)
    of_evaluations = compare(*(evaluate(Y, each, flavor=flavor) for each in (A, B)), seed=1)
    assert of_scores.pairs == of_evaluations.pairs
    assert of_scores.flavor == flavor
    weighted = by_scores(A, B, y_true=Y, k=5, query_weight=np.arange(1.0, 61.0), seed=1)
    values = [evaluate(Y, each, k=5, query_weight=np.arange(1.0, 61.0)).value for each in (A, B)]
    assert weighted.difference == pytest.approx(values[1] - values[0], abs=1e-14)


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
    with pytest.raises(ValueError, match=r"not in b: 'q40', 'q41', .*, \.\.\. \(20\)\. Evaluate the same queries, or"):
        compare(evaluated(A), evaluated(B, slice(40)))
    with pytest.raises(ValueError, match=r"not in a: 'q50', .* \(10\); queries that are not in b: 'q0', .* \(5\)"):
        compare(evaluated(A, slice(50)), evaluated(B, slice(5, None)))
    dropped = compare(evaluated(A, slice(50)), evaluated(B, slice(5, None)), missing="drop", seed=0)
    common = compare(evaluated(A, slice(5, 50)), evaluated(B, slice(5, 50)), seed=0)
    assert dropped.difference == common.difference
    assert dropped.qid.tolist() == QID[5:50]
    assert dropped.not_compared.tolist() == [*QID[:5], *QID[50:]]


def test_queries_that_are_empty_for_all_count_as_the_flavor_says():
    labels = Y.copy()
    labels[:9] = 0
    skipped = by_scores(A, B, y_true=labels, flavor="sklearn@5[empty=skip]", seed=0)
    assert (skipped.n_queries, skipped.not_compared.tolist()) == (51, list(range(9)))
    scored = by_scores(A, B, y_true=labels, flavor="sklearn@5[empty=0]", seed=0)
    assert (scored.n_queries, scored.ties - skipped.ties) == (60, 9)
    with pytest.raises(
        ValueError, match=r"in a: 0, .* \(9\); queries without a value in b: 0, .* \(9\). They are empty"
    ):
        by_scores(A, B, y_true=labels, flavor="sklearn@5[empty=nan]")
    dropped = by_scores(A, B, y_true=labels, flavor="sklearn@5[empty=nan]", missing="drop", seed=0)
    assert dropped.pairs == skipped.pairs


def test_a_query_that_is_empty_for_one_alone():
    flavor = "ndcg@1[ideal=local,empty=skip]"
    with pytest.raises(ValueError, match=r"without a value in b: .* They are empty there, and the flavor skips them"):
        by_scores(A, B, y_true=Y, flavor=flavor)
    dropped = by_scores(A, B, y_true=Y, flavor=flavor, missing="drop")
    assert set(dropped.values) == {1.0}
    assert (dropped.difference, dropped.p_value, dropped.effect_size) == (0.0, 1.0, 0.0)


def test_one_of_several_cutoffs():
    a, b = (evaluate(Y, each, k=(1, 5)) for each in (A, B))
    assert compare(a, b, k=5, seed=0).pairs == by_scores(A, B, y_true=Y, k=5, seed=0).pairs
    with pytest.raises(ValueError, match=r"k must be the cut-off to compare, .* several: \(1, 5\)"):
        compare(a, b)
    with pytest.raises(ValueError, match=r"must have the cut-off 10; got one with \(1, 5\)"):
        compare(a, b, k=10)


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
    with pytest.raises(ValueError, match="difference must not be 0"):
        same.queries_needed(0.0)
    assert same.verdict == by_scores(A, A, y_true=Y, k=5, margin=0.01).verdict == "unchanged"
    best, worst = np.tile([2.0, 1.0], (12, 1)), np.tile([1.0, 2.0], (12, 1))
    constant = by_scores(worst, best, y_true=np.tile([1, 0], (12, 1)))
    assert (constant.interval.low, constant.difference, constant.interval.high) == (constant.difference,) * 3
    assert (constant.effect_size, constant.queries_needed(0.1), constant.p_value) == (math.inf, 6, 2 / 2**12)


def test_bad_input():
    a, b = evaluated(A), evaluated(B)
    for systems, arguments, kind, message in (
        ((A, B), {}, TypeError, r"must be evaluations; got ndarray. Use compare\(evaluate\("),
        ((a, B), {}, TypeError, "must be evaluations; got ndarray.*compare_values for"),
        ((A, B), {"y_true": Y}, TypeError, "unexpected keyword argument 'y_true'"),
        ((a, evaluated(B, flavor="lightgbm")), {}, ValueError, "under one flavor; a is ndcg.*, b is ndcg.*exponential"),
        ((a, b), {"names": ["x"]}, ValueError, "names must be 2 different names"),
        ((a, b), {"names": ["x", "x"]}, ValueError, "names must be 2 different names"),
        ((a, b), {"names": "ab"}, TypeError, "names must be a sequence of strings"),
        ((a, b), {"names": 5}, TypeError, "names must be a sequence of strings, one per system; got 5"),
        ((a, b), {"confidence": 1.5}, ValueError, "above 0 and below 1"),
        ((a, b), {"n_resamples": 0}, ValueError, "n_resamples must be an integer >= 1"),
        ((a, b), {"missing": "ignore"}, ValueError, "missing must be one of 'raise', 'drop'"),
        ((evaluated(A, slice(1)), evaluated(B, slice(1))), {}, ValueError, "at least two queries .* got 1 of 1"),
        (
            (a, evaluated(B, query_weight=np.arange(1, 61))),
            {},
            ValueError,
            r"weights differ: .*, \.\.\. \(59\)\. Pass the same query_weight",
        ),
    ):
        with pytest.raises(kind, match=message):
            compare(*systems, **arguments)


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
    with pytest.raises(TypeError, match="details must be"):
        both.to_markdown(details=1)
    assert markdown.endswith(f"{both.caption()}\n")
    three = by_scores(A, B, C, y_true=Y, k=5)
    assert "| adj. p | better/worse |\n" in three.to_markdown()
    assert "| p | adj. p |" in three.to_markdown(details=True)
    assert three.caption().endswith("exchanges drawn; seed 0; p and intervals corrected for 3 pairs by max-T")
    seeded = by_scores(A, B, C, y_true=Y, k=5, seed=7, baseline="b")
    assert seeded.caption().endswith("exchanges drawn; seed 7; p and intervals corrected for 2 pairs by max-T")
    with pytest.raises(TypeError, match="digits must be an integer"):
        both.to_markdown(1.5)


def test_print_fits_100_columns():
    """Names of twelve characters; the verdict directly follows the names, and captions and notes are wrapped."""
    draw = np.random.default_rng(0)
    numbers = {f"system_{name}": draw.random(12000) for name in ("alpha", "betas", "gamma")}
    for names in (list(numbers), list(numbers)[:2]):
        lines = str(
            compare_values({name: numbers[name] for name in names}, qid=range(12000), measure="recall", margin=0.02)
        ).splitlines()
        assert max(map(len, lines)) <= 100
        assert any(line.startswith("a             b             verdict on b ") for line in lines)


def test_a_p_value_is_never_printed_as_zero():
    tables = by_scores(A, np.where(Y > 0, Y, -1), y_true=Y, k=5, n_resamples=100_000, seed=0)
    assert " <0.0001 " in tables.to_markdown()


def test_no_difference_is_called_significant_in_5_percent():
    # 2 000 pairs of equally good systems on 40 queries, skewed and with ties.
    rng = np.random.default_rng(17)
    hits = 0
    for _ in range(2000):
        values = rng.beta(0.4, 0.9, (40, 2)) * (rng.random((40, 2)) > 0.2)
        [test] = exchange_tests(Means.from_weights(values, None), [(0, 1)], 399, np.random.default_rng(rng))
        hits += test.p_value <= 0.05
    # 99.9 % of Binomial(2 000, 0.05) lie from 69 to 133.
    below = sum(math.comb(2000, n) * 0.05**n * 0.95 ** (2000 - n) for n in range(69))
    above = 1 - sum(math.comb(2000, n) * 0.05**n * 0.95 ** (2000 - n) for n in range(134))
    assert max(below, above) < 0.0005
    assert 69 <= hits <= 133


def test_several_runs_of_numbers_are_those_of_evaluations():
    draw = np.random.default_rng(5)
    labels, scores = draw.integers(0, 3, (30, 6)), draw.random((2, 3, 30, 6))
    runs = [[evaluate(labels, one, flavor="sklearn[empty=1]") for one in system] for system in scores]
    numbers = [[evaluation.per_query.ndcg for evaluation in system] for system in runs]
    of_runs = compare(dict(zip("ab", runs, strict=True)), seed=0)
    of_numbers = by_values(dict(zip("ab", numbers, strict=True)), measure="NDCG", qid=np.arange(30), seed=0)
    assert of_numbers.n_runs == of_runs.n_runs == (3, 3)
    assert of_numbers.p_value == of_runs.p_value
    assert of_numbers.interval.low == pytest.approx(of_runs.interval.low, abs=1e-12)
