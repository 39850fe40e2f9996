"""The torch room at its limits: caps one below, at and above, defaults, and inputs of the smallest size."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import inspect
import itertools
import math
from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

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
from ndcg_ml.torch import _gains as gains
from ndcg_ml.torch._host import on_host, torch_kernel
from ndcg_ml.torch._inputs import in_batches
from ndcg_ml.torch._kernel import snapped
from ndcg_ml.torch._state import rows_of
from ndcg_ml.torch.losses import _soft_ranks, approx, lambdas, neural
from ndcg_ml.torch.losses._draws import gumbel, normal
from ndcg_ml.torch.metric import ByCutoff


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


# -- defaults --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (ApproxNDCGLoss, {"temperature": 1.0, "step": "logistic", "method": "auto", "cut_temperature": 1.0}),
        (LambdaNDCGLoss, {"scheme": "lambdarank", "sigma": 1.0, "mu": 10.0}),
        (NeuralNDCGLoss, {"temperature": 1.0, "sinkhorn": 0, "straight_through": False}),
        (PlackettLuceNDCGLoss, {"samples": 16, "generator": None}),
        (SoftmaxLoss, {"target": "gain", "generator": None}),
        (ListMLELoss, {"tie_order": "random", "generator": None}),
    ],
)
def test_defaults_of_the_losses(function, expected):
    parameters = inspect.signature(function).parameters.values()
    assert {each.name: each.default for each in parameters} == {"flavor": "sklearn", **expected, "reduction": "mean"}


def test_defaults_of_the_metric_and_of_noise():
    for function, expected in (
        (Stochastic, {"noise": "gumbel", "samples": 8, "scale": 1.0, "generator": None}),
        (
            ndcg,
            {"flavor": "sklearn", "k": ..., "mask": None, "indexes": None, "retrieved": None, "doc_id": None},
        ),
        (
            NDCG,
            {
                "flavor": "sklearn", "k": ..., "query_ids": "global", "split_queries": False, "compute_on_cpu": False,
                "dist_sync_on_step": False, "process_group": None, "dist_sync_fn": None,
                "distributed_available_fn": None, "sync_on_compute": True, "compute_with_cache": True,
            },
        ),
    ):  # fmt: skip
        parameters = inspect.signature(function).parameters.values()
        assert {each.name: each.default for each in parameters if each.default is not each.empty} == expected


# -- caps that are a matter of time and memory -----------------------------------------------------------------------


def test_lists_of_up_to_128_slots_are_dense_on_the_cpu_and_of_1024_elsewhere():
    loss = ApproxNDCGLoss()
    for device, most in (("cpu", 128), ("meta", 1024)):
        assert [loss._takes_pairs(torch.empty(1, n, device=device)) for n in (most - 1, most, most + 1)] == [1, 1, 0]
    assert (approx._DENSE_UP_TO_ON_CPU, approx._DENSE_UP_TO) == (128, 1024)


def test_a_step_is_so_many_exponentials():
    terms = {key: len(coefficients) for key, coefficients in _soft_ranks._TAILS.items()}
    assert terms == {
        ("logistic", torch.float64): 20,
        ("logistic", torch.float32): 12,
        ("laplace", torch.float64): 1,
        ("laplace", torch.float32): 1,
    }


def test_a_million_pairs_and_four_million_entries_are_held_at_once():
    assert (lambdas._BLOCK, neural._BLOCK) == (1_048_576, 4_194_304)


@pytest.mark.parametrize(
    ("room", "make"),
    [(lambdas, lambda k: LambdaNDCGLoss(Flavor(k=k))), (neural, lambda k: NeuralNDCGLoss(Flavor(k=k)))],
)
@pytest.mark.parametrize(
    ("block", "k", "rows"),
    [
        (240, 4, [4]),  # all entries fit: 2 lists of 30 documents at 4 ranks
        (239, 4, [3, 1]),
        (240, 5, [4, 1]),
        (120, 4, [2, 2]),
        (119, 3, [1, 1, 1]),
        (59, 2, [1, 1]),  # less than one row still is one
        (1, 2, [1, 1]),
    ],
)
def test_ranks_are_taken_in_blocks_that_fit(monkeypatch, room, make, block, k, rows):
    name = {lambdas: "_pairs", neural: "_block"}[room]
    seen, recomputed = [], []
    inner, again = getattr(room, name), room.recomputed

    def spied(*arguments):
        if room is lambdas:
            upper, lower = arguments[5], arguments[6]
            assert lower == slice(upper.start, 30)
        else:
            upper = slice(arguments[5], arguments[6])
        seen.append((upper.start, upper.stop))
        return inner(*arguments)

    def counted(function, *arguments):
        recomputed.append(1)
        return again(function, *arguments)

    monkeypatch.setattr(room, name, spied)
    monkeypatch.setattr(room, "recomputed", counted)
    monkeypatch.setattr(room, "_BLOCK", block)
    scores, labels = torch.randn(2, 30, generator=seeded()), torch.randint(0, 4, (2, 30), generator=seeded(1))
    make(k)(scores, labels)
    starts = [0, *itertools.accumulate(rows)]
    assert seen == list(itertools.pairwise(starts))
    assert len(recomputed) == (len(rows) if len(rows) > 1 else 0)


class Counted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.by_name = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.by_name[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


# -- the size of gains -----------------------------------------------------------------------------------------------


def test_exponential_gains_of_fractions_keep_their_digits():
    grades = [0.0, 1e-300, 1e-9, 0.5, 1.0, 1.5, 2.0, 10.0, 30.0, -1e-9, -0.5, -1.0, -1.5, -40.0]
    got = gains._exponential(torch.tensor(grades, dtype=torch.float64)).tolist()
    assert got == pytest.approx([math.expm1(grade * math.log(2)) for grade in grades], rel=1e-14, abs=0)
    whole = (0.0, 1.0, 2.0, 10.0, 30.0, -1.0)
    assert [got[grades.index(grade)] for grade in whole] == [2.0**grade - 1.0 for grade in whole]


def test_a_value_just_above_one_is_one():
    for dtype, rounding in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        values = torch.tensor([0.5, 1.0, 1 + 0.4 * rounding, 1 + 1.6 * rounding, 1.5, 2.5, math.nan], dtype=dtype)
        got = snapped(values)
        assert got[:3].tolist() == [0.5, 1.0, 1.0]
        torch.testing.assert_close(got[3:], values[3:], rtol=0, atol=0, equal_nan=True)


# -- the smallest inputs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["average", "first", "docid"])
@pytest.mark.parametrize("ideal", ["global", "recall", "local", "max", "given"])
@pytest.mark.parametrize("k", [None, 1, 3])
def test_lists_without_a_slot_are_empty_queries(ties, ideal, k):
    flavor = Flavor(ties=ties, ideal=ideal, k=k, empty=1.0, max_grade=4.0 if ideal == "max" else None)
    ids = {"doc_id": torch.zeros(2, 0, dtype=torch.int64)} if ties == "docid" else {}
    for gain, shorts in itertools.product(("linear", "exponential"), ("score", "zero")):
        with torch_kernel():
            got = ndcg(
                torch.zeros(2, 0), torch.zeros(2, 0), flavor=flavor.replace(gain=gain, short_lists=shorts), **ids
            )
        assert got.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("ties", ["first", "last", "best", "worst"])
@pytest.mark.parametrize(("width", "k"), [(64, 4), (64, 2), (48, 3), (16, 1)])
def test_fewer_documents_than_ranks_in_a_long_list(ties, width, k):
    """Ranks that no document has add nothing, wherever the few documents stand."""
    flavor = Flavor(ties=ties, k=k)
    scores, labels = (
        torch.rand(width, width, generator=seeded()),
        torch.randint(1, 4, (width, width), generator=seeded()),
    )
    for n in range(1, k + 1):
        mask = torch.rand(width, width, generator=seeded(n)).argsort(-1) < n
        want = ndcg(scores, labels, flavor=flavor, mask=mask)
        with torch_kernel():
            got = ndcg(scores, labels, flavor=flavor, mask=mask)
        torch.testing.assert_close(got, want, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("sizes", "groups"), [((2,), 1), ((2, 2), 1), ((1, 9), 1), ((9, 1, 1), 2), ((1, 3, 9, 1), 3), ((1, 2, 40), 3)]
)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_noise_around_lists_in_one_two_and_more_groups(sizes, groups, reduction):
    n = sum(sizes)
    scores, labels = torch.randn(n, dtype=torch.float64, generator=seeded()), torch.arange(n) % 3 + 1
    loss = ApproxNDCGLoss(reduction=reduction)
    ids = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    assert len(in_batches(scores, labels, indexes=ids)[0]) == groups
    noisy = Stochastic(loss, samples=2, scale=1e-14, generator=seeded())
    torch.testing.assert_close(
        noisy(scores, labels, indexes=ids), loss(scores, labels, indexes=ids), rtol=1e-9, atol=1e-11
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_lists_of_one_document_take_the_short_way_where_a_mask_or_a_single_one_says_what_they_are():
    def taken(n, **given):
        return on_host(Flavor(), (None,), torch.rand(n, 1), torch.ones(n, 1), **given) is not None

    mask = torch.ones(3, 1, dtype=torch.bool)
    assert taken(3, mask=mask)
    assert taken(1, mask=mask[:1])
    assert taken(1)
    assert not taken(3)
    three = torch.rand(1, 3, 1)
    assert on_host(Flavor(), (None,), three, torch.ones_like(three), mask=mask[None]) is None
    assert on_host(Flavor(), (None,), three.mT, torch.ones_like(three.mT)) is not None


# -- ranks and runs, with a gain at every one of them ------------------------------------------------------------------


@pytest.mark.parametrize(("width", "k"), [(12, None), (12, 5), (60, 3), (60, 1), (900, 50)])
@pytest.mark.parametrize("form", ["padded", "flat"])
def test_a_document_without_a_tie_has_its_own_discount_to_the_last_digit(width, k, form):
    flavor = Flavor(k=k, gain="binary")
    depth = width if k is None else k
    labels = torch.eye(width)[:, torch.randperm(width, generator=seeded())]
    scores = -torch.arange(float(width)).expand(width, width)[:, torch.randperm(width, generator=seeded())]
    with torch_kernel():
        if form == "padded":
            got = ndcg(scores, labels, flavor=flavor)
        else:
            ids = torch.arange(width).repeat_interleave(width)
            got = ndcg(scores.flatten(), labels.flatten(), flavor=flavor, indexes=ids)
    ranks = torch.arange(1.0, width + 1, dtype=torch.float64)
    want = torch.where(ranks <= depth, gains.discount_at(flavor, ranks), 0.0)
    assert got[: depth - 1].tolist() == want[: depth - 1].tolist()
    # The run at the edge of a long list may go on below, and alone is a difference of sums.
    torch.testing.assert_close(got[depth - 1 :], want[depth - 1 :], rtol=1e-14, atol=0)


@pytest.mark.parametrize("ties", ["average", "first", "last", "best", "worst"])
@pytest.mark.parametrize("levels", [1, 2, 7, 29, 10_000])
@pytest.mark.parametrize("ks", [[None, 1, 5], [1], [2], [3, 2, 1], [7, 100]])
def test_long_lists_of_documents_that_all_gain_are_the_numpy_kernel(ties, levels, ks):
    """Also where the run that crosses the cut-off has one document, or where there are fewer than the cut-off."""
    flavor = Flavor(ties=ties, gain="exponential", empty=0)
    for width, seed in itertools.product((47, 64, 130), range(2)):
        scores = torch.randint(0, levels, (4, width), generator=seeded(seed)).double()
        labels = torch.randint(1, 5, (4, width), generator=seeded(seed + 9))
        mask = torch.rand(4, width, generator=seeded(seed)) < torch.tensor([[1.0], [0.5], [0.06], [0.02]])
        for given in ({}, {"mask": mask}, {"retrieved": mask}):
            want = ndcg(scores, labels, flavor=flavor, k=ks, **given)
            for kind in (scores, scores.long()):
                with torch_kernel():
                    got = ndcg(kind, labels, flavor=flavor, k=ks, **given)
                for k in ks:
                    torch.testing.assert_close(got[k], want[k], rtol=1e-13, atol=0)


@pytest.mark.parametrize("drop", [False, True])
def test_a_list_without_a_slot_or_a_document_leaves_one_row(drop):
    ids = torch.tensor([3, 8])
    nothing = torch.zeros(2, 0)
    rows = rows_of(nothing, nothing, ids, None, drop=drop)
    assert (rows.ids.tolist(), rows.listed.tolist()) == ([3, 8], [False, False])
    assert (rows.preds.tolist(), rows.target.tolist()) == ([0.0, 0.0], [0.0, 0.0])
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    mask = torch.tensor([[False, False], [False, True]])
    rows = rows_of(values, values + 1, ids, mask, drop=drop)
    if drop:
        assert (rows.ids.tolist(), rows.listed.tolist()) == ([3, 8], [False, True])
        assert (rows.preds.tolist(), rows.target.tolist()) == ([1.0, 4.0], [2.0, 5.0])
    else:
        assert (rows.ids.tolist(), rows.listed.tolist()) == ([3, 3, 8, 8], [False, False, False, True])
        assert (rows.preds.tolist(), rows.target.tolist()) == ([1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.0])


def below_zero(grade):
    return grade - 1.5


@pytest.mark.parametrize(
    ("changes", "negative"),
    [
        ({"gain": "linear", "negative": "allow"}, True),
        ({"gain": "exponential", "negative": "allow"}, True),
        ({"gain": "binary", "negative": "allow"}, False),
        ({"gain": "judged", "negative": "allow"}, False),
        ({"gain": "linear", "negative": "zero"}, False),
        ({"gain": below_zero}, True),
        ({"gain": (0.0, 1.0, 2.0)}, False),
        ({"gain": (0.0, -1.0, 2.0)}, True),
    ],
    ids=["linear", "exponential", "binary", "judged", "zero", "function", "table", "table below 0"],
)
def test_slots_outside_the_pool_stay_below_gains_below_zero(changes, negative):
    flavor = Flavor(**changes, empty=0)
    assert gains.may_be_negative(flavor) is negative
    labels = torch.tensor([[2.0, -1.0, -3.0, 1.0, 5.0], [2.0, 2.0, -1.0, 0.0, 5.0]])
    if not isinstance(flavor.gain, str):
        labels = labels.clamp(0, 2)
    mask = torch.tensor([[True, True, True, False, False], [True, True, True, True, False]])
    scores = torch.tensor([[0.1, 0.2, 0.3, 0.9, 0.8], [0.1, 0.3, 0.2, 0.4, 0.9]])
    for k, given in itertools.product((None, 3), ({"mask": mask}, {"retrieved": mask}, {})):
        for ideal in ("global", "recall"):
            cut = flavor.replace(k=k, ideal=ideal)
            want = ndcg(scores, labels, flavor=cut, **given)
            with torch_kernel():
                torch.testing.assert_close(ndcg(scores, labels, flavor=cut, **given), want, rtol=1e-13, atol=0)


# -- what few callers reach --------------------------------------------------------------------------------------------


class Sum(torch.nn.Module):
    """A loss that is none of this package's."""

    def forward(self, scores, labels, mask=None, *, indexes=None):
        self.given = (mask, indexes)
        return (scores * labels).sum()


