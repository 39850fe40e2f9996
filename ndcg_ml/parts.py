"""Evaluate parts of a data set (streams, shards, workers, folds), and merge them into the result of the whole."""

from __future__ import annotations

import hashlib
import math
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._core.arrays import convert_ids, flag_array, ids_as_array, is_integer, plain_array, real_array, score_array
from ndcg_ml._core.column_names import Wanted
from ndcg_ml._core.frames import is_frame, refuse_lazy
from ndcg_ml._core.mean_and_empty_queries import Sums
from ndcg_ml._core.queries import Queries, Weights, read_weights
from ndcg_ml._core.query_groups import group_by_ids, unique_ids
from ndcg_ml._core.scores import Ranking
from ndcg_ml._plain.checks import KSpec, cutoffs, refuse_docid, warn_of_lists_of_one
from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.messages import brief, brief_text
from ndcg_ml.flavor import Flavor, as_flavor

__all__ = ["PartialEvaluation", "evaluate_batches", "evaluate_part"]

# -- parts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class PartialEvaluation:
    r"""NDCG of a part of a data set. Parts add up, without rounding, to the NDCG of the whole.

        value = (sum over parts and queries q of w_q NDCG_q@k) / (sum over parts and queries q of w_q)

    (under ``aggregate="micro"``, sums of DCG and of IDCG). ``evaluate_part`` and ``evaluate_batches`` return parts;
    ``+``, ``sum(parts)`` and ``merge`` merge them. The sums are exact: however the parts are grouped and ordered,
    merging gives bitwise identical results. A part is pickled to pass it between processes, or to keep it.

    Every query must be entirely in one part. Parts store 8 bytes per query, and ``merge`` raises an error if two
    parts share a query.

    Attributes
    ----------
    flavor : Flavor
        The flavor, with the cut-off if there is a single one.
    k : int, None, or tuple of them
        The cut-off, or the cut-offs.
    n_queries : int
        Number of queries; 0 for a part without rows, which leaves others unchanged when merged.
    n_docs : int
        Number of ranked documents.
    n_empty : int, or dict of int by cut-off
        Number of queries whose ideal DCG is 0.

    See Also
    --------
    ndcg_ml.evaluate : the result with a table of queries, for data that fit in memory.

    Examples
    --------
    >>> from ndcg_ml import evaluate_part
    >>> monday = evaluate_part([3, 0, 1], [.9, .1, .3], qid=["a", "a", "a"], flavor="lightgbm", k=10)
    >>> tuesday = evaluate_part([0, 1], [.2, .1], qid=["b", "b"], flavor="lightgbm", k=10)
    >>> both = monday + tuesday
    >>> round(both.value, 6), both.n_queries
    (0.815465, 2)
    >>> import pickle
    >>> both == tuesday + monday == pickle.loads(pickle.dumps(both))
    True
    >>> both + monday
    Traceback (most recent call last):
        ...
    ValueError: every query must be entirely in one part; 1 of the queries is in two of the parts. ...
    """

    flavor: Flavor
    ks: tuple[int | None, ...]
    several: bool
    n_queries: int
    n_docs: int
    empties: tuple[int, ...]
    sums: ExactSums
    id_kind: str
    ids: Digests
    """In ascending order."""

    @property
    def value(self) -> float | dict[int | None, float]:
        """The NDCG of all queries, or a dict by cut-off.

        Raises
        ------
        ValueError
            There are no queries, all have weight 0, or all are empty under ``empty="skip"``.
        """
        if not self.n_queries:
            raise ValueError("the part holds no query, so there is nothing to average. Merge it with others first.")
        numerator, denominator = (np.array([total[0] if total else 0.0 for total in column]) for column in self.sums)
        sums = Sums(numerator, denominator, self.n_queries, np.array(self.empties))
        values = sums.values(self.flavor)
        return dict(zip(self.ks, values, strict=True)) if self.several else values[0]

    @property
    def k(self) -> int | None | tuple[int | None, ...]:
        """The cut-off, or the cut-offs."""
        return self.ks if self.several else self.ks[0]

    @property
    def n_empty(self) -> int | dict[int | None, int]:
        """Number of queries whose ideal DCG is 0, or a dict by cut-off."""
        return dict(zip(self.ks, self.empties, strict=True)) if self.several else self.empties[0]

    def __str__(self) -> str:
        if not self.n_queries:
            return f"no queries\n{self.flavor}"
        try:
            values = self.value
        except ValueError as error:  # after a merge there may be one
            lines = [f"no value: {error}"]
        else:
            by_k = values.items() if isinstance(values, dict) else [(self.ks[0], values)]
            lines = [f"ndcg{at_cutoff(k)} = {value:.6f}" for k, value in by_k]
        n_empty = "-".join(str(n) for n in sorted({min(self.empties), max(self.empties)}))
        lines.append(f"{self.n_queries} queries, {n_empty} empty; {self.n_docs} documents")
        lines.append(str(self.flavor))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<PartialEvaluation of {self.n_queries} queries, {self.n_docs} documents: {self.flavor}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartialEvaluation):
            return NotImplemented
        return self._figures() == other._figures() and np.array_equal(self.ids, other.ids)

    def __hash__(self) -> int:
        return hash(self._figures())

    def _figures(self) -> tuple[Any, ...]:
        counts = (self.n_queries, self.n_docs, self.empties)
        return (self.flavor, self.ks, self.several, counts, self.sums, self.id_kind)

    def __add__(self, other: object) -> PartialEvaluation:
        if not isinstance(other, PartialEvaluation):
            return NotImplemented
        return self.merge([self, other])

    def __radd__(self, other: object) -> PartialEvaluation:
        if isinstance(other, int) and other == 0:  # sum() starts with 0
            return self
        return NotImplemented

    @classmethod
    def merge(cls, parts: Iterable[PartialEvaluation]) -> PartialEvaluation:
        """Merge any number of parts of disjoint queries.

        Parameters
        ----------
        parts : iterable of PartialEvaluation
            At least one, all of the same flavor and cut-offs.

        Returns
        -------
        PartialEvaluation

        Raises
        ------
        TypeError
            An element is not a part, or the query ids of two parts differ in type.
        ValueError
            There are no parts, flavors or cut-offs differ, or a query is in two parts.
        """
        merged = list(parts)
        for part in merged:
            if not isinstance(part, cls):
                raise TypeError(f"parts must be PartialEvaluation objects; got {type(part).__name__}.")
        if not merged:
            raise ValueError("parts must hold at least one part; got none.")
        first = merged[0]
        for part in merged:
            if (part.flavor, part.ks, part.several) != (first.flavor, first.ks, first.several):
                raise ValueError(_describe_mismatch(first, part))
        kind, ids = join_digests([(part.id_kind, part.ids) for part in merged if part.n_queries])
        return cls(
            flavor=first.flavor,
            ks=first.ks,
            several=first.several,
            n_queries=sum(part.n_queries for part in merged),
            n_docs=sum(part.n_docs for part in merged),
            empties=tuple(map(sum, zip(*(part.empties for part in merged), strict=True))),
            sums=ExactSums.total([part.sums for part in merged]),
            id_kind=kind,
            ids=ids,
        )


