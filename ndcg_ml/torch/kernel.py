"""The torch kernel: from order and ties to the expected discount of each document, to DCG; and the ideals.

``expected_discounts`` implements the tie-breaking rules. The ideal is always exact. Nothing here waits for the device,
except callables, which are evaluated on the host.

Rows of a padded tensor do not need a whole ranking under averaged ties. The ranks of a tie group follow from two
counts, of the documents that score higher and of those that score at least as high, and ``topk`` finds both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._gains_and_discounts import (
    Judgements,
    discount_table,
    gains_of,
    judge,
    label_faults,
    may_be_negative,
    top_gain,
)
from ndcg_ml.torch._layout import Layout, Padded, working_dtype
from ndcg_ml.torch.limits import count_faults_by_kind


@dataclass(frozen=True)
class Result:
    """Values per query and cut-off, shape (n_queries, n_cutoffs)."""

    ndcg: Tensor
    """nan if the query is invalid, or empty and the flavor has no value for that."""
    dcg: Tensor
    idcg: Tensor
    empty: Tensor
    wrong: Tensor
    """Queries with a fault."""
    faults: Tensor | None
    """The number of each of ``FAULTS``, if requested."""


@dataclass(frozen=True)
class TieGroups:
    """Groups of equal keys among slots in the order of their keys. Only counted slots have a rank."""

    rank: Tensor
    """1, 2, ... within the query."""
    before: Tensor
    """Number of counted slots before the tie group."""
    upto: Tensor
    """Number of counted slots before the tie group or in it."""
    number: Tensor
    """Number of the tie group along the last dimension."""


@dataclass(frozen=True)
class Ranking:
    """Documents in the order of their scores."""

    order: Tensor
    ranked: Tensor
    groups: TieGroups


def evaluate(
    flavor: Flavor,
    ks: Sequence[int | None],
    layout: Layout,
    scores: Tensor,
    labels: Tensor,
    listed: Tensor,
    retrieved: Tensor | None = None,
    doc_id: Tensor | None = None,
    count_faults: bool = False,
) -> Result:
    """Compute NDCG of each query at each cut-off, from one ranking.

    Parameters
    ----------
    flavor : Flavor
        Its own cut-off is not used.
    ks : sequence of int or None
        The cut-offs.
    layout : Layout
    scores, labels : Tensor
        Slots in the order of the layout.
    listed : Tensor of bool
        Slots with a document.
    retrieved : Tensor of bool or None
        Documents that are ranked; None for all.
    doc_id : Tensor of int or None
    count_faults : bool
        Whether to count each kind of fault, rather than flag queries only.

    Returns
    -------
    Result
    """
    # Labels become judgements, ranked documents and gains. Faults remain tensors, because reading one would wait.
    judgements = judge(flavor, labels, listed, layout)
    ranked = ranked_documents(flavor, judgements, retrieved)
    gains = gains_of(flavor, judgements, ideal_pool(flavor, judgements, ranked))
    if scores.is_floating_point():
        faults = {"nan_scores": scores.isnan() & ranked}
    else:
        faults = {"equal_scores": _made_equal(layout, scores, ranked)}
        scores = scores.to(working_dtype(scores.device))
    if doc_id is not None:
        faults["repeated_ids"] = _repeated(layout, doc_id, listed)
    # DCG, without a ranking if only the discounts depend on it.
    ranking = None
    table = table_for(flavor, ks, layout, gains)
    if isinstance(layout, Padded) and flavor.ties == "average" and not needs_ranking(flavor):
        own = gains if retrieved is None else gains.masked_fill(~ranked, 0.0)
        dcg = _dcg_of_rows(flavor, ks, layout, scores, ranked, own, table)
    else:
        ranking = rank(flavor, layout, scores, ranked, gains, doc_id)
        gain = layout.take(gains, ranking.order).masked_fill(~ranking.ranked, 0.0)
        dcg = torch.stack([layout.per_query(gain * expected_discounts(flavor, ranking, table, k)) for k in ks], dim=-1)
    # Under this rule, a list that is shorter than the cut-off scores 0.
    if flavor.short_lists == "zero":
        dcg = dcg.masked_fill(too_short(ks, layout, ranked), 0.0)
    # The ratio. The ideal alone decides whether a query is empty.
    idcg = ideal_dcg(flavor, ks, layout, judgements, gains, ranked, ranking, table)
    empty = empty_queries(idcg)
    ndcg = snap_to_one(dcg / idcg.masked_fill(empty, 1.0)).masked_fill(empty, value_if_empty(flavor))
    # A fault makes its own query nan, and no other.
    wrong = judgements.refused
    for fault in faults.values():
        wrong = wrong | layout.any_of(fault)
    ndcg = ndcg.masked_fill(wrong.unsqueeze(-1), math.nan)
    # Only the message of an error needs the counts, which take a reduction per kind.
    counts = None
    if count_faults:
        faults |= label_faults(flavor, labels.to(working_dtype(labels.device)), listed)
        counts = count_faults_by_kind(faults)
    if flavor.empty == "raise":
        unanswered = layout.existing(empty.any(-1))
        wrong = wrong | unanswered
        if counts is not None:
            counts = torch.cat([counts[:-1], unanswered.sum().unsqueeze(0)])
    return Result(ndcg, dcg, idcg, empty, wrong, counts)


# -- rows of a padded tensor, from the upper scores ------------------------------------------------------------------


def _deepest(ks: Sequence[int | None], width: int) -> int:
    """The deepest rank within any cut-off."""
    return max(width if k is None else min(k, width) for k in ks)


def _dcg_of_rows(
    flavor: Flavor,
    ks: Sequence[int | None],
    layout: Padded,
    scores: Tensor,
    ranked: Tensor,
    gain: Tensor,
    table: Tensor,
) -> Tensor:
    """Compute DCG of each row at each cut-off; `gain` is 0 for documents without a rank."""
    width = layout.width
    depth = _deepest(ks, width)
    # Documents without a rank get the lowest possible score and are not counted.
    key = _comparison_keys(flavor, scores)
    key = key.masked_fill(~ranked, -math.inf)
    # The discounts at ranks 0, 1, ..., depth + 1, with 0 at both ends and beyond each cut-off.
    tables = [pad(table[: n + 1], (0, depth + 1 - n)) for n in (depth if k is None else min(k, depth) for k in ks)]
    groups = _upper_tie_groups(key, ranked, depth)
    return torch.stack([(gain * _mean_discounts(*groups, discounts)).sum(-1) for discounts in tables], dim=-1)


def _upper_tie_groups(key: Tensor, ranked: Tensor, depth: int) -> tuple[Tensor, Tensor, Tensor]:
    """Compute for each slot the number of higher scores, the last rank of its tie group up to `depth`, and its length.

    Slots below `depth` have a tie group of length 0, after all others.
    """
    if key.dtype in (torch.float16, torch.bfloat16):
        key = key.float()  # some versions of torch cannot search half precision
    key = key.contiguous()
    rising = key.topk(depth).values.flip(-1)
    edge = rising[..., :1]
    n_to_edge = ((key >= edge) & ranked).sum(-1, keepdim=True)
    not_above = torch.searchsorted(rising, key, right=True)
    below = torch.searchsorted(rising, key)
    # Only the tie group at the edge can extend beyond these ranks.
    length = not_above - below + (key == edge) * (n_to_edge - depth)
    return depth - not_above, torch.minimum(depth - below, n_to_edge), length


def _mean_discounts(before: Tensor, upto: Tensor, length: Tensor, discounts: Tensor) -> Tensor:
    """Compute the mean discount over the ranks of each tie group."""
    total = discounts.cumsum(0)
    shared = (total[upto] - total[before]) / length.clamp(min=1)
    # A document without a tie has its discount itself: the difference of two sums would lose digits.
    return torch.where(length > 1, shared, discounts[before + 1])


# -- rules -----------------------------------------------------------------------------------------------------------


def ranked_documents(flavor: Flavor, judgements: Judgements, retrieved: Tensor | None) -> Tensor:
    """Flag the documents that have a rank."""
    ranked = judgements.judged if flavor.unjudged == "condense" else judgements.listed
    return ranked if retrieved is None else ranked & retrieved


def ideal_pool(flavor: Flavor, judgements: Judgements, ranked: Tensor) -> Tensor:
    """Flag the documents whose gains are used."""
    return ranked if flavor.ideal in ("recall", "local") else judgements.listed


def table_for(flavor: Flavor, ks: Sequence[int | None], layout: Layout, like: Tensor) -> Tensor:
    """Compute the discounts of all ranks that are used, and 0 for rank 0, which means no rank."""
    depth = layout.width
    if isinstance(layout, Padded):
        depth = _deepest(ks, depth) if _needs_upper_ranks_alone(flavor) else depth
    elif callable(flavor.discount):  # called once per rank, so compute no more than needed
        depth = int(layout.position.max())
    if flavor.ideal == "max":
        depth = max(depth, *(k or 0 for k in ks))
    return discount_table(flavor, depth, like.dtype, like.device)


def _needs_upper_ranks_alone(flavor: Flavor) -> bool:
    """Whether neither the ranking nor the ideal uses ranks below the cut-offs."""
    upper_ideal = flavor.ideal in ("global", "recall") and flavor.ideal_depth != "all" and not needs_ranking(flavor)
    return upper_ideal and flavor.ties == "average"


def rank(
    flavor: Flavor, layout: Layout, scores: Tensor, ranked: Tensor, gain: Tensor, doc_id: Tensor | None
) -> Ranking:
    """Sort by score, and tied documents by the tie-breaking rule."""
    # Slots without a rank may be anywhere, because only ranked slots are counted.
    key = _comparison_keys(flavor, scores)
    key = key.masked_fill(key == 0, 0.0)  # -0.0 ties with 0.0, in a radix sort as well
    second = None
    if flavor.ties == "last":
        second = layout.position.expand_as(key)
    elif flavor.ties == "best":
        second = gain
    elif flavor.ties == "worst":
        second = -gain
    elif flavor.ties == "docid":
        second = doc_id
    elif flavor.ties == "docid_ascending" and doc_id is not None:
        second = ~doc_id  # ~doc_id reverses the order; -doc_id may overflow
    if second is None:
        order = layout.order_by(key)
    else:
        before = layout.order_by(second)
        order = layout.take(before, layout.order_by(layout.take(key, before)))
    ranked = layout.take(ranked, order)
    return Ranking(order, ranked, find_tie_groups(layout, layout.take(key, order), ranked))


def expected_discounts(flavor: Flavor, ranking: Ranking, table: Tensor, k: int | None) -> Tensor:
    """Compute the expected discount of each document, in ranked order; 0 beyond the cut-off.

    Under averaged ties it is the mean of D over the ranks of the document's tie group, with D = 0 beyond the cut-off.
    """
    depth = table.numel() - 1 if k is None else min(k, table.numel() - 1)
    groups = ranking.groups
    table = table[: depth + 1]
    if flavor.ties != "average":
        return _look_up(table, groups.rank, depth).masked_fill(~ranking.ranked, 0.0)
    total = table.cumsum(0)
    length = groups.upto - groups.before
    shared = (total[groups.upto.clamp(max=depth)] - total[groups.before.clamp(max=depth)]) / length.clamp(min=1)
    # A document without a tie has its discount itself: the difference of two sums would lose digits.
    expected = torch.where(length > 1, shared, _look_up(table, groups.rank, depth))
    return expected.masked_fill(~ranking.ranked, 0.0)


def _look_up(table: Tensor, rank: Tensor, depth: int) -> Tensor:
    """Look up the discount at each rank; 0 beyond `depth`."""
    return pad(table, (0, 1))[rank.clamp(max=depth + 1)]


def too_short(ks: Sequence[int | None], layout: Layout, ranked: Tensor) -> Tensor:
    """Flag the queries with fewer documents than a cut-off."""
    n_ranked = layout.per_query(ranked.to(torch.int64))
    return torch.stack([n_ranked < (k or 0) for k in ks], dim=-1)


def ideal_dcg(
    flavor: Flavor,
    ks: Sequence[int | None],
    layout: Layout,
    judgements: Judgements,
    gains: Tensor,
    ranked: Tensor,
    ranking: Ranking | None,
    table: Tensor,
) -> Tensor:
    """Compute the ideal DCG of each query at each cut-off; 0 if there is none.

    `ranking` is only used if ``needs_ranking``.
    """
    depths: Sequence[int | None] = (None,) * len(ks) if flavor.ideal_depth == "all" else ks
    # The top of the scale at every rank: a sum of discounts.
    if flavor.ideal == "max":
        top = top_gain(flavor, table.dtype)
        total = table.cumsum(0)
        n_ranked = layout.per_query(ranked.to(torch.int64))
        some = layout.per_query(judgements.listed.to(torch.int64)) > 0
        sums = [total[n_ranked] if k is None else total[k].expand(n_ranked.shape) for k in depths]
        if flavor.ideal_depth == "retrieved":
            sums = [total[n_ranked if k is None else n_ranked.clamp(max=k)] for k in depths]
        return torch.stack([(top * at).masked_fill(~some, 0.0) for at in sums], dim=-1)
    # The labelled pool, whatever the ranking.
    if not needs_ranking(flavor):
        pool = ranked if flavor.ideal == "recall" else judgements.judged
        limit = layout.per_query(ranked.to(torch.int64)) if flavor.ideal_depth == "retrieved" else None
        if flavor.ideal != "given" and isinstance(layout, Padded):
            # Gains outside the pool are 0, which adds nothing unless gains can be negative.
            signed_pool = pool if may_be_negative(flavor) else None
            return _best_of_rows(layout, gains, signed_pool, table, depths, limit)
        return _best_first(layout, gains, pool, table, depths, as_given=flavor.ideal == "given", limit=limit)
    # The expected gain at each rank: the mean over a tie group.
    assert ranking is not None
    own = layout.take(gains, ranking.order).masked_fill(~ranking.ranked, 0.0)
    groups = ranking.groups
    expected = own
    if flavor.ties == "average":
        length = (groups.upto - groups.before).clamp(min=1)
        mean = torch.zeros_like(own).scatter_add(-1, groups.number, own).gather(-1, groups.number) / length
        expected = torch.where(length > 1, mean, own)
    # The ideal order of the documents within each cut-off, or within the recall depth.
    if flavor.ideal == "local":
        columns = [
            _best_first(layout, expected, ranking.ranked & (groups.rank <= (k or layout.width)), table, (None,))
            for k in depths
        ]
        return torch.cat(columns, dim=-1)
    first = flavor.recall_depth or layout.width
    # A tie group that ends within the depth is retrieved completely, so its own gains are certain.
    expected = torch.where(groups.upto <= first, own, expected)
    return _best_first(layout, expected, ranking.ranked & (groups.rank <= first), table, depths)


def needs_ranking(flavor: Flavor) -> bool:
    """Whether the ideal depends on the scores."""
    return flavor.ideal == "local" or (flavor.ideal == "recall" and flavor.recall_depth is not None)


def find_tie_groups(layout: Layout, keys: Tensor, counted: Tensor) -> TieGroups:
    """Find ranks and tie groups of slots that are sorted by key."""
    upto_here = counted.cumsum(-1)
    before_here = upto_here - counted.to(upto_here.dtype)
    edge = torch.ones_like(keys[..., :1], dtype=torch.bool)
    new = torch.cat([edge, keys[..., 1:] != keys[..., :-1]], dim=-1) | layout.starts
    last = torch.cat([new[..., 1:], edge], dim=-1)
    # Counts never decrease along the last dimension, so the nearest start (end) has the largest (smallest) count.
    before = before_here.masked_fill(~new, 0).cummax(-1).values
    far = torch.iinfo(upto_here.dtype).max
    upto = upto_here.masked_fill(~last, far).flip(-1).cummin(-1).values.flip(-1)
    earlier = layout.at_first(before_here)
    return TieGroups(upto_here - earlier, before - earlier, upto - earlier, new.cumsum(-1) - 1)


def empty_queries(idcg: Tensor) -> Tensor:
    """Flag the queries whose ideal DCG is not above 0."""
    return ~(idcg > 0)


def value_if_empty(flavor: Flavor) -> float:
    """Return NDCG of an empty query; nan if the flavor skips or refuses it."""
    return flavor.empty if isinstance(flavor.empty, float) else math.nan


def snap_to_one(ndcg: Tensor) -> Tensor:
    """Round values slightly above 1, which are rounding errors of a perfect ranking, to 1."""
    rounding = 1e-12 if ndcg.dtype == torch.float64 else 1e-6
    return ndcg.masked_fill((ndcg > 1) & (ndcg < 1 + rounding), 1.0)


def _best_of_rows(
    layout: Padded,
    values: Tensor,
    pool: Tensor | None,
    table: Tensor,
    ks: Sequence[int | None],
    limit: Tensor | None,
) -> Tensor:
    """Compute DCG of each row at each cut-off of the values in the pool, largest first.

    `limit` is a further cut-off per query. `pool` is None if values outside it are 0 and no value is negative.
    """
    depth = _deepest(ks, layout.width)
    if pool is not None:
        values = values.masked_fill(~pool, -math.inf)
    best = values.topk(depth).values
    if pool is not None:
        best = best.masked_fill(best == -math.inf, 0.0)
    if limit is not None:
        best = best.masked_fill(layout.position[:depth] > limit.unsqueeze(-1), 0.0)
    terms = best * table[1 : depth + 1]
    return torch.stack([(terms if k is None else terms[..., :k]).sum(-1) for k in ks], dim=-1)


def _best_first(
    layout: Layout,
    values: Tensor,
    present: Tensor,
    table: Tensor,
    ks: Sequence[int | None],
    *,
    as_given: bool = False,
    limit: Tensor | None = None,
) -> Tensor:
    """Compute DCG at each cut-off of the present values, largest first or as given; `limit` as in ``_best_of_rows``."""
    absent = ~present
    order = layout.order_by((torch.zeros_like(values) if as_given else values).masked_fill(absent, -math.inf))
    best = layout.take(values.masked_fill(absent, 0.0), order)
    rank = layout.position
    if limit is not None:
        best = best.masked_fill(rank > layout.per_slot(limit), 0.0)
    terms = best * table[rank.clamp(max=table.numel() - 1)]
    return torch.stack([layout.per_query(terms if k is None else terms.masked_fill(rank > k, 0.0)) for k in ks], dim=-1)


def _comparison_keys(flavor: Flavor, scores: Tensor) -> Tensor:
    """Convert the scores to the precision in which they are compared."""
    return scores.float() if flavor.score_dtype == "float32" else scores


def _made_equal(layout: Layout, scores: Tensor, ranked: Tensor) -> Tensor:
    """Flag ranked integers that floats make equal to a different one of their query, in some order within the query."""
    # Integers in the order of the scores; those without a rank come last.
    key = scores.view(torch.int64) ^ torch.iinfo(torch.int64).min if scores.dtype == torch.uint64 else scores
    order = layout.order_by(key)
    order = layout.take(order, layout.order_by(layout.take(ranked, order).to(torch.int8)))
    ranked, key, value = (layout.take(each, order) for each in (ranked, key, scores.to(working_dtype(scores.device))))
    equal = (value[..., 1:] == value[..., :-1]) & (key[..., 1:] != key[..., :-1])
    return pad(equal & ranked[..., 1:] & ranked[..., :-1], (1, 0)) & ~layout.starts


def _repeated(layout: Layout, doc_id: Tensor, listed: Tensor) -> Tensor:
    """Flag the listed documents with a repeated id, in some order within the query."""
    order = layout.order_by(doc_id)
    counted = layout.take(listed, order)
    groups = find_tie_groups(layout, layout.take(doc_id, order), counted)
    return counted & (groups.upto - groups.before > 1)
