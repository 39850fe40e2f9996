"""Tensors given to the NumPy functions, and arrays given to those of torch: each names the other."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import numpy as np
import torch
from core.test_errors import S2, Y2, Q, S, Y

from ndcg_ml import ndcg_score
from ndcg_ml.torch import ndcg


def test_tensors_are_pointed_to_the_torch_room():
    for y, s in ((torch.tensor(Y), S), (Y, torch.tensor(S))):
        with pytest.raises(TypeError, match=r"is a Tensor of torch.*ndcg_ml\.torch\.ndcg\(scores, labels.*numpy\(\)"):
            ndcg_score(y, s, qid=Q)
    with pytest.raises(TypeError, match=r"qid is a torch tensor; pass qid\.cpu\(\)\.numpy\(\)"):
        ndcg_score(Y, S, qid=torch.tensor(Q))


def test_arrays_are_pointed_away_from_the_torch_room():
    with pytest.raises(TypeError, match="ndcg_score"):
        ndcg(np.array(S2), np.array(Y2))
