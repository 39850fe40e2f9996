"""The comparison of a search's candidates by query, with several processes, against loops over folds."""

import pytest

pytest.importorskip("sklearn")

import math
import pickle

import joblib
import numpy as np
import sklearn
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

from ndcg_ml import Comparison, Flavor, compare, evaluate
from ndcg_ml._statistics.distributions import t_quantile
from ndcg_ml._statistics.intervals import honest_value
from ndcg_ml.sklearn import ndcg_scorer, paired_search

DEPTHS = [1, 2, 3, 4, 6]
FLAVOR = Flavor.preset("lightgbm", k=5)
pytestmark = pytest.mark.usefixtures("routing")


def made():
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 14, 50)
    qid = np.repeat([f"q{i}" for i in rng.permutation(50)], sizes)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X))), 0, 3).astype(int)
    y[qid == "q3"] = 0  # an empty query
    shuffled = rng.permutation(len(X))
    return X[shuffled], y[shuffled], qid[shuffled]


X, y, qid = made()


def tree(**params):
    return DecisionTreeRegressor(random_state=0, **params)


def keeping(flavor=FLAVOR, **options):
    return ndcg_scorer(flavor, keep_queries=True, **options)


def fitted(scorer=None, kind=GridSearchCV, grid=None, rows=slice(None), **options):
    scorer = keeping() if scorer is None else scorer
    options.setdefault("cv", GroupKFold(4))
    search = kind(tree(), {"max_depth": DEPTHS} if grid is None else grid, scoring=scorer, **options)
    return search.fit(X[rows], y[rows], groups=qid[rows])


def expected_ndcg(params, flavor=FLAVOR, cv=None):
    """Return the out-of-fold NDCG of each query, sorted by id."""
    found = {}
    for train, test in (cv or GroupKFold(4)).split(X, y, qid):
        scores = tree(**params).fit(X[train], y[train]).predict(X[test])
        table = evaluate(y[test], scores, qid=qid[test], flavor=flavor).per_query
        for query, value in zip(table.qid.tolist(), table.ndcg.tolist(), strict=True):
            found.setdefault(query, []).append(value)
    return np.array([np.mean(found[query]) for query in sorted(found)])


def params_of(result, search):
    """Return the parameters of each candidate, the best first."""
    return [search.cv_results_["params"][row] for row in result.rows]


def assert_expected(search, metric=None, **options):
    result = paired_search(search, metric=metric)
    values = [expected_ndcg(params, **options) for params in params_of(result, search)]
    best = values[0]
    assert result.n_queries == len(best)
    assert result.values == pytest.approx([value.mean() for value in values], abs=1e-12)
    assert list(result.values) == sorted(result.values, reverse=True)
    assert [(pair.a, pair.b) for pair in result.pairs] == [(result.names[0], name) for name in result.names[1:]]
    for pair, value in zip(result.pairs, values[1:], strict=True):
        assert pair.difference == pytest.approx((value - best).mean(), abs=1e-12)
        assert pair.standard_error == pytest.approx((value - best).std(ddof=1) / math.sqrt(best.size), abs=1e-12)
    return result


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_grid_is_compared_as_by_hand(n_jobs):
    scorer = keeping()
    search = fitted(scorer, n_jobs=n_jobs, return_train_score=True)
    assert len(scorer.kept) == 4 * len(DEPTHS)
    result = assert_expected(search)
    assert isinstance(result, Comparison)
    assert sorted(result.rows) == list(range(len(DEPTHS)))
    params = params_of(result, search)
    assert list(result.names) == [f"{row}: {each}" for row, each in zip(result.rows, params, strict=True)]
    assert (result.baseline, result.measure, result.flavor) == (result.names[0], "NDCG@5", FLAVOR)
    assert [pair.verdict for pair in result.pairs][-1] == "worse"
    assert all(pair.p_adjusted >= pair.p_value for pair in result.pairs)
    assert result.failed == ()


