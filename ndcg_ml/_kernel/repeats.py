"""Documents that a query lists more than once: refused, credited once, or credited at each of their ranks.

Gains and scores are changed before the kernel, which needs no rule for it. A document's copies have one
label, so they are interchangeable: under ``duplicates="first"`` one of them has the gain and the others 0, and
the one with the gain gets the best of their scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import IntArray
from ndcg_ml._data.groups import Groups
from ndcg_ml._data.queries import Queries, Repeats
from ndcg_ml._kernel.gains import Graded
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
            f"query ({copies.sizes.sum() - copies.n_queries} repeats in all). Remove the duplicate documents, or "
            "choose duplicates='first' or 'count'."
        )
    labels = _listed(copies, queries.labels.reshape(-1))
    first = np.repeat(labels[copies.starts], copies.sizes)
    differ = (labels != first) & ~(np.isnan(labels) & np.isnan(first))
    if differ.any():
        at = int(np.flatnonzero(differ)[0])
        raise ValueError(
            f"y_true must be the same wherever a query repeats a doc_id; got {first[at]:g} and {labels[at]:g} for one "
            "document. A document has one label: correct the others."
        )


def credited(flavor: Flavor, graded: Graded, layout: Groups, repeats: Repeats) -> tuple[Graded, CreditedOnce | None]:
    """The documents with each judged once, and gains that credit each once if the flavor says so.

    `layout` has the ranked rows in the order in which they rank where scores are tied.
    """
    n_rows = layout.n_rows
    rows = layout.rows()
    ranked = np.zeros(n_rows, dtype=bool)
    ranked[rows] = True
    copies = repeats.copies.arranged(~ranked)
    assert copies.order is not None
    copy = np.zeros(n_rows, dtype=bool)
    copy[copies.order] = True
    later = copy.copy()
    later[copies.order[copies.starts]] = False
    graded = replace(graded, judged=graded.judged.keep(~later))
    if flavor.duplicates == "count":
        return graded, None
    graded = replace(graded, row_gains=np.where(later, 0.0, graded.gains))
    query = layout.codes()
    inside = np.isin(query, query[copy[rows]])
    return graded, CreditedOnce(
        average=flavor.ties == "average", copies=copies.keep(ranked), rows=rows[inside], query=query[inside]
    )


@dataclass(frozen=True, slots=True, eq=False)
class CreditedOnce:
    """How scores must be exchanged so that the copy with the gain ranks before the others of its document.

    Attributes
    ----------
    average : bool
        Whether ties are averaged.
    copies : Groups
        For each repeated document its ranked rows, the one with the gain first.
    rows, query : ndarray of int
        The ranked rows of the queries that hold a repeat, in the order in which they rank if they are tied; and
        which query each is of.
    """

    average: bool
    copies: Groups
    rows: IntArray
    query: IntArray

    def exchanged(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Return scores that keep every rank and give a document's first rank to the row with its gain.

        Raises
        ------
        ValueError
            Copies of a document share its best score, and ties are averaged.
        """
        out = scores.astype(np.float64)
        if np.isnan(out[self.rows]).any():  # the caller refuses NaN, which must not become a rank
            return scores
        if not self.average:  # a copy must not tie with other documents in place of another one: no ties at all
            order = np.lexsort((-out[self.rows], self.query))
            out[self.rows[order]] = -np.arange(order.size, dtype=np.float64)
        copies = self.copies
        assert copies.order is not None
        theirs = out[copies.order]
        theirs = theirs[np.lexsort((-theirs, copies.codes()))]
        second = copies.starts[copies.sizes > 1] + 1
        if (tied := theirs[second] == theirs[second - 1]).any():
            raise ValueError(
                "y_score must not tie a document with its own repeat under ties='average' with duplicates='first': "
                f"where every order counts the same, none of its ranks is the first; got {int(tied.sum())} such "
                "documents. Choose another tie rule, such as ties='first'."
            )
        out[copies.order] = theirs
        return out


def _listed(groups: Groups, values: NDArray[Any]) -> NDArray[Any]:
    assert groups.order is not None
    return values[groups.order]
