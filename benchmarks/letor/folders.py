"""Folders of ranking data in LETOR's form, as folds with a training, validation and test part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml.demo import Split
from ndcg_ml.readers import DataFileError, letor_rows

N_FOLDS = 5
FEWEST_QUERIES = 10  # two for each of five parts
FORMS = """A folder of ranking data holds one of these, each file plain or ending in .gz:
  S1.txt ... S5.txt                                   LETOR 4.0: the five parts, rotated into the official folds
  Fold1/train.txt, Fold1/vali.txt, Fold1/test.txt ... LETOR, MSLR-WEB10K and -WEB30K: folds as they are
  train.txt, vali.txt, test.txt                       Istella-S and others: one fold
  set1.train.txt, set1.valid.txt, set1.test.txt       Yahoo C14, with --yahoo 1 (or 2): one fold
  rank.train, rank.test                               LightGBM's example: its queries dealt out into five parts"""


class RankingFolderError(ValueError):
    """The folder has none of the files that are read."""


class Fold(NamedTuple):
    """Three parts of the queries, none of them in two."""

    number: int
    train: Split
    valid: Split
    test: Split
    test_queries: NDArray[np.int64]
    """Which queries of the whole data set the test part has, by number."""


@dataclass(frozen=True)
class Folder:
    """A data set and its folds, read when they are asked for."""

    name: str
    parts: tuple[tuple[tuple[Path, ...], ...], ...]
    """The files of the training, validation and test part of each fold."""
    dealt: bool = False
    """Whether the files are dealt out into folds here, because they come without any."""

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return N_FOLDS if self.dealt else len(self.parts)

    def fold(self, number: int) -> Fold:
        """One fold, numbered from 0."""
        if self.dealt:
            return _dealt(_read(self.parts[0][0]), number)
        splits = _same_width([_read(files) for files in self.parts[number]])
        before = sum(_read(self.parts[earlier][2]).sizes.size for earlier in range(number))
        return Fold(number, *splits, before + np.arange(splits[2].sizes.size))


def open_folder(path: Path, yahoo: int | None = None) -> Folder:
    """The data set in that folder.

    Parameters
    ----------
    path : Path
    yahoo : {1, 2}, optional
        Which of the two sets, for a folder with the files of the Yahoo challenge.

    Raises
    ------
    RankingFolderError
        The folder is missing, or has none of the files that are read.
    """
    if not path.is_dir():
        raise RankingFolderError(f"{path} is not a folder.\n{FORMS}")
    name = path.name.lower()
    if yahoo is not None:
        files = [_there(path / f"set{yahoo}.{part}.txt") for part in ("train", "valid", "test")]
        if all(files):
            return Folder(f"{name}-set{yahoo}", (tuple((file,) for file in files if file),))
    parts = [_there(path / f"S{number}.txt") for number in range(1, N_FOLDS + 1)]
    if all(parts):
        s = [part for part in parts if part]
        folds = [[s[(first + i) % N_FOLDS] for i in range(N_FOLDS)] for first in range(N_FOLDS)]
        return Folder(name, tuple((tuple(fold[:3]), (fold[3],), (fold[4],)) for fold in folds))
    folds_there = sorted(path.glob("Fold[0-9]*"))
    names = ("train.txt", "vali.txt", "test.txt")
    for folders in (folds_there, [path]):
        found = [[_there(folder / file) for file in names] for folder in folders]
        if found and all(all(files) for files in found):
            return Folder(name, tuple(tuple((file,) for file in files if file) for files in found))
    example = [_there(path / file) for file in ("rank.train", "rank.test")]
    if all(example):
        return Folder(name, ((tuple(file for file in example if file),),), dealt=True)
    there = ", ".join(sorted(file.name for file in path.iterdir())[:8]) or "nothing"
    raise RankingFolderError(f"{path} is not a folder of ranking data: it holds {there}.\n{FORMS}")


def _there(path: Path) -> Path | None:
    """The file, or the same one compressed."""
    return next((file for file in (path, path.with_name(path.name + ".gz")) if file.is_file()), None)


def _read(files: tuple[Path, ...]) -> Split:
    """The rows of all files, those of each query together, queries in the order in which they first appear."""
    splits = []
    for file in files:
        rows = letor_rows(file, features=True)
        numbers: dict[str, int] = {}
        queries = np.array([numbers.setdefault(qid, len(numbers)) for qid in rows.qid.tolist()])
        order = np.argsort(queries, kind="stable")
        # Indices begin at 1 in LETOR files. A feature 0, where there is one, takes a column of its own.
        features = np.zeros((rows.labels.size, int(rows.indices.max(initial=0)) + 1), dtype=np.float32)
        features[np.repeat(np.arange(rows.labels.size), rows.lengths), rows.indices] = rows.values
        whole = rows.labels.astype(np.int64)
        if (whole != rows.labels).any() or (whole < 0).any():
            raise DataFileError(f"{file}: grades must be whole numbers of 0 or more.")
        splits.append(Split(features[order], whole[order], np.bincount(queries)))
    splits = _same_width(splits)
    return Split(
        np.concatenate([split.features for split in splits]),
        np.concatenate([split.labels for split in splits]),
        np.concatenate([split.sizes for split in splits]),
    )


def _same_width(splits: list[Split]) -> list[Split]:
    """The same with columns of zeros where a file never mentions the last features."""
    width = max(split.features.shape[1] for split in splits)
    return [
        Split(np.pad(split.features, ((0, 0), (0, width - split.features.shape[1]))), split.labels, split.sizes)
        for split in splits
    ]


def _dealt(whole: Split, number: int) -> Fold:
    """One of five folds of queries that come without folds: three parts train, one validates, one tests."""
    if whole.sizes.size < FEWEST_QUERIES:
        raise RankingFolderError(f"at least {FEWEST_QUERIES} queries are needed for folds; got {whole.sizes.size}.")
    parts = [np.arange(part, whole.sizes.size, N_FOLDS) for part in range(N_FOLDS)]
    turned = [parts[(number + i) % N_FOLDS] for i in range(N_FOLDS)]
    train = whole.of_queries(np.sort(np.concatenate(turned[:3])))
    return Fold(number, train, whole.of_queries(turned[3]), whole.of_queries(turned[4]), turned[4])
