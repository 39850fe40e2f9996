"""The torchmetrics metric over real processes: two of them, gloo on the CPU, every scenario in one start."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import contextlib
import pickle
import time
import traceback
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from torchmetrics.retrieval import RetrievalNormalizedDCG

from ndcg_ml import ndcg_score
from ndcg_ml.torch import NDCG

WORLD = 2
# On a busy machine processes may take minutes to import torch and to meet; what they do then takes seconds.
START, WORK = timedelta(minutes=5), timedelta(minutes=2.5)
N_QUERIES = 35  # odd, so that processes cannot be even
pytestmark = pytest.mark.skipif(not dist.is_available(), reason="this build of torch has no distributed package")


class Queries(Dataset):
    """Ragged queries with ties, some of them empty; item: scores, labels, ids."""

    def __init__(self):
        draw = np.random.default_rng(7)
        sizes = draw.integers(1, 12, N_QUERIES)
        self.qid = np.repeat(np.arange(N_QUERIES) * 1000 + 2**53, sizes)
        self.labels = draw.integers(0, 4, sizes.sum()) * np.repeat(draw.random(N_QUERIES) < 0.8, sizes)
        near = draw.random(sizes.sum()) < 0.5  # ties for float32 alone
        self.scores = np.round(draw.normal(size=sizes.sum()), 1) + 1e-10 * self.labels * near
        self.edges = np.append(0, np.cumsum(sizes))

    def __len__(self):
        return N_QUERIES

    def __getitem__(self, number):
        rows = slice(self.edges[number], self.edges[number + 1])
        return tuple(torch.from_numpy(column[rows]) for column in (self.scores, self.labels, self.qid))

    def score(self, **arguments):
        return ndcg_score(self.labels, self.scores, qid=self.qid, **arguments)


QUERIES = Queries()


def rows(items):
    return [torch.cat(column) for column in zip(*items, strict=True)]


def padded(items):
    scores, labels, ids = zip(*items, strict=True)
    pad = nn.utils.rnn.pad_sequence
    mask = pad([torch.ones(len(part), dtype=torch.bool) for part in scores], batch_first=True)
    scores, labels = (pad(list(part), batch_first=True, padding_value=9) for part in (scores, labels))
    return scores, labels, torch.stack([part[0] for part in ids]), mask


def every_other(rank):
    """A sampler that does not repeat: 18 queries in one process, 17 in the other."""
    return range(rank, N_QUERIES, WORLD)


# -- scenarios: what one process does; returns what compute said -----------------------------------------------------


def uneven_batches(rank):
    metric = NDCG("sklearn", k=[5, None])
    # Five updates of whole queries in one process, eighteen in the other.
    for batch in DataLoader(
        QUERIES, batch_size=(4, 1)[rank], sampler=every_other(rank), collate_fn=(rows, padded)[rank]
    ):
        metric.update(*batch)
    return metric.compute()


def empty_process(rank, **settings):
    metric = NDCG(**settings)
    for batch in DataLoader(QUERIES, batch_size=8, collate_fn=rows) if rank else ():
        metric.update(*batch)
    return metric.compute()


def no_data_at_all(rank):
    return NDCG(split_queries=True).compute()


def rows_by_position(rank):
    """Every row of every query in the process that its number says: queries lie in both."""
    for start in range(0, len(QUERIES.qid), 29):
        at = np.arange(start, min(start + 29, len(QUERIES.qid)))
        at = at[at % 5 < 2] if rank else at[at % 5 >= 2]
        yield tuple(torch.from_numpy(column[at]) for column in (QUERIES.scores, QUERIES.labels, QUERIES.qid))


def split_queries(rank, **settings):
    metric = NDCG("sklearn", k=10, **settings)
    for batch in rows_by_position(rank):
        metric.update(*batch)
    return metric.compute()


def split_queries_of_different_dtypes(rank):
    metric = NDCG("sklearn", k=10, split_queries=True)
    for scores, labels, ids in rows_by_position(rank):
        metric.update((scores * 10).round().to((torch.float64, torch.bfloat16)[rank]), labels, ids)
    return metric.compute()


def distributed_sampler(rank, *, with_ids=True):
    metric = NDCG()
    sampler = DistributedSampler(QUERIES, num_replicas=WORLD, rank=rank, shuffle=False)
    for scores, labels, ids, mask in DataLoader(QUERIES, batch_size=6, sampler=sampler, collate_fn=padded):
        metric.update(scores, labels, ids if with_ids else None, mask)
    return metric.compute()


def ids_of_the_batch(rank, metric_class=NDCG, **settings):
    metric = metric_class(**settings)
    for start in range(0, 12, 6):
        part = rows([QUERIES[number] for number in range(start + 3 * rank, start + 3 * rank + 3)])
        ids = torch.unique_consecutive(part[2], return_inverse=True)[1]
        metric.update(part[0].float(), part[1], indexes=ids)
    return metric.compute()


def every_step(rank, **settings):
    """``dist_sync_on_step`` with as many steps in each process."""
    metric = NDCG(dist_sync_on_step=True, **settings)
    steps = [metric(*rows([QUERIES[2 * number + rank]])) for number in range(3)]
    return [*steps, metric.compute()]


def local(rank):
    metric = NDCG(sync_on_compute=False)
    metric.update(*rows([QUERIES[number] for number in every_other(rank)]))
    return metric.compute()


def refused_then_goes_on(rank):
    metric = NDCG()
    for number in (rank, 2):
        metric.update(*rows([QUERIES[number]]))
    with contextlib.suppress(ValueError):
        metric.compute()
    assert not metric._is_synced
    metric.reset()
    metric.update(*rows([QUERIES[number] for number in every_other(rank)]))
    return metric.compute()


SCENARIOS = {
    "uneven batches": uneven_batches,
    "empty process": empty_process,
    "empty process, ids of the batch": lambda rank: empty_process(rank, query_ids="batch"),
    "empty process, split queries": lambda rank: empty_process(rank, split_queries=True),
    "no data at all": no_data_at_all,
    "split queries": split_queries,
    "split queries, put together": lambda rank: split_queries(rank, split_queries=True),
    "split queries of different dtypes": split_queries_of_different_dtypes,
    "distributed sampler": distributed_sampler,
    "distributed sampler, no ids": lambda rank: distributed_sampler(rank, with_ids=False),
    "ids of the batch": lambda rank: ids_of_the_batch(rank, query_ids="batch"),
    "ids of the batch, taken for global": ids_of_the_batch,
    "ids of the batch, torchmetrics": lambda rank: ids_of_the_batch(rank, RetrievalNormalizedDCG),
    "every step": every_step,
    "every step, split queries": lambda rank: every_step(rank, split_queries=True),
    "local": local,
    "refused, then goes on": refused_then_goes_on,
}


def outcome(scenario, rank):
    try:
        return scenario(rank)
    except ValueError as error:
        return error
    except Exception:  # the test raises it later, so that the other scenarios go on
        return AssertionError(traceback.format_exc())


def process(rank, folder):
    """Run every scenario; leave what came of each in a file."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=WORLD, timeout=START)
    (Path(folder) / f"{rank}.met").touch()
    came = {name: outcome(scenario, rank) for name, scenario in SCENARIOS.items()}
    (Path(folder) / f"{rank}.pickle").write_bytes(pickle.dumps(came))
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def came(tmp_path_factory):
    """What came of the scenarios, process by process. A hang is an error."""
    folder = tmp_path_factory.mktemp("distributed")
    context = mp.start_processes(process, (str(folder),), nprocs=WORLD, join=False, start_method="spawn")
    until = time.monotonic() + START.total_seconds()
    met = False
    try:
        while not context.join(timeout=1):
            if not met and len(list(folder.glob("*.met"))) == WORLD:
                met, until = True, time.monotonic() + WORK.total_seconds()
            if time.monotonic() > until:
                pytest.fail("the processes hang" if met else "the processes did not meet")
    finally:
        for child in context.processes:
            if child.is_alive():
                child.kill()
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(WORLD)]


