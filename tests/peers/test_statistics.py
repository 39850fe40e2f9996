"""Statistics equal those of SciPy, ranx and ppi-python: on the same resamples, or within the error of other draws."""

import copy
import inspect
import itertools
import math
from hashlib import blake2b

import numpy as np
import pytest
from comparing import Paired, by_values, of_values

stats = pytest.importorskip("scipy.stats")

from ndcg_ml import compare, correct_labels, evaluate_run
from ndcg_ml._statistics import p_values_and_sample_sizes
from ndcg_ml._statistics.distributions import normal_cdf, normal_quantile, t_quantile, t_tail
from ndcg_ml._statistics.means import Means
from ndcg_ml._statistics.p_values_and_sample_sizes import exchange_tests, max_t, queries_needed
from ndcg_ml._statistics.verdict import verdict


def seeded(function, seed: int = 0):
    """The random generator, under the name that this version of SciPy has for it."""
    name = "rng" if "rng" in inspect.signature(function).parameters else "random_state"
    return {name: np.random.default_rng(seed)}


def test_quantiles():
    for confidence in (1e-3, 0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6):
        for dof in (*range(1, 60), 100, 101, 332, 333, 999, 1000, 1001, 1002, 5000, 10**4, 10**6, 10**9):
            expected = stats.t.isf((1 - confidence) / 2, dof)
            # SciPy 1.11 has eight digits of it.
            near = 1e-7 if confidence > 0.01 else 1e-4
            assert t_quantile(confidence, dof) == pytest.approx(expected, rel=near), (confidence, dof)
    for probability in (1e-10, 0.01, 0.5, 0.975, 1 - 1e-9):
        z = stats.norm.ppf(probability)
        assert normal_quantile(probability) == pytest.approx(z, rel=1e-9, abs=1e-12)
        assert normal_cdf(z) == pytest.approx(probability, rel=1e-12)


def test_tails_and_fractions_of_degrees_of_freedom():
    for dof in (1, 1.5, 2, 4.7, 30.3, 199.9, 5000.5, 10**7):
        for t in (0.0, 0.3, 2.3, 9.0, 40.0):
            near = 1e-6 if dof < 10**6 else 1e-3  # beyond, it is the normal distribution's
            assert t_tail(t, dof) == pytest.approx(2 * stats.t.sf(t, dof), rel=near, abs=1e-300)
        for confidence in (0.5, 0.95, 0.999):
            assert t_quantile(confidence, dof) == pytest.approx(stats.t.ppf((1 + confidence) / 2, dof), rel=1e-6)
    for dof in (3, 3.5, 40, 1000, 1001, 1002.5, 1500):
        for outside in (0.3, 0.05, 1e-3, 1e-6):
            assert t_tail(t_quantile(1 - outside, dof), dof) == pytest.approx(outside, rel=1e-9)


@pytest.mark.parametrize("n_systems", [2, 3, 8])
def test_max_t_of_many_queries_is_the_studentized_range(n_systems):
    # scipy.stats.tukey_hsd is for independent groups, and would take the differences between queries for noise. The
    # distribution of the range is the same.
    values, pairs = np.random.default_rng(0).random((20_000, n_systems)), [*itertools.combinations(range(n_systems), 2)]
    many, few = (
        max_t(Means.from_weights(values[:n], None), pairs, 20_000, np.random.default_rng(0)) for n in (20_000, 500)
    )
    for level in (0.05, 0.2):
        expected = stats.studentized_range.ppf(1 - level, n_systems, np.inf) / 2**0.5
        assert many.critical(level) == pytest.approx(expected, rel=0.02)
        # Fewer queries have about the same tails, of Student's t.
        tails = [stats.t.sf(each.critical(level), dof) for each, dof in ((many, 19_999), (few, 499))]
        assert tails[1] == pytest.approx(tails[0], rel=0.1)
    assert many.p_value(1e9) == 1 / 20_001


