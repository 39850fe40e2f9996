"""Which NDCG a reported number is: the presets, then combinations of switches, that reproduce it on the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._aggregate import Totals
from ndcg_ml._checks import TIES_BY_ID, KSpec, cutoffs, finite_number, optional_whole_number
from ndcg_ml._flavor_text import switch_text
from ndcg_ml._gains import gain
from ndcg_ml._underflow import underflow_is_zero
from ndcg_ml.flavor import PRESETS, Flavor
from ndcg_ml.prepared import Prepared
from ndcg_ml.queries import Queries, Weights

__all__ = ["Identification", "Match", "identify"]

FloatArray = NDArray[np.float64]
Rank: TypeAlias = Callable[[Flavor, Sequence["int | None"]], Totals]

COMMON_KS = (None, 1, 3, 5, 10, 20, 100)
"""The cut-offs that are tried where none is given, beside each preset's own."""

# Two flavors whose values are this close are the same flavor as far as the data can tell.
_SAME = 1e-12
# With decimals=None the value is taken to be exact, up to what a library's own summation loses.
_EXACT = 1e-9
# How much of the last printed digit a library's own rounding (of float32 sums, say) may cost.
_SLACK = 0.01
_NEAREST = 5
_PRINTED = 10
_FEW_GRADES = frozenset(map(float, range(32)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A value that some flavors have on the data, named after one of them.

    Attributes
    ----------
    name : str
        The flavor, as text that starts from a preset: ``lightgbm@10``, ``lightgbm@10[ties=average]``.
    flavor : Flavor
    value : float
        Its value on the data.
    presets : tuple of str
        Every preset with this value, with its cut-off; the first is `name`, unless there is none.
    n_others : int
        How many other combinations of switches have the same value to 1e-12 on the data.
    free : dict of str to tuple
        The switches that can be changed, one at a time, without changing the value: the values that give the same
        number, the flavor's own first. (A table of gains comes with the ``off_table`` of its preset, a top grade with
        ``max``.)
    """

    name: str
    flavor: Flavor
    value: float
    presets: tuple[str, ...]
    n_others: int
    free: Mapping[str, tuple[object, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Identification:
    """The flavors that reproduce a reported number. ``print`` shows them.

    Attributes
    ----------
    value : float
        The number, as it was given.
    decimals : int or None
        The decimals to which it was rounded.
    truncated : bool
        Whether nothing rounds to the number, and the matches are flavors whose value is cut off to it.
    matches : tuple of Match
        Those with a preset first.
    nearest : tuple of Match
        Where nothing matches: what comes closest.
    n_tried : int
        Flavors whose value was compared.
    not_tried : dict of str to str
        Presets and switches that the data rule out, and why.
    reasons : dict of str to str
        Why switches have no effect on these data, where a reason is known.
    """

    value: float
    decimals: int | None
    truncated: bool
    matches: tuple[Match, ...]
    nearest: tuple[Match, ...]
    n_tried: int
    not_tried: Mapping[str, str]
    reasons: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON: flavors and switches as text.

        Returns
        -------
        dict
        """

        def plain(match: Match) -> dict[str, Any]:
            return {
                "name": match.name,
                "flavor": str(match.flavor),
                "value": match.value,
                "presets": list(match.presets),
                "n_others": match.n_others,
                "free": {switch: [switch_text(value) for value in values] for switch, values in match.free.items()},
            }

        return {
            "value": self.value,
            "decimals": self.decimals,
            "truncated": self.truncated,
            "matches": [plain(match) for match in self.matches],
            "nearest": [plain(match) for match in self.nearest],
            "n_tried": self.n_tried,
            "not_tried": dict(self.not_tried),
            "reasons": dict(self.reasons),
        }

    def __str__(self) -> str:
        shown = repr(self.value) if self.decimals is None else f"{self.value:.{self.decimals}f}"
        lines = [f"{shown}: {self.count_text()}"]
        listed = self.matches or self.nearest
        width = max((len(match.name) for match in listed[:_PRINTED]), default=0)
        for match in listed[:_PRINTED]:
            lines.append(f"  {match.name:<{width}}  {match.value:.6f}{self._others(match)}")
            lines += [f"    {line}" for line in self.free_text(match)]
        if len(listed) > _PRINTED:
            lines.append(f"  and {len(listed) - _PRINTED} more")
        lines.append(f"{self.n_tried} flavors tried")
        lines += [f"not tried: {each}" for each in self.not_tried_text()]
        return "\n".join(lines)

    def count_text(self) -> str:
        """How many matches there are."""
        if not self.matches:
            return "no match; the nearest are"
        how = ", if it was cut off rather than rounded" if self.truncated else ""
        return f"{len(self.matches)} match{'es' if len(self.matches) > 1 else ''}{how}"

    def free_text(self, match: Match) -> list[str]:
        """A line for each switch that can be changed without changing the value."""
        lines = []
        for switch, values in match.free.items():
            why = f" ({self.reasons[switch]})" if switch in self.reasons else ""
            lines.append(f"{switch} may be {', '.join(map(switch_text, values))}{why}")
        return lines

    def not_tried_text(self) -> list[str]:
        """A line for each reason why presets and switches were not tried."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.not_tried.items():
            by_reason.setdefault(reason, []).append(name)
        return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]

    def _others(self, match: Match) -> str:
        if not match.n_others:
            return ""
        also = ", ".join(match.presets[1:])
        named = f", among them {also}" if also else ""
        return f"  and {match.n_others} other{'s' if match.n_others > 1 else ''} with the same number here{named}"


@underflow_is_zero
def identify(
    value: float,
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: KSpec = ...,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    doc_id: ArrayLike | None = None,
    query_weight: Weights | None = None,
    decimals: int | None = 4,
) -> Identification:
    """Find the flavors that reproduce a reported number on the data that it was computed from.

    Parameters
    ----------
    value : float
        The reported NDCG.
    y_true, y_score, qid, group, mask, retrieved, doc_id, query_weight
        As for ``ndcg_score``. Pass everything that the reporting library saw: `doc_id` if it orders ties by id,
        `retrieved` if it knows of judged documents that were not retrieved.
    k : int, None or sequence of them, optional
        The cut-off, where it is known, or several to choose from. Default: each preset's own, and no cut-off, 1, 3, 5,
        10, 20 and 100.
    decimals : int or None, default 4
        The decimals to which the number was rounded: a flavor matches within half a unit of the last one, plus a
        hundredth of a unit for the library's own rounding. None means an exact number, which matches to 1e-9.

    Returns
    -------
    Identification
        ``.matches``, the likeliest first; ``print`` shows them, ``.to_dict()`` is for JSON.

    Raises
    ------
    TypeError, ValueError
        `value` is not a finite number, `decimals` not an integer >= 0, or as for ``ndcg_score`` under any flavor.

    Notes
    -----
    It tries every preset, and every combination of gain (linear, exponential, binary, and the tables of presets),
    discount (with the bases of presets), ideal (global, recall, local, and max with the highest label), ideal_depth (k,
    all), ties, empty (0, 1, skip), aggregate, score_dtype and k; also of negative if labels are negative, of unjudged
    if labels are missing, and of duplicates if a query lists a document twice. All other switches are tried only as the
    presets set them. The discounts ``ln`` and ``log2`` give one NDCG, and ``log2`` stands for both. What the data rule
    out, such as ``ties="docid"`` without ids, is listed in ``not_tried``. This takes a few hundred rankings, a second
    for 10 000 documents.

    Flavors whose values agree to 1e-12 are one match, because the data cannot tell them apart. It is named after a
    preset if there is one, otherwise after the preset from which the fewest switches differ.

    Matches with a preset come first. If the value has more decimals than `decimals`, they are ordered by their distance
    from it. Otherwise all agree with it equally well: a preset at its own cut-off comes before others, then the order
    is that of ``PRESETS``, as it is among presets that coincide. Matches without a preset follow, those with the fewest
    changes first.

    If nothing rounds to the value and it has no more than `decimals` decimals, flavors match whose value is cut off to
    it.

    Examples
    --------
    >>> y_true, y_score, group = [0, 2, 1, 0, 3, 1, 0, 0], [.9, .5, .5, .2, .7, .8, .1, .5], [5, 1, 2]
    >>> result = identify(0.8766, y_true, y_score, group=group, k=3)
    >>> result.matches[0].name
    'lightgbm@3'
    """
    number = finite_number(value, "value")
    digits = optional_whole_number(decimals, "decimals", "if it is exact", 0)
    tried = None if isinstance(k, EllipsisType) else cutoffs(k, Flavor())[0]
    queries = Queries.read(
        y_true, qid=qid, group=group, mask=mask, retrieved=retrieved, doc_id=doc_id, query_weight=query_weight
    )
    # A flavor that refuses nothing: what fails here is wrong with the data, and must be fixed by the caller.
    Prepared(Flavor(negative="allow", unjudged="zero", duplicates="count"), None, queries).evaluate(y_score)
    data = _Data.of(queries, queries.scores(y_score), queries.scores(y_score, exact=False))

    def rank(flavor: Flavor, ks: Sequence[int | None]) -> Totals:
        return Prepared(flavor, ks, queries).totals(y_score)

    not_tried: dict[str, str] = {}
    presets = _preset_candidates(data, tried, rank, not_tried)
    grid = _Grid.of(data, tried, rank, not_tried)
    return _identification(number, digits, presets, grid, data, not_tried)


# -- the data -------------------------------------------------------------------------------------------------------


class _Data(NamedTuple):
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

    @classmethod
    def of(cls, queries: Queries, exact: NDArray[Any], rounded: NDArray[Any]) -> _Data:
        groups = queries.groups
        rows = np.arange(groups.n_rows) if groups.order is None else groups.order
        flat = queries.labels.reshape(-1).astype(np.float64)
        labels, scores, coarse = flat[rows], exact[rows], rounded[rows]
        judged = labels[~np.isnan(labels)]
        with np.errstate(over="ignore"):
            distinct, distinct32 = (_n_distinct(groups.codes(), s) for s in (scores, coarse.astype(np.float32)))
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
        )

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
        if self.everything_retrieved and not self.unjudged and not self.negative and flavor.ideal == "recall":
            same["ideal"] = "global"
        return flavor.replace(**same)

    def _gains(self, flavor: Flavor) -> tuple[float, ...] | None:
        """The gain of each grade; None where the grades are not few and whole, or gain by another rule."""
        if not set(self.grades) <= _FEW_GRADES or flavor.gain in ("linear", "judged") or callable(flavor.gain):
            return None
        return tuple(gain(flavor, np.array(self.grades)).tolist())

    def reasons(self) -> dict[str, str]:
        """Why a switch may have no effect, by switch."""
        found = {}
        if not self.tied:
            found["ties"] = "no two documents of a query have the same score"
        if not self.tied_by_float32:
            found["score_dtype"] = "float32 makes no further scores equal"
        if set(self.grades) <= {0.0, 1.0}:
            found["gain"] = "all labels are 0 or 1"
        if self.everything_retrieved:
            found["ideal"] = "every document was retrieved"
        if self.all_relevant:
            found["empty"] = "every query has a relevant document"
        if self.n_queries == 1:
            found["aggregate"] = "there is one query"
        found["k"] = f"the longest query has {self.longest} document{'s' if self.longest > 1 else ''}"
        return found


def _n_distinct(query: NDArray[Any], scores: NDArray[Any]) -> int:
    order = np.lexsort((scores, query))
    scores, query = scores[order], query[order]
    new = (scores[1:] != scores[:-1]) | (query[1:] != query[:-1])
    return int(new.sum()) + min(1, scores.size)


# -- candidates -----------------------------------------------------------------------------------------------------


class _Candidate(NamedTuple):
    """A preset at a cut-off."""

    name: str
    flavor: Flavor
    own_k: bool
    value: float

    @property
    def text(self) -> str:
        return self.name if self.flavor.k is None and PRESETS[self.name].k is None else f"{self.name}@{self.flavor.k}"


def _preset_candidates(
    data: _Data, ks: tuple[int | None, ...] | None, rank: Rank, not_tried: dict[str, str]
) -> list[_Candidate]:
    """Every preset at every cut-off, those at their own cut-off first, else in the order of ``PRESETS``."""
    found = []
    for name, flavor in PRESETS.items():
        if flavor.ties in TIES_BY_ID and not data.ids:
            not_tried[name] = _NO_IDS
            continue
        mine = tuple(dict.fromkeys((flavor.k, *COMMON_KS))) if ks is None else ks
        try:
            values = rank(flavor, mine).finite_values(flavor)
        except ValueError as error:
            not_tried[name] = str(error)
            continue
        found += [
            _Candidate(name, flavor.replace(k=k), ks is not None or k == flavor.k, value)
            for k, value in zip(mine, values, strict=True)
            if value is not None
        ]
        if all(value is None for value in values):
            not_tried[name] = f"it has no value under empty={switch_text(flavor.empty)}"
    return sorted(found, key=lambda candidate: not candidate.own_k)


# fmt: off
AXES = (
    "gain", "discount", "ideal", "ideal_depth", "ties", "score_dtype", "negative", "unjudged", "duplicates",
    "empty", "aggregate", "k",
)
# fmt: on
# Axes whose choices are pairs, of this switch and the one that only makes sense with it.
_PAIRED = {"gain": "off_table", "discount": "discount_base"}
_EMPTY = (0.0, 1.0, "skip")
_AGGREGATE = ("macro", "micro")
_NO_IDS = "doc_id was not given"


class _Grid(NamedTuple):
    """The value of every combination of switches: an array with an axis for each of AXES; nan was not tried."""

    choices: tuple[tuple[Any, ...], ...]
    top: float
    values: NDArray[np.float64]

    @classmethod
    def of(cls, data: _Data, ks: tuple[int | None, ...] | None, rank: Rank, not_tried: dict[str, str]) -> _Grid:
        tables = dict.fromkeys((f.gain, f.off_table) for f in PRESETS.values() if isinstance(f.gain, tuple))
        bases = dict.fromkeys((2.0, *(f.discount_base for f in PRESETS.values())))
        own = dict.fromkeys(f.k for f in PRESETS.values())
        ties = ("average", "first", "last", "best", "worst")
        choices: tuple[tuple[Any, ...], ...] = (
            (("linear", "raise"), ("exponential", "raise"), ("binary", "raise"), *tables),
            (("log2", 2.0), ("reciprocal", 2.0), ("none", 2.0), *(("jarvelin", base) for base in bases)),
            ("global", "recall", "local", "max"),
            ("k", "all"),
            (*ties, *TIES_BY_ID) if data.ids else ties,
            ("float64", "float32"),
            ("zero", "drop", "allow") if data.negative else ("raise",),
            ("zero", "condense") if data.unjudged else ("raise",),
            ("first", "count") if data.repeats else ("raise",),
            _EMPTY,
            _AGGREGATE,
            tuple(dict.fromkeys((*COMMON_KS, *own))) if ks is None else ks,
        )
        if not data.ids:
            not_tried.update(dict.fromkeys((f"ties={rule}" for rule in TIES_BY_ID), _NO_IDS))
        grid = cls(choices, data.top, np.full([len(axis) for axis in choices], np.nan))
        known: dict[Flavor, FloatArray] = {}
        for at in product(*(range(len(axis)) for axis in choices[:-3])):
            try:
                flavor = data.representative(grid.flavor((*at, 0, 0, 0)))
                if flavor not in known:
                    known[flavor] = _all_rules(rank(flavor.replace(k=None), choices[-1]), flavor)
            except ValueError as error:
                # Of all that is tried, only a table of gains can refuse labels, or a top grade, which needs no word of
                # its own; and averaged ties have no first place for a document that ties with its repeat.
                what = f"gain={switch_text(choices[0][at[0]][0])}"
                if (choices[4][at[4]], choices[8][at[8]]) == ("average", "first"):
                    what = "ties=average with duplicates=first"
                if choices[2][at[2]] != "max":
                    not_tried.setdefault(what, str(error))
                continue
            grid.values[at] = known[flavor]
        return grid

    def flavor(self, at: Sequence[int], start: Flavor | None = None, changed: Sequence[str] = AXES) -> Flavor:
        """The flavor of a cell; or another one with the changed axes of that cell."""
        switches = {name: self.choices[axis][at[axis]] for axis, name in enumerate(AXES) if name in changed}
        for name, second in _PAIRED.items():
            if name in switches:
                switches[name], switches[second] = switches[name]
        if switches.get("ideal") == "max":
            switches["max_grade"] = self.top
        elif "ideal" in switches:
            switches["recall_depth"] = switches["max_grade"] = None
        return Flavor(**switches) if start is None else start.replace(**switches)

    def cell(self, flavor: Flavor, value: float | None) -> tuple[int, ...] | None:
        """Where a flavor stands, its cut-off at 0 if it is not tried; None where it has switches of its own."""
        wanted = {name: getattr(flavor, name) for name in AXES}
        wanted["discount"] = "log2" if flavor.discount == "ln" else flavor.discount
        wanted.update({name: (wanted[name], getattr(flavor, second)) for name, second in _PAIRED.items()})
        at = []
        for name, axis in zip(AXES, self.choices, strict=True):
            if wanted[name] in axis:
                at.append(axis.index(wanted[name]))
            elif axis == ("raise",) or (name == "k" and value is None):
                at.append(0)
            else:
                return None
        here = tuple(at)
        own = ("discount", "negative", "unjudged", "duplicates", "k")
        same = self.flavor(here).replace(**{name: getattr(flavor, name) for name in own})
        if same != flavor:
            return None
        return here if value is None or abs(self.values[here] - value) <= _SAME else None


def _all_rules(totals: Totals, flavor: Flavor) -> FloatArray:
    """The values for every rule for empty queries, every mean and every cut-off: the last three axes."""
    out = np.full((len(_EMPTY), len(_AGGREGATE), len(totals.ks)), np.nan)
    for row, empty in enumerate(_EMPTY):
        for column, aggregate in enumerate(_AGGREGATE):
            values = totals.finite_values(flavor.replace(empty=empty, aggregate=aggregate, k=None))
            out[row, column] = [math.nan if value is None else value for value in values]
    return out


# -- matches --------------------------------------------------------------------------------------------------------


class _Group(NamedTuple):
    """Candidates of one value."""

    value: float
    presets: list[_Candidate]
    cells: NDArray[np.int64]


def _identification(
    number: float,
    digits: int | None,
    presets: list[_Candidate],
    grid: _Grid,
    data: _Data,
    not_tried: dict[str, str],
) -> Identification:
    unit = 0.0 if digits is None else 10.0**-digits
    within = _EXACT if digits is None else (0.5 + _SLACK) * unit
    plain = digits is not None and abs(number - round(number, digits)) < 1e-12
    groups, truncated = _groups(number - within, number + within, presets, grid), False
    if not groups and plain:
        # Cut off towards zero.
        low, high = (number, number + unit) if number >= 0 else (number - unit, number)
        groups = _groups(low - _SLACK * unit, high, presets, grid)
        truncated = bool(groups)
    order = {name: at for at, name in enumerate(PRESETS)}
    starts = _starts(grid)
    ranked_matches = []
    for group in groups:
        match, changes = _match(group, grid, starts)
        distance = 0.0 if plain else abs(group.value - number)
        leader = group.presets[0] if group.presets else None
        if leader is None:
            key = (True, float(changes), distance, 0)
        else:
            key = (False, distance, float(not leader.own_k), order[leader.name])
        ranked_matches.append((key, match))
    ranked_matches.sort(key=lambda pair: pair[0])
    n_tried = len(presets) + int(np.isfinite(grid.values).sum())
    nearest: tuple[Match, ...] = ()
    if not groups:
        every = np.concatenate([grid.values[np.isfinite(grid.values)], [c.value for c in presets]])
        gaps = np.unique(np.abs(every - number))
        # Numbers that differ by rounding alone are one: a few gaps more than are shown.
        reach = float(gaps[min(gaps.size - 1, 20 * _NEAREST)]) if gaps.size else 0.0
        close = sorted(_groups(number - reach, number + reach, presets, grid), key=lambda g: abs(g.value - number))
        nearest = tuple(_match(group, grid, starts)[0] for group in close[:_NEAREST])
    return Identification(
        value=number,
        decimals=digits,
        truncated=truncated,
        matches=tuple(match for _, match in ranked_matches),
        nearest=nearest,
        n_tried=n_tried,
        not_tried=not_tried,
        reasons=data.reasons(),
    )


def _groups(low: float, high: float, presets: list[_Candidate], grid: _Grid) -> list[_Group]:
    """The candidates between two values, those of the same value together."""
    inside = [candidate for candidate in presets if low <= candidate.value <= high]
    with np.errstate(invalid="ignore"):
        cells = np.argwhere((grid.values >= low) & (grid.values <= high))
    values = np.concatenate([[candidate.value for candidate in inside], grid.values[tuple(cells.T)]])
    order = np.argsort(values, kind="stable")
    if not order.size:
        return []
    new = np.flatnonzero(np.diff(values[order]) > _SAME) + 1
    groups = []
    for members in np.split(order, new):
        members = np.sort(members)  # presets stand first, in their order
        of_presets = members[members < len(inside)]
        of_cells = members[members >= len(inside)] - len(inside)
        groups.append(_Group(float(values[members[0]]), [inside[at] for at in of_presets], cells[of_cells]))
    return groups


def _starts(grid: _Grid) -> list[tuple[str, tuple[int, ...]]]:
    """The presets that are a cell of the grid but for their cut-off."""
    found = ((name, grid.cell(flavor.replace(k=None), None)) for name, flavor in PRESETS.items())
    return [(name, at) for name, at in found if at is not None]


def _match(group: _Group, grid: _Grid, starts: list[tuple[str, tuple[int, ...]]]) -> tuple[Match, int]:
    """The match of a group, and how many switches it is from a preset."""
    changes = 0
    if group.presets:
        leader = group.presets[0]
        name, flavor = leader.text, leader.flavor
        cell = grid.cell(flavor, group.value)
    else:
        name, flavor, cell, changes = _nearest_preset(group.cells, grid, starts)
    others = len(group.cells) - (cell is not None)
    return Match(
        name=name,
        flavor=flavor,
        value=group.value,
        presets=tuple(dict.fromkeys(candidate.text for candidate in group.presets)),
        n_others=others,
        free={} if cell is None else _free(cell, group.value, grid),
    ), changes


def _nearest_preset(
    cells: NDArray[np.int64], grid: _Grid, starts: list[tuple[str, tuple[int, ...]]]
) -> tuple[str, Flavor, tuple[int, ...], int]:
    """The cell with the fewest switches other than a preset's (the cut-off aside), written as that preset, changed."""
    best: tuple[int, str, tuple[int, ...]] | None = None
    for name, at in starts:
        differing = (cells[:, :-1] != np.array(at[:-1])).sum(axis=1)
        fewest = int(differing.argmin())
        if best is None or differing[fewest] < best[0]:
            best = int(differing[fewest]), name, tuple(cells[fewest].tolist())
    if best is None:
        cell = tuple(cells[0].tolist())
        flavor = grid.flavor(cell)
        return str(flavor), flavor, cell, len(AXES)
    changes, name, cell = best
    start = PRESETS[name]
    at = dict(starts)[name]
    changed = [axis for axis, mine, theirs in zip(AXES, cell, at, strict=True) if mine != theirs and axis != "k"]
    k = grid.choices[-1][cell[-1]]
    flavor = grid.flavor(cell, start.replace(k=k), changed)
    switches = ",".join(
        f"{switch}={switch_text(getattr(flavor, switch))}"
        for switch in ("gain", "off_table", "discount", "discount_base", "max_grade", *AXES[2:-1])
        if getattr(flavor, switch) != getattr(start, switch)
    )
    at_k = "" if k is None and start.k is None else f"@{k}"
    return f"{name}{at_k}{f'[{switches}]' if switches else ''}", flavor, cell, changes


def _free(cell: tuple[int, ...], value: float, grid: _Grid) -> dict[str, tuple[object, ...]]:
    free = {}
    for axis, (name, choices) in enumerate(zip(AXES, grid.choices, strict=True)):
        along: tuple[Any, ...] = (*cell[:axis], slice(None), *cell[axis + 1 :])
        line = grid.values[along]
        with np.errstate(invalid="ignore"):
            same = np.flatnonzero(np.abs(line - value) <= _SAME).tolist()
        if len(same) > 1:
            values = [choices[at] for at in (cell[axis], *(at for at in same if at != cell[axis]))]
            free[name] = tuple(dict.fromkeys(_alone(name, value) for value in values))
    return free


def _alone(switch: str, value: Any) -> object:
    """A choice of an axis as the value of one switch."""
    if switch not in _PAIRED:
        return value
    own, second = value
    return f"{own} (base {second:g})" if switch == "discount" and second != 2 else own
