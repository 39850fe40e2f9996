"""The torchmetrics metric over epochs, in collections, copies, casts and checkpoints."""

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

import torch
from torch import nn
from torchmetrics import MetricCollection
from torchmetrics.wrappers import BootStrapper, MetricTracker

from ndcg_ml import Flavor, evaluate
from ndcg_ml.torch import NDCG, EpochWarning, ndcg_collection

pytestmark = pytest.mark.usefixtures("kernel")
MIXED = (1 + 1 / math.log2(3)) / 2


def one_query(relevant_first=True):
    return torch.tensor([[0.9, 0.1]]), torch.tensor([[1, 0]] if relevant_first else [[0, 1]])


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
    for _ in range(2):
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


# -- checkpoints --------------------------------------------------------------------------------------------------


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
    module.state_dict()  # the warning comes once
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
    for batch in (one_query(), (torch.tensor([[0.4, 0.3, 0.2, 0.1]]), torch.tensor([[0, 1, 2, 3]]))):
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

    two, three = Power(2), Power(3)
    for one, other in ((two, three), (local, lambda grade: grade), (partial(pow, 2), partial(pow, 3))):
        assert meaning(Flavor(gain=one)) == meaning(Flavor(gain=one))
        assert meaning(Flavor(gain=one)) != meaning(Flavor(gain=other))
    assert meaning(Flavor(gain=Unhashable(2))) != meaning(Flavor(gain=Unhashable(2)))
    metric, more = NDCG(Flavor(gain=local)), NDCG(Flavor(gain=local))
    for each in (metric, more):
        each.update(*one_query())
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
def test_a_compute_group_may_be_updated_and_called(split):
    """The metrics of a group share their lists."""
    collection = MetricCollection({"a": NDCG(split_queries=split), "b": NDCG(split_queries=split)})
    for number in range(6):
        call = collection.update if number in (0, 1, 4) else collection
        call(torch.tensor([[1.0, 0.0]]), torch.tensor([[number > 1, 1]]), torch.tensor([number]))
    assert len(collection.compute_groups) == 1
    values = [value.item() for value in collection.compute().values()]
    assert values == pytest.approx([(4 + 2 / math.log2(3)) / 6] * 2)


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
    assert collection["ndcg"](*batch, torch.arange(4)) == (NDCG("lightgbm", split_queries=split) + 0)(
        *batch, torch.arange(4)
    )


def test_a_metric_of_a_collection_is_bootstrapped():
    strapped = BootStrapper(ndcg_collection(k=[1, 5])["ndcg_at_5"], sampling_strategy="multinomial")
    strapped.update(torch.eye(8)[:2].repeat(8, 1), torch.eye(8)[:1].repeat(16, 1))
    assert 0.5 < strapped.compute()["mean"] < 1


def test_metrics_whose_ids_mean_different_things_share_nothing():
    collection = MetricCollection(
        {"global": NDCG(), "batch": NDCG(query_ids="batch"), "split": NDCG(split_queries=True)}
    )
    for labels in ([0, 1], [1, 0]):
        collection.update(torch.tensor([1.0, 0.0]), torch.tensor(labels), torch.tensor([0, 0]))
    assert len(collection.compute_groups) == 3
    assert collection["batch"].compute().item() == pytest.approx(MIXED)
    assert collection["split"].compute().item() == pytest.approx(evaluate([[0, 1, 1, 0]], [[1.0, 0, 1, 0]]).value)
    with pytest.raises(ValueError, match="appeared more than once"):
        collection["global"].compute()


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
