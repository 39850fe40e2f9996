"""Read the query id of each row, from an argument or a column of X, and the weight of each query."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.groups import Groups
from ndcg_ml._core.lazy_frames import refuse_lazy
from ndcg_ml._core.one_line import brief
from ndcg_ml._core.queries import ids_as_array, is_missing, real_array

__all__ = [
    "HOW_TO_PASS_IDS",
    "check_column",
    "column_of",
    "ids_of_rows",
    "refuse_missing",
    "split_column",
    "table",
    "weight_of_queries",
]

HOW_TO_PASS_IDS = (
    "NDCG needs the query of each row: pass qid=. In a search, write sklearn.set_config(enable_metadata_routing=True), "
    "then GridSearchCV(..., cv=GroupKFold(5)).fit(X, y, groups=qid) or cross_validate(..., params={'groups': qid}), "
    "and if the split is not by query, .fit(X, y, groups=user, qid=qid); "
    "or, without routing, keep the ids in a column of X and name it: QueryRanker(..., qid_column='qid'), "
    "ndcg_scorer(..., qid_column='qid'), QueryKFold(5, qid_column='qid')"
)


def check_column(qid_column: object) -> str | int | None:
    """Return the name or position of a column, or None; refuse other types."""
    if qid_column is None or isinstance(qid_column, str):
        return qid_column
    if isinstance(qid_column, (int, np.integer)) and not isinstance(qid_column, bool):
        return int(qid_column)
    raise TypeError(
        "qid_column must be the name of a column (a str, for a DataFrame), its position (an int, for an array) or "
        f"None; got {qid_column!r} of type {type(qid_column).__name__}."
    )


def column_of(X: Any, qid_column: str | int) -> NDArray[Any]:  # noqa: N803
    """Return the query ids in a column of X, without copying other columns.

    Raises
    ------
    TypeError, ValueError
        X has no such column; the position is ambiguous; or the column holds fractions (an earlier step has scaled the
        ids) or floats too large to be exact in their dtype.
    """
    X = table(X)  # noqa: N806
    at = _place(X, qid_column)
    if hasattr(X, "tocsr"):
        ids = X[:, [at]].toarray()[:, 0]
    else:
        ids = np.asarray(X.iloc[:, at] if hasattr(X, "iloc") else X[:, at])
    if ids.dtype.kind == "f":
        _refuse_changed_ids(ids, qid_column)
    name = f"the column qid_column={qid_column!r} of X"
    ids = ids_as_array(ids, name)
    refuse_missing(ids, name)
    return ids


def refuse_missing(ids: NDArray[Any], name: str) -> None:
    """Refuse missing ids among objects; ``ids_as_array`` refuses NaN among numbers and dates."""
    if ids.dtype == object and any(map(is_missing, ids.tolist())):
        raise ValueError(f"{name} must have an id for every row; got a missing value.")


def split_column(X: Any, qid_column: str | int) -> tuple[Any, NDArray[Any]]:  # noqa: N803
    """Return X without the column of query ids, and the ids. Raises as ``column_of`` does."""
    X = table(X)  # noqa: N806
    ids = column_of(X, qid_column)
    at = _place(X, qid_column)
    others = [c for c in range(X.shape[1]) if c != at]
    return X.iloc[:, others] if hasattr(X, "iloc") else X[:, others], ids


def _names(X: Any) -> list[Any] | None:  # noqa: N803
    names = getattr(X, "columns", None)
    return None if names is None else list(names)


def _place(X: Any, qid_column: str | int) -> int:  # noqa: N803
    """Return the position of a column, counted from 0; refuse ambiguous names and numbers."""
    if isinstance(qid_column, str):
        names = _names(X)
        if names is None or names.count(qid_column) != 1:
            got = f"a {type(X).__name__} without named columns" if names is None else f"columns {_first_names(names)}"
            raise ValueError(
                f"X must hold the query ids in its column qid_column={qid_column!r}; got {got}. A pipeline's earlier "
                "step may have dropped it: set_output(transform='pandas') keeps names, "
                "ColumnTransformer(..., remainder='passthrough') leaves the ids as they are."
            )
        return names.index(qid_column)
    n_columns = X.shape[1]
    if not -n_columns <= qid_column < n_columns:
        raise ValueError(f"qid_column={qid_column} must be a column of X; got X of shape {X.shape}.")
    at = qid_column % n_columns
    labels = (_names(X) if hasattr(X, "iloc") else None) or []
    if any(isinstance(label, Number) for label in labels) and labels[at] != qid_column:
        raise ValueError(
            f"qid_column={qid_column} must name one column; X has numbers as column labels, {_first_names(labels)}, "
            f"and its column at position {qid_column} is labelled {labels[at]!r}. Name the columns, "
            "X.columns = X.columns.astype(str), and pass a name."
        )
    return int(at)


def _refuse_changed_ids(ids: NDArray[Any], qid_column: str | int) -> None:
    """Refuse floats that are not exact integers, because different ids may have become equal."""
    present = ids[~np.isnan(ids)]
    fractions = present[present != np.floor(present)]
    if fractions.size:
        raise ValueError(
            f"qid_column={qid_column!r} must hold query ids; got fractions, the first is {fractions[0]}. "
            "An earlier step has transformed the ids. Exclude them from it, for example with "
            "ColumnTransformer([('scale', StandardScaler(), features)], remainder='passthrough')."
        )
    exact = 2 ** (np.finfo(ids.dtype).nmant + 1)
    if present.size and np.abs(present).max() >= exact:
        raise ValueError(
            f"qid_column={qid_column!r} must hold ids that are exact in its dtype; got {np.abs(present).max():.0f} "
            f"in {ids.dtype}, which is exact only below {exact}. Keep the ids as integers in a column of a DataFrame, "
            "or number the queries 0, 1, ...: np.unique(qid, return_inverse=True)[1]."
        )


def ids_of_rows(qid: Any, column: NDArray[Any] | None, groups: Any, n_rows: int) -> NDArray[Any]:
    """Return one id per row, from the argument `qid`, a column, or both if they are equal.

    `groups` is the argument of a group splitter. It holds the ids only if there is nothing else, because the split may
    be by user and the score by query.

    Raises
    ------
    TypeError, ValueError
        No ids, the wrong number of ids, or an argument and a column that disagree.
    """
    given = column if qid is None else qid
    given = groups if given is None else given
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
        query = brief(layout.ids.tolist()[first])
        raise ValueError(
            "sample_weight must be equal in all rows of a query, because it is the weight of the query; query "
            f"{query} has weights from {low[first]} to {high[first]}. Give each row its query's "
            "weight, for example the mean."
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


def _first_names(names: list[Any]) -> str:
    return f"[{', '.join(map(brief, names[:8]))}]{' and more' if len(names) > 8 else ''}"
