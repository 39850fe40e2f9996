"""Check the caller's tensors and lay them out: as a ``Batch`` for the metric, as padded lists for the losses.

For the metric, only shapes and dtypes are read, not data. Flat lists of a loss are padded, which needs their lengths
and therefore waits for a device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml._core.checks import (
    TIES_BY_ID,
    axis_too_many,
    refuse_column,
    warn_of_lists_of_one,
    warn_of_swap,
    without_doc_ids,
)
from ndcg_ml._core.queries import Queries
from ndcg_ml._core.scores import Prepared
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.torch.limits import is_plain_eager, never_compile, not_mapped

if TYPE_CHECKING:
    from ndcg_ml._core.totals import Totals

# -- the slots of each query: rows of a padded tensor, or consecutive parts of a flat one -----------------------------


def best_first(key: Tensor) -> Tensor:
    """Sort the last dimension in descending order, stably, and return the indices."""
    # In torch 2.4, vmap has no rule for a stable argsort.
    return torch.sort(key, dim=-1, descending=True, stable=True).indices


class Padded:
    """One query per row, padded to one width."""

    def __init__(self, n_queries: int, width: int, device: torch.device) -> None:
        self.width = width
        self._n_queries = n_queries
        self._device = device

    @property
    def starts(self) -> Tensor:
        """True at the first slot of each query."""
        return self.position == 1

    @property
    def position(self) -> Tensor:
        """1, 2, ... within each query."""
        # Computed on demand, because most calls do not use it.
        return torch.arange(1, self.width + 1, device=self._device)

    def n_queries(self) -> Tensor:
        """The number of queries, a tensor without dimensions."""
        return torch.full((), self._n_queries, device=self._device)

    def existing(self, flags: Tensor) -> Tensor:
        """Unset flags, per query or per query and cut-off, in entries of a per-query tensor without a query."""
        return flags

    def order_by(self, key: Tensor) -> Tensor:
        """Sort the slots of each query by a key, in descending order, stably, and return the indices."""
        return best_first(key)

    def take(self, values: Tensor, order: Tensor) -> Tensor:
        """The values in this order."""
        return values.gather(-1, order)

    def per_query(self, values: Tensor) -> Tensor:
        """The sum within each query."""
        return values.sum(-1)

    def any_of(self, flags: Tensor) -> Tensor:
        """Whether a flag is set within each query."""
        return flags.any(-1)

    def per_slot(self, values: Tensor) -> Tensor:
        """For each slot, the entry of its query, or a tensor that broadcasts to this."""
        return values.unsqueeze(-1)

    def at_first(self, values: Tensor) -> Tensor:
        """For each slot, the value at the first slot of its query, or a tensor that broadcasts to this."""
        return values[..., :1]


class Flat:
    """Slots in the order of their query ids, given as `ids`. Methods are as in ``Padded``.

    Only the device knows the number of queries, and reading it would make the host wait. Per-query tensors therefore
    have one entry per slot, and the first ``n_queries()`` entries are those of the queries.
    """

    def __init__(self, ids: Tensor) -> None:
        n_slots = ids.numel()
        slot = torch.arange(n_slots, device=ids.device)
        self.width = n_slots
        starts = torch.ones_like(ids, dtype=torch.bool)
        starts[1:] = ids[1:] != ids[:-1]
        self.starts = starts
        self.query = self.starts.cumsum(0) - 1
        self._first = torch.where(self.starts, slot, 0).cummax(0).values
        self.position = slot - self._first + 1
        self.exists = slot <= self.query[-1]

    def n_queries(self) -> Tensor:
        return self.exists.sum()

    def existing(self, flags: Tensor) -> Tensor:
        return flags & self.exists.view(-1, *[1] * (flags.ndim - 1))

    def order_by(self, key: Tensor) -> Tensor:
        by_key = torch.sort(key, descending=True, stable=True).indices
        return by_key[torch.sort(self.query[by_key], stable=True).indices]

    def take(self, values: Tensor, order: Tensor) -> Tensor:
        return values[order]

    def per_query(self, values: Tensor) -> Tensor:
        return torch.zeros_like(values).index_add(0, self.query, values)

    def any_of(self, flags: Tensor) -> Tensor:
        return torch.zeros_like(self.query).index_add(0, self.query, flags.to(self.query.dtype)) > 0

    def per_slot(self, values: Tensor) -> Tensor:
        return values[self.query]

    def at_first(self, values: Tensor) -> Tensor:
        return values[self._first]


Layout = Padded | Flat


def working_dtype(device: torch.device) -> torch.dtype:
    """float64, or float32 on devices without float64."""
    return torch.float32 if device.type == "mps" else torch.float64


# -- check the caller's tensors and lay them out ----------------------------------------------------------------------

_NATIVE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

PaddedLists = tuple[Tensor, Tensor, Tensor | None]
"""Scores, labels and mask of shape (n_lists, longest list)."""


def read_flavor(flavor: object) -> Flavor:
    """Read a flavor; in compiled code, a string is parsed once."""
    return _parse(flavor) if isinstance(flavor, str) else as_flavor(flavor)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _parse(text: str) -> Flavor:
    return as_flavor(text)


def scores_and_labels(
    scores: object, labels: object, mask: object, names: tuple[str, str] = ("scores", "labels")
) -> tuple[Tensor, Tensor]:
    """Check that both are tensors of one shape, and that a last axis of length 1 is intended.

    Raises
    ------
    TypeError, ValueError
    """
    scores, labels = check_tensor(scores, names[0]), check_tensor(labels, names[1])
    refuse_other_shape(labels, names[1], scores, names[0])
    if scores.ndim > 0 and scores.shape[-1] == 1:
        of_all = f"torch.ones_like({names[0]}, dtype=torch.bool)"
        refuse_column(names, scores.shape, mask is not None, _DROP, "indexes= (one query id per row)", of_all)
    return scores, labels


_DROP = "{}.squeeze(-1)"


def warn_of_dtypes(scores: Tensor, labels: Tensor, names: tuple[str, str] = ("scores", "labels")) -> None:
    """Warn of integer scores of floating labels, except in compiled code. Reading values would wait for a device."""
    integers = not (scores.is_floating_point() or scores.is_complex())
    if integers and labels.is_floating_point() and not torch.compiler.is_compiling():
        warn_of_swap(names[1], names[0])


# -- the metric ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Slots in the order of the layout."""

    layout: Layout
    scores: Tensor
    labels: Tensor
    listed: Tensor
    retrieved: Tensor | None
    doc_id: Tensor | None
    shape: tuple[int, ...]
    """Shape of a per-query tensor of the padded form; empty in the flat form."""
    rows: Tensor | None
    """The caller's row of each slot of the flat form."""


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
    """Lay out the caller's tensors; None if they hold no query.

    Raises
    ------
    TypeError
        An argument is not a tensor, or has an unsupported dtype.
    ValueError
        The shapes do not match, or nothing defines which rows belong to one query.
    """
    # Tensors of one shape, on one device.
    scores, labels = scores_and_labels(scores, labels, mask, names)
    refuse_other_device(labels, names[1], scores, names[0])
    flags = None if retrieved is None else _flags(retrieved, "retrieved", scores, names[0])
    ids = None if doc_id is None else _integers(doc_id, "doc_id", "one per document", scores, names[0])
    if flavor.ties in TIES_BY_ID:
        if ids is None:
            raise ValueError(without_doc_ids(flavor))
        ids = _rank_as_text(ids)
    # The number of dimensions distinguishes the two forms.
    scores, labels = _score_values(scores, names[0]), _label_values(labels, names[1])
    if scores.ndim == 0:
        raise ValueError(
            f"{names[0]} must have a dimension for the documents; got a tensor without dimensions. Give it shape "
            "(n_queries, n_documents), or (n_rows,) with indexes=."
        )
    if scores.ndim == 1:
        if mask is not None:
            raise ValueError(
                f"mask must not be given with 1-D input; {names[0]} is 1-D. Remove mask, and the rows that it excludes."
            )
        if indexes is None:
            raise ValueError(
                "indexes must be given with 1-D input, one integer query id per row in any order. For a single query, "
                f"pass {names[0]}[None] and {names[1]}[None]."
            )
        return _flat_batch(
            scores, labels, _integers(indexes, "indexes", "one query id per row", scores, names[0]), flags, ids
        )
    # Padded input: each row is one query, and a mask says which slots hold documents.
    if indexes is not None:
        raise ValueError(
            f"indexes is for 1-D input; {names[0]} has shape {tuple(scores.shape)}, so that each row is one query. "
            f"Remove indexes, or flatten {names[0]} and {names[1]} to one dimension."
        )
    listed = torch.ones_like(scores, dtype=torch.bool) if mask is None else _flags(mask, "mask", scores, names[0])
    warn_of_a_column(scores)
    return _padded_batch(scores, labels, listed, flags, ids)


