"""What one may say of systems: verdicts, simultaneous intervals, clusters, seeds, slices, differing judged@k."""

import itertools
import json
import math

import numpy as np
import pytest
from comparing import by_values, interval_by_hand, of_values

from ndcg_ml import Flavor, compare, evaluate, evaluate_run
from ndcg_ml._statistics.intervals import aggregate_clusters, estimate_of, robust_error
from ndcg_ml._statistics.means import Means
from ndcg_ml._statistics.p_values_and_sample_sizes import exchange_tests, max_t
from ndcg_ml._statistics.verdict import verdict
from ndcg_ml.gating import gate
from ndcg_ml.results.comparison import favoured

RNG = np.random.default_rng(4)
N = 40
IDS = [f"q{i}" for i in range(N)]
BASE = RNG.random((N, 1))
TABLE = np.clip(BASE + RNG.normal(0, 0.15, (N, 4)) + [0.0, 0.01, 0.05, 0.2], 0, 1)


def values(*columns, **settings):
    settings = {"seed": 0, "n_resamples": 999, **settings}
    return by_values(*(TABLE[:, i] for i in columns), qid=IDS, measure="recall@10", **settings)


@pytest.mark.parametrize(
    ("low", "high", "margin", "expected"),
    [
        (0.01, 0.05, None, "better"),
        (-0.05, 0.05, None, "undecided"),
        (1e-12, 0.05, None, "undecided"),
        (2e-12, 0.05, None, "better"),
        (0.01, 0.05, 0.02, "better"),
        (0.01, 0.019, 0.02, "equivalent"),
        (-0.019, 0.019, 0.02, "equivalent"),
        (-0.019, 0.05, 0.02, "not worse"),
        (-0.02, 0.05, 0.02, "undecided"),
        (-0.05, 0.019, 0.02, "undecided"),
        (-0.02, 0.02, 0.02, "undecided"),
        (-0.02, 0.019, 0.02, "undecided"),
        (-0.019, 0.02, 0.02, "not worse"),
    ],
)
def test_the_verdict_follows_the_interval(low, high, margin, expected):
    assert verdict(low, high, 6, margin) == expected
    mirrored = {"better": "worse", "equivalent": "equivalent"}
    if expected in mirrored:
        assert verdict(-high, -low, 6, margin) == mirrored[expected]


@pytest.mark.parametrize(("low", "high"), [(0.01, 0.05), (-0.05, -0.01), (-0.005, 0.005), (-0.05, 0.05)])
def test_an_open_sign_and_equal_values_come_before_the_interval(low, high):
    assert verdict(low, high, 50, 0.01, changed=False) == "unchanged"
    assert {verdict(low, high, 50, 0.01, changed=changed, settled=False) for changed in (False, True)} == {"undecided"}


def test_fewer_than_six_queries_are_never_equivalent():
    assert verdict(-0.001, 0.001, 5, 0.02) == "undecided"
    assert verdict(-0.001, 0.001, 6, 0.02) == "equivalent"
    found = by_values(np.zeros(5), np.ones(5), qid=range(5), measure="m")
    assert (found.interval.low, found.interval.high, found.verdict) == (-math.inf, math.inf, "undecided")
    assert json.dumps(found.to_dict(), allow_nan=False).count("null") >= 2


@pytest.mark.parametrize(("n_equal", "near"), [(0, 0.0), (6, 0.008)])  # 14 queries are drawn
def test_the_interval_inverts_the_test(n_equal, near):
    difference = np.r_[[0.3, 0.1, -0.05, 0.2, 0.15, 0.02, 0.08, -0.01], np.zeros(n_equal)]
    weight = np.r_[[1.0, 2, 1, 1, 1, 3, 1, 1], np.ones(n_equal)]
    means = Means.from_weights(np.stack([np.zeros(8 + n_equal), difference], axis=1), weight)
    [found] = exchange_tests(means, [(0, 1)], 8192 if n_equal else 256, np.random.default_rng(0), 0.05)
    signs = np.array([*itertools.product((1, -1), repeat=8 + n_equal)])

    def p_of(delta):
        shifted = means.share()[:, 0] * (difference - delta)
        return np.mean(np.abs(signs @ shifted) >= abs(shifted.sum()) - 1e-12)

    assert found.p_value == pytest.approx(p_of(0.0), abs=near)
    for limit, inward in ((found.low, 1e-6), (found.high, -1e-6)):
        assert p_of(limit + inward) + near > 0.05 >= p_of(limit - inward) - near


