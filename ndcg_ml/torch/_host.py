"""CPU tensors, ranked by the NumPy kernel: it is several times faster than torch's sort on the CPU.

This is the one file of the torch room that knows the other kernel. What it does not take goes to torch's own, which
also refuses whatever has to be refused, in its own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ndcg_ml._data.queries import Queries
from ndcg_ml.flavor import Flavor
from ndcg_ml.prepared import Prepared
from ndcg_ml.torch._transforms import nobody_watches

if TYPE_CHECKING:
    from ndcg_ml._kernel.totals import Totals

_CAST = (torch.float16, torch.float32, torch.float64)
_enabled = True


@contextmanager
def torch_kernel() -> Iterator[None]:
    """Within, CPU tensors go to the torch kernel as others do: for tests and benchmarks, which hold it to this one."""
    global _enabled
    before, _enabled = _enabled, False
    try:
        yield
    finally:
        _enabled = before


def on_host(
    flavor: Flavor,
    ks: Sequence[int | None],
    scores: Any,
    labels: Any,
    *,
    mask: Any = None,
    indexes: Any = None,
    retrieved: Any = None,
    doc_id: Any = None,
    whole: bool = True,
) -> Totals | None:
    """DCG and ideal DCG of the queries of CPU tensors, in the order of ``ndcg_ml.torch.ndcg``.

    `whole` is as for ``Queries.read``. None where something else than plain tensors on the CPU was given, where
    somebody watches the operations, where there is no document, and where anything has to be refused.
    """
    if not (_enabled and nobody_watches()):
        return None
    given = {"y_score": scores, "y_true": labels}  # by the names that prepare has for them
    optional = {"mask": mask, "qid": indexes, "retrieved": retrieved, "doc_id": doc_id}
    given.update((name, value) for name, value in optional.items() if value is not None)
    if not all(map(_is_plain, given.values())) or not _fit(given):
        return None
    # The arrays share the tensors' memory; any number of leading dimensions is one of queries.
    shape = (-1,) if given["y_score"].ndim == 1 else (-1, given["y_score"].shape[-1])
    arrays: dict[str, Any] = {name: _as_array(tensor).reshape(shape) for name, tensor in given.items()}
    y_score = arrays.pop("y_score")
    try:
        totals = Prepared(flavor, ks, Queries.read(**arrays, whole=whole)).totals(y_score)
        if flavor.empty == "raise":
            totals.ndcg(flavor)
    except (TypeError, ValueError):
        return None
    return totals


def _is_plain(value: Any) -> bool:
    """A tensor that is no more than its numbers, which are real and lie in the memory of the host."""
    return (
        type(value) in (Tensor, torch.nn.Parameter)
        and value.device.type == "cpu"
        and value.layout == torch.strided
        and not (value.is_nested or value.is_complex() or value.is_quantized)
    )


def _fit(given: Mapping[str, Tensor]) -> bool:
    """Whether these go together, by shape and dtype, and it is said once which rows are one query."""
    scores = given["y_score"]
    flat = scores.ndim == 1
    return (
        scores.ndim > 0
        and scores.numel() > 0
        and all(tensor.shape == scores.shape for tensor in given.values())
        and ("qid" in given) == flat
        and not (flat and "mask" in given)
        and (scores.shape[-1] > 1 or flat or (scores.ndim == 2 and ("mask" in given or scores.numel() == 1)))
        and all(given[name].dtype == torch.bool for name in ("mask", "retrieved") if name in given)
        and all(_are_whole(given[name]) for name in ("qid", "doc_id") if name in given)
    )


def _are_whole(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and tensor.dtype != torch.bool


def _as_array(tensor: Tensor) -> NDArray[Any]:
    """A plain tensor as an array, which shares its memory where NumPy has the dtype."""
    tensor = tensor.detach()
    # NumPy has neither bfloat16 nor the 8-bit floats; float32 holds their values exactly.
    exotic = tensor.is_floating_point() and tensor.dtype not in _CAST
    array: NDArray[Any] = (tensor.float() if exotic else tensor).resolve_neg().numpy()
    return array
