"""Spark: NDCG of a table whose rows are distributed, in one line."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

from ndcg_ml._checks import KSpec
from ndcg_ml._engines import EngineRows, merged
from ndcg_ml.flavor import Flavor
from ndcg_ml.parts import PartialEvaluation


def evaluate(
    frame: Any,
    *,
    label: str,
    score: str,
    qid: str,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
) -> PartialEvaluation:
    """NDCG of a Spark data frame: repartitioned by query, evaluated by partition, and merged.

    The rows may lie in any order and partition. Only the columns that are named are shuffled. ndcg_ml and pyarrow must
    be installed on the workers.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        One row per document. Spark Connect's frames are taken as well.
    label, score, qid : str
        Names of columns, as for ``ndcg_ml.dask.evaluate``. A null label is an unjudged document; null scores and ids
        are refused.
    flavor, k
        As for ``ndcg_ml.dask.evaluate``.

    Returns
    -------
    PartialEvaluation
        As from ``ndcg_ml.dask.evaluate``.

    Raises
    ------
    TypeError, ValueError
        `frame` is not a Spark data frame, a column is missing, or the flavor follows the order of rows or document ids.
        What is wrong with the rows themselves is raised by Spark, with the same words.

    Examples
    --------
    >>> from ndcg_ml.spark import evaluate
    >>> evaluate(spark.table("scored"), label="grade", score="score", qid="query", k=10).value  # doctest: +SKIP
    0.4731
    """
    if not type(frame).__module__.startswith("pyspark.") or not hasattr(frame, "mapInArrow"):
        raise TypeError(
            f"frame must be a pyspark.sql.DataFrame; got {type(frame).__name__}. A frame in memory is for ndcg_score, "
            "evaluate and evaluate_part."
        )
    task = EngineRows(frame.columns, label, score, qid, flavor, k)
    # New names, because a column may be called anything, "a.b" and "a`b" too.
    renamed = ["`" + column.replace("`", "``") + f"` as {meaning}" for meaning, column in task.columns.items()]

    def part(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        # A partition holds whole queries, and Spark hands it over in batches that cut them.
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            table = pa.Table.from_batches(filled)
            found = task.part({meaning: table[meaning].to_numpy() for meaning in task.columns})
            yield pa.RecordBatch.from_pydict({"part": [pickle.dumps(found)]})

    parts = frame.selectExpr(*renamed).repartition("qid").mapInArrow(part, "part binary")
    return merged([task.nothing(), *(bytes(row["part"]) for row in parts.collect())])
