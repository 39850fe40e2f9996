"""Evaluations and comparisons as one HTML file: values, drawings, the queries that decide, the definition, versions.

The first screen has what decides: values, verdicts and the picture. The rest is folded, and opens on a click and on
paper. The file asks nobody for anything: styles and drawings are in it, there is no script, and a policy in its head
tells the browser to load nothing. Text is escaped by Jinja2 in the template, and by ``_show.escaping`` in tables. The
same result gives the same text.
"""

from __future__ import annotations

import datetime
import os
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib import resources
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import _atomic
from ndcg_ml._checks import whole_number
from ndcg_ml._flavor.text import at_cutoff
from ndcg_ml._one_line import percent, shown, shown_text, visible
from ndcg_ml._show import escaping
from ndcg_ml._show.table import Table
from ndcg_ml._show.versions import versions
from ndcg_ml._stats.comparison_table import closing_lines, pairs_table, systems_table
from ndcg_ml._stats.means import SAME, Method, Seed, as_confidence, generator, how_many

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ndcg_ml._stats.comparison import Comparison
    from ndcg_ml._stats.means import Interval
    from ndcg_ml.flavor import Flavor
    from ndcg_ml.result import Evaluation

AnyPath: TypeAlias = "str | os.PathLike[str]"

# Rows of a table whose length the data decide: of slices, and of pairs that get tables of their own.
_MOST_SLICES = 100
_MOST_PAIRS = 6
_MOST_IDS = 20
_MOST_VERDICTS = 10  # pairs in the table above the picture, which should still be on the first screen
_LONG = 12  # rows of a table that folds

_NO_ROOM = "constrained_layout not applied"
# Inches. A narrow screen shows the drawing as wide as its letters need, and scrolls it (report.html).
_WIDTH = 7.6
_LETTERS = 9.5  # letters of a label per inch
# Placeholders for the page's two colours, text and background, which are not known when the drawing is made.
_INK, _PAPER = "#010203", "#fdfcfb"
_STYLE = {
    "font.size": 10,
    "svg.fonttype": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
    "legend.facecolor": _PAPER,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
}


