"""After a search: compare the best candidate with each other one, query by query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._checks import whole_number
from ndcg_ml._data.queries import by_ids
from ndcg_ml._show.table import Table
from ndcg_ml._stats.honest import HonestValue, honest_value
from ndcg_ml._stats.means import SAME, Interval, Means, Seed, as_confidence, generator, minus, spread_of
from ndcg_ml._stats.randomisation import exchange_tests
from ndcg_ml.sklearn.query_store import KeptQueries
from ndcg_ml.sklearn.scorer import NDCGScorer

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Candidate", "PairedSearch", "paired_search"]

_FEWEST = 20


class Candidate(NamedTuple):
    """A candidate of a search, beside the best one.

    Attributes
    ----------
    row : int
        Its row in ``cv_results_``.
    params : dict
    value : float
        Mean NDCG over the queries.
    difference : float
        Its mean minus that of the best candidate: 0 or below.
    standard_error : float
        Standard error of the difference, over the queries.
    interval : Interval
        Interval of the difference (Student's t).
    p_value : float
        p-value of the two-sided test that exchanges the two candidates query by query; not corrected for the number
        of candidates.
    p_adjusted : float
        The p-value, corrected by Holm for the number of other candidates.
    within_noise : bool
        Whether it is at most one standard error below the best.
    """

    row: int
    params: dict[str, Any]
    value: float
    difference: float
    standard_error: float
    interval: Interval
    p_value: float
    p_adjusted: float
    within_noise: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedSearch:
    """The candidates of a search, compared by query. Made by ``paired_search``.

    Attributes
    ----------
    candidates : tuple of Candidate
        The best first. Its own difference is 0.
    n_queries : int
    failed : tuple of int
        Rows of ``cv_results_`` that are left out, because a fit failed.
    """

    candidates: tuple[Candidate, ...]
    n_queries: int
    failed: tuple[int, ...]
    _table: _Table = field(repr=False)

    def honest(
        self,
        *,
        confidence: float = 0.95,
        n_resamples: int = 999,
        seed: Seed = None,
    ) -> HonestValue:
        """Estimate the value of the search on other queries: its best value is too high, because it won on these.

        Queries are drawn with replacement; a candidate is chosen on those that were drawn and scored on the others,
        from the table that the search has left. Nothing is trained again.

        Parameters
        ----------
        confidence : float, default 0.95
            Confidence of the interval.
        n_resamples : int, default 999
            How often queries are drawn.
        seed : int, Generator or None, default None
            Decides what is drawn; None draws anew each time.

        Returns
        -------
        HonestValue
            ``.value``, ``.interval``, ``.optimism`` (the value of the chosen candidate on the queries that chose it,
            minus ``.value``), and ``.chosen``, how often each row of ``cv_results_`` is chosen.

        Raises
        ------
        TypeError, ValueError
            A halving search, whose candidates were scored after different amounts of training; fewer than 20 queries.

        Notes
        -----
        Bootstrap-bias-corrected cross-validation: I. Tsamardinos, E. Greasidou and G. Borboudakis, Machine Learning
        107, 2018. It corrects for the choice among these candidates, and not for searches that were tried before on the
        same queries.
        """
        # Resampling needs candidates that were scored alike, and enough queries outside of each resample.
        if self._table.is_halving:
            raise ValueError(
                "honest needs a search that scores all its candidates on the same training; a halving search drops "
                "most of them early. Use GridSearchCV or RandomizedSearchCV."
            )
        if self.n_queries < _FEWEST:
            raise ValueError(
                f"honest needs at least {_FEWEST} queries, because a resample leaves out a third of them; got "
                f"{self.n_queries}. Search on more queries, or score the winner on a test set of its own."
            )
        honest = honest_value(
            self._table.ndcg,
            as_confidence(confidence),
            whole_number(n_resamples, "n_resamples"),
            generator(seed),
        )
        chosen = np.zeros(self._table.n_candidates)
        chosen[self._table.rows] = honest.chosen
        return replace(honest, chosen=tuple(chosen.tolist()))

    @property
    def best(self) -> Candidate:
        """The candidate with the highest mean over the queries."""
        return self.candidates[0]

    def to_frame(self) -> pd.DataFrame:
        """One row per candidate, as a pandas DataFrame; the interval as ``low`` and ``high``."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("PairedSearch.to_frame needs pandas. Install it with: pip install pandas") from error
        rows = [candidate._asdict() for candidate in self.candidates]
        intervals = [candidate.interval for candidate in self.candidates]
        ends = [{"low": interval.low, "high": interval.high} for interval in intervals]
        frame = pd.DataFrame([{**row, **both} for row, both in zip(rows, ends, strict=True)])
        return frame[[*Candidate._fields[:5], "low", "high", *Candidate._fields[6:]]]

    def __str__(self) -> str:
        near = sum(candidate.within_noise for candidate in self.candidates)
        failed = f"; {len(self.failed)} failed and are left out" if self.failed else ""
        rows = [
            (
                f"{candidate.value:.4f}",
                f"{candidate.difference:+.4f} +- {candidate.standard_error:.4f}",
                f"{candidate.p_value:.4f}",
                f"{candidate.p_adjusted:.4f}",
                "=" if candidate.within_noise else "",
                str(candidate.params),
            )
            for candidate in self.candidates
        ]
        head = f"{len(self.candidates)} candidates on {self.n_queries} queries, {near} within noise of the best (=)"
        table = Table(("NDCG", "difference", "p", "p (Holm)", "", ""), rows, "llllll")
        return f"{head}{failed}\n{table.text()}"


def paired_search(
    search: Any,
    *,
    metric: str | None = None,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    seed: Seed = None,
) -> PairedSearch:
    """The best candidate of a fitted search against each other one, paired by query over the same folds.

    Queries differ from one another far more than candidates do. A standard error over folds, or of each candidate by
    itself, is of the queries; that of the paired difference is what tells two candidates apart.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or a halving search
        Fitted in this process, with ``scoring=ndcg_scorer(..., keep_queries=True)`` (or a dict with such a scorer). Of
        a halving search the candidates of the last iteration are compared.
    metric : str, optional
        Which score, if there are several: ``"ndcg_at_10"``, or a key of the dict. Default: that of ``search.refit``.
    confidence : float, default 0.95
        Confidence of the intervals.
    n_resamples : int, default 9999
        Draws of the randomisation tests, at least; more where Holm's correction could not reach 1 - confidence.
    seed : int, Generator or None, default None
        Seed of the randomisation tests.

    Returns
    -------
    PairedSearch

    Raises
    ------
    TypeError, ValueError
        The search is not fitted, its scorer does not keep queries, or has kept those of another search, or lost them
        when the search was pickled; `metric` is missing or unknown; candidates were scored on different queries; fewer
        than two queries or candidates are left.

    Notes
    -----
    The unit is the query: one that is tested in several splits counts once, with its mean. Empty queries that the
    flavor skips are left out. The mean over queries is not quite ``mean_test_score``, which is the mean of the folds'
    means, so the best candidate may be another one.

    The best of many candidates is also the luckiest. ``p_adjusted`` allows for the number of comparisons, not for
    having chosen the best of them by the same queries.

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
    >>> result.n_queries, len(result.candidates), result.best.difference
    (60, 3, 0.0)
    >>> honest = result.honest(seed=0)
    >>> honest.value < honest.best_value, round(honest.best_value - result.best.value, 9)
    (True, 0.0)
    """
    # Every argument is checked before the tables of queries are built.
    results = getattr(search, "cv_results_", None)
    if not isinstance(results, Mapping):
        raise TypeError(
            f"search must be a fitted search, such as GridSearchCV(...).fit(...); got {type(search).__name__} without "
            "cv_results_."
        )
    confidence = as_confidence(confidence)
    n_resamples = whole_number(n_resamples, "n_resamples")
    rng = generator(seed)
    # The search's own choice of a score decides, unless the caller names another.
    refit = getattr(search, "refit", None)
    table = _table(search.scorer_, results, refit if metric is None and isinstance(refit, str) else metric)
    means = Means.of(table.ndcg, None)
    spreads = spread_of(means)
    order = np.argsort(-means.mean(), kind="stable").tolist()
    best = order[0]
    # No p-value is below 1/(draws + 1): with many candidates, Holm's first step needs more draws than were asked for.
    n_resamples = max(n_resamples, math.ceil(2 * (len(order) - 1) / (1 - confidence)))
    p_values = [
        1.0,
        *(test.p_value for test in exchange_tests(means, [(best, i) for i in order[1:]], n_resamples, rng)),
    ]
    # The best candidate is compared with itself as well, so that all rows have the same columns.
    candidates = []
    for i, p_value, p_adjusted in zip(order, p_values, [1.0, *_holm(p_values[1:])], strict=True):
        gap = minus(spreads[i], spreads[best])
        row = table.rows[i]
        candidates.append(
            Candidate(
                row=row,
                params=results["params"][row],
                value=spreads[i].value,
                difference=gap.value,
                standard_error=gap.standard_error,
                interval=gap.interval(confidence, "t"),
                p_value=p_value,
                p_adjusted=p_adjusted,
                within_noise=-gap.value <= gap.standard_error + SAME,
            )
        )
    return PairedSearch(
        candidates=tuple(candidates),
        n_queries=means.n_queries,
        failed=table.failed,
        _table=table,
    )


class _Table(NamedTuple):
    """NDCG by query and candidate.

    Attributes
    ----------
    ndcg : ndarray of float, shape (n_queries, n_candidates)
    rows : list of int
        Where the candidates are in ``cv_results_``.
    failed : tuple of int
        The rows of candidates that have no score in a split.
    is_halving : bool
        Whether these are the candidates of the last iteration of a halving search.
    n_candidates : int
        Number of candidates of the search, those without a column included.
    """

    ndcg: NDArray[np.float64]
    rows: list[int]
    failed: tuple[int, ...]
    is_halving: bool
    n_candidates: int


def _score(scorer: Any, metric: str | None) -> tuple[KeptQueries, str, int]:
    """Find a score of a search: what its scorer has kept, its name in ``cv_results_``, and its cut-off's column."""
    several = tuple(scorer) if isinstance(scorer, Mapping) else getattr(scorer, "names", None)
    names = several or ("score",)
    name = "score" if several is None and metric is None else metric
    if name is None or name not in names:
        raise ValueError(f"metric must be one of the search's scores, {', '.join(map(repr, names))}; got {metric!r}.")
    column = 0 if isinstance(scorer, Mapping) else names.index(name)
    scorer = scorer[name] if isinstance(scorer, Mapping) else scorer
    if not isinstance(scorer, NDCGScorer):
        raise TypeError(
            "search must have been scored by ndcg_scorer(..., keep_queries=True); its scorer is of type "
            f"{type(scorer).__name__}."
        )
    if scorer.kept is None:
        raise ValueError("the scorer must keep the queries of the search. Write ndcg_scorer(..., keep_queries=True).")
    return scorer.kept, name, column


def _table(scorer: Any, results: Mapping[str, Any], metric: str | None) -> _Table:
    """The table of one score of a search."""
    stored, name, column = _score(scorer, metric)
    # A halving search scores its candidates anew in each iteration, with more training: only the last one compares.
    first, n_rows = 0, len(results["params"])
    if "iter" in results:  # the scorer begins to count candidates again in each iteration
        first = int(np.flatnonzero(results["iter"] == results["iter"].max())[0])
    n_splits = sum(key.startswith("split") and key.endswith(f"_test_{name}") for key in results)
    ids: NDArray[Any] | None = None
    columns, rows, failed = [], [], []
    others: dict[float, tuple[int, int]] = {}
    """Scores of the search that the scorer has not given for that candidate and split, though it gave another."""
    # The queries of a fit are looked up by its score as well, so that those of another search are not taken for it.
    for row in range(first, n_rows):
        scores = [float(results[f"split{split}_test_{name}"][row]) for split in range(n_splits)]
        by_split = [stored.get(row - first, split, column, score) for split, score in enumerate(scores)]
        fits = [fit for fit in by_split if fit is not None]
        if len(fits) < n_splits:
            failed.append(row)
            for split, score in enumerate(scores):
                if by_split[split] is None and stored.knows(row - first, split) and not np.isnan(score):
                    others.setdefault(score, (row, split))
            continue
        # A pairing by position is right only where every candidate has the same queries in the same order.
        those, values = _by_query(np.concatenate([fit.ids for fit in fits]), [fit.ndcg[:, column] for fit in fits])
        if ids is not None and not np.array_equal(ids, those):
            raise ValueError(
                f"candidates must be scored on the same queries; candidate {row} was not. Use a cv that splits "
                "alike for all candidates (an integer random_state)."
            )
        ids = those
        columns.append(values)
        rows.append(row)
    # The score of a fit that failed is the search's error_score, which is one number. Several numbers that the
    # scorer has not given, or no candidate whose scores it has, mean that it holds the queries of another search.
    if len(others) > 1 or (others and not rows):
        row, split = next(iter(others.values()))
        raise ValueError(
            f"the scorer holds the queries of another search: its score of candidate {row} in split {split} is not "
            "the search's. Give each search a scorer of its own, and compare before fitting again."
        )
    if not rows:
        raise ValueError(
            "no queries of this search are kept in this process. They are not saved with a search: call "
            "paired_search where the search was fitted, and on a search of scikit-learn's own."
        )
    # Only queries with a value for every candidate can be paired.
    table = np.stack(columns, axis=1)
    missing = np.isnan(table)
    if (missing.any(axis=1) != missing.all(axis=1)).any():
        raise ValueError(
            "a query must be empty for every candidate or for none; the flavor's ideal depends on the ranking and "
            "empty='skip' leaves out other queries for each. Choose empty=0 or 1."
        )
    table = table[~missing.any(axis=1)]
    if len(table) < 2:
        raise ValueError(f"a comparison needs at least two queries that are not empty; got {len(table)}.")
    return _Table(table, rows, tuple(failed), "iter" in results, n_rows)


def _by_query(ids: NDArray[Any], values: list[NDArray[np.float64]]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Each query once, with its mean over the splits that tested it."""
    layout = by_ids(ids, ids.size)
    assert layout.ids is not None
    every = np.concatenate(values)
    every = layout.listed(every)
    return layout.ids, np.add.reduceat(every, layout.starts) / layout.sizes


def _holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for their number, by Holm's step-down procedure; at most 1."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected
