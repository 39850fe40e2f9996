"""The result of an evaluation of arrays or of a run: what it holds, prints, saves and draws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import _files, _show, _statistics, _unjudged
from ndcg_ml._core.frames import make_frame
from ndcg_ml._core.json_values import plain, plain_ids
from ndcg_ml._core.mean_and_empty_queries import shape_values
from ndcg_ml._core.per_query import PerQuery
from ndcg_ml._plain.checks import K, whole_number
from ndcg_ml._plain.flavor_text import at_cutoff, metric_key
from ndcg_ml._plain.messages import block, paragraph
from ndcg_ml._plain.table import Column, Record
from ndcg_ml.flavor import Flavor

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ndcg_ml._core.mean_and_empty_queries import Totals
    from ndcg_ml._core.queries import Scored
    from ndcg_ml._files.read_run import Which
    from ndcg_ml._files.saved import Saved, Stored
    from ndcg_ml._show.report import Section
    from ndcg_ml._statistics.means import Interval
    from ndcg_ml._unjudged.ranges import Range
    from ndcg_ml.results.slices import Slices

V = TypeVar("V", bound="float | dict[Any, float]")
"""Type of the value: a float, or a dict by cut-off if there are several."""
E = TypeVar("E", bound="Evaluation[Any]")


_OF_RUNS = "judged", "queries", "qrels_only", "run_only", "n_unanswered", "n_excluded"
WORDS = "query", "queries", "documents", "judged"
"""The words of tables for a query, several, their documents, and documents with a label."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Evaluation(Generic[V]):
    """NDCG of a set of queries: of arrays, or of a run.

    Attributes
    ----------
    value : float, or dict of float by cut-off
        The aggregated NDCG.
    flavor : Flavor
        The flavor that it was computed under.
    k : int, None, or tuple of them
        The cut-off or cut-offs.
    n_queries : int
        Number of queries.
    n_empty : int, or dict of int by cut-off
        Number of queries whose ideal DCG is 0. Their value is ``flavor.empty``.
    per_query : PerQuery
        The table of queries, as arrays.
    frame_library : str
        Library of the frames of ``to_frame``: that of the data, "pandas", "polars" or "pyarrow"; otherwise "pandas".
    cluster : ndarray or None
        The cluster of each query, as passed by ``cluster=``; None if queries are independent.
    columns_read : dict
        The columns that were read, by meaning, for "qrels", "run" or a frame "y_true" whose columns have names.
    judged : float, or dict of float by cut-off
        Mean of judged@k over the queries with a retrieved document, whatever the flavor and the weights. This and what
        follows is None for arrays, where no run retrieves documents.
    queries : str
        Which topics were evaluated: those of the "qrels", of the "run" or in "both"; "users" in ``evaluate_topk``.
    qrels_only, run_only : ndarray
        The ids of the topics that only the qrels, and only the run, have.
    n_unanswered : int
        Number of evaluated topics for which nothing is retrieved: the run answers with an empty list, lacks the topic,
        or retrieves only excluded documents. Their ``per_query.n_retrieved`` is 0.
    n_excluded : int
        Number of documents of the run that `exclude` removed; None without `exclude`, and in a slice.

    Examples
    --------
    >>> from ndcg_ml import evaluate
    >>> result = evaluate([3, 0, 1, 0, 0], [.9, .1, .3, .2, .8], group=[3, 2], flavor="lightgbm", k=10)
    >>> result.value, result.n_queries, result.n_empty
    (1.0, 2, 1)
    >>> result.per_query.n_relevant
    array([2, 0])
    """

    value: V
    flavor: Flavor
    k: int | None | tuple[int | None, ...]
    n_queries: int
    n_empty: int | dict[int | None, int]
    per_query: PerQuery
    frame_library: str = "pandas"
    cluster: NDArray[Any] | None = field(default=None, repr=False)
    columns_read: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    judged: float | dict[int | None, float] | None = None
    queries: Which | Literal["users"] | None = None
    qrels_only: NDArray[Any] | None = None
    run_only: NDArray[Any] | None = None
    n_unanswered: int | None = None
    n_excluded: int | None = None
    _totals: Totals = field(repr=False)
    """DCG and ideal DCG of the queries, from which every mean is computed."""
    _scored: Scored | None = field(default=None, repr=False)
    """The documents, not copied, for ``range``; None if they are not available, as after unpickling."""
    _digests: NDArray[np.uint64] | None = field(default=None, repr=False)
    """A digest of each query's labels: of a run, or if it was loaded and so has no documents; None in a slice."""
    _excluded: NDArray[np.uint64] | None = field(default=None, repr=False)
    """A digest of each topic's excluded documents; None without `exclude`, and in a slice."""
    _slice_names: Mapping[str, Sequence[Any]] | None = field(default=None, repr=False)
    """The slice name of each query, in each column of ``by=``; None without it."""

    @property
    def slices(self) -> Slices[Self] | None:
        """The evaluations of the slices of ``evaluate(..., by=)``, by column and label; None without `by`."""
        if self._slice_names is None:
            return None
        from ndcg_ml.results.slices import Slices, rows_of_slices  # few evaluations have slices

        totals, several, units = self._totals, isinstance(self.k, tuple), self._words()[1]
        rows = rows_of_slices(self._slice_names)
        return Slices(rows, totals, self.flavor, self._clusters(), several, units, self._at)

    @overload
    def interval(self: Evaluation[float], confidence: float = ...) -> Interval: ...
    @overload
    def interval(self: Evaluation[dict[K, float]], confidence: float = ...) -> dict[K, Interval]: ...
    def interval(self, confidence: float = 0.95) -> Interval | dict[Any, Interval]:
        """Return a confidence interval of the value for the population from which these queries are drawn.

        Parameters
        ----------
        confidence : float, default 0.95
            Above 0 and below 1.

        Returns
        -------
        Interval, or dict of Interval by cut-off if there are several
            With ``.low``, ``.high``, ``.value``, ``.confidence``, ``.n_queries``, and with clusters or unequal weights
            also ``.effective_queries``. It is between 0 and 1 if all values are, and its width is never 0.

        Raises
        ------
        TypeError, ValueError
            `confidence` is not as above; fewer than two queries count in the mean; a query has the value nan
            (``empty=nan``); there are fewer than six clusters, or one has most of the weight.

        See Also
        --------
        ndcg_ml.compare : Compare systems. A difference may be significant although the intervals of the systems
        overlap.

        Notes
        -----
        Student's t interval, corrected for skewness, with two pseudo-queries: one at 0 and one at 1, each with the
        weight 1 / (1 + 2 n m (1 - m)) for n queries with the mean m. They matter for few queries, or if nearly all have
        the same value, 0 or 1. Nothing is drawn. benchmarks/results/decisions.md has the simulated coverage, which is
        lower for values that are so rare that the sample may lack them.

        Queries have the same weights as in the value, and those that the flavor skips are left out. Under
        ``aggregate="micro"`` the ratio is linearised (delta method). The standard error is that of R. Bell and D.
        McCaffrey, Survey Methodology 28(2), 2002, of the queries or of whole clusters. If one query has more weight
        than all others together, no interval is reliable.

        References
        ----------
        N. Johnson, Modified t tests and confidence intervals for asymmetrical populations, JASA 73, 1978.

        Examples
        --------
        >>> from ndcg_ml import evaluate
        >>> y_true, y_score = [[3, 0, 1], [0, 1, 0], [1, 0, 2], [0, 0, 1]], [[3, 2, 1], [3, 1, 2], [3, 2, 1], [1, 3, 2]]
        >>> result = evaluate(y_true, y_score)
        >>> print(result.interval())
        0.713764 (0.057423 to 0.955958; 95 %, t interval with skewness; 4 queries)
        >>> result.interval(0.9).low < result.value < result.interval(0.9).high
        True
        """
        return self._shaped(self._intervals(confidence))

    def _intervals(self, confidence: float = 0.95) -> dict[int | None, Interval]:
        """Return the intervals by cut-off, also if there is only one."""
        values, intervals = self._as_dict(self.value), _statistics.intervals.intervals
        return intervals(self._totals, self.flavor, values, confidence, self._clusters())

    def _clusters(self) -> NDArray[np.int64] | None:
        """Return the cluster of each query as a number; None if queries are independent."""
        return None if self.cluster is None else _statistics.intervals.numbered(self.cluster.tolist())

    @property
    def standard_error(self) -> V:
        """The standard error of the value over queries; raises the errors of ``interval``."""
        return self._shaped(_statistics.intervals.standard_errors(self._totals, self.flavor, self._clusters()))

    @property
    def std(self) -> V:
        """The standard deviation of the queries' NDCG, with n - 1 and the weights of the mean.

        Without weights, it is the standard error times the square root of the number of queries that count. Raises the
        errors of ``interval``.
        """
        means = _statistics.intervals.means_of(self._totals, self.flavor, None)
        return self._shaped({k: float(queries.std()[0]) for k, (queries, _) in means.items()})

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        qrels: str | os.PathLike[str] | None = None,
        margin: float | None = None,
    ) -> None:
        """Write the evaluation to a file, as a baseline for later comparisons. ``load`` reads it.

        The file is readable JSON with one line per query: ids, values, counts, judged fractions and clusters, with the
        flavor, the cut-offs and the versions used. It has digests of each query's labels and of the excluded documents,
        which detect changes of them, and a digest of the whole file. Slices are not saved.

        Parameters
        ----------
        path : path
            The file to write, replacing any existing file.
        qrels : path, optional
            The file of the judgements. If it is in the folder of `path` or below it, its relative path is saved, and
            ``ndcg-ml gate`` reads it unless other judgements are passed.
        margin : float, optional
            The largest loss that does not matter, between 0 and 1, for ``ndcg-ml gate``.

        Raises
        ------
        TypeError
            Query ids or clusters are neither strings nor integers, or `margin` is not a number.
        ValueError
            The flavor has a callable gain or discount, the arrays of labels or scores have changed since the
            evaluation, or `margin` is out of range.
        OSError
            The file cannot be written.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from ndcg_ml import Evaluation, evaluate
        >>> result = evaluate([[3, 0, 1], [0, 1, 0]], [[3, 2, 1], [3, 1, 2]], k=3)
        >>> with TemporaryDirectory() as folder:
        ...     result.save(Path(folder, "base.json"))
        ...     base = Evaluation.load(Path(folder, "base.json"))
        >>> base.value == result.value
        True
        """
        several = isinstance(self.k, tuple)
        stored = _files.saved.Stored(self._totals, self.flavor, several, self.per_query, self._label_digests())
        values = list(self._as_dict(self.value).values())
        topics = {"queries": self.queries, "qrels_only": self.qrels_only, "run_only": self.run_only}
        run = None if self.queries is None else {**topics, "n_excluded": self.n_excluded}
        stored = stored._replace(cluster=self.cluster, run=run, excluded=self._excluded)
        _files.saved.write(stored, values, path, qrels, margin)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Evaluation[Any]:
        """Read an evaluation that ``save`` wrote.

        Parameters
        ----------
        path : path

        Returns
        -------
        Evaluation

        Raises
        ------
        DataFileError
            A ValueError that names the file: it is not the output of ``save``, has another format version, or was
            edited or damaged.
        OSError
            The file cannot be read.
        """
        return load(path).evaluation

    # fmt: off
    @overload
    def range(self: Evaluation[float], max_grade: float | None = ...) -> Range: ...
    @overload
    def range(self: Evaluation[dict[K, float]], max_grade: float | None = ...) -> dict[K, Range]: ...
    # fmt: on
    def range(self, max_grade: float | None = None) -> Range | dict[Any, Range]:
        """Return the smallest and largest value over all ways to grade the unjudged documents.

        The range is exact: some grades attain its ends, and none exceed them. Unjudged documents are those with the
        label NaN, retrieved or not, and in a run the retrieved documents that are not in the qrels.

        Parameters
        ----------
        max_grade : float, optional
            The top of the grade scale: unjudged documents may have the grades 0, 1, ..., `max_grade`. Default: the
            flavor's ``max_grade``; if it has none, they may have grade 0 and the grades of the judged documents (those
            >= 0, unless ``negative="allow"``).

        Returns
        -------
        Range, or dict of Range by cut-off if there are several
            With ``.low``, ``.high``, ``.value``, ``.width``, ``.n_unjudged``, ``.grades``.

        Raises
        ------
        RangeError
            A ValueError that says why the range cannot be computed: ``ties`` "best" or "worst"; ``ideal`` "local",
            "max" or "given"; a ``recall_depth``; ``aggregate="micro"``; repeated documents in a query; ``empty=nan`` if
            a query may be empty; negative gains; labels that are not grades; an evaluation that was unpickled, or whose
            arrays have changed.
        TypeError
            `max_grade` is not a number.

        See Also
        --------
        ndcg_ml.compare : Its result has the range of a difference, and the documents to label next.

        Notes
        -----
        Every completion judges all documents, so ``flavor.unjudged`` does not apply to it. Under
        ``unjudged="condense"``, which removes documents, the value itself may therefore be outside the range.
        docs/unjudged.md describes the method.

        Examples
        --------
        >>> from ndcg_ml import evaluate_run
        >>> result = evaluate_run({"q": {"d1": 2, "d2": 0, "d3": 1}}, {"q": ["d1", "d4", "d3"]}, k=3)
        >>> print(result.range())
        0.950234 (0.950234 to 1.000000 over all grades 0, 1, 2 of 1 unjudged documents)
        """
        compute_range = _unjudged.ranges.compute_range
        totals, values = self._totals, self._as_dict(self.value)
        scored = _unjudged.ranges.require_documents(self._scored, totals, self.flavor)
        return self._shaped(
            {
                k: compute_range(scored, self.flavor, k, values[k], max_grade, totals.dcg[:, at], totals.ideal[:, at])
                for at, k in enumerate(totals.ks)
            }
        )

    def _at(self, rows: NDArray[np.intp]) -> Self:
        """Return the evaluation of the queries at these positions; its value is nan if none of them counts."""
        totals, several = self._totals.at(rows), isinstance(self.k, tuple)
        n_empty = totals.ndcg(self.flavor)[1].sum(axis=0).tolist()
        part = replace(
            self,
            value=shape_values(totals.ks, totals.mean(self.flavor).tolist(), several),
            n_queries=rows.size,
            n_empty=shape_values(totals.ks, n_empty, several),
            per_query=self.per_query.at(rows),
            cluster=None if self.cluster is None else self.cluster[rows],
            n_excluded=None,
            _totals=totals,
            _scored=None,
            _digests=None,
            _excluded=None,
            _slice_names=None,
        )
        if self.queries is None or self.qrels_only is None or self.run_only is None:
            return part
        ids = set(totals.ids.tolist())
        one_sided = (topics[[topic in ids for topic in topics.tolist()]] for topics in (self.qrels_only, self.run_only))
        return of_run(part, part.per_query.n_retrieved, part.per_query.judged, self.queries, *one_sided)

    def _as_dict(self, what: Any) -> dict[int | None, Any]:
        """Return a value, count or interval as a dict by cut-off, even if there is only one."""
        return what if isinstance(self.k, tuple) else {self.k: what}

    def _shaped(self, by_k: dict[int | None, Any]) -> Any:
        """Return the entries in the form of the value: one entry, or a dict in the order of the cut-offs."""
        return {k: by_k[k] for k in self.k} if isinstance(self.k, tuple) else by_k[self.k]

    def to_frame(self) -> Any:
        """Return the table of queries as a data frame, one row per query.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            A frame of ``frame_library``. With several cut-offs, columns have names such as ``ndcg@10``.

        Raises
        ------
        ImportError
            The library is not installed.
        """
        return make_frame(self.frame_library, self.per_query.columns(self._totals.ks))

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        command: str | None = None,
        top: int = 20,
    ) -> str | Path:
        """Write a report as one HTML page, without scripts or external files.

        It shows the values with their intervals (with seed 0, so that pages are reproducible), a drawing, the slices of
        `by`, the queries that lose most, the definition in words, and the versions of Python and the libraries.

        Parameters
        ----------
        path : path, default None
            The file to write, replacing any existing file. None: no file is written.
        title : str, default None
            The heading. None: the number of queries and the cut-off.
        command : str, default None
            The call or command line that computed the result, which the page then shows.
        top : int, default 20
            Number of queries to list: those whose DCG is furthest below their ideal, at the first cut-off.

        Returns
        -------
        str or pathlib.Path
            The page; with `path`, the path of the file.

        Raises
        ------
        ImportError
            Jinja2 or Matplotlib is not installed; the extra ``[report]`` has both.
        TypeError, ValueError
            `top` is not a whole number of at least 0.
        OSError
            The file cannot be written. An existing file is left unchanged.

        Examples
        --------
        >>> from ndcg_ml import evaluate
        >>> result = evaluate([[3, 0, 1], [0, 1, 0]], [[3, 2, 1], [3, 1, 2]], k=(1, 3))
        >>> written = result.to_html("report.html")  # doctest: +SKIP
        """
        most = whole_number(top, "top", 0)
        return _show.report.write(lambda: self._page(most), self.flavor, path, title, command)

    def _page(self, top: int) -> tuple[str, list[Section]]:
        """Return the title and the sections of the report."""
        report, ks, slices, words = _show.report, self._totals.ks, self.slices, self._words()
        values = [self._repr_html_(), report.intervals(self._intervals)]
        sections: list[Section] = [("Values", values)]
        if slices is None:
            values.append(report.drawing(self.plot, len(ks)))
        else:
            sections.append(("Slices", [report.drawing(slices.plot, len(slices)), slices._repr_html_()]))
        lost = report.losses(self.per_query, ks[0], words, top)
        sections.append((f"{words[1].capitalize()} that lose most", lost))
        title = f"NDCG{at_cutoff(ks[0]) if len(ks) == 1 else ''} of {self.n_queries} {words[1]}"
        return title if len(ks) > 1 else f"{title}: {self._totals.values(self.flavor)[0]:.4f}", sections

    def plot(self, ax: Axes | None = None) -> tuple[Figure, Axes]:
        """Draw the values at the first 30 cut-offs, with their 95 % intervals.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default None
            Axes to draw in. None: new axes in a new figure of pyplot.

        Returns
        -------
        tuple of matplotlib.figure.Figure and matplotlib.axes.Axes
            Show it with ``plt.show()``, save it with ``fig.savefig``.

        Raises
        ------
        ImportError
            Matplotlib is not installed.
        TypeError
            `ax` is not an Axes.
        ValueError
            No cut-off has a finite value.

        Examples
        --------
        >>> from ndcg_ml import evaluate
        >>> result = evaluate([[3, 0, 1], [0, 1, 0]], [[3, 2, 1], [3, 1, 2]], k=(1, 3))
        >>> fig, ax = result.plot()  # doctest: +SKIP
        >>> fig.savefig("values.png")  # doctest: +SKIP
        """
        values, ndcg = self._as_dict(self.value), self.per_query.ndcg
        return _show.plot.values(values, self._intervals, self.flavor, ndcg, self._notes()[0], ax)

    def _repr_html_(self) -> str:
        _, queries, _, judged = self._words()
        extra = [Column(judged, "{judged:.6f}")] * (self.judged is not None)
        counts = [Column(queries, str(self.n_queries)), Column("empty", "{n_empty}")]
        columns = [Column("", "NDCG{k:@}", "l"), Column("value", "{ndcg:.6f}"), *extra, *counts]
        return block(Record(columns, self._rows()).html(), *map(paragraph, self._notes()))

    def _words(self) -> tuple[str, str, str, str]:
        return ("user", "users", "items", "held out") if self.queries == "users" else WORDS

    def _unanswered(self) -> NDArray[np.bool_]:
        """Return which queries have an empty ranking."""
        table = self.per_query
        return (table.n_docs if table.n_retrieved is None else table.n_retrieved) == 0

    def metrics(self) -> dict[str, float]:
        """Return the values under names that experiment trackers accept: ``ndcg_at_10``, or ``ndcg`` without a cut-off.

        Returns
        -------
        dict of float by name
            In the form that ``mlflow.log_metrics``, ``wandb.log`` and ``LightningModule.log_dict`` take.

        Examples
        --------
        >>> from ndcg_ml import evaluate
        >>> evaluate([[1, 0]], [[0.2, 0.9]], k=[1, 2]).metrics()
        {'ndcg_at_1': 0.0, 'ndcg_at_2': 0.6309297535714575}
        """
        return {metric_key(k): value for k, value in self._as_dict(self.value).items()}

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """Return plain values for JSON: flavors as text, and None for nan and infinity.

        Parameters
        ----------
        per_query : bool, default False
            Whether to include the table of queries.

        Returns
        -------
        dict
        """
        document: dict[str, Any] = {
            "values": plain(self._rows()),
            "n_queries": self.n_queries,
            "n_documents": int(self.per_query.n_docs.sum()),
        }
        if self.slices is not None:
            document |= self.slices.to_dict()
        document |= {"per_query": self.per_query.to_dicts(self._totals.ks) if per_query else None}
        if self.qrels_only is None or self.run_only is None:
            return document
        return document | {
            "queries": self.queries,
            "qrels_only": plain_ids(self.qrels_only).tolist(),
            "run_only": plain_ids(self.run_only).tolist(),
            "n_unanswered": self.n_unanswered,
            "n_excluded": self.n_excluded,
        }

    def _rows(self) -> list[dict[str, Any]]:
        """Return one row per cut-off: the flavor, the value and the number of empty queries."""
        empties, judged = self._as_dict(self.n_empty), self._as_dict(self.judged)
        return [
            {
                "k": k,
                "flavor": str(self.flavor.replace(k=k)),
                "ndcg": value,
                "n_empty": empties[k],
                **({} if self.judged is None else {"judged": judged[k]}),
            }
            for k, value in self._as_dict(self.value).items()
        ]

    def _notes(self) -> list[str]:
        """Return the lines below the values."""
        rule = {"skip": "left out of the mean", "raise": "refused"}.get(
            str(self.flavor.empty), f"scored {self.flavor.empty:g}" if isinstance(self.flavor.empty, float) else ""
        )
        n_empty = sorted(set(self.n_empty.values() if isinstance(self.n_empty, dict) else [self.n_empty]))
        least_to_most = "-".join(str(n) for n in dict.fromkeys((n_empty[0], n_empty[-1])))
        query, queries, documents, _ = self._words()
        n_docs = int(self.per_query.n_docs.sum())
        units = query if self.n_queries == 1 else queries
        counts = f"{self.n_queries} {units}, {least_to_most} empty ({rule}); {n_docs} {documents}"
        flavor = self.flavor.replace(k=self._totals.ks[0]) if len(self._totals.ks) == 1 else self.flavor
        return [counts, *self._notes_on_run(), str(flavor)]

    def _notes_on_run(self) -> Iterator[str]:
        """Yield notes on unanswered topics, on topics that only one side has, and on excluded documents."""
        n_unanswered = self.n_unanswered or 0
        if self.queries == "users" and n_unanswered:
            yield f"{n_unanswered} user{'s' * (n_unanswered != 1)} without a retrieved item"
        if self.queries in (None, "users") or self.qrels_only is None:
            return
        missing = "counted as retrieving nothing" if self.queries == "qrels" else "left out"
        extra = "counted as unjudged" if self.queries == "run" else "left out"
        sides: Any = ("qrels", "run", self.qrels_only, missing), ("run", "qrels", self.run_only, extra)
        topics = "; ".join(
            f"{len(ids)} of the {one} are not in the {other}{f', {treatment}' * bool(len(ids))}"
            for one, other, ids, treatment in sides
        )
        yield f"topics: {topics}"
        if n_empty_answers := n_unanswered - self.qrels_only.size * (self.queries == "qrels"):
            yield f"answers: {n_empty_answers} of the evaluated topics are answered with an empty list"
        if self.n_excluded is not None:
            yield f"excluded: {self.n_excluded} retrieved documents"

    def _label_digests(self) -> NDArray[np.uint64] | None:
        """Return a digest of each query's labels; None if the documents are not known.

        Raises a ValueError if the evaluated arrays were modified since.
        """
        if self._digests is not None or self._scored is None or not self._scored.rows_are_documents:
            return self._digests
        return None if self.queries else _files.saved.label_digests(self._scored, self.flavor, self._totals)

    def __format__(self, spec: str) -> str:
        if spec and isinstance(self.value, dict):
            raise TypeError(
                f"an evaluation must have one cut-off to be formatted as a number; got {self.k}. Write "
                f"{{result.value[{self._totals.ks[0]}]:{spec}}}."
            )
        return format(self.value if spec else str(self), spec)

    def __repr__(self) -> str:
        of_runs = () if self.queries else _OF_RUNS
        shown = [each.name for each in fields(self) if each.repr and each.name not in of_runs]
        return f"Evaluation({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __str__(self) -> str:
        lines = [f"ndcg{at_cutoff(k)} = {value:.6f}" for k, value in self._as_dict(self.value).items()]
        if self.judged is not None:
            word = self._words()[3]
            lines += [f"{word}{at_cutoff(k)} = {value:.6f}" for k, value in self._as_dict(self.judged).items()]
        return "\n".join([*lines, *self._notes()])


