"""What all losses have in common: invariants, flat lists, blocks, torch.func, compiled code, autocast and refusals."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math
from contextlib import nullcontext
from functools import partial

import loss_invariants
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from lanes import quick
from loss_invariants import doubles, seeded, value_and_gradient
from strategies import examples
from torch.func import grad, jacrev, vmap
from torch_batches import Constants, Largest
from torch_features import functions_with_second_derivatives_in_a_graph, reasons_of_graph_breaks, skip_unless

from ndcg_ml import Flavor
from ndcg_ml.torch import (
    NDCG,
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    Stochastic,
    ndcg,
)
from ndcg_ml.torch.losses import lambdas, neural

pytestmark = pytest.mark.usefixtures("one_thread")
EXPONENTIAL, CUT = Flavor(gain="exponential"), Flavor(gain="exponential", k=2)
SCHEMES = ("lambdarank", "ndcg2", "ndcg2pp")
LOSSES = {
    "dense": partial(ApproxNDCGLoss, EXPONENTIAL, method="dense"),
    "dense, cut": partial(ApproxNDCGLoss, Flavor(k=2), method="dense"),
    "fast": partial(ApproxNDCGLoss, EXPONENTIAL, method="fast"),
    "fast, cut": partial(ApproxNDCGLoss, Flavor(k=2), method="fast"),
    "neural": partial(NeuralNDCGLoss, temperature=0.5),
    "neural, cut": partial(NeuralNDCGLoss, CUT),
    "neural, k above n": partial(NeuralNDCGLoss, Flavor(k=50)),
    "neural, callable": partial(NeuralNDCGLoss, Flavor(discount=lambda rank: 1 / rank)),
    "sinkhorn": partial(NeuralNDCGLoss, Flavor(ideal="local", k=3), sinkhorn=5),
    "lambdarank": partial(LambdaNDCGLoss, EXPONENTIAL),
    "lambdarank, cut": partial(LambdaNDCGLoss, Flavor(k=2)),
    "lambdarank, k above n": partial(LambdaNDCGLoss, Flavor(discount="ln", k=50)),
    "lambdarank, local": partial(LambdaNDCGLoss, Flavor(ideal="local", discount="reciprocal", k=3)),
    "ndcg2": partial(LambdaNDCGLoss, Flavor(k=2), scheme="ndcg2"),
    "ndcg2pp": partial(LambdaNDCGLoss, CUT, scheme="ndcg2pp"),
    "softmax": partial(SoftmaxLoss, EXPONENTIAL),
    "listnet": partial(SoftmaxLoss, Flavor(ideal="local"), target="listnet"),
    "list_mle": partial(ListMLELoss, tie_order="input"),
    "list_mle, cut": partial(ListMLELoss, CUT, tie_order="input"),
}
"""Functions that make the losses that draw nothing."""


def noisy(inner, samples=4, scale=1.0, generator=None, **options):
    return Stochastic(inner(**options), samples=samples, scale=scale, generator=generator)


RANDOM = {
    "plackett_luce": PlackettLuceNDCGLoss,
    "plackett_luce, cut": partial(PlackettLuceNDCGLoss, CUT, samples=5),
    "plackett_luce, callable": partial(PlackettLuceNDCGLoss, Flavor(discount=lambda rank: 1 / rank, ideal="local")),
    "xendcg": partial(SoftmaxLoss, EXPONENTIAL, target="xendcg"),
    "list_mle, drawn": ListMLELoss,
    "noise": partial(noisy, partial(ApproxNDCGLoss, CUT, temperature=0.2)),
    "noise, neural": partial(noisy, NeuralNDCGLoss, samples=2, scale=0.5),
}
"""Functions that make the losses that draw, by `generator` if it is given."""
each_loss = pytest.mark.parametrize("name", LOSSES)
each_random_loss = pytest.mark.parametrize("name", RANDOM)


def data(*shape, dtype=torch.float64):
    """Return scores, labels with an empty list, and a mask."""
    draw = seeded()
    scores = 2 * torch.randn(shape, generator=draw, dtype=dtype)
    labels = torch.randint(0, 5, shape, generator=draw)
    labels[..., 2, :] *= torch.arange(len(labels))[:, None] != 1 if len(shape) == 3 else 0
    return scores, labels, torch.rand(shape, generator=draw) < 0.8


# -- invariants ------------------------------------------------------------------------------------------------------


def is_kept(name, holds):
    """Equal gains are taken as they stand by ListMLE, and the threshold of Approx's cut-off is constant."""
    family = name.split(",")[0]
    return not (
        (family == "list_mle" and holds is loss_invariants.documents_may_stand_in_any_order)
        or (family in ("dense", "fast") and holds is loss_invariants.the_gradient_is_that_of_the_value)
    )


