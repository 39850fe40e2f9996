"""What the data say about which switches of a flavor can matter."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._checks import TIES_BY_ID
from ndcg_ml._data.queries import Queries
from ndcg_ml._kernel.gains import gain
from ndcg_ml.flavor import Flavor

_FEW_GRADES = frozenset(map(float, range(32)))


class Facts(NamedTuple):
    """What the data say about which switches can matter."""

    longest: int
    n_queries: int
    top: float
    negative: bool
    unjudged: bool
    repeats: bool
    grades: tuple[float, ...]
    everything_retrieved: bool
    ids: bool
    all_relevant: bool
    tied: bool
    tied_by_float32: bool
    cases: frozenset[str]
    """The cases of declared divergences that these data are, by name, where that can be told."""

    @classmethod
    def of(cls, queries: Queries, exact: NDArray[Any], coarse: NDArray[np.float32]) -> Facts:
        groups = queries.groups
        rows = groups.rows()
        flat = queries.labels.reshape(-1).astype(np.float64)
        labels = flat[rows]
        judged = labels[~np.isnan(labels)]
        distinct, distinct32 = (_n_distinct(groups.codes(), scores[rows]) for scores in (exact, coarse))
        return cls(
            longest=int(groups.sizes.max()),
            n_queries=groups.n_queries,
            top=float(judged.max(initial=0.0)),
            negative=bool((judged < 0).any()),
            unjudged=judged.size < labels.size,
            repeats=queries.repeats is not None,
            grades=tuple(np.unique(np.append(judged, 0.0)).tolist()),
            everything_retrieved=queries.retrieved is None,
            ids=queries.doc_id is not None,
            all_relevant=bool((groups.per_query(np.fmax, flat, 0.0) > 0).all()),
            tied=distinct32 < labels.size,
            tied_by_float32=distinct32 < distinct,
            cases=_cases(queries, judged, groups.per_query(np.fmax, flat, 0.0), distinct < labels.size, distinct32),
        )

    def unlikely(self, flavor: Flavor) -> tuple[bool, bool]:
        """What speaks against a preset, the weightiest first: whether tools of its kind are run on other data.

        Where documents have ids, the tools that need them to order ties are the usual ones; where some are not judged
        or not retrieved, those that have a rule for it; and where all are, those that want a label for each.
        """
        run = self.ids or self.unjudged or not self.everything_retrieved
        return self.ids and flavor.ties not in TIES_BY_ID, run == (flavor.unjudged == "raise")

    def representative(self, flavor: Flavor) -> Flavor:
        """One flavor for all that have the same value on these data at every cut-off, for any scores."""
        same: dict[str, Any] = {}
        if not self.tied:
            same["ties"] = "average"
        if not self.tied_by_float32:
            same["score_dtype"] = "float64"
        gains = self._gains(flavor)
        if gains == self.grades:
            same["gain"], same["off_table"] = "linear", "raise"
        elif gains is not None and gains == self._gains(Flavor(gain="exponential")):
            same["gain"], same["off_table"] = "exponential", "raise"
        every = self.everything_retrieved and not (self.unjudged or self.negative or self.repeats)
        if every and flavor.ideal == "recall":
            same["ideal"] = "global"
        return flavor.replace(**same)

    def _gains(self, flavor: Flavor) -> tuple[float, ...] | None:
        """The gain of each grade; None where the grades are not few and whole, or gain by another rule."""
        if not set(self.grades) <= _FEW_GRADES or flavor.gain in ("linear", "judged") or callable(flavor.gain):
            return None
        return tuple(gain(flavor, np.array(self.grades)).tolist())

    def reasons(self) -> dict[str, str]:
        """Why a switch may have no effect, by switch."""
        reasons = {}
        if not self.tied:
            reasons["ties"] = "no two documents of a query have the same score"
        if not self.tied_by_float32:
            reasons["score_dtype"] = "float32 makes no further scores equal"
        if set(self.grades) <= {0.0, 1.0}:
            reasons["gain"] = "all labels are 0 or 1"
        if self.everything_retrieved and not self.repeats:
            reasons["ideal"] = "every document was retrieved"
        if self.all_relevant:
            reasons["empty"] = "every query has a relevant document"
        if self.n_queries == 1:
            reasons["aggregate"] = "there is one query"
        reasons["k"] = f"the longest query has {self.longest} document{'s' if self.longest > 1 else ''}"
        return reasons


def _cases(queries: Queries, judged: NDArray[Any], best: NDArray[Any], tied: bool, n_distinct32: int) -> frozenset[str]:
    """The names of the declared cases that these data are; a case that is not listed here cannot be told."""
    sizes, weighted = queries.groups.sizes, queries.weight is not None
    empty, top = bool((best <= 0).any()), float(judged.max(initial=0.0))
    fraction, negative = bool((judged != np.floor(judged)).any()), bool((judged < 0).any())
    holds = {
        "one_document": bool((sizes == 1).any()),
        "several_queries": sizes.size > 1,
        "repeats": queries.repeats is not None,
        "weighted": weighted,
        "weighted_with_an_empty_query": weighted and empty,
        "fraction": fraction,
        "fraction_below_1": bool(((judged > 0) & (judged < 1)).any()),
        "fraction_or_above_30": fraction or top > 30,
        "fraction_or_above_31": fraction or top > 31,
        "above_5": top > 5,
        "above_31": top > 31,
        "above_127": top > 127,
        "negative": negative,
        "negative_but_not_padding": bool(((judged < 0) & (judged != -1)).any()),
        "tied": tied,
        "tied_in_float32": n_distinct32 < int(sizes.sum()),
    }
    return frozenset(name for name, does in holds.items() if does)


def _n_distinct(query: NDArray[Any], scores: NDArray[Any]) -> int:
    order = np.lexsort((scores, query))
    scores, query = scores[order], query[order]
    new = (scores[1:] != scores[:-1]) | (query[1:] != query[:-1])
    return int(new.sum()) + min(1, scores.size)
