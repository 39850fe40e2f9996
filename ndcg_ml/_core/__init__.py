"""From arguments to the number. Everything above may import this package. It imports flavors and what is below them."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def modules_of(package: str, *names: str) -> Callable[[str], ModuleType]:
    """Return the ``__getattr__`` of a package, which imports these modules when they are first used.

    After ``from ndcg_ml import _statistics``, ``_statistics.means`` imports that module (SPEC 1 of
    scientific-python.org).
    """

    def get(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return get