def test_noise_around_any_module():
    loss = Sum()
    scores, labels = torch.randn(3, 4, dtype=torch.float64, generator=seeded()), torch.arange(12).reshape(3, 4)
    mask = torch.ones(3, 4, dtype=torch.bool)
    noisy = Stochastic(loss, samples=3, scale=0.5, generator=seeded(4))
    drawn = gumbel(scores, 3, seeded(4))
    torch.testing.assert_close(noisy(scores, labels, mask), ((scores + 0.5 * drawn) * labels).sum() / 3)
    assert loss.given[0] is mask
    assert loss.given[1] is None
    rows, grades, ids = scores.flatten(), labels.flatten(), torch.arange(3).repeat_interleave(4)
    flat = Stochastic(loss, samples=3, scale=1e-14, generator=seeded())(rows, grades, indexes=ids)
    torch.testing.assert_close(flat, loss(rows, grades))
    Stochastic(loss, samples=1, generator=seeded())(rows, grades, indexes=ids)
    assert loss.given[0] is None
    assert loss.given[1] is ids


def test_the_smooth_ndcg_of_documents_is_the_rest_of_the_loss():
    loss = ApproxNDCGLoss(Flavor(k=2), temperature=0.3, reduction="none")
    scores, labels = (
        torch.randn(3, 5, dtype=torch.float64, generator=seeded()),
        torch.randint(1, 4, (3, 5), generator=seeded()),
    )
    lists = loss._read(scores, labels, None)
    smooth = loss.ndcg(lists.scores, lists.weight, lists.ranked)
    torch.testing.assert_close(1.0 - smooth, loss(scores, labels))