def warn_of_a_column(scores: Tensor) -> None:
    """Warn if each of several lists has one document, except in compiled code."""
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
        if width == 0:  # one masked slot per query, because reductions need one
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
    """Check 2-D scores (with their gradient), labels and mask of a loss; lists get at least one slot.

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
            "one list, pass scores[None] and labels[None]; for flat lists, pass indexes=."
        )
    refuse_other_device(labels, "labels", scores, "scores")
    labels = _label_values(labels, "labels")
    listed = torch.ones_like(labels, dtype=torch.bool) if mask is None else _flags(mask, "mask", scores, "scores")
    if scores.shape[1] == 0:  # one masked slot per list, because reductions need one
        return pad(scores, (0, 1)), pad(labels, (0, 1)), pad(listed, (0, 1), value=False)
    return scores, labels, listed


def pad_lists(
    scores: Tensor, labels: Tensor, mask: Tensor | None = None, *, indexes: Tensor | None = None
) -> tuple[list[PaddedLists], Tensor | None]:
    """Pad flat lists; padded lists are returned unchanged.

    Flat lists become one batch, unless more than half of it would be padding. They then become a batch of the lists of
    1 document, one of those of 2, of 3 and 4, of 5 to 8 and so on, each padded to its longest list, so that there are
    at most twice as many slots as rows and lists. Scores remain in the graph, documents keep their order within a list,
    and lists are in order of first appearance. Flat input waits for the device, because the lengths determine shapes.

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
        Position of each list in the concatenated batches; None if they are in order.

    Raises
    ------
    TypeError, ValueError
        As for the losses' ``forward``, which checks padded input itself.
    """
    scores, labels, indexes = check_rows(scores, labels, mask, indexes)
    if indexes is None:
        if scores.ndim == 2:
            warn_of_a_column(scores)
        return [(scores, labels, mask)], None
    with not_mapped(
        "indexes must be the same for all samples of torch.func.vmap, because they determine shapes; got indexes that "
        "are mapped over. Pass padded lists with mask=, or in_dims=None for indexes."
    ):
        grouped: tuple[list[PaddedLists], Tensor | None] = _pad_groups(scores, labels, indexes)
    return grouped


def check_rows(
    scores: Tensor, labels: Tensor, mask: Tensor | None, indexes: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Check scores, labels and indexes of flat lists. Padded lists are returned with None for indexes.

    Raises
    ------
    TypeError, ValueError
        As for ``pad_lists``.
    """
    scores, labels = scores_and_labels(scores, labels, mask)
    if indexes is None:
        return scores, labels, None
    if mask is not None:
        raise ValueError(
            "mask must not be given with indexes. Remove mask for flat lists, and indexes for padded ones."
        )
    if scores.ndim != 1:
        raise ValueError(
            f"indexes is for 1-D scores; got shape {tuple(scores.shape)}, so that each row is a list. "
            "Remove indexes, and pass mask=, True for slots with a document."
        )
    refuse_other_device(labels, "labels", scores, "scores")
    return scores, labels, _integers(indexes, "indexes", "one query id per row", scores, "scores")


