"""``SoftmaxLoss`` and ``ListMLELoss``: likelihoods of a whole list, baselines of learning to rank."""

from __future__ import annotations

import math
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from ndcg_ml._plain.checks import one_of
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch.inputs import best_first
from ndcg_ml.torch.limits import can_inspect
from ndcg_ml.torch.losses._base import ListLoss, Lists, Reduction, fill_absent, finite_scores
from ndcg_ml.torch.losses.stochastic import check_generator, uniform

Target = Literal["gain", "listnet", "xendcg"]
TieOrder = Literal["random", "input"]
_TARGETS, _TIE_ORDERS = get_args(Target), get_args(TieOrder)


class SoftmaxLoss(ListLoss):
    r"""Cross-entropy between a target distribution over the documents of a list and the softmax of their scores.

        L = - sum_i t_i log(exp(s_i) / sum_j exp(s_j)),  sum_i t_i = 1

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Defines the gains and which documents have them. The loss has no ranks: it ignores discount, ideal and ties,
        and refuses a cut-off.
    target : {"gain", "listnet", "xendcg"}, default "gain"
        ``gain``: in proportion to the gains. ``listnet``: softmax of the gains (ListNet's for ``gain="linear"``).
        ``xendcg``: in proportion to gain + 1 - u, with u drawn from [0, 1) for each document and call (XE-NDCG's 2^y
        - u for ``gain="exponential"``).
    generator : torch.Generator, optional
        Generator of u, on the device of the scores. Default: torch's generator of that device.
    reduction : {"mean", "sum", "none"}, default "mean"
        As for ``ListLoss``.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        The target is unknown; the flavor has a cut-off; or as for ``ListLoss``.

    Notes
    -----
    Time and memory are O(n) for n documents. The loss does not tend to NDCG at any setting. With ``target="gain"`` it
    is an upper bound of -log(DCG / sum of the gains), for every discount of at least 1 / rank and without a cut-off,
    because the rank of document i is at most sum_j exp(s_j - s_i) (Bruch et al. 2019).

    rax and TF-Ranking use unnormalised labels as targets: their loss of a list is this one, with ``gain="linear"``,
    times the sum of the labels. Padding is not in the softmax (in sentence-transformers' ListNetLoss it is, as
    documents of score 0).

    For draws in compiled code and of flat lists, see ``PlackettLuceNDCGLoss``.

    Cao et al. 2007 (ListNet); Bruch 2021 (XE-NDCG).

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[0.3, 1.2, -0.4, 2.0, 0.9]], dtype=torch.float64)
    >>> labels = torch.tensor([[3, 2, 0, 1, 2]])
    >>> round(SoftmaxLoss("sklearn")(scores, labels).item(), 6)
    1.833069
    >>> round(SoftmaxLoss("sklearn", target="listnet")(scores, labels).item(), 6)
    2.031665
    """

    uses_weight: ClassVar[bool] = False

    def __init__(
        self,
        flavor: Flavor | str = "sklearn",
        *,
        target: Target = "gain",
        generator: torch.Generator | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(flavor, reduction=reduction)
        if self.flavor.k is not None:
            raise ValueError(
                f"flavor.k must be None in SoftmaxLoss, which has no ranks to cut off; got {self.flavor.k}. "
                "Pass flavor.replace(k=None)."
            )
        one_of(target, "target", _TARGETS)
        self.target = target
        self.generator: torch.Generator | None = check_generator(generator)

    def losses(self, lists: Lists) -> Tensor:
        """Compute the loss of each list."""
        with torch.no_grad():
            targets = self._targets(lists)
        lowest = torch.finfo(lists.scores.dtype).min
        logs = fill_absent(finite_scores(lists), lists, lowest).log_softmax(-1)
        # The log may be -infinity at a target of 0, and 0 * infinity is nan. This is rare, and a fill with its backward
        # pass costs more than a check.
        if not (can_inspect(logs) and logs.numel() and logs.detach().amin() > -math.inf):
            logs = logs.masked_fill(targets == 0, 0.0)
        return (targets * logs).sum(-1)

    def _targets(self, lists: Lists) -> Tensor:
        """Compute the negative target distribution of each list; 0 if there is none."""
        shares = lists.gains
        if self.target == "listnet":
            best = shares.amax(-1, keepdim=True)  # of a ranked document, because the others have gain 0
            shares = fill_absent(torch.exp(shares - best), lists, 0.0)
        elif self.target == "xendcg":
            drawn = uniform(lists.scores, self.generator).to(shares.dtype)
            shares = fill_absent(shares + (1.0 - drawn), lists, 0.0)
        total = shares.sum(-1, keepdim=True)
        return (shares / total.masked_fill(total == 0, math.inf).neg()).to(lists.scores.dtype)


class ListMLELoss(ListLoss):
    r"""Negative log-likelihood of the documents in the order of their gains, under the Plackett-Luce model.

        L = - sum over i <= k of log(exp(s_(i)) / sum over j >= i of exp(s_(j)))

    where document (i) has the i-th largest gain.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Defines the gains, of which only the order is used, the documents that have them, and the cut-off. With a
        cut-off, the likelihood is that of the first k documents (top-k ListMLE). Discount, ideal and ties are ignored.
    tie_order : {"random", "input"}, default "random"
        Order of documents of equal gain: drawn for each list and call, or as in the input.
    generator : torch.Generator, optional
        Generator of the order, on the device of the scores. Default: torch's generator of that device.
    reduction : {"mean", "sum", "none"}, default "mean"
        As for ``ListLoss``.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        The tie order is unknown; or as for ``ListLoss``.

    Notes
    -----
    For n documents, time is O(n log n) and memory O(n). The loss does not tend to NDCG at any setting. It is computed
    by cumulative logsumexp, without a constant that keeps logarithms finite, so that the tail of a list is accurate.
    Padding is not in the sums. In sentence-transformers before its pull request 3827 it was, as documents of score 0,
    so that the loss of a list depended on the longest list of its batch.

    For draws in compiled code and of flat lists, see ``PlackettLuceNDCGLoss``.

    Xia et al. 2008 and 2009.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[1.5, 0.3]], dtype=torch.float64)
    >>> round(ListMLELoss("sklearn")(scores, torch.tensor([[2, 1]])).item(), 4)
    0.2633
    """

    uses_weight: ClassVar[bool] = False

    def __init__(
        self,
        flavor: Flavor | str = "sklearn",
        *,
        tie_order: TieOrder = "random",
        generator: torch.Generator | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(flavor, reduction=reduction)
        one_of(tie_order, "tie_order", _TIE_ORDERS)
        self.tie_order = tie_order
        self.generator: torch.Generator | None = check_generator(generator)

    def losses(self, lists: Lists) -> Tensor:
        """Compute the loss of each list."""
        clean = finite_scores(lists)
        with torch.no_grad():
            order = self._order(lists)
        depth = clean.shape[-1] if self.flavor.k is None else self.flavor.k
        ordered = fill_absent(clean, lists, torch.finfo(clean.dtype).min).gather(-1, order)
        terms = ordered.flip(-1).logcumsumexp(-1).flip(-1) - ordered
        if lists.absent is not None:  # the differences of absent entries
            terms = terms.masked_fill(lists.absent.gather(-1, order), 0.0)
        return terms[..., :depth].sum(-1)

    def _order(self, lists: Lists) -> Tensor:
        """Sort by descending gain, absent documents last."""
        key = fill_absent(lists.gains, lists, -math.inf)
        if self.tie_order == "input":
            return best_first(key)
        drawn = uniform(lists.scores, self.generator).argsort(dim=-1)
        return drawn.gather(-1, best_first(key.gather(-1, drawn)))