def evaluation_from_totals(
    totals: Totals, flavor: Flavor, several: bool, counts: Mapping[str, NDArray[np.int64]]
) -> Evaluation[Any]:
    """Return the evaluation of these totals; with `several`, its values are dicts by cut-off.

    `counts` holds the columns ``n_docs``, ``n_judged``, ``n_relevant`` and ``tied`` of the table of queries.
    """
    ndcg, empty = totals.ndcg(flavor)
    dcg, ideal = totals.dcg.copy(), totals.ideal.copy()  # the caller may change the result
    n_queries = len(totals.ids)

    def columns(table: NDArray[Any]) -> NDArray[Any]:
        return table if several else table[:, 0]

    return Evaluation(
        value=shape_values(totals.ks, totals.values(flavor), several),
        flavor=flavor if several else flavor.replace(k=totals.ks[0]),
        k=totals.ks if several else totals.ks[0],
        n_queries=n_queries,
        n_empty=shape_values(totals.ks, empty.sum(axis=0).tolist(), several),
        per_query=PerQuery(
            qid=totals.ids,
            ndcg=columns(ndcg),
            dcg=columns(dcg),
            idcg=columns(ideal),
            empty=columns(empty),
            **counts,
            weight=np.ones(n_queries) if totals.weight is None else totals.weight,
        ),
        _totals=totals,
    )