KEPT = [(name, holds) for name in LOSSES for holds in loss_invariants.WITHOUT_NOISE if is_kept(name, holds)]


@pytest.mark.parametrize(("name", "holds"), KEPT, ids=lambda part: getattr(part, "__name__", part))
def test_what_every_loss_keeps_to(name, holds):
    if name.startswith(("lambda", "ndcg2")) and holds is loss_invariants.documents_may_stand_in_any_order:
        holds = partial(holds, tied=False)
    holds(lambda reduction: LOSSES[name](reduction=reduction))


@each_random_loss
@pytest.mark.parametrize("holds", loss_invariants.ANY, ids=lambda holds: holds.__name__)
def test_what_every_loss_that_draws_keeps_to(name, holds):
    if holds is not loss_invariants.it_never_waits_for_an_accelerator:
        holds(lambda reduction: RANDOM[name](generator=seeded(), reduction=reduction))
    elif name != "plackett_luce, callable":  # a generator has a device, and a function is called by the host
        holds(lambda reduction: RANDOM[name](reduction=reduction))


@pytest.mark.parametrize("name", [name for name in LOSSES | RANDOM if not name.endswith("callable")])
def test_losses_that_need_a_cumulative_sum_of_floats_say_so(name):
    scores, loss = torch.rand(3, 200, device="meta", requires_grad=True), (LOSSES | RANDOM)[name]()
    with Constants() as seen:
        loss(scores, torch.ones(3, 200, device="meta")).backward()
    assert (seen.n_sums > 0) == ("use_deterministic_algorithms" in type(getattr(loss, "loss", loss)).__doc__)


@pytest.mark.parametrize("block", [2**20, 5])
@pytest.mark.parametrize(
    "loss",
    [
        ApproxNDCGLoss(method="dense"),
        *(NeuralNDCGLoss(Flavor(k=k), **o) for k in (None, 3) for o in ({}, {"sinkhorn": 4}, {"temperature": 0.3})),
        *(LambdaNDCGLoss(Flavor(k=k), scheme=scheme, sigma=1.5) for k in (None, 2) for scheme in SCHEMES),
    ],
)
def test_a_second_derivative(monkeypatch, loss, block):
    monkeypatch.setattr(lambdas, "_BLOCK", block)
    scores, labels = doubles([0.3, -0.2, 0.9, 0.1], [0.5, 0.1, 7.0, 0.2]), torch.tensor([[3, 0, 1, 2], [0, 2, 4, 1]])
    mask = torch.tensor([[True] * 4, [True, True, False, True]])
    assert torch.autograd.gradgradcheck(lambda s: loss(s, labels, mask), (scores,))


@pytest.mark.parametrize("name", ["fast", "plackett_luce"])
def test_a_second_derivative_that_is_missing_is_refused(name):
    scores, labels, mask = data(3, 9)
    for of_loss in (lambda loss: loss, torch.square):  # the incoming gradient is constant or not
        loss = (LOSSES | RANDOM)[name]()(scores.requires_grad_(), labels, mask)
        (gradient,) = torch.autograd.grad(of_loss(loss), scores, create_graph=True)
        with pytest.raises(RuntimeError, match=r"no second derivative.*(method='dense'|Use ApproxNDCGLoss)"):
            (loss + gradient.square().sum()).backward()
    for advised in (ApproxNDCGLoss(method="dense"), Stochastic(ApproxNDCGLoss(method="dense"))):
        torch.autograd.grad(advised(scores, labels, mask), scores, create_graph=True)[0].square().sum().backward()


def test_the_default_method_has_a_second_derivative_up_to_the_length_that_it_states():
    for device, longest in (("cpu", 128), ("meta", 1024)):
        for width in (longest, longest + 1):
            scores = torch.rand(1, width, device=device, requires_grad=True)
            loss = ApproxNDCGLoss()(scores, torch.ones(1, width, device=device))
            (gradient,) = torch.autograd.grad(loss, scores, create_graph=True)
            with nullcontext() if width == longest else pytest.raises(RuntimeError, match="no second derivative"):
                gradient.sum().backward()


# -- blocks of rows --------------------------------------------------------------------------------------------------

NEURAL, LAMBDA = [NeuralNDCGLoss(Flavor(k=k)) for k in (None, 7)], partial(LambdaNDCGLoss, Flavor(k=11))


@pytest.mark.parametrize("loss", [*NEURAL, *(LAMBDA(scheme=scheme) for scheme in SCHEMES)], ids=repr)
def test_blocks_of_rows_change_nothing(monkeypatch, loss):
    samples = data(3, 4, 30)
    wants = [value_and_gradient(loss, *sample) for sample in zip(*samples, strict=True)]
    for module in (neural, lambdas):
        monkeypatch.setattr(module, "_BLOCK", 500)  # four rows
    for sample, want in zip(zip(*samples, strict=True), wants, strict=True):
        with Largest() as largest:
            got = value_and_gradient(loss, *sample)
        torch.testing.assert_close(got, want, rtol=1e-13, atol=1e-14)
        assert largest.numel <= 500
    # torch.func cannot compute blocks once more in the backward pass.
    same(vmap(grad(loss))(*samples), torch.stack([gradient for _, gradient in wants]))


