"""The candidates of a search, by query: what arrives from other processes, against a loop by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")

import gc
import math
import pickle

import numpy as np
import sklearn
from scipy.stats import t as student_t
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_validate,
)
from sklearn.tree import DecisionTreeRegressor

from ndcg_ml import Flavor, evaluate
from ndcg_ml._stats.honest import honest_value
from ndcg_ml.sklearn import ndcg_scorer, paired_search
from ndcg_ml.sklearn.paired_search import _table
from ndcg_ml.sklearn.query_store import Carrier, KeptQueries, Scored, _of_this_process

DEPTHS = [1, 2, 3, 4, 6]
FLAVOR = Flavor.preset("lightgbm", k=5)
pytestmark = pytest.mark.usefixtures("routing")


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 14, 50)
    qid = np.repeat([f"q{i}" for i in rng.permutation(50)], sizes)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X))), 0, 3).astype(int)
    y[qid == "q3"] = 0  # an empty query
    shuffled = rng.permutation(len(X))
    return X[shuffled], y[shuffled], qid[shuffled]


def tree(**params):
    return DecisionTreeRegressor(random_state=0, **params)


def fitted(problem, scorer, kind=GridSearchCV, grid=None, **options):
    X, y, qid = problem
    options.setdefault("cv", GroupKFold(4))
    search = kind(tree(), {"max_depth": DEPTHS} if grid is None else grid, scoring=scorer, **options)
    return search.fit(X, y, groups=qid)


def by_hand(problem, params, flavor=FLAVOR, cv=None):
    """NDCG of each query, out of fold, in the order of the sorted ids."""
    X, y, qid = problem
    found = {}
    for train, test in (cv or GroupKFold(4)).split(X, y, qid):
        scores = tree(**params).fit(X[train], y[train]).predict(X[test])
        table = evaluate(y[test], scores, qid=qid[test], flavor=flavor).per_query
        for query, value in zip(table.qid.tolist(), table.ndcg.tolist(), strict=True):
            found.setdefault(query, []).append(value)
    return np.array([np.mean(found[query]) for query in sorted(found)])


def assert_as_by_hand(result, problem, **options):
    values = [by_hand(problem, each.params, **options) for each in result.candidates]
    assert result.n_queries == len(values[0])
    assert [each.value for each in result.candidates] == sorted(
        (each.value for each in result.candidates), reverse=True
    )
    for each, value in zip(result.candidates, values, strict=True):
        gaps = value - values[0]
        difference, error = gaps.mean(), gaps.std(ddof=1) / math.sqrt(gaps.size)
        assert each.value == pytest.approx(value.mean(), abs=1e-12)
        assert each.difference == pytest.approx(difference, abs=1e-12)
        assert each.standard_error == pytest.approx(error, abs=1e-12)
        reach = error * student_t.ppf(0.975, gaps.size - 1)
        assert each.interval.low == pytest.approx(difference - reach, abs=1e-9)  # SciPy 1.11 has 9 digits of t
        assert each.within_noise == (-difference <= error + 1e-12)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("return_train_score", [False, True])
def test_a_grid_is_compared_as_by_hand(problem, n_jobs, return_train_score):
    scorer = ndcg_scorer(FLAVOR, keep_queries=True)
    search = fitted(problem, scorer, n_jobs=n_jobs, return_train_score=return_train_score)
    assert len(scorer.kept) == 4 * len(DEPTHS)
    result = paired_search(search, seed=0)
    assert_as_by_hand(result, problem)
    assert {each.row for each in result.candidates} == set(range(len(DEPTHS)))
    assert all(search.cv_results_["params"][each.row] == each.params for each in result.candidates)
    assert result.best.difference == 0 == result.best.standard_error
    assert result.best.within_noise
    assert not result.candidates[-1].within_noise
    assert result.candidates[-1].p_value < 0.05 < 1 == result.best.p_value
    others = [each.p_value for each in result.candidates[1:]]
    assert result.candidates[-1].p_adjusted == pytest.approx(
        min(others) * len(others) if others[-1] == min(others) else 1
    )
    assert result.failed == ()


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_other_backends_bring_the_queries_too(problem, backend):
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_backend(backend, n_jobs=2):
        search = fitted(problem, ndcg_scorer(FLAVOR, keep_queries=True))
    assert_as_by_hand(paired_search(search), problem)


def test_a_random_search_several_cutoffs_and_their_refit(problem):
    scorer = ndcg_scorer(FLAVOR, k=(1, 5), keep_queries=True)
    grid = {"max_depth": DEPTHS, "min_samples_leaf": [1, 5, 20]}
    search = fitted(problem, scorer, RandomizedSearchCV, grid, n_iter=6, random_state=0, n_jobs=2, refit="ndcg_at_5")
    assert_as_by_hand(paired_search(search), problem)
    assert_as_by_hand(paired_search(search, metric="ndcg_at_1"), problem, flavor=FLAVOR.replace(k=1))
    with pytest.raises(
        ValueError, match="metric must be one of the search's scores, 'ndcg_at_1', 'ndcg_at_5'; got 'x'"
    ):
        paired_search(search, metric="x")


def test_a_dict_of_scorers_keeps_the_queries_of_each(problem):
    scoring = {"five": ndcg_scorer(FLAVOR, keep_queries=True), "one": ndcg_scorer("sklearn@1", keep_queries=True)}
    search = fitted(problem, scoring, n_jobs=2, refit="five")
    assert_as_by_hand(paired_search(search), problem)
    assert_as_by_hand(paired_search(search, metric="one"), problem, flavor="sklearn@1")
    with pytest.raises(ValueError, match="metric must be one of the search's scores, 'five', 'one'; got 'two'"):
        paired_search(search, metric="two")


def test_of_a_halving_search_the_last_iteration_is_compared(problem):
    search = fitted(
        problem,
        ndcg_scorer(FLAVOR, keep_queries=True),
        HalvingGridSearchCV,
        {"min_samples_leaf": [1, 3, 10, 20, 30, 40]},
        resource="max_depth",
        min_resources=2,
        max_resources=6,
        factor=2,
        n_jobs=2,
    )
    result = paired_search(search)
    last = search.cv_results_["iter"] == max(search.cv_results_["iter"])
    assert {each.row for each in result.candidates} == set(np.flatnonzero(last).tolist())
    assert len(result.candidates) > 1
    assert_as_by_hand(result, problem)


def test_a_query_that_several_splits_test_counts_once(problem):
    cv = GroupShuffleSplit(6, test_size=0.4, random_state=0)
    result = paired_search(fitted(problem, ndcg_scorer(FLAVOR, keep_queries=True), cv=cv, n_jobs=2))
    assert_as_by_hand(result, problem, cv=cv)
    assert result.n_queries < 51


def test_queries_that_the_flavor_skips_are_left_out(problem):
    scorer = ndcg_scorer(FLAVOR.replace(empty="skip"), keep_queries=True)
    result = paired_search(fitted(problem, scorer))
    expected = by_hand(problem, result.best.params, FLAVOR.replace(empty="skip"))
    assert result.n_queries == np.isfinite(expected).sum() < 50
    assert result.best.value == pytest.approx(np.nanmean(expected), abs=1e-12)


def test_rows_of_two_dimensional_labels_are_queries():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6))
    Y = np.clip(np.round(X + rng.normal(size=X.shape)), 0, 3)
    scorer = ndcg_scorer("sklearn@3", keep_queries=True)
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1e5]}, scoring=scorer, cv=KFold(4), n_jobs=2).fit(X, Y)
    result = paired_search(search)
    scores = np.empty_like(Y)
    for train, test in KFold(4).split(X):
        scores[test] = Ridge(alpha=result.best.params["alpha"]).fit(X[train], Y[train]).predict(X[test])
    assert result.best.value == pytest.approx(evaluate(Y, scores, flavor="sklearn@3").value, abs=1e-12)
    assert result.n_queries == 40


# -- what goes wrong ------------------------------------------------------------------------------------------------


class Fails(RegressorMixin, BaseEstimator):
    def __init__(self, fails=False):
        self.fails = fails

    def fit(self, X, y):
        if self.fails:
            raise RuntimeError("no")
        self.fitted_ = True
        return self

    def predict(self, X):
        return X[:, 0]


def test_a_candidate_that_failed_is_left_out(problem):
    X, y, qid = problem
    scorer = ndcg_scorer(FLAVOR, keep_queries=True)
    search = GridSearchCV(Fails(), {"fails": [True, False]}, scoring=scorer, cv=GroupKFold(3), error_score=-1.0)
    with pytest.warns(sklearn.exceptions.FitFailedWarning):
        search.fit(X, y, groups=qid)
    result = paired_search(search)
    assert result.failed == (0,)
    assert [each.row for each in result.candidates] == [1]
    assert "; 1 failed and are left out" in str(result)


class FailsAt3(RegressorMixin, BaseEstimator):
    def __init__(self, max_depth=1):
        self.max_depth = max_depth

    def fit(self, X, y):
        if self.max_depth == 3:
            raise RuntimeError("no")
        self.tree_ = tree(max_depth=self.max_depth).fit(X, y)
        return self

    def predict(self, X):
        return self.tree_.predict(X)


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite:UserWarning")
@pytest.mark.parametrize("error_score", [np.nan, 0.0, -1.0])
def test_a_second_search_of_one_scorer_in_which_a_candidate_fails(problem, error_score):
    """The first search kept queries of a candidate at that place, which are not those of the one that failed."""
    X, y, qid = problem
    scorer = ndcg_scorer(FLAVOR, keep_queries=True)
    fitted(problem, scorer, grid={"max_depth": [1, 2, 4]})
    search = GridSearchCV(
        FailsAt3(), {"max_depth": [1, 3, 4]}, scoring=scorer, cv=GroupKFold(4), error_score=error_score
    )
    with pytest.warns(sklearn.exceptions.FitFailedWarning):
        search.fit(X, y, groups=qid)
    result = paired_search(search, seed=0)
    assert result.failed == (1,)
    assert sorted(each.row for each in result.candidates) == [0, 2]
    assert [each.params for each in result.candidates if each.row == 2] == [{"max_depth": 4}]


def test_a_scorer_is_as_before_unless_it_is_asked_to_keep(problem):
    X, y, qid = problem
    model = tree(max_depth=3).fit(X, y)
    plain, keeps = ndcg_scorer(FLAVOR), ndcg_scorer(FLAVOR, keep_queries=True)
    assert plain.kept is None
    assert keeps(model, X, y, qid=qid) == plain(model, X, y, qid=qid)
    assert type(keeps(model, X, y, qid=qid)) is float
    assert len(keeps.kept) == 0  # outside a search nothing is kept
    cross_validate(tree(), X, y, scoring=keeps, cv=GroupKFold(3), params={"groups": qid})
    assert len(keeps.kept) == 0
    assert repr(keeps) == repr(plain)[:-1] + ", keep_queries=True)"
    one, other = (fitted(problem, scorer).cv_results_ for scorer in (plain, keeps))
    assert all((one[name] == other[name]).all() for name in one if name.endswith("test_score"))
    assert other["split0_test_score"].dtype == np.float64


def test_what_a_search_must_be(problem):
    with pytest.raises(TypeError, match=r"search must be a fitted search.*got GridSearchCV without cv_results_"):
        paired_search(GridSearchCV(tree(), {}))
    with pytest.raises(TypeError, match="must have been scored by ndcg_scorer"):
        paired_search(fitted(problem, "r2"))
    with pytest.raises(ValueError, match=r"must keep the queries.*keep_queries=True"):
        paired_search(fitted(problem, ndcg_scorer(FLAVOR)))
    scorer = ndcg_scorer(FLAVOR, keep_queries=True)
    search = fitted(problem, scorer)
    with pytest.raises(ValueError, match="metric must be one of the search's scores, 'score'; got 'x'"):
        paired_search(search, metric="x")
    with pytest.raises(ValueError, match="confidence must be above 0 and below 1; got 95"):
        paired_search(search, confidence=95)
    with pytest.raises(ValueError, match="n_resamples must be"):
        paired_search(search, n_resamples=0)
    pickled = pickle.dumps(search)
    fitted(problem, scorer, grid={"max_depth": [6, 5]})
    with pytest.raises(ValueError, match="queries of another search: its score of candidate 0 in split 0"):
        paired_search(search)
    del search, scorer
    with pytest.raises(ValueError, match=r"no queries of this search are kept in this process.*not saved"):
        paired_search(pickle.loads(pickled))


def test_fewer_than_two_queries_are_refused(problem):
    X, y, qid = problem
    rows = np.isin(qid, ["q1", "q2", "q3"])
    y = np.where(qid == "q1", y + 1, 0)
    scorer = ndcg_scorer(FLAVOR.replace(empty="skip"), keep_queries=True)
    cv = [(np.arange(5), np.arange(rows.sum()))]
    search = GridSearchCV(tree(), {"max_depth": [1, 2]}, scoring=scorer, cv=cv)
    search.fit(X[rows], y[rows], groups=qid[rows])
    with pytest.raises(ValueError, match="at least two queries that are not empty; got 1"):
        paired_search(search)


def test_what_a_scorer_and_a_choice_must_be(problem):
    with pytest.raises(TypeError, match="keep_queries must be True or False; got 'queries'"):
        ndcg_scorer(FLAVOR, keep_queries="queries")
    with pytest.raises(ValueError, match="keep_queries needs a flavor with aggregate='macro'"):
        ndcg_scorer(FLAVOR.replace(aggregate="micro"), keep_queries=True)


def test_the_result_prints_and_becomes_a_frame(problem):
    result = paired_search(fitted(problem, ndcg_scorer(FLAVOR, keep_queries=True)), seed=0)
    lines = str(result).splitlines()
    assert lines[0].startswith("5 candidates on 50 queries, ")
    assert len(lines) == 7
    assert f"{result.candidates[1].difference:+.4f}" in lines[3]
    pytest.importorskip("pandas")
    frame = result.to_frame()
    columns = "row params value difference standard_error low high p_value p_adjusted within_noise"
    assert list(frame.columns) == columns.split()
    assert frame["difference"].tolist() == [each.difference for each in result.candidates]
    assert frame["low"].iloc[1] < frame["difference"].iloc[1] < frame["high"].iloc[1]
    assert not math.isnan(frame["p_value"].sum())


# -- the value of a search ------------------------------------------------------------------------------------------


def test_the_honest_value_of_a_grid(problem):
    scorer = ndcg_scorer(FLAVOR, keep_queries=True)
    result = paired_search(fitted(problem, scorer), seed=0)
    honest = result.honest(seed=0)
    table = np.stack([by_hand(problem, {"max_depth": depth}) for depth in DEPTHS], axis=1)
    own = result._table.ndcg
    assert np.sort(own, axis=0) == pytest.approx(np.sort(table, axis=0))  # the same queries, in another order
    again = honest_value(own, 0.95, 999, np.random.default_rng(0))
    assert honest.value == pytest.approx(again.value, abs=1e-12)
    assert honest.chosen == again.chosen
    assert honest.best_value == pytest.approx(result.best.value)
    assert honest.optimism == pytest.approx(honest.best_value - honest.value)
    assert honest.value < honest.best_value
    assert honest.interval.low < honest.value < honest.interval.high
    assert honest.n_resamples == 999
    assert result.honest(seed=0, confidence=0.5).interval.high < honest.interval.high


def test_searches_without_an_honest_value(problem):
    X, y, qid = problem
    few = np.isin(qid, np.unique(qid)[:21])  # one of them is empty, and skipped
    skipping = FLAVOR.replace(empty="skip")
    result = paired_search(fitted((X[few], y[few], qid[few]), ndcg_scorer(skipping, keep_queries=True)))
    if result.n_queries < 20:
        with pytest.raises(ValueError, match="honest needs at least 20 queries"):
            result.honest()
    fewer = np.isin(qid, np.unique(qid)[:19])
    with pytest.raises(ValueError, match=r"honest needs at least 20 queries, .* got 19"):
        paired_search(fitted((X[fewer], y[fewer], qid[fewer]), ndcg_scorer(FLAVOR, keep_queries=True))).honest()
    enough = np.isin(qid, np.unique(qid)[:20])
    paired_search(fitted((X[enough], y[enough], qid[enough]), ndcg_scorer(FLAVOR, keep_queries=True))).honest()
    halving = {"resource": "n_estimators", "max_resources": 4, "min_resources": 1, "factor": 2, "random_state": 0}
    forest = RandomForestRegressor(random_state=0)
    scorer = ndcg_scorer(FLAVOR, keep_queries=True)
    search = HalvingGridSearchCV(forest, {"max_depth": [1, 3]}, scoring=scorer, cv=GroupKFold(3), **halving)
    with pytest.raises(ValueError, match="a halving search drops most of them early"):
        paired_search(search.fit(X, y, groups=qid)).honest()


def test_many_candidates_are_tested_by_more_draws(problem):
    # 29 others: Holm's first step needs 580 draws to reach .05, and 99 were asked for.
    scorer = ndcg_scorer(FLAVOR, keep_queries=True)
    grid = {"max_depth": [6, 1], "min_samples_leaf": list(range(1, 16))}
    result = paired_search(fitted(problem, scorer, grid=grid, cv=GroupKFold(2)), n_resamples=99, seed=0)
    assert len(result.candidates) == 30
    # Those whose exchanges were enumerated have other p-values.
    drawn = [p for p in (each.p_value for each in result.candidates) if p < 1 and round(p * 1161, 9) % 1 == 0]
    assert drawn


@pytest.mark.parametrize(
    ("of_others", "failed"),
    [
        ([0.5, 0.5], ()),  # those of the scorer
        ([0.5, math.nan], (1,)),
        ([0.5, -1.0], (1,)),  # one number may be the search's error_score
        ([-1.0, -1.0], (1,)),
        ([-1.0, -2.0], None),  # two are another search
    ],
)
def test_two_scores_that_the_scorer_has_not_given_are_those_of_another_search(of_others, failed):
    scorer = ndcg_scorer("sklearn", keep_queries=True)
    ids = np.array([[1, 2], [3, 4]])
    for candidate, split in np.ndindex(3, 2):
        scorer.kept.put(candidate, split, Scored(ids[split], np.full((2, 1), 0.5), (0.5,)))
    results = {"params": [{}] * 3}
    for split, other in enumerate(of_others):
        results[f"split{split}_test_score"] = [0.5, other, 0.5]
    if failed is None:
        message = "another search: its score of candidate 1 in split 0 is not the search's"
        with pytest.raises(ValueError, match=message):
            _table(scorer, results, None)
        return
    table = _table(scorer, results, None)
    assert table.failed == failed
    assert table.rows == [row for row in range(3) if row not in failed]
    assert table.ndcg.shape == (4, len(table.rows))
    assert not table.is_halving


def test_candidates_are_of_the_same_queries_and_empty_for_all_or_for_none():
    scorer = ndcg_scorer("sklearn", keep_queries=True)
    results = {"params": [{}] * 2, "split0_test_score": [0.5, 0.5]}
    nan = math.nan
    ndcg = {"same": [nan, 0.5, 0.25], "other": [0.5, nan, 0.25]}
    scorer.kept.put(0, 0, Scored(np.array([1, 2, 3]), np.array([ndcg["same"]]).T, (0.5,)))
    for ids, values, message in (
        ([1, 2, 4], "same", "candidates must be scored on the same queries; candidate 1 was not"),
        ([1, 2, 3], "other", "a query must be empty for every candidate or for none"),
    ):
        scorer.kept.put(1, 0, Scored(np.array(ids), np.array([ndcg[values]]).T, (0.5,)))
        with pytest.raises(ValueError, match=message):
            _table(scorer, results, None)
    scorer.kept.put(1, 0, Scored(np.array([1, 2, 3]), np.array([ndcg["same"]]).T, (0.5,)))
    assert _table(scorer, results, None).ndcg.tolist() == [[0.5, 0.5], [0.25, 0.25]]
    one = np.array([[nan, 0.5, nan]]).T
    for candidate in (0, 1):
        scorer.kept.put(candidate, 0, Scored(np.array([1, 2, 3]), one, (0.5,)))
    with pytest.raises(ValueError, match="at least two queries that are not empty; got 1"):
        _table(scorer, results, None)


def test_a_score_carries_its_queries_to_those_that_are_there():
    kept = KeptQueries("a token of this test")
    scored = Scored(np.array([1, 2]), np.array([[0.5], [1.0]]), (0.75,))
    packed = pickle.dumps(Carrier(0.75, kept.token, 2, 1, scored))
    value = pickle.loads(packed)
    assert (type(value), value) == (float, 0.75)
    assert len(kept) == 1
    assert kept.knows(2, 1)
    assert not kept.knows(1, 2)
    found = kept.get(2, 1, 0, 0.75)
    assert found is not None
    assert (found.ids.tolist(), found.ndcg.tolist(), found.values) == ([1, 2], [[0.5], [1.0]], (0.75,))
    assert kept.get(2, 1, 0, 0.5) is None
    assert pickle.loads(pickle.dumps(kept)) is kept
    del kept
    gc.collect()
    assert pickle.loads(packed) == 0.75
    anew = _of_this_process("a token of this test")
    assert len(anew) == 0
