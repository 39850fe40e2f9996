"""Which rows are one query: group sizes (LightGBM's convention), query ids, or one query per row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import flag_array, hash_codes, ids_as_array, plain_array
from ndcg_ml._core.frames import refuse_index
from ndcg_ml._core.layout import Groups, IntArray, keys_of, ranges, starts_of
from ndcg_ml._core.one_line import brief


def group_rows(labels: NDArray[Any], qid: Any, group: Any, mask: Any) -> Groups:
    if qid is not None and group is not None:
        raise ValueError("qid and group must not be given together; pass one of them; got both.")
    if labels.ndim == 2:
        if qid is not None or group is not None:
            name = "qid" if qid is not None else "group"
            raise ValueError(
                f"{name} is for 1-D input; y_true is 2-D (shape {labels.shape}), where each row is one query. "
                f"Leave {name} out, or flatten y_true and y_score."
            )
        n_queries, width = labels.shape
        if n_queries == 0:
            raise ValueError(
                f"y_true must hold at least one query; got shape {labels.shape}. There is nothing to evaluate."
            )
        sizes = np.full(n_queries, width, dtype=np.intp)
        groups = Groups(sizes=sizes, starts=starts_of(sizes), order=None, n_rows=n_queries * width)
        return groups if mask is None else groups.keep(flag_array(mask, "mask", labels.shape).ravel())
    if labels.ndim != 1:
        raise ValueError(f"y_true must be one- or two-dimensional; got shape {labels.shape}.")
    if mask is not None:
        raise ValueError("mask is for 2-D input, where rows are padded to one length; y_true is 1-D. Leave mask out.")
    if qid is not None:
        return group_by_ids(qid, labels.size)
    if group is not None:
        return group_by_sizes(group, labels.size)
    raise ValueError(
        "qid or group must be given with 1-D input: which rows belong to one query is never guessed. Pass qid= (one "
        "id per row, any dtype, any order) or group= (sizes of consecutive queries). For one query, "
        "group=[len(y_true)]. If y_true holds classes, and y_score has a column for each, pass "
        "np.eye(y_score.shape[1])[y_true] as y_true. As a scorer of scikit-learn, use ndcg_ml.sklearn.ndcg_scorer()."
    )


def group_by_sizes(group: Any, n_rows: int) -> Groups:
    """Group consecutive rows by the number of rows of each query (LightGBM's convention)."""
    refuse_index(group, "group", "Pass qid=, one id per row")
    sizes = plain_array(group, "group")
    if sizes.ndim != 1:
        raise ValueError(f"group must be one-dimensional, a size for each query; got shape {sizes.shape}.")
    if sizes.size == 0:
        raise ValueError("group must hold at least one query size; got none. There is nothing to evaluate.")
    if sizes.dtype.kind not in "iu":
        raise TypeError(
            f"group must hold integers, the number of rows of each query; got dtype {sizes.dtype}. "
            "If these are ids, one per row, pass them as qid=."
        )
    if sizes.min() < 0:
        raise ValueError(f"group must hold sizes >= 0; got {sizes.min()}.")
    # A sum of sizes beyond the number of rows may overflow 64 bits.
    total = sum(sizes.tolist()) if sizes.max() > n_rows else int(sizes.sum())
    sizes = sizes.astype(np.intp)
    if total != n_rows:
        hint = " It has one entry per row: if these are ids, pass them as qid=." if sizes.size == n_rows else ""
        raise ValueError(f"group must sum to the number of rows, {n_rows}; got a sum of {total}.{hint}")
    return Groups(sizes=sizes, starts=starts_of(sizes), order=None, n_rows=n_rows)


def group_by_ids(qid: Any, n_rows: int) -> Groups:
    """Group rows by one id per row, of any dtype and in any order. Queries are in order of first appearance."""
    ids = ids_as_array(qid)
    if ids.size != n_rows:
        hint = ""
        if ids.dtype.kind in "iu" and ids.size < n_rows and ids.size and int(ids.sum()) == n_rows:
            hint = " They sum to the number of rows: if these are sizes, pass them as group=."
        raise ValueError(f"qid must have one id per label; got {ids.size} ids and {n_rows} labels.{hint}")
    if ids.size == 0:
        raise ValueError("qid must hold at least one row; got none. There is nothing to evaluate.")
    if ids.dtype == object:
        codes, unique = hash_codes(ids)
        return replace(_group_sortable_ids(codes), ids=unique)
    return _group_sortable_ids(ids)


def unique_ids(ids: Any, n_queries: int | None = None, name: str = "qid") -> NDArray[Any]:
    """Return the ids of queries that have no rows here, one for each, as an array. None may be missing or repeated."""
    array = ids_as_array(ids, name, "query")
    if n_queries not in (None, array.size):
        raise ValueError(f"{name} must have one id per query, {n_queries}; got {array.size}.")
    groups = group_by_ids(array, array.size)  # raises if an id is missing
    if groups.n_queries < array.size:
        assert groups.ids is not None
        repeated = keys_of(groups.ids[groups.sizes > 1])[0]
        raise ValueError(
            f"{name} must have each query once; got {brief(repeated)} more than once. Join or average its rows first."
        )
    return array


def _group_sortable_ids(ids: NDArray[Any]) -> Groups:
    """Group sortable ids. Consecutive rows with the same id are one piece, and only pieces are sorted."""
    first = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    heads, lengths = ids[first], np.diff(np.append(first, ids.size))
    whole = Groups(sizes=lengths, starts=first, order=None, n_rows=ids.size, ids=heads)
    if (heads[1:] > heads[:-1]).all():  # ascending ids: each query is one piece
        return whole
    keys = hash_codes(heads)[0] if heads.dtype.kind in "SU" else heads  # text takes longer to sort than to hash
    pieces = _stable_argsort(keys)
    ordered = keys[pieces]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    if begins.size == pieces.size:
        return whole
    seen = pieces[begins]
    by_appearance = np.argsort(seen)
    n_pieces = np.diff(np.append(begins, pieces.size))[by_appearance]
    pieces = pieces[ranges(begins[by_appearance], n_pieces)]
    sizes = np.add.reduceat(lengths[pieces], starts_of(n_pieces))
    return Groups(
        sizes=sizes,
        starts=starts_of(sizes),
        order=ranges(first[pieces], lengths[pieces]),
        n_rows=ids.size,
        ids=heads[seen[by_appearance]],
    )


def _stable_argsort(keys: NDArray[Any]) -> IntArray:
    """Return a stable argsort, in a tenth of the time if an integer and its position fit 63 bits."""
    if keys.dtype.kind in "iu":
        lowest, room = keys.min(), 63 - keys.size.bit_length()
        if int(keys.max()) - int(lowest) < 1 << room:
            packed = keys.astype(np.int64)
            packed -= lowest.astype(np.int64)
            packed <<= 63 - room
            packed |= np.arange(keys.size)
            packed.sort()
            packed &= (1 << (63 - room)) - 1
            return packed.astype(np.intp, copy=False)  # an index has 32 bits in WebAssembly
    return np.argsort(keys, kind="stable")
