"""Attribute the difference between two flavors to the switches in which they differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ndcg_ml._core.json_values import plain, plain_id
from ndcg_ml._core.mean_and_empty_queries import Totals
from ndcg_ml._core.per_query import PerQuery
from ndcg_ml._core.queries import Queries, Weights
from ndcg_ml._plain.checks import optional_whole_number, whole_number
from ndcg_ml._plain.flavor_text import switch_text
from ndcg_ml._plain.table import Column, Record
from ndcg_ml.arrays import Prepared
from ndcg_ml.flavor import Flavor, as_flavor, same_value

__all__ = ["Explanation", "Part", "QueryDifference", "explain_difference"]

# These do not change the ranking, so mixtures of them need no further one.
_AFTER_RANKING = frozenset({"k", "empty", "aggregate"})
# The largest number of parts for Shapley values, which take 2^7 rankings.
_SHAPLEY_PARTS = 7
# Smaller contributions are rounding errors.
_VISIBLE = 1e-15


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """The contribution of one switch to the difference, or of several that can only be changed together.

    Attributes
    ----------
    switches : tuple of str
        Fields of the flavor.
    a, b : tuple
        Their values in the two flavors.
    contribution : float
        The part of ``value_b - value_a``.
    """

    switches: tuple[str, ...]
    a: tuple[object, ...]
    b: tuple[object, ...]
    contribution: float

    @property
    def name(self) -> str:
        """The names of the switches, such as ``"ideal + max_grade"``."""
        return " + ".join(self.switches)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryDifference:
    """The contribution of one query to the difference.

    Attributes
    ----------
    qid : object
        The query's id, or its position if no ids were passed.
    contribution : float
        The part of ``value_b - value_a``.
    value_a, value_b : float
        Its NDCG in the two flavors; nan if it is empty and left out of the mean.
    n_docs : int
        Number of ranked documents, the larger one of the two flavors.
    tied : int
        Number of documents with the same score as another one, the larger one of the two flavors.
    empty_a, empty_b : bool
        Whether its ideal DCG is 0.
    """

    qid: object
    contribution: float
    value_a: float
    value_b: float
    n_docs: int
    tied: int
    empty_a: bool
    empty_b: bool


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Explanation:
    """The difference between two flavors on the same data, in parts that sum to it. ``print`` shows a table.

    Attributes
    ----------
    flavor_a, flavor_b : Flavor
    value_a, value_b : float
    parts : tuple of Part
        One for each switch in which the flavors differ, the largest first, including switches without effect.
    queries : tuple of QueryDifference
        The queries that contribute most, the largest first.
    n_queries : int
        Number of queries in the data.
    method : {"shapley", "order"}
        Whether the parts are Shapley values, or effects of changing one field after another from a to b.
    """

    flavor_a: Flavor
    flavor_b: Flavor
    value_a: float
    value_b: float
    parts: tuple[Part, ...]
    queries: tuple[QueryDifference, ...]
    n_queries: int
    method: str

    @property
    def difference(self) -> float:
        """``value_b - value_a``."""
        return self.value_b - self.value_a

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: flavors and switches as text, and None for nan.

        Returns
        -------
        dict
        """
        return {
            "flavor_a": str(self.flavor_a),
            "flavor_b": str(self.flavor_b),
            "value_a": self.value_a,
            "value_b": self.value_b,
            "difference": self.difference,
            "method": self.method,
            "parts": [
                {
                    "switches": list(part.switches),
                    "a": [switch_text(value) for value in part.a],
                    "b": [switch_text(value) for value in part.b],
                    "contribution": part.contribution,
                }
                for part in self.parts
            ],
            "n_queries": self.n_queries,
            "queries": [plain({**asdict(query), "qid": plain_id(query.qid)}) for query in self.queries],
        }

    def __str__(self) -> str:
        rows: list[dict[str, Any]] = []
        for part in self.parts:
            if abs(part.contribution) > _VISIBLE:
                a, b = (", ".join(map(switch_text, values)) for values in (part.a, part.b))
                rows.append({"switch": part.name, "a": a, "b": b, "contribution": part.contribution})
        idle = [part.name for part in self.parts if abs(part.contribution) <= _VISIBLE]
        rows.append({"switch": "b - a", "a": "", "b": "", "contribution": self.difference})
        contribution = Column("contribution", "{contribution:+.6f}")
        switches = [Column(name, f"{{{name}}}", "l") for name in ("switch", "a", "b")]
        lines = [
            f"a  {self.value_a:.6f}  {_titled(self.flavor_a)}",
            f"b  {self.value_b:.6f}  {_titled(self.flavor_b)}",
            "",
            Record([*switches, contribution], rows).text(),
        ]
        lines += [f"no effect on these data: {', '.join(idle)}"] * bool(idle)
        lines += [f"method: {_METHODS[self.method]}"] * bool(self.parts)
        if self.queries:
            columns = [
                *(Column("query", "{qid}", "l"), contribution),
                *(Column("a", "{value_a:.6f}"), Column("b", "{value_b:.6f}")),
                *(Column("documents", "{n_docs}"), Column("tied", "{tied}"), Column("empty", "{empty}", "l")),
            ]
            empty = {(True, True): "both", (True, False): "a", (False, True): "b", (False, False): "-"}
            listed = [{**asdict(each), "empty": empty[each.empty_a, each.empty_b]} for each in self.queries]
            caption = f"the largest {len(listed)} of {self.n_queries} queries"
            lines += ["", Record(columns, listed, caption=caption).text()]
        return "\n".join(lines)

    __repr__ = __str__


