"""Split data by query, without metadata routing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold

from ndcg_ml._core.lazy_frames import refuse_lazy
from ndcg_ml._core.pandas_index import match_index
from ndcg_ml._core.queries import ids_as_array
from ndcg_ml.sklearn.columns import check_column, column_of, refuse_missing

__all__ = ["QueryKFold"]


class QueryKFold(GroupKFold):  # type: ignore[misc]
    """K folds of whole queries: scikit-learn's ``GroupKFold`` with stored query ids.

    You pass the ids, or the column of X that holds them, when you create it, and need neither ``groups`` nor metadata
    routing. A scorer can use the ids to detect cut queries: ``ndcg_scorer(..., qid=folds.qid)``.

    Parameters
    ----------
    n_splits : int, default 5
        Number of folds, at least 2 and at most the number of queries.
    qid : array-like of shape (n_rows,), optional
        The query of each row of the X that will be split.
    qid_column : str or int, optional
        The column of X that holds the ids: a name for a DataFrame, a position for an array.
    shuffle : bool, default False
        Assign queries to folds at random rather than largest first.
    random_state : int, RandomState or None, default None
        Used with ``shuffle=True``.

    Raises
    ------
    TypeError, ValueError
        When created: not exactly one of `qid` and `qid_column`, or as for ``GroupKFold``. When splitting: not one id
        per row, ``groups`` that differ from the ids, or pandas objects (X, y, ids) whose indexes differ.

    See Also
    --------
    sklearn.model_selection.GroupKFold : The base class, in scikit-learn 1.6 or later.

    Examples
    --------
    >>> import numpy as np
    >>> qid = np.array(["a", "b", "a", "c", "b", "c"])
    >>> for train, test in QueryKFold(3, qid=qid).split(np.zeros((6, 2))):
    ...     print(sorted(set(qid[train].tolist())), sorted(set(qid[test].tolist())))
    ['a', 'b'] ['c']
    ['a', 'c'] ['b']
    ['b', 'c'] ['a']
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        qid: ArrayLike | None = None,
        qid_column: str | int | None = None,
        shuffle: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        if (qid is None) == (qid_column is None):
            raise ValueError(
                f"QueryKFold needs either qid or qid_column; got {'neither' if qid is None else 'both'}. To split by "
                "groups= of fit, use GroupKFold."
            )
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)
        self.qid = qid
        self.qid_column: str | int | None = check_column(qid_column)

    def split(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the training rows and the test rows of each fold.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like, optional
            Not used.
        groups : array-like of shape (n_rows,), optional
            If a search passes them, they must be equal to the ids.

        Yields
        ------
        train, test : ndarray of int
        """
        refuse_lazy(X, "X")
        match_index({"X": X, "y": y, "qid": self.qid, "groups": groups})
        if self.qid_column is not None:
            ids = column_of(X, self.qid_column)
        else:
            ids = ids_as_array(self.qid)
            refuse_missing(ids, "qid")
        if groups is not None and not np.array_equal(ids_as_array(groups), ids):
            raise ValueError(
                "groups must be equal to the ids of QueryKFold; they differ. To split by these ids and score by query, "
                "pass the queries as qid instead: fit(X, y, qid=qid). To split by groups, use GroupKFold."
            )
        yield from super().split(X, y, ids)
