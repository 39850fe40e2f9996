"""``ndcg-ml identify``: find the flavors that give a value."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ndcg_ml.cli.inputs import CUT_OFF, Inputs, json_option, refusals, takes_data
from ndcg_ml.cli.output import print_json, show
from ndcg_ml.identification import identify as find

_EPILOG = """\
\b
Example:
  ndcg-ml identify 0.5058 -k 10 --qrels qrels.txt --run run.txt
"""


@click.command(epilog=_EPILOG)
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
