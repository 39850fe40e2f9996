"""The torch kernel in compiled code, against eager code, which the NumPy kernel serves here."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import math

import torch
from lanes import quick
from torch_features import flavors_by_text_in_a_graph, numbers_of_numpy_in_a_graph, skip_unless

from ndcg_ml import Flavor
from ndcg_ml.torch import ndcg

FLAVORS = [
    Flavor(gain=(0, 1, 3, 7), ideal="recall", recall_depth=3, ties="worst", discount="jarvelin"),
    Flavor(gain="exponential", ideal="global"),
    Flavor(ideal="local", unjudged="zero", negative="drop"),
    Flavor(ideal="max", max_grade=3, ties="last", empty="raise", score_dtype="float32"),
    Flavor(ideal="given", ideal_depth="retrieved", gain=(0, 1), off_table="zero", short_lists="zero"),
    "ndcg@3[gain=exponential]",
]


@pytest.mark.parametrize("flavor", quick(FLAVORS[:1], FLAVORS), ids=lambda flavor: getattr(flavor, "ideal", flavor))
def test_padded_form_compiles_without_a_graph_break(flavor):
    if isinstance(flavor, str):
        skip_unless(flavors_by_text_in_a_graph)
    elif flavor.ideal == "max":
        skip_unless(numbers_of_numpy_in_a_graph)
    torch._dynamo.reset()
    compiled = torch.compile(ndcg, fullgraph=True, backend="aot_eager")
    generator = torch.Generator().manual_seed(1)
    for width in (4, 7):
        scores = torch.randint(0, 4, (5, width), generator=generator).float()
        labels = torch.randint(0, 4, (5, width), generator=generator)
        labels[:, 0] = 1
        mask = torch.rand(5, width, generator=generator) < 0.7
        mask[:, 0] = True
        got = compiled(scores, labels, flavor=flavor, k=[None, 2], mask=mask)
        want = ndcg(scores, labels, flavor=flavor, k=[None, 2], mask=mask)
        for k in (None, 2):
            torch.testing.assert_close(got[k], want[k], rtol=1e-12, atol=1e-12)


def test_compiled_code_says_nan_where_eager_code_raises():
    torch._dynamo.reset()
    compiled = torch.compile(ndcg, fullgraph=True, backend="aot_eager")
    scores = torch.tensor([[1.0, 2.0], [math.nan, 1.0], [1.0, 2.0], [1.0, 2.0]])
    labels = torch.tensor([[0.0, 1.0], [0.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])
    got = compiled(scores, labels, flavor=Flavor(empty="raise"))
    assert got.isnan().tolist() == [False, True, True, True]
    assert got[0] == 1.0
