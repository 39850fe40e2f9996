"""Slices of an evaluation or of a comparison: the queries with one name in a column of ``by=``."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import _show, _statistics
from ndcg_ml._core.json_values import plain, plain_id
from ndcg_ml._core.layout import FloatArray, IntArray
from ndcg_ml._core.mean_and_empty_queries import Totals
from ndcg_ml._plain.messages import block, brief, visible
from ndcg_ml._plain.table import Column, Record
from ndcg_ml.flavor import Flavor

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ndcg_ml._statistics.differences import Difference, Pairs, Settings
    from ndcg_ml._statistics.intervals import Estimate
    from ndcg_ml._statistics.means import Means

Key: TypeAlias = tuple[str, Any]
"""The column and the name of a slice."""
Part = TypeVar("Part")


def rows_of_slices(columns: Mapping[str, Sequence[Any]]) -> dict[Key, IntArray]:
    """Return the positions of each slice's queries, from the slice name of every query in each column."""
    found: dict[Key, IntArray] = {}
    for column, names in columns.items():
        codes = _statistics.intervals.numbered(names)
        found |= {(column, name): np.flatnonzero(codes == code) for code, name in enumerate(dict.fromkeys(names))}
    return found


@dataclass(frozen=True, eq=False, repr=False)
class BySlice(Mapping[Key, Part]):
    """Results by slice. ``slices["country", "de"]`` has that column and label; ``print`` shows a table."""

    _entries: Mapping[Key, Any]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def __repr__(self) -> str:
        columns = ", ".join(sorted({column for column, _ in self._entries}))
        return f"<{type(self).__name__}: {len(self)} by {visible(columns)}>"

    def __getitem__(self, key: Key) -> Part:
        if key not in self._entries:
            some = next(iter(self._entries))
            raise KeyError(f"unknown slice {brief(key)}; pass a column and a label, such as {brief(some)}.")
        return self._entries[key]

    def to_frame(self) -> pd.DataFrame:
        """Return the rows of the table as a pandas DataFrame, with the keys of ``to_dict`` as columns.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        return self._record().frame(type(self).__name__)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the rows of the table under ``slices``, with None for nan.

        Returns
        -------
        dict
        """
        return {"slices": [plain({**row, "label": plain_id(row["label"])}) for row in self._record().rows]}

    @abstractmethod
    def _record(self) -> Record:
        """Return the table that ``print`` shows."""

    def _repr_html_(self) -> str:
        return block(self._record().html())

    def __str__(self) -> str:
        return self._record().text()


# -- slices of an evaluation ------------------------------------------------------------------------------------------

_CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class Slices(BySlice[Part]):
    """The slices of all columns of ``by=``, as a mapping from column and label to an ``Evaluation`` of these queries.

    ``print`` shows a table, and ``to_frame`` returns it. Its ``share`` is that of the slice in the overall mean: over
    the slices of a column, shares sum to 1, and share times value to the overall value. Its interval is that of
    ``Evaluation.interval`` at 95 %, clustered if the evaluation is; there is none if fewer than two queries or six
    clusters count, one cluster has most of the weight, or the value is nan.

    Its ``difference`` is the value minus that of all other queries. The interval of the difference,
    ``difference_low`` to ``difference_high``, is that of two independent samples. It needs an interval of both values,
    and no query with most of the weight of either. The intervals of a column are simultaneous: together, they cover all
    its differences in 95 % of samples.

    Slices are ordered by the absolute difference over its standard error, at the first cut-off, so that small slices do
    not come first by chance. Slices without an interval come last. The value is nan if no query of a slice counts: each
    is empty and skipped, or has weight 0.
    """

    _totals: Totals
    _flavor: Flavor
    _clusters: IntArray | None
    _several: bool
    """Whether the evaluation has several cut-offs."""
    _units: str
    """The word for queries."""
    _part: Callable[[IntArray], Part]
    """Returns the evaluation of the queries at some positions."""

    def __getitem__(self, key: Key) -> Part:
        rows: Any = super().__getitem__(key)
        return self._part(rows)

    def __iter__(self) -> Iterator[Key]:
        return iter(dict.fromkeys((row["column"], row["label"]) for row in self._record().rows))

    def _record(self) -> Record:
        totals, flavor, clusters = self._totals, self._flavor, self._clusters
        shares = {k: totals.shares(flavor, k)[1] for k in totals.ks}
        sides = {
            key: [
                _means(totals.at(some), flavor, None if clusters is None else clusters[some])
                for some in (rows, np.delete(np.arange(len(totals.ids)), rows))
            ]
            for key, rows in self._entries.items()
        }
        levels, listed = _levels(sides), list[dict[str, Any]]()
        for column, name in sorted(sides, key=lambda key: -_distance(*(side[0] for side in sides[key]))):
            rows, (inside, others) = self._entries[column, name], sides[column, name]
            empty = totals.at(rows).ndcg(flavor)[1].sum(axis=0).tolist()
            for k, n_empty, mean, other, level in zip(totals.ks, empty, inside, others, levels[column], strict=True):
                limits = (None, None) if mean.estimate is None else mean.estimate.limits(_CONFIDENCE)
                of_difference = _difference_limits(mean, other, 1 - level)
                listed.append(
                    {
                        "column": column,
                        "label": name,
                        "k": k,
                        "n_queries": rows.size,
                        "n_empty": n_empty,
                        "share": float(shares[k][rows].sum()),
                        "ndcg": mean.value,
                        "low": limits[0],
                        "high": limits[1],
                        "difference": None if math.isnan(mean.value - other.value) else mean.value - other.value,
                        "difference_low": of_difference[0],
                        "difference_high": of_difference[1],
                    }
                )
        columns = [
            Column("slice", "{column}={label}" + "{k:@}" * self._several, "l"),
            Column(self._units, "{n_queries}"),
            Column("empty", "{n_empty}"),
            Column("share", "{share:.{digits}f}"),
            Column("NDCG", "{ndcg:.{digits}f}"),
            Column("95 % interval", "{low:.{digits}f} to {high:.{digits}f}"),
            Column("minus the others", "{difference:+.{digits}f}"),
            Column("its interval", "{difference_low:+.{digits}f} to {difference_high:+.{digits}f}"),
        ]
        return Record(columns, listed)

    def plot(self, ax: Axes | None = None) -> tuple[Figure, Axes]:
        """Draw the intervals of the first 30 slices, at the first cut-off, with Matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default None
            As for ``Evaluation.plot``.

        Returns
        -------
        tuple of matplotlib.figure.Figure and matplotlib.axes.Axes

        Raises
        ------
        ImportError, TypeError
            As from ``Evaluation.plot``.
        """
        return _show.plot.sliced(self._totals, self._flavor, self._record().rows, ax)


