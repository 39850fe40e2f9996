"""Compare the best candidate of a search with each other one, and correct its value for having been chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.layout import FloatArray
from ndcg_ml._core.query_groups import group_by_ids
from ndcg_ml._plain.checks import as_confidence, whole_number
from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.messages import brief
from ndcg_ml._statistics.intervals import FEWEST_TO_SPLIT, HonestValue, honest_value
from ndcg_ml._statistics.means import Seed, generator
from ndcg_ml.comparisons import compare_values
from ndcg_ml.results.comparison import Comparison
from ndcg_ml.sklearn.scorer import NDCGScorer

_CHOSEN = (
    "the best candidate was chosen by the same queries: its value is too high, which honest() corrects, and p and "
    "intervals are corrected for the number of pairs only"
)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PairedSearch(Comparison):
    """The candidates of a search, each compared with the best one: a ``Comparison`` whose baseline is the best.

    It has the attributes and methods of ``Comparison``, and those below. ``paired_search`` returns it.

    Attributes
    ----------
    rows : tuple of int
        Row of ``cv_results_`` of each candidate, in the order of ``names``: the best first.
    failed : tuple of int
        Rows of ``cv_results_`` that are excluded because a fit failed.
    """

    rows: tuple[int, ...]
    failed: tuple[int, ...]
    _is_halving: bool = field(repr=False)

    def honest(self, *, confidence: float = 0.95, n_resamples: int = 999, seed: Seed = 0) -> HonestValue:
        """Estimate the value of the search on new queries. Its best value is too high, because these selected it.

        Each resample selects a candidate on the drawn queries and scores it on the rest, using the stored values; no
        model is retrained.

        Parameters
        ----------
        confidence : float, default 0.95
            Confidence of the interval.
        n_resamples : int, default 999
            Number of resamples. Each draws as many queries as there are, with replacement.
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
            A halving search, whose candidates were scored after different amounts of training; fewer than 20 queries;
            or an argument is not valid.

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
        in_order = np.argsort(self.rows)
        honest = honest_value(self.ndcg[:, in_order], as_confidence(confidence), n_resamples, generator(seed))
        chosen = np.zeros(len(self.rows) + len(self.failed))
        chosen[np.sort(self.rows)] = honest.chosen
        return replace(honest, chosen=tuple(chosen.tolist()))


def paired_search(search: Any, *, metric: str | None = None, confidence: float = 0.95, seed: Seed = 0) -> PairedSearch:
    """Compare the best candidate of a fitted search with each other one, paired by query over the same folds.

    Queries vary much more than candidates, so a standard error over folds, or of one candidate, mostly measures the
    variation between queries. The differences of candidates are therefore taken query by query, as in ``compare``.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or a halving search
        Fitted in this process, with ``scoring=ndcg_scorer(..., keep_queries=True)`` (or a dict with such a scorer). For
        a halving search, the candidates of the last iteration are compared.
    metric : str, optional
        Name of the score if there are several: ``"ndcg_at_10"``, or a key of the dict. Default: that of
        ``search.refit``.
    confidence : float, default 0.95
        Simultaneous confidence of the intervals of all candidates.
    seed : int, Generator or None, default 0
        Random seed; None draws differently in each call.

    Returns
    -------
    PairedSearch
        A ``Comparison`` of the candidates with the best one, which is its baseline, with ``.honest()``. A candidate is
        named by its row of ``cv_results_`` and its parameters.

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

    The p-values and intervals are corrected for the number of comparisons, not for choosing the best candidate by the
    same queries: a note says so, and ``honest`` estimates what the choice is worth.

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
    >>> result.n_queries, len(result.names), result.baseline == result.names[0]
    (60, 3, True)
    >>> honest = result.honest(seed=0)
    >>> honest.value < honest.best_value, round(honest.best_value - result.values[0], 9)
    (True, 0.0)
    """
    results = getattr(search, "cv_results_", None)
    if not isinstance(results, Mapping):
        raise TypeError(
            f"search must be a fitted search, such as GridSearchCV(...).fit(...); got {type(search).__name__} without "
            "cv_results_."
        )
    scorer, metric, column = _scorer(search, metric)
    rows, failed, ids, table = _values_of_queries(search, scorer, metric, column)
    if len(rows) < 2:
        raise ValueError(
            f"paired_search needs at least two candidates that were scored; got {len(rows)}, and {len(failed)} whose "
            "fit failed. Search over more candidates, or score this one on a separate test set."
        )
    best_first = np.argsort(-np.nanmean(table, axis=0), kind="stable").tolist()
    names = [f"{rows[at]}: {brief(results['params'][rows[at]])}" for at in best_first]
    k = scorer.ks[column]
    compared = compare_values(
        dict(zip(names, table.T[best_first], strict=True)),
        qid=ids,
        measure=f"NDCG{at_cutoff(k)}",
        baseline=names[0],
        confidence=confidence,
        seed=seed,
        missing="drop",
    )
    left_out = f"{len(failed)} of {len(rows) + len(failed)} candidates failed and are left out: rows {brief(failed)}"
    notes = (_CHOSEN, left_out) if failed else (_CHOSEN,)
    settings = {each.name: getattr(compared, each.name) for each in fields(compared)}
    settings |= {"flavor": scorer.flavor.replace(k=k), "further_notes": notes}
    return PairedSearch(
        **settings, rows=tuple(rows[at] for at in best_first), failed=tuple(failed), _is_halving="iter" in results
    )


