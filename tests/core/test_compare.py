"""``compare``, ``Evaluation.interval``, and labels of a model that a hundred of people correct."""

import itertools
import math
import warnings
from hashlib import blake2b

import numpy as np
import pytest
from comparing import Paired, by_scores, by_values, interval_by_hand, of_values
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from ndcg_ml import Comparison, Flavor, compare, compare_values, correct_labels, evaluate, evaluate_run
from ndcg_ml._statistics.intervals import Estimate
from ndcg_ml._statistics.means import Means
from ndcg_ml._statistics.p_values_and_sample_sizes import exchange_tests

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


def test_queries_are_matched_by_id_and_dates_are_ids_too():
    shuffled = np.random.default_rng(0).permutation(60)
    straight, turned = (compare(evaluated(A), evaluated(B, rows), seed=0) for rows in (slice(None), shuffled))
    assert turned.pairs == straight.pairs
    assert turned.qid.tolist() == QID
    swapped = compare(evaluated(A, shuffled), evaluated(B), seed=0)
    assert swapped.difference == pytest.approx(straight.difference, abs=1e-14)
    assert swapped.qid.tolist() == [QID[i] for i in shuffled]
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


def test_empty_queries_count_as_the_flavor_says_and_are_dropped_where_one_system_has_them():
    labels = Y.copy()
    labels[:9] = 0
    skipped = by_scores(A, B, y_true=labels, flavor="sklearn@5[empty=skip]", seed=0)
    assert (skipped.n_queries, skipped.not_compared.tolist()) == (51, list(range(9)))
    scored = by_scores(A, B, y_true=labels, flavor="sklearn@5[empty=0]", seed=0)
    assert (scored.n_queries, scored.ties - skipped.ties) == (60, 9)
    dropped = by_scores(A, B, y_true=labels, flavor="sklearn@5[empty=nan]", missing="drop", seed=0)
    assert dropped.pairs == skipped.pairs
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
    near = by_values([0.0] * 5, [1e-12, -1e-12, 2e-12, -2e-12, 0.0], qid=range(5), measure="m")
    assert (near.wins, near.ties, near.losses) == (1, 3, 1)
    constant = by_scores(*(np.tile(each, (12, 1)) for each in ([1.0, 2.0], [2.0, 1.0])), y_true=[[1, 0]] * 12)
    users = np.maximum(np.arange(20) // 2, 2)
    of_users = by_values(A[:20, 0], A[:20, 0] + 0.1, qid=range(20), measure="m", cluster=users)
    assert (of_users.standard_error, of_users.pairs[0].effective_queries) == (0.0, 20.0)
    assert (constant.interval.low, constant.difference, constant.interval.high) == (constant.difference,) * 3
    assert (constant.effect_size, constant.queries_needed(0.1), constant.p_value) == (math.inf, 6, 2 / 2**12)
    few = by_values(*(np.full(5, value) for value in (0.0, 0.1, 0.2)), qid=range(5), measure="m").pairs[0]
    assert (few.p_adjusted, few.interval.low, few.verdict) == (2 / 2**5, 0.0, "undecided")


def test_the_caption_states_the_flavor():
    runs = [{"q1": ["a", "b"], "q2": ["c"], "q3": ["d"]}, {"q1": ["b", "a"], "q2": ["c"], "q3": ["e", "d"]}]
    qrels = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}, "q3": {"d": 1, "e": 0}}
    both = compare(*(evaluate_run(qrels, run, k=5) for run in runs), names=["b_25", "s|x"], seed=0)
    flavor = str(Flavor.preset("trec_eval", k=5))
    assert both.caption() == (
        f"{flavor}; 3 queries; intervals at 95 %, interval of the randomisation test; two-sided randomisation test, "
        "exact for exchangeable systems, every exchange"
    )
    assert "".join(both.caption().split()) in "".join(str(both).split())  # the text of the flavor is wrapped
    assert both.notes == ("3 queries cannot show a difference; use 6 or more",)
    assert both.to_dict()["flavor"] == flavor
    markdown = both.to_markdown(2)
    assert markdown.startswith(
        "| a | b | verdict on b | b - a | 95 % interval | p | better/worse |\n"
        "| --- | --- | --- | --: | --: | --: | --: |\n"
        r"| b_25 | s\|x | undecided | -0.17 | - | 0.50 | 0/2 |"
    )
    assert markdown.endswith(f"{both.caption()} Note: {both.notes[0]}.\n")
    three = by_scores(A, B, C, y_true=Y, k=5)
    assert "| adj. p | better/worse |\n" in three.to_markdown()
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


