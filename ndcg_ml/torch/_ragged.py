"""Lists of different lengths, flat or nested, as the padded ones that the losses compute on."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["as_padded"]


def as_padded(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    indexes: Tensor | None = None,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The lists as scores, labels and mask of shape (n_lists, longest list); what is padded already comes back as is.

    The scores keep their place in the graph. Documents keep their order within a list, and lists the order in which
    they first appear (`indexes`) or stand (`offsets`, nested). Ragged input waits for the device once, since the
    longest list fixes a shape.

    Parameters
    ----------
    scores : Tensor
        Padded, flat with `indexes` or `offsets`, or nested (jagged).
    labels : Tensor
        In the form of `scores`.
    mask : Tensor of bool, optional
        Padded form only.
    indexes : Tensor of int, shape (n_rows,), optional
        One query id a row, in any order.
    offsets : Tensor of int, shape (n_lists + 1,), optional
        List q is the rows ``offsets[q]:offsets[q + 1]``.

    Raises
    ------
    TypeError, ValueError
        As for the losses' ``forward``. What concerns padded input is left to it.
    """
    for name, value in (("scores", scores), ("labels", labels)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor; got {type(value).__module__}.{type(value).__qualname__}.")
    nested = scores.is_nested or labels.is_nested
    given = [name for name, value in (("mask", mask), ("indexes", indexes), ("offsets", offsets)) if value is not None]
    if nested:
        if given:
            raise ValueError(
                f"a nested tensor says itself which documents belong together; got {given[0]}= with it. Leave it out."
            )
        scores, labels, offsets = _values(scores, labels)
    elif indexes is None and offsets is None:
        return scores, labels, mask
    elif len(given) > 1:
        raise ValueError(f"{given[-1]} must not be given with {given[0]}: one of them says all. Leave one out.")
    if scores.ndim != 1:
        raise ValueError(
            f"{given[0]} is for 1-D scores; got shape {tuple(scores.shape)}, where each row is a list. "
            f"Leave {given[0]} out, and say with mask= which slots hold a document."
        )
    if labels.shape != scores.shape:
        raise ValueError(f"labels must have the shape of scores, {tuple(scores.shape)}; got {tuple(labels.shape)}.")
    if indexes is not None:
        _whole("indexes", indexes, scores)
        if indexes.shape != scores.shape:
            raise ValueError(
                f"indexes must have the shape of scores, {tuple(scores.shape)}, one query id a row; got "
                f"{tuple(indexes.shape)}."
            )
        lists, positions, lengths = _by_index(indexes)
    else:
        assert offsets is not None
        _whole("offsets", offsets, scores)
        lists, positions, lengths = _by_offset(offsets, scores.numel(), checked=nested)
    shape = (lengths.numel(), int(lengths.max()) if lengths.numel() else 0)
    at = (lists, positions)
    listed = torch.arange(shape[1], device=scores.device) < lengths.unsqueeze(-1)
    padded = torch.zeros(shape, dtype=scores.dtype, device=scores.device).index_put(at, scores)
    return padded, torch.zeros(shape, dtype=labels.dtype, device=labels.device).index_put(at, labels), listed


def _by_index(indexes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """List and position of each row, and the lengths of the lists, which are numbered as they first appear."""
    n_rows = indexes.numel()
    row = torch.arange(n_rows, device=indexes.device)
    _, by_id, counts = torch.unique(indexes, return_inverse=True, return_counts=True)
    first = torch.full_like(counts, n_rows).scatter_reduce(0, by_id, row, "amin")
    order = first.argsort()
    lengths = counts[order]
    lists = torch.empty_like(order).scatter(0, order, torch.arange(order.numel(), device=order.device))[by_id]
    together = lists.argsort(stable=True)
    positions = torch.empty_like(row).scatter(0, together, row - (lengths.cumsum(0) - lengths)[lists[together]])
    return lists, positions, lengths


def _by_offset(offsets: Tensor, n_rows: int, *, checked: bool) -> tuple[Tensor, Tensor, Tensor]:
    if offsets.ndim != 1 or offsets.numel() == 0:
        raise ValueError(f"offsets must have shape (n_lists + 1,); got {tuple(offsets.shape)}.")
    lengths = offsets.diff()
    if not checked and (int(offsets[0]) != 0 or int(offsets[-1]) != n_rows or bool((lengths < 0).any())):
        raise ValueError(
            f"offsets must rise from 0 to the number of rows, {n_rows}; got {int(offsets[0])} to {int(offsets[-1])}"
            f"{', with a fall between' if bool((lengths < 0).any()) else ''}. For group sizes g, "
            "torch.cat([g.new_zeros(1), g.cumsum(0)])."
        )
    lists = torch.repeat_interleave(torch.arange(lengths.numel(), device=offsets.device), lengths, output_size=n_rows)
    return lists, torch.arange(n_rows, device=offsets.device) - offsets[lists], lengths


def _values(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and offsets of nested tensors."""
    for name, tensor in (("scores", scores), ("labels", labels)):
        if not tensor.is_nested or tensor.layout != torch.jagged or tensor.ndim != 2:
            raise ValueError(
                f"{name} must be a 2-D nested tensor of layout torch.jagged, as the others are; got "
                f"{'layout ' + str(tensor.layout) if tensor.is_nested else 'a tensor that is not nested'}, "
                f"{tensor.ndim}-D. Convert all of them, or none."
            )
        if tensor.lengths() is not None:  # type: ignore[attr-defined]  # torch has no type for nested tensors
            raise ValueError(
                f"{name} must be a contiguous nested tensor; got one with holes. Pass {name}.contiguous()."
            )
    offsets: Tensor = scores.offsets()  # type: ignore[attr-defined]
    if not torch.equal(offsets, labels.offsets()):  # type: ignore[attr-defined]
        raise ValueError("labels must have as many documents in each list as scores; got other lengths.")
    return scores.values(), labels.values(), offsets


def _whole(name: str, value: object, scores: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor; got {type(value).__module__}.{type(value).__qualname__}.")
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise TypeError(f"{name} must hold integers; got dtype {value.dtype}. Write {name}.long() if they are whole.")
    if value.device != scores.device:
        raise ValueError(
            f"{name} must be on the device of scores, {scores.device}; got {value.device}. Move it with .to()."
        )