def require() -> None:
    """Refuse to begin without the libraries that a report needs.

    Raises
    ------
    ImportError
        One is not installed.
    """
    try:
        import jinja2
        import matplotlib.style
    except ImportError as error:
        raise ImportError(
            f"a report needs jinja2 and matplotlib: {error}. Install them with: pip install 'ndcg_ml[report]'"
        ) from error
    del jinja2, matplotlib


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """What the caller says about a report.

    Raises
    ------
    TypeError, ValueError
        An argument is not as ``Evaluation.to_html`` says.
    """

    title: str | None
    command: str | None
    date: str | datetime.date | None
    top: int
    digits: int

    def __post_init__(self) -> None:
        whole_number(self.top, "top", 0)
        whole_number(self.digits, "digits", 0)
        for name in ("title", "command"):
            value = getattr(self, name)
            if not isinstance(value, str | None):
                raise TypeError(f"{name} must be text or None; got {shown(value)} of type {type(value).__name__}.")
        if not isinstance(self.date, str | datetime.date | None):
            raise TypeError(
                f"date must be a date, text or None; got {shown(self.date)} of type {type(self.date).__name__}."
            )

    def number(self, value: float, sign: bool = False) -> str:
        """A number as the tables have it."""
        if abs(value) >= 1e9:  # a DCG of huge gains
            return f"{value:{'+' if sign else ''}.4g}"
        return f"{value:{'+' if sign else ''}.{self.digits}f}"


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading and what is below it, as HTML."""

    title: str
    parts: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.parts.append(escaping.paragraph(text))

    def table(self, table: Table, kind: str = "") -> None:
        """A table that scrolls where the screen is narrow, or is folded into lines if its kind is "verdicts"."""
        self.parts.append(f'<div class="{f"table {kind}".strip()}">{table.html()}</div>')

    @contextmanager
    def beside(self) -> Iterator[None]:
        """What is said meanwhile stands side by side where the screen is wide enough."""
        self.parts.append('<div class="beside">')
        yield
        self.parts.append("</div>")

    @contextmanager
    def folded(self, title: str) -> Iterator[None]:
        """What is said meanwhile stands below this line, which opens it."""
        self.parts.append(f"<details><summary>{escaping.escaped(title)}</summary>")
        yield
        self.parts.append("</details>")

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        lines = (f"<dt>{escaping.escaped(name)}</dt><dd>{escaping.escaped(words)}</dd>" for name, words in facts)
        self.parts.append("\n".join(["<dl>", *lines, "</dl>"]))

    def draw(self, what: str, height: float, draw: Callable[[Axes], object]) -> None:
        """The drawing, or in words why there is none; `what` is read to those who do not see it."""
        try:
            self.parts.append(f"<figure>{_svg(draw, height, salt=self.title, what=what)}</figure>")
        except ValueError as error:
            self.say(f"There is no drawing of {what}: {error}")


# -- the two reports ------------------------------------------------------------------------------------------------


def of_evaluation(
    evaluation: Evaluation[Any],
    path: AnyPath | None,
    about: About,
    *,
    confidence: float,
    method: Method | None,
    n_resamples: int,
    seed: Seed,
) -> str | Path:
    """What ``Evaluation.to_html`` returns and saves.

    Raises
    ------
    ImportError, TypeError, ValueError, OSError
        As from ``Evaluation.to_html``.
    """
    confidence, _, _ = as_confidence(confidence), how_many(method or "bca", n_resamples), generator(seed)
    require()
    ks = evaluation._totals.ks
    values = _Section("Values")
    _values(values, evaluation, about, (confidence, method, n_resamples, seed))
    values.draw("the values", _rows_high(len(ks)), evaluation.plot)
    queries = _Section("Queries")
    _largest_losses(queries, evaluation, about)
    sections = [values, queries]
    if evaluation.slices is not None:
        slices = evaluation.slices
        section = _Section("Slices")
        section.draw("the slices", _rows_high(len(slices)), slices.plot)
        table = slices._table()
        with section.folded("All numbers of the slices") if len(table.rows) > _LONG else nullcontext():
            _limited(section, table, _MOST_SLICES, "rows of slices, those that differ most from the others first")
        section.say(
            "Intervals are t intervals. Among many slices some differ by chance, and nothing is corrected here."
        )
        sections.append(section)
    at = f"{at_cutoff(ks[0])}" if len(ks) == 1 else ""
    title = f"NDCG{at} of {_counted(evaluation.n_queries, 'query', 'queries')}"
    return _page(path, about, title, sections, evaluation.flavor, ks)


def of_comparison(comparison: Comparison, path: AnyPath | None, about: About) -> str | Path:
    """What ``Comparison.to_html`` returns and saves.

    Raises
    ------
    ImportError, TypeError, ValueError, OSError
        As from ``Comparison.to_html``.
    """
    require()
    values = _Section("Values and verdicts")
    systems = systems_table(comparison, about.digits)
    rows = [[shown_text(row[0]), *row[1:]] for row in systems.rows]
    with values.beside():
        values.table(replace(systems, rows=rows))
        values.table(_verdicts(comparison, about), "verdicts")
    if len(comparison.pairs) > _MOST_VERDICTS:
        values.say(
            f"The first {_MOST_VERDICTS} of {len(comparison.pairs)} pairs; the numbers of all are below the picture."
        )
    if len(comparison.pairs) == 1:
        values.draw("the differences", 4.3, comparison.plot)
    else:
        height = _rows_high(len(comparison.pairs))
        values.draw("the differences", height, comparison.plot)
    n_left_out = len(comparison.not_compared)
    values.say(
        f"{comparison.n_queries} queries were compared"
        + (
            f"; {n_left_out} {'was' if n_left_out == 1 else 'were'} left out (weight 0, or no value in one of "
            f"the systems): {_some(comparison.not_compared)}."
            if n_left_out
            else "."
        )
    )
    for line in closing_lines(comparison):
        values.say(line)
    table = pairs_table(comparison, about.digits)
    cells = [[*map(shown_text, row[:2]), *row[2:]] for row in table.rows]
    with values.folded("All numbers of the differences"):
        if len(cells) == 1:
            values.facts(zip(table.head, cells[0], strict=True))
        else:
            values.table(replace(table, rows=cells, caption=""))
            if table.marked:
                values.say("Marked: pairs with a verdict.")
    queries = _Section("Queries that moved most")
    _largest_moves(queries, comparison, about)
    names = " and ".join(map(shown_text, comparison.names)) if len(rows) == 2 else f"{len(rows)} systems"
    sections = [values, *_compared_slices(comparison, about), queries]
    k = None if comparison.flavor is None else comparison.flavor.k
    return _page(path, about, f"Comparison of {names}", sections, comparison.flavor, (k,), comparison.measure)


# -- their parts ----------------------------------------------------------------------------------------------------


def _verdicts(comparison: Comparison, about: About) -> Table:
    """The difference of each pair, the p that decides it, and what may be said: few columns, for a narrow screen."""
    full = pairs_table(comparison, about.digits)
    decides = "p adjusted" if "p adjusted" in full.head else "p"
    picked = [full.head.index(name) for name in (full.head[2], decides, full.head[-1])]
    rows = [
        [f"{shown_text(row[1])} against {shown_text(row[0])}", *(row[at] for at in picked)]
        for row in full.rows[:_MOST_VERDICTS]
    ]
    marked = [at for at in full.marked if at < _MOST_VERDICTS]
    return Table(["b against a", *(full.head[at] for at in picked)], rows, "lrrl", marked)


def _values(
    section: _Section, evaluation: Evaluation[Any], about: About, how: tuple[float, Method | None, int, Seed]
) -> None:
    ks = evaluation._totals.ks
    extra = evaluation._extra_columns()
    intervals: dict[int | None, Interval] = {}
    try:
        intervals = evaluation._by_cutoff(evaluation.interval(*how))
        said = f"Intervals: {'; '.join(dict.fromkeys(intervals[k].how_text() for k in ks))}."
    except ValueError as error:
        said = f"There is no interval: {error}"
    values, empties = evaluation._by_cutoff(evaluation.value), evaluation._by_cutoff(evaluation.n_empty)
    rows = []
    for k in ks:
        limits = "-"
        if k in intervals:
            limits = f"{about.number(intervals[k].low)} to {about.number(intervals[k].high)}"
        more = [about.number(column[k]) for column in extra.values()]
        rows.append(
            [f"NDCG{at_cutoff(k)}", about.number(values[k]), limits, *more, str(evaluation.n_queries), str(empties[k])]
        )
    section.table(Table(["", "value", f"{percent(how[0])} interval", *extra, "queries", "empty"], rows))
    for line in (*evaluation._notes()[:-1], said):  # the last is the flavor, which has a section of its own
        section.say(line)


def _largest_losses(section: _Section, evaluation: Evaluation[Any], about: About) -> None:
    """The queries whose DCG is furthest below their ideal, at the first cut-off."""
    k = evaluation._totals.ks[0]
    table = evaluation.per_query
    ndcg, dcg, ideal, empty = (
        table[name] if table[name].ndim == 1 else table[name][:, 0] for name in ("ndcg", "dcg", "idcg", "empty")
    )
    counts = ~empty & (table.weight > 0)
    with np.errstate(invalid="ignore"):
        lost = ideal - dcg
    known = counts & np.isfinite(lost)
    losing = np.flatnonzero(known & (lost > SAME * np.abs(ideal)))
    listed = losing[np.argsort(-lost[losing], kind="stable")[: about.top]]
    name = f"DCG{at_cutoff(k)}"
    if not losing.size:
        section.say(f"No query loses {name} against its ideal.")
    elif listed.size:
        some = ""
        if listed.size < losing.size:
            largest = "largest is" if listed.size == 1 else f"{listed.size} largest are"
            part = lost[listed].sum() / lost[losing].sum()
            some = f" The {largest} listed: {part:.0%} of all that is lost."
        of = _counted(evaluation.n_queries, "query", "queries")
        section.say(f"{losing.size} of {of} {'loses' if losing.size == 1 else 'lose'} {name} against the ideal.{some}")
        weighted = bool((table.weight != table.weight[0]).any())
        head = ["query", "lost", name, "ideal", f"NDCG{at_cutoff(k)}", "documents", "relevant", "tied"]
        rows = [
            [
                _id(table.qid, i),
                *map(about.number, (lost[i], dcg[i], ideal[i], ndcg[i])),
                *map(str, (table.n_docs[i], table.n_relevant[i], table.tied[i])),
                *[f"{table.weight[i]:g}"] * weighted,
            ]
            for i in listed.tolist()
        ]
        with section.folded(
            "The query that loses most" if len(rows) == 1 else f"The {len(rows)} queries that lose most"
        ):
            section.table(Table([*head, *["weight"] * weighted], rows))
    unknown = int((counts & ~known).sum())
    if unknown:
        section.say(f"{unknown} more cannot be listed, because their DCG is too large for float64.")


def _largest_moves(section: _Section, comparison: Comparison, about: About) -> None:
    """The largest wins and losses of each pair; of many pairs, of the first."""
    for pair in comparison.pairs[:_MOST_PAIRS]:
        a, b = (comparison.names.index(name) for name in (pair.a, pair.b))
        apart = comparison.ndcg[:, b] - comparison.ndcg[:, a]
        wins = np.flatnonzero(apart > SAME)
        losses = np.flatnonzero(apart < -SAME)
        names = [shown_text(name) for name in (pair.a, pair.b)]
        tables = []
        for queries, order, word in ((losses, apart, "below"), (wins, -apart, "above")):
            listed = queries[np.argsort(order[queries], kind="stable")[: about.top]]
            count = f"{listed.size} of {queries.size}" if listed.size < queries.size else str(queries.size)
            rows = [
                [
                    _id(comparison.qid, i),
                    about.number(comparison.ndcg[i, a]),
                    about.number(comparison.ndcg[i, b]),
                    about.number(apart[i], sign=True),
                ]
                for i in listed.tolist()
            ]
            caption = f"{names[1]} {word} {names[0]}: {count} {'query' if count == '1' else 'queries'}"
            tables.append(Table(["query", *names, "difference"], rows, caption=caption))
        counts = f"above in {_counted(wins.size, 'query', 'queries')}, below in {losses.size}"
        with section.folded(f"{names[1]} against {names[0]}: {counts}"):
            for table in tables:
                if not table.rows:
                    section.say(f"{table.caption}.")
            with section.beside():
                for table in tables:
                    if table.rows:
                        section.table(table)
    if len(comparison.pairs) > _MOST_PAIRS:
        section.say(f"These are the first {_MOST_PAIRS} of {len(comparison.pairs)} pairs.")


def _compared_slices(comparison: Comparison, about: About) -> list[_Section]:
    """The comparison within slices, if there is one."""
    if comparison.slices is None:
        return []
    section = _Section("Slices")
    table = comparison.slices._table(about.digits)
    rows = [[shown_text(row[0]), row[1], *map(shown_text, row[2:4]), *row[4:]] for row in table.rows]
    with section.folded(f"{len(rows)} rows, one per slice and pair") if len(rows) > _LONG else nullcontext():
        section.table(replace(table, rows=rows, caption=""))
    section.say(comparison.slices.caption())
    return [section]


def _limited(section: _Section, table: Table, most: int, what: str) -> None:
    section.table(replace(table, rows=[[shown_text(row[0]), *row[1:]] for row in table.rows[:most]]))
    if len(table.rows) > most:
        section.say(f"The first {most} of {len(table.rows)} {what}.")


def _id(ids: NDArray[Any], at: int) -> str:
    return shown_text(str(ids[at : at + 1].tolist()[0] if ids.dtype.kind not in "mM" else ids[at]))


def _some(ids: NDArray[Any]) -> str:
    first = ", ".join(_id(ids, at) for at in range(min(_MOST_IDS, len(ids))))
    return f"{first} and {len(ids) - _MOST_IDS} more" if len(ids) > _MOST_IDS else first


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _named(k: int | None) -> str:
    return "none" if k is None else str(k)


def _rows_high(n: int) -> float:
    return 1.4 + 0.4 * min(n, 30)


# -- the page -------------------------------------------------------------------------------------------------------


def _page(
    path: AnyPath | None,
    about: About,
    title: str,
    sections: Sequence[_Section],
    flavor: Flavor | None,
    ks: tuple[int | None, ...],
    measure: str = "",
) -> str | Path:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    # Numbers of a measure of the caller's own have a name, and no definition that is known here.
    formula, *words = [measure] if flavor is None else flavor.replace(k=ks[0]).describe().split("\n")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = resources.files("ndcg_ml._show").joinpath("report.html").read_text(encoding="utf-8")
    text = environment.from_string(template).render(
        title=visible(title if about.title is None else about.title),
        date=None if about.date is None else visible(str(about.date)),
        flavor=measure if flavor is None else (flavor if len(ks) == 1 else flavor.replace(k=None)).short_text,
        sections=[(section.title, Markup("\n".join(section.parts))) for section in sections],
        formula=formula,
        switches=[(name, rest.strip()) for name, _, rest in (line.strip().partition(" ") for line in words)],
        first_k=None if len(ks) == 1 else _named(ks[0]),
        command=None if about.command is None else "\n".join(map(visible, about.command.split("\n"))),
        versions={name: value for name, value in versions().items() if value != "not installed"},
    )
    # An id from a file that is not UTF-8 may hold half of a surrogate pair, which cannot be encoded.
    text = text.encode("utf-8", "replace").decode("utf-8")
    if path is None:
        return text
    _atomic.write(path, text)
    return Path(path)


def _svg(draw: Callable[[Axes], object], height: float, *, salt: str, what: str) -> str:
    """A drawing as the element <svg>, in the colours of the page, whatever style the caller has set."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", {**_STYLE, "svg.hashsalt": salt}]), warnings.catch_warnings():
        # The names leave no room for the axes to shrink: the drawing is then as Matplotlib lays it out.
        warnings.filterwarnings("ignore", _NO_ROOM)
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.set_xlabel(textwrap.fill(axes.get_xlabel(), int(_WIDTH * _LETTERS)), parse_math=False)
        file = StringIO()
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    drawing = file.getvalue()
    drawing = drawing[drawing.index("<svg") :].replace(_INK, "currentColor").replace(_PAPER, "var(--paper)")
    drawing = re.sub(r'<g id="[^"]*"', "<g", drawing)  # names of groups, which every drawing has
    return drawing.replace("<svg ", f'<svg role="img" aria-label="{escaping.escaped(what)}" ', 1)