def test_the_differences_are_those_of_compare():
    """With two candidates, one split and one cut-off, the comparison is that of two evaluations."""
    cv = list(GroupKFold(2).split(X, y, qid))[:1]
    search = fitted(grid={"max_depth": [1, 4]}, cv=cv)
    result = paired_search(search, confidence=0.9, seed=3)
    [(train, test)] = cv
    scores = [tree(**params).fit(X[train], y[train]).predict(X[test]) for params in params_of(result, search)]
    best, other = (evaluate(y[test], each, qid=qid[test], flavor=FLAVOR) for each in scores)
    names = list(result.names)
    expected = compare(best, other, names=names, baseline=names[0], confidence=0.9, seed=3)
    assert result.pairs == expected.pairs
    assert str(result).splitlines()[:6] == str(expected).splitlines()[:6]


SHUFFLED = GroupShuffleSplit(6, test_size=0.4, random_state=0)
GRID = {"max_depth": DEPTHS, "min_samples_leaf": [1, 5, 20]}
RANDOM = {"n_iter": 6, "random_state": 0, "n_jobs": 2, "refit": "ndcg_at_5"}
SEARCHES = {
    "random, of several cut-offs": lambda: fitted(keeping(k=(1, 5)), RandomizedSearchCV, GRID, **RANDOM),
    "a dict of scorers": lambda: fitted({"five": keeping(), "one": keeping("sklearn@1")}, n_jobs=2, refit="five"),
    "several splits": lambda: fitted(cv=SHUFFLED, n_jobs=2),
    "threading": lambda: with_backend("threading"),
    "multiprocessing": lambda: with_backend("multiprocessing"),
}


def with_backend(backend):
    with joblib.parallel_backend(backend, n_jobs=2):
        return fitted()


@pytest.mark.parametrize("case", SEARCHES)
def test_searches_of_any_kind(case):
    search = SEARCHES[case]()
    if case == "several splits":  # a query that is tested in several counts once
        assert assert_expected(search, cv=SHUFFLED).n_queries < 51
        return
    assert_expected(search)
    if case.startswith("random"):
        assert_expected(search, metric="ndcg_at_1", flavor=FLAVOR.replace(k=1))
    elif case == "a dict of scorers":
        assert_expected(search, metric="one", flavor="sklearn@1")
        with pytest.raises(ValueError, match="metric must be one of the search's scores, 'five', 'one'; got 'two'"):
            paired_search(search, metric="two")


def test_the_last_iteration_of_a_halving_search_is_compared():
    grid = {"min_samples_leaf": [1, 3, 10, 20, 30, 40]}
    halving = {"resource": "max_depth", "min_resources": 2, "max_resources": 6, "factor": 2}
    search = fitted(None, HalvingGridSearchCV, grid, n_jobs=2, **halving)
    result = assert_expected(search)
    last = search.cv_results_["iter"] == max(search.cv_results_["iter"])
    assert sorted(result.rows) == np.flatnonzero(last).tolist()
    assert len(result.rows) > 1


def test_queries_that_the_flavor_skips_are_excluded():
    scorer = keeping(FLAVOR.replace(empty="skip"))
    search = fitted(scorer)
    result = paired_search(search)
    expected = expected_ndcg(params_of(result, search)[0], FLAVOR.replace(empty="skip"))
    assert result.n_queries == np.isfinite(expected).sum() < 50
    assert result.not_compared.size == 50 - result.n_queries
    assert result.values[0] == pytest.approx(np.nanmean(expected), abs=1e-12)


def test_rows_of_two_dimensional_labels_are_queries():
    rng = np.random.default_rng(1)
    table = rng.normal(size=(40, 6))
    Y = np.clip(np.round(table + rng.normal(size=table.shape)), 0, 3)
    scorer = keeping("sklearn@3")
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1e5]}, scoring=scorer, cv=KFold(4), n_jobs=2).fit(table, Y)
    result = paired_search(search)
    scores = np.empty_like(Y)
    for train, test in KFold(4).split(table):
        scores[test] = Ridge(**params_of(result, search)[0]).fit(table[train], Y[train]).predict(table[test])
    assert result.values[0] == pytest.approx(evaluate(Y, scores, flavor="sklearn@3").value, abs=1e-12)
    assert result.n_queries == 40


