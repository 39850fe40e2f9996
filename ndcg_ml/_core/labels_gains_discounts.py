"""Apply a flavor's rules for labels and repeated documents, and its gains and discounts, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import refuse_rounded
from ndcg_ml._core.layout import FloatArray, Groups, IntArray
from ndcg_ml._core.queries import Queries, Repeats
from ndcg_ml.flavor import Flavor

# -- gains of wide lists: one byte per row, and a table with the gain of each byte ------------------------------------

Codes = NDArray[np.uint8]

HIGHEST = 254
"""The highest grade with a code. The remaining code is that of padding."""

# Number of values in a part. A part is read twice, so it must fit the processor's cache.
_PART = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Values with few distinct ones, stored as codes.

    Attributes
    ----------
    codes : ndarray of uint8
        The code of each value, in any shape.
    table : ndarray, shape (n_codes,)
        The value of each code. The last one is 0, the value of padding.
    """

    codes: Codes
    table: NDArray[Any]

    @property
    def padding(self) -> int:
        """The code of padding."""
        return self.table.size - 1

    def full(self) -> NDArray[Any]:
        """Return all values, in the shape of the codes."""
        return self.table.take(self.codes)

    def largest(self, depth: int) -> FloatArray:
        """Return the `depth` largest values of each row of codes, largest first. Padding becomes 0."""
        n_rows = len(self.codes)
        codes = np.argsort(-self.table[: self.padding])
        if self.table.min() >= 0:  # zeros fill the remaining ranks, so they are not counted
            codes = codes[self.table[codes] > 0]
        remaining, lengths = np.full(n_rows, depth), []
        for code in codes.tolist():
            filled = np.minimum((self.codes == code).sum(axis=1), remaining)
            remaining -= filled
            lengths.append(filled)
            if not remaining.any():
                break
        lengths.append(remaining)
        values = np.append(self.table[codes[: len(lengths) - 1]], 0.0)
        of_rows = values[None].repeat(n_rows, axis=0).ravel()
        return of_rows.repeat(np.array(lengths).T.ravel()).reshape(n_rows, depth)


Gains: TypeAlias = "FloatArray | Coded"
"""One gain per row or slot."""


def full(gains: Gains) -> FloatArray:
    """Return the gains as floats."""
    return gains.full() if isinstance(gains, Coded) else gains


def take_gains(gains: Gains, at: NDArray[np.integer[Any]]) -> FloatArray:
    """Return the gains at these flat positions."""
    if isinstance(gains, Coded):
        return gains.table.take(gains.codes.ravel().take(at))
    return gains.ravel().take(at)


def encode_grades(grades: NDArray[Any], order: NDArray[np.int64] | None) -> Codes | None:
    """Return grades as bytes; None unless the rows in `order` (None: all) hold integers from 0 to ``HIGHEST``.

    Other rows get arbitrary codes.
    """
    codes = _read(grades)
    if codes is None and order is not None:  # excluded rows may hold anything
        included = _read(grades[order])
        if included is not None:
            codes = np.zeros(grades.size, dtype=np.uint8)
            codes[order] = included
    return codes


def _read(grades: NDArray[Any]) -> Codes | None:
    out = np.empty(grades.size, dtype=np.uint8)
    for at in range(0, grades.size, _PART):
        part, codes = grades[at : at + _PART], out[at : at + _PART]
        if not (part.min() >= 0 and part.max() <= HIGHEST):  # comparisons with NaN are false
            return None
        np.copyto(codes, part, casting="unsafe")
        if grades.dtype.kind == "f" and not (codes == part).all():
            return None
    return out


# Sums of gains up to this size, times weights and discounts, stay within float64.
_LARGEST = 2.0**500
# Lists with at least this many rows on average are wide, and their integer grades are kept as bytes, unless they have
# fewer rows than the second number in all.
_WIDE, _FEW = 32, 1 << 15


# -- rules for labels -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Graded:
    """The documents that a flavor's rules for labels include, and their gains.

    The three layouts hold the same queries. If no document is left out, they are one object.

    Attributes
    ----------
    documents : Groups
        Every document that was not dropped.
    judged : Groups
        The documents with a label, from which the ``global`` ideal is made.
    ranked : Groups
        The documents that are ranked.
    row_gains : ndarray of float, shape (n_rows,), or Coded
        The gain of every row. Excluded rows have gain 0, or any gain if the gains are coded.
    """

    documents: Groups
    judged: Groups
    ranked: Groups
    row_gains: Gains

    @property
    def gains(self) -> FloatArray:
        """The gains as floats. Coded gains are decoded at each call."""
        return full(self.row_gains)

    def n_relevant(self) -> IntArray:
        """Return the number of judged rows of each query with a gain above 0."""
        return self.judged.per_query(np.add, (self.gains > 0).astype(np.float64), 0.0).astype(np.int64)