@pytest.mark.parametrize("loss", [NeuralNDCGLoss(Flavor(k=5)), LambdaNDCGLoss(Flavor(k=5))], ids=repr)
def test_a_cut_list_never_holds_all_pairs(loss):
    # 200 000 squared would be 160 GB.
    scores = torch.linspace(-1, 1, 200_000)[None].requires_grad_()
    loss(scores, torch.arange(200_000)[None] % 5).backward()
    assert scores.grad.isfinite().all()


# -- flat lists ------------------------------------------------------------------------------------------------------

SIZES = {"even": (3, 1, 5, 4), "uneven": (1, 40, 3, 1, 2, 5, 4, 1, 33, 200, 1)}


def flat(sizes, shuffled=True):
    """Return scores, labels and ids of the rows, and the rows of each list in the order of their first one."""
    draw = seeded(2)
    ids = (torch.randperm(len(sizes), generator=draw) - 2).repeat_interleave(torch.tensor(sizes))
    ids = ids[torch.randperm(len(ids), generator=draw)] if shuffled else ids
    scores = torch.randn(len(ids), dtype=torch.float64, generator=draw)
    labels = torch.randint(0, 4, (len(ids),), generator=draw)
    return scores, labels, ids, [(ids == number).nonzero()[:, 0] for number in dict.fromkeys(ids.tolist())]


@pytest.mark.parametrize(("sizes", "shuffled"), [("even", True), ("uneven", False), ("uneven", True)])
@each_loss
def test_flat_lists_are_as_each_by_itself(name, sizes, shuffled):
    scores, labels, ids, lists = flat(SIZES[sizes], shuffled)
    loss, alone, together = LOSSES[name](reduction="none"), *(scores.clone().requires_grad_() for _ in range(2))
    expected = torch.cat([loss(alone[None, rows], labels[None, rows]) for rows in lists])
    weights = torch.arange(1.0, len(lists) + 1, dtype=torch.float64)  # a list in the place of another one shows
    (weights * expected).sum().backward()
    got = loss(together, labels, indexes=ids)
    (weights * got).sum().backward()
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(together.grad, alone.grad, rtol=1e-10, atol=1e-13)


@each_random_loss
def test_batches_of_flat_lists_are_drawn_for_shortest_first(name):
    scores, labels = torch.randn(15, dtype=torch.float64, generator=seeded()), torch.arange(15) % 3
    ids = torch.arange(4).repeat_interleave(torch.tensor([1, 12, 1, 1]))
    # Noise is drawn for row by row, and for padded lists slot by slot: by too little to tell.
    make = partial(RANDOM[name], scale=1e-14) if name.startswith("noise") else RANDOM[name]
    loss = make(generator=seeded(), reduction="none")
    short = loss(scores[[0, 13, 14], None], labels[[0, 13, 14], None], torch.ones((3, 1), dtype=torch.bool))
    want = torch.cat([short[:1], loss(scores[None, 1:13], labels[None, 1:13]), short[1:]])
    got = make(generator=seeded(), reduction="none")(scores, labels, indexes=ids)
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_mean_is_over_the_lists_of_all_lengths(reduction):
    scores, labels, ids, lists = flat(SIZES["uneven"])
    labels[ids == ids[0]] = 0
    each = SoftmaxLoss(reduction="none")(scores, labels, indexes=ids)
    full = sum(bool(labels[rows].any()) for rows in lists)
    assert 0 < full < len(lists)
    got = SoftmaxLoss(reduction=reduction)(scores, labels, indexes=ids)
    torch.testing.assert_close(got, each.sum() / (full if reduction == "mean" else 1))
    for rows in (min(lists, key=len), max(lists, key=len)):
        labels[rows[0]] = -1
    with pytest.raises(ValueError, match="labels must be >= 0 under negative='raise'; got negative ones in 2 queries"):
        SoftmaxLoss()(scores, labels, indexes=ids)


LONG = ["fast, cut", "neural, cut", "lambdarank, cut", "softmax", "list_mle, cut", "plackett_luce, cut", "noise"]


@pytest.mark.parametrize("name", LONG)
def test_one_long_list_does_not_pad_the_short_ones(name):
    ids = torch.arange(10_500).clamp(max=500)
    scores, labels = torch.randn(10_500, requires_grad=True), torch.arange(10_500) % 4
    with Largest() as largest:
        (LOSSES | RANDOM)[name]()(scores, labels, indexes=ids).sum().backward()
    assert scores.grad.isfinite().all()
    assert 10_000 <= largest.numel <= 20 * 10_500  # padded, 501 x 10 000


