"""Which of several systems is better on the same queries, and whether chance explains the difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._core.checks import one_of, whole_number
from ndcg_ml._core.flavor_text import at_cutoff
from ndcg_ml._core.groups import FloatArray, as_objects
from ndcg_ml._core.json_values import plain
from ndcg_ml._core.one_line import brief, percent, visible
from ndcg_ml._core.queries import Weights
from ndcg_ml._core.result import Evaluation
from ndcg_ml._core.slice_names import column_by_id, slice_names_by_id
from ndcg_ml._core.table import Column, Record
from ndcg_ml._decide.differences import (
    DIFFERENCE,
    INTERVAL,
    P_ADJUSTED,
    SYSTEMS,
    VERDICT,
    Difference,
    Settings,
    differences,
)
from ndcg_ml._decide.intervals import FEWEST_FOR_BOOTSTRAP, numbered
from ndcg_ml._decide.matching import (
    Matched,
    Source,
    Unjudged,
    check_unjudged,
    favoured,
    judged_fractions,
    keys_of,
    matched,
    named_systems,
    one_cutoff,
    refuse_other_flavors,
    values_of_queries,
)
from ndcg_ml._decide.means import Interval, Means, Seed, as_confidence, generator
from ndcg_ml._decide.model_labels import CorrectedEvaluation, correct_pairs, refuse_other_samples
from ndcg_ml._decide.slices import ComparedSlices, compared_by
from ndcg_ml._decide.verdict import DECIDED, NO_LOSS, as_margin
from ndcg_ml._unjudged.completions import RangeError, UnsearchedRangeError
from ndcg_ml._unjudged.judge_next import ToJudge, next_to_judge
from ndcg_ml._unjudged.range import Pair, Range, match_systems, require_documents
from ndcg_ml.flavor import Flavor

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Difference", "compare", "compare_values"]

# -- the tables of a comparison: systems with their values, and pairs with their differences --------------------------


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
            "n_unanswered": comparison.n_unanswered[i] if comparison.n_unanswered else 0,
            "n_runs": comparison.n_runs[i] if comparison.n_runs else 1,
        }
        for i, name in enumerate(comparison.names)
    ]
    at = "" if comparison.flavor is None else at_cutoff(comparison.flavor.k)
    columns = [Column("system", "{name}", "l"), Column(comparison.measure, "{value:.{digits}f}")]
    columns += [Column(f"judged{at}", "{judged:.4f}")] * (comparison.judged is not None)
    columns += [Column("unanswered", "{n_unanswered}")] * any(comparison.n_unanswered)
    columns += [Column("runs", "{n_runs}")] * (max(comparison.n_runs, default=1) > 1)
    return Record(columns, rows, digits=6)


def pairs_record(comparison: Comparison, digits: int) -> Record:
    """Return the differences, with the caption."""
    value = dict(zip(comparison.names, comparison.values, strict=True))
    rows = [
        {"a": pair.a, "b": pair.b, "value_a": value[pair.a], "value_b": value[pair.b], **pair._row()}
        for pair in comparison.pairs
    ]
    confidence = percent(comparison.pairs[0].interval.confidence)
    columns = [
        *(*SYSTEMS, DIFFERENCE._replace(heading=f"b - a, {comparison.measure}")),
        INTERVAL._replace(heading=f"{confidence} interval"),
        *(Column("p", "{p_value:.{digits}p}"), *[P_ADJUSTED] * (len(rows) > 1)),
        Column("changed (better/worse)", f"{{n_changed}} of {comparison.n_queries} ({{wins}}/{{losses}})"),
        *(Column("d_z", "{effect_size:+.2f}"), Column("detectable", "{smallest_detectable:.{digits}a}"), VERDICT),
    ]
    marked = [at for at, row in enumerate(rows) if row["verdict"] in DECIDED]
    return Record(columns, rows, marked, " ".join(closing_lines(comparison)), whole_number(digits, "digits", 0))


# -- missing labels in a comparison: the range of each difference, and the documents to label next --------------------

# Ranges are slow to compute, so notes have them only if there are not more pairs.
_MOST_PAIRS = 45


class MissingLabels:
    """The documents of the compared systems, from which ranges are computed when needed.

    Parameters
    ----------
    table : Matched
        The compared queries, with one source per system.
    """

    def __init__(self, table: Matched) -> None:
        self._sources = sources = table.sources
        places = [{qid: at for at, qid in enumerate(keys_of(source.qid))} for source in sources]
        # Empty queries that are skipped, or in a micro average, do not count now but would with other labels.
        skipped = [
            qid
            for qid in keys_of(table.left_out)
            if all(
                qid in place and source.share[place[qid]] == 0 and source.weight[place[qid]] > 0
                for place, source in zip(places, sources, strict=True)
            )
        ]
        self._qid = [*keys_of(table.qid), *skipped]
        self._rows = np.array([[place[qid] for place in places] for qid in self._qid], dtype=np.int64)
        self._ranges: dict[tuple[int, int, float | None], Range] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _left_out, ()  # a pickled evaluation has no documents

    def range(self, a: int, b: int, difference: float, max_grade: float | None = None) -> Range:
        """Return the smallest and largest difference b - a over all ways to grade the unjudged documents.

        Raises
        ------
        RangeError
        """
        key = (a, b, max_grade)
        if key not in self._ranges:
            self._ranges[key] = self._pair(a, b).range(difference, max_grade)
        return self._ranges[key]

    def judge_next(self, a: int, b: int, difference: float, n: int, max_grade: float | None = None) -> ToJudge:
        """Return the documents whose labels can change the difference most.

        Raises
        ------
        RangeError
        """
        source = self._sources[b]
        assert source.evaluation is not None
        ids = as_objects(self._qid)
        return next_to_judge(self._pair(a, b), difference, ids, n, max_grade, library=source.evaluation.frame_library)

    def may_turn(self, a: int, b: int, difference: float) -> bool:
        """Return whether labels can change the sign of the difference, or may do so if the range is not searched."""
        if not self._have_unjudged():
            return False
        try:
            return not self.range(a, b, difference).settled
        except UnsearchedRangeError:
            return True
        except RangeError:
            return False

    def notes(self, pairs: Sequence[tuple[int, int, float]]) -> list[str]:
        """Return notes on the ranges; none if all documents are judged, or a range is unknown."""
        if len(pairs) > _MOST_PAIRS or not self._have_unjudged():
            return []
        known = []
        for a, b, difference in pairs:
            try:
                limits = self.range(a, b, difference)
            except RangeError:
                return []
            if limits.n_unjudged:
                known.append(limits)
        if not known:
            return []
        if len(pairs) > 1:
            n_open = sum(not limits.settled for limits in known)
            if not n_open:
                return ["settled: no labels of unjudged documents can change the sign of any difference"]
            words = f"labels of unjudged documents could change the sign of {n_open} of {len(pairs)} differences"
            return [f"{words}: see judge_next for the documents"]
        [limits] = known
        words = (
            f"over all grades of {limits.n_unjudged} unjudged documents, the difference is between {limits.low:+.4f} "
        )
        words += f"and {limits.high:+.4f}"
        return [f"settled: {words}" if limits.settled else f"labels could change its sign: {words}; see judge_next"]

    def _have_unjudged(self) -> bool:
        kept = [None if source.evaluation is None else source.evaluation._scored for source in self._sources]
        return any(scored is not None and np.isnan(scored.labels).any() for scored in kept)

    def _pair(self, a: int, b: int) -> Pair:
        scored, dcg, ndcg = [], [], []
        for column in (a, b):
            source = self._sources[column]
            assert source.evaluation is not None
            totals = source.evaluation._totals
            scored.append(require_documents(source.evaluation._scored))
            dcg.append(totals.dcg[:, totals.ks.index(source.k)])
            ndcg.append(source.values[self._rows[:, column]])
        first = self._sources[a]
        assert first.evaluation is not None
        return match_systems(
            scored[0],
            scored[1],
            first.evaluation.flavor,
            first.k,
            self._rows[:, [a, b]],
            np.stack(ndcg, axis=1),
            (dcg[0], dcg[1]),
        )


def _left_out() -> None:
    """Stand in for the documents of an unpickled comparison."""


def missing_labels(table: Matched) -> MissingLabels | None:
    """Return the missing labels of a comparison; None for precomputed values or several runs per system."""
    if len(table.sources) > len(table.names) or any(source.evaluation is None for source in table.sources):
        return None
    return MissingLabels(table)


# -- which of several systems is better on the same queries, and whether chance explains the difference ---------------

T = TypeVar("T")


# -- the result -----------------------------------------------------------------------------------------------------


class _OfOnlyPair(Generic[T]):
    """An attribute of the only pair, read from the comparison. An error if there are several pairs."""

    def __init__(self, read: Callable[[Difference], T]) -> None:
        self._read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self.__doc__ = f"``Difference.{name}`` of the only pair. An error if more than two systems are compared."

    @overload
    def __get__(self, comparison: None, owner: type) -> _OfOnlyPair[T]: ...
    @overload
    def __get__(self, comparison: Comparison, owner: type) -> T: ...
    def __get__(self, comparison: Comparison | None, owner: type) -> _OfOnlyPair[T] | T:
        return self if comparison is None else self._read(comparison._only_pair())


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
        Mean judged@k of each system; None if documents have no ids.
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
    margin: float | None = None
    baseline: str | None = None
    seed: int | None = None
    n_runs: tuple[int, ...] = ()
    n_clusters: int | None = None
    judged: tuple[float, ...] | None = None
    n_unanswered: tuple[int, ...] = ()
    slices: ComparedSlices | None = field(default=None, repr=False)
    accepts_unjudged: bool = field(default=False, repr=False)
    further_notes: tuple[str, ...] = field(default=(), repr=False)
    _missing: MissingLabels | None = field(default=None, repr=False)
    """The systems with their documents, for ``range`` and ``judge_next``."""

    difference: ClassVar[_OfOnlyPair[float]] = _OfOnlyPair(lambda pair: pair.difference)
    interval: ClassVar[_OfOnlyPair[Interval]] = _OfOnlyPair(lambda pair: pair.interval)
    standard_error: ClassVar[_OfOnlyPair[float]] = _OfOnlyPair(lambda pair: pair.standard_error)
    p_value: ClassVar[_OfOnlyPair[float]] = _OfOnlyPair(lambda pair: pair.p_value)
    wins: ClassVar[_OfOnlyPair[int]] = _OfOnlyPair(lambda pair: pair.wins)
    ties: ClassVar[_OfOnlyPair[int]] = _OfOnlyPair(lambda pair: pair.ties)
    losses: ClassVar[_OfOnlyPair[int]] = _OfOnlyPair(lambda pair: pair.losses)
    effect_size: ClassVar[_OfOnlyPair[float]] = _OfOnlyPair(lambda pair: pair.effect_size)
    p_adjusted: ClassVar[_OfOnlyPair[float]] = _OfOnlyPair(lambda pair: pair.p_adjusted)
    verdict: ClassVar[_OfOnlyPair[str]] = _OfOnlyPair(lambda pair: pair.verdict)

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

    def _only_pair(self) -> Difference:
        if len(self.pairs) > 1:
            raise AttributeError(
                f"a comparison of {len(self.names)} systems has {len(self.pairs)} differences. Choose one of .pairs."
            )
        return self.pairs[0]

    def caption(self) -> str:
        """Describe the comparison in one line: definition, queries, intervals, test and seed."""
        first, n_pairs = self.pairs[0], len(self.pairs)
        queries = f"{self.n_queries} queries"
        if self.not_compared.size:
            queries += f", {self.not_compared.size} left out (no value in one of the systems, or weight 0)"
        if any(self.n_unanswered):
            counts = (f"{name} {n}" for name, n in zip(self.names, self.n_unanswered, strict=True))
            queries += f" (no documents returned: {', '.join(counts)})"
        if self.n_clusters is not None:
            fewest = min(pair.effective_queries or 0.0 for pair in self.pairs)
            queries += f" in {self.n_clusters} clusters (equivalent to {fewest:.0f} independent queries)"
        if max(self.n_runs, default=1) > 1:
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
        """Warnings for the reader: differing judged@k, few changed queries, heavy weights, skewed differences."""
        shown_judged = () if self.judged is None or self.accepts_unjudged else self.judged
        uneven, skewed = favoured(self.names, shown_judged, self.values), _skewed(self.pairs)
        return tuple(
            filter(
                None,
                [
                    *self.further_notes,
                    uneven,
                    *self._label_notes(),
                    *_few_changed(self.pairs),
                    *_unseen(self),
                    _few(self),
                    skewed,
                ],
            )
        )

    def _label_notes(self) -> list[str]:
        """Notes on missing labels."""
        if self._missing is None:
            return []
        at = {name: i for i, name in enumerate(self.names)}
        return self._missing.notes([(at[pair.a], at[pair.b], pair.difference) for pair in self.pairs])

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
        >>> from ndcg_ml import evaluate_run
        >>> qrels = {"q": {"d1": 2, "d2": 0}, "r": {"d5": 1}}
        >>> old = evaluate_run(qrels, {"q": ["d1", "d2"], "r": ["d5"]}, k=2)
        >>> new = evaluate_run(qrels, {"q": ["d2", "d3"], "r": ["d5"]}, k=2)
        >>> both = compare(old, new, unjudged="accept")
        >>> both.range().low, round(both.range().high, 4), both.settled
        (-0.5, -0.1131, True)
        """
        one, other, difference = self._positions_of(a, b)
        return self._labels().range(one, other, difference, max_grade)

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
            the other unjudged documents have the lowest grade. ``.to_jsonl(path)`` writes a file to fill in, which
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
        return self._labels().judge_next(one, other, difference, n, max_grade)

    def _positions_of(self, a: str | None, b: str | None) -> tuple[int, int, float]:
        """Return the positions of two systems, and the difference of their values."""
        if a is None and b is None:
            pair = self._only_pair()
            a, b = pair.a, pair.b
        one_of(a, "a", self.names)
        one_of(b, "b", [name for name in self.names if name != a])
        one, other = self.names.index(str(a)), self.names.index(str(b))
        return one, other, self.values[other] - self.values[one]

    def _labels(self) -> MissingLabels:
        if self._missing is None:
            raise RangeError(
                "the range needs one evaluation per system, with its documents; got precomputed values, or several "
                "runs of a system. Compare one run of each."
            )
        return self._missing

    def metrics(self) -> dict[str, float]:
        """Return the difference of two systems under names that experiment trackers accept.

        Returns
        -------
        dict of float by name
            Such as ``ndcg_at_10_difference``, ``ndcg_at_10_low``, ``ndcg_at_10_high``.

        Raises
        ------
        AttributeError
            There are several pairs.
        """
        name, pair = self.measure.lower().replace("@", "_at_"), self._only_pair()
        return {
            f"{name}_difference": pair.difference,
            f"{name}_low": pair.interval.low,
            f"{name}_high": pair.interval.high,
        }

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
        >>> from ndcg_ml import evaluate
        >>> scores = [[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]], [[3.0, 1.0, 2.0], [2.0, 3.0, 1.0]]
        >>> both = compare(*(evaluate([[3, 0, 1], [0, 1, 0]], each) for each in scores), names=["old", "new"])
        >>> written = both.to_html("report.html")  # doctest: +SKIP
        """
        from ndcg_ml._show import report

        return report.write_comparison(self, path, title, command, top)

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
        >>> from ndcg_ml import evaluate
        >>> scores = [[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]], [[3.0, 1.0, 2.0], [2.0, 3.0, 1.0]]
        >>> both = compare(*(evaluate([[3, 0, 1], [0, 1, 0]], each) for each in scores))
        >>> fig, ax = both.plot()  # doctest: +SKIP
        """
        from ndcg_ml._show import plot

        return plot.compared(self, ax)

    def _repr_html_(self) -> str:
        from ndcg_ml._core import one_line as escaping

        table = replace(pairs_record(self, 4), caption="")
        words = ["Marked: pairs with a verdict."] if table.marked else []
        slices = [] if self.slices is None else [self.slices._record().html()]
        return escaping.block(
            systems_record(self).html(),
            table.html(),
            *map(escaping.paragraph, [*words, *closing_lines(self)]),
            *slices,
        )

    def __str__(self) -> str:
        slices = [] if self.slices is None else ["", str(self.slices)]
        table = replace(pairs_record(self, 6), caption="").text()
        return "\n".join([systems_record(self).text(), "", table, "", *closing_lines(self), *slices])


