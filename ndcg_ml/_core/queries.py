"""Read and check labels, scores, ids and weights of documents. No other module converts arguments to arrays.

Nothing here depends on the flavor. Other modules compute gains from labels, and ranks from scores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._core.checks import EXACT_INTEGERS, axis_too_many, refuse_column, warn_of_lists_of_one, warn_of_swap
from ndcg_ml._core.frames import Axes, align_by_id, match_index, refuse_index, refuse_lazy
from ndcg_ml._core.layout import FloatArray, Groups, IntArray, as_objects, keys_of, ranges, starts_of
from ndcg_ml._core.one_line import brief, brief_text

# -- labels and scores in each other's place --------------------------------------------------------------------------

# Half-precision scores above 256 are all integers, and so are numbers of views. Grades are seldom above this one.
_LARGEST_GRADE = 100
_SAMPLE = 4096


def stride(n: int) -> int:
    """Return the step that takes at most 4,096 of `n` values, so that large arrays cost no time."""
    return max(1, -(-n // _SAMPLE))


def are_fractions(labels: NDArray[Any], rows: IntArray | None = None) -> bool:
    """Whether at least half of the labels in these rows, or of a sample of them, are fractions. NaN is not counted."""
    if labels.dtype.kind != "f":
        return False
    flat = labels.reshape(-1)
    sample = flat[:: stride(flat.size)] if rows is None else flat[rows[:: stride(rows.size)]]
    known = sample[np.isfinite(sample)]
    return bool(known.size and (known == np.floor(known)).mean() <= 0.5)


def are_grades(scores: NDArray[Any]) -> bool:
    """Whether all scores are integers from 0 to 100, and not all are 0."""
    if not scores.size or not (scores.min() >= 0 and 0 < scores.max() <= _LARGEST_GRADE):
        return False
    return bool((scores == np.floor(scores)).all())


# -- all arguments of a score -----------------------------------------------------------------------------------------

Weights: TypeAlias = "ArrayLike | Mapping[Any, float]"
"""One weight per query, in the order of the queries or by id."""


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """Documents that a query lists more than once.

    Attributes
    ----------
    copies : Groups
        The rows of each such document.
    name : str
        The id of one of them, for an error message.
    """

    copies: Groups
    name: str


DocumentNames: TypeAlias = "Callable[[IntArray], list[Any]]"
"""A function that returns the ids of documents, as they were passed, from rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Labels, query groups, and further properties of documents and queries. Made by ``read``.

    Attributes
    ----------
    labels : ndarray of float or integers, shape of y_true
    groups : Groups
        Which rows belong to which query.
    retrieved : ndarray of bool, shape (n_rows,), or None
    doc_id : ndarray of int, shape (n_rows,), or None
        Integers in the order of the document ids, which are compared as text.
    weight : ndarray of float, shape (n_queries,), or None
    axes : Axes or None
        The pandas index of the rows, if any. Scores must have the same.
    repeats : Repeats or None
        Documents that a query lists more than once; None if there are none or no ids.
    given_order : ndarray of int, shape (n_rows,), or None
        Sort key of the judged rows of a query for the ``given`` ideal; None if they are in its order.
    names : callable or None
        Returns the ids of the documents at an array of rows, as they were passed.
    fractional : bool
        Whether most labels are fractions. Then scores that are all small integers cause a warning.
    """

    labels: NDArray[Any]
    groups: Groups
    retrieved: NDArray[np.bool_] | None = None
    doc_id: IntArray | None = None
    weight: FloatArray | None = None
    axes: Axes | None = None
    repeats: Repeats | None = None
    given_order: IntArray | None = None
    names: DocumentNames | None = None
    fractional: bool = False

    @classmethod
    def read(
        cls,
        y_true: ArrayLike,
        *,
        qid: Any = None,
        group: Any = None,
        mask: Any = None,
        retrieved: Any = None,
        doc_id: Any = None,
        query_weight: Weights | None = None,
        whole: bool = True,
    ) -> Queries:
        """Read the arguments of ``ndcg_score``, and refuse invalid ones.

        Parameters
        ----------
        whole : bool, default True
            Whether these are all rows of the data set. If not, lists of one document cause no warning, because parts
            of a stream may consist of them.

        Raises
        ------
        TypeError, ValueError
            As for ``ndcg_score``, apart from errors of the flavor and the scores.

        Warns
        -----
        UserWarning
            Every query has one document.
        """
        axes = match_index({"y_true": y_true, "qid": qid, "mask": mask, "retrieved": retrieved, "doc_id": doc_id})
        labels = _label_array(y_true)
        drop = "{}.squeeze(-1)" if type(y_true) is np.ndarray else "np.asarray({}).squeeze(-1)"
        mask_of_all = f"np.ones({labels.shape}, dtype=bool)"
        refuse_column(
            ("y_true", "y_score"), labels.shape, mask is not None, drop, "qid= (one id per row) or group=", mask_of_all
        )
        groups = _layout(labels, qid, group, mask)
        if whole and groups.n_queries > 1 and groups.sizes.max() == 1:
            warn_of_lists_of_one(groups.n_queries)
        flags = None if retrieved is None else _flag_array(retrieved, "retrieved", labels.shape).reshape(-1)
        codes = repeats = names = None
        if doc_id is not None:
            ids = _id_array(doc_id, "doc_id", labels.ndim)
            codes = _doc_codes(ids, labels.shape)
            repeats, names = find_repeats(codes, groups, ids.reshape(-1)), partial(_names_at, ids)
        weight = None if query_weight is None else read_weights(query_weight, groups, group, axes)
        fractional = are_fractions(labels, groups.order)
        return cls(labels, groups, flags, codes, weight, axes, repeats, names=names, fractional=fractional)

    @property
    def n_queries(self) -> int:
        """Number of queries, those without documents included."""
        return self.groups.n_queries

    @property
    def ids(self) -> NDArray[Any]:
        """The id of each query; its position if there are no ids."""
        return np.arange(self.n_queries) if self.groups.ids is None else self.groups.ids

    def scores(self, y_score: ArrayLike, ranked: Groups) -> NDArray[Any]:
        """Return the scores of these rows as a flat array. `ranked` holds the rows that are ranked.

        Raises
        ------
        TypeError, ValueError
            The scores do not fit the rows, or float64 would make different scores of a query equal.

        Warns
        -----
        UserWarning
            Most labels are fractions and all scores are small integers, as if the two were swapped.
        """
        match_index({"y_score": y_score}, self.axes)
        scores, given = _read_reals(y_score, plain_array(y_score, "y_score"), "y_score")
        if scores.shape != self.labels.shape:
            hint = axis_too_many("y_score", scores.shape, "y_true", self.labels.shape, "{}.squeeze(-1)")
            raise ValueError(f"y_score must have the shape of y_true, {self.labels.shape}; got {scores.shape}.{hint}")
        scores = scores.reshape(-1)
        if given is not None:
            rows = ranked.rows()
            _refuse_equal("y_score", given.reshape(-1)[rows], scores[rows], ranked.codes())
        # Few arrays have such labels, and of those most scores are recognised by a sample.
        if self.fractional and all(are_grades(self._ranked(scores, step)) for step in (stride(scores.size), 1)):
            warn_of_swap("y_true", "y_score")
        return scores

    def _ranked(self, scores: NDArray[Any], step: int) -> NDArray[Any]:
        """Return every `step`-th of the scores without those of padding and of documents that were not retrieved."""
        rows: Any = slice(None, None, step) if self.groups.order is None else self.groups.order[::step]
        ranked: NDArray[Any] = scores[rows]
        return ranked if self.retrieved is None else ranked[self.retrieved[rows]]


# -- which rows are one query -----------------------------------------------------------------------------------------


def _layout(labels: NDArray[Any], qid: Any, group: Any, mask: Any) -> Groups:
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
        return groups if mask is None else groups.keep(_flag_array(mask, "mask", labels.shape).reshape(-1))
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
        "group=[len(y_true)]. As a scorer of scikit-learn, use ndcg_ml.sklearn.ndcg_scorer()."
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
        raise ValueError(f"qid must have one id per row, {n_rows}; got {ids.size}.{hint}")
    if ids.size == 0:
        raise ValueError("qid must hold at least one row; got none. There is nothing to evaluate.")
    if ids.dtype == object:
        codes, unique = _hash_codes(ids)
        return replace(_group_sortable_ids(codes), ids=unique)
    return _group_sortable_ids(ids)


def _group_sortable_ids(ids: NDArray[Any]) -> Groups:
    """Group sortable ids. Consecutive rows with the same id are one piece, and only pieces are sorted."""
    new = np.empty(ids.size, dtype=bool)
    new[0] = True
    np.not_equal(ids[1:], ids[:-1], out=new[1:])
    first = np.flatnonzero(new)
    heads, lengths = ids[first], np.diff(np.append(first, ids.size))
    whole = Groups(sizes=lengths, starts=first, order=None, n_rows=ids.size, ids=heads)
    if (heads[1:] > heads[:-1]).all():  # ascending ids: each query is one piece
        return whole
    keys = _hash_codes(heads)[0] if heads.dtype.kind in "SU" else heads  # text takes longer to sort than to hash
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


# -- ids --------------------------------------------------------------------------------------------------------------


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


def ids_as_array(ids: Any, name: str = "qid", per: str = "row") -> NDArray[Any]:
    """Return query ids as an array in which different ids stay different."""
    array = _id_array(ids, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one id per {per}; got shape {array.shape}.")
    if array.dtype.kind in "TV":  # variable-width strings have no unique() before NumPy 2.3, records no order
        array = array.astype(object)
    if array.dtype.kind in "fmM" and np.isnan(array).any():
        raise ValueError(f"{name} must have an id for every {per}; got a missing value (NaN or NaT).")
    return array


def _hash_codes(ids: NDArray[Any]) -> tuple[IntArray, NDArray[Any]]:
    """Return the ids numbered by first appearance, and the unique ids."""
    values = ids.tolist()
    seen: dict[Any, int] = {}
    try:
        codes = np.fromiter((seen.setdefault(value, len(seen)) for value in values), np.int64, ids.size)
        missing = next((code for value, code in seen.items() if is_missing(value)), None)
    except (ArithmeticError, TypeError, ValueError) as error:  # unhashable ids, and ids that refuse == or its bool()
        raise TypeError(f"qid must hold hashable ids; got an id with {brief_text(str(error))}.") from error
    if missing is not None:
        row = int(np.flatnonzero(codes == missing)[0])
        raise ValueError(f"qid must have an id for every row; got a missing value at row {row}.")
    return codes, as_objects(list(seen))


def is_missing(value: Any) -> bool:
    """Whether an id is None, nan, NaT or pandas.NA, or a tuple that holds one of these."""
    if type(value) is tuple:
        return any(map(is_missing, value))
    return value is None or type(value).__name__ == "NAType" or not value == value  # noqa: SIM201


def _names_at(ids: NDArray[Any], rows: IntArray) -> list[Any]:
    return keys_of(ids.reshape(-1)[rows])


def find_repeats(doc_id: IntArray, groups: Groups, names: NDArray[Any]) -> Repeats | None:
    """Return the documents that a query lists more than once. `names` holds the ids as the caller passed them."""
    in_order = groups.sort_rows(doc_id)
    assert in_order.order is not None
    ordered, query = doc_id[in_order.order], in_order.codes()
    same = (ordered[1:] == ordered[:-1]) & (query[1:] == query[:-1])
    if not same.any():
        return None
    first = np.append(True, ~same)
    document = np.cumsum(first) - 1
    sizes = np.bincount(document)
    rows = in_order.order[sizes[document] > 1]
    sizes = sizes[sizes > 1]
    copies = Groups(sizes=sizes, starts=starts_of(sizes), order=rows, n_rows=groups.n_rows)
    name = names[rows[0]]
    return Repeats(copies, brief(name.item() if isinstance(name, np.generic) else name))


def _doc_codes(ids: NDArray[Any], shape: tuple[int, ...]) -> IntArray:
    """Return integers in the order of the document ids."""
    if ids.dtype.kind == "T":  # NumPy's variable-width strings have no unique() before 2.3
        ids = ids.astype(object)
    if ids.shape != shape:
        raise ValueError(f"doc_id must have the shape of y_true, {shape}; got {ids.shape}.")
    if ids.dtype.kind in "fmM" and np.isnan(ids).any():
        raise ValueError("doc_id must have an id for every document; got a missing value (NaN or NaT).")
    if ids.dtype == object:
        values = ids.reshape(-1).tolist()
        if any(map(is_missing, values)):
            raise ValueError("doc_id must have an id for every document; got a missing value.")
        kinds = set(map(type, values))
        if len(kinds) > 1:
            names = sorted(kind.__name__ for kind in kinds)
            raise TypeError(
                f"doc_id must hold ids of one type, so that they have an order; got {', '.join(names)}. Convert them, "
                "for example to strings."
            )
    unique, codes = np.unique(ids, return_inverse=True)
    if unique.dtype.kind in "iu" or (unique.size and unique.dtype == object and type(unique[0]) is int):
        codes = _text_order(unique)[codes]
    return codes.reshape(-1)


def _text_order(ids: NDArray[Any]) -> IntArray:
    """Return the position of each of these distinct integers in the order of their decimal text.

    trec_eval compares ids as text, "10" before "9"; pandas makes integers of ids that look like numbers.
    """
    place = np.empty(ids.size, dtype=np.int64)
    place[np.argsort(ids.astype("S"))] = np.arange(ids.size)
    return place


# -- weights ----------------------------------------------------------------------------------------------------------


def read_weights(query_weight: Any, groups: Groups, group: Any = None, axes: Axes | None = None) -> FloatArray:
    """Return the weight of each query, in the order of the groups."""
    n_queries = groups.n_queries
    refuse_lazy(query_weight, "query_weight")
    if hasattr(query_weight, "columns") and len(query_weight.shape) == 2:
        raise TypeError(
            "query_weight must be one weight per query; got a frame. Pass a mapping from id to weight, such as "
            "dict(zip(frame['qid'], frame['weight']))."
        )
    if groups.ids is not None:
        query_weight = align_by_id(query_weight, "query_weight", groups.ids)
    elif isinstance(query_weight, Mapping):
        raise TypeError(
            "query_weight must be an array in the order of the queries, because these have no ids; got a mapping. "
            "Pass qid= instead of group."
        )
    elif (known := match_index({"group": group}) if group is not None else axes) is not None:
        match_index({"query_weight": query_weight}, known)
    else:
        refuse_index(query_weight, "query_weight", "Pass qid= instead of group, so that weights are aligned by id")
    with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs, which are refused below
        weight = real_array(query_weight, "query_weight").astype(np.float64)
    if weight.shape != (n_queries,):
        raise ValueError(
            f"query_weight must have one weight per query, shape ({n_queries},); got {weight.shape}. "
            "Queries are in the order of group or of the rows, or of first appearance in qid or the qrels."
        )
    # Beyond these bounds, sums and products with gains could overflow or underflow.
    if not np.isfinite(weight).all() or weight.min() < 0 or not 1e-150 < weight.max() < 1e150:
        raise ValueError(
            "query_weight must be finite and >= 0, with at least one weight above 0, the largest of them between "
            "1e-150 and 1e150; only their ratios matter."
        )
    return weight


def mean_row_weight(weight: NDArray[Any] | None, sizes: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the mean weight of each query's rows, 0 for a query without rows; None without weights."""
    if weight is None:
        return None
    if weight.size != sizes.sum():
        raise ValueError(f"weight must have one entry per row, {sizes.sum()}; got {weight.size}.")
    query = np.repeat(np.arange(sizes.size), sizes)
    total = np.bincount(query, weights=weight, minlength=sizes.size)
    return total / np.maximum(sizes, 1)