_METHODS: Mapping[str, str] = {
    "shapley": "Shapley values (each switch's mean effect over all orders of changing them)",
    "order": "one switch after another from a to b, in the order of the flavor's fields",
}


def explain_difference(
    flavor_a: Flavor | str,
    flavor_b: Flavor | str,
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int | None | EllipsisType = ...,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    doc_id: ArrayLike | None = None,
    query_weight: Weights | None = None,
    top: int = 10,
) -> Explanation:
    r"""Attribute the difference between two flavors' values to the switches in which they differ, exactly.

        value_b - value_a = sum of the parts' contributions = sum of the queries' contributions

    Parameters
    ----------
    flavor_a, flavor_b : Flavor or str
        Each a ``Flavor``, the name of a preset, or a flavor's text.
    y_true, y_score, qid, group, mask, retrieved, doc_id, query_weight
        As for ``ndcg_score``.
    k : int or None, optional
        One cut-off for both flavors. Default: each flavor's own; the cut-off is then a switch like the others.
    top : int, default 10
        Number of queries to list, those that contribute most; 0 for none.

    Returns
    -------
    Explanation
        With ``.parts``, ``.queries``, ``.difference`` and ``.to_dict()``; ``print`` shows a table.

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_score`` under either flavor. ValueError also if a value is nan.

    Notes
    -----
    Parts are Shapley values: the effect of changing a switch from its value in a to that in b, averaged over all orders
    of changing the switches. A switch without effect has 0, and exchanging a and b changes the signs. Seven switches
    take 128 rankings; k, empty and aggregate need none of their own, and neither do switches that cannot matter on the
    data. With more than seven, or if a mixture of the flavors is undefined on the data (such as ``empty="raise"`` of
    one with a gain of the other that makes a query empty), the switches are changed one after another, in the order of
    the flavor's fields. A switch whose mixture is undefined is then joined with the next. ``method`` says which of the
    two was used.

    Switches that depend on each other are one part: ``gain`` with ``off_table``; ``ideal`` with ``recall_depth``, and
    with ``max_grade`` if one of the ideals is ``max``.

    The value is a mean of the queries' NDCG weighted by their shares (under micro, the shares of the ideal DCG). A
    query contributes share_b (ndcg_b - m) - share_a (ndcg_a - m), where m is the mean of the two values. With equal
    shares this is share (ndcg_b - ndcg_a). A query that only b leaves out raises b's value if its NDCG is below m.

    L. Shapley, A value for n-person games, Contributions to the Theory of Games II, 1953.

    Examples
    --------
    >>> result = explain_difference("sklearn", "lightgbm", [0, 1, 3, 0, 0], [2, 1, 1, 2, 1], group=[3, 2])
    >>> print(result)
    a  0.311471  sklearn: ndcg[gain=linear,discount=log2,ideal=recall,ties=average,empty=0]
    b  0.770670  lightgbm: ndcg[gain=exponential,discount=log2,ideal=recall,ties=first,empty=1]
    <BLANKLINE>
    switch  a        b            contribution
    empty   0        1               +0.500000
    ties    average  first           -0.021883
    gain    linear   exponential     -0.018918
    b - a                            +0.459199
    method: Shapley values (each switch's mean effect over all orders of changing them)
    <BLANKLINE>
    query  contribution         a         b  documents  tied  empty
    1         +0.500000  0.000000  1.000000          2     0  both
    0         -0.040801  0.622942  0.541340          3     2  -
    the largest 2 of 2 queries
    """
    a, b = as_flavor(flavor_a), as_flavor(flavor_b)
    if not isinstance(k, EllipsisType):
        cut = optional_whole_number(k, "k", "for no cut-off")
        a, b = a.replace(k=cut), b.replace(k=cut)
    n_shown = whole_number(top, "top", 0)
    data = Queries.read(
        y_true, qid=qid, group=group, mask=mask, retrieved=retrieved, doc_id=doc_id, query_weight=query_weight
    )
    # Evaluate both flavors first, so that invalid input is refused before any mixture is tried.
    table_a, table_b = (Prepared(flavor, ..., data).evaluate(y_score).per_query for flavor in (a, b))
    mixtures = _Mixtures(a, b, lambda flavor, ks: Prepared(flavor, ks, data).totals(y_score))
    value_a, value_b = mixtures.end("flavor_a", a), mixtures.end("flavor_b", b)
    # Switches that cannot matter on these data need no mixtures, and inseparable ones share theirs.
    idle = _idle(a, b, data)
    parts_apart = _inseparable(a, b)
    active = [switches for switches in parts_apart if not idle.issuperset(switches)]
    own_ranking = sum(not _AFTER_RANKING.issuperset(switches) for switches in active)
    shapley = _shapley(active, mixtures) if own_ranking <= _SHAPLEY_PARTS else None
    contributions = _change_in_order(active, mixtures) if shapley is None else shapley
    contributions += [(switches, 0.0) for switches in parts_apart if switches not in active]
    parts = [
        Part(
            switches=switches,
            a=tuple(getattr(a, name) for name in switches),
            b=tuple(getattr(b, name) for name in switches),
            contribution=contribution,
        )
        for switches, contribution in contributions
    ]
    return Explanation(
        flavor_a=a,
        flavor_b=b,
        value_a=value_a,
        value_b=value_b,
        parts=tuple(sorted(parts, key=lambda part: -abs(part.contribution))),
        queries=_queries(mixtures, value_a, value_b, table_a, table_b, n_shown),
        n_queries=len(table_a),
        method="order" if shapley is None else "shapley",
    )


