"""Which NDCG a reported number is: the presets, then combinations of switches, that reproduce it on the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import EllipsisType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._checks import TIES_BY_ID, KSpec, cutoffs, finite_number, optional_whole_number
from ndcg_ml._data.queries import Queries, Weights
from ndcg_ml._data.underflow import underflow_is_zero
from ndcg_ml._flavor_text import switch_text
from ndcg_ml._identify.sweep import Sweep
from ndcg_ml._kernel.gains import gain
from ndcg_ml._kernel.totals import Totals
from ndcg_ml._show.html import block, paragraph
from ndcg_ml._show.table import Table
from ndcg_ml.flavor import PRESETS, Empty, Flavor, Ties
from ndcg_ml.prepared import Prepared

FloatArray = NDArray[np.float64]
Rank: TypeAlias = Callable[[Flavor, Sequence["int | None"]], Totals]
Progress: TypeAlias = Callable[[int, int], object]

COMMON_KS = (None, 1, 3, 5, 10, 20, 100)
"""The cut-offs that are tried where none is given, beside each preset's own."""

# Two flavors whose values are this close are the same flavor as far as the data can tell.
_SAME = 1e-12
# With decimals=None the value is taken to be exact, up to what a library's own summation loses.
_EXACT = 1e-9
# How much of the last printed digit a library's own rounding (of float32 sums, say) may cost.
_SLACK = 0.01
# What is this close to the next number with so many decimals, in units of the last one, is that number.
_NEXT = 1e-3
_NEAREST = 5
_PRINTED = 5
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
        printed, more = self._printed()
        lines = [self._headline()]
        width = max((len(match.name) for match in printed), default=0)
        for match in printed:
            lines.append(f"  {match.name:<{width}}  {match.value:.6f}")
            lines += [f"    {line}" for line in self.same_text(match)]
            if match is printed[0]:
                lines += [f"    {line}" for line in self.free_text(match)]
        return "\n".join([*lines, *[f"  {line}" for line in more], *self._below()])

    def _repr_html_(self) -> str:
        printed, more = self._printed()
        rows = [
            [
                match.name,
                f"{match.value:.6f}",
                "; ".join(self.same_text(match) + (self.free_text(match) if match is printed[0] else [])),
            ]
            for match in printed
        ]
        table = Table(["flavor", "value", "what these data leave open"], rows, "lll", caption=self._headline())
        return block(*[table.html()] * bool(rows), *map(paragraph, [*more, *self._below()]))

    def _printed(self) -> tuple[list[Match], list[str]]:
        """The matches that are shown, and a line that counts the others."""
        listed = [match for match in self.matches if match.presets] or self.matches or self.nearest
        printed = list(listed[:_PRINTED])
        more = len(self.matches or self.nearest) - len(printed)
        return printed, [f"and {more} more, in .{'matches' if self.matches else 'nearest'}"] if more else []

    def _headline(self) -> str:
        shown = repr(self.value) if self.decimals is None else f"{self.value:.{self.decimals}f}"
        return f"{shown}: {self.count_text()}"

    def _below(self) -> list[str]:
        lines = [f"{self.n_tried} flavors tried", *(f"not tried: {each}" for each in self.not_tried_text())]
        written = _decimals_of(self.value)
        if not self.matches and self.decimals is not None and written < self.decimals:
            lines.append(f"if the number was rounded to fewer decimals, pass decimals={written}")
        return lines

    def count_text(self) -> str:
        """How many values match, and how many of them are a preset's."""
        if not self.matches:
            return "no match; the nearest are"
        presets = sum(bool(match.presets) for match in self.matches)
        others = len(self.matches) - presets
        counts = [f"{presets} match{'es' * (presets != 1)} with a preset"] if presets else ["no preset"]
        counts += [f"{others} other{'s' * (others != 1)} with switches changed"] if others else []
        return ", ".join([*counts, *["if it was cut off rather than rounded"] * self.truncated])

    def same_text(self, match: Match) -> list[str]:
        """A line that says what these data cannot tell from a match, where there is anything."""
        start = match.name.partition("@")[0]
        also = list({preset.partition("@")[0]: preset for preset in reversed(match.presets)}.values())[::-1]
        also = [preset for preset in also if preset.partition("@")[0] != start]  # at which other k is a free switch
        if match.n_others:
            also.append(f"{match.n_others} other combination{'s' * (match.n_others > 1)} of switches")
        return [f"these data cannot tell it from {', '.join(also)}"] if also else []

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


