"""The result of a comparison: values, differences, tables, and the notes that warn its reader."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from numpy.typing import NDArray

from ndcg_ml import _show
from ndcg_ml._core.json_values import plain
from ndcg_ml._core.layout import FloatArray
from ndcg_ml._plain.checks import one_of, whole_number
from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.messages import block, paragraph, percent, visible, wrapped
from ndcg_ml._plain.table import Column, Record
from ndcg_ml._statistics.differences import DIFFERENCE, INTERVAL, P_ADJUSTED, SYSTEMS, VERDICT, Difference
from ndcg_ml._statistics.means import Interval
from ndcg_ml._statistics.p_values_and_sample_sizes import fewest_to_reject
from ndcg_ml._statistics.verdict import DECIDED, PASSES
from ndcg_ml._unjudged.judge_next import ToJudge, UnjudgedDocuments
from ndcg_ml._unjudged.ranges import Range, RangeError
from ndcg_ml.flavor import Flavor
from ndcg_ml.results.evaluation import WORDS
from ndcg_ml.results.slices import ComparedSlices

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ndcg_ml._show.report import Section

T = TypeVar("T")

_MOST_PAIRS = 6  # pairs whose queries a report lists


class _OfOnlyPair(Generic[T]):
    """An attribute of the only pair, read from the comparison. An error if there are several pairs."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self.__doc__ = f"``Difference.{name}`` of the only pair. An error if more than two systems are compared."

    @overload
    def __get__(self, comparison: None, owner: type) -> _OfOnlyPair[T]: ...
    @overload
    def __get__(self, comparison: Comparison, owner: type) -> T: ...
    def __get__(self, comparison: Comparison | None, owner: type) -> _OfOnlyPair[T] | T:
        return self if comparison is None else getattr(comparison._only_pair(), self._name)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Comparison:
    """The values of systems on the same queries, and their differences. ``print`` shows a table.

    Attributes
    ----------
    flavor : Flavor or None
        The flavor, with the cut-off. None for precomputed measures.
    measure : str
        The name of the measure, such as ``NDCG@10``.
    names : tuple of str
        Names of the systems.
    values : tuple of float
        The value of each system over the compared queries; for several runs, their mean.
    pairs : tuple of Difference
        The difference b - a of every two systems, or of each system b and the baseline a.
    qid : ndarray
        Ids of the compared queries, in the order of the first system.
    ndcg : ndarray of float64, shape (n_queries, n_systems)
        NDCG of each query, or its value of `measure`; for several runs, the mean.
    not_compared : ndarray
        Ids of the queries left out: those with weight 0, and those without a value in some system.
    n_resamples : int
        The largest number of exchanges of a test.
    margin : float or None
        The largest difference that does not matter.
    baseline : str or None
        The system with which all others are compared; None if all pairs are compared.
    seed : int or None
        Random seed; None if draws are not reproducible.
    n_runs : tuple of int
        Number of runs of each system.
    n_clusters : int or None
        Number of clusters; None if queries are independent.
    judged : tuple of float, or None
        Mean judged@k of each system; None if documents have no ids, and for results of ``evaluate_topk``.
    n_unanswered : tuple of int
        Number of queries for which each system returns no documents; for several runs, the largest number.
    slices : ComparedSlices or None
        The comparison within slices of queries; None without `by`.
    accepts_unjudged : bool
        Whether ``unjudged="accept"`` was passed: no note says that judged@k differs.
    further_notes : tuple of str
        Further notes for the reader.
    difference, interval, standard_error, p_value, p_adjusted, verdict, effect_size, wins, ties, losses
        Attributes of the only ``Difference``. If more than two systems are compared, use those of one of `pairs`.
    """

    flavor: Flavor | None
    measure: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    pairs: tuple[Difference, ...]
    qid: NDArray[Any] = field(repr=False)
    ndcg: FloatArray = field(repr=False)
    not_compared: NDArray[Any] = field(repr=False)
    n_resamples: int
    n_runs: tuple[int, ...]
    n_unanswered: tuple[int, ...]
    margin: float | None = None
    baseline: str | None = None
    seed: int | None = None
    n_clusters: int | None = None
    judged: tuple[float, ...] | None = None
    slices: ComparedSlices | None = field(default=None, repr=False)
    accepts_unjudged: bool = field(default=False, repr=False)
    further_notes: tuple[str, ...] = field(default=(), repr=False)
    _words: tuple[str, str, str, str] = field(default=WORDS, repr=False)
    """The words for a query, several, their documents, and documents with a label."""
    _unjudged: UnjudgedDocuments | None = field(default=None, repr=False)
    """The systems with their documents, for ``range`` and ``judge_next``."""

    difference: ClassVar[_OfOnlyPair[float]] = _OfOnlyPair()
    interval: ClassVar[_OfOnlyPair[Interval]] = _OfOnlyPair()
    standard_error: ClassVar[_OfOnlyPair[float]] = _OfOnlyPair()
    p_value: ClassVar[_OfOnlyPair[float]] = _OfOnlyPair()
    wins: ClassVar[_OfOnlyPair[int]] = _OfOnlyPair()
    ties: ClassVar[_OfOnlyPair[int]] = _OfOnlyPair()
    losses: ClassVar[_OfOnlyPair[int]] = _OfOnlyPair()
    effect_size: ClassVar[_OfOnlyPair[float]] = _OfOnlyPair()
    p_adjusted: ClassVar[_OfOnlyPair[float]] = _OfOnlyPair()
    verdict: ClassVar[_OfOnlyPair[str]] = _OfOnlyPair()

    @property
    def n_queries(self) -> int:
        """Number of queries that were compared."""
        return len(self.qid)

    @property
    def definition(self) -> str:
        """The flavor in short, or the name of the measure."""
        return self.measure if self.flavor is None else self.flavor.short_text

    def queries_needed(self, difference: float, power: float = 0.8) -> int:
        """Number of queries needed to detect a difference of this size in every pair; see ``Difference``."""
        return max(pair.queries_needed(difference, power) for pair in self.pairs)

    def smallest_detectable(self, power: float = 0.8) -> float:
        """The smallest difference that is detected in every pair with this power; see ``Difference``."""
        return max(pair.smallest_detectable(power) for pair in self.pairs)

    def _units(self) -> tuple[int, str]:
        """Return the number of queries or clusters that the test exchanges, and the word for them."""
        return (self.n_queries, self._words[1]) if self.n_clusters is None else (self.n_clusters, "clusters")

    def _only_pair(self) -> Difference:
        if len(self.pairs) > 1:
            raise AttributeError(
                f"a comparison of {len(self.names)} systems has {len(self.pairs)} differences. Choose one of .pairs, "
                "or compare two systems."
            )
        return self.pairs[0]

    def caption(self) -> str:
        """Describe the comparison in one line: definition, queries, intervals, test and seed."""
        first, n_pairs, (_, units, documents, _) = self.pairs[0], len(self.pairs), self._words
        queries = f"{self.n_queries} {units}"
        if self.not_compared.size:
            queries += f", {self.not_compared.size} left out (no value in one of the systems, or weight 0)"
        if any(self.n_unanswered):
            counts = (f"{name} {n}" for name, n in zip(self.names, self.n_unanswered, strict=True))
            queries += f" (no {documents} returned: {', '.join(counts)})"
        if self.n_clusters is not None:
            queries += f" in {self.n_clusters} clusters"
        worth = [pair.effective_queries for pair in self.pairs if pair.effective_queries is not None]
        if worth and first.interval.method != "corrected":
            queries += f" (equivalent to {min(worth):.0f} independent {units} of equal weight)"
        if max(self.n_runs) > 1:
            queries += f"; runs of each system: {', '.join(map(str, self.n_runs))}"
        parts = [self.measure if self.flavor is None else str(self.flavor), queries]
        parts.append(f"intervals at {first.interval.how_text()}")
        if self.margin is not None:
            parts.append(f"margin {self.margin:g}")
        parts += self._how_tested()
        if n_pairs > 1:
            words = f"p and intervals corrected for {n_pairs} pairs by max-T"
            if first.interval.method == "crossed":
                words = f"p and intervals corrected by Bonferroni for {n_pairs} pairs"
            parts.append(words)
        return "; ".join(parts)

    def _how_tested(self) -> list[str]:
        """Describe the test, and give the random seed."""
        first = self.pairs[0].interval
        if first.method == "crossed":
            return ["two-sided t test over queries and runs"]
        if first.method == "corrected":
            return ["two-sided t test of a model's labels, corrected by those of people on these queries"]
        tests = [pair.exact for pair in self.pairs]
        exchanges = "every exchange" if all(tests) else f"{self.n_resamples} exchanges drawn"
        if any(tests) and not all(tests):
            exchanges += " where not enumerated"
        drawn = not all(tests) or first.method == "max-t"
        seed = "no seed" if self.seed is None else f"seed {self.seed}"
        return [f"two-sided randomisation test, exact for exchangeable systems, {exchanges}", *[seed] * drawn]

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the reader: differing judged@k, few queries or changed ones, skewed differences."""
        judged = () if self.judged is None or self.accepts_unjudged else self.judged
        notes = [*self.further_notes, favoured(self.names, judged, self.values)]
        if self._unjudged is not None:
            at = {name: i for i, name in enumerate(self.names)}
            notes += self._unjudged.notes([(at[pair.a], at[pair.b], pair.difference) for pair in self.pairs])
        notes += [_without_limits(self), _widened(self.pairs), *_unseen(self), _skewed(self.pairs)]
        return tuple(note for note in notes if note)

    def range(self, max_grade: float | None = None, *, a: str | None = None, b: str | None = None) -> Range:
        """Return the exact smallest and largest difference over all ways to grade the unjudged documents.

        A document that both systems retrieve gets one grade, and is part of both ideals. If 0 is outside the range, no
        label can change which system is better: see ``settled``.

        Parameters
        ----------
        max_grade : float, optional
            The top of the grade scale 0, 1, ..., `max_grade`. Default: as for ``Evaluation.range``.
        a, b : str, optional
            Names of the systems; needed if there are more than two.

        Returns
        -------
        Range
            With ``.low``, ``.high``, ``.value`` (the difference now), ``.settled``, ``.n_unjudged``, ``.grades``.

        Raises
        ------
        RangeError
            The range is not known, for the reasons of ``Evaluation.range``, or because documents have no ids and their
            rows differ, the ideals of the systems differ, a system has several runs, or the values are precomputed.
        TypeError, ValueError
            `a` and `b` are not the names of two systems.

        Examples
        --------
        >>> from ndcg_ml import compare, evaluate_run
        >>> qrels = {"q": {"d1": 2, "d2": 0}, "r": {"d5": 1}}
        >>> old = evaluate_run(qrels, {"q": ["d1", "d2"], "r": ["d5"]}, k=2)
        >>> new = evaluate_run(qrels, {"q": ["d2", "d3"], "r": ["d5"]}, k=2)
        >>> both = compare(old, new, unjudged="accept")
        >>> both.range().low, round(both.range().high, 4), both.settled
        (-0.5, -0.1131, True)
        """
        one, other, difference = self._positions_of(a, b)
        return self._documents().range(one, other, difference, max_grade)

    @property
    def settled(self) -> bool:
        """Whether the difference keeps its sign however unjudged documents are graded. Errors as for ``range``."""
        return self.range().settled

    def judge_next(
        self, n: int = 20, max_grade: float | None = None, *, a: str | None = None, b: str | None = None
    ) -> ToJudge:
        """Return the unjudged documents whose labels can change the difference most; none if its sign cannot change.

        Parameters
        ----------
        n : int, default 20
            Number of documents to return.
        max_grade, a, b
            As for ``range``.

        Returns
        -------
        ToJudge
            Pairs of query and document. ``.change`` is the largest change of the difference by that label alone, while
            the other unjudged documents have the lowest gain. ``.to_jsonl(path)`` writes a file to fill in, which
            ``ndcg-ml judge-next --filled`` reads. Also ``.to_frame()`` and ``.settled``.

        Raises
        ------
        TypeError, ValueError
            As for ``range``; `n` is not a positive integer.

        Notes
        -----
        Documents that only one system ranks near the top change the difference most. Call it again after some are
        judged, because the order depends on the judgements. The idea is that of minimal test collections: B.
        Carterette, J. Allan and R. Sitaraman, SIGIR 2006.
        """
        one, other, difference = self._positions_of(a, b)
        return self._documents().judge_next(one, other, difference, n, max_grade)

    def _positions_of(self, a: str | None, b: str | None) -> tuple[int, int, float]:
        """Return the positions of two systems, and the difference of their values."""
        if a is None and b is None and len(self.pairs) == 1:
            a, b = self.pairs[0].a, self.pairs[0].b
        one_of(a, "a", self.names)
        one_of(b, "b", [name for name in self.names if name != a])
        one, other = self.names.index(str(a)), self.names.index(str(b))
        return one, other, self.values[other] - self.values[one]

    def _documents(self) -> UnjudgedDocuments:
        if self._unjudged is None:
            raise RangeError(
                "the range needs one evaluation per system, with its documents; got precomputed values, several runs "
                "of a system, or a pickled comparison. Compare one run of each."
            )
        return self._unjudged

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the table of queries, as plain values for JSON; infinity and nan become None."""
        document = {
            "measure": self.measure,
            "flavor": None if self.flavor is None else str(self.flavor),
            "n_queries": self.n_queries,
            "not_compared": self.not_compared,
            "n_clusters": self.n_clusters,
            "confidence": self.pairs[0].interval.confidence,
            "margin": self.margin,
            "baseline": self.baseline,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            "systems": systems_record(self).rows,
            "pairs": pairs_record(self, 4).rows,
            "slices": None if self.slices is None else self.slices.to_dict()["slices"],
            "notes": list(self.notes),
        }
        return {name: plain(value) for name, value in document.items()}

    def to_frame(self) -> pd.DataFrame:
        """Return the differences as a pandas DataFrame, one row per pair.

        Returns
        -------
        pandas.DataFrame
            With the columns ``a``, ``b``, ``value_a``, ``value_b``, ``difference``, ``low``, ``high``,
            ``standard_error``, ``p_value``, ``p_adjusted``, ``verdict``, ``exact``, ``n_changed``, ``wins``, ``ties``,
            ``losses``, ``changed_at_most``, ``widened``, ``unseen``, ``effect_size``, ``skewness``,
            ``effective_queries``, ``smallest_detectable``.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        return pairs_record(self, 4).frame("Comparison")

    def to_markdown(self, digits: int = 4) -> str:
        """Return the differences as a table in Markdown, with the caption below.

        Parameters
        ----------
        digits : int, default 4
            Decimals.

        Returns
        -------
        str
        """
        return pairs_record(self, digits).markdown()

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        command: str | None = None,
        top: int = 20,
    ) -> str | Path:
        """Write a report as one HTML page, without scripts or external files.

        It shows the values, the differences with intervals and tests, the drawing of ``plot``, the queries that
        changed most, the definition in words, and the versions of Python and the libraries.

        Parameters
        ----------
        title : str, default None
            The heading. None: the names of two systems, or the number of systems.
        top : int, default 20
            Number of queries to list for each of the first six pairs: those whose values differ most.
        path, command
            As for ``Evaluation.to_html``.

        Returns
        -------
        str or pathlib.Path
            The page; with `path`, the path of the file.

        Raises
        ------
        ImportError, TypeError, ValueError, OSError
            As from ``Evaluation.to_html``.

        Examples
        --------
        >>> from ndcg_ml import compare, evaluate
        >>> scores = [[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]], [[3.0, 1.0, 2.0], [2.0, 3.0, 1.0]]
        >>> both = compare(*(evaluate([[3, 0, 1], [0, 1, 0]], each) for each in scores), names=["old", "new"])
        >>> written = both.to_html("report.html")  # doctest: +SKIP
        """
        most = whole_number(top, "top", 0)
        return _show.report.write(lambda: self._page(most), self.flavor, path, title, command)

    def _page(self, top: int) -> tuple[str, list[Section]]:
        """Return the title and the sections of the report."""
        report, pairs, units = _show.report, self.pairs, self._words[1]
        drawing = report.drawing(self.plot, len(pairs) if len(pairs) > 1 else 7)
        meaning = report.explain_table(pairs, units, self.smallest_detectable())
        values = [self._repr_html_(), *map(paragraph, meaning), drawing]
        if n_left_out := len(self.not_compared):
            values.append(
                paragraph(f"{n_left_out} more {units} were not compared (weight 0, or no value in one of the systems).")
            )
        column = dict(zip(self.names, self.ndcg.T, strict=True))
        queries = [
            report.moves(pair, column[pair.a], column[pair.b], self.qid, self._words, top)
            for pair in pairs[:_MOST_PAIRS]
        ]
        if len(pairs) > _MOST_PAIRS:
            queries.append(paragraph(f"These are the first {_MOST_PAIRS} of {len(pairs)} pairs."))
        title = f"Comparison of {len(self.names)} systems"
        if len(pairs) == 1:
            measure = self.measure if self.flavor is None else f"NDCG{at_cutoff(self.flavor.k)}"
            title = report.headline(pairs[0], measure)
        return title, [("Values and verdicts", values), (f"{units.capitalize()} that changed most", queries)]

    def plot(self, ax: Axes | None = None) -> tuple[Figure, Axes]:
        """Draw the differences with Matplotlib: of each query for two systems, one interval per pair for more.

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

        Notes
        -----
        Two systems: the difference of each query, the largest loss first. The dashed line is the difference of the two
        values (under weights or a micro average, not the plain mean over queries), the band its interval. More systems:
        pairs with a verdict are filled. At most 30 pairs are drawn, those with the smallest p.

        Examples
        --------
        >>> from ndcg_ml import compare, evaluate
        >>> scores = [[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]], [[3.0, 1.0, 2.0], [2.0, 3.0, 1.0]]
        >>> both = compare(*(evaluate([[3, 0, 1], [0, 1, 0]], each) for each in scores))
        >>> fig, ax = both.plot()  # doctest: +SKIP
        """
        drawn = _show.plot.Compared(
            self.pairs, self.ndcg, self.measure, self.definition, self._words[:2], len(self.not_compared)
        )
        return _show.plot.compared(drawn, ax)

    def _repr_html_(self) -> str:
        table = replace(pairs_record(self, 4), caption="")
        words = ["Marked: pairs with a verdict."] if table.marked else []
        slices = [] if self.slices is None else [self.slices._record().html()]
        return block(
            systems_record(self).html(),
            table.html(),
            *map(paragraph, [*words, *closing_lines(self)]),
            *slices,
        )

    def __str__(self) -> str:
        slices = [] if self.slices is None else ["", str(self.slices)]
        table = replace(pairs_record(self, 6), caption="").text()
        return "\n".join([systems_record(self).text(), "", table, "", *map(wrapped, closing_lines(self)), *slices])


# -- tables and notes -------------------------------------------------------------------------------------------------


def closing_lines(comparison: Comparison) -> list[str]:
    """Return the caption and the notes, one line each."""
    return [visible(line) for line in (comparison.caption(), *(f"Note: {note}." for note in comparison.notes))]


def systems_record(comparison: Comparison) -> Record:
    """Return the value of each system, its judged@k and its unanswered queries."""
    rows = [
        {
            "name": name,
            "value": comparison.values[i],
            "judged": None if comparison.judged is None else comparison.judged[i],
            "n_unanswered": comparison.n_unanswered[i],
            "n_runs": comparison.n_runs[i],
        }
        for i, name in enumerate(comparison.names)
    ]
    at = "" if comparison.flavor is None else at_cutoff(comparison.flavor.k)
    columns = [Column("system", "{name}", "l"), Column(comparison.measure, "{value:.{digits}f}")]
    columns += [Column(f"judged{at}", "{judged:.4f}")] * (comparison.judged is not None)
    columns += [Column("unanswered", "{n_unanswered}")] * any(comparison.n_unanswered)
    columns += [Column("runs", "{n_runs}")] * (max(comparison.n_runs) > 1)
    return Record(columns, rows, digits=6)


def pairs_record(comparison: Comparison, digits: int) -> Record:
    """Return the differences, the verdicts directly after the names, with the caption."""
    value = dict(zip(comparison.names, comparison.values, strict=True))
    rows = [
        {"a": pair.a, "b": pair.b, "value_a": value[pair.a], "value_b": value[pair.b], **pair._row()}
        for pair in comparison.pairs
    ]
    confidence = percent(comparison.pairs[0].interval.confidence)
    columns = [*SYSTEMS, VERDICT, DIFFERENCE, INTERVAL._replace(heading=f"{confidence} interval")]
    columns += [P_ADJUSTED if len(rows) > 1 else Column("p", "{p_value:.{digits}p}")]
    columns += [Column("better/worse", "{wins}/{losses}")]
    marked = [at for at, row in enumerate(rows) if row["verdict"] in DECIDED]
    return Record(columns, rows, marked, " ".join(closing_lines(comparison)), whole_number(digits, "digits", 0))


UNEVEN = 0.05
"""A larger difference of judged@k between two systems is reported."""


def favoured(names: Sequence[str], judged: Sequence[float], values: Sequence[float]) -> str | None:
    """Describe which system is favoured and by about how much; None if judged@k hardly differs.

    An unjudged document has gain 0. If the unjudged documents of a system were as good as its judged ones, its value
    would be about value / judged.
    """
    known = [i for i, share in enumerate(judged) if share > 0]
    if len(known) < 2:
        return None
    most, least = max(known, key=lambda i: judged[i]), min(known, key=lambda i: judged[i])
    if judged[most] - judged[least] <= UNEVEN:
        return None
    gain = values[least] * (1 / judged[least] - 1) - values[most] * (1 / judged[most] - 1)
    best = visible(names[most])
    about = f" by about {gain:.3f}" if gain > 0 else ""
    return (
        f"judged@k differs: {100 * judged[most]:.0f} % of the documents of {best} above the cut-off are judged, "
        f"and {100 * judged[least]:.0f} % of those of {visible(names[least])}. Unjudged documents have gain 0, "
        f"which favours {best}{about} if unjudged documents are as good as judged ones"
    )


def _without_limits(comparison: Comparison) -> str | None:
    """Return a note if a test cannot reject with so few queries, so that its interval has no limits."""
    levels = [pair.level for pair in comparison.pairs if not math.isfinite(pair.interval.high - pair.interval.low)]
    if not levels:
        return None
    n, what = comparison._units()
    return f"{n} {what} cannot show a difference; use {fewest_to_reject(min(levels))} or more"


def _skewed(pairs: Sequence[Difference]) -> str | None:
    """Return a note on verdicts that a few queries may decide."""
    skewed = [pair for pair in pairs if pair.verdict in DECIDED and pair._is_skewed]
    if not skewed:
        return None
    pair = max(skewed, key=lambda pair: abs(pair.skewness))
    others = f" (and in {len(skewed) - 1} more pairs)" if len(skewed) > 1 else ""
    return (
        f"A few queries change far more than the others between {pair.a} and {pair.b}{others}, skewness "
        f"{pair.skewness:+.1f}: look at them"
    )


def _widened(pairs: Sequence[Difference]) -> str | None:
    """Return a note on widened intervals, with the pair that may change most."""
    which = [pair for pair in pairs if pair.widened]
    if not which:
        return None
    pair = max(which, key=lambda pair: pair.changed_at_most or 0.0)
    others = f" (and few or none in {len(which) - 1} more pairs)" if len(which) > 1 else ""
    return (
        f"{pair.n_changed or 'none'} of {pair.interval.n_queries} queries changed between {pair.a} and {pair.b}{others}"
        f"; up to {100 * (pair.changed_at_most or 0.0):.1f} % of other queries may "
        f"({percent(1 - float(f'{pair.level:.2g}'))}); the interval is widened by their possible differences"
    )


def _unseen(comparison: Comparison) -> Iterator[str]:
    """Yield the largest share of queries with a problem that these may miss, for the verdicts with which a gate passes.

    A problem is a loss that no query of the sample shows.
    """
    claims = [("", pair) for pair in comparison.pairs if pair.verdict in PASSES]
    of_slices = [
        (f" of {column}={name}", pair)
        for (column, name), part in (comparison.slices or {}).items()
        for pair in part.pairs
        if pair.verdict in PASSES
    ]
    for which in (claims, of_slices):
        if which:
            place, pair = max(which, key=lambda claim: claim[1].unseen)
            n, (_, what) = round(pair._seen_by(pair.unseen)), comparison._units()
            effective = "effective " * (comparison.n_clusters is None and n != pair.interval.n_queries)
            more = ""
            if comparison.margin is not None and comparison.margin < 1:
                needed = math.ceil(pair._seen_by(comparison.margin))
                costs = "costs less than the margin"
                more = f", which {costs}" if needed <= n else f"; with {needed} {what}, such a problem {costs}"
                more += f" of {comparison.margin:g} even if a {comparison._words[0]} loses 1"
            yield f"{n} {effective}{what}{place} can miss a problem that {100 * pair.unseen:.2g} % of {what} have{more}"