GRADES = np.array([2.0, 0.0, 1.0])
RANKING = np.array([3.0, 2.0, 1.0])


def systems(n_queries, n_worse):
    """One system, and the same with its first queries turned around."""
    labels, scores = np.tile(GRADES, n_queries), np.tile(RANKING, n_queries)
    changed = scores.copy()
    changed[: 3 * n_worse] *= -1
    group = np.full(n_queries, 3)
    return [evaluate(labels, s, group=group, k=10) for s in (scores, changed)]


@pytest.mark.parametrize("n_worse", [0, 1, 10])
def test_bundles_of_queries_barely_move_the_interval(n_worse):
    few, many = (compare(*systems(n, n_worse), seed=0).pairs[0] for n in (2048, 2049))
    limits = np.array([[one.interval.low, one.interval.high] for one in (few, many)])
    np.testing.assert_allclose(limits[1], limits[0] * 2048 / 2049, rtol=0.05, atol=1e-6)
    # Equal queries do not change the p-value, which is at least that of the exchanges of those that differ.
    assert many.losses == n_worse
    assert min(1, 2 * 2.0**-n_worse) <= many.p_value <= 2 * 2.0**-n_worse + 1e-3


def test_a_level_that_takes_many_draws_is_kept():
    assert compare(*systems(50, 20), confidence=0.9999, seed=0).pairs[0].interval.confidence == 0.9999


# -- ``Evaluation.interval``, ``.std``, ``.standard_error``: what counts, several cut-offs, ratios, and refusals


@examples(60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["macro", "micro"]),
    st.sampled_from([0.0, 1.0, "skip"]),
    st.sampled_from(["recall", "global", "local"]),
    st.booleans(),
    st.sampled_from([0.5, 0.9, 0.95]),
)
def test_intervals_are_those_of_the_formula(seed, aggregate, empty, ideal, is_weighted, confidence):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    labels = rng.integers(0, 4, (n, 5)) * (rng.random((n, 1)) > 0.3)
    scores = labels + rng.normal(0, 3, labels.shape)
    labels[:3, 0], scores[:3, 0] = 3, 99  # queries that no cut-off leaves empty
    weight = (rng.integers(0, 4, n) + (np.arange(n) < 3)) ** rng.choice([1, 6]) if is_weighted else np.ones(n)
    options = {"query_weight": weight * 10.0 ** rng.integers(-99, 99)} if is_weighted else {}
    flavor = Flavor(aggregate=aggregate, empty=empty, ideal=ideal)
    result = evaluate(labels, scores, flavor=flavor, k=(1, 3, None), **options)
    found, rows = result.interval(confidence), result.per_query
    for at, k in enumerate(result.k):
        ndcg, dcg, best, is_empty = (getattr(rows, name)[:, at] for name in ("ndcg", "dcg", "idcg", "empty"))
        counted = (weight > 0) & ~(is_empty & (aggregate == "micro" or empty == "skip"))
        up, down = (weight * dcg, weight * best) if aggregate == "micro" else (weight * ndcg, weight)
        up, down, m = up[counted], down[counted], int(counted.sum())
        value, share = up.sum() / down.sum(), down / down.sum()
        influence = share * (up / down - value)
        error = math.sqrt((influence**2).sum() * m / (m - 1))
        std = math.sqrt((share * (up / down - value) ** 2).sum() * m / (m - 1))
        got = (result.value[k], result.standard_error[k], result.std[k])
        assert got == pytest.approx((value, error, std), rel=1e-9, abs=1e-12)
        assert (found[k].value, found[k].n_queries, found[k].confidence) == (result.value[k], m, confidence)
        assert (found[k].low, found[k].high) == pytest.approx(interval_by_hand(up / down, share, confidence), abs=1e-9)


def test_a_confidence_just_below_one_is_not_a_hundred_per_cent():
    rng = np.random.default_rng(0)
    found = evaluate(rng.integers(0, 3, (20, 5)), rng.normal(size=(20, 5)))
    for confidence, text in ((0.9999999, "99.99999 %"), (0.95, "95 %"), (0.999, "99.9 %")):
        assert text in str(found.interval(confidence))