def test_scores_of_unsigned_64_bits_and_complex_numbers():
    labels = torch.tensor([[1, 3, 2]])
    scores = torch.tensor([[5, 2**63 + 4096, 7]], dtype=torch.uint64)
    with torch_kernel():
        assert ndcg(scores, labels).item() == ndcg(torch.tensor([[1.0, 3.0, 2.0]]), labels).item()
        for name, arguments in (
            ("scores", (labels.to(torch.complex64), labels)),
            ("labels", (labels, labels.to(torch.complex64))),
        ):
            with pytest.raises(TypeError, match=f"{name} must hold real numbers; got dtype torch.complex64"):
                ndcg(*arguments)


# -- the metric ------------------------------------------------------------------------------------------------------

SWITCHES = (
    "_is_synced", "_should_unsync", "_to_sync", "_cache", "_computed", "_enable_grad", "compute_on_cpu",
    "_update_count", "_batch_alone", "_closed",
)  # fmt: skip
SCORES, LABELS, IDS = torch.tensor([0.3, 0.2, 0.1, 0.4]), torch.tensor([1, 0, 1, 1]), torch.tensor([5, 5, 6, 6])


@pytest.mark.parametrize("settings", [{}, {"sync_on_compute": False}, {"compute_on_cpu": True}])
def test_a_refused_batch_leaves_every_switch_as_it_was(settings):
    metric, plain = NDCG(**settings), NDCG(**settings)
    for each in (metric, plain):
        each(SCORES, LABELS, IDS)
        each.update(SCORES, LABELS, IDS + 10)
    before = {name: getattr(metric, name) for name in SWITCHES}
    with pytest.raises(ValueError, match="must not hold NaN"):
        metric(torch.full((2,), math.nan), torch.ones(2), torch.tensor([1, 1]))
    after = {name: getattr(metric, name) for name in SWITCHES}
    assert after == {**before, "_computed": None, "_cache": None}
    assert metric.compute() == plain.compute()


