"""Rank prepared queries by scores: DCG and ideal DCG of each query. NaN scores are refused here."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._core import numpy_kernel
from ndcg_ml._core.kernel_and_threads import CompiledQueries, choose_kernel, compiled_rank, thread_count
from ndcg_ml._core.labels_gains_discounts import Coded, CreditedOnce, credit_repeats, discounts, grade, refuse_repeats
from ndcg_ml._core.layout import as_float32
from ndcg_ml._core.mean_and_empty_queries import Totals
from ndcg_ml._core.queries import Queries, Scored
from ndcg_ml._plain.checks import KSpec, cutoffs, optional_whole_number
from ndcg_ml.flavor import Flavor, as_flavor


class Ranking:
    """Queries with their gains and ideal DCG under one flavor, to be ranked by scores.

    Attributes
    ----------
    flavor : Flavor
    ks : tuple of int or None
        The cut-offs.
    queries : Queries
        The data.
    """

    def __init__(
        self, flavor: Flavor | str, k: KSpec, queries: Queries, threads: int | None = None, kernel: str = "auto"
    ) -> None:
        flavor = as_flavor(flavor)
        ks, self.several = cutoffs(k, flavor)
        self.flavor: Flavor = flavor
        self.ks: tuple[int | None, ...] = ks
        self.queries = queries
        self._threads = optional_whole_number(threads, "threads", "for the default")
        self._kernel = choose_kernel(kernel)
        if numpy_kernel.has_ideal_of_ranking(flavor):
            if kernel == "compiled":
                raise ValueError(
                    "kernel must be 'auto' or 'numpy' under ideal='local' and recall_depth, because that ideal depends "
                    "on the ranking; got 'compiled'. Pass kernel='auto', which uses the NumPy kernel here."
                )
            self._kernel = "numpy"
        refuse_repeats(flavor, queries)
        graded = grade(flavor, queries.labels, queries.groups, queries.retrieved)
        if queries.given_order is not None:
            graded = replace(graded, judged=graded.judged.sort_rows(queries.given_order))
        longest = int(graded.documents.sizes.max())
        if flavor.ideal == "max":
            longest = max(longest, *(cut or 0 for cut in self.ks))
        cuts = [*self.ks, *numpy_kernel.ideal_cutoffs(flavor, self.ks)]
        if None not in cuts:  # lower ranks are not used, and a catalogue may have 100,000
            longest = min(longest, max(cut for cut in (*cuts, flavor.recall_depth or 1) if cut is not None))
        self._discounts = discounts(flavor, longest)
        self._layout = numpy_kernel.order_ties(graded.ranked, flavor, graded.row_gains, queries.doc_order)
        self._once: CreditedOnce | None = None
        if queries.repeats is not None:
            graded, self._once = credit_repeats(flavor, graded, self._layout, queries.repeats)
        self._graded = graded
        self._ideal = self._fixed_ideal()

    @property
    def n_docs(self) -> int:
        """Number of ranked documents."""
        return int(self._graded.ranked.sizes.sum())

    def totals(self, y_score: ArrayLike) -> Totals:
        """Return DCG and ideal DCG of every query for these scores; see ``Prepared.__call__``."""
        return self.rank(self.scores(y_score))

    def counts(self, scores: NDArray[Any]) -> dict[str, NDArray[np.int64]]:
        """Return the columns of the table of queries that are numbers of documents."""
        graded = self._graded
        return {
            "n_docs": graded.ranked.sizes.copy(),
            "n_judged": graded.judged.sizes.copy(),
            "n_relevant": graded.n_relevant(),
            "tied": numpy_kernel.tied_documents(self._blocks, scores, self.queries.n_queries),
        }

    def _fixed_ideal(self) -> NDArray[np.float64] | None:
        """Return the ideal DCG, or None if it depends on the ranking."""
        flavor, graded = self.flavor, self._graded
        n_slots = graded.ranked.n_rows
        threads = thread_count(self._threads, n_slots)
        rank = compiled_rank(self._kernel, n_slots)
        sorts = flavor.ideal in ("global", "recall")
        counts = isinstance(graded.row_gains, Coded)  # the ideal is computed from the number of documents of each grade
        if rank is None or not sorts or counts or flavor.ideal_depth == "retrieved":
            ranked = None if rank else lambda: self._blocks  # a compiled ranking would only keep them in memory
            return numpy_kernel.ideal(flavor, self.ks, graded, self._discounts, ranked)
        source = graded.ranked if flavor.ideal == "recall" else graded.judged
        ks = numpy_kernel.ideal_cutoffs(flavor, self.ks)
        queries = self._ranking
        if source is not self._layout or ks is not self.ks:
            queries = CompiledQueries(source, graded.gains, self._discounts, ks)
        # No gain is NaN, so this ideal is never None.
        return queries.dcg(rank, graded.gains, threads, average=False)

    @cached_property
    def _blocks(self) -> list[numpy_kernel.Filled]:
        return numpy_kernel.fill_blocks(self._layout, self._graded.row_gains)

    @cached_property
    def _ranking(self) -> CompiledQueries:
        return CompiledQueries(self._layout, self._graded.row_gains, self._discounts, self.ks)

    def scores(self, y_score: ArrayLike) -> NDArray[Any]:
        """Return the scores, checked, in the flavor's precision."""
        scores = self.queries.scores(y_score, self._layout)
        if self.flavor.score_dtype == "float32" and scores.dtype != np.float32:
            scores = as_float32(scores)
        return scores

    def _refuse_nan(self, scores: NDArray[Any]) -> None:
        order = self._layout.order
        ranked = scores if order is None else scores[order]
        if ranked.size and np.isnan(ranked.min()):
            bad = np.flatnonzero(np.isnan(ranked))
            at = int(bad[0] if order is None else order[bad].min())
            raise ValueError(
                f"y_score must not hold NaN, which cannot be ranked; got {bad.size} of {ranked.size}, the first at "
                f"row {at}. Find out why the model returned NaN; use -inf to rank a document last."
            )

    def rank(self, scores: NDArray[Any]) -> Totals:
        """Return the totals for scores of ``scores``."""
        flavor, ks, lengths = self.flavor, self.ks, self._graded.ranked.sizes
        if self._once is not None:
            self._refuse_nan(scores)
            scores = self._once.exchange_scores(scores)
        rank = compiled_rank(self._kernel, scores.size)
        dcg, ideal = None, self._ideal
        if rank is not None:
            threads = thread_count(self._threads, scores.size)
            dcg = self._ranking.dcg(rank, scores, threads, average=flavor.ties == "average")
        if dcg is None or ideal is None:  # there is no compiled kernel, or it found NaN
            self._refuse_nan(scores)
            dcg, ideal = self._rank_by_numpy(scores)
        if flavor.short_lists == "zero":
            for column, k in enumerate(ks):
                dcg[lengths < (k or 0), column] = 0.0
        return Totals(ks, self.queries.ids, dcg, ideal, self.queries.weight)

    def _rank_by_numpy(self, scores: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return DCG and ideal DCG of every query."""
        flavor, ks, lengths = self.flavor, self.ks, self._graded.ranked.sizes
        average = flavor.ties == "average"
        dcg = np.zeros((lengths.size, len(ks)))
        ideal = np.zeros_like(dcg) if self._ideal is None else self._ideal
        for block, gains, ranked in numpy_kernel.add_scores(self._blocks, scores):
            depth = numpy_kernel.depth(ks, block.shape[1])
            at_rank = numpy_kernel.expected_gains(ranked, gains, depth, average)
            dcg[block.queries] = numpy_kernel.dcg(at_rank, self._discounts, ks)
            if self._ideal is None:
                ideal[block.queries] = numpy_kernel.ideal_of_ranking(
                    flavor, ks, self._discounts, ranked, gains, at_rank, lengths[block.queries]
                )
        return dcg, ideal


MODIFIED = "evaluated arrays must not change; labels or scores were modified since. Evaluate again, or pass copies."


def is_modified(scored: Scored, totals: Totals, flavor: Flavor) -> bool:
    """Return whether the caller has changed the arrays of an evaluation, so that they have other totals."""
    try:
        now = Ranking(flavor, totals.ks, scored.queries).totals(scored.scores.reshape(scored.queries.labels.shape))
    except ValueError:  # the flavor refuses the numbers that are there now
        return True
    return not all(map(np.array_equal, (now.dcg, now.ideal), (totals.dcg, totals.ideal)))