def test_a_flavor_that_needs_the_order_of_rows_has_it_in_batches():
    # Tied documents have a local ideal in the order in which they stand.
    scores, labels, ids, lists = flat(SIZES["uneven"])
    scores = torch.zeros_like(scores)
    loss = ApproxNDCGLoss(Flavor(ideal="local", ties="first", k=2), reduction="none")
    got, gradient = value_and_gradient(lambda s, y, _: loss(s, y, indexes=ids), scores, labels)
    torch.testing.assert_close(got, torch.cat([loss(scores[None, rows], labels[None, rows]) for rows in lists]))
    assert gradient.isfinite().all()


def test_rows_without_lists_have_no_loss():
    for make in (*LOSSES.values(), *RANDOM.values()):
        none = torch.zeros(0, requires_grad=True)
        loss = make()(none, torch.zeros(0), indexes=torch.zeros(0, dtype=torch.int64))
        loss.backward()
        assert loss == 0


# -- torch.func ------------------------------------------------------------------------------------------------------

MAPPED = LOSSES | {"table": partial(ApproxNDCGLoss, Flavor(gain=(0.0, 1.0, 2.0, 5.0, 9.0)))}


def one_by_one(function, *samples):
    return torch.stack([function(*sample) for sample in zip(*samples, strict=True)])


def same(got, want):
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MAPPED)
def test_losses_mapped_over_samples(name):
    loss, samples = MAPPED[name](), data(3, 4, 17)
    same(vmap(loss)(*samples), one_by_one(loss, *samples))
    slopes = vmap(grad(loss))(*samples)
    same(slopes, torch.stack([value_and_gradient(loss, *sample)[1] for sample in zip(*samples, strict=True)]))
    assert slopes.abs().amax((-1, -2)).min() > 1e-6
    scores, (labels, *_), (mask, *_) = samples
    same(vmap(loss, in_dims=(0, None, None))(scores, labels, mask), one_by_one(lambda s: loss(s, labels, mask), scores))

    def two(s):  # so that the backward pass is mapped over
        return torch.stack([loss(s, labels, mask), 2 * loss(s, labels, mask)])

    rows = jacrev(two)(scores[0])
    same(rows[1], 2 * rows[0])
    same(rows[0], slopes[0])


@each_random_loss
def test_draws_are_vmaps_to_allow(name):
    scores, labels, mask = (part[:1].expand(3, -1, -1) for part in data(3, 4, 17))
    loss = RANDOM[name]()
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(loss)(scores, labels, mask)
    alike = vmap(loss, randomness="same")(scores, labels, mask)
    assert alike[0] == alike[1] == alike[2]
    assert vmap(loss, randomness="different")(scores, labels, mask).unique().numel() == 3
    slopes = vmap(grad(loss), randomness="different")(scores, labels, mask)
    assert slopes.isfinite().all()
    assert slopes.abs().amax((-1, -2)).min() > 0


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch 2.4 loops over the samples
def test_flat_lists_are_mapped_over_if_their_lengths_are_not():
    (scores, *_), (labels, *_), _ = data(3, 4, 17)
    ids = torch.arange(17) % 3
    for function in (lambda s, y: LOSSES["list_mle"]()(s, y, indexes=ids), lambda s, y: ndcg(s, y, indexes=ids)):
        same(vmap(function)(scores, labels), one_by_one(function, scores, labels))
    function = partial(LOSSES["list_mle"](), indexes=ids)
    same(vmap(grad(function))(scores, labels), one_by_one(grad(function), scores, labels))
    for call in (SoftmaxLoss(), ndcg):
        with pytest.raises(ValueError, match=r"indexes must be the same for all samples of torch\.func\.vmap.*mask="):
            vmap(lambda s, y, i: call(s, y, indexes=i))(scores, labels, ids.expand(4, -1))  # noqa: B023
        vmap(lambda s, y, i: call(s, y, indexes=i), in_dims=(0, 0, None))(scores, labels, ids)  # noqa: B023


def test_refused_labels_are_nan_where_they_are_mapped_over():
    scores, labels, _ = data(3, 4, 17)
    labels[1, 2, 3] = -1
    loss = ApproxNDCGLoss(reduction="none")
    for got in (vmap(loss)(scores, labels), vmap(ndcg)(scores, labels)):
        assert [number.tolist() for number in got.isnan().nonzero()] == [[1, 2]]
    with pytest.raises(ValueError, match="labels must be >= 0"):
        vmap(loss, in_dims=(0, None))(scores, labels[1])
    with pytest.raises(ValueError, match="labels must be >= 0"):
        grad(ApproxNDCGLoss())(scores[1], labels[1])


