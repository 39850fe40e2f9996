"""``NeuralNDCGLoss``: NDCG with a smooth matrix instead of the permutation that sorts the scores."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml._plain.checks import positive_number, whole_number
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch.kernel import discount_table
from ndcg_ml.torch.losses._base import DirectLoss, Reduction, sum_over_ranks

TieGroups = tuple[Tensor, Tensor]
_BLOCK = 2**22
"""Number of matrix entries held in memory at once."""


class NeuralNDCGLoss(DirectLoss):
    r"""1 - NDCG of a softly sorted list, which tends to 1 - NDCG of the flavor as the temperature tends to 0.

        L = 1 - sum over ranks i <= k of D(i) sum_j P_ij gain(y_j) / IDCG
        P_ij = softmax over j of ((n + 1 - 2i) s_j - sum_l |s_j - s_l|) / T

    Row *i* of P is a distribution over the documents at rank *i*. Without Sinkhorn scaling this is the loss of PiRank
    (NeuralSort). With it, columns and rows are scaled in turn until P is doubly stochastic, which is NeuralNDCG.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        The NDCG, including its cut-off. The discount may be a callable, because it is only evaluated at integer ranks.
        Every tie-breaking rule is accepted and ignored: tied documents share their ranks equally, so that on tied
        scores the limit is NDCG with ``ties="average"``.
    temperature : float, default 1.0
        T, in units of score differences. A smaller value is closer to NDCG and flatter away from ties.
    sinkhorn : int, default 0
        Number of rounds of column and row scaling. NeuralNDCG uses 50. The number is fixed because with a tolerance
        the loss of a list would depend on the other lists of its batch.
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
    For n documents without Sinkhorn scaling, time is O(n log n + k n) and memory holds at most k n numbers. Beyond
    four million numbers, rows are computed in blocks, and again in the backward pass. Sinkhorn scaling keeps the n x n
    matrix and two vectors per round, and computes two matrix-vector products per round.

    The exponents are sums of terms of one sign, computed from the gaps between neighbours in the ranking, so that
    float32 keeps its precision on long lists and for large scores. At tied scores the gradient is the symmetric one.
    There is a second derivative, also in blocks and with Sinkhorn scaling. Under
    ``torch.use_deterministic_algorithms(True)``, CUDA refuses the cumulative sums.

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
        self.temperature: float = positive_number(temperature, "temperature")
        self.sinkhorn: int = whole_number(sinkhorn, "sinkhorn", least=0)

    def ndcg(self, scores: Tensor, weight: Tensor, ranked: Tensor) -> Tensor:
        """Compute the smooth NDCG of each list from the gain at each rank."""
        width = scores.shape[-1]
        with torch.no_grad():
            key, order = torch.sort(scores.masked_fill(~ranked, -math.inf), dim=-1, descending=True, stable=True)
            present = ranked.gather(-1, order)
            groups = _tie_group_bounds(key, present)
        ordered, weight = scores.gather(-1, order), weight.gather(-1, order)
        discount = discount_table(self.flavor, width, scores.dtype, scores.device).at[1:]
        discount = discount * present
        depth = width if self.flavor.k is None else min(self.flavor.k, width)
        if self.sinkhorn:
            matrix = _rows_of_matrix(ordered, present, groups, 0, width, self.temperature)
            of_row, of_column = _sinkhorn_factors(matrix, present, self.sinkhorn)
            at_rank = of_row * _matvec(matrix, of_column * weight)
            return (discount * at_rank)[..., :depth].sum(-1)

        def part(ranks: slice) -> Tensor:
            rows = _rows_of_matrix(ordered, present, groups, ranks.start, ranks.stop, self.temperature)
            return (discount[..., ranks] * _matvec(rows, weight)).sum(-1)

        return sum_over_ranks(part, depth, ordered.numel(), _BLOCK)


