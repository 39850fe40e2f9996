"""The base of all losses: flavor, forms of input, faults, empty lists and reduction."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from ndcg_ml._core.checks import as_float, one_of, positive_number, quote
from ndcg_ml._core.flavor_text import WORDS
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch.inputs import Padded, PaddedLists, pad_lists, read_flavor, read_lists, working_dtype
from ndcg_ml.torch.kernel import (
    discount_at,
    empty_queries,
    gains_of,
    ideal_dcg,
    ideal_pool,
    judge,
    label_faults,
    needs_ranking,
    rank,
    ranked_documents,
    table_for,
    too_short,
)
from ndcg_ml.torch.limits import can_inspect, count_faults_by_kind, recompute_in_backward, refuse

Reduction = Literal["mean", "sum", "none"]
_REDUCTIONS = get_args(Reduction)


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
        the loss does not use it (``weighed``).
    ranked : Tensor of bool, like `scores`
        Documents that are ranked.
    empty : Tensor of bool, shape (n_lists,)
        Lists without a relevant document.
    refused : Tensor of bool, shape (n_lists,)
        Lists with a label that the flavor refuses.
    nan_penalty : Tensor, like `scores`, shape (n_lists, 1), or None
        nan for a list with a score that is not finite, and 0 otherwise; added to the loss. None if the host has checked
        that all scores are finite.
    absent : Tensor of bool, like `scores`, or None
        The negation of `ranked`, or None if all slots are known to be ranked.
    """

    scores: Tensor
    gains: Tensor
    weight: Tensor
    ranked: Tensor
    empty: Tensor
    refused: Tensor
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
        entries, or ``aggregate="micro"``.

    Notes
    -----
    Half-precision scores are promoted to float32, and the loss is in float32; autocast changes neither the loss nor its
    gradient. Only scores of documents have a gradient. It is zero in an empty list, which remains in the graph. On the
    CPU, labels that the flavor refuses raise an error. On other devices, in compiled code, and if ``torch.func.vmap``
    maps over labels, the loss of their list is nan, like that of a list with a score of nan or infinity.

    Flat lists are padded to at most twice as many slots as rows and lists: if padding all of them to the longest takes
    more, lists of similar length are padded together. Because the lengths determine shapes, this waits for an
    accelerator and breaks a compiled graph. Padded input does neither.
    """

    weighed: ClassVar[bool] = True
    """Whether ``losses`` uses ``Lists.weight``, which takes a sort."""

    def __init__(self, flavor: Flavor | str = "sklearn", *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.flavor: Flavor = _check_flavor(read_flavor(flavor))
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
            Shapes do not match, or, on the CPU, the flavor refuses a label.
        """
        return self.mean_over_draws([scores], labels, mask, indexes)

    def mean_over_draws(
        self, draws: Sequence[Tensor], labels: Tensor, mask: Tensor | None, indexes: Tensor | None
    ) -> Tensor:
        """Compute the mean of the loss over several scores of the same lists, as ``forward`` does for one.

        Labels are read once, unless the ideal depends on the scores.
        """
        means: list[Tensor] = []
        read_once = labels.numel() > 0 and not needs_ranking(self.flavor)  # reading gives lists without slots one
        for scores in draws:
            batches, places = pad_lists(scores, labels, mask, indexes=indexes)
            if not means or not read_once:
                read = [self._read(*batch) for batch in batches]
                looked = _refuse_faults(self.flavor, read, batches)
                full = _all_have_loss(read)
            else:
                read = [_replace_scores(lists, batch[0]) for lists, batch in zip(read, batches, strict=True)]
            losses = [_mask_losses(self._losses_of(lists), lists, looked=looked, full=full) for lists in read]
            means.append(self._reduce(_concatenate(losses), places, None if full else [lists.empty for lists in read]))
        return means[0] if len(means) == 1 else torch.stack(means).mean(0)

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

    def _losses_of(self, lists: Lists) -> Tensor:
        loss = self.losses(lists)
        if loss.shape != lists.empty.shape:  # it would be broadcast
            raise ValueError(
                f"{type(self).__name__}.losses must return one loss per list, shape {tuple(lists.empty.shape)}; got "
                f"{tuple(loss.shape)}."
            )
        return loss

    def _read(self, scores: Tensor, labels: Tensor, mask: Tensor | None) -> Lists:
        """Check the arguments and compute what all losses use."""
        given = scores
        scores, labels, listed = read_lists(given, labels, mask)
        full = mask is None and given.shape[1] > 0
        with torch.no_grad():
            gains, weight, ranked, empty, refused, absent = _weights(
                self.flavor, scores, labels, listed, self.weighed, full
            )
        read = Lists(scores, gains, weight, ranked, empty, refused, None, absent)
        return _replace_scores(read, scores)