def test_merged_and_loaded_states_count_their_updates():
    def made(n, query_ids="batch"):
        metric = NDCG(query_ids=query_ids)
        for _ in range(n):
            metric.update(SCORES, LABELS, IDS)
        return metric

    for mine, theirs in ((0, 1), (2, 3)):
        metric = made(mine)
        metric.merge_state(made(theirs))
        assert metric.update_count == mine + theirs
        metric.merge_state(made(theirs).metric_state)
        assert metric.update_count == mine + theirs + 1
        assert metric.compute() == pytest.approx(made(1).compute().item())
    saved = made(2)
    saved.persistent(True)
    for n in (0, 1, 4):
        metric = made(n)
        metric.persistent(True)
        metric.load_state_dict(saved.state_dict())
        assert metric.update_count == max(n, 1)
        assert metric.n_queries == 4


def test_the_name_of_a_meaning_is_that_of_every_process():
    (name,) = (name for name in NDCG("sklearn@5")._defaults if name.startswith("meaning_"))
    assert len(name) == len("meaning_") + 16
    int(name.removeprefix("meaning_"), 16)
    (again,) = (name for name in NDCG("sklearn", k=5)._defaults if name.startswith("meaning_"))
    (other,) = (name for name in NDCG("sklearn", k=6)._defaults if name.startswith("meaning_"))
    assert name == again != other


