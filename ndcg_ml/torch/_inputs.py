"""What a caller passed, checked and laid out for the kernel. Only shapes and dtypes are looked at here, never data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._kernel import working_dtype
from ndcg_ml.torch._layout import Flat, Layout, Padded

__all__ = ["Batch", "read_batch", "read_lists"]

_NATIVE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True)
class Batch:
    """Slots as the layout has them."""

    layout: Layout
    scores: Tensor
    labels: Tensor
    listed: Tensor
    retrieved: Tensor | None
    doc_id: Tensor | None
    shape: tuple[int, ...]
    """Shape of a per-query tensor of the padded form; empty in the flat form."""
    rows: Tensor | None
    """The caller's row behind each slot of the flat form."""


def read_batch(
    flavor: Flavor,
    scores: object,
    labels: object,
    *,
    mask: object = None,
    indexes: object = None,
    retrieved: object = None,
    doc_id: object = None,
    names: tuple[str, str] = ("scores", "labels"),
) -> Batch | None:
    """Lay out the tensors of a caller; None if they hold no query.

    Raises
    ------
    TypeError
        Something is not a tensor, or of a dtype that makes no sense.
    ValueError
        The shapes do not go together, or it is not said which rows belong to one query.
    """
    scores, labels = _a_tensor(scores, names[0]), _a_tensor(labels, names[1])
    if scores.is_nested or labels.is_nested:
        scores, labels, mask, retrieved, doc_id = _unnested(scores, labels, mask, indexes, retrieved, doc_id, names)
    if labels.shape != scores.shape:
        raise ValueError(
            f"{names[1]} must have the shape of {names[0]}, {tuple(scores.shape)}; got {tuple(labels.shape)}."
        )
    if labels.device != scores.device:
        raise ValueError(
            f"{names[1]} must be on the device of {names[0]}, {scores.device}; got {labels.device}. "
            f"Move them: {names[1]}.to({names[0]}.device)."
        )
    flags = None if retrieved is None else _flags(retrieved, "retrieved", scores, names[0])
    ids = None if doc_id is None else _whole_numbers(doc_id, "doc_id", "one a document", scores, names[0])
    if flavor.ties == "docid" and ids is None:
        raise ValueError(
            "doc_id must be given under ties='docid', which orders tied documents by descending id; got None. "
            "Pass doc_id= (one integer a document), or choose another rule, such as ties='average'."
        )
    scores, labels = _score_values(scores, names[0]), _label_values(labels, names[1])
    if scores.ndim == 0:
        raise ValueError(
            f"{names[0]} must have a dimension for the documents; got a tensor without dimensions. Give it shape "
            "(n_queries, n_documents), or (n_rows,) with indexes=."
        )
    if scores.ndim == 1:
        if mask is not None:
            raise ValueError(
                f"mask is for padded input, where the last of two dimensions is the documents; {names[0]} is 1-D. "
                "Leave mask out, or leave the rows themselves out."
            )
        if indexes is None:
            raise ValueError(
                "indexes must be given with 1-D input: which rows belong to one query is never guessed. Pass "
                f"indexes= (one integer query id a row, in any order). For a single query, "
                f"{names[0]}[None] and {names[1]}[None]."
            )
        return _flat(
            scores, labels, _whole_numbers(indexes, "indexes", "one query id a row", scores, names[0]), flags, ids
        )
    if indexes is not None:
        raise ValueError(
            f"indexes is for 1-D input; {names[0]} has shape {tuple(scores.shape)}, where each row is one query. "
            f"Leave indexes out, or flatten {names[0]} and {names[1]} to one dimension."
        )
    listed = torch.ones_like(scores, dtype=torch.bool) if mask is None else _flags(mask, "mask", scores, names[0])
    return _padded(scores, labels, listed, flags, ids)


def _a_tensor(value: object, name: str) -> Tensor:
    """The value, if it is a tensor."""
    if isinstance(value, Tensor):
        return value
    raise TypeError(
        f"{name} must be a torch.Tensor; got {type(value).__module__}.{type(value).__qualname__}. "
        "For NumPy arrays, lists and tables use ndcg_ml.ndcg_score(y_true, y_score, ...)."
    )


def _score_values(scores: Tensor, name: str) -> Tensor:
    """Scores without gradient, in a dtype that can be sorted."""
    if scores.is_complex():
        raise TypeError(f"{name} must hold real numbers; got dtype {scores.dtype}.")
    scores = scores.detach()
    if not scores.is_floating_point():
        return scores.to(working_dtype(scores.device))
    return scores if scores.dtype in _NATIVE else scores.float()


def _label_values(labels: Tensor, name: str) -> Tensor:
    """Labels without gradient, in the dtype that the kernel works in."""
    if labels.is_complex():
        raise TypeError(f"{name} must hold real numbers; got dtype {labels.dtype}.")
    return labels.detach().to(working_dtype(labels.device))


