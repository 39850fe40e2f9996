"""The torchmetrics metric: queries over batches and processes, inside modules, collections and casts."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import copy
import io
import math
import operator
import pickle
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from torch import nn
from torchmetrics import MetricCollection
from torchmetrics.wrappers import BootStrapper

from ndcg_ml import Flavor, evaluate
from ndcg_ml.torch import NDCG, EpochWarning, ndcg

pytestmark = pytest.mark.usefixtures("kernel")
running = pytest.mark.filterwarnings("ignore::ndcg_ml.torch.EpochWarning")  # computes while the epoch goes on

GENERATOR = torch.Generator().manual_seed(5)


def batches(n_batches, size=4, width=6):
    """Scores with ties, labels with empty queries, and masks."""
    for _ in range(n_batches):
        shape = (size, width)
        labels = torch.randint(0, 4, shape, generator=GENERATOR) * (torch.rand(size, 1, generator=GENERATOR) < 0.8)
        scores = torch.randint(0, 5, shape, generator=GENERATOR) / 4
        yield scores, labels, torch.rand(shape, generator=GENERATOR) < 0.8


# -- the value -------------------------------------------------------------------------------------------------------


FLAVORS = st.builds(
    Flavor,
    gain=st.sampled_from(["linear", "exponential", (0, 1, 4, 9)]),
    ideal=st.sampled_from(["global", "local"]),
    ideal_depth=st.sampled_from(["k", "retrieved"]),
    short_lists=st.sampled_from(["score", "zero"]),
    ties=st.sampled_from(["average", "first"]),
    empty=st.sampled_from([0.0, 1.0, math.nan, "skip"]),
    aggregate=st.sampled_from(["macro", "micro"]),
    k=st.sampled_from([None, 2]),
)


def assert_equals(got, want, ks):
    if ks is ...:
        assert got.dtype == torch.float64
        assert got.shape == ()
        assert got.item() == pytest.approx(want, abs=1e-12, nan_ok=True)
        return
    assert list(got) == ["ndcg_at_1", "ndcg_at_3", "ndcg"]
    for k in ks:
        assert got[k].item() == pytest.approx(want[k], abs=1e-12, nan_ok=True)


@examples(40)
@given(FLAVORS, st.booleans(), st.sampled_from(["global", "batch"]))
def test_many_small_updates_are_one_evaluation(flavor, several, query_ids):
    ks = [1, 3, None] if several else ...
    metric = NDCG(flavor, k=ks, query_ids=query_ids)
    seen = list(batches(12))
    for number, (scores, labels, mask) in enumerate(seen):
        first = 4 * number if query_ids == "global" else 0
        ids = torch.arange(first, first + 4)
        rows = ids[:, None].expand(4, 6)
        if number % 2:
            metric.update(scores, labels, ids if query_ids == "global" and number % 4 == 1 else None, mask)
        else:
            mask[:, 0] = True  # a flat query has a row
            order = torch.randperm(int(mask.sum()), generator=GENERATOR)
            if flavor.ties == "first":
                order = order.sort().values
            metric.update(scores[mask][order], labels[mask][order], indexes=rows[mask][order])
    scores, labels, mask = (torch.cat(part).numpy() for part in zip(*seen, strict=True))
    assert_equals(metric.compute(), evaluate(labels, scores, flavor=flavor, k=ks, mask=mask).value, ks)


@examples(40)
@given(FLAVORS, st.booleans(), st.integers(0, 2**32 - 1))
def test_rows_of_split_queries_are_put_together(flavor, several, seed):
    """Rows in any order, lists cut into halves, a list without documents: scored as the whole is."""
    draw = torch.Generator().manual_seed(seed)
    ks = [1, 3, None] if several else ...
    metric = NDCG(flavor, k=ks, split_queries=True)
    labels, scores = torch.randint(0, 4, (9, 6), generator=draw), torch.randint(0, 4, (9, 6), generator=draw) / 4
    mask = torch.rand(9, 6, generator=draw) < 0.7
    mask[-1] = False
    ids = torch.randperm(9, generator=draw) * 2**40 - 2**42
    # Six of the queries come row by row, three in half-lists.
    rows = torch.nonzero(mask[:6])
    if flavor.ties == "average":
        rows = rows[torch.randperm(len(rows), generator=draw)]
    for part in rows.tensor_split(5):
        at = part[:, 0], part[:, 1]
        metric.update(scores[at], labels[at], ids[part[:, 0]])
    for half in (slice(0, 3), slice(3, 6)):
        metric.update(scores[6:, half], labels[6:, half], indexes=ids[6:], mask=mask[6:, half])
    # A query that never had a row is not known to the metric.
    known = mask.any(1) | (torch.arange(9) >= 6)
    want = evaluate(labels[known].numpy(), scores[known].numpy(), flavor=flavor, k=ks, mask=mask[known].numpy()).value
    assert_equals(metric.compute(), want, ks)


def test_ids_of_a_batch_mean_nothing_beyond_it():
    metric = NDCG(query_ids="batch")
    metric.update(torch.tensor([0.9, 0.1]), torch.tensor([1, 0]), indexes=torch.tensor([0, 0]))
    metric.update(torch.tensor([0.9, 0.1]), torch.tensor([0, 1]), indexes=torch.tensor([0, 0]))
    assert metric.n_queries == 2
    assert metric.compute().item() == pytest.approx((1 + 1 / math.log2(3)) / 2)


# -- which queries were seen -----------------------------------------------------------------------------------------

LISTS = torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([[1, 0], [0, 1]])
TWICE = {
    "rows in two updates": [
        (torch.tensor([0.9, 0.1, 0.3]), torch.tensor([1, 0, 1]), torch.tensor([7, 7, 4])),
        (torch.tensor([0.9, 0.2]), torch.tensor([1, 0]), torch.tensor([5, 7])),
    ],
    "lists in two updates": [(*LISTS, torch.tensor([7, 4])), (*LISTS, torch.tensor([5, 7]))],
    "two lists of one update": [(*LISTS, torch.tensor([7, 7]))],
    "rows, then a list": [
        (torch.tensor([0.9, 0.1]), torch.tensor([1, 0]), torch.tensor([7, 7])),
        (*LISTS, torch.tensor([5, 7])),
    ],
}


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 3, 2)])
def test_split_queries_take_padded_lists_of_any_number_of_dimensions(shape):
    scores, labels = torch.randn(6, 4), torch.randint(0, 3, (6, 4))
    metric = NDCG("sklearn", k=3, split_queries=True)
    ids = torch.arange(6).reshape(shape)
    for part in (slice(0, 2), slice(2, 4)):  # the documents of each query arrive in two pieces
        metric.update(scores[:, part].reshape(*shape, -1), labels[:, part].reshape(*shape, -1), ids)
    want = evaluate(labels.numpy(), scores.numpy(), flavor="sklearn", k=3).value
    assert metric.compute().item() == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("updates", TWICE.values(), ids=TWICE)
def test_a_query_that_comes_twice_is_refused(updates):
    metric = NDCG()
    for update in updates:
        metric.update(*update)
    words = r"1 of the queries appeared more.*\(such as id 7.*split_queries=True.*query_ids='batch'.*DistributedSampler"
    for _ in range(2):  # and again, until it is reset
        with pytest.raises(ValueError, match=words):
            metric.compute()
    metric.reset()
    for update in updates[:1]:
        metric.update(update[0], update[1], torch.arange(len(update[0])))
    metric.compute()


def test_every_query_that_comes_twice_is_counted_once():
    metric = NDCG()
    for ids in ([1, 2], [2, 3], [3, 2], [9, 8]):
        metric.update(*LISTS, torch.tensor(ids))
    with pytest.raises(ValueError, match=r"2 of the queries appeared more than once \(such as id 2\)"):
        metric.compute()


def test_lists_without_ids_are_counted_unchecked():
    metric = NDCG()
    metric.update(*LISTS)
    metric.update(*LISTS, torch.tensor([3, 4]))
    metric.update(*LISTS)
    metric.compute()
    assert metric.n_queries == 6


def test_the_ids_kept_are_one_a_query():
    metric = NDCG()
    metric.update(torch.rand(90), torch.ones(90), torch.arange(90) // 30)
    metric.update(torch.rand(2, 50), torch.ones(2, 50), torch.tensor([3, 4], dtype=torch.int32))
    assert torch.cat(metric.ids).sort().values.tolist() == [0, 1, 2, 3, 4]
    assert all(ids.dtype == torch.int64 for ids in metric.ids)


@pytest.mark.parametrize("split", [False, True])
def test_ids_keep_all_digits_when_the_model_is_cast(split):
    module = nn.Module()
    module.metric = NDCG(split_queries=split)
    for number in range(4):
        module.metric.update(
            torch.tensor([[0.1, 0.2]]), torch.tensor([[number % 2, 0]]), torch.tensor([2**53 + number])
        )
        module.to(torch.bfloat16)
    assert module.metric.compute().item() == pytest.approx(1 / math.log2(3) / 2)


def test_rows_keep_their_own_dtype():
    module = nn.Module()
    module.metric = NDCG(split_queries=True)
    ids = torch.tensor([0])
    for cast in ("bfloat16", "half", "float"):
        module.metric.update(torch.tensor([0.1 + 1e-12], dtype=torch.float64), torch.tensor([1]), ids)
        module.metric.update(torch.tensor([0.1], dtype=torch.float64), torch.tensor([2], dtype=torch.uint8), ids)
        getattr(module, cast)()
        module.metric.set_dtype(torch.float16)
    assert {part.dtype for part in module.metric.preds} == {torch.float64}
    assert {part.dtype for part in module.metric.target} == {torch.int64, torch.uint8}
    expected = evaluate([[1, 1, 1, 2, 2, 2]], [[1, 1, 1, 0, 0, 0]]).value
    assert module.metric.compute().item() == pytest.approx(expected, abs=1e-12)


def test_rows_of_different_dtypes_are_compared_exactly():
    metric, ids = NDCG(split_queries=True), torch.zeros(3, dtype=torch.int64)
    metric.update(torch.tensor([16777217], dtype=torch.int64), torch.tensor([0]), ids[:1])
    metric.update(torch.tensor([16777216.0, 0.75, 0.5]), torch.tensor([1, 1, 0]), ids)
    assert metric.compute().item() == pytest.approx(evaluate([[0, 1, 1, 0]], [[4.0, 3.0, 2.0, 1.0]]).value)


@running
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("split", [False, True])
def test_what_the_caller_does_with_the_tensors_afterwards_changes_nothing(split, flat):
    scores, labels, ids = torch.tensor([[0.9, 0.1]]), torch.tensor([[1, 0]]), torch.tensor([1])
    if flat:
        scores, labels, ids = scores[0], labels[0], ids.repeat(2)
    metric = NDCG(split_queries=split)
    metric.update(scores, labels, ids)
    held = scores.clone(), labels.clone(), ids + 1
    scores.neg_()
    ids.add_(1)
    assert metric.compute() == 1.0
    metric.update(*held)
    labels.fill_(-9)
    assert metric.compute() == 1.0


def test_rows_carry_no_gradient():
    metric = NDCG(split_queries=True)
    metric(torch.tensor([0.9, 0.1], requires_grad=True), torch.tensor([1, 0]), torch.tensor([0, 0]))
    assert not any(part.requires_grad for part in metric.preds)


def test_a_list_without_documents_is_a_query():
    for ids in (None, torch.tensor([4, 5])):
        for split in (False, True) if ids is not None else (False,):
            metric = NDCG(Flavor(empty=1.0), split_queries=split)
            metric.update(torch.tensor([[0.1, 0.9]]), torch.tensor([[1, 0]]), None if ids is None else ids[:1])
            metric.update(torch.zeros(1, 0), torch.zeros(1, 0), None if ids is None else ids[1:])
            assert metric.compute().item() == pytest.approx((1 + 1 / math.log2(3)) / 2)


@running
def test_rows_on_a_device_tell_their_queries_in_compute(monkeypatch):
    metric = NDCG()
    with monkeypatch.context() as patch:  # compiled code cannot look at data either, and there is no accelerator here
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        metric.update(torch.rand(5), torch.ones(5), torch.tensor([3, 1, 3, 1, 3]))
        metric.update(torch.rand(3), torch.ones(3), torch.tensor([4, 4, 4]))
    assert len(metric.row_ids) == 2
    assert metric.compute() == 1.0
    assert [ids.tolist() for ids in metric.ids] == [[1, 3], [4]]
    metric.update(torch.rand(1), torch.ones(1), torch.tensor([3]))
    with pytest.raises(ValueError, match="id 3"):
        metric.compute()


@running
def test_nested_tensors_with_ids():
    def jagged(*rows):
        return torch.nested.nested_tensor([torch.tensor(row) for row in rows], layout=torch.jagged)

    scores, labels = jagged([0.9, 0.1], [0.3, 0.2, 0.1]), jagged([1.0, 0.0], [0.0, 0.0, 1.0])
    expected = (1 + 1 / math.log2(4)) / 2
    for split in (False, True):
        metric = NDCG(split_queries=split)
        metric.update(scores, labels, torch.tensor([5, 6]))
        assert metric.compute().item() == pytest.approx(expected)
        metric.update(scores, labels, torch.tensor([6, 7]))
        if not split:
            with pytest.raises(ValueError, match="id 6"):
                metric.compute()


# -- one batch -------------------------------------------------------------------------------------------------------


def test_forward_gives_the_batch_and_keeps_the_sum():
    metric, perfect, reversed_ = NDCG(), torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    labels = torch.tensor([[1, 0]])
    assert metric(perfect, labels) == 1.0
    assert metric(reversed_, labels).item() == pytest.approx(1 / math.log2(3))
    assert metric.compute().item() == pytest.approx((1 + 1 / math.log2(3)) / 2)
    metric.reset()
    assert metric(perfect, labels) == metric.compute() == 1.0


@pytest.mark.parametrize("split", [False, True])
def test_forward_does_not_copy_what_was_seen_before(split):
    """As torchmetrics would: then an epoch takes time that grows with the square of its batches."""
    metric, firsts = NDCG(split_queries=split), []
    for number in range(3):
        metric(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]), torch.tensor([number]))
        firsts.append(metric.ids[0])
    assert firsts[0] is firsts[1] is firsts[2]
    assert len(metric.ids) == 3


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
    for metric in pair:
        metric.reset()
    collection = MetricCollection({"a": copy.deepcopy(pair[0]), "b": copy.deepcopy(pair[1])})
    first = torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]])
    second = torch.tensor([[0.4, 0.3, 0.2, 0.1]]), torch.tensor([[0, 1, 2, 3]])
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


def meaning(flavor, **options):
    """The state by whose name a collection tells metrics apart."""
    (name,) = (name for name in NDCG(flavor, **options)._defaults if name.startswith("meaning_"))
    return name


PROGRAM = """
import math, operator
from ndcg_ml import Flavor
from ndcg_ml.torch import NDCG

