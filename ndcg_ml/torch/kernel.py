"""The torch kernel: from order and ties to the expected discount of each document, to DCG; and the ideals.

``expected_discounts`` implements the tie-breaking rules. The ideal is always exact. Nothing here waits for the device,
except callables, which are evaluated on the host.

Rows of a padded tensor do not need a whole ranking under averaged ties. The ranks of a tie group follow from two
counts, of the documents that score higher and of those that score at least as high, and ``topk`` finds both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ndcg_ml._core.labels_gains_discounts import discounts
from ndcg_ml._core.labels_gains_discounts import gain as host_gain
from ndcg_ml._core.labels_gains_discounts import top_gain as host_top_gain
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch.inputs import Batch, Layout, Padded, working_dtype
from ndcg_ml.torch.limits import (
    FAULTS,
    Names,
    add_fault,
    can_inspect,
    is_plain_eager,
    not_mapped,
    once_per_graph,
    refuse,
)
from ndcg_ml.torch.mean import Totals, empty_queries

# -- the totals of a batch ---------------------------------------------------------------------------------------------


def evaluate_or_refuse(
    flavor: Flavor, ks: Sequence[int | None], batch: Batch, names: Names = ("scores", "labels")
) -> Totals:
    """Compute the totals of each query, and raise for faults in the data, under the names of the caller's parameters.

    The host waits for the device, to learn whether there is a fault.
    """
    totals = evaluate(flavor, ks, batch)
    refuse(flavor, totals.faults(flavor), names)
    return totals


def evaluate(flavor: Flavor, ks: Sequence[int | None], batch: Batch) -> Totals:
    """Compute DCG and ideal DCG of each query at each cut-off, from one ranking. The flavor's own `k` is not used."""
    layout, scores, listed = batch.layout, batch.scores, batch.listed
    # Labels become judgements, ranked documents and gains. Faults remain tensors, because reading one would wait.
    unlisted = None if batch.full else ~listed
    judgements = judge(flavor, batch.labels, listed, unlisted, layout)
    ranked = ranked_documents(flavor, judgements, batch.retrieved)
    unranked = unlisted if ranked is listed else ~ranked
    gains = gains_of(flavor, judgements, ideal_pool(flavor, judgements, ranked))
    faults = judgements.faults
    if not scores.is_floating_point():
        faults = add_fault(faults, "equal_scores", layout.any_of(_made_equal(layout, scores, ranked)))
        scores = scores.to(working_dtype(scores.device))
    # Documents without a rank get the lowest possible score.
    key = _comparison_keys(flavor, scores)
    key = key if unranked is None else key.masked_fill(unranked, -math.inf)
    faults = add_fault(faults, "nan_scores", layout.any_of(key.isnan()))
    if batch.doc_id is not None:
        faults = add_fault(faults, "repeated_ids", layout.any_of(_repeated(layout, batch.doc_id, listed)))
    # DCG, without a ranking if only the discounts depend on it.
    ranking = None
    table = table_for(flavor, ks, layout, gains)
    if isinstance(layout, Padded) and flavor.ties == "average" and not needs_ranking(flavor):
        own = gains if batch.retrieved is None else gains.masked_fill(~ranked, 0.0)
        dcg = _dcg_of_rows(ks, key, None if unranked is None else ranked, own, table)
    else:
        ranking = rank(flavor, layout, scores, ranked, gains, batch.doc_id)
        gain = layout.take(gains, ranking.order)
        dcg = torch.stack([layout.per_query(gain * expected_discounts(flavor, ranking, table, k)) for k in ks], dim=-1)
    # Under this rule, a list that is shorter than the cut-off scores 0.
    if flavor.short_lists == "zero":
        dcg = dcg.masked_fill(too_short(ks, layout, ranked), 0.0)
    # The ideal alone decides whether a query is empty, and a fault makes its own query invalid and no other.
    ideal = ideal_dcg(flavor, ks, layout, judgements, gains, ranked, ranking, table)
    filled = listed[:, 0] if batch.full else layout.any_of(listed)
    return Totals(filled, dcg, ideal, empty_queries(ideal), faults)


# -- labels: which of them count, and which are refused ----------------------------------------------------------------


LARGEST = {torch.float64: 2.0**500, torch.float32: 2.0**100}
"""The largest gain for which sums and ratios stay within the working dtype."""


