"""Which candidates have the number, what they are called, and which come first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._flavor.divergences import declared
from ndcg_ml._flavor.text import switch_text
from ndcg_ml._identify.facts import Facts
from ndcg_ml._identify.grid import AXES, PAIRED, SAME, Grid
from ndcg_ml._identify.result import Identification, Match
from ndcg_ml.flavor import PRESETS, Flavor

# With decimals=None the value is taken to be exact, up to what a library's own summation loses.
_EXACT = 1e-9
# How much of the last printed digit a library's own rounding (of float32 sums, say) may cost.
_SLACK = 0.01
# A value this close to the next number with so many decimals, in units of the last one, is that number.
_NEXT = 1e-3
_NEAREST = 5
# The reach around a number within which values are counted, to say how often a made-up number would match.
_CLOSE = 0.05

ONE_QUERY = " (all rows as one query)"
"""What follows the name of a preset whose value is that of the rows of all queries ranked together."""


class Candidate(NamedTuple):
    """A preset at a cut-off."""

    name: str
    flavor: Flavor
    unlikely: tuple[bool, ...]
    value: float
    one_query: bool = False

    @property
    def text(self) -> str:
        at_k = "" if self.flavor.k is None and PRESETS[self.name].k is None else f"@{self.flavor.k}"
        return f"{self.name}{at_k}{ONE_QUERY if self.one_query else ''}"


class _Group(NamedTuple):
    """Candidates of one value."""

    value: float
    presets: list[Candidate]
    cells: NDArray[np.int64]


def identification(
    number: float,
    digits: int | None,
    presets: list[Candidate],
    grid: Grid,
    data: Facts,
    not_tried: dict[str, str],
) -> Identification:
    # A number may have been rounded, and the sum that was rounded may itself be a little off.
    unit = 0.0 if digits is None else 10.0**-digits
    within = _EXACT if digits is None else (0.5 + _SLACK) * unit
    plain = digits is not None and abs(number - round(number, digits)) < 1e-12
    groups, truncated = _groups(number - within, number + within, presets, grid), False
    if not groups and plain:
        # Cut off towards zero: a value that is the next number with so many decimals is not cut off to this one.
        low, high = -_SLACK * unit, unit - max(_NEXT * unit, SAME)
        ends = (number + low, number + high) if number >= 0 else (number - high, number - low)
        groups = _groups(*ends, presets, grid)
        truncated = bool(groups)
    # Presets come first, the nearest and then the likeliest of them; then combinations by their number of changes.
    order = {name: at for at, name in enumerate(PRESETS)}
    starts = _starts(grid)
    ranked_matches = []
    for group in groups:
        match, changes = _match(group, grid, starts, data.cases)
        distance = 0.0 if plain else abs(group.value - number)
        leader = group.presets[0] if group.presets else None
        key: tuple[Any, ...]
        if leader is None:
            key = (True, float(changes), distance, (), 0)
        else:
            key = (False, 0.0, distance, leader.unlikely, order[leader.name])
        ranked_matches.append((key, match))
    ranked_matches.sort(key=lambda pair: pair[0])
    # Without a match, the nearest values hint at what else was different.
    n_tried = len(presets) + int(np.isfinite(grid.values).sum())
    nearest: tuple[Match, ...] = ()
    if not groups:
        every = np.concatenate([grid.values[np.isfinite(grid.values)], [c.value for c in presets]])
        gaps = np.unique(np.abs(every - number))
        # Numbers that differ by rounding alone are one: a few gaps more than are shown.
        reach = float(gaps[min(gaps.size - 1, 20 * _NEAREST)]) if gaps.size else 0.0
        close = sorted(_groups(number - reach, number + reach, presets, grid), key=lambda g: abs(g.value - number))
        nearest = tuple(_match(group, grid, starts, data.cases)[0] for group in close[:_NEAREST])
    # Among many candidates some match any number: the expected count says what a match is worth.
    return Identification(
        value=number,
        decimals=digits,
        truncated=truncated,
        matches=tuple(match for _, match in ranked_matches),
        nearest=nearest,
        n_tried=n_tried,
        not_tried=not_tried,
        reasons=data.reasons(),
        by_chance=_by_chance(number, within, np.concatenate([grid.values.reshape(-1), [c.value for c in presets]])),
        presets_by_chance=_by_chance(number, within, np.array([c.value for c in presets])),
    )


def _by_chance(number: float, within: float, values: NDArray[np.float64]) -> float:
    """How many different values a number has within reach, on average over the numbers close to this one.

    Numbers are drawn between the two ends with equal chance; of values that end before these do, only where they lie.
    """
    known = values[np.isfinite(values)]
    low, high = max(number - _CLOSE, min(number, 0.0)), min(number + _CLOSE, max(number, 1.0))
    near = np.sort(known[(known >= low) & (known <= high)])
    n_values = int((np.diff(near) > SAME).sum()) + min(1, near.size)
    return n_values * 2 * within / (high - low)


def _groups(low: float, high: float, presets: list[Candidate], grid: Grid) -> list[_Group]:
    """The candidates between two values, those of the same value together."""
    inside = [candidate for candidate in presets if low <= candidate.value <= high]
    with np.errstate(invalid="ignore"):
        cells = np.argwhere((grid.values >= low) & (grid.values <= high))
    values = np.concatenate([[candidate.value for candidate in inside], grid.values[tuple(cells.T)]])
    order = np.argsort(values, kind="stable")
    if not order.size:
        return []
    new = np.flatnonzero(np.diff(values[order]) > SAME) + 1
    groups = []
    for members in np.split(order, new):
        members = np.sort(members)  # presets stand first, in their order
        of_presets = members[members < len(inside)]
        of_cells = members[members >= len(inside)] - len(inside)
        groups.append(_Group(float(values[members[0]]), [inside[at] for at in of_presets], cells[of_cells]))
    return groups


def _starts(grid: Grid) -> list[tuple[str, tuple[int, ...]]]:
    """The presets that are a cell of the grid but for their cut-off."""
    cells = ((name, grid.cell(flavor.replace(k=None), None)) for name, flavor in PRESETS.items())
    return [(name, cell) for name, cell in cells if cell is not None]


def _match(
    group: _Group, grid: Grid, starts: list[tuple[str, tuple[int, ...]]], cases: frozenset[str]
) -> tuple[Match, int]:
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
        unreliable=_unreliable(group.presets, cases),
    ), changes


def _unreliable(presets: list[Candidate], cases: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Which presets are declared to differ from their library on such data, and how."""
    found = {}
    for candidate in presets:
        why = tuple(f"{entry.cases}: there {entry.theirs}" for entry in declared(candidate.name) if entry.when in cases)
        if why:
            found[candidate.text] = why
    return found