# -- failed fits and refused searches -------------------------------------------------------------------------------


class FailsAt3(DecisionTreeRegressor):
    def fit(self, X, y, sample_weight=None, check_input=True):
        if self.max_depth == 3:
            raise RuntimeError("no")
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite:UserWarning")
@pytest.mark.parametrize("error_score", [np.nan, 0.0, -1.0])
def test_a_failed_candidate_in_the_second_search_of_a_scorer(error_score):
    """The scorer still has the queries of the first search for the position of the failed candidate."""
    scorer = keeping()
    fitted(scorer, grid={"max_depth": [1, 2, 4]})
    options = {"scoring": scorer, "cv": GroupKFold(4), "error_score": error_score}
    search = GridSearchCV(FailsAt3(random_state=0), {"max_depth": [1, 3, 4]}, **options)
    with pytest.warns(sklearn.exceptions.FitFailedWarning):
        search.fit(X, y, groups=qid)
    result = paired_search(search, seed=0)
    assert result.failed == (1,)
    assert "1 of 3 candidates failed and are left out: rows [1]." in str(result)
    assert sorted(result.names) == ["0: {'max_depth': 1}", "2: {'max_depth': 4}"]
    chosen = result.honest(seed=0).chosen
    assert len(chosen) == 3
    assert chosen[1] == 0


def test_keep_queries_does_not_change_the_scores():
    model = tree(max_depth=3).fit(X, y)
    plain, keeps = ndcg_scorer(FLAVOR), keeping()
    assert plain.kept is None
    assert keeps(model, X, y, qid=qid) == plain(model, X, y, qid=qid)
    assert type(keeps(model, X, y, qid=qid)) is float
    assert len(keeps.kept) == 0  # outside a search nothing is kept
    cross_validate(tree(), X, y, scoring=keeps, cv=GroupKFold(3), params={"groups": qid})
    assert len(keeps.kept) == 0
    assert repr(keeps) == repr(plain)[:-1] + ", keep_queries=True)"
    one, other = (fitted(scorer).cv_results_ for scorer in (plain, keeps))
    assert all((one[name] == other[name]).all() for name in one if name.endswith("test_score"))
    assert other["split0_test_score"].dtype == np.float64


def two_values():
    """Return a search in which one of three queries is not empty."""
    rows = np.isin(qid, ["q1", "q2", "q3"])
    grades, cv = np.where(qid == "q1", y + 1, 0), [(np.arange(5), np.arange(rows.sum()))]
    search = GridSearchCV(tree(), {"max_depth": [1, 2]}, scoring=keeping(FLAVOR.replace(empty="skip")), cv=cv)
    return paired_search(search.fit(X[rows], grades[rows], groups=qid[rows]))


def of_halving():
    halving = {"resource": "n_estimators", "max_resources": 4, "min_resources": 1, "factor": 2, "random_state": 0}
    forest = RandomForestRegressor(random_state=0)
    search = HalvingGridSearchCV(forest, {"max_depth": [*range(1, 9)]}, scoring=keeping(), cv=GroupKFold(3), **halving)
    return paired_search(search.fit(X, y, groups=qid)).honest()