# -- the public function --------------------------------------------------------------------------------------------


def compare(
    *systems: Evaluation[Any] | CorrectedEvaluation | Mapping[str, Any],
    names: Sequence[str] | None = None,
    baseline: str | None = None,
    margin: float | None = None,
    cluster: Any = None,
    by: Any = None,
    unjudged: Unjudged = "warn",
    confidence: float = 0.95,
    n_resamples: int = 9999,
    seed: Seed = 0,
    missing: Literal["raise", "drop"] = "raise",
    k: int | None | EllipsisType = ...,
) -> Comparison:
    """Compare systems query by query: difference, interval, p-value and verdict.

    Parameters
    ----------
    *systems : Evaluation or CorrectedEvaluation, or one mapping of them by name
        Two or more evaluations of the same queries under one flavor, matched by query id. A mapping
        ``{"old": [e1, e2], "new": [f1, f2]}`` names the systems and may hold several runs (seeds) of each; the
        difference is then tested over queries and runs. Evaluations without `qid` have the ids 0, 1, ..., so two
        unrelated sets of queries are refused only if their ideals or sizes differ.
    names : sequence of str, optional
        Names of the systems. Default: ``a``, ``b``, ...
    baseline : str, optional
        Compare each system with the one of this name (as Dunnett) instead of all pairs (as Tukey). With fewer pairs,
        intervals are narrower.
    margin : float, optional
        The largest difference that does not matter, above 0 and below 1. With it, a verdict may be ``equivalent`` or
        ``not worse``.
    cluster : array-like, mapping or pandas object, optional
        Groups of related queries (user, topic, session): one label per query, in the forms of `by`. The test then
        permutes clusters. Default: the clusters of the evaluations, if they have any.
    by : array-like, mapping of array-like by column, or data frame, optional
        Labels of queries, such as their country. The systems are also compared within each slice, corrected for the
        number of slices: see ``.slices``. A column has one label per query of the first system, in its order, or is a
        mapping or Series by query id. A mapping from query ids to labels is one column, "slice".
    unjudged : {"warn", "refuse", "accept"}, default "warn"
        Action if the judged@k of systems differ by more than 0.05: a warning, an error or none. Under "refuse" a pair
        is also undecided if labels of unjudged documents could change the sign of its difference (``settled``).
    confidence : float, default 0.95
        Simultaneous confidence of the intervals of all pairs. The level of the test is 1 - confidence.
    n_resamples : int, default 9999
        Number of exchanges that a test draws, unless it can enumerate all of them with no more. It is raised if no
        p-value could reach the level otherwise.
    seed : int, numpy.random.Generator or None, default 0
        Random seed. With None, each call draws differently.
    missing : {"raise", "drop"}, default "raise"
        Action if a query has no value in some system: it was not evaluated, is empty only there, or has the value nan.
        "drop" compares the other queries and stores the ids in ``.not_compared``.
    k : int or None, optional
        The cut-off to compare, if the evaluations have several.

    Returns
    -------
    Comparison
        ``.pairs``, each with ``.verdict``, ``.difference``, ``.interval``, ``.p_value``, ``.p_adjusted``, ``.wins``,
        ``.ties``, ``.losses``, ``.effect_size``; for two systems these are also attributes of the comparison. Also
        ``.smallest_detectable()``, ``.queries_needed(difference)``, ``.judged``, ``.slices``, ``.to_frame()``,
        ``.to_dict()``, ``.to_markdown()``, ``str()``.

    Raises
    ------
    TypeError
        A system is not an evaluation, or an argument has the wrong type.
    ValueError
        The evaluations differ in flavor, queries, weights or judgements, or have several cut-offs and no `k` is given;
        there are fewer than two queries or six clusters, or one cluster has most of the weight; one system has several
        runs and another only one; `names` repeat or differ in number from the systems; `margin` or `confidence` is out
        of range; or judged@k differs under ``unjudged="refuse"``.

    Warns
    -----
    UserWarning
        Under ``unjudged="warn"``: the judged@k of systems differ by more than 0.05.

    See Also
    --------
    compare_values : Compare precomputed values of another measure.
    explain_difference : Compare two flavors on one system.

    Notes
    -----
    The randomisation test exchanges the two systems' values of each query at random. Its p-value is the share of
    exchanges, including the observed one, whose difference is at least as large in absolute value. The test is exact if
    the systems are exchangeable. If only their means are equal, differences are skewed and queries are few, its type I
    error exceeds the level; ``.notes`` then says so. The differences are those of the flavor's mean: weighted means, or
    ratios of sums under ``aggregate="micro"``, which are linearised if the ideals differ. Queries that are empty in all
    systems count as the flavor says.

    The interval of a single pair contains the differences that the test does not reject. Several pairs share one
    critical value, that of the largest |t| when systems are permuted within queries (max-T), so their intervals are
    simultaneous. Against a baseline, each query has one random sign for all pairs. Several runs per system are
    corrected by Bonferroni's method.

    If only m of n queries changed, up to a share p_U of all queries may change (the upper confidence limit of m / n).
    The loss and gain of those that did not change here are unknown. They are taken as the largest ones observed, or as
    the limits of the 95 % t interval of the mean change if these are smaller: low <= difference - (p_U - m / n) loss,
    and high likewise; p-values agree. Changes below a thousandth of the largest one do not count. With clusters, these
    counts are of clusters, and with weights they are shares of weight. If all queries changed, the limits are not
    widened; if no query lost, the lower limit is not. For results of ``correct_labels``, the counts are of queries with
    human labels. If fewer than six of them changed, losses and gains are both the largest change; if none did, the
    largest one under the model's labels.

    No interval allows for a loss that no query of the sample shows. So every verdict "not worse", "equivalent" and
    "unchanged" has a note with ``.unseen``, the largest share of queries (95 %) whose loss n queries may not show: 1 -
    .05^(1/n).

    References
    ----------
    M. Smucker, J. Allan and B. Carterette, A comparison of statistical significance tests for information retrieval
    evaluation, CIKM 2007. B. Carterette, Multiple testing in statistical analysis of systems-based information
    retrieval experiments, ACM TOIS 30(1), 2012. P. Westfall and S. Young, Resampling-based multiple testing, 1993. D.
    Schuirmann, A comparison of the two one-sided tests procedure and the power approach, 1987. A. Owen, The pigeonhole
    bootstrap, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from ndcg_ml import evaluate
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 3, (60, 10))
    >>> good, better = (y_true + rng.normal(0, noise, y_true.shape) for noise in (2.0, 1.0))
    >>> both = compare(evaluate(y_true, good, k=5), evaluate(y_true, better, k=5), seed=0)
    >>> round(both.difference, 4), both.p_value < 0.01, both.interval.low > 0, both.verdict
    (0.1139, True, True, 'better')
    >>> both.queries_needed(0.01) > both.queries_needed(0.02) > 60
    True
    """
    settings = _settings(confidence, as_margin(margin, 1.0), n_resamples)
    one_of(unjudged, "unjudged", get_args(Unjudged))
    named = named_systems(systems, names)
    runs = [run for of_one in named.values() for run in of_one]
    corrected = [run for run in runs if isinstance(run, CorrectedEvaluation)]
    if corrected:
        if len(runs) > len(named) or len(corrected) < len(runs):
            raise TypeError("the systems must all be results of correct_labels, one each, or all be evaluations.")
        if not (cluster is None and by is None and k is ... and missing == "raise"):
            raise ValueError(
                "cluster, by, k and missing must be left out if the systems are results of correct_labels."
            )
        refuse_other_samples([*named], corrected)
        runs = [run.human for run in corrected]
    for run in runs:
        if not isinstance(run, Evaluation):
            raise TypeError(
                f"systems must be evaluations; got {type(run).__name__}. Use compare(evaluate(y, a, qid=q), "
                "evaluate(y, b, qid=q)), or compare_values for precomputed values."
            )
    evaluations: list[Evaluation[Any]] = runs
    # With different cut-offs or flavors, the difference would be one of definitions.
    of_runs = [name for name, of_one in named.items() for _ in of_one]
    cut_off = one_cutoff(evaluations, k)
    refuse_other_flavors(evaluations, of_runs)
    sources = [Source.from_evaluation(name, each, cut_off) for name, each in zip(of_runs, evaluations, strict=True)]
    if cluster is None:
        clusters = _own_clusters(evaluations, of_runs)
    else:
        clusters = column_by_id(cluster, "cluster", sources[0].qid)
    return _compared(
        matched(sources, missing),
        f"NDCG{at_cutoff(cut_off)}",
        settings,
        baseline=baseline,
        clusters=clusters,
        by=by,
        unjudged=unjudged,
        seed=seed,
        corrected=corrected,
    )


