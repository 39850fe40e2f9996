"""Ray: NDCG of a data set whose rows are distributed, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ndcg_ml._checks import KSpec, whole_number
from ndcg_ml._engines import MERGED_AT_ONCE, EngineRows, merged, merged_packed
from ndcg_ml._parts.query_ids import digests
from ndcg_ml.flavor import Flavor

if TYPE_CHECKING:
    from ndcg_ml.parts import PartialEvaluation

_BUCKET = "bucket of queries, by ndcg_ml"


def evaluate(
    frame: Any,
    *,
    label: str,
    score: str,
    qid: str,
    position: str | None = None,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
    partitions: int | None = None,
) -> PartialEvaluation:
    """NDCG of a Ray data set: grouped by buckets of queries, evaluated by bucket, merged in a tree on the workers.

    The rows may lie in any order and block. Only the columns that are named are shuffled.

    Parameters
    ----------
    frame : ray.data.Dataset
        One row per document.
    label, score, qid, position, flavor, k
        As for ``ndcg_ml.dask.evaluate``.
    partitions : int, optional
        Into how many buckets the queries are dealt. Default: four per processor of the cluster.

    Returns
    -------
    PartialEvaluation
        As from ``ndcg_ml.dask.evaluate``.

    Raises
    ------
    TypeError, ValueError
        `frame` is no Ray data set, a column is missing, or the flavor needs `position` or document ids. What is wrong
        with the rows themselves is raised by Ray, with the same words.

    Examples
    --------
    >>> from ndcg_ml.ray import evaluate
    >>> scored = ray.data.read_parquet("scored/")  # doctest: +SKIP
    >>> evaluate(scored, label="grade", score="score", qid="query", k=10).value  # doctest: +SKIP
    0.4731
    """
    # Everything that needs no rows is checked on this machine, before the cluster works.
    task = EngineRows.read(label, score, qid, position, flavor, k)
    if not type(frame).__module__.startswith("ray.data") or not hasattr(frame, "groupby"):
        raise TypeError(
            f"frame must be a ray.data.Dataset; got {type(frame).__name__}. A frame in memory is for ndcg_score, "
            "evaluate and evaluate_part."
        )
    number = None if partitions is None else whole_number(partitions, "partitions")
    columns = frame.columns()
    if columns is not None:
        task.refuse_missing(columns)
    if not frame.take(1):  # Ray cannot group a data set in which no block has a row
        return task.nothing()
    # Several buckets per processor, because their sizes differ.
    if number is None:
        import ray

        number = max(4, 4 * int(ray.cluster_resources().get("CPU", 1)))
    buckets = number

    def dealt(rows: dict[str, Any]) -> dict[str, Any]:
        # Python's hash of a text differs between processes. This one does not.
        return {**rows, _BUCKET: (digests(np.asarray(rows[task.qid]))[1] % np.uint64(buckets)).astype(np.int64)}

    def part_of_bucket(rows: dict[str, Any]) -> dict[str, Any]:
        return {"part": [task.packed({meaning: rows[column] for meaning, column in task.columns.items()})]}

    def merge_of_some(rows: dict[str, Any]) -> dict[str, Any]:
        return {"part": [merged_packed(list(rows["part"]))]}

    # Rows to buckets, buckets to parts, and some parts to one on the workers, so that few reach this machine.
    by_query = (
        frame.select_columns(list(task.columns.values())).map_batches(dealt).groupby(_BUCKET, num_partitions=buckets)
    )
    parts = by_query.map_groups(part_of_bucket, batch_format="numpy")
    some = parts.map_batches(merge_of_some, batch_size=MERGED_AT_ONCE, batch_format="numpy")
    return merged([task.nothing(), *(bytes(row["part"]) for row in some.iter_rows())])