@dataclass(frozen=True)
class Judgements:
    """Labels under the rules of a flavor, one entry per slot."""

    grade: Tensor
    """The label in the working dtype. Only the grades of counted documents with a gain are used."""
    listed: Tensor
    """Slots with a document that is not excluded."""
    judged: Tensor
    """Documents with a label."""
    gainless: Tensor | None
    """Documents for whose grade no formula is evaluated, and whose gain is 0; None if there are none."""
    faults: Tensor
    """The first fault of the labels of each query: see ``add_fault``."""
    dtype: torch.dtype
    """The dtype of the labels."""


def judge(flavor: Flavor, labels: Tensor, listed: Tensor, unlisted: Tensor | None, layout: Layout) -> Judgements:
    """Read the labels of the listed slots. Labels in the other slots are ignored; None if there are none."""
    grade = labels.to(working_dtype(labels.device))
    none = len(FAULTS)
    plain = _requires_nonnegative_labels(flavor)
    smallest, largest = _label_range(flavor, grade.dtype)
    # If reading does not wait for a device, the smallest and largest label show whether any can be refused.
    may_be_small = _may_be_below(labels.dtype, smallest)
    if plain and not may_be_small and isinstance(layout, Padded) and labels.numel() and can_inspect(labels):
        seen = grade if unlisted is None else grade.masked_fill(unlisted, 0.0)
        least, highest = (float(bound) for bound in torch.aminmax(seen))
        if least >= 0 and highest <= largest:
            sound = torch.full(seen.shape[:1], none, dtype=torch.uint8, device=seen.device)
            return Judgements(seen, listed, listed, None, sound, labels.dtype)
    kinds = first_faults(flavor, grade)
    if unlisted is not None:
        kinds = kinds.masked_fill(unlisted, none + 1)
    of_queries = layout.least(kinds)
    # Each operation is a launch on a device. Most flavors need only these.
    if plain:
        return Judgements(grade.masked_fill(kinds != none, 0.0), listed, listed, None, of_queries, labels.dtype)
    faulty = kinds < none
    unjudged, negative = grade.isnan(), grade < 0
    if flavor.negative == "drop":
        listed = listed & ~negative
    # Neither an index of a gain table nor a callable takes a refused label.
    gainless = unjudged | faulty
    if flavor.negative == "zero":
        gainless = gainless | negative
    return Judgements(grade, listed, listed & ~unjudged, gainless, of_queries, labels.dtype)


def first_faults(flavor: Flavor, labels: Tensor) -> Tensor:
    """Find the first fault of each label that the flavor refuses: see ``add_fault``.

    Labels between two bounds have the same fault, so that one search replaces several operations for each kind.
    Compiled code joins the operations itself, a gain table that takes any integer has too many bounds, and the bounds
    of a flavor with a callable are not kept, because it may not be hashable.
    """
    of_any_integer = isinstance(flavor.gain, tuple) and flavor.off_table != "raise"
    has_callable = callable(flavor.gain) or callable(flavor.discount)
    if of_any_integer or has_callable or not is_plain_eager():
        return _compare_with_rules(flavor, labels)
    bounds = constant_tensor(_bounds_of_faults, flavor, labels.dtype, labels.device)
    kinds = constant_tensor(_faults_at_bounds, flavor, labels.dtype, labels.device)
    return kinds[torch.searchsorted(bounds, labels.contiguous(), out_int32=True)]