def _scorer(search: Any, metric: str | None) -> tuple[NDCGScorer, str, int]:
    """Return the scorer of a metric, its name in ``cv_results_``, and the column of its cut-off."""
    scorer, refit = search.scorer_, getattr(search, "refit", None)
    by_name = isinstance(scorer, Mapping)
    names = tuple(scorer) if by_name else getattr(scorer, "names", None) or ("score",)
    if metric is None:
        metric = refit if isinstance(refit, str) else "score"
    if metric not in names:
        raise ValueError(f"metric must be one of the search's scores, {', '.join(map(repr, names))}; got {metric!r}.")
    scorer, column = (scorer[metric], 0) if by_name else (scorer, names.index(metric))
    if not isinstance(scorer, NDCGScorer) or scorer.kept is None:
        raise TypeError(f"search must have been scored by ndcg_scorer(..., keep_queries=True); got {scorer!r}.")
    return scorer, metric, column


def _values_of_queries(
    search: Any, scorer: NDCGScorer, metric: str, column: int
) -> tuple[list[int], list[int], NDArray[Any], FloatArray]:
    """Return the scored and the failed rows of ``cv_results_``, the queries, and one column of NDCG per scored row."""
    kept, results, error_score = scorer.kept, search.cv_results_, getattr(search, "error_score", None)
    assert kept is not None
    # A halving search numbers and scores its candidates again in each iteration, with more training. Take the last.
    first = int(np.argmax(results["iter"])) if "iter" in results else 0
    n_splits = sum(key.startswith("split") and key.endswith(f"_test_{metric}") for key in results)
    ids: NDArray[Any] | None = None
    columns, rows, failed = [], [], []
    for row in range(first, len(results["params"])):
        fits = []
        for split in range(n_splits):
            score = float(results[f"split{split}_test_{metric}"][row])
            # The score must match too, so that queries of another search are not used.
            fit = kept.get(row - first, split, column, score)
            if fit is not None:
                fits.append(fit)
            elif len(kept) and score != error_score and not np.isnan(score):
                raise ValueError(
                    f"the scorer holds the queries of another search: its score of candidate {row} in split {split} is "
                    "not the search's. Give each search a separate scorer, and call paired_search before you fit again."
                )
        if len(fits) < n_splits:
            failed.append(row)
            continue
        # Candidates are paired by position, so all need the same queries in the same order.
        every = np.concatenate([fit.ids for fit in fits])
        layout = group_by_ids(every, every.size)
        assert layout.ids is not None
        if ids is not None and not np.array_equal(ids, layout.ids):
            raise ValueError(
                f"candidates must be scored on the same queries; candidate {row} was not. Use a cv that splits "
                "identically for all candidates (an integer random_state)."
            )
        ids = layout.ids
        values = np.concatenate([fit.ndcg[:, column] for fit in fits])
        columns.append(layout.per_query(np.add, values, 0.0) / layout.sizes)  # a query of several splits counts once
        rows.append(row)
    if ids is None:
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
    return rows, failed, ids, table