def grade(flavor: Flavor, labels: NDArray[Any], groups: Groups, retrieved: NDArray[np.bool_] | None = None) -> Graded:
    """Apply the flavor's rules for unjudged and negative documents, and its gain.

    Raises
    ------
    ValueError
        A label is infinite, above ``max_grade``, not in the gain table, or NaN or negative under a flavor that refuses
        it; or a gain is above 2^500.
    """
    with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs
        coded = _encode_gains(flavor, labels.ravel(), groups)
        if coded is not None:
            ranked = groups if retrieved is None else groups.keep(retrieved)
            return Graded(groups, groups, ranked, coded)
        grades = labels.ravel().astype(np.float64, copy=False)
    documents, judged, graded = _rules(flavor, grades, groups)
    if labels.dtype.kind in "iu":  # labels of masked rows may be rounded
        refuse_rounded("y_true", judged.arrange(labels.ravel()), judged.arrange(grades))
    ranked = judged if flavor.unjudged == "condense" else documents
    gains = _row_gains(flavor, grades, graded)
    if retrieved is not None:
        ranked = ranked.keep(retrieved)
    return Graded(documents, judged, ranked, gains)


def _rules(flavor: Flavor, grades: FloatArray, groups: Groups) -> tuple[Groups, Groups, Groups]:
    """Return the documents that are kept, those with a label, and those whose gain is computed from their label."""
    judged = groups
    lowest, highest = _range(grades, groups)
    if math.isnan(lowest):
        missing = np.isnan(grades)
        if flavor.unjudged == "raise":
            n = int(groups.arrange(missing).sum())
            raise ValueError(
                f"y_true must not hold NaN (an unjudged document) under unjudged='raise'; got {n} of "
                f"{groups.sizes.sum()}. Remove them, or use "
                f"{flavor._advice(unjudged='zero')}, which gives them gain 0."
            )
        judged = groups.keep(~missing)
        lowest, highest = _range(grades, judged)
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        raise ValueError(f"y_true must be finite; got labels from {lowest} to {highest}.")
    graded = judged
    if lowest < 0 and flavor.negative != "allow":
        negative = grades < 0
        if flavor.negative == "raise":
            n = int(judged.arrange(negative).sum())
            raise ValueError(
                f"y_true must be >= 0 under negative='raise'; got {n} negative labels, the lowest {lowest}. "
                "If they mark padding, leave them out (by mask= of 2-D input). Otherwise use "
                f"{flavor._advice(negative='zero')}, which gives them gain 0."
            )
        graded = judged.keep(~negative)
        if flavor.negative == "drop":
            groups, judged = groups.keep(~negative), graded
    _check_grades(flavor, grades, graded)
    return groups, judged, graded


def _range(grades: FloatArray, groups: Groups) -> tuple[float, float]:
    included = groups.arrange(grades)
    return (float(included.min()), float(included.max())) if included.size else (0.0, 0.0)


def _check_grades(flavor: Flavor, grades: FloatArray, graded: Groups) -> None:
    top = flavor.top_label
    if top is not None and graded.sizes.any() and (highest := _range(grades, graded)[1]) > top:
        included = graded.arrange(grades)
        with np.errstate(over="ignore"):
            in_float32 = float(np.float32(top))  # it may be slightly larger: 0.8 becomes 0.80000001
        if highest != in_float32 or ((included > top) & (included != in_float32)).any():
            raise ValueError(
                f"y_true must not exceed Flavor.max_grade={top}; got {highest}. "
                "Raise max_grade to the top of the grade scale."
            )
    if isinstance(flavor.gain, tuple):
        included = graded.arrange(grades)
        wrong = (included != np.floor(included)) | (included < 0)
        if flavor.off_table == "raise":
            wrong |= included >= len(flavor.gain)
        if wrong.any():
            allowed = f"from 0 to {len(flavor.gain) - 1}" if flavor.off_table == "raise" else ">= 0"
            raise ValueError(
                f"y_true must hold integer grades {allowed} for a gain table of {len(flavor.gain)} entries; got "
                f"{included[wrong][0]:g}. Extend the table, or use a gain that takes any label: "
                "flavor.replace(gain='linear', off_table='raise')."
            )