@pytest.mark.parametrize("n_resamples", [64, 63])  # 64 enumerates every exchange, 63 draws them
def test_the_limits_exclude_0_exactly_where_p_is_at_most_the_level(n_resamples):
    # Multiples of a tenth: many parts of the queries have a mean of 0, but for rounding.
    for d in ([0.1, 0.2, -0.3, 0.4, 0.1, 0.2], [0.1, 0.2, 0.3, -0.6, 0.3, 0.3], [0.7, 0.1, -0.1, 0.2, 0.3, -0.4]):
        means = Means.from_weights(np.stack([np.zeros(6), d], axis=1), None)
        for at in range(1, 65):
            level = at / 64
            [found] = exchange_tests(means, [(0, 1)], n_resamples, np.random.default_rng(0), level)
            assert found.exact == (n_resamples == 64)
            assert (found.low > 0 or found.high < 0) == (found.p_value <= level)


class Draws:
    """Turns the sign of every third query."""

    @staticmethod
    def integers(low, high, size, dtype):
        return np.packbits(np.tile(np.arange(8 * size[1]) % 3 == 0, (size[0], 1)), axis=1)


@pytest.mark.parametrize("pairs", [[(0, 1), (0, 2), (1, 2)], [(0, 1), (0, 2)]])
@pytest.mark.parametrize("table", [TABLE[:, :3], TABLE[:, [0, 0, 0]] + [0.0, 0.1, 0.3]])
def test_the_largest_t_by_hand(pairs, table):
    weight = np.arange(1.0, N + 1)
    share = weight / weight.sum()
    found = max_t(Means.from_weights(table, weight), pairs, 1, Draws()).largest
    centred = table - share @ table
    centred[::3] *= -1
    largest = 0.0
    for a, b in pairs:
        d = centred[:, b] - centred[:, a]
        mean = share @ d
        if np.ptp(d) > 1e-12:
            largest = max(largest, abs(mean) / math.sqrt((share**2 @ (d - mean) ** 2) * N / (N - 1)))
    assert found == pytest.approx([largest], rel=1e-10)


@pytest.mark.parametrize(
    ("shape", "heavy", "pairs"),
    [*(((n, 400), 1, itertools.pairwise(range(400))) for n in (6, 200)), ((140_000, 3), 1e6, [(0, 1), (0, 2)])],
)
def test_many_systems_or_queries_have_as_many_draws(shape, heavy, pairs):
    means = Means.from_weights(np.random.default_rng(0).random(shape), np.r_[heavy, np.ones(shape[0] - 1)])
    assert max_t(means, [*pairs], 3, np.random.default_rng(0)).largest.size == 3


def test_p_and_the_critical_value_are_the_same_rule():
    chance = max_t(Means.from_weights(TABLE, None), [(0, 1), (2, 3)], 199, np.random.default_rng(0))
    for at in range(1, 200):
        critical = chance.critical(at / 200)
        assert chance.p_value(critical) > at / 200 >= chance.p_value(critical * (1 + 1e-9))
    assert chance.p_value(1e9) == 1 / 200
    assert chance.critical(0.001) == math.inf  # 199 draws have no p-value as small


def test_a_baseline_has_fewer_pairs_and_narrower_intervals():
    everyone, against = values(0, 1, 2, 3), values(0, 1, 2, 3, baseline="b")
    assert [(pair.a, pair.b) for pair in against.pairs] == [("b", "a"), ("b", "c"), ("b", "d")]
    width = {(p.a, p.b): p.interval.high - p.interval.low for p in everyone.pairs}
    assert all(p.interval.high - p.interval.low < width[p.a, p.b] for p in against.pairs if (p.a, p.b) in width)


@pytest.mark.parametrize(("n_changed", "attainable"), [(0, False), (7, False), (8, True)])
def test_too_few_changed_queries_detect_nothing(n_changed, attainable):
    found = with_changes(np.r_[np.linspace(0.1, 0.2, n_changed), np.zeros(50 - n_changed)])
    # 2^-4 is above .05, and of samples with as many on average 28 or 18 % have fewer than six changed queries.
    assert math.isfinite(found.smallest_detectable()) == attainable
    assert (found.to_dict()["pairs"][0]["smallest_detectable"] is None) != attainable


@pytest.mark.parametrize("n", [6, 5])
def test_a_level_that_equals_the_smallest_p_value_is_attainable(n):
    found = with_changes(np.linspace(0.1, 0.18, n), confidence=1 - 2**-5)
    assert found.pairs[0].significant == math.isfinite(found.smallest_detectable()) == (n == 6)


