"""Documents that a query lists more than once: refused, credited once, or credited at each of their ranks.

Gains and scores are changed before the kernel ranks them, so the kernel has no rule for repeats. The copies of a
document have one label and are interchangeable. Under ``duplicates="first"`` one of them has the gain, the others have
gain 0, and the one with the gain gets the best of their scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.arrays import IntArray
from ndcg_ml._core.gains_and_discounts import Graded
from ndcg_ml._core.groups import Groups
from ndcg_ml._core.queries import Queries, Repeats
from ndcg_ml.flavor import Flavor


def refuse_repeats(flavor: Flavor, queries: Queries) -> None:
    """Refuse repeated documents if the flavor does, and copies of one document with different labels.

    Raises
    ------
    ValueError
    """
    repeats = queries.repeats
    if repeats is None:
        return
    copies = repeats.copies
    if flavor.duplicates == "raise":
        raise ValueError(
            f"doc_id must not repeat within a query under duplicates='raise'; got {repeats.name} more than once in a "
            f"query ({copies.sizes.sum() - copies.n_queries} repeats in all). Remove the duplicate documents, or use "
            f"flavor={flavor.replace(duplicates='first').short_text!r}, which credits each at its first rank."
        )
    grades = copies.arrange(queries.labels.reshape(-1))
    first = np.repeat(grades[copies.starts], copies.sizes)
    differ = (grades != first) & ~(np.isnan(grades) & np.isnan(first))
    if differ.any():
        at = int(np.flatnonzero(differ)[0])
        raise ValueError(
            f"y_true must be the same wherever a query repeats a doc_id; got {first[at]:g} and {grades[at]:g} for one "
            "document. A document has one label: correct the others."
        )


def credit_repeats(
    flavor: Flavor, graded: Graded, layout: Groups, repeats: Repeats
) -> tuple[Graded, CreditedOnce | None]:
    """Keep one copy of each document among the judged ones and, if the flavor credits it once, the gain of one copy.

    `layout` has the ranked rows in the order in which tied ones rank.
    """
    n_rows = layout.n_rows
    rows = layout.rows()
    ranked = np.zeros(n_rows, dtype=bool)
    ranked[rows] = True
    copies = repeats.copies.sort_rows(~ranked)
    assert copies.order is not None
    is_copy = np.zeros(n_rows, dtype=bool)
    is_copy[copies.order] = True
    is_later = is_copy.copy()
    is_later[copies.order[copies.starts]] = False
    graded = replace(graded, judged=graded.judged.keep(~is_later))
    if flavor.duplicates == "count":
        return graded, None
    graded = replace(graded, row_gains=np.where(is_later, 0.0, graded.gains))
    query = layout.codes()
    affected = np.isin(query, query[is_copy[rows]])
    return graded, CreditedOnce(flavor, copies.keep(ranked), rows[affected], query[affected])


@dataclass(frozen=True, slots=True, eq=False)
class CreditedOnce:
    """The rows whose scores are exchanged so that the copy with the gain ranks before the others of its document.

    Attributes
    ----------
    flavor : Flavor
    copies : Groups
        The ranked rows of each repeated document, the one with the gain first.
    rows, query : ndarray of int
        The ranked rows of the queries that hold a repeat, in the order in which tied ones rank; and the query of each.
    """

    flavor: Flavor
    copies: Groups
    rows: IntArray
    query: IntArray

    def exchange_scores(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Return the same ranking, in which the row with the gain of a document is the first of its copies.

        Raises
        ------
        ValueError
            Ties are averaged, and copies of a document share its best score.
        """
        out = scores.astype(np.float64)
        if self.flavor.ties != "average":  # break all ties first, so that an exchange makes no other ones
            order = np.lexsort((-out[self.rows], self.query))
            out[self.rows[order]] = -np.arange(order.size, dtype=np.float64)
        copies = self.copies
        assert copies.order is not None
        best_first = out[copies.order]
        best_first = best_first[np.lexsort((-best_first, copies.codes()))]
        second = copies.starts[copies.sizes > 1] + 1
        if (tied := best_first[second] == best_first[second - 1]).any():
            raise ValueError(
                "y_score must not tie a document with its own repeat under ties='average' with duplicates='first', "
                f"because its first rank is undefined; got {int(tied.sum())} such documents. Break ties by position: "
                f"flavor={self.flavor.replace(ties='first').short_text!r}."
            )
        out[copies.order] = best_first
        return out
