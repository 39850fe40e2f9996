"""Rankings of the same scores under many flavors: what several of them share is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.groups import Groups
from ndcg_ml._data.queries import Queries
from ndcg_ml._kernel import numpy_kernel
from ndcg_ml._kernel.gains import Graded, discounts, grade
from ndcg_ml._kernel.repeats import credited
from ndcg_ml._kernel.totals import Totals
from ndcg_ml.flavor import Flavor

FloatArray = NDArray[np.float64]
T = TypeVar("T")

# Rows in all kept arrays together: about half a gigabyte.
_MOST_ROWS = 1 << 24


class _Ranking(NamedTuple):
    """Documents in the order of a tie rule; blocks of them with their scores, and the gains at the ranks cut off at."""

    layout: Groups
    blocks: list[tuple[numpy_kernel.Filled, NDArray[Any], FloatArray]]


class Sweep:
    """Queries and their scores under flavors that differ in any of the switches, at the same discounts and cut-offs.

    Labels are read once for each gain and rule for labels, documents ranked once for each of these with each tie rule
    and precision of scores, and ideals made once for each gain. The numbers are those of ``Prepared``, because every
    step is done by the same functions; but short lists count as others do.

    Parameters
    ----------
    queries : Queries
    scores : mapping of ndarray by precision
        The scores as ``float64`` and as ``float32`` compares them, without NaN.
    ks : sequence of int or None
    with_discount : sequence of Flavor
        The discounts, as flavors that have them.
    """

    def __init__(
        self,
        queries: Queries,
        scores: Mapping[str, NDArray[Any]],
        ks: Sequence[int | None],
        with_discount: Sequence[Flavor],
    ) -> None:
        self._queries, self._scores, self._ks = queries, scores, tuple(ks)
        self._with_discount = with_discount
        self._longest = int(queries.groups.sizes.max())
        self._memo: dict[Hashable, Any] = {}

    def totals(self, flavor: Flavor) -> Totals:
        """DCG and ideal DCG of every query, for each discount at each cut-off: a column each, in this order.

        The flavor's own discount and cut-off play no part.

        Raises
        ------
        ValueError
            The flavor refuses the labels.
        """
        labels, graded = self._graded(flavor)
        # The gains are the same whatever the ideal and its top grade.
        order = (*labels[:-2], flavor.ties, flavor.score_dtype, flavor.duplicates)
        ranked = self._once(("ranked", *order), lambda: self._ranked(flavor, graded))
        dcg = self._once(("dcg", *order), lambda: self._dcg(ranked))
        # The order of the rows decides which of a document's rows is judged.
        rows = () if self._queries.repeats is None else (flavor.ties, flavor.duplicates)
        made_of = (*labels, flavor.ideal, flavor.ideal_depth, *rows)
        ideal = self._once(("ideal", *made_of), lambda: self._ideal(flavor, graded, ranked.layout))
        if ideal is None:
            ideal = self._ideal_of_ranking(flavor, graded, ranked)
        queries, n_columns = self._queries, dcg[0].size
        return Totals(
            self._ks * len(self._with_discount),
            queries.ids,
            dcg.reshape(-1, n_columns),
            ideal.reshape(-1, n_columns),
            queries.weight,
        )

    def _graded(self, flavor: Flavor) -> tuple[tuple[Hashable, ...], Graded]:
        """The labels under the flavor's rules, and what of the flavor they depend on."""
        is_max = flavor.ideal == "max"
        key = (flavor.gain, flavor.off_table, flavor.negative, flavor.unjudged, flavor.max_grade, is_max)
        queries = self._queries
        return key, self._once(key, lambda: grade(flavor, queries.labels, queries.groups, queries.retrieved))

    def _ranked(self, flavor: Flavor, graded: Graded) -> _Ranking:
        queries, all_scores = self._queries, self._scores[flavor.score_dtype]
        layout = numpy_kernel.in_tie_order(graded.ranked, flavor, graded.row_gains, queries.doc_id)
        if queries.repeats is not None:
            graded, once = credited(flavor, graded, layout, queries.repeats)
            all_scores = all_scores if once is None else once.exchanged(all_scores)
        average = flavor.ties == "average"
        blocks, space = [], numpy_kernel.Workspace(average and numpy_kernel.add_exactly(graded.row_gains))
        for filled in numpy_kernel.fill(layout, graded.row_gains):
            own = numpy_kernel.Workspace()  # its memory is kept with the scores
            for block, gains, scores in numpy_kernel.gathered([filled], all_scores, own):
                depth = numpy_kernel.depth(self._ks, block.shape[1])
                blocks.append((filled, scores, numpy_kernel.expected_gains(scores, gains, depth, average, space)))
        return _Ranking(layout, blocks)

    def _tables(self, ideal: str) -> FloatArray:
        """Each discount at every rank that a list, or an ideal of the top grade, may have."""
        longest = max(self._longest, *(k or 0 for k in self._ks)) if ideal == "max" else self._longest
        return self._once(
            ("discounts", longest), lambda: np.stack([discounts(flavor, longest) for flavor in self._with_discount])
        )

    def _zeros(self) -> FloatArray:
        return np.zeros((self._queries.n_queries, len(self._with_discount), len(self._ks)))

    def _dcg(self, ranked: _Ranking) -> FloatArray:
        out = self._zeros()
        for (block, _), _, at_rank in ranked.blocks:
            out[block.queries] = numpy_kernel.dcg(at_rank, self._tables("judged"), self._ks)
        return out

    def _ideal(self, flavor: Flavor, graded: Graded, layout: Groups) -> FloatArray | None:
        if self._queries.repeats is not None:
            graded, _ = credited(flavor, graded, layout, self._queries.repeats)
        return numpy_kernel.ideal(flavor, self._ks, graded, self._tables(flavor.ideal))

    def _ideal_of_ranking(self, flavor: Flavor, graded: Graded, ranked: _Ranking) -> FloatArray:
        out, table, lengths, space = (
            self._zeros(),
            self._tables(flavor.ideal),
            graded.ranked.sizes,
            numpy_kernel.Workspace(),
        )
        for (block, gains), scores, at_rank in ranked.blocks:
            out[block.queries] = numpy_kernel.ideal_of_ranking(
                flavor, self._ks, table, scores, gains, at_rank, lengths[block.queries], space
            )
        return out

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._memo:
            if (len(self._memo) + 1) * self._queries.groups.n_rows > _MOST_ROWS:
                self._memo.clear()
            self._memo[key] = make()
        value: T = self._memo[key]
        return value
