"""Where the data is, how hypothesis draws, and how much of the golden file came out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ndcg_ml import _kernel_choice

# Mypy reads it; to run it would raise the errors that it shows.
collect_ignore = ["typed_usage.py"]

# The same draws in every run, so that what passes here passes there; NDCG_ML_EXPLORE=1 draws anew each time.
settings.register_profile(
    "ndcg_ml",
    deadline=None,
    derandomize=not os.environ.get("NDCG_ML_EXPLORE"),
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("ndcg_ml")

_DATA = Path(os.environ.get("NDCG_ML_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every call of the module ranks with this kernel, however small its input is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NDCG_ML_KERNEL", request.param)
        if request.param == "compiled":
            try:
                _kernel_choice.compiled_rank(request.param, 0)
            except ImportError as error:
                pytest.skip(str(error))
        yield request.param


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets, which are not part of the project."""
    if not _DATA.is_dir():
        pytest.skip(f"no data at {_DATA} (NDCG_ML_DATA names another folder)")
    return _DATA


@pytest.fixture(scope="session")
def parity_dir() -> Path:
    """The folder of golden values (see its README.md)."""
    return Path(__file__).parent / "peers" / "golden"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many golden values of each library came out (see test_parity_golden.py)."""
    libraries: dict[str, Counter[str]] = {}
    for report in [*terminalreporter.stats.get("passed", []), *terminalreporter.stats.get("failed", [])]:
        for name, value in report.user_properties:
            if name == "golden":
                library, counts = value
                libraries.setdefault(library, Counter()).update(counts)
    if libraries:
        libraries["total"] = sum(libraries.values(), Counter())
        terminalreporter.section("golden values reproduced")
        for library, counts in libraries.items():
            terminalreporter.line(
                f"{library:<18} {counts['values']:>5} values, {counts['refusals']:>3} refused by both, "
                f"{counts['defined']:>3} raised there and defined here, {counts['divergent']:>3} declared divergences, "
                f"{counts['undeclared']} undeclared, of {sum(counts.values()):>4}"
            )
