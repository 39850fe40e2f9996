"""Folds of whole queries for ``lgb.cv``, and the check that a data set has no cut queries."""

from __future__ import annotations

import heapq
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._checks import whole_number
from ndcg_ml._data.arrays import IntArray
from ndcg_ml._data.queries import by_sizes, plain_array

__all__ = ["query_folds", "rows_of"]


def query_folds(
    group: ArrayLike,
    n_splits: int = 5,
    *,
    shuffle: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> list[tuple[IntArray, IntArray]]:
    """Folds of whole queries, for ``lgb.cv(folds=)`` under any objective.

    ``lgb.cv`` itself keeps queries whole only under its ranking objectives; under any other, its folds cut queries.

    Parameters
    ----------
    group : array-like of int
        Sizes of the queries, as given to ``lgb.Dataset``.
    n_splits : int, default 5
        Number of folds, at least 2.
    shuffle : bool, default False
        False: queries are assigned largest first, each to the fold with the fewest rows so far, so that folds have
        nearly equal sizes (like scikit-learn's ``GroupKFold``). True: they are assigned in random order, and the sizes
        of the folds differ by at most the rows of the largest query.
    random_state : int, numpy Generator or None, default None
        Used with ``shuffle=True``: an int gives the same folds every time, None different ones.

    Returns
    -------
    list of (train_rows, test_rows)
        One pair of ascending row numbers per fold.

    Raises
    ------
    TypeError, ValueError
        `group` does not hold sizes, `n_splits` is not an integer >= 2 or is more than the number of queries that have
        rows, or `random_state` is given without `shuffle`.

    Examples
    --------
    >>> [test.tolist() for _, test in query_folds([1, 3, 2, 2], n_splits=2)]
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    n_splits = whole_number(n_splits, "n_splits", 2)
    given = plain_array(group, "group")
    sizes = by_sizes(group, given.sum() if given.dtype.kind in "iu" else 0).sizes
    if random_state is not None and not shuffle:
        raise ValueError(
            f"random_state must be None without shuffle=True; got {random_state!r} with shuffle={shuffle!r}."
        )
    filled = int((sizes > 0).sum())
    if n_splits > filled:
        raise ValueError(f"n_splits must be at most the number of queries with rows, {filled}; got {n_splits}.")
    if shuffle:
        order = np.random.default_rng(random_state).permutation(sizes.size)
    else:
        order = np.argsort(-sizes, kind="stable")
    fold_of_query = np.empty(sizes.size, dtype=np.int64)
    lightest = [(0, fold) for fold in range(n_splits)]
    for query in order.tolist():
        rows, fold = lightest[0]
        fold_of_query[query] = fold
        heapq.heapreplace(lightest, (rows + int(sizes[query]), fold))
    fold_of_row = np.repeat(fold_of_query, sizes)
    return [(np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)) for fold in range(n_splits)]


def rows_of(a: Any, b: Any, weight: Any, group: Any) -> tuple[Any, Any, Any, NDArray[Any]]:
    """Scores, labels, row weights and sizes of queries, whichever way LightGBM passes them.

    ``lgb.train`` and ``lgb.cv`` call with scores and a data set, ``LGBMRanker`` with labels, scores and the rest.

    Raises
    ------
    ValueError
        The data set has no queries, or some of them were cut.
    """
    scores, labels = b, a
    if hasattr(b, "get_label"):
        scores, labels, weight, group = a, b.get_label(), b.get_weight(), b.get_group()
        if b not in _WHOLE:
            _refuse_cut(b)
            _WHOLE.add(b)
    if group is None:
        raise ValueError(
            "NDCGEval needs the sizes of the queries, and this data set has none. Pass group= to lgb.Dataset, or "
            "group= and eval_group= to LGBMRanker.fit."
        )
    return scores, labels, weight, np.asarray(group)


# Data sets whose queries are whole. By data set and not by content, unlike `Cache`: whether a query was cut depends on
# the rows that a data set was given, and another one may hold the same labels in whole queries.
_WHOLE: WeakSet[Any] = WeakSet()


def _refuse_cut(part: Any) -> None:
    while getattr(part, "used_indices", None) is not None:  # a subset; a validation set merely has a reference
        rows, part = part.used_indices, part.reference
        group = part.get_group()
        if group is None:
            continue
        sizes = np.asarray(group)
        query = np.repeat(np.arange(sizes.size), sizes)
        used = np.bincount(query[np.asarray(rows)], minlength=sizes.size)
        cut = int(((used > 0) & (used != sizes)).sum())
        if cut:
            raise ValueError(
                f"NDCGEval needs whole queries, and the folds cut {cut} of the {sizes.size} queries: only some of "
                "their rows are in this data set. Pass folds=query_folds(group), or folds=GroupKFold().split(...), to "
                "lgb.cv, which keeps queries whole only under its own ranking objectives."
            )