def _rows_of_matrix(
    ordered: Tensor, present: Tensor, groups: TieGroups, start: int, stop: int, temperature: float
) -> Tensor:
    """Compute rows start + 1, ..., stop of P; columns are in ranked order."""
    exponents: Tensor = _Exponents.apply(ordered, *groups, start, stop, temperature)  # type: ignore[no-untyped-call]
    # Finite rather than -inf, because a list without documents has all its columns masked.
    return exponents.masked_fill(~present.unsqueeze(-2), torch.finfo(ordered.dtype).min).softmax(-1)


def _tie_group_bounds(key: Tensor, present: Tensor) -> TieGroups:
    """Count for each document those before its tie group, and those before or in it.

    Keys are in descending order, and -infinity in absent slots.
    """
    rising = key.flip(-1)
    before = key.shape[-1] - torch.searchsorted(rising, key, right=True)
    upto = key.shape[-1] - torch.searchsorted(rising, key)
    return before, torch.minimum(upto, present.sum(-1, keepdim=True))


def _matvec(matrix: Tensor, vector: Tensor) -> Tensor:
    """Matrix times vector, in the dtype of both."""
    # Without @: autocast would round both to half precision, in a backward pass as well.
    return (matrix * vector.unsqueeze(-2)).sum(-1)


def _sinkhorn_factors(matrix: Tensor, present: Tensor, rounds: int) -> tuple[Tensor, Tensor]:
    """Compute the factors of the rows and of the columns after Sinkhorn rounds.

    Only the factors change between rounds, so the matrix is stored once.
    """
    of_row = present.to(matrix.dtype)
    of_column = of_row
    for _ in range(rounds):
        in_column = _matvec(matrix.mT, of_row)
        # Absent entries are divided by 1, because the gradient of 0 divided by a small number overflows. The matrix is
        # 0 in their columns, so that their factors change nothing.
        of_column = 1.0 / torch.where(present, in_column, 1.0)
        in_row = _matvec(matrix, of_column)
        of_row = torch.where(present, 1.0 / torch.where(present, in_row, 1.0), 0.0)
    return of_row, of_column


class _Exponents(torch.autograd.Function):
    """Entry (i, j) is ((n + 1 - 2i) s_j - sum_l |s_j - s_l|) / T, minus the maximum of its row, for sorted s.

    The maximum of row i is entry (i, i), and each step away from it subtracts an odd multiple of one gap: from j to
    j + 1, with j >= i, (2 (j - i) + 1) (s_j - s_{j+1}). The gradient omits terms that are constant in a row, which is
    correct only in functions that do not depend on these, such as a softmax.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(ordered: Tensor, before: Tensor, upto: Tensor, start: int, stop: int, temperature: float) -> Tensor:
        row = torch.arange(start, stop, device=ordered.device).unsqueeze(-1)
        gap = torch.arange(ordered.shape[-1] - 1, device=ordered.device)
        odd = (2 * (gap - row) + 1).to(ordered.dtype)
        # Beyond 1000, exp is 0 in float64; the clamp keeps the sums finite.
        size = ((ordered[..., :-1] - ordered[..., 1:]) / temperature).clamp(-1e3, 1e3).unsqueeze(-2)
        later = (size * odd.clamp(min=0.0)).cumsum(-1)
        sooner = (size * odd.clamp(max=0.0))[..., :stop].flip(-1).cumsum(-1).flip(-1)
        return pad(sooner, (0, ordered.shape[-1] - sooner.shape[-1])) - pad(later, (1, 0))

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
        _, before, upto, ctx.start, ctx.stop, ctx.temperature = inputs
        ctx.save_for_backward(before, upto)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        before, upto = ctx.saved_tensors
        row = torch.arange(ctx.start, ctx.stop, device=grad.device, dtype=grad.dtype) + 1
        total = grad.sum(-2)
        by_row = _matvec(grad.mT, row)
        middle = (before + upto + 1).to(grad.dtype) / 2  # the middle rank of the tie group
        ahead = pad(total.cumsum(-1), (1, 0))
        below = ahead[..., -1:] - ahead.gather(-1, upto)
        scores = 2 * (middle * total - by_row) - below + ahead.gather(-1, before)
        return scores / ctx.temperature, None, None, None, None, None
