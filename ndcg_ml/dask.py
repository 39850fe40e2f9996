"""Evaluate a distributed table with Dask."""

from __future__ import annotations

from typing import Any

from ndcg_ml._plain.checks import KSpec
from ndcg_ml.flavor import Flavor
from ndcg_ml.parts import EngineRows, PartialEvaluation, merge_parts


def evaluate(
    frame: Any,
    *,
    label: str,
    score: str,
    qid: str,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
) -> PartialEvaluation:
    """Compute the NDCG of a Dask data frame: shuffle it by query, evaluate each partition, and merge on the workers.

    The rows may be in any order and partition. Only the named columns are shuffled, and only sums, counts and
    8 bytes per query leave a worker.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        One row per document.
    label, score, qid : str
        Names of the columns with the grade, the score and the query id of each row. A missing label is an unjudged
        document. A missing score or id is an error.
    flavor, k
        As for ``ndcg_score``, except for flavors that depend on the order of rows, which a shuffle does not keep
        (``ties="first"`` or ``"last"``, ``ideal="given"``).

    Returns
    -------
    PartialEvaluation
        ``.value`` is the number that ``ndcg_score`` returns for all rows on one machine. ``.n_queries`` and ``.n_docs``
        are counts. The part can be merged with parts of other queries.

    Raises
    ------
    ImportError
        Dask's data frames are not installed.
    TypeError, ValueError
        `frame` is not a Dask data frame, a column is missing, the flavor depends on the order of rows or on document
        ids, or as for ``ndcg_score``.

    Examples
    --------
    >>> import pandas as pd
    >>> import dask.dataframe as dd
    >>> rows = pd.DataFrame({"user": [1, 2, 1, 2], "rating": [3, 0, 1, 2], "score": [0.2, 0.1, 0.9, 0.4]})
    >>> found = evaluate(dd.from_pandas(rows, npartitions=2), label="rating", score="score", qid="user", k=10)
    >>> round(found.value, 6), found.n_queries
    (0.898354, 2)
    """
    try:
        import dask
        import dask.dataframe as dd
    except ImportError as error:
        raise ImportError("ndcg_ml.dask needs Dask's data frames. Install: pip install 'dask[dataframe]'") from error
    if not isinstance(frame, dd.DataFrame):
        raise TypeError(
            f"frame must be a dask.dataframe.DataFrame; got {type(frame).__name__}. For a frame in memory, use "
            "ndcg_score, evaluate and evaluate_part."
        )
    task = EngineRows(frame.columns, label, score, qid, flavor, k)

    def part(rows: Any) -> PartialEvaluation:
        return task.part({meaning: rows[column].to_numpy() for meaning, column in task.columns.items()})

    by_query = frame[list(task.columns.values())].shuffle(on=qid)
    parts = [dask.delayed(part)(partition) for partition in by_query.to_delayed()]
    return dask.delayed(merge_parts)(parts).compute()
