"""Versions of Python and of installed libraries, for bug reports and HTML reports."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from ndcg_ml import __version__
from ndcg_ml._core.kernel_choice import kernel_in_use, thread_count

_LIBRARIES = (
    *("numpy", "numba", "scikit-learn", "torch", "torchmetrics", "lightgbm", "xgboost", "catboost"),
    *("pandas", "polars", "pyarrow", "scipy"),
)


def show_versions() -> None:
    """Print the versions that are useful in a bug report, the kernel and the number of threads.

    No library is imported.

    Raises
    ------
    ValueError
        NDCG_ML_KERNEL or NDCG_ML_THREADS is not valid.

    See Also
    --------
    prepare : Its parameters `kernel` and `threads`.

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
        "threads": f"at most {thread_count(None, 1 << 62)}, in the compiled kernel",
    }
    for name, value in {**versions(), **in_use}.items():
        print(f"{name}: {value}")


def versions() -> dict[str, str]:
    """Return the versions of Python, this package and the supported libraries."""
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
