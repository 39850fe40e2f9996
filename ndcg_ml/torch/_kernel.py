"""The kernel: order and ties -> the expected discount of each document -> DCG; and the ideals.

``expected_discounts`` is the one place where the tie rule becomes numbers. The ideal is always exact. Nothing here
waits for the device, apart from callables, which are evaluated on the host.

Rows of a padded tensor have a shorter way than whole rankings. Which ranks a tied run has follows from two numbers, how
many documents score higher and how many at least as high, so that the upper scores are found without taking anything
else along.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._faults import counted_faults
from ndcg_ml.torch._gains import (
    Judgements,
    discount_table,
    gains_of,
    judge,
    label_faults,
    may_be_negative,
    top_gain,
    working_dtype,
)
from ndcg_ml.torch._layout import Layout, Padded


@dataclass(frozen=True)
class Result:
    """The values that the kernel computes, per query and cut-off: shape (n_queries, n_cutoffs)."""

    ndcg: Tensor
    """nan where the query is invalid, or empty and without a value for that."""
    dcg: Tensor
    idcg: Tensor
    empty: Tensor
    wrong: Tensor
    """Per query: whether it is a reason to raise."""
    faults: Tensor | None
    """Number of times that each of ``FAULTS`` occurred, if that was asked for."""


@dataclass(frozen=True)
class Runs:
    """Slots in the order of their keys, cut into runs of equal keys; only counted slots have a rank."""

    rank: Tensor
    """1, 2, ... within the query."""
    before: Tensor
    """How many counted slots stand before the slot's run."""
    upto: Tensor
    """How many stand before it or in it."""
    number: Tensor
    """The run's number along the last dimension."""


@dataclass(frozen=True)
class Ranking:
    """Documents in the order of their scores."""

    order: Tensor
    ranked: Tensor
    runs: Runs


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
    """NDCG of each query at each cut-off, from one ranking.

    Parameters
    ----------
    flavor : Flavor
        Its own cut-off is not used.
    ks : sequence of int or None
        The cut-offs.
    layout : Layout
    scores, labels : Tensor
        Slots as the layout has them.
    listed : Tensor of bool
        Which slots hold a document.
    retrieved : Tensor of bool or None
        Which documents are ranked; None is all.
    doc_id : Tensor of int or None
    count_faults : bool
        Whether to count each kind of fault, where otherwise only their presence is looked for.

    Returns
    -------
    Result
    """
    # Labels become judgements, ranked documents and gains. Faults are collected as tensors: looking at one would wait
    # for the device.
    judgements = judge(flavor, labels, listed, layout)
    ranked = ranked_documents(flavor, judgements, retrieved)
    gains = gains_of(flavor, judgements, pool_of(flavor, judgements, ranked))
    faults = {"nan_scores": scores.isnan() & ranked} if scores.is_floating_point() else {}
    if doc_id is not None:
        faults["repeated_ids"] = _repeated(layout, doc_id, listed)
    # The ranking, by the short way where nothing else than the discounts depends on it.
    ranking = None
    table = table_for(flavor, ks, layout, gains)
    if isinstance(layout, Padded) and flavor.ties == "average" and not needs_ranking(flavor):
        own = gains if retrieved is None else gains.masked_fill(~ranked, 0.0)
        dcg = _dcg_of_rows(flavor, ks, layout, scores, ranked, own, table)
    else:
        ranking = rank(flavor, layout, scores, ranked, gains, doc_id)
        gain = layout.take(gains, ranking.order).masked_fill(~ranking.ranked, 0.0)
        dcg = torch.stack([layout.per_query(gain * expected_discounts(flavor, ranking, table, k)) for k in ks], dim=-1)
    # A list that is shorter than the cut-off scores 0 under this rule, whatever it ranked.
    if flavor.short_lists == "zero":
        dcg = dcg.masked_fill(too_short(flavor, ks, layout, ranked), 0.0)
    # The ratio. A query is empty by its ideal alone.
    idcg = ideal_dcg(flavor, ks, layout, judgements, gains, ranked, ranking, table)
    empty = ~(idcg > 0)
    value = flavor.empty if isinstance(flavor.empty, float) else math.nan
    ndcg = snapped(dcg / idcg.masked_fill(empty, 1.0)).masked_fill(empty, value)
    # A fault spoils its own query, and no other.
    wrong = judgements.refused
    for fault in faults.values():
        wrong = wrong | layout.any_of(fault)
    ndcg = ndcg.masked_fill(wrong.unsqueeze(-1), math.nan)
    # Counting takes one reduction per fault, and only the message of an error needs the counts.
    counts = None
    if count_faults:
        faults |= label_faults(flavor, labels.to(working_dtype(labels.device)), listed)
        counts = counted_faults(faults)
    if flavor.empty == "raise":
        unanswered = layout.existing(empty.any(-1))
        wrong = wrong | unanswered
        if counts is not None:
            counts = torch.cat([counts[:-1], unanswered.sum().unsqueeze(0)])
    return Result(ndcg, dcg, idcg, empty, wrong, counts)