def compare_values(
    values: Mapping[str, ArrayLike | Sequence[ArrayLike]],
    *,
    qid: ArrayLike,
    measure: str,
    query_weight: Weights | None = None,
    baseline: str | None = None,
    margin: float | None = None,
    cluster: Any = None,
    by: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    seed: Seed = 0,
    missing: Literal["raise", "drop"] = "raise",
) -> Comparison:
    """Compare systems by another measure, given its value for each query.

    Parameters
    ----------
    values : mapping of array-like by name
        The values of each system in the order of `qid`, or a Series by query id; nan if a query has none. A list of
        such arrays holds several runs of a system.
    qid : array-like
        The id of each query.
    measure : str
        The name of the measure, such as ``"recall@10"``.
    query_weight : array-like or mapping, optional
        The weight of each query in the means.
    baseline, margin, cluster, by, confidence, n_resamples, seed, missing
        As for ``compare``.

    Returns
    -------
    Comparison

    Raises
    ------
    TypeError, ValueError
        Ids are missing or repeat, a system does not have one value per query, or as for ``compare``.

    Examples
    --------
    >>> values = {"old": [0.2, 0.5, 0.4], "new": [0.3, 0.5, 0.6]}
    >>> compare_values(values, qid=["q1", "q2", "q3"], measure="recall@10").verdict
    'undecided'
    """
    settings = _settings(confidence, as_margin(margin, math.inf), n_resamples)
    if not isinstance(values, Mapping):
        raise TypeError(f"values must be a mapping from system names to values per query; got {type(values).__name__}.")
    named = named_systems([values], None)
    sources = values_of_queries(named, qid, query_weight, measure)
    clusters = None if cluster is None else column_by_id(cluster, "cluster", sources[0].qid)
    return _compared(
        matched(sources, missing),
        measure,
        settings,
        baseline=baseline,
        clusters=clusters,
        by=by,
        unjudged="warn",
        seed=seed,
    )


