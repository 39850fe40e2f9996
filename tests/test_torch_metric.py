"""The torchmetrics metric: sums over batches and processes, inside modules, collections and casts."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torchmetrics import MetricCollection

from ndcg_ml import Flavor, evaluate
from ndcg_ml.torch import NDCG

GENERATOR = torch.Generator().manual_seed(5)


@pytest.fixture(autouse=True, scope="module", params=["host", "device"])
def kernel(request):
    """Both ways to the sums: the NumPy kernel that serves CPU tensors, and the torch kernel that serves devices."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "device":
            patch.setattr("ndcg_ml.torch.metric.host_sums", lambda *_: None)
        yield request.param


def batches(n_batches, size=4, width=6):
    """Scores with ties, labels with empty queries, and masks."""
    for _ in range(n_batches):
        shape = (size, width)
        labels = torch.randint(0, 4, shape, generator=GENERATOR) * (torch.rand(size, 1, generator=GENERATOR) < 0.8)
        scores = torch.randint(0, 5, shape, generator=GENERATOR) / 4
        yield scores, labels, torch.rand(shape, generator=GENERATOR) < 0.8


# -- the value -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(
    st.builds(
        Flavor,
        gain=st.sampled_from(["linear", "exponential", (0, 1, 4, 9)]),
        ideal=st.sampled_from(["global", "local"]),
        ideal_depth=st.sampled_from(["k", "retrieved"]),
        short_lists=st.sampled_from(["score", "zero"]),
        ties=st.sampled_from(["average", "first"]),
        empty=st.sampled_from([0.0, 1.0, math.nan, "skip"]),
        aggregate=st.sampled_from(["macro", "micro"]),
        k=st.sampled_from([None, 2]),
    ),
    st.booleans(),
)
def test_many_small_updates_are_one_evaluation(flavor, several):
    ks = [1, 3, None] if several else ...
    metric = NDCG(flavor, k=ks)
    seen = list(batches(12))
    for number, (scores, labels, mask) in enumerate(seen):
        rows = torch.arange(4)[:, None].expand(4, 6)
        if number % 2:
            metric.update(scores, labels, mask=mask)
        else:
            mask[:, 0] = True  # a flat query has a row
            order = torch.randperm(int(mask.sum()), generator=GENERATOR)
            if flavor.ties == "first":
                order = order.sort().values
            metric.update(scores[mask][order], labels[mask][order], indexes=rows[mask][order])
    scores, labels, mask = (torch.cat(part).numpy() for part in zip(*seen, strict=True))
    want = evaluate(labels, scores, flavor=flavor, k=ks, mask=mask).value
    got = metric.compute()
    if several:
        assert list(got) == ["ndcg_at_1", "ndcg_at_3", "ndcg"]
        for k in ks:
            assert got[k].item() == pytest.approx(want[k], abs=1e-12, nan_ok=True)
    else:
        assert got.dtype == torch.float64
        assert got.shape == ()
        assert got.item() == pytest.approx(want, abs=1e-12, nan_ok=True)


def test_query_ids_mean_nothing_beyond_their_batch():
    metric = NDCG()
    metric.update(torch.tensor([0.9, 0.1]), torch.tensor([1, 0]), indexes=torch.tensor([0, 0]))
    metric.update(torch.tensor([0.9, 0.1]), torch.tensor([0, 1]), indexes=torch.tensor([0, 0]))
    assert metric.n_queries == 2
    assert metric.compute().item() == pytest.approx((1 + 1 / math.log2(3)) / 2)


def test_forward_gives_the_batch_and_keeps_the_sum():
    metric, perfect, reversed_ = NDCG(), torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    labels = torch.tensor([[1, 0]])
    assert metric(perfect, labels) == 1.0
    assert metric(reversed_, labels).item() == pytest.approx(1 / math.log2(3))
    assert metric.compute().item() == pytest.approx((1 + 1 / math.log2(3)) / 2)
    metric.reset()
    assert metric(perfect, labels) == metric.compute() == 1.0