def from_zero(*differences: float):
    """Systems a, all 0, and b."""
    b = np.array(differences, dtype=np.float64)
    return Paired(np.zeros(b.size), b)


@pytest.mark.parametrize(
    ("differences", "p_value"),
    [
        ((1, 2, 3), 2 / 8),
        ((1, -2, 3), 6 / 8),  # |sum| >= 2: all but +1 +2 -3 and its mirror
        ((0, 1, 0, -2, 3, 0), 6 / 8),
        ((0.1, 0.2, 0.3), 2 / 8),
        ((1, -1), 1.0),
        ((0.5, 0), 1.0),
        ((0.0, 0.0), 1.0),
        ((1e-15, 0.0, 1e-15, 1e-15), 1.0),  # rounding
    ],
)
def test_exact_randomisation_by_hand(differences, p_value):
    result = from_zero(*differences).test()
    assert result.exact
    assert result.p_value == pytest.approx(p_value, abs=1e-12)


def test_a_p_value_is_at_least_that_of_the_queries_that_differ():
    result = from_zero(*[0.0, 1e-12] * 20, 0.1, 0.2, 0.3, 0.4, 0.5).test(n_resamples=999, seed=0)
    assert (result.exact, result.p_value) == (False, pytest.approx(2 / 32, abs=0.03))
    assert result.p_value >= 2 / 32
    assert from_zero(*range(1, 19)).test(n_resamples=2**18).p_value == pytest.approx(2 / 2**18)  # several blocks
    heavy = Paired(np.zeros(3), np.array([0.1, 0.1, -0.1]), np.array([1.0, 5.0, 1.0]))
    assert heavy.difference == pytest.approx(0.5 / 7)
    assert heavy.test().p_value == pytest.approx(6 / 8)  # 0.7, 0.5, 0.5, 0.3 and their mirrors


def test_an_exchange_of_ratios_exchanges_both_parts():
    # A micro average: the ideals of the two systems differ, so that the denominators change places too.
    values, ideals = np.array([[0.2, 0.9], [0.4, 0.5], [1.0, 0.7]]), np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])
    means = Means.from_weights(values, ideals)
    observed = abs(np.subtract(*np.average(values, axis=0, weights=ideals)))
    hits = 0
    scaled = ideals / ideals.sum(axis=0)
    for flips in itertools.product((False, True), repeat=3):
        v, w = values.copy(), scaled.copy()
        v[list(flips)], w[list(flips)] = v[list(flips), ::-1], w[list(flips), ::-1]
        hits += abs(np.subtract(*np.average(v, axis=0, weights=w))) >= observed - 1e-12
    linear = means.linear()
    for each in (Means.mean, Means.influence):
        assert each(linear) == pytest.approx(each(means))
    assert (linear.weight == 1).all()
    [found] = exchange_tests(linear, [(0, 1)], 100, np.random.default_rng(0))
    assert found.exact
    assert found.p_value == pytest.approx(hits / 8)


def test_the_seed_decides_what_is_drawn():
    both = from_zero(*np.random.default_rng(1).normal(0.05, 0.2, 40))
    # A result without an interval holds NaN, and Python 3.13 counts two such results as different.
    assert both.test(seed=3).p_value == both.test(seed=np.random.default_rng(3)).p_value != both.test(seed=4).p_value


def test_a_p_value_is_never_zero_nor_printed_as_zero():
    result = from_zero(*[0.5] * 60).test(n_resamples=999, seed=0)
    assert (result.exact, result.p_value) == (False, 1 / 1000)
    tables = by_scores(A, np.where(Y > 0, Y, -1), y_true=Y, k=5, n_resamples=100_000, seed=0)
    assert " <0.0001 " in tables.to_markdown()


# -- labels of a model that a hundred of people correct: by hand, by simulation, and what is refused


N = 300


def drawn(seed, bias=0.1, noise=0.1, n_people=40):
    """Values under human labels and under those of a model, and the queries with human labels."""
    rng = np.random.default_rng(seed)
    human = rng.beta(2, 2, N)
    model = np.clip(human + bias + rng.normal(0, noise, N), 0.001, 1)  # a label of 0 is not relevant
    return human, model, rng.choice(N, n_people, replace=False)


def corrected(human, model, some):
    return correct_labels(of_values(model), of_values(human[some], some))