def _settings(confidence: object, margin: float | None, n_resamples: object) -> Settings:
    return Settings(
        confidence=as_confidence(confidence), margin=margin, n_resamples=whole_number(n_resamples, "n_resamples")
    )


def _compared(
    table: Matched,
    measure: str,
    settings: Settings,
    *,
    baseline: str | None,
    clusters: list[Any] | None,
    by: Any,
    unjudged: Unjudged,
    seed: Seed,
    corrected: Sequence[CorrectedEvaluation] = (),
) -> Comparison:
    """Compare systems that have one source per run."""
    rng, names, of_system = generator(seed), table.names, table.columns_of_systems()
    if baseline is not None and baseline not in names:
        raise ValueError(
            f"baseline must be the name of a system, {', '.join(map(repr, names))}; got {brief(baseline)}."
        )
    first = table.sources[0]
    columns = {} if by is None else slice_names_by_id(by, first.qid)
    pairs, (means, runs) = _pairs(names, baseline), _system_means(table, of_system)
    # A system with fewer judged documents is at a disadvantage; warn before any p-value is computed.
    values = tuple(means.mean().tolist())
    judged = judged_fractions(table)
    of_names = None if judged is None else tuple(float(judged[at].mean()) for at in of_system)
    if of_names is not None:
        check_unjudged(names, of_names, values, unjudged, stacklevel=4)

    codes = None if clusters is None else numbered(_at(clusters, table))
    of_runs = None if runs is None else [np.average(v, axis=0, weights=w) for v, w in runs]
    corrections, notes = None, list[str]()
    if corrected:
        corrections, values, *notes = correct_pairs(table, corrected, pairs, settings, rng)
    missing = None if corrected else missing_labels(table)
    may_turn = missing.may_turn if unjudged == "refuse" and missing is not None else None
    decided = differences(
        names, means, pairs, settings, rng, clusters=codes, runs=of_runs, corrected=corrections, may_turn=may_turn
    )
    labels = {column: _at(of_query, table) for column, of_query in columns.items()}
    slices = compared_by(labels, names, means, pairs, settings, rng, clusters=codes, runs=runs) if labels else None
    return Comparison(
        flavor=None if first.evaluation is None else first.evaluation.flavor.replace(k=first.k),
        measure=measure,
        names=names,
        values=values,
        pairs=tuple(decided),
        qid=table.qid,
        ndcg=table.values if runs is None else means.values,
        not_compared=table.left_out,
        n_resamples=settings.n_draws,
        margin=settings.margin,
        baseline=baseline,
        seed=None if seed is None or isinstance(seed, np.random.Generator) else int(seed),
        n_runs=tuple(len(at) for at in of_system),
        n_clusters=None if codes is None else int(codes.max()) + 1,
        judged=of_names,
        n_unanswered=_unanswered(table.sources, of_system),
        slices=slices,
        accepts_unjudged=unjudged == "accept",
        further_notes=tuple(notes),
        _missing=missing,
    )


