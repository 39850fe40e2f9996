"""Write evaluations and comparisons as one HTML page, and show versions.

The page contains its styles and the drawing. It has no scripts, and its content security policy forbids loading
anything. Text is escaped by Jinja2 in the template, and by ``_core.one_line`` in tables. Pages are reproducible.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from importlib.metadata import PackageNotFoundError, distributions, version
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ndcg_ml import __version__
from ndcg_ml._core.checks import whole_number
from ndcg_ml._core.flavor_text import at_cutoff
from ndcg_ml._core.json_values import plain_id
from ndcg_ml._core.kernel_and_threads import kernel_in_use, thread_count
from ndcg_ml._core.one_line import brief_text, paragraph, visible
from ndcg_ml._core.suggestions import install
from ndcg_ml._core.table import Column, Record
from ndcg_ml._files.opening import write_atomically
from ndcg_ml._show.plot import height
from ndcg_ml._statistics.means import SAME
from ndcg_ml.results.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ndcg_ml.results.comparison import Comparison

AnyPath: TypeAlias = "str | os.PathLike[str]"
_Section: TypeAlias = tuple[str, Sequence[str]]  # a heading, and HTML

_MOST_PAIRS = 6  # pairs whose queries are listed
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
    result: Evaluation[Any] | Comparison, path: AnyPath | None, title: str | None, command: str | None, top: int
) -> str | Path:
    """Write the report of ``Evaluation.to_html`` or ``Comparison.to_html``.

    Raises
    ------
    ImportError, TypeError, ValueError, OSError
        As from ``Evaluation.to_html``.
    """
    whole_number(top, "top", 0)
    require()
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    parts = _evaluation_parts(result, top) if isinstance(result, Evaluation) else _comparison_parts(result, top)
    default, sections = parts
    if result.flavor is not None:  # precomputed values have none
        sections.append(("Definition", [result.flavor._repr_html_()]))
    rows = [{"name": name, "version": value} for name, value in versions().items() if value != _MISSING]
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


def _evaluation_parts(evaluation: Evaluation[Any], top: int) -> tuple[str, list[_Section]]:
    """Return the title and the sections of an evaluation."""
    ks, slices = evaluation._totals.ks, evaluation.slices
    values = [evaluation._repr_html_(), _intervals(evaluation)]
    sections: list[_Section] = [("Values", values)]
    if slices is None:
        values.append(_drawing(evaluation.plot, len(ks)))
    else:
        sections.append(("Slices", [_drawing(slices.plot, len(slices)), slices._repr_html_()]))
    _, units, _, _ = evaluation._words()
    sections.append((f"{units.capitalize()} that lose most", _losses(evaluation, top)))
    title = f"NDCG{at_cutoff(ks[0]) if len(ks) == 1 else ''} of {evaluation.n_queries} {units}"
    return title if len(ks) > 1 else f"{title}: {evaluation._totals.values(evaluation.flavor)[0]:.4f}", sections


def _comparison_parts(comparison: Comparison, top: int) -> tuple[str, list[_Section]]:
    """Return the title and the sections of a comparison."""
    n_pairs, n_left_out = len(comparison.pairs), len(comparison.not_compared)
    _, units, _, _ = comparison._words
    drawing = _drawing(comparison.plot, n_pairs if n_pairs > 1 else 7)
    values = [comparison._repr_html_(), *map(paragraph, _in_words(comparison)), drawing]
    if n_left_out:
        values.append(
            paragraph(f"{n_left_out} more {units} were not compared (weight 0, or no value in one of the systems).")
        )
    queries = [_moves(comparison, at, top) for at in range(min(n_pairs, _MOST_PAIRS))]
    if n_pairs > _MOST_PAIRS:
        queries.append(paragraph(f"These are the first {_MOST_PAIRS} of {n_pairs} pairs."))
    sections: list[_Section] = [("Values and verdicts", values), (f"{units.capitalize()} that changed most", queries)]
    title = f"Comparison of {len(comparison.names)} systems"
    return title if n_pairs > 1 else _headline(comparison), sections


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


def _headline(comparison: Comparison) -> str:
    """Return the verdict on one pair in a sentence."""
    pair, measure = comparison.pairs[0], comparison.measure
    if comparison.flavor is not None:
        measure = f"NDCG{at_cutoff(comparison.flavor.k)}"
    low, high, share = pair.interval.low, pair.interval.high, 100 * pair.interval.confidence
    verdict = _HEADLINES[pair.verdict].format(a=brief_text(pair.a), b=brief_text(pair.b))
    return f"{verdict}: {measure} {pair.difference:+.4f} ({share:g} % interval {low:+.4f} to {high:+.4f})"


def _in_words(comparison: Comparison) -> Iterator[str]:
    """Yield the meaning of the table of differences."""
    _, units, _, _ = comparison._words
    verdicts = dict.fromkeys(pair.verdict for pair in comparison.pairs)
    names = {"a": "a", "b": "b"}  # the columns of the table
    if len(comparison.pairs) == 1:
        names = {name: brief_text(getattr(comparison.pairs[0], name)) for name in names}
    yield " ".join(f"{verdict.capitalize()}: {_MEANINGS[verdict].format(**names)}." for verdict in verdicts)
    yield (
        f"The interval holds the differences that agree with these data. If {names['a']} and {names['b']} were equally "
        f"good, chance alone would give a difference this large with probability p. better/worse counts the {units}."
    )
    detectable = comparison.smallest_detectable()
    if np.isfinite(detectable):
        yield f"With this number of {units}, a true difference of {detectable:.4f} is found 8 times in 10."


# -- the parts of a section -------------------------------------------------------------------------------------------


def _intervals(evaluation: Evaluation[Any]) -> str:
    try:
        intervals = evaluation._as_dict(evaluation.interval())
    except ValueError as error:
        return paragraph(f"There is no interval: {error}")
    rows = [{"k": k, "low": each.low, "high": each.high, "how": each.how_text()} for k, each in intervals.items()]
    columns = [Column("", "NDCG{k:@}", "l"), Column("interval", "{low:.6f} to {high:.6f}"), Column("how", "{how}", "l")]
    return Record(columns, rows).html()


def _losses(evaluation: Evaluation[Any], top: int) -> list[str]:
    """List the queries whose DCG is furthest below their ideal, at the first cut-off."""
    at, table = at_cutoff(evaluation._totals.ks[0]), evaluation.per_query
    ndcg, dcg, ideal, empty = (
        table[name] if table[name].ndim == 1 else table[name][:, 0] for name in ("ndcg", "dcg", "idcg", "empty")
    )
    lost = np.where(~empty & (table.weight > 0), ideal - dcg, 0.0)
    losing = np.flatnonzero(lost > SAME * np.abs(ideal))
    listed = losing[np.argsort(-lost[losing], kind="stable")[:top]]
    columns = {"lost": lost, f"DCG{at}": dcg, "ideal": ideal, f"NDCG{at}": ndcg}
    query, queries, documents, _ = evaluation._words()
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
    count = f"{losing.size} of {evaluation.n_queries} {queries} lose DCG{at} against the ideal; {len(rows)} are listed."
    return [paragraph(count), *[record.html()] * bool(rows)]


def _moves(comparison: Comparison, at: int, top: int) -> str:
    """List the queries of a pair whose values differ most."""
    pair = comparison.pairs[at]
    a, b = (comparison.ndcg[:, comparison.names.index(name)] for name in (pair.a, pair.b))
    name_a, name_b = brief_text(pair.a), brief_text(pair.b)
    order = np.argsort(-np.abs(b - a), kind="stable")[:top]
    listed = order[np.abs(b - a)[order] > SAME]
    rows = [
        {"query": brief_text(str(plain_id(comparison.qid[i]))), "a": a[i], "b": b[i], "difference": b[i] - a[i]}
        for i in listed
    ]
    query, queries, _, _ = comparison._words
    columns = [
        *(Column(query, "{query}", "l"), Column(_heading(name_a), "{a:.4f}"), Column(_heading(name_b), "{b:.4f}")),
        Column("difference", "{difference:+.4f}"),
    ]
    caption = f"{name_b} is better than {name_a} in {pair.wins} {queries} and worse in {pair.losses}."
    return Record(columns, rows, caption=caption).html()


def _heading(name: str) -> str:
    """Return a name with words that fit above a column of numbers on a phone. The caption has the whole name."""
    return " ".join(word if len(word) <= 12 else f"{word[:11]}…" for word in name.split())


def _drawing(plot: Callable[[Axes], object], n_rows: int) -> str:
    """Return the drawing as an ``<svg>`` element in Matplotlib's default style, or the reason why there is none."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", {"svg.fonttype": "none", "svg.hashsalt": "ndcg_ml"}]):
        figure = Figure(figsize=(_INCHES, height(n_rows)), layout="constrained")
        try:
            plot(figure.add_subplot())
        except ValueError as error:
            return paragraph(f"There is no drawing: {error}")
        file = StringIO()
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    drawing = file.getvalue()
    return f"<figure>{drawing[drawing.index('<svg') :]}</figure>"