def test_a_metric_says_what_it_has_seen_twice():
    metric = NDCG()
    for ids in (IDS, IDS - 1, IDS + 1):
        metric.update(SCORES, LABELS, ids)
    with pytest.raises(ValueError, match=r"; 2 of the queries appeared more than once \(such as id 5\)"):
        metric.compute()


def test_what_is_on_another_device_is_named_as_the_caller_named_it():
    here, there = torch.zeros(1, 3), torch.zeros(1, 3, device="meta")
    ids, far = torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.int64, device="meta")
    flags = torch.ones(1, 3, dtype=torch.bool, device="meta")
    loss = SoftmaxLoss()
    for call, name, of in (
        (lambda: ndcg(here, there), "labels", "scores"),
        (lambda: ndcg(here, here, mask=flags), "mask", "scores"),
        (lambda: ndcg(here, here, retrieved=flags), "retrieved", "scores"),
        (lambda: ndcg(here, here, doc_id=there.long()), "doc_id", "scores"),
        (lambda: ndcg(here[0], here[0], indexes=far), "indexes", "scores"),
        (lambda: NDCG().update(here, there), "target", "preds"),
        (lambda: NDCG().update(here, here, mask=flags), "mask", "preds"),
        (lambda: NDCG().update(here[0], here[0], far), "indexes", "preds"),
        (lambda: NDCG().update(here, here, far[:1]), "indexes", "preds"),
        (lambda: loss(here, there), "labels", "scores"),
        (lambda: loss(here, here, flags), "mask", "scores"),
        (lambda: loss(here[0], there[0], indexes=ids), "labels", "scores"),
        (lambda: loss(here[0], here[0], indexes=far), "indexes", "scores"),
    ):
        message = rf"{name} must be on the device of {of}, cpu; got meta\. Move it: {name}\.to\({of}\.device\)\."
        with pytest.raises(ValueError, match=message):
            call()