# -- mixtures of two flavors ----------------------------------------------------------------------------------------

Switches = tuple[str, ...]


class _Mixtures:
    """Values of flavors with some switches of b and the others of a. Each ranking is made once."""

    def __init__(self, a: Flavor, b: Flavor, rank: Callable[[Flavor, Sequence[int | None]], Totals]) -> None:
        self.a, self.b = a, b
        self._ks = tuple(dict.fromkeys((a.k, b.k)))
        self._rank = rank
        self._totals: dict[Flavor, Totals] = {}

    def totals(self, flavor: Flavor) -> Totals:
        key = flavor.replace(k=None, empty=0.0, aggregate="macro")
        if key not in self._totals:
            self._totals[key] = self._rank(key, self._ks)
        return self._totals[key]

    def end(self, name: str, flavor: Flavor) -> float:
        value = self._value(flavor)
        if value is None:
            raise ValueError(
                f"{name} must have a finite value on these data to be explained; got nan or infinity under {flavor}. "
                "Choose empty=0, 1 or 'skip' in place of nan, or remove the queries without a relevant document."
            )
        return value

    def value(self, from_b: Sequence[str]) -> float | None:
        """Return the value; None if the mixture is invalid, undefined on the data, or not finite."""
        try:
            return self._value(self.a.replace(**{name: getattr(self.b, name) for name in from_b}))
        except (TypeError, ValueError):  # both flavors are valid here, so the mixture is not
            return None

    def _value(self, flavor: Flavor) -> float | None:
        return self.totals(flavor).finite_values(flavor)[self._ks.index(flavor.k)]


