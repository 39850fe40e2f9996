"""Where the query ids of the rows come from: an argument, or a column of X."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["HOW_TO_PASS_IDS", "check_column", "ids_of_rows", "split_column", "table", "take_rows"]

HOW_TO_PASS_IDS = (
    "NDCG needs the query of each row. Either write sklearn.set_config(enable_metadata_routing=True), then "
    "GridSearchCV(..., cv=GroupKFold(5)).fit(X, y, groups=qid) or cross_validate(..., params={'groups': qid}); "
    "or, without routing, keep the ids in a column of X and name it: QueryRanker(..., qid_column='qid'), "
    "ndcg_scorer(..., qid_column='qid'), QueryKFold(5, qid_column='qid')"
)


def check_column(qid_column: object) -> str | int | None:
    """The name or position of a column, or None."""
    if qid_column is None or isinstance(qid_column, str):
        return qid_column
    if isinstance(qid_column, (int, np.integer)) and not isinstance(qid_column, bool):
        return int(qid_column)
    raise TypeError(
        "qid_column must be the name of a column (a str, for a DataFrame), its position (an int, for an array) or "
        f"None; got {qid_column!r} of type {type(qid_column).__name__}."
    )


class _Parts(NamedTuple):
    features: Any
    ids: NDArray[Any]


def split_column(X: Any, qid_column: str | int) -> _Parts:  # noqa: N803
    """X without the column of query ids, and the ids.

    Raises
    ------
    TypeError, ValueError
        X has no such column; or the column holds numbers with fractions, which are ids that something has scaled, or
        floats so large that their dtype does not tell them apart.
    """
    if isinstance(qid_column, str):
        columns = getattr(X, "columns", getattr(X, "column_names", None))
        names = None if columns is None else list(columns)
        if names is None or qid_column not in names:
            found = f"a {type(X).__name__} without named columns" if names is None else f"columns {_some(names)}"
            raise ValueError(
                f"X must hold the query ids in its column qid_column={qid_column!r}; got {found}. A pipeline's earlier "
                "step may have dropped it: set_output(transform='pandas') keeps names, "
                "ColumnTransformer(..., remainder='passthrough') leaves the ids as they are."
            )
        at: Any = X[qid_column]
        if hasattr(X, "select_dtypes"):  # pandas
            rest = X.drop(columns=[qid_column])
        elif hasattr(X, "drop_columns"):  # a pyarrow table
            rest = X.drop_columns([qid_column])
        else:
            rest = X.drop(qid_column)
        ids = np.asarray(at)
    else:
        X = table(X)  # noqa: N806
        n_columns = X.shape[1]
        if not -n_columns <= qid_column < n_columns:
            raise ValueError(f"qid_column={qid_column} must be a column of X; got X of shape {X.shape}.")
        others = [c for c in range(n_columns) if c != qid_column % n_columns]
        if hasattr(X, "iloc"):
            ids, rest = np.asarray(X.iloc[:, qid_column]), X.iloc[:, others]
        elif hasattr(X, "toarray"):  # sparse
            X = X.tocsc()  # noqa: N806
            ids, rest = X[:, [qid_column]].toarray()[:, 0], X[:, others].tocsr()
        else:
            ids, rest = np.asarray(X[:, qid_column]), X[:, others]
    if ids.dtype.kind == "f":
        _refuse_changed_ids(ids, qid_column)
    return _Parts(rest, ids)


def _refuse_changed_ids(ids: NDArray[Any], qid_column: str | int) -> None:
    """Ids that are floats were once integers; what has become of them may have merged queries."""
    present = ids[~np.isnan(ids)]
    fractions = present[present != np.floor(present)]
    if fractions.size:
        raise ValueError(
            f"qid_column={qid_column!r} must hold query ids; got numbers with fractions, the first is {fractions[0]}. "
            "An earlier step has transformed the ids: keep them out of it, for example with "
            "ColumnTransformer([('scale', StandardScaler(), features)], remainder='passthrough')."
        )
    exact = 2 ** (np.finfo(ids.dtype).nmant + 1)
    if present.size and np.abs(present).max() >= exact:
        raise ValueError(
            f"qid_column={qid_column!r} must hold ids that its dtype tells apart; got {np.abs(present).max():.0f} in "
            f"{ids.dtype}, which is exact below {exact} only. Keep the ids as integers in a column of a DataFrame, or "
            "number the queries 0, 1, ...: np.unique(qid, return_inverse=True)[1]."
        )


def ids_of_rows(qid: Any, column: NDArray[Any] | None, n_rows: int) -> NDArray[Any]:
    """One id a row, from ids that came as an argument, in a column, or both and equal.

    Raises
    ------
    TypeError, ValueError
        No ids, ids of the wrong number, or an argument and a column that disagree.
    """
    if qid is None and column is None:
        raise ValueError(f"no query ids arrived. {HOW_TO_PASS_IDS}.")
    given = column if qid is None else qid
    assert given is not None
    if np.shape(given) != (n_rows,):
        raise ValueError(
            f"query ids must be one a row, shape ({n_rows},); got {np.shape(given)} (sizes of queries are not ids). "
            f"{HOW_TO_PASS_IDS}."
        )
    if qid is not None and column is not None and not np.array_equal(np.asarray(qid), column):
        raise ValueError("qid and the column qid_column must agree where both are given; they differ. Pass one.")
    return np.asarray(given)


def table(X: Any) -> Any:  # noqa: N803
    """X as a two-dimensional container: DataFrames and sparse matrices as they are, all else as an array."""
    X = X if hasattr(X, "tocsr") or hasattr(X, "columns") or hasattr(X, "column_names") else np.asarray(X)  # noqa: N806
    if isinstance(X, np.ndarray):
        if X.dtype.kind == "c":
            raise ValueError("X must hold real features. Complex data not supported; got dtype complex.")
        if X.ndim != 2:
            raise ValueError(
                f"X must be two-dimensional, one row a document; got shape {X.shape}. Reshape your data, for example "
                "with X.reshape(-1, 1) for a single feature."
            )
    return X


def take_rows(X: Any, rows: NDArray[Any]) -> Any:  # noqa: N803
    """The rows of any two-dimensional container, in this order."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "column_names") and hasattr(X, "take"):  # pyarrow
        return X.take(rows)
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return X[rows]


def _some(names: list[Any]) -> str:
    return f"{names[:8]}{' and more' if len(names) > 8 else ''}"
