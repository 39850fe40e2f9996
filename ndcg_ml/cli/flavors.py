"""``ndcg-ml flavors``: the NDCG of every library, and what one of them says in words."""

from __future__ import annotations

import math
import textwrap
from dataclasses import fields
from typing import Any

import click
from rich.text import Text

from ndcg_ml.cli.output import Screen, columns, print_json
from ndcg_ml.cli.parameters import flavor_text, json_option
from ndcg_ml.flavor import PRESETS, Flavor, switch_text
from ndcg_ml.presets import MIRRORS, Mirror

__all__ = ["flavors"]

_DIGITS = 4
_SWITCHES = ("gain", "discount", "ideal", "ties", "empty")


def _named(value: str) -> tuple[Flavor, Mirror | None]:
    """A flavor with the mirror that was named, which is not the only one where several presets are equal."""
    flavor = flavor_text(value)
    start = value.partition("@")[0]
    same = start in PRESETS and PRESETS[start].replace(k=None) == flavor.replace(k=None)
    return flavor, MIRRORS.get(start if same else flavor.preset_name or "")


_EPILOG = """\
\b
--json without NAME: {"flavors": [...]}, each with
  name        the preset
  library     the library with its version, or the paper
  verified    how that was established
  unusual     what its users should know
  text        the flavor as text, which --flavor takes
  switches    every field of the flavor; nan is the text "nan"
--json with NAME: one such object; name, library, verified and unusual are null where it is no preset,
and also
  same_as     other presets that are this flavor, but perhaps for the cut-off
  words       the formula and every switch, in words
"""


@click.command(epilog=_EPILOG)
@click.argument("named", metavar="[NAME]", type=_named, required=False)
@json_option
def flavors(named: tuple[Flavor, Mirror | None] | None, as_json: bool) -> None:
    """List what every library calls NDCG.

    NAME is a preset or any flavor's text, such as 'lightgbm@10[ties=average]'. In the tables, y is the grade of a
    document and r its rank; the default of Flavor, which the text 'ndcg' names, is no preset.
    """
    if named is not None:
        _one(*named, as_json=as_json)
    elif as_json:
        print_json({"flavors": [_plain(PRESETS[name], mirror) for name, mirror in MIRRORS.items()]})
    else:
        _all(Screen(_DIGITS))


def _one(flavor: Flavor, mirror: Mirror | None, *, as_json: bool) -> None:
    same_as = [
        name
        for name, preset in PRESETS.items()
        if preset.replace(k=None) == flavor.replace(k=None) and (mirror is None or name != mirror.name)
    ]
    if as_json:
        print_json({**_plain(flavor, mirror), "same_as": same_as, "words": flavor.describe()})
        return
    screen = Screen(_DIGITS)
    formula, *words = flavor.describe().split("\n")
    screen.print(Text(formula, style="bold"))
    for line in words:
        name, _, rest = line.strip().partition(" ")
        # The mirror that was named is printed below, which need not be the one that the flavor knows.
        if name not in ("preset", "note", "also", "text"):
            screen.fact(name, rest.strip())
    screen.print()
    if mirror is None:
        screen.fact("mirrors", "no library or paper: it is none of the presets")
    else:
        screen.fact("preset", mirror.name)
        screen.fact("mirrors", mirror.library)
        screen.fact("verified", mirror.verified)
        screen.fact("unusual", mirror.unusual)
    screen.flavor(flavor, "text")


def _all(screen: Screen) -> None:
    headings = ("flavor", *_SWITCHES, "k")
    rows = [(name, *(_short(getattr(PRESETS[name], switch)) for switch in (*_SWITCHES, "k"))) for name in MIRRORS]
    if not screen.is_terminal:
        table = columns(screen, *headings, "library", "unusual", left=len(headings) + 2)
        for row, mirror in zip(rows, MIRRORS.values(), strict=True):
            table.add_row(*row, mirror.library, mirror.unusual)
        screen.print(table)
        return
    # One line of switches, then the words: as columns they would be too narrow to read.
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]

    def line(row: tuple[str, ...]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

    screen.print(Text(line(headings), style="bold"))
    for row, mirror in zip(rows, MIRRORS.values(), strict=True):
        screen.print(Text.assemble((row[0], "bold"), line(row)[len(row[0]) :]))
        for words, style in ((mirror.library, "cyan"), (mirror.unusual, "dim")):
            indented = textwrap.fill(words, screen.width - 1, initial_indent="    ", subsequent_indent="    ")
            screen.print(Text(indented, style=style))
    screen.print(f"{len(rows)} flavors; 'ndcg-ml flavors NAME' has every switch of one in words.")


def _plain(flavor: Flavor, mirror: Mirror | None) -> dict[str, Any]:
    def value(name: str) -> Any:
        switch = getattr(flavor, name)
        return "nan" if isinstance(switch, float) and math.isnan(switch) else switch

    return {
        "name": mirror and mirror.name,
        "library": mirror and mirror.library,
        "verified": mirror and mirror.verified,
        "unusual": mirror and mirror.unusual,
        "text": str(flavor),
        "switches": {field.name: value(field.name) for field in fields(flavor)},
    }


def _short(value: object) -> str:
    words = {"linear": "y", "exponential": "2^y-1", "log2": "log2(r+1)", "reciprocal": "r", "jarvelin": "log2(r)"}
    return "-" if value is None else words.get(str(value), switch_text(value))
