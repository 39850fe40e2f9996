"""Compare the best candidate of a search with each other candidate, paired by query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.checks import whole_number
from ndcg_ml._core.queries import group_by_ids
from ndcg_ml._core.table import Column, Record
from ndcg_ml._decide.honest import HonestValue, honest_value
from ndcg_ml._decide.intervals import FEWEST_TO_SPLIT
from ndcg_ml._decide.means import Interval, Means, Seed, as_confidence, generator, minus, spread_of
from ndcg_ml._decide.randomisation import exchange_tests
from ndcg_ml.sklearn.scorer import KeptQueries, NDCGScorer

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Candidate", "PairedSearch", "paired_search"]

_DRAWS = 9999


class Candidate(NamedTuple):
    """A candidate of a search, compared with the best one.

    Attributes
    ----------
    row : int
        Its row in ``cv_results_``.
    params : dict
    value : float
        Mean NDCG over the queries.
    difference : float
        Its mean minus that of the best candidate: at most 0.
    standard_error : float
        Standard error of the difference, over the queries.
    interval : Interval
        Interval of the difference (Student's t).
    p_value : float
        p-value of the two-sided paired randomisation test, not corrected for the number of candidates.
    p_adjusted : float
        The p-value with Holm's correction for the number of other candidates.
    """

    row: int
    params: dict[str, Any]
    value: float
    difference: float
    standard_error: float
    interval: Interval
    p_value: float
    p_adjusted: float


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedSearch:
    """The candidates of a search, compared by query. Made by ``paired_search``.

    Attributes
    ----------
    candidates : tuple of Candidate
        The best first. Its own difference is 0.
    n_queries : int
    failed : tuple of int
        Rows of ``cv_results_`` that are excluded because a fit failed.
    """

    candidates: tuple[Candidate, ...]
    n_queries: int
    failed: tuple[int, ...]
    _ndcg: NDArray[np.float64] = field(repr=False)
    _n_rows: int = field(repr=False)
    _is_halving: bool = field(repr=False)

    def honest(
        self,
        *,
        confidence: float = 0.95,
        n_resamples: int = 999,
        seed: Seed = 0,
    ) -> HonestValue:
        """Estimate the value of the search on new queries. Its best value is too high, because these selected it.

        Queries are drawn with replacement. A candidate is selected on the drawn queries and scored on the others, by
        the values that the search has kept. Models are not trained again.

        Parameters
        ----------
        confidence : float, default 0.95
            Confidence of the interval.
        n_resamples : int, default 999
            Number of resamples.
        seed : int, Generator or None, default 0
            Random seed. None gives different draws each time.

        Returns
        -------
        HonestValue
            ``.value``, ``.interval``, ``.optimism`` (the value of the selected candidate on the queries that selected
            it, minus ``.value``), and ``.chosen``, the share of resamples that select each row of ``cv_results_``.

        Raises
        ------
        TypeError, ValueError
            A halving search, whose candidates were scored after different amounts of training; fewer than 20 queries.

        Notes
        -----
        Bootstrap-bias-corrected cross-validation: I. Tsamardinos, E. Greasidou and G. Borboudakis, Machine Learning
        107, 2018. It corrects for the selection among these candidates, not for earlier searches on the same queries.
        """
        # Resampling needs candidates scored on the same data, and enough queries outside each resample.
        if self._is_halving:
            raise ValueError(
                "honest needs a search that trains all candidates equally; a halving search drops most of them early. "
                "Use GridSearchCV or RandomizedSearchCV."
            )
        if self.n_queries < FEWEST_TO_SPLIT:
            raise ValueError(
                f"honest needs at least {FEWEST_TO_SPLIT} queries, because a resample leaves out a third of them; got "
                f"{self.n_queries}. Search on more queries, or score the best candidate on a separate test set."
            )
        n_resamples = whole_number(n_resamples, "n_resamples")
        honest = honest_value(self._ndcg, as_confidence(confidence), n_resamples, generator(seed))
        # The columns are in the order of ``cv_results_``, without failed rows.
        chosen = np.zeros(self._n_rows)
        chosen[sorted(each.row for each in self.candidates)] = honest.chosen
        return replace(honest, chosen=tuple(chosen.tolist()))

    def _record(self) -> Record:
        columns = (
            Column("NDCG", "{value:.4f}", "l"),
            Column("difference", "{difference:+.4f} +- {standard_error:.4f}", "l"),
            Column("p", "{p_value:.4f}", "l"),
            Column("p (Holm)", "{p_adjusted:.4f}", "l"),
            Column("", "{params}", "l"),
        )
        names = ("row", "params", "value", "difference", "standard_error", "low", "high", "p_value", "p_adjusted")
        values = ({**each._asdict(), "low": each.interval.low, "high": each.interval.high} for each in self.candidates)
        return Record(columns, [{name: each[name] for name in names} for each in values])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per candidate as a pandas DataFrame, with the interval as ``low`` and ``high``."""
        return self._record().frame("PairedSearch")

    def __str__(self) -> str:
        failed = f"; {len(self.failed)} failed and are left out" if self.failed else ""
        head = f"{len(self.candidates)} candidates on {self.n_queries} queries{failed}"
        return f"{head}\n{self._record().text()}"


def paired_search(
    search: Any,
    *,
    metric: str | None = None,
    confidence: float = 0.95,
    seed: Seed = 0,
) -> PairedSearch:
    """Compare the best candidate of a fitted search with each other one, paired by query over the same folds.

    Queries vary much more than candidates, so a standard error over folds, or of one candidate, mostly measures the
    variation between queries. Compare candidates by the standard error of the paired difference.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or a halving search
        Fitted in this process, with ``scoring=ndcg_scorer(..., keep_queries=True)`` (or a dict with such a scorer). For
        a halving search, the candidates of the last iteration are compared.
    metric : str, optional
        Name of the score if there are several: ``"ndcg_at_10"``, or a key of the dict. Default: that of
        ``search.refit``.
    confidence : float, default 0.95
        Confidence of the intervals.
    seed : int, Generator or None, default 0
        Random seed; None draws differently in each call. The tests draw 9999 times, or more if Holm's correction could
        otherwise not reach 1 - confidence.

    Returns
    -------
    PairedSearch

    Raises
    ------
    TypeError, ValueError
        The search is not fitted; its scorer does not keep queries, has kept those of another search, or lost them when
        the search was pickled; `metric` is missing or unknown; candidates were scored on different queries; fewer than
        two queries or candidates remain.

    Notes
    -----
    A query that is tested in several splits counts once, with its mean. Empty queries that the flavor skips are
    excluded. The mean over queries differs slightly from ``mean_test_score``, the mean of the folds' means, so the best
    candidate may be another one.

    ``p_adjusted`` corrects for the number of comparisons, not for choosing the best candidate by the same queries.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from ndcg_ml.sklearn import ndcg_scorer, paired_search
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(600, 4)), np.repeat(np.arange(60), 10)
    >>> y = np.clip(np.round(X[:, 0] + rng.normal(size=600)), 0, 3)
    >>> scorer = ndcg_scorer("lightgbm@10", keep_queries=True)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(Ridge(), {"alpha": [1, 1e2, 1e3]}, scoring=scorer, cv=GroupKFold(3))
    ...     search = search.fit(X, y, groups=qid)
    >>> result = paired_search(search, seed=0)
    >>> result.n_queries, len(result.candidates), result.candidates[0].difference
    (60, 3, 0.0)
    >>> honest = result.honest(seed=0)
    >>> honest.value < honest.best_value, round(honest.best_value - result.candidates[0].value, 9)
    (True, 0.0)
    """
    results = getattr(search, "cv_results_", None)
    if not isinstance(results, Mapping):
        raise TypeError(
            f"search must be a fitted search, such as GridSearchCV(...).fit(...); got {type(search).__name__} without "
            "cv_results_."
        )
    confidence = as_confidence(confidence)
    rng = generator(seed)
    rows, failed, ndcg = _values_of_queries(search, metric)
    means = Means.from_weights(ndcg, None)
    spreads = spread_of(means)
    order = np.argsort(-means.mean(), kind="stable").tolist()
    best = order[0]
    # No p-value is below 1/(draws + 1), and with many candidates Holm's first step needs smaller ones.
    n_draws = max(_DRAWS, math.ceil(2 * (len(order) - 1) / (1 - confidence)))
    tests = exchange_tests(means, [(best, i) for i in order[1:]], n_draws, rng)
    p_values = [test.p_value for test in tests]
    # The best candidate is also compared with itself, so that all rows have the same columns.
    candidates = []
    for i, p_value, p_adjusted in zip(order, [1.0, *p_values], [1.0, *_holm(p_values)], strict=True):
        gap = minus(spreads[i], spreads[best])
        candidates.append(
            Candidate(
                row=rows[i],
                params=results["params"][rows[i]],
                value=spreads[i].value,
                difference=gap.value,
                standard_error=gap.standard_error,
                interval=gap.interval(confidence, "t"),
                p_value=p_value,
                p_adjusted=p_adjusted,
            )
        )
    return PairedSearch(
        candidates=tuple(candidates),
        n_queries=means.n_queries,
        failed=tuple(failed),
        _ndcg=ndcg,
        _n_rows=len(results["params"]),
        _is_halving="iter" in results,
    )


def _score(search: Any, metric: str | None) -> tuple[KeptQueries, str, int]:
    """Return the queries kept for a score, its name in ``cv_results_``, and the column of its cut-off."""
    scorer, refit = search.scorer_, getattr(search, "refit", None)
    by_name = isinstance(scorer, Mapping)
    names = tuple(scorer) if by_name else getattr(scorer, "names", None) or ("score",)
    if metric is None:
        metric = refit if isinstance(refit, str) else "score"
    if metric not in names:
        raise ValueError(f"metric must be one of the search's scores, {', '.join(map(repr, names))}; got {metric!r}.")
    column = 0 if by_name else names.index(metric)
    scorer = scorer[metric] if by_name else scorer
    if not isinstance(scorer, NDCGScorer) or scorer.kept is None:
        raise TypeError(f"search must have been scored by ndcg_scorer(..., keep_queries=True); got {scorer!r}.")
    return scorer.kept, metric, column


def _values_of_queries(search: Any, metric: str | None) -> tuple[list[int], list[int], NDArray[np.float64]]:
    """Return the scored and the failed rows of ``cv_results_``, and one column of NDCG by query per scored row."""
    kept, name, column = _score(search, metric)
    results = search.cv_results_
    # A halving search numbers and scores its candidates again in each iteration, with more training. Take the last.
    first, n_rows = 0, len(results["params"])
    if "iter" in results:
        first = int(np.flatnonzero(results["iter"] == results["iter"].max())[0])
    n_splits = sum(key.startswith("split") and key.endswith(f"_test_{name}") for key in results)
    error_score = getattr(search, "error_score", None)
    ids: NDArray[Any] | None = None
    columns, rows, failed = [], [], []
    for row in range(first, n_rows):
        scores = [float(results[f"split{split}_test_{name}"][row]) for split in range(n_splits)]
        # The score must match too, so that queries of another search are not used.
        by_split = [kept.get(row - first, split, column, score) for split, score in enumerate(scores)]
        fits = [fit for fit in by_split if fit is not None]
        if len(fits) < n_splits:
            failed.append(row)
            for split, score in enumerate(scores):
                if by_split[split] is None and len(kept) and score != error_score and not np.isnan(score):
                    raise ValueError(
                        f"the scorer holds the queries of another search: its score of candidate {row} in split "
                        f"{split} is not the search's. Give each search a separate scorer, and call paired_search "
                        "before you fit again."
                    )
            continue
        # Candidates are paired by position, so all need the same queries in the same order.
        those, values = _mean_per_query(
            np.concatenate([fit.ids for fit in fits]), [fit.ndcg[:, column] for fit in fits]
        )
        if ids is not None and not np.array_equal(ids, those):
            raise ValueError(
                f"candidates must be scored on the same queries; candidate {row} was not. Use a cv that splits "
                "identically for all candidates (an integer random_state)."
            )
        ids = those
        columns.append(values)
        rows.append(row)
    if not rows:
        raise ValueError(
            "no queries of this search are kept in this process, because they are not saved with a search. Call "
            "paired_search in the process that fitted it, on a search of scikit-learn."
        )
    table = np.stack(columns, axis=1)
    missing = np.isnan(table)
    if (missing.any(axis=1) != missing.all(axis=1)).any():
        raise ValueError(
            "a query must be empty for every candidate or for none; with this ideal it depends on the ranking. Use a "
            "flavor with empty=0 or empty=1."
        )
    table = table[~missing.any(axis=1)]
    if len(table) < 2:
        raise ValueError(f"a comparison needs at least two queries that are not empty; got {len(table)}.")
    return rows, failed, table


def _mean_per_query(ids: NDArray[Any], values: list[NDArray[np.float64]]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return each query once, with its mean over the splits that tested it."""
    layout = group_by_ids(ids, ids.size)
    assert layout.ids is not None
    every = layout.arrange(np.concatenate(values))
    return layout.ids, np.add.reduceat(every, layout.starts) / layout.sizes


def _holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected by Holm's step-down procedure."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected
