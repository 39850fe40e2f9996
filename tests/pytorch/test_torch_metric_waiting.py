"""Small batches on the CPU wait to be ranked together: nobody who looks at the metric can tell."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, flavors
from torchmetrics import MetricCollection

from ndcg_ml import Flavor
from ndcg_ml.torch import NDCG, _waiting
from ndcg_ml.torch._host import torch_kernel
from ndcg_ml.torch._waiting import WaitingBatches

pytestmark = pytest.mark.filterwarnings("ignore::ndcg_ml.torch.EpochWarning")  # looks while the epoch goes on


class NobodyWaits(WaitingBatches):
    def take(self, *batch: Any) -> bool:
        return False

    def emptied(self) -> NobodyWaits:
        return self


def at_once(*arguments: Any, **settings: Any) -> NDCG:
    """A metric that ranks every batch when it comes."""
    metric = NDCG(*arguments, **settings)
    metric._waiting = NobodyWaits(metric.flavor, metric.ks, True)
    return metric


@pytest.fixture
def rankings(monkeypatch) -> list[int]:
    """How many rows each ranking of waiting batches had."""
    counted = []

    def ranked(flavor, ks, scores, settings, *, whole):
        totals = original(flavor, ks, scores, settings, whole=whole)
        counted.append(scores.size if totals is not None else 0)
        return totals

    original = _waiting.ranked
    monkeypatch.setattr(_waiting, "ranked", ranked)
    return counted


def flat(first_id: int = 0, n_queries: int = 3, size: int = 4, seed: int = 0) -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(seed)
    rows = n_queries * size
    ids = torch.arange(first_id, first_id + n_queries).repeat_interleave(size)
    return torch.randn(rows, generator=draw), torch.randint(0, 5, (rows,), generator=draw), ids


def state_of(metric: NDCG) -> dict[str, Any]:
    """Every number of the state, in full."""
    states = {
        name: torch.cat(state).tolist() if isinstance(state, list) and state else state
        for name, state in metric.metric_state.items()
    }
    return {name: repr(state.tolist() if isinstance(state, torch.Tensor) else state) for name, state in states.items()}


def outcome(function: Callable[[], Any]) -> str:
    """The value in full, or the error."""
    try:
        value = function()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(value, dict):
        return repr({name: number.tolist() for name, number in value.items()})
    return repr(value.tolist() if isinstance(value, torch.Tensor) else value)


# -- what waits ------------------------------------------------------------------------------------------------------

IDS = flat()[2]
ROWS = flat()[:2]
LISTS = torch.rand((3, 4), generator=torch.Generator().manual_seed(1)), torch.tensor([[0, 1, 2, 0]] * 3)
MASK = torch.tensor([[True, True, False, True]] * 3)
FORMS = {
    "flat": lambda at: flat(10 * at),
    "ids that fall": lambda at: (*flat()[:2], flat(-10 * at)[2].flip(0)),
    "labels of floats": lambda at: (flat()[0], flat()[1].double(), flat(10 * at)[2]),
    "labels of bool": lambda at: (flat()[0], flat()[1] > 1, flat(10 * at)[2]),
    "ids of 32 bits": lambda at: (*flat()[:2], flat(10 * at)[2].int()),
    "scores of 16 bits": lambda at: (flat()[0].half(), *flat(10 * at)[1:]),
    "with a gradient": lambda at: (flat()[0].requires_grad_(), *flat(10 * at)[1:]),
    "the highest grade": lambda at: (flat()[0], torch.full((12,), 255), flat(10 * at)[2]),
    "the first list has one": lambda at: (*flat()[:2], torch.tensor([1, 2, 2, 3, *[4] * 8]) + 10 * at),
    "two rows": lambda at: (ROWS[0][:2], ROWS[1][:2], torch.tensor([at, at])),
    "padded": lambda at: LISTS,
    "one list": lambda at: (LISTS[0][:1], LISTS[1][:1]),
    "lists of two": lambda at: (LISTS[0][:, :2], LISTS[1][:, :2]),
    "padded, with ids": lambda at: (*LISTS, torch.arange(3) + 10 * at),
    "padded, with a mask": lambda at: (*LISTS, None, MASK),
}


@pytest.mark.parametrize("form", FORMS)
def test_batches_are_ranked_together(form, rankings):
    metric, alone = NDCG(k=[2, None]), at_once(k=[2, None])
    for at in range(5):
        metric.update(*FORMS[form](at))
        alone.update(*FORMS[form](at))
    assert not rankings
    assert outcome(metric.compute) == outcome(alone.compute)
    assert rankings == [5 * FORMS[form](0)[0].numel()]
    assert state_of(metric) == state_of(alone)


NOT_WAITING = {
    "lists of one": lambda: (*ROWS, torch.arange(12)),
    "two lists of one": lambda: (ROWS[0][:2], ROWS[1][:2], torch.tensor([1, 2])),
    "masked lists of one": lambda: (*LISTS, None, torch.tensor([[True, False, False, False]] * 3)),
    "a grade beyond a byte": lambda: (ROWS[0], torch.full((12,), 256), IDS),
    "labels that are not whole": lambda: (ROWS[0], ROWS[1] + 0.5, IDS),
    "bfloat16": lambda: (ROWS[0].bfloat16(), ROWS[1], IDS),
    "scores of integers": lambda: (ROWS[1], ROWS[1], IDS),
    "three dimensions": lambda: (LISTS[0][None], LISTS[1][None]),
    "a subclass": lambda: (ROWS[0].as_subclass(type("Own", (torch.Tensor,), {})), ROWS[1], IDS),
}


@pytest.mark.parametrize("batch", NOT_WAITING)
def test_what_is_unusual_is_ranked_at_once_after_those_before_it(batch, rankings):
    metric, alone = NDCG(k=3), at_once(k=3)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", UserWarning)
        for update in (lambda: flat(100), NOT_WAITING[batch], lambda: flat(200)):
            metric.update(*update())
            n_own = len(given)
            alone.update(*update())
            assert len(given) == 2 * n_own
            given.clear()
    assert rankings == [12]
    assert outcome(metric.compute) == outcome(alone.compute)
    assert rankings == [12, 12]
    assert state_of(metric) == state_of(alone)


@pytest.mark.parametrize(
    "flavor",
    [Flavor(empty="raise"), Flavor(gain=math.sqrt), Flavor(discount=math.sqrt), Flavor(gain=(0.0, 1.0, 3.0, 7.0, 9.0))],
    ids=["empty", "gain", "discount", "table"],
)
def test_a_flavor_that_may_refuse_a_batch_for_other_reasons_lets_none_wait(flavor, rankings):
    metric, alone = NDCG(flavor), at_once(flavor)
    for at in range(3):
        metric.update(*flat(10 * at))
        alone.update(*flat(10 * at))
    assert outcome(metric.compute) == outcome(alone.compute)
    assert not rankings


def test_those_that_have_a_room_full_of_rows_are_ranked(rankings, monkeypatch):
    monkeypatch.setattr(_waiting, "_ROOM", 36)
    metric = NDCG()
    for at in range(7):
        metric.update(*flat(10 * at))
    assert rankings == [36, 36]
    metric.update(*flat(1000, n_queries=9))  # a batch that fills the room alone
    assert rankings == [36, 36, 12]
    metric.update(*flat(2000, n_queries=7, size=5))
    metric.compute()
    assert rankings == [36, 36, 12, 35]


def test_a_room_has_262144_rows(rankings):
    metric = NDCG()
    scores, ids = torch.zeros(1 << 17), torch.zeros(1 << 17, dtype=torch.int64)
    metric.update(scores, ids, ids)
    metric.update(scores[1:], ids[1:], ids[1:] + 1)
    assert not rankings
    metric.update(scores[:2], ids[:2], ids[:2] + 2)
    assert rankings == [(1 << 18) + 1]


def test_nothing_waits_for_another_kernel(rankings):
    metric = NDCG()
    with torch_kernel():
        metric.update(*flat())
    metric.compute()
    assert not rankings


def test_rows_of_one_query_need_not_follow_each_other(rankings):
    metric, alone = NDCG(), at_once()
    batches = [flat(), (*flat(seed=1)[:2], torch.tensor([7, 9, 7, 7, 9, 9, 8, 8, 8, 8, 9, 7])), flat(20)]
    for batch in batches:
        metric.update(*batch)
        alone.update(*batch)
    assert outcome(metric.compute) == outcome(alone.compute)
    assert state_of(metric) == state_of(alone)
    assert not rankings


def test_one_id_in_two_waiting_batches_is_two_queries_and_refused():
    metric = NDCG()
    metric.update(*flat(0))
    metric.update(*flat(2))
    assert metric.n_queries == 6
    with pytest.raises(ValueError, match="1 of the queries appeared more than once \\(such as id 2\\)"):
        metric.compute()
    in_each, alone = NDCG(query_ids="batch"), at_once(query_ids="batch")
    for seed in (0, 1):
        in_each.update(*flat(0, seed=seed))
        alone.update(*flat(0, seed=seed))
    assert outcome(in_each.compute) == outcome(alone.compute)
    assert in_each.n_queries == 6
    with pytest.raises(ValueError, match="indexes of padded input serve"):
        in_each.update(*LISTS, torch.arange(3))


def value_of(batch: tuple[torch.Tensor, ...]) -> Any:
    metric = at_once()
    metric.update(*batch)
    return metric.compute()


def test_ids_that_fall_may_be_those_of_other_batches(rankings):
    metric, alone = NDCG(query_ids="batch"), at_once(query_ids="batch")
    for seed in range(4):
        batch = (*flat(seed=seed)[:2], flat()[2].flip(0))
        metric.update(*batch)
        alone.update(*batch)
    assert outcome(metric.compute) == outcome(alone.compute)
    assert rankings == [48]


def test_a_batch_may_change_after_it_was_given():
    metric, batch = NDCG(), flat()
    metric.update(*batch)
    want = value_of(batch)
    for tensor in batch:
        tensor.zero_()
    assert metric.compute() == want


@pytest.mark.parametrize(
    "bad",
    [
        (torch.tensor([0.1, math.nan, 0.3]), torch.tensor([1, 0, 2]), torch.tensor([1, 1, 1])),
        (torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, -1, 2]), torch.tensor([1, 1, 1])),
        (torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1.0, math.nan, 2]), torch.tensor([1, 1, 1])),
        (torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 5, 2]), torch.tensor([1, 1, 1])),
        (torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 4, 2]), torch.tensor([1.0, 1.0, 1.0])),
        (torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 4, 2])),
        (torch.tensor([[0.1, 0.2]]), torch.tensor([[1, 4]]), torch.tensor([1, 2])),
        (torch.tensor([[0.1, 0.2]]), torch.tensor([[1, 4]]), None, torch.tensor([[1, 1]])),
        (torch.tensor([[0.1, math.nan]] * 2), torch.tensor([[1, 4]] * 2), None, torch.tensor([[True, True]] * 2)),
        (torch.tensor([[0.1, 0.2]] * 2), torch.tensor([[1, -4]] * 2), None, torch.tensor([[True, True]] * 2)),
        (torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 4]), torch.tensor([1, 1, 1])),
        (LISTS[0][:, :1], LISTS[1][:, :1]),
    ],
    ids=[
        *("NaN score", "negative label", "NaN label", "above max_grade", "ids of floats", "no ids", "too many ids"),
        *("mask of integers", "NaN in a list", "negative in a list", "too few labels", "a column"),
    ],
)
def test_a_bad_batch_is_refused_when_it_comes_and_the_others_stay(bad):
    flavor = Flavor(max_grade=4.0)
    metric, alone = NDCG(flavor), at_once(flavor)
    metric.update(*flat())
    alone.update(*flat())
    refused = outcome(lambda: metric.update(*bad))
    assert refused.startswith(("ValueError", "TypeError"))
    assert refused == outcome(lambda: alone.update(*bad))
    assert outcome(metric.compute) == outcome(alone.compute)


def test_a_grade_of_the_scale_waits(rankings):
    metric = NDCG(Flavor(max_grade=4.0))
    metric.update(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 4, 2]), torch.tensor([1, 1, 1]))
    metric.compute()
    assert rankings == [3]


def test_padding_may_hold_anything(rankings):
    scores, labels, mask = LISTS[0].clone(), LISTS[1].float(), MASK.clone()
    scores[~mask], labels[~mask] = math.nan, -math.inf
    metric, clean = NDCG(), NDCG()
    metric.update(scores, labels, None, mask)
    clean.update(*LISTS, None, mask)
    assert metric.compute() == clean.compute()
    assert rankings == [12, 12]


def test_an_unknown_kernel_is_named_by_whoever_looks(monkeypatch):
    metric, alone = NDCG(), at_once()
    metric.update(*flat())
    monkeypatch.setenv("NDCG_ML_KERNEL", "abacus")
    alone.update(*flat())
    assert outcome(metric.compute) == outcome(alone.compute)


# -- who looks -------------------------------------------------------------------------------------------------------

LOOKS: dict[str, Callable[[NDCG], Any]] = {
    "compute": lambda metric: outcome(metric.compute),
    "a sum": lambda metric: metric.ndcg_sum.tolist(),
    "a count": lambda metric: metric.n_queries.item(),
    "the ids": lambda metric: torch.cat([torch.zeros(0), *metric.ids]).tolist(),
    "metric_state": state_of,
    "state_dict": lambda metric: outcome(lambda: len(metric.state_dict())),
    "hash": lambda metric: hash(metric) and None,
    "deepcopy": lambda metric: state_of(copy.deepcopy(metric)),
    "copy": lambda metric: state_of(copy.copy(metric)),
    "pickle": lambda metric: state_of(pickle.loads(pickle.dumps(metric))),
    "a cast": lambda metric: state_of(metric.half()),
    "a move": lambda metric: state_of(metric.to("cpu")),
    "forward": lambda metric: outcome(lambda: metric(*flat(5000))),
    "merge_state": lambda metric: metric.merge_state(other()),
    "merge_state of its state": lambda metric: metric.merge_state(other().metric_state),
    "merged into another": lambda metric: state_of(merged(metric)),
    "a state that is set": lambda metric: setattr(metric, "n_queries", metric.n_queries + 0),
    "sync": lambda metric: metric.sync(distributed_available=lambda: False),
    "reset": lambda metric: metric.reset(),
}


def other() -> NDCG:
    metric = NDCG(k=3)
    metric.update(*flat(9000, seed=9))
    return metric


def merged(metric: NDCG) -> NDCG:
    into = other()
    into.merge_state(metric)
    return into


@pytest.mark.parametrize("look", LOOKS)
def test_whoever_looks_finds_the_batches_added(look):
    metric, alone = NDCG(k=3), at_once(k=3)
    for at in range(3):
        metric.update(*flat(10 * at, seed=at))
        alone.update(*flat(10 * at, seed=at))
    assert LOOKS[look](metric) == LOOKS[look](alone)
    metric.update(*flat(100))
    alone.update(*flat(100))
    assert state_of(metric) == state_of(alone)


@st.composite
def sessions(draw: st.DrawFn) -> tuple[Any, Any, list[Any]]:
    """A flavor, cut-offs, and updates of any form with looks between them."""
    flavor = draw(flavors(callables=False, ties=draw(st.sampled_from(["average", "first", "last", "worst"]))))
    k = draw(st.sampled_from([None, 1, 3, (1, 2, None)]))
    steps: list[Any] = []
    next_id = 0
    for _ in range(draw(st.integers(1, 8))):
        if draw(st.integers(0, 4)) == 0:
            steps.append(draw(st.sampled_from(["compute", "metric_state", "pickle", "a cast", "hash"])))
            continue
        kind = draw(st.sampled_from(["flat", "flat", "flat", "mixed rows", "padded", "masked"]))
        grade = st.sampled_from(
            [0, 0, 0, 1, 1, 2, 3, 4, 254, 255, *draw(st.sampled_from([[], [], [], [-1, 0.5, 256]]))]
        )
        score = st.sampled_from([0.0, -0.0, 1.0, 0.5, -math.inf, math.inf, 2.0**20 + 1, 0.1])
        sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
        if kind in ("padded", "masked"):
            sizes = [max(sizes)] * len(sizes)
        n_rows = sum(sizes)
        dtype = draw(st.sampled_from([torch.float32, torch.float64, torch.float16]))
        preds = torch.tensor(draw(st.lists(score, min_size=n_rows, max_size=n_rows)), dtype=dtype)
        labels = draw(st.lists(grade, min_size=n_rows, max_size=n_rows))
        whole = all(isinstance(label, int) for label in labels)
        target = torch.tensor(
            labels, dtype=draw(st.sampled_from([torch.int64, torch.int16, torch.float32])) if whole else None
        )
        ids = torch.arange(next_id, next_id + len(sizes)).repeat_interleave(torch.tensor(sizes))
        next_id += len(sizes)
        if kind == "mixed rows":
            ids = ids[torch.tensor(draw(st.permutations(range(n_rows))))]
        batch = [preds, target, ids]
        if kind in ("padded", "masked"):
            batch = [preds.reshape(len(sizes), -1), target.reshape(len(sizes), -1), None]
            if kind == "masked":
                batch.append(torch.tensor(draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))))
                batch[3] = batch[3].reshape(len(sizes), -1)
        steps.append(batch)
    return flavor, k, steps


@examples(1000)
@given(sessions())
def test_nobody_can_tell_whether_batches_wait(session):
    flavor, k, steps = session
    metric, alone = NDCG(flavor, k=k), at_once(flavor, k=k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for step in steps:
            if isinstance(step, str):
                assert LOOKS[step](metric) == LOOKS[step](alone)
            else:
                assert outcome(lambda: metric.update(*step)) == outcome(lambda: alone.update(*step))  # noqa: B023
        assert outcome(metric.compute) == outcome(alone.compute)
    assert state_of(metric) == state_of(alone)


# -- several metrics -------------------------------------------------------------------------------------------------


def test_metrics_of_a_compute_group_share_what_waits():
    collection = MetricCollection({"a": NDCG(k=3), "b": NDCG(k=3), "c": NDCG(k=1)})
    alone = {"a": at_once(k=3), "b": at_once(k=3), "c": at_once(k=1)}
    for epoch in range(2):
        for at in range(4):
            collection.update(*flat(10 * at, seed=at + epoch))
            for metric in alone.values():
                metric.update(*flat(10 * at, seed=at + epoch))
        values = collection.compute()
        assert values == {name: metric.compute() for name, metric in alone.items()}
        assert len(collection.compute_groups) == 2
        collection.reset()
        for metric in alone.values():
            metric.reset()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, NDCG.clone], ids=["copy", "deepcopy", "clone"])
def test_a_copy_collects_batches_of_its_own(copied):
    metric = NDCG()
    metric.update(*flat(0))
    own = copied(metric)
    metric.reset()
    metric.update(*flat(100))
    own.update(*flat(200))
    own.update(*flat(300))
    assert metric.n_queries == 3
    assert own.n_queries == 9


def test_a_reset_ranks_nothing(rankings):
    metric = NDCG()
    metric.update(*flat())
    metric.reset()
    assert metric.n_queries == 0
    assert not rankings
    metric.update(*flat())
    assert metric.compute() == value_of(flat())


def test_a_metric_of_rows_has_no_sums():
    metric = NDCG(split_queries=True)
    metric.update(*flat())
    assert not hasattr(metric, "ndcg_sum")
    assert NDCG.ndcg_sum is not None
