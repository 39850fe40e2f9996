"""Evaluate a distributed table with Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
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
    """Compute the NDCG of a Spark data frame: repartition it by query, evaluate each partition, and merge.

    The rows may be in any order and partition. Only the named columns are shuffled. ndcg_ml and pyarrow must
    be installed on the workers.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        One row per document. Spark Connect's frames are also accepted.
    label, score, qid : str
        Names of columns, as for ``ndcg_ml.dask.evaluate``. A null label is an unjudged document. A null score or id
        is an error.
    flavor, k
        As for ``ndcg_ml.dask.evaluate``.

    Returns
    -------
    PartialEvaluation
        As from ``ndcg_ml.dask.evaluate``.

    Raises
    ------
    TypeError, ValueError
        `frame` is not a Spark data frame, a column is missing, or the flavor depends on the order of rows or on
        document ids. Errors in the rows themselves are raised by Spark, with the same messages.

    Examples
    --------
    >>> from ndcg_ml.spark import evaluate
    >>> evaluate(spark.table("scored"), label="grade", score="score", qid="query", k=10).value  # doctest: +SKIP
    0.4731
    """
    if not type(frame).__module__.startswith("pyspark.") or not hasattr(frame, "mapInArrow"):
        raise TypeError(
            f"frame must be a pyspark.sql.DataFrame; got {type(frame).__name__}. For a frame in memory, use "
            "ndcg_score, evaluate and evaluate_part."
        )
    task = EngineRows(frame.columns, label, score, qid, flavor, k)
    # Rename the columns, because names such as "a.b" and "a`b" are allowed.
    renamed = ["`" + column.replace("`", "``") + f"` as {meaning}" for meaning, column in task.columns.items()]

    def part(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        # A partition holds complete queries, but Spark passes it in batches that split them.
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            table = pa.Table.from_batches(filled)
            found = task.part({meaning: table[meaning].to_numpy() for meaning in task.columns})
            yield pa.RecordBatch.from_pydict({"part": [pickle.dumps(found)]})

    parts = frame.selectExpr(*renamed).repartition("qid").mapInArrow(part, "part binary")
    return merge_parts([task.empty_part(), *(bytes(row["part"]) for row in parts.collect())])
