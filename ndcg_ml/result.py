"""The result of an evaluation: one value, and the table of queries behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.frames import make_frame
from ndcg_ml._flavor.text import at_cutoff, metric_key
from ndcg_ml._one_line import brief
from ndcg_ml._text.escaping import block, paragraph
from ndcg_ml._text.plain import plain, plain_ids
from ndcg_ml._text.record import Column, Record
from ndcg_ml.flavor import Flavor

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ndcg_ml._compare.slices import Slices
    from ndcg_ml._data.scored_documents import Scored
    from ndcg_ml._kernel.totals import Totals
    from ndcg_ml._stats.means import Interval, Method, Seed
    from ndcg_ml._unjudged.range import Range

__all__ = ["Evaluation", "PerQuery", "at_cutoff"]

V = TypeVar("V", bound="float | dict[int | None, float]")
"""The value: a float, or a dict by cut-off if there are several."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class PerQuery:
    """One entry per query, as arrays of the same length. ``per_query["ndcg"]`` is ``per_query.ndcg``.

    Attributes
    ----------
    qid : ndarray
        The query's id; its position, if the caller gave no ids.
    ndcg, dcg, idcg : ndarray of float64
        NDCG (nan for an empty query that the mean skips), DCG and ideal DCG; with several cut-offs one column each.
    empty : ndarray of bool
        Whether the ideal DCG is 0; with several cut-offs one column each.
    n_docs : ndarray of int
        Documents that were ranked.
    n_judged : ndarray of int
        Documents that have a label, retrieved or not.
    n_relevant : ndarray of int
        Judged documents whose gain is above 0.
    tied : ndarray of int
        Ranked documents that share their score with another one of the query.
    weight : ndarray of float64
        The query's weight.
    """

    qid: NDArray[Any]
    ndcg: NDArray[np.float64]
    dcg: NDArray[np.float64]
    idcg: NDArray[np.float64]
    empty: NDArray[np.bool_]
    n_docs: NDArray[np.int64]
    n_judged: NDArray[np.int64]
    n_relevant: NDArray[np.int64]
    tied: NDArray[np.int64]
    weight: NDArray[np.float64]

    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(field.name for field in fields(self))

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.keys():
            raise KeyError(f"{brief(name)} is not a column of per_query; the columns are {', '.join(self.keys())}.")
        column: NDArray[Any] = getattr(self, name)
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.qid)

    def __repr__(self) -> str:
        return f"<PerQuery of {len(self)} queries: {', '.join(self.keys())}>"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Evaluation(Generic[V]):
    """NDCG of a set of queries, with what it is made of.

    Attributes
    ----------
    value : float, or dict of float by cut-off
        The aggregated NDCG.
    flavor : Flavor
        The flavor it was computed under.
    k : int, None, or tuple of them
        The cut-off, or the cut-offs.
    n_queries : int
        Number of queries.
    n_empty : int, or dict of int by cut-off
        Number of queries whose ideal DCG is 0; ``flavor.empty`` says what they scored.
    per_query : PerQuery
        The table of queries, as arrays.
    frame_library : str
        Library of the frames of ``to_frame``: "pandas", "polars" or "pyarrow", as your data were; otherwise "pandas".
    slices : Slices or None
        The results of ``evaluate(..., by=)`` by label; None without `by`.
    cluster : ndarray or None
        The cluster of each query, from ``evaluate`` or ``evaluate_run`` with ``cluster=``; None if queries are
        independent.

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
    slices: Slices | None = None
    cluster: NDArray[Any] | None = field(default=None, repr=False)
    _totals: Totals = field(repr=False)
    """The totals of the queries, from which every mean is computed."""
    _scored: Scored | None = field(default=None, repr=False)
    """The documents, by reference, for ``range``; None if they are not available, as after unpickling."""
    _labels: NDArray[np.uint64] | None = field(default=None, repr=False)
    """A digest of each query's labels, in place of the documents, of labels and scores that were loaded."""

    # fmt: off
    @overload
    def interval(
        self: Evaluation[float], confidence: float = ..., method: Method | None = ..., n_resamples: int = ...,
        seed: Seed = ...,
    ) -> Interval: ...
    @overload
    def interval(
        self: Evaluation[dict[int | None, float]], confidence: float = ..., method: Method | None = ...,
        n_resamples: int = ..., seed: Seed = ...,
    ) -> dict[int | None, Interval]: ...
    # fmt: on
    def interval(
        self, confidence: float = 0.95, method: Method | None = None, n_resamples: int = 9999, seed: Seed = 0
    ) -> Interval | dict[int | None, Interval]:
        """Return a confidence interval of the value over the population that these queries are drawn from.

        Parameters
        ----------
        confidence : float, default 0.95
            Above 0 and below 1.
        method : {"bca", "percentile", "t", "bounded"}, optional
            The bootstrap over queries, bias-corrected and accelerated, or its plain percentiles; or Student's t
            interval, which draws nothing, is symmetric about the value and may reach beyond 0 and 1; or the interval of
            values between 0 and 1 that pile up at a bound, which never has the width 0. Default: "bca"; "bounded", and
            the result says so, if all queries score the same, or most score 0, or most score 1, and fewer than 20
            something else. There a bootstrap covers the truth in half of the cases.
        n_resamples : int, default 9999
            Number of resamples of the bootstrap. Each draws as many queries as there are, with replacement.
        seed : int, numpy.random.Generator or None, default 0
            Random seed; None draws differently in each call.

        Returns
        -------
        Interval, or dict of Interval by cut-off if there are several
            With ``.low``, ``.high``, ``.value``, ``.confidence``, ``.method``, ``.n_queries``. Several cut-offs share
            the resamples. Of queries in clusters (``evaluate(..., cluster=)``) also ``.effective_queries``.

        Raises
        ------
        TypeError, ValueError
            An argument is not as above; fewer than two queries count in the mean; a query scores nan
            (``empty=nan``); all resamples lie on one side of the value, for "bca"; a query scores below 0 or above 1,
            for "bounded"; fewer than six clusters, or one with most of the weight.

        See Also
        --------
        ndcg_ml.compare : two systems on the same queries. Their own intervals may overlap, and the difference be clear.

        Notes
        -----
        A query counts as it does in the value: with its weight, and not at all where the flavor skips it. Under
        ``aggregate="micro"`` both sums are resampled together; the t interval is that of the linearised ratio (the
        delta method), and equals the usual one for a mean without weights. Where one query outweighs all others
        together, no method knows how far the value may be off. Clusters are resampled whole; their t interval has the
        robust standard error and the degrees of freedom of Bell and McCaffrey (2002). docs/deciding.md says which
        method when, with the share of intervals that covered the truth in simulations.

        References
        ----------
        B. Efron, Better bootstrap confidence intervals, JASA 82, 1987.

        Examples
        --------
        >>> from ndcg_ml import evaluate
        >>> y_true, y_score = [[3, 0, 1], [0, 1, 0], [1, 0, 2], [0, 0, 1]], [[3, 2, 1], [3, 1, 2], [3, 2, 1], [1, 3, 2]]
        >>> result = evaluate(y_true, y_score)
        >>> print(result.interval(method="t"))
        0.713764 (0.399120 to 1.028408; 95 %, t interval; 4 queries)
        >>> result.interval(0.9, seed=0).low < result.value < result.interval(0.9, seed=0).high
        True
        """
        from ndcg_ml._stats.intervals import intervals

        values = self._as_dict(self.value)
        by_k: Interval | dict[int | None, Interval] = self._shaped(
            intervals(self._totals, self.flavor, values, confidence, method, n_resamples, seed, self._clusters())
        )
        return by_k

    def _clusters(self) -> NDArray[np.int64] | None:
        """The cluster of each query as a number; None if queries are independent."""
        if self.cluster is None:
            return None
        from ndcg_ml._stats.clusters import numbered

        return numbered(self.cluster.tolist())

    @property
    def standard_error(self) -> V:
        """The standard error of the value over the queries; see ``interval``, whose errors it raises."""
        from ndcg_ml._stats.intervals import standard_errors

        by_k: V = self._shaped(standard_errors(self._totals, self.flavor, self._clusters()))
        return by_k

    @property
    def std(self) -> V:
        """The standard deviation of the queries' NDCG, with n - 1, weighted as the mean is.

        Without weights it is the standard error times the root of the number of queries that count. Raises the errors
        of ``interval``.
        """
        from ndcg_ml._stats.means import means_of

        by_k: V = self._shaped(
            {
                k: deviation
                for ks, means in means_of(self._totals, self.flavor)
                for k, deviation in zip(ks, means.std().tolist(), strict=True)
            }
        )
        return by_k

    def save(self, path: str | os.PathLike[str], *, qrels: str | os.PathLike[str] | None = None) -> None:
        """Write the evaluation to a file, as a baseline that later ones are compared with: see ``load``.

        The file is JSON that people can read, with one line per query: flavor, cut-offs, ids, values, counts, judged
        fractions, a digest of each query's labels and of what was excluded, so that changes of them are seen; the
        versions that computed it, and a digest of all that. Clusters are saved, slices are not.

        Parameters
        ----------
        path : path
            The file, which is replaced.
        qrels : path, optional
            The file of the judgements. If it is below the folder of the saved file, its place there is kept, and
            ``ndcg-ml gate`` reads it if it is given none.

        Raises
        ------
        TypeError
            Query ids or clusters are neither text nor integers.
        ValueError
            The flavor has a callable gain or discount, or the arrays of labels or scores have
            been changed since they were evaluated.
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
        from ndcg_ml._baseline import saved  # it imports this module

        saved.write(self, path, qrels)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Evaluation[Any]:
        """The evaluation that ``save`` wrote, for ``compare``, ``interval`` and all else that takes one.

        Parameters
        ----------
        path : path

        Returns
        -------
        Evaluation
            A ``RunEvaluation`` if one was saved.

        Raises
        ------
        DataFileError
            The file is not one that ``save`` of this version wrote: it was edited or damaged, or is of another format.
            It is a ValueError that names the file.
        OSError
            The file cannot be read.
        """
        from ndcg_ml._baseline import saved

        return saved.read(path)[0]

    # fmt: off
    @overload
    def range(self: Evaluation[float], max_grade: float | None = ...) -> Range: ...
    @overload
    def range(self: Evaluation[dict[int | None, float]], max_grade: float | None = ...) -> dict[int | None, Range]: ...
    # fmt: on
    def range(self, max_grade: float | None = None) -> Range | dict[int | None, Range]:
        """Return the smallest and largest value over all ways to grade the unjudged documents.

        The range is exact: its ends are reached by some grades and exceeded by none. It covers the listed documents
        without a label, retrieved or not (NaN; in a run, retrieved documents that the qrels lack).

        Parameters
        ----------
        max_grade : float, optional
            The top of the grade scale: unjudged documents may have any of the grades 0, 1, ..., `max_grade`. Default:
            the flavor's own ``max_grade``; without one, grade 0 and the grades seen in the labels (those >= 0,
            unless ``negative="allow"``).

        Returns
        -------
        Range, or dict of Range by cut-off if there are several
            With ``.low``, ``.high``, ``.value``, ``.width``, ``.n_unjudged``, ``.grades``.

        Raises
        ------
        RangeError
            A ValueError that says why the range is not known: ``ties`` "best" or "worst"; ``ideal`` "local", "max" or
            "given"; a ``recall_depth``; ``aggregate="micro"``; documents that a query lists twice; ``empty=nan`` if a
            query may turn out empty; gains below 0; labels that are not grades; an evaluation that was unpickled, or
            whose arrays were changed since.
        TypeError
            `max_grade` is not a number.

        See Also
        --------
        ndcg_ml.compare : the range of a difference, and which documents to label next.

        Notes
        -----
        Every completion judges every listed document, so that neither rule of ``unjudged`` applies to it; under
        ``unjudged="condense"``, which removes documents, the value itself may lie outside of the range. The method is
        in docs/unjudged.md.

        Examples
        --------
        >>> from ndcg_ml import evaluate_run
        >>> result = evaluate_run({"q": {"d1": 2, "d2": 0, "d3": 1}}, {"q": ["d1", "d4", "d3"]}, k=3)
        >>> print(result.range())
        0.950234 (0.950234 to 1.000000 over all grades 0, 1, 2 of 1 unjudged documents)
        """
        from ndcg_ml._unjudged.range import documents_at_hand, range_of_value

        scored, values = documents_at_hand(self._scored), self._as_dict(self.value)
        totals = self._totals
        by_k: Range | dict[int | None, Range] = self._shaped(
            {
                k: range_of_value(scored, self.flavor, k, values[k], max_grade, totals.dcg[:, at], totals.ideal[:, at])
                for at, k in enumerate(totals.ks)
            }
        )
        return by_k

    def _as_dict(self, what: Any) -> dict[int | None, Any]:
        """A value, a count or an interval as a dict by cut-off, for one cut-off as for several."""
        return what if isinstance(self.k, tuple) else {self.k: what}

    def _shaped(self, by_k: dict[int | None, Any]) -> Any:
        """In the form of the value: one entry, or a dict in the order of the cut-offs."""
        return {k: by_k[k] for k in self.k} if isinstance(self.k, tuple) else by_k[self.k]

    def to_frame(self) -> Any:
        """The table of queries as a data frame, one row per query.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            A frame of ``frame_library``. With several cut-offs, the columns of each are named like ``ndcg@10``.

        Raises
        ------
        ImportError
            The library is not installed.
        """
        columns: dict[str, NDArray[Any]] = {}
        for name in self.per_query:
            table = self.per_query[name]
            if table.ndim == 1:
                columns[name] = table
            else:
                assert isinstance(self.k, tuple)
                columns.update({f"{name}{at_cutoff(k)}": table[:, i] for i, k in enumerate(self.k)})
        return make_frame(self.frame_library, columns)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        command: str | None = None,
        top: int = 20,
    ) -> str | Path:
        """A report as one HTML page, without scripts, that loads nothing: to keep, to send, to print.

        It has the values with their intervals (the bootstrap has the seed 0, so that the same result gives the same
        page), a drawing, the slices of `by`, the queries that lose most, the definition in words, and the versions of
        Python and of the libraries.

        Parameters
        ----------
        path : path, default None
            The file to write, replacing any existing file; None writes none.
        title : str, default None
            The heading. None: the number of queries, and the cut-off.
        command : str, default None
            The call or command line that made the result, for the page to show.
        top : int, default 20
            Number of queries to list: those whose DCG is furthest below their ideal, at the first cut-off.

        Returns
        -------
        str or pathlib.Path
            The page; with `path`, which file was written.

        Raises
        ------
        ImportError
            Jinja2 or Matplotlib is not installed: ``pip install 'ndcg_ml[report]'``.
        TypeError, ValueError
            `top` is not as above. If the data have no interval, or nothing to draw, the page says so.
        OSError
            The file cannot be written. What was there before is still there.

        Examples
        --------
        >>> from ndcg_ml import evaluate
        >>> result = evaluate([[3, 0, 1], [0, 1, 0]], [[3, 2, 1], [3, 1, 2]], k=(1, 3))
        >>> written = result.to_html("report.html")  # doctest: +SKIP
        """
        from ndcg_ml._show import report

        return report.write_evaluation(self, path, title, command, top)

    def plot(self, ax: Axes | None = None) -> tuple[Figure, Axes]:
        """Draw the value at each cut-off with its 95 % t interval; at most 30 cut-offs, the first ones.

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
            `ax` is something else.
        ValueError
            No cut-off has a finite value.

        Examples
        --------
        >>> from ndcg_ml import evaluate
        >>> result = evaluate([[3, 0, 1], [0, 1, 0]], [[3, 2, 1], [3, 1, 2]], k=(1, 3))
        >>> fig, ax = result.plot()  # doctest: +SKIP
        >>> fig.savefig("values.png")  # doctest: +SKIP
        """
        from ndcg_ml._show import plot

        return plot.values(self, ax)

    def _repr_html_(self) -> str:
        extra = [Column(name, f"{{{name}:.6f}}") for name in self._extra_columns()]
        counts = [Column("queries", str(self.n_queries)), Column("empty", "{n_empty}")]
        columns = [Column("", "NDCG{k:@}", "l"), Column("value", "{ndcg:.6f}"), *extra, *counts]
        return block(Record(columns, self._rows()).html(), *map(paragraph, self._notes()))

    def _unanswered(self) -> NDArray[np.bool_]:
        """Queries with an empty ranking."""
        nothing: NDArray[np.bool_] = self.per_query.n_docs == 0
        return nothing

    def metrics(self) -> dict[str, float]:
        """Return the values under names that experiment trackers accept: ``ndcg_at_10``, or ``ndcg`` without a cut-off.

        Returns
        -------
        dict of float by name
            What ``mlflow.log_metrics``, ``wandb.log`` and ``LightningModule.log_dict`` take.

        Examples
        --------
        >>> from ndcg_ml import evaluate
        >>> evaluate([[1, 0]], [[0.2, 0.9]], k=[1, 2]).metrics()
        {'ndcg_at_1': 0.0, 'ndcg_at_2': 0.6309297535714575}
        """
        return {metric_key(k): value for k, value in self._as_dict(self.value).items()}

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """Plain numbers and text, for JSON: flavors as text, None in place of nan and infinity.

        Parameters
        ----------
        per_query : bool, default False
            Whether to have the table of queries too.

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
        return document | {"per_query": self._queries() if per_query else None}

    def _rows(self) -> list[dict[str, Any]]:
        """The value at each cut-off, and what belongs to it."""
        empties, extra = self._as_dict(self.n_empty), self._extra_columns()
        return [
            {
                "k": k,
                "flavor": str(self.flavor.replace(k=k)),
                "ndcg": value,
                "n_empty": empties[k],
                **{name: column[k] for name, column in extra.items()},
            }
            for k, value in self._as_dict(self.value).items()
        ]

    def _queries(self) -> list[dict[str, Any]]:
        """The table of queries, one dict per query."""
        table, ks = self.per_query, self._totals.ks
        by_k = {
            name: table[name].reshape(len(table), len(ks)).tolist()
            for name in ("ndcg", "dcg", "idcg", "empty", *self._extra_columns())
        }
        counts = {name: table[name].tolist() for name in ("n_docs", "n_judged", "n_relevant", "tied")}
        return [
            {
                "qid": qid,
                **{name: column[i] for name, column in counts.items()},
                "values": [
                    {
                        "k": k,
                        **{name: plain(column[i][at]) for name, column in by_k.items()},
                    }
                    for at, k in enumerate(ks)
                ],
            }
            for i, qid in enumerate(plain_ids(table.qid).tolist())
        ]

    def _extra_columns(self) -> dict[str, dict[int | None, float]]:
        """Further values at each cut-off, by their names in tables and in ``per_query``."""
        return {}

    def _notes(self) -> list[str]:
        """Notes below the values."""
        rule = {"skip": "left out of the mean", "raise": "refused"}.get(
            str(self.flavor.empty), f"scored {self.flavor.empty:g}" if isinstance(self.flavor.empty, float) else ""
        )
        n_empty = sorted(set(self.n_empty.values() if isinstance(self.n_empty, dict) else [self.n_empty]))
        shown = "-".join(str(n) for n in dict.fromkeys((n_empty[0], n_empty[-1])))
        return [
            f"{self.n_queries} queries, {shown} empty ({rule}); {int(self.per_query.n_docs.sum())} documents",
            str(self.flavor),
        ]

    def __str__(self) -> str:
        values = self._as_dict(self.value).items()
        return "\n".join([*(f"ndcg{at_cutoff(k)} = {value:.6f}" for k, value in values), *self._notes()])