def evaluate_part(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    query_id: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    doc_id: ArrayLike | None = None,
    query_weight: Weights | None = None,
) -> PartialEvaluation:
    """Evaluate complete queries of a data set as a part, which can be merged with others.

    Parameters
    ----------
    y_true, y_score, flavor, k, qid, group, mask, retrieved, doc_id, query_weight
        As for ``ndcg_score``, except that there may be no rows, or no document, and that all weights may be 0.
    query_id : array-like, one id per query, optional
        The id of each query, with `group`, or of each row of two-dimensional input. Query ids, also those in `qid`,
        must be integers, strings, bytes, floats or times. They reveal a query that is in two parts.

    Returns
    -------
    PartialEvaluation

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_score``; neither `qid` nor `query_id` is given, or both are; an id in `query_id` is repeated; or
        the NDCG of a query is too large for float64, which may happen if the ideal omits relevant documents, or is nan
        because its DCG and its ideal are too large.

    Examples
    --------
    >>> parts = [
    ...     evaluate_part([[3, 0, 1]], [[.9, .1, .3]], query_id=[7], k=[1, 3]),
    ...     evaluate_part([1, 0, 2], [.2, .8, .5], group=[1, 2], query_id=[8, 9], k=[1, 3]),
    ... ]
    >>> {k: round(value, 6) for k, value in sum(parts).value.items()}
    {1: 0.666667, 3: 0.876977}
    """
    flavor = as_flavor(flavor)
    # Merging compares query ids, so positions are not enough.
    if (qid is None) == (query_id is None):
        raise ValueError(
            f"qid (one id per row) or query_id (one id per query, with group or two-dimensional input) must be given, "
            f"and not both, so that a query in two parts is recognised; got {'neither' if qid is None else 'both'}."
        )
    for name, value in (("y_true", y_true), ("query_weight", query_weight)):
        refuse_lazy(value, name)  # np.shape below would compute the frame
    # A worker may have no rows, or only lists that pad a batch.
    shape = np.shape(y_true)
    if len(shape) == 2 and qid is None and group is None:
        nothing = 0 in shape if mask is None else not flag_array(mask, "mask", shape).any()
    else:
        nothing = shape[:1] == (0,) and np.size(() if group is None else group) == 0
    if nothing:
        others: dict[str, Any] = {"y_score": y_score, "qid": qid, "query_id": query_id, "query_weight": query_weight}
        for name, rows in (others | {"mask": mask, "retrieved": retrieved, "doc_id": doc_id}).items():
            if rows is not None and np.shape(rows)[:1] != shape[:1]:
                raise ValueError(f"{name} must be as long as y_true, {shape[0]}; got shape {np.shape(rows)}.")
        return _empty_part(flavor, k)
    queries = Queries.read(y_true, qid=qid, group=group, mask=mask, retrieved=retrieved, doc_id=doc_id)
    if query_weight is not None:  # all may be 0 here, because other parts may have positive ones
        weight = read_weights(query_weight, queries.groups, group, queries.axes, all_may_be_zero=True)
        queries = replace(queries, weight=weight)
    if query_id is not None:
        ids = unique_ids(query_id, queries.groups.n_given, "query_id", queries.groups.filled)
        queries = replace(queries, groups=replace(queries.groups, ids=ids))
    return _part(queries, y_score, flavor, k)