several = Flavor(gain=math.exp2, discount=operator.neg)
for flavor in ("lightgbm@5", Flavor(gain=math.sqrt), several, Flavor(gain=lambda y: y)):
    print(*(name for name in NDCG(flavor)._defaults if name.startswith("meaning_")))
"""


@pytest.mark.parametrize("kernel", ["host"], indirect=True)  # neither computes anything
def test_the_meaning_of_a_callable_is_that_of_every_process():
    """A checkpoint is loaded in another process, where every object has another id."""
    mine = [
        meaning("lightgbm@5"),
        meaning(Flavor(gain=math.sqrt)),
        meaning(Flavor(gain=math.exp2, discount=operator.neg)),
        meaning(Flavor(gain=lambda y: y)),
    ]
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    theirs = ran.stdout.split()
    assert theirs[:3] == mine[:3]
    assert theirs[3] != mine[3]  # another lambda may well compute something else
    assert len({*mine, theirs[3]}) == 5


def test_a_callable_without_an_address_is_only_equal_to_itself():
    class Power:
        def __init__(self, exponent):
            self.exponent = exponent

        def __call__(self, grade):
            return grade**self.exponent

    class Unhashable(Power):
        __hash__ = None

    def local(grade):
        return grade

    two, three = Power(2), Power(3)
    for one, other in ((two, three), (local, lambda grade: grade), (partial(pow, 2), partial(pow, 3))):
        assert meaning(Flavor(gain=one)) == meaning(Flavor(gain=one))
        assert meaning(Flavor(gain=one)) != meaning(Flavor(gain=other))
    assert meaning(Flavor(gain=Unhashable(2))) != meaning(Flavor(gain=Unhashable(2)))
    metric, more = NDCG(Flavor(gain=local)), NDCG(Flavor(gain=local))
    for each in (metric, more):
        each.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    metric.merge_state(more)
    assert metric.compute() == 1.0


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (NDCG(), "NDCG('sklearn')"),
        (NDCG("lightgbm", k=5), "NDCG('lightgbm', k=5)"),
        (NDCG("lightgbm@5"), "NDCG('lightgbm', k=5)"),
        (NDCG("lightgbm", k=[1, None], query_ids="batch"), "NDCG('lightgbm', k=(1, None), query_ids='batch')"),
        (NDCG(Flavor(gain="binary"), split_queries=True), "NDCG('ndcg[gain=binary]', split_queries=True)"),
    ],
)
def test_repr_says_the_definition(metric, text):
    assert repr(metric) == text
    again = eval(text)
    assert (again.flavor, again.ks) == (metric.flavor, metric.ks)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_input_with_holes_is_refused():
    """Its values hold more documents than its lists."""
    values, lengths = torch.rand(3, 4), torch.tensor([2, 4, 1])
    holes = torch.nested.narrow(values, 1, torch.zeros(3, dtype=torch.int64), lengths, layout=torch.jagged)
    for call in (ndcg, NDCG().update):
        with pytest.raises(ValueError, match=r"must be a contiguous nested tensor; got one with holes.*contiguous\(\)"):
            call(holes, holes)
    if holes.contiguous().values().numel() != lengths.sum():
        pytest.skip(f"torch {torch.__version__} keeps what is between the lists of a nested tensor made contiguous")
    whole = ndcg(holes.contiguous(), holes.contiguous())
    assert whole.tolist() == [1.0] * 3


@pytest.mark.parametrize("split", [False, True])
def test_equal_metrics_share_a_compute_group(split):
    collection = MetricCollection({"a": NDCG(k=2, split_queries=split), "b": NDCG(k=2, split_queries=split)})
    for _ in range(2):
        for number in range(3):
            collection.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[number > 0, 1]]), torch.tensor([number]))
        assert len(collection.compute_groups) == 1
        values = [value.item() for value in collection.compute().values()]
        assert values == pytest.approx([(2 + 1 / math.log2(3)) / 3] * 2)
        collection.reset()


@pytest.mark.parametrize("split", [False, True])
def test_a_compute_group_may_be_updated_and_called(split):
    """The metrics of a group share their lists."""
    collection = MetricCollection({"a": NDCG(split_queries=split), "b": NDCG(split_queries=split)})
    for number in range(6):
        call = collection.update if number in (0, 1, 4) else collection
        call(torch.tensor([[1.0, 0.0]]), torch.tensor([[number > 1, 1]]), torch.tensor([number]))
    assert len(collection.compute_groups) == 1
    values = [value.item() for value in collection.compute().values()]
    assert values == pytest.approx([(4 + 2 / math.log2(3)) / 6] * 2)


def test_metrics_whose_ids_mean_different_things_share_nothing():
    collection = MetricCollection(
        {"global": NDCG(), "batch": NDCG(query_ids="batch"), "split": NDCG(split_queries=True)}
    )
    for labels in ([0, 1], [1, 0]):
        collection.update(torch.tensor([1.0, 0.0]), torch.tensor(labels), torch.tensor([0, 0]))
    assert len(collection.compute_groups) == 3
    assert collection["batch"].compute().item() == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert collection["split"].compute().item() == pytest.approx(evaluate([[0, 1, 1, 0]], [[1.0, 0, 1, 0]]).value)
    with pytest.raises(ValueError, match="appeared more than once"):
        collection["global"].compute()


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
    for number, (scores, labels, mask) in enumerate(batches(40)):
        module.metric.update(scores, labels, mask=mask)
        exact.update(scores, labels, mask=mask)
        if number == 20 and when == "within":
            cast(module)
    assert module.metric.n_queries == 160
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


@pytest.mark.parametrize("settings_", [{}, {"query_ids": "batch"}, {"split_queries": True}], ids=str)
def test_copies_of_the_state_go_their_own_way(settings_):
    metric = NDCG(**settings_)
    ids = {"indexes": torch.tensor([0, 0])}
    metric.update(torch.tensor([1.0, 0.0]), torch.tensor([1, 0]), **ids)
    for copied in (metric.clone(), pickle.loads(pickle.dumps(metric))):
        copied.reset()
        copied.update(torch.tensor([0.0, 1.0]), torch.tensor([1, 0]), **ids)
        assert copied.compute().item() == pytest.approx(1 / math.log2(3))
    assert metric.compute() == 1.0
    assert not metric.state_dict()


def tensors_of(metric):
    states = metric.metric_state.values()
    return [part for state in states for part in (state if isinstance(state, list) else [state])]


def gathering(processes):
    """What ``torch.distributed`` does for the first of these metrics, without processes."""
    sent = []
    for other in processes[1:]:
        sent.append([])
        copy.deepcopy(other)._sync_dist(lambda state, group, sent=sent[-1]: [sent.append(state), state][1:])
    others = iter(zip(*sent, strict=True))

    def gather(state, group=None):
        theirs = next(others)
        assert all((part.dtype, part.shape[1:]) == (state.dtype, state.shape[1:]) for part in theirs)
        return [state, *theirs]

    processes[0].dist_sync_fn = gather
    processes[0].distributed_available_fn = lambda: True


@pytest.mark.parametrize("split", [False, True])
def test_processes_add_up_even_one_without_data(split):
    processes = [NDCG(k=[1, 3], split_queries=split) for _ in range(3)]
    whole = NDCG(k=[1, 3])
    for number, (batch, owner) in enumerate(zip(batches(5), [0, 0, 0, 2, 2], strict=True)):
        for metric in (processes[owner], whole):
            metric.update(batch[0], batch[1], torch.arange(4) + 4 * number, mask=batch[2])
    gathering(processes)
    mine = [part.clone() for part in tensors_of(processes[0])]
    got, want = processes[0].compute(), whole.compute()
    assert {name: v.item() for name, v in got.items()} == pytest.approx({name: v.item() for name, v in want.items()})
    assert len(mine) == len(tensors_of(processes[0]))
    assert all(map(torch.equal, mine, tensors_of(processes[0])))


def test_a_process_goes_on_with_its_own_queries_after_a_refusal():
    processes = [NDCG(), NDCG()]
    for metric in processes:
        metric.update(*LISTS, torch.tensor([1, 2]))
    gathering(processes)
    with pytest.raises(ValueError, match="2 of the queries appeared more than once"):
        processes[0].compute()
    assert processes[0].n_queries == 2
    processes[0].distributed_available_fn = lambda: False
    processes[0].compute()


# -- merging ---------------------------------------------------------------------------------------------------------


def test_merging_forgets_the_value_computed_before():
    """torchmetrics 1.9 returns it again."""
    first, second = NDCG(), NDCG()
    first.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]), torch.tensor([1]))
    second.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 1]]), torch.tensor([2]))
    assert first.compute() == 1.0
    first.merge_state(second)
    assert first.compute().item() == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert first.update_count == 2
    first.merge_state(second.metric_state)
    with pytest.raises(ValueError, match=r"1 of the queries appeared more than once \(such as id 2"):
        first.compute()
    assert second.n_queries == 1


def test_merged_rows_come_after_those_already_there():
    ours, theirs = NDCG("lightgbm", split_queries=True), NDCG("lightgbm", split_queries=True)
    ours.update(torch.tensor([0.5]), torch.tensor([1]), torch.tensor([0]))
    theirs.update(torch.tensor([0.5]), torch.tensor([0]), torch.tensor([0]))
    ours.merge_state(theirs)
    assert ours.compute() == 1.0  # "first"
    assert theirs.compute() == 1.0  # LightGBM's value of an empty query
    theirs.reset()
    theirs.merge_state(ours)
    assert theirs.compute() == 1.0


@pytest.mark.parametrize(
    "other", [NDCG("lightgbm"), NDCG(k=3), NDCG(split_queries=True), NDCG(query_ids="batch"), {}, 3]
)
def test_metrics_of_unlike_meaning_are_not_merged(other):
    with pytest.raises(ValueError, match=r"incoming_state must be an NDCG.*of another meaning"):
        NDCG().merge_state(other)


def test_a_sum_of_metrics_is_torchmetrics_own():
    total = NDCG(k=1) + NDCG(k=2)
    total.update(torch.tensor([[0.1, 0.9]]), torch.tensor([[1, 0]]))
    assert total.compute().item() == pytest.approx(1 / math.log2(3))


@pytest.mark.parametrize("settings_", [{}, {"query_ids": "batch"}, {"split_queries": True}], ids=str)
def test_update_never_waits_for_an_accelerator(settings_):
    # A meta tensor has no data, so that any look at them raises.
    for flavor in (
        "sklearn",
        "lightgbm",
        Flavor(ideal="local", unjudged="zero"),
        Flavor(ideal="max", max_grade=4, ties="best"),
    ):
        metric = NDCG(flavor, k=[2, None], **settings_).to("meta")
        scores, labels = torch.rand(3, 5, device="meta"), torch.ones(3, 5, device="meta")
        ids = None if settings_.get("query_ids") == "batch" else labels[:, 0].long()
        metric.update(scores, labels, ids, mask=scores > 0)
        metric.update(scores.flatten(), labels.flatten(), indexes=labels.flatten().long())
        assert {part.device.type for part in tensors_of(metric)} == {"meta"}


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    metric = NDCG(k=[1, None])
    value = metric(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    for shown in (None, [value, value]):
        figure, _ = metric.plot(shown)
        pyplot.close(figure)


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
    with pytest.raises(ValueError, match=words + r".*Found in the batches"):
        metric.compute()
    metric.reset()
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    assert metric.compute() == 1.0


@pytest.mark.parametrize("bad", [0.0, math.nan])
def test_split_queries_refuse_bad_rows_at_once_and_empty_queries_in_the_end(bad):
    metric = NDCG(Flavor(empty="raise"), split_queries=True)
    metric.update(torch.tensor([0.9]), torch.tensor([0.0]), torch.tensor([3]))
    if math.isnan(bad):
        for scores, labels in ((bad, 1.0), (0.5, bad), (0.5, -1.0)):
            with pytest.raises(ValueError, match=r"(preds|target) must .*got 1"):
                metric.update(torch.tensor([scores]), torch.tensor([labels]), torch.tensor([3]))
    else:
        with pytest.raises(ValueError, match=r"got 1 with an ideal DCG of 0.*Found in the batches"):
            metric.compute()
    metric.update(torch.tensor([0.5]), torch.tensor([1.0]), torch.tensor([3]))
    assert metric.compute().item() == pytest.approx(1 / math.log2(3))


@running
def test_split_queries_elsewhere_refuse_bad_rows_in_compute(monkeypatch):
    metric = NDCG(split_queries=True)
    with monkeypatch.context() as patch:  # as in the test above
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        mask = torch.tensor([[True, False]])
        metric.update(torch.tensor([[0.5, math.nan]]), torch.tensor([[1.0, -9.0]]), torch.tensor([3]), mask)
        metric.update(torch.zeros(1, 0), torch.zeros(1, 0), torch.tensor([4]))
    assert metric.compute() == 0.5
    with monkeypatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        metric.update(torch.tensor([math.nan]), torch.tensor([1.0]), torch.tensor([3]))
    with pytest.raises(ValueError, match=r"preds must not hold NaN.*got 1.*Found in the batches"):
        metric.compute()


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric NDCG was called before")
def test_nothing_to_average():
    with pytest.raises(ValueError, match=r"has seen no query.*Call update first"):
        NDCG().compute()
    metric = NDCG("ndcg[empty=skip]", k=[1, None])
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 0]]))
    with pytest.raises(ValueError, match=r"all 1 queries are empty.*empty='skip' leaves nothing"):
        metric.compute()
    with pytest.raises(ValueError, match="has seen no query"):
        NDCG(split_queries=True).compute()


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
@pytest.mark.parametrize("split", [False, True])
def test_a_batch_that_has_nothing_to_average_is_nan_and_changes_nothing(split, aggregate):
    metric = NDCG(Flavor(empty="skip", aggregate=aggregate), split_queries=split)
    assert metric(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]), torch.tensor([0])) == 1.0
    assert metric(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 0]]), torch.tensor([1])).isnan()
    assert metric(torch.zeros(0), torch.zeros(0), torch.zeros(0, dtype=torch.int64)).isnan()
    assert metric.compute() == 1.0


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
def test_a_batch_without_queries_is_nan_whatever_an_empty_query_is(aggregate):
    metric = NDCG(Flavor(empty=0.0, aggregate=aggregate))
    assert metric(torch.zeros(0, 2), torch.zeros(0, 2)).isnan()
    assert metric(torch.rand(1, 2), torch.zeros(1, 2)) == 0.0


@pytest.mark.parametrize("split", [False, True])
def test_a_refused_batch_costs_forward_nothing(split):
    metric = NDCG(split_queries=split)
    metric(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 1]]), torch.tensor([0]))
    for bad in ([[math.nan, 1.0]], [[1.0]]):
        with pytest.raises(ValueError, match="preds"):
            metric(torch.tensor(bad), torch.tensor([[1, 0]]), torch.tensor([1]))
        assert (metric.update_count, metric._to_sync, metric._should_unsync) == (1, True, True)
    assert metric.compute().item() == pytest.approx(1 / math.log2(3))


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
        ((torch.rand(1, 2), torch.ones(2, 1), torch.tensor([0])), ValueError, "target must have the shape of preds"),
        ((*LISTS, torch.zeros(2, 2).long()), ValueError, r"one query id per list, shape \(2,\).*got \(2, 2\)"),
        (
            (*LISTS, torch.zeros(2)),
            TypeError,
            r"indexes must hold integers, one query id per list; got dtype torch.float",
        ),
        ((*LISTS, [0, 1]), TypeError, r"indexes must be a torch.Tensor; got builtins.list"),
        ((*LISTS, torch.zeros(2, device="meta").long()), ValueError, r"indexes must be on the device of preds, cpu"),
    ],
)
def test_refusals_name_the_parameters_of_update(arguments, error, words):
    for metric in (NDCG(), NDCG(split_queries=True)):
        with pytest.raises(error, match=words):
            metric.update(*arguments)


def test_ids_that_have_no_use_and_ids_that_are_missing():
    with pytest.raises(ValueError, match=r"which query_ids='batch' rules out; got shape \(2,\)"):
        NDCG(query_ids="batch").update(*LISTS, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="indexes must be given under split_queries=True"):
        NDCG(split_queries=True).update(*LISTS)
    with pytest.raises(ValueError, match="indexes must be given with 1-D input"):
        NDCG(split_queries=True).update(torch.rand(3), torch.ones(3))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"query_ids": "local"}, ValueError, "query_ids must be one of 'global', 'batch'; got 'local'"),
        ({"split_queries": 1}, TypeError, "split_queries must be True or False; got 1"),
        ({"split_queries": True, "query_ids": "batch"}, ValueError, "split_queries=True.*got query_ids='batch'"),
    ],
)
def test_refusals_of_the_constructor(arguments, error, words):
    with pytest.raises(error, match=words):
        NDCG(**arguments)


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

    monkeypatch.setattr("ndcg_ml.torch._state.evaluate", refuse)
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


# -- epochs ----------------------------------------------------------------------------------------------------------


def one_query(relevant_first=True):
    return torch.tensor([[0.9, 0.1]]), torch.tensor([[1, 0]] if relevant_first else [[0, 1]])


MIXED = (1 + 1 / math.log2(3)) / 2


def epoch_warnings(caught):
    return [str(one.message) for one in caught if one.category is EpochWarning]


@pytest.mark.parametrize("by", ["update", "forward"])
@pytest.mark.parametrize("split", [False, True])
def test_queries_after_a_value_without_a_reset_warn_once(split, by):
    def add(metric, number, relevant_first):
        ids = torch.tensor([number])
        (metric.update if by == "update" else metric)(*one_query(relevant_first), ids)

    metric = NDCG(split_queries=split)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        add(metric, 0, True)
        add(metric, 1, True)
        assert metric.compute() == metric.compute() == 1.0
        metric.reset()
        add(metric, 0, True)
        metric.compute()
        assert epoch_warnings(caught) == []
        add(metric, 1, False)
        assert metric.compute().item() == pytest.approx(MIXED)
        assert len(epoch_warnings(caught)) == 1
        add(metric, 2, False)
        metric.compute()
        add(metric, 3, False)
    [message] = epoch_warnings(caught)
    assert message.startswith("queries are added after compute without a reset")
    if by == "update":
        assert [one.filename for one in caught if one.category is EpochWarning] == [__file__]


def test_a_value_that_was_refused_does_not_close_the_epoch():
    metric = NDCG()
    metric.update(*one_query(relevant_first=False), torch.tensor([3]))
    metric.update(*one_query(), torch.tensor([3]))
    with pytest.raises(ValueError, match="appeared more than once"):
        metric.compute()
    with pytest.raises(ValueError, match="appeared more than once"):
        metric.compute()
    metric.update(*one_query(), torch.tensor([4]))  # no warning beside the error
    metric.reset()
    metric.update(*one_query())
    assert metric.compute() == 1.0


@pytest.mark.parametrize("copied", [copy.deepcopy, NDCG.clone, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_knows_that_a_value_was_computed(copied):
    metric = NDCG()
    metric.update(*one_query())
    metric.compute()
    with pytest.warns(EpochWarning, match="after compute"):
        copied(metric).update(*one_query())
    fresh = copied(NDCG())
    fresh.update(*one_query())


def test_a_collection_warns_once_and_not_in_epochs_of_its_own():
    collection = MetricCollection({"a": NDCG(k=1), "b": NDCG(k=1), "c": NDCG("lightgbm")})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            for _ in range(3):
                collection(*one_query())
                collection.update(*one_query())
            collection.compute()
            collection.reset()
        assert epoch_warnings(caught) == []
        for _ in range(3):
            collection.update(*one_query())
            collection.compute()
    assert len(epoch_warnings(caught)) == 2  # one in each compute group


def test_merging_after_a_value_is_no_update():
    metric, other = NDCG(), NDCG()
    metric.update(*one_query())
    other.update(*one_query(relevant_first=False))
    metric.compute()
    metric.merge_state(other)
    assert metric.compute().item() == pytest.approx(MIXED)


# -- checkpoints -----------------------------------------------------------------------------------------------------


def ranker(persistent=False, **options):
    module = nn.Module()
    module.layer, module.metric = nn.Linear(2, 1), NDCG(**options)
    module.metric.persistent(persistent)
    return module


def test_a_checkpoint_holds_no_state_by_default_and_says_so_in_mid_epoch():
    module = ranker()
    assert set(module.state_dict()) == {"layer.weight", "layer.bias"}
    module.metric.update(*one_query())
    with pytest.warns(EpochWarning, match=r"leaves out the queries.*Call metric\.persistent\(True\)"):
        state = module.state_dict()
    assert set(state) == {"layer.weight", "layer.bias"}
    module.state_dict()  # once is enough
    other = ranker()
    other.metric.update(*one_query())
    other.metric.compute()
    other.state_dict()  # the epoch is over


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("old_is_persistent", [False, True])
@pytest.mark.parametrize("new_is_persistent", [False, True])
def test_checkpoints_with_and_without_state_load_strictly(new_is_persistent, old_is_persistent, split):
    old, new = (
        ranker(persistent=persistent, k=[1, None], split_queries=split)
        for persistent in (old_is_persistent, new_is_persistent)
    )
    ids = torch.tensor([0])
    if old_is_persistent:
        old.metric.update(*one_query(relevant_first=False), ids)
    kept = io.BytesIO()
    torch.save(old.state_dict(), kept)
    kept.seek(0)
    new.load_state_dict(torch.load(kept, weights_only=True), strict=True)
    new.metric.update(*one_query(), ids + 1)
    want = MIXED if old_is_persistent else 1.0
    assert new.metric.compute()[None].item() == pytest.approx(want)
    if old_is_persistent:
        assert old.metric.compute()[None].item() == pytest.approx(1 / math.log2(3))  # not the list that grew


def test_a_loaded_state_replaces_a_value_that_was_kept():
    old, new = ranker(persistent=True), ranker(persistent=True)
    old.metric.update(*one_query(relevant_first=False))
    new.metric.update(*one_query())
    assert new.metric.compute() == 1.0
    new.load_state_dict(old.state_dict())
    assert new.metric.compute().item() == pytest.approx(1 / math.log2(3))


def test_a_loaded_state_alone_is_computed():
    old, new = ranker(persistent=True), ranker()
    old.metric.update(*one_query())
    new.load_state_dict(old.state_dict())
    assert new.metric.compute() == 1.0


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("other", [{"k": [1, 5]}, {"flavor": "lightgbm"}, {"k": 3}], ids=str)
def test_a_state_of_another_meaning_is_refused(other, strict):
    old, new = ranker(persistent=True), ranker(**other)
    old.metric.update(*one_query())
    with pytest.raises(RuntimeError, match=r"metric: the checkpoint holds queries of an NDCG of another flavor"):
        new.load_state_dict(old.state_dict(), strict=strict)
    assert int(new.metric.n_queries) == 0


def test_weights_loaded_in_mid_epoch_warn_when_it_goes_on():
    module = ranker()
    weights = module.state_dict()
    module.metric.update(*one_query())
    module.load_state_dict(weights)
    with pytest.warns(EpochWarning, match="after load_state_dict without a reset"):
        module.metric.update(*one_query(relevant_first=False))
    assert module.metric.compute().item() == pytest.approx(MIXED)
    module.metric.reset()
    module.load_state_dict(weights)
    module.metric.update(*one_query())
    module.load_state_dict(weights)
    module.metric.reset()
    module.metric.update(*one_query())


# -- what is around the metric ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [False, True])
def test_a_tensor_without_dimensions(split):
    scalar, ids = torch.tensor(0.5), torch.tensor(1)
    for arguments in ((scalar, scalar), (scalar, scalar, ids), (scalar, scalar, None, torch.tensor(True))):
        metric = NDCG(split_queries=split)
        for call in (metric.update, metric):
            with pytest.raises(ValueError, match=r"preds must have a dimension for the documents.*Give it shape"):
                call(*arguments)
    for arguments in ((torch.rand(2), scalar, torch.tensor([1, 1])), (scalar, torch.rand(2))):
        with pytest.raises(ValueError, match="target must have the shape of preds"):
            metric.update(*arguments)
    with pytest.raises(ValueError, match="indexes must have the shape of preds"):
        metric.update(torch.rand(2), torch.rand(2), ids)
    with pytest.raises(ValueError, match="scores must have a dimension"):
        ndcg(scalar, scalar)


def test_bootstrapping_draws_queries_of_the_padded_form():
    """Of the flat form it would draw rows: the pieces of queries have other ideals."""
    worth = torch.arange(1, 9) / 10
    preds = torch.stack([1 - 2 * worth, torch.zeros(8), -torch.ones(8)], 1)
    mask = torch.ones(8, 3, dtype=torch.bool)
    target = torch.stack([torch.ones(8), worth, torch.zeros(8)], 1)
    each = ndcg(preds, target)
    assert each.unique().numel() > 1
    draws = 12
    strapped = BootStrapper(NDCG(), num_bootstraps=draws, raw=True, sampling_strategy="multinomial")
    torch.manual_seed(3)
    strapped.update(preds, target, mask=mask)
    got = strapped.compute()["raw"]
    torch.manual_seed(3)
    want = []
    for _ in range(draws):
        drawn = torch.multinomial(torch.ones(8), num_samples=8, replacement=True)
        want.append(each[drawn].mean())
    torch.testing.assert_close(got, torch.stack(want), rtol=1e-12, atol=0)
    assert got.unique().numel() > 1

    strapped.reset()
    strapped.update(preds, target, indexes=torch.arange(8), mask=mask)
    with pytest.raises(ValueError, match="appeared more than once"):  # a query that is drawn twice, if it has an id
        strapped.compute()