# -- one argument as a checked array ----------------------------------------------------------------------------------


def real_array(value: Any, name: str) -> NDArray[Any]:
    """Return the value as a C-contiguous array of float32 or float64. Raise if float64 would round an integer."""
    return _exact(value, plain_array(value, name), name)


def _label_array(value: Any) -> NDArray[Any]:
    """Return labels as real numbers. Integers keep their dtype, because wide lists need no floats."""
    array = plain_array(value, "y_true")
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    if array.dtype.kind in "iu" and array.dtype.isnative:
        return np.asarray(array, order="C")
    return _exact(value, array, "y_true")


def _exact(value: Any, array: NDArray[Any], name: str) -> NDArray[Any]:
    numbers, given = _read_reals(value, array, name)
    if given is not None:
        refuse_rounded(name, given, numbers)
    return numbers


def refuse_rounded(name: str, given: NDArray[Any], numbers: NDArray[Any]) -> None:
    """Raise if float64 has rounded an integer."""
    large = (np.abs(numbers) >= EXACT_INTEGERS) & np.isfinite(numbers)
    for integer, number in zip(given[large].tolist(), numbers[large].tolist(), strict=True):
        if integer != number:
            raise ValueError(
                f"{name} must hold integers that float64 does not round, such as those up to 2^53; got "
                f"{brief(int(integer))}. Use smaller numbers, or convert them with float()."
            )


