"""The kernel: order and ties -> the expected discount of each document -> DCG; and the ideals.

``expected_discounts`` is the one place where the tie rule becomes numbers. The ideal is always exact. Nothing here
waits for the device, apart from callables, which are evaluated on the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ndcg_ml.flavor import Flavor
from ndcg_ml.torch._faults import FAULTS
from ndcg_ml.torch._gains import Gains, Judgements, discount_table, gains_of, judge, times_power_of_two
from ndcg_ml.torch._layout import Layout

__all__ = ["Result", "Runs", "evaluate", "snapped", "tied_runs", "working_dtype"]


@dataclass(frozen=True)
class Result:
    """What the kernel found, per query and cut-off: shape (n_queries, n_cutoffs)."""

    ndcg: Tensor
    """nan where the query is invalid, or empty and without a value for that."""
    dcg: Tensor
    idcg: Tensor
    empty: Tensor
    faults: Tensor
    """How often each of ``FAULTS`` occurred."""


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


@dataclass(frozen=True)
class Repeats:
    """Which documents their query lists elsewhere too, one entry per slot."""

    copy: Tensor
    """All but one of a document: the first in the input that is ranked, or the first where none is."""
    again: Tensor
    """The ranked ones but the first in the ranking."""
    tied: Tensor
    """The second in the ranking, where its score ties with the first."""
    unequal: Tensor
    """A copy with another label than the one before."""


def working_dtype(device: torch.device) -> torch.dtype:
    """float64, or float32 on devices that have no other."""
    return torch.float32 if device.type == "mps" else torch.float64


def evaluate(
    flavor: Flavor,
    ks: Sequence[int | None],
    layout: Layout,
    scores: Tensor,
    labels: Tensor,
    listed: Tensor,
    retrieved: Tensor | None = None,
    doc_id: Tensor | None = None,
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
        Slots as the layout has them; labels in the working dtype.
    listed : Tensor of bool
        Which slots hold a document.
    retrieved : Tensor of bool or None
        Which documents are ranked; None is all.
    doc_id : Tensor of int or None

    Returns
    -------
    Result
    """
    judgements = judge(flavor, labels, listed)
    faults = dict(judgements.faults)
    if doc_id is not None and flavor.duplicates == "raise":
        faults["repeated_ids"] = _repeated(layout, doc_id, listed)
    ranked = ranked_documents(flavor, judgements, retrieved)
    faults["nan_scores"] = scores.isnan() & ranked
    gains = gains_of(flavor, judgements, pool_of(flavor, judgements, ranked), layout)
    ranking = rank(flavor, layout, scores, ranked, gains.gain, doc_id)
    credited = gains
    if doc_id is not None and flavor.duplicates != "raise":
        repeats = repeats_of(layout, doc_id, listed, labels, ranked, ranking)
        faults["unequal_repeats"] = repeats.unequal
        judgements = replace(judgements, judged=judgements.judged & ~repeats.copy)
        if flavor.duplicates == "first":
            credited = replace(gains, gain=torch.where(repeats.again, 0.0, gains.gain))
            if flavor.ties == "average":
                faults["tied_repeats"] = repeats.tied
    table = table_for(flavor, ks, layout, labels)
    of_ranks = flavor.ideal in ("recall", "local")
    idcg = ideal_dcg(flavor, ks, layout, judgements, credited if of_ranks else gains, ranked, ranking, table)
    gain = torch.where(ranking.ranked, layout.take(credited.gain, ranking.order), 0.0)
    dcg = torch.stack([layout.per_query(gain * expected_discounts(flavor, ranking, table, k)) for k in ks], dim=-1)
    dcg = torch.where(too_short(flavor, ks, layout, ranked), 0.0, dcg)
    empty = ~(idcg > 0)
    value = flavor.empty if isinstance(flavor.empty, float) else math.nan
    ndcg = torch.where(empty, value, snapped(dcg / torch.where(empty, 1.0, idcg)))

    counts = {name: fault.sum() for name, fault in faults.items()}
    if flavor.empty == "raise":
        counts["empty"] = (empty.any(-1) & layout.exists).sum()
    invalid = torch.stack(list(faults.values())).any(0)
    ndcg = torch.where(layout.per_query(invalid.to(dcg.dtype)).unsqueeze(-1) > 0, math.nan, ndcg)
    none = torch.zeros((), dtype=torch.int64, device=scores.device)
    counted = torch.stack([counts.get(name, none) for name in FAULTS])
    exponent = gains.exponent.unsqueeze(-1)
    return Result(ndcg, times_power_of_two(dcg, exponent), times_power_of_two(idcg, exponent), empty, counted)


