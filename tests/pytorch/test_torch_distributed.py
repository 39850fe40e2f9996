"""The torchmetrics metric over real processes: two of them, gloo on the CPU, every scenario in one start.

With Lightning and accelerate the processes run the code of docs/training.md.
"""

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import os
import pickle
import re
import time
import traceback
import warnings
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from ndcg_ml import ndcg_score
from ndcg_ml.torch import NDCG, EpochWarning

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
    size, collate = ((4, rows), (1, padded))[rank]
    for batch in DataLoader(QUERIES, size, sampler=every_other(rank), collate_fn=collate):
        metric.update(*batch if rank == 0 else (*batch[:2], None, batch[3]))  # lists without ids
    return metric.compute()


def empty_process(rank, **settings):
    metric = NDCG(**settings)
    for batch in DataLoader(QUERIES, batch_size=8, collate_fn=rows) if rank else ():
        metric.update(*batch)
    return metric.compute()


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
    """The value, and how often the metric warned in two epochs."""
    metric = NDCG()
    sampler = DistributedSampler(QUERIES, num_replicas=WORLD, rank=rank, shuffle=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            metric.reset()
            for scores, labels, ids, mask in DataLoader(QUERIES, batch_size=6, sampler=sampler, collate_fn=padded):
                metric.update(scores, labels, ids if with_ids else None, mask)
            value = metric.compute()
    assert all("all processes have equally many lists, and some" in str(one.message) for one in caught)
    return [value, torch.tensor(len(caught))]


def batches_of_equal_size(rank, **settings):
    """Batches of four lists; the last ones are filled up by lists without documents."""
    metric = NDCG(**settings)
    for start in range(4 * rank, N_QUERIES, 8):
        lists = padded([QUERIES[number] for number in range(start, min(start + 4, N_QUERIES))])
        blank = 4 - len(lists[0])
        metric.update(*(torch.cat([part, part.new_zeros((blank, *part.shape[1:]))]) for part in lists))
    return metric.compute()


def lightning_loads_a_share_per_process(rank):
    """The numbers of training steps and of queries validated, by the code of docs/training.md."""
    import lightning

    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text("utf-8")
    blocks, scope = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL), {"__name__": "page"}
    for code in (blocks[0], *(block for block in blocks if "class Ranker" in block or "class Data" in block)):
        exec(re.split(r"\n(?:trainer = )?lightning\.Trainer", code)[0], scope)
    os.environ |= {"TORCHELASTIC_RUN_ID": "0", "LOCAL_RANK": f"{rank}", "RANK": f"{rank}", "WORLD_SIZE": f"{WORLD}"}

    class Counting(scope["Ranker"]):
        def on_validation_epoch_end(self):
            self.counted = self.val_ndcg_at_10.n_queries
            super().on_validation_epoch_end()

    model, quiet = Counting(), {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    options = quiet | {"num_sanity_val_steps": 0, "max_epochs": 1, "strategy": "ddp", "devices": WORLD}
    trainer = lightning.Trainer(accelerator="cpu", use_distributed_sampler=False, **options)
    trainer.fit(model, scope["Data"]())
    dist.all_reduce(model.counted)
    return [torch.tensor(trainer.global_step), model.counted]


def ids_of_the_batch(rank, **settings):
    metric = NDCG(**settings)
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
    with pytest.raises(ValueError, match="appeared more than once"):
        metric.compute()
    assert not metric._is_synced
    metric.reset()
    metric.update(*rows([QUERIES[number] for number in every_other(rank)]))
    return metric.compute()


def of(rows, **arguments):
    """What these rows are worth, by NumPy."""
    return ndcg_score(QUERIES.labels[rows], QUERIES.scores[rows], qid=QUERIES.qid[rows], **arguments)


def with_the_first_twice():
    """The mean of 36 queries."""
    return (QUERIES.score() * N_QUERIES + of(slice(0, QUERIES.edges[1]))) / (N_QUERIES + 1)


def in_steps():
    steps = [of(slice(QUERIES.edges[2 * number], QUERIES.edges[2 * number + 2])) for number in range(3)]
    return [*steps, np.mean(steps)]


def rounded():
    return ndcg_score(QUERIES.labels, np.round(QUERIES.scores * 10), qid=QUERIES.qid, k=10)


def of_the_first_twelve():
    n = QUERIES.edges[12]
    return ndcg_score(QUERIES.labels[:n], QUERIES.scores[:n].astype(np.float32), qid=QUERIES.qid[:n])


IN_TWO = r"3\d of the queries appeared more than once \(such as id 90071.*split_queries=True"
REPEATED = r"1 of the queries appeared more than once.*DistributedSampler"
AGAIN = r"3 of the queries.*\(such as id 0\).*query_ids='batch'"
SCENARIOS = {
    "uneven batches": (uneven_batches, lambda: list(QUERIES.score(k=[5, None]).values())),
    "empty process": (empty_process, QUERIES.score),
    "empty process, ids of the batch": (lambda rank: empty_process(rank, query_ids="batch"), QUERIES.score),
    "empty process, split queries": (lambda rank: empty_process(rank, split_queries=True), QUERIES.score),
    "no data at all": (lambda rank: NDCG(split_queries=True).compute(), "NDCG has seen no query"),
    "split queries": (split_queries, IN_TWO),
    "split queries, put together": (lambda rank: split_queries(rank, split_queries=True), lambda: QUERIES.score(k=10)),
    "split queries of different dtypes": (split_queries_of_different_dtypes, rounded),
    "distributed sampler": (distributed_sampler, REPEATED),
    "distributed sampler, no ids": (
        lambda rank: distributed_sampler(rank, with_ids=False),
        lambda: [with_the_first_twice(), 1],
    ),
    "batches of equal size": (batches_of_equal_size, QUERIES.score),
    "batches of equal size, split": (lambda rank: batches_of_equal_size(rank, split_queries=True), QUERIES.score),
    "ids of the batch": (lambda rank: ids_of_the_batch(rank, query_ids="batch"), of_the_first_twelve),
    "ids of the batch, taken for global": (ids_of_the_batch, AGAIN),
    "every step": (every_step, in_steps),
    "every step, split queries": (lambda rank: every_step(rank, split_queries=True), in_steps),
    "refused, then goes on": (refused_then_goes_on, QUERIES.score),
    "local": (local, None),
}
if find_spec("lightning"):  # each process trains on 21 of 41 queries, in batches of 8
    SCENARIOS["lightning"] = (lightning_loads_a_share_per_process, lambda: [3, 41])
"""What each process does, and the value or the error that both must have."""


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
    warnings.simplefilter("error", EpochWarning)
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=WORLD, timeout=START)
    (Path(folder) / f"{rank}.met").touch()
    came = {name: outcome(scenario, rank) for name, (scenario, _) in SCENARIOS.items()}
    (Path(folder) / f"{rank}.pickle").write_bytes(pickle.dumps(came))
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def came(tmp_path_factory):
    """What came of the scenarios, process by process. A hang is an error."""
    folder = tmp_path_factory.mktemp("distributed")
    start = "forkserver" if "forkserver" in mp.get_all_start_methods() else "spawn"
    mp.get_context(start).set_forkserver_preload(["ndcg_ml.torch.metric"])  # one import for all processes
    context = mp.start_processes(process, (str(folder),), nprocs=WORLD, join=False, start_method=start)
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


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_both_processes_say(came, name):
    values, want = [part[name] for part in came], SCENARIOS[name][1]
    for rank, value in enumerate(values):
        if isinstance(value, AssertionError):
            raise value
        if isinstance(want, str):
            with pytest.raises(ValueError, match=want):
                raise value
            continue
        if want is None:  # each keeps to itself
            its = np.isin(QUERIES.qid, QUERIES.qid[QUERIES.edges[:-1]][rank::2])
            assert value.item() == pytest.approx(of(its), abs=1e-12)
            continue
        several = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        expected = want() if isinstance(want(), list) else [want()]
        assert [each.item() for each in several] == pytest.approx(expected, abs=1e-12)
    assert want is None or str(values[0]) == str(values[1])


def accelerated(folder, code):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    loader = DataLoader(QUERIES, 4, collate_fn=padded)
    exec(code, scope := {"accelerator": accelerator, "NDCG": NDCG, "torch": torch, "loader": loader})
    Path(folder, str(accelerator.process_index)).write_text(repr(scope["metric"].compute().item()))


@pytest.mark.needs("accelerate")
@pytest.mark.filterwarnings("ignore")  # accelerate's own
def test_accelerate_gathers_all_queries(tmp_path):
    from accelerate import debug_launcher

    page = Path(__file__).parents[2] / "docs" / "training.md"
    [code] = re.findall(r"```python\n# accelerate\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
    debug_launcher(accelerated, (str(tmp_path), code), num_processes=WORLD)
    values = [float(path.read_text()) for path in tmp_path.iterdir()]
    assert values == [pytest.approx(QUERIES.score(k=10, flavor="lightgbm"), abs=1e-12)] * WORLD
