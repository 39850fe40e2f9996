"""What a caller passed, checked and laid out: for the metric as a ``Batch``, for the losses as padded lists.

The metric's reader looks at shapes and dtypes only, never at data. Flat lists of a loss are padded, which
needs their lengths and so waits for a device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml._checks import TIES_BY_ID, axis_too_many, refuse_column, warn_of_lists_of_one, without_doc_ids
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.torch._gains import working_dtype
from ndcg_ml.torch._layout import Flat, Layout, Padded
from ndcg_ml.torch._transforms import never_compiled, nobody_watches, not_mapped

_NATIVE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

PaddedLists = tuple[Tensor, Tensor, Tensor | None]
"""Scores, labels and mask of shape (n_lists, longest list)."""


def read_flavor(flavor: object) -> Flavor:
    """The flavor that a caller named; in compiled code a text is read once."""
    return _named(flavor) if isinstance(flavor, str) else as_flavor(flavor)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _named(text: str) -> Flavor:
    return as_flavor(text)


def scores_and_labels(
    scores: object, labels: object, mask: object, names: tuple[str, str] = ("scores", "labels")
) -> tuple[Tensor, Tensor]:
    """Both, if they are tensors of one shape whose last axis, of length 1, is not one too many.

    Raises
    ------
    TypeError, ValueError
    """
    scores, labels = a_tensor(scores, names[0]), a_tensor(labels, names[1])
    refuse_other_shape(labels, names[1], scores, names[0])
    if scores.ndim > 0 and scores.shape[-1] == 1:
        of_all = f"torch.ones_like({names[0]}, dtype=torch.bool)"
        refuse_column(names, scores.shape, mask is not None, _DROP, "indexes= (one query id per row)", of_all)
    return scores, labels


_DROP = "{}.squeeze(-1)"


# -- the metric ------------------------------------------------------------------------------------------------------


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
    # One form for all: tensors of one shape, on one device.
    scores, labels = scores_and_labels(scores, labels, mask, names)
    refuse_other_device(labels, names[1], scores, names[0])
    flags = None if retrieved is None else _flags(retrieved, "retrieved", scores, names[0])
    ids = None if doc_id is None else _whole_numbers(doc_id, "doc_id", "one per document", scores, names[0])
    if flavor.ties in TIES_BY_ID:
        if ids is None:
            raise ValueError(without_doc_ids(flavor))
        ids = _in_order_of_text(ids)
    # The number of dimensions says which form it is, and each form has its own way to say what one query is.
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
                f"indexes= (one integer query id per row, in any order). For a single query, "
                f"{names[0]}[None] and {names[1]}[None]."
            )
        return _flat_batch(
            scores, labels, _whole_numbers(indexes, "indexes", "one query id per row", scores, names[0]), flags, ids
        )
    # Padded input: each row is one query, and a mask says which slots hold documents.
    if indexes is not None:
        raise ValueError(
            f"indexes is for 1-D input; {names[0]} has shape {tuple(scores.shape)}, where each row is one query. "
            f"Leave indexes out, or flatten {names[0]} and {names[1]} to one dimension."
        )
    listed = torch.ones_like(scores, dtype=torch.bool) if mask is None else _flags(mask, "mask", scores, names[0])
    warn_of_a_column(scores)
    return _padded_batch(scores, labels, listed, flags, ids)


def warn_of_a_column(scores: Tensor) -> None:
    """Warn where each of several lists has one document, outside compiled code."""
    if scores.shape[-1] == 1 and scores.numel() > 1 and not torch.compiler.is_compiling():
        warn_of_lists_of_one(scores.numel())


def _padded_batch(
    scores: Tensor, labels: Tensor, listed: Tensor, retrieved: Tensor | None, doc_id: Tensor | None
) -> Batch | None:
    *leading, width = scores.shape
    n_queries = math.prod(leading)
    if n_queries == 0:
        return None

    def rows(values: Tensor) -> Tensor:
        values = values if values.ndim == 2 else values.reshape(n_queries, width)
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


def _flat_batch(
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


# -- the losses ------------------------------------------------------------------------------------------------------


def read_lists(scores: object, labels: object, mask: object) -> tuple[Tensor, Tensor, Tensor]:
    """Scores (with their gradient), labels and mask of a loss: two dimensions, at least one slot per list.

    Raises
    ------
    TypeError, ValueError
        As for ``read_batch``; or the scores are not floats.
    """
    scores, labels = scores_and_labels(scores, labels, mask)
    if not scores.is_floating_point():
        raise TypeError(
            f"scores must be floats, which have a gradient; got dtype {scores.dtype}. The order is (scores, labels)."
        )
    if scores.ndim != 2:
        raise ValueError(
            f"scores must have shape (n_lists, n_documents), padded with mask=; got shape {tuple(scores.shape)}. For "
            "one list, scores[None]; for flat lists, pass indexes=."
        )
    refuse_other_device(labels, "labels", scores, "scores")
    labels = _label_values(labels, "labels")
    listed = torch.ones_like(labels, dtype=torch.bool) if mask is None else _flags(mask, "mask", scores, "scores")
    if scores.shape[1] == 0:  # lists without any document: one masked slot each
        return pad(scores, (0, 1)), pad(labels, (0, 1)), pad(listed, (0, 1), value=False)
    return scores, labels, listed


def in_batches(
    scores: Tensor, labels: Tensor, mask: Tensor | None = None, *, indexes: Tensor | None = None
) -> tuple[list[PaddedLists], Tensor | None]:
    """The lists, padded; what is padded already comes back as is.

    Flat lists are one batch unless more than half of it were padding. They then are a batch of the lists of 1 document,
    of 2, of 3 and 4, of 5 to 8 and so on, each padded to its own longest list, so that there are at most twice as many
    slots as rows and lists. The scores keep their place in the graph, documents their order within a list, and lists
    the order in which they first appear. Flat input waits for the device, because the lengths fix shapes.

    Parameters
    ----------
    scores : Tensor
        Padded, or flat with `indexes`.
    labels : Tensor
        In the form of `scores`.
    mask : Tensor of bool, optional
        Padded form only.
    indexes : Tensor of int, shape (n_rows,), optional
        One query id per row, in any order.

    Returns
    -------
    list of PaddedLists
        At least one.
    Tensor of int, shape (n_lists,), or None
        Where each list is among all lists of all batches; None where they stand in order.

    Raises
    ------
    TypeError, ValueError
        As for the losses' ``forward``, which checks padded input itself.
    """
    scores, labels, indexes = in_rows(scores, labels, mask, indexes)
    if indexes is None:
        if scores.ndim == 2:
            warn_of_a_column(scores)
        return [(scores, labels, mask)], None
    with not_mapped(
        "indexes must be the same for all samples of torch.func.vmap, because lengths fix shapes; got indexes that "
        "are mapped over. Pass padded lists with mask=, or leave them unmapped (in_dims=None)."
    ):
        grouped: tuple[list[PaddedLists], Tensor | None] = _in_groups(scores, labels, indexes)
    return grouped


def in_rows(
    scores: Tensor, labels: Tensor, mask: Tensor | None, indexes: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Scores, labels and indexes of flat lists, checked. Padded input comes back as is, without indexes.

    Raises
    ------
    TypeError, ValueError
        As for ``in_batches``.
    """
    scores, labels = scores_and_labels(scores, labels, mask)
    if indexes is None:
        return scores, labels, None
    if mask is not None:
        raise ValueError("mask must not be given with indexes: one of them is enough. Leave one out.")
    if scores.ndim != 1:
        raise ValueError(
            f"indexes is for 1-D scores; got shape {tuple(scores.shape)}, where each row is a list. "
            "Leave indexes out, and say with mask= which slots hold a document."
        )
    refuse_other_device(labels, "labels", scores, "scores")
    return scores, labels, _whole_numbers(indexes, "indexes", "one query id per row", scores, "scores")