# -- what was given -------------------------------------------------------------------------------------------------


def _own_clusters(evaluations: Sequence[Evaluation[Any]], names: Sequence[str]) -> list[Any] | None:
    """Return the clusters of the evaluations, which must be the same in all of them."""
    mine, *others = (
        {} if one.cluster is None else dict(zip(one.per_query.qid.tolist(), one.cluster.tolist(), strict=True))
        for one in evaluations
    )
    for name, theirs in zip(names[1:], others, strict=True):
        if bool(mine) != bool(theirs) or any(mine.get(query, label) != label for query, label in theirs.items()):
            raise ValueError(
                f"all systems must have the same clusters of queries; those of {names[0]} and {name} differ. Pass "
                "cluster= to compare, or the same cluster= to all evaluations."
            )
    return list(mine.values()) or None


def _at(labels: Sequence[Any], table: Matched) -> list[Any]:
    """Return the labels of the compared queries, from those of all queries of the first system."""
    return [labels[row] for row in table.rows[:, 0].tolist()]


def _pairs(names: Sequence[str], baseline: str | None) -> list[tuple[int, int]]:
    if baseline is None:
        return list(combinations(range(len(names)), 2))
    base = names.index(baseline)
    return [(base, i) for i in range(len(names)) if i != base]


def _system_means(
    table: Matched, of_system: Sequence[list[int]]
) -> tuple[Means, list[tuple[FloatArray, FloatArray]] | None]:
    """Return the values of systems, and those of their runs with the weights of queries if there are several runs.

    The runs of a system are averaged into one column. The test also uses the mean of each run over all queries.
    """
    means = Means.from_weights(table.values, table.share)
    if len(of_system) == len(table.sources):
        return means, None
    every = means.linear()
    runs = [(every.values[:, at], every.weight[:, at]) for at in of_system]
    values = np.stack([values.mean(axis=1) for values, _ in runs], axis=1)
    return Means(values, np.stack([weight[:, 0] for _, weight in runs], axis=1)), runs


