"""Evaluate a distributed data set with Ray."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ndcg_ml._plain.checks import KSpec
from ndcg_ml.flavor import Flavor
from ndcg_ml.parts import EngineRows, PartialEvaluation, digests, merge_parts

_BUCKET = "bucket of queries, by ndcg_ml"


def evaluate(
    frame: Any,
    *,
    label: str,
    score: str,
    qid: str,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
) -> PartialEvaluation:
    """Compute the NDCG of a Ray data set: evaluate buckets of queries on the workers, and merge their parts.

    The rows may be in any order and block. Only the named columns are shuffled.

    Parameters
    ----------
    frame : ray.data.Dataset
        One row per document.
    label, score, qid, flavor, k
        As for ``ndcg_ml.dask.evaluate``.

    Returns
    -------
    PartialEvaluation
        As from ``ndcg_ml.dask.evaluate``.

    Raises
    ------
    TypeError, ValueError
        `frame` is not a Ray data set, a column is missing, or the flavor depends on the order of rows or on document
        ids. Errors in the rows themselves are raised by Ray, with the same messages.

    Examples
    --------
    >>> from ndcg_ml.ray import evaluate
    >>> scored = ray.data.read_parquet("scored/")  # doctest: +SKIP
    >>> evaluate(scored, label="grade", score="score", qid="query", k=10).value  # doctest: +SKIP
    0.4731
    """
    if not type(frame).__module__.startswith("ray.data") or not hasattr(frame, "groupby"):
        raise TypeError(
            f"frame must be a ray.data.Dataset; got {type(frame).__name__}. For a frame in memory, use ndcg_score, "
            "evaluate and evaluate_part."
        )
    import ray

    columns = frame.columns()
    task = EngineRows([label, score, qid] if columns is None else columns, label, score, qid, flavor, k)
    if not frame.take(1):  # Ray cannot group a data set without rows
        return task.empty_part()
    # Several buckets per processor, because their sizes differ.
    buckets = max(4, 4 * int(ray.cluster_resources().get("CPU", 1)))

    def add_bucket(rows: dict[str, Any]) -> dict[str, Any]:
        # Python's hash of a string differs between processes, these digests do not.
        return {**rows, _BUCKET: (digests(np.asarray(rows[qid]))[1] % np.uint64(buckets)).astype(np.int64)}

    def part(rows: dict[str, Any]) -> dict[str, Any]:
        return {"part": [pickle.dumps(task.part({meaning: rows[name] for meaning, name in task.columns.items()}))]}

    rows = frame.select_columns([label, score, qid]).map_batches(add_bucket).groupby(_BUCKET, num_partitions=buckets)
    parts = rows.map_groups(part, batch_format="numpy")
    return merge_parts(bytes(row["part"]) for row in parts.iter_rows())
