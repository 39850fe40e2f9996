"""Check the caller's tensors and lay them out: as a ``Batch`` to be ranked, or as arrays for the NumPy kernel.

A ``Batch`` is laid out from shapes and dtypes alone. Nothing reads data, for which the host would wait for a device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ndcg_ml._core.queries import Queries
from ndcg_ml._core.scores import Ranking
from ndcg_ml._plain import checks
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.torch.limits import Names, is_plain_eager, once_per_graph

if TYPE_CHECKING:
    from ndcg_ml._core.mean_and_empty_queries import Totals

# -- the slots of each query: rows of a padded tensor, or consecutive parts of a flat one ------------------------------


def best_first(key: Tensor) -> Tensor:
    """Sort the last dimension in descending order, stably, and return the indices."""
    # In torch 2.4, vmap has no rule for a stable argsort.
    return torch.sort(key, descending=True, stable=True).indices


class Padded:
    """One query per row, padded to one width."""

    def __init__(self, width: int, device: torch.device) -> None:
        self.width = width
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

    def least(self, values: Tensor) -> Tensor:
        """The smallest value within each query."""
        return values.amin(-1)

    def per_slot(self, values: Tensor) -> Tensor:
        """For each slot, the entry of its query, or a tensor that broadcasts to this."""
        return values.unsqueeze(-1)

    def at_first(self, values: Tensor) -> Tensor:
        """For each slot, the value at the first slot of its query, or a tensor that broadcasts to this."""
        return values[..., :1]


class Flat:
    """Slots in the order of their query ids, given as `ids`. Methods are as in ``Padded``.

    Only the device knows the number of queries, and reading it would make the host wait. Per-query tensors therefore
    have one entry per slot, and the first entries are those of the queries.
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

    def order_by(self, key: Tensor) -> Tensor:
        by_key = torch.sort(key, descending=True, stable=True).indices
        return by_key[torch.sort(self.query[by_key], stable=True).indices]

    def take(self, values: Tensor, order: Tensor) -> Tensor:
        return values[order]

    def per_query(self, values: Tensor) -> Tensor:
        return torch.zeros_like(values).index_add(0, self.query, values)

    def any_of(self, flags: Tensor) -> Tensor:
        return torch.zeros_like(self.query).index_add(0, self.query, flags.to(self.query.dtype)) > 0

    def least(self, values: Tensor) -> Tensor:
        largest = torch.full_like(values, torch.iinfo(values.dtype).max)
        return largest.scatter_reduce(0, self.query, values, "amin")

    def per_slot(self, values: Tensor) -> Tensor:
        return values[self.query]

    def at_first(self, values: Tensor) -> Tensor:
        return values[self._first]


Layout = Padded | Flat


def working_dtype(device: torch.device) -> torch.dtype:
    """float64, or float32 on devices without float64."""
    return torch.float32 if device.type == "mps" else torch.float64


# -- single tensors, and the checks of scores with labels --------------------------------------------------------------

_NATIVE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_DROP = "{}.squeeze(-1)"


def read_flavor(flavor: object) -> Flavor:
    """Read a flavor; in compiled code, a string is parsed once."""
    return _parse(flavor) if isinstance(flavor, str) else as_flavor(flavor)


@once_per_graph
def _parse(text: str) -> Flavor:
    return as_flavor(text)


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
    first = value.tolist() if isinstance(value, np.ndarray) else value
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if isinstance(first, (str, bytes)):
        order = "sorted(ids), 10**9" if name == "doc_id" else "ids"  # document ids are compared as text
        raise TypeError(
            f"{got} of text. Number the ids of the whole data set once, before the loader: number = {{q: i for i, q in "
            f"enumerate({order})}}, and pass torch.tensor([number[q] for q in {name}])."
        )
    rows = f"[torch.as_tensor(row) for row in {name}]"
    raise TypeError(
        f"{got}. Pass torch.as_tensor({name}), or pass arrays, lists and tables to ndcg_ml.ndcg_score(y_true, y_score, "
        f"...). If it lists tensors, or rows of unequal lengths, pass torch.nn.utils.rnn.pad_sequence({rows}, "
        f"batch_first=True) with mask=, or torch.cat({rows}) with indexes= (one query id per row)."
    )