@pytest.mark.parametrize("n", [600, 500])  # weights leave fewer than 500, whose signs are drawn
def test_max_t_against_a_baseline_is_dunnetts_with_the_correlations_of_the_differences(n):
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=(n, 5)) * [2, 1, 0.5, 1, 3], rng.choice([1.0, 2.0], n)
    values = np.column_stack([values, values[:, 0]])  # the last system is the baseline again
    chance = max_t(Means.from_weights(values, weight), [(0, other) for other in range(1, 6)], 50_000, rng)
    apart = values[:, 1:5] - values[:, :1]
    parts = weight[:, None] * (apart - np.average(apart, axis=0, weights=weight))
    varied = stats.multivariate_normal(cov=np.corrcoef(parts.T), seed=0)
    for level in (0.05, 0.2):
        critical = np.full(4, chance.critical(level))
        assert varied.cdf(critical, lower_limit=-critical) == pytest.approx(1 - level, abs=0.005 if n == 600 else 0.01)
    assert chance.p_value(1e9) == 1 / 50_001


def permutation_test(differences, n_resamples, seed=0):
    """SciPy's, of the absolute difference; and the signs that it drew, the observed ones left out."""
    seen = []

    def distance(values, axis):
        seen.append(np.sign(values) * np.sign(differences))
        return np.abs(values.mean(axis=axis))

    found = stats.permutation_test(
        (differences,),
        distance,
        permutation_type="samples",
        alternative="greater",
        n_resamples=n_resamples,
        vectorized=True,
        **seeded(stats.permutation_test, seed),
    )
    blocks = [each for each in seen if each.ndim == 2 and each.shape[-1] == differences.size]
    return found.pvalue, np.concatenate(blocks)[-n_resamples:]


@pytest.mark.parametrize("n", [20, 43, 203])
def test_drawn_randomisation_on_the_same_signs(n, monkeypatch):
    differences = np.random.default_rng(n).normal(0.3 / np.sqrt(n), 0.2, n)
    p_value, signs = permutation_test(differences, 999)
    assert signs.shape == (999, n)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    monkeypatch.setattr(p_values_and_sample_sizes, "drawn_signs", lambda *_: iter([signs[:500], signs[500:]]))
    found = Paired(np.zeros(n), differences).test(n_resamples=999)
    assert not found.exact
    assert 0.002 < p_value < 0.998
    assert found.p_value == pytest.approx(p_value, abs=1e-12)


@pytest.mark.parametrize(("deviation", "difference", "power"), [(0.2, 0.1, 0.8), (0.2, 0.05, 0.9), (0.3, 0.01, 0.8)])
def test_queries_needed_have_the_power(deviation, difference, power):
    def chance(n):
        noncentral = difference / deviation * np.sqrt(n)
        bound = stats.t.isf(0.025, n - 1)
        return stats.nct.sf(bound, n - 1, noncentral) + stats.nct.cdf(-bound, n - 1, noncentral)

    n = queries_needed(deviation, difference, power, 0.95)
    assert chance(n + 1) > power > chance(n - 2)


# -- tests of a difference --------------------------------------------------------------------------------------------

N = 40
RNG = np.random.default_rng(3)


@pytest.mark.long  # ranx compiles for a minute or more
@pytest.mark.filterwarnings("ignore")
def test_ranx():
    ranx = pytest.importorskip("ranx")
    qrels = {f"q{q}": {f"d{d}": int(RNG.integers(0, 3)) for d in range(8)} for q in range(N)}
    a = {topic: {d: grade + RNG.normal() * 2.0 for d, grade in of.items()} for topic, of in qrels.items()}
    b = {topic: {d: s + RNG.normal() + 0.25 * qrels[topic][d] for d, s in of.items()} for topic, of in a.items()}
    ours = compare(evaluate_run(qrels, a, k=5), evaluate_run(qrels, b, k=5), seed=0)
    systems = [ranx.Run(run, name=name) for name, run in (("a", a), ("b", b))]
    report = ranx.compare(ranx.Qrels(qrels), systems, ["ndcg@5"], stat_test="fisher", n_permutations=10_000)
    theirs = report.comparisons[frozenset(["a", "b"])]["ndcg@5"]["p_value"]
    # Other draws, and ranx does not count the observed order as one of them.
    error = np.sqrt(ours.p_value * (1 - ours.p_value) * 2 / 10_000)
    assert theirs == pytest.approx(ours.p_value, abs=4 * error + 1e-4)