# -- rows of a padded tensor: the upper ranks, and how many documents score higher ----------------------------------


def _deepest(ks: Sequence[int | None], width: int) -> int:
    """The lowest rank that counts."""
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
    """DCG of each row at each cut-off; `gain` is 0 where a document has no rank."""
    width = layout.width
    depth = _deepest(ks, width)
    # Documents without a rank go last, beside those with the lowest possible score, and are not counted.
    key = _comparable(flavor, scores)
    key = key.masked_fill(~ranked, -math.inf if key.is_floating_point() else torch.iinfo(key.dtype).min)
    # The discounts at ranks 0, 1, ..., depth + 1, with 0 at both ends and beyond each cut-off.
    tables = [pad(table[: n + 1], (0, depth + 1 - n)) for n in (depth if k is None else min(k, depth) for k in ks)]
    runs = _upper_runs(key, ranked, depth)
    return torch.stack([(gain * _of_runs(*runs, discounts)).sum(-1) for discounts in tables], dim=-1)


def _upper_runs(key: Tensor, ranked: Tensor, depth: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each slot: how many score higher; how many of its run or before it have a rank to `depth`; its run's length.

    Slots below `depth` have a run of length 0, after all others.
    """
    if key.dtype in (torch.float16, torch.bfloat16):
        key = key.float()  # not every version of torch searches half precision
    key = key.contiguous()
    rising = key.topk(depth).values.flip(-1)
    edge = rising[..., :1]
    n_to_edge = ((key >= edge) & ranked).sum(-1, keepdim=True)
    not_above = torch.searchsorted(rising, key, right=True)
    below = torch.searchsorted(rising, key)
    # Only the run at the edge can have members that are not among these ranks.
    length = not_above - below + (key == edge) * (n_to_edge - depth)
    return depth - not_above, torch.minimum(depth - below, n_to_edge), length


def _of_runs(before: Tensor, upto: Tensor, length: Tensor, discounts: Tensor) -> Tensor:
    """The mean discount over the ranks of each run."""
    shared = _sum_over(before, upto, discounts) / length.clamp(min=1)
    # A document without a tie has its discount itself: the difference of two sums would lose digits.
    return torch.where(length > 1, shared, discounts[before + 1])


def _sum_over(before: Tensor, upto: Tensor, discounts: Tensor) -> Tensor:
    """The sum of the discounts at ranks before + 1, ..., upto."""
    total = discounts.cumsum(0)
    return total[upto] - total[before]


# -- rules -----------------------------------------------------------------------------------------------------------


def ranked_documents(flavor: Flavor, judgements: Judgements, retrieved: Tensor | None) -> Tensor:
    """Which documents have a rank."""
    ranked = judgements.judged if flavor.unjudged == "condense" else judgements.listed
    return ranked if retrieved is None else ranked & retrieved


def pool_of(flavor: Flavor, judgements: Judgements, ranked: Tensor) -> Tensor:
    """The documents whose gains can matter."""
    return ranked if flavor.ideal in ("recall", "local") else judgements.listed


def table_for(flavor: Flavor, ks: Sequence[int | None], layout: Layout, like: Tensor) -> Tensor:
    """The discounts of every rank that can be asked for, and of rank 0, which is none: 0."""
    depth = layout.width
    if isinstance(layout, Padded):
        depth = _deepest(ks, depth) if _needs_upper_ranks_alone(flavor) else depth
    elif callable(flavor.discount):  # called rank by rank, so it is worth knowing how many there are
        depth = int(layout.position.max())
    if flavor.ideal == "max":
        depth = max(depth, *(k or 0 for k in ks))
    return discount_table(flavor, depth, like.dtype, like.device)


def _needs_upper_ranks_alone(flavor: Flavor) -> bool:
    """Whether no rank below the cut-offs is looked up, in the ranking or in the ideal."""
    upper_ideal = flavor.ideal in ("global", "recall") and flavor.ideal_depth != "all" and not needs_ranking(flavor)
    return upper_ideal and flavor.ties == "average"


def rank(
    flavor: Flavor, layout: Layout, scores: Tensor, ranked: Tensor, gain: Tensor, doc_id: Tensor | None
) -> Ranking:
    """Sort by score, tied documents by the tie rule."""
    # Slots that have no rank may stand anywhere, among tied documents too, since only ranked slots are counted.
    key = _comparable(flavor, scores)
    if key.is_floating_point():
        key = key.masked_fill(key == 0, 0.0)  # -0.0 ties with 0.0, for a radix sort too
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
        second = ~doc_id  # ~doc_id has the reverse order, and unlike -doc_id it cannot overflow
    if second is None:
        order = layout.order_by(key)
    else:
        before = layout.order_by(second)
        order = layout.take(before, layout.order_by(layout.take(key, before)))
    ranked = layout.take(ranked, order)
    return Ranking(order, ranked, tied_runs(layout, layout.take(key, order), ranked))


def expected_discounts(flavor: Flavor, ranking: Ranking, table: Tensor, k: int | None) -> Tensor:
    """The expected discount of each document, in the order of the ranking; 0 beyond the cut-off.

    Where ties are averaged it is the mean of D over the ranks of the document's run, of which those beyond k count 0.
    """
    depth = table.numel() - 1 if k is None else min(k, table.numel() - 1)
    runs = ranking.runs
    table = table[: depth + 1]
    if flavor.ties != "average":
        return _looked_up(table, runs.rank, depth).masked_fill(~ranking.ranked, 0.0)
    total = table.cumsum(0)
    length = runs.upto - runs.before
    shared = (total[runs.upto.clamp(max=depth)] - total[runs.before.clamp(max=depth)]) / length.clamp(min=1)
    # A document without a tie has its discount itself: the difference of two sums would lose digits.
    expected = torch.where(length > 1, shared, _looked_up(table, runs.rank, depth))
    return expected.masked_fill(~ranking.ranked, 0.0)


def _looked_up(table: Tensor, rank: Tensor, depth: int) -> Tensor:
    """The discount at each rank; that of ranks beyond the depth is 0."""
    return pad(table, (0, 1))[rank.clamp(max=depth + 1)]


def too_short(flavor: Flavor, ks: Sequence[int | None], layout: Layout, ranked: Tensor) -> Tensor:
    """Which queries have too few documents for a cut-off to score."""
    n_ranked = layout.per_query(ranked.to(torch.int64))
    least = [(k or 0) if flavor.short_lists == "zero" else 0 for k in ks]
    return torch.stack([n_ranked < n for n in least], dim=-1)


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
    """The ideal DCG of each query at each cut-off; 0 where there is none.

    `ranking` is only looked at where ``needs_ranking`` says so.
    """
    depths: Sequence[int | None] = (None,) * len(ks) if flavor.ideal_depth == "all" else ks
    # The top of the scale at every rank: a sum of discounts, and no gain is looked at.
    if flavor.ideal == "max":
        top = top_gain(flavor, table.dtype)
        total = table.cumsum(0)
        n_ranked = layout.per_query(ranked.to(torch.int64))
        some = layout.per_query(judgements.listed.to(torch.int64)) > 0
        sums = [total[n_ranked] if k is None else total[k].expand(n_ranked.shape) for k in depths]
        if flavor.ideal_depth == "retrieved":
            sums = [total[n_ranked if k is None else n_ranked.clamp(max=k)] for k in depths]
        return torch.stack([(top * at).masked_fill(~some, 0.0) for at in sums], dim=-1)
    # The pool as it is labelled: the ranking has no say in it.
    if not needs_ranking(flavor):
        pool = ranked if flavor.ideal == "recall" else judgements.judged
        limit = layout.per_query(ranked.to(torch.int64)) if flavor.ideal_depth == "retrieved" else None
        if flavor.ideal != "given" and isinstance(layout, Padded):
            # Outside the pool gains are 0, which an ideal of gains above 0 never takes.
            signed_pool = pool if may_be_negative(flavor) else None
            return _best_of_rows(layout, gains, signed_pool, table, depths, limit)
        return _best_first(layout, gains, pool, table, depths, as_given=flavor.ideal == "given", limit=limit)
    # The gain that each rank may expect, because within a run nobody knows whose it is.
    assert ranking is not None
    own = layout.take(gains, ranking.order).masked_fill(~ranking.ranked, 0.0)
    runs = ranking.runs
    expected = own
    if flavor.ties == "average":
        length = (runs.upto - runs.before).clamp(min=1)
        mean = torch.zeros_like(own).scatter_add(-1, runs.number, own).gather(-1, runs.number) / length
        expected = torch.where(length > 1, mean, own)
    # Sorted again among the ranks of each cut-off, or of the recall depth.
    if flavor.ideal == "local":
        columns = [
            _best_first(layout, expected, ranking.ranked & (runs.rank <= (k or layout.width)), table, (None,))
            for k in depths
        ]
        return torch.cat(columns, dim=-1)
    first = flavor.recall_depth or layout.width
    # A tied run that ends within the depth is certain to be retrieved whole; only its order is not.
    expected = torch.where(runs.upto <= first, own, expected)
    return _best_first(layout, expected, ranking.ranked & (runs.rank <= first), table, depths)


def needs_ranking(flavor: Flavor) -> bool:
    """Whether the ideal depends on the scores."""
    return flavor.ideal == "local" or (flavor.ideal == "recall" and flavor.recall_depth is not None)


def tied_runs(layout: Layout, keys: Tensor, counted: Tensor) -> Runs:
    """Ranks and tied runs of slots that stand in the order of their keys."""
    upto_here = counted.cumsum(-1)
    before_here = upto_here - counted.to(upto_here.dtype)
    edge = torch.ones_like(keys[..., :1], dtype=torch.bool)
    new = torch.cat([edge, keys[..., 1:] != keys[..., :-1]], dim=-1) | layout.starts
    last = torch.cat([new[..., 1:], edge], dim=-1)
    # Counts never fall along the last dimension, so the nearest start before (end after) is the largest (smallest).
    before = before_here.masked_fill(~new, 0).cummax(-1).values
    far = torch.iinfo(upto_here.dtype).max
    upto = upto_here.masked_fill(~last, far).flip(-1).cummin(-1).values.flip(-1)
    earlier = layout.at_first(before_here)
    return Runs(upto_here - earlier, before - earlier, upto - earlier, new.cumsum(-1) - 1)


def snapped(ndcg: Tensor) -> Tensor:
    """A perfect ranking may come out as 1 + a few rounding errors; that is 1."""
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
    """DCG of each row at each cut-off of the values in the pool, largest first; a query's own limit cuts too.

    Without a pool, values outside it are 0 and no other is below that, so that they add nothing wherever they stand.
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
    """DCG at each cut-off of the present values, largest first or as given; a query's own limit cuts too."""
    absent = ~present
    order = layout.order_by((torch.zeros_like(values) if as_given else values).masked_fill(absent, -math.inf))
    best = layout.take(values.masked_fill(absent, 0.0), order)
    rank = layout.position
    if limit is not None:
        best = best.masked_fill(rank > layout.per_slot(limit), 0.0)
    terms = best * table[rank.clamp(max=table.numel() - 1)]
    return torch.stack([layout.per_query(terms if k is None else terms.masked_fill(rank > k, 0.0)) for k in ks], dim=-1)


def _comparable(flavor: Flavor, scores: Tensor) -> Tensor:
    """The scores in the precision in which they count as equal."""
    if flavor.score_dtype == "float32":
        return (scores if scores.is_floating_point() else scores.to(working_dtype(scores.device))).float()
    return scores


def _repeated(layout: Layout, doc_id: Tensor, listed: Tensor) -> Tensor:
    """Which listed documents share their id with another one of their query, in some order within the query."""
    order = layout.order_by(doc_id)
    counted = layout.take(listed, order)
    runs = tied_runs(layout, layout.take(doc_id, order), counted)
    return counted & (runs.upto - runs.before > 1)
