"""NDCG of slices of queries, which are given by labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import FloatArray, IntArray
from ndcg_ml._core.escaping import block
from ndcg_ml._core.json_values import plain, plain_id
from ndcg_ml._core.one_line import brief, visible
from ndcg_ml._core.result import Evaluation
from ndcg_ml._core.table import Column, Record
from ndcg_ml._core.totals import Totals
from ndcg_ml._decide.clusters import aggregate_clusters, numbered, robust_error
from ndcg_ml._decide.intervals import counted, over_clusters
from ndcg_ml._decide.means import Interval, means_of, spread_of
from ndcg_ml.flavor import Flavor

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OfLabel:
    """The column and the label of a slice."""

    column: str
    label: Any


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Slice(OfLabel):
    """The queries that have one label.

    With several cut-offs, `share`, `interval` and `difference` are dicts by cut-off, as ``evaluation.value`` is.

    Attributes
    ----------
    column : str
        Name of the column of labels.
    label : object
    evaluation : Evaluation
        Evaluation of these queries only. The value is nan if none of them counts: each is empty and skipped, or has
        weight 0.
    share : float
        Share of the slice in the overall mean. Over the slices of a column, shares sum to 1, and share times value to
        the overall value. A slice in which no query counts has share 0.
    interval : Interval or None
        The 95 % t interval of the value, clustered if the evaluation is. None if fewer than two queries or six clusters
        count, one cluster has most of the weight, or the value is nan.
    difference : float or None
        The value minus that of all other queries; None if either is nan.
    """

    evaluation: Evaluation[Any]
    share: Any
    interval: Any
    difference: Any

    @property
    def value(self) -> Any:
        """The value of the slice."""
        return self.evaluation.value

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.evaluation.n_queries

    @property
    def n_empty(self) -> Any:
        """Number of empty queries."""
        return self.evaluation.n_empty


Entry = TypeVar("Entry", bound=OfLabel)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BySlice(Sequence[Entry]):
    """Results by slice. ``slices["country", "de"]`` has that column and label; ``print`` shows a table."""

    entries: tuple[Entry, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        columns = ", ".join(dict.fromkeys(sorted(entry.column for entry in self)))
        return f"<{type(self).__name__}: {len(self)} by {visible(columns)}>"

    def __getitem__(self, which: Any) -> Any:
        if not isinstance(which, tuple):
            return self.entries[which]
        for entry in self.entries:
            if (entry.column, entry.label) == which:
                return entry
        some = (self.entries[0].column, self.entries[0].label)
        raise KeyError(f"unknown slice {brief(which)}; pass a column and a label, such as {brief(some)}.")

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slices(BySlice[Slice]):
    """The slices of all columns, ordered by their difference from the other queries; ``print`` shows a table.

    They are ordered by the absolute difference over its standard error, at the first cut-off, so that small slices do
    not come first by chance. Slices without an interval come last. ``slices["country", "de"]`` has that column and
    label.

    Attributes
    ----------
    entries : tuple of Slice
    """

    def _record(self) -> Record:
        rows = [
            {
                "column": entry.column,
                "label": entry.label,
                "k": k,
                "n_queries": entry.n_queries,
                "n_empty": n_empty,
                "share": share,
                "ndcg": value,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
                "difference": difference,
            }
            for entry in self
            for k, n_empty, share, value, interval, difference in _rows(entry)
        ]
        several = any(isinstance(entry.share, dict) for entry in self)
        columns = [
            Column("slice", "{column}={label}" + "{k:@}" * several, "l"),
            Column("queries", "{n_queries}"),
            Column("empty", "{n_empty}"),
            Column("share", "{share:.{digits}f}"),
            Column("NDCG", "{ndcg:.{digits}f}"),
            Column("95 % interval", "{low:.{digits}f} to {high:.{digits}f}"),
            Column("minus the others", "{difference:+.{digits}f}"),
        ]
        return Record(columns, rows)

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
        from ndcg_ml._show import plot

        return plot.sliced(self, ax)


def _rows(entry: Slice) -> list[tuple[Any, ...]]:
    evaluation = entry.evaluation
    parts: tuple[Any, ...] = (evaluation.n_empty, entry.share, entry.value, entry.interval, entry.difference)
    if not isinstance(evaluation.k, tuple):
        return [(evaluation.k, *parts)]
    return [(k, *(part[k] for part in parts)) for k in evaluation.k]


def sliced(evaluation: Evaluation[Any], columns: Mapping[str, list[Any]]) -> Slices:
    """Return the slices of an evaluation, from the label of every query in each column."""
    totals = evaluation._totals
    shares = {k: totals.shares(evaluation.flavor, k)[1] for k in totals.ks}
    clusters = None if evaluation.cluster is None else numbered(evaluation.cluster.tolist())
    by_distance: list[tuple[float, Slice]] = []
    for column, labels in columns.items():
        codes: dict[Any, int] = {}
        code = np.array([codes.setdefault(label, len(codes)) for label in labels])
        for label, number in codes.items():
            by_distance.append(_slice(evaluation, shares, column, label, code == number, clusters))
    by_distance.sort(key=lambda pair: -pair[0])
    return Slices(tuple(each for _, each in by_distance))


def _slice(
    evaluation: Evaluation[Any],
    shares: Mapping[int | None, FloatArray],
    column: str,
    label: Any,
    inside: NDArray[np.bool_],
    clusters: IntArray | None,
) -> tuple[float, Slice]:
    """Return a slice and its distance from the other queries in standard errors, -1 if unknown."""
    # The totals are averaged as in ``evaluate``, so a slice has the same value as an evaluation of its rows.
    rows, flavor = np.flatnonzero(inside), evaluation.flavor
    values, others = (
        _means(evaluation._totals.at(some), flavor, None if clusters is None else clusters[some])
        for some in (rows, np.flatnonzero(~inside))
    )
    differences = {k: entry.value - others[k].value for k, entry in values.items()}
    totals = evaluation._totals.at(rows)

    def shaped(by_k: dict[int | None, Any]) -> Any:
        return by_k if isinstance(evaluation.k, tuple) else by_k[evaluation.k]

    table = evaluation.per_query
    first = totals.ks[0]
    return _distance(differences[first], values[first].error, others[first].error), Slice(
        column=column,
        label=label,
        evaluation=Evaluation(
            value=shaped({k: entry.value for k, entry in values.items()}),
            flavor=flavor,
            k=evaluation.k,
            n_queries=rows.size,
            n_empty=shaped(dict(zip(totals.ks, totals.ndcg(flavor)[1].sum(axis=0).tolist(), strict=True))),
            per_query=replace(table, **{field.name: table[field.name][rows] for field in fields(table)}),
            frame_library=evaluation.frame_library,
            cluster=None if evaluation.cluster is None else evaluation.cluster[rows],
            _totals=totals,
        ),
        share=shaped({k: float(share[rows].sum()) for k, share in shares.items()}),
        interval=shaped({k: entry.interval for k, entry in values.items()}),
        difference=shaped({k: None if math.isnan(less) else less for k, less in differences.items()}),
    )


class _Mean(NamedTuple):
    """The mean of some queries, with its interval and standard error if they are known."""

    value: float
    interval: Interval | None = None
    error: float | None = None


def _means(totals: Totals, flavor: Flavor, clusters: IntArray | None) -> dict[int | None, _Mean]:
    """Return the mean of some queries at each cut-off."""
    values = totals.mean(flavor).tolist()
    return {k: _mean(totals.at_cutoff(k), flavor, v, clusters) for k, v in zip(totals.ks, values, strict=True)}


def _mean(totals: Totals, flavor: Flavor, value: float, clusters: IntArray | None) -> _Mean:
    try:
        [(_, means)] = means_of(totals, flavor)
        grouped = (
            None if clusters is None else aggregate_clusters(means, clusters[counted(totals, flavor, totals.ks[0])])
        )
    except ValueError:  # too few queries or clusters, one cluster with most of the weight, or the value nan
        return _Mean(value)
    [spread] = spread_of(means)
    interval = spread.interval(_CONFIDENCE, "t", value)
    if grouped is None:
        return _Mean(value, interval, spread.standard_error)
    return _Mean(value, over_clusters(interval, means, grouped, 0, spread.value), float(robust_error(grouped)[0][0]))


def _distance(difference: float, one: float | None, other: float | None) -> float:
    """Return the distance of two sets of queries in standard errors, -1 if unknown. It only orders slices."""
    if one is None or other is None:
        return -1.0
    error = math.hypot(one, other)
    return abs(difference) / error if error > 0 else (math.inf if difference else 0.0)