def of_run(
    evaluation: E,
    n_retrieved: NDArray[np.int64],
    judged: NDArray[np.float64],
    queries: Which | Literal["users"],
    qrels_only: NDArray[Any],
    run_only: NDArray[Any],
) -> E:
    """Add what is known of a run to the evaluation of all its topics, or of a slice."""
    judged = judged.reshape(len(n_retrieved), -1)
    some = n_retrieved > 0  # topics without documents are not in the mean
    means = judged[some].mean(axis=0).tolist() if some.any() else [math.nan] * judged.shape[1]
    table = evaluation.per_query
    return replace(
        evaluation,
        per_query=replace(table, n_retrieved=n_retrieved, judged=judged.reshape(table.ndcg.shape)),
        judged=shape_values(evaluation._totals.ks, means, isinstance(evaluation.k, tuple)),
        queries=queries,
        qrels_only=qrels_only,
        run_only=run_only,
        n_unanswered=int((~some).sum()),
    )


def load(path: str | os.PathLike[str]) -> Saved[Evaluation[Any]]:
    """Return a saved evaluation with what was saved beside it. Raises the errors of ``Evaluation.load``."""
    return _files.saved.read(path, _from_stored)


def _from_stored(stored: Stored) -> Evaluation[Any]:
    counts = {name: stored.table[name] for name in ("n_docs", "n_judged", "n_relevant", "tied")}
    result = evaluation_from_totals(stored.totals, stored.flavor, stored.several, counts)
    result = replace(result, cluster=stored.cluster, _digests=stored.labels)
    if stored.run is None:
        return result
    run = dict(stored.run)
    result = replace(result, n_excluded=run.pop("n_excluded"), _excluded=stored.excluded)
    return of_run(result, stored.table["n_retrieved"], stored.table["judged"], **run)