@never_compiled("lengths of flat lists are data; padded ones can be compiled whole")
def _in_groups(scores: Tensor, labels: Tensor, indexes: Tensor) -> tuple[list[PaddedLists], Tensor | None]:
    lists, positions, lengths = _by_index(indexes)
    sizes = lengths.cpu()
    longest = int(sizes.max()) if sizes.numel() else 0
    if longest == 1 and sizes.numel() > 1:
        warn_of_lists_of_one(sizes.numel())
    if sizes.numel() * longest <= 2 * labels.numel():
        return [_padded_lists(scores, labels, lists, positions, lengths, longest)], None
    # The bits of size - 1: 0 for lists of 1 document, 1 for 2, 2 for 3 and 4, 3 for 5 to 8.
    bits = torch.frexp((lengths - 1).to(working_dtype(lengths.device))).exponent
    batches: list[PaddedLists] = []
    members = []
    for value in torch.unique(bits):
        chosen = bits == value
        rows = chosen[lists].nonzero()[:, 0]
        number = (chosen.cumsum(0) - 1)[lists[rows]]
        part = lengths[chosen]
        batches.append(_padded_lists(scores[rows], labels[rows], number, positions[rows], part, int(part.max())))
        members.append(chosen.nonzero()[:, 0])
    return batches, torch.cat(members).argsort()