def _idle(a: Flavor, b: Flavor, data: Queries) -> set[str]:
    """Return the switches that cannot matter on these data."""
    idle, labels = set(), data.labels
    if not (labels < 0).any():
        idle.add("negative")
    if not np.isnan(labels).any():
        idle.add("unjudged")
    if "max" not in (a.ideal, b.ideal):
        idle.add("max_grade")
    if data.repeats is None:
        idle.add("duplicates")
    return idle


def _inseparable(a: Flavor, b: Flavor) -> list[Switches]:
    """Return the switches that differ; those that depend on each other are one part."""
    differ = [f.name for f in fields(Flavor) if not same_value(getattr(a, f.name), getattr(b, f.name))]
    top = ("max_grade",) * ("max" in (a.ideal, b.ideal))
    together = ("gain", "off_table"), ("ideal", "recall_depth", *top)
    parts = []
    for name in differ:
        group = next((names for names in together if name in names), (name,))
        parts.append(tuple(each for each in differ if each in group))
    return list(dict.fromkeys(parts))


def _shapley(parts: Sequence[Switches], mixtures: _Mixtures) -> list[tuple[Switches, float]] | None:
    """Return the Shapley value of each part; None if a mixture is undefined."""
    values: dict[frozenset[Switches], float] = {}
    for bits in range(1 << len(parts)):
        chosen = frozenset(part for at, part in enumerate(parts) if bits >> at & 1)
        value = mixtures.value([name for part in chosen for name in part])
        if value is None:
            return None
        values[chosen] = value
    n = len(parts)
    weight = [math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n) for size in range(n)]
    return [
        (
            part,
            math.fsum(
                weight[len(chosen)] * (values[chosen | {part}] - value)
                for chosen, value in values.items()
                if part not in chosen
            ),
        )
        for part in parts
    ]


def _change_in_order(parts: Sequence[Switches], mixtures: _Mixtures) -> list[tuple[Switches, float]]:
    """Return the effect of each part in turn. A part whose mixture is undefined is joined with the next."""
    taken: list[str] = []
    waiting: list[Switches] = []
    steps: list[tuple[Switches, float]] = []
    before = mixtures.value(taken)
    for part in parts:
        taken.extend(part)
        waiting.append(part)
        after = mixtures.value(taken)
        if after is None:
            continue
        assert before is not None
        steps.append((tuple(name for held in waiting for name in held), after - before))
        waiting, before = [], after
    return steps


# -- queries --------------------------------------------------------------------------------------------------------


def _queries(
    mixtures: _Mixtures, value_a: float, value_b: float, table_a: PerQuery, table_b: PerQuery, n_shown: int
) -> tuple[QueryDifference, ...]:
    a, b = mixtures.a, mixtures.b
    ndcg_a, share_a, empty_a = mixtures.totals(a).shares(a, a.k)
    ndcg_b, share_b, empty_b = mixtures.totals(b).shares(b, b.k)
    middle = value_a + (value_b - value_a) / 2
    contribution = _times(share_b, ndcg_b - middle) - _times(share_a, ndcg_a - middle)
    first = np.argsort(-np.abs(contribution), kind="stable")[:n_shown]
    return tuple(
        QueryDifference(
            qid=table_a.qid[at].item() if hasattr(table_a.qid[at], "item") else table_a.qid[at],
            contribution=float(contribution[at]),
            value_a=float(ndcg_a[at]),
            value_b=float(ndcg_b[at]),
            n_docs=int(max(table_a.n_docs[at], table_b.n_docs[at])),
            tied=int(max(table_a.tied[at], table_b.tied[at])),
            empty_a=bool(empty_a[at]),
            empty_b=bool(empty_b[at]),
        )
        for at in first
        if abs(contribution[at]) > _VISIBLE
    )


def _times(share: Any, gap: Any) -> Any:
    return np.where(share > 0, share * gap, 0.0)  # a query with share 0 may be nan


# -- text -----------------------------------------------------------------------------------------------------------


def _titled(flavor: Flavor) -> str:
    name = flavor.preset_name
    return str(flavor) if name is None else f"{name}: {flavor}"