class _Mean(NamedTuple):
    """The mean of some queries, and its estimate if it has an interval.

    `units` are its queries or clusters; None if one has most of the weight. `codes` are the numbers of the clusters.
    """

    value: float
    estimate: Estimate | None = None
    units: Means | None = None
    codes: IntArray = np.empty(0, dtype=np.int64)


def _means(totals: Totals, flavor: Flavor, clusters: IntArray | None) -> list[_Mean]:
    """Return the mean of some queries at each cut-off."""
    intervals, found = _statistics.intervals, []
    for k, value in zip(totals.ks, totals.mean(flavor).tolist(), strict=True):
        one = _Mean(value)
        # There may be too few queries or clusters, or one cluster with most of the weight, or the value may be nan.
        with suppress(ValueError):
            [(_, units)] = intervals.means_of(totals.at_cutoff(k), flavor, clusters).values()
            estimate = intervals.estimate_of(units, value)
            codes = one.codes if clusters is None else np.unique(clusters[totals.shares(flavor, k)[1] > 0])
            one = _Mean(value, estimate, units if units.share().max() <= 0.5 + _statistics.means.SAME else None, codes)
        found.append(one)
    return found


def _distance(one: _Mean, other: _Mean) -> float:
    """Return the distance of two means in standard errors, -1 if it is unknown. It only orders slices."""
    if one.estimate is None or other.estimate is None:
        return -1.0
    difference = abs(one.value - other.value)
    error = math.hypot(one.estimate.error, other.estimate.error)
    return difference / error if error > 0 else (math.inf if difference else 0.0)


def _levels(sides: Mapping[Key, Sequence[Sequence[_Mean]]]) -> dict[str, list[float]]:
    """Return the level of each difference by column and cut-off (Bonferroni)."""
    counts: dict[str, list[list[bool]]] = {}
    for (column, _), (inside, others) in sides.items():
        has_limits = [None not in (one.units, other.units) for one, other in zip(inside, others, strict=True)]
        counts.setdefault(column, []).append(has_limits)
    # The two differences of two slices are the same except for their signs.
    return {
        column: [(1 - _CONFIDENCE) / (1 if len(slices) == 2 else max(1, sum(at))) for at in zip(*slices, strict=True)]
        for column, slices in counts.items()
    }


def _difference_limits(one: _Mean, other: _Mean, confidence: float) -> tuple[float, float] | tuple[None, None]:
    """Return the limits of the difference of the means of two samples.

    The distances from the means to their own limits are combined as if they were standard errors: R. Newcombe, Interval
    estimation for the difference between independent proportions, Statistics in Medicine 17, 1998; with the correlation
    from clusters that have queries in both samples: G. Zou and A. Donner, Construction of confidence limits about
    effect measures, Statistics in Medicine 27, 2008.
    """
    if one.units is None or other.units is None or one.estimate is None or other.estimate is None:
        return None, None
    _, *at = np.intersect1d(one.codes, other.codes, return_indices=True)
    a, b = (
        (units.influence() / np.sqrt(1 - units.share()))[rows, 0]
        for units, rows in zip((one.units, other.units), at, strict=True)
    )
    errors = one.estimate.error, other.estimate.error
    r = float(a @ b) / math.prod(errors) if min(errors) > _statistics.means.SAME else 0.0
    (low, high), (other_low, other_high) = one.estimate.limits(confidence), other.estimate.limits(confidence)
    down, up = (
        math.sqrt(max(0.0, x * x + y * y - 2 * r * x * y))
        for x, y in ((one.value - low, other_high - other.value), (high - one.value, other.value - other_low))
    )
    return one.value - other.value - down, one.value - other.value + up


