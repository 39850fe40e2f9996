"""``NeuralNDCGLoss``: NDCG with the permutation that sorts the scores replaced by a smooth matrix."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml._checks import whole_number
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._gains import discount_table
from ndcg_ml.torch._transforms import recomputed
from ndcg_ml.torch.losses._loss import DirectLoss, Reduction, above_zero

__all__ = ["NeuralNDCGLoss"]

Runs = tuple[Tensor, Tensor]
_BLOCK = 2**22
"""Entries of the matrix that are held at once."""


class NeuralNDCGLoss(DirectLoss):
    r"""1 - NDCG of a softly sorted list, which tends to 1 - NDCG of the flavor as the temperature tends to 0.

        L = 1 - sum over ranks i <= k of D(i) sum_j P_ij gain(y_j) / IDCG
        P_ij = softmax over j of ((n + 1 - 2i) s_j - sum_l |s_j - s_l|) / T

    Row *i* of P says who stands at rank *i*. Without Sinkhorn this is PiRank's (NeuralSort's) loss; with it, columns
    and rows are scaled in turn until each document stands somewhere exactly once, which is NeuralNDCG.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Which NDCG, its cut-off included; the discount may be a callable, because only whole ranks are needed. Every tie
        rule is accepted: tied documents share their ranks equally, so that on tied scores the limit is the NDCG of
        ``ties="average"``.
    temperature : float, default 1.0
        T, in units of score differences; smaller is closer to NDCG and flatter away from the ties.
    sinkhorn : int, default 0
        Rounds of column and row scaling. NeuralNDCG uses 50. The number is fixed, because a tolerance would
        make the loss of a list depend on the other lists of its batch.
    reduction : {"mean", "sum", "none"}, default "mean"
        As for ``ListLoss``.

    Raises
    ------
    TypeError
        A parameter has the wrong type.
    ValueError
        The temperature is not above 0; sinkhorn is below 0; or as for ``ListLoss``.

    Notes
    -----
    For n documents, without Sinkhorn: O(n log n + k n) time, and memory of k n numbers at most, beyond four million
    of which the rows are computed in blocks, and once more in the backward pass. With Sinkhorn: the matrix itself, n
    times n, and two vectors per round; each round computes two products of the matrix with a vector.

    The exponents are sums of terms of one sign, taken from the gaps between neighbours in the ranking, so that
    neither long lists nor large scores cost float32 its digits. Where scores are tied the gradient is the symmetric
    one. There is a second derivative, by blocks and with Sinkhorn too.

    Grover et al. 2019 (NeuralSort), Swezey et al. 2021 (PiRank), Pobrotyn and Bialobrzeski 2021 (NeuralNDCG; their
    "transposed" form is the same function).

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[0.3, 1.2, -0.4, 2.0, 0.9]], dtype=torch.float64, requires_grad=True)
    >>> labels = torch.tensor([[3, 2, 0, 1, 2]])
    >>> loss = NeuralNDCGLoss("ndcg[gain=exponential]", temperature=0.1)(scores, labels)
    >>> round(loss.item(), 6)
    0.315563
    >>> loss.backward()
    >>> round(scores.grad.sum().item(), 12) == 0
    True
    """

    def __init__(
        self,
        flavor: Flavor | str = "sklearn",
        *,
        temperature: float = 1.0,
        sinkhorn: int = 0,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(flavor, reduction=reduction)
        self.temperature: float = above_zero(temperature, "temperature")
        self.sinkhorn: int = whole_number(sinkhorn, "sinkhorn", least=0)

    def ndcg(self, scores: Tensor, weight: Tensor, ranked: Tensor) -> Tensor:
        """Smooth NDCG of each list, from the gain at each rank; the discounts of the documents are never formed."""
        width = scores.shape[-1]
        with torch.no_grad():
            key, order = torch.sort(scores.masked_fill(~ranked, -math.inf), dim=-1, descending=True, stable=True)
            present = ranked.gather(-1, order)
            runs = _runs(key, present)
        ordered, weight = scores.gather(-1, order), weight.gather(-1, order)
        discount = discount_table(self.flavor, width, scores.dtype, scores.device)[1:]
        discount = discount * present
        depth = width if self.flavor.k is None else min(self.flavor.k, width)
        if self.sinkhorn:
            matrix = _rows_of_matrix(ordered, present, runs, 0, width, self.temperature)
            of_row, of_column = _scaling(matrix, present, self.sinkhorn)
            at_rank = of_row * _times(matrix, of_column * weight)
            return (discount * at_rank)[..., :depth].sum(-1)
        step = depth if ordered.numel() * depth <= _BLOCK else max(1, _BLOCK // ordered.numel())
        blocks = []
        for start in range(0, depth, step):
            block = (ordered, weight, discount, present, runs, start, min(start + step, depth), self.temperature)
            blocks.append(_block(*block) if step == depth else recomputed(_block, *block))
        return sum(blocks[1:], blocks[0])


def _block(
    ranked: Tensor,
    weight: Tensor,
    discount: Tensor,
    present: Tensor,
    runs: Runs,
    start: int,
    stop: int,
    temperature: float,
) -> Tensor:
    """What ranks start + 1, ..., stop add to the smooth NDCG."""
    rows = _rows_of_matrix(ranked, present, runs, start, stop, temperature)
    at_rank = _times(rows, weight)
    return (discount[..., start:stop] * at_rank).sum(-1)


def _rows_of_matrix(ranked: Tensor, present: Tensor, runs: Runs, start: int, stop: int, temperature: float) -> Tensor:
    """Rows start + 1, ..., stop of P; columns in the order of the ranking."""
    exponents: Tensor = _Exponents.apply(ranked, *runs, start, stop, temperature)  # type: ignore[no-untyped-call]
    # Finite, not -inf, because every column of a list without documents is masked.
    return exponents.masked_fill(~present.unsqueeze(-2), torch.finfo(ranked.dtype).min).softmax(-1)


def _runs(key: Tensor, present: Tensor) -> Runs:
    """How many documents stand before each one's run of tied ones, and how many before it or in it.

    Keys descend, and those of absent slots are -infinity.
    """
    rising = key.flip(-1)
    before = key.shape[-1] - torch.searchsorted(rising, key, right=True)
    upto = key.shape[-1] - torch.searchsorted(rising, key)
    return before, torch.minimum(upto, present.sum(-1, keepdim=True))


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    """Matrix times vector, in the dtype of both."""
    # Not by @: autocast would round both to half precision, in a backward pass that runs under it too.
    return (matrix * vector.unsqueeze(-2)).sum(-1)


def _scaling(matrix: Tensor, present: Tensor, rounds: int) -> tuple[Tensor, Tensor]:
    """Factors of the rows and of the columns after so many rounds.

    Only the factors change from round to round, so that the matrix is kept once, not once per round.
    """
    of_row = present.to(matrix.dtype)
    of_column = of_row
    for _ in range(rounds):
        in_column = _times(matrix.mT, of_row)
        # Absent entries are divided by 1: dividing 0 by something small has a gradient that overflows.
        of_column = torch.where(present, 1.0 / torch.where(present, in_column, 1.0), 0.0)
        in_row = _times(matrix, of_column)
        of_row = torch.where(present, 1.0 / torch.where(present, in_row, 1.0), 0.0)
    return of_row, of_column


class _Exponents(torch.autograd.Function):
    """Entry (i, j) is ((n + 1 - 2i) s_j - sum_l |s_j - s_l|) / T, less the largest of its row, for sorted s.

    The largest of row i is entry (i, i), and each step away from it costs an odd multiple of one gap: from j to
    j + 1, with j >= i, (2 (j - i) + 1) (s_j - s_{j+1}). The gradient leaves out what is common to a row, so whatever
    uses the exponents must not depend on that either, as a softmax does not.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(ranked: Tensor, before: Tensor, upto: Tensor, start: int, stop: int, temperature: float) -> Tensor:
        row = torch.arange(start, stop, device=ranked.device).unsqueeze(-1)
        gap = torch.arange(ranked.shape[-1] - 1, device=ranked.device)
        odd = (2 * (gap - row) + 1).to(ranked.dtype)
        # Past a thousand exp is 0 in float64, and clamping here keeps the sums finite.
        size = ((ranked[..., :-1] - ranked[..., 1:]) / temperature).clamp(-1e3, 1e3).unsqueeze(-2)
        later = (size * odd.clamp(min=0.0)).cumsum(-1)
        sooner = (size * odd.clamp(max=0.0))[..., :stop].flip(-1).cumsum(-1).flip(-1)
        return pad(sooner, (0, ranked.shape[-1] - sooner.shape[-1])) - pad(later, (1, 0))

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
        _, before, upto, ctx.start, ctx.stop, ctx.temperature = inputs
        ctx.save_for_backward(before, upto)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        before, upto = ctx.saved_tensors
        row = torch.arange(ctx.start, ctx.stop, device=grad.device, dtype=grad.dtype) + 1
        total = grad.sum(-2)
        by_row = _times(grad.mT, row)
        middle = (before + upto + 1).to(grad.dtype) / 2  # the middle rank of the document's run of tied ones
        ahead = pad(total.cumsum(-1), (1, 0))
        below = ahead[..., -1:] - ahead.gather(-1, upto)
        scores = 2 * (middle * total - by_row) - below + ahead.gather(-1, before)
        return scores / ctx.temperature, None, None, None, None, None