@never_compile("the lengths of flat lists depend on data; padded lists can be compiled")
def _pad_groups(scores: Tensor, labels: Tensor, indexes: Tensor) -> tuple[list[PaddedLists], Tensor | None]:
    lists, positions, lengths = _number_lists(indexes)
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
    """Place rows in a batch that is as wide as its longest list."""
    listed = torch.arange(width, device=scores.device) < lengths.unsqueeze(-1)
    return _place_in_slots(scores, listed, lists, positions), _place_in_slots(labels, listed, lists, positions), listed


def _place_in_slots(rows: Tensor, listed: Tensor, lists: Tensor, positions: Tensor) -> Tensor:
    return rows.new_zeros(listed.shape).index_put((lists, positions), rows)


def _stable_argsort(numbers: Tensor) -> Tensor:
    return torch.sort(numbers, stable=True).indices


def _number_lists(indexes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Number the lists by first appearance; return list and position of each row, and the lengths of the lists."""
    n_rows = indexes.numel()
    row = torch.arange(n_rows, device=indexes.device)
    _, by_id, counts = torch.unique(indexes, return_inverse=True, return_counts=True)
    first = torch.full_like(counts, n_rows).scatter_reduce(0, by_id, row, "amin")
    order = first.argsort()
    lengths = counts[order]
    lists = torch.empty_like(order).scatter(0, order, torch.arange(order.numel(), device=order.device))[by_id]
    together = _stable_argsort(lists)
    positions = torch.empty_like(row).scatter(0, together, row - (lengths.cumsum(0) - lengths)[lists[together]])
    return lists, positions, lengths


# -- single tensors --------------------------------------------------------------------------------------------------


def check_tensor(value: object, name: str) -> Tensor:
    """Check that the value is a tensor that is not nested."""
    if isinstance(value, Tensor) and not value.is_nested:
        return value
    if isinstance(value, Tensor):
        raise TypeError(
            f"{name} must not be a nested tensor. Pass torch.nested.to_padded_tensor({name}, 0.0) with mask=, or "
            f"{name}.values() with indexes= (one query id per row)."
        )
    got = f"{name} must be a torch.Tensor; got {type(value).__module__}.{type(value).__qualname__}"
    if _is_ragged(value):
        rows = f"[torch.as_tensor(row) for row in {name}]"
        raise TypeError(
            f"{got}. Pass torch.nn.utils.rnn.pad_sequence({rows}, batch_first=True) with mask=, or torch.cat({rows}) "
            "with indexes= (one query id per row)."
        )
    raise TypeError(
        f"{got}. Pass torch.as_tensor({name}), or pass arrays, lists and tables to "
        "ndcg_ml.ndcg_score(y_true, y_score, ...)."
    )


def _is_ragged(value: object) -> bool:
    """Whether this is a list that ``torch.as_tensor`` cannot convert, of tensors or of lists of unequal lengths."""
    rows = list(value) if isinstance(value, (list, tuple)) else []
    if any(isinstance(row, Tensor) and row.ndim > 0 for row in rows):
        return True
    return len({len(row) for row in rows if isinstance(row, (list, tuple))}) > 1


def check_integers(tensor: Tensor, name: str, meaning: str) -> Tensor:
    """Check that the tensor holds integers, described by `meaning`."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(
            f"{name} must hold integers, {meaning}; got dtype {tensor.dtype}. Pass {name}.long() if all are integers."
        )
    return tensor