def check_integers(tensor: Tensor, name: str, meaning: str) -> Tensor:
    """Check that the tensor holds integers, described by `meaning`."""
    if not _holds_integers(tensor):
        raise TypeError(
            f"{name} must hold integers, {meaning}; got dtype {tensor.dtype}. Pass {name}.long() if all are integers."
        )
    return tensor


def _holds_integers(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def refuse_other_device(tensor: Tensor, name: str, like: Tensor, of: str) -> None:
    """Refuse a tensor on another device than `like`."""
    if tensor.device != like.device:
        raise ValueError(
            f"{name} must be on the device of {of}, {like.device}; got {tensor.device}. Pass {name}.to({of}.device)."
        )


def refuse_other_shape(tensor: Tensor, name: str, like: Tensor, of: str) -> None:
    """Refuse a tensor with a shape other than that of `like`."""
    if tensor.shape != like.shape:
        hint = checks.axis_too_many(name, tensor.shape, of, like.shape, _DROP)
        raise ValueError(f"{name} must have the shape of {of}, {tuple(like.shape)}; got {tuple(tensor.shape)}.{hint}")


def _companion(value: object, name: str, scores: Tensor, of: str) -> Tensor:
    """Check that the value is a tensor of the shape of the scores, on their device."""
    tensor = check_tensor(value, name)
    refuse_other_shape(tensor, name, scores, of)
    refuse_other_device(tensor, name, scores, of)
    return tensor


def read_flags(value: object, name: str, scores: Tensor, of: str) -> Tensor:
    """Check that the value is a tensor of bool of the shape of the scores, on their device."""
    flags = _companion(value, name, scores, of)
    if flags.dtype != torch.bool:
        raise TypeError(
            f"{name} must be a tensor of bool; got dtype {flags.dtype}. Pass {name}.bool() if it holds 0 and 1."
        )
    return flags


def read_integers(value: object, name: str, meaning: str, scores: Tensor, of: str) -> Tensor:
    """Check that the value is a tensor of integers, described by `meaning`, of the shape of the scores."""
    return check_integers(_companion(value, name, scores, of), name, meaning)


def constant(tensor: Tensor) -> Tensor:
    """Detach a tensor that has a gradient."""
    return tensor.detach() if tensor.requires_grad else tensor


def scores_and_labels(
    scores: object, labels: object, mask: object, names: Names = ("scores", "labels")
) -> tuple[Tensor, Tensor]:
    """Check that both are tensors of real numbers and one shape, and that a last axis of length 1 is intended.

    Integer scores of floating labels cause a warning, except in compiled code.

    Raises
    ------
    TypeError, ValueError
    """
    scores, labels = check_tensor(scores, names[0]), check_tensor(labels, names[1])
    for tensor, name in ((scores, names[0]), (labels, names[1])):
        if tensor.is_complex():
            raise TypeError(f"{name} must hold real numbers; got dtype {tensor.dtype}.")
    refuse_other_shape(labels, names[1], scores, names[0])
    if scores.ndim > 0 and scores.shape[-1] == 1:
        of_all = f"torch.ones_like({names[0]}, dtype=torch.bool)"
        checks.refuse_column(names, scores.shape, mask is not None, _DROP, "indexes= (one query id per row)", of_all)
    if not scores.is_floating_point() and labels.is_floating_point() and not torch.compiler.is_compiling():
        checks.warn_of_swap(names[1], names[0])
    return scores, labels


def warn_of_a_column(scores: Tensor) -> None:
    """Warn if each of several lists has one document, except in compiled code."""
    if scores.shape[-1] == 1 and scores.numel() > 1 and not torch.compiler.is_compiling():
        checks.warn_of_lists_of_one(scores.numel())


# -- a batch of queries, padded or flat --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Slots in the order of the layout."""

    layout: Layout
    scores: Tensor
    labels: Tensor
    listed: Tensor
    full: bool
    """Whether it is known that all slots of padded lists are listed."""
    retrieved: Tensor | None
    doc_id: Tensor | None
    shape: tuple[int, ...]
    """Shape of a per-query tensor of the padded form; empty in the flat form."""
    rows: Tensor | None
    """The caller's row of each slot of the flat form."""


def read_batch(
    flavor: Flavor,
    scores: Tensor,
    labels: Tensor,
    *,
    mask: object = None,
    indexes: object,
    retrieved: object = None,
    doc_id: object = None,
    names: Names = ("scores", "labels"),
) -> Batch | None:
    """Lay out scores and labels that ``scores_and_labels`` has checked; None if they hold no query.

    Raises
    ------
    TypeError
        An argument is not a tensor, or has an unsupported dtype.
    ValueError
        The shapes do not match, or nothing defines which rows belong to one query.
    """
    refuse_other_device(labels, names[1], scores, names[0])
    flags = None if retrieved is None else read_flags(retrieved, "retrieved", scores, names[0])
    ids = None if doc_id is None else read_integers(doc_id, "doc_id", "one per document", scores, names[0])
    if flavor.ties in checks.TIES_BY_ID:
        if ids is None:
            raise ValueError(checks.without_doc_ids(flavor))
        ids = _rank_as_text(ids)
    # The number of dimensions distinguishes the two forms.
    scores, labels = _score_values(scores), constant(labels)
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
            scores, labels, read_integers(indexes, "indexes", "one query id per row", scores, names[0]), flags, ids
        )
    # Padded input: each row is one query, and a mask says which slots hold documents.
    if indexes is not None:
        raise ValueError(
            f"indexes is for 1-D input; {names[0]} has shape {tuple(scores.shape)}, so that each row is one query. "
            f"Remove indexes, or flatten {names[0]}, {names[1]} and indexes to one dimension."
        )
    listed = torch.ones_like(scores, dtype=torch.bool) if mask is None else read_flags(mask, "mask", scores, names[0])
    warn_of_a_column(scores)
    return _padded_batch(scores, labels, listed, flags, ids, full=mask is None)