# -- a comparison, computed again -------------------------------------------------------------------------------------


def drawn_systems(rng):
    """Values of two or three systems, of which all, few or no queries change, by much, by little or all alike."""
    clustered = rng.random() < 0.3
    n, n_systems = int(rng.integers(40, 70) if clustered else rng.integers(3, 60)), int(rng.integers(2, 4))
    size = rng.choice([1, 1e-4], (n, 1), p=[0.9, 0.1]) * (rng.random((n, 1)) < rng.choice([0.05, 0.3, 1, 1]))
    changes = size * rng.normal(rng.choice([-0.1, 0, 0.1]), rng.choice([0, 0.2], p=[0.1, 0.9]), (n, n_systems))
    changes = (changes + (size == 1) * rng.normal(0, 0.1, n_systems)).round(int(rng.choice([1, 2, 9])))
    weight = rng.choice([[1.0, 1.0, 1.0], [1.0, 2.0, 5.0], [1.0, 5.0, 1.0 if clustered else 999.0]][rng.integers(3)], n)
    return rng.random((n, 1)) + changes, weight, np.arange(n) // rng.integers(1, 4) if clustered else None


MEASURES = (
    *("difference", "standard_error", "p_value", "p_adjusted", "level", "exact", "wins", "losses"),
    *("changed_at_most", "unseen", "effective_queries", "skewness", "effect_size"),
)


def power(errors, n, share, level):
    """The power, a mean over the numbers of queries that may change in another sample."""
    m = np.arange(2, round(n) + 1)
    steps = 2.0 ** np.minimum(m - 1, 24)
    levels = np.floor(level * steps + 1e-9) / steps
    m, chance, levels = (each[levels > 0] for each in (m, stats.binom.pmf(m, round(n), min(1, share)), levels))
    t = stats.t.isf(levels / 2, m - 1)
    z = errors * np.sqrt(m / max(n * share, 1e-300)) - t * (1 - 1 / (4 * (m - 1)))
    return chance @ stats.norm.cdf(z / np.sqrt(1 + t**2 / (2 * (m - 1))))


