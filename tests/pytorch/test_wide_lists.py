"""Lists of a catalogue: wide, sparse and masked. The oracle and three kernels agree, two of them to the last bit.

The shortcuts for such lists begin at some hundred rows, where the oracle can no longer put every tied run in all of
its orders: under ``ties="average"`` it is asked where few rows are tied, and the kernels everywhere.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import math
from collections import Counter
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Document, oracle
from strategies import examples, flavors

from ndcg_ml import Flavor, evaluate
from ndcg_ml.torch import ndcg
from ndcg_ml.torch.inputs import torch_kernel

COLUMNS = ("ndcg", "dcg", "idcg", "n_docs", "n_judged", "n_relevant", "tied")
SCORES = ("untied", "rounded", "three values", "one -inf", "a third -inf", "all -inf", "far down", "infinite")
LABELS = ("sparse", "grades", "one grade", "fractions", "unjudged", "high")
# Orders of tied documents that the oracle may go through.
MOST_ORDERS = 100


def scores_of(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    normal = rng.normal(size=shape)
    if kind == "rounded":
        return normal.round(1)
    if kind == "three values":
        return rng.integers(0, 3, shape) * 1.0
    if kind == "one -inf":
        normal[-1, rng.integers(shape[1])] = -np.inf
    elif kind == "a third -inf":
        normal[rng.random(shape) < 1 / 3] = -np.inf
    elif kind == "all -inf":
        normal[0] = -np.inf
    elif kind == "far down":  # no room between -inf and the lowest score
        return np.where(rng.random(shape) < 0.9, -np.inf, rng.choice([-1e300, -3e38, 0.0], shape))
    elif kind == "infinite":
        return np.where(rng.random(shape) < 0.5, rng.choice([np.inf, -np.inf, -0.0], shape), normal.round(2))
    return normal


def labels_of(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    if kind == "grades":
        return rng.integers(0, 5, shape)
    if kind == "one grade":
        return np.full(shape, rng.integers(0, 3))
    sparse = np.where(rng.random(shape) < 0.02, rng.integers(1, 4, shape), 0)
    if kind == "fractions":
        return sparse / 4
    if kind == "unjudged":
        return np.where(rng.random(shape) < 0.1, np.nan, sparse)
    if kind == "high":
        return np.where(rng.random(shape) < 0.01, rng.integers(5, 20, shape), sparse)
    return sparse


def problem_of(seed: int, flavor: Flavor) -> dict[str, Any]:
    """One row per query, with the arguments of ``evaluate``."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 4)), int(rng.integers(256, 600))
    kinds = [kind for kind in LABELS if not (isinstance(flavor.gain, tuple) or flavor.max_grade) or kind == "sparse"]
    y = labels_of(str(rng.choice(kinds)), rng, shape)
    if isinstance(flavor.gain, tuple):
        y = np.minimum(y, len(flavor.gain) - 1)
    if flavor.max_grade is not None:
        y = np.minimum(y, math.floor(flavor.max_grade))
    if y.dtype.kind == "i":
        y = y.astype(rng.choice(["int64", "int8", "uint8", "uint16", "float32", "float64"]))
    arguments: dict[str, Any] = {"y_true": y, "y_score": scores_of(str(rng.choice(SCORES)), rng, shape)}
    if rng.random() < 0.3:
        arguments["y_score"] = arguments["y_score"].clip(-3e38, None).astype(np.float32)
    for name in ("mask", "retrieved"):
        if rng.random() < 0.3:
            arguments[name] = rng.random(shape) < 0.8
    if flavor.ties.startswith("docid"):
        # All ids have the same number of digits, because integers are compared as text.
        arguments["doc_id"] = 1000 + np.argsort(rng.random(shape), axis=1)
    return arguments


def queries_of(arguments: dict[str, Any]) -> list[list[Document]]:
    """The same for the oracle."""
    y = arguments["y_true"]
    every = np.ones(y.shape, dtype=bool)
    columns = (
        y.astype(np.float64),
        arguments["y_score"].astype(np.float64),
        arguments.get("retrieved", every),
        arguments.get("doc_id", np.zeros(y.shape, dtype=int)),
    )
    mask = arguments.get("mask", every)
    return [
        [
            Document(float(grade), float(score), bool(flag), f"{doc_id:04d}")
            for grade, score, flag, doc_id in zip(*(column[row][mask[row]] for column in columns), strict=True)
        ]
        for row in range(y.shape[0])
    ]


