"""``SoftmaxLoss`` and ``ListMLELoss``: likelihoods of a whole list, the baselines of learning to rank."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.torch._gains import Gains, gains_of, judge, times_power_of_two
from ndcg_ml.torch._inputs import read_lists
from ndcg_ml.torch._layout import Padded
from ndcg_ml.torch._lists import Lists, check_reduction, read
from ndcg_ml.torch._ragged import as_padded
from ndcg_ml.torch.lambdas import reduced_loss
from ndcg_ml.torch.neural import at_whole_ranks, finite_scores
from ndcg_ml.torch.plackett_luce import check_generator

__all__ = ["ListMLELoss", "SoftmaxLoss"]

_TARGETS = ("gain", "listnet", "xendcg")
_TIE_ORDERS = ("random", "input")


class SoftmaxLoss(nn.Module):
    r"""Cross-entropy between a target distribution over the documents of a list and the softmax of their scores.

    .. math::  L = -\sum_i t_i \log \frac{e^{s_i}}{\sum_j e^{s_j}}, \qquad \sum_i t_i = 1

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Where gains come from, and which documents have them. The loss has no ranks: discount, ideal and ties are of
        no consequence, and a cut-off is refused. Lists without a relevant document are left out of the mean, whatever
        ``empty`` says.
    target : {"gain", "listnet", "xendcg"}, default "gain"
        ``gain``: in proportion to the gains. ``listnet``: softmax of the gains (ListNet's for ``gain="linear"``).
        ``xendcg``: in proportion to gain + 1 - u, with u drawn from [0, 1) for each document and call (XE-NDCG's 2^y
        - u for ``gain="exponential"``).
    generator : torch.Generator, optional
        Where u is drawn from, on the device of the scores; it moves on with every call. Default torch's own
        generator of that device.
    reduction : {"mean", "sum", "none"}, default "mean"
        ``mean`` over the lists that are not empty (0 if all are); ``none`` gives one loss a list, 0 for an empty one.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        The target or the reduction is not known; or the flavor has what the loss cannot honour: a cut-off,
        ``negative="allow"``, a gain table with negative entries, ``aggregate="micro"``.

    Notes
    -----
    O(n) time and memory for n documents. It does not tend to NDCG at any setting. With ``target="gain"`` it bounds the
    logarithm of the DCG over the sum of the gains, negated, for every discount of at least 1 / rank and no cut-off:
    the rank of document i is at most :math:`\sum_j e^{s_j - s_i}` (Bruch et al. 2019).

    rax and TF-Ranking take the labels as targets as they are: their loss of a list is ours times their sum, with
    ``gain="linear"``. Padding has no part in the softmax (sentence-transformers' ListNetLoss lets it in as documents of
    score 0).

    Half-precision scores are computed on in float32, and so is the loss. Labels that the flavor refuses raise on the
    CPU; elsewhere, and compiled, such a list's loss is nan, as is that of a list with a score of nan or infinity.

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

    def __init__(
        self,
        flavor: Flavor | str = "sklearn",
        *,
        target: str = "gain",
        generator: torch.Generator | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.flavor = at_whole_ranks(as_flavor(flavor))
        if self.flavor.k is not None:
            raise ValueError(
                f"flavor.k must be None in SoftmaxLoss, which has no ranks to cut off; got {self.flavor.k}. "
                "Choose flavor.replace(k=None)."
            )
        if target not in _TARGETS:
            raise ValueError(f"target must be one of {', '.join(map(repr, _TARGETS))}; got {target!r}.")
        self.target = target
        self.generator = check_generator(generator)
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
            Higher is better.
        labels : Tensor, shape of `scores`
            Grades, of any real dtype.
        mask : Tensor of bool, shape of `scores`, optional
            True where the slot holds a document; the others change neither loss nor gradient, whatever they hold.
        indexes, offsets : Tensor of int, optional
            For flat or nested input, as for ``ApproxNDCGLoss``.

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
        scores, labels, mask = as_padded(scores, labels, mask, indexes=indexes, offsets=offsets)
        lists = read(self.flavor, scores, labels, mask)
        clean, finite = finite_scores(lists)
        target = self._targets(_gains(self.flavor, scores, labels, mask, lists), lists)
        logs = torch.where(lists.ranked, clean, torch.finfo(clean.dtype).min).log_softmax(-1)
        # Where the target is 0 the log may be -infinity.
        loss = -(target * torch.where(target > 0, logs, 0.0)).sum(-1)
        return reduced_loss(torch.where(finite, loss, math.nan), lists, self.reduction)

    def extra_repr(self) -> str:
        """The parameters, for ``repr``."""
        return f"{str(self.flavor)!r}, target={self.target!r}, reduction={self.reduction!r}"

    @torch.no_grad()
    def _targets(self, gains: Gains, lists: Lists) -> Tensor:
        """The target distribution of each list; 0 where there is none."""
        present = lists.ranked & ~lists.empty.unsqueeze(-1)
        exponent = gains.exponent.unsqueeze(-1)
        if self.target == "listnet":
            best = torch.where(present, gains.gain, 0.0).amax(-1, keepdim=True)
            shares = torch.exp(times_power_of_two(gains.gain - best, exponent))
        elif self.target == "xendcg":
            drawn = _uniform(lists.scores, self.generator).to(gains.gain.dtype)
            shares = gains.gain + times_power_of_two(1.0 - drawn, -exponent)
        else:
            shares = gains.gain
        shares = torch.where(present, shares, 0.0)
        total = shares.sum(-1, keepdim=True)
        return (shares / torch.where(total > 0, total, 1.0)).to(lists.scores.dtype)


class ListMLELoss(nn.Module):
    r"""Negative log-likelihood of the documents in the order of their gains, under the Plackett-Luce model.

    .. math::  L = -\sum_{i \le k} \log \frac{e^{s_{(i)}}}{\sum_{j \ge i} e^{s_{(j)}}}

    where document (i) has the i-th largest gain.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Where gains come from (their order is all that counts), which documents have them, and the cut-off: with one,
        the likelihood is that of the first k documents (top-k ListMLE). Discount, ideal and ties are of no
        consequence. Lists without a relevant document are left out of the mean, whatever ``empty`` says.
    tie_order : {"random", "input"}, default "random"
        How documents of equal gain are ordered: by a new draw for each list and call, or as they stand.
    generator : torch.Generator, optional
        Where the order is drawn from, on the device of the scores; it moves on with every call. Default torch's own
        generator of that device.
    reduction : {"mean", "sum", "none"}, default "mean"
        ``mean`` over the lists that are not empty (0 if all are); ``none`` gives one loss a list, 0 for an empty one.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        The tie order or the reduction is not known; or the flavor has what the loss cannot honour:
        ``negative="allow"``, a gain table with negative entries, ``aggregate="micro"``.

    Notes
    -----
    O(n log n) time and O(n) memory for n documents. It does not tend to NDCG at any setting. The sums are running
    logs of sums of exponentials: nothing is added to keep a logarithm finite, and the tail of a list keeps its digits.
    Padding has no part in them; before its pull request 3827, sentence-transformers let it in as documents of score 0,
    so that the loss of a list depended on the longest list of its batch.

    Half-precision scores are computed on in float32, and so is the loss. Labels that the flavor refuses raise on the
    CPU; elsewhere, and compiled, such a list's loss is nan, as is that of a list with a score of nan or infinity.

    Xia et al. 2008 and 2009.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[1.5, 0.3]], dtype=torch.float64)
    >>> round(ListMLELoss("sklearn")(scores, torch.tensor([[2, 1]])).item(), 4)
    0.2633
    """

    def __init__(
        self,
        flavor: Flavor | str = "sklearn",
        *,
        tie_order: str = "random",
        generator: torch.Generator | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.flavor = at_whole_ranks(as_flavor(flavor))
        if tie_order not in _TIE_ORDERS:
            raise ValueError(f"tie_order must be 'random' or 'input'; got {tie_order!r}.")
        self.tie_order = tie_order
        self.generator = check_generator(generator)
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
            Higher is better.
        labels : Tensor, shape of `scores`
            Grades, of any real dtype.
        mask : Tensor of bool, shape of `scores`, optional
            True where the slot holds a document; the others change neither loss nor gradient, whatever they hold.
        indexes, offsets : Tensor of int, optional
            For flat or nested input, as for ``ApproxNDCGLoss``.

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
        scores, labels, mask = as_padded(scores, labels, mask, indexes=indexes, offsets=offsets)
        lists = read(self.flavor, scores, labels, mask)
        clean, finite = finite_scores(lists)
        order = self._order(_gains(self.flavor, scores, labels, mask, lists).gain, lists)
        present = lists.ranked.gather(-1, order)
        ordered = torch.where(present, clean.gather(-1, order), torch.finfo(clean.dtype).min)
        left = ordered.flip(-1).logcumsumexp(-1).flip(-1)
        first = present[..., : self.flavor.k]
        # Differences of absent entries may overflow.
        terms = torch.where(first, left[..., : self.flavor.k], 0.0) - torch.where(
            first, ordered[..., : self.flavor.k], 0.0
        )
        return reduced_loss(torch.where(finite, terms.sum(-1), math.nan), lists, self.reduction)

    def extra_repr(self) -> str:
        """The parameters, for ``repr``."""
        return f"{str(self.flavor)!r}, tie_order={self.tie_order!r}, reduction={self.reduction!r}"

    @torch.no_grad()
    def _order(self, gain: Tensor, lists: Lists) -> Tensor:
        """Largest gain first, absent documents last."""
        key = torch.where(lists.ranked, gain, -math.inf)
        if self.tie_order == "input":
            return key.argsort(dim=-1, descending=True, stable=True)
        drawn = _uniform(lists.scores, self.generator).argsort(dim=-1)
        return drawn.gather(-1, key.gather(-1, drawn).argsort(dim=-1, descending=True, stable=True))


def _gains(flavor: Flavor, scores: Tensor, labels: Tensor, mask: Tensor | None, lists: Lists) -> Gains:
    """The gains of the ranked documents."""
    _, grades, listed = read_lists(scores, labels, mask)
    layout = Padded(grades.shape[0], grades.shape[1], grades.device)
    return gains_of(flavor, judge(flavor, grades, listed), lists.ranked, layout)


def _uniform(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """A draw from [0, 1) a document, documents first: on the CPU padding at the end leaves the others theirs."""
    return torch.rand(like.shape[::-1], generator=generator, dtype=like.dtype, device=like.device).mT