def check(pairs, table, weight, cluster, families, rng):
    """Compute each difference again; `rng` draws what the comparison drew."""
    groups = np.arange(len(table)) if cluster is None else cluster
    inside = (groups == np.unique(groups)[:, None]).astype(float)
    total = inside @ weight
    units = Means.from_weights(inside @ (weight[:, None] * table) / total[:, None], total)
    share, n, n_draws, level = total / total.sum(), len(total), 199, 0.05 / families
    worth, at = 1 / (share @ share), [("abc".index(pair.a), "abc".index(pair.b)) for pair in pairs]
    if len(pairs) == 1:
        tests = exchange_tests(units, at, n_draws, copy.deepcopy(rng), level)
    else:
        tests, chance = exchange_tests(units, at, n_draws, rng), max_t(units, at, n_draws, rng)
    for pair, (a, b), test in zip(pairs, at, tests, strict=True):
        apart, d = (each[:, b] - each[:, a] for each in (table, units.values))
        mean, of_pair, p_adjusted, low, high = share @ d, level, test.p_value, test.low, test.high
        error = np.sqrt(share**2 @ (d - mean) ** 2 * n / (n - 1)) if np.ptp(d) > 1e-12 else 0.0
        whole = np.inf if abs(mean) > 1e-12 else 0.0
        if len(pairs) > 1:
            critical = chance.critical(level)
            of_pair = min(level, 2 * stats.t.sf(critical, n - 1)) if critical < np.inf else level / len(pairs)
            p_adjusted = max(p_adjusted, chance.p_value(mean / error if error else whole))
            reach = critical * error if error else 0.0
            low, high = mean - reach, mean + reach
            if p_adjusted > level * (1 + 1e-9):
                low, high = min(low, 0.0), max(high, 0.0)
        elif not error and np.isfinite(high - low):
            low = high = mean
        narrow = low, high
        # The queries that did not change may change elsewhere. Small changes count less.
        size = np.where(np.abs(apart) > 1e-12, np.abs(apart), 0.0)
        counts = np.where(inside, np.minimum(1, size / max(0.2 * size.max(), 1e-12)), 0.0).max(axis=1)
        seen, m, p_few, at_most = share @ counts, share @ counts * worth, 0.0, -1.0
        if seen < 1 - 1e-9:
            at_most = stats.beta.ppf(1 - of_pair / 4, m + 1, worth - m) if m else 1 - (of_pair / 2) ** (1 / worth)
            loss, gain = max(0, -d.min()), max(0, d.max())
            part = share * counts / max(seen, 1e-300)
            k, change = 1 / max(part @ part, 1e-300), part @ d
            if m and k > 1:
                reach = np.sqrt(part**2 @ (d - change) ** 2 * k / max(k - 1, 1e-9)) * stats.t.ppf(0.975, max(1, k - 1))
                loss, gain = min(loss, max(0, reach - change)), min(gain, max(0, reach + change))
            few = mean - (at_most - seen) * loss, mean + (at_most - seen) * gain
            against = loss if mean > 0 else gain
            if against and (few[0] < low if mean > 0 else few[1] > high):
                p_few = min(1, 4 * stats.beta.sf(seen + abs(mean) / against, m + 1, worth - m))
            low, high = min(low, few[0]), max(high, few[1])
        deviation = error * np.sqrt(len(table))
        z, z_level, least = stats.norm.ppf([0.001, 0.8]), stats.norm.isf(of_pair / 2), np.ceil(1 - np.log2(of_pair))
        needed = np.ceil((np.maximum(0, z_level + z) * deviation / 0.1) ** 2 + z_level**2 / 2)
        effective = worth if np.ptp(weight) else -1.0
        if cluster is not None:
            of_queries = (weight / weight.sum()) ** 2 @ (apart - mean) ** 2 * len(table) / (len(table) - 1)
            effective = len(table) * (min(1, of_queries / error**2) if error else 1)
        expected = [mean, error, max(test.p_value, p_few), min(1, families * max(p_adjusted, p_few * level / of_pair))]
        expected += [
            of_pair,
            test.exact,
            (apart > 1e-12).sum(),
            (apart < -1e-12).sum(),
            at_most,
            1 - 0.05 ** (1 / worth),
        ]
        expected += [
            effective,
            stats.skew(d) if error else 0.0,
            mean / deviation if error else np.copysign(whole, mean),
        ]
        got = [-1.0 if (number := getattr(pair, name)) is None else number for name in MEASURES]
        assert got == pytest.approx(expected, rel=1e-6, abs=1e-10)
        assert (pair.interval.low, pair.interval.high) == pytest.approx((low, high), abs=1e-9)
        assert pair.verdict == verdict(low, high, n, 0.05, changed=pair.n_changed > 0)
        assert pair.significant == (pair.interval.low > 0 or pair.interval.high < 0)
        assert pair.widened == ((low, high) != pytest.approx(narrow, abs=1e-12))
        for wanted in (0.2, 0.8):
            found = pair.smallest_detectable(wanted)
            sample = worth, share[counts > 0].sum(), of_pair
            if math.isfinite(found) and error:
                assert power(found / error, *sample) == pytest.approx(wanted, abs=1e-4) or found < 1e-6
            else:
                assert not error or power(1000, *sample) < wanted
        found = [pair.queries_needed(0.1, power) for power in (0.001, 0.8)]
        assert found == pytest.approx(np.maximum(least, needed), abs=1)  # it is rounded up


def test_a_comparison_is_the_formulas_of_its_documentation():
    # One of two changed queries has next to all weight; then only one query changes by more than a trifle.
    few = [(999.0, [0.1, 0.3]), *[(1.0, [0.5, *[1e-4] * 11])] * 2, (3e-4, [0.5, -1e-4, 5e-5])]
    few = [(np.outer(d + [0.0] * (12 - len(d)), [0, 1]), np.r_[first, np.ones(11)], None) for first, d in few]
    for seed, drawn in enumerate([*(drawn_systems(np.random.default_rng(seed)) for seed in range(25)), *few]):
        table, weight, cluster = drawn
        half, rng = np.arange(len(table)) < len(table) // 2, np.random.default_rng(seed)
        found = by_values(
            *table.T, qid=range(len(table)), measure="m", query_weight=weight, cluster=cluster, by={"half": half},
            baseline="b" if seed % 2 else None, margin=0.05, n_resamples=199, seed=seed,
        )  # fmt: skip
        check(found.pairs, table, weight, cluster, 1, rng)
        tested = {name: part for (_, name), part in found.slices.items() if part.pairs}
        for name, part in tested.items():
            rows = half == name
            check(part.pairs, table[rows], weight[rows], None if cluster is None else cluster[rows], len(tested), rng)


