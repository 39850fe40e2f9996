"""Shared fixtures, Hypothesis profiles, and skipping of tests without their packages."""

import gc
import os
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Workers of pytest-xdist already use all cores.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from ndcg_ml._core import kernel_and_threads as choice

# Mypy checks this file. Running it would raise errors.
collect_ignore = ["typed_usage.py"]

# By default, Hypothesis draws a quarter of the examples, the same in every run. With --hypothesis-profile=full it draws
# the other three quarters (see strategies.examples), which are the same under the same --hypothesis-seed.
for profile, number in {"quick": 25, "full": 75}.items():
    settings.register_profile(
        profile,
        max_examples=number,
        deadline=None,
        derandomize=profile == "quick",
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
settings.load_profile("quick")

_DATA = Path(os.environ.get("NDCG_ML_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Rank with this kernel in all tests of the module, whatever the size of the input."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NDCG_ML_KERNEL", request.param)
        if request.param == "compiled":
            try:
                choice.compiled_rank(request.param, 0)
            except ImportError as error:
                pytest.skip(str(error))
        yield request.param


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data sets, which are not part of the project."""
    return _DATA


@pytest.fixture(scope="session")
def parity_dir() -> Path:
    """Return the folder of golden values (see its README.md)."""
    return Path(__file__).parent / "peers" / "golden"


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Disable garbage collection while tests are collected, and later ignore the objects created until then.

    It took a third of the time of collecting tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assign contiguous tests to each worker; a worker that is done takes tests of another.

    The tests of a module then mostly run in one process, which sets up their fixtures once.
    """
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Replace the tests of a file whose packages or data are missing by one skipped test that names them."""
    of_file: dict[Path, dict[pytest.Item, list[str]]] = {}
    for item in items:
        names = [name for mark in item.iter_markers("needs") for name in mark.args if find_spec(name) is None]
        if "data_dir" in getattr(item, "fixturenames", ()) and not _DATA.is_dir():
            names.append("the data sets of NDCG_ML_DATA")
        if names:
            of_file.setdefault(item.path, {})[item] = names
    for tests in of_file.values():
        missing = dict.fromkeys(name for names in tests.values() for name in names)
        reason = f"{len(tests)} tests of this file need {', '.join(missing)}"
        next(iter(tests)).add_marker(pytest.mark.skip(reason=reason))
    for_others = [item for tests in of_file.values() for item in list(tests)[1:]]
    items.sort(key=lambda item: "site" not in getattr(item, "fixturenames", ()))  # one worker alone builds the site
    if for_others:
        items[:] = [item for item in items if item not in set(for_others)]
        config.hook.pytest_deselected(items=for_others)