@pytest.fixture
def both(came):
    """What a scenario gave in each process, which must be the same."""

    def of(name):
        values = [part[name] for part in came]
        for value in values:
            if isinstance(value, AssertionError):
                raise value
        assert str(values[0]) == str(values[1])
        return values[0]

    return of


def refused(value, words):
    with pytest.raises(ValueError, match=words):
        raise value


def test_uneven_batches(both):
    value = both("uneven batches")
    want = QUERIES.score(k=[5, None])
    assert {k: value[k].item() for k in want} == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("mode", ["", ", ids of the batch", ", split queries"])
def test_a_process_without_data(both, mode):
    assert both("empty process" + mode).item() == pytest.approx(QUERIES.score(), abs=1e-12)


def test_processes_without_any_data(both):
    refused(both("no data at all"), "NDCG has seen no query")


def test_a_query_in_two_processes_is_refused_or_put_together(both):
    refused(both("split queries"), r"3\d of the queries appeared more than once \(such as id 90071.*split_queries=True")
    assert both("split queries, put together").item() == pytest.approx(QUERIES.score(k=10), abs=1e-12)


def test_rows_of_processes_that_hold_other_dtypes(both):
    want = ndcg_score(QUERIES.labels, np.round(QUERIES.scores * 10), qid=QUERIES.qid, k=10)
    assert both("split queries of different dtypes").item() == pytest.approx(want, abs=1e-12)