def test_runs_vary_beside_queries():
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n, of_query, of_run = int(rng.integers(12, 40)), rng.choice([0, 0.1]), rng.choice([0, 0.05])
        systems = [
            rng.normal(0, of_run, (k, 1)) + rng.normal(0, of_query, (k, n))
            for k in rng.integers(2, 5, rng.integers(2, 4))
        ]
        systems = systems if rng.random() < 0.7 else systems[:1] * 3
        weight, groups = rng.choice([1.0, 2.0], n), np.arange(n) // (1 + seed % 2)
        share, inside = weight / weight.sum(), groups == np.unique(groups)[:, None]
        found = by_values(
            *map(list, systems), qid=range(n), measure="m", query_weight=weight, cluster=groups if seed % 2 else None
        )
        for pair in found.pairs:
            runs = [systems["abc".index(name)] for name in (pair.a, pair.b)]
            d, h = runs[1].mean(axis=0) - runs[0].mean(axis=0), inside @ share
            units, mean, n_units = inside @ (share * d) / h, share @ d, len(h)
            varied = h**2 @ (units - mean) ** 2 * n_units / (n_units - 1) if np.ptp(units) > 1e-12 else 0.0
            # The variance of a system's runs is at least that of all systems, pooled.
            of_runs = [(run @ share).var(ddof=1) for run in systems]
            spare = [len(run) - 1 for run in systems]
            pooled = np.average(of_runs, weights=spare)
            own = sum(max(pooled, (run @ share).var(ddof=1)) / len(run) for run in runs)
            variance = varied + own
            error, level = np.sqrt(variance) if variance > 1e-24 else 0.0, 0.05 / len(found.pairs)
            dof = variance**2 / (varied**2 / (n_units - 1) + own**2 / sum(spare)) if error else n_units - 1
            p, t = 1.0 if abs(mean) < 1e-12 else 2 * stats.t.sf(abs(mean) / error, dof), stats.t.isf(level / 2, dof)
            detectable = t * (1 - 1 / (4 * dof)) + stats.norm.ppf(0.8) * np.sqrt(1 + t**2 / (2 * dof))
            got = [pair.difference, pair.standard_error, pair.p_value, pair.p_adjusted, pair.interval.low]
            got += [pair.interval.high, pair.smallest_detectable()]
            expected = [mean, error, p, min(1, len(found.pairs) * p), mean - t * error, mean + t * error]
            assert got == pytest.approx([*expected, detectable * error], rel=1e-6, abs=1e-12)
            assert pair.verdict == verdict(*got[4:6], n_units, None, changed=error > 0 or pair.n_changed > 0)


# -- labels of a model ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the queries with human labels")
def test_the_value_is_that_of_ppi_python():
    ppi, n, k = pytest.importorskip("ppi_py"), 300, 40
    for seed in range(100):
        rng = np.random.default_rng(seed)
        human = rng.beta(2, 2, n)
        model = np.clip(human + 0.1 + rng.normal(0, 0.1, n), 0, 1)
        some = rng.choice(n, k, replace=False)
        some = np.array(sorted(some.tolist(), key=lambda qid: blake2b(str(qid).encode()).digest()))
        rest, expected = np.delete(model, some), 0.0
        for half in (0, 1):
            mine, other = some[half::2], some[1 - half :: 2]
            slope = np.cov(human[other], model[other])[0, 1] / ((1 + k / rest.size) * model[other].var(ddof=1))
            w = min(1.0, max(0.0, slope))
            expected += ppi.ppi_mean_pointestimate(human[mine], model[mine], rest, lam=w)[0] / 2
        found = correct_labels(of_values(model, np.arange(n)), of_values(human[some], some))
        assert found.value == pytest.approx(expected, abs=1e-10)
