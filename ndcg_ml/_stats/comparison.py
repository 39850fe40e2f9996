"""Which of several systems is better on the same queries, and whether chance explains the difference."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._checks import one_of, whole_number
from ndcg_ml._data.queries import Weights
from ndcg_ml._data.underflow import underflow_is_zero
from ndcg_ml._shown import shown
from ndcg_ml._stats.means import (
    SAME,
    Interval,
    Means,
    Method,
    Seed,
    as_confidence,
    generator,
    how_many,
    minus,
    spread_of,
)
from ndcg_ml._stats.paired import exchange_tests, queries_needed
from ndcg_ml.flavor import Flavor
from ndcg_ml.prepared import prepare
from ndcg_ml.result import Evaluation, at_cutoff

if TYPE_CHECKING:
    import datetime
    import os
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Difference", "compare", "holm"]

FloatArray = NDArray[np.float64]


# -- the result -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Two systems on the same queries.

    Attributes
    ----------
    a, b : str
        Their names.
    difference : float
        The value of b less that of a.
    interval : Interval
        Of the difference.
    standard_error : float
        Of the difference.
    p_value : float
        Two-sided, of the randomisation test that exchanges the two systems query by query.
    p_holm : float
        The p-value, corrected by Holm for the number of pairs that are compared.
    exact : bool
        Whether the test enumerated every exchange, rather than drew some.
    wins, ties, losses : int
        Queries in which b is above a, equal to 1e-12, and below it.
    """

    a: str
    b: str
    difference: float
    interval: Interval
    standard_error: float
    p_value: float
    p_holm: float
    exact: bool
    wins: int
    ties: int
    losses: int

    @property
    def effect_size(self) -> float:
        """The difference over the standard deviation of the queries' differences (Cohen's d of pairs).

        Infinite, where all queries differ by the same; 0, where none differs.
        """
        deviation = self._deviation
        if deviation == 0:
            return 0.0 if self.difference == 0 else float(np.copysign(np.inf, self.difference))
        return self.difference / deviation

    @property
    def significant(self) -> bool:
        """Whether chance makes such a difference in fewer cases than 1 - confidence, after Holm's correction."""
        return self.p_holm <= 1 - self.interval.confidence

    def queries_needed(self, difference: float | None = None, power: float = 0.8) -> int:
        """How many queries it takes to see a difference of a given size.

        Parameters
        ----------
        difference : float, optional
            The true difference. Default: the one that was observed.
        power : float, default 0.8
            The chance of seeing it: of a p-value of at most 1 - confidence, in the two-sided test of one pair.

        Returns
        -------
        int
            At least 2. Queries are taken to vary as these do.

        Raises
        ------
        TypeError, ValueError
            The difference is 0 or no finite number, or so small that float64 has no number of queries for it; the
            power is not between 0 and 1.

        Notes
        -----
            n = ((z + z_power) deviation / difference)^2 + z^2 / 2

        with z the normal quantile of (1 + confidence)/2, z_power that of the power, and the standard deviation of the
        queries' differences. The last term makes up for not knowing it: W. Guenther, Sample size formulas for normal
        theory t tests, The American Statistician 35(4), 1981.
        """
        size = self.difference if difference is None else difference
        return queries_needed(self._deviation, size, power, self.interval.confidence)

    @property
    def _deviation(self) -> float:
        return self.standard_error * float(np.sqrt(self.interval.n_queries))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Comparison:
    """Systems on the same queries, and their differences. ``print`` shows a table.

    Attributes
    ----------
    flavor : Flavor
        With the cut-off.
    names : tuple of str
        Of the systems.
    values : tuple of float
        The value of each system, over the queries that were compared.
    pairs : tuple of Difference
        For each two systems, in their order: b - a.
    qid : ndarray
        The queries that were compared, in the order of the first system.
    ndcg : ndarray of float64, shape (n_queries, n_systems)
        Their NDCG.
    not_compared : ndarray
        Ids of queries that do not count: of weight 0, or without a value in some system.
    n_resamples : int
        The most exchanges that a test looks at, and the resamples of the bootstrap.
    n_unanswered : tuple of int
        In how many of its queries each system ranks nothing: the answer is an empty list, or is missing. The caption
        says it where there are any.
    """

    flavor: Flavor
    names: tuple[str, ...]
    values: tuple[float, ...]
    pairs: tuple[Difference, ...]
    qid: NDArray[Any] = field(repr=False)
    ndcg: FloatArray = field(repr=False)
    not_compared: NDArray[Any] = field(repr=False)
    n_resamples: int
    n_unanswered: tuple[int, ...] = ()

    @property
    def n_queries(self) -> int:
        """Number of queries that were compared."""
        return len(self.qid)

    @property
    def difference(self) -> float:
        """Of two systems: see ``Difference``."""
        return self._only().difference

    @property
    def interval(self) -> Interval:
        """Of two systems: see ``Difference``."""
        return self._only().interval

    @property
    def standard_error(self) -> float:
        """Of two systems: see ``Difference``."""
        return self._only().standard_error

    @property
    def p_value(self) -> float:
        """Of two systems: see ``Difference``."""
        return self._only().p_value

    @property
    def wins(self) -> int:
        """Of two systems: see ``Difference``."""
        return self._only().wins

    @property
    def ties(self) -> int:
        """Of two systems: see ``Difference``."""
        return self._only().ties

    @property
    def losses(self) -> int:
        """Of two systems: see ``Difference``."""
        return self._only().losses

    @property
    def effect_size(self) -> float:
        """Of two systems: see ``Difference``."""
        return self._only().effect_size

    def queries_needed(self, difference: float | None = None, power: float = 0.8) -> int:
        """Of two systems: see ``Difference.queries_needed``."""
        return self._only().queries_needed(difference, power)

    def _only(self) -> Difference:
        if len(self.pairs) > 1:
            raise AttributeError(
                f"a comparison of {len(self.names)} systems has {len(self.pairs)} differences. Ask one of .pairs."
            )
        return self.pairs[0]

    def caption(self) -> str:
        """What was compared and how, as one line: the flavor, the queries, the interval and the test."""
        first = self.pairs[0]
        tests = [pair.exact for pair in self.pairs]
        exchanges = "every exchange" if all(tests) else f"{self.n_resamples} exchanges drawn"
        if any(tests) and not all(tests):
            exchanges += " where not enumerated"
        holm = f"; p corrected by Holm for {len(self.pairs)} pairs" if len(self.pairs) > 1 else ""
        unanswered = ""
        if any(self.n_unanswered):
            counts = (f"{name} {n}" for name, n in zip(self.names, self.n_unanswered, strict=True))
            unanswered = f" (without an answer: {', '.join(counts)})"
        return (
            f"{self.flavor}; {self.n_queries} queries{unanswered}; intervals at {first.interval.how_text()}; two-sided "
            f"randomisation test, {exchanges}{holm}"
        )

    def to_frame(self) -> pd.DataFrame:
        """The differences as a pandas DataFrame, one row per pair.

        Returns
        -------
        pandas.DataFrame
            With the columns ``a``, ``b``, ``value_a``, ``value_b``, ``difference``, ``low``, ``high``,
            ``standard_error``, ``p_value``, ``p_holm``, ``exact``, ``wins``, ``ties``, ``losses``, ``effect_size``.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Comparison.to_frame needs pandas. Install it with: pip install pandas") from error
        value = dict(zip(self.names, self.values, strict=True))
        return pd.DataFrame(
            [
                {
                    "a": pair.a,
                    "b": pair.b,
                    "value_a": value[pair.a],
                    "value_b": value[pair.b],
                    "difference": pair.difference,
                    "low": pair.interval.low,
                    "high": pair.interval.high,
                    **{name: getattr(pair, name) for name in _MEASURES},
                }
                for pair in self.pairs
            ]
        )

    def to_markdown(self, digits: int = 4) -> str:
        """The differences as a table in Markdown, with the caption below.

        Parameters
        ----------
        digits : int, default 4
            Decimals.

        Returns
        -------
        str
        """
        head, *rows = self._cells(digits)
        lines = [head, ["---", "---", *["--:"] * (len(head) - 2)], *rows]
        escaped = [" | ".join(cell.replace("|", r"\|") for cell in cells) for cells in lines]
        return "\n".join([*(f"| {line} |" for line in escaped), "", self.caption(), ""])

    def to_latex(self, digits: int = 4) -> str:
        """The differences as a table in LaTeX, with the caption, which states the flavor. It needs no package.

        Parameters
        ----------
        digits : int, default 4
            Decimals.

        Returns
        -------
        str
        """
        head, *rows = self._cells(digits)
        lines = [" & ".join(map(_in_latex, cells)) + r" \\" for cells in (head, *rows)]
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_in_latex(self.caption())}}}",
                rf"\begin{{tabular}}{{ll{'r' * (len(head) - 2)}}}",
                r"\hline",
                lines[0],
                r"\hline",
                *lines[1:],
                r"\hline",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    @underflow_is_zero
    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        command: str | None = None,
        date: str | datetime.date | None = None,
        queries: int = 20,
        digits: int = 4,
    ) -> str | Path:
        """A report as one HTML page, without scripts, that loads nothing: to keep, to send, to print.

        It has the values, the differences with intervals and tests, the drawing of ``plot``, the queries that moved
        most, the definition in words, and the versions of Python and of the libraries.

        Parameters
        ----------
        path : path, default None
            The file to write, in the place of any older one; None writes none.
        title : str, default None
            The heading. None: the names of two systems, or the number of more.
        command : str, default None
            What made the result, such as a call or a command line, which the page then shows.
        date : date or str, default None
            Shown as it is. None: no date, so that the same result gives the same page.
        queries : int, default 20
            How many queries are listed of each pair of systems, of those that one wins and of those that it loses; at
            most six pairs are listed, the first ones.
        digits : int, default 4
            Decimals in the tables.

        Returns
        -------
        str or pathlib.Path
            The page; with `path`, which file was written.

        Raises
        ------
        ImportError
            Jinja2 or Matplotlib is not installed: ``pip install 'ndcg_ml[report]'``.
        TypeError, ValueError
            An argument is not as above.
        OSError
            The file cannot be written. What was there before is still there.

        Examples
        --------
        >>> scores = [[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]], [[3.0, 1.0, 2.0], [2.0, 3.0, 1.0]]
        >>> both = compare(*scores, y_true=[[3, 0, 1], [0, 1, 0]], names=["old", "new"])
        >>> written = both.to_html("report.html")  # doctest: +SKIP
        """
        from ndcg_ml._show import page

        about = page.About(title=title, command=command, date=date, queries=queries, digits=digits)
        return page.of_comparison(self, path, about)

    def plot(self, ax: Axes | None = None) -> tuple[Figure, Axes]:
        """Draw the differences with matplotlib: of two systems query by query, of more the interval of each pair.

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

        Notes
        -----
        Of two systems: the difference in every query, the largest loss first; dashed, the difference of the two values
        (which under weights or a micro average is not the plain mean of the queries'), with its interval as a band. Of
        more: filled, the pairs whose difference is ``significant``; of more than 30 pairs those with the smallest p.
        What lies far beyond the rest does not set the axis: a query is then drawn at the edge, and the legend says so;
        among pairs, the axis is logarithmic beyond a number that its label says.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> y_true = rng.integers(0, 3, (60, 10))
        >>> good, better = (y_true + rng.normal(0, noise, y_true.shape) for noise in (2.0, 1.0))
        >>> fig, ax = compare(good, better, y_true=y_true, k=5, seed=0).plot()  # doctest: +SKIP
        """
        from ndcg_ml._show import plot

        return plot.compared(self, ax)

    def _repr_html_(self) -> str:
        from ndcg_ml._show import html
        from ndcg_ml._show.table import Table

        values = [[name, f"{value:.6f}"] for name, value in zip(self.names, self.values, strict=True)]
        head, *rows = self._cells(4)
        marked = [at for at, pair in enumerate(self.pairs) if pair.significant]
        level = 1 - self.pairs[0].interval.confidence
        words = [f"Marked: p of at most {level:g}{' (Holm)' * (len(self.pairs) > 1)}."] if marked else []
        return html.block(
            Table(["system", f"NDCG{at_cutoff(self.flavor.k)}"], values).html(),
            Table(head, rows, "ll", marked).html(),
            *map(html.paragraph, [*words, self.caption()]),
        )

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [f"{name:<{width}}  {value:.6f}" for name, value in zip(self.names, self.values, strict=True)]
        table = self._cells(6)
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines.append("")
        for cells in table:
            padded = (
                cell.ljust(width) if i < 2 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
            )
            lines.append("  ".join(padded).rstrip())
        return "\n".join([*lines, "", self.caption()])

    def _cells(self, digits: int) -> list[list[str]]:
        digits = whole_number(digits, "digits", 0)
        first = self.pairs[0]
        holm = len(self.pairs) > 1
        head = ["a", "b", f"b - a, NDCG{at_cutoff(self.flavor.k)}", f"{100 * first.interval.confidence:g} % interval"]
        head += ["p", *["p (Holm)"] * holm, "better/equal/worse", "effect size", "queries needed"]
        rows = []
        for pair in self.pairs:
            low, high = (f"{limit:+.{digits}f}" for limit in (pair.interval.low, pair.interval.high))
            needed = "-" if abs(pair.difference) <= SAME else str(pair.queries_needed())
            rows.append(
                [
                    *(pair.a, pair.b, f"{pair.difference:+.{digits}f}", f"{low} to {high}"),
                    *(_probability(p, digits) for p in (pair.p_value, pair.p_holm)[: 1 + holm]),
                    *(f"{pair.wins}/{pair.ties}/{pair.losses}", f"{pair.effect_size:+.2f}", needed),
                ]
            )
        return [head, *rows]


_MEASURES = ("standard_error", "p_value", "p_holm", "exact", "wins", "ties", "losses", "effect_size")


def _probability(value: float, digits: int) -> str:
    """A probability, which is never 0."""
    text = f"{value:.{digits}f}"
    return text if float(text) else f"<{10.0**-digits:g}"


def _in_latex(text: str) -> str:
    words = {"\\": "backslash", "^": "asciicircum", "~": "asciitilde", "<": "less", ">": "greater", "|": "bar"}
    escapes = {each: f"\\text{word}{{}}" for each, word in words.items()}
    return "".join(escapes.get(each, f"\\{each}" if each in "&%$#_{}" else each) for each in text)


# -- the public function --------------------------------------------------------------------------------------------


@underflow_is_zero
def compare(
    a: Evaluation[Any] | ArrayLike,
    b: Evaluation[Any] | ArrayLike,
    *more: Evaluation[Any] | ArrayLike,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    method: Method = "t",
    n_resamples: int = 9999,
    seed: Seed = None,
    missing: Literal["raise", "drop"] = "raise",
    y_true: ArrayLike | None = None,
    flavor: Flavor | str | None = None,
    k: int | None | EllipsisType = ...,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    doc_id: ArrayLike | None = None,
    query_weight: Weights | None = None,
) -> Comparison:
    """Compare systems query by query: their difference, what chance makes of it, and how many queries would show it.

    Parameters
    ----------
    a, b, *more : Evaluation, or array-like of scores
        The systems: evaluations of the same queries (of ``evaluate``, ``evaluate_run``, ...) under one flavor, matched
        by the id of the query; or scores of the same documents, with `y_true` and what else ``evaluate`` takes.
    names : sequence of str, optional
        Names of the systems. Default: those of the Series, if all are pandas Series with names of their own; else
        ``a``, ``b``, ...
    confidence : float, default 0.95
        Of the intervals. 1 - confidence is the level of the test where ``significant`` and ``queries_needed`` use one.
    method : {"t", "bca", "percentile"}, default "t"
        How intervals are made, as in ``Evaluation.interval``. Differences are less skewed than values, and the t
        interval covered them best in the simulations of docs/deciding.md.
    n_resamples : int, default 9999
        Resamples of a bootstrap. The test enumerates every exchange where there are no more, and else draws as many.
    seed : int, numpy.random.Generator or None, default None
        Decides what is drawn; None draws anew each time.
    missing : {"raise", "drop"}, default "raise"
        What happens to queries without a value in some of the systems: not in the evaluation, empty in it alone, or of
        value nan. "drop" compares the others, and ``.not_compared`` has the ids.
    y_true, qid, group, mask, retrieved, doc_id, query_weight
        With scores: as for ``evaluate``. With evaluations they must be left out.
    flavor : Flavor or str, optional
        With scores: as for ``evaluate``; default "sklearn". Evaluations have one.
    k : int or None, optional
        The cut-off. Default: the flavor's own. For evaluations of several cut-offs it says which one is compared.

    Returns
    -------
    Comparison
        Of two systems ``.difference``, ``.interval``, ``.p_value``, ``.wins``, ``.ties``, ``.losses``,
        ``.effect_size``, ``.queries_needed()``; of more the same for each pair, in ``.pairs``, with ``.p_holm``;
        ``.to_frame()``, ``.to_markdown()``, ``.to_latex()``, ``str()``.

    Raises
    ------
    TypeError
        Systems that are neither all evaluations nor all scores; an argument of the wrong type.
    ValueError
        Evaluations under different flavors, of other queries, or with other weights; several cut-offs and no `k`;
        fewer than two queries to compare; names that repeat or are another number; or as for ``evaluate`` and
        ``Evaluation.interval``.

    See Also
    --------
    explain_difference : one system under two flavors.

    Notes
    -----
    The test exchanges the two systems' values of a query at random, which changes nothing if they are equally good; its
    p-value is the share of exchanges (the observed one among them) with a difference as large, either way. Differences
    are those of the flavor's own mean: weighted, and under ``aggregate="micro"`` of two ratios, whose sums are
    exchanged and resampled together. Queries that are empty in all systems count as the flavor says.

    References
    ----------
    M. Smucker, J. Allan and B. Carterette, A comparison of statistical significance tests for information retrieval
    evaluation, CIKM 2007. S. Holm, A simple sequentially rejective multiple test procedure, 1979.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 3, (60, 10))
    >>> good, better = (y_true + rng.normal(0, noise, y_true.shape) for noise in (2.0, 1.0))
    >>> both = compare(good, better, y_true=y_true, k=5, seed=0)
    >>> round(both.difference, 4), both.p_value < 0.01, both.interval.low > 0
    (0.1139, True, True)
    >>> both.queries_needed(0.01) > both.queries_needed(0.02) > 60
    True
    """
    systems = (a, b, *more)
    number, resamples = as_confidence(confidence), how_many(method, n_resamples)
    one_of(missing, "missing", ("raise", "drop"))
    n_draws, rng = whole_number(n_resamples, "n_resamples"), generator(seed)
    named = _names(systems, names)
    if all(isinstance(each, Evaluation) for each in systems):
        of_scores: dict[str, Any] = {
            "y_true": y_true,
            "flavor": flavor,
            "qid": qid,
            "group": group,
            "mask": mask,
            "retrieved": retrieved,
            "doc_id": doc_id,
            "query_weight": query_weight,
        }
        given = [name for name, value in of_scores.items() if value is not None]
        if given:
            raise TypeError(
                f"{', '.join(given)} must be left out where evaluations are compared, which have them; pass scores "
                "instead of evaluations to compute their NDCG here."
            )
        evaluations: list[Evaluation[Any]] = [each for each in systems if isinstance(each, Evaluation)]
    elif any(isinstance(each, Evaluation) for each in systems):
        raise TypeError("the systems must be evaluations or scores, not both. Evaluate the scores too.")
    else:
        if y_true is None:
            raise TypeError(
                "y_true must be given where scores are compared: compare(scores_a, scores_b, y_true=labels, qid=ids). "
                f"Got systems of type {type(a).__name__} and no labels."
            )
        prepared = prepare(
            y_true,
            flavor="sklearn" if flavor is None else flavor,
            k=k,
            qid=qid,
            group=group,
            mask=mask,
            retrieved=retrieved,
            doc_id=doc_id,
            query_weight=query_weight,
        )
        evaluations = [prepared.evaluate(each) for each in systems]  # type: ignore[arg-type]  # scores, by now
        k = ...
    cut_off = _one_cutoff(evaluations, k)
    _one_flavor(evaluations, named)
    table = _matched(evaluations, cut_off, named, missing)
    means = Means.of(table.values, table.share)
    spreads = spread_of(means, resamples, rng)
    pairs = list(combinations(range(len(systems)), 2))
    tests = exchange_tests(means, pairs, n_draws, rng)
    differences = []
    for (i, j), test, p_holm in zip(pairs, tests, holm([test.p_value for test in tests]), strict=True):
        spread = minus(spreads[j], spreads[i])
        apart = table.values[:, j] - table.values[:, i]
        wins, losses = int((apart > SAME).sum()), int((apart < -SAME).sum())
        differences.append(
            Difference(
                a=named[i],
                b=named[j],
                difference=spread.value,
                interval=spread.interval(number, method),
                standard_error=0.0 if spread.is_constant else spread.standard_error,
                p_value=test.p_value,
                p_holm=p_holm,
                exact=test.exact,
                wins=wins,
                ties=means.n_queries - wins - losses,
                losses=losses,
            )
        )
    return Comparison(
        flavor=evaluations[0].flavor.replace(k=cut_off),
        names=named,
        values=tuple(means.mean().tolist()),
        pairs=tuple(differences),
        qid=table.qid,
        ndcg=table.values,
        not_compared=table.left_out,
        n_resamples=n_draws,
        n_unanswered=tuple(int(each._unanswered().sum()) for each in evaluations),
    )


# -- which systems, which queries -----------------------------------------------------------------------------------


def _names(systems: Sequence[Any], names: Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        own = [getattr(each, "name", None) if hasattr(each, "index") else None for each in systems]
        if all(isinstance(name, str) for name in own) and len(set(own)) == len(own):
            return tuple(map(str, own))
        letters = string.ascii_lowercase
        return tuple(letters[i] if i < len(letters) else f"s{i + 1}" for i in range(len(systems)))
    if isinstance(names, str) or not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must be a sequence of text, one per system; got {shown(names)}.")
    if len(names) != len(systems) or len(set(names)) != len(names):
        raise ValueError(f"names must be {len(systems)} different names, one per system; got {shown(list(names))}.")
    return tuple(names)


def _one_cutoff(evaluations: Sequence[Evaluation[Any]], k: int | None | EllipsisType) -> int | None:
    known = [each._totals.ks for each in evaluations]
    if isinstance(k, EllipsisType):
        if any(len(each) > 1 for each in known):
            raise ValueError(
                f"k must say which cut-off is compared, because the evaluations have several: {shown(known[0])}."
            )
        k = known[0][0]
    for each in known:
        if k not in each:
            raise ValueError(
                f"the evaluations must have the cut-off {k}; got one with {shown(each if len(each) > 1 else each[0])}."
            )
    return k


def _one_flavor(evaluations: Sequence[Evaluation[Any]], names: Sequence[str]) -> None:
    first, *others = (each.flavor.replace(k=None) for each in evaluations)
    for name, other in zip(names[1:], others, strict=True):
        if other != first:
            raise ValueError(
                f"the systems must be evaluated under one flavor; {names[0]} is {first}, {name} is {other}. Evaluate "
                "both under the same; explain_difference says what the flavors make of one system."
            )


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The queries that are compared."""

    qid: NDArray[Any]
    values: FloatArray
    share: FloatArray
    left_out: NDArray[Any]


