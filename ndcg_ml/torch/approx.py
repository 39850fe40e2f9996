"""``ApproxNDCGLoss``: NDCG with the hard ranks replaced by smooth ones."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.torch._discounts import discount_at
from ndcg_ml.torch._lists import above_zero, check_reduction, differentiable, read, reduced

__all__ = ["ApproxNDCGLoss"]


class ApproxNDCGLoss(nn.Module):
    r"""1 - NDCG with smooth ranks, which tends to 1 - NDCG of the flavor as the temperature tends to 0.

    .. math::  L = 1 - \sum_i \frac{gain(y_i)}{IDCG}\, D(r_i)\, c_i, \qquad
               r_i = 1 + \sum_{j \ne i} \sigma\!\left(\frac{s_j - s_i}{T}\right)

    where :math:`c_i` is 1 without a cut-off, and otherwise :math:`\sigma((m - r_i) / T_k)` with *m* halfway between
    the k-th and the (k+1)-th smallest rank of the list (held constant in the gradient; a list of at most k documents
    is not cut). The ideal is the exact one.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Which NDCG, its cut-off included. Any tie rule is taken and none is used: tied documents share the rank in
        the middle of their run, so that on tied scores the limit is NDCG with D(mean rank) (the ideals that depend on
        the ranking follow the rule; "docid" falls back to the input order there). Lists without a relevant document
        are left out of the mean, whatever ``empty`` says. ``score_dtype`` is of no consequence.
    temperature : float, default 1.0
        T, in units of score differences; smaller is closer to NDCG and flatter away from the ties.
    cut_temperature : float, optional
        T_k, in units of ranks. Default `temperature`.
    reduction : {"mean", "sum", "none"}, default "mean"
        ``mean`` over the lists that are not empty (0 if all are); ``none`` gives one loss a list, 0 for an empty one.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        A temperature is not above 0; the reduction is not known; or the flavor has what a loss cannot honour: a
        callable discount (there is no rank between two whole ranks), ``negative="allow"`` or a gain table with
        negative entries (the ideal may be 0 or less), ``aggregate="micro"``.

    Notes
    -----
    Time and memory grow with the square of the list length. Half-precision scores are computed on in float32, and so
    is the loss. The gradient reaches the scores of documents only, and is zero for an empty list, which stays in the
    graph. Labels that the flavor refuses raise on the CPU; elsewhere, and compiled, such a list's loss is nan, as is
    that of a list with a score of nan or infinity.

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
        cut_temperature: float | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.flavor = differentiable(as_flavor(flavor))
        self.temperature = above_zero("temperature", temperature)
        cut = temperature if cut_temperature is None else cut_temperature
        self.cut_temperature = above_zero("cut_temperature", cut)
        self.reduction = check_reduction(reduction)

    def forward(self, scores: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
        """The loss of each list, reduced.

        Parameters
        ----------
        scores : Tensor of float, shape (n_lists, n_documents)
            Higher is better.
        labels : Tensor, shape of `scores`
            Grades, of any real dtype.
        mask : Tensor of bool, shape of `scores`, optional
            True where the slot holds a document; the others change neither loss nor gradient, whatever they hold.

        Returns
        -------
        Tensor
            float64 for scores of float64, otherwise float32. No dimension, or (n_lists,) with ``reduction="none"``.

        Raises
        ------
        TypeError
            An argument is not a tensor, scores are not floats, or mask is not bool.
        ValueError
            Shapes that do not go together; on the CPU, labels that the flavor refuses.
        """
        lists = read(self.flavor, scores, labels, mask)
        surrogate = self._surrogate(lists.scores, lists.weight, lists.ranked)
        return reduced(surrogate, lists, self.reduction)

    def extra_repr(self) -> str:
        """The parameters, for ``repr``."""
        return (
            f"{str(self.flavor)!r}, temperature={self.temperature}, cut_temperature={self.cut_temperature}, "
            f"reduction={self.reduction!r}"
        )

    def _surrogate(self, scores: Tensor, weight: Tensor, valid: Tensor) -> Tensor:
        """Smooth NDCG of each list; `scores` are finite where `valid` is not set."""
        ahead = torch.sigmoid((scores.unsqueeze(-2) - scores.unsqueeze(-1)) / self.temperature)
        # A document is half ahead of itself: from 0.5, the sum over all documents gives 1 + the sum over the others.
        soft_rank = 0.5 + torch.where(valid.unsqueeze(-2), ahead, 0.0).sum(-1)
        soft_rank = torch.where(valid, soft_rank, 1.0)
        terms = weight * discount_at(self.flavor, soft_rank)
        k = self.flavor.k
        if k is not None and k < scores.shape[-1]:
            terms = terms * self._soft_cut(soft_rank, valid, k)
        return terms.sum(-1)

    def _soft_cut(self, soft_rank: Tensor, valid: Tensor, k: int) -> Tensor:
        # A fixed threshold, k + 1/2, would be below every rank of a warm list, and cut all of it.
        # A list of at most k documents has infinity at k + 1, and sigma(infinity) = 1: it is not cut.
        in_order = torch.where(valid, soft_rank.detach(), math.inf).sort(dim=-1).values
        threshold = (in_order[..., k - 1 : k] + in_order[..., k : k + 1]) / 2
        return torch.sigmoid((threshold - soft_rank) / self.cut_temperature)
