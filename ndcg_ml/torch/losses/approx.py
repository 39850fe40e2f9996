"""``ApproxNDCGLoss``: NDCG with smooth ranks instead of integer ranks."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from ndcg_ml._core.checks import one_of
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._gains_and_discounts import discount_at
from ndcg_ml.torch.losses._loss import DirectLoss, Lists, Reduction, above_zero, refuse_callable_discount
from ndcg_ml.torch.losses._soft_ranks import dense_soft_ranks, fast_soft_ranks

__all__ = ["ApproxNDCGLoss"]

Method = Literal["auto", "dense", "fast"]
_METHODS = get_args(Method)
# Up to this list length the dense form is as fast, or less than a millisecond slower. An accelerator prefers few large
# operations to many small ones.
_DENSE_UP_TO_ON_CPU = 128
_DENSE_UP_TO = 1024


class ApproxNDCGLoss(DirectLoss):
    r"""1 - NDCG with smooth ranks, which tends to 1 - NDCG of the flavor as its temperatures tend to 0.

        L = 1 - sum_i gain(y_i) D(r_i) c_i / IDCG
        r_i = 1 + sum over j other than i of F((s_j - s_i) / T)

    where F(x) = 1 / (1 + exp(-x)), and c_i is 1 without a cut-off, and otherwise sigmoid((m - r_i) / T_k) with *m*
    halfway between the k-th and the (k+1)-th smallest rank of the list (constant in every derivative; a list of at
    most k documents is not cut). The ideal is exact.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        The NDCG, including its cut-off. Every tie-breaking rule is accepted and ignored: tied documents share the
        middle rank of their tie group, so that on tied scores the limit is NDCG with D(mean rank).
    temperature : float, default 1.0
        T, in units of score differences. A smaller value is closer to NDCG and flatter away from ties.
    method : {"auto", "dense", "fast"}, default "auto"
        ``dense`` compares all pairs of documents, in O(n^2) time and memory. ``fast`` sorts the scores and scans, in
        O(n log n) time and O(n) memory. It has the same loss and gradient up to rounding, but no second derivative.
        ``auto`` is dense for lists of up to 128 slots, padding included, on the CPU, and up to 1 024 on other devices.
    cut_temperature : float, default 1.0
        T_k, in units of ranks, and thus independent of the scale of the scores. Ranks within a few T_k of the k-th
        have a partial weight, so that the limit is NDCG@k only if T_k tends to 0 as well. On lists of 100 documents,
        with k = 10 and ``temperature=0.3``, cut-offs with T_k of 0.1, 1 and 3 were trained to NDCG@10 of .557, .600 and
        .600, and without a cut-off to .600.
    reduction : {"mean", "sum", "none"}, default "mean"
        As for ``ListLoss``.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        A temperature is not above 0; the method or reduction is unknown; the discount is a callable, which is not
        defined between integer ranks; or as for ``ListLoss``.

    Notes
    -----
    Except for documents that are close in the order, the fast form computes F as a sum of exponentials: 20 in float64
    and 12 in float32, with relative errors of 1e-15 and 1e-9.

    Qin, Liu and Li 2010, with the cut-off of rax.

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
        method: Method = "auto",
        cut_temperature: float = 1.0,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(flavor, reduction=reduction)
        refuse_callable_discount(self.flavor)
        one_of(method, "method", _METHODS)
        self.temperature: float = above_zero(temperature, "temperature")
        self.method = method
        self.cut_temperature: float = above_zero(cut_temperature, "cut_temperature")

    def ndcg(self, scores: Tensor, weight: Tensor, ranked: Tensor) -> Tensor:
        """Compute the smooth NDCG of each list from the discounts at smooth ranks."""
        soft_ranks = dense_soft_ranks if self._takes_pairs(scores) else fast_soft_ranks
        soft_rank = soft_ranks(scores, ranked, self.temperature)
        terms = weight * discount_at(self.flavor, soft_rank)
        k = self.flavor.k
        if k is not None and k < soft_rank.shape[-1]:
            terms = terms * self._soft_cut(soft_rank, ranked, k)
        return terms.sum(-1)

    def losses(self, lists: Lists) -> Tensor:
        """1 - ``ndcg``. A score that is not finite makes the loss and the gradient of its list nan."""
        return 1.0 - self.ndcg(lists.scores, lists.weight, lists.ranked)

    def _takes_pairs(self, scores: Tensor) -> bool:
        if self.method == "auto":
            return scores.shape[-1] <= (_DENSE_UP_TO_ON_CPU if scores.device.type == "cpu" else _DENSE_UP_TO)
        return self.method == "dense"

    def _soft_cut(self, soft_rank: Tensor, valid: Tensor, k: int) -> Tensor:
        # A fixed threshold, k + 1/2, would be below every rank at a high temperature and cut the whole list.
        # A list of at most k documents has rank infinity at k + 1, and sigmoid(infinity) = 1: it is not cut.
        with torch.no_grad():
            in_order = soft_rank.masked_fill(~valid, math.inf).sort(dim=-1).values
            threshold = (in_order[..., k - 1 : k] + in_order[..., k : k + 1]) / 2
        return torch.sigmoid((threshold - soft_rank) / self.cut_temperature)