def _encode_gains(flavor: Flavor, grades: NDArray[Any], groups: Groups) -> Coded | None:
    """Return gains as one byte per row and a table, if the lists are wide and all grades are integers.

    Otherwise return None, also if the flavor may refuse a grade: the checks of float grades then raise.
    """
    if grades.size < max(_WIDE * groups.n_queries, _FEW):
        return None
    codes = encode_grades(grades, groups.order)
    if codes is None:
        return None
    included = groups.arrange(codes)
    highest = int(included.max(initial=0))
    beyond_table = isinstance(flavor.gain, tuple) and flavor.off_table == "raise" and highest >= len(flavor.gain)
    if beyond_table or (flavor.top_label is not None and highest > flavor.top_label):
        return None
    if groups.order is not None:  # excluded rows get arbitrary codes
        np.minimum(codes, highest, out=codes)
    scale = np.arange(highest + 1.0)
    if callable(flavor.gain):  # it may fail at grades that do not occur
        occur = np.array([bool((included == step).any()) for step in range(highest + 1)])
        table = np.zeros(scale.size)
        table[occur] = gain(flavor, scale[occur])
    else:
        table = gain(flavor, scale)
    _check_size(flavor, table)
    return Coded(codes, np.append(table, 0.0))


# -- gains that fit float64 -------------------------------------------------------------------------------------------


def _row_gains(flavor: Flavor, grades: FloatArray, groups: Groups) -> FloatArray:
    """Return the gain of every row, and 0 for rows outside the queries. Labels of the other rows are finite."""
    included = groups.arrange(grades)
    if flavor.ideal == "max" and flavor.top_label is not None:  # float32 grades may be a little above the top
        included = np.minimum(included, np.float64(flavor.top_label))
    gains = gain(flavor, included)
    _check_size(flavor, gains)
    if groups.order is None:
        return gains
    out = np.zeros(grades.size)
    out[groups.order] = gains
    return out


def _check_size(flavor: Flavor, gains: FloatArray) -> None:
    """Raise if float64 cannot hold sums of these gains, or their products with a discount, with all digits."""
    every = np.append(gains, top_gain(flavor)) if flavor.ideal == "max" else gains
    size = np.abs(every)
    if size.max(initial=0.0) > _LARGEST:
        largest = every[size.argmax()]
        raise ValueError(f"gains must be at most 2**500; got {largest:g}. Use a gain table or smaller grades.")
    small = (size < 1 / _LARGEST) & (size > 0)
    if small.any():
        least = size[small].min()
        raise ValueError(f"gains must be 0 or at least 2**-500; got {least:g}. Use a gain table or larger grades.")


# -- the formulas of gains and discounts ------------------------------------------------------------------------------


def gain(flavor: Flavor, grades: FloatArray) -> FloatArray:
    """Return the gain of each grade. A grade beyond the end of a gain table has gain 0."""
    if isinstance(flavor.gain, tuple):
        table = np.append(flavor.gain, 0.0)
        return table[np.minimum(grades, len(flavor.gain)).astype(np.intp)]
    if callable(flavor.gain):
        different, at = np.unique(grades, return_inverse=True)
        return np.array([_number(flavor.gain, one, "gain") for one in different.tolist()])[at.ravel()]
    if flavor.gain == "exponential":
        with np.errstate(invalid="ignore"):  # a grade that a byte cannot hold becomes another number
            whole = grades.astype(np.uint8)
        return _exponential(np.arange(256.0)).take(whole) if (whole == grades).all() else _exponential(grades)
    if flavor.gain == "binary":
        return (grades > 0).astype(np.float64)
    if flavor.gain == "judged":
        return np.ones(grades.shape)
    return grades + 0.0  # a copy, because gains must not change with the caller's labels; -0.0 becomes 0.0


def _exponential(grades: FloatArray) -> FloatArray:
    # exp2 is exact for integers; expm1 keeps the digits of a small fraction.
    with np.errstate(over="ignore"):
        return np.where(np.abs(grades) < 1, np.expm1(grades * math.log(2)), np.exp2(grades) - 1)


def top_gain(flavor: Flavor) -> float:
    """Return the gain of ``max_grade``."""
    assert flavor.max_grade is not None
    return float(gain(flavor, np.array([flavor.max_grade]))[0])


def discounts(flavor: Flavor, depth: int) -> FloatArray:
    """Return D(1), ..., D(depth), without a cut-off."""
    if callable(flavor.discount):
        return np.array([_number(flavor.discount, rank, "discount") for rank in range(1, depth + 1)])
    return DISCOUNTS[flavor.discount](np.arange(1.0, depth + 1))