REFUSED = {
    "not fitted": (lambda: paired_search(GridSearchCV(tree(), {})), TypeError,
        "search must be a fitted search.*without cv_results_", lambda: paired_search(fitted())),
    "another score": (lambda: paired_search(fitted("r2")), TypeError, "must have been scored by ndcg_scorer",
        lambda: paired_search(fitted())),
    "not kept": (lambda: paired_search(fitted(ndcg_scorer(FLAVOR))), TypeError,
        r"keep_queries=True\); got ndcg_scorer\('lightgbm', k=5\)", lambda: paired_search(fitted())),
    "confidence": (lambda: paired_search(fitted(), confidence=95), ValueError,
        "confidence must be above 0 and below 1; got 95", lambda: paired_search(fitted(), confidence=0.95)),
    "pickled": (lambda: paired_search(pickle.loads(pickle.dumps(fitted()))), ValueError,
        r"no queries of this search are kept in this process.*not saved", lambda: paired_search(fitted())),
    "empty for some": (lambda: paired_search(fitted(keeping(Flavor(ideal="local", k=1, empty="skip")))), ValueError,
        "a query must be empty for every candidate or for none",
        lambda: [paired_search(fitted(keeping(Flavor(ideal="local", k=1, empty=empty)))) for empty in (0, 1)]),
    "one query": (two_values, ValueError, "at least two queries must have a value in every system; got 1 of 3", None),
    "one candidate": (lambda: paired_search(fitted(grid={"max_depth": [1]})), ValueError,
        "at least two candidates that were scored; got 1, and 0 whose fit failed", None),
    "no honest value of few": (lambda: paired_search(fitted(rows=np.isin(qid, np.unique(qid)[:19]))).honest(),
        ValueError, r"honest needs at least 20 queries, .* got 19", None),
    "no honest value of halving": (of_halving, ValueError, "a halving search drops most of them early",
        lambda: [paired_search(fitted(kind=kind, **options)).honest() for kind,
            options in ((GridSearchCV, {}), (RandomizedSearchCV, {"n_iter": 2, "random_state": 0}))]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    call, error, message, advised = REFUSED[case]
    with pytest.raises(error, match=message):
        call()
    if advised is not None:
        advised()


def test_a_second_search_with_the_scorer_of_the_first():
    scorer = keeping()
    search = fitted(scorer)
    fitted(scorer, grid={"max_depth": [6, 5]})
    with pytest.raises(ValueError, match="queries of another search: its score of candidate 0 in split 0"):
        paired_search(search)


# -- the value of a search ------------------------------------------------------------------------------------------


def test_an_honest_value_by_hand():
    ndcg = np.random.default_rng(1).random((7, 3))
    left_out: list[list[float]] = [[] for _ in range(7)]
    chosen = np.zeros(3)
    for drawn in np.random.default_rng(0).integers(0, 7, (40, 7)):
        winner = ndcg[drawn].mean(axis=0).argmax()
        chosen[winner] += 1
        for query in {*range(7)} - {*drawn.tolist()}:
            left_out[query].append(ndcg[query, winner])
    value = np.mean([np.mean(each) for each in left_out])
    variance = np.mean([np.mean(np.square(each)) for each in left_out]) - value**2
    reach = t_quantile(0.9, 6) * math.sqrt(variance / 6)
    found = honest_value(ndcg, 0.9, 40, np.random.default_rng(0))
    assert found.value == pytest.approx(value)
    assert (found.interval.low, found.interval.high) == pytest.approx((value - reach, value + reach))
    assert found.chosen == pytest.approx(chosen / 40)
    assert found.best_value == pytest.approx(ndcg.mean(axis=0).max())


def test_the_best_was_chosen_by_the_same_queries_and_has_an_honest_value():
    result = paired_search(fitted(), seed=0)
    assert "Note: the best candidate was chosen by the same queries" in str(result)
    assert result.to_dict()["baseline"] == result.names[0]
    honest = result.honest(seed=0)
    assert pickle.loads(pickle.dumps(result)).honest(seed=0) == honest
    assert honest.best_value == pytest.approx(result.values[0])
    assert honest.optimism == pytest.approx(honest.best_value - honest.value)
    assert honest.value < honest.best_value
    assert honest.interval.low < honest.value < honest.interval.high
    assert honest.n_resamples == 999
    assert sum(honest.chosen) == pytest.approx(1)
    assert result.honest(seed=0, confidence=0.5).interval.high < honest.interval.high
    equal = paired_search(fitted(grid={"max_depth": [1, *[4] * 20]}))  # the first of the best, as in best_index_
    assert equal.rows == (*range(1, 21), 0)
    assert "; candidate 1 is chosen in " in str(equal.honest())
