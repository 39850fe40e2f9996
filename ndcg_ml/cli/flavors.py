"""``ndcg-ml flavors``: list what every library calls NDCG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import click

from ndcg_ml._core.divergences import declared
from ndcg_ml._core.flavor_text import switch_text
from ndcg_ml._core.table import Column, Record
from ndcg_ml.cli.inputs import CUT_OFF, Inputs, flavor_text, json_option, print_json, refusals, show, takes_data
from ndcg_ml.explain import explain_difference
from ndcg_ml.flavor import PRESETS, Flavor
from ndcg_ml.identification import identify as find
from ndcg_ml.presets import MIRRORS, Mirror

# -- ``ndcg-ml explain``: explain why two flavors disagree ------------------------------------------------------------

_EPILOG = """\
\b
Example:
  ndcg-ml explain --a trec_eval --b lightgbm[unjudged=zero] -k 10 --qrels qrels.txt --run run.txt
"""


@click.command(epilog=_EPILOG)
@takes_data
@click.option("--a", "a", type=flavor_text, metavar="FLAVOR", required=True, help="A preset or a flavor's text.")
@click.option("--b", "b", type=flavor_text, metavar="FLAVOR", required=True, help="Another flavor.")
@click.option(
    "-k",
    "at",
    metavar="K",
    type=CUT_OFF,
    help="One cut-off for both flavors, or 'none'.  [default: each flavor's own, as a further switch]",
)
@json_option
def explain(data: Inputs, a: Flavor, b: Flavor, at: tuple[int | None] | None, as_json: bool) -> None:
    """Explain why two flavors disagree.

    Each part is the effect of one switch, averaged over all orders of changing the switches. The parts sum exactly to
    the difference. The data are given as for eval.
    """
    with refusals():
        result = explain_difference(a, b, **data.arguments(), k=... if at is None else at[0])
    if as_json:
        print_json(result.to_dict())
    else:
        show(str(result))


# -- ``ndcg-ml identify``: find the flavors that give a value ---------------------------------------------------------

_IDENTIFY_EPILOG = """\
\b
Example:
  ndcg-ml identify 0.5058 -k 10 --qrels qrels.txt --run run.txt
"""


@click.command(epilog=_IDENTIFY_EPILOG)
@click.argument("value", metavar="VALUE")
@takes_data
@click.option(
    "-k",
    "ks",
    type=CUT_OFF,
    metavar="K",
    multiple=True,
    help="The cut-off if it is known, or 'none'; may be repeated.  [default: each preset's own, none, 1, 3, 5, "
    "10, 15, 20, 30, 50, 100, 200, 500, 1000; all up to the longest list if that has at most 20 documents]",
)
@click.option(
    "--decimals",
    type=click.IntRange(0, 15),
    help="Number of decimals of VALUE.  [default: as given; with more than 9, a tolerance of 1e-9]",
)
@json_option
def identify(
    value: str,
    data: Inputs,
    ks: Sequence[tuple[int | None]],
    decimals: int | None,
    as_json: bool,
) -> None:
    """Find the flavors that give VALUE.

    All presets are tried, then all presets with one switch changed. The exit code is 1 if no flavor gives VALUE. The
    data are given as for eval.
    """
    cut_offs = tuple(dict.fromkeys(k for (k,) in ks)) or ...
    with refusals():
        result = find(value, **data.arguments(), k=cut_offs, decimals=... if decimals is None else decimals)
    if as_json:
        print_json(result.to_dict())
    else:
        show(str(result))
    if not result.matches:
        raise click.exceptions.Exit(1)


# -- ``ndcg-ml flavors``: list what every library calls NDCG ----------------------------------------------------------

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
