"""The losses as functions: what the modules give, from the same arguments, compiled too."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import inspect

import torch
from lanes import quick
from loss_invariants import seeded
from torch_features import (
    flavors_by_text_in_a_graph,
    functions_with_second_derivatives_in_a_graph,
    reasons_of_graph_breaks,
    skip_unless,
)

import ndcg_ml.torch
from ndcg_ml import Flavor
from ndcg_ml.torch import (
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    Stochastic,
    approx_ndcg_loss,
    lambda_ndcg_loss,
    list_mle_loss,
    neural_ndcg_loss,
    plackett_luce_ndcg_loss,
    softmax_loss,
)

pytestmark = pytest.mark.usefixtures("one_thread")


PAIRS = {
    "approx": (approx_ndcg_loss, ApproxNDCGLoss),
    "neural": (neural_ndcg_loss, NeuralNDCGLoss),
    "lambda": (lambda_ndcg_loss, LambdaNDCGLoss),
    "plackett_luce": (plackett_luce_ndcg_loss, PlackettLuceNDCGLoss),
    "softmax": (softmax_loss, SoftmaxLoss),
    "list_mle": (list_mle_loss, ListMLELoss),
}
CUT = Flavor(gain="exponential", discount="reciprocal", k=2)
# Arguments that are none of the defaults, and for each of them another value.
OPTIONS = {
    "approx": {"flavor": CUT, "temperature": 0.3, "step": "laplace", "method": "fast", "cut_temperature": 0.7},
    "neural": {"flavor": CUT, "temperature": 0.3, "sinkhorn": 3, "straight_through": False},
    "lambda": {"flavor": CUT, "scheme": "ndcg2pp", "sigma": 1.5, "mu": 3.0},
    "plackett_luce": {"flavor": CUT, "samples": 5, "generator": seeded},
    "softmax": {"flavor": Flavor(gain="exponential"), "target": "xendcg", "generator": seeded},
    "list_mle": {"flavor": CUT, "tie_order": "random", "generator": seeded},
}
OTHER = {
    "flavor": Flavor(gain="binary"),
    "temperature": 0.4,
    "step": "logistic",
    "cut_temperature": 0.9,
    "sinkhorn": 0,
    "straight_through": True,
    "scheme": "lambdarank",
    "sigma": 1.0,
    "mu": 4.0,
    "samples": 6,
    "generator": lambda: seeded(1),
    "target": "listnet",
    "tie_order": "input",
    "reduction": "sum",
}


def drawn_anew(options):
    """The options, with a generator that stands at its start."""
    return {name: value() if name == "generator" else value for name, value in options.items()}


SIZES = (3, 1, 5, 30)


def flat(seed=0):
    scores = torch.randn(sum(SIZES), dtype=torch.float64, generator=seeded(seed))
    labels = torch.randint(0, 4, (sum(SIZES),), generator=seeded(seed + 1))
    return scores, labels


def given_as(form):
    """Positional and keyword arguments of lists of these sizes."""
    scores, labels = flat()
    if form == "indexes":
        ids = torch.tensor([7, -2, 30, 4]).repeat_interleave(torch.tensor(SIZES))
        order = torch.randperm(len(ids), generator=seeded(3))
        return (scores[order], labels[order]), {"indexes": ids[order]}
    if form == "offsets":
        return (scores, labels), {"offsets": torch.tensor([0, *SIZES]).cumsum(0)}
    parts = [torch.split(tensor, SIZES) for tensor in (scores, labels)]
    if form == "nested":
        return tuple(torch.nested.nested_tensor(list(part), layout=torch.jagged) for part in parts), {}
    padded = [torch.nn.utils.rnn.pad_sequence(list(part), batch_first=True) for part in parts]
    mask = torch.arange(max(SIZES)) < torch.tensor(SIZES)[:, None]
    return (*padded, mask), {}


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("form", ["padded", "indexes", "offsets", "nested"])
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_function_is_the_module(name, form, reduction):
    function, module = PAIRS[name]
    arguments, rows = given_as(form)
    options = {**OPTIONS[name], "reduction": reduction}
    got = function(*arguments, **rows, **drawn_anew(options))
    assert torch.equal(got, module(**drawn_anew(options))(*arguments, **rows))


@pytest.mark.parametrize("name", PAIRS)
def test_the_gradient_is_that_of_the_module(name):
    function, module = PAIRS[name]
    scores, labels = (tensor[None] for tensor in flat())
    leaf, other = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    function(leaf, labels, **drawn_anew(OPTIONS[name])).backward()
    module(**drawn_anew(OPTIONS[name]))(other, labels).backward()
    assert torch.equal(leaf.grad, other.grad)
    assert leaf.grad.any()


@pytest.mark.parametrize("name", PAIRS)
def test_the_arguments_are_those_of_the_module(name):
    function, module = PAIRS[name]
    parameters = inspect.signature(function).parameters
    forward = inspect.signature(module.forward).parameters
    names = list(parameters)
    assert names[: len(forward) - 1] == list(forward)[1:]
    assert [parameters[key] for key in names[: len(forward) - 1]] == list(forward.values())[1:]
    own = inspect.signature(module).parameters
    assert names[len(forward) - 1 :] == list(own)
    for key, parameter in own.items():
        assert parameters[key].default == parameter.default
        assert parameters[key].annotation == parameter.annotation
        assert parameters[key].kind == inspect.Parameter.KEYWORD_ONLY
    assert set(own) == {*OPTIONS[name], "reduction"}
    assert function.__name__ in ndcg_ml.torch.__all__


@pytest.mark.parametrize(
    ("name", "option"),
    [(name, option) for name, options in OPTIONS.items() for option in (*options, "reduction") if option != "method"],
)
def test_every_keyword_is_passed_on(name, option):
    function, _ = PAIRS[name]
    arguments, rows = given_as("padded")
    options = {**OPTIONS[name], "reduction": "mean"}
    changed = {**options, option: OTHER[option]}
    want = function(*arguments, **rows, **drawn_anew(options))
    assert torch.equal(want, function(*arguments, **rows, **drawn_anew(options)))
    assert not torch.equal(want, function(*arguments, **rows, **drawn_anew(changed)))


def test_the_method_is_passed_on():
    scores, labels = (tensor[None] for tensor in flat())
    scores.requires_grad_()
    (gradient,) = torch.autograd.grad(approx_ndcg_loss(scores, labels, method="fast"), scores, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        gradient.sum().backward()


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("approx", {"temperature": 0}, ValueError, "temperature must be a finite number > 0; got 0"),
        ("approx", {"step": "gauss"}, ValueError, "step must be one of 'logistic', 'laplace'"),
        ("neural", {"sinkhorn": -1}, ValueError, "sinkhorn must be an integer >= 0"),
        ("lambda", {"scheme": "ndcg3"}, ValueError, "scheme must be one of"),
        ("plackett_luce", {"samples": 0}, ValueError, "samples must be an integer >= 1; got 0"),
        ("plackett_luce", {"generator": 3}, TypeError, "generator must be a torch.Generator or None"),
        ("softmax", {"target": "label"}, ValueError, "target must be one of"),
        ("list_mle", {"tie_order": "best"}, ValueError, "tie_order must be one of 'random', 'input'"),
        *((name, {"reduction": "avg"}, ValueError, "reduction must be one of 'mean', 'sum', 'none'") for name in PAIRS),
        *((name, {"flavor": Flavor(aggregate="micro")}, ValueError, "aggregate='micro'") for name in PAIRS),
        *((name, {"flavor": "no such"}, ValueError, "no such") for name in PAIRS),
        *((name, {"flavor": None}, TypeError, "flavor must be a Flavor") for name in PAIRS),
    ],
)
def test_parameters_are_checked(name, options, error, words):
    arguments, rows = given_as("padded")
    with pytest.raises(error, match=words):
        PAIRS[name][0](*arguments, **rows, **options)


# -- compiled --------------------------------------------------------------------------------------------------------

quiet = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch's own tracer


def compiled(function, *, fullgraph=True):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=fullgraph, backend="aot_eager")


def with_gradient(function, scores, labels, mask, **options):
    scores = scores.clone().requires_grad_()
    value = function(scores, labels, mask, **options)
    value.backward()
    return value.detach(), scores.grad


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("approx", {"flavor": CUT, "temperature": 0.3}),
        pytest.param("approx", {"flavor": "lightgbm@3", "method": "fast"}, marks=pytest.mark.long),
        ("neural", {"flavor": CUT, "temperature": 0.3}),
        pytest.param(
            "neural", {"flavor": "lightgbm@3", "sinkhorn": 3, "straight_through": True}, marks=pytest.mark.long
        ),
        ("lambda", {"flavor": CUT, "sigma": 1.5}),
        pytest.param("lambda", {"flavor": "lightgbm@3", "scheme": "lambda_at_k"}, marks=pytest.mark.long),
        ("softmax", {"flavor": Flavor(gain="exponential")}),
        ("list_mle", {"flavor": CUT, "tie_order": "input"}),
    ],
)
@quiet
def test_functions_compile_without_a_graph_break(name, options):
    if isinstance(options["flavor"], str):
        skip_unless(flavors_by_text_in_a_graph)
    arguments, _ = given_as("padded")
    function, _ = PAIRS[name]
    torch.testing.assert_close(
        with_gradient(compiled(function), *arguments, **options), with_gradient(function, *arguments, **options)
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("plackett_luce", {"flavor": CUT, "samples": 3}),
        pytest.param("softmax", {"target": "xendcg"}, marks=pytest.mark.long),
        pytest.param("list_mle", {}, marks=pytest.mark.long),
    ],
)
@quiet
def test_draws_of_torch_itself_are_part_of_the_graph(name, options):
    if name == "plackett_luce":
        skip_unless(functions_with_second_derivatives_in_a_graph)
    options = {"flavor": Flavor(), **options}
    arguments, _ = given_as("padded")
    function, _ = PAIRS[name]
    torch.manual_seed(5)
    want = with_gradient(function, *arguments, **options)
    graph = compiled(function)
    torch.manual_seed(5)
    torch.testing.assert_close(with_gradient(graph, *arguments, **options), want)
    assert with_gradient(graph, *arguments, **options)[0] != want[0]


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
    arguments, _ = given_as("padded")
    generator, other = seeded(), seeded()
    want = with_gradient(WITH_GENERATOR[name](generator), *arguments)
    torch.testing.assert_close(with_gradient(compiled(WITH_GENERATOR[name](other), fullgraph=False), *arguments), want)
    assert torch.equal(generator.get_state(), other.get_state())


@pytest.mark.long
@quiet
def test_a_function_with_a_generator_breaks_the_graph_too():
    arguments, _ = given_as("padded")
    want = plackett_luce_ndcg_loss(*arguments, generator=seeded())
    got = compiled(plackett_luce_ndcg_loss, fullgraph=False)(*arguments, generator=seeded())
    torch.testing.assert_close(got, want)
    skip_unless(reasons_of_graph_breaks)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"a torch\.Generator cannot be part of a graph"):
        compiled(plackett_luce_ndcg_loss)(*arguments, generator=seeded())


@quiet
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_flat_lists_break_the_graph_and_have_their_loss():
    (scores, labels), rows = given_as("offsets")
    got = compiled(softmax_loss, fullgraph=False)(scores, labels, **rows)
    torch.testing.assert_close(got, softmax_loss(scores, labels, **rows))
    skip_unless(reasons_of_graph_breaks)
    with pytest.raises(torch._dynamo.exc.Unsupported) as raised:
        compiled(softmax_loss)(scores, labels, **rows)
    # PyTorch 2.8 names what surrounds the break, and the reason in the error that this one follows from.
    said = f"{raised.value} {raised.value.__cause__ or raised.value.__context__}"
    assert "lengths of flat and nested lists are data" in said
