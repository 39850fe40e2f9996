"""Rank CPU tensors with the NumPy kernel, which is several times faster than torch's sort on the CPU.

No other module of ``ndcg_ml.torch`` calls the NumPy kernel. Input that it cannot take goes to the torch kernel, which
also raises all errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ndcg_ml._core.queries import Queries
from ndcg_ml._core.scores import Prepared
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._transforms import is_plain_eager

if TYPE_CHECKING:
    from ndcg_ml._core.totals import Totals

_CAST = (torch.float16, torch.float32, torch.float64)
_enabled = True


@contextmanager
def torch_kernel() -> Iterator[None]:
    """Use the torch kernel for CPU tensors as well, for tests and benchmarks that compare the two kernels."""
    global _enabled
    before, _enabled = _enabled, False
    try:
        yield
    finally:
        _enabled = before


def rank_on_host(
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
    """Compute DCG and ideal DCG of the queries of plain CPU tensors, in the order of ``ndcg_ml.torch.ndcg``.

    `whole` is as for ``Queries.read``. Returns None if any input is not a plain tensor on the CPU, if operations are
    traced or transformed, if there is no document, or if the input is invalid.
    """
    if not (_enabled and is_plain_eager()):
        return None
    given = {"y_score": scores, "y_true": labels}  # by the names that Queries.read has for them
    optional = {"mask": mask, "qid": indexes, "retrieved": retrieved, "doc_id": doc_id}
    given.update((name, value) for name, value in optional.items() if value is not None)
    if not all(map(_is_plain, given.values())) or not _are_compatible(given):
        return None
    # The arrays share the memory of the tensors. Leading dimensions are flattened to one dimension of queries.
    shape = (-1,) if given["y_score"].ndim == 1 else (-1, given["y_score"].shape[-1])
    arrays: dict[str, Any] = {name: _as_array(tensor).reshape(shape) for name, tensor in given.items()}
    y_score = arrays.pop("y_score")
    try:
        totals = Prepared(flavor, ks, replace(Queries.read(**arrays, whole=whole), fractional=False)).totals(y_score)
        if flavor.empty == "raise":
            totals.ndcg(flavor)
    except (TypeError, ValueError):
        return None
    return totals


def _is_plain(value: Any) -> bool:
    """Whether this is a tensor, not of a subclass, of real numbers in the memory of the host."""
    return (
        type(value) in (Tensor, torch.nn.Parameter)
        and value.device.type == "cpu"
        and value.layout == torch.strided
        and not (value.is_nested or value.is_complex() or value.is_quantized)
    )


def _are_compatible(given: Mapping[str, Tensor]) -> bool:
    """Whether shapes and dtypes are compatible, and either the shape or ids define the queries."""
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
        and all(_holds_integers(given[name]) for name in ("qid", "doc_id") if name in given)
    )


def _holds_integers(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and tensor.dtype != torch.bool


def _as_array(tensor: Tensor) -> NDArray[Any]:
    """Convert a plain tensor to an array, which shares its memory if NumPy has the dtype."""
    tensor = tensor.detach()
    # NumPy has no bfloat16 and no 8-bit floats; float32 represents their values exactly.
    exotic = tensor.is_floating_point() and tensor.dtype not in _CAST
    array: NDArray[Any] = (tensor.float() if exotic else tensor).resolve_neg().numpy()
    return array
