"""The compiled kernel is bitwise identical to the NumPy kernel; when it is used; what happens if it cannot be."""

import hashlib
import itertools
import math
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import quick
from strategies import examples, flavors, problems

from ndcg_ml import Flavor, ndcg_score, prepare, show_versions
from ndcg_ml._core import kernel_and_threads as choice


def the_compiled_kernel():
    """Return the compiled kernel, or skip if Numba cannot be used. A kernel with wrong numbers fails the test."""
    try:
        import numba
    except ImportError as error:
        pytest.skip(str(error))
    if tuple(map(int, numba.__version__.split(".")[:2])) < choice.OLDEST_NUMBA[:2] or numba.config.DISABLE_JIT:
        pytest.skip(f"Numba {numba.__version__} is too old, or told not to compile")
    return choice.compiled_rank("compiled", 0)


@pytest.fixture
def compiled():
    return the_compiled_kernel()


@pytest.fixture
def not_loaded(monkeypatch):
    """Set the state of a process that has Numba and has not ranked anything."""
    for name, value in (("rank", None), ("failure", None), ("slots", 0)):
        monkeypatch.setattr(choice._State, name, value)
    monkeypatch.setattr(choice, "_numba_is_installed", lambda: True)
    monkeypatch.delenv("NDCG_ML_KERNEL", raising=False)


SIZES = {
    "few": lambda rng: rng.integers(0, 8, 12),  # ranked in lanes
    "some": lambda rng: rng.integers(0, 60, 12),  # sorted by counting and by buckets
    "short": lambda rng: rng.integers(0, 36, 700),  # many lanes, of all ranges of lengths
    "of one length": lambda rng: np.full(130, 10),  # all lanes twice, and two further lists
    "many": lambda rng: rng.integers(0, 400, 10),  # scores above a bound are sorted
    "long": lambda rng: rng.integers(0, 3000, 6),  # stretches without a score above the bound are skipped
}
SCORES = {
    "untied": lambda rng, n: rng.normal(size=n),
    "rounded": lambda rng, n: rng.normal(size=n).round(1),
    "three values": lambda rng, n: rng.integers(0, 3, n) * 1.0,
    "constant": lambda rng, n: np.zeros(n),
    "uneven": lambda rng, n: np.exp(30 * rng.normal(size=n)),
    "two heaps": lambda rng, n: rng.integers(0, 2, n) + 1e-9 * rng.normal(size=n),
    "rising": lambda rng, n: np.arange(n) * 1.0,
    "falling": lambda rng, n: -np.arange(n) * 1.0,
    "at the ends": lambda rng, n: np.where(
        rng.random(n) < 0.1, rng.choice([-np.inf, np.inf, 1e308, -1e308, -0.0], n), rng.normal(size=n).round(2)
    ),
    "mostly -inf": lambda rng, n: np.where(rng.random(n) < 0.8, -np.inf, rng.normal(size=n)),
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
}
IDEALS = (
    {"ideal": "global"},
    {"ideal": "global", "ideal_depth": "all"},
    {"ideal": "recall", "ideal_depth": "retrieved"},
    {"ideal": "max", "max_grade": 5},
    {"ideal": "given"},
)


# Each size with two kinds of scores, and each kind with at least one size.
QUICK = {
    *[(size, scores) for size in SIZES for scores in ("rounded", "at the ends")],
    *zip(itertools.cycle(SIZES), SCORES, strict=False),
}


@pytest.mark.parametrize(("sizes", "scores"), quick(QUICK, itertools.product(SIZES, SCORES)))
def test_both_kernels_are_bitwise_identical(sizes, scores, compiled):
    rng = np.random.default_rng([len(sizes), *scores.encode()])
    group = SIZES[sizes](rng)
    n = int(group.sum())
    labels = [rng.integers(0, 5, n).astype(float), np.sqrt(rng.integers(0, 5, n)), 3 * rng.random(n)]
    s = SCORES[scores](rng, n)
    retrieved = rng.random(n) < 0.7
    for number, ideal in enumerate(IDEALS):
        for ties in ("average", "first", "last", "best", "worst"):
            flavor = Flavor(ties=ties, empty=0.0, score_dtype="float32" if number % 3 == 0 else "float64", **ideal)
            named = {
                "flavor": flavor,
                "group": group,
                "k": ((10,), (1, 3, 10), (20, 100, None), (5, 500))[number % 4],
                "retrieved": retrieved if number % 2 else None,
            }
            mine, other = (
                prepare(labels[number % 3], kernel=kernel, threads=1, **named).totals(s)
                for kernel in ("compiled", "numpy")
            )
            assert mine.dcg.tobytes() == other.dcg.tobytes(), (flavor, "dcg")
            assert (mine.ideal == other.ideal).all(), (flavor, "ideal")