def test_the_robust_error_by_matrices():
    # Bell and McCaffrey's CR2 of a regression on a constant, with matrices of queries by queries.
    sizes = np.array([1, 2, 3, 4, 5, 9])
    codes = np.repeat(np.arange(6), sizes)
    y = np.random.default_rng(0).random(codes.size)
    n = codes.size
    residual = y - y.mean()
    rows, variance = [], 0.0
    for g in range(6):
        inside = codes == g
        m = int(inside.sum())
        value, vector = np.linalg.eigh(np.eye(m) - np.ones((m, m)) / n)
        adjust = vector @ np.diag(value**-0.5) @ vector.T
        variance += float((np.ones(m) @ adjust @ residual[inside] / n) ** 2)
        rows.append((np.eye(n) - np.ones((n, n)) / n)[inside].T @ adjust @ np.ones(m) / n)
    gram = np.array(rows) @ np.array(rows).T
    error, dof = robust_error(aggregate_clusters(Means.from_weights(y[:, None], None), codes))
    assert error[0] == pytest.approx(math.sqrt(variance), rel=1e-10)
    assert dof[0] == pytest.approx(np.trace(gram) ** 2 / (gram**2).sum(), rel=1e-10)
    interval = of_values(y, cluster=dict(enumerate(codes.tolist()))).interval(0.9)
    of_clusters = np.array([y[codes == g].mean() for g in range(6)])
    assert (interval.low, interval.high) == pytest.approx(interval_by_hand(of_clusters, sizes / n, 0.9))


def test_copies_of_queries_are_no_more_queries():
    twice = np.repeat(TABLE, 3, axis=0)
    ids, user = [f"{q}-{i}" for q in IDS for i in range(3)], np.repeat(IDS, 3)
    once = values(0, 2)
    found = by_values(twice[:, 0], twice[:, 2], qid=ids, measure="m", cluster=user, seed=0, n_resamples=999)
    assert (found.p_value, found.interval.low, found.interval.high) == pytest.approx(
        (once.p_value, once.interval.low, once.interval.high)
    )
    assert found.pairs[0].effective_queries == pytest.approx(N, rel=0.03)
    assert (found.n_clusters, found.n_queries) == (N, 3 * N)
    assert "120 queries in 40 clusters (equivalent to 39 independent queries of equal weight)" in found.caption()
    alone = by_values(twice[:, 0], twice[:, 2], qid=ids, measure="m", seed=0)
    assert alone.standard_error < 0.6 * found.standard_error
    by_id = dict(zip(ids, user.tolist(), strict=True))
    again = by_values(twice[:, 0], twice[:, 2], qid=ids, measure="m", cluster=by_id, seed=0, n_resamples=999)
    assert again.pairs == found.pairs


def test_clusters_of_an_evaluation():
    labels = np.random.default_rng(0).integers(0, 3, (30, 6))
    scores = labels + np.random.default_rng(1).normal(0, 2, labels.shape)
    user = np.arange(30) // 3
    plain, clustered = evaluate(labels, scores, k=3), evaluate(labels, scores, k=3, cluster=user)
    interval = clustered.interval()
    of_user = plain.per_query.ndcg.reshape(10, 3).mean(axis=1)
    assert clustered.standard_error == pytest.approx(of_user.std(ddof=1) / math.sqrt(10))
    assert (interval.low, interval.high) == pytest.approx(interval_by_hand(of_user, np.full(10, 0.1)))
    assert interval.n_queries == 30
    assert 0 < interval.effective_queries <= 30
    assert "worth" in str(interval)
    other = evaluate(labels, scores + 0.1, k=3, cluster=user)
    assert compare(clustered, other, seed=0).n_clusters == 10


def clustered_run(noise):
    """30 topics of 10 users, and the user of each."""
    rng = np.random.default_rng(7)
    grades = rng.integers(0, 3, (30, 6))
    scores = grades + noise * rng.normal(size=grades.shape)
    qrels = {f"q{q}": {f"d{d}": int(grade) for d, grade in enumerate(row)} for q, row in enumerate(grades)}
    run = {f"q{q}": {f"d{d}": float(score) for d, score in enumerate(row)} for q, row in enumerate(scores)}
    return qrels, run, {f"q{q}": f"u{q // 3}" for q in range(30)}


def test_clusters_of_a_run():
    qrels, run, user = clustered_run(2.0)
    run.pop("q4")  # counts as unanswered, and belongs to a user all the same
    plain, clustered = evaluate_run(qrels, run, k=3), evaluate_run(qrels, run, k=3, cluster=user)
    of_user = plain.per_query.ndcg.reshape(10, 3).mean(axis=1)
    assert clustered.value == plain.value
    assert clustered.standard_error == pytest.approx(of_user.std(ddof=1) / math.sqrt(10))
    assert clustered.interval().effective_queries is not None
    other = evaluate_run(qrels, clustered_run(3.0)[1], k=3, cluster=user)
    told = compare(plain, evaluate_run(qrels, clustered_run(3.0)[1], k=3), seed=0, cluster=user)
    assert compare(clustered, other, seed=0).n_clusters == 10
    assert compare(clustered, other, seed=0).pairs == told.pairs
    assert "30 queries (no documents returned: a 1, b 0) in 10 clusters" in compare(clustered, other, seed=0).caption()
    assert "  unanswered\n" in str(compare(clustered, other, seed=0))
    in_order = [user[topic] for topic in plain.per_query.qid.tolist()]
    assert evaluate_run(qrels, run, k=3, cluster=in_order).cluster.tolist() == clustered.cluster.tolist()
    new = evaluate_run(qrels, clustered_run(3.0)[1], k=3)
    assert gate(clustered, new, margin=0.1).comparisons["baseline"][3].n_clusters == 10
    for cluster, words in (({"q0": "u"}, "q1"), (["u"] * 3, "one label per query, 30, or .*; got 3")):
        with pytest.raises(ValueError, match=f"cluster must .*{words}"):
            evaluate_run(qrels, run, cluster=cluster)


