"""The two kernels of the metric, and one thread."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest


@pytest.fixture(scope="module", params=["host", "torch"])
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways to a number: the NumPy kernel that serves CPU tensors, and the torch kernel that serves devices."""
    from torch_batches import torch_kernel

    with torch_kernel() if request.param == "torch" else nullcontext():
        yield request.param


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Many small operations on a busy machine wait for each other's threads."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