def test_a_batch_without_queries_changes_nothing():
    metric = NDCG()
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    metric.update(torch.zeros(0, 2), torch.zeros(0, 2))
    metric.update(torch.zeros(0), torch.zeros(0), indexes=torch.zeros(0, dtype=torch.int64))
    assert metric.compute() == 1.0
    assert metric.n_queries == 1


def test_names_and_cutoffs_find_the_same_value():
    metric = NDCG(k=[5, None])
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    value = metric.compute()
    assert set(value) == {"ndcg_at_5", "ndcg"}
    assert value[5] is value["ndcg_at_5"]
    assert value[None] is value["ndcg"]
    for missing in (7, "ndcg_at_7", True):
        with pytest.raises(KeyError):
            value[missing]
    assert pickle.loads(pickle.dumps(value))[5] == 1.0


def test_attributes():
    metric = NDCG("lightgbm", k=7)
    assert metric.flavor == Flavor.preset("lightgbm", k=7)
    assert metric.ks == (7,)
    assert metric.higher_is_better is True
    assert metric.is_differentiable is False
    assert metric.full_state_update is False
    assert not metric.state_dict()
    assert NDCG("lightgbm", sync_on_compute=False).sync_on_compute is False


# -- collections, copies, casts --------------------------------------------------------------------------------------


def square(grade):
    return grade**2


def named_square(grade):
    return grade**3


named_square.__qualname__ = square.__qualname__


@pytest.mark.parametrize(
    "pair",
    [
        (NDCG(k=2), NDCG(k=3)),
        (NDCG(), NDCG("ndcg[gain=exponential]")),
        (NDCG(k=[2]), NDCG(k=[3])),
        (NDCG(Flavor(gain=square)), NDCG(Flavor(gain=named_square))),
    ],
    ids=["k", "gain", "ks", "callables of one name"],
)
def test_a_collection_does_not_merge_metrics_that_agree_on_its_first_batch(pair):
    collection = MetricCollection({"a": copy.deepcopy(pair[0]), "b": copy.deepcopy(pair[1])})
    first = torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]])
    second = torch.tensor([[0.4, 0.3, 0.2, 0.1]]), torch.tensor([[0, 1, 2, 3]])
    for metric in pair:
        metric.reset()
    for batch in (first, second):
        collection.update(*batch)
        for metric in pair:
            metric.update(*batch)
    assert len(collection.compute_groups) == 2
    values = [
        v for value in collection.compute().values() for v in (value.values() if isinstance(value, dict) else [value])
    ]
    want = [v for m in pair for v in (m.compute().values() if isinstance(m.compute(), dict) else [m.compute()])]
    assert values == want
    assert values[0] != values[1]


def test_equal_metrics_share_a_compute_group():
    collection = MetricCollection({"a": NDCG(k=2), "b": NDCG(k=2)})
    collection.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    assert len(collection.compute_groups) == 1


def test_a_dict_of_cutoffs_in_a_collection():
    collection = MetricCollection([NDCG(k=[1, None])], prefix="val/")
    collection.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    assert {name: value.item() for name, value in collection.compute().items()} == {
        "val/ndcg_at_1": 1.0,
        "val/ndcg": 1.0,
    }


CASTS = {
    "to bfloat16": lambda module: module.to(torch.bfloat16),
    "bfloat16": lambda module: module.bfloat16(),
    "half": lambda module: module.half(),
    "float": lambda module: module.float(),
    "set_dtype": lambda module: module.metric.set_dtype(torch.float16),
    "type": lambda module: module.type(torch.float16),
}


