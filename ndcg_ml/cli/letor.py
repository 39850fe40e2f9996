"""Ranking problems from files: LETOR/SVMlight with ``qid:``, or with LightGBM's side files of query sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._shown import shown_text
from ndcg_ml.cli.problem import Problem, Split
from ndcg_ml.readers import DataFileError, numbered_lines, sizes_beside

__all__ = ["DataFileError", "letor_problem"]

FEWEST_QUERIES = 8
"""Fewest training queries of which some can be held out and the others cut into four folds."""

_HELD_OUT = 0.2
_HIGHEST_GRADE = 30  # of LightGBM's lambdarank, whose default table of gains ends there
_MOST_CELLS = 2**29  # 4 GiB of float64


def letor_problem(train: Path, test: Path, valid: Path | None = None, *, seed: int = 0) -> Problem:
    """Read a ranking problem from files.

    Each line is ``grade qid:ID index:value ...``, the indices ascending. Where no line has a ``qid:``, the sizes of the
    queries are read from the file of that name with ``.query`` appended, one integer a line (LightGBM's convention).
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
        A file is not of that form, has no rows, has labels that LightGBM's lambdarank refuses (not integers from 0 to
        30), values that are not finite, or no relevant document; query sizes do not sum to the rows; too few queries.
    """
    paths = {"train": train, "test": test} if valid is None else {"train": train, "valid": valid, "test": test}
    read = {name: _read(path) for name, path in paths.items()}
    widest = max(read.values(), key=lambda rows: rows.features.shape[1])
    width = widest.features.shape[1]
    for rows in read.values():
        if rows.labels.size * width > _MOST_CELLS:
            raise DataFileError(
                f"{widest.path}: with its {width} features, the {rows.labels.size} rows of {rows.path.name} are more "
                "than this command holds in memory. Use a sample of the queries, or smaller feature indices."
            )
    # Indices begin at 1 in LETOR files and at 0 in some others; an unused index 0 is not a feature.
    first = 0 if any(rows.features[:, :1].nnz for rows in read.values()) else 1
    if width - first < 1:
        raise DataFileError(f"{train}: no line has a feature (index:value with a value other than 0).")
    parts = {name: _dense(rows, first, width) for name, rows in read.items()}
    if parts["train"].sizes.size < FEWEST_QUERIES:
        raise DataFileError(f"{train}: at least {FEWEST_QUERIES} queries are needed; got {parts['train'].sizes.size}.")
    notes: tuple[str, ...] = ()
    if valid is None:
        parts["train"], parts["valid"], n_held_out = _hold_out(parts["train"], seed)
        paths["valid"] = train
        notes = (f"no --valid file: {n_held_out} whole queries of {train.name} are held out for validation",)
    for name, part in parts.items():
        if not part.labels.any():
            raise DataFileError(
                f"{paths[name]}: no document of the {name} part has a grade above 0, so every ranking is as good."
            )
    return Problem(train.name, parts["train"], parts["valid"], parts["test"], notes)


@dataclass(frozen=True)
class _Rows:
    path: Path
    features: Any  # scipy's csr_matrix
    labels: NDArray[np.int64]
    qid: NDArray[np.int64]


class _Lines:
    """A file for scikit-learn, which by itself would read a line of any length into memory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        return (line for _, line in numbered_lines(self._path))

    def read(self) -> bytes:
        """What scikit-learn knows a file by; it calls no more than ``__iter__``."""
        return b"\n".join(self)


def _read(path: Path) -> _Rows:
    from sklearn.datasets import load_svmlight_file

    try:
        features, labels, qid = load_svmlight_file(_Lines(path), query_id=True, zero_based=True, dtype=np.float64)
    except DataFileError:
        raise
    except (ValueError, OverflowError, OSError, EOFError) as error:
        raise DataFileError(
            f"{path}: not a LETOR/SVMlight file ('grade qid:ID index:value ...', indices ascending): "
            f"{shown_text(str(error))}"
        ) from error
    if labels.size == 0:
        raise DataFileError(f"{path}: has no rows.")
    _check_labels(path, labels)
    if not np.isfinite(features.data).all():
        raise DataFileError(f"{path}: a feature is NaN or infinite; every value must be a finite number.")
    if qid.size == 0:
        sizes = sizes_beside(path, labels.size)
        qid = np.repeat(np.arange(sizes.size), sizes)
    elif qid.size != labels.size:
        raise DataFileError(f"{path}: every line must have a qid:, or none; got {qid.size} on {labels.size} rows.")
    return _Rows(path, features, labels.astype(np.int64), qid)


def _check_labels(path: Path, labels: NDArray[np.float64]) -> None:
    wrong = ~((labels >= 0) & (labels <= _HIGHEST_GRADE) & (labels == np.floor(labels)))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataFileError(
            f"{path}: grades must be integers from 0 to {_HIGHEST_GRADE}, as LightGBM's lambdarank needs them; "
            f"got {labels[row]:g} in row {row + 1} (and {int(wrong.sum()) - 1} more such rows)."
        )


def _dense(rows: _Rows, first: int, width: int) -> Split:
    _, seen, codes = np.unique(rows.qid, return_index=True, return_inverse=True)
    by_appearance = np.argsort(np.argsort(seen))[codes]
    order = np.argsort(by_appearance, kind="stable")
    features = np.zeros((rows.labels.size, width - first))
    features[:, : rows.features.shape[1] - first] = rows.features[order][:, first:].toarray()
    return Split(features, rows.labels[order], np.bincount(by_appearance))


def _hold_out(train: Split, seed: int) -> tuple[Split, Split, int]:
    """The training queries without, and only, those held out; both keep the order of the file."""
    n_queries = train.sizes.size
    held_out = np.zeros(n_queries, dtype=bool)
    held_out[np.random.default_rng(seed).permutation(n_queries)[: max(2, round(_HELD_OUT * n_queries))]] = True
    kept, out = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    return train.of_queries(kept), train.of_queries(out), out.size
