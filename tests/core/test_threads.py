"""One object in many threads, in forked and in new processes gives bitwise the same values as in one thread."""

import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ndcg_ml import Flavor, ndcg_score, prepare
from ndcg_ml._core import kernel_and_threads as threads_module
from ndcg_ml._core.kernel_and_threads import Cache

pytestmark = pytest.mark.usefixtures("kernel")

N_THREADS = 8
FLAVORS = (
    Flavor(gain="exponential", k=10),
    Flavor(ties="first", ideal="recall", recall_depth=7),
    Flavor(ideal="recall", score_dtype="float32", aggregate="micro"),
)


@pytest.fixture
def data():
    """Labels, sizes of queries of many lengths, and tied scores."""
    rng = np.random.default_rng(11)
    sizes = rng.integers(0, 60, 120)
    labels = rng.integers(0, 5, sizes.sum())
    scores = [np.round(rng.normal(size=labels.size), 2).astype(dtype) for dtype in ("f4", "f8") for _ in range(12)]
    return labels, sizes, scores


@pytest.fixture
def many_threads(monkeypatch):
    """Let small inputs use the kernel's threads. Return the set of threads that start."""
    seen = set()
    start = threading.Thread.start

    def noted(self):
        seen.add(self)
        start(self)

    monkeypatch.setattr(threads_module, "_SLOTS_PER_THREAD", 16)
    monkeypatch.setattr(threading.Thread, "start", noted)
    threads_module._pool.cache_clear()  # threads kept from earlier calls would not start
    return seen


def together(call, arguments, times=3):
    """Call from several threads at once; return the results in the order of the arguments."""
    arguments = list(arguments) * times
    barrier = threading.Barrier(N_THREADS)

    def work(number):
        barrier.wait(60)
        return [(at, call(*arguments[at])) for at in range(number, len(arguments), N_THREADS)]

    with ThreadPoolExecutor(N_THREADS) as pool:
        results = dict(pair for part in pool.map(work, range(N_THREADS)) for pair in part)
    return [results[at] for at in range(len(arguments))]


@pytest.mark.parametrize("flavor", FLAVORS, ids=str)
@pytest.mark.parametrize("threads", [None, 3])
def test_a_prepared_object_in_eight_threads(data, flavor, threads, many_threads, kernel):
    labels, sizes, scores = data
    prepared = prepare(labels, group=sizes, flavor=flavor, k=(1, 5, None), threads=threads)
    serial = [prepare(labels, group=sizes, flavor=flavor, k=(1, 5, None), threads=1)(each) for each in scores]
    many_threads.clear()
    threads_module._pool.cache_clear()
    got = together(prepared, [(each,) for each in scores])
    assert got == serial * 3
    # The eight threads here, and those of the compiled kernel if requested: these calls are not from the main thread.
    some = threads is not None and kernel == "compiled" and flavor.recall_depth is None
    assert len(many_threads) > N_THREADS if some else len(many_threads) == N_THREADS


def test_an_error_in_one_thread_does_not_change_the_object(data, many_threads):
    labels, sizes, scores = data
    prepared = prepare(labels, group=sizes, threads=2)
    alone = prepared(scores[0])
    bad = scores[0].copy()
    bad[3] = np.nan

    def attempt(each):
        try:
            return prepared(each)
        except ValueError as error:
            return str(error)

    got = together(attempt, [(scores[0],), (bad,)], times=16)
    assert got[::2] == [alone] * 16
    assert all("y_score must not hold NaN" in message for message in got[1::2])


def test_an_error_in_another_thread_is_raised_when_all_have_ended():
    begun, ended = threading.Event(), []

    def work(items):
        if threading.current_thread() is threading.main_thread():
            assert begun.wait(60)
            ended.append("this one")
        else:
            begun.set()
            raise ValueError("in another one")

    with pytest.raises(ValueError, match="in another one"):
        threads_module.run_in_threads(work, range(10), 2)
    assert ended == ["this one"]


FORKED = """
import multiprocessing, warnings
import numpy as np
from ndcg_ml import prepare
from ndcg_ml._core import kernel_and_threads as threads_module
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork while threads run
threads_module._SLOTS_PER_THREAD = 16
rng = np.random.default_rng(3)
sizes = rng.integers(1, 60, 300)
labels, scores = rng.integers(0, 5, sizes.sum()), rng.normal(size=sizes.sum())
prepared = prepare(labels, group=sizes, threads=4)
before = prepared(scores)

def again():
    return prepared(scores), prepare(labels, group=sizes, threads=4)(scores)

context = multiprocessing.get_context("fork")
receive, send = context.Pipe(False)
child = context.Process(target=lambda: send.send(again()))
child.start()
child.join(60)
if child.is_alive():
    child.kill()
    print("hangs")
else:
    print(receive.poll(0) and receive.recv() == (before, before))
print(again() == (before, before))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_after_the_threads_were_used():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120)
    assert (done.stdout.split(), done.stderr) == (["True", "True"], "")


def test_pickled_objects_give_the_same_values(data):
    labels, sizes, scores = data
    qid = np.array([f"q{i}" for i in np.repeat(np.arange(sizes.size), sizes)])
    weight = np.arange(len(set(qid))) + 1
    for flavor in FLAVORS:
        for each in (
            prepare(labels, group=sizes, flavor=flavor, k=(1, None)),
            prepare(labels, qid=qid, flavor=flavor),
            prepare(labels, qid=qid[::-1], flavor=flavor, retrieved=labels < 4, query_weight=weight),
        ):
            assert pickle.loads(pickle.dumps(each))(scores[0]) == each(scores[0])


AT_EXIT = """
import atexit
from ndcg_ml._core.kernel_and_threads import run_in_threads
done = []
def late():
    run_in_threads(done.extend, range(100), 3)
    print(len(done))
