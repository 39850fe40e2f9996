"""``show_versions``: the packages, the kernel and the threads that a bug report names."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, distributions, version

from ndcg_ml import __version__
from ndcg_ml._core.kernel_and_threads import kernel_in_use, thread_count

__all__ = ["show_versions"]

_LIBRARIES = (
    *("numpy", "numba", "scikit-learn", "torch", "torchmetrics", "lightgbm", "xgboost", "catboost"),
    *("pandas", "polars", "pyarrow", "scipy"),
)
MISSING = "not installed"


def show_versions() -> None:
    """Print the versions that are useful in a bug report, the kernel, the threads and the project's addresses.

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
    urls = (url for found in distributions(name="ndcg_ml") for url in found.metadata.get_all("Project-URL", []))
    addresses = dict(url.split(", ") for url in urls if ".invalid" not in url)  # none before the first release
    for name, value in {**versions(), **in_use, **addresses}.items():
        print(f"{name}: {value}")


def versions() -> dict[str, str]:
    """Return the versions of Python, this package and the supported libraries."""
    found = {
        "ndcg_ml": __version__,
        "Python": f"{platform.python_version()} ({platform.system()} {platform.machine()})",
    }
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = MISSING
    return found
