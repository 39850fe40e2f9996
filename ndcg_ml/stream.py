"""Divide a stream of rows into batches of complete queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.frames import is_frame
from ndcg_ml._core.lazy_frames import refuse_lazy
from ndcg_ml._core.queries import group_by_ids, ids_as_array, plain_array, real_array, score_array
from ndcg_ml.query_ids import convert_ids, digests, equals_id, join_ids


def whole_queries(batches: Iterable[Sequence[Any]]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield the rows of a stream in batches of complete queries."""
    refuse_lazy(batches, "batches")
    if not isinstance(batches, Iterable) or is_frame(batches) or isinstance(batches, (str, bytes, Mapping)):
        hint = " For a frame in memory, evaluate(frame, columns={...})." if is_frame(batches) else ""
        raise TypeError(
            "batches must be an iterable of tuples (y_true, y_score, qid), such as a generator that reads a file; got "
            f"{type(batches).__name__}.{hint}"
        )
    pending: list[tuple[NDArray[Any], ...]] = []  # rows of the last query, which may continue
    for number, batch in enumerate(batches):
        rows = _columns(batch, number)
        ids = rows[2]
        if not ids.size:
            continue
        before, first = (digests(column[:1]) for column in (pending[0][2] if pending else ids, ids))
        if before[0] != first[0]:  # merging raises if kinds of ids differ; joining would convert them to strings
            yield _join(pending)
            pending = []
        last = equals_id(ids, ids[-1])
        if pending and bool(last.all()) and before[1] == first[1]:
            pending.append(rows)
            continue
        whole = [*pending, tuple(column[~last] for column in rows)]
        pending = [tuple(column[last] for column in rows)]
        joined = _join([piece for piece in whole if piece[2].size])
        if joined:
            yield joined
    if pending:
        yield _join(pending)


def _join(pieces: Sequence[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    """Join pieces of rows; return an empty tuple if there are none."""
    if not pieces:
        return ()
    labels, scores, ids = zip(*pieces, strict=True)
    return np.concatenate(labels), np.concatenate(scores), join_ids(ids)


def _columns(batch: Sequence[Any], number: int) -> tuple[NDArray[Any], ...]:
    if not isinstance(batch, (tuple, list)) or len(batch) != 3:
        raise TypeError(
            f"batches must hold tuples (y_true, y_score, qid); batch {number} is a {type(batch).__name__}"
            f"{f' of {len(batch)}' if isinstance(batch, (tuple, list)) else ''}."
        )
    labels, scores = real_array(batch[0], "y_true"), score_array(batch[1], "y_score")
    ids = ids_as_array(batch[2]) if labels.ndim == 1 else plain_array(batch[2], "qid")
    if len({labels.shape, scores.shape, ids.shape}) != 1 or labels.ndim != 1:
        raise ValueError(
            f"a batch must have one label, score and query id per row; batch {number} has shapes {labels.shape}, "
            f"{scores.shape} and {ids.shape}."
        )
    if ids.size and ids.dtype == object:
        group_by_ids(ids, ids.size)  # raises if an id is missing: nan does not equal itself
    return labels, scores, convert_ids(ids)
