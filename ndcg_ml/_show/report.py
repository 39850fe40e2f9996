"""Write one HTML page from the sections of a result.

The page contains its styles and the drawing. It has no scripts, and its content security policy forbids loading
anything. Text is escaped by Jinja2 in the template, and by ``_plain.messages`` in tables. Pages are reproducible.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.json_values import plain_id
from ndcg_ml._core.layout import FloatArray
from ndcg_ml._files.opening import write_atomically
from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.messages import brief_text, install, paragraph, visible
from ndcg_ml._plain.table import Column, Record
from ndcg_ml._show.plot import height
from ndcg_ml._statistics.means import SAME
from ndcg_ml.versions import MISSING, versions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ndcg_ml._core.per_query import PerQuery
    from ndcg_ml._statistics.differences import Difference
    from ndcg_ml._statistics.means import Interval
    from ndcg_ml.flavor import Flavor

AnyPath: TypeAlias = "str | os.PathLike[str]"
Section: TypeAlias = tuple[str, Sequence[str]]
"""A heading, and HTML."""

_INCHES = 5.2  # drawings are readable on a phone, at two thirds of this size


def require() -> None:
    """Check that the libraries for a report are installed.

    Raises
    ------
    ImportError
        One of them is not installed.
    """
    try:
        import jinja2
        import matplotlib.style
    except ImportError as error:
        raise ImportError(f"a report needs jinja2 and matplotlib: {error}. Install: {install('report')}") from error
    del jinja2, matplotlib


# -- the page ---------------------------------------------------------------------------------------------------------


def write(
    contents: Callable[[], tuple[str, list[Section]]],
    flavor: Flavor | None,
    path: AnyPath | None,
    title: str | None,
    command: str | None,
) -> str | Path:
    """Write the report of ``Evaluation.to_html`` or ``Comparison.to_html``. `contents` returns its title and sections.

    Raises
    ------
    ImportError, TypeError, ValueError, OSError
        As from ``Evaluation.to_html``.
    """
    require()
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    default, sections = contents()
    if flavor is not None:  # precomputed values have none
        sections.append(("Definition", [flavor._repr_html_()]))
    rows = [{"name": name, "version": value} for name, value in versions().items() if value != MISSING]
    columns = [Column("library", "{name}", "l"), Column("version", "{version}", "l")]
    sections.append(("Versions", [Record(columns, rows).html()]))
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = resources.files("ndcg_ml._show").joinpath("report.html").read_text(encoding="utf-8")
    text = environment.from_string(template).render(
        title=visible(default if title is None else title),
        command=None if command is None else "\n".join(map(visible, command.split("\n"))),
        sections=[(heading, Markup("\n".join(parts))) for heading, parts in sections],
    )
    if path is None:
        return text
    write_atomically(path, text)
    return Path(path)


# -- a comparison in words --------------------------------------------------------------------------------------------

_HEADLINES = {
    "better": "{b} is better than {a}",
    "worse": "{b} is worse than {a}",
    "not worse": "{b} is not worse than {a}",
    "equivalent": "{b} is equivalent to {a}",
    "unchanged": "{b} is the same as {a}",
    "undecided": "{b} may be better or worse than {a}",
}
_MEANINGS = {
    "better": "the whole interval of {b} - {a} is above 0",
    "worse": "the whole interval of {b} - {a} is below 0",
    "not worse": "{b} may be worse, but by less than the margin",
    "equivalent": "{b} may be better or worse, but by less than the margin",
    "unchanged": "{a} and {b} have the same value everywhere",
    "undecided": "{b} may be better or worse, and more data are needed to say which",
}


def headline(pair: Difference, measure: str) -> str:
    """Return the verdict on one pair in a sentence."""
    low, high, share = pair.interval.low, pair.interval.high, 100 * pair.interval.confidence
    verdict = _HEADLINES[pair.verdict].format(a=brief_text(pair.a), b=brief_text(pair.b))
    return f"{verdict}: {measure} {pair.difference:+.4f} ({share:g} % interval {low:+.4f} to {high:+.4f})"


def explain_table(pairs: Sequence[Difference], units: str, detectable: float) -> Iterator[str]:
    """Yield the meaning of the table of differences. `detectable` is the smallest that would be found."""
    verdicts = dict.fromkeys(pair.verdict for pair in pairs)
    names = {"a": "a", "b": "b"}  # the columns of the table
    if len(pairs) == 1:
        names = {name: brief_text(getattr(pairs[0], name)) for name in names}
    yield " ".join(f"{verdict.capitalize()}: {_MEANINGS[verdict].format(**names)}." for verdict in verdicts)
    yield (
        f"The interval holds the differences that agree with these data. If {names['a']} and {names['b']} were equally "
        f"good, chance alone would give a difference this large with probability p. better/worse counts the {units}."
    )
    if np.isfinite(detectable):
        yield f"With this number of {units}, a true difference of {detectable:.4f} is found 8 times in 10."


# -- the parts of a section -------------------------------------------------------------------------------------------


def intervals(intervals_of: Callable[[], Mapping[int | None, Interval]]) -> str:
    """Return a table of the intervals by cut-off, or the reason why there are none."""
    try:
        by_k = intervals_of()
    except ValueError as error:
        return paragraph(f"There is no interval: {error}")
    rows = [{"k": k, "low": each.low, "high": each.high, "how": each.how_text()} for k, each in by_k.items()]
    columns = [Column("", "NDCG{k:@}", "l"), Column("interval", "{low:.6f} to {high:.6f}"), Column("how", "{how}", "l")]
    return Record(columns, rows).html()


def losses(table: PerQuery, k: int | None, words: Sequence[str], top: int) -> list[str]:
    """List the queries whose DCG is furthest below their ideal, at the first cut-off `k`."""
    at = at_cutoff(k)
    ndcg, dcg, ideal, empty = (
        table[name] if table[name].ndim == 1 else table[name][:, 0] for name in ("ndcg", "dcg", "idcg", "empty")
    )
    lost = np.where(~empty & (table.weight > 0), ideal - dcg, 0.0)
    losing = np.flatnonzero(lost > SAME * np.abs(ideal))
    listed = losing[np.argsort(-lost[losing], kind="stable")[:top]]
    columns = {"lost": lost, f"DCG{at}": dcg, "ideal": ideal, f"NDCG{at}": ndcg}
    query, queries, documents, _ = words
    counts = {documents: table.n_docs, "relevant": table.n_relevant, "tied": table.tied}
    rows = [
        {
            "query": brief_text(str(plain_id(table.qid[i]))),
            **{head: column[i] for head, column in (columns | counts).items()},
            "weight": table.weight[i],
        }
        for i in listed
    ]
    record = Record(
        [
            Column(query, "{query}", "l"),
            *(Column(head, f"{{{head}:.4f}}") for head in columns),
            *(Column(head, f"{{{head}}}") for head in counts),
            Column("weight", "{weight:g}"),
        ],
        rows,
    )
    count = f"{losing.size} of {len(table)} {queries} lose DCG{at} against the ideal; {len(rows)} are listed."
    return [paragraph(count), *[record.html()] * bool(rows)]


def moves(pair: Difference, a: FloatArray, b: FloatArray, qid: NDArray[Any], words: Sequence[str], top: int) -> str:
    """List the queries of a pair whose values `a` and `b` differ most."""
    name_a, name_b = brief_text(pair.a), brief_text(pair.b)
    order = np.argsort(-np.abs(b - a), kind="stable")[:top]
    listed = order[np.abs(b - a)[order] > SAME]
    rows = [
        {"query": brief_text(str(plain_id(qid[i]))), "a": a[i], "b": b[i], "difference": b[i] - a[i]} for i in listed
    ]
    query, queries, _, _ = words
    columns = [
        *(Column(query, "{query}", "l"), Column(_heading(name_a), "{a:.4f}"), Column(_heading(name_b), "{b:.4f}")),
        Column("difference", "{difference:+.4f}"),
    ]
    caption = f"{name_b} is better than {name_a} in {pair.wins} {queries} and worse in {pair.losses}."
    return Record(columns, rows, caption=caption).html()


def _heading(name: str) -> str:
    """Return a name with words that fit above a column of numbers on a phone. The caption has the whole name."""
    return " ".join(word if len(word) <= 12 else f"{word[:11]}…" for word in name.split())


def drawing(plot: Callable[[Axes], object], n_rows: int) -> str:
    """Return the drawing as an ``<svg>`` element in Matplotlib's default style, or the reason why there is none."""
    from matplotlib import style
    from matplotlib.figure import Figure

    # Matplotlib 3.11 draws ids at random unless there is a salt, and text as paths unless ``svg.fonttype`` is "none".
    with style.context(["default", {"svg.fonttype": "none", "svg.hashsalt": "ndcg_ml"}]):
        figure = Figure(figsize=(_INCHES, height(n_rows)), layout="constrained")
        try:
            plot(figure.add_subplot())
        except ValueError as error:
            return paragraph(f"There is no drawing: {error}")
        file = StringIO()
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = file.getvalue()
    return f"<figure>{text[text.index('<svg') :]}</figure>"
