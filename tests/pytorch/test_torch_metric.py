"""The torchmetrics metric: its value, the queries it has seen, epochs, copies and checkpoints, and what it refuses."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import copy
import io
import math
import operator
import pickle
import re
import subprocess
import sys
import warnings
from contextlib import nullcontext, suppress
from functools import partial

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from torch import nn
from torch_batches import LISTS, Constants, Operations, batches, elsewhere, tensors_of
from torchmetrics import MetricCollection
from torchmetrics.wrappers import BootStrapper, MetricTracker, Running

from ndcg_ml import Flavor, evaluate
from ndcg_ml.torch import NDCG, EpochWarning, LambdaNDCGLoss, ndcg, ndcg_collection

pytestmark = pytest.mark.usefixtures("kernel")
running = pytest.mark.filterwarnings("ignore::ndcg_ml.torch.EpochWarning")  # computes while the epoch goes on


PERFECT = torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]])
WORST = torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 1]])
MIXED = (1 + 1 / math.log2(3)) / 2
"""The mean of both."""


# -- the value ----------------------------------------------------------------------------------------------------


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


@examples(40)
@given(FLAVORS, st.booleans(), st.sampled_from(["global", "batch"]), st.integers(0, 2**32))
def test_many_small_updates_are_one_evaluation(flavor, several, query_ids, seed):
    draw = torch.Generator().manual_seed(seed)
    ks = [1, 3, None] if several else ...
    metric = NDCG(flavor, k=ks, query_ids=query_ids)
    seen = list(batches(12, draw))
    for number, (scores, labels, mask) in enumerate(seen):
        first = 4 * number if query_ids == "global" else 0
        ids = torch.arange(first, first + 4)
        rows = ids[:, None].expand(4, 6)
        if number % 2:
            metric.update(scores, labels, ids if query_ids == "global" and number % 4 == 1 else None, mask)
        else:
            mask[:, 0] = True  # a flat query has a row
            order = torch.randperm(int(mask.sum()), generator=draw)
            if flavor.ties == "first":
                order = order.sort().values
            metric.update(scores[mask][order], labels[mask][order], indexes=rows[mask][order])
    scores, labels, mask = (torch.cat(part).numpy() for part in zip(*seen, strict=True))
    got, want = metric.compute(), evaluate(labels, scores, flavor=flavor, k=ks, mask=mask).value
    assert not several or list(got) == ["ndcg_at_1", "ndcg_at_3", "ndcg"]
    for value, expected in [(got[k], want[k]) for k in ks] if several else [(got, want)]:
        assert (value.dtype, value.shape) == (torch.float64, ())
        assert value.item() == pytest.approx(expected, abs=1e-12, nan_ok=True)


# -- which queries were seen --------------------------------------------------------------------------------------


ROWS, MORE = (torch.tensor([0.9, 0.1, 0.3]), torch.tensor([1, 0, 1])), (torch.tensor([0.9, 0.2]), torch.tensor([1, 0]))
TWICE = {
    "rows in two updates": ([(*ROWS, torch.tensor([7, 7, 4])), (*MORE, torch.tensor([5, 7]))], 1, 7),
    "lists in two updates": ([(*LISTS, torch.tensor([7, 4])), (*LISTS, torch.tensor([5, 7]))], 1, 7),
    "two lists of one update": ([(*LISTS, torch.tensor([7, 7]))], 1, 7),
    "rows, then a list": ([(*MORE, torch.tensor([7, 7])), (*LISTS, torch.tensor([5, 7]))], 1, 7),
    "two of many": ([(*LISTS, torch.tensor(ids)) for ids in ([1, 2], [2, 3], [3, 2], [9, 8])], 2, 2),
}
"""Updates, how many queries come twice, and the first of them."""


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 3, 2)])
def test_split_queries_take_padded_lists_of_any_number_of_dimensions(shape):
    scores, labels = torch.randn(6, 4), torch.randint(0, 3, (6, 4))
    metric = NDCG("sklearn", k=3, split_queries=True)
    ids = torch.arange(6).reshape(shape)
    for part in (slice(0, 2), slice(2, 4)):  # the documents of each query arrive in two pieces
        metric.update(*(piece[:, part].reshape(*shape, -1) for piece in (scores, labels)), ids)
    want = evaluate(labels.numpy(), scores.numpy(), flavor="sklearn", k=3).value
    assert metric.compute().item() == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("case", TWICE)
def test_a_query_that_comes_twice_is_refused(case):
    metric, (updates, n, first) = NDCG(), TWICE[case]
    for update in updates:
        metric.update(*update)
    words = rf"{n} of the .* appeared more.*\(such as id {first}.*split_queries=True.*query_ids='batch'.*Distributed"
    for _ in range(2):  # it raises every time until the reset
        with pytest.raises(ValueError, match=words):
            metric.compute()
    metric.update(*LISTS, torch.tensor([20, 21]))  # no warning beside the error
    for advised, n_tensors in ((NDCG(split_queries=True), 3), (NDCG(query_ids="batch"), 2)):
        for update in updates:  # lists without ids, rows with
            advised.update(*update[: n_tensors if update[0].ndim > 1 else 3])
        advised.compute()
    metric.reset()
    metric.update(*LISTS)  # lists without ids are not checked
    metric.update(*LISTS, torch.tensor([3, 4]))
    metric.update(*LISTS)
    metric.compute()
    assert metric.n_queries == 6


@pytest.mark.parametrize("kernel", ["host"], indirect=True)
@pytest.mark.parametrize("flavor", ["sklearn", "ndcg[empty=skip]", "ndcg[empty=nan]", "ndcg[aggregate=micro]"])
def test_one_batch_has_the_value_of_numpy_to_the_bit(flavor):
    rng, metric = np.random.default_rng(0), NDCG(flavor, k=[3, None])
    for _ in range(30):
        labels, scores = rng.integers(3, size=(rng.integers(1, 90), 8)), rng.random((1, 8))
        scores = scores + rng.random(labels.shape)
        labels[:, :7] = 0  # empty queries
        metric.update(torch.from_numpy(scores), torch.from_numpy(labels))
        want = evaluate(labels, scores, flavor=flavor, k=[3, None]).value
        values = [value.item() for value in metric.compute().values()]
        np.testing.assert_array_equal(values, list(want.values()))
        metric.reset()


@pytest.mark.parametrize("split", [False, True])
def test_ids_keep_all_digits_when_the_model_is_cast(split):
    module = nn.Module()
    module.metric = NDCG(split_queries=split)
    for number in range(4):
        scores, labels = torch.tensor([[0.1, 0.2]]), torch.tensor([[number % 2, 0]])
        module.metric.update(scores, labels, torch.tensor([2**53 + number]))
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
    metric.reset()
    metric.update(torch.tensor([2**53 + 1]), torch.tensor([1]), ids[:1])  # float64 would make it 2^53
    metric.update(torch.tensor([2.0**53]), torch.tensor([0]), ids[:1])
    with pytest.raises(ValueError, match=r"preds must not hold NaN.*got NaN in 1 query"):
        metric.compute()


@running
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("split", [False, True])
def test_what_the_caller_does_with_the_tensors_afterwards_changes_nothing(split, flat):
    scores, labels, ids = torch.tensor([[0.9, 0.1]]), torch.tensor([[1, 0]]), torch.tensor([1])
    if flat:
        scores, labels, ids = scores[0], labels[0], ids.repeat(2)
    metric = NDCG(split_queries=split)
    metric.update(scores, labels, ids)
    held = scores.flip(-1), labels.clone(), ids + 1
    scores.neg_()
    ids.add_(1)
    assert metric.compute() == 1.0
    metric.update(*held)
    labels.fill_(-9)
    assert metric.compute() == pytest.approx(0.5 + 0.5 / np.log2(3))


@pytest.mark.parametrize(("split", "where"), [(False, nullcontext), (False, elsewhere), (True, nullcontext)])
def test_an_interrupt_leaves_whole_batches(split, where):
    def stop(frame, event, _):
        nonlocal left
        if event == "line" and frame.f_globals["__name__"] == "ndcg_ml.torch.metric":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return stop

    before, n_lines, left = sys.gettrace(), 0, 0
    while left <= 0:  # before each line in turn, until there are no more
        metric, n_lines = NDCG(split_queries=split), n_lines + 1
        metric.update(*PERFECT, torch.tensor([4]))
        with where(), suppress(KeyboardInterrupt):
            left = n_lines
            sys.settrace(stop)
            try:
                metric.update(*ROWS, torch.tensor([7, 7, 3]))
            finally:
                sys.settrace(before)
        if not split:
            metric._reduce_row_ids()
        names = ("preds", "target", "ids", "listed") if split else ("ids",)
        counts = {sum(part.numel() for part in getattr(metric, name)) for name in names}
        assert len(counts | (set() if split else {int(metric.n_queries)})) == 1


@running
def test_rows_on_a_device_tell_their_queries_in_compute():
    metric = NDCG()
    with elsewhere():
        metric.update(torch.rand(5), torch.ones(5), torch.tensor([3, 1, 3, 1, 3]))
        metric.update(torch.rand(3), torch.ones(3), torch.tensor([4, 4, 4]))
    assert len(metric.row_ids) == 2
    assert metric.compute() == 1.0
    assert [ids.tolist() for ids in metric.ids] == [[1, 3], [4]]
    metric.update(torch.rand(1), torch.ones(1), torch.tensor([3]))
    with pytest.raises(ValueError, match="id 3"):
        metric.compute()


# -- one batch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [False, True])
def test_forward_does_not_copy_what_was_seen_before_and_keeps_no_gradient(split):
    """torchmetrics would copy it, and the time of an epoch would grow with the square of its batches."""
    metric, firsts = NDCG(split_queries=split), []
    for number in range(3):
        metric(PERFECT[0].clone().requires_grad_(), PERFECT[1], torch.tensor([number]))
        firsts.append(metric.ids[0])
    assert firsts[0] is firsts[1] is firsts[2]
    assert len(metric.ids) == 3
    assert not any(part.requires_grad for part in tensors_of(metric))


def test_names_and_cutoffs_find_the_same_value():
    metric = NDCG(k=[5, None])
    metric.update(*PERFECT)
    value = metric.compute()
    assert set(value) == {"ndcg_at_5", "ndcg"}
    assert value[5] is value["ndcg_at_5"]
    assert value[None] is value["ndcg"]
    for missing in (7, "ndcg_at_7", True):
        with pytest.raises(KeyError):
            value[missing]
    assert pickle.loads(pickle.dumps(value))[5] == 1.0


def test_bootstrapping_draws_queries_of_the_padded_form():
    """From the flat form it would draw rows, and pieces of queries have other ideals."""
    worth = torch.arange(1, 9) / 10
    preds = torch.stack([1 - 2 * worth, torch.zeros(8), -torch.ones(8)], 1)
    target, mask = torch.stack([torch.ones(8), worth, torch.zeros(8)], 1), torch.ones(8, 3, dtype=torch.bool)
    strapped = BootStrapper(NDCG(), num_bootstraps=12, raw=True, sampling_strategy="multinomial")
    torch.manual_seed(3)
    strapped.update(preds, target, mask=mask)
    torch.manual_seed(3)
    draws = [torch.multinomial(torch.ones(8), num_samples=8, replacement=True) for _ in range(12)]
    want = torch.stack([ndcg(preds, target)[drawn].mean() for drawn in draws])
    assert want.unique().numel() > 1
    torch.testing.assert_close(strapped.compute()["raw"], want, rtol=1e-12, atol=0)
    strapped.reset()
    strapped.update(preds, target, indexes=torch.arange(8), mask=mask)
    with pytest.raises(ValueError, match="appeared more than once"):  # a query that is drawn twice, if it has an id
        strapped.compute()
    of_several = BootStrapper(ndcg_collection(k=[1, 5])["ndcg_at_5"], sampling_strategy="multinomial")
    of_several.update(torch.eye(8)[:2].repeat(8, 1), torch.eye(8)[:1].repeat(16, 1))
    assert 0.5 < of_several.compute()["mean"] < 1


# -- merging -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["update", "forward"])
def test_a_running_window_knows_its_queries(call):
    """A query cut over two updates is refused while both are in the window, and put together if that is requested."""
    pieces = [([0.2, 0.5], [1, 1], [0, 1]), ([0.8], [0], [0]), ([0.3, 0.1], [0, 1], [2, 2])]
    whole, refusing = Running(NDCG(split_queries=True), window=2), Running(NDCG(), window=2)
    for preds, target, ids in pieces[:2]:
        for metric in (whole, refusing):
            getattr(metric, call)(torch.tensor(preds), torch.tensor(target), torch.tensor(ids))
    assert whole.compute().item() == pytest.approx((1 / math.log2(3) + 1) / 2)
    with pytest.raises(ValueError, match=r"1 of the queries appeared more than once \(such as id 0\)"):
        refusing.compute()
    later = Running(NDCG(), window=2)
    for preds, target, ids in pieces[1:]:
        getattr(later, call)(torch.tensor(preds), torch.tensor(target), torch.tensor(ids))
    assert later.compute().item() == pytest.approx(1 / math.log2(3) / 2)


def test_merging_forgets_the_value_computed_before():
    """torchmetrics 1.9 returns it again."""
    first, second = NDCG(), NDCG()
    first.update(*PERFECT, torch.tensor([1]))
    second.update(*WORST, torch.tensor([2]))
    assert first.compute() == 1.0
    second.update(torch.zeros(0, 2), torch.zeros(0, 2))
    first.merge_state(second)
    assert first.compute().item() == pytest.approx(MIXED)
    assert first.update_count == 3
    first.merge_state(second.metric_state)
    assert first.update_count == 4
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


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric NDCG was called before")
@pytest.mark.parametrize("settings_", [{}, {"query_ids": "batch"}, {"split_queries": True}], ids=str)
def test_a_process_gathers_the_same_tensors_whatever_it_has_seen(settings_):
    sent = []

    def send(tensor, group):
        sent.append(tensor)
        return [tensor]

    def gather(tensor, group):
        assert (sent[0].dtype, sent[0].ndim, group) == (tensor.dtype, tensor.ndim, "all")
        return [sent.pop(0), tensor]

    def metric(gather_all, rows, ids):
        options = {"process_group": "all", "distributed_available_fn": lambda: True, "compute_with_cache": False}
        made = NDCG(dist_sync_fn=gather_all, **options, **settings_)
        if rows is not None:
            made.update(rows[0][0], rows[1][0], torch.tensor(ids))
        return made

    first = metric(send, PERFECT, [0, 0])
    for rows, want in ((WORST, MIXED), (None, 1.0)):
        second = metric(gather, rows, [1, 1])
        for _ in range(2):  # the state is the process's own again
            assert first.compute() == 1.0
            assert second.compute().item() == pytest.approx(want)
            assert not sent


@pytest.mark.parametrize(
    "other", [NDCG("lightgbm"), NDCG(k=3), NDCG(split_queries=True), NDCG(query_ids="batch"), {}, 3]
)
def test_metrics_of_unlike_meaning_are_not_merged(other):
    with pytest.raises(ValueError, match=r"incoming_state must be an NDCG.*with other states"):
        NDCG().merge_state(other)


@pytest.mark.parametrize("settings_", [{}, {"query_ids": "batch"}, {"split_queries": True}], ids=str)
def test_update_never_waits_for_an_accelerator(settings_):
    # A meta tensor has no data, so that any look at them raises.
    unjudged, best = Flavor(ideal="local", unjudged="zero"), Flavor(ideal="max", max_grade=4, ties="best")
    for flavor in ("sklearn", "lightgbm", unjudged, best):
        metric = NDCG(flavor, k=[2, None], **settings_).to("meta")
        scores, labels = torch.rand(3, 5, device="meta"), torch.ones(3, 5, device="meta")
        ids = None if settings_.get("query_ids") == "batch" else labels[:, 0].long()
        metric.update(scores, labels, ids, mask=scores > 0)
        metric.update(scores.flatten(), labels.flatten(), indexes=labels.flatten().long())
        assert {part.device.type for part in tensors_of(metric)} == {"meta"}


@pytest.mark.parametrize("flavor", ["sklearn", "lightgbm"])
def test_update_on_a_device_launches_little_more_than_the_ranking(flavor):
    scores, labels, mask = next(batches(1, torch.Generator().manual_seed(0)))
    metric = NDCG(flavor)
    for form in ({}, {"mask": mask}):
        with elsewhere():
            with Operations() as of_update:
                metric.update(scores, labels, **form)
            with Operations() as of_ranking:
                ndcg(scores, labels, flavor=flavor, **form)
        assert of_update.n < 1.25 * of_ranking.n


@pytest.mark.parametrize("kernel", ["torch"], indirect=True)
@pytest.mark.parametrize("flavor", ["sklearn", "lightgbm", Flavor(ideal="max", gain=(0, 1, 3), max_grade=2)], ids=str)
def test_constants_are_summed_on_the_host_and_kept_on_the_device(flavor):
    scores, ids = torch.rand(3, 5, device="meta", requires_grad=True), torch.arange(3, device="meta")
    metric = NDCG(flavor, k=[2, None]).to("meta")
    for kept in (False, True):
        with Constants() as seen, torch.inference_mode():
            metric.update(scores, scores, ids, mask=scores >= 0)
            metric.update(scores.flatten(), scores.flatten(), indexes=ids.repeat_interleave(5))
        assert seen.n_sums == 0
        assert not (kept and seen.n_made)
    LambdaNDCGLoss(flavor)(scores, scores.detach()).backward()  # a tensor of inference mode would be refused


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    metric = NDCG(k=[1, None])
    value = metric(*PERFECT)
    for shown in (None, [value, value]):
        figure, _ = metric.plot(shown)
        pyplot.close(figure)


# -- epochs ----------------------------------------------------------------------------------------------------------


def epoch_warnings(caught):
    return [str(one.message) for one in caught if one.category is EpochWarning]


@pytest.mark.parametrize("by", ["update", "forward"])
@pytest.mark.parametrize("split", [False, True])
def test_queries_after_a_value_without_a_reset_warn_once(split, by):
    def add(metric, number, relevant_first):
        ids = torch.tensor([number])
        (metric.update if by == "update" else metric)(*(PERFECT if relevant_first else WORST), ids)

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


@pytest.mark.parametrize("copied", [copy.deepcopy, NDCG.clone, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_knows_that_a_value_was_computed(copied):
    metric = NDCG()
    metric.update(*PERFECT)
    metric.compute()
    with pytest.warns(EpochWarning, match="after compute"):
        copied(metric).update(*PERFECT)
    fresh = copied(NDCG())
    fresh.update(*PERFECT)


def test_a_collection_warns_once_and_not_in_epochs_of_its_own():
    collection = MetricCollection({"a": NDCG(k=1), "b": NDCG(k=1), "c": NDCG("lightgbm")})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            for _ in range(3):
                collection(*PERFECT)
                collection.update(*PERFECT)
            collection.compute()
            collection.reset()
        assert epoch_warnings(caught) == []
        for _ in range(3):
            collection.update(*PERFECT)
            collection.compute()
    assert len(epoch_warnings(caught)) == 2  # one in each compute group


# -- checkpoints --------------------------------------------------------------------------------------------------


def ranker(persistent=False, **options):
    module = nn.Module()
    module.layer, module.metric = nn.Linear(2, 1), NDCG(**options)
    module.metric.persistent(persistent)
    return module


def test_a_checkpoint_holds_no_state_by_default_and_says_so_in_mid_epoch():
    module = ranker()
    assert set(module.state_dict()) == {"layer.weight", "layer.bias"}
    module.metric.update(*PERFECT)
    with pytest.warns(EpochWarning, match=r"leaves out the queries.*Call metric\.persistent\(True\)"):
        state = module.state_dict()
    assert set(state) == {"layer.weight", "layer.bias"}
    module.state_dict()  # the warning comes once
    other = ranker()
    other.metric.update(*PERFECT)
    other.metric.compute()
    other.state_dict()  # the epoch is over


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("old_is_persistent", [False, True])
@pytest.mark.parametrize("new_is_persistent", [False, True])
def test_checkpoints_with_and_without_state_load_strictly(new_is_persistent, old_is_persistent, split):
    old, new = (ranker(each, k=[1, None], split_queries=split) for each in (old_is_persistent, new_is_persistent))
    ids = torch.tensor([0])
    if old_is_persistent:
        old.metric.update(*WORST, ids)
    kept = io.BytesIO()
    torch.save(old.state_dict(), kept)
    kept.seek(0)
    new.load_state_dict(torch.load(kept, weights_only=True), strict=True)
    new.metric.update(*PERFECT, ids + 1)
    want = MIXED if old_is_persistent else 1.0
    assert new.metric.compute()[None].item() == pytest.approx(want)
    if old_is_persistent:
        assert old.metric.compute()[None].item() == pytest.approx(1 / math.log2(3))  # not the list that grew


def test_a_loaded_state_replaces_a_value_that_was_kept():
    old, new = ranker(persistent=True), ranker(persistent=True)
    old.metric.update(*WORST)
    new.metric.update(*PERFECT)
    assert new.metric.compute() == 1.0
    new.load_state_dict(old.state_dict())
    assert new.metric.compute().item() == pytest.approx(1 / math.log2(3))
    fresh = ranker()
    fresh.load_state_dict(old.state_dict())
    assert fresh.metric.compute() == new.metric.compute()  # without a warning that it was never updated
    assert fresh.metric.update_count == 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("other", [{"k": [1, 5]}, {"flavor": "lightgbm"}, {"k": 3}], ids=str)
def test_a_state_of_another_meaning_is_refused(other, strict):
    old, new = ranker(persistent=True), ranker(**other)
    old.metric.update(*PERFECT)
    for loading, state in ((new, old.state_dict()), (new.metric, old.metric.state_dict())):
        with pytest.raises(RuntimeError, match=r"metric: the checkpoint holds queries of an NDCG of another flavor"):
            loading.load_state_dict(state, strict=strict)
    assert int(new.metric.n_queries) == 0
    new.load_state_dict({name: each for name, each in old.state_dict().items() if not name.startswith("metric.")})


def test_weights_loaded_in_mid_epoch_warn_when_it_goes_on():
    module = ranker()
    weights = module.state_dict()
    module.metric.update(*PERFECT)
    module.load_state_dict(weights)
    with pytest.warns(EpochWarning, match="after load_state_dict without a reset"):
        module.metric.update(*WORST)
    assert module.metric.compute().item() == pytest.approx(MIXED)
    module.metric.reset()
    module.load_state_dict(weights)
    module.metric.update(*PERFECT)
    module.load_state_dict(weights)
    module.metric.reset()
    module.metric.update(*PERFECT)


# -- collections and copies ----------------------------------------------------------------------------------------


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
    alone = copy.deepcopy(pair)
    collection = MetricCollection(dict(zip("ab", copy.deepcopy(pair), strict=True)))
    for batch in (PERFECT, (torch.tensor([[0.4, 0.3, 0.2, 0.1]]), torch.tensor([[0, 1, 2, 3]]))):
        for metric in (collection, *alone):
            metric.update(*batch)
    assert len(collection.compute_groups) == 2
    want = [value for metric in alone for value in MetricCollection([metric]).compute().values()]
    assert [*collection.compute().values()] == want
    assert want[0] != want[1]


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
    several = Flavor(gain=math.exp2, discount=operator.neg)
    mine = [meaning(each) for each in ("lightgbm@5", Flavor(gain=math.sqrt), several, Flavor(gain=lambda y: y))]
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

    pairs = [(Power(2), Power(3)), (Unhashable(2), Unhashable(2)), (partial(pow, 2), partial(pow, 3))]
    for one, other in [(local, lambda grade: grade), *pairs]:
        assert meaning(Flavor(gain=one)) == meaning(Flavor(gain=one))
        assert meaning(Flavor(gain=one)) != meaning(Flavor(gain=other))
    metric, more = NDCG(Flavor(gain=local)), NDCG(Flavor(gain=local))
    for each in (metric, more):
        each.update(*PERFECT)
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


@pytest.mark.parametrize("split", [False, True])
def test_the_cutoffs_of_a_collection_share_their_states(split):
    collection = ndcg_collection("lightgbm", k=[1, 5, None], split_queries=split)
    several = NDCG("lightgbm", k=[1, 5, None], split_queries=split)
    tracker = MetricTracker(collection.clone(prefix="val_"))
    draw = torch.Generator().manual_seed(0)
    for _ in range(2):
        tracker.increment()
        for number in range(3):
            batch = torch.rand(4, 8, generator=draw), torch.randint(3, (4, 8), generator=draw)
            for add in (collection if number == 1 else collection.update, several.update, tracker.update):
                add(*batch, 4 * number + torch.arange(4))
        want = several.compute()
        assert collection.compute() == dict(want)
        assert tracker.compute() == {f"val_{name}": value for name, value in want.items()}
        several.reset()
        name = "preds" if split else "numerator"
        states = [metric.metric_state[name] for metric in collection.values(copy_state=False)]
        assert all(state is states[0] for state in states)
        collection.reset()
    assert len(collection.compute_groups) == 1
    assert all(isinstance(value, float) for value in tracker.best_metric().values())
    assert repr(collection["ndcg_at_5"]).startswith("NDCG('lightgbm', k=5")
    assert len(collection.plot([dict(want), dict(want)])) == 3
    batch, alone = (*batch, torch.arange(4)), NDCG("lightgbm", split_queries=split) + 0
    assert collection["ndcg"](*batch) == alone(*batch)


def test_metrics_whose_ids_mean_different_things_share_nothing():
    collection = MetricCollection({"a": NDCG(), "b": NDCG(query_ids="batch"), "c": NDCG(split_queries=True)})
    for labels in ([0, 1], [1, 0]):
        collection.update(torch.tensor([1.0, 0.0]), torch.tensor(labels), torch.tensor([0, 0]))
    assert len(collection.compute_groups) == 3


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


# -- bad data --------------------------------------------------------------------------------------------------------

BAD = {
    "NaN score": (Flavor(), [[math.nan, 0.1]], [[1.0, 0.0]], "preds must not hold NaN.*got NaN in 1 query"),
    "large scores": (Flavor(), [[2**60, 2**60 + 1]], [[1, 0]],
        "preds must hold scores that stay different in float64.*in 1 query"),
    "negative label": (Flavor(), [[0.2, 0.1]], [[-1.0, 0.0]], "target must be >= 0.*got negative ones in 1 query"),
    "NaN label": (Flavor(), [[0.2, 0.1]], [[math.nan, 0.0]], "target must not hold NaN.*in 1 query.*pass mask="),
    "beyond the table": (Flavor(gain=(0, 1)), [[0.2, 0.1]], [[2.0, 0.0]],
        "target must hold integer grades from 0 to 1"),
    "empty query": (Flavor(empty="raise"), [[0.2, 0.1]], [[0.0, 0.0]], "got an ideal DCG of 0 in 1 query"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_data_is_refused_at_once_or_by_compute_and_leaves_no_trace(case):
    flavor, scores, labels, words = BAD[case]
    metric = NDCG(flavor)
    with pytest.raises(ValueError, match=words) as raised:
        metric.update(torch.tensor(scores), torch.tensor(labels))
    for advised in re.findall(r"such as '(.*)'", str(raised.value)):
        NDCG(advised).update(torch.tensor(scores), torch.tensor(labels))
    metric.update(*PERFECT)
    assert metric.compute() == 1.0
    metric.reset()
    with elsewhere():
        metric.update(torch.tensor(scores), torch.tensor(labels))
        metric.update(*PERFECT)
    with pytest.raises(ValueError, match=words + r".*Found in the batches"):
        metric.compute()
    metric.reset()
    metric.update(*PERFECT)
    assert metric.compute() == 1.0


def test_a_query_that_is_empty_at_one_cutoff_alone_is_refused():
    metric = NDCG(Flavor(ideal="local", empty="raise"), k=(1, 3))
    with pytest.raises(ValueError, match="got an ideal DCG of 0 in 1 query"):
        metric(torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([[0, 1, 0]]))


def test_split_queries_refuse_bad_rows_at_once_and_empty_queries_in_the_end():
    metric, ids = NDCG(Flavor(empty="raise"), split_queries=True), torch.tensor([3])
    mask = torch.tensor([[True, False]])  # padding may hold anything
    assert metric(torch.tensor([[0.9, math.nan]]), torch.tensor([[0.0, -9.0]]), ids, mask).isnan()  # it may be a part
    for score, label in ((math.nan, 1.0), (0.5, math.nan), (0.5, -1.0)):
        with pytest.raises(ValueError, match=r"(preds|target) must .*in 1 query"):
            metric.update(torch.tensor([score]), torch.tensor([label]), ids)
    with pytest.raises(ValueError, match=r"got an ideal DCG of 0 in 1 query.*Found in the batches"):
        metric.compute()
    metric.update(torch.tensor([0.5]), torch.tensor([1.0]), ids)
    assert metric.compute().item() == pytest.approx(1 / math.log2(3))


@running
def test_split_queries_elsewhere_refuse_bad_rows_in_compute():
    metric, ids = NDCG(split_queries=True), torch.tensor([3])
    with elsewhere():
        mask = torch.tensor([[True, False, False]])
        metric.update(torch.tensor([[0.5, 0.9, math.nan]]), torch.tensor([[1.0, 0.0, -9.0]]), ids, mask)
        metric.update(torch.tensor([[math.nan]]), torch.zeros(1, 1), ids + 1, mask[:, 1:2])
    assert metric.compute() == 1.0
    with elsewhere():
        metric.update(torch.tensor([math.nan]), torch.tensor([1.0]), ids)
    with pytest.raises(ValueError, match=r"preds must not hold NaN.*got NaN in 1 query.*Found in the batches"):
        metric.compute()


@pytest.mark.filterwarnings("error:preds holds integers")
@pytest.mark.parametrize("split", [False, True])
def test_a_refused_batch_costs_forward_nothing(split):
    metric = NDCG(split_queries=split)
    metric(*WORST, torch.tensor([0]))
    for bad, words in (([[math.nan, 1.0]], "NaN"), ([[1.0]], "shape"), ([[3, 1]], "as if the two were swapped")):
        with pytest.raises((ValueError, UserWarning), match=words):
            metric(torch.tensor(bad), torch.tensor([[1.0, 0.5]]), torch.tensor([1]))
        assert (metric.update_count, metric._to_sync, metric._should_unsync) == (1, True, True)
    assert metric.compute().item() == pytest.approx(1 / math.log2(3))


# -- nothing to average ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric NDCG was called before")
def test_nothing_to_average():
    for metric in (NDCG(), NDCG(split_queries=True)):
        with pytest.raises(ValueError, match=r"has seen no query.*Call update before"):
            metric.compute()
    metric = NDCG("ndcg[empty=skip]", k=[1, None])
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 0]]))
    with pytest.raises(ValueError, match=r"under empty='skip'; all 1 queries have an ideal DCG of 0"):
        metric.compute()
    for empty in (0, 1, math.nan):
        metric = NDCG(Flavor(empty=empty), k=[1, None])
        metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 0]]))
        metric.compute()


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
@pytest.mark.parametrize("split", [False, True])
def test_a_batch_that_has_nothing_to_average_is_nan_and_changes_nothing(split, aggregate):
    metric = NDCG(Flavor(empty="skip", aggregate=aggregate), split_queries=split)
    assert metric(*PERFECT, torch.tensor([0])) == 1.0
    assert metric(torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 0]]), torch.tensor([1])).isnan()
    assert metric(torch.zeros(0), torch.zeros(0), torch.zeros(0, dtype=torch.int64)).isnan()
    assert metric.compute() == 1.0
    metric = NDCG(Flavor(empty=0.0, aggregate=aggregate))
    assert metric(torch.zeros(0, 2), torch.zeros(0, 2)).isnan()  # whatever an empty query is
    assert metric(torch.rand(1, 2), torch.zeros(1, 2)) == 0.0


def test_a_query_with_a_negative_ideal_has_no_part_in_micro():
    metric = NDCG(Flavor(negative="allow", aggregate="micro"))
    metric.update(torch.tensor([[0.2, 0.1], [0.2, 0.1]]), torch.tensor([[0.0, 1.0], [-2.0, -1.0]]))
    assert metric.compute().item() == pytest.approx(1 / math.log2(3))


# -- arguments -------------------------------------------------------------------------------------------------------

UPDATES = {
    "no ids": ((torch.rand(3), torch.ones(3)), ValueError,
        "indexes must be given (with 1-D input.*single query|under split_queries=True.*per row of 1-D)",
        lambda metric: (metric.update(torch.rand(3), torch.ones(3), torch.zeros(3).long()),
            metric.split_queries or metric.update(torch.rand(3)[None], torch.ones(3)[None]))),
    "an array": ((np.ones((1, 2)), torch.ones(1, 2)), TypeError, "preds must be a torch.Tensor.*ndcg_ml.ndcg_score",
        lambda metric: metric.update(torch.as_tensor(np.ones((1, 2))), torch.ones(1, 2), torch.tensor([0]))),
    "another shape": ((torch.rand(1, 2), torch.ones(2, 1), torch.tensor([0])), ValueError,
        "target must have the shape of preds", None),
    "ids of rows": ((*LISTS, torch.zeros(2, 2).long()), ValueError,
        r"one query id per list, shape \(2,\).*got \(2, 2\)",
        lambda metric: (metric.update(*LISTS, torch.zeros(2, 2).long()[..., 0]),
            metric.update(*(each.flatten() for each in (*LISTS, torch.zeros(2, 2).long()))))),
    "fractions": ((*LISTS, torch.zeros(2)), TypeError,
        "indexes must hold integers, one query id per list; got dtype torch.float",
        lambda metric: metric.update(*LISTS, torch.zeros(2).long())),
    "a mask of floats": ((*LISTS, torch.tensor([0, 1]), torch.ones(2, 2)), TypeError,
        r"mask must be a tensor of bool.*mask\.bool",
        lambda metric: metric.update(*LISTS, torch.tensor([0, 1]), torch.ones(2, 2).bool())),
    "ids from 2^63 on": ((*LISTS, torch.tensor([2**63, 5], dtype=torch.uint64)), TypeError,
        r"signed integers.*torch\.uint64.*Pass indexes\.long\(\)",
        lambda metric: metric.update(*LISTS, torch.tensor([2**63, 5], dtype=torch.uint64).long())),
    "text": ((*LISTS, ["a", "b"]), TypeError,
        r"builtins.list of text.*number = {q: i for i, q in enumerate\(ids\)}.*number\[q\] for q in indexes\]",
        lambda metric: metric.update(*LISTS,
            torch.tensor([{q: i for i, q in enumerate(["a", "b"])}[q] for q in ["a", "b"]]))),
    "an array of text": ((*LISTS, np.array([["a"], ["b"]])), TypeError, r"numpy\.ndarray of text.*number = {q: i",
        None),
    "a list": ((*LISTS, [*torch.tensor([0, 1])]), TypeError,
        r"indexes must be a torch.Tensor; got builtins.list\. Pass torch\.as_tensor\(",
        lambda metric: metric.update(*LISTS, torch.as_tensor([0, 1]))),
}  # fmt: skip
MADE = {
    "query_ids": ({"query_ids": "local"}, ValueError, "query_ids must be one of 'global', 'batch'; got 'local'",
        {"query_ids": "global"}),
    "ties": ({"flavor": Flavor(ties="docid")}, ValueError, r"ties='docid'.*Use flavor='ndcg'", {"flavor": "ndcg"}),
    "a cut-off": ({"flavor": 10}, TypeError, r"got 10 of type int\. Pass a cut-off as k=10\.", {"k": 10}),
    "split_queries": ({"split_queries": 1}, TypeError, "split_queries must be True or False; got 1", None),
    "both": ({"split_queries": True, "query_ids": "batch"}, ValueError,
        "under query_ids='batch'.*got split_queries=True", {"split_queries": True, "query_ids": "global"}),
}  # fmt: skip


@pytest.mark.parametrize("case", UPDATES)
def test_what_update_refuses(case):
    arguments, error, words, advised = UPDATES[case]
    for metric in (NDCG(), NDCG(split_queries=True)):
        with pytest.raises(error, match=words):
            metric.update(*arguments)
        if advised is not None:
            advised(metric)


def test_ids_that_have_no_use_are_refused():
    with pytest.raises(ValueError, match=r"under query_ids='batch', where.*got Tensor"):
        NDCG(query_ids="batch").update(*LISTS, torch.tensor([0, 1]))
    NDCG(query_ids="batch").update(*LISTS)


@pytest.mark.parametrize("case", MADE)
def test_what_is_refused_when_a_metric_is_made(case):
    arguments, error, words, advised = MADE[case]
    with pytest.raises(error, match=words):
        NDCG(**arguments)
    if advised is not None:
        NDCG(**advised)