def _rank_as_text(ids: Tensor) -> Tensor:
    """Rank integer ids by their decimal text, "10" before "9", as outside of torch."""
    if not is_plain_eager():  # the order would become a constant
        raise ValueError(
            "ties must not be broken by document id in compiled, traced or mapped code, because the host sorts ids as "
            "text. Call ndcg outside of it, or use a flavor with another tie-breaking rule."
        )
    places = np.unique(np.array(ids.tolist()).astype(str), return_inverse=True)[1]
    return torch.from_numpy(places.reshape(ids.shape)).to(ids.device)


def _score_values(scores: Tensor) -> Tensor:
    """Detach scores and convert them to floats, except integers that floats may make equal, for ``evaluate``."""
    scores = constant(scores)
    if scores.is_floating_point():
        return scores if scores.dtype in _NATIVE else scores.float()
    dtype = working_dtype(scores.device)
    may_round = 2.0 ** (8 * scores.element_size()) > 2 / torch.finfo(dtype).eps
    return scores if may_round else scores.to(dtype)


def _padded_batch(
    scores: Tensor, labels: Tensor, listed: Tensor, retrieved: Tensor | None, doc_id: Tensor | None, *, full: bool
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
        layout=Padded(max(width, 1), scores.device),
        scores=rows(scores),
        labels=rows(labels),
        listed=rows(listed),
        full=full and width > 0,
        retrieved=None if retrieved is None else rows(retrieved),
        doc_id=None if doc_id is None else rows(doc_id.long()),
        shape=tuple(leading),
        rows=None,
    )


def _flat_batch(
    scores: Tensor, labels: Tensor, indexes: Tensor, retrieved: Tensor | None, doc_id: Tensor | None
) -> Batch | None:
    if scores.numel() == 0:
        return None
    indexes, rows = torch.sort(indexes.long(), stable=True)
    return Batch(
        layout=Flat(indexes),
        scores=scores[rows],
        labels=labels[rows],
        listed=torch.ones_like(indexes, dtype=torch.bool),
        full=False,
        retrieved=None if retrieved is None else retrieved[rows],
        doc_id=None if doc_id is None else doc_id.long()[rows],
        shape=(),
        rows=rows,
    )