def _matched(
    evaluations: Sequence[Evaluation[Any]], k: int | None, names: Sequence[str], missing: Literal["raise", "drop"]
) -> _Table:
    """The queries that count in every system, by id, in the order of the first."""
    ids, rows = _rows_of(evaluations)
    absent = rows < 0
    share, values, weight = np.zeros(rows.shape), np.full(rows.shape, np.nan), np.full(rows.shape, np.nan)
    for i, each in enumerate(evaluations):
        ndcg, counts, _ = each._totals.shares(each.flavor, k)
        there, row = ~absent[:, i], rows[~absent[:, i], i]
        values[there, i], share[there, i], weight[there, i] = ndcg[row], counts[row], each.per_query.weight[row]
    counts_here = share > 0
    unknown = absent | (counts_here & np.isnan(values)) | (~counts_here & counts_here.any(axis=1, keepdims=True))
    known: NDArray[np.bool_] = ~unknown.any(axis=1)
    if missing == "raise" and not known.all():
        raise ValueError(_missing(ids, absent, unknown, names))
    alike = np.abs(weight - weight[:, :1]) <= 1e-9 * weight[:, :1]
    unlike: NDArray[np.bool_] = known & ~alike.all(axis=1)
    if unlike.any():
        raise ValueError(
            f"a query must weigh the same in all systems; {int(unlike.sum())} do not, the first is query "
            f"{shown(ids[unlike][:1].tolist()[0])}. Pass one query_weight to all evaluations."
        )
    kept = known & counts_here[:, 0]
    if kept.sum() < 2:
        raise ValueError(
            f"at least two queries must have a value in every system, because the spread of one is not known; got "
            f"{int(kept.sum())} of {kept.size}. There is nothing to compare."
        )
    return _Table(ids[kept], values[kept], share[kept], ids[~kept])