def test_both_kernels_return_the_recorded_bits_on_every_system(compiled):
    """A fused multiply-add would change them. Square roots, unlike logarithms, are rounded alike everywhere."""
    rng = np.random.default_rng(59)
    group = rng.integers(0, 400, 99)
    labels, scores = np.sqrt(rng.integers(0, 5, group.sum())), rng.integers(0, 200, group.sum()) / 8
    flavor = Flavor(discount=lambda rank: 1 / math.sqrt(rank), empty=0.0)
    for kernel in ("numpy", "compiled"):
        totals = prepare(labels, group=group, flavor=flavor, k=(3, 10, None), kernel=kernel).totals(scores)
        parts = (totals.dcg, totals.ideal, totals.mean(flavor))
        assert hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16] == "1b3125f05ed73d37"


@examples(100)
@given(st.data())
def test_both_kernels_are_bitwise_identical_under_every_flavor(data):
    the_compiled_kernel()
    flavor = data.draw(flavors(empty=0.0, recall_depth=None, ideals=("global", "recall", "max", "given")))
    arguments = data.draw(problems(flavor, max_docs=40)).flat(flavor)
    scores = arguments.pop("y_score")
    mine, other = (
        prepare(flavor=flavor, kernel=kernel, **arguments).totals(scores) for kernel in ("compiled", "numpy")
    )
    assert (mine.dcg == other.dcg).all()
    assert (mine.ideal == other.ideal).all()
    assert mine.values(flavor) == other.values(flavor)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_do_not_change_a_bit(threads, compiled):
    rng = np.random.default_rng(0)
    group = np.concatenate([[0, 0, 200_000], rng.integers(0, 300, 2000), [0]])
    labels, scores = rng.random(group.sum()), rng.normal(size=group.sum()).round(2)
    one = prepare(labels, group=group, k=(10, None), kernel="compiled", threads=1)
    several = prepare(labels, group=group, k=(10, None), kernel="compiled", threads=threads)
    assert several.totals(scores).dcg.tobytes() == one.totals(scores).dcg.tobytes()
    assert several.totals(scores).ideal.tobytes() == one.totals(scores).ideal.tobytes()


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("n", [1, 5, 20, 200, 2000, 400_000])
def test_a_nan_at_any_row_is_refused(n, threads, compiled):
    group = [3, n, 0, 2]
    prepared = prepare(np.ones(n + 5), group=group, k=10, kernel="compiled", threads=threads)
    for at in {3, 3 + n // 2, 3 + n - 1, n + 4}:
        scores = np.arange(n + 5.0)
        scores[at] = np.nan
        with pytest.raises(ValueError, match=f"y_score must not hold NaN.*got 1 of {n + 5}, the first at row {at}"):
            prepared(scores)


def test_a_prepared_object_whose_arrays_are_memory_maps(compiled, tmp_path):
    """joblib sends large arrays to its workers this way."""
    y, s, qid = np.array([3.0, 0, 1, 2, 0]), np.array([0.1, 0.5, 0.3, 0.2, 0.4]), [1, 2, 1, 2, 1]
    prepared = prepare(y, qid=qid, kernel="compiled")
    for name in ("row_gains",):
        mapped = np.memmap(tmp_path / name, dtype=np.float64, mode="w+", shape=5)
        mapped[:] = getattr(prepared._graded, name)
        object.__setattr__(prepared._graded, name, np.memmap(tmp_path / name, dtype=np.float64, mode="r"))
    assert prepared(s) == prepare(y, qid=qid, kernel="numpy")(s)


def used(prepared, scores, monkeypatch):
    """Return the kernel that a call uses."""
    seen = []
    by_numpy = type(prepared)._rank_by_numpy
    monkeypatch.setattr(type(prepared), "_rank_by_numpy", lambda *each: seen.append("numpy") or by_numpy(*each))
    prepared(scores)
    return seen or ["compiled"]


@pytest.mark.parametrize("switches", [{"ideal": "local"}, {"ideal": "recall", "recall_depth": 2}])
def test_an_ideal_that_depends_on_the_ranking_needs_the_numpy_kernel(switches, compiled, monkeypatch):
    flavor = Flavor(**switches)
    with pytest.raises(ValueError, match=r"kernel must be 'auto' or 'numpy' .* got 'compiled'\. Pass kernel='auto'"):
        prepare([1, 0], group=[2], flavor=flavor, kernel="compiled")
    for variable in ("compiled", ""):
        monkeypatch.setenv("NDCG_ML_KERNEL", variable)
        monkeypatch.setattr(choice, "_WORTH_COMPILING", 0)
        assert used(prepare([1, 0], group=[2], flavor=flavor, kernel="auto"), [1, 2], monkeypatch) == ["numpy"]


@pytest.mark.parametrize("asked", ["numpy", "compiled"])
@pytest.mark.parametrize("variable", ["numpy", "compiled", "", None])
def test_the_argument_overrides_the_variable(asked, variable, compiled, monkeypatch):
    if variable is None:
        monkeypatch.delenv("NDCG_ML_KERNEL", raising=False)
    else:
        monkeypatch.setenv("NDCG_ML_KERNEL", variable)
    assert used(prepare([1, 0], group=[2], kernel=asked), [1, 2], monkeypatch) == [asked]
    if variable:
        assert used(prepare([1, 0], group=[2]), [1, 2], monkeypatch) == [variable]


def test_the_compiled_kernel_starts_after_enough_rows(compiled, not_loaded, monkeypatch):
    loads = []
    monkeypatch.setattr(choice, "_load", lambda: loads.append(1) or (compiled, None))
    monkeypatch.setattr(choice, "_WORTH_COMPILING", 1000)
    y, s = np.arange(100.0), np.arange(100.0)[::-1].copy()
    prepared = prepare(y, group=[100], kernel="auto")  # sorting for the ideal also counts as a call
    kernels = [used(prepared, s, monkeypatch)[0] for _ in range(12)]
    assert kernels == ["numpy"] * 8 + ["compiled"] * 4
    assert loads == [1]
    assert len({prepared(s), prepare(y, group=[100], kernel="numpy")(s)}) == 1


def test_calls_do_not_wait_while_another_thread_compiles(not_loaded, monkeypatch):
    monkeypatch.setattr(choice, "_WORTH_COMPILING", 0)
    began, go_on = threading.Event(), threading.Event()

    def slowly():
        began.set()
        assert go_on.wait(60)
        return None, "it is a test"

    monkeypatch.setattr(choice, "_load", slowly)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = threading.Thread(target=choice.compiled_rank, args=("auto", 1))
        other.start()
        assert began.wait(60)
        assert ndcg_score([1, 0], [1, 2], group=[2]) < 1
        go_on.set()
        other.join()
    assert choice._State.failure == "it is a test"


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        ("GPU", ValueError, "kernel must be one of 'auto', 'numpy', 'compiled'; got 'GPU'."),
        ("Numpy", ValueError, "kernel must be one of 'auto', 'numpy', 'compiled'; got 'Numpy'. Did you mean 'numpy'?"),
        (None, TypeError, "kernel must be one of 'auto', 'numpy', 'compiled'; got None."),
    ],
)
def test_a_wrong_kernel_is_refused(kernel, error, message):
    with pytest.raises(error) as raised:
        prepare([1, 0], group=[2], kernel=kernel)
    assert str(raised.value) == message