def _real(array: NDArray[Any], name: str) -> NDArray[Any]:
    if array.dtype.kind in "OSUT":
        odd = next((number for number in array.flat if isinstance(number, _NOT_REAL)), None)
        if odd is not None:  # NumPy would read numbers in strings, and drop imaginary parts
            shown = brief(np.asarray(odd).tolist())
            raise TypeError(
                f"{name} must hold real numbers; got text, such as {shown}. If it is a number, convert it with float()."
                if isinstance(odd, (str, bytes))
                else f"{name} must hold real numbers; got an array of Python objects, such as {shown} of type "
                f"{type(odd).__name__}."
            )
    if array.dtype == object:
        missing = [type(number).__name__ == "NAType" for number in array.flat]
        if any(missing):  # pandas.NA
            array = np.where(np.reshape(missing, array.shape), np.nan, array)
        try:
            with np.errstate(over="ignore"):  # long doubles may be beyond float64
                array = array.astype(np.float64)
        except OverflowError as error:
            raise ValueError(f"{name} must hold numbers that float64 can hold; got one that is too large.") from error
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name} must hold real numbers; got an array of Python objects ({brief_text(str(error))}). "
                "Lists of unequal lengths must be flattened, with qid= or group= saying which rows belong together."
            ) from error
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    dtype = np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64
    with np.errstate(over="ignore", invalid="ignore"):  # long doubles beyond float64; signalling NaNs
        return np.asarray(array, dtype=dtype, order="C")