def test_a_callable_gain_needs_labels_that_are_not_mapped_over():
    scores, labels, mask = data(3, 4, 17)
    loss = SoftmaxLoss(Flavor(gain=lambda grade: grade + 1.0))
    want = one_by_one(lambda s: loss(s, labels[0], mask[0]), scores)
    same(vmap(loss, in_dims=(0, None, None))(scores, labels[0], mask[0]), want)
    with pytest.raises(ValueError, match=r"flavor\.gain must be a name or a table if torch\.func\.vmap maps"):
        vmap(loss)(scores, labels, mask)


@pytest.mark.parametrize("flavor", ["sklearn", "lightgbm", "ndcg[ties=best,empty=0]", "ndcg[ideal=local]"])
@pytest.mark.parametrize("k", [None, 3])
def test_the_metric_mapped_over_samples(flavor, k):
    def value(scores, labels, mask):
        return ndcg(scores, labels, mask=mask, flavor=flavor, k=k)

    samples = data(3, 4, 17)
    torch.testing.assert_close(vmap(value)(*samples), one_by_one(value, *samples), equal_nan=True)
    assert not math.isnan(vmap(value)(*samples)[0, 0])


# -- compiled code ---------------------------------------------------------------------------------------------------

quiet = pytest.mark.filterwarnings(
    "ignore:.*should not be instantiated:DeprecationWarning",  # by torch's own tracer
    "ignore:The .grad attribute of a Tensor that is not a leaf",  # looked at by the tracer
)
QUICK = ["dense, cut", "neural, cut", "lambdarank, cut", "softmax", "list_mle, cut"]


def in_a_graph(loss, *, fullgraph=True):
    torch._dynamo.reset()
    return torch.compile(loss, fullgraph=fullgraph, backend="aot_eager")


@pytest.mark.parametrize("name", quick(QUICK, [*QUICK, "fast, cut", "sinkhorn", "ndcg2pp"]))
@quiet
def test_losses_compile_without_a_graph_break(name):
    loss, lists = LOSSES[name](), data(4, 30)
    torch.testing.assert_close(value_and_gradient(in_a_graph(loss), *lists), value_and_gradient(loss, *lists))


@pytest.mark.parametrize("name", quick(["plackett_luce, cut"], ["plackett_luce, cut", "xendcg", "list_mle, drawn"]))
@quiet
def test_draws_of_torch_itself_are_part_of_the_graph(name):
    loss, lists = RANDOM[name](), data(4, 30)
    if name.startswith("plackett_luce"):
        skip_unless(functions_with_second_derivatives_in_a_graph)
    torch.manual_seed(5)
    want = value_and_gradient(loss, *lists)
    graph = in_a_graph(loss)
    torch.manual_seed(5)
    torch.testing.assert_close(value_and_gradient(graph, *lists), want)
    assert value_and_gradient(graph, *lists)[0] != want[0]


@pytest.mark.parametrize("name", quick(["list_mle, drawn"], ["plackett_luce", "xendcg", "list_mle, drawn", "noise"]))
@quiet
def test_draws_from_a_generator_break_the_graph_and_move_it_on(name):
    lists, generator, other = data(4, 30), seeded(), seeded()
    want = value_and_gradient(RANDOM[name](generator=generator), *lists)
    graph = in_a_graph(RANDOM[name](generator=other), fullgraph=False)
    torch.testing.assert_close(value_and_gradient(graph, *lists), want)
    assert torch.equal(generator.get_state(), other.get_state())
    skip_unless(reasons_of_graph_breaks)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"a torch\.Generator cannot be part of a graph"):
        in_a_graph(RANDOM[name](generator=seeded()))(*lists)


@quiet
def test_flat_lists_and_the_metric_break_the_graph_and_keep_their_values():
    scores, labels, ids, _ = flat(SIZES["even"])
    got = in_a_graph(SoftmaxLoss(), fullgraph=False)(scores, labels, indexes=ids)
    torch.testing.assert_close(got, SoftmaxLoss()(scores, labels, indexes=ids))
    metric, other = NDCG(), NDCG()
    compiled = in_a_graph(lambda scores: metric(scores * 2, labels, ids) + 1, fullgraph=False)
    assert compiled(scores) == other(scores, labels, ids) + 1
    assert metric.compute() == other.compute()
    skip_unless(reasons_of_graph_breaks)
    with pytest.raises(torch._dynamo.exc.Unsupported) as raised:
        in_a_graph(SoftmaxLoss())(scores, labels, indexes=ids)
    # PyTorch 2.8 names what surrounds the break, and the reason in the error that this one follows from.
    said = f"{raised.value} {raised.value.__cause__ or raised.value.__context__}"
    assert "lengths of flat lists depend on data" in said
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"ndcg_ml\.torch\.ndcg can be compiled"):
        in_a_graph(metric.update)(scores, labels, ids)