atexit.register(late)
if {before}:
    run_in_threads(list, range(10), 3)
"""


@pytest.mark.parametrize("before", [True, False])
def test_ranking_in_an_exit_handler(before):
    """A logger that is flushed at exit may do this."""
    run = subprocess.run(
        [sys.executable, "-c", AT_EXIT.format(before=before)], capture_output=True, text=True, timeout=60
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "100\n", "")


FORK = """
import os, signal, threading
os.environ.pop("NDCG_ML_KERNEL", None)
from ndcg_ml._core import kernel_and_threads as choice
begun, go_on = threading.Event(), threading.Event()
def compiling():
    begun.set()
    go_on.wait(30)
    return None, "it is a test"
choice._load, choice._numba_is_installed = compiling, lambda: True
choice._WORTH_COMPILING = 0
other = threading.Thread(target=choice.compiled_rank, args=("auto", 1))
other.start()
begun.wait(30)
child = os.fork()
if child == 0:
    signal.alarm(20)
    assert choice.compiled_rank("auto", 1) is None
    try:
        choice.compiled_rank("compiled", 1)
    except ImportError as error:
        assert "forked while another thread compiled" in str(error)
        os._exit(0)
status = os.waitpid(child, 0)[1]
go_on.set()
other.join()
assert choice._State.failure == "it is a test"
print(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_another_thread_compiles():
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=90)
    assert run.stdout == "0\n", (run.stdout, run.stderr)


def test_the_number_of_threads(monkeypatch):
    plenty, thread_count = 100 << 17, threads_module.thread_count
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8), raising=False)
    monkeypatch.delenv("NDCG_ML_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count(None, plenty) == 8
    assert thread_count(None, 1000) == 1
    assert thread_count(3, plenty) == 3
    for odd in ("²", "", "x", "0", "-1", "1.5"):
        monkeypatch.setenv("OMP_NUM_THREADS", odd)
        assert thread_count(None, plenty) == 8
    monkeypatch.setenv("OMP_NUM_THREADS", "2,1")
    assert thread_count(None, plenty) == 2
    monkeypatch.setenv("NDCG_ML_THREADS", "1")
    assert thread_count(None, plenty) == 1
    monkeypatch.setenv("NDCG_ML_THREADS", "")  # an empty variable counts as not set
    assert thread_count(None, plenty) == 2
    monkeypatch.delenv("NDCG_ML_THREADS")
    seen = []
    worker = threading.Thread(target=lambda: seen.append((thread_count(None, plenty), thread_count(3, plenty))))
    worker.start()
    worker.join()
    assert seen == [(1, 3)]


@pytest.mark.parametrize("value", ["0", "many", "2.5", " ", "²"])
def test_a_wrong_number_of_threads_is_refused(monkeypatch, value):
    monkeypatch.setenv("NDCG_ML_THREADS", value)
    with pytest.raises(ValueError, match="NDCG_ML_THREADS must be an integer >= 1"):
        ndcg_score([1, 0], [1, 0], group=[2])
    with pytest.raises(ValueError, match="threads must be an integer >= 1"):
        prepare([1, 0], group=[2], threads=0)
    with pytest.raises(TypeError, match=r"threads must be an integer >= 1, or None for the default; got 1\.5"):
        prepare([1, 0], group=[2], threads=1.5)


def contents(number: float) -> tuple[np.ndarray, None]:
    return np.full(3, number), None


def test_the_least_recently_used_data_are_dropped_first() -> None:
    cache: Cache[float] = Cache(2)
    made: list[float] = []

    def prepared(number: float) -> float:
        return cache.get_or_make(contents(number), lambda: made.append(number) or number)

    assert [prepared(number) for number in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert made == [1, 2, 3, 2]  # 1 was used after 2, so 3 replaced 2
    assert len(cache) == 2


def test_data_are_compared_by_content_with_copies_and_nan_is_found_again() -> None:
    cache: Cache[str] = Cache(4)
    arrays = contents(1.0)
    assert cache.get_or_make(arrays, lambda: "first") == "first"
    arrays[0][0] = 7
    assert cache.get_or_make(arrays, lambda: "changed in place") == "changed in place"
    assert cache.get_or_make(contents(1.0), lambda: "again") == "first"
    assert cache.get_or_make((contents(1.0)[0].astype(np.float32), None), lambda: "another dtype") == "another dtype"
    assert cache.get_or_make((contents(1.0)[0], np.zeros(1)), lambda: "weights") == "weights"
    cache: Cache[str] = Cache(4)
    labels, ids = np.array([1.0, np.nan, 0.0]), np.array(["a", "a", "b"])
    assert cache.get_or_make((labels, ids), lambda: "first") == "first"
    assert cache.get_or_make((labels.copy(), ids), lambda: "again") == "first"
    assert cache.get_or_make((np.array([1.0, 0.0, np.nan]), ids), lambda: "moved") == "moved"