def _rows_of(evaluations: Sequence[Evaluation[Any]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Every id, those of the first system first; and its row in each system, or -1."""
    first = evaluations[0].per_query.qid
    if all(each.per_query.qid.dtype == first.dtype for each in evaluations) and all(
        np.array_equal(each.per_query.qid, first) for each in evaluations
    ):
        return first, np.tile(np.arange(first.size)[:, None], (1, len(evaluations)))
    places = [{qid: row for row, qid in enumerate(_keys(each.per_query.qid))} for each in evaluations]
    union = list(dict.fromkeys(qid for each in places for qid in each))
    ids = np.empty(len(union), dtype=object)
    ids[:] = union
    return ids, np.array([[each.get(qid, -1) for each in places] for qid in union], dtype=np.int64)


def _keys(ids: NDArray[Any]) -> Iterable[Any]:
    return list(ids) if ids.dtype.kind in "mM" else ids.tolist()  # which would make numbers of nanoseconds


def _missing(ids: NDArray[Any], absent: NDArray[np.bool_], unknown: NDArray[np.bool_], names: Sequence[str]) -> str:
    some = absent if absent.any() else unknown
    what = "is not in" if absent.any() else "has no value in"
    parts = []
    for i, name in enumerate(names):
        here = np.flatnonzero(some[:, i])
        if here.size:
            first = shown(ids[here[:1]].tolist()[0])
            parts.append(
                f"{first} {what} {name}" if here.size == 1 else f"{here.size}, such as {first}, have none in {name}"
            )
    cause = (
        "Evaluate the same queries"
        if absent.any()
        else "It is empty there, and the flavor skips it or scores it nan: choose empty=0, ideal='global'"
    )
    return (
        f"every query must have a value in every system; of {len(ids)} queries {'; '.join(parts)}. {cause}, or pass "
        "missing='drop' to compare the others."
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for their number, by Holm's step-down procedure."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected
