"""Every loss takes flat and nested input, and gives what it gives on the same lists padded."""

from __future__ import annotations

import pytest
import torch

from ndcg_ml.torch import (
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    Stochastic,
)

SIZES = (3, 1, 5, 4)


def seeded():
    return torch.Generator().manual_seed(0)


LOSSES = {
    "approx": lambda: ApproxNDCGLoss("lightgbm@3", reduction="none"),
    "neural": lambda: NeuralNDCGLoss("lightgbm@3", reduction="none"),
    "lambda": lambda: LambdaNDCGLoss("lightgbm@3", scheme="lambdarank", reduction="none"),
    "plackett_luce": lambda: PlackettLuceNDCGLoss("lightgbm@3", generator=seeded(), reduction="none"),
    "softmax": lambda: SoftmaxLoss("lightgbm", reduction="none"),
    "list_mle": lambda: ListMLELoss("lightgbm", tie_order="input", reduction="none"),
    "stochastic": lambda: Stochastic(ApproxNDCGLoss("lightgbm@3", reduction="none"), samples=2, generator=seeded()),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_flat_and_nested_lists_are_the_padded_ones(name):
    random = torch.Generator().manual_seed(1)
    rows = sum(SIZES)
    flat = torch.randn(rows, dtype=torch.float64, generator=random)
    labels = torch.randint(0, 4, (rows,), generator=random)
    qid = torch.repeat_interleave(torch.tensor([7, -2, 30, 4]), torch.tensor(SIZES))
    offsets = torch.tensor([0, 3, 4, 9, 13])
    padded = torch.full((len(SIZES), 5), torch.nan, dtype=torch.float64)
    grades, mask = torch.full((len(SIZES), 5), 9), torch.zeros(len(SIZES), 5, dtype=torch.bool)
    for row, (start, size) in enumerate(zip(offsets.tolist(), SIZES, strict=False)):
        padded[row, :size], grades[row, :size] = flat[start : start + size], labels[start : start + size]
        mask[row, :size] = True
    expected = LOSSES[name]()(padded, grades, mask)

    scores = flat.clone().requires_grad_()
    by_ids = LOSSES[name]()(scores, labels, indexes=qid)
    assert torch.allclose(by_ids, expected, atol=1e-12)
    by_ids.sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert scores.grad.abs().max() > 0
    assert torch.allclose(LOSSES[name]()(flat, labels, offsets=offsets), expected, atol=1e-12)
    parts = [list(torch.split(tensor, SIZES)) for tensor in (flat, labels)]
    nested = [torch.nested.nested_tensor(part, layout=torch.jagged) for part in parts]
    assert torch.allclose(LOSSES[name]()(*nested), expected, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_flat_lists_without_ids_are_refused(name):
    with pytest.raises(ValueError, match="indexes"):
        LOSSES[name]()(torch.zeros(3), torch.ones(3))