def read_lists(scores: object, labels: object, mask: object) -> tuple[Tensor, Tensor, Tensor]:
    """Scores (with their gradient), labels and mask of a loss: two dimensions, at least one slot a list.

    Raises
    ------
    TypeError, ValueError
        As for ``read_batch``; or the scores are not floats.
    """
    scores, labels = _a_tensor(scores, "scores"), _a_tensor(labels, "labels")
    if not scores.is_floating_point():
        raise TypeError(
            f"scores must be floats, which have a gradient; got dtype {scores.dtype}. The order is (scores, labels)."
        )
    if scores.is_nested or scores.ndim != 2:
        raise ValueError(
            "scores must have shape (n_lists, n_documents), padded with mask=; got "
            f"{'a nested tensor' if scores.is_nested else f'shape {tuple(scores.shape)}'}. For one list, scores[None]; "
            "for flat lists, pass indexes= or offsets=."
        )
    labels = _label_values(_companion(labels, "labels", scores, "scores"), "labels")
    listed = torch.ones_like(labels, dtype=torch.bool) if mask is None else _flags(mask, "mask", scores, "scores")
    if scores.shape[1] == 0:  # lists without any document: one masked slot each
        return pad(scores, (0, 1)), pad(labels, (0, 1)), pad(listed, (0, 1), value=False)
    return scores, labels, listed


def _padded(
    scores: Tensor, labels: Tensor, listed: Tensor, retrieved: Tensor | None, doc_id: Tensor | None
) -> Batch | None:
    *leading, width = scores.shape
    n_queries = math.prod(leading)
    if n_queries == 0:
        return None

    def rows(values: Tensor) -> Tensor:
        values = values.reshape(n_queries, width)
        if width == 0:  # queries without any document: one masked slot each, since nothing can be reduced over none
            return values.new_zeros((n_queries, 1))
        return values

    return Batch(
        layout=Padded(n_queries, max(width, 1), scores.device),
        scores=rows(scores),
        labels=rows(labels),
        listed=rows(listed),
        retrieved=None if retrieved is None else rows(retrieved),
        doc_id=None if doc_id is None else rows(doc_id),
        shape=tuple(leading),
        rows=None,
    )


def _flat(
    scores: Tensor, labels: Tensor, indexes: Tensor, retrieved: Tensor | None, doc_id: Tensor | None
) -> Batch | None:
    if scores.numel() == 0:
        return None
    indexes, rows = torch.sort(indexes, stable=True)
    return Batch(
        layout=Flat(indexes),
        scores=scores[rows],
        labels=labels[rows],
        listed=torch.ones_like(indexes, dtype=torch.bool),
        retrieved=None if retrieved is None else retrieved[rows],
        doc_id=None if doc_id is None else doc_id[rows],
        shape=(),
        rows=rows,
    )


def _flags(value: object, name: str, scores: Tensor, of: str) -> Tensor:
    flags = _companion(value, name, scores, of)
    if flags.dtype != torch.bool:
        raise TypeError(
            f"{name} must be a tensor of bool, True where the document takes part; got dtype {flags.dtype}. "
            f"Write {name}.bool() if it holds 0 and 1."
        )
    return flags


def _whole_numbers(value: object, name: str, meaning: str, scores: Tensor, of: str) -> Tensor:
    numbers = _companion(value, name, scores, of)
    if numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
        raise TypeError(
            f"{name} must hold integers, {meaning}; got dtype {numbers.dtype}. Write {name}.long() if they are whole."
        )
    return numbers.long()


def _companion(value: object, name: str, scores: Tensor, of: str) -> Tensor:
    tensor = _a_tensor(value, name)
    if tensor.shape != scores.shape:
        raise ValueError(f"{name} must have the shape of {of}, {tuple(scores.shape)}; got {tuple(tensor.shape)}.")
    if tensor.device != scores.device:
        raise ValueError(
            f"{name} must be on the device of {of}, {scores.device}; got {tensor.device}. Move it with .to()."
        )
    return tensor


def _unnested(
    scores: Tensor,
    labels: Tensor,
    mask: object,
    indexes: object,
    retrieved: object,
    doc_id: object,
    names: tuple[str, str],
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Jagged tensors as padded ones with a mask; torch cannot sort them as they are."""
    if mask is not None or indexes is not None:
        raise ValueError(
            "a nested tensor says itself which documents belong together; got mask= or indexes= with it. Leave it out."
        )
    parts = {names[0]: scores, names[1]: labels, "retrieved": retrieved, "doc_id": doc_id}
    given = {name: _a_tensor(value, name) for name, value in parts.items() if value is not None}
    for name, tensor in given.items():
        if not tensor.is_nested or tensor.layout != torch.jagged or tensor.ndim != 2:
            raise ValueError(
                f"{name} must be a 2-D nested tensor of layout torch.jagged, as the others are; got "
                f"{'layout ' + str(tensor.layout) if tensor.is_nested else 'a tensor that is not nested'}, "
                f"{tensor.ndim}-D. Convert all of them, or none."
            )
    offsets: Tensor = scores.offsets()  # type: ignore[attr-defined]  # torch has no type for nested tensors
    for name, tensor in given.items():
        if not torch.equal(tensor.offsets(), offsets):  # type: ignore[attr-defined]
            raise ValueError(f"{name} must have as many documents in each query as {names[0]}; got other lengths.")
    padded = {name: _to_padded(tensor) for name, tensor in given.items()}
    lengths = offsets.diff()
    listed = torch.arange(padded[names[0]].shape[1], device=offsets.device) < lengths[:, None]
    return padded[names[0]], padded[names[1]], listed, padded.get("retrieved"), padded.get("doc_id")


def _to_padded(nested: Tensor) -> Tensor:
    flags = nested.dtype == torch.bool  # which torch cannot pad
    padded: Tensor = torch.nested.to_padded_tensor(nested.to(torch.uint8) if flags else nested, 0)
    return padded.bool() if flags else padded
