"""Evaluate recommendations from a full catalogue: retrieved item numbers against held-out interactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._core.arrays import convert_ids, plain_array, real_array
from ndcg_ml._core.frames import refuse_unknown_ids
from ndcg_ml._core.layout import FloatArray, Groups, IntArray, keys_of, starts_of
from ndcg_ml._core.mean_and_empty_queries import Totals
from ndcg_ml._core.queries import Queries, Weights, find_repeats, read_weights
from ndcg_ml._core.query_groups import group_by_ids, unique_ids
from ndcg_ml._core.scores import Ranking
from ndcg_ml._files.read_run import refuse_lost_topics, warn_of_empty_answers
from ndcg_ml._plain.checks import K, KSpec, OneK, cutoffs, is_vector, warn_caller
from ndcg_ml._plain.messages import brief
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.results.evaluation import Evaluation, evaluation_from_totals, of_run

__all__ = ["HeldOut", "evaluate_topk"]

HeldOut: TypeAlias = Any
"""A SciPy CSR matrix of grades, users by items; or three arrays of equal length: users, items and grades."""

# Rows per batch: batches fit in the processor's cache and bound the memory of a call.
_BATCH_ROWS = 1 << 18
# Up to this number, a user of a batch and an item can be combined in 64 bits.
_MOST_ITEMS = 1 << 40


# fmt: off
@overload
def evaluate_topk(
    retrieved_ids: ArrayLike | Sequence[Sequence[int]], held_out: HeldOut, *, flavor: Flavor | str = ...,
    k: OneK = ..., qid: ArrayLike | None = ..., query_weight: Weights | None = ...,
) -> Evaluation[float]: ...
@overload
def evaluate_topk(
    retrieved_ids: ArrayLike | Sequence[Sequence[int]], held_out: HeldOut, *, flavor: Flavor | str = ...,
    k: Sequence[K], qid: ArrayLike | None = ..., query_weight: Weights | None = ...,
) -> Evaluation[dict[K, float]]: ...
# fmt: on
def evaluate_topk(
    retrieved_ids: ArrayLike | Sequence[Sequence[int]],
    held_out: HeldOut,
    *,
    flavor: Flavor | str = "trec_eval",
    k: KSpec = ...,
    qid: ArrayLike | None = None,
    query_weight: Weights | None = None,
) -> Evaluation[Any]:
    """Compute the NDCG of the items that a recommender retrieved for each user, against held-out interactions.

    Like ``evaluate_run``, for users and items that are numbered 0, 1, 2, ... as in the matrices of recommenders. No
    dicts are needed, and the scores of a whole catalogue need not be in memory at once.

    Parameters
    ----------
    retrieved_ids : array-like of int, shape (n_users, depth), or list of lists of int
        The numbers of the items retrieved for each user, best first. -1 is padding or a masked item; the items after
        it move up.
    held_out : SciPy CSR matrix or array, shape (n_users, n_items), or tuple of three arrays (users, items, grades)
        The held-out interactions with their grades, in any order, which only a ``given`` ideal follows. An entry of
        grade 0 is also a judgement. A user without entries is an empty query. For implicit feedback, you can pass the
        relevant items only: a list of lists, one per user, or a dict by row (by id, with `qid`). Repeats in a list
        count once.
    flavor : Flavor or str, default "trec_eval"
        As for ``evaluate_run``; most recommenders have a preset: ``"implicit"``, ``"recbole"``, ``"cornac"``,
        ``"lenskit"``, ``"replay"``, ... No items are tied, so ``ties`` has no effect. ``duplicates`` decides how to
        count an item that is repeated for a user.
    k : int, None or sequence of them, optional
        As for ``ndcg_score``. Default: the flavor's cut-off. Only `depth` items are ranked, even if `k` is larger.
    qid : array-like of shape (n_users,), optional
        The ids of the users, one per row, for the table and for ``compare``. Default: row numbers.
    query_weight : array-like of float, shape (n_users,), pandas.Series, or mapping, optional
        Weights of the users, as for ``evaluate_run``: by the ids of `qid` or row numbers, or one per row.

    Returns
    -------
    Evaluation
        As in ``evaluate_run``, which gives the same numbers for the same data.

    Raises
    ------
    TypeError
        Ids or users that are not integers; a sparse matrix that is not in CSR format; a tensor.
    ValueError
        Shapes that do not agree; an item beyond the columns of the matrix, below -1 if retrieved or
        below 0 if held out; repeated grades; a repeated id in `qid`; grades that are not finite; a repeated item for a
        user under ``duplicates="raise"``; items without a grade under ``unjudged="raise"``; or as for ``ndcg_score``.

    Warns
    -----
    UserWarning
        No items are retrieved for a user who has relevant items; or all lists are shorter than the cut-off, although
        there are more items.

    See Also
    --------
    evaluate_run : the same from dicts, files and data frames.

    Notes
    -----
    NDCG@k is DCG@k / IDCG@k. The gain of a retrieved item is gain(grade) if it is held out, and 0 otherwise (under
    ``unjudged="zero"``, as in all presets of recommenders). A ``global`` ideal contains all held-out items.

    Examples
    --------
    >>> retrieved = [[2, 0, 1], [1, -1, -1]]
    >>> held_out = ([0, 0, 1], [2, 3, 0], [1, 1, 1])  # user 0 has items 2 and 3 held out, user 1 item 0
    >>> result = evaluate_topk(retrieved, held_out, flavor="recbole", k=2)
    >>> round(result.value, 6), result.per_query.ndcg.round(6)
    (0.306574, array([0.613147, 0.      ]))
    """
    # Check all arguments before computing.
    flavor = as_flavor(flavor)
    ks, several = cutoffs(k, flavor)
    retrieved = _read_retrieved(retrieved_ids)
    n_users = len(retrieved)
    users = None if qid is None else unique_ids(qid, n_users)
    ids = np.arange(n_users) if users is None else users.copy()
    weight = None
    if query_weight is not None:
        weight = read_weights(query_weight, group_by_ids(ids, n_users))
        refuse_unknown_ids(query_weight, "query_weight", keys_of(ids))
    held = _read_held_out(held_out, n_users, users)
    _check_items(retrieved, held)
    _check_grades(held, flavor)

    # Items are ranked in the order of their columns, so there are no ties.
    ranked = flavor.replace(ties="first")
    totals, counts, judged, sizes = [], [], [], []
    for first, items, batch in _batches(retrieved, held):
        queries, n_retrieved, hits = _queries(items, batch, flavor, first)
        prepared = Ranking(ranked, k, queries)
        scores = -np.arange(queries.groups.n_rows, dtype=np.float64)
        totals.append(prepared.totals(scores))
        counts.append(prepared.counts(scores))
        judged.append(np.stack([_fraction(hits, n_retrieved, cut) for cut in ks], axis=1))
        sizes.append(n_retrieved)

    # Batches hold complete users, so their totals can be concatenated.
    dcg, ideal = (np.concatenate([getattr(part, name) for part in totals]) for name in ("dcg", "ideal"))
    columns = {name: np.concatenate([part[name] for part in counts]) for name in counts[0]}
    evaluation = evaluation_from_totals(Totals(ks, ids, dcg, ideal, weight), flavor, several, columns)
    result = of_run(evaluation, np.concatenate(sizes), np.concatenate(judged), "users", ids[:0], ids[:0])
    refuse_lost_topics(result.per_query, flavor, of_users=True)
    warn_of_empty_answers(result.per_query, (), of_users=True)
    longest, largest = int(result.per_query.n_retrieved.max()), max(cut or 0 for cut in ks)
    if 0 < longest < largest and not (held.has_columns and held.n_items < largest):
        warn_caller(
            f"every list of retrieved_ids is shorter than the cut-off {largest}; the longest has {longest} items. "
            f"Retrieve {largest} items for each user, or pass k={longest}."
        )
    return result


# -- reading the arguments --------------------------------------------------------------------------------------------


class _Held(NamedTuple):
    """Held-out entries by user, and by item within a user."""

    starts: IntArray  # first entry of each user, and the end of the last, in the entries of all users
    items: NDArray[np.signedinteger[Any]]
    grades: FloatArray
    places: IntArray  # position in the input, whose order the ideal "given" follows
    n_items: int
    has_columns: bool  # whether a matrix defines the number of items


def _read_retrieved(value: Any) -> NDArray[np.integer[Any]]:
    """Return the items as a matrix, padded with -1."""
    if isinstance(value, (list, tuple)) and len({len(row) if is_vector(row) else None for row in value}) > 1:
        for at, row in enumerate(value):
            if not is_vector(row):
                raise ValueError(f"retrieved_ids must have one list of items per user; row {at} is {brief(row)}.")
        sizes = np.fromiter(map(len, value), np.int64, len(value))
        flat = _as_integers(list(chain.from_iterable(value)), "retrieved_ids")
        ids = np.full((sizes.size, int(sizes.max())), -1, dtype=np.int64)
        ids[np.arange(ids.shape[1]) < sizes[:, None]] = flat
        return ids
    ids = plain_array(value, "retrieved_ids")
    if ids.ndim != 2:
        raise ValueError(
            f"retrieved_ids must have one row of item numbers per user, shape (n_users, depth); got shape {ids.shape}. "
            "For one user, pass [ids]; for dicts by user, use evaluate_run."
        )
    if not len(ids):
        raise ValueError(f"retrieved_ids must hold at least one user; got shape {ids.shape}.")
    if not ids.size:  # no items were retrieved
        return np.full((len(ids), 1), -1)
    return _as_integers(ids, "retrieved_ids")


def _as_integers(value: Any, name: str) -> NDArray[np.integer[Any]]:
    ids = plain_array(value, name)
    if ids.dtype == object:
        ids = convert_ids(ids.ravel()).reshape(ids.shape)
    if ids.size and ids.dtype.kind not in "iu":
        fix = "For scores, pass numpy.argsort(-scores, axis=1)[:, :k]. " if name == "retrieved_ids" else ""
        if fix and ids.dtype.kind == "f" and np.isnan(ids).any():
            fix = "If NaN fills short lists, pass numpy.nan_to_num(ids, nan=-1).astype(int). "
        raise TypeError(
            f"{name} must hold integers, numbers from 0; got dtype {ids.dtype}. {fix}Use evaluate_run for other ids."
        )
    if ids.dtype == np.uint64 and ids.size and ids.max() >= _MOST_ITEMS:  # it might become -1, which pads
        raise ValueError(f"{name} must be below 2^40; got {ids.max()}. Number the items 0, 1, 2, ...")
    return ids


def _read_held_out(value: Any, n_users: int, users: NDArray[Any] | None) -> _Held:
    if isinstance(value, Mapping):
        rows = {user: row for row, user in enumerate(range(n_users) if users is None else users.tolist())}
        unknown = [user for user in value if user not in rows]
        if unknown:
            raise ValueError(
                f"keys of held_out must be {'rows of retrieved_ids' if users is None else 'ids in qid'}; got "
                f"{brief(unknown[0])}. Leave out users that were not scored."
            )
        return _read_lists([rows[user] for user in value], list(value.values()), n_users)
    if isinstance(value, list):
        if len(value) != n_users:
            raise ValueError(
                f"held_out as a list must have one list per row of retrieved_ids, {n_users}; got {len(value)}. "
                "Pass users, items and grades as a tuple of three arrays."
            )
        if n_users == 3:
            raise ValueError(
                "held_out must not be a list of three for three users, because it could be (users, items, grades). "
                "Pass dict(enumerate(held_out)), or a tuple of three arrays."
            )
        return _read_lists(list(range(n_users)), value, n_users)
    if all(hasattr(value, name) for name in ("indptr", "indices", "data", "shape")):
        return _read_matrix(value, n_users)
    if isinstance(value, tuple) and len(value) == 3:
        return _read_arrays(value[0], value[1], value[2], n_users)
    hint = (
        "Call its .tocsr()." if hasattr(value, "tocsr") else "Convert a dense array by scipy.sparse.csr_array(array)."
    )
    if isinstance(value, tuple) and len(value) == 2:
        hint = "Add grades: (users, items, numpy.ones(len(items)))."
    raise TypeError(
        "held_out must be a SciPy CSR matrix of users by items, a tuple of three arrays (users, items, grades), or the "
        f"relevant items of each user as a list of lists or a dict; got {type(value).__name__}. {hint}"
    )


def _read_lists(rows: list[int], items: list[Any], n_users: int) -> _Held:
    """Return relevant items by user, all of grade 1. A repeated item is one."""
    invalid = next((each for each in items if not isinstance(each, (list, tuple, set, frozenset, np.ndarray))), None)
    if invalid is not None:
        raise TypeError(
            f"held_out must have a list of relevant items for each user; got {brief(invalid)}. Pass grades as a SciPy "
            "CSR matrix or a tuple of three arrays (users, items, grades)."
        )
    users = np.repeat(np.array(rows, dtype=np.int64), [len(each) for each in items])
    flat = plain_array(list(chain.from_iterable(items)), "held_out items")
    return _read_arrays(users, flat, np.ones(users.size), n_users, once=True)


def _read_matrix(matrix: Any, n_users: int) -> _Held:
    if getattr(matrix, "format", "csr") != "csr":
        raise TypeError(f"held_out must be in CSR format; got {matrix.format}. Call its .tocsr().")
    if len(matrix.shape) != 2 or matrix.shape[0] != n_users:
        raise ValueError(
            f"held_out must have one row per row of retrieved_ids, {n_users}; got shape {tuple(matrix.shape)}. "
            "If only some users were scored, pass held_out[those_users]."
        )
    starts = np.asarray(matrix.indptr)
    used = slice(int(starts[-1]))  # unused slots may follow the entries
    users = np.repeat(np.arange(n_users), np.diff(starts))
    held = _read_arrays(users, np.asarray(matrix.indices)[used], matrix.data[used], n_users)
    return held._replace(n_items=int(matrix.shape[1]), has_columns=True)


def _read_arrays(users: Any, items: Any, grades: Any, n_users: int, *, once: bool = False) -> _Held:
    ids = [_as_integers(users, "held_out users"), _as_integers(items, "held_out items")]
    values = real_array(grades, "the grades of held_out").astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(
            f"the grades of held_out must be finite; got {values[~np.isfinite(values)][0]}. Leave the entry out."
        )
    shapes = (*(numbers.shape for numbers in ids), values.shape)
    if len(set(shapes)) > 1 or values.ndim != 1:
        raise ValueError(
            "held_out must be three arrays of equal length (users, items, grades); got shapes "
            f"{', '.join(map(str, shapes))}."
        )
    row, item = (numbers.astype(np.int64) for numbers in ids)
    if row.size and (row.min() < 0 or row.max() >= n_users):
        invalid = row.min() if row.min() < 0 else row.max()
        raise ValueError(
            f"held_out users must be row numbers of retrieved_ids, from 0 to {n_users - 1}; got {invalid}. "
            "Leave out users that were not scored, and number the others by their rows."
        )
    rising = (row[1:] > row[:-1]) | ((row[1:] == row[:-1]) & (item[1:] >= item[:-1]))
    places = np.arange(row.size)
    if not rising.all():  # usually they are already sorted
        places = np.lexsort((item, row))
        row, item, values = row[places], item[places], values[places]
    again = np.append(False, (row[1:] == row[:-1]) & (item[1:] == item[:-1]))[: row.size]
    if once:
        row, item, values, places = row[~again], item[~again], values[~again], places[~again]
    elif again.any():
        at = int(again.argmax())
        raise ValueError(
            f"held_out must have each item once per user; user {row[at]} has item {item[at]} twice. Leave one of the "
            "entries out, or add their grades (.sum_duplicates() of a matrix)."
        )
    starts = np.append(0, np.cumsum(np.bincount(row, minlength=n_users)))
    return _Held(starts, item, values, places, int(item.max(initial=-1)) + 1, False)


def _check_items(retrieved: NDArray[Any], held: _Held) -> None:
    lowest, highest = int(retrieved.min()), int(retrieved.max())
    if lowest < -1:
        raise ValueError(f"retrieved_ids must be item numbers, or -1 for none; got {lowest}.")
    if held.items.min(initial=0) < 0:
        raise ValueError(f"held_out items must be numbers >= 0; got {held.items.min()}.")
    if held.has_columns and highest >= held.n_items:
        raise ValueError(
            f"retrieved_ids must be columns of held_out, from 0 to {held.n_items - 1}; got {highest}. Both must use "
            "the same item numbers."
        )
    if held.items.max(initial=-1) >= held.n_items:
        raise ValueError(
            f"held_out items must be columns, from 0 to {held.n_items - 1}; got {held.items.max()}. Give the matrix "
            "as many columns as there are items."
        )
    if (largest := max(highest, held.n_items - 1)) >= _MOST_ITEMS:
        raise ValueError(f"item numbers must be below 2^40; got {largest}. Number the items 0, 1, 2, ...")


def _check_grades(held: _Held, flavor: Flavor) -> None:
    if flavor.negative == "raise" and held.grades.size and held.grades.min() < 0:
        raise ValueError(
            f"the grades of held_out must be >= 0 under negative='raise'; got {held.grades.min()}. "
            "Choose a flavor with negative='zero', 'drop' or 'allow'."
        )


# -- a batch of users --------------------------------------------------------------------------------------------------


def _batches(retrieved: NDArray[Any], held: _Held) -> Iterator[tuple[int, NDArray[Any], _Held]]:
    """Yield batches of users: the first user, and their retrieved and held-out items."""
    n_users, depth = retrieved.shape
    rows = np.arange(1, n_users + 1, dtype=np.int64) * depth + held.starts[1:]
    marks = np.arange(_BATCH_ROWS, int(rows[-1]), _BATCH_ROWS)
    cuts = np.unique([0, *np.searchsorted(rows, marks).tolist(), n_users])
    for begin, end in pairwise(cuts.tolist()):
        starts = held.starts[begin : end + 1]
        entries = slice(int(starts[0]), int(starts[-1]))
        columns = {name: getattr(held, name)[entries] for name in ("items", "grades", "places")}
        yield begin, retrieved[begin:end], held._replace(starts=starts, **columns)


def _queries(
    retrieved: NDArray[Any], held: _Held, flavor: Flavor, first: int
) -> tuple[Queries, IntArray, NDArray[np.bool_]]:
    """Return the queries, the number of retrieved items of each user, and which items are held out."""
    n_users = len(retrieved)
    # Remove gaps, so that an item's column is its rank.
    real = retrieved >= 0
    n_retrieved = np.count_nonzero(real, axis=1)
    if (real[:, 1:] > real[:, :-1]).any():
        order = np.argsort(~real, axis=1, kind="stable")
        retrieved, real = np.take_along_axis(retrieved, order, axis=1), np.take_along_axis(real, order, axis=1)

    # Combine user and item into one number. The numbers of held-out entries are already sorted.
    users = np.arange(n_users, dtype=np.int64)  # the default has 32 bits on Windows, under NumPy 1
    user = np.repeat(users, n_retrieved)
    item = retrieved[real].astype(np.int64)
    width = max(held.n_items, int(retrieved.max()) + 1)
    held_user = np.repeat(users, np.diff(held.starts))
    keys, held_keys = user * width + item, held_user * width + held.items
    at = np.searchsorted(held_keys, keys)
    hit = np.append(held_keys, -1)[at] == keys
    if flavor.unjudged == "raise" and not hit.all():
        invalid = int(np.flatnonzero(~hit)[0])
        raise ValueError(
            f"retrieved items must be held out under unjudged='raise'; got item {item[invalid]} of user "
            f"{first + user[invalid]}. Use {flavor._advice(unjudged='zero')}, or choose unjudged='condense'."
        )
    unretrieved = np.ones(held_keys.size, dtype=bool)
    unretrieved[at[hit]] = False
    rest = np.flatnonzero(unretrieved)

    # The rows of a user: the retrieved items, then the other held-out items.
    sizes = n_retrieved + np.bincount(held_user[rest], minlength=n_users)
    starts = starts_of(sizes)
    is_retrieved = np.arange(int(sizes.sum())) < np.repeat(starts + n_retrieved, sizes)
    groups = Groups(sizes=sizes, starts=starts, order=None, n_rows=is_retrieved.size)

    def arrange(of_items: NDArray[Any], of_rest: NDArray[Any]) -> NDArray[Any]:
        rows = np.empty(is_retrieved.size, dtype=of_items.dtype)
        rows[is_retrieved], rows[~is_retrieved] = of_items, of_rest
        return rows

    # Item ids are arranged only if a user has an item twice, which is rare.
    repeats = None
    in_order = np.sort(retrieved)
    again = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    if again.any():
        row = int(np.flatnonzero(again.any(axis=1))[0])
        if flavor.duplicates == "raise":
            raise ValueError(
                f"retrieved_ids must have each item once per user; user {first + row} has item "
                f"{in_order[row, 1:][again[row]][0]} twice. Remove the duplicates, or choose a flavor with "
                "duplicates='first' or 'count'."
            )
        names = arrange(item, held.items[rest])
        repeats = find_repeats(names, groups, names)
    places = arrange(np.append(held.places, 0)[at], held.places[rest]) if flavor.ideal == "given" else None
    hits = np.zeros_like(real)
    hits[real] = hit
    grades = np.where(hit, np.append(held.grades, np.nan)[at], np.nan)
    queries = Queries(arrange(grades, held.grades[rest]), groups, is_retrieved, repeats=repeats, given_order=places)
    return queries, n_retrieved, hits


def _fraction(hits: NDArray[np.bool_], n_retrieved: IntArray, k: int | None) -> FloatArray:
    """Return the fraction of the first k retrieved items of each user that are held out; nan if there are none."""
    depth = hits.shape[1] if k is None else min(k, hits.shape[1])
    n_hits = np.count_nonzero(hits[:, :depth], axis=1)
    n_first = np.minimum(n_retrieved, depth)
    return np.divide(n_hits, n_first, out=np.full(len(hits), np.nan), where=n_first > 0)
