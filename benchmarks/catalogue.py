"""Benchmarks for recommenders: scores of a whole catalogue, masks, and lists of retrieved items."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.measure import Contender, Result, compare
from ndcg_ml import evaluate_run, evaluate_topk, prepare

K = 10
DISCOUNTS = 1 / np.log2(np.arange(2, K + 2))
SHAPES = ((1000, 1000), (200, 20_000), (20, 200_000), (64, 100_000))


def catalogue(scale: float) -> Iterator[Result]:
    """Compare with NumPy and PyTorch code written by hand, and with libraries that take such input."""
    rng = np.random.default_rng(0)
    for rows, width in SHAPES[:3]:
        yield _wide(rng, max(4, int(rows * scale)), width)
    for rows, width in (SHAPES[0], SHAPES[1], SHAPES[3]):
        yield _tensors(max(4, int(rows * scale)), width)
    yield from _masks(rng, max(100, int(20_000 * scale)))
    yield _users(rng, max(100, int(50_000 * scale)))
    yield _many_users(rng, max(1000, int(1_000_000 * scale)))


def _wide(rng: np.random.Generator, rows: int, width: int) -> Result:
    labels = (rng.random((rows, width)) < 0.01).astype(np.int64)
    scores = rng.normal(size=labels.shape)

    def by_hand() -> float:
        top = np.argpartition(-scores, K - 1, axis=1)[:, :K]
        order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1)
        gains = np.take_along_axis(np.take_along_axis(labels, top, axis=1), order, axis=1)
        best = -np.sort(np.partition(-labels, K - 1, axis=1)[:, :K], axis=1)
        return _mean_ratio((gains * DISCOUNTS).sum(axis=1), (best * DISCOUNTS).sum(axis=1))

    def by_hand_binary() -> float:
        top = np.argpartition(-scores, K - 1, axis=1)[:, :K]
        order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1)
        gains = np.take_along_axis(np.take_along_axis(labels, top, axis=1), order, axis=1)
        relevant = np.minimum(np.count_nonzero(labels, axis=1), K)
        return _mean_ratio((gains * DISCOUNTS).sum(axis=1), np.append(0, np.cumsum(DISCOUNTS))[relevant])

    contenders = [
        _prepared("ndcg_ml, NumPy kernel", labels, scores, "numpy"),
        Contender("argpartition by hand, relevant items counted", by_hand_binary, 1e-12),
        _prepared("ndcg_ml, compiled kernel", labels, scores, "compiled"),
        Contender("argpartition by hand, ideal by partition", by_hand, 1e-12),
    ]
    if rows * width <= 1_000_000:
        contenders += _torchmetrics(labels, scores)
    return compare(f"dense arrays, {rows} x {width}, 1 % relevant, labels unprepared", contenders, target=1.0)


def _prepared(name: str, labels: Any, scores: Any, kernel: str) -> Contender:
    return Contender(name, lambda: prepare(labels, k=K, kernel=kernel, threads=1)(scores), 1e-12)


def _mean_ratio(dcg: Any, ideal: Any) -> float:
    return float(np.divide(dcg, ideal, out=np.zeros(len(dcg)), where=ideal > 0).mean())


def _torchmetrics(labels: Any, scores: Any) -> list[Contender]:
    try:
        import torch
        from torchmetrics.retrieval import RetrievalNormalizedDCG
    except ImportError:
        return []
    arguments = torch.from_numpy(scores.reshape(-1)), torch.from_numpy(labels.reshape(-1))
    indexes = torch.arange(len(labels)).repeat_interleave(labels.shape[1])
    return [
        Contender(
            "torchmetrics RetrievalNormalizedDCG",
            lambda: float(RetrievalNormalizedDCG(top_k=K)(*arguments, indexes=indexes)),
            1e-6,
            "float32",
        )
    ]


def _tensors(rows: int, width: int) -> Result:
    import torch

    from ndcg_ml.torch import ndcg

    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(rows, width, generator=generator)
    labels = (torch.rand(rows, width, generator=generator) < 0.01).long()
    discounts = torch.from_numpy(DISCOUNTS)

    def by_hand() -> float:
        gains = labels.gather(1, scores.topk(K, dim=1).indices).double()
        ideal = torch.cat([discounts.new_zeros(1), discounts.cumsum(0)])[(labels > 0).sum(1).clamp(max=K)]
        return float(torch.where(ideal > 0, (gains * discounts).sum(1) / ideal, 0.0).mean())

    def ours(kernel: str) -> Callable[[], float]:
        def call() -> float:
            before = os.environ["NDCG_ML_KERNEL"]
            os.environ["NDCG_ML_KERNEL"] = kernel
            try:
                return float(ndcg(scores, labels, flavor="sklearn", k=K).mean())
            finally:
                os.environ["NDCG_ML_KERNEL"] = before

        return call

    return compare(
        f"tensors on the CPU, {rows} x {width}, integer labels, 1 % relevant",
        [
            Contender("ndcg_ml.torch.ndcg, compiled kernel", ours("compiled"), 0.0),
            Contender("topk, gather, relevant items counted", by_hand, 1e-6),
            Contender("ndcg_ml.torch.ndcg, NumPy kernel", ours("numpy"), 1e-6),
        ],
        target=-3.0,
    )


def _masks(rng: np.random.Generator, n_queries: int) -> Iterator[Result]:
    labels = rng.integers(0, 5, n_queries * 50)
    scores = rng.normal(size=labels.size)
    one, third = scores.copy(), np.where(rng.random(labels.size) < 1 / 3, -np.inf, scores)
    one[-1] = -np.inf
    for kernel in ("numpy", "compiled"):
        ours = prepare(labels, group=np.full(n_queries, 50), k=K, kernel=kernel, threads=1)
        for what, masked in (("one score", one), ("a third of the scores", third)):

            def call(values: Any, ndcg: Any = ours) -> Callable[[], float]:
                return lambda: ndcg.evaluate(values).value

            yield compare(
                f"{what} at -inf, {n_queries} queries of 50, {kernel} kernel, evaluate",
                [Contender("with -inf", call(masked), None), Contender("without", call(scores), None)],
                target=-1.3,
            )


def _interactions(rng: np.random.Generator, n_users: int) -> tuple[Any, tuple[Any, Any, Any]]:
    """Return ten retrieved items per user out of 20 000, and five held-out ones, of which two were retrieved."""
    retrieved = np.argsort(rng.random((2000, 200)), axis=1)[rng.integers(0, 2000, n_users), :K] * 100
    users = np.repeat(np.arange(n_users), 5)
    items = np.where(np.arange(users.size) % 5 < 2, retrieved[users, np.arange(users.size) % 5], 0)
    items = np.where(np.arange(users.size) % 5 < 2, items, 100 * rng.integers(0, 200, users.size) + 1 + users % 7)
    keys = np.unique(users * 20_000 + items)
    return retrieved, (keys // 20_000, keys % 20_000, np.ones(keys.size))


def _users(rng: np.random.Generator, n_users: int) -> Result:
    import scipy.sparse

    retrieved, (users, items, grades) = _interactions(rng, n_users)
    held_out = scipy.sparse.csr_matrix((grades, (users, items)), shape=(n_users, 20_000))

    def by_hand() -> float:
        hits = np.isin(np.arange(n_users)[:, None] * 20_000 + retrieved, users * 20_000 + items)
        ideal = np.append(0, np.cumsum(DISCOUNTS))[np.minimum(np.bincount(users, minlength=n_users), K)]
        return _mean_ratio((hits * DISCOUNTS).sum(axis=1), ideal)

    run = {f"u{user}": {f"i{i}": float(-at) for at, i in enumerate(row)} for user, row in enumerate(retrieved.tolist())}
    qrels: dict[str, dict[str, int]] = {user: {} for user in run}
    for user, item in zip(users.tolist(), items.tolist(), strict=True):
        qrels[f"u{user}"][f"i{item}"] = 1
    contenders = [
        Contender(
            "ndcg_ml.evaluate_topk", lambda: evaluate_topk(retrieved, held_out, flavor="recbole", k=K).value, 0.0
        ),
        Contender("NumPy by hand", by_hand, 1e-12, "the mean only"),
        Contender(
            "ndcg_ml.evaluate_run from dicts", lambda: evaluate_run(qrels, run, flavor="recbole", k=K).value, 0.0
        ),
    ]
    try:
        from implicit.evaluation import ndcg_at_k
    except ImportError:
        pass
    else:
        ids = retrieved.astype(np.int32)
        model = SimpleNamespace(recommend=lambda batch, *_, **__: (ids[batch], None))

        def implicit() -> float:
            return float(ndcg_at_k(model, held_out, held_out, K=K, show_progress=False, num_threads=1))

        contenders.append(Contender("implicit.evaluation.ndcg_at_k", implicit, 1e-9, "precomputed items, no model"))
    try:
        import ranx
    except ImportError:
        pass
    else:
        theirs = ranx.Qrels(qrels), ranx.Run(run)

        def by_ranx() -> float:
            return float(ranx.evaluate(*theirs, f"ndcg@{K}"))

        contenders.append(Contender("ranx.evaluate", by_ranx, 1e-9, "Qrels and Run prebuilt"))
    return compare(f"{n_users} users, {K} retrieved items each", contenders)


def _many_users(rng: np.random.Generator, n_users: int) -> Result:
    retrieved, held_out = _interactions(rng, n_users)
    return compare(
        f"{n_users} users, {K} retrieved items each, three arrays",
        [
            Contender(
                "ndcg_ml.evaluate_topk", lambda: evaluate_topk(retrieved, held_out, flavor="recbole", k=K).value, 0.0
            )
        ],
    )