# -- versions ---------------------------------------------------------------------------------------------------------

_LIBRARIES = (
    *("numpy", "numba", "scikit-learn", "torch", "torchmetrics", "lightgbm", "xgboost", "catboost"),
    *("pandas", "polars", "pyarrow", "scipy"),
)
_MISSING = "not installed"


def show_versions() -> None:
    """Print the versions that are useful in a bug report, the kernel, the threads and the project's addresses.

    No library is imported.

    Raises
    ------
    ValueError
        NDCG_ML_KERNEL or NDCG_ML_THREADS is not valid.

    See Also
    --------
    prepare : Its parameters `kernel` and `threads`.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    ndcg_ml: ...
    Python: ...
    kernel: ...
    threads: ...
    """
    in_use = {
        "kernel": kernel_in_use(),
        "threads": f"at most {thread_count(None, 1 << 62)}, in the compiled kernel",
    }
    urls = (url for found in distributions(name="ndcg_ml") for url in found.metadata.get_all("Project-URL", []))
    addresses = dict(url.split(", ") for url in urls if ".invalid" not in url)  # none before the first release
    for name, value in {**versions(), **in_use, **addresses}.items():
        print(f"{name}: {value}")


def versions() -> dict[str, str]:
    """Return the versions of Python, this package and the supported libraries."""
    found = {
        "ndcg_ml": __version__,
        "Python": f"{platform.python_version()} ({platform.system()} {platform.machine()})",
    }
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = _MISSING
    return found
