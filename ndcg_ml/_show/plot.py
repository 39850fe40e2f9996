"""The drawings of evaluations, comparisons and explanations. Matplotlib is imported when one is made.

Nothing global is changed: colours and layout are given to the artists, and pyplot is asked for a figure only where the
caller gave no axes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ndcg_ml._data.arrays import FloatArray
from ndcg_ml._flavor.text import at_cutoff, empty_in_words
from ndcg_ml._stats.means import SAME, Interval, means_of, spread_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ndcg_ml._stats.comparison import Comparison
    from ndcg_ml._stats.slices import Slices
    from ndcg_ml.explain import Explanation, Part
    from ndcg_ml.result import Evaluation

Drawing: TypeAlias = "tuple[Figure, Axes]"

# Colours that colour-blind readers tell apart: M. Okabe and K. Ito, Color universal design, 2008. Of their eight, black
# and yellow are left out, which do not show on every background.
BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"
GREY = "#7f7f7f"
_CURVES = ((BLUE, "-"), (VERMILLION, "--"), (GREEN, "-."), (ORANGE, "-"), (PURPLE, "--"), (SKY, "-."))

_WIDTH = 8.0  # inches: 800 pixels at 100 per inch
_CONFIDENCE = 0.95
# More points of a sorted curve than this cannot be told apart on a screen.
_POINTS = 2000
_ROWS = 30
_TICKS = 15
_NAME = 40
# An outlier is a value further from 0 than _FAR times the 90 % quantile; among fewer than _FEW values there is none.
_FAR, _FEW = 5.0, 5


# -- the axes -------------------------------------------------------------------------------------------------------


def _axes(ax: object, method: str, height: float = 4.5) -> Drawing:
    """The caller's axes and their figure, or new ones of pyplot.

    Raises
    ------
    ImportError
        Matplotlib is not installed.
    TypeError
        Not the plain axes of Matplotlib.
    """
    try:
        from matplotlib.axes import Axes
    except ImportError as error:
        raise ImportError(f"{method} needs matplotlib. Install it with: pip install 'ndcg_ml[plot]'") from error
    if ax is None:
        from matplotlib import pyplot as plt

        figure, axes = plt.subplots(figsize=(_WIDTH, height), layout="constrained")
    elif isinstance(ax, Axes) and ax.name == "rectilinear":
        figure, axes = ax.figure, ax
    else:
        kind = f"{getattr(ax, 'name', '')} axes" if isinstance(ax, Axes) else type(ax).__name__
        several = " Pass one of the axes in the array, such as axes[0]." if isinstance(ax, np.ndarray) else ""
        raise TypeError(
            f"ax must be the axes of a matplotlib figure, with x and y, or None for a new figure; got {kind}.{several}"
        )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _titled(axes: Axes, first: str, second: str, beside: Sequence[str] = ()) -> None:
    """Two lines, or more where these are longer than the axes are wide; `beside` are the names at the rows."""
    lines = [line for text in (first, second) for line in _wrapped(text, _letters(axes, beside))]
    axes.set_title("\n".join(lines), loc="left", fontsize="medium", parse_math=False)


def _letters(axes: Axes, beside: Sequence[str] = ()) -> int:
    """About how many letters are as wide as the axes, where a layout engine has yet to make room for the names."""
    inches = axes.get_position().width * axes.figure.bbox.width / axes.figure.dpi
    longest = max((len(line) for name in beside for line in name.splitlines()), default=0)
    return max(20, int(inches * 72 / 5) - max(0, longest - 8))


def _wrapped(text: str, width: int) -> list[str]:
    """Lines that are broken after blanks and commas (a flavor's text has no blanks), and else where they must."""
    lines = [""]
    for word in re.findall(rf"[^ ,]{{1,{width - 1}}}[ ,]?|[ ,]", text):
        if lines[-1] and len(lines[-1]) + len(word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
    return [line.rstrip() for line in lines]


def _short(text: str, width: int = _NAME) -> str:
    """A name on one line; ``...`` stands for the middle of a long one."""
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return text if len(text) <= width else f"{text[: width - 13]}...{text[-10:]}"


def _legend(axes: Axes, **where: Any) -> None:
    legend = axes.legend(fontsize="small", framealpha=0.8, **where)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _named_rows(axes: Axes, names: Sequence[str], below: float = 0.0) -> None:
    """One row per name, the first at the top, and room for so many rows below the last."""
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.4 + below, -0.6)
    axes.grid(visible=False, axis="y")


def _reach(values: FloatArray, floor: float = 0.0) -> float:
    """How far from 0 the axis goes, so that outliers do not squash the rest: all the way if there are none."""
    far = np.abs(values[np.isfinite(values) & (np.abs(values) > SAME)])
    if not far.size:
        return max(floor, 1.0)
    if far.size >= _FEW:
        far = far[far <= _FAR * np.quantile(far, 0.9, method="lower")]
    return max(floor, float(far.max()))


# -- one evaluation -------------------------------------------------------------------------------------------------


def queries(evaluation: Evaluation[Any], ax: object) -> Drawing:
    """NDCG of every query, the worst first, over its share of the mean: the area under the curve is the value.

    Raises
    ------
    ImportError, TypeError
        As for ``_axes``.
    ValueError
        No query counts at a cut-off, or there are more cut-offs than colours.
    """
    ks = evaluation._totals.ks
    if len(ks) > len(_CURVES):
        raise ValueError(
            f"kind='queries' draws a curve per cut-off, and more than {len(_CURVES)} cannot be told apart; got "
            f"{len(ks)} cut-offs. Use kind='cutoffs', or evaluate fewer."
        )
    # The curves come before the axes, so that data that cannot be drawn leave no empty figure behind.
    curves = [_Curve(evaluation, k) for k in ks]
    figure, axes = _axes(ax, "Evaluation.plot")
    # A few huge or negative NDCGs would squash all others, so they are drawn at the edge.
    finite = np.concatenate([curve.ndcg[np.isfinite(curve.ndcg)] for curve in curves])
    top, bottom = _reach(finite[finite > 0], 1.0), -_reach(finite[finite < 0]) if (finite < 0).any() else 0.0
    values = evaluation._by_cutoff(evaluation.value)
    # One curve per cut-off. Empty queries get a band, because their NDCG is the flavor's choice and not a measurement.
    for curve, (colour, dashes) in zip(curves, _CURVES, strict=False):
        heights, edges = curve.steps()
        axes.stairs(
            np.clip(heights, bottom, top),
            100 * edges,
            baseline=None,
            color=colour,
            linestyle=dashes,
            linewidth=2,
            label=f"NDCG{at_cutoff(curve.k)} = {values[curve.k]:.4f}" if len(ks) > 1 else "queries",
        )
        low, high = curve.empty_share
        if high > low:
            axes.hlines(np.clip(curve.empty_at, bottom, top), 100 * low, 100 * high, color=GREY, linewidth=7, alpha=0.6)
    # A single curve has room for its area, which is the value, and for the value as a line.
    if len(curves) == 1:
        heights, edges = curves[0].steps()
        axes.stairs(np.clip(heights, bottom, top), 100 * edges, fill=True, color=BLUE, alpha=0.15)
        if np.isfinite(values[ks[0]]):
            label = f"NDCG{at_cutoff(ks[0])} = {values[ks[0]]:.4f}"
            axes.axhline(values[ks[0]], color=VERMILLION, linestyle="--", linewidth=1.2, label=label)
    # Lines without data are entries of the legend: one for all bands, and one for what the edge hides.
    if any(np.diff(curve.empty_share) > 0 for curve in curves):
        axes.plot([], [], color=GREY, linewidth=7, alpha=0.6, label="empty queries")
    beyond = sum(int(((curve.ndcg > top) | (curve.ndcg < bottom)).sum()) for curve in curves)
    if beyond:
        most = max((curve.ndcg[np.argmax(np.abs(curve.ndcg))] for curve in curves), key=abs)
        axes.plot([], [], linestyle="none", label=f"{beyond} drawn at the edge, up to {most:.4g}")
    # The x axis is a share of queries only where all weigh the same; otherwise it must name the weights.
    room = 0.03 * (top - bottom)
    axes.set_ylim(bottom - room, top + room)
    axes.set_xlim(0, 100)
    axes.set_ylabel(f"NDCG{at_cutoff(ks[0]) if len(ks) == 1 else ''} of the query")
    unit = "ideal DCG" if evaluation.flavor.aggregate == "micro" else "weights"
    alike = all(curve.alike for curve in curves)
    axes.set_xlabel("queries, the worst first (%)" if alike else f"share of the {unit}, the worst query first (%)")
    _titled(axes, _definition(evaluation), _counts(evaluation))
    # Curves rise to the right: the lower right corner is free where they are high at three quarters of the way.
    late = max(curve.ndcg[np.searchsorted(curve.edges[1:-1], 0.75)] for curve in curves)
    _legend(axes, loc="lower right" if late > (bottom + top) / 2 else "upper left")
    return figure, axes


class _Curve:
    """The queries that count at a cut-off, sorted by NDCG, with those that are empty side by side."""

    def __init__(self, evaluation: Evaluation[Any], k: int | None) -> None:
        ndcg, share, _ = evaluation._totals.shares(evaluation.flavor, k)
        table = evaluation.per_query
        empty = table.empty if table.empty.ndim == 1 else table.empty[:, evaluation._totals.ks.index(k)]
        counts = (share > 0) & ~np.isnan(ndcg)
        if not counts.any():
            raise ValueError(
                f"there must be a query with an NDCG{at_cutoff(k)} to draw; of {ndcg.size}, none counts: each is empty "
                f"or has the weight 0, and an empty one {empty_in_words(evaluation.flavor)}."
            )
        ndcg, share, empty = ndcg[counts], share[counts], empty[counts]
        order = np.lexsort((empty == (ndcg > 0), ndcg))  # empty queries of 0 come first, those of 1 last
        self.k = k
        self.alike = bool(share.max() - share.min() <= SAME)
        self.ndcg: FloatArray = ndcg[order]
        self.edges: FloatArray = np.concatenate([[0.0], np.cumsum(share[order])])
        self.edges /= self.edges[-1]
        where = np.flatnonzero(empty[order])
        self.empty_at = float(self.ndcg[where[0]]) if where.size else 0.0
        self.empty_share = (self.edges[where[0]], self.edges[where[-1] + 1]) if where.size else (0.0, 0.0)

    def steps(self) -> tuple[FloatArray, FloatArray]:
        """The heights of the steps, and their edges from 0 to 1."""
        if self.ndcg.size <= _POINTS:
            return self.ndcg, self.edges
        edges = np.linspace(0, 1, _POINTS + 1)
        middle = (edges[1:] + edges[:-1]) / 2
        return self.ndcg[np.searchsorted(self.edges[1:-1], middle, side="right")], edges


def cutoffs(evaluation: Evaluation[Any], ax: object) -> Drawing:
    """The value at each cut-off, with its 95 % t interval.

    Raises
    ------
    ImportError, TypeError
        As for ``_axes``.
    ValueError
        There is no value at any cut-off.
    """
    ks = sorted(evaluation._totals.ks, key=lambda k: (k is None, k))
    by_k = evaluation._by_cutoff(evaluation.value)
    values = np.array([by_k[k] for k in ks])
    if not np.isfinite(values).any():
        raise ValueError(
            f"there must be a finite value to draw; got nan or infinity at each of {len(ks)} cut-offs. An empty query "
            f"{empty_in_words(evaluation.flavor)} under this flavor."
        )
    intervals = [_interval(evaluation, k) if np.isfinite(by_k[k]) else None for k in ks]
    limits = np.array([(i.low, i.high) if i is not None else (np.nan, np.nan) for i in intervals])
    figure, axes = _axes(ax, "Evaluation.plot")
    places = np.arange(len(ks))
    if any(interval is not None for interval in intervals):
        words = [f"{100 * _CONFIDENCE:g} % interval (t)", "_nolegend_"]
        axes.fill_between(places, *limits.T, color=BLUE, alpha=0.2, linewidth=0, label=words[len(ks) == 1])
        if len(ks) <= _TICKS:
            axes.vlines(places, *limits.T, color=BLUE, linewidth=1.5, label=words[len(ks) > 1])
    many = len(ks) > _TICKS
    label = "value" if any(interval is not None for interval in intervals) else "value, which has no interval here"
    axes.plot(places, values, color=BLUE, linewidth=2, marker=None if many else "o", label=label)
    lacking = [k for k, value in by_k.items() if not np.isfinite(value)]
    if lacking:
        axes.plot([], [], linestyle="none", label=f"no finite value at k = {_short(', '.join(map(str, lacking)))}")
    bottom, top = _possible(evaluation.per_query.ndcg)
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, bottom), min(high, top))
    shown_at = places[:: -(-len(ks) // _TICKS)]
    axes.set_xticks(shown_at, ["none" if ks[at] is None else str(ks[at]) for at in shown_at])
    axes.set_xlim(-0.5, len(ks) - 0.5)
    axes.set_xlabel("cut-off k")
    axes.set_ylabel("micro-averaged NDCG@k" if evaluation.flavor.aggregate == "micro" else "mean NDCG@k")
    _titled(axes, _definition(evaluation), _counts(evaluation))
    _legend(axes)
    return figure, axes


def _possible(ndcg: FloatArray) -> tuple[float, float]:
    """Where NDCG can be, with some room: the interval of few queries may reach far beyond."""
    finite = ndcg[np.isfinite(ndcg)]
    bottom, top = float(finite.min(initial=0.0)), float(finite.max(initial=1.0))
    return bottom - 0.02 * (top - bottom), top + 0.02 * (top - bottom)


def _interval(evaluation: Evaluation[Any], k: int | None) -> Interval | None:
    try:
        [(_, means)] = means_of(evaluation._totals.at_cutoff(k), evaluation.flavor)
    except ValueError:  # one query alone, or an average without a spread, has no interval
        return None
    return spread_of(means)[0].interval(_CONFIDENCE, "t")


def _n_queries(n: int) -> str:
    return f"{n} quer{'y' if n == 1 else 'ies'}"


def _definition(evaluation: Evaluation[Any]) -> str:
    several = isinstance(evaluation.k, tuple)
    return evaluation.flavor.replace(k=None).short_text if several else evaluation.flavor.short_text


def _counts(evaluation: Evaluation[Any]) -> str:
    """How many queries there are, how many are empty, and what becomes of these."""
    n_empty = sorted(set(evaluation._by_cutoff(evaluation.n_empty).values()))
    weightless = int((evaluation.per_query.weight == 0).sum())
    flavor = evaluation.flavor
    fate = "adds nothing to the sums" if flavor.aggregate == "micro" else empty_in_words(flavor)
    text = (
        f"{_n_queries(evaluation.n_queries)}, {' to '.join(map(str, dict.fromkeys((n_empty[0], n_empty[-1]))))} empty"
    )
    text += f" (each {fate})" if n_empty[-1] else ""
    return text + (f"; {weightless} of weight 0 are left out" if weightless else "")


# -- two flavors ----------------------------------------------------------------------------------------------------


def waterfall(explanation: Explanation, parts: Sequence[Part], idle: Sequence[str], ax: object) -> Drawing:
    """From a's value to b's, a step for each of the parts; `idle` are the names of those without effect.

    Raises
    ------
    ImportError, TypeError
        As for ``_axes``.
    """
    a, b = explanation.flavor_a, explanation.flavor_b
    figure, axes = _axes(ax, "Explanation.plot", height=1.8 + 0.42 * (len(parts) + 2))
    values = explanation.value_a + np.concatenate([[0.0], np.cumsum([part.contribution for part in parts])])
    values[-1] = explanation.value_b
    last = len(parts) + 1
    axes.vlines(values, np.arange(len(values)), np.arange(1, len(values) + 1), color=GREY, linewidth=1)
    for row, (before, after) in enumerate(pairwise(values), start=1):
        colour = BLUE if after >= before else VERMILLION
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 3, "mutation_scale": 16, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (after, row), (before, row), arrowprops=arrow)
        _beside(axes, max(before, after), row, f"{parts[row - 1].contribution:+.4f}")
    for row, value in ((0, explanation.value_a), (last, explanation.value_b)):
        axes.plot(value, row, marker="D", markersize=8, color=GREY)
        _beside(axes, value, row, f"{value:.4f}")
    ends = [
        f"{name}: {text}" if len(text) <= _NAME else name for name, text in (("a", a.short_text), ("b", b.short_text))
    ]
    names = ends[:1]
    for part in parts:
        before_text, after_text = (_short(text, 18) for text in part.values_text())
        names.append(f"{part.name}: {before_text} → {after_text}")
    names += ends[1:]
    _named_rows(axes, names)
    low, high = float(values.min()), float(values.max())
    reach = max(high - low, 1e-3)
    axes.set_xlim(low - 0.06 * reach, high + 0.2 * reach)  # room for the numbers beside the bars
    at = at_cutoff(a.k) if a.k == b.k else ""
    without = _wrapped(f"no effect on these data: {', '.join(idle)}", _letters(axes, names)) if idle else []
    axes.set_xlabel("\n".join([f"NDCG{at}", *without]))
    how = {"shapley": "Shapley values of the switches", "order": "the switches one after another"}[explanation.method]
    _titled(
        axes,
        f"b - a = {explanation.difference:+.4f}; {_n_queries(explanation.n_queries)}; {how}",
        f"a: {a.short_text}; b: {b.short_text}",
        names,
    )
    return figure, axes


def _beside(axes: Axes, x: float, row: int, text: str) -> None:
    axes.annotate(text, (x, row), (9, 0), textcoords="offset points", va="center", fontsize="small")


# -- several systems ------------------------------------------------------------------------------------------------


def compared(comparison: Comparison, ax: object) -> Drawing:
    """The difference of two systems in every query, the largest loss first; for more systems, an interval per pair.

    Raises
    ------
    ImportError, TypeError
        As for ``_axes``.
    """
    return _paired(comparison, ax) if len(comparison.pairs) == 1 else _pairs(comparison, ax)


def _paired(comparison: Comparison, ax: object) -> Drawing:
    [pair] = comparison.pairs
    figure, axes = _axes(ax, "Comparison.plot")
    # More points than this cannot be told apart, so a regular choice of the sorted ones is drawn.
    apart = np.sort(comparison.ndcg[:, 1] - comparison.ndcg[:, 0])
    n = apart.size
    at = np.arange(n) if n <= _POINTS else np.linspace(0, n - 1, _POINTS).astype(int)
    # The scale is the same on both sides of 0, so that gains and losses can be compared by eye.
    reach = _reach(apart)
    drawn = np.clip(apart[at], -reach, reach)
    # The difference of the values and its interval are drawn first, so that the points lie on top of them.
    a, b = _short(pair.a, 24), _short(pair.b, 24)
    interval = pair.interval
    low, high = np.clip((interval.low, interval.high), -2 * reach, 2 * reach)  # it may be infinite
    axes.axhspan(low, high, color=GREY, alpha=0.25, linewidth=0, label=interval.how_text())
    axes.axhline(0, color=GREY, linewidth=1)
    axes.axhline(
        pair.difference,
        color=GREEN,
        linestyle="--",
        linewidth=1.8,
        label=f"difference of the values {pair.difference:+.4f}",
    )
    # Shapes as well as colours tell wins from losses, for colour-blind readers and for print.
    kinds = (
        (drawn < -SAME, "v", VERMILLION, f"{_n_queries(pair.losses)}: {b} worse"),
        (np.abs(drawn) <= SAME, "o", GREY, f"{_n_queries(pair.ties)}: equal"),
        (drawn > SAME, "^", BLUE, f"{_n_queries(pair.wins)}: {b} better"),
    )
    for which, marker, colour, label in kinds:
        if which.any():
            axes.plot(
                at[which] + 1, drawn[which], linestyle="none", marker=marker, markersize=5, color=colour, label=label
            )
    # Queries beyond the axis are drawn at its edge, and the legend says so.
    outside = apart[np.abs(apart) > reach]
    if outside.size:
        most = outside[np.argmax(np.abs(outside))]
        axes.plot([], [], linestyle="none", label=f"{outside.size} drawn at the edge, up to {most:+.4f}")
    # The title holds the numbers, so that the drawing can stand without its table.
    axes.set_ylim(-1.06 * reach, 1.06 * reach)
    axes.set_xlim(1 - 0.02 * n, n + 0.02 * n)
    axes.set_xlabel("queries, the largest loss first")
    axes.set_ylabel(f"{comparison.measure} of the query,\n{b} minus {a}", parse_math=False)
    _titled(
        axes,
        f"{comparison.definition}; {n} queries{_left_out(comparison)}",
        f"{b} minus {a}: {pair.difference:+.4f} ({interval.low:+.4f} to {interval.high:+.4f}), "
        f"p\u00a0=\u00a0{pair.p_value:.4f}: {pair.verdict}{_judged(comparison)}",
    )
    _legend(axes, loc="upper left")
    return figure, axes


def _pairs(comparison: Comparison, ax: object) -> Drawing:
    order = sorted(range(len(comparison.pairs)), key=lambda at: comparison.pairs[at].p_value)[:_ROWS]
    pairs = [comparison.pairs[at] for at in sorted(order)]
    figure, axes = _axes(ax, "Comparison.plot", height=2.0 + 0.5 * len(pairs))
    most = max(1.0, float(np.ptp(comparison.ndcg)))  # an interval may reach beyond what a difference can be
    rows = [
        _Row(
            f"{_short(pair.b, 24)} minus {_short(pair.a, 24)}\n"
            f"{pair.difference:+.4f}, p = {pair.p_adjusted:.4f}: {pair.verdict}",
            pair.difference,
            (max(-most, pair.interval.low), min(most, pair.interval.high)),
            pair.verdict != "undecided",
        )
        for pair in pairs
    ]
    _forest(axes, rows, 0.0, (-most, most), ("decided", "undecided"))
    xlabel = f"difference of {comparison.measure}, {pairs[0].interval.how_text()}"
    ends = np.array([max(-row.low, row.high) for row in rows])
    usual, widest = float(np.quantile(ends, 0.25)), float(ends.max())
    if 0 < usual < widest / (2 * _FAR):  # a system far from all others would squash the intervals of these
        linear = 10.0 ** np.ceil(np.log10(usual))
        axes.set_xscale("symlog", linthresh=linear, linscale=1.5)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlim(*(1.4 * limit for limit in axes.get_xlim()))
        xlabel += f"\nlogarithmic beyond {linear:g} to either side"
    axes.set_xlabel(xlabel)
    some = (
        f"; the {_ROWS} of {len(comparison.pairs)} pairs with the smallest p" if len(comparison.pairs) > _ROWS else ""
    )
    counts = f"{comparison.n_queries} queries{_left_out(comparison)}{some}{_judged(comparison)}"
    _titled(axes, comparison.definition, counts, [row.name for row in rows])
    return figure, axes


def _left_out(comparison: Comparison) -> str:
    return f", {len(comparison.not_compared)} more not compared" if len(comparison.not_compared) else ""


def _judged(comparison: Comparison) -> str:
    """The shares of judged documents, where they are known: of each system, or of many the least and the largest."""
    if comparison.judged is None:
        return ""
    if len(comparison.names) > 4:
        return f"; judged {min(comparison.judged):.2f} to {max(comparison.judged):.2f}"
    shares = zip(comparison.names, comparison.judged, strict=True)
    return f"; judged: {', '.join(f'{_short(name, 24)} {share:.2f}' for name, share in shares)}"


def sliced(slices: Slices, ax: object) -> Drawing:
    """The interval of each slice, at the first cut-off; the line is the value of all queries.

    Raises
    ------
    ImportError, TypeError
        As for ``_axes``.
    """
    k = slices[0].evaluation._totals.ks[0]
    drawn = []
    for subset in slices:
        value, interval, share = (
            part[k] if isinstance(part, dict) else part for part in (subset.value, subset.interval, subset.share)
        )
        drawn.append((subset, float(value), interval, share))
    whole = sum(share * value for subset, value, _, share in drawn if share > 0 and subset.column == slices[0].column)
    rows = [
        _Row(
            f"{_short(f'{subset.column}={subset.label}')}\n{subset.n_queries} queries, {value:.4f}",
            value,
            None if interval is None else (interval.low, interval.high),
            interval is not None,
        )
        for subset, value, interval, _ in drawn[:_ROWS]
    ]
    figure, axes = _axes(ax, "Slices.plot", height=2.0 + 0.5 * len(rows))
    ndcg = np.concatenate([subset.evaluation.per_query.ndcg.ravel() for subset in slices])
    _forest(axes, rows, whole, _possible(ndcg), ("with 95 % t interval", "no interval: too few queries"))
    axes.set_xlabel(f"NDCG{at_cutoff(k)}; the line is that of all queries, {whole:.4f}")
    some = f"; the first {_ROWS} of {len(drawn)} slices" if len(drawn) > _ROWS else ""
    n = sum(subset.n_queries for subset in slices if subset.column == slices[0].column)
    flavor = slices[0].evaluation.flavor.replace(k=k)
    _titled(axes, flavor.short_text, f"{_n_queries(n)}{some}", [row.name for row in rows])
    return figure, axes


class _Row:
    """A value with its limits, and whether it is drawn filled."""

    def __init__(self, name: str, value: float, limits: tuple[float, float] | None, filled: bool) -> None:
        self.name, self.value, self.filled = name, value, filled
        self.low, self.high = (value, value) if limits is None else limits


def _forest(
    axes: Axes, rows: Sequence[_Row], reference: float, most: tuple[float, float], words: Sequence[str]
) -> None:
    """Values with their limits, one below the other, on an axis that ends at `most`.

    `words` say what a filled and a hollow point mean.
    """
    axes.axvline(reference, color=GREY, linewidth=1.2)
    for filled, colour, label in ((True, BLUE, words[0]), (False, GREY, words[1])):
        at = [at for at, row in enumerate(rows) if row.filled == filled and np.isfinite(row.value)]
        if at:
            axes.hlines(at, [rows[i].low for i in at], [rows[i].high for i in at], color=colour, linewidth=2)
            face = colour if filled else "none"
            values = [rows[i].value for i in at]
            axes.plot(values, at, "o", markersize=8, color=colour, markerfacecolor=face, label=label)
    _named_rows(axes, [row.name for row in rows], below=1.0)  # room for the legend
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, most[0]), min(high, most[1]))
    _legend(axes, loc="lower right")