def ranked_documents(flavor: Flavor, judgements: Judgements, retrieved: Tensor | None) -> Tensor:
    """Which documents have a rank."""
    ranked = judgements.judged if flavor.unjudged == "condense" else judgements.listed
    return ranked if retrieved is None else ranked & retrieved


def pool_of(flavor: Flavor, judgements: Judgements, ranked: Tensor) -> Tensor:
    """The documents whose gains can matter; another one's, however large, must not set the scale."""
    return ranked if flavor.ideal in ("recall", "local") else judgements.listed


def table_for(flavor: Flavor, ks: Sequence[int | None], layout: Layout, like: Tensor) -> Tensor:
    """The discounts of every rank that can be asked for."""
    depth = layout.width
    if callable(flavor.discount):  # called rank by rank, so it is worth knowing how many there are
        depth = int(layout.position.max())
    if flavor.ideal == "max":
        depth = max(depth, *(k or 0 for k in ks))
    return discount_table(flavor, depth, like.dtype, like.device)


def rank(
    flavor: Flavor, layout: Layout, scores: Tensor, ranked: Tensor, gain: Tensor, doc_id: Tensor | None
) -> Ranking:
    """Sort by score, tied documents by the tie rule."""
    # Slots that have no rank may stand anywhere, among tied documents too, since only ranked slots are counted.
    key = _comparable(flavor, scores)
    if key.is_floating_point():
        key = torch.where(key == 0, 0.0, key)  # -0.0 ties with 0.0, for a radix sort too
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
        second = ~doc_id  # which has the reverse order, and unlike -doc_id no overflow
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
    own = torch.where(ranking.ranked & (runs.rank <= depth), table[runs.rank], 0.0)
    if flavor.ties != "average":
        return own
    total = table.cumsum(0)
    length = runs.upto - runs.before
    shared = (total[runs.upto.clamp(max=depth)] - total[runs.before.clamp(max=depth)]) / length.clamp(min=1)
    # A document without a tie has its discount itself: the difference of two sums would lose digits.
    return torch.where(ranking.ranked, torch.where(length > 1, shared, own), 0.0)


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
    gains: Gains,
    ranked: Tensor,
    ranking: Ranking | None,
    table: Tensor,
) -> Tensor:
    """The ideal DCG of each query at each cut-off; 0 where there is none.

    `ranking` is only looked at where ``needs_ranking`` says so.
    """
    depths: Sequence[int | None] = (None,) * len(ks) if flavor.ideal_depth == "all" else ks
    if flavor.ideal == "max":
        assert gains.top is not None
        total = table.cumsum(0)
        n_ranked = layout.per_query(ranked.to(torch.int64))
        some = layout.per_query(judgements.listed.to(torch.int64)) > 0
        sums = [total[n_ranked] if k is None else total[k].expand_as(gains.top) for k in depths]
        if flavor.ideal_depth == "retrieved":
            sums = [total[n_ranked if k is None else n_ranked.clamp(max=k)] for k in depths]
        return torch.stack([torch.where(some, gains.top * at, 0.0) for at in sums], dim=-1)
    if not needs_ranking(flavor):
        pool = ranked if flavor.ideal == "recall" else judgements.judged
        limit = layout.per_query(ranked.to(torch.int64)) if flavor.ideal_depth == "retrieved" else None
        return _best_first(layout, gains.gain, pool, table, depths, as_given=flavor.ideal == "given", limit=limit)
    assert ranking is not None
    own = torch.where(ranking.ranked, layout.take(gains.gain, ranking.order), 0.0)
    runs = ranking.runs
    expected = own
    if flavor.ties == "average":
        length = (runs.upto - runs.before).clamp(min=1)
        mean = torch.zeros_like(own).scatter_add(-1, runs.number, own).gather(-1, runs.number) / length
        expected = torch.where(length > 1, mean, own)
    if flavor.ideal == "local":
        columns = [
            _best_first(layout, expected, ranking.ranked & (runs.rank <= (k or layout.width)), table, (None,))
            for k in depths
        ]
        return torch.cat(columns, dim=-1)
    first = flavor.recall_depth or layout.width
    # Who is in a run that ends within the depth is certain, only the order is not.
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
    before = torch.where(new, before_here, 0).cummax(-1).values
    far = torch.iinfo(upto_here.dtype).max
    upto = torch.where(last, upto_here, far).flip(-1).cummin(-1).values.flip(-1)
    earlier = layout.at_first(before_here)
    return Runs(upto_here - earlier, before - earlier, upto - earlier, new.cumsum(-1) - 1)


