"""``ndcg-ml flavors``, ``identify`` and ``explain``: list definitions, find that of a value, explain a difference.

``flavors`` lists the presets. ``identify`` finds the flavors that give a value. ``explain`` divides the difference of
two flavors among their switches.
"""

from __future__ import annotations

import math
import re
from dataclasses import fields
from textwrap import shorten
from types import EllipsisType
from typing import Any

import click

from ndcg_ml._plain.checks import OneK
from ndcg_ml._plain.table import Column, Record
from ndcg_ml.cli.inputs import JSON, Inputs, cut_off_option, data_options, flavor_text, refusals, show
from ndcg_ml.divergences import declared
from ndcg_ml.explain import explain_difference
from ndcg_ml.flavor import PRESETS, Flavor
from ndcg_ml.identification import identify as find
from ndcg_ml.presets import MIRRORS, Mirror

# -- ``ndcg-ml flavors``: list what every library calls NDCG ----------------------------------------------------------


def _parse_name(value: str) -> tuple[Flavor, Mirror | None]:
    """Parse a flavor, and return it with the mirror of the preset that was named."""
    flavor = flavor_text(value)
    start = value.partition("@")[0]
    same = start in PRESETS and _is_same(start, flavor)
    return flavor, MIRRORS.get(start if same else flavor.preset_name or "")


@click.command
@click.argument("named", metavar="[NAME]", type=_parse_name, required=False)
@JSON
def flavors(named: tuple[Flavor, Mirror | None] | None, as_json: bool) -> None:
    """List what every library calls NDCG.

    NAME is a preset or a flavor's text, such as 'lightgbm@10[ties=average]'. The default flavor, 'ndcg', is not a
    preset.
    """
    if named is None:
        document = {"flavors": [_flavor_document(PRESETS[name], mirror) for name, mirror in MIRRORS.items()]}
        show(_all_flavors().text(), document if as_json else None)
        return
    flavor, mirror = named
    words = flavor.describe()
    if as_json:
        same = [name for name in PRESETS if _is_same(name, flavor) and (mirror is None or name != mirror.name)]
        show(words, {**_flavor_document(flavor, mirror), "same_as": same, "words": words})
    elif mirror is not None and mirror.name != flavor.preset_name:  # describe() starts with another equal preset
        show(f"{mirror.name}: {mirror.library}. {mirror.unusual}\n{words}")
    else:
        show(words)


def _is_same(preset: str, flavor: Flavor) -> bool:
    """Return whether a flavor is this preset, perhaps at another cut-off."""
    return PRESETS[preset].replace(k=None) == flavor.replace(k=None)


def _all_flavors() -> Record:
    rows = [
        {"flavor": name, "library": re.split(r",| \(", mirror.library)[0], "unusual": mirror.unusual}
        for name, mirror in MIRRORS.items()
    ]
    left = 100 - 2 * 2 - sum(max(len(row[name]) for row in rows) for name in ("flavor", "library"))
    for row in rows:
        row["unusual"] = shorten(row["unusual"], left, placeholder=" ...")
    return Record([Column(name, f"{{{name}}}", "l") for name in rows[0]], rows)


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


# -- ``ndcg-ml identify``: find the flavors that give a value ---------------------------------------------------------


@click.command
@click.argument("value", metavar="VALUE")
@data_options()
@cut_off_option(
    "The cut-off if it is known, or 'none'; may be repeated.  [default: each preset's own, none, 1, 3, 5, 10, 15, 20, "
    "30, 50, 100, 200, 500, 1000; all up to the longest list if that has at most 20 documents]",
    multiple=True,
)
@click.option(
    "--decimals",
    type=click.IntRange(0, 15),
    help="Number of decimals of VALUE.  [default: as given; with more than 9, a tolerance of 1e-9]",
)
@JSON
def identify(
    value: str, k: tuple[int | None, ...] | EllipsisType, decimals: int | None, as_json: bool, **files: Any
) -> None:
    """Find the flavors that give VALUE.

    All presets are tried, then all presets with one switch changed. The exit code is 1 if no flavor gives VALUE. The
    data are given as for eval.

    \b
    Example:
      ndcg-ml identify 0.5058 -k 10 --qrels qrels.txt --run run.txt
    """
    data = Inputs(**files)
    with refusals():
        result = find(value, **data.arguments(), k=k, decimals=... if decimals is None else decimals)
    show(result, result.to_dict() if as_json else None)
    if not result.matches:
        raise click.exceptions.Exit(1)


# -- ``ndcg-ml explain``: explain why two flavors disagree ------------------------------------------------------------


@click.command
@data_options()
@click.option("--a", "a", type=flavor_text, metavar="FLAVOR", required=True, help="A preset or a flavor's text.")
@click.option("--b", "b", type=flavor_text, metavar="FLAVOR", required=True, help="Another flavor.")
@cut_off_option("One cut-off for both flavors, or 'none'.  [default: each flavor's own, as a further switch]")
@JSON
def explain(a: Flavor, b: Flavor, k: OneK, as_json: bool, **files: Any) -> None:
    """Explain why two flavors disagree.

    Each part is the effect of one switch, averaged over all orders of changing the switches. The parts sum exactly to
    the difference. The data are given as for eval.

    \b
    Example:
      ndcg-ml explain --a trec_eval --b lightgbm[unjudged=zero] -k 10 --qrels qrels.txt --run run.txt
    """
    data = Inputs(**files)
    with refusals():
        result = explain_difference(a, b, **data.arguments(), k=k)
    show(result, result.to_dict() if as_json else None)