def test_nested_tensors_are_refused():
    jagged = torch.nested.nested_tensor([torch.rand(2), torch.rand(3)], layout=torch.jagged)
    for call in (ndcg, ApproxNDCGLoss(), Stochastic(ApproxNDCGLoss()), NDCG().update, NDCG(split_queries=True).update):
        with pytest.raises(TypeError, match=r"must not be a nested tensor\. Write torch\.nested\.to_padded_tensor"):
            call(jagged, jagged)


def test_no_rows_are_one_batch_without_a_slot():
    nothing = torch.zeros(0)
    ((scores, labels, mask),), places = in_batches(nothing, nothing, indexes=nothing.long())
    assert scores.shape == labels.shape == mask.shape == (0, 0)
    assert places is None


@pytest.mark.parametrize("step", _soft_ranks.STEPS)
@pytest.mark.parametrize("n", [1, 5, 16, 17, 40])
def test_smooth_ranks_of_any_number_of_dimensions(step, n):
    scores = torch.randn(2, 3, n, dtype=torch.float64, generator=seeded())
    valid = torch.rand(2, 3, n, generator=seeded(1)) < 0.8
    for ranks in (_soft_ranks.dense_soft_ranks, _soft_ranks.fast_soft_ranks):
        whole = scores.clone().requires_grad_()
        got = ranks(whole, valid, 0.7, step)
        (got * torch.arange(n)).sum().backward()
        for at in itertools.product(range(2), range(3)):
            alone = scores[at].clone().requires_grad_()
            want = ranks(alone, valid[at], 0.7, step)
            (want * torch.arange(n)).sum().backward()
            torch.testing.assert_close(got[at], want, rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(whole.grad[at], alone.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_is_finite_at_both_ends_of_the_draws(monkeypatch, dtype):
    like, finfo = torch.zeros(1, 2, dtype=dtype), torch.finfo(dtype)
    for draw, least, most in ((0.0, finfo.tiny, finfo.tiny), (1.0, 1.0, 1 - finfo.eps / 2), (0.25, 0.25, 0.25)):
        monkeypatch.setattr(torch, "rand", lambda shape, draw=draw, **given: torch.full(shape, draw, **given))
        quantile = torch.special.ndtri(torch.tensor(most, dtype=dtype))
        assert normal(like, 3, None).unique().tolist() == [quantile.item()]
        if draw < 1:
            drawn = -torch.log(-torch.log(torch.tensor(least, dtype=dtype)))
            assert gumbel(like, 3, None).unique().tolist() == [drawn.item()]


def test_values_by_cutoff_are_found_by_numbers_and_names_alone():
    values = ByCutoff(ndcg_at_5=torch.tensor(0.5), ndcg=torch.tensor(0.25))
    assert values[5] is values["ndcg_at_5"]
    assert values[None] is values["ndcg"]
    for key in ("5", 5.0, "None", True, 6, "ndcg_at_6"):
        with pytest.raises(KeyError):
            values[key]