def snapped(ndcg: Tensor) -> Tensor:
    """A perfect ranking may come out as 1 + a few rounding errors; that is 1."""
    rounding = 1e-12 if ndcg.dtype == torch.float64 else 1e-6
    return torch.where((ndcg > 1) & (ndcg < 1 + rounding), 1.0, ndcg)


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
    order = layout.order_by(torch.where(present, 0.0 if as_given else values, -math.inf))
    best = layout.take(torch.where(present, values, 0.0), order)
    rank = layout.position
    if limit is not None:
        best = torch.where(rank <= layout.per_slot(limit), best, 0.0)
    terms = best * table[rank.clamp(max=table.numel() - 1)]
    return torch.stack(
        [layout.per_query(terms if k is None else torch.where(rank <= k, terms, 0.0)) for k in ks], dim=-1
    )


def _comparable(flavor: Flavor, scores: Tensor) -> Tensor:
    """The scores in the precision in which they count as equal."""
    if flavor.score_dtype == "float32":
        return (scores if scores.is_floating_point() else scores.to(working_dtype(scores.device))).float()
    return scores


def repeats_of(
    layout: Layout, doc_id: Tensor, listed: Tensor, labels: Tensor, ranked: Tensor, ranking: Ranking
) -> Repeats:
    """The repeats of documents within a query, by their ids."""

    def counted_by_id(order: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
        """The slots by id, the counted ones first and else in this order; and which number they are of their id."""
        order = layout.take(order, layout.order_by(layout.take(counted, order)))
        order = layout.take(order, layout.order_by(layout.take(doc_id, order)))
        ids, flags = layout.take(doc_id, order), layout.take(counted > 0, order)
        runs = tied_runs(layout, ids, flags)
        return order, torch.where(flags, runs.rank - runs.before, 0)

    def in_place(flags: Tensor, order: Tensor) -> Tensor:
        return layout.take(flags, order.argsort(-1))

    by_input, number = counted_by_id(layout.order_by(torch.zeros_like(doc_id)), listed.int() + (listed & ranked).int())
    label = layout.take(labels, by_input)
    before = label.roll(1, -1)
    unequal = (number > 1) & (label != before) & ~(label.isnan() & before.isnan())
    by_rank, place = counted_by_id(ranking.order, ranked.int())
    run = layout.take(in_place(ranking.runs.number, ranking.order), by_rank)
    return Repeats(
        copy=in_place(number > 1, by_input),
        again=in_place(place > 1, by_rank),
        tied=in_place((place == 2) & (run == run.roll(1, -1)), by_rank),
        unequal=in_place(unequal, by_input),
    )


def _repeated(layout: Layout, doc_id: Tensor, listed: Tensor) -> Tensor:
    """Which listed documents share their id with another one of their query, in some order within the query."""
    order = layout.order_by(doc_id)
    counted = layout.take(listed, order)
    runs = tied_runs(layout, layout.take(doc_id, order), counted)
    return counted & (runs.upto - runs.before > 1)
