"""Tests of a difference on the same runs: where ranx and SciPy say what `compare` says, and where they cannot."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import by_values

stats = pytest.importorskip("scipy.stats")

from ndcg_ml import compare

N, NAMES = 40, ["a", "b", "c"]
RNG = np.random.default_rng(3)
# Queries differ far more than systems do, as in every collection.
QUERIES = RNG.normal(0.5, 0.2, (N, 1))
# The residuals have the mean 0 and the deviation .03 in each system, and no correlation: all pairs vary alike.
REST = RNG.normal(size=(N, 3))
REST = np.linalg.qr(REST - REST.mean(axis=0))[0] * 0.03 * np.sqrt(N - 1)
VALUES = QUERIES + REST + [0.0, 0.02, 0.022]


def compared(*columns, **settings):
    settings = {"names": [NAMES[i] for i in columns], "seed": 0, **settings}
    return by_values(*(VALUES[:, i] for i in columns), qid=range(N), measure="ndcg@10", **settings)


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
def test_the_paired_t_test_is_scipys(pair):
    # ranx's "student" and PyTerrier's Experiment(baseline=) are scipy.stats.ttest_rel.
    a, b = (VALUES[:, i] for i in pair)
    p_value = float(stats.ttest_rel(b, a).pvalue)
    # Our test is randomised, and the values are not normal.
    assert compared(*pair).p_value == pytest.approx(p_value, abs=0.02)


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


def test_tukey_hsd_of_independent_groups_sees_nothing():
    # scipy.stats.tukey_hsd, which ranx's "tukey" is, takes the values of each system as other queries, so that what
    # makes queries easy or hard counts as noise.
    theirs = stats.tukey_hsd(*VALUES.T).pvalue
    found = compared(0, 1, 2)
    assert found.pairs[0].p_adjusted < 0.05
    assert found.pairs[1].p_adjusted < 0.05
    assert theirs[0, 1] > 0.5
    assert theirs[0, 2] > 0.5


def runs():
    """Runs of 40 topics, of which the second moves some documents; and their judgements."""
    qrels = {f"q{q}": {f"d{d}": int(RNG.integers(0, 3)) for d in range(8)} for q in range(N)}
    a = {topic: {d: grade + RNG.normal() * 2.0 for d, grade in of.items()} for topic, of in qrels.items()}
    b = {topic: {d: s + RNG.normal() + 0.25 * qrels[topic][d] for d, s in of.items()} for topic, of in a.items()}
    return qrels, a, b


@pytest.mark.long  # ranx compiles for a minute or more
@pytest.mark.filterwarnings("ignore")
def test_ranx():
    ranx = pytest.importorskip("ranx")
    from ndcg_ml import evaluate_run

    qrels, a, b = runs()
    ours = compare(evaluate_run(qrels, a, k=5), evaluate_run(qrels, b, k=5), seed=0)

    def theirs(test):
        systems = [ranx.Run(run, name=name) for name, run in (("a", a), ("b", b))]
        report = ranx.compare(ranx.Qrels(qrels), systems, ["ndcg@5"], stat_test=test, n_permutations=10_000)
        return report.comparisons[frozenset(["a", "b"])]["ndcg@5"]["p_value"]

    values = [each.per_query.ndcg for each in (evaluate_run(qrels, a, k=5), evaluate_run(qrels, b, k=5))]
    assert theirs("student") == pytest.approx(stats.ttest_rel(*values).pvalue, abs=1e-9)
    assert theirs("tukey") == pytest.approx(stats.tukey_hsd(*values).pvalue[0, 1], abs=1e-9)
    # Other draws, and ranx does not count the observed order as one of them.
    error = np.sqrt(ours.p_value * (1 - ours.p_value) * 2 / 10_000)
    assert theirs("fisher") == pytest.approx(ours.p_value, abs=4 * error + 1e-4)
    control, treatment = np.zeros(N), np.ones(N)
    assert ranx.statistical_tests.fisher_randomization_test(control, treatment, 1000)[0] == 0  # no test can show that
    clear = by_values(control, treatment, qid=range(N), measure="m", n_resamples=999, seed=0)
    assert clear.p_value == pytest.approx(1 / 1000)