DISCOUNTS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "log2": lambda ranks: 1.0 / np.log2(ranks + 1.0),
    "jarvelin": lambda ranks: 1.0 / np.maximum(np.log2(ranks), 1.0),
    "reciprocal": lambda ranks: 1.0 / ranks,
    "ln": lambda ranks: 1.0 / np.log(ranks + 1.0),
    "none": np.ones_like,
}


def _number(function: Callable[[Any], Any], argument: Any, what: str) -> float:
    try:
        value = float(function(argument))
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise TypeError(
            f"Flavor.{what} as a callable must take one number and return one number; "
            f"{what}({argument!r}) failed: {type(error).__name__}: {error}"
        ) from error
    if not math.isfinite(value):
        raise ValueError(f"Flavor.{what} as a callable must return a finite number; {what}({argument!r}) is {value}.")
    return value


# -- documents that a query lists more than once ----------------------------------------------------------------------


def refuse_repeats(flavor: Flavor, queries: Queries) -> None:
    """Refuse repeated documents if the flavor does, and copies of one document with different labels.

    Raises
    ------
    ValueError
    """
    repeats = queries.repeats
    if repeats is None:
        return
    copies = repeats.copies
    if flavor.duplicates == "raise":
        raise ValueError(
            f"doc_id must not repeat within a query under duplicates='raise'; got {repeats.name} more than once in a "
            f"query ({copies.sizes.sum() - copies.n_queries} repeats in all). Remove the duplicate documents, or use "
            f"{flavor._advice(duplicates='first')}, which credits each at its first rank."
        )
    grades = copies.arrange(queries.labels.ravel())
    first = np.repeat(grades[copies.starts], copies.sizes)
    differ = (grades != first) & ~(np.isnan(grades) & np.isnan(first))
    if differ.any():
        at = int(np.flatnonzero(differ)[0])
        raise ValueError(
            f"y_true must be the same wherever a query repeats a doc_id; got {first[at]:g} and {grades[at]:g} for one "
            "document. A document has one label: correct the others."
        )


def credit_repeats(
    flavor: Flavor, graded: Graded, layout: Groups, repeats: Repeats
) -> tuple[Graded, CreditedOnce | None]:
    """Keep one copy of each document among the judged ones and, if the flavor credits it once, the gain of one copy.

    `layout` has the ranked rows in the order in which tied ones rank.
    """
    n_rows = layout.n_rows
    rows = layout.rows()
    ranked = np.zeros(n_rows, dtype=bool)
    ranked[rows] = True
    copies = repeats.copies.sort_rows(~ranked)
    assert copies.order is not None
    is_copy = np.zeros(n_rows, dtype=bool)
    is_copy[copies.order] = True
    is_later = is_copy.copy()
    is_later[copies.order[copies.starts]] = False
    graded = replace(graded, judged=graded.judged.keep(~is_later))
    if flavor.duplicates == "count":
        return graded, None
    graded = replace(graded, row_gains=np.where(is_later, 0.0, graded.gains))
    query = layout.codes()
    affected = np.isin(query, query[is_copy[rows]])
    return graded, CreditedOnce(flavor, copies.keep(ranked), rows[affected], query[affected])


@dataclass(frozen=True, slots=True, eq=False)
class CreditedOnce:
    """The rows whose scores are exchanged so that the copy with the gain ranks before the others of its document.

    Attributes
    ----------
    flavor : Flavor
    copies : Groups
        The ranked rows of each repeated document, the one with the gain first.
    rows, query : ndarray of int
        The ranked rows of the queries that hold a repeat, in the order in which tied ones rank; and the query of each.
    """

    flavor: Flavor
    copies: Groups
    rows: IntArray
    query: IntArray

    def exchange_scores(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Exchange the scores of a document's copies, so that the copy that has the gain ranks first among them.

        Raises
        ------
        ValueError
            Ties are averaged, and copies of a document share its best score.
        """
        out = scores.astype(np.float64)
        if self.flavor.ties != "average":  # break all ties first, so that an exchange makes no other ones
            order = np.lexsort((-out[self.rows], self.query))
            out[self.rows[order]] = -np.arange(order.size)
        copies = self.copies
        assert copies.order is not None
        best_first = out[copies.order]
        best_first = best_first[np.lexsort((-best_first, copies.codes()))]
        second = copies.starts[copies.sizes > 1] + 1
        if (tied := best_first[second] == best_first[second - 1]).any():
            raise ValueError(
                "y_score must not tie a document with its own repeat under ties='average' with duplicates='first', "
                f"because its first rank is undefined; got {int(tied.sum())} such documents. Break ties by position: "
                f"{self.flavor._advice(ties='first')}."
            )
        out[copies.order] = best_first
        return out
