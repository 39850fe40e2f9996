"""What Dask, Spark and Ray share: the columns of a distributed table, and the part that some of its queries are."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._checks import KSpec, cutoffs
from ndcg_ml._one_line import shown, shown_text
from ndcg_ml._parts.query_ids import digests
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.parts import PartialEvaluation, evaluate_part

MERGED_AT_ONCE = 16
"""Parts that one task merges. A part of a million queries has 8 MB."""


@dataclass(frozen=True)
class EngineRows:
    """Columns of a distributed table, and the flavor that its rows are evaluated under.

    Attributes
    ----------
    label, score, qid : str
    position : str or None
        The column by which the rows of a query are put back into the order that they had before a shuffle.
    flavor : Flavor
    k : int, None, sequence of them, or ...
    """

    label: str
    score: str
    qid: str
    position: str | None
    flavor: Flavor
    k: Any

    @classmethod
    def read(cls, label: str, score: str, qid: str, position: str | None, flavor: Flavor | str, k: KSpec) -> EngineRows:
        """The same from arguments, which are checked before anything is computed.

        Raises
        ------
        TypeError, ValueError
            A column is not named by text, or for two things; the flavor or the cut-off is none; ties need document ids;
            or the flavor ranks tied documents in the order of the rows, and `position` is missing.
        """
        names: dict[str, str | None] = {"label": label, "score": score, "qid": qid, "position": position}
        for name, column in names.items():
            if not isinstance(column, str) and not (name == "position" and column is None):
                got = type(column).__name__
                raise TypeError(f"{name} must be the name of a column; got {shown(column)} of type {got}.")
        given = [column for column in names.values() if column is not None]
        if twice := [column for column in given if given.count(column) > 1]:
            raise ValueError(
                f"label, score, qid and position must name different columns; got {shown(twice[0])} twice."
            )
        chosen = as_flavor(flavor)
        cutoffs(k, chosen)
        in_order = [
            text
            for text, ordered in (
                (f"ties={chosen.ties!r}", chosen.ties in ("first", "last")),
                ("ideal='given'", chosen.ideal == "given"),
            )
            if ordered
        ]
        if in_order and position is None:
            raise ValueError(
                f"position must name a column that tells the order of a query's rows, because {' and '.join(in_order)} "
                "follows that order and a shuffle by query does not keep it; got None. Number the rows before they are "
                'distributed, or choose a flavor that does not look at the order: ties="average".'
            )
        if chosen.ties.startswith("docid"):
            raise ValueError(
                "flavor must not rank tied documents by their ids here, where rows carry none; got "
                f"ties={chosen.ties!r}. "
                'Choose ties="average", or evaluate_part(..., doc_id=) per group of whole queries.'
            )
        return cls(label, score, qid, position, chosen, k)

    @property
    def columns(self) -> dict[str, str]:
        """What each column means, and what it is called."""
        named = {"label": self.label, "score": self.score, "qid": self.qid}
        return named if self.position is None else {**named, "position": self.position}

    def refuse_missing(self, columns: Iterable[object]) -> None:
        """Refuse a table that lacks a column.

        Raises
        ------
        ValueError
        """
        there = list(columns)
        for meaning, column in self.columns.items():
            if column not in there:
                raise ValueError(
                    f"{meaning} must name a column of the frame; got {shown(column)}. It has "
                    f"{shown_text(', '.join(map(str, there)))}."
                )

    def part(self, rows: Mapping[str, Any]) -> PartialEvaluation:
        """The part of these rows, by what their columns mean: whole queries, their rows in any order.

        Raises
        ------
        ValueError
            Two rows of a query have one position, or as for ``evaluate_part``.
        """
        labels, scores, ids = (rows[meaning] for meaning in ("label", "score", "qid"))
        if self.position is not None and len(ids):
            order = _in_order(np.asarray(ids), np.asarray(rows["position"]))
            labels, scores, ids = (np.asarray(values)[order] for values in (labels, scores, ids))
        return evaluate_part(labels, scores, qid=ids, flavor=self.flavor, k=self.k)

    def nothing(self) -> PartialEvaluation:
        """The part of no rows."""
        return self.part(dict.fromkeys(self.columns, ()))

    def packed(self, rows: Mapping[str, Any]) -> bytes:
        """The same as bytes, for engines whose tables hold no objects."""
        return pickle.dumps(self.part(rows))


def _in_order(ids: NDArray[Any], position: NDArray[Any]) -> NDArray[np.int64]:
    """The rows by query and position."""
    if position.dtype.kind not in "iufM" or (position != position).any():
        raise ValueError(
            f"position must be a column of numbers or times without missing ones; got dtype {position.dtype}."
        )
    query = digests(ids)[1]
    order = np.lexsort((position, query))
    same = (np.diff(query[order].view(np.int64)) == 0) & (position[order][1:] == position[order][:-1])
    if same.any():
        row = order[int(np.flatnonzero(same)[0])]
        raise ValueError(
            f"position must be different in every row of a query; got {shown(position[row].item())} twice in query "
            f"{shown(ids[row].item() if isinstance(ids[row], np.generic) else ids[row])}."
        )
    return order


def merged(parts: Iterable[Any]) -> PartialEvaluation:
    """Parts, or the bytes that ``packed`` made of them, as one."""
    return PartialEvaluation.merge(pickle.loads(part) if isinstance(part, bytes) else part for part in parts)


def merged_packed(parts: Iterable[bytes]) -> bytes:
    """The same from bytes to bytes."""
    return pickle.dumps(merged(parts))
