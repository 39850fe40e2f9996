"""The inputs: random, or real data from the data folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DATA = Path(os.environ.get("NDCG_ML_DATA", Path(__file__).parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class Workload:
    """Contiguous queries with their sizes."""

    name: str
    labels: NDArray[np.float64]
    scores: NDArray[np.float64]
    sizes: NDArray[np.int64]

    @property
    def rows(self) -> int:
        return self.labels.size

    @property
    def qid(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    @property
    def dense(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        shape = (self.sizes.size, int(self.sizes[0]))
        return self.labels.reshape(shape), self.scores.reshape(shape)

    def with_scores(self, name: str, scores: NDArray[np.float64]) -> Workload:
        return Workload(f"{self.name}, {name}", self.labels, scores, self.sizes)


def _grades(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return rng.choice(5, size=n, p=[0.52, 0.23, 0.19, 0.04, 0.02]).astype(np.float64)  # about MSLR-WEB's shares


def _made(name: str, sizes: NDArray[np.int64], seed: int) -> Workload:
    rng = np.random.default_rng(seed)
    labels = _grades(rng, int(sizes.sum()))
    return Workload(name, labels, labels + 2 * rng.standard_normal(labels.size), sizes)


def ragged(scale: float = 1.0) -> Workload:
    """Return 10 000 queries of lognormal length, about 120, as in MSLR: 1.2 M rows."""
    sizes = np.random.default_rng(1).lognormal(np.log(105), 0.53, int(10_000 * scale))
    return _made("ragged 10 000 queries of about 120", np.clip(sizes.astype(np.int64), 2, 803), 2)


def dense(scale: float = 1.0) -> Workload:
    return _made("dense 10 000 x 100", np.full(int(10_000 * scale), 100), 3)


def tiny(scale: float = 1.0) -> Workload:
    return _made("many tiny 1 000 000 x 3", np.full(int(1_000_000 * scale), 3), 4)


def short(scale: float = 1.0) -> Workload:
    """Return lists of 5 to 15 documents, as recommenders show."""
    sizes = np.random.default_rng(9).integers(5, 16, int(100_000 * scale))
    return _made("short 100 000 lists of about 10", sizes, 10)


def huge(scale: float = 1.0) -> Workload:
    return _made("few huge 10 x 1 000 000", np.full(10, int(1_000_000 * scale)), 5)


def trec(scale: float = 1.0) -> Workload | None:
    """Return real sizes and labels of 43 qrels (2 M rows) with random scores, or None without the data."""
    path = DATA / "trec_labels" / "bundle.npz"
    if not path.exists():
        return None
    with np.load(path) as bundle:
        labels, sizes = bundle["label"].astype(np.float64), bundle["group_size"].astype(np.int64)
    keep = max(1, int(sizes.size * scale))
    sizes = sizes[:keep]
    labels = np.maximum(labels[: sizes.sum()], 0)
    scores = labels + 2 * np.random.default_rng(6).standard_normal(labels.size)
    return Workload("trec_labels (real sizes and grades)", labels, scores, sizes)


@dataclass(frozen=True)
class Rows:
    """Labels, scores and ids of rows, in any order."""

    name: str
    labels: NDArray[np.float64]
    scores: NDArray[np.float64]
    qid: NDArray[Any]


def by_id(work: Workload) -> list[Rows]:
    """Return the rows in order, in reverse, interleaved (no adjacent rows share a query) and shuffled."""
    turn = np.argsort(np.concatenate([np.arange(size) for size in work.sizes]), kind="stable")
    shuffled = np.random.default_rng(0).permutation(work.rows)
    wide = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, work.sizes.size)
    text = np.array([f"query-{number}" for number in range(work.sizes.size)])
    backwards = np.arange(work.rows)[::-1]

    def rows(name: str, ids: NDArray[Any], order: NDArray[np.int64]) -> Rows:
        return Rows(name, work.labels[order], work.scores[order], ids[order])

    return [
        rows("integers in order", work.qid, np.arange(work.rows)),
        rows("integers in reverse", work.qid, backwards),
        rows("integers in turn", work.qid, turn),
        rows("shuffled integers", work.qid, shuffled),
        rows("shuffled hashes of 64 bits", wide[work.qid], shuffled),
        rows("text in order", text[work.qid], np.arange(work.rows)),
        rows("shuffled text", text[work.qid], shuffled),
        rows("shuffled Python strings", text[work.qid].astype(object), shuffled),
    ]


def tied(work: Workload, digits: int = 1) -> Workload:
    return work.with_scores(f"scores rounded to {digits} digit", np.round(work.scores, digits))


def constant(work: Workload) -> Workload:
    return work.with_scores("constant scores", np.zeros_like(work.scores))


def of_a_model(work: Workload, rounds: int) -> Workload:
    """Return the workload with the scores of a LightGBM ranker, which have ties."""
    import lightgbm as lgb

    rng = np.random.default_rng(7)
    X = (work.labels[:, None] + rng.standard_normal((work.rows, 8)) * 3).astype(np.float32)
    params = {"objective": "lambdarank", "verbosity": -1, "num_leaves": 31, "num_threads": 2, "metric": "None"}
    booster = lgb.train(params, lgb.Dataset(X, work.labels, group=work.sizes), rounds)
    return work.with_scores(f"scores of a model of {rounds} trees", booster.predict(X, raw_score=True))


def trec_files(scale: float, folder: Path) -> tuple[Path, Path]:
    """Write qrels and a run: 250 topics, 1 000 retrieved documents each, and 311 000 judgements."""
    rng = np.random.default_rng(7)
    retrieved, judged = int(1_000 * scale), int(1_244 * scale)
    qrels, run = folder / "qrels.txt", folder / "run.txt"
    with qrels.open("w") as out:
        for topic in range(250):
            grades = rng.choice(4, judged, p=[0.7, 0.15, 0.1, 0.05])
            documents = rng.choice(4 * judged, judged, replace=False)
            out.writelines(f"{topic} 0 doc{d:07d} {g}\n" for d, g in zip(documents, grades, strict=True))
    with run.open("w") as out:
        for topic in range(250):
            documents = rng.choice(4 * judged, retrieved, replace=False)
            scores = np.sort(rng.normal(size=retrieved))[::-1]
            out.writelines(
                f"{topic} Q0 doc{d:07d} {r} {s:.6f} tag\n"
                for r, (d, s) in enumerate(zip(documents, scores, strict=True))
            )
    return qrels, run
