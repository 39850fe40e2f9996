"""``LambdaNDCGLoss``: a logistic loss of pairs, each weighted by its effect on NDCG."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ndcg_ml._plain.checks import one_of, positive_number
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch.inputs import best_first
from ndcg_ml.torch.kernel import discount_table
from ndcg_ml.torch.losses._base import ListLoss, Lists, Reduction, fill_absent, finite_scores, sum_over_ranks

Scheme = Literal["lambdarank", "ndcg2", "ndcg2pp"]
_SCHEMES = get_args(Scheme)
_BLOCK = 2**20
"""Number of pairs held in memory at once."""


class LambdaNDCGLoss(ListLoss):
    r"""Logistic loss of pairs of documents, weighted by their effect on NDCG (LambdaRank and the LambdaLoss framework).

        L = sum over pairs with gain_i > gain_j of w_ij log(1 + exp(-sigma (s_i - s_j)))

    The weights are constant in the gradient. With G_i = gain_i / IDCG, r_i the rank of document i by the current
    scores, and m = |r_i - r_j|, they are

    - ``lambdarank``: |G_i - G_j| |D_k(r_i) - D_k(r_j)|, the change of NDCG@k if the two documents were swapped
    - ``ndcg2``: |G_i - G_j| |D(m) - D(m + 1)|, for pairs with at least one document in the top k
    - ``ndcg2pp``: `mu` times ``ndcg2``, plus ``lambdarank``

    D_k is the discount D up to rank k, and 0 below it.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        The NDCG, including its cut-off. The discount may be a callable. Every tie-breaking rule is accepted, and the
        weights ignore it: they rank tied documents in input order. (With averaged ranks, an untrained model that gives
        all documents the same score would have no weights to learn from.)
    scheme : {"lambdarank", "ndcg2", "ndcg2pp"}, default "lambdarank"
        The weights.
    sigma : float, default 1.0
        Slope of the logistic loss, in units of 1 / score difference.
    mu : float, default 10.0
        The weight of ``ndcg2`` in ``ndcg2pp``; unused otherwise. allRank uses 10.
    reduction : {"mean", "sum", "none"}, default "mean"
        As for ``ListLoss``. The loss of a list is the sum over its pairs.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        The scheme is unknown; sigma or mu is not above 0; or as for ``ListLoss``.

    Notes
    -----
    These losses are upper bounds of 1 - NDCG (or of a part of it) and do not tend to it at any setting. A pair keeps
    its gradient however wrong its order and however large its scores; a tied pair has half the full gradient. There is
    a second derivative, in which the weights are constant as well.

    For n documents, time is O(n log n + k n) with a cut-off, because only pairs with a document in the top k have a
    weight, and O(n^2) otherwise. Memory holds about a million pairs at once, or one row of pairs per list if that is
    more. Beyond that, pairs are computed in blocks, and again in the backward pass.

    The logarithm is natural, and the list size is not a factor. allRank's default is log2 (divide this loss by ln 2);
    rax and TF-Ranking multiply the weights by the padded list size. With a cut-off, ``ndcg2`` is TF-Ranking's
    ``DCGLambdaWeight`` with smooth_fraction 0.

    Burges et al. 2006; Wang et al. 2018.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[0.3, 1.2, -0.4, 2.0, 0.9]], dtype=torch.float64, requires_grad=True)
    >>> labels = torch.tensor([[3, 2, 0, 1, 2]])
    >>> loss = LambdaNDCGLoss("ndcg[gain=exponential]")(scores, labels)
    >>> round(loss.item(), 6)
    0.952309
    >>> loss.backward()
    >>> scores.grad[0].argmin().item()  # the best document, which is ranked fourth
    0
    """

    def __init__(
        self,
        flavor: Flavor | str = "sklearn",
        *,
        scheme: Scheme = "lambdarank",
        sigma: float = 1.0,
        mu: float = 10.0,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(flavor, reduction=reduction)
        one_of(scheme, "scheme", _SCHEMES)
        self.scheme = scheme
        self.sigma: float = positive_number(sigma, "sigma")
        self.mu: float = positive_number(mu, "mu")

    def losses(self, lists: Lists) -> Tensor:
        """Compute the loss of each list."""
        clean = finite_scores(lists)
        with torch.no_grad():
            order = best_first(fill_absent(clean, lists, -math.inf))
        ordered, weight = clean.gather(-1, order), lists.weight.gather(-1, order)
        present = None if lists.absent is None else lists.ranked.gather(-1, order)
        width = clean.shape[-1]
        discount = discount_table(self.flavor, width + 1, clean.dtype, clean.device).at
        return sum_over_ranks(
            lambda ranks: self._pairs(ranks, ordered, weight, present, discount),
            width if self.flavor.k is None else min(self.flavor.k, width),
            clean.numel(),
            _BLOCK,
        )

    def _pairs(self, ranks: slice, scores: Tensor, weight: Tensor, present: Tensor | None, discount: Tensor) -> Tensor:
        """Compute the loss of pairs of a document at `ranks` and one below it; documents are in ranked order."""
        lower = slice(ranks.start, scores.shape[-1])
        with torch.no_grad():  # the weight of a pair is constant, and so is its sign
            more = weight[..., ranks, None] - weight[..., None, lower]
            pair = more.abs() * self._factor(discount, ranks, lower)
            absent = pair <= 0
            if present is not None:
                absent = absent | ~(present[..., ranks, None] & present[..., None, lower])
                pair = pair.masked_fill(absent, 0.0)
            sign = more.sign()
        gap = sign * (-self.sigma * (scores[..., ranks, None] - scores[..., None, lower]))
        # A difference may overflow, and infinity times a weight of 0 is nan.
        return (pair * softplus(gap.masked_fill(absent, 0.0))).sum((-2, -1))

    def _factor(self, discount: Tensor, ranks: slice, lower: slice) -> Tensor:
        """Compute the factor of the weight that depends on ranks; 0 unless the second rank is below the first."""
        rank = torch.arange(discount.numel(), device=discount.device)
        above, below = rank[1:][ranks, None], rank[None, 1:][:, lower]
        factors = []
        if self.scheme != "ndcg2":
            cut = discount if self.flavor.k is None else discount.masked_fill(rank > self.flavor.k, 0.0)
            factors.append((cut[above] - cut[below]).abs())
        if self.scheme != "lambdarank":
            distance = (below - above).clamp(min=0)
            step = (discount[distance] - discount[distance + 1]).abs()
            factors.append(step if self.scheme == "ndcg2" else self.mu * step)
        return sum(factors[1:], factors[0]).masked_fill(below <= above, 0.0)