def _unanswered(sources: Sequence[Source], of_system: Sequence[list[int]]) -> tuple[int, ...]:
    """Count the queries for which each system returns no documents; empty for precomputed measures."""
    counts = [int(one.evaluation._unanswered().sum()) for one in sources if one.evaluation is not None]
    return tuple(max(counts[at] for at in columns) for columns in of_system) if counts else ()


def _skewed(pairs: Sequence[Difference]) -> str | None:
    skewed = [pair for pair in pairs if pair._is_skewed]
    if not skewed:
        return None
    pair = max(skewed, key=lambda pair: abs(pair.skewness))
    return (
        f"the differences of {len(skewed)} of {len(pairs)} pairs are skewed (skewness {pair.skewness:+.1f} between "
        f"{pair.a} and {pair.b}) and {pair.interval.n_queries} queries are few: if the systems have equal means but "
        "are not exchangeable, the type I error may exceed the level"
    )


def _few_changed(pairs: Sequence[Difference]) -> Iterator[str]:
    """Yield a note on unchanged pairs and one on widened intervals, each with the pair that may change most."""
    for which, widened in (
        ([pair for pair in pairs if pair.verdict == "unchanged"], False),
        ([pair for pair in pairs if pair.widened], True),
    ):
        if which:
            pair = max(which, key=lambda pair: pair.changed_at_most or 0.0)
            others = f" (and few or none in {len(which) - 1} more pairs)" if len(which) > 1 else ""
            note = (
                f"{pair.n_changed or 'none'} of {pair.interval.n_queries} queries changed between {pair.a} and {pair.b}"
            )
            more = (
                f"; up to {100 * (pair.changed_at_most or 0.0):.1f} % of other queries may "
                f"({percent(1 - float(f'{pair.level:.2g}'))}); the interval is widened by their possible differences"
            )
            yield f"{note}{others}{more * widened}"


