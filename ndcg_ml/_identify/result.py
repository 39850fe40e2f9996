"""The flavors that reproduce a reported number, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ndcg_ml._flavor.text import switch_text
from ndcg_ml._show.escaping import block, paragraph
from ndcg_ml._show.table import Table
from ndcg_ml.flavor import Flavor

_PRINTED = 5
# So many matches expected by chance, and those there are say little, or nothing.
_WEAK, _WORTHLESS = 0.05, 0.5


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
        Every preset with this value, with its cut-off; the first is `name`, unless there is none. After a name,
        "(all rows as one query)" says that its value is that of the data without their queries.
    n_others : int
        How many other combinations of switches have the same value to 1e-12 on the data.
    free : dict of str to tuple
        The switches that can be changed, one at a time, without changing the value: the values that give the same
        number, the flavor's own first. (A table of gains comes with the ``off_table`` of its preset, a top grade with
        ``max``.)
    unreliable : dict of str to tuple of str
        The presets of this match that are known to differ from their library on data like these, and why.
    """

    name: str
    flavor: Flavor
    value: float
    presets: tuple[str, ...]
    n_others: int
    free: Mapping[str, tuple[object, ...]]
    unreliable: Mapping[str, tuple[str, ...]]


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
    by_chance, presets_by_chance : float
        How many matches, and how many with a preset, a number that nobody computed would have on average if it lay
        within 0.05 of this one. Where a match is expected by chance, having one is no evidence.
    """

    value: float
    decimals: int | None
    truncated: bool
    matches: tuple[Match, ...]
    nearest: tuple[Match, ...]
    n_tried: int
    not_tried: Mapping[str, str]
    reasons: Mapping[str, str]
    by_chance: float
    presets_by_chance: float

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
                "unreliable": {name: list(why) for name, why in match.unreliable.items()},
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
            "by_chance": self.by_chance,
            "presets_by_chance": self.presets_by_chance,
        }

    def __str__(self) -> str:
        printed, more = self._printed()
        lines = [self._headline()]
        width = max((len(match.name) for match in printed), default=0)
        for match in printed:
            lines.append(f"  {match.name:<{width}}  {match.value:.6f}")
            lines += [f"    {line}" for line in [*self.same_text(match), *self.unreliable_text(match)]]
            if match is printed[0]:
                lines += [f"    {line}" for line in self.free_text(match)]
        return "\n".join([*lines, *[f"  {line}" for line in more], *self._below()])

    def _repr_html_(self) -> str:
        printed, more = self._printed()
        rows = []
        for match in printed:
            # The switches that could be changed are listed for the first match alone, as in the text.
            free = self.free_text(match) if match is printed[0] else []
            notes = [*self.same_text(match), *self.unreliable_text(match), *free]
            rows.append([match.name, f"{match.value:.6f}", "; ".join(notes)])
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
        lines = [
            self.chance_text(),
            f"{self.n_tried} flavors tried",
            *(f"not tried: {reason}" for reason in self.not_tried_text()),
        ]
        written = decimals_of(self.value)
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

    def chance_text(self) -> str:
        """How many matches chance would give, and what a match is worth then."""
        first = self.presets_by_chance if any(match.presets for match in self.matches) else self.by_chance
        worth = ""
        if self.matches and first >= _WEAK:
            worth = ": a match is no evidence here" if first >= _WORTHLESS else ": a match is weak evidence here"
            worth += "; pass more decimals, k, or more data"
        return (
            f"by chance a number close to this one has {self.by_chance:.2g} matches, {self.presets_by_chance:.2g} of "
            f"them with a preset{worth}"
        )

    def same_text(self, match: Match) -> list[str]:
        """A line that says what these data cannot tell from a match, where there is anything."""
        start = match.name.partition("@")[0]
        also = list({preset.partition("@")[0]: preset for preset in reversed(match.presets)}.values())[::-1]
        also = [preset for preset in also if preset.partition("@")[0] != start]  # another k is a free switch
        if match.n_others:
            also.append(f"{match.n_others} other combination{'s' * (match.n_others > 1)} of switches")
        return [f"these data cannot tell it from {', '.join(also)}"] if also else []

    def unreliable_text(self, match: Match) -> list[str]:
        """A line for each reason why the libraries of these presets may say something else on data like these."""
        by_reason: dict[str, list[str]] = {}
        for name, reasons in match.unreliable.items():
            for reason in reasons:
                by_reason.setdefault(reason, []).append(name)
        return [f"{', '.join(names)} may differ from its library here; {reason}" for reason, names in by_reason.items()]

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


def decimals_of(value: float) -> int:
    """The decimals that a number needs when it is written."""
    return len(f"{value:.15f}".rstrip("0").partition(".")[2])