def test_a_wrong_variable_is_refused(monkeypatch):
    monkeypatch.setenv("NDCG_ML_KERNEL", "fast")
    with pytest.raises(ValueError, match="the environment variable NDCG_ML_KERNEL must be one of 'auto', 'numpy'"):
        ndcg_score([1, 0], [1, 0], group=[2])
    assert prepare([1, 0], group=[2], kernel="numpy")([1, 0]) == 1


def test_without_numba_the_numpy_kernel_is_used_silently(not_loaded, monkeypatch):
    monkeypatch.setattr(choice, "_numba_is_installed", lambda: False)
    monkeypatch.setattr(choice, "_WORTH_COMPILING", 0)
    assert used(prepare([1, 0], group=[2]), [1, 2], monkeypatch) == ["numpy"]
    with pytest.raises(
        ImportError, match=r"kernel='compiled' .* Numba is not installed. .* pip install \"\.\[fast\]\""
    ):
        prepare([1, 0], group=[2], kernel="compiled")


FAULTS = {
    "raise ImportError('Numba needs NumPy 1.24 or less')": "ImportError: Numba needs NumPy 1.24 or less",
    "raise SystemError('initialization failed')": "SystemError: initialization failed",
    "__version__ = '0.57.1'": r"Numba 0.57.1 is older than 0.58.1. Install it with: pip install \"\.\[fast\]\"",
    "__version__ = '0.99.0'": "AttributeError: module 'numba' has no attribute 'config'",
}

