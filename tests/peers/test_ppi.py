"""``correct_labels`` against the mean of ppi-python, in each of the two folds."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest

from ndcg_ml import Flavor, correct_labels, evaluate

N, K = 300, 40


def of_values(values, ids):
    """An evaluation whose queries have these values."""
    labels, scores = np.column_stack([values, np.zeros(values.size)]).reshape(-1), np.tile([1.0, 0.0], values.size)
    return evaluate(labels, scores, qid=np.repeat(ids, 2), flavor=Flavor(ideal="max", max_grade=1, k=1))


@pytest.mark.filterwarnings("ignore:the queries with human labels")
def test_the_value_is_that_of_ppi_python():
    ppi = pytest.importorskip("ppi_py")
    for seed in range(100):
        rng = np.random.default_rng(seed)
        human = rng.beta(2, 2, N)
        model = np.clip(human + 0.1 + rng.normal(0, 0.1, N), 0, 1)
        some = rng.choice(N, K, replace=False)
        some = np.array(sorted(some.tolist(), key=lambda qid: blake2b(str(qid).encode()).digest()))
        rest, expected = np.delete(model, some), 0.0
        for half in (0, 1):
            mine, other = some[half::2], some[1 - half :: 2]
            slope = np.cov(human[other], model[other])[0, 1] / ((1 + K / rest.size) * model[other].var(ddof=1))
            w = min(1.0, max(0.0, slope))
            expected += ppi.ppi_mean_pointestimate(human[mine], model[mine], rest, lam=w)[0] / 2
        found = correct_labels(of_values(model, np.arange(N)), of_values(human[some], some))
        assert found.value == pytest.approx(expected, abs=1e-10)
