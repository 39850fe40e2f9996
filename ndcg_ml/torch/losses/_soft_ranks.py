"""Smooth ranks: over all pairs of documents, or in a time that grows with n log n by sorted scores and scans.

The rank of a document is 1 plus the steps F((s_j - s_i) / T) of all others. Beyond its origin a step is its limit
less a tail, and here every tail is a sum of exponentials, F(-d) = sum_m c_m exp(-m d) for d >= 0. Over sorted scores
the sum of one exponential over all documents above is a scan: what one document has, decayed by one gap, is what the
next one has. Documents stand in blocks. Within a block pairs are taken as they are, between blocks by scans, so that
the scans' rounding and their coefficients' cancellation do not reach the close neighbours, and few steps are serial.

Only differences of scores are taken, of neighbours or within a block, and every factor is at most 1: nothing
overflows, and a gap of any width has the weight that it has over all pairs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from ndcg_ml.torch._gains import working_dtype

_BLOCK = 16
# Relative error of the step 2 / 5.83^M: 1e-15 and 1e-9. The slope's is larger, 3e-13 and 2e-7.
_TERMS = {torch.float64: 20, torch.float32: 12}


def tail(n_terms: int) -> tuple[float, ...]:
    """The coefficients c_1, ..., c_M of exp(-d), ..., exp(-M d) in F(-d) for d >= 0.

    With z = exp(-d) the step is z / (1 + z), computed as z p(z) with the Chebyshev interpolant p(z) =
    (1 - t(z) / t(-1)) / (1 + z) of 1 / (1 + z) on [0, 1], where t is the Chebyshev polynomial of degree M moved to
    [0, 1]. Since t is at most 1 there, the relative error is at most 1 / |t(-1)|.
    """
    before, t = [1], [-1, 2]
    for _ in range(n_terms - 1):
        # t_(m+1)(z) = (4 z - 2) t_m(z) - t_(m-1)(z), in whole numbers, so that nothing is rounded before the end.
        longer, shifted, last = [*t, 0], [0, *t], [*before, 0, 0]
        before, t = t, [4 * b - 2 * a - c for a, b, c in zip(longer, shifted, last, strict=True)]
    at_minus_one = sum(a * (-1) ** m for m, a in enumerate(t))
    rest = [Fraction(m == 0) - Fraction(a, at_minus_one) for m, a in enumerate(t)]
    quotient = [Fraction(0)] * n_terms
    carry = Fraction(0)
    for m in range(n_terms, 0, -1):  # division by 1 + z, which leaves nothing over
        carry = rest[m] - carry
        quotient[m - 1] = carry
    return tuple(map(float, quotient))


_TAILS = {dtype: tail(n_terms) for dtype, n_terms in _TERMS.items()}


def dense_soft_ranks(scores: Tensor, valid: Tensor, temperature: float) -> Tensor:
    """Smooth ranks over all pairs, differentiable any number of times; 1 where `valid` is not set.

    Parameters
    ----------
    scores : Tensor of float, shape (..., n_documents)
        Finite where `valid` is not set.
    valid : Tensor of bool, like `scores`
    temperature : float
    """
    ahead = torch.sigmoid((scores.unsqueeze(-2) - scores.unsqueeze(-1)) / temperature)
    # A document is half ahead of itself: from 0.5, the sum over all documents gives 1 + the sum over the others.
    ranks = 0.5 + (ahead * valid.to(ahead.dtype).unsqueeze(-2)).sum(-1)
    return ranks.masked_fill(~valid, 1.0)


def fast_soft_ranks(scores: Tensor, valid: Tensor, temperature: float) -> Tensor:
    """The same by scans, differentiable once; time n log n and memory n.

    All ranks of a list with a score that is not finite are nan.
    """
    ranks: Tensor = _SoftRanks.apply(scores, valid, temperature)  # type: ignore[no-untyped-call]
    return ranks


def _slope(x: Tensor) -> Tensor:
    behind = torch.sigmoid(-x.abs())  # 1 - sigmoid(x) has no digits where sigmoid(x) is close to 1
    return behind * (1.0 - behind)


class _SoftRanks(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, valid: Tensor, temperature: float) -> Tensor:
        # A rank is a difference of large sums, and float32 has no digits to spare: float64, where there is any.
        blocks, order, counted = _in_blocks(scores.to(working_dtype(scores.device)), valid)
        one = counted.to(blocks.dtype)
        gap = (blocks.unsqueeze(-2) - blocks.unsqueeze(-1)) / temperature
        ranks = 0.5 + (torch.sigmoid(gap) * one.unsqueeze(-2)).sum(-1)
        size = one.sum(-1)
        ranks = ranks + (size.cumsum(-1) - size).unsqueeze(-1)
        coefficients = _TAILS[scores.dtype]
        below = _from_above(-blocks.flip(-2, -1), one.flip(-2, -1), temperature, coefficients).flip(-2, -1)
        ranks = ranks + (below - _from_above(blocks, one, temperature, coefficients))
        ranks = _back(ranks, order, scores)
        finite = (scores.isfinite() | ~valid).all(-1, keepdim=True)
        return torch.where(valid, torch.where(finite, ranks, math.nan), 1.0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        scores, valid, ctx.temperature = inputs
        ctx.save_for_backward(scores, valid)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        scores, valid = ctx.saved_tensors
        return _RankSlopes.apply(grads[0], scores, valid, ctx.temperature), None, None  # type: ignore[no-untyped-call]


class _RankSlopes(torch.autograd.Function):
    """The gradient of the ranks: d/ds_k sum_i g_i r_i = sum_i F'((s_i - s_k) / T) (g_i - g_k) / T."""

    generate_vmap_rule = True

    @staticmethod
    def forward(grad: Tensor, scores: Tensor, valid: Tensor, temperature: float) -> Tensor:
        blocks, order, counted = _in_blocks(scores.to(working_dtype(scores.device)), valid)
        one = counted.to(blocks.dtype)
        g = torch.where(counted, _blocked(grad.gather(-1, order), 0.0), 0.0).to(blocks.dtype)
        gap = (blocks.unsqueeze(-2) - blocks.unsqueeze(-1)) / temperature
        slope = _slope(gap) * one.unsqueeze(-2)
        slopes = (slope * (g.unsqueeze(-2) - g.unsqueeze(-1))).sum(-1)
        coefficients = tuple(m * c for m, c in enumerate(_TAILS[scores.dtype], 1))
        both = torch.stack([g, one])
        far = _from_above(blocks, both, temperature, coefficients)
        far = far + _from_above(-blocks.flip(-2, -1), both.flip(-2, -1), temperature, coefficients).flip(-2, -1)
        slopes = _back((slopes + (far[0] - g * far[1])) / temperature, order, scores)
        return torch.where(valid, slopes, 0.0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        raise RuntimeError(
            "the fast form of a loss has no second derivative; got a backward pass through its gradient "
            "(create_graph=True). Construct the loss with method='dense'."
        )


def _in_blocks(scores: Tensor, valid: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores in descending order, shape (..., n_blocks, block); the order; and which of them count."""
    # A slot that does not count, or whose list has no ranks anyway, stands anywhere, as long as it opens no gap.
    counted = valid & scores.isfinite()
    least = torch.where(counted, scores, math.inf).amin(-1, keepdim=True)
    filled = torch.where(counted, scores, torch.where(least.isfinite(), least, 0.0))
    ordered, order = torch.sort(filled, dim=-1, descending=True)
    missing = -ordered.shape[-1] % _BLOCK
    if missing:
        ordered = torch.cat([ordered, ordered[..., -1:].expand(*ordered.shape[:-1], missing)], -1)
    return _as_blocks(ordered), order, _blocked(valid.gather(-1, order), False)


def _blocked(values: Tensor, fill: float | bool) -> Tensor:
    missing = -values.shape[-1] % _BLOCK
    return _as_blocks(torch.nn.functional.pad(values, (0, missing), value=fill))


def _as_blocks(values: Tensor) -> Tensor:
    return values.reshape(*values.shape[:-1], values.shape[-1] // _BLOCK, _BLOCK)


def _back(blocks: Tensor, order: Tensor, like: Tensor) -> Tensor:
    """Blocks as a list again, in the caller's order."""
    values = blocks.flatten(-2)[..., : like.shape[-1]].to(like.dtype)
    return torch.empty_like(like).scatter(-1, order, values)


def _from_above(blocks: Tensor, values: Tensor, temperature: float, coefficients: tuple[float, ...]) -> Tensor:
    """For each slot, sum_m c_m sum_j v_j exp(-m (x_j - x_i) / T) over the slots j of all blocks before its own.

    `blocks` descend, shape (..., n_blocks, block); `values` may have one dimension more in front.
    """
    if blocks.shape[-2] == 1:
        return torch.zeros_like(values)
    last = blocks[..., -1]
    down = torch.exp((last.unsqueeze(-1) - blocks) / temperature)  # from each slot to the end of its block
    term, sums = values, []
    for _ in coefficients:
        term = term * down
        sums.append(term.sum(-1))
    carried = torch.stack(sums)
    decay = torch.exp((last[..., 1:] - last[..., :-1]) / temperature)
    decay = torch.cat([torch.zeros_like(decay[..., :1]), decay], -1)
    powers = torch.stack([decay**m for m in range(1, len(coefficients) + 1)])
    if values.ndim > blocks.ndim:
        powers = powers.unsqueeze(1).expand_as(carried)
    carried = _scan(carried, powers)
    # The sum at the end of the block before, which decays from there to each slot.
    carried = torch.cat([torch.zeros_like(carried[..., :1]), carried[..., :-1]], -1)
    start = torch.cat([blocks[..., :1, 0], last[..., :-1]], -1)
    down = torch.exp((blocks - start.unsqueeze(-1)) / temperature)
    total = torch.zeros_like(values)
    for c, column in zip(reversed(coefficients), carried.flip(0), strict=True):
        total = (total + c * column.unsqueeze(-1)) * down
    return total


def _scan(values: Tensor, decay: Tensor) -> Tensor:
    """y_b = d_b y_(b-1) + v_b along the last dimension, by doubling."""
    reach, n = 1, values.shape[-1]
    while reach < n:
        values = torch.cat([values[..., :reach], values[..., reach:] + decay[..., reach:] * values[..., :-reach]], -1)
        decay = torch.cat([decay[..., :reach], decay[..., reach:] * decay[..., :-reach]], -1)
        reach *= 2
    return values