def n_orders(flavor: Flavor, documents: list[Document]) -> int:
    if flavor.ties != "average":
        return 1
    dtype = np.float32 if flavor.score_dtype == "float32" else np.float64
    with np.errstate(over="ignore"):
        scores = [float(dtype(document.score)) for document in documents if document.retrieved]
    return math.prod(math.factorial(n) if n < 9 else 10**6 for n in Counter(scores).values())


def check(seed: int, flavor: Flavor) -> None:
    arguments = problem_of(seed, flavor)
    tables = {}
    kernels = ["numpy", "compiled"] if find_spec("numba") else ["numpy"]
    with pytest.MonkeyPatch.context() as patch:
        for kernel in kernels:
            patch.setenv("NDCG_ML_KERNEL", kernel)
            tables[kernel] = evaluate(flavor=flavor, **arguments).per_query
    table = tables["numpy"]
    for column in COLUMNS:
        for other in tables.values():
            np.testing.assert_array_equal(other[column], table[column], err_msg=column)
    for row, documents in enumerate(queries_of(arguments)):
        if n_orders(flavor, documents) > MOST_ORDERS:
            continue
        answer = oracle(flavor, documents)
        size = float(min(answer.size, 10**300)) or 1.0
        assert table.dcg[row] == pytest.approx(answer.dcg, rel=1e-12, abs=1e-13 * size), row
        assert table.idcg[row] == pytest.approx(answer.idcg, rel=1e-12, abs=1e-13 * size), row
        assert (table.n_docs[row], table.n_judged[row]) == (answer.n_docs, answer.n_judged)
        assert (table.n_relevant[row], table.tied[row]) == (answer.n_relevant, answer.tied)
    tensors = {name: torch.from_numpy(value) for name, value in arguments.items() if name != "y_true"}
    y = arguments["y_true"]
    labels = torch.from_numpy(y.astype(np.int64) if y.dtype == np.uint16 else y)
    scores = tensors.pop("y_score")
    with torch_kernel():
        by_torch = ndcg(scores, labels, flavor=flavor, **tensors)
    np.testing.assert_allclose(by_torch.numpy(), table.ndcg, rtol=1e-9, atol=1e-12)


wide_flavors = flavors(
    callables=False,
    gains=("linear", "exponential", "binary", "judged", "table"),
    negative="zero",
    unjudged="zero",
    duplicates="raise",
).filter(lambda flavor: flavor.empty not in ("skip", "raise") and not isinstance(flavor.gain, tuple))
tables = st.sampled_from([(0.0, 1.0, 3.0, 7.0), (0.0, 0.5, 0.25, 5.0), (1.0, 0.0, 0.0, 1e-3)])


def drawn(data: st.DataObject) -> tuple[int, Flavor]:
    flavor = data.draw(wide_flavors)
    if flavor.ideal != "max" and data.draw(st.integers(0, 3)) == 0:
        flavor = flavor.replace(gain=data.draw(tables), max_grade=None)
    return data.draw(st.integers(0, 2**32)), flavor


@examples(60)
@given(st.data())
def test_wide_lists(data: st.DataObject) -> None:
    check(*drawn(data))


@pytest.mark.exhaustive
@pytest.mark.parametrize("half", ["first", "second"])  # each draws its own, and can be run by itself
@settings(max_examples=5_000)
@given(data=st.data())
def test_ten_thousand_problems_of_wide_lists(half: str, data: st.DataObject) -> None:
    check(*drawn(data))


def test_a_gain_function_is_asked_about_grades_that_occur_alone() -> None:
    known = {0: 0.0, 2: 5.0}
    flavor = Flavor(gain=lambda grade: known[int(grade)])
    y = np.zeros((1, 300), dtype=np.int64)
    y[0, 7] = 2
    assert evaluate(y, -y, flavor=flavor, k=3).per_query.idcg.tolist() == [5.0]


@pytest.mark.parametrize("largest", [254, 255, 256, 400])
@pytest.mark.parametrize("dtype", ["int64", "uint16", "float64"])
def test_grades_at_the_edge_of_a_byte(largest: int, dtype: str) -> None:
    y = np.zeros((1, 600), dtype=dtype)
    y[0, 7], y[0, 599] = largest, 1
    assert evaluate(y, -np.arange(600.0)[None], k=8).per_query.idcg[0] == largest + 1 / math.log2(3)