def by_hand(f, d, chosen, contrasts=((1.0,),)):
    """Prediction-powered inference with two folds by a digest of the ids, and one weight per fold for all columns.

    Return the estimates of contrasts of the columns, their covariance, their third cumulants, and the weight of each
    query.
    """

    def covariance(sample):
        return np.atleast_2d(np.cov(sample, rowvar=False)) if len(sample) > 1 else 0.0

    order = sorted(range(chosen.size), key=lambda at: blake2b(str(chosen[at]).encode()).digest())
    chosen, d, f, contrasts = (
        chosen[order],
        d[order].reshape(chosen.size, -1),
        f.reshape(N, -1),
        np.transpose(contrasts),
    )
    g, rest, n, weights = f[chosen], np.delete(f, chosen, axis=0), chosen.size, np.empty((chosen.size, 1))
    for half in (0, 1):
        x, y = (each[1 - half :: 2] - each[1 - half :: 2].mean(axis=0) for each in (g, d))
        weights[half::2] = min(1.0, max(0.0, (x * y).sum() / ((1 + n / len(rest)) * (x * x).sum())))
    left, rest = (d - weights * g) @ contrasts, rest @ contrasts
    spread = sum(len(half) / n**2 * covariance(half) for half in (left[::2], left[1::2]))
    parts = [half - half.mean(axis=0) for half in (left[::2], left[1::2])]
    third = sum((len(half) / (len(half) - 1)) ** 1.5 * (half**3).sum(axis=0) for half in parts) / n**3
    apart = weights.mean() * (rest - rest.mean(axis=0)) / math.sqrt(len(rest) * max(1, len(rest) - 1))
    value = (left + weights * rest.mean(axis=0)).mean(axis=0)
    covariances = spread + weights.mean() ** 2 * covariance(rest) / len(rest)
    return value, covariances, third + (apart**3).sum(axis=0), weights


@pytest.mark.filterwarnings("ignore:the queries with human labels")
@pytest.mark.parametrize("shift", [0.0, -0.7, 0.7])
@pytest.mark.parametrize(("n_people", "noise"), [(20, 0.1), (41, 0.1), (41, 2.0), (N - 2, 0.1), (N - 1, 0.1)])
def test_the_corrected_value_by_hand(n_people, noise, shift):
    human, model, some = drawn(1, noise=noise, n_people=n_people)
    f, d = model + shift, human[some] + shift
    found = correct_labels(of_values(f), of_values(d, some))
    [value], [[square]], [third], weights = by_hand(f, d, some)
    error = math.sqrt(square)
    assert (found.value, found.standard_error) == pytest.approx((value, error))
    assert found.weight == pytest.approx(weights.mean())
    assert found.bias == pytest.approx((f[some] - d).mean())
    added = weights.max() * (np.delete(f, some).mean() - f)
    ends = min(0, f.min(), d.min()), max(1, f.max(), d.max())
    bounds = ends[0] + min(0, added.min()), ends[1] + max(0, added.max())
    skewness = third / error**3 * math.sqrt(n_people - 1)
    for confidence in (0.9, 1 - 1e-12):
        interval = found.interval(confidence)
        limits = Estimate(value, error, n_people - 2, skewness, bounds).limits(confidence)
        assert (interval.low, interval.high) == pytest.approx(tuple(np.clip(limits, *ends)), abs=1e-7)


@pytest.mark.filterwarnings("ignore:the queries with human labels")
@pytest.mark.parametrize("end", [0.0, 1.0])
def test_a_corrected_value_of_values_up_to_1_is_not_beyond(end):
    human, model, some = np.linspace(0.9, 1, N), np.ones(N), np.arange(7, 47)
    model[some] = human[some] - 0.1
    found = corrected(*(abs(1 - end - each) for each in (human, model)), some)
    assert by_hand(model, human[some], some)[0] > 1
    assert found.value == end == getattr(found.interval(), "high" if end else "low")


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_rows_does_not_matter(seed):
    human, model, some = drawn(8)
    other = np.roll(human, 1)
    rng = np.random.default_rng(seed)

    def ordered(human, model):
        rows, of_people = rng.permutation(N), rng.permutation(some)
        return correct_labels(of_values(model[rows], rows), of_values(human[of_people], of_people))

    plain = [corrected(human, model, np.sort(some)), corrected(other, np.roll(model, 1), np.sort(some))]
    shuffled = [ordered(human, model), ordered(other, np.roll(model, 1))]
    for one, two in [*zip(plain, shuffled, strict=True), (compare(*plain).pairs[0], compare(*shuffled).pairs[0])]:
        assert one.standard_error == pytest.approx(two.standard_error, rel=1e-9)
    assert compare(*shuffled).difference == pytest.approx(compare(*plain).difference, abs=1e-12)
    assert shuffled[0].value == pytest.approx(plain[0].value, abs=1e-12)