def _decimals_of(value: float) -> int:
    """The decimals that a number needs when it is written."""
    return len(f"{value:.15f}".rstrip("0").partition(".")[2])


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
    progress: Progress | None = None,
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
    progress : callable, optional
        Called after each ranking with how many are done and how many there are, for data that take long.

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
    discount (with the bases of presets), ideal (global, recall, local, and max with the highest label), ideal_depth
    (k, all), ties, empty (0, 1, skip), aggregate, score_dtype and k; also of negative if labels are negative, of
    unjudged if labels are missing, and of duplicates if ids repeat. All other switches are tried only as the presets
    set them. The discounts ``ln`` and ``log2`` give one NDCG, and ``log2`` stands for both. What the data rule out,
    such as ``ties="docid"`` without ids, is listed in ``not_tried``. Documents are ranked once per gain, rule for
    labels, tie rule and precision of scores: up to a few hundred times, which takes two seconds for 35 000 documents,
    7 000 of them retrieved. Show how far it is with `progress`, such as ``lambda done, total: bar.update()`` for a
    bar of tqdm.

    Flavors whose values agree to 1e-12 are one match, because the data cannot tell them apart. It is named after a
    preset if there is one, otherwise after the preset from which the fewest switches differ.

    Matches with a preset come first. If the value has more decimals than `decimals`, they are ordered by their distance
    from it. Otherwise all agree with it equally well, and the data say which tools are usual for them: with document
    ids, those that order ties by id (as trec_eval does); with unjudged documents or some that were not retrieved, those
    that have a rule for unjudged ones; with neither, those that want a label for every document. Then a preset at its
    own cut-off comes before others, and the rest is the order of ``PRESETS``. Presets that coincide stand in the same
    order. Matches without a preset follow, those with the fewest changes first.

    If nothing rounds to the value and it has no more than `decimals` decimals, flavors match whose value is cut off to
    it: 0.87669 to 0.8766, but 1 not to 0.9999.

    Qrels and a run become arrays by ``align``: ``identify(0.5058, **align("qrels.txt", "run.txt").arguments())``.

    Examples
    --------
    >>> y_true, y_score, group = [0, 2, 1, 0, 3, 1, 0, 0], [.9, .5, .5, .2, .7, .8, .1, .5], [5, 1, 2]
    >>> result = identify(0.8766, y_true, y_score, group=group, k=3)
    >>> result.matches[0].name
    'lightgbm@3'
    >>> from ndcg_ml import align
    >>> data = align({"q1": {"d1": 2, "d3": 1}}, {"q1": ["d1", "d2", "d4"]})
    >>> identify(0.7602, **data.arguments(), k=3).matches[0].name
    'trec_eval@3'
    """
    number = finite_number(value, "value")
    digits = optional_whole_number(decimals, "decimals", "if it is exact", 0)
    tried = None if isinstance(k, EllipsisType) else cutoffs(k, Flavor())[0]
    queries = Queries.read(
        y_true, qid=qid, group=group, mask=mask, retrieved=retrieved, doc_id=doc_id, query_weight=query_weight
    )
    # A flavor that refuses nothing: what fails here is wrong with the data, and must be fixed by the caller.
    Prepared(Flavor(negative="allow", unjudged="zero", duplicates="count"), None, queries).evaluate(y_score)
    with np.errstate(over="ignore"):
        coarse = queries.scores(y_score, exact=False).astype(np.float32)
    scores = {"float64": queries.scores(y_score), "float32": coarse}
    data = _Data.of(queries, scores["float64"], coarse)

    def rank(flavor: Flavor, ks: Sequence[int | None]) -> Totals:
        return Prepared(flavor, ks, queries).totals(y_score)

    not_tried: dict[str, str] = {}
    presets = _preset_candidates(data, tried, rank, not_tried)
    grid = _Grid.over(data, tried)
    grid.fill(data, Sweep(queries, scores, grid.choices[-1], grid.discounts()), not_tried, progress)
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
    def of(cls, queries: Queries, exact: NDArray[Any], coarse: NDArray[np.float32]) -> _Data:
        groups = queries.groups
        rows = np.arange(groups.n_rows) if groups.order is None else groups.order
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
        found = {}
        if not self.tied:
            found["ties"] = "no two documents of a query have the same score"
        if not self.tied_by_float32:
            found["score_dtype"] = "float32 makes no further scores equal"
        if set(self.grades) <= {0.0, 1.0}:
            found["gain"] = "all labels are 0 or 1"
        if self.everything_retrieved and not self.repeats:
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
    unlikely: tuple[bool, ...]
    value: float

    @property
    def text(self) -> str:
        return self.name if self.flavor.k is None and PRESETS[self.name].k is None else f"{self.name}@{self.flavor.k}"


def _preset_candidates(
    data: _Data, ks: tuple[int | None, ...] | None, rank: Rank, not_tried: dict[str, str]
) -> list[_Candidate]:
    """Every preset at every cut-off, the likeliest first."""
    own = tuple(flavor.k for flavor in PRESETS.values())
    every = tuple(dict.fromkeys((*COMMON_KS, *own))) if ks is None else ks
    known: dict[Flavor, Totals] = {}
    found = []
    for name, flavor in PRESETS.items():
        if flavor.ties in TIES_BY_ID and not data.ids:
            not_tried[name] = _NO_IDS
            continue
        ranking = flavor.replace(k=None, empty=0.0, aggregate="macro")
        try:
            if ranking not in known:
                known[ranking] = rank(ranking, every)
        except ValueError as error:
            not_tried[name] = str(error)
            continue
        values = dict(zip(every, known[ranking].finite_values(flavor), strict=True))
        mine = dict.fromkeys((flavor.k, *COMMON_KS)) if ks is None else ks
        if all(values[k] is None for k in mine):
            not_tried[name] = f"it has no value under empty={switch_text(flavor.empty)}"
        for k in mine:
            value = values[k]
            if value is not None:
                unlikely = (*data.unlikely(flavor), ks is None and k != flavor.k)
                found.append(_Candidate(name, flavor.replace(k=k), unlikely, value))
    return sorted(found, key=lambda candidate: candidate.unlikely)  # else in the order of PRESETS


# fmt: off
AXES = (
    "gain", "discount", "ideal", "ideal_depth", "ties", "score_dtype", "negative", "unjudged",
    "duplicates", "empty", "aggregate", "k",
)
# fmt: on
# Axes whose choices are pairs, of this switch and the one that only makes sense with it.
_PAIRED = {"gain": "off_table", "discount": "discount_base"}
_EMPTY: tuple[Empty, ...] = (0.0, 1.0, "skip")
_AGGREGATE: tuple[Literal["macro", "micro"], ...] = ("macro", "micro")
_RULES = {
    (row, column): Flavor(empty=empty, aggregate=aggregate)
    for row, empty in enumerate(_EMPTY)
    for column, aggregate in enumerate(_AGGREGATE)
}
_NO_IDS = "doc_id was not given"


class _Grid(NamedTuple):
    """The value of every combination of switches: an array with an axis for each of AXES; nan was not tried."""

    choices: tuple[tuple[Any, ...], ...]
    top: float
    values: NDArray[np.float64]

    @classmethod
    def over(cls, data: _Data, ks: tuple[int | None, ...] | None) -> _Grid:
        """The grid for these data, without values."""
        tables = dict.fromkeys((f.gain, f.off_table) for f in PRESETS.values() if isinstance(f.gain, tuple))
        bases = dict.fromkeys((2.0, *(f.discount_base for f in PRESETS.values())))
        own = dict.fromkeys(f.k for f in PRESETS.values())
        choices: tuple[tuple[Any, ...], ...] = (
            (("linear", "raise"), ("exponential", "raise"), ("binary", "raise"), *tables),
            (("log2", 2.0), ("reciprocal", 2.0), ("none", 2.0), *(("jarvelin", base) for base in bases)),
            ("global", "recall", "local", "max"),
            ("k", "all"),
            tuple(ties for ties in get_args(Ties) if data.ids or ties not in TIES_BY_ID),
            ("float64", "float32"),
            ("zero", "drop", "allow") if data.negative else ("raise",),
            ("zero", "condense") if data.unjudged else ("raise",),
            ("first", "count") if data.repeats else ("raise",),
            _EMPTY,
            _AGGREGATE,
            tuple(dict.fromkeys((*COMMON_KS, *own))) if ks is None else ks,
        )
        return cls(choices, data.top, np.full([len(axis) for axis in choices], np.nan))

    def discounts(self) -> list[Flavor]:
        """Each choice of discount, as a flavor that has it."""
        return [Flavor(discount=discount, discount_base=base) for discount, base in self.choices[1]]

    def fill(self, data: _Data, sweep: Sweep, not_tried: dict[str, str], progress: Progress | None) -> None:
        """Find the values: once for all discounts, empty rules, means and cut-offs, which need no ranking of their own.

        Choices that are one on these data are computed once, too.
        """
        if not data.ids:
            not_tried.update({f"ties={rule}": _NO_IDS for rule in TIES_BY_ID})
        stand_ins = self._stand_ins(data)
        distinct = [sorted(set(of_axis)) for of_axis in stand_ins]
        gains, _, ideals, depths, ties, dtypes, negative, unjudged, repeats, *_ = distinct
        rankings = list(product(gains, negative, unjudged, repeats, ties, dtypes))
        for done, (gain_at, negative_at, unjudged_at, repeats_at, ties_at, dtype_at) in enumerate(rankings, 1):
            for ideal_at, depth_at in product(ideals, depths):
                above = (ideal_at, depth_at, ties_at, dtype_at, negative_at, unjudged_at, repeats_at)
                below = (0, 0, 0)
                try:
                    totals = sweep.totals(self.flavor((gain_at, 0, *above, *below)))
                except ValueError as error:
                    # A table of gains may refuse labels, or lack the top grade, which needs no word of its own; a mean
                    # over orders refuses a document that is tied with its own repeat.
                    table, ties_rule = self.choices[0][gain_at][0], self.choices[4][ties_at]
                    tied_repeat = ties_rule == "average" and self.choices[8][repeats_at] == "first"
                    if not isinstance(table, tuple):
                        not_tried["duplicates=first with ties=average"] = str(error)
                    elif self.choices[2][ideal_at] != "max" and not tied_repeat:
                        not_tried.setdefault(f"gain={switch_text(table)}", str(error))
                    continue
                self.values[(gain_at, slice(None), *above)] = _all_rules(totals, len(self.choices[1]))
            if progress is not None:
                progress(done, len(rankings))
        self.values[...] = self.values[np.ix_(*stand_ins)]

    def _stand_ins(self, data: _Data) -> list[list[int]]:
        """For each axis, the choice that stands for each of its choices on these data."""
        found = []
        for axis, (name, choices) in enumerate(zip(AXES, self.choices, strict=True)):
            same = []
            for at in range(len(choices)):
                flavor = data.representative(self.flavor([at if each == axis else 0 for each in range(len(AXES))]))
                own = getattr(flavor, name)
                same.append(choices.index((own, getattr(flavor, _PAIRED[name])) if name in _PAIRED else own))
            found.append(same)
        return found

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
        same = self.flavor(here).replace(
            **{n: getattr(flavor, n) for n in ("discount", "negative", "unjudged", "duplicates", "k")}
        )
        if same != flavor:
            return None
        return here if value is None or abs(self.values[here] - value) <= _SAME else None


def _all_rules(totals: Totals, n_discounts: int) -> FloatArray:
    """The values of each discount for every rule for empty queries, every mean and every cut-off."""
    some_empty = not (totals.ideal > 0).all()
    out = np.empty((len(_EMPTY), len(_AGGREGATE), totals.dcg.shape[1]))
    for row, column in product(range(len(_EMPTY)), range(len(_AGGREGATE))):
        if row == 0 or some_empty:
            rule = _RULES[row, column]
            out[row, column] = totals.ratios(rule)
        else:
            out[row, column] = out[0, column]
    out[~np.isfinite(out)] = math.nan
    return np.moveaxis(out.reshape(*out.shape[:2], n_discounts, -1), 2, 0)


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
        # Cut off towards zero: a value that is the next number with so many decimals is not cut off to this one.
        low, high = -_SLACK * unit, unit - max(_NEXT * unit, _SAME)
        ends = (number + low, number + high) if number >= 0 else (number - high, number - low)
        groups = _groups(*ends, presets, grid)
        truncated = bool(groups)
    order = {name: at for at, name in enumerate(PRESETS)}
    starts = _starts(grid)
    ranked_matches = []
    for group in groups:
        match, changes = _match(group, grid, starts)
        distance = 0.0 if plain else abs(group.value - number)
        leader = group.presets[0] if group.presets else None
        key: tuple[Any, ...]
        if leader is None:
            key = (True, float(changes), distance, (), 0)
        else:
            key = (False, 0.0, distance, leader.unlikely, order[leader.name])
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
    if not starts:
        cell = tuple(cells[0].tolist())
        flavor = grid.flavor(cell)
        return str(flavor), flavor, cell, len(AXES)
    of_presets = np.array([at for _, at in starts])
    differing = (cells[:, :-1] != of_presets[:, None, :-1]).sum(axis=2)
    nearest, fewest = divmod(int(differing.argmin()), len(cells))  # the first preset, then the first cell
    changes, name, cell = int(differing[nearest, fewest]), starts[nearest][0], tuple(cells[fewest].tolist())
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
