"""Lists of a catalogue: wide, sparse and masked. Three kernels agree, two of them to the last bit.

The NumPy kernel equals the oracle where few rows are tied, or ties are not averaged (test_kernel.py).
"""

import pytest

pytest.importorskip("torch")

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import examples, flavors
from torch_batches import torch_kernel

from ndcg_ml import Flavor, evaluate
from ndcg_ml.torch import ndcg

COLUMNS = ("ndcg", "dcg", "idcg", "n_docs", "n_judged", "n_relevant", "tied")
SCORES = ("untied", "rounded", "three values", "one -inf", "a third -inf", "all -inf", "far down", "infinite")
LABELS = ("sparse", "grades", "one grade", "fractions", "unjudged", "high")


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
