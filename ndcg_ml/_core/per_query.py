"""The table of queries of an evaluation: its columns, and its rows in frames and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.json_values import plain, plain_ids
from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.messages import brief


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class PerQuery:
    """One entry per query, as arrays of the same length. ``per_query["ndcg"]`` is ``per_query.ndcg``.

    Attributes
    ----------
    qid : ndarray
        The query's id, or its position if no ids were passed.
    ndcg, dcg, idcg : ndarray of float64
        NDCG, DCG and ideal DCG, with one column per cut-off if there are several. NDCG is nan for an empty query that
        is left out of the mean.
    empty : ndarray of bool
        Whether the ideal DCG is 0, with one column per cut-off if there are several.
    n_docs : ndarray of int
        Number of ranked documents.
    n_judged : ndarray of int
        Number of documents with a label, retrieved or not.
    n_relevant : ndarray of int
        Number of judged documents with a gain above 0.
    tied : ndarray of int
        Number of ranked documents that have the same score as another one of the query.
    weight : ndarray of float64
        The query's weight.
    n_retrieved : ndarray of int
        Only of a run: number of documents that it retrieves, without those in `exclude`. (``n_docs`` counts ranked
        documents, which are fewer under ``unjudged="condense"``.)
    judged : ndarray of float64
        Only of a run: fraction of the first k retrieved documents (or of all, if there are fewer) that are judged; nan
        if none is retrieved; one column per cut-off if there are several.
    """

    qid: NDArray[Any]
    ndcg: NDArray[np.float64]
    dcg: NDArray[np.float64]
    idcg: NDArray[np.float64]
    empty: NDArray[np.bool_]
    n_docs: NDArray[np.int64]
    n_judged: NDArray[np.int64]
    n_relevant: NDArray[np.int64]
    tied: NDArray[np.int64]
    weight: NDArray[np.float64]
    n_retrieved: Any = None
    judged: Any = None

    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name) is not None)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.keys():
            raise KeyError(f"{brief(name)} is not a column of per_query; the columns are {', '.join(self.keys())}.")
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.qid)

    def at(self, rows: NDArray[np.intp]) -> PerQuery:
        """Return the rows at these positions."""
        return replace(self, **{name: self[name][rows] for name in self})

    def columns(self, ks: Sequence[int | None]) -> dict[str, NDArray[Any]]:
        """Return one-dimensional columns; with several cut-offs, their names are such as ``ndcg@10``."""
        found: dict[str, NDArray[Any]] = {}
        for name in self:
            column = self[name]
            if column.ndim == 1:
                found[name] = column
            else:
                found |= {f"{name}{at_cutoff(k)}": values for k, values in zip(ks, column.T, strict=True)}
        return found

    def to_dicts(self, ks: Sequence[int | None]) -> list[dict[str, Any]]:
        """Return one dict per query, for JSON."""
        of_cutoffs = [name for name in ("ndcg", "dcg", "idcg", "empty", "judged") if name in self.keys()]
        by_k = {name: self[name].reshape(len(self), len(ks)).tolist() for name in of_cutoffs}
        counts = {name: self[name].tolist() for name in ("n_docs", "n_judged", "n_relevant", "tied")}
        return [
            {
                "qid": qid,
                **{name: column[i] for name, column in counts.items()},
                "values": [
                    {"k": k, **{name: plain(column[i][at]) for name, column in by_k.items()}} for at, k in enumerate(ks)
                ],
            }
            for i, qid in enumerate(plain_ids(self.qid).tolist())
        ]

    def __repr__(self) -> str:
        return f"<PerQuery of {len(self)} queries: {', '.join(self.keys())}>"
