"""The base of all losses: flavor, forms of input, faults, empty lists and reduction."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ndcg_ml._plain.checks import one_of, quote, warn_of_lists_of_one
from ndcg_ml._plain.flavor_text import WORDS
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch import inputs, kernel, limits
from ndcg_ml.torch.mean import empty_queries

Reduction = Literal["mean", "sum", "none"]
_REDUCTIONS = get_args(Reduction)


# -- the caller's tensors, as batches of padded lists ------------------------------------------------------------------

PaddedLists = tuple[Tensor, Tensor, Tensor | None]
"""Scores, labels and mask of shape (n_lists, longest list)."""


def check_lists(
    scores: object, labels: object, mask: object, indexes: object
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Check padded lists, which may have a mask, or flat lists, which have `indexes`.

    Raises
    ------
    TypeError, ValueError
        As for ``ListLoss.forward``.
    """
    scores = inputs.check_tensor(scores, "scores")
    if not scores.is_floating_point():
        raise TypeError(
            f"scores must be floats, which have a gradient; got dtype {scores.dtype}. The order is (scores, labels)."
        )
    scores, labels = inputs.scores_and_labels(scores, labels, mask)
    if indexes is None and scores.ndim != 2:
        raise ValueError(
            f"scores must have shape (n_lists, n_documents), padded with mask=; got shape {tuple(scores.shape)}. For "
            "one list, pass scores[None] and labels[None]; for flat lists, pass indexes=."
        )
    if indexes is not None and mask is not None:
        raise ValueError(
            "mask must not be given with indexes. Remove mask for flat lists, and indexes for padded ones."
        )
    if indexes is not None and scores.ndim != 1:
        raise ValueError(
            f"indexes is for 1-D scores; got shape {tuple(scores.shape)}, so that each row is a list. "
            "Remove indexes, and pass mask=, True for slots with a document."
        )
    inputs.refuse_other_device(labels, "labels", scores, "scores")
    mask = None if mask is None else inputs.read_flags(mask, "mask", scores, "scores")
    if indexes is not None:
        indexes = inputs.read_integers(indexes, "indexes", "one query id per row", scores, "scores").long()
    return scores, inputs.constant(labels), mask, indexes


def pad_lists(
    scores: Tensor, labels: Tensor, mask: Tensor | None, indexes: Tensor | None
) -> tuple[list[PaddedLists], Tensor | None]:
    """Pad flat lists; padded lists are returned unchanged, with at least one slot.

    Flat lists become one batch, unless more than half of it would be padding. They then become a batch of the lists of
    1 document, one of those of 2, of 3 and 4, of 5 to 8 and so on, each padded to its longest list, so that there are
    at most twice as many slots as rows and lists. Scores remain in the graph, documents keep their order within a list,
    and lists are in order of first appearance. Flat input waits for the device, because the lengths determine shapes.

    Returns
    -------
    list of PaddedLists
        At least one.
    Tensor of int, shape (n_lists,), or None
        Position of each list in the concatenated batches; None if they are in order.

    Raises
    ------
    TypeError, ValueError
        As for ``check_lists``.
    """
    scores, labels, mask, indexes = check_lists(scores, labels, mask, indexes)
    if indexes is None:
        inputs.warn_of_a_column(scores)
        if scores.shape[1] == 0:  # one masked slot per list, because reductions need one
            scores, labels = pad(scores, (0, 1)), pad(labels, (0, 1))
            mask = torch.zeros_like(labels, dtype=torch.bool)
        return [(scores, labels, mask)], None
    with limits.not_mapped(
        "indexes must be the same for all samples of torch.func.vmap, because they determine shapes; got indexes that "
        "are mapped over. Pass padded lists with mask=, or in_dims=None for indexes."
    ):
        grouped: tuple[list[PaddedLists], Tensor | None] = _pad_groups(scores, labels, indexes)
    return grouped


@limits.never_compile("the lengths of flat lists depend on data; padded lists can be compiled")
def _pad_groups(scores: Tensor, labels: Tensor, indexes: Tensor) -> tuple[list[PaddedLists], Tensor | None]:
    lists, positions, lengths = _number_lists(indexes)
    sizes = lengths.cpu()
    longest = int(sizes.max()) if sizes.numel() else 1
    if longest == 1 and sizes.numel() > 1:
        warn_of_lists_of_one(sizes.numel())
    if sizes.numel() * longest <= 2 * labels.numel():
        return [_pad_to(longest, scores, labels, lists, positions, lengths)], None
    # The bits of size - 1: 0 for lists of 1 document, 1 for 2, 2 for 3 and 4, 3 for 5 to 8.
    bits = torch.frexp((lengths - 1).to(inputs.working_dtype(lengths.device))).exponent
    batches: list[PaddedLists] = []
    members = []
    for value in torch.unique(bits):
        chosen = bits == value
        rows = chosen[lists].nonzero()[:, 0]
        number = (chosen.cumsum(0) - 1)[lists[rows]]
        part = lengths[chosen]
        batches.append(_pad_to(int(part.max()), scores[rows], labels[rows], number, positions[rows], part))
        members.append(chosen.nonzero()[:, 0])
    return batches, torch.cat(members).argsort()