def _bounds_of_faults(flavor: Flavor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Compute the sorted labels up to which, each included, labels have the same fault as it has."""
    smallest, largest = _label_range(flavor, dtype)
    borders = [0.0, smallest, -smallest, largest, -largest, math.inf, -math.inf]
    if flavor.max_grade is not None:
        borders += [flavor.max_grade, float(np.float32(min(flavor.max_grade, torch.finfo(torch.float32).max)))]
    if isinstance(flavor.gain, tuple):
        borders += range(len(flavor.gain))
    ends = torch.tensor(borders, dtype=dtype, device="cpu")
    before = torch.nextafter(ends, torch.full_like(ends, -math.inf))
    if dtype == torch.float32:  # devices without float64 treat the smallest numbers as 0
        before = before.masked_fill(ends == 0, -torch.finfo(dtype).tiny)
    return torch.cat([before, ends]).sort().values.to(device)


def _faults_at_bounds(flavor: Flavor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Compute the faults of the labels at these bounds, and of NaN, which is after all of them."""
    ends = pad(_bounds_of_faults(flavor, dtype, torch.device("cpu")), (0, 1), value=math.nan)
    return _compare_with_rules(flavor, ends).to(device)


def _compare_with_rules(flavor: Flavor, labels: Tensor) -> Tensor:
    unjudged = labels.isnan()
    infinite = labels.isinf()
    negative = labels < 0
    faults = {"infinite": infinite}
    plain = ~(unjudged | infinite)
    if flavor.unjudged == "raise":
        faults["unjudged"] = unjudged
    if flavor.negative == "raise":
        faults["negative"] = negative
    if flavor.negative != "allow":
        plain = plain & ~negative
    if flavor.max_grade is not None and _has_top(flavor):
        # The top of the scale may be slightly larger in float32: 0.8 is 0.80000001.
        largest = torch.finfo(torch.float32).max
        in_float32 = labels.new_full((), max(-largest, min(flavor.max_grade, largest)), dtype=torch.float32)
        faults["above_scale"] = plain & (labels > flavor.max_grade) & (labels != in_float32)
    if isinstance(flavor.gain, tuple):
        wrong = (labels != labels.floor()) | (labels < 0)
        if flavor.off_table == "raise":
            wrong = wrong | (labels >= len(flavor.gain))
        faults["off_table"] = plain & wrong
    if flavor.gain in ("linear", "exponential"):
        smallest, largest = _label_range(flavor, labels.dtype)
        size = labels.abs()
        faults["large_gains"] = plain & ((size if flavor.gain == "linear" else labels) > largest)
        faults["small_gains"] = plain & (size > 0) & (size < smallest)
    first = torch.full_like(labels, len(FAULTS), dtype=torch.uint8)
    for name, flags in faults.items():
        first = add_fault(first, name, flags)
    return first


def _label_range(flavor: Flavor, dtype: torch.dtype) -> tuple[float, float]:
    """The smallest label above 0 and the largest label whose gains can be summed, for a gain with a formula."""
    largest = LARGEST[dtype]
    if flavor.gain == "linear":
        return 1 / largest, largest
    if flavor.gain == "exponential":  # 2^y - 1 is y log(2) for small y
        return 1 / largest / math.log(2), math.log2(largest)
    return 0.0, torch.finfo(dtype).max


def _may_be_below(dtype: torch.dtype, number: float) -> bool:
    """Whether this dtype has labels between 0 and `number`; float32 and narrower dtypes have none on a CPU."""
    return dtype.is_floating_point and torch.finfo(dtype).tiny * torch.finfo(dtype).eps < number


def _requires_nonnegative_labels(flavor: Flavor) -> bool:
    """Whether every finite label >= 0 within the range of the gain is accepted, and no other label."""
    return (
        flavor.negative == flavor.unjudged == "raise"
        and isinstance(flavor.gain, str)
        and (flavor.max_grade is None or not _has_top(flavor))
    )


def _has_top(flavor: Flavor) -> bool:
    """Whether labels are compared with the top of the scale."""
    return flavor.ideal != "max" or flavor.gain not in ("binary", "judged")


def ranked_documents(flavor: Flavor, judgements: Judgements, retrieved: Tensor | None) -> Tensor:
    """Flag the documents that have a rank."""
    ranked = judgements.judged if flavor.unjudged == "condense" else judgements.listed
    return ranked if retrieved is None else ranked & retrieved


def ideal_pool(flavor: Flavor, judgements: Judgements, ranked: Tensor) -> Tensor:
    """Flag the documents whose gains are used."""
    return ranked if flavor.ideal in ("recall", "local") else judgements.listed


def too_short(ks: Sequence[int | None], layout: Layout, ranked: Tensor) -> Tensor:
    """Flag the queries with fewer documents than a cut-off."""
    n_ranked = layout.per_query(ranked.to(torch.int64))
    return torch.stack([n_ranked < (k or 0) for k in ks], dim=-1)


# -- gains -------------------------------------------------------------------------------------------------------------


def gains_of(flavor: Flavor, judgements: Judgements, counted: Tensor) -> Tensor:
    """Compute the gains of the counted documents; other slots have gain 0.

    Raises
    ------
    ValueError
        A gain of the table, or of a callable, is too large or too small. (``judge`` refuses labels with such a gain
        under a formula.)
    """
    # Slots that are not listed have grade 0 already; documents that do not count get it here.
    if judgements.gainless is not None:
        counted = counted & ~judgements.gainless
    grade = judgements.grade
    if counted is not judgements.listed:
        grade = grade.masked_fill(~counted, 0.0)
    if flavor.ideal == "max" and _has_top(flavor):
        grade = grade.clamp(max=flavor.max_grade)
    if flavor.gain == "exponential":
        return _exponential(grade) if judgements.dtype.is_floating_point else torch.exp2(grade) - 1.0
    # Under the gains below, grade 0 may have a gain other than 0, which excluded slots must not have.
    if isinstance(flavor.gain, tuple):
        _check_size(flavor.gain, grade.dtype)
        beyond = len(flavor.gain)
        table = constant_tensor(_gain_table, flavor.gain, grade.dtype, grade.device)
        return table[grade.clamp(max=beyond).long()].masked_fill(~counted, 0.0)
    if callable(flavor.gain):
        return _call_gain(flavor, grade, counted)
    if flavor.gain == "binary":
        return (grade > 0).to(grade.dtype)
    if flavor.gain == "judged":
        return counted.to(grade.dtype)
    return grade


# Compiled code cannot trace NumPy, but the flavor is constant.
@once_per_graph
def top_gain(flavor: Flavor, dtype: torch.dtype) -> float:
    """Compute the gain of ``max_grade``, which all documents of the ideal "max" have."""
    top = host_top_gain(flavor)
    _check_size([top], dtype)
    return top


def _check_size(gains: Sequence[float], dtype: torch.dtype) -> None:
    """Refuse gains, other than 0, that are too large or too small for sums in the working dtype."""
    power = f"{math.log2(LARGEST[dtype]):g}"
    largest = max(gains, key=abs, default=0.0)
    if abs(largest) > LARGEST[dtype]:
        raise ValueError(f"gains must be at most 2**{power}; got {largest:g}. Use a gain table or smaller grades.")
    least = min([gain for gain in gains if gain], key=abs, default=1.0)
    if abs(least) < 1 / LARGEST[dtype]:
        raise ValueError(f"gains must be 0 or at least 2**-{power}; got {least:g}. Use a gain table or larger grades.")


def _exponential(grade: Tensor) -> Tensor:
    """Compute 2^grade - 1."""
    # expm1 is accurate for small fractions, and exp2 is exact for integers.
    small = grade.abs() < 1
    whole = grade.floor()
    power = torch.exp2(grade - whole) * torch.exp2(whole)
    return torch.where(small, torch.expm1(grade * math.log(2.0)), power - 1.0)


def _call_gain(flavor: Flavor, grade: Tensor, counted: Tensor) -> Tensor:
    with not_mapped(
        f"flavor.gain must be a name or a table if torch.func.vmap maps over labels; got the callable "
        f"{flavor.gain!r}, which is evaluated on the host. Use 'linear', 'exponential' or a table."
    ):
        distinct, at = torch.unique(grade[counted], return_inverse=True)
    values = host_gain(flavor, np.array(distinct.tolist(), dtype=np.float64)).tolist()
    _check_size(values, grade.dtype)
    gain = torch.zeros_like(grade)
    gain[counted] = torch.tensor(values, dtype=grade.dtype, device=grade.device)[at]
    return gain


def may_be_negative(flavor: Flavor) -> bool:
    """Whether a gain can be below 0."""
    if isinstance(flavor.gain, tuple):
        return bool(min(flavor.gain) < 0)
    return callable(flavor.gain) or (flavor.negative == "allow" and flavor.gain in ("linear", "exponential"))


# -- discounts ---------------------------------------------------------------------------------------------------------


def discount_at(flavor: Flavor, ranks: Tensor) -> Tensor:
    """Compute D(r) at real ranks r >= 1, differentiable in r, for a named discount; a callable needs integer ranks."""
    return DISCOUNTS[str(flavor.discount)](ranks)


DISCOUNTS: dict[str, Callable[[Tensor], Tensor]] = {
    "log2": lambda ranks: torch.log2(ranks + 1.0).reciprocal(),
    "jarvelin": lambda ranks: torch.log2(ranks).clamp(min=1.0).reciprocal(),
    "reciprocal": torch.reciprocal,
    "ln": lambda ranks: torch.log(ranks + 1.0).reciprocal(),
    "none": lambda ranks: 0.0 * ranks + 1.0,  # in the graph, so that a loss has a gradient of 0
}


class Discounts(NamedTuple):
    """Discounts of all ranks that are used."""

    at: Tensor
    """0, D(1), D(2), ... Entry 0 is for slots without a rank."""
    sums: Tensor
    """The cumulative sums of `at`."""
    before: Tensor
    """0, 1, 2, ... The number of ranks before each one."""


def discount_table(flavor: Flavor, depth: int, dtype: torch.dtype, device: torch.device) -> Discounts:
    """Compute the entries for ranks 0, 1, ..., `depth`."""
    if callable(flavor.discount):
        table = _stack_sums(torch.from_numpy(discounts(flavor, depth)).to(dtype)).to(device)
    else:  # few lengths, so that few tables are computed and kept
        n = 1 << depth.bit_length() if is_plain_eager() else depth
        table = constant_tensor(_named_discounts, flavor.discount, n, dtype, device)
    return Discounts(*table[:, : depth + 1].unbind())


def _named_discounts(name: str, n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    # The host adds, because CUDA has no deterministic cumulative sum of floats. Compiled code stays on the device.
    host = device if torch.compiler.is_compiling() else torch.device("cpu")
    return _stack_sums(DISCOUNTS[name](torch.arange(1, n + 1, dtype=dtype, device=host))).to(device)


def _stack_sums(discounts: Tensor) -> Tensor:
    at = pad(discounts, (1, 0))
    return torch.stack([at, at.cumsum(0), torch.arange(at.numel(), dtype=at.dtype, device=at.device)])


def _gain_table(gain: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor((*gain, 0.0), dtype=dtype, device=device)


def constant_tensor(make: Callable[..., Tensor], *arguments: Hashable) -> Tensor:
    """Call a function of constants, in plain eager code once, because a copy to a device makes the host wait."""
    return _keep(make, *arguments) if is_plain_eager() else make(*arguments)


@lru_cache(maxsize=128)
def _keep(make: Callable[..., Tensor], *arguments: Hashable) -> Tensor:
    with torch.inference_mode(False):  # for backward passes as well
        return make(*arguments)


def table_for(flavor: Flavor, ks: Sequence[int | None], layout: Layout, like: Tensor) -> Discounts:
    """Compute the discounts of all ranks that are used."""
    depth = layout.width
    if isinstance(layout, Padded):
        # Under averaged ties without a ranking, only an ideal of all ranks uses those below the cut-offs.
        if flavor.ideal_depth != "all" and flavor.ties == "average" and not needs_ranking(flavor):
            depth = _deepest(ks, depth)
    elif callable(flavor.discount):  # called once per rank, so compute no more than needed
        depth = int(layout.position.max())
    if flavor.ideal == "max":
        depth = max(depth, *(k or 0 for k in ks))
    return discount_table(flavor, depth, like.dtype, like.device)


def _deepest(ks: Sequence[int | None], width: int) -> int:
    """The deepest rank within any cut-off."""
    return max(width if k is None else min(k, width) for k in ks)


# -- DCG of rows, from their upper scores ------------------------------------------------------------------------------


def _dcg_of_rows(
    ks: Sequence[int | None], key: Tensor, ranked: Tensor | None, gain: Tensor, table: Discounts
) -> Tensor:
    """Compute DCG of each row at each cut-off.

    `ranked` is None if all slots have a rank. The others have gain 0 and key -inf.
    """
    if key.dtype in (torch.float16, torch.bfloat16):
        key = key.float()  # some versions of torch cannot search half precision
    key = -key.contiguous()
    depth = _deepest(ks, key.shape[-1])
    rising = key.topk(depth, largest=False).values
    edge = rising[..., -1:]
    to_edge = key <= edge
    if ranked is not None:
        to_edge = to_edge & ranked
    n_to_edge = to_edge.sum(-1, keepdim=True, dtype=torch.int32)
    # The first document of each tie group finds the group's last rank and its length; the others are not used.
    upto = torch.searchsorted(rising, rising, right=True, out_int32=True)
    # Only the tie group at the edge can extend beyond these ranks.
    upto = torch.where(rising == edge, n_to_edge, upto)
    length = upto - table.before[:depth]
    first = torch.searchsorted(rising, key)
    columns = []
    for cut in (depth if k is None else min(k, depth) for k in ks):
        shared = table.sums[upto[..., :cut].clamp(max=cut)] - table.sums[:cut]
        mean = _mean_discounts(shared, length[..., :cut], table.at[1 : cut + 1])
        of_slots = pad(mean, (0, depth + 1 - cut)).gather(-1, first)  # 0 for groups below the cut-off
        columns.append((gain * of_slots).sum(-1))
    return torch.stack(columns, dim=-1)


def _mean_discounts(shared: Tensor, length: Tensor, alone: Tensor) -> Tensor:
    """Divide the discounts of each tie group by its length. A document without a tie has the discount `alone`.

    Its share, the difference of two sums, would lose digits.
    """
    return torch.where(length > 1, shared / length, alone)


# -- the ranking, its tie groups, and the expected discounts -----------------------------------------------------------


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


def _comparison_keys(flavor: Flavor, scores: Tensor) -> Tensor:
    """Convert the scores to the precision in which they are compared."""
    return scores.float() if flavor.score_dtype == "float32" else scores


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


def expected_discounts(flavor: Flavor, ranking: Ranking, table: Discounts, k: int | None) -> Tensor:
    """Compute the expected discount of each document, in ranked order; 0 beyond the cut-off.

    Under averaged ties it is the mean of D over the ranks of the document's tie group, with D = 0 beyond the cut-off.
    """
    depth = table.at.numel() - 1 if k is None else min(k, table.at.numel() - 1)
    groups = ranking.groups
    expected = table.at[groups.rank.masked_fill(groups.rank > depth, 0)]
    if flavor.ties == "average":
        shared = table.sums[groups.upto.clamp(max=depth)] - table.sums[groups.before.clamp(max=depth)]
        expected = _mean_discounts(shared, groups.upto - groups.before, expected)
    return expected.masked_fill(~ranking.ranked, 0.0)


# -- the ideal ---------------------------------------------------------------------------------------------------------


def ideal_dcg(
    flavor: Flavor,
    ks: Sequence[int | None],
    layout: Layout,
    judgements: Judgements,
    gains: Tensor,
    ranked: Tensor,
    ranking: Ranking | None,
    table: Discounts,
) -> Tensor:
    """Compute the ideal DCG of each query at each cut-off; 0 if there is none.

    `ranking` is only used if ``needs_ranking``.
    """
    depths: Sequence[int | None] = (None,) * len(ks) if flavor.ideal_depth == "all" else ks
    # The top of the scale at every rank: a sum of discounts.
    if flavor.ideal == "max":
        top, total = top_gain(flavor, table.sums.dtype), table.sums
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
            return _best_of_rows(layout, gains, signed_pool, table.at, depths, limit)
        return _best_first(layout, gains, pool, table.at, depths, as_given=flavor.ideal == "given", limit=limit)
    # The expected gain at each rank: the mean over a tie group.
    assert ranking is not None
    own = layout.take(gains, ranking.order).masked_fill(~ranking.ranked, 0.0)
    groups = ranking.groups
    expected = own
    if flavor.ties == "average":
        length = (groups.upto - groups.before).clamp(min=1)
        expected = torch.zeros_like(own).scatter_add(-1, groups.number, own).gather(-1, groups.number) / length
    # The ideal order of the documents within each cut-off, or within the recall depth.
    if flavor.ideal == "local":
        columns = [
            _best_first(layout, expected, ranking.ranked & (groups.rank <= (k or layout.width)), table.at, (None,))
            for k in depths
        ]
        return torch.cat(columns, dim=-1)
    first = flavor.recall_depth or layout.width
    # A tie group that ends within the depth is retrieved completely, so its own gains are certain.
    expected = torch.where(groups.upto <= first, own, expected)
    return _best_first(layout, expected, ranking.ranked & (groups.rank <= first), table.at, depths)


def needs_ranking(flavor: Flavor) -> bool:
    """Whether the ideal depends on the scores."""
    return flavor.ideal == "local" or (flavor.ideal == "recall" and flavor.recall_depth is not None)


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
    pool: Tensor,
    table: Tensor,
    ks: Sequence[int | None],
    *,
    as_given: bool = False,
    limit: Tensor | None = None,
) -> Tensor:
    """Compute DCG at each cut-off of the values in the pool, largest first or as given. `limit` is as above."""
    outside = ~pool
    order = layout.order_by((torch.zeros_like(values) if as_given else values).masked_fill(outside, -math.inf))
    best = layout.take(values.masked_fill(outside, 0.0), order)
    rank = layout.position
    if limit is not None:
        best = best.masked_fill(rank > layout.per_slot(limit), 0.0)
    terms = best * table[rank.clamp(max=table.numel() - 1)]
    return torch.stack([layout.per_query(terms if k is None else terms.masked_fill(rank > k, 0.0)) for k in ks], dim=-1)


# -- faults of scores and document ids ---------------------------------------------------------------------------------


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