@pytest.mark.parametrize("when", ["before", "within"])
@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
def test_casting_the_model_costs_no_digits(cast, when):
    module = nn.Module()
    module.metric, exact = NDCG(k=[3, None]), NDCG(k=[3, None])
    if when == "before":
        cast(module)
    for number, (scores, labels, mask) in enumerate(batches(150)):
        module.metric.update(scores, labels, mask=mask)
        exact.update(scores, labels, mask=mask)
        if number == 75 and when == "within":
            cast(module)
    assert module.metric.n_queries == 600
    assert module.metric.compute() == exact.compute()
    module.metric.reset()
    assert module.metric.ndcg_sum.dtype == torch.float64
    assert module.metric.n_queries.dtype == torch.int64


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda m: m.clone(), lambda m: pickle.loads(pickle.dumps(m))],
    ids=["deep", "clone", "pickle"],
)
def test_copies_go_on_from_where_they_were(copied):
    metric = NDCG(Flavor(gain=square, empty=math.nan), k=[1, None])
    labels = torch.tensor([[1, 0]])
    metric.update(torch.tensor([[1.0, 0.0]]), labels)
    copy_ = copied(metric)
    copy_.update(torch.tensor([[0.0, 1.0]]), labels)
    assert copy_.flavor == metric.flavor
    assert metric.compute()[1] == 1.0
    assert copy_.compute()[1] == 0.5


def test_processes_add_up_even_one_without_data():
    processes = [NDCG(k=[1, 3]) for _ in range(3)]
    whole = NDCG(k=[1, 3])
    for batch, owner in zip(batches(5), [0, 0, 0, 2, 2], strict=True):
        for metric in (processes[owner], whole):
            metric.update(batch[0], batch[1], mask=batch[2])
    others = iter([(getattr(processes[1], name), getattr(processes[2], name)) for name in processes[0]._defaults])
    processes[0].dist_sync_fn = lambda state, group=None: [state, *next(others)]
    processes[0].distributed_available_fn = lambda: True
    got, want = processes[0].compute(), whole.compute()
    assert {name: v.item() for name, v in got.items()} == pytest.approx({name: v.item() for name, v in want.items()})


def test_update_never_waits_for_an_accelerator():
    # A meta tensor has no data, so that any look at them raises.
    for flavor in (
        "sklearn",
        "lightgbm",
        Flavor(ideal="local", unjudged="zero"),
        Flavor(ideal="max", max_grade=4, ties="best"),
    ):
        metric = NDCG(flavor, k=[2, None]).to("meta")
        scores, labels = torch.rand(3, 5, device="meta"), torch.ones(3, 5, device="meta")
        metric.update(scores, labels, mask=scores > 0)
        metric.update(scores.flatten(), labels.flatten(), indexes=labels.flatten().long())
        assert metric.ndcg_sum.device.type == "meta"


# -- refusals --------------------------------------------------------------------------------------------------------

BAD = [
    (Flavor(), [[math.nan, 0.1]], [[1.0, 0.0]], "preds must not hold NaN.*got 1"),
    (Flavor(), [[0.2, 0.1]], [[-1.0, 0.0]], "target must be >= 0.*got 1"),
    (Flavor(), [[0.2, 0.1]], [[math.nan, 0.0]], "target must not hold NaN.*got 1"),
    (Flavor(gain=(0, 1)), [[0.2, 0.1]], [[2.0, 0.0]], "target must hold integer grades from 0 to 1"),
    (Flavor(empty="raise"), [[0.2, 0.1]], [[0.0, 0.0]], "got 1 with an ideal DCG of 0"),
]


@pytest.mark.parametrize(("flavor", "scores", "labels", "words"), BAD)
def test_bad_data_on_the_cpu_is_refused_at_once_and_leaves_no_trace(flavor, scores, labels, words):
    metric = NDCG(flavor)
    with pytest.raises(ValueError, match=words):
        metric.update(torch.tensor(scores), torch.tensor(labels))
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    assert metric.compute() == 1.0


@pytest.mark.parametrize(("flavor", "scores", "labels", "words"), BAD)
def test_bad_data_elsewhere_is_refused_by_compute(monkeypatch, flavor, scores, labels, words):
    metric = NDCG(flavor)
    # Compiled code cannot look at data either, and there is no accelerator here.
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    metric.update(torch.tensor(scores), torch.tensor(labels))
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    with pytest.raises(ValueError, match=words + r".*Found by update"):
        metric.compute()
    metric.reset()
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    assert metric.compute() == 1.0


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric NDCG was called before")
def test_nothing_to_average():
    with pytest.raises(ValueError, match=r"has seen no query.*Call update first"):
        NDCG().compute()
    metric = NDCG("ndcg[empty=skip]", k=[1, None])
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 0]]))
    with pytest.raises(ValueError, match=r"all 1 queries are empty.*empty='skip' leaves nothing"):
        metric.compute()