def refuse_other_device(tensor: Tensor, name: str, like: Tensor, of: str) -> None:
    """Refuse a tensor on another device than `like`."""
    if tensor.device != like.device:
        raise ValueError(
            f"{name} must be on the device of {of}, {like.device}; got {tensor.device}. Pass {name}.to({of}.device)."
        )


def refuse_other_shape(tensor: Tensor, name: str, like: Tensor, of: str) -> None:
    """Refuse a tensor with a shape other than that of `like`."""
    if tensor.shape != like.shape:
        hint = axis_too_many(name, tensor.shape, of, like.shape, _DROP)
        raise ValueError(f"{name} must have the shape of {of}, {tuple(like.shape)}; got {tuple(tensor.shape)}.{hint}")


def _companion(value: object, name: str, scores: Tensor, of: str) -> Tensor:
    """Check that the value is a tensor of the shape of the scores, on their device."""
    tensor = check_tensor(value, name)
    refuse_other_shape(tensor, name, scores, of)
    refuse_other_device(tensor, name, scores, of)
    return tensor


def _flags(value: object, name: str, scores: Tensor, of: str) -> Tensor:
    flags = _companion(value, name, scores, of)
    if flags.dtype != torch.bool:
        raise TypeError(
            f"{name} must be a tensor of bool; got dtype {flags.dtype}. Pass {name}.bool() if it holds 0 and 1."
        )
    return flags


def _integers(value: object, name: str, meaning: str, scores: Tensor, of: str) -> Tensor:
    return check_integers(_companion(value, name, scores, of), name, meaning).long()


def _rank_as_text(ids: Tensor) -> Tensor:
    """Rank integer ids by their decimal text, "10" before "9", as outside of torch."""
    if not is_plain_eager():  # the order would become a constant
        raise ValueError(
            "ties must not be broken by document id in compiled, traced or mapped code, because the host sorts ids as "
            "text. Call ndcg outside of it, or use a flavor with another tie-breaking rule."
        )
    places = np.unique(np.array(ids.tolist()).astype(str), return_inverse=True)[1]
    return torch.from_numpy(places.reshape(ids.shape)).to(ids.device)


def _score_values(scores: Tensor, name: str) -> Tensor:
    """Detach scores and convert them to floats, except integers that floats may make equal, for ``evaluate``."""
    if scores.is_complex():
        raise TypeError(f"{name} must hold real numbers; got dtype {scores.dtype}.")
    scores = _constant(scores)
    if scores.is_floating_point():
        return scores if scores.dtype in _NATIVE else scores.float()
    dtype = working_dtype(scores.device)
    may_round = 2.0 ** (8 * scores.element_size()) > 2 / torch.finfo(dtype).eps
    return scores if may_round else scores.to(dtype)


def _label_values(labels: Tensor, name: str) -> Tensor:
    """Detach labels and keep their dtype, which tells integers apart."""
    if labels.is_complex():
        raise TypeError(f"{name} must hold real numbers; got dtype {labels.dtype}.")
    return _constant(labels)


def _constant(tensor: Tensor) -> Tensor:
    """Detach a tensor that has a gradient."""
    return tensor.detach() if tensor.requires_grad else tensor


# -- rank CPU tensors with the NumPy kernel, which is several times faster than torch's sort on the CPU ---------------

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
    return (tensor.float() if exotic else tensor).resolve_neg().numpy()
