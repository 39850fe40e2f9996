"""The largest difference of two systems in queries where each has an ideal of its own, or tied runs that grades order.

`ndcg_ml._unjudged.completions` maximises one ratio. Here a query needs more:

- Under ties="best" or "worst" the order of a tied run follows the grades of its unjudged documents. All grades of these
  documents are tried; documents in the same runs are interchangeable, so that only their counts per grade differ. What
  is left of the query has fixed discounts.
- Where the two ideals differ, the difference is one ratio less another. Given how many unjudged documents of each part
  of the two pools have each grade, both ideals are fixed, and the difference is linear in the gains: by the
  rearrangement inequality it is largest if the largest gains stand at the largest w_b / ideal_b - w_a / ideal_a.
  Documents that matter in one system alone need no product of counts: for given counts of the shared documents their
  system's ratio is (s + n) / ideal, a line in what the shared documents add, s, and only lines on the envelope count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import BoolArray, FloatArray, IntArray
from ndcg_ml._unjudged.completions import Best, Open, largest
from ndcg_ml._unjudged.documents import RangeError

# Completions of tied runs, and of counts per grade, that one query may have.
_MOST_COMPLETIONS = 100_000
_MOST_PAIRS = 2_000_000
# Pairs of lines that are worked on at once.
_AT_ONCE = 1 << 13


@dataclass(frozen=True, slots=True, eq=False)
class TwoSides:
    """The queries of two systems that need more than one ratio, with the part of each document in both systems.

    Attributes
    ----------
    apart, moving : ndarray of bool, shape (n_queries,)
        Whether the two ideals of the query differ; whether its grades order a tied run.
    query : ndarray of int, shape (n_documents,)
        The query of each document, ascending.
    gain : ndarray of float
        NaN where it is unjudged.
    weight, pooled, times : ndarray, shape (n_documents, 2)
        The discount in a and in b, 0 in a run that grades order (over the ideal, where that is fixed); whether and how
        often the gain enters the ideal.
    run : ndarray of int, shape (n_documents, 2)
        The number of the run that grades order; -1 outside of one.
    start, depth : ndarray of int, shape (n_documents, 2)
        The first rank of that run, from 0, and where the ranking is cut.
    over : ndarray of float, shape (n_queries, 2)
        What the discounts of such runs are multiplied by: 1 over the ideal, where that is fixed.
    cut : ndarray of int, shape (n_queries, 2)
        Where each ideal ends, in ranks.
    constant : ndarray of float, shape (n_queries,)
        What else adds to the difference.
    fixed : ndarray of float, shape (n_queries,), or None
        The ideal of the difference, where no label changes it.
    to_rank : ndarray of float
        Prefix sums of the discounts, 0 first.
    best_first : bool
        Whether the highest gain of a run ranks first.
    empty : float or str
        What an empty query scores, as the flavor has it.
    """

    apart: BoolArray
    moving: BoolArray
    query: IntArray
    gain: FloatArray
    weight: FloatArray
    pooled: BoolArray
    times: IntArray
    run: IntArray
    start: IntArray
    depth: IntArray
    over: FloatArray
    cut: IntArray
    constant: FloatArray
    fixed: FloatArray | None
    to_rank: FloatArray
    best_first: bool
    empty: float | str

    @property
    def queries(self) -> BoolArray:
        """Which queries these are."""
        return self.apart | self.moving

    def largest(self, scale: FloatArray, plus: int) -> Best:
        """The largest NDCG of side `plus` less that of the other side, in each of these queries.

        Raises
        ------
        RangeError
            There are too many completions, or a query may be empty in one system alone.
        """
        wanted = np.flatnonzero(self.queries)
        ratio, empty = np.full(wanted.size, -np.inf), np.zeros(wanted.size, dtype=bool)
        begins = np.searchsorted(self.query, wanted)
        ends = np.searchsorted(self.query, wanted, side="right")
        for at, (query, begin, end) in enumerate(zip(wanted.tolist(), begins.tolist(), ends.tolist(), strict=True)):
            documents = slice(begin, end)
            if self.apart[query]:
                ratio[at], empty[at] = self._two_ideals(query, documents, scale, plus)
            else:
                ratio[at], empty[at] = self._one_ideal(query, documents, scale, plus)
        return Best(ratio, empty)

    def differences(self, query: int, gains: FloatArray) -> tuple[FloatArray, BoolArray]:
        """NDCG of b less that of a under rows of gains of the query's documents, and whether both have an ideal."""
        documents = slice(*np.searchsorted(self.query, [query, query + 1]).tolist())
        out, counts = np.full(len(gains), self.constant[query]), np.ones(len(gains), dtype=bool)
        for side, sign in ((0, -1.0), (1, 1.0)):
            numerator = gains @ self.weight[documents, side] + self._of_runs(query, documents, gains, side)
            if self.fixed is not None:
                out += sign * numerator
                continue
            pool = np.flatnonzero(self.pooled[documents, side])
            often = np.repeat(pool, self.times[documents][pool, side])
            best = -np.sort(-gains[:, often], axis=1)[:, : self.cut[query, side]]
            ideal = best @ np.diff(self.to_rank)[: best.shape[1]]
            empty = 0.0 if isinstance(self.empty, str) else self.empty
            out += sign * np.divide(numerator, ideal, out=np.full(ideal.shape, empty), where=ideal > 0)
            counts &= (ideal > 0) | (not isinstance(self.empty, str))
        if self.fixed is not None:
            counts &= self.fixed[query] > 0
        elif not self.apart[query]:
            return np.where(counts, out, 0.0), counts
        return out, counts

    # -- runs that grades order ----------------------------------------------------------------------------------------

    def _of_runs(self, query: int, documents: slice, gains: FloatArray, side: int) -> FloatArray:
        """What the runs of a query add to the numerator of a side, under each row of gains of its documents."""
        out, run = np.zeros(len(gains)), self.run[documents, side]
        for number in np.unique(run[run >= 0]).tolist():
            inside = np.flatnonzero(run == number)
            first = documents.start + inside[0]
            ranks = self.start[first, side] + np.arange(inside.size + 1)
            discounts = np.diff(self.to_rank[np.minimum(ranks, self.depth[first, side])])
            ordered = np.sort(gains[:, inside], axis=1)
            out += (ordered[:, ::-1] if self.best_first else ordered) @ discounts
        out *= self.over[query, side]
        return out

    def _orders(self, query: int, documents: slice, scale: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The gains of the query's documents under all grades of those whose run they order, NaN for the others.

        The second array says which documents are still open.
        """
        gain = self.gain[documents]
        unjudged = np.isnan(gain)
        moves = unjudged & (self.run[documents] >= 0).any(axis=1)
        # Documents that stand in the same runs, weigh the same elsewhere and enter the same ideals are one class.
        classes: dict[tuple[float, ...], list[int]] = {}
        for at in np.flatnonzero(moves).tolist():
            row = documents.start + at
            key = (*self.run[row].tolist(), *self.weight[row].tolist(), *self.pooled[row].tolist())
            classes.setdefault(key, []).append(at)
        sizes = [len(some) for some in classes.values()]
        number = math.prod(math.comb(size + scale.size - 1, size) for size in sizes)
        _refuse_many(
            number, _MOST_COMPLETIONS, f"tied runs that hold {sum(sizes)} unjudged documents", "ties='best' or 'worst'"
        )
        rows = np.tile(gain, (number, 1))
        before = 1
        for some in classes.values():
            choices = np.array(list(itertools.combinations_with_replacement(scale.tolist(), len(some))))
            each = np.arange(number) // before % len(choices)
            rows[:, some] = choices[each]
            before *= len(choices)
        return rows, unjudged & ~moves

    def _one_ideal(self, query: int, documents: slice, scale: FloatArray, plus: int) -> tuple[float, bool]:
        """The largest difference over one ideal: every order of the tied runs is a query of its own."""
        sign = 1.0 if plus else -1.0
        rows, still = self._orders(query, documents, scale)
        n = len(rows)
        known = np.where(still, 0.0, rows)
        weight = sign * (self.weight[documents, 1] - self.weight[documents, 0])
        constant = sign * self.constant[query] + known @ weight
        for side in (0, 1):
            constant += (1.0 if side == plus else -1.0) * self._of_runs(query, documents, known, side)
        pooled = self.pooled[documents, 0]
        judged, count = np.flatnonzero(pooled & ~still), int(still.sum())
        many = self.times[documents, 0][judged]
        best = largest(
            Open(
                constant=constant,
                query=np.repeat(np.arange(n), count),
                weight=np.tile(weight[still], n),
                pooled=np.tile(pooled[still], n),
                judged_query=np.repeat(np.arange(n), int(many.sum())),
                judged_gain=np.repeat(known[:, judged], many, axis=1).reshape(-1),
                to_rank=self.to_rank,
                cut=np.full(n, self.cut[query, 0]),
                fixed=None if self.fixed is None else np.full(n, self.fixed[query]),
            ),
            scale,
        )
        return float(best.ratio.max()), bool(best.may_be_empty.any())

    # -- two ideals ----------------------------------------------------------------------------------------------------

    def _two_ideals(self, query: int, documents: slice, scale: FloatArray, plus: int) -> tuple[float, bool]:
        """The largest difference of two ratios, over all orders of the tied runs."""
        rows, still = self._orders(query, documents, scale)
        sides = (plus, 1 - plus)
        known = np.where(still, 0.0, rows)
        numerators = [
            known @ self.weight[documents, side] + self._of_runs(query, documents, known, side) for side in sides
        ]
        weight, pooled = self.weight[documents][still][:, sides], self.pooled[documents][still][:, sides]
        shapes = _Shapes.of(weight, pooled, scale, self.cut[query, list(sides)], len(rows))
        best, nothing, one_alone = -np.inf, False, False
        judged = [
            np.repeat(at := np.flatnonzero(self.pooled[documents, side] & ~still), self.times[documents][at, side])
            for side in sides
        ]
        for row, *constants in zip(known, *numerators, strict=True):
            gains = [row[at] for at in judged]
            value, both, one = shapes.largest(constants, gains, self.to_rank, self.empty, best)
            best, nothing, one_alone = max(best, value), nothing or both, one_alone or one
        if one_alone and self.empty == "skip":
            raise RangeError(
                "a query must be empty in both systems, or in neither, under empty='skip', because otherwise the two "
                "means are over other queries. Choose empty=0."
            )
        if (one_alone or nothing) and not isinstance(self.empty, str) and math.isnan(self.empty):
            raise RangeError(
                "the range needs a value under all grades, and under empty=nan a query without a relevant document "
                "has none. Choose empty=0 or 1."
            )
        # The score of an empty query is in the difference already, unless the flavor leaves empty queries out.
        return best, nothing and isinstance(self.empty, str)


def _refuse_many(number: int, most: int, what: str, rule: str) -> None:
    if number > most:
        raise RangeError(
            f"the exact range of a difference tries all grades of {what} under {rule}, and in one query there are "
            f"{number} completions, more than {most}. Label more documents of such queries, pass a lower max_grade, "
            "or choose ties='average' and ideal='global', which need no such search."
        )


class _Counts(NamedTuple):
    """Every way to give so many documents gains, by how many have each gain; the gains of each way fall.

    Attributes
    ----------
    gains : ndarray of float, shape (n_ways, n_documents)
    """

    gains: FloatArray

    @classmethod
    def of(cls, n: int, scale: FloatArray) -> _Counts:
        ways = list(itertools.combinations_with_replacement(scale[::-1].tolist(), n))
        return cls(np.array(ways, dtype=np.float64).reshape(len(ways), n))


@dataclass(frozen=True, slots=True, eq=False)
class _Shapes:
    """The open documents of a query with two ideals, as (plus, minus) pairs, and the ways to grade them.

    Attributes
    ----------
    weight : ndarray of float, shape (n_shared, 2)
        The weights of the shared documents, grouped by the parts of the pools.
    parts : list of slice
        The parts.
    pooled : list of pair of bool
        Whether the documents of each part enter the ideals.
    shared : ndarray of float, shape (n_ways, n_shared)
        Gains that fall within each part.
    own, own_sum : list of ndarray
        For plus and minus: the gains of the documents that matter there alone, and what they add at best.
    free : ndarray of float, shape (n_free, 2)
        The weights of documents in neither ideal.
    scale : ndarray of float
    cut : ndarray of int, shape (2,)
    """

    weight: FloatArray
    parts: list[slice]
    pooled: list[tuple[bool, bool]]
    shared: FloatArray
    own: list[FloatArray]
    own_sum: list[FloatArray]
    free: FloatArray
    scale: FloatArray
    cut: IntArray

    @classmethod
    def of(cls, weight: FloatArray, pooled: BoolArray, scale: FloatArray, cut: IntArray, n_orders: int) -> _Shapes:
        """Sort the documents into parts, and list the ways to grade each."""
        # Documents without weight matter in the ideal alone, and there no more of them than it has ranks.
        kind = pooled[:, 0] * 1 + pooled[:, 1] * 2
        wanted = np.ones(len(kind), dtype=bool)
        for one in range(4):
            idle = np.flatnonzero((kind == one) & (weight == 0).all(axis=1))
            wanted[idle[int(cut.max()) if one == 3 else (int(cut[one - 1]) if one else 0) :]] = False
        weight, kind = weight[wanted], kind[wanted]
        # A document in one ideal, without a discount in the other system, matters in its own system alone.
        alone = [(kind == side + 1) & (weight[:, 1 - side] == 0) for side in (0, 1)]
        shared = (kind > 0) & ~alone[0] & ~alone[1]
        rows = [np.flatnonzero(shared & (kind == one)) for one in (3, 1, 2)]
        sizes = [row.size for row in rows]
        n_shared = math.prod(math.comb(size + scale.size - 1, size) for size in sizes)
        n_own = [math.comb(int(own.sum()) + scale.size - 1, int(own.sum())) for own in alone]
        number = n_shared * sum(n_own) * n_orders
        what = f"the {len(kind)} unjudged documents that count in two different ideals"
        _refuse_many(number, _MOST_PAIRS, what, "ideal='recall', 'local' or ideal_depth='retrieved'")
        # Every way to grade the shared documents is one of each part, in all combinations.
        ways = [_Counts.of(size, scale).gains for size in sizes]
        index = np.indices([len(way) for way in ways]).reshape(3, -1)
        gains = np.concatenate([way[at] for way, at in zip(ways, index, strict=True)], axis=1)
        ends = np.cumsum([0, *sizes]).tolist()
        own = [_Counts.of(int(mine.sum()), scale).gains for mine in alone]
        # Plus wants the largest gains at its largest discounts, minus at its smallest.
        orders = [-np.sort(-weight[alone[0], 0]), np.sort(weight[alone[1], 1])]
        return cls(
            weight=weight[np.concatenate(rows)],
            parts=[slice(*pair) for pair in itertools.pairwise(ends)],
            pooled=[(True, True), (True, False), (False, True)],
            shared=gains,
            own=own,
            own_sum=[mine @ order for mine, order in zip(own, orders, strict=True)],
            free=weight[kind == 0],
            scale=scale,
            cut=cut,
        )

    def largest(
        self,
        constants: Sequence[float],
        judged: Sequence[FloatArray],
        to_rank: FloatArray,
        empty: float | str,
        least: float,
    ) -> tuple[float, bool, bool]:
        """The largest difference if it is above `least`, whether both ideals may be 0, and whether one alone may be.

        `constants` and `judged` are the numerators and the gains in the ideals of plus and minus that are known.
        """
        # Both ideals under all ways: as lines slope * s + level in what the shared documents add to the numerator.
        # An ideal of 0 scores what the flavor says; where the flavor leaves such a query out, no line reaches that way.
        slopes, levels, zeros = [], [], []
        for side in (0, 1):
            ideal = self._ideals(side, judged[side], to_rank)
            zero = ideal <= 0
            slope = np.divide(1.0, ideal, out=np.zeros(ideal.shape), where=~zero)
            level = (constants[side] + self.own_sum[side]) * slope
            lost = (np.inf if side else -np.inf) if isinstance(empty, str) else empty
            level[zero] = lost
            slopes.append(slope)
            levels.append(level)
            zeros.append(zero)
        any_zero, any_not = [zero.any(axis=1) for zero in zeros], [(~zero).any(axis=1) for zero in zeros]
        both = bool((any_zero[0] & any_zero[1]).any())
        one_alone = bool(((any_zero[0] & any_not[1]) | (any_not[0] & any_zero[1])).any())
        if not isinstance(empty, str) and math.isnan(empty) and (both or one_alone):
            return -np.inf, both, one_alone

        # A bound: no way to place the gains adds more to plus, or less to minus, than the order of each side alone.
        reach = [self._reach(side) for side in (0, 1)]
        plus = [slopes[0] * at[:, None] + levels[0] for at in reach[0]]
        minus = [slopes[1] * at[:, None] + levels[1] for at in reach[1]]
        with np.errstate(invalid="ignore"):
            bound = plus[1].max(axis=1) - minus[0].min(axis=1)
        order = np.argsort(-bound, kind="stable")
        best = least
        # Ways in the order of their bounds: once a bound is no better than a difference reached, none after it is.
        for way in order.tolist():
            if not bound[way] > best:
                break
            ours = on_top(plus[0][way], plus[1][way])
            theirs = on_top(-minus[1][way], -minus[0][way])
            one, other = (each.reshape(-1) for each in np.meshgrid(ours, theirs))
            # For two lines the difference is linear in the gains: the largest gains stand at the largest coefficients.
            for begin in range(0, one.size, _AT_ONCE):
                i, j = one[begin : begin + _AT_ONCE], other[begin : begin + _AT_ONCE]
                a, b = slopes[0][way, i], slopes[1][way, j]
                value = levels[0][way, i] - levels[1][way, j]
                for part in self.parts:
                    coefficients = np.multiply.outer(a, self.weight[part, 0])
                    coefficients -= np.multiply.outer(b, self.weight[part, 1])
                    coefficients.sort(axis=1)
                    value += coefficients[:, ::-1] @ self.shared[way, part]
                free = np.multiply.outer(a, self.free[:, 0]) - np.multiply.outer(b, self.free[:, 1])
                value += np.maximum(free * self.scale[0], free * self.scale[-1]).sum(axis=1)
                best = max(best, float(value.max()))
        return best, both, one_alone

    def _ideals(self, side: int, judged: FloatArray, to_rank: FloatArray) -> FloatArray:
        """The ideal of a side, shape (ways of the shared documents, ways of its own)."""
        mine = [self.shared[:, part] for part, pooled in zip(self.parts, self.pooled, strict=True) if pooled[side]]
        shared, own = np.concatenate(mine, axis=1), self.own[side]
        ideal = np.zeros((len(shared), len(own)))
        steps = np.union1d(judged, self.scale)
        below = 0.0
        for step in steps[steps > 0].tolist():
            count = (shared >= step).sum(axis=1)[:, None] + (own >= step).sum(axis=1) + int((judged >= step).sum())
            ideal += (step - below) * to_rank[np.minimum(np.minimum(count, self.cut[side]), to_rank.size - 1)]
            below = step
        return ideal

    def _reach(self, side: int) -> tuple[FloatArray, FloatArray]:
        """The least and the most that the shared and free documents add to the numerator of a side, of each way."""
        weight, free = self.weight[:, side], self.free[:, side]
        ends = np.array([free * self.scale[0], free * self.scale[-1]])
        low = np.full(len(self.shared), ends.min(axis=0).sum())
        high = np.full(len(self.shared), ends.max(axis=0).sum())
        for part in self.parts:
            rising = np.sort(weight[part])
            low += self.shared[:, part] @ rising
            high += self.shared[:, part] @ rising[::-1]
        return low, high


def on_top(at_low: FloatArray, at_high: FloatArray) -> IntArray:
    """Lines that no other line exceeds over a whole interval, by their values at its two ends."""
    order = np.lexsort((-at_high, -at_low))
    high = at_high[order]
    before = np.append(-np.inf, np.maximum.accumulate(high)[:-1])
    above: NDArray[np.int64] = order[high > before]
    return above
