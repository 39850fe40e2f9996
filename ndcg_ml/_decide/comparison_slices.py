"""Comparisons within slices of queries, corrected for the number of slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import FloatArray
from ndcg_ml._core.table import Column, Record
from ndcg_ml._decide.bounded import FEWEST_QUERIES
from ndcg_ml._decide.clusters import numbered
from ndcg_ml._decide.differences import (
    DIFFERENCE,
    INTERVAL,
    P_ADJUSTED,
    SYSTEMS,
    VERDICT,
    Difference,
    Pairs,
    Settings,
    differences,
)
from ndcg_ml._decide.means import Means
from ndcg_ml._decide.slices import BySlice, OfLabel


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedSlice(OfLabel):
    """The comparison within the queries that have one label.

    Attributes
    ----------
    column : str
        Name of the column of labels.
    label : object
    n_queries : int
    values : tuple of float
        The value of each system over these queries.
    pairs : tuple of Difference
        The differences, also corrected for the number of slices. Empty if there are fewer than two queries or six
        clusters.
    """

    n_queries: int
    values: tuple[float, ...]
    pairs: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparedSlices(BySlice[ComparedSlice]):
    """The comparisons within the slices of all columns, in the order of their labels.

    Attributes
    ----------
    entries : tuple of ComparedSlice
    """

    def caption(self) -> str:
        """Describe how the p-values and intervals were corrected."""
        n = sum(bool(part.pairs) for part in self)
        return f"p and intervals are corrected for {n} slices (Bonferroni), and within each for its pairs"

    def _record(self) -> Record:
        """Return one row per slice and pair, or one row without a test for a slice that is too small."""
        rows: list[dict[str, Any]] = []
        for part in self:
            head = {"column": part.column, "label": part.label, "n_queries": part.n_queries}
            rows += [{**head, **pair._row()} for pair in part.pairs] or [{**head, "verdict": "too few"}]
        columns = [Column("slice", "{column}={label}", "l"), Column("queries", "{n_queries}")]
        columns += [*SYSTEMS, DIFFERENCE, INTERVAL, P_ADJUSTED, VERDICT]
        return Record(columns, rows, caption=self.caption())


def compared_by(
    columns: Mapping[str, Sequence[Any]],
    names: Sequence[str],
    means: Means,
    pairs: Pairs,
    settings: Settings,
    rng: np.random.Generator,
    *,
    clusters: NDArray[np.int64] | None = None,
    runs: Sequence[tuple[FloatArray, FloatArray]] | None = None,
) -> ComparedSlices:
    """Return the differences within each slice, corrected for the number of slices (Bonferroni).

    Parameters
    ----------
    columns : mapping of str to sequence
        The label of every query, by column.
    names, means, pairs, settings, rng, clusters
        As for ``differences``.
    runs : sequence of (ndarray, ndarray), optional
        For each system, the values of its runs, shape (n_queries, n_runs), and the weights of queries.
    """
    parts = []
    for column, labels in columns.items():
        codes = numbered(labels)
        first = {code: at for at, code in reversed(list(enumerate(codes.tolist())))}
        for code, at in sorted(first.items(), key=lambda item: _order(labels[item[1]])):
            parts.append((column, labels[at], np.flatnonzero(codes == code)))

    def testable(rows: NDArray[np.intp]) -> bool:
        return rows.size > 1 and (clusters is None or np.unique(clusters[rows]).size >= FEWEST_QUERIES)

    # Slices that are too small for a test do not count in the correction.
    shared = replace(settings, n_families=max(1, sum(testable(rows) for *_, rows in parts)))
    slices = []
    for column, label, rows in parts:
        inside = Means.from_weights(means.values[rows], means.weight[rows])
        of_runs = None if runs is None else [np.average(v[rows], axis=0, weights=w[rows]) for v, w in runs]
        tested = (
            differences(
                names, inside, pairs, shared, rng, clusters=None if clusters is None else clusters[rows], runs=of_runs
            )
            if testable(rows)
            else []
        )
        slices.append(
            ComparedSlice(
                column=column,
                label=label,
                n_queries=rows.size,
                values=tuple(inside.mean().tolist()),
                pairs=tuple(tested),
            )
        )
    return ComparedSlices(tuple(slices))


def _order(label: Any) -> tuple[str, Any]:
    """Sort numbers by size, and all other labels as text after them."""
    is_number = isinstance(label, int | float) and not isinstance(label, bool)
    return ("", label) if is_number else ("text", str(label))