def score_array(value: Any, name: str) -> NDArray[Any]:
    """Return scores as real numbers. Raise if float64 would make different scores equal."""
    scores, given = _read_reals(value, plain_array(value, name), name)
    if given is not None:
        _refuse_equal(name, given.reshape(-1), scores.reshape(-1), np.zeros(scores.size, dtype=np.intp))
    return scores


def _read_reals(value: Any, given: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return an array of real numbers; also the numbers as given, if float64 may have rounded an integer."""
    numbers = _real(given, name)
    if given.dtype.kind == "f" and type(value) is not np.ndarray and (abs(numbers) >= EXACT_INTEGERS).any():
        # NumPy rounds integers in a sequence with floats, and polars and pyarrow those in a column with nulls.
        listed = getattr(value, "to_list", getattr(value, "to_pylist", None))
        given = np.array(value if listed is None else listed(), dtype=object)
    if (given.dtype.kind == "f" and given.dtype.itemsize <= 8) or given.dtype.kind == "b" or not numbers.size:
        return numbers, None
    if given.dtype.kind in "iu" and int(given.min()) >= -EXACT_INTEGERS and int(given.max()) <= EXACT_INTEGERS:
        return numbers, None
    return numbers, given


def _refuse_equal(name: str, given: NDArray[Any], scores: NDArray[Any], query: IntArray) -> None:
    """Raise if float64 has made different scores of a query equal."""
    known = ~np.isnan(scores)

    def n_distinct(values: NDArray[Any]) -> int:
        codes = np.unique(values[known], return_inverse=True)[1]
        return int(np.unique(np.stack([query[known], codes]), axis=1).shape[1])

    if n_distinct(given) > n_distinct(scores):
        raise ValueError(
            f"{name} must hold scores that stay different in float64; got different ones that become equal, such as "
            "integers beyond 2^53. Subtract the smallest score, or pass ranks."
        )


def _flag_array(value: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the value as a boolean array of the given shape."""
    array = plain_array(value, name)
    if array.dtype != bool:
        raise TypeError(
            f"{name} must be an array of bool, True if the document is included; got dtype {array.dtype}. "
            f"Write {name}.astype(bool) if it holds 0 and 1."
        )
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape of y_true, {shape}; got {array.shape}.")
    return np.ascontiguousarray(array)


_NOT_REAL = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


def plain_array(value: Any, name: str) -> NDArray[Any]:
    """Return the value as a NumPy array of any dtype and shape."""
    refuse_lazy(value, name)
    if type(value).__module__.split(".")[0] == "torch":
        raise TypeError(
            f"{name} is a {type(value).__name__} of torch, and this function takes NumPy arrays. Use "
            f"ndcg_ml.torch.ndcg(scores, labels, ...) on tensors, or pass {name}.detach().cpu().numpy()."
        )
    # NumPy imports numpy.ma at its first use, which takes long, and without it there is no masked array.
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a NumPy masked array, whose mask would be lost. Pass {name}.data, with mask= for 2-D input."
        )
    try:
        return np.asarray(value)
    except MemoryError:
        raise
    except ValueError as error:  # ragged nested lists
        raise ValueError(
            f"{name} must be a one- or two-dimensional array; got {type(value).__name__} that is not one "
            f"({brief_text(str(error))}). "
            "Lists of unequal lengths must be flattened, with qid= or group= saying which rows belong together."
        ) from error
    except Exception as error:  # the value's own conversion may raise anything
        raise TypeError(
            f"{name} must be an array; got {type(value).__name__}, which NumPy cannot read ({brief_text(str(error))})."
        ) from error


