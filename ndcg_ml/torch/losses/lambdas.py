"""``LambdaNDCGLoss``: pairs of documents, each weighted by what it means for NDCG."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from ndcg_ml._checks import one_of
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._gains import discount_table
from ndcg_ml.torch._layout import best_first
from ndcg_ml.torch._transforms import recomputed
from ndcg_ml.torch.losses._loss import ListLoss, Lists, Reduction, above_zero, filled_absent, finite_scores

__all__ = ["LambdaNDCGLoss"]

Scheme = Literal["lambdarank", "ndcg2", "ndcg2pp"]
_SCHEMES = get_args(Scheme)
_BLOCK = 2**20
"""Pairs that are held at once."""


class LambdaNDCGLoss(ListLoss):
    r"""Logistic loss of pairs of documents, weighted by their part in NDCG (LambdaRank and the LambdaLoss framework).

        L = sum over pairs with gain_i > gain_j of w_ij log(1 + exp(-sigma (s_i - s_j)))

    with weights that are constant in the gradient. With G_i = gain_i / IDCG, r_i the rank of
    document i by the current scores, and m = |r_i - r_j|:

    - ``lambdarank``: |G_i - G_j| |D_k(r_i) - D_k(r_j)|, the change of NDCG@k if the two changed places
    - ``ndcg2``: |G_i - G_j| |D(m) - D(m + 1)|, pairs with at least one of the two in the top k
    - ``ndcg2pp``: `mu` times ``ndcg2`` plus ``lambdarank``

    D_k is the discount D down to rank k and 0 below.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Which NDCG, its cut-off included; the discount may be a callable. Every tie rule is accepted and ignored in the
        weights: tied documents are ranked in the order in which they stand. (With averaged ranks an untrained model,
        which gives every document the same score, would have no weights to learn from.)
    scheme : {"lambdarank", "ndcg2", "ndcg2pp"}, default "lambdarank"
        The weights.
    sigma : float, default 1.0
        sigma, in units of 1 / score difference.
    mu : float, default 10.0
        The weight of ``ndcg2`` in ``ndcg2pp``; irrelevant otherwise. allRank uses 10.
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
    These losses bound 1 - NDCG (or a part of it) from above, and do not tend to it at any setting. No pair loses its
    gradient, however wrong its order or large its scores, and a tied pair has half the full gradient. There is a second
    derivative, in which the weights are constant too.

    For n documents: O(n log n + k n) time with a cut-off, where only pairs with a document in the top k have a
    weight; O(n^2) otherwise. Memory is that of about a million pairs at once, or of
    one row of pairs for each list if that is more: blocks beyond the first are computed once more in the backward
    pass.

    The logarithm is the natural one, and there is no factor of the list size: allRank's default is log2 (divide ours by
    ln 2), and rax and TF-Ranking multiply the weights by the padded list size. With a cut-off, ``ndcg2`` is
    TF-Ranking's ``DCGLambdaWeight`` with smooth_fraction 0.

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
    >>> scores.grad[0].argmin().item()  # the best document, which stands fourth
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
        self.sigma: float = above_zero(sigma, "sigma")
        self.mu: float = above_zero(mu, "mu")

    def losses(self, lists: Lists) -> Tensor:
        """The loss of each list."""
        clean = finite_scores(lists)
        with torch.no_grad():
            order = best_first(filled_absent(clean, lists, -math.inf))
        return _all_blocks(
            self.flavor,
            clean.gather(-1, order),
            lists.weight.gather(-1, order),
            None if lists.absent is None else lists.ranked.gather(-1, order),
            self.scheme,
            self.sigma,
            self.mu,
        )


def _all_blocks(
    flavor: Flavor, scores: Tensor, weight: Tensor, valid: Tensor | None, scheme: Scheme, sigma: float, mu: float
) -> Tensor:
    """The loss of each list, whose documents stand as they are ranked."""
    width = scores.shape[-1]
    discount = discount_table(flavor, width + 1, scores.dtype, scores.device)
    depth = width if flavor.k is None else min(flavor.k, width)
    rows = depth if scores.numel() * depth <= _BLOCK else max(1, _BLOCK // scores.numel())
    blocks = []
    for start in range(0, depth, rows):
        upper = slice(start, min(start + rows, depth))
        block = (scores, weight, valid, discount, flavor.k, upper, slice(start, width), scheme, sigma, mu)
        # Nothing of a block is kept where there are several, its weights included.
        blocks.append(_pairs(*block) if rows == depth else recomputed(_pairs, *block))
    return sum(blocks[1:], blocks[0])


def _pairs(
    scores: Tensor,
    weight: Tensor,
    valid: Tensor | None,
    discount: Tensor,
    k: int | None,
    upper: slice,
    lower: slice,
    scheme: Scheme,
    sigma: float,
    mu: float,
) -> Tensor:
    """What the pairs of these ranks add."""
    with torch.no_grad():  # weights are constant, and so is the sign of a pair
        pair = _factor(discount, k, scheme, mu, upper, lower)
        more = weight[..., upper, None] - weight[..., None, lower]
        pair = more.abs() * pair
        absent = pair <= 0
        if valid is not None:
            absent = absent | ~(valid[..., upper, None] & valid[..., None, lower])
            pair = pair.masked_fill(absent, 0.0)
    # The loss is of -gap, whose factor is one for all pairs but for the sign.
    gap = -sigma * (scores[..., upper, None] - scores[..., None, lower])
    gap = more.sign() * gap
    # A difference may overflow, and infinity times no weight is nan.
    return (pair * softplus(gap.masked_fill(absent, 0.0))).sum((-2, -1))


def _factor(discount: Tensor, k: int | None, scheme: Scheme, mu: float, upper: slice, lower: slice) -> Tensor:
    """What the ranks add to the weight of a pair: each pair once, unless ordered pairs are meant."""
    width = discount.numel() - 2
    rank = torch.arange(1, width + 1, device=discount.device)
    above, below = rank[upper, None], rank[None, lower]
    cut = discount if k is None else pad(discount[: k + 1], (0, max(0, width + 1 - k)))
    if scheme == "lambdarank":
        factor = _swapped(cut, above, below)
    elif scheme == "ndcg2pp":
        factor = mu * _apart(discount, above, below) + _swapped(cut, above, below)
    else:
        factor = _apart(discount, above, below)
    return factor.masked_fill(below <= above, 0.0)


def _swapped(discount: Tensor, above: Tensor, below: Tensor) -> Tensor:
    """How much the discounts at two ranks differ."""
    return (discount[above] - discount[below]).abs()


def _apart(discount: Tensor, above: Tensor, below: Tensor) -> Tensor:
    """How much the discount falls from the distance of two ranks to the next."""
    apart = (below - above).clamp(min=0)
    return (discount[apart] - discount[apart + 1]).abs()