def _replace_scores(lists: Lists, scores: Tensor) -> Lists:
    """Replace the scores of lists by these."""
    clean = scores.to(torch.float64 if scores.dtype == torch.float64 else torch.float32)
    # Before any arithmetic, because a padded NaN times 0 is NaN.
    if lists.absent is not None:
        clean = clean.masked_fill(lists.absent, 0.0)
    nan_penalty = None
    with torch.no_grad():
        # A finite sum has finite terms. An infinite one may be an overflow, so each list is checked.
        if not (can_inspect(clean) and math.isfinite(clean.sum())):
            nan_penalty = (clean * 0.0).sum(-1, keepdim=True)
    return lists._replace(scores=clean, nan_penalty=nan_penalty)


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
            Documents with a rank. The others must not change the discounts of these.

        Returns
        -------
        Tensor, like `scores`
            Finite everywhere. The discounts of documents without a rank are not used.
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
        discount = discount_at(self.flavor, ranks)
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
    """Replace the scores of lists with a score that is not finite by 0."""
    return lists.scores if lists.nan_penalty is None else lists.scores.masked_fill(lists.nan_penalty != 0, 0.0)


def fill_absent(values: Tensor, lists: Lists, value: float) -> Tensor:
    """Fill the slots without a ranked document."""
    return values if lists.absent is None else values.masked_fill(lists.absent, value)


def sum_over_ranks(part: Callable[[slice], Tensor], depth: int, numbers_per_rank: int, most_numbers: int) -> Tensor:
    """Sum ``part`` over slices of the ranks; several slices are recomputed in the backward pass, to save memory."""
    step = depth if numbers_per_rank * depth <= most_numbers else max(1, most_numbers // numbers_per_rank)
    slices = [slice(start, min(start + step, depth)) for start in range(0, depth, step)]
    parts = [part(ranks) if step == depth else recompute_in_backward(part, ranks) for ranks in slices]
    return sum(parts[1:], parts[0])


def above_zero(value: object, name: str) -> float:
    """Check for a finite number above 0, of any numeric type."""
    number = None if isinstance(value, Real) else as_float(value)  # such as a tensor with one number
    return positive_number(value if number is None else number, name)


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
    if isinstance(flavor.gain, tuple) and min(flavor.gain) < 0:
        raise ValueError(
            f"flavor.gain must be >= 0 in a loss, so that the ideal is above 0; got a table with {min(flavor.gain):g}. "
            "Shift the table."
        )
    if flavor.aggregate == "micro":
        raise ValueError(
            "flavor.aggregate must be 'macro' in a loss, which is computed per list; got 'micro'. Pass "
            "flavor.replace(aggregate='macro')."
        )
    return flavor


def _refuse_faults(flavor: Flavor, read: Sequence[Lists], batches: Sequence[PaddedLists]) -> bool:
    """Raise for labels that the flavor refuses, on the CPU; return whether labels were checked."""
    if read[0].scores.device.type != "cpu":
        return False

    def counts() -> Tensor:
        of_batches = []
        for batch in batches:
            _, labels, listed = read_lists(*batch)
            of_batches.append(
                count_faults_by_kind(label_faults(flavor, labels.to(working_dtype(labels.device)), listed))
            )
        return torch.stack(of_batches).sum(0)

    return refuse(flavor, _concatenate([lists.refused for lists in read]), counts)


def _all_have_loss(read: Sequence[Lists]) -> bool:
    """Whether the host has checked that there are lists and none is empty."""
    empty = [lists.empty for lists in read]
    return all(can_inspect(flags) and flags.numel() > 0 and not flags.any() for flags in empty)


def _mask_losses(loss: Tensor, lists: Lists, *, looked: bool, full: bool) -> Tensor:
    """Set the loss to 0 for empty lists, and to nan for lists with invalid scores or labels."""
    # A fill and its backward pass cost more than the check that avoids them.
    if not full:
        loss = loss.masked_fill(lists.empty, 0.0)
    if lists.nan_penalty is not None:
        loss = loss + lists.nan_penalty.squeeze(-1)
    return loss if looked else loss.masked_fill(lists.refused, math.nan)


def _weights(
    flavor: Flavor, scores: Tensor, labels: Tensor, listed: Tensor, weighed: bool, full: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Compute the fields of ``Lists`` from `gains` to `absent` except `nan_penalty`."""
    dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
    layout = Padded(scores.shape[0], scores.shape[1], scores.device)
    judgements = judge(flavor, labels, listed, layout, full=full)
    ranked = ranked_documents(flavor, judgements, None)
    absent = None if full and ranked is listed else ~ranked
    gains = gains_of(flavor, judgements, ideal_pool(flavor, judgements, ranked))
    refused = judgements.refused
    # Without weights, a list is empty if its best gain is 0, because rank 1 is within every cut-off.
    best_first = flavor.ideal in ("global", "recall") and not needs_ranking(flavor)
    if not weighed and best_first and not callable(flavor.discount):
        empty = empty_queries(gains.amax(-1))
        return gains, gains, ranked, empty, refused, absent
    ks = (flavor.k,)
    ranking = rank(flavor, layout, scores, ranked, gains, None) if needs_ranking(flavor) else None
    table = table_for(flavor, ks, layout, gains)
    idcg = ideal_dcg(flavor, ks, layout, judgements, gains, ranked, ranking, table)
    empty = empty_queries(idcg)
    weight = gains / idcg.masked_fill(empty, math.inf)
    if flavor.short_lists == "zero":
        weight = weight.masked_fill(too_short(ks, layout, ranked), 0.0)
    return gains, weight.to(dtype), ranked, empty.squeeze(-1), refused, absent