@pytest.mark.parametrize(("n_systems", "baseline"), [(2, None), (2, "b"), (4, None), (3, "a"), (4, "c")])
def test_systems_are_corrected_together(n_systems, baseline):
    stats, rng = pytest.importorskip("scipy.stats"), np.random.default_rng(n_systems)
    human, model, some = drawn(3)
    of_people = np.clip(human[:, None] + rng.normal(0, 0.1, (N, n_systems)), 0.001, 1)
    of_model = model[:, None] + 0.6 * (of_people - human[:, None]) + rng.normal(0, 0.05, of_people.shape)
    of_model = of_model.clip(0.001, 1)
    systems = {"abcd"[at]: corrected(of_people[:, at], of_model[:, at], some) for at in range(n_systems)}
    found = compare(systems, baseline=baseline, seed=0, margin=0.2)
    assert [(pair.a, pair.b) for pair in found.pairs] == [
        pair for pair in itertools.permutations(systems, 2) if (pair[0] == baseline if baseline else pair[0] < pair[1])
    ]
    # One weight corrects the mean of the systems, and one their deviations from it.
    people, f_mean, d_mean = of_people[some], of_model.mean(axis=1), of_people[some].mean(axis=1)
    signs = [[(name == pair.b) - (name == pair.a) for name in systems] for pair in found.pairs]
    apart = of_model - f_mean[:, None], people - d_mean[:, None], some
    gaps, covariance, *_ = by_hand(*apart, signs)
    each, *_ = by_hand(*apart, np.eye(n_systems))
    assert found.values == pytest.approx(by_hand(f_mean, d_mean, some)[0] + each)
    errors = np.sqrt(np.diag(covariance))
    scale = np.sqrt(rng.chisquare(38, (100_000, 1)) / 38)
    largest = np.abs(rng.multivariate_normal(0 * gaps, covariance / np.outer(errors, errors), 100_000) / scale).max(
        axis=1
    )
    for pair, gap, error, sign in zip(found.pairs, gaps, errors, signs, strict=True):
        t = abs(gap) / error
        assert (pair.difference, pair.standard_error) == pytest.approx((gap, error))
        assert pair.p_value == pytest.approx(2 * stats.t.sf(t, 38))
        assert pair.p_adjusted == pytest.approx((largest >= t).mean(), abs=0.02)
        reach = (pair.interval.high - pair.interval.low) / 2
        assert reach == pytest.approx(np.quantile(largest, 0.95) * error, rel=0.02)
        assert pair.level == pytest.approx(2 * stats.t.sf(reach / error, 38), rel=1e-5)
        assert pair.interval.low + reach == pytest.approx(gap)
        assert pair.effective_queries == pytest.approx((people @ sign).var(ddof=1) / error**2)
        assert pair.wins == (people @ sign > 1e-12).sum()
        assert (pair.interval.low > 0 or pair.interval.high < 0) == pair.significant
    assert {pair.verdict for pair in found.pairs} <= {"equivalent", "better", "worse"}
    assert "300 queries have labels of a model; the correction is valid if the 40 queries" in found.notes[0]
    assert "corrected" in str(found)


def test_what_is_printed_says_what_is_not_corrected():
    human, model, some = drawn(4)
    found = corrected(human, model, some)
    assert f"Not corrected: {model.mean():.6f} under the model's labels" in str(found)
    assert "40 by people" in str(found)
    assert found.to_dict()["interval"]["low"] == found.interval().low


# -- what is refused --------------------------------------------------------------------------------------------------

HUMAN, MODEL, SOME = drawn(5)


def test_queries_that_people_judged_in_part_are_named():
    ids = [f"q{i}" for i in range(60)]
    run = {qid: ["a", "b", "c"] for qid in ids}
    by_model = {qid: {"a": 1, "b": 0, "c": i % 2} for i, qid in enumerate(ids)}
    by_people = {qid: dict(by_model[qid]) for qid in np.random.default_rng(0).permutation(ids)[:25].tolist()}
    found = correct_labels(evaluate_run(by_model, run, k=2), evaluate_run(by_people, run, k=2))
    assert found.bias == 0
    partly = next(iter(by_people))
    del by_people[partly]["c"]
    with pytest.raises(ValueError, match=f"same number of documents .* the numbers differ in '{partly}'"):
        correct_labels(evaluate_run(by_model, run, k=2), evaluate_run(by_people, run, k=2))


