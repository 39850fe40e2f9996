"""NDCG by slice of queries: the same table of queries, cut by a label."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import FloatArray
from ndcg_ml._data.underflow import underflow_is_zero
from ndcg_ml._kernel.totals import Totals
from ndcg_ml._show.escaping import block
from ndcg_ml._show.plain import finite, plain_id
from ndcg_ml._show.table import Table
from ndcg_ml._shown import shown
from ndcg_ml._stats.means import Spread, means_of, spread_of
from ndcg_ml.flavor import Flavor
from ndcg_ml.result import Evaluation, at_cutoff

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Slice:
    """The queries of one label.

    With several cut-offs, `share`, `interval` and `difference` are dicts by cut-off, as ``evaluation.value`` is.

    Attributes
    ----------
    column : str
        What the queries were sliced by.
    label : object
    evaluation : Evaluation
        Of these queries alone, with the value, the counts and the table of queries. The value is nan where no query of
        the slice counts: all are empty and skipped, or weigh nothing.
    share : float
        Of the whole mean. Over the slices of a column shares sum to 1, and share times value to the whole value; a
        slice in which no query counts has the share 0.
    interval : Interval or None
        The 95 % t interval of the value; None where fewer than two queries count, or the value is nan.
    difference : float or None
        The value less that of all other queries; None where one of them is not defined.
    """

    column: str
    label: Any
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slices(Sequence[Slice]):
    """The slices of all columns, those first that differ most from the other queries; ``print`` shows a table.

    ``slices[0]`` is the first, ``slices["country", "de"]`` that of a column and a label. The order is that of the
    difference over its standard error (at the first cut-off), so that a slice of few queries does not lead by chance.
    Slices with fewer than two queries, of which nobody knows how they vary, come last.

    Attributes
    ----------
    entries : tuple of Slice
    """

    entries: tuple[Slice, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"<Slices: {len(self)} by {', '.join(dict.fromkeys(sorted(each.column for each in self)))}>"

    def __iter__(self) -> Iterator[Slice]:
        return iter(self.entries)

    def __getitem__(self, which: Any) -> Any:
        if not isinstance(which, tuple):
            return self.entries[which]
        for each in self.entries:
            if (each.column, each.label) == which:
                return each
        raise KeyError(f"{shown(which)} is no slice; name a column and a label, such as {shown(self._key(0))}.")

    def _key(self, at: int) -> tuple[str, Any]:
        return self.entries[at].column, self.entries[at].label

    def to_frame(self) -> pd.DataFrame:
        """The slices as a pandas DataFrame, one row per slice and cut-off.

        Returns
        -------
        pandas.DataFrame
            With the columns ``column``, ``label``, ``k``, ``n_queries``, ``n_empty``, ``share``, ``ndcg``, ``low``,
            ``high``, ``difference``.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Slices.to_frame needs pandas. Install it with: pip install pandas") from error
        return pd.DataFrame(self._records())

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON: the rows of ``to_frame`` under ``slices``, None in place of nan.

        Returns
        -------
        dict
        """
        return {
            "slices": [
                {**record, "label": plain_id(record["label"]), "ndcg": finite(record["ndcg"])}
                for record in self._records()
            ]
        }

    def _records(self) -> list[dict[str, Any]]:
        return [
            {
                "column": each.column,
                "label": each.label,
                "k": k,
                "n_queries": each.n_queries,
                "n_empty": n_empty,
                "share": share,
                "ndcg": value,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
                "difference": difference,
            }
            for each in self
            for k, n_empty, share, value, interval, difference in _rows(each)
        ]

    def plot(self, ax: Axes | None = None) -> tuple[Figure, Axes]:
        """Draw the interval of each slice, at the first cut-off, with matplotlib; at most 30 slices, the first ones.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default None
            Where to draw. None: new axes in a new figure of pyplot.

        Returns
        -------
        tuple of matplotlib.figure.Figure and matplotlib.axes.Axes
            Show it with ``plt.show()``, save it with ``fig.savefig``.

        Raises
        ------
        ImportError
            Matplotlib is not installed.
        TypeError
            `ax` is something else.
        """
        from ndcg_ml._show import plot

        return plot.sliced(self, ax)

    def _repr_html_(self) -> str:
        return block(self._table().html())

    def __str__(self) -> str:
        return self._table().text()

    def _table(self) -> Table:
        """What ``print`` shows."""
        several = any(isinstance(each.share, dict) for each in self)
        rows = []
        for each in self:
            for k, n_empty, share, value, interval, difference in _rows(each):
                name = f"{each.column}={each.label}{at_cutoff(k) if several else ''}"
                limits = "-" if interval is None else f"{interval.low:.4f} to {interval.high:.4f}"
                less = "-" if difference is None else f"{difference:+.4f}"
                rows.append([name, str(each.n_queries), str(n_empty), f"{share:.4f}", f"{value:.4f}", limits, less])
        return Table(["slice", "queries", "empty", "share", "NDCG", "95 % interval", "minus the others"], rows)


def _rows(each: Slice) -> list[tuple[Any, ...]]:
    evaluation = each.evaluation
    parts: tuple[Any, ...] = (evaluation.n_empty, each.share, each.value, each.interval, each.difference)
    if not isinstance(evaluation.k, tuple):
        return [(evaluation.k, *parts)]
    return [(k, *(part[k] for part in parts)) for k in evaluation.k]


@underflow_is_zero
def sliced(evaluation: Evaluation[Any], columns: Mapping[str, list[Any]]) -> Slices:
    """The slices of an evaluation, from the label of every query in each column."""
    totals = evaluation._totals
    shares = {k: totals.shares(evaluation.flavor, k)[1] for k in totals.ks}
    by_distance: list[tuple[float, Slice]] = []
    for column, labels in columns.items():
        codes: dict[Any, int] = {}
        code = np.array([codes.setdefault(label, len(codes)) for label in labels])
        for label, number in codes.items():
            by_distance.append(_slice(evaluation, shares, column, label, code == number))
    by_distance.sort(key=lambda pair: -pair[0])
    return Slices(tuple(each for _, each in by_distance))


def _slice(
    evaluation: Evaluation[Any],
    shares: Mapping[int | None, FloatArray],
    column: str,
    label: Any,
    inside: NDArray[np.bool_],
) -> tuple[float, Slice]:
    """A slice, and how many standard errors it is from the other queries: -1 where this is not known."""
    # The totals of these queries are averaged as those of any other set are, so that a slice has the value that
    # ``evaluate`` has for its rows.
    rows, flavor = np.flatnonzero(inside), evaluation.flavor
    totals = evaluation._totals.at(rows)
    values, others = _means(totals, flavor), _means(evaluation._totals.at(np.flatnonzero(~inside)), flavor)
    differences = {k: value - others[k][0] for k, (value, _) in values.items()}
    intervals = {
        k: None if spread is None else spread.interval(_CONFIDENCE, "t", value) for k, (value, spread) in values.items()
    }

    def shaped(by_k: dict[int | None, Any]) -> Any:
        return by_k if isinstance(evaluation.k, tuple) else by_k[evaluation.k]

    table = evaluation.per_query
    first = totals.ks[0]
    return _distance(differences[first], values[first][1], others[first][1]), Slice(
        column=column,
        label=label,
        evaluation=Evaluation(
            value=shaped({k: value for k, (value, _) in values.items()}),
            flavor=flavor,
            k=evaluation.k,
            n_queries=rows.size,
            n_empty=shaped(dict(zip(totals.ks, totals.ndcg(flavor)[1].sum(axis=0).tolist(), strict=True))),
            per_query=replace(table, **{field.name: table[field.name][rows] for field in fields(table)}),
            frame_library=evaluation.frame_library,
            _totals=totals,
        ),
        share=shaped({k: float(share[rows].sum()) for k, share in shares.items()}),
        interval=shaped(intervals),
        difference=shaped({k: None if math.isnan(less) else less for k, less in differences.items()}),
    )


def _means(totals: Totals, flavor: Flavor) -> dict[int | None, tuple[float, Spread | None]]:
    """The mean of some queries at each cut-off, and its spread where this is known."""
    values = totals.ratios(flavor).tolist()
    return {k: (value, _spread(totals.at_cutoff(k), flavor)) for k, value in zip(totals.ks, values, strict=True)}


def _spread(totals: Totals, flavor: Flavor) -> Spread | None:
    try:
        [(_, means)] = means_of(totals, flavor)
    except ValueError:  # fewer than two queries count, or the value is nan
        return None
    return spread_of(means)[0]


def _distance(difference: float, one: Spread | None, other: Spread | None) -> float:
    if one is None or other is None:
        return -1.0
    error = math.hypot(one.standard_error, other.standard_error)
    return abs(difference) / error if error > 0 else (math.inf if difference else 0.0)
