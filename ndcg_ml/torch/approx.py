"""``ApproxNDCGLoss``: NDCG with the hard ranks replaced by smooth ones."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._discounts import discount_at
from ndcg_ml.torch._lists import Lists, above_zero, at_real_ranks, check_reduction, flavor_of, loss_of
from ndcg_ml.torch._soft_ranks import STEPS, dense_soft_ranks, fast_soft_ranks

__all__ = ["ApproxNDCGLoss", "approx_ndcg_loss"]

_METHODS = ("auto", "dense", "fast")
# Up to here the dense form is as fast or loses less than a millisecond. An accelerator has more to gain from few
# large operations than from many small ones.
_DENSE_UP_TO_ON_CPU = 128
_DENSE_UP_TO = 1024


class ApproxNDCGLoss(nn.Module):
    r"""1 - NDCG with smooth ranks, which tends to 1 - NDCG of the flavor as its temperatures tend to 0.

    .. math::  L = 1 - \sum_i \frac{gain(y_i)}{IDCG}\, D(r_i)\, c_i, \qquad
               r_i = 1 + \sum_{j \ne i} F\!\left(\frac{s_j - s_i}{T}\right)

    where *F* is the step, :math:`\sigma(x) = 1 / (1 + e^{-x})` or the Laplace distribution's, and :math:`c_i` is 1
    without a cut-off, and otherwise :math:`\sigma((m - r_i) / T_k)` with *m* halfway between the k-th and the (k+1)-th
    smallest rank of the list (held constant in every derivative; a list of at most k documents is not cut). The ideal
    is the exact one.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Which NDCG, its cut-off included. Any tie rule is taken and none is used: tied documents share the rank in
        the middle of their run, so that on tied scores the limit is NDCG with D(mean rank) (the ideals that depend on
        the ranking follow the rule; "docid" falls back to the input order there). Lists without a relevant document
        are left out of the mean, whatever ``empty`` says. ``score_dtype`` is of no consequence.
    temperature : float, default 1.0
        T, in units of score differences; smaller is closer to NDCG and flatter away from the ties.
    step : {"logistic", "laplace"}, default "logistic"
        F. The Laplace step is 1 - exp(-x) / 2 above 0 and exp(x) / 2 below; in the fast form both cost about the same.
    method : {"auto", "dense", "fast"}, default "auto"
        ``dense`` takes all pairs of documents: time and memory grow with the square of the list length. ``fast`` sorts
        the scores and scans: time grows with n log n and memory with n, for the same loss and gradient to rounding,
        but no second derivative. ``auto`` is dense for lists (padding included) of up to 128 slots on the CPU and
        1 024 elsewhere.
    cut_temperature : float, default 1.0
        T_k, in units of ranks: scores and a `temperature` of another scale leave the loss as it is. Ranks within a
        few T_k of the k-th count in part, so that the limit is the flavor's NDCG@k only as this tends to 0 too. On
        lists of 100 documents, with k = 10 and ``temperature=0.3``, cuts of 0.1, 1 and 3 ranks trained to NDCG@10 of
        .557, .600 and .600, and no cut to .600.
    reduction : {"mean", "sum", "none"}, default "mean"
        ``mean`` over the lists that are not empty (0 if all are); ``none`` gives one loss a list, 0 for an empty one.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        A temperature is not above 0; the step, method or reduction is not known; or the flavor has what a loss cannot
        honour: a callable discount (there is no rank between two whole ranks), ``negative="allow"`` or a gain table
        with negative entries (the ideal may be 0 or less), ``aggregate="micro"``.

    Notes
    -----
    Half-precision scores are computed on in float32, and so is the loss; autocast changes neither it nor its gradient.
    The gradient reaches the scores of documents only, and is zero for an empty list, which stays in the graph. Labels
    that the flavor refuses raise on the CPU; elsewhere, compiled, and where ``torch.func.vmap`` maps over them, such a
    list's loss is nan, as is that of a list with a score of nan or infinity.

    Flat and nested lists are computed on in the padded form, at most twice as many slots as rows and lists: where
    padding all of them to the longest would take more, lists of similar length are padded together. Since the lengths
    fix shapes, this waits for an accelerator, and breaks a compiled graph; padded input does neither.

    The fast form takes the logistic step, between documents that do not stand close in the order, as a sum of
    exponentials: 20 in float64 and 12 in float32, with relative errors of 1e-15 and 1e-9.

    Qin, Liu and Li 2010; the cut-off as in rax.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[0.3, 1.2, -0.4, 2.0, 0.9]], dtype=torch.float64, requires_grad=True)
    >>> labels = torch.tensor([[3, 2, 0, 1, 2]])
    >>> loss = ApproxNDCGLoss("ndcg[gain=exponential]", temperature=0.1)(scores, labels)
    >>> round(loss.item(), 6)
    0.316882
    >>> loss.backward()
    >>> round(scores.grad.sum().item(), 12) == 0
    True
    """

    def __init__(
        self,
        flavor: Flavor | str = "sklearn",
        *,
        temperature: float = 1.0,
        step: str = "logistic",
        method: str = "auto",
        cut_temperature: float = 1.0,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.flavor = at_real_ranks(flavor_of(flavor))
        self.temperature = above_zero("temperature", temperature)
        self.step = _one_of("step", step, STEPS)
        self.method = _one_of("method", method, _METHODS)
        self.cut_temperature = above_zero("cut_temperature", cut_temperature)
        self.reduction = check_reduction(reduction)

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        indexes: Tensor | None = None,
        offsets: Tensor | None = None,
    ) -> Tensor:
        """The loss of each list, reduced.

        Parameters
        ----------
        scores : Tensor of float, shape (n_lists, n_documents)
            Higher is better. Flat: shape (n_rows,), with `indexes` or `offsets`. Also a jagged nested tensor, shape
            (n_lists, j).
        labels : Tensor, shape of `scores`
            Grades, of any real dtype.
        mask : Tensor of bool, shape of `scores`, optional
            Padded form only: True where the slot holds a document; the others change neither loss nor gradient,
            whatever they hold.
        indexes : Tensor of int, shape (n_rows,), optional
            Flat form only: one query id a row, any values, in any order.
        offsets : Tensor of int, shape (n_lists + 1,), optional
            Flat form only, instead of `indexes`: list q is the rows ``offsets[q]:offsets[q + 1]``.

        Returns
        -------
        Tensor
            float64 for scores of float64, otherwise float32. No dimension, or (n_lists,) with ``reduction="none"``;
            there lists given by `indexes` stand in the order in which they first appear.

        Raises
        ------
        TypeError
            An argument is not a tensor, scores are not floats, mask is not bool, or indexes or offsets are not
            integers.
        ValueError
            Shapes that do not go together; offsets that do not run from 0 to the number of rows; on the CPU, labels
            that the flavor refuses.
        """
        return loss_of(self.flavor, self._losses, self.reduction, scores, labels, mask, indexes, offsets)

    def extra_repr(self) -> str:
        """The parameters, for ``repr``."""
        return (
            f"{str(self.flavor)!r}, temperature={self.temperature}, cut_temperature={self.cut_temperature}, "
            f"reduction={self.reduction!r}, step={self.step!r}, method={self.method!r}"
        )

    def _losses(self, lists: Lists) -> Tensor:
        """The loss of each list; a score that is not finite makes its list's nan."""
        soft_ranks = dense_soft_ranks if self._takes_pairs(lists.scores) else fast_soft_ranks
        soft_rank = soft_ranks(lists.scores, lists.ranked, self.temperature, self.step)
        terms = lists.weight * discount_at(self.flavor, soft_rank)
        k = self.flavor.k
        if k is not None and k < soft_rank.shape[-1]:
            terms = terms * self._soft_cut(soft_rank, lists.ranked, k)
        return 1.0 - terms.sum(-1)

    def _takes_pairs(self, scores: Tensor) -> bool:
        if self.method == "auto":
            return scores.shape[-1] <= (_DENSE_UP_TO_ON_CPU if scores.device.type == "cpu" else _DENSE_UP_TO)
        return self.method == "dense"

    def _soft_cut(self, soft_rank: Tensor, valid: Tensor, k: int) -> Tensor:
        # A fixed threshold, k + 1/2, would be below every rank of a warm list, and cut all of it.
        # A list of at most k documents has infinity at k + 1, and sigma(infinity) = 1: it is not cut.
        in_order = torch.where(valid, soft_rank.detach(), math.inf).sort(dim=-1).values
        threshold = (in_order[..., k - 1 : k] + in_order[..., k : k + 1]) / 2
        return torch.sigmoid((threshold - soft_rank) / self.cut_temperature)


