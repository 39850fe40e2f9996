"""``ApproxNDCGLoss``: NDCG with smooth ranks instead of integer ranks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from ndcg_ml._plain.checks import one_of, positive_number
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch.inputs import working_dtype
from ndcg_ml.torch.kernel import discount_at
from ndcg_ml.torch.losses._base import DirectLoss, Reduction, refuse_callable_discount

# -- smooth ranks: over all pairs of documents, or in O(n log n) time by sorting scores and scanning -------------------

_BLOCK = 16
# The relative error of F is 2 / 5.83^M: 1e-15 and 1e-9. That of its derivative is larger, 3e-13 and 2e-7.
_TERMS = {torch.float64: 20, torch.float32: 12}


def tail(n_terms: int) -> tuple[float, ...]:
    """Compute the coefficients c_1, ..., c_M of exp(-d), ..., exp(-M d) in F(-d) for d >= 0.

    With z = exp(-d), F(-d) = z / (1 + z) is approximated by z p(z) with the Chebyshev interpolant p(z) =
    (1 - t(z) / t(-1)) / (1 + z) of 1 / (1 + z) on [0, 1], where t is the Chebyshev polynomial of degree M shifted to
    [0, 1]. Since t is at most 1 there, the relative error is at most 1 / |t(-1)|.
    """
    before, t = [1], [-1, 2]
    for _ in range(n_terms - 1):
        # t_(m+1)(z) = (4 z - 2) t_m(z) - t_(m-1)(z), in integers, so that only the result is rounded.
        longer, shifted, last = [*t, 0], [0, *t], [*before, 0, 0]
        before, t = t, [4 * b - 2 * a - c for a, b, c in zip(longer, shifted, last, strict=True)]
    at_minus_one = sum(a * (-1) ** m for m, a in enumerate(t))
    rest = [Fraction(m == 0) - Fraction(a, at_minus_one) for m, a in enumerate(t)]
    quotient = [Fraction(0)] * n_terms
    carry = Fraction(0)
    for m in range(n_terms, 0, -1):  # division by 1 + z, without remainder
        carry = rest[m] - carry
        quotient[m - 1] = carry
    return tuple(map(float, quotient))


_TAILS = {dtype: tail(n_terms) for dtype, n_terms in _TERMS.items()}


def dense_soft_ranks(scores: Tensor, ranked: Tensor, temperature: float) -> Tensor:
    """Compute smooth ranks over all pairs, differentiable any number of times; 1 where `ranked` is False.

    Parameters
    ----------
    scores : Tensor of float, shape (..., n_documents)
        Finite where `ranked` is False.
    ranked : Tensor of bool, like `scores`
    temperature : float
    """
    ahead = torch.sigmoid((scores.unsqueeze(-2) - scores.unsqueeze(-1)) / temperature)
    # F(0) = 1/2 for the document itself: 0.5 + the sum over all documents is 1 + the sum over the others.
    ranks = 0.5 + (ahead * ranked.to(ahead.dtype).unsqueeze(-2)).sum(-1)
    return ranks.masked_fill(~ranked, 1.0)


def fast_soft_ranks(scores: Tensor, ranked: Tensor, temperature: float) -> Tensor:
    """Compute smooth ranks by scans, differentiable once, in O(n log n) time and O(n) memory."""
    return _SoftRanks.apply(scores, ranked, temperature)  # type: ignore[no-untyped-call]


class _SoftRanks(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, ranked: Tensor, temperature: float) -> Tensor:
        # A rank is a difference of large sums, which needs float64 if the device has it.
        blocks, order, counted = _split_into_blocks(scores.to(working_dtype(scores.device)), ranked)
        one = counted.to(blocks.dtype)
        gap = (blocks.unsqueeze(-2) - blocks.unsqueeze(-1)) / temperature
        ranks = 0.5 + (torch.sigmoid(gap) * one.unsqueeze(-2)).sum(-1)
        size = counted.sum(-1)  # integers: CUDA has no deterministic cumulative sum of floats
        ranks = ranks + (size.cumsum(-1) - size).unsqueeze(-1)
        coefficients = _TAILS[scores.dtype]
        below = _from_above(-blocks.flip(-2, -1), one.flip(-2, -1), temperature, coefficients).flip(-2, -1)
        ranks = ranks + (below - _from_above(blocks, one, temperature, coefficients))
        return torch.where(ranked, _restore_order(ranks, order, scores), 1.0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        scores, ranked, ctx.temperature = inputs
        ctx.save_for_backward(scores, ranked)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        scores, ranked = ctx.saved_tensors
        return _RankSlopes.apply(grads[0], scores, ranked, ctx.temperature), None, None  # type: ignore[no-untyped-call]


class _RankSlopes(torch.autograd.Function):
    """Gradient of the ranks: d/ds_k sum_i g_i r_i = sum_i F'((s_i - s_k) / T) (g_i - g_k) / T."""

    generate_vmap_rule = True

    @staticmethod
    def forward(grad: Tensor, scores: Tensor, ranked: Tensor, temperature: float) -> Tensor:
        blocks, order, counted = _split_into_blocks(scores.to(working_dtype(scores.device)), ranked)
        one = counted.to(blocks.dtype)
        g = torch.where(counted, _blocked(grad.gather(-1, order), 0.0), 0.0).to(blocks.dtype)
        gap = (blocks.unsqueeze(-2) - blocks.unsqueeze(-1)) / temperature
        behind = torch.sigmoid(-gap.abs())  # accurate where 1 - sigmoid(gap) is not
        slope = behind * (1.0 - behind) * one.unsqueeze(-2)
        slopes = (slope * (g.unsqueeze(-2) - g.unsqueeze(-1))).sum(-1)
        coefficients = tuple(m * c for m, c in enumerate(_TAILS[scores.dtype], 1))
        both = torch.stack([g, one])
        far = _from_above(blocks, both, temperature, coefficients)
        far = far + _from_above(-blocks.flip(-2, -1), both.flip(-2, -1), temperature, coefficients).flip(-2, -1)
        slopes = _restore_order((slopes + (far[0] - g * far[1])) / temperature, order, scores)
        return torch.where(ranked, slopes, 0.0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        raise RuntimeError(
            "method='fast' has no second derivative; got a backward pass through its gradient (create_graph=True). "
            "Construct the loss with method='dense'."
        )


def _split_into_blocks(scores: Tensor, ranked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sort scores in descending order, shape (..., n_blocks, block); return them, the order, and the ranked slots."""
    # Invalid slots, and those of a list without ranks, get the lowest score, which opens no gap.
    counted = ranked & scores.isfinite()
    least = torch.where(counted, scores, math.inf).amin(-1, keepdim=True)
    filled = torch.where(counted, scores, torch.where(least.isfinite(), least, 0.0))
    ordered, order = torch.sort(filled, dim=-1, descending=True)
    missing = -ordered.shape[-1] % _BLOCK
    if missing:
        ordered = torch.cat([ordered, ordered[..., -1:].expand(*ordered.shape[:-1], missing)], -1)
    return _as_blocks(ordered), order, _blocked(ranked.gather(-1, order), False)


def _blocked(values: Tensor, fill: float | bool) -> Tensor:
    missing = -values.shape[-1] % _BLOCK
    return _as_blocks(torch.nn.functional.pad(values, (0, missing), value=fill))


def _as_blocks(values: Tensor) -> Tensor:
    return values.reshape(*values.shape[:-1], values.shape[-1] // _BLOCK, _BLOCK)


def _restore_order(blocks: Tensor, order: Tensor, like: Tensor) -> Tensor:
    """Undo the blocks and the sorting."""
    values = blocks.flatten(-2)[..., : like.shape[-1]].to(like.dtype)
    return torch.empty_like(like).scatter(-1, order, values)


def _from_above(blocks: Tensor, values: Tensor, temperature: float, coefficients: tuple[float, ...]) -> Tensor:
    """Compute for each slot sum_m c_m sum_j v_j exp(-m (x_j - x_i) / T) over the slots j of all earlier blocks.

    `blocks` are in descending order, shape (..., n_blocks, block). `values` may have one more leading dimension.
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
    # The sum at the end of the previous block, decayed to each slot.
    carried = torch.cat([torch.zeros_like(carried[..., :1]), carried[..., :-1]], -1)
    start = torch.cat([blocks[..., :1, 0], last[..., :-1]], -1)
    down = torch.exp((blocks - start.unsqueeze(-1)) / temperature)
    total = torch.zeros_like(values)
    for c, column in zip(reversed(coefficients), carried.flip(0), strict=True):
        total = (total + c * column.unsqueeze(-1)) * down
    return total


def _scan(values: Tensor, decay: Tensor) -> Tensor:
    """Compute y_b = d_b y_(b-1) + v_b along the last dimension by doubling."""
    reach, n = 1, values.shape[-1]
    while reach < n:
        values = torch.cat([values[..., :reach], values[..., reach:] + decay[..., reach:] * values[..., :-reach]], -1)
        decay = torch.cat([decay[..., :reach], decay[..., reach:] * decay[..., :-reach]], -1)
        reach *= 2
    return values


# -- ``ApproxNDCGLoss``: NDCG with smooth ranks instead of integer ranks -----------------------------------------------

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
        self.temperature: float = positive_number(temperature, "temperature")
        self.method = method
        self.cut_temperature: float = positive_number(cut_temperature, "cut_temperature")

    def ndcg(self, scores: Tensor, weight: Tensor, ranked: Tensor) -> Tensor:
        """Compute the smooth NDCG of each list from the discounts at smooth ranks."""
        dense_up_to = _DENSE_UP_TO_ON_CPU if scores.device.type == "cpu" else _DENSE_UP_TO
        dense = scores.shape[-1] <= dense_up_to if self.method == "auto" else self.method == "dense"
        soft_ranks = dense_soft_ranks if dense else fast_soft_ranks
        soft_rank = soft_ranks(scores, ranked, self.temperature)
        terms = weight * discount_at(self.flavor, soft_rank)
        k = self.flavor.k
        if k is not None and k < soft_rank.shape[-1]:
            terms = terms * self._soft_cut(soft_rank, ranked, k)
        return terms.sum(-1)

    def _soft_cut(self, soft_rank: Tensor, ranked: Tensor, k: int) -> Tensor:
        # A fixed threshold, k + 1/2, would be below every rank at a high temperature and cut the whole list.
        # A list of at most k documents has rank infinity at k + 1, and sigmoid(infinity) = 1: it is not cut.
        with torch.no_grad():
            in_order = soft_rank.masked_fill(~ranked, math.inf).sort(dim=-1).values
            threshold = (in_order[..., k - 1 : k] + in_order[..., k : k + 1]) / 2
        return torch.sigmoid((threshold - soft_rank) / self.cut_temperature)
