"""Compiled code, against eager code: the torch kernel (the NumPy kernel serves eager code here), and the losses."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import math

import torch
from lanes import quick
from loss_invariants import seeded
from torch_features import (
    flavors_by_text_in_a_graph,
    functions_with_second_derivatives_in_a_graph,
    numbers_of_numpy_in_a_graph,
    reasons_of_graph_breaks,
    skip_unless,
)

from ndcg_ml import Flavor
from ndcg_ml.torch import (
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    Stochastic,
    ndcg,
)

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


# -- losses ----------------------------------------------------------------------------------------------------------

quiet = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch's own tracer
CUT = Flavor(gain="exponential", discount="reciprocal", k=2)
SIZES = (3, 1, 5, 30)


def rows():
    scores = torch.randn(sum(SIZES), dtype=torch.float64, generator=seeded(0))
    return scores, torch.randint(0, 4, (sum(SIZES),), generator=seeded(1))


def lists():
    """Scores, labels and mask."""
    parts = [torch.split(tensor, SIZES) for tensor in rows()]
    padded = [torch.nn.utils.rnn.pad_sequence(list(part), batch_first=True) for part in parts]
    return *padded, torch.arange(max(SIZES)) < torch.tensor(SIZES)[:, None]


def in_a_graph(loss, *, fullgraph=True):
    torch._dynamo.reset()
    return torch.compile(loss, fullgraph=fullgraph, backend="aot_eager")


def with_gradient(loss):
    scores, labels, mask = lists()
    scores.requires_grad_()
    value = loss(scores, labels, mask)
    value.backward()
    return value.detach(), scores.grad


@pytest.mark.parametrize(
    "make",
    [
        lambda: ApproxNDCGLoss(CUT, temperature=0.3),
        pytest.param(lambda: ApproxNDCGLoss("lightgbm@3", method="fast"), marks=pytest.mark.long),
        lambda: NeuralNDCGLoss(CUT, temperature=0.3),
        pytest.param(lambda: NeuralNDCGLoss("lightgbm@3", sinkhorn=3), marks=pytest.mark.long),
        lambda: LambdaNDCGLoss(CUT, sigma=1.5),
        pytest.param(lambda: LambdaNDCGLoss("lightgbm@3", scheme="ndcg2pp"), marks=pytest.mark.long),
        lambda: SoftmaxLoss(Flavor(gain="exponential")),
        lambda: ListMLELoss(CUT, tie_order="input"),
    ],
)
@quiet
def test_losses_compile_without_a_graph_break(make):
    torch.testing.assert_close(with_gradient(in_a_graph(make())), with_gradient(make()))


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlackettLuceNDCGLoss(CUT, samples=3),
        pytest.param(lambda: SoftmaxLoss(target="xendcg"), marks=pytest.mark.long),
        pytest.param(lambda: ListMLELoss(), marks=pytest.mark.long),
    ],
)
@quiet
def test_draws_of_torch_itself_are_part_of_the_graph(make):
    loss = make()
    if isinstance(loss, PlackettLuceNDCGLoss):
        skip_unless(functions_with_second_derivatives_in_a_graph)
    torch.manual_seed(5)
    want = with_gradient(loss)
    graph = in_a_graph(loss)
    torch.manual_seed(5)
    torch.testing.assert_close(with_gradient(graph), want)
    assert with_gradient(graph)[0] != want[0]


WITH_GENERATOR = {
    "plackett_luce": lambda generator: PlackettLuceNDCGLoss(samples=3, generator=generator),
    "xendcg": lambda generator: SoftmaxLoss(target="xendcg", generator=generator),
    "list_mle": lambda generator: ListMLELoss(generator=generator),
    "gumbel": lambda generator: Stochastic(ApproxNDCGLoss(), samples=2, generator=generator),
}


@pytest.mark.parametrize("name", quick(["list_mle"], WITH_GENERATOR))
@quiet
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # looked at by the tracer
def test_draws_from_a_generator_break_the_graph_and_move_it_on(name):
    generator, other = seeded(), seeded()
    want = with_gradient(WITH_GENERATOR[name](generator))
    torch.testing.assert_close(with_gradient(in_a_graph(WITH_GENERATOR[name](other), fullgraph=False)), want)
    assert torch.equal(generator.get_state(), other.get_state())
    skip_unless(reasons_of_graph_breaks)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"a torch\.Generator cannot be part of a graph"):
        in_a_graph(WITH_GENERATOR[name](seeded()))(*lists())


@quiet
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_flat_lists_break_the_graph_and_have_their_loss():
    ids = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))
    got = in_a_graph(SoftmaxLoss(), fullgraph=False)(*rows(), indexes=ids)
    torch.testing.assert_close(got, SoftmaxLoss()(*rows(), indexes=ids))
    skip_unless(reasons_of_graph_breaks)
    with pytest.raises(torch._dynamo.exc.Unsupported) as raised:
        in_a_graph(SoftmaxLoss())(*rows(), indexes=ids)
    # PyTorch 2.8 names what surrounds the break, and the reason in the error that this one follows from.
    said = f"{raised.value} {raised.value.__cause__ or raised.value.__context__}"
    assert "lengths of flat lists depend on data" in said


@quiet
def test_the_metric_breaks_the_graph_of_a_module_and_counts():
    pytest.importorskip("torchmetrics")
    from ndcg_ml.torch import NDCG

    metric, other = NDCG(), NDCG()
    scores, labels, _ = lists()
    compiled = in_a_graph(lambda scores: metric(scores * 2, labels) + 1, fullgraph=False)
    assert compiled(scores) == other(scores, labels) + 1
    assert metric.compute() == other.compute()
    skip_unless(reasons_of_graph_breaks)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"ndcg_ml\.torch\.ndcg can be compiled"):
        in_a_graph(metric.update)(scores, labels)
