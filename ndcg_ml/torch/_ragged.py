"""Lists of different lengths, flat or nested, as the padded ones that the losses compute on."""

from __future__ import annotations

import torch
from torch import Tensor

from ndcg_ml.torch._transforms import not_mapped

__all__ = ["in_batches", "in_rows"]

Batch = tuple[Tensor, Tensor, Tensor | None]
"""Scores, labels and mask of shape (n_lists, longest list)."""


def in_batches(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    indexes: Tensor | None = None,
    offsets: Tensor | None = None,
) -> tuple[list[Batch], Tensor | None]:
    """The lists, padded; what is padded already comes back as is.

    Flat and nested lists are one batch unless more than half of it were padding. They then are a batch of the lists
    of 1 document, of 2, of 3 and 4, of 5 to 8 and so on, each padded to its own longest list, so that there are at
    most twice as many slots as rows and lists. The scores keep their place in the graph, documents their order within
    a list, and lists the order in which they first appear (`indexes`) or stand (`offsets`, nested). Ragged input
    waits for the device, since the lengths fix shapes.

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

    Returns
    -------
    list of Batch
        At least one.
    Tensor of int, shape (n_lists,), or None
        Where each list is among all lists of all batches; None where they stand in order.

    Raises
    ------
    TypeError, ValueError
        As for the losses' ``forward``. What concerns padded input is left to it.
    """
    scores, labels, indexes, offsets = in_rows(scores, labels, mask, indexes=indexes, offsets=offsets)
    if indexes is None and offsets is None:
        return [(scores, labels, mask)], None
    given = "indexes" if offsets is None else "offsets"
    with not_mapped(
        f"{given} must be the same for all samples of torch.func.vmap, because lengths fix shapes; got {given} that "
        "are mapped over. Pass padded lists with mask=, or leave them unmapped (in_dims=None)."
    ):
        grouped: tuple[list[Batch], Tensor | None] = _in_groups(scores, labels, indexes, offsets)
    return grouped


def in_rows(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    indexes: Tensor | None = None,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Scores, labels, indexes and offsets of flat lists: nested ones flattened, others checked.

    Padded input comes back as is, with neither indexes nor offsets.

    Raises
    ------
    TypeError, ValueError
        As for ``in_batches``. Whether offsets rise is left to it.
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
        return scores, labels, None, None
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
    else:
        _whole("offsets", offsets, scores)
    return scores, labels, indexes, offsets


@torch.compiler.disable(reason="lengths of flat and nested lists are data; padded ones can be compiled whole")  # type: ignore[no-untyped-call, untyped-decorator]
def _in_groups(
    scores: Tensor, labels: Tensor, indexes: Tensor | None, offsets: Tensor | None
) -> tuple[list[Batch], Tensor | None]:
    if indexes is not None:
        lists, positions, lengths = _by_index(indexes)
        sizes = lengths.cpu()
    else:
        assert offsets is not None
        sizes = _sizes(offsets.cpu(), scores.numel())
        lists, positions, lengths = _by_offset(offsets, scores.numel())
    longest = int(sizes.max()) if sizes.numel() else 0
    if sizes.numel() * longest <= 2 * scores.numel():
        return [_padded(scores, labels, lists, positions, lengths, longest)], None
    # The bits of size - 1: 0 for lists of at most 1 document, 1 for 2, 2 for 3 and 4, 3 for 5 to 8.
    bits = torch.frexp((sizes - 1).clamp(min=0).double()).exponent
    _, group, n_lists = torch.unique(bits, return_inverse=True, return_counts=True)
    n_rows = torch.zeros_like(n_lists).scatter_add(0, group, sizes).tolist()
    longest_of = torch.zeros_like(n_lists).scatter_reduce(0, group, sizes, "amax").tolist()
    by_group = group.argsort(stable=True)
    places = by_group.argsort().to(scores.device)
    rows = places[lists].argsort(stable=True)
    batches: list[Batch] = []
    first = 0
    for *part, part_lengths, width in zip(
        torch.split(scores[rows], n_rows),
        torch.split(labels[rows], n_rows),
        torch.split(places[lists[rows]], n_rows),
        torch.split(positions[rows], n_rows),
        torch.split(lengths[by_group.to(scores.device)], n_lists.tolist()),
        longest_of,
        strict=True,
    ):
        part_scores, part_labels, part_lists, part_positions = part
        batches.append(_padded(part_scores, part_labels, part_lists - first, part_positions, part_lengths, width))
        first += part_lengths.numel()
    return batches, places


def _padded(
    scores: Tensor, labels: Tensor, lists: Tensor, positions: Tensor, lengths: Tensor, width: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows in their places of a batch that is as wide as its longest list."""
    listed = torch.arange(width, device=scores.device) < lengths.unsqueeze(-1)
    padded = [rows.new_zeros(listed.shape).index_put((lists, positions), rows) for rows in (scores, labels)]
    return padded[0], padded[1], listed


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


def _by_offset(offsets: Tensor, n_rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """The same, of lists one after the other."""
    lengths = offsets.diff()
    lists = torch.repeat_interleave(torch.arange(lengths.numel(), device=offsets.device), lengths, output_size=n_rows)
    return lists, torch.arange(n_rows, device=offsets.device) - offsets[lists], lengths


def _sizes(offsets: Tensor, n_rows: int) -> Tensor:
    """The lengths of the lists, if these are offsets."""
    if offsets.ndim != 1 or offsets.numel() == 0:
        raise ValueError(f"offsets must have shape (n_lists + 1,); got {tuple(offsets.shape)}.")
    sizes = offsets.long().diff()
    falls = bool((sizes < 0).any())
    if int(offsets[0]) != 0 or int(offsets[-1]) != n_rows or falls:
        raise ValueError(
            f"offsets must rise from 0 to the number of rows, {n_rows}; got {int(offsets[0])} to {int(offsets[-1])}"
            f"{', with a fall between' if falls else ''}. For group sizes g, torch.cat([g.new_zeros(1), g.cumsum(0)])."
        )
    return sizes


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