def _part(queries: Queries, y_score: ArrayLike, flavor: Flavor, k: KSpec) -> PartialEvaluation:
    """Evaluate queries as a part."""
    # Exact sums give bitwise identical values for every split of the data. They cannot contain nan, so empty queries
    # whose value is nan are counted, but add 0.
    prepared = Ranking(flavor, k, queries)
    terms = prepared.totals(y_score).terms(flavor.replace(empty=0.0) if flavor.empty != flavor.empty else flavor)
    sums = (tuple(exact_sum(column.tolist()) for column in side) for side in terms[:2])
    kind, numbers = digests(queries.ids)
    return replace(
        _empty_part(flavor, k),
        n_queries=terms.n_queries,
        n_docs=prepared.n_docs,
        empties=tuple(terms.n_empty.tolist()),
        sums=ExactSums(*sums),
        id_kind=kind,
        ids=np.sort(numbers),
    )


def evaluate_batches(
    batches: Iterable[Sequence[ArrayLike]],
    *,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
) -> PartialEvaluation:
    """Evaluate a stream of rows that are grouped by query, in batches of any size.

    The rows of a query may be spread over consecutive batches: the last query of each batch is carried over to the
    next. Memory holds one batch, one query, and about 30 bytes for each query seen.

    Parameters
    ----------
    batches : iterable of (y_true, y_score, qid)
        Labels, scores and one query id per row, one-dimensional, as for ``ndcg_score``. Each query's rows must be
        contiguous in the stream. Batches may be empty.
    flavor, k
        As for ``ndcg_score``. ``ties="docid"`` is refused because there are no document ids.

    Returns
    -------
    PartialEvaluation
        Its ``value`` is the NDCG. It can be merged with the parts of other streams.

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_score``; a query reappears after others (sort the stream by query id); or a batch is not three
        arrays of equal length.

    Examples
    --------
    >>> batches = [([3, 0], [.9, .1], [7, 7]), ([1, 1, 0], [.3, .2, .8], [7, 8, 8])]
    >>> stream = evaluate_batches(batches, flavor="sklearn", k=2)
    >>> round(stream.value, 6), stream.n_queries
    (0.815465, 2)
    """
    flavor = as_flavor(flavor)
    refuse_docid(flavor, "a stream", "its batches have no document ids (evaluate_part accepts doc_id=)")
    parts = [_empty_part(flavor, k)]
    lists_of_one = True
    for labels, scores, ids in whole_queries(batches):
        parts.append(_part(Queries.read(labels, qid=ids, whole=False), scores, flavor, k))
        lists_of_one &= parts[-1].n_queries == labels.size
        if len(parts) > _MERGE_AT:  # detect repeated queries before the end of a long stream
            parts = [_merge_stream(parts)]
    stream = _merge_stream(parts)
    if lists_of_one and stream.n_queries > 1:
        warn_of_lists_of_one(stream.n_queries)
    return stream


_MERGE_AT = 64


def _merge_stream(parts: Sequence[PartialEvaluation]) -> PartialEvaluation:
    try:
        return PartialEvaluation.merge(parts)
    except ValueError as error:
        raise ValueError(
            "each query's rows must be contiguous in the stream; a query reappeared after other queries. Sort the rows "
            "by query id, or partition them by it and merge the parts."
        ) from error


