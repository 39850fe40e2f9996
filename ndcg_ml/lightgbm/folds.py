"""Folds of whole queries, for objectives under which LightGBM itself cuts them; and whether a data set is one."""

from __future__ import annotations

import heapq
from typing import Any
from weakref import WeakSet

import numpy as np

from ndcg_ml._checks import whole_number
from ndcg_ml.groups import IntArray
from ndcg_ml.queries import by_sizes

__all__ = ["WholeQueries", "query_folds"]


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
    sizes = by_sizes(sizes, sizes.sum() if sizes.dtype.kind in "iu" else 0).sizes
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


class WholeQueries:
    """A check that is made once per data set; what was checked does not travel when it is pickled or copied.

    Parameters
    ----------
    who : str
        Who needs whole queries, for the message.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        # By data set and not by content, by which `Cache` keeps: what is left of a cut query is in the rows that a
        # data set took, and another one may hold the same labels in whole queries.
        self._checked: WeakSet[Any] = WeakSet()

    def __getstate__(self) -> dict[str, Any]:
        return {"_who": self._who}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._checked = WeakSet()

    def check(self, dataset: Any) -> None:
        """Raise ValueError where a query of the data set was cut."""
        if dataset in self._checked:
            return
        part = dataset
        while getattr(part, "used_indices", None) is not None:  # a subset; a validation set merely has a reference
            self._refuse_cut(part.reference.get_group(), part.used_indices)
            part = part.reference
        self._checked.add(dataset)

    def _refuse_cut(self, group: Any, rows: Any) -> None:
        if group is None:
            return
        sizes = np.asarray(group)
        query = np.repeat(np.arange(sizes.size), sizes)
        used = np.bincount(query[np.asarray(rows)], minlength=sizes.size)
        cut = int(((used > 0) & (used != sizes)).sum())
        if cut:
            raise ValueError(
                f"{self._who} needs whole queries, and the folds cut {cut} of {sizes.size}: some of their rows are in "
                "this data set and some are not. Pass folds=query_folds(group), or folds=GroupKFold().split(...), to "
                "lgb.cv; left to itself it keeps queries whole under its own ranking objectives only."
            )