# -- autocast --------------------------------------------------------------------------------------------------------

HALVES = [torch.bfloat16, torch.float16]
each_half = pytest.mark.parametrize("half", HALVES, ids=str)
FORMS = [
    *("dense", "fast", "neural", "neural, cut", "sinkhorn", "lambdarank, cut", "ndcg2pp", "softmax", "listnet"),
    *("list_mle", "xendcg", "list_mle, drawn", "plackett_luce, cut"),
]


def under(half, loss, *, backward_too=False):
    torch.manual_seed(1)
    scores, labels, mask = data(4, 60, dtype=torch.float32)
    scores.requires_grad_()
    with torch.autocast("cpu", dtype=half, enabled=half is not None):
        value = loss(scores, labels, mask)
        if backward_too:
            value.backward()
    if not backward_too:
        value.backward()
    return value.detach(), scores.grad


@pytest.mark.parametrize("backward_too", [False, True])
@each_half
@pytest.mark.parametrize("name", FORMS)
def test_value_and_gradient_are_those_without_autocast(name, half, backward_too):
    loss = (LOSSES | RANDOM)[name]()
    want, got = under(None, loss), under(half, loss, backward_too=backward_too)
    assert want[1].any()
    assert got[0].dtype == torch.float32
    assert torch.equal(got[0], want[0])
    assert torch.equal(got[1], want[1])


@quiet
@pytest.mark.parametrize("half", quick(HALVES[:1], HALVES), ids=str)
def test_compiled_whole_under_autocast(half):
    """Compiled code computes the products of a graph, its backward pass included, under the autocast around it."""
    for loss in (NeuralNDCGLoss(temperature=0.1), NeuralNDCGLoss(temperature=0.1, sinkhorn=3)):
        want, got = under(None, loss), under(half, in_a_graph(loss))
        torch.testing.assert_close(got[0], want[0], rtol=1e-6, atol=0)
        torch.testing.assert_close(got[1], want[1], rtol=1e-4, atol=1e-7)


@each_half
@pytest.mark.parametrize("flavor", ["sklearn", "lightgbm", "ndcg[ideal=local]", "ndcg[aggregate=micro]"])
def test_the_metric_under_autocast(flavor, half):
    scores, labels, _ = data(4, 60, dtype=torch.float32)

    def values():
        metrics = [NDCG(flavor, split_queries=split) for split in (False, True)]
        for metric in metrics:
            metric.update(scores, labels, indexes=torch.arange(4))
        ids = torch.arange(4).repeat_interleave(60)
        lists = ndcg(scores, labels, flavor=flavor, k=[5, None]).values()
        rows = ndcg(scores.flatten(), labels.flatten(), indexes=ids, flavor=flavor, k=5)
        return torch.stack([*lists, rows]).tolist(), [metric.compute().item() for metric in metrics]

    want = values()
    with torch.autocast("cpu", dtype=half):
        assert values() == want


# -- what the host sees ----------------------------------------------------------------------------------------------


@examples(50)
@given(
    st.sampled_from(
        [
            SoftmaxLoss(EXPONENTIAL, reduction="none"),
            SoftmaxLoss("sklearn", target="listnet"),
            ListMLELoss(EXPONENTIAL, tie_order="input"),
            ApproxNDCGLoss(EXPONENTIAL.replace(ideal="recall", k=3)),
            ApproxNDCGLoss(EXPONENTIAL.replace(ideal="max", max_grade=70)),
            LambdaNDCGLoss(EXPONENTIAL.replace(k=10), reduction="sum"),
        ]
    ),
    st.sampled_from([torch.int64, torch.uint8, torch.float16, torch.float32, torch.float64]),
    st.sampled_from([[0], [0, 1, 4], [0, 0.25, 1, 30], [0, 1, 52, 60], [0, 1e-149, 3e-149], [3, 5]]),
    st.sampled_from([1.0, 3e38, math.inf, math.nan]),
    st.booleans(),
    st.integers(0, 99),
)
@example(ApproxNDCGLoss(EXPONENTIAL), torch.float64, [0, 1e-149, 3e-149], 1.0, False, 0)  # the smallest gains
@example(SoftmaxLoss(EXPONENTIAL), torch.int64, [0], 1.0, False, 0)
@example(SoftmaxLoss(EXPONENTIAL), torch.int64, [0, 1, 4], math.inf, True, 0)
def test_what_the_host_sees_changes_no_bit(loss, dtype, grades, largest, masked, seed):
    draw = seeded(seed)
    labels = torch.tensor(grades, dtype=torch.float64).to(dtype)[torch.randint(len(grades), (5, 12), generator=draw)]
    scores = torch.randn(5, 12, generator=draw)
    scores[0, :3] = largest
    mask = torch.rand(5, 12, generator=draw) < 0.7 if masked else None
    seen = value_and_gradient(loss, scores, labels, mask)
    with Largest():  # nothing is looked at while somebody watches
        unseen = value_and_gradient(loss, scores, labels, mask)
    torch.testing.assert_close(seen, unseen, rtol=0.0, atol=0.0, equal_nan=True)


