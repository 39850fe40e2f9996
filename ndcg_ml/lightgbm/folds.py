"""Folds of whole queries, for objectives under which LightGBM itself cuts them."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from ndcg_ml.groups import Groups, IntArray
from ndcg_ml.lightgbm._whole_number import whole_number

__all__ = ["query_folds"]


def query_folds(
    group: Any, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
) -> list[tuple[IntArray, IntArray]]:
    """Folds of whole queries, for ``lgb.cv(folds=)`` under any objective.

    ``lgb.cv`` itself keeps queries whole under ranking objectives only; under any other its folds cut them.

    Parameters
    ----------
    group : array-like of int
        Sizes of the queries, as given to ``lgb.Dataset``.
    n_splits : int, default 5
        Number of folds, at least 2.
    shuffle : bool, default False
        False: queries are dealt out largest first, each to the fold with the fewest rows so far, so that folds are of
        nearly equal size (as scikit-learn's ``GroupKFold`` does). True: they are dealt out in random order, and folds
        differ by no more rows than the largest query has.
    random_state : int, numpy Generator or None, default None
        Of the shuffling: an int gives the same folds each time, None others each time.

    Returns
    -------
    list of (train_rows, test_rows)
        Row numbers in ascending order, one pair a fold.

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
    sizes = np.asarray(group)
    sizes = Groups.from_sizes(sizes, sizes.sum() if sizes.dtype.kind in "iu" else 0).sizes
    if random_state is not None and not shuffle:
        raise ValueError(
            f"random_state only has a meaning with shuffle=True; got {random_state!r} with shuffle={shuffle!r}."
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
