"""A ranking problem: documents with features and grades, query after query, in three parts; and one from files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml.readers import DataFileError, LetorRows, letor_rows

_FEWEST_QUERIES = 8  # enough to hold some out and cut the others into four folds
_HELD_OUT = 0.2
_HIGHEST_GRADE = 30  # the default table of gains of LightGBM's lambdarank ends there
_MOST_CELLS = 2**29  # 4 GiB of float64


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a ranking problem. The rows of each query are contiguous.

    Attributes
    ----------
    features : ndarray of float64, shape (n_rows, n_features)
    labels : ndarray of int64, shape (n_rows,)
        Grades, 0 or above.
    sizes : ndarray of int64, shape (n_queries,)
        Number of rows of each query, none of them 0.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @cached_property
    def qid(self) -> NDArray[np.int64]:
        """The query of each row: 0, 1, ..."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    @cached_property
    def doc_id(self) -> NDArray[np.str_]:
        """The number of each row, zero-padded so that ids sort like rows."""
        digits = len(str(self.labels.size))
        return np.array([f"{row:0{digits}d}" for row in range(self.labels.size)])

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """Shape (n_queries, longest): True where a query has a document."""
        return np.arange(int(self.sizes.max())) < self.sizes[:, None]

    def padded(self, values: NDArray[Any]) -> NDArray[Any]:
        """Per-row values as one row per query, with 0 after a query's last document."""
        out = np.zeros((*self.mask.shape, *values.shape[1:]), dtype=values.dtype)
        out[self.mask] = values
        return out

    def of_queries(self, queries: NDArray[np.int64]) -> Split:
        """These queries only, in this order."""
        starts = np.cumsum(self.sizes) - self.sizes
        rows = np.concatenate([np.arange(starts[q], starts[q] + self.sizes[q]) for q in queries])
        return Split(self.features[rows], self.labels[rows], self.sizes[queries])


@dataclass(frozen=True, eq=False)
class Problem:
    """Train, validation and test part of a ranking problem.

    Attributes
    ----------
    name : str
        What the data is, in a few words.
    train, valid, test : Split
    notes : tuple of str
        What the user should know about how the parts were made.
    """

    name: str
    train: Split
    valid: Split
    test: Split
    notes: tuple[str, ...] = ()


def letor_problem(train: Path, test: Path, valid: Path | None = None, *, seed: int = 0) -> Problem:
    """Read a ranking problem from files.

    Each line is ``grade qid:ID index:value ...``, the indices ascending. Where no line has a ``qid:``, the sizes of the
    queries are read from the file of that name with ``.query`` appended, one integer per line (LightGBM's convention).
    Rows of one query are brought together, in the order of the file. All parts get as many features as the widest has.

    Parameters
    ----------
    train, test : Path
    valid : Path, optional
        Without it, a fifth of the training queries is held out, whole.
    seed : int, default 0
        Draws the queries that are held out.

    Returns
    -------
    Problem

    Raises
    ------
    DataFileError
        A file is not of that form, has no rows, has labels that LightGBM's lambdarank rejects (not integers from 0 to
        30), or has no relevant document; query sizes do not sum to the rows; there are too few queries.
    """
    paths = {"train": train, "test": test} if valid is None else {"train": train, "valid": valid, "test": test}
    read = {name: _read(path) for name, path in paths.items()}
    widths = {name: int(rows.indices.max(initial=-1)) + 1 for name, rows in read.items()}
    widest = max(widths, key=widths.__getitem__)
    for name, rows in read.items():
        if rows.labels.size * widths[widest] > _MOST_CELLS:
            raise DataFileError(
                f"{paths[widest]}: with its {widths[widest]} features, the {rows.labels.size} rows of "
                f"{paths[name].name} are more than this command holds in memory. Use a sample of the queries, or "
                "smaller feature indices."
            )
    # Indices begin at 1 in LETOR files and at 0 in some others; an unused index 0 is not a feature.
    first = 0 if any((rows.indices == 0).any() for rows in read.values()) else 1
    if widths[widest] <= first:
        raise DataFileError(f"{train}: no line has a feature (index:value).")
    parts = {name: _dense(rows, first, widths[widest]) for name, rows in read.items()}
    if parts["train"].sizes.size < _FEWEST_QUERIES:
        raise DataFileError(f"{train}: at least {_FEWEST_QUERIES} queries are needed; got {parts['train'].sizes.size}.")
    notes: tuple[str, ...] = ()
    if valid is None:
        paths["valid"] = train
        parts["train"], parts["valid"] = _hold_out(parts["train"], seed)
        n_held_out = parts["valid"].sizes.size
        notes = (f"no --valid file: {n_held_out} whole queries of {train.name} are held out for validation",)
    for name, part in parts.items():
        if not part.labels.any():
            raise DataFileError(
                f"{paths[name]}: no document of the {name} part has a grade above 0, so every ranking is as good."
            )
    return Problem(train.name, parts["train"], parts["valid"], parts["test"], notes)


def _read(path: Path) -> LetorRows:
    rows = letor_rows(path, features=True)
    wrong = ~((rows.labels >= 0) & (rows.labels <= _HIGHEST_GRADE) & (rows.labels == np.floor(rows.labels)))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataFileError(
            f"{path}: grades must be integers from 0 to {_HIGHEST_GRADE}, as LightGBM's lambdarank needs them; "
            f"got {rows.labels[row]:g} in row {row + 1} (and {int(wrong.sum()) - 1} more such rows)."
        )
    return rows


def _dense(rows: LetorRows, first: int, width: int) -> Split:
    """The rows of each query together, queries in the order in which they first appear."""
    numbers: dict[str, int] = {}
    queries = np.array([numbers.setdefault(query, len(numbers)) for query in rows.qid.tolist()])
    order = np.argsort(queries, kind="stable")
    features = np.zeros((rows.labels.size, width))
    features[np.repeat(np.arange(rows.labels.size), rows.lengths), rows.indices] = rows.values
    return Split(features[order, first:], rows.labels[order].astype(np.int64), np.bincount(queries))


def _hold_out(train: Split, seed: int) -> tuple[Split, Split]:
    """The training queries without, and only, those held out; both keep the order of the file."""
    n_queries = train.sizes.size
    held_out = np.zeros(n_queries, dtype=bool)
    held_out[np.random.default_rng(seed).permutation(n_queries)[: max(2, round(_HELD_OUT * n_queries))]] = True
    return train.of_queries(np.flatnonzero(~held_out)), train.of_queries(np.flatnonzero(held_out))