@pytest.mark.parametrize("k", [3, (1, 3)])
def test_slices_keep_their_clusters(k):
    qrels, run, user = clustered_run(2.0)
    # 8 users in one slice; 2, too few for an interval, in the other.
    by = {"users": {topic: "few" if int(u[1:]) < 2 else "many" for topic, u in user.items()}}
    whole = evaluate_run(qrels, run, k=k, by=by, cluster=user)
    many = whole.slices["users", "many"]
    among = [topic for topic in qrels if by["users"][topic] == "many"]
    alone = evaluate_run({topic: qrels[topic] for topic in among}, run, k=k, cluster=user)
    assert many.cluster.tolist() == [user[topic] for topic in among]
    assert many.interval() == alone.interval()
    clustered, plain = (
        {(row["label"], row["k"]): row for row in result.slices.to_dict()["slices"]}
        for result in (whole, evaluate_run(qrels, run, k=k, by=by))
    )
    for cut_off in np.atleast_1d(k).tolist():
        theirs = alone.interval()
        theirs = theirs[cut_off] if isinstance(k, tuple) else theirs
        mine, few, unclustered = clustered["many", cut_off], clustered["few", cut_off], plain["few", cut_off]
        assert (mine["low"], mine["high"]) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
        assert few["low"] is None
        assert unclustered["low"] is not None
        assert (few["ndcg"], few["share"]) == (unclustered["ndcg"], unclustered["share"])


def test_several_runs_of_each_system():
    labels = np.random.default_rng(0).integers(0, 3, (40, 6))

    def runs(noise, seeds):
        return [evaluate(labels, labels + np.random.default_rng(s).normal(0, noise, labels.shape), k=3) for s in seeds]

    old, new = runs(4, range(3)), runs(1, range(5, 9))
    found = compare({"old": old, "new": new}, seed=0)
    assert found.names == ("old", "new")
    assert found.n_runs == (3, 4)
    assert found.values == pytest.approx([np.mean([e.value for e in each]) for each in (old, new)])
    assert found.verdict == "better"
    table = {name: [e.per_query.ndcg for e in each] for name, each in (("old", old), ("new", new))}
    assert found.p_value == pytest.approx(by_values(table, qid=range(40), measure="m").p_value)
    assert "runs of each system: 3, 4" in found.caption()
    assert "two-sided t test over queries and runs" in found.caption()
    assert [line.split()[-1] for line in str(found).splitlines()[:3]] == ["runs", "3", "4"]
    assert (found.interval.low > 0) == found.pairs[0].significant
    three = compare({"old": old, "new": new, "third": runs(1, range(9, 11))}, seed=0)
    assert three.caption().endswith("; p and intervals corrected by Bonferroni for 3 pairs")
    assert three.pairs[0].p_adjusted == pytest.approx(min(1, 3 * three.pairs[0].p_value))
    one_each = compare({"old": old[0], "new": new[0]}, seed=0)
    assert one_each.pairs == compare(old[0], new[0], names=["old", "new"], seed=0).pairs
    country = ["de", "fr"] * 20
    by_country = compare({"old": old, "new": new}, by=country, seed=0).slices["by", "fr"]
    numbers = {name: [ndcg[1::2] for ndcg in each] for name, each in table.items()}
    alone = by_values(numbers, qid=range(20), measure="m", confidence=0.975)
    assert by_country.values == pytest.approx(alone.values)
    assert by_country.pairs[0].interval.low == pytest.approx(alone.interval.low)
    assert by_country.pairs[0].p_value == pytest.approx(alone.p_value)