def of_documents(prefix, shift, ids):
    run = {qid: {f"{prefix}{at}": shift - at for at in range(3)} for qid in ids}
    return lambda queries, grade: evaluate_run(
        {q: {f"{prefix}{at}": grade for at in range(3)} for q in queries}, {q: run[q] for q in queries}, k=2
    )


def of_rows(prefix, shift, ids):
    return lambda queries, grade: evaluate(
        np.full(3 * len(queries), grade),
        np.tile([3.0, 2.0, 1.0], len(queries)) + shift,
        qid=np.repeat(queries, 3),
        doc_id=None if prefix is None else np.tile([prefix, "y", "z"], len(queries)),
    )


@pytest.mark.parametrize(
    ("system", "one", "other"),
    [
        (of_documents, ("d", 9), ("e", 9)),
        (of_documents, ("d", 9), ("d", 10)),
        (of_rows, ("d", 0), ("e", 0)),
        (of_rows, ("d", 0), ("d", 1)),
        (of_rows, (None, 0), (None, 1)),
        (of_rows, ("d", 0), (None, 1)),
    ],
)
def test_other_documents_or_scores_are_refused(system, one, other):
    ids = [f"q{i}" for i in range(60)]
    people = np.random.default_rng(0).permutation(ids)[:25].tolist()
    model = system(*one, ids)(ids, 1)
    correct_labels(model, system(*one, ids)(people[::-1], 2))
    with pytest.raises(
        ValueError, match=f"the same documents and scores in model and human; got others in '{people[0]}'"
    ):
        correct_labels(model, system(*other, ids)(people, 2))


def test_a_sample_that_is_not_random_is_warned_of():
    with pytest.warns(UserWarning, match=r"must be a random sample; these are the first ones \(pass qid= to both"):
        corrected(HUMAN, MODEL, np.arange(40))
    stats = pytest.importorskip("scipy.stats")
    for sign, factor in itertools.product((-1, 1), (1 - 1e-6, 1 + 1e-6)):
        # Means apart by nearly as much, or just as much, as a t test with p = .001 notices.
        f, others = MODEL / 3 + 0.3, np.delete(MODEL / 3 + 0.3, SOME)
        error = math.sqrt(f[SOME].var(ddof=1) / 40 + others.var() / others.size)
        f[SOME] += others.mean() - f[SOME].mean() + sign * factor * stats.t.isf(0.0005, 39) * error
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", "the queries with human labels must be a random sample")
            corrected(HUMAN, f, SOME)
        assert len(caught) == (factor > 1)
        for warned in caught:
            assert f"labels their mean is {f[SOME].mean():.4f}, and that of the others {others.mean():.4f}" in str(
                warned
            )
            assert warned.filename == __file__


def test_a_system_is_unchanged_beside_itself_and_no_draws_bound_the_p_value_of_a_single_pair():
    one = corrected(HUMAN, MODEL, SOME)
    assert compare(one, corrected(HUMAN / 2, MODEL / 2, SOME)).pairs[0].p_adjusted < 1e-6
    found = compare(one, one, margin=0.001)
    assert found.verdict == "unchanged"
    assert (found.interval.low, found.interval.high) == (0.0, 0.0)


def test_systems_that_only_the_model_tells_apart_are_not_unchanged():
    rng = np.random.default_rng(0)
    some = rng.choice(N, 50, replace=False)
    human, worse = np.full(N, 0.9), np.full(N, 0.9)
    worse[np.setdiff1d(np.arange(N), some)[:15]] = 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no loss was drawn, which is not likely
        systems = [corrected(human, labels, some) for labels in (human, worse)]
    found = compare(*systems, margin=0.02)
    pair = found.pairs[0]
    assert (found.verdict, found.difference, found.p_value, pair.widened) == ("undecided", 0, 1, True)
    # Up to 1 - .025^(1/50) of the queries may lose as much as the model's labels say.
    assert found.interval.low == pytest.approx(-0.4 * (1 - 0.025 ** (1 / 50)))
    assert "none of 50 queries changed" in str(found)
    assert "up to 7.1 % of other queries may" in str(found)
    assert pair.unseen == pytest.approx(1 - 0.05 ** (1 / 50))
    assert pair.smallest_detectable() == math.inf
    family = compare(*systems, systems[0], margin=0.02)
    assert [one.verdict for one in family.pairs] == ["undecided", "unchanged", "undecided"]
    assert family.pairs[0].interval.low <= found.interval.low