# -- slices of a comparison, corrected for their number ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedSlice:
    """The comparison within the queries of a slice.

    Attributes
    ----------
    n_queries : int
    values : tuple of float
        The value of each system over these queries.
    pairs : tuple of Difference
        The differences, also corrected for the number of slices. Empty if there are fewer than two queries or six
        clusters, or one cluster has most of the weight.
    """

    n_queries: int
    values: tuple[float, ...]
    pairs: tuple[Difference, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ComparedSlices(BySlice[ComparedSlice]):
    """The comparisons within the slices of all columns, in the order of their names."""

    def caption(self) -> str:
        """Describe how the p-values and intervals were corrected."""
        n = sum(bool(part.pairs) for part in self.values())
        return f"p and intervals are corrected for {n} slices (Bonferroni), and within each for its pairs"

    def _record(self) -> Record:
        """Return one row per slice and pair, or one row without a test for a slice that is too small."""
        rows: list[dict[str, Any]] = []
        for (column, name), part in self.items():
            head = {"column": column, "label": name, "n_queries": part.n_queries}
            rows += [{**head, **pair._row()} for pair in part.pairs] or [{**head, "verdict": "too few"}]
        several = any(len(part.pairs) > 1 for part in self.values())
        the = _statistics.differences
        columns = [Column("slice", "{column}={label}", "l"), *the.SYSTEMS * several, the.VERDICT]
        columns += [Column("queries", "{n_queries}"), the.DIFFERENCE, the.INTERVAL, the.P_ADJUSTED]
        return Record(columns, rows, caption=self.caption())


def compared_by(
    columns: Mapping[str, Sequence[Any]],
    of_first: IntArray,
    names: Sequence[str],
    means: Means,
    pairs: Pairs,
    settings: Settings,
    rng: np.random.Generator,
    *,
    clusters: NDArray[np.int64] | None,
    runs: Sequence[tuple[FloatArray, FloatArray]] | None,
    may_turn: Callable[..., bool] | None,
) -> ComparedSlices:
    """Return the differences within each slice, corrected for the number of slices (Bonferroni).

    Parameters
    ----------
    columns : mapping of str to sequence
        The slice name of every query of the first system, by column.
    of_first : ndarray of int, shape (n_queries,)
        The position of each compared query in the first system.
    names, means, pairs, settings, rng, clusters
        As for ``differences``.
    runs : sequence of (ndarray, ndarray), optional
        For each system, the values of its runs, shape (n_queries, n_runs), and the weights of queries.
    may_turn : callable, optional
        As for ``differences``, also with the slice names of all queries and that of the slice.
    """
    order = {column: at for at, column in enumerate(columns)}
    compared = {column: [of_query[row] for row in of_first] for column, of_query in columns.items()}
    parts = dict(sorted(rows_of_slices(compared).items(), key=lambda part: (order[part[0][0]], *_order(part[0][1]))))

    def inside(rows: IntArray) -> Means:
        return _statistics.means.Means.from_weights(means.values[rows], means.weight[rows])

    def testable(rows: IntArray) -> bool:
        if clusters is not None:
            try:
                _statistics.intervals.aggregate_clusters(inside(rows), clusters[rows])
            except ValueError:  # too few clusters, or one with most of the weight
                return False
        return rows.size >= _statistics.intervals.FEWEST_FOR_INTERVAL

    # Slices that are too small for a test do not count in the correction.
    shared = replace(settings, n_families=max(1, sum(map(testable, parts.values()))))
    slices = {}
    for key, rows in parts.items():
        tested: list[Difference] = []
        if testable(rows):
            of_runs = None if runs is None else [np.average(v[rows], axis=0, weights=w[rows]) for v, w in runs]
            of_clusters = None if clusters is None else clusters[rows]
            turns = None if may_turn is None else partial(may_turn, names=columns[key[0]], name=key[1])
            tested = _statistics.differences.differences(
                names, inside(rows), pairs, shared, rng, clusters=of_clusters, runs=of_runs, may_turn=turns
            )
        values = tuple(inside(rows).mean().tolist())
        slices[key] = ComparedSlice(n_queries=rows.size, values=values, pairs=tuple(tested))
    return ComparedSlices(slices)


def _order(name: Any) -> tuple[str, Any]:
    """Sort numbers by size, and all other names as text after them."""
    is_number = isinstance(name, int | float) and not isinstance(name, bool)
    return ("", name) if is_number else ("text", str(name))
