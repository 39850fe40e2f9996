"""Missing labels in a comparison: the range of each difference, and the documents to label next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ndcg_ml._core.arrays import as_objects
from ndcg_ml._decide.matching import Matched, keys_of
from ndcg_ml._unjudged.documents import RangeError, UnsearchedRangeError
from ndcg_ml._unjudged.judge_next import ToJudge, next_to_judge
from ndcg_ml._unjudged.range import Pair, Range, match_systems, require_documents

# Ranges are slow to compute, so notes have them only if there are not more pairs.
_MOST_PAIRS = 45


class MissingLabels:
    """The documents of the compared systems, from which ranges are computed when needed.

    Parameters
    ----------
    table : Matched
        The compared queries, with one source per system.
    """

    def __init__(self, table: Matched) -> None:
        self._sources = sources = table.sources
        places = [{qid: at for at, qid in enumerate(keys_of(source.qid))} for source in sources]
        # Empty queries that are skipped, or in a micro average, do not count now but would with other labels.
        skipped = [
            qid
            for qid in keys_of(table.left_out)
            if all(
                qid in place and source.share[place[qid]] == 0 and source.weight[place[qid]] > 0
                for place, source in zip(places, sources, strict=True)
            )
        ]
        self._qid = [*keys_of(table.qid), *skipped]
        self._rows = np.array([[place[qid] for place in places] for qid in self._qid], dtype=np.int64)
        self._ranges: dict[tuple[int, int, float | None], Range] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _left_out, ()  # a pickled evaluation has no documents

    def range(self, a: int, b: int, difference: float, max_grade: float | None = None) -> Range:
        """Return the smallest and largest difference b - a over all ways to grade the unjudged documents.

        Raises
        ------
        RangeError
        """
        key = (a, b, max_grade)
        if key not in self._ranges:
            self._ranges[key] = self._pair(a, b).range(difference, max_grade)
        return self._ranges[key]

    def judge_next(self, a: int, b: int, difference: float, n: int, max_grade: float | None = None) -> ToJudge:
        """Return the documents whose labels can change the difference most.

        Raises
        ------
        RangeError
        """
        source = self._sources[b]
        assert source.evaluation is not None
        ids = as_objects(self._qid)
        return next_to_judge(self._pair(a, b), difference, ids, n, max_grade, library=source.evaluation.frame_library)

    def may_turn(self, a: int, b: int, difference: float) -> bool:
        """Return whether labels can change the sign of the difference, or may do so if the range is not searched."""
        if not self._have_unjudged():
            return False
        try:
            return not self.range(a, b, difference).settled
        except UnsearchedRangeError:
            return True
        except RangeError:
            return False

    def notes(self, pairs: Sequence[tuple[int, int, float]]) -> list[str]:
        """Return notes on the ranges; none if all documents are judged, or a range is unknown."""
        if len(pairs) > _MOST_PAIRS or not self._have_unjudged():
            return []
        known = []
        for a, b, difference in pairs:
            try:
                limits = self.range(a, b, difference)
            except RangeError:
                return []
            if limits.n_unjudged:
                known.append(limits)
        if not known:
            return []
        if len(pairs) > 1:
            n_open = sum(not limits.settled for limits in known)
            if not n_open:
                return ["settled: no labels of unjudged documents can change the sign of any difference"]
            words = f"labels of unjudged documents could change the sign of {n_open} of {len(pairs)} differences"
            return [f"{words}: see judge_next for the documents"]
        [limits] = known
        words = (
            f"over all grades of {limits.n_unjudged} unjudged documents, the difference is between {limits.low:+.4f} "
        )
        words += f"and {limits.high:+.4f}"
        return [f"settled: {words}" if limits.settled else f"labels could change its sign: {words}; see judge_next"]

    def _have_unjudged(self) -> bool:
        kept = [None if source.evaluation is None else source.evaluation._scored for source in self._sources]
        return any(scored is not None and np.isnan(scored.labels).any() for scored in kept)

    def _pair(self, a: int, b: int) -> Pair:
        scored, dcg, ndcg = [], [], []
        for column in (a, b):
            source = self._sources[column]
            assert source.evaluation is not None
            totals = source.evaluation._totals
            scored.append(require_documents(source.evaluation._scored))
            dcg.append(totals.dcg[:, totals.ks.index(source.k)])
            ndcg.append(source.values[self._rows[:, column]])
        first = self._sources[a]
        assert first.evaluation is not None
        return match_systems(
            scored[0],
            scored[1],
            first.evaluation.flavor,
            first.k,
            self._rows[:, [a, b]],
            np.stack(ndcg, axis=1),
            (dcg[0], dcg[1]),
        )


def _left_out() -> None:
    """Stand in for the documents of an unpickled comparison."""


def missing_labels(table: Matched) -> MissingLabels | None:
    """Return the missing labels of a comparison; None for precomputed values or several runs per system."""
    if len(table.sources) > len(table.names) or any(source.evaluation is None for source in table.sources):
        return None
    return MissingLabels(table)
