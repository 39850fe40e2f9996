"""Every combination of switches, and its value on the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._checks import TIES_BY_ID
from ndcg_ml._flavor.text import switch_text
from ndcg_ml._identify.facts import Facts
from ndcg_ml._identify.sweep import Sweep
from ndcg_ml._kernel.totals import Totals
from ndcg_ml.flavor import PRESETS, Empty, Flavor, Ties

FloatArray = NDArray[np.float64]
Progress: TypeAlias = Callable[[int, int], object]

COMMON_KS = (None, 1, 3, 5, 10, 20, 100)
"""The cut-offs that are tried where none is given, beside each preset's own."""

# Lists of at most so many documents are cut at every rank.
_SHORT = 20
# Two flavors whose values are this close are the same flavor as far as the data can tell.
SAME = 1e-12


def usual_cutoffs(data: Facts) -> tuple[int | None, ...]:
    """The cut-offs that are tried where none is given: those in use, and every one that cuts where lists are short."""
    own = (flavor.k for flavor in PRESETS.values())
    short = range(1, data.longest + 1) if data.longest <= _SHORT else ()
    return tuple(dict.fromkeys((*COMMON_KS, *own, *short)))


class Axes(NamedTuple):
    """One entry for each axis of the grid, under the name of its switch: a choice, its place, or all choices."""

    gain: Any
    discount: Any
    ideal: Any
    ideal_depth: Any
    ties: Any
    score_dtype: Any
    negative: Any
    unjudged: Any
    duplicates: Any
    empty: Any
    aggregate: Any
    k: Any


AXES = Axes._fields
# Axes whose choices are pairs, of this switch and the one that only makes sense with it.
PAIRED = {"gain": "off_table", "discount": "discount_base"}
_EMPTY: tuple[Empty, ...] = (0.0, 1.0, "skip")
_AGGREGATE: tuple[Literal["macro", "micro"], ...] = ("macro", "micro")
_RULES = {
    (row, column): Flavor(empty=empty, aggregate=aggregate)
    for row, empty in enumerate(_EMPTY)
    for column, aggregate in enumerate(_AGGREGATE)
}
NO_IDS = "doc_id was not given"


class Grid(NamedTuple):
    """The value of every combination of switches: an array with an axis for each of AXES; nan was not tried."""

    choices: Axes
    top: float
    values: NDArray[np.float64]

    @classmethod
    def over(cls, data: Facts, ks: tuple[int | None, ...] | None) -> Grid:
        """The grid for these data, without values."""
        tables = dict.fromkeys((f.gain, f.off_table) for f in PRESETS.values() if isinstance(f.gain, tuple))
        bases = dict.fromkeys((2.0, *(f.discount_base for f in PRESETS.values())))
        choices = Axes(
            gain=(("linear", "raise"), ("exponential", "raise"), ("binary", "raise"), *tables),
            discount=(("log2", 2.0), ("reciprocal", 2.0), ("none", 2.0), *(("jarvelin", base) for base in bases)),
            ideal=("global", "recall", "local", "max"),
            ideal_depth=("k", "all"),
            ties=tuple(ties for ties in get_args(Ties) if data.ids or ties not in TIES_BY_ID),
            score_dtype=("float64", "float32"),
            negative=("zero", "drop", "allow") if data.negative else ("raise",),
            unjudged=("zero", "condense") if data.unjudged else ("raise",),
            duplicates=("first", "count") if data.repeats else ("raise",),
            empty=_EMPTY,
            aggregate=_AGGREGATE,
            k=usual_cutoffs(data) if ks is None else ks,
        )
        return cls(choices, data.top, np.full([len(axis) for axis in choices], np.nan))

    def discounts(self) -> list[Flavor]:
        """Each choice of discount, as a flavor that has it."""
        return [Flavor(discount=discount, discount_base=base) for discount, base in self.choices.discount]

    def fill(self, data: Facts, sweep: Sweep, not_tried: dict[str, str], progress: Progress | None) -> None:
        """Find the values: once for all discounts, empty rules, means and cut-offs, which need no ranking of their own.

        Choices that are one on these data are computed once, too.
        """
        if not data.ids:
            not_tried.update({f"ties={rule}": NO_IDS for rule in TIES_BY_ID})
        stand_ins = self._stand_ins(data)
        distinct = Axes(*(sorted(set(of_axis)) for of_axis in stand_ins))
        # Choices that need a ranking of their own; then the ideals, which share it; the rest is made of their totals.
        ranked = product(
            distinct.gain,
            distinct.negative,
            distinct.unjudged,
            distinct.duplicates,
            distinct.ties,
            distinct.score_dtype,
        )
        rankings = [
            Axes(gain, 0, 0, 0, ties, dtype, negative, unjudged, duplicates, 0, 0, 0)
            for gain, negative, unjudged, duplicates, ties, dtype in ranked
        ]
        every = slice(None)
        for done, ranking in enumerate(rankings, 1):
            for ideal, depth in product(distinct.ideal, distinct.ideal_depth):
                at = ranking._replace(ideal=ideal, ideal_depth=depth)
                try:
                    totals = sweep.totals(self.flavor(at))
                except ValueError as error:
                    self._say_why(at, str(error), not_tried)
                    continue
                cells = at._replace(discount=every, empty=every, aggregate=every, k=every)
                self.values[cells] = _all_rules(totals, len(self.choices.discount))
            if progress is not None:
                progress(done, len(rankings))
        self.values[...] = self.values[np.ix_(*stand_ins)]

    def _say_why(self, at: Axes, error: str, not_tried: dict[str, str]) -> None:
        """Note what refuses a cell: a table of gains, or a mean over orders that meets a document and its repeat.

        A table may refuse labels, or lack the top grade, which needs no word of its own.
        """
        cell = self.choices_at(at)
        table, _ = cell.gain
        tied_repeat = cell.ties == "average" and cell.duplicates == "first"
        if not isinstance(table, tuple):
            not_tried["duplicates=first with ties=average"] = error
        elif cell.ideal != "max" and not tied_repeat:
            not_tried.setdefault(f"gain={switch_text(table)}", error)

    def choices_at(self, at: Sequence[int]) -> Axes:
        """The choices of a cell."""
        return Axes(*(choices[place] for choices, place in zip(self.choices, at, strict=True)))

    def _stand_ins(self, data: Facts) -> list[list[int]]:
        """For each axis, the choice that stands for each of its choices on these data."""
        stand_ins = []
        for axis, (name, choices) in enumerate(zip(AXES, self.choices, strict=True)):
            same = []
            for at in range(len(choices)):
                flavor = data.representative(self.flavor([at if other == axis else 0 for other in range(len(AXES))]))
                own = getattr(flavor, name)
                same.append(choices.index((own, getattr(flavor, PAIRED[name])) if name in PAIRED else own))
            stand_ins.append(same)
        return stand_ins

    def flavor(self, at: Sequence[int], start: Flavor | None = None, changed: Sequence[str] = AXES) -> Flavor:
        """The flavor of a cell; or another one with the changed axes of that cell."""
        switches = {name: choice for name, choice in self.choices_at(at)._asdict().items() if name in changed}
        for name, second in PAIRED.items():
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
        wanted.update({name: (wanted[name], getattr(flavor, second)) for name, second in PAIRED.items()})
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
        return here if value is None or abs(self.values[here] - value) <= SAME else None


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