def _unseen(comparison: Comparison) -> Iterator[str]:
    """Yield the largest share of queries whose loss may be unseen, for the verdicts that claim that there is none."""
    claims = [("", pair) for pair in comparison.pairs if pair.verdict in NO_LOSS]
    of_slices = [
        (f" of {column}={name}", pair)
        for (column, name), part in (comparison.slices or {}).items()
        for pair in part.pairs
        if pair.verdict in NO_LOSS
    ]
    for which in (claims, of_slices):
        if which:
            place, pair = max(which, key=lambda claim: claim[1].unseen)
            n, what = round(pair._n_seen), "clusters" if comparison.n_clusters is not None else "queries"
            effective = " effective" * (what == "queries" and n != pair.interval.n_queries)
            more = ""
            if comparison.margin is not None and comparison.margin < 1:
                needed = math.ceil(pair._seen_by(comparison.margin))
                more = (
                    f". From {needed} {what} on, an unseen loss is below the margin of {comparison.margin:g}, even if "
                    "a query loses 1"
                )
            yield (
                f"A loss in up to {100 * pair.unseen:.2g} % of the {what}{place} may be unseen with {n}{effective} "
                f"{what} (95 %){more}"
            )


def _few(comparison: Comparison) -> str | None:
    """Return a note if the weights leave few effective queries."""
    worth = min(pair.effective_queries or math.inf for pair in comparison.pairs)
    by_weights = comparison.n_clusters is None and comparison.pairs[0].interval.method != "corrected"
    if not by_weights or worth >= FEWEST_FOR_BOOTSTRAP:
        return None
    return (
        f"with these weights, {comparison.n_queries} queries count as {worth:.0f} of equal weight, which is few: one "
        "more query with a large weight may change the verdict"
    )
