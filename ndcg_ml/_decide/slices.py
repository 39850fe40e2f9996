"""NDCG of slices of queries, which are given by labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.frames import align_by_id, match_index, refuse_index, refuse_lazy
from ndcg_ml._core.groups import FloatArray, IntArray, as_objects
from ndcg_ml._core.json_values import plain, plain_id
from ndcg_ml._core.one_line import block, brief, visible
from ndcg_ml._core.queries import Queries, ids_as_array, is_missing
from ndcg_ml._core.result import Evaluation
from ndcg_ml._core.table import Column, Record
from ndcg_ml._core.totals import Totals
from ndcg_ml._decide.differences import (
    DIFFERENCE,
    INTERVAL,
    P_ADJUSTED,
    SYSTEMS,
    VERDICT,
    Difference,
    Pairs,
    Settings,
    differences,
)
from ndcg_ml._decide.intervals import (
    FEWEST_FOR_INTERVAL,
    FEWEST_FOR_TEST,
    aggregate_clusters,
    counted,
    means_of,
    numbered,
    over_clusters,
    robust_error,
)
from ndcg_ml._decide.means import Interval, Means, spread_of
from ndcg_ml.flavor import Flavor

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# -- read the labels of ``by=`` and ``cluster=``: one per query in each column ----------------------------------------


def query_labels(by: Any, queries: Queries) -> dict[str, list[Any]]:
    """Return the label of every query, by column.

    Parameters
    ----------
    by : array-like, mapping of array-like by column, or data frame
        Each column has one label per row of `y_true`, or is a mapping from query ids. The index of a pandas object is
        that of the rows. A mapping from query ids to labels is one column, "slice".
    queries : Queries

    Raises
    ------
    TypeError, ValueError
        A column does not fit the rows, lacks a label, or has two in one query.
    """
    return {
        name: _labels_of_rows(values, f"by[{name!r}]", queries)
        for name, values in _columns(by, queries.groups.ids).items()
    }


def labels_by_id(by: Any, ids: NDArray[Any]) -> dict[str, list[Any]]:
    """Return the label of every query, by column, if only the ids of queries are known; see ``column_by_id``."""
    return {name: column_by_id(values, f"by[{name!r}]", ids) for name, values in _columns(by, ids).items()}


def column_by_id(values: Any, name: str, ids: NDArray[Any]) -> list[Any]:
    """Return the label of every query, from a mapping or Series by id, or from labels in the order of the ids.

    Raises
    ------
    TypeError, ValueError
        A query has no label, or the number of labels is wrong.
    """
    if not hasattr(values, "__len__") or isinstance(values, str):
        raise TypeError(f"{name} must have one label per query, or be a mapping from query ids; got {brief(values)}.")
    entries = align_by_id(values, name, ids)
    labels = as_objects(entries) if isinstance(entries, list) else ids_as_array(entries, name, "query")
    if labels.size != ids.size:
        raise ValueError(
            f"{name} must have one label per query, {ids.size}, or be a mapping from query ids; got {labels.size}."
        )
    return _without_missing(labels, name, ids)


def _columns(by: Any, ids: NDArray[Any] | None) -> dict[str, Any]:
    refuse_lazy(by, "by")
    if isinstance(by, Mapping):
        keys = () if ids is None else list(ids) if ids.dtype.kind in "mM" else ids.tolist()
        columns = {"slice": by} if any(key in by and _is_label(by[key]) for key in keys) else dict(by)
    elif hasattr(by, "columns") and len(by.shape) == 2:
        names = by.column_names if hasattr(by, "column_names") else by.columns  # pyarrow; pandas and polars
        columns = {name: by[name] for name in names}
    else:
        name = getattr(by, "name", None)
        columns = {name if isinstance(name, str) else "by": by}
    if not columns:
        raise ValueError("by must have at least one column; got none. Leave it out to evaluate all queries together.")
    return {str(name): values for name, values in columns.items()}


def _is_label(value: Any) -> bool:
    return isinstance(value, (str, tuple)) or not hasattr(value, "__len__")


def query_clusters(cluster: Any, queries: Queries) -> NDArray[Any]:
    """Return the cluster of every query, as objects, from one column in the forms of ``by``.

    Raises
    ------
    TypeError, ValueError
        As for a column of ``query_labels``.
    """
    return as_objects(_labels_of_rows(cluster, "cluster", queries))


def _labels_of_rows(values: Any, name: str, queries: Queries) -> list[Any]:
    refuse_lazy(values, name)
    ids, n_rows = queries.groups.ids, queries.labels.shape[0]
    if isinstance(values, Mapping):
        if ids is None:
            raise TypeError(
                f"{name} must not be a mapping from query ids if queries have no ids. Pass qid= instead of group."
            )
        return column_by_id(values, name, ids)
    if not hasattr(values, "__len__") or isinstance(values, str):
        raise TypeError(f"{name} must have one label per row, or be a mapping from query ids; got {brief(values)}.")
    if len(values) != n_rows:
        raise ValueError(
            f"{name} must have one label per row of y_true, {n_rows}; got {len(values)}. Pass labels of queries as a "
            "mapping from query ids: a dict, or to_dict() of a Series."
        )
    # Labels in another order would silently give wrong slices, so an index that cannot be aligned is refused.
    if queries.axes is None:
        refuse_index(values, name, "Pass y_true with this index, or a mapping from query ids")
    else:
        match_index({name: values}, queries.axes)
    labels = ids_as_array(values, name, "row")
    return _without_missing(labels, name, queries.ids) if queries.labels.ndim == 2 else _constant(labels, name, queries)


def _constant(labels: NDArray[Any], name: str, queries: Queries) -> list[Any]:
    """Return the label of each query, which must be the same in all its rows."""
    groups = queries.groups
    if not groups.sizes.all():
        raise ValueError(f"{name} must have a label for each query, but some queries have no rows. Leave them out.")
    listed = groups.arrange(labels)
    first = listed[groups.starts]
    known = _without_missing(first, name, queries.ids)
    differs = np.flatnonzero(listed != np.repeat(first, groups.sizes))
    if differs.size:
        query = int(groups.codes()[differs[0]])
        raise ValueError(
            f"{name} must be the same in all rows of a query, because each query is in one slice; query "
            f"{brief(queries.ids[query : query + 1].tolist()[0])} has {brief(known[query])} and "
            f"{brief(listed[differs[:1]].tolist()[0])}. Choose a label of the query."
        )
    return known


def _without_missing(labels: NDArray[Any], name: str, ids: NDArray[Any]) -> list[Any]:
    known = list(labels) if labels.dtype.kind in "mM" else labels.tolist()
    for query, label in enumerate(known):
        try:
            hash(label)
        except TypeError as error:
            raise TypeError(f"{name} must hold hashable labels; got {brief(label)}.") from error
        if is_missing(label):
            raise ValueError(
                f"{name} must have a label for each query; got {brief(label)} for query "
                f"{brief(ids[query : query + 1].tolist()[0])}. Give it a label of its own, such as 'none'."
            )
    return known


# -- nDCG of slices of queries, which are given by labels -------------------------------------------------------------

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


# -- comparisons within slices of queries, corrected for the number of slices -----------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedSlice(OfLabel):
    """The comparison within the queries that have one label.

    Attributes
    ----------
    column : str
        Name of the column of labels.
    label : object
    n_queries : int
    values : tuple of float
        The value of each system over these queries.
    pairs : tuple of Difference
        The differences, also corrected for the number of slices. Empty if there are fewer than two queries or six
        clusters.
    """

    n_queries: int
    values: tuple[float, ...]
    pairs: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparedSlices(BySlice[ComparedSlice]):
    """The comparisons within the slices of all columns, in the order of their labels.

    Attributes
    ----------
    entries : tuple of ComparedSlice
    """

    def caption(self) -> str:
        """Describe how the p-values and intervals were corrected."""
        n = sum(bool(part.pairs) for part in self)
        return f"p and intervals are corrected for {n} slices (Bonferroni), and within each for its pairs"

    def _record(self) -> Record:
        """Return one row per slice and pair, or one row without a test for a slice that is too small."""
        rows: list[dict[str, Any]] = []
        for part in self:
            head = {"column": part.column, "label": part.label, "n_queries": part.n_queries}
            rows += [{**head, **pair._row()} for pair in part.pairs] or [{**head, "verdict": "too few"}]
        columns = [Column("slice", "{column}={label}", "l"), Column("queries", "{n_queries}")]
        columns += [*SYSTEMS, DIFFERENCE, INTERVAL, P_ADJUSTED, VERDICT]
        return Record(columns, rows, caption=self.caption())


def compared_by(
    columns: Mapping[str, Sequence[Any]],
    names: Sequence[str],
    means: Means,
    pairs: Pairs,
    settings: Settings,
    rng: np.random.Generator,
    *,
    clusters: NDArray[np.int64] | None = None,
    runs: Sequence[tuple[FloatArray, FloatArray]] | None = None,
) -> ComparedSlices:
    """Return the differences within each slice, corrected for the number of slices (Bonferroni).

    Parameters
    ----------
    columns : mapping of str to sequence
        The label of every query, by column.
    names, means, pairs, settings, rng, clusters
        As for ``differences``.
    runs : sequence of (ndarray, ndarray), optional
        For each system, the values of its runs, shape (n_queries, n_runs), and the weights of queries.
    """
    parts = []
    for column, labels in columns.items():
        codes = numbered(labels)
        first = {code: at for at, code in reversed(list(enumerate(codes.tolist())))}
        for code, at in sorted(first.items(), key=lambda item: _order(labels[item[1]])):
            parts.append((column, labels[at], np.flatnonzero(codes == code)))

    def testable(rows: NDArray[np.intp]) -> bool:
        return rows.size >= FEWEST_FOR_INTERVAL and (
            clusters is None or np.unique(clusters[rows]).size >= FEWEST_FOR_TEST
        )

    # Slices that are too small for a test do not count in the correction.
    shared = replace(settings, n_families=max(1, sum(testable(rows) for *_, rows in parts)))
    slices = []
    for column, label, rows in parts:
        inside = Means.from_weights(means.values[rows], means.weight[rows])
        of_runs = None if runs is None else [np.average(v[rows], axis=0, weights=w[rows]) for v, w in runs]
        tested = (
            differences(
                names, inside, pairs, shared, rng, clusters=None if clusters is None else clusters[rows], runs=of_runs
            )
            if testable(rows)
            else []
        )
        slices.append(
            ComparedSlice(
                column=column,
                label=label,
                n_queries=rows.size,
                values=tuple(inside.mean().tolist()),
                pairs=tuple(tested),
            )
        )
    return ComparedSlices(tuple(slices))


def _order(label: Any) -> tuple[str, Any]:
    """Sort numbers by size, and all other labels as text after them."""
    is_number = isinstance(label, int | float) and not isinstance(label, bool)
    return ("", label) if is_number else ("text", str(label))