def test_slices_can_differ_where_the_whole_does_not():
    rng = np.random.default_rng(1)
    up = np.arange(80) < 40
    a = rng.random(80)
    b = a + rng.normal(0, 0.1, 80) + np.where(up, 0.09, -0.09)
    found = by_values(a, b, qid=range(80), measure="m", by={"half": np.where(up, "up", "down")}, seed=0)
    assert found.verdict == "undecided"
    verdicts = {label: each.pairs[0].verdict for (_, label), each in found.slices.items()}
    assert verdicts == {"down": "worse", "up": "better"}
    assert list(verdicts) == ["down", "up"]
    upper = found.slices["half", "up"]
    assert upper.n_queries == 40
    assert upper.pairs[0].difference == pytest.approx((b - a)[up].mean())
    alone = by_values(a[up], b[up], qid=range(40), measure="m", seed=0, confidence=0.975)
    assert upper.pairs[0].p_adjusted == pytest.approx(2 * upper.pairs[0].p_value)
    width = upper.pairs[0].interval.high - upper.pairs[0].interval.low
    assert width == pytest.approx(alone.interval.high - alone.interval.low, rel=0.05)
    assert upper.pairs[0].interval.confidence == 0.95
    assert "2 slices (Bonferroni)" in str(found.slices)
    assert "half=up" in str(found)
    assert [row["verdict"] for row in found.to_dict()["slices"]] == ["worse", "better"]