def _id_array(value: Any, name: str, ndim: int = 1) -> NDArray[Any]:
    """Return ids as an array of any dtype, in which different ids of a list stay different.

    In one dimension, a tuple is one id with several parts.
    """
    if type(value).__module__.partition(".")[0] == "polars" and str(getattr(value, "dtype", "")) == "String":
        # NumPy arrays of strings would lose trailing NULs.
        value = value.to_list()
    if not isinstance(value, (list, tuple)):
        return plain_array(value, name)
    if ndim == 1 and any(isinstance(item, tuple) for item in value):
        return as_objects(value)
    ids = plain_array(value, name)
    if ids.dtype.kind not in "USfmM" or not ids.size:
        return ids
    listed = list(value) if ids.ndim == 1 else [item for row in value for item in row]
    return as_objects(listed).reshape(ids.shape) if _is_lossy(listed, ids.dtype.kind) else ids


def _is_lossy(ids: Sequence[Any], kind: str) -> bool:
    """Whether converting this list to one NumPy dtype made different ids equal.

    1 and "1" become strings; 2**63 and -1 become floats, which have too few digits; strings lose trailing NULs.
    """
    if kind == "f":
        return any(isinstance(value, (int, np.integer)) and abs(int(value)) > EXACT_INTEGERS for value in ids)
    if kind in "mM":
        return any(isinstance(value, (int, str)) for value in ids)
    if kind == "S":
        return any(not isinstance(value, bytes) or value.endswith(b"\0") for value in ids)
    return any(not isinstance(value, str) or value.endswith("\0") for value in ids)


# -- what an evaluation keeps of its documents ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Documents and their scores. A pickle leaves them out, because they may be many times larger than the result.

    Attributes
    ----------
    queries : Queries
    scores : ndarray, shape (n_rows,)
        In the precision in which the flavor compares scores.
    rows_are_documents : bool
        Whether the same row is the same document in another evaluation of the same labels.
    """

    queries: Queries
    scores: NDArray[Any]
    rows_are_documents: bool = True

    @property
    def labels(self) -> NDArray[np.float64]:
        """The label of every row of the queries, in their order; NaN if it is unjudged."""
        listed = self.queries.groups.arrange(self.queries.labels.reshape(-1))
        with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs
            labels: NDArray[np.float64] = listed.astype(np.float64, copy=False)
        return labels

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_none, ()

    def __deepcopy__(self, _: dict[int, Any]) -> Scored:
        return self


def _restore_none() -> None:
    """Return None, which an unpickled evaluation has in place of its documents."""