def _nearest_preset(
    cells: NDArray[np.int64], grid: Grid, starts: list[tuple[str, tuple[int, ...]]]
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
    k = grid.choices_at(cell).k
    flavor = grid.flavor(cell, start.replace(k=k), changed)
    switches = ",".join(
        f"{switch}={switch_text(getattr(flavor, switch))}"
        for switch in ("gain", "off_table", "discount", "discount_base", "max_grade", *AXES[2:-1])
        if getattr(flavor, switch) != getattr(start, switch)
    )
    at_k = "" if k is None and start.k is None else f"@{k}"
    return f"{name}{at_k}{f'[{switches}]' if switches else ''}", flavor, cell, changes


def _free(cell: tuple[int, ...], value: float, grid: Grid) -> dict[str, tuple[object, ...]]:
    free = {}
    for axis, (name, choices) in enumerate(zip(AXES, grid.choices, strict=True)):
        along: tuple[Any, ...] = (*cell[:axis], slice(None), *cell[axis + 1 :])
        line = grid.values[along]
        with np.errstate(invalid="ignore"):
            same = np.flatnonzero(np.abs(line - value) <= SAME).tolist()
        if len(same) > 1:
            values = [choices[at] for at in (cell[axis], *(at for at in same if at != cell[axis]))]
            free[name] = tuple(dict.fromkeys(_alone(name, value) for value in values))
    return free


def _alone(switch: str, value: Any) -> object:
    """A choice of an axis as the value of one switch."""
    if switch not in PAIRED:
        return value
    own, second = value
    return f"{own} (base {second:g})" if switch == "discount" and second != 2 else own
