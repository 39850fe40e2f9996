"""A prepared object gives the same numbers as the functions."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from ndcg_ml import Flavor, dcg_score, evaluate, ndcg_score, prepare
from ndcg_ml._core import kernel_and_threads as threads_module
from ndcg_ml._core import numpy_kernel

pytestmark = pytest.mark.usefixtures("kernel")


def problem(seed=0, n_queries=3000):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 220, n_queries)
    y = rng.integers(0, 5, sizes.sum()).astype(float)
    return y, rng.normal(size=y.size) + y, sizes


@pytest.mark.parametrize("flavor", ["sklearn@10", "lightgbm@10", "ndcg@20[ideal=local,empty=skip]", "catboost"])
def test_prepared_equals_the_functions(flavor):
    y, s, group = problem(1, 400)
    prepared = prepare(y, group=group, flavor=flavor)
    for scores in (s, s.round(0), np.zeros_like(s)):
        assert prepared(scores) == ndcg_score(y, scores, group=group, flavor=flavor)
        assert prepared.dcg(scores) == dcg_score(y, scores, group=group, flavor=flavor)
        assert prepared.evaluate(scores).value == evaluate(y, scores, group=group, flavor=flavor).value


@pytest.mark.parametrize("ties", ["average", "first", "last", "best", "worst"])
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-9, 1e-3])
def test_selection_agrees_with_sorting_for_scores_tied_in_float32(monkeypatch, ties, gap):
    rng = np.random.default_rng(4)
    s = rng.integers(0, 6, (200, 90)) + gap * rng.integers(0, 4, (200, 90))
    y = rng.integers(0, 4, (200, 90)).astype(float)
    flavor = Flavor(ties=ties, gain="exponential")
    selected = evaluate(y, s, flavor=flavor, k=(1, 5, 20)).per_query.ndcg
    monkeypatch.setattr(numpy_kernel, "_SELECT_BELOW", 1000)
    assert np.abs(evaluate(y, s, flavor=flavor, k=(1, 5, 20)).per_query.ndcg - selected).max() < 1e-14
    if 0 < gap < 1e-6:  # rounding must change the values, or this would test nothing
        rounded = evaluate(y, np.float32(s), flavor=flavor, k=(1, 5, 20)).per_query.ndcg
        assert np.abs(rounded - selected).max() > 1e-3


def test_the_number_of_threads(monkeypatch):
    plenty, thread_count = 100 << 17, threads_module.thread_count
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8), raising=False)
    monkeypatch.delenv("NDCG_ML_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count(None, plenty) == 8
    assert thread_count(None, 1000) == 1
    assert thread_count(3, plenty) == 3
    for odd in ("²", "", "x", "0", "-1", "1.5"):
        monkeypatch.setenv("OMP_NUM_THREADS", odd)
        assert thread_count(None, plenty) == 8
    monkeypatch.setenv("OMP_NUM_THREADS", "2,1")
    assert thread_count(None, plenty) == 2
    monkeypatch.setenv("NDCG_ML_THREADS", "5")
    assert thread_count(None, plenty) == 5
    monkeypatch.setenv("NDCG_ML_THREADS", "")  # an empty variable counts as not set
    assert thread_count(None, plenty) == 2
    monkeypatch.delenv("NDCG_ML_THREADS")
    seen = []
    worker = threading.Thread(target=lambda: seen.append((thread_count(None, plenty), thread_count(3, plenty))))
    worker.start()
    worker.join()
    assert seen == [(1, 3)]


@pytest.mark.parametrize("value", ["0", "many", "2.5", " ", "²"])
def test_a_wrong_number_of_threads_is_refused(monkeypatch, value):
    monkeypatch.setenv("NDCG_ML_THREADS", value)
    with pytest.raises(ValueError, match="NDCG_ML_THREADS must be an integer >= 1"):
        ndcg_score([1, 0], [1, 0], group=[2])
    with pytest.raises(ValueError, match="threads must be an integer >= 1"):
        prepare([1, 0], group=[2], threads=0)
    with pytest.raises(TypeError, match=r"threads must be an integer >= 1, or None for the default; got 1\.5"):
        prepare([1, 0], group=[2], threads=1.5)


def test_an_unretrieved_document_may_be_relevant():
    flavor = Flavor(gain="exponential", ideal="recall")
    kept = np.array([True, True, False])
    expected = ndcg_score([1, 2], [3, 2], group=[2], flavor=flavor)
    result = evaluate([1, 2, 490], [3, 2, 1], group=[3], retrieved=kept, flavor=flavor)
    assert result.value == expected < 1
    assert result.per_query.n_relevant.tolist() == [3]


def test_a_callable_gain_is_called_for_occurring_grades_only():
    asked = []

    def gain(grade):
        asked.append(grade)
        return 1 + np.log(grade)

    y, mask = [[1, math.nan, 2, 0]], np.array([[True, True, True, False]])
    flavor = Flavor(gain=gain, unjudged="zero")
    assert ndcg_score(y, [[3, 2, 1, 0]], mask=mask, flavor=flavor) < 1
    assert sorted(asked) == [1.0, 2.0]


def test_excluded_rows_are_not_checked_against_the_scale():
    flavor = Flavor(max_grade=-1.0, negative="allow")
    assert evaluate([[-2, 5]], [[1, 2]], mask=np.array([[True, False]]), flavor=flavor).n_empty == 1


def test_records_may_be_ids():
    y, s = [3.0, 0, 1, 2, 0], [0.1, 0.2, 0.3, 0.4, 0.5]
    records = np.array([(1, "b"), (1, "b"), (0, "a"), (0, "a"), (0, "a")], dtype=[("part", int), ("name", "U1")])
    assert ndcg_score(y, s, qid=records) == ndcg_score(y, s, group=[2, 3])
    shuffled = [2, 0, 3, 1, 4]
    got = ndcg_score(np.array(y)[shuffled], np.array(s)[shuffled], qid=records[shuffled])
    assert got == pytest.approx(ndcg_score(y, s, group=[2, 3]), abs=1e-15)