# -- refusals --------------------------------------------------------------------------------------------------------

MADE = {
    "discount": (lambda: ApproxNDCGLoss(Flavor(discount=lambda r: 1 / r)), ValueError,
        "between integer ranks.*Use one of 'log2'",
        lambda: [ApproxNDCGLoss(Flavor(discount=each)) for each in ("log2", "jarvelin", "reciprocal", "ln", "none")]),
    "negative": (lambda: ApproxNDCGLoss(Flavor(negative="allow")), ValueError,
        "negative must be 'raise'.*got 'allow'.*negative='zero'",
        lambda: ApproxNDCGLoss(Flavor(negative="allow").replace(negative="zero"))),
    "gain": (lambda: ApproxNDCGLoss(Flavor(gain=(0, -1))), ValueError, "must be >= 0 in a loss",
        lambda: ApproxNDCGLoss(Flavor(gain=(1, 0)))),
    "micro": (lambda: ApproxNDCGLoss(Flavor(aggregate="micro")), ValueError,
        "aggregate must be 'macro' in a loss.*got 'micro'",
        lambda: ApproxNDCGLoss(Flavor(aggregate="micro").replace(aggregate="macro"))),
    "reduction": (lambda: ApproxNDCGLoss(reduction="avg"), ValueError,
        "reduction must be one of 'mean', 'sum', 'none'; got 'avg'", None),
    "temperature of 0": (lambda: ApproxNDCGLoss(temperature=0), ValueError,
        "temperature must be above 0 and finite; got 0", None),
    "temperature of nan": (lambda: ApproxNDCGLoss(temperature=math.nan), ValueError,
        "temperature must be above 0 and finite", None),
    "temperature as text": (lambda: ApproxNDCGLoss(temperature="1"), TypeError,
        "temperature must be a number above 0 and finite; got '1' of type str", None),
    "temperature of a tensor": (lambda: ApproxNDCGLoss(temperature=torch.tensor(0.0)), ValueError,
        "temperature must be above 0 and finite; got tensor", None),
    "negative cut_temperature": (lambda: ApproxNDCGLoss(cut_temperature=-1.0), ValueError,
        "cut_temperature must be above 0 and finite; got -1.0", None),
    "method": (lambda: ApproxNDCGLoss(method="slow"), ValueError,
        "method must be one of 'auto', 'dense', 'fast'; got 'slow'", None),
    "scheme": (lambda: LambdaNDCGLoss(scheme="ndcg3"), ValueError, "scheme must be one of 'lambdarank', .*got 'ndcg3'",
        lambda: LambdaNDCGLoss(scheme="ndcg2")),
    "sigma": (lambda: LambdaNDCGLoss(sigma=0), ValueError, "sigma must be above 0 and finite; got 0", None),
    "mu": (lambda: LambdaNDCGLoss(mu=math.inf), ValueError, "mu must be above 0 and finite; got inf", None),
    "sinkhorn below 0": (lambda: NeuralNDCGLoss(sinkhorn=-1), ValueError, "sinkhorn must be an integer >= 0; got -1",
        None),
    "sinkhorn or not": (lambda: NeuralNDCGLoss(sinkhorn=True), TypeError, "sinkhorn must be an integer >= 0; got True",
        None),
    "softmax@10": (lambda: SoftmaxLoss(Flavor(k=10)), ValueError,
        r"no ranks to cut off; got 10. Pass flavor.replace\(k=None\)",
        lambda: SoftmaxLoss(Flavor(k=10).replace(k=None))),
    "target": (lambda: SoftmaxLoss(target="label"), ValueError,
        "target must be one of 'gain', 'listnet', 'xendcg'; got 'label'", None),
    "tie_order": (lambda: ListMLELoss(tie_order="best"), ValueError,
        "tie_order must be one of 'random', 'input'; got 'best'", None),
    "seed of softmax": (lambda: SoftmaxLoss(generator=3), TypeError,
        "generator must be a torch.Generator or None; got 3 of type int",
        lambda: SoftmaxLoss(generator=torch.Generator("cpu").manual_seed(3))),
    "seed of list_mle": (lambda: ListMLELoss(generator=3), TypeError, "generator must be a torch.Generator or None",
        lambda: ListMLELoss(generator=torch.Generator("cpu").manual_seed(3))),
    "seed of plackett_luce": (lambda: PlackettLuceNDCGLoss(generator=3), TypeError,
        r"For a seed, pass torch.Generator\(dev",
        lambda: PlackettLuceNDCGLoss(generator=torch.Generator("cpu").manual_seed(3))),
    "seed of noise": (lambda: Stochastic(ApproxNDCGLoss(), generator="0"), TypeError,
        "generator must be a torch.Generator or None",
        lambda: Stochastic(ApproxNDCGLoss(), generator=torch.Generator("cpu").manual_seed(0))),
    "no samples": (lambda: PlackettLuceNDCGLoss(samples=0), ValueError, "samples must be an integer >= 1; got 0", None),
    "2.0 samples": (lambda: PlackettLuceNDCGLoss(samples=2.0), TypeError,
        "samples must be an integer >= 1; got 2.0 of type", None),
    "no samples of noise": (lambda: Stochastic(ApproxNDCGLoss(), samples=0), ValueError,
        "samples must be an integer >= 1; got 0", None),
    "no loss": (lambda: Stochastic(Flavor()), TypeError, "loss must be a module, such as ApproxNDCGLoss",
        lambda: Stochastic(ApproxNDCGLoss(Flavor()))),
    "no scale": (lambda: Stochastic(ApproxNDCGLoss(), scale=0), ValueError, "scale must be above 0 and finite; got 0",
        None),
}  # fmt: skip
ROW, IDS = torch.rand(4), torch.zeros(4, dtype=torch.int64)
CALLED = {
    "no ids": ((ROW, ROW), {}, ValueError, "indexes",
        lambda loss: (loss(ROW[None], ROW[None]), loss(ROW, ROW, indexes=IDS))),
    "ids of another length": ((ROW, ROW), {"indexes": IDS[:3]}, ValueError,
        r"indexes must have the shape of scores, \(4,\)", None),
    "fractions as ids": ((ROW, ROW), {"indexes": ROW}, TypeError, "indexes must hold integers",
        lambda loss: loss(ROW, ROW, indexes=ROW.long())),
    "a mask of rows": ((ROW, ROW, ROW > 0), {"indexes": IDS}, ValueError, "mask must not be given with indexes",
        lambda loss: (loss(ROW, ROW, indexes=IDS), loss(ROW[None], ROW[None], ROW[None] > 0))),
    "ids of lists": ((ROW[None], ROW[None]), {"indexes": IDS}, ValueError, "indexes is for 1-D scores",
        lambda loss: loss(ROW[None], ROW[None], mask=ROW[None] > 0)),
    "fewer labels": ((ROW, ROW[:3]), {"indexes": IDS}, ValueError, "labels must have the shape of scores", None),
    "labels as scores": ((IDS, ROW), {"indexes": IDS}, TypeError, "scores must be floats",
        lambda loss: loss(ROW, IDS, indexes=IDS)),
    "a large gain": ((ROW[None], torch.tensor([[500, 0, 501, 0]])), {}, ValueError,
        r"gains must be at most 2\*\*500 .*got labels with a larger gain in 1 query", None),
    "a small gain": ((ROW[None].double(), doubles([2.0**-501, 0, 1, 0])), {}, ValueError,
        r"gains must be 0 or at least 2\*\*-500 .*got labels with a smaller gain in 1 query", None),
}  # fmt: skip