@pytest.mark.parametrize("m", [1, 3, 5, 6, 9])
def test_fewer_than_six_changed_queries_widen_the_interval_on_both_sides(m):
    stats, rng = pytest.importorskip("scipy.stats"), np.random.default_rng(1)
    some = rng.choice(N, 100, replace=False)
    old, new = np.full(N, 0.9), np.full(N, 0.9)
    new[some[:m]] = 0.5
    new[np.setdiff1d(np.arange(N), some)[: 2 * m]] = 0.5
    found = compare(corrected(old, old, some), corrected(new, new, some))
    reach = stats.t.ppf(0.975, 98) * found.standard_error
    unseen = 0.4 * (stats.beta.ppf(1 - 0.05 / 4, m + 1, 100 - m) - m / 100)
    below, above = found.difference - found.interval.low, found.interval.high - found.difference
    assert (below, above) == pytest.approx((max(reach, unseen), max(reach, unseen) if m < 6 else reach))
    p_few = min(1, 4 * stats.beta.sf(m / 100 - found.difference / 0.4, m + 1, 100 - m)) * (m < 6)
    assert found.p_value == pytest.approx(max(2 * stats.t.sf(-found.difference / found.standard_error, 98), p_few))
    assert (found.pairs[0].widened, found.verdict) == (True, "undecided" if m < 6 else "worse")


def test_values_at_a_bound_have_the_interval_of_people_at_least():
    rng = np.random.default_rng(2)
    human, some = np.where(rng.random(N) < 0.9, 1.0, rng.random(N)), rng.choice(N, 60, replace=False)
    model = np.where(rng.random(N) < 0.1, rng.random(N), human)
    perfect = some[human[some] == 1][:30]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = corrected(human, model, perfect)
        other = corrected(human, model, some)
    alone = of_values(human[perfect], perfect).interval()
    assert found.interval().low == pytest.approx(alone.low, rel=0.01)
    assert found.interval().low <= alone.low < found.interval().high == 1
    assert found.effective_queries in (29, 30)
    for confidence in (0.5, 0.95, 0.999):
        interval = other.interval(confidence)
        assert 0 <= interval.low < other.value < interval.high <= 1


@pytest.mark.parametrize("n_people", [20, 40, 100])
@pytest.mark.parametrize("ones", [0.0, 0.9])
def test_corrected_labels_are_worth_as_many_queries_as_give_an_interval_as_wide(n_people, ones):
    rng = np.random.default_rng(n_people)
    human = np.where(rng.random(N) < ones, 1.0, rng.beta(5, 2, N))
    model = np.clip(human + rng.normal(0, 0.03, N), 0.001, 1)
    some = rng.choice(N, n_people, replace=False)
    found = corrected(human, model, some).interval()
    n, labelled = round(found.effective_queries), np.sort(human[some])
    # As many queries with the same spread of labels: each label of the sample, repeated.
    alike = labelled[np.linspace(0, n_people - 1, n).round().astype(int)]
    alone = of_values(alike).interval()
    assert alone.high - alone.low == pytest.approx(found.high - found.low, rel=0.15)


def test_the_interval_allows_for_errors_of_the_model_that_the_sample_lacks():
    rng = np.random.default_rng(0)
    human = rng.beta(2.6, 1, N)
    some = rng.choice(N, 50, replace=False)
    wrong = np.isin(np.arange(N), np.delete(np.arange(N), some)[: round(0.045 * N)])  # none in 10 % of samples
    interval = corrected(human, np.where(wrong, 0.0, human), some).interval()
    assert interval.low < human.mean() < interval.high
    assert interval.high - interval.low < of_values(human[some]).interval().high - of_values(human[some]).interval().low


def test_few_queries_of_people_are_not_blamed_on_weights():
    human, model, some = drawn(7, noise=1.0, n_people=20)
    found = compare(corrected(human, model, some), corrected(human[::-1].copy(), model, some))
    assert found.pairs[0].effective_queries < 30
    assert "equal weight" not in found.caption()