def test_what_a_distributed_sampler_repeats_is_found_by_ids(both):
    refused(both("distributed sampler"), r"1 of the queries appeared more than once.*DistributedSampler")
    # Without ids it cannot be: the mean of 36 queries.
    first = ndcg_score(*(part.numpy() for part in (QUERIES[0][1], QUERIES[0][0])), group=[len(QUERIES[0][0])])
    want = (QUERIES.score() * N_QUERIES + first) / (N_QUERIES + 1)
    assert both("distributed sampler, no ids").item() == pytest.approx(want, abs=1e-12)


def test_ids_that_start_again_in_each_batch(both):
    n = int(QUERIES.edges[12])
    want = ndcg_score(QUERIES.labels[:n], QUERIES.scores[:n].astype(np.float32), qid=QUERIES.qid[:n])
    assert both("ids of the batch").item() == pytest.approx(want, abs=1e-12)
    refused(both("ids of the batch, taken for global"), r"3 of the queries.*\(such as id 0\).*query_ids='batch'")
    assert abs(both("ids of the batch, torchmetrics").item() - want) > 0.05  # three queries of the twelve


@pytest.mark.parametrize("mode", ["", ", split queries"])
def test_processes_that_meet_in_every_step(both, mode):
    *steps, whole = (value.item() for value in both("every step" + mode))
    edges = QUERIES.edges
    parts = [slice(edges[2 * number], edges[2 * number + 2]) for number in range(3)]
    want = [ndcg_score(QUERIES.labels[p], QUERIES.scores[p], qid=QUERIES.qid[p]) for p in parts]
    assert steps == pytest.approx(want, abs=1e-12)
    assert whole == pytest.approx(np.mean(want), abs=1e-12)


def test_a_process_may_keep_to_itself(came):
    for rank, part in enumerate(came):
        rows_ = np.isin(QUERIES.qid, QUERIES.qid[QUERIES.edges[:-1]][rank::2])
        want = ndcg_score(QUERIES.labels[rows_], QUERIES.scores[rows_], qid=QUERIES.qid[rows_])
        assert part["local"].item() == pytest.approx(want, abs=1e-12)


def test_after_a_refusal_and_a_reset_all_is_well(both):
    assert both("refused, then goes on").item() == pytest.approx(QUERIES.score(), abs=1e-12)
