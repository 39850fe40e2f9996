"""Batches for the metric: scores with ties, labels with empty queries, and masks."""

from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

LISTS = torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([[1, 0], [0, 1]])


def batches(n_batches, draw, size=4, width=6):
    """Scores with ties, labels with empty queries, and masks."""
    for _ in range(n_batches):
        shape = (size, width)
        labels = torch.randint(0, 4, shape, generator=draw) * (torch.rand(size, 1, generator=draw) < 0.8)
        scores = torch.randint(0, 5, shape, generator=draw) / 4
        yield scores, labels, torch.rand(shape, generator=draw) < 0.8


def torch_kernel():
    """The torch kernel ranks CPU tensors as well."""
    return patch("ndcg_ml.torch.inputs.rank_on_host", return_value=None)


@contextmanager
def elsewhere():
    """Compiled code cannot look at data, as on an accelerator, which is not here."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(torch.compiler, "is_compiling", lambda: True)
        yield


def tensors_of(metric):
    states = metric.metric_state.values()
    return [part for state in states for part in (state if isinstance(state, list) else [state])]


class Constants(TorchFunctionMode):
    """Count cumulative sums of floats on the device "meta", and tensors that the host makes."""

    n_sums = n_made = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made, name = func(*args, **(kwargs or {})), getattr(func, "__name__", "")
        self.n_sums += name == "cumsum" and args[0].is_meta and args[0].is_floating_point()
        self.n_made += name in ("tensor", "as_tensor") or (isinstance(made, torch.Tensor) and made.is_cpu)
        return made


class Operations(TorchDispatchMode):
    """Count the operations, each of which a device launches."""

    n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.n += 1
        return func(*args, **(kwargs or {}))


class Largest(TorchDispatchMode):
    """Record the number of entries of the largest storage that an operation makes."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().nbytes():
                self.numel = max(self.numel, tensor.untyped_storage().nbytes() // tensor.element_size())
        return made
