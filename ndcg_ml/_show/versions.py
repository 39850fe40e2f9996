"""Versions of what is installed and used, for a bug report and below an evaluation."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from ndcg_ml import __version__
from ndcg_ml._kernel.choice import kernel_in_use
from ndcg_ml._kernel.threads import thread_count

_LIBRARIES = (
    *("numpy", "numba", "scikit-learn", "torch", "torchmetrics", "lightgbm", "xgboost", "catboost"),
    *("pandas", "polars", "pyarrow", "scipy"),
)


def show_versions() -> None:
    """Print the versions that matter for a bug report, and which kernel and how many threads are in use.

    No library is imported for it.

    Raises
    ------
    ValueError
        NDCG_ML_KERNEL or NDCG_ML_THREADS is not valid.

    See Also
    --------
    prepare : its `kernel` and `threads`.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    ndcg_ml: ...
    Python: ...
    kernel: ...
    threads: ...
    """
    in_use = {
        "kernel": kernel_in_use(),
        "threads": f"{thread_count(None, 1 << 62)} at most, of the compiled kernel",
    }
    for name, value in {**versions(), **in_use}.items():
        print(f"{name}: {value}")


def versions() -> dict[str, str]:
    """The versions of Python, of this package and of the libraries that it works with."""
    return {
        "ndcg_ml": __version__,
        "Python": f"{platform.python_version()} ({platform.system()} {platform.machine()})",
        **{name: _installed(name) for name in _LIBRARIES},
    }


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
