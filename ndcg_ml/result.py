"""The result of an evaluation: one value, and the table of queries behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._frames import made
from ndcg_ml._shown import shown
from ndcg_ml.flavor import Flavor

__all__ = ["Evaluation", "PerQuery", "at_cutoff"]

V = TypeVar("V", bound="float | dict[int | None, float]")
"""The value: a float, or a dict by cut-off where several were asked for."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class PerQuery:
    """One entry per query, as arrays of the same length. ``per_query["ndcg"]`` is ``per_query.ndcg``.

    Attributes
    ----------
    qid : ndarray
        The query's id; its position, where the caller gave no ids.
    ndcg, dcg, idcg : ndarray of float64
        NDCG (nan for an empty query that the mean skips), DCG and ideal DCG; with several cut-offs one column each.
        A DCG too large for float64 is inf; NDCG is still exact.
    empty : ndarray of bool
        Whether the ideal DCG is 0; with several cut-offs one column each.
    n_docs : ndarray of int
        Documents that were ranked.
    n_judged : ndarray of int
        Documents that have a label, retrieved or not.
    n_relevant : ndarray of int
        Judged documents whose gain is above 0.
    tied : ndarray of int
        Ranked documents that share their score with another one of the query.
    weight : ndarray of float64
        The query's weight.
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

    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(field.name for field in fields(self))

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.keys():
            raise KeyError(f"{shown(name)} is not a column of per_query; the columns are {', '.join(self.keys())}.")
        column: NDArray[Any] = getattr(self, name)
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.qid)

    def __repr__(self) -> str:
        return f"<PerQuery of {len(self)} queries: {', '.join(self.keys())}>"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Evaluation(Generic[V]):
    """NDCG of a set of queries, with what it is made of.

    Attributes
    ----------
    value : float, or dict of float by cut-off
        The aggregated NDCG.
    flavor : Flavor
        The flavor it was computed under.
    k : int, None, or tuple of them
        The cut-off, or the cut-offs.
    n_queries : int
        Number of queries.
    n_empty : int, or dict of int by cut-off
        Number of queries whose ideal DCG is 0; ``flavor.empty`` says what they scored.
    per_query : PerQuery
        The table of queries, as arrays.
    frame_library : str
        Whose data frames ``to_frame`` makes: "pandas", "polars" or "pyarrow", as the caller's data were; else "pandas".

    Examples
    --------
    >>> from ndcg_ml import evaluate
    >>> result = evaluate([3, 0, 1, 0, 0], [.9, .1, .3, .2, .8], group=[3, 2], flavor="lightgbm", k=10)
    >>> result.value, result.n_queries, result.n_empty
    (1.0, 2, 1)
    >>> result.per_query.n_relevant
    array([2, 0])
    """

    value: V
    flavor: Flavor
    k: int | None | tuple[int | None, ...]
    n_queries: int
    n_empty: int | dict[int | None, int]
    per_query: PerQuery
    frame_library: str = "pandas"

    def to_frame(self) -> Any:
        """The table of queries as a data frame, one row per query.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Of ``frame_library``. With several cut-offs the columns of each are named like ``ndcg@10``.

        Raises
        ------
        ImportError
            The library is not installed.
        """
        columns: dict[str, NDArray[Any]] = {}
        for name in self.per_query:
            table = self.per_query[name]
            if table.ndim == 1:
                columns[name] = table
            else:
                assert isinstance(self.k, tuple)
                columns.update({f"{name}{at_cutoff(k)}": table[:, i] for i, k in enumerate(self.k)})
        return made(self.frame_library, columns)

    def __str__(self) -> str:
        values = self.value if isinstance(self.value, dict) else {self.flavor.k: self.value}
        empties = self.n_empty if isinstance(self.n_empty, dict) else {self.flavor.k: self.n_empty}
        lines = [f"ndcg{at_cutoff(k)} = {value:.6f}" for k, value in values.items()]
        n_empty = sorted(set(empties.values()))
        rule = {"skip": "left out of the mean", "raise": "refused"}.get(
            str(self.flavor.empty), f"scored {self.flavor.empty:g}" if isinstance(self.flavor.empty, float) else ""
        )
        shown = "-".join(str(n) for n in dict.fromkeys((n_empty[0], n_empty[-1])))
        lines.append(f"{self.n_queries} queries, {shown} empty ({rule}); {int(self.per_query.n_docs.sum())} documents")
        lines.append(str(self.flavor))
        return "\n".join(lines)


def at_cutoff(k: int | None) -> str:
    """The cut-off as part of a name."""
    return "" if k is None else f"@{k}"
