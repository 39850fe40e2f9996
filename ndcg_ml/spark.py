"""Spark: NDCG of a table whose rows are distributed, in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ndcg_ml._checks import KSpec
from ndcg_ml._engines import MERGED_AT_ONCE, EngineRows, merged, merged_packed
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
    """NDCG of a Spark data frame: repartitioned by query, evaluated by partition, merged in a tree on the workers.

    The rows may lie in any order and partition. Only the columns that are named are shuffled. ndcg_ml and pyarrow must
    be installed on the workers.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        One row per document. Spark Connect's frames are taken as well.
    label, score, qid : str
        Names of columns, as for ``ndcg_ml.dask.evaluate``. A null label is an unjudged document; null scores and ids
        are refused.
    position, flavor, k
        As for ``ndcg_ml.dask.evaluate``.

    Returns
    -------
    PartialEvaluation
        As from ``ndcg_ml.dask.evaluate``.

    Raises
    ------
    TypeError, ValueError
        `frame` is no Spark data frame, a column is missing, or the flavor needs `position` or document ids. What is
        wrong with the rows themselves is raised by Spark, with the same words.

    Examples
    --------
    >>> from ndcg_ml.spark import evaluate
    >>> evaluate(spark.table("scored"), label="grade", score="score", qid="query", k=10).value  # doctest: +SKIP
    0.4731
    """
    task = EngineRows.read(label, score, qid, position, flavor, k)
    if not type(frame).__module__.startswith("pyspark.") or not hasattr(frame, "mapInArrow"):
        raise TypeError(
            f"frame must be a pyspark.sql.DataFrame; got {type(frame).__name__}. A frame in memory is for ndcg_score, "
            "evaluate and evaluate_part."
        )
    task.refuse_missing(frame.columns)
    # Names of our own, because a column may be called anything, "a.b" and "a`b" too.
    renamed = ["`" + column.replace("`", "``") + f"` as {meaning}" for meaning, column in task.columns.items()]
    by_query = frame.selectExpr(*renamed).repartition("qid")

    def part_of_partition(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        # A partition holds whole queries, and Spark hands it over in batches that cut them.
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            table = pa.Table.from_batches(filled)
            rows = {meaning: table[meaning].to_numpy() for meaning in task.columns}
            yield pa.RecordBatch.from_pydict({"part": [task.packed(rows)]})

    def merge_of_partition(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        parts = [part for batch in batches for part in batch["part"].to_pylist()]
        if parts:
            yield pa.RecordBatch.from_pydict({"part": [merged_packed(parts)]})

    parts = by_query.mapInArrow(part_of_partition, "part binary")
    # Parts are small beside rows: one level of merges on the workers leaves the driver few.
    some = parts.repartition(MERGED_AT_ONCE).mapInArrow(merge_of_partition, "part binary")
    return merged([task.nothing(), *(bytes(row["part"]) for row in some.collect())])