# -- rows of the queries that arrive in parts, for ``NDCG(split_queries=True)`` ----------------------------------------


class MetricRows(NamedTuple):
    """Rows of queries that arrive in parts, kept until all have arrived."""

    preds: Tensor
    target: Tensor
    ids: Tensor
    listed: Tensor
    """False for padding."""


def read_list_ids(preds: Tensor, indexes: object) -> Tensor:
    """Check the ids of padded lists, one per list, and flatten them to one dimension.

    Raises
    ------
    TypeError
        They are not a tensor of integers.
    ValueError
        There is not one id per list.
    """
    ids = check_integers(check_tensor(indexes, "indexes"), "indexes", "one query id per list")
    leading = tuple(preds.shape[:-1])
    if tuple(ids.shape) != leading:
        raise ValueError(
            f"indexes of padded input must have one query id per list, shape {leading} (that of preds without its last "
            f"dimension); got {tuple(ids.shape)}. If there is one id per row, pass indexes[..., 0], or flatten preds, "
            "target and indexes to one dimension."
        )
    refuse_other_device(ids, "indexes", preds, "preds")
    return ids.detach().reshape(-1).to(torch.int64, copy=True)


def flatten_rows(preds: Tensor, target: Tensor, ids: Tensor, mask: Tensor | None, *, drop: bool) -> MetricRows:
    """Copy the rows of an update, flat (one id per row) or padded (one id per list).

    Parameters
    ----------
    drop : bool
        Whether to leave padding out, which makes the host read the mask. Otherwise padding is kept as rows that are not
        listed.
    """
    preds, target = preds.detach(), target.detach()
    if preds.ndim == 1:
        listed = torch.ones(preds.shape, dtype=torch.bool, device=preds.device)
        return MetricRows(preds.clone(), target.clone(), ids.detach().to(torch.int64, copy=True), listed)
    mask = torch.ones_like(preds, dtype=torch.bool) if mask is None else mask.detach()
    ids = ids.reshape(preds.shape[:-1]).unsqueeze(-1).expand_as(preds)
    return MetricRows(*(part[mask] if drop else part.flatten().clone() for part in (preds, target, ids, mask)))


def to_floats(preds: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert scores to another dtype. An integer that it cannot represent becomes NaN, which ``compute`` refuses."""
    values = preds.to(dtype)
    if preds.is_floating_point() or not dtype.is_floating_point:
        return values
    return values.masked_fill(values.to(preds.dtype) != preds, math.nan)


# -- rank CPU tensors with the NumPy kernel, which is several times faster than torch's sort on the CPU ----------------

_CAST = (torch.float16, torch.float32, torch.float64)


def rank_on_host(
    flavor: Flavor,
    ks: Sequence[int | None],
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Any = None,
    indexes: Any,
    retrieved: Any = None,
    doc_id: Any = None,
    whole: bool = True,
) -> Totals | None:
    """Compute DCG and ideal DCG of the queries of plain CPU tensors, in the order of ``ndcg_ml.torch.ndcg``.

    `whole` is as for ``Queries.read``. Returns None if any input is not a plain tensor on the CPU, if operations are
    traced or transformed, if there is no document, or if the input is invalid.
    """
    if not is_plain_eager():
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
        totals = Ranking(flavor, ks, Queries.read(**arrays, whole=whole, suspect=False)).totals(y_score)
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
    """Whether these are documents of one shape, and ids are integers. ``Queries.read`` checks the rest."""
    scores = given["y_score"]
    return (
        scores.numel() > 0
        and scores.ndim > 0
        and all(tensor.shape == scores.shape for tensor in given.values())
        and all(_holds_integers(given[name]) for name in ("qid", "doc_id") if name in given)
    )


def _as_array(tensor: Tensor) -> NDArray[Any]:
    """Convert a plain tensor to an array, which shares its memory if NumPy has the dtype."""
    tensor = tensor.detach()
    # NumPy has no bfloat16 and no 8-bit floats; float32 represents their values exactly.
    exotic = tensor.is_floating_point() and tensor.dtype not in _CAST
    return (tensor.float() if exotic else tensor).resolve_neg().numpy()