def _describe_mismatch(one: PartialEvaluation, other: PartialEvaluation) -> str:
    """Say why two parts cannot be merged."""
    got = " and ".join(f"{brief_text(str(part.flavor))} at {brief_text(str(part.k))}" for part in (one, other))
    hint = ""
    if callable(one.flavor.gain) or callable(one.flavor.discount):
        hint = (
            " Copies of a callable, as processes exchange them, are equal if it is a function of a module that all "
            "import (not of __main__ or a notebook), or an object whose class has __eq__ and __hash__. Or write a gain "
            "as a table, such as gain=(0, 1, 3)."
        )
    return f"parts must have one flavor and the same cut-offs; got {got}.{hint}"


def _empty_part(flavor: Flavor, k: KSpec) -> PartialEvaluation:
    ks, several = cutoffs(k, flavor)
    return PartialEvaluation(
        flavor=flavor.replace(k=None if several else ks[0]),
        ks=ks,
        several=several,
        n_queries=0,
        n_docs=0,
        empties=(0,) * len(ks),
        sums=ExactSums(((),) * len(ks), ((),) * len(ks)),
        id_kind="",
        ids=np.empty(0, dtype=np.uint64),
    )


# -- streams ------------------------------------------------------------------------------------------------------


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
        last = ids == ids[-1]
        if ids.dtype == object:  # NumPy would convert the id to a string without trailing NULs
            last = np.fromiter((query == ids[-1] for query in ids.tolist()), bool, ids.size)
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
    if len({column.dtype.kind for column in ids}) > 1:  # int64 and uint64 would become float64
        ids = tuple(column.astype(object) for column in ids)
    return np.concatenate(labels), np.concatenate(scores), np.concatenate(ids)


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


# -- exact sums ---------------------------------------------------------------------------------------------------

Exact: TypeAlias = tuple[float, ...]
"""An exact sum: the float nearest to it, then the float nearest to the remainder, and so on."""


def exact_sum(values: Iterable[float]) -> Exact:
    """Return the exact sum of the values. Equal sums are equal tuples, whatever the values.

    Raises
    ------
    ValueError
        A value or the sum is infinite, or a value is nan.
    """
    rest, parts = list(values), list[float]()
    try:
        while part := math.fsum(rest):
            if not math.isfinite(part):
                raise OverflowError
            parts.append(part)
            rest.append(-part)
    except (OverflowError, ValueError):  # infinities of both signs
        raise ValueError("an NDCG, or a sum of them, is too large for float64. Use a smaller grade scale.") from None
    return tuple(parts)


class ExactSums(NamedTuple):
    """Exact numerator and denominator of a mean at each cut-off."""

    numerator: tuple[Exact, ...]
    denominator: tuple[Exact, ...]

    @classmethod
    def total(cls, parts: Sequence[ExactSums]) -> ExactSums:
        """Add the sums of several sets of queries."""
        numerators, denominators = (zip(*side, strict=True) for side in zip(*parts, strict=True))
        return cls(
            tuple(exact_sum(chain(*column)) for column in numerators),
            tuple(exact_sum(chain(*column)) for column in denominators),
        )


# -- query ids as 64-bit numbers, which reveal a query that is in two parts -----------------------------------------

Digests: TypeAlias = NDArray[np.uint64]

_64_BITS = 2**64 - 1


