"""Draw values, slices and differences. Matplotlib is imported when needed.

No global setting of Matplotlib is changed, and pyplot creates a figure only if no axes are passed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ndcg_ml._core.layout import FloatArray
from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.messages import brief_text, install
from ndcg_ml._statistics.means import SAME
from ndcg_ml._statistics.verdict import DECIDED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ndcg_ml._core.mean_and_empty_queries import Totals
    from ndcg_ml._statistics.differences import Difference
    from ndcg_ml._statistics.means import Interval
    from ndcg_ml.flavor import Flavor

Drawing: TypeAlias = "tuple[Figure, Axes]"

# Colours that colour-blind readers can distinguish: M. Okabe and K. Ito, Color universal design, 2008.
_BLUE, _VERMILLION, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#7f7f7f"

_WIDTH = 8.0  # inches: 800 pixels at 100 per inch
_POINTS = 2000  # more points of a sorted curve cannot be distinguished on a screen
_ROWS = 30
_short = partial(brief_text, width=24, tail=10)


class _Row(NamedTuple):
    """A value with its limits, and whether it is drawn filled."""

    name: str
    value: float
    limits: tuple[float, float] | None
    filled: bool


# -- values with intervals ------------------------------------------------------------------------------------------


def values(
    by_k: Mapping[int | None, float],
    intervals_of: Callable[[], Mapping[int | None, Interval]],
    flavor: Flavor,
    ndcg: FloatArray,
    note: str,
    ax: object,
) -> Drawing:
    """Draw the value at each cut-off with its 95 % interval, if there is one. `ndcg` is that of the queries.

    Raises
    ------
    ImportError, TypeError
        As for ``_axes``.
    ValueError
        No cut-off has a finite value.
    """
    if not np.isfinite(list(by_k.values())).any():
        raise ValueError("there must be a finite value to draw; got nan or infinity at every cut-off.")
    try:
        intervals = intervals_of()
    except ValueError:  # no interval, for example with a single query
        intervals = {}
    rows = []
    for k, value in by_k.items():
        limits = (intervals[k].low, intervals[k].high) if k in intervals else None
        rows.append(_Row(f"NDCG{at_cutoff(k)}: {value:.4f}", value, limits, limits is not None))
    flavor = flavor.replace(k=None) if len(by_k) > 1 else flavor
    figure, axes = _axes(ax, "Evaluation.plot", len(rows))
    _forest(axes, rows, _possible(ndcg), ("with 95 % interval", "no interval"))
    axes.set_xlabel("micro-averaged NDCG" if flavor.aggregate == "micro" else "mean NDCG")
    _titled(axes, flavor.short_text, note + _first_of(len(rows), "cut-offs"))
    return figure, axes


def sliced(totals: Totals, flavor: Flavor, table: Sequence[Mapping[str, Any]], ax: object) -> Drawing:
    """Draw the interval of each slice at the first cut-off, from the table. The line is the value of all queries.

    Raises
    ------
    ImportError, TypeError
        As for ``_axes``.
    """
    k, whole = totals.ks[0], totals.mean(flavor).tolist()[0]
    rows = []
    for row in table:
        if row["k"] == k:
            name = f"{_short(row['column'])}={_short(str(row['label']))}"
            text = f"{name}: {row['n_queries']} queries, {row['ndcg']:.4f}"
            limits = None if row["low"] is None else (row["low"], row["high"])
            rows.append(_Row(text, row["ndcg"], limits, limits is not None))
    figure, axes = _axes(ax, "Slices.plot", len(rows))
    axes.axvline(whole, color=_GREY, linewidth=1.2)
    _forest(axes, rows, _possible(totals.ndcg(flavor)[0]), ("with 95 % interval", "no interval: too few queries"))
    axes.set_xlabel(f"NDCG{at_cutoff(k)}; the line is that of all queries, {whole:.4f}")
    count = f"{len(totals.ids)} queries{_first_of(len(rows), 'slices')}"
    _titled(axes, flavor.replace(k=k).short_text, count)
    return figure, axes


def _possible(ndcg: FloatArray) -> tuple[float, float]:
    """Return the limits of the axis: the range of NDCG with a margin. Intervals may extend far beyond it."""
    finite = ndcg[np.isfinite(ndcg)]
    bottom, top = float(finite.min(initial=0.0)), float(finite.max(initial=1.0))
    return bottom - 0.02 * (top - bottom), top + 0.02 * (top - bottom)


# -- several systems ------------------------------------------------------------------------------------------------


class Compared(NamedTuple):
    """What a drawing shows of a comparison: `ndcg` has a row per query, `words` are those for a query and several."""

    pairs: Sequence[Difference]
    ndcg: FloatArray
    measure: str
    definition: str
    words: Sequence[str]
    n_left_out: int


def compared(comparison: Compared, ax: object) -> Drawing:
    """Draw the difference of two systems in every query; for more systems, an interval per pair.

    Raises
    ------
    ImportError, TypeError
        As for ``_axes``.
    """
    return _queries(comparison, ax) if len(comparison.pairs) == 1 else _pairs(comparison, ax)


def _queries(comparison: Compared, ax: object) -> Drawing:
    [pair] = comparison.pairs
    figure, axes = _axes(ax, "Comparison.plot", 7)
    query, queries = comparison.words
    ordered = np.sort(comparison.ndcg[:, 1] - comparison.ndcg[:, 0])
    n = ordered.size
    at = np.arange(n) if n <= _POINTS else np.linspace(0, n - 1, _POINTS).astype(int)
    # The axis is symmetric about 0, so that gains and losses are comparable.
    reach = float(np.abs(ordered).max()) or 1.0
    a, b = _short(pair.a), _short(pair.b)
    interval = pair.interval
    low, high = np.clip((interval.low, interval.high), -2 * reach, 2 * reach)  # it may be infinite
    axes.axhspan(low, high, color=_GREY, alpha=0.25, linewidth=0, label=interval.how_text())
    axes.axhline(0, color=_GREY, linewidth=1)
    label = f"difference of the values {pair.difference:+.4f}"
    axes.axhline(pair.difference, color=_GREEN, linestyle="--", linewidth=1.8, label=label)
    # Wins and losses differ in shape and colour, for colour-blind readers and for print.
    drawn = ordered[at]
    kinds = (
        (drawn < -SAME, "v", _VERMILLION, f"{pair.losses} {queries}: {b} worse"),
        (np.abs(drawn) <= SAME, "o", _GREY, f"{pair.ties} {queries}: equal"),
        (drawn > SAME, "^", _BLUE, f"{pair.wins} {queries}: {b} better"),
    )
    for which, marker, colour, label in kinds:
        if which.any():
            axes.plot(at[which] + 1, drawn[which], marker, markersize=5, color=colour, label=label)
    axes.set_ylim(-1.06 * reach, 1.06 * reach)
    axes.set_xlabel(f"{queries}, the largest loss first")
    axes.set_ylabel(f"{comparison.measure} of the {query},\n{b} minus {a}", parse_math=False)
    _titled(
        axes,
        f"{comparison.definition}; {n} {queries}{_left_out(comparison)}",
        f"{b} minus {a}: {pair.difference:+.4f} ({_limits(interval)}), "
        f"p\u00a0=\u00a0{pair.p_value:.4f}: {pair.verdict}",
    )
    _legend(axes, "upper left")
    return figure, axes


def _limits(interval: Interval) -> str:
    finite = np.isfinite(interval.high - interval.low)
    return f"{interval.low:+.4f} to {interval.high:+.4f}" if finite else "no limits"


def _pairs(comparison: Compared, ax: object) -> Drawing:
    n_pairs = len(comparison.pairs)
    order = sorted(range(n_pairs), key=lambda at: comparison.pairs[at].p_value)[:_ROWS]
    pairs = [comparison.pairs[at] for at in sorted(order)]
    rows = [
        _Row(
            f"{_short(pair.b)} minus {_short(pair.a)}: {pair.difference:+.4f}, "
            f"p = {pair.p_adjusted:.4f}: {pair.verdict}",
            pair.difference,
            (pair.interval.low, pair.interval.high),
            pair.verdict in DECIDED,
        )
        for pair in pairs
    ]
    figure, axes = _axes(ax, "Comparison.plot", len(rows))
    most = max(1.0, float(np.ptp(comparison.ndcg)))  # intervals may extend beyond possible differences
    axes.axvline(0, color=_GREY, linewidth=1.2)
    _forest(axes, rows, (-most, most), ("decided", "undecided"))
    axes.set_xlabel(f"difference of {comparison.measure}, {pairs[0].interval.how_text()}")
    some = f"; the {_ROWS} of {n_pairs} pairs with the smallest p" if n_pairs > _ROWS else ""
    _titled(axes, comparison.definition, f"{len(comparison.ndcg)} {comparison.words[1]}{_left_out(comparison)}{some}")
    return figure, axes


def _left_out(comparison: Compared) -> str:
    return f", {comparison.n_left_out} more not compared" if comparison.n_left_out else ""


# -- the parts of a drawing -----------------------------------------------------------------------------------------


def _axes(ax: object, method: str, n_rows: int) -> Drawing:
    """Return the caller's axes and their figure, or new ones of pyplot.

    Raises
    ------
    ImportError
        Matplotlib is not installed.
    TypeError
        `ax` is not an Axes.
    """
    try:
        from matplotlib.axes import Axes
    except ImportError as error:
        raise ImportError(f"{method} needs matplotlib. Install it with: {install('plot')}") from error
    if ax is None:
        from matplotlib import pyplot as plt

        figure, axes = plt.subplots(figsize=(_WIDTH, height(n_rows)), layout="constrained")
    elif isinstance(ax, Axes):
        figure, axes = ax.figure, ax
    else:
        raise TypeError(
            f"ax must be the axes of a matplotlib figure, or None for a new figure; got {type(ax).__name__}."
        )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def height(n_rows: int) -> float:
    """Return the height of a drawing with this number of rows, in inches."""
    return 1.5 + 0.42 * min(n_rows, _ROWS)


def _forest(axes: Axes, rows: Sequence[_Row], most: tuple[float, float], words: Sequence[str]) -> None:
    """Draw values with their limits, one below the other, with their names above, on an axis clipped to `most`.

    `words` are the legends of filled and hollow points.
    """
    rows = rows[:_ROWS]
    for filled, colour, label in ((True, _BLUE, words[0]), (False, _GREY, words[1])):
        at = [at for at, row in enumerate(rows) if row.filled == filled and np.isfinite(row.value)]
        if at:
            limits = np.clip([rows[i].limits or (rows[i].value, rows[i].value) for i in at], *most)
            axes.hlines(at, *limits.T, color=colour, linewidth=2)
            face = colour if filled else "none"
            axes.plot([rows[i].value for i in at], at, "o", markersize=8, color=colour, mfc=face, label=label)
    above: dict[str, Any] = {"xytext": (4, 5), "textcoords": "offset points", "va": "bottom", "parse_math": False}
    for i, row in enumerate(rows):
        lines = textwrap.wrap(row.name, _letters(axes, 4.4))
        name = axes.annotate("\n".join(lines), (0, i), xycoords=axes.get_yaxis_transform(), fontsize="small", **above)
        name.set_in_layout(False)  # constrained layout of Matplotlib 3.11 would shrink the axes for long names
    axes.set_yticks([])
    axes.set_ylim(len(rows) + 0.4, -0.8)  # room for the legend below the last row
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, most[0]), min(high, most[1]))
    _legend(axes, "lower right")


def _legend(axes: Axes, place: str) -> None:
    for text in axes.legend(fontsize="small", framealpha=0.8, loc=place).get_texts():
        text.set_parse_math(False)


def _titled(axes: Axes, *lines: str) -> None:
    """Set the lines as the title, wrapped to the width of the axes."""
    wrapped = [part for line in lines for part in textwrap.wrap(line, _letters(axes, 5), break_on_hyphens=False)]
    axes.set_title("\n".join(wrapped), loc="left", fontsize="medium", parse_math=False)


def _letters(axes: Axes, points: float) -> int:
    """Return how many letters of this mean width fit the width of the axes."""
    inches = axes.get_position().width * axes.figure.bbox.width / axes.figure.dpi
    return max(20, int(inches * 72 / points))


def _first_of(n_rows: int, what: str) -> str:
    return f"; the first {_ROWS} of {n_rows} {what}" if n_rows > _ROWS else ""