BROKEN = """
import sys, warnings
import numpy as np
from ndcg_ml import prepare
from ndcg_ml._core import kernel_and_threads as choice
assert "numba" not in sys.modules
choice._WORTH_COMPILING = 0
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    print(prepare([3, 0, 1], group=[3])([1, 2, 3]))
    print(prepare([3, 0, 1], group=[3])([1, 2, 3]))
print(len(seen), seen[0].category.__name__, seen[0].message)
try:
    prepare([3, 0, 1], group=[3], kernel="compiled")
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_numba_that_does_not_work_warns_once(fault, tmp_path):
    (tmp_path / "numba.py").write_text(fault)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    environment.pop("NDCG_ML_KERNEL", None)
    done = subprocess.run([sys.executable, "-c", BROKEN], env=environment, capture_output=True, text=True, check=True)
    values, (warning, refusal) = done.stdout.splitlines()[:2], done.stdout.splitlines()[2:]
    assert [float(value) for value in values] == [prepare([3, 0, 1], group=[3], kernel="numpy")([1, 2, 3])] * 2
    assert warning.startswith("1 RuntimeWarning The NumPy kernel is used because the compiled kernel cannot be: ")
    for text in (warning, refusal):
        with pytest.raises(AssertionError, match=FAULTS[fault]):
            raise AssertionError(text)


def test_a_kernel_that_computes_wrong_numbers_is_not_used(compiled, not_loaded, monkeypatch):
    from ndcg_ml._core import compiled_kernel

    def wrong(*arguments):
        done = compiled(*arguments)
        arguments[-1][:] *= 1 + 1e-12
        return done

    monkeypatch.setattr(compiled_kernel, "rank", wrong)
    monkeypatch.setattr(choice, "_WORTH_COMPILING", 0)
    with pytest.warns(RuntimeWarning, match="compiles it to wrong numbers"):
        assert used(prepare([1, 0], group=[2]), [1, 2], monkeypatch) == ["numpy"]


NO_CACHE = """
import numpy as np
from ndcg_ml import prepare
print(prepare([3, 0, 1], group=[3], kernel="compiled")([1, 2, 3]))
"""


def test_without_a_cache_folder_the_kernel_is_compiled_every_time(compiled, tmp_path):
    cache = tmp_path / "cache"
    cache.write_text("a file, in which no folder can be made, whoever asks")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "HOME": str(cache), "XDG_CACHE_HOME": str(cache)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run([sys.executable, "-c", NO_CACHE], env=environment, capture_output=True, text=True, check=True)
    expected = prepare([3, 0, 1], group=[3], kernel="numpy")([1, 2, 3])
    assert (float(done.stdout), done.stderr) == (expected, "")


@pytest.mark.parametrize(
    ("variable", "rank", "failure", "installed", "kernel"),
    [
        (None, None, None, True, "numpy; compiled once 64 million rows were ranked (5 so far)"),
        (None, print, None, True, "compiled"),
        (None, None, "it is broken", True, "numpy (it is broken)"),
        ("compiled", None, None, True, "compiled (NDCG_ML_KERNEL=compiled)"),
        ("compiled", None, "it is broken", True, "none (NDCG_ML_KERNEL=compiled, but it is broken)"),
        ("numpy", print, None, True, "numpy (NDCG_ML_KERNEL=numpy)"),
        (
            *(None, None, None, False),
            'numpy (Numba is not installed. Install it with: pip install ".[fast]" in a clone of ndcg_ml)',
        ),
    ],
)
def test_show_versions(variable, rank, failure, installed, kernel, not_loaded, monkeypatch, capsys, tmp_path):
    about = "Name: ndcg_ml\nProject-URL: Place, https://a.example/x\nProject-URL: Nowhere, https://example.invalid/x\n"
    (tmp_path / "ndcg_ml-9.dist-info").mkdir()
    (tmp_path / "ndcg_ml-9.dist-info" / "METADATA").write_text(about)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(choice, "_numba_is_installed", lambda: installed)
    monkeypatch.setenv("NDCG_ML_THREADS", "3")
    monkeypatch.setenv("NDCG_ML_KERNEL", variable or "")
    monkeypatch.setattr(choice._State, "rank", rank)
    monkeypatch.setattr(choice._State, "failure", failure)
    monkeypatch.setattr(choice._State, "slots", 5 << 20)
    show_versions()
    rows = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert (rows["numpy"], rows["threads"]) == (np.__version__, "at most 3, in the compiled kernel")
    assert rows["kernel"] == kernel
    assert (rows["Place"], "Nowhere" in rows) == ("https://a.example/x", False)