def _pad_to(
    width: int, scores: Tensor, labels: Tensor, lists: Tensor, positions: Tensor, lengths: Tensor
) -> PaddedLists:
    """Place each row at its position of its list."""
    mask = torch.arange(width, device=scores.device) < lengths.unsqueeze(-1)
    scores, labels = (rows.new_zeros(mask.shape).index_put((lists, positions), rows) for rows in (scores, labels))
    return scores, labels, mask


def _number_lists(indexes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Number the lists by first appearance; return list and position of each row, and the lengths of the lists."""
    n_rows = indexes.numel()
    row = torch.arange(n_rows, device=indexes.device)
    _, by_id, counts = torch.unique(indexes, return_inverse=True, return_counts=True)
    first = torch.full_like(counts, n_rows).scatter_reduce(0, by_id, row, "amin")
    order = first.argsort()
    lengths = counts[order]
    lists = torch.empty_like(order).scatter(0, order, torch.arange(order.numel(), device=order.device))[by_id]
    together = torch.sort(lists, stable=True).indices
    positions = torch.empty_like(row).scatter(0, together, row - (lengths.cumsum(0) - lengths)[lists[together]])
    return lists, positions, lengths


# -- the base classes --------------------------------------------------------------------------------------------------


class Lists(NamedTuple):
    """A batch of padded lists under a flavor.

    Attributes
    ----------
    scores : Tensor of float32 or float64, shape (n_lists, n_documents)
        In the graph; 0 if `ranked` is False.
    gains : Tensor of float64 (float32 on devices without it), like `scores`
        0 if `ranked` is False.
    weight : Tensor, like `scores`
        Gain divided by the exact ideal, outside the graph; 0 if `ranked` is False and in empty lists. The gains if
        the loss does not use it (``uses_weight``).
    ranked : Tensor of bool, like `scores`
        Documents that are ranked.
    empty : Tensor of bool, shape (n_lists,)
        Lists without a relevant document.
    faults : Tensor of int, shape (n_lists,)
        Which lists have a label that the flavor refuses: see ``limits.add_fault``.
    nan_penalty : Tensor, like `scores`, shape (n_lists, 1), or None
        nan for a list with a score that is not finite, and 0 otherwise; its product with the scores is added to the
        loss. None if the host has checked that all scores are finite.
    absent : Tensor of bool, like `scores`, or None
        The negation of `ranked`, or None if all slots are known to be ranked.
    """

    scores: Tensor
    gains: Tensor
    weight: Tensor
    ranked: Tensor
    empty: Tensor
    faults: Tensor
    nan_penalty: Tensor | None
    absent: Tensor | None


class ListLoss(nn.Module):
    """Base class of the losses of ``ndcg_ml.torch``: a loss of lists under a flavor.

    Derive a relaxation of NDCG from ``DirectLoss``. Derive any other loss of lists from this class, and define
    ``losses``.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        The definition of NDCG. Every tie-breaking rule is accepted; each loss documents its limit on tied scores.
        Only ideals that depend on the ranking follow the tie-breaking rule, with input order for "docid", and
        ``score_dtype``. Lists without a relevant document are not in the mean, whatever ``empty`` is.
    reduction : {"mean", "sum", "none"}, default "mean"
        ``mean`` is over the lists that are not empty (0 if all are). ``none`` returns one loss per list, 0 for an empty
        one.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        The reduction is unknown; or no loss supports the flavor: ``negative="allow"``, a gain table with negative
        entries, or ``aggregate="micro"``. When called: a callable gain is negative.

    Notes
    -----
    Half-precision scores are promoted to float32, and the loss is in float32; autocast changes neither the loss nor its
    gradient. Only scores of documents have a gradient. It is zero in an empty list, which remains in the graph. A list
    with a score of nan or infinity has a loss of nan and a gradient of nan, so that a ``GradScaler`` skips the step. On
    the CPU, ``forward`` raises an error if the flavor refuses a label. On other devices, in compiled code, and if
    ``torch.func.vmap`` maps over labels, loss and gradient of its list are nan too.

    Flat lists are padded to at most twice as many slots as rows and lists: if padding all of them to the longest takes
    more, lists of similar length are padded together. Because the lengths determine shapes, this waits for an
    accelerator and breaks a compiled graph. Padded input does neither.
    """

    uses_weight: ClassVar[bool] = True
    """Whether ``losses`` uses ``Lists.weight``, which requires sorting."""

    def __init__(self, flavor: Flavor | str = "sklearn", *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.flavor: Flavor = _check_flavor(inputs.read_flavor(flavor))
        one_of(reduction, "reduction", _REDUCTIONS)
        self.reduction = reduction

    def losses(self, lists: Lists) -> Tensor:
        """Compute the loss of each list; defined by subclasses.

        Parameters
        ----------
        lists : Lists

        Returns
        -------
        Tensor, shape (n_lists,)
            Entries of empty lists, and of lists with a score that is not finite, are not used.
        """
        raise NotImplementedError(f"{type(self).__name__} must define losses(self, lists).")

    __call__: Callable[..., Tensor]

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        indexes: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss.

        Parameters
        ----------
        scores : Tensor of float, shape (n_lists, n_documents)
            Higher is better. Flat: shape (n_rows,), with `indexes`.
        labels : Tensor, shape of `scores`
            Relevance labels, of any real dtype.
        mask : Tensor of bool, shape of `scores`, optional
            Padded form only: True for slots with a document. The contents of other slots change neither loss nor
            gradient.
        indexes : Tensor of int, shape (n_rows,), optional
            Flat form only: one query id per row, any values, in any order.

        Returns
        -------
        Tensor
            float64 for scores of float64, otherwise float32. Without dimensions, or of shape (n_lists,) with
            ``reduction="none"``. Flat lists are then in order of first appearance.

        Raises
        ------
        TypeError
            An argument is not a tensor, scores are not floats, mask is not bool, or indexes are not integers.
        ValueError
            Shapes do not match, a callable gain is negative, or, on the CPU, the flavor refuses a label.
        """
        batches, places = pad_lists(scores, labels, mask, indexes)
        read = [self._read(*batch) for batch in batches]
        looked = _refuse_faults(self.flavor, read)
        full = _all_have_loss(read)
        losses = _concatenate([self._losses_of(lists, looked=looked, full=full) for lists in read])
        return self._reduce(losses, places, None if full else [lists.empty for lists in read])

    def extra_repr(self) -> str:
        """The flavor and the parameters, for ``repr``."""
        named = (name for name in inspect.signature(type(self)).parameters if name not in ("flavor", "generator"))
        parameters = (f"{name}={getattr(self, name)!r}" for name in named if hasattr(self, name))
        return ", ".join([repr(self.flavor.short_text), *parameters])

    def _reduce(self, losses: Tensor, places: Tensor | None, empty: Sequence[Tensor] | None) -> Tensor:
        """Reduce the losses; `empty` is None if no list is empty, and `places` if the lists are in order."""
        if self.reduction == "none":
            return losses if places is None else losses[places]
        if self.reduction == "sum":
            return losses.sum()
        if empty is None:
            return losses.mean()
        return losses.sum() / (~_concatenate(empty)).sum().clamp(min=1)

    def _losses_of(self, lists: Lists, *, looked: bool, full: bool) -> Tensor:
        """Compute the losses: 0 for empty lists, and nan, with a gradient of nan, for invalid scores or labels."""
        loss = self.losses(lists)
        if loss.shape != lists.empty.shape:  # it would be broadcast
            raise ValueError(
                f"{type(self).__name__}.losses must return one loss per list, shape {tuple(lists.empty.shape)}; got "
                f"{tuple(loss.shape)}."
            )
        # A fill and its backward pass cost more than the check that avoids them.
        if not full:
            loss = loss.masked_fill(lists.empty, 0.0)
        penalty = lists.nan_penalty
        if not looked:
            penalty = torch.zeros_like(lists.scores[:, :1]) if penalty is None else penalty
            penalty = penalty.masked_fill((lists.faults < len(limits.FAULTS)).unsqueeze(-1), math.nan)
        return loss if penalty is None else loss + (lists.scores * penalty).sum(-1)

    def _read(self, scores: Tensor, labels: Tensor, mask: Tensor | None) -> Lists:
        """Compute what all losses use."""
        scores, listed = widen(scores), torch.ones_like(labels, dtype=torch.bool) if mask is None else mask
        with torch.no_grad():
            layout = inputs.Padded(scores.shape[1], scores.device)
            unlisted = None if mask is None else ~mask
            judgements = kernel.judge(self.flavor, labels, listed, unlisted, layout)
            ranked = kernel.ranked_documents(self.flavor, judgements, None)
            gains = kernel.gains_of(self.flavor, judgements, kernel.ideal_pool(self.flavor, judgements, ranked))
            if callable(self.flavor.gain) and gains.numel():
                _refuse_negative_gain(gains.min().item(), repr(self.flavor.gain))
            weight, empty = self._weigh(layout, scores, judgements, ranked, gains)
            absent = unlisted if ranked is listed else ~ranked
        # Before any arithmetic, because a padded NaN times 0 is NaN.
        clean = scores if absent is None else scores.masked_fill(absent, 0.0)
        nan_penalty = None
        with torch.no_grad():
            # A finite sum has finite terms. An infinite one may be an overflow, so each list is checked.
            if not (limits.can_inspect(clean) and math.isfinite(clean.sum())):
                nan_penalty = (clean * 0.0).sum(-1, keepdim=True)
        return Lists(clean, gains, weight, ranked, empty, judgements.faults, nan_penalty, absent)

    def _weigh(
        self, layout: inputs.Padded, scores: Tensor, judgements: kernel.Judgements, ranked: Tensor, gains: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Divide the gains by the ideal, and flag the empty lists."""
        flavor, ks = self.flavor, (self.flavor.k,)
        # Without weights, a list is empty if its best gain is 0, because rank 1 is within every cut-off.
        best_first = flavor.ideal in ("global", "recall") and not kernel.needs_ranking(flavor)
        if not self.uses_weight and best_first and not callable(flavor.discount):
            return gains, empty_queries(gains.amax(-1))
        ranking = kernel.rank(flavor, layout, scores, ranked, gains, None) if kernel.needs_ranking(flavor) else None
        table = kernel.table_for(flavor, ks, layout, gains)
        ideal = kernel.ideal_dcg(flavor, ks, layout, judgements, gains, ranked, ranking, table)
        empty = empty_queries(ideal)
        weight = gains / ideal.masked_fill(empty, math.inf)
        if flavor.short_lists == "zero":
            weight = weight.masked_fill(kernel.too_short(ks, layout, ranked), 0.0)
        return weight.to(scores.dtype), empty.squeeze(-1)


def widen(scores: Tensor) -> Tensor:
    """Promote half precision to float32."""
    return scores if scores.dtype == torch.float64 else scores.float()


def _concatenate(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


class DirectLoss(ListLoss):
    r"""Base class of relaxations: 1 - NDCG with a smooth discount for each document instead of that of its rank.

        L = 1 - sum_i gain(y_i) d_i(s) / IDCG

    Derive your own relaxation from this class and define ``discounts``, which computes d_i from the scores. If d_i
    tends to the discount of the rank, 1 - L tends to the flavor's NDCG. This class handles everything else, from the
    two forms of input to empty lists.

    Parameters
    ----------
    flavor, reduction
        As for ``ListLoss``.

    Raises
    ------
    TypeError, ValueError
        As for ``ListLoss``.

    Examples
    --------
    SoftRank adds normal noise to the scores and gives each document the discount of its expected rank:

    >>> import torch
    >>> from ndcg_ml.torch.losses import DirectLoss
    >>> class SoftRankLoss(DirectLoss):
    ...     def __init__(self, flavor="sklearn", *, noise=1.0, reduction="mean"):
    ...         super().__init__(flavor, reduction=reduction)
    ...         self.noise = noise
    ...
    ...     def discounts(self, scores, ranked):
    ...         gap = scores[:, None, :] - scores[:, :, None]
    ...         ahead = torch.special.ndtr(gap / (self.noise * 2**0.5)) * ranked[:, None, :]
    ...         return self.discount_at(0.5 + ahead.sum(-1))  # a document is half ahead of itself
    >>> loss = SoftRankLoss("lightgbm", noise=0.01)
    >>> loss
    SoftRankLoss('lightgbm', noise=0.01, reduction='mean')
    >>> round(loss(torch.tensor([[0.3, 1.2, -0.4]]), torch.tensor([[3, 1, 0]])).item(), 6)  # 1 - NDCG
    0.29019
    """

    def discounts(self, scores: Tensor, ranked: Tensor) -> Tensor:
        """Compute the smooth discount of each document; defined by subclasses.

        Parameters
        ----------
        scores : Tensor of float32 or float64, shape (n_lists, n_documents)
            In the graph and finite; 0 if `ranked` is False.
        ranked : Tensor of bool, like `scores`
            Ranked documents. The other slots must not affect their discounts.

        Returns
        -------
        Tensor, like `scores`
            Finite everywhere. The discounts of other slots are not used.
        """
        raise NotImplementedError(f"{type(self).__name__} must define discounts(self, scores, ranked).")

    def discount_at(self, ranks: Tensor) -> Tensor:
        """Compute the flavor's discount at real ranks, differentiable; 0 for ranks >= k + 1/2.

        Parameters
        ----------
        ranks : Tensor of float
            1 is the best rank; at least 1/2.

        Returns
        -------
        Tensor, like `ranks`

        Raises
        ------
        ValueError
            The flavor's discount is a callable, which is only defined at integer ranks.
        """
        refuse_callable_discount(self.flavor)
        discount = kernel.discount_at(self.flavor, ranks)
        return discount if self.flavor.k is None else discount.masked_fill(ranks >= self.flavor.k + 0.5, 0.0)

    def ndcg(self, scores: Tensor, weight: Tensor, ranked: Tensor) -> Tensor:
        """Compute the smooth NDCG of each list; override it if discounts of documents are not needed."""
        discounts = self.discounts(scores, ranked)
        if discounts.shape != scores.shape:
            raise ValueError(
                f"{type(self).__name__}.discounts must return one discount per document, shape {tuple(scores.shape)}; "
                f"got {tuple(discounts.shape)}."
            )
        return (weight * discounts).sum(-1)

    def losses(self, lists: Lists) -> Tensor:
        """Compute 1 - ``ndcg``."""
        return 1.0 - self.ndcg(finite_scores(lists), lists.weight, lists.ranked)


def finite_scores(lists: Lists) -> Tensor:
    """Replace all scores of a list by 0 if one of them is not finite."""
    return lists.scores if lists.nan_penalty is None else lists.scores.masked_fill(lists.nan_penalty != 0, 0.0)


def fill_absent(values: Tensor, lists: Lists, value: float) -> Tensor:
    """Fill the slots without a ranked document."""
    return values if lists.absent is None else values.masked_fill(lists.absent, value)


def sum_over_ranks(part: Callable[[slice], Tensor], depth: int, numbers_per_rank: int, most_numbers: int) -> Tensor:
    """Sum ``part`` over slices of the ranks; several slices are recomputed in the backward pass, to save memory."""
    step = depth if numbers_per_rank * depth <= most_numbers else max(1, most_numbers // numbers_per_rank)
    slices = [slice(start, min(start + step, depth)) for start in range(0, depth, step)]
    parts = [part(ranks) if step == depth else limits.recompute_in_backward(part, ranks) for ranks in slices]
    return sum(parts[1:], parts[0])


def refuse_callable_discount(flavor: Flavor) -> None:
    """Refuse a discount that is not defined between integer ranks."""
    if callable(flavor.discount):
        raise ValueError(
            f"flavor.discount must be a name in a loss that evaluates it between integer ranks; got the callable "
            f"{flavor.discount!r}. Use one of {quote(WORDS['discount'])}."
        )


def _check_flavor(flavor: Flavor) -> Flavor:
    """Refuse a flavor that no loss supports."""
    if flavor.negative == "allow":
        raise ValueError(
            "flavor.negative must be 'raise', 'zero' or 'drop' in a loss; got 'allow', whose ideal may be 0 or less. "
            "Pass flavor.replace(negative='zero')."
        )
    if isinstance(flavor.gain, tuple):
        _refuse_negative_gain(min(flavor.gain), "a table")
    if flavor.aggregate == "micro":
        raise ValueError(
            "flavor.aggregate must be 'macro' in a loss, which is computed per list; got 'micro'. Pass "
            "flavor.replace(aggregate='macro')."
        )
    return flavor


def _refuse_negative_gain(least: float, source: str) -> None:
    if least < 0:
        raise ValueError(
            f"flavor.gain must be >= 0 in a loss, so that the ideal is above 0; got {source} with {least:g}. Shift it."
        )


def _refuse_faults(flavor: Flavor, read: Sequence[Lists]) -> bool:
    """Raise for labels that the flavor refuses, on the CPU; return whether labels were checked."""
    on_cpu = read[0].scores.device.type == "cpu"
    return on_cpu and limits.refuse(flavor, _concatenate([lists.faults for lists in read]))


def _all_have_loss(read: Sequence[Lists]) -> bool:
    """Whether the host has checked that there are lists and none is empty."""
    empty = [lists.empty for lists in read]
    return all(limits.can_inspect(flags) and flags.numel() > 0 and not flags.any() for flags in empty)
