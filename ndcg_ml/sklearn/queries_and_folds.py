"""Read the query of each row, refuse folds that cut queries, and make folds of whole queries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold

from ndcg_ml._core.arrays import ids_as_array, is_missing, real_array
from ndcg_ml._core.frames import match_index, refuse_lazy
from ndcg_ml._core.layout import Groups
from ndcg_ml._core.query_groups import group_by_ids
from ndcg_ml._plain.messages import brief

# -- the query of each row, from an argument or a column of X, and the weight of each query ---------------------------

HOW_TO_PASS_IDS = (
    "NDCG needs the query of each row: pass qid=. In a search, write sklearn.set_config(enable_metadata_routing=True), "
    "then GridSearchCV(..., cv=GroupKFold(5)).fit(X, y, groups=qid) or cross_validate(..., params={'groups': qid}), "
    "and if the split is not by query, .fit(X, y, groups=user, qid=qid); "
    "or, without routing, keep the ids in a column of X and name it: QueryRanker(..., qid_column='qid'), "
    "ndcg_scorer(..., qid_column='qid'), QueryKFold(5, qid_column='qid')"
)


def check_column(qid_column: object) -> str | None:
    """Return the name of a column, or None; refuse other types, because tools move and drop columns of an array."""
    if qid_column is None or isinstance(qid_column, str):
        return qid_column
    raise TypeError(
        f"qid_column must be the name of a column (a str) or None; got {qid_column!r} of type "
        f"{type(qid_column).__name__}. If X is an array, pass the ids by metadata routing, groups=qid, or name their "
        "column: pass pd.DataFrame(X).assign(qid=qid) as X, and qid_column='qid'."
    )


def column_of(X: Any, qid_column: str) -> NDArray[Any]:  # noqa: N803
    """Return the query ids in a column of X.

    Raises
    ------
    TypeError, ValueError
        X has no such column; or the column holds fractions (an earlier step has scaled the ids) or floats too large to
        be exact in their dtype.
    """
    X = table(X)  # noqa: N806
    names = list(X.columns) if hasattr(X, "columns") else []
    if names.count(qid_column) != 1:
        got = f"columns {brief(names)}" if names else f"a {type(X).__name__} without named columns"
        raise ValueError(
            f"X must hold the query ids in its column qid_column={qid_column!r}; got {got}. To name the columns of an "
            "array, pass pd.DataFrame(X).assign(qid=qid). A pipeline's earlier step may have dropped the name: "
            "set_output(transform='pandas') keeps names, ColumnTransformer(..., remainder='passthrough') leaves the "
            "ids as they are. Tools that pass arrays, such as RFE, need metadata routing."
        )
    name = f"the column qid_column={qid_column!r} of X"
    ids = ids_as_array(X[qid_column], name)
    refuse_missing(ids, name)
    if ids.dtype.kind == "f" and ids.size:  # different ids may have become equal
        fractions = ids[ids != np.floor(ids)]
        if fractions.size:
            raise ValueError(
                f"qid_column={qid_column!r} must hold query ids; got fractions, the first is {fractions[0]}. "
                "An earlier step has transformed the ids. Exclude them from it, for example with "
                "ColumnTransformer([('scale', StandardScaler(), features)], remainder='passthrough')."
            )
        largest, exact = np.abs(ids).max(), 2 ** (np.finfo(ids.dtype).nmant + 1)
        if largest >= exact:
            raise ValueError(
                f"qid_column={qid_column!r} must hold ids that are exact in its dtype; got {largest:.0f} in "
                f"{ids.dtype}, which is exact only below {exact}. Keep the ids as integers in their own column, or "
                "number the queries 0, 1, ...: np.unique(qid, return_inverse=True)[1]."
            )
    return ids


def refuse_missing(ids: NDArray[Any], name: str) -> None:
    """Refuse missing ids among objects; ``ids_as_array`` refuses NaN among numbers and dates."""
    if ids.dtype == object and any(map(is_missing, ids.tolist())):
        raise ValueError(f"{name} must have an id for every row; got a missing value.")


def split_column(X: Any, qid_column: object) -> tuple[Any, NDArray[Any] | None]:  # noqa: N803
    """Return X, a ``table``, without the column of query ids, and the ids; X and None without `qid_column`."""
    qid_column = check_column(qid_column)
    if qid_column is None:
        return X, None
    ids = column_of(X, qid_column)
    return X.drop(columns=qid_column) if hasattr(X, "iloc") else X.drop(qid_column), ids


def ids_of_rows(qid: Any, column: NDArray[Any] | None, groups: Any, n_rows: int) -> NDArray[Any]:
    """Return one id per row, from the argument `qid`, a column, or both if they are equal.

    `groups` is the argument of a group splitter. It holds the ids only if there is nothing else, because the split may
    be by user and the score by query.

    Raises
    ------
    TypeError, ValueError
        No ids, the wrong number of ids, or an argument and a column that disagree.
    """
    given = next((ids for ids in (qid, column, groups) if ids is not None), None)
    if given is None:
        raise ValueError(f"no query ids arrived. {HOW_TO_PASS_IDS}.")
    ids = ids_as_array(given)
    if ids.size != n_rows:
        raise ValueError(
            f"query ids must be one per row, shape ({n_rows},); got {ids.shape} (sizes of queries are not ids). "
            f"{HOW_TO_PASS_IDS}."
        )
    if qid is not None and column is not None and not np.array_equal(ids, column):
        raise ValueError("qid and the column qid_column must agree if both are given; they differ. Pass one.")
    return ids


def weight_of_queries(sample_weight: Any, layout: Groups) -> NDArray[np.float64]:
    """Return the weight of each query, from equal weights of its rows."""
    weight = real_array(sample_weight, "sample_weight").astype(np.float64)
    if weight.shape != (layout.n_rows,):
        raise ValueError(f"sample_weight must be one per row, shape ({layout.n_rows},); got {weight.shape}.")
    low, high = layout.per_query(np.minimum, weight, 0.0), layout.per_query(np.maximum, weight, 0.0)
    if not (np.isfinite(weight).all() and weight.min() >= 0 and weight.max() > 0):
        raise ValueError("sample_weight must be finite and >= 0, and not zero in every row.")
    if (low != high).any():
        first = int(np.argmax(low != high))
        assert layout.ids is not None
        raise ValueError(
            "sample_weight must be equal in all rows of a query, because it is the weight of the query; query "
            f"{brief(layout.ids.tolist()[first])} has weights from {low[first]} to {high[first]}. Give each row its "
            "query's weight, for example the mean."
        )
    return low


def table(X: Any) -> Any:  # noqa: N803
    """Return X as a data frame of pandas or polars, a CSR matrix or a two-dimensional array."""
    refuse_lazy(X, "X")
    if hasattr(X, "tocsr"):
        return X.tocsr()
    if hasattr(X, "column_names"):  # pyarrow
        return X.to_pandas()
    if hasattr(X, "columns"):
        return X
    X = np.asarray(X)  # noqa: N806
    if X.dtype.kind == "c":
        raise ValueError("X must hold real features. Complex data not supported; got dtype complex.")
    if X.ndim != 2:
        raise ValueError(
            f"X must be two-dimensional, one row per document; got shape {X.shape}. Reshape your data, for example "
            "with X.reshape(-1, 1) for a single feature."
        )
    return X


# -- cut queries: only some of their rows are scored, but NDCG needs all of them --------------------------------------

_FIX = (
    "NDCG is defined on whole queries. Split by query: cv=GroupKFold(5) with groups=qid, or "
    "cv=ndcg_ml.sklearn.QueryKFold(5, qid=qid). An integer cv, KFold, ShuffleSplit and HalvingGridSearchCV with "
    "resource='n_samples' split by rows"
)


class CutQueryWarning(UserWarning):
    """A query is scored with more or fewer rows than it had in training."""


class WholeQueries:
    """The queries of a data set and their numbers of rows, for detecting cut queries in parts of it.

    Parameters
    ----------
    qid : array-like of shape (n_rows,)
        The query of each row of the data set, in any order.
    """

    def __init__(self, qid: ArrayLike) -> None:
        self.sizes: dict[Any, int] = _sizes(ids_as_array(qid))

    def __repr__(self) -> str:
        return f"<{sum(self.sizes.values())} rows of {len(self.sizes)} queries>"

    def refuse_cut(self, scored_ids: NDArray[Any], fix: str) -> None:
        """Raise ValueError if these rows are not all rows of their queries."""
        scored = _sizes(scored_ids)
        other = [query for query in scored if query not in self.sizes]
        if other:
            raise ValueError(
                f"the queries that are scored must be among those of ndcg_scorer(..., qid=); {len(other)} of "
                f"{len(scored)} are not, the first is {brief(other[0])}. Pass the ids of all rows that are split; for "
                "another data set, create another scorer."
            )
        cut = [query for query, rows in scored.items() if rows != self.sizes[query]]
        if cut:
            raise ValueError(
                f"the split cuts {len(cut)} of the {len(scored)} queries that it scores: {scored[cut[0]]} of the "
                f"{self.sizes[cut[0]]} rows of query {brief(cut[0])} are scored. {_FIX}.{fix}"
            )

    def warn_of_cut(self, scored_ids: NDArray[Any], stacklevel: int) -> None:
        """Warn if these rows are of queries that had more or fewer rows in training."""
        scored = _sizes(scored_ids)
        cut = [query for query, rows in scored.items() if self.sizes.get(query, rows) != rows]
        if cut:
            warnings.warn(
                f"{len(cut)} of {len(scored)} queries that are scored were also in training with other rows, the first "
                f"is {brief(cut[0])}. If these are the same queries, they were cut: {_FIX}. If they are others, give "
                "them ids that differ from those of the training data.",
                CutQueryWarning,
                stacklevel,
            )


def _sizes(ids: NDArray[Any]) -> dict[Any, int]:
    """Return the number of rows of each query."""
    layout = group_by_ids(ids, ids.size)
    assert layout.ids is not None
    return dict(zip(layout.ids.tolist(), layout.sizes.tolist(), strict=True))


def refuse_repeated_rows(every: NDArray[Any], test: NDArray[np.int64]) -> None:
    """Raise ValueError if a row is scored twice. `every` has the ids of all rows, `test` the rows that are scored."""
    times = np.bincount(test, minlength=every.size)
    if times.max() > 1:
        row = int(np.argmax(times))
        raise ValueError(
            f"the split must score each row once; row {row}, of query {brief(every.tolist()[row])}, appears "
            f"{times[row]} times, as in a sample with replacement. Sample whole queries, and give each copy of a query "
            "a new id."
        )


# -- folds of whole queries, without metadata routing -----------------------------------------------------------------


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
    qid_column : str, optional
        The name of the column of X that holds the ids, in a DataFrame.
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
        qid_column: str | None = None,
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
        self.qid_column: str | None = check_column(qid_column)

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
        ids = ids_as_array(self.qid) if self.qid_column is None else column_of(X, self.qid_column)
        refuse_missing(ids, "qid")
        if groups is not None and not np.array_equal(ids_as_array(groups), ids):
            raise ValueError(
                "groups must be equal to the ids of QueryKFold; they differ. To split by these ids and score by query, "
                "pass the queries as qid instead: fit(X, y, qid=qid). To split by groups, use GroupKFold."
            )
        yield from super().split(X, y, ids)