def _padded_lists(
    scores: Tensor, labels: Tensor, lists: Tensor, positions: Tensor, lengths: Tensor, width: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows in their places of a batch that is as wide as its longest list."""
    listed = torch.arange(width, device=scores.device) < lengths.unsqueeze(-1)
    return _in_slots(scores, listed, lists, positions), _in_slots(labels, listed, lists, positions), listed


def _in_slots(rows: Tensor, listed: Tensor, lists: Tensor, positions: Tensor) -> Tensor:
    return rows.new_zeros(listed.shape).index_put((lists, positions), rows)


def _in_order(numbers: Tensor) -> Tensor:
    return torch.sort(numbers, stable=True).indices


def _by_index(indexes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """List and position of each row, and the lengths of the lists, which are numbered as they first appear."""
    n_rows = indexes.numel()
    row = torch.arange(n_rows, device=indexes.device)
    _, by_id, counts = torch.unique(indexes, return_inverse=True, return_counts=True)
    first = torch.full_like(counts, n_rows).scatter_reduce(0, by_id, row, "amin")
    order = first.argsort()
    lengths = counts[order]
    lists = torch.empty_like(order).scatter(0, order, torch.arange(order.numel(), device=order.device))[by_id]
    together = _in_order(lists)
    positions = torch.empty_like(row).scatter(0, together, row - (lengths.cumsum(0) - lengths)[lists[together]])
    return lists, positions, lengths


# -- single tensors --------------------------------------------------------------------------------------------------


def a_tensor(value: object, name: str) -> Tensor:
    """The value, if it is a tensor that is not nested."""
    if isinstance(value, Tensor) and not value.is_nested:
        return value
    if isinstance(value, Tensor):
        raise TypeError(
            f"{name} must not be a nested tensor. Write torch.nested.to_padded_tensor({name}, 0.0) with mask=, or pass "
            f"{name}.values() with indexes= (one query id per row)."
        )
    raise TypeError(
        f"{name} must be a torch.Tensor; got {type(value).__module__}.{type(value).__qualname__}. Write "
        f"torch.as_tensor({name}), or pass arrays, lists and tables to ndcg_ml.ndcg_score(y_true, y_score, ...)."
    )


def refuse_unless_whole(tensor: Tensor, name: str, meaning: str) -> Tensor:
    """The tensor, if it holds integers; `meaning` says of what."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(
            f"{name} must hold integers, {meaning}; got dtype {tensor.dtype}. Write {name}.long() if they are whole."
        )
    return tensor


def refuse_other_device(tensor: Tensor, name: str, like: Tensor, of: str) -> None:
    """Refuse a tensor that is not where `like` is."""
    if tensor.device != like.device:
        raise ValueError(
            f"{name} must be on the device of {of}, {like.device}; got {tensor.device}. Move it: "
            f"{name}.to({of}.device)."
        )


def refuse_other_shape(tensor: Tensor, name: str, like: Tensor, of: str) -> None:
    """Refuse a tensor that has not the shape of `like`."""
    if tensor.shape != like.shape:
        hint = axis_too_many(name, tensor.shape, of, like.shape, _DROP)
        raise ValueError(f"{name} must have the shape of {of}, {tuple(like.shape)}; got {tuple(tensor.shape)}.{hint}")


def _companion(value: object, name: str, scores: Tensor, of: str) -> Tensor:
    """A tensor of the shape of the scores, and where they are."""
    tensor = a_tensor(value, name)
    refuse_other_shape(tensor, name, scores, of)
    refuse_other_device(tensor, name, scores, of)
    return tensor


def _flags(value: object, name: str, scores: Tensor, of: str) -> Tensor:
    flags = _companion(value, name, scores, of)
    if flags.dtype != torch.bool:
        raise TypeError(
            f"{name} must be a tensor of bool, True where the document takes part; got dtype {flags.dtype}. "
            f"Write {name}.bool() if it holds 0 and 1."
        )
    return flags


def _whole_numbers(value: object, name: str, meaning: str, scores: Tensor, of: str) -> Tensor:
    return refuse_unless_whole(_companion(value, name, scores, of), name, meaning).long()


def _in_order_of_text(ids: Tensor) -> Tensor:
    """Numbers in the order that the ids have as decimal text, "10" before "9", which is that of every other route."""
    if not nobody_watches():  # the order would be a constant of a trace
        raise ValueError(
            "a tie rule by id is not for compiled, traced or mapped code, because the order of ids as text is worked "
            "out on the host. Call ndcg outside of it, or choose another tie rule."
        )
    places = np.unique(np.array(ids.tolist()).astype(str), return_inverse=True)[1]
    return torch.from_numpy(places.reshape(ids.shape)).to(ids.device)


# Up to here float64 has every integer.
_EXACT = 2.0**53


def _score_values(scores: Tensor, name: str) -> Tensor:
    """Scores without gradient, in a dtype that can be sorted."""
    if scores.is_complex():
        raise TypeError(f"{name} must hold real numbers; got dtype {scores.dtype}.")
    scores = _constant(scores)
    if scores.is_floating_point():
        return scores if scores.dtype in _NATIVE else scores.float()
    values = scores.to(working_dtype(scores.device))
    if scores.element_size() == 8 and nobody_watches() and (values.abs() > _EXACT).any():
        raise ValueError(
            f"{name} must hold scores that float64 can tell apart; got integers beyond 2^53. Subtract the smallest "
            "score, or pass ranks."
        )
    return values


def _label_values(labels: Tensor, name: str) -> Tensor:
    """Labels without gradient, in their own dtype, which says more of them than the one that the kernel works in."""
    if labels.is_complex():
        raise TypeError(f"{name} must hold real numbers; got dtype {labels.dtype}.")
    return _constant(labels)


def _constant(tensor: Tensor) -> Tensor:
    """The tensor without its gradient."""
    return tensor.detach() if tensor.requires_grad else tensor
