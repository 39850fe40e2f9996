"""Shared by Dask, Spark and Ray: checked arguments, and the part of some rows of a distributed table."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any

from ndcg_ml._checks import KSpec, cutoffs
from ndcg_ml._one_line import brief, brief_text
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.parts import PartialEvaluation, evaluate_part

MERGED_AT_ONCE = 16
"""Parts that one task merges. A part of a million queries has 8 MB."""


class EngineRows:
    """Columns of a distributed table and the flavor that its rows are evaluated under, checked before any work.

    Parameters
    ----------
    has : iterable of str
        Columns of the table.
    label, score, qid, flavor, k
        As for ``ndcg_ml.dask.evaluate``.

    Attributes
    ----------
    columns : dict
        The column of each of "label", "score" and "qid".

    Raises
    ------
    TypeError, ValueError
        A column is not in the table, or is named twice; the flavor or the cut-off is invalid; or the flavor follows the
        order of rows or document ids.
    """

    def __init__(self, has: Iterable[str], label: str, score: str, qid: str, flavor: Flavor | str, k: KSpec) -> None:
        self.columns: dict[str, Any] = {"label": label, "score": score, "qid": qid}
        names = list(has)
        for meaning, column in self.columns.items():
            if not isinstance(column, str):
                got = type(column).__name__
                raise TypeError(f"{meaning} must be the name of a column; got {brief(column)} of type {got}.")
            if column not in names:
                raise ValueError(
                    f"{meaning} must name a column of the frame; got {brief(column)}. It has "
                    f"{brief_text(', '.join(map(str, names)))}."
                )
        if len({label, score, qid}) < 3:
            raise ValueError(f"label, score and qid must name different columns; got {brief([label, score, qid])}.")
        self._flavor, self._k = as_flavor(flavor), k
        cutoffs(k, self._flavor)
        switch = f"ties={self._flavor.ties!r}" if self._flavor.ideal != "given" else "ideal='given'"
        if self._flavor.ideal == "given" or self._flavor.ties not in ("average", "best", "worst"):
            raise ValueError(
                "flavor must not follow the order of rows or document ids, because a shuffle by query keeps neither; "
                f'got {switch}. Choose ties="average" and another ideal, or add up evaluate_part(...) of whole queries.'
            )

    def part(self, rows: Mapping[str, Any]) -> PartialEvaluation:
        """Evaluate whole queries, from the values of each of `columns`."""
        return evaluate_part(rows["label"], rows["score"], qid=rows["qid"], flavor=self._flavor, k=self._k)

    def nothing(self) -> PartialEvaluation:
        """The part of no rows."""
        return self.part(dict.fromkeys(self.columns, ()))


def merged(parts: Iterable[bytes | PartialEvaluation]) -> PartialEvaluation:
    """Merge parts, pickled or not."""
    return PartialEvaluation.merge(pickle.loads(part) if isinstance(part, bytes) else part for part in parts)
