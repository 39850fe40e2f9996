"""Dask: NDCG of a table whose rows are distributed, in one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ndcg_ml._checks import KSpec
from ndcg_ml._engines import MERGED_AT_ONCE, EngineRows, merged
from ndcg_ml._one_line import shown
from ndcg_ml.flavor import Flavor

if TYPE_CHECKING:
    from ndcg_ml.parts import PartialEvaluation


def evaluate(
    frame: Any,
    *,
    label: str,
    score: str,
    qid: str,
    position: str | None = None,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
) -> PartialEvaluation:
    """NDCG of a Dask data frame: shuffled by query, evaluated by partition, merged in a tree on the workers.

    The rows may lie in any order and partition. Only the columns that are named are shuffled, and only sums, counts and
    8 bytes per query leave a worker.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        One row per document.
    label, score, qid : str
        Names of the columns that hold the grade, the score and the query id of a row. A missing label is an unjudged
        document; missing scores and ids are refused.
    position : str, optional
        Name of a column that tells the order of a query's rows, different in each of them. Flavors that follow this
        order need it (``ties="first"`` or ``"last"``, ``ideal="given"``), because a shuffle does not keep it.
    flavor, k
        As for ``ndcg_score``.

    Returns
    -------
    PartialEvaluation
        ``.value`` is the number that ``ndcg_score`` gives for all rows on one machine. ``.n_queries`` and ``.n_docs``
        are what was counted. It may be merged with parts of other queries.

    Raises
    ------
    ImportError
        Dask's data frames are not installed.
    TypeError, ValueError
        `frame` is no Dask data frame, a column is missing, the flavor needs `position` or document ids, or as for
        ``ndcg_score``.

    Examples
    --------
    >>> import pandas as pd
    >>> import dask.dataframe as dd
    >>> rows = pd.DataFrame({"user": [1, 2, 1, 2], "rating": [3, 0, 1, 2], "score": [0.2, 0.1, 0.9, 0.4]})
    >>> found = evaluate(dd.from_pandas(rows, npartitions=2), label="rating", score="score", qid="user", k=10)
    >>> round(found.value, 6), found.n_queries
    (0.898354, 2)
    """
    task = EngineRows.read(label, score, qid, position, flavor, k)

    def part(rows: Any) -> PartialEvaluation:
        return task.part({meaning: rows[column].to_numpy() for meaning, column in task.columns.items()})

    return _evaluated(_rows(frame, task), task, part)


def evaluate_ranker(
    ranker: Any,
    frame: Any,
    *,
    features: Sequence[str],
    label: str,
    qid: str,
    position: str | None = None,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
) -> PartialEvaluation:
    """NDCG of a fitted ranker on a Dask data frame: partitions are shuffled by query, predicted, evaluated and merged.

    ``DaskLGBMRanker`` evaluates every metric, its own included, on the rows of one worker. This is the number of all
    rows.

    Parameters
    ----------
    ranker : object with ``predict``
        Any fitted model that predicts from a pandas data frame. A Dask estimator of LightGBM is taken by its
        ``to_local()``.
    frame : dask.dataframe.DataFrame
        One row per document.
    features : sequence of str
        Columns that the ranker takes, in this order.
    label, qid, position, flavor, k
        As for ``evaluate``.

    Returns
    -------
    PartialEvaluation

    Raises
    ------
    ImportError, TypeError, ValueError
        As for ``evaluate``; or `ranker` has no ``predict``.
    """
    local = ranker.to_local() if hasattr(ranker, "to_local") else ranker
    if not callable(getattr(local, "predict", None)):
        raise TypeError(f"ranker must be a fitted model with predict; got {type(ranker).__name__}.")
    columns = list(features)
    if isinstance(features, str) or not all(isinstance(column, str) for column in columns):
        raise TypeError(f"features must be a sequence of names of columns; got {shown(features)}.")
    scores = "the ranker's scores"
    task = EngineRows.read(label, scores, qid, position, flavor, k)

    def part(rows: Any) -> PartialEvaluation:
        predicted = local.predict(rows[columns]) if len(rows) else ()
        read = {meaning: rows[column].to_numpy() for meaning, column in task.columns.items() if column != scores}
        return task.part({**read, "score": predicted})

    return _evaluated(_rows(frame, task, without=scores, more=columns), task, part)


def _rows(frame: Any, task: EngineRows, without: str | None = None, more: Sequence[str] = ()) -> Any:
    """The columns of the frame that are needed."""
    try:
        import dask.dataframe as dd
    except ImportError as error:
        raise ImportError("ndcg_ml.dask needs Dask's data frames. Install: pip install 'dask[dataframe]'") from error
    if not isinstance(frame, dd.DataFrame):
        raise TypeError(
            f"frame must be a dask.dataframe.DataFrame; got {type(frame).__name__}. A frame in memory is for "
            "ndcg_score, evaluate and evaluate_part."
        )
    has = list(frame.columns)
    task.refuse_missing([*has, without])
    if lacking := [column for column in more if column not in has]:
        raise ValueError(f"features must be columns of the frame; got {shown(lacking[0])}.")
    named = [column for column in task.columns.values() if column != without]
    return frame[list(dict.fromkeys([*named, *more]))]


def _evaluated(rows: Any, task: EngineRows, part: Callable[[Any], PartialEvaluation]) -> PartialEvaluation:
    """Partitions of whole queries, each as a part, and the parts merged some at a time."""
    import dask

    by_query = rows.shuffle(on=task.qid)
    parts = [dask.delayed(part)(partition) for partition in by_query.to_delayed()]
    together = dask.delayed(merged)
    while len(parts) > 1:
        some = [parts[first : first + MERGED_AT_ONCE] for first in range(0, len(parts), MERGED_AT_ONCE)]
        parts = [together(group) for group in some]
    evaluation: PartialEvaluation = parts[0].compute()
    return evaluation