def test_slices_too_small_for_a_test_are_listed_in_the_order_of_their_labels():
    labels = ["b", 10, 9.5, (1, 2), *["a"] * 2, *[True] * 34]
    slices = values(0, 1, by=labels).slices
    assert [label for _, label in slices] == [9.5, 10, (1, 2), True, "a", "b"]
    assert [len(each.pairs) for each in slices.values()] == [0, 0, 0, 1, 1, 0]
    # The two slices that are tested share the level.
    assert slices["by", True].pairs[0].p_adjusted == min(1, 2 * slices["by", True].pairs[0].p_value)
    assert "too few" in str(slices)
    assert str(values(0, 1, 2, by=labels).slices).split()[:3] == ["slice", "a", "b"]
    # Users of two queries each, except that the first one has most of the last slice.
    for n_users, first, n_pairs in ((5, 2, 0), (6, 2, 1), (10, 11, 0)):
        one = np.arange(N) < 2 * n_users
        user = np.where(one, np.maximum(np.arange(N) - first + 2, 0) // 2, 100 + np.arange(N))
        parts = values(0, 1, by=np.where(one, "one", "other"), cluster=user).slices
        assert [len(each.pairs) for each in parts.values()] == [n_pairs, 1]


QRELS = {f"q{i}": {f"d{i}{j}": (i + j) % 3 for j in range(4)} | {f"best{i}": 2} for i in range(8)}
GOOD = {q: sorted(docs, key=lambda d, docs=docs: -docs[d]) for q, docs in QRELS.items()}
ODD = {q: [*docs[:2], "new", *docs[2:]] for q, docs in GOOD.items()}


def test_differing_judged_shares_are_named():
    full, odd = evaluate_run(QRELS, GOOD, k=4), evaluate_run(QRELS, ODD, k=4)
    with pytest.warns(
        UserWarning, match=r"100 % of the documents of a .* 75 % of those of b.* favours a by about 0\.\d"
    ) as caught:
        warned = compare(full, odd, seed=0)
    assert caught[0].filename == __file__
    assert warned.judged == pytest.approx((1.0, 0.75))
    assert "judged@4" in str(warned)
    assert "favours a" in str(warned)
    assert warned.to_dict()["systems"][1]["judged"] == 0.75
    assert compare(full, odd, unjudged="note", seed=0).notes == warned.notes
    accepted = compare(full, odd, unjudged="accept", seed=0)
    assert not any("judged@k differs" in note for note in accepted.notes)
    assert accepted.judged == warned.judged
    with pytest.raises(ValueError, match=r"unjudged='refuse' requires judged@k .* at most 0.05, but judged@k differs"):
        compare(full, odd, unjudged="refuse")
    assert not any("judged@k differs" in note for note in compare(full, full, unjudged="refuse", seed=0).notes)
    assert values(0, 1).judged is None


def test_what_is_uneven():
    assert favoured(("a", "b"), (0.9, 0.951), (0.5, 0.5)) is not None
    assert favoured(("a", "b"), (0.9, 0.949), (0.5, 0.5)) is None
    # 0.4 / 0.75 - 0.4 = 0.133, and 0.6 / 0.9 - 0.6 = 0.067
    assert "favours a by about 0.067" in favoured(("a", "b"), (0.9, 0.75), (0.6, 0.4))
    for judged in ((math.nan, 0.8), (0.0, 1.0)):  # nothing was retrieved, or judged
        assert favoured(("a", "b"), judged, (0.0, 0.4)) is None


@pytest.mark.parametrize("k", [1, None])
def test_one_of_several_cut_offs_of_runs_is_compared(k):
    several, alone = (
        [evaluate_run(QRELS, run, k=ks) for run in (GOOD, ODD)] for ks in ((1, 2, None), k)
    )  # fmt: skip
    found, expected = (compare(*sides, k=k, unjudged="accept", seed=0) for sides in (several, alone))
    assert found.to_dict() == expected.to_dict()
    assert found.range() == expected.range()
    assert found.flavor.k == k


@pytest.mark.parametrize("turned", [False, True])
def test_a_run_is_compared_with_arrays(turned):
    run = evaluate_run(QRELS, GOOD, flavor="sklearn")
    labels = [grade for docs in QRELS.values() for grade in docs.values()]
    rows = evaluate(labels, np.negative(labels), flavor=run.flavor, qid=np.repeat([*QRELS], 5))
    comparison = compare(*([rows, run] if turned else [run, rows]), n_resamples=99)
    assert comparison.n_queries == 8
    assert comparison.difference == pytest.approx((1 - 2 * turned) * (rows.value - run.value))


@pytest.mark.parametrize(("weight", "high"), [(1.0, 0.0), (0.5, -0.0738), (0.0, -0.1845)])
def test_an_empty_query_of_any_weight_is_open_too(weight, high):
    labels, flavor = [[1, 0], [1, 0], [0, np.nan]], "trec_eval[ties=average,empty=skip]"
    scores = ([[2, 1], [2, 1], [2, 1]], [[1, 2], [2, 1], [1, 2]])
    sides = [evaluate(labels, each, flavor=flavor, query_weight=[1, 1, weight]) for each in scores]
    limits = compare(*sides, n_resamples=99).range()
    assert limits.n_unjudged == (weight > 0)
    assert (round(limits.low, 4), round(limits.high, 4)) == (-0.1845, high)


def test_other_documents_are_not_other_judgements():
    # A run cannot be blamed for an ideal that depends on it.
    local = Flavor(ideal="local", unjudged="zero", k=4)
    compare(evaluate_run(QRELS, GOOD, flavor=local), evaluate_run(QRELS, ODD, flavor=local), unjudged="accept")
    compare(evaluate_run(QRELS, GOOD, k=4), evaluate_run(QRELS, {"q0": GOOD["q0"]}, k=4), unjudged="accept")


def test_numbers_of_any_measure():
    found = values(0, 3)
    assert (found.flavor, found.measure) == (None, "recall@10")
    assert values(0, 3, n_resamples=500).n_resamples == 500
    assert found.caption().startswith("recall@10; 40 queries; ")
    assert str(found).startswith("system  recall@10\n")
    named = {"a": TABLE[:, 0], "b": TABLE[:, 3]}
    assert found.pairs == by_values(named, qid=IDS, measure="recall@10", seed=0, n_resamples=999).pairs
    holed = TABLE[:, 3].copy()
    holed[5] = math.nan
    assert by_values(TABLE[:, 0], holed, qid=IDS, measure="m", missing="drop").n_queries == 39
    weighted = by_values(TABLE[:, 0], TABLE[:, 3], qid=IDS, measure="m", query_weight=np.arange(1.0, 41.0))
    assert weighted.values[0] == pytest.approx(np.average(TABLE[:, 0], weights=np.arange(1.0, 41.0)))
    assert values(0, 1, margin=5).margin == 5  # a measure may have any scale
    one = evaluate([[1, 0], [0, 1]], [[1, 2], [2, 1]])
    assert compare(*[one] * 28, n_resamples=99).names[25:] == ("z", "s27", "s28")


@pytest.mark.parametrize(
    ("n", "n_apart", "noted"),
    # skewness 2.7 and 2.5; 1.8; 5.6, which 1 000 queries average out, but not 100
    [(30, 3, True), (60, 7, True), (30, 5, False), (1000, 30, False), (100, 3, True)],
)
def test_a_verdict_that_few_queries_decide_says_so(n, n_apart, noted):
    rng = np.random.default_rng(0)
    b = 0.001 * rng.random(n)
    b[:n_apart] = 0.5
    found, undecided = (by_values(np.zeros(n), d, qid=range(n), measure="m", n_resamples=99) for d in (b, b - b.mean()))
    assert found.pairs[0].skewness == pytest.approx(((b - b.mean()) ** 3).mean() / b.std() ** 3)
    words = (
        f"A few queries change far more than the others between a and b, skewness {found.pairs[0].skewness:+.1f}: look "
        "at them"
    )
    assert (found.verdict, undecided.verdict) == ("better", "undecided")
    assert (words in found.notes) == noted
    assert not any("look at them" in note for note in undecided.notes)


def with_changes(d, **settings):
    d = np.asarray(d, dtype=float)
    return by_values(np.full(d.size, 0.5), 0.5 + d, qid=range(d.size), measure="m", **{"seed": 0} | settings)


@pytest.mark.parametrize("n", [2, 10, 50, 500])
def test_unchanged_queries_are_a_verdict_and_say_what_others_may_do(n):
    found = with_changes(np.zeros(n), margin=0.001)
    assert (found.verdict, found.pairs[0].n_changed, found.p_value) == ("unchanged", 0, 1.0)
    assert found.pairs[0].changed_at_most == pytest.approx(1 - 0.025 ** (1 / n))
    most = 100 * (1 - 0.05 ** (1 / n))
    assert found.notes[0] == f"{n} queries cannot show a difference; use 6 or more" or n >= 6
    assert found.notes[-1].startswith(f"{n} queries can miss a problem that {most:.2g} % of queries have; with 2995 ")
    assert found.to_dict()["pairs"][0]["n_changed"] == 0


SMALL = np.tile([0.001, -0.001], 24)


@pytest.mark.parametrize(
    ("d", "settings", "n", "what"),
    [
        (SMALL, {"margin": 0.02}, 48, "queries"),  # equivalent
        (np.abs(SMALL) + 0.03 * (np.arange(48) == 7), {"margin": 0.001}, 48, "queries"),  # better
        (SMALL + 0.4 * (np.arange(48) == 7), {"margin": 0.02}, 48, "queries"),  # not worse
        (SMALL, {}, 48, None),  # undecided
        (0 * SMALL, {}, 48, "queries"),  # unchanged
        (0 * SMALL, {"query_weight": [1.0] * 24 + [3.0] * 24, "margin": 0.02}, 96**2 / 240, "effective queries"),
        (SMALL, {"cluster": np.arange(48) // 2, "margin": 0.02}, 24, "clusters"),
        (SMALL, {"margin": 1.0}, 48, "queries"),  # a measure of another scale
    ],
)
def test_a_verdict_that_passes_says_what_may_be_unseen(d, settings, n, what):
    found = with_changes(d, n_resamples=999, **settings)
    unseen = 1 - 0.05 ** (1 / n)
    assert found.pairs[0].unseen == found.to_dict()["pairs"][0]["unseen"] == pytest.approx(unseen)
    notes = [note for note in found.notes if "can miss" in note]
    if what is None:
        assert (found.verdict, notes) == ("undecided", [])
        return
    counted = what.split()[-1]
    words = f"{n:.0f} {what} can miss a problem that {100 * unseen:.2g} % of {counted} have"
    margin = settings.get("margin", 1.0)
    if margin < 1:
        needed = math.ceil(math.log(0.05) / math.log(1 - margin))
        enough = f", which costs less than the margin of {margin} even if a query loses 1"
        assert needed > n
        words += enough.replace(", which", f"; with {needed} {counted}, such a problem")
    assert notes == [words]
    for text in (" ".join(str(found).split()), found.to_markdown(), found._repr_html_()):
        assert words in text


def test_the_smallest_slice_says_what_may_be_unseen_in_it():
    found = with_changes(SMALL, margin=0.02, by={"length": ["long"] * 12 + ["short"] * 36})
    words = "12 queries of length=long can miss a problem that 22 % of queries have"
    assert any(note.startswith(words) for note in found.notes)


@pytest.mark.parametrize("weight", [1e-6, 1e-9, 1e-12, 1e-20, 1e-300])
def test_an_unchanged_query_may_weigh_next_to_nothing(weight):
    d = np.r_[0.0, np.linspace(-0.1, 0.2, 9)]
    found = with_changes(d, query_weight=[weight, *[1.0] * 9])
    assert -0.1 < found.interval.low < found.difference < found.interval.high < 0.2
    assert (found.pairs[0].changed_at_most or 1.0) > 0.998


def test_heavy_weights_leave_few_queries():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (200, 6))
    sides = [evaluate(labels, labels + rng.normal(0, 2, labels.shape), k=3, query_weight=w) for w in (None, None)]
    assert sides[0].interval().effective_queries is None
    weight = np.r_[np.full(10, 50.0), np.ones(190)]
    sides = [evaluate(labels, labels + rng.normal(0, 2, labels.shape), k=3, query_weight=weight) for _ in range(2)]
    n = weight.sum() ** 2 / (weight**2).sum()
    interval = sides[0].interval()
    assert interval.effective_queries == pytest.approx(n)
    assert f"worth {n:.0f} equal ones" in str(interval)
    assert (interval.low, interval.high) == pytest.approx(
        interval_by_hand(sides[0].per_query.ndcg, weight / weight.sum())
    )
    found = compare(*sides, seed=0)
    assert found.pairs[0].effective_queries == pytest.approx(n)
    assert f"200 queries (equivalent to {n:.0f} independent queries of equal weight)" in found.caption()


@pytest.mark.parametrize("values", [[1.0] * 9 + [0.4], [0.0] * 4, [0.5] * 4, [0.4375] * 4, [1.5, 0.2, 0.3], [-1, 0, 1]])
@pytest.mark.parametrize("confidence", [0.01, 0.9, 1 - 1e-12])
def test_the_interval_by_hand(values, confidence):
    n, bounds = len(values), (min(0.0, *values), max(1.0, *values))
    interval = of_values(values).interval(confidence)
    expected = interval_by_hand(np.array(values), np.full(n, 1 / n), confidence, bounds)
    assert (interval.low, interval.high) == pytest.approx(expected)
    assert bounds[0] <= interval.low <= interval.value <= interval.high <= bounds[1]
    assert interval.high > interval.low


@pytest.mark.parametrize("end", [0.0, 1.0])
@pytest.mark.parametrize("n", [10, 50, 1000])
def test_if_all_values_are_at_a_bound_the_interval_is_that_of_a_proportion(n, end):
    interval = of_values(np.full(n, end)).interval()
    # C. Clopper and E. Pearson, 1934.
    assert interval.high - interval.low == pytest.approx(1 - 0.025 ** (1 / n), rel=0.2)


def limits_of(values, weight=None):
    """The limits of means in the columns."""
    means = Means.from_weights(values, weight)
    columns = (Means(means.values[:, [at]], means.weight[:, [at]]) for at in range(means.values.shape[1]))
    found = [estimate_of(*each).limits(0.95) for each in zip(columns, means.mean().tolist(), strict=True)]
    return np.array(found).T


SHAPES = {
    "beta(60, 40)": lambda rng, shape: rng.beta(60, 40, shape),
    "beta(8, .8)": lambda rng, shape: rng.beta(8, 0.8, shape),
    "93 % ones": lambda rng, shape: np.where(rng.random(shape) < 0.93, 1.0, rng.random(shape)),
    "half": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "5 % zeros": lambda rng, shape: np.where(rng.random(shape) < 0.95, rng.uniform(0.8, 0.94, shape), 0.0),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_query_more_hardly_changes_the_width(shape, weighted):
    """On average over samples, and on one sample to which its most typical query is added."""
    rng = np.random.default_rng(0)
    for n in (15 if weighted else 10, 19, 20, 29, 30, 59, 60, 199, 999):
        values = SHAPES[shape](rng, (n + 1, 200))
        weight = rng.integers(1, 4, values.shape).astype(float) if weighted else np.ones(values.shape)
        values[n] = np.median(values[:n], axis=0)
        weight[n] = weight[:n].mean(axis=0)
        fewer, more = (np.subtract(*limits_of(values[:m], weight[:m])[::-1]) for m in (n, n + 1))
        assert 1 / 1.15 < more.mean() / fewer.mean() < 1.15
        assert n == 10 or (more / fewer > 1 / 1.15).all()
        assert (more / fewer < 1.15).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_interval_moves_no_faster_than_its_values(shape):
    rng = np.random.default_rng(1)
    for n in (2, 10, 30, 200):
        values = SHAPES[shape](rng, (n, 200))
        moved = values.copy()
        moved[0] = np.clip(moved[0] + rng.choice([-1e-6, 1e-6], 200), 0, 1)
        assert np.abs(limits_of(moved) - limits_of(values)).max() <= 20e-6 / math.sqrt(n)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_limits_move_no_faster_than_one_difference(clustered):
    """Also where a difference becomes the largest, changes its sign, or is hardly one."""
    rng = np.random.default_rng(2)
    settings = {"n_resamples": 199, "margin": 0.1, "cluster": np.arange(80) // 2 if clustered else None}
    for _ in range(40):
        d = rng.choice([0, 1e-4, 1.0], 80, p=[0.5, 0.4, 0.1]) * rng.normal(0, 0.1, 80)
        d[0] = rng.choice([0.0, 1e-9, 1.0]) * np.abs(d).max()
        one, other = (with_changes(np.r_[d[0] + by, d[1:]], **settings).interval for by in (0.0, 1e-5))
        assert abs(one.low - other.low) + abs(one.high - other.high) < 1e-5 * 5


def test_sixty_small_changes_more_do_not_decide():
    d, small = np.zeros(200), np.zeros(200)
    d[:8] = [-0.3, 0.2, 0.3, -0.2, 0.1, -0.1, 0.25, -0.25]
    small[20:80] = np.tile([1.0, -1.0], 30) * 0.3
    lows = [with_changes(d + share * small, margin=0.02).interval.low for share in (0.0, 0.0009, 0.0011, 0.01)]
    assert np.ptp(lows[:3]) < 1e-3
    assert np.ptp(lows) < 5e-3
