"""The driver of every loss: flavor, forms of input, faults, empty lists and reduction. A loss adds what is its own."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from ndcg_ml._checks import as_float, one_of, positive_number
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._faults import counted_faults, refuse
from ndcg_ml.torch._gains import discount_at, gains_of, judge, label_faults, working_dtype
from ndcg_ml.torch._inputs import PaddedLists, in_batches, read_flavor, read_lists
from ndcg_ml.torch._kernel import ideal_dcg, needs_ranking, pool_of, rank, ranked_documents, table_for, too_short
from ndcg_ml.torch._layout import Padded
from ndcg_ml.torch._transforms import host_may_look, recomputed

Reduction = Literal["mean", "sum", "none"]
_REDUCTIONS = get_args(Reduction)


class Lists(NamedTuple):
    """A batch of lists, padded and read under a flavor.

    Attributes
    ----------
    scores : Tensor of float32 or float64, shape (n_lists, n_documents)
        In the graph; 0 where `ranked` is not set, whatever the caller's tensor holds there.
    gains : Tensor of float64 (float32 on devices without it), like `scores`
        0 where `ranked` is not set.
    weight : Tensor, like `scores`
        Gain over the exact ideal, outside the graph; 0 where `ranked` is not set and in empty lists. For a loss that
        does not use it (``weighed``), the gains.
    ranked : Tensor of bool, like `scores`
        Which documents are ranked.
    empty : Tensor of bool, shape (n_lists,)
        Lists without a relevant document.
    refused : Tensor of bool, shape (n_lists,)
        Lists with a label that the flavor refuses.
    spoiled : Tensor, like `scores`, shape (n_lists, 1), or None
        nan where a score of the list is not finite, and otherwise 0: the driver adds it to the loss. None where the
        host has seen that all are finite.
    absent : Tensor of bool, like `scores`, or None
        Which slots `ranked` leaves out; None where none is, as it may be known without a look.
    """

    scores: Tensor
    gains: Tensor
    weight: Tensor
    ranked: Tensor
    empty: Tensor
    refused: Tensor
    spoiled: Tensor | None
    absent: Tensor | None


class ListLoss(nn.Module):
    """A loss of whole lists under a flavor: what every loss of ``ndcg_ml.torch`` has in common.

    A loss that relaxes NDCG derives from ``DirectLoss``. Derive from this class for any other loss of lists, and define
    ``losses``.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Which NDCG. Every tie rule is accepted; each loss documents its own limit on tied scores. The ideals that depend
        on the ranking do follow the tie rule, in which "docid" falls back to the order of the input. Lists without a
        relevant document are left out of the mean, whatever ``empty`` says. ``score_dtype`` is irrelevant, except to
        those ideals.
    reduction : {"mean", "sum", "none"}, default "mean"
        ``mean`` over the lists that are not empty (0 if all are). ``none`` returns one loss per list, 0 for an empty
        one.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        The reduction is unknown; or the flavor has what no loss supports: ``negative="allow"`` or a gain table with
        negative entries (the ideal may be 0 or less), ``aggregate="micro"``.

    Notes
    -----
    Half-precision scores are promoted to float32, and so is the loss; autocast changes neither it nor its gradient. The
    gradient reaches the scores of documents only, and is zero for an empty list, which stays in the graph. Labels that
    the flavor refuses raise on the CPU. Elsewhere, in compiled code, and where ``torch.func.vmap`` maps over them, the
    loss of their list is nan, as is that of a list with a score of nan or infinity.

    Flat lists are padded, to at most twice as many slots as rows and lists: where padding all of them to the
    longest would take more, lists of similar length are padded together. Because the lengths fix shapes, this waits for
    an accelerator and breaks a compiled graph; padded input does neither.
    """

    weighed: ClassVar[bool] = True
    """Whether ``losses`` uses ``Lists.weight``, for which the ideal has to be sorted."""

    def __init__(self, flavor: Flavor | str = "sklearn", *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.flavor: Flavor = _with_a_loss(read_flavor(flavor))
        one_of(reduction, "reduction", _REDUCTIONS)
        self.reduction = reduction

    def losses(self, lists: Lists) -> Tensor:
        """The loss of each list; what a subclass defines.

        Parameters
        ----------
        lists : Lists

        Returns
        -------
        Tensor, shape (n_lists,)
            The entries of an empty list and of one with a score that is not finite are not used.
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
        """The loss of each list, reduced.

        Parameters
        ----------
        scores : Tensor of float, shape (n_lists, n_documents)
            Higher is better. Flat: shape (n_rows,), with `indexes`.
        labels : Tensor, shape of `scores`
            Grades, of any real dtype.
        mask : Tensor of bool, shape of `scores`, optional
            Padded form only: True where the slot holds a document; the others change neither loss nor gradient,
            whatever they hold.
        indexes : Tensor of int, shape (n_rows,), optional
            Flat form only: one query id per row, any values, in any order.

        Returns
        -------
        Tensor
            float64 for scores of float64, otherwise float32. No dimension, or (n_lists,) with ``reduction="none"``;
            there lists given by `indexes` stand in the order in which they first appear.

        Raises
        ------
        TypeError
            An argument is not a tensor, scores are not floats, mask is not bool, or indexes are not integers.
        ValueError
            Shapes that do not match; on the CPU, labels that the flavor refuses.
        """
        batches, places = in_batches(scores, labels, mask, indexes=indexes)
        # Lists of very different lengths are several batches.
        read = [self._read(*batch) for batch in batches]
        looked = _refuse_faults(self.flavor, read, batches)
        # The driver alone decides what an empty, a refused and a spoiled list count.
        full = _are_seen_to_be_full(read)
        losses = _together([_counted(self._losses_of(lists), lists, looked=looked, full=full) for lists in read])
        if places is not None and self.reduction == "none":
            return losses[places]
        return _reduced(losses, None if full else [lists.empty for lists in read], self.reduction)

    def extra_repr(self) -> str:
        """The flavor and the parameters, for ``repr``."""
        named = (name for name in inspect.signature(type(self)).parameters if name not in ("flavor", "generator"))
        parameters = (f"{name}={getattr(self, name)!r}" for name in named if hasattr(self, name))
        return ", ".join([repr(self.flavor.short_text), *parameters])

    def _losses_of(self, lists: Lists) -> Tensor:
        loss = self.losses(lists)
        if loss.shape != lists.empty.shape:  # it would be broadcast
            raise ValueError(
                f"{type(self).__name__}.losses must return one loss per list, shape {tuple(lists.empty.shape)}; got "
                f"{tuple(loss.shape)}."
            )
        return loss

    def _read(self, scores: Tensor, labels: Tensor, mask: Tensor | None) -> Lists:
        """Check the arguments, and work out what does not depend on the loss."""
        given = scores
        scores, labels, listed = read_lists(given, labels, mask)
        full = mask is None and given.shape[1] > 0
        with torch.no_grad():
            gains, weight, ranked, empty, refused, absent = _weights(
                self.flavor, scores, labels, listed, self.weighed, full
            )
        clean = scores.to(torch.float64 if scores.dtype == torch.float64 else torch.float32)
        # Before any arithmetic: a padded NaN times 0 is NaN.
        if absent is not None:
            clean = clean.masked_fill(absent, 0.0)
        spoiled = None
        with torch.no_grad():
            # A finite sum has finite terms; the sum of many large ones may overflow, and then each list is looked at.
            if not (host_may_look(clean) and math.isfinite(clean.sum())):
                spoiled = (clean * 0.0).sum(-1, keepdim=True)
        return Lists(clean, gains, weight, ranked, empty, refused, spoiled, absent)


