"""Features of the installed torch. Tests skip if a small program that uses a feature fails."""

import functools
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch


def skip_unless(feature: Callable[[], bool]) -> None:
    """Skip the calling test if the feature is missing. The feature's docstring is the reason."""
    if not feature():
        pytest.skip(f"torch {torch.__version__} {feature.__doc__}")


@dataclass(frozen=True)
class _Named:
    word: str


@torch.compiler.assume_constant_result
def _named(word: str) -> _Named:
    return _Named(word)


@functools.cache
def flavors_by_text_in_a_graph() -> bool:
    """cannot trace an object returned by a function marked as constant, such as a flavor passed as a string."""
    return _compiles(lambda x: x + 1 if _named("max").word == "max" else x)


class _Slope(torch.autograd.Function):
    @staticmethod
    def forward(grad: torch.Tensor) -> torch.Tensor:
        return 2 * grad

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return 2 * grad


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        slope: torch.Tensor = _Slope.apply(grad)  # type: ignore[no-untyped-call]
        return slope


@functools.cache
def functions_with_second_derivatives_in_a_graph() -> bool:
    """cannot compile an autograd function whose backward pass is also one."""
    return _compiles(lambda x: _Double.apply(x).sum())  # type: ignore[no-untyped-call]


@functools.cache
def numbers_of_numpy_in_a_graph() -> bool:
    """cannot compile a number computed by NumPy, such as the gain of max_grade."""
    return _compiles(lambda x: x * float(np.exp2(np.float64(3.0))))


def reasons_of_graph_breaks() -> bool:
    """does not accept a reason for not compiling a function."""
    return "reason" in inspect.signature(torch.compiler.disable).parameters


def _compiles(program: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*should not be instantiated", DeprecationWarning)  # by torch's own tracer
        try:
            torch.compile(program, fullgraph=True, backend="aot_eager")(torch.ones(2, requires_grad=True))
        except torch._dynamo.exc.Unsupported:
            return False
    return True
