"""Which rows are one query: group sizes (LightGBM's convention), query ids, or one query per row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import column_codes, flag_array, hash_codes, ids_as_array, is_missing, plain_array
from ndcg_ml._core.frames import refuse_index
from ndcg_ml._core.layout import ODD, BoolArray, Groups, IntArray, keys_of, starts_of
from ndcg_ml._plain.checks import warn_caller
from ndcg_ml._plain.messages import brief


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
        n_lists, width = labels.shape
        sizes = np.full(n_lists, width, dtype=np.intp)
        groups = Groups(sizes=sizes, starts=starts_of(sizes), order=None, n_rows=n_lists * width)
        if mask is not None:
            groups = groups.keep(flag_array(mask, "mask", labels.shape).ravel())
            # A list without a document is padding of a batch, not a query.
            filled = groups.sizes > 0
            groups = replace(groups, sizes=groups.sizes[filled], starts=groups.starts[filled], filled=filled)
        if groups.n_queries * width == 0:
            raise ValueError(
                f"y_true must hold at least one query, a row with a document; got none in shape {labels.shape}. "
                "There is nothing to evaluate."
            )
        return groups
    if labels.ndim != 1:
        raise ValueError(f"y_true must be one- or two-dimensional; got shape {labels.shape}.")
    if mask is not None:
        raise ValueError("mask is for 2-D input, where rows are padded to one length; y_true is 1-D. Leave mask out.")
    if qid is not None:
        return group_by_ids(qid, labels.size)
    if group is not None:
        groups = group_by_sizes(group, labels.size)
        if n_empty := int((groups.sizes == 0).sum()):
            warn_caller(
                f"group holds {n_empty} sizes of 0, which are queries without documents, as in LightGBM. If they are "
                "gaps between ids that np.bincount counted, pass the ids as qid=, or group=sizes[sizes > 0]."
            )
        return groups
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
    coded = column_codes(qid)
    if coded is not None and coded[0].size == n_rows:
        groups = _group_sortable_ids(coded[0])
        ids = ids_as_array(coded[1](groups.starts if groups.order is None else groups.order[groups.starts]))
        if len({*ids.tolist()}) == ids.size and not any(map(is_missing, ids.tolist())):
            return replace(groups, ids=ids)
    ids = ids_as_array(qid)
    if ids.size != n_rows:
        hint = ""
        if ids.dtype.kind in "iu" and ids.size < n_rows and ids.size and int(ids.sum()) == n_rows:
            hint = " They sum to the number of rows: if these are sizes, pass them as group=."
        raise ValueError(f"qid must have one id per label; got {ids.size} ids and {n_rows} labels.{hint}")
    if ids.size == 0:
        raise ValueError("qid must hold at least one row; got none. There is nothing to evaluate.")
    if ids.dtype == object:
        codes, unique = hash_codes(ids.tolist())
        return replace(_group_sortable_ids(codes), ids=unique)
    return _group_sortable_ids(ids)


def unique_ids(
    ids: Any, n_queries: int | None = None, name: str = "qid", filled: BoolArray | None = None
) -> NDArray[Any]:
    """Return the ids of queries that have no rows here, one for each, as an array. None may be missing or repeated.

    `filled` is as in ``Groups``: other padded lists have an id that is not used.
    """
    array = ids_as_array(ids, name, "query")
    if n_queries not in (None, array.size):
        raise ValueError(f"{name} must have one id per query, {n_queries}; got {array.size}.")
    array = array if filled is None else array[filled]
    groups = group_by_ids(array, array.size)  # raises if an id is missing
    if groups.n_queries < array.size:
        assert groups.ids is not None
        repeated = keys_of(groups.ids[groups.sizes > 1])[0]
        raise ValueError(
            f"{name} must have each query once; got {brief(repeated)} more than once. Join or average its rows first."
        )
    return array


def _group_sortable_ids(ids: NDArray[Any]) -> Groups:
    """Group sortable ids. Of consecutive rows with the same id, only the first is looked up, if this saves memory."""
    starts, n_rows = np.append(True, ids[1:] != ids[:-1]), ids.size
    n_pieces = int(np.count_nonzero(starts))
    in_pieces = 2 * n_pieces < n_rows
    heads = ids[starts] if in_pieces else ids
    codes, seen = _number(heads)
    unique = heads[seen]
    if seen.size == n_pieces:  # each query is one piece
        first = np.flatnonzero(starts)
        return Groups(sizes=np.diff(np.append(first, n_rows)), starts=first, order=None, n_rows=n_rows, ids=unique)
    if in_pieces:
        codes = codes[np.cumsum(starts) - 1]
    sizes = np.bincount(codes.astype(np.intp, copy=False))  # an index has 32 bits in WebAssembly
    # A code and a row fit 63 bits together, and sort in a tenth of the time of a stable argsort.
    bits = n_rows.bit_length()
    codes <<= bits
    codes |= np.arange(n_rows)
    codes.sort()
    codes &= (1 << bits) - 1
    order = codes.astype(np.intp, copy=False)
    return Groups(sizes=sizes, starts=starts_of(sizes), order=order, n_rows=n_rows, ids=unique)


def _number(ids: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Return the ids numbered by first appearance, and the position of the first of each number."""
    is_text = ids.dtype.kind in "SU"
    keys = _hashes(ids) if is_text else ids
    if keys.dtype.kind in "iu" and int(keys.max()) - int(keys.min()) < 4 * keys.size:
        places = keys.astype(np.int64) - keys.min().astype(np.int64)
    else:
        by_key = np.argsort(keys)
        places, ordered = np.zeros(ids.size, dtype=np.int64), keys[by_key]
        places[by_key[1:]] = np.cumsum(ordered[1:] != ordered[:-1])
    codes, seen = _renumber(places)
    if is_text and not (ids[seen][codes] == ids).all():  # two texts have one hash
        return _renumber(hash_codes(ids.tolist())[0])
    return codes, seen


def _renumber(places: IntArray) -> tuple[IntArray, IntArray]:
    """Return places renumbered from 0 by first appearance, and the first position of each number."""
    first = np.full(int(places.max()) + 1, places.size, dtype=np.int64)
    # Assigned in reverse: if a place occurs several times, NumPy keeps the last value, which is the first position.
    first[places[::-1]] = np.arange(places.size)[::-1]
    seen = np.sort(first[first < places.size])
    first[places[seen]] = np.arange(seen.size)
    return first[places], seen


def _hashes(text: NDArray[Any]) -> NDArray[np.uint64]:
    """Return an integer for each text, in an eighth of the time of Python's hash. Different texts may share one."""
    n_words, letters = -(-text.dtype.itemsize // 8), 8 if text.dtype.kind == "S" else 2  # in a word of 64 bits
    words = np.ascontiguousarray(text, dtype=f"{text.dtype.kind}{letters * n_words}").view(np.uint64)
    return np.dot(words.reshape(-1, n_words), np.uint64(ODD) ** np.arange(n_words, dtype=np.uint64))