@pytest.mark.parametrize("case", MADE)
def test_what_is_refused_when_a_loss_is_made(case):
    make, error, words, advised = MADE[case]
    with pytest.raises(error, match=words):
        make()
    if advised is not None:
        advised()


@pytest.mark.parametrize("loss", [SoftmaxLoss, ListMLELoss, LambdaNDCGLoss, ApproxNDCGLoss, PlackettLuceNDCGLoss])
def test_a_callable_gain_below_0_is_refused_when_the_loss_is_called(loss):
    shifted, labels = loss(Flavor(gain=lambda grade: grade - 1.0)), torch.tensor([[2, 1, 0, 3]])
    with pytest.raises(ValueError, match=r"flavor\.gain must be >= 0 in a loss.*<lambda>.* with -1\. Shift it"):
        shifted(ROW[None], labels)
    shifted(ROW[None], labels, labels > 0)  # only documents have gains
    loss(Flavor(gain=lambda grade: grade))(ROW[None], labels)


@pytest.mark.parametrize("case", CALLED)
@pytest.mark.parametrize("name", ["dense", "noise"])
def test_what_is_refused_when_a_loss_is_called(name, case):
    given_, options, error, words, advised = CALLED[case]
    with pytest.raises(error, match=words):
        (LOSSES | RANDOM)[name]()(*given_, **options)
    if advised is not None:
        advised((LOSSES | RANDOM)[name]())
