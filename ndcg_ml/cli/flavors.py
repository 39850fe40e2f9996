"""``ndcg-ml flavors``: what every library calls NDCG."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import click

from ndcg_ml._flavor.divergences import declared
from ndcg_ml._flavor.text import switch_text
from ndcg_ml._text.table import Table
from ndcg_ml.cli.inputs import flavor_text, json_option
from ndcg_ml.cli.output import print_json, show
from ndcg_ml.flavor import PRESETS, Flavor
from ndcg_ml.presets import MIRRORS, Mirror

_SWITCHES = ("gain", "discount", "ideal", "ties", "empty")


def _named(value: str) -> tuple[Flavor, Mirror | None]:
    """A flavor with the mirror that the user named, where several presets are equal."""
    flavor = flavor_text(value)
    start = value.partition("@")[0]
    same = start in PRESETS and PRESETS[start].replace(k=None) == flavor.replace(k=None)
    return flavor, MIRRORS.get(start if same else flavor.preset_name or "")


_FLAVORS_JSON = """\
\b
--json without NAME: {"flavors": [...]}, each with
  name        the preset
  library     the library with its version, or the paper
  verified    how it was verified
  differs     what of the library is declared as not reproduced
  unusual     what its users should know
  alias_of    the preset whose NDCG this is; null where the entry stands for itself
  text        the flavor as text, which --flavor takes
  switches    every field of the flavor; nan is the text "nan"
--json with NAME: one such object; name, library, verified, unusual and alias_of are null where it is not a
preset.
It also has
  same_as     other presets that are this flavor, perhaps with another cut-off
  words       the formula and every switch, in words
"""


@click.command(epilog=_FLAVORS_JSON)
@click.argument("named", metavar="[NAME]", type=_named, required=False)
@json_option
def flavors(named: tuple[Flavor, Mirror | None] | None, as_json: bool) -> None:
    """List what every library calls NDCG.

    NAME is a preset or any flavor's text, such as 'lightgbm@10[ties=average]'. In the tables, y is the grade of a
    document and r its rank. The default Flavor, whose text is 'ndcg', is not a preset.
    """
    if named is not None:
        _one_flavor(*named, as_json=as_json)
    elif as_json:
        print_json({"flavors": [_flavor_document(PRESETS[name], mirror) for name, mirror in MIRRORS.items()]})
    else:
        show(_all_flavors().text())


def _one_flavor(flavor: Flavor, mirror: Mirror | None, *, as_json: bool) -> None:
    same_as = [
        name
        for name, preset in PRESETS.items()
        if preset.replace(k=None) == flavor.replace(k=None) and (mirror is None or name != mirror.name)
    ]
    if as_json:
        print_json({**_flavor_document(flavor, mirror), "same_as": same_as, "words": flavor.describe()})
        return
    formula, *words = flavor.describe().split("\n")
    # The mirror that the user named is printed; the flavor may name another that is equal.
    mirrors = ("preset", "note", "verified", "differs", "also", "text")
    lines = [formula, *(line for line in words if line.split()[0] not in mirrors), ""]
    facts = [("mirrors", "no library or paper: it is not a preset")]
    if mirror is not None:
        alias = "" if mirror.alias_of is None else f", an alias of {mirror.alias_of}"
        facts = [("preset", f"{mirror.name}{alias}"), ("mirrors", mirror.library), ("verified", mirror.verified)]
        facts += [("unusual", mirror.unusual), *(("differs", str(entry)) for entry in declared(mirror.name))]
    facts += [("text", str(flavor)), *[("same as", ", ".join(same_as))] * bool(same_as)]
    show("\n".join([*lines, *(f"  {name:<10} {words}" for name, words in facts)]))


def _all_flavors() -> Table:
    head = ("flavor", *_SWITCHES, "k", "library", "unusual")
    rows = [
        (
            name,
            *(_short(getattr(PRESETS[name], switch)) for switch in (*_SWITCHES, "k")),
            mirror.library,
            mirror.unusual,
        )
        for name, mirror in MIRRORS.items()
    ]
    return Table(head, rows, "l" * len(head))


def _flavor_document(flavor: Flavor, mirror: Mirror | None) -> dict[str, Any]:
    def value(name: str) -> Any:
        switch = getattr(flavor, name)
        return "nan" if isinstance(switch, float) and math.isnan(switch) else switch

    return {
        "name": mirror and mirror.name,
        "library": mirror and mirror.library,
        "verified": mirror and mirror.verified,
        "unusual": mirror and mirror.unusual,
        "differs": [str(entry) for entry in declared(mirror.name)] if mirror else [],
        "alias_of": mirror and mirror.alias_of,
        "text": str(flavor),
        "switches": {field.name: value(field.name) for field in fields(flavor)},
    }


def _short(value: object) -> str:
    words = {"linear": "y", "exponential": "2^y-1", "log2": "log2(r+1)", "reciprocal": "r", "jarvelin": "log2(r)"}
    return "-" if value is None else words.get(str(value), switch_text(value))