def evaluation_from_totals(
    totals: Totals,
    flavor: Flavor,
    several: bool,
    *,
    n_docs: NDArray[np.int64],
    n_judged: NDArray[np.int64],
    n_relevant: NDArray[np.int64],
    tied: NDArray[np.int64],
) -> Evaluation[Any]:
    """Return the evaluation of these totals; with `several`, it has dicts by cut-off and tables with columns."""
    ndcg, empty = totals.ndcg(flavor)
    dcg, ideal = totals.dcg.copy(), totals.ideal.copy()  # the caller may change the result
    n_queries = len(totals.ids)

    def shaped(values: list[Any]) -> Any:
        return dict(zip(totals.ks, values, strict=True)) if several else values[0]

    def columns(table: NDArray[Any]) -> NDArray[Any]:
        return table if several else table[:, 0]

    return Evaluation(
        value=shaped(totals.values(flavor)),
        flavor=flavor if several else flavor.replace(k=totals.ks[0]),
        k=totals.ks if several else totals.ks[0],
        n_queries=n_queries,
        n_empty=shaped(empty.sum(axis=0).tolist()),
        per_query=PerQuery(
            qid=totals.ids,
            ndcg=columns(ndcg),
            dcg=columns(dcg),
            idcg=columns(ideal),
            empty=columns(empty),
            n_docs=n_docs,
            n_judged=n_judged,
            n_relevant=n_relevant,
            tied=tied,
            weight=np.ones(n_queries) if totals.weight is None else totals.weight,
        ),
        _totals=totals,
    )