def _together(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


class DirectLoss(ListLoss):
    r"""1 - NDCG with a smooth discount for each document in place of that of its rank.

        L = 1 - sum_i gain(y_i) d_i(s) / IDCG

    A relaxation of your own derives from this class and defines ``discounts``, the d of each document from the scores.
    Where that tends to the discounts of the ranks, 1 - L tends to the flavor's NDCG. The driver handles everything
    else, from the two forms of input to empty lists.

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
    SoftRank: scores have normal noise, and a document has the discount of its expected rank.

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
        """The expected discount of each document; what a subclass defines.

        Parameters
        ----------
        scores : Tensor of float32 or float64, shape (n_lists, n_documents)
            In the graph, all finite. 0 where `ranked` is not set.
        ranked : Tensor of bool, like `scores`
            Which documents have a rank. The others must not change the discounts of these.

        Returns
        -------
        Tensor, like `scores`
            Finite everywhere; documents without a rank may have any.
        """
        raise NotImplementedError(f"{type(self).__name__} must define discounts(self, scores, ranked).")

    def discount_at(self, ranks: Tensor) -> Tensor:
        """The flavor's discount at ranks, whole or between two, differentiable; 0 beyond the cut-off k, from k + 1/2.

        Parameters
        ----------
        ranks : Tensor of float
            1 is the best; at least 1/2.

        Returns
        -------
        Tensor, like `ranks`

        Raises
        ------
        ValueError
            The flavor's discount is a callable, which is only defined at whole ranks.
        """
        refuse_callable_discount(self.flavor)
        discount = discount_at(self.flavor, ranks)
        return discount if self.flavor.k is None else discount.masked_fill(ranks >= self.flavor.k + 0.5, 0.0)

    def ndcg(self, scores: Tensor, weight: Tensor, ranked: Tensor) -> Tensor:
        """The smooth NDCG of each list; override it where there is a shorter way than the discount of each document."""
        discounts = self.discounts(scores, ranked)
        if discounts.shape != scores.shape:
            raise ValueError(
                f"{type(self).__name__}.discounts must return one discount per document, shape {tuple(scores.shape)}; "
                f"got {tuple(discounts.shape)}."
            )
        return (weight * discounts).sum(-1)

    def losses(self, lists: Lists) -> Tensor:
        """1 - ``ndcg``."""
        return 1.0 - self.ndcg(finite_scores(lists), lists.weight, lists.ranked)


def finite_scores(lists: Lists) -> Tensor:
    """The scores, 0 in the lists that have one that is not finite."""
    return lists.scores if lists.spoiled is None else lists.scores.masked_fill(lists.spoiled != 0, 0.0)


def filled_absent(values: Tensor, lists: Lists, value: float) -> Tensor:
    """The values, and this one in the slots without a ranked document."""
    return values if lists.absent is None else values.masked_fill(lists.absent, value)


def sum_over_ranks(part: Callable[[slice], Tensor], depth: int, numbers_per_rank: int, most_numbers: int) -> Tensor:
    """The sum of what ``part`` returns for slices of the ranks; with several slices, nothing of one is kept."""
    step = depth if numbers_per_rank * depth <= most_numbers else max(1, most_numbers // numbers_per_rank)
    slices = [slice(start, min(start + step, depth)) for start in range(0, depth, step)]
    parts = [part(ranks) if step == depth else recomputed(part, ranks) for ranks in slices]
    return sum(parts[1:], parts[0])


def above_zero(value: object, name: str) -> float:
    """A finite number above 0, of any type that is one."""
    number = None if isinstance(value, Real) else as_float(value)  # a tensor of one number, for example
    return positive_number(value if number is None else number, name)


def refuse_callable_discount(flavor: Flavor) -> None:
    """Refuse a discount that is not defined between whole ranks."""
    if callable(flavor.discount):
        raise ValueError(
            f"flavor.discount must be named in a loss that needs it between whole ranks; got the callable "
            f"{flavor.discount!r}. Choose 'log2', 'ln', 'reciprocal', 'jarvelin' or 'none'."
        )


def _with_a_loss(flavor: Flavor) -> Flavor:
    """The flavor, if there can be a loss of lists for it."""
    if flavor.negative == "allow":
        raise ValueError(
            "flavor.negative='allow' has no loss, because its ideal may be 0 or less. Choose 'raise', 'zero' or 'drop'."
        )
    if isinstance(flavor.gain, tuple) and min(flavor.gain) < 0:
        raise ValueError(
            f"flavor.gain must not be negative in a loss, where the ideal must be above 0; got a table with "
            f"{min(flavor.gain):g}. Shift the table."
        )
    if flavor.aggregate == "micro":
        raise ValueError(
            "flavor.aggregate='micro' is not a loss of single lists. Choose flavor.replace(aggregate='macro')."
        )
    return flavor


def _refuse_faults(flavor: Flavor, read: Sequence[Lists], batches: Sequence[PaddedLists]) -> bool:
    """Raise for labels that the flavor refuses, where looking at them stalls no device; whether they were looked at."""
    if read[0].scores.device.type != "cpu":
        return False

    def counts() -> Tensor:
        of_batches = []
        for batch in batches:
            _, labels, listed = read_lists(*batch)
            of_batches.append(counted_faults(label_faults(flavor, labels.to(working_dtype(labels.device)), listed)))
        return torch.stack(of_batches).sum(0)

    return refuse(flavor, _together([lists.refused for lists in read]), counts)


def _are_seen_to_be_full(read: Sequence[Lists]) -> bool:
    """Whether the host has seen that there are lists, and none is empty."""
    empty = [lists.empty for lists in read]
    return all(host_may_look(flags) and flags.numel() > 0 and not flags.any() for flags in empty)


def _counted(loss: Tensor, lists: Lists, *, looked: bool, full: bool) -> Tensor:
    """0 for an empty list; nan for one with a score that is not finite, or with labels that the flavor refuses."""
    # A fill and its backward pass cost more than the look that spares them.
    if not full:
        loss = loss.masked_fill(lists.empty, 0.0)
    if lists.spoiled is not None:
        loss = loss + lists.spoiled.squeeze(-1)
    return loss if looked else loss.masked_fill(lists.refused, math.nan)


def _reduced(losses: Tensor, empty: Sequence[Tensor] | None, reduction: Reduction) -> Tensor:
    """The losses, reduced; `empty` is None where no list is."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if empty is None:
        return losses.mean()
    return losses.sum() / (~_together(empty)).sum().clamp(min=1)


def _weights(
    flavor: Flavor, scores: Tensor, labels: Tensor, listed: Tensor, weighed: bool, full: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Compute the fields of ``Lists`` from `gains` to `absent` except `spoiled`."""
    dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
    layout = Padded(scores.shape[0], scores.shape[1], scores.device)
    judgements = judge(flavor, labels, listed, layout, full=full)
    ranked = ranked_documents(flavor, judgements, None)
    absent = None if full and ranked is listed else ~ranked
    gains = gains_of(flavor, judgements, pool_of(flavor, judgements, ranked))
    refused = judgements.refused
    # The best gain stands at rank 1, within every cut-off: without weights it alone decides which lists are empty.
    best_first = flavor.ideal in ("global", "recall") and not needs_ranking(flavor)
    if not weighed and best_first and not callable(flavor.discount):
        empty = gains.amax(-1) <= 0
        return gains, gains, ranked, empty, refused, absent
    ks = (flavor.k,)
    ranking = rank(flavor, layout, scores, ranked, gains, None) if needs_ranking(flavor) else None
    table = table_for(flavor, ks, layout, gains)
    idcg = ideal_dcg(flavor, ks, layout, judgements, gains, ranked, ranking, table)
    empty = (idcg > 0).logical_not()
    weight = gains / idcg.masked_fill(empty, math.inf)
    if flavor.short_lists == "zero":
        weight = weight.masked_fill(too_short(ks, layout, ranked), 0.0)
    return gains, weight.to(dtype), ranked, empty.squeeze(-1), refused, absent
