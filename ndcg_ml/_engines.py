"""Code shared by Dask, Spark and Ray: checks of arguments, and the evaluation of part of a table."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any

from ndcg_ml._core.checks import KSpec, cutoffs
from ndcg_ml._core.one_line import brief, brief_text
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.parts import PartialEvaluation, evaluate_part


class EngineRows:
    """Columns of a distributed table and the flavor of its evaluation, checked before any work.

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
        A column is not in the table, or is passed twice; the flavor or the cut-off is invalid; or the flavor depends on
        the order of rows or on document ids.
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
                f'got {switch}. Choose ties="average" and another ideal, or merge evaluate_part(...) of whole queries.'
            )

    def part(self, rows: Mapping[str, Any]) -> PartialEvaluation:
        """Evaluate whole queries, from the values of each of `columns`."""
        return evaluate_part(rows["label"], rows["score"], qid=rows["qid"], flavor=self._flavor, k=self._k)

    def empty_part(self) -> PartialEvaluation:
        """Return the part without rows."""
        return self.part(dict.fromkeys(self.columns, ()))


def merge_parts(parts: Iterable[bytes | PartialEvaluation]) -> PartialEvaluation:
    """Merge parts, which may be pickled."""
    return PartialEvaluation.merge(pickle.loads(part) if isinstance(part, bytes) else part for part in parts)
