"""Match the systems of a comparison by query, and refuse those that cannot be compared."""

from __future__ import annotations

import string
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.frames import align_by_id
from ndcg_ml._core.layout import BoolArray, FloatArray, as_objects, keys_of
from ndcg_ml._core.queries import read_weights
from ndcg_ml._core.query_groups import group_by_ids, unique_ids
from ndcg_ml._plain.checks import one_of
from ndcg_ml._plain.messages import brief, visible
from ndcg_ml._statistics.intervals import FEWEST_FOR_INTERVAL
from ndcg_ml._unjudged.judge_next import System, UnjudgedDocuments
from ndcg_ml.results.comparison import UNEVEN, favoured
from ndcg_ml.results.evaluation import Evaluation


@dataclass(frozen=True, slots=True, eq=False)
class Source(System):
    """The values of a system, or of one of its runs, by query, with its evaluation; None for precomputed values."""

    evaluation: Evaluation[Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """The compared queries and their values.

    Attributes
    ----------
    sources : sequence of Source
        One per run; the runs of a system follow each other.
    qid : ndarray
        Ids, in the order of the first system.
    values, share : ndarray of float64, shape (n_queries, n_sources)
    rows : ndarray of int, shape (n_queries, n_sources)
        Position of each query in each source.
    left_out : ndarray
        Ids of the queries left out.
    """

    sources: Sequence[Source]
    qid: NDArray[Any]
    values: FloatArray
    share: FloatArray
    rows: NDArray[np.int64]
    left_out: NDArray[Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the systems."""
        return tuple(dict.fromkeys(source.name for source in self.sources))

    def select(self, names: Sequence[Any]) -> list[Any]:
        """Return the clusters or slice names of the compared queries, from those of all queries of the first system."""
        return [names[row] for row in self.rows[:, 0].tolist()]

    def columns_of_systems(self) -> list[list[int]]:
        """Return the columns of the runs of each system."""
        return [[at for at, source in enumerate(self.sources) if source.name == name] for name in self.names]


# -- systems --------------------------------------------------------------------------------------------------------


def named_systems(systems: Sequence[Any], names: Sequence[str] | None) -> dict[str, list[Any]]:
    """Return the runs of each system by name: one, or several if a mapping has a list of them.

    Raises
    ------
    TypeError, ValueError
        There are fewer than two systems, or `names` are not strings, repeat, or differ in number from the systems.
    """
    if len(systems) == 1 and isinstance(systems[0], Mapping):
        if names is not None:
            raise TypeError("names must be left out if the systems are a mapping, because its keys are the names.")
        (named,) = systems
        if not all(isinstance(name, str) for name in named):
            other = next(name for name in named if not isinstance(name, str))
            raise TypeError(f"system names must be strings; got {brief(other)}.")
        runs = {name: _runs(value) for name, value in named.items()}
    else:
        runs = {name: [value] for name, value in zip(_names(systems, names), systems, strict=True)}
    if len(runs) < 2:
        hint = " Pass compare(*systems)." if isinstance(systems[0], list | tuple) else ""
        raise ValueError(f"compare needs at least two systems; got {len(runs)}.{hint}")
    several = {name: len(of_one) for name, of_one in runs.items()}
    if max(several.values()) > 1 and min(several.values()) < 2:
        single = next(name for name, n in several.items() if n < 2)
        raise ValueError(
            f"each system must have two or more runs if one has several, because one run does not show how much "
            f"training varies; {single!r} has {several[single]}. Train it again with another seed."
        )
    return runs


def _runs(value: Any) -> list[Any]:
    """Return the runs of a system, given as one run or as a list or tuple of runs."""
    if not isinstance(value, list | tuple) or not value:
        return [value]
    several = any(isinstance(run, Evaluation) or np.ndim(run) == 1 for run in value)
    return list(value) if several else [value]


def _names(systems: Sequence[Any], names: Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        letters = string.ascii_lowercase
        return tuple(letters[i] if i < len(letters) else f"s{i + 1}" for i in range(len(systems)))
    if isinstance(names, str) or not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must be a sequence of strings, one per system; got {brief(names)}.")
    if len(names) != len(systems) or len(set(names)) != len(names):
        raise ValueError(f"names must be {len(systems)} different names, one per system; got {brief(list(names))}.")
    return tuple(names)


def sources_of_evaluations(named: Mapping[str, list[Any]], k: int | None | EllipsisType) -> list[Source]:
    """Return the sources of evaluations at one cut-off, under one flavor.

    Raises
    ------
    TypeError, ValueError
        A system is no evaluation or answers no query, the cut-off is unknown, or the flavors differ; only their
        cut-offs may.
    """
    runs = [(name, run) for name, of_one in named.items() for run in of_one]
    for name, run in runs:
        if not isinstance(run, Evaluation):
            raise TypeError(
                f"systems must be evaluations; got {type(run).__name__}. Use compare(evaluate(y, a, qid=q), "
                "evaluate(y, b, qid=q)), evaluate_run(qrels, path) for each file, or compare_values for precomputed "
                "values."
            )
        if run._unanswered().all():  # nearly always for another reason than its quality
            raise ValueError(
                f"every system must return documents for at least one query; {visible(name)} returns none for "
                f"{run.n_queries}. Find out why, and evaluate it again."
            )
    known = [run._totals.ks for _, run in runs]
    if k is ... and any(len(ks) > 1 for ks in known):
        raise ValueError(f"k must be the cut-off to compare, because the evaluations have several: {brief(known[0])}.")
    cut_off = known[0][0] if isinstance(k, EllipsisType) else k
    for ks in known:
        if cut_off not in ks:
            raise ValueError(
                f"the evaluations must have the cut-off {cut_off}; got one with {brief(ks if len(ks) > 1 else ks[0])}."
            )
    # With different cut-offs or flavors, the difference would be one of definitions.
    (first, first_run), *others = runs
    flavor = first_run.flavor.replace(k=None)
    for name, run in others:
        other = run.flavor.replace(k=None)
        if other != flavor:
            raise ValueError(
                f"the systems must be evaluated under one flavor; {first} is {flavor}, {name} is {other}. Evaluate "
                "both under one flavor, or use explain_difference to compare flavors on one system."
            )
    sources = []
    for name, run in runs:
        ndcg, share, _ = run._totals.shares(run.flavor, cut_off)
        sources.append(
            Source(
                name,
                run.per_query.qid,
                ndcg,
                share,
                run.per_query.weight,
                cut_off,
                run.flavor,
                totals=run._totals,
                scored=run._scored,
                judged=run.per_query.judged,
                evaluation=run,
            )
        )
    return sources


def sources_of_values(named: Mapping[str, list[Any]], qid: Any, query_weight: Any, measure: object) -> list[Source]:
    """Return the sources of a precomputed measure, which has one value per query.

    Raises
    ------
    TypeError, ValueError
        The measure has no name, ids are missing or repeat, or values and ids differ in length.
    """
    if not isinstance(measure, str) or not measure.strip():
        raise TypeError(f"measure must be a string that names the measure, such as 'recall@10'; got {brief(measure)}.")
    ids = unique_ids(qid)
    weight = np.ones(ids.size)
    if query_weight is not None:
        weight = read_weights(query_weight, group_by_ids(ids, ids.size))
    sources = []
    for name, runs in named.items():
        for run in runs:
            numbers = np.asarray(align_by_id(run, name, ids), dtype=np.float64)
            if numbers.shape != ids.shape:
                raise ValueError(
                    f"{name} must have one number per query, {ids.size}, in the order of qid; got shape "
                    f"{numbers.shape}."
                )
            if np.isinf(numbers).any():
                raise ValueError(f"{name} must be finite, or nan where a query has no value; got infinity.")
            sources.append(Source(name, ids, numbers, weight / weight.sum(), weight))
    return sources


def clusters_of(sources: Sequence[Source]) -> list[Any] | None:
    """Return the clusters of the queries of the first system, which must be the same in all; None if it has none."""
    mine, *others = (
        dict(zip(one.qid.tolist(), one.evaluation.cluster.tolist(), strict=True))
        if one.evaluation is not None and one.evaluation.cluster is not None
        else {}
        for one in sources
    )
    for source, theirs in zip(sources[1:], others, strict=True):
        if bool(mine) != bool(theirs) or any(mine.get(query, label) != label for query, label in theirs.items()):
            raise ValueError(
                f"all systems must have the same clusters of queries; those of {sources[0].name} and {source.name} "
                "differ. Pass cluster= to compare, or the same cluster= to all evaluations."
            )
    return list(mine.values()) or None


# -- queries --------------------------------------------------------------------------------------------------------


def matched(sources: Sequence[Source], missing: Literal["raise", "drop"]) -> Matched:
    """Return the queries that count in every system, matched by id, in the order of the first.

    Raises
    ------
    ValueError
        A query has no value in some system, under ``missing="raise"``; the systems differ in weights or judgements;
        or fewer than two queries are left.
    """
    one_of(missing, "missing", ("raise", "drop"))
    ids, rows = rows_of_ids([source.qid for source in sources])
    absent = rows < 0
    share = np.zeros(rows.shape)
    values = np.full(rows.shape, np.nan)
    weight = np.full(rows.shape, np.nan)
    for i, source in enumerate(sources):
        present, row = ~absent[:, i], rows[~absent[:, i], i]
        values[present, i], share[present, i] = source.values[row], source.share[row]
        weight[present, i] = source.weight[row]
    counts_here = share > 0
    unknown = absent | (counts_here & np.isnan(values)) | (~counts_here & counts_here.any(axis=1, keepdims=True))
    known: BoolArray = ~unknown.any(axis=1)
    if missing == "raise":
        _refuse_changes(
            [(f"queries that are not in {source.name}", absent[:, i]) for i, source in enumerate(sources)],
            ids,
            "Evaluate the same queries, or pass missing='drop' to compare the others.",
        )
        _refuse_changes(
            [(f"queries without a value in {source.name}", unknown[:, i]) for i, source in enumerate(sources)],
            ids,
            "Pass missing='drop' to compare the others."
            if sources[0].evaluation is None
            else "They are empty there, and the flavor skips them or scores them nan: choose empty=0, ideal='global', "
            "or pass missing='drop' to compare the others.",
        )
    equal = np.abs(weight - weight[:, :1]) <= 1e-9 * weight[:, :1]
    _refuse_changes(
        [("queries whose weights differ", known & ~equal.all(axis=1))],
        ids,
        "Pass the same query_weight to all evaluations.",
    )
    counts = known & counts_here[:, 0]
    ids, rows, left_out = ids[counts], rows[counts], ids[~counts]
    _refuse_changes(
        [
            (f"queries whose {what} differ between {sources[0].name} and {source.name}", differs)
            for i, source in enumerate(sources[1:], start=1)
            for what, differs in _differing_judgements(sources[0], source, rows[:, 0], rows[:, i])
        ],
        ids,
        "These do not depend on the ranking. Evaluate both with the same labels: one qrels of evaluate_run, or y_true "
        "of the same documents."
        + " Their ids are positions (0, 1, ...): pass qid= if the queries are not the same."
        * np.array_equal(ids, np.arange(ids.size)),
    )
    if ids.size < FEWEST_FOR_INTERVAL:
        raise ValueError(
            f"at least two queries must have a value in every system; got {ids.size} of {counts.size}. Evaluate more "
            "queries."
        )
    return Matched(sources, ids, values[counts], share[counts], rows, left_out)


def describe_changes(changes: Sequence[tuple[str, BoolArray]], ids: NDArray[Any]) -> list[str]:
    """Return each kind of change that affects queries, with their ids. ``compare`` refuses them, a gate may drop."""
    return [f"{words}: {list_ids(keys_of(ids[which]))}" for words, which in changes if which.any()]


def _refuse_changes(changes: Sequence[tuple[str, BoolArray]], ids: NDArray[Any], advice: str) -> None:
    found = describe_changes(changes, ids)
    if found:
        raise ValueError(
            "all systems must be evaluated on the same queries, with the same weights and judgements; got "
            f"{'; '.join(found)}. {advice}"
        )


def list_ids(ids: Sequence[Any]) -> str:
    """Return the first five ids and the number of all."""
    return ", ".join(brief(qid) for qid in ids[:5]) + ", ..." * (len(ids) > 5) + f" ({len(ids)})"


def _differing_judgements(
    first: Source, source: Source, mine: NDArray[np.int64], theirs: NDArray[np.int64]
) -> Iterator[tuple[str, BoolArray]]:
    """Yield each property that judgements determine, with the queries in which it differs.

    A ``global`` ideal does not depend on the ranking. Nor does any ideal of the judged documents if each system ranked
    all of them. So if an ideal DCG or a number of documents differs, the labels differ.
    """
    if first.evaluation is None or source.evaluation is None:
        return
    sides = first.evaluation, source.evaluation
    one, other, flavor = sides[0].per_query, sides[1].per_query, sides[0].flavor
    # A run keeps a digest of each query's judgements, which differs if any grade does.
    digests = [side._digests if side.queries else None for side in sides]
    if digests[0] is not None and digests[1] is not None:
        yield "judged documents or grades", digests[0][mine] != digests[1][theirs]
    if flavor.ideal_depth == "retrieved" or flavor.duplicates == "count":  # the ideal depends on the run
        return
    whole = ((one.n_docs == one.n_judged)[mine] & (other.n_docs == other.n_judged)[theirs]).all()
    if flavor.ideal == "global" or (flavor.ideal in ("recall", "max") and whole):
        ideals = _at_cutoff(first, "idcg")[mine], _at_cutoff(source, "idcg")[theirs]
        yield "ideal DCGs", ~np.isclose(*ideals, rtol=1e-9, atol=0)
        if whole:
            yield "numbers of documents", one.n_docs[mine] != other.n_docs[theirs]
        yield "numbers of relevant documents", one.n_relevant[mine] != other.n_relevant[theirs]


def _at_cutoff(source: Source, name: str) -> FloatArray:
    """Return a column of the table of queries, at the cut-off that is compared."""
    assert source.evaluation is not None
    column = source.evaluation.per_query[name]
    return column if column.ndim == 1 else column[:, source.evaluation._totals.ks.index(source.k)]


def rows_of_ids(sides: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return all ids, those of the first side first, and the row of each id in each side, or -1."""
    first = sides[0]
    if all(ids.dtype == first.dtype and np.array_equal(ids, first) for ids in sides):
        return first, np.tile(np.arange(first.size)[:, None], (1, len(sides)))
    places = [{qid: row for row, qid in enumerate(keys_of(ids))} for ids in sides]
    union = list(dict.fromkeys(qid for row_of in places for qid in row_of))
    return as_objects(union), np.array([[row_of.get(qid, -1) for row_of in places] for qid in union], dtype=np.int64)


# -- judged@k, the share of judged documents above the cut-off --------------------------------------------------------

Unjudged: TypeAlias = Literal["warn", "note", "refuse", "accept"]


def judged_fractions(table: Matched) -> tuple[float, ...] | None:
    """Return the mean judged@k of each system; None if it is unknown for one of them."""
    fractions = []
    for at, source in enumerate(table.sources):
        if source.evaluation is None or source.evaluation.queries in (None, "users"):
            return None
        of_query = _at_cutoff(source, "judged")[table.rows[:, at]]
        known = ~np.isnan(of_query)  # nan if nothing was retrieved
        fractions.append(float(of_query[known].mean()) if known.any() else float("nan"))
    return tuple(float(np.array(fractions)[at].mean()) for at in table.columns_of_systems())


def check_unjudged(
    names: Sequence[str], judged: Sequence[float], values: Sequence[float], unjudged: Unjudged, stacklevel: int
) -> None:
    """Warn about a differing judged@k or refuse it, but not under "note" and "accept".

    Raises
    ------
    ValueError
        The judged@k differ, under "refuse".
    """
    words = favoured(names, judged, values)
    if words is None:
        return
    if unjudged == "refuse":
        raise ValueError(
            f"unjudged='refuse' requires judged@k that differ by at most {UNEVEN:g}, but {words}. Judge more "
            "documents, pass unjudged='warn', or pass 'accept' and evaluate under a flavor with unjudged='condense'."
        )
    if unjudged == "warn":
        warnings.warn(f"{words}. Pass unjudged='accept' to accept this.", UserWarning, stacklevel)


# -- unjudged documents of the systems --------------------------------------------------------------------------------


def unjudged_documents(table: Matched) -> UnjudgedDocuments | None:
    """Return the documents of the systems; None for precomputed values or several runs per system."""
    known = len(table.sources) == len(table.names) and all(source.evaluation for source in table.sources)
    return UnjudgedDocuments(table.sources, table.rows, table.left_out) if known else None
