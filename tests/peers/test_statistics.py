"""Statistics equal those of SciPy, ranx and ppi-python: on the same resamples, or within the error of other draws."""

from __future__ import annotations

import inspect
import itertools
from hashlib import blake2b

import numpy as np
import pytest
from comparing import Paired, by_values, of_values

stats = pytest.importorskip("scipy.stats")

from ndcg_ml import compare, correct_labels, evaluate_run
from ndcg_ml._decide import randomisation
from ndcg_ml._decide.distributions import normal_cdf, normal_quantile, t_quantile, t_tail
from ndcg_ml._decide.means import Means, spread_of
from ndcg_ml._decide.randomisation import max_t, queries_needed


def seeded(function, seed: int = 0):
    """The random generator, under the name that this version of SciPy has for it."""
    name = "rng" if "rng" in inspect.signature(function).parameters else "random_state"
    return {name: np.random.default_rng(seed)}


def test_quantiles():
    for confidence in (1e-3, 0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6):
        for dof in (*range(1, 60), 100, 101, 332, 333, 999, 1000, 1001, 1002, 5000, 10**4, 10**6, 10**9):
            expected = stats.t.isf((1 - confidence) / 2, dof)
            # SciPy 1.11 has eight digits of it.
            assert t_quantile(confidence, dof) == pytest.approx(expected, rel=1e-7), (confidence, dof)
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


@pytest.mark.parametrize("n_systems", [2, 3, 8])
def test_max_t_of_many_queries_is_the_studentized_range(n_systems):
    # scipy.stats.tukey_hsd is for independent groups, and would take the differences between queries for noise. The
    # distribution of the range is the same, and so is Dunnett's in the limit.
    rng = np.random.default_rng(0)
    many = Means.from_weights(rng.random((20_000, n_systems)), None)
    chance = max_t(many, list(itertools.combinations(range(n_systems), 2)), 20_000, rng)
    for level in (0.05, 0.2):
        expected = stats.studentized_range.ppf(1 - level, n_systems, np.inf) / 2**0.5
        assert chance.critical(level) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("method", ["bca", "percentile"])
@pytest.mark.parametrize("n", [5, 43, 1000])
def test_bootstrap_of_a_difference(method, n):
    a, b = np.random.default_rng(n).beta(0.6, 1.5, (2, n))
    b[::3] = a[::3]
    drawn = 499
    # SciPy draws row by row from the same generator, so that the resamples are the same.
    theirs = stats.bootstrap(
        (b - a,), np.mean, n_resamples=drawn, method=method, vectorized=True, **seeded(stats.bootstrap, 7)
    )
    ours = Paired(a, b).interval(0.95, method, n_resamples=drawn, seed=7)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=1e-12)
    spread = Paired(a, b).spread(drawn, 7)
    assert spread.draws == pytest.approx(theirs.bootstrap_distribution, abs=1e-12)


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_bootstrap_of_a_ratio(method):
    rng = np.random.default_rng(11)
    ideals = rng.gamma(2.0, 3.0, 60)
    gained = ideals * rng.beta(0.6, 1.5, 60)
    theirs = stats.bootstrap(
        (gained, ideals),
        lambda top, bottom, axis: top.sum(axis=axis) / bottom.sum(axis=axis),
        paired=True,
        n_resamples=499,
        method=method,
        vectorized=True,
        **seeded(stats.bootstrap, 7),
    )
    [spread] = spread_of(Means.from_weights((gained / ideals)[:, None], ideals), 499, np.random.default_rng(7))
    ours = spread.interval(0.95, method)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=1e-12)


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


def test_exact_randomisation():
    differences = np.random.default_rng(5).normal(0.1, 0.2, 11)
    p_value, _ = permutation_test(differences, 2**11)
    found = Paired(np.zeros(11), differences).test(n_resamples=2**11)
    assert found.exact
    assert found.p_value == pytest.approx(p_value, abs=1e-12)


@pytest.mark.parametrize("n", [20, 43, 203])
def test_drawn_randomisation_on_the_same_signs(n, monkeypatch):
    differences = np.random.default_rng(n).normal(0.3 / np.sqrt(n), 0.2, n)
    p_value, signs = permutation_test(differences, 999)
    assert signs.shape == (999, n)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    flags = np.packbits(signs < 0, axis=1, bitorder="little")
    monkeypatch.setattr(randomisation, "drawn_signs", lambda *_: iter([flags[:500], flags[500:]]))
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
# Queries differ far more than systems do, as in every collection.
QUERIES = RNG.normal(0.5, 0.2, (N, 1))
# The residuals have the mean 0 and the deviation .03 in each system, and no correlation: all pairs vary alike.
REST = RNG.normal(size=(N, 3))
REST = np.linalg.qr(REST - REST.mean(axis=0))[0] * 0.03 * np.sqrt(N - 1)
VALUES = QUERIES + REST + [0.0, 0.02, 0.022]


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
def test_the_paired_t_test_is_scipys(pair):
    # ranx's "student" and PyTerrier's Experiment(baseline=) are scipy.stats.ttest_rel.
    a, b = (VALUES[:, i] for i in pair)
    # Our test is randomised, and the values are not normal.
    found = by_values(a, b, qid=range(N), measure="m", seed=0)
    assert found.p_value == pytest.approx(float(stats.ttest_rel(b, a).pvalue), abs=0.02)


def blocks(values):
    """p of Tukey's test with the queries as blocks, which is that of the two-way analysis of variance."""
    n, m = values.shape
    rest = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    error = np.sqrt((rest**2).sum() / ((n - 1) * (m - 1)) / n)
    gaps = [values[:, j].mean() - values[:, i].mean() for i in range(m) for j in range(i + 1, m)]
    return [float(stats.studentized_range.sf(abs(gap) / error, m, (n - 1) * (m - 1))) for gap in gaps]


def test_max_t_is_tukeys_test_with_queries_as_blocks():
    for shift in ([0, 0, 0], [0, -0.01, -0.004], [0, -0.005, -0.03]):
        values = VALUES + shift
        found = by_values(*values.T, qid=range(N), measure="m", seed=0)
        # All pairs vary alike, which that test assumes and max-T does not: it differs where they do not.
        assert [pair.p_adjusted for pair in found.pairs] == pytest.approx(blocks(values), abs=0.02)


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
