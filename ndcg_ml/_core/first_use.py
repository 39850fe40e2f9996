"""Import the modules of a package when they are first used, so that what a call does not need is not loaded."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def modules_of(package: str, *names: str) -> Callable[[str], ModuleType]:
    """Return the ``__getattr__`` of a package with these modules (SPEC 1 of scientific-python.org).

    After ``from ndcg_ml import _statistics``, ``_statistics.means`` imports that module.
    """

    def get(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return get