def approx_ndcg_loss(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    indexes: Tensor | None = None,
    offsets: Tensor | None = None,
    flavor: Flavor | str = "sklearn",
    temperature: float = 1.0,
    step: str = "logistic",
    method: str = "auto",
    cut_temperature: float = 1.0,
    reduction: str = "mean",
) -> Tensor:
    """``ApproxNDCGLoss`` as a function; the class documents the mathematics.

    Parameters
    ----------
    scores, labels, mask, indexes, offsets : Tensor
        As for ``ApproxNDCGLoss.forward``.
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Which NDCG.
    temperature, step, method, cut_temperature, reduction
        As for ``ApproxNDCGLoss``.

    Returns
    -------
    Tensor
        No dimension, or (n_lists,) with ``reduction="none"``.

    Raises
    ------
    TypeError, ValueError
        As for ``ApproxNDCGLoss`` and its ``forward``.

    Examples
    --------
    >>> import torch
    >>> scores, labels = torch.tensor([[0.3, 1.2, -0.4, 2.0, 0.9]]), torch.tensor([[3, 2, 0, 1, 2]])
    >>> round(approx_ndcg_loss(scores, labels, flavor="ndcg[gain=exponential]", temperature=0.1).item(), 4)
    0.3169
    """
    loss = ApproxNDCGLoss(
        flavor,
        temperature=temperature,
        step=step,
        method=method,
        cut_temperature=cut_temperature,
        reduction=reduction,
    )
    return loss.forward(scores, labels, mask, indexes=indexes, offsets=offsets)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        *most, last = map(repr, known)
        raise ValueError(f"{name} must be {', '.join(most)} or {last}; got {value!r}.")
    return value