def digests(ids: NDArray[Any]) -> tuple[str, Digests]:
    """Return the kind of the ids (int, str, bytes, float or time) and a number for each.

    Integers, floats and times keep their value. Strings and bytes are hashed to 64 bits: the probability that any two
    of a million have the same hash is 3e-8.

    Raises
    ------
    TypeError
        The ids are of another type, or of several; integers beyond 64 bits; times finer than nanoseconds.
    """
    ids = convert_ids(ids)
    values: list[Any] = ids.tolist() if ids.dtype.kind in "OSU" else []
    kind = ids.dtype.kind
    if kind in "OSU" and all(isinstance(value, str) for value in values):
        return "str", _hashes([value.encode("utf-8", "surrogatepass") for value in values])
    if kind in "OSU" and all(isinstance(value, bytes) for value in values):
        return "bytes", _hashes(values)
    if kind == "f":
        return "float", (ids.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
    if kind == "M":
        times = ids.astype("datetime64[ns]")  # outside the years 1677 to 2262 modulo 2^64, so still distinct
        if (times != ids).any():
            raise TypeError(f"query ids that are times must be whole nanoseconds; got dtype {ids.dtype}.")
        return "time", times.view(np.uint64)
    if kind in "biu":
        return "int", ids.astype(np.uint64 if kind == "u" else np.int64).view(np.uint64)
    if values and all(map(is_integer, values)):
        wide = next((value for value in values if not -(2**63) <= value <= _64_BITS), None)
        if wide is not None:
            raise TypeError(
                f"query ids that are integers must fit in 64 bits; got {brief(wide)}. Convert them, for example to "
                "strings."
            )
        return "int", np.array([value & _64_BITS for value in values], dtype=np.uint64)
    kinds = sorted({type(value).__name__ for value in values}) or [str(ids.dtype)]
    raise TypeError(
        "query ids must be integers, strings, bytes, floats or times, all of one type, so that parts can compare them; "
        f"got {', '.join(kinds)}. Convert them, for example to strings."
    )


def join_digests(parts: Sequence[tuple[str, Digests]]) -> tuple[str, Digests]:
    """Return the kind and the sorted numbers of all parts, which must not share a query.

    Raises
    ------
    TypeError
        The query ids of two parts differ in type.
    ValueError
        A query is in two of the parts.
    """
    kinds = sorted({kind for kind, _ in parts})
    if len(kinds) > 1:
        raise TypeError(
            f"query ids must have one type in all parts, so that the same query is recognised; got "
            f"{' and '.join(kinds)}. Convert them before evaluating."
        )
    if not parts:
        return "", np.empty(0, dtype=np.uint64)
    # A stable sort is fast here, because the numbers of each part are already sorted.
    ids = np.sort(np.concatenate([numbers for _, numbers in parts]), kind="stable")
    repeated = ids[1:][ids[1:] == ids[:-1]]
    if repeated.size:
        named = f" (such as query {repeated.view(np.int64)[0]})" if kinds == ["int"] else ""
        raise ValueError(
            f"every query must be entirely in one part; {repeated.size} of the queries "
            f"{'is' if repeated.size == 1 else 'are'} in two of the parts{named}. Either a query was split "
            "(partition the rows by query id, or use evaluate_batches), a part was evaluated twice, or a query was "
            "sampled repeatedly."
        )
    return kinds[0], ids


def _hashes(values: list[bytes]) -> Digests:
    joined = b"".join(hashlib.blake2b(value, digest_size=8).digest() for value in values)
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64)


# -- tables of Dask, Ray and Spark --------------------------------------------------------------------------------


class EngineRows:
    """Columns of a distributed table and the flavor of its evaluation, checked before any work.

    Parameters
    ----------
    has : iterable of str
        Columns of the table.
    label, score, qid, flavor, k
        As for ``ndcg_ml.dask.evaluate``.

    Attributes
    ----------
    columns : dict
        The column of each of "label", "score" and "qid".

    Raises
    ------
    TypeError, ValueError
        A column is not in the table, or is passed twice; the flavor or the cut-off is invalid; or the flavor depends on
        the order of rows or on document ids.
    """

    def __init__(self, has: Iterable[str], label: str, score: str, qid: str, flavor: Flavor | str, k: KSpec) -> None:
        named: dict[str, Any] = {"label": label, "score": score, "qid": qid}
        for meaning, column in named.items():
            if not isinstance(column, str):
                got = type(column).__name__
                raise TypeError(f"{meaning} must be the name of a column; got {brief(column)} of type {got}.")
        self.columns = Wanted([*named], named).choose("the frame", list(has))
        self._flavor, self._k = as_flavor(flavor), k
        cutoffs(k, self._flavor)
        switch = f"ties={self._flavor.ties!r}" if self._flavor.ideal != "given" else "ideal='given'"
        if self._flavor.ideal == "given" or self._flavor.ties not in ("average", "best", "worst"):
            raise ValueError(
                "flavor must not follow the order of rows or document ids, because a shuffle by query keeps neither; "
                f'got {switch}. Choose ties="average" and another ideal, or merge evaluate_part(...) of whole queries.'
            )

    def part(self, rows: Mapping[str, Any]) -> PartialEvaluation:
        """Evaluate whole queries, from the values of each of `columns`."""
        return evaluate_part(rows["label"], rows["score"], qid=rows["qid"], flavor=self._flavor, k=self._k)

    def empty_part(self) -> PartialEvaluation:
        """Return the part without rows."""
        return self.part(dict.fromkeys(self.columns, ()))


def merge_parts(parts: Iterable[bytes | PartialEvaluation]) -> PartialEvaluation:
    """Merge parts, which may be pickled."""
    return PartialEvaluation.merge(pickle.loads(part) if isinstance(part, bytes) else part for part in parts)