def test_micro_sums_must_fit_a_float64():
    scores, labels = torch.tensor([[0.2, 0.1]]), torch.tensor([[1.0, 2000.0]])
    flavor = Flavor(gain="exponential")
    macro, micro = NDCG(flavor), NDCG(flavor.replace(aggregate="micro"))
    for metric in (macro, micro):
        metric.update(scores, labels)
    assert macro.compute().item() == pytest.approx(1 / math.log2(3))
    with pytest.raises(ValueError, match=r"too large for float64.*aggregate='macro'"):
        micro.compute()


def test_a_query_with_a_negative_ideal_has_no_part_in_micro():
    metric = NDCG(Flavor(negative="allow", aggregate="micro"))
    metric.update(torch.tensor([[0.2, 0.1], [0.2, 0.1]]), torch.tensor([[0.0, 1.0], [-2.0, -1.0]]))
    assert metric.compute().item() == pytest.approx(1 / math.log2(3))


def test_a_metric_has_no_document_ids():
    with pytest.raises(ValueError, match=r"ties='docid'.*replace\(ties='average'\)"):
        NDCG(Flavor(ties="docid"))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((torch.rand(3), torch.ones(3)), ValueError, "indexes must be given with 1-D input"),
        ((np.ones((1, 2)), torch.ones(1, 2)), TypeError, "preds must be a torch.Tensor.*ndcg_ml.ndcg_score"),
        ((torch.rand(1, 2), torch.ones(2, 1)), ValueError, "target must have the shape of preds"),
    ],
)
def test_refusals_name_the_parameters_of_update(arguments, error, words):
    with pytest.raises(error, match=words):
        NDCG().update(*arguments)


def test_cpu_tensors_of_any_kind_take_the_short_way_or_the_right_one(kernel):
    labels = torch.tensor([[3, 0, 1], [0, 2, 1]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    scores = torch.tensor([[0.5, 0.25, 9.0], [0.75, 0.5, 0.25]])
    ids = torch.arange(2).repeat_interleave(3)[mask.flatten()]
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        for grades in (labels, labels.to(torch.uint8), labels.float(), labels.bfloat16()):
            padded, flat = NDCG("lightgbm", k=2), NDCG("lightgbm", k=2)
            padded.update(scores.to(dtype).clone().requires_grad_(), grades, mask=mask)
            flat.update(scores[mask].to(dtype), grades[mask], indexes=ids.int())
            assert (
                padded.compute()
                == flat.compute()
                == 0.5 + 0.5 * evaluate([[0, 2, 1]], [[3, 2, 1]], flavor="lightgbm", k=2).value
            )
    deep = NDCG("lightgbm", k=2)
    deep.update(scores[None, :, :2].transpose(1, 2), labels[None, :, :2].transpose(1, 2))
    expected = evaluate(labels[:, :2].T.numpy(), scores[:, :2].T.numpy(), flavor="lightgbm", k=2).value
    assert deep.compute().item() == pytest.approx(expected, abs=1e-12)


def test_the_short_way_is_taken_for_plain_tensors_on_the_cpu(kernel, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the torch kernel was called")

    monkeypatch.setattr("ndcg_ml.torch.metric.evaluate", refuse)
    update = NDCG("sklearn").update
    for arguments in (
        {"preds": torch.rand(2, 3), "target": torch.ones(2, 3)},
        {"preds": torch.rand(2, 3), "target": torch.ones(2, 3), "mask": torch.ones(2, 3, dtype=torch.bool)},
        {"preds": torch.rand(3), "target": torch.ones(3), "indexes": torch.tensor([4, 4, 1])},
    ):
        if kernel == "host":
            update(**arguments)
        else:
            with pytest.raises(AssertionError, match="the torch kernel was called"):
                update(**arguments)
