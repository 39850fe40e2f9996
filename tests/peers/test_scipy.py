"""The statistics equal SciPy's: quantiles, and the bootstrap and the randomisation test on the same resamples."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest
from paired import Paired

stats = pytest.importorskip("scipy.stats")

from ndcg_ml._decide import randomisation
from ndcg_ml._decide.means import Means, normal_cdf, normal_quantile, spread_of, t_quantile, t_tail
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
