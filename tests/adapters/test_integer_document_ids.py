"""Ties broken by integer document ids: every function compares the ids as strings, as trec_eval does."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pd = pytest.importorskip("pandas")

import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from ndcg_ml import Flavor, align, evaluate, evaluate_part, evaluate_run, ndcg_score, prepare
from ndcg_ml.torch import ndcg
from ndcg_ml.torch.inputs import torch_kernel

LARGEST = 2**63 - 1


def torch_route(grades, scores, ids, flavor):
    tensors = (torch.tensor(scores), torch.tensor(grades))
    return ndcg(*(tensor[None] for tensor in tensors), doc_id=torch.tensor(ids)[None], flavor=flavor).item()


def flat_on_torch(grades, scores, ids, flavor):
    n = len(ids)
    with torch_kernel():
        return ndcg(
            torch.tensor(scores), torch.tensor(grades), indexes=torch.zeros(n, dtype=torch.long),
            doc_id=torch.tensor(ids), flavor=flavor,
        ).item()  # fmt: skip


def padded_on_torch(grades, scores, ids, flavor):
    with torch_kernel():
        return torch_route(grades, scores, ids, flavor)


def file_route(grades, scores, ids, flavor, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trec")
    qrels, run = folder / "qrels", folder / "run"
    qrels.write_text("".join(f"t 0 {each} {int(grade)}\n" for each, grade in zip(ids, grades, strict=True)))
    run.write_text("".join(f"t Q0 {each} 1 {score} x\n" for each, score in zip(ids, scores, strict=True)))
    return evaluate_run(qrels, run, flavor=flavor).value


def dicts(grades, scores, ids):
    return {"t": dict(zip(ids, grades, strict=True))}, {"t": dict(zip(ids, scores, strict=True))}


def frame(grades, scores, ids):
    return pd.DataFrame({"qid": 0, "docno": ids, "label": grades, "score": scores})


ROUTES = {
    "dense": lambda y, s, ids, flavor: ndcg_score([y], [s], doc_id=[ids], flavor=flavor),
    "group": lambda y, s, ids, flavor: ndcg_score(y, s, group=[len(y)], doc_id=np.array(ids), flavor=flavor),
    "objects": lambda y, s, ids, flavor: ndcg_score(
        y, s, qid=[0] * len(y), doc_id=np.array(ids, dtype=object), flavor=flavor
    ),
    "text": lambda y, s, ids, flavor: ndcg_score(
        y, s, group=[len(y)], doc_id=[str(each) for each in ids], flavor=flavor
    ),
    "prepare": lambda y, s, ids, flavor: prepare(y, group=[len(y)], doc_id=ids, flavor=flavor)(s),
    "frame": lambda y, s, ids, flavor: evaluate(frame(y, s, ids), columns={}, flavor=flavor).value,
    "part": lambda y, s, ids, flavor: evaluate_part(y, s, qid=[0] * len(y), doc_id=ids, flavor=flavor).value,
    "dicts": lambda y, s, ids, flavor: evaluate_run(*dicts(y, s, ids), flavor=flavor).value,
    "run frames": lambda y, s, ids, flavor: evaluate_run(frame(y, s, ids), frame(y, s, ids), flavor=flavor).value,
    "align": lambda y, s, ids, flavor: ndcg_score(**align(*dicts(y, s, ids)).arguments(), flavor=flavor),
    "torch": torch_route,
    "torch kernel, flat": flat_on_torch,
    "torch kernel, padded": padded_on_torch,
}


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_ten_is_smaller_than_nine_as_a_string(route):
    assert route([1.0, 0.0], [1.0, 1.0], [9, 10], Flavor(ties="docid", k=1)) == 1.0
    assert route([1.0, 0.0], [1.0, 1.0], [9, 10], Flavor(ties="docid_ascending", k=1)) == 0.0
    assert route([1.0, 0.0], [1.0, 1.0], [10**9 + 9, 10**9 + 10], Flavor(ties="docid", k=1)) == 0.0


def test_ids_in_a_file(tmp_path_factory):
    assert file_route([1.0, 0.0], [1.0, 1.0], [9, 10], Flavor(ties="docid", k=1), tmp_path_factory) == 1.0


# Prefixes of each other, neighbours of powers of ten, and the limits of 64 bits.
IDS = st.sampled_from(
    [0, 1, 10, 100, 12, 123, 9, 99, 10**17, 10**18, 10**18 - 1, 10**18 + 1, LARGEST, LARGEST - 1, LARGEST // 10]
)
IDS = (IDS | st.integers(0, 1200) | st.integers(0, LARGEST)).flatmap(
    lambda each: st.sampled_from([each, each, -each - 1])
)


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
@examples(20)
@given(ids=st.lists(IDS, min_size=2, max_size=12, unique=True), ties=st.sampled_from(["docid", "docid_ascending"]))
def test_every_function_compares_integers_as_strings(route, ids, ties):
    in_order = sorted(ids, key=str, reverse=ties == "docid")
    grades = [float(2 ** (in_order.index(each) % 5) + 1) for each in ids]
    expected = ndcg_score([[grades[ids.index(each)] for each in in_order]], [[-float(at) for at in range(len(ids))]])
    assert route(grades, [1.0] * len(ids), ids, Flavor(ties=ties)) == pytest.approx(expected, abs=1e-12)


def test_ids_beyond_64_bits_and_unsigned():
    flavor = Flavor(ties="docid", k=1)
    for ids in ([2**70, 2**71], np.array([2**64 - 1, 2**63], dtype=np.uint64), [10**30, 9]):
        largest = max(range(2), key=lambda at: str(ids[at]))
        grades = [float(at == largest) for at in range(2)]
        assert ndcg_score(grades, [1, 1], group=[2], doc_id=ids, flavor=flavor) == 1.0
