"""``ndcg-ml flavors``: list what every library calls NDCG."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import click

from ndcg_ml._core.divergences import declared
from ndcg_ml._core.flavor_text import switch_text
from ndcg_ml._core.table import Column, Record
from ndcg_ml.cli.inputs import flavor_text, json_option
from ndcg_ml.cli.output import print_json, show
from ndcg_ml.flavor import PRESETS, Flavor
from ndcg_ml.presets import MIRRORS, Mirror

_SWITCHES = ("gain", "discount", "ideal", "ties", "empty")


def _parse_name(value: str) -> tuple[Flavor, Mirror | None]:
    """Parse a flavor, and return it with the mirror of the preset that was named."""
    flavor = flavor_text(value)
    start = value.partition("@")[0]
    same = start in PRESETS and PRESETS[start].replace(k=None) == flavor.replace(k=None)
    return flavor, MIRRORS.get(start if same else flavor.preset_name or "")


@click.command
@click.argument("named", metavar="[NAME]", type=_parse_name, required=False)
@json_option
def flavors(named: tuple[Flavor, Mirror | None] | None, as_json: bool) -> None:
    """List what every library calls NDCG.

    NAME is a preset or a flavor's text, such as 'lightgbm@10[ties=average]'. The default flavor, 'ndcg', is not a
    preset.
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
    words = flavor.describe()
    if mirror is not None and mirror.name != flavor.preset_name:  # describe() starts with another of the equal presets
        words = f"{mirror.name}: {mirror.library}. {mirror.unusual}\n{words}"
    show(words)


def _all_flavors() -> Record:
    rows = [
        {
            "flavor": name,
            **{switch: switch_text(getattr(PRESETS[name], switch)) for switch in _SWITCHES},
            "k": PRESETS[name].k,
            "library": mirror.library,
            "unusual": mirror.unusual,
        }
        for name, mirror in MIRRORS.items()
    ]
    return Record([Column(name, "{k:d}" if name == "k" else f"{{{name}}}", "l") for name in rows[0]], rows)


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
